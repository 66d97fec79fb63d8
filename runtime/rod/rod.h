/* rod: geometrically exact rods. Nodes have a position and a unit quaternion; an element has four nodes and
   three points of integration. Quaternions are interpolated as vectors and normalised: strains do not change
   under rigid motions, and depend only on the present state of the rod, not on its history. Increments: dr in
   space, rotations in the frame of the section, q <- q exp(theta/2). */
#ifndef CDL_ROD_H
#define CDL_ROD_H
#include "clock/backend.h"

enum { ROD_NODES = 4, ROD_GAUSS = 3, ROD_DOFS = 6 * ROD_NODES };

/* ---- data from the model ---- */
typedef enum {
    ROD_LENGTH,
    ROD_RADIUS,
    ROD_YOUNG,
    ROD_POISSON,
    ROD_ELEMENTS,
    ROD_DENSITY,
    ROD_MASS,
    ROD_DAMPING,
    ROD_DRAG,
    ROD_NUMBERS
} rod_number;
typedef enum { SHAPE_STRAIGHT, SHAPE_HELIX, SHAPE_CURVE, SHAPE_POINTS } rod_shape;
typedef struct rod_spec {
    const char *name;
    span at;
    kernel number[ROD_NUMBERS]; /* nout == 0: not given */
    span number_at[ROD_NUMBERS];
    kernel stiffness, bending; /* 9 outputs each, or none */
    span stiffness_at, bending_at;
    rod_shape shape;
    span shape_at;
    kernel curve; /* curve: position, 3 outputs of s; helix: radius, pitch */
    /* Natural curvature and twist, 3 outputs of s. */
    kernel curvature;
    span curvature_at;
    /* Natural length over the length of the mesh, a function of s and t; or none. */
    kernel growth;
    span growth_at;
    /* Density of elements along s, in any unit; none: constant. */
    kernel refine;
    span refine_at;
    /* Moments of inertia per length, 9 outputs, or none. */
    kernel inertia;
    span inertia_at;
    bool loaded; /* it starts from the equilibrium under its loads */
    /* At the start, in space, 3 outputs of s each, or none. */
    kernel velocity, spin;
    span start_at;
    /* 3 numbers each. */
    const double *points;
    int npoints;
} rod_spec;

typedef enum {
    LOAD_POSITION,
    LOAD_FRAME,
    LOAD_AXIS,
    LOAD_ROLL,
    LOAD_HINGE,
    LOAD_MOMENT,
    LOAD_FORCE,
    LOAD_MASS,
    LOAD_INERTIA
} rod_load_kind;
/* value: 1, 3 or 9 outputs of t (and s). */
typedef struct rod_load {
    int rod;
    rod_load_kind what;
    bool point, follower;
    kernel s, value;
    span at;
} rod_load;
/* The section of rod b at sb is joined to that of rod a at sa. axis: of a hinge, in space at the start. */
typedef enum { JOIN_RIGID, JOIN_BALL, JOIN_HINGE } rod_join;
typedef struct rod_joint {
    rod_join what;
    int a, b;
    kernel sa, sb, axis;
    span at;
} rod_joint;
typedef enum { TOUCH_RODS, TOUCH_PLANE, TOUCH_CYLINDER, TOUCH_SPHERE } rod_touch;
/* Contact of rod a with itself (b == a), with rod b, or with a body: plane (point, normal), cylinder (point,
   axis, radius), sphere (centre, radius). */
typedef struct rod_pair {
    int contact, a, b;
    rod_touch what;
    bool inside; /* the rod lies within the cylinder or the sphere */
    kernel body;
} rod_pair;
typedef struct rod_program {
    const rod_spec *rod;
    int nrod;
    const rod_load *load;
    int nload;
    const rod_joint *joint;
    int njoint;
    const rod_pair *pair;
    int npair;
} rod_program;

