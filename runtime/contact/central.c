/* One tangential component makes Coulomb's law three products: with the slip u_t = p - m in both directions,
       r_n u_n = 0,      (bound + r_t) p = 0,      (bound - r_t) m = 0,      bound = mu r_n + radius,
   all factors >= 0. With tau instead of 0 they have a solution in the interior, for tau from large values to
   0: the central path. Interior point steps follow it as long as tau falls. Friction is not a minimisation,
   so the path may bend back: tau rises for a while, as in Lemke's method, which reaches a solution for the
   same reason. If steps become short, the path is followed by its arc length, whatever tau does: at each bend
   the determinant of Newton's matrix changes sign, which gives the direction. Near the end, Newton's steps
   for the problem itself give the remaining digits. */
#include "base/budget.h"
#include "central.h"
#include <math.h>
#include <string.h>
#include "lemke.h"
#include "newton.h"
#include "base/linalg.h"
#include "blocks.h"
#include "scaled.h"
#include "base/tolerances.h"

/* Newton's matrices; rows of a contact; stored points of the path */
enum { MOST = 1500, WIDE = 8, MARKS = 16 };
/* |log(X Y / tau)| on the path; near it; at a point from which it can be reached again */
static const double NEAR = 0.3, FAR = 0.7, CENTRED = 3.5;

/* One product: X = kappa x[n] + side x[t] + rho with side +-1, or X = x[n] with side 0; Y is a part of the
   velocity of row t or n. */
typedef struct pair {
    int n, t, side, row;
    double kappa, rho;
    int at_n, at_t; /* places of x[n] and x[t] in its row of Newton's matrix */
    /* For friction: places of x[n] and x[t] in the row of its normal reaction, or -1. */
    int top_n, top_t;
} pair;

typedef struct central {
    contact_problem *p;
    struct budget *budget; /* or NULL */
    scaled *s;
    int m, np, size; /* unknowns, products, numbers of a state */
    pair *pair;
    double *x, *X, *Y, *dx, *dX, *dY; /* a state: x, X, Y contiguous; a direction */
    double *u, *rest, *rhs, *A, *best, *tangent, *across, *keep;
    double *change, *change_kept; /* target changes of products for a direction */
    double *mark[MARKS], tau_mark[MARKS];
    int marks;
    double residual, low, last; /* smallest so far; smallest mean product; length of the last step */
    int shy;
    int sign, *seen; /* sign of the determinant at the start; temporary, for counting cycles */
    bool pivots;     /* pivots must be chosen anew: near a bend the old ones may be small */
    double damping;  /* of the step of x, relative to the largest diagonal entry of W */
    double dilates;  /* fraction of the slip that Newton's matrix adds to the normal rate */
    int *diagonal;   /* places of the diagonal of W */
    sparse_factors *factors;
    block_factors *blocks; /* if the determinant is not needed, otherwise NULL */
} central;

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

/* ---- the problem ---- */
static bool known(const cone *c)
{
    return cone_rows(c) <= WIDE && lemke_knows(c);
}

bool central_fits(const contact_problem *p)
{
    for (int c = 0; c < p->n; c++)
        if (!known(&p->cone[c]))
            return false;
    return problem_stored(p);
}

static int place(const scaled *s, int row, int col)
{
    for (int k = s->Ws[row]; k < s->Ws[row + 1]; k++)
        if (s->Wc[k] == col)
            return k;
    return -1;
}

static void pairs_of(central *w, int c)
{
    const cone *o = &w->p->cone[c];
    const scaled *s = w->s;
    int top = cone_normal(o), n = top ? s->first[c] : -1, t = s->count[c] > top ? s->first[c] + top : -1;
    if (o->kind == CONE_UNILATERAL)
        w->pair[w->np++] = (pair){ .n = n, .t = -1, .row = n, .kappa = 1 };
    double kappa = top && o->mu > 0, rho = t >= 0 ? o->radius / (s->unit * s->part[o->row + top]) : 0;
    for (int side = 1; t >= 0 && side >= -1; side -= 2)
        w->pair[w->np++] = (pair){ .n = n, .t = t, .side = side, .row = t, .kappa = kappa, .rho = rho };
}

