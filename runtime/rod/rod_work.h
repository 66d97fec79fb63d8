/* rod_work: types and functions that the files of the rod solver share. */
#ifndef CDL_ROD_WORK_H
#define CDL_ROD_WORK_H
#include "clock/clock.h"
#include "rod.h"

/* A support: position (3), frame (quaternion), axis (3); for a roll, start is a frame and goal an angle from
   it. */
typedef struct rod_hold {
    const rod_load *load;
    int node;
    double start[4], goal[4];
} rod_hold;
/* A force or moment at a node; node < 0: along the rod. */
typedef struct rod_push {
    const rod_load *load;
    int node;
} rod_push;

/* Matrix entries of contacts, and the whole matrix if there are contacts: triplets. */
typedef struct rod_sparse {
    int n, nz, cap;
    int *i, *j;
    double *x;
} rod_sparse;
void sparse_add(arena *a, rod_sparse *s, int i, int j, double x);
/* Columns of a matrix from its triplets, with equal entries added; rows within them are not ordered. */
typedef struct rod_columns {
    int *p, *i;
    double *x;
} rod_columns;
rod_columns rod_columns_of(arena *a, const rod_sparse *s);
/* Solves A x = b, x replaces b; A symmetric, given by its lower half; false: A is not positive. */
bool rod_solve_positive(int n, const rod_columns *A, double *b);

struct rod_contacts;
typedef struct rod_ties rod_ties;
typedef struct rod_motion rod_motion;
/* Positions and rotations of all nodes. */
typedef struct rod_places {
    double *pos, *rot;         /* 3 N, 4 N numbers: current */
    double *pos0, *rot0;       /* at the start of the step */
    double *pos1, *rot1, last; /* before a solve; size of the last increment */
    double *linked, link;      /* the positions for which the link is known */
} rod_places;

/* Supports and loads at nodes. */
typedef struct rod_ends {
    rod_hold *hold;
    int nhold;
    rod_push *push;
    int npush;
    uint8_t *held;          /* dofs that are held */
    int *support, nsupport; /* nodes with held dofs */
    /* 2 per node: the change of the roll by rotations across the axis, at supports that hold a roll; or NULL
     */
    double *tilt;
} rod_ends;

/* The condensed band matrix. */
typedef struct rod_band {
    int nred, *red; /* reduced number of a node's first dof; -1: a node inside an element */
    double *band, *inner, *rhs;
    int *pivot;
    int sign; /* of the determinant */
} rod_band;

/* Before a motion that starts from an equilibrium, the loads of t = 0 grow. missing: the fraction that does
   not act yet. */
typedef struct rod_growth {
    bool on;
    double missing;
    /* Natural strains and sections of the reference shapes at the points of integration, if the current ones
       change with t; otherwise NULL. */
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
    /* Increment of the last step, its length (0: unknown), and the length of the next step. */
    double *way, way_dt, guess;
    double *given;       /* forces and moments at the points of integration, 18 for each element */
    double *reg, *coord; /* for running kernels */
    /* Natural strains change from those of the shape (start0) to the given ones (goal0: v0, u0) before the
       loads act; NULL: no change. */
    double *start0, *goal0;
    double scale, unit; /* scales of forces, and of lengths in the linear problem (a power of two) */
    double t;
    double shift, drag; /* shift of the tangent only; drag of a viscous motion from pos0, rot0 */
    double viscous;     /* work dissipated by it; for a motion in time, by damping and contact */
    /* moments: there are moments without potential. lasting: of dead moments or follower forces, which always
       act; otherwise of supports that hold a roll. */
    bool neutral, moments, lasting;
    bool brief; /* Newton's method must find a state soon, or give up */
    bool start; /* on the way from a drawn shape, which is not a motion */
    rod_growth grown;
    struct rod_contacts *contact;
    rod_ties *ties;     /* joined sections, or sections held by hinges; NULL: none */
    rod_motion *motion; /* NULL: statics */
    int64_t iterations;
    run_clock clock; /* along a load; a motion in time has its own clock */
} rod_work;

