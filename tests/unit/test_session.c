/* The session through its public header. */
#include <math.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "cdl.h"

/* The output of a session. */
typedef struct {
    char out[1 << 16], err[1 << 16];
    size_t nout, nerr;
    int asked, stop_after;
} heard;

static void keep(char *to, size_t *n, size_t room, const char *text, size_t len)
{
    if (len > room - 1 - *n)
        len = room - 1 - *n;
    memcpy(to + *n, text, len);
    *n += len;
    to[*n] = 0;
}
static void on_out(void *ud, const char *t, size_t n)
{
    heard *h = ud;
    keep(h->out, &h->nout, sizeof h->out, t, n);
}
static void on_err(void *ud, const char *t, size_t n)
{
    heard *h = ud;
    keep(h->err, &h->nerr, sizeof h->err, t, n);
}
static int on_ask(void *ud)
{
    heard *h = ud;
    return ++h->asked > h->stop_after;
}

static cdl *open_session(heard *h)
{
    memset(h, 0, sizeof *h);
    h->stop_after = 1 << 30;
    cdl *s = cdl_new(NULL);
    assert_non_null(s);
    cdl_callbacks c = { on_out, on_err, on_ask, h };
    cdl_set_callbacks(s, &c);
    return s;
}

static cdl_status run(cdl *s, const char *text)
{
    return cdl_run_text(s, "t.cdl", text, strlen(text));
}

static const char ball[] = "model ball {\n"
                           "    param g = 9.81, y0 = 1\n"
                           "    param e in 0..1 = 0.5\n"
                           "    dof y = y0, y' = 0\n"
                           "    y'' = -g\n"
                           "    constraint floor: y >= 0 { impact = newton(e) }\n"
                           "}\n";

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no \"%s\" in:\n%s", part, text);
}

static void statuses_have_texts(void **state)
{
    (void)state;
    for (int k = 0; k < CDL_STATUS_MAX; k++)
        assert_true(strlen(cdl_status_text((cdl_status)k)) > 5);
    assert_int_equal(cdl_exit_code(CDL_MEMORY), 5);
    assert_int_equal(cdl_exit_code(CDL_SOLVER), 4);
    assert_true(strlen(cdl_version()) >= 5);
}

static void values_of_expressions(void **state)
{
    heard h;
    cdl *s = open_session(&h);
    double x = 0;
    (void)state;
    assert_int_equal(run(s, "let a = 2*b, b = 3\nfn f(x) = x^2 + a\n"), CDL_OK);
    assert_int_equal(cdl_value(s, "f(3)", &x), CDL_OK);
    assert_float_equal(x, 15, 0);
    assert_int_equal(cdl_value(s, "f(", &x), CDL_MODEL);
    assert_int_equal(cdl_value(s, "[1, 2]", &x), CDL_MODEL);
    assert_int_equal(cdl_value(s, "nothing", &x), CDL_MODEL);
    assert_has(h.err, "unknown name 'nothing'");
    assert_int_equal(cdl_value(s, "a", &x), CDL_OK);
    assert_float_equal(x, 6, 0);
    cdl_free(s);
}

static void results_are_values(void **state)
{
    heard h;
    cdl *s = open_session(&h);
    double x = 0, t[8];
    size_t n = 0;
    (void)state;
    assert_int_equal(run(s, ball), CDL_OK);
    assert_int_equal(run(s, "run a = ball for 1 with sweeping(h = 1e-3)\nrun ball(e = 0.2, y0 = 2) for 1\n"),
                     CDL_OK);
    assert_has(h.out, "ball: sweeping, 1000 steps to t = 1");
    assert_has(h.out, "sweeping (chosen)");
    assert_int_equal(cdl_value(s, "e + 10*a.e", &x), CDL_OK);
    assert_float_equal(x, 5.2, 1e-12);
    assert_int_equal(cdl_value(s, "a.floor.impacts.t[1]", &x), CDL_OK);
    assert_float_equal(x, sqrt(2 / 9.81), 1e-3);
    assert_int_equal(cdl_value(s, "y(0.1)", &x), CDL_OK);
    assert_float_equal(x, 2 - 9.81 * 0.005, 1e-3);
    assert_int_equal(cdl_value(s, "a.y''(0)", &x), CDL_OK);
    assert_float_equal(x, -9.81, 1e-12);
    assert_int_equal(cdl_values(s, "a.y", t, 8, &n), CDL_OK);
    assert_true(n > 8);
    assert_float_equal(t[0], 1, 0);
    assert_int_equal(cdl_value(s, "y(5)", &x), CDL_MODEL);
    assert_has(h.err, "outside the run");
    cdl_free(s);
}