/* A row of W contains its own contact's columns, whatever their values. */
static bool pairs_find(central *w)
{
    for (int c = 0; c < w->p->n; c++)
        pairs_of(w, c);
    for (int k = 0; k < w->np; k++) {
        pair *o = &w->pair[k];
        o->at_n = o->n >= 0 ? place(w->s, o->row, o->n) : -1;
        o->at_t = o->t >= 0 ? place(w->s, o->row, o->t) : -1;
        o->top_n = o->side && o->n >= 0 ? place(w->s, o->n, o->n) : -1;
        o->top_t = o->top_n >= 0 ? place(w->s, o->n, o->t) : -1;
        if ((o->n >= 0 && o->at_n < 0) || (o->t >= 0 && o->at_t < 0))
            return false;
    }
    for (int i = 0; i < w->m; i++) {
        w->diagonal[i] = place(w->s, i, i);
        if (w->diagonal[i] < 0)
            return false;
    }
    return true;
}

static double form(const pair *o, const double *x, double rho)
{
    return (o->n >= 0 ? o->kappa * x[o->n] : 0) + (o->t >= 0 ? o->side * x[o->t] : 0) + rho;
}

static void state_start(central *w)
{
    for (int k = 0; k < w->np; k++)
        if (w->pair[k].side == 0)
            w->x[w->pair[k].n] = 1;
    for (int k = 0; k < w->np; k++) {
        w->X[k] = form(&w->pair[k], w->x, w->pair[k].rho);
        w->Y[k] = 1;
    }
}

static central *central_new(contact_problem *p, arena *a)
{
    central *w = arena_make(a, central);
    w->budget = arena_budget(a);
    w->p = p;
    w->s = scaled_new(p, a);
    w->m = w->s->m;
    w->pair = arena_array(a, pair, 3 * (size_t)p->n);
    w->diagonal = arena_array(a, int, w->m);
    if (!pairs_find(w) || w->np == 0)
        return NULL;
    size_t m = (size_t)w->m, np = (size_t)w->np;
    w->size = (int)(m + 2 * np);
    double **states[] = { &w->x, &w->dx, &w->keep, &w->tangent, &w->across };
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        *states[i] = arena_array(a, double, w->size);
    for (int i = 0; i < MARKS; i++)
        w->mark[i] = arena_array(a, double, w->size);
    w->X = w->x + m;
    w->Y = w->X + np;
    w->dX = w->dx + m;
    w->dY = w->dX + np;
    w->u = arena_array(a, double, m);
    w->rest = arena_array(a, double, m);
    w->rhs = arena_array(a, double, m);
    w->change = arena_array(a, double, np);
    w->change_kept = arena_array(a, double, np);
    w->A = arena_array(a, double, w->s->Ws[m]);
    w->best = arena_array(a, double, p->m);
    w->seen = arena_array(a, int, m);
    w->residual = w->low = INFINITY;
    w->last = 1;
    w->factors = sparse_factors_new(a, w->m, w->s->Ws, w->s->Wc, false);
    state_start(w);
    return w;
}

/* ---- Newton's matrix and directions ---- */
/* Velocities of the state; returns their difference from the sum of their parts. */
static double look(central *w)
{
    int worst = 0;
    double e = scaled_measure(w->s, w->x, w->u, &worst);
    if (e < w->residual) {
        w->residual = w->p->residual = e;
        w->p->worst = worst;
        memcpy(w->best, w->p->r, (size_t)w->p->m * sizeof *w->best);
    }
    vec_copy(w->rest, w->u, w->m);
    for (int k = 0; k < w->np; k++)
        w->rest[w->pair[k].row] -= (w->pair[k].side < 0 ? -1 : 1) * w->Y[k];
    return e;
}

