/* pile: the contact problem with a sparse W, split into islands of contacts that share no body, each solved
   by what suits it: Lemke's pivots, proximal Newton steps, an interior point method. */
#ifndef CDL_PILE_H
#define CDL_PILE_H
#include "problem.h"

/* From the reactions at hand; false when the tolerance was not reached (residual, worst tell). */
bool pile_solve(sparse_problem *p, arena *scratch, double tol);
#endif
