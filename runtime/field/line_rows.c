/* line_rows: the grid of an interval and the rows of its equations. An equation of order k belongs to the
   centre of each k + 1 neighbouring nodes (at nodes for even k, halfway for odd k), so that n + 1 nodes give
   n + 1 - k rows and the k conditions close the system, for any order. The k-th difference is the mean of
   u^(k) weighted with a B-spline B: rows across a switch weight both sides by the integral of B there, and a
   point load at a counts B(a). */
#include "base/whole.h"
#include "field_line.h"
#include "base/tolerances.h"
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 12 };

bool line_grid(line *l, const double *brk, int nb, int64_t cells)
{
    field_work *w = l->w;
    int64_t total = 0, *each = arena_array(w->a, int64_t, nb);
    int most = 0;
    for (int f = 0; f < l->nf; f++)
        if (l->fp->eq[f].order > most)
            most = l->fp->eq[f].order;
    for (int k = 0; k + 1 < nb; k++) {
        each[k] = llround((double)cells * (brk[k + 1] - brk[k]) / (w->hi[0] - w->lo[0]));
        if (each[k] < most + 1)
            each[k] = most + 1;
        total += each[k];
    }
    l->n = total + 1;
    l->size = l->n * l->nf;
    l->nbrk = nb;
    l->x = numbers(l->home, l->n);
    l->brk = arena_array(w->a, int64_t, nb);
    int64_t at = 0;
    for (int k = 0; k + 1 < nb; k++) {
        l->brk[k] = at;
        for (int64_t j = 0; j < each[k]; j++)
            l->x[at++] = brk[k] + (brk[k + 1] - brk[k]) * (double)j / (double)each[k];
    }
    l->brk[nb - 1] = at;
    l->x[at] = brk[nb - 1];
    return true;
}

static double centre_of(const line *l, int f, int64_t s)
{
    int k = l->fp->eq[f].order;
    return k % 2 ? (l->x[s + k / 2] + l->x[s + k / 2 + 1]) / 2 : l->x[s + k / 2];
}

/* nodes whose polynomial gives field g at the centre of row s of field f: first and count */
static int64_t stencil_nodes(const line *l, int f, int64_t s, int g, int *m)
{
    int k = l->fp->eq[f].order, q = l->fp->eq[g].order;
    *m = q + 1;
    if (f == g)
        return s;
    if (q % 2 != k % 2)
        ++*m;
    int64_t first = s + k / 2 - (*m - 1) / 2;
    if (k % 2 && *m % 2)
        first++;
    if (first < 0)
        first = 0;
    if (first > l->n - *m)
        first = l->n - *m;
    return first;
}

/* segment that nodes first .. last lie in, -1: in several */
static int64_t segment_of(const line *l, int64_t first, int64_t last, int64_t *hint)
{
    int64_t k = *hint;
    while (k + 1 < l->nbrk - 1 && first >= l->brk[k + 1])
        k++;
    while (k > 0 && first < l->brk[k])
        k--;
    *hint = k;
    return last <= l->brk[k + 1] ? k : -1;
}

static double segment_step(const line *l, int64_t k)
{
    return (l->x[l->brk[k + 1]] - l->x[l->brk[k]]) / (double)(l->brk[k + 1] - l->brk[k]);
}

static void stencil_make(const double *x, int m, double z, int most, stencil *s)
{
    s->m = m;
    memset(s->per, 0, sizeof s->per);
    for (int d = 0; d <= most && d < m; d++)
        stencil_weights(x, m, z, d, s->w[d]);
    for (int d = m; d <= most; d++)
        memset(s->w[d], 0, sizeof s->w[d]);
    for (int d = 1; d <= most && d < m; d++) { /* a constant has no derivative, to the last bit */
        double rest = 0;
        for (int j = 0; j < m; j++)
            if (j != m / 2)
                rest += s->w[d][j];
        s->w[d][m / 2] = -rest;
    }
}

/* A coefficient rounded to so few bits that its products with the whole numbers of a stencil are exact: rows
   then give exactly 0 for polynomials, where rounded weights would be wrong by eps*u/h^k. */
