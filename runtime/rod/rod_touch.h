/* rod_touch: types and functions that the files of rod contact share. */
#ifndef CDL_ROD_TOUCH_H
#define CDL_ROD_TOUCH_H
#include "rod_work.h"

enum { WINDOW = 6 };
/* Value, first and second derivative at a point, as sums over nodes. */
typedef struct row {
    int first, n;
    double w[WINDOW], d[WINDOW], dd[WINDOW];
} row;

typedef struct touch {
    int pair, node, rod; /* node of rod a against a point on rod b */
    /* Points on rod b and on rod a: number of the node, with a fraction; length of rod that the node
       represents. */
    double x, y, ds;
    /* y moves to the closest point too; if the distance is nearly constant along the rod, eps (y - mid)^2/2
       keeps it near mid. */
    double eps, mid;
    double gap, far, N[3], last[3]; /* last: the normal in the previous iteration */
    double fn, ft[3];
    contact_status status;
    double lambda, l[3]; /* multipliers; the tangential one in the frame of `other` */
    /* the tangential one that belongs to an increment, in space, until the increment is taken */
    double next[3];
    /* At the start of the step: points, and the two material points in the frames of node and other. */
    double x0, y0, a[3], rho[3];
    int other;
    bool clipped, fixed; /* x is at an end of rod b; y does not move */
    bool fine;           /* stays at its place on rod a: a pair closer than nodes */
    /* iterations in which a spring replaces friction, because the direction of slip reversed and might
       oscillate */
    int turned;
    double along[3]; /* direction of slip */
    /* For a descent: normal, tangential multiplier in space, and bound of friction of the last round. */
    double held_normal[3], held_force[3], bound;
    /* If rods lie along each other: the hats of the line to which this point belongs, and their values there.
     */
    int hats, hat[2];
    double top[2];
    double base[2][3]; /* directions of friction: along the rod and across it; constant during a solve */
} touch;
typedef vec(touch) touches;

/* For rods along each other: forces per length are continuous, and linear between tops of hats. Gap and slip
   of a hat are means over its points, weighted with the hat; its forces follow from their work on gap and
   slip. */
enum { HAT_PLACES = 4 };
/* Nodes between the tops of neighbouring hats: an element. With half of it, forces of hats in the middle of
   elements differ from those at their ends. */
#define HAT 3.0
typedef struct line_hat {
    int pair, n, place[HAT_PLACES]; /* its points in the list of touches */
    double share[HAT_PLACES];       /* weights of the means */
    /* Its top on rod a, and the opposite point on rod b, as numbers of nodes; the length that it represents.
     */
    double at, x, width;
    double lambda, l[2], next[2]; /* multipliers, in the directions of friction of its points */
    double bound;                 /* of friction, in the last round of a descent */
    double gap, slip[2], fn, f[2];
    double held_fn, held_f[2]; /* forces whose rotation with normals and sections is differentiated */
    /* Derivatives of forces: of the normal one by the gap, of friction by slip and by the normal force. */
    double give, grip[4], rough[2];
    contact_status status;
} line_hat;
typedef vec(line_hat) line_hats;

/* What a solve changes. */
typedef struct contact_state {
    touches list;
    line_hats line;
} contact_state;

typedef struct rod_contacts {
    touches list; /* points of lines come first */
    line_hats line;
    int least_line; /* number of hats of the shortest line: below it, pairs of points are accurate enough */
    contact_state saved, flowing, tried, watched, parted, arc[2];
    double *k, *mu, *clear; /* for each pair: stiffness, friction, distance at which the gap is 0 */
    /* For each pair, in statics: additional distance, so that lines do not overlap between the points at
       which they are held. */
    double *skin;
    int cramped; /* failed steps in a row with it */
    double grip; /* stiffness of sticking friction, relative to that of the springs */
    bool stiff;  /* multipliers are unknowns that change with every increment */
    /* For each pair: the small compliance that remains then, much stiffer than the rods at the distance of
       their nodes. */
    double *hard;
    bool refining; /* pairs closer than nodes may be placed */
    /* counting: slipping pairs are free to slip, for counting directions; smooth: friction is ignored */
    bool counting, smooth;
    /* Friction is that of the last round: bound, normal and multiplier do not depend on the state, so that it
       has a potential. */
    bool lagged;
    bool *tresca;
    bool thinned; /* pairs with rough bodies are two nodes apart */
    double *body; /* for each pair: point, direction, radius */
    /* dissipated0: at the start of the step; before: at the points of an arc. */
    double dissipated, dissipated0, before[2];
    int *head, *next;
    int cells;
    double *seen; /* positions at the last search of pairs */
} rod_contacts;

