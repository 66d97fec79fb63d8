/* rod_arc: equilibria by arc length, through limit points at which the load reverses. The unknowns are the
   state and the load: a predictor along the tangent (x', t'), then Newton's method across it. A step solves K
   a = -R and K b = -dR/dt with one factorisation (supports move with the load, which gives b there) and takes
   dx = a + b dt with <x', dx> + t' dt = 0. K is singular where t' = 0, but dx is not: a and b grow alike, and
   the equation for dt cancels their growth. */
#include "rod_work.h"
#include "base/tolerances.h"
#include <math.h>
#include <string.h>

/* ARC_EASY: iterations in which slip may reverse. ARC_STEPS, ARC_LIMITS: steps and limit points after which a
   branch counts as one that does not come back. */
enum { ARC_ITERATIONS = 12, ARC_EASY = 6, ARC_STEPS = 1000, ARC_LIMITS = 16 };
static const double ARC_LONGEST = 0.1, ARC_STRAIGHT = 0.95;
/* longest step in the metric; least cosine between tangents of neighbouring points */

typedef struct arc {
    rod_work *w;
    double *weight, way, perload; /* the metric: weights of dofs, scale of their motion, weight of the load */
    double t, slope, *dir;        /* current load, and t' and x' with respect to arc length */
    double t0, slope0, *dir0, *pos0, *rot0; /* at the last point */
    double *rate, *dy;                      /* dR/dt, b */
    double unit;                            /* small step of the load, for differences */
    bool loose;                             /* some motion costs nothing: see rod_loose_since */
} arc;

/* ---- the metric ---- */
/* Means over the rods of |dr|^2/L^2 + |angle|^2. */
static double *weights_of(const rod_work *w)
{
    double *weight = arena_array(w->tmp, double, w->ndof), L = rod_length(w), all = 0;
    for (int r = 0; r < w->rp->nrod; r++)
        all += w->mesh[r].length;
    for (int r = 0; r < w->rp->nrod; r++)
        for (int i = 0; i < w->mesh[r].nn; i++) {
            const rod_mesh *m = &w->mesh[r];
            double a = i > 0 ? m->s[i - 1] : m->s[0], b = i + 1 < m->nn ? m->s[i + 1] : m->s[i];
            for (int k = 0; k < 6; k++)
                weight[6 * (m->first + i) + k] = (b - a) / (2 * all) / (k < 3 ? L * L : 1);
        }
    return weight;
}

static double inner(const double *weight, int n, const double *x, const double *y)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += weight[i] * x[i] * y[i];
    return sum;
}

static double arc_inner(const arc *a, const double *x, double xt, const double *y, double yt)
{
    return inner(a->weight, a->w->ndof, x, y) + a->perload * xt * yt;
}

double rod_distance(rod_work *w, const double *pos, const double *rot)
{
    arena_pos mark = arena_mark(w->tmp);
    double *d = arena_array(w->tmp, double, w->ndof), *weight = weights_of(w);
    for (int i = 0; i < w->N; i++) {
        for (int k = 0; k < 3; k++)
            d[6 * i + k] = w->state.pos[3 * i + k] - pos[3 * i + k];
        quat_log(rot + 4 * i, w->state.rot + 4 * i, d + 6 * i + 3);
    }
    double size = sqrt(inner(weight, w->ndof, d, d));
    arena_release(w->tmp, mark);
    return size;
}

/* ---- the linear problem ---- */
/* If a load before the start gives no number, the branch ends, but the run does not fail. */
static bool goals_at(rod_work *w, double t)
{
    if (!holds_at(w, t, 1)) {
        results_unfail(w->r);
        return false;
    }
    holds_put(w);
    return true;
}

/* dR/dt and the increments of supports, by central differences. They only guide Newton's method; its result
   does not depend on them. */