static double cut_bits(double x, int bits)
{
    int e;
    double m = frexp(x, &e);
    return isfinite(x) ? ldexp(nearbyint(ldexp(m, bits)), e - bits) : x;
}

/* weights as whole numbers over a common denominator; false: there is no small one */
static bool whole_weights(const double *w, int m, double *whole, double *over, int *bits)
{
    static const int denominators[] = { 1, 2, 4, 6, 8, 12, 24, 48, 60, 120, 180, 360, 720, 1920, 5040 };
    for (size_t k = 0; k < sizeof denominators / sizeof *denominators; k++) {
        double most = 1;
        bool good = true;
        for (int j = 0; j < m && good; j++) {
            double x = w[j] * denominators[k];
            whole[j] = nearbyint(x);
            good = fabs(x - whole[j]) <= FACTOR_SAME * fmax(1, fabs(x));
            most = fmax(most, fabs(whole[j]));
        }
        *over = denominators[k];
        *bits = 52 - (int)whole_clamp(ceil(log2(most)), 0, 1100);
        if (good)
            return true;
    }
    return false;
}

/* the same over m nodes at distances h, about the place z of 0 .. m - 1 */
static void stencil_even(int m, double z, double h, int most, stencil *s)
{
    double y[16] = { 0 }, over;
    for (int j = 0; j < m; j++)
        y[j] = j - z;
    stencil_make(y, m, 0, most, s);
    for (int d = 0; d <= most && d < m; d++) {
        if (whole_weights(s->w[d], m, s->whole[d], &over, &s->bits[d]))
            s->per[d] = pow(h, -d) / over;
        for (int j = 0; j < m; j++)
            s->w[d][j] *= pow(h, -d);
    }
}

static void band_add(line *l, int64_t row, int64_t col, double k)
{
    row_start(l, row)[(col - row) + l->kl] += k;
}

/* where each condition reads: nodes first .. first + m - 1 */
static int64_t condition_nodes(const line *l, const field_condition *c, double x, int *m)
{
    int most = 0;
    for (int j = 0; j < c->f.njet; j++)
        if (c->f.jet[j].d[0] > most)
            most = c->f.jet[j].d[0];
    int64_t lo = 0, hi = l->n - 1;
    while (hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;
        if (l->x[mid] <= x)
            lo = mid;
        else
            hi = mid;
    }
    if (l->x[hi] <= x)
        lo = hi;
    *m = most ? most + 3 : 1;
    if (*m > l->n)
        *m = (int)l->n;
    if (!most && l->x[lo] != x)
        *m = 4;
    int64_t first = lo - *m / 2;
    if (*m == 1)
        first = lo;
    if (first < 0)
        first = 0;
    if (first > l->n - *m)
        first = l->n - *m;
    return first;
}

static void extent(int64_t row, int64_t first, int64_t last, int64_t *kl, int64_t *ku)
{
    if (row - first > *kl)
        *kl = row - first;
    if (last - row > *ku)
        *ku = last - row;
}

