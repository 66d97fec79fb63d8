/* relax: Gauss-Seidel sweeps over contacts of two rows at most, as disks and blocks in the plane have, which
   lie one after the other in memory, with the dofs of the group numbered anew and velocities scaled by the
   root of the mass: y = M^1/2 v, so that one row serves for rates and for impulses. */
#include <math.h>
#include <string.h>
#include "impulses.h"
#include "base/linalg.h"

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

enum { WIDE = 6, WORK = CONE_WORK * (1 + 4) + 8 };
typedef struct joint {
    int32_t dof[WIDE];       /* what is not there is the last dof, which nothing moves */
    int32_t c;               /* contact of the list */
    double N[WIDE], T[WIDE]; /* normal and tangent row, scaled */
    double bn, bt, mu, radius;
    double A[4];              /* its block of W */
    double over, left, right; /* 1/determinant; 1/(A00 -+ mu A01), 0 where that is not positive */
} joint;
typedef struct relaxing {
    int n, ndof, *dof;
    joint *at;
    /* impulses, as before the sweep, their conjugate direction; the same for velocities */
    double *r, *r0, *p, *y, *y0, *py;
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

static void joint_block(joint *j, const double *A, int m)
{
    j->A[0] = A[0];
    j->A[3] = 1;
    if (m == 2) {
        j->A[1] = A[1];
        j->A[2] = A[2];
        j->A[3] = A[3];
    }
    double det = j->A[0] * j->A[3] - j->A[1] * j->A[2], l = j->A[0] - j->mu * j->A[1],
           r = j->A[0] + j->mu * j->A[1];
    j->over = det > 0 ? 1 / det : 0;
    j->left = l > 0 ? 1 / l : 0;
    j->right = r > 0 ? 1 / r : 0;
}

static void joint_put(relaxing *x, const impulses *w, int i, int c, const int *local)
{
    const contact_list *l = &w->act;
    const cone *o = &l->cone[c];
    int n = l->dof_at[c + 1] - l->dof_at[c], m = cone_rows(o);
    const int *dof = l->dof + l->dof_at[c];
    const double *J = l->J + l->J_at[c];
    joint *j = &x->at[i];
    *j = (joint){
        .c = c, .mu = o->mu, .radius = o->radius, .bn = l->b[o->row], .bt = m == 2 ? l->b[o->row + 1] : 0
    };
    for (int k = 0; k < WIDE; k++) {
        j->dof[k] = k < n ? local[dof[k]] : x->ndof;
        if (k >= n)
            continue;
        double s = w->root[dof[k]];
        j->N[k] = J[k] * s;
        if (m == 2)
            j->T[k] = J[n + k] * s;
    }
    joint_block(j, l->A + l->A_at[c], m);
    x->r[2 * i] = l->r[o->row];
    x->r[2 * i + 1] = m == 2 ? l->r[o->row + 1] : 0;
}

static void relax_open(relaxing *x, impulses *w, const int *at, int n)
{
    const contact_list *l = &w->act;
    arena *a = w->scratch;
    int all = 0, mark = ++w->mark, *local = arena_alloc(a, (size_t)w->n * sizeof *local);
    for (int i = 0; i < n; i++)
        all += l->dof_at[at[i] + 1] - l->dof_at[at[i]];
    x->n = n;
    x->dof = arena_array(a, int, all > w->n ? w->n : all);
    for (int i = 0; i < n; i++)
        for (int k = l->dof_at[at[i]]; k < l->dof_at[at[i] + 1]; k++) {
            int dof = l->dof[k];
            if (w->marked[dof] == mark)
                continue;
            w->marked[dof] = mark;
            local[dof] = x->ndof;
            x->dof[x->ndof++] = dof;
        }
    double **by_row[] = { &x->r, &x->r0, &x->p }, **by_dof[] = { &x->y, &x->y0, &x->py };
    for (int k = 0; k < 3; k++) {
        *by_row[k] = arena_array(a, double, 2 * n);
        *by_dof[k] = arena_array(a, double, x->ndof + 1);
    }
    x->at = arena_array(a, joint, n);
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

/* one contact alone, b < 0 its normal rate without it: stick, else slip to the side it is driven to; false
 * when that is not it */
static inline bool joint_solve(const joint *j, double bn, double bt, double *rn, double *rt)
{
    double n = (j->A[1] * bt - j->A[3] * bn) * j->over, t = (j->A[2] * bn - j->A[0] * bt) * j->over;
    *rn = n;
    *rt = t;
    if (j->over > 0 && n >= 0 && fabs(t) <= j->mu * n + j->radius)
        return true;
    double s = t < 0 ? 1 : -1, over = t < 0 ? j->left : j->right;
    *rn = n = (j->A[1] * s * j->radius - bn) * over;
    *rt = t = -s * (j->mu * n + j->radius);
    return over > 0 && n >= 0 && s * (bt + j->A[2] * n + j->A[3] * t) >= 0;
}

static void joint_hard(relaxing *x, const impulses *w, const joint *j, double bn, double bt, double *r)
{
    const cone *o = &w->act.cone[j->c];
    double b[2] = { bn, bt };
    r[1] = 0;
    if (o->d == 0)
        r[0] = bn < 0 ? -bn / j->A[0] : 0;
    else
        cone_solve(o, j->A, 2, b, r, x->work);
}

static inline double sum6(const double *J, const double *v)
{
    return (J[0] * v[0] + J[1] * v[1]) + (J[2] * v[2] + J[3] * v[3]) + (J[4] * v[4] + J[5] * v[5]);
}

/* the exact solution of one contact with the others held; returns the largest change */
static inline double joint_relax(relaxing *x, const impulses *w, int i, double *size)
{
    const joint *j = &x->at[i];
    double v[WIDE], *r = x->r + 2 * i, *y = x->y, to[2];
    for (int k = 0; k < WIDE; k++)
        v[k] = y[j->dof[k]];
    double bn = sum6(j->N, v) + (j->bn - (j->A[0] * r[0] + j->A[1] * r[1]));
    /* open it was, open it stays */
    if (bn >= 0 && r[0] == 0 && r[1] == 0)
        return 0;
    double bt = sum6(j->T, v) + (j->bt - (j->A[2] * r[0] + j->A[3] * r[1]));
    if (bn >= 0 && j->radius == 0)
        to[0] = to[1] = 0;
    else if (!(bn < 0 && joint_solve(j, bn, bt, &to[0], &to[1])))
        joint_hard(x, w, j, bn, bt, to);
    double dn = to[0] - r[0], dt = to[1] - r[1];
    *size = larger(*size, larger(fabs(to[0]), fabs(to[1])));
    r[0] = to[0];
    r[1] = to[1];
    for (int k = 0; k < WIDE; k++)
        v[k] += dn * j->N[k] + dt * j->T[k];
    for (int k = 0; k < WIDE; k++)
        y[j->dof[k]] = v[k];
    return larger(fabs(dn), fabs(dt));
}

static double relax_sweep(relaxing *x, const impulses *w, bool down, double *size, int *worst)
{
    double most = 0, s = 0;
    for (int i = 0; i < x->n; i++) {
        int k = down ? x->n - 1 - i : i;
        double e = joint_relax(x, w, k, &s);
        if (e > most) {
            most = e;
            *worst = x->at[k].c;
        }
    }
    *size = s;
    return most;
}

/* x += beta p, p = beta p + (x - x before) */
static void ahead(double *x, const double *before, double *p, int n, double beta, bool go)
{
    for (int k = 0; k < n; k++) {
        double d = beta * p[k];
        p[k] = go ? d + (x[k] - before[k]) : 0;
        x[k] += d;
    }
}

static void relax_ahead(relaxing *x, double *before)
{
    double g2 = 0;
    for (int k = 0; k < 2 * x->n; k++) {
        double d = x->r[k] - x->r0[k];
        g2 += d * d;
    }
    bool go = *before > 0 && g2 <= *before;
    double beta = go ? g2 / *before : 0;
    *before = go || *before == 0 ? g2 : 0;
    ahead(x->r, x->r0, x->p, 2 * x->n, beta, go);
    ahead(x->y, x->y0, x->py, x->ndof, beta, go);
}

double relax_solve(impulses *w, const int *at, int n, int most, bool plain, int *worst)
{
    relaxing x = { 0 };
    double before = 0, size = 0, res = INFINITY;
    relax_open(&x, w, at, n);
    for (int it = 0; it < most; it++) {
        arena_tick(w->scratch, 64 * (int64_t)n);
        if (!plain) {
            memcpy(x.r0, x.r, 2 * (size_t)n * sizeof *x.r);
            memcpy(x.y0, x.y, (size_t)x.ndof * sizeof *x.y);
        }
        res = relax_sweep(&x, w, false, &size, worst);
        w->swept += n;
        if (!(res <= w->tol * size)) {
            res = larger(res, relax_sweep(&x, w, true, &size, worst));
            w->swept += n;
        }
        w->iterations += 2;
        if (res <= w->tol * size || size == 0)
            break;
        if (!plain)
            relax_ahead(&x, &before);
    }
    relax_close(&x, w);
    return size > 0 ? res / size : 0;
}
