/* random: numbers that are a function of where they are drawn.  Philox4x32-10 (Salmon et al. 2011): a
   bijection of a counter under a key, so that draws do not depend on order, threads or processes. */
#ifndef CDL_RANDOM_H
#define CDL_RANDOM_H
#include <stdint.h>

void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
/* What identifies a draw: the seed, the point of the experiment, the name that it is assigned to, and how
 * many were drawn for this name before. */
typedef struct draw_key {
    uint64_t seed, point, index;
    const char *name;
} draw_key;
double draw_uniform(const draw_key *k); /* in [0, 1), multiples of 2^-53 */
double draw_normal(const draw_key *k);  /* mean 0, variance 1 */
#endif
