/* relax: Gauss-Seidel sweeps over contacts with at most two rows, as for disks and blocks in the plane. They
   are contiguous in memory, with the dofs of the group renumbered and velocities scaled by the root of the
   mass: y = M^1/2 v, so that one row serves for rates and for impulses. */
#include <math.h>
#include <string.h>
#include "impulses.h"
#include "sweeps.h"
#include "base/linalg.h"

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

enum { WIDE = 6, FLAT = 4, WORK = CONE_WORK * (1 + 4) + 8 };
typedef struct joint {
    int32_t dof[WIDE]; /* missing ones are the last dof, which nothing moves */
    int32_t c;         /* contact of the list */
    bool turns;        /* the normal row has more than FLAT entries, as for bodies that are not disks */
    double bn, N[WIDE];
    double T[WIDE], bt; /* normal and tangential row are scaled */
    cone_pair pair;     /* its block of W, and its law */
} joint;
typedef struct relaxing {
    impulses *w;
    int n, ndof, *dof, worst;
    joint *at;
    double *r, *y; /* impulses, velocities */
    double work[WORK];
} relaxing;

bool relax_fits(const impulses *w, const int *at, int n)
{
    const contact_list *l = &w->act;
    if (!w->root)
        return false;
    for (int i = 0; i < n; i++) {
        const cone *o = &l->cone[at[i]];
        if (o->kind != CONE_UNILATERAL || o->d > 1 || o->dir ||
            l->dof_at[at[i] + 1] - l->dof_at[at[i]] > WIDE || !(l->A[l->A_at[at[i]]] > 0))
            return false;
    }
    return true;
}

static void joint_put(relaxing *x, const impulses *w, int i, int c, const int *local)
{
    const contact_list *l = &w->act;
    const cone *o = &l->cone[c];
    int n = l->dof_at[c + 1] - l->dof_at[c], m = cone_rows(o);
    const int *dof = l->dof + l->dof_at[c];
    const double *J = l->J + l->J_at[c];
    joint *j = &x->at[i];
    *j = (joint){ .c = c, .bn = l->b[o->row], .bt = m == 2 ? l->b[o->row + 1] : 0 };
    for (int k = 0; k < WIDE; k++) {
        j->dof[k] = k < n ? local[dof[k]] : x->ndof;
        if (k >= n)
            continue;
        double s = w->root[dof[k]];
        j->N[k] = J[k] * s;
        if (m == 2)
            j->T[k] = J[n + k] * s;
    }
    j->turns = j->N[FLAT] != 0 || j->N[FLAT + 1] != 0;
    j->pair = pair_of(l->A + l->A_at[c], m, o);
    x->r[2 * i] = l->r[o->row];
    x->r[2 * i + 1] = m == 2 ? l->r[o->row + 1] : 0;
}

static void relax_open(relaxing *x, impulses *w, const int *at, int n)
{
    const contact_list *l = &w->act;
    arena *a = w->scratch;
    int all = 0, mark = ++w->mark, *local = w->number;
    for (int i = 0; i < n; i++)
        all += l->dof_at[at[i] + 1] - l->dof_at[at[i]];
    x->n = n;
    x->dof = arena_alloc(a, (size_t)(all > w->n ? w->n : all) * sizeof *x->dof);
    for (int i = 0; i < n; i++)
        for (int k = l->dof_at[at[i]]; k < l->dof_at[at[i] + 1]; k++) {
            int dof = l->dof[k];
            if (w->marked[dof] == mark)
                continue;
            w->marked[dof] = mark;
            local[dof] = x->ndof;
            x->dof[x->ndof++] = dof;
        }
    x->r = arena_alloc(a, 2 * (size_t)n * sizeof *x->r);
    x->y = arena_alloc(a, ((size_t)x->ndof + 1) * sizeof *x->y);
    x->at = arena_alloc(a, (size_t)n * sizeof *x->at);
    x->y[x->ndof] = 0;
    for (int i = 0; i < n; i++)
        joint_put(x, w, i, at[i], local);
    for (int k = 0; k < x->ndof; k++)
        x->y[k] = w->v1[x->dof[k]] / w->root[x->dof[k]];
}

