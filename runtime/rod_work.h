/* rod_work: what the files of the rod solver share. */
#ifndef CDL_ROD_WORK_H
#define CDL_ROD_WORK_H
#include "rod.h"

typedef struct rod_hold { const rod_load *load; int node; double start[4], goal[4]; } rod_hold;  /* position (3), frame (quaternion), axis (3); roll: start is a frame, goal an angle from it */
typedef struct rod_push { const rod_load *load; int node; } rod_push;    /* force or moment at a node; node < 0: along the rod */

/* Matrix entries of contacts, and the whole matrix when there are any: triplets. */
typedef struct rod_sparse { int n, nz, cap; int *i, *j; double *x; } rod_sparse;
void sparse_add(arena *a, rod_sparse *s, int i, int j, double x);

struct rod_contacts;
typedef struct rod_motion rod_motion;
typedef struct rod_work {
    const program *p; const rod_program *rp; const run_options *o; const rod_options *ro; results *r;
    arena *a, *tmp;
    rod_mesh *mesh;
    int N, ndof;                        /* nodes of all rods; 6 N */
    double *pos, *rot;                  /* 3 N, 4 N: now */
    double *pos0, *rot0;                /* at the beginning of the step */
    double *pos1, *rot1, last;          /* before a solve; size of the last increment */
    double *res, *dx;                   /* ndof */
    double *given;                      /* forces and moments at the points of integration, 18 an element */
    rod_hold *hold; int nhold;
    rod_push *push; int npush;
    uint8_t *held;                      /* dofs that are held */
    double *tilt;                       /* 2 a node: what turns across the axis do to the roll there, where it is held; or NULL */
    double *reg, *coord;                /* to run kernels */
    double *u0_start, *u0_goal;         /* natural curvature is reached from that of the shape, before the load; or NULL */
    double scale;                       /* of forces */
    double t;
    double shift, drag;                 /* of the tangent alone; of a viscous motion from pos0, rot0 */
    double viscous;                     /* work that was lost to it; of a motion in time: to damping and contact */
    bool neutral, moments;              /* moments: dead moments, forces that follow or rolls that are held act, which have no energy */
    /* condensed band */
    int nred, *red;                     /* reduced number of a node's first dof, -1: inside an element */
    double *band, *inner, *rhs; int *pivot;
    int sign; double logdet;            /* of the determinant; of what is left of it when the nodes inside are eliminated */
    struct rod_contacts *contact;
    rod_motion *motion;                 /* NULL: statics */
    int64_t iterations;
} rod_work;

/* ---- lines through points ---- */
typedef struct rod_spline rod_spline;
rod_spline *rod_spline_new(arena *a, const double *points, int n);      /* n >= 4 */
double rod_spline_length(const rod_spline *c);
void rod_spline_at(const rod_spline *c, double s, double *x, double *tangent);