/* rows in the order of their places, so that the band is narrow */
void line_place_rows(line *l)
{
    field_work *w = l->w;
    int nc = l->fp->ncond, order[64], used = 0;
    double at[64];
    int64_t next[FIELD_MAX] = { 0 }, row = 0, kl = 0, ku = 0;
    l->cpos = arena_array(w->a, int64_t, nc + 1);
    for (int c = 0; c < nc; c++) {
        at[c] = kernel_number(w, &l->fp->cond[c].place);
        int j = c;
        for (; j > 0 && at[order[j - 1]] > at[c]; j--)
            order[j] = order[j - 1];
        order[j] = c;
    }
    memset(l->left, 0, sizeof l->left);
    for (int c = 0; c < nc; c++) {
        if (at[c] > w->lo[0])
            continue;
        bool seen[FIELD_MAX] = { 0 };
        for (int j = 0; j < l->fp->cond[c].f.njet; j++)
            seen[l->fp->cond[c].f.jet[j].field] = true;
        for (int f = 0; f < l->nf; f++)
            l->left[f] += seen[f];
    }
    bool plain = l->nf == 1;
    for (int c = 0; c < nc; c++)
        if (at[c] > w->lo[0] && at[c] < w->hi[0])
            plain = false;
    for (int f = 0; f < l->nf; f++)
        l->pos[f] = plain ? NULL : arena_array(w->a, int64_t, l->n);
    if (plain) {
        for (int i = 0; i < nc; i++)
            l->cpos[order[i]] = at[order[i]] <= w->lo[0] ? i : l->n - nc + i;
        int k = l->fp->eq[0].order;
        kl = l->left[0];
        ku = k - l->left[0];
        if (ku < 0)
            ku = 0;
    }
    while (!plain && row < l->size) {
        int best = -1;
        double key = INFINITY;
        for (int f = 0; f < l->nf; f++) {
            if (next[f] >= rows_of(l, f))
                continue;
            double c = centre_of(l, f, next[f]);
            if (c < key)
                key = c, best = f;
        }
        if (used < nc && (best < 0 || at[order[used]] <= w->lo[0] ||
                          (at[order[used]] < w->hi[0] && at[order[used]] <= key)))
            l->cpos[order[used++]] = row++;
        else if (best < 0)
            break;
        else {
            int64_t s = next[best]++;
            l->pos[best][s] = row;
            for (int g = 0; g < l->nf; g++) {
                int m;
                int64_t first = stencil_nodes(l, best, s, g, &m);
                extent(row, first * l->nf, (first + m) * l->nf - 1, &kl, &ku);
            }
            row++;
        }
    }
    for (int c = 0; c < nc; c++) {
        int m;
        int64_t first = condition_nodes(l, &l->fp->cond[c], at[c], &m);
        extent(l->cpos[c], first * l->nf, (first + m) * l->nf - 1, &kl, &ku);
    }
    /* room for the pairs: the row of a node on the obstacle holds its column */
    for (int f = 0; f < l->nf && !plain; f++)
        for (int64_t s = 0; s < rows_of(l, f); s++)
            extent(l->pos[f][s], (s + l->left[f]) * l->nf + f, (s + l->left[f]) * l->nf + f, &kl, &ku);
    l->kl = (int)kl;
    l->ku = (int)ku;
    l->band = l->kl + l->ku + 1;
}

/* integral of B over (x, inf), for the difference with weights c over nodes y */
static double spline_above(const double *y, const double *c, int k, double x)
{
    double s = 0, fact = 1;
    for (int j = 2; j <= k; j++)
        fact *= j;
    for (int j = 0; j <= k; j++)
        if (y[j] > x)
            s += c[j] * pow(y[j] - x, k) / fact;
    return s;
}

static double spline_at(const double *y, const double *c, int k, double x)
{
    double s = 0, fact = 1;
    for (int j = 2; j < k; j++)
        fact *= j;
    for (int j = 0; j <= k; j++)
        if (y[j] > x || (k == 1 && y[j] >= x))
            s += c[j] * pow(y[j] - x, k - 1) / fact;
    return s;
}

static void row_jets(const line *l, const field_form *f, const row_stencils *r, const double *u, double k,
                     double *jets)
{
    for (int j = 0; j < f->njet; j++) {
        int g = f->jet[j].field, d = f->jet[j].d[0];
        const stencil *s = &r->other[g];
        double v = 0;
        for (int i = 0; u && i < s->m; i++)
            v += s->w[d][i] * u[(r->first[g] + i) * l->nf + g];
        jets[j] = k * v;
    }
}

