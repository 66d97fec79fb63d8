/* rod_work: what the files of the rod solver share. */
#ifndef CDL_ROD_WORK_H
#define CDL_ROD_WORK_H
#include "clock/clock.h"
#include "rod.h"

/* position (3), frame (quaternion), axis (3); roll: start is a frame, goal an angle from it */
typedef struct rod_hold {
    const rod_load *load;
    int node;
    double start[4], goal[4];
} rod_hold;
/* force or moment at a node; node < 0: along the rod */
typedef struct rod_push {
    const rod_load *load;
    int node;
} rod_push;

/* Matrix entries of contacts, and the whole matrix when there are any: triplets. */
typedef struct rod_sparse {
    int n, nz, cap;
    int *i, *j;
    double *x;
} rod_sparse;
void sparse_add(arena *a, rod_sparse *s, int i, int j, double x);
/* columns of a matrix from its triplets, like ones added; rows within them in no order */
typedef struct rod_columns {
    int *p, *i;
    double *x;
} rod_columns;
rod_columns rod_columns_of(arena *a, const rod_sparse *s);
/* A x = b, x in place of b; A symmetric, its lower half given; false: not positive */
bool rod_solve_positive(int n, const rod_columns *A, double *b);

struct rod_contacts;
typedef struct rod_ties rod_ties;
typedef struct rod_motion rod_motion;
/* Places and turns of all nodes. */
typedef struct rod_places {
    double *pos, *rot;         /* 3 N, 4 N: now */
    double *pos0, *rot0;       /* at the beginning of the step */
    double *pos1, *rot1, last; /* before a solve; size of the last increment */
    double *linked, link;      /* positions whose link is known */
} rod_places;

/* What holds and pushes rods. */
typedef struct rod_ends {
    rod_hold *hold;
    int nhold;
    rod_push *push;
    int npush;
    uint8_t *held;          /* dofs that are held */
    int *support, nsupport; /* nodes with any */
    double *tilt; /* 2 a node: what turns across the axis do to the roll there, where it is held; or NULL */
} rod_ends;

/* The condensed band. */
typedef struct rod_band {
    int nred, *red; /* reduced number of a node's first dof, -1: inside an element */
    double *band, *inner, *rhs;
    int *pivot;
    int sign; /* of the determinant */
} rod_band;

/* On the way to the equilibrium that a motion starts from the loads of t = 0 grow: the part that does not act
 * yet. */
typedef struct rod_growth {
    bool on;
    double missing;
    /* natural strains and sections of the shapes at the points of integration, where those that act change
     * with t; or NULL */
    double *strains, *sections;
} rod_growth;

typedef struct rod_work {
    const program *p;
    const rod_program *rp;
    const run_options *o;
    const rod_options *ro;
    results *r;
    arena *a, *tmp;
    rod_mesh *mesh;
    int N, ndof; /* nodes of all rods; 6 N */
    rod_places state;
    rod_ends ends;
    rod_band linear;
    double *res, *dx; /* ndof */
    /* increment of the last step, how long it was (0: none to go by), how long the next is */
    double *way, way_dt, guess;
    double *given;       /* forces and moments at the points of integration, 18 an element */
    double *reg, *coord; /* to run kernels */
    /* natural strains (v0, u0) are reached from those of the shape, before the load; or NULL */
    double *start0, *goal0;
    double scale, unit; /* of forces; of lengths in the linear problem, a power of two */
    double t;
    double shift, drag; /* of the tangent alone; of a viscous motion from pos0, rot0 */
    double viscous;     /* work that was lost to it; of a motion in time: to damping and contact */
    /* moments: some act that have no energy: dead ones and forces that follow, which last, or those of rolls
     * that are held */
    bool neutral, moments, lasting;
    bool brief; /* Newton's method is to find a state soon, or not at all */
    bool start; /* on the way from a shape that was only drawn, which is no motion */
    rod_growth grown;
    struct rod_contacts *contact;
    rod_ties *ties;     /* sections that are joined, or held by hinges; NULL: none */
    rod_motion *motion; /* NULL: statics */
    int64_t iterations;
    run_clock clock; /* along a load; a motion in time has one of its own */
} rod_work;