static bool rates_at(arc *a, double t)
{
    rod_work *w = a->w;
    arena_pos mark = arena_mark(w->tmp);
    double *before = arena_array(w->tmp, double, w->ndof), u = a->unit;
    bool ok = goals_at(w, t - u);
    double *way = arena_array(w->tmp, double, w->ndof);
    memset(a->rate, 0, (size_t)w->ndof * sizeof *a->rate);
    rod_driving(w, t - u, before);
    memcpy(way, w->dx, (size_t)w->ndof * sizeof *way);
    ok = ok && goals_at(w, t + u);
    rod_driving(w, t + u, a->rate);
    for (int i = 0; i < w->ndof; i++) {
        a->rate[i] = (a->rate[i] - before[i]) / (2 * u);
        a->dy[i] = (w->dx[i] - way[i]) / (2 * u);
    }
    arena_release(w->tmp, mark);
    return ok && goals_at(w, t);
}

/* A motion without resistance is held weakly, because K is singular there. */
static bool arc_solve(arc *a, double t)
{
    rod_work *w = a->w;
    double keep = w->shift;
    w->shift = w->neutral ? 0.1 * rod_small_shift(w) : 0;
    bool touch = w->contact && contacts_near(w),
         ok = rates_at(a, t) && (touch ? rod_solve_sparse : rod_solve_two)(w, t, a->rate, a->dy);
    w->shift = keep;
    return ok;
}

/* ---- a point ---- */
/* Moves the state by dx; multipliers that are unknowns follow. */
static void arc_move(rod_work *w)
{
    forces_follow(w, w->dx);
    rod_update(w, w->dx, 1);
    if (w->contact && !w->ro->penalty)
        contacts_carry(w);
}

/* Updates contacts; *pattern: which pairs touch, stick and slip. */
static bool arc_look(rod_work *w, bool easy, uint64_t *pattern)
{
    bool whole = !w->contact || contacts_project(w, easy);
    *pattern = w->contact ? contacts_pattern(w) : 0;
    return whole;
}

/* Newton's method across the tangent at the last point; returns the number of iterations until the increment
   was small, 0: it failed. */
static int arc_correct(arc *a)
{
    rod_work *w = a->w;
    uint64_t pattern, was;
    int needed = 0;
    if (!arc_look(w, true, &was))
        return 0;
    for (int k = 1; k <= ARC_ITERATIONS && !rod_interrupted(w); k++) {
        double turn, size;
        w->iterations++;
        if (!arc_solve(a, a->t))
            return 0;
        double dt = -arc_inner(a, a->dir0, a->slope0, w->dx, 0) / arc_inner(a, a->dir0, a->slope0, a->dy, 1);
        for (int i = 0; i < w->ndof; i++)
            w->dx[i] += dt * a->dy[i];
        size = rod_size(w, w->dx, &turn);
        if (!(size < 1) || rod_part_of(w, turn, 1, false) < 1)
            return 0;
        if (size > ARC_NEEDED || !needed)
            needed = k;
        if (w->contact && !w->ro->penalty)
            contacts_predict(w, w->dx, 1);
        arc_move(w);
        a->t += dt;
        if (!arc_look(w, k < ARC_EASY, &pattern))
            return 0;
        /* stiff gaps need a larger tolerance */
        bool touch = w->contact && contacts_near(w),
             small = size < (touch ? ROD_END_STIFF : ROD_END) ||
                     (k > 5 && size < (!touch       ? ROD_SLOW
                                       : w->neutral ? ROD_SLOW_STIFF_NEUTRAL
                                                    : ROD_SLOW_STIFF));
        if (small && pattern == was && (!touch || w->ro->penalty || rod_gaps_closed(w)))
            return needed;
        was = pattern;
    }
    return 0;
}

/* x' and t' here, in the same sense as before. */
static bool arc_tangent(arc *a)
{
    rod_work *w = a->w;
    forces_follow(w, NULL);
    if (!arc_solve(a, a->t))
        return false;
    double size = sqrt(arc_inner(a, a->dy, 1, a->dy, 1));
    if (arc_inner(a, a->dir0, a->slope0, a->dy, 1) < 0)
        size = -size;
    for (int i = 0; i < w->ndof; i++)
        a->dir[i] = a->dy[i] / size;
    a->slope = 1 / size;
    return true;
}

/* Moves by ds along the tangent from the last point; false: this is farther than rods that may touch can move
   at once. */
