#include "sweeps.h"
#include <math.h>
#include <string.h>
#include "base/linalg.h"

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

/* ---- any storage ---- */
typedef struct trail {
    double *before, *dir; /* value before the sweep; conjugate direction */
} trail;

static void part_keep(const sweep_part *p, trail *t)
{
    if (!p->at && p->n)
        memcpy(t->before, p->x, (size_t)p->n * sizeof *p->x);
    for (int k = 0; p->at && k < p->n; k++)
        t->before[k] = p->x[p->at[k]];
}

/* x += beta dir, dir = beta dir + (x - x before). */
static inline void ahead_one(double *x, double before, double *dir, double beta, bool go)
{
    double d = beta * *dir;
    *dir = go ? d + (*x - before) : 0;
    *x += d;
}

/* Contiguous numbers are processed in lanes. */
static void part_ahead(const sweep_part *p, trail *t, double beta, bool go)
{
    double *restrict x = p->x, *restrict dir = t->dir;
    const double *restrict before = t->before;
    for (int k = 0; !p->at && k < p->n; k++)
        ahead_one(&x[k], before[k], &dir[k], beta, go);
    for (int k = 0; p->at && k < p->n; k++)
        ahead_one(&x[p->at[k]], before[k], &dir[k], beta, go);
}

/* Square of the change since part_keep; contiguous numbers in four sums side by side, so that additions need
   not wait for each other. */
