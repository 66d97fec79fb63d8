#include "eval.h"
#include <limits.h>
#include <math.h>
#include <string.h>
#include "model.h"

/* ---- scopes ---- */

static look table_find(scope *s, evaluator *ev, sym name, span at, value *out)
{
    (void)ev; (void)at;
    table_scope *t = (table_scope *)s;
    uint64_t *k = map64_get(&t->at, sym_key(name));
    if (!k) return LOOK_NO;
    *out = t->values.at[*k];
    return out->kind == V_ERROR ? LOOK_ERROR : LOOK_YES;
}

static void table_names(scope *s, near *n)
{
    table_scope *t = (table_scope *)s;
    for (size_t i = 0; i < t->order.n; i++) near_try(n, t->order.at[i]);
}

table_scope *table_scope_new(arena *a, scope *up)
{
    table_scope *t = arena_make(a, table_scope);
    t->base = (scope){.up = up, .find = table_find, .names = table_names};
    t->at.a = t->a = a;
    return t;
}

void table_scope_set(table_scope *s, sym name, value v)
{
    uint64_t *k = map64_get(&s->at, sym_key(name));
    if (k) {
        s->values.at[*k] = v;
        return;
    }
    *map64_put(&s->at, sym_key(name)) = s->values.n;
    *vec_push(s->a, &s->values) = v;
    *vec_push(s->a, &s->order) = name;
}

static value name_unknown(evaluator *ev, scope *in, sym name, span at)
{
    diag *e = diag_error(ev->d, DIAG_UNKNOWN_NAME, at, "unknown name '%s'", name);
    near n = near_to(name);
    for (scope *s = in; s; s = s->up)
        if (s->names) s->names(s, &n);
    if (near_best(&n)) diag_near(ev->d, e, &n);
    else if (!strcmp(name, "e")) diag_hint(ev->d, e, "e is never predefined: declare a param e, or write exp(1)");
    return v_error();
}

/* callee: a name that is called passes over models and constraints, so floor(x) is a function beside a constraint floor */
static value name_value(evaluator *ev, scope *in, const ast *e, bool callee)
{
    value v;
    look found = LOOK_NO;
    for (scope *s = in; s && found == LOOK_NO; s = s->up) {
        ev->callee = callee;
        found = s->find(s, ev, e->name, e->at, &v);
        ev->callee = false;
        if (callee && found == LOOK_YES && v.kind == V_MODEL) found = LOOK_NO;
    }
    if (found == LOOK_NO) return name_unknown(ev, in, e->name, e->at);
    return found == LOOK_YES ? v : v_error();
}

/* ---- units ---- */

static const char *dim_str(arena *a, dim d)
{
    text t = {.a = a};
    dim_text(&t, d);
    return t.at;
}

bool eval_same_unit(evaluator *ev, dim a, dim b, const char *what, span at)
{
    if (dim_equal(a, b)) return true;
    diag_error(ev->d, DIAG_UNIT_MISMATCH, at, "%s: [%s] against [%s]", what, dim_str(ev->a, a), dim_str(ev->a, b));
    return false;
}

static bool no_unit(evaluator *ev, dim u, const char *fn, span at)
{
    if (dim_equal(u, dim_none())) return true;
    diag_error(ev->d, DIAG_UNIT_MISMATCH, at, "'%s' takes a number without dimension, not [%s]", fn, dim_str(ev->a, u));
    return false;
}

static dim known(dim a, dim b)
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
        *out = b ? known(a->unit, b->unit) : a->unit;
        return !b || eval_same_unit(ev, a->unit, b->unit,
            arena_printf(ev->a, "the two sides of '%s' have different dimensions", op_name(op)), at);
    case UNIT_SAMEB:
        return eval_same_unit(ev, a->unit, b->unit, "the two sides of the comparison have different dimensions", at);
    case UNIT_SELECT:
        *out = known(b->unit, c->unit);
        return eval_same_unit(ev, b->unit, c->unit, "the alternatives have different dimensions", at);
    case UNIT_ANGLE: return eval_same_unit(ev, a->unit, b->unit, "the two arguments have different dimensions", at);
    case UNIT_MUL: *out = dim_mul(a->unit, b->unit); return true;
    case UNIT_DIV: *out = dim_div(a->unit, b->unit); return true;
    case UNIT_SQR: *out = dim_pow(a->unit, 2, &ok); return true;
    case UNIT_SQRT: *out = dim_pow(a->unit, 0.5, &ok); return true;
    case UNIT_POW:
        if (!no_unit(ev, b->unit, "^", at)) return false;
        if (b->r0 == IR_NONE) *out = dim_pow(a->unit, b->d0, &ok);
        else if (a->unit.any) *out = dim_any();
        else if (!no_unit(ev, a->unit, "^ with an exponent that is not constant", at)) return false;
        return true;
    case UNIT_NONE:
        *out = a->unit.any ? dim_any() : dim_none();
        return no_unit(ev, a->unit, op_name(op), at) && (!b || no_unit(ev, b->unit, op_name(op), at));
    case UNIT_ZERO: case UNIT_BOOL: return true;
    }
    return true;
}

/* ---- operations on values ---- */

static value shape_error(evaluator *ev, op_code op, const value *a, const value *b, span at)
{
    diag *e = diag_error(ev->d, DIAG_SHAPE, at, "'%s' does not fit %s and %s", op_name(op), v_kind_text(ev->a, a), v_kind_text(ev->a, b));
    if (op == OP_MUL && a->kind == V_NUM && b->kind == V_NUM && a->num.rank == 1 && b->num.rank == 1)
        diag_hint(ev->d, e, "the inner product is dot(a, b)");
    else if ((op == OP_ADD || op == OP_SUB) && a->kind == V_NUM && b->kind == V_NUM && a->num.rank + b->num.rank == 1)
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
    if (!symbolic) return v_num_unit(op_value(op, a->num.d0, b ? b->num.d0 : 0, c ? c->num.d0 : 0), u);
    ir_ref r = ir_op(ev->g, op, v_ref(ev->g, a), b ? v_ref(ev->g, b) : IR_NONE, c ? v_ref(ev->g, c) : IR_NONE);
    double k;
    return ir_is_const(ev->g, r, &k) ? v_num_unit(k, u) : v_node(r, u);
}

