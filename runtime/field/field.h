/* field: boundary value and obstacle problems: the compiled form of a model with fields, its solution, and
   the declarations shared by the solvers. The equations are residuals F(x, u, u', …) = lhs - rhs; with an
   obstacle u >= psi: F >= 0, u - psi >= 0, product zero. */
#ifndef CDL_FIELD_H
#define CDL_FIELD_H
#include "clock/backend.h"

/* jets of the field BEND_JET + b in a normal form: the sign of bend b on the piece */
enum { BEND_JET = 1000 };
enum { FIELD_ORDER = 6, FIELD_MAX = 8 }; /* order of an equation, number of fields */

/* a field, with the orders of its derivatives in each coordinate */
typedef struct jet {
    int field, d[2];
} jet;
/* A function of coordinates and jets over a family of points.  Inputs: coordinate c of point i at [i*ncoord +
   c], jet k at [i*njet + k]. out[0] is the value, out[1 + k] its derivative in jet k. */
/* cases: in the coordinates */
typedef struct field_form {
    kernel k;
    const jet *jet;
    int njet;
    bool linear, cases;
    span at;
} field_form;
/* weight*dirac(x - place) in a residual; weight is a form of x */
typedef struct field_load {
    kernel place, weight;
    span at;
} field_load;
/* A flux under a derivative whose coefficient jumps: F = per*d(flux, coord) + rest.  At a jump the flux is
 * continuous, not the slope. */
typedef struct field_flux {
    int coord, order; /* of its highest derivative */
    field_form f;
    kernel a;   /* the plane: flux = a*u_coord */
    kernel per; /* of coordinates */
    span at;
} field_flux;
typedef struct field_equation {
    field_form f;      /* as written */
    field_form normal; /* F over its derivative in the highest jet */
    int field, order;  /* the field that it belongs to and its order */
    const field_load *load;
    int nload;
    /* on a line: of orders k - 1, k - 2, …; in the plane by coordinate */
    const field_flux *flux;
    int nflux;
    field_form rest; /* F without them */
} field_equation;
/* coord < 0: where holds (nout == 0: all) */
typedef struct field_condition {
    int coord;
    kernel place;
    field_form f;
    kernel where;
    span at;
} field_condition;
/* psi of coordinates */
typedef struct field_obstacle {
    int field, sense;
    kernel psi;
    span at;
} field_obstacle;
/* out: g(x), g'(x): something changes where g is 0 */
typedef struct field_switch {
    kernel k;
    bool affine;
} field_switch;

typedef struct field_program {
    int ncoord, nfield;
    const char *coord[2], *const *name;
    kernel domain;            /* lo, hi of each coordinate */
    const field_equation *eq; /* by field */
    const field_condition *cond;
    int ncond;
    const field_obstacle *obst;
    int nobst;
    /* one coordinate only */
    const field_switch *sw;
    int nsw;
    /* functions of fields at whose zeros the equation has a corner: of max(0, …) and the like */
    const field_form *bend;
    int nbend;
    bool linear;
    span at, has_bend;
} field_program;

/* ---- a solution ---- */
/* Chebyshev coefficients 0..n-1 of each field on [a, b] */
typedef struct field_piece {
    double a, b;
    int n;
    double *c[FIELD_MAX], *top[FIELD_MAX]; /* top: of the highest derivative */
} field_piece;
typedef struct contact_interval {
    double a, b;
    int obstacle;
} contact_interval;
typedef struct point_force {
    double x, force;
    int obstacle;
} point_force;

typedef struct field_result {
    const field_program *fp;
    double lo[2], hi[2];
    /* one coordinate: pieces (vim), or values at nodes */
    const field_piece *piece;
    int npiece;
    /* nodes */
    double *x;
    int64_t n;
    double *u;            /* [node*nfield + f] */
    int64_t nbreak, *brk; /* nodes where derivatives may jump: brk[0] = 0 … brk[nbreak - 1] = n - 1 */
    int64_t nseg, *seg;   /* those where the equation itself changes, the ends too */
    double eps;           /* > 0: the obstacle is a soft bed */
    bool promised;        /* solved until nothing changes */
    /* two coordinates */
    /* nodes in each direction, their coordinates; u[(j*m[0] + i)*nfield + f] */
    int32_t m[2];
    double *ux[2];
    contact_interval *zone;
    int nzone;
    double area;      /* of contact, two coordinates */
    double *reaction; /* density, as a function of x (or in the plane) */
    uint8_t *touch;   /* in the plane */
    point_force *point;
    int npoint;
    double energy, complementarity, rational;
    double error;          /* an estimate, NAN: none */
    const char *error_why; /* why there is none */
    /* vim: change from one iterate to the next */
    double *update;
    int nupdate;
    /* vim: defect of each condition */
    double *matching;
    int nmatching;
    int nhalved;    /* penalty: update is the effect of halving eps */
    int iterations; /* vim: of the correction; grids: on the finest one */
    /* steps on each grid, the coarsest first */
    double *grid_steps;
    int ngrid;
    const char *report; /* text for the user */
    arena *a;           /* where samples of derivatives are kept when they are needed */
    double *derived[FIELD_MAX][FIELD_ORDER + 1];
} field_result;

