/* events: what the parts of the events backend share.  The motion is a chain of pieces, each a power series
   in the time since it began; contacts are in a mode that holds over a piece, and where a mode ends a piece
   ends. */
#ifndef CDL_EVENTS_H
#define CDL_EVENTS_H
#include "instant.h"
#include "past/history.h"
#include "base/taylor.h"

/* closed: without friction.  hover: slip at a bound that does not depend on the normal force (Tresca's) lifts
   the contact, and without that friction it falls back: it stays at its gap without a normal force, under
   the part of the bound that keeps it there. */
typedef enum { MODE_OPEN, MODE_CLOSED, MODE_STICK, MODE_SLIP, MODE_HOVER } contact_mode;

/* What a contact is made of, as terms of power series. */
typedef struct rub_terms {
    taylor *gap, *gradient, *rate, *bias, *slip, *slip_map, *slip_bias, *normal, *mu, *mu_static, *adhesion;
} rub_terms;

/* Its series; all arrays hold `width` coefficients for each component. */
typedef struct rub_series {
    double *g, *rn, *rt, *H, *S, *raw, *w, *nu, *gram, *y, *metric, *hy, *D, *N, *beta, *bound, *speed, *work;
    /* of a frame that turns: normal and tangential parts as they are, the latter in the space of slip, or as
       a force on the dofs where no slip is given, and its square */
    double *fn, *ft, *ft2;
    /* Friction without slip on a constraint that moves (NULL: not so).  The space of slip has d directions at
       the start and the normal there: the normal as it is in these, what it is carried along by (rate over
       |normal|^2), dofs of the directions; what its turning does to accelerations that stick. */
    double *frame, *carried, *along, *turning;
    double *most; /* of a contact that hovers: the bound of friction, `bound` being the part that acts */
} rub_series;

/* What counts as 0; zero_gap, zero_slip: of a term of these series, in the decision at hand. */
typedef struct rub_zero {
    double tol_gap, tol_u, tol_slip, zero_gap, zero_slip;
} rub_zero;

/* A contact over series. */
typedef struct rub {
    contact *c;
    size_t family;
    rub_terms terms;
    rub_series series;
    rub_zero zero;
    contact_mode mode;
    int sign, sigma;  /* of slip along one direction; of the reaction (-1 only for equalities) */
    bool candidate;   /* at the gap, with no rate of it */
    int col_n, col_t; /* unknowns of its reaction, -1: none */
    meeting now;      /* its part in what happens at an instant */
    double un;
    /* time of the last impact, what it lacks; the last two flights */
    double last_hit, last_low, flight, before;
    double grip_n, grip_t; /* |row| in the metric of M^-1, of the gap and the largest of slip */
    double r0, *rt0;       /* order 0, from the step problem */
    double share;          /* of friction, where the motion leaves open how contacts share it */
    int row;
    bool start; /* slip from rest in two or more directions: not by series */
} rub;

/* END_NONE: modes and series of now are known */
typedef enum {
    END_NONE,
    END_STEP,
    END_GAP,
    END_RN,
    END_CONE,
    END_SLIP,
    END_REST, /* slip in several directions that is all but at rest */
    END_SITE,
    END_WHEN,
    END_BREAK
} end_kind;

typedef struct ev_event {
    taylor *when;
    term reset;
    const event_rule *rule;
    int32_t index[MAX_INDEX];
    bool was, fired; /* it held before; it fired at this instant */
} ev_event;

/* Series of the piece at hand. */
typedef struct ev_series_room {
    double *qs, *vs, *xs, *fs, *Ms; /* positions, rates, highest derivatives, forces, masses */
    series_inputs in;               /* its unit of time is that of all series */
    taylor **mass, **force, **kinetic, **potential;
    int nmass, nforce;
    /* those at work in this piece */
    taylor **all;
    int nall;
    double last_natural; /* of the last series */
    double natural;      /* step that the tolerance allows */
    double unit;         /* of time, in runs that do not need a shorter one */
} ev_series_room;

/* The linear problem of each order. */
typedef struct ev_linear {
    double *A, *lu, *rhs, *sol;
    double *row_scale, *col_scale; /* of A: rows times, columns times; powers of 2 */
    int *pivot, unknowns;
    bool singular;
    bool contradicts; /* singular, and without a solution: no motion has these modes */
    double
        most; /* the largest term of the orders so far: what is rounding beside it is not a contradiction */
    /* reactions that the motion leaves open: as the step problem has them, not least in friction */
    bool split;
} ev_linear;

/* The step problem at an instant. */
typedef struct ev_hand {
    rub **act;
    meeting **meetings;
    int nact;
    contact_problem pr;
    contact_work *cwork;
    double *W, *b, *off, *rr, *u, *dir, *G, *x1, *x2, *before, *q_right;
    cone *cone;
    bool trying; /* a problem that is not solved is not a failure: there is another way */
} ev_hand;

