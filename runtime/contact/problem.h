/* problem: the contact problem with a sparse W, and what all its solvers read of it: rows, diagonal entries,
   velocities, residual. */
#ifndef CDL_PROBLEM_H
#define CDL_PROBLEM_H
#include "contact.h"

/* Rows of contact c have entries in the columns col[start[c]..start[c+1]), its own among them;
 * val[at[c] + row*(number of them) + k]. */
typedef struct sparse_problem {
    int n, m; /* contacts, rows */
    const cone *cone;
    const int *start, *col;
    const size_t *at;
    const double *val, *b;
    double *r;                    /* m: start and solution */
    double least, fine, residual; /* as in contact_problem */
    bool brief;                   /* the caller has another way: no long tries */
    int worst, iterations;
    const char *solver;
} sparse_problem;

static inline int problem_width(const sparse_problem *p, int c)
{
    return p->start[c + 1] - p->start[c];
}
static inline const double *problem_row(const sparse_problem *p, int c, int j)
{
    return p->val + p->at[c] + (size_t)j * (size_t)problem_width(p, c);
}
/* row j of contact c times x */
double problem_times(const sparse_problem *p, int c, int j, const double *x);
/* u = b + W r */
void problem_velocities(const sparse_problem *p, double *u);
/* entry of W at row and column `col`; 0: none */
double problem_entry(const sparse_problem *p, int c, int j, int col);
/* of each contact: normal entry of W, largest tangent entry */
void problem_diagonal(const sparse_problem *p, double *an, double *at);
/* Largest distance to the natural map's fixed point over what reactions are measured by, for the velocities u
   and their diagonal entries; of each contact into e where that is given. Sets *worst, may be NULL.  A number
   that is not finite is the largest of all. */
double problem_defect(const sparse_problem *p, const double *u, const double *an, const double *at, double *e,
                      int *worst);
/* The same for p->r, with velocities computed anew; fills residual and worst. */
double problem_measure(sparse_problem *p, double *e, arena *scratch);
#endif
