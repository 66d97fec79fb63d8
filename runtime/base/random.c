/* random: numbers that are a function of where they are drawn. */
#include "random.h"
#include <math.h>
#include <string.h>
#include "arena.h"

void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c[4] = { counter[0], counter[1], counter[2], counter[3] }, k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53 * c[0], b = (uint64_t)0xCD9E8D57 * c[2];
        uint32_t next[4] = { (uint32_t)(b >> 32) ^ c[1] ^ k0, (uint32_t)b, (uint32_t)(a >> 32) ^ c[3] ^ k1,
                             (uint32_t)a };
        memcpy(c, next, sizeof c);
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    memcpy(out, c, sizeof c);
}

/* the counter holds point and index whole; seed and name are mixed into the key */
static void draw(const draw_key *k, uint64_t out[2])
{
    uint64_t mixed = hash_bytes(k->name, strlen(k->name), hash64(0x243F6A8885A308D3, k->seed));
    uint32_t key[2] = { (uint32_t)mixed, (uint32_t)(mixed >> 32) }, x[4];
    uint32_t counter[4] = { (uint32_t)k->index, (uint32_t)(k->index >> 32), (uint32_t)k->point,
                            (uint32_t)(k->point >> 32) };
    philox4x32(counter, key, x);
    out[0] = (uint64_t)x[1] << 32 | x[0];
    out[1] = (uint64_t)x[3] << 32 | x[2];
}

double draw_uniform(const draw_key *k)
{
    uint64_t x[2];
    draw(k, x);
    return (double)(x[0] >> 11) * 0x1p-53;
}

/* Box and Muller; the first of the two numbers is never 0 */
double draw_normal(const draw_key *k)
{
    uint64_t x[2];
    draw(k, x);
    double u = ((double)(x[0] >> 11) + 1) * 0x1p-53, v = (double)(x[1] >> 11) * 0x1p-53;
    return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}