/* A = W + the derivatives of the parts: d u_row = sum of +-dY, dY = (c - Y dX)/X. */
static bool factorise(central *w)
{
    memcpy(w->A, w->s->Wx, (size_t)w->s->Ws[w->m] * sizeof *w->A);
    for (int k = 0; k < w->np; k++) {
        const pair *o = &w->pair[k];
        double f = w->Y[k] / w->X[k];
        if (o->at_n >= 0)
            w->A[o->at_n] += (o->side < 0 ? -f : f) * o->kappa;
        if (o->at_t >= 0)
            w->A[o->at_t] += f;
        if (w->dilates > 0 && o->top_t >= 0) {
            w->A[o->top_n] += w->dilates * f * o->kappa;
            w->A[o->top_t] += w->dilates * f * o->side;
        }
    }
    for (int i = 0; i < w->m && w->damping > 0; i++)
        w->A[w->diagonal[i]] += w->damping;
    w->p->iterations++;
    return w->blocks ? block_factors_put(w->blocks, w->A) : sparse_factors_put(w->factors, w->A, w->pivots);
}

static int determinant(central *w)
{
    return sparse_factors_sign(w->factors, w->seen);
}

/* The direction in which products change by w->change, and the velocities by -share of their defect. */
static void direct_by(central *w, double share)
{
    for (int i = 0; i < w->m; i++)
        w->rhs[i] = -share * w->rest[i];
    for (int k = 0; k < w->np; k++) {
        const pair *o = &w->pair[k];
        double part = w->change[k] / w->X[k];
        w->rhs[o->row] += o->side < 0 ? -part : part;
        if (w->dilates > 0 && o->top_t >= 0)
            w->rhs[o->n] += w->dilates * part;
    }
    vec_copy(w->dx, w->rhs, w->m);
    if (w->blocks)
        block_factors_solve(w->blocks, w->dx);
    else
        sparse_factors_solve_rows(w->factors, w->dx);
    for (int k = 0; k < w->np; k++) {
        w->dX[k] = form(&w->pair[k], w->dx, 0);
        w->dY[k] = (w->change[k] - w->Y[k] * w->dX[k]) / w->X[k];
    }
}

/* The direction in which products change by tau - back X Y (- dX dY of the current direction). */
static void direct(central *w, double tau, double back, double share, bool second)
{
    for (int k = 0; k < w->np; k++)
        w->change[k] = tau - back * w->X[k] * w->Y[k] - (second ? w->dX[k] * w->dY[k] : 0);
    direct_by(w, share);
}

/* ---- steps ---- */
static double reach(const central *w)
{
    double s = INFINITY;
    for (int k = 0; k < w->np; k++) {
        if (w->dX[k] < 0)
            s = fmin(s, -w->X[k] / w->dX[k]);
        if (w->dY[k] < 0)
            s = fmin(s, -w->Y[k] / w->dY[k]);
    }
    return s;
}

static double mean(const central *w, double s)
{
    double sum = 0;
    for (int k = 0; k < w->np; k++)
        sum += (w->X[k] + s * w->dX[k]) * (w->Y[k] + s * w->dY[k]);
    return sum / w->np;
}

static double off(const central *w, double tau)
{
    double lo = INFINITY, hi = 0;
    for (int k = 0; k < w->np; k++) {
        double z = w->X[k] * w->Y[k];
        lo = fmin(lo, z);
        hi = larger(hi, z);
    }
    return larger(log(hi / tau), log(tau / lo));
}

static void go(central *w, double s)
{
    vec_axpy(w->x, s, w->dx, w->size);
}

/* Products that a step of length s would leave far from tau are corrected towards it. */
static void change_back(central *w, double s, double tau)
{
    const double LEAST = 0.1;
    for (int k = 0; k < w->np; k++) {
        double z = (w->X[k] + s * w->dX[k]) * (w->Y[k] + s * w->dY[k]);
        if (z < LEAST * tau)
            w->change[k] += LEAST * tau - z;
        else if (z > tau / LEAST)
            w->change[k] += larger(tau / LEAST - z, -tau / LEAST);
    }
}

/* Longer steps with the same factors, while they become longer (Gondzio's correctors); returns the possible
   length. */
