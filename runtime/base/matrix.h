/* matrix: square matrices stored by their structure: a diagonal, a band, rows of few entries, or in full. A
   shape describes which entries exist and where they are stored; values are plain arrays, so that matrices
   of one shape are combined entry by entry.  All kinds lie row after row. */
#ifndef CDL_MATRIX_H
#define CDL_MATRIX_H
#include "linalg.h"

enum { MATRIX_SMALL = 24 }; /* matrices up to that size are kept whole */
typedef enum { MATRIX_DIAGONAL, MATRIX_BAND, MATRIX_SPARSE, MATRIX_DENSE } matrix_kind;

typedef struct matrix_shape {
    matrix_kind kind;
    int n;
    int below, above;  /* band: diagonals on either side of the main one */
    const int *start;  /* sparse: first entry of each row, n + 1 of them */
    const int *column; /* sparse: of each entry, in order within a row */
    size_t count;      /* numbers that are stored */
} matrix_shape;

/* a row and a column where there is an entry */
typedef struct matrix_place {
    int row, column;
} matrix_place;

matrix_shape matrix_diagonal(int n);
matrix_shape matrix_dense(int n);
/* The shape that suits the places (any order, may repeat; the diagonal is always there).  They are sorted.
 */
matrix_shape matrix_shape_of(int n, matrix_place *place, size_t count, arena *a);

/* Where an entry of the shape lies; it must be there. */
size_t matrix_at(const matrix_shape *s, int row, int column);
/* Entries of row i: from matrix_row(s, i) up to matrix_row(s, i + 1). */
static inline size_t matrix_row(const matrix_shape *s, int i)
{
    switch (s->kind) {
    case MATRIX_DIAGONAL:
        return (size_t)i;
    case MATRIX_BAND:
        return (size_t)i * (size_t)(s->below + s->above + 1);
    case MATRIX_SPARSE:
        return (size_t)s->start[i];
    default:
        return (size_t)i * (size_t)s->n;
    }
}

void matrix_times(const matrix_shape *s, const double *a, const double *x, double *y);     /* y = A x */
void matrix_times_add(const matrix_shape *s, const double *a, const double *x, double *y); /* y += A x */
double matrix_norm2(const matrix_shape *s, const double *a, const double *x);              /* x.A x */

/* Symmetric positive definite matrices that couple dofs only in small groups, like those of bodies: each is
   L L^T, group by group.  The dofs of group g are dof[first[g] .. first[g + 1]), in order. */
enum { MATRIX_GROUP = 8 }; /* dofs of a group at most */
typedef struct matrix_groups {
    int n, count; /* dofs; groups */
    int *of;      /* the group of each dof */
    int *first, *dof;
    double *root; /* MATRIX_GROUP^2 for each group: L, row after row */
} matrix_groups;
/* By where there are entries; NULL: a group is larger. */
matrix_groups *matrix_groups_of(int n, const matrix_place *place, size_t count, arena *a);
bool groups_factor(matrix_groups *g, const matrix_shape *s, const double *a); /* false: not definite */
void groups_row(const matrix_groups *g, int group, double *x); /* x = L^-1 x, of one group alone */
void groups_in(const matrix_groups *g, double *x);             /* x = L^T x: its square is x.A x */
void groups_out(const matrix_groups *g, double *x);            /* x = L^-T x */

/* Room for the factors of matrices of a shape.  Sparse factors lie outside of arenas: factor_free. */
void factor_shape(factor *f, arena *a, const matrix_shape *s);
/* Symmetric positive definite; false: not so, *bad is a row that fails. */
bool factor_matrix_spd(factor *f, const double *a, int *bad);
/* Any regular matrix; false: singular. */
bool factor_matrix(factor *f, const double *a);
void factor_free(factor *f); /* the room for them stays */
#endif
