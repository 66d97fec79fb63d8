/* arena: blocks in a list, newest first; released blocks are kept in a second list and reused, so that a
   loop between mark and release allocates memory only in its first iteration. */
#define _DEFAULT_SOURCE
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "arena.h"
#include "budget.h"

/* under the address sanitizer, memory that was not allocated must not be accessed */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define POISON(p, n)   ASAN_POISON_MEMORY_REGION((p), (n))
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION((p), (n))
#else
#define POISON(p, n)   ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

enum { ALIGN = 16, BLOCK_MIN = 8 << 10, BLOCK_MAX = 1 << 20 };
/* work between two readings of the clock; work of an allocation, and of a number as text; bytes cleared
   between two readings */
enum { TICKS = 1 << 18, TICKS_ALLOC = 32, TICKS_TEXT = 4, TICKS_NUM = 256, CLEAR_STEP = 4 << 20 };

typedef struct block block;
struct block {
    block *prev;
    size_t cap, used; /* bytes of data */
    char *data;       /* 16-aligned, after this header */
};

struct arena {
    allocator al;
    jmp_buf *oom;
    block *top, *spare;
    size_t held, next; /* bytes held; data bytes of the next block */
};

/* large blocks in large pages, if available: the first access to them costs less */
static void pages_large(void *p, size_t n)
{
#ifdef MADV_HUGEPAGE
    enum { LARGE = 2 << 20 };
    uintptr_t from = ((uintptr_t)p + LARGE - 1) & ~(uintptr_t)(LARGE - 1),
              to = ((uintptr_t)p + n) & ~(uintptr_t)(LARGE - 1);
    if (from < to)
        (void)madvise((void *)from, to - from, MADV_HUGEPAGE);
#endif
}

static void *libc_grow(void *ud, void *p, size_t n)
{
    (void)ud;
    if (!n) {
        free(p);
        return NULL;
    }
    p = realloc(p, n);
    if (p && n >= 4 << 20)
        pages_large(p, n);
    return p;
}

const allocator allocator_libc = { libc_grow, NULL, NULL };

arena *arena_new(const allocator *al, jmp_buf *oom)
{
    arena *a = al->grow(al->ud, NULL, sizeof *a);
    if (a)
        *a = (arena){ .al = *al, .oom = oom, .held = sizeof *a, .next = BLOCK_MIN };
    return a;
}

static void blocks_free(arena *a, block *b)
{
    while (b) {
        block *prev = b->prev;
        UNPOISON(b->data, b->cap);
        size_t bytes = sizeof(block) + ALIGN - 1 + b->cap;
        a->held -= bytes;
        if (a->al.budget)
            budget_hold(a->al.budget, -(int64_t)bytes);
        a->al.grow(a->al.ud, b, 0);
        b = prev;
    }
}

void arena_free(arena *a)
{
    if (!a)
        return;
    blocks_free(a, a->top);
    blocks_free(a, a->spare);
    allocator al = a->al;
    al.grow(al.ud, a, 0);
}

jmp_buf *arena_on_oom(arena *a, jmp_buf *oom)
{
    jmp_buf *old = a->oom;
    a->oom = oom;
    return old;
}

const allocator *arena_allocator(const arena *a)
{
    return &a->al;
}
size_t arena_size(const arena *a)
{
    return a->held;
}

static _Noreturn void out_of_memory(arena *a)
{
    if (!a->oom)
        abort();
    longjmp(*a->oom, 1);
}

struct budget *arena_budget(const arena *a)
{
    return a->al.budget;
}

void arena_tick(arena *a, int64_t work)
{
    budget *b = a->al.budget;
    if (!b || (b->ticks += work) < TICKS)
        return;
    if (budget_over(b))
        out_of_memory(a);
}

void arena_trim(arena *a)
{
    blocks_free(a, a->spare);
    a->spare = NULL;
}

static size_t times(arena *a, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        out_of_memory(a);
    return bytes;
}

