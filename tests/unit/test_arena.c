/* arena, text, names, maps: what they do without memory, with unusual numbers and with many names. */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/arena.h"

static void alignment_and_zero(void **state)
{
    (void)state;
    arena *a = arena_new(&allocator_libc, NULL);
    for (size_t n = 0; n < 200; n++) {
        unsigned char *p = arena_zalloc(a, n);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t k = 0; k < n; k++)
            assert_int_equal(p[k], 0);
        memset(p, 0xAA, n);
    }
    char *big = arena_alloc(a, 5 << 20);
    big[(5 << 20) - 1] = 1;
    assert_true(arena_size(a) >= (size_t)5 << 20);
    arena_free(a);
    arena_free(NULL);
}

static void grow_in_place(void **state)
{
    (void)state;
    arena *a = arena_new(&allocator_libc, NULL);
    char *p = arena_alloc(a, 10);
    memcpy(p, "123456789", 10);
    assert_ptr_equal(arena_grow(a, p, 10, 100), p);
    p[99] = 1;
    arena_alloc(a, 1);
    char *q = arena_grow(a, p, 100, 200); /* no longer the last one: copied */
    assert_ptr_not_equal(q, p);
    assert_string_equal(q, "123456789");
    assert_ptr_equal(arena_grow(a, q, 200, 50), q);
    assert_non_null(arena_grow(a, NULL, 0, 10));
    arena_free(a);
}

static void marks_give_back(void **state)
{
    (void)state;
    arena *a = arena_new(&allocator_libc, NULL);
    arena_pos empty = arena_mark(a);
    char *keep = arena_strdup(a, "keep");
    arena_pos mark = arena_mark(a);
    size_t held = 0;
    for (int turn = 0; turn < 50; turn++) {
        char *first = arena_alloc(a, 64);
        for (int k = 0; k < 100; k++)
            memset(arena_alloc(a, 1000), turn, 1000);
        if (turn == 0)
            held = arena_size(a);
        assert_int_equal(arena_size(a), held); /* no new memory after the first round */
        arena_release(a, mark);
        assert_ptr_equal(arena_alloc(a, 64), first);
        arena_release(a, mark);
        assert_string_equal(keep, "keep");
    }
    arena_release(a, empty);
    assert_ptr_not_equal(arena_strdup(a, "again"), NULL);
    arena_free(a);
}

/* An allocator that fails after `left` allocations, and counts those not freed. */
typedef struct {
    int left, live;
} limited;

static void *limited_grow(void *ud, void *p, size_t n)
{
    limited *l = ud;
    if (!n) {
        l->live -= p != NULL;
        free(p);
        return NULL;
    }
    if (l->left-- <= 0)
        return NULL;
    l->live++;
    return realloc(p, n);
}

static int fill(const allocator *al)
{
    jmp_buf oom;
    arena *a = arena_new(al, &oom);
    if (!a)
        return -1;
    int jumped = setjmp(oom);
    if (!jumped) {
        symtab *t = symtab_new(a);
        map64 m = { .a = a };
        text s = { .a = a };
        for (uint64_t k = 0; k < 2000; k++) {
            char name[32];
            snprintf(name, sizeof name, "name%d", (int)k);
            *map64_put(&m, sym_key(sym_str(t, name))) = k;
            text_num(&s, (double)k);
        }
    }
    arena_free(a);
    return jumped;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    int end = 2, turns = 0;
    for (; end != 0 && turns < 100; turns++) {
        limited l = { turns, 0 };
        end = fill(&(allocator){ limited_grow, &l, NULL });
        assert_int_equal(l.live, 0);
        if (turns == 0)
            assert_int_equal(end, -1);
        if (turns == 1)
            assert_int_equal(end, 1);
    }
    assert_int_equal(end, 0);
    assert_true(turns > 3);
}

static void sizes_do_not_wrap(void **state)
{
    (void)state;
    jmp_buf oom;
    arena *a = arena_new(&allocator_libc, NULL);
    assert_null(arena_on_oom(a, &oom));
    volatile int caught = 0;
    if (!setjmp(oom))
        arena_array_(a, SIZE_MAX / 2, 4);
    else
        caught++;
    if (!setjmp(oom))
        arena_alloc(a, SIZE_MAX);
    else
        caught++;
    if (!setjmp(oom))
        arena_alloc(a, SIZE_MAX - 15);
    else
        caught++;
    if (!setjmp(oom))
        arena_strndup(a, "", SIZE_MAX);
    else
        caught++;
    vec(int) v = { 0 };
    if (!setjmp(oom))
        vec_reserve(a, &v, SIZE_MAX / 2);
    else
        caught++;
    assert_int_equal(caught, 5);
    assert_ptr_equal(arena_on_oom(a, NULL), &oom);
    arena_free(a);
}

