/* lemke: contact problems with at most one tangential component each, solved exactly by Lemke's pivots on a
   dense linear complementarity problem. */
#ifndef CDL_LEMKE_H
#define CDL_LEMKE_H
#include "problem.h"

/* Wedged disks need digits: normals that differ by a small angle eps give pivots of eps^2. */
typedef enum { LEMKE_DOUBLE, LEMKE_LONG, LEMKE_QUAD } lemke_digits;
/* z, w >= 0, z.w = 0, w = M z + q; M is n by n, by rows. False: it ends on a ray; z contains the last values.
 */
bool lemke_solve(int n, const double *M, const double *q, double *z, lemke_digits digits, arena *scratch);
/* Can it solve a contact of this kind? */
bool lemke_knows(const cone *c);
/* Solves the contacts who[0..n) together, with constant reactions of all others. */
bool lemke_contacts(const contact_problem *p, const int *who, int n, double *r, lemke_digits digits,
                    arena *scratch);
#endif
