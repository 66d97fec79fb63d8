/* In the plane the laws of contacts are piecewise linear. With one number z for each unknown x, open contacts
   have x = 0 and velocity -z, closed ones x = z and velocity 0, and friction at its bound has x = the bound
   and velocity x - z. So the problem is G(z) = b + W x(z) - u(z) = 0, continuous, and linear as long as no
   contact changes its state. From any z the path G(z(l)) = (1 - l) G(z(0)) leads through one piece after the
   other, to l = 1 or without end; where the determinant changes its sign from one piece to the next, l
   decreases for a while, as in Lemke's method (Katzenelson 1965; Dirkse and Ferris 1995). At each corner one
   contact changes, which is a matrix of rank one: the factors of a piece are used for many pieces after it. W
   is singular in piles, so a proximal term rho (x - ref) is added, and removed by repeating with the solution
   as ref. */
#include "pieces.h"
#include <math.h>
#include <stdint.h>
#include <string.h>
#include "base/budget.h"
#include "base/linalg.h"
#include "blocks.h"
#include "scaled.h"
#include "base/tolerances.h"

enum { UPDATES = 48 }; /* corners between two factorisations */

/* A contact: places of its unknowns, or -1; its bound kappa x[n] + rho; its state. */
typedef struct corner {
    int n, t;
    double kappa, rho;
    bool hinged; /* two-sided: always closed */
    bool closed;
    int side; /* of friction: 0 sticks, +1 or -1 at that bound */
} corner;

typedef struct pieces {
    contact_problem *p;
    scaled *s;
    int m, *of; /* of: contact of each unknown */
    corner *at;
    int *Ts, *Tr; /* W by columns */
    double *Tx;
    double *z, *x, *u, *ref, *G, *d, *A, *best;
    double rho, l, turn, residual;  /* turn: +1 or -1, the sign of the change of l */
    struct budget *budget;          /* or NULL */
    int *place, *diagonal, *beside; /* of the diagonal; of the normal column in a row of friction */
    block_factors *blocks;          /* or NULL */
    sparse_factors *factors;
    bool by_blocks; /* the current factors are in `blocks` */
    int updates, crossed;
    double *change[UPDATES], over[UPDATES]; /* J^-1 times the change of a column, 1/(1 + f change) */
    int fn[UPDATES], ft[UPDATES];           /* f is 1 at one place, `share` at another, or -1 */
    double share[UPDATES];
} pieces;

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

/* ---- the problem ---- */
static void by_columns(pieces *w, arena *a)
{
    const scaled *s = w->s;
    int m = w->m, *start = arena_array(a, int, m + 2);
    w->Tr = arena_array(a, int, s->Ws[m]);
    w->Tx = arena_array(a, double, s->Ws[m]);
    for (int k = 0; k < s->Ws[m]; k++)
        start[s->Wc[k] + 2]++;
    for (int i = 2; i < m + 2; i++)
        start[i] += start[i - 1];
    for (int i = 0; i < m; i++)
        for (int k = s->Ws[i]; k < s->Ws[i + 1]; k++) {
            int to = start[s->Wc[k] + 1]++;
            w->Tr[to] = i;
            w->Tx[to] = s->Wx[k];
        }
    w->Ts = start;
}

static void corners_of(pieces *w)
{
    const scaled *s = w->s;
    for (int c = 0; c < w->p->n; c++) {
        const cone *o = &w->p->cone[c];
        corner *k = &w->at[c];
        int top = cone_normal(o);
        *k = (corner){ .n = top ? s->first[c] : -1, .t = s->count[c] > top ? s->first[c] + top : -1 };
        k->kappa = top && o->mu > 0;
        k->rho = k->t >= 0 ? o->radius / (s->unit * s->part[o->row + top]) : 0;
        k->hinged = o->kind != CONE_UNILATERAL;
        for (int i = s->first[c]; i < s->first[c] + s->count[c]; i++)
            w->of[i] = c;
    }
}

static int place_of(const scaled *s, int row, int col)
{
    for (int k = s->Ws[row]; k < s->Ws[row + 1]; k++)
        if (s->Wc[k] == col)
            return k;
    return -1;
}

