/* rates: Newton's matrix of many contacts of few bodies, by the rates of the dofs.  Contacts may have several
   times as many rows as their bodies have dofs: four points of two faces have twelve.  W = J K^T is never
   factorised then, but a matrix with a row for each dof. */
#ifndef CDL_RATES_H
#define CDL_RATES_H
#include "problem.h"

enum { RATES_WIDE = 3, RATES_BLOCK = RATES_WIDE * RATES_WIDE }; /* rows of a contact at most; of its blocks */

typedef struct rate_factors rate_factors;
/* Are there far fewer dofs than rows? */
bool rates_worth(int rows, int dofs);
/* NULL: the rows of the contacts are not known by dof, or dofs are not far fewer than rows. */
rate_factors *rate_factors_new(arena *a, const contact_problem *p);
/* A x + B W x, where A and B stay within each contact: their blocks, RATES_BLOCK numbers for each.  A is
   lost. False: singular. */
bool rate_factors_put(rate_factors *f, double *A, const double *B);
void rate_factors_solve(const rate_factors *f, double *x);                  /* y comes in, x goes out */
void rate_factors_times(const rate_factors *f, const double *r, double *u); /* u = W r */
/* of each contact: its normal entry of W, its largest tangent entry */
void rate_factors_diagonal(const rate_factors *f, double *an, double *at);
#endif
