/* One tangent component makes the cone a pair of half lines.  With k = mu r_n + s + r_t (s: the part of the bound that is given) and m the slip to the other side,
       0 <= r_n  perp  u_n,      0 <= k  perp  u_t + m,      0 <= m  perp  2 (mu r_n + s) - k
   is Coulomb's law; the matrix is copositive when W is semidefinite, singular or not: that is where Lemke's way leads to a solution. */
#include "lemke.h"
#include <math.h>
#include <string.h>
#include "linalg.h"

/* ---- the linear complementarity problem: basic = T nonbasic + last column ---- */
typedef struct { int n, wide; double *T; int *basic, *out; } tableau;       /* variables: w is 0..n-1, z is n..2n-1, the cover 2n */

static void pivot(tableau *l, int row, int col)
{
    double *restrict t = l->T + (size_t)row * l->wide, p = -1 / t[col];
    int wide = l->wide;
    for (int j = 0; j < wide; j++) t[j] *= p;
    t[col] = -p;
    for (int i = 0; i < l->n; i++) {
        double *restrict x = l->T + (size_t)i * wide, f = x[col];
        if (i == row || f == 0) continue;
        x[col] = 0;
        for (int j = 0; j < wide; j++) x[j] += f * t[j];
    }
    int v = l->basic[row];
    l->basic[row] = l->out[col];
    l->out[col] = v;
}

/* Which basic variable is the first to reach 0?  Of those within rounding of it the cover, else the one with the largest pivot. */
static int first_to_leave(const tableau *l, int col)
{
    enum { COVER_FIRST = 2 };
    double least = INFINITY, big = 0;
    int best = -1;
    for (int i = 0; i < l->n; i++) {
        const double *t = l->T + (size_t)i * l->wide;
        if (t[col] < -1e-11) least = fmin(least, (fmax(t[l->wide - 1], 0) + 1e-13) / -t[col]);
    }
    for (int i = 0; i < l->n; i++) {
        const double *t = l->T + (size_t)i * l->wide;
        if (!(t[col] < -1e-11) || t[l->wide - 1] > least * -t[col]) continue;
        double size = l->basic[i] == 2 * l->n ? INFINITY : -t[col];
        if (size > big) { big = size; best = i; }
    }
    return best;
}

static bool pivots(tableau *l)
{
    int cover = 2 * l->n, last = l->n + 1, row = 0, col = l->n, limit = 20 * l->n + 100;
    double worst = 0;
    for (int i = 0; i < l->n; i++) {
        const double *t = l->T + (size_t)i * l->wide;
        if (t[last] / t[col] < worst) { worst = t[last] / t[col]; row = i; }
    }
    if (worst == 0) return true;
    for (int it = 0; it < limit; it++) {
        int leave = l->basic[row], at = row;
        pivot(l, row, col);
        if (leave == cover) return true;
        /* what is left of the cover is rounding */
        while (l->basic[at] != cover) at = at + 1 < l->n ? at + 1 : 0;
        if (fabs(l->T[(size_t)at * l->wide + last]) <= 1e-15) return true;
        int enter = leave < l->n ? leave + l->n : leave - l->n;
        for (col = 0; l->out[col] != enter; col++) ;
        if ((row = first_to_leave(l, col)) < 0) return false;
    }
    return false;
}

bool lemke_solve(int n, const double *M, const double *q, double *z, arena *scratch)
{
    arena_pos mark = arena_mark(scratch);
    tableau l = { n, n + 2, arena_array(scratch, double, (size_t)n * (n + 2)), arena_array(scratch, int, n), arena_array(scratch, int, n + 1) };
    double big = vec_max(q, n), f = 0;
    for (int i = 0; i < n; i++) {
        double *t = l.T + (size_t)i * l.wide;
        memcpy(t, M + (size_t)i * n, (size_t)n * sizeof *t);
        /* a cover in general position: no two reach 0 at once before it does */
        f += 0.6180339887498949;
        f -= floor(f);
        t[n] = 1 + 0.5 * f;
        t[n + 1] = big > 0 ? q[i] / big : 0;
        l.basic[i] = i;
        l.out[i] = n + i;
    }
    l.out[n] = 2 * n;
    bool ok = pivots(&l);
    memset(z, 0, (size_t)n * sizeof *z);
    for (int i = 0; i < n; i++)
        if (l.basic[i] >= n && l.basic[i] < 2 * n) z[l.basic[i] - n] = big * fmax(l.T[(size_t)i * l.wide + n + 1], 0);
    arena_release(scratch, mark);
    return ok;
}

/* ---- contacts ---- */
typedef enum { PUSH, PULL, SIDE, SLIP } part;
typedef struct { part kind; int contact, row; double s; } unknown;
typedef struct { int z[2]; double k[2]; } share;        /* a reaction as a sum of unknowns; -1: none */

