/* field_line: fields on an interval by finite differences, from grid to grid: each starts from one four times
   as coarse. */
#include "field_line.h"
#include <string.h>

enum { LEVEL_RATIO = 4, MAX_LEVELS = 16 };

/* Contact begins where the coarse grid shows it, to a fraction of its cells. For order 2 the last node of
   contact is the one nearest to the end xi of the zone: with psi'' = -2k the line from node p is tangent
   where its slope -2k xi + O((p - xi)^2) lies between the differences -2kp -+ kh of psi on both sides. */
static void sets_start(line *l, const line *from, int f)
{
    int64_t at = 0;
    for (int64_t k = 0; k < from->n; k++) {
        int8_t act = from->act[k * l->nf + f];
        int64_t to = k;
        if (!act)
            continue;
        while (to + 1 < from->n && from->act[(to + 1) * l->nf + f] == act)
            to++;
        double a = from->x[k], b = from->x[to];
        if (to > k + 2)
            a = line_zone_end(from, f, k, -1), b = line_zone_end(from, f, to, 1);
        if (to > k + 2 && l->fp->eq[f].order == 2) {
            double half = (l->w->hi[0] - l->w->lo[0]) / (double)(l->n - 1) / 2;
            a -= half;
            b += half;
        }
        while (at < l->n && l->x[at] < a)
            at++;
        int64_t first = at;
        for (; at < l->n && l->x[at] <= b; at++)
            l->act[at * l->nf + f] = act;
        if (at == first && first < l->n)
            l->act[first * l->nf + f] = act;
        k = to;
    }
}

static void level_start(line *l, const line *from)
{
    l->three = l->nf == 1 && l->kl == 1 && l->ku == 1 && l->left[0] == 1;
    l->alike = l->three && l->fp->linear && l->nbrk == 2 && line_form_uniform(&l->fp->eq[0].f);
    int64_t kept = l->alike ? 3 : l->size;
    l->ab = numbers(l->w->a, kept * l->band);
    l->rhs = numbers(l->w->a, kept);
    l->u = from ? numbers(l->home, l->size) : arena_array(l->home, double, l->size);
    l->work = numbers(l->w->a, l->size);
    l->low = l->fp->linear && !l->three ? arena_array(l->w->a, double, l->size) : NULL;
    for (int j = 0; j < l->fp->eq[0].f.njet; j++)
        if (l->three && !l->fp->eq[0].f.jet[j].d[0])
            l->sum = arena_array(l->w->a, double, kept);
    if (!from) {
        for (int64_t i = 0; l->lo && i < l->size; i++)
            l->u[i] = fmin(fmax(0, isfinite(l->lo[i]) ? l->lo[i] : 0), l->hi ? l->hi[i] : INFINITY);
        return;
    }
    int64_t at = 0;
    for (int64_t k = 0; k < l->n && !l->fp->linear; k++) { /* a linear system needs the set alone */
        while (at + 2 < from->n && from->x[at + 1] <= l->x[k])
            at++;
        double s = (l->x[k] - from->x[at]) / (from->x[at + 1] - from->x[at]);
        for (int f = 0; f < l->nf; f++) {
            int64_t i = at * l->nf + f;
            l->u[k * l->nf + f] = from->u[i] + s * (from->u[i + l->nf] - from->u[i]);
        }
    }
    for (int f = 0; f < l->nf && l->act; f++)
        sets_start(l, from, f);
    int8_t was[2 * FIELD_MAX];
    for (int k = 0; k < l->nend; k++)
        was[k] = l->act[end_unknown(l, &l->end[k])];
    for (int f = 0; f < l->nf && l->act; f++) { /* other nodes at the ends carry no pair */
        for (int64_t k = 0; k < l->left[f]; k++)
            l->act[k * l->nf + f] = 0;
        for (int64_t k = rows_of(l, f) + l->left[f]; k < l->n; k++)
            l->act[k * l->nf + f] = 0;
    }
    for (int k = 0; k < l->nend; k++)
        l->act[end_unknown(l, &l->end[k])] = was[k];
}

static bool level_solve(line *l, const line *from, const double *brk, int nb, int64_t cells)
{
    line_grid(l, brk, nb, cells);
    line_place_rows(l);
    if (!line_bounds(l))
        return false;
    line_ends(l);
    if (!line_bounds_check(l))
        return false;
    level_start(l, from);
    return l->fp->linear ? line_linear_solve(l, !from, cells == l->o->cells) : line_newton_solve(l, !from);
}

field_result *line_solve(field_work *w, const line_options *o)
{
    double *brk;
    int nb = field_breaks(w, &brk), levels = 1;
    int64_t cells[MAX_LEVELS];
    line *at = arena_array(w->a, line, MAX_LEVELS);
    if (w->fp->ncond > 60) {
        field_fail(w, w->fp->at, "too many conditions");
        return NULL;
    }
    for (int f = 0; f < w->fp->nfield; f++) {
        const field_equation *e = &w->fp->eq[f];
        if (!e->nflux || (e->order == 2 && w->fp->nfield == 1))
            continue;
        field_fail(
            w, e->flux[0].at,
            "grids keep the flux at jumps of its coefficient for a single equation of order 2; use vim()");
        return NULL;
    }
    if (!obstacles_check(w))
        return NULL;
    cells[0] = o->cells;
    while (levels < MAX_LEVELS && cells[levels - 1] / LEVEL_RATIO >= 12 &&
           cells[levels - 1] / LEVEL_RATIO >= 8 * (nb - 1))
        cells[levels] = cells[levels - 1] / LEVEL_RATIO, levels++;
    for (int k = levels - 1, i = 0; k >= 0; k--, i++) {
        at[i] = (line){ .w = w,
                        .fp = w->fp,
                        .o = o,
                        .nf = w->fp->nfield,
                        .home = k || o->draft ? w->a : w->r->a,
                        .done = pow(LEVEL_RATIO, -k - 1.0) };
        if (!level_solve(&at[i], i ? &at[i - 1] : NULL, brk, nb, cells[k]))
            return NULL;
        w->r->count.solver_iterations += w->fp->linear ? at[i].steps : 0;
    }
    return line_result(&at[levels - 1], levels);
}
