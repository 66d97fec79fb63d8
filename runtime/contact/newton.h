/* newton: semi-smooth Newton on the natural map (Alart and Curnier) of problems whose rows are stored, with a
   search along each step.  With a proximal term it reaches tight tolerances where reactions are not unique:
   r_k+1 solves the problem of W + rho D from u = b + W r + rho D (r - r_k). */
#ifndef CDL_NEWTON_H
#define CDL_NEWTON_H
#include "problem.h"

/* At most `most` proximal steps of at most `newton` Newton steps each, by sparse factors; rho: of the first.
 */
bool proximal_steps(contact_problem *p, arena *scratch, double rho, int most, int newton, double tol);
/* From a start that is close: as few factors as will show whether it is. */
bool newton_polish(contact_problem *p, arena *scratch, double tol);
/* The same from a start that is close already, where contacts have far more rows than their bodies have dofs:
   W is not needed, rows are those of p->list.  False: not solved, or none of these. */
bool newton_rates(contact_problem *p, arena *scratch, double tol);
/* From a start next to a solution, where contacts are between two states. */
bool newton_settle(contact_problem *p, arena *scratch, double tol);
/* Shortest steps, for few rows whose W may be singular: their cost grows with the cube of the rows.  Ends
   where a step does not lead down. */
bool newton_shortest(contact_problem *p, arena *scratch, int most, double tol);
/* On a band.  What is made for a problem whose W is filled serves as long as W and the kinds of its contacts
 * stay. */
typedef struct newton newton;
newton *newton_on_band(contact_problem *p, arena *a);
bool newton_band(newton *w, double tol);
#endif
