/* contact: small contact problems, whose W is full. */
#ifndef CDL_CONTACT_H
#define CDL_CONTACT_H
#include "problem.h"

typedef struct contact_work contact_work;
/* Room for n contacts and m rows, of at most d tangent components each; scratch memory is taken from a, too.
 */
contact_work *contact_work_new(arena *a, int n, int m, int d);
/* Solves to the tolerance; false when it was not reached (residual, worst). */
bool contact_solve(contact_problem *p, contact_work *w, double tol);
/* The same by Uzawa's multipliers; rho = stiffness, at most what converges (NAN: that). */
bool contact_uzawa(contact_problem *p, contact_work *w, double tol, double stiffness);
/* Fills residual and worst for the r and u at hand. */
double contact_residual(contact_problem *p);
#endif
