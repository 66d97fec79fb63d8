/* balls: contacts of balls in space, packed: the data that sweeps read and write are contiguous. */
#ifndef CDL_BALLS_H
#define CDL_BALLS_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/tolerances.h"

/* Numbers are read four at a time. A moving ball: */
typedef struct ball {
    double v[3], light; /* velocity of the centre; 1/m */
    double s[3], spun;  /* R times the angular velocity; R^2 divided by the moment of inertia */
} ball;

typedef struct touch {
    double n[3], none;     /* normal, from j to i; 0 */
    double bt[3], mu;      /* offset of the slip, a vector across n; coefficient of friction */
    double bn;             /* offset of the rate of the gap */
    double over_n, over_t; /* 1 over the entries of W */
    int32_t i, j;          /* balls; the ground is one of them, with inverse masses of 0 */
} touch;

typedef struct reaction {
    double t[3], n;
} reaction;

/* Contacts that are solved together. */
typedef struct heap {
    int n, from, nball; /* their balls are ball[from .. from + nball) */
    ball *ball;
    touch *touch;
    reaction *r; /* impulses */
    int worst;   /* contact with the largest change in the last passes; unchanged if there was no change */
    int sweeps;
    int64_t swept; /* contacts visited */
    arena *scratch;
} heap;

/* At most `most` sweeps up and down, with conjugate directions or plain; rates include the impulses. Returns
   the last change relative to the largest impulse. */
double heap_solve(heap *x, int most, bool plain, double tol);

static inline double dot3(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static inline void cross3(const double *a, const double *b, double *c)
{
    c[0] = a[1] * b[2] - a[2] * b[1];
    c[1] = a[2] * b[0] - a[0] * b[2];
    c[2] = a[0] * b[1] - a[1] * b[0];
}

/* a[0..3) = by * b[0..3), up to rounding relative to `size`. */
static inline bool same3(const double *a, double by, const double *b, double size)
{
    for (int k = 0; k < 3; k++)
        if (!(fabs(a[k] - by * b[k]) <= FACTOR_SAME * size))
            return false;
    return true;
}
#endif
