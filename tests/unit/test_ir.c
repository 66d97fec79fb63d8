/* ir: simplification rule by rule; random terms compared with plain evaluation, and after printing and
   reading; walks on deep chains. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include "value/ir.h"

static arena *A;
static ir *g;
static ir_ref x, y, z;

static ir_ref q(int i)
{
    return ir_in(g, (ir_input){ .kind = IN_Q, .at.base = i });
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
    x = q(0), y = q(1), z = q(2);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    arena_free(A);
    return 0;
}

static void name_q(text *out, const ir *h, const ir_input *in, void *ud)
{
    (void)ud;
    static const char *const names[] = { "x", "y", "z" };
    if (in->kind == IN_TIME)
        text_puts(out, "t");
    else if (in->kind == IN_Q && in->at.base < 3)
        text_puts(out, names[in->at.base]);
    else if (in->kind == IN_V && in->at.base < 3)
        text_printf(out, "%s'", names[in->at.base]);
    else if (in->kind == IN_PAST_Q) {
        text_printf(out, "%s(", names[in->at.base]);
        ir_print(out, h, in->arg, name_q, NULL);
        text_putc(out, ')');
    } else
        text_printf(out, "in%d_%d", (int)in->kind, in->at.base);
}

static const char *shown(ir_ref n)
{
    text s = { .a = A };
    ir_print(&s, g, n, name_q, NULL);
    return s.at;
}
#define assert_shown(n, s) assert_string_equal(shown(n), s)

/* ---- rules ---- */

static void equal_terms_are_one_node(void **state)
{
    (void)state;
    assert_int_equal(op2(ADD, x, y), op2(ADD, y, x));
    assert_int_equal(op2(MUL, op1(SIN, x), y), op2(MUL, y, op1(SIN, x)));
    assert_int_not_equal(op2(SUB, x, y), op2(SUB, y, x));
    assert_int_equal(q(0), x);
    assert_int_not_equal(ir_in(g, (ir_input){ .kind = IN_V }), x);
    assert_int_not_equal(ir_in(g, (ir_input){ .kind = IN_Q, .at.stride = { 1 } }), x);
    assert_int_equal(k(-0.0), k(0));
}

static void constants_fold(void **state)
{
    (void)state;
    assert_int_equal(op2(ADD, k(2), k(3)), k(5));
    assert_int_equal(op2(POW, k(2), k(0.5)), k(sqrt(2)));
    assert_int_equal(op3(SELECT, k(1), x, y), x);
    assert_int_equal(op2(LT, k(1), k(2)), k(1));
    assert_int_equal(op2(DIV, k(1), k(0)), k(INFINITY));
    assert_false(ir_is_const(g, op1(LOG, k(-1)), NULL)); /* an expression without a value stays as it is */
    assert_false(ir_is_const(g, op2(MUL, k(INFINITY), k(0)), NULL));
}

static void sums(void **state)
{
    (void)state;
    assert_int_equal(op2(ADD, x, k(0)), x);
    assert_int_equal(op2(SUB, x, k(0)), x);
    assert_int_equal(op2(SUB, x, x), k(0));
    assert_int_equal(op2(SUB, k(0), x), op1(NEG, x));
    assert_int_equal(op2(ADD, x, op1(NEG, y)), op2(SUB, x, y));
    assert_int_equal(op2(ADD, op1(NEG, x), y), op2(SUB, y, x));
    assert_int_equal(op2(SUB, x, op1(NEG, y)), op2(ADD, x, y));
    assert_int_equal(op2(ADD, x, op2(MUL, k(-2), y)), op2(SUB, x, op2(MUL, k(2), y)));
    assert_int_equal(op2(ADD, x, op2(DIV, y, k(-3))), op2(SUB, x, op2(DIV, y, k(3))));
    assert_int_equal(op2(SUB, op1(NEG, x), y), op1(NEG, op2(ADD, x, y)));
    assert_int_equal(op2(ADD, op2(ADD, x, k(1)), k(2)), op2(ADD, k(3), x));
    assert_int_equal(op2(ADD, op2(ADD, x, k(1)), k(-1)), x);
    assert_int_equal(op2(ADD, op2(ADD, x, k(1)), op2(ADD, y, k(2))), op2(ADD, op2(ADD, x, y), k(3)));
    assert_int_equal(op2(SUB, op2(ADD, x, k(1)), op2(ADD, y, k(1))), op2(SUB, x, y));
    assert_int_equal(op2(SUB, k(3), op2(ADD, x, k(1))), op2(SUB, k(2), x));
    assert_int_equal(op2(SUB, k(3), op2(SUB, k(1), x)), op2(ADD, x, k(2)));
    assert_int_equal(op2(ADD, op2(SUB, k(3), x), k(1)), op2(SUB, k(4), x));
    assert_int_equal(op2(ADD, op1(NEG, x), k(3)), op2(SUB, k(3), x));
    assert_int_equal(op2(ADD, x, x), op2(MUL, k(2), x));
    assert_int_equal(op2(SUB, op2(MUL, k(3), x), op2(MUL, k(2), x)), x);
    assert_int_equal(op2(ADD, op2(DIV, x, k(3)), op2(MUL, k(-5), x)), op2(MUL, k(1.0 / 3 - 5), x));
}

