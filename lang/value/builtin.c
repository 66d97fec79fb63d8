/* Functions of the language beyond opcodes.def, one table at the foot. */
#include <math.h>
#include <string.h>
#include "base/whole.h"
#include "model/model.h"
#include "base/tolerances.h"

static value arg_error(evaluator *ev, span at, const char *fn, const char *want, const value *got)
{
    diag_error(ev->d, DIAG_TYPE, at, "'%s' takes %s, not %s", fn, want, v_kind_text(ev->a, got));
    return v_error();
}

static bool is_vector(const value *v)
{
    return v->kind == V_NUM && v->num.rank == 1;
}

static span call_at(const ast *call)
{
    return call ? call->at : SPAN_NONE;
}

static value add(evaluator *ev, const value *a, const value *b, span at)
{
    return eval_op(ev, OP_ADD, a, b, NULL, at);
}
static value mul(evaluator *ev, const value *a, const value *b, span at)
{
    return eval_op(ev, OP_MUL, a, b, NULL, at);
}

/* ---- vectors and matrices ---- */

static value dot_of(evaluator *ev, const value *a, const value *b, span at)
{
    value s = v_num(0);
    for (int32_t k = 0; k < v_count(a); k++) {
        value x = v_element(a, k), y = v_element(b, k), p = mul(ev, &x, &y, at);
        s = k ? add(ev, &s, &p, at) : p;
    }
    return s;
}

static value b_dot(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    (void)n;
    for (int i = 0; i < 2; i++)
        if (!is_vector(&arg[i]))
            return arg_error(ev, call_at(call), "dot", "two vectors", &arg[i]);
    if (arg[0].num.n[0] != arg[1].num.n[0]) {
        diag_error(ev->d, DIAG_SHAPE, call_at(call), "'dot' takes vectors of the same size, not %d and %d",
                   arg[0].num.n[0], arg[1].num.n[0]);
        return v_error();
    }
    return dot_of(ev, &arg[0], &arg[1], call_at(call));
}

static value b_norm(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    (void)n;
    span at = call_at(call);
    if (v_is_scalar(&arg[0]))
        return eval_op(ev, OP_ABS, &arg[0], NULL, NULL, at);
    if (!is_vector(&arg[0]))
        return arg_error(ev, at, "norm", "a vector", &arg[0]);
    value s = v_num(0);
    for (int32_t k = 0; k < v_count(&arg[0]); k++) {
        value x = v_element(&arg[0], k), p = eval_op(ev, OP_SQR, &x, NULL, NULL, at);
        s = k ? add(ev, &s, &p, at) : p;
    }
    return eval_op(ev, OP_SQRT, &s, NULL, NULL, at);
}

static value b_perp(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    (void)n;
    if (!is_vector(&arg[0]) || arg[0].num.n[0] != 2)
        return arg_error(ev, call_at(call), "perp", "a vector of 2 numbers", &arg[0]);
    value out = v_vector(ev->a, 2), x = v_element(&arg[0], 0), y = v_element(&arg[0], 1);
    y = eval_op(ev, OP_NEG, &y, NULL, NULL, call_at(call));
    out.num.unit = arg[0].num.unit;
    v_set(ev->a, &out, 0, &y);
    v_set(ev->a, &out, 1, &x);
    return out;
}

static value b_cross(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    (void)n;
    span at = call_at(call);
    for (int i = 0; i < 2; i++)
        if (!is_vector(&arg[i]) || (arg[i].num.n[0] != 3 && arg[i].num.n[0] != 2) ||
            arg[i].num.n[0] != arg[0].num.n[0])
            return arg_error(ev, at, "cross", "two vectors of 2 or of 3 numbers", &arg[i]);
    bool plane = arg[0].num.n[0] == 2;
    value out = v_vector(ev->a, 3);
    for (int k = plane ? 2 : 0; k < 3; k++) {
        int i = (k + 1) % 3, j = (k + 2) % 3;
        value a = v_element(&arg[0], i), b = v_element(&arg[1], j), c = v_element(&arg[0], j),
              d = v_element(&arg[1], i);
        value p = mul(ev, &a, &b, at), q = mul(ev, &c, &d, at), r = eval_op(ev, OP_SUB, &p, &q, NULL, at);
        if (r.kind == V_ERROR || plane)
            return r;
        out.num.unit = r.num.unit;
        v_set(ev->a, &out, k, &r);
    }
    return out;
}

static value b_transpose(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    (void)n;
    if (arg[0].kind != V_NUM || arg[0].num.rank != 2)
        return arg_error(ev, call_at(call), "transpose", "a matrix", &arg[0]);
    int32_t rows = arg[0].num.n[0], cols = arg[0].num.n[1];
    value out = v_matrix(ev->a, cols, rows);
    out.num.unit = arg[0].num.unit;
    for (int32_t i = 0; i < rows; i++)
        for (int32_t j = 0; j < cols; j++) {
            arena_tick(ev->a, 16);
            value x = v_element(&arg[0], i * cols + j);
            v_set(ev->a, &out, j * rows + i, &x);
        }
    return out;
}

enum { MAX_SIDE = 4096 };
static bool side(evaluator *ev, const ast *call, const value *v, const char *fn, int32_t max, int32_t *n)
{
    double k;
    int64_t whole;
    if (!v_scalar(v, &k) || k != floor(k) || k < 1) {
        diag_error(ev->d, DIAG_TYPE, call_at(call),
                   "'%s' takes a positive whole number that is known before the run", fn);
        return false;
    }
    if (!whole_number(k, 1, max, &whole)) {
        diag_error(ev->d, DIAG_LIMIT, call_at(call), "'%s' allows at most %d elements a side", fn, max);
        return false;
    }
    *n = (int32_t)whole;
    return true;
}

