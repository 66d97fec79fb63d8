/* parse: from the scanner's signs to the parser's tokens.  It contains the newline rule, the values of
   literals, documentation comments, the check where statements are allowed, and error messages and
   recovery. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "syntax/parser.h"
#include "base/op.h"
#include "value/units.h"

static const unsigned char keyword_begins[] = {
#define X(id, word, where, example, meaning) BEGINS_##where,
#include "keywords.def"
#undef X
};

/* ---- kinds of tokens ---- */

static int keyword_of(const scanner *sc, span at)
{
    return scan_keyword(sc, sc->text + at.begin, at.end - at.begin);
}

static bool is_literal(int t)
{
    return t == T_NAME || t == T_NUMBER || t == T_STRING;
}
static bool is_end(int t)
{
    return t == T_NEWLINE || t == T_SEP;
}
static bool is_relation(int t)
{
    return t >= T_EQ && t <= T_IN;
}

/* A line that ends with another token continues on the next one. */
static bool ends_statement(int t)
{
    switch (t) {
    case T_NAME:
    case T_NUMBER:
    case T_STRING:
    case T_BAD_NUMBER:
    case T_BAD_STRING:
    case T_BAD_CHAR:
    case T_PRIME:
    case T_RPAR:
    case T_RBRACKET:
    case T_RBRACE:
    case T_BODY_CLOSE:
    case T_TRUE:
    case T_FALSE:
    case T_OTHERWISE:
        return true;
    default:
        return false;
    }
}

/* tokens allowed between two chained comparisons */
static bool goes_on(int t)
{
    return is_literal(t) || (t >= T_TO && t <= T_HAT) || t == T_PRIME || t == T_DOT;
}

static const char closing[] = { ['('] = ')', ['['] = ']', ['{'] = '}' };

static char opening_of(int t)
{
    return t == T_LPAR ? '(' : t == T_LBRACKET ? '[' : t == T_LBRACE ? '{' : 0;
}
static char closing_of(int t)
{
    return t == T_RPAR ? ')' : t == T_RBRACKET ? ']' : t == T_RBRACE ? '}' : 0;
}

/* ---- brackets ---- */

static bracket *innermost(const scanner *sc)
{
    return sc->open.n ? &sc->open.at[sc->open.n - 1] : NULL;
}

/* how many brackets are open around the statement that we are in */
static size_t statement_depth(const scanner *sc)
{
    size_t n = sc->open.n;
    while (n && !sc->open.at[n - 1].body)
        n--;
    return n;
}

static begins where_we_are(const scanner *sc)
{
    size_t n = statement_depth(sc);
    return n ? sc->open.at[n - 1].body : BEGINS_TOP;
}

/* model, experiment and for have statements in their braces; for is what surrounds it */
static begins body_of(const scanner *sc)
{
    if (sc->skipping || sc->open.n != statement_depth(sc) || sc->last == T_CASES)
        return BEGINS_NO;
    if (sc->first == T_MODEL)
        return BEGINS_MODEL;
    return sc->first == T_EXPERIMENT ? BEGINS_TOP : sc->first == T_FOR ? where_we_are(sc) : BEGINS_NO;
}

static int bracket_open(scanner *sc, int t, char sign, span at)
{
    bracket b = { sign, sign == '{' ? body_of(sc) : BEGINS_NO, at, sc->first_col };
    if (sc->open.n >= AST_MAX_DEPTH) {
        scan_limit(sc, at, "brackets nest deeper", AST_MAX_DEPTH);
        sc->ended = true;
    }
    *vec_push(sc->a, &sc->open) = b;
    sc->misplaced = sc->misplaced && !b.body;
    sc->lost.unopened = sc->lost.unopened && sign != '{';
    return b.body ? T_BODY_OPEN : t;
}

/* Closes down to the bracket's partner, remembering the innermost that was left open; ) and ] close no brace.
 */
static int bracket_close(scanner *sc, int t, char sign)
{
    size_t n = sc->open.n;
    while (n && closing[(int)sc->open.at[n - 1].sign] != sign &&
           (sign == '}' || sc->open.at[n - 1].sign != '{'))
        n--;
    if (n && closing[(int)sc->open.at[n - 1].sign] == sign) {
        if (n < sc->open.n)
            sc->missing = sc->open.at[sc->open.n - 1];
        sc->open.n = n - 1;
        return sc->open.at[n - 1].body ? T_BODY_CLOSE : t;
    }
    sc->stray = true;
    return t;
}

/* ---- values ---- */

/* Digits without the point, with the exponent adjusted: independent of the locale. */
static double number_value(scanner *sc, span at)
{
    const char *p = sc->text + at.begin, *end = sc->text + at.end;
    char *s = arena_alloc(sc->a, (size_t)(end - p) + 32);
    size_t n = 0;
    long e = 0, given = 0;
    bool minus = false, point = false;
    for (; p < end && *p != 'e' && *p != 'E'; p++) {
        if (*p == '.')
            point = true;
        else
            s[n++] = *p, e -= point;
    }
    if (p < end)
        minus = *++p == '-', p += *p == '-' || *p == '+';
    for (; p < end; p++)
        given = given < 1000000000 ? given * 10 + (*p - '0') : given;
    snprintf(s + n, 32, "e%ld", e + (minus ? -given : given));
    return strtod(s, NULL);
}

/* almost all numbers are short: exact in a double, over an exact power of ten */
static bool number_short(const scanner *sc, span at, double *value)
{
    static const double ten[] = { 1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15 };
    uint64_t m = 0;
    int behind = 0;
    bool point = false;
    if (at.end - at.begin > 15)
        return false;
    for (uint32_t i = at.begin; i < at.end; i++) {
        char c = sc->text[i];
        if (c == '.')
            point = true;
        else if (c >= '0' && c <= '9')
            m = m * 10 + (uint64_t)(c - '0'), behind += point;
        else
            return false;
    }
    *value = (double)m / ten[behind];
    return true;
}

static ast *number_node(scanner *sc, span at)
{
    ast *n = ast_new(sc->a, AST_NUM, at, 0);
    if (!number_short(sc, at, &n->num))
        n->num = number_value(sc, at);
    if (isinf(n->num)) {
        diag *e = diag_error(sc->d, DIAG_LEXICAL, at, "the number is too large");
        diag_hint(sc->d, e, "the largest is about 1.8e308; inf is a name for infinity");
        n->num = 1;
    }
    return n;
}

static void escape_error(scanner *sc, span at, uint32_t i)
{
    uint32_t n = i + 1 < at.end ? 2 : 1;
    while (i + n < at.end && ((unsigned char)sc->text[i + n] & 0xC0) == 0x80)
        n++;
    span here = { at.file, i, i + n };
    diag *e = diag_error(sc->d, DIAG_LEXICAL, here, "unknown escape '%.*s' in a string", (int)n,
                         sc->text + i);
    diag_hint(sc->d, e, "the escapes are \\\" \\\\ \\n \\t");
}

static ast *string_node(scanner *sc, span at, bool closed)
{
    static const char from[] = "\"\\nt", to[] = "\"\\\n\t";
    ast *n = ast_new(sc->a, AST_STR, at, 0);
    char *s = arena_alloc(sc->a, at.end - at.begin + 1);
    for (uint32_t i = at.begin + 1; i + closed < at.end; i++) {
        char next = i + 1 < at.end ? sc->text[i + 1] : 0;
        const char *known = next ? strchr(from, next) : NULL;
        if (sc->text[i] != '\\')
            s[n->len++] = sc->text[i];
        else if (known)
            s[n->len++] = to[known - from], i++;
        else
            escape_error(sc, at, i);
    }
    s[n->len] = 0;
    n->text = s;
    return n;
}

/* ---- documentation ---- */

static void doc_add(scanner *sc, span at)
{
    if (!sc->fresh)
        return;
    uint32_t from = at.begin + 2, to = at.end;
    from += from < to && sc->text[from] == ' ';
    while (to > from && strchr(" \t\r", sc->text[to - 1]))
        to--;
    sc->doc.a = sc->a;
    if (sc->doc.at)
        text_putc(&sc->doc, '\n');
    text_putn(&sc->doc, sc->text + from, to - from);
}