/* ---- meshes ---- */
typedef struct rod_mesh {
    const rod_spec *spec;
    int first, ne, nn; /* nodes first .. first + nn - 1 of all, nn = 3 ne + 1 */
    double length, radius;
    double B[9], A[9]; /* stiffness against stretch and shear; bending and twist */
    /* Per length: mass (0: statics), moments of inertia in the frame of the section. damping: relaxation
       time. */
    double mass, J[9], damping, drag; /* drag: force per length and velocity */
    /* If sections change along the rod, otherwise NULL; radius, B, A and mass are then the largest values.
       Stiffness (9) and bending (9) at the points of integration; radius of each node; for motions in time,
       mass matrices of elements of length 1 (16) and moments of inertia at the nodes (9). */
    double *sections, *radii, *masses, *inertias;
    /* bodies at sections: mass and inertia in the frame of the section, 10 numbers for each node; or NULL */
    double *lumps;
    double *s;       /* arc length of the nodes */
    double *v0, *u0; /* reference strains, [(e*3 + g)*3], for element e and point g */
} rod_mesh;

/* Stiffness at a point of integration, numbered along the rod. */
static inline const double *rod_stretch_at(const rod_mesh *m, int at)
{
    return m->sections ? m->sections + 18 * at : m->B;
}
static inline const double *rod_bend_at(const rod_mesh *m, int at)
{
    return m->sections ? m->sections + 18 * at + 9 : m->A;
}
/* Mass between two nodes of an element, times its length; the others at a node of the rod. */
double rod_mass_at(const rod_mesh *m, int e, int i, int j);
/* NULL: no body is fixed to this node of the rod. */
const double *rod_lump_at(const rod_mesh *m, int node);
const double *rod_inertia_at(const rod_mesh *m, int node);

/* Strains, and their forces and moments, in the frame of the section. */
typedef struct rod_strain {
    double v[3], u[3], n[3], m[3];
} rod_strain;

