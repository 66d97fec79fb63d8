/* proximal: the contact problem with a sparse W, solved by proximal steps: r_k+1 solves the problem of W +
   rho D from u = b + W r + rho D (r - r_k), by semi-smooth Newton with a sparse factorisation.  It reaches
   tight tolerances where reactions are not unique. */
#ifndef CDL_PROXIMAL_H
#define CDL_PROXIMAL_H
#include "problem.h"

/* At most `most` proximal steps of at most `newton` Newton steps each; rho: of the first. */
bool proximal_steps(sparse_problem *p, arena *scratch, double rho, int most, int newton, double tol);
#endif
