/* proximal: the contact problem with a sparse W, solved by proximal steps: r_k+1 solves the problem of W +
   rho D from u = b + W r + rho D (r - r_k), by semi-smooth Newton with a sparse factorisation.  It reaches
   tight tolerances where reactions are not unique. */
#ifndef CDL_PROXIMAL_H
#define CDL_PROXIMAL_H
#include "contact.h"

/* Rows of contact c have entries in the columns col[start[c]..start[c+1]), its own among them and in order;
 * val[at[c] + row*(number of them) + k]. */
typedef struct sparse_problem {
    int n, m;
    const cone *cone;
    const int *start, *col;
    const size_t *at;
    const double *val, *b;
    double *r;                    /* m: start and solution */
    double least, fine, residual; /* as in contact_problem */
    bool brief;                   /* whoever asks knows another way: no long tries */
    int worst, iterations;
    const char *solver;
} sparse_problem;

/* At most `most` proximal steps of at most `newton` Newton steps each; rho: of the first. */
bool proximal_steps(sparse_problem *p, arena *scratch, double rho, int most, int newton, double tol);
#endif
