/* contact: small contact problems, whose W is full. */
#ifndef CDL_CONTACT_H
#define CDL_CONTACT_H
#include "problem.h"

typedef struct contact_work contact_work;
/* Work space for n contacts and m rows, with at most d tangential components each; temporary memory is also
   taken from a. */
contact_work *contact_work_new(arena *a, int n, int m, int d);
/* Solves to the tolerance; false: not reached (see residual, worst). */
bool contact_solve(contact_problem *p, contact_work *w, double tol);
/* The same by Uzawa's method; rho = stiffness, limited to values that converge (NAN: that limit). */
bool contact_uzawa(contact_problem *p, contact_work *w, double tol, double stiffness);
/* Sets residual and worst for the current r and u. */
double contact_residual(contact_problem *p);
#endif
