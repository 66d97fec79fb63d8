/* rod_descend: equilibria of rods in contact, by a descent of one function. Each round minimises the sum of
   the elastic energy, the potential of the loads, (lambda - k gap)^2/(2 k) of pairs that press, and a
   potential of friction with the bounds and normals of the last round; then multipliers, bounds and normals
   are set from the forces. Within a round the pairs stay the same; each increment of Newton's method is
   shortened until it decreases the function, and no node moves by more than a fraction of the radius, so that
   rods cannot pass through each other. */
#include "rod_touch.h"
#include "base/linalg.h"
#include "base/tolerances.h"
#include <math.h>
#include <string.h>

/* ---- contact within a round ---- */
void contacts_follow(rod_work *w)
{
    for (size_t i = 0; i < w->contact->list.n; i++)
        touch_project(w, &w->contact->list.at[i]);
}

/* Has the normal of a close pair reversed since the last state? Then a rod has passed through another one. */
static bool normals_kept(rod_work *w)
{
    const rod_contacts *k = w->contact;
    for (size_t i = 0; i < k->list.n; i++) {
        const touch *c = &k->list.at[i];
        if (dot3(c->last, c->N) < 0 && c->gap < 0.5 * k->clear[c->pair])
            return false;
    }
    return true;
}

static void normals_here(rod_work *w)
{
    for (size_t i = 0; i < w->contact->list.n; i++)
        memcpy(w->contact->list.at[i].last, w->contact->list.at[i].N, sizeof w->contact->list.at[i].N);
}

/* Fixes the friction of a pair for the next round, from its multipliers. */
static void friction_hold(const rod_work *w, touch *c)
{
    const rod_contacts *k = w->contact;
    double R[9], f[3];
    other_matrix(w, c, R);
    for (int i = 0; i < 3; i++)
        f[i] = dot3(R + 3 * i, c->l);
    double along = dot3(f, c->N);
    for (int i = 0; i < 3; i++)
        c->held_force[i] = f[i] - along * c->N[i];
    memcpy(c->held_normal, c->N, sizeof c->N);
    c->bound = c->hats || k->smooth || !(c->lambda > 0) ? 0
               : k->tresca[c->pair]                     ? k->mu[c->pair]
                                                        : k->mu[c->pair] * c->lambda;
    c->turned = 0;
}

void contacts_lag(rod_work *w, bool lagged)
{
    rod_contacts *k = w->contact;
    k->stiff = false;
    k->lagged = lagged;
    for (size_t i = 0; lagged && i < k->list.n; i++)
        friction_hold(w, &k->list.at[i]);
    if (lagged)
        lines_hold(w);
}

double contacts_round(rod_work *w)
{
    rod_contacts *k = w->contact;
    double most = 0, change = lines_round(w, &most);
    for (size_t i = 0; i < k->list.n; i++) {
        touch *c = &k->list.at[i];
        double before = c->lambda, f[3];
        if (c->hats)
            continue;
        touch_force(w, c);
        memcpy(f, c->ft, sizeof f);
        c->lambda = fmax(0, c->fn);
        for (int j = 0; j < 3; j++)
            change = fmax(change, fabs(f[j] - c->held_force[j]));
        change = fmax(change, fabs(c->lambda - before));
        most = fmax(most, c->lambda);
        contacts_multiplier(w, c, f);
        friction_hold(w, c);
    }
    return most > 0 ? change / most : 0;
}

/* ---- minimising the potential ---- */
/* Stiffness of springs, relative to that of a rod between two pairs, for short distances: SOFT at the start,
   FIRM at the end. For a long distance the start is a thousandth of it; if gaps close slowly, stiffness grows
   up to HARDEST. */
static const double LONG_WAY = 1000, SOFT = 3, FIRM = 300, FIRM_LINE = 30, HARDEST = 1e4;

