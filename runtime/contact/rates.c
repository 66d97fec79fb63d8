/* rates: with v = K^T x the equations A x + B J v = y of each contact give x = A^-1 (y - B J v), and these
   give (1 + sum K^T A^-1 B J) v = sum K^T A^-1 y: one row for each dof. */
#include "rates.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/linalg.h"
#include "blocks.h"
#include "impulses.h"
#include "base/tolerances.h"

struct rate_factors {
    const contact_problem *p;
    int n;                 /* dofs of the contacts */
    int *dof_at, *dof;     /* of contact c, renumbered: dof[dof_at[c]] .. */
    const double **J, **K; /* rows of each contact */
    /* The matrix by rows of dofs, and the places to which contacts add: to[to_at[c] + i * (its dofs) + j]. */
    int *start, *col, *diagonal, *to;
    size_t *to_at;
    double *val, *v;
    double *inverse, *G; /* of each contact: A^-1, A^-1 B; A^-1 is stored as 0 if not needed */
    bool *acts;          /* G is not 0 */
    block_factors *blocks;
};

/* Index of contact c in the list that contains its rows. */
static int list_place(const contact_problem *p, int c)
{
    return p->listed[c];
}

static int by_number(const void *a, const void *b)
{
    const int *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The dofs of these contacts, each once, sorted; uses no array over all dofs. */
static int dofs_sorted(const contact_problem *p, int *dof)
{
    const contact_list *l = p->list;
    int all = 0, n = 0;
    for (int c = 0; c < p->n; c++)
        for (int k = l->dof_at[list_place(p, c)]; k < l->dof_at[list_place(p, c) + 1]; k++)
            dof[all++] = l->dof[k];
    qsort(dof, (size_t)all, sizeof *dof, by_number);
    for (int k = 0; k < all; k++)
        if (n == 0 || dof[n - 1] != dof[k])
            dof[n++] = dof[k];
    return n;
}

/* Numbers dofs in the order in which contacts contain them. The dofs of a body have the same contacts: such
   neighbours are grouped into blocks of up to three. */
static int dofs_number(rate_factors *f, uint64_t *met, int dofs, arena *a)
{
    const contact_list *l = f->p->list;
    int *sorted = arena_array(a, int, dofs), *number = arena_array(a, int, dofs);
    size_t many = (size_t)dofs_sorted(f->p, sorted);
    for (int c = 0, at = 0; c < f->p->n; c++) {
        int place = list_place(f->p, c);
        f->dof_at[c] = at;
        for (int k = l->dof_at[place]; k < l->dof_at[place + 1]; k++) {
            const int *found = bsearch(&l->dof[k], sorted, many, sizeof *sorted, by_number);
            int *of = &number[found - sorted];
            if (!*of)
                *of = ++f->n;
            f->dof[at] = *of - 1;
            met[f->dof[at]] = (met[f->dof[at]] ^ (uint64_t)(c + 1)) * 0x9e3779b97f4a7c15u;
            at++;
        }
        f->dof_at[c + 1] = at;
    }
    return f->n;
}

typedef struct dof_blocks {
    int n, *first, *count, *of; /* of: the block of each dof */
} dof_blocks;

static dof_blocks blocks_make(const rate_factors *f, const uint64_t *met, arena *a)
{
    dof_blocks b = { 0, arena_array(a, int, f->n + 1), arena_array(a, int, f->n + 1),
                     arena_array(a, int, f->n + 1) };
    for (int i = 0; i < f->n; i++) {
        bool new = i == 0 || met[i] != met[i - 1] || b.count[b.n - 1] == BLOCKS_WIDE;
        if (new)
            b.first[b.n++] = i;
        b.count[b.n - 1]++;
        b.of[i] = b.n - 1;
    }
    return b;
}

/* Contacts at each block. */
typedef struct block_contacts {
    int *start, *list;
} block_contacts;

static block_contacts contacts_at(const rate_factors *f, const dof_blocks *b, arena *a)
{
    block_contacts t = { arena_array(a, int, b->n + 2), NULL };
    int n = f->p->n;
    for (int pass = 0; pass < 2; pass++) {
        for (int c = 0; c < n; c++)
            for (int k = f->dof_at[c]; k < f->dof_at[c + 1]; k++) {
                int block = b->of[f->dof[k]];
                if (b->first[block] != f->dof[k])
                    continue;
                if (pass == 0)
                    t.start[block + 2]++;
                else
                    t.list[t.start[block + 1]++] = c;
            }
        for (int i = 2; pass == 0 && i < b->n + 2; i++)
            t.start[i] += t.start[i - 1];
        if (pass == 0)
            t.list = arena_array(a, int, t.start[b->n + 1] + 1);
    }
    return t;
}

/* Columns of the rows of a block: those of all blocks that share a contact with it, one after the other;
   at[o]: where block o begins. */
static int row_columns(const rate_factors *f, const dof_blocks *b, const block_contacts *t, int block,
                       int *seen, int *at, int *col)
{
    int n = 0;
    for (int q = t->start[block]; q < t->start[block + 1]; q++) {
        int c = t->list[q];
        for (int k = f->dof_at[c]; k < f->dof_at[c + 1]; k++) {
            int o = b->of[f->dof[k]];
            if (seen[o] == block + 1)
                continue;
            seen[o] = block + 1;
            at[o] = n;
            for (int j = 0; j < b->count[o]; j++, n++)
                if (col)
                    col[n] = b->first[o] + j;
        }
    }
    return n;
}

/* The places to which contact c adds in the rows of a block that begin at `start`. */
static void places_put(rate_factors *f, const dof_blocks *b, int block, int c, const int *at)
{
    const int *dof = f->dof + f->dof_at[c];
    int n = f->dof_at[c + 1] - f->dof_at[c], *to = f->to + f->to_at[c];
    for (int i = 0; i < n; i++) {
        if (b->of[dof[i]] != block)
            continue;
        for (int j = 0; j < n; j++) {
            int o = b->of[dof[j]];
            to[i * n + j] = f->start[dof[i]] + at[o] + dof[j] - b->first[o];
        }
    }
}

static void pattern(rate_factors *f, const dof_blocks *b, arena *a)
{
    block_contacts t = contacts_at(f, b, a);
    int *seen = arena_array(a, int, b->n), *at = arena_array(a, int, b->n), all = 0;
    f->start = arena_array(a, int, f->n + 1);
    for (int block = 0; block < b->n; block++) {
        int n = row_columns(f, b, &t, block, seen, at, NULL);
        for (int j = 0; j < b->count[block]; j++, all += n)
            f->start[b->first[block] + j] = all;
    }
    f->start[f->n] = all;
    f->col = arena_array(a, int, all + 1);
    f->val = arena_array(a, double, all + 1);
    memset(seen, 0, (size_t)b->n * sizeof *seen);
    for (int block = 0; block < b->n; block++) {
        int first = b->first[block], n = row_columns(f, b, &t, block, seen, at, f->col + f->start[first]);
        for (int j = 1; j < b->count[block]; j++)
            memcpy(f->col + f->start[first + j], f->col + f->start[first], (size_t)n * sizeof *f->col);
        for (int j = 0; j < b->count[block]; j++)
            f->diagonal[first + j] = f->start[first + j] + at[block] + j;
        for (int q = t.start[block]; q < t.start[block + 1]; q++)
            places_put(f, b, block, t.list[q], at);
    }
}

/* Worth it if the factors are much smaller; their cost grows with the cube. */
bool rates_worth(int rows, int dofs)
{
    enum { TIMES = 2 };
    return rows > TIMES * dofs;
}

static bool worth(const contact_problem *p, int dofs)
{
    for (int c = 0; c < p->n; c++)
        if (cone_rows(&p->cone[c]) > RATES_WIDE)
            return false;
    return rates_worth(p->m, dofs);
}

rate_factors *rate_factors_new(arena *a, const contact_problem *p)
{
    const contact_list *l = p->list;
    if (!l)
        return NULL;
    arena_pos mark = arena_mark(a);
    rate_factors *f = arena_make(a, rate_factors);
    size_t n = (size_t)p->n, all = 0, squares = 0;
    for (int c = 0; c < p->n; c++) {
        size_t k = (size_t)(l->dof_at[list_place(p, c) + 1] - l->dof_at[list_place(p, c)]);
        all += k;
        squares += k * k;
    }
    *f = (rate_factors){ .p = p,
                         .dof_at = arena_array(a, int, n + 1),
                         .dof = arena_array(a, int, all + 1),
                         .to_at = arena_array(a, size_t, n + 1),
                         .to = arena_array(a, int, squares + 1) };
    uint64_t *met = arena_array(a, uint64_t, all + 1);
    if (!worth(p, dofs_number(f, met, (int)all, a))) {
        arena_release(a, mark);
        return NULL;
    }
    f->J = arena_array(a, const double *, n);
    f->K = arena_array(a, const double *, n);
    f->acts = arena_array(a, bool, n);
    f->inverse = arena_array(a, double, n *RATES_BLOCK);
    f->G = arena_array(a, double, n *RATES_BLOCK);
    f->v = arena_array(a, double, f->n);
    f->diagonal = arena_array(a, int, f->n);
    for (int c = 0; c < p->n; c++) {
        int wide = f->dof_at[c + 1] - f->dof_at[c];
        f->J[c] = l->J + l->J_at[list_place(p, c)];
        f->K[c] = l->K + l->J_at[list_place(p, c)];
        f->to_at[c + 1] = f->to_at[c] + (size_t)(wide * wide);
    }
    dof_blocks b = blocks_make(f, met, a);
    pattern(f, &b, a);
    f->blocks = block_factors_new(a, b.n, b.first, b.count, f->start, f->col);
    if (f->blocks)
        return f;
    arena_release(a, mark);
    return NULL;
}

/* The inverse of an m x m matrix, which is overwritten, row by row; false: singular. */
static bool invert(double *A, int m, double *to)
{
    for (int i = 0; i < m * m; i++)
        to[i] = i % (m + 1) == 0;
    for (int k = 0; k < m; k++) {
        int pivot = k;
        for (int i = k + 1; i < m; i++)
            if (fabs(A[i * m + k]) > fabs(A[pivot * m + k]))
                pivot = i;
        double d = 1 / A[pivot * m + k];
        if (!isfinite(d))
            return false;
        for (int j = 0; j < m; j++) {
            double x = A[k * m + j], y = to[k * m + j];
            A[k * m + j] = A[pivot * m + j] * d;
            to[k * m + j] = to[pivot * m + j] * d;
            if (pivot != k) {
                A[pivot * m + j] = x;
                to[pivot * m + j] = y;
            }
        }
        for (int i = 0; i < m; i++) {
            double s = A[i * m + k];
            for (int j = 0; i != k && s != 0 && j < m; j++) {
                A[i * m + j] -= s * A[k * m + j];
                to[i * m + j] -= s * to[k * m + j];
            }
        }
    }
    return true;
}

/* Adds K^T G J of a contact. */
static void contact_add(rate_factors *f, int c)
{
    int n = f->dof_at[c + 1] - f->dof_at[c], m = cone_rows(&f->p->cone[c]);
    const double *G = f->G + (size_t)c * RATES_BLOCK, *J = f->J[c], *K = f->K[c];
    const int *to = f->to + f->to_at[c];
    for (int i = 0; i < n; i++) {
        double g[RATES_WIDE] = { 0 };
        for (int b = 0; b < m; b++)
            for (int k = 0; k < m; k++)
                g[b] += K[k * n + i] * G[k * m + b];
        for (int j = 0; j < n; j++) {
            double x = 0;
            for (int b = 0; b < m; b++)
                x += g[b] * J[b * n + j];
            f->val[to[i * n + j]] += x;
        }
    }
}

bool rate_factors_put(rate_factors *f, double *A, const double *B)
{
    memset(f->val, 0, (size_t)f->start[f->n] * sizeof *f->val);
    for (int i = 0; i < f->n; i++)
        f->val[f->diagonal[i]] = 1;
    for (int c = 0; c < f->p->n; c++) {
        int m = cone_rows(&f->p->cone[c]);
        double *inverse = f->inverse + (size_t)c * RATES_BLOCK, *G = f->G + (size_t)c * RATES_BLOCK;
        const double *b = B + (size_t)c * RATES_BLOCK;
        if (!invert(A + (size_t)c * RATES_BLOCK, m, inverse))
            return false;
        f->acts[c] = false;
        for (int i = 0; i < m; i++)
            for (int j = 0; j < m; j++) {
                double x = 0;
                for (int k = 0; k < m; k++)
                    x += inverse[i * m + k] * b[k * m + j];
                G[i * m + j] = x;
                f->acts[c] |= x != 0;
            }
        if (f->acts[c])
            contact_add(f, c);
    }
    return block_factors_put(f->blocks, f->val);
}

/* v = K^T r. */
static void push(const rate_factors *f, const double *r, double *v)
{
    memset(v, 0, (size_t)f->n * sizeof *v);
    for (int c = 0; c < f->p->n; c++) {
        int n = f->dof_at[c + 1] - f->dof_at[c], m = cone_rows(&f->p->cone[c]);
        const int *dof = f->dof + f->dof_at[c];
        const double *x = r + f->p->cone[c].row, *K = f->K[c];
        for (int a = 0; a < m; a++)
            for (int k = 0; x[a] != 0 && k < n; k++)
                v[dof[k]] += x[a] * K[a * n + k];
    }
}

/* Row a of contact c times v. */
static double rate(const rate_factors *f, int c, int a, const double *v)
{
    int n = f->dof_at[c + 1] - f->dof_at[c];
    const int *dof = f->dof + f->dof_at[c];
    const double *J = f->J[c] + (size_t)(a * n);
    double u = 0;
    for (int k = 0; k < n; k++)
        u += J[k] * v[dof[k]];
    return u;
}

void rate_factors_times(const rate_factors *f, const double *r, double *u)
{
    push(f, r, f->v);
    for (int c = 0; c < f->p->n; c++)
        for (int a = 0; a < cone_rows(&f->p->cone[c]); a++)
            u[f->p->cone[c].row + a] = rate(f, c, a, f->v);
}

void rate_factors_diagonal(const rate_factors *f, double *an, double *at)
{
    for (int c = 0; c < f->p->n; c++) {
        const cone *o = &f->p->cone[c];
        int n = f->dof_at[c + 1] - f->dof_at[c], normal = cone_normal(o);
        an[c] = normal ? vec_dot(f->J[c], f->K[c], n) : 0;
        at[c] = 0;
        for (int a = normal; a < cone_rows(o); a++)
            at[c] = fmax(at[c], vec_dot(f->J[c] + (size_t)(a * n), f->K[c] + (size_t)(a * n), n));
    }
}

void rate_factors_solve(const rate_factors *f, double *x)
{
    for (int c = 0; c < f->p->n; c++) {
        int m = cone_rows(&f->p->cone[c]);
        const double *inverse = f->inverse + (size_t)c * RATES_BLOCK;
        double *own = x + f->p->cone[c].row, y[RATES_WIDE] = { 0 };
        for (int i = 0; i < m; i++)
            for (int j = 0; j < m; j++)
                y[i] += inverse[i * m + j] * own[j];
        memcpy(own, y, (size_t)m * sizeof *y);
    }
    push(f, x, f->v);
    block_factors_solve(f->blocks, f->v);
    for (int c = 0; c < f->p->n; c++) {
        int m = cone_rows(&f->p->cone[c]);
        const double *G = f->G + (size_t)c * RATES_BLOCK;
        double *own = x + f->p->cone[c].row, u[RATES_WIDE];
        for (int j = 0; f->acts[c] && j < m; j++)
            u[j] = rate(f, c, j, f->v);
        for (int i = 0; f->acts[c] && i < m; i++)
            for (int j = 0; j < m; j++)
                own[i] -= G[i * m + j] * u[j];
    }
}