static value b_eye(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    (void)n;
    int32_t k;
    if (!side(ev, call, &arg[0], "eye", MAX_SIDE, &k))
        return v_error();
    value out = v_matrix(ev->a, k, k);
    for (int32_t i = 0; i < k; i++)
        out.num.d[i * k + i] = 1;
    return out;
}

static value b_zeros(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    int32_t r, c;
    if (!side(ev, call, &arg[0], "zeros", n == 2 ? MAX_SIDE : 10000000, &r))
        return v_error();
    if (n == 1)
        return v_vector(ev->a, r);
    if (!side(ev, call, &arg[1], "zeros", MAX_SIDE, &c))
        return v_error();
    return v_matrix(ev->a, r, c);
}

static value b_diag(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    value list = arg[0];
    if (!(n == 1 && is_vector(&arg[0]))) {
        list = v_vector(ev->a, (int32_t)n);
        for (size_t i = 0; i < n; i++) {
            if (!v_is_scalar(&arg[i]))
                return arg_error(ev, call_at(call), "diag", "numbers, or one vector", &arg[i]);
            v_set(ev->a, &list, (int32_t)i, &arg[i]);
        }
    }
    int32_t k = list.num.n[0];
    if (k > MAX_SIDE) {
        diag_error(ev->d, DIAG_LIMIT, call_at(call), "'diag' allows at most %d elements a side", MAX_SIDE);
        return v_error();
    }
    value out = v_matrix(ev->a, k, k);
    for (int32_t i = 0; i < k; i++) {
        value x = v_element(&list, i);
        v_set(ev->a, &out, i * k + i, &x);
    }
    return out;
}

/* rotation about axis k (0, 1, 2) */
static value rotation(evaluator *ev, const ast *call, const value *arg, int axis)
{
    span at = call_at(call);
    value c = eval_op(ev, OP_COS, &arg[0], NULL, NULL, at), s = eval_op(ev, OP_SIN, &arg[0], NULL, NULL, at);
    if (c.kind == V_ERROR || s.kind == V_ERROR)
        return v_error();
    if (!v_is_scalar(&c))
        return arg_error(ev, at, "rot", "an angle", &arg[0]);
    value ms = eval_op(ev, OP_NEG, &s, NULL, NULL, at), one = v_num(1), out = v_matrix(ev->a, 3, 3);
    int i = (axis + 1) % 3, j = (axis + 2) % 3;
    v_set(ev->a, &out, axis * 3 + axis, &one);
    v_set(ev->a, &out, i * 3 + i, &c);
    v_set(ev->a, &out, j * 3 + j, &c);
    v_set(ev->a, &out, i * 3 + j, &ms);
    v_set(ev->a, &out, j * 3 + i, &s);
    return out;
}
static value b_rot_x(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    (void)n;
    return rotation(ev, call, arg, 0);
}
static value b_rot_y(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    (void)n;
    return rotation(ev, call, arg, 1);
}
static value b_rot_z(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    (void)n;
    return rotation(ev, call, arg, 2);
}

static value b_linspace(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    (void)n;
    int32_t k;
    if (!v_is_scalar(&arg[0]) || !v_is_scalar(&arg[1]))
        return arg_error(ev, call_at(call), "linspace", "two numbers and a count",
                         &arg[v_is_scalar(&arg[0])]);
    if (!side(ev, call, &arg[2], "linspace", 10000000, &k))
        return v_error();
    if (!eval_same_unit(ev, arg[0].num.unit, arg[1].num.unit, "the ends have different dimensions",
                        call_at(call)))
        return v_error();
    value out = v_vector(ev->a, k);
    out.num.unit = arg[0].num.unit.any ? arg[1].num.unit : arg[0].num.unit;
    for (int32_t i = 0; i < k; i++) {
        /* a*(1 - w) + b*w meets both ends exactly */
        value w = v_num(k > 1 ? (double)i / (k - 1) : 0), u = v_num(1 - w.num.d0);
        value x = mul(ev, &arg[0], &u, call_at(call)), y = mul(ev, &arg[1], &w, call_at(call)),
              s = add(ev, &x, &y, call_at(call));
        v_set(ev->a, &out, i, &s);
    }
    return out;
}

static value b_sum(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    (void)n;
    span at = call_at(call);
    if (arg[0].kind == V_LIST) {
        value s = arg[0].list.n ? arg[0].list.at[0] : v_num(0);
        for (size_t i = 1; i < arg[0].list.n; i++)
            s = add(ev, &s, &arg[0].list.at[i], at);
        return s;
    }
    if (arg[0].kind == V_SERIES) {
        double s = 0;
        for (int64_t i = 0; i < arg[0].series.n; i++)
            s += arg[0].series.y[i * arg[0].series.stride];
        return v_num(s);
    }
    if (arg[0].kind != V_NUM)
        return arg_error(ev, at, "sum", "a generator or a vector", &arg[0]);
    value s = v_num_unit(0, arg[0].num.unit);
    for (int32_t k = 0; k < v_count(&arg[0]); k++) {
        value x = v_element(&arg[0], k);
        s = k ? add(ev, &s, &x, at) : x;
    }
    return s;
}