static void products(void **state)
{
    (void)state;
    assert_int_equal(op2(MUL, x, k(0)), k(0));
    assert_int_equal(op2(MUL, k(1), x), x);
    assert_int_equal(op2(MUL, x, k(-1)), op1(NEG, x));
    assert_int_equal(op2(MUL, x, x), op1(SQR, x));
    assert_int_equal(op2(MUL, op2(MUL, x, k(2)), k(3)), op2(MUL, k(6), x));
    assert_int_equal(op2(MUL, op2(MUL, k(2), x), y), op2(MUL, k(2), op2(MUL, x, y)));
    assert_int_equal(op2(MUL, op1(NEG, x), y), op1(NEG, op2(MUL, x, y)));
    assert_int_equal(op2(MUL, op1(NEG, x), op1(NEG, y)), op2(MUL, x, y));
    assert_int_equal(op2(MUL, x, op2(DIV, k(3), y)), op2(MUL, k(3), op2(DIV, x, y)));
    assert_int_equal(op2(MUL, k(2), op2(DIV, k(3), y)), op2(DIV, k(6), y));
    /* factors that may overflow are not combined */
    ir_ref huge = op2(MUL, k(1e300), op2(MUL, k(1e250), x));
    assert_true(isfinite(ir_at(g, ir_at(g, huge)->a)->k) && ir_at(g, ir_at(g, huge)->b)->op == OP_MUL);
}

static void quotients(void **state)
{
    (void)state;
    assert_int_equal(op2(DIV, x, k(1)), x);
    assert_int_equal(op2(DIV, k(0), x), k(0));
    assert_int_equal(op2(DIV, x, k(4)), op2(MUL, k(0.25), x));
    assert_int_equal(ir_at(g, op2(DIV, x, k(3)))->op, OP_DIV);
    assert_int_equal(op2(DIV, op2(DIV, x, k(3)), k(5)), op2(DIV, x, k(15)));
    assert_int_equal(op2(MUL, op2(DIV, x, k(3)), k(3)), x);
    assert_int_equal(op2(DIV, op2(MUL, k(2), x), k(2)), x);
    assert_int_equal(op2(DIV, op1(NEG, x), y), op1(NEG, op2(DIV, x, y)));
    assert_int_equal(op2(DIV, x, op1(NEG, y)), op1(NEG, op2(DIV, x, y)));
    assert_int_equal(op2(DIV, op2(MUL, k(6), x), op2(MUL, k(2), y)), op2(MUL, k(3), op2(DIV, x, y)));
    assert_int_equal(op2(DIV, k(1), op2(MUL, k(2), y)), op2(DIV, k(0.5), y));
    assert_int_equal(ir_at(g, op2(DIV, x, x))->op, OP_DIV); /* not 1, because x may be 0 */
    assert_int_equal(ir_at(g, op2(DIV, x, k(0)))->op, OP_DIV);
}

static void signs(void **state)
{
    (void)state;
    assert_int_equal(op1(NEG, op1(NEG, x)), x);
    assert_int_equal(op1(NEG, op2(SUB, x, y)), op2(SUB, y, x));
    assert_int_equal(op1(NEG, op2(MUL, k(2), x)), op2(MUL, k(-2), x));
    assert_int_equal(op2(MUL, k(-2), op2(SUB, x, y)), op2(MUL, k(2), op2(SUB, y, x)));
    assert_int_equal(op1(SIN, op1(NEG, x)), op1(NEG, op1(SIN, x)));
    assert_int_equal(op1(COS, op2(MUL, k(-2), x)), op1(COS, op2(MUL, k(2), x)));
    assert_int_equal(op1(ABS, op1(NEG, x)), op1(ABS, x));
    assert_int_equal(op1(ABS, op2(MUL, k(-3), x)), op2(MUL, k(3), op1(ABS, x)));
    assert_int_equal(op1(ABS, op1(SQR, x)), op1(SQR, x));
    assert_int_equal(op1(ABS, op2(ADD, op1(SQR, x), op1(EXP, y))), op2(ADD, op1(SQR, x), op1(EXP, y)));
}

