/* contact: the one-step contact problem.  Unknown reactions r, velocities u = b + W r, row by row for each
   contact (normal first, then its tangent components): 0 <= r_n  perp  u_n >= 0,      |r_t| <= mu |r_n| +
   radius,      r_t = -(mu |r_n| + radius) u_t/|u_t|  where u_t != 0. The same problem with accelerations for
   velocities is Gauss's principle. */
#ifndef CDL_CONTACT_H
#define CDL_CONTACT_H
#include <stdbool.h>
#include "base/arena.h"

typedef enum {
    CONE_UNILATERAL, /* r_n >= 0, u_n >= 0 */
    CONE_BILATERAL,  /* u_n = 0, r_n free */
    CONE_GIVEN       /* no normal row: the bound of friction is `radius` alone */
} cone_kind;

typedef struct cone {
    cone_kind kind;
    int d;   /* tangent components; 0: no friction */
    int row; /* its first row */
    double mu, radius;
    /* direction of slip when it is known: r_t = -(mu |r_n| + radius) dir; NULL: part of the problem */
    const double *dir;
    bool of_speed; /* mu and radius depend on |u_t|: see contact_problem.law */
    double speed;  /* of_speed: |u_t| before, names the branch to stay on (0: stick) */
} cone;

typedef struct contact_problem {
    int n, m;           /* contacts, rows */
    cone *cone;         /* n */
    double *W, *b;      /* m*m by rows; m */
    double *r, *u;      /* m; r is the start and the solution */
    const double *unit; /* m: of r in each row, see equal.h; NULL: those of the model */
    void (*law)(void *ud, int contact, double speed, double *mu, double *radius);
    void *ud;
    double least; /* of the reactions in play: what rounding leaves of them, over the tolerance */
    /* filled by the solvers: the share of the largest reaction that is rounding, over the tolerance */
    double fine;
    int rounds; /* of Newton and Gauss-Seidel in turn at most; 0: many */
    /* outcome */
    /* natural map: distance of r to the projection of r - rho u, over the largest reaction in play */
    double residual;
    int worst;           /* the contact where it is largest */
    int sweeps, choices; /* iterations done; contacts with more than one solution */
    const char *solver;
} contact_problem;

typedef struct contact_work contact_work;
/* Room for n contacts and m rows, of at most d tangent components each. */
contact_work *contact_work_new(arena *a, int n, int m, int d);
static inline int cone_normal(const cone *c)
{
    return c->kind != CONE_GIVEN;
} /* normal rows: 1 or 0 */
static inline int cone_rows(const cone *c)
{
    return cone_normal(c) + c->d;
}

/* Solves to the tolerance; false when it was not reached (residual, worst tell). */
bool contact_solve(contact_problem *p, contact_work *w, double tol);
/* The same by Uzawa's multipliers: r_n <- [r_n - rho u_n]+, r_t <- the part of r_t - rho u_t within the
 * bound; rho = stiffness, at most what converges (NAN: that). */
bool contact_uzawa(contact_problem *p, contact_work *w, double tol, double stiffness);
/* Fills residual and worst for the r and u at hand. */
double contact_residual(contact_problem *p);
/* Distance of one contact to its fixed point, an and a: its entry of W in the normal row and the largest in
 * the tangent rows; *scale grows to the reactions in play. */
double cone_defect(const cone *c, const double *r, const double *u, const double *b, double an, double a,
                   double *scale);
/* What reactions are measured by: the largest there is, but no more than 10 n times all that the velocities
   in play can ask for.  Beyond that they push against each other to overcome rounding, as disks do that just
   fill the width of a box, and are no measure of anything, but for their own rounding. */
/* as in contact_problem; largest reaction; largest and sum of what velocities ask for */
typedef struct reaction_size {
    double fine, most, asked, all;
    int n;
} reaction_size;
static inline double reaction_fine(double tol)
{
    return 4e-15 / tol;
}
void reaction_add(reaction_size *s, const cone *c, const double *r, const double *b, double an, double a);
double reaction_scale(const reaction_size *s, double least);
/* Gaps up to this may count as closed in a step of size h whose forces change velocities by up to `change` (g
   h): the bodies then rest that far apart, at most 1e-4 of what one step of free fall moves them, and less
   where the tolerance is tighter than 1e-8.  Such gaps make the step problem of a pile nearly a vertex, far
   from the start. */
double contact_micro_gap(double tol, double h, double change);
/* One contact alone: A is its block (rows of length lda), b its velocity without its own reaction; r gets the
 * exact solution.  False: there is none (it jams). */
bool cone_solve(const cone *c, const double *A, int lda, const double *b, double *r, double *work);
enum { CONE_WORK = 3 }; /* work of cone_solve: CONE_WORK*d*(d + 4) doubles */
#endif
