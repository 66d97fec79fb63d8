/* fmt: the standard layout.  Line breaks and comments are kept; indentation and spaces are set here, except
   for columns that were aligned with two spaces or more before some signs. */
#include <string.h>
#include "parse.h"

enum { INDENT = 4 };

/* an open bracket: its line, how many lines opened brackets so far, the columns after it in the source and
   in the output, and whether it is a subscript or a unit */
typedef struct {
    char sign;
    bool index;
    size_t line, level, from, to;
} open_bracket;

/* a place in a line of text and its column, moved forward only */
typedef struct {
    size_t at, column;
} cursor;

typedef struct {
    const char *s;
    const lexeme *t;
    size_t n;
    vec(open_bracket) open;
    size_t line, last; /* lines written; the last token before this line, n when there is none */
    cursor from, to;   /* in the line of the source and of the output */
    text out;
    arena *a;
} formatter;

/* one line of output before its comment is set */
typedef struct {
    size_t comment, begin, end, width, column, at;
} outline;

static bool is(const formatter *f, size_t i, const char *sign)
{
    if (i >= f->n || f->s[f->t[i].begin] != sign[0])
        return false;
    size_t n = strlen(sign);
    return f->t[i].end - f->t[i].begin == n && memcmp(f->s + f->t[i].begin, sign, n) == 0;
}

static bool is_any(const formatter *f, size_t i, const char *const *signs)
{
    for (; *signs; signs++)
        if (is(f, i, *signs))
            return true;
    return false;
}

static bool is_comment(lex_kind k)
{
    return k == LEX_COMMENT || k == LEX_DOC;
}

/* a name, not a keyword: the name of a member may be a keyword */
static bool is_operand(const formatter *f, size_t i)
{
    static const char *const words[] = { "true", "false", "otherwise", NULL };
    static const char *const ends[] = { ")", "]", "}", "'", "′", NULL };
    lex_kind k = f->t[i].kind;
    if (k == LEX_NAME || k == LEX_NUMBER || k == LEX_STRING)
        return true;
    if (k == LEX_KEYWORD)
        return is_any(f, i, words) || (i && is(f, i - 1, "."));
    return is_any(f, i, ends);
}

static bool is_sign(const formatter *f, size_t i)
{
    return is(f, i, "+") || is(f, i, "-");
}

static bool in_brackets(const formatter *f)
{
    return f->open.n && f->open.at[f->open.n - 1].sign != '{';
}

/* the token before i, over line ends and comments; f->n when there is none */
static size_t before(const formatter *f, size_t i)
{
    return i && f->t[i - 1].kind != LEX_NEWLINE && !is_comment(f->t[i - 1].kind) ? i - 1 : f->last;
}

/* a sign in front of an operand; one that begins a line belongs to the line before in brackets only */
static bool is_unary(const formatter *f, size_t i)
{
    size_t p = before(f, i);
    return is_sign(f, i) && (p == f->n || !is_operand(f, p) || (p + 1 < i && !in_brackets(f)));
}

static size_t gap_before(const formatter *f, size_t i)
{
    return i ? f->t[i].begin - f->t[i - 1].end : 0;
}

static bool in_index(const formatter *f)
{
    return f->open.n && f->open.at[f->open.n - 1].index;
}

static bool is_plain(const formatter *f, size_t i)
{
    return f->t[i].kind == LEX_NAME || f->t[i].kind == LEX_NUMBER;
}

/* In 1..N-1 a sum is written as the author wrote it: near a range's sign, with nothing but plain terms
 * between. */
static bool in_range(const formatter *f, size_t i)
{
    static const char *const term[] = { "+", "-", "*", "/", "^", ".", "'", "′", "·", NULL };
    enum { NEAR = 12 };
    size_t b = i, e = i + 1;
    while (b && i - b < NEAR && (is_plain(f, b - 1) || is_any(f, b - 1, term)))
        b--;
    while (e < f->n && e - i < NEAR && (is_plain(f, e) || is_any(f, e, term)))
        e++;
    return (b && is(f, b - 1, "..")) || is(f, e, "..");
}

/* signs before which a column may have been aligned */
static bool keeps_column(const formatter *f, size_t i)
{
    static const char *const signs[] = { "within", "==", "=", "{", NULL };
    bool leading = f->t[i - 1].kind == LEX_KEYWORD && (i < 2 || f->t[i - 2].kind == LEX_NEWLINE);
    return f->t[i].kind == LEX_STRING || is_any(f, i, signs) || is(f, i - 1, ":") || leading;
}

/* whether a sum's sign has spaces around it */
static bool is_spaced(const formatter *f, size_t i)
{
    bool author = in_index(f) || in_range(f, i);
    return !is_unary(f, i) && (!author || gap_before(f, i) > 0 || f->t[i - 1].kind == LEX_NEWLINE);
}