/* Slip that starts from rest in two or more directions: time since rest, unit of it, ends of the step
   before. */
typedef struct ev_start {
    bool starting, start_piece; /* more such steps follow; the piece at hand is one */
    bool start_failed;          /* in the decision at hand: such a step could not be found */
    int resting;                /* contact whose slip ends with the last piece; -1: none */
    double elapsed, start_unit, *acc_end, *jerk_end, *newton, *qx, *vx;
    double *acc_rest, acc_slip; /* accelerations at rest, and what they do to slip, as |a| sqrt(m) */
    struct start_room *room;
} ev_start;

/* Sizes seen so far, and times that follow from them. */
typedef struct ev_sizes {
    double *vmax, *qmax;
    double size;       /* of forces and accelerations in the kinetic metric: |f|/sqrt(m), |a| sqrt(m) */
    double size_top;   /* the largest size so far */
    double size_tried; /* and among the modes tried for the last decision */
    double rounded;    /* the largest change of rates by forces over a piece so far, in the kinetic metric */
    double last_h;
    double moment;  /* in which the motion would come as far as it is: positions over rates */
    double decided; /* time of the last decision on modes */
    /* how long a piece is held beyond its end when the next one is not analytic there, of the run */
    double creep;
} ev_sizes;

/* How far the chain of pieces has come. */
typedef struct ev_progress {
    int stuck, crawled; /* pieces without length, tiny ones, in a row */
    double met,
        met_first;    /* the fastest approach, by what counts as 0: at the last shock, and before these */
    end_kind pending; /* what ended the last piece and is still to be dealt with */
    bool begun;       /* the start is known, and there is a motion to follow */
    bool stopped, creeping; /* creeping: beyond a switch whose next piece is not analytic at its end */
} ev_progress;

typedef struct ev {
    const program *p;
    const run_options *o;
    results *r;
    run_clock *c;
    arena *a;
    system_t *s;
    int n, K, width;                /* dofs, order, coefficients kept */
    double tol, local, fixed;       /* asked; of one step; the step when it is given, else 0 */
    double t_low, *q_low, *v_low;   /* what t, q and v lack: events add up without loss */
    double t, *q, *v, *acc, *f, *M; /* now; acc and f belong to the piece or decision at hand */
    ev_series_room series;
    ev_linear linear;
    ev_hand hand;
    ev_start start;
    ev_sizes sizes;
    rub *rub;
    int nrub;
    bool frames;  /* a contact has friction without slip on a constraint that moves */
    int tangents; /* components of friction that are kept of a contact */
    ev_event *event;
    int nevent;
    vec(piece) pieces;
    /* the sample at hand: the piece it lies in (NULL: the start, where no piece is), and where in it */
    const piece *in_piece;
    double in_at;
    history *hist;
    struct choice *choice; /* options of the contacts whose mode is sought */
    ev_progress progress;
} ev;

/* ---- series at times in seconds: coefficients are those of powers of time by the unit ---- */
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

/* Friction that sticks while the normal turns: its directions are those of the start of a piece. */
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

/* square of the friction of a contact that sticks, order j */
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
bool ev_series(ev *w);        /* of the modes at hand; false: failed */
double ev_scale(const ev *w); /* a time over which coefficients can be compared */
void ev_force0(ev *w);        /* masses and forces at the instant */
bool ev_accelerations(ev *w, double t, const double *q, const double *v, double *a);
bool dense_solve(double *a, double *b, int n, int *pivot); /* both destroyed */
double ev_mass(const ev *w, int k);                        /* of dof k alone, now */
double ev_dot(const ev *w, const double *row, const double *x, int j);
/* of what is left of the bound of a contact that sticks: what counts as 0 */
double ev_zero_friction(const ev *w, const rub *k);
bool ev_fail(ev *w, span at, const char *message);
const char *ev_number(ev *w, double x);

/* events_mode.c */
bool ev_survey(ev *w); /* masses, rows and gaps now */
void ev_round(ev *w);  /* q and v lack nothing */
bool ev_shock(ev *w);
bool ev_decide(ev *w); /* modes to the right of now; the series is theirs */
/* what counts as 0 in a decision: of a reaction along a row of that grip, of a second rate of it */
double ev_zero_force(const ev *w, double grip);
double ev_zero_rate(const ev *w, double grip);
bool ev_ahead(ev *w, double h, double *acc); /* accelerations after h, roughly */
bool slip_start(ev *w);                      /* events_start.c; false: no such step was found */

/* events_keep.c */
void ev_keep(void *of, run_state *s);

/* events_dense.c */
void dense_keep(ev *w, double h); /* the piece at hand, as long as it was used */
void dense_install(ev *w);
void dense_pieces(ev *w, run_state *s); /* as part of a state */
void dense_sample(ev *w, double h);
void dense_energy(ev *w, const double *v, energies *e); /* of the state in which the system stands */
bool dense_fill(void *of, run_clock *c, int64_t at, energies *e); /* columns of the sample at hand */
#endif
