/* band: the contact problem whose matrix W has few diagonals, as chains, towers and columns give it.  Exact:
   an active set where there is no friction, semi-smooth Newton where there is.  What was found last is the
   start, and its factors are kept while they hold. */
#ifndef CDL_BAND_H
#define CDL_BAND_H
#include "problem.h"

/* diagonals that are worth it, without friction and with it (Newton's method fails often in wider bands,
   which are piles); tangent components of a contact */
enum { BAND_MOST = 40, BAND_ROUGH = 12, MAX_TANGENT = 3 };
/* A problem with room for n contacts and m rows; W is 0. */
contact_problem *band_new(arena *a, int n, int m, int kb);
/* Has a contact friction, with a normal row or without? */
bool band_rough(const contact_problem *p);
/* Its W will not be symmetric; its cones are known. */
void band_unsymmetric(contact_problem *p);
/* False: not solved to the tolerance; r is then as it was. */
bool band_solve(contact_problem *p, double tol);
#endif