/* ---- rotations ---- */
void quat_mul(const double *a, const double *b, double *c); /* c must not be a or b */
void quat_matrix(const double *q, double R[9]);             /* q need not have length 1 */
void quat_of_matrix(const double R[9], double *q);
void quat_turn(double *q, const double *theta); /* q <- q exp(theta/2) */
/* to = from exp(theta/2), |theta| <= pi */
void quat_log(const double *from, const double *to, double *theta);
/* to = from cay(phi), |phi| = 2 tan(half the angle) */
void quat_cayley(const double *from, const double *to, double *phi);
void cross3(const double *a, const double *b, double *c);
static inline double dot3(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
double norm3(const double *a);

/* ---- elements ---- */
/* Residual (added to f unless NULL) and tangent K (row by row, overwritten, unless NULL) of element e; adds
   the energies of stretch, shear, bending and twist to `energy`. */
/* given: forces and moments at the points of integration for the second derivatives of strains (NULL: those
   of the state). Newton's method converges much better with forces that follow the increments linearly than
   with those of the state, where a small rotation of a stiff rod causes large ones. */
void rod_element(const rod_mesh *m, int e, const double *r, const double *q, const double *given, double *f,
                 double *K, double *energy);
/* Forces and moments of the state, plus linear changes by dx (unless NULL). */
void rod_element_forces(const rod_mesh *m, int e, const double *r, const double *q, const double *dx,
                        double *given);
/* The same over a step from (r0, q0) to (r1, q1): a residual whose work on the increments of positions and on
   the cay increments of nodes is the change of energy; tangent in state 1. part: weight of the strains of
   state 1, at least 1/2; more than 1/2 dissipates energy. */
void rod_element_step(const rod_mesh *m, int e, const double *r0, const double *q0, const double *r1,
                      const double *q1, const double *given, double part, double *f, double *K);
/* Energy dissipated in such a step. */
double rod_damped(const rod_mesh *m, int e, const double *r0, const double *q0, const double *r1,
                  const double *q1, double part);
/* A force f in the frame of the section at a point x of the element, times weight: subtracts it from the
   residual, and its derivative from the tangent (either may be NULL). */
void rod_element_follow(const rod_mesh *m, int e, const double *q, double x, const double *f, double weight,
                        double *res, double *K);
/* Strains at a point x of the element, 0 <= x <= 1, interpolated from the points of integration. */
void rod_element_strain(const rod_mesh *m, int e, const double *r, const double *q, double x,
                        rod_strain *out);
/* makes the given state the one without strain */
void rod_reference(rod_mesh *m, const double *r, const double *q);
extern const double rod_gauss_x[ROD_GAUSS], rod_gauss_w[ROD_GAUSS];
/* For an element of length 1: mass matrix of its shape functions; lengths assigned to its nodes by the 3/8
   rule. */
extern const double rod_mass[ROD_NODES][ROD_NODES], rod_piece[ROD_NODES];
void rod_shape_at(double x, double *N, double *dN);   /* shape functions on 0..1; either may be NULL */
int rod_find(const rod_mesh *m, double s, double *x); /* element, and position in it */
/* Either may be NULL. */
void rod_at(const rod_mesh *m, const double *r, const double *q, double s, double *position, double *quat);

/* ---- contact ---- */
typedef struct rod_touching { /* a pair of touching points in the final state */
    int pair, a, b;
    double sa, sb, gap, fn, ft[3], x[3], N[3];
    contact_status status;
} rod_touching;

/* ---- results ---- */
/* A node that has the position of another node, or whose frame follows it; hinge: except for rotations about
   the axis, which is given in its own frame. Nodes that others follow come later in the list. */
typedef struct rod_tie {
    int node, to;
    bool turns, hinge;
    double axis[3];
} rod_tie;
/* A point of a branch of equilibria: positions of all nodes. */
typedef struct rod_point {
    double t, energy;
    int unstable;
    const double *r;
} rod_point;
typedef struct rod_result {
    const rod_program *rp;
    const rod_mesh *mesh;
    double *r, *q; /* final positions and quaternions of all nodes */
    /* 6 each: velocities in space, angular velocities in the frame of the section; NULL: statics */
    const double *v;
    double *reaction; /* force and moment (in space) at supported nodes, 6 each */
    /* Supported nodes; samples contain their reactions after the positions of all nodes. */
    const int *support;
    int nsupport;
    double energy[4]; /* stretch, shear, bending, twist */
    const rod_tie *tie;
    int ntie;
    const rod_touching *touch;
    int64_t ntouch;
    /* Loads at which the tangent becomes singular. */
    double *critical;
    int ncritical;
    /* Only with arc length. */
    const rod_point *path;
    size_t npath;
} rod_result;
double rod_writhe(arena *scratch, const rod_result *x, int rod);
/* For straight pieces between every k-th node: faster. */
double rod_writhe_nodes(const rod_result *x, int rod, int every);
/* L about the origin; for rods that move in time. */
void rod_momentum(const rod_result *x, int rod, double *p, double *L);
double rod_twist(const rod_result *x, int rod); /* in turns */

/* ---- backends: auglag and penalty for programs with rods ---- */
/* theta: for steps in time. */
typedef struct rod_options {
    double h, tolerance, stiffness, theta;
    bool penalty, arc;
} rod_options;
#define OPTION_LIMIT                                                                                       \
    {                                                                                                      \
        "limit", OPT_WORD, NAN, 0, 0, "snap|arc",                                                          \
            "of rods, where a load has no equilibrium near: snap to another, or follow the branch by arc " \
            "length",                                                                                      \
            KIND_RODS | KIND_ROD_MOTION                                                                    \
    }
static inline bool rod_arc_asked(const char *word)
{
    return word && word[0] == 'a';
}
/* Does the program move in time? Then its rods have a mass, and the run checks that all have one. */
bool rod_moves(const rod_program *rp);
const char *rod_refuse(const program *p, span *at);
/* Checks a finished run: values are finite, forces balance, energy and momentum agree with the stored states;
   otherwise the run fails. residual is raised to the value found. */
void rod_check(results *r, const run_options *o);
void rod_run(const program *p, const run_options *o, const rod_options *ro, results *r);
#endif
