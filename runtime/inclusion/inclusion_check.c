/* inclusion_check: checks the results of a run of an inclusion, using only the kernels of its rows.  At
   each sample x lies in C(t), and selections exist in their sets with R(t, x, x', s) = 0: free ones, whose
   argument is 0, are sought by least squares in [-1, 1], those of a normal cone among the gradients of what
   is active.  Between samples x moves by its rates.  Of limits: R = 0 with the parameter at 0, and jumps
   lead along a flow that meets no other equilibrium. */
#include <math.h>
#include <string.h>
#include "clock/clock.h"
#include "inclusion.h"
#include "base/tolerances.h"

enum { LOOKS = 1024, FREE_MOST = 256 };

typedef struct look {
    results *r;
    const inclusion_program *ip;
    int n;
    inputs in;
    double *x, *v, *s, *last, *past, bound, none;
    double *reg; /* of one kernel */
    double *size, *top,
        *arg; /* of each dof: its largest value; largest terms of its row; of each selection */
    double *R, *terms, *width;
    int *free, nfree; /* selections that may be anything in [-1, 1] */
    double *column;   /* [free*n + row]: what they do to the rows */
} look;

/* ---- kernels ---- */
static const double *run(look *w, const kernel *k)
{
    static const int32_t index[MAX_INDEX];
    tape_start(&k->tape, w->reg);
    kernel_run(k, &w->in, index, w->reg);
    return w->reg;
}

static double out(look *w, const kernel *k, int i)
{
    return run(w, k)[k->tape.out[i]];
}

static size_t widest(const inclusion_program *ip, int n)
{
    size_t most = ip->turn.tape.nreg;
#define WIDER(k) most = (k).tape.nreg > most ? (k).tape.nreg : most
    for (int i = 0; i < n; i++) {
        WIDER(ip->row[i].r);
        WIDER(ip->history[i]);
        for (int j = 0; j < ip->row[i].nsgn; j++)
            WIDER(ip->row[i].sgn[j].arg);
    }
    for (int i = 0; i < ip->njoint; i++)
        WIDER(ip->joint[i].arg);
    for (int i = 0; i < ip->ncone; i++)
        WIDER(ip->cone[i].g);
    for (int i = 0; i < ip->npast; i++)
        WIDER(ip->past[i].when);
#undef WIDER
    return most;
}

static look look_new(results *r, const double *param, arena *a)
{
    const inclusion_program *ip = r->prog->inclusion;
    size_t n = (size_t)r->prog->nq, sets = (size_t)ip->nset + 1;
    look w = { .r = r, .ip = ip, .n = r->prog->nq };
    double **room[] = { &w.x, &w.v, &w.size, &w.top, &w.R, &w.terms, &w.width };
    for (size_t i = 0; i < sizeof room / sizeof *room; i++)
        *room[i] = arena_array(a, double, n + 1);
    w.s = arena_array(a, double, sets);
    w.last = arena_array(a, double, sets);
    w.arg = arena_array(a, double, sets);
    w.free = arena_array(a, int, sets);
    w.column = arena_array(a, double, FREE_MOST *n + 1);
    w.past = arena_array(a, double, ip->npast + 1);
    w.reg = arena_array(a, double, widest(ip, w.n) + 1);
    w.in.from[IN_PARAM] = param;
    w.in.from[IN_Q] = w.x;
    w.in.from[IN_V] = w.v;
    w.in.from[IN_SET] = w.s;
    w.in.from[IN_PAST_Q] = w.past;
    w.in.from[IN_BOUND] = &w.bound;
    w.in.from[IN_INTEGRAL] = &w.none;
    return w;
}

/* past values as the samples have them; false: within the step itself */
static bool past_at(look *w, int64_t at)
{
    const results *r = w->r;
    for (int k = 0; k < w->ip->npast; k++) {
        const inclusion_past *p = &w->ip->past[k];
        double t = out(w, &p->when, 0);
        const kernel *h = &w->ip->history[p->dof];
        if (!(t <= r->t[at > 0 ? at - 1 : 0]))
            return false;
        w->bound = t;
        if (t >= 0)
            w->past[k] = p->rate ? results_v(r, p->dof, t) : results_q(r, p->dof, t);
        else if (h->tape.nout)
            w->past[k] = out(w, h, p->rate ? 1 : 0);
        else
            w->past[k] = p->rate ? 0 : r->q[p->dof];
    }
    return true;
}

