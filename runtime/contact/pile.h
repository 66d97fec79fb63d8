/* pile: the contact problem with a sparse W, split into islands of contacts that share no body, each solved
   by a chain of the solvers in solvers.h. */
#ifndef CDL_PILE_H
#define CDL_PILE_H
#include "problem.h"

/* From the reactions at hand; false when the tolerance was not reached (residual, worst tell). */
bool pile_solve(contact_problem *p, arena *scratch, double tol);
#endif
