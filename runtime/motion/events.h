/* events: types and functions that the files of the events backend share. The motion is a chain of pieces,
   each a power series in the time since its start. Each contact has a mode during a piece; a piece ends where
   one of these modes ends. */
#ifndef CDL_EVENTS_H
#define CDL_EVENTS_H
#include "instant.h"
#include "past/history.h"
#include "base/taylor.h"

/* MODE_CLOSED: closed, without friction. MODE_HOVER: slip with a friction bound that does not depend on the
   normal force (Tresca) lifts the contact; without that friction it would fall back. So it stays at its gap
   without a normal force, under the fraction of the bound that keeps it there. */
typedef enum { MODE_OPEN, MODE_CLOSED, MODE_STICK, MODE_SLIP, MODE_HOVER } contact_mode;

/* The kernels that describe a contact, as power series in time. */
typedef struct rub_terms {
    taylor *gap, *gradient, *rate, *bias, *slip, *slip_map, *slip_bias, *normal, *mu, *mu_static, *adhesion;
} rub_terms;

/* The coefficients of these series: `width` of them for each component. */
typedef struct rub_series {
    double *g, *rn, *rt, *H, *S, *raw, *w, *nu, *gram, *y, *metric, *hy, *D, *N, *beta, *bound, *speed, *work;
    /* Normal and tangential force when the contact frame turns during the piece. The tangential force is a
       vector in the space of slip, or a force on the dofs if the model gives no slip. ft2 is its square. */
    double *fn, *ft, *ft2;
    /* Friction without a given slip on a moving constraint (otherwise NULL). frame: components of the normal
       along d slip directions and along the normal, all at the start of the piece. carried: the rate of the
       constraint over |normal|^2. along: these directions in the dofs. turning: what the turning of the
       normal adds to the acceleration of a sticking contact. */
    double *frame, *carried, *along, *turning;
    double *most; /* of a hovering contact: the full bound of friction; `bound` is then the part that acts */
} rub_series;

/* Values below which quantities count as 0. zero_gap, zero_slip: for a term of the series of the gap or slip,
   in the current decision on modes. */
typedef struct rub_zero {
    double tol_gap, tol_u, tol_slip, zero_gap, zero_slip;
} rub_zero;

/* A contact and its series. */
typedef struct rub {
    contact *c;
    size_t family;
    rub_terms terms;
    rub_series series;
    rub_zero zero;
    contact_mode mode;
    int sign, sigma;  /* sign of slip along one direction; sign of the reaction (-1 only for equalities) */
    bool candidate;   /* the gap is closed and its rate is 0: the mode must be decided */
    int col_n, col_t; /* first unknown of its normal and tangential reaction; -1: none */
    meeting now;      /* its part in a shock or in the problem of accelerations */
    double un;
    /* time of the last impact and its rounding remainder; durations of the last two flights */
    double last_hit, last_low, flight, before;
    double grip_n, grip_t; /* |row| in the metric of M^-1: of the gap, and the largest of the slip rows */
    double r0, *rt0;       /* normal and tangential reaction at order 0, from the step problem */
    double share;          /* of friction, if the motion does not determine how contacts share it */
    int row;
    bool start; /* slip starts from rest in two or more directions: not a power series */
} rub;

/* What ended a piece. END_NONE: no event is pending; modes and series of the current instant are known. */
typedef enum {
    END_NONE,
    END_STEP,
    END_GAP,
    END_RN,
    END_CONE,
    END_SLIP,
    END_REST, /* slip in several directions is almost at rest */
    END_SITE,
    END_WHEN,
    END_BREAK
} end_kind;

typedef struct ev_event {
    taylor *when;
    term reset;
    const event_rule *rule;
    int32_t index[MAX_INDEX];
    bool was, fired; /* the condition held before; the event has fired at this instant */
} ev_event;

/* Series of the current piece. */
typedef struct ev_series_room {
    double *qs, *vs, *xs, *fs, *Ms; /* positions, rates, highest derivatives, forces, masses */
    series_inputs in;               /* the unit of time of all series is in.unit */
    taylor **mass, **force, **kinetic, **potential;
    int nmass, nforce;
    /* all series that are computed in this piece */
    taylor **all;
    int nall;
    double last_natural; /* step that the tolerance allowed for the last series */
    double natural;      /* step that the tolerance allows for this series */
    double unit;         /* default unit of time; a piece may use a shorter one */
} ev_series_room;

