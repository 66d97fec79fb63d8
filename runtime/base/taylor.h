/* taylor: kernels over truncated power series in time.  Coefficients come order by order, so that a
   differential equation is solved while its right side is computed: coefficient j of every register needs
   those of its inputs up to j and no more.  Piecewise operations follow the piece they are on to the right of
   the point of expansion and keep the function that would take them off it. */
#ifndef CDL_TAYLOR_H
#define CDL_TAYLOR_H
#include "program/program.h"

/* ---- series as plain arrays: coefficient j of a result from coefficients 0..j ---- */
static inline double series_mul(const double *a, const double *b, int j)
{
    double s = 0;
    for (int i = 0; i <= j; i++)
        s += a[i] * b[j - i];
    return s;
}
/* the same without the term a[0] b[j]: what is known before b[j] is */
static inline double series_mul_rest(const double *a, const double *b, int j)
{
    double s = 0;
    for (int i = 1; i <= j; i++)
        s += a[i] * b[j - i];
    return s;
}
/* r = a / b; r[0..j) known */
static inline double series_div(const double *a, const double *b, const double *r, int j)
{
    return (a[j] - series_mul_rest(b, r, j)) / b[0];
}
double series_pow(const double *a, double p, const double *r, int j); /* r = a^p */
double series_value(const double *c, int order, double s);            /* sum c[j] s^j */
double series_rate(const double *c, int order, double s);             /* its derivative */
/* A sum of two doubles that do not overlap: sums over thousands of events are kept with twice the
   precision. */
typedef struct {
    double hi, lo;
} twofold;
twofold twofold_sum(twofold a, twofold b);
twofold twofold_product(twofold a, twofold b);
/* sum c[j] s^j, with what c[0] and c[1] lack */
twofold series_twofold(const double *c, int order, double low0, double low1, twofold s);
/* Where a series that starts non-negative becomes negative, in (0, h]; INFINITY: nowhere, 0: immediately.
   Values below `zero` count as 0 (series_root.c). */
double series_crossing(const double *c, int order, double h, double zero);
/* the first coefficient that counts: its sign, 0 when none does */
int series_sign(const double *c, int from, int order, double h, double zero);
void series_shift(const double *c, int order, double s, double *out, int n); /* coefficients 0..n about s */

/* ---- kernels ---- */
/* A place where a piece is chosen.  The piece is `branch`: the sign of f (comparisons, abs, sign, min, max),
   or the integer that floor, ceil and mod stay at.  f as a series: site_function. */
typedef struct site {
    uint32_t code;         /* its instruction */
    double branch, before; /* before: what it was in the piece that ended here */
    double met;            /* f where a condition was judged, before the resets */
    bool near;             /* f is 0 at the point of expansion, or was set to 0 by the code that located it */
} site;

typedef struct taylor {
    const kernel *k;
    int32_t index[MAX_INDEX];
    int width; /* coefficients of a register */
    /* nmoving: the first ones of `moving` are the instructions that are not constant */
    uint32_t nin, nreg, ncode, nmoving;
    instr *code;
    uint32_t *aux, *moving, *out;
    bool *still, *live; /* of each register: constant; read by an output on the pieces chosen */
    double *c;          /* [nreg*width] */
    site *site;
    uint32_t nsite;
} taylor;

/* Where inputs come from: series side by side, `width` apart; parameters are numbers. */
typedef struct series_inputs {
    double t, unit; /* point of expansion; coefficients are those of powers of time by this unit */
    const double *param;
    const double *from[IN_KINDS]; /* IN_Q, IN_V, IN_PRE, IN_PAST_Q … */
    const double *base;           /* IN_BASE: numbers too */
    const double *speed;          /* IN_SPEED */
} series_inputs;

bool taylor_chooses(uint32_t op); /* an operation of a tape that has pieces */
bool kernel_has_pieces(const kernel *k);
taylor *taylor_new(arena *a, const kernel *k, const int32_t *index, int width);
static inline double *taylor_reg(const taylor *t, uint32_t r)
{
    return t->c + (size_t)r * (size_t)t->width;
}
static inline double *taylor_out(const taylor *t, uint32_t i)
{
    return taylor_reg(t, t->out[i]);
}
/* Coefficient j of the inputs, then of all that follows; in order, from 0. */
void taylor_step(taylor *t, const series_inputs *in, int j);
/* Fills live[] for the current branches. */
void taylor_live(taylor *t);
/* f of a site, coefficients 0..order; floor, ceil and mod: distance to the lower end (upper: 1 - f when
 * `upper`). */
bool site_two_sided(const taylor *t, const site *s);
void site_function(const taylor *t, const site *s, bool upper, int order, double *f);
#endif