static bool rough(const cone *c) { return c->d > 0 && (c->mu != 0 || c->radius != 0); }

bool lemke_knows(const cone *c)
{
    if (c->kind == CONE_BILATERAL && rough(c)) return false;
    return !rough(c) || c->dir || c->d == 1;
}

static double own(const sparse_problem *p, int c, int j)        /* entry of W on the diagonal */
{
    int n = p->start[c + 1] - p->start[c];
    for (int k = 0; k < n; k++) if (p->col[p->start[c] + k] == p->cone[c].row + j) return p->val[p->at[c] + (size_t)j * n + k];
    return 0;
}

/* unknowns of one contact, and what its reactions are of them; r gets the part that is given */
static int unknowns(const sparse_problem *p, int c, unknown *x, int n, share *of, double *r)
{
    const cone *o = &p->cone[c];
    int top = cone_normal(o), first = n;
    double s = top ? 1 / sqrt(own(p, c, 0)) : 0;
    for (int j = 0; j < cone_rows(o); j++) { of[o->row + j] = (share){ { -1, -1 }, { 0, 0 } }; r[o->row + j] = 0; }
    if (top) { of[o->row] = (share){ { n, -1 }, { 1, 0 } }; x[n++] = (unknown){ PUSH, c, o->row, s }; }
    if (o->kind == CONE_BILATERAL) { of[o->row].z[1] = n; of[o->row].k[1] = -1; x[n++] = (unknown){ PULL, c, o->row, s }; }
    if (!rough(o)) return n;
    for (int j = 0; j < o->d; j++) {
        double e = o->dir ? o->dir[j] : 1;
        if (top) of[o->row + top + j] = (share){ { first, -1 }, { -o->mu * e, 0 } };
        r[o->row + top + j] = -o->radius * e;
    }
    if (o->dir) return n;
    s = 1 / sqrt(own(p, c, top));
    of[o->row + top].z[1] = n;
    of[o->row + top].k[1] = 1;
    x[n++] = (unknown){ SIDE, c, o->row + top, s };
    x[n++] = (unknown){ SLIP, c, -1, 1 / s };
    return n;
}

static void equation(const sparse_problem *p, const unknown *x, int i, const share *of, const double *r, double *M, double *q)
{
    const cone *o = &p->cone[x[i].contact];
    if (x[i].kind == SLIP) {
        if (cone_normal(o)) M[i - 2] = 2 * o->mu;
        M[i - 1] = -1;
        *q = 2 * o->radius;
        return;
    }
    int at = p->start[x[i].contact], n = p->start[x[i].contact + 1] - at;
    const double *v = p->val + p->at[x[i].contact] + (size_t)(x[i].row - o->row) * n;
    double sign = x[i].kind == PULL ? -1 : 1;
    *q = p->b[x[i].row];
    for (int k = 0; k < n; k++) {
        int j = p->col[at + k];
        *q += v[k] * r[j];
        for (int a = 0; a < 2; a++) if (of[j].z[a] >= 0) M[of[j].z[a]] += sign * of[j].k[a] * v[k];
    }
    *q *= sign;
    if (x[i].kind == SIDE) M[i + 1] = 1;
}

bool lemke_contacts(const sparse_problem *p, const int *who, int n, double *r, arena *scratch)
{
    arena_pos mark = arena_mark(scratch);
    share *of = arena_array(scratch, share, p->m);
    unknown *x = arena_array(scratch, unknown, 3 * (size_t)n);
    int N = 0;
    for (int i = 0; i < p->m; i++) of[i].z[0] = of[i].z[1] = -1;
    for (int i = 0; i < n; i++) N = unknowns(p, who[i], x, N, of, r);
    size_t all = (size_t)N * (size_t)N;
    double *M = arena_array(scratch, double, all), *q = arena_array(scratch, double, N), *z = arena_array(scratch, double, N);
    for (int i = 0; i < N; i++) {
        double *Mi = M + (size_t)i * N;
        equation(p, x, i, of, r, Mi, &q[i]);
        q[i] *= x[i].s;
        for (int j = 0; j < N; j++) Mi[j] *= x[i].s * x[j].s;
    }
    bool ok = lemke_solve(N, M, q, z, scratch);
    for (int i = 0; i < n; i++) {
        const cone *o = &p->cone[who[i]];
        for (int j = o->row; j < o->row + cone_rows(o); j++)
            for (int a = 0; a < 2; a++) if (of[j].z[a] >= 0) r[j] += of[j].k[a] * z[of[j].z[a]] * x[of[j].z[a]].s;
    }
    arena_release(scratch, mark);
    return ok;
}