static value b_product(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    (void)n;
    if (!is_vector(&arg[0]))
        return arg_error(ev, call_at(call), "product", "a generator or a vector", &arg[0]);
    value s = v_num(1);
    for (int32_t k = 0; k < v_count(&arg[0]); k++) {
        value x = v_element(&arg[0], k);
        s = k ? mul(ev, &s, &x, call_at(call)) : x;
    }
    return s;
}

/* the extreme of the arguments, of a vector's elements or of a series */
static value extreme(evaluator *ev, const ast *call, op_code op, const value *arg, size_t n)
{
    span at = call_at(call);
    if (n == 1 && arg[0].kind == V_SERIES) {
        double m = NAN;
        for (int64_t i = 0; i < arg[0].series.n; i++)
            m = op_value(op, m, arg[0].series.y[i * arg[0].series.stride], 0);
        return v_num_unit(m, arg[0].series.unit);
    }
    value best = v_num(0);
    bool first = true;
    for (size_t i = 0; i < n; i++) {
        if (arg[i].kind == V_SERIES && n > 1) {
            value r = arg[0];
            for (size_t k = 1; k < n; k++)
                r = eval_op(ev, op, &r, &arg[k], NULL, at);
            return r;
        }
        if (arg[i].kind != V_NUM)
            return arg_error(ev, at, op_name(op), "numbers", &arg[i]);
        for (int32_t k = 0; k < v_count(&arg[i]); k++) {
            value x = v_element(&arg[i], k);
            best = first ? x : eval_op(ev, op, &best, &x, NULL, at);
            first = false;
        }
    }
    if (!first)
        return best;
    diag_error(ev->d, DIAG_TYPE, at, "'%s' of nothing", op_name(op));
    return v_error();
}
static value b_min(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    return extreme(ev, call, OP_MIN, arg, n);
}
static value b_max(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    return extreme(ev, call, OP_MAX, arg, n);
}

static value b_log10(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    (void)n;
    double x;
    if (v_scalar(&arg[0], &x))
        return v_num(log10(x));
    value l = eval_op(ev, OP_LOG, &arg[0], NULL, NULL, call_at(call)), k = v_num(2.302585092994045684);
    return eval_op(ev, OP_DIV, &l, &k, NULL, call_at(call));
}

/* ---- derivatives ---- */

static bool on_coordinate(const ir_input *in, void *ud)
{
    (void)ud;
    return in->kind == IN_COORD;
}

static bool of_kind(const ir_input *in, void *ud)
{
    return in->kind == *(const in_kind *)ud;
}

/* does it contain a derivative of a field with a coefficient that has cases in the coordinates? */
static bool has_cases(evaluator *ev, ir_ref flux)
{
    ir_ref *in;
    size_t n = ir_inputs(ev->g, ev->a, &flux, 1, &in);
    for (size_t k = 0; k < n; k++) {
        const ir_input *x = ir_input_of(ev->g, in[k]);
        if (x->kind != IN_FIELD || x->at.stride[0] + x->at.stride[1] == 0)
            continue;
        ir_ref c = ir_derive(ev->g, flux, in[k]);
        bool cases = false;
        ir_walk *w = ir_walk_begin(ev->g, &c, 1, 1, WALK_ALL);
        for (size_t j = 0; j < w->n && !cases; j++) {
            const ir_node *y = ir_at(ev->g, w->order[j]);
            cases = y->op == OP_SELECT && ir_depends(ev->g, y->a, on_coordinate, NULL);
        }
        ir_walk_end(ev->g, w);
        if (cases)
            return true;
    }
    return false;
}

/* the derivative of a flux with respect to a coordinate, written out; where its coefficient jumps this is
 * incomplete, so the flux is kept */
static ir_ref flux_derivative(evaluator *ev, ir_ref flux, int coord, span at)
{
    ir_ref d = ir_space_derivative(ev->g, flux, coord);
    model *m = ev->model;
    if (!m || !has_cases(ev, flux))
        return d;
    for (size_t k = 0; k < m->fluxes.n; k++)
        if (m->fluxes.at[k].flux == flux && m->fluxes.at[k].coord == coord)
            return d;
    *vec_push(m->a, &m->fluxes) = (mflux){ flux, d, coord, at };
    return d;
}

/* A derivative of a solved field in the plane: the coordinate is given by name. */
static bool object_member(evaluator *ev, const value *v, sym name, span at, value *out)
{
    /* fields alone are called and have no parts */
    if (v->kind != V_OBJECT || !v->object.in->call || v->object.in->subscript)
        return false;
    return v->object.in->find(v->object.in, ev, name, at, out) == LOOK_YES;
}

/* terms without such a derivative count as constant below: here they are refused instead */
static bool derivable(evaluator *ev, const value *y, in_kind by, span at)
{
    static const struct {
        in_kind kind;
        bool in_time_alone;
        const char *why;
    } stops[] = {
        { IN_FIELD, true, "fields in time are not supported yet" },
        { IN_A, true, "second derivatives have no further derivative in time" },
        { IN_PAST_V, true, "past rates have no derivative in time" },
        { IN_PRE, true, "'pre' has no derivative in time" },
        { IN_INTEGRAL, false, "an integral over the past has no derivative here" },
        { IN_SET, false, "a set has no derivative" },
        { IN_ROD, false, "quantities of a rod have no derivative here" },
        { IN_SPEED, true, "the slip speed has no derivative in time" },
    };
    for (int32_t k = 0; k < v_count(y); k++) {
        value e = v_element(y, k);
        for (size_t i = 0; e.num.r0 && i < sizeof stops / sizeof *stops; i++) {
            in_kind kind = stops[i].kind;
            if ((stops[i].in_time_alone && by != IN_TIME) || !ir_depends(ev->g, e.num.r0, of_kind, &kind))
                continue;
            diag *d = diag_error(ev->d, DIAG_NOT_SUPPORTED, at, "%s", stops[i].why);
            if (kind == IN_FIELD)
                diag_hint(ev->d, d, "a field is static: its derivatives are those in its coordinates");
            return false;
        }
    }
    return true;
}