/* ---- curves through points ---- */
typedef struct rod_spline rod_spline;
rod_spline *rod_spline_new(arena *a, const double *points, int n); /* n >= 4 */
double rod_spline_length(const rod_spline *c);
void rod_spline_at(const rod_spline *c, double s, double *x, double *tangent);

double rod_length(const rod_work *w);       /* of the longest rod */
double rod_least_radius(const rod_work *w); /* of the rods that may touch */
void state_copy(rod_work *w, double *pos, double *rot, const double *pos1, const double *rot1);
void rod_eval(rod_work *w, const kernel *k, double t, int rod, double s, double *out);
/* returns false */
bool rod_fail(rod_work *w, span at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Section data of a whole rod; of sections that change, after the mesh is built; false after a report. */
bool rod_section(rod_work *w, int rod);
bool rod_section_along(rod_work *w, int rod);
bool rod_lumps(rod_work *w, int rod);
bool rod_varies(const rod_spec *sp); /* does its section change along the rod? */
/* Natural strains that change with t: sets them up; sets those at t, for tau < 1 a fraction of the way to
   them. */
bool rod_grow_new(rod_work *w);
bool rod_grow(rod_work *w, double t, double tau);
void rod_driving(rod_work *w, double t, double *res);
bool rod_build(rod_work *w);     /* meshes, shapes, supports; false after a report */
bool rod_supported(rod_work *w); /* false after a report of a rigid motion that no support prevents */
void rod_update(rod_work *w, const double *dx, double k); /* moves the state by k dx */
/* K dx = -res, with the increments of held dofs given in dx; false: singular. */
void rod_band_new(rod_work *w);
bool rod_solve_band(rod_work *w, double t);
/* Number of real negative eigenvalues among those nearest to zero, of the tangent of the last such solve
   (inner nodes of elements are eliminated). least: absolute value of the nearest one. */
int rod_negative(rod_work *w, double *least);
double rod_unit(const rod_work *w, int dof); /* unit of a dof in the linear problem */
/* Also solves K dy = -rate, with the increments of held dofs given in dy, unless dy is NULL; without contact,
   and with contact. */
bool rod_solve_two(rod_work *w, double t, const double *rate, double *dy);
bool rod_solve_sparse(rod_work *w, double t, const double *rate, double *dy);
void rod_residual(rod_work *w, double t, double *res);
/* ---- joints ---- */
/* The unknowns that move a dof of a node: their places among the dofs, and their weights. */
enum { ROD_TERMS = 8 };
typedef struct rod_terms {
    int n, slot[ROD_TERMS];
    double c[ROD_TERMS];
} rod_terms;
bool rod_ties_meet(rod_work *w); /* moves rods to their joints; false after a report */
bool rod_ties_new(rod_work *w);  /* call it after the supports are set up */
bool rod_tied_supported(rod_work *w);
void rod_terms_of(const rod_work *w, int node, rod_terms t[6]);
void rod_term_of(const rod_work *w, int dof, rod_terms *to);
bool rod_is_unknown(const rod_work *w, int dof);
bool rod_is_spare(const rod_work *w, int dof); /* not an unknown, but numbered to complete a group of three */
void rod_spread(const rod_work *w, double *dx); /* increments of the unknowns become those of all nodes */
void rod_gather(const rod_work *w, double *f);  /* forces at the nodes become those on the unknowns */
void rod_follow(const rod_work *w, double *v);  /* velocities of nodes that follow others rigidly */
/* driven: for each node, 1 its position, 2 its frame. Returns what a node inherits from the nodes that it
   follows. */
uint8_t rod_driven_by(const rod_work *w, int node, const uint8_t *driven);
/* Components of a rotation or moment, in the frame of a node, along the axes of its unknowns; and back. */
void rod_on_axes(const rod_work *w, int node, double *x);
void rod_off_axes(const rod_work *w, int node, double *x);
/* Adds the derivatives of moments by the rotation of hinges; f: forces at the nodes. */
void rod_hinges_put(const rod_work *w, const double *f, rod_sparse *S);
void rod_ties_before(const rod_work *w); /* call these before and after a change of the state by k dx */
void rod_ties_after(const rod_work *w, const double *dx, double k);
const rod_tie *rod_ties_list(const rod_work *w, arena *a, int *n);
int rod_node_at(const rod_mesh *m, double s); /* the end of an element that is nearest to s */
/* ---- loads ---- */
/* Residual of loads and drag; 9 numbers per node: derivatives of moments, and of forces, by rotations. */
typedef struct rod_outside {
    double t, *force, *moment, *follow;
} rod_outside;
rod_outside rod_outside_at(rod_work *w, double t);  /* allocated in w->tmp */
void rod_loads(rod_work *w, double t, double *res); /* only loads and drag */
void rod_element_own(rod_work *w, const rod_mesh *m, int e, const double *given, double *f, double *K);
/* Residual (added) and tangent of an element with the external forces; forces at a node belong to the first
   element that contains it. */
void rod_element_loaded(rod_work *w, const rod_mesh *m, int e, const rod_outside *out, const double *given,
                        double *f, double *K);
/* Forces at the points of integration: of the state, or as they follow linearly from the increment. */
void forces_follow(rod_work *w, const double *dx);
/* number of directions that lower the energy and keep contacts closed */
int rod_unstable(rod_work *w, double t);
/* The least and the largest number of such directions: those whose eigenvalue is smaller than `shift` are
   left out of the first and counted in the second. rod_rounding: a shift so large that it covers the rounding
   errors of motions that cost no energy. */
typedef struct rod_range {
    int least, most;
} rod_range;
rod_range rod_unstable_range(rod_work *w, double t, double shift);
double rod_rounding(const rod_work *w);
/* With contact, and friction or moments without potential: stability is not checked. */
bool rod_unclear(const rod_work *w);
double rod_small_shift(const rod_work *w);
/* ---- equilibria at a load ---- */
/* Goals of supports at t; tau < 1: on the way from the start to the values at t = 0. */
bool holds_at(rod_work *w, double t, double tau);
void holds_put(rod_work *w); /* stores in dx the increments that bring supports to their goals */
double turn_between(rod_work *w, double t, double dt); /* largest angle of supported frames */
/* Size of an increment: positions relative to the length, and angles. */
double rod_size(const rod_work *w, const double *dx, double *turn);
/* The fraction of the increment dx that may be taken: angles stay moderate, and rods that may touch do not
   jump over each other. room: nodes far from all other rods may move farther; otherwise no node moves by more
   than most of a radius. */
double rod_part_of(const rod_work *w, double turn, double most_turn, bool room);
bool rod_gaps_closed(const rod_work *w); /* within the tolerance */
/* Newton's method with the multipliers of contact as unknowns; in a viscous motion only as accurate as its
   next step needs. */
bool rod_close_gaps(rod_work *w, double t);
bool rod_equilibrium(rod_work *w, double t);
/* Finds an equilibrium without overlap near the current one; false: none, and the state is unchanged. */
bool rod_apart(rod_work *w, double t);
/* For rods in contact, by a descent of their energy; parted: from a state in which lines overlap. */
bool rod_descend(rod_work *w, double t, bool parted);
bool rod_has_potential(const rod_work *w); /* of loads and supports, in statics: required for a descent */
bool rod_flow(rod_work *w, double t);      /* by a viscous motion, with friction */
void rod_nudge(rod_work *w);
void rod_way(rod_work *w, double dt); /* the step from pos0, rot0 is done, with length dt; 0: it was a jump */
void rod_go_on(rod_work *w);          /* first guess of a step of length `guess`: the same motion again */
bool rod_interrupted(rod_work *w);
/* Has a rod passed through itself since that state? touched: it had contact there. brief: check only if it
   moved far enough. */
bool rod_passed(rod_work *w, double *pos, double *rot, bool touched, bool brief);
double rod_writhes(const rod_work *w, double *pos); /* sum for all rods that may touch themselves */
double rod_drag_work(const rod_work *w);

/* ---- along a load ---- */
enum { ROD_CRITICAL = 64 };
typedef struct rod_path {
    /* modes: rod_character of the last state. */
    double critical[ROD_CRITICAL];
    int ncritical, modes;
    /* Modes of a state in contact that could not be left, or only for a state with the same modes: it is
       tried again when they change. */
    int stuck;
    bool moments; /* modes without potential were reported */
    int descents; /* number of states in a row that were found only by a descent */
    /* For moments without potential: rod_negative of the last state. */
    int negative;
    double near;
    double *pos, *rot;     /* at the start */
    vec(rod_point) points; /* only with arc length */
} rod_path;
double rod_elastic(rod_work *w, double *e); /* all four kinds; returns their sum */
/* Adds a sample along a load. rod_fill fills its columns, also in time. */
void rod_sample(rod_work *w, double t);
bool rod_fill(void *of, run_clock *c, int64_t at, energies *e);
/* The method: Newton's method, a descent of the energy, a viscous motion. */
typedef enum { BY_NEWTON, BY_DESCENT, BY_FLOW } rod_way_to;
/* false: the state is as before */
bool rod_step(rod_work *w, double t, double tau, rod_way_to by);
/* Number of directions that lower the energy; the sign of the determinant if moments have no potential. */
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
void rod_path_start(rod_work *w, rod_path *p); /* the equilibrium at t = 0 has been found */
void rod_path_point(rod_work *w, rod_path *p, double t);
/* Steps of at most h, halved if Newton's method fails. */
bool rod_march(rod_work *w, double end, double h, bool start, rod_path *p, double *reached);
/* ---- arc length ---- */
/* Follows the branch from the equilibrium at a load through limit points, which are listed, to the point
   where it is stable again beyond them. True: found, with its load. Without limit points: beyond the goal.
   False: the branch does not come back, or only the first limit point was requested; the state is restored.
   */
bool rod_arc(rod_work *w, rod_path *p, double from, double goal, double end, bool whole, double *to);
double rod_reach(rod_work *w, double t, double end); /* |dx/dt| at an equilibrium; 0: not known */
/* distance of the state from the given one */
double rod_distance(rod_work *w, const double *pos, const double *rot);
/* ---- motions in time ---- */
/* Initial velocities; dt: the first step; false after a report. */
bool rod_motion_new(rod_work *w, double dt);
extern const stepper rod_motion_stepper;
/* Adds to f and K (unless NULL) the drag of an element against the motion of the step; returns its work. */
double rod_resist_put(const rod_work *w, const rod_mesh *m, int e, double *f, double *K);
void rod_inertia_put(const rod_work *w, const rod_mesh *m, int e, double *f, double *K);
/* Weight of the end of the step in the elastic forces. */
double rod_part(const rod_work *w, const rod_mesh *m);
double rod_kinetic(const rod_work *w);
double rod_worked(const rod_work *w); /* work of loads and supports */
/* 6 per node: velocity in space, angular velocity in the frame of the section */
const double *rod_velocities(const rod_work *w);
const double *rod_left(const rod_work *w); /* residual of the last step */

/* ---- contact ---- */
void contacts_new(rod_work *w);
bool contacts_start(rod_work *w); /* at the start of the run; false: the given shape crosses itself */
void contacts_step(rod_work *w);  /* the state is the start of a step */
void contacts_find(rod_work *w);  /* finds pairs near each other */
bool contacts_look(rod_work *w);  /* the same, if nodes have moved far enough */
/* Fewer pairs with rough bodies from the start of the step on; false: there are none, or it was done before.
 */
bool contacts_thin(rod_work *w);
/* Closest points, gaps and forces in the state; false: rods passed through each other. */
bool contacts_project(rod_work *w, bool easy);
/* Adds forces to res and derivatives to K (NULL: not needed). */
void contacts_put(rod_work *w, double *res, rod_sparse *K);
/* Fraction of an increment after which rods are still on the same sides of each other. */
double contacts_room(const rod_work *w);
bool contacts_near(const rod_work *w);  /* does a pair carry force, or may it? */
bool contacts_rough(const rod_work *w); /* does friction act? */
bool contacts_lined(const rod_work *w); /* do rods lie along each other? */
bool contacts_fine(const rod_work *w);  /* do some cross, with pairs closer than nodes? */
/* Derivatives with closed gaps held, for counting unstable directions; slipping pairs are free to slip. */
void contacts_count(rod_work *w, rod_sparse *K);
/* The forces of springs become multipliers; stiff: these are unknowns from now on. */
void contacts_stiffen(rod_work *w, bool stiff);
/* Multipliers that belong to an increment, before it is taken. */
void contacts_predict(rod_work *w, const double *dx, double part);
/* after the increment: tangential multipliers are rotated with their frames */
void contacts_carry(rod_work *w);
/* Ignores friction, as on the way from a reference shape, which is not a motion. */
void contacts_smooth(rod_work *w, bool smooth);
void contacts_soften(rod_work *w);
/* Starts a step with this increment, which is taken and carried afterwards. */
void contacts_lead(rod_work *w, const double *dx);
double contacts_sunk(const rod_work *w);      /* largest overlap of a pair, relative to the radius */
double contacts_open(const rod_work *w);      /* largest overlap, or largest gap of a pair that presses */
uint64_t contacts_pattern(const rod_work *w); /* hash of which pairs touch, stick and slip */
void contacts_accept(rod_work *w, int64_t sample); /* the step is done */
double contacts_depth(const rod_work *w);          /* largest overlap of the smooth lines */
/* False: lines overlap between pairs by more than this fraction of the radius, and must be held farther
   apart. */
bool contacts_part(rod_work *w, double enough);
/* May pairs closer than nodes be placed at deep overlaps? */
void contacts_refine(rod_work *w, bool refining);
/* Saves or restores the distances by which lines are held farther apart. */
void contacts_skin(rod_work *w, double *keep, const double *from);
void contacts_report_separation(rod_work *w, bool ok); /* was a state found with the larger distances? */
void contacts_save(rod_work *w);
void contacts_restore(rod_work *w);
void contacts_keep_arc(rod_work *w, int which); /* two more: the start of an arc, and its last point */
void contacts_back_arc(rod_work *w, int which);
void contacts_keep_flow(rod_work *w);  /* a second saved state */
void contacts_keep_watch(rod_work *w); /* and one for the search of a critical load */
void contacts_back_watch(rod_work *w);
void contacts_keep_tried(rod_work *w); /* and one before an increment that may be shortened */
void contacts_back_tried(rod_work *w);
void contacts_keep_apart(rod_work *w); /* and one while lines are held farther apart */
void contacts_back_apart(rod_work *w);
void contacts_back_flow(rod_work *w);
void contacts_result(rod_work *w, rod_result *x);
/* ---- descent ---- */
void contacts_lag(rod_work *w, bool lagged); /* whether springs have a potential */
double contacts_energy(rod_work *w);         /* that potential */
void contacts_follow(rod_work *w);           /* closest points and gaps in the state, for the same pairs */
/* Multipliers and bounds of friction are set from the forces; returns the largest change of a force, relative
   to the largest force. */
double contacts_round(rod_work *w);
/* stiffness of springs, relative to that of a rod between two pairs */
void contacts_press(rod_work *w, double factor);
/* This factor for rods along each other: springs of 0.02 EI/r^4. */
double contacts_yield(const rod_work *w, int pair);
void contacts_lose(rod_work *w); /* adds the dissipation by friction in the step */
double contacts_dissipated(const rod_work *w);
#endif
