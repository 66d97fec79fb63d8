#include "matrix.h"
#include "foreign.h"
#include "tolerances.h"
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <suitesparse/klu.h>

enum { WIDEST_BAND = 64 }; /* diagonals on a side that a band may have */

/* ---- shapes ---- */
matrix_shape matrix_diagonal(int n)
{
    return (matrix_shape){ .kind = MATRIX_DIAGONAL, .n = n, .count = (size_t)n };
}

matrix_shape matrix_dense(int n)
{
    return (matrix_shape){ .kind = MATRIX_DENSE, .n = n, .count = (size_t)n * (size_t)n };
}

static int by_place(const void *x, const void *y)
{
    const matrix_place *a = x, *b = y;
    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    return (a->column > b->column) - (a->column < b->column);
}

static size_t sort_places(matrix_place *place, size_t count)
{
    size_t n = 0;
    bool sorted = true;
    for (size_t i = 1; i < count && sorted; i++)
        sorted = by_place(&place[i - 1], &place[i]) <= 0;
    if (!sorted)
        qsort(place, count, sizeof *place, by_place);
    for (size_t i = 0; i < count; i++)
        if (n == 0 || by_place(&place[n - 1], &place[i]) != 0)
            place[n++] = place[i];
    return n;
}

/* rows of few entries, the diagonal among them */
static matrix_shape sparse_shape(int n, const matrix_place *place, size_t count, arena *a)
{
    int *start = arena_array(a, int, n + 1), *column = arena_array(a, int, count + (size_t)n);
    size_t at = 0, k = 0;
    for (int i = 0; i < n; i++) {
        bool diagonal = false;
        start[i] = (int)at;
        for (; k < count && place[k].row == i; k++) {
            if (place[k].column > i && !diagonal)
                column[at++] = i;
            diagonal |= place[k].column >= i;
            column[at++] = place[k].column;
        }
        if (!diagonal)
            column[at++] = i;
    }
    start[n] = (int)at;
    return (matrix_shape){ .kind = MATRIX_SPARSE, .n = n, .start = start, .column = column, .count = at };
}

matrix_shape matrix_shape_of(int n, matrix_place *place, size_t count, arena *a)
{
    int below = 0, above = 0;
    count = sort_places(place, count);
    for (size_t i = 0; i < count; i++) {
        int off = place[i].column - place[i].row;
        if (-off > below)
            below = -off;
        if (off > above)
            above = off;
    }
    if (below == 0 && above == 0)
        return matrix_diagonal(n);
    /* a dense row costs as much as a few entries of a sparse one */
    if (n <= MATRIX_SMALL || (double)count > 0.3 * n * (double)n)
        return matrix_dense(n);
    int side = below > above ? below : above;
    if (side <= WIDEST_BAND && (double)n * (2 * side + 1) <= 6.0 * ((double)count + n))
        return (matrix_shape){ .kind = MATRIX_BAND,
                               .n = n,
                               .below = side,
                               .above = side,
                               .count = (size_t)n * (size_t)(2 * side + 1) };
    return sparse_shape(n, place, count, a);
}

