/* sweeps: block Gauss-Seidel with exact solutions of single contacts, taken as the gradient of a conjugate
   direction method, which needs far fewer sweeps for the same residual. */
#ifndef CDL_SWEEPS_H
#define CDL_SWEEPS_H
#include "problem.h"

/* At most `most` sweeps up and down the contacts.  plain: without conjugate directions, which friction can
   mislead.  True: the last one changed reactions by less than tol times the largest. */
bool sweeps_solve(sparse_problem *p, arena *scratch, int most, bool plain, double tol);
#endif
