/* sweep_brake: friction without slip acts against the whole velocity in the metric of the masses, so all such
   contacts together act as one brake. Lengths and the unit normals n_i = M^-1 H_i^T/|H_i| are those of this
   metric.  The slip of contact i is x - n_i (n_i . x) and its bound is b_i = mu_i r_i |H_i|, hence

     x + sum_i s_i (x - n_i (n_i . x)) = y,   y = w + M^-1 J^T r,   s_i = b_i/|x - n_i (n_i . x)|

   with w the rates without reactions. If no contact rebounds, n_i . x = 0 for all that push: then x has the
   direction of y, |x| = max(0, |y| - sum b_i), and the laws of contacts hold for y as they do for x, with the
   rates of surfaces multiplied by the stretch |y|/|x|.

   If some rebound, the fastest of them, m, is treated separately, because friction may stop all motion but
   its rebound: x = z + nu n_m, and y has another stretch along n_m than along z. The effect of the other
   rebounds along their normals is added to y, and the problem is solved again until nothing changes.

   In a step whose forces depend on the state, impulses act by its matrix D instead of the masses M:
   D x = D w + J^T r - M (y - x).  With x = y/a this is a problem for y with the matrix M + (D - M)/a. */
#include <math.h>
#include <string.h>
#include "sweep.h"
#include "base/tolerances.h"

enum { NONE = -1, ROUNDS = 200 };

/* a larger stretch counts as a standstill */
static const double LARGEST = 1 / ROUND_ROOT;

/* A contact of the brake whose bound is not 0, by its reaction or by Tresca's law. */
typedef struct rub {
    contact_state *k;
    int act;        /* its number in the current problem */
    double bound;   /* b_i */
    double rebound; /* n_i . x */
} rub;

/* Rates of the problem are those of the motion times these factors. */
typedef struct stretch {
    double slip, rebound; /* along z, and along n_m */
} stretch;

typedef struct brake_problem {
    sweep *w;
    bool mass;
    double *x;         /* in: w; out: y, then x */
    const double *off; /* offsets of the original problem */
    double *added;     /* n: what is added to y */
    double *slip;      /* slip of each contact, if a coefficient depends on it */
    bool of_speed;     /* some do */
    rub *at;
    int n, fastest;
    stretch by;
    const double *D; /* of the step; NULL: the masses */
} brake_problem;

void sweep_brake_new(sweep *w)
{
    braking *b = &w->hand.brake;
    for (size_t i = 0; i < w->p->ncontact; i++)
        b->on |= w->s->family[i].brakes;
    b->scale = 1;
    if (!b->on)
        return;
    b->free = arena_array(w->a, double, w->n);
    b->force = arena_array(w->a, double, w->n);
    b->room = arena_array(w->a, double, w->n);
    if (w->matrix.D) {
        b->D = arena_array(w->a, double, w->s->step_shape.count);
        factor_shape(&b->df, w->a, &w->s->step_shape);
    }
    for (int mass = 0; mass < 2; mass++)
        b->lost[mass] = arena_array(w->a, double, w->n);
}

/* The masses in whose metric friction acts: those of which s->minv has the factors. */
static const double *masses(const sweep *w, bool mass)
{
    return mass || w->s->mass_constant ? w->M : w->M1;
}

double sweep_brake_speed(const sweep *w, const double *v)
{
    return sqrt(mass_norm2(w->s, w->M, v));
}

double sweep_brake_rest(const sweep *w)
{
    return RATE_IS_ZERO * sweep_brake_speed(w, w->size.vmax);
}

double sweep_brake_slip(const contact *c, const double *v, double speed)
{
    double normal = contact_rate(c, c->H, v) / c->metric, square = speed * speed - normal * normal;
    return square > ROUND_10 * speed * speed ? sqrt(square) : 0;
}

double sweep_brake_power(const sweep *w, bool mass, const double *rate)
{
    if (!w->hand.brake.acts[mass])
        return 0;
    mass_times(w->s, masses(w, mass), w->hand.brake.lost[mass], w->hand.brake.force);
    return vec_dot(w->hand.brake.force, rate, w->n);
}

