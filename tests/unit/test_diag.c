/* diagnostics: the output is compared character by character. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "base/diag.h"

static arena *a;
static diags *d;

static int setup(void **state)
{
    (void)state;
    a = arena_new(&allocator_libc, NULL);
    d = diags_new(a);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_free(a);
    return 0;
}

static uint32_t add(const char *s)
{
    return diags_add_source(d, "file.cdl", s, strlen(s));
}

/* The span of the first occurrence of `what`. */
static span find(uint32_t file, const char *what)
{
    const char *s = d->sources.at[file]->text, *p = strstr(s, what);
    assert_non_null(p);
    return (span){ file, (uint32_t)(p - s), (uint32_t)(p - s + (ptrdiff_t)strlen(what)) };
}

static const char *drawn(const diag *e)
{
    text s = { .a = a };
    diag_print(d, e, false, &s);
    return s.at;
}

static const char *as_json(const diag *e)
{
    text s = { .a = a };
    diag_print_json(d, e, &s);
    return s.at;
}

static void as_in_the_manual(void **state)
{
    (void)state;
    uint32_t f = add("model m {\n    parm g = 9.81\n}\n");
    diag *e = diag_error(d, DIAG_UNKNOWN_STATEMENT, find(f, "parm"), "unknown statement '%s'", "parm");
    near q = near_to("parm");
    near_try(&q, "param");
    near_try(&q, "part"); /* the same distance, but later */
    diag_near(d, e, &q);
    assert_string_equal(drawn(e), "file.cdl:2:5: error: unknown statement 'parm'\n"
                                  "  2 |     parm g = 9.81\n"
                                  "    |     ^~~~\n"
                                  "    = hint: did you mean 'param'?\n");
}

static void nowhere(void **state)
{
    (void)state;
    diag *e = diag_error(d, DIAG_IO, SPAN_NONE, "cannot read x");
    assert_string_equal(drawn(e), "error: cannot read x\n");
    diag_hint(d, e, "look");
    assert_string_equal(drawn(e), "error: cannot read x\n    = hint: look\n");
    assert_non_null(diag_error(d, DIAG_IO, SPAN_NONE, "cannot read y"));
    e->at.file = 77; /* no such source: treated as no place */
    assert_string_equal(drawn(e), "error: cannot read x\n    = hint: look\n");
}

static void warning_and_second_place(void **state)
{
    (void)state;
    text t = { .a = a };
    text_puts(&t, "  dof x = 1\n");
    for (int k = 0; k < 9998; k++)
        text_putc(&t, '\n');
    text_puts(&t, "dof x = 2");
    uint32_t f = add(t.at);
    span last = { f, (uint32_t)t.n - 5, (uint32_t)t.n - 4 };
    diag *e = diag_warn(d, DIAG_DUPLICATE, last, "'x' again");
    diag_second(d, e, find(f, "x = 1"), "first here");
    assert_string_equal(drawn(e), "file.cdl:10000:5: warning: 'x' again\n"
                                  "10000 | dof x = 2\n"
                                  "      |     ^\n"
                                  "file.cdl:1:7: note: first here\n"
                                  "    1 |   dof x = 1\n"
                                  "      |       ^~~~~\n");
    diag_hint(d, e, "rename it");
    assert_non_null(strstr(drawn(e), "\n      = hint: rename it\n"));
    assert_int_equal(d->warnings, 1);
    assert_int_equal(d->errors, 0);
}

static void span_over_lines(void **state)
{
    (void)state;
    uint32_t f = add("let a = (1 +\r\n\t2)\r\n");
    diag *e = diag_error(d, DIAG_TYPE, find(f, "(1 +\r\n\t2)"), "bad");
    assert_string_equal(drawn(e), "file.cdl:1:9: error: bad\n  1 | let a = (1 +\n    |         ^~~~\n");
    size_t n[4];
    span_place(d, e->at, &n[0], &n[1], &n[2], &n[3]);
    assert_int_equal(n[2], 2);
    assert_int_equal(n[3], 4);
    assert_string_equal(span_text(d, e->at, a), "(1 + 2)");
    e = diag_error(d, DIAG_TYPE, find(f, "2)"), "tab");
    assert_string_equal(drawn(e), "file.cdl:2:2: error: tab\n  2 |  2)\n    |  ^~\n");
}

