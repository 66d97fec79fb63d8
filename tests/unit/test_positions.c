/* Every function in every position, every law in every attribute, every option of every backend: each text
   gets an answer, or an error with its place. The lists are those of the program, so new rows are tested
   automatically. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "cdl.h"
#include "session/session.h"

/* ---- one text ---- */

static char text_now[4096], said[1 << 14];
static size_t said_n;
static int asked;

static void on_signal(int signal_)
{
    static const char crash[] = "\n# this text crashes:\n";
    ssize_t done = write(2, crash, sizeof crash - 1);
    done = write(2, text_now, strlen(text_now));
    (void)done;
    signal(signal_, SIG_DFL);
    raise(signal_);
}

static void on_out(void *ud, const char *t, size_t n)
{
    (void)ud;
    (void)t;
    (void)n;
}

static void on_err(void *ud, const char *t, size_t n)
{
    (void)ud;
    if (n > sizeof said - 1 - said_n)
        n = sizeof said - 1 - said_n;
    memcpy(said + said_n, t, n);
    said_n += n;
    said[said_n] = 0;
}

/* long runs are stopped: only their start matters here */
static int on_ask(void *ud)
{
    (void)ud;
    return ++asked > 2;
}

/* Every error has a place in the text. */
static bool is_located(void)
{
    for (const char *p = said; (p = strstr(p, "error:")); p++) {
        const char *line = p;
        while (line > said && line[-1] != '\n')
            line--;
        if (strncmp(line, "t.cdl:", 6))
            return false;
    }
    return true;
}

static int failures, texts;

static void try_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void try_text(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text_now, sizeof text_now, fmt, ap);
    va_end(ap);
    cdl *s = cdl_new(NULL);
    cdl_callbacks c = { on_out, on_err, on_ask, NULL };
    cdl_set_callbacks(s, &c);
    said_n = 0;
    said[0] = 0;
    asked = 0;
    cdl_status status = cdl_run_text(s, "t.cdl", text_now, strlen(text_now));
    bool refused = status == CDL_MODEL || status == CDL_SOLVER;
    bool good = status == CDL_OK || status == CDL_EXPECT || status == CDL_IO ||
                (refused && is_located() && said_n);
    texts++;
    if (!good && failures++ < 20)
        print_message("# status %d:\n%s\n# said:\n%s\n", (int)status, text_now, said);
    cdl_free(s);
}

/* ---- expressions ---- */

static const char *const kinds[] = {
    "",
    "1",
    "0.5",
    "-2",
    "1e300",
    "1 [m]",
    "x",
    "x'",
    "t",
    "k",
    "[1, 2]",
    "[x, y]",
    "[1, 2; 3, 4]",
    "\"text\"",
    "1..3",
    "f",
    "ball([0, 0], 1)",
    "i for i in 1..3",
    "c",
    "true",
    "x > 0",
    "m",
    "u",
    "d(x, t)",
    "random()",
};

