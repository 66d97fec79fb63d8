/* eval_op: operations on values, with shapes and dimensions checked. */
#include "eval.h"
#include <math.h>
#include <string.h>

/* ---- units ---- */

static const char *dim_str(arena *a, dim d)
{
    text t = { .a = a };
    dim_text(&t, d);
    return t.at;
}

bool eval_same_unit(evaluator *ev, dim a, dim b, const char *what, span at)
{
    if (dim_equal(a, b))
        return true;
    diag_error(ev->d, DIAG_UNIT_MISMATCH, at, "%s: [%s] against [%s]", what, dim_str(ev->a, a),
               dim_str(ev->a, b));
    return false;
}

static bool no_unit(evaluator *ev, dim u, const char *fn, span at)
{
    if (dim_equal(u, dim_none()))
        return true;
    diag_error(ev->d, DIAG_UNIT_MISMATCH, at, "'%s' takes a number without dimension, not [%s]", fn,
               dim_str(ev->a, u));
    return false;
}

dim dim_known(dim a, dim b)
{
    return a.any ? b : a;
}

/* the dimension of op(a, b, c), by the row's unit rule; reports and gives false where they do not fit */
static bool op_dim(evaluator *ev, op_code op, const num *a, const num *b, const num *c, span at, dim *out)
{
    bool ok = true;
    *out = dim_none();
    switch (op_unit_rule(op)) {
    case UNIT_SAME:
        *out = b ? dim_known(a->unit, b->unit) : a->unit;
        return !b ||
               eval_same_unit(
                   ev, a->unit, b->unit,
                   arena_printf(ev->a, "the two sides of '%s' have different dimensions", op_name(op)), at);
    case UNIT_SAMEB:
        return eval_same_unit(ev, a->unit, b->unit,
                              "the two sides of the comparison have different dimensions", at);
    case UNIT_SELECT:
        *out = dim_known(b->unit, c->unit);
        return eval_same_unit(ev, b->unit, c->unit, "the alternatives have different dimensions", at);
    case UNIT_ANGLE:
        return eval_same_unit(ev, a->unit, b->unit, "the two arguments have different dimensions", at);
    case UNIT_MUL:
        *out = dim_mul(a->unit, b->unit);
        return true;
    case UNIT_DIV:
        *out = dim_div(a->unit, b->unit);
        return true;
    case UNIT_SQR:
        *out = dim_pow(a->unit, 2, &ok);
        return true;
    case UNIT_SQRT:
        *out = dim_pow(a->unit, 0.5, &ok);
        return true;
    case UNIT_POW:
        if (!no_unit(ev, b->unit, "^", at))
            return false;
        if (b->r0 == IR_NONE)
            *out = dim_pow(a->unit, b->d0, &ok);
        else if (a->unit.any)
            *out = dim_any();
        else if (!no_unit(ev, a->unit, "^ with an exponent that is not constant", at))
            return false;
        return true;
    case UNIT_NONE:
        *out = a->unit.any ? dim_any() : dim_none();
        return no_unit(ev, a->unit, op_name(op), at) && (!b || no_unit(ev, b->unit, op_name(op), at));
    case UNIT_ZERO:
    case UNIT_BOOL:
        return true;
    }
    return true;
}

/* ---- operations on values ---- */

static value shape_error(evaluator *ev, op_code op, const value *a, const value *b, span at)
{
    diag *e = diag_error(ev->d, DIAG_SHAPE, at, "'%s' does not fit %s and %s", op_name(op),
                         v_kind_text(ev->a, a), v_kind_text(ev->a, b));
    if (op == OP_MUL && a->kind == V_NUM && b->kind == V_NUM && a->num.rank == 1 && b->num.rank == 1)
        diag_hint(ev->d, e, "the inner product is dot(a, b)");
    else if ((op == OP_ADD || op == OP_SUB) && a->kind == V_NUM && b->kind == V_NUM &&
             a->num.rank + b->num.rank == 1)
        diag_hint(ev->d, e, "a number is not added to a vector: write it as a vector of the same size");
    return v_error();
}

