/* line_linear: the banded systems of an interval: tridiagonal ones are eliminated here, others by LAPACK and
   refined in more digits. */
#include "field_line.h"
#include "base/linalg.h"
#include "base/tolerances.h"
#include <stdlib.h>
#include <string.h>

/* ---- linear systems ---- */
/* Rows of nodes on a bound are u = bound; with a penalty, a spring is added. */
/* Elimination without differences: where off-diagonals are not positive and the row sum is not negative, the
   pivot less the upper neighbour is a sum of positive terms, so that each component of u is right to rounding
   however fine the grid is. */
bool line_tridiagonal_solve(line *l, double *b)
{
    int64_t n = l->size;
    double *c = l->work, last = 0, rest = 1, y0 = 0, spring = l->o->eps > 0 ? 1 / l->o->eps : 0;
    for (int64_t i = 0; i < n; i++) {
        const double *r = row_start(l, i);
        double a0 = i ? r[0] : 0, up = i + 1 < n ? r[2] : 0, d = r[1],
               sum = !i           ? d + up
                     : i + 1 == n ? d + a0
                     : l->sum     ? l->sum[row_slot(l, i)]
                                  : 0,
               y = b[i];
        if (l->act && l->act[i]) {
            double bound = l->act[i] > 0 ? l->lo[i] : l->hi[i];
            if (spring <= 0) {
                last = c[i] = 0;
                rest = 1;
                y0 = b[i] = bound;
                continue;
            }
            d += spring;
            sum += spring;
            y += bound * spring;
        }
        bool positive = a0 <= 0 && up <= 0 && sum >= 0 && rest >= 0;
        double left = positive ? sum - a0 * rest : 0, beta = positive ? left - up : d - a0 * last;
        if (!(fabs(beta) > PIVOT_LEAST * (positive ? 0 : fabs(d) + fabs(a0))))
            return false;
        double inverse = 1 / beta;
        last = c[i] = up * inverse;
        rest = positive ? left * inverse : 1 + last;
        y0 = b[i] = (y - a0 * y0) * inverse;
    }
    for (int64_t i = n - 1; i-- > 0;)
        b[i] -= c[i] * b[i + 1];
    return isfinite(b[0]);
}

/* the unknown that an obstacle puts in place of each row, -1: none */
static int64_t *row_owners(const line *l)
{
    int64_t *owner = arena_array(l->w->a, int64_t, l->size);
    for (int64_t i = 0; i < l->size; i++)
        owner[i] = -1;
    for (int f = 0; l->act && f < l->nf; f++)
        for (int64_t s = 0; s < rows_of(l, f); s++)
            if (l->act[pair_of(l, f, s)])
                owner[row_place(l, f, s)] = pair_of(l, f, s);
    for (int k = 0; l->act && k < l->nend; k++)
        if (l->act[end_unknown(l, &l->end[k])])
            owner[l->cpos[l->end[k].condition]] = end_unknown(l, &l->end[k]);
    return owner;
}

/* Row i in the form that is solved, with right-hand side y; returns its largest entry with unknowns in these
   units of fields. */
static double row_solved(const line *l, const int64_t *owner, const double *unit, int64_t i, double *row,
                         double *y)
{
    double big = 0;
    memcpy(row, row_start(l, i), (size_t)l->band * sizeof *row);
    if (owner[i] >= 0) {
        int64_t p = owner[i];
        double bound = l->act[p] > 0 ? l->lo[p] : l->hi[p];
        if (l->o->eps > 0) {
            row[p - i + l->kl] += 1 / l->o->eps;
            *y += bound / l->o->eps;
        } else {
            memset(row, 0, (size_t)l->band * sizeof *row);
            row[p - i + l->kl] = 1;
            *y = bound;
        }
    }
    for (int j = 0; j < l->band; j++) {
        int64_t col = i + j - l->kl;
        if (col >= 0 && col < l->size)
            big = fmax(big, fabs(row[j]) * unit[col % l->nf]);
    }
    return big > 0 ? big : 1;
}

typedef struct {
    double *a; /* factorised, rows over their largest entries */
    int ld, *pivot;
    const int64_t *owner;
    const double *b;
    double unit[FIELD_MAX]; /* of the unknowns of each field, a power of two */
} band_factors;

static bool factors_apply(const line *l, const band_factors *q, double *x)
{
    if (!band_lu_use((int)l->size, l->kl, l->ku, q->a, q->ld, q->pivot, 1, x))
        return false;
    for (int64_t i = 0; l->nf > 1 && i < l->size; i++)
        x[i] *= q->unit[i % l->nf];
    return true;
}

/* Iterative refinement with residuals in more digits: u + low is more accurate than the digits of u,
 * although the system amplifies rounding by n^k. */