double rod_length(const rod_work *w);                                   /* of the longest */
void state_copy(rod_work *w, double *pos, double *rot, const double *pos1, const double *rot1);
void rod_eval(rod_work *w, const kernel *k, double t, int rod, double s, double *out);
bool rod_fail(rod_work *w, span at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));       /* false */
bool rod_build(rod_work *w);                                            /* meshes, shapes, supports; false after a report */
bool rod_supported(rod_work *w);                                        /* says which motion is free */
void rod_update(rod_work *w, const double *dx, double k);               /* moves the state */
/* K dx = -res with the increments of held dofs given in dx; false: singular */
void rod_band_new(rod_work *w);
bool rod_solve_band(rod_work *w, double t);
bool rod_solve_sparse(rod_work *w, double t);
void rod_residual(rod_work *w, double t, double *res);
/* ---- loads ---- */
typedef struct rod_outside { double t, *force, *moment, *follow; } rod_outside;        /* residual of loads and drag; 9 numbers a node: derivatives of moments, of forces in turns */
rod_outside rod_outside_at(rod_work *w, double t);                      /* in w->tmp */
void rod_loads(rod_work *w, double t, double *res);                     /* loads and drag alone */
void rod_element_own(rod_work *w, const rod_mesh *m, int e, const double *given, double *f, double *K);
/* residual (added) and tangent of an element with what acts on it from outside, in the first element that has the node */
void rod_element_loaded(rod_work *w, const rod_mesh *m, int e, const rod_outside *out, const double *given, double *f, double *K);
void forces_follow(rod_work *w, const double *dx);                      /* forces at the points of integration: of the state, or what the increment makes of them */
int rod_unstable(rod_work *w, double t);                                /* directions that lower the energy, without contact */
double rod_small_shift(const rod_work *w);
/* ---- equilibria at a load ---- */
bool holds_at(rod_work *w, double t, double tau);                       /* where what is held goes at t; tau < 1: on the way from the start to the values at t = 0 */
double turn_between(rod_work *w, double t, double dt);                  /* of held frames */
bool rod_equilibrium(rod_work *w, double t);
bool rod_flow(rod_work *w, double t);                                   /* through a viscous motion, with friction */
void rod_nudge(rod_work *w);
bool rod_interrupted(rod_work *w);
bool rod_passed(const rod_work *w, double *pos, double *rot);            /* a rod went through itself since that state */
double rod_drag_work(const rod_work *w);

/* ---- motions in time ---- */
bool rod_motion_new(rod_work *w, double dt);                             /* velocities of the start; dt: the step to come; false after a report */
bool rod_motion_run(rod_work *w, double end, double h, double *reached);
void rod_inertia_put(const rod_work *w, const rod_mesh *m, int e, double *f, double *K);       /* of an element, added; either may be NULL */
double rod_part(const rod_work *w, const rod_mesh *m);                  /* weight of the end of the step in the forces of elements */
double rod_kinetic(const rod_work *w);
double rod_worked(const rod_work *w);                                   /* by loads and supports */
const double *rod_velocities(const rod_work *w);                        /* 6 a node: in space, spin in the frame of the section */
const double *rod_left(const rod_work *w);                              /* residual of the last step */
void rod_sample(rod_work *w, double t);

/* ---- contact ---- */
void contacts_new(rod_work *w);
bool contacts_start(rod_work *w);                                       /* of the run; false: the shape given crosses itself */
void contacts_step(rod_work *w);                                        /* the state is the beginning of a step */
void contacts_find(rod_work *w);                                        /* pairs near each other */
bool contacts_project(rod_work *w);                                     /* closest points and gaps at the state; false: rods went through each other */
/* forces into res, derivatives into K (NULL: not asked) */
void contacts_put(rod_work *w, double *res, rod_sparse *K);
bool contacts_near(const rod_work *w);                                  /* any pair carries force, or may */
void contacts_stiffen(rod_work *w, double stiff);                       /* the springs' forces become multipliers, springs so much stiffer; 1: as at first */
void contacts_predict(rod_work *w, const double *dx, double part);      /* multipliers that go with an increment, before it is taken */
void contacts_springs(rod_work *w, double spring);                      /* no multipliers, springs so much stiffer, until the next step */
void contacts_settle(rod_work *w);
void contacts_soften(rod_work *w);
double contacts_open(const rod_work *w);                                /* the deepest overlap, or the widest gap of a pair that presses */
uint64_t contacts_pattern(const rod_work *w);                           /* hash of who touches, sticks and slips */
void contacts_accept(rod_work *w, int64_t sample);                      /* the step is done */
double contacts_depth(const rod_work *w);
void contacts_save(rod_work *w);
void contacts_restore(rod_work *w);
void contacts_keep(rod_work *w);                                        /* a second place to save to */
void contacts_back(rod_work *w);
void contacts_keep_flow(rod_work *w);                                   /* and a third */
void contacts_back_flow(rod_work *w);
void contacts_result(rod_work *w, rod_result *x);
void contacts_lose(rod_work *w);                                        /* what friction took in the step */
double contacts_dissipated(const rod_work *w);
#endif
