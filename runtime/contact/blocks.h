/* blocks: factors of a sparse matrix whose rows and columns belong to contacts, at most three to each. They
   are computed block by block, without row exchanges between contacts, in an order that is found once: for
   matrices W + D, where W is positive semidefinite and D acts within each contact. */
#ifndef CDL_BLOCKS_H
#define CDL_BLOCKS_H
#include <stdbool.h>
#include "base/arena.h"

enum { BLOCKS_WIDE = 3 }; /* largest number of rows of a contact */

typedef struct block_factors block_factors;
/* n contacts with the unknowns first[c] .. first[c] + count[c]; the matrix by rows of unknowns (start, col),
   which are read again at each factorisation. NULL: no order was found. */
block_factors *block_factors_new(arena *a, int n, const int *first, const int *count, const int *start,
                                 const int *col);
bool block_factors_put(block_factors *f, const double *x); /* false: singular */
void block_factors_solve(const block_factors *f, double *b);
#endif
