/* history_samples: past values between the samples of a time-stepping scheme, by cubic Hermite
   interpolation of positions and rates, so that its order is kept.  Rotations are interpolated by the
   rotation from one sample to the next. Rates that jump are stored twice: a value is read after the
   jump. */
#include <math.h>
#include <string.h>
#include "base/rotation.h"
#include "clock/state.h"
#include "history.h"
#include "program/turns.h"
#include "base/tolerances.h"

enum { POINTS = 5 };
static const double XI[POINTS] = { 0.04691007703066802, 0.23076534494715845, 0.5, 0.7692346550528415,
                                   0.953089922969332 };
static const double WEIGHT[POINTS] = { 0.11846344252809454, 0.23931433524968324, 0.28444444444444444,
                                       0.23931433524968324, 0.11846344252809454 };

typedef struct run_kernel {
    const kernel *k;
    const char *name;
    double *reg;
    int32_t index[MAX_INDEX];
    int32_t slot, dof;
} run_kernel;
typedef struct run_integral {
    const integral_rule *rule;
    run_kernel lo, hi, f, *past[PAST_KINDS];
    int npast[PAST_KINDS];
    double *bound, *local[PAST_KINDS];
    int32_t slot;
} run_integral;

/* a rotation at a time: the base of the previous sample, and the rotation since then with its rate */
typedef struct past_turn {
    size_t of; /* its first dof, and when */
    double t, R[9], x[3], v[3];
} past_turn;

struct past_samples {
    arena *a;
    const program *p;
    const delay_program *d;
    size_t n;
    const double *param, *q0, *base0;
    size_t wide;      /* numbers of a sample */
    vec(double) t, x; /* x: q and q' of each sample, and its bases */
    vec(double) jump; /* times of jumps */
    /* the longest delay, INFINITY if it is not known; number of samples after which older ones are
       discarded */
    double reach, step;
    size_t room;
    run_kernel *past[PAST_KINDS];
    int npast[PAST_KINDS];
    run_integral *in;
    int nin;
    run_kernel *given[2]; /* of each dof; k NULL: the initial value is held */
    double *slots[PAST_KINDS + 1], *bound;
    const inputs *now; /* the current state, which may lie after the last sample */
    past_turn last;    /* the last one that was read from it; `of` SIZE_MAX: none was */
    const char *error;
    span where;
};

