/* line_sets: contact sets of an interval by primal-dual active sets, that is semi-smooth Newton, and Newton's
   method where the equation is not linear. */
#include "field_line.h"
#include "base/tolerances.h"
#include <string.h>

enum { MAX_STEPS = 80, TOGETHER = 40, END_CHANGES = 8 };

/* of the obstacle, on a free end */
double line_end_force(const line *l, const end_pair *e, double *noise)
{
    int64_t row = l->cpos[e->condition];
    double left = row_value(l, row, noise);
    if (!l->fp->linear)
        left = l->rhs[row];
    *noise *= fabs(e->per);
    return e->per * left;
}

/* rows that are alike, one lower bound: the same in one short loop */
static int64_t sets_alike(line *l)
{
    const double *a = l->ab + l->band, *u = l->u, *lo = l->lo, f = l->rhs[1], tiny = ROUND_50 * size_of(l, 0);
    int64_t changed = 0;
    for (int64_t k = 1; k + 1 < l->size; k++) {
        int8_t now = lo[k] - u[k] > tiny;
        if (l->act[k]) {
            double x = a[0] * u[k - 1], y = a[1] * u[k], z = a[2] * u[k + 1];
            now = f + x + y + z >= -ROUND_4 * (fabs(f) + fabs(x) + fabs(y) + fabs(z));
        }
        changed += now != l->act[k];
        l->act[k] = now;
    }
    return changed;
}

/* the set for u: nodes that left it or came to it; linear problems have rhs at zero, others at u (then rows
 * give rhs alone) */
static int64_t sets_update(line *l, bool one)
{
    int64_t changed = 0;
    if (l->alike && !l->hi && l->o->eps <= 0 && !one)
        return sets_alike(l);
    for (int f = 0; f < l->nf; f++) {
        double tiny = ROUND_50 * size_of(l, f);
        for (int64_t s = 0; s < rows_of(l, f); s++) {
            int64_t p = pair_of(l, f, s), row = row_place(l, f, s);
            double noise = 0, under = l->lo[p] - l->u[p], over = l->hi ? l->u[p] - l->hi[p] : -1,
                   in = under > over ? under : over;
            int8_t was = l->act[p], now = was;
            if (l->o->eps > 0)
                now = in > 0 ? (l->u[p] < l->lo[p] ? 1 : -1) : 0;
            else if (was) {
                double F = row_value(l, row, &noise);
                if (!l->fp->linear) {
                    F = l->rhs[row];
                    noise *= 4;
                }
                if (was * F < -noise)
                    now = 0;
            } else if (in > tiny)
                now = l->u[p] < l->lo[p] ? 1 : -1;
            if (now == was)
                continue;
            l->act[p] = now;
            changed++;
            if (one)
                return changed;
        }
    }
    return changed;
}

/* the same for free ends */
static int64_t ends_update(line *l)
{
    int64_t changed = 0;
    for (int k = 0; k < l->nend; k++) {
        const end_pair *e = &l->end[k];
        int64_t p = end_unknown(l, e);
        double noise, force = line_end_force(l, e, &noise), under = l->lo[p] - l->u[p],
                      over = l->hi ? l->u[p] - l->hi[p] : -1;
        int8_t now = l->act[p];
        if (now && now * force < -noise)
            now = 0;
        else if (!now && fmax(under, over) > ROUND_50 * size_of(l, e->field))
            now = under > over ? 1 : -1;
        changed += now != l->act[p];
        l->act[p] = now;
    }
    return changed;
}

static bool fail_singular(line *l)
{
    return field_fail(l->w, l->fp->ncond ? l->fp->cond[0].at : l->fp->at,
                      "the system is singular: the conditions do not determine %s", l->fp->name[0]);
}

static void right_side(line *l)
{
    for (int64_t k = 0; k < l->size; k++)
        l->u[k] = -l->rhs[row_slot(l, k)];
}

