/* session_functions: functions of results: extremes, means, counts, times of rest, power series,
   random numbers. */
#include <math.h>
#include <string.h>
#include "base/random.h"
#include "base/whole.h"
#include "session_view.h"

/* times (NULL for a vector) and numbers; false when it is neither */
bool value_samples(session *s, const value *v, const double **t, const double **y, int64_t *n,
                   int64_t *stride)
{
    *t = NULL;
    *stride = 1;
    if (v->kind == V_SERIES) {
        *t = v->series.t;
        *y = v->series.y;
        *n = v->series.n;
        *stride = v->series.stride;
        return true;
    }
    if (plane_samples(v, y, n, stride))
        return true;
    if (v->kind == V_BOOL || (v->kind == V_NUM && v->num.rank == 0)) {
        double *x = arena_alloc(s->tmp, sizeof *x);
        if (!v_scalar(v, x))
            return false;
        *y = x;
        *n = 1;
        return true;
    }
    if (v->kind != V_NUM || v->num.r)
        return false;
    *y = v->num.d;
    *n = v_count(v);
    return true;
}

typedef struct {
    const double *t, *y;
    int64_t n, stride;
    dim unit;
} numbers;

static bool numbers_of(evaluator *ev, const ast *call, const value *v, numbers *x)
{
    span at = call ? call->at : SPAN_NONE;
    if (v->kind == V_SERIES)
        *x = (numbers){ v->series.t, v->series.y, v->series.n, v->series.stride, v->series.unit };
    else if (v->kind == V_NUM && v->num.rank && !v->num.r)
        *x = (numbers){ NULL, v->num.d, v_count(v), 1, v->num.unit };
    else if (plane_samples(v, &x->y, &x->n, &x->stride))
        x->t = NULL, x->unit = dim_any();
    else {
        diag_error(ev->d, DIAG_TYPE, at, "a series or a vector of numbers is needed here, not %s",
                   v_kind_text(ev->a, v));
        return false;
    }
    if (x->n > 0)
        return true;
    diag_error(ev->d, DIAG_SHAPE, at, "there are no numbers to take it of");
    return false;
}

static int64_t extreme(session *s, const numbers *x, bool largest)
{
    int64_t best = 0;
    scan rest = { .s = s };
    for (int64_t k = 1; k < x->n; k++) {
        scan_pass(&rest, x->stride * (int64_t)sizeof(double));
        double a = x->y[k * x->stride], b = x->y[best * x->stride];
        if (largest ? a > b : a < b)
            best = k;
    }
    return best;
}

static value extremum(evaluator *ev, const ast *call, const value *arg, size_t n, bool largest)
{
    numbers x;
    value best = arg[0];
    op_code op = largest ? OP_MAX : OP_MIN;
    if (n == 1 && v_is_scalar(&arg[0]))
        return arg[0];
    if (n == 1 && arg[0].kind == V_NUM && arg[0].num.r) { /* of a symbolic vector, in a model */
        best = v_element(&arg[0], 0);
        for (int32_t k = 1; k < v_count(&arg[0]); k++) {
            value e = v_element(&arg[0], k);
            best = eval_op(ev, op, &best, &e, NULL, call->at);
        }
        return best;
    }
    if (n == 1)
        return numbers_of(ev, call, &arg[0], &x)
                   ? v_num_unit(x.y[extreme(ev->of, &x, largest) * x.stride], x.unit)
                   : v_error();
    for (size_t k = 1; k < n; k++)
        best = eval_op(ev, op, &best, &arg[k], NULL, call ? call->at : SPAN_NONE);
    return best;
}

/* the mean over time of a series (by trapezia), of the numbers of a vector */
static double mean_of(session *s, const numbers *x, bool squares)
{
    scan rest = { .s = s };
    double sum = 0, weight = 0;
    for (int64_t k = 0; k < x->n; k++) {
        double y = x->y[k * x->stride], w = 1;
        if (x->t)
            w = ((k + 1 < x->n ? x->t[k + 1] : x->t[k]) - (k ? x->t[k - 1] : x->t[k])) / 2;
        scan_pass(&rest, (x->stride + 1) * (int64_t)sizeof(double));
        sum += w * (squares ? y * y : y);
        weight += w;
    }
    double y0 = x->y[0];
    return weight > 0 ? sum / weight : squares ? y0 * y0 : y0;
}

