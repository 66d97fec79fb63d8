/* field_line: fields on an interval, by finite differences.  An equation of order k stands at the centre of
   each k + 1 neighbouring nodes (at nodes for even k, half way for odd k), so that n + 1 nodes give n + 1 - k
   rows and the k conditions close the system, whatever the order.  The k-th difference is the mean of u^(k)
   over a B-spline B: rows that see a switch weigh both sides by the integral of B there, and a point load at
   a counts B(a).  Obstacles: primal-dual active sets, that is semi-smooth Newton, from a grid four times as
   coarse.  Systems are banded: tridiagonal ones are eliminated here, others by LAPACK. */
#include "field.h"
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 12, MAX_STEPS = 80, LEVEL_RATIO = 4, MAX_LEVELS = 16 };

/* derivative d at the centre: sum w[d][j] u[first + j] */
typedef struct stencil {
    double w[FIELD_ORDER + 1][16];
    int m;
    /* nodes evenly spaced: whole[d][j]*per[d] = w[d][j] with whole numbers; else per[d] is 0 */
    double whole[FIELD_ORDER + 1][16], per[FIELD_ORDER + 1];
    int bits[FIELD_ORDER + 1]; /* that a factor may have for exact products */
} stencil;

/* A free end: its node has no row of the equation, the force of the obstacle there stands in the condition
   that gives u^(k-1).  Across the end u^(k-1) jumps by force/lead, lead = dF/du^(k), so that force =
   per*(what the condition leaves). */
typedef struct end_pair {
    int field, condition;
    int64_t node;
    double per;
} end_pair;

typedef struct line {
    field_work *w;
    const field_program *fp;
    const line_options *o;
    int nf;
    arena *home;     /* of what is left behind */
    int64_t n, size; /* nodes; unknowns */
    double *x;
    int64_t nbrk, *brk;
    int left[FIELD_MAX];     /* conditions at the left end: row s of a field is paired with node s + left */
    int64_t *pos[FIELD_MAX]; /* place of row s in the matrix; NULL: s + left[0] */
    int64_t *cpos;           /* of each condition */
    end_pair end[2 * FIELD_MAX]; /* ends of the domain that are free to meet the obstacle */
    int nend;
    int kl, ku, band;
    bool three;          /* tridiagonal */
    bool alike;          /* and all rows but the first and the last are the same: three are kept */
    double *sum;         /* of each row, then; NULL: 0 */
    double *ab, *rhs;    /* ab[row*band + column - row + kl]; residual at the linearisation */
    double *u, *lo, *hi; /* bounds by unknown; NULL without obstacles, hi: without upper ones */
    int8_t *act;         /* -1, 0, 1: on the upper, no, on the lower bound */
    double *low;         /* what u leaves out by being rounded; NULL: not known */
    double *work, *keep;
    double done; /* of the whole, before this level */
    int steps;
} line;

/* ---- the grid ---- */
/* not cleared: for what is filled at once */
static double *numbers(arena *a, int64_t n)
{
    size_t size;
    if (__builtin_mul_overflow((size_t)n, sizeof(double), &size))
        size = SIZE_MAX / 2;
    return arena_alloc(a, size);
}

static bool grid_make(line *l, const double *brk, int nb, int64_t cells)
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

