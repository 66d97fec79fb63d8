/* eval_ref: what refers to something: subscripts, members, derivatives, past values, series at a time. */
#include "eval.h"
#include <math.h>
#include "base/tolerances.h"
#include "base/whole.h"
#include "model/model.h"

/* ---- subscripts ---- */

/* limit of sums and products of indices; larger numbers index nothing */
enum { TOO_LARGE = 1 << 30 };
static int32_t small(int64_t x)
{
    return x > TOO_LARGE ? TOO_LARGE : x < -TOO_LARGE ? -TOO_LARGE : (int32_t)x;
}

/* ca*a + cb*b */
static address address_mix(int32_t ca, address a, int32_t cb, address b)
{
    address r = { .base = small(ca * (int64_t)a.base + cb * (int64_t)b.base) };
    for (int k = 0; k < MAX_INDEX; k++)
        r.stride[k] = small(ca * (int64_t)a.stride[k] + cb * (int64_t)b.stride[k]);
    return r;
}

static bool address_small(const address *a)
{
    bool ok = a->base < TOO_LARGE && a->base > -TOO_LARGE;
    for (int k = 0; k < MAX_INDEX; k++)
        ok = ok && a->stride[k] <= 1000000 && a->stride[k] >= -1000000;
    return ok;
}

static bool address_fixed(const address *a)
{
    for (int k = 0; k < MAX_INDEX; k++)
        if (a->stride[k])
            return false;
    return true;
}

/* node = at.base + sum at.stride[k]*index[k]?  Only sums, differences and products with constants are
 * recognised. */
static bool affine(const ir *g, ir_ref r, address *at, int depth)
{
    const ir_node *n = ir_at(g, r);
    *at = (address){ 0 };
    if (depth > 64)
        return false;
    if (n->op == IR_CONST) {
        int64_t whole;
        if (!whole_number(n->k, -1e6, 1e6, &whole))
            return false;
        at->base = (int32_t)whole;
        return true;
    }
    if (n->op == IR_INPUT) {
        const ir_input *in = ir_input_of(g, r);
        if (in->kind != IN_INDEX)
            return false;
        at->stride[in->at.base] = 1;
        return true;
    }
    address a, b = { 0 };
    if (n->op != OP_ADD && n->op != OP_SUB && n->op != OP_MUL && n->op != OP_NEG)
        return false;
    if (!affine(g, n->a, &a, depth + 1) || (n->op != OP_NEG && !affine(g, n->b, &b, depth + 1)))
        return false;
    switch (n->op) {
    case OP_NEG:
        *at = address_mix(-1, a, 0, b);
        break;
    case OP_ADD:
        *at = address_mix(1, a, 1, b);
        break;
    case OP_SUB:
        *at = address_mix(1, a, -1, b);
        break;
    default:
        if (!address_fixed(&a) && !address_fixed(&b))
            return false;
        *at = address_fixed(&a) ? address_mix(a.base, b, 0, b) : address_mix(b.base, a, 0, a);
    }
    return address_small(at);
}

static value range_error(evaluator *ev, span at, double got, int32_t lo, int32_t hi)
{
    text t = { .a = ev->a };
    text_num(&t, got);
    if (hi < lo)
        diag_error(ev->d, DIAG_INDEX_RANGE, at, "index %s into an empty value", t.at);
    else {
        diag *e = diag_error(ev->d, DIAG_INDEX_RANGE, at, "index %s is outside %d..%d", t.at, lo, hi);
        if (got == 0 && lo == 1)
            diag_hint(ev->d, e, "indices start at 1");
        else if (got < 0 && lo == 1)
            diag_hint(ev->d, e, "the last index is %d; none count from the end", hi);
    }
    return v_error();
}