/* ---- lines through points ---- */
typedef struct rod_spline rod_spline;
rod_spline *rod_spline_new(arena *a, const double *points, int n); /* n >= 4 */
double rod_spline_length(const rod_spline *c);
void rod_spline_at(const rod_spline *c, double s, double *x, double *tangent);

double rod_length(const rod_work *w);       /* of the longest */
double rod_least_radius(const rod_work *w); /* of those that may touch */
void state_copy(rod_work *w, double *pos, double *rot, const double *pos1, const double *rot1);
void rod_eval(rod_work *w, const kernel *k, double t, int rod, double s, double *out);
bool rod_fail(rod_work *w, span at, const char *fmt, ...) __attribute__((format(printf, 3, 4))); /* false */
/* what one section is; where sections change, after the mesh is there; false after a report */
bool rod_section(rod_work *w, int rod);
bool rod_section_along(rod_work *w, int rod);
bool rod_lumps(rod_work *w, int rod);
bool rod_varies(const rod_spec *sp); /* its section changes along it */
/* natural strains that change with t: of the shapes, in the end; at t, part of the way to them */
bool rod_grow_new(rod_work *w);
bool rod_grow(rod_work *w, double t, double tau);
void rod_driving(rod_work *w, double t, double *res);
bool rod_build(rod_work *w);                              /* meshes, shapes, supports; false after a report */
bool rod_supported(rod_work *w);                          /* says which motion is free */
void rod_update(rod_work *w, const double *dx, double k); /* moves the state */
/* K dx = -res with the increments of held dofs given in dx; false: singular */
void rod_band_new(rod_work *w);
bool rod_solve_band(rod_work *w, double t);
/* Real negative ones among the eigenvalues nearest to zero of the tangent of the last such solve; its nodes
 * inside elements are eliminated.  least: that of the nearest, without its sign. */
int rod_negative(rod_work *w, double *least);
double rod_unit(const rod_work *w, int dof); /* of the linear problem */
/* and K dy = -rate, the increments of held dofs given in dy, where dy is not NULL; without
 * contact, and with it */
bool rod_solve_two(rod_work *w, double t, const double *rate, double *dy);
bool rod_solve_sparse(rod_work *w, double t, const double *rate, double *dy);
void rod_residual(rod_work *w, double t, double *res);
/* ---- joints ---- */
/* what turns or moves a dof of a node: so many unknowns, by their place among the dofs, and their weights */
enum { ROD_TERMS = 8 };
typedef struct rod_terms {
    int n, slot[ROD_TERMS];
    double c[ROD_TERMS];
} rod_terms;
bool rod_ties_meet(rod_work *w); /* moves rods to where they are joined; false after a report */
bool rod_ties_new(rod_work *w);  /* after the supports */
bool rod_tied_supported(rod_work *w);
void rod_terms_of(const rod_work *w, int node, rod_terms t[6]);
void rod_term_of(const rod_work *w, int dof, rod_terms *to);
bool rod_is_unknown(const rod_work *w, int dof);
bool rod_is_spare(const rod_work *w, int dof);  /* none, but among the unknowns to fill up three */
void rod_spread(const rod_work *w, double *dx); /* increments of unknowns become those of all nodes */
void rod_gather(const rod_work *w, double *f);  /* forces at the nodes become those of the unknowns */
void rod_follow(const rod_work *w, double *v);  /* velocities of nodes that follow others rigidly */
/* driven: of each node, 1 its place, 2 its frame; what a node has of it from those that it follows */
uint8_t rod_driven_by(const rod_work *w, int node, const uint8_t *driven);
/* a turn or moment of a node in its frame, on the axes of its unknowns; and back */
void rod_on_axes(const rod_work *w, int node, double *x);
void rod_off_axes(const rod_work *w, int node, double *x);
/* what the turn of hinges does to moments: derivatives, f: forces at the nodes; added */
void rod_hinges_put(const rod_work *w, const double *f, rod_sparse *S);
void rod_ties_before(const rod_work *w); /* around a change of the state by k dx */
void rod_ties_after(const rod_work *w, const double *dx, double k);
const rod_tie *rod_ties_list(const rod_work *w, arena *a, int *n);
int rod_node_at(const rod_mesh *m, double s); /* the end of an element nearest to s */
/* ---- loads ---- */
/* residual of loads and drag; 9 numbers a node: derivatives of moments, of forces in turns */
typedef struct rod_outside {
    double t, *force, *moment, *follow;
} rod_outside;
rod_outside rod_outside_at(rod_work *w, double t);  /* in w->tmp */
void rod_loads(rod_work *w, double t, double *res); /* loads and drag alone */
void rod_element_own(rod_work *w, const rod_mesh *m, int e, const double *given, double *f, double *K);
/* residual (added) and tangent of an element with what acts on it from outside, in the first element that has
 * the node */