static value type_error(evaluator *ev, op_code op, const value *a, span at)
{
    diag_error(ev->d, DIAG_TYPE, at, "'%s' does not apply to %s", op_name(op), v_kind_text(ev->a, a));
    return v_error();
}

/* one scalar operation on elements; symbolic as soon as one operand is */
static value op_scalar(evaluator *ev, op_code op, const value *a, const value *b, const value *c, dim u)
{
    bool symbolic = a->num.r0 || (b && b->num.r0) || (c && c->num.r0);
    if (!symbolic)
        return v_num_unit(op_value(op, a->num.d0, b ? b->num.d0 : 0, c ? c->num.d0 : 0), u);
    ir_ref r = ir_op(ev->g, op, v_ref(ev->g, a), b ? v_ref(ev->g, b) : IR_NONE,
                     c ? v_ref(ev->g, c) : IR_NONE);
    double k;
    return ir_is_const(ev->g, r, &k) ? v_num_unit(k, u) : v_node(r, u);
}

value eval_like(arena *a, const value *v)
{
    if (v->num.rank == 0)
        return v_num(0);
    return v->num.rank == 1 ? v_vector(a, v->num.n[0]) : v_matrix(a, v->num.n[0], v->num.n[1]);
}

static bool same_shape(const value *a, const value *b)
{
    return a->num.rank == b->num.rank && (a->num.rank < 1 || a->num.n[0] == b->num.n[0]) &&
           (a->num.rank < 2 || a->num.n[1] == b->num.n[1]);
}

/* element by element; scalars are repeated */
static value op_elements(evaluator *ev, op_code op, const value *a, const value *b, const value *c, dim u)
{
    const value *shape = a->num.rank ? a : b && b->num.rank ? b : c && c->num.rank ? c : a;
    value out = eval_like(ev->a, shape);
    out.num.unit = u;
    int32_t n = v_count(shape);
    for (int32_t k = 0; k < n; k++) {
        arena_tick(ev->a, 16);
        value x = v_element(a, k), y, z;
        if (b)
            y = v_element(b, k);
        if (c)
            z = v_element(c, k);
        value r = op_scalar(ev, op, &x, b ? &y : NULL, c ? &z : NULL, u);
        v_set(ev->a, &out, k, &r);
    }
    return out;
}

/* sums in the order of the elements of a row, as below */
static void product_of_numbers(arena *a, const num *x, const num *y, int32_t cols, double *out)
{
    int32_t rows = x->n[0], inner = x->n[1];
    for (int32_t i = 0; i < rows; i++) {
        double *row = out + (size_t)i * (size_t)cols;
        for (int32_t k = 0; k < inner; k++) {
            double factor = x->d[(size_t)i * (size_t)inner + (size_t)k];
            const double *from = y->d + (size_t)k * (size_t)cols;
            if (factor == 0)
                continue;
            arena_tick(a, cols);
            for (int32_t j = 0; j < cols; j++)
                row[j] += factor * from[j];
        }
    }
}

static value matrix_product(evaluator *ev, const value *a, const value *b, span at)
{
    int32_t rows = a->num.n[0], inner = a->num.n[1], cols = b->num.rank == 2 ? b->num.n[1] : 1;
    if (inner != b->num.n[0])
        return shape_error(ev, OP_MUL, a, b, at);
    value out = b->num.rank == 2 ? v_matrix(ev->a, rows, cols) : v_vector(ev->a, rows);
    dim u = dim_mul(a->num.unit, b->num.unit);
    out.num.unit = u;
    if (!a->num.r && !b->num.r) {
        product_of_numbers(ev->a, &a->num, &b->num, cols, out.num.d);
        return out;
    }
    for (int32_t i = 0; i < rows; i++)
        for (int32_t j = 0; j < cols; j++) {
            arena_tick(ev->a, (int64_t)inner * 16);
            value s = v_num_unit(0, u);
            for (int32_t k = 0; k < inner; k++) {
                value x = v_element(a, i * inner + k), y = v_element(b, k * cols + j);
                if (x.num.r0 == IR_NONE && x.num.d0 == 0)
                    continue;
                value p = op_scalar(ev, OP_MUL, &x, &y, NULL, u);
                s = op_scalar(ev, OP_ADD, &s, &p, NULL, u);
            }
            v_set(ev->a, &out, i * cols + j, &s);
        }
    return out;
}

