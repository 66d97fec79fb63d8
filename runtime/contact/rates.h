/* rates: Newton's matrix for many contacts of few bodies, in the rates of the dofs. Contacts may have several
   times as many rows as their bodies have dofs: four points of two faces have twelve. Then a matrix with one
   row per dof is factorised instead of W = J K^T. */
#ifndef CDL_RATES_H
#define CDL_RATES_H
#include "problem.h"

/* largest number of rows of a contact; size of its blocks */
enum { RATES_WIDE = 3, RATES_BLOCK = RATES_WIDE * RATES_WIDE };

typedef struct rate_factors rate_factors;
/* Are there far fewer dofs than rows? */
bool rates_worth(int rows, int dofs);
/* NULL: the rows of the contacts are not known by dof, or there are not far fewer dofs than rows. */
rate_factors *rate_factors_new(arena *a, const contact_problem *p);
/* The matrix A + B W, where A and B act within each contact: their blocks, RATES_BLOCK numbers for each.
   Overwrites A. False: singular. */
bool rate_factors_put(rate_factors *f, double *A, const double *B);
void rate_factors_solve(const rate_factors *f, double *x);                  /* y comes in, x goes out */
void rate_factors_times(const rate_factors *f, const double *r, double *u); /* u = W r */
/* Of each contact: its normal entry of W, and its largest tangential entry. */
void rate_factors_diagonal(const rate_factors *f, double *an, double *at);
#endif