static void doc_give(scanner *sc, span at)
{
    if (!sc->doc.at)
        return;
    vec_push(sc->a, &sc->docs);
    sc->docs.at[sc->docs.n - 1].begin = at.begin;
    sc->docs.at[sc->docs.n - 1].doc = sc->doc.at;
    sc->doc = (text){ 0 };
}

const char *scan_doc(const scanner *sc, uint32_t begin)
{
    size_t lo = 0, hi = sc->docs.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (sc->docs.at[mid].begin < begin)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < sc->docs.n && sc->docs.at[lo].begin == begin ? sc->docs.at[lo].doc : NULL;
}

/* ---- lexical errors: reported here, then read as intended ---- */

static bool is_unit(const scanner *sc, const char *name, int n)
{
    double factor;
    dim d;
    return unit_find(arena_strndup(sc->a, name, (size_t)n), &factor, &d);
}

static void bad_number(scanner *sc, span at)
{
    span num = { at.file, at.begin, at.begin };
    while (strchr("0123456789.", sc->text[num.end]))
        num.end++;
    const char *s = sc->text + num.end;
    /* a whole exponent belongs to the number */
    if ((*s == 'e' || *s == 'E') && isdigit((unsigned char)s[1 + (s[1] == '+' || s[1] == '-')])) {
        num.end += 2;
        while (isdigit((unsigned char)sc->text[num.end]))
            num.end++;
    }
    int n = (int)(num.end - at.begin), m = (int)(at.end - num.end);
    diag *e = diag_error(sc->d, DIAG_LEXICAL, at, "a name right after a number");
    const char *digits = sc->text + at.begin, *name = sc->text + num.end;
    if (m == 1 && (*name == 'e' || *name == 'E'))
        diag_hint(sc->d, e, "the e of a power of ten needs digits after it: %.*se3", n, digits);
    else if (*name == '_' && isdigit((unsigned char)name[1]))
        diag_hint(sc->d, e, "digits are written without separators: 1000000, or 1e6");
    else if (n == 1 && *digits == '0' && (*name == 'x' || *name == 'X') && m > 1)
        diag_hint(sc->d, e, "numbers are written in decimal digits");
    else if (m == 1 && (*name == 'f' || *name == 'L') && memchr(digits, '.', (size_t)n))
        diag_hint(sc->d, e, "a number has no letter after it: %.*s", n, digits);
    else if (at.begin > 1 && sc->text[at.begin - 1] == '^' && sc->text[at.begin - 2] == 'd')
        diag_hint(sc->d, e, "a derivative in time is %.*s%s", m, name, n == 1 && *digits == '2' ? "''" : "'");
    else if (m == 1 && (*name == 'i' || *name == 'j'))
        diag_hint(sc->d, e, "there are no complex numbers; write %.*s*%c to multiply", n, digits, *name);
    else if (is_unit(sc, name, m))
        diag_hint(sc->d, e, "write %.*s [%.*s] for the unit, %.*s*%.*s to multiply", n, digits, m, name, n,
                  digits, m, name);
    else
        diag_hint(sc->d, e, "write %.*s*%.*s to multiply", n, digits, m, name);
}

static void bad_char(scanner *sc, span at)
{
    static const char *const meant[][2] = {
        { "−", "-" },
        { "×", "*" },
        { "÷", "/" },
        { "“", "\"" },
        { "”", "\"" },
        { "’", "'" },
        { "‘", "'" },
        { "″", "''" },
        { "²", "^2" },
        { "³", "^3" },
        { "µ", "the Greek letter μ" },
        { "…", ".." },
        { "&", "and" },
        { "|", "or between conditions, abs(x) for an absolute value, norm(p) for a length" },
        { "?", "if a then b else c" },
        { "%", "mod(a, b) for the remainder; a comment begins with #" },
        { "\xC2\xA0", "a space" },
        { "≈", "expect a == b within 1e-9" },
        { "±", "expect a == b within 1e-3" },
        { "°", "90 [deg]" },
        { "√", "sqrt(x)" },
        { "∞", "inf" },
        { "∫", "integral(f(s) for s in a..b)" },
        { "∑", "sum(f(i) for i in 1..n)" },
        { "∂", "d(u, x)" },
        { "∇", "grad(u), laplacian(u)" },
        { "ẋ", "x' for the derivative in time" },
        { "ẍ", "x'' for the second derivative in time" },
        { "\\",
          "names of the language instead of those of TeX: x'' for the second derivative, mu for a letter" },
        { "$", "names as they are: x" },
        { "@", "fn f(x) = x^2 for a function, * or dot(u, v) for a product" },
        { "~", "= for an equation, not for a condition, != to compare" },
        { "\xCC\x87", "x' for the derivative in time" },
        { "\xCC\x88", "x'' for the second derivative in time" },
    };
    size_t n = at.end - at.begin;
    const char *p = sc->text + at.begin;
    diag *e = diag_error(sc->d, DIAG_LEXICAL, at, "unexpected character '%.*s'", (int)n, p);
    for (size_t i = 0; i < sizeof meant / sizeof *meant; i++)
        if (strlen(meant[i][0]) == n && memcmp(meant[i][0], p, n) == 0)
            diag_hint(sc->d, e, "write %s", meant[i][1]);
}

/* a comment of another language is also skipped, after a message how to write it */
static void bad_comment(scanner *sc, span at)
{
    if (!sc->commented) {
        int n = sc->text[at.begin] == '%' ? 1 : 2;
        const char *p = sc->text + at.begin;
        diag *e = diag_error(sc->d, DIAG_LEXICAL, (span){ at.file, at.begin, at.begin + (uint32_t)n },
                             "'%.*s' does not begin a comment", n, p);
        diag_hint(sc->d, e,
                  !strncmp(p, "//", 2) ? "a comment begins with #; floor(a/b) is a quotient rounded down"
                                       : "a comment begins with # and ends with the line");
    }
    sc->commented = true;
    for (uint32_t k = at.begin; k < at.end; k++)
        if (sc->text[k] == '\n')
            sc->line = k + 1;
}

/* signs of other languages: the intended token */
static int bad_sign(scanner *sc, span at, bool say)
{
    static const struct {
        const char *sign;
        int meant;
        const char *instead, *hint;
    } signs[] = {
        { "**", T_HAT, "^", "a power is written with ^" },
        { "&&", T_AND, "and", "write and" },
        { "||", T_OR, "or", "write or" },
        { "!", T_NOT, "not ", "write not" },
        { "~=", T_NE, "!=", "write !=" },
        { "<>", T_NE, "!=", "write !=" },
        { "=<", T_LE, "<=", "write <=" },
        { "=>", T_GE, ">=", "write >=" },
        { ":=", T_SET, "=", "write =" },
        { ".*", T_STAR, "*",
          "write *; vectors are multiplied element by element in [a[i]*b[i] for i in 1..n]" },
        { "./", T_SLASH, "/",
          "write /; vectors are divided element by element in [a[i]/b[i] for i in 1..n]" },
        { ".^", T_HAT, "^", "write ^; each element of a vector has its power in [a[i]^2 for i in 1..n]" },
    };
    int n = (int)(at.end - at.begin);
    const char *p = sc->text + at.begin;
    for (size_t k = 0; k < sizeof signs / sizeof *signs; k++) {
        if ((int)strlen(signs[k].sign) != n || strncmp(signs[k].sign, p, (size_t)n))
            continue;
        diag *e = say ? diag_error(sc->d, DIAG_LEXICAL, at, "unknown operator '%.*s'", n, p) : NULL;
        diag_hint(sc->d, e, "%s", signs[k].hint);
        diag_replace(sc->d, e, signs[k].sign, signs[k].instead);
        return signs[k].meant;
    }
    return 0;
}

static bool is_encoded(const scanner *sc, span at)
{
    unsigned char c = (unsigned char)sc->text[at.begin];
    return c && (c < 0x80 || at.end - at.begin > 1);
}