static double lengthen(central *w, double tau)
{
    enum { CORRECTORS = 4 };
    const double WORTH = 1.1, AHEAD = 0.3, ENOUGH = 0.95;
    size_t state = (size_t)w->size * sizeof *w->dx, products = (size_t)w->np * sizeof *w->change;
    double s = reach(w);
    for (int k = 0; k < CORRECTORS && s < ENOUGH; k++) {
        memcpy(w->keep, w->dx, state);
        memcpy(w->change_kept, w->change, products);
        change_back(w, fmin(1, larger(1.5 * s, s + AHEAD)), tau);
        direct_by(w, 1);
        double now = reach(w);
        if (!(now > s)) {
            memcpy(w->dx, w->keep, state);
            memcpy(w->change, w->change_kept, products);
            break;
        }
        bool worth = now > WORTH * s;
        s = now;
        if (!worth)
            break;
    }
    return s;
}

/* Mehrotra's method: first straight to 0, to see how much of a barrier is needed; then with its second-order
   terms, unless the previous step was short. */
static bool descend(central *w, double now)
{
    const double SHORT_OF = 0.9; /* fraction of the way to where a factor is 0 */
    direct(w, 0, 1, 1, false);
    double s = fmin(1, reach(w)), f = mean(w, s) / now;
    bool shy = w->last < 0.2;
    f = fmin(larger(f * f * f, shy ? 0.5 : CENTRE_LEAST), 1);
    direct(w, f * now, 1, 1, !shy);
    s = w->last = fmin(1, SHORT_OF * lengthen(w, f * now));
    if (!(s > CENTRAL_STOPS))
        return false;
    go(w, s);
    w->shy += s < 0.1;
    return true;
}

/* ---- along the path ---- */
/* d(x, X, Y)/d log tau in logarithms, scaled so that its largest component is 1, in the sense of the path;
   returns the change of log tau along it. */
static double tangent(central *w, double tau)
{
    double most = 1, on = determinant(w) == w->sign ? -1 : 1;
    direct(w, tau, 0, 0, false);
    for (int k = 0; k < w->np; k++)
        most = larger(most, larger(fabs(w->dX[k] / w->X[k]), fabs(w->dY[k] / w->Y[k])));
    on /= most;
    for (int i = 0; i < w->size; i++)
        w->tangent[i] = w->dx[i] * on;
    return on;
}

/* Component of the current direction along the tangent, both in logarithms. */
static double along(const central *w)
{
    const double *tX = w->tangent + w->m, *tY = tX + w->np;
    double s = 0;
    for (int k = 0; k < w->np; k++)
        s += tX[k] * w->dX[k] / (w->X[k] * w->X[k]) + tY[k] * w->dY[k] / (w->Y[k] * w->Y[k]);
    return s;
}

/* The way back to the path across the tangent, (d1, d) with d1 that of products tau, plus a step along the
   tangent, with one factorisation. */
static double combine(central *w, double turn, double back, double step, double tau)
{
    memcpy(w->dx, w->across, (size_t)w->size * sizeof *w->dx);
    vec_axpy(w->dx, back / turn + step, w->tangent, w->size);
    double s = fmin(1, 0.8 * reach(w));
    go(w, s);
    return tau * larger(1 + s * (back + step * turn), 0.2);
}

/* One step of length *s or less. */
static bool bend(central *w, double *tau, double *s)
{
    look(w);
    w->pivots = *s < 0.1;
    if (!factorise(w))
        return false;
    double from = *tau, turn = tangent(w, from), was = off(w, from), square = turn * turn;
    memcpy(w->dx, w->tangent, (size_t)w->size * sizeof *w->dx);
    square += along(w);
    direct(w, from, 1, 1, false);
    double back = fmax(-0.7, fmin(0.7, -along(w) * turn / square));
    memcpy(w->across, w->dx, (size_t)w->size * sizeof *w->dx);
    memcpy(w->keep, w->x, (size_t)w->size * sizeof *w->x);
    for (int tries = 0; tries < 10; tries++) {
        *tau = combine(w, turn, back, *s, from);
        double now = off(w, *tau);
        if (now < larger(FAR, 0.9 * was)) {
            *s = now < NEAR ? fmin(2 * *s, 3) : now > 0.7 * FAR ? 0.7 * *s : *s;
            return true;
        }
        memcpy(w->x, w->keep, (size_t)w->size * sizeof *w->x);
        *s /= 3;
    }
    return false;
}

