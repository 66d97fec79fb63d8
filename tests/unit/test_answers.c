/* Diagnostics as structures, and queries of editors, through the public header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>
#include "cdl.h"

static const char wrong[] = "# 𝄞\n"
                            "model ball {\n"
                            "    param g = 9.81 [m/s^2]\n"
                            "    dof y = 1 [m]\n"
                            "    y'' = -g\n"
                            "    constraint floor: y >= 0 { impact = newtn(0.5 }\n"
                            "    constraint roof: y <= 3 [s]\n"
                            "}\n"
                            "run ball for 1; expect \"𝄞\" == yy\n";

static const cdl_diagnostic *with_code(const cdl_diagnostic *d, size_t n, const char *code)
{
    for (size_t k = 0; k < n; k++)
        if (!strcmp(d[k].code, code))
            return &d[k];
    fail_msg("no diagnostic %s", code);
    return NULL;
}

static void test_diagnostics(void **state)
{
    (void)state;
    cdl *s = cdl_new(NULL);
    const cdl_diagnostic *d;
    assert_int_equal(cdl_diagnostics(s, &d), 0);
    assert_int_equal(cdl_check_text(s, "w.cdl", wrong, sizeof wrong - 1), CDL_MODEL);
    size_t n = cdl_diagnostics(s, &d);
    assert_int_equal(n, 3);
    const cdl_diagnostic *e = with_code(d, n, "syntax");
    assert_string_equal(e->at.file, "w.cdl");
    assert_int_equal(e->at.begin.line, 6);
    assert_int_equal(e->nsecond, 1);
    assert_int_equal(e->second->at.begin.column, 46);
    assert_int_equal(e->severity, CDL_SEVERITY_ERROR);
    assert_null(e->replacement);
    e = with_code(d, n, "unit-mismatch");
    assert_int_equal(e->at.begin.line, 7);
    e = with_code(d, n, "unknown-name");
    assert_int_equal(e->at.begin.line, 9);
    assert_int_equal(e->at.begin.column, 31);
    assert_int_equal(e->at.begin.column16, 32);
    assert_int_equal(e->at.end.column16, 34);
    assert_memory_equal(wrong + e->at.begin.byte, "yy", 2);
    cdl_set(s, "quiet", "yes");
    assert_int_equal(cdl_diagnostics(s, &d), 0);
    cdl_free(s);
}

/* The replacement that would correct a mistake, and its place. */
static void test_replacement(void **state)
{
    (void)state;
    static const struct {
        const char *text, *wrong, *right;
    } cases[] = { { "let speed = 1\nlet b = 2*sped\n", "sped", "speed" },
                  { "let a = 3\nlet b = a ** 2\n", "**", "^" },
                  { "model m {\n    parm k = 1\n}\n", "parm", "param" },
                  { "let a = 3 [kgg]\n", "kgg", "kg" },
                  { "model m { dof x = 0; x' = 1 }\nrun m for 1 with sweepng(h = 1)\n", "sweepng",
                    "sweeping" } };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        cdl *s = cdl_new(NULL);
        const cdl_diagnostic *d;
        cdl_check_text(s, "r.cdl", cases[k].text, strlen(cases[k].text));
        assert_int_equal(cdl_diagnostics(s, &d), 1);
        assert_non_null(d->replacement);
        assert_string_equal(d->replacement, cases[k].right);
        assert_int_equal(d->nhint, 1);
        assert_int_equal(d->replace.begin.byte, strstr(cases[k].text, cases[k].wrong) - cases[k].text);
        assert_int_equal(d->replace.end.byte - d->replace.begin.byte, strlen(cases[k].wrong));
        cdl_free(s);
    }
}

/* A text with a name; the file of that name is not read. */
static void test_check_as(void **state)
{
    (void)state;
    cdl *s = cdl_new(NULL);
    const cdl_diagnostic *d;
    static const char text[] = "use \"../secret.cdl\" as x\n";
    assert_int_equal(cdl_check_as(s, "/nowhere/a.cdl", "let a = 1\n", 10), CDL_OK);
    cdl_free(s);
    s = cdl_new(NULL);
    assert_int_equal(cdl_check_as(s, "/nowhere/a.cdl", text, sizeof text - 1), CDL_MODEL);
    assert_int_equal(cdl_diagnostics(s, &d), 1);
    assert_string_equal(d->code, "outside");
    cdl_free(s);
}

static const char good[] = "## A spring.\n"
                           "model spring {\n"
                           "    param k = 2 [N/m], m = 1 [kg]\n"
                           "    dof x = 1 [m]\n"
                           "    let f = k*x\n"
                           "    m*x'' = -f\n"
                           "    constraint wall: x <= 2 [m]\n"
                           "}\n"
                           "run r = spring(k = 3 [N/m]) for 1\n"
                           "expect r.wall.gap(0) >= 0\n";

/* Offset of the n-th occurrence of a text, from 0. */
static size_t place(const char *what, int nth)
{
    const char *p = good;
    while ((p = strstr(p, what)) && nth--)
        p++;
    assert_non_null(p);
    return (size_t)(p - good);
}

static int has_choice(cdl *s, size_t byte, const char *name)
{
    const cdl_choice *c;
    size_t from, n = cdl_choices(s, byte, &from, &c);
    for (size_t k = 0; k < n; k++)
        if (!strcmp(c[k].name, name))
            return 1;
    return 0;
}

