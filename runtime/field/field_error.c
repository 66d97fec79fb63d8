/* field_error: estimates the error of a solution on a grid from three grids (Richardson, with the order
   that they show: errors C h^p leave differences d, d r^p between grids of h, r h, r^2 h).  It is given
   only if errors decrease regularly: not with contact, whose border lies anywhere in a cell; not with jumps
   inside the cells of a rectangle; not if the three grids show no order or only rounding. */
#include "clock/clock.h"
#include "field.h"
#include <math.h>

enum { LONG_LINE = 8192, SAMPLES = 5000 };
#define LEAST_ORDER 1.2
#define MOST_ORDER  4.5

static field_result *grid_solve(field_work *w, const line_options *o)
{
    return w->fp->ncoord == 1 ? line_solve(w, o) : plane_solve(w, o);
}

field_result *field_draft(field_work *w, const line_options *o, int ratio)
{
    line_options coarse = *o;
    results keep = *w->r;
    coarse.cells /= ratio;
    coarse.cells2 /= ratio;
    coarse.draft = true;
    field_result *r = grid_solve(w, &coarse);
    bool stopped = w->r->status == RUN_INTERRUPTED;
    *w->r = keep;
    if (stopped)
        run_interrupted(w->o, w->r, 0);
    return r;
}

static double at_node(const field_result *r, const field_result *grid, int64_t k, int f)
{
    static const int none[2] = { 0, 0 };
    if (r->fp->ncoord == 1)
        return field_at(r, f, grid->x[k], 0);
    return field_at2(r, f, grid->ux[0][k % grid->m[0]], grid->ux[1][k / grid->m[0]], none);
}

/* the largest difference of two solutions at the nodes of a third */
static double distance(const field_result *a, const field_result *b, const field_result *grid)
{
    double d = 0;
    int64_t step = grid->fp->ncoord == 1 ? grid->n / SAMPLES + 1 : 1;
    for (int64_t k = 0; k < grid->n; k += step)
        for (int f = 0; f < grid->fp->nfield; f++)
            d = fmax(d, fabs(at_node(a, grid, k, f) - at_node(b, grid, k, f)));
    return d;
}

static const char *refusal(const field_work *w, const field_result *r)
{
    if (r->nzone)
        return "there is contact, whose border moves through the cells from grid to grid";
    for (int f = 0; f < w->fp->nfield && w->fp->ncoord == 2; f++)
        if (w->fp->eq[f].nflux || w->fp->eq[f].f.cases)
            return "the equation jumps inside cells";
    return NULL;
}

void field_error(field_work *w, const line_options *o, field_result *r)
{
    int ratio = w->fp->ncoord == 1 && o->cells >= LONG_LINE ? 4 : 2;
    int64_t least = w->fp->ncoord == 1 ? 4 * (r->nseg - 1) + 8 : 4,
            fewest = o->cells2 && o->cells2 < o->cells ? o->cells2 : o->cells;
    r->error = NAN;
    r->error_why = refusal(w, r);
    if (r->error_why)
        return;
    r->error_why = "there are too few cells";
    if (fewest / (ratio * ratio) < least)
        return;
    field_result *mid = field_draft(w, o, ratio), *coarse = mid ? field_draft(w, o, ratio * ratio) : NULL;
    r->error_why = "coarser grids do not allow one";
    if (!coarse || mid->nzone || coarse->nzone)
        return;
    double d1 = distance(r, mid, mid), d2 = distance(mid, coarse, mid);
    double order = log(d2 / d1) / log(ratio);
    if (order >= LEAST_ORDER && order <= MOST_ORDER) {
        r->error = d1 / (pow(ratio, order) - 1);
        r->error_why = NULL;
    }
}