static void solution_refine(const line *l, const band_factors *q, double *x, double *low)
{
    enum { ROUNDS = 6 };
    int64_t n = l->size;
    double *r = arena_array(l->w->a, double, n), *row = arena_array(l->w->a, double, l->band),
           before = INFINITY;
    memset(low, 0, (size_t)n * sizeof *low);
    for (int it = 0; it < ROUNDS; it++) {
        double most = 0; /* of a field, relative to its size */
        for (int64_t i = 0; i < n; i++) {
            double y = q->b[i], big = row_solved(l, q->owner, q->unit, i, row, &y);
            long double s = y;
            for (int j = 0; j < l->band; j++) {
                int64_t col = i + j - l->kl;
                if (row[j] != 0 && col >= 0 && col < n)
                    s -= (long double)row[j] * ((long double)x[col] + low[col]);
            }
            r[i] = (double)(s / big);
        }
        if (!factors_apply(l, q, r))
            return;
        for (int f = 0; f < l->nf; f++) {
            double move = 0, size = 0;
            for (int64_t i = f; i < n; i += l->nf) {
                move = fmax(move, fabs(r[i]));
                size = fmax(size, fabs(x[i]));
            }
            if (move > 0)
                most = fmax(most, size > 0 ? move / size : INFINITY);
        }
        if (!(most < before / 2)) /* no further improvement */
            return;
        for (int64_t i = 0; i < n; i++) {
            long double sum = (long double)x[i] + low[i] + r[i];
            x[i] = (double)sum;
            low[i] = (double)(sum - x[i]);
        }
        if (most <= REFINED)
            return;
        before = most;
    }
}

static bool band_factor(const line *l, band_factors *q, double *x, double *rcond)
{
    int64_t n = l->size;
    double *row = arena_array(l->w->a, double, l->band);
    memset(q->a, 0, (size_t)(n * q->ld) * sizeof *q->a);
    for (int64_t i = 0; i < n; i++) {
        double y = q->b[i], big = row_solved(l, q->owner, q->unit, i, row, &y);
        for (int j = 0; j < l->band; j++) {
            int64_t col = i + j - l->kl;
            if (col >= 0 && col < n)
                q->a[(l->kl + l->ku + i - col) + col * q->ld] = row[j] * q->unit[col % l->nf] / big;
        }
        x[i] = y / big;
    }
    return band_lu_factor((int)n, l->kl, l->ku, q->a, q->ld, q->pivot, rcond) && factors_apply(l, q, x);
}

/* Units in which the values x of several fields are near 1; false: they are in such units by a factor of 16.
 */
static bool units_find(const line *l, const double *x, double *unit)
{
    enum { NEAR = 4 };
    bool changed = false;
    for (int f = 0; f < l->nf; f++) {
        double most = 0;
        for (int64_t k = f; k < l->size; k += l->nf)
            most = fmax(most, fabs(x[k]));
        if (!(most > 0) || !isfinite(most))
            continue;
        changed = changed || abs(ilogb(most) - ilogb(unit[f])) > NEAR;
        unit[f] = ldexp(1, ilogb(most));
    }
    return changed;
}

bool line_band_solve(line *l, double *b, double *rcond)
{
    enum { TIMES = 4 };
    int64_t n = l->size;
    int ld = 2 * l->kl + l->ku + 1;
    arena_pos mark = arena_mark(l->w->a);
    double *x = arena_array(l->w->a, double, n);
    band_factors q = { .a = arena_array(l->w->a, double, n *ld),
                       .ld = ld,
                       .pivot = arena_array(l->w->a, int, n),
                       .owner = row_owners(l),
                       .b = b };
    for (int f = 0; f < FIELD_MAX; f++)
        q.unit[f] = 1;
    bool good = band_factor(l, &q, x, rcond);
    for (int k = 0; good && l->nf > 1 && k < TIMES && units_find(l, x, q.unit); k++)
        good = band_factor(l, &q, x, rcond);
    if (good && l->low)
        solution_refine(l, &q, x, l->low);
    if (good)
        memcpy(b, x, (size_t)n * sizeof *b);
    arena_release(l->w->a, mark);
    return good && isfinite(b[0]);
}

/* b becomes the solution; it is unchanged if there is none */
bool line_system_solve(line *l, double *b)
{
    if (!l->three)
        return line_band_solve(l, b, NULL);
    double *keep = l->keep;
    memcpy(keep, b, (size_t)l->size * sizeof *b);
    if (line_tridiagonal_solve(l, b))
        return true;
    memcpy(b, keep, (size_t)l->size * sizeof *b);
    return line_band_solve(l, b, NULL);
}
