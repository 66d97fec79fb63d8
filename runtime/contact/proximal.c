#include "base/budget.h"
#include "proximal.h"
#include <math.h>
#include <string.h>
#include "base/linalg.h"

enum { MEMORY = 4 };

typedef struct prox {
    sparse_problem *p;
    struct budget *budget; /* or NULL */
    double *u, *ref, *F, *dr, *keep, *best, *local;
    double *an, *a; /* of each contact: its normal entry of W, its largest tangent entry */
    double rho;     /* of the proximal term, by the size of the block */
    /* Newton's matrix by rows */
    int *Js, *Jc;
    double *Jx;
} prox;

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}
static double weight(const prox *w, int c)
{
    return w->rho * larger(w->an[c], w->a[c]);
}

static void velocities(prox *w)
{
    const sparse_problem *p = w->p;
    for (int c = 0; c < p->n; c++)
        for (int j = 0; j < cone_rows(&p->cone[c]); j++) {
            int i = p->cone[c].row + j;
            w->u[i] = p->b[i] + problem_times(p, c, j, p->r) +
                      (w->rho > 0 ? weight(w, c) * (p->r[i] - w->ref[i]) : 0);
        }
}

/* residual of the problem at hand, for the velocities at hand */
static double defect(const prox *w, int *worst)
{
    return problem_defect(w->p, w->u, w->an, w->a, NULL, worst);
}

/* ---- Newton's matrix, row by row, and its right side ---- */
typedef struct {
    double *x;
    int n;
} line;

static void line_zero(line *l)
{
    memset(l->x, 0, (size_t)l->n * sizeof *l->x);
}

static void line_put(prox *w, int row, const line *l, int c, int *at)
{
    const int *col = w->p->col + w->p->start[c];
    for (int k = 0; k < l->n; k++)
        if (l->x[k] != 0) {
            w->Jc[*at] = col[k];
            w->Jx[(*at)++] = l->x[k];
        }
    w->Js[row + 1] = *at;
}

static void line_row(prox *w, line *l, int c, int j, double k, const int *own)
{
    vec_axpy(l->x, k, problem_row(w->p, c, j), l->n);
    l->x[own[j]] += k * weight(w, c);
}

/* Alart and Curnier's map of one contact */
static void newton_cone(prox *w, int c, double *room, int *own, int *at)
{
    const sparse_problem *p = w->p;
    const cone *o = &p->cone[c];
    int k = cone_normal(o), row = o->row;
    line l = { room, problem_width(p, c) };
    const double *r = p->r + row, *u = w->u + row;
    double rn = 0, *x = room + l.n, shift = weight(w, c), nx = 0;
    for (int i = 0; i < l.n; i++) {
        int j = p->col[p->start[c] + i] - row;
        if (j >= 0 && j < cone_rows(o))
            own[j] = i;
    }
    if (k) {
        double rho = 1 / (w->an[c] + shift);
        rn = r[0];
        line_zero(&l);
        if (o->kind == CONE_BILATERAL || rn - rho * u[0] > 0) {
            line_row(w, &l, c, 0, rho, own);
            w->F[row] = rho * u[0];
        } else {
            l.x[own[0]] = 1;
            w->F[row] = rn;
            if (!o->dir)
                rn = 0;
        }
        line_put(w, row, &l, c, at);
    }
    if (o->d == 0)
        return;
    double bound = o->mu * fabs(rn) + o->radius, sg = rn < 0 ? -o->mu : o->mu, rho = 1 / (w->a[c] + shift);
    for (int j = 0; j < o->d; j++) {
        x[j] = r[k + j] - rho * u[k + j];
        nx += x[j] * x[j];
    }
    nx = sqrt(nx);
    for (int j = 0; j < o->d; j++) {
        line_zero(&l);
        if (o->dir || nx > bound) {
            double xj = o->dir ? -o->dir[j] : x[j] / nx, f = o->dir ? 0 : bound / nx;
            for (int i = 0; i < o->d && f > 0; i++) {
                double g = f * ((i == j) - xj * x[i] / nx);
                if (g == 0)
                    continue;
                line_row(w, &l, c, k + i, g * rho, own);
                l.x[own[k + i]] -= g;
            }
            l.x[own[k + j]] += 1;
            if (k && rn != 0)
                l.x[own[0]] -= xj * sg;
            w->F[row + k + j] = r[k + j] - bound * xj;
        } else {
            line_row(w, &l, c, k + j, rho, own);
            w->F[row + k + j] = rho * u[k + j];
        }
        line_put(w, row + k + j, &l, c, at);
    }
}

static void newton_fill(prox *w, double *room, int *own)
{
    int at = 0;
    w->Js[0] = 0;
    for (int c = 0; c < w->p->n; c++)
        newton_cone(w, c, room, own, &at);
}

/* J dr = -F; rows as columns: the transposed matrix is factorised */
static bool newton_direction(prox *w)
{
    int m = w->p->m;
    memcpy(w->dr, w->F, (size_t)m * sizeof *w->dr);
    bool ok = sparse_lu(m, w->Js, w->Jc, w->Jx, true, NULL, 1, w->dr);
    for (int i = 0; ok && i < m; i++)
        ok = isfinite(w->dr[i]);
    return ok;
}

