#include "equal.h"
#include <math.h>
#include "base/linalg.h"

/* [emit c */
static double unit_tangent(const equal_units *e, const cone *c)
{
    return e->unit[c->row + cone_normal(c)];
}

/* The unit of normal reaction in units of friction. */
static double unit_ratio(const equal_units *e, const cone *c)
{
    return cone_normal(c) ? e->unit[c->row] / unit_tangent(e, c) : 1;
}

static void law_equal(void *ud, int i, double speed, double *mu, double *radius)
{
    const equal_units *e = ud;
    const cone *c = &e->p->cone[i];
    e->law(e->ud, i, speed / unit_tangent(e, c), mu, radius);
    *mu *= unit_ratio(e, c);
    *radius /= unit_tangent(e, c);
}

static double diagonal(const contact_problem *p, int from, int to)
{
    double most = 0;
    for (int i = from; i < to; i++)
        most = fmax(most, p->W[(size_t)i * p->m + i]);
    return most;
}

static void units_find(equal_units *e)
{
    const contact_problem *p = e->p;
    for (int i = 0; i < p->n; i++) {
        const cone *c = &p->cone[i];
        int tangent = c->row + cone_normal(c), end = c->row + cone_rows(c);
        double side = power_unit(diagonal(p, tangent, end));
        if (tangent > c->row)
            e->unit[c->row] = power_unit(diagonal(p, c->row, tangent));
        for (int j = tangent; j < end; j++)
            e->unit[j] = side;
    }
}

/* to = 1: into the new units; -1: back. */
static void cones_convert(equal_units *e, int to)
{
    for (int i = 0; i < e->p->n; i++) {
        cone *c = &e->p->cone[i];
        if (!c->d)
            continue;
        double ratio = unit_ratio(e, c), tangent = unit_tangent(e, c);
        c->mu *= to > 0 ? ratio : 1 / ratio;
        c->radius *= to > 0 ? 1 / tangent : tangent;
        c->speed *= to > 0 ? tangent : 1 / tangent;
    }
}

void equal_make(equal_units *e, contact_problem *p, double *unit)
{
    *e = (equal_units){ .p = p, .unit = unit, .law = p->law, .ud = p->ud };
    units_find(e);
    for (int i = 0; i < p->m; i++) {
        for (int j = 0; j < p->m; j++)
            p->W[(size_t)i * p->m + j] *= unit[i] * unit[j];
        p->b[i] *= unit[i];
        p->r[i] /= unit[i];
    }
    p->unit = unit;
    cones_convert(e, 1);
    if (e->law) {
        p->law = law_equal;
        p->ud = e;
    }
}

void equal_undo(equal_units *e)
{
    contact_problem *p = e->p;
    for (int i = 0; i < p->m; i++) {
        p->b[i] /= e->unit[i];
        p->u[i] /= e->unit[i];
        p->r[i] *= e->unit[i];
    }
    p->unit = NULL;
    cones_convert(e, -1);
    p->law = e->law;
    p->ud = e->ud;
}

/* emit c] */
/* ---- lists ---- */
static double block_diagonal(const contact_list *l, int c, int from, int to)
{
    const double *A = l->A + l->A_at[c];
    int m = list_rows(l, c);
    double most = 0;
    for (int a = from; a < to; a++)
        most = fmax(most, A[a * m + a]);
    return most;
}

static void list_units(contact_list *l, bool all)
{
    double most = 0;
    for (int c = 0; c < l->n; c++)
        most = fmax(most, block_diagonal(l, c, 0, list_rows(l, c)));
    double first = all ? 1 : power_unit(most);
    l->equal = false;
    for (int c = 0; c < l->n; c++) {
        int normal = cone_normal(&l->cone[c]), m = list_rows(l, c);
        double *unit = l->unit + l->cone[c].row,
               side = m > normal ? power_unit(block_diagonal(l, c, normal, m)) / first : 1;
        for (int a = 0; a < m; a++) {
            unit[a] = a < normal ? power_unit(block_diagonal(l, c, 0, normal)) / first : side;
            l->equal |= unit[a] != 1;
        }
    }
}

void list_equal(contact_list *l, bool all)
{
    list_units(l, all);
    for (int c = 0; l->equal && c < l->n; c++) {
        int n = l->dof_at[c + 1] - l->dof_at[c], m = list_rows(l, c);
        const double *unit = l->unit + l->cone[c].row;
        double *J = l->J + l->J_at[c], *K = l->K + l->J_at[c], *A = l->A + l->A_at[c];
        for (int a = 0; a < m; a++) {
            for (int j = 0; j < n; j++) {
                J[a * n + j] *= unit[a];
                K[a * n + j] *= unit[a];
            }
            for (int b = 0; b < m; b++)
                A[a * m + b] *= unit[a] * unit[b];
        }
    }
}

void list_cone_in(const contact_list *l, cone *c)
{
    if (!l->equal || !c->d)
        return;
    double tangent = l->unit[c->row + cone_normal(c)];
    c->mu *= cone_normal(c) ? l->unit[c->row] / tangent : 1;
    c->radius /= tangent;
    c->speed *= tangent;
}