typedef struct descent {
    rod_work *w;
    double t, *load;                         /* of dead loads: their potential is linear in the positions */
    double *pos, *rot, *grad, *step, *start; /* start: initial positions */
    int *number, n;                          /* numbers of free dofs, or -1 */
    double *wound, writhe;                   /* positions for which the writhe is known */
    double energy, shift;
    double *before, *after; /* forces before and after an increment */
    bool follow;            /* supports move, and everything else only by them */
    double reach;           /* a state farther than this from the start was reached by a snap */
} descent;

static double descent_energy(descent *d)
{
    rod_work *w = d->w;
    double e[4], sum = rod_elastic(w, e) + contacts_energy(w);
    for (int i = 0; i < w->N; i++)
        sum += dot3(d->load + 6 * i, w->state.pos + 3 * i);
    return sum;
}

/* An entry of a symmetric matrix together with its mirror entry: the lower one is stored. */
static void put_both(descent *d, rod_sparse *S, double *b, int i, int j, double x)
{
    int at = d->number[i], by = d->number[j];
    if (at >= 0 && by >= 0)
        sparse_add(d->w->tmp, S, at > by ? at : by, at > by ? by : at,
                   x * rod_unit(d->w, i) * rod_unit(d->w, j));
    else if (at >= 0)
        b[at] -= x * rod_unit(d->w, i) * d->step[j];
    else if (by >= 0)
        b[by] -= x * rod_unit(d->w, j) * d->step[i];
}

/* The symmetric part of the tangent is the second derivative along increments. Right-hand side: the residual,
   and the effect of moving supports. */
static void descent_assemble(descent *d, rod_sparse *S, double *b)
{
    rod_work *w = d->w;
    rod_outside out = rod_outside_at(w, d->t);
    rod_sparse C = { .n = w->ndof };
    bool lined = contacts_lined(w);
    memset(d->grad, 0, (size_t)w->ndof * sizeof *d->grad);
    contacts_put(w, d->grad, &C);
    for (int r = 0; r < w->rp->nrod; r++)
        for (int e = 0; e < w->mesh[r].ne; e++) {
            double K[ROD_DOFS * ROD_DOFS], f[ROD_DOFS] = { 0 };
            int d0 = 6 * (w->mesh[r].first + 3 * e);
            rod_element_loaded(w, &w->mesh[r], e, &out,
                               lined ? w->given + 6 * (w->mesh[r].first + 3 * e) : NULL, f, K);
            for (int i = 0; i < ROD_DOFS; i++) {
                d->grad[d0 + i] += f[i];
                for (int j = 0; j <= i; j++)
                    put_both(d, S, b, d0 + i, d0 + j, (K[i * ROD_DOFS + j] + K[j * ROD_DOFS + i]) / 2);
            }
        }
    for (int k = 0; k < C.nz; k++) /* each is half of its contribution together with its mirror entry */
        put_both(d, S, b, C.i[k], C.j[k], C.i[k] == C.j[k] ? C.x[k] : C.x[k] / 2);
    for (int i = 0; i < w->ndof; i++)
        if (d->number[i] >= 0 && !d->follow)
            b[d->number[i]] -= d->grad[i] * rod_unit(w, i);
}

/* The least effective shift, per length. */
static double shift_unit(const rod_work *w)
{
    double L = rod_length(w);
    return w->scale / (L * L);
}

/* The increment, with the increments of supports given in `step`; the matrix is shifted until it is positive
   definite. */
static bool descent_direction(descent *d)
{
    enum { TRIES = 16 };
    rod_work *w = d->w;
    bool ok = false;
    for (int k = 0; k < TRIES && !ok; k++) {
        arena_pos mark = arena_mark(w->tmp);
        rod_sparse S = { .n = d->n };
        double *b = arena_array(w->tmp, double, d->n);
        w->shift = d->shift;
        descent_assemble(d, &S, b);
        w->shift = 0;
        rod_columns A = rod_columns_of(w->tmp, &S);
        ok = rod_solve_positive(d->n, &A, b);
        for (int i = 0; ok && i < w->ndof; i++)
            if (d->number[i] >= 0)
                d->step[i] = b[d->number[i]] * rod_unit(w, i);
        arena_release(w->tmp, mark);
        if (!ok)
            d->shift = fmax(shift_unit(w), 8 * d->shift);
    }
    return ok;
}

