/* plane_multigrid: linear systems of equations of order 2 on a rectangle, with fixed nodes.  Cycles over
   the grids with Gauss-Seidel sweeps; held nodes are held on every grid.  Where cycles are slow they become
   the preconditioner of BiCGStab.  Iterations end when the change of u, which the cycles bound, is small:
   on fine grids a small residual does not imply a small error of u, because the error is larger by a factor
   of about n^2. */
#include "base/linalg.h"
#include "field_plane.h"
#include "base/tolerances.h"
#include <string.h>

enum {
    COARSEST_SWEEPS = 60,
    CYCLES = 40,
    KRYLOV_STEPS = 80,
    KRYLOV_RESTARTS = 6,
    STRIP = 3,
    STRIP_SWEEPS = 2
};
#define SLOW 0.25 /* a cycle that leaves a larger fraction of the error than this */

/* ---- sweeps ---- */
static void smooth_row(const plane *p, level *l, int64_t k)
{
    const double *a = l->a + k * p->nc;
    if (is_held(p, l, k))
        return;
    double s = l->r[k];
    int m = l->m[0];
    if (p->nc == 5) { /* below, left, itself, right, above */
        if (a[0] != 0)
            s -= a[0] * l->e[k - m];
        if (a[1] != 0)
            s -= a[1] * l->e[k - 1];
        if (a[3] != 0)
            s -= a[3] * l->e[k + 1];
        if (a[4] != 0)
            s -= a[4] * l->e[k + m];
    } else
        for (int q = 0; q < p->nc; q++)
            if (q != p->nc / 2 && a[q] != 0)
                s -= a[q] * l->e[k + p->dy[q] * m + p->dx[q]];
    l->e[k] = s / diagonal(p, l, k);
}

static void smooth(const plane *p, level *l, bool up)
{
    int64_t m = l->m[0];
    /* row by row: a grid of millions of nodes takes long */
    for (int64_t j = 0; j < l->m[1]; j++) {
        arena_tick(p->w->a, 20 * m);
        if (up)
            for (int64_t k = j * m; k < (j + 1) * m; k++)
                smooth_row(p, l, k);
        else
            for (int64_t k = l->n - j * m, end = k - m; k-- > end;)
                smooth_row(p, l, k);
    }
}

/* ---- between grids ---- */
/* residual of the correction, averaged to the coarser grid */
static void restrict_residual(const plane *p, level *l, level *c)
{
    double spring = spring_of(p);
    memset(c->r, 0, (size_t)c->n * sizeof *c->r);
    memset(c->t, 0, (size_t)c->n * sizeof *c->t);
    for (int j = 0; j < l->m[1]; j++) {
        int cj = l->ci[1][j];
        double wj = l->wi[1][j];
        arena_tick(p->w->a, 40 * (int64_t)l->m[0]);
        for (int i = 0; i < l->m[0]; i++) {
            int64_t k = (int64_t)j * l->m[0] + i, q = (int64_t)cj * c->m[0] + l->ci[0][i];
            double wi = l->wi[0][i], r = 0;
            if (!is_held(p, l, k))
                r = l->r[k] - row_at(p, l, l->e, k) - (l->act[k] ? spring * l->e[k] : 0);
            double w00 = (1 - wi) * (1 - wj), w01 = wi * (1 - wj), w10 = (1 - wi) * wj, w11 = wi * wj;
            c->r[q] += w00 * r;
            c->t[q] += w00;
            c->r[q + 1] += w01 * r;
            c->t[q + 1] += w01;
            c->r[q + c->m[0]] += w10 * r;
            c->t[q + c->m[0]] += w10;
            c->r[q + c->m[0] + 1] += w11 * r;
            c->t[q + c->m[0] + 1] += w11;
        }
    }
    for (int64_t k = 0; k < c->n; k++)
        if (c->t[k] > 0)
            c->r[k] /= c->t[k];
}

/* Free nodes next to the contact set. Coarser grids know its border only to a cell, so their corrections are
   rough there; a few more sweeps over these nodes cost little and compensate for it. */
