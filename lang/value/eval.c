#include "eval.h"
#include <limits.h>
#include <math.h>
#include <string.h>
#include "base/budget.h"
#include "base/whole.h"
#include "model/model.h"

enum { EVAL_WORK = 64 }; /* for an expression, in addition to what it allocates */

/* ---- scopes ---- */

static look table_find(scope *s, evaluator *ev, sym name, span at, value *out)
{
    (void)ev;
    (void)at;
    table_scope *t = (table_scope *)s;
    uint64_t *k = map64_get(&t->at, sym_key(name));
    if (!k)
        return LOOK_NO;
    *out = t->values.at[*k];
    return out->kind == V_ERROR ? LOOK_ERROR : LOOK_YES;
}

static void table_names(scope *s, near *n)
{
    table_scope *t = (table_scope *)s;
    for (size_t i = 0; i < t->order.n; i++)
        near_try(n, t->order.at[i]);
}

table_scope *table_scope_new(arena *a, scope *up)
{
    table_scope *t = arena_make(a, table_scope);
    t->base = (scope){ .up = up, .find = table_find, .names = table_names };
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

/* names that are correct in other languages */
const char *eval_name_instead(sym name)
{
    static const char *const list[][2] = {
        { "der", "a derivative in time is x'; of an expression it is d(expression, t)" },
        { "diff", "a derivative in time is x'; of an expression it is d(expression, t)" },
        { "ddt", "a derivative in time is x'; of an expression it is d(expression, t)" },
        { "deriv", "a derivative in time is x'; of an expression it is d(expression, t)" },
        { "D", "a derivative in time is x'; of an expression it is d(expression, t)" },
        { "Dt", "a derivative in time is x'; of an expression it is d(expression, t)" },
        { "derivative", "a derivative in time is x'; of an expression it is d(expression, t)" },
        { "ddot", "the second derivative in time is x''" },
        { "ddt2", "the second derivative in time is x''" },
        { "dt", "a derivative in time is x'; the step of a run is an option of its backend: h = 1e-3" },
        { "print", "an expression by itself is printed" },
        { "disp", "an expression by itself is printed" },
        { "println", "an expression by itself is printed" },
        { "len", "count(x) is the number of elements" },
        { "length", "count(x) is the number of elements" },
        { "size", "count(x) is the number of elements" },
        { "numel", "count(x) is the number of elements" },
        { "printf", "an expression by itself is printed" },
        { "end", "a block ends with }; the last value of a result is last(x)" },
        { "begin", "a block is written { … }" },
        { "equation", "equations are written in the model as they are: x'' = -k*x" },
        { "int", "floor(x) rounds down" },
        { "arctan", "write atan(x)" },
        { "arcsin", "write asin(x)" },
        { "arccos", "write acos(x)" },
        { "heaviside", "write if x > 0 then 1 else 0" },
        { "iif", "write if a then b else c" },
        { "ifelse", "write if a then b else c" },
        { "True", "write true" },
        { "False", "write false" },
        { "None", "CDL has no null value" },
        { "null", "CDL has no null value" },
        { "nil", "CDL has no null value" },
        { "NULL", "CDL has no null value" },
        { "nothing", "CDL has no null value" },
        { "nan", "a value is always a number" },
        { "NaN", "a value is always a number" },
        { "self", "names of the model are written as they are: x, not self.x" },
        { "time", "the time is t" },
        { "M_PI", "write pi" },
        { "π", "write pi" },
        { "PI", "write pi" },
        { "simulate", "write run model for 3" },
        { "solve", "write run model for 3" },
        { "integrate", "write run model for 3; an integral is integral(f(s) for s in a..b)" },
        { "echo", "an expression by itself is printed" },
        { "Modelica", "write the number, or declare a param" },
        { "piecewise", "write cases { -1 if x < 0; 1 otherwise }" },
        { "sgn", "sign(x) is a number; Sgn(x) is a set, for inclusions" },
        { "connect", "bodies are joined by constraints: constraint pin: a.p = b.p" },
        { "np", "functions have no prefix: sin(x)" },
        { "numpy", "functions have no prefix: sin(x)" },
        { "math", "functions have no prefix: sin(x)" },
        { "Math", "functions have no prefix: sin(x)" },
        { "std", "functions have no prefix: sin(x); a library is imported with use std.planar" },
        { "isclose", "write expect a == b within 1e-9" },
        { "ones", "write [1 for i in 1..n]" },
        { "arange", "a range is written 1..9, and linspace(a, b, n) gives n numbers" },
        { "reinit", "an event is when x < 0 { x' = -x' }" },
        { "inv", "there is no inverse of a matrix; write its elements" },
        { "ln", "the natural logarithm is log(x)" },
        { "fabs", "write abs(x)" },
        { "pow", "a power is written with ^" },
        { "range", "a range is written 1..9" },
        { "e", "e is never predefined: declare a param e, or write exp(1)" },
        { "plane", "halfspace(n, c) is the set of points x with dot(n, x) <= c" },
        { "sphere", "ball(centre, radius)" },
    };
    for (size_t k = 0; k < sizeof list / sizeof *list; k++)
        if (!strcmp(name, list[k][0]))
            return list[k][1];
    size_t n = strlen(name);
    return n > 3 && !strcmp(name + n - 3, "dot") ? list[0][1] : NULL;
}

static value name_unknown(evaluator *ev, scope *in, sym name, span at, bool callee)
{
    if (diag_doubtful(ev->d, name))
        return v_error();
    diag *e = diag_error(ev->d, DIAG_UNKNOWN_NAME, at, "unknown name '%s'", name);
    near n = near_to(name);
    for (scope *s = in; s; s = s->up)
        if (s->names)
            s->names(s, &n);
    diag_doubt(ev->d, name); /* once is enough */
    if (eval_name_instead(name))
        diag_hint(ev->d, e, "%s", eval_name_instead(name));
    else if (near_best(&n))
        diag_near(ev->d, e, &n);
    else if (ev->g)
        diag_hint(ev->d, e, "declare it with %s", callee ? "fn" : "param, let or dof");
    return v_error();
}

/* functions, series y(1), past values x(t - tau), fields u(x), and objects that answer to it */
static bool can_be_called(const evaluator *ev, const value *v)
{
    if (v->kind == V_NUM) {
        value x = v_count(v) ? v_element(v, 0) : v_num(0);
        const ir_input *in = x.num.r0 && ev->g ? ir_input_of(ev->g, x.num.r0) : NULL;
        return in && (in->kind == IN_Q || in->kind == IN_V || in->kind == IN_A || in->kind == IN_FIELD);
    }
    if (v->kind == V_OBJECT)
        return v->object.in && v->object.in->call;
    return v->kind == V_FN || v->kind == V_SERIES || v->kind == V_DOFS;
}

/* callee: a call ignores names that cannot be called, so floor(x) is a function beside a constraint floor,
   and max(y) beside let max = 3; if there is nothing else, the first one is reported */
static value name_value(evaluator *ev, scope *in, const ast *e, bool callee)
{
    value v, passed = { .kind = V_ERROR };
    look found = LOOK_NO;
    for (scope *s = in; s && found == LOOK_NO; s = s->up) {
        ev->callee = callee;
        found = s->find(s, ev, e->name, e->at, &v);
        ev->callee = false;
        if (!callee || found != LOOK_YES || can_be_called(ev, &v))
            continue;
        found = LOOK_NO;
        if (passed.kind == V_ERROR && v.kind != V_MODEL)
            passed = v;
    }
    if (found == LOOK_NO && passed.kind != V_ERROR)
        return passed;
    if (found == LOOK_NO)
        return name_unknown(ev, in, e->name, e->at, callee);
    /* a function of the language in place of a definition with a syntax error */
    if (found == LOOK_YES && !callee && v.kind == V_FN && v.fn.built && diag_doubtful(ev->d, e->name))
        return v_error();
    return found == LOOK_YES ? v : v_error();
}

static bool name_known(evaluator *ev, scope *in, const ast *e)
{
    value v;
    look found = LOOK_NO;
    for (scope *s = in; s && found == LOOK_NO; s = s->up)
        found = s->find(s, ev, e->name, e->at, &v);
    return found != LOOK_NO;
}

const ast *eval_leibniz(const ast *e)
{
    if (e->kind != AST_BINARY || e->op != OP_DIV || e->kid[1]->kind != AST_NAME)
        return NULL;
    const ast *over = e->kid[0];
    while (over->kind == AST_UNARY || (over->kind == AST_BINARY && over->op == OP_MUL))
        over = over->kid[over->n - 1];
    if (over->kind != AST_NAME)
        return NULL;
    const char *a = over->name, *b = e->kid[1]->name;
    bool is = (!strncmp(a, "d2", 2) && a[2] && !strcmp(b, "dt2")) ||
              (a[0] == 'd' && a[1] && !strcmp(b, "dt"));
    return is ? over : NULL;
}

void eval_leibniz_report(diags *d, const ast *e)
{
    const ast *over = eval_leibniz(e);
    const char *a = over->name, *b = e->kid[1]->name;
    bool twice = b[2] == '2';
    diag *x = diag_error(d, DIAG_UNKNOWN_NAME, (span){ e->at.file, over->at.begin, e->at.end },
                         "unknown names '%s' and '%s'", a, b);
    diag_hint(d, x, "a derivative in time is %s%s", a + 1 + twice, twice ? "''" : "'");
}

/* ---- literals and operators ---- */

/* Nm as N*m: the name of a unit that consists of two others, not a typo such as kgg; NULL if it is not
 */
static const char *unit_product(arena *a, const char *name)
{
    double factor;
    dim first, second;
    for (size_t k = 1; name[k]; k++)
        if (k < 3 && strlen(name + k) < 3 && unit_find(arena_strndup(a, name, k), &factor, &first) &&
            unit_find(name + k, &factor, &second) && !dim_equal(first, second))
            return arena_printf(a, "%.*s*%s", (int)k, name, name + k);
    return NULL;
}

static value eval_number(evaluator *ev, const ast *e)
{
    if (e->n == 0 || !e->kid[0])
        return v_num(e->num);
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
            for (size_t k = 0; unit_name(k); k++)
                near_try(&n, unit_name(k));
            static const char *const written_out[][2] = {
                { "meter", "m" },   { "metre", "m" },    { "meters", "m" },    { "second", "s" },
                { "seconds", "s" }, { "sec", "s" },      { "kilogram", "kg" }, { "newton", "N" },
                { "Newton", "N" },  { "degree", "deg" }, { "degrees", "deg" }, { "radian", "rad" }
            };
            for (size_t k = 0; k < sizeof written_out / sizeof *written_out; k++)
                if (!strcmp(term->name, written_out[k][0])) {
                    diag_hint(ev->d, err, "write [%s]", written_out[k][1]);
                    return v_error();
                }
            const char *product = unit_product(ev->a, term->name);
            if (product)
                diag_hint(ev->d, err, "write [%s]", product);
            else
                diag_near(ev->d, err, &n);
            return v_error();
        }
        factor *= pow(f, p);
        d = dim_mul(d, dim_pow(td, p, &ok));
        if (!ok) {
            diag_error(ev->d, DIAG_UNKNOWN_UNIT, term->at,
                       "the exponent of a unit must be a multiple of 1/12");
            return v_error();
        }
    }
    return v_num_unit(unit_scale(e->num, factor), d);
}