static bool arc_lead(arc *a, double ds)
{
    rod_work *w = a->w;
    state_copy(w, w->state.pos, w->state.rot, a->pos0, a->rot0);
    for (int i = 0; i < w->ndof; i++)
        w->dx[i] = ds * a->dir0[i];
    if (rod_part_of(w, 0, 1, false) < 1)
        return false;
    forces_follow(w, NULL);
    if (w->contact) {
        contacts_back_arc(w, 1);
        contacts_lead(w, w->dx);
    }
    arc_move(w);
    a->t = a->t0 + ds * a->slope0;
    return true;
}

/* The point at distance ds along the arc from the last one. */
static int arc_to(arc *a, double ds)
{
    int k = arc_lead(a, ds) ? arc_correct(a) : 0;
    return k && arc_tangent(a) ? k : 0;
}

/* The next step starts here. */
static void arc_here(arc *a)
{
    state_copy(a->w, a->pos0, a->rot0, a->w->state.pos, a->w->state.rot);
    if (a->w->contact)
        contacts_keep_arc(a->w, 1);
    memcpy(a->dir0, a->dir, (size_t)a->w->ndof * sizeof *a->dir);
    a->t0 = a->t;
    a->slope0 = a->slope;
}

static void arc_accept(arc *a)
{
    if (a->w->contact) {
        contacts_soften(a->w);
        contacts_project(a->w, false);
        contacts_lose(a->w);
    }
    arc_here(a);
}

/* ---- between two points ---- */
/* t' = 0 by the Illinois variant of false position. t is stationary there, so its error is the square of that
   of the arc. */
static double limit_between(arc *a, double ds)
{
    double lo = 0, hi = ds, f = a->slope0, g = a->slope;
    for (int k = 0, side = 0; k < 40 && hi - lo > ARC_LIMIT_END * ds; k++) {
        double s = fmin(fmax((lo * g - hi * f) / (g - f), lo + ARC_INSIDE * (hi - lo)),
                        hi - ARC_INSIDE * (hi - lo));
        if (!arc_to(a, s))
            break;
        if ((a->slope < 0) == (a->slope0 < 0)) {
            lo = s;
            f = a->slope;
            if (side < 0)
                g /= 2;
            side = -1;
        } else {
            hi = s;
            g = a->slope;
            if (side > 0)
                f /= 2;
            side = 1;
        }
        if (fabs(a->slope) < ARC_FLAT * fabs(a->slope0))
            break;
    }
    return a->t;
}

/* The number of directions that lower the energy changes where another branch crosses: bisection. */
static double crossing_between(arc *a, double ds, int was)
{
    double lo = 0, hi = ds;
    for (int k = 0; k < 30; k++) {
        double s = (lo + hi) / 2;
        if (!arc_to(a, s))
            break;
        if ((a->loose ? rod_certain(a->w, a->t, was) : rod_character(a->w, a->t)) == was)
            lo = s;
        else
            hi = s;
    }
    return a->t;
}

/* ---- the branch ---- */
/* The metric is scaled by the motion until now: the state by its distance from the start, the load by its
   value. */
static void arc_start(arc *a, rod_work *w, const rod_path *p, double t, double end)
{
    double way = fmax(rod_distance(w, p->pos, p->rot), ARC_WAY_LEAST);
    *a = (arc){ .w = w,
                .weight = weights_of(w),
                .way = way,
                .perload = 1 / (t > 0.05 * end ? t * t : 0.0025 * end * end),
                .t = t,
                .t0 = t,
                .slope0 = 1,
                .unit = ARC_UNIT * end };
    for (int i = 0; i < w->ndof; i++)
        a->weight[i] /= way * way;
    a->dir = arena_array(w->tmp, double, w->ndof);
    a->dir0 = arena_array(w->tmp, double, w->ndof);
    a->rate = arena_array(w->tmp, double, w->ndof);
    a->dy = arena_array(w->tmp, double, w->ndof);
    a->pos0 = arena_array(w->tmp, double, 3 * w->N);
    a->rot0 = arena_array(w->tmp, double, 4 * w->N);
}

