/* derive: every row of opcodes.def compared with differences in long double; total derivatives; terms too
   deep for recursion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <tgmath.h>
#include <time.h>
#include <cmocka.h>
#include "value/ir.h"

static arena *A;
static ir *g;
static ir_ref x, y, z;

static ir_ref in(in_kind kind, int base)
{
    return ir_in(g, (ir_input){ .kind = kind, .at.base = base });
}
static ir_ref k(double v)
{
    return ir_const(g, v);
}
#define op1(id, a)       ir_op1(g, OP_##id, (a))
#define op2(id, a, b)    ir_op2(g, OP_##id, (a), (b))
#define op3(id, a, b, c) ir_op(g, OP_##id, (a), (b), (c))

static int start(void **state)
{
    (void)state;
    A = arena_new(&allocator_libc, NULL);
    g = ir_new(A);
    x = in(IN_Q, 0), y = in(IN_Q, 1), z = in(IN_Q, 2);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    arena_free(A);
    return 0;
}

static double value_in(const ir_input *i, void *ud)
{
    return ((const double *)ud)[i->at.base];
}

/* The value column in long double, with the functions of tgmath.h. */
static long double wide(int op, long double a, long double b, long double c)
{
    switch (op) {
#define X(id, name, arity, value, deriv, unit, doc) \
    case OP_##id:                                   \
        return value;
#include "base/opcodes.def"
#undef X
    }
    return NAN;
}

/* Central difference for operand i. */
static long double difference(int op, const double *at, int i, long double h)
{
    long double p[3] = { at[0], at[1], at[2] }, m[3] = { at[0], at[1], at[2] };
    p[i] += h;
    m[i] -= h;
    return (wide(op, p[0], p[1], p[2]) - wide(op, m[0], m[1], m[2])) / (2 * h);
}

/* Three steps of Richardson extrapolation: the error is of order h^8. */
static long double slope(int op, const double *at, int i)
{
    long double d[4], h = 4e-3L;
    for (int n = 0; n < 4; n++) {
        d[n] = difference(op, at, i, h / (1 << n));
        long double f = 4;
        for (int j = n; j-- > 0; f *= 4)
            d[j] = d[j + 1] + (d[j + 1] - d[j]) / (f - 1);
    }
    return d[0];
}

static const double points[][3] = {
    { 0.3, 0.7, 1.1 },     { 0.62, 0.41, -0.5 }, { -0.4, 0.9, 2 },   { 0.85, -0.3, 0.2 },
    { -0.71, -0.23, 0.4 }, { 2.3, 1.7, -1.2 },   { 1.9, -3.1, 0.6 }, { 5.2, 2.4, 8 },
};
enum { POINTS = sizeof points / sizeof *points };

static bool check_point(int op, ir_ref d, const double *at, int i)
{
    long double want = slope(op, at, i);
    if (!isfinite(want) || !isfinite(wide(op, at[0], at[1], at[2])))
        return false; /* outside the domain */
    double got = ir_value(g, A, d, value_in, (void *)at);
    if (!(fabs(got - want) <= 1e-9L * (fabs(want) + 1e-3L)))
        fail_msg("%s: derivative %d at (%g, %g, %g) is %.15g, should be %.15g", op_name((op_code)op), i + 1,
                 at[0], at[1], at[2], got, (double)want);
    return true;
}

static void every_row(void **state)
{
    (void)state;
    ir_ref q[3] = { x, y, z };
    for (int op = 0; op < OP_COUNT; op++) {
        int n = op_arity((op_code)op);
        ir_ref f = ir_op(g, (op_code)op, x, n > 1 ? y : IR_NONE, n > 2 ? z : IR_NONE);
        for (int i = 0; i < n; i++) {
            int seen = 0;
            ir_ref d = ir_derive(g, f, q[i]);
            for (int p = 0; p < POINTS; p++)
                seen += check_point(op, d, points[p], i);
            if (seen < 4)
                fail_msg("%s: only %d points are in its domain", op_name((op_code)op), seen);
        }
    }
}

/* The same through the chain rule: f(u(x)) with u = x + sin(x)/4 in each operand. */
static void every_row_inside(void **state)
{
    (void)state;
    for (int op = 0; op < OP_COUNT; op++) {
        int n = op_arity((op_code)op);
        ir_ref u = op2(ADD, x, op2(DIV, op1(SIN, x), k(4))), v = op2(ADD, op2(MUL, k(1.5), x), k(0.3)),
               w = op1(EXP, x);
        ir_ref d = ir_derive(g, ir_op(g, (op_code)op, u, n > 1 ? v : IR_NONE, n > 2 ? w : IR_NONE), x);
        for (int p = 0; p < POINTS; p++) {
            double s = points[p][0], at[3] = { s + sin(s) / 4, 1.5 * s + 0.3, exp(s) };
            double du[3] = { 1 + cos(s) / 4, 1.5, exp(s) };
            long double want = 0;
            for (int i = 0; i < n; i++)
                want += slope(op, at, i) * du[i];
            if (!isfinite(want))
                continue;
            double got = ir_value(g, A, d, value_in, &s);
            if (!(fabs(got - want) <= 1e-8L * (fabs(want) + 1e-2L)))
                fail_msg("%s at %g: %.15g, should be %.15g", op_name((op_code)op), s, got, (double)want);
        }
    }
}

