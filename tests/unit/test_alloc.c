/* Every allocation fails in turn, using only the public header: each call that fails reports it, the session
   can be freed, and no memory is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "cdl.h"

/* an allocator that counts requests; one fails, and all later ones */
typedef struct {
    long live, requests, fail_at;
} meter;

static void *meter_grow(void *ud, void *p, size_t n)
{
    meter *m = ud;
    if (!n) {
        m->live -= p != NULL;
        free(p);
        return NULL;
    }
    if (++m->requests >= m->fail_at && m->fail_at)
        return NULL;
    void *q = realloc(p, n);
    m->live += q && !p;
    return q;
}

static void swallow(void *ud, const char *text, size_t len)
{
    *(size_t *)ud += len && text[0];
}

static char folder[] = "/tmp/cdl-alloc-XXXXXX";

static const char good[] =
    "## a ball, a belt and a chain\n"
    "param h0 = 1 [m]\n"
    "fn half(x) = x/2\n"
    "let drop = half(2*h0), list = [i^2 for i in 1..5 where i != 3]\n"
    "model ball {\n"
    "    param g = 9.81 [m/s^2], y0 = 1 [m], e in 0..1 = 0.5\n"
    "    dof y = y0, y' = 0 [m/s]\n"
    "    y'' = -g\n"
    "    constraint floor: y >= 0 { impact = newton(e) }\n"
    "}\n"
    "model link { param k = 2; dof q = 0.1; kinetic q'^2/2; potential k*q^2/2 }\n"
    "model chain {\n"
    "    param N = 3\n"
    "    part a[i in 1..N]: link(k = i)\n"
    "    constraint halt[i in 1..N-1]: a[i+1].q - a[i].q >= -0.2 { impact = newton(0.3) }\n"
    "    constraint rub { normal = 1, slip = a[1].q', friction = coulomb(0.1) }\n"
    "}\n"
    "run ball for 0.6 with sweeping(h = 0.02)\n"
    "measure top = max(y), n = count(floor.impacts)\n"
    "expect top == 1 within 1e-9\n"
    "save t, y, y' { file = \"alloc.csv\" }\n"
    "run r = chain(N = 2) for 0.1 with sweeping(h = 0.02)\n"
    "expect last(r.a[1].q) < 1\n"
    "experiment sweep_e { sweep e in [0.2, 0.4]; run ball(e = e) for 0.5 with sweeping(h = 0.05); measure "
    "last_y = last(y) }\n";
static const char bad[] =
    "model b {\n    parm g = 1\n    dof x = 0 [m]\n    x'' = -k + 1 [s]\n}\nlet z = sqr(2)\n";

/* Memory is allocated in blocks: a comment before the text shifts the places at which they end. */
enum { SHIFTS = 100, SHIFT = 661 };
static char text_of[SHIFTS * SHIFT + sizeof good];
static size_t shifted(size_t pad)
{
    memset(text_of, '#', pad);
    if (pad)
        text_of[pad - 1] = '\n';
    memcpy(text_of + pad, good, sizeof good);
    return pad + sizeof good - 1;
}

/* What a program might do with a session, from beginning to end; it stops at the first CDL_MEMORY. */
static cdl_status whole(meter *m, size_t *said, size_t len)
{
    const cdl_allocator al = { meter_grow, m };
    const cdl_callbacks to = { .out = swallow, .err = swallow, .ud = said };
    const char *text;
    size_t n;
    double x;
    cdl *s = cdl_new(&al);
    if (!s)
        return CDL_MEMORY;
    cdl_set_callbacks(s, &to);
    cdl_status st = cdl_set(s, "output", folder);
    if (st != CDL_MEMORY)
        st = cdl_run_text(s, "good.cdl", text_of, len);
    if (st != CDL_MEMORY) {
        assert_int_equal(st, CDL_OK);
        st = cdl_value(s, "top + list[2]", &x);
        if (st == CDL_OK)
            assert_true(x > 4.99 && x < 5.01);
    }
    if (st != CDL_MEMORY)
        st = cdl_show_text(s, "jacobian", "good.cdl", text_of, len);
    if (st != CDL_MEMORY)
        st = cdl_fmt(s, "good.cdl", text_of, len, &text, &n);
    if (st != CDL_MEMORY) {
        assert_int_equal(st, CDL_OK);
        st = cdl_run_text(s, "bad.cdl", bad, sizeof bad - 1);
        assert_true(st == CDL_MODEL || st == CDL_MEMORY);
    }
    if (st != CDL_MEMORY)
        st = cdl_finish(s);
    /* after one failed allocation, the session only returns CDL_MEMORY */
    if (st == CDL_MEMORY) {
        assert_int_equal(cdl_run_text(s, "t.cdl", "let a = 1\n", 10), CDL_MEMORY);
        assert_int_equal(cdl_value(s, "1 + 1", &x), CDL_MEMORY);
    }
    cdl_free(s);
    return st;
}

static void test_every_failure(void **state)
{
    (void)state;
    size_t said = 0;
    long tried = 0;
    for (size_t shift = 0; shift < SHIFTS; shift++) {
        meter m = { 0 };
        size_t len = shifted(shift * SHIFT);
        /* with enough memory, the error in the text is reported */
        assert_int_equal(whole(&m, &said, len), CDL_MODEL);
        assert_int_equal(m.live, 0);
        assert_true(said > 0);
        long all = m.requests;
        for (long k = 1; k <= all; k++, tried++) {
            m = (meter){ .fail_at = k };
            cdl_status st = whole(&m, &said, len);
            if (st != CDL_MEMORY || m.live)
                print_error("shift %zu, request %ld of %ld: status %d, %ld blocks left\n", shift, k, all,
                            (int)st, m.live);
            assert_int_equal(st, CDL_MEMORY);
            assert_int_equal(m.live, 0);
        }
    }
    print_message("%ld requests, each made to fail\n", tried);
}

/* Many small models. */
static void test_many_definitions(void **state)
{
    (void)state;
    enum { MODELS = 60, ROOM = 200 };
    char *text = malloc(MODELS * ROOM);
    size_t n = 0;
    assert_non_null(text);
    for (int k = 0; k < MODELS; k++)
        n += (size_t)snprintf(text + n, ROOM,
                              "model m%d { dof x[i in 1..9] = i; for i in 1..9 { x[i]'' = -%d*x[i] }; "
                              "constraint c[i in 1..8]: x[i] <= x[i+1] }\n",
                              k, k + 1);
    meter m = { 0 };
    size_t said = 0;
    const cdl_callbacks to = { .out = swallow, .err = swallow, .ud = &said };
    long all = 0;
    for (long k = 0; k <= all; k++) {
        m = (meter){ .fail_at = k };
        const cdl_allocator al = { meter_grow, &m };
        cdl *s = cdl_new(&al);
        cdl_status st = CDL_MEMORY;
        if (s) {
            cdl_set_callbacks(s, &to);
            st = cdl_check_text(s, "many.cdl", text, n);
            cdl_free(s);
        }
        assert_int_equal(st, k ? CDL_MEMORY : CDL_OK);
        assert_int_equal(m.live, 0);
        if (!k)
            all = m.requests;
    }
    free(text);
}

static int folder_make(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}
static int folder_drop(void **state)
{
    static const char *const files[] = { "alloc.csv", "manifest.json", "sweep_e.csv" };
    char path[200];
    (void)state;
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[k]);
        unlink(path);
    }
    rmdir(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_failure),
        cmocka_unit_test(test_many_definitions),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_drop);
}
