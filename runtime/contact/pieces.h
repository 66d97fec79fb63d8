/* pieces: the contact problem of the plane as a piecewise linear map, along whose pieces a path leads to the
   solution. */
#ifndef CDL_PIECES_H
#define CDL_PIECES_H
#include "problem.h"

/* From the reactions at hand; leaves the best it met.  most: it ends after that many factorisations. */
bool pieces_solve(contact_problem *p, arena *scratch, int most, double tol);
#endif