static bool stand(look *w, int64_t at, double t)
{
    size_t n = (size_t)w->n, first = (size_t)at * n;
    w->in.t = t;
    memcpy(w->x, w->r->q + first, n * sizeof *w->x);
    memcpy(w->v, w->r->v + first, n * sizeof *w->v);
    memset(w->s, 0, (size_t)w->ip->nset * sizeof *w->s);
    return past_at(w, at);
}

static bool wrong(look *w, span where, int64_t at, const char *what, double by)
{
    results *r = w->r;
    return results_fail(r, where,
                        arena_printf(r->a, "%s at t = %s, by %.3g", what, number_text(r->a, r->t[at]), by));
}

/* ---- selections ---- */
/* one selection: its sign, or free where its argument is 0 by rounding */
static void select(look *w, const kernel *arg, int32_t number)
{
    double a = out(w, arg, 0);
    w->s[number] = (a > 0) - (a < 0);
    if (fabs(a) > ARGUMENT_ZERO * w->arg[number])
        return;
    w->s[number] = 0;
    if (w->nfree < FREE_MOST)
        w->free[w->nfree++] = number;
}

/* The size of an argument: from the sizes of x and x', one by one. */
static void argument_size(look *w, const kernel *arg, int32_t number, const double *rates)
{
    memset(w->x, 0, (size_t)w->n * sizeof *w->x);
    memset(w->v, 0, (size_t)w->n * sizeof *w->v);
    double none = out(w, arg, 0), sum = fabs(none);
    for (int k = 0; k < w->n; k++) {
        w->x[k] = w->size[k];
        sum += fabs(out(w, arg, 0) - none);
        w->x[k] = 0;
        w->v[k] = rates[k];
        sum += fabs(out(w, arg, 0) - none);
        w->v[k] = 0;
    }
    w->arg[number] = fmax(w->arg[number], sum);
}

static void argument_sizes(look *w, const double *rates, double t)
{
    w->in.t = t;
    for (int k = 0; k < w->n; k++)
        for (int j = 0; j < w->ip->row[k].nsgn; j++)
            argument_size(w, &w->ip->row[k].sgn[j].arg, w->ip->row[k].sgn[j].number, rates);
    for (int j = 0; j < w->ip->njoint; j++)
        argument_size(w, &w->ip->joint[j].arg, w->ip->joint[j].number, rates);
}

static void select_all(look *w)
{
    w->nfree = 0;
    for (int k = 0; k < w->n; k++)
        for (int j = 0; j < w->ip->row[k].nsgn; j++)
            select(w, &w->ip->row[k].sgn[j].arg, w->ip->row[k].sgn[j].number);
    for (int j = 0; j < w->ip->njoint; j++)
        select(w, &w->ip->joint[j].arg, w->ip->joint[j].number);
}

/* Rows with the current selections; their terms: with rates and without. */
static void rows_now(look *w)
{
    for (int k = 0; k < w->n; k++) {
        const kernel *f = &w->ip->row[k].r;
        const double *reg = run(w, f);
        double R = reg[f->tape.out[0]], rate = reg[f->tape.out[2]] * w->v[k];
        w->R[k] = R;
        w->terms[k] = fabs(rate) + fabs(R - rate);
        w->width[k] = 0;
    }
}

static void columns_now(look *w)
{
    for (int j = 0; j < w->nfree; j++) {
        double *c = w->column + (size_t)j * (size_t)w->n;
        w->s[w->free[j]] = 1;
        for (int k = 0; k < w->n; k++) {
            c[k] = out(w, &w->ip->row[k].r, 0) - w->R[k];
            w->width[k] += fabs(c[k]);
        }
        w->s[w->free[j]] = 0;
    }
}

static void choose(look *w, int j, double to)
{
    const double *c = w->column + (size_t)j * (size_t)w->n;
    double *s = &w->s[w->free[j]], by = to - *s;
    *s = to;
    for (int k = 0; k < w->n; k++)
        w->R[k] += by * c[k];
}

static bool solved(const look *w)
{
    for (int k = 0; k < w->n; k++)
        if (fabs(w->R[k]) > ROUND_50 * (w->terms[k] + w->width[k]))
            return false;
    return true;
}

/* Finds the free selections with the smallest residual, one after the other, starting from those of the
   last sample, because they usually change little. */