/* ---- between samples ---- */
static size_t sample_find(const past_samples *h, double t)
{
    size_t lo = 0, hi = h->t.n;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (h->t.at[mid] <= t)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static double hermite(double x0, double v0, double x1, double v1, double h, double s, int rate)
{
    double d = x1 - x0, c0 = h * v0, c1 = h * v1, b = 3 * d - 2 * c0 - c1, c = c0 + c1 - 2 * d;
    if (!(h > 0))
        return rate ? v0 : x0;
    return rate ? (c0 + s * (2 * b + 3 * s * c)) / h : x0 + s * (c0 + s * (b + s * c));
}

static double given_value(past_samples *h, int32_t dof, int rate, double t)
{
    run_kernel *g = &h->given[rate][dof];
    if (!g->k)
        return rate ? 0 : h->q0[dof];
    inputs in = { .t = t, .from = { [IN_PARAM] = h->param, [IN_BOUND] = h->bound } };
    for (uint32_t i = 0; i < g->k->tape.nin; i++)
        if (g->k->in[i].kind == IN_BOUND)
            h->bound[g->k->in[i].at.base] = t;
    kernel_run(g->k, &in, g->index, g->reg);
    return g->reg[g->k->tape.out[0]];
}

/* The rotation vector at dof k from sample i to the next, or to the current state, relative to sample i. */
static past_turn turn_value(const past_samples *h, size_t k, double t)
{
    size_t n = h->n, i = sample_find(h, t);
    past_turn y = { .of = k, .t = t };
    if (t < 0) {
        memcpy(y.R, h->base0 + 3 * k, sizeof y.R);
        return y;
    }
    const double *a = h->x.at + i * h->wide, *b = a + h->wide, zero[3] = { 0 };
    bool now = i + 1 == h->t.n;
    double t0 = h->t.at[i], t1 = now ? h->now->t : h->t.at[i + 1], end[9], rest[9], x1[3], v0[3], v1[3];
    memcpy(y.R, a + 2 * n + 3 * k, sizeof y.R);
    memcpy(end, now ? h->now->from[IN_BASE] + 3 * k : b + 2 * n + 3 * k, sizeof end);
    memcpy(v0, a + n + k, sizeof v0);
    memcpy(v1, now ? h->now->from[IN_V] + k : b + n + k, sizeof v1);
    rotation_turn(y.R, a + k);
    rotation_rates(a + k, v0, NULL);
    memcpy(y.v, v0, sizeof v0);
    if (!(t1 > t0))
        return y;
    const double *x = now ? h->now->from[IN_Q] + k : b + k;
    rotation_turn(end, x);
    rotation_rates(x, v1, NULL);
    rotation_between(y.R, end, rest);
    rotation_uncayley(rest, x1);
    rotation_unrates(x1, v1, NULL);
    for (int j = 0; j < 3; j++) {
        double s = (t - t0) / (t1 - t0);
        y.x[j] = hermite(zero[j], v0[j], x1[j], v1[j], t1 - t0, s, 0);
        y.v[j] = hermite(zero[j], v0[j], x1[j], v1[j], t1 - t0, s, 1);
    }
    return y;
}

/* at: a dof, or the address of a number of a base */
static double past_value(past_samples *h, int32_t at, int kind, double t)
{
    size_t n = h->n, k = (size_t)at;
    int32_t turns = turns_of(h->p, kind == PAST_BASE ? at / 3 : at);
    bool rate = kind == PAST_RATE;
    if (turns >= 0) {
        if (h->last.of != (size_t)turns || h->last.t != t)
            h->last = turn_value(h, (size_t)turns, t);
        const past_turn *y = &h->last;
        return kind == PAST_BASE ? y->R[at - 3 * turns] : rate ? y->v[at - turns] : y->x[at - turns];
    }
    if (t < 0)
        return given_value(h, at, rate, t);
    size_t i = sample_find(h, t);
    const double *a = h->x.at + i * h->wide;
    double t0 = h->t.at[i], t1, x1, v1;
    if (i + 1 < h->t.n) {
        const double *b = a + h->wide;
        t1 = h->t.at[i + 1];
        x1 = b[k];
        v1 = b[n + k];
    } else {
        t1 = h->now->t;
        x1 = h->now->from[IN_Q][k];
        v1 = h->now->from[IN_V][k];
        if (!(t1 > t0))
            return rate ? a[n + k] + 0 * v1 : a[k];
    }
    return hermite(a[k], a[n + k], x1, v1, t1 - t0, (t - t0) / (t1 - t0), rate);
}

static void fail_delay(past_samples *h, const char *name, span at, double t)
{
    text s = { .a = h->a };
    if (h->error)
        return;
    text_printf(&s, "the delay %s%s%sis not positive at t = ", name ? "of '" : "", name ? name : "",
                name ? "' " : "");
    text_num(&s, t);
    text_puts(&s, ": the value is not in the past");
    h->error = s.at;
    h->where = at;
}

static double kernel_at(run_kernel *k, const inputs *in)
{
    kernel_run(k->k, in, k->index, k->reg);
    return k->reg[k->k->tape.out[0]];
}

/* ---- integrals ---- */
static double panel_sum(past_samples *h, run_integral *x, inputs *in, double a, double b)
{
    double sum = 0, t = in->t;
    for (int k = 0; k < POINTS; k++) {
        x->bound[x->rule->bound] = a + XI[k] * (b - a);
        for (int kind = 0; kind < PAST_KINDS; kind++)
            for (int l = 0; l < x->npast[kind]; l++) {
                run_kernel *p = &x->past[kind][l];
                double at = kernel_at(p, in);
                if (!(at <= t * (1 + ROUND_50) + SIZE_LEAST)) {
                    fail_delay(h, NULL, x->rule->at, t);
                    at = t;
                }
                x->local[kind][p->slot] = past_value(h, p->dof, kind, at);
            }
        sum += WEIGHT[k] * kernel_at(&x->f, in);
    }
    return sum * (b - a);
}

/* The next point after a at which a past time a0 + c s reaches a jump. */
static double next_jump(const past_samples *h, double a0, double c, double a)
{
    size_t lo = 0, hi = h->jump.n;
    double at = a0 + c * a;
    /* the first jump above `at`, or the last one below it */
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (c > 0 ? h->jump.at[mid] > at : h->jump.at[mid] >= at)
            hi = mid;
        else
            lo = mid + 1;
    }
    if (c < 0 && lo-- == 0)
        return INFINITY;
    return lo < h->jump.n ? (h->jump.at[lo] - a0) / c : INFINITY;
}

/* a past time over the range of an integral: where it begins, and how far it goes */
static double past_range(run_integral *x, run_kernel *past, const inputs *in, double lo, double hi,
                         double *over)
{
    x->bound[x->rule->bound] = lo;
    double first = kernel_at(past, in);
    x->bound[x->rule->bound] = hi;
    *over = kernel_at(past, in) - first;
    return first;
}