/* At the beginning of a statement: the following text is not a statement by itself and must not be reported
 * as one. */
static bool stands_for_name(const scanner *sc, span at)
{
    const char *p = sc->text + at.end;
    if (sc->count)
        return false;
    return *p == '{' || isalpha((unsigned char)*p) || strchr("='", p[strspn(p, " \t'")]);
}

/* The token to continue with, 0 to skip it. */
static int bad_token(scanner *sc, int t, span at)
{
    bool say = !sc->failed;
    if (t == T_BAD_SIGN)
        return bad_sign(sc, at, say);
    sc->failed = true;
    if (t == T_BAD_CHAR) {
        if (say && is_encoded(sc, at))
            bad_char(sc, at);
        return stands_for_name(sc, at) ? T_NAME : 0;
    }
    if (t == T_BAD_NUMBER) {
        if (say)
            bad_number(sc, at);
        return T_NUMBER;
    }
    diag *e = say ? diag_error(sc->d, DIAG_LEXICAL, at, "the string is not closed") : NULL;
    bool behind = at.begin > 0 &&
                  (isalnum((unsigned char)sc->text[at.begin - 1]) || sc->text[at.begin - 1] == ']');
    diag_hint(sc->d, e,
              behind ? "a second derivative is written with two single quotes: x''"
                     : "write \" where it ends, on the same line");
    return T_STRING;
}

/* ---- statements ---- */

/* A statement that is not allowed here.  True: it is the model's } that is missing, and the body is to be
 * closed. */
static bool statement_misplaced(scanner *sc, int k, span at, uint32_t col)
{
    begins here = where_we_are(sc), may = keyword_begins[k];
    if (may == BEGINS_NO || (may & here) || sc->misplaced)
        return false;
    size_t n = statement_depth(sc);
    if (here == BEGINS_MODEL && col <= sc->open.at[n - 1].col) {
        diag *e = diag_error(sc->d, DIAG_SYNTAX, at, "missing '}' before '%s'", keyword_list[k]);
        diag_second(sc->d, e, sc->open.at[n - 1].at, "this '{' is not closed");
        return true;
    }
    sc->misplaced = true;
    diag *e = here == BEGINS_MODEL
                  ? diag_error(sc->d, DIAG_SYNTAX, at, "'%s' is not allowed inside a model", keyword_list[k])
                  : diag_error(sc->d, DIAG_SYNTAX, at, "'%s' belongs inside a model", keyword_list[k]);
    diag_hint(sc->d, e,
              here == BEGINS_MODEL ? "move it after the model's '}'" : "write model name { … } around it");
    return false;
}

static void statement_begin(scanner *sc, int t, span at)
{
    sc->first = t;
    sc->first_at = at;
    sc->first_col = at.begin - sc->line;
    sc->count = 0;
    sc->failed = sc->skipping = false;
}

static bool at_statement(const scanner *sc)
{
    return sc->last == 0 || sc->last == T_NEWLINE || sc->last == T_BODY_OPEN;
}

/* A word at the beginning of a line that begins a statement, or has the column of this one. */
static bool begins_another(const scanner *sc, int t, span at, bool fresh)
{
    if (!fresh || sc->count == 0 || closing_of(t))
        return false;
    int k = keyword_of(sc, at);
    return at.begin - sc->line <= sc->first_col || (k >= 0 && keyword_begins[k] && t != T_FOR);
}

/* The same for the last token given, once it turned out not to fit. */
static bool last_begins_another(const scanner *sc)
{
    if (sc->count < 2 || is_end(sc->last) || sc->last == T_BODY_CLOSE)
        return false;
    return begins_another(sc, sc->last, sc->last_at, sc->last_fresh);
}

/* While the parser skips, a block in braces is skipped whole, unless a word that begins statements stands
   where this one began; nothing else delays the next statement. */
static bool in_block(const scanner *sc)
{
    for (size_t n = sc->open.n; n && !sc->open.at[n - 1].body; n--)
        if (sc->open.at[n - 1].sign == '{')
            return true;
    return false;
}

/* ---- tokens ---- */

static int give(scanner *sc, int t, span at, span *out)
{
    sc->prev = sc->last, sc->prev_at = sc->last_at;
    sc->last = t, sc->last_at = *out = at;
    sc->count++;
    if (is_relation(t))
        sc->relations++;
    else if (!goes_on(t))
        sc->relations = 0;
    return t;
}

static int give_end(scanner *sc, int t, span *out)
{
    sc->last_fresh = false;
    return give(sc, t, (span){ sc->file, sc->last_at.end, sc->last_at.end }, out);
}

static void hold(scanner *sc, int t, span at, bool fresh)
{
    sc->held = t, sc->held_at = at, sc->held_fresh = fresh;
}

/* the meaning of a line end here: 0 nothing */
static int line_end(const scanner *sc)
{
    const bracket *b = innermost(sc);
    if (b && b->sign != '{')
        return 0;
    return !ends_statement(sc->last) ? 0 : b && !b->body ? T_SEP : T_NEWLINE;
}

static int semicolon(const scanner *sc)
{
    const bracket *b = innermost(sc);
    if (b && b->sign != '{')
        return T_ROW;
    if (b && !b->body)
        return sc->last == T_LBRACE || sc->last == T_SEP ? 0 : T_SEP;
    return at_statement(sc) ? 0 : T_NEWLINE;
}

static void newline(scanner *sc, span at)
{
    if (sc->blank)
        sc->doc = (text){ 0 };
    sc->line = at.end;
    sc->fresh = sc->blank = true;
}

/* The end of the text ends the statement, then every open body, then the file; it is held until all is done.
 */
static int end_of_text(scanner *sc, span at, span *out)
{
    size_t n = statement_depth(sc);
    hold(sc, -1, at, false);
    if (!at_statement(sc)) {
        if (sc->open.n > n)
            sc->missing = *innermost(sc);
        sc->open.n = n;
        return give_end(sc, T_NEWLINE, out);
    }
    if (n == 0)
        return give(sc, 0, at, out);
    if (!sc->failed && !sc->ended) {
        diag *e = diag_error(sc->d, DIAG_SYNTAX, at, "missing '}' at the end of the text");
        diag_second(sc->d, e, sc->open.at[n - 1].at, "this '{' is not closed");
    }
    sc->failed = true;
    sc->open.n = n - 1;
    return give_end(sc, T_BODY_CLOSE, out);
}

/* whether a } at the end of a line ends the enclosing body: the text below has the column where that began,
   and is not a } */
static bool body_ends(const scanner *sc, span at, uint32_t col)
{
    const char *p = sc->text + at.end;
    p += strspn(p, " \t\r");
    while (*p == '#' || *p == '\n') {
        p += strcspn(p, "\n");
        p += strspn(p, "\n\r");
        const char *line = p;
        p += strspn(p, " \t\r");
        if (*p && *p != '#' && *p != '\n')
            return *p != '}' && (size_t)(p - line) <= col;
    }
    return !*p;
}

/* The } of a block that was skipped because its { is missing: on the same line, or below its statement. */
static bool closes_unopened(scanner *sc, span at, bool fresh)
{
    size_t n = statement_depth(sc);
    bool alone = !n || sc->open.at[n - 1].at.begin < sc->lost.line; /* no other { on the line */
    if (alone && n && sc->lost.unopened && !fresh && body_ends(sc, at, sc->open.at[n - 1].col))
        alone = false;
    bool same = sc->line == sc->lost.line || (sc->skipping && !at_statement(sc));
    bool ours = sc->lost.unopened && alone && (fresh ? at.begin - sc->line == sc->lost.col : same);
    sc->lost.unopened = sc->lost.unopened && !ours && !fresh;
    return ours;
}

