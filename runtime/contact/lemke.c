/* One tangential component makes the cone a pair of half lines. With k = mu r_n + s + r_t (s: the given part
   of the bound) and m the slip in the other direction,
       0 <= r_n perp u_n,      0 <= k perp u_t + m,      0 <= m perp 2 (mu r_n + s) - k
   is Coulomb's law. The matrix is copositive if W is semidefinite, singular or not: this is the case in which
   Lemke's method finds a solution. */
#include "lemke.h"
#include <math.h>
#include <string.h>
#include "base/linalg.h"

/* ---- the linear complementarity problem, in three precisions ---- */
#define REAL        double
#define NAME(x)     x##_double
#define LEAST_PIVOT LEMKE_PIVOT_DOUBLE
#define ROUNDING    LEMKE_ROUND_DOUBLE
#include "lemke_pivots.h"
#undef REAL
#undef NAME
#undef LEAST_PIVOT
#undef ROUNDING
#define REAL        long double
#define NAME(x)     x##_long
#define LEAST_PIVOT LEMKE_PIVOT_LONG
#define ROUNDING    LEMKE_ROUND_LONG
#include "lemke_pivots.h"
#undef REAL
#undef NAME
#undef LEAST_PIVOT
#undef ROUNDING
/* clang supports the type only by its older name */
#ifdef __SIZEOF_FLOAT128__
#define REAL __float128
#else
#define REAL _Float128
#endif
#define NAME(x)     x##_quad
#define LEAST_PIVOT LEMKE_PIVOT_QUAD
#define ROUNDING    LEMKE_ROUND_QUAD
#include "lemke_pivots.h"
#include "base/tolerances.h"

/* Solves for the positive unknowns of the pivots again from their equations with more digits: M_ZZ z_Z =
   -q_Z. The result is used if they are still nonnegative. */
static void refine(int n, const double *M, const double *q, double *z, arena *scratch)
{
    arena_pos mark = arena_mark(scratch);
    int *at = arena_array(scratch, int, n), k = 0;
    for (int i = 0; i < n; i++)
        if (z[i] > 0)
            at[k++] = i;
    int wide = k + 1;
    long double *A = arena_array(scratch, long double, (size_t)k *wide), least = 0;
    for (int i = 0; i < k; i++) {
        for (int j = 0; j < k; j++)
            A[(size_t)i * wide + j] = M[(size_t)at[i] * n + at[j]];
        A[(size_t)i * wide + k] = -q[at[i]];
    }
    for (int c = 0; c < k; c++) {
        int p = c;
        for (int i = c + 1; i < k; i++)
            if (fabsl(A[(size_t)i * wide + c]) > fabsl(A[(size_t)p * wide + c]))
                p = i;
        if (fabsl(A[(size_t)p * wide + c]) < LEMKE_PIVOT_LONG) {
            arena_release(scratch, mark);
            return;
        }
        for (int j = c; p != c && j < wide; j++) {
            long double x = A[(size_t)p * wide + j];
            A[(size_t)p * wide + j] = A[(size_t)c * wide + j];
            A[(size_t)c * wide + j] = x;
        }
        for (int i = c + 1; i < k; i++) {
            long double *x = A + (size_t)i * wide, *y = A + (size_t)c * wide, f = x[c] / y[c];
            for (int j = c + 1; f != 0 && j < wide; j++)
                x[j] -= f * y[j];
        }
    }
    for (int i = k; i-- > 0;) {
        long double *x = A + (size_t)i * wide;
        for (int j = i + 1; j < k; j++)
            x[k] -= x[j] * A[(size_t)j * wide + k];
        x[k] /= x[i];
        if (x[k] < least)
            least = x[k];
    }
    for (int i = 0; least >= 0 && i < k; i++)
        z[at[i]] = (double)A[(size_t)i * wide + k];
    arena_release(scratch, mark);
}

bool lemke_solve(int n, const double *M, const double *q, double *z, lemke_digits digits, arena *scratch)
{
    if (digits == LEMKE_QUAD)
        return solve_quad(n, M, q, z, scratch);
    if (digits == LEMKE_LONG)
        return solve_long(n, M, q, z, scratch);
    bool ok = solve_double(n, M, q, z, scratch);
    if (ok)
        refine(n, M, q, z, scratch);
    return ok;
}

/* ---- contacts ---- */
typedef enum { PUSH, PULL, SIDE, SLIP } part;
typedef struct {
    part kind;
    int contact, row;
    double s;
} unknown;
/* A reaction as a sum of unknowns; -1: none. */
typedef struct {
    int z[2];
    double k[2];
} share;

