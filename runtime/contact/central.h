/* central: the contact problem with a sparse W and at most one tangential component, along its central path
   and around the bends of that path. */
#ifndef CDL_CENTRAL_H
#define CDL_CENTRAL_H
#include "problem.h"

/* Only contacts for which lemke_knows is true. */
bool central_fits(const contact_problem *p);
/* From a cold start. False: the tolerance was not reached, or a contact is of another kind; r is the best
   that was found. */
bool central_solve(contact_problem *p, arena *scratch, double tol);
/* Starts at a distance `off` from the current reactions, in units of the largest velocity; where the path
   folds, steps are damped. Fast from a close start; different starts may succeed on different problems. */
bool damped_solve(contact_problem *p, arena *scratch, double off, double tol);
#endif
