/* With x = (r_n, r_t/mu) and y = (y_n, mu u_t) Coulomb's law is x, y in the cone |.t| <= .n, x.y = 0, u_n =
   y_n - |y_t|^2/y_n: |y_t| = y_n gives u_n = 0 for slip; y = 0 for stick; x = 0 for an open contact. The last
   equation is smooth inside the cone, so Newton's method follows x o y = barrier -> 0 with Nesterov-Todd
   scaling. W may be singular: the scaling is its regularisation. */
#include "base/budget.h"
#include "interior.h"
#include <math.h>
#include <string.h>
#include "base/linalg.h"
#include "blocks.h"
#include "scaled.h"
#include "base/tolerances.h"

enum { MOST = 80, STALL = 8, WIDE = 8 }; /* iterations, those without progress; rows of one cone */

typedef struct ball { /* a cone of the scaled problem */
    int at, k;        /* its unknowns; k = 0: free (bilateral) */
    double F2[WIDE * WIDE], G[WIDE * WIDE], w[WIDE], eta, lambda[WIDE];
} ball;

typedef struct interior {
    contact_problem *p;
    scaled *s;
    int m; /* unknowns */
    ball *ball;
    double *A; /* Newton's matrix, with the sparsity pattern of W */
    double *x, *y, *dx, *dy, *rc, *rhs, *u, *best;
    sparse_factors *factors;
    block_factors *blocks; /* if all contacts have few rows, otherwise NULL */
    bool by_blocks;        /* the current factors are in `blocks` */
    double last;           /* length of the last step */
} interior;

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

static double det(const double *x, int k)
{
    double t = sqrt(vec_dot(x + 1, x + 1, k - 1));
    return k == 1 ? x[0] * x[0] : (x[0] - t) * (x[0] + t);
}

/* x o y. */
static void product(const double *x, const double *y, int k, double *z)
{
    double z0 = vec_dot(x, y, k);
    for (int i = 1; i < k; i++)
        z[i] = x[0] * y[i] + y[0] * x[i];
    z[0] = z0;
}

/* z with x o z = y. */
static void quotient(const double *x, const double *y, int k, double *z)
{
    double d = det(x, k), xy = vec_dot(x + 1, y + 1, k - 1), z0 = (x[0] * y[0] - xy) / d;
    for (int i = 1; i < k; i++)
        z[i] = (y[i] - z0 * x[i]) / x[0];
    z[0] = z0;
}

/* V z or its inverse, V of the scaling point w. */
static void scale(const ball *c, const double *z, bool back, double *out)
{
    int k = c->k;
    double s = back ? -1 : 1, w1z = vec_dot(c->w + 1, z + 1, k - 1), f = back ? 1 / c->eta : c->eta;
    double z0 = z[0], t = s * z0 + w1z / (1 + c->w[0]);
    out[0] = f * (c->w[0] * z0 + s * w1z);
    for (int i = 1; i < k; i++)
        out[i] = f * (z[i] + t * c->w[i]);
}

/* Scaling point, F^2, lambda and the derivative G of u by y. */
static void scaling(ball *c, const double *x, const double *y)
{
    int k = c->k;
    double dx = det(x, k), dy = det(y, k), ax = sqrt(dx), ay = sqrt(dy), g = 0;
    g = sqrt(0.5 * (1 + vec_dot(x, y, k) / (ax * ay)));
    for (int i = 0; i < k; i++)
        c->w[i] = (y[i] / ay + (i ? -1 : 1) * x[i] / ax) / (2 * g);
    /* rounding must not leave the hyperboloid */
    c->w[0] = sqrt(1 + vec_dot(c->w + 1, c->w + 1, k - 1));
    c->eta = sqrt(ay / ax);
    scale(c, x, false, c->lambda);
    double e2 = c->eta * c->eta;
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            c->F2[i * k + j] = e2 * (2 * c->w[i] * c->w[j] + (i != j ? 0 : i ? 1 : -1));
            c->G[i * k + j] = i == j;
        }
    for (int j = 1; j < k; j++) {
        double t = y[j] / y[0];
        c->G[0] += t * t;
        c->G[j] = -2 * t;
    }
}

static double u_of(const double *y, int k, int i)
{
    return i || k == 1 ? y[i] : det(y, k) / y[0];
}

/* ---- the scaled problem ---- */
static bool known(const cone *c)
{
    if (cone_rows(c) > WIDE)
        return false;
    if (c->kind == CONE_UNILATERAL)
        return c->d == 0 || c->radius == 0;
    return c->kind == CONE_BILATERAL && (c->d == 0 || (c->mu == 0 && c->radius == 0));
}