static void settle(look *w)
{
    int most = 300000 / (w->nfree * w->n + 1) + 10;
    for (int j = 0; j < w->nfree; j++)
        choose(w, j, w->last[w->free[j]]);
    for (int it = 0; it < most && w->nfree && !solved(w); it++)
        for (int j = 0; j < w->nfree; j++) {
            const double *c = w->column + (size_t)j * (size_t)w->n;
            double down = 0, square = 0;
            for (int k = 0; k < w->n; k++) {
                down += c[k] * w->R[k];
                square += c[k] * c[k];
            }
            if (square > 0)
                choose(w, j, fmax(-1, fmin(1, w->s[w->free[j]] - down / square)));
        }
    for (int j = 0; j < w->nfree; j++)
        w->last[w->free[j]] = w->s[w->free[j]];
}

/* ---- normal cones ---- */
/* Upper bound of the distance of the point to C(t); the part of z that is not a combination with factors >=
   0 of active gradients. */
static double cone_left(look *w, const inclusion_cone *q, double *z, double *outside, double *length)
{
    enum { SWEEPS = 500 };
    const kernel *f = &q->g;
    double g[q->ng], row[q->ng][q->n], lambda[q->ng], size = 0, left = 0;
    const double *reg = run(w, f);
    for (int i = 0; i < q->n; i++)
        size = fmax(size, w->size[q->dof[i]]);
    *outside = 0;
    *length = size;
    for (int k = 0; k < q->ng; k++) {
        double l = 0;
        for (int i = 0; i < q->n; i++) {
            row[k][i] = reg[f->tape.out[q->ng + k * q->n + i]];
            l = hypot(l, row[k][i]);
        }
        g[k] = l > 0 ? reg[f->tape.out[k]] / l : 0;
        for (int i = 0; i < q->n; i++)
            row[k][i] = l > 0 ? row[k][i] / l : 0;
        *outside = fmax(*outside, g[k]);
        lambda[k] = 0;
    }
    for (int it = 0; it < SWEEPS; it++)
        for (int k = 0; k < q->ng; k++) {
            if (g[k] < -CONSTRAINT_MET * size)
                continue;
            double along = lambda[k];
            for (int i = 0; i < q->n; i++)
                along += row[k][i] * z[i];
            along = fmax(along, 0);
            for (int i = 0; i < q->n; i++)
                z[i] -= (along - lambda[k]) * row[k][i];
            lambda[k] = along;
        }
    for (int i = 0; i < q->n; i++)
        left = hypot(left, z[i]);
    return left;
}

static bool cone_holds(look *w, int c, int64_t at)
{
    const inclusion_cone *q = &w->ip->cone[c];
    double z[q->n], outside, length, size = 0;
    for (int i = 0; i < q->n; i++) {
        int k = q->dof[i];
        double factor = out(w, &w->ip->row[k].r, 3);
        z[i] = -w->R[k] / factor;
        size = hypot(size, w->terms[k] / factor);
    }
    double left = cone_left(w, q, z, &outside, &length);
    w->r->max_penetration = fmax(w->r->max_penetration, outside);
    if (!(outside <= GATE_LOOSE * length))
        return wrong(w, q->at, at, "x does not lie in C(t)", outside);
    for (int i = 0; i < q->n; i++)
        w->top[q->dof[i]] = fmax(w->top[q->dof[i]], size);
    if (at == 0 || !(left > 0))
        return true;
    /* rates are differences of x: rounded */
    double rate = ROUND_5 * length / (w->r->t[at] - w->r->t[at - 1]), top = w->top[q->dof[0]];
    if (!(left <= GATE_LOOSE * top + 4 * rate))
        return wrong(w, q->at, at, "the velocity leaves the normal cone", left);
    w->r->residual = fmax(w->r->residual, fmax(0, left - 4 * rate) / top);
    return true;
}

/* ---- a sample ---- */
/* the row with the largest residual, relative to its largest terms, and this residual */
static int rows_miss(look *w, int64_t at, double *by)
{
    double h = at > 0 ? w->r->t[at] - w->r->t[at - 1] : 0;
    int worst = 0;
    *by = 0;
    for (int k = 0; k < w->n; k++) {
        if (w->ip->row[k].cone >= 0)
            continue;
        double rounded = h > 0 ? ROUND_5 * w->size[k] / h * fabs(out(w, &w->ip->row[k].r, 2)) : 0,
               terms = w->terms[k] + w->width[k], off = fabs(w->R[k]) - rounded - ROUND_50 * terms;
        w->top[k] = fmax(w->top[k], terms);
        if (off > 0 && !(off <= *by * w->top[k])) {
            *by = off / w->top[k];
            worst = k;
        }
    }
    return worst;
}

