#include "active.h"
#include <math.h>
#include <string.h>
#include "base/linalg.h"
#include "base/tolerances.h"

typedef struct active {
    contact_problem *p;
    double *A, *big, *x, *y, *keep; /* m*m, m*m + 2m, m, m, m */
    double *an, *at;                /* diagonal entries by contact */
    int *index, *perm;
    bool *in; /* rows that press */
} active;

/* One piece of memory, because problems of two contacts are solved in a few hundred nanoseconds. */
static active active_of(contact_problem *p, arena *a)
{
    size_t m = (size_t)p->m, n = (size_t)p->n, numbers = 2 * m * m + 5 * m + 2 * n;
    double *x = arena_alloc(a, numbers * sizeof *x + 2 * m * sizeof(int) + m * sizeof(bool));
    active w = { .p = p, .A = x, .big = x + m * m, .x = x + 2 * m * m + 2 * m };
    w.y = w.x + m;
    w.keep = w.y + m;
    w.an = w.keep + m;
    w.at = w.an + n;
    w.index = (int *)(x + numbers);
    w.perm = w.index + m;
    w.in = (bool *)(w.perm + m);
    problem_diagonal(p, w.an, w.at);
    return w;
}

static double residual(active *w)
{
    contact_problem *p = w->p;
    return p->residual = problem_defect(p, p->u, w->an, w->at, NULL, &p->worst);
}

/* The shortest r on the chosen rows with u = 0 there; r = 0 elsewhere. W may be slightly unsymmetric: its
   symmetric part is factorised and the rest is refined. */
static void solve_on_set(active *w)
{
    contact_problem *p = w->p;
    int k = 0, m = p->m;
    for (int i = 0; i < m; i++) {
        p->r[i] = 0;
        if (w->in[i])
            w->index[k++] = i;
    }
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            size_t a = (size_t)w->index[i], b = (size_t)w->index[j];
            w->A[(size_t)i * k + j] = 0.5 * (p->W[a * m + b] + p->W[b * m + a]);
        }
    int rank = sym_shortest_factor(w->A, k, w->big, w->perm);
    for (int pass = 0; pass < 3; pass++) {
        problem_velocities(p, p->u);
        for (int i = 0; i < k; i++)
            w->x[i] = -p->u[w->index[i]];
        sym_shortest_use(w->A, rank, w->x, w->y, k, w->big, w->perm);
        for (int i = 0; i < k; i++)
            p->r[w->index[i]] += w->y[i];
    }
    problem_velocities(p, p->u);
}

static void pressing_rows(active *w)
{
    const contact_problem *p = w->p;
    memset(w->in, 0, (size_t)p->m * sizeof *w->in);
    for (int i = 0; i < p->n; i++) {
        const cone *c = &p->cone[i];
        if (c->kind != CONE_GIVEN)
            w->in[c->row] = c->kind == CONE_BILATERAL || p->r[c->row] * w->an[i] - p->u[c->row] > 0;
    }
}

static bool still(const active *w, int row)
{
    return fabs(w->p->u[row]) <= SLIDES_NOT * vec_max(w->p->b, w->p->m);
}

/* The shortest solution on all contacts that stay closed, if all of them push. */
static void shortest(active *w, double tol)
{
    contact_problem *p = w->p;
    memcpy(w->keep, p->r, (size_t)p->m * sizeof *w->keep);
    for (int i = 0; i < p->m; i++)
        w->in[i] = still(w, i);
    solve_on_set(w);
    if (residual(w) <= tol)
        return;
    memcpy(p->r, w->keep, (size_t)p->m * sizeof *w->keep);
    problem_velocities(p, p->u);
    residual(w);
}

static bool primal_dual(active *w, double tol)
{
    enum { MOST = 12 };
    problem_velocities(w->p, w->p->u);
    for (int it = 0; it < MOST; it++) {
        pressing_rows(w);
        solve_on_set(w);
        w->p->iterations++;
        if (residual(w) <= tol)
            return true;
    }
    return false;
}

bool active_fits(const contact_problem *p)
{
    for (int i = 0; i < p->n; i++) {
        const cone *c = &p->cone[i];
        if (c->d > 0 && (c->of_speed || c->mu != 0 || c->radius != 0))
            return false;
    }
    return p->W && p->u && p->kb == 0;
}

bool active_solve(contact_problem *p, arena *scratch, double tol)
{
    arena_pos mark = arena_mark(scratch);
    active w = active_of(p, scratch);
    bool ok = primal_dual(&w, tol), idle = false;
    for (int i = 0; ok && i < p->n; i++)
        idle |= !w.in[p->cone[i].row] && still(&w, p->cone[i].row);
    if (idle)
        shortest(&w, tol);
    arena_release(scratch, mark);
    return ok;
}