static void test_answers(void **state)
{
    (void)state;
    cdl *s = cdl_new(NULL);
    cdl_span at;
    const char *text;
    const cdl_use *use;
    const cdl_symbol *sym;
    const cdl_inlay *inlay;
    cdl_signature sig;
    assert_int_equal(cdl_check_text(s, "g.cdl", good, sizeof good - 1), CDL_OK);
    assert_int_equal(cdl_declaration(s, place("k*x", 0), &at), CDL_OK);
    assert_int_equal(at.begin.byte, place("k = 2", 0));
    assert_int_equal(cdl_references(s, place("k = 2", 0), &use), 3);
    assert_int_equal(use[0].declares, 1);
    assert_int_equal(use[2].at.begin.byte, place("k = 3", 0));
    assert_int_equal(cdl_describe(s, place("f = k", 0), &at, &text), CDL_OK);
    assert_non_null(strstr(text, "[kg*m/s^2]"));
    assert_int_equal(cdl_describe(s, place("x''", 0), &at, &text), CDL_OK);
    assert_non_null(strstr(text, "x''"));
    assert_int_equal(cdl_symbols(s, &sym), 7);
    assert_string_equal(sym[0].name, "spring");
    assert_int_equal(sym[1].parent, 0);
    assert_int_equal(cdl_inlays(s, &inlay), 1);
    assert_string_equal(inlay->text, "[kg*m/s^2]");
    assert_int_equal(inlay->at.byte, place("f = k", 0) + 1);
    assert_int_equal(cdl_signature_at(s, place("k = 3", 0), &sig), CDL_OK);
    assert_int_equal(sig.nargument, 2);
    assert_true(has_choice(s, place("gap(0)", 0), "gap"));
    assert_true(has_choice(s, place("gap(0)", 0), "impacts"));
    assert_false(has_choice(s, place("gap(0)", 0), "spring"));
    assert_true(has_choice(s, place("spring(k", 0), "spring"));
    assert_int_equal(cdl_is_name(s, "α1", 3), 1);
    assert_int_equal(cdl_is_name(s, "run", 3), 0);
    assert_int_equal(cdl_is_name(s, "a b", 3), 0);
    assert_int_equal(cdl_is_name(s, "", 0), 0);
    cdl_free(s);
}

static void ask_all(cdl *s, size_t byte)
{
    cdl_span at;
    const char *text;
    const cdl_use *use;
    const cdl_symbol *sym;
    const cdl_inlay *inlay;
    const cdl_choice *choice;
    const cdl_diagnostic *d;
    cdl_signature sig;
    size_t from;
    cdl_diagnostics(s, &d);
    cdl_declaration(s, byte, &at);
    cdl_references(s, byte, &use);
    cdl_describe(s, byte, &at, &text);
    cdl_symbols(s, &sym);
    cdl_uses(s, &use);
    cdl_inlays(s, &inlay);
    cdl_choices(s, byte, &from, &choice);
    cdl_signature_at(s, byte, &sig);
    cdl_is_name(s, "a", 1);
}

/* Queries without a text, and beyond its end. */
static void test_no_text(void **state)
{
    (void)state;
    cdl *s = cdl_new(NULL);
    ask_all(s, 0);
    ask_all(s, 1000);
    cdl_check_text(s, "e.cdl", "", 0);
    ask_all(s, 0);
    ask_all(s, SIZE_MAX);
    cdl_check_text(s, "g.cdl", good, sizeof good - 1);
    for (size_t k = 0; k < sizeof good + 10; k++)
        ask_all(s, k);
    cdl_free(s);
}

/* An allocator that makes freed memory unreadable. */
static void *grow_guarded(void *ud, void *p, size_t n)
{
    enum { HEAD = 64 };
    (void)ud;
    char *block = p ? (char *)p - HEAD : NULL, *to = NULL;
    size_t old = block ? *(size_t *)block : 0;
    if (n) {
        to = mmap(NULL, n + HEAD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (to == MAP_FAILED)
            return NULL;
        *(size_t *)to = n;
        memcpy(to + HEAD, block ? block + HEAD : to + HEAD, old < n ? old : n);
    }
    if (block)
        mprotect(block, old + HEAD, PROT_NONE);
    return to ? to + HEAD : NULL;
}

/* Answers belong to the text that was read last, wherever it is in memory. */
static void test_reset(void **state)
{
    (void)state;
    cdl_allocator al = { grow_guarded, NULL };
    cdl *s = cdl_new(&al);
    for (int k = 0; k < 12; k++) {
        char text[200], name[20];
        const cdl_symbol *sym;
        snprintf(name, sizeof name, "ball%d", k);
        int n = snprintf(text, sizeof text, "model %s { param e = 1\n dof y = 1\n y'' = -9.81\n %s }\n", name,
                         k % 3 ? "" : "let foo = [1");
        assert_int_equal(cdl_reset(s), CDL_OK);
        assert_int_equal(cdl_check_text(s, "m", text, (size_t)n), k % 3 ? CDL_OK : CDL_MODEL);
        assert_true(cdl_symbols(s, &sym) > 0);
        assert_string_equal(sym[0].name, name);
        ask_all(s, 10);
    }
    cdl_free(s);
}

/* An allocator that fails after some calls. */
static void *grow_some(void *ud, void *p, size_t n)
{
    size_t *left = ud;
    if (!n) {
        free(p);
        return NULL;
    }
    return *left ? --*left, realloc(p, n) : NULL;
}

static void test_no_memory(void **state)
{
    (void)state;
    for (size_t most = 0; most < 60; most++) {
        size_t left = most;
        cdl_allocator al = { grow_some, &left };
        cdl *s = cdl_new(&al);
        if (!s)
            continue;
        cdl_check_text(s, "g.cdl", good, sizeof good - 1);
        ask_all(s, place("k*x", 0));
        cdl_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_diagnostics), cmocka_unit_test(test_replacement),
        cmocka_unit_test(test_check_as),    cmocka_unit_test(test_answers),
        cmocka_unit_test(test_no_text),     cmocka_unit_test(test_reset),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