static void arc_list(rod_path *p, double load)
{
    if (p->ncritical < ROD_CRITICAL)
        p->critical[p->ncritical++] = load;
}

static int arc_modes(arc *a, const rod_path *p)
{
    return rod_unclear(a->w) ? p->modes : rod_character(a->w, a->t);
}

/* Processes a new point: lists critical loads that it passed; true: it passed a limit point. */
static bool arc_pass(arc *a, rod_path *p, double ds, double *far)
{
    int was = p->modes, is = arc_modes(a, p);
    a->loose = is != was && rod_loose_since(a->w, a->pos0, a->rot0, a->t0, a->t);
    if (a->loose)
        is = rod_certain(a->w, a->t, was);
    bool limit = (a->slope < 0) != (a->slope0 < 0);
    if (limit || is != was) {
        double load = limit ? limit_between(a, ds) : crossing_between(a, ds, was);
        arc_list(p, load);
        if (limit)
            *far = fmax(*far, load);
        arc_to(a, ds);
    }
    p->modes = is;
    return limit;
}

/* ---- corners ---- */
static bool arc_straight(const arc *a)
{
    return arc_inner(a, a->dir0, a->slope0, a->dir, a->slope) >= ARC_STRAIGHT;
}

/* A pair that begins to touch, opens, sticks or slips causes a corner of the branch, which may reverse there,
   as when a rod falls on a stop. The last point is moved to the corner, then past it along its tangent, so
   that the contact pattern changes. The tangent of the branch beyond the corner is taken in the sense in
   which this pattern continues. False: there is no corner. */
static bool arc_turn(arc *a, rod_path *p, double ds, double *far, int *limits)
{
    rod_work *w = a->w;
    double lo = 0, hi = ds, before = a->slope0, here;
    uint64_t was, is;
    contacts_back_arc(w, 1);
    was = contacts_pattern(w);
    for (int k = 0; k < 24; k++) {
        double s = (lo + hi) / 2;
        if (arc_to(a, s) && arc_straight(a) && contacts_pattern(w) == was)
            lo = s;
        else
            hi = s;
    }
    if (lo > 0 && arc_to(a, lo))
        arc_accept(a);
    here = a->t0;
    for (double past = 4 * (hi - lo); past < ARC_PAST; past *= 10) {
        if (!arc_lead(a, past) || !arc_look(w, true, &is))
            return false;
        if (is == was)
            continue;
        if (!arc_tangent(a))
            return false;
        contacts_soften(w);
        arc_here(a);
        for (double step = ARC_PROBE; step > ARC_PAST; step /= 10)
            for (int side = 0; side < 2; side++) {
                a->slope0 = -a->slope0;
                for (int i = 0; i < w->ndof; i++)
                    a->dir0[i] = -a->dir0[i];
                if (!arc_to(a, step) || contacts_pattern(w) != is || !arc_straight(a))
                    continue;
                if ((a->slope0 < 0) != (before < 0)) {
                    arc_list(p, here);
                    *far = fmax(*far, here);
                    ++*limits;
                }
                p->modes = arc_modes(a, p);
                arc_accept(a);
                return true;
            }
        return false;
    }
    return false;
}

/* Restores the last point as the start of a step of the load. */
static void arc_back(arc *a)
{
    rod_work *w = a->w;
    state_copy(w, w->state.pos, w->state.rot, a->pos0, a->rot0);
    contacts_back_arc(w, 1);
    contacts_step(w);
}

/* Pairs represent a line of contact: where one of them replaces another, the branch may reverse for much less
   than a step, or end beside one that continues. In this case the load is increased a little, if the state
   found there is no farther away than a step. False: there is none. */
static bool arc_over(arc *a, rod_path *p)
{
    rod_work *w = a->w;
    for (double part = ARC_OVER; part < ARC_LONGEST / 2; part *= 2) {
        arc_back(a);
        a->t = a->t0 + part / sqrt(a->perload);
        if (!rod_step(w, a->t, 1, BY_NEWTON))
            continue;
        memset(a->dir0, 0, (size_t)w->ndof * sizeof *a->dir0);
        a->slope0 = 1;
        contacts_stiffen(w, !w->ro->penalty);
        bool ok = arc_tangent(a);
        contacts_soften(w);
        if (!ok || rod_distance(w, a->pos0, a->rot0) / a->way > ARC_LONGEST + 1.5 * (a->t - a->t0) / a->slope)
            continue;
        p->modes = arc_modes(a, p);
        arc_here(a);
        return true;
    }
    return false;
}