/* one pass of exact local solutions, where Newton's step does not lead down */
static void relax(prox *w)
{
    const sparse_problem *p = w->p;
    double A[64], b[8], r[8];
    for (int c = 0; c < p->n; c++) {
        const cone *o = &p->cone[c];
        int m = cone_rows(o);
        if (m > 8)
            continue;
        for (int j = 0; j < m; j++) {
            const double *v = problem_row(p, c, j);
            b[j] = p->b[o->row + j] + problem_times(p, c, j, p->r) - weight(w, c) * w->ref[o->row + j];
            for (int i = 0; i < problem_width(p, c); i++) {
                int k = p->col[p->start[c] + i] - o->row;
                if (k >= 0 && k < m) {
                    A[j * m + k] = v[i] + (k == j ? weight(w, c) : 0);
                    b[j] -= v[i] * p->r[o->row + k];
                }
            }
        }
        if (cone_solve(o, A, m, b, r, w->local))
            memcpy(p->r + o->row, r, (size_t)m * sizeof *r);
    }
}

/* the regularised problem, to the tolerance; false when it was not reached */
static bool inner(prox *w, double tol, int most, double *room, int *own)
{
    sparse_problem *p = w->p;
    double memory[MEMORY], e;
    velocities(w);
    e = defect(w, NULL);
    for (int i = 0; i < MEMORY; i++)
        memory[i] = e;
    for (int it = 0; it < most && e > tol && !budget_cuts(w->budget); it++) {
        double allow = 0, s = 1;
        newton_fill(w, room, own);
        memcpy(w->keep, p->r, (size_t)p->m * sizeof *p->r);
        bool down = false, ok = newton_direction(w);
        for (int i = 0; i < MEMORY; i++)
            allow = larger(allow, memory[i]);
        for (int half = 0; ok && half < 7 && !down; half++, s *= 0.5) {
            for (int i = 0; i < p->m; i++)
                p->r[i] = w->keep[i] - s * w->dr[i];
            velocities(w);
            e = defect(w, NULL);
            down = e <= tol || e < (1 - 0.1 * s) * allow;
        }
        p->iterations++;
        if (!down) {
            memcpy(p->r, w->keep, (size_t)p->m * sizeof *p->r);
            for (int i = 0; i < 6; i++)
                relax(w);
            velocities(w);
            e = defect(w, NULL);
        }
        memory[it % MEMORY] = e;
    }
    return e <= tol;
}

static prox *prox_new(sparse_problem *p, arena *a)
{
    prox *w = arena_make(a, prox);
    w->budget = arena_budget(a);
    size_t m = (size_t)p->m, n = (size_t)p->n, all = 0, d = 0;
    for (int c = 0; c < p->n; c++) {
        all += (size_t)cone_rows(&p->cone[c]) * (size_t)problem_width(p, c);
        if ((size_t)p->cone[c].d > d)
            d = (size_t)p->cone[c].d;
    }
    double **rows[] = { &w->u, &w->ref, &w->F, &w->dr, &w->keep, &w->best };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        *rows[i] = arena_array(a, double, m);
    w->p = p;
    w->an = arena_array(a, double, n);
    w->a = arena_array(a, double, n);
    w->local = arena_array(a, double, CONE_WORK *d *(d + 4) + 8);
    w->Js = arena_array(a, int, m + 1);
    w->Jc = arena_array(a, int, all);
    w->Jx = arena_array(a, double, all);
    return w;
}

static double true_defect(prox *w, int *worst)
{
    double rho = w->rho;
    w->rho = 0;
    velocities(w);
    double e = defect(w, worst);
    w->rho = rho;
    return e;
}

bool proximal_steps(sparse_problem *p, arena *scratch, double rho, int most, int newton, double tol)
{
    arena_pos mark = arena_mark(scratch);
    prox *w = prox_new(p, scratch);
    int widest = 0, worst = 0;
    for (int c = 0; c < p->n; c++)
        if (problem_width(p, c) + p->cone[c].d > widest)
            widest = problem_width(p, c) + p->cone[c].d;
    double *room = arena_array(scratch, double, widest + 1), best;
    int *own = arena_array(scratch, int, p->m + 1);
    problem_diagonal(p, w->an, w->a);
    best = true_defect(w, &worst);
    memcpy(w->best, p->r, (size_t)p->m * sizeof *p->r);
    for (int k = 0; k < most && best > tol; k++) {
        int before = p->iterations;
        memcpy(w->ref, p->r, (size_t)p->m * sizeof *p->r);
        w->rho = rho;
        bool ok = inner(w, larger(0.3 * tol, fmin(1e-3, 0.02 * best)), newton, room, own);
        double e = true_defect(w, &worst);
        if (e < best) {
            best = e;
            memcpy(w->best, p->r, (size_t)p->m * sizeof *p->r);
        } else if (!ok) /* back to what was accepted last: the best would cancel the drift along null
                           directions */
            memcpy(p->r, w->ref, (size_t)p->m * sizeof *p->r);
        if (!ok)
            rho = fmin(rho * 8, 1);
        else
            rho = larger(rho * (p->iterations - before <= 8 ? 0.1 : 0.2), 1e-9);
    }
    memcpy(p->r, w->best, (size_t)p->m * sizeof *p->r);
    p->residual = true_defect(w, &p->worst);
    arena_release(scratch, mark);
    return p->residual <= tol;
}