/* ---- the current problem ---- */
static double size_of(const brake_problem *b, const double *x)
{
    return sqrt(mass_norm2(b->w->s, masses(b->w, b->mass), x));
}

/* |H_i| n_i */
static const column *push_of(const brake_problem *b, contact_state *k)
{
    sweep_columns_put(b->w, k, true);
    return &k->Gm;
}

/* to += by n_i */
static void add_normal(const brake_problem *b, contact_state *k, double by, double *to)
{
    const column *G = push_of(b, k);
    for (int j = 0; j < G->n; j++)
        to[G->local ? k->c->dof[j] : j] += by / k->c->metric * G->a[j];
}

static double bound_of(brake_problem *b, int act)
{
    const contact_state *k = b->w->hand.act[act];
    double mu, radius;
    sweep_law(b->w, act, b->slip[act], &mu, &radius);
    return mu * fabs(b->w->hand.rr[k->row]) + radius;
}

/* n_i . x: required by the law of the gap, or as found if the contact does not push */
static double rebound_of(const brake_problem *b, const contact_state *k, const contact_state *was)
{
    double rate = -b->off[k->row];
    if (b->w->hand.rr[k->row] == 0)
        rate = contact_rate(k->c, k->c->H, b->x) / (k == was ? b->by.rebound : b->by.slip);
    return rate == 0 || fabs(rate) > b->w->contacts.table.tol_u[k->at] ? rate / k->c->metric : 0;
}

/* Lists the contacts with friction, and finds the one that rebounds fastest. */
static void rubs_find(brake_problem *b)
{
    sweep *w = b->w;
    double most = 0;
    const contact_state *was = b->fastest == NONE ? NULL : b->at[b->fastest].k;
    b->n = 0;
    b->fastest = NONE;
    w->hand.brake.scale = 1; /* slips are those of the motion */
    for (int i = 0; i < w->hand.nact; i++) {
        contact_state *k = w->hand.act[i];
        k->rubs[b->mass] = 0;
        double bound = k->c->fam->brakes ? bound_of(b, i) : 0;
        if (!(bound > 0))
            continue;
        rub *r = &b->at[b->n];
        *r = (rub){ k, i, bound, rebound_of(b, k, was) };
        if (fabs(r->rebound) > most) {
            most = fabs(r->rebound);
            b->fastest = b->n;
        }
        b->n++;
    }
}

/* Does the solution obey all laws for any stretch? This is so if no contact requires a nonzero rate, except
   gaps that stay open. */
static bool any_stretch(const brake_problem *b)
{
    const problem_at_hand *o = &b->w->hand;
    if (b->fastest != NONE)
        return false;
    for (int i = 0; i < o->nact; i++) {
        const cone *c = &o->cone[i];
        if (c->kind == CONE_UNILATERAL && o->rr[c->row] == 0 && b->off[c->row] >= 0 && c->radius == 0)
            continue;
        for (int j = 0; j < cone_rows(c); j++)
            if (b->off[c->row + j] != 0 || c->of_speed)
                return false;
    }
    return true;
}

/* The required rates of contacts, stretched. */
static void offsets_stretched(const brake_problem *b)
{
    sweep *w = b->w;
    const rub *m = b->fastest == NONE ? NULL : &b->at[b->fastest];
    for (int i = 0; i < w->hand.pr.m; i++)
        w->hand.off[i] = b->by.slip * b->off[i];
    w->hand.brake.scale = b->by.slip;
    if (!m)
        return;
    const column *G = push_of(b, m->k);
    const double *push = sweep_column_spread(w, m->k, G, 0);
    double by = (b->by.slip - b->by.rebound) * m->rebound / m->k->c->metric;
    for (int i = 0; i < w->hand.nact; i++) {
        const contact_state *k = w->hand.act[i];
        for (int j = 0; j < rows_of(k); j++)
            w->hand.off[k->row + j] += by * contact_rate(k->c, row_of(k, k->c->H, k->c->S, j), push);
    }
    w->hand.off[m->k->row] = b->by.rebound * b->off[m->k->row];
    sweep_column_done(w, m->k, G);
}