void rod_element_loaded(rod_work *w, const rod_mesh *m, int e, const rod_outside *out, const double *given,
                        double *f, double *K);
/* forces at the points of integration: of the state, or what the increment makes of them */
void forces_follow(rod_work *w, const double *dx);
int rod_unstable(rod_work *w, double t); /* directions that lower the energy and keep what touches */
/* At least and at most so many: those whose eigenvalue is smaller than `shift` are left out, and counted.
 * rod_rounding: so large a shift that motions which cost nothing are among these, whatever rounding makes of
 * them. */
typedef struct rod_range {
    int least, most;
} rod_range;
rod_range rod_unstable_range(rod_work *w, double t, double shift);
double rod_rounding(const rod_work *w);
/* it touches, and friction acts or moments without energy: stability is not checked */
bool rod_unclear(const rod_work *w);
double rod_small_shift(const rod_work *w);
/* ---- equilibria at a load ---- */
/* where what is held goes at t; tau < 1: on the way from the start to the values at t = 0 */
bool holds_at(rod_work *w, double t, double tau);
void holds_put(rod_work *w); /* into dx: increments that bring what is held to its goal */
double turn_between(rod_work *w, double t, double dt); /* of held frames */
/* of an increment: positions by the length, and angles */
double rod_size(const rod_work *w, const double *dx, double *turn);
/* Of the increment dx that may be taken: turns stay moderate, and rods that may touch do not jump over each
   other; room: those that are far from all others may move further, or else no node moves by more than most
   of a radius. */
double rod_part_of(const rod_work *w, double turn, double most_turn, bool room);
bool rod_gaps_closed(const rod_work *w); /* to the tolerance */
/* Newton's method with the multipliers of contact among its unknowns; on a viscous motion as exact as the
 * next of its steps needs */
bool rod_close_gaps(rod_work *w, double t);
bool rod_equilibrium(rod_work *w, double t);
/* an equilibrium whose rods overlap nowhere, near one that was found; false: none, as before */
bool rod_apart(rod_work *w, double t);
/* of rods that touch, by a descent of their energy; parted: from a state in which lines overlap */
bool rod_descend(rod_work *w, double t, bool parted);
bool rod_has_potential(const rod_work *w); /* loads and supports, in equilibria: what a descent needs */
bool rod_flow(rod_work *w, double t);      /* through a viscous motion, with friction */
void rod_nudge(rod_work *w);
void rod_way(rod_work *w, double dt); /* the step from pos0, rot0 is done, dt long; 0: it was a jump */
void rod_go_on(rod_work *w);          /* a first guess of a step `guess` long: the same way again */
bool rod_interrupted(rod_work *w);
/* a rod went through itself since that state, where it touched or not; brief: if it moved far enough */
bool rod_passed(rod_work *w, double *pos, double *rot, bool touched, bool brief);
double rod_writhes(const rod_work *w, double *pos); /* of all rods that may touch themselves */
double rod_drag_work(const rod_work *w);