static void powers(void **state)
{
    (void)state;
    assert_int_equal(op2(POW, x, k(0)), k(1));
    assert_int_equal(op2(POW, x, k(1)), x);
    assert_int_equal(op2(POW, x, k(2)), op1(SQR, x));
    assert_int_equal(op2(POW, x, k(3)), op2(MUL, x, op1(SQR, x)));
    assert_int_equal(op2(POW, x, k(4)), op1(SQR, op1(SQR, x)));
    assert_int_equal(op2(POW, x, k(-1)), op2(DIV, k(1), x));
    assert_int_equal(op2(POW, x, k(-2)), op2(DIV, k(1), op1(SQR, x)));
    assert_int_equal(op2(POW, x, k(0.5)), op1(SQRT, x));
    assert_int_equal(op2(POW, k(1), x), k(1));
    assert_int_equal(ir_at(g, op2(POW, x, k(2.5)))->op, OP_POW);
    assert_int_equal(op1(SQR, op1(NEG, x)), op1(SQR, x));
    assert_int_equal(op1(SQR, op1(ABS, x)), op1(SQR, x));
    assert_int_equal(op1(SQR, op2(MUL, k(3), x)), op2(MUL, k(9), op1(SQR, x)));
    assert_int_equal(op1(SQRT, op1(SQR, x)), op1(ABS, x));
    /* the square of a root is simplified only if the domain stays the same */
    assert_int_equal(ir_at(g, op1(SQR, op1(SQRT, x)))->op, OP_SQR);
    ir_ref r2 = op2(ADD, op1(SQR, x), op1(SQR, y));
    assert_int_equal(op2(POW, op1(SQRT, r2), k(2)), r2);
    assert_int_equal(op1(LOG, op1(EXP, x)), x);
}

static void truths(void **state)
{
    (void)state;
    ir_ref c = op2(LT, x, y);
    assert_int_equal(op2(LT, x, x), k(0));
    assert_int_equal(op2(GE, x, x), k(1));
    assert_int_equal(op2(EQ, x, y), op2(EQ, y, x));
    assert_int_equal(op2(NE, c, k(0)), c);
    assert_int_equal(op2(EQ, c, k(0)), op1(NOT, c));
    assert_int_equal(op1(NOT, op1(NOT, c)), c);
    assert_int_equal(op1(NOT, op2(EQ, x, y)), op2(NE, x, y));
    assert_int_equal(op1(NOT, op1(NOT, x)), op2(NE, x, k(0)));
    assert_int_equal(op2(AND, c, k(1)), c);
    assert_int_equal(op2(AND, k(0), c), k(0));
    assert_int_equal(op2(OR, c, k(0)), c);
    assert_int_equal(op2(OR, c, k(3)), k(1));
    assert_int_equal(op2(AND, c, c), c);
    assert_int_equal(op2(AND, c, op2(GE, x, y)), k(0));
    assert_int_equal(op2(OR, c, op1(NOT, c)), k(1));
    assert_int_equal(op2(MIN, x, x), x);
    assert_int_equal(op2(MAX, y, x), op2(MAX, x, y));
}

static void choices(void **state)
{
    (void)state;
    ir_ref c = op2(LT, x, y), d = op2(GE, x, y);
    assert_int_equal(op3(SELECT, k(0), x, y), y);
    assert_int_equal(op3(SELECT, c, z, z), z);
    assert_int_equal(op3(SELECT, op1(NOT, c), x, y), op3(SELECT, c, y, x));
    assert_int_equal(op3(SELECT, c, op3(SELECT, c, x, y), z), op3(SELECT, c, x, z));
    assert_int_equal(op2(ADD, op3(SELECT, c, x, k(0)), op3(SELECT, c, k(0), y)), op3(SELECT, c, x, y));
    assert_int_equal(op2(ADD, op3(SELECT, c, x, k(0)), op3(SELECT, d, y, k(0))), op3(SELECT, c, x, y));
    assert_int_equal(op2(SUB, op3(SELECT, c, x, k(0)), op3(SELECT, d, y, k(0))),
                     op3(SELECT, c, x, op1(NEG, y)));
}