static void vectors_grow(void **state)
{
    (void)state;
    arena *a = arena_new(&allocator_libc, NULL);
    vec(int) v = { 0 };
    vec(double) w = { 0 };
    for (int k = 0; k < 10000; k++) {
        *vec_push(a, &v) = k;
        *vec_push(a, &w) = k / 2.0;
    }
    assert_int_equal(v.n, 10000);
    for (int k = 0; k < 10000; k++) {
        assert_int_equal(v.at[k], k);
        assert_true(w.at[k] == k / 2.0);
    }
    arena_free(a);
}

static char *num(arena *a, double x)
{
    text s = { .a = a };
    text_num(&s, x);
    return s.at;
}

static void numbers_known(void **state)
{
    (void)state;
    static const struct {
        double x;
        const char *out;
    } row[] = { { 0, "0" },
                { -0.0, "-0" },
                { 1, "1" },
                { -1, "-1" },
                { 0.1, "0.1" },
                { 9.81, "9.81" },
                { 1.0 / 3, "0.3333333333333333" },
                { 0.1 + 0.2, "0.30000000000000004" },
                { 1e15, "1000000000000000" },
                { -999999999999999, "-999999999999999" },
                { 123456.75, "123456.75" },
                { 1e16, "1e16" },
                { 1e22, "1e22" },
                { 1e-4, "0.0001" },
                { 1e-5, "1e-5" },
                { 1.5e-7, "1.5e-7" },
                { -2.5e-10, "-2.5e-10" },
                { 6.02214076e23, "6.02214076e23" },
                { 5e-324, "5e-324" },
                { 9007199254740993.0, "9007199254740992" },
                { 1.7976931348623157e308, "1.7976931348623157e308" },
                { 2.2250738585072014e-308, "2.2250738585072014e-308" },
                { INFINITY, "inf" },
                { -INFINITY, "-inf" },
                { NAN, "nan" },
                { 0.001, "0.001" },
                { 100.5, "100.5" } };
    arena *a = arena_new(&allocator_libc, NULL);
    for (size_t k = 0; k < sizeof row / sizeof *row; k++)
        assert_string_equal(num(a, row[k].x), row[k].out);
    arena_free(a);
}

static void numbers_read_back(void **state)
{
    (void)state;
    arena *a = arena_new(&allocator_libc, NULL);
    arena_pos mark = arena_mark(a);
    uint64_t bits = 1;
    for (int k = 0; k < 20000; k++) {
        double x;
        bits = hash64(bits, (uint64_t)k);
        memcpy(&x, &bits, sizeof x);
        if (k % 2)
            x = (double)(int64_t)bits / 1e13; /* numbers of ordinary size */
        if (isnan(x))
            continue;
        assert_true(strtod(num(a, x), NULL) == x);
        arena_release(a, mark);
    }
    arena_free(a);
}

static void numbers_in_another_locale(void **state)
{
    (void)state;
    const char *const comma[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "ps_AF.UTF-8", "C.UTF-8" };
    arena *a = arena_new(&allocator_libc, NULL);
    for (size_t k = 0; k < 4; k++) {
        if (!setlocale(LC_ALL, comma[k]))
            continue;
        assert_string_equal(num(a, 1234.5625), "1234.5625");
        assert_string_equal(num(a, 1.25e-9), "1.25e-9");
    }
    setlocale(LC_ALL, "C");
    arena_free(a);
}

static void json(void **state)
{
    (void)state;
    arena *a = arena_new(&allocator_libc, NULL);
    text s = { .a = a };
    text_json_str(&s,
                  "a\"\\\n\t\x01\0é\xFF"
                  "z",
                  11);
    assert_string_equal(s.at, "\"a\\\"\\\\\\n\\t\\u0001\\u0000é\xEF\xBF\xBDz\"");
    text n = { .a = a };
    text_json_num(&n, INFINITY);
    text_putc(&n, ' ');
    text_json_num(&n, NAN);
    text_putc(&n, ' ');
    text_json_num(&n, 0.5);
    assert_string_equal(n.at, "\"inf\" \"nan\" 0.5");
    text e = { .a = a };
    text_json_str(&e, NULL, 0);
    assert_string_equal(e.at, "\"\"");
    arena_free(a);
}

