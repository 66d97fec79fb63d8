/* sweeping: the time-stepping of the backends sweeping and auglag. */
#ifndef CDL_SWEEPING_H
#define CDL_SWEEPING_H
#include "clock/backend.h"

/* stiffness > 0 or NAN: the step problem by Uzawa's multipliers around a penalty of that stiffness (NAN: from
 * the masses); 0: by contact_solve. */
typedef struct stepping {
    double h, theta, tolerance, stiffness;
    const char *name;
} stepping;
void sweeping_steps(const program *p, const run_options *o, const stepping *how, results *r);
#endif
