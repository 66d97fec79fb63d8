#include "sweeps.h"
#include <math.h>
#include <string.h>

/* a contact with one normal and at most one tangent row: its block of W, and what its closed form divides by
 */
typedef struct block {
    double A[4];
    double over, left, right; /* 1/determinant; 1/(A00 -+ mu A01), 0 where that is not positive */
    bool quick;               /* unilateral, at most two rows, no known direction */
} block;

typedef struct sweeps {
    sparse_problem *p;
    block *block;
    double **A;                   /* blocks of the other contacts */
    double *before, *dir, *local; /* reactions as they were; conjugate direction; room of cone_solve */
    double *b, *to;               /* of one contact */
} sweeps;

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

static void block_put(const sparse_problem *p, int c, block *k)
{
    const cone *o = &p->cone[c];
    int rows = cone_rows(o);
    k->A[0] = problem_entry(p, c, 0, o->row);
    k->A[3] = 1;
    if (rows == 2)
        for (int j = 1; j < 4; j++)
            k->A[j] = problem_entry(p, c, j / 2, o->row + j % 2);
    double det = k->A[0] * k->A[3] - k->A[1] * k->A[2], l = k->A[0] - o->mu * k->A[1],
           r = k->A[0] + o->mu * k->A[1];
    k->over = det > 0 ? 1 / det : 0;
    k->left = l > 0 ? 1 / l : 0;
    k->right = r > 0 ? 1 / r : 0;
    k->quick = true;
}

static sweeps *sweeps_new(sparse_problem *p, arena *a)
{
    sweeps *w = arena_make(a, sweeps);
    int d = 0;
    w->p = p;
    w->block = arena_array(a, block, p->n);
    w->A = arena_array(a, double *, p->n);
    w->before = arena_array(a, double, p->m);
    w->dir = arena_array(a, double, p->m);
    for (int c = 0; c < p->n; c++) {
        const cone *o = &p->cone[c];
        int rows = cone_rows(o);
        d = o->d > d ? o->d : d;
        if (o->kind == CONE_UNILATERAL && o->d <= 1 && !o->dir) {
            block_put(p, c, &w->block[c]);
            continue;
        }
        w->A[c] = arena_array(a, double, rows *rows);
        for (int j = 0; j < rows * rows; j++)
            w->A[c][j] = problem_entry(p, c, j / rows, o->row + j % rows);
    }
    w->local = arena_array(a, double, (size_t)CONE_WORK *(size_t)d *(size_t)(d + 4) + 8);
    w->b = arena_array(a, double, d + 1);
    w->to = arena_array(a, double, d + 1);
    return w;
}

/* two sums side by side, each in two parts: the additions of one do not wait for each other */
static inline void row_pair(const sparse_problem *p, int c, const double *r, double *s)
{
    int n = problem_width(p, c), k = 0;
    const int *col = p->col + p->start[c];
    const double *v = p->val + p->at[c], *w = v + n;
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

/* b < 0 its normal rate without it: stick, else slip to the side it is driven to; false when that is not it
 */
static inline bool pair_solve(const block *k, const cone *o, const double *b, double *r)
{
    double n = (k->A[1] * b[1] - k->A[3] * b[0]) * k->over, t = (k->A[2] * b[0] - k->A[0] * b[1]) * k->over;
    r[0] = n;
    r[1] = t;
    if (k->over > 0 && n >= 0 && fabs(t) <= o->mu * n + o->radius)
        return true;
    double s = t < 0 ? 1 : -1, over = t < 0 ? k->left : k->right;
    r[0] = n = (k->A[1] * s * o->radius - b[0]) * over;
    r[1] = t = -s * (o->mu * n + o->radius);
    return over > 0 && n >= 0 && s * (b[1] + k->A[2] * n + k->A[3] * t) >= 0;
}

static double relax_pair(sweeps *w, int c, double *size)
{
    const sparse_problem *p = w->p;
    const cone *o = &p->cone[c];
    const block *k = &w->block[c];
    double *r = p->r + o->row, b[2], to[2];
    row_pair(p, c, p->r, b);
    b[0] += p->b[o->row] - (k->A[0] * r[0] + k->A[1] * r[1]);
    if (b[0] >= 0 && r[0] == 0 && r[1] == 0)
        return 0;
    b[1] += p->b[o->row + 1] - (k->A[2] * r[0] + k->A[3] * r[1]);
    if (b[0] >= 0 && o->radius == 0)
        to[0] = to[1] = 0;
    else if (!(b[0] < 0 && pair_solve(k, o, b, to)) && !cone_solve(o, k->A, 2, b, to, w->local))
        return INFINITY;
    double e = larger(fabs(to[0] - r[0]), fabs(to[1] - r[1]));
    *size = larger(*size, larger(fabs(to[0]), fabs(to[1])));
    r[0] = to[0];
    r[1] = to[1];
    return e;
}

/* three rows, as balls have */
static inline void row_triple(const sparse_problem *p, int c, const double *r, double *s)
{
    int n = problem_width(p, c);
    const int *col = p->col + p->start[c];
    const double *u = p->val + p->at[c], *v = u + n, *w = v + n;
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

static double relax_any(sweeps *w, int c, double *size)
{
    const sparse_problem *p = w->p;
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

static double relax_normal(sweeps *w, int c, double *size)
{
    const sparse_problem *p = w->p;
    int row = p->cone[c].row;
    double A = w->block[c].A[0], *r = p->r + row, b = p->b[row] + problem_times(p, c, 0, p->r) - A * *r,
           to = b < 0 ? -b / A : 0, e = fabs(to - *r);
    *size = larger(*size, to);
    *r = to;
    return e;
}

/* exact solution of one contact with the others held; the largest change of its reactions */
static inline double relax_one(sweeps *w, int c, double *size)
{
    if (!w->block[c].quick)
        return relax_any(w, c, size);
    return w->p->cone[c].d ? relax_pair(w, c, size) : relax_normal(w, c, size);
}

/* up and down; a contact alone that has no solution (it jams) counts only where reactions are finite */
static double sweep(sweeps *w, double *size)
{
    double most = 0;
    int n = w->p->n;
    *size = 0;
    for (int at = 0; at < 2 * n; at++)
        most = larger(most, relax_one(w, at < n ? at : 2 * n - 1 - at, size));
    return most;
}

/* r += beta p, p = beta p + (r - r before) */
static void ahead(sweeps *w, double *before)
{
    double *r = w->p->r, g2 = 0;
    int m = w->p->m;
    for (int i = 0; i < m; i++)
        g2 += (r[i] - w->before[i]) * (r[i] - w->before[i]);
    bool go = *before > 0 && g2 <= *before;
    double beta = go ? g2 / *before : 0;
    *before = go || *before == 0 ? g2 : 0;
    for (int i = 0; i < m; i++) {
        double d = beta * w->dir[i];
        w->dir[i] = go ? d + (r[i] - w->before[i]) : 0;
        r[i] += d;
    }
}

bool sweeps_solve(sparse_problem *p, arena *scratch, int most, bool plain, double tol)
{
    arena_pos mark = arena_mark(scratch);
    sweeps *w = sweeps_new(p, scratch);
    double before = 0, size = 0, change = INFINITY;
    for (int it = 0; it < most; it++) {
        if (!plain)
            memcpy(w->before, p->r, (size_t)p->m * sizeof *p->r);
        change = sweep(w, &size);
        p->iterations++;
        if (change <= tol * size || size == 0)
            break;
        if (!plain)
            ahead(w, &before);
    }
    arena_release(scratch, mark);
    return change <= tol * size;
}
