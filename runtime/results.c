#include "results.h"
#include <math.h>
#include <string.h>

/* components of slip and friction that are kept for a family: those given, or those of the tangent space when they are few */
static int slip_shown(const program *p, const contact_family *f)
{
    int free = -1;
    if (f->friction == FRICTION_NONE) return 0;
    if (f->slip_given) return f->nslip;
    for (int k = 0; k < p->nq; k++) free += !p->order || p->order[k] == 2;
    return free < 0 ? 0 : free <= MAX_SLIP ? free : 1;
}

enum { KEPT_MEMBERS = 4096 };           /* of a family: more are counted and measured, not kept sample by sample */

results *results_new(arena *a, const program *p)
{
    results *r = arena_make(a, results);
    r->prog = p;
    r->a = a;
    r->param = arena_array(a, double, p->nparam);
    r->contact = arena_array(a, contact_result, p->ncontact);
    for (size_t i = 0; i < p->ncontact; i++) {
        contact_result *c = &r->contact[i];
        c->members = index_members(&p->contact[i].over);
        c->kept = c->members <= KEPT_MEMBERS;
        c->nslip = slip_shown(p, &p->contact[i]);
        c->last_open = arena_array(a, double, c->members);
        for (int64_t m = 0; m < c->members; m++) c->last_open[m] = -INFINITY;
    }
    return r;
}

static void *grown(arena *a, void *old, int64_t used, int64_t cap, size_t width)
{
    size_t size;
    if (__builtin_mul_overflow((size_t)cap, width, &size)) size = SIZE_MAX / 2;
    void *new = arena_alloc(a, size);
    if (used && width) memcpy(new, old, (size_t)used * width);
    return new;
}

void results_reserve(results *r, int64_t cap)
{
    size_t nq = (size_t)r->prog->nq * sizeof(double), one = sizeof(double);
    if (cap <= r->cap) return;
#define GROW(x, width) (x) = grown(r->a, (x), r->samples, cap, (width))
    GROW(r->t, one); GROW(r->energy, one); GROW(r->dissipated, one); GROW(r->work, one);
    GROW(r->q, nq);  GROW(r->v, nq);       GROW(r->acc, nq);
    if (r->has_jumps) GROW(r->load, one);
    for (size_t i = 0; i < r->prog->ncontact; i++) {
        contact_result *c = &r->contact[i];
        size_t m = (size_t)c->members;
        if (!c->kept) continue;
        GROW(c->gap, m * one); GROW(c->rn, m * one); GROW(c->status, m);
        GROW(c->rt, m * one * (size_t)c->nslip);
        GROW(c->slip, m * one * (size_t)c->nslip);
    }
#undef GROW
    r->cap = cap;
}

int64_t results_sample(results *r)
{
    if (r->samples == r->cap) results_reserve(r, r->cap < 64 ? 64 : 2 * r->cap);
    return r->samples++;
}

/* ---- values between samples ---- */
/* the last sample at or before t (the last of equal times), clipped */
static int64_t sample_before(const results *r, double t)
{
    int64_t lo = 0, hi = r->samples;
    while (hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;
        if (r->left ? r->t[mid] < t : r->t[mid] <= t) lo = mid; else hi = mid;
    }
    return r->left && lo + 1 < r->samples && r->t[lo] < t && r->t[lo + 1] == t ? lo + 1 : lo;
}

/* first and last impact in (t0, t1] */
static bool impacts_between(const results *r, double t0, double t1, double *first, double *last)
{
    *first = INFINITY; *last = -INFINITY;
    for (size_t i = 0; i < r->prog->ncontact; i++) {
        const contact_result *c = &r->contact[i];
        size_t lo = 0, hi = c->impacts.n;
        while (lo < hi) {
            size_t mid = (lo + hi) / 2;
            if (c->impacts.at[mid].t <= t0) lo = mid + 1; else hi = mid;
        }
        for (; lo < c->impacts.n && c->impacts.at[lo].t <= t1; lo++) {
            *first = fmin(*first, c->impacts.at[lo].t);
            *last = fmax(*last, c->impacts.at[lo].t);
        }
    }
    return *first <= t1;
}

/* A value in the interval that begins with sample i: either end is known with rate and second derivative (0 where it is not). */
typedef struct { double t, x, v, a; } knot;
typedef enum { KNOT_VALUE, KNOT_RATE } knot_order;

static double knot_extend(const knot *k, double t)
{
    double s = t - k->t;
    return k->x + s * (k->v + 0.5 * s * k->a);
}

static double knot_between(const results *r, const knot *a, const knot *b, double t, knot_order o)
{
    double first, last, h = b->t - a->t, s = (t - a->t) / h;
    if (impacts_between(r, a->t, b->t, &first, &last)) {
        if (t < first) return knot_extend(a, t);
        if (t >= last) return knot_extend(b, t);
        return a->x + s * (b->x - a->x);
    }
    if (o == KNOT_RATE || r->linear) return a->x + s * (b->x - a->x);
    double d = b->x - a->x, c0 = h * a->v, c1 = h * b->v;
    return a->x + s * (c0 + s * (3 * d - 2 * c0 - c1 + s * (c0 + c1 - 2 * d)));
}

static double value_at(const results *r, const double *x, const double *v, const double *acc, int32_t k, double t, knot_order o)
{
    size_t n = (size_t)r->prog->nq;
    if (r->samples == 0) return NAN;
    int64_t i = sample_before(r, t);
    size_t at = (size_t)i * n + (size_t)k;
    if (t <= r->t[i] || i + 1 == r->samples) return x[at];
    knot a = { r->t[i], x[at], v ? v[at] : 0, acc ? acc[at] : 0 };
    at += n;
    knot b = { r->t[i + 1], x[at], v ? v[at] : 0, acc ? acc[at] : 0 };
    return knot_between(r, &a, &b, t, o);
}

/* outside of the run the nearest end counts */
static double dense_value(const results *r, int32_t k, int order, double t)
{
    const dense_item x = { .what = DENSE_DOF, .k = k, .order = order };
    return r->dense->at(r->dense->of, &x, fmin(fmax(t, 0), r->t_end));
}

double results_q(const results *r, int32_t k, double t) { if (r->dense) return dense_value(r, k, 0, t); return value_at(r, r->q, r->v, r->acc, k, t, KNOT_VALUE); }
double results_v(const results *r, int32_t k, double t) { if (r->dense) return dense_value(r, k, 1, t); return value_at(r, r->v, r->acc, NULL, k, t, KNOT_RATE); }
double results_a(const results *r, int32_t k, double t) { if (r->dense) return dense_value(r, k, 2, t); return value_at(r, r->acc, NULL, NULL, k, t, KNOT_RATE); }

double results_settle(const results *r, int c, int64_t m)
{
    const contact_result *k = &r->contact[c];
    if (r->samples == 0 || !k->kept || k->status[(r->samples - 1) * k->members + m] == STATUS_OPEN) return INFINITY;
    return k->last_open[m] == -INFINITY ? 0 : k->last_open[m];
}
