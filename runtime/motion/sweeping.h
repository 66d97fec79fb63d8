/* sweeping: the time-stepping of the backends sweeping and auglag. */
#ifndef CDL_SWEEPING_H
#define CDL_SWEEPING_H
#include "clock/backend.h"

/* Whether steps are cut at impacts: while that is cheap, always, never. */
typedef enum { CUT_AUTO, CUT_ALWAYS, CUT_NEVER, CUT_POLICIES } cut_policy;

/* Whether plain steps of small models are compiled by the system's compiler: if it pays off, always, never.
 */
typedef enum { NATIVE_AUTO, NATIVE_ALWAYS, NATIVE_NEVER, NATIVE_POLICIES } native_policy;

/* stiffness > 0 or NAN: the step problem is solved by Uzawa's method with a penalty of that stiffness (NAN:
   chosen from the masses); 0: by contact_solve. */
typedef struct stepping {
    double h, theta, tolerance, stiffness;
    const char *name;
    cut_policy cut;
    native_policy native;
    struct emitted_run *emit; /* if not NULL, the run is written there as C */
} stepping;
void sweeping_steps(const program *p, const run_options *o, const stepping *how, results *r);
const struct stepper *sweeping_open(const program *p, const run_options *o, const stepping *how, results *r,
                                    void **of);
/* Writes a run of sweeping as C; only its start is computed. */
void sweeping_emit(const program *p, const run_options *o, results *r, struct emitted_run *to);
bool sweep_saves(const program *p); /* can the state of a run be saved? */
#endif
