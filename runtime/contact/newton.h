/* newton: semi-smooth Newton's method for the natural map (Alart and Curnier), for problems with stored rows,
   with a line search. With a proximal term it reaches tight tolerances although reactions are not unique:
   r_k+1 solves the problem of W + rho D from u = b + W r + rho D (r - r_k). */
#ifndef CDL_NEWTON_H
#define CDL_NEWTON_H
#include "problem.h"

/* At most `most` proximal steps of at most `newton` Newton steps each, with sparse factors; rho: of the first
   one. */
bool proximal_steps(contact_problem *p, arena *scratch, double rho, int most, int newton, double tol);
/* From a close start: few factorisations, just enough to show whether it is close. */
bool newton_polish(contact_problem *p, arena *scratch, double tol);
/* The same for contacts with far more rows than their bodies have dofs: W is not needed, rows are those of
   p->list. False: not solved, or not such a problem. */
bool newton_rates(contact_problem *p, arena *scratch, double tol);
/* From a start next to a solution, if contacts are between two states. */
bool newton_settle(contact_problem *p, arena *scratch, double tol);
/* Shortest steps, for few rows whose W may be singular: the cost grows with the cube of the rows. Ends when a
   step does not decrease the residual. */
bool newton_shortest(contact_problem *p, arena *scratch, int most, double tol);
/* For a band matrix. Data computed for a problem remain valid while W and the kinds of its contacts stay the
   same. */
typedef struct newton newton;
newton *newton_on_band(contact_problem *p, arena *a);
bool newton_band(newton *w, double tol);
#endif