static void at_the_end(void **state)
{
    (void)state;
    uint32_t f = add("model m {\n");
    diag *e = diag_error(d, DIAG_SYNTAX, (span){ f, 10, 10 }, "end of file");
    assert_string_equal(drawn(e), "file.cdl:2:1: error: end of file\n  2 |\n    | ^\n");
    e = diag_error(d, DIAG_SYNTAX, (span){ f, 9, 10 }, "end of line");
    assert_string_equal(drawn(e), "file.cdl:1:10: error: end of line\n  1 | model m {\n    |          ^\n");
    e = diag_error(d, DIAG_SYNTAX, (span){ f, 500, 2 }, "outside");
    assert_string_equal(drawn(e), "file.cdl:2:1: error: outside\n  2 |\n    | ^\n");
    f = add("");
    e = diag_error(d, DIAG_SYNTAX, (span){ f, 0, 0 }, "empty");
    assert_string_equal(drawn(e), "file.cdl:1:1: error: empty\n  1 |\n    | ^\n");
}

/* Columns count code points; the caret counts cells on the screen. */
static void other_scripts(void **state)
{
    (void)state;
    uint32_t f = add("αβ = x\n漢字 = y漢\ne\xCC\x81 = z\n\xFF\x1B = w\n");
    diag *e = diag_error(d, DIAG_TYPE, find(f, "x"), "greek");
    assert_string_equal(drawn(e), "file.cdl:1:6: error: greek\n  1 | αβ = x\n    |      ^\n");
    e = diag_error(d, DIAG_TYPE, find(f, "y漢"), "wide");
    assert_string_equal(drawn(e), "file.cdl:2:6: error: wide\n  2 | 漢字 = y漢\n    |        ^~~\n");
    e = diag_error(d, DIAG_TYPE, find(f, "z"), "mark");
    assert_string_equal(drawn(e), "file.cdl:3:6: error: mark\n  3 | e\xCC\x81 = z\n    |     ^\n");
    e = diag_error(d, DIAG_TYPE, find(f, "w"), "bytes");
    assert_string_equal(drawn(e), "file.cdl:4:6: error: bytes\n  4 | �� = w\n    |      ^\n");
}

/* Number of cells of the n-th line of the output, from 0, without the gutter. */
static size_t cells(const char *s, int n, const char **at)
{
    while (n--)
        s = strchr(s, '\n') + 1;
    s += 6;
    *at = s;
    size_t count = 0;
    for (; *s != '\n'; count++)
        s += utf8_next(s, 4, NULL);
    return count;
}

static void long_lines(void **state)
{
    (void)state;
    text t = { .a = a };
    for (int k = 0; k < 400; k++)
        text_printf(&t, "%c", "abcdefghij"[k % 10]);
    uint32_t f = add(t.at);
    static const uint32_t from[] = { 0, 100, 158, 159, 160, 161, 200, 310, 399, 400 };
    for (size_t k = 0; k < sizeof from / sizeof *from; k++) {
        const char *line, *mark,
            *out = drawn(diag_error(d, DIAG_LIMIT, (span){ f, from[k], from[k] + 1 }, "long"));
        assert_in_range(cells(out, 1, &line), 100, 160);
        size_t caret = cells(out, 2, &mark) - 1;
        assert_true(caret <= 160 && mark[caret] == '^');
        bool left = !strncmp(line, "…", 3);
        assert_int_equal(left, from[k] > 158);
        /* below the right letter */
        if (from[k] < 400)
            assert_int_equal(line[caret + (left ? 2 : 0)], "abcdefghij"[from[k] % 10]);
    }
    const char *line, *out = drawn(diag_error(d, DIAG_LIMIT, (span){ f, 1, 399 }, "all"));
    assert_int_equal(cells(out, 1, &line), 160);
    assert_in_range(cells(out, 2, &line), 150, 160);
}

static void exactly_160(void **state)
{
    (void)state;
    text t = { .a = a };
    for (int k = 0; k < 160; k++)
        text_putc(&t, 'x');
    const char *line, *out = drawn(diag_error(d, DIAG_LIMIT, (span){ add(t.at), 3, 4 }, "fits"));
    assert_int_equal(cells(out, 1, &line), 160);
    assert_null(strstr(out, "…"));
}

