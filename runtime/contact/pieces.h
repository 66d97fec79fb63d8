/* pieces: the contact problem of the plane as a piecewise linear map; a path along its pieces leads to the
   solution. */
#ifndef CDL_PIECES_H
#define CDL_PIECES_H
#include "problem.h"

/* From the current reactions; leaves the best ones found. most: it ends after this number of factorisations.
 */
bool pieces_solve(contact_problem *p, arena *scratch, int most, double tol);
#endif