/* A } that ends a body ends its last statement first. */
static int brace_close(scanner *sc, span at, bool fresh, span *out)
{
    size_t n = sc->open.n;
    if (closes_unopened(sc, at, fresh))
        return 0;
    while (n && sc->open.at[n - 1].sign != '{')
        n--;
    if (n && sc->open.at[n - 1].body && !at_statement(sc)) {
        if (sc->open.n > n)
            sc->missing = *innermost(sc);
        sc->open.n = n;
        hold(sc, T_RBRACE, at, fresh);
        return give_end(sc, T_NEWLINE, out);
    }
    /* one inserted here, or one that a misplaced statement may explain */
    if (n == 0 && (sc->lost.closed || sc->misplaced)) {
        sc->lost.closed -= sc->lost.closed > 0;
        return 0;
    }
    int t = bracket_close(sc, T_RBRACE, '}');
    if (at_statement(sc))
        statement_begin(sc, t, at);
    return give(sc, t, at, out);
}

static int give_word(scanner *sc, int t, span at, PARSER_STYPE *v, span *out)
{
    if (t == T_NAME)
        v->name = sym_of(sc->names, sc->text + at.begin, at.end - at.begin);
    else if (t == T_NUMBER)
        v->n = number_node(sc, at);
    else if (t == T_STRING)
        v->n = string_node(sc, at, sc->text[at.end - 1] == '"' && at.end - at.begin > 1);
    return give(sc, t, at, out);
}

/* A token's own text, or what stands for it. */
static const char *shown(const scanner *sc, int t, span at)
{
    int n = (int)(at.end - at.begin);
    if (n == 0 || is_end(t))
        return t == T_BODY_CLOSE ? "'}'" : "the end of the line";
    return arena_printf(sc->a, "'%.*s'", n > 40 ? 40 : n, sc->text + at.begin);
}

/* model NAME and experiment NAME were read, and a { of statements is to follow */
static bool wants_body(const scanner *sc)
{
    return (sc->first == T_MODEL || sc->first == T_EXPERIMENT) && sc->count == 2 && sc->last == T_NAME &&
           !sc->failed;
}

/* Without its { a body is read nevertheless, so that its content gives no further errors; a word below the
   header begins another statement.  0: there is a {. */
static int body_unopened(scanner *sc, int t, span at, bool fresh, span *out)
{
    bool other = t == T_RBRACE || (fresh && t != T_LBRACE && at.begin - sc->line <= sc->first_col);
    if (other) {
        hold(sc, t, at, fresh);
        return give_end(sc, T_NEWLINE, out);
    }
    if (t == T_LBRACE && !fresh)
        return 0;
    diag *e = diag_error(sc->d, DIAG_SYNTAX, fresh ? sc->last_at : at, "expected '{' after %s",
                         shown(sc, sc->last, sc->last_at));
    if (t == T_LBRACE) {
        diag_hint(sc->d, e, "it belongs on the same line");
        return 0;
    }
    hold(sc, t, at, fresh);
    span none = { sc->file, sc->last_at.end, sc->last_at.end };
    return give(sc, bracket_open(sc, T_LBRACE, '{', none), none, out);
}

/* A sign or word that is neither line end nor comment; 0 when there is nothing to give. */
static int token(scanner *sc, int t, span at, bool fresh, PARSER_STYPE *v, span *out)
{
    int unopened = wants_body(sc) ? body_unopened(sc, t, at, fresh, out) : 0;
    if (unopened)
        return unopened;
    if (t == T_RBRACE)
        return brace_close(sc, at, fresh, out);
    int word = fresh && sc->skipping && at.begin - sc->line <= sc->first_col ? keyword_of(sc, at) : -1;
    bool below = word >= 0 && keyword_begins[word];
    if (sc->skipping && !at_statement(sc) && (below || !in_block(sc)) && begins_another(sc, t, at, fresh)) {
        sc->open.n = statement_depth(sc);
        hold(sc, t, at, fresh);
        return give_end(sc, T_NEWLINE, out);
    }
    if (at_statement(sc)) {
        int k = t == T_NAME || t == T_NUMBER || t == T_STRING ? -1 : keyword_of(sc, at);
        if (k >= 0 && statement_misplaced(sc, k, at, at.begin - sc->line)) {
            sc->open.n = statement_depth(sc) - 1;
            sc->lost.closed++;
            sc->resync = true;
            hold(sc, t, at, fresh);
            return give_end(sc, T_BODY_CLOSE, out);
        }
        statement_begin(sc, t, at);
    }
    doc_give(sc, at);
    if (t >= T_BAD_NUMBER && !(t = bad_token(sc, t, at)))
        return 0;
    if (sc->last == T_DOT && !fresh && t != T_NAME && keyword_of(sc, at) >= 0)
        t = T_NAME;
    if (opening_of(t))
        t = bracket_open(sc, t, opening_of(t), at);
    else if (closing_of(t))
        t = bracket_close(sc, t, closing_of(t));
    return is_literal(t) ? give_word(sc, t, at, v, out) : give(sc, t, at, out);
}

/* The text of the next token; sets *fresh if it is the first on its line. */
static int read(scanner *sc, span *at, bool *fresh)
{
    int t = sc->ended ? 0 : scan_token(sc, at);
    if (sc->ended)
        *at = (span){ sc->file, sc->len, sc->len };
    *fresh = sc->fresh;
    bool percent = t == T_BAD_CHAR && sc->fresh && sc->text[at->begin] == '%';
    if (t == T_NEWLINE || t == 0)
        sc->in_comment = false;
    if (t == T_BAD_COMMENT || percent)
        bad_comment(sc, *at);
    if (percent)
        sc->in_comment = true;
    if (t == T_BAD_COMMENT || sc->in_comment)
        t = T_COMMENT;
    if (t == T_DOC)
        doc_add(sc, *at);
    if (t != T_NEWLINE && t != T_DOC && t != T_COMMENT)
        sc->fresh = false;
    if (t != T_NEWLINE)
        sc->blank = false;
    return t;
}

/* Whether the rest of the line closes a bracket that it does not open: then its ; divided rows of a matrix.
 */
static bool line_closes(const scanner *sc, uint32_t from)
{
    enum { AHEAD = 200 };
    int depth = 0;
    uint32_t end = sc->len - from < AHEAD ? sc->len : from + AHEAD;
    for (uint32_t k = from; k < end && sc->text[k] != '\n' && sc->text[k] != '#'; k++) {
        char c = sc->text[k];
        depth += (c == '[' || c == '(') - (c == ']' || c == ')');
        depth += sc->lost.unopened ? (c == '{') - (c == '}') : 0;
        if (depth < 0)
            return true;
        if (c != '"')
            continue;
        while (k + 1 < end && sc->text[k + 1] != '\n' && sc->text[++k] != '"')
            k += sc->text[k] == '\\';
    }
    return false;
}

int parser_lex(PARSER_STYPE *v, span *out, scanner *sc);
int parser_lex(PARSER_STYPE *v, span *out, scanner *sc)
{
    span at = SPAN_NONE;
    bool fresh = false;
    sc->missing.sign = 0;
    sc->stray = false;
    if (sc->resync) {
        sc->resync = false;
        return give_end(sc, T_NEWLINE, out);
    }
    for (;;) {
        int t = sc->held, end;
        if (t)
            at = sc->held_at, fresh = sc->held_fresh, sc->held = 0;
        else if ((t = read(sc, &at, &fresh)) == 0)
            t = -1;
        if (t == -1)
            return end_of_text(sc, at, out);
        if (t == T_COMMENT || t == T_DOC)
            continue;
        if (t == T_SEMI && sc->skipping && line_closes(sc, at.end))
            continue;
        if (t == T_NEWLINE && wants_body(sc)) {
            newline(sc, at);
            continue;
        }
        if (t == T_NEWLINE || t == T_SEMI) {
            end = t == T_SEMI ? semicolon(sc) : line_end(sc);
            if (t == T_NEWLINE)
                newline(sc, at);
            if (end)
                return t == T_SEMI ? give(sc, end, at, out) : give_end(sc, end, out);
            continue;
        }
        sc->last_fresh = fresh;
        if ((t = token(sc, t, at, fresh, v, out)) != 0)
            return t;
    }
}