/* d(expr, name): total in t and in coordinates, partial in a dof, a rate or a parameter */
static value b_d(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)arg;
    (void)n;
    value y = eval(ev, in, call->kid[1]), own;
    if (call->kid[2]->kind == AST_NAME && object_member(ev, &y, call->kid[2]->name, call->at, &own))
        return own;
    value x = eval(ev, in, call->kid[2]);
    if (y.kind == V_ERROR || x.kind == V_ERROR)
        return v_error();
    const ir_input *by = v_is_scalar(&x) && x.num.r0 && ev->g ? ir_input_of(ev->g, x.num.r0) : NULL;
    if (!by || y.kind != V_NUM) {
        diag *e = diag_error(
            ev->d, DIAG_TYPE, call->kid[by ? 1 : 2]->at,
            by ? "'d' differentiates numbers and vectors"
               : "'d' differentiates by t, a coordinate, a degree of freedom, a rate or a parameter");
        if (!ev->g)
            diag_hint(ev->d, e, "formulas are differentiated inside a model");
        return v_error();
    }
    if (!derivable(ev, &y, by->kind, call->at))
        return v_error();
    value out = y.num.rank == 0   ? v_num(0)
                : y.num.rank == 1 ? v_vector(ev->a, y.num.n[0])
                                  : v_matrix(ev->a, y.num.n[0], y.num.n[1]);
    dim s = dim_none();
    s.e[2] = DIM_ONE;
    dim u = dim_div(y.num.unit, by->kind == IN_TIME ? s : x.num.unit);
    ir_ref byref = x.num.r0;
    in_kind kind = by->kind;
    int coordinate = by->at.base;
    out.num.unit = u;
    for (int32_t k = 0; k < v_count(&y); k++) {
        value e = v_element(&y, k), r = v_num_unit(0, u);
        if (e.num.r0) {
            ir_ref d = kind == IN_TIME    ? ir_time_derivative(ev->g, e.num.r0)
                       : kind == IN_COORD ? flux_derivative(ev, e.num.r0, coordinate, call->at)
                                          : ir_derive(ev->g, e.num.r0, byref);
            double c;
            r = ir_is_const(ev->g, d, &c) ? v_num_unit(c, u) : v_node(d, u);
        }
        v_set(ev->a, &out, k, &r);
    }
    return out;
}

static ir_ref before(ir *g, ir_ref input, void *ud)
{
    ir_input in = *ir_input_of(g, input);
    (void)ud;
    if (in.kind != IN_V)
        return IR_NONE;
    in.kind = IN_PRE;
    return ir_in(g, in);
}

static bool is_rate(const ir_input *in, void *ud)
{
    (void)ud;
    return in->kind == IN_V;
}

/* neither a position, which equals its left limit, nor something that jumps with other rates */
static bool not_of_rates(const ir_input *in, void *ud)
{
    (void)ud;
    return in->kind != IN_V && in->kind != IN_Q && in->kind != IN_BASE;
}

/* Rates, and the angular velocity of a rotation, a formula of rates and positions. */
static value b_pre(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    (void)n;
    value out = arg[0];
    if (out.kind == V_NUM && out.num.rank) {
        out = v_vector(ev->a, v_count(&arg[0]));
        out.num.unit = arg[0].num.unit;
    }
    for (int32_t k = 0; out.kind == V_NUM && arg[0].num.rank < 2 && k < v_count(&out); k++) {
        value x = v_element(&arg[0], k);
        if (!x.num.r0 || !ev->g || !ir_depends(ev->g, x.num.r0, is_rate, NULL) ||
            ir_depends(ev->g, x.num.r0, not_of_rates, NULL))
            break;
        value y = v_node(ir_substitute(ev->g, x.num.r0, before, NULL), x.num.unit);
        v_set(ev->a, &out, k, &y);
        if (k + 1 == v_count(&out))
            return out;
    }
    diag_error(ev->d, DIAG_TYPE, call_at(call), "'pre' takes the rate of a degree of freedom, as in pre(y')");
    return v_error();
}

static value space_d(evaluator *ev, const value *v, int c)
{
    if (!v->num.r0)
        return v_num(0);
    ir_ref d = ir_space_derivative(ev->g, v->num.r0, c);
    double k;
    return ir_is_const(ev->g, d, &k) ? v_num(k) : v_node(d, dim_any());
}

static bool in_space(evaluator *ev, const ast *call, const char *fn)
{
    const model *m = ev->model;
    if (m && m->coords.n)
        return true;
    diag *e = diag_error(ev->d, DIAG_TYPE, call_at(call), "'%s' needs a domain", fn);
    diag_hint(ev->d, e, "declare `domain x in 0..1` and `field u(x)`");
    return false;
}

static value laplace(evaluator *ev, const ast *call, const value *v)
{
    const model *m = ev->model;
    value s = v_num(0);
    for (size_t c = 0; c < m->coords.n; c++) {
        value d = space_d(ev, v, (int)c), dd = space_d(ev, &d, (int)c);
        s = add(ev, &s, &dd, call_at(call));
    }
    return s;
}