static void expectations_count(void **state)
{
    heard h;
    cdl *s = open_session(&h);
    (void)state;
    assert_int_equal(run(s, ball), CDL_OK);
    assert_int_equal(run(s, "run ball for 1\nexpect y(0) == 1\nexpect y(0) == 2 within abs(0.5)  "
                            "\"half\"\nexpect y(0) == 1.1 within rel(0.2)\n"),
                     CDL_EXPECT);
    assert_has(h.err, "t.cdl:3:1: expectation failed: y(0) == 2 within abs(0.5)  \"half\"\n    left 1, right "
                      "2, difference 1, allowed 0.5\n");
    assert_int_equal(cdl_finish(s), CDL_EXPECT);
    assert_has(h.out, "3 expectations: 2 met, 1 not met\n");
    assert_int_equal(cdl_finish(s), CDL_OK);
    cdl_free(s);
}

static void errors_come_in_one_go(void **state)
{
    heard h;
    cdl *s = open_session(&h);
    (void)state;
    assert_int_equal(run(s, ball), CDL_OK);
    assert_int_equal(run(s, "run bal for 1\nrun ball(f = 1) for 1 with sweping()\n1 + 1\nrun ball for "
                            "1\nexpect floor.rm(0) == 0\nplot y { fil = \"a.svg\" }\n"),
                     CDL_MODEL);
    assert_has(h.err, "t.cdl:1:5: error: unknown model 'bal'");
    assert_has(h.err, "did you mean 'ball'?");
    assert_has(h.err, "t.cdl:2:10: error: model 'ball' has no parameter 'f'");
    assert_has(h.err, "did you mean 'sweeping'?");
    assert_has(h.err, "'floor' has no member 'rm'");
    assert_has(h.err, "plot has no attribute 'fil'");
    assert_string_equal(h.out, ""); /* nothing was executed */
    cdl_free(s);
}

static void bounds_and_missing_values(void **state)
{
    heard h;
    cdl *s = open_session(&h);
    (void)state;
    assert_int_equal(run(s, ball), CDL_OK);
    assert_int_equal(run(s, "run ball(e = 1.5) for 1\n"), CDL_MODEL);
    assert_has(h.err, "t.cdl:1:10: error: parameter 'e' = 1.5 lies outside 0..1");
    assert_int_equal(run(s, "model m { param k\n dof x = k\n x'' = 0 }\nrun m for 1\n"), CDL_MODEL);
    assert_has(h.err, "parameter 'k' of model 'm' has no value");
    assert_int_equal(run(s, "run m(k = 4) for 1\n"), CDL_OK);
    double x = 0;
    assert_int_equal(cdl_value(s, "x(1)", &x), CDL_OK);
    assert_float_equal(x, 4, 1e-12);
    assert_int_equal(run(s, "run ball for 1 with vim()\n"), CDL_MODEL); /* for fields */
    assert_has(h.err, "backend 'vim' ");
    assert_has(h.err, "this model can run with ");
    cdl_free(s);
}

static void failed_runs_are_told(void **state)
{
    heard h;
    cdl *s = open_session(&h);
    double x = 0;
    (void)state;
    assert_int_equal(
        run(s, "model m { dof x = 0\n x*x'' = 1 }\nrun m for 1\nlet q = x(1)\nexpect x(1) == 0\nx(1)\n"),
        CDL_SOLVER);
    assert_has(h.err, "error: the mass matrix is not positive definite at t = 0");
    assert_null(strstr(h.err, "unknown")); /* what depends on it is omitted */
    assert_int_equal(cdl_finish(s), CDL_SOLVER);
    assert_has(h.out, "1 not tried");
    assert_int_equal(run(s, "run m for\n"), CDL_MODEL);
    assert_int_equal(run(s, "model n { dof x = 0\n x'' = 1 }\nrun n for 1\n"), CDL_OK);
    assert_int_equal(cdl_value(s, "x(1)", &x), CDL_OK);
    assert_float_equal(x, 0.5, 1e-9);
    cdl_free(s);
}