static double part_change2(const sweep_part *p, const trail *t)
{
    enum { SIDE = 4 };
    double sum[SIDE] = { 0 };
    int k = 0;
    for (; !p->at && k + SIDE <= p->n; k += SIDE)
        for (int j = 0; j < SIDE; j++) {
            double d = p->x[k + j] - t->before[k + j];
            sum[j] += d * d;
        }
    for (; k < p->n; k++) {
        double d = p->x[p->at ? p->at[k] : k] - t->before[k];
        sum[0] += d * d;
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* As in conjugate gradients, with the change of reactions as the gradient. */
static void ahead(const sweeper *s, trail *t, double *before)
{
    double g2 = part_change2(&s->part[0], &t[0]);
    bool go = *before > 0 && g2 <= *before;
    double beta = go ? g2 / *before : 0;
    *before = go || *before == 0 ? g2 : 0;
    for (int i = 0; i < 2; i++)
        part_ahead(&s->part[i], &t[i], beta, go);
}

/* Sweeps that gain little from one check to the next usually stall for hundreds of sweeps, because a few
   contacts change back and forth. If they are almost done, they continue. */
static bool stalled(const sweeper *s, int done, double change, double enough, double *seen)
{
    const double GAIN = 0.6, CLOSE = 100;
    if (!s->look || done % s->look)
        return false;
    bool slow = change > GAIN * *seen && change > CLOSE * enough;
    *seen = change;
    return slow;
}

double sweeps_run(const sweeper *s, int most, bool plain, double tol, arena *scratch, int *done)
{
    arena_pos mark = arena_mark(scratch);
    trail t[2] = { 0 };
    double before = 0, size = 0, change = INFINITY, seen = INFINITY;
    for (int i = 0; !plain && i < 2; i++) {
        t[i].before = arena_alloc(scratch, (size_t)s->part[i].n * sizeof(double));
        t[i].dir = arena_array(scratch, double, s->part[i].n);
    }
    for (*done = 0; *done < most;) {
        for (int i = 0; !plain && i < 2; i++)
            part_keep(&s->part[i], &t[i]);
        change = s->pass(s->of, false, &size);
        if (!s->up_only && !(s->eager && change <= tol * size)) {
            double down = s->pass(s->of, true, &size);
            change = larger(change, down);
        }
        ++*done;
        if (s->verdict ? s->verdict(s->of, *done) != SWEEPS_ON : change <= tol * size || size == 0)
            break;
        if (stalled(s, *done, change, tol * size, &seen))
            break;
        if (!plain)
            ahead(s, t, &before);
    }
    arena_release(scratch, mark);
    return size > 0 ? change / size : 0;
}

/* ---- stored rows: velocities of a contact are computed from all reactions each time ---- */
typedef struct by_rows {
    contact_problem *p;
    bool *quick;     /* unilateral, at most two rows, no known direction */
    cone_pair *pair; /* of these */
    double **A;      /* blocks of the other contacts, which are not quick */
    double *local;   /* work space of cone_solve */
    double *b, *to;  /* of one contact */
} by_rows;

static by_rows *by_rows_new(contact_problem *p, arena *a)
{
    by_rows *w = arena_make(a, by_rows);
    int most = 1;
    w->p = p;
    w->quick = arena_array(a, bool, p->n);
    w->pair = arena_array(a, cone_pair, p->n);
    w->A = arena_array(a, double *, p->n);
    for (int c = 0; c < p->n; c++) {
        const cone *o = &p->cone[c];
        int rows = cone_rows(o);
        most = rows > most ? rows : most;
        double small[4], *A = small;
        w->quick[c] = o->kind == CONE_UNILATERAL && o->d <= 1 && !o->dir;
        if (!w->quick[c])
            A = w->A[c] = arena_array(a, double, rows *rows);
        problem_block(p, c, A);
        if (w->quick[c])
            w->pair[c] = pair_of(A, rows, o);
    }
    w->local = arena_array(a, double, problem_work(p));
    w->b = arena_array(a, double, most);
    w->to = arena_array(a, double, most);
    return w;
}

/* Two sums side by side, each in two parts, so that additions need not wait for each other. */
static inline void row_pair(const contact_problem *p, int c, const double *r, double *s)
{
    int n = problem_width(p, c), k = 0;
    const int *col = problem_columns(p, c);
    const double *v = problem_row(p, c, 0), *w = v + n;
    double s0 = 0, s1 = 0, t0 = 0, t1 = 0;
    for (; k + 1 < n; k += 2) {
        double x = r[col[k]], y = r[col[k + 1]];
        s0 += v[k] * x;
        t0 += w[k] * x;
        s1 += v[k + 1] * y;
        t1 += w[k + 1] * y;
    }
    if (k < n) {
        s0 += v[k] * r[col[k]];
        t0 += w[k] * r[col[k]];
    }
    s[0] = s0 + s1;
    s[1] = t0 + t1;
}

static double relax_pair(by_rows *w, int c, double *size)
{
    const contact_problem *p = w->p;
    const cone *o = &p->cone[c];
    const cone_pair *k = &w->pair[c];
    double *r = p->r + o->row, b[2], to[2];
    row_pair(p, c, p->r, b);
    b[0] += p->b[o->row] - (k->A[0] * r[0] + k->A[1] * r[1]);
    if (b[0] >= 0 && r[0] == 0 && r[1] == 0 && o->radius == 0)
        return 0;
    b[1] += p->b[o->row + 1] - (k->A[2] * r[0] + k->A[3] * r[1]);
    if (b[0] >= 0 && o->radius == 0)
        to[0] = to[1] = 0;
    else if (!(b[0] < 0 && pair_solve(k, b, to)) && !cone_solve(o, k->A, 2, b, to, w->local))
        return INFINITY;
    double e = larger(fabs(to[0] - r[0]), fabs(to[1] - r[1]));
    *size = larger(*size, larger(fabs(to[0]), fabs(to[1])));
    r[0] = to[0];
    r[1] = to[1];
    return e;
}

/* Three rows, as for balls. */
static inline void row_triple(const contact_problem *p, int c, const double *r, double *s)
{
    int n = problem_width(p, c);
    const int *col = problem_columns(p, c);
    const double *u = problem_row(p, c, 0), *v = u + n, *w = v + n;
    double s0 = 0, s1 = 0, s2 = 0;
    for (int k = 0; k < n; k++) {
        double x = r[col[k]];
        s0 += u[k] * x;
        s1 += v[k] * x;
        s2 += w[k] * x;
    }
    s[0] = s0;
    s[1] = s1;
    s[2] = s2;
}

static double relax_any(by_rows *w, int c, double *size)
{
    const contact_problem *p = w->p;
    const cone *o = &p->cone[c];
    int rows = cone_rows(o);
    const double *A = w->A[c];
    double *r = p->r + o->row, e = 0;
    if (rows == 3)
        row_triple(p, c, p->r, w->b);
    for (int j = 0; j < rows; j++) {
        w->b[j] = p->b[o->row + j] + (rows == 3 ? w->b[j] : problem_times(p, c, j, p->r));
        for (int k = 0; k < rows; k++)
            w->b[j] -= A[j * rows + k] * r[k];
    }
    if (!cone_solve(o, A, rows, w->b, w->to, w->local))
        return INFINITY;
    for (int j = 0; j < rows; j++) {
        e = larger(e, fabs(w->to[j] - r[j]));
        *size = larger(*size, fabs(w->to[j]));
        r[j] = w->to[j];
    }
    return e;
}

static double relax_normal(by_rows *w, int c, double *size)
{
    const contact_problem *p = w->p;
    int row = p->cone[c].row;
    double A = w->pair[c].A[0], *r = p->r + row, b = p->b[row] + problem_times(p, c, 0, p->r) - A * *r,
           to = b < 0 ? -b / A : 0, e = fabs(to - *r);
    *size = larger(*size, to);
    *r = to;
    return e;
}

/* The exact solution of one contact with the others held; returns the largest change of its reactions. */
static inline double relax_one(by_rows *w, int c, double *size)
{
    if (!w->quick[c])
        return relax_any(w, c, size);
    return w->p->cone[c].d ? relax_pair(w, c, size) : relax_normal(w, c, size);
}

/* A single contact without solution (it jams) counts only if reactions are finite. */
static double rows_pass(void *of, bool down, double *size)
{
    by_rows *w = of;
    double most = 0;
    int n = w->p->n;
    if (!down)
        *size = 0;
    for (int at = 0; at < n; at++)
        most = larger(most, relax_one(w, down ? n - 1 - at : at, size));
    return most;
}

bool sweeps_solve(contact_problem *p, arena *scratch, int most, bool plain, double tol)
{
    arena_pos mark = arena_mark(scratch);
    sweeper s = { .of = by_rows_new(p, scratch),
                  .pass = rows_pass,
                  .part = { { .x = p->r, .n = p->m } },
                  .look = plain ? 0 : sweeps_layers(p) * 2 };
    int done;
    double change = sweeps_run(&s, most, plain, tol, scratch, &done);
    p->iterations += done;
    arena_release(scratch, mark);
    return change <= tol;
}

int sweeps_layers(const contact_problem *p)
{
    return (int)sqrt(p->n) + 1;
}

/* ---- W in full: each change is added to all velocities, so unchanged contacts cost little ---- */
typedef struct in_full {
    contact_problem *p;
    arena *scratch;
    double *an, *at, *b, *to, *local;
    double tol, before; /* residual of 32 sweeps ago */
} in_full;

static double full_pass(void *of, bool down, double *size)
{
    in_full *w = of;
    contact_problem *p = w->p;
    int m = p->m;
    double most = 0;
    (void)down;
    *size = 0;
    arena_tick(w->scratch, (int64_t)m * m);
    for (int c = 0; c < p->n; c++) {
        int k = cone_rows(&p->cone[c]), at = p->cone[c].row;
        const double *A = p->W + (size_t)at * m + at;
        for (int j = 0; j < k; j++)
            w->b[j] = p->u[at + j] - vec_dot(A + (size_t)j * m, p->r + at, k);
        problem_alone(p, c, A, m, w->b, w->to, w->local);
        for (int j = 0; j < k; j++) {
            double dr = w->to[j] - p->r[at + j];
            *size = larger(*size, fabs(w->to[j]));
            if (dr == 0)
                continue;
            most = larger(most, fabs(dr));
            p->r[at + j] = w->to[j];
            for (int q = 0; q < m; q++)
                p->u[q] += p->W[(size_t)q * m + at + j] * dr;
        }
    }
    p->iterations++;
    return most;
}

static double full_residual(in_full *w)
{
    return w->p->residual = problem_defect(w->p, w->p->u, w->an, w->at, NULL, &w->p->worst);
}

static sweeps_verdict full_verdict(void *of, int sweeps)
{
    enum { ANEW = 16, LOOK = 32 };
    in_full *w = of;
    contact_problem *p = w->p;
    if (sweeps % ANEW == 0)
        problem_velocities(p, p->u);
    if (full_residual(w) <= w->tol) {
        problem_velocities(p, p->u);
        if (full_residual(w) <= w->tol)
            return SWEEPS_DONE;
    }
    if (sweeps % LOOK)
        return SWEEPS_ON;
    bool slow = p->residual > 0.05 * w->before;
    w->before = p->residual;
    return slow ? SWEEPS_SLOW : SWEEPS_ON;
}

bool sweeps_full(contact_problem *p, arena *scratch, int most, double tol)
{
    arena_pos mark = arena_mark(scratch);
    in_full w = { .p = p, .scratch = scratch, .tol = tol, .before = INFINITY };
    int rows = 1, done;
    for (int c = 0; c < p->n; c++)
        rows = cone_rows(&p->cone[c]) > rows ? cone_rows(&p->cone[c]) : rows;
    size_t n = (size_t)p->n, k = (size_t)rows;
    w.an = arena_alloc(scratch, (2 * n + 2 * k + problem_work(p)) * sizeof(double));
    w.at = w.an + n;
    w.b = w.at + n;
    w.to = w.b + k;
    w.local = w.to + k;
    problem_diagonal(p, w.an, w.at);
    sweeper s = { .of = &w,
                  .pass = full_pass,
                  .verdict = full_verdict,
                  .part = { { p->r, NULL, p->m } },
                  .up_only = true };
    problem_velocities(p, p->u);
    p->residual = INFINITY;
    sweeps_run(&s, most, true, tol, scratch, &done);
    arena_release(scratch, mark);
    return p->residual <= tol;
}