/* u, u', … at a point of the domain */
double field_at(const field_result *r, int field, double x, int order);
double field_at2(const field_result *r, int field, double x, double y, const int *d);

/* ---- shared ---- */
/* eps > 0: penalised */
typedef struct line_options {
    int64_t cells, cells2; /* cells2: in the second coordinate, 0: as many */
    double eps, tolerance;
    bool draft; /* temporary: all of it in scratch memory */
} line_options;
typedef struct {
    const field_program *fp;
    const program *p;
    results *r;
    arena *a;
    const run_options *o;
    double lo[2], hi[2];
} field_work;
/* Runs solve, which returns NULL after reporting; results are in r->a, w->a is scratch. */
void field_run(const program *p, const run_options *o, results *r, field_result *(*solve)(field_work *w));
field_result *result_new(field_work *w);
/* the same problem with cells / ratio; NULL: not solved.  The run's own figures stay as they are. */
field_result *field_draft(field_work *w, const line_options *o, int ratio);
/* estimates the error of a solution on a grid, from coarser ones */
void field_error(field_work *w, const line_options *o, field_result *r);
/* recomputes max_penetration and residual from the stored solution; false after reporting a violation */
bool field_check(field_work *w, field_result *r);
/* weights of the derivative of given order at z of the polynomial through m nodes (m <= 16) */
void stencil_weights(const double *x, int m, double z, int order, double *c);
/* a form at n points: out[i*(1 + njet)] */
void form_run(const field_work *w, const field_form *f, const double *x, const double *jets, int64_t n,
              double *out);
void kernel_points(const field_work *w, const kernel *k, const double *x, int64_t n, double *out);
double kernel_number(const field_work *w, const kernel *k); /* of parameters alone */
/* places where something changes, sorted, with the ends of the domain: switches, inner conditions, point
 * loads */
int field_breaks(field_work *w, double **out);
bool field_goes_on(field_work *w, double done); /* false: the run was interrupted */
/* false */
bool field_fail(field_work *w, span at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* x moved inside [a, b] by a rounding error, so that switches fall on its side */
double side_of(const field_work *w, double x, double a, double b);

/* Chebyshev series on [a, b] */
void cheb_points(double *t, int n);               /* n points of [-1, 1], falling */
void cheb_fit(const double *y, double *c, int n); /* from values there */
double cheb_value(const double *c, int n, double t);
/* out: n coefficients (the last is cut) */
void cheb_integral(const double *c, double *out, int n, double half, double at_left);
void cheb_derivative(const double *c, double *out, int n, double half);
void cheb_powers(const double *c, int n, double a, double b, double *out); /* in powers of x */

/* ---- grids ---- */
/* the solver on a line that active_set, penalty and vim (to see where contact is) use */
field_result *line_solve(field_work *w, const line_options *o); /* NULL after a report */
field_result *plane_solve(field_work *w, const line_options *o);
int free_end(const field_work *w, int f, int side, double *per);
void field_print(text *t, const field_result *r);
/* a derivative of a field, one line per piece */
void field_formulas(text *t, const field_result *r, int field, int order);
/* requirements of obstacle problems: obstacles below boundary values, in order */
bool obstacles_check(field_work *w);
double obstacle_size(const field_work *w, const field_obstacle *o); /* the largest |psi|, from samples */
/* false after a report: it is not finite at one of n points */
bool obstacle_known(field_work *w, const field_obstacle *o, const double *x, const double *psi, int64_t n);
const char *field_refuse(const program *p, span *at, const char *none);
#endif
