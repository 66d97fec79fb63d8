/* problem: the contact problem of a step.  Unknown reactions r, velocities u = b + W r, row by row for each
   contact (cone.h).  The same problem with accelerations for velocities is Gauss's principle.  How W is
   stored is known to the functions here: diagonal blocks, rows, W times r. */
#ifndef CDL_PROBLEM_H
#define CDL_PROBLEM_H
#include <stddef.h>
#include "base/arena.h"
#include "cone.h"

struct contact_list;
struct matrix_shape;

/* W = J D^-1 K^T: rows J and K of a list of contacts, the step matrix D */
typedef struct coupled_rows {
    int n; /* dofs */
    const struct contact_list *list;
    const struct matrix_shape *shape;
    const double *D;
    bool changed; /* since the last problem: J, K or D */
    double *dv;   /* n: what the reactions found do to the rates */
} coupled_rows;

/* How far solvers go: all the way; not along the longest ones, as the step can be cut; not along long ones,
   as there is another answer. */
typedef enum { EFFORT_ALL, EFFORT_CUT, EFFORT_LITTLE } solver_effort;

typedef struct contact_problem {
    int n, m;   /* contacts, rows */
    cone *cone; /* n */
    double *b;  /* m: velocities without reactions */
    double *r,
        *u; /* m: reactions, start and solution; velocities with them, or NULL where nobody reads them */
    const double *unit; /* m: of r in each row, see equal.h; NULL: those of the model */
    /* W in one of these forms.  In full, or by its diagonals (2 kb + 1 of them, by rows) where kb > 0; */
    double *W;
    int kb;
    const int *all; /* in full: the numbers 0 .. m-1 */
    /* by rows: those of contact c have entries in the columns col[start[c]..start[c+1]), its own among them:
       val[at[c] + row*(number of them) + k]; */
    const int *start, *col;
    const size_t *at;
    const double *val;
    const coupled_rows *coupled; /* or never formed */
    /* where W is by rows: the list that has rows of the contacts by dof, and the place of each there; NULL:
       they are not known */
    const struct contact_list *list;
    const int *listed;
    /* friction that depends on the slip speed */
    void (*law)(void *ud, int contact, double speed, double *mu, double *radius);
    void *ud;
    double least;  /* of the reactions in play: what rounding leaves of them, over the tolerance */
    double enough; /* a residual that ends the search once what is quick was tried; 0: none */
    double fine;   /* the share of the largest reaction that is rounding, over the tolerance: reaction_fine */
    solver_effort effort;
    int rounds;             /* of Newton and Gauss-Seidel in turn at most; 0: many */
    struct band_work *work; /* of band.c, kept from step to step */
    /* outcome */
    /* natural map: distance of r to the projection of r - rho u, over the largest reaction in play */
    double residual;
    int worst;               /* the contact where it is largest */
    int iterations, choices; /* iterations done; contacts with more than one solution */
    const char *solver;
} contact_problem;

/* ---- W ---- */
/* rows can be read in one piece: by rows or in full */
bool problem_stored(const contact_problem *p);
/* entry of a band */
static inline double *band_at(const contact_problem *p, int i, int j)
{
    return &p->W[(size_t)i * (size_t)(2 * p->kb + 1) + (size_t)(p->kb + j - i)];
}
/* columns in which the rows of contact c have entries, where they are stored so */
static inline int problem_width(const contact_problem *p, int c)
{
    return p->val ? p->start[c + 1] - p->start[c] : p->m;
}
static inline const int *problem_columns(const contact_problem *p, int c)
{
    return p->val ? p->col + p->start[c] : p->all;
}
/* row j of contact c over these */
static inline const double *problem_row(const contact_problem *p, int c, int j)
{
    if (!p->val)
        return p->W + (size_t)(p->cone[c].row + j) * (size_t)p->m;
    return p->val + p->at[c] + (size_t)j * (size_t)problem_width(p, c);
}
void problem_set_rows(contact_problem *p, const int *start, const int *col, const size_t *at,
                      const double *val);
/* The same problem, its full W by rows without zeros; it shares all else. */
contact_problem problem_by_rows(const contact_problem *p, arena *a);
/* entry of W at row j of contact c and column `col`; 0: none */
double problem_entry(const contact_problem *p, int c, int j, int col);
/* the block of contact c, row after row */
void problem_block(const contact_problem *p, int c, double *A);
/* of each contact: normal entry of W, largest tangent entry */
void problem_diagonal(const contact_problem *p, double *an, double *at);
/* row j of contact c times x */
double problem_times(const contact_problem *p, int c, int j, const double *x);
/* u = b + W r */
void problem_velocities(const contact_problem *p, double *u);

/* ---- one contact ---- */
/* Does its law depend on the speed, which is part of the problem? */
static inline bool problem_of_speed(const cone *c)
{
    return c->of_speed && !c->dir;
}
/* The exact solution of contact c alone: A is its block (rows of length lda), b its velocity without its own
   reaction.  Where the law depends on the speed, mu and radius become those at the solution.  False: there is
   none (it jams). */
bool problem_alone(contact_problem *p, int c, const double *A, int lda, const double *b, double *r,
                   double *work);
/* doubles of work that cone_solve needs for the contacts of the problem */
size_t problem_work(const contact_problem *p);

/* ---- how well it is solved ---- */
/* Largest distance to the natural map's fixed point over what reactions are measured by, for the velocities u
   and the diagonal entries of their rows (NULL: they are looked up); of each contact into e where that is
   given. Sets *worst, may be NULL.  A number that is not finite is the largest of all. */
double problem_defect(const contact_problem *p, const double *u, const double *an, const double *at,
                      double *e, int *worst);
/* The same for p->r, with velocities computed anew; fills residual and worst. */
double problem_measure(contact_problem *p, double *e, arena *scratch);
#endif