#define BUILTIN(name) \
    static value call_##name(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
BUILTIN(min)
{
    (void)in;
    return extremum(ev, call, arg, n, false);
}
BUILTIN(max)
{
    (void)in;
    return extremum(ev, call, arg, n, true);
}

BUILTIN(mean)
{
    numbers x;
    (void)in;
    (void)n;
    return numbers_of(ev, call, &arg[0], &x) ? v_num_unit(mean_of(ev->of, &x, false), x.unit) : v_error();
}

BUILTIN(rms)
{
    numbers x;
    (void)in;
    (void)n;
    return numbers_of(ev, call, &arg[0], &x) ? v_num_unit(sqrt(mean_of(ev->of, &x, true)), x.unit)
                                             : v_error();
}

static value end_of(evaluator *ev, const ast *call, const value *v, bool last)
{
    numbers x;
    if (v->kind == V_LIST && v->list.n)
        return v->list.at[last ? v->list.n - 1 : 0];
    if (is_dofs(v)) {
        const results *r = ((view *)v->object.of)->r->r;
        value t = v_num(r->samples ? r->t[last ? r->samples - 1 : 0] : 0);
        return dofs_call(v->object.in, ev, v, &t, 1, call->at);
    }
    return numbers_of(ev, call, v, &x) ? v_num_unit(x.y[last ? (x.n - 1) * x.stride : 0], x.unit) : v_error();
}

BUILTIN(first)
{
    (void)in;
    (void)n;
    return end_of(ev, call, &arg[0], false);
}
BUILTIN(last)
{
    (void)in;
    (void)n;
    return end_of(ev, call, &arg[0], true);
}

BUILTIN(count)
{
    const value *v = &arg[0];
    (void)in;
    (void)n;
    if (v->kind == V_LIST)
        return v_num((double)v->list.n);
    if (v->kind == V_SERIES)
        return v_num((double)v->series.n);
    if (v->kind == V_NUM && v->num.rank)
        return v_num(v->num.rank == 2 ? v->num.n[0] : v_count(v));
    if (is_impacts(v))
        return v_num((double)impacts_count(v->object.of));
    double listed;
    if (inclusion_count(v, &listed) || path_count(v, &listed))
        return v_num(listed);
    diag_error(ev->d, DIAG_TYPE, call->at, "'count' takes a vector, a list or impacts, not %s",
               v_kind_text(ev->a, v));
    return v_error();
}

BUILTIN(argmax)
{
    numbers x;
    (void)in;
    (void)n;
    if (!numbers_of(ev, call, &arg[0], &x))
        return v_error();
    int64_t k = extreme(ev->of, &x, true);
    return v_num(x.t ? x.t[k] : (double)(k + 1));
}

BUILTIN(settle_time)
{
    const value *v = &arg[0];
    (void)in;
    (void)n;
    if (!is_contact(v)) {
        diag_error(ev->d, DIAG_TYPE, call->at, "'settle_time' takes a constraint, not %s",
                   v_kind_text(ev->a, v));
        return v_error();
    }
    const view *c = v->object.of;
    const results *r = c->r->r;
    double t = -INFINITY;
    if (!r->contact[c->contact].kept) {
        contact_not_kept(c, ev, call->at);
        return v_error();
    }
    for (int64_t m = 0; m < r->contact[c->contact].members; m++)
        if (view_has(c, m))
            t = fmax(t, results_settle(r, (int)c->contact, m));
    return v_num(t);
}