static void not_taken_is_not_seen(void **state)
{
    (void)state;
    /* the root has no derivative where this branch is not taken */
    ir_ref f = op3(SELECT, op2(GT, x, k(0)), op1(SQRT, x), op1(SQR, x)), d = ir_derive(g, f, x);
    double at[] = { -2, 0, 4 };
    assert_true(ir_value(g, A, d, value_in, &at[0]) == -4);
    assert_true(ir_value(g, A, d, value_in, &at[1]) == 0);
    assert_true(ir_value(g, A, d, value_in, &at[2]) == 0.25);
    /* one selection, not a sum of two */
    assert_int_equal(d, op3(SELECT, op2(GT, x, k(0)), op2(DIV, k(0.5), op1(SQRT, x)), op2(MUL, k(2), x)));
    ir_ref a = op1(SIN, x), b = op1(EXP, x); /* created in this order, which is also the order inside min */
    assert_int_equal(ir_derive(g, op2(MIN, a, b), x), op3(SELECT, op2(LE, a, b), op1(COS, x), b));
}

static bool has_log(ir_ref n)
{
    ir_walk *w = ir_walk_begin(g, &n, 1, IR_NONE, WALK_ALL);
    bool found = false;
    for (size_t i = 0; i < w->n; i++)
        found |= ir_at(g, w->order[i])->op == OP_LOG;
    ir_walk_end(g, w);
    return found;
}

static void powers(void **state)
{
    (void)state;
    static const double exponent[] = { 2, 3, 4, 5, 7, 16, 17, 24, -1, -2, -3, -20, 0.5, -0.5, 1.5, 2.5 };
    for (size_t i = 0; i < sizeof exponent / sizeof *exponent; i++) {
        double b = exponent[i];
        ir_ref d = ir_derive(g, op2(POW, x, k(b)), x);
        assert_false(has_log(d));
        static const double at[] = { 0.7, 1.3, -0.8 };
        for (int j = 0; j < (b == floor(b) ? 3 : 2); j++) {
            double want = b * pow(at[j], b - 1), got = ir_value(g, A, d, value_in, (void *)&at[j]);
            assert_true(fabs(got - want) <= 1e-13 * fabs(want));
        }
    }
    assert_int_equal(ir_derive(g, op2(POW, x, k(3)), x), op2(MUL, k(3), op1(SQR, x)));
    assert_int_equal(ir_derive(g, op2(POW, x, k(17)), x), op2(MUL, k(17), op2(POW, x, k(16))));
    assert_int_equal(ir_derive(g, op2(POW, x, y), x), op2(MUL, y, op2(POW, x, op2(SUB, y, k(1)))));
    assert_true(has_log(ir_derive(g, op2(POW, x, y), y)));
}

static void simple_forms(void **state)
{
    (void)state;
    /* a norm: its derivative is x over the norm, and its square is smooth at 0 */
    ir_ref r2 = op2(ADD, op1(SQR, x), op1(SQR, y)), r = op1(SQRT, r2);
    assert_int_equal(ir_derive(g, r, x), op2(DIV, x, r));
    assert_int_equal(ir_derive(g, op2(POW, r, k(2)), x), op2(MUL, k(2), x));
    assert_int_equal(ir_derive(g, op2(DIV, op2(MUL, z, op1(SQR, x)), k(2)), x), op2(MUL, x, z));
    assert_int_equal(ir_derive(g, op1(LOG, r2), z), k(0));
    assert_int_equal(ir_derive(g, x, x), k(1));
    assert_int_equal(ir_derive(g, k(3), x), k(0));
    ir_ref roots[] = { op1(SIN, y), x, IR_NONE, op2(MUL, y, y) }, out[4];
    ir_derive_all(g, roots, 4, y, out);
    assert_int_equal(out[0], op1(COS, y));
    assert_int_equal(out[1], k(0));
    assert_int_equal(out[2], k(0));
    assert_int_equal(out[3], op2(MUL, k(2), y));
}

static void second_derivatives_are_symmetric(void **state)
{
    (void)state;
    ir_ref f[] = {
        op2(MUL, op1(SIN, op2(MUL, x, y)), op1(EXP, op2(SUB, y, x))),
        op2(DIV, op1(SQRT, op2(ADD, op1(SQR, x), op1(EXP, y))), op2(ADD, x, op2(MUL, k(3), y))),
        op2(POW, op2(ADD, op1(SQR, x), k(1)), op1(COS, y)),
        op2(ATAN2, op2(MUL, x, y), op2(ADD, x, op1(SQR, y))),
        op2(MUL, op2(MAX, x, op2(MUL, x, y)), op1(TANH, y)),
        op1(ERF, op2(MUL, x, op1(SINH, y))),
    };
    for (size_t i = 0; i < sizeof f / sizeof *f; i++) {
        ir_ref xy = ir_derive(g, ir_derive(g, f[i], x), y), yx = ir_derive(g, ir_derive(g, f[i], y), x);
        for (int p = 0; p < POINTS; p++) {
            double at[2] = { fabs(points[p][0]), fabs(points[p][1]) };
            double a = ir_value(g, A, xy, value_in, at), b = ir_value(g, A, yx, value_in, at);
            assert_true(isfinite(a) && fabs(a - b) <= 1e-12 * (1 + fabs(a)));
        }
    }
}