/* the extreme values of an affine index over the family, as if indices were independent */
static void affine_bounds(const index_names *f, const address *at, int64_t *lo, int64_t *hi)
{
    int64_t ilo[MAX_INDEX], ihi[MAX_INDEX];
    for (int k = 0; k < f->set.n; k++) {
        const index_range *r = &f->set.r[k];
        ilo[k] = r->lo;
        ihi[k] = r->hi;
        for (int m = 0; m < k; m++) {
            ilo[k] += r->lo_stride[m] > 0 ? r->lo_stride[m] * ilo[m] : r->lo_stride[m] * ihi[m];
            ihi[k] += r->hi_stride[m] > 0 ? r->hi_stride[m] * ihi[m] : r->hi_stride[m] * ilo[m];
        }
    }
    *lo = *hi = at->base;
    for (int k = 0; k < f->set.n; k++) {
        *lo += at->stride[k] > 0 ? at->stride[k] * ilo[k] : at->stride[k] * ihi[k];
        *hi += at->stride[k] > 0 ? at->stride[k] * ihi[k] : at->stride[k] * ilo[k];
    }
}

static double index_input(const ir_input *in, void *ud)
{
    return in->kind == IN_INDEX ? ((const int32_t *)ud)[in->at.base] : NAN;
}

/* exact check, member by member, for families whose bounds alone do not prove it */
static bool affine_inside(evaluator *ev, const address *at, int32_t lo, int32_t hi, int32_t *worst)
{
    const index_names *f = ev->family;
    int32_t ix[MAX_INDEX];
    for (bool more = index_first(&f->set, ix); more; more = index_next(&f->set, ix)) {
        int32_t x = slot_at(at, ix, f->set.n);
        if (x >= lo && x <= hi)
            continue;
        if (f->where) {
            arena_pos mark = arena_mark(ev->a);
            double w = ir_value(ev->g, ev->a, f->where, index_input, ix);
            arena_release(ev->a, mark);
            if (w == 0)
                continue;
        }
        *worst = x;
        return false;
    }
    return true;
}

enum { MAX_CHECKED_MEMBERS = 4000000 };

/* an index as an address: constant, or affine in the family's indices; checked against lo..hi */
bool eval_index(evaluator *ev, const value *ix, int32_t lo, int32_t hi, span at, address *out)
{
    double k;
    *out = (address){ 0 };
    if (ix->kind == V_ERROR)
        return false;
    if (!v_is_scalar(ix)) {
        diag_error(ev->d, DIAG_TYPE, at, "an index is a whole number, not %s", v_kind_text(ev->a, ix));
        return false;
    }
    if (v_scalar(ix, &k)) {
        if (k != floor(k)) {
            diag_error(ev->d, DIAG_TYPE, at, "an index is a whole number");
            return false;
        }
        int64_t whole;
        if (!whole_number(k, lo, hi, &whole)) {
            range_error(ev, at, k, lo, hi);
            return false;
        }
        out->base = (int32_t)whole;
        return true;
    }
    if (!ev->family || !affine(ev->g, ix->num.r0, out, 0)) {
        if (ev->family && ev->family->n)
            ev->needs_members = true;
        else
            diag_error(ev->d, DIAG_NOT_CONSTANT, at, "an index must be known before the run");
        return false;
    }
    int64_t min, max;
    int32_t worst;
    affine_bounds(ev->family, out, &min, &max);
    if (min >= lo && max <= hi)
        return true;
    if (ev->family->set.count > MAX_CHECKED_MEMBERS)
        worst = (int32_t)(min < lo ? min : max);
    else if (affine_inside(ev, out, lo, hi, &worst))
        return true;
    if (ev->pruned) {
        ev->split = ev->pruned;
        ev->needs_members = true;
        return false;
    }
    range_error(ev, at, worst, lo, hi);
    return false;
}

static in_kind primes_kind(int primes)
{
    return primes == 0 ? IN_Q : primes == 1 ? IN_V : IN_A;
}

static dim dim_rate(dim u, int primes)
{
    dim s = dim_none();
    s.e[2] = DIM_ONE;
    for (int k = 0; k < primes; k++)
        u = dim_div(u, s);
    return u;
}

/* the element (or vector of components) of a dof family at an address */
static value dofs_value(evaluator *ev, const value *v)
{
    const mdof *d = v->dofs.dof;
    in_kind kind = primes_kind(v->dofs.primes);
    dim u = dim_rate(d->unit, v->dofs.primes);
    ir_input in = { .kind = kind, .at = v->dofs.at };
    if (d->rotation)
        return eval_rotation(ev, v->dofs.at, v->dofs.primes, u);
    if (!d->comp)
        return v_node(ir_in(ev->g, in), u);
    value out = v_vector(ev->a, d->comp);
    out.num.unit = u;
    for (int32_t k = 0; k < d->comp; k++) {
        in.at.base = v->dofs.at.base + k;
        value x = v_node(ir_in(ev->g, in), u);
        v_set(ev->a, &out, k, &x);
    }
    return out;
}