/* whether a block begins here that other languages end with a word */
static bool ends_in_word(const char *p)
{
    static const char *const heads[] = { "if ", "for ", "while ", "function ", "begin", "model " };
    for (size_t k = 0; k < sizeof heads / sizeof *heads; k++)
        if (!strncmp(p, heads[k], strlen(heads[k])))
            return true;
    return false;
}

void scan_doubt(scanner *sc, span at)
{
    if (ends_in_word(sc->text + at.begin))
        diag_doubt(sc->d, sym_of(sc->names, "end", 3));
    scanner part;
    span word;
    int t;
    scan_begin(&part, sc->a, sc->text + at.begin, at.end - at.begin);
    for (int k = 0; (t = scan_token(&part, &word)) != 0; k++) {
        /* what it declares may have lost the bracket after its name: field u(x) as field ux) */
        uint32_t len = word.end - word.begin, least = k == 1 && len < 32 ? 1 : len;
        for (uint32_t n = least; t == T_NAME && n <= len; n++)
            diag_doubt(sc->d, sym_of(sc->names, part.text + word.begin, n));
    }
}

/* ---- syntax errors ---- */

void scan_limit(scanner *sc, span at, const char *what, int most)
{
    if (!sc->limited)
        diag_error(sc->d, DIAG_LIMIT, at, "%s than %d", what, most);
    sc->limited = true;
}

/* The place of something missing: the next token if it is on the same line, otherwise the token it should
 * follow. */
static span gap_place(const scanner *sc)
{
    bool here = !sc->last_fresh && sc->last_at.end > sc->last_at.begin;
    return here || !sc->prev ? sc->last_at : sc->prev_at;
}

static void say_missing(scanner *sc, const bracket *b)
{
    diag *e = diag_error(sc->d, DIAG_SYNTAX, gap_place(sc), "missing '%c'", closing[(int)b->sign]);
    diag_second(sc->d, e, b->at, "this '%c' is not closed", b->sign);
}

/* words that begin a statement in other languages, and the CDL form; NULL: none of them */
static const char *foreign_statement(const char *word)
{
#define A_USE      "use imports definitions: use std.planar"
#define A_FUNCTION "a function is fn f(x) = x^2"
#define A_LET      "a name is given a value with let, or with param in a model"
#define A_MODEL    "a body or mechanism is a model: model name { … }"
#define A_RUN      "write run model for 3"
#define A_SAVE     "write save t, y { file = \"y.csv\" }"
#define A_START    "initial values are part of the declaration: dof x = 1, x' = 0"
#define A_EQUATION "equations are written in the model as they are: x'' = -k*x"
    static const char *const other[][2] = {
        { "import", A_USE },
        { "from", A_USE },
        { "using", A_USE },
        { "include", "use imports definitions: use \"file.cdl\"" },
        { "function", A_FUNCTION },
        { "return", A_FUNCTION },
        { "var", A_LET },
        { "const", A_LET },
        { "set", A_LET },
        { "double", A_LET },
        { "float", A_LET },
        { "int", A_LET },
        { "real", A_LET },
        { "Real", "an unknown is dof x = 1, with its initial value; a parameter is param m = 1" },
        { "Integer", A_LET },
        { "parameter", "write param m = 1" },
        { "constant", A_LET },
        { "variable", "an unknown is dof x = 1, with its initial value" },
        { "state", "an unknown is dof x = 1, with its initial value" },
        { "equation", A_EQUATION },
        { "initial", A_START },
        { "init", A_START },
        { "ic", A_START },
        { "ode", A_EQUATION },
        { "eq", A_EQUATION },
        { "auto", A_LET },
        { "def", A_FUNCTION },
        { "algorithm", A_EQUATION },
        { "end", "a model ends with }" },
        { "class", A_MODEL },
        { "struct", A_MODEL },
        { "extends", "a model is used inside another as a part: part a: model" },
        { "connect", "bodies are joined by constraints: constraint pin: a.p = b.p" },
        { "gravity", "write gravity into the equations: y'' = -9.81" },
        { "mass", "a mass is a parameter in the equations: param m = 1" },
        { "lagrangian", "write the two energies: kinetic x'^2/2 and potential x^2/2" },
        { "Lagrangian", "write the two energies: kinetic x'^2/2 and potential x^2/2" },
        { "body", A_MODEL },
        { "block", A_MODEL },
        { "component", A_MODEL },
        { "system", A_MODEL },
        { "simulate", A_RUN },
        { "solve", A_RUN },
        { "integrate", A_RUN },
        { "export", A_SAVE },
        { "write", A_SAVE },
        { "assert", "write expect x > 0 after a run; in a model, stop when ends a run" },
        { "test", "write expect a == b within 1e-9" },
        { "print", "an expression by itself is printed" },
        { "show", "an expression by itself is printed" },
        { "until", "to end a run at a condition, write stop when" },
        { "while", "there are no loops; a sum is sum(f for i in 1..9), an event is when x < 0 { … }" },
    };
    for (size_t k = 0; k < sizeof other / sizeof *other; k++)
        if (!strcmp(word, other[k][0]))
            return other[k][1];
    return NULL;
}

static const char *first_word(const scanner *sc)
{
    return arena_strndup(sc->a, sc->text + sc->first_at.begin, sc->first_at.end - sc->first_at.begin);
}

/* whether an = comes after the last token */
static bool assigned(const scanner *sc)
{
    const char *p = sc->text + sc->last_at.end;
    p += strspn(p, " \t");
    return *p == '=' && p[1] != '=';
}

static void say_unknown_statement(scanner *sc)
{
    const char *word = first_word(sc);
    diag *e = diag_error(sc->d, DIAG_UNKNOWN_STATEMENT, sc->first_at, "unknown statement '%s'", word);
    if (!e)
        return;
    if (foreign_statement(word)) {
        diag_hint(sc->d, e, "%s", foreign_statement(word));
        return;
    }
    near n = near_to(word);
    for (int k = 0; keyword_list[k]; k++)
        if (keyword_begins[k] & where_we_are(sc))
            near_try(&n, keyword_list[k]);
    if (near_best(&n))
        diag_near(sc->d, e, &n);
    else if (sc->last == T_NAME && assigned(sc) && where_we_are(sc) == BEGINS_MODEL)
        diag_hint(sc->d, e, "a parameter is declared as param %.*s = 1",
                  (int)(sc->last_at.end - sc->last_at.begin), sc->text + sc->last_at.begin);
    else if (is_literal(sc->last) &&
             op_find(word) != OP_NONE) /* what is written side by side may be a call */
        diag_hint(sc->d, e, "a function is called with parentheses: %s(%.*s)", word,
                  (int)(sc->last_at.end - sc->last_at.begin), sc->text + sc->last_at.begin);
}

/* two words side by side at the beginning: the first was meant as a keyword */
static bool is_unknown_statement(const scanner *sc)
{
    if (sc->count != 2 || sc->first != T_NAME || sc->last_fresh)
        return false;
    int k = keyword_of(sc, sc->last_at);
    if (sc->last == T_TRUE || sc->last == T_FALSE || sc->last == T_NOT)
        return foreign_statement(first_word(sc)) != NULL;
    return is_literal(sc->last) || sc->last == T_LBRACE || (k >= 0 && keyword_begins[k]);
}

static const char *where_it_belongs(int t)
{
    switch (t) {
    case T_THEN:
    case T_ELSE:
        return "if … then … else … is one expression";
    case T_OTHERWISE:
        return "it ends the last line of cases { … }";
    case T_IF:
        return "value if condition is part of cases { … }";
    case T_WITHIN:
        return "it is part of expect a == b within abs(1e-9)";
    case T_AGAINST:
        return "it is part of plot y against t";
    case T_WITH:
        return "it is part of run model for time with backend()";
    case T_AS:
        return "it is part of use library as name";
    case T_WHERE:
        return "it follows i in 1..N";
    case T_FOR:
        return "for follows the value: sum(x[i] for i in 1..N)";
    default:
        return NULL;
    }
}

