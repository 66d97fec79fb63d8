/* linalg: dense matrices, row by row.  Small ones are inverted once and multiplied; large ones go to LAPACK.
 */
#ifndef CDL_LINALG_H
#define CDL_LINALG_H
#include <stdbool.h>
#include "arena.h"

/* [emit c: what stands in such brackets is part of the C that is written of a model */
enum { LINALG_SMALL = 4, LINALG_LAPACK = 48 }; /* inverted up to SMALL, LAPACK from there on */

static inline double vec_dot(const double *a, const double *b, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++)
        s += a[i] * b[i];
    return s;
}
static inline void vec_axpy(double *y, double k, const double *x, int n)
{
    for (int i = 0; i < n; i++)
        y[i] += k * x[i];
}
/* for short vectors, where a call of memcpy costs more than the copy */
static inline void vec_copy(double *y, const double *x, int n)
{
    for (int i = 0; i < n; i++)
        y[i] = x[i];
}
/* emit c] */
double vec_max(const double *a, int n);                                  /* largest |a[i]| */
void mat_vec(const double *a, const double *x, double *y, int m, int n); /* y = A x, A is m by n */

/* [emit c */
/* A factorised square matrix.  Only one of the forms is filled. */
typedef enum {
    FACTOR_NONE,
    FACTOR_DIAGONAL,
    FACTOR_INVERSE,
    FACTOR_CHOLESKY,
    FACTOR_LU,
    FACTOR_BAND,    /* L D L^T */
    FACTOR_BAND_LU, /* LAPACK's */
    FACTOR_SPARSE   /* KLU's */
} factor_kind;
typedef struct factor {
    factor_kind kind;
    int n;
    double *a;
    int *pivot;
    const struct matrix_shape *shape; /* of what is factorised (matrix.h); NULL: whole or diagonal */
    struct sparse_factor *sparse;
    arena *of; /* counts the work */
} factor;
/* emit c] */

void factor_init(factor *f, arena *a, int n, bool diagonal); /* room for any form, or for a diagonal alone */
bool factor_diagonal(factor *f, const double *d, int *bad);  /* d > 0, else false and bad = the row */
/* Symmetric positive definite; false: not so, *bad is the first row that fails. */
bool factor_spd(factor *f, const double *a, int *bad);
bool factor_general(factor *f, const double *a);                /* any regular matrix; false: singular */
void factor_solve(const factor *f, const double *b, double *x); /* x = A^-1 b; x and b are different */
void factor_solve_shaped(const factor *f, const double *b, double *x); /* of bands and sparse matrices */

/* Cholesky with pivoting of a symmetric semidefinite matrix, in place: A[p][p] = L L^T, L is n by rank. Stops
 * at pivots below tol times the largest. */
int chol_rank(double *a, int n, int *perm, double tol);
/* The shortest x with A x = b (b in the range of A, A symmetric semidefinite; destroyed).  work: n*n + 2n
 * doubles, iwork: n.  Returns the rank. */
int sym_shortest(double *a, const double *b, double *x, int n, double *work, int *iwork);
/* The same in two steps, for several b: a, work and iwork hold the factors, the rank is returned. */
int sym_shortest_factor(double *a, int n, double *work, int *iwork);
void sym_shortest_use(const double *a, int rank, const double *b, double *x, int n, double *work,
                      const int *iwork);
/* The power of two by which a row and a column must be multiplied so that their diagonal entry a > 0 lies
   between 1/2 and 2; 1 if a is not positive. Problems whose units differ by powers of two are then the same
   to the last bit. */
double power_unit(double a);
/* sym_shortest for rows in different, unrelated units; n more doubles of work. */
int sym_shortest_rows(double *a, const double *b, double *x, int n, double *work, int *iwork);
/* Least squares solution of smallest norm of A x = b, any A (m by n); the result is in b (room for max(m,
 * n)).  False: failed. */
bool least_norm(double *a, double *b, int m, int n, arena *scratch);
/* b <- A^-1 b, m right sides one after the other, A sparse by columns (p, i, x), or by rows; order: in
   which unknowns are eliminated, NULL where none is known.  False: singular.  Nothing is allocated from an
   arena in between: memory is that of the library. */
bool sparse_lu(int n, int *p, int *i, double *x, bool rows, int *order, int m, double *b);

/* Factors of sparse matrices with one pattern (p, i), by columns.  Their memory is that of the library: the
   code that creates them frees them before it allocates more from an arena. */
typedef struct sparse_factors sparse_factors;
/* many: fill is expected to be large, as in space (UMFPACK); else KLU */
sparse_factors *sparse_factors_new(arena *a, int n, int *p, int *i, bool many);
/* pivots are chosen again, because those of the last matrix may be small; false: singular, or no memory */
bool sparse_factors_put(sparse_factors *f, double *x, bool pivots);
/* b <- A^-T b: the solution for a matrix given by rows */
bool sparse_factors_solve_rows(sparse_factors *f, double *b);
int sparse_factors_sign(const sparse_factors *f, int *room); /* of the determinant (KLU); room: n */
void sparse_factors_free(sparse_factors *f);

/* LU of a matrix with kb diagonals on either side, by columns of length 3 kb + 1, the diagonal at 2 kb; b <-
 * A^-1 b.  For narrow bands: no calls for each column.  False: singular. */
bool band_lu(int n, int kb, double *lu, double *b);
/* LU of a matrix with kl diagonals below the main one and ku above, by columns of length ld, the diagonal at
   kl + ku; rcond becomes the reciprocal condition unless NULL. False: singular. */
bool band_lu_factor(int n, int kl, int ku, double *a, int ld, int *pivot, double *rcond);
/* b <- A^-1 b with these factors, m right sides one after the other */
bool band_lu_use(int n, int kl, int ku, const double *a, int ld, const int *pivot, int m, double *b);
/* x = A^-1 b, A by columns, equilibrated and refined (all but x destroyed); the reciprocal condition, 0:
 * singular */
double solve_refined(int n, double *a, double *b, double *x, arena *scratch);
/* of any matrix (destroyed); work: 8 n.  False: failed */
bool eigenvalues(int n, double *a, double *re, double *im, double *work);
/* In which order to eliminate the unknowns of a matrix with that symmetric pattern, by columns.  False:
 * failed. */
bool sparse_order(int n, const int *p, const int *i, int *order);
/* Symmetric sparse matrices by the columns of their lower half (p, i, x); memory is that of the library.
   Negative entries of D in L D L^T; b <- A^-1 b, false: A is not positive. */
int sparse_negative(int n, int *p, int *i, double *x);
bool sparse_spd(int n, int *p, int *i, double *x, double *b);
#endif