enum { MAX_WHOLE = 100000 };

/* a whole family used as a vector or matrix: K*u */
value eval_dofs(evaluator *ev, const value *v, span at)
{
    const mdof *d = v->dofs.dof;
    int left = d->ndim - v->dofs.given, cols = left == 2 ? d->n[d->ndim - 1] : d->comp;
    if (left == 0)
        return dofs_value(ev, v);
    if (left > 2 || (left == 2 && d->comp) || d->size > MAX_WHOLE || d->rotation) {
        diag *e = diag_error(ev->d, DIAG_SHAPE, at,
                             "'%s' is a family of %d degrees of freedom and is used here without an index",
                             d->name, d->size);
        diag_hint(ev->d, e, "write %s[i], with i from a `for` or an indexed declaration", d->name);
        return v_error();
    }
    int32_t rows = d->n[v->dofs.given];
    value out = left == 2 || d->comp ? v_matrix(ev->a, rows, cols) : v_vector(ev->a, rows);
    dim u = dim_rate(d->unit, v->dofs.primes);
    out.num.unit = u;
    ir_input in = { .kind = primes_kind(v->dofs.primes), .at = v->dofs.at };
    for (int32_t k = 0; k < v_count(&out); k++) {
        value x = v_node(ir_in(ev->g, in), u);
        v_set(ev->a, &out, k, &x);
        in.at.base++;
    }
    return out;
}

static value subscript_dofs(evaluator *ev, const value *v, const value *ix, size_t n, span at)
{
    value out = *v;
    const mdof *d = v->dofs.dof;
    for (size_t i = 0; i < n; i++) {
        if (out.dofs.given == d->ndim) { /* a component of a vector dof */
            value w = dofs_value(ev, &out);
            return eval_subscript(ev, &w, ix + i, n - i, at);
        }
        int k = out.dofs.given;
        address a;
        if (!eval_index(ev, &ix[i], d->lo[k], d->lo[k] + d->n[k] - 1, at, &a))
            return v_error();
        int32_t step = d->comp ? d->comp : 1;
        for (int m = k + 1; m < d->ndim; m++)
            step *= d->n[m];
        out.dofs.at.base += (a.base - d->lo[k]) * step;
        for (int m = 0; m < MAX_INDEX; m++)
            out.dofs.at.stride[m] += a.stride[m] * step;
        out.dofs.given++;
    }
    return out.dofs.given == d->ndim && !d->rotation ? dofs_value(ev, &out) : out;
}

/* numbers read at a symbolic index: the family's members are then taken one by one */
static value subscript_symbolic(evaluator *ev)
{
    ev->needs_members = true;
    return v_error();
}

static value subscript_num(evaluator *ev, const value *v, const value *ix, size_t n, span at)
{
    int rank = v->num.rank;
    if (rank == 0) {
        diag_error(ev->d, DIAG_SHAPE, at, "a single number has no elements");
        return v_error();
    }
    if ((int)n > rank) {
        diag_error(ev->d, DIAG_SHAPE, at, "%s takes %d %s, not %zu", v_kind_text(ev->a, v), rank,
                   rank == 1 ? "index" : "indices", n);
        return v_error();
    }
    int32_t k[2] = { 0, 0 };
    for (size_t i = 0; i < n && i < 2; i++) {
        address a;
        if (!eval_index(ev, &ix[i], 1, v->num.n[i], at, &a))
            return v_error();
        if (!address_fixed(&a))
            return subscript_symbolic(ev);
        k[i] = a.base - 1;
    }
    if (rank == 1)
        return v_element(v, k[0]);
    if (n == 2)
        return v_element(v, k[0] * v->num.n[1] + k[1]);
    value row = v_vector(ev->a, v->num.n[1]);
    row.num.unit = v->num.unit;
    for (int32_t j = 0; j < v->num.n[1]; j++) {
        value x = v_element(v, k[0] * v->num.n[1] + j);
        v_set(ev->a, &row, j, &x);
    }
    return row;
}