static size_t round_up(arena *a, size_t n)
{
    if (n > PTRDIFF_MAX - BLOCK_MAX)
        out_of_memory(a);
    return (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

/* the first waiting block that is large enough, or NULL */
static block *block_reuse(arena *a, size_t n)
{
    for (block **at = &a->spare; *at; at = &(*at)->prev)
        if ((*at)->cap >= n) {
            block *b = *at;
            *at = b->prev;
            return b;
        }
    return NULL;
}

static block *block_new(arena *a, size_t n)
{
    size_t cap = n > a->next ? n : a->next;
    size_t bytes = sizeof(block) + ALIGN - 1 + cap;
    if (a->al.budget && !budget_hold(a->al.budget, (int64_t)bytes))
        out_of_memory(a);
    block *b = a->al.grow(a->al.ud, NULL, bytes);
    if (!b) {
        if (a->al.budget)
            budget_hold(a->al.budget, -(int64_t)bytes);
        out_of_memory(a);
    }
    char *data = (char *)(b + 1);
    b->data = data + (-(uintptr_t)data & (ALIGN - 1));
    b->cap = cap;
    POISON(b->data, cap);
    a->held += bytes;
    if (a->next < BLOCK_MAX)
        a->next *= 2;
    return b;
}

void *arena_alloc(arena *a, size_t n)
{
    size_t room = round_up(a, n);
    arena_tick(a, TICKS_ALLOC);
    if (!a->top || a->top->cap - a->top->used < room) {
        block *b = block_reuse(a, room);
        if (!b)
            b = block_new(a, room);
        b->used = 0;
        b->prev = a->top;
        a->top = b;
    }
    char *p = a->top->data + a->top->used;
    a->top->used += room;
    UNPOISON(p, n);
    return p;
}

void *arena_zalloc(arena *a, size_t n)
{
    char *p = arena_alloc(a, n);
    for (size_t done = 0; done < n; done += CLEAR_STEP) {
        size_t part = n - done < CLEAR_STEP ? n - done : CLEAR_STEP;
        memset(p + done, 0, part);
        arena_tick(a, (int64_t)(part / 2)); /* half a nanosecond a byte, where pages are new */
    }
    return p;
}

void *arena_array_(arena *a, size_t n, size_t size)
{
    return arena_zalloc(a, times(a, n, size));
}

void *arena_grow(arena *a, void *p, size_t old, size_t n)
{
    if (!p)
        return arena_alloc(a, n);
    if (n <= old)
        return p;
    size_t room = round_up(a, n), had = round_up(a, old);
    block *b = a->top;
    /* the last allocation: its end is where the next one would begin */
    if (b && (char *)p + had == b->data + b->used && b->cap - b->used >= room - had) {
        b->used += room - had;
        UNPOISON(p, n);
        return p;
    }
    void *q = arena_alloc(a, n);
    return memcpy(q, p, old);
}

char *arena_strndup(arena *a, const char *s, size_t n)
{
    if (n == SIZE_MAX)
        out_of_memory(a);
    char *p = arena_alloc(a, n + 1);
    if (n)
        memcpy(p, s, n);
    p[n] = 0;
    return p;
}

char *arena_strdup(arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

char *arena_vprintf(arena *a, const char *fmt, va_list ap)
{
    text s = { .a = a };
    text_vprintf(&s, fmt, ap);
    return s.at;
}

char *arena_printf(arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *p = arena_vprintf(a, fmt, ap);
    va_end(ap);
    return p;
}

arena_pos arena_mark(arena *a)
{
    return a->top ? (arena_pos){ a->top, a->top->used } : (arena_pos){ NULL, 0 };
}

void arena_release(arena *a, arena_pos mark)
{
    while (a->top && a->top != mark.block) {
        block *b = a->top;
        a->top = b->prev;
        b->prev = a->spare;
        a->spare = b;
        POISON(b->data, b->cap);
    }
    if (!a->top)
        return;
    a->top->used = mark.used;
    POISON(a->top->data + mark.used, a->top->cap - mark.used);
}

/* at least doubles, so that pushing n things costs O(n); new room is cleared */
void vec_room_(arena *a, void **at, size_t need, size_t *cap, size_t size)
{
    if (need <= *cap)
        return;
    size_t n = *cap < 4 ? 8 : *cap > SIZE_MAX / 2 ? SIZE_MAX : *cap * 2;
    if (n < need)
        n = need;
    size_t old = *cap * size, bytes = times(a, n, size);
    *at = arena_grow(a, *at, old, bytes);
    memset((char *)*at + old, 0, bytes - old);
    *cap = n;
}

/* ---- text ---- */

/* room for n more bytes and the NUL */
static void text_room(text *s, size_t n)
{
    size_t need;
    if (__builtin_add_overflow(s->n + 1, n, &need))
        out_of_memory(s->a);
    if (need <= s->cap)
        return;
    size_t cap = s->cap < 32 ? 64 : s->cap * 2;
    if (cap < need)
        cap = need;
    s->at = arena_grow(s->a, s->at, s->cap, cap);
    s->cap = cap;
}

void text_putn(text *s, const char *p, size_t n)
{
    arena_tick(s->a, TICKS_TEXT);
    text_room(s, n);
    if (n)
        memcpy(s->at + s->n, p, n);
    s->n += n;
    s->at[s->n] = 0;
}

void text_putc(text *s, char c)
{
    text_putn(s, &c, 1);
}
void text_puts(text *s, const char *p)
{
    text_putn(s, p, strlen(p));
}

void text_vprintf(text *s, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    text_room(s, n > 0 ? (size_t)n : 0);
    s->at[s->n] = 0;
    if (n > 0)
        s->n += (size_t)vsnprintf(s->at + s->n, (size_t)n + 1, fmt, ap);
}

void text_printf(text *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    text_vprintf(s, fmt, ap);
    va_end(ap);
}

/* the fewest significant digits of |x| that read back as x, and the exponent of ten of the first one.
   The decimal point of the locale is skipped, whatever it is. */
static int num_digits(double x, char digit[20], int *exponent)
{
    char buf[64];
    x = fabs(x);
    for (int p = x < DBL_MIN ? 1 : 15; p <= 17; p++) {
        snprintf(buf, sizeof buf, "%.*e", p - 1, x);
        if (p == 17 || strtod(buf, NULL) == x)
            break;
    }
    int n = 0;
    const char *c = buf;
    for (; *c != 'e'; c++)
        if (*c >= '0' && *c <= '9')
            digit[n++] = *c;
    *exponent = (int)strtol(c + 1, NULL, 10);
    while (n > 1 && digit[n - 1] == '0')
        n--;
    return n;
}

static void num_put_zeros(text *s, int n)
{
    while (n-- > 0)
        text_putc(s, '0');
}

/* 123.45 with the point after digit number `point` */
static void num_put_fixed(text *s, const char *digit, int n, int point)
{
    int whole = point < 0 ? 0 : point < n ? point : n;
    if (whole == 0)
        text_putc(s, '0');
    text_putn(s, digit, (size_t)whole);
    num_put_zeros(s, point - n);
    if (whole == n)
        return;
    text_putc(s, '.');
    num_put_zeros(s, -point);
    text_putn(s, digit + whole, (size_t)(n - whole));
}

void text_num(text *s, double x)
{
    char digit[20];
    int e;
    arena_tick(s->a, TICKS_NUM);
    if (isnan(x)) {
        text_puts(s, "nan");
        return;
    }
    if (signbit(x))
        text_putc(s, '-');
    if (isinf(x)) {
        text_puts(s, "inf");
        return;
    }
    if (fabs(x) <= 1e15 && x == floor(x)) {
        text_printf(s, "%lld", (long long)fabs(x));
        return;
    }
    int n = num_digits(x, digit, &e);
    if (e >= -4 && e <= 15) {
        num_put_fixed(s, digit, n, e + 1);
        return;
    }
    num_put_fixed(s, digit, n, 1);
    text_printf(s, "e%d", e);
}

void text_json_num(text *s, double x)
{
    if (!isfinite(x))
        text_putc(s, '"');
    text_num(s, x);
    if (!isfinite(x))
        text_putc(s, '"');
}

size_t utf8_next(const char *p, size_t n, uint32_t *cp)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    if (!n)
        return 0;
    unsigned char c = (unsigned char)*p;
    size_t len = c < 0x80 ? 1 : c < 0xC0 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF8 ? 4 : 0;
    if (!len || len > n)
        return 0;
    uint32_t u = len == 1 ? c : c & (0xFFu >> (len + 1));
    for (size_t k = 1; k < len; k++) {
        if (((unsigned char)p[k] & 0xC0) != 0x80)
            return 0;
        u = u << 6 | ((unsigned char)p[k] & 0x3F);
    }
    /* neither longer than needed, nor a surrogate, nor past the end */
    if (u < least[len] || (u >= 0xD800 && u < 0xE000) || u > 0x10FFFF)
        return 0;
    if (cp)
        *cp = u;
    return len;
}

static void json_escape(text *s, unsigned char c)
{
    static const char from[] = "\"\\\n\t\r\b\f", to[] = "\"\\ntrbf";
    const char *at = c ? strchr(from, c) : NULL;
    if (at)
        text_printf(s, "\\%c", to[at - from]);
    else
        text_printf(s, "\\u%04x", c);
}

void text_json_str(text *s, const char *p, size_t n)
{
    text_putc(s, '"');
    for (size_t k = 0; k < n;) {
        unsigned char c = (unsigned char)p[k];
        size_t len = utf8_next(p + k, n - k, NULL);
        if (c < 0x20 || c == '"' || c == '\\' || c == 0x7F)
            json_escape(s, c);
        else if (len)
            text_putn(s, p + k, len);
        else
            text_puts(s, "\xEF\xBF\xBD"); /* not UTF-8: the replacement character */
        k += len ? len : 1;
    }
    text_putc(s, '"');
}

/* ---- hashing: open addressing, at most half full ---- */

/* the finaliser of splitmix64 */
uint64_t hash64(uint64_t h, uint64_t x)
{
    h = (h ^ x) + UINT64_C(0x9E3779B97F4A7C15);
    h = (h ^ h >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    h = (h ^ h >> 27) * UINT64_C(0x94D049BB133111EB);
    return h ^ h >> 31;
}

uint64_t hash_bytes(const void *p, size_t n, uint64_t h)
{
    const char *c = p;
    h = hash64(h, n);
    for (size_t k = 0; k < n; k += 8) {
        uint64_t word = 0;
        memcpy(&word, c + k, n - k < 8 ? n - k : 8);
        h = hash64(h, word);
    }
    return h;
}

typedef struct {
    const char *name;
    size_t len;
    uint64_t hash;
} symrow;

/* cap is a power of two */
struct symtab {
    arena *a;
    symrow *row;
    size_t n, cap;
};

symtab *symtab_new(arena *a)
{
    symtab *t = arena_make(a, symtab);
    *t = (symtab){ .a = a, .cap = 64, .row = arena_array(a, symrow, 64) };
    return t;
}

static symrow *symtab_slot(const symtab *t, const char *p, size_t n, uint64_t hash)
{
    size_t k = hash & (t->cap - 1);
    for (; t->row[k].name; k = (k + 1) & (t->cap - 1)) {
        const symrow *r = &t->row[k];
        if (r->hash == hash && r->len == n && (!n || !memcmp(r->name, p, n)))
            break;
    }
    return &t->row[k];
}

static void symtab_double(symtab *t)
{
    symtab old = *t;
    t->row = arena_array(t->a, symrow, old.cap * 2);
    t->cap = old.cap * 2;
    for (size_t k = 0; k < old.cap; k++) {
        const symrow *r = &old.row[k];
        if (r->name)
            *symtab_slot(t, r->name, r->len, r->hash) = *r;
    }
}

sym sym_of(symtab *t, const char *p, size_t n)
{
    uint64_t hash = hash_bytes(p, n, 0);
    symrow *r = symtab_slot(t, p, n, hash);
    if (r->name)
        return r->name;
    if (2 * (t->n + 1) > t->cap) {
        symtab_double(t);
        r = symtab_slot(t, p, n, hash);
    }
    const char *name = arena_strndup(t->a, p, n);
    *r = (symrow){ name, n, hash };
    t->n++;
    return name;
}

sym sym_str(symtab *t, const char *s)
{
    return sym_of(t, s, strlen(s));
}

#define EMPTY UINT64_MAX

static size_t map64_slot(const map64 *m, uint64_t key)
{
    size_t k = hash64(0, key) & (m->cap - 1);
    while (m->key[k] != EMPTY && m->key[k] != key)
        k = (k + 1) & (m->cap - 1);
    return k;
}

uint64_t *map64_get(const map64 *m, uint64_t key)
{
    if (!m->n || key == EMPTY)
        return NULL;
    size_t k = map64_slot(m, key);
    return m->key[k] == key ? &m->val[k] : NULL;
}

static void map64_double(map64 *m)
{
    map64 old = *m;
    size_t cap = old.cap ? times(m->a, old.cap, 2) : 16;
    uint64_t *key = arena_array(m->a, uint64_t, cap), *val = arena_array(m->a, uint64_t, cap);
    memset(key, 0xFF, cap * sizeof *key);
    m->key = key;
    m->val = val;
    m->cap = cap;
    for (size_t k = 0; k < old.cap; k++) {
        if (old.key[k] == EMPTY)
            continue;
        size_t to = map64_slot(m, old.key[k]);
        key[to] = old.key[k];
        val[to] = old.val[k];
    }
}

uint64_t *map64_put(map64 *m, uint64_t key)
{
    uint64_t *found = map64_get(m, key);
    if (found)
        return found;
    if (2 * (m->n + 1) > m->cap)
        map64_double(m);
    size_t k = map64_slot(m, key);
    m->key[k] = key;
    m->n++;
    return &m->val[k];
}
