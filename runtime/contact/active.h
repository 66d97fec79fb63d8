/* active: the contact problem without friction and with W in full, by active sets. If gradients are
   dependent, reactions are not unique: the shortest ones are taken. */
#ifndef CDL_ACTIVE_H
#define CDL_ACTIVE_H
#include "problem.h"

/* W in full, no friction anywhere. */
bool active_fits(const contact_problem *p);
/* Primal-dual active set from the current reactions: fast if the set changes little. */
bool active_solve(contact_problem *p, arena *scratch, double tol);
#endif