static value subscript_list(evaluator *ev, const value *v, const value *ix, size_t n, span at)
{
    address a;
    if (!eval_index(ev, &ix[0], 1, (int32_t)v->list.n, at, &a))
        return v_error();
    if (!address_fixed(&a))
        return subscript_symbolic(ev);
    const value *x = &v->list.at[a.base - 1];
    return n == 1 ? *x : eval_subscript(ev, x, ix + 1, n - 1, at);
}

value eval_subscript(evaluator *ev, const value *v, const value *ix, size_t n, span at)
{
    double k;
    switch (v->kind) {
    case V_ERROR:
        return *v;
    case V_DOFS:
        return subscript_dofs(ev, v, ix, n, at);
    case V_NUM:
        return subscript_num(ev, v, ix, n, at);
    case V_LIST:
        return subscript_list(ev, v, ix, n, at);
    case V_SERIES:
        if (n == 1 && v_scalar(&ix[0], &k) && k == floor(k)) {
            int64_t whole;
            if (!whole_number(k, 1, (double)v->series.n, &whole))
                return range_error(ev, at, k, 1, v->series.n > INT32_MAX ? INT32_MAX : (int32_t)v->series.n);
            return v_num_unit(v->series.y[(whole - 1) * v->series.stride], v->series.unit);
        }
        break;
    case V_OBJECT:
        if (!v->object.in || !v->object.in->subscript)
            break;
        return v->object.in->subscript(v->object.in, ev, v, ix, n, at);
    default:
        break;
    }
    diag_error(ev->d, DIAG_TYPE, at, "%s cannot be indexed", v_kind_text(ev->a, v));
    return v_error();
}

value eval_member(evaluator *ev, const value *v, sym name, span at)
{
    value out;
    if (v->kind == V_ERROR)
        return *v;
    if (v->kind != V_OBJECT) {
        diag *e = diag_error(ev->d, DIAG_UNKNOWN_MEMBER, at, "%s has no member '%s'", v_kind_text(ev->a, v),
                             name);
        if (v->kind == V_SERIES)
            diag_hint(ev->d, e, "functions take a series: max(y), last(y), y(1.5)");
        if (v->kind == V_DOFS || v->kind == V_NUM)
            diag_hint(ev->d, e, "%s",
                      strlen(name) == 1 && strchr("xyz", *name)
                          ? "components are written p[1], p[2], p[3]"
                          : "functions are written dot(u, v), norm(u), max(u)");
        if (v->kind == V_FN)
            diag_hint(ev->d, e, "no previous run has a result of this name, so this is the function");
        return v_error();
    }
    switch (v->object.in->find(v->object.in, ev, name, at, &out)) {
    case LOOK_YES:
        return out;
    case LOOK_ERROR:
        return v_error();
    case LOOK_NO:
        break;
    }
    if (diag_doubtful(ev->d, name))
        return v_error();
    diag *e = diag_error(ev->d, DIAG_UNKNOWN_MEMBER, at, "no member '%s' here", name);
    near n = near_to(name);
    if (v->object.in->names)
        v->object.in->names(v->object.in, &n);
    diag_near_or_all(ev->d, e, &n);
    return v_error();
}

/* ---- derivatives and past values ---- */

/* applies f to each element that is an input of the given kinds; anything else is an error that the caller
 * reports
 */
typedef bool (*input_map)(evaluator *ev, const ir_input *in, ir_input *out);
static bool map_inputs(evaluator *ev, const value *v, input_map f, value *out)
{
    *out = eval_like(ev->a, v);
    out->num.unit = v->num.unit;
    for (int32_t k = 0; k < v_count(v); k++) {
        value x = v_element(v, k);
        const ir_input *in = x.num.r0 && ev->g ? ir_input_of(ev->g, x.num.r0) : NULL;
        ir_input to = { 0 };
        if (!in || !f(ev, in, &to))
            return false;
        value y = v_node(ir_in(ev->g, to), v->num.unit);
        v_set(ev->a, out, k, &y);
    }
    return true;
}

static bool prime_input(evaluator *ev, const ir_input *in, ir_input *out)
{
    (void)ev;
    *out = *in;
    if (in->kind == IN_Q)
        out->kind = IN_V;
    else if (in->kind == IN_V)
        out->kind = IN_A;
    else if (in->kind == IN_FIELD)
        out->at.stride[0]++;
    else
        return false;
    return true;
}

