/* rod_critical: loads between two states at which the tangent becomes singular.  Something of the tangent
   differs between the states; halving the interval leads to where it changes. */
#include "rod_work.h"
#include "base/tolerances.h"
#include <math.h>
#include <stdlib.h>

/* What differs: the number of directions that lower the energy.  Moments without energy have no such
   directions; there it is the sign of the determinant, or, where two eigenvalues pass zero together and the
   sign stays, the number of negative ones. */
typedef enum { BY_ENERGY, BY_SIGN, BY_NUMBER } rod_mark;

/* an equilibrium at one end of the interval */
typedef struct place {
    double t, *pos, *rot;
    int mark;
    double near; /* BY_NUMBER: size of the eigenvalue nearest to zero */
} place;
typedef struct interval {
    rod_work *w;
    rod_mark by;
    bool touch; /* rods touch at its end: states cost more there, and more may change between them */
    bool loose; /* some motion costs nothing, and what rounding makes of that does not count */
    int idle;   /* so many of them, at the first load */
    place a, b;
    int last;      /* mark at the end of the step */
    double beyond; /* the first load found from which on that is the mark */
} interval;

static place place_new(rod_work *w)
{
    return (place){ .pos = arena_array(w->tmp, double, 3 * w->N),
                    .rot = arena_array(w->tmp, double, 4 * w->N) };
}

/* the state of w becomes that of the place */
static void place_keep(const interval *i, place *to, double t, int mark, double nearest)
{
    state_copy(i->w, to->pos, to->rot, i->w->state.pos, i->w->state.rot);
    to->t = t;
    to->mark = mark;
    to->near = nearest;
}

static void place_back(const interval *i, const place *from)
{
    state_copy(i->w, i->w->state.pos, i->w->state.rot, from->pos, from->rot);
}

int rod_certain(rod_work *w, double t, int known)
{
    rod_range n = rod_unstable_range(w, t, rod_rounding(w));
    return known < n.least ? n.least : known > n.most ? n.most : known;
}

static int mark_of(const interval *i, double t, double *nearest)
{
    *nearest = 0;
    return i->by == BY_NUMBER ? rod_negative(i->w, nearest)
           : i->loose         ? rod_certain(i->w, t, i->a.mark)
                              : rod_character(i->w, t);
}

/* A first guess between the ends of the interval.  Near a fork Newton's method stays on the branch that has
 * both ends, where from one of them it might go over to another.  Pairs that touch are those of the first
 * end. */
static void place_between(const interval *i, double part)
{
    rod_work *w = i->w;
    place_back(i, &i->a);
    for (int k = 0; !i->touch && k < w->N; k++) {
        double turn[3];
        for (int d = 3 * k; d < 3 * k + 3; d++)
            w->state.pos[d] += part * (i->b.pos[d] - i->a.pos[d]);
        quat_log(i->a.rot + 4 * k, i->b.rot + 4 * k, turn);
        for (int d = 0; d < 3; d++)
            turn[d] *= part;
        quat_turn(w->state.rot + 4 * k, turn);
    }
}

/* Divides the interval until its ends are next to each other.  Where no state is found, as where the tangent
 * is nearly singular, other places are tried.  far: how far apart the ends are. */
static void narrow(interval *i, double far)
{
    enum { LOOK = 10, MOST = 60, TOUCH = 24, FAILS = 4 };
    static const double part[FAILS] = { 0.5, 0.3, 0.7, 0.1 };
    int fails = 0, steps = i->touch ? TOUCH : MOST, may = i->touch ? 1 : FAILS;
    for (int k = 0; k < steps && i->b.t - i->a.t > CRITICAL_END * fabs(i->b.t) && fails < may; k++) {
        double t = i->a.t + part[fails] * (i->b.t - i->a.t), nearest;
        place_between(i, part[fails]);
        if (!rod_step(i->w, t, 1, BY_NEWTON)) {
            fails++;
            continue;
        }
        int mark = mark_of(i, t, &nearest);
        place_keep(i, mark == i->a.mark ? &i->a : &i->b, t, mark, nearest);
        if (mark == i->last)
            i->beyond = t;
        fails = 0;
        if (k == LOOK && i->by == BY_ENERGY && !i->loose &&
            rod_distance(i->w, mark == i->a.mark ? i->b.pos : i->a.pos,
                         mark == i->a.mark ? i->b.rot : i->a.rot) > 0.1 * far)
            break; /* the ends do not come together */
    }
}

/* Whether the branch ends at a, so that Newton's method had to go over to another: the tangent there is
 * nearly singular, also apart from motions that cost nothing. */
static bool ends_there(interval *i)
{
    rod_work *w = i->w;
    if (i->by != BY_ENERGY)
        return false;
    if (i->touch)
        return true; /* not known */
    rod_range little = rod_unstable_range(w, i->a.t, CRITICAL_FLAT * rod_small_shift(w));
    return little.most - little.least > i->idle;
}

/* Both ends of the narrow interval are on one branch.  far: how far apart they were.  States that differ by a
 * motion that costs nothing may be far from each other; they have the same energy. */
static bool on_one_branch(interval *i, double far)
{
    rod_work *w = i->w;
    double e[4], a, b;
    place_back(i, &i->b);
    b = rod_elastic(w, e);
    place_back(i, &i->a);
    a = rod_elastic(w, e);
    return rod_distance(w, i->b.pos, i->b.rot) <= CRITICAL_SAME * far + CRITICAL_REACH * rod_length(w) ||
           (i->loose && fabs(b - a) <= CRITICAL_ENERGY * fmax(a, b));
}

/* An eigenvalue passes zero in the narrow interval, if its ends are on one branch.  Newton's method may also
 * have gone over to another branch there, as from a buckled column to the straight one.  far, nearest: how
 * far apart the ends were, and their eigenvalues from zero. */