/* The linear system that is solved for each order of the series. */
typedef struct ev_linear {
    double *A, *lu, *rhs, *sol;
    double *row_scale, *col_scale; /* factors for the rows and columns of A; powers of 2 */
    int *pivot, unknowns;
    bool singular;
    bool contradicts; /* singular without a solution: no motion has these modes */
    double most; /* the largest term of the orders so far: a contradiction counts only if it exceeds rounding
                    of this size */
    /* The motion does not determine all reactions: take those of the step problem instead of the least
       friction. */
    bool split;
} ev_linear;

/* The contact problem at an instant. */
typedef struct ev_hand {
    rub **act;
    meeting **meetings;
    int nact;
    contact_problem pr;
    contact_work *cwork;
    double *W, *b, *off, *rr, *u, *dir, *G, *x1, *x2, *before, *q_right;
    cone *cone;
    bool trying; /* a problem without solution is not an error here: there is an alternative */
} ev_hand;

/* Slip that starts from rest in two or more directions: time since rest, unit of time, derivatives at the end
   of the last step. */
typedef struct ev_start {
    bool starting, start_piece; /* more steps of this kind follow; the current piece is one */
    bool start_failed;          /* in this decision on modes, no such step was found */
    int resting;                /* contact whose slip ends with the last piece; -1: none */
    double elapsed, start_unit, *acc_end, *jerk_end, *newton, *qx, *vx;
    double *acc_rest, acc_slip; /* accelerations at rest, and their effect on slip, as |a| sqrt(m) */
    struct start_room *room;
} ev_start;

/* The largest values seen so far, and times derived from them. */
typedef struct ev_sizes {
    double *vmax, *qmax;
    double size;       /* of forces and accelerations in the kinetic metric: |f|/sqrt(m), |a| sqrt(m) */
    double size_top;   /* the largest size so far */
    double size_tried; /* and among the modes tried in the last decision */
    double rounded;    /* the largest change of rates by forces over a piece so far, in the kinetic metric */
    double last_h;
    double moment;  /* positions divided by rates: a time that is typical of the motion */
    double decided; /* time of the last decision on modes */
    /* if the next piece is not analytic at its start, the current one continues for this fraction of the run
     */
    double creep;
} ev_sizes;

/* Progress of the run. */
typedef struct ev_progress {
    int stuck, crawled; /* pieces of length 0, and tiny pieces, in a row */
    double met,
        met_first;    /* the fastest approach, by what counts as 0: at the last shock, and before these */
    end_kind pending; /* what ended the last piece and must still be handled */
    bool begun;       /* the initial state is known, and the motion has begun */
    bool stopped, creeping; /* creeping: beyond a switch at which the next piece is not analytic */
} ev_progress;

typedef struct ev {
    const program *p;
    const run_options *o;
    results *r;
    run_clock *c;
    arena *a;
    system_t *s;
    int n, K, width; /* dofs, order, coefficients kept */
    /* tolerance of the run and of one step; the step if the user gives one, otherwise 0 */
    double tol, local, fixed;
    /* rounding remainders of t, q and v, so that no digits are lost at events */
    double t_low, *q_low, *v_low;
    double t, *q, *v, *acc, *f, *M; /* current values; acc and f belong to the current piece or decision */
    ev_series_room series;
    ev_linear linear;
    ev_hand hand;
    ev_start start;
    ev_sizes sizes;
    rub *rub;
    int nrub;
    bool frames;  /* a contact has friction without a given slip on a moving constraint */
    int tangents; /* components of friction that are stored for a contact */
    ev_event *event;
    int nevent;
    vec(piece) pieces;
    /* The piece that contains the current sample (NULL: at the start, before any piece), and the time in it.
     */
    const piece *in_piece;
    double in_at;
    history *hist;
    struct choice *choice; /* possible modes of the contacts whose mode is being decided */
    ev_progress progress;
} ev;