static double arc_next(double ds, int iterations, double straight)
{
    double k = fmin(fmax(sqrt(4.0 / iterations), 0.5), 2);
    if (straight < 0.98)
        k = fmin(k, 0.7);
    return fmin(k * ds, ARC_LONGEST);
}

/* From the last point to the end of the run, which lies before the point that was found. */
static bool arc_end(arc *a, double end)
{
    return holds_at(a->w, a->t = end, 1) && rod_equilibrium(a->w, end);
}

bool rod_arc(rod_work *w, rod_path *p, double from, double goal, double end, bool whole, double *to)
{
    arena_pos mark = arena_mark(w->tmp);
    double *pos = arena_array(w->tmp, double, 3 * w->N), *rot = arena_array(w->tmp, double, 4 * w->N),
           far = from, ds;
    int limits = 0, modes = p->modes;
    bool back = false;
    arc a;
    state_copy(w, pos, rot, w->state.pos, w->state.rot);
    if (w->contact) {
        contacts_keep_arc(w, 0);
        contacts_stiffen(w, !w->ro->penalty);
    }
    arc_start(&a, w, p, from, end);
    bool ok = arc_tangent(&a);
    if (w->contact)
        contacts_soften(w);
    arc_here(&a);
    ds = fmin((goal - from) / a.slope, ARC_LONGEST / 4);
    for (int k = 0;
         ok && !back && k < ARC_STEPS && limits < ARC_LIMITS && ds > ARC_SHORTEST && !rod_interrupted(w);
         k++) {
        int iterations = arc_to(&a, ds);
        double straight = arc_inner(&a, a.dir0, a.slope0, a.dir, a.slope);
        if (!iterations || straight < ARC_STRAIGHT || rod_passed(w, a.pos0, a.rot0, false, true)) {
            ds /= 2;
            if (!w->contact || ds > ARC_CORNER)
                continue;
            bool grows = a.slope0 > 0;
            ok = arc_turn(&a, p, 2 * ds, &far, &limits) || (grows && arc_over(&a, p));
            ds = ARC_AGAIN;
        } else {
            limits += arc_pass(&a, p, ds, &far);
            if (limits && !whole)
                break;
            back = a.slope > 0 && (rod_unclear(w) || p->modes == modes) && a.t > (limits ? far : goal);
            if (back && a.t > end)
                ok = back = arc_end(&a, end);
            arc_accept(&a);
            ds = arc_next(ds, iterations, straight);
        }
        if (ok && whole)
            rod_path_point(w, p, a.t);
        ok = ok && a.t > -end && a.t < 2 * end;
    }
    if (back)
        *to = a.t;
    else {
        state_copy(w, w->state.pos, w->state.rot, pos, rot);
        p->modes = modes;
        if (w->contact)
            contacts_back_arc(w, 0);
    }
    arena_release(w->tmp, mark);
    return back;
}

/* |dx/dt| at an equilibrium; 0: not known */
double rod_reach(rod_work *w, double t, double end)
{
    arena_pos mark = arena_mark(w->tmp);
    double *dy = arena_array(w->tmp, double, w->ndof);
    arc a = { .w = w, .rate = arena_array(w->tmp, double, w->ndof), .dy = dy, .unit = ARC_UNIT * end };
    forces_follow(w, NULL);
    if (w->contact)
        contacts_smooth(w, true); /* it is not known yet what slips and what sticks */
    double reach = arc_solve(&a, t) ? sqrt(inner(weights_of(w), w->ndof, dy, dy)) : 0;
    if (w->contact) {
        contacts_smooth(w, false);
        contacts_project(w, false);
    }
    arena_release(w->tmp, mark);
    return reach;
}
