/* parse: trees, places, documentation, messages, limits; no text may crash it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "syntax/parse.h"

typedef struct {
    arena *a;
    diags *d;
    symtab *names;
    ast *root;
    uint32_t file;
} parsed;

static parsed parse_n(const char *s, size_t n)
{
    parsed p = { .a = arena_new(&allocator_libc, NULL) };
    p.d = diags_new(p.a);
    p.names = symtab_new(p.a);
    p.file = diags_add_source(p.d, "t", s, n);
    p.root = parse_source(p.a, p.names, p.d, p.file);
    return p;
}

static parsed parse(const char *s)
{
    return parse_n(s, strlen(s));
}

/* A tree on one line. */
static char *shape(const parsed *p, const ast *n)
{
    text out = { .a = p->a };
    size_t k = 0;
    ast_dump(p->d, n, false, &out);
    for (size_t i = 0; i < out.n; i++) {
        if (out.at[i] == '\n')
            out.at[i] = ' ';
        if (out.at[i] != ' ' || (k && out.at[k - 1] != ' '))
            out.at[k++] = out.at[i];
    }
    out.at[k && out.at[k - 1] == ' ' ? k - 1 : k] = 0;
    return out.at;
}

/* "line:col message [hint] | ...". */
static char *errors(const parsed *p)
{
    text out = { .a = p->a };
    text_puts(&out, "");
    for (size_t i = 0; i < p->d->list.n; i++) {
        const diag *e = &p->d->list.at[i];
        size_t line, col, line2, col2;
        span_place(p->d, e->at, &line, &col, &line2, &col2);
        text_printf(&out, "%s%zu:%zu %s", i ? " | " : "", line, col, e->message);
        if (e->hint)
            text_printf(&out, " [%s]", e->hint);
    }
    return out.at;
}

static void check_tree(const char *given, const char *tree)
{
    parsed p = parse(given);
    assert_string_equal(errors(&p), "");
    assert_int_equal(p.root->n, 1);
    assert_string_equal(shape(&p, p.root->kid[0]), tree);
    arena_free(p.a);
}

static void check_errors(const char *given, const char *want)
{
    parsed p = parse(given);
    assert_string_equal(errors(&p), want);
    arena_free(p.a);
}