/* ---- series at times in seconds: coefficients belong to powers of time / unit ---- */
static inline double ev_value(const ev *w, const double *c, int order, double s)
{
    return series_value(c, order, s / w->series.in.unit);
}
static inline double ev_rate(const ev *w, const double *c, int order, double s)
{
    return series_rate(c, order, s / w->series.in.unit) / w->series.in.unit;
}
static inline double ev_crossing(const ev *w, const double *c, int order, double h, double zero)
{
    return w->series.in.unit * series_crossing(c, order, h / w->series.in.unit, zero);
}
static inline int ev_sign(const ev *w, const double *c, int from, int order, double h, double zero)
{
    return series_sign(c, from, order, h / w->series.in.unit, zero);
}
static inline double ev_size(const ev *w, const double *c, int order, double h) /* the largest term up to h */
{
    double size = 0, p = 1, x = h / w->series.in.unit;
    for (int j = 0; j <= order; j++, p *= x)
        size = fmax(size, fabs(c[j]) * p);
    return size;
}

/* Does friction stick while the normal turns? Its directions stay those of the start of the piece. */
static inline bool ev_frame_turns(const rub *k)
{
    const family *f = k->c->fam;
    if (k->series.frame)
        return true;
    return f->f->slip_given && f->nslip == 3 && k->c->d == 2 && f->f->relation != REL_CLOSED &&
           !f->rows_fixed;
}

static inline const double *ev_normal(const rub *k)
{
    return k->mode == MODE_STICK && ev_frame_turns(k) ? k->series.fn : k->series.rn;
}

/* coefficient j of the square of the friction force of a sticking contact */
static inline double ev_friction2(const ev *w, const rub *k, int j)
{
    double s = 0;
    if (ev_frame_turns(k))
        return k->series.ft2[j];
    for (int l = 0; l < k->c->d; l++) {
        const double *rt = k->series.rt + (size_t)l * (size_t)w->width;
        s += series_mul(rt, rt, j);
    }
    return s;
}

static inline bool ev_slips(const rub *k)
{
    return k->mode == MODE_SLIP || k->mode == MODE_HOVER;
}

/* events_series.c */
bool ev_series(ev *w);        /* for the current modes; false: failed */
double ev_scale(const ev *w); /* a time for comparing coefficients of different order */
void ev_force0(ev *w);        /* masses and forces at the current instant */
bool ev_accelerations(ev *w, double t, const double *q, const double *v, double *a);
bool dense_solve(double *a, double *b, int n, int *pivot); /* a and b are overwritten */
double ev_mass(const ev *w, int k);                        /* of dof k alone, at the current time */
double ev_dot(const ev *w, const double *row, const double *x, int j);
/* Values of (bound - friction) of a sticking contact that count as 0. */
double ev_zero_friction(const ev *w, const rub *k);
bool ev_fail(ev *w, span at, const char *message);
const char *ev_number(ev *w, double x);

/* events_mode.c */
bool ev_survey(ev *w); /* masses, rows and gaps at the current instant */
void ev_round(ev *w);  /* sets the rounding remainders of q and v to 0 */
bool ev_shock(ev *w);
bool ev_decide(ev *w); /* modes just after the current time; the series is computed for them */
/* Values that count as 0 in a decision: of a reaction along a row of this grip, of the second rate of that
   row. */
double ev_zero_force(const ev *w, double grip);
double ev_zero_rate(const ev *w, double grip);
bool ev_ahead(ev *w, double h, double *acc); /* accelerations at time t + h, approximately */
bool slip_start(ev *w);                      /* events_start.c; false: no such step was found */

/* events_keep.c */
void ev_keep(void *of, run_state *s);

/* events_dense.c */
void dense_keep(ev *w, double h); /* stores the first h of the current piece */
void dense_install(ev *w);
void dense_pieces(ev *w, run_state *s); /* as part of a saved state */
void dense_sample(ev *w, double h);
void dense_energy(ev *w, const double *v, energies *e);           /* of the current state of the system */
bool dense_fill(void *of, run_clock *c, int64_t at, energies *e); /* columns of the current sample */
#endif
