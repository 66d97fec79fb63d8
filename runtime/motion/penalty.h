/* penalty: one name for three kinds of problem.  Each kind has its own file; the backend asks the program
 * which it is. */
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
/* The damping ratio of a contact spring that gives back the part e of the speed, the contact ending where its
 * force does. */
double penalty_damping_ratio(double e);
#endif