/* false: it is not known there */
static bool solve_at(look *w, int64_t at, double t)
{
    if (!stand(w, at, t))
        return false;
    select_all(w);
    rows_now(w);
    columns_now(w);
    settle(w);
    return true;
}

/* where formulas of time change their form, a sample is that of one side */
static bool sample_holds(look *w, int64_t at)
{
    double tiny = 2 * JUST_BESIDE * w->r->duration, least = INFINITY;
    int row = 0;
    if (!solve_at(w, at, w->r->t[at]))
        return true;
    for (int c = 0; c < w->ip->ncone; c++)
        if (!cone_holds(w, c, at))
            return false;
    for (int side = 0; side < 3 && at > 0 && least > GATE_LOOSE; side++) {
        double by;
        if (side && !solve_at(w, at, w->r->t[at] + (side == 1 ? -tiny : tiny)))
            break;
        int worst = rows_miss(w, at, &by);
        if (by < least) {
            least = by;
            row = worst;
        }
    }
    if (at == 0)
        return true;
    if (!(least <= GATE_LOOSE))
        return wrong(w, w->ip->row[row].at, at, "the inclusion does not hold", least * w->top[row]);
    w->r->residual = fmax(w->r->residual, least);
    return true;
}

/* by how much the rate of k changes from the sample before `at`, if it did so over a time h */
static double rate_turns(const results *r, int n, int64_t at, int k, double h)
{
    if (at < 1 || at >= r->samples || !(r->t[at] > r->t[at - 1]))
        return 0;
    double change = fabs(r->v[at * n + k] - r->v[(at - 1) * n + k]);
    return change * fmax(1, h / (r->t[at] - r->t[at - 1]));
}

/* x moves by its rates: of steps of order 1 by that of their end, else by what lies between both.  Jumps of
   rates within a step are no fault, nor is what a rate bends by that is largest or least within the step: the
   steps beside it show how much. */
static bool moves(look *w, int64_t at)
{
    const results *r = w->r;
    if (at == 0 || !(r->t[at] > r->t[at - 1]))
        return true;
    double h = r->t[at] - r->t[at - 1];
    for (int k = 0; k < w->n; k++) {
        const double *x = r->q + at * w->n + k, *v = r->v + at * w->n + k, *x0 = x - w->n, *v0 = v - w->n;
        double mean = r->linear ? *v : 0.5 * (*v0 + *v), off = fabs(*x - *x0 - h * mean),
               turns = fmax(rate_turns(r, w->n, at, k, h),
                            r->linear
                                ? 0
                                : fmax(rate_turns(r, w->n, at - 1, k, h), rate_turns(r, w->n, at + 1, k, h))),
               slack = h * turns + GATE_LOOSE * h * (fabs(*v) + fabs(*v0)) + GATE_LOOSE * w->size[k];
        if (!(off <= slack))
            return wrong(w, w->ip->row[k].at, at, "the values do not follow their rates", off);
    }
    return true;
}

/* Also finds values that are not finite. The size of a dof at rest at 0 is the change that its row causes
   in a step. */
static bool sizes(look *w, arena *a)
{
    results *r = w->r;
    double *rates = arena_array(a, double, (size_t)w->n + 1), h = r->t_end / (double)(r->samples + 1);
    for (int64_t at = 0; at < r->samples; at++)
        for (int k = 0; k < w->n; k++) {
            double x = r->q[at * w->n + k], v = r->v[at * w->n + k];
            if (!isfinite(x) || !isfinite(v))
                return results_fail(
                    r, w->ip->row[k].at,
                    arena_printf(r->a, "the solution is not finite at t = %s", number_text(r->a, r->t[at])));
            w->size[k] = fmax(w->size[k], fabs(x));
            rates[k] = fmax(rates[k], fabs(v));
        }
    stand(w, 0, 0);
    for (int k = 0; k < w->n; k++) {
        const kernel *f = &w->ip->row[k].r;
        const double *reg = run(w, f);
        double rate = fabs(reg[f->tape.out[0]] / reg[f->tape.out[2]]);
        if (isfinite(rate)) {
            rates[k] = fmax(rates[k], rate);
            w->size[k] = fmax(w->size[k], h * rate);
        }
    }
    double most = 0;
    for (int k = 0; k < w->n; k++)
        most = fmax(most, w->size[k]);
    for (int k = 0; k < w->n; k++) /* known no better than by rounding of the others */
        w->size[k] = fmax(w->size[k], DOF_SMALL * most);
    argument_sizes(w, rates, 0);
    argument_sizes(w, rates, r->t_end);
    return true;
}