static value b_laplacian(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    (void)n;
    value own;
    if (object_member(ev, &arg[0], sym_str(ev->names, "laplacian"), call->at, &own))
        return own;
    if (!in_space(ev, call, "laplacian"))
        return v_error();
    if (!v_is_scalar(&arg[0]))
        return arg_error(ev, call_at(call), "laplacian", "a field", &arg[0]);
    return laplace(ev, call, &arg[0]);
}

static value b_bilaplacian(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    (void)n;
    if (!in_space(ev, call, "bilaplacian"))
        return v_error();
    if (!v_is_scalar(&arg[0]))
        return arg_error(ev, call_at(call), "bilaplacian", "a field", &arg[0]);
    value l = laplace(ev, call, &arg[0]);
    return laplace(ev, call, &l);
}

static value b_grad(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    (void)n;
    const model *m = ev->model;
    value own;
    if (object_member(ev, &arg[0], sym_str(ev->names, "grad"), call->at, &own))
        return own;
    if (!in_space(ev, call, "grad"))
        return v_error();
    if (!v_is_scalar(&arg[0]))
        return arg_error(ev, call_at(call), "grad", "a field", &arg[0]);
    value out = v_vector(ev->a, (int32_t)m->coords.n);
    for (size_t c = 0; c < m->coords.n; c++) {
        value d = space_d(ev, &arg[0], (int)c);
        v_set(ev->a, &out, (int32_t)c, &d);
    }
    return out;
}

static value b_div(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    (void)n;
    const model *m = ev->model;
    if (!in_space(ev, call, "div"))
        return v_error();
    if (!is_vector(&arg[0]) || (size_t)arg[0].num.n[0] != m->coords.n)
        return arg_error(ev, call_at(call), "div", "a vector with one component for each coordinate",
                         &arg[0]);
    value s = v_num(0);
    for (size_t c = 0; c < m->coords.n; c++) {
        value x = v_element(&arg[0], (int32_t)c);
        double known;
        ir_ref r = x.num.r0 ? flux_derivative(ev, x.num.r0, (int)c, call_at(call)) : IR_NONE;
        value d = !r ? v_num(0) : ir_is_const(ev->g, r, &known) ? v_num(known) : v_node(r, dim_any());
        s = add(ev, &s, &d, call_at(call));
    }
    return s;
}

/* ---- integrals ---- */

/* panels: that may still be halved */
typedef struct {
    const ir *g;
    ir_ref f;
    arena *scratch;
    int panels;
} integrand;
enum { MAX_PANELS = 20000 };
static double bound_input(const ir_input *in, void *ud)
{
    return in->kind == IN_BOUND ? *(double *)ud : NAN;
}
static double integrand_at(const integrand *f, double s)
{
    arena_pos mark = arena_mark(f->scratch);
    double y = ir_value(f->g, f->scratch, f->f, bound_input, &s);
    arena_release(f->scratch, mark);
    return y;
}

/* Gauss-Kronrod 7-15 on [a, b], halved until the two rules agree */
static double quadrature(integrand *f, double a, double b, double tol, int depth)
{
    static const double x[8] = { 0.991455371120812639206854697526329, 0.949107912342758524526189684047851,
                                 0.864864423359769072789712788640926, 0.741531185599394439863864773280788,
                                 0.586087235467691130294144691693013, 0.405845151377397166906606412076961,
                                 0.207784955007898467600689403773245, 0 };
    static const double wk[8] = { 0.022935322010529224963732008058970, 0.063092092629978553290700663189204,
                                  0.104790010322250183839876322541518, 0.140653259715525918745189590510238,
                                  0.169004726639267902826583426598550, 0.190350578064785409913256402421014,
                                  0.204432940075298892414161999234649, 0.209482141084727828012999174891714 };
    static const double wg[4] = { 0.129484966168869693270611432679082, 0.279705391489276667901467771423780,
                                  0.381830050505118944950369775488975, 0.417959183673469387755102040816327 };
    double c = (a + b) / 2, h = (b - a) / 2, k = 0, g = 0, size = 0;
    for (int i = 0; i < 8; i++) {
        double y = integrand_at(f, c - h * x[i]), z = i == 7 ? 0 : integrand_at(f, c + h * x[i]);
        k += wk[i] * (y + z);
        size += wk[i] * (fabs(y) + fabs(z));
        if (i % 2)
            g += wg[i / 2] * (y + z);
    }
    /* a difference of the size of rounding ends the halving */
    if (depth == 0 || !(fabs(k - g) * fabs(h) > tol) || !(fabs(k - g) > QUADRATURE_ROUNDED * size) ||
        f->panels == 0)
        return k * h;
    f->panels--;
    return quadrature(f, a, c, tol / 2, depth - 1) + quadrature(f, c, b, tol / 2, depth - 1);
}

static bool other_than_bound(const ir_input *in, void *ud)
{
    return in->kind != IN_BOUND || in->at.base != *(int *)ud;
}