static void parameters_from_outside(void **state)
{
    heard h;
    cdl *s = open_session(&h);
    double x = 0;
    (void)state;
    assert_int_equal(cdl_set_param(s, "e", "1/4"), CDL_OK);
    assert_int_equal(cdl_set_param(s, "a", "7"), CDL_OK);
    assert_int_equal(cdl_set_param(s, "e", "1/"), CDL_USAGE);
    assert_int_equal(run(s, ball), CDL_USAGE); /* no object has an `a` */
    assert_has(h.err, "-p a");
    cdl_free(s);
    s = open_session(&h);
    assert_int_equal(cdl_set_param(s, "e", "1/4"), CDL_OK);
    assert_int_equal(cdl_set_param(s, "a", "7"), CDL_OK);
    assert_int_equal(cdl_run_text(s, "t.cdl", ball, strlen(ball)), CDL_USAGE);
    assert_int_equal(run(s, "param a = 1\nrun ball(e = 0.9) for 1\n"), CDL_OK);
    assert_int_equal(cdl_value(s, "a + e", &x), CDL_OK);
    assert_float_equal(x, 7.25, 0);
    cdl_free(s);
}

static void json_objects(void **state)
{
    heard h;
    cdl *s = open_session(&h);
    (void)state;
    assert_int_equal(cdl_set(s, "json", "yes"), CDL_OK);
    assert_int_equal(run(s, ball), CDL_OK);
    assert_int_equal(run(s, "run ball(e = 0.25) for 1 with sweeping(h = 0.01)\nmeasure a = 2*e, v = [1, "
                            "inf]\nexpect a == 0.5\n"
                            "experiment x {\n sweep e in [0.1, 0.2]\n run ball(e = e) for 1\n measure c = "
                            "e\n expect c == 0.1\n}\n"),
                     CDL_EXPECT);
    assert_int_equal(cdl_finish(s), CDL_EXPECT);
    assert_has(h.out,
               "{\"model\":\"ball\",\"experiment\":null,\"point\":{\"e\":0.25},\"backend\":\"sweeping\","
               "\"status\":\"ok\",\"measures\":{\"a\":0.5,"
               "\"v\":[1, \"inf\"]},\"expectations\":[{\"text\":\"a == "
               "0.5\",\"ok\":true,\"value\":0.5,\"bound\":0.5}],\"stats\":{\"steps\":100,\"seconds\":");
    assert_has(h.out, "\"experiment\":\"x\",\"point\":{\"e\":0.1},\"backend\":\"sweeping\",\"status\":\"ok\","
                      "\"measures\":{\"c\":0.1},\"expectations\":[{\"text\":\"c == 0.1\",\"ok\":true");
    assert_has(h.out, "\"point\":{\"e\":0.2},\"backend\":\"sweeping\",\"status\":\"ok\",\"measures\":{\"c\":"
                      "0.2},\"expectations\":[{\"text\":\"c == 0.1\",\"ok\":false");
    cdl_free(s);
}

static void options_are_checked(void **state)
{
    heard h;
    cdl *s = open_session(&h);
    (void)state;
    assert_int_equal(cdl_set(s, "colour", "no"), CDL_OK);
    assert_int_equal(cdl_set(s, "colour", "blue"), CDL_USAGE);
    assert_int_equal(cdl_set(s, "diagnostics", "json"), CDL_OK);
    assert_int_equal(cdl_set(s, "nothing", "yes"), CDL_USAGE);
    assert_int_equal(run(s, "foo\n"), CDL_MODEL);
    assert_has(h.err, "{\"file\":\"t.cdl\",\"line\":1,\"column\":1,");
    cdl_free(s);
}

static void definitions_may_be_replaced(void **state)
{
    heard h;
    cdl *s = open_session(&h);
    double x = 0;
    (void)state;
    assert_int_equal(run(s, "let a = 1\nlet a = 2\n"), CDL_MODEL);
    assert_has(h.err, "t.cdl:2:5: error: 'a' is defined twice");
    cdl_free(s);
    s = open_session(&h);
    assert_int_equal(cdl_set(s, "interactive", "yes"), CDL_OK);
    assert_int_equal(run(s, "let k = 1\nmodel m { dof x = k\n x'' = 0 }\nrun m for 1\n"), CDL_OK);
    assert_int_equal(run(s, "let k = 2\n"), CDL_OK);
    assert_int_equal(run(s, "run m for 1\n"), CDL_OK); /* the model is compiled again */
    assert_int_equal(cdl_value(s, "x(1)", &x), CDL_OK);
    assert_float_equal(x, 2, 1e-12);
    assert_int_equal(run(s, "let c = a2, a2 = c\n"), CDL_MODEL);
    assert_has(h.err, "is defined in terms of itself");
    cdl_free(s);
}

