/* four: four numbers at a time, in plain C for every machine and in wide registers where a function is
   compiled for them.  Nothing is fused, so values are the same. */
#ifndef CDL_FOUR_H
#define CDL_FOUR_H
#include <stdint.h>

/* They may lie anywhere. */
typedef double four __attribute__((vector_size(32), aligned(8), may_alias));
typedef int64_t four_bits __attribute__((vector_size(32), aligned(8), may_alias));
#define INLINE static inline __attribute__((always_inline))

INLINE four *four_at(double *x)
{
    return (four *)x;
}

/* For a second copy of a function, whether this machine can run it. */
#if defined __x86_64__ && defined __GNUC__
#define FOUR_FAST      __attribute__((target("avx2")))
#define FOUR_FAST_HERE __builtin_cpu_supports("avx2")
#else
#define FOUR_FAST
#define FOUR_FAST_HERE 0
#endif
#endif