static void colours(void **state)
{
    (void)state;
    uint32_t f = add("parm");
    diag *e = diag_error(d, DIAG_UNKNOWN_STATEMENT, find(f, "parm"), "no");
    diag_hint(d, e, "yes");
    text s = { .a = a };
    diag_print(d, e, true, &s);
    assert_string_equal(s.at, "\033[1mfile.cdl:1:1:\033[0m \033[1;31merror:\033[0m no\n"
                              "\033[1;36m  1 |\033[0m parm\n"
                              "\033[1;36m    |\033[0m \033[1;31m^~~~\033[0m\n"
                              "    \033[1;36m= hint:\033[0m yes\n");
    assert_null(strchr(drawn(e), '\033'));
}

static void json_lines(void **state)
{
    (void)state;
    uint32_t f = add("model m {\n    parm g = 9.81\n}\n");
    diag *e = diag_error(d, DIAG_UNKNOWN_STATEMENT, find(f, "parm"), "unknown statement \"parm\"");
    assert_string_equal(as_json(e),
                        "{\"file\":\"file.cdl\",\"line\":2,\"column\":5,\"end_line\":2,\"end_column\":9,"
                        "\"severity\":\"error\",\"code\":\"unknown-statement\","
                        "\"message\":\"unknown statement \\\"parm\\\"\",\"hint\":null,\"related\":[]}\n");
    diag_hint(d, e, "param");
    diag_second(d, e, find(f, "m {"), "in this");
    assert_non_null(strstr(as_json(e), "\"hint\":\"param\",\"related\":[{\"file\":\"file.cdl\",\"line\":1,"
                                       "\"column\":7,\"message\":\"in this\"}]}\n"));
    e = diag_warn(d, DIAG_WARN_UNUSED, SPAN_NONE, "w");
    assert_string_equal(as_json(e),
                        "{\"file\":null,\"line\":null,\"column\":null,\"end_line\":null,\"end_column\":null,"
                        "\"severity\":\"warning\",\"code\":\"unused\","
                        "\"message\":\"w\",\"hint\":null,\"related\":[]}\n");
}

static void drops(void **state)
{
    (void)state;
    text t = { .a = a };
    for (int k = 0; k < 100; k++)
        text_putc(&t, 'x');
    uint32_t f = add(t.at), g = add(t.at);
    assert_non_null(diag_error(d, DIAG_TYPE, (span){ f, 5, 6 }, "one"));
    assert_null(diag_error(d, DIAG_SHAPE, (span){ f, 5, 9 }, "same place"));
    assert_non_null(diag_warn(d, DIAG_SHAPE, (span){ f, 5, 9 }, "a warning is something else"));
    assert_non_null(diag_error(d, DIAG_TYPE, (span){ g, 5, 6 }, "another file"));
    for (uint32_t k = 10; k < 50; k++) {
        diag *e = diag_error(d, DIAG_TYPE, (span){ f, k, k + 1 }, "more");
        assert_int_equal(e != NULL, k < 10 + DIAG_MAX - 2);
        diag_hint(d, e, "taken with NULL too");
        diag_second(d, e, SPAN_NONE, "and this");
    }
    assert_int_equal(d->errors, 43);
    assert_int_equal(d->list.n, DIAG_MAX + 1);
}