static pieces *pieces_new(contact_problem *p, arena *a)
{
    pieces *w = arena_make(a, pieces);
    w->p = p;
    w->budget = arena_budget(a);
    w->s = scaled_new(p, a);
    int m = w->m = w->s->m;
    double **rows[] = { &w->z, &w->x, &w->u, &w->ref, &w->G, &w->d };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        *rows[i] = arena_array(a, double, m);
    for (int i = 0; i < UPDATES; i++)
        w->change[i] = arena_array(a, double, m);
    w->best = arena_array(a, double, p->m);
    w->A = arena_array(a, double, w->s->Ws[m]);
    w->of = arena_array(a, int, m);
    w->at = arena_array(a, corner, p->n);
    w->place = arena_array(a, int, m);
    w->diagonal = arena_array(a, int, m);
    w->beside = arena_array(a, int, m);
    by_columns(w, a);
    corners_of(w);
    for (int i = 0; i < m; i++) {
        const corner *k = &w->at[w->of[i]];
        w->diagonal[i] = place_of(w->s, i, i);
        w->beside[i] = i == k->t && k->n >= 0 ? place_of(w->s, i, k->n) : -1;
        if (w->diagonal[i] < 0 || (i == k->t && k->n >= 0 && w->beside[i] < 0))
            return w;
    }
    w->blocks = block_factors_new(a, p->n, w->s->first, w->s->count, w->s->Ws, w->s->Wc);
    w->factors = sparse_factors_new(a, m, w->s->Ws, w->s->Wc, false);
    return w;
}

/* ---- a point ---- */
static double bound(const corner *k, const double *z)
{
    return (k->closed && k->n >= 0 ? k->kappa * z[k->n] : 0) + k->rho;
}

/* Friction has no corner of its own if it has no bound. */
static bool loose(const corner *k)
{
    return k->t < 0 || (!k->closed && k->rho == 0);
}

/* x and u of z; G = b + W x + rho (x - ref) - u. */
static void evaluate(pieces *w)
{
    const scaled *s = w->s;
    for (int c = 0; c < w->p->n; c++) {
        const corner *k = &w->at[c];
        if (k->n >= 0) {
            w->x[k->n] = k->closed ? w->z[k->n] : 0;
            w->u[k->n] = k->closed ? 0 : -w->z[k->n];
        }
        if (k->t >= 0) {
            w->x[k->t] = k->side ? k->side * bound(k, w->z) : w->z[k->t];
            w->u[k->t] = w->x[k->t] - w->z[k->t];
        }
    }
    for (int i = 0; i < w->m; i++) {
        double g = s->b[i] + w->rho * (w->x[i] - w->ref[i]) - w->u[i];
        for (int k = s->Ws[i]; k < s->Ws[i + 1]; k++)
            g += s->Wx[k] * w->x[s->Wc[k]];
        w->G[i] = g;
    }
}

/* Keeps the current reactions if they are the best so far. */
static double look(pieces *w)
{
    int worst = 0;
    double e = scaled_measure(w->s, w->x, w->d, &worst);
    if (e < w->residual) {
        w->residual = e;
        w->p->worst = worst;
        memcpy(w->best, w->p->r, (size_t)w->p->m * sizeof *w->best);
    }
    return e;
}

/* z of one contact for the reactions x, and for velocities u as its law permits. */
static void start_of(pieces *w, corner *k)
{
    const double *x = w->x, *u = w->u;
    k->side = 0;
    k->closed = k->n < 0 || k->hinged || x[k->n] > larger(u[k->n], 0);
    if (k->n >= 0)
        w->z[k->n] = k->closed ? x[k->n] : -larger(u[k->n], 0);
    if (k->t < 0)
        return;
    double most = bound(k, x);
    w->z[k->t] = x[k->t];
    if (loose(k)) {
        w->z[k->t] = -u[k->t];
        k->side = u[k->t] > 0 ? -1 : 1;
    } else if (fabs(x[k->t] - u[k->t]) >= most * (1 - ON_BOUND)) {
        k->side = x[k->t] > u[k->t] ? 1 : -1;
        w->z[k->t] = k->side * (most + larger(-k->side * u[k->t], 0));
    }
}

/* off: pseudo-random distance of the start from corners, so that no two are reached at once. */
static void start_at(pieces *w, double off)
{
    uint32_t seed = 1;
    for (int c = 0; c < w->p->n; c++) {
        corner *k = &w->at[c];
        double by[2];
        start_of(w, k);
        for (int i = 0; i < 2; i++) {
            seed = seed * 1664525u + 1013904223u;
            by[i] = off * (seed >> 8) / 16777216.0;
        }
        if (k->n >= 0 && !k->hinged)
            w->z[k->n] += k->closed ? by[0] : -by[0];
        if (k->t >= 0 && k->side)
            w->z[k->t] += k->side * (by[1] + (k->closed ? by[0] : 0));
    }
}

