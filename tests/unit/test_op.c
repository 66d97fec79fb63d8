/* The rows of opcodes.def: each compared with an independent evaluation in long double, and its names. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "base/op.h"

typedef long double ld;

/* what the sentence of the row says, written independently of the row */
static ld reference(op_code op, ld a, ld b, ld c)
{
    switch (op) {
    case OP_ADD:
        return a + b;
    case OP_SUB:
        return a - b;
    case OP_MUL:
        return a * b;
    case OP_DIV:
        return a / b;
    case OP_NEG:
        return 0 - a;
    case OP_POW:
        return powl(a, b);
    case OP_SQR:
        return powl(a, 2);
    case OP_SQRT:
        return powl(a, 0.5L);
    case OP_EXP:
        return expl(a);
    case OP_LOG:
        return logl(a);
    case OP_SIN:
        return sinl(a);
    case OP_COS:
        return cosl(a);
    case OP_TAN:
        return sinl(a) / cosl(a);
    case OP_ASIN:
        return asinl(a);
    case OP_ACOS:
        return acosl(a);
    case OP_ATAN:
        return atanl(a);
    case OP_ATAN2:
        return atan2l(a, b);
    case OP_SINH:
        return (expl(a) - expl(-a)) / 2;
    case OP_COSH:
        return (expl(a) + expl(-a)) / 2;
    case OP_TANH:
        return (expl(2 * a) - 1) / (expl(2 * a) + 1);
    case OP_ABS:
        return a < 0 ? -a : a;
    case OP_SIGN:
        return a < 0 ? -1 : a > 0 ? 1 : 0;
    case OP_FLOOR:
        return floorl(a);
    case OP_CEIL:
        return ceill(a);
    case OP_MOD: {
        ld r = fmodl(a, b);
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    case OP_MIN:
        return a < b ? a : b;
    case OP_MAX:
        return a > b ? a : b;
    case OP_LT:
        return a < b ? 1 : 0;
    case OP_LE:
        return b < a ? 0 : 1;
    case OP_GT:
        return b < a ? 1 : 0;
    case OP_GE:
        return a < b ? 0 : 1;
    case OP_EQ:
        return a < b || b < a ? 0 : 1;
    case OP_NE:
        return a < b || b < a ? 1 : 0;
    case OP_AND:
        return a == 0 ? 0 : b == 0 ? 0 : 1;
    case OP_OR:
        return a == 0 && b == 0 ? 0 : 1;
    case OP_NOT:
        return a == 0 ? 1 : 0;
    case OP_SELECT:
        return a == 0 ? c : b;
    case OP_ERF:
        return erfl(a);
    case OP_DIRAC:
        return a == 0 ? INFINITY : 0;
    default:
        fail_msg("the operation '%s' has no reference value", op_name(op));
        return 0;
    }
}

static void values(void **state)
{
    (void)state;
    static const double at[] = { -2.75, -1, -0.5, -0.0, 0, 0.25, 0.5, 1, 1.5, 3, 7.125 };
    enum { N = sizeof at / sizeof *at };
    for (int op = 0; op < OP_COUNT; op++) {
        int checked = 0;
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                double a = at[i], b = at[j], c = 2 * at[j] + 1, got = op_value((op_code)op, a, b, c);
                ld want = reference((op_code)op, a, b, c);
                /* outside the domain both are not finite */
                assert_int_equal(!!isfinite(got), !!isfinite(want));
                if (!isfinite(got))
                    continue;
                if (fabsl(got - want) > 8e-16L * (1 + fabsl(want)))
                    fail_msg("%s(%g, %g, %g) is %.17g, not %.17Lg", op_name((op_code)op), a, b, c, got, want);
                checked++;
            }
        assert_true(checked >= 3 * N);
    }
    assert_true(isnan(op_value(OP_NONE, 1, 2, 3)));
}

/* operands beyond the arity do not matter */
static void arities(void **state)
{
    (void)state;
    for (int op = 0; op < OP_COUNT; op++) {
        int arity = op_arity((op_code)op);
        assert_in_range(arity, 1, 3);
        double x = op_value((op_code)op, 0.5, 0.25, 2);
        double y = op_value((op_code)op, 0.5, arity > 1 ? 0.25 : 9, arity > 2 ? 2 : 9);
        assert_true(x == y);
    }
    assert_int_equal(op_arity(OP_NONE), 0);
}

static void names(void **state)
{
    (void)state;
    for (int op = 0; op < OP_COUNT; op++) {
        op_code found = op_find(op_name((op_code)op));
        if (op == OP_NEG)
            assert_int_equal(found, OP_SUB);
        else
            assert_int_equal(found, op);
        assert_true(strlen(op_doc((op_code)op)) > 3);
        assert_in_range(op_unit_rule((op_code)op), UNIT_SAME, UNIT_ANGLE);
        assert_int_equal(op_compares((uint32_t)op), op_unit_rule((op_code)op) == UNIT_SAMEB);
        assert_int_equal(op_decides((uint32_t)op),
                         op_compares((uint32_t)op) || op_unit_rule((op_code)op) == UNIT_BOOL);
    }
    assert_int_equal(op_find("sin"), OP_SIN);
    assert_int_equal(op_find("if"), OP_SELECT);
    assert_int_equal(op_find("sinus"), OP_NONE);
    assert_int_equal(op_find(""), OP_NONE);
    assert_int_equal(op_unit_rule(OP_SQRT), UNIT_SQRT);
    assert_int_equal(op_unit_rule(OP_LT), UNIT_SAMEB);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(values), cmocka_unit_test(arities),
                                        cmocka_unit_test(names) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