bool line_linear_solve(line *l, bool coarsest, bool finest)
{
    double rcond = 1;
    int64_t n = l->size;
    if (!line_assemble(l, NULL))
        return field_fail(l->w, l->fp->eq[0].f.at, "the equation is not finite");
    if (coarsest) {
        int8_t *act = l->act;
        l->act = NULL;
        right_side(l);
        bool good = line_band_solve(l, l->u, &rcond);
        l->act = act;
        if (!good || rcond < RCOND_LEAST) {
            if (!l->fp->nobst)
                return fail_singular(l);
            memset(l->u, 0, (size_t)n * sizeof *l->u);
        }
        if (l->act)
            sets_update(l, false);
        if (!l->act)
            return true;
    }
    /* All nodes change together at first.  The condition at a free end is one-sided, so that the matrix need
       not be of a kind for which that ends: then an end changes only when the nodes between have settled, and
       these one at a time. */
    int ends = 0, since = 0, most = MAX_STEPS + (finest ? 40 * (int)fmin((double)n, 100) : 0);
    for (l->steps = 1; l->steps <= most; l->steps++) {
        if (!field_goes_on(l->w, l->done))
            return false;
        right_side(l);
        if (!l->three || !line_tridiagonal_solve(l, l->u)) {
            right_side(l);
            if (!line_band_solve(l, l->u, NULL))
                return fail_singular(l);
        }
        if (!l->act)
            return true;
        bool together = l->steps <= TOGETHER;
        int64_t changed = sets_update(l, ++since > (together ? TOGETHER : 2 * TOGETHER));
        if (l->nend && (together || (!changed && ends < END_CHANGES)) && ends_update(l)) {
            changed++;
            ends += !together;
            since = together ? since : TOGETHER;
        }
        if (!changed)
            return true;
    }
    if (!finest) /* only a starting point for the next grid */
        return true;
    return field_fail(l->w, l->fp->obst[0].at,
                      "the contact set does not converge; is the sign of the equation that of a problem with "
                      "an obstacle (-u'' = f, u'''' = f)?");
}

/* What rows of several fields, each in a unit of its own, are measured by: the largest value of each field,
   or what its rows ask for at once where that is more. */
typedef struct field_size {
    double now;
    double
        least; /* a fraction of the value that each of the other fields alone would cause over the domain */
} field_size;

static void field_sizes(const line *l, field_size *of)
{
    for (int f = 0; f < l->nf; f++) {
        double reach = pow((double)l->n, l->fp->eq[f].order);
        of[f] = (field_size){ size_of(l, f), 0 };
        for (int64_t s = 0; s < rows_of(l, f); s++) {
            int64_t row = row_place(l, f, s), first = row - l->kl;
            const double *a = row_start(l, row);
            double own = 0, others = 0;
            for (int j = 0; j < l->band; j++) {
                int64_t col = first + j;
                if (col < 0 || col >= l->size)
                    continue;
                if (col % l->nf == f)
                    own = fmax(own, fabs(a[j]));
                else
                    others = fmax(others, fabs(a[j] * l->u[col]));
            }
            if (!(own > 0))
                continue;
            of[f].now = fmax(of[f].now, fabs(l->rhs[row]) / own);
            of[f].least = fmax(of[f].least, FIELD_LEAST * others / own * reach);
        }
    }
}

/* the largest term of each row: what its residual is measured by, so that it is a change of u in every row */
static void row_sizes(const line *l, const field_size *of, double *size)
{
    for (int64_t i = 0; i < l->size; i++) {
        const double *a = row_start(l, i);
        size[i] = 0;
        for (int j = 0; j < l->band; j++) {
            int64_t col = i - l->kl + j;
            if (col >= 0 && col < l->size)
                size[i] = fmax(size[i], fabs(a[j]) * (l->nf > 1 ? of[col % l->nf].now : 1));
        }
        if (!(size[i] > 0))
            size[i] = 1;
    }
}