static bool other_than_index(const ir_input *in, void *ud)
{
    (void)ud;
    return in->kind != IN_INDEX;
}

/* the condition, where it depends on the indices of the family alone; IR_NONE otherwise */
static ir_ref index_condition(const evaluator *ev, const value *c)
{
    bool symbolic = c->kind == V_BOOL && c->num.r0 && ev->family && ev->family->n;
    return symbolic && !ir_depends(ev->g, c->num.r0, other_than_index, NULL) ? c->num.r0 : IR_NONE;
}

/* Is the condition known before the run, including conditions on the indices of the current family? */
static bool condition_known(const evaluator *ev, const value *c, bool *holds)
{
    double k;
    if (c->kind == V_BOOL && v_scalar(c, &k)) {
        *holds = k != 0;
        return true;
    }
    for (const assumption *x = ev->assumed; x && c->kind == V_BOOL; x = x->up)
        if (x->condition == c->num.r0) {
            *holds = x->holds;
            return true;
        }
    return false;
}

static value eval_if(evaluator *ev, scope *in, const ast *e)
{
    value c = eval(ev, in, e->kid[0]);
    bool holds = false, known = condition_known(ev, &c, &holds);
    if (c.kind == V_ERROR)
        return c;
    if (known)
        return eval(ev, in, e->kid[holds ? 1 : 2]);
    ir_ref outer = ev->pruned;
    if (!outer)
        ev->pruned = index_condition(ev, &c);
    value a = eval(ev, in, e->kid[1]), b = eval(ev, in, e->kid[2]);
    ev->pruned = outer;
    return eval_op(ev, OP_SELECT, &c, &a, &b, e->kid[0]->at);
}