/* %s is the expression; each text is a position. */
static const char *const positions[] = {
#define MODEL "model m { param k = 2; fn f(s) = 2*s; dof x = 1, y = 0, x' = 1; constraint c: x >= -5; "
#define RUN   "\nrun m for 0.01 with sweeping(h = 0.005)"
    MODEL "x'' = %s; y'' = 0 }" RUN,
    MODEL "x'' = -(%s)*y; y'' = 0 }" RUN,
    "model m { param k = 2; fn f(s) = s; dof y = 0, x = %s; x'' = -k; y'' = 0; constraint c: x >= -1e9 }" RUN,
    "model m { param k = 2; fn f(s) = s; dof x = 0, y = 0, x' = %s; x'' = -k; y'' = 0; constraint c: x >= -1 "
    "}" RUN,
    "model m { param k = 2, a = %s; fn f(s) = s; dof x = 0, y = 0; x'' = -a*k; y'' = 0; constraint c: x >= "
    "-1 }" RUN,
    "model m { param k = 2, a in 0..%s = 0.5; fn f(s) = s; dof x = 0, y = 0; x'' = -a*k; y'' = 0 }" RUN,
    MODEL "let a = %s; x'' = -a; y'' = 0 }" RUN,
    MODEL "x'' = -1; y'' = 0; constraint b: x >= -1 { friction = coulomb(%s) } }" RUN,
    MODEL "x'' = -1; y'' = 0; constraint b: x >= -1 { friction = tresca(%s) } }" RUN,
    MODEL "x'' = -1; y'' = 0; constraint b: x >= -1 { impact = newton(%s) } }" RUN,
    MODEL "x'' = -1; y'' = 0; constraint b { normal = %s, slip = y', friction = coulomb(0.1) } }" RUN,
    MODEL "x'' = -1; y'' = 0; constraint b: x >= -1 { slip = %s, friction = coulomb(0.1) } }" RUN,
    MODEL "x'' = -1; y'' = 0; constraint b: x - (%s) >= -1e4 }" RUN,
    MODEL "x'' = -1; y'' = 0; constraint b: x + y = %s }" RUN,
    MODEL "history x(s) = %s; x'' = -x(t - 0.1); y'' = 0 }" RUN,
    MODEL "x'' = -x(t - (%s)); y'' = 0 }" RUN,
    MODEL "for i in 1..1 where %s { x'' = -i }; y'' = 0 }" RUN,
    MODEL "dof z[i in 1..3] = 0; for i in 1..3 where i > (%s) { z[i]'' = -i }; x'' = 0; y'' = 0 }" RUN,
    MODEL "dof z[3] = 0; for i in 1..3 { z[i]'' = if i > 1 then z[i - 1] else %s }; x'' = 0; y'' = 0 }" RUN,
    MODEL "dof z[%s] = 0; z'' = 0*z; x'' = 0; y'' = 0 }" RUN,
    MODEL "x'' = [1, 2, 3][%s]; y'' = 0 }" RUN,
    MODEL "x'' = sum(i for i in 1..(%s)); y'' = 0 }" RUN,
    MODEL "x'' = integral(s*(%s) for s in 0..1); y'' = 0 }" RUN,
    MODEL "x'' = -1; y'' = 0; when %s { x' = -x' } }" RUN,
    MODEL "x'' = -1; y'' = 0; when x < 1 { x' = %s } }" RUN,
    MODEL "x'' = -1; y'' = 0; stop when x < %s }" RUN,
    MODEL "kinetic (x'^2 + y'^2)/2 + 0*(%s); potential x }" RUN,
    MODEL "kinetic (x'^2 + y'^2)/2; potential %s }" RUN,
    MODEL "kinetic (x'^2 + y'^2)/2; dissipation %s }" RUN,
    MODEL "kinetic (x'^2 + y'^2)/2; force x: %s }" RUN,
    "model d { param k = 1; dof x = 0; x'' = -k }\nmodel m { fn f(s) = s; dof y = 0; y'' = 0; part q: d(k = "
    "%s) { x = 1 } }" RUN,
    "model d { param k = 1; dof x = 0; x'' = -k }\nmodel m { fn f(s) = s; dof y = 0; y'' = 0; part q: d { x "
    "= %s } }" RUN,
    "model m { param k = 1; fn f(s) = s; dof x = 0; k*x' in -(%s) }\nrun m for 0.01 with inclusion(h = "
    "0.005)",
    "model m { param k = 1; fn f(s) = s; dof x = 0; x' in k - Sgn(%s) }\nrun m for 0.01 with inclusion(h = "
    "0.005)",
    "model m { param k = 1; fn f(s) = s; domain x in 0..1; field u(x); -u'' = %s; at x = 0 { u = 0 }; at x = "
    "1 { u = 0 } }\n"
    "run m with active_set(cells = 8)",
    "model m { param k = 1; fn f(s) = s; domain x in 0..1; field u(x); -u'' = -1; obstacle u >= %s - 2; at x "
    "= 0 { u = 0 };"
    " at x = 1 { u = 0 } }\nrun m with active_set(cells = 8)",
    "model m { param k = 1; fn f(s) = s; domain x in 0..1; field u(x); -u'' = -1; at x = 0 { u = %s }; at x "
    "= 1 { u = 0 } }\n"
    "run m with vim()",
    "model m { param k = 1; fn f(s) = s; domain x in 0..1, y in 0..1; field u(x, y); -laplacian(u) = %s; "
    "boundary u = 0 where"
    " x < 2 }\nrun m with active_set(cells = 4)",
    "model m { param k = 1; fn f(s) = s; domain x in 0..1, y in 0..1; field u(x, y); -laplacian(u) = -1; "
    "boundary u = %s }\n"
    "run m with active_set(cells = 4)",
    "model m { rod w { length = 1, radius = %s, young = 1e6, poisson = 0.4, elements = 2 }\n"
    "at w.s = 0 { position = [0, 0, 0], frame = eye(3) } }\nrun m for 1 with auglag(h = 0.5)",
    "model m { rod w { length = 1, radius = 0.1, young = 1e6, poisson = 0.4, elements = 2 }\n"
    "at w.s = 0 { position = [0, 0, 0], frame = eye(3) }\nforce w.x(1): %s }\nrun m for 1 with auglag(h = "
    "0.5)",
    "let x = 1, y = 2, k = 3\nfn f(s) = s\nlet a = %s\na",
    "let x = 1, y = 2, k = 3\nfn f(s) = s\nfn g(s) = %s\ng(2)",
    "let x = 1, y = 2, k = 3\nfn f(s) = s\nexperiment e { sweep a in %s; run nothing for 1 }",
    MODEL "x'' = -1; y'' = 0 }\nrun m for %s with sweeping(h = 0.005)",
    MODEL "x'' = -1; y'' = 0 }\nrun m for 0.01 with sweeping(h = %s)",
    MODEL "x'' = -1; y'' = 0 }\nrun m(k = %s) for 0.01 with sweeping(h = 0.005)",
    MODEL "x'' = -1; y'' = 0 }" RUN "\n%s",
    MODEL "x'' = -1; y'' = 0 }" RUN "\nmeasure a = %s",
    MODEL "x'' = -1; y'' = 0 }" RUN "\nexpect %s == 1 within abs(1)",
    MODEL "x'' = -1; y'' = 0 }" RUN "\nexpect x(0) == 1 within %s",
    MODEL "x'' = -1; y'' = 0 }" RUN "\nexpect x(%s) > 0 or true",
    MODEL "x'' = -1; y'' = 0 }" RUN "\nsave t, %s { file = \"positions.csv\" }",
    MODEL "x'' = -1; y'' = 0 }" RUN "\nsave t, x { file = \"positions.csv\", every = %s }",
};

