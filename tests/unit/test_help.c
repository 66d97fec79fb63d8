/* :help has an answer for every name in every table. */
#include <setjmp.h>
#include <ctype.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "session/session.h"

typedef struct {
    char out[1 << 14];
    size_t n;
} heard;

static void on_out(void *ud, const char *t, size_t n)
{
    heard *h = ud;
    if (n > sizeof h->out - 1 - h->n)
        n = sizeof h->out - 1 - h->n;
    memcpy(h->out + h->n, t, n);
    h->n += n;
    h->out[h->n] = 0;
}

static heard said;
static cdl *s;

/* The answer must contain more than the name: a sentence of at least ten letters. */
static void known(const char *name)
{
    said.n = 0;
    said.out[0] = 0;
    if (cdl_help(s, name) != CDL_OK)
        fail_msg("no help for '%s'", name);
    if (said.n < 10)
        fail_msg(":help %s says only '%s'", name, said.out);
    const char *empty = strstr(said.out, ": \n");
    if (empty)
        fail_msg(":help %s says '%s'", name, said.out);
}

static void keywords_laws_codes(void **state)
{
    (void)state;
#define X(id, word, where, example, meaning) known(word);
#include "syntax/keywords.def"
#undef X
#define X(id, name, role, args, meaning) known(name);
#include "model/laws.def"
#undef X
#define X(id, name, meaning) known(name);
#include "base/diag.def"
#undef X
    for (int k = 0; contact_keys[k]; k++)
        known(contact_keys[k]);
}

