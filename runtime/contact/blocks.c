#include "blocks.h"
#include <math.h>
#include <string.h>
#include "base/linalg.h"

struct block_factors {
    int n, wide; /* contacts; rows and columns of a block, whose numbers are stored row by row */
    const int *first, *count, *start; /* of the matrix */
    int *order;                       /* contact at each place */
    int *at;                          /* for each number of the matrix: its place in `work` */
    /* Blocks right of the diagonal by rows, and left of it: rows of the other one. */
    int *U_start, *U_col, *L_start, *L_col;
    double *U, *L, *D; /* D: inverse of the diagonal blocks */
    bool *none;        /* rows of U that are 0, such as those of open contacts */
    double *work, *x;  /* a row of blocks, 0 between uses; a solution in elimination order */
};

/* Neighbours of each contact, in both directions. */
typedef struct graph {
    int *start, *list;
} graph;

static graph neighbours(arena *a, int n, const int *first, const int *count, const int *start, const int *col,
                        const int *of)
{
    int *seen = arena_array(a, int, n), *from = arena_array(a, int, n + 2), all = 0;
    graph once = { arena_array(a, int, n + 1), NULL };
    vec(int) list = { 0 };
    for (int c = 0; c < n; c++) {
        once.start[c] = (int)list.n;
        for (int k = start[first[c]]; k < start[first[c] + count[c]]; k++) {
            int o = of[col[k]];
            if (o != c && seen[o] != c + 1) {
                seen[o] = c + 1;
                *vec_push(a, &list) = o;
                from[o + 2]++;
            }
        }
    }
    once.start[n] = (int)list.n;
    for (int c = 2; c < n + 2; c++)
        from[c] += from[c - 1];
    int *back = arena_array(a, int, list.n + 1);
    for (int c = 0; c < n; c++)
        for (int k = once.start[c]; k < once.start[c + 1]; k++)
            back[from[list.at[k] + 1]++] = c;
    graph g = { arena_array(a, int, n + 1), arena_array(a, int, 2 * list.n + 1) };
    memset(seen, 0, (size_t)n * sizeof *seen);
    for (int c = 0; c < n; c++) {
        g.start[c] = all;
        for (int k = once.start[c]; k < once.start[c + 1]; k++) {
            seen[list.at[k]] = c + 1;
            g.list[all++] = list.at[k];
        }
        for (int k = from[c]; k < from[c + 1]; k++)
            if (seen[back[k]] != c + 1)
                g.list[all++] = back[k];
    }
    g.start[n] = all;
    return g;
}

/* Row i of L consists of its neighbours and the nodes above them in the elimination tree. Counts the blocks
   of each row of U, or stores them at `to`. */
static void reach(const block_factors *f, const graph *g, const int *place, int *parent, int *seen,
                  int *blocks, int *to)
{
    for (int i = 0; i < f->n; i++) {
        parent[i] = -1;
        seen[i] = i;
        for (int q = g->start[f->order[i]]; q < g->start[f->order[i] + 1]; q++)
            for (int k = place[g->list[q]]; k < i && seen[k] != i; k = parent[k]) {
                if (parent[k] < 0)
                    parent[k] = i;
                seen[k] = i;
                if (to)
                    f->U_col[to[k]++] = i;
                else
                    blocks[k]++;
            }
    }
}

/* Finds which blocks the factors have. */
static void pattern(block_factors *f, const graph *g, const int *place, arena *a)
{
    int n = f->n, *parent = arena_array(a, int, n), *seen = arena_array(a, int, n),
        *to = arena_array(a, int, n + 1), *blocks = arena_array(a, int, n + 1);
    f->U_start = arena_array(a, int, n + 1);
    f->L_start = arena_array(a, int, n + 1);
    reach(f, g, place, parent, seen, blocks, NULL);
    for (int k = 0; k < n; k++)
        to[k + 1] = f->U_start[k + 1] = f->U_start[k] + blocks[k];
    int all = f->U_start[n];
    f->U_col = arena_array(a, int, all + 1);
    f->L_col = arena_array(a, int, all + 1);
    reach(f, g, place, parent, seen, blocks, to);
    for (int k = 0; k < all; k++)
        f->L_start[f->U_col[k] + 1]++;
    for (int k = 0; k < n; k++)
        f->L_start[k + 1] += f->L_start[k];
    memcpy(to, f->L_start, (size_t)(n + 1) * sizeof *to);
    for (int k = 0; k < n; k++)
        for (int q = f->U_start[k]; q < f->U_start[k + 1]; q++)
            f->L_col[to[f->U_col[q]]++] = k;
    size_t numbers = (size_t)(f->wide * f->wide) * ((size_t)all + 1);
    f->U = arena_array(a, double, numbers);
    f->L = arena_array(a, double, numbers);
}