static bool all_kept(const results *r)
{
    return r->samples == r->count.steps + 1;
}

static void check_inclusion(results *r, const void *ud, arena *scratch)
{
    look w = look_new(r, r->param, scratch);
    int64_t stride = r->samples / LOOKS + 1;
    (void)ud;
    bool good = sizes(&w, scratch), known = w.ip->nintegral == 0;
    for (int64_t at = 0; good && at < r->samples; at += stride)
        good = (!known || sample_holds(&w, at)) && (!all_kept(r) || moves(&w, at));
    if (good && known && r->samples > 0)
        sample_holds(&w, r->samples - 1);
}

/* ---- limits ---- */
/* The residual of R at x without the rate, relative to its terms; sign: that of the residual. 0 if the past
   lies within the step itself. */
static double graph_off(look *w, double t, double x, int64_t at, double *terms)
{
    *terms = 0;
    if (!stand(w, at, t))
        return 0;
    w->x[0] = x;
    w->v[0] = 0;
    select_all(w);
    rows_now(w);
    columns_now(w);
    settle(w);
    *terms = w->terms[0] + w->width[0];
    return w->R[0];
}

/* just before, at and just after: loads may jump there */
static bool on_graph(look *w, double t, double x, int64_t at, double scale)
{
    double tiny = CHECK_BESIDE * w->r->duration, most = INFINITY;
    for (int side = -1; side <= 1; side++) {
        double terms, off = fabs(graph_off(w, t + side * tiny, x, at, &terms));
        most = fmin(most, off / fmax(fmax(terms, scale), SIZE_LEAST));
    }
    if (!(most <= GATE_LOOSE))
        return wrong(w, w->ip->row[0].at, at, "the limit does not lie on its graph", most);
    w->r->residual = fmax(w->r->residual, most);
    return true;
}

/* from its start to its end the flow v' = -R/A goes one way */
static bool jump_holds(look *w, const limit_jump *j, double A, int64_t at, double scale)
{
    enum { POINTS = 64 };
    double tiny = CHECK_BESIDE * w->r->duration, terms;
    int dir = j->to > j->from ? 1 : -1;
    if (!on_graph(w, j->t, j->to, at, scale))
        return false;
    for (int i = 1; i < POINTS; i++) {
        double x = j->from + (j->to - j->from) * i / POINTS,
               flow = -graph_off(w, j->t + tiny, x, at, &terms) / A;
        if (!(dir * flow >= -GATE_LOOSE * fmax(terms, scale)))
            return wrong(w, w->ip->row[0].at, at, "a jump passes a value at which it would stay",
                         x - j->from);
    }
    return true;
}

static void check_limit(results *r, const void *ud, arena *scratch)
{
    const run_options *o = ud;
    const double *param = limit_params(r, o->word[0], scratch);
    look w = look_new(r, param, scratch);
    if (w.ip->nintegral || !sizes(&w, scratch) || r->samples < 2)
        return;
    int64_t stride = r->samples / LOOKS + 1;
    double scale = 0, A;
    w.in.from[IN_PARAM] = r->param;
    stand(&w, 0, 0);
    A = out(&w, &w.ip->row[0].r, 2) < 0 ? -1 : 1;
    w.in.from[IN_PARAM] = param;
    for (int64_t at = 0; at < r->samples; at++)
        scale = fmax(scale, fabs(r->limit.load[at]));
    for (int64_t at = 1; at < r->samples; at += stride)
        if (!on_graph(&w, r->t[at], r->q[at], at, scale))
            return;
    if (!on_graph(&w, r->t[r->samples - 1], r->q[r->samples - 1], r->samples - 1, scale))
        return;
    for (size_t j = 0; j < r->limit.jumps.n; j++)
        if (!jump_holds(&w, &r->limit.jumps.at[j], A, r->samples - 1, scale))
            return;
}

void inclusion_check(results *r, const run_options *o)
{
    if (r->status != RUN_FAILED && r->samples > 0 && !o->keep_going)
        results_scratch(r, r->limit.has_jumps ? check_limit : check_inclusion, o);
}