static void text_grows(void **state)
{
    (void)state;
    arena *a = arena_new(&allocator_libc, NULL);
    text s = { .a = a };
    for (int k = 0; k < 1000; k++)
        text_printf(&s, "%d,", k % 10);
    text_printf(&s, "%s", "");
    assert_int_equal(s.n, 2000);
    assert_int_equal(strlen(s.at), 2000);
    assert_memory_equal(s.at + 1996, "8,9,", 5);
    assert_string_equal(arena_printf(a, "%s-%03d", "x", 7), "x-007");
    assert_string_equal(arena_strndup(a, "abcdef", 3), "abc");
    arena_free(a);
}

static void utf8(void **state)
{
    (void)state;
    uint32_t cp;
    assert_int_equal(utf8_next("a", 1, &cp), 1);
    assert_int_equal(cp, 'a');
    assert_int_equal(utf8_next("µ", 2, &cp), 2);
    assert_int_equal(cp, 0xB5);
    assert_int_equal(utf8_next("′", 3, &cp), 3);
    assert_int_equal(cp, 0x2032);
    assert_int_equal(utf8_next("😀", 4, &cp), 4);
    assert_int_equal(cp, 0x1F600);
    static const char *const bad[] = { "\x80",
                                       "\xC0\x80",
                                       "\xC1\xBF",
                                       "\xE0\x80\x80",
                                       "\xED\xA0\x80",
                                       "\xF4\x90\x80\x80",
                                       "\xF8\x88\x80\x80\x80",
                                       "\xFF",
                                       "\xC3(",
                                       "\xE2\x82" };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        assert_int_equal(utf8_next(bad[k], strlen(bad[k]), NULL), 0);
    assert_int_equal(utf8_next("µ", 1, NULL), 0);
    assert_int_equal(utf8_next("", 0, NULL), 0);
}

static void names_are_interned(void **state)
{
    (void)state;
    arena *a = arena_new(&allocator_libc, NULL);
    symtab *t = symtab_new(a);
    sym first[3000];
    for (int k = 0; k < 3000; k++)
        first[k] = sym_str(t, arena_printf(a, "n%d", k));
    for (int k = 0; k < 3000; k++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", k);
        assert_ptr_equal(sym_str(t, name), first[k]);
        assert_string_equal(first[k], name);
    }
    assert_ptr_equal(sym_of(t, "n12xyz", 3), first[12]);
    assert_ptr_equal(sym_of(t, NULL, 0), sym_str(t, ""));
    assert_ptr_not_equal(sym_of(t, "a\0b", 3), sym_of(t, "a", 1));
    arena_free(a);
}

static void maps(void **state)
{
    (void)state;
    arena *a = arena_new(&allocator_libc, NULL);
    map64 m = { .a = a };
    assert_null(map64_get(&m, 0));
    for (uint64_t k = 0; k < 5000; k++) {
        uint64_t *v = map64_put(&m, k * k);
        assert_int_equal(*v, 0);
        *v = k + 1;
    }
    assert_int_equal(m.n, 5000);
    for (uint64_t k = 0; k < 5000; k++)
        assert_int_equal(*map64_get(&m, k * k), k + 1);
    assert_null(map64_get(&m, 2));
    assert_null(map64_get(&m, UINT64_MAX));
    *map64_put(&m, 49) = 7;
    assert_int_equal(*map64_get(&m, 49), 7);
    assert_int_equal(m.n, 5000);
    arena_free(a);
}

static void hashes_differ(void **state)
{
    (void)state;
    assert_int_equal(hash_bytes("abcdefghij", 10, 0), hash_bytes("abcdefghij", 10, 0));
    assert_int_not_equal(hash_bytes("abcdefghij", 10, 0), hash_bytes("abcdefghik", 10, 0));
    assert_int_not_equal(hash_bytes("a\0", 2, 0), hash_bytes("a", 1, 0));
    assert_int_not_equal(hash64(hash64(0, 1), 2), hash64(hash64(0, 2), 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(alignment_and_zero),
                                        cmocka_unit_test(grow_in_place),
                                        cmocka_unit_test(marks_give_back),
                                        cmocka_unit_test(every_allocation_may_fail),
                                        cmocka_unit_test(sizes_do_not_wrap),
                                        cmocka_unit_test(vectors_grow),
                                        cmocka_unit_test(numbers_known),
                                        cmocka_unit_test(numbers_read_back),
                                        cmocka_unit_test(numbers_in_another_locale),
                                        cmocka_unit_test(json),
                                        cmocka_unit_test(text_grows),
                                        cmocka_unit_test(utf8),
                                        cmocka_unit_test(names_are_interned),
                                        cmocka_unit_test(maps),
                                        cmocka_unit_test(hashes_differ) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
