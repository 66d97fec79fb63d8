/* fmt: the layout, rule by rule; every result is formatted again and must not change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "syntax/parse.h"

static void check(const char *given, const char *want)
{
    arena *a = arena_new(&allocator_libc, NULL);
    size_t n, n2;
    char *once = fmt_source(a, given, strlen(given), &n);
    assert_non_null(once);
    assert_string_equal(once, want);
    char *twice = fmt_source(a, once, n, &n2);
    assert_non_null(twice);
    assert_string_equal(twice, want);
    assert_int_equal(n, n2);
    arena_free(a);
}

static void test_spaces(void **state)
{
    static const char *const rows[][2] = {
        { "let a=b+c-d * e / f ^ g", "let a = b + c - d*e/f^g\n" },
        { "let a = - b*( - c )", "let a = -b*(-c)\n" },
        { "let a = 2 ^ - 3", "let a = 2^-3\n" },
        { "param g=9.81[m / s ^ 2],h", "param g = 9.81 [m/s^2], h\n" },
        { "let a=f( x ,y ) [ 1,2 ] '", "let a = f(x, y)[1, 2]'\n" },
        { "let a=[1,2 ;3,4]*x", "let a = [1, 2; 3, 4]*x\n" },
        { "let a=not(b)or-c in(1 .. 2)", "let a = not (b) or -c in (1..2)\n" },
        { "let a=if b then-c else(d)", "let a = if b then -c else (d)\n" },
        { "let a = x[i+1] + x[i - 1]", "let a = x[i+1] + x[i - 1]\n" },
        { "for i in 1..N-1{z=1}", "for i in 1..N-1 { z = 1 }\n" },
        { "constraint c : x>=0{}", "constraint c: x >= 0 {}\n" },
        { "use std . planar", "use std.planar\n" },
        { "let a = p . for + 1", "let a = p.for + 1\n" },
        { "-x' = 1;-y' = 2", "-x' = 1; -y' = 2\n" },
        { "a = 1\n-y' = 2", "a = 1\n-y' = 2\n" },
        { "let a = b ≤ c · d ′", "let a = b ≤ c·d′\n" },
        { "expect a  == b   within 1  \"l\"", "expect a  == b   within 1  \"l\"\n" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(rows[i][0], rows[i][1]);
}

static void test_lines(void **state)
{
    (void)state;
    check("", "");
    check("\n\n\n", "");
    check("\n\nlet a = 1   \r\n\n\n\nlet b = 2", "let a = 1\n\nlet b = 2\n");
    check("model m {\nfor i in r {\nx = 1\n}\n # c\n}",
          "model m {\n    for i in r {\n        x = 1\n    }\n    # c\n}\n");
    check("let a = b +\nc", "let a = b +\n    c\n");
    check("let a = f(\nb,\n  c\n)", "let a = f(\n    b,\n    c\n)\n");
    check("  let M = [1, 2;\n           3, 4]", "let M = [1, 2;\n         3, 4]\n");
    check("let M = [1, 2;\n  3, 4]", "let M = [1, 2;\n    3, 4]\n");
}

static void test_comments(void **state)
{
    (void)state;
    check("let a = 1# c", "let a = 1  # c\n");
    check("let a = 1      # c\nlet bcd = 2    # d  ", "let a = 1      # c\nlet bcd = 2    # d\n");
    check("let a=1   # c\nlet bcdef=2*3 # d", "let a = 1  # c\nlet bcdef = 2*3  # d\n");
    check("let a=1     # c\nlet bcdef=2 # d", "let a = 1      # c\nlet bcdef = 2  # d\n");
    check("##  d\n#c\nlet a = 1", "##  d\n#c\nlet a = 1\n");
}

/* a text with invalid tokens is left unchanged */
static void test_refused(void **state)
{
    static const char *const rows[] = { "let a = 3x", "let a = \"b", "let a = ?", "\xFF" };
    arena *a = arena_new(&allocator_libc, NULL);
    size_t n;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_null(fmt_source(a, rows[i], strlen(rows[i]), &n));
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spaces),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_comments),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