/* ---- printing ---- */

static void formulas(void **state)
{
    (void)state;
    ir_ref s = op1(SIN, y);
    assert_shown(op2(SUB, op2(MUL, k(2), x), op2(DIV, s, k(3))), "2*x - sin(y)/3");
    assert_shown(op1(SQR, x), "x^2");
    assert_shown(op2(POW, x, k(3)), "x^3");
    assert_shown(op2(POW, x, k(7)), "x^7");
    assert_shown(op1(SQR, op2(ADD, x, y)), "(x + y)^2");
    assert_shown(op1(NEG, op1(SQR, x)), "-x^2");
    assert_shown(op2(POW, x, k(-2.5)), "x^(-2.5)");
    assert_shown(op2(POW, x, op1(NEG, y)), "x^(-y)");
    assert_shown(op2(POW, op2(POW, x, y), z), "(x^y)^z");
    assert_shown(op2(POW, x, op2(POW, y, z)), "x^y^z");
    assert_shown(op2(POW, k(-2), x), "(-2)^x");
    assert_shown(op2(ADD, op2(ADD, x, y), z), "x + y + z");
    assert_shown(op2(SUB, x, op2(SUB, y, z)), "x - (y - z)");
    assert_shown(op2(ADD, op2(ADD, x, y), op2(ADD, op1(SIN, x), z)), "x + y + (z + sin(x))");
    assert_shown(op2(ADD, x, k(-1)), "x - 1");
    assert_shown(op2(SUB, k(1), x), "1 - x");
    assert_shown(op2(MUL, k(2), op2(MUL, x, y)), "2*x*y");
    assert_shown(op2(MUL, k(-2), op2(DIV, x, y)), "-2*x/y");
    assert_shown(op2(DIV, x, op2(MUL, y, z)), "x/(y*z)");
    assert_shown(op2(MUL, z, op2(DIV, x, y)), "x/y*z");
    assert_shown(op2(MUL, k(0.5), op1(SQR, x)), "x^2/2");
    assert_shown(op2(DIV, op2(ADD, x, y), k(-3)), "-(x + y)/3");
    assert_shown(op1(NEG, op2(MUL, x, y)), "-x*y");
    assert_shown(op1(NEG, op2(ADD, x, y)), "-(x + y)");
    assert_shown(op3(SELECT, op2(LT, x, k(0)), op1(NEG, x), y), "if x < 0 then -x else y");
    assert_shown(op2(MUL, k(2), op3(SELECT, x, y, z)), "2*(if x then y else z)");
    ir_ref c = op2(LT, x, y), d = op2(GE, y, z);
    assert_shown(op3(SELECT, op2(AND, c, op2(OR, d, op1(NOT, op2(EQ, x, z)))), x, y),
                 "if x < y and (y >= z or x != z) then x else y");
    assert_shown(op2(MIN, x, op2(ATAN2, y, z)), "min(x, atan2(y, z))");
    assert_shown(op2(ADD, x, k(INFINITY)), "x + inf");
    ir_ref s0 = op2(SUB, ir_in(g, (ir_input){ .kind = IN_TIME }), k(0.5));
    assert_shown(ir_in(g, (ir_input){ .kind = IN_PAST_Q, .arg = s0 }), "x(t - 0.5)");
}

static void dump(void **state)
{
    (void)state;
    ir_ref roots[] = { op2(MUL, k(4), op2(ADD, y, op1(SIN, x))), x };
    text s = { .a = A };
    ir_dump(&s, g, roots, 2, name_q, NULL);
    assert_string_equal(
        s.at, "%1 = const 4\n%2 = in y\n%3 = in x\n%4 = sin %3\n%5 = add %2 %4\n%6 = mul %1 %5\nout %6 %3\n");
}

/* Shared terms double with each step: the text is truncated before memory runs out. */
static void formula_is_cut(void **state)
{
    (void)state;
    ir_ref n = x;
    for (int i = 0; i < 80; i++)
        n = op2(ADD, op1(SIN, n), op1(COS, n));
    text s = { .a = A };
    ir_print(&s, g, n, name_q, NULL);
    assert_non_null(strstr(s.at, "…"));
    assert_true(s.n < 20u * IR_PRINT_MAX);
}