/* s_i for |z|; not for the fastest contact */
static double share(const brake_problem *b, int i, double z)
{
    const rub *r = &b->at[i], *m = &b->at[b->fastest];
    return r->bound / sqrt(z * z + m->rebound * m->rebound - r->rebound * r->rebound);
}

/* The sum of s_i over all contacts but the fastest. */
static double shares(const brake_problem *b, double z)
{
    double sum = 0;
    for (int i = 0; b->fastest != NONE && i < b->n; i++)
        if (i != b->fastest)
            sum += share(b, i, z);
    return sum;
}

/* Stores the sizes of friction. z: remaining length; length: the length in y. */
static void rubs_known(const brake_problem *b, double z, double length, double bounds)
{
    double part = z > 0 || !(bounds > 0) ? 1 : fmin(1, length / bounds);
    for (int i = 0; i < b->n; i++)
        b->at[i].k->rubs[b->mass] = b->at[i].bound * (b->fastest == NONE || i == b->fastest ? part : 1);
}

/* Computes the motion x from y in place, and the rates lost by friction. */
static void unstretch(const brake_problem *b, double slip)
{
    sweep *w = b->w;
    double *lost = w->hand.brake.lost[b->mass], keep = 1 / slip;
    for (int i = 0; i < w->n; i++)
        lost[i] = b->added[i] - b->x[i];
    if (b->fastest != NONE) {
        const rub *m = &b->at[b->fastest];
        double along = contact_rate(m->k->c, m->k->c->H, b->x) / m->k->c->metric;
        add_normal(b, m->k, -along, b->x);
        for (int i = 0; i < w->n; i++)
            b->x[i] *= keep;
        add_normal(b, m->k, m->rebound, b->x);
    } else
        for (int i = 0; i < w->n; i++)
            b->x[i] *= keep;
    for (int i = 0; i < w->n; i++)
        lost[i] += b->x[i];
}

/* Sets `added` to the sum of s_i (n_i . x) n_i over the other rebounds; returns its change relative to y. */
static double add_others(const brake_problem *b, double z, double size)
{
    arena_pos mark = arena_mark(b->w->scratch);
    double *now = arena_array(b->w->scratch, double, b->w->n);
    for (int i = 0; i < b->n; i++)
        if (i != b->fastest && b->at[i].rebound != 0)
            add_normal(b, b->at[i].k, share(b, i, z) * b->at[i].rebound, now);
    for (int i = 0; i < b->w->n; i++) {
        double was = b->added[i];
        b->added[i] = now[i];
        now[i] -= was;
    }
    double change = size_of(b, now);
    arena_release(b->w->scratch, mark);
    return size > 0 ? change / size : 0;
}

/* Factorises M + (D - M)/a, the matrix by which impulses act. */
static bool step_matrix_stretched(brake_problem *b)
{
    sweep *w = b->w;
    braking *k = &w->hand.brake;
    const matrix_shape *shape = &w->s->step_shape;
    double part = b->by.slip < LARGEST ? 1 / b->by.slip : 0;
    bool lumped = mass_diagonal(w->s);
    const double *M = masses(w, false);
    for (int i = 0; i < w->n; i++) {
        size_t own = lumped ? matrix_at(shape, i, i) : 0;
        for (size_t at = matrix_row(shape, i), end = matrix_row(shape, i + 1); at < end; at++) {
            double m = !lumped ? M[at] : at == own ? M[i] : 0;
            k->D[at] = m + part * (b->D[at] - m);
        }
    }
    w->matrix.D = k->D;
    w->matrix.dinv = &k->df;
    w->matrix.stamp++;
    return factor_matrix(&k->df, k->D);
}

/* Sets x to y without reactions. */
static bool rates_free(brake_problem *b)
{
    sweep *w = b->w;
    braking *k = &w->hand.brake;
    if (!b->D) {
        vec_copy(b->x, k->free, w->n);
        vec_axpy(b->x, 1, b->added, w->n);
        return true;
    }
    double *along = b->x, *force = k->force, *less = k->room;
    mass_times(w->s, masses(w, false), b->added, force);
    matrix_times_add(&w->s->step_shape, b->D, k->free, force);
    if (b->fastest != NONE) { /* the rebound has its own stretch */
        const rub *m = &b->at[b->fastest];
        memset(along, 0, (size_t)w->n * sizeof *along);
        add_normal(b, m->k, (1 - b->by.rebound / b->by.slip) * m->rebound, along);
        mass_times(w->s, masses(w, false), along, less);
        vec_axpy(force, 1, less, w->n);
        matrix_times(&w->s->step_shape, b->D, along, less);
        vec_axpy(force, -1, less, w->n);
    }
    if (!step_matrix_stretched(b))
        return false;
    solve_with(&k->df, force, b->x);
    return true;
}