/* integral(f(s) for s in a..b): a number if nothing else is unknown, otherwise an integral of the model */
static value b_integral(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)arg;
    (void)n;
    const ast *gen = call->kid[1];
    if (gen->kind != AST_GEN || gen->n != 3 || gen->kid[2]) {
        diag *e = diag_error(ev->d, DIAG_ARITY, call->at, "'integral' takes an expression and one range");
        diag_hint(ev->d, e, "integral(exp(s)*x(t + s) for s in -tau..0)");
        return v_error();
    }
    value r = eval(ev, in, gen->kid[1]->kid[0]);
    if (r.kind == V_ERROR)
        return r;
    if (r.kind != V_RANGE)
        return arg_error(ev, gen->kid[1]->at, "integral", "a range a..b", &r);
    ir *g = ev->g ? ev->g : ir_new(ev->a), *old = ev->g;
    model *m = ev->model;
    int bound = m ? m->nbound++ : ev->bounds++;
    table_scope *s = table_scope_new(ev->a, in);
    table_scope_set(s, gen->kid[1]->name,
                    v_node(ir_in(g, (ir_input){ .kind = IN_BOUND, .at.base = bound }), r.range.lo->num.unit));
    ev->g = g;
    value f;
    bool ok = eval_scalar(ev, &s->base, gen->kid[0], "the integrand", &f);
    ev->g = old;
    if (!ok)
        return v_error();
    dim u = dim_mul(f.num.unit, r.range.lo->num.unit);
    double lo, hi;
    ir_ref fr = v_ref(g, &f);
    if (v_scalar(r.range.lo, &lo) && v_scalar(r.range.hi, &hi) &&
        !ir_depends(g, fr, other_than_bound, &bound)) {
        if (!isfinite(lo) || !isfinite(hi)) {
            diag *e = diag_error(ev->d, DIAG_INDEX_RANGE, gen->kid[1]->kid[0]->at,
                                 "the ends of an integral must be finite");
            diag_hint(ev->d, e, "cut off the tail where it is negligible, or substitute s = x/(1 - x)");
            return v_error();
        }
        integrand q = { g, fr, ev->a, MAX_PANELS };
        double sum = quadrature(&q, lo, hi, QUADRATURE_END, 40);
        if (q.panels == 0) {
            diag *e = diag_error(ev->d, DIAG_LIMIT, call->at,
                                 "this integral does not converge: too many subdivisions");
            diag_hint(ev->d, e, "look for ends that are far away, poles, or very fast oscillations");
            return v_error();
        }
        return v_num_unit(sum, u);
    }
    if (!m) {
        diag_error(ev->d, DIAG_NOT_CONSTANT, call->at, "this integral contains unknowns");
        return v_error();
    }
    *vec_push(ev->a, &m->integrals) = (mintegral){ v_ref(g, r.range.lo), v_ref(g, r.range.hi), fr, bound,
                                                   call->at };
    return v_node(ir_in(g, (ir_input){ .kind = IN_INTEGRAL, .at.base = (int32_t)m->integrals.n - 1 }), u);
}

/* ---- set-valued terms ---- */

static bool in_inclusion(evaluator *ev, const ast *call, const char *fn)
{
    if (ev->model && ev->inclusion)
        return true;
    diag *e = diag_error(ev->d, DIAG_TYPE, call_at(call),
                         "'%s' is a set; sets are allowed only to the right of `in` in a model", fn);
    if (ev->g)
        diag_hint(ev->d, e, "write an inclusion: x' in -%s(…)", fn);
    return false;
}

static value selection(evaluator *ev, const ast *call, set_kind kind, value of, const value *x)
{
    model *m = ev->model;
    int32_t n = v_count(x);
    mset s = { .kind = kind,
               .of = of,
               .arg = arena_array(ev->a, ir_ref, n),
               .narg = n,
               .first = m->nset,
               .at = call_at(call) };
    value out = x->num.rank ? v_vector(ev->a, n) : v_num(0);
    for (int32_t k = 0; k < n; k++) {
        value e = v_element(x, k);
        s.arg[k] = v_ref(ev->g, &e);
        value y = v_node(ir_in(ev->g, (ir_input){ .kind = IN_SET, .at.base = m->nset + k }), dim_any());
        v_set(ev->a, &out, k, &y);
    }
    m->nset += n;
    *vec_push(ev->a, &m->sets) = s;
    return out;
}

static value b_Sgn(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    (void)n;
    if (!in_inclusion(ev, call, "Sgn"))
        return v_error();
    if (!v_is_scalar(&arg[0]))
        return arg_error(ev, call_at(call), "Sgn", "a number", &arg[0]);
    return selection(ev, call, SET_SGN, v_num(0), &arg[0]);
}

/* interval(a, b) is (a + b)/2 + (b - a)/2 times a selection from [-1, 1], which the row determines */
static value b_interval(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    (void)n;
    if (!in_inclusion(ev, call, "interval"))
        return v_error();
    for (int k = 0; k < 2; k++)
        if (!v_is_scalar(&arg[k]))
            return arg_error(ev, call_at(call), "interval", "two numbers", &arg[k]);
    double a, b;
    if (v_scalar(&arg[0], &a) && v_scalar(&arg[1], &b) && a > b) {
        diag_error(ev->d, DIAG_INDEX_RANGE, call_at(call), "the interval from %g to %g is empty", a, b);
        return v_error();
    }
    value zero = v_num(0), half = v_num(0.5), s = selection(ev, call, SET_INTERVAL, zero, &zero);
    value sum = eval_op(ev, OP_ADD, &arg[0], &arg[1], NULL, call_at(call)),
          wide = eval_op(ev, OP_SUB, &arg[1], &arg[0], NULL, call_at(call));
    value part = eval_op(ev, OP_MUL, &wide, &s, NULL, call_at(call)),
          all = eval_op(ev, OP_ADD, &sum, &part, NULL, call_at(call));
    return eval_op(ev, OP_MUL, &half, &all, NULL, call_at(call));
}

