/* active: the contact problem without friction and with W in full, by active sets.  Where gradients depend on
   each other the reactions are not unique: the shortest are taken. */
#ifndef CDL_ACTIVE_H
#define CDL_ACTIVE_H
#include "problem.h"

/* W in full, no friction anywhere. */
bool active_fits(const contact_problem *p);
/* Primal-dual active set from the start at hand: quick when the set changes little. */
bool active_solve(contact_problem *p, arena *scratch, double tol);
#endif
