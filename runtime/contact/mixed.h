/* mixed: the contact problem with rates and reactions as unknowns together, for step matrices that couple
   many dofs: D dv = K^T r, u = b + J dv, each contact in its cone. W = J D^-1 K^T is never formed.
   Semi-smooth Newton's method (cone_newton) without line search; while modes and D stay the same, the factors
   of the last problem are used. */
#ifndef CDL_MIXED_H
#define CDL_MIXED_H
#include "problem.h"

typedef struct mixed mixed;
mixed *mixed_new(arena *a);
void mixed_free(mixed *w); /* frees memory outside the arena */
/* Coupled rows, at most four for each contact. */
bool mixed_fits(const contact_problem *p);
/* False: the tolerance was not reached. same: contacts, their dofs and their order are those of the last
   problem. */
bool mixed_solve(mixed *w, contact_problem *p, bool same, double tol);
#endif