/* a set that is given by a centre or a corner has the size of the point */
static bool point_fits(evaluator *ev, const ast *call, const value *set, int32_t n)
{
    if (!strcmp(set->set.kind, "sublevel"))
        return true;
    if (!strcmp(set->set.kind, "intersection")) {
        for (size_t i = 0; i < set->set.n; i++)
            if (set->set.arg[i].kind == V_SET && !point_fits(ev, call, &set->set.arg[i], n))
                return false;
        return true;
    }
    const value *c = set->set.n ? &set->set.arg[0] : NULL;
    if (!c || c->kind != V_NUM || c->num.rank > 1 || v_count(c) == n)
        return true;
    diag_error(ev->d, DIAG_SHAPE, call_at(call),
               "the set lies in a space of %d dimensions, the point in one of %d", v_count(c), n);
    return false;
}

static value b_normal_cone(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    (void)n;
    if (!in_inclusion(ev, call, "normal_cone"))
        return v_error();
    if (arg[0].kind != V_SET)
        return arg_error(ev, call_at(call), "normal_cone", "a set (ball, box, halfspace, …) and a point",
                         &arg[0]);
    if (arg[1].kind != V_NUM || arg[1].num.rank > 1)
        return arg_error(ev, call_at(call), "normal_cone", "a point as second argument", &arg[1]);
    if (!point_fits(ev, call, &arg[0], v_count(&arg[1])))
        return v_error();
    return selection(ev, call, SET_NORMAL_CONE, arg[0], &arg[1]);
}

/* subdiff(abs(v)) is Sgn(v) */
static value b_subdiff(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)arg;
    (void)n;
    if (!in_inclusion(ev, call, "subdiff"))
        return v_error();
    const ast *f = call->kid[1];
    if (f->kind == AST_CALL && f->n == 2 && f->kid[0]->kind == AST_NAME && !strcmp(f->kid[0]->name, "abs")) {
        value x = eval(ev, in, f->kid[1]);
        return x.kind == V_ERROR ? x : b_Sgn(ev, in, call, &x, 1);
    }
    diag *e = diag_error(ev->d, DIAG_NOT_SUPPORTED, f->at, "only the subdifferential of abs(…) is supported");
    diag_hint(ev->d, e, "write it as a sum of subdiff(abs(x)) and smooth terms, or as normal_cone(C, x)");
    return v_error();
}

