/* The formatter on arbitrary bytes: its output has the same words in the same order, including comments,
   parses if the text did, and does not change when it is formatted again. */
#include "fuzz.h"
#include "syntax/ast.h"
#include "syntax/parse.h"

/* The next lexeme that is not a line end; `;` ends a statement like a line end. */
static size_t next_word(const char *p, const lexeme *l, size_t n, size_t k)
{
    while (k < n && (l[k].kind == LEX_NEWLINE || (l[k].kind == LEX_OP && p[l[k].begin] == ';')))
        k++;
    return k;
}

/* Length of a word; white space at the end of a comment is layout. */
static size_t word_len(const char *p, lexeme l)
{
    size_t n = l.end - l.begin;
    if (l.kind == LEX_COMMENT || l.kind == LEX_DOC)
        while (n && strchr(" \t\r", p[l.begin + n - 1]))
            n--;
    return n;
}

static void same_words(arena *a, const char *p, size_t np, const char *q, size_t nq)
{
    lexeme *lp, *lq;
    size_t kp = lex_all(a, p, np, &lp), kq = lex_all(a, q, nq, &lq);
    size_t i = next_word(p, lp, kp, 0), j = next_word(q, lq, kq, 0);
    while (i < kp && j < kq) {
        size_t n = word_len(p, lp[i]);
        require(lp[i].kind == lq[j].kind && n == word_len(q, lq[j]) &&
                !memcmp(p + lp[i].begin, q + lq[j].begin, n));
        i = next_word(p, lp, kp, i + 1);
        j = next_word(q, lq, kq, j + 1);
    }
    require(i >= kp && j >= kq);
}

static size_t errors_of(arena *a, const char *p, size_t n)
{
    diags *d = diags_new(a);
    parse_source(a, symtab_new(a), d, diags_add_source(d, "t.cdl", p, n));
    return d->errors;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data;
    size_t n1 = 0, n2 = 0;
    arena *a = arena_new(&allocator_libc, NULL);
    require(a != NULL);
    if (!errors_of(a, p, size)) {
        char *once = fmt_source(a, p, size, &n1);
        require(once != NULL);
        same_words(a, p, size, once, n1);
        require(!errors_of(a, once, n1));
        char *twice = fmt_source(a, once, n1, &n2);
        require(twice && n1 == n2 && !memcmp(once, twice, n1));
    }
    arena_free(a);
    return 0;
}