/* taylor(y, t0, n): coefficients of degree 0 .. n just after t0. */
BUILTIN(taylor)
{
    const value *y = &arg[0];
    double t, degree;
    int64_t top;
    dense_item x;
    (void)in;
    (void)n;
    const results *r = dof_dense(y, &x);
    if (!r)
        r = contact_dense(y, &x);
    if (!r) {
        diag_error(ev->d, DIAG_NOT_SUPPORTED, call->at,
                   "'taylor' takes a degree of freedom, a rate, a gap or a reaction of a run with events()");
        return v_error();
    }
    if (!r->dense) {
        diag_error(ev->d, DIAG_NOT_SUPPORTED, call->at, "backend '%s' has no power series; use events()",
                   r->backend);
        return v_error();
    }
    if (!v_scalar(&arg[1], &t) || !v_scalar(&arg[2], &degree) || degree != floor(degree) || degree < 0) {
        diag_error(ev->d, DIAG_TYPE, call->at, "'taylor' takes a time and a degree: taylor(y, 0, 8)");
        return v_error();
    }
    if (t < r->t[0] || t > r->t_end || degree + x.order > r->dense->order) {
        diag_error(ev->d, DIAG_INDEX_RANGE, call->at,
                   "power series of this run go from t = %g to %g, up to degree %d", r->t[0], r->t_end,
                   r->dense->order - x.order);
        return v_error();
    }
    top = whole_clamp(degree, 0, r->dense->order);
    value out = v_vector(ev->a, (int32_t)top + 1);
    r->dense->series(r->dense->of, &x, t, (int)top, out.num.d);
    return out;
}

/* ---- long results ---- */

void scan_pass(scan *x, int64_t bytes)
{
    enum { ENOUGH = 64 << 20 };
    x->bytes += bytes;
    if (x->bytes < ENOUGH)
        return;
    x->bytes = 0;
    for (size_t k = 0; k < x->s->runs.n; k++)
        if (x->s->runs.at[k]->r)
            results_rest(x->s->runs.at[k]->r);
}

/* ---- random numbers: a function of seed, point, name and how many were drawn for it ---- */

static value draw(evaluator *ev, const ast *call, const value *arg, size_t n, double (*one)(const draw_key *))
{
    session *s = ev->of;
    draw_key key = { .seed = (uint64_t)s->now.seed,
                     .point = (uint64_t)s->now.point,
                     .name = s->now.draw_name ? s->now.draw_name : "" };
    double many;
    int64_t count;
    ev->drawn++;
    if (n == 0) {
        key.index = s->now.drawn++;
        return v_num(one(&key));
    }
    if (!v_scalar(&arg[0], &many) || !whole_number(many, 0, 1e7, &count)) {
        diag_error(ev->d, DIAG_TYPE, call->at, "how many numbers are drawn is a whole number");
        return v_error();
    }
    value v = v_vector(ev->a, (int32_t)count);
    for (int32_t k = 0; k < (int32_t)count; k++) {
        key.index = s->now.drawn++;
        v.num.d[k] = one(&key);
    }
    return v;
}

static value call_random(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    return draw(ev, call, arg, n, draw_uniform);
}

static value call_random_normal(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    return draw(ev, call, arg, n, draw_normal);
}

const builtin result_builtins[] = {
    { "min", 1, -1, call_min, false, "min(y)  min(a, b, ...)",
      "the smallest number of a series or a vector, or of the arguments" },
    { "max", 1, -1, call_max, false, "max(y)  max(a, b, ...)",
      "the largest number of a series or a vector, or of the arguments" },
    { "mean", 1, 1, call_mean, false, "mean(y)", "the mean: over time for a series" },
    { "rms", 1, 1, call_rms, false, "rms(y)", "the root of the mean square: over time for a series" },
    { "first", 1, 1, call_first, false, "first(y)", "the first number" },
    { "last", 1, 1, call_last, false, "last(y)", "the last number" },
    { "count", 1, 1, call_count, false, "count(c.impacts)", "the number of elements" },
    { "argmax", 1, 1, call_argmax, false, "argmax(y)",
      "the time at which a series is largest; the index, for a vector" },
    { "settle_time", 1, 1, call_settle_time, false, "settle_time(c)",
      "the time from which a constraint stays closed to the end" },
    { "taylor", 3, 3, call_taylor, false, "taylor(y, t0, n)",
      "coefficients of the power series to the right of t0" },
    { "random", 0, 1, call_random, false, "random()  random(n)",
      "a number between 0 and 1, or n of them, from the seed of the experiment" },
    { "random_normal", 0, 1, call_random_normal, false, "random_normal()  random_normal(n)",
      "a normal random number with mean 0 and variance 1, or n of them, from the seed of the experiment" },
    { "pieces", 1, 1, call_pieces, false, "pieces(u)", "coefficients of a field on its pieces" },
    { NULL, 0, 0, NULL, false, NULL, NULL }
};