/* The largest distance of nodes from these positions. */
static double farthest(const rod_work *w, const double *pos)
{
    double far = 0;
    for (int i = 0; i < w->N; i++) {
        const double *x = w->state.pos + 3 * i, *y = pos + 3 * i;
        far = fmax(far, norm3((double[3]){ x[0] - y[0], x[1] - y[1], x[2] - y[2] }));
    }
    return far;
}

/* The fraction of the increment that rotates no node far, and moves none by more than a fraction of the least
   radius relative to nodes that it may touch. */
static double descent_part(const descent *d, double *size)
{
    rod_work *w = d->w;
    double most = 0, turn;
    *size = rod_size(w, d->step, &turn);
    for (int i = 0; i < w->N; i++)
        most = fmax(most, norm3(d->step + 6 * i));
    double part = fmin(1, 0.5 / turn), little = 0.4 * rod_least_radius(w) / most;
    if (little >= part)
        return part;
    memcpy(w->dx, d->step, (size_t)w->ndof * sizeof *w->dx);
    return fmin(part, fmax(little, contacts_room(w)));
}

/* If a rod passed through itself, its writhe changed by two. On a long way this is checked after each half
   radius: nodes may be so far apart that their pairs do not detect it. */
static bool descent_crossed(descent *d)
{
    rod_work *w = d->w;
    if (!w->start || farthest(w, d->wound) < 0.5 * rod_least_radius(w))
        return false;
    double now = rod_writhes(w, w->state.pos);
    if (fabs(now - d->writhe) > 1)
        return true;
    d->writhe = now;
    memcpy(d->wound, w->state.pos, (size_t)(3 * w->N) * sizeof *d->wound);
    return false;
}

static void descent_go(descent *d, double part)
{
    rod_work *w = d->w;
    state_copy(w, w->state.pos, w->state.rot, d->pos, d->rot);
    /* closest points start from those before the search, not from those of a longer trial */
    contacts_back_tried(w);
    rod_update(w, d->step, part);
    contacts_follow(w);
}

/* Shortens the increment until the potential decreases; returns how often, or -1: it does not decrease. Where
   a pair begins to touch, the slope of the potential has a corner that its second derivative does not
   contain. */
static int descent_search(descent *d, double part, double slope)
{
    enum { CUTS = 8 };
    double tiny = ROUND_500 * (fabs(d->energy) + fabs(slope));
    for (int k = 0; k < CUTS; k++, part /= 2) {
        descent_go(d, part);
        double e = descent_energy(d);
        if (normals_kept(d->w) && e <= d->energy + ARMIJO * part * slope + tiny && !descent_crossed(d)) {
            d->energy = e;
            normals_here(d->w);
            return k;
        }
    }
    descent_go(d, 0);
    return -1;
}

/* Forces that rotate with the sections are those that an increment predicts linearly: in intermediate states,
   small rotations of stiff rods cause large forces that mean nothing for the next direction. Only for rods
   along each other; for other rods, different states would be found, beyond a snap. */
static void forces_both(descent *d)
{
    rod_work *w = d->w;
    forces_follow(w, d->step);
    memcpy(d->after, w->given, (size_t)(6 * w->N) * sizeof *d->after);
    forces_follow(w, NULL);
    memcpy(d->before, w->given, (size_t)(6 * w->N) * sizeof *d->before);
}

static void forces_part(descent *d, double part)
{
    for (int i = 0; i < 6 * d->w->N; i++)
        d->w->given[i] = d->before[i] + part * (d->after[i] - d->before[i]);
}

/* One increment; *size: relative to the length and in angles, as it would be without a large shift. If the
   potential differs from its quadratic model, the shift is increased: the increment becomes shorter, and
   closer to the steepest descent. */