static double next_edge(past_samples *h, run_integral *x, const inputs *in, double lo, double hi, double a)
{
    double edge = INFINITY;
    for (int kind = 0; kind < PAST_KINDS; kind++)
        for (int l = 0; x->rule->linear && l < x->npast[kind]; l++) {
            double over, first = past_range(x, &x->past[kind][l], in, lo, hi, &over), c = over / (hi - lo);
            double at = c != 0 ? lo + next_jump(h, first, c, a - lo) : INFINITY;
            if (at > a && at < edge)
                edge = at;
        }
    return edge;
}

/* Panels of an integral over N steps of the past: N^(1/4), so that their error, of order 8, falls as that of
   the steps; and none is longer than 1000 steps, as the past may turn often. */
static double panels(run_integral *x, const inputs *in, double lo, double hi, double step)
{
    double most = 0, over;
    for (int kind = 0; kind < PAST_KINDS; kind++)
        for (int l = 0; l < x->npast[kind]; l++) {
            past_range(x, &x->past[kind][l], in, lo, hi, &over);
            most = fmax(most, fabs(over));
        }
    double N = most > 0 ? most / step : 1000;
    return ceil(fmax(sqrt(sqrt(N)), N / 1000));
}

/* panels end where a rate has jumped */
static double integral_value(past_samples *h, run_integral *x, const inputs *now)
{
    inputs in = *now;
    double lo = kernel_at(&x->lo, now), hi = kernel_at(&x->hi, now), sum = 0, a = lo;
    in.from[IN_BOUND] = x->bound;
    in.from[IN_PAST_Q] = x->local[0];
    in.from[IN_PAST_V] = x->local[1];
    in.from[IN_PAST_BASE] = x->local[2];
    if (!(hi > lo))
        return 0;
    double panel = (hi - lo) / panels(x, &in, lo, hi, h->step);
    while (a < hi) {
        double b = fmin(fmin(a + panel, hi), next_edge(h, x, &in, lo, hi, a));
        sum += panel_sum(h, x, &in, a, b);
        if (!(b > a))
            break;
        a = b;
    }
    return sum;
}

/* ---- filling ---- */
static bool reads_past(const kernel *k)
{
    for (uint32_t i = 0; i < k->tape.nin; i++)
        if (k->in[i].kind == IN_PAST_Q || k->in[i].kind == IN_PAST_V || k->in[i].kind == IN_INTEGRAL)
            return true;
    return false;
}

/* Past values that only forces read are filled in when forces are computed. */
bool samples_for_forces(const program *p)
{
    bool any = false;
    for (size_t i = 0; i < p->mass.n; i++)
        any |= reads_past(&p->mass.at[i]);
    for (size_t i = 0; i < p->ncontact; i++) {
        const contact_family *f = &p->contact[i];
        const kernel *all[] = { &f->gap,      &f->gradient,  &f->rate,   &f->bias, &f->slip,
                                &f->slip_map, &f->slip_bias, &f->normal, &f->mu,   &f->e };
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            any |= reads_past(all[k]);
    }
    for (size_t i = 0; i < p->nevent; i++)
        any |= reads_past(&p->event[i].when) || reads_past(&p->event[i].reset);
    return !any;
}

void samples_fill(past_samples *h, inputs *in)
{
    h->now = in;
    h->last.of = SIZE_MAX;
    in->from[IN_PAST_Q] = h->slots[0];
    in->from[IN_PAST_V] = h->slots[1];
    in->from[IN_PAST_BASE] = h->slots[2];
    in->from[IN_INTEGRAL] = h->slots[PAST_KINDS];
    for (int kind = 0; kind < PAST_KINDS; kind++)
        for (int i = 0; i < h->npast[kind]; i++) {
            run_kernel *p = &h->past[kind][i];
            double at = kernel_at(p, in);
            if (!(at < in->t) && !(in->t == 0 && at == 0)) {
                fail_delay(h, p->name, p->k->at, in->t);
                at = in->t;
            }
            h->slots[kind][p->slot] = past_value(h, p->dof, kind, at);
        }
    for (int i = 0; i < h->nin; i++)
        h->slots[PAST_KINDS][h->in[i].slot] = integral_value(h, &h->in[i], in);
}

/* samples that no delay reaches any more are discarded; the room is doubled only if jumps have added
 * samples at the same time */
