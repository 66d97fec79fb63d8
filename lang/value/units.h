/* units: dimensions of quantities, and the table of units with their SI prefixes. */
#ifndef CDL_UNITS_H
#define CDL_UNITS_H
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"

/* Exponents of (m, kg, s, A, K, mol, cd) in twelfths, so that roots are exact.  any: a bare number, which
 * fits all. */
enum { DIM_BASES = 7, DIM_ONE = 12 };
typedef struct {
    int16_t e[DIM_BASES];
    bool any;
} dim;

dim dim_none(void); /* dimensionless */
dim dim_any(void);
bool dim_equal(dim a, dim b); /* any equals all */
dim dim_mul(dim a, dim b);    /* any with something is any */
dim dim_div(dim a, dim b);
dim dim_pow(dim a, double exponent, bool *ok); /* !*ok, and any, where the exponents are not twelfths */
void dim_text(text *out, dim d);               /* m/s^2, kg*m^2/s^2, kg/(m*s^2), 1/s, m^(1/2), 1, any */

/* A unit by name, prefixed or not; a name that is both is the unprefixed unit.  factor: how many SI units it
   is. The results may be NULL. */
bool unit_find(const char *name, double *factor, dim *d);
/* x units in SI; 9 [mm] is 0.009 and not 9*0.001. */
double unit_scale(double x, double factor);
/* The names, plain ones first, then those with the common prefixes; NULL at the end. */
const char *unit_name(size_t k);
#endif
