/* field_plane: the working data of a field on a rectangle, shared by the files that solve it. */
#ifndef CDL_FIELD_PLANE_H
#define CDL_FIELD_PLANE_H
#include "field.h"
#include <math.h>

enum { MAX_LEVELS = 28, MAX_NEWTON = 40, SIDES = 4 };
/* which quantity is known on a side: u, its slope across, its second derivative across */
enum { SIDE_GIVEN = 1, SIDE_SLOPE = 2, SIDE_BEND = 4 };

/* slope: u_n = slope + per_u*u, along the coordinate */
typedef struct side {
    uint8_t *known;
    double *value, *slope, *per_u, *bend;
} side;
typedef struct level {
    int m[2];
    int64_t n;
    double h[2], *x[2];
    side s[SIDES];  /* x lo, x hi, y lo, y hi */
    uint8_t *fix;   /* u is given there */
    double *a, *f0; /* rows: sum a[k*nc + j] u[k + offset j] + f0[k] */
    double *u, *lo, *hi, *e, *r, *t, *old;
    int8_t *act, *wanted;
    int32_t *strip; /* free nodes next to the contact set */
    int64_t nstrip;
    /* to the next coarser level */
    int *ci[2];
    double *wi[2];
    /* coefficient of the flux from a node to the next one in each direction; NULL: it does not jump */
    double *edge[2];
    int steps;
} level;
typedef struct plane {
    /* planes of the fields, this one among them */
    int field, nf;
    struct plane *all;
    field_work *w;
    const field_program *fp;
    const line_options *o;
    const field_form *f;
    int order, nc, radius;
    int dx[25], dy[25];
    /* 0 is the finest */
    level at[MAX_LEVELS];
    int nlevel;
    int steps;
} plane;

/* the row of node k applied to v, without its constant */
static inline double row_at(const plane *p, const level *l, const double *v, int64_t k)
{
    const double *a = l->a + k * p->nc;
    double s = 0;
    for (int q = 0; q < p->nc; q++)
        if (a[q] != 0)
            s += a[q] * v[k + p->dy[q] * l->m[0] + p->dx[q]];
    return s;
}

/* the largest |u| */
static inline double level_size(const level *l)
{
    double s = 0;
    for (int64_t k = 0; k < l->n; k++)
        s = fabs(l->u[k]) > s ? fabs(l->u[k]) : s;
    return s;
}

/* a function on the coarser grid at node (i, j) of this one */
static inline double coarse_at(const level *l, const level *c, const double *v, int i, int j)
{
    int64_t q = (int64_t)l->ci[1][j] * c->m[0] + l->ci[0][i];
    double wi = l->wi[0][i], wj = l->wi[1][j], s = (1 - wi) * (1 - wj) * v[q];
    if (wi > 0)
        s += wi * (1 - wj) * v[q + 1];
    if (wj > 0)
        s += (1 - wi) * wj * v[q + c->m[0]];
    if (wi > 0 && wj > 0)
        s += wi * wj * v[q + c->m[0] + 1];
    return s;
}

/* ---- the linear problem with obstacles on one level (plane_sets.c, plane_multigrid.c) ---- */
/* stiffness of the soft bed that replaces the obstacle, 0: it is hard */
static inline double spring_of(const plane *p)
{
    return p->o->eps > 0 ? 1 / p->o->eps : 0;
}
/* u is known at node k: given there, or that of the obstacle */
static inline bool is_held(const plane *p, const level *l, int64_t k)
{
    return l->fix[k] || (l->act[k] && p->o->eps <= 0);
}
static inline double diagonal(const plane *p, const level *l, int64_t k)
{
    return l->a[k * p->nc + p->nc / 2] + (l->act[k] ? spring_of(p) : 0);
}
/* what row k leaves with u, the spring of a soft bed included */
static inline double row_defect(const plane *p, const level *l, int64_t k)
{
    double F = row_at(p, l, l->u, k) + l->f0[k];
    if (l->act[k] && p->o->eps > 0)
        F += (l->u[k] - (l->act[k] > 0 ? l->lo[k] : l->hi[k])) * spring_of(p);
    return F;
}
/* required accuracy of u on a level; on the finest: rounding, amplified by the system */
double level_tolerance(const plane *p, const level *l);
/* contact set and u of the linearised problem on level k; false after a report or an interrupt */
bool obstacle_solve(plane *p, int k);
/* u of level k for the current contact set, to tolerance; false: the iteration does not converge */
bool multigrid_solve(plane *p, int k, double tolerance);
/* one cycle: its largest change */
double multigrid_cycle(plane *p, int k);
/* a bound of the error that a cycle leaves, from its change and that of the cycle before */
double cycle_left(double change, double before);
/* the contact set of level k, on all coarser ones */
void contact_to_coarse(plane *p, int k);
bool sparse_solve(plane *p, level *l); /* the same by factorisation; false: singular, or it was reported */

/* a coefficient at a node that may be a ghost, folded back; adds to row (a, f0) of node (i, j) */
void row_fold(const plane *p, const level *l, int i, int j, int di, int dj, double k, double *a, double *f0);

/* ---- what jumps inside cells (field_flux.c) ---- */
void edges_make(plane *p, level *l); /* coefficients of fluxes along the edges of the grid */
/* per*(what flows out of a node's cell), added to its row */
void row_fluxes(const plane *p, const level *l, int i, int j, double *a, double *f0);
/* the mean of a form that has cases over the cell of a node; out: value and derivatives */
typedef struct {
    const plane *p;
    const level *l;
    const field_form *f;
    const double *at, *jets;
} cell_form;
void form_mean(const cell_form *c, double *out);
#endif