block_factors *block_factors_new(arena *a, int n, const int *first, const int *count, const int *start,
                                 const int *col)
{
    block_factors *f = arena_make(a, block_factors);
    int m = 0, wide = 2, *place = arena_array(a, int, n);
    for (int c = 0; c < n; c++) {
        m = first[c] + count[c] > m ? first[c] + count[c] : m;
        wide = count[c] > wide ? count[c] : wide;
    }
    int *of = arena_array(a, int, m + 1);
    for (int c = 0; c < n; c++)
        for (int i = first[c]; i < first[c] + count[c]; i++)
            of[i] = c;
    *f = (block_factors){ .n = n, .wide = wide, .first = first, .count = count, .start = start };
    f->order = arena_array(a, int, n);
    graph g = neighbours(a, n, first, count, start, col, of);
    if (wide > BLOCKS_WIDE || !sparse_order(n, g.start, g.list, f->order))
        return NULL;
    for (int i = 0; i < n; i++)
        place[f->order[i]] = i;
    pattern(f, &g, place, a);
    f->none = arena_array(a, bool, n);
    f->D = arena_array(a, double, (size_t)(wide * wide) * (size_t)n);
    f->work = arena_array(a, double, (size_t)(wide * wide) * (size_t)n);
    f->x = arena_array(a, double, (size_t)wide *(size_t)n);
    f->at = arena_array(a, int, start[m] + 1);
    for (int i = 0; i < m; i++)
        for (int k = start[i]; k < start[i + 1]; k++) {
            int o = of[col[k]];
            f->at[k] = wide * (wide * place[o] + i - first[of[i]]) + col[k] - first[o];
        }
    return f;
}

/* Adds the row of contact c to `work`; missing rows get a diagonal of 1. */
static void row_put(block_factors *f, int i, const double *x)
{
    int c = f->order[i], row = f->first[c], wide = f->wide;
    for (int k = f->start[row]; k < f->start[row + f->count[c]]; k++)
        f->work[f->at[k]] += x[k];
    for (int j = f->count[c]; j < wide; j++)
        f->work[wide * (wide * i + j) + j] = 1;
}

static inline bool invert2(const double *z, double *d)
{
    double det = z[0] * z[3] - z[1] * z[2], f = 1 / det;
    d[0] = f * z[3];
    d[1] = -f * z[1];
    d[2] = -f * z[2];
    d[3] = f * z[0];
    return isfinite(f);
}

static inline bool invert3(const double *z, double *d)
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            int p = (j + 1) % 3, q = (j + 2) % 3, r = (i + 1) % 3, s = (i + 2) % 3;
            d[3 * i + j] = z[3 * p + r] * z[3 * q + s] - z[3 * p + s] * z[3 * q + r];
        }
    double f = 1 / (z[0] * d[0] + z[1] * d[3] + z[2] * d[6]);
    for (int i = 0; i < 9; i++)
        d[i] *= f;
    return isfinite(f);
}

/* Two adjacent numbers. */
typedef double two __attribute__((vector_size(2 * sizeof(double))));

