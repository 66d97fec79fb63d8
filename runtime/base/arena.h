/* arena: the only caller of malloc.  Memory is taken in blocks and given back all at once, or down to a
   mark.  If no memory is left, an arena jumps to the handler of its owner (an API entry), so the code in
   between never sees NULL. */
#ifndef CDL_ARENA_H
#define CDL_ARENA_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Same meaning as in cdl.h: grow(ud, p, n) is realloc, n == 0 frees.  budget (may be NULL): counts the
   memory of its arenas. */
typedef struct allocator {
    void *(*grow)(void *ud, void *p, size_t n);
    void *ud;
    struct budget *budget;
} allocator;

extern const allocator allocator_libc; /* realloc and free */

typedef struct arena arena;
typedef struct {
    void *block;
    size_t used;
} arena_pos;

/* NULL when out of memory.  `oom` (may be NULL: then abort) is where failures jump to, with value 1; owned by
 * the caller. */
arena *arena_new(const allocator *al, jmp_buf *oom);
void arena_free(arena *a);                     /* NULL is fine */
jmp_buf *arena_on_oom(arena *a, jmp_buf *oom); /* sets the handler, returns the old one */
const allocator *arena_allocator(const arena *a);
size_t arena_size(const arena *a); /* bytes held */
struct budget *arena_budget(const arena *a);
/* Counts work, a nanosecond each, and jumps to the handler when the budget is spent or an interrupt came: for
   loops that allocate nothing.  Allocating counts by itself. */
void arena_tick(arena *a, int64_t work);
void arena_trim(arena *a); /* frees the blocks that were kept for reuse */

void *arena_alloc(arena *a, size_t n); /* 16-aligned, not cleared */
void *arena_zalloc(arena *a, size_t n);
void *arena_array_(arena *a, size_t n, size_t size); /* n*size checked for overflow, cleared */
#define arena_array(a, type, n) ((type *)arena_array_((a), (size_t)(n), sizeof(type)))
#define arena_make(a, type)     ((type *)arena_zalloc((a), sizeof(type)))
/* Grows p from `old` to `n` bytes, in place when p is the last thing allocated. */
void *arena_grow(arena *a, void *p, size_t old, size_t n);
char *arena_strdup(arena *a, const char *s);
char *arena_strndup(arena *a, const char *s, size_t n);
char *arena_printf(arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(arena *a, const char *fmt, va_list ap);

arena_pos arena_mark(arena *a);
void arena_release(arena *a, arena_pos mark);

/* A growing array in an arena:  vec(int) v = {0};  *vec_push(a, &v) = 3;  v.at[i], v.n */
#define vec(type)      \
    struct {           \
        type *at;      \
        size_t n, cap; \
    }
#define vec_push(a, v) \
    (vec_room_((a), (void **)&(v)->at, (v)->n + 1, &(v)->cap, sizeof *(v)->at), &(v)->at[(v)->n++])
#define vec_reserve(a, v, k) vec_room_((a), (void **)&(v)->at, (k), &(v)->cap, sizeof *(v)->at)
void vec_room_(arena *a, void **at, size_t need, size_t *cap, size_t size);

/* Growing text in an arena, always NUL-terminated once touched. */
typedef struct {
    arena *a;
    char *at;
    size_t n, cap;
} text;
void text_putc(text *s, char c);
void text_puts(text *s, const char *p);
void text_putn(text *s, const char *p, size_t n);
void text_printf(text *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_vprintf(text *s, const char *fmt, va_list ap);
void text_num(text *s, double x); /* shortest decimal that reads back exactly; inf, -inf, nan */
void text_json_str(text *s, const char *p, size_t n); /* quoted and escaped */
void text_json_num(text *s, double x);                /* as text_num, non-finite numbers as strings */

/* Bytes of the code point at p, of which n are left; 0 when they are no UTF-8 (or n is 0).  cp may be NULL.
 */
size_t utf8_next(const char *p, size_t n, uint32_t *cp);

/* Interned names: equal names are the same pointer. */
typedef const char *sym;
typedef struct symtab symtab;
symtab *symtab_new(arena *a);
sym sym_of(symtab *t, const char *p, size_t n);
sym sym_str(symtab *t, const char *s);

/* A hash map from 64-bit keys (interned pointers count as such) to pointers or integers. */
typedef struct {
    arena *a;
    uint64_t *key;
    uint64_t *val;
    size_t n, cap;
} map64;
uint64_t *map64_get(const map64 *m, uint64_t key); /* NULL when absent */
uint64_t *map64_put(map64 *m, uint64_t key);       /* existing or new (0) slot; key UINT64_MAX is reserved */
#define sym_key(s) ((uint64_t)(uintptr_t)(s))
uint64_t hash64(uint64_t h, uint64_t x); /* mixes x into h */
uint64_t hash_bytes(const void *p, size_t n, uint64_t h);
#endif