/* First guess of the stretch, from the last reactions: most steps resemble the previous one. */
static void stretch_guess(brake_problem *b)
{
    const sweep *w = b->w;
    double bounds = 0, speed = size_of(b, w->hand.brake.free);
    for (int i = 0; i < w->hand.nact; i++)
        if (w->hand.act[i]->c->fam->brakes)
            bounds += w->hand.act[i]->c->mu * fabs(w->hand.rr[w->hand.act[i]->row]);
    b->by.slip = bounds < speed ? fmin(speed / (speed - bounds), LARGEST) : LARGEST;
}

/* The fraction of y that friction takes is a fixed point, found by the secant through the last two rounds. */
static double part_next(double part, double found, double before, double found_before)
{
    double off = found - part, off_before = found_before - before;
    double next = part - off * (part - before) / (off - off_before);
    return next > 0 && next < 1 ? next : found;
}

/* The motion that friction leaves. */
typedef struct remainder {
    double z;      /* |z| */
    double length; /* length in y */
    double slip;   /* the stretch, length over z; infinite: a standstill */
    double bounds; /* sum of the bounds of friction along z */
    double others; /* sum of s_i over the other contacts */
} remainder_t;

/* The squared motion along normals, without the fastest rebound, as if the normals were orthogonal. */
static double along_normals(const brake_problem *b)
{
    const sweep *w = b->w;
    double sum = 0;
    for (int i = 0; i < b->n; i++)
        if (i != b->fastest)
            sum += b->at[i].rebound * b->at[i].rebound;
    for (int i = 0; i < w->hand.nact; i++) {
        contact_state *k = w->hand.act[i];
        if (k->c->fam->brakes || !k->normal || w->hand.rr[k->row] == 0 || b->off[k->row] == 0)
            continue;
        const column *G = push_of(b, k);
        sum += b->off[k->row] * b->off[k->row] /
               contact_rate(k->c, k->c->H, sweep_column_spread(b->w, k, G, 0));
        sweep_column_done(b->w, k, G);
    }
    return sum;
}

/* N: part of z along normals; T: part of y that friction may take. With the stretch a for which y was
   computed, |z|^2 = N^2 + (T/a)^2, and the law is a = 1 + bounds/|z| + others(|z|). The estimate of N only
   affects convergence: a stretch that repeats itself obeys the law. */
static void remainder_find(const brake_problem *b, remainder_t *r)
{
    enum { MOST = 500 };
    double now = r->length / b->by.slip, N2 = fmin(along_normals(b), now * now),
           T = b->by.slip * sqrt(now * now - N2), before = INFINITY;
    if (N2 == 0) {
        r->z = larger(0, T - r->bounds);
        for (int i = 0; i < MOST && fabs(r->z - before) > ROUND_2 * T; i++) {
            before = r->z;
            r->others = shares(b, r->z);
            r->z = larger(0, T - r->bounds) / (1 + r->others);
        }
        r->slip = T > 0 ? T / r->z : 1 + r->others;
        return;
    }
    r->z = now;
    for (int i = 0; i < MOST && fabs(r->z - before) > ROUND_2 * r->z; i++) {
        before = r->z;
        r->others = shares(b, r->z);
        r->slip = 1 + r->bounds / r->z + r->others;
        r->z = sqrt(N2 + T / r->slip * (T / r->slip));
    }
}

static remainder_t brake_remainder(const brake_problem *b)
{
    remainder_t r = { .length = size_of(b, b->x) };
    if (b->fastest == NONE) {
        for (int i = 0; i < b->n; i++)
            r.bounds += b->at[i].bound;
    } else {
        r.length = sweep_brake_slip(b->at[b->fastest].k->c, b->x, r.length);
        r.bounds = b->at[b->fastest].bound;
    }
    remainder_find(b, &r);
    return r;
}

