/* diag: collects diagnostics and prints them, as text with carets or as JSON lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "diag.h"

static const struct {
    const char *name, *help;
} codes[] = {
#define X(id, name, help) { name, help },
#include "diag.def"
#undef X
};

const char *diag_code_name(diag_code c)
{
    return (unsigned)c < DIAG_CODES ? codes[c].name : "unknown";
}
const char *diag_code_help(diag_code c)
{
    return (unsigned)c < DIAG_CODES ? codes[c].help : "";
}

int diag_code_find(const char *name)
{
    for (int c = 0; c < DIAG_CODES; c++)
        if (!strcmp(codes[c].name, name))
            return c;
    return -1;
}

/* ---- sources and spans ---- */

span span_join(span a, span b)
{
    if (!a.file)
        return b;
    if (b.file != a.file)
        return a;
    return (span){ a.file, a.begin < b.begin ? a.begin : b.begin, a.end > b.end ? a.end : b.end };
}

diags *diags_new(arena *a)
{
    diags *d = arena_make(a, diags);
    d->a = a;
    *vec_push(a, &d->sources) = NULL;
    vec_reserve(a, &d->list, 2 * DIAG_MAX); /* the largest number ever kept, so entries do not move */
    return d;
}

static void source_find_lines(arena *a, source *s)
{
    vec(uint32_t) line = { 0 };
    *vec_push(a, &line) = 0;
    for (size_t k = 0; k < s->len; k++)
        if (s->text[k] == '\n')
            *vec_push(a, &line) = (uint32_t)(k + 1);
    s->line = line.at;
    s->nlines = line.n;
}

static source *source_new(arena *a, const char *name, const char *source_text, size_t len)
{
    if (len > UINT32_MAX - 1)
        len = UINT32_MAX - 1;
    source *s = arena_make(a, source);
    s->name = arena_strdup(a, name);
    s->text = arena_strndup(a, source_text, len);
    s->len = len;
    source_find_lines(a, s);
    return s;
}

uint32_t diags_add_source(diags *d, const char *name, const char *source_text, size_t len)
{
    return diags_add_passing(d, d->a, name, source_text, len);
}

uint32_t diags_add_passing(diags *d, arena *a, const char *name, const char *source_text, size_t len)
{
    source *s = source_new(a, name, source_text, len);
    *vec_push(d->a, &d->sources) = s;
    return (uint32_t)(d->sources.n - 1);
}

void diags_drop_passing(diags *d, uint32_t file, bool kept)
{
    source *s = d->sources.at[file];
    if (kept || d->sources.n != file + 1)
        d->sources.at[file] = source_new(d->a, s->name, s->text, s->len);
    else
        d->sources.n--;
}

static const source *source_of(const diags *d, span s)
{
    return s.file && s.file < d->sources.n ? d->sources.at[s.file] : NULL;
}

/* the span clipped to its source */
static span span_clamp(const source *s, span at)
{
    if (at.begin > s->len)
        at.begin = (uint32_t)s->len;
    if (at.end > s->len)
        at.end = (uint32_t)s->len;
    if (at.end < at.begin)
        at.end = at.begin;
    return at;
}

