/* pile: the contact problem with a sparse W, split into islands of contacts that share no body, each solved
   by a chain of the solvers in solvers.h. */
#ifndef CDL_PILE_H
#define CDL_PILE_H
#include "problem.h"

/* From the reactions at hand; false when the tolerance was not reached (residual, worst tell). */
bool pile_solve(contact_problem *p, arena *scratch, double tol);
/* Is each island within the tolerance, or has it a loose contact and is within `enough`? */
bool pile_taken(const contact_problem *p, const bool *loose, double enough, double tol, arena *scratch);
#endif
