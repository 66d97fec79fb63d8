/* cone: the law of one contact. Its rows are the normal one, then its tangential components: 0 <= r_n perp
   u_n >= 0, |r_t| <= mu |r_n| + radius, r_t = -(mu |r_n| + radius) u_t/|u_t| where u_t != 0. Exact solutions
   for one contact alone, its residual, and the derivative of that. */
#ifndef CDL_CONE_H
#define CDL_CONE_H
#include <math.h>
#include <stdbool.h>
#include "base/tolerances.h"

typedef enum {
    CONE_UNILATERAL, /* r_n >= 0, u_n >= 0 */
    CONE_BILATERAL,  /* u_n = 0, r_n free */
    CONE_GIVEN       /* no normal row: the bound of friction is `radius` alone */
} cone_kind;

typedef struct cone {
    cone_kind kind;
    int d;   /* tangential components; 0: no friction */
    int row; /* its first row */
    double mu, radius;
    /* Direction of slip if known: r_t = -(mu |r_n| + radius) dir; NULL: part of the problem. */
    const double *dir;
    bool of_speed; /* mu and radius depend on |u_t|: see contact_problem.law */
    double speed;  /* of_speed: |u_t| in the previous solution, selects the branch (0: stick) */
} cone;

static inline int cone_normal(const cone *c)
{
    return c->kind != CONE_GIVEN;
} /* normal rows: 1 or 0 */
static inline int cone_rows(const cone *c)
{
    return cone_normal(c) + c->d;
}

/* Residual of one contact; an and a: its entry of W in the normal row and the largest in the tangential
   rows; *scale is raised to the size of its reactions. */
double cone_defect(const cone *c, const double *r, const double *u, const double *b, double an, double a,
                   double *scale);
/* The scale of reactions: the largest one, but at most 10 n times the reactions that all velocities could
   require. Larger reactions only push against each other to overcome rounding, like disks that just fill the
   width of a box, and give no scale except for their own rounding. */
/* fine: as in contact_problem; most: largest reaction; asked, all: largest value and sum of what velocities
   require. */
typedef struct reaction_size {
    double fine, most, asked, all;
    int n;
} reaction_size;
static inline double reaction_fine(double tol)
{
    return ROUND_20 / tol;
}
void reaction_add(reaction_size *s, const cone *c, const double *r, const double *b, double an, double a);
double line_defect(reaction_size *s, const cone *c, double r, double u, double b, double a);
static inline bool cone_is_line(const cone *c)
{
    return c->kind == CONE_GIVEN && c->d == 1 && !c->dir;
}
double reaction_scale(const reaction_size *s, double least);
/* One contact alone: A is its block (rows of length lda), b its velocity without its own reaction; r becomes
   the exact solution. False: there is none (it jams). */
bool cone_solve(const cone *c, const double *A, int lda, const double *b, double *r, double *work);
enum { CONE_WORK = 3 }; /* work space of cone_solve: CONE_WORK*d*(d + 4) doubles */

/* ---- one normal and one tangential row, unilateral, b[0] < 0: the common case ---- */
/* over: 1/determinant of A; it is not used unless positive. False: the contact does not stick. */
static inline bool pair_stick(const double *A, double over, double mu, double radius, const double *b,
                              double *r)
{
    r[0] = (A[1] * b[1] - A[3] * b[0]) * over;
    r[1] = (A[2] * b[0] - A[0] * b[1]) * over;
    return over > 0 && r[0] >= 0 && fabs(r[1]) <= mu * r[0] + radius;
}
/* Slip in the direction s, +1 or -1: r_t = -s bound; over: 1/(A00 - s mu A01). False: this is not the
   solution. */
static inline bool pair_slip(const double *A, double s, double over, double mu, double radius,
                             const double *b, double *r)
{
    r[0] = (A[1] * s * radius - b[0]) * over;
    r[1] = -s * (mu * r[0] + radius);
    return over > 0 && r[0] >= 0 && s * (b[1] + A[2] * r[0] + A[3] * r[1]) >= 0;
}
/* The divisors of both, for contacts that are solved many times; 0 if not positive. */
typedef struct cone_pair {
    double A[4], mu, radius;
    double over, left, right;
} cone_pair;
static inline double pair_over(double x)
{
    return x > 0 ? 1 / x : 0;
}
/* With one row, the tangential entry is 1. */
static inline cone_pair pair_of(const double *A, int rows, const cone *c)
{
    cone_pair p = { .A = { A[0], 0, 0, 1 }, .mu = c->mu, .radius = c->radius };
    for (int k = 1; rows == 2 && k < 4; k++)
        p.A[k] = A[k];
    p.over = pair_over(p.A[0] * p.A[3] - p.A[1] * p.A[2]);
    p.left = pair_over(p.A[0] - p.mu * p.A[1]);
    p.right = pair_over(p.A[0] + p.mu * p.A[1]);
    return p;
}
/* Stick, otherwise slip in the direction in which it is driven; false: neither is a solution, use cone_solve.
 */
static inline bool pair_solve(const cone_pair *p, const double *b, double *r)
{
    if (pair_stick(p->A, p->over, p->mu, p->radius, b, r))
        return true;
    bool back = r[1] < 0;
    return pair_slip(p->A, back ? 1 : -1, back ? p->left : p->right, p->mu, p->radius, b, r);
}

/* ---- Newton's method ---- */
typedef enum {
    CONE_OPEN = 1,
    CONE_HELD = 2,
    CONE_STICK = 4,
    CONE_SLIP = 8,
    CONE_BACK = 16, /* slip against its first direction */
    CONE_TURNS = 32 /* slip whose direction is part of the problem: the derivative changes with it */
} cone_mode;
/* Alart and Curnier's map F(r, u) of a contact, 0 at its solution, and its derivatives by r and by u (rows x
   rows each); an, at as for cone_defect. touching: a contact with r_n = u_n = 0 counts as held; chains need
   this to transmit a push, in piles it makes matrices singular. Returns the state of the contact as a sum of
   modes. */
cone_mode cone_newton(const cone *c, const double *r, const double *u, double an, double at, bool touching,
                      double *F, double *Fr, double *Fu);
#endif