static void try_everywhere(const char *expression)
{
    for (size_t k = 0; k < sizeof positions / sizeof *positions; k++) {
        char whole[3000];
        const char *gap = strstr(positions[k], "%s");
        snprintf(whole, sizeof whole, "%.*s%s%s", (int)(gap - positions[k]), positions[k], expression,
                 gap + 2);
        try_text("%s", whole);
    }
}

/* Tests a part of the positions for one kind of argument, so that all kinds of arguments together cover all
   positions. */
static void try_function(const builtin *b, const char *name)
{
    static size_t turn;
    size_t npos = sizeof positions / sizeof *positions, nkind = sizeof kinds / sizeof *kinds;
    for (size_t p = 0; p < npos; p++) {
        const char *gap = strstr(positions[p], "%s");
        for (int shot = 0; shot < 3; shot++, turn++) {
            char call[600], whole[3000];
            int n = b->min + (int)(turn % 3 == 2 && b->max != b->min);
            size_t used = (size_t)snprintf(call, sizeof call, "%s(", name);
            for (int i = 0; i < n; i++)
                used += (size_t)snprintf(call + used, sizeof call - used, "%s%s", i ? ", " : "",
                                         kinds[(turn * 7 + (size_t)i * 5) % nkind]);
            snprintf(call + used, sizeof call - used, ")");
            snprintf(whole, sizeof whole, "%.*s%s%s", (int)(gap - positions[p]), positions[p], call, gap + 2);
            try_text("%s", whole);
        }
    }
}

static void setup(void)
{
    int list[] = { SIGSEGV, SIGABRT, SIGFPE, SIGBUS };
    for (size_t k = 0; k < sizeof list / sizeof *list; k++)
        signal(list[k], on_signal);
    failures = texts = 0;
}

static void report(void)
{
    print_message("# %d texts, %d failures\n", texts, failures);
    assert_int_equal(failures, 0);
}

static void test_arguments(void **state)
{
    (void)state;
    setup();
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        try_everywhere(kinds[k]);
    report();
}

static void test_functions(void **state)
{
    (void)state;
    setup();
    for (const builtin *b = builtin_list; b->name; b++)
        try_function(b, b->name);
    for (const builtin *b = result_builtins; b->name; b++)
        try_function(b, b->name);
    for (int op = 0; op < OP_COUNT; op++)
        if (builtin_find(op_name((op_code)op)))
            try_function(&op_builtin[op], op_name((op_code)op));
    report();
}

/* ---- laws and attributes, backends and their options ---- */

static const char *const laws[] = {
#define X(id, name, role, args, doc) name,
#include "model/laws.def"
#undef X
};