bool interior_fits(const contact_problem *p)
{
    for (int c = 0; c < p->n; c++)
        if (!known(&p->cone[c]))
            return false;
    return problem_stored(p);
}

/* ---- Newton's steps ---- */
static bool factorise(interior *w)
{
    memcpy(w->A, w->s->Wx, (size_t)w->s->Ws[w->m] * sizeof *w->A);
    for (int c = 0; c < w->p->n; c++) {
        const ball *o = &w->ball[c];
        int k = o->k;
        for (int i = 0; i < k; i++)
            for (int j = w->s->Ws[o->at + i]; j < w->s->Ws[o->at + i + 1]; j++) {
                int col = w->s->Wc[j] - o->at;
                if (col < 0 || col >= k)
                    continue;
                for (int l = 0; l < k; l++)
                    w->A[j] += o->G[i * k + l] * o->F2[l * k + col];
            }
    }
    w->by_blocks = w->blocks && block_factors_put(w->blocks, w->A);
    return w->by_blocks || sparse_factors_put(w->factors, w->A, false);
}

/* Are factors without row exchanges accurate enough? Their residual must be small. */
static bool exact(const interior *w)
{
    const scaled *s = w->s;
    double most = 0, left = 0;
    for (int i = 0; i < w->m; i++) {
        double rest = w->rhs[i];
        for (int k = s->Ws[i]; k < s->Ws[i + 1]; k++)
            rest -= w->A[k] * w->dx[s->Wc[k]];
        if (!isfinite(rest))
            return false;
        left = larger(left, fabs(rest));
        most = larger(most, fabs(w->rhs[i]));
    }
    return left <= BLOCKS_LEFT * most;
}

/* A dx = rhs. */
static bool solve(interior *w)
{
    size_t size = (size_t)w->m * sizeof *w->dx;
    memcpy(w->dx, w->rhs, size);
    if (w->by_blocks) {
        block_factors_solve(w->blocks, w->dx);
        if (exact(w))
            return true;
        w->by_blocks = false;
        memcpy(w->dx, w->rhs, size);
        if (!sparse_factors_put(w->factors, w->A, false))
            return false;
    }
    return sparse_factors_solve_rows(w->factors, w->dx);
}

/* rc contains the target of F^2 dx + dy. */
static bool direction(interior *w)
{
    for (int c = 0; c < w->p->n; c++) {
        const ball *o = &w->ball[c];
        int k = o->k, at = o->at;
        if (!k) {
            w->rhs[at] = -w->u[at];
            continue;
        }
        for (int i = 0; i < k; i++)
            w->rhs[at + i] = vec_dot(o->G + i * k, w->rc + at, k) + u_of(w->y + at, k, i) - w->u[at + i];
    }
    if (!solve(w))
        return false;
    for (int i = 0; i < w->m; i++)
        if (!isfinite(w->dx[i]))
            return false;
    for (int c = 0; c < w->p->n; c++) {
        const ball *o = &w->ball[c];
        for (int i = 0; i < o->k; i++)
            w->dy[o->at + i] = w->rc[o->at + i] - vec_dot(o->F2 + i * o->k, w->dx + o->at, o->k);
    }
    return true;
}

/* Distance to the boundary of the cone from x along d. */
static double reach(const double *x, const double *d, int k)
{
    if (k == 1)
        return d[0] < 0 ? -x[0] / d[0] : INFINITY;
    double a = d[0] * d[0] - vec_dot(d + 1, d + 1, k - 1), b = x[0] * d[0] - vec_dot(x + 1, d + 1, k - 1),
           c = det(x, k), s = INFINITY;
    double q = b * b - a * c;
    if (q >= 0) {
        /* roots of a s^2 + 2 b s + c */
        double z = b > 0 ? -b - sqrt(q) : -b + sqrt(q), s1 = c / z, s2 = z / a;
        if (s1 > 0)
            s = s1;
        if (s2 > 0 && s2 < s)
            s = s2;
    }
    if (d[0] < 0 && -x[0] / d[0] < s)
        s = -x[0] / d[0];
    return s;
}

static double step_length(const interior *w)
{
    double s = INFINITY;
    for (int c = 0; c < w->p->n; c++) {
        const ball *o = &w->ball[c];
        if (!o->k)
            continue;
        s = fmin(s, fmin(reach(w->x + o->at, w->dx + o->at, o->k), reach(w->y + o->at, w->dy + o->at, o->k)));
    }
    return s;
}