static void kept_entries_do_not_move(void **state)
{
    (void)state;
    uint32_t f = add("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    diag *first = diag_error(d, DIAG_TYPE, (span){ f, 0, 1 }, "first");
    for (uint32_t k = 1; k < 40; k++) {
        diag_error(d, DIAG_TYPE, (span){ f, k, k + 1 }, "e");
        diag_warn(d, DIAG_TYPE, (span){ f, k, k + 1 }, "w");
    }
    assert_ptr_equal(first, &d->list.at[0]);
    assert_int_equal(d->list.n, 2 * DIAG_MAX);
}

static void sorted(void **state)
{
    (void)state;
    uint32_t f = add("abcdefghij"), g = add("abc");
    diag_error(d, DIAG_TYPE, (span){ f, 9, 10 }, "stays");
    diag_error(d, DIAG_TYPE, (span){ g, 1, 2 }, "4");
    diag_error(d, DIAG_TYPE, (span){ f, 7, 8 }, "3");
    diag_warn(d, DIAG_TYPE, (span){ f, 2, 3 }, "1");
    diag_error(d, DIAG_TYPE, (span){ f, 2, 3 }, "2");
    diags_sort(d, 1);
    static const char *const want[] = { "stays", "1", "2", "3", "4" };
    for (int k = 0; k < 5; k++)
        assert_string_equal(d->list.at[k].message, want[k]);
    diags_sort(d, 99);
}

static const char *nearest(const char *got, const char *const *list)
{
    near q = near_to(got);
    for (; *list; list++)
        near_try(&q, *list);
    return near_best(&q);
}

static void did_you_mean(void **state)
{
    (void)state;
    static const char *const words[] = { "param", "part", "model",  "constraint", "sweeping",
                                         "x",     "μ",    "Newton", NULL };
    static const struct {
        const char *got, *want;
    } row[] = { { "parma", "param" }, /* exchanging two letters is one edit */
                { "modle", "model" },
                { "constrant", "constraint" },
                { "konstraind", "constraint" },
                { "konstrand", "constraint" },
                { "qonstrand", "constraint" },
                { "swiping", "sweeping" },
                { "sweping", "sweeping" },
                { "prt", "part" },
                { "parm", "param" },
                { "newton", "Newton" },
                { "NEWTON", "Newton" },
                { "X", "x" },
                { "y", NULL },
                { "ν", NULL },
                { "zzzzz", NULL },
                { "kinetic", NULL },
                { "", NULL },
                { "mdl", NULL } };
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        const char *best = nearest(row[k].got, words);
        if (!row[k].want && best)
            fail_msg("'%s' is near '%s'", row[k].got, best);
        if (row[k].want && (!best || strcmp(best, row[k].want)))
            fail_msg("'%s' gives '%s'", row[k].got, best ? best : "nothing");
    }
    static const char *const ties[] = { "abd", "abe", "abc", NULL };
    assert_string_equal(nearest("abx", ties), "abd");
    char big[300];
    memset(big, 'a', sizeof big - 1);
    big[299] = 0;
    assert_null(nearest(big, words));
    diag *e = diag_error(d, DIAG_UNKNOWN_NAME, SPAN_NONE, "no");
    near q = near_to("pram");
    diag_near(d, e, &q);
    assert_null(e->hint);
    near_try(&q, "param");
    diag_near(d, NULL, &q);
    diag_near(d, e, &q);
    assert_string_equal(e->hint, "did you mean 'param'?");
}

static void joins(void **state)
{
    (void)state;
    span s = span_join((span){ 1, 5, 7 }, (span){ 1, 2, 6 });
    assert_true(s.file == 1 && s.begin == 2 && s.end == 7);
    s = span_join(SPAN_NONE, (span){ 2, 3, 4 });
    assert_true(s.file == 2 && s.begin == 3);
    s = span_join((span){ 2, 3, 4 }, SPAN_NONE);
    assert_true(s.file == 2 && s.begin == 3 && s.end == 4);
    assert_string_equal(span_text(d, SPAN_NONE, a), "");
}

static void codes(void **state)
{
    (void)state;
    for (int c = 0; c < DIAG_CODES; c++) {
        const char *name = diag_code_name((diag_code)c), *help = diag_code_help((diag_code)c);
        assert_int_equal(diag_code_find(name), c); /* so no name occurs twice */
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz-0123456789"), strlen(name));
        assert_true(strlen(help) > 10 && help[strlen(help) - 1] == '.');
    }
    assert_int_equal(diag_code_find("no-such-code"), -1);
    assert_string_equal(diag_code_name(DIAG_UNIT_MISMATCH), "unit-mismatch");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = { T(as_in_the_manual),
                                        T(nowhere),
                                        T(warning_and_second_place),
                                        T(span_over_lines),
                                        T(at_the_end),
                                        T(other_scripts),
                                        T(long_lines),
                                        T(exactly_160),
                                        T(colours),
                                        T(json_lines),
                                        T(drops),
                                        T(kept_entries_do_not_move),
                                        T(sorted),
                                        T(did_you_mean),
                                        T(joins),
                                        T(codes) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