size_t matrix_at(const matrix_shape *s, int row, int column)
{
    size_t first = matrix_row(s, row);
    switch (s->kind) {
    case MATRIX_DIAGONAL:
        return first;
    case MATRIX_BAND:
        return first + (size_t)(column - row + s->below);
    case MATRIX_DENSE:
        return first + (size_t)column;
    case MATRIX_SPARSE:
        break;
    }
    size_t lo = first, hi = (size_t)s->start[row + 1];
    while (hi - lo > 1) {
        size_t mid = (lo + hi) / 2;
        if (s->column[mid] <= column)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* ---- products ---- */
static inline double band_row(const matrix_shape *s, const double *a, const double *x, int i)
{
    int lo = i - s->below < 0 ? 0 : i - s->below, hi = i + s->above >= s->n ? s->n - 1 : i + s->above;
    return vec_dot(a + matrix_row(s, i) + (lo - i + s->below), x + lo, hi - lo + 1);
}

static inline double sparse_row(const matrix_shape *s, const double *a, const double *x, int i)
{
    double sum = 0;
    for (int k = s->start[i]; k < s->start[i + 1]; k++)
        sum += a[k] * x[s->column[k]];
    return sum;
}

static inline double row_times(const matrix_shape *s, const double *a, const double *x, int i)
{
    switch (s->kind) {
    case MATRIX_DIAGONAL:
        return a[i] * x[i];
    case MATRIX_BAND:
        return band_row(s, a, x, i);
    case MATRIX_SPARSE:
        return sparse_row(s, a, x, i);
    default:
        return vec_dot(a + (size_t)i * (size_t)s->n, x, s->n);
    }
}

/* three diagonals, as in chains: inner rows need no tests */
static void tridiagonal_add(const double *a, const double *x, double *y, int n)
{
    y[0] += a[1] * x[0] + a[2] * x[1];
    for (int i = 1; i < n - 1; i++)
        y[i] += a[3 * i] * x[i - 1] + a[3 * i + 1] * x[i] + a[3 * i + 2] * x[i + 1];
    y[n - 1] += a[3 * n - 3] * x[n - 2] + a[3 * n - 2] * x[n - 1];
}

void matrix_times_add(const matrix_shape *s, const double *a, const double *x, double *y)
{
    if (s->kind == MATRIX_BAND && s->below == 1 && s->above == 1) {
        tridiagonal_add(a, x, y, s->n);
        return;
    }
    for (int i = 0; i < s->n; i++)
        y[i] += row_times(s, a, x, i);
}

void matrix_times(const matrix_shape *s, const double *a, const double *x, double *y)
{
    for (int i = 0; i < s->n; i++)
        y[i] = row_times(s, a, x, i);
}

double matrix_norm2(const matrix_shape *s, const double *a, const double *x)
{
    double e = 0;
    for (int i = 0; i < s->n; i++)
        e += x[i] * row_times(s, a, x, i);
    return e;
}

/* ---- groups ---- */
static int group_root(int *parent, int i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

matrix_groups *matrix_groups_of(int n, const matrix_place *place, size_t count, arena *a)
{
    matrix_groups *g = arena_make(a, matrix_groups);
    int *parent = arena_array(a, int, n), *size = arena_array(a, int, n), *at;
    *g = (matrix_groups){ .n = n, .of = arena_array(a, int, n), .dof = arena_array(a, int, n) };
    for (int i = 0; i < n; i++)
        parent[i] = i;
    for (size_t k = 0; k < count; k++)
        parent[group_root(parent, place[k].row)] = group_root(parent, place[k].column);
    for (int i = 0; i < n; i++)
        if (++size[group_root(parent, i)] > MATRIX_GROUP)
            return NULL;
    for (int i = 0; i < n; i++) {
        int root = group_root(parent, i);
        if (size[root] > 0) { /* found for the first time: groups are numbered by their first dofs */
            g->count++;
            size[root] = -g->count;
        }
        g->of[i] = -size[root] - 1;
    }
    g->first = arena_array(a, int, g->count + 1);
    for (int i = 0; i < n; i++)
        g->first[g->of[i] + 1]++;
    for (int k = 0; k < g->count; k++)
        g->first[k + 1] += g->first[k];
    at = size;
    memcpy(at, g->first, (size_t)g->count * sizeof *at);
    for (int i = 0; i < n; i++)
        g->dof[at[g->of[i]]++] = i;
    g->root = arena_array(a, double, (size_t)g->count *MATRIX_GROUP *MATRIX_GROUP);
    return g;
}

static double *root_of(const matrix_groups *g, int group)
{
    return g->root + (size_t)group * MATRIX_GROUP * MATRIX_GROUP;
}

bool groups_factor(matrix_groups *g, const matrix_shape *s, const double *a)
{
    for (int k = 0; k < g->count; k++) {
        const int *dof = g->dof + g->first[k];
        int n = g->first[k + 1] - g->first[k];
        double *l = root_of(g, k);
        for (int i = 0; i < n; i++)
            for (int j = 0; j <= i; j++) {
                double x = a[matrix_at(s, dof[i], dof[j])] -
                           vec_dot(l + i * MATRIX_GROUP, l + j * MATRIX_GROUP, j);
                if (i == j && !(x > 0))
                    return false;
                l[i * MATRIX_GROUP + j] = i == j ? sqrt(x) : x / l[j * MATRIX_GROUP + j];
            }
    }
    return true;
}

void groups_row(const matrix_groups *g, int group, double *x)
{
    const double *l = root_of(g, group);
    for (int i = 0, n = g->first[group + 1] - g->first[group]; i < n; i++)
        x[i] = (x[i] - vec_dot(l + i * MATRIX_GROUP, x, i)) / l[i * MATRIX_GROUP + i];
}

void groups_in(const matrix_groups *g, double *x)
{
    for (int k = 0; k < g->count; k++) {
        const int *dof = g->dof + g->first[k];
        const double *l = root_of(g, k);
        for (int i = 0, n = g->first[k + 1] - g->first[k]; i < n; i++) {
            double sum = 0;
            for (int j = i; j < n; j++)
                sum += l[j * MATRIX_GROUP + i] * x[dof[j]];
            x[dof[i]] = sum;
        }
    }
}

void groups_out(const matrix_groups *g, double *x)
{
    for (int k = 0; k < g->count; k++) {
        const int *dof = g->dof + g->first[k];
        const double *l = root_of(g, k);
        for (int n = g->first[k + 1] - g->first[k], i = n; i-- > 0;) {
            double sum = x[dof[i]];
            for (int j = i + 1; j < n; j++)
                sum -= l[j * MATRIX_GROUP + i] * x[dof[j]];
            x[dof[i]] = sum / l[i * MATRIX_GROUP + i];
        }
    }
}

/* ---- factors ---- */
/* KLU's analysis and factors of a shape; the analysis is made once */
struct sparse_factor {
    klu_common common;
    klu_symbolic *symbolic;
    klu_numeric *numeric;
};

void factor_shape(factor *f, arena *a, const matrix_shape *s)
{
    if (s->kind == MATRIX_DIAGONAL || s->kind == MATRIX_DENSE) {
        factor_init(f, a, s->n, s->kind == MATRIX_DIAGONAL);
        f->shape = s;
        return;
    }
    *f = (factor){ .kind = FACTOR_NONE, .n = s->n, .shape = s };
    if (s->kind == MATRIX_BAND) { /* LAPACK wants room for the entries that pivoting fills in */
        f->a = arena_array(a, double, (size_t)s->n *(size_t)(2 * s->below + s->above + 1));
        f->pivot = arena_array(a, int, s->n);
        return;
    }
    f->sparse = arena_make(a, struct sparse_factor);
    FOREIGN(klu_defaults)(&f->sparse->common);
}

void factor_free(factor *f)
{
    struct sparse_factor *k = f->sparse;
    if (!k)
        return;
    FOREIGN(klu_free_numeric)(&k->numeric, &k->common);
    FOREIGN(klu_free_symbolic)(&k->symbolic, &k->common);
}

/* Rows are taken for columns: what is factorised is the transposed matrix. */
static bool factor_sparse(factor *f, const double *a)
{
    struct sparse_factor *k = f->sparse;
    int *start = (int *)(uintptr_t)f->shape->start, *column = (int *)(uintptr_t)f->shape->column;
    double *values = (double *)(uintptr_t)a;
    f->kind = FACTOR_SPARSE;
    if (!k->symbolic)
        k->symbolic = FOREIGN(klu_analyze)(f->n, start, column, &k->common);
    if (!k->symbolic)
        return false;
    if (k->numeric) {
        /* the same pivots again; where they have become small, new ones */
        if (FOREIGN(klu_refactor)(start, column, values, k->symbolic, k->numeric, &k->common) &&
            FOREIGN(klu_rgrowth)(start, column, values, k->symbolic, k->numeric, &k->common) &&
            k->common.rgrowth > PIVOT_GROWTH)
            return true;
        FOREIGN(klu_free_numeric)(&k->numeric, &k->common);
    }
    k->numeric = FOREIGN(klu_factor)(start, column, values, k->symbolic, &k->common);
    return k->numeric != NULL && k->common.status == KLU_OK;
}

/* A = L D L^T in a band of k diagonals on a side: row i holds L_i,i-k .. L_i,i-1 and 1/D_i.  False: a pivot
 * does not keep a part of its diagonal entry that is above rounding; *bad is its row. */
static bool band_ldl(const matrix_shape *s, const double *a, double *l, int *bad)
{
    int n = s->n, k = s->below, width = k + 1;
    for (int i = 0; i < n; i++) {
        double *li = l + (size_t)i * width;
        const double *ai = a + matrix_row(s, i);
        double d = ai[k];
        for (int j = i - k < 0 ? 0 : i - k; j < i; j++) {
            const double *lj = l + (size_t)j * width;
            double x = ai[j - i + k];
            for (int p = i - k < 0 ? 0 : i - k; p < j; p++)
                x -= li[p - i + k] * lj[p - j + k]; /* L_ip D_p times L_jp */
            li[j - i + k] = x;
        }
        for (int j = i - k < 0 ? 0 : i - k; j < i; j++) {
            double x = li[j - i + k], scaled = x * l[(size_t)j * width + k];
            d -= x * scaled;
            li[j - i + k] = scaled;
        }
        if (!(d > PIVOT_LEAST * fabs(ai[k])) || !isfinite(d)) {
            *bad = i;
            return false;
        }
        li[k] = 1 / d;
    }
    return true;
}

static void band_ldl_solve(const double *l, int n, int k, double *x)
{
    int width = k + 1;
    if (k == 1) {
        for (int i = 1; i < n; i++)
            x[i] -= l[2 * i] * x[i - 1];
        x[n - 1] *= l[2 * n - 1];
        for (int i = n - 1; i-- > 0;)
            x[i] = x[i] * l[2 * i + 1] - l[2 * i + 2] * x[i + 1];
        return;
    }
    for (int i = 0; i < n; i++) {
        int lo = i - k < 0 ? 0 : i - k;
        x[i] -= vec_dot(l + (size_t)i * width + (lo - i + k), x + lo, i - lo);
    }
    for (int i = 0; i < n; i++)
        x[i] *= l[(size_t)i * width + k];
    for (int i = n; i-- > 0;) {
        int lo = i - k < 0 ? 0 : i - k;
        vec_axpy(x + lo, -x[i], l + (size_t)i * width + (lo - i + k), i - lo);
    }
}

static bool band_symmetric(const matrix_shape *s, const double *a)
{
    int k = s->below;
    for (int i = 0; i < s->n; i++)
        for (int j = i - k < 0 ? 0 : i - k; j < i; j++)
            if (a[matrix_row(s, i) + (size_t)(j - i + k)] != a[matrix_row(s, j) + (size_t)(i - j + k)])
                return false;
    return true;
}

/* LAPACK's band form, columns one after the other */
static bool band_general(factor *f, const double *a)
{
    const matrix_shape *s = f->shape;
    int n = s->n, k = s->below, rows = 3 * k + 1;
    memset(f->a, 0, (size_t)n * (size_t)rows * sizeof *f->a);
    for (int i = 0; i < n; i++)
        for (int j = i - k < 0 ? 0 : i - k; j <= i + k && j < n; j++)
            f->a[(size_t)j * rows + (size_t)(2 * k + i - j)] = a[matrix_row(s, i) + (size_t)(j - i + k)];
    f->kind = FACTOR_BAND_LU;
    return FOREIGN(LAPACKE_dgbtrf_work)(LAPACK_COL_MAJOR, n, n, k, k, f->a, rows, f->pivot) == 0;
}

bool factor_matrix_spd(factor *f, const double *a, int *bad)
{
    *bad = 0;
    switch (f->shape->kind) {
    case MATRIX_DIAGONAL:
        return factor_diagonal(f, a, bad);
    case MATRIX_DENSE:
        return factor_spd(f, a, bad);
    case MATRIX_BAND:
        f->kind = FACTOR_BAND;
        return band_ldl(f->shape, a, f->a, bad);
    case MATRIX_SPARSE:
        break;
    }
    for (int i = 0; i < f->n; i++)
        if (!(a[matrix_at(f->shape, i, i)] > 0)) {
            *bad = i;
            return false;
        }
    return factor_sparse(f, a);
}

bool factor_matrix(factor *f, const double *a)
{
    int bad;
    switch (f->shape->kind) {
    case MATRIX_DIAGONAL:
        f->kind = FACTOR_DIAGONAL;
        for (int i = 0; i < f->n; i++) {
            if (a[i] == 0 || !isfinite(a[i]))
                return false;
            f->a[i] = 1 / a[i];
        }
        return true;
    case MATRIX_DENSE:
        return factor_general(f, a);
    case MATRIX_BAND:
        f->kind = FACTOR_BAND;
        if (band_symmetric(f->shape, a) && band_ldl(f->shape, a, f->a, &bad))
            return true;
        return band_general(f, a);
    case MATRIX_SPARSE:
        break;
    }
    return factor_sparse(f, a);
}

void factor_solve_shaped(const factor *f, const double *b, double *x)
{
    int n = f->n, k = f->shape->below;
    memcpy(x, b, (size_t)n * sizeof *x);
    if (f->kind == FACTOR_BAND)
        band_ldl_solve(f->a, n, k, x);
    else if (f->kind == FACTOR_BAND_LU)
        FOREIGN(LAPACKE_dgbtrs_work)(LAPACK_COL_MAJOR, 'N', n, k, k, 1, f->a, 3 * k + 1, f->pivot, x, n);
    else if (f->kind == FACTOR_SPARSE)
        FOREIGN(klu_tsolve)(f->sparse->symbolic, f->sparse->numeric, n, 1, x, &f->sparse->common);
}