/* ---- the matrix of a piece ---- */
static void matrix(pieces *w)
{
    const scaled *s = w->s;
    memset(w->A, 0, (size_t)s->Ws[w->m] * sizeof *w->A);
    for (int i = 0; i < w->m; i++) {
        for (int k = s->Ws[i]; k < s->Ws[i + 1]; k++)
            w->place[s->Wc[k]] = k;
        for (int k = s->Ws[i]; k < s->Ws[i + 1]; k++) {
            int j = s->Wc[k];
            const corner *o = &w->at[w->of[j]];
            double v = s->Wx[k] + (i == j ? w->rho : 0);
            if (j == o->n)
                w->A[k] += o->closed ? v : 0;
            else if (!o->side)
                w->A[k] += v;
            else if (o->closed && o->n >= 0)
                w->A[w->place[o->n]] += o->side * o->kappa * v;
        }
    }
    for (int c = 0; c < w->p->n; c++) {
        const corner *o = &w->at[c];
        if (o->n >= 0 && !o->closed)
            w->A[w->diagonal[o->n]] += 1;
        if (o->t >= 0 && o->side) {
            w->A[w->diagonal[o->t]] += 1;
            if (o->closed && o->n >= 0)
                w->A[w->beside[o->t]] -= o->side * o->kappa;
        }
    }
}

static bool factorise(pieces *w, bool by_blocks)
{
    w->updates = 0;
    w->p->iterations++;
    w->by_blocks = by_blocks;
    return by_blocks ? block_factors_put(w->blocks, w->A) : sparse_factors_put(w->factors, w->A, true);
}

/* f x of update i. */
static double times(const pieces *w, int i, const double *x)
{
    return x[w->ft[i]] + (w->fn[i] >= 0 ? w->share[i] * x[w->fn[i]] : 0);
}

static void update(const pieces *w, int i, double *x)
{
    double f = times(w, i, x) * w->over[i];
    if (f != 0)
        vec_axpy(x, -f, w->change[i], w->m);
}

static void solve(pieces *w, double *x)
{
    if (w->by_blocks)
        block_factors_solve(w->blocks, x);
    else
        sparse_factors_solve_rows(w->factors, x);
    for (int i = 0; i < w->updates; i++)
        update(w, i, x);
}

/* to += f (column j of W, with the proximal term). */
static void column_add(const pieces *w, int j, double f, double *to)
{
    for (int k = w->Ts[j]; k < w->Ts[j + 1]; k++)
        to[w->Tr[k]] += f * w->Tx[k];
    to[j] += f * w->rho;
}

/* ---- along the path ---- */
static bool direct(pieces *w, bool by_blocks)
{
    if (!factorise(w, by_blocks))
        return false;
    for (int i = 0; i < w->m; i++)
        w->d[i] = -w->G[i];
    solve(w, w->d);
    return true;
}

/* Is the direction accurate enough for the path? */
static bool exact(const pieces *w)
{
    const scaled *s = w->s;
    double most = 0, left = 0;
    for (int i = 0; i < w->m; i++) {
        double rest = w->G[i];
        for (int k = s->Ws[i]; k < s->Ws[i + 1]; k++)
            rest += w->A[k] * w->d[s->Wc[k]];
        if (!isfinite(rest))
            return false;
        left = larger(left, fabs(rest));
        most = larger(most, fabs(w->G[i]));
    }
    return left <= PIECES_LEFT * most;
}

static bool begin(pieces *w)
{
    evaluate(w);
    matrix(w);
    w->l = 0;
    return (w->blocks && direct(w, true) && exact(w)) || direct(w, false);
}

/* Distance until v, which changes by dv, reaches 0 from above; infinite if it does not. */
static double until(double v, double dv)
{
    return dv < 0 ? larger(-v / dv, 0) : INFINITY;
}

/* The next corner: its contact, whether it is that of the normal row, and its distance. If both are reached
   at once, friction comes first: a contact that opens slips. */
static int ahead(const pieces *w, double *step, bool *normal)
{
    int first = -1;
    for (int c = 0; c < w->p->n; c++) {
        const corner *k = &w->at[c];
        double friction = INFINITY, open = INFINITY, b = k->rho, db = 0;
        if (k->n >= 0) {
            double z = w->z[k->n], dz = w->turn * w->d[k->n];
            open = k->hinged ? INFINITY : k->closed ? until(z, dz) : until(-z, -dz);
            b += k->closed ? k->kappa * z : 0;
            db = k->closed ? k->kappa * dz : 0;
        }
        if (!loose(k)) {
            double z = w->z[k->t], dz = w->turn * w->d[k->t];
            friction = k->side ? until(k->side * z - b, k->side * dz - db)
                               : fmin(until(b - z, db - dz), until(b + z, db + dz));
        }
        if (fmin(friction, open) < *step) {
            *step = fmin(friction, open);
            *normal = open < friction;
            first = c;
        }
    }
    return first;
}