size_t source_line(const source *s, uint32_t offset)
{
    size_t lo = 0, hi = s->nlines;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (s->line[mid] <= offset)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* a byte that is no UTF-8 counts as a character */
static size_t char_len(const char *p, size_t n, uint32_t *cp)
{
    size_t len = utf8_next(p, n, cp);
    if (len)
        return len;
    *cp = 0xFFFD;
    return 1;
}

static size_t char_count(const char *p, size_t n)
{
    size_t count = 0;
    uint32_t cp;
    for (size_t k = 0; k < n; count++)
        k += char_len(p + k, n - k, &cp);
    return count;
}

static void offset_place(const source *s, uint32_t offset, size_t *line, size_t *col)
{
    size_t l = source_line(s, offset);
    if (line)
        *line = l + 1;
    if (col)
        *col = char_count(s->text + s->line[l], offset - s->line[l]) + 1;
}

void span_place(const diags *d, span at, size_t *line, size_t *col, size_t *line2, size_t *col2)
{
    const source *s = source_of(d, at);
    if (!s) {
        size_t *all[] = { line, col, line2, col2 };
        for (int k = 0; k < 4; k++)
            if (all[k])
                *all[k] = 0;
        return;
    }
    at = span_clamp(s, at);
    offset_place(s, at.begin, line, col);
    offset_place(s, at.end, line2, col2);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

char *span_text(const diags *d, span at, arena *a)
{
    text out = { .a = a };
    const source *s = source_of(d, at);
    text_puts(&out, "");
    if (!s)
        return out.at;
    at = span_clamp(s, at);
    bool gap = false;
    for (uint32_t k = at.begin; k < at.end; k++) {
        if (is_blank(s->text[k])) {
            gap = true;
            continue;
        }
        if (gap && out.n)
            text_putc(&out, ' ');
        text_putc(&out, s->text[k]);
        gap = false;
    }
    return out.at;
}

/* ---- collecting ---- */

/* If the operator between two operands was reported as unknown, operands that do not fit are a consequence.
 */
static bool follows_from(const diag *later, const diag *e)
{
    bool of_operands = later->code == DIAG_SHAPE || later->code == DIAG_TYPE ||
                       later->code == DIAG_UNIT_MISMATCH;
    return of_operands && e->code == DIAG_LEXICAL && e->at.begin >= later->at.begin &&
           e->at.end <= later->at.end;
}

/* whether enough of this severity were kept, or one at the same place, or its cause; diagnostics without a
   place always differ */
static bool diag_too_much(const diags *d, const diag *later)
{
    size_t kept = 0;
    for (size_t k = 0; k < d->list.n; k++) {
        const diag *e = &d->list.at[k];
        if (e->severity != later->severity)
            continue;
        bool same_file = later->at.file && e->at.file == later->at.file;
        if (same_file && (e->at.begin == later->at.begin || follows_from(later, e)))
            return true;
        kept++;
    }
    return kept >= DIAG_MAX;
}

static diag *diag_add(diags *d, diag e, const char *fmt, va_list ap)
{
    if (diag_too_much(d, &e))
        return NULL;
    e.message = arena_vprintf(d->a, fmt, ap);
    diag *kept = vec_push(d->a, &d->list);
    *kept = e;
    return kept;
}

diag *diag_error(diags *d, diag_code c, span at, const char *fmt, ...)
{
    va_list ap;
    d->errors++;
    va_start(ap, fmt);
    diag *e = diag_add(d, (diag){ .severity = DIAG_ERROR, .code = c, .at = at }, fmt, ap);
    va_end(ap);
    return e;
}

diag *diag_warn(diags *d, diag_code c, span at, const char *fmt, ...)
{
    va_list ap;
    d->warnings++;
    va_start(ap, fmt);
    diag *e = diag_add(d, (diag){ .severity = DIAG_WARNING, .code = c, .at = at }, fmt, ap);
    va_end(ap);
    return e;
}

void diag_doubt(diags *d, sym name)
{
    d->doubt.a = d->a;
    *map64_put(&d->doubt, sym_key(name)) = 1;
}

bool diag_doubtful(diags *d, sym name)
{
    const uint64_t *n = d->doubt.a ? map64_get(&d->doubt, sym_key(name)) : NULL;
    if (!d->doubt_all && !(n && *n))
        return false;
    d->errors++;
    return true;
}

void diag_doubt_end(diags *d)
{
    d->doubt = (map64){ 0 };
    d->doubt_all = false;
}

void diag_forget(diags *d, size_t errors, size_t messages)
{
    d->errors = errors;
    d->list.n = messages;
    diag_doubt_end(d);
}

void diag_hint(diags *d, diag *e, const char *fmt, ...)
{
    if (!e)
        return;
    va_list ap;
    va_start(ap, fmt);
    e->hint = arena_vprintf(d->a, fmt, ap);
    va_end(ap);
}

void diag_second(diags *d, diag *e, span at, const char *fmt, ...)
{
    if (!e)
        return;
    va_list ap;
    va_start(ap, fmt);
    e->message2 = arena_vprintf(d->a, fmt, ap);
    va_end(ap);
    e->at2 = at;
}

static bool place_before(span a, span b)
{
    if (a.file != b.file)
        return a.file < b.file;
    if (a.begin != b.begin)
        return a.begin < b.begin;
    return a.end < b.end;
}

/* by insertion: the list is short */
void diags_sort(diags *d, size_t from)
{
    for (size_t i = from + 1; i < d->list.n; i++) {
        diag e = d->list.at[i];
        size_t k = i;
        for (; k > from && place_before(e.at, d->list.at[k - 1].at); k--)
            d->list.at[k] = d->list.at[k - 1];
        d->list.at[k] = e;
    }
}

/* ---- did you mean ---- */

enum { NEAR_MAX = 64 }; /* longer names are not compared */

/* the code points of a name; NEAR_MAX + 1 when there are more */
static size_t name_chars(const char *s, uint32_t *out)
{
    size_t n = 0, left = strlen(s);
    while (left) {
        if (n == NEAR_MAX)
            return NEAR_MAX + 1;
        size_t len = char_len(s, left, &out[n++]);
        s += len;
        left -= len;
    }
    return n;
}

static size_t min3(size_t a, size_t b, size_t c)
{
    return a < b ? (a < c ? a : c) : b < c ? b : c;
}

/* Damerau-Levenshtein: the fewest insertions, deletions, replacements and swaps of neighbours */
static size_t edit_distance(const uint32_t *a, size_t n, const uint32_t *b, size_t m)
{
    size_t row[3][NEAR_MAX + 1], *before = row[0], *last = row[1], *now = row[2];
    for (size_t j = 0; j <= m; j++)
        last[j] = j;
    for (size_t i = 1; i <= n; i++) {
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            now[j] = min3(last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && before[j - 2] + 1 < now[j])
                now[j] = before[j - 2] + 1;
        }
        size_t *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[m];
}

static uint32_t lower(uint32_t c)
{
    return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

static bool same_but_case(const uint32_t *a, size_t n, const uint32_t *b, size_t m)
{
    if (n != m)
        return false;
    for (size_t k = 0; k < n; k++)
        if (lower(a[k]) != lower(b[k]))
            return false;
    return true;
}

near near_to(const char *got)
{
    return (near){ .got = got, .best = NULL, .bestd = SIZE_MAX };
}

void near_try(near *q, const char *candidate)
{
    uint32_t a[NEAR_MAX], b[NEAR_MAX];
    if (!q->got || !candidate || !strcmp(q->got, candidate))
        return;
    if (q->tried < NEAR_SEEN)
        q->seen[q->tried] = candidate;
    q->tried++;
    size_t n = name_chars(q->got, a), m = name_chars(candidate, b);
    if (n > NEAR_MAX || m > NEAR_MAX)
        return;
    size_t most = n / 3 > 1 ? n / 3 : 1;
    if ((n > m ? n - m : m - n) > most)
        return;
    /* a name that differs only in case is nearer than any edit */
    size_t dist = same_but_case(a, n, b, m) ? 0 : edit_distance(a, n, b, m);
    if (dist > most || dist >= n || dist >= q->bestd)
        return;
    q->best = candidate;
    q->bestd = dist;
}

const char *near_best(const near *n)
{
    return n->best;
}

void diag_near(diags *d, diag *e, const near *n)
{
    if (!n->best)
        return;
    diag_hint(d, e, "did you mean '%s'?", n->best);
    diag_replace(d, e, n->got, n->best);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* names come in the arbitrary order of tables */
void diag_near_or_all(diags *d, diag *e, const near *n)
{
    text list = { .a = d->a };
    const char *name[NEAR_SEEN];
    if (n->best || n->tried == 0 || n->tried > NEAR_SEEN) {
        diag_near(d, e, n);
        return;
    }
    memcpy(name, n->seen, n->tried * sizeof *name);
    qsort(name, n->tried, sizeof *name, by_name);
    for (size_t k = 0; k < n->tried; k++)
        text_printf(&list, "%s%s", k ? ", " : "", name[k]);
    diag_hint(d, e, "it has %s", list.at);
}

void diag_replace(diags *d, diag *e, const char *wrong, const char *right)
{
    if (!e)
        return;
    e->wrong = arena_strdup(d->a, wrong);
    e->right = arena_strdup(d->a, right);
}

static bool in_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (unsigned char)c >= 0x80;
}

/* a whole word where it is one, and the first of several */
span diag_wrong_place(const diags *d, const diag *e)
{
    const source *s = e->wrong ? source_of(d, e->at) : NULL;
    size_t n = e->wrong ? strlen(e->wrong) : 0;
    if (!s || !n)
        return SPAN_NONE;
    span at = span_clamp(s, e->at);
    for (uint32_t k = at.begin; k + n <= at.end; k++) {
        if (memcmp(s->text + k, e->wrong, n))
            continue;
        bool inside = (k > 0 && in_name(s->text[k]) && in_name(s->text[k - 1])) ||
                      (in_name(s->text[k + n - 1]) && in_name(s->text[k + n]));
        if (!inside)
            return (span){ at.file, k, k + (uint32_t)n };
    }
    return SPAN_NONE;
}

/* ---- drawing ---- */

enum { LINE_MAX_COLUMNS = 160 };

#define BOLD    "\033[1m"
#define RED     "\033[1;31m"
#define MAGENTA "\033[1;35m"
#define CYAN    "\033[1;36m"
#define PLAIN   "\033[0m"

static const struct {
    const char *name, *colour;
} severities[] = {
    [DIAG_ERROR] = { "error", RED }, [DIAG_WARNING] = { "warning", MAGENTA }, [DIAG_NOTE] = { "note", CYAN }
};

typedef struct {
    uint32_t from, to;
} range;

static bool in_ranges(uint32_t c, const range *r, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (c >= r[k].from && c <= r[k].to)
            return true;
    return false;
}
#define IN(c, ranges) in_ranges((c), (ranges), sizeof(ranges) / sizeof *(ranges))

/* Cells that a character takes on a terminal: marks combined with the previous character take none, East
   Asian ones two. */
static size_t char_width(uint32_t c)
{
    static const range none[] = { { 0x300, 0x36F },    { 0x483, 0x489 },   { 0x591, 0x5BD },
                                  { 0x610, 0x61A },    { 0x64B, 0x65F },   { 0x1AB0, 0x1AFF },
                                  { 0x1DC0, 0x1DFF },  { 0x200B, 0x200D }, { 0x20D0, 0x20FF },
                                  { 0xFE00, 0xFE0F },  { 0xFE20, 0xFE2F }, { 0xFEFF, 0xFEFF },
                                  { 0xE0100, 0xE01EF } };
    static const range two[] = { { 0x1100, 0x115F },   { 0x231A, 0x231B },   { 0x2E80, 0x303E },
                                 { 0x3041, 0xA4CF },   { 0xA960, 0xA97F },   { 0xAC00, 0xD7A3 },
                                 { 0xF900, 0xFAFF },   { 0xFE30, 0xFE6F },   { 0xFF00, 0xFF60 },
                                 { 0xFFE0, 0xFFE6 },   { 0x1F300, 0x1F64F }, { 0x1F680, 0x1F6FF },
                                 { 0x1F900, 0x1F9FF }, { 0x20000, 0x3FFFD } };
    return c < 0x300 ? 1 : IN(c, none) ? 0 : IN(c, two) ? 2 : 1;
}

/* characters that control a terminal: control characters, and those that change the direction of writing */
static bool char_steers(uint32_t c)
{
    static const range steers[] = {
        { 0, 0x1F }, { 0x7F, 0x9F }, { 0x200E, 0x200F }, { 0x2028, 0x202E }, { 0x2066, 0x2069 }
    };
    return IN(c, steers);
}

size_t visible_text(const char *p, size_t n, char *out, size_t room)
{
    size_t used = 0;
    uint32_t cp;
    for (size_t k = 0; k < n;) {
        size_t len = utf8_next(p + k, n - k, &cp), put = len;
        char code[16];
        const char *from = p + k;
        if (!len || (char_steers(cp) && cp != '\n' && cp != '\t')) {
            put = (size_t)snprintf(code, sizeof code, "\\u%04x", len ? cp : (unsigned char)p[k]);
            from = code;
        }
        if (used + put <= room)
            memcpy(out + used, from, put);
        used += put;
        k += len ? len : 1;
    }
    return used;
}

void text_visible(text *out, const char *p, size_t n)
{
    size_t need = visible_text(p, n, NULL, 0);
    if (need == n) {
        text_putn(out, p, n);
        return;
    }
    char *q = arena_alloc(out->a, need);
    visible_text(p, n, q, need);
    text_putn(out, q, need);
}

static size_t width_of(const char *p, size_t n)
{
    size_t w = 0;
    uint32_t cp;
    for (size_t k = 0; k < n;) {
        k += char_len(p + k, n - k, &cp);
        w += char_width(cp);
    }
    return w;
}

static void put_char(text *out, const char *p, size_t len, uint32_t cp)
{
    if (cp == '\t')
        text_putc(out, ' ');
    else if (cp == 0xFFFD || char_steers(cp))
        text_puts(out, "\xEF\xBF\xBD");
    else
        text_putn(out, p, len);
}

/* the cells lo..hi of a line; half a wide character is a space */
static void put_cells(text *out, const char *p, size_t n, size_t lo, size_t hi)
{
    size_t at = 0;
    uint32_t cp;
    for (size_t k = 0; k < n && at < hi;) {
        size_t len = char_len(p + k, n - k, &cp), w = char_width(cp);
        if (at >= lo && at + w <= hi)
            put_char(out, p + k, len, cp);
        else if (at + w > lo)
            text_putc(out, ' ');
        k += len;
        at += w;
    }
}

static void put_spaces(text *out, size_t n)
{
    while (n--)
        text_putc(out, ' ');
}

static void put_colour(text *out, bool colour, const char *code)
{
    if (colour)
        text_puts(out, code);
}

static void trim_right(text *out)
{
    while (out->n && out->at[out->n - 1] == ' ')
        out->at[--out->n] = 0;
}

/* a source line with the marked cells caret..caret+width; the window lo..hi of it is shown */
typedef struct {
    const char *p;
    size_t n, caret, width, lo, hi, total;
} excerpt;

static excerpt excerpt_of(const source *s, span at)
{
    size_t l = source_line(s, at.begin), begin = s->line[l];
    size_t end = l + 1 < s->nlines ? s->line[l + 1] - 1 : s->len;
    if (end > begin && s->text[end - 1] == '\r')
        end--;
    size_t from = at.begin < end ? at.begin : end, to = at.end < end ? at.end : end;
    excerpt x = { .p = s->text + begin, .n = end - begin, .caret = width_of(s->text + begin, from - begin) };
    if (to > from)
        x.width = width_of(s->text + from, to - from);
    if (!x.width)
        x.width = 1;
    x.total = width_of(x.p, x.n);
    x.hi = x.total;
    return x;
}

/* keeps a long line to LINE_MAX_COLUMNS cells, an ellipsis at each cut counted */
static void excerpt_clip(excerpt *x)
{
    size_t room = LINE_MAX_COLUMNS, half = room / 2, mark = x->width < half ? x->width : half;
    if (x->total <= room)
        return;
    if (x->caret + mark < room) {
        x->hi = room - 1;
        return;
    }
    size_t lo = x->caret - (room - mark) / 2;
    if (lo + room - 1 >= x->total)
        x->lo = x->total - (room - 1);
    else {
        x->lo = lo;
        x->hi = lo + room - 2;
    }
}

static void put_gutter(text *out, size_t gutter, size_t line, bool colour)
{
    put_colour(out, colour, CYAN);
    if (line)
        text_printf(out, "%*zu |", (int)gutter, line);
    else
        text_printf(out, "%*s |", (int)gutter, "");
    put_colour(out, colour, PLAIN);
    text_putc(out, ' ');
}

static void put_excerpt(text *out, const source *s, span at, size_t gutter, diag_severity severity,
                        bool colour)
{
    excerpt x = excerpt_of(s, at);
    excerpt_clip(&x);
    bool cut_left = x.lo > 0, cut_right = x.hi < x.total;
    put_gutter(out, gutter, source_line(s, at.begin) + 1, colour);
    if (cut_left)
        text_puts(out, "…");
    put_cells(out, x.p, x.n, x.lo, x.hi);
    if (cut_right)
        text_puts(out, "…");
    trim_right(out);
    text_putc(out, '\n');
    put_gutter(out, gutter, 0, colour);
    put_spaces(out, x.caret - x.lo + cut_left);
    put_colour(out, colour, severities[severity].colour);
    text_putc(out, '^');
    for (size_t k = 1; k < x.width && (!cut_right || x.caret + k < x.hi); k++)
        text_putc(out, '~');
    put_colour(out, colour, PLAIN);
    text_putc(out, '\n');
}

static void put_head(const diags *d, text *out, span at, diag_severity severity, const char *message,
                     bool colour)
{
    const source *s = source_of(d, at);
    if (s) {
        size_t line, col;
        span_place(d, at, &line, &col, NULL, NULL);
        put_colour(out, colour, BOLD);
        text_visible(out, s->name, strlen(s->name));
        text_printf(out, ":%zu:%zu:", line, col);
        put_colour(out, colour, PLAIN);
        text_putc(out, ' ');
    }
    put_colour(out, colour, severities[severity].colour);
    text_printf(out, "%s:", severities[severity].name);
    put_colour(out, colour, PLAIN);
    text_putc(out, ' ');
    text_visible(out, message, strlen(message));
    text_putc(out, '\n');
}

static void put_entry(const diags *d, text *out, span at, diag_severity severity, const char *message,
                      size_t gutter, bool colour)
{
    const source *s = source_of(d, at);
    put_head(d, out, at, severity, message, colour);
    if (s)
        put_excerpt(out, s, span_clamp(s, at), gutter, severity, colour);
}

/* as wide as the longest line number shown, and at least 3 */
static size_t gutter_of(const diags *d, const diag *e)
{
    size_t line, line2 = 0, width = 1;
    span_place(d, e->at, &line, NULL, NULL, NULL);
    if (e->message2)
        span_place(d, e->at2, &line2, NULL, NULL, NULL);
    for (size_t n = line > line2 ? line : line2; n >= 10; n /= 10)
        width++;
    return width < 3 ? 3 : width;
}

void diag_print(const diags *d, const diag *e, bool colour, text *out)
{
    size_t gutter = gutter_of(d, e);
    put_entry(d, out, e->at, e->severity, e->message, gutter, colour);
    if (e->message2)
        put_entry(d, out, e->at2, DIAG_NOTE, e->message2, gutter, colour);
    if (!e->hint)
        return;
    put_spaces(out, gutter + 1);
    put_colour(out, colour, CYAN);
    text_puts(out, "= hint:");
    put_colour(out, colour, PLAIN);
    text_putc(out, ' ');
    text_visible(out, e->hint, strlen(e->hint));
    text_putc(out, '\n');
}

/* ---- JSON ---- */

static void json_text(text *out, const char *key, const char *value)
{
    text_printf(out, ",\"%s\":", key);
    if (value)
        text_json_str(out, value, strlen(value));
    else
        text_puts(out, "null");
}

/* places from 1; nowhere is null */
static void json_place(const diags *d, text *out, span at, bool with_end)
{
    static const char *const key[] = { "line", "column", "end_line", "end_column" };
    const source *s = source_of(d, at);
    size_t n[4];
    span_place(d, at, &n[0], &n[1], &n[2], &n[3]);
    text_puts(out, "{\"file\":");
    if (s)
        text_json_str(out, s->name, strlen(s->name));
    else
        text_puts(out, "null");
    for (int k = 0; k < (with_end ? 4 : 2); k++)
        if (s)
            text_printf(out, ",\"%s\":%zu", key[k], n[k]);
        else
            text_printf(out, ",\"%s\":null", key[k]);
}

void diag_print_json(const diags *d, const diag *e, text *out)
{
    json_place(d, out, e->at, true);
    json_text(out, "severity", severities[e->severity].name);
    json_text(out, "code", diag_code_name(e->code));
    json_text(out, "message", e->message);
    json_text(out, "hint", e->hint);
    text_puts(out, ",\"related\":[");
    if (e->message2) {
        json_place(d, out, e->at2, false);
        json_text(out, "message", e->message2);
        text_putc(out, '}');
    }
    text_puts(out, "]}\n");
}