static bool rough(const cone *c)
{
    return c->d > 0 && (c->mu != 0 || c->radius != 0);
}

bool lemke_knows(const cone *c)
{
    if (c->kind == CONE_BILATERAL && rough(c))
        return false;
    return !rough(c) || c->dir || c->d == 1;
}

/* Unknowns of one contact, and its reactions as sums of them; r contains the given part. */
static int unknowns(const contact_problem *p, int c, unknown *x, int n, share *of, double *r)
{
    const cone *o = &p->cone[c];
    int top = cone_normal(o), first = n;
    double s = top ? 1 / sqrt(problem_entry(p, c, 0, o->row)) : 0;
    for (int j = 0; j < cone_rows(o); j++) {
        of[o->row + j] = (share){ { -1, -1 }, { 0, 0 } };
        r[o->row + j] = 0;
    }
    if (top) {
        of[o->row] = (share){ { n, -1 }, { 1, 0 } };
        x[n++] = (unknown){ PUSH, c, o->row, s };
    }
    if (o->kind == CONE_BILATERAL) {
        of[o->row].z[1] = n;
        of[o->row].k[1] = -1;
        x[n++] = (unknown){ PULL, c, o->row, s };
    }
    if (!rough(o))
        return n;
    for (int j = 0; j < o->d; j++) {
        double e = o->dir ? o->dir[j] : 1;
        if (top)
            of[o->row + top + j] = (share){ { first, -1 }, { -o->mu * e, 0 } };
        r[o->row + top + j] = -o->radius * e;
    }
    if (o->dir)
        return n;
    s = 1 / sqrt(problem_entry(p, c, top, o->row + top));
    of[o->row + top].z[1] = n;
    of[o->row + top].k[1] = 1;
    x[n++] = (unknown){ SIDE, c, o->row + top, s };
    x[n++] = (unknown){ SLIP, c, -1, 1 / s };
    return n;
}

static void equation(const contact_problem *p, const unknown *x, int i, const share *of, const double *r,
                     double *M, double *q)
{
    const cone *o = &p->cone[x[i].contact];
    if (x[i].kind == SLIP) {
        if (cone_normal(o))
            M[i - 2] = 2 * o->mu;
        M[i - 1] = -1;
        *q = 2 * o->radius;
        return;
    }
    int c = x[i].contact, n = problem_width(p, c);
    const int *col = problem_columns(p, c);
    const double *v = problem_row(p, c, x[i].row - o->row);
    double sign = x[i].kind == PULL ? -1 : 1;
    *q = p->b[x[i].row];
    for (int k = 0; k < n; k++) {
        int j = col[k];
        *q += v[k] * r[j];
        for (int a = 0; a < 2; a++)
            if (of[j].z[a] >= 0)
                M[of[j].z[a]] += sign * of[j].k[a] * v[k];
    }
    *q *= sign;
    if (x[i].kind == SIDE)
        M[i + 1] = 1;
}

bool lemke_contacts(const contact_problem *p, const int *who, int n, double *r, lemke_digits digits,
                    arena *scratch)
{
    arena_pos mark = arena_mark(scratch);
    share *of = arena_array(scratch, share, p->m);
    unknown *x = arena_array(scratch, unknown, 3 * (size_t)n);
    int N = 0;
    for (int i = 0; i < p->m; i++)
        of[i].z[0] = of[i].z[1] = -1;
    for (int i = 0; i < n; i++)
        N = unknowns(p, who[i], x, N, of, r);
    size_t all = (size_t)N * (size_t)N;
    double *M = arena_array(scratch, double, all), *q = arena_array(scratch, double, N),
           *z = arena_array(scratch, double, N);
    for (int i = 0; i < N; i++) {
        double *Mi = M + (size_t)i * N;
        equation(p, x, i, of, r, Mi, &q[i]);
        q[i] *= x[i].s;
        for (int j = 0; j < N; j++)
            Mi[j] *= x[i].s * x[j].s;
    }
    bool ok = lemke_solve(N, M, q, z, digits, scratch);
    for (int i = 0; i < n; i++) {
        const cone *o = &p->cone[who[i]];
        for (int j = o->row; j < o->row + cone_rows(o); j++)
            for (int a = 0; a < 2; a++)
                if (of[j].z[a] >= 0)
                    r[j] += of[j].k[a] * z[of[j].z[a]] * x[of[j].z[a]].s;
    }
    arena_release(scratch, mark);
    return ok;
}