static value prime_error(evaluator *ev, const value *v, span at)
{
    const ir_input *in = v->kind == V_NUM && v_is_scalar(v) && v->num.r0 && ev->g
                             ? ir_input_of(ev->g, v->num.r0)
                             : NULL;
    if (v->kind == V_DOFS || (in && in->kind == IN_A)) {
        diag *third = diag_error(ev->d, DIAG_TYPE, at, "a degree of freedom has two derivatives, not three");
        diag_hint(ev->d, third, "equations are of first order in x' or of second order in x''");
        return v_error();
    }
    diag *e = diag_error(ev->d, DIAG_TYPE, at,
                         "' is the derivative of a degree of freedom or a field, not of %s",
                         v_kind_text(ev->a, v));
    diag_hint(ev->d, e,
              v->kind == V_NUM && !v_is_scalar(v)
                  ? "the derivative of an expression in time is d(expression, t), of an element x[i]'"
                  : "the derivative of an expression in time is d(expression, t)");
    return v_error();
}

value eval_prime(evaluator *ev, const value *v, span at)
{
    value out;
    if (v->kind == V_ERROR)
        return *v;
    if (v->kind == V_DOFS) {
        out = *v;
        if (out.dofs.primes++ < 2)
            return out;
    } else if (v->kind == V_SERIES) {
        if (v->series.ops && v->series.ops->derivative(v, &out))
            return out;
    } else if (v->kind == V_OBJECT) { /* dofs of a run: the derivative is a member of theirs */
        if (v->object.in->find(v->object.in, ev, sym_str(ev->names, "'"), at, &out) == LOOK_YES)
            return out;
    } else if (v->kind == V_NUM && v->num.rank < 2) {
        if (map_inputs(ev, v, prime_input, &out)) {
            const ir_input *in = ir_input_of(ev->g, v_element(&out, 0).num.r0);
            const model *m = ev->model;
            if (in->kind == IN_FIELD) {
                if (m->fields.at[in->at.base].ncoord != 1) {
                    diag *e = diag_error(ev->d, DIAG_TYPE, at,
                                         "' is ambiguous for a field of two coordinates");
                    diag_hint(ev->d, e, "write d(u, x) or laplacian(u)");
                    return v_error();
                }
            } else
                out.num.unit = dim_rate(v->num.unit, 1);
            return out;
        }
    }
    return prime_error(ev, v, at);
}

bool eval_is_time(const evaluator *ev, const value *v)
{
    const ir_input *in = v_is_scalar(v) && v->num.r0 && ev->g ? ir_input_of(ev->g, v->num.r0) : NULL;
    return in && in->kind == IN_TIME;
}

/* A past degree of freedom, rate or base; a rotation is a formula of these. */
static ir_ref past_of(ir *g, ir_ref input, void *ud)
{
    const ir_ref *when = ud;
    ir_input in = *ir_input_of(g, input);
    if (in.kind == IN_Q || in.kind == IN_V || in.kind == IN_BASE) {
        in.kind = in.kind == IN_Q ? IN_PAST_Q : in.kind == IN_V ? IN_PAST_V : IN_PAST_BASE;
        in.arg = *when;
        return ir_in(g, in);
    }
    return IR_NONE;
}

static bool has_no_past(const ir_input *in, void *ud)
{
    (void)ud;
    return in->kind != IN_Q && in->kind != IN_V && in->kind != IN_BASE;
}

static bool other_than_time(const ir_input *in, void *ud)
{
    (void)ud;
    return in->kind != IN_TIME;
}
static double time_zero(const ir_input *in, void *ud)
{
    (void)in;
    (void)ud;
    return 0;
}

/* ds/dt = 1: the delay t - s does not change */
bool eval_steady_delay(ir *g, ir_ref s)
{
    double k;
    return ir_is_const(g, ir_derive(g, s, ir_in(g, (ir_input){ .kind = IN_TIME })), &k) && k == 1;
}

