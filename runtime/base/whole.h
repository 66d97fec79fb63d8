/* whole: checked conversion of a number to a count. In C, casting a number that does not fit is undefined,
   so every conversion uses these functions. */
#ifndef CDL_WHOLE_H
#define CDL_WHOLE_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define WHOLE_MAX 9007199254740992.0 /* 2^53: beyond it doubles no longer count one by one */

/* x as a whole number between lo and hi; false when it is none, nan included */
static inline bool whole_number(double x, double lo, double hi, int64_t *out)
{
    if (!(x == floor(x) && x >= fmax(lo, -WHOLE_MAX) && x <= fmin(hi, WHOLE_MAX)))
        return false;
    *out = (int64_t)x;
    return true;
}

/* x rounded towards zero and brought between lo and hi; nan is lo */
static inline int64_t whole_clamp(double x, int64_t lo, int64_t hi)
{
    if (!(x > (double)lo))
        return lo;
    return x >= fmin((double)hi, WHOLE_MAX) ? hi : (int64_t)x;
}
#endif