/* Updates slips on which coefficients depend; returns their largest change relative to `size`. */
static double slips_follow(brake_problem *b, double z, double size)
{
    double most = 0;
    for (int i = 0; b->of_speed && i < b->n; i++) {
        const rub *r = &b->at[i];
        double slip = z;
        if (b->fastest != NONE && i != b->fastest)
            slip = sqrt(z * z + b->at[b->fastest].rebound * b->at[b->fastest].rebound -
                        r->rebound * r->rebound);
        most = larger(most, fabs(slip - b->slip[r->act]));
        b->slip[r->act] = slip;
    }
    return size > 0 ? most / size : 0;
}

/* Sets the stretches of the next round; returns the change of these and of `added`. */
static double stretch_next(brake_problem *b, const remainder_t *r, double size)
{
    stretch was = b->by;
    b->by.slip = fmin(r->slip, LARGEST);
    b->by.rebound = 1 + r->others;
    double added = b->fastest == NONE ? 0 : add_others(b, r->z, size);
    return fabs(1 / b->by.slip - 1 / was.slip) + fabs(b->by.rebound - was.rebound) / was.rebound + added;
}

/* Each round needed more friction, and friction more impulse: no impulses satisfy the laws. */
static bool endless(const brake_problem *b)
{
    sweep *w = b->w;
    if (b->fastest == NONE || (w->o->keep_going && !w->policy.trial))
        return false;
    const contact *c = b->at[b->fastest].k->c;
    w->hand.unsolved = true;
    return results_fail(
        w->r, c->fam->f->at,
        arena_printf(w->r->a,
                     "no impulses were found for '%s' at t = %s: contacts that rebound together "
                     "brake each other by friction without 'slip'; give slip = …, the relative "
                     "velocity at the contact",
                     contact_name(c, w->r->a), sweep_number(w, w->t)));
}

/* Do the gaps of contacts that push have the required rates? A very large stretch would lose them in
   rounding. */
static bool gaps_obey(const brake_problem *b)
{
    const sweep *w = b->w;
    for (int i = 0; i < w->hand.nact; i++) {
        const contact_state *k = w->hand.act[i];
        if (!k->normal || w->hand.rr[k->row] == 0)
            continue;
        double rate = contact_rate(k->c, k->c->H, b->x) + b->off[k->row],
               size = contact_terms(k->c, k->c->H, w->hand.brake.free) + fabs(b->off[k->row]);
        if (!(fabs(rate) <= ROUND_ROOT * size + w->contacts.table.tol_u[k->at]))
            return false;
    }
    return true;
}

/* Rates after a step or a shock, and accelerations at rest. */
static bool brake_rates(brake_problem *b)
{
    sweep *w = b->w;
    double enough = larger(ROUND_500, w->tol), before = 0, found_before = 0;
    if (b->D)
        stretch_guess(b);
    for (int round = 0; round < ROUNDS; round++) {
        if (!rates_free(b))
            return false;
        offsets_stretched(b);
        if (!sweep_solve_unbraked(w, b->mass, b->x))
            return false;
        rubs_find(b);
        remainder_t left = brake_remainder(b);
        double part = 1 - 1 / b->by.slip, size = size_of(b, b->x);
        bool any = !b->D && any_stretch(b);
        double change = stretch_next(b, &left, size), turned = slips_follow(b, left.z, size);
        if ((any || change <= enough) && turned <= enough) {
            rubs_known(b, left.z, left.length, left.bounds);
            unstretch(b, left.slip);
            w->hand.brake.acts[b->mass] = b->n > 0;
            return any || gaps_obey(b) || endless(b);
        }
        w->hand.pr.residual = isfinite(change) ? larger(change, turned) : INFINITY;
        if (!isfinite(change))
            break;
        double found = 1 - 1 / b->by.slip;
        if (b->D && b->fastest == NONE && !b->of_speed && round > 0 && left.z > 0)
            b->by.slip = fmin(1 / (1 - part_next(part, found, before, found_before)), LARGEST);
        before = part;
        found_before = found;
    }
    return endless(b);
}

