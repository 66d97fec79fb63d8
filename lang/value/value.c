#include "value.h"
#include <math.h>
#include <string.h>

value v_num(double d)
{
    return v_num_unit(d, dim_any());
}

value v_num_unit(double d, dim u)
{
    value v = { .kind = V_NUM };
    v.num = (num){ .d0 = d, .unit = u };
    return v;
}

value v_node(ir_ref r, dim u)
{
    value v = { .kind = V_NUM };
    v.num = (num){ .r0 = r, .unit = u };
    return v;
}

value v_bool(bool b)
{
    value v = { .kind = V_BOOL };
    v.num = (num){ .d0 = b, .unit = dim_none() };
    return v;
}

value v_string(arena *a, const char *s, size_t n)
{
    value v = { .kind = V_STRING };
    v.str.at = arena_strndup(a, s, n);
    v.str.len = n;
    return v;
}

value v_vector(arena *a, int32_t n)
{
    value v = { .kind = V_NUM };
    v.num = (num){ .rank = 1, .n = { n, 1 }, .d = arena_array(a, double, n > 0 ? n : 1), .unit = dim_any() };
    return v;
}

value v_matrix(arena *a, int32_t rows, int32_t cols)
{
    value v = v_vector(a, rows * cols);
    v.num.rank = 2;
    v.num.n[0] = rows;
    v.num.n[1] = cols;
    return v;
}

bool v_is_scalar(const value *v)
{
    return v->kind == V_NUM && v->num.rank == 0;
}

bool v_scalar(const value *v, double *d)
{
    if ((v->kind != V_NUM && v->kind != V_BOOL) || v->num.rank != 0 || v->num.r0 != IR_NONE)
        return false;
    *d = v->num.d0;
    return true;
}

int32_t v_count(const value *v)
{
    return v->num.rank == 0 ? 1 : v->num.rank == 1 ? v->num.n[0] : v->num.n[0] * v->num.n[1];
}

value v_element(const value *v, int32_t k)
{
    if (v->num.rank == 0)
        return *v;
    value e = v_num_unit(v->num.d[k], v->num.unit);
    if (v->num.r)
        e.num.r0 = v->num.r[k];
    return e;
}

void v_set(arena *a, value *v, int32_t k, const value *x)
{
    if (v->num.rank == 0) {
        v->num.d0 = x->num.d0;
        v->num.r0 = x->num.r0;
        return;
    }
    if (x->num.r0 && !v->num.r)
        v->num.r = arena_array(a, ir_ref, v_count(v));
    v->num.d[k] = x->num.d0;
    if (v->num.r)
        v->num.r[k] = x->num.r0;
}

ir_ref v_ref(ir *g, const value *v)
{
    return v->num.r0 != IR_NONE ? v->num.r0 : ir_const(g, v->num.d0);
}

const char *v_kind_text(arena *a, const value *v)
{
    switch (v->kind) {
    case V_ERROR:
        return "an error";
    case V_NUM:
        if (v->num.rank == 0)
            return "a number";
        if (v->num.rank == 1)
            return arena_printf(a, "a vector of %d numbers", v->num.n[0]);
        return arena_printf(a, "a %d x %d matrix", v->num.n[0], v->num.n[1]);
    case V_BOOL:
        return "a truth value";
    case V_STRING:
        return "a string";
    case V_RANGE:
        return "a range";
    case V_LIST:
        return "a list";
    case V_FN:
        return "a function";
    case V_SET:
        return "a set";
    case V_SERIES:
        return "a series";
    case V_MODEL:
        return "a model";
    case V_OBJECT:
        return "an object";
    case V_DOFS:
        return "a family of degrees of freedom";
    case V_WORD:
        return "a word";
    }
    return "a value";
}

static void print_scalar(text *out, double d, ir_ref r, bool json)
{
    if (r)
        text_puts(out, json ? "null" : "<formula>");
    else if (json)
        text_json_num(out, d);
    else
        text_num(out, d);
}

static void print_num(text *out, const num *x, bool json)
{
    if (x->rank == 0) {
        print_scalar(out, x->d0, x->r0, json);
        return;
    }
    int32_t rows = x->rank == 2 ? x->n[0] : 1, cols = x->rank == 2 ? x->n[1] : x->n[0];
    if (json && x->rank == 2)
        text_putc(out, '[');
    for (int32_t i = 0; i < rows; i++) {
        text_puts(out, i == 0 || json ? (i && json ? ", [" : "[") : "; ");
        for (int32_t j = 0; j < cols; j++) {
            if (j)
                text_puts(out, ", ");
            print_scalar(out, x->d[i * cols + j], x->r ? x->r[i * cols + j] : IR_NONE, json);
        }
        if (json || i + 1 == rows)
            text_putc(out, ']');
    }
    if (rows == 0)
        text_puts(out, "[]");
    if (json && x->rank == 2)
        text_putc(out, ']');
}

static void print_value(text *out, const value *v, bool json)
{
    switch (v->kind) {
    case V_NUM:
        print_num(out, &v->num, json);
        break;
    case V_BOOL:
        text_puts(out, v->num.r0 ? "<condition>" : v->num.d0 != 0 ? "true" : "false");
        break;
    case V_STRING:
        text_json_str(out, v->str.at, v->str.len);
        break;
    case V_WORD:
        if (json)
            text_json_str(out, v->str.at, v->str.len);
        else
            text_putn(out, v->str.at, v->str.len);
        break;
    case V_RANGE:
        if (json)
            text_putc(out, '[');
        print_value(out, v->range.lo, json);
        text_puts(out, json ? ", " : "..");
        print_value(out, v->range.hi, json);
        if (json)
            text_putc(out, ']');
        break;
    case V_LIST:
        text_putc(out, '[');
        for (size_t i = 0; i < v->list.n; i++) {
            if (i)
                text_puts(out, ", ");
            print_value(out, &v->list.at[i], json);
        }
        text_putc(out, ']');
        break;
    case V_SERIES:
        text_putc(out, '[');
        for (int64_t i = 0; i < v->series.n; i++) {
            if (i)
                text_puts(out, ", ");
            print_scalar(out, v->series.y[i * v->series.stride], IR_NONE, json);
        }
        text_putc(out, ']');
        break;
    default: {
        const char *t = v_kind_text(out->a, v);
        if (json)
            text_json_str(out, t, strlen(t));
        else
            text_printf(out, "<%s>", t);
    }
    }
}

void v_print(text *out, const value *v)
{
    print_value(out, v, false);
    if (v->kind == V_NUM && !v->num.unit.any && v_count(v) > 0) {
        dim none = dim_none();
        if (!dim_equal(v->num.unit, none)) {
            text_puts(out, " [");
            dim_text(out, v->num.unit);
            text_putc(out, ']');
        }
    }
}

void v_print_json(text *out, const value *v)
{
    print_value(out, v, true);
}