/* x(t - tau): the delay t - arg must not be a constant that is negative or zero */
value eval_past(evaluator *ev, const value *v, const value *arg, span at)
{
    model *m = ev->model;
    if (!v_is_scalar(arg)) {
        diag_error(ev->d, DIAG_TYPE, at, "a past value needs a time, not %s", v_kind_text(ev->a, arg));
        return v_error();
    }
    if (eval_is_time(ev, arg))
        return *v;
    ir_ref s = v_ref(ev->g, arg);
    double k = 1; /* delays that depend on parameters are checked when these are known */
    if (!ir_depends(ev->g, s, other_than_time, NULL) && eval_steady_delay(ev->g, s))
        k = -ir_value(ev->g, ev->a, s, time_zero, NULL);
    if (k <= 0) {
        diag *e = diag_error(ev->d, DIAG_DELAY_SIGN, at, "this value is not in the past: the delay is %g", k);
        diag_hint(ev->d, e, "write x(t - tau) with tau > 0");
        return v_error();
    }
    value out = eval_like(ev->a, v);
    out.num.unit = v->num.unit;
    for (int32_t i = 0; i < v_count(v); i++) {
        value x = v_element(v, i);
        if (!x.num.r0 || ir_depends(ev->g, x.num.r0, has_no_past, NULL)) {
            diag_error(ev->d, DIAG_TYPE, at, "only degrees of freedom and their rates have past values");
            return v_error();
        }
        value y = v_node(ir_substitute(ev->g, x.num.r0, past_of, &s), v->num.unit);
        v_set(ev->a, &out, i, &y);
    }
    if (!m->has_delay.file)
        m->has_delay = at;
    return out;
}

/* u(x): a field at its own coordinates is the field */
value eval_field_at(evaluator *ev, const value *v, const value *arg, size_t n, const ir_input *in, span at)
{
    model *m = ev->model;
    const mfield *f = &m->fields.at[in->at.base];
    bool own = (int)n == f->ncoord;
    for (size_t i = 0; own && i < n; i++) {
        const ir_input *c = v_is_scalar(&arg[i]) && arg[i].num.r0 ? ir_input_of(ev->g, arg[i].num.r0) : NULL;
        own = c && c->kind == IN_COORD && c->at.base == f->coord[i];
    }
    if (own)
        return *v;
    diag *e = diag_error(ev->d, DIAG_NOT_SUPPORTED, at,
                         "a field is known only at its own coordinates while the equation is solved");
    if (m->coords.n)
        diag_hint(ev->d, e, "conditions at a point are written as `at %s = … { %s = … }`",
                  m->coords.at[0].name, f->name);
    return v_error();
}

static double series_linear(const value *v, double t)
{
    int64_t lo = 0, hi = v->series.n - 1;
    if (hi < 0)
        return NAN;
    while (hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;
        if (v->series.t[mid] <= t)
            lo = mid;
        else
            hi = mid;
    }
    double t0 = v->series.t[lo], t1 = v->series.t[hi], y0 = v->series.y[lo * v->series.stride],
           y1 = v->series.y[hi * v->series.stride];
    return t1 > t0 ? y0 + (y1 - y0) * (t - t0) / (t1 - t0) : y0;
}

bool times_reach(const double *t, int64_t n, double *at)
{
    if (n == 0)
        return false;
    double slack = CLOCK_END * fmax(fabs(t[0]), fabs(t[n - 1]));
    if (!(*at >= t[0] - slack && *at <= t[n - 1] + slack))
        return false;
    *at = fmin(fmax(*at, t[0]), t[n - 1]);
    return true;
}

value eval_series_at(evaluator *ev, const value *v, const value *arg, size_t n, span at)
{
    double t;
    if (n != 1 || !v_scalar(&arg[0], &t)) {
        diag_error(ev->d, DIAG_ARITY, at, "a series is read at one time: y(1.5)");
        return v_error();
    }
    if (!times_reach(v->series.t, v->series.n, &t)) {
        double t0 = v->series.n ? v->series.t[0] : 0, t1 = v->series.n ? v->series.t[v->series.n - 1] : 0;
        diag_error(ev->d, DIAG_INDEX_RANGE, at, "the time %g is outside the run, which goes from %g to %g", t,
                   t0, t1);
        return v_error();
    }
    double y = v->series.ops ? v->series.ops->at(v->series.of, v->series.column, v->series.order, t)
                             : series_linear(v, t);
    return v_num_unit(y, v->series.unit);
}
