/* field: code shared by the solvers of fields: kernels over points, places where pieces end, Chebyshev
 * series, values of a solution, the report. */
#include "field.h"
#include "clock/clock.h"
#include "base/tolerances.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- running kernels ---- */
static inputs points_inputs(const field_work *w, const double *x, const double *jets)
{
    inputs in = { 0 };
    in.from[IN_PARAM] = w->r->param;
    in.from[IN_COORD] = x;
    in.from[IN_BOUND] = jets;
    return in;
}

enum { CHUNK = 1 << 14 }; /* points at a time */

static void points_run(const field_work *w, const kernel *k, const double *x, const double *jets, int njet,
                       int64_t n, double *out)
{
    arena_pos mark = arena_mark(w->a);
    double *work = arena_array(w->a, double, batch_regs(&k->tape));
    kernel some = *k;
    for (int64_t at = 0; at < n; at += CHUNK) {
        int64_t now = n - at < CHUNK ? n - at : CHUNK;
        inputs in = points_inputs(w, x + at * w->fp->ncoord, jets ? jets + at * njet : NULL);
        some.over.r[0].hi = (int32_t)now - 1;
        some.over.count = now;
        arena_tick(w->a, now * (k->tape.ncode + k->tape.nout));
        kernel_run_all(&some, &in, work, out + at * k->tape.nout);
    }
    arena_release(w->a, mark);
}

void form_run(const field_work *w, const field_form *f, const double *x, const double *jets, int64_t n,
              double *out)
{
    points_run(w, &f->k, x, jets, f->njet, n, out);
}

void kernel_points(const field_work *w, const kernel *k, const double *x, int64_t n, double *out)
{
    points_run(w, k, x, NULL, 0, n, out);
}

static void kernel_numbers(const field_work *w, const kernel *k, double *out)
{
    double *work = arena_array(w->a, double, batch_regs(&k->tape));
    inputs in = points_inputs(w, NULL, NULL);
    kernel_run_all(k, &in, work, out);
}

double kernel_number(const field_work *w, const kernel *k)
{
    arena_pos mark = arena_mark(w->a);
    double *out = arena_array(w->a, double, k->tape.nout);
    kernel_numbers(w, k, out);
    double y = out[0];
    arena_release(w->a, mark);
    return y;
}

bool field_fail(field_work *w, span at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *message = arena_vprintf(w->r->a, fmt, ap);
    va_end(ap);
    return results_fail(w->r, at, message);
}

bool field_goes_on(field_work *w, double done)
{
    return !run_interrupted(w->o, w->r, done);
}

static bool domain_read(field_work *w)
{
    double ends[4];
    kernel_numbers(w, &w->fp->domain, ends);
    for (int c = 0; c < w->fp->ncoord; c++) {
        w->lo[c] = ends[2 * c];
        w->hi[c] = ends[2 * c + 1];
        if (!(w->lo[c] < w->hi[c]) || !isfinite(w->hi[c] - w->lo[c]))
            return field_fail(w, w->fp->at, "the domain of %s is empty or not bounded: %g..%g",
                              w->fp->coord[c], w->lo[c], w->hi[c]);
    }
    return true;
}

static void result_finish(field_work *w, field_result *fr)
{
    text t = { .a = w->r->a };
    memcpy(fr->lo, w->lo, sizeof fr->lo);
    memcpy(fr->hi, w->hi, sizeof fr->hi);
    text_puts(&t, "");
    field_print(&t, fr);
    fr->report = t.at;
    w->r->field = fr;
}

typedef struct {
    const program *p;
    const run_options *o;
    field_result *(*solve)(field_work *w);
} field_job;

static void field_go(results *r, const void *ud, arena *scratch)
{
    const field_job *j = ud;
    field_work w = { .fp = j->p->field, .p = j->p, .r = r, .o = j->o, .a = scratch };
    field_result *fr = domain_read(&w) ? j->solve(&w) : NULL;
    if (fr && field_check(&w, fr))
        result_finish(&w, fr);
}

void field_run(const program *p, const run_options *o, results *r, field_result *(*solve)(field_work *w))
{
    results_scratch(r, field_go, &(field_job){ p, o, solve });
}

field_result *result_new(field_work *w)
{
    field_result *fr = arena_make(w->r->a, field_result);
    fr->fp = w->fp;
    fr->promised = true;
    fr->error = NAN;
    fr->error_why = "the backend makes none";
    return fr;
}