/* To the middle, at the current products or somewhat larger ones. */
static bool centre(central *w, double *tau)
{
    for (int k = 0; k < 12; k++) {
        look(w);
        if (!factorise(w))
            return false;
        if (off(w, *tau) < NEAR)
            return true;
        direct(w, *tau, 1, 1, false);
        double s = fmin(1, 0.9 * reach(w));
        go(w, s);
        if (s < 0.1)
            *tau *= 1.5;
    }
    return false;
}

/* Stores a point from which the path can be reached, with a product well below that of the last one. */
static void mark_put(central *w, double tau)
{
    double rest = 0;
    if (w->marks && tau > 0.5 * w->tau_mark[w->marks - 1])
        return;
    for (int i = 0; i < w->m; i++)
        rest = larger(rest, fabs(w->rest[i]));
    if (w->marks && (off(w, tau) > CENTRED || rest > 30 * tau))
        return;
    if (w->marks == MARKS) {
        double *first = w->mark[1];
        for (int i = 1; i < MARKS - 1; i++) {
            w->mark[i] = w->mark[i + 1];
            w->tau_mark[i] = w->tau_mark[i + 1];
        }
        w->mark[--w->marks] = first;
    }
    memcpy(w->mark[w->marks], w->x, (size_t)w->size * sizeof *w->x);
    w->tau_mark[w->marks++] = tau;
}

/* From the last stored point along the path until all products are smaller than ever before; if that fails,
   from the previous stored point. */
static bool around(central *w)
{
    double until = 0.2 * w->low, tau = INFINITY;
    while (w->marks && !(tau <= until) && w->p->iterations < MOST) {
        memcpy(w->x, w->mark[--w->marks], (size_t)w->size * sizeof *w->x);
        tau = w->tau_mark[w->marks];
        double s = 1;
        if (centre(w, &tau))
            while (tau > until && s > BEND_STOPS && w->p->iterations < MOST && bend(w, &tau, &s))
                ;
    }
    w->pivots = false;
    w->shy = 0;
    w->last = 1;
    return tau <= until;
}

/* Down to a residual of `goal`. */
static bool follow(central *w, double goal)
{
    while (w->p->iterations < MOST && !budget_cuts(w->budget)) {
        if (look(w) <= goal)
            return true;
        double now = mean(w, 0);
        if (!factorise(w))
            return false;
        if (!w->sign)
            w->sign = determinant(w);
        w->low = fmin(w->low, now);
        mark_put(w, now);
        if (w->shy < 2 ? !descend(w, now) : !around(w))
            return false;
    }
    return false;
}

/* Frees the factors before anything else may run out of memory. */
static bool follow_with(central *w, double goal)
{
    bool ok = follow(w, goal);
    sparse_factors_free(w->factors);
    return ok;
}

/* ---- from a close start ---- */
/* The least value of a factor for which its product with the other one is tau. */
static double inside(double other, double tau)
{
    double off = sqrt(tau);
    return other > off ? tau / other : off;
}

/* The state at x0, moved so far into the interior that no product is below tau. */
static void state_near(central *w, const double *x0, double tau)
{
    memcpy(w->x, x0, (size_t)w->m * sizeof *w->x);
    look(w);
    for (int k = 0; k < w->np; k++) {
        const pair *o = &w->pair[k];
        if (o->side == 0)
            w->x[o->n] = larger(w->x[o->n], inside(w->u[o->row], tau));
        else if (o->side > 0) {
            double bound = (o->n >= 0 ? o->kappa * w->x[o->n] : 0) + o->rho, u = w->u[o->row],
                   low = fmin(inside(u, tau), 0.5 * bound), high = fmin(inside(-u, tau), 0.5 * bound);
            w->x[o->t] = fmin(larger(w->x[o->t], low - bound), bound - high);
        }
    }
    look(w);
    for (int k = 0; k < w->np; k++) {
        const pair *o = &w->pair[k];
        w->X[k] = form(o, w->x, o->rho);
        w->Y[k] = larger(w->u[o->row] * (o->side < 0 ? -1 : 1), tau / w->X[k]);
    }
}