static int64_t rows_of(const line *l, int f)
{
    return l->n - l->fp->eq[f].order;
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

/* A coefficient cut to so many bits that its products with the whole numbers of a stencil are exact: rows
 * then give 0 for polynomials to the last bit, where rounded weights would be off by eps*u/h^k. */
static double cut_bits(double x, int bits)
{
    int e;
    double m = frexp(x, &e);
    return isfinite(x) ? ldexp(nearbyint(ldexp(m, bits)), e - bits) : x;
}

/* weights as whole numbers over a common denominator; false: there is none that is small */
static bool whole_weights(const double *w, int m, double *whole, double *over, int *bits)
{
    static const int denominators[] = { 1, 2, 4, 6, 8, 12, 24, 48, 60, 120, 180, 360, 720, 1920, 5040 };
    for (size_t k = 0; k < sizeof denominators / sizeof *denominators; k++) {
        double most = 1;
        bool good = true;
        for (int j = 0; j < m && good; j++) {
            double x = w[j] * denominators[k];
            whole[j] = nearbyint(x);
            good = fabs(x - whole[j]) <= 1e-12 * fmax(1, fabs(x));
            most = fmax(most, fabs(whole[j]));
        }
        *over = denominators[k];
        *bits = 52 - (int)ceil(log2(most));
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

/* ---- rows ---- */
static int64_t row_slot(const line *l, int64_t row)
{
    return !l->alike ? row : row == 0 ? 0 : row + 1 == l->size ? 2 : 1;
}
static double *row_start(const line *l, int64_t row)
{
    return l->ab + row_slot(l, row) * l->band;
}
static void band_add(line *l, int64_t row, int64_t col, double k)
{
    row_start(l, row)[(col - row) + l->kl] += k;
}
static int64_t row_place(const line *l, int f, int64_t s)
{
    return l->pos[f] ? l->pos[f][s] : s + l->left[0];
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
static void rows_place(line *l)
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

typedef struct {
    stencil other[FIELD_MAX];
    int64_t first[FIELD_MAX];
} row_stencils;

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

/* a row that sees a switch: both sides weighed; out[0 .. njet] */
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

/* what is done with each row: value and derivatives of F there */
typedef void (*row_use)(line *l, int f, int64_t s, const row_stencils *r, const double *out, void *ud);

static void use_assemble(line *l, int f, int64_t s, const row_stencils *r, const double *out, void *ud);

/* the row before once more: in a segment where nothing hangs on x all are alike */
static void row_repeat(line *l, int64_t row)
{
    for (int j = 0; j < l->band; j++)
        l->ab[row * l->band + j] = l->ab[(row - 1) * l->band + j];
    l->rhs[row] = l->rhs[row - 1];
    if (l->sum)
        l->sum[row] = l->sum[row - 1];
}

/* does the equation hang on x only through its switches? */
static bool form_uniform(const field_form *f)
{
    for (uint32_t k = 0; k < f->k.tape.nin; k++)
        if (f->k.in[k].kind == IN_COORD)
            return false;
    return true;
}

/* all rows of field f with jets k*u (u may be NULL: zero); false: not finite */
static bool rows_run(line *l, int f, const double *u, double k, row_use use, void *ud)
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
                             !(q->nload && q->order == 1) && form_uniform(e);
    for (int64_t from = 0; from < rows && good; from += CHUNK) {
        int64_t to = from + CHUNK < rows ? from + CHUNK : rows, h0 = hint, c0 = cached;
        row_stencils r0 = r;
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
static bool assemble_at(line *l, const double *u)
{
    for (int f = 0; f < l->nf; f++)
        if (!rows_run(l, f, u, 1, use_assemble, NULL))
            return false;
    for (int c = 0; c < l->fp->ncond; c++)
        condition_row(l, c, u);
    return true;
}

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

static void ends_make(line *l)
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

static int64_t end_unknown(const line *l, const end_pair *e)
{
    return e->node * l->nf + e->field;
}

static bool end_holds(const line *l, int c)
{
    for (int k = 0; k < l->nend; k++)
        if (l->end[k].condition == c && l->act[end_unknown(l, &l->end[k])])
            return true;
    return false;
}

static bool bounds_make(line *l)
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
            if (fp->obst[o].sense * (value - psi) < -1e-9 * obstacle_size(w, &fp->obst[o]))
                return field_fail(w, fp->obst[o].at,
                                  "no %s can hold both: at %s = %g its boundary value %g lies %s the "
                                  "obstacle, which is %g there",
                                  fp->name[fp->obst[o].field], fp->coord[0], x, value,
                                  fp->obst[o].sense > 0 ? "below" : "above", psi);
        }
    }
    return true;
}

static bool bounds_check(line *l)
{
    for (int64_t i = 0; l->hi && i < l->size; i++)
        if (l->lo[i] > l->hi[i])
            return field_fail(
                l->w, l->fp->obst[0].at,
                "no %s can hold both obstacles: at %s = %g the lower one is %g, the upper one %g",
                l->fp->name[i % l->nf], l->fp->coord[0], l->x[i / l->nf], l->lo[i], l->hi[i]);
    return true;
}

/* ---- linear systems ---- */
/* Rows of nodes on a bound say u = bound; penalised, a spring is added. */
/* Elimination without differences: where off-diagonals are not positive and the row sum is not negative, the
   pivot less the upper neighbour is a sum of positive terms, so that each component of u is right to rounding
   however fine the grid is. */
static bool tridiagonal_solve(line *l, double *b)
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
        if (!(fabs(beta) > 1e-14 * (positive ? 0 : fabs(d) + fabs(a0))))
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

/* unknown that is paired with each row, by field */
static int64_t pair_of(const line *l, int f, int64_t s)
{
    return (s + l->left[f]) * l->nf + f;
}

/* the unknown that an obstacle puts in the place of each row, -1: none */
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

/* row i as it is solved, right side y; returns its largest entry */
static double row_solved(const line *l, const int64_t *owner, int64_t i, double *row, double *y)
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
    for (int j = 0; j < l->band; j++)
        big = fmax(big, fabs(row[j]));
    return big > 0 ? big : 1;
}

typedef struct {
    double *a; /* factorised, rows over their largest entries */
    lapack_int ld, *pivot;
    const int64_t *owner;
    const double *b;
} band_factors;

static bool factors_apply(const line *l, const band_factors *q, double *x)
{
    return LAPACKE_dgbtrs(LAPACK_COL_MAJOR, 'N', (lapack_int)l->size, l->kl, l->ku, 1, q->a, q->ld, q->pivot,
                          x, (lapack_int)l->size) == 0;
}

/* Iterative refinement with residuals in more digits: u + low is right to more than the digits of u, although
 * the system passes rounding on n^k times. */
static void solution_refine(const line *l, const band_factors *q, double *x, double *low)
{
    enum { ROUNDS = 6 };
    int64_t n = l->size;
    double *r = arena_array(l->w->a, double, n), *row = arena_array(l->w->a, double, l->band),
           before = INFINITY;
    memset(low, 0, (size_t)n * sizeof *low);
    for (int it = 0; it < ROUNDS; it++) {
        double move = 0, size = 0;
        for (int64_t i = 0; i < n; i++) {
            double y = q->b[i], big = row_solved(l, q->owner, i, row, &y);
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
        for (int64_t i = 0; i < n; i++) {
            move = fmax(move, fabs(r[i]));
            size = fmax(size, fabs(x[i]));
        }
        if (!(move < before / 2)) /* it does not help any more */
            return;
        for (int64_t i = 0; i < n; i++) {
            long double sum = (long double)x[i] + low[i] + r[i];
            x[i] = (double)sum;
            low[i] = (double)(sum - x[i]);
        }
        if (move <= 1e-17 * size)
            return;
        before = move;
    }
}

static bool band_solve(line *l, double *b, double *rcond)
{
    int64_t n = l->size;
    lapack_int ld = 2 * l->kl + l->ku + 1, info;
    arena_pos mark = arena_mark(l->w->a);
    double *a = arena_array(l->w->a, double, n *ld), *x = arena_array(l->w->a, double, n);
    lapack_int *pivot = arena_array(l->w->a, lapack_int, n);
    double *row = arena_array(l->w->a, double, l->band);
    const int64_t *owner = row_owners(l);
    for (int64_t i = 0; i < n; i++) {
        double y = b[i], big = row_solved(l, owner, i, row, &y);
        for (int j = 0; j < l->band; j++) {
            int64_t col = i + j - l->kl;
            if (col >= 0 && col < n)
                a[(l->kl + l->ku + i - col) + col * ld] = row[j] / big;
        }
        x[i] = y / big;
    }
    double norm = rcond ? LAPACKE_dlangb(LAPACK_COL_MAJOR, '1', (lapack_int)n, l->kl, l->ku, a + l->kl, ld)
                        : 0;
    info = LAPACKE_dgbtrf(LAPACK_COL_MAJOR, (lapack_int)n, (lapack_int)n, l->kl, l->ku, a, ld, pivot);
    if (info == 0 && rcond)
        LAPACKE_dgbcon(LAPACK_COL_MAJOR, '1', (lapack_int)n, l->kl, l->ku, a, ld, pivot, norm, rcond);
    const band_factors q = { a, ld, pivot, owner, b };
    bool good = info == 0 && factors_apply(l, &q, x);
    if (good && l->low)
        solution_refine(l, &q, x, l->low);
    if (good)
        memcpy(b, x, (size_t)n * sizeof *b);
    arena_release(l->w->a, mark);
    return good && isfinite(b[0]);
}

/* b becomes the solution; it is kept when there is none */
static bool system_solve(line *l, double *b)
{
    if (!l->three)
        return band_solve(l, b, NULL);
    double *keep = l->keep;
    memcpy(keep, b, (size_t)l->size * sizeof *b);
    if (tridiagonal_solve(l, b))
        return true;
    memcpy(b, keep, (size_t)l->size * sizeof *b);
    return band_solve(l, b, NULL);
}

/* ---- active sets ---- */
/* residual of a row with u, and a bound for its rounding error */
static inline double row_value(const line *l, int64_t row, double *noise)
{
    const double *a = row_start(l, row);
    double s = l->rhs[row_slot(l, row)], e = fabs(s);
    int64_t first = row - l->kl;
    if (l->three && row > 0 && row + 1 < l->size) {
        double x = a[0] * l->u[row - 1], y = a[1] * l->u[row], z = a[2] * l->u[row + 1];
        *noise = 8e-16 * (e + fabs(x) + fabs(y) + fabs(z));
        return s + x + y + z;
    }
    long double sum = s;
    for (int j = 0; j < l->band; j++) {
        int64_t col = first + j;
        if (col < 0 || col >= l->size || a[j] == 0)
            continue;
        long double t = (long double)a[j] * ((long double)l->u[col] + (l->low ? l->low[col] : 0));
        sum += t;
        e += fabs((double)t);
    }
    *noise = (l->low ? 1e-18 : 8e-16) * e;
    return (double)sum;
}

/* of the obstacle, on a free end */
static double end_force(const line *l, const end_pair *e, double *noise)
{
    int64_t row = l->cpos[e->condition];
    double left = row_value(l, row, noise);
    if (!l->fp->linear)
        left = l->rhs[row];
    *noise *= fabs(e->per);
    return e->per * left;
}

/* rows that are alike, one lower bound: the same in one short loop */
static int64_t sets_alike(line *l, double size)
{
    const double *a = l->ab + l->band, *u = l->u, *lo = l->lo, f = l->rhs[1], tiny = 1e-14 * size;
    int64_t changed = 0;
    for (int64_t k = 1; k + 1 < l->size; k++) {
        int8_t now = lo[k] - u[k] > tiny;
        if (l->act[k]) {
            double x = a[0] * u[k - 1], y = a[1] * u[k], z = a[2] * u[k + 1];
            now = f + x + y + z >= -8e-16 * (fabs(f) + fabs(x) + fabs(y) + fabs(z));
        }
        changed += now != l->act[k];
        l->act[k] = now;
    }
    return changed;
}

/* the set for u: nodes that left it or came to it; linear problems have rhs at zero, others at u (then rows
 * give rhs alone) */
static int64_t sets_update(line *l, double size, bool one)
{
    int64_t changed = 0;
    if (l->alike && !l->hi && l->o->eps <= 0 && !one)
        return sets_alike(l, size);
    for (int f = 0; f < l->nf; f++)
        for (int64_t s = 0; s < rows_of(l, f); s++) {
            int64_t p = pair_of(l, f, s), row = row_place(l, f, s);
            double noise = 0, under = l->lo[p] - l->u[p], over = l->hi ? l->u[p] - l->hi[p] : -1,
                   in = under > over ? under : over;
            int8_t was = l->act[p], now = was;
            double tiny = 1e-14 * size;
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
    for (int k = 0; k < l->nend; k++) {
        const end_pair *e = &l->end[k];
        int64_t p = end_unknown(l, e);
        double noise, force = end_force(l, e, &noise), under = l->lo[p] - l->u[p],
                      over = l->hi ? l->u[p] - l->hi[p] : -1;
        int8_t now = l->act[p];
        if (now && now * force < -noise)
            now = 0;
        else if (!now && fmax(under, over) > 1e-14 * size)
            now = under > over ? 1 : -1;
        changed += now != l->act[p];
        l->act[p] = now;
        if (changed && one)
            return changed;
    }
    return changed;
}

static double size_of(const line *l)
{
    double s = 0;
    for (int64_t k = 0; k < l->size; k++)
        s = fabs(l->u[k]) > s ? fabs(l->u[k]) : s;
    return s;
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

static bool linear_solve(line *l, bool coarsest)
{
    double rcond = 1;
    int64_t n = l->size;
    if (!assemble_at(l, NULL))
        return field_fail(l->w, l->fp->eq[0].f.at, "the equation is not finite");
    if (coarsest) {
        int8_t *act = l->act;
        l->act = NULL;
        right_side(l);
        bool good = band_solve(l, l->u, &rcond);
        l->act = act;
        if (!good || rcond < 1e-15) {
            if (!l->fp->nobst)
                return fail_singular(l);
            memset(l->u, 0, (size_t)n * sizeof *l->u);
        }
        if (l->act)
            sets_update(l, size_of(l), false);
        if (!l->act)
            return true;
    }
    for (l->steps = 1; l->steps <= MAX_STEPS + 40 * (int)fmin((double)n, 100); l->steps++) {
        if (!field_goes_on(l->w, l->done))
            return false;
        right_side(l);
        if (!l->three || !tridiagonal_solve(l, l->u)) {
            right_side(l);
            if (!band_solve(l, l->u, NULL))
                return fail_singular(l);
        }
        if (!l->act || !sets_update(l, size_of(l), l->steps > 40))
            return true;
    }
    return field_fail(l->w, l->fp->obst[0].at,
                      "the contact set does not settle; is the sign of the equation that of a problem with "
                      "an obstacle (-u'' = f, u'''' = f)?");
}

/* norm of what is not solved: rows of free nodes, conditions */
static double defect(line *l)
{
    double worst = 0;
    for (int c = 0; c < l->fp->ncond; c++)
        if (!end_holds(l, c))
            worst = fmax(worst, fabs(l->rhs[l->cpos[c]]));
    for (int f = 0; f < l->nf; f++)
        for (int64_t s = 0; s < rows_of(l, f); s++) {
            int64_t p = pair_of(l, f, s);
            double F = l->rhs[row_place(l, f, s)];
            if (l->act && l->act[p]) {
                double bound = l->act[p] > 0 ? l->lo[p] : l->hi[p];
                if (l->o->eps > 0)
                    F += (l->u[p] - bound) / l->o->eps;
                else
                    F = 0;
            }
            worst = fmax(worst, fabs(F));
        }
    return worst;
}

static bool newton_solve(line *l, bool coarsest)
{
    int64_t n = l->size;
    l->keep = arena_array(l->w->a, double, n);
    double *b = arena_array(l->w->a, double, n), *old = arena_array(l->w->a, double, n), before = INFINITY;
    (void)coarsest;
    if (!assemble_at(l, l->u))
        return field_fail(l->w, l->fp->eq[0].f.at, "the equation is not finite where Newton's method starts");
    for (l->steps = 1; l->steps <= MAX_STEPS; l->steps++) {
        if (!field_goes_on(l->w, l->done))
            return false;
        double size = size_of(l);
        int64_t changed = l->act ? sets_update(l, size, false) : 0;
        double was = defect(l), step = 1, move = 0;
        /* A u_new = A u - F */
        for (int64_t i = 0; i < n; i++) {
            double noise, keep = l->rhs[i];
            l->rhs[i] = 0;
            b[i] = row_value(l, i, &noise) - keep;
            l->rhs[i] = keep;
        }
        memcpy(old, l->u, (size_t)n * sizeof *old);
        if (!system_solve(l, b))
            return fail_singular(l);
        for (;; step /= 2) {
            move = 0;
            for (int64_t i = 0; i < n; i++) {
                l->u[i] = old[i] + step * (b[i] - old[i]);
                move = fmax(move, fabs(l->u[i] - old[i]));
            }
            bool good = isfinite(move) && assemble_at(l, l->u);
            if (good && (defect(l) <= was || step < 1e-2 || changed || move <= 1e-9 * size))
                break;
            if (step < 1e-6)
                return field_fail(l->w, l->fp->eq[0].f.at,
                                  "Newton's method finds no step that keeps the equation finite");
        }
        l->w->r->solver_iterations++;
        size = size_of(l);
        if (!changed && step == 1 && move <= l->o->tolerance * size &&
            (move >= before / 2 || move <= 1e-13 * size || l->steps > 20))
            return true;
        /* rounding is all that moves */
        if (!changed && (move == 0 || (step == 1 && move <= 1e-6 * size && move >= before / 2)))
            return true;
        before = move;
    }
    return field_fail(
        l->w, l->fp->eq[0].f.at,
        "Newton's method does not converge in %d steps: there may be no solution for these parameters",
        MAX_STEPS);
}

/* ---- levels ---- */
static double gap_of(const line *l, int f, int64_t k)
{
    int64_t i = k * l->nf + f;
    return fmin(fabs(l->u[i] - l->lo[i]), l->hi ? fabs(l->hi[i] - l->u[i]) : INFINITY);
}

/* How the gap closes at an end of contact, like (x - xi)^m: k constants, c conditions on this side and xi
 * itself leave m = k - c + 1 to match. */
static int gap_power(const line *l, int f, double x, int side)
{
    int k = l->fp->eq[f].order, there = 0;
    for (int c = 0; c < l->fp->ncond; c++) {
        const field_condition *q = &l->fp->cond[c];
        double at = kernel_number(l->w, &q->place);
        bool mine = false;
        for (int j = 0; j < q->f.njet; j++)
            mine = mine || q->f.jet[j].field == f;
        there += mine && (at - x) * side > 0;
    }
    return there > k ? 1 : k - there + 1;
}

/* The derivative m - 1 of the gap is followed to 0: the gap itself is off by what the nearest node misses of
 * xi, its derivatives are not. */
static double zone_end(const line *l, int f, int64_t k, int side)
{
    int m = gap_power(l, f, l->x[k], side), n = m + 2;
    double h = fabs(l->x[k] - l->x[k > 0 ? k - 1 : k + 1]), length = l->w->hi[0] - l->w->lo[0], x[16], w[16],
           c[2][16], z = 0;
    int64_t step = (int64_t)fmax(1, ceil(pow(1e-8, 1.0 / m) * length / h)), last = k + side * n * step;
    if (last < 0 || last >= l->n)
        return l->x[k];
    for (int64_t j = 0; j < l->nbrk; j++) {
        int64_t q = l->brk[j];
        if (q > 0 && q < l->n - 1 && (side < 0 ? q <= k + 1 && q >= last : q >= k - 1 && q <= last))
            return l->x[k];
    }
    for (int j = 0; j < n; j++) {
        int64_t at = k + side * (j + 1) * step;
        x[j] = l->x[at] - l->x[k];
        w[j] = gap_of(l, f, at);
        if (l->act[at * l->nf + f])
            return l->x[k];
    }
    for (int it = 0; it < 6; it++) {
        double d[2] = { 0, 0 };
        for (int e = 0; e < 2; e++) {
            stencil_weights(x, n, z, m - 1 + e, c[e]);
            for (int j = 0; j < n; j++)
                d[e] += c[e][j] * w[j];
        }
        z -= d[0] / d[1];
    }
    if (!isfinite(z))
        return l->x[k];
    return l->x[k] + fmin(fmax(z, -1.5 * h), 1.5 * h);
}

/* Contact begins where the coarse grid says, to a fraction of its cells.  For order 2 the last node of
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
            a = zone_end(from, f, k, -1), b = zone_end(from, f, to, 1);
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
    l->alike = l->three && l->fp->linear && l->nbrk == 2 && form_uniform(&l->fp->eq[0].f);
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
    grid_make(l, brk, nb, cells);
    rows_place(l);
    if (!bounds_make(l))
        return false;
    ends_make(l);
    if (!bounds_check(l))
        return false;
    level_start(l, from);
    return l->fp->linear ? linear_solve(l, !from) : newton_solve(l, !from);
}

/* ---- what is left behind ---- */
static double node_width(const line *l, int64_t k)
{
    return ((k + 1 < l->n ? l->x[k + 1] : l->x[k]) - (k ? l->x[k - 1] : l->x[k])) / 2;
}

static int obstacle_of(const line *l, int f, int8_t act)
{
    for (int o = 0; o < l->fp->nobst; o++)
        if (l->fp->obst[o].field == f && l->fp->obst[o].sense == act)
            return o;
    return 0;
}

/* cells from a node to the centre of the row that is paired with it */
static double row_shift(const line *l, int f)
{
    return l->fp->eq[f].order / 2.0 - l->left[f];
}

/* rows of odd orders stand between nodes: densities at the nodes, from the rows on both sides */
static void density_shift(const line *l, int f, int64_t a, int64_t b, double *density)
{
    double shift = row_shift(l, f), before = density[a];
    if (shift == 0 || fabs(shift) > 1)
        return;
    if (shift > 0)
        for (int64_t k = a; k <= b; k++) {
            double now = density[k];
            if (k > a)
                density[k] = (before + now) / 2;
            before = now;
        }
    else
        for (int64_t k = a; k < b; k++)
            density[k] = (density[k] + density[k + 1]) / 2;
}

/* forces that stay while the grid is refined stand at single nodes: at the ends of zones and at corners */
static void points_take(const line *l, field_result *r, int f, int64_t a, int64_t b,
                        const contact_interval *z, double *density, int8_t act)
{
    double total = 0;
    bool small = b - a < 12;
    for (int64_t k = a; k <= b; k++)
        total += density[k] * node_width(l, k);
    if (small && (l->fp->eq[f].order > 2 || b - a < 2) && act * total > 0) {
        r->point[r->npoint++] = (point_force){ (z->a + z->b) / 2, total, obstacle_of(l, f, act) };
        for (int64_t j = a; j <= b; j++)
            density[j] = 0;
    }
    for (int end = 0; end < 2 && !small && l->fp->eq[f].order > 2; end++) {
        int64_t in = end ? b - 5 : a + 5, from = end ? in : a, to = end ? b : in;
        double d = density[in], force = 0;
        for (int64_t j = from; j <= to; j++)
            force += (density[j] - (j == in ? d / 2 : 0)) * node_width(l, j);
        double at = l->x[in] + row_shift(l, f) * node_width(l, in);
        force -= d * (end ? z->b - at : at - z->a);
        if (!(act * force > 0.01 * fabs(total)) || !(act * force > 2 * fabs(d) * node_width(l, in)))
            continue;
        r->point[r->npoint++] = (point_force){ end ? z->b : z->a, force, obstacle_of(l, f, act) };
        for (int64_t j = from; j <= to; j++)
            density[j] = d;
    }
    for (int64_t j = 1; j + 1 < l->nbrk; j++) {
        int64_t k = l->brk[j];
        if (k <= a + 1 || k >= b - 1)
            continue;
        double d = (density[k - 2] + density[k + 2]) / 2, excess = (density[k] - d) * node_width(l, k);
        if (fabs(density[k] - d) < 4 * (fabs(density[k - 2]) + fabs(density[k + 2])) ||
            !(act * excess > 0.001 * fabs(total)))
            continue;
        r->point[r->npoint++] = (point_force){ l->x[k], excess, obstacle_of(l, f, act) };
        density[k] = d;
    }
}

/* nodes at the ends of the domain have conditions, no pair: contact reaches them where the gap is closed
 * there too */
static bool touches_end(const line *l, int f, int64_t k, int side, double size)
{
    double tiny = 1e-11 * size;
    if (l->o->eps > 0 || (side < 0 ? k > l->left[f] : k < l->n - 1 - l->fp->eq[f].order))
        return false;
    for (k += side; k >= 0 && k < l->n; k += side)
        if (!(gap_of(l, f, k) <= tiny))
            return false;
    return true;
}

static void zones_take(const line *l, field_result *r)
{
    arena *a = l->w->r->a;
    int room = 0;
    double size = size_of(l);
    for (int64_t k = 0; k < l->size; k++)
        room += l->act[k] && (k < l->nf || l->act[k - l->nf] != l->act[k]);
    r->zone = arena_array(a, contact_interval, room + 2);
    r->point = arena_array(a, point_force, 2 * room + (int)l->nbrk + l->nend + 4);
    for (int f = 0; f < l->nf; f++)
        for (int64_t k = 0; k < l->n; k++) {
            int8_t act = l->act[k * l->nf + f];
            int64_t to = k;
            if (!act)
                continue;
            while (to + 1 < l->n && l->act[(to + 1) * l->nf + f] == act)
                to++;
            contact_interval z = { .a = l->x[k], .b = l->x[to], .obstacle = obstacle_of(l, f, act) };
            if (to > k + 2 || (to > k && l->fp->eq[f].order == 2))
                z.a = zone_end(l, f, k, -1), z.b = zone_end(l, f, to, 1);
            if (z.a > z.b)
                z.a = z.b = (z.a + z.b) / 2;
            if (touches_end(l, f, k, -1, size))
                z.a = l->x[0];
            if (touches_end(l, f, to, 1, size))
                z.b = l->x[l->n - 1];
            contact_interval *before = r->nzone ? &r->zone[r->nzone - 1] : NULL;
            if (before && before->obstacle == z.obstacle &&
                z.a <= before->b) /* nodes without a pair between */
                before->b = z.b;
            else
                r->zone[r->nzone++] = z;
            int64_t first = k, last = to;
            for (int j = 0; j < l->nend; j++) {
                if (l->end[j].field != f || (l->end[j].node != k && l->end[j].node != to))
                    continue;
                double noise, force = end_force(l, &l->end[j], &noise);
                if (act * force > 4 * noise)
                    r->point[r->npoint++] = (point_force){ l->x[l->end[j].node], force, z.obstacle };
                first += l->end[j].node == k;
                last -= l->end[j].node == to;
            }
            if (l->o->eps <= 0 && first <= last) {
                points_take(l, r, f, first, last, &r->zone[r->nzone - 1], r->reaction, act);
                density_shift(l, f, first, last, r->reaction);
            }
            k = to;
        }
}

typedef struct {
    double *sum;
    double weight;
} path;
static void use_energy(line *l, int f, int64_t s, const row_stencils *r, const double *out, void *ud)
{
    const path *p = ud;
    int64_t k = s + l->left[f];
    (void)r;
    *p->sum += p->weight * out[0] * l->u[k * l->nf + f] * node_width(l, k);
}

/* integral of F(s u) u over s in 0..1 and over the domain: the energy where F is its gradient */
static double energy_of(line *l)
{
    static const double at[3] = { 0.11270166537925831, 0.5, 0.88729833462074169 },
                        weight[3] = { 5. / 18, 8. / 18, 5. / 18 };
    double sum = 0;
    for (int f = 0; f < l->nf; f++) {
        for (int k = 0; k < 3; k++)
            if (!rows_run(l, f, l->u, at[k], use_energy, &(path){ &sum, weight[k] }))
                return NAN;
    }
    return sum;
}

/* reactions, energy of linear problems */
static void reactions_take(line *l, field_result *r)
{
    results *out = l->w->r;
    r->reaction = arena_array(out->a, double, l->n);
    for (int f = 0; f < l->nf; f++)
        for (int64_t s = 0; s < rows_of(l, f); s++) {
            int64_t p = pair_of(l, f, s), row = row_place(l, f, s);
            double noise = 0, F = row_value(l, row, &noise);
            if (!l->fp->linear)
                F = l->rhs[row];
            else
                r->energy += (F + l->rhs[row_slot(l, row)]) / 2 * l->u[p] * node_width(l, p / l->nf);
            if (l->act && l->act[p] && (f == 0 || l->fp->obst[0].field == f))
                r->reaction[p / l->nf] = F;
        }
}

/* derivatives may jump at switches and at the ends of contact */
static void breaks_take(const line *l, field_result *r)
{
    arena *a = l->w->r->a;
    int64_t room = l->nbrk + 2 * r->nzone + 2, n = 0;
    r->brk = arena_array(a, int64_t, room);
    for (int64_t k = 0; k < l->nbrk; k++)
        r->brk[n++] = l->brk[k];
    for (int z = 0; z < r->nzone; z++)
        for (int end = 0; end < 2; end++) {
            double x = end ? r->zone[z].b : r->zone[z].a;
            int64_t lo = 0, hi = l->n - 1;
            while (hi - lo > 1) {
                int64_t mid = lo + (hi - lo) / 2;
                if (l->x[mid] <= x)
                    lo = mid;
                else
                    hi = mid;
            }
            if (x - l->x[lo] > l->x[hi] - x)
                lo = hi;
            r->brk[n++] = lo;
        }
    for (int64_t i = 1; i < n; i++)
        for (int64_t j = i; j > 0 && r->brk[j] < r->brk[j - 1]; j--) {
            int64_t t = r->brk[j];
            r->brk[j] = r->brk[j - 1];
            r->brk[j - 1] = t;
        }
    int64_t m = 1;
    for (int64_t i = 1; i < n; i++)
        if (r->brk[i] != r->brk[m - 1])
            r->brk[m++] = r->brk[i];
    r->nbreak = m;
}

static field_result *line_result(line *l, int levels)
{
    results *out = l->w->r;
    field_result *r = result_new(l->w);
    r->n = l->n;
    r->x = l->x;
    r->u = l->u;
    r->eps = l->o->eps;
    r->nseg = l->nbrk;
    r->seg = arena_array(out->a, int64_t, l->nbrk);
    memcpy(r->seg, l->brk, (size_t)l->nbrk * sizeof *r->seg);
    reactions_take(l, r);
    if (l->act)
        zones_take(l, r);
    breaks_take(l, r);
    if (!l->fp->linear)
        r->energy = energy_of(l);
    r->iterations = l->steps;
    r->ngrid = levels;
    r->grid_steps = arena_array(out->a, double, levels);
    for (int k = 0; k < levels; k++)
        r->grid_steps[k] = (l - levels + 1 + k)->steps;
    out->steps = l->n - 1;
    out->solver = l->o->eps > 0 ? "semi-smooth Newton" : "primal-dual active set";
    return r;
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
        w->r->solver_iterations += w->fp->linear ? at[i].steps : 0;
    }
    return line_result(&at[levels - 1], levels);
}
