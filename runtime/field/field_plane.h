/* field_plane: a field on a rectangle at work, for the files that solve it. */
#ifndef CDL_FIELD_PLANE_H
#define CDL_FIELD_PLANE_H
#include "field.h"

enum { MAX_LEVELS = 16, MAX_NEWTON = 40, MAX_SETS = 80, SIDES = 4 };
/* what is known on a side: u, its slope across, its second derivative across */
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
    int8_t *act;
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
