/* uzawa: the contact problem with W in full by Uzawa's method: r_n <- [r_n - rho u_n]+, r_t <- the projection
   of r_t - rho u_t to the bound. */
#ifndef CDL_UZAWA_H
#define CDL_UZAWA_H
#include "problem.h"

bool uzawa_fits(const contact_problem *p);
/* rho = stiffness, limited to values that converge (NAN: that limit). */
bool uzawa_solve(contact_problem *p, arena *scratch, double tol, double stiffness);
#endif