static void rates(void **state)
{
    (void)state;
    ir_ref t = in(IN_TIME, 0), l = in(IN_PARAM, 0), v = in(IN_V, 0), a = in(IN_A, 0);
    assert_int_equal(ir_time_derivative(g, op2(MUL, l, op1(SIN, x))), op2(MUL, l, op2(MUL, v, op1(COS, x))));
    assert_int_equal(ir_time_derivative(g, x), v);
    assert_int_equal(ir_time_derivative(g, v), a);
    assert_int_equal(ir_time_derivative(g, t), k(1));
    assert_int_equal(ir_time_derivative(g, op2(ADD, l, in(IN_BOUND, 0))), k(0));
    ir_input member = { .kind = IN_Q, .at = { 3, { 2, 1 } } };
    ir_ref q = ir_in(g, member);
    member.kind = IN_V;
    assert_int_equal(ir_time_derivative(g, q), ir_in(g, member));
    assert_int_equal(ir_time_derivative(g, ir_time_derivative(g, op1(SQR, x))),
                     op2(MUL, k(2), op2(ADD, op1(SQR, v), op2(MUL, x, a))));
}

static ir_ref past(in_kind kind, ir_ref when)
{
    return ir_in(g, (ir_input){ .kind = kind, .at.base = 1, .arg = when });
}

static void past_values(void **state)
{
    (void)state;
    ir_ref t = in(IN_TIME, 0), s = op2(SUB, t, op1(SQR, x)), p = past(IN_PAST_Q, s),
           rate = past(IN_PAST_V, s);
    assert_int_equal(ir_derive(g, p, x), op2(MUL, rate, op2(MUL, k(-2), x)));
    assert_int_equal(ir_time_derivative(g, p), op2(MUL, rate, ir_time_derivative(g, s)));
    assert_int_equal(ir_time_derivative(g, past(IN_PAST_Q, op2(SUB, t, k(1)))),
                     past(IN_PAST_V, op2(SUB, t, k(1))));
    assert_int_equal(ir_derive(g, op2(MUL, p, y), p), y); /* like an independent variable */
    assert_int_equal(ir_time_derivative(g, rate), k(0));  /* not kept */
}

static void space(void **state)
{
    (void)state;
    ir_input u = { .kind = IN_FIELD }, ux = { .kind = IN_FIELD, .at.stride = { 1 } };
    ir_input uxy = { .kind = IN_FIELD, .at.stride = { 1, 1 } };
    ir_ref c0 = in(IN_COORD, 0), c1 = in(IN_COORD, 1);
    assert_int_equal(ir_space_derivative(g, op2(MUL, c0, c1), 0), c1);
    assert_int_equal(ir_space_derivative(g, ir_in(g, u), 0), ir_in(g, ux));
    assert_int_equal(ir_space_derivative(g, ir_in(g, ux), 1), ir_in(g, uxy));
    assert_int_equal(ir_space_derivative(g, op1(SQR, ir_in(g, u)), 0),
                     op2(MUL, k(2), op2(MUL, ir_in(g, u), ir_in(g, ux))));
}

/* Seeds that compute derivatives themselves. */
static ir_ref seed_nested(ir *h, ir_ref input, void *ud)
{
    (void)ud;
    return input == y ? ir_derive(h, ir_op1(h, OP_EXP, ir_op1(h, OP_SIN, x)), x) : IR_NONE;
}

static void seeds_nest(void **state)
{
    (void)state;
    ir_ref d = ir_derive(g, op1(EXP, op1(SIN, x)), x);
    assert_int_equal(ir_total(g, op2(MUL, op1(TANH, z), y), seed_nested, NULL), op2(MUL, op1(TANH, z), d));
}

static double seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static void deep_chain(void **state)
{
    (void)state;
    ir_ref n = x;
    for (int i = 0; i < 500000; i++)
        n = op2(ADD, op1(SIN, n), y);
    assert_true(ir_count(g) >= 1000000);
    double t0 = seconds();
    ir_ref dx = ir_derive(g, n, x), dy = ir_derive(g, n, y);
    double s = (seconds() - t0) / 2;
    print_message("%.2f s to derive a chain of 1e6 nodes\n", s);
#ifndef __SANITIZE_ADDRESS__
    assert_true(s < 1);
#endif
    double at[2] = { 0.3, 1 };
    assert_true(isfinite(ir_value(g, A, dx, value_in, at)) && isfinite(ir_value(g, A, dy, value_in, at)));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, start, stop)
    const struct CMUnitTest tests[] = {
        T(every_row),  T(every_row_inside), T(not_taken_is_not_seen),
        T(powers),     T(simple_forms),     T(second_derivatives_are_symmetric),
        T(rates),      T(past_values),      T(space),
        T(seeds_nest), T(deep_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
