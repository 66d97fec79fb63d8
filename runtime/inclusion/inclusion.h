/* inclusion: first-order differential inclusions.  Row i is R_i(t, x, x', s) = 0 for the unknown x_i, where
   the selections s lie in sets: s = Sgn(a(t, x)), or s in the normal cone of C(t) at x.  Shared by the
   backends inclusion and limit. */
#ifndef CDL_INCLUSION_H
#define CDL_INCLUSION_H
#include "graph.h"
#include "clock/backend.h"

/* v(t - tau): the value, or the rate, of a dof at the time that `when` gives.  IN_PAST_Q with base k reads
 * past value k. */
/* inner: under an integral */
typedef struct inclusion_past {
    int32_t dof;
    bool rate, inner;
    kernel when;
    span at;
} inclusion_past;
/* The integral of f over bound variable 0 from lo to hi, with inner past values under it.  IN_INTEGRAL with
 * base k reads integral k. */
typedef struct inclusion_integral {
    kernel ends, f;
    span at;
} inclusion_integral;

typedef struct inclusion_sgn {
    int32_t number; /* of the selection */
    bool steady;    /* where it turns depends on parameters alone */
    kernel arg;     /* out: a, da/dx of the row's own unknown, da/dt */
    span at;
} inclusion_sgn;

typedef struct inclusion_row {
    int32_t dof, cone; /* cone: number of the normal cone it belongs to, -1: none */
    span at;
    kernel r;       /* out: R, dR/dx, dR/dx' (own unknown) */
    kernel curve;   /* out: d2R/dx2 at the current x' */
    kernel drift;   /* out: dR/dt, past values moving along */
    bool separable; /* dR/dx and all kinks are free of time, of past values and of other unknowns */
    const inclusion_sgn *sgn;
    int nsgn;
} inclusion_row;

/* C(t) = { x: g_k(t, x) <= 0 }, for the unknowns dof[0 .. n). */
typedef struct inclusion_cone {
    int n, ng;
    const int32_t *dof, *number; /* number: of the selections */
    kernel g;                    /* out: g_k; then dg_k/dx_j, by rows */
    bool linear, convex; /* all g_k are affine in x: one projection is exact;  C(t) is convex by its kind */
    span at;
} inclusion_cone;

/* Selections that several unknowns or rates decide: s in Sgn(a(t, x, x')), all together. */
typedef struct inclusion_joint {
    int32_t number;
    kernel arg;
    span at;
} inclusion_joint;

typedef struct inclusion_program {
    int32_t nset;
    /* > 0: all Sgn are here, rows have none of their own */
    const inclusion_joint *joint;
    int njoint;
    const inclusion_row *row; /* [nq], row k is that of dof k */
    const inclusion_cone *cone;
    int ncone;
    const inclusion_past *past;
    int npast;
    const inclusion_integral *integral;
    int nintegral;
    /* [nq]: value and rate before t = 0, of the time as bound variable 0; nout == 0: the initial value is
     * held */
    kernel *history;
    /* out: functions of time alone that change sign where a formula changes its form; nout == 0: none */
    kernel turn;
    /* why no backend can run it; NULL: one can */
    const char *refused;
    span refused_at;
} inclusion_program;

/* ---- a point of the inclusion, its registers and its past (inclusion_map.c) ---- */
typedef vec(double) times;
typedef struct moment {
    const program *p;
    const inclusion_program *ip;
    results *r; /* its samples are the past */
    inputs in;
    double *x, *v, *s, *past, *integral, *param, bound; /* what the kernels read */
    double *sign; /* of each row: of the factor of its rate, which is then taken as positive */
    double **reg, **reg_curve, **reg_drift, ***reg_arg, **reg_past, **reg_history, **reg_cone, *reg_turn,
        **reg_joint, **reg_ends, **reg_integral;
    /* of each row: where its graph is vertical, ascending */
    double **kink;
    int *nkink;
    /* of each Sgn of a row: where it changes sign, and its sign above that */
    double **turn_at;
    int8_t **turn_dir;
    bool *kinks_known; /* they never move */
    const char *trouble;
    span trouble_at;
} moment;

/* At t = 0 with the initial values. */
void moment_new(moment *m, results *r, arena *a, double *param);
/* The signs of the factors of the rates; false: one is 0. */
bool moment_signs(moment *m);
/* Moves to time t: past values are looked up. */
void moment_time(moment *m, double t);
void moment_kinks(moment *m, int row);
/* R, dR/dx and dR/dx' at x, with the rate of m->v; side: the side from which a kink is evaluated. Leaves x in
   m->x. */
typedef struct {
    double r, dx, dv;
} row_value;
row_value moment_row(moment *m, int row, double x, int side);
double moment_curve(moment *m, int row, double x, int side); /* d2R/dx2 */
double moment_kink_rate(moment *m, int row, double x);       /* of the kink at x */
double moment_drift(moment *m, int row); /* dR/dt, with moving past values, at the point evaluated last */
/* R with rate and reaction 0; their factors */
void moment_free(moment *m, int row, double *r, double *a, double *c);
/* places inside a part of the time, at which to look for what turns more than once */
enum { PART_LOOKS = 6 };
extern const double part_look[PART_LOOKS];
/* Times in (0, end) at which formulas of time change their form.  False: they are too many; m is at the
 * first. */
bool moment_turns(moment *m, double end, arena *a, times *out);
void moment_fail(moment *m, span at, const char *message);
const char *number_text(arena *a, double x);

double moment_raw(moment *m, int row);        /* R with the current x, x' and selections */
double moment_factor(moment *m, int row);     /* of its own rate, there */
double moment_argument(moment *m, int joint); /* a of a joint selection */

/* ---- after a run (inclusion_check.c) ---- */
/* Samples must be finite, in their sets, solve their rows, and jumps must follow their law; otherwise the
   run has failed. residual and max_penetration include what is found. */
void inclusion_check(results *r, const run_options *o);
/* The parameters with the one of that name at 0, and all that follows from them (limit.c). */
double *limit_params(const results *r, const char *name, arena *a);

/* ---- rows that are coupled through selections (inclusion_joint.c) ---- */
typedef struct joint_work joint_work;
joint_work *joint_new(const inclusion_program *ip, int n, arena *a);
/* Solves the step at the time of m: x' = (x - base) ih, all selections in their sets, from m->x and m->s;
   side: -1, 0, 1 of each selection. false: it does not settle. */
bool joint_solve(joint_work *w, moment *m, const double *base, double ih, int8_t *side, double *residual,
                 int64_t *iterations);

/* ---- normal cones (sweep1.c) ---- */
typedef struct projector projector;
projector *projector_new(const inclusion_program *ip, arena *a);
/* The point y of C(t) nearest to z; false: there is none, see why. worst: upper bound of its distance outside
   C(t). */
/* upper bound of the distance of y from C at the time of m */
double cone_depth(projector *w, moment *m, int cone, const double *y);
bool project(projector *w, moment *m, int cone, const double *z, double *y, double *worst, const char **why);
/* The point y nearest to z with G y <= d (m rows of n numbers, of length 1); false: there is none.  Dual
 * active sets. */
typedef struct polyhedron_work {
    double *N, *L, *u, *r, *dir;
    int *active;
} polyhedron_work;
void polyhedron_work_new(polyhedron_work *w, int n, arena *a);
bool polyhedron_project(polyhedron_work *w, const double *G, const double *d, int m, int n, const double *z,
                        double *y);
#endif