/* The change of u, relative to the size of its field. */
static double largest_move(const line *l, const double *old, const field_size *of)
{
    double most = 0;
    for (int f = 0; f < l->nf; f++) {
        double move = 0, size = of[f].least;
        for (int64_t k = f; k < l->size; k += l->nf) {
            move = fmax(move, fabs(l->u[k] - old[k]));
            size = fmax(size, fmax(fabs(l->u[k]), fabs(old[k])));
            if (!isfinite(l->u[k]))
                return INFINITY;
        }
        if (move > 0)
            most = fmax(most, move / size);
    }
    return most;
}

/* norm of the residual: rows of free nodes, conditions */
static double defect(line *l, const double *size)
{
    double worst = 0;
    for (int c = 0; c < l->fp->ncond; c++)
        if (!line_end_holds(l, c))
            worst = fmax(worst, fabs(l->rhs[l->cpos[c]]) / size[l->cpos[c]]);
    for (int f = 0; f < l->nf; f++)
        for (int64_t s = 0; s < rows_of(l, f); s++) {
            int64_t p = pair_of(l, f, s), row = row_place(l, f, s);
            double F = l->rhs[row];
            if (l->act && l->act[p]) {
                double bound = l->act[p] > 0 ? l->lo[p] : l->hi[p];
                if (l->o->eps > 0)
                    F += (l->u[p] - bound) / l->o->eps;
                else
                    F = 0;
            }
            worst = fmax(worst, fabs(F) / size[row]);
        }
    return worst;
}

bool line_newton_solve(line *l, bool coarsest)
{
    int64_t n = l->size;
    l->keep = arena_array(l->w->a, double, n);
    double *b = arena_array(l->w->a, double, n), *old = arena_array(l->w->a, double, n), before = INFINITY;
    double *sizes = arena_array(l->w->a, double, n);
    field_size of[FIELD_MAX];
    int ends = 0;
    (void)coarsest;
    if (!line_assemble(l, l->u))
        return field_fail(l->w, l->fp->eq[0].f.at, "the equation is not finite where Newton's method starts");
    for (l->steps = 1; l->steps <= MAX_STEPS; l->steps++) {
        if (!field_goes_on(l->w, l->done))
            return false;
        int64_t changed = l->act ? sets_update(l, false) : 0;
        field_sizes(l, of);
        row_sizes(l, of, sizes);
        double was = defect(l, sizes), step = 1, move = 0;
        bool found = false;
        /* A u_new = A u - F */
        for (int64_t i = 0; i < n; i++) {
            double noise, keep = l->rhs[i];
            l->rhs[i] = 0;
            b[i] = row_value(l, i, &noise) - keep;
            l->rhs[i] = keep;
        }
        memcpy(old, l->u, (size_t)n * sizeof *old);
        if (!line_system_solve(l, b))
            return fail_singular(l);
        for (;; step /= 2) {
            for (int64_t i = 0; i < n; i++)
                l->u[i] = old[i] + step * (b[i] - old[i]);
            move = largest_move(l, old, of);
            bool good = isfinite(move) && line_assemble(l, l->u);
            if (good &&
                (defect(l, sizes) <= was || step < LINE_FREE_STEP || changed || move <= LINE_FREE_MOVE))
                break;
            if (step < DAMPED_LEAST)
                return field_fail(l->w, l->fp->eq[0].f.at,
                                  "Newton's method finds no step that keeps the equation finite");
        }
        l->w->r->count.solver_iterations++;
        if (!changed && step == 1 && move <= l->o->tolerance &&
            (move >= before / 2 || move <= ROUND_500 || l->steps > 20))
            found = true;
        /* only rounding changes */
        if (!changed && (move == 0 || (step == 1 && move <= LINE_STALLED && move >= before / 2)))
            found = true;
        if (found && (!l->nend || ends++ == END_CHANGES || !ends_update(l)))
            return true;
        before = found ? INFINITY : move;
    }
    return field_fail(
        l->w, l->fp->eq[0].f.at,
        "Newton's method does not converge in %d steps: there may be no solution for these parameters",
        MAX_STEPS);
}