static void sessions_share_nothing(void **state)
{
    static heard g, h;
    cdl *a = open_session(&g), *b = open_session(&h);
    double x = 0;
    (void)state;
    assert_int_equal(run(a, "let k = 1\n"), CDL_OK);
    assert_int_equal(run(b, "let k = 2\n"), CDL_OK);
    assert_int_equal(cdl_value(a, "k", &x), CDL_OK);
    assert_float_equal(x, 1, 0);
    assert_int_equal(run(b, "foo\n"), CDL_MODEL);
    assert_int_equal((int)g.nerr, 0);
    cdl_free(b);
    assert_int_equal(cdl_value(a, "2*k", &x), CDL_OK);
    assert_float_equal(x, 2, 0);
    cdl_free(a);
}

static void interruption_keeps_what_there_is(void **state)
{
    heard h;
    cdl *s = open_session(&h);
    double x = 0;
    (void)state;
    assert_int_equal(run(s, ball), CDL_OK);
    h.stop_after = h.asked + 2;
    assert_int_equal(
        run(s, "run ball for 1000 with sweeping(h = 1e-3)\nexpect y(1000) == 0\nrun ball for 1\n"),
        CDL_SOLVER);
    assert_has(h.err, "interrupted at t = ");
    assert_int_equal(cdl_value(s, "last(t)", &x), CDL_OK);
    assert_true(x > 0 && x < 999);
    h.stop_after = 1 << 30;
    assert_int_equal(run(s, "run ball for 1\n"), CDL_OK);
    cdl_free(s);
}

/* A text from an open file: complete, or no text and a status. */
static void read_streams(void **state)
{
    (void)state;
    cdl *s = cdl_new(NULL);
    const char *text;
    size_t n;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "let a = 1\n", 10), 10);
    close(ends[1]);
    assert_int_equal(cdl_read(s, ends[0], &text, &n), CDL_OK);
    assert_int_equal(n, 10);
    assert_string_equal(text, "let a = 1\n");
    assert_int_equal(cdl_run_text(s, "pipe", text, n), CDL_OK);
    close(ends[0]);
    assert_int_equal(cdl_read(s, ends[0], &text, &n), CDL_IO);
    assert_null(text);
    assert_int_equal(cdl_read(s, -1, &text, &n), CDL_IO);
    cdl_free(s);
}

static void layout_and_names(void **state)
{
    heard h;
    cdl *s = open_session(&h);
    const char *out;
    size_t n;
    (void)state;
    assert_int_equal(cdl_fmt(s, "t.cdl", "let a=1\n", 8, &out, &n), CDL_OK);
    assert_int_equal(n, 10);
    assert_memory_equal(out, "let a = 1\n", 10);
    assert_int_equal(cdl_fmt(s, "t.cdl", "let a = (\n", 10, &out, &n), CDL_MODEL);
    assert_int_equal(cdl_complete(s, "model m {", 9), 0);
    assert_int_equal(cdl_complete(s, "1 + 1", 5), 1);
    assert_int_equal(run(s, ball), CDL_OK);
    assert_string_equal(cdl_name(s, "bal", 0), "ball");
    assert_int_equal(run(s, "run ball for 1\n"), CDL_OK);
    assert_string_equal(cdl_name(s, "floor.im", 0), "floor.impacts");
    assert_null(cdl_name(s, "nothing", 0));
    assert_has(cdl_version_json(s), "\"backends\":[");
    cdl_free(s);
}

/* An allocator whose n-th request fails. */
typedef struct {
    long left, held;
} purse;

static void *purse_grow(void *ud, void *p, size_t n)
{
    purse *w = ud;
    if (!n) {
        if (p)
            w->held--;
        free(p);
        return NULL;
    }
    if (w->left-- <= 0)
        return NULL;
    void *q = realloc(p, n);
    if (q && !p)
        w->held++;
    return q;
}