/* Newton's steps for the problem itself, from the best reactions so far; true: solved. */
static bool finish(central *w, arena *scratch, double tol)
{
    contact_problem *p = w->p;
    size_t size = (size_t)p->m * sizeof *p->r;
    memcpy(p->r, w->best, size);
    if (!newton_settle(p, scratch, tol))
        return false;
    w->residual = p->residual;
    memcpy(w->best, p->r, size);
    return true;
}

/* Steps become short where the path folds: friction is not a minimisation, and Newton's matrix is singular at
   a fold. Slip that opens its contact, as in the associated law, makes it monotone: a fraction of that leads
   past most folds. The residual is always that of the true law, so later steps remove the change. W is
   singular in piles, so a little damping preserves the digits. Contacts between two states have products of
   two small factors, and the residual falls only with their root: Newton's steps give the last digits at
   once. */
static bool descend_damped(central *w, arena *scratch, double tol)
{
    enum { TRIES = 90, STALL = 30 };
    const double SHORT = 0.2, LONG = 0.6, FROM = 0.3, UP = 4, DOWN = 0.3, LEAST = 0.01;
    double best = INFINITY, close = POLISH_FROM;
    w->last = 1;
    w->damping = DAMPING;
    for (int it = 0, good = 0; it < TRIES && it - good < STALL; it++) {
        double e = look(w);
        /* a tenth of the tolerance, so that the next step starts there; less if rounding prevents that */
        if (e <= 0.1 * tol || (w->residual <= tol && e > 0.8 * best))
            return true;
        if (e < close) {
            if (finish(w, scratch, tol))
                return true;
            close = 0.1 * e;
        }
        if (e < 0.8 * best) {
            best = e;
            good = it;
        }
        if (!factorise(w) || !descend(w, mean(w, 0)))
            break;
        if (w->last < SHORT)
            w->dilates = fmin(larger(UP * w->dilates, FROM), 1);
        else if (w->last > LONG)
            w->dilates = w->dilates > LEAST ? DOWN * w->dilates : 0;
    }
    return w->residual <= tol;
}

bool damped_solve(contact_problem *p, arena *scratch, double off, double tol)
{
    if (!central_fits(p))
        return false;
    arena_pos mark = arena_mark(scratch);
    central *w = central_new(p, scratch);
    bool ok = false;
    if (w) {
        double *x0 = arena_array(scratch, double, w->m);
        scaled_unknowns(w->s, x0);
        state_near(w, x0, off * off);
        const scaled *s = w->s;
        w->blocks = block_factors_new(scratch, p->n, s->first, s->count, s->Ws, s->Wc);
        ok = w->blocks && descend_damped(w, scratch, tol);
        memcpy(p->r, w->best, (size_t)p->m * sizeof *p->r);
        p->residual = w->residual;
    }
    arena_release(scratch, mark);
    return ok;
}

bool central_solve(contact_problem *p, arena *scratch, double tol)
{
    enum { POLISH = 12 };
    if (!central_fits(p))
        return false;
    arena_pos mark = arena_mark(scratch);
    central *w = central_new(p, scratch);
    bool ok = false;
    double goal = larger(CENTRAL_GOAL, tol);
    int before = p->iterations;
    p->iterations = 0;
    for (int k = 0; w && !ok && k < POLISH && follow_with(w, goal); k++) {
        ok = w->residual <= tol || proximal_steps(p, scratch, PROXIMAL_POLISH, 2, 6, tol);
        if (ok && !(w->residual <= tol)) {
            w->residual = p->residual;
            memcpy(w->best, p->r, (size_t)p->m * sizeof *p->r);
        }
        goal = larger(0.2 * goal, tol);
    }
    if (w) {
        memcpy(p->r, w->best, (size_t)p->m * sizeof *p->r);
        p->residual = w->residual;
    }
    p->iterations += before;
    arena_release(scratch, mark);
    return ok;
}