/* Changes the state of the contact; computes the change of the matrix. */
static bool cross(pieces *w, int c, bool normal)
{
    corner *k = &w->at[c];
    int i = w->updates, t = k->t;
    double *to = w->change[i];
    memset(to, 0, (size_t)w->m * sizeof *to);
    w->fn[i] = -1;
    if (normal) {
        double sign = k->closed ? -1 : 1;
        w->ft[i] = k->n;
        if (!k->closed && t >= 0 && k->rho == 0)
            k->side = w->z[t] > 0 ? 1 : -1;
        column_add(w, k->n, sign, to);
        to[k->n] -= sign;
        if (t >= 0 && k->side) {
            column_add(w, t, sign * k->side * k->kappa, to);
            to[t] -= sign * k->side * k->kappa;
        }
        k->closed = !k->closed;
    } else {
        int side = k->side ? k->side : w->z[t] > 0 ? 1 : -1;
        double sign = k->side ? 1 : -1;
        column_add(w, t, sign, to);
        to[t] -= sign;
        w->ft[i] = t;
        if (k->closed && k->n >= 0) {
            w->fn[i] = k->n;
            w->share[i] = -side * k->kappa;
        }
        k->side = k->side ? 0 : side;
    }
    solve(w, to);
    double den = 1 + times(w, i, to);
    if (!(fabs(den) > PIVOT_LOOSE))
        return false;
    w->over[i] = 1 / den;
    w->updates++;
    w->crossed++;
    update(w, i, w->d);
    if (den < 0)
        w->turn = -w->turn;
    return true;
}

/* Follows the path to l = 1; false: not within this number of corners, or it has no end. */
static bool walk(pieces *w, int most)
{
    w->turn = 1;
    if (!begin(w))
        return false;
    for (int k = 0; k < most && !budget_cuts(w->budget); k++) {
        double step = w->turn > 0 ? 1 - w->l : INFINITY;
        bool normal = false;
        int c = ahead(w, &step, &normal);
        if (!isfinite(step))
            return false;
        vec_axpy(w->z, w->turn * step, w->d, w->m);
        w->l += w->turn * step;
        if (c < 0) {
            evaluate(w);
            return true;
        }
        if (!cross(w, c, normal) || (w->updates == UPDATES && !begin(w)))
            return false;
    }
    return false;
}

/* One path after the other, each with the solution of the last as ref. The smaller rho, the longer the path,
   until it no longer ends: then the last one is repeated with a larger rho. */
static void walks(pieces *w, arena *scratch, int last, double tol)
{
    enum { ROUNDS = 100, FEW = 40 };
    const double UP = 10, DOWN = 0.3, MOST = 10;
    contact_problem *p = w->p;
    size_t numbers = (size_t)w->m * sizeof *w->z, corners = (size_t)p->n * sizeof *w->at;
    double *z = arena_array(scratch, double, w->m);
    corner *at = arena_array(scratch, corner, p->n);
    int most = p->n / 6 > 200 ? p->n / 6 : 200;
    for (int k = 0; k < ROUNDS && w->residual > tol && w->rho < MOST && !budget_cuts(w->budget); k++) {
        if (p->iterations > last)
            break;
        int before = w->crossed;
        memcpy(z, w->z, numbers);
        memcpy(at, w->at, corners);
        if (walk(w, most)) {
            look(w);
            w->rho *= w->crossed - before < FEW ? DOWN : 1;
            memcpy(w->ref, w->x, numbers);
        } else {
            memcpy(w->z, z, numbers);
            memcpy(w->at, at, corners);
            w->rho *= UP;
        }
    }
}

bool pieces_solve(contact_problem *p, arena *scratch, int most, double tol)
{
    arena_pos mark = arena_mark(scratch);
    pieces *w = pieces_new(p, scratch);
    int worst;
    scaled_unknowns(w->s, w->ref);
    memcpy(w->x, w->ref, (size_t)w->m * sizeof *w->x);
    w->residual = scaled_measure(w->s, w->x, w->u, &worst);
    memcpy(w->best, p->r, (size_t)p->m * sizeof *p->r);
    w->rho = PROXIMAL_USUAL;
    if (w->factors) {
        start_at(w, PIECES_OFF);
        walks(w, scratch, p->iterations + most, tol);
        sparse_factors_free(w->factors);
    }
    memcpy(p->r, w->best, (size_t)p->m * sizeof *p->r);
    p->residual = w->residual;
    arena_release(scratch, mark);
    return p->residual <= tol;
}
