/* Arbitrary bytes: the lexer, parser and formatter return, spans lie within the text, and a text that parses
   is formatted to a text that parses and does not change when it is formatted again. */
#include "fuzz.h"
#include "syntax/ast.h"
#include "syntax/parse.h"

static size_t parse_text(arena *a, const char *p, size_t n)
{
    diags *d = diags_new(a);
    text out = { .a = a };
    const ast *root = parse_source(a, symtab_new(a), d, diags_add_source(d, "t.cdl", p, n));
    require(root && root->kind == AST_FILE);
    ast_dump(d, root, true, &out);
    diags_sort(d, 0);
    for (size_t i = 0; i < d->list.n; i++) {
        diag_print(d, &d->list.at[i], false, &out);
        diag_print_json(d, &d->list.at[i], &out);
    }
    require(d->list.n <= DIAG_MAX + d->warnings);
    return d->errors;
}

static void scan_text(arena *a, const char *p, size_t n)
{
    lexeme *l;
    size_t k = lex_all(a, p, n, &l);
    for (size_t i = 0; i < k; i++)
        require(l[i].begin <= l[i].end && l[i].end <= n && (!i || l[i - 1].end <= l[i].begin));
    parse_complete(a, p, n);
}

static void format_text(arena *a, const char *p, size_t n)
{
    size_t n1 = 0, n2 = 0;
    char *once = fmt_source(a, p, n, &n1);
    require(once != NULL);
    require(!parse_text(a, once, n1));
    char *twice = fmt_source(a, once, n1, &n2);
    require(twice && n1 == n2 && !memcmp(once, twice, n1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data;
    arena *a = arena_new(&allocator_libc, NULL);
    require(a != NULL);
    scan_text(a, p, size);
    if (!parse_text(a, p, size))
        format_text(a, p, size);
    arena_free(a);
    return 0;
}