static bool descent_step(descent *d, double *size)
{
    enum { TRIES = 12 };
    rod_work *w = d->w;
    state_copy(w, d->pos, d->rot, w->state.pos, w->state.rot);
    contacts_keep_tried(w);
    for (int k = 0; k < TRIES; k++) {
        double slope = 0;
        memset(d->step, 0, (size_t)w->ndof * sizeof *d->step);
        w->iterations++;
        if (!descent_direction(d))
            return false;
        for (int i = 0; i < w->ndof; i++)
            slope += d->grad[i] * d->step[i];
        double now, part = descent_part(d, &now);
        forces_both(d);
        if (k == 0)
            *size = now * (1 + d->shift / (SHIFT_STRONG * shift_unit(w)));
        int cuts = slope < 0 ? descent_search(d, part, slope) : slope == 0 ? 0 : -1;
        if (cuts >= 0) {
            forces_part(d, ldexp(part, -cuts));
            d->shift = cuts > 3                   ? fmax(shift_unit(w), 4 * d->shift)
                       : d->shift > shift_unit(w) ? d->shift / 4
                                                  : 0;
            return true;
        }
        d->shift = fmax(10 * shift_unit(w), 10 * d->shift);
    }
    return false;
}

static double descent_firm(const rod_work *w)
{
    return contacts_lined(w) ? FIRM_LINE : FIRM;
}

/* Adds pairs that came near on a long way. Springs become stiffer if rods overlap deeply, and softer again if
   less stiffness is enough. */
static void descent_look(descent *d, double *press, double least)
{
    rod_work *w = d->w;
    const double firm = descent_firm(w);
    bool more = contacts_look(w);
    double sunk = *press < firm || *press > least ? contacts_sunk(w) : 0;
    bool firmer = sunk > DESCENT_SUNK && *press < firm, softer = sunk<DESCENT_LOOSE && * press> least;
    if (firmer || softer) {
        *press *= firmer ? 10 : 0.1;
        contacts_press(w, *press);
    } else if (!more)
        return;
    normals_here(w);
    d->energy = descent_energy(d);
}

static bool descent_least(descent *d, double enough, int most, double *press, double least)
{
    double size = INFINITY;
    normals_here(d->w);
    d->energy = descent_energy(d);
    for (int k = 0; k < most && !rod_interrupted(d->w); k++) {
        descent_look(d, press, least);
        if (!descent_step(d, &size))
            return size < 1e3 * enough;
        if (!d->w->start && farthest(d->w, d->start) > d->reach)
            return false;
        if (size < enough)
            return true;
    }
    return false;
}

/* Moves supports to their goals; the rest follows linearly. */
static bool descent_lead(descent *d)
{
    enum { PIECES = 200 };
    rod_work *w = d->w;
    for (int k = 0; k < PIECES && !rod_interrupted(w); k++) {
        double far = 0, far_held = 0, size, part;
        memset(w->dx, 0, (size_t)w->ndof * sizeof *w->dx);
        holds_put(w);
        memset(d->step, 0, (size_t)w->ndof * sizeof *d->step);
        for (int i = 0; i < w->ndof; i++)
            if (w->ends.held[i]) {
                d->step[i] = w->dx[i];
                far = fmax(far, fabs(w->dx[i]) / rod_unit(w, i));
                if (i % 6 < 3)
                    far_held = fmax(far_held, fabs(w->dx[i]));
            }
        if (k == 0)
            d->reach = fmax(2 * rod_least_radius(w), DESCENT_REACH * rod_length(w)) + 3 * far_held;
        if (far < ROUND_50)
            return true;
        d->follow = w->start;
        bool ok = descent_direction(d);
        d->follow = false;
        if (!ok)
            return false;
        part = descent_part(d, &size);
        state_copy(w, d->pos, d->rot, w->state.pos, w->state.rot);
        normals_here(w);
        contacts_keep_tried(w);
        descent_go(d, part);
        if (!normals_kept(w) || descent_crossed(d))
            return false;
    }
    return false;
}