static value set_value(evaluator *ev, const char *kind, const value *arg, size_t n)
{
    value v = { .kind = V_SET };
    v.set.kind = kind;
    v.set.arg = arena_array(ev->a, value, n);
    memcpy(v.set.arg, arg, n * sizeof *arg);
    v.set.n = n;
    return v;
}
#define SET_BUILTIN(name)                                                                        \
    static value b_##name(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n) \
    {                                                                                            \
        (void)in;                                                                                \
        (void)call;                                                                              \
        return set_value(ev, #name, arg, n);                                                     \
    }
SET_BUILTIN(ball)
SET_BUILTIN(box)
SET_BUILTIN(halfspace)
SET_BUILTIN(capsule)
SET_BUILTIN(cylinder)
SET_BUILTIN(hull)
SET_BUILTIN(polyhedron)
SET_BUILTIN(ellipsoid)
SET_BUILTIN(intersection)
SET_BUILTIN(sublevel)

static value b_zip(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    int32_t len = -1;
    for (size_t i = 0; i < n; i++) {
        if (!is_vector(&arg[i]))
            return arg_error(ev, call_at(call), "zip", "vectors", &arg[i]);
        if (len >= 0 && arg[i].num.n[0] != len) {
            diag_error(ev->d, DIAG_SHAPE, call_at(call),
                       "'zip' takes vectors of the same size, not %d and %d", len, arg[i].num.n[0]);
            return v_error();
        }
        len = arg[i].num.n[0];
    }
    value out = { .kind = V_LIST };
    out.list.n = (size_t)len;
    out.list.at = arena_array(ev->a, value, len > 0 ? len : 1);
    for (int32_t k = 0; k < len; k++) {
        out.list.at[k] = v_vector(ev->a, (int32_t)n);
        for (size_t i = 0; i < n; i++) {
            value x = v_element(&arg[i], k);
            v_set(ev->a, &out.list.at[k], (int32_t)i, &x);
        }
    }
    return out;
}

const builtin builtin_list[] = {
    { "norm", 1, 1, b_norm, false, "norm(x)", "length of a vector" },
    { "dot", 2, 2, b_dot, false, "dot(x, y)", "inner product" },
    { "cross", 2, 2, b_cross, false, "cross(x, y)",
      "vector product; of two plane vectors, the number x[1]*y[2] - x[2]*y[1]" },
    { "perp", 1, 1, b_perp, false, "perp([a, b])", "[-b, a]: the vector turned by a right angle" },
    { "transpose", 1, 1, b_transpose, false, "transpose(A)", "rows and columns exchanged" },
    { "eye", 1, 1, b_eye, false, "eye(n)", "identity matrix" },
    { "zeros", 1, 2, b_zeros, false, "zeros(n), zeros(m, n)", "vector or matrix of zeros" },
    { "diag", 1, -1, b_diag, false, "diag(a, b, …), diag(x)", "diagonal matrix" },
    { "rot_x", 1, 1, b_rot_x, false, "rot_x(a)", "rotation about the first axis" },
    { "rot_y", 1, 1, b_rot_y, false, "rot_y(a)", "rotation about the second axis" },
    { "rot_z", 1, 1, b_rot_z, false, "rot_z(a)", "rotation about the third axis" },
    { "linspace", 3, 3, b_linspace, false, "linspace(a, b, n)", "n numbers from a to b, equally spaced" },
    { "sum", 1, 1, b_sum, false, "sum(f(i) for i in 1..n), sum(x)", "sum of the terms" },
    { "product", 1, 1, b_product, false, "product(f(i) for i in 1..n)", "product of the terms" },
    { "min", 1, -1, b_min, false, "min(a, b, …), min(x)",
      "smallest of the numbers, of a vector or of a series" },
    { "max", 1, -1, b_max, false, "max(a, b, …), max(x)",
      "largest of the numbers, of a vector or of a series" },
    { "log10", 1, 1, b_log10, false, "log10(x)", "decimal logarithm" },
    { "integral", 1, 1, b_integral, true, "integral(f(s) for s in a..b)",
      "definite integral; past values under it make a distributed delay" },
    { "d", 2, 2, b_d, true, "d(expr, name)",
      "derivative: total in t and in coordinates, partial in anything else" },
    { "pre", 1, 1, b_pre, false, "pre(y')", "left limit of a rate" },
    { "laplacian", 1, 1, b_laplacian, false, "laplacian(u)", "sum of the second derivatives of a field" },
    { "bilaplacian", 1, 1, b_bilaplacian, false, "bilaplacian(u)", "laplacian of the laplacian" },
    { "grad", 1, 1, b_grad, false, "grad(u)", "vector of the first derivatives of a field" },
    { "div", 1, 1, b_div, false, "div(v)", "divergence of a vector of fields" },
    { "Sgn", 1, 1, b_Sgn, false, "Sgn(v)", "sign as a set: Sgn(0) = [-1, 1]" },
    { "normal_cone", 2, 2, b_normal_cone, false, "normal_cone(C, x)", "outward normals of the set C at x" },
    { "interval", 2, 2, b_interval, false, "interval(a, b)",
      "all numbers from a to b; the motion takes the one with the smallest rate" },
    { "subdiff", 1, 1, b_subdiff, true, "subdiff(abs(v))", "subdifferential" },
    { "ball", 2, 2, b_ball, false, "ball(centre, radius)", "closed ball" },
    { "box", 2, 2, b_box, false, "box(lo, hi)", "points between two corners" },
    { "capsule", 3, 3, b_capsule, false, "capsule(a, b, radius)", "points near the segment from a to b" },
    { "hull", 1, 1, b_hull, false, "hull([[x, y, z], …])", "the convex hull of points" },
    { "cylinder", 3, 3, b_cylinder, false, "cylinder(point, axis, radius)",
      "points of space near a line: an obstacle for rods; as a shape from point to point + axis" },
    { "halfspace", 2, 2, b_halfspace, false, "halfspace(n, c)", "points x with dot(n, x) <= c" },
    { "polyhedron", 2, 2, b_polyhedron, false, "polyhedron(A, b)", "points x with A*x <= b" },
    { "ellipsoid", 2, 2, b_ellipsoid, false, "ellipsoid(centre, A)",
      "points x with (x - centre).A (x - centre) <= 1" },
    { "sublevel", 1, -1, b_sublevel, false, "sublevel(g, …)",
      "points where every g is at most 0; convex or not" },
    { "intersection", 2, -1, b_intersection, false, "intersection(C, D, …)", "points in all of the sets" },
    { "zip", 1, -1, b_zip, false, "zip(x, y, …)", "vectors paired element by element, for paired sweeps" },
    { 0 },
};

const builtin op_builtin[] = {
#define X(id, name, arity, val, deriv, unit, doc) { name, arity, arity, NULL, false, NULL, doc },
#include "base/opcodes.def"
#undef X
};

const builtin *builtin_find(const char *name)
{
    for (const builtin *b = builtin_list; b->name; b++)
        if (!strcmp(b->name, name))
            return b;
    op_code op = op_find(name);
    bool word = (name[0] >= 'a' && name[0] <= 'z') && op != OP_NONE && op_unit_rule(op) != UNIT_BOOL &&
                op_unit_rule(op) != UNIT_SELECT && op != OP_SQR;
    return word ? &op_builtin[op] : NULL;
}

/* ---- the outermost scope ---- */

static look root_find(scope *s, evaluator *ev, sym name, span at, value *out)
{
    (void)s;
    (void)at;
    if (!strcmp(name, "pi"))
        *out = v_num(3.14159265358979323846);
    else if (!strcmp(name, "inf"))
        *out = v_num(INFINITY);
    else if (!strcmp(name, "t") && ev->g)
        *out = v_node(ir_in(ev->g, (ir_input){ .kind = IN_TIME }), dim_any());
    else {
        const builtin *b = builtin_find(name);
        if (!b)
            return LOOK_NO;
        *out = (value){ .kind = V_FN };
        out->fn.built = b;
    }
    return LOOK_YES;
}

static void root_names(scope *s, near *n)
{
    (void)s;
    near_try(n, "pi");
    near_try(n, "inf");
    near_try(n, "t");
    for (const builtin *b = builtin_list; b->name; b++)
        near_try(n, b->name);
    for (int op = 0; op < OP_COUNT; op++)
        if (builtin_find(op_name((op_code)op)))
            near_try(n, op_name((op_code)op));
}

scope *eval_root_scope(evaluator *ev)
{
    scope *s = arena_make(ev->a, scope);
    s->find = root_find;
    s->names = root_names;
    return s;
}