static bool word_is(const scanner *sc, span at, const char *word)
{
    return strlen(word) == at.end - at.begin && !strncmp(sc->text + at.begin, word, at.end - at.begin);
}

/* whether the statement has an if before the last token */
static bool has_if(const scanner *sc)
{
    const char *p = sc->text + sc->first_at.begin, *end = sc->text + sc->last_at.begin;
    for (; p + 3 <= end; p++)
        if (!strncmp(p, "if", 2) && !isalnum((unsigned char)p[2]) && p[2] != '_' &&
            (p == sc->text || !isalnum((unsigned char)p[-1])))
            return true;
    return false;
}

/* ends of runs and ranges as other languages write them */
static const char *advice_end(const scanner *sc)
{
    bool to = word_is(sc, sc->last_at, "to");
    if (sc->first == T_SAVE && to)
        return "write save t, y { file = \"y.csv\" }";
    if (sc->last == T_COLON && has_if(sc))
        return "write if a then b else c";
    if (sc->last == T_COLON && sc->prev == T_NUMBER && sc->first != T_WHEN && sc->first != T_IF)
        return "a range is written 1..9";
    if (sc->first == T_RUN && sc->last == T_COMMA && sc->count == 3)
        return "write run model for 3";
    if (sc->first == T_RUN && sc->last == T_NUMBER && ends_statement(sc->prev))
        return "write run model for 3";
    if (sc->last != T_NAME || !(to || word_is(sc, sc->last_at, "until") || word_is(sc, sc->last_at, "from")))
        return NULL;
    if (sc->first == T_RUN)
        return "write run model for 3; to end a run at a condition, write stop when … in the model";
    return to ? "a range is written 1..9" : NULL;
}

/* [1 2 3], {1, 2}, and statements divided by commas */
static const char *advice_list(const scanner *sc)
{
    const bracket *b = innermost(sc);
    if (b && b->sign == '[' && is_literal(sc->last) && ends_statement(sc->prev))
        return "write commas between elements: [1, 2]; rows of a matrix end in ;";
    if (sc->last == T_LBRACE && sc->prev == T_SET && sc->first != T_FN)
        return "a vector is written [1, 2]";
    if (sc->last == T_COMMA && sc->first == T_NAME && sc->open.n == statement_depth(sc))
        return "a statement ends with its line, or with ;";
    return NULL;
}

/* plot(t, y) */
static bool plot_called(const scanner *sc)
{
    const char *p = sc->text + sc->first_at.end;
    return sc->first == T_PLOT && sc->last == T_COMMA && p[strspn(p, " \t")] == '(';
}

#define CHANGED     "a value does not change: give the new one a name of its own, let k2 = k + 1"
#define A_UNKNOWN   "an initial value is given with =: dof x = 1, x' = 0"
#define A_ATTRIBUTE "attributes are written in braces: constraint floor: y >= 0 { impact = newton(0.5) }"

/* dof x(0) = 1, dof x: 1, dof x = 1 x' = 0, dof p in R^2, dof A in SO(3) */
static const char *advice_dof(const scanner *sc)
{
    int t = sc->last, p = sc->prev;
    if (word_is(sc, sc->prev_at, "SO") && t == T_LPAR)
        return "rotations are SO3: dof A in SO3";
    if (word_is(sc, sc->prev_at, "R") && (t == T_HAT || t == T_LPAR))
        return "write dof p in R2 = [0, 0]";
    if ((t == T_LPAR || t == T_COLON) && p == T_NAME)
        return A_UNKNOWN;
    return t == T_NAME && ends_statement(p) && !sc->last_fresh
               ? "values are separated by commas: dof x = 1, x' = 0"
               : NULL;
}

/* constraint c: y >= 0, impact = newton(0.5), and with a word, a bracket or a colon in place of the braces */
static const char *advice_constraint(const scanner *sc)
{
    int t = sc->last;
    const bracket *b = innermost(sc);
    bool inside = b && b->sign == '{' && sc->open.n > statement_depth(sc);
    if (inside)
        return t == T_COLON  ? "an attribute is set with =: impact = newton(0.5)"
               : t == T_NAME ? "attributes are separated by commas"
                             : NULL;
    if (t == T_LPAR && ends_statement(sc->prev) && sc->open.n == statement_depth(sc) + 1)
        return A_ATTRIBUTE;
    if (sc->open.n != statement_depth(sc))
        return NULL;
    return t == T_COMMA || t == T_WITH || (t == T_NAME && !sc->last_fresh) ? A_ATTRIBUTE : NULL;
}

/* run m g = 3 for 1, run m for t = 3, run m for 1 using sweeping, run m for 1 with h = 1 */
static const char *advice_run(const scanner *sc)
{
    int t = sc->last, p = sc->prev;
    const char *end = sc->text + sc->last_at.end;
    bool assigns = *(end + strspn(end, " \t")) == '=';
    if (t == T_NAME && sc->count == 3 && assigns)
        return "values of parameters are arguments: run model(g = 9.81) for 3";
    if (t == T_SET && p == T_NAME && word_is(sc, sc->prev_at, "t"))
        return "write run model for 3";
    if ((t == T_SET && p == T_NAME && sc->count > 3) || (t == T_NAME && assigns && ends_statement(p)))
        return "options belong to a backend: run model for 3 with sweeping(h = 1e-3)";
    return t == T_NAME && (word_is(sc, sc->last_at, "using") || word_is(sc, sc->last_at, "by"))
               ? "write run model for 3 with sweeping()"
               : NULL;
}

/* statements whose parts have a different order in CDL */
static const char *advice_form(const scanner *sc)
{
    int t = sc->last;
    switch (sc->first) {
    case T_FN:
        return t == T_LBRACE || (sc->prev == T_RPAR && (t == T_MINUS || t == T_COLON))
                   ? "a function is one expression: fn f(x) = x^2"
                   : NULL;
    case T_WHEN:
        return t == T_THEN || t == T_COLON || word_is(sc, sc->prev_at, ")") ? "write when x < 0 { x' = -x' }"
                                                                            : NULL;
    case T_SWEEP:
        return t == T_SET || word_is(sc, sc->last_at, "from") ? "write sweep e in linspace(0.1, 0.9, 9)"
                                                              : NULL;
    case T_IF:
        return t == T_ELSE || t == T_THEN || sc->open.n > statement_depth(sc) ? NULL
               : where_we_are(sc) == BEGINS_MODEL
                   ? "write x'' = if a then b else c; an event is when a { x' = -x' }"
                   : "if a then b else c is one expression; an event is when a { x' = -x' }";
    case T_FOR:
        if (t == T_SET || t == T_COLON || (t == T_LPAR && sc->count == 2))
            return "write for i in 1..3 { … }";
        return NULL;
    case T_LET:
        return t == T_COMMA && sc->count == 3 ? "each name has its own value: let a = 1, b = 2"
               : t == T_EQ && sc->count == 3  ? "a value is given with a single ="
               : sc->count == 3 && (t == T_PLUS || t == T_MINUS || t == T_STAR || t == T_SLASH) ? CHANGED
               : sc->count == 3 && t == T_COLON ? "write let a = 1"
               : sc->count == 3 && t == T_PRIME
                   ? "initial values are part of the declaration: dof x = 1, x' = 0"
                   : NULL;
    case T_PARAM:
        return sc->count == 3 && t == T_COLON ? "write param k = 1" : NULL;
    case T_RUN:
        return advice_run(sc);
    case T_KINETIC:
    case T_POTENTIAL:
    case T_DISSIPATION:
        return t == T_SET && sc->count == 2 ? "leave out the =" : NULL;
    case T_FORCE:
        return t == T_SET && sc->count == 3 ? "write a colon: force x: -k*x" : NULL;
    case T_NAME:
        return t == T_IF && sc->count == 2 && word_is(sc, sc->prev_at, "stop") ? "write stop when x < 0"
                                                                               : NULL;
    case T_EXPERIMENT:
        return t == T_LBRACE || t == T_BODY_OPEN || t == T_COLON
                   ? "an experiment has a name: experiment rebound { … }"
                   : NULL;
    case T_DOF:
        return advice_dof(sc);
    case T_CONSTRAINT:
        if (sc->count == 3 && is_relation(t))
            return "a constraint has a name: constraint floor: y >= 0";
        if (sc->count == 3 && is_literal(t))
            return "write constraint floor: y >= 0";
        return advice_constraint(sc);
    default:
        return NULL;
    }
}