static bool is_tight(const formatter *f, size_t i)
{
    static const char *const tight[] = { "*", "/", "^", "..", ".", "·", NULL };
    return is_any(f, i, tight);
}

/* Spaces between the tokens i - 1 and i of a line: the one table of the layout. */
static size_t spaces(const formatter *f, size_t i)
{
    static const char *const none_before[] = { ",", ";", ":", ")", "]", "'", "′", NULL };
    size_t p = i - 1;
    bool number = f->t[i].kind == LEX_NUMBER || f->t[p].kind == LEX_NUMBER;
    if (is(f, p, "{") && is(f, i, "}"))
        return 0;
    if (is(f, i, ".") || is(f, p, "."))
        return (number || (is(f, i, ".") && is(f, p, "."))) ? 1 : 0;
    if (is(f, p, "(") || is(f, p, "["))
        return 0;
    if (is_any(f, i, none_before) && !(is(f, p, "{") || f->t[p].kind == LEX_KEYWORD))
        return 0;
    if (is(f, i, "("))
        return !is_operand(f, p) && !is_tight(f, p) && (!is_sign(f, p) || is_spaced(f, p));
    if (is(f, i, "[") && is_operand(f, p))
        return f->t[p].kind == LEX_NUMBER;
    if (is_tight(f, i) || is_tight(f, p))
        return is_tight(f, i) && is(f, i, "..") == 0 && is(f, p, ",");
    if (is_sign(f, i) && !is_unary(f, i))
        return is_spaced(f, i);
    if (is_sign(f, p))
        return is_unary(f, p) ? 0 : is_spaced(f, p);
    return 1;
}

/* ---- lines ---- */

/* The column of the offset `at`, which is not before the last one in this line. */
static size_t column_of(cursor *c, const char *s, size_t at)
{
    for (; c->at < at; c->at++)
        c->column += ((unsigned char)s[c->at] & 0xC0) != 0x80;
    return c->column;
}

static size_t source_column(formatter *f, size_t i)
{
    return column_of(&f->from, f->s, f->t[i].begin);
}

static bool closes(const formatter *f, size_t i)
{
    return is(f, i, ")") || is(f, i, "]") || is(f, i, "}");
}
static bool opens(const formatter *f, size_t i)
{
    return is(f, i, "(") || is(f, i, "[") || is(f, i, "{");
}

/* one level for each line that opened brackets, less those that this line closes at once */
static size_t levels(const formatter *f, size_t i, size_t end)
{
    size_t n = f->open.n;
    for (; i < end && closes(f, i) && n; i++)
        n--;
    return n ? f->open.at[n - 1].level : 0;
}

/* the previous line ended where no statement can end */
static bool continued(const formatter *f, size_t i)
{
    size_t p = before(f, i);
    if (p == f->n || in_brackets(f))
        return false;
    return !is_operand(f, p) && !is(f, p, "{") && !is(f, p, ";");
}

static size_t indent_of(formatter *f, size_t i, size_t end)
{
    const open_bracket *b = f->open.n ? &f->open.at[f->open.n - 1] : NULL;
    /* a line directly after its bracket stays there */
    if (b && b->sign != '{' && !closes(f, i) && b->from && source_column(f, i) == b->from)
        return b->to;
    size_t level = levels(f, i, end) + (continued(f, i) && !closes(f, i));
    return INDENT * (level < AST_MAX_DEPTH ? level : AST_MAX_DEPTH);
}

static void bracket_note(formatter *f, size_t i, size_t end)
{
    if (closes(f, i) && f->open.n)
        f->open.n--;
    if (!opens(f, i))
        return;
    const open_bracket *outer = f->open.n ? &f->open.at[f->open.n - 1] : NULL;
    open_bracket b = { .sign = f->s[f->t[i].begin], .line = f->line };
    b.index = b.sign == '[' && i && is_operand(f, i - 1);
    b.level = outer ? outer->level + (outer->line != f->line) : 1;
    bool last = i + 1 >= end || is_comment(f->t[i + 1].kind);
    b.from = last ? 0 : source_column(f, i) + 1;
    b.to = column_of(&f->to, f->out.at, f->out.n);
    *vec_push(f->a, &f->open) = b;
}

static void put_token(formatter *f, size_t i)
{
    size_t b = f->t[i].begin, e = f->t[i].end;
    while (is_comment(f->t[i].kind) && e > b && strchr(" \t\r", f->s[e - 1]))
        e--;
    text_putn(&f->out, f->s + b, e - b);
}

static void put_spaces(formatter *f, size_t n)
{
    while (n--)
        text_putc(&f->out, ' ');
}

