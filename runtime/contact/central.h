/* central: the contact problem with a sparse W and one tangent component at most, along its central path and
 * around the bends of that. */
#ifndef CDL_CENTRAL_H
#define CDL_CENTRAL_H
#include "problem.h"

/* Contacts that lemke_knows only. */
bool central_fits(const contact_problem *p);
/* From a cold start, for contacts that lemke_knows.  False: the tolerance was not reached, or a contact is of
 * another kind; r is the best that was met. */
bool central_solve(contact_problem *p, arena *scratch, double tol);
/* From `off` beside the reactions at hand, in units of the largest velocity: where the path folds steps are
   damped.  Quick from a point that is close; else one start fails where another does not. */
bool damped_solve(contact_problem *p, arena *scratch, double off, double tol);
#endif