static void let_go(past_samples *h, double t)
{
    double old = t - h->reach - 4 * h->step;
    size_t from = sample_find(h, old), n = h->wide, j = 0;
    if (h->t.n < h->room)
        return;
    if (h->t.at[from] > old)
        return;
    memmove(h->t.at, h->t.at + from, (h->t.n - from) * sizeof *h->t.at);
    memmove(h->x.at, h->x.at + from * n, (h->t.n - from) * n * sizeof *h->x.at);
    h->t.n -= from;
    h->x.n = h->t.n * n;
    while (j < h->jump.n && h->jump.at[j] < old)
        j++;
    if (j)
        memmove(h->jump.at, h->jump.at + j, (h->jump.n - j) * sizeof *h->jump.at);
    h->jump.n -= j;
    if (2 * h->t.n > h->room)
        h->room *= 2;
}

void samples_add(past_samples *h, double t, const double *q, const double *v, const double *base)
{
    size_t n = h->n;
    if (isfinite(h->reach))
        let_go(h, t);
    if (h->t.n && h->t.at[h->t.n - 1] == t)
        *vec_push(h->a, &h->jump) = t;
    *vec_push(h->a, &h->t) = t;
    vec_reserve(h->a, &h->x, h->x.n + h->wide);
    memcpy(h->x.at + h->x.n, q, n * sizeof *q);
    memcpy(h->x.at + h->x.n + n, v, n * sizeof *v);
    if (base)
        memcpy(h->x.at + h->x.n + 2 * n, base, 3 * n * sizeof *base);
    h->x.n += h->wide;
}

void samples_all(past_samples *h)
{
    h->reach = INFINITY;
}

const char *samples_error(const past_samples *h, span *at)
{
    *at = h->where;
    return h->error;
}

/* ---- as part of a state ---- */
void samples_keep(past_samples *h, run_state *s)
{
    size_t n = state_count(s, "past", h->t.n, (1 + h->wide) * sizeof(double)),
           jumps = state_count(s, "jumps", h->jump.n, sizeof(double));
    int64_t room = (int64_t)h->room;
    if (state_reads(s) && state_ok(s)) {
        vec_reserve(h->a, &h->t, n);
        vec_reserve(h->a, &h->x, h->wide * n);
        vec_reserve(h->a, &h->jump, jumps);
        h->t.n = n, h->x.n = h->wide * n, h->jump.n = jumps;
    }
    if (!state_ok(s))
        return;
    state_f64(s, "past times", h->t.at, n);
    state_f64(s, "past values", h->x.at, h->wide * n);
    state_f64(s, "jump times", h->jump.at, jumps);
    state_i64(s, "past room", &room, 1);
    if (state_ok(s) && (n == 0 || room < 1))
        state_wrong(s, "it has no past");
    h->room = (size_t)room;
}

/* ---- making ---- */
static run_kernel run_kernel_new(past_samples *h, const kernel *k, const int32_t *index)
{
    run_kernel r = { .k = k, .reg = arena_array(h->a, double, (size_t)k->tape.nreg + 1) };
    memcpy(r.index, index, sizeof r.index);
    tape_start(&k->tape, r.reg);
    if (k->row)
        r.slot = slot_at(&k->row[0], index, k->over.n);
    if (k->col)
        r.dof = slot_at(&k->col[0], index, k->over.n);
    return r;
}

static run_kernel *run_kernels(past_samples *h, const kernels *k, const int32_t *one, int *n)
{
    int64_t most = 0;
    for (size_t i = 0; i < k->n; i++)
        most += one ? 1 : index_members(&k->at[i].over);
    run_kernel *r = arena_array(h->a, run_kernel, most + 1);
    *n = 0;
    for (size_t i = 0; i < k->n; i++) {
        int32_t index[MAX_INDEX] = { 0 };
        if (one) {
            r[(*n)++] = run_kernel_new(h, &k->at[i], one);
            continue;
        }
        for (bool any = index_first(&k->at[i].over, index); any; any = index_next(&k->at[i].over, index))
            r[(*n)++] = run_kernel_new(h, &k->at[i], index);
    }
    return r;
}

static void integral_new(past_samples *h, const integral_rule *r, const int32_t *index)
{
    run_integral *x = &h->in[h->nin++];
    *x = (run_integral){ .rule = r,
                         .lo = run_kernel_new(h, &r->lo, index),
                         .hi = run_kernel_new(h, &r->hi, index),
                         .f = run_kernel_new(h, &r->integrand, index) };
    x->slot = x->f.slot;
    x->bound = arena_array(h->a, double, h->d->nbound + 1);
    for (int kind = 0; kind < PAST_KINDS; kind++) {
        x->past[kind] = run_kernels(h, &r->past[kind], index, &x->npast[kind]);
        x->local[kind] = arena_array(h->a, double, r->npast[kind] + 1);
    }
}

