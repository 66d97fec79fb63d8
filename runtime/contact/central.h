/* central: the contact problem with a sparse W and one tangent component at most, along its central path and
 * around the bends of that. */
#ifndef CDL_CENTRAL_H
#define CDL_CENTRAL_H
#include "problem.h"

/* From a cold start, for contacts that lemke_knows.  False: the tolerance was not reached, or a contact is of
 * another kind; r is the best that was met. */
bool central_solve(sparse_problem *p, arena *scratch, double tol);
/* From the reactions at hand, along the same path: where it folds the steps are damped.  Quick from a point
 * that is close. */
bool damped_solve(sparse_problem *p, arena *scratch, double tol);
#endif