static void complementarity(interior *w, double barrier, bool second)
{
    for (int c = 0; c < w->p->n; c++) {
        ball *o = &w->ball[c];
        int k = o->k, at = o->at;
        double s[WIDE], fx[WIDE], fy[WIDE], z[WIDE];
        if (!k)
            continue;
        product(o->lambda, o->lambda, k, s);
        if (second) {
            scale(o, w->dx + at, false, fx);
            scale(o, w->dy + at, true, fy);
            product(fx, fy, k, z);
            for (int i = 0; i < k; i++)
                s[i] += z[i];
        }
        for (int i = 0; i < k; i++)
            s[i] = (i ? 0 : barrier) - s[i];
        quotient(o->lambda, s, k, z);
        scale(o, z, false, w->rc + at);
    }
}

static double gap_mean(const interior *w, double s)
{
    double sum = 0;
    int n = 0;
    for (int c = 0; c < w->p->n; c++) {
        const ball *o = &w->ball[c];
        for (int i = o->at; i < o->at + o->k; i++)
            sum += (w->x[i] + s * w->dx[i]) * (w->y[i] + s * w->dy[i]);
        n += o->k > 0;
    }
    return n ? sum / n : 0;
}

static bool iterate(interior *w)
{
    memset(w->dx, 0, (size_t)w->m * sizeof *w->dx);
    memset(w->dy, 0, (size_t)w->m * sizeof *w->dy);
    double mean = gap_mean(w, 0);
    for (int c = 0; c < w->p->n; c++)
        if (w->ball[c].k)
            scaling(&w->ball[c], w->x + w->ball[c].at, w->y + w->ball[c].at);
    if (!factorise(w))
        return false;
    complementarity(w, 0, false);
    if (!direction(w))
        return false;
    double s = fmin(1, step_length(w)), f = gap_mean(w, s) / mean;
    f = fmin(larger(f * f * f, CENTRE_LEAST), 1);
    /* after a short step: first back to the centre */
    bool shy = w->last < 0.2;
    if (shy)
        f = larger(f, 0.9);
    complementarity(w, f * mean, !shy);
    if (!direction(w))
        return false;
    s = w->last = fmin(1, (shy ? 0.7 : 0.99) * step_length(w));
    vec_axpy(w->x, s, w->dx, w->m);
    vec_axpy(w->y, s, w->dy, w->m);
    return s > INTERIOR_STOPS;
}

static interior *interior_new(contact_problem *p, arena *a)
{
    interior *w = arena_make(a, interior);
    w->p = p;
    w->s = scaled_new(p, a);
    w->m = w->s->m;
    double **rows[] = { &w->x, &w->y, &w->dx, &w->dy, &w->rc, &w->rhs, &w->u };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        *rows[i] = arena_array(a, double, w->m + 1);
    w->best = arena_array(a, double, p->m);
    w->A = arena_array(a, double, w->s->Ws[w->m]);
    w->ball = arena_array(a, ball, p->n);
    w->factors = sparse_factors_new(a, w->m, w->s->Ws, w->s->Wc, true);
    w->blocks = block_factors_new(a, p->n, w->s->first, w->s->count, w->s->Ws, w->s->Wc);
    for (int c = 0; c < p->n; c++)
        w->ball[c] = (ball){ .at = w->s->first[c],
                             .k = p->cone[c].kind == CONE_BILATERAL ? 0 : w->s->count[c] };
    return w;
}

bool interior_solve(contact_problem *p, arena *scratch, double tol)
{
    if (!interior_fits(p))
        return false;
    arena_pos mark = arena_mark(scratch);
    interior *w = interior_new(p, scratch);
    double best = INFINITY;
    int worst = 0;
    for (int c = 0; c < p->n; c++)
        if (w->ball[c].k)
            w->x[w->ball[c].at] = w->y[w->ball[c].at] = 1;
    w->last = 1;
    for (int it = 0, good = 0; it < MOST && it - good < STALL && !budget_cuts(arena_budget(scratch)); it++) {
        double e = scaled_measure(w->s, w->x, w->u, &worst);
        if (e < 0.9 * best)
            good = it;
        if (e < best) {
            best = p->residual = e;
            p->worst = worst;
            memcpy(w->best, p->r, (size_t)p->m * sizeof *p->r);
        }
        if (best <= tol || !iterate(w))
            break;
        p->iterations++;
    }
    memcpy(p->r, w->best, (size_t)p->m * sizeof *p->r);
    sparse_factors_free(w->factors);
    arena_release(scratch, mark);
    return best <= tol;
}
