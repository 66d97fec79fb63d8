/* interior: the contact problem with Coulomb cones by a primal-dual interior point method, from a cold start:
   for problems on which sweeps and Newton's method stall. */
#ifndef CDL_INTERIOR_H
#define CDL_INTERIOR_H
#include "problem.h"

/* Unilateral cones without a given bound, and bilateral rows without friction. */
bool interior_fits(const contact_problem *p);
/* False: the tolerance was not reached, or a cone is of another kind; r is the best that was found. */
bool interior_solve(contact_problem *p, arena *scratch, double tol);
#endif
