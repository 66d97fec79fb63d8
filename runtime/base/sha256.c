/* sha256: the hash of FIPS 180-4, as hexadecimal text. */
#include "sha256.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn(uint32_t x, int k)
{
    return x >> k | x << (32 - k);
}

static void block(sha256 *s, const uint8_t *p)
{
    uint32_t w[64], a[8];
    for (int k = 0; k < 16; k++, p += 4)
        w[k] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    for (int k = 16; k < 64; k++) {
        uint32_t x = w[k - 15], y = w[k - 2];
        w[k] = w[k - 16] + (turn(x, 7) ^ turn(x, 18) ^ x >> 3) + w[k - 7] +
               (turn(y, 17) ^ turn(y, 19) ^ y >> 10);
    }
    memcpy(a, s->h, sizeof a);
    for (int k = 0; k < 64; k++) {
        uint32_t e = a[4], b = a[0];
        uint32_t t1 = a[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & a[5]) ^ (~e & a[6])) + K[k] +
                      w[k];
        uint32_t t2 = (turn(b, 2) ^ turn(b, 13) ^ turn(b, 22)) + ((b & a[1]) ^ (b & a[2]) ^ (a[1] & a[2]));
        memmove(a + 1, a, 7 * sizeof *a);
        a[4] += t1;
        a[0] = t1 + t2;
    }
    for (int k = 0; k < 8; k++)
        s->h[k] += a[k];
}

void sha256_start(sha256 *s)
{
    static const uint32_t h[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
    memcpy(s->h, h, sizeof h);
    s->n = 0;
}

void sha256_put(sha256 *s, const void *from, size_t n)
{
    const uint8_t *p = from;
    for (size_t used = s->n % 64; n; used = s->n % 64) {
        size_t k = 64 - used < n ? 64 - used : n;
        memcpy(s->buf + used, p, k);
        s->n += k;
        p += k;
        n -= k;
        if (s->n % 64 == 0)
            block(s, s->buf);
    }
}

void sha256_end(sha256 *s, char hex[65])
{
    static const uint8_t pad[64] = { 0x80 };
    uint64_t bits = s->n * 8;
    uint8_t len[8];
    for (int k = 0; k < 8; k++)
        len[k] = (uint8_t)(bits >> (56 - 8 * k));
    sha256_put(s, pad, 1 + (119 - s->n % 64) % 64);
    sha256_put(s, len, 8);
    for (int k = 0; k < 64; k++)
        hex[k] = "0123456789abcdef"[s->h[k / 8] >> (28 - 4 * (k % 8)) & 15];
    hex[64] = 0;
}

void sha256_of(const void *p, size_t n, char hex[65])
{
    sha256 s;
    sha256_start(&s);
    sha256_put(&s, p, n);
    sha256_end(&s, hex);
}

int sha256_fd(int fd, char hex[65], int (*stop)(void *ud), void *ud)
{
    char buf[1 << 16];
    sha256 s;
    int error = 0;
    sha256_start(&s);
    for (;;) {
        if (stop && stop(ud)) {
            error = EINTR;
            break;
        }
        ssize_t n = read(fd, buf, sizeof buf);
        if (n > 0) {
            sha256_put(&s, buf, (size_t)n);
            continue;
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            error = errno;
        break;
    }
    sha256_end(&s, hex);
    return error;
}