/* for i = */
static bool follows_for(const scanner *sc)
{
    const char *from = sc->text + sc->first_at.begin, *p = sc->text + sc->prev_at.begin;
    while (p > from && (p[-1] == ' ' || p[-1] == '\t'))
        p--;
    return p - from >= 3 && !strncmp(p - 3, "for", 3) && p < sc->text + sc->prev_at.begin;
}

#define DECIMAL "a decimal number has a point: 9.81"

/* whether a bracket directly follows something that it may index */
static bool follows_operand(const scanner *sc, span at)
{
    unsigned char before = at.begin ? (unsigned char)sc->text[at.begin - 1] : 0;
    return isalnum(before) || strchr("_)]'", before ? before : 'x');
}

/* expressions of other languages */
static const char *advice_expression(const scanner *sc)
{
    int t = sc->last, p = sc->prev;
    if (t == T_SET && p == T_NAME && follows_for(sc))
        return "write for i in 1..3";
    if (t == T_RUN && p == T_SET)
        return "a run that has a name is written run r = model for 3";
    if (t == T_GT && p == T_MINUS)
        return "a function is fn f(x) = x^2; a member is r.x";
    const bracket *b = innermost(sc);
    if (t == T_COLON && (p == T_LBRACKET || (b && b->sign == '[' && follows_operand(sc, b->at))))
        return "all of x is x; parts of it are [x[i] for i in 1..2]";
    if (t == T_SET && (p == T_PLUS || p == T_MINUS || p == T_STAR || p == T_SLASH))
        return CHANGED;
    if (t == T_PLUS && p == T_PLUS)
        return CHANGED;
    if (t == T_LBRACE && p == T_HAT)
        return "write x^2, x^(n + 1)";
    if (t == T_COMMA && p != T_COMMA && b && b->sign == '(' && !follows_operand(sc, b->at))
        return "a vector is written [1, 2]";
    if (t == T_LBRACE && p == T_NUMBER && sc->text[sc->last_at.end] == ',')
        return DECIMAL;
    if ((t == T_PLUS || t == T_MINUS) && p == T_DOT)
        return "leave out the dot: vectors are added element by element";
    if (t == T_TO && p == T_PLUS)
        return "a line that ends with an operator continues: leave out the dots";
    if (t != T_NAME && t != T_NUMBER && t != T_STRING)
        return NULL;
    if (t == T_NUMBER && p == T_COMMA && isdigit((unsigned char)sc->text[sc->prev_at.begin - 1]) &&
        sc->prev_at.end == sc->last_at.begin &&
        (sc->first == T_LET || sc->first == T_PARAM || sc->first == T_DOF))
        return DECIMAL;
    if (t == T_STRING)
        return p == T_STRING                                         ? "a comment begins with #"
               : p == T_NAME && sc->prev_at.end == sc->last_at.begin ? "a string has nothing in front of it"
                                                                     : NULL;
    if (word_is(sc, sc->last_at, "is") && ends_statement(p))
        return "write == to compare";
    if (word_is(sc, sc->last_at, "elif") || word_is(sc, sc->last_at, "elseif"))
        return "write else if";
    if (sc->first == T_MINUS && sc->text[sc->first_at.end] == '-')
        return "a comment begins with #";
    if (word_is(sc, sc->prev_at, "lambda"))
        return "a function is fn f(x) = x^2";
    if (word_is(sc, sc->last_at, "mod") && ends_statement(p))
        return "write mod(a, b)";
    if (word_is(sc, sc->last_at, "div") && ends_statement(p))
        return "write floor(a/b)";
    const char *before = arena_strndup(sc->a, sc->text + sc->prev_at.begin,
                                       sc->prev_at.end - sc->prev_at.begin);
    if (p == T_NAME && !sc->last_fresh && op_find(before) != OP_NONE)
        return arena_printf(sc->a, "a function is called with parentheses: %s(%.*s)", before,
                            (int)(sc->last_at.end - sc->last_at.begin), sc->text + sc->last_at.begin);
    return NULL;
}

static const char *advice(const scanner *sc, bool vague)
{
    int t = sc->last, p = sc->prev, k = keyword_of(sc, sc->last_at);
    if (plot_called(sc))
        return "write plot y against t";
    if (advice_form(sc))
        return advice_form(sc);
    if (advice_expression(sc))
        return advice_expression(sc);
    if (advice_end(sc))
        return advice_end(sc);
    if (advice_list(sc))
        return advice_list(sc);
    if (t == T_PRIME && !ends_statement(p))
        return "a string is written in double quotes: \"text\"";
    if (t == T_DOT && p == T_NUMBER)
        return "a number does not end in a point; write 1 or 1.0";
    if (t == T_PLUS && !ends_statement(p))
        return "a number has no + in front of it";
    if (t == T_LBRACKET && sc->first == T_PARAM && p == T_NAME)
        return isdigit((unsigned char)sc->text[sc->last_at.end])
                   ? "a parameter has the size of its value: param v = [1, 2, 3]"
                   : "a unit follows the value: param k = 2 [m]";
    if (t == T_LPAR && sc->first == T_MEASURE && sc->count == 3)
        return "a measure has a name: measure m = max(y)";
    if (sc->first == T_CONSTRAINT && sc->count == 2)
        return "a constraint has a name: constraint floor: y >= 0";
    if (t == T_COLON && sc->first == T_NAME && sc->count == 2)
        return "an equation stands by itself: y'' = -g; a constraint is constraint floor: y >= 0";
    if (!vague || sc->last_fresh)
        return NULL;
    if (t == T_NAME && p == T_NUMBER &&
        is_unit(sc, sc->text + sc->last_at.begin, (int)(sc->last_at.end - sc->last_at.begin)))
        return "a unit is written in brackets: 10 [s]";
    if (t == T_NAME && sc->first == T_PLOT)
        return "write plot y against t";
    if (k >= 0 && where_it_belongs(t))
        return where_it_belongs(t);
    if (k >= 0 && keyword_begins[k])
        return "a statement begins on a new line, or after ;";
    if (t == T_SET && ends_statement(p))
        return "= is never an operator; write == to compare";
    return (is_literal(t) || t == T_LPAR) && ends_statement(p)
               ? "write * to multiply, or ; before another statement"
               : NULL;
}

/* "a, b or c" */
static const char *listed(const scanner *sc, const expected *want)
{
    text s = { .a = sc->a };
    int left = want->n;
    for (const char *p = want->list; left; left--) {
        size_t n = strcspn(p, "\n");
        if (s.n)
            text_puts(&s, left == 1 ? " or " : ", ");
        text_putn(&s, p, n);
        p += n + (p[n] != 0);
    }
    return s.at;
}

/* What is allowed here: an operand, or the signs given by the grammar; NULL if that is not informative. */
static const char *wanted(const scanner *sc, const expected *want)
{
    if (want->expr)
        return "an expression";
    if (sc->first == T_CONSTRAINT && sc->count == 3)
        return "':' or '{'";
    if (want->n == 0 || want->n > 4 || strcmp(want->list, "','") == 0)
        return NULL;
    return listed(sc, want);
}