/* stencils of a row: those of the segment when it lies in one */
static void row_stencils_of(const line *l, int f, int64_t s, row_stencils *r, int64_t *hint, int64_t *cached)
{
    int k = l->fp->eq[f].order;
    int64_t seg = segment_of(l, s, s + k, hint);
    if (seg >= 0 && seg == *cached && l->nf == 1) {
        r->first[0] = s;
        return;
    }
    double z = centre_of(l, f, s);
    for (int g = 0; g < l->nf; g++) {
        int m;
        r->first[g] = stencil_nodes(l, f, s, g, &m);
        int64_t h2 = *hint, in = segment_of(l, r->first[g], r->first[g] + m - 1, &h2);
        if (in < 0)
            stencil_make(l->x + r->first[g], m, z, l->fp->eq[g].order, &r->other[g]);
        else { /* evenly spaced: differences of rounded nodes would tilt the weights */
            double h = segment_step(l, in);
            stencil_even(m, k / 2.0 - (double)(r->first[g] - s), h, l->fp->eq[g].order, &r->other[g]);
        }
    }
    *cached = seg;
}

/* a row across a switch: both sides are weighted; out[0 .. njet] */
static void row_mixed(const line *l, int f, int64_t s, const row_stencils *r, const double *jets, double *out)
{
    const field_form *e = &l->fp->eq[f].f;
    int k = l->fp->eq[f].order;
    double one[65], z = centre_of(l, f, s), above = 1;
    int64_t hint = 0;
    memset(out, 0, (size_t)(e->njet + 1) * sizeof *out);
    segment_of(l, s, s, &hint);
    for (int64_t p = hint; p + 1 < l->nbrk && l->brk[p] < s + k; p++) {
        double beyond = l->brk[p + 1] < s + k
                            ? spline_above(l->x + s, r->other[f].w[k], k, l->x[l->brk[p + 1]])
                            : 0,
               theta = above - beyond;
        double x = side_of(l->w, fmin(fmax(z, l->x[l->brk[p]]), l->x[l->brk[p + 1]]), l->x[l->brk[p]],
                           l->x[l->brk[p + 1]]);
        form_run(l->w, e, &x, jets, 1, one);
        for (int j = 0; j <= e->njet; j++)
            out[j] += theta * one[j];
        above = beyond;
    }
}

static double row_loads(const line *l, int f, int64_t s, const row_stencils *r)
{
    const field_equation *e = &l->fp->eq[f];
    double sum = 0;
    for (int j = 0; j < e->nload; j++) {
        double a = kernel_number(l->w, &e->load[j].place), weight;
        if (!(a >= l->x[s] && a <= l->x[s + e->order]))
            continue;
        kernel_points(l->w, &e->load[j].weight, &a, 1, &weight);
        sum += weight * spline_at(l->x + s, r->other[f].w[e->order], e->order, a);
    }
    return sum;
}

/* A row at a jump of the coefficient, order 2: fluxes half way to both neighbours, the rest weighed with the
   slope of each side.  c: derivatives of the row in its three nodes, *sum: their sum.  u as in rows_run. */
static double row_flux(const line *l, int f, int64_t s, const double *u, double k, double *c, double *sum)
{
    const field_equation *e = &l->fp->eq[f];
    const field_flux *q = &e->flux[0];
    const double *x = l->x + s;
    double F = 0, out[65], jets[64], per, width = (x[2] - x[0]) / 2, y[3] = { 0, 0, 0 };
    for (int i = 0; u && i < 3; i++)
        y[i] = k * u[s + i];
    kernel_points(l->w, &q->per, &x[1], 1, &per);
    c[0] = c[1] = c[2] = *sum = 0;
    for (int side = 0; side < 2; side++) {
        double h = x[side + 1] - x[side], slope = (y[side + 1] - y[side]) / h,
               z = (x[side] + x[side + 1]) / 2, sign = side ? 1 : -1, theta = h / (2 * width);
        for (int part = 0; part < 2; part++) { /* the flux, at the middle; the rest, at the node */
            const field_form *g = part ? &e->rest : &q->f;
            double at = part ? side_of(l->w, x[1], x[side], x[side + 1]) : z,
                   weight = part ? theta : sign * per / width;
            for (int j = 0; j < g->njet; j++)
                jets[j] = g->jet[j].d[0] == 1 ? slope
                          : g->jet[j].d[0]    ? 0
                          : part              ? y[1]
                                              : (y[side] + y[side + 1]) / 2;
            form_run(l->w, g, &at, jets, 1, out);
            F += weight * out[0];
            for (int j = 0; j < g->njet; j++) {
                double d = weight * out[1 + j];
                if (g->jet[j].d[0] == 1)
                    c[side + 1] += d / h, c[side] -= d / h;
                else if (g->jet[j].d[0] == 0 && part)
                    c[1] += d, *sum += d;
                else if (g->jet[j].d[0] == 0)
                    c[side] += d / 2, c[side + 1] += d / 2, *sum += d;
            }
        }
    }
    return F;
}