/* ---- bounds of friction from round to round ---- */
/* Bounds b of friction lead to normal forces, which give other bounds g(b); a solution has b = g(b). If
   forces of neighbours affect each other, simple iteration converges slowly, or oscillates. So g is corrected
   with its slope, estimated from the last rounds (Anderson acceleration): the combination of their
   differences that removes most of g - b. */
enum { MIXED = 5 };
typedef struct mixer {
    int n, kept;    /* number of pairs, and of stored rounds */
    uint64_t pairs; /* hash of the pairs; other pairs start anew */
    double *used, *f[MIXED], *g[MIXED];
} mixer;

/* The bound of a pair, or, with numbers beyond all pairs, of a hat. */
static double *bound_of(const rod_contacts *k, int i)
{
    size_t at = (size_t)i;
    return at < k->list.n ? &k->list.at[at].bound : &k->line.at[at - k->list.n].bound;
}

static int bounds_number(const rod_contacts *k)
{
    return (int)(k->list.n + k->line.n);
}

static uint64_t pairs_now(const rod_contacts *k)
{
    uint64_t h = hash64(k->list.n, k->line.n);
    for (size_t i = 0; i < k->list.n; i++)
        h = hash64(hash64(h, (uint64_t)k->list.at[i].pair), (uint64_t)k->list.at[i].node);
    return h;
}

/* Stores the bounds with which the round was solved. */
static void mixer_use(mixer *m, rod_work *w)
{
    const rod_contacts *k = w->contact;
    uint64_t pairs = pairs_now(k);
    if (pairs != m->pairs || m->n != bounds_number(k)) {
        m->n = bounds_number(k);
        m->kept = 0;
        m->pairs = pairs;
        m->used = arena_array(w->tmp, double, m->n);
        for (int i = 0; i < MIXED; i++) {
            m->f[i] = arena_array(w->tmp, double, m->n);
            m->g[i] = arena_array(w->tmp, double, m->n);
        }
    }
    for (int i = 0; i < m->n; i++)
        m->used[i] = *bound_of(k, i);
}

/* The difference of two rounds, orthogonal to those before; false: nothing remains. */
static bool difference(const mixer *m, int i, double *const *q, double *const *p, int known, double *dq,
                       double *dp)
{
    double size = 0, left = 0;
    for (int k = 0; k < m->n; k++) {
        dq[k] = m->f[i][k] - m->f[i + 1][k];
        dp[k] = m->g[i][k] - m->g[i + 1][k];
    }
    size = vec_dot(dq, dq, m->n);
    for (int j = 0; j < known; j++) {
        double c = vec_dot(q[j], dq, m->n);
        vec_axpy(dq, -c, q[j], m->n);
        vec_axpy(dp, -c, p[j], m->n);
    }
    left = sqrt(vec_dot(dq, dq, m->n));
    for (int k = 0; left > 0 && k < m->n; k++) {
        dq[k] /= left;
        dp[k] /= left;
    }
    return left > DIRECTION_NEW * sqrt(size) && left > 0;
}

/* Computes the bounds of the next round. */
static void mixer_next(mixer *m, rod_work *w)
{
    rod_contacts *k = w->contact;
    arena_pos mark = arena_mark(w->tmp);
    double *q[MIXED], *p[MIXED], *f = m->f[MIXED - 1], *g = m->g[MIXED - 1];
    int known = 0;
    memmove(m->f + 1, m->f, (MIXED - 1) * sizeof *m->f);
    memmove(m->g + 1, m->g, (MIXED - 1) * sizeof *m->g);
    m->f[0] = f;
    m->g[0] = g;
    for (int i = 0; i < m->n; i++) {
        g[i] = *bound_of(k, i);
        f[i] = g[i] - m->used[i];
    }
    m->kept += m->kept < MIXED;
    double *left = arena_array(w->tmp, double, m->n), *next = arena_array(w->tmp, double, m->n);
    vec_copy(left, f, m->n);
    vec_copy(next, g, m->n);
    for (int i = 0; i + 1 < m->kept; i++) {
        q[known] = arena_array(w->tmp, double, m->n);
        p[known] = arena_array(w->tmp, double, m->n);
        if (!difference(m, i, q, p, known, q[known], p[known]))
            continue;
        double c = vec_dot(q[known], left, m->n);
        vec_axpy(left, -c, q[known], m->n);
        vec_axpy(next, -c, p[known], m->n);
        known++;
    }
    for (int i = 0; i < m->n; i++)
        if (g[i] > 0 && m->used[i] > 0)
            *bound_of(k, i) = fmin(fmax(next[i], 0.2 * g[i]), 5 * g[i]);
    arena_release(w->tmp, mark);
}