static void test_expressions(void **state)
{
    static const char *const rows[][2] = {
        { "-x^2", "(unary - (binary ^ (name x) (num 2)))" },
        { "2^-3^2", "(binary ^ (num 2) (unary - (binary ^ (num 3) (num 2))))" },
        { "-a*b", "(binary * (unary - (name a)) (name b))" },
        { "a - b - c", "(binary - (binary - (name a) (name b)) (name c))" },
        { "a + b*c", "(binary + (name a) (binary * (name b) (name c)))" },
        { "(a + b)*c", "(binary * (binary + (name a) (name b)) (name c))" },
        { "not a == b and c or d",
          "(binary or (binary and (unary not (binary == (name a) (name b))) (name c)) (name d))" },
        { "x in a + 1..b - 1",
          "(in (name x) (range (binary + (name a) (num 1)) (binary - (name b) (num 1))))" },
        { "if a then b else c + 1", "(if (name a) (name b) (binary + (name c) (num 1)))" },
        { "y''(0)", "(call (prime (prime (name y))) (num 0))" },
        { "p[i]'[1, 2].for",
          "(member for (subscript (prime (subscript (name p) (name i))) (num 1) (num 2)))" },
        { "f(a, b = 2)", "(call (name f) (name a) (arg b (num 2)))" },
        { "f()", "(call (name f))" },
        { "sum(i for i in 1..N, j in r where i < j)",
          "(call (name sum) (gen (name i) (index-in i (range (num 1) (name N))) "
          "(index-in j (name r)) (binary < (name i) (name j))))" },
        { "[i for i in r]", "(vector (gen (name i) (index-in i (name r)) -))" },
        { "[1, 2]", "(vector (num 1) (num 2))" },
        { "[1, 2;\n 3, 4]", "(matrix (vector (num 1) (num 2)) (vector (num 3) (num 4)))" },
        { "9.81 [m/s^2]", "(num 9.81 (unit (unit-term m (num 1)) (unit-term s (num -2))))" },
        { "1 [J/(kg*K)^(1/2)]",
          "(num 1 (unit (unit-term J (num 1)) (unit-term kg (num -0.5)) (unit-term K (num -0.5))))" },
        { "1 [1/s]", "(num 1 (unit (unit-term (num 1)) (unit-term s (num -1))))" },
        { "cases { a if x < 1; b otherwise }",
          "(cases (case (name a) (binary < (name x) (num 1))) (case (name b) -))" },
        { "cases {\n a if x\n b otherwise\n }", "(cases (case (name a) (name x)) (case (name b) -))" },
        { "x ≤ y·z′", "(binary <= (name x) (binary * (name y) (prime (name z))))" },
        { "μ₁ ∈ α", "(in (name μ₁) (name α))" },
        { "0..1", "(range (num 0) (num 1))" },
        { ".5 + 1e3", "(binary + (num 0.5) (num 1000))" },
        { "true", "(bool 1)" },
        { "\"a\\\"\\\\\\n\\tb\"", "(str \"a\\\"\\\\\\n\\tb\")" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char tree[400];
        snprintf(tree, sizeof tree, "(expr %s)", rows[i][1]);
        check_tree(rows[i][0], tree);
    }
}

static void test_statements(void **state)
{
    static const char *const rows[][2] = {
        { "use std.planar as p", "(use p \"std.planar\")" },
        { "use \"f.cdl\"", "(use \"f.cdl\" 1)" },
        { "fn f(x, y) = x", "(fn f (list (name x) (name y)) (name x))" },
        { "fn f() = 1", "(fn f (list) (num 1))" },
        { "let a = 1, b = 2", "(let (list (bind a (num 1)) (bind b (num 2))))" },
        { "param e in 0..1 = 0.8, k",
          "(param (list (param-item e (range (num 0) (num 1)) (num 0.8)) (param-item k - -)))" },
        { "run r = p.disk(a = 2) for 3 with b(h = 1)",
          "(run r (member disk (name p)) (list (arg a (num 2))) (num 3) (call (name b) (arg h (num 1))))" },
        { "run m", "(run (name m) (list) - -)" },
        { "run m with limit", "(run (name m) (list) - (name limit))" },
        { "measure n = 1", "(measure (list (bind n (num 1))))" },
        { "expect a == b within rel(1e-6) \"l\"",
          "(expect \"l\" (binary == (name a) (name b)) (call (name rel) (num 1e-6)))" },
        { "plot y, z against t { f = 1 }",
          "(plot (list (name y) (name z)) (name t) (block (set (name f) (num 1))))" },
        { "save t", "(save (list (name t)) -)" },
        { "sweep a, b in zip(u)", "(sweep (list (name a) (name b)) (call (name zip) (name u)))" },
        { "seed = 1", "(set (name seed) (num 1))" },
        { "experiment e { run m; }", "(experiment e (run (name m) (list) - -))" },
        { "model m { dof u[2], u' = [1, 0] }", "(model m (dof (list (dof-item u (list (num 2)) - -) "
                                               "(dof-item u 1 (list) - (vector (num 1) (num 0))))))" },
        { "model m { dof p[i in 1..N]' in R2 = 0 }", "(model m (dof (list (dof-item p 1 (list (index-in i "
                                                     "(range (num 1) (name N)))) (name R2) (num 0)))))" },
        { "model m { history z[i in r]'(s) = s }",
          "(model m (history z 1 (list (index-in i (name r))) (name s) (name s)))" },
        { "model m { for i in r where c { x = i } }",
          "(model m (for (list (index-in i (name r))) (name c) (list (set (name x) (name i)))))" },
        { "model m { kinetic 1; potential 2; dissipation 3; force x: 4 }",
          "(model m (kinetic (num 1)) (potential (num 2)) (dissipation (num 3)) (force (name x) (num 4)))" },
        { "model m { constraint c[i in r where d]: x >= 0 { a = 1\n b = 2, c = 3; } }",
          "(model m (constraint c (list (index-in i (name r))) "
          "(name d) (binary >= (name x) (num 0)) (block (set (name a) (num 1)) (set (name b) (num 2)) (set "
          "(name c) (num 3)))))" },
        { "model m { constraint c: u = 0 }", "(model m (constraint c (list) - (set (name u) (num 0)) -))" },
        { "model m { constraint c {} }", "(model m (constraint c (list) - - (block)))" },
        { "model m { when x < 0 { x' = -x' } }", "(model m (when (binary < (name x) (num 0)) (block (set "
                                                 "(prime (name x)) (unary - (prime (name x)))))))" },
        { "model m { stop when c }", "(model m (stop (name c)))" },
        { "model m { part s[i in r]: d(R = 1) { p' = 0 } }",
          "(model m (part s (list (index-in i (name r))) (name d) (list (arg R (num 1))) "
          "(block (set (prime (name p)) (num 0)))))" },
        { "model m { domain x in a, y in b }",
          "(model m (domain (list (index-in x (name a)) (index-in y (name b)))))" },
        { "model m { field u(x, y) }", "(model m (field (list (field-item u (name x) (name y)))))" },
        { "model m { obstacle u >= 0 }", "(model m (obstacle (binary >= (name u) (num 0))))" },
        { "model m { at wire.s = L { a = 1 } }",
          "(model m (at (member s (name wire)) (name L) (block (set (name a) (num 1)))))" },
        { "model m { boundary u = 0 where x == 1 }",
          "(model m (boundary (set (name u) (num 0)) (binary == (name x) (num 1))))" },
        { "model m { rod w { l = 1 } }", "(model m (rod w (block (set (name l) (num 1)))))" },
        { "model m { -x' in f(x) }",
          "(model m (expr (in (unary - (prime (name x))) (call (name f) (name x)))))" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_tree(rows[i][0], rows[i][1]);
}

/* the newline rule; CRLF and a byte order mark do not matter */
static void test_lines(void **state)
{
    parsed p = parse("\xEF\xBB\xBFlet a = f(1,\r\n 2\r\n)\r\nlet b = 1 +\r\n\r\n 2 # c\r\n;;\n\n"
                     "let c = cases {\n 1 if x\n 2 otherwise }; let d = 1\r\n");
    (void)state;
    assert_string_equal(errors(&p), "");
    assert_int_equal(p.root->n, 4);
    arena_free(p.a);
}

static void test_places(void **state)
{
    parsed p = parse("model m {\n    param μ = 1 [m], g = (a + b)*c\n}");
    const ast *item = p.root->kid[0]->kid[0]->kid[0]->kid[1], *sum = item->kid[1]->kid[0];
    (void)state;
    assert_string_equal(span_text(p.d, item->at, p.a), "g = (a + b)*c");
    assert_string_equal(span_text(p.d, item->name_at, p.a), "g");
    assert_string_equal(span_text(p.d, item->kid[1]->at, p.a), "(a + b)*c");
    assert_string_equal(span_text(p.d, item->kid[1]->name_at, p.a), "*");
    assert_string_equal(span_text(p.d, sum->at, p.a), "a + b");
    assert_string_equal(span_text(p.d, p.root->kid[0]->kid[0]->kid[0]->kid[0]->kid[1]->at, p.a), "1 [m]");
    arena_free(p.a);
}

static void test_docs(void **state)
{
    parsed p = parse("## lost\n\n## A ball,\n##   round.\nmodel m {\n    ## of the earth\n"
                     "    param\n    ## gravity\n    g = 1\n dof y ## no\n dof z\n}");
    const ast *m = p.root->kid[0];
    (void)state;
    assert_string_equal(errors(&p), "");
    assert_string_equal(m->doc, "A ball,\n  round.");
    assert_string_equal(m->kid[0]->doc, "of the earth");
    assert_string_equal(m->kid[0]->kid[0]->kid[0]->doc, "gravity");
    assert_null(m->kid[2]->doc);
    arena_free(p.a);
}

static void test_numbers(void **state)
{
    static const char *const rows[] = { "0",
                                        "1",
                                        "0.1",
                                        "9.81",
                                        "123456789012345",
                                        "1e22",
                                        "1e23",
                                        "2.2250738585072014e-308",
                                        "5e-324",
                                        "1.7976931348623157e308",
                                        "0.30000000000000004",
                                        "123456789.123456789e-5",
                                        "1e-400",
                                        ".5e+1",
                                        "00012.50" };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        parsed p = parse(rows[i]);
        assert_true(p.root->kid[0]->kid[0]->num == strtod(rows[i], NULL));
        arena_free(p.a);
    }
}

static void test_errors(void **state)
{
    static const char *const rows[][2] = {
        { "model b {\n    parm g = 9.81\n    constrant floor: y >= 0 { a = 1\n b = 2 }\n    dof y\n}",
          "2:5 unknown statement 'parm' [did you mean 'param'?] | 3:5 unknown statement 'constrant' [did you "
          "mean 'constraint'?]" },
        { "modle ball {\n dof x = )\n for i in r {\n }\n}\nlet a = 1",
          "1:1 unknown statement 'modle' [did you mean 'model'?]" },
        { "let a = 1 +\nlet b = 2", "1:11 expected an expression after '+'" },
        { "let a = (1 + 2\nlet b = )", "1:14 missing ')' | 2:9 unmatched ')'" },
        { "let a = [1, 2\n         3, 4]\nlet b = 1",
          "1:13 expected ',', ';' or ']' after '2' [write commas between elements: [1, 2]; rows of a matrix "
          "end in ;]" },
        { "let a = 4 4",
          "1:11 unexpected '4' after '4' [write * to multiply, or ; before another statement]" },
        { "let a = 1 < 2 < 3", "1:15 comparisons do not chain [write a < b and b < c]" },
        { "let a = if b then c", "1:19 expected 'else' after 'c'" },
        { "let a = else", "1:9 expected an expression after '=' [if … then … else … is one expression]" },
        { "expect a = 3", "1:10 unexpected '=' after 'a' [= is never an operator; write == to compare]" },
        { "fn f = 3", "1:6 expected '(' after 'f'" },
        { "let a = 3x", "1:9 a name right after a number [write 3*x to multiply]" },
        { "let a = 1e5m", "1:9 a name right after a number [write 1e5 [m] for the unit, 1e5*m to multiply]" },
        { "let a = 1e999",
          "1:9 the number is too large [the largest is about 1.8e308; inf is a name for infinity]" },
        { "let a = \"b\nlet c = 1",
          "1:9 the string is not closed [write \" where it ends, on the same line]" },
        { "let a = \"\\q\"", "1:10 unknown escape '\\q' in a string [the escapes are \\\" \\\\ \\n \\t]" },
        { "let a = b ? c", "1:11 unexpected character '?' [write if a then b else c]" },
        { "let a = 3 − 4", "1:11 unexpected character '−' [write -]" },
        { "let a = 1 [m^x]", "1:14 expected '-', '(' or a number after '^'" },
        { "let a = 1 [m^0.5]",
          "1:14 a unit's exponent is a small integer or a fraction of two [such as m^2, s^-1 or m^(1/2)]" },
        { "let a = 1 [60*s]", "1:12 a unit may contain no number other than 1 [write the factor in front of "
                              "the unit: 60 [s], 1e3 [1/s]]" },
        { "model m {\n    dof x\nrun m\nlet a =",
          "3:1 missing '}' before 'run' | 4:7 expected an expression after '='" },
        { "model m {\n    dof x\n    run m\n    plot x\n}",
          "3:5 'run' is not allowed inside a model [move it after the model's '}']" },
        { "dof x\ndof y\n}", "1:1 'dof' belongs inside a model [write model name { … } around it]" },
        { "model m {\n    constraint c: x >= 0 { a = f(1\n    dof y\n}", "2:34 missing ')'" },
        { "model m {\n    constraint c x >= 0\n}",
          "2:18 expected ':' or '{' after 'c' [write constraint floor: y >= 0]" },
        { "model m {\n    dof x\n", "3:1 missing '}' at the end of the text" },
        { "experiment {\n    run m\n}\nlet a = 1",
          "1:12 expected a name after 'experiment' [an experiment has a name: experiment rebound { … }]" },
        { "}", "1:1 unmatched '}'" },
        { "let a = b.\nlet c = 1.",
          "1:10 expected a name after '.' | "
          "2:10 unexpected '.' after '1' [a number does not end in a point; write 1 or 1.0]" },
        { "let a = cases { 1 if b; 2 }", "1:27 expected 'if' or 'otherwise' after '2'" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_errors(rows[i][0], rows[i][1]);
}

static void test_encoding(void **state)
{
    static const char bad[] = "let a = 1\nlet \xFF\xFE b = 2\nlet c = \"a\0b\"\n";
    parsed p = parse_n(bad, sizeof bad - 1);
    (void)state;
    assert_string_equal(errors(&p), "2:5 not valid UTF-8 (byte 0xFF) | 3:11 the text contains a NUL byte");
    arena_free(p.a);
}

static char *repeated(const char *head, const char *unit, size_t n, const char *tail)
{
    size_t h = strlen(head), u = strlen(unit), t = strlen(tail);
    char *s = test_malloc(h + n * u + t + 1);
    memcpy(s, head, h);
    for (size_t i = 0; i < n; i++)
        memcpy(s + h + i * u, unit, u);
    memcpy(s + h + n * u, tail, t + 1);
    return s;
}

static void check_limit(const char *head, const char *unit, size_t n, const char *tail, const char *message)
{
    char *s = repeated(head, unit, n, tail);
    parsed p = parse(s);
    assert_int_equal(p.d->errors, message ? 1 : 0);
    if (message)
        assert_string_equal(p.d->list.at[0].message, message);
    if (message)
        assert_int_equal(p.d->list.at[0].code, DIAG_LIMIT);
    shape(&p, p.root);
    arena_free(p.a);
    test_free(s);
}

static void test_limits(void **state)
{
    (void)state;
    check_limit("let a = ", "x + ", 19990, "x", NULL);
    check_limit("let a = ", "x + ", 25000, "x", "a chain of operators is longer than 20000");
    check_limit("let a = x", "'", 25000, "", "a chain of operators is longer than 20000");
    check_limit("let a = ", "-", 150, "x", NULL);
    check_limit("let a = ", "-", 3000, "x", "expressions nest deeper than 200");
    check_limit("let a = ", "2^", 100000, "2", "expressions nest deeper than 200");
    check_limit("let a = ", "(", 100000, "2", "brackets nest deeper than 200");
    check_limit("model m {", "for i in r {", 300, "", "brackets nest deeper than 200");
    check_limit("", "let a = 1\n", 20000, "", NULL);
}

static void test_complete(void **state)
{
    static const struct {
        const char *s;
        int whole;
    } rows[] = { { "", 1 },
                 { "let a = 1", 1 },
                 { "let a = ", 0 },
                 { "let a = 1 + # c\n", 0 },
                 { "model m {\n", 0 },
                 { "model m {\n}", 1 },
                 { "f(1,\n", 0 },
                 { "x'", 1 },
                 { "## doc\n", 1 },
                 { "a.for", 1 },
                 { "run m for", 0 },
                 { "let a = \"b", 1 },
                 { ")", 1 } };
    arena *a = arena_new(&allocator_libc, NULL);
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(parse_complete(a, rows[i].s, strlen(rows[i].s)), rows[i].whole);
    arena_free(a);
}

static void test_lexemes(void **state)
{
    static const char s[] = "let α = 1.5 # c\n## d\n\"s\"≤3x";
    static const lex_kind kinds[] = { LEX_KEYWORD, LEX_NAME,    LEX_OP,  LEX_NUMBER,
                                      LEX_COMMENT, LEX_NEWLINE, LEX_DOC, LEX_NEWLINE,
                                      LEX_STRING,  LEX_OP,      LEX_BAD };
    arena *a = arena_new(&allocator_libc, NULL);
    lexeme *t;
    (void)state;
    assert_int_equal(lex_all(a, s, sizeof s - 1, &t), sizeof kinds / sizeof *kinds);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        assert_int_equal(t[i].kind, kinds[i]);
    assert_int_equal(t[1].begin, 4);
    assert_int_equal(t[1].end, 6);
    arena_free(a);
}

static void test_keywords(void **state)
{
    size_t n = 0;
    (void)state;
    while (keyword_list[n])
        n++;
    assert_int_equal(n, 46);
    assert_string_equal(keyword_list[0], "use");
    assert_string_equal(keyword_list[n - 1], "false");
}

/* A fixed stream of numbers: the same texts in every run. */
static unsigned draw(uint64_t *s, unsigned n)
{
    *s ^= *s << 13, *s ^= *s >> 7, *s ^= *s << 17;
    return (unsigned)(*s >> 20) % n;
}

static bool has_error(const ast *n)
{
    bool e = n && n->kind == AST_ERROR;
    for (uint32_t i = 0; n && i < n->n; i++)
        e |= has_error(n->kid[i]);
    return e;
}

/* A text that does not parse is reported; fmt gives the same twice, or nothing when the text does not lex. */
static void check_any(const char *s, size_t n)
{
    parsed p = parse_n(s, n);
    size_t m, m2;
    if (has_error(p.root))
        assert_true(p.d->errors > 0);
    shape(&p, p.root);
    char *f = fmt_source(p.a, s, n, &m), *g = f ? fmt_source(p.a, f, m, &m2) : NULL;
    if (f) {
        assert_non_null(g);
        assert_int_equal(m, m2);
        assert_memory_equal(f, g, m);
    }
    arena_free(p.a);
}

static void test_any_text(void **state)
{
    static const char model[] =
        "## d\nmodel m {\n    param g = 9.81 [m/s^2], e in 0..1 = 0.8  # c\n"
        "    dof p[i in 1..N] in R2 = [1, 0; 2, 3]\n"
        "    for i in 1..N-1 { p[i]'' = -g + f(t - tau) }\n    constraint c[i in r]: x^2 >= 0 { a = b(e)\n"
        "        d = 3 }\n}\nrun m for 3 with e(h = 1)\n"
        "let a = cases { 1 if x < 2; 2 otherwise }, "
        "b = sum(if a then b else c for j in 1..3)\nexpect a == 1 within abs(1) \"l\"\n";
    static const char *const bits[] = { "(",    ")",          "[",    "]",     "{",     "}",   "\n",
                                        ";",    ",",          "=",    "<",     "in",    "..",  "'",
                                        "-",    "if",         "else", "cases", "model", "for", "dof",
                                        "let",  "constraint", "x",    "3",     "\"",    "#",   "\xCE\xB1",
                                        "\xFF", "3x",         ":",    ".",     "\r\n" };
    uint64_t s = 88172645463325252u;
    char b[2048];
    (void)state;
    for (int round = 0; round < 3000; round++) {
        size_t n = sizeof model - 1;
        memcpy(b, model, n);
        for (unsigned k = 1 + draw(&s, 6); k; k--) {
            const char *bit = bits[draw(&s, sizeof bits / sizeof *bits)];
            size_t at = draw(&s, (unsigned)n - 20), w = strlen(bit), cut = draw(&s, 2) ? draw(&s, 20) : 0;
            memmove(b + at + w, b + at + cut, n - at - cut);
            memcpy(b + at, bit, w);
            n += w - cut;
        }
        if (round % 8 == 0)
            for (size_t i = 0; i < n; i++)
                b[i] = (char)draw(&s, 256);
        check_any(b, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expressions), cmocka_unit_test(test_statements),
        cmocka_unit_test(test_lines),       cmocka_unit_test(test_places),
        cmocka_unit_test(test_docs),        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_errors),      cmocka_unit_test(test_encoding),
        cmocka_unit_test(test_limits),      cmocka_unit_test(test_complete),
        cmocka_unit_test(test_lexemes),     cmocka_unit_test(test_keywords),
        cmocka_unit_test(test_any_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