static inline two two_at(const double *x)
{
    two v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline void two_put(double *x, two v)
{
    memcpy(x, &v, sizeof v);
}

/* z - a b for a row a of two or three numbers and the rows of b; the result may overwrite z. */
static inline void row_less2(const double *a, const double *b, const double *z, double *to)
{
    two_put(to, two_at(z) - (a[0] * two_at(b) + a[1] * two_at(b + 2)));
}

static inline void row_less3(const double *a, const double *b, const double *z, double *to)
{
    double last = z[2] - (a[0] * b[2] + a[1] * b[5] + a[2] * b[8]);
    two_put(to, two_at(z) - (a[0] * two_at(b) + a[1] * two_at(b + 3) + a[2] * two_at(b + 6)));
    to[2] = last;
}

/* z -= a b. */
static inline void less(const double *a, const double *b, double *z, int wide)
{
    if (wide == 2) {
        row_less2(a, b, z, z);
        row_less2(a + 2, b, z + 2, z + 2);
    } else {
        row_less3(a, b, z, z);
        row_less3(a + 3, b, z + 3, z + 3);
        row_less3(a + 6, b, z + 6, z + 6);
    }
}

static inline bool is_none(const double *z, int wide)
{
    for (int i = 0; i < wide * wide; i++)
        if (z[i] != 0)
            return false;
    return true;
}

/* `wide` is a constant at each call, so that separate code is compiled for each value. */
static inline __attribute__((always_inline)) bool factorise(block_factors *f, const double *x, const int wide)
{
    const size_t numbers = (size_t)(wide * wide);
    for (int i = 0; i < f->n; i++) {
        row_put(f, i, x);
        for (int q = f->L_start[i]; q < f->L_start[i + 1]; q++) {
            size_t k = (size_t)f->L_col[q];
            double *z = f->work + numbers * k, l[BLOCKS_WIDE * BLOCKS_WIDE] = { 0 };
            if (is_none(z, wide)) {
                memset(f->L + numbers * (size_t)q, 0, numbers * sizeof *z);
                continue;
            }
            less(z, f->D + numbers * k, l, wide);
            memset(z, 0, numbers * sizeof *z);
            for (size_t j = 0; j < numbers; j++)
                f->L[numbers * (size_t)q + j] = l[j] = -l[j];
            for (int j = f->U_start[k]; !f->none[k] && j < f->U_start[k + 1]; j++)
                less(l, f->U + numbers * (size_t)j, f->work + numbers * (size_t)f->U_col[j], wide);
        }
        f->none[i] = true;
        for (int q = f->U_start[i]; q < f->U_start[i + 1]; q++) {
            double *z = f->work + numbers * (size_t)f->U_col[q];
            f->none[i] = f->none[i] && is_none(z, wide);
            memcpy(f->U + numbers * (size_t)q, z, numbers * sizeof *z);
            memset(z, 0, numbers * sizeof *z);
        }
        double *z = f->work + numbers * (size_t)i, *d = f->D + numbers * (size_t)i;
        bool ok = wide == 2 ? invert2(z, d) : invert3(z, d);
        memset(z, 0, numbers * sizeof *z);
        if (!ok)
            return false;
    }
    return true;
}

bool block_factors_put(block_factors *f, const double *x)
{
    return f->wide == 2 ? factorise(f, x, 2) : factorise(f, x, 3);
}

/* y -= the blocks times the x of their columns. */
static inline void row_times(const double *block, const int *col, int n, const double *x, double *y, int wide)
{
    for (int k = 0; k < n; k++, block += wide * wide) {
        const double *v = x + (size_t)wide * (size_t)col[k];
        if (wide == 2) {
            y[0] -= block[0] * v[0] + block[1] * v[1];
            y[1] -= block[2] * v[0] + block[3] * v[1];
        } else {
            y[0] -= block[0] * v[0] + block[1] * v[1] + block[2] * v[2];
            y[1] -= block[3] * v[0] + block[4] * v[1] + block[5] * v[2];
            y[2] -= block[6] * v[0] + block[7] * v[1] + block[8] * v[2];
        }
    }
}

static inline __attribute__((always_inline)) void solve(const block_factors *f, double *b, const int wide)
{
    const size_t numbers = (size_t)(wide * wide);
    double *x = f->x;
    for (int i = 0; i < f->n; i++) {
        int c = f->order[i], from = f->L_start[i];
        for (int j = 0; j < wide; j++)
            x[wide * i + j] = j < f->count[c] ? b[f->first[c] + j] : 0;
        row_times(f->L + numbers * (size_t)from, f->L_col + from, f->L_start[i + 1] - from, x, x + wide * i,
                  wide);
    }
    for (int i = f->n - 1; i >= 0; i--) {
        int c = f->order[i], from = f->U_start[i];
        const double *d = f->D + numbers * (size_t)i;
        double y[BLOCKS_WIDE];
        memcpy(y, x + wide * i, (size_t)wide * sizeof *y);
        row_times(f->U + numbers * (size_t)from, f->U_col + from, f->U_start[i + 1] - from, x, y, wide);
        for (int j = 0; j < wide; j++) {
            x[wide * i + j] = 0;
            for (int k = 0; k < wide; k++)
                x[wide * i + j] += d[wide * j + k] * y[k];
        }
        for (int j = 0; j < f->count[c]; j++)
            b[f->first[c] + j] = x[wide * i + j];
    }
}

void block_factors_solve(const block_factors *f, double *b)
{
    if (f->wide == 2)
        solve(f, b, 2);
    else
        solve(f, b, 3);
}