static void strip_make(const plane *p, level *l)
{
    int w = l->m[0], h = l->m[1];
    l->nstrip = 0;
    if (p->o->eps > 0 || !l->lo)
        return;
    memset(l->wanted, 0, (size_t)l->n);
    for (int j = 1; j + 1 < h; j++)
        for (int i = 1; i + 1 < w; i++) {
            int64_t k = (int64_t)j * w + i;
            if (!l->act[k] || (l->act[k - 1] && l->act[k + 1] && l->act[k - w] && l->act[k + w]))
                continue;
            for (int y = j - STRIP < 0 ? 0 : j - STRIP; y <= j + STRIP && y < h; y++)
                for (int x = i - STRIP < 0 ? 0 : i - STRIP; x <= i + STRIP && x < w; x++)
                    l->wanted[(int64_t)y * w + x] = 1;
        }
    for (int64_t k = 0; k < l->n; k++)
        if (l->wanted[k] && !is_held(p, l, k))
            l->strip[l->nstrip++] = (int32_t)k;
}

static void smooth_strip(const plane *p, level *l)
{
    for (int s = 0; s < STRIP_SWEEPS; s++) {
        for (int64_t k = 0; k < l->nstrip; k++)
            smooth_row(p, l, l->strip[k]);
        for (int64_t k = l->nstrip; k-- > 0;)
            smooth_row(p, l, l->strip[k]);
    }
}

/* a coarse node is on the obstacle when the fine node nearest to it is */
void contact_to_coarse(plane *p, int from)
{
    strip_make(p, &p->at[from]);
    for (int k = from; k + 1 < p->nlevel; k++) {
        const level *l = &p->at[k];
        level *c = &p->at[k + 1];
        for (int j = 0; j < c->m[1]; j++)
            for (int i = 0; i < c->m[0]; i++) {
                int fi = (int)lround((double)i * (l->m[0] - 1) / (c->m[0] - 1)),
                    fj = (int)lround((double)j * (l->m[1] - 1) / (c->m[1] - 1));
                c->act[(int64_t)j * c->m[0] + i] = l->act[(int64_t)fj * l->m[0] + fi];
            }
        strip_make(p, c);
    }
}

/* the coarsest grid: some 5 by 5 nodes, eliminated; swept where that is singular */
static void coarsest_solve(plane *p, level *l)
{
    int n = (int)l->n;
    arena_pos mark = arena_mark(p->w->a);
    double *a = arena_array(p->w->a, double, n *n), *b = arena_array(p->w->a, double, n);
    factor f;
    for (int k = 0; k < n; k++) {
        double *row = a + (size_t)k * (size_t)n;
        if (is_held(p, l, k)) {
            row[k] = 1;
            continue;
        }
        b[k] = l->r[k];
        for (int q = 0; q < p->nc; q++)
            if (l->a[k * p->nc + q] != 0)
                row[k + p->dy[q] * l->m[0] + p->dx[q]] += l->a[k * p->nc + q];
        row[k] += l->act[k] ? spring_of(p) : 0;
        double scale = 1 / fabs(row[k]);
        for (int j = 0; j < n; j++)
            row[j] *= scale;
        b[k] *= scale;
    }
    factor_init(&f, p->w->a, n, false);
    if (factor_general(&f, a))
        factor_solve(&f, b, l->e);
    else
        for (int s = 0; s < COARSEST_SWEEPS; s++)
            smooth(p, l, s % 2 == 0);
    arena_release(p->w->a, mark);
}

static void cycle(plane *p, int k)
{
    level *l = &p->at[k], *c = &p->at[k + 1];
    memset(l->e, 0, (size_t)l->n * sizeof *l->e);
    if (k + 1 == p->nlevel) {
        coarsest_solve(p, l);
        return;
    }
    smooth(p, l, true);
    if (k > 0)
        smooth(p, l, false);
    smooth_strip(p, l);
    restrict_residual(p, l, c);
    cycle(p, k + 1);
    for (int j = 0; j < l->m[1]; j++) {
        arena_tick(p->w->a, 20 * (int64_t)l->m[0]);
        for (int i = 0; i < l->m[0]; i++) {
            int64_t q = (int64_t)j * l->m[0] + i;
            if (!is_held(p, l, q))
                l->e[q] += coarse_at(l, c, c->e, i, j);
        }
    }
    smooth_strip(p, l);
    smooth(p, l, false);
    if (k > 0)
        smooth(p, l, true);
}

static double largest(const double *v, int64_t n)
{
    double s = 0;
    for (int64_t k = 0; k < n; k++)
        s = fabs(v[k]) > s ? fabs(v[k]) : s;
    return s;
}

static double residual_make(plane *p, level *l)
{
    int64_t m = l->m[0];
    for (int64_t k = 0; k < l->n; k++) {
        if (k % m == 0)
            arena_tick(p->w->a, 20 * m);
        l->r[k] = is_held(p, l, k) ? 0 : -row_defect(p, l, k);
    }
    return largest(l->r, l->n);
}

