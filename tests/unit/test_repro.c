/* Hashes and counter-based random numbers compared with published vectors. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "base/random.h"
#include "base/sha256.h"

static void sha256_vectors(void **state)
{
    static const struct {
        const char *text, *hex;
    } of[] = {
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
        { "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmn"
          "opqrstnopqrstu",
          "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
    };
    char hex[65];
    (void)state;
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        sha256_of(of[k].text, strlen(of[k].text), hex);
        assert_string_equal(hex, of[k].hex);
    }
}

static void sha256_million(void **state)
{
    static char a[1000];
    char hex[65];
    sha256 s;
    (void)state;
    memset(a, 'a', sizeof a);
    sha256_start(&s);
    for (int k = 0; k < 1000; k++)
        sha256_put(&s, a, sizeof a);
    sha256_end(&s, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* from the kat_vectors file of Random123 */
static void philox_vectors(void **state)
{
    static const struct {
        uint32_t c[4], k[2], x[4];
    } of[] = {
        { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
          { 0xffffffff, 0xffffffff },
          { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
          { 0xa4093822, 0x299f31d0 },
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    uint32_t x[4];
    (void)state;
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        philox4x32(of[k].c, of[k].k, x);
        assert_memory_equal(x, of[k].x, sizeof x);
    }
}

static void draws_have_their_moments(void **state)
{
    enum { N = 20000 };
    double m = 0, nm = 0, nv = 0;
    (void)state;
    for (uint64_t k = 0; k < N; k++) {
        draw_key key = { .seed = 1, .point = k % 100, .index = k / 100, .name = "x" };
        double u = draw_uniform(&key), z = draw_normal(&key);
        assert_true(u >= 0 && u < 1 && isfinite(z));
        m += u / N;
        nm += z / N;
        nv += z * z / N;
    }
    assert_true(fabs(m - 0.5) < 0.01 && fabs(nm) < 0.03 && fabs(nv - 1) < 0.04);
}

static void every_part_of_the_key_counts(void **state)
{
    draw_key a = { .seed = 1, .point = 2, .index = 3, .name = "x" }, b[4] = { a, a, a, a };
    (void)state;
    b[0].seed = 2;
    b[1].point = 3;
    b[2].index = 4;
    b[3].name = "y";
    for (int k = 0; k < 4; k++)
        assert_true(draw_uniform(&a) != draw_uniform(&b[k]));
    assert_true(draw_uniform(&a) == draw_uniform(&a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_vectors),
        cmocka_unit_test(sha256_million),
        cmocka_unit_test(philox_vectors),
        cmocka_unit_test(draws_have_their_moments),
        cmocka_unit_test(every_part_of_the_key_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