/* ---- places where pieces end ---- */
double side_of(const field_work *w, double x, double a, double b)
{
    double eps = ROUND_2 * fmax(fmax(fabs(w->lo[0]), fabs(w->hi[0])), w->hi[0] - w->lo[0]);
    return x <= a + eps ? a + eps : x >= b - eps ? b - eps : x;
}

typedef vec(double) places;

static double switch_value(const field_work *w, const field_switch *s, double x)
{
    double out[2];
    kernel_points(w, &s->k, &x, 1, out);
    return out[0];
}

/* where g changes its sign: exactly when it is affine, else by halving between samples */
static void switch_roots(const field_work *w, const field_switch *s, places *out)
{
    enum { SAMPLES = 2000 };
    double x = 0, g[2];
    if (s->affine) {
        kernel_points(w, &s->k, &x, 1, g);
        if (g[1] != 0 && isfinite(g[0] / g[1]))
            *vec_push(w->a, out) = 0 - g[0] / g[1];
        return;
    }
    double a = w->lo[0], ga = switch_value(w, s, a);
    for (int k = 1; k <= SAMPLES; k++) {
        double b = w->lo[0] + (w->hi[0] - w->lo[0]) * k / SAMPLES, gb = switch_value(w, s, b);
        if (gb == 0)
            *vec_push(w->a, out) = b;
        else if (ga * gb < 0) {
            double lo = a, hi = b;
            for (int it = 0; it < 100 && lo < hi; it++) {
                double mid = lo + (hi - lo) / 2, gm = switch_value(w, s, mid);
                if (mid <= lo || mid >= hi)
                    break;
                if ((gm < 0) == (ga < 0))
                    lo = mid;
                else
                    hi = mid;
            }
            *vec_push(w->a, out) = fabs(switch_value(w, s, lo)) < fabs(switch_value(w, s, hi)) ? lo : hi;
        }
        a = b;
        ga = gb;
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int field_breaks(field_work *w, double **out)
{
    places at = { 0 };
    const field_program *f = w->fp;
    *vec_push(w->a, &at) = w->lo[0];
    *vec_push(w->a, &at) = w->hi[0];
    for (int k = 0; k < f->nsw; k++)
        switch_roots(w, &f->sw[k], &at);
    for (int k = 0; k < f->ncond; k++)
        if (f->cond[k].coord >= 0)
            *vec_push(w->a, &at) = kernel_number(w, &f->cond[k].place);
    for (int k = 0; k < f->nfield; k++)
        for (int j = 0; j < f->eq[k].nload; j++)
            *vec_push(w->a, &at) = kernel_number(w, &f->eq[k].load[j].place);
    qsort(at.at, at.n, sizeof *at.at, by_value);
    double tiny = ROUND_500 * (w->hi[0] - w->lo[0]);
    int n = 0;
    for (size_t k = 0; k < at.n; k++) {
        double x = at.at[k];
        if (x < w->lo[0] || x > w->hi[0])
            continue;
        if (n && x - at.at[n - 1] <= tiny) {
            if (x == w->hi[0])
                at.at[n - 1] = x;
            continue;
        }
        at.at[n++] = x;
    }
    *out = at.at;
    return n;
}

/* ---- obstacles ---- */
double obstacle_size(const field_work *w, const field_obstacle *o)
{
    enum { SIDE = 8 };
    double x[2 * SIDE * SIDE], psi[SIDE * SIDE], size = 0;
    for (int k = 0; k < SIDE * SIDE; k++) {
        double part = (k + 0.5) / (SIDE * SIDE);
        if (w->fp->ncoord == 1)
            x[k] = w->lo[0] + (w->hi[0] - w->lo[0]) * part;
        for (int c = 0; c < 2 && w->fp->ncoord == 2; c++)
            x[2 * k + c] = w->lo[c] + (w->hi[c] - w->lo[c]) * ((c ? k / SIDE : k % SIDE) + 0.5) / SIDE;
    }
    kernel_points(w, &o->psi, x, SIDE * SIDE, psi);
    for (int k = 0; k < SIDE * SIDE; k++)
        if (isfinite(psi[k]))
            size = fmax(size, fabs(psi[k]));
    return size;
}

/* at infinite distance there is no obstacle; an obstacle at infinite height excludes every solution */
bool obstacle_known(field_work *w, const field_obstacle *o, const double *x, const double *psi, int64_t n)
{
    int nc = w->fp->ncoord;
    for (int64_t k = 0; k < n; k++) {
        if (isfinite(psi[k]) || psi[k] == -o->sense * INFINITY)
            continue;
        double got = isnan(psi[k]) ? (double)NAN : psi[k]; /* without a sign */
        if (nc == 1)
            return field_fail(w, o->at, "the obstacle is not finite: it is %g at %s = %g", got,
                              w->fp->coord[0], x[k]);
        return field_fail(w, o->at, "the obstacle is not finite: it is %g at (%g, %g)", got, x[2 * k],
                          x[2 * k + 1]);
    }
    return true;
}

/* ---- Chebyshev series ---- */
void cheb_points(double *t, int n)
{
    for (int k = 0; k < n; k++)
        t[k] = cos(M_PI * (k + 0.5) / n);
}

void cheb_fit(const double *y, double *c, int n)
{
    double wave[4 * n + 1];
    for (int k = 0; k < 4 * n; k++)
        wave[k] = cos(M_PI * k / (2 * n));
    for (int j = 0; j < n; j++) {
        double s = 0;
        for (int k = 0; k < n; k++)
            s += y[k] * wave[(long)j * (2 * k + 1) % (4 * n)];
        c[j] = s * (j ? 2.0 : 1.0) / n;
    }
}

double cheb_value(const double *c, int n, double t)
{
    double b1 = 0, b2 = 0;
    for (int k = n - 1; k > 0; k--) {
        double b = 2 * t * b1 - b2 + c[k];
        b2 = b1;
        b1 = b;
    }
    return n ? t * b1 - b2 + c[0] : 0;
}

void cheb_integral(const double *c, double *out, int n, double half, double at_left)
{
    double left = 0, before = 0;
    for (int k = 1; k < n; k++) {
        double up = k + 1 < n ? c[k + 1] : 0, down = k == 1 ? 2 * c[0] : before;
        before = c[k];
        out[k] = half * (down - up) / (2 * k);
    }
    for (int k = 1; k < n; k++)
        left += k % 2 ? -out[k] : out[k];
    out[0] = at_left - left;
}

void cheb_derivative(const double *c, double *out, int n, double half)
{
    double d2 = 0, d1 = 0, above = 0; /* out may be c */
    for (int k = n - 1; k >= 0; k--) {
        double d = d2 + 2 * (k + 1) * above;
        above = c[k];
        d2 = d1;
        d1 = d;
        out[k] = d / half;
    }
    if (n)
        out[0] /= 2;
}

/* T_k of t = (2x - a - b)/(b - a) by its recurrence, in powers of x */
void cheb_powers(const double *c, int n, double a, double b, double *out)
{
    long double s[3][n + 1], sum[n + 1], p = 2.0L / ((long double)b - a),
                                         q = -((long double)a + b) / ((long double)b - a);
    memset(s, 0, sizeof s);
    for (int k = 0; k < n; k++)
        sum[k] = 0;
    for (int k = 0; k < n; k++) {
        long double *now = s[k % 3], *one = s[(k + 2) % 3], *two = s[(k + 1) % 3], f = k > 1 ? 2 : 1;
        for (int j = 0; j <= k && j < n; j++) {
            if (k == 0)
                now[j] = 1;
            else
                now[j] = f * ((j ? p * one[j - 1] : 0) + q * (j < k ? one[j] : 0)) -
                         (k > 1 && j < k - 1 ? two[j] : 0);
        }
        for (int j = 0; j <= k; j++)
            sum[j] += c[k] * now[j];
    }
    for (int k = 0; k < n; k++)
        out[k] = (double)sum[k];
}

/* ---- values ---- */
static double pieces_at(const field_result *r, int field, double x, int order)
{
    int k = 0;
    while (k + 1 < r->npiece && x >= r->piece[k].b)
        k++;
    const field_piece *p = &r->piece[k];
    double half = (p->b - p->a) / 2, c[p->n + 1];
    memcpy(c, p->c[field], (size_t)p->n * sizeof *c);
    for (int d = 0; d < order; d++)
        cheb_derivative(c, c, p->n, half);
    return cheb_value(c, p->n, half > 0 ? ((x - p->a) - (p->b - x)) / (2 * half) : 0);
}

/* derivative of the polynomial through m nodes (Fornberg's weights) */
void stencil_weights(const double *x, int m, double z, int order, double *c)
{
    double c1 = 1, c4 = x[0] - z, w[FIELD_ORDER + 1][16];
    memset(w, 0, sizeof w);
    w[0][0] = 1;
    for (int i = 1; i < m; i++) {
        int mn = i < order ? i : order;
        double c2 = 1, c5 = c4;
        c4 = x[i] - z;
        for (int j = 0; j < i; j++) {
            double c3 = x[i] - x[j];
            c2 *= c3;
            if (j == i - 1) {
                for (int k = mn; k > 0; k--)
                    w[k][i] = c1 * (k * w[k - 1][i - 1] - c5 * w[k][i - 1]) / c2;
                w[0][i] = -c1 * c5 * w[0][i - 1] / c2;
            }
            for (int k = mn; k > 0; k--)
                w[k][j] = (c4 * w[k][j] - k * w[k - 1][j]) / c3;
            w[0][j] = c4 * w[0][j] / c3;
        }
        c1 = c2;
    }
    memcpy(c, w[order], (size_t)m * sizeof *c);
}

/* a polynomial through nodes on the same side of every place where something changes */
static double nodes_at(const field_result *r, int field, double x, int order)
{
    int64_t lo = 0, hi = r->n - 1;
    while (hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;
        if (r->x[mid] <= x)
            lo = mid;
        else
            hi = mid;
    }
    int64_t b0 = 0, b1 = r->n - 1, l = 0, h = r->nbreak - 1;
    while (h - l > 1) {
        int64_t mid = l + (h - l) / 2;
        if (r->brk[mid] <= lo)
            l = mid;
        else
            h = mid;
    }
    if (r->nbreak > 1)
        b0 = r->brk[l], b1 = r->brk[h];
    int m = order + 4;
    if (m > b1 - b0 + 1)
        m = (int)(b1 - b0 + 1);
    int64_t from = lo - (m - 2) / 2;
    if (from > b1 - m + 1)
        from = b1 - m + 1;
    if (from < b0)
        from = b0;
    double c[16], s = 0;
    if (order >= m)
        return 0;
    stencil_weights(r->x + from, m, x, order, c);
    for (int k = 0; k < m; k++)
        s += c[k] * r->u[(from + k) * r->fp->nfield + field];
    return s;
}

double field_at(const field_result *r, int field, double x, int order)
{
    return r->npiece ? pieces_at(r, field, x, order) : nodes_at(r, field, x, order);
}

double field_at2(const field_result *r, int field, double x, double y, const int *d)
{
    double c[2][16], at[2] = { x, y }, s = 0;
    int from[2], m[2];
    for (int k = 0; k < 2; k++) {
        int lo = 0, hi = r->m[k] - 1;
        while (hi - lo > 1) {
            int mid = (lo + hi) / 2;
            if (r->ux[k][mid] <= at[k])
                lo = mid;
            else
                hi = mid;
        }
        m[k] = d[k] + 4;
        if (m[k] > r->m[k])
            m[k] = r->m[k];
        from[k] = lo - (m[k] - 2) / 2;
        if (from[k] > r->m[k] - m[k])
            from[k] = r->m[k] - m[k];
        if (from[k] < 0)
            from[k] = 0;
        stencil_weights(r->ux[k] + from[k], m[k], at[k], d[k], c[k]);
    }
    for (int j = 0; j < m[1]; j++)
        for (int i = 0; i < m[0]; i++)
            s += c[0][i] * c[1][j] *
                 r->u[((int64_t)(from[1] + j) * r->m[0] + from[0] + i) * r->fp->nfield + field];
    return s;
}

/* ---- the report ---- */
enum { SHOWN_PIECES = 12, SHOWN_TERMS = 40 };

static void term_print(text *t, double c, int power, const char *x, double rational, bool first)
{
    double k = fabs(c);
    text_puts(t, first ? (c < 0 ? "-" : "") : c < 0 ? " - " : " + ");
    if (fabs(k - 1) > FACTOR_SAME || power == 0) {
        /* continued fraction down to the tolerance */
        double a = floor(k), h1 = 1, h = a, k1 = 0, q = 1, y = k;
        while (rational > 0 && fabs(h / q - k) > rational * fmax(1, k) && q < 1e15 && y > a) {
            y = 1 / (y - a);
            a = floor(y);
            double hn = a * h + h1, qn = a * q + k1;
            h1 = h;
            h = hn;
            k1 = q;
            q = qn;
        }
        if (rational > 0 && q < 1e15 && h < 1e15) {
            if (q == 1)
                text_printf(t, "%.0f", h);
            else
                text_printf(t, "%.0f/%.0f", h, q);
        } else
            text_printf(t, "%.10g", k);
        if (power)
            text_puts(t, "*");
    }
    if (power)
        text_puts(t, x);
    if (power > 1)
        text_printf(t, "^%d", power);
}

static void piece_print(text *t, const field_result *r, int field, int order, const field_piece *p)
{
    double c[p->n + 1], big = 0;
    bool first = true;
    cheb_powers(p->c[field], p->n, p->a, p->b, c);
    c[p->n] = 0;
    for (int d = 0; d < order; d++)
        for (int k = 0; k < p->n; k++)
            c[k] = (k + 1) * c[k + 1];
    double far = fmax(fabs(p->a), fabs(p->b));
    for (int k = 0; k < p->n; k++)
        big = fmax(big, fabs(c[k]) * pow(far, k));
    text_printf(t, "  %s%.*s = ", r->fp->name[field], order, "''''''''");
    for (int k = 0, shown = 0; k < p->n && shown < SHOWN_TERMS; k++) {
        if (!(fabs(c[k]) * pow(far, k) > ROUND_500 * big))
            continue;
        term_print(t, c[k], k, r->fp->coord[0], r->rational, first);
        first = false;
        shown++;
    }
    if (first)
        text_puts(t, "0");
    text_printf(t, "  for %.10g <= %s <= %.10g\n", p->a, r->fp->coord[0], p->b);
}

void field_formulas(text *t, const field_result *r, int field, int order)
{
    for (int k = 0; k < r->npiece && k < SHOWN_PIECES; k++)
        piece_print(t, r, field, order, &r->piece[k]);
}

void field_print(text *t, const field_result *r)
{
    for (int f = 0; f < r->fp->nfield; f++)
        field_formulas(t, r, f, 0);
    if (r->npiece > SHOWN_PIECES)
        text_printf(t, "  and %d more pieces\n", r->npiece - SHOWN_PIECES);
    if (r->fp->nobst && r->fp->ncoord == 1) {
        text_puts(t, r->nzone ? "  contact" : "  no contact");
        for (int k = 0; k < r->nzone && k < SHOWN_PIECES; k++)
            text_printf(t, "%s [%.10g, %.10g]", k ? "," : "", r->zone[k].a, r->zone[k].b);
        if (r->npoint)
            text_puts(t, "; point forces");
        for (int k = 0; k < r->npoint && k < SHOWN_PIECES; k++)
            text_printf(t, "%s %.6g at %.10g", k ? "," : "", r->point[k].force, r->point[k].x);
        text_putc(t, '\n');
    }
    if (r->fp->nobst && r->fp->ncoord == 2)
        text_printf(t, "  contact over an area of %.6g\n", r->area);
    if (r->nupdate) {
        text_puts(t, "  change from one iterate to the next:");
        for (int k = 0; k < r->nupdate; k++)
            text_printf(t, " %.2g", r->update[k]);
        text_putc(t, '\n');
    }
    if (r->nhalved)
        text_printf(t, "  halving eps twice changed u by %.3g, then by %.3g (order %.2g in eps)\n",
                    r->update[0], r->update[1], log2(r->update[0] / r->update[1]));
    if (r->nmatching) {
        double worst = 0;
        for (int k = 0; k < r->nmatching; k++)
            worst = fmax(worst, fabs(r->matching[k]));
        text_printf(t, "  %d matching and boundary conditions, defect at most %.2g\n", r->nmatching, worst);
    }
    if (!r->npiece && r->iterations)
        text_printf(t, "  %d step%s on the finest grid\n", r->iterations, r->iterations == 1 ? "" : "s");
    if (r->error > 0)
        text_printf(t, "  error, estimated from three grids: %.2g\n", r->error);
}

/* ---- code common to the field backends ---- */
const char *field_refuse(const program *p, span *at, const char *none)
{
    *at = SPAN_NONE;
    return p->field ? NULL : none;
}