/* ---- rounds ---- */
static descent descent_new(rod_work *w, double t)
{
    descent d = { .w = w,
                  .t = t,
                  .load = arena_array(w->tmp, double, w->ndof),
                  .pos = arena_array(w->tmp, double, 3 * w->N),
                  .rot = arena_array(w->tmp, double, 4 * w->N),
                  .grad = arena_array(w->tmp, double, w->ndof),
                  .step = arena_array(w->tmp, double, w->ndof),
                  .start = arena_array(w->tmp, double, 3 * w->N),
                  .before = arena_array(w->tmp, double, 6 * w->N),
                  .after = arena_array(w->tmp, double, 6 * w->N),
                  .wound = arena_array(w->tmp, double, 3 * w->N),
                  .number = arena_array(w->tmp, int, w->ndof) };
    rod_loads(w, t, d.load);
    memcpy(d.start, w->state.pos, (size_t)(3 * w->N) * sizeof *d.start);
    memcpy(d.wound, w->state.pos, (size_t)(3 * w->N) * sizeof *d.wound);
    d.writhe = w->start ? rod_writhes(w, w->state.pos) : 0;
    for (int i = 0; i < w->ndof; i++)
        d.number[i] = w->ends.held[i] ? -1 : d.n++;
    return d;
}

/* Do loads and supports have a potential? Moments and follower forces have none, nor has a held roll if its
   axis is free. */
bool rod_has_potential(const rod_work *w)
{
    for (int i = 0; i < w->ends.nhold; i++) {
        const uint8_t *held = w->ends.held + 6 * w->ends.hold[i].node;
        if (w->ends.hold[i].load->what == LOAD_ROLL && !(held[3] && held[4]))
            return false;
    }
    return !w->lasting && !w->motion && !w->ro->penalty;
}

/* What a descent changes in the contacts. */
typedef struct springs {
    double *stiff, grip;
} springs;

static springs springs_keep(rod_work *w)
{
    rod_contacts *k = w->contact;
    springs s = { arena_array(w->tmp, double, w->rp->npair), k->grip };
    memcpy(s.stiff, k->k, (size_t)w->rp->npair * sizeof *s.stiff);
    return s;
}

static void springs_back(rod_work *w, const springs *s)
{
    rod_contacts *k = w->contact;
    k->lagged = false;
    k->grip = s->grip;
    memcpy(k->k, s->stiff, (size_t)w->rp->npair * sizeof *s->stiff);
}

/* Newton's method for the law itself, from the result of the rounds; a result far away does not count. */
static bool descent_polish(descent *d)
{
    rod_work *w = d->w;
    state_copy(w, d->pos, d->rot, w->state.pos, w->state.rot);
    contacts_keep_flow(w);
    w->brief = true;
    bool ok = rod_close_gaps(w, d->t) && farthest(w, d->pos) < 0.2 * rod_least_radius(w);
    w->brief = false;
    if (ok)
        return true;
    state_copy(w, w->state.pos, w->state.rot, d->pos, d->rot);
    contacts_back_flow(w);
    contacts_follow(w);
    return false;
}