static void use_assemble(line *l, int f, int64_t s, const row_stencils *r, const double *out, void *ud);

/* repeats the previous row: in a segment where nothing depends on x all are equal */
static void row_repeat(line *l, int64_t row)
{
    for (int j = 0; j < l->band; j++)
        l->ab[row * l->band + j] = l->ab[(row - 1) * l->band + j];
    l->rhs[row] = l->rhs[row - 1];
    if (l->sum)
        l->sum[row] = l->sum[row - 1];
}

/* does the equation depend on x only through its switches? */
bool line_form_uniform(const field_form *f)
{
    for (uint32_t k = 0; k < f->k.tape.nin; k++)
        if (f->k.in[k].kind == IN_COORD)
            return false;
    return true;
}

/* all rows of field f with jets k*u (u may be NULL: zero); false: not finite */
bool line_rows_run(line *l, int f, const double *u, double k, row_use use, void *ud)
{
    const field_equation *q = &l->fp->eq[f];
    const field_form *e = &q->f;
    int nj = e->njet;
    int64_t rows = l->alike && use == use_assemble ? 1 : rows_of(l, f), hint = 0, cached = -2;
    arena_pos mark = arena_mark(l->w->a);
    double *x = arena_array(l->w->a, double, CHUNK), *jets = arena_array(l->w->a, double, CHUNK *(nj + 1)),
           *out = arena_array(l->w->a, double, CHUNK *(nj + 1));
    double mixed[65];
    row_stencils r = { 0 };
    bool good = true, same = !u && use == use_assemble && l->nf == 1 && !l->pos[0] &&
                             !(q->nload && q->order == 1) && line_form_uniform(e);
    for (int64_t from = 0; from < rows && good; from += CHUNK) {
        int64_t to = from + CHUNK < rows ? from + CHUNK : rows, h0 = hint, c0 = cached;
        row_stencils r0 = r;
        arena_tick(l->w->a, 64 * (to - from));
        for (int64_t s = from; s < to; s++) {
            if (!same || !from || l->nbrk > 2)
                x[s - from] = centre_of(l, f, s);
            if (!u)
                continue;
            row_stencils_of(l, f, s, &r, &hint, &cached);
            row_jets(l, e, &r, u, k, jets + (s - from) * nj);
        }
        if (!same || !from || l->nbrk > 2)
            form_run(l->w, e, x, jets, to - from, out);
        r = r0;
        hint = h0;
        cached = c0;
        for (int64_t s = from; s < to; s++) {
            int64_t before = cached;
            row_stencils_of(l, f, s, &r, &hint, &cached);
            if (same && s > 0 && cached >= 0 && before == cached) {
                row_repeat(l, s + l->left[0]);
                continue;
            }
            double *o = out + (s - from) * (nj + 1);
            if (cached < 0 && q->nflux) {
                double c[3], sum, F = row_flux(l, f, s, u, k, c, &sum);
                if (q->nload)
                    F += row_loads(l, f, s, &r);
                if (!isfinite(F)) {
                    good = false;
                    break;
                }
                mixed[0] = F;
                if (use != use_assemble) {
                    use(l, f, s, &r, mixed, ud);
                    continue;
                }
                int64_t row = row_place(l, f, s);
                l->rhs[row] = F;
                memset(row_start(l, row), 0, (size_t)l->band * sizeof *l->ab);
                if (l->sum)
                    l->sum[row] = sum;
                for (int i = 0; i < 3; i++)
                    band_add(l, row, s + i, c[i]);
                continue;
            }
            if (cached < 0) {
                row_mixed(l, f, s, &r, jets + (s - from) * nj, mixed);
                o = mixed;
            }
            if (q->nload && (cached < 0 || q->order == 1))
                o[0] += row_loads(l, f, s, &r);
            if (!isfinite(o[0])) {
                good = false;
                break;
            }
            use(l, f, s, &r, o, ud);
        }
    }
    arena_release(l->w->a, mark);
    return good;
}

