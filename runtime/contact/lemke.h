/* lemke: contact problems without cones of more than one tangent component, exactly, by Lemke's pivots on a
 * dense linear complementarity problem. */
#ifndef CDL_LEMKE_H
#define CDL_LEMKE_H
#include "problem.h"

/* Disks that wedge need digits: normals that differ by a small angle eps leave pivots of eps^2. */
typedef enum { LEMKE_DOUBLE, LEMKE_LONG, LEMKE_QUAD } lemke_digits;
/* z, w >= 0, z.w = 0, w = M z + q; M is n by n, by rows.  False: it ends on a ray, z is where it got to. */
bool lemke_solve(int n, const double *M, const double *q, double *z, lemke_digits digits, arena *scratch);
/* Is it a contact that can take part? */
bool lemke_knows(const cone *c);
/* The contacts who[0..n) solved together, the reactions of all others as they are. */
bool lemke_contacts(const contact_problem *p, const int *who, int n, double *r, lemke_digits digits,
                    arena *scratch);
#endif