/* The tokens i … end of one line; its last may be a comment, whose gap is filled in later. */
static outline put_line(formatter *f, size_t i, size_t end)
{
    size_t begin = f->out.n, first = i;
    outline o = { 0 };
    f->to = (cursor){ begin, 0 };
    f->from = (cursor){ i ? f->t[i - 1].end : 0, 0 };
    put_spaces(f, indent_of(f, i, end));
    for (; i < end; i++) {
        if (i > first && is_comment(f->t[i].kind)) {
            o.comment = i, o.column = source_column(f, i);
            break;
        }
        size_t gap = i > first ? spaces(f, i) : 0, had = i > first ? gap_before(f, i) : 0;
        put_spaces(f, gap && had > gap && keeps_column(f, i) ? had : gap);
        put_token(f, i);
        bracket_note(f, i, end);
    }
    o.begin = begin, o.end = f->out.n;
    o.width = column_of(&f->to, f->out.at, f->out.n);
    if (!is_comment(f->t[first].kind))
        f->last = i - 1;
    f->line++;
    return o;
}

/* ---- the whole ---- */

typedef vec(outline) outlines;

/* Comments in the same column of lines that follow one another stay in one, moved right where the text needs
 * it. */
static void set_columns(outlines *v)
{
    for (size_t i = 0, j; i < v->n; i = j) {
        size_t column = v->at[i].column;
        for (j = i; j < v->n && (j == i || (v->at[j].comment && v->at[j].column == v->at[i].column)); j++)
            if (v->at[j].width + 2 > column)
                column = v->at[j].width + 2;
        for (size_t k = i; k < j; k++)
            v->at[k].at = column;
    }
}

static char *join(const formatter *f, const outlines *v, size_t *len)
{
    formatter to = *f;
    to.out = (text){ .a = f->a };
    text_puts(&to.out, "");
    for (size_t i = 0; i < v->n; i++) {
        const outline *o = &v->at[i];
        text_putn(&to.out, f->out.at + o->begin, o->end - o->begin);
        if (o->comment)
            put_spaces(&to, o->at - o->width), put_token(&to, o->comment);
        text_putc(&to.out, '\n');
    }
    *len = to.out.n;
    return to.out.at;
}

static void put_lines(formatter *f, outlines *v)
{
    size_t ends = 2; /* line ends since the last token; the text begins as after an empty line */
    for (size_t i = 0, j; i < f->n; i = j) {
        for (j = i; j < f->n && f->t[j].kind != LEX_NEWLINE; j++) {
        }
        if (j == i) {
            ends++, j++;
            continue;
        }
        if (ends > 1 && v->n)
            *vec_push(f->a, v) = (outline){ 0 };
        outline o = put_line(f, i, j);
        *vec_push(f->a, v) = o;
        ends = 0;
    }
}

/* the next token that counts; line ends in a row count once, at the beginning and at the end not at all */
static size_t next_token(const formatter *f, size_t i, bool *line)
{
    for (*line = false; i < f->n && f->t[i].kind == LEX_NEWLINE; i++)
        *line = true;
    return i;
}

static size_t trimmed(const formatter *f, size_t i)
{
    size_t n = f->t[i].end - f->t[i].begin;
    while (is_comment(f->t[i].kind) && n && strchr(" \t\r", f->s[f->t[i].begin + n - 1]))
        n--;
    return n;
}

static bool same_tokens(const formatter *a, const formatter *b)
{
    size_t i = 0, j = 0;
    for (bool first = true;; first = false, i++, j++) {
        bool la, lb;
        i = next_token(a, i, &la), j = next_token(b, j, &lb);
        if (i >= a->n || j >= b->n)
            return i >= a->n && j >= b->n;
        if (!first && la != lb)
            return false;
        size_t n = trimmed(a, i);
        if (a->t[i].kind != b->t[j].kind || n != trimmed(b, j))
            return false;
        if (memcmp(a->s + a->t[i].begin, b->s + b->t[j].begin, n))
            return false;
    }
}

char *fmt_source(arena *a, const char *s, size_t len, size_t *outlen)
{
    lexeme *t, *t2;
    formatter f = { .s = s, .a = a, .out = { .a = a } }, g = { .a = a };
    outlines v = { 0 };
    if (len > SOURCE_MAX_BYTES)
        return NULL;
    f.n = lex_all(a, s, len, &t);
    f.t = t;
    f.last = f.n;
    for (size_t i = 0; i < f.n; i++)
        if (t[i].kind == LEX_BAD)
            return NULL;
    text_puts(&f.out, "");
    put_lines(&f, &v);
    set_columns(&v);
    g.s = join(&f, &v, outlen);
    /* a layout that changes the program would be a bug: return nothing */
    g.n = lex_all(a, g.s, *outlen, &t2);
    g.t = t2;
    return same_tokens(&f, &g) ? (char *)(uintptr_t)g.s : NULL;
}
