/* field_penalty: the obstacle as a soft bed, lhs = rhs + max(0, psi - u)/eps, on the grids of active_set;
   solved by semi-smooth Newton.  The same is done with 4 eps and 2 eps, so that the report can show how u
   moves as eps is halved. */
#include "field.h"
#include "motion/penalty.h"
#include "base/tolerances.h"
#include <math.h>
#include <string.h>

static field_result *penalised(field_work *w, double eps, bool last)
{
    double cells = w->o->value[PENALTY_CELLS];
    line_options o = { .cells = isnan(cells) ? (w->fp->ncoord == 1 ? 2000 : 128) : (int64_t)cells,
                       .eps = eps,
                       .tolerance = fmin(w->o->value[PENALTY_TOLERANCE], FIELD_PENALTY) };
    field_result *r = w->fp->ncoord == 1 ? line_solve(w, &o) : plane_solve(w, &o);
    if (r && last)
        field_error(w, &o, r);
    return r;
}

static double largest(const double *x, int64_t n)
{
    double most = 0;
    for (int64_t k = 0; x && k < n; k++)
        most = fmax(most, fabs(x[k]));
    return most;
}

/* Under the largest pressure of a rigid obstacle, a bed of this compliance yields by a small fraction of u,
   in any units. Without contact it has no effect. */
static double own_compliance(field_work *w)
{
    line_options o = { .cells = w->fp->ncoord == 1 ? 64 : 32, .tolerance = FIELD_DEFAULT };
    const field_result *r = field_draft(w, &o, 1);
    if (!r)
        return FIELD_GIVES_WAY;
    int64_t n = w->fp->ncoord == 1 ? r->n : (int64_t)r->m[0] * r->m[1];
    double u = largest(r->u, n * r->fp->nfield), pressure = largest(r->reaction, n);
    /* point forces of a beam, distributed over its length */
    for (int k = 0; k < r->npoint; k++)
        pressure = fmax(pressure, fabs(r->point[k].force) / (w->hi[0] - w->lo[0]));
    return u > 0 && pressure > 0 ? FIELD_GIVES_WAY * u / pressure : FIELD_GIVES_WAY;
}

static double distance(const field_result *a, const field_result *b)
{
    double d = 0;
    int64_t n = a->fp->ncoord == 1 ? a->n : (int64_t)a->m[0] * a->m[1];
    for (int64_t k = 0; k < n * a->fp->nfield; k++)
        d = fmax(d, fabs(a->u[k] - b->u[k]));
    return d;
}

static field_result *penalty_solve(field_work *w)
{
    double eps = w->o->value[PENALTY_EPS];
    field_result *at[3];
    if (isnan(eps))
        eps = w->fp->nobst ? own_compliance(w) : FIELD_GIVES_WAY;
    if (!(eps > 0)) {
        field_fail(w, w->fp->at, "penalty needs eps > 0");
        return NULL;
    }
    if (!w->fp->nobst)
        return penalised(w, eps, true);
    for (int k = 0; k < 3; k++)
        if (!(at[k] = penalised(w, eps * (4 >> k), k == 2)))
            return NULL;
    double d[2] = { distance(at[0], at[1]), distance(at[1], at[2]) };
    field_result *r = at[2];
    r->update = arena_array(w->r->a, double, 2);
    memcpy(r->update, d, sizeof d);
    r->nhalved = 2;
    return r;
}

void penalty_field_run(const program *p, const run_options *o, results *r)
{
    field_run(p, o, r, penalty_solve);
}