/* a case whose condition is not known before the run */
typedef struct {
    value condition, then;
    span at;
} open_case;
typedef vec(open_case) open_cases;

/* The value if none of the open cases applies.  Conditions are evaluated in order, until one is known to
 * hold. */
static value cases_rest(evaluator *ev, scope *in, const ast *e, open_cases *open)
{
    for (uint32_t k = 0; k < e->n; k++) {
        const ast *then = e->kid[k]->kid[0], *condition = e->kid[k]->kid[1];
        if (!condition && k + 1 < e->n) {
            diag_error(ev->d, DIAG_SYNTAX, e->kid[k + 1]->at, "no case comes after 'otherwise'");
            return v_error();
        }
        if (!condition)
            return eval(ev, in, then);
        value c = eval(ev, in, condition);
        bool holds = false, known = condition_known(ev, &c, &holds);
        if (c.kind == V_ERROR)
            return c;
        if (known && holds)
            return eval(ev, in, then);
        if (known)
            continue;
        if (!ev->pruned)
            ev->pruned = index_condition(ev, &c);
        open_case one = { c, eval(ev, in, then), condition->at };
        *vec_push(ev->a, open) = one;
    }
    diag *d = diag_error(ev->d, DIAG_SYNTAX, e->at, "the cases do not cover everything");
    diag_hint(ev->d, d, "end them with `value otherwise`");
    return v_error();
}

