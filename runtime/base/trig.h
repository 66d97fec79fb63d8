/* trig: sine and cosine such that loops over them vectorise and all machines give the same bits.
   Method: fdlibm's.  x = n*pi/2 + hi + lo with pi/2 in three parts, of which the first two times n are exact
   for |n| < 2^20; then its polynomials on |hi| <= pi/4.  Measured error below 0.8 units in the last place
   (test_tape.c); from |x| = TRIG_FAR on, the C library's. */
#ifndef CDL_TRIG_H
#define CDL_TRIG_H
#include <math.h>
#include <stdint.h>
#include <string.h>

#define TRIG_FAR 1e5

/* sin hi + lo, cos hi + lo for |hi| <= pi/4. */
static inline double trig_sin_poly(double hi, double lo)
{
    double z = hi * hi, v = z * hi;
    double r = 8.33333333332248946124e-03 +
               z * (-1.98412698298579493134e-04 + z * 2.75573137070700676789e-06) +
               z * (z * z) * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10);
    return hi - ((z * (0.5 * lo - v * r) - lo) - v * -1.66666666666666324348e-01);
}

static inline double trig_cos_poly(double hi, double lo)
{
    double z = hi * hi, w = z * z, h = 0.5 * z, v = 1 - h;
    double r = z * (4.16666666666666019037e-02 +
                    z * (-1.38888888888741095749e-03 + z * 2.48015872894767294178e-05)) +
               w * w *
                   (-2.75573143513906633035e-07 +
                    z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11));
    return v + (((1 - v) - h) + (z * r - hi * lo));
}

static inline uint64_t trig_bits(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
static inline double trig_of(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* The sine of quarter turn q: s, c, -s, -c. */
static inline double trig_quarter(uint64_t q, double s, double c)
{
    uint64_t odd = 0 - (q & 1);
    return trig_of(((trig_bits(c) & odd) | (trig_bits(s) & ~odd)) ^ (q & 2) << 62);
}

/* x = n*pi/2 + hi + lo; quarter: n, up to a multiple of 4. */
typedef struct {
    uint64_t quarter;
    double hi, lo;
} trig_rest;
static inline trig_rest trig_reduce(double x)
{
    /* n to the nearest integer; its low bits are the last ones of m */
    double m = x * 6.36619772367581382433e-01 + 0x1.8p52, n = m - 0x1.8p52;
    double t = x - n * 1.57079632673412561417e+00, w = n * 6.07710050630396597660e-11, r = t - w;
    w = n * 2.02226624879595063154e-21 - ((t - r) - w);
    double hi = r - w;
    return (trig_rest){ trig_bits(m), hi, (r - hi) - w };
}

/* Both, for |x| < TRIG_FAR. */
static inline void trig_near(double x, double *sine, double *cosine)
{
    trig_rest a = trig_reduce(x);
    double s = trig_sin_poly(a.hi, a.lo), c = trig_cos_poly(a.hi, a.lo);
    *sine = trig_quarter(a.quarter, s, c);
    *cosine = trig_quarter(a.quarter + 1, s, c);
}

/* One of them: a branch costs less than the other polynomial. */
static inline double trig_one(double x, uint64_t more)
{
    trig_rest a = trig_reduce(x);
    uint64_t q = a.quarter + more;
    double y = q & 1 ? trig_cos_poly(a.hi, a.lo) : trig_sin_poly(a.hi, a.lo);
    return trig_of(trig_bits(y) ^ (q & 2) << 62);
}

static inline double trig_sin(double x)
{
    return fabs(x) < TRIG_FAR ? trig_one(x, 0) : sin(x);
}
static inline double trig_cos(double x)
{
    return fabs(x) < TRIG_FAR ? trig_one(x, 1) : cos(x);
}

static inline void trig_sincos(double x, double *sine, double *cosine)
{
    if (fabs(x) < TRIG_FAR) {
        trig_near(x, sine, cosine);
        return;
    }
    *sine = sin(x);
    *cosine = cos(x);
}
#endif
