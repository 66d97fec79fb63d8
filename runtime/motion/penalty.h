/* penalty: one backend for three kinds of problem, each in a file of its own. The program determines which.
 */
#ifndef CDL_PENALTY_H
#define CDL_PENALTY_H
#include "clock/backend.h"

enum {
    PENALTY_STIFFNESS,
    PENALTY_DAMPING,
    PENALTY_SLIP,
    PENALTY_EPS,
    PENALTY_H,
    PENALTY_TOLERANCE,
    PENALTY_CELLS,
    PENALTY_EVERY,
    PENALTY_LIMIT,
    PENALTY_ERROR,
    PENALTY_OPTIONS
};

void penalty_dynamics_run(const program *p, const run_options *o, results *r); /* penalty_dynamics.c */
void penalty_field_run(const program *p, const run_options *o, results *r);    /* field_penalty.c */
/* The damping ratio of a contact spring that restores the fraction e of the approach speed, if contact ends
   when its force becomes 0. */
double penalty_damping_ratio(double e);
#endif
