/* band: the contact problem whose matrix W has few diagonals, as chains, towers and columns give it.  Exact:
   an active set where there is no friction, semi-smooth Newton where there is.  What was found last is the
   start, and its factors are kept while they hold. */
#ifndef CDL_BAND_H
#define CDL_BAND_H
#include "contact.h"

typedef struct band_problem {
    int n, m, kb;      /* contacts, rows, diagonals on either side */
    cone *cone;        /* cone.row: among the rows here */
    double *W;         /* W[i*(2*kb + 1) + kb + j - i] = W_ij */
    double *b, *r, *u; /* m; r is the start and the solution */
    double least;      /* of the reactions in play */
    double residual;   /* natural map, as in contact_problem */
    int worst, iterations;
    struct band_work *work;
} band_problem;

/* diagonals that are worth it, without friction and with it (Newton's method fails often in wider bands,
   which are piles); tangent components of a contact */
enum { BAND_MOST = 40, BAND_ROUGH = 12, MAX_TANGENT = 3 };
/* Room for n contacts and m rows; W is 0. */
band_problem *band_new(arena *a, int n, int m, int kb);
static inline double *band_at(const band_problem *p, int i, int j)
{
    return &p->W[(size_t)i * (size_t)(2 * p->kb + 1) + (size_t)(p->kb + j - i)];
}
/* False: not solved to the tolerance; r is then as it was. */
bool band_solve(band_problem *p, double tol);
#endif