/* k times derivative d as factor*weights */
static double stencil_factor(const line *l, const stencil *s, int d, double k, const double **w)
{
    bool exact = !l->three && s->per[d] != 0;
    *w = exact ? s->whole[d] : s->w[d];
    return exact ? cut_bits(k * s->per[d], s->bits[d]) : k;
}

static void use_assemble(line *l, int f, int64_t s, const row_stencils *r, const double *out, void *ud)
{
    const field_form *e = &l->fp->eq[f].f;
    int64_t row = row_place(l, f, s);
    (void)ud;
    l->rhs[row_slot(l, row)] = out[0];
    memset(row_start(l, row), 0, (size_t)l->band * sizeof *l->ab);
    for (int j = 0; l->sum && j < e->njet; j++)
        if (e->jet[j].d[0] == 0)
            l->sum[row_slot(l, row)] = out[1 + j];
    if (l->nf == 1) {
        double *at = row_start(l, row) + (s - row) + l->kl;
        for (int j = 0; j < e->njet; j++) {
            const double *w;
            double k = stencil_factor(l, &r->other[0], e->jet[j].d[0], out[1 + j], &w);
            for (int i = 0; i < r->other[0].m; i++)
                at[i] += k * w[i];
        }
        return;
    }
    for (int j = 0; j < e->njet; j++) {
        int g = e->jet[j].field;
        const stencil *st = &r->other[g];
        for (int i = 0; i < st->m; i++)
            band_add(l, row, (r->first[g] + i) * l->nf + g, out[1 + j] * st->w[e->jet[j].d[0]][i]);
    }
}

static void condition_stencil(const line *l, int64_t first, int m, double x, stencil *s)
{
    int64_t hint = 0, in = segment_of(l, first, first + m - 1, &hint), at = 0;
    while (at < m && l->x[first + at] != x)
        at++;
    if (in >= 0 && at < m)
        stencil_even(m, (double)at, segment_step(l, in), FIELD_ORDER, s);
    else
        stencil_make(l->x + first, m, x, FIELD_ORDER, s);
}

static void condition_row(line *l, int c, const double *u)
{
    const field_condition *q = &l->fp->cond[c];
    double x = kernel_number(l->w, &q->place), jets[64], out[65];
    int m;
    int64_t first = condition_nodes(l, q, x, &m), row = l->cpos[c];
    stencil s;
    condition_stencil(l, first, m, x, &s);
    for (int j = 0; j < q->f.njet; j++) {
        jets[j] = 0;
        for (int i = 0; u && i < m; i++)
            jets[j] += s.w[q->f.jet[j].d[0]][i] * u[(first + i) * l->nf + q->f.jet[j].field];
    }
    double inside = side_of(l->w, x, l->w->lo[0], l->w->hi[0]);
    form_run(l->w, &q->f, &inside, jets, 1, out);
    l->rhs[row_slot(l, row)] = out[0];
    memset(row_start(l, row), 0, (size_t)l->band * sizeof *l->ab);
    for (int j = 0; j < q->f.njet; j++) {
        const double *w;
        double k = stencil_factor(l, &s, q->f.jet[j].d[0], out[1 + j], &w);
        for (int i = 0; i < m; i++)
            band_add(l, row, (first + i) * l->nf + q->f.jet[j].field, k * w[i]);
    }
}

/* matrix and residual at u (NULL: at zero) */
bool line_assemble(line *l, const double *u)
{
    for (int f = 0; f < l->nf; f++)
        if (!line_rows_run(l, f, u, 1, use_assemble, NULL))
            return false;
    for (int c = 0; c < l->fp->ncond; c++)
        condition_row(l, c, u);
    return true;
}
