/* band: the contact problem whose matrix W has few diagonals, as for chains, towers and columns. Exact: an
   active set without friction, semi-smooth Newton's method with friction. The last solution is the start, and
   its factors are used while they are valid. */
#ifndef CDL_BAND_H
#define CDL_BAND_H
#include "problem.h"

/* The largest useful number of diagonals, without friction and with it (Newton's method often fails in wider
   bands, which belong to piles); largest number of tangential components of a contact. */
enum { BAND_MOST = 40, BAND_ROUGH = 12, MAX_TANGENT = 3 };
/* A problem with room for n contacts and m rows; W is 0. */
contact_problem *band_new(arena *a, int n, int m, int kb);
/* Does a contact have friction, with a normal row or without? */
bool band_rough(const contact_problem *p);
/* Its W will not be symmetric; its cones must be known. */
void band_unsymmetric(contact_problem *p);
/* False: not solved to the tolerance; r is unchanged. */
bool band_solve(contact_problem *p, double tol);
#endif