static void test_laws(void **state)
{
    static const char *const with[] = { "", ", slip = y'", ", normal = 1", ", slip = y', normal = 1" };
    (void)state;
    setup();
    for (size_t l = 0; l < sizeof laws / sizeof *laws; l++)
        for (int key = 0; contact_keys[key]; key++)
            for (size_t w = 0; w < sizeof with / sizeof *with; w++)
                for (int closed = 0; closed < 2; closed++)
                    for (size_t b = 0; backend_list[b]; b++)
                        try_text("model m { dof x = 0, y = 0, y' = 1; x'' = -1; y'' = -y\n"
                                 "constraint c%s { %s = %s(0.5)%s } }\nrun m for 0.1 with "
                                 "%s()\nc.rn(0.1)\nc.rt(0.1)",
                                 closed ? "" : ": x >= 0", contact_keys[key], laws[l], with[w],
                                 backend_list[b]->name);
    report();
}

/* Every attribute with its arguments, and constraints on rates: a backend runs it or refuses it by name. */
static const char *const given[] = {
    "x >= 0 { adhesion = 1 }",
    "x >= 0 { simultaneous = cascade }",
    "x >= 0 { simultaneous = together }",
    "x >= 0 { slip = y', friction = coulomb(static = 0.5, kinetic = 0.3) }",
    "x >= 0 { slip = y', friction = coulomb(0.5), impact = newton(0.5, tangential = 0.5) }",
    "x >= 0 { impact = newton(law) }",
    "x >= 0 { rolling = coulomb(0.1), roll = y' }",
    "x >= 0 { spinning = coulomb(0.1), spin = y' }",
    "x' <= 1",
    "x' = y' - 1",
    "x' <= 1 { slip = y', friction = coulomb(0.5) }",
    "x >= 0; constraint d { normal = c.rn, slip = y', friction = coulomb(0.5) }",
};

static void test_given(void **state)
{
    (void)state;
    setup();
    for (size_t k = 0; k < sizeof given / sizeof *given; k++)
        for (size_t b = 0; backend_list[b]; b++)
            try_text("model m { fn law(v) = 1/(1 + v); dof x = 0, y = 0, y' = 1; x'' = -1; y'' = -y\n"
                     "constraint c: %s }\nrun m for 0.1 with %s()\nc.rn(0.1)\nc.gap(0.1)",
                     given[k], backend_list[b]->name);
    report();
}

/* One model of each kind; a backend runs it or refuses it. */
static const char *const models[] = {
    "model m { dof x = 1, x' = 0; x'' = -9.81; constraint c: x >= 0 { impact = newton(0.5) } }\nrun m for "
    "0.1",
    "model m { dof x = 1, y = 0, y' = 1; x'' = -9.81; y'' = 0; when x < 0.9 { x' = 1 }\n"
    "constraint c: x >= 0 { friction = tresca(0.1) } }\nrun m for 0.1",
    "model m { dof x = 1; x'' = -x(t - 0.05) }\nrun m for 0.1",
    "model m { param eps = 0.1; dof v = 0; eps*v' in 1 - v - Sgn(v) }\nrun m for 0.1",
    "model m { domain x in 0..1; field u(x); -u'' = -8; obstacle u >= -0.5; at x = 0 { u = 0 }; at x = 1 { u "
    "= 0 } }\nrun m",
    "model m { rod w { length = 1, radius = 0.01, young = 1e6, poisson = 0.4, elements = 4 }\n"
    "at w.s = 0 { position = [0, 0, 0], frame = eye(3) }\nforce w.x(1): [t*1e-5, 0, 0] }\nrun m for 1",
};

static void try_option(const backend *b, const backend_option *o, const char *value_)
{
    for (size_t k = 0; k < sizeof models / sizeof *models; k++)
        try_text("%s with %s(%s = %s)", models[k], b->name, o->name, value_);
}

static void test_options(void **state)
{
    static const char *const values[] = { "0",     "-1",     "0.5",   "1",      "2",       "7",
                                          "1e-12", "1e-300", "1e300", "inf",    "1/0-1/0", "true",
                                          "find",  "\"s\"",  "x",     "[1, 2]", "1 [m]",   "eps" };
    (void)state;
    setup();
    for (size_t b = 0; backend_list[b]; b++)
        for (int k = 0; k < backend_list[b]->noption; k++)
            for (size_t v = 0; v < sizeof values / sizeof *values; v++)
                try_option(backend_list[b], &backend_list[b]->option[k], values[v]);
    report();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments), cmocka_unit_test(test_functions), cmocka_unit_test(test_laws),
        cmocka_unit_test(test_given),     cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