static value like(arena *a, const value *v)
{
    if (v->num.rank == 0) return v_num(0);
    return v->num.rank == 1 ? v_vector(a, v->num.n[0]) : v_matrix(a, v->num.n[0], v->num.n[1]);
}

static bool same_shape(const value *a, const value *b)
{
    return a->num.rank == b->num.rank && (a->num.rank < 1 || a->num.n[0] == b->num.n[0]) && (a->num.rank < 2 || a->num.n[1] == b->num.n[1]);
}

/* element by element; scalars are repeated */
static value op_elements(evaluator *ev, op_code op, const value *a, const value *b, const value *c, dim u)
{
    const value *shape = a->num.rank ? a : b && b->num.rank ? b : c && c->num.rank ? c : a;
    value out = like(ev->a, shape);
    out.num.unit = u;
    int32_t n = v_count(shape);
    for (int32_t k = 0; k < n; k++) {
        value x = v_element(a, k), y, z;
        if (b) y = v_element(b, k);
        if (c) z = v_element(c, k);
        value r = op_scalar(ev, op, &x, b ? &y : NULL, c ? &z : NULL, u);
        v_set(ev->a, &out, k, &r);
    }
    return out;
}

static value matrix_product(evaluator *ev, const value *a, const value *b, span at)
{
    int32_t rows = a->num.n[0], inner = a->num.n[1], cols = b->num.rank == 2 ? b->num.n[1] : 1;
    if (inner != b->num.n[0]) return shape_error(ev, OP_MUL, a, b, at);
    value out = b->num.rank == 2 ? v_matrix(ev->a, rows, cols) : v_vector(ev->a, rows);
    dim u = dim_mul(a->num.unit, b->num.unit);
    out.num.unit = u;
    for (int32_t i = 0; i < rows; i++)
        for (int32_t j = 0; j < cols; j++) {
            value s = v_num_unit(0, u);
            for (int32_t k = 0; k < inner; k++) {
                value x = v_element(a, i * inner + k), y = v_element(b, k * cols + j);
                if (x.num.r0 == IR_NONE && x.num.d0 == 0) continue;
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
    const value *side[2] = {a, b};
    for (int i = 0; i < (b ? 2 : 1); i++) {
        double x;
        if (side[i]->kind == V_SERIES ? side[i]->series.n != n : !v_scalar(side[i], &x)) return shape_error(ev, op, a, b ? b : a, at);
    }
    double *y = arena_array(ev->a, double, n ? n : 1);
    bool all = true;
    for (int64_t k = 0; k < n; k++) {
        double x[2] = {0, 0};
        for (int i = 0; i < (b ? 2 : 1); i++)
            x[i] = side[i]->kind == V_SERIES ? side[i]->series.y[k * side[i]->series.stride] : side[i]->num.d0;
        y[k] = op_value(op, x[0], x[1], 0);
        all = all && y[k] != 0;
    }
    if (op_unit_rule(op) == UNIT_SAMEB) return v_bool(all);
    value out = {.kind = V_SERIES};
    out.series.t = s->series.t;
    out.series.y = y;
    out.series.n = n;
    out.series.stride = 1;
    out.series.unit = dim_any();
    return out;
}

static value op_truth(evaluator *ev, op_code op, const value *a, const value *b, span at)
{
    const value *bad = a->kind != V_BOOL ? a : b && b->kind != V_BOOL ? b : NULL;
    if (bad) {
        diag_error(ev->d, DIAG_TYPE, at, "'%s' joins conditions, not %s", op_name(op), v_kind_text(ev->a, bad));
        return v_error();
    }
    value r = op_scalar(ev, op, a, b, NULL, dim_none());
    r.kind = V_BOOL;
    return r;
}

static value op_text(evaluator *ev, op_code op, const value *a, const value *b, span at)
{
    if (a->kind != b->kind || (op != OP_EQ && op != OP_NE)) return shape_error(ev, op, a, b, at);
    bool eq = a->str.len == b->str.len && !memcmp(a->str.at, b->str.at, a->str.len);
    return v_bool(eq == (op == OP_EQ));
}

static value op_number(evaluator *ev, op_code op, const value *a, const value *b, const value *c, span at);

value eval_op(evaluator *ev, op_code op, const value *a, const value *b, const value *c, span at)
{
    if (a->kind == V_ERROR || (b && b->kind == V_ERROR) || (c && c->kind == V_ERROR)) return v_error();
    op_unit rule = op_unit_rule(op);
    if (rule == UNIT_BOOL) return op_truth(ev, op, a, b, at);
    if (a->kind == V_SERIES || (b && b->kind == V_SERIES)) return op_series(ev, op, a, b, at);
    if (a->kind == V_STRING && b) return op_text(ev, op, a, b, at);
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
        if (b->kind != V_NUM) return type_error(ev, op, b, at);
        if (c->kind != V_NUM) return type_error(ev, op, c, at);
        if (!same_shape(b, c)) return shape_error(ev, op, b, c, at);
    } else {
        if (a->kind != V_NUM) return type_error(ev, op, a, at);
        if (b && b->kind != V_NUM) return type_error(ev, op, b, at);
    }
    return op_number(ev, op, a, b, c, at);
}

static value op_number(evaluator *ev, op_code op, const value *a, const value *b, const value *c, span at)
{
    dim u;
    if (op == OP_MUL && a->num.rank == 2 && b->num.rank >= 1) return matrix_product(ev, a, b, at);
    bool mixed = b && op != OP_SELECT && a->num.rank && b->num.rank && !same_shape(a, b);
    bool needs_scalar = b && ((op == OP_MUL && a->num.rank && b->num.rank) || (op == OP_DIV && b->num.rank) ||
                              (op == OP_POW && (a->num.rank || b->num.rank)) ||
                              ((op == OP_ADD || op == OP_SUB) && a->num.rank != b->num.rank) ||
                              (op_unit_rule(op) == UNIT_SAMEB && (a->num.rank || b->num.rank)));
    if (mixed || needs_scalar) return shape_error(ev, op, a, b, at);
    if (!op_dim(ev, op, &a->num, b ? &b->num : NULL, c ? &c->num : NULL, at, &u)) return v_error();
    value r = op_elements(ev, op, a, b, c, u);
    if (op_unit_rule(op) == UNIT_SAMEB) r.kind = V_BOOL;
    return r;
}

/* ---- literals and operators ---- */

static value eval_number(evaluator *ev, const ast *e)
{
    if (e->n == 0 || !e->kid[0]) return v_num(e->num);
    const ast *u = e->kid[0];
    double factor = 1;
    dim d = dim_none();
    for (uint32_t i = 0; i < u->n; i++) {
        const ast *term = u->kid[i];
        double f = 1, p = term->n && term->kid[0] ? term->kid[0]->num : 1;
        dim td = dim_none();
        bool ok = true;
        if (term->name && !unit_find(term->name, &f, &td)) {
            diag *err = diag_error(ev->d, DIAG_UNKNOWN_UNIT, term->at, "unknown unit '%s'", term->name);
            near n = near_to(term->name);
            for (size_t k = 0; unit_name(k); k++) near_try(&n, unit_name(k));
            diag_near(ev->d, err, &n);
            return v_error();
        }
        factor *= pow(f, p);
        d = dim_mul(d, dim_pow(td, p, &ok));
        if (!ok) {
            diag_error(ev->d, DIAG_UNKNOWN_UNIT, term->at, "the exponent of a unit must be a multiple of 1/12");
            return v_error();
        }
    }
    return v_num_unit(unit_scale(e->num, factor), d);
}

static value eval_if(evaluator *ev, scope *in, const ast *e)
{
    value c = eval(ev, in, e->kid[0]);
    if (c.kind == V_ERROR) return c;
    double k;
    if (c.kind == V_BOOL && v_scalar(&c, &k)) return eval(ev, in, e->kid[k != 0 ? 1 : 2]);
    value a = eval(ev, in, e->kid[1]), b = eval(ev, in, e->kid[2]);
    return eval_op(ev, OP_SELECT, &c, &a, &b, e->kid[0]->at);
}

static value eval_cases(evaluator *ev, scope *in, const ast *e, uint32_t from)
{
    if (from == e->n) {
        diag *d = diag_error(ev->d, DIAG_SYNTAX, e->at, "the cases do not cover everything");
        diag_hint(ev->d, d, "end them with `value otherwise`");
        return v_error();
    }
    const ast *k = e->kid[from];
    if (!k->kid[1]) return eval(ev, in, k->kid[0]);
    value c = eval(ev, in, k->kid[1]);
    if (c.kind == V_ERROR) return c;
    double x;
    if (c.kind == V_BOOL && v_scalar(&c, &x)) return x != 0 ? eval(ev, in, k->kid[0]) : eval_cases(ev, in, e, from + 1);
    value a = eval(ev, in, k->kid[0]), b = eval_cases(ev, in, e, from + 1);
    return eval_op(ev, OP_SELECT, &c, &a, &b, k->kid[1]->at);
}

static value eval_in(evaluator *ev, scope *in, const ast *e)
{
    value x = eval(ev, in, e->kid[0]), s = eval(ev, in, e->kid[1]);
    if (x.kind == V_ERROR || s.kind == V_ERROR) return v_error();
    if (s.kind == V_RANGE) {
        value lo = eval_op(ev, OP_GE, &x, s.range.lo, NULL, e->at), hi = eval_op(ev, OP_LE, &x, s.range.hi, NULL, e->at);
        return eval_op(ev, OP_AND, &lo, &hi, NULL, e->at);
    }
    if (s.kind == V_NUM && s.num.rank == 1) {
        value any = v_bool(false);
        for (int32_t k = 0; k < s.num.n[0]; k++) {
            value y = v_element(&s, k), eq = eval_op(ev, OP_EQ, &x, &y, NULL, e->at);
            any = eval_op(ev, OP_OR, &any, &eq, NULL, e->at);
        }
        return any;
    }
    diag_error(ev->d, DIAG_TYPE, e->kid[1]->at, "'in' asks for a range or a vector here, not %s", v_kind_text(ev->a, &s));
    return v_error();
}

static value eval_range(evaluator *ev, scope *in, const ast *e)
{
    value v = {.kind = V_RANGE};
    v.range.lo = arena_make(ev->a, value);
    v.range.hi = arena_make(ev->a, value);
    *v.range.lo = eval(ev, in, e->kid[0]);
    *v.range.hi = eval(ev, in, e->kid[1]);
    if (v.range.lo->kind == V_ERROR || v.range.hi->kind == V_ERROR) return v_error();
    for (int i = 0; i < 2; i++) {
        const value *end = i ? v.range.hi : v.range.lo;
        if (!v_is_scalar(end)) {
            diag_error(ev->d, DIAG_TYPE, e->kid[i]->at, "the ends of a range are numbers, not %s", v_kind_text(ev->a, end));
            return v_error();
        }
    }
    return v;
}

/* values of one kind gathered: numbers become a vector, the rest a list */
static value collect(evaluator *ev, const value *at, size_t n, span where)
{
    bool numbers = true;
    for (size_t i = 0; i < n; i++) {
        if (at[i].kind == V_ERROR) return v_error();
        numbers = numbers && v_is_scalar(&at[i]);
    }
    if (!numbers) {
        value v = {.kind = V_LIST};
        v.list.at = arena_array(ev->a, value, n);
        memcpy(v.list.at, at, n * sizeof *at);
        v.list.n = n;
        return v;
    }
    if (n > INT32_MAX) {
        diag_error(ev->d, DIAG_LIMIT, where, "too many elements");
        return v_error();
    }
    value v = v_vector(ev->a, (int32_t)n);
    bool same = true;
    dim u = n ? at[0].num.unit : dim_any();
    for (size_t i = 0; i < n; i++) {
        v_set(ev->a, &v, (int32_t)i, &at[i]);
        same = same && dim_equal(u, at[i].num.unit);
        u = known(u, at[i].num.unit);
    }
    v.num.unit = same ? u : dim_any();
    return v;
}

static value eval_vector(evaluator *ev, scope *in, const ast *e)
{
    if (e->n == 1 && e->kid[0]->kind == AST_GEN) return eval_gen(ev, in, e->kid[0]);
    value *at = arena_array(ev->a, value, e->n ? e->n : 1);
    for (uint32_t i = 0; i < e->n; i++) at[i] = eval(ev, in, e->kid[i]);
    return collect(ev, at, e->n, e->at);
}

static value eval_matrix(evaluator *ev, scope *in, const ast *e)
{
    int32_t cols = e->n ? (int32_t)e->kid[0]->n : 0;
    value m = v_matrix(ev->a, (int32_t)e->n, cols);
    bool bad = false;
    for (uint32_t i = 0; i < e->n; i++) {
        const ast *row = e->kid[i];
        if ((int32_t)row->n != cols) {
            diag *d = diag_error(ev->d, DIAG_SHAPE, row->at, "this row has %u elements, the first one %d", row->n, cols);
            diag_second(ev->d, d, e->kid[0]->at, "the first row");
            return v_error();
        }
        for (int32_t j = 0; j < cols; j++) {
            value x;
            if (!eval_scalar(ev, in, row->kid[j], "an element of a matrix", &x)) {
                bad = true;
                continue;
            }
            v_set(ev->a, &m, (int32_t)i * cols + j, &x);
        }
    }
    return bad ? v_error() : m;
}

/* ---- generators ---- */

typedef struct { evaluator *ev; const ast *gen; vec(value) out; bool failed; } generator;

static bool gen_fuel(generator *g)
{
    if (g->ev->fuel-- > 0) return true;
    diag_error(g->ev->d, DIAG_LIMIT, g->gen->at, "this makes too many terms");
    g->failed = true;
    return false;
}

static void gen_level(generator *g, scope *in, uint32_t level)
{
    evaluator *ev = g->ev;
    const ast *e = g->gen;
    if (level + 1 == e->n) {                                /* all indices bound: where?, then the value */
        if (e->kid[level]) {
            value c = eval(ev, in, e->kid[level]);
            double k;
            if (c.kind == V_ERROR || !v_scalar(&c, &k)) {
                if (c.kind != V_ERROR) diag_error(ev->d, DIAG_NOT_CONSTANT, e->kid[level]->at, "the condition after 'where' must be known before the run");
                g->failed = true;
                return;
            }
            if (k == 0) return;
        }
        value v = eval(ev, in, e->kid[0]);
        if (v.kind == V_ERROR) g->failed = true;
        else *vec_push(ev->a, &g->out) = v;
        return;
    }
    const ast *ix = e->kid[level];
    value r = eval(ev, in, ix->kid[0]);
    if (r.kind == V_ERROR) {
        g->failed = true;
        return;
    }
    table_scope *s = table_scope_new(ev->a, in);
    if (r.kind == V_RANGE) {
        double lo, hi;
        if (!v_scalar(r.range.lo, &lo) || !v_scalar(r.range.hi, &hi)) {
            if (ev->family && ev->family->n) ev->needs_members = true;
            else diag_error(ev->d, DIAG_NOT_CONSTANT, ix->kid[0]->at, "the ends of this range must be known before the run");
            g->failed = true;
            return;
        }
        for (double i = lo; i <= hi && !g->failed; i += 1) {
            if (!gen_fuel(g)) return;
            table_scope_set(s, ix->name, v_num_unit(i, dim_none()));
            gen_level(g, &s->base, level + 1);
        }
    } else if (r.kind == V_NUM && r.num.rank == 1) {
        for (int32_t i = 0; i < r.num.n[0] && !g->failed; i++) {
            if (!gen_fuel(g)) return;
            table_scope_set(s, ix->name, v_element(&r, i));
            gen_level(g, &s->base, level + 1);
        }
    } else if (r.kind == V_LIST) {
        for (size_t i = 0; i < r.list.n && !g->failed; i++) {
            if (!gen_fuel(g)) return;
            table_scope_set(s, ix->name, r.list.at[i]);
            gen_level(g, &s->base, level + 1);
        }
    } else {
        diag_error(ev->d, DIAG_TYPE, ix->kid[0]->at, "'for' runs over a range or a vector, not %s", v_kind_text(ev->a, &r));
        g->failed = true;
    }
}

value eval_gen(evaluator *ev, scope *in, const ast *gen)
{
    generator g = {.ev = ev, .gen = gen};
    gen_level(&g, in, 1);
    return g.failed ? v_error() : collect(ev, g.out.at, g.out.n, gen->at);
}

/* ---- subscripts ---- */

/* ca*a + cb*b */
static address address_mix(int32_t ca, address a, int32_t cb, address b)
{
    address r = {.base = ca * a.base + cb * b.base};
    for (int k = 0; k < MAX_INDEX; k++) r.stride[k] = ca * a.stride[k] + cb * b.stride[k];
    return r;
}

static bool address_fixed(const address *a)
{
    for (int k = 0; k < MAX_INDEX; k++)
        if (a->stride[k]) return false;
    return true;
}

/* node = at.base + sum at.stride[k]*index[k]?  Only sums, differences and products with constants are looked through. */
static bool affine(const ir *g, ir_ref r, address *at, int depth)
{
    const ir_node *n = ir_at(g, r);
    *at = (address){0};
    if (depth > 64) return false;
    if (n->op == IR_CONST) {
        if (n->k != floor(n->k) || fabs(n->k) > 1e6) return false;
        at->base = (int32_t)n->k;
        return true;
    }
    if (n->op == IR_INPUT) {
        const ir_input *in = ir_input_of(g, r);
        if (in->kind != IN_INDEX) return false;
        at->stride[in->at.base] = 1;
        return true;
    }
    address a, b = {0};
    if (n->op != OP_ADD && n->op != OP_SUB && n->op != OP_MUL && n->op != OP_NEG) return false;
    if (!affine(g, n->a, &a, depth + 1) || (n->op != OP_NEG && !affine(g, n->b, &b, depth + 1))) return false;
    switch (n->op) {
    case OP_NEG: *at = address_mix(-1, a, 0, b); return true;
    case OP_ADD: *at = address_mix(1, a, 1, b); return true;
    case OP_SUB: *at = address_mix(1, a, -1, b); return true;
    default:
        if (!address_fixed(&a) && !address_fixed(&b)) return false;
        *at = address_fixed(&a) ? address_mix(a.base, b, 0, b) : address_mix(b.base, a, 0, a);
        for (int k = 0; k < MAX_INDEX; k++)
            if (at->stride[k] > 1000000 || at->stride[k] < -1000000) return false;
        return true;
    }
}

static value range_error(evaluator *ev, span at, double got, int32_t lo, int32_t hi)
{
    text t = {.a = ev->a};
    text_num(&t, got);
    if (hi < lo) diag_error(ev->d, DIAG_INDEX_RANGE, at, "index %s into something empty", t.at);
    else diag_error(ev->d, DIAG_INDEX_RANGE, at, "index %s is outside %d..%d", t.at, lo, hi);
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
        if (x >= lo && x <= hi) continue;
        if (f->where) {
            arena_pos mark = arena_mark(ev->a);
            double w = ir_value(ev->g, ev->a, f->where, index_input, ix);
            arena_release(ev->a, mark);
            if (w == 0) continue;
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
    *out = (address){0};
    if (ix->kind == V_ERROR) return false;
    if (!v_is_scalar(ix)) {
        diag_error(ev->d, DIAG_TYPE, at, "an index is a whole number, not %s", v_kind_text(ev->a, ix));
        return false;
    }
    if (v_scalar(ix, &k)) {
        if (k != floor(k)) {
            diag_error(ev->d, DIAG_TYPE, at, "an index is a whole number");
            return false;
        }
        if (k < lo || k > hi) {
            range_error(ev, at, k, lo, hi);
            return false;
        }
        out->base = (int32_t)k;
        return true;
    }
    if (!ev->family || !affine(ev->g, ix->num.r0, out, 0)) {
        if (ev->family && ev->family->n) ev->needs_members = true;
        else diag_error(ev->d, DIAG_NOT_CONSTANT, at, "an index must be known before the run");
        return false;
    }
    int64_t min, max;
    int32_t worst;
    affine_bounds(ev->family, out, &min, &max);
    if (min >= lo && max <= hi) return true;
    if (ev->family->set.count > MAX_CHECKED_MEMBERS) worst = (int32_t)(min < lo ? min : max);
    else if (affine_inside(ev, out, lo, hi, &worst)) return true;
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
    for (int k = 0; k < primes; k++) u = dim_div(u, s);
    return u;
}

/* the element (or vector of components) of a dof family at an address */
static value dofs_value(evaluator *ev, const value *v)
{
    const mdof *d = v->dofs.dof;
    in_kind kind = primes_kind(v->dofs.primes);
    dim u = dim_rate(d->unit, v->dofs.primes);
    ir_input in = {.kind = kind, .at = v->dofs.at};
    if (!d->comp) return v_node(ir_in(ev->g, in), u);
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
static value dofs_whole(evaluator *ev, const value *v, span at)
{
    const mdof *d = v->dofs.dof;
    int left = d->ndim - v->dofs.given, cols = left == 2 ? d->n[d->ndim - 1] : d->comp;
    if (left == 0) return dofs_value(ev, v);
    if (left > 2 || (left == 2 && d->comp) || d->size > MAX_WHOLE) {
        diag *e = diag_error(ev->d, DIAG_SHAPE, at, "'%s' is a family of %d degrees of freedom and stands here without an index", d->name, d->size);
        diag_hint(ev->d, e, "write %s[i], with i from a `for` or an indexed declaration", d->name);
        return v_error();
    }
    int32_t rows = d->n[v->dofs.given];
    value out = left == 2 || d->comp ? v_matrix(ev->a, rows, cols) : v_vector(ev->a, rows);
    dim u = dim_rate(d->unit, v->dofs.primes);
    out.num.unit = u;
    ir_input in = {.kind = primes_kind(v->dofs.primes), .at = v->dofs.at};
    for (int32_t k = 0; k < v_count(&out); k++) {
        value x = v_node(ir_in(ev->g, in), u);
        v_set(ev->a, &out, k, &x);
        in.at.base++;
    }
    return out;
}

static value plain(evaluator *ev, value v, span at)
{
    return v.kind == V_DOFS ? dofs_whole(ev, &v, at) : v;
}

static value subscript_dofs(evaluator *ev, const value *v, const value *ix, size_t n, span at)
{
    value out = *v;
    const mdof *d = v->dofs.dof;
    for (size_t i = 0; i < n; i++) {
        if (out.dofs.given == d->ndim) {                    /* a component of a vector dof */
            value w = dofs_value(ev, &out);
            return eval_subscript(ev, &w, ix + i, n - i, at);
        }
        int k = out.dofs.given;
        address a;
        if (!eval_index(ev, &ix[i], d->lo[k], d->lo[k] + d->n[k] - 1, at, &a)) return v_error();
        int32_t step = d->comp ? d->comp : 1;
        for (int m = k + 1; m < d->ndim; m++) step *= d->n[m];
        out.dofs.at.base += (a.base - d->lo[k]) * step;
        for (int m = 0; m < MAX_INDEX; m++) out.dofs.at.stride[m] += a.stride[m] * step;
        out.dofs.given++;
    }
    return out.dofs.given == d->ndim ? dofs_value(ev, &out) : out;
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
    int32_t k[2] = {0, 0};
    for (size_t i = 0; i < n && i < 2; i++) {
        address a;
        if (!eval_index(ev, &ix[i], 1, v->num.n[i], at, &a)) return v_error();
        if (!address_fixed(&a)) return subscript_symbolic(ev);
        k[i] = a.base - 1;
    }
    if ((int)n > rank) {
        diag_error(ev->d, DIAG_SHAPE, at, "%s takes %d %s, not %zu", v_kind_text(ev->a, v), rank, rank == 1 ? "index" : "indices", n);
        return v_error();
    }
    if (rank == 1) return v_element(v, k[0]);
    if (n == 2) return v_element(v, k[0] * v->num.n[1] + k[1]);
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
    if (!eval_index(ev, &ix[0], 1, (int32_t)v->list.n, at, &a)) return v_error();
    if (!address_fixed(&a)) return subscript_symbolic(ev);
    const value *x = &v->list.at[a.base - 1];
    return n == 1 ? *x : eval_subscript(ev, x, ix + 1, n - 1, at);
}

value eval_subscript(evaluator *ev, const value *v, const value *ix, size_t n, span at)
{
    double k;
    switch (v->kind) {
    case V_ERROR: return *v;
    case V_DOFS: return subscript_dofs(ev, v, ix, n, at);
    case V_NUM: return subscript_num(ev, v, ix, n, at);
    case V_LIST: return subscript_list(ev, v, ix, n, at);
    case V_SERIES:
        if (n == 1 && v_scalar(&ix[0], &k) && k == floor(k)) {
            if (k < 1 || k > (double)v->series.n) return range_error(ev, at, k, 1, v->series.n > INT32_MAX ? INT32_MAX : (int32_t)v->series.n);
            return v_num_unit(v->series.y[((int64_t)k - 1) * v->series.stride], v->series.unit);
        }
        break;
    case V_OBJECT:
        if (!v->object.in || !v->object.in->subscript) break;
        return v->object.in->subscript(v->object.in, ev, v, ix, n, at);
    default: break;
    }
    diag_error(ev->d, DIAG_TYPE, at, "%s cannot be indexed", v_kind_text(ev->a, v));
    return v_error();
}

value eval_member(evaluator *ev, const value *v, sym name, span at)
{
    value out;
    if (v->kind == V_ERROR) return *v;
    if (v->kind != V_OBJECT) {
        diag_error(ev->d, DIAG_UNKNOWN_MEMBER, at, "%s has no member '%s'", v_kind_text(ev->a, v), name);
        return v_error();
    }
    switch (v->object.in->find(v->object.in, ev, name, at, &out)) {
    case LOOK_YES: return out;
    case LOOK_ERROR: return v_error();
    case LOOK_NO: break;
    }
    diag *e = diag_error(ev->d, DIAG_UNKNOWN_MEMBER, at, "no member '%s' here", name);
    near n = near_to(name);
    if (v->object.in->names) v->object.in->names(v->object.in, &n);
    diag_near(ev->d, e, &n);
    return v_error();
}

/* ---- derivatives and past values ---- */

/* applies f to each element that is an input of the given kinds; anything else is an error told by the caller */
typedef bool (*input_map)(evaluator *ev, const ir_input *in, ir_input *out);
static bool map_inputs(evaluator *ev, const value *v, input_map f, const ir_input *with, value *out)
{
    *out = like(ev->a, v);
    out->num.unit = v->num.unit;
    for (int32_t k = 0; k < v_count(v); k++) {
        value x = v_element(v, k);
        const ir_input *in = x.num.r0 && ev->g ? ir_input_of(ev->g, x.num.r0) : NULL;
        ir_input to = with ? *with : (ir_input){0};
        if (!in || !f(ev, in, &to)) return false;
        value y = v_node(ir_in(ev->g, to), v->num.unit);
        v_set(ev->a, out, k, &y);
    }
    return true;
}

static bool prime_input(evaluator *ev, const ir_input *in, ir_input *out)
{
    (void)ev;
    *out = *in;
    if (in->kind == IN_Q) out->kind = IN_V;
    else if (in->kind == IN_V) out->kind = IN_A;
    else if (in->kind == IN_FIELD) out->at.stride[0]++;
    else return false;
    return true;
}

static value prime_error(evaluator *ev, const value *v, span at)
{
    diag *e = diag_error(ev->d, DIAG_TYPE, at, "' is the derivative of a degree of freedom or a field, not of %s", v_kind_text(ev->a, v));
    diag_hint(ev->d, e, "the derivative of an expression in time is d(expression, t)");
    return v_error();
}

value eval_prime(evaluator *ev, const value *v, span at)
{
    value out;
    if (v->kind == V_ERROR) return *v;
    if (v->kind == V_DOFS) {
        out = *v;
        if (out.dofs.primes++ < 2) return out;
    } else if (v->kind == V_SERIES) {
        if (v->series.ops && v->series.ops->derivative(v, &out)) return out;
    } else if (v->kind == V_NUM && v->num.rank < 2) {
        if (map_inputs(ev, v, prime_input, NULL, &out)) {
            const ir_input *in = ir_input_of(ev->g, v_element(&out, 0).num.r0);
            const model *m = ev->of;
            if (in->kind == IN_FIELD) {
                if (m->fields.at[in->at.base].ncoord != 1) {
                    diag *e = diag_error(ev->d, DIAG_TYPE, at, "' is ambiguous for a field of two coordinates");
                    diag_hint(ev->d, e, "write d(u, x) or laplacian(u)");
                    return v_error();
                }
            } else out.num.unit = dim_rate(v->num.unit, 1);
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

static bool past_input(evaluator *ev, const ir_input *in, ir_input *out)
{
    (void)ev;
    if (in->kind != IN_Q && in->kind != IN_V) return false;
    out->kind = in->kind == IN_Q ? IN_PAST_Q : IN_PAST_V;
    out->at = in->at;
    return true;
}

static bool is_bound(const ir_input *in, void *ud)
{
    (void)ud;
    return in->kind == IN_BOUND;
}

/* x(t - tau): the delay t - arg must not be a constant that is negative or zero */
static value past_value(evaluator *ev, const value *v, const value *arg, span at)
{
    model *m = ev->of;
    if (!v_is_scalar(arg)) {
        diag_error(ev->d, DIAG_TYPE, at, "a past value is asked for at a time, not at %s", v_kind_text(ev->a, arg));
        return v_error();
    }
    if (eval_is_time(ev, arg)) return *v;
    ir_ref t = ir_in(ev->g, (ir_input){.kind = IN_TIME}), s = v_ref(ev->g, arg), tau = ir_op2(ev->g, OP_SUB, t, s);
    double k;
    if (ir_is_const(ev->g, ir_op2(ev->g, OP_SUB, s, t), &k)) k = -k;
    else if (!ir_is_const(ev->g, tau, &k)) k = 1;
    if (k < 0 || (k == 0 && !ir_depends(ev->g, s, is_bound, NULL))) {
        diag *e = diag_error(ev->d, DIAG_DELAY_SIGN, at, "this asks for a value that is not in the past: the delay is %g", k);
        diag_hint(ev->d, e, "write x(t - tau) with tau > 0");
        return v_error();
    }
    value out;
    ir_input to = {.arg = s};
    if (!map_inputs(ev, v, past_input, &to, &out)) {
        diag_error(ev->d, DIAG_TYPE, at, "only degrees of freedom and their rates have past values");
        return v_error();
    }
    if (!m->has_delay.file) m->has_delay = at;
    return out;
}

/* u(x): a field at its own coordinates is the field */
static value field_call(evaluator *ev, const value *v, const value *arg, size_t n, const ir_input *in, span at)
{
    model *m = ev->of;
    const mfield *f = &m->fields.at[in->at.base];
    bool own = (int)n == f->ncoord;
    for (size_t i = 0; own && i < n; i++) {
        const ir_input *c = v_is_scalar(&arg[i]) && arg[i].num.r0 ? ir_input_of(ev->g, arg[i].num.r0) : NULL;
        own = c && c->kind == IN_COORD && c->at.base == f->coord[i];
    }
    if (own) return *v;
    diag *e = diag_error(ev->d, DIAG_NOT_SUPPORTED, at, "a field is known only at its own coordinates while the equation is solved");
    diag_hint(ev->d, e, "conditions at a point are written as `at %s = … { %s = … }`", m->coords.at[0].name, f->name);
    return v_error();
}

static double series_linear(const value *v, double t)
{
    int64_t lo = 0, hi = v->series.n - 1;
    if (hi < 0) return NAN;
    while (hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;
        if (v->series.t[mid] <= t) lo = mid;
        else hi = mid;
    }
    double t0 = v->series.t[lo], t1 = v->series.t[hi], y0 = v->series.y[lo * v->series.stride], y1 = v->series.y[hi * v->series.stride];
    return t1 > t0 ? y0 + (y1 - y0) * (t - t0) / (t1 - t0) : y0;
}

static value series_call(evaluator *ev, const value *v, const value *arg, size_t n, span at)
{
    double t;
    if (n != 1 || !v_scalar(&arg[0], &t)) {
        diag_error(ev->d, DIAG_ARITY, at, "a series is asked for at one time: y(1.5)");
        return v_error();
    }
    if (v->series.n == 0 || t < v->series.t[0] || t > v->series.t[v->series.n - 1]) {
        double t0 = v->series.n ? v->series.t[0] : 0, t1 = v->series.n ? v->series.t[v->series.n - 1] : 0;
        diag_error(ev->d, DIAG_INDEX_RANGE, at, "the time %g is outside the run, which goes from %g to %g", t, t0, t1);
        return v_error();
    }
    double y = v->series.ops ? v->series.ops->at(v->series.of, v->series.column, v->series.order, t) : series_linear(v, t);
    return v_num_unit(y, v->series.unit);
}

/* ---- calls ---- */

static value call_user(evaluator *ev, const value *f, const value *arg, size_t n, span at)
{
    const ast *fn = f->fn.fn, *params = fn->kid[0];
    if (n != params->n) {
        diag *e = diag_error(ev->d, DIAG_ARITY, at, "'%s' takes %u %s, not %zu", fn->name, params->n, params->n == 1 ? "argument" : "arguments", n);
        diag_second(ev->d, e, fn->name_at, "declared here");
        return v_error();
    }
    if (ev->depth >= EVAL_MAX_DEPTH) {
        diag_error(ev->d, DIAG_LIMIT, at, "'%s' calls itself more than %d times", fn->name, EVAL_MAX_DEPTH);
        return v_error();
    }
    table_scope *s = table_scope_new(ev->a, f->fn.in);
    for (size_t i = 0; i < n; i++) table_scope_set(s, params->kid[i]->name, arg[i]);
    ev->depth++;
    value v = eval(ev, &s->base, fn->kid[1]);
    ev->depth--;
    return v;
}

static value call_built(evaluator *ev, scope *in, const ast *call, const builtin *b, const value *arg, size_t n, span at)
{
    if ((int)n < b->min || (b->max >= 0 && (int)n > b->max)) {
        diag *e;
        if (b->min == b->max) e = diag_error(ev->d, DIAG_ARITY, at, "'%s' takes %d %s, not %zu", b->name, b->min, b->min == 1 ? "argument" : "arguments", n);
        else if (b->max < 0) e = diag_error(ev->d, DIAG_ARITY, at, "'%s' takes at least %d %s, not %zu", b->name, b->min, b->min == 1 ? "argument" : "arguments", n);
        else e = diag_error(ev->d, DIAG_ARITY, at, "'%s' takes %d to %d arguments, not %zu", b->name, b->min, b->max, n);
        if (b->signature) diag_hint(ev->d, e, "%s", b->signature);
        return v_error();
    }
    if (!b->call) {                                         /* a row of opcodes.def */
        op_code op = (op_code)(b - op_builtin);
        return eval_op(ev, op, &arg[0], n > 1 ? &arg[1] : NULL, n > 2 ? &arg[2] : NULL, at);
    }
    return b->call(ev, in, call, arg, n);
}

static value call_value(evaluator *ev, scope *in, const ast *call, const value *f, const value *arg, size_t n, span at)
{
    for (size_t i = 0; i < n; i++)
        if (arg[i].kind == V_ERROR) return v_error();
    switch (f->kind) {
    case V_ERROR: return *f;
    case V_FN: return f->fn.built ? call_built(ev, in, call, f->fn.built, arg, n, at) : call_user(ev, f, arg, n, at);
    case V_SERIES: return series_call(ev, f, arg, n, at);
    case V_NUM: {
        value x = v_count(f) ? v_element(f, 0) : v_num(0);
        const ir_input *i = x.num.r0 && ev->g ? ir_input_of(ev->g, x.num.r0) : NULL;
        if (i && i->kind == IN_FIELD) return field_call(ev, f, arg, n, i, at);
        if (i && n == 1 && (i->kind == IN_Q || i->kind == IN_V)) return past_value(ev, f, &arg[0], at);
        break;
    }
    case V_OBJECT:
        if (f->object.in && f->object.in->call) return f->object.in->call(f->object.in, ev, f, arg, n, at);
        break;
    default: break;
    }
    diag *e = diag_error(ev->d, DIAG_TYPE, at, "%s cannot be called", v_kind_text(ev->a, f));
    if (f->kind == V_NUM) diag_hint(ev->d, e, "write `*` for a product");
    return v_error();
}

value eval_call(evaluator *ev, scope *in, const value *f, const value *arg, size_t n, span at)
{
    return call_value(ev, in, NULL, f, arg, n, at);
}

/* arguments in the order of a user function's parameters; named ones find their place */
static bool order_arguments(evaluator *ev, const value *f, const ast *call, value *arg, size_t n)
{
    const ast *params = f->kind == V_FN && f->fn.fn ? f->fn.fn->kid[0] : NULL;
    bool named = false;
    for (uint32_t i = 1; i < call->n; i++) named = named || call->kid[i]->kind == AST_ARG;
    if (!named) return true;
    if (!params || params->n != n) {
        if (params) return true;                            /* the arity message comes from the call */
        for (uint32_t i = 1; i < call->n; i++)
            if (call->kid[i]->kind == AST_ARG) {
                diag_error(ev->d, DIAG_UNKNOWN_OPTION, call->kid[i]->name_at, "no named argument '%s' here", call->kid[i]->name);
                return false;
            }
    }
    value *sorted = arena_array(ev->a, value, n);
    bool *have = arena_array(ev->a, bool, n);
    for (size_t i = 0; i < n; i++) {
        const ast *k = call->kid[i + 1];
        size_t at = i;
        if (k->kind == AST_ARG) {
            for (at = 0; at < n && params->kid[at]->name != k->name; at++) {}
            if (at == n) {
                diag *e = diag_error(ev->d, DIAG_UNKNOWN_OPTION, k->name_at, "'%s' has no argument '%s'", f->fn.fn->name, k->name);
                near nr = near_to(k->name);
                for (uint32_t m = 0; m < params->n; m++) near_try(&nr, params->kid[m]->name);
                diag_near(ev->d, e, &nr);
                return false;
            }
        }
        if (have[at]) {
            diag_error(ev->d, DIAG_DUPLICATE, k->at, "argument '%s' is given twice", params->kid[at]->name);
            return false;
        }
        have[at] = true;
        sorted[at] = arg[i];
    }
    memcpy(arg, sorted, n * sizeof *arg);
    return true;
}

static value eval_call_node(evaluator *ev, scope *in, const ast *e)
{
    value f = e->kid[0]->kind == AST_NAME ? name_value(ev, in, e->kid[0], true) : eval(ev, in, e->kid[0]);
    if (f.kind == V_DOFS) f = dofs_whole(ev, &f, e->kid[0]->at);
    size_t n = e->n - 1;
    if (f.kind == V_FN && f.fn.built && f.fn.built->lazy) return call_built(ev, in, e, f.fn.built, NULL, n, e->at);
    value *arg = arena_array(ev->a, value, n ? n : 1);
    bool bad = f.kind == V_ERROR;
    for (size_t i = 0; i < n; i++) {
        const ast *k = e->kid[i + 1];
        arg[i] = k->kind == AST_GEN ? eval_gen(ev, in, k) : eval(ev, in, k->kind == AST_ARG ? k->kid[0] : k);
        bad = bad || arg[i].kind == V_ERROR;
    }
    if (bad || !order_arguments(ev, &f, e, arg, n)) return v_error();
    return call_value(ev, in, e, &f, arg, n, e->at);
}

static value eval_subscript_node(evaluator *ev, scope *in, const ast *e)
{
    value v = e->kid[0]->kind == AST_NAME || e->kid[0]->kind == AST_MEMBER || e->kid[0]->kind == AST_PRIME || e->kid[0]->kind == AST_SUBSCRIPT
                  ? eval_keep(ev, in, e->kid[0]) : eval(ev, in, e->kid[0]);
    size_t n = e->n - 1;
    value *ix = arena_array(ev->a, value, n ? n : 1);
    bool bad = v.kind == V_ERROR;
    for (size_t i = 0; i < n; i++) {
        ix[i] = eval(ev, in, e->kid[i + 1]);
        bad = bad || ix[i].kind == V_ERROR;
    }
    return bad ? v_error() : eval_subscript(ev, &v, ix, n, e->n > 1 ? e->kid[1]->at : e->at);
}

/* ---- the evaluator ---- */

/* as eval, but a family of dofs is left whole, to be indexed */
value eval_keep(evaluator *ev, scope *in, const ast *e)
{
    switch (e->kind) {
    case AST_NAME: return name_value(ev, in, e, false);
    case AST_MEMBER: {
        value v = eval_keep(ev, in, e->kid[0]);
        return eval_member(ev, &v, e->name, e->name_at);
    }
    case AST_SUBSCRIPT: return eval_subscript_node(ev, in, e);
    case AST_PRIME: {
        value v = eval_keep(ev, in, e->kid[0]);
        return eval_prime(ev, &v, e->at);
    }
    default: return eval(ev, in, e);
    }
}

value eval(evaluator *ev, scope *in, const ast *e)
{
    value a, b;
    switch (e->kind) {
    case AST_NUM: return eval_number(ev, e);
    case AST_STR: return v_string(ev->a, e->text, e->len);
    case AST_BOOL: return v_bool(e->num != 0);
    case AST_NAME: case AST_MEMBER: case AST_PRIME: case AST_SUBSCRIPT: return plain(ev, eval_keep(ev, in, e), e->at);
    case AST_UNARY:
        a = eval(ev, in, e->kid[0]);
        return eval_op(ev, e->op, &a, NULL, NULL, e->at);
    case AST_BINARY:
        a = eval(ev, in, e->kid[0]);
        b = eval(ev, in, e->kid[1]);
        return eval_op(ev, e->op, &a, &b, NULL, e->at);
    case AST_IN: return eval_in(ev, in, e);
    case AST_RANGE: return eval_range(ev, in, e);
    case AST_IF: return eval_if(ev, in, e);
    case AST_CASES: return eval_cases(ev, in, e, 0);
    case AST_CALL: return eval_call_node(ev, in, e);
    case AST_VECTOR: return eval_vector(ev, in, e);
    case AST_MATRIX: return eval_matrix(ev, in, e);
    case AST_GEN: return eval_gen(ev, in, e);
    case AST_ERROR: return v_error();
    default:
        diag_error(ev->d, DIAG_SYNTAX, e->at, "an expression is needed here");
        return v_error();
    }
}

bool eval_scalar(evaluator *ev, scope *in, const ast *e, const char *what, value *out)
{
    *out = eval(ev, in, e);
    if (v_is_scalar(out)) return true;
    if (out->kind != V_ERROR) diag_error(ev->d, DIAG_TYPE, e->at, "%s must be a number, not %s", what, v_kind_text(ev->a, out));
    return false;
}

bool eval_constant(evaluator *ev, scope *in, const ast *e, const char *what, double *out)
{
    value v;
    if (!eval_scalar(ev, in, e, what, &v)) return false;
    if (v_scalar(&v, out)) return true;
    diag_error(ev->d, DIAG_NOT_CONSTANT, e->at, "%s must be known before the run", what);
    return false;
}

bool eval_integer(evaluator *ev, scope *in, const ast *e, const char *what, int32_t *out)
{
    double x;
    if (!eval_constant(ev, in, e, what, &x)) return false;
    if (x == floor(x) && fabs(x) < 2e9) {
        *out = (int32_t)x;
        return true;
    }
    diag_error(ev->d, DIAG_TYPE, e->at, "%s must be a whole number", what);
    return false;
}