/* one after the other, not one inside the other: there may be thousands */
static value eval_cases(evaluator *ev, scope *in, const ast *e)
{
    open_cases open = { 0 };
    ir_ref outer = ev->pruned;
    value v = cases_rest(ev, in, e, &open);
    ev->pruned = outer;
    for (size_t k = open.n; k-- > 0;)
        v = eval_op(ev, OP_SELECT, &open.at[k].condition, &open.at[k].then, &v, open.at[k].at);
    return v;
}

static value eval_in(evaluator *ev, scope *in, const ast *e)
{
    value x = eval(ev, in, e->kid[0]), s = eval(ev, in, e->kid[1]);
    if (x.kind == V_ERROR || s.kind == V_ERROR)
        return v_error();
    if (s.kind == V_RANGE) {
        value lo = eval_op(ev, OP_GE, &x, s.range.lo, NULL, e->at),
              hi = eval_op(ev, OP_LE, &x, s.range.hi, NULL, e->at);
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
    diag_error(ev->d, DIAG_TYPE, e->kid[1]->at, "'in' needs a range or a vector here, not %s",
               v_kind_text(ev->a, &s));
    return v_error();
}

static value eval_range(evaluator *ev, scope *in, const ast *e)
{
    value v = { .kind = V_RANGE };
    v.range.lo = arena_make(ev->a, value);
    v.range.hi = arena_make(ev->a, value);
    *v.range.lo = eval(ev, in, e->kid[0]);
    *v.range.hi = eval(ev, in, e->kid[1]);
    if (v.range.lo->kind == V_ERROR || v.range.hi->kind == V_ERROR)
        return v_error();
    for (int i = 0; i < 2; i++) {
        const value *end = i ? v.range.hi : v.range.lo;
        if (!v_is_scalar(end)) {
            diag_error(ev->d, DIAG_TYPE, e->kid[i]->at, "the ends of a range are numbers, not %s",
                       v_kind_text(ev->a, end));
            return v_error();
        }
    }
    if (!eval_same_unit(ev, v.range.lo->num.unit, v.range.hi->num.unit,
                        "the ends of a range have different dimensions", e->at))
        return v_error();
    return v;
}

/* collects values of one kind: numbers become a vector, others a list */
static value collect(evaluator *ev, const value *at, size_t n, span where)
{
    bool numbers = true;
    for (size_t i = 0; i < n; i++) {
        if (at[i].kind == V_ERROR)
            return v_error();
        numbers = numbers && v_is_scalar(&at[i]);
    }
    if (!numbers) {
        value v = { .kind = V_LIST };
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
        u = dim_known(u, at[i].num.unit);
    }
    v.num.unit = same ? u : dim_any();
    return v;
}

static value eval_vector(evaluator *ev, scope *in, const ast *e)
{
    if (e->n == 1 && e->kid[0]->kind == AST_GEN)
        return eval_gen(ev, in, e->kid[0]);
    value *at = arena_array(ev->a, value, e->n ? e->n : 1);
    for (uint32_t i = 0; i < e->n; i++)
        at[i] = eval(ev, in, e->kid[i]);
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
            diag *d = diag_error(ev->d, DIAG_SHAPE, row->at, "this row has %u elements, the first one %d",
                                 row->n, cols);
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

typedef struct {
    evaluator *ev;
    const ast *gen;
    vec(value) out;
    bool failed;
} generator;

static bool gen_fuel(generator *g)
{
    if (g->ev->fuel-- > 0)
        return true;
    diag_error(g->ev->d, DIAG_LIMIT, g->gen->at, "this makes too many terms");
    g->failed = true;
    return false;
}

static void gen_level(generator *g, scope *in, uint32_t level)
{
    evaluator *ev = g->ev;
    const ast *e = g->gen;
    if (level + 1 == e->n) { /* all indices bound: where?, then the value */
        if (e->kid[level]) {
            value c = eval(ev, in, e->kid[level]);
            double k;
            if (c.kind == V_ERROR || !v_scalar(&c, &k)) {
                if (c.kind != V_ERROR && ev->family && ev->family->n)
                    ev->needs_members = true;
                else if (c.kind != V_ERROR)
                    diag_error(ev->d, DIAG_NOT_CONSTANT, e->kid[level]->at,
                               "the condition after 'where' must be known before the run");
                g->failed = true;
                return;
            }
            if (k == 0)
                return;
        }
        value v = eval(ev, in, e->kid[0]);
        if (v.kind == V_ERROR)
            g->failed = true;
        else
            *vec_push(ev->a, &g->out) = v;
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
            if (ev->family && ev->family->n)
                ev->needs_members = true;
            else
                diag_error(ev->d, DIAG_NOT_CONSTANT, ix->kid[0]->at,
                           "the ends of this range must be known before the run");
            g->failed = true;
            return;
        }
        if (hi - lo >= (double)ev->fuel) {
            diag_error(ev->d, DIAG_LIMIT, ix->kid[0]->at,
                       "this range has too many members: %lld are left for sums and lists",
                       (long long)ev->fuel);
            g->failed = true;
            return;
        }
        for (double i = lo; i <= hi && !g->failed; i += 1) {
            if (!gen_fuel(g))
                return;
            table_scope_set(s, ix->name, v_num(i));
            gen_level(g, &s->base, level + 1);
        }
    } else if (r.kind == V_NUM && r.num.rank == 1) {
        for (int32_t i = 0; i < r.num.n[0] && !g->failed; i++) {
            if (!gen_fuel(g))
                return;
            table_scope_set(s, ix->name, v_element(&r, i));
            gen_level(g, &s->base, level + 1);
        }
    } else if (r.kind == V_LIST) {
        for (size_t i = 0; i < r.list.n && !g->failed; i++) {
            if (!gen_fuel(g))
                return;
            table_scope_set(s, ix->name, r.list.at[i]);
            gen_level(g, &s->base, level + 1);
        }
    } else {
        diag_error(ev->d, DIAG_TYPE, ix->kid[0]->at, "'for' runs over a range or a vector, not %s",
                   v_kind_text(ev->a, &r));
        g->failed = true;
    }
}

value eval_gen(evaluator *ev, scope *in, const ast *gen)
{
    generator g = { .ev = ev, .gen = gen };
    gen_level(&g, in, 1);
    return g.failed ? v_error() : collect(ev, g.out.at, g.out.n, gen->at);
}

/* ---- calls ---- */

void fn_check_params(diags *d, const ast *fn)
{
    const ast *list = fn->kid[0];
    for (uint32_t i = 0; i < list->n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (list->kid[i]->name == list->kid[k]->name) {
                diag *e = diag_error(d, DIAG_DUPLICATE, list->kid[i]->at,
                                     "two arguments of '%s' are called '%s'", fn->name, list->kid[i]->name);
                diag_second(d, e, list->kid[k]->at, "the first one");
            }
}

/* Known values of calls of user functions with the same arguments in one expression: functions that call
   each other twice would otherwise double the work at each level.  Only numbers count as arguments. */
typedef struct known_call {
    const ast *fn;
    scope *in;
    const value *arg;
    value v;
    uint64_t next; /* with the same hash: its place + 1, or 0 */
} known_call;
typedef struct known_calls {
    map64 at; /* hash -> place + 1 */
    vec(known_call) list;
} known_calls;

static bool same_number(const value *a, const value *b)
{
    return a->kind == b->kind && a->num.r0 == b->num.r0 && dim_equal(a->num.unit, b->num.unit) &&
           a->num.unit.any == b->num.unit.any && !memcmp(&a->num.d0, &b->num.d0, sizeof a->num.d0);
}

/* false: the call cannot be kept */
static bool call_hash(const value *f, const value *arg, size_t n, uint64_t *out)
{
    uint64_t h = hash64(sym_key(f->fn.fn), sym_key(f->fn.in));
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        if ((arg[i].kind != V_NUM && arg[i].kind != V_BOOL) || arg[i].num.rank)
            return false;
        memcpy(&bits, &arg[i].num.d0, sizeof bits);
        h = hash64(hash64(h, bits), (uint64_t)arg[i].num.r0);
    }
    *out = h >> 1;
    return true;
}

static const known_call *call_known(const evaluator *ev, const value *f, const value *arg, size_t n,
                                    uint64_t hash)
{
    const uint64_t *at = map64_get(&ev->known->at, hash);
    for (uint64_t k = at ? *at : 0; k; k = ev->known->list.at[k - 1].next) {
        const known_call *c = &ev->known->list.at[k - 1];
        size_t same = 0;
        while (same < n && c->fn == f->fn.fn && c->in == f->fn.in && same_number(&c->arg[same], &arg[same]))
            same++;
        if (same == n && c->fn == f->fn.fn && c->in == f->fn.in)
            return c;
    }
    return NULL;
}

static void call_keep(evaluator *ev, const value *f, const value *arg, size_t n, uint64_t hash,
                      const value *v)
{
    value *copy = arena_array(ev->a, value, n ? n : 1);
    memcpy(copy, arg, n * sizeof *arg);
    uint64_t *at = map64_put(&ev->known->at, hash);
    known_call *c = vec_push(ev->a, &ev->known->list);
    *c = (known_call){ f->fn.fn, f->fn.in, copy, *v, *at };
    *at = ev->known->list.n;
}

static value call_body(evaluator *ev, const value *f, const value *arg, size_t n)
{
    const ast *fn = f->fn.fn;
    table_scope *s = table_scope_new(ev->a, f->fn.in);
    for (size_t i = 0; i < n; i++)
        table_scope_set(s, fn->kid[0]->kid[i]->name, arg[i]);
    ev->depth++;
    value v = eval(ev, &s->base, fn->kid[1]);
    ev->depth--;
    return v;
}

static value call_user(evaluator *ev, const value *f, const value *arg, size_t n, span at)
{
    const ast *fn = f->fn.fn, *params = fn->kid[0];
    if (n != params->n) {
        diag *e = diag_error(ev->d, DIAG_ARITY, at, "'%s' takes %u %s, not %zu", fn->name, params->n,
                             params->n == 1 ? "argument" : "arguments", n);
        diag_second(ev->d, e, fn->name_at, "declared here");
        return v_error();
    }
    if (ev->depth >= EVAL_MAX_DEPTH) {
        diag_error(ev->d, DIAG_LIMIT, at, "'%s' calls itself more than %d times", fn->name, EVAL_MAX_DEPTH);
        return v_error();
    }
    uint64_t hash;
    if (++ev->calls < EVAL_MANY_CALLS || !call_hash(f, arg, n, &hash))
        return call_body(ev, f, arg, n);
    if (!ev->known) {
        ev->known = arena_make(ev->a, known_calls);
        ev->known->at.a = ev->a;
    }
    const known_call *known = call_known(ev, f, arg, n, hash);
    if (known)
        return known->v;
    int64_t drawn = ev->drawn;
    value v = call_body(ev, f, arg, n);
    if (v.kind != V_ERROR && ev->drawn == drawn && ev->known)
        call_keep(ev, f, arg, n, hash, &v);
    return v;
}

static value call_built(evaluator *ev, scope *in, const ast *call, const builtin *b, const value *arg,
                        size_t n, span at)
{
    if ((int)n < b->min || (b->max >= 0 && (int)n > b->max)) {
        diag *e;
        if (b->min == b->max)
            e = diag_error(ev->d, DIAG_ARITY, at, "'%s' takes %d %s, not %zu", b->name, b->min,
                           b->min == 1 ? "argument" : "arguments", n);
        else if (b->max < 0)
            e = diag_error(ev->d, DIAG_ARITY, at, "'%s' takes at least %d %s, not %zu", b->name, b->min,
                           b->min == 1 ? "argument" : "arguments", n);
        else
            e = diag_error(ev->d, DIAG_ARITY, at, "'%s' takes %d to %d arguments, not %zu", b->name, b->min,
                           b->max, n);
        if (b->signature)
            diag_hint(ev->d, e, "%s", b->signature);
        return v_error();
    }
    if (!b->call) { /* a row of opcodes.def */
        op_code op = (op_code)(b - op_builtin);
        return eval_op(ev, op, &arg[0], n > 1 ? &arg[1] : NULL, n > 2 ? &arg[2] : NULL, at);
    }
    return b->call(ev, in, call, arg, n);
}

static value call_value(evaluator *ev, scope *in, const ast *call, const value *f, const value *arg, size_t n,
                        span at)
{
    for (size_t i = 0; i < n; i++)
        if (arg[i].kind == V_ERROR)
            return v_error();
    switch (f->kind) {
    case V_ERROR:
        return *f;
    case V_FN:
        return f->fn.built ? call_built(ev, in, call, f->fn.built, arg, n, at) : call_user(ev, f, arg, n, at);
    case V_SERIES:
        return eval_series_at(ev, f, arg, n, at);
    case V_NUM: {
        value x = v_count(f) ? v_element(f, 0) : v_num(0);
        const ir_input *i = x.num.r0 && ev->g ? ir_input_of(ev->g, x.num.r0) : NULL;
        if (i && i->kind == IN_FIELD)
            return eval_field_at(ev, f, arg, n, i, at);
        if (i && n == 1 && (i->kind == IN_Q || i->kind == IN_V))
            return eval_past(ev, f, &arg[0], at);
        break;
    }
    case V_OBJECT:
        if (f->object.in && f->object.in->call)
            return f->object.in->call(f->object.in, ev, f, arg, n, at);
        break;
    default:
        break;
    }
    const ir_input *of = f->kind == V_NUM && v_is_scalar(f) && f->num.r0 && ev->g
                             ? ir_input_of(ev->g, f->num.r0)
                             : NULL;
    if (of && (of->kind == IN_Q || of->kind == IN_V || of->kind == IN_A)) {
        diag *past = diag_error(ev->d, of->kind == IN_A ? DIAG_TYPE : DIAG_ARITY, at,
                                of->kind == IN_A ? "second derivatives have no past values"
                                                 : "a past value needs one time");
        diag_hint(ev->d, past,
                  of->kind == IN_A ? "the value of now is x'', without (t)"
                                   : "write x(t - tau) or x'(t - tau)");
        return v_error();
    }
    diag *e = diag_error(ev->d, DIAG_TYPE, at, "%s cannot be called", v_kind_text(ev->a, f));
    if (f->kind == V_NUM)
        diag_hint(ev->d, e,
                  v_is_scalar(f)     ? "write `*` for a product"
                  : f->num.rank == 2 ? "an element is written A[i, j]"
                                     : "an element is written x[i]");
    return v_error();
}

value eval_call(evaluator *ev, scope *in, const value *f, const value *arg, size_t n, span at)
{
    return call_value(ev, in, NULL, f, arg, n, at);
}

/* arguments in the order of a user function's parameters; named ones are put in their place */
static bool order_arguments(evaluator *ev, const value *f, const ast *call, value *arg, size_t n)
{
    const ast *params = f->kind == V_FN && f->fn.fn ? f->fn.fn->kid[0] : NULL;
    bool named = false;
    for (uint32_t i = 1; i < call->n; i++)
        named = named || call->kid[i]->kind == AST_ARG;
    if (!named)
        return true;
    if (!params || params->n != n) {
        if (params)
            return true; /* the arity message comes from the call */
        for (uint32_t i = 1; i < call->n; i++)
            if (call->kid[i]->kind == AST_ARG) {
                diag_error(ev->d, DIAG_UNKNOWN_OPTION, call->kid[i]->name_at, "no named argument '%s' here",
                           call->kid[i]->name);
                return false;
            }
    }
    value *sorted = arena_array(ev->a, value, n);
    bool *have = arena_array(ev->a, bool, n);
    for (size_t i = 0; i < n; i++) {
        const ast *k = call->kid[i + 1];
        size_t at = i;
        if (k->kind == AST_ARG) {
            for (at = 0; at < n && params->kid[at]->name != k->name; at++) {
            }
            if (at == n) {
                diag *e = diag_error(ev->d, DIAG_UNKNOWN_OPTION, k->name_at, "'%s' has no argument '%s'",
                                     f->fn.fn->name, k->name);
                near nr = near_to(k->name);
                for (uint32_t m = 0; m < params->n; m++)
                    near_try(&nr, params->kid[m]->name);
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
    value f = e->kid[0]->kind == AST_NAME ? name_value(ev, in, e->kid[0], true)
                                          : eval_keep(ev, in, e->kid[0]);
    bool turns = f.kind == V_DOFS && f.dofs.dof->rotation && f.dofs.given == f.dofs.dof->ndim;
    if (f.kind == V_DOFS)
        f = eval_dofs(ev, &f, e->kid[0]->at);
    size_t n = e->n - 1;
    if (f.kind == V_FN && f.fn.built && f.fn.built->lazy)
        return call_built(ev, in, e, f.fn.built, NULL, n, e->at);
    value *arg = arena_array(ev->a, value, n ? n : 1);
    bool bad = f.kind == V_ERROR;
    for (size_t i = 0; i < n; i++) {
        const ast *k = e->kid[i + 1];
        arg[i] = k->kind == AST_GEN ? eval_gen(ev, in, k) : eval(ev, in, k->kind == AST_ARG ? k->kid[0] : k);
        bad = bad || arg[i].kind == V_ERROR;
    }
    if (bad || !order_arguments(ev, &f, e, arg, n))
        return v_error();
    if (turns && n == 1)
        return eval_past(ev, &f, &arg[0], e->at);
    return call_value(ev, in, e, &f, arg, n, e->at);
}

/* m, m/s, m*s^-2: names of units in a product */
static bool is_unit_text(const ast *e)
{
    double factor;
    dim d;
    if (e->kind == AST_NAME)
        return unit_find(e->name, &factor, &d);
    if (e->kind == AST_BINARY && e->op == OP_DIV && e->kid[0]->kind == AST_NUM && e->kid[0]->num == 1)
        return is_unit_text(e->kid[1]);
    if (e->kind == AST_BINARY && (e->op == OP_MUL || e->op == OP_DIV))
        return is_unit_text(e->kid[0]) && is_unit_text(e->kid[1]);
    return e->kind == AST_BINARY && e->op == OP_POW && is_unit_text(e->kid[0]);
}

static bool is_list(const ast *e)
{
    return e->kind == AST_VECTOR || e->kind == AST_MATRIX;
}

bool eval_unit_behind(const ast *e)
{
    const ast *of = e->kid[0];
    bool number = of->kind == AST_BINARY || of->kind == AST_UNARY || of->kind == AST_NUM ||
                  of->kind == AST_CALL;
    /* k [m], not y[m]; [0, 1] [m], not [0, 1][i] */
    bool apart = e->n == 2 && e->kid[1]->at.begin > of->at.end + 1;
    number = number || (apart && (of->kind == AST_NAME || is_list(of)));
    return e->kind == AST_SUBSCRIPT && e->n == 2 && number && is_unit_text(e->kid[1]);
}

void eval_unit_report(diags *d, const ast *e)
{
    diag *x = diag_error(d, DIAG_SYNTAX, e->kid[1]->at, "a unit follows a number, not %s",
                         is_list(e->kid[0]) ? "a vector or matrix" : "an expression");
    diag_hint(d, x, "multiply by one unit: … * 1 [%s]", span_text(d, e->kid[1]->at, d->a));
}

static value eval_subscript_node(evaluator *ev, scope *in, const ast *e)
{
    value v = e->kid[0]->kind == AST_NAME || e->kid[0]->kind == AST_MEMBER || e->kid[0]->kind == AST_PRIME ||
                      e->kid[0]->kind == AST_SUBSCRIPT
                  ? eval_keep(ev, in, e->kid[0])
                  : eval(ev, in, e->kid[0]);
    if ((v_is_scalar(&v) || is_list(e->kid[0])) && eval_unit_behind(e)) {
        eval_unit_report(ev->d, e);
        return v_error();
    }
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

static value plain(evaluator *ev, value v, span at)
{
    return v.kind == V_DOFS ? eval_dofs(ev, &v, at) : v;
}

/* as eval, but a family of dofs is kept as a whole, to be indexed */
value eval_keep(evaluator *ev, scope *in, const ast *e)
{
    switch (e->kind) {
    case AST_NAME:
        return name_value(ev, in, e, false);
    case AST_MEMBER: {
        value v = eval_keep(ev, in, e->kid[0]);
        return eval_member(ev, &v, e->name, e->name_at);
    }
    case AST_SUBSCRIPT:
        return eval_subscript_node(ev, in, e);
    case AST_PRIME: {
        value v = eval_keep(ev, in, e->kid[0]);
        return eval_prime(ev, &v, e->at);
    }
    default:
        return eval(ev, in, e);
    }
}

static value eval_node(evaluator *ev, scope *in, const ast *e)
{
    value a, b;
    switch (e->kind) {
    case AST_NUM:
        return eval_number(ev, e);
    case AST_STR:
        return v_string(ev->a, e->text, e->len);
    case AST_BOOL:
        return v_bool(e->num != 0);
    case AST_NAME:
    case AST_MEMBER:
    case AST_PRIME:
    case AST_SUBSCRIPT:
        return plain(ev, eval_keep(ev, in, e), e->at);
    case AST_UNARY:
        a = eval(ev, in, e->kid[0]);
        return eval_op(ev, e->op, &a, NULL, NULL, e->at);
    case AST_BINARY:
        if (eval_leibniz(e) && !name_known(ev, in, eval_leibniz(e)) && !name_known(ev, in, e->kid[1])) {
            eval_leibniz_report(ev->d, e);
            return v_error();
        }
        a = eval(ev, in, e->kid[0]);
        b = eval(ev, in, e->kid[1]);
        return eval_op(ev, e->op, &a, &b, NULL, e->at);
    case AST_IN:
        return eval_in(ev, in, e);
    case AST_RANGE:
        return eval_range(ev, in, e);
    case AST_IF:
        return eval_if(ev, in, e);
    case AST_CASES:
        return eval_cases(ev, in, e);
    case AST_CALL:
        return eval_call_node(ev, in, e);
    case AST_VECTOR:
        return eval_vector(ev, in, e);
    case AST_MATRIX:
        return eval_matrix(ev, in, e);
    case AST_GEN:
        return eval_gen(ev, in, e);
    case AST_ERROR:
        return v_error();
    default:
        diag_error(ev->d, DIAG_SYNTAX, e->at, "an expression is needed here");
        return v_error();
    }
}

value eval(evaluator *ev, scope *in, const ast *e)
{
    if (ev->nest == 0) {
        ev->deep = false;
        ev->calls = 0;
        ev->known = NULL;
    }
    if (ev->nest >= EVAL_MAX_NEST) {
        if (!ev->deep)
            diag_error(ev->d, DIAG_LIMIT, e->at,
                       "functions and definitions that use each other nest too deep here");
        ev->deep = true;
        return v_error();
    }
    budget *b = arena_budget(ev->a);
    if (b)
        b->at = e->at;
    arena_tick(ev->a, EVAL_WORK);
    ev->nest++;
    value v = eval_node(ev, in, e);
    ev->nest--;
    return v;
}

bool eval_scalar(evaluator *ev, scope *in, const ast *e, const char *what, value *out)
{
    *out = eval(ev, in, e);
    if (v_is_scalar(out))
        return true;
    if (out->kind != V_ERROR)
        diag_error(ev->d, DIAG_TYPE, e->at, "%s must be a number, not %s", what, v_kind_text(ev->a, out));
    return false;
}

bool eval_constant(evaluator *ev, scope *in, const ast *e, const char *what, double *out)
{
    value v;
    if (!eval_scalar(ev, in, e, what, &v))
        return false;
    if (v_scalar(&v, out))
        return true;
    diag_error(ev->d, DIAG_NOT_CONSTANT, e->at, "%s must be known before the run", what);
    return false;
}

bool eval_integer(evaluator *ev, scope *in, const ast *e, const char *what, int32_t *out)
{
    double x;
    int64_t whole;
    if (!eval_constant(ev, in, e, what, &x))
        return false;
    if (whole_number(x, -2e9, 2e9, &whole)) {
        *out = (int32_t)whole;
        return true;
    }
    if (x == floor(x))
        diag_error(ev->d, DIAG_LIMIT, e->at, "%s is at most 2*10^9", what);
    else
        diag_error(ev->d, DIAG_TYPE, e->at, "%s must be a whole number", what);
    return false;
}