/* The longest delay, where parameters decide it. */
static double reach_of(past_samples *h)
{
    double reach = 0;
    inputs in = { .t = 0, .from = { [IN_PARAM] = h->param, [IN_BOUND] = h->bound } };
    if (!h->d->steady)
        return INFINITY;
    for (int kind = 0; kind < PAST_KINDS; kind++) {
        for (int i = 0; i < h->npast[kind]; i++)
            reach = fmax(reach, -kernel_at(&h->past[kind][i], &in));
        for (int i = 0; i < h->nin; i++)
            for (int l = 0; l < h->in[i].npast[kind]; l++)
                for (int end = 0; end < 2; end++) {
                    run_integral *x = &h->in[i];
                    in.from[IN_BOUND] = x->bound;
                    x->bound[x->rule->bound] = kernel_at(end ? &x->hi : &x->lo, &in);
                    reach = fmax(reach, -kernel_at(&x->past[kind][l], &in));
                }
    }
    return reach;
}

/* a copy of n numbers */
static const double *numbers_kept(arena *a, const double *x, size_t n)
{
    double *keep = arena_array(a, double, n + 1);
    if (n)
        memcpy(keep, x, n * sizeof *keep);
    return keep;
}

past_samples *samples_new(arena *a, const program *p, const double *param, const double *q0,
                          const double *base0, double step)
{
    past_samples *h = arena_make(a, past_samples);
    *h = (past_samples){ .a = a, .p = p, .d = p->delay, .n = (size_t)p->nq, .param = param, .step = step };
    h->q0 = numbers_kept(a, q0, h->n);
    h->base0 = base0 ? numbers_kept(a, base0, 3 * h->n) : NULL;
    h->wide = (base0 ? 5 : 2) * h->n;
    const kernels *given[] = { &h->d->history, &h->d->history_rate };
    for (int kind = 0; kind < PAST_KINDS; kind++) {
        h->past[kind] = run_kernels(h, &h->d->past[kind], NULL, &h->npast[kind]);
        for (int i = 0; i < h->npast[kind]; i++)
            h->past[kind][i].name = h->d->name[kind][h->past[kind][i].k - h->d->past[kind].at];
        h->slots[kind] = arena_array(a, double, h->d->npast[kind] + 1);
    }
    for (int rate = 0; rate < 2; rate++) {
        h->given[rate] = arena_array(a, run_kernel, p->nq + 1);
        int n;
        run_kernel *all = run_kernels(h, given[rate], NULL, &n);
        for (int i = 0; i < n; i++)
            h->given[rate][all[i].slot] = all[i];
    }
    h->slots[PAST_KINDS] = arena_array(a, double, h->d->nintegral + 1);
    h->bound = arena_array(a, double, h->d->nbound + 1);
    int64_t count = 0;
    for (size_t i = 0; i < h->d->nrule; i++)
        count += index_members(&h->d->integral[i].integrand.over);
    h->in = arena_array(a, run_integral, count + 1);
    for (size_t i = 0; i < h->d->nrule; i++) {
        const integral_rule *r = &h->d->integral[i];
        int32_t index[MAX_INDEX] = { 0 };
        for (bool any = index_first(&r->integrand.over, index); any;
             any = index_next(&r->integrand.over, index))
            integral_new(h, r, index);
    }
    *vec_push(a, &h->jump) = 0; /* the start is one */
    h->reach = reach_of(h);
    h->room = isfinite(h->reach) && h->reach < 1e8 * step ? 4 * (size_t)(h->reach / step) + 64 : SIZE_MAX;
    if (h->room < SIZE_MAX) {
        vec_reserve(a, &h->t, h->room + 1);
        vec_reserve(a, &h->x, h->wide * (h->room + 1));
    }
    return h;
}

/* Do the times of past values depend on the state?  (Of an integral only the last bit of a step does.) */
bool delay_of_state(const delay_program *d)
{
    for (int rate = 0; rate < 2; rate++)
        for (size_t i = 0; i < d->past[rate].n; i++)
            for (uint32_t k = 0; k < d->past[rate].at[i].tape.nin; k++) {
                in_kind kind = d->past[rate].at[i].in[k].kind;
                if (kind == IN_Q || kind == IN_V || kind == IN_PAST_Q || kind == IN_PAST_V)
                    return true;
            }
    return false;
}