static inline const rod_pair *pair_of(const rod_work *w, const touch *c)
{
    return &w->rp->pair[c->pair];
}
static inline const rod_mesh *slave_of(const rod_work *w, const touch *c)
{
    return &w->mesh[pair_of(w, c)->a];
}

/* ---- closest points ---- */
void row_at(const rod_mesh *m, double x, row *r);
void row_sum(const rod_mesh *m, const row *r, const double *w, const double *pos, double *x);
void slave_point(const rod_work *w, const touch *c, double y, const double *pos, double *x);
/* The outward normal of a body at a point, and the distance. */
double body_normal(const rod_work *w, const touch *c, const double *p, double *N);
/* Normal and gap in the state; false: there is no closest point nearby. */
bool touch_project(const rod_work *w, touch *c);
bool touch_place(const rod_work *w, touch *c); /* the same for a new pair of rods */
/* The least gap of the smooth lines near a pair. */
double touch_least(const rod_work *w, const touch *c, touch *where);
double touch_pinned(const rod_mesh *m); /* an eps that keeps a point in place */
/* A pair that was kept near its old point is now kept near its current one. */
void touch_centre(const rod_work *w, touch *c);
/* The material points that coincide in that state. */
void touch_start(const rod_work *w, touch *c, const double *pos, const double *rot);
/* The frame in which multipliers are stored: that of the other section; for bodies the identity. */
void other_matrix(const rod_work *w, const touch *c, double *R);
/* The point on the other side from which slip is measured, without the rotation of its section. */
void other_place(const rod_work *w, const touch *c, double *q);

double place_of(const rod_mesh *m, double x); /* arc length at a node number with a fraction */
/* If both points are held, their distance is fixed, so the pair carries no force. */
bool touch_held(const rod_work *w, const touch *c);
/* Nodes of rod b that are nearer to x than their neighbours, at most `most`; call fill_near for the pair
   first. */
void fill_near(rod_work *w, int pair, double reach);
int nodes_near(const rod_work *w, int pair, const double *x, double reach, int *node, int most);

/* ---- lines ---- */
/* Finds where rods lie along each other at the start of a step: points and hats, with the current forces. */
void lines_new(rod_work *w);
void lines_base(rod_work *w);               /* directions of friction in the state */
void lines_force(rod_work *w);              /* gaps, slips and forces of hats, and those of their points */
void lines_put(rod_work *w, rod_sparse *K); /* derivatives beyond those of single points */
void lines_predict(rod_work *w, const double *dx, double part);
double lines_energy(const rod_work *w);
void lines_keep(rod_work *w); /* their forces become multipliers, in the directions of the state */
void lines_hold(rod_work *w); /* also bounds of friction, for a descent */
/* both; returns the largest change of a force; *most: the largest force */
double lines_round(rod_work *w, double *most);

/* ---- forces ---- */
/* Does a pair press, with springs or multipliers? Its force, the force that rotates with its normal, and its
   derivative by the gap. */
contact_status press_of(const rod_contacts *k, int pair, double lambda, double gap, double *fn, double *held,
                        double *give);
/* Slip since the start of the step; Ri, Rj: frames of the two sections. */
void touch_slip(const rod_work *w, const touch *c, const double *Ri, const double *Rj, double *g);
void contacts_multiplier(const rod_work *w, touch *c,
                         const double *f); /* f, in space, becomes the tangential multiplier */
void touch_force(rod_work *w, touch *c);   /* fn, ft and status in the state */

#endif