/* series: sample by sample; a comparison holds when it holds at every sample */
static value op_series(evaluator *ev, op_code op, const value *a, const value *b, span at)
{
    const value *s = a->kind == V_SERIES ? a : b;
    int64_t n = s->series.n;
    const value *side[2] = { a, b };
    for (int i = 0; i < (b ? 2 : 1); i++) {
        double x;
        if (side[i]->kind == V_SERIES ? side[i]->series.n != n : !v_scalar(side[i], &x))
            return shape_error(ev, op, a, b ? b : a, at);
    }
    double *y = arena_array(ev->a, double, n ? n : 1);
    bool all = true;
    for (int64_t k = 0; k < n; k++) {
        if (k % 4096 == 0)
            arena_tick(ev->a, 4096 * 16);
        double x[2] = { 0, 0 };
        for (int i = 0; i < (b ? 2 : 1); i++)
            x[i] = side[i]->kind == V_SERIES ? side[i]->series.y[k * side[i]->series.stride]
                                             : side[i]->num.d0;
        y[k] = op_value(op, x[0], x[1], 0);
        all = all && y[k] != 0;
    }
    if (op_unit_rule(op) == UNIT_SAMEB)
        return v_bool(all);
    value out = { .kind = V_SERIES };
    out.series.t = s->series.t;
    out.series.y = y;
    out.series.n = n;
    out.series.stride = 1;
    out.series.unit = dim_any();
    return out;
}

/* was && or || reported within the place? */
static bool sign_reported(const diags *d, span at)
{
    for (size_t k = 0; k < d->list.n; k++) {
        const diag *e = &d->list.at[k];
        if (e->code == DIAG_LEXICAL && e->at.file == at.file && e->at.begin >= at.begin &&
            e->at.end <= at.end)
            return true;
    }
    return false;
}

static value op_truth(evaluator *ev, op_code op, const value *a, const value *b, span at)
{
    const value *bad = a->kind != V_BOOL ? a : b && b->kind != V_BOOL ? b : NULL;
    if (bad && sign_reported(ev->d, at)) { /* one mistake, one message */
        ev->d->errors++;
        return v_error();
    }
    if (bad) {
        diag_error(ev->d, DIAG_TYPE, at, "'%s' joins conditions, not %s", op_name(op),
                   v_kind_text(ev->a, bad));
        return v_error();
    }
    value r = op_scalar(ev, op, a, b, NULL, dim_none());
    r.kind = V_BOOL;
    return r;
}

static value op_text(evaluator *ev, op_code op, const value *a, const value *b, span at)
{
    if (a->kind != b->kind || (op != OP_EQ && op != OP_NE))
        return shape_error(ev, op, a, b, at);
    bool eq = a->str.len == b->str.len && !memcmp(a->str.at, b->str.at, a->str.len);
    return v_bool(eq == (op == OP_EQ));
}

static value op_number(evaluator *ev, op_code op, const value *a, const value *b, const value *c, span at);