/* ---- random terms ---- */

static uint64_t seed;
static uint32_t dice(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

static const double at[3] = { 0.7, -1.3, 2.1 };
static double value_in(const ir_input *in, void *ud)
{
    (void)ud;
    return at[in->at.base];
}

/* A node with its value without simplification, and a bound of the error of both. */
typedef struct {
    ir_ref n;
    double v, e;
} sample;

static sample sample_leaf(void)
{
    static const double ks[] = { 0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, 0.1, 7, 4, -0.25 };
    uint32_t d = dice(6);
    if (d < 3)
        return (sample){ q((int)d), at[d], 0 };
    double c = ks[dice(sizeof ks / sizeof *ks)];
    return (sample){ k(c), c, 0 };
}

/* How far the value changes if the operands change within their errors. */
static double spread(op_code op, sample a, sample b, sample c)
{
    double v = op_value(op, a.v, b.v, c.v), e = 0;
    for (int s = 0; s < 8; s++) {
        double w = op_value(op, a.v + (s & 1 ? a.e : -a.e), b.v + (s & 2 ? b.e : -b.e),
                            c.v + (s & 4 ? c.e : -c.e));
        e = fmax(e, isfinite(w) ? fabs(w - v) : INFINITY);
    }
    return e + 1e-14 * (fabs(v) + (op == OP_ADD || op == OP_SUB ? fabs(a.v) + fabs(b.v) : 0));
}

static sample sample_op(op_code op, sample a, sample b, sample c)
{
    int n = op_arity(op);
    if (n < 2)
        b = (sample){ 0 };
    if (n < 3)
        c = (sample){ 0 };
    return (sample){ ir_op(g, op, a.n, b.n, c.n), op_value(op, a.v, b.v, c.v), spread(op, a, b, c) };
}

static op_code op_any(void)
{
    return dice(2) ? (op_code)dice(OP_SQR + 1) : (op_code)dice(OP_COUNT);
}
static bool usable(sample s)
{
    return isfinite(s.v) && fabs(s.v) < 1e30 && s.e < 1e-6 * (1e-3 + fabs(s.v));
}

static void random_values(void **state)
{
    (void)state;
    int checked = 0;
    for (int turn = 0; turn < 4000; turn++) {
        seed = (uint64_t)turn * 7919 + 1;
        sample s[24];
        int n = 0;
        for (int i = 0; i < 6; i++)
            s[n++] = sample_leaf();
        while (n < 24) {
            sample r = sample_op(op_any(), s[dice((uint32_t)n)], s[dice((uint32_t)n)], s[dice((uint32_t)n)]);
            s[n++] = usable(r) ? r : sample_leaf();
        }
        for (int i = 6; i < n; i++, checked++) {
            double v = ir_value(g, A, s[i].n, value_in, NULL);
            if (!(fabs(v - s[i].v) <= 8 * s[i].e))
                fail_msg("turn %d: %s is %.17g, should be %.17g", turn, shown(s[i].n), v, s[i].v);
        }
    }
    assert_true(checked > 50000);
}

/* Reads the printed form. */
static const char *src;
static ir_ref read_level(int least);

static bool eat(const char *word)
{
    size_t n = strlen(word);
    if (strncmp(src, word, n))
        return false;
    src += n;
    return true;
}

static ir_ref read_call(void)
{
    char name[16];
    size_t n = strcspn(src, "(");
    assert_true(n < sizeof name);
    memcpy(name, src, n);
    name[n] = 0;
    src += n + 1;
    op_code op = op_find(name);
    assert_int_not_equal(op, OP_NONE);
    ir_ref arg[3] = { 0 };
    for (int i = 0; i < op_arity(op); i++) {
        if (i)
            assert_true(eat(", "));
        arg[i] = read_level(0);
    }
    assert_true(eat(")"));
    return ir_op(g, op, arg[0], arg[1], arg[2]);
}

static ir_ref read_atom(void)
{
    if (*src >= '0' && *src <= '9') {
        char *end;
        double v = strtod(src, &end);
        src = end;
        return k(v);
    }
    if (eat("(")) {
        ir_ref n = read_level(0);
        assert_true(eat(")"));
        return n;
    }
    if (eat("inf"))
        return k(INFINITY);
    if (*src >= 'x' && *src <= 'z')
        return q(*src++ - 'x');
    return read_call();
}

static const struct {
    const char *sign;
    op_code op;
    int level;
} signs_of[] = {
    { " or ", OP_OR, 1 }, { " and ", OP_AND, 2 }, { " < ", OP_LT, 4 },  { " <= ", OP_LE, 4 },
    { " > ", OP_GT, 4 },  { " >= ", OP_GE, 4 },   { " == ", OP_EQ, 4 }, { " != ", OP_NE, 4 },
    { " + ", OP_ADD, 6 }, { " - ", OP_SUB, 6 },   { "*", OP_MUL, 7 },   { "/", OP_DIV, 7 },
    { "^", OP_POW, 9 },
};

static ir_ref read_prefix(void)
{
    if (eat("if ")) {
        ir_ref a = read_level(0);
        assert_true(eat(" then "));
        ir_ref b = read_level(0);
        assert_true(eat(" else "));
        return op3(SELECT, a, b, read_level(0));
    }
    if (eat("not "))
        return op1(NOT, read_level(3));
    if (eat("-"))
        return op1(NEG, read_level(8));
    return read_atom();
}

static ir_ref read_level(int least)
{
    ir_ref left = read_prefix();
    for (size_t i = 0; i < sizeof signs_of / sizeof *signs_of; i++) {
        int level = signs_of[i].level;
        if (level < least || !eat(signs_of[i].sign))
            continue;
        ir_ref right = read_level(level == 9 ? 9 : level + 1);
        left = ir_op2(g, signs_of[i].op, left, right);
        i = (size_t)-1;
    }
    return left;
}

static void random_formulas_read_back(void **state)
{
    (void)state;
    int checked = 0, others = 0;
    for (int turn = 0; turn < 4000; turn++) {
        seed = (uint64_t)turn * 104729 + 5;
        sample s[16];
        int n = 0;
        for (int i = 0; i < 5; i++)
            s[n++] = sample_leaf();
        while (n < 16) {
            sample r = sample_op(op_any(), s[dice((uint32_t)n)], s[dice((uint32_t)n)], s[dice((uint32_t)n)]);
            s[n++] = usable(r) ? r : sample_leaf();
        }
        for (int i = 5; i < n; i++) {
            const char *formula = shown(s[i].n);
            src = formula;
            ir_ref back = read_level(0);
            /* the same node, or one that differs only in the place of a minus sign, which is exact */
            bool same = back == s[i].n ||
                        ir_value(g, A, back, value_in, NULL) == ir_value(g, A, s[i].n, value_in, NULL);
            others += back != s[i].n;
            checked++;
            if (*src || !same)
                fail_msg("turn %d: '%s' reads back as '%s', rest '%s'", turn, formula, shown(back), src);
        }
    }
    assert_true(others < checked / 1000);
}

/* ---- walks ---- */

static bool reads_y(const ir_input *in, void *ud)
{
    (void)ud;
    return in->kind == IN_Q && in->at.base == 1;
}

static ir_ref past(ir_ref when)
{
    return ir_in(g, (ir_input){ .kind = IN_PAST_Q, .arg = when });
}

static void inputs_in_order(void **state)
{
    (void)state;
    ir_ref roots[] = { op2(DIV, z, op2(ADD, op1(SIN, y), y)), past(op1(COS, x)) }, *in;
    assert_int_equal(ir_inputs(g, A, roots, 2, &in), 4);
    assert_int_equal(in[0], z);
    assert_int_equal(in[1], y);
    assert_int_equal(in[2], x);
    assert_int_equal(in[3], roots[1]);
    assert_true(ir_depends(g, roots[0], reads_y, NULL));
    assert_false(ir_depends(g, roots[1], reads_y, NULL));
    assert_true(ir_depends(g, past(y), reads_y, NULL));
    assert_int_equal(ir_inputs(g, A, &(ir_ref){ k(3) }, 1, &in), 0);
}

static ir_ref y_to_z2(ir *h, ir_ref input, void *ud)
{
    ++*(int *)ud;
    return input == y ? ir_op1(h, OP_SQR, z) : IR_NONE;
}

static void substitution(void **state)
{
    (void)state;
    int calls = 0;
    ir_ref s = op1(SIN, y), n = op2(ADD, op2(MUL, x, s), op1(EXP, s));
    ir_ref r = op1(SIN, op1(SQR, z));
    assert_int_equal(ir_substitute(g, n, y_to_z2, &calls), op2(ADD, op2(MUL, x, r), op1(EXP, r)));
    assert_int_equal(calls, 2);
    assert_int_equal(ir_substitute(g, op2(MUL, x, z), y_to_z2, &calls), op2(MUL, x, z));
    assert_int_equal(ir_substitute(g, past(y), y_to_z2, &calls), past(op1(SQR, z)));
    ir_ref roots[] = { y, IR_NONE, op2(SUB, y, op1(SQR, z)) };
    ir_substitute_all(g, roots, 3, y_to_z2, &calls);
    assert_int_equal(roots[0], op1(SQR, z));
    assert_int_equal(roots[1], IR_NONE);
    assert_int_equal(roots[2], k(0));
}

/* Nested walks: the map itself substitutes, while nodes are added. */
static ir_ref nest(ir *h, ir_ref input, void *ud)
{
    int *deep = ud;
    if (input != x || *deep == 0)
        return IR_NONE;
    --*deep;
    ir_ref n = ir_op1(h, OP_TANH, ir_op2(h, OP_ADD, x, y));
    for (int i = 0; i < 500; i++)
        n = ir_op1(h, OP_EXP, n);
    return ir_substitute(h, n, nest, ud);
}

static void walks_nest(void **state)
{
    (void)state;
    int deep = 3;
    ir_ref n = ir_substitute(g, op2(MUL, op1(SIN, x), op1(COS, y)), nest, &deep), *in;
    assert_int_equal(deep, 0);
    assert_int_equal(ir_inputs(g, A, &n, 1, &in), 2);
}

static void hashes(void **state)
{
    (void)state;
    ir *h = ir_new(A);
    uint64_t here = ir_hash(g, A, op2(MUL, op2(ADD, x, op1(SIN, y)), z), 1);
    /* the same term, with its parts created in another order */
    ir_ref hz = ir_in(h, (ir_input){ .kind = IN_Q, .at.base = 2 });
    ir_ref hy = ir_in(h, (ir_input){ .kind = IN_Q, .at.base = 1 });
    ir_ref sum = ir_op2(h, OP_ADD, ir_op1(h, OP_SIN, hy), ir_in(h, (ir_input){ .kind = IN_Q }));
    assert_true(here == ir_hash(h, A, ir_op2(h, OP_MUL, sum, hz), 1));
    assert_true(here != ir_hash(g, A, op2(MUL, op2(ADD, x, op1(COS, y)), z), 1));
    assert_true(here != ir_hash(g, A, op2(MUL, op2(ADD, x, op1(SIN, y)), z), 2));
    assert_true(ir_hash(g, A, op2(SUB, x, y), 1) != ir_hash(g, A, op2(SUB, y, x), 1));
    assert_true(ir_hash(g, A, past(x), 1) != ir_hash(g, A, past(y), 1));
}

static double seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* A million nodes in one chain: every walk, and the time to build it. */
static void deep_chain(void **state)
{
    (void)state;
    enum { N = 500000 };
    double t0 = seconds();
    ir_ref n = x;
    for (int i = 0; i < N; i++)
        n = op2(ADD, op1(SIN, n), i & 1 ? y : z);
    double ns = (seconds() - t0) / (2.0 * N) * 1e9;
    print_message("%.0f ns for each node of a chain\n", ns);
#ifndef __SANITIZE_ADDRESS__
    assert_true(ns < 500);
#endif
    assert_true(isfinite(ir_value(g, A, n, value_in, NULL)));
    ir_ref *in;
    assert_int_equal(ir_inputs(g, A, &n, 1, &in), 3);
    int calls = 0;
    assert_int_not_equal(ir_substitute(g, n, y_to_z2, &calls), n);
    assert_int_equal(calls, 3);
    assert_true(ir_hash(g, A, n, 0) != 0);
    text s = { .a = A };
    ir_print(&s, g, n, name_q, NULL);
    ir_dump(&s, g, &n, 1, name_q, NULL);
    assert_true(s.n > 2 * N);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, start, stop)
    const struct CMUnitTest tests[] = {
        T(equal_terms_are_one_node),
        T(constants_fold),
        T(sums),
        T(products),
        T(quotients),
        T(signs),
        T(powers),
        T(truths),
        T(choices),
        T(formulas),
        T(dump),
        T(formula_is_cut),
        T(random_values),
        T(random_formulas_read_back),
        T(inputs_in_order),
        T(substitution),
        T(walks_nest),
        T(hashes),
        T(deep_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