double multigrid_cycle(plane *p, int k)
{
    level *l = &p->at[k];
    residual_make(p, l);
    cycle(p, k);
    double change = 0;
    for (int64_t q = 0; q < l->n; q++) {
        l->u[q] += l->e[q];
        change = fabs(l->e[q]) <= change ? change : fabs(l->e[q]);
    }
    return change;
}

/* ---- cycles as a preconditioner: van der Vorst's BiCGStab, on the nodes that are not held ---- */
static void matrix_apply(const plane *p, const level *l, const double *v, double *out)
{
    double spring = spring_of(p);
    for (int64_t k = 0; k < l->n; k++)
        out[k] = is_held(p, l, k) ? 0 : row_at(p, l, v, k) + (l->act[k] ? spring * v[k] : 0);
}

static double dot(const double *a, const double *b, int64_t n)
{
    double s = 0;
    for (int64_t k = 0; k < n; k++)
        s += a[k] * b[k];
    return s;
}

static const double *precondition(plane *p, int k, const double *v)
{
    level *l = &p->at[k];
    memcpy(l->r, v, (size_t)l->n * sizeof *v);
    cycle(p, k);
    return l->e;
}

/* improves u until the largest residual is below goal; false: it did not come down */
static bool krylov(plane *p, int k, double goal)
{
    level *l = &p->at[k];
    int64_t n = l->n;
    arena_pos mark = arena_mark(p->w->a);
    double *r = arena_array(p->w->a, double, n), *r0 = arena_array(p->w->a, double, n),
           *q = arena_array(p->w->a, double, n), *v = arena_array(p->w->a, double, n),
           *t = arena_array(p->w->a, double, n), rho = 1, alpha = 1, omega = 1;
    residual_make(p, l);
    memcpy(r, l->r, (size_t)n * sizeof *r);
    memcpy(r0, r, (size_t)n * sizeof *r);
    bool found = false;
    for (int it = 0; it < KRYLOV_STEPS && !found; it++) {
        if (!field_goes_on(p->w, pow(4, -k - 1.0)))
            break;
        double now = dot(r0, r, n), beta = now / rho * (alpha / omega);
        if (it && (now == 0 || !isfinite(beta)))
            break;
        for (int64_t i = 0; i < n; i++)
            q[i] = r[i] + (it ? beta * (q[i] - omega * v[i]) : 0);
        rho = now;
        const double *y = precondition(p, k, q);
        matrix_apply(p, l, y, v);
        alpha = rho / dot(r0, v, n);
        if (!isfinite(alpha))
            break;
        for (int64_t i = 0; i < n; i++)
            l->u[i] += alpha * y[i], r[i] -= alpha * v[i];
        found = largest(r, n) <= goal;
        if (found)
            break;
        y = precondition(p, k, r);
        matrix_apply(p, l, y, t);
        omega = dot(t, r, n) / dot(t, t, n);
        if (!isfinite(omega))
            break;
        for (int64_t i = 0; i < n; i++)
            l->u[i] += omega * y[i], r[i] -= omega * t[i];
        double left = largest(r, n);
        found = left <= goal;
        if (!isfinite(left))
            break;
    }
    arena_release(p->w->a, mark);
    return found;
}

/* A cycle that changes u by d and leaves the share s of the error has left d s/(1 - s).  A cycle is never
 * assumed to leave less than a tenth. */
double cycle_left(double change, double before)
{
    double share = fmax(change / before, 0.1);
    return change == 0 ? 0 : share < 1 ? change * share / (1 - share) : INFINITY;
}

bool multigrid_solve(plane *p, int k, double tolerance)
{
    double last = INFINITY;
    int slow = 0;
    for (int it = 0; it < CYCLES && slow < 1; it++) {
        if (!field_goes_on(p->w, pow(4, -k - 1.0)))
            return false;
        double change = multigrid_cycle(p, k), share = change / last;
        if (!isfinite(change))
            return false;
        if (cycle_left(change, last) <= tolerance / 4)
            return true;
        if (change <= tolerance && share > 0.5) /* only rounding changes */
            return true;
        slow += share > SLOW;
        last = change;
    }
    for (int it = 0; it < KRYLOV_RESTARTS; it++) {
        double change = multigrid_cycle(p, k), residual = residual_make(p, &p->at[k]);
        if (!isfinite(change) || !isfinite(residual))
            return false;
        if (change <= tolerance / 4)
            return true;
        if (!krylov(p, k, residual * fmax(tolerance / (8 * change), KRYLOV_LEAST)))
            return false;
    }
    return false;
}
