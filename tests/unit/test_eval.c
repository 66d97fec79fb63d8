/* The evaluator: expressions against their known values. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "cdl.h"

static void collect(void *ud, const char *text, size_t len)
{
    char *to = ud;
    size_t used = strlen(to);
    if (used + len < 4000) {
        memcpy(to + used, text, len);
        to[used + len] = 0;
    }
}

typedef struct {
    cdl *s;
    char said[4001];
} bench;

static void begin(bench *b, const char *text)
{
    b->said[0] = 0;
    b->s = cdl_new(NULL);
    assert_non_null(b->s);
    cdl_set_callbacks(b->s, &(cdl_callbacks){ .err = collect, .ud = b->said });
    cdl_status st = text ? cdl_run_text(b->s, "t.cdl", text, strlen(text)) : CDL_OK;
    if (st != CDL_OK)
        print_error("%s", b->said);
    assert_int_equal(st, CDL_OK);
}

static double number(bench *b, const char *e)
{
    double x = NAN;
    cdl_status st = cdl_value(b->s, e, &x);
    if (st != CDL_OK)
        print_error("%s: %s", e, b->said);
    assert_int_equal(st, CDL_OK);
    return x;
}

typedef struct {
    const char *e;
    double x;
} row;
static void all_equal(bench *b, const row *rows, size_t n, double tolerance)
{
    for (size_t k = 0; k < n; k++) {
        double x = number(b, rows[k].e);
        if (!(fabs(x - rows[k].x) <= tolerance * (1 + fabs(rows[k].x))))
            print_error("%s is %.17g, not %.17g\n", rows[k].e, x, rows[k].x);
        assert_true(fabs(x - rows[k].x) <= tolerance * (1 + fabs(rows[k].x)));
    }
}
#define ALL_EQUAL(b, rows, tolerance) all_equal(b, rows, sizeof rows / sizeof *rows, tolerance)

static void refused(bench *b, const char *e, const char *why)
{
    double x;
    b->said[0] = 0;
    cdl_status st = cdl_value(b->s, e, &x);
    if (st != CDL_MODEL || !strstr(b->said, why))
        print_error("%s: status %d: %s", e, (int)st, b->said);
    assert_int_equal(st, CDL_MODEL);
    assert_non_null(strstr(b->said, why));
}

static void test_precedence(void **state)
{
    (void)state;
    static const row rows[] = {
        { "-2^2", -4 },
        { "2^3^2", 512 },
        { "2^-1", 0.5 },
        { "-2^-2", -0.25 },
        { "1 - 2 - 3", -4 },
        { "12/3/2", 2 },
        { "2*3 + 4*5", 26 },
        { "if 1 < 2 and not 2 < 1 then 3 else 4", 3 },
        { "if 1 < 2 or 1/0 < 1 then 1 else 0", 1 },
        { "if 2 in 1..3 then 1 else 0", 1 },
        { "if 4 in [1, 4, 9] then 1 else 0", 1 },
        { "if 1 + 1 == 2 then 7 else 8", 7 },
        { "if 5 in 1..3 then 1 else 0", 0 },
        { "cases { 1 if 2 < 1; 2 if 1 < 2; 3 otherwise }", 2 },
        { "cases { 1 if 2 < 1; 3 otherwise }", 3 },
    };
    bench b;
    begin(&b, NULL);
    ALL_EQUAL(&b, rows, 0);
    cdl_free(b.s);
}

static void test_units(void **state)
{
    (void)state;
    static const row rows[] = {
        { "5 [mm]", 0.005 },          { "1 [km/h]", 1000.0 / 3600 },
        { "3 [kN]", 3000 },           { "2 [m]*3 [m]", 6 },
        { "(4 [m^2])^(1/2)", 2 },     { "sqrt(9 [m^2])", 3 },
        { "1 [m] + 5 [mm]", 1.005 },  { "90 [deg]", 3.14159265358979323846 / 2 },
        { "6 [m]/2 [s]/3 [m/s]", 1 }, { "2*1 [N*m] + 3 [J]", 5 },
        { "max(1 [m], 2 [cm])", 1 },  { "norm([3 [m], 4 [m]])", 5 },
        { "sum([1 [m], 2 [m]])", 3 }, { "atan2(1 [m], 1 [m])", 3.14159265358979323846 / 4 },
        { "0.1 [1/min]", 0.1 / 60 },  { "1 [m]^2 + 2 [m^2]", 3 },
    };
    bench b;
    begin(&b, NULL);
    ALL_EQUAL(&b, rows, 1e-15);
    refused(&b, "1 [m] + 1 [s]", "[m] against [s]");
    refused(&b, "2 [kg*m/s^2] == 3 [m]", "against [m]");
    refused(&b, "exp(2 [m])", "without dimension");
    refused(&b, "1 [parsecond]", "unknown unit");
    cdl_free(b.s);
}

static void test_shapes(void **state)
{
    (void)state;
    static const row rows[] = {
        { "dot([1, 2, 3], [4, 5, 6])", 32 },
        { "norm([3, 4])", 5 },
        { "([1, 2; 3, 4]*[5, 6])[2]", 39 },
        { "([1, 2; 3, 4]*[0, 1; 1, 0])[1, 1]", 2 },
        { "perp([3, 4])[1]", -4 },
        { "perp([3, 4])[2]", 3 },
        { "cross([1, 0, 0], [0, 1, 0])[3]", 1 },
        { "cross([1, 2], [3, 4])", -2 },
        { "transpose([1, 2; 3, 4])[1, 2]", 3 },
        { "eye(3)[2, 2] + eye(3)[1, 2]", 1 },
        { "diag(1, 2, 3)[3, 3]", 3 },
        { "zeros(4)[4]", 0 },
        { "[1, 2; 3, 4][2][1]", 3 },
        { "(2*[1, 2] - [1, 1])[2]", 3 },
        { "rot_z(pi/2)[2, 1]", 1 },
        { "(-[1, 2])[2]", -2 },
        { "([2, 4]/2)[2]", 2 },
        { "count([1, 2, 3])", 3 },
        { "mean([1, 2, 6])", 3 },
    };
    bench b;
    begin(&b, NULL);
    ALL_EQUAL(&b, rows, 1e-15);
    refused(&b, "[1, 2] + [1, 2, 3]", "does not fit");
    refused(&b, "[1, 2][3]", "outside 1..2");
    refused(&b, "[1, 2; 3]", "this row has");
    cdl_free(b.s);
}

static void test_sums(void **state)
{
    (void)state;
    static const row rows[] = {
        { "sum(i for i in 1..100)", 5050 },
        { "sum(i*j for i in 1..3, j in 1..i)", 1 + 2 + 4 + 3 + 6 + 9 },
        { "sum(i for i in 1..10 where mod(i, 2) == 0)", 30 },
        { "product(i for i in 1..6)", 720 },
        { "sum(x^2 for x in [1, 2, 3])", 14 },
        { "sum(1 for i in 3..2)", 0 },
        { "max(i*(4 - i) for i in 0..4)", 4 },
        { "[2*i for i in 1..5 where i > 3][1]", 8 },
        { "count([i for i in 1..5 where i != 2])", 4 },
        { "sum(sum(i*j for j in 1..2) for i in 1..2)", 9 },
        { "sum(i for i in [k^2 for k in 1..3])", 14 },
    };
    bench b;
    begin(&b, NULL);
    ALL_EQUAL(&b, rows, 0);
    refused(&b, "sum(1 for i in 1..1e18)", "too many");
    refused(&b, "sum(1 for i in 1..inf)", "too many");
    cdl_free(b.s);
}

static void test_functions(void **state)
{
    (void)state;
    static const row rows[] = {
        { "f(3)", 10 },  { "g(2, b = 5)", 50 },   { "g(a = 1, b = 2)", 4 }, { "twice(f, 1)", 5 },
        { "later", 12 }, { "fact(10)", 3628800 }, { "fib(15)", 610 },       { "sgn2(-3) + sgn2(2)", 0 },
    };
    bench b;
    begin(&b, "let later = base + 2\nlet base = f(3)\nfn f(x) = x^2 + 1\nfn g(a, b) = a*b^2\nfn twice(h, x) "
              "= h(h(x))\n"
              "fn fact(n) = if n <= 1 then 1 else n*fact(n - 1)\nfn fib(n) = cases { n if n < 2; fib(n - 1) "
              "+ fib(n - 2) otherwise }\n"
              "fn sgn2(x) = cases { -1 if x < 0; 0 if x == 0; 1 otherwise }\n");
    ALL_EQUAL(&b, rows, 0);
    refused(&b, "f(1, 2)", "takes 1 argument");
    refused(&b, "g(1, c = 2)", "no argument 'c'");
    cdl_free(b.s);
}

/* Quadrature compared with closed forms. */
static void test_integral(void **state)
{
    (void)state;
    static const double pi = 3.14159265358979323846;
    const row rows[] = {
        { "integral(x^3 for x in 0..2)", 4 },
        { "integral(sin(x) for x in 0..pi)", 2 },
        { "integral(exp(-x) for x in 0..1)", 1 - exp(-1) },
        { "integral(1/(1 + x^2) for x in -1..1)", pi / 2 },
        { "integral(x for x in 2..0)", -2 },
        { "integral(sqrt(1 - x^2) for x in 0..0.5)", sqrt(3) / 8 + pi / 12 },
        { "integral(cos(20*x) for x in 0..1)", sin(20) / 20 },
        { "integral(5 for x in 1..1)", 0 },
        { "integral(1/x for x in 1..10)", log(10) },
    };
    bench b;
    begin(&b, NULL);
    ALL_EQUAL(&b, rows, 1e-9);
    cdl_free(b.s);
}

