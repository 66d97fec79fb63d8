/* rod_touch: what the files of contact between rods share. */
#ifndef CDL_ROD_TOUCH_H
#define CDL_ROD_TOUCH_H
#include "rod_work.h"

enum { WINDOW = 6 };
/* value, first and second derivative at a place, as sums over nodes */
typedef struct row {
    int first, n;
    double w[WINDOW], d[WINDOW], dd[WINDOW];
} row;

typedef struct touch {
    int pair, node, rod; /* node of rod a against a place on rod b */
    /* places on rod b and on rod a: number of the node, with a fraction; length that the node stands for */
    double x, y, ds;
    /* y moves to the closest place too; where the distance is flat along the rod, eps (y - mid)^2/2 keeps it
     * near */
    double eps, mid;
    double gap, far, N[3], last[3]; /* last: the normal one iteration ago */
    double fn, ft[3];
    contact_status status;
    double lambda, l[3]; /* multipliers; the tangential one in the frame of `other` */
    double next[3];      /* the tangential one that goes with an increment, in space, until it is taken */
    /* the beginning of the step: place, the two material points in the frames of node and other */
    double x0, y0, a[3], rho[3];
    int other;
    /* turned: the direction of slip is not that of one iteration ago; a spring in its place keeps it from
     * swinging to and fro */
    bool clipped, fixed;
    bool fine; /* stays where it is on rod a: among pairs closer than nodes */
    int turned;
    double along[3]; /* that direction */
    /* of a descent: normal, tangential multiplier in space and bound of friction of the last round */
    double held_normal[3], held_force[3], bound;
    /* where rods lie along each other: so many hats of the line it is a place of, which, and their values
     * there */
    int hats, hat[2];
    double top[2];
    double base[2][3]; /* directions of friction: along the rod and across it; held during a solve */
} touch;
typedef vec(touch) touches;

/* Where rods lie along each other: forces per length are continuous, and linear between tops of hats.  Gap
   and slip of a hat are means of those at its places, weighted by the hat; what its forces do is their work
   on them. */
enum { HAT_PLACES = 4 };
/* nodes from the top of a hat to the next: an element.  With half of it forces of hats in the middle of
 * elements and at their ends differ. */
#define HAT 3.0
typedef struct line_hat {
    int pair, n, place[HAT_PLACES]; /* its places in the list of touches */
    double share[HAT_PLACES];       /* weights of the means */
    /* its top on rod a, and across from it on rod b, as numbers of nodes; the length that it stands for */
    double at, x, width;
    double lambda, l[2], next[2]; /* multipliers, in the directions of its places */
    double bound;                 /* of friction, of the last round of a descent */
    double gap, slip[2], fn, f[2];
    double held_fn, held_f[2]; /* that turn with normals and sections */
    /* derivatives of forces: of the normal one by the gap, of friction by slip and by the normal force */
    double give, grip[4], rough[2];
    contact_status status;
} line_hat;
typedef vec(line_hat) line_hats;

/* what a solve changes */
typedef struct contact_state {
    touches list;
    line_hats line;
} contact_state;

typedef struct rod_contacts {
    touches list; /* places of lines first */
    line_hats line;
    int least_line; /* hats of a line: shorter ones end where they begin, and pairs of points do as well */
    contact_state saved, flowing, tried, watched, parted, arc[2];
    double *k, *mu, *clear; /* of each pair: stiffness, friction, distance that gap 0 means */
    /* of each pair, in statics: so much further apart, that the lines do not overlap between the places where
     * they are held */
    double *skin;
    int cramped; /* steps in a row that failed with it */
    double grip; /* stiffness of what sticks, by that of the springs */
    bool stiff;  /* multipliers are unknowns that move with every increment */
    /* of each pair: the little give that is left to them then, stiffer by far than the rods at the distance
     * of their nodes */
    double *hard;
    bool refining;         /* pairs closer than nodes may be placed */
    bool counting, smooth; /* directions: pairs that slip are free to; friction is left out */
    /* friction is that of the last round: a bound, a normal and a multiplier that do not follow the state, so
     * that it has a potential */
    bool lagged;
    bool *tresca;
    bool thinned; /* pairs with rough bodies stand two nodes apart */
    double *body; /* of each pair: point, direction, radius */
    /* 0: at the beginning of the step; before: at the points of an arc */
    double dissipated, dissipated0, before[2];
    int *head, *next;
    int cells;
    double *seen; /* positions when pairs were looked for */
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
/* the way out of a body from a point, and how far */
double body_normal(const rod_work *w, const touch *c, const double *p, double *N);
/* normal and gap at the state; false: no closest point nearby */
bool touch_project(const rod_work *w, touch *c);
bool touch_place(const rod_work *w, touch *c); /* the same for a new pair of rods */
/* the least gap of the smooth lines near a pair */
double touch_least(const rod_work *w, const touch *c, touch *where);
double touch_pinned(const rod_mesh *m); /* an eps that leaves a place where it is */
/* a pair that is kept near where it was is from now on kept near where it is */
void touch_centre(const rod_work *w, touch *c);
/* the material points that lie on each other in that state */
void touch_start(const rod_work *w, touch *c, const double *pos, const double *rot);
/* the frame that multipliers are kept in: that of the other section; a body stands still */
void other_matrix(const rod_work *w, const touch *c, double *R);
/* the place on the other side that the slip is measured from, without the turn of its section */
void other_place(const rod_work *w, const touch *c, double *q);

double place_of(const rod_mesh *m, double x); /* arc length at a number of a node, with a fraction */
/* two points that are held keep their distance, whatever presses them: such a pair carries no force */
bool touch_held(const rod_work *w, const touch *c);
/* nodes of rod b that are nearer to x than those beside them, at most `most`; fill_near for the pair before
 */
void fill_near(rod_work *w, int pair, double reach);
int nodes_near(const rod_work *w, int pair, const double *x, double reach, int *node, int most);

/* ---- lines ---- */
/* where rods lie along each other at the beginning of a step: places and hats, with the forces that are there
 */
void lines_new(rod_work *w);
void lines_base(rod_work *w);               /* directions of friction at the state */
void lines_force(rod_work *w);              /* gaps, slips, forces of hats, and those of their places */
void lines_put(rod_work *w, rod_sparse *K); /* what places do not have by themselves */
void lines_predict(rod_work *w, const double *dx, double part);
double lines_energy(const rod_work *w);
void lines_keep(rod_work *w); /* their forces become multipliers, in directions at the state */
void lines_hold(rod_work *w); /* and, of a descent, bounds of friction */
double lines_round(rod_work *w, double *most); /* both; the largest change of a force, and the largest */

/* ---- forces ---- */
/* a pair that presses or not, with springs or multipliers: its force, that which turns with its normal, and
 * what it gives way by */
contact_status press_of(const rod_contacts *k, int pair, double lambda, double gap, double *fn, double *held,
                        double *give);
/* slip since the beginning of the step; frames of the two sections */
void touch_slip(const rod_work *w, const touch *c, const double *Ri, const double *Rj, double *g);
void contacts_multiplier(const rod_work *w, touch *c,
                         const double *f); /* f, in space, becomes the tangential one */
void touch_force(rod_work *w, touch *c);   /* fn, ft and status at the state */

#endif
