/* sweeping: the time-stepping of the backends sweeping and auglag. */
#ifndef CDL_SWEEPING_H
#define CDL_SWEEPING_H
#include "clock/backend.h"

/* Whether steps are cut at impacts: while that costs little, always, never. */
typedef enum { CUT_AUTO, CUT_ALWAYS, CUT_NEVER, CUT_POLICIES } cut_policy;

/* stiffness > 0 or NAN: the step problem by Uzawa's multipliers around a penalty of that stiffness (NAN: from
 * the masses); 0: by contact_solve. */
typedef struct stepping {
    double h, theta, tolerance, stiffness;
    const char *name;
    cut_policy cut;
} stepping;
void sweeping_steps(const program *p, const run_options *o, const stepping *how, results *r);
const struct stepper *sweeping_open(const program *p, const run_options *o, const stepping *how, results *r,
                                    void **of);
bool sweep_saves(const program *p); /* can the state of a run be saved? */
#endif