value eval_op(evaluator *ev, op_code op, const value *a, const value *b, const value *c, span at)
{
    if (a->kind == V_ERROR || (b && b->kind == V_ERROR) || (c && c->kind == V_ERROR))
        return v_error();
    arena_tick(ev->a, 16);
    op_unit rule = op_unit_rule(op);
    if (rule == UNIT_BOOL)
        return op_truth(ev, op, a, b, at);
    if (a->kind == V_SERIES || (b && b->kind == V_SERIES))
        return op_series(ev, op, a, b, at);
    if (a->kind == V_STRING && b)
        return op_text(ev, op, a, b, at);
    if (rule == UNIT_SAMEB && a->kind == V_BOOL && b->kind == V_BOOL && (op == OP_EQ || op == OP_NE)) {
        value r = op_scalar(ev, op, a, b, NULL, dim_none());
        r.kind = V_BOOL;
        return r;
    }
    if (rule == UNIT_SELECT) {
        if (a->kind != V_BOOL) {
            diag_error(ev->d, DIAG_TYPE, at, "a condition is needed here, not %s", v_kind_text(ev->a, a));
            return v_error();
        }
        if (b->kind == V_BOOL && c->kind == V_BOOL) {
            value r = op_scalar(ev, op, a, b, c, dim_none());
            r.kind = V_BOOL;
            return r;
        }
        if (b->kind != V_NUM)
            return type_error(ev, op, b, at);
        if (c->kind != V_NUM)
            return type_error(ev, op, c, at);
        if (!same_shape(b, c))
            return shape_error(ev, op, b, c, at);
    } else {
        /* a number times a truth value: 1 or 0 times it */
        value x = *a, y = b ? *b : *a;
        if (op == OP_MUL && x.kind == V_BOOL && y.kind == V_NUM) {
            x.kind = V_NUM;
            return op_number(ev, op, &x, b, c, at);
        }
        if (op == OP_MUL && x.kind == V_NUM && y.kind == V_BOOL) {
            y.kind = V_NUM;
            return op_number(ev, op, a, &y, c, at);
        }
        if (a->kind != V_NUM)
            return type_error(ev, op, a, at);
        if (b && b->kind != V_NUM)
            return type_error(ev, op, b, at);
    }
    return op_number(ev, op, a, b, c, at);
}

static bool is_finite(const value *v, int32_t k)
{
    value x = v ? v_element(v, k) : v_num(0);
    return x.num.r0 || isfinite(x.num.d0);
}

/* constants give a value that is not finite: 1e300^2, 1/0, sqrt(-1) */
static bool left_numbers(const value *r, const value *a, const value *b, const value *c)
{
    for (int32_t k = 0; k < v_count(r); k++)
        if (!is_finite(r, k) && is_finite(a, k) && is_finite(b, k) && is_finite(c, k))
            return true;
    return false;
}

static value op_number(evaluator *ev, op_code op, const value *a, const value *b, const value *c, span at)
{
    dim u;
    if (op == OP_MUL && a->num.rank == 2 && b->num.rank >= 1)
        return matrix_product(ev, a, b, at);
    bool mixed = b && op != OP_SELECT && a->num.rank && b->num.rank && !same_shape(a, b);
    bool needs_scalar = b && ((op == OP_MUL && a->num.rank && b->num.rank) || (op == OP_DIV && b->num.rank) ||
                              (op == OP_POW && (a->num.rank || b->num.rank)) ||
                              ((op == OP_ADD || op == OP_SUB) && a->num.rank != b->num.rank) ||
                              (op_unit_rule(op) == UNIT_SAMEB && (a->num.rank || b->num.rank)));
    if (mixed || needs_scalar)
        return shape_error(ev, op, a, b, at);
    if (!op_dim(ev, op, &a->num, b ? &b->num : NULL, c ? &c->num : NULL, at, &u))
        return v_error();
    value r = op_elements(ev, op, a, b, c, u);
    if (ev->model && left_numbers(&r, a, b, c)) {
        diag *e = diag_error(ev->d, DIAG_OPTION_VALUE, at, "the value of this is not a finite number");
        diag_hint(ev->d, e, "an operation left the range of numbers, or the domain of '%s'", op_name(op));
        return v_error();
    }
    if (op_unit_rule(op) == UNIT_SAMEB)
        r.kind = V_BOOL;
    return r;
}
