/* pile: the contact problem with a sparse W, split into islands of contacts that share no body; each is
   solved by a sequence of the solvers in solvers.h. */
#ifndef CDL_PILE_H
#define CDL_PILE_H
#include "problem.h"

/* From the current reactions; false: the tolerance was not reached (see residual, worst). */
bool pile_solve(contact_problem *p, arena *scratch, double tol);
/* Is each island within the tolerance, or within `enough` if it has a loose contact? */
bool pile_taken(const contact_problem *p, const bool *loose, double enough, double tol, arena *scratch);
#endif