/* Initial stiffness for short ways: rods sink into springs by a fraction of the radius, for any mesh. With
   stiff springs a descent moves slowly along a valley. */
static double descent_soft(const rod_work *w)
{
    double soft = SOFT;
    for (int i = 0; i < w->rp->npair; i++)
        soft = fmin(soft, contacts_yield(w, i));
    return soft;
}

/* Replaces the springs of Newton's method by those of a descent: softer, and softer for slip than for gaps.
 */
static void descent_springs(rod_work *w, double press)
{
    w->contact->grip = 0.1;
    contacts_press(w, press);
}

/* Size of increments at which a round ends, relative to the length: the remaining change of spring forces is
   a fraction of the change of forces in the last round. */
static double descent_enough(const rod_work *w, double change)
{
    const rod_contacts *k = w->contact;
    double give = 0;
    for (size_t i = 0; i < k->list.n; i++)
        if (!k->list.at[i].hats)
            give = fmax(give, k->list.at[i].lambda / k->k[k->list.at[i].pair]);
    for (size_t i = 0; i < k->line.n; i++)
        give = fmax(give, k->line.at[i].lambda / k->k[k->line.at[i].pair]);
    return fmin(DESCENT_COARSE, fmax(ROD_END_STIFF, DESCENT_PART * fmin(1, change) * give / rod_length(w)));
}

/* The rounds converge linearly; near the solution, Newton's method for the law takes over. parted: from a
   state in which lines overlap to one in which they do not. If rods cross, that state may be several radii
   away, because they rotate about each other; softer springs would push them apart first. */
bool rod_descend(rod_work *w, double t, bool parted)
{
    enum { ROUNDS = 200, INCREMENTS = 300, LONG = 1000 };
    const bool turns = parted && w->contact && contacts_fine(w) && !contacts_lined(w);
    const double firm = descent_firm(w), soft = turns      ? 10 * SOFT
                                                : w->start ? SOFT / LONG_WAY
                                                           : descent_soft(w);
    if (!w->contact || w->ties || !rod_has_potential(w))
        return false;
    arena_pos mark = arena_mark(w->tmp);
    double press = soft, change = INFINITY, polish = contacts_lined(w) ? 0.02 : 0.05, open = INFINITY;
    descent d = descent_new(w, t);
    springs kept = springs_keep(w);
    mixer mix = { 0 };
    contacts_find(w);
    descent_springs(w, press);
    contacts_lag(w, true);
    forces_follow(w, NULL);
    bool ok = descent_lead(&d), done = false;
    d.reach *= turns ? 4 : 1;
    d.shift = 0;
    for (int round = 0; round < ROUNDS && ok && !done; round++) {
        ok = descent_least(&d, descent_enough(w, change), w->start && round == 0 ? LONG : INCREMENTS, &press,
                           round == 0 ? soft : INFINITY);
        mixer_use(&mix, w);
        double left = contacts_open(w);
        change = contacts_round(w);
        bool slow = round > 0 && left > DESCENT_SLOW * open && !rod_gaps_closed(w);
        open = left;
        if (press < firm || (slow && press < HARDEST * firm)) {
            press *= 10;
            contacts_press(w, press);
            contacts_find(w);
            continue;
        }
        mixer_next(&mix, w);
        contacts_find(w);
        /* lines that overlap between hats or pairs are held apart while multipliers converge */
        if (!w->start && contacts_lined(w) && left < DESCENT_SAG * rod_least_radius(w) &&
            !contacts_part(w, w->ro->tolerance)) {
            contacts_follow(w);
            continue;
        }
        done = ok && change < DESCENT_END && rod_gaps_closed(w);
        if (done || change > polish)
            continue;
        springs_back(w, &kept);
        done = descent_polish(&d);
        descent_springs(w, press);
        w->contact->lagged = true;
        polish = change / 10;
    }
    springs_back(w, &kept);
    arena_release(w->tmp, mark);
    contacts_project(w, false);
    if (done)
        contacts_report_separation(w, true);
    return done;
}
