/* line_obstacle: obstacles on the nodes of an interval, and free ends that may meet them. */
#include "field_line.h"
#include "base/tolerances.h"
#include <string.h>

/* ---- obstacles ---- */
/* dF/du^(k) of a form at x */
static double lead_of(const field_work *w, const field_form *f, int field, int order, double x)
{
    double zero[64] = { 0 }, out[65];
    form_run(w, f, &x, zero, 1, out);
    for (int j = 0; j < f->njet; j++)
        if (f->jet[j].field == field && f->jet[j].d[0] == order)
            return out[1 + j];
    return 0;
}

/* The condition at an end of the domain (side -1, 1) that the force of an obstacle on field f enters; -1
 * where u is given, or u^(k-1) is not. *per: the force over what the condition leaves. */
int free_end(const field_work *w, int f, int side, double *per)
{
    const field_equation *e = &w->fp->eq[f];
    double end = side < 0 ? w->lo[0] : w->hi[0], x = side_of(w, end, w->lo[0], w->hi[0]);
    int found = -1;
    for (int c = 0; c < w->fp->ncond; c++) {
        const field_condition *q = &w->fp->cond[c];
        double at = kernel_number(w, &q->place);
        if (side < 0 ? at > end : at < end)
            continue;
        if (q->f.njet == 1 && q->f.jet[0].field == f && q->f.jet[0].d[0] == 0)
            return -1;
        double slope = lead_of(w, &q->f, f, e->order - 1, x);
        if (slope == 0)
            continue;
        *per = -side * lead_of(w, &e->f, f, e->order, x) / slope;
        found = c;
    }
    return found;
}

void line_ends(line *l)
{
    l->nend = 0;
    for (int f = 0; f < l->nf && l->act && l->o->eps <= 0; f++)
        for (int side = -1; side <= 1; side += 2) {
            end_pair e = { .field = f, .node = side < 0 ? 0 : l->n - 1 };
            e.condition = free_end(l->w, f, side, &e.per);
            if (e.condition >= 0)
                l->end[l->nend++] = e;
        }
}

bool line_end_holds(const line *l, int c)
{
    for (int k = 0; k < l->nend; k++)
        if (l->end[k].condition == c && l->act[end_unknown(l, &l->end[k])])
            return true;
    return false;
}

bool line_bounds(line *l)
{
    const field_program *fp = l->fp;
    field_work *w = l->w;
    if (!fp->nobst)
        return true;
    l->lo = numbers(w->a, l->size);
    l->act = arena_array(w->a, int8_t, l->size);
    bool alone = fp->nobst == 1 && l->nf == 1 && fp->obst[0].sense > 0;
    if (!alone)
        l->hi = arena_array(w->a, double, l->size);
    for (int64_t k = 0; k < l->size && !alone; k++)
        l->lo[k] = -INFINITY, l->hi[k] = INFINITY;
    double *psi = alone ? l->lo : arena_array(w->a, double, l->n);
    for (int o = 0; o < fp->nobst; o++) {
        kernel_points(w, &fp->obst[o].psi, l->x, l->n, psi);
        bool low = fp->obst[o].sense > 0;
        for (int64_t b = 0; b < l->nbrk; b++) { /* at switches the sharper of both sides */
            int64_t k = l->brk[b];
            double at[2] = { side_of(w, l->x[k], w->lo[0], l->x[k]), side_of(w, l->x[k], l->x[k], w->hi[0]) },
                   y[2];
            kernel_points(w, &fp->obst[o].psi, at, 2, y);
            if (b == 0)
                y[0] = y[1];
            if (b == l->nbrk - 1)
                y[1] = y[0];
            psi[k] = isnan(y[0] + y[1]) ? NAN : low ? fmax(y[0], y[1]) : fmin(y[0], y[1]);
        }
        if (!obstacle_known(w, &fp->obst[o], l->x, psi, l->n))
            return false;
        for (int64_t k = 0; k < l->n && !alone; k++) {
            int64_t i = k * l->nf + fp->obst[o].field;
            if (low && psi[k] > l->lo[i])
                l->lo[i] = psi[k];
            if (!low && psi[k] < l->hi[i])
                l->hi[i] = psi[k];
        }
    }
    return true;
}

bool obstacles_check(field_work *w)
{
    const field_program *fp = w->fp;
    for (int c = 0; c < fp->ncond && fp->ncoord == 1; c++) {
        const field_form *f = &fp->cond[c].f;
        double x = kernel_number(w, &fp->cond[c].place), zero[64] = { 0 }, out[65], psi;
        if (f->njet != 1 || f->jet[0].d[0] || !f->linear)
            continue;
        form_run(w, f, &x, zero, 1, out);
        double value = 0 - out[0] / out[1], at = side_of(w, x, w->lo[0], w->hi[0]);
        for (int o = 0; o < fp->nobst; o++) {
            if (fp->obst[o].field != f->jet[0].field)
                continue;
            kernel_points(w, &fp->obst[o].psi, &at, 1, &psi);
            if (fp->obst[o].sense * (value - psi) < -FIELD_PASSED * obstacle_size(w, &fp->obst[o]))
                return field_fail(w, fp->obst[o].at,
                                  "no %s satisfies both: at %s = %g its boundary value %g lies %s the "
                                  "obstacle, which is %g there",
                                  fp->name[fp->obst[o].field], fp->coord[0], x, value,
                                  fp->obst[o].sense > 0 ? "below" : "above", psi);
        }
    }
    return true;
}

bool line_bounds_check(line *l)
{
    for (int64_t i = 0; l->hi && i < l->size; i++)
        if (l->lo[i] > l->hi[i])
            return field_fail(
                l->w, l->fp->obst[0].at,
                "no %s satisfies both obstacles: at %s = %g the lower one is %g, the upper one %g",
                l->fp->name[i % l->nf], l->fp->coord[0], l->x[i / l->nf], l->lo[i], l->hi[i]);
    return true;
}