static void relax_close(const relaxing *x, impulses *w)
{
    contact_list *l = &w->act;
    for (int i = 0; i < x->n; i++) {
        const cone *o = &l->cone[x->at[i].c];
        for (int a = 0; a < cone_rows(o); a++)
            l->r[o->row + a] = x->r[2 * i + a];
    }
    for (int k = 0; k < x->ndof; k++)
        w->v1[x->dof[k]] = x->y[k] * w->root[x->dof[k]];
}

static void joint_hard(relaxing *x, const joint *j, const double *b, double *r)
{
    const cone *o = &x->w->act.cone[j->c];
    r[1] = 0;
    if (o->d == 0)
        r[0] = b[0] < 0 ? -b[0] / j->pair.A[0] : 0;
    else
        cone_solve(o, j->pair.A, 2, b, r, x->work);
}

static inline double sum4(const double *J, const double *v)
{
    return (J[0] * v[0] + J[1] * v[1]) + (J[2] * v[2] + J[3] * v[3]);
}

static inline double sum6(const double *J, const double *v)
{
    return sum4(J, v) + (J[4] * v[4] + J[5] * v[5]);
}

/* The exact solution of one contact with the others held; returns the largest change. */
static inline double joint_relax(relaxing *x, int i, double *size)
{
    const joint *j = &x->at[i];
    const double *A = j->pair.A;
    double v[WIDE], *r = x->r + 2 * i, *y = x->y, b[2], to[2];
#pragma GCC unroll 4
    for (int k = 0; k < FLAT; k++)
        v[k] = y[j->dof[k]];
    b[0] = sum4(j->N, v);
    if (j->turns)
        b[0] += j->N[4] * y[j->dof[4]] + j->N[5] * y[j->dof[5]];
    b[0] += j->bn - (A[0] * r[0] + A[1] * r[1]);
    /* it was open and stays open, if friction has no other bound than that of r_n */
    if (b[0] >= 0 && r[0] == 0 && r[1] == 0 && j->pair.radius == 0)
        return 0;
#pragma GCC unroll 2
    for (int k = FLAT; k < WIDE; k++)
        v[k] = y[j->dof[k]];
    b[1] = sum6(j->T, v) + (j->bt - (A[2] * r[0] + A[3] * r[1]));
    if (b[0] >= 0 && j->pair.radius == 0)
        to[0] = to[1] = 0;
    else if (!(b[0] < 0 && pair_solve(&j->pair, b, to)))
        joint_hard(x, j, b, to);
    double dn = to[0] - r[0], dt = to[1] - r[1];
    *size = larger(*size, larger(fabs(to[0]), fabs(to[1])));
    r[0] = to[0];
    r[1] = to[1];
#pragma GCC unroll 6
    for (int k = 0; k < WIDE; k++)
        y[j->dof[k]] = v[k] + (dn * j->N[k] + dt * j->T[k]);
    return larger(fabs(dn), fabs(dt));
}

static double relax_pass(void *of, bool down, double *size)
{
    relaxing *x = of;
    double most = 0, s = 0;
    arena_tick(x->w->scratch, 32 * (int64_t)x->n);
    for (int i = 0; i < x->n; i++) {
        int k = down ? x->n - 1 - i : i;
        double e = joint_relax(x, k, &s);
        if (e > most) {
            most = e;
            x->worst = x->at[k].c;
        }
    }
    x->w->swept += x->n;
    *size = s;
    return most;
}

double relax_solve(impulses *w, const int *at, int n, int most, bool plain, int *worst)
{
    relaxing x = { .w = w, .worst = *worst };
    int done;
    relax_open(&x, w, at, n);
    sweeper s = { .of = &x,
                  .pass = relax_pass,
                  .part = { { .x = x.r, .n = 2 * n }, { .x = x.y, .n = x.ndof } },
                  .eager = true };
    double res = sweeps_run(&s, most, plain, w->tol, w->scratch, &done);
    w->iterations += 2 * done;
    *worst = x.worst;
    relax_close(&x, w);
    return res;
}