/* Accelerations in slip: friction has the direction of the current velocity, and closed contacts have no rate
   along their normals. */
static bool brake_slips(brake_problem *b, double speed)
{
    sweep *w = b->w;
    double bounds = 0;
    if (!sweep_solve_unbraked(w, b->mass, b->x))
        return false;
    for (int i = 0; i < w->hand.nact; i++)
        b->slip[i] = speed;
    rubs_find(b);
    for (int i = 0; i < b->n; i++)
        bounds += b->at[i].bound;
    rubs_known(b, 1, 1, bounds);
    for (int i = 0; i < w->n; i++) {
        w->hand.brake.lost[b->mass][i] = -bounds * w->v[i] / speed;
        b->x[i] += w->hand.brake.lost[b->mass][i];
    }
    w->hand.brake.acts[b->mass] = b->n > 0;
    return true;
}

/* A whole step uses the rows of its start but newer masses, so lengths of rows are computed again. */
static void metric_again(sweep *w, contact_state *k)
{
    contact *c = k->c;
    double was = c->metric;
    sweep_columns_put(w, k, true);
    double hh = contact_rate(c, c->H, sweep_column_spread(w, k, &k->Gm, 0));
    sweep_column_done(w, k, &k->Gm);
    c->metric = sqrt(hh);
    if (c->fam->f->friction == FRICTION_COULOMB)
        c->mu *= c->metric / was;
}

/* Sets the current slip of each contact; false: none belongs to the brake. */
static bool brake_begins(brake_problem *b, bool rests)
{
    sweep *w = b->w;
    bool some = false;
    for (int i = 0; i < w->hand.nact; i++) {
        contact_state *k = w->hand.act[i];
        if (!k->c->fam->brakes)
            continue;
        some = true;
        if (!w->s->mass_constant)
            metric_again(w, k);
        b->of_speed |= k->c->fam->f->mu_of_speed;
        b->slip[i] = rests ? 0 : k->speed;
    }
    return some;
}

bool sweep_brake_solve(sweep *w, bool mass, double *x)
{
    bool forces = mass && w->hand.step == 1;
    step_matrices own = w->matrix;
    arena_pos mark = arena_mark(w->scratch);
    double *off = arena_array(w->scratch, double, w->hand.pr.m), speed = sweep_brake_speed(w, w->v);
    bool slips = forces && speed > sweep_brake_rest(w);
    memcpy(off, w->hand.off, (size_t)w->hand.pr.m * sizeof *off);
    vec_copy(w->hand.brake.free, x, w->n);
    brake_problem b = { .w = w,
                        .mass = mass,
                        .x = x,
                        .off = off,
                        .added = arena_array(w->scratch, double, w->n),
                        .slip = arena_array(w->scratch, double, w->hand.nact),
                        .at = arena_array(w->scratch, rub, w->hand.nact),
                        .fastest = NONE,
                        .by = { 1, 1 },
                        .D = !mass && own.dinv != &w->s->minv ? own.D : NULL };
    bool some = brake_begins(&b, forces && !slips);
    w->hand.brake.acts[mass] = false;
    bool ok = !some ? sweep_solve_unbraked(w, mass, x) : slips ? brake_slips(&b, speed) : brake_rates(&b);
    w->hand.brake.scale = 1;
    memcpy(w->hand.off, off, (size_t)w->hand.pr.m * sizeof *off);
    if (some && b.D) {
        w->matrix.D = own.D;
        w->matrix.dinv = own.dinv;
        w->matrix.stamp++;
    }
    arena_release(w->scratch, mark);
    return ok;
}

/* ---- coming to rest ---- */
double sweep_brake_along(const sweep *w, double rest)
{
    double before = sweep_brake_speed(w, w->v), after = sweep_brake_speed(w, w->v1);
    if (!w->hand.brake.acts[false] || !(before > rest))
        return NAN;
    mass_times(w->s, w->M, w->v, w->hand.brake.force);
    return after > rest ? vec_dot(w->hand.brake.force, w->v1, w->n) / before : 0;
}