/* ---- along a load ---- */
enum { ROD_CRITICAL = 64 };
typedef struct rod_path {
    /* modes: rod_character of the last state */
    double critical[ROD_CRITICAL];
    int ncritical, modes;
    /* modes of a state in contact that could not be left, or only for one like it: tried again when they
     * change */
    int stuck;
    bool moments; /* whether modes without energy were reported */
    int descents; /* so many states in a row were found by a descent alone */
    /* where moments have no energy: rod_negative of the last state */
    int negative;
    double near;
    double *pos, *rot;     /* at the start */
    vec(rod_point) points; /* by arc length alone */
} rod_path;
double rod_elastic(rod_work *w, double *e); /* all four kinds, and their sum */
/* Along a load: a sample.  rod_fill: its columns, there and in time. */
void rod_sample(rod_work *w, double t);
bool rod_fill(void *of, run_clock *c, int64_t at, energies *e);
/* Newton's method, a descent of the energy, a viscous motion */
typedef enum { BY_NEWTON, BY_DESCENT, BY_FLOW } rod_way_to;
/* false: the state is as before */
bool rod_step(rod_work *w, double t, double tau, rod_way_to by);
/* directions that lower the energy; the sign of the determinant where moments have none */
int rod_character(rod_work *w, double t);
/* lists the loads between two states at which the tangent is singular; the second is the state of w, the
 * first is pos0, rot0 */
/* Whether some motion cost nothing at that state, and does now: rounding decides whether the tangent has a
 * negative eigenvalue for it. */
bool rod_loose_since(rod_work *w, const double *pos0, const double *rot0, double before, double now);
/* the known number of unstable directions, unless it is certain that there are more or fewer */
int rod_certain(rod_work *w, double t, int known);
/* rod_character at the start, without motions that cost nothing */
int rod_modes_start(rod_work *w);
void rod_watch(rod_work *w, rod_path *p, double before, double now);
void rod_path_start(rod_work *w, rod_path *p); /* the equilibrium at t = 0 was found */
void rod_path_point(rod_work *w, rod_path *p, double t);
/* in steps of at most h, halved when Newton's method fails */
bool rod_march(rod_work *w, double end, double h, bool start, rod_path *p, double *reached);
/* ---- arc length ---- */
/* From the equilibrium at a load through limit points, which are listed, to where the branch is stable again
   beyond them: true, and the load there.  Without limit points: beyond the goal.  False: it does not come
   back, or only the first limit point is wanted; the state is put back. */
bool rod_arc(rod_work *w, rod_path *p, double from, double goal, double end, bool whole, double *to);
double rod_reach(rod_work *w, double t, double end); /* |dx/dt| at an equilibrium; 0: not known */
double rod_distance(rod_work *w, const double *pos, const double *rot); /* of the state from that one */
/* ---- motions in time ---- */
/* velocities of the start; dt: the step to come; false after a report */
bool rod_motion_new(rod_work *w, double dt);
extern const stepper rod_motion_stepper;
/* of an element, added; either may be NULL */
/* of an element: drag against the motion of the step, its work is given back; f and K added, or NULL */
double rod_resist_put(const rod_work *w, const rod_mesh *m, int e, double *f, double *K);
void rod_inertia_put(const rod_work *w, const rod_mesh *m, int e, double *f, double *K);
/* weight of the end of the step in the forces of elements */
double rod_part(const rod_work *w, const rod_mesh *m);
double rod_kinetic(const rod_work *w);
double rod_worked(const rod_work *w);            /* by loads and supports */
const double *rod_velocities(const rod_work *w); /* 6 a node: in space, spin in the frame of the section */
const double *rod_left(const rod_work *w);       /* residual of the last step */

