#include "equal.h"
#include <math.h>

enum { ALIKE = 8 }; /* units less than 2^(ALIKE/2) apart are one */

/* the exponent of 1/sqrt(a), where a is the size of a diagonal entry */
static int exponent_of(double a)
{
    int power;
    if (!(a > 0) || !isfinite(a))
        return 0;
    frexp(a, &power);
    return -(int)floor(0.5 * power);
}

/* the unit of an entry of size a, where the largest entry has 2^first */
static double unit_of(double a, int first)
{
    int apart = exponent_of(a) - first;
    return ldexp(1, first + ALIKE * (int)floor((apart + ALIKE / 2) / (double)ALIKE));
}

static double unit_tangent(const equal_units *e, const cone *c)
{
    return e->unit[c->row + cone_normal(c)];
}

/* what a unit of normal reaction is in units of friction */
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
    int first = exponent_of(diagonal(p, 0, p->m));
    for (int i = 0; i < p->n; i++) {
        const cone *c = &p->cone[i];
        int tangent = c->row + cone_normal(c), end = c->row + cone_rows(c);
        double side = unit_of(diagonal(p, tangent, end), first);
        if (tangent > c->row)
            e->unit[c->row] = unit_of(diagonal(p, c->row, tangent), first);
        for (int j = tangent; j < end; j++)
            e->unit[j] = side;
    }
}

/* to = 1: into the new units; -1: back */
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