static void functions_units_results(void **state)
{
    (void)state;
    for (const builtin *b = result_builtins; b->name; b++)
        known(b->name);
    for (const builtin *b = builtin_list; b->name; b++)
        known(b->name);
    for (int k = 0; k < OP_COUNT; k++)
        if (op_builtin[k].name)
            known(op_builtin[k].name);
    for (size_t k = 0; unit_name(k); k++) {
        double factor;
        dim d;
        assert_true(unit_find(unit_name(k), &factor, &d));
        known(unit_name(k));
    }
    for (int k = 0; dof_spaces[k]; k++)
        known(dof_spaces[k]);
    static const char *const of_laws[] = {
        "static", "kinetic", "angle", "tangential", "cascade", "together"
    };
    for (size_t k = 0; k < sizeof of_laws / sizeof *of_laws; k++)
        known(of_laws[k]);
#define X(of, name, doc) \
    known(#name);        \
    assert_true(strlen(doc) > 5);
#include "results/results.def"
#undef X
}

static void backends_and_options(void **state)
{
    (void)state;
    for (size_t i = 0; backend_list[i]; i++) {
        known(backend_list[i]->name);
        for (int k = 0; k < backend_list[i]->noption; k++) {
            known(backend_list[i]->option[k].name);
            assert_non_null(strstr(said.out, backend_list[i]->name));
        }
    }
#define CDL_OPTION_ROW(id, name, value, doc) known(name);
    CDL_OPTION_LIST(CDL_OPTION_ROW)
#undef CDL_OPTION_ROW
    for (size_t k = 0; output_key(k, true); k++) {
        if (*output_key(k, true))
            known(output_key(k, true));
        if (*output_key(k, false))
            known(output_key(k, false));
    }
}

static void what_nothing_has_is_not_known(void **state)
{
    (void)state;
    assert_int_equal(cdl_help(s, "nothing_at_all"), CDL_USAGE);
}

/* Number of characters before a text in its line. */
static size_t column_of(const char *what)
{
    const char *p = strstr(said.out, what);
    assert_non_null(p);
    size_t n = 0;
    for (; p > said.out && p[-1] != '\n'; p--)
        n += ((unsigned char)p[-1] & 0xc0) != 0x80;
    return n;
}

/* Every topic lists something, and each listed name has its own help. */
static void topics_list_what_is_known(void **state)
{
    const char *name;
    size_t n = 0;
    (void)state;
    for (; (name = cdl_topic(s, "", n)); n++) {
        char topic[64];
        snprintf(topic, sizeof topic, "%s", name);
        known(topic);
        assert_true(said.n > 200);
    }
    assert_true(n > 12);
    assert_string_equal(cdl_topic(s, "back", 0), "backends");
    assert_string_equal(cdl_topic(s, "std.pl", 0), "std.planar");
    assert_null(cdl_topic(s, "std.pl", 1));
    known("functions");
    assert_int_equal(column_of("smallest of the numbers"), column_of("identity matrix"));
    known("std.planar");
    assert_non_null(strstr(said.out, "disk_gap(p, R, q, S)"));
    assert_non_null(strstr(said.out, "model disk"));
    assert_int_equal(cdl_help(s, "std.nothing"), CDL_USAGE);
    known("functions");
#define X(id, name, arity, value, deriv, unit, doc) \
    if (isalpha((unsigned char)*(name)))            \
        assert_non_null(strstr(said.out, name));
#include "base/opcodes.def"
#undef X
}

static void examples_have_a_line_each(void **state)
{
    const char *name, *path, *doc;
    size_t n = 0;
    (void)state;
    for (; (name = cdl_example(s, "", n, &path, &doc)); n++) {
        if (strlen(doc) < 10)
            fail_msg("example %s has no line that says what it is", name);
        assert_non_null(strstr(path, name));
    }
    assert_true(n > 30);
    assert_string_equal(cdl_example(s, "bouncing", 0, NULL, NULL), "bouncing_ball");
    assert_null(cdl_example(s, "bouncing", 1, NULL, NULL));
}

/* Completions of a line; is a name among them? */
static int offered(const char *line, const char *name)
{
    const char *got;
    for (size_t k = 0; (got = cdl_name_at(s, line, k)); k++)
        if (!strcmp(got, name))
            return 1;
    return 0;
}

static int count(const char *line)
{
    int n = 0;
    while (cdl_name_at(s, line, (size_t)n))
        n++;
    return n;
}

static void members_are_those_of_the_object(void **state)
{
    static const char models[] =
        "model ball { dof y = 1, x = 0, x' = 1\n y'' = -9.81\n x'' = 0\n constraint floor: y >= 0 { impact = "
        "newton(0.5) }\n"
        "constraint rough: y >= -1 { friction = coulomb(0.3), slip = x' } }\nmodel two { part b[i in 1..2]: "
        "ball { y = i } }\n"
        "run r = ball for 1\nrun q = two for 0.1\n"
        "model rope { rod wire { length = 1, radius = 0.01, young = 1e6, poisson = 0.4, elements = 4 }\n"
        "at wire.s = 0 { position = [0, 0, 0], frame = eye(3) } }\nrun w = rope with auglag()\n";
    (void)state;
    assert_int_equal(cdl_run_text(s, "t.cdl", models, sizeof models - 1), CDL_OK);
    assert_int_equal(count("r.floor."), 4); /* no friction: gap, rn, status, impacts */
    assert_int_equal(count("max(r.rough."), 6);
    assert_true(offered("r.rough.s", "r.rough.slip"));
    assert_int_equal(count("r.floor.impacts."), 4);
    assert_true(offered("r.", "r.y") && offered("r.", "r.floor") && offered("r.", "r.energy"));
    assert_false(offered("r.", "r.gap") || offered("r.", "r.contact_set") || offered("r.", "r.jumps"));
    assert_true(offered("q.b[1].", ".y") && offered("q.b[1].fl", ".floor"));
    assert_false(offered("q.b[1].", ".energy"));
    assert_true(offered("q.b[1].floor.imp", ".floor.impacts"));
    assert_true(offered("w.wire.", "w.wire.writhe") && offered("w.wire.pairs.", "w.wire.pairs.s_bar"));
    assert_int_equal(count("r.y."), 0);
    assert_int_equal(count("nothing."), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keywords_laws_codes),
        cmocka_unit_test(functions_units_results),
        cmocka_unit_test(backends_and_options),
        cmocka_unit_test(what_nothing_has_is_not_known),
        cmocka_unit_test(topics_list_what_is_known),
        cmocka_unit_test(examples_have_a_line_each),
        cmocka_unit_test(members_are_those_of_the_object),
    };
    s = cdl_new(NULL);
    if (!s)
        return 1;
    cdl_set(s, "manifest", "no");
    cdl_callbacks c = { on_out, on_out, NULL, &said };
    cdl_set_callbacks(s, &c);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cdl_free(s);
    return failed;
}