/* ---- contact ---- */
void contacts_new(rod_work *w);
bool contacts_start(rod_work *w); /* of the run; false: the shape given crosses itself */
void contacts_step(rod_work *w);  /* the state is the beginning of a step */
void contacts_find(rod_work *w);  /* pairs near each other */
bool contacts_look(rod_work *w);  /* the same, once nodes have moved far enough */
/* fewer pairs with rough bodies, from the beginning of the step on; false: there are none, or it was done */
bool contacts_thin(rod_work *w);
/* closest points, gaps and forces at the state; false: rods went through each other */
bool contacts_project(rod_work *w, bool easy);
/* forces into res, derivatives into K (NULL: not wanted) */
void contacts_put(rod_work *w, double *res, rod_sparse *K);
/* the part of an increment that leaves rods on their side of each other */
double contacts_room(const rod_work *w);
bool contacts_near(const rod_work *w);  /* any pair carries force, or may */
bool contacts_rough(const rod_work *w); /* friction acts */
bool contacts_lined(const rod_work *w); /* rods lie along each other */
bool contacts_fine(const rod_work *w);  /* some cross, and have pairs closer than nodes */
/* derivatives with gaps held closed, those that slip free to */
void contacts_count(rod_work *w, rod_sparse *K);
/* the springs' forces become multipliers; stiff: they are unknowns from now on */
void contacts_stiffen(rod_work *w, bool stiff);
/* multipliers that go with an increment, before it is taken */
void contacts_predict(rod_work *w, const double *dx, double part);
void contacts_carry(rod_work *w); /* and after it: the tangential ones into the frames that turned */
/* friction is left out, as on the way from a reference shape, which is not a motion */
void contacts_smooth(rod_work *w, bool smooth);
void contacts_soften(rod_work *w);
/* a step begins here with that increment, taken afterwards, then carried */
void contacts_lead(rod_work *w, const double *dx);
double contacts_sunk(const rod_work *w); /* the deepest overlap of a pair, by the radius */
double contacts_open(const rod_work *w); /* the deepest overlap, or the widest gap of a pair that presses */
uint64_t contacts_pattern(const rod_work *w);      /* hash of who touches, sticks and slips */
void contacts_accept(rod_work *w, int64_t sample); /* the step is done */
double contacts_depth(const rod_work *w);          /* of the deepest overlap of smooth lines */
/* false: lines overlap between pairs by more than that part of the radius, and are to be held further apart
 */
bool contacts_part(rod_work *w, double enough);
/* pairs closer than nodes may be placed against deep overlaps */
void contacts_refine(rod_work *w, bool refining);
/* distances that they are held further apart by: kept, or put back */
void contacts_skin(rod_work *w, double *keep, const double *from);
void contacts_report_separation(rod_work *w, bool ok); /* whether a state was found then */
void contacts_save(rod_work *w);
void contacts_restore(rod_work *w);
void contacts_keep_arc(rod_work *w, int which); /* two more: where an arc began, and its last point */
void contacts_back_arc(rod_work *w, int which);
void contacts_keep_flow(rod_work *w);  /* a second place to save to */
void contacts_keep_watch(rod_work *w); /* and while a load is sought */
void contacts_back_watch(rod_work *w);
void contacts_keep_tried(rod_work *w); /* and before an increment that may be cut */
void contacts_back_tried(rod_work *w);
void contacts_keep_apart(rod_work *w); /* and while lines are held further apart */
void contacts_back_apart(rod_work *w);
void contacts_back_flow(rod_work *w);
void contacts_result(rod_work *w, rod_result *x);
/* ---- descent ---- */
void contacts_lag(rod_work *w, bool lagged); /* springs have a potential from now on, or no more */
double contacts_energy(rod_work *w);         /* that potential */
void contacts_follow(rod_work *w);           /* closest points and gaps of the same pairs at the state */
/* multipliers and bounds of friction become those of the forces; the largest change of a force, by the
 * largest force */
double contacts_round(rod_work *w);
void contacts_press(rod_work *w, double factor); /* stiffness of springs, by that of rods between two pairs */
/* such a factor for rods along each other: springs of 0.02 EI/r^4 */
double contacts_yield(const rod_work *w, int pair);
void contacts_lose(rod_work *w); /* what friction took in the step */
double contacts_dissipated(const rod_work *w);
#endif