static void say_plainly(scanner *sc, const expected *want)
{
    const char *what = wanted(sc, want), *got = shown(sc, sc->last, sc->last_at);
    const char *before = sc->count > 1 && !is_end(sc->prev) ? shown(sc, sc->prev, sc->prev_at) : NULL;
    span at = gap_place(sc);
    diag *e = what && before ? diag_error(sc->d, DIAG_SYNTAX, at, "expected %s after %s", what, before)
              : what         ? diag_error(sc->d, DIAG_SYNTAX, at, "expected %s, not %s", what, got)
              : before       ? diag_error(sc->d, DIAG_SYNTAX, at, "unexpected %s after %s", got, before)
                             : diag_error(sc->d, DIAG_SYNTAX, at, "unexpected %s", got);
    const char *hint = advice(sc, !what || want->expr);
    bool taken = what && !strcmp(what, "a name") && !sc->last_fresh && keyword_of(sc, sc->last_at) >= 0;
    if (taken)
        diag_hint(sc->d, e, "%s is a word of the language: choose another name", got);
    else if (hint)
        diag_hint(sc->d, e, "%s", hint);
}

static void say(scanner *sc, const expected *want)
{
    bool ended = ends_statement(sc->prev) || is_end(sc->prev);
    if (is_unknown_statement(sc))
        say_unknown_statement(sc);
    else if (sc->missing.sign && ended)
        say_missing(sc, &sc->missing);
    else if (sc->open.n > statement_depth(sc) && ended && last_begins_another(sc))
        say_missing(sc, innermost(sc));
    else if (is_relation(sc->last) && sc->relations > 1 && ended) {
        diag *e = diag_error(sc->d, DIAG_SYNTAX, sc->last_at, "comparisons do not chain");
        diag_hint(sc->d, e, "%s",
                  sc->first == T_CONSTRAINT ? "write two constraints, one for each bound"
                  : sc->first == T_OBSTACLE ? "write two obstacles, one for each bound"
                                            : "write a < b and b < c");
    } else if (sc->stray)
        diag_error(sc->d, DIAG_SYNTAX, sc->last_at, "unmatched '%c'", closing_of(sc->last));
    else
        say_plainly(sc, want);
}

/* whether a { may be what is missing: the grammar wants one, or the statement may have a block and has none
 * yet */
static bool block_unopened(const scanner *sc, const expected *want)
{
    size_t given = sc->last_at.begin > sc->first_at.begin ? sc->last_at.begin - sc->first_at.begin : 0;
    if (sc->count < 2 || sc->last == T_LBRACE || memchr(sc->text + sc->first_at.begin, '{', given))
        return false;
    switch (sc->first) {
    case T_CONSTRAINT:
    case T_PART:
    case T_ROD:
    case T_AT:
    case T_WHEN:
    case T_PLOT:
    case T_SAVE:
        return true;
    default:
        return !want->expr && strstr(want->list, "'{'");
    }
}

/* Called with the last token given. The parser discards tokens until the end of the statement. */
void scan_unexpected(scanner *sc, const expected *want)
{
    if (!sc->failed && !sc->ended)
        say(sc, want);
    sc->failed = sc->skipping = true;
    if (block_unopened(sc, want)) {
        sc->lost.unopened = true;
        sc->lost.line = sc->first_at.begin - sc->first_col;
        sc->lost.col = sc->first_col;
    }
    if (sc->last == T_BODY_OPEN)
        innermost(sc)->body = BEGINS_NO;
    if (!last_begins_another(sc))
        return;
    /* the token it discards now belongs to the next statement: end this one, then give the token again */
    hold(sc, sc->last == T_BODY_OPEN ? T_LBRACE : sc->last, sc->last_at, true);
    sc->open.n = statement_depth(sc);
    sc->resync = true;
}

/* ---- entries ---- */

/* bytes of the well-formed character at p, 0 when it is none; RFC 3629 */
static int utf8_len(const unsigned char *p)
{
    if (p[0] && p[0] < 0x80)
        return 1;
    if (p[0] < 0xC2 || p[0] > 0xF4)
        return 0;
    int n = p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    unsigned char lo = p[0] == 0xE0 ? 0xA0 : p[0] == 0xF0 ? 0x90 : 0x80;
    unsigned char hi = p[0] == 0xED ? 0x9F : p[0] == 0xF4 ? 0x8F : 0xBF;
    if (p[1] < lo || p[1] > hi)
        return 0;
    for (int i = 2; i < n; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    return n;
}

/* One error for a run of bad bytes. */
static void encoding_check(scanner *sc)
{
    const unsigned char *p = (const unsigned char *)sc->text;
    for (uint32_t i = 0; i < sc->len;) {
        int n = p[i] - 1u < 0x7F ? 1 : utf8_len(p + i);
        uint32_t from = i;
        i += (uint32_t)n;
        if (n)
            continue;
        bool zero = !p[i];
        while (i < sc->len && (zero ? !p[i] : p[i] && !utf8_len(p + i)))
            i++;
        if (zero)
            diag_error(sc->d, DIAG_ENCODING, (span){ sc->file, from, i }, "the text contains a NUL byte");
        else
            diag_error(sc->d, DIAG_ENCODING, (span){ sc->file, from, i }, "not valid UTF-8 (byte 0x%02X)",
                       p[from]);
    }
}

ast *parse_source(arena *a, symtab *names, diags *d, uint32_t file)
{
    const source *src = d->sources.at[file];
    ast *root = ast_new(a, AST_FILE, (span){ file, 0, 0 }, 0);
    scanner sc;
    if (src->len > SOURCE_MAX_BYTES) {
        diag_error(d, DIAG_LIMIT, (span){ file, 0, 0 }, "the text is longer than %d MB",
                   SOURCE_MAX_BYTES >> 20);
        return root;
    }
    size_t had = d->list.n;
    scan_begin(&sc, a, src->text, src->len);
    sc.names = names, sc.d = d, sc.file = file;
    encoding_check(&sc);
    parser_parse(&sc, &root);
    diags_sort(d, had);
    root->at = (span){ file, 0, sc.len };
    return root;
}

/* brackets that are open at the end, and whether the last word can end a statement */
static int open_brackets(arena *scratch, const char *s, size_t len, bool *ends)
{
    scanner sc;
    span at;
    int t, last = T_NAME, open = 0;
    *ends = true;
    if (len > SOURCE_MAX_BYTES)
        return 0;
    scan_begin(&sc, scratch, s, len);
    while ((t = scan_token(&sc, &at)) != 0) {
        if (opening_of(t))
            open++;
        if (closing_of(t) && open)
            open--;
        if (t == T_NEWLINE || t == T_COMMENT || t == T_DOC || t == T_BAD_COMMENT)
            continue;
        last = t == T_SEMI || (last == T_DOT && keyword_of(&sc, at) >= 0) ? T_NAME : t;
    }
    *ends = ends_statement(last);
    return open;
}

int parse_complete(arena *scratch, const char *s, size_t len)
{
    bool ends;
    return open_brackets(scratch, s, len, &ends) == 0 && ends;
}

int parse_open_brackets(arena *scratch, const char *s, size_t len)
{
    bool ends;
    return open_brackets(scratch, s, len, &ends);
}

static lex_kind kind_of(const scanner *sc, int t, span at)
{
    switch (t) {
    case T_NAME:
        return LEX_NAME;
    case T_NUMBER:
        return LEX_NUMBER;
    case T_STRING:
        return LEX_STRING;
    case T_COMMENT:
        return LEX_COMMENT;
    case T_DOC:
        return LEX_DOC;
    case T_NEWLINE:
        return LEX_NEWLINE;
    case T_BAD_COMMENT:
    case T_BAD_NUMBER:
    case T_BAD_STRING:
    case T_BAD_SIGN:
    case T_BAD_CHAR:
        return LEX_BAD;
    default:
        return keyword_of(sc, at) >= 0 ? LEX_KEYWORD : LEX_OP;
    }
}

size_t lex_all(arena *a, const char *s, size_t len, lexeme **out)
{
    vec(lexeme) v = { 0 };
    scanner sc;
    span at;
    int t;
    if (len > SOURCE_MAX_BYTES)
        len = SOURCE_MAX_BYTES;
    scan_begin(&sc, a, s, len);
    while ((t = scan_token(&sc, &at)) != 0)
        *vec_push(a, &v) = (lexeme){ kind_of(&sc, t, at), at.begin, at.end };
    *out = v.at;
    return v.n;
}