/* Every request fails in turn: the call returns a status, and all memory is freed. */
static void memory_may_run_out(void **state)
{
    static heard h;
    bool done = false;
    (void)state;
    for (long n = 0; n < 2000 && !done; n++) {
        purse w = { n, 0 };
        cdl_allocator al = { purse_grow, &w };
        cdl *s = cdl_new(&al);
        memset(&h, 0, sizeof h);
        h.stop_after = 1 << 30;
        if (s) {
            cdl_callbacks c = { on_out, on_err, on_ask, &h };
            cdl_set_callbacks(s, &c);
            cdl_status st = run(s, ball);
            if (st == CDL_OK)
                st = run(s, "run r = ball for 0.5\nmeasure a = max(y)\nexpect a == 1\nlet z = "
                            "r.y\nexperiment x { sweep e in [0.1, 0.2]\n run ball(e = e) for 0.1 }\n");
            done = st == CDL_OK;
            if (!done) {
                assert_int_equal(st, CDL_MEMORY);
                assert_int_equal(run(s, "1"), CDL_MEMORY);
                assert_int_equal(cdl_finish(s), CDL_MEMORY);
            }
            cdl_free(s);
        }
        assert_int_equal(w.held, 0);
    }
    assert_true(done);
}

static double cpu(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* the longest work between two questions whether the session was interrupted, in seconds of this process */
typedef struct {
    double last, longest, since; /* since: it was interrupted */
    int asked, stop_after;
} asking;

static int ask_again(void *ud)
{
    asking *x = ud;
    double now = cpu();
    x->longest = fmax(x->longest, now - x->last);
    x->last = now;
    if (++x->asked == x->stop_after)
        x->since = now;
    return x->asked >= x->stop_after;
}

static void load_asking(const char *text, asking *x)
{
    cdl *s = cdl_new(NULL);
    cdl_set_callbacks(s, &(cdl_callbacks){ .interrupted = ask_again, .ud = x });
    x->last = cpu();
    bool ok = cdl_run_text(s, "many.cdl", text, strlen(text)) == CDL_OK;
    assert_int_equal(ok, x->asked < x->stop_after);
    x->longest = fmax(x->longest, cpu() - x->last);
    x->since = cpu() - x->since;
    cdl_free(s);
}

/* Many declarations: each part of the work on them asks, and what follows an interrupt is short, so that it
   is answered within a second on a machine that does much else besides. */
static void many_names_ask_often(void **state)
{
    enum { NAMES = 20000, LONGEST_LINE = 64, PLACES = 5, NEVER = 1 << 30 };
    static const char *const each[] = { "let a%d = x[%d]\n", "param p%d = %d\n", "fn f%d(s) = s*%d\n",
                                        "constraint c%d: x[%d] >= 0\n" };
    (void)state;
    char *text = malloc(NAMES * LONGEST_LINE);
    int asked = 0;
    for (size_t k = 0; k < sizeof each / sizeof *each; k++) {
        size_t n = (size_t)sprintf(text, "model m { dof x[i in 1..%d] = 1; for i in 1..%d { x[i]'' = -1 }\n",
                                   NAMES, NAMES);
        for (int i = 1; i <= NAMES; i++)
            n += (size_t)sprintf(text + n, each[k], i, i);
        sprintf(text + n, "}\nrun m for 0.05 with sweeping(h = 1e-2)\n");
        asking x = { .stop_after = NEVER };
        load_asking(text, &x);
        assert_true(x.asked > 20 && x.longest < 0.25);
        asked = x.asked;
    }
    for (int k = 1; k < PLACES; k++) {
        asking x = { .stop_after = asked * k / PLACES };
        load_asking(text, &x);
        print_message("longest %.3f s, %.3f s after an interrupt\n", x.longest, x.since);
        assert_true(x.since < 0.5);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_names_ask_often),
        cmocka_unit_test(read_streams),
        cmocka_unit_test(statuses_have_texts),
        cmocka_unit_test(values_of_expressions),
        cmocka_unit_test(results_are_values),
        cmocka_unit_test(expectations_count),
        cmocka_unit_test(errors_come_in_one_go),
        cmocka_unit_test(bounds_and_missing_values),
        cmocka_unit_test(failed_runs_are_told),
        cmocka_unit_test(parameters_from_outside),
        cmocka_unit_test(json_objects),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(definitions_may_be_replaced),
        cmocka_unit_test(sessions_share_nothing),
        cmocka_unit_test(interruption_keeps_what_there_is),
        cmocka_unit_test(layout_and_names),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests_name("session", tests, NULL, NULL);
}