static bool passes_zero(interval *i, double far, double nearest)
{
    double least = fmin(i->a.near, i->b.near);
    if (i->by == BY_NUMBER && !(least < CRITICAL_NEAR * nearest))
        return false; /* eigenvalues came into sight, far from zero */
    if (i->by == BY_NUMBER && least < CRITICAL_ZERO * nearest)
        return true; /* states so near to the critical one may be far from each other */
    return on_one_branch(i, far) || ends_there(i);
}

/* loads that are no further apart than this count once: rounding may part them so far */
static double together(const interval *i, double load)
{
    double part = i->loose ? CRITICAL_LOOSE : i->by == BY_NUMBER ? CRITICAL_PAIR : CRITICAL_BOTH;
    return part * fabs(load);
}

/* The loads in the interval, one after the other.  Eigenvalues that pass zero together count once.  The
 * search ends where nothing changes any more beyond them: between them Newton's method may go anywhere. */
static void list(interval *i, rod_path *p)
{
    place end = i->b, mid = place_new(i->w);
    double known = -INFINITY;
    i->last = end.mark;
    for (bool more = true; more && p->ncritical < ROD_CRITICAL;) {
        place_back(i, &end);
        double far = rod_distance(i->w, i->a.pos, i->a.rot), nearest = fmax(i->a.near, end.near);
        i->b = mid;
        place_keep(i, &i->b, end.t, end.mark, end.near);
        i->beyond = end.t;
        narrow(i, far);
        bool passed = passes_zero(i, far, nearest);
        if (passed && i->a.t > known) {
            p->critical[p->ncritical++] = (i->a.t + i->b.t) / 2;
            known = i->b.t + together(i, i->b.t);
        }
        /* behind a place where Newton's method went over lie the loads of another branch */
        more = i->by != BY_SIGN && !i->touch && (passed || i->by == BY_NUMBER) && i->b.mark != end.mark &&
               i->beyond > known && i->b.t > i->a.t && !rod_interrupted(i->w);
        place_back(i, &i->b);
        place_keep(i, &i->a, i->b.t, i->b.mark, i->b.near);
    }
    place_back(i, &end);
}

/* the interval from pos0, rot0 to the state of w, which is put back, with what touches there */
static void search(rod_work *w, rod_path *p, rod_mark by, bool loose, place a, place b)
{
    arena_pos mark = arena_mark(w->tmp);
    interval i = { .w = w, .by = by, .loose = loose, .a = place_new(w), .b = place_new(w) };
    double *pos0 = arena_array(w->tmp, double, 3 * w->N), *rot0 = arena_array(w->tmp, double, 4 * w->N);
    if (w->contact)
        contacts_keep_watch(w);
    state_copy(w, pos0, rot0, w->state.pos0, w->state.rot0);
    place_keep(&i, &i.b, b.t, b.mark, b.near);
    state_copy(w, i.a.pos, i.a.rot, pos0, rot0);
    i.a.t = a.t;
    i.a.mark = a.mark;
    i.a.near = a.near;
    i.touch = w->contact && contacts_near(w);
    if (by == BY_ENERGY && !i.touch) {
        place_back(&i, &i.a);
        rod_range n = rod_unstable_range(w, a.t, rod_rounding(w));
        i.idle = n.most - n.least;
    }
    list(&i, p);
    state_copy(w, w->state.pos0, w->state.rot0, pos0, rot0);
    if (w->contact)
        contacts_back_watch(w);
    holds_at(w, b.t, 1);
    arena_release(w->tmp, mark);
}

bool rod_loose_since(rod_work *w, const double *pos0, const double *rot0, double before, double now)
{
    if (w->moments || (w->contact && contacts_near(w)))
        return false;
    arena_pos mark = arena_mark(w->tmp);
    double *pos = arena_array(w->tmp, double, 3 * w->N), *rot = arena_array(w->tmp, double, 4 * w->N);
    state_copy(w, pos, rot, w->state.pos, w->state.rot);
    rod_range n = rod_unstable_range(w, now, rod_rounding(w));
    if (n.most > n.least) {
        state_copy(w, w->state.pos, w->state.rot, pos0, rot0);
        n = holds_at(w, before, 1) ? rod_unstable_range(w, before, rod_rounding(w)) : (rod_range){ 0, 0 };
        state_copy(w, w->state.pos, w->state.rot, pos, rot);
        holds_at(w, now, 1);
    }
    arena_release(w->tmp, mark);
    return n.most > n.least;
}

int rod_modes_start(rod_work *w)
{
    if (w->moments || (w->contact && contacts_near(w)))
        return rod_character(w, 0);
    rod_range n = rod_unstable_range(w, 0, rod_rounding(w));
    return n.most > n.least ? n.least : rod_character(w, 0);
}

void rod_watch(rod_work *w, rod_path *p, double before, double now)
{
    bool same = w->moments == p->moments;
    int is = rod_character(w, now), was = same ? p->modes : is, number = p->negative;
    double nearest = p->near;
    bool loose = is != was && rod_loose_since(w, w->state.pos0, w->state.rot0, before, now);
    if (loose)
        is = rod_certain(w, now, was);
    if (w->moments)
        p->negative = rod_negative(w, &p->near);
    if (is != was)
        search(w, p, w->moments ? BY_SIGN : BY_ENERGY, loose, (place){ .t = before, .mark = was },
               (place){ .t = now, .mark = is });
    else if (w->moments && same && abs(p->negative - number) >= 2)
        search(w, p, BY_NUMBER, false, (place){ .t = before, .mark = number, .near = nearest },
               (place){ .t = now, .mark = p->negative, .near = p->near });
    p->modes = is;
    p->moments = w->moments;
}
