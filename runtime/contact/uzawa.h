/* uzawa: the contact problem with W in full by Uzawa's multipliers: r_n <- [r_n - rho u_n]+, r_t <- the part
   of r_t - rho u_t within the bound. */
#ifndef CDL_UZAWA_H
#define CDL_UZAWA_H
#include "problem.h"

bool uzawa_fits(const contact_problem *p);
/* rho = stiffness, at most what converges (NAN: that). */
bool uzawa_solve(contact_problem *p, arena *scratch, double tol, double stiffness);
#endif
