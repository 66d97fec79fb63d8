/* problem: the contact problem of a step. Unknown reactions r, velocities u = b + W r, row by row for each
   contact (cone.h). The same problem with accelerations instead of velocities is Gauss's principle. Only the
   functions here know how W is stored: diagonal blocks, rows, W times r. */
#ifndef CDL_PROBLEM_H
#define CDL_PROBLEM_H
#include <stddef.h>
#include "base/arena.h"
#include "cone.h"

struct contact_list;
struct matrix_shape;

/* W = J D^-1 K^T: rows J and K of a list of contacts, and the step matrix D. */
typedef struct coupled_rows {
    int n; /* dofs */
    const struct contact_list *list;
    const struct matrix_shape *shape;
    const double *D;
    bool changed; /* J, K or D have changed since the last problem */
    double *dv;   /* n: change of the rates by the reactions that were found */
} coupled_rows;

/* How much work solvers may do: everything; not the slowest methods, because the step can be shortened; not
   slow methods, because there is an alternative. */
typedef enum { EFFORT_ALL, EFFORT_CUT, EFFORT_LITTLE } solver_effort;

typedef struct contact_problem {
    int n, m;   /* contacts, rows */
    cone *cone; /* n */
    double *b;  /* m: velocities without reactions */
    double *r,
        *u; /* m: reactions (initial guess and solution); velocities with them, or NULL if not needed */
    const double *unit; /* m: unit of r in each row, see equal.h; NULL: those of the model */
    /* W in one of these forms. In full, or by its diagonals (2 kb + 1 of them, row by row) if kb > 0; */
    double *W;
    int kb;
    const int *all; /* if in full: the numbers 0 .. m-1 */
    /* by rows: the rows of contact c have entries in the columns col[start[c]..start[c+1]), including its
       own: val[at[c] + row*(number of columns) + k]; */
    const int *start, *col;
    const size_t *at;
    const double *val;
    const coupled_rows *coupled; /* or W is never formed */
    /* If W is stored by rows: the list that contains the rows of the contacts by dof, and the place of each
       contact in it; NULL: not known. */
    const struct contact_list *list;
    const int *listed;
    /* Friction that depends on the slip speed. */
    void (*law)(void *ud, int contact, double speed, double *mu, double *radius);
    void *ud;
    double least;  /* rounding of the reactions, divided by the tolerance */
    double enough; /* a residual that ends the search after fast methods were tried; 0: none */
    double fine; /* rounding as a fraction of the largest reaction, divided by the tolerance: reaction_fine */
    solver_effort effort;
    int rounds;             /* largest number of rounds of Newton and Gauss-Seidel in turn; 0: many */
    struct band_work *work; /* of band.c, kept from step to step */
    /* Results. */
    /* Natural map: distance of r to the projection of r - rho u, divided by the largest reaction. */
    double residual;
    int worst;               /* contact with the largest residual */
    int iterations, choices; /* iterations done; contacts with more than one solution */
    const char *solver;
} contact_problem;

/* ---- W ---- */
/* Is W stored so that a row can be read directly: by rows or in full? */
bool problem_stored(const contact_problem *p);
/* Entry of a band matrix. */
static inline double *band_at(const contact_problem *p, int i, int j)
{
    return &p->W[(size_t)i * (size_t)(2 * p->kb + 1) + (size_t)(p->kb + j - i)];
}
/* Number of columns in which the rows of contact c have entries. */
static inline int problem_width(const contact_problem *p, int c)
{
    return p->val ? p->start[c + 1] - p->start[c] : p->m;
}
static inline const int *problem_columns(const contact_problem *p, int c)
{
    return p->val ? p->col + p->start[c] : p->all;
}
/* Entries of row j of contact c in these columns. */
static inline const double *problem_row(const contact_problem *p, int c, int j)
{
    if (!p->val)
        return p->W + (size_t)(p->cone[c].row + j) * (size_t)p->m;
    return p->val + p->at[c] + (size_t)j * (size_t)problem_width(p, c);
}
void problem_set_rows(contact_problem *p, const int *start, const int *col, const size_t *at,
                      const double *val);
/* The same problem with its full W stored by rows without zeros; everything else is shared. */
contact_problem problem_by_rows(const contact_problem *p, arena *a);
/* entry of W at row j of contact c and column `col`; 0: none */
double problem_entry(const contact_problem *p, int c, int j, int col);
/* The block of contact c, row by row. */
void problem_block(const contact_problem *p, int c, double *A);
/* For each contact: normal entry of W, largest tangential entry. */
void problem_diagonal(const contact_problem *p, double *an, double *at);
/* Row j of contact c times x. */
double problem_times(const contact_problem *p, int c, int j, const double *x);
/* u = b + W r */
void problem_velocities(const contact_problem *p, double *u);

/* ---- one contact ---- */
/* Does its law depend on the speed, and is its direction part of the problem? */
static inline bool problem_of_speed(const cone *c)
{
    return c->of_speed && !c->dir;
}
/* The exact solution of contact c alone: A is its block (rows of length lda), b its velocity without its own
   reaction. If the law depends on the speed, mu and radius are set to those at the solution. False: there is
   no solution (the contact jams). */
bool problem_alone(contact_problem *p, int c, const double *A, int lda, const double *b, double *r,
                   double *work);
/* Number of doubles that cone_solve needs as work space for the contacts of the problem. */
size_t problem_work(const contact_problem *p);

/* ---- accuracy of a solution ---- */
/* The largest residual of the natural map, relative to the scale of reactions, for the velocities u; an and
   at are the diagonal entries of the rows (NULL: they are looked up). Residuals of each contact are stored in
   e unless NULL. Sets *worst unless NULL. A number that is not finite counts as the largest. */
double problem_defect(const contact_problem *p, const double *u, const double *an, const double *at,
                      double *e, int *worst);
/* The same for p->r, with velocities computed anew; sets residual and worst. */
double problem_measure(contact_problem *p, double *e, arena *scratch);
#endif