static void test_linspace(void **state)
{
    (void)state;
    bench b;
    double x[1000];
    size_t n;
    begin(&b, NULL);
    static const struct {
        const char *e;
        double lo, hi;
        size_t n;
    } rows[] = {
        { "linspace(0.1, 0.7, 7)", 0.1, 0.7, 7 },
        { "linspace(0, 1, 11)", 0, 1, 11 },
        { "linspace(-1/3, 1/3, 1000)", -1.0 / 3, 1.0 / 3, 1000 },
        { "linspace(5, 2, 4)", 5, 2, 4 },
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        assert_int_equal(cdl_values(b.s, rows[k].e, x, 1000, &n), CDL_OK);
        assert_int_equal(n, rows[k].n);
        assert_true(x[0] == rows[k].lo && x[n - 1] == rows[k].hi); /* the ends exactly */
        for (size_t i = 1; i < n; i++)
            assert_true((x[i] > x[i - 1]) == (rows[k].hi > rows[k].lo));
    }
    assert_true(number(&b, "linspace(3, 4, 1)[1]") == 3);
    cdl_free(b.s);
}

/* Models and sessions compute the same values: parameters, lets and functions in a run of length 0. */
static void test_model_and_session(void **state)
{
    (void)state;
    bench b;
    begin(&b,
          "fn f(x) = x^3 - 2*x\n"
          "model m {\n    param N = 4, a = 1.5\n    let K = [2, -1; -1, 2], w = sum(f(i)*a for i in 1..N)\n"
          "    dof u[2] = [w, K[1, 2]], s = integral(x^2 for x in 0..3)\n    u'' = -K*u\n    s' = cases { 1 "
          "if w > 0; 2 otherwise }\n}\nrun m for 0\n");
    static const row rows[] = { { "u[1](0)", 1.5 * (100 - 20) },
                                { "u[2](0)", -1 },
                                { "s(0)", 9 },
                                { "sum(f(i)*1.5 for i in 1..4)", 120 },
                                { "u[1]''(0)", -241 } };
    ALL_EQUAL(&b, rows, 1e-12);
    cdl_free(b.s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_precedence), cmocka_unit_test(test_units),
        cmocka_unit_test(test_shapes),     cmocka_unit_test(test_sums),
        cmocka_unit_test(test_functions),  cmocka_unit_test(test_integral),
        cmocka_unit_test(test_linspace),   cmocka_unit_test(test_model_and_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
