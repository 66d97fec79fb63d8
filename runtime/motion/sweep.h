/* sweep: the working data of a run of sweeping or auglag, shared by its source files. */
#ifndef CDL_SWEEP_H
#define CDL_SWEEP_H
#include <math.h>
#include "instant.h"
#include "sweeping.h"
#include "clock/later.h"
#include "contact/contact.h"
#include "contact/impulses.h"
#include "contact/mixed.h"
#include "program/near.h"
#include "base/tolerances.h"

enum { FEW_ROWS = 24 }; /* rows up to which W is stored as a matrix, if the other conditions hold */
enum { MAX_HITS = 10 }; /* impacts of one contact in a step; after that it stays closed for the rest of it */
/* Repeated impacts of a step, of all contacts together, that are followed one by one. */
enum { MAX_AGAIN = 24 };
/* Bounds by cost on what is followed, of one island each: its closed contacts whose rows turn, and its
 * contacts that are put back on their surfaces together.  Beyond them a whole step follows. */
enum { MANY_TURNING = 100, MANY_PUT_BACK = 96 };
/* Crowded islands with more contacts than this wait before they are tried again. */
enum { FEW_WAIT = 32 };

/* The effect of reactions on the rates: for each row n entries, at the dofs of the contact or at all dofs. */
typedef struct column {
    double *a;
    int n;
    bool local; /* entries only at the dofs of the contact */
    size_t room;
} column;

/* The problem of a single contact, over a step and at an instant, with the matrices of both. */
typedef struct lone_problem {
    cone cone, cone_now;
    double *A, *Am;
    int64_t stamp_a, stamp_am;
    double cone_step;
} lone_problem;

/* The data of a contact that last through the run. */
typedef struct contact_state {
    /* read in every step */
    contact *c;
    int row;                   /* first row in the current problem */
    int normal;                /* normal rows: 1 or 0 */
    contact_relation relation; /* relation of its family */
    bool rows_fixed, offset_fixed, still;
    bool near;       /* belongs to a pair found by the search for near pairs */
    int at;          /* place in the table of all contacts; -1: not there yet */
    double *r, *P;   /* its reaction and impulse in the table */
    double tol_slip; /* slip below this counts as 0; from the sizes of q and q' seen so far */
    double *s0m, htm;
    double speed;
    const double *length; /* scale of its overlaps: that of its family, or of all near pairs */
    int64_t sized;        /* number of the growth of sizes for which its tolerances were computed */
    contact_result *out;
    /* Rows at the start of the step, and their mean over the step, along which reactions act. */
    double *H0, *S0, *Hm, *Sm;
    /* The same two for the directions of friction in the space of slip; NULL: they never turn. */
    double *show0, *showm;
    double mu0, static0, normal0; /* coefficients and given normal force at the start of the step */
    double push;                  /* its normal reaction in the last problem, for contacts that read it */
    bool pulls;                   /* it pulls over the current step if necessary (adhesion) */
    double along;                 /* tangential restitution of a whole step; 0: none */
    /* D^-1 [Hm; Sm]^T and M^-1 [H; S]^T, a row for each component, and the numbers of the D and M they belong
       to. */
    column G, Gm;
    int64_t stamp, stamp_m;
    lone_problem alone;
    meeting now; /* its part in a shock or in the problem of accelerations */
    /* the size of its friction as a part of the brake: in a step (0), at an instant (1) */
    double rubs[2];
} contact_state;

/* The normal row of a contact at its last evaluation, stored for passes over all contacts. */
typedef struct gap_row {
    const int *dof; /* n of them */
    const double *H;
    double ht, e; /* rate of the surface and restitution, for a whole step or if `known` */
    int n, all;   /* all: entries of all rows of the contact; those after the first n do not affect the gap */
    bool whole;   /* entries for all dofs, although many may be 0 */
    bool known;   /* ht and e are valid, and constant */
} gap_row;

/* Its slip, the same way: S v + s0; s0m is s0 at the start of the step. */
typedef struct slip_row {
    const int *dof; /* NULL: all */
    const double *S, *s0, *s0m;
    int n;
    bool fixed; /* S is constant */
} slip_row;

/* What every step reads of all contacts: one array for each quantity, in the order of the states. */
typedef struct contact_table {
    double *gap;     /* contacts point to their values here */
    double *tol_gap; /* gaps below this count as 0 */
    double *tol_u;   /* rates of the gap below this count as 0; both from the sizes of q and q' seen so far */
    double *un;      /* rate of the gap at the start of the step */
    double *ahead;   /* added to the rate of the gap: the remaining gap over a whole step, or restitution */
    gap_row *row;    /* normal rows */
    slip_row *slip;
    size_t *first; /* first component of each contact in r and P */
    double *r;     /* reactions of the last smooth step, as forces: initial guess of the next one */
    double *P;     /* impulses since the start of the step, without shocks; for friction see turns_its_slip */
    size_t rows, rows_room; /* of r and P */
    int *hits;              /* impacts in this step */
    bool counted;           /* there are impacts or impulses in this step */
    bool *closed;           /* closed just after the current time */
    bool *met;              /* gap is below its tolerance at the end of the trial step */
    bool *in;               /* part of the whole step */
    bool *bounds;           /* constraint on a rate, on one side: part of every step, closed at its bound */
    size_t *from;           /* first contact of each family, and the end */
    /* dofs of the rows of near pairs, stored together because the pairs are scattered in memory */
    int *pair_dof;
    size_t pair_room;
    /* Contacts with entries at dof i: of_dof[at_dof[i] .. at_dof[i + 1]); those with entries at all dofs:
       all[0 .. nall). */
    int *at_dof, *of_dof, *all;
    int *every;        /* the numbers of all dofs, 0 to n - 1 */
    int nall, entries; /* entries: allocated length of of_dof */
    bool by_dof;       /* the lists by dof are valid (see sweep_by_dof) */
    size_t n;
} contact_table;

typedef struct {
    term when, reset;
} event_terms;

/* States of the pairs of a family that are near, in order, and unused ones. */
typedef struct near_states {
    contact_state **at, **spare;
    int64_t n, nspare, room;
} near_states;

/* What is known about the contacts of the current problem. Stamps say for which set of contacts; -1: for
   none. */
typedef struct act_known {
    int64_t stamp; /* number of the last change of the set of contacts */
    bool fixed;    /* their rows are constant */
    bool still;    /* and so are their offsets and laws: what was computed for a stamp stays valid */
    bool gives;    /* some have adhesion or static friction, which may be exceeded */
    bool turns;    /* for some, the directions of friction turn */
    bool tresca;   /* for some, the bound of friction does not follow from r_n */
    bool rough;    /* some have friction */
    bool rates;    /* some bound rates, by rows or offsets that change */
    int64_t rows, cones, offsets;
    int64_t made;               /* how often cones were computed */
    double cone_step, cone_end; /* step and weight of its end for which the cones were computed */
    int cone_rows;
    /* which rows the list of contacts contains: for masses (1), for the step (0), not the current ones (-1)
     */
    int listed;
} act_known;

/* Matrices of a step. */
typedef struct step_matrices {
    /* Jacobians; D = M - theta h Fv - theta^2 h^2 Fq, and its factors. */
    double *Fq, *Fv, *D;
    factor df;
    const factor *dinv;     /* the factors used in the trial step */
    double d_step;          /* step for which df was computed; NAN: none */
    int64_t stamp, stamp_m; /* numbers of the current D and M */
} step_matrices;

/* Contacts that may take part in a step, and how they are found. */
typedef struct contact_lists {
    contact_state **state; /* in the order of families and members */
    size_t nstate, state_room;
    contact_table table;
    near_list near;
    near_states *near_of; /* states of each family of near pairs */
    contact **gaps_of;    /* temporary, for sweep_gaps */
    contact_state **look; /* temporary: contacts whose gaps are evaluated */
    bool bounds;          /* some are constraints on a rate, on one side */
    bool feeds;           /* normal forces or formulas depend on reactions */
    bool read;            /* formulas do */
    bool starts;          /* pairs of listed shapes may overlap slightly at the start: they are moved apart */
    double margin;        /* how far ahead near pairs are searched, in steps */
} contact_lists;

/* Friction without slip of all contacts together (sweep_brake.c). */
typedef struct braking {
    bool on;         /* some contacts have it */
    bool acts[2];    /* it acts in the last problem: of a step (0), of an instant (1) */
    double *lost[2]; /* n: its change of the rates there */
    double *D;       /* matrix of the step with friction in it, and its factors; NULL: always the masses */
    factor df;
    double *free, *force, *room; /* n: rates without reactions; two temporary arrays */
    double scale;                /* factor of the rates of the current problem over those of the motion */
    double speed, rest;          /* speed of the model at a sample, and which speed counts as 0 */
    contact_state turn;          /* represents it in the search for slips that reverse */
} braking;

/* The current problem: of a step or of an instant, for the contacts that take part. */
typedef struct problem_at_hand {
    contact_state **act;
    int *place; /* their places in the table */
    int nact;
    meeting **meetings; /* of the contacts at an instant */
    act_known known;
    int rows_room, contacts_room;
    bool *who;
    int *perm;
    contact_problem pr;
    contact_work *work;
    double *W, *b, *off, *rr, *u;     /* u = J x + off are the rates without reactions; stored in b */
    double *unit;                     /* units of the rows of W, see contact/equal.h */
    double *kept_r;                   /* for each row: its initial reaction */
    int rows_most, dofs_most;         /* the largest numbers of rows and dofs of a contact */
    int matrix_rows, matrix_contacts; /* allocated size of W */
    /* errors of the rates that its tolerance permits, at an instant (index 1) and over a step (0) */
    double blur[2];
    bool unsolved; /* the last problem was not solved */
    braking brake; /* friction without slip in it */
    cone *cone;
    const struct problem_watch *watch; /* from the options; constant during the run */
    column recorded;                   /* temporary, for sweep_record */
    double *dir, *local;
    bool tol_follows; /* its tolerance depends on the number of contacts, because the user gave none */
    int tol_contacts; /* number of contacts that it was set for */
    double step;      /* length of the step: 1 for forces, the step for impulses, 0 for shocks */
    double end;       /* weight of the end of the step in coefficients; 1 at an instant */
} problem_at_hand;

/* The same problem with many contacts. */
typedef struct balls_known balls_known;
typedef struct crowd_problem {
    const balls_known *balls;        /* balls of a model of balls in space; NULL: the model is another one */
    impulses chain;                  /* all contacts, if rows are constant and few contacts share a dof */
    impulses list;                   /* the contacts as a list */
    int64_t chain_cones, list_cones; /* numbers of the cones they contain; -1: none */
    mixed *coupled[2];               /* with rates among its unknowns; for masses [1] and for a step [0] */
    contact_state **coupled_act[2];  /* contacts of their last problems */
    int coupled_n[2];
    int64_t coupled_stamp[2];
    int coupled_room[2];
    double *free, *root; /* n each: rates without reactions; roots of the inverse masses */
    /* groups of dofs coupled by masses; NULL: all dofs are separate, or groups are too large */
    matrix_groups *bodies;
    /* n: place of a dof in a row by bodies, -1 between uses; number of dofs of such rows */
    int *place, body_dofs;
    bool by_bodies;  /* the last factors of the masses are also stored body by body */
    bool root_known; /* `root` is computed, and masses are constant */
} crowd_problem;

/* Contacts that are moved back to their surfaces. */
typedef struct putting_back {
    contact_state **back;
    bool back_mean;      /* along the mean of their rows over the step */
    mixed *back_coupled; /* for moves of many contacts */
    double *back_room;
    int back_most;
} putting_back;

/* Energy and work of a step. */
typedef struct step_account {
    books *books;               /* books of the clock */
    double step_from;           /* start of the last step of the run */
    double *driving, *driving1; /* n: forces without potential now and at the end of the step */
    double power, power1;       /* and power that belongs to no dof */
    bool driving_known;         /* `driving` and `power` are valid for the current state */
    double *used;               /* n: forces used in the whole step */
    double opened;              /* work of smooth forces along corrections of positions */
    /* Energy gained by its contacts, and energy given to moving surfaces; valid if gain_known. */
    double gain, given;
    bool gain_known;
} step_account;

/* Conditions of `when`. */
typedef struct event_watch {
    event_terms *events;
    bool *rising, *fired, stopped;
    size_t nfired;
    bool *pieces;                 /* of each family: its gap has pieces, so its row may jump */
    struct contact_state *corner; /* corner of a gap in front of which the current step ends; NULL: none */
    double corner_ahead;          /* time from there to beyond the corner */
} event_watch;

/* In a whole step, islands that are calm enough may be followed beside the crowd (sweep_islands.c). */
typedef enum { STEP_UNDIVIDED, STEP_CROWD, STEP_CALM } step_stage;
typedef enum { PART_CROWD, PART_CALM, PART_BETWEEN } contact_part;

typedef struct island_parts {
    bool judges;     /* it is known which island has too many impacts */
    bool may;        /* the model permits it */
    bool *marked;    /* n: dofs of islands that wait: they take whole steps without a trial */
    bool *impatient; /* n: dofs of islands that were crowded since patience was full */
    bool *followed;  /* n: dofs that were followed in the last step, beside a crowd */
    /* STEP_CROWD: all take a whole step; STEP_CALM: the calm islands again, with cuts at impacts */
    step_stage stage;
    bool found;    /* islands are those of the state at hand */
    bool known;    /* and which of them crowd is known of this step */
    bool *calm;    /* n: dofs of the calm islands of the step */
    uint8_t *part; /* contact_part of each contact, in the order of the states */
    /* Effects of the whole step on the crowd alone. */
    double work, dissipated, opened;
    int acted; /* contacts of the last problem of the whole step: most of an island of the crowd */
    struct island_room *room;
} island_parts;

/* A whole step without solution is halved at most this often. */
enum { HALVES = 5 };

/* What cut the step so far: contacts that were met, or whose slip turned. */
typedef struct cut_note {
    const contact_state *of;
    int piece;  /* number of the piece of the step that begins with it */
    bool again; /* it was hit before in the step */
} cut_note;

typedef struct cut_notes {
    cut_note *at;
    int n, room, piece; /* piece: that begins now */
} cut_notes;

/* How impacts are followed, and what is tried if a step fails. */
typedef struct step_policy {
    cut_policy cut;
    bool was_at_once;    /* of the last step */
    int wait, wait_next; /* whole steps until impacts are followed again */
    bool waits;          /* this step is one of them, or shapes lie on each other */
    bool lies;           /* they do */
    int again;           /* repeated hits of contacts in this step */
    int patience;        /* repeated hits that are permitted in a step before it becomes a whole step */
    cut_notes cuts;      /* in the order of pieces */
    const struct contact_state *failed; /* whose problem the trial step could not solve; NULL: not known */
    /* EFFORT_CUT: a step without solution is tried in halves; EFFORT_LITTLE: a sample can use mean rates
       instead. */
    solver_effort effort;
    /* Whole steps: how often they are halved; parts to solve before longer ones are tried, now and after the
       next failure. */
    int halved, part_wait, part_next;
    bool trial; /* a failing step has an alternative, so failures are not final */
    /* The contact whose reversal of slip was found last in this step, and the slip that its problem left. */
    const struct contact_state *turned;
    double turned_slip;
    bool turn_cut; /* the trial step ends where it turned */
    bool tried;    /* gaps belong to a step that was given up */
    /* The trial step includes all contacts that may close, with the rows of its start: it always has a
       solution. */
    bool whole;
    bool fixed;           /* by sweep_fixed */
    island_parts islands; /* islands that are followed beside a crowd */
} step_policy;

/* The largest values seen so far, from which tolerances are computed. */
typedef struct sizes_seen {
    double *qmax, *vmax; /* n */
    double *light;       /* n: 1 over the mass of each dof, for comparing dofs of different units */
    bool light_known;
    double *lengths;    /* of each family: the largest scale of its gaps */
    double *sizes;      /* n: sizes of terms that are summed */
    int *grown, ngrown; /* dofs whose sizes have grown */
    bool *has_grown;    /* n: false between uses */
    int64_t sized;      /* number of growths */
} sizes_seen;

/* The rates by which bodies move over a whole step. */
typedef struct step_way {
    uint8_t *by_end;   /* n: it moves by the rate at the end of the step */
    int *by_end_since; /* n: in which pass over the contacts that was decided */
    double *aside;     /* n: how far the end lies from where mean rates lead; NULL: not taken into account */
    double *lumped;    /* n: inverse masses without coupling, for opening overlaps */
    int *slot, slots;  /* n: places of the dofs in moves that open overlaps; number of places */
} step_way;

/* Temporary arrays of n numbers. */
typedef struct step_room {
    double *x1, *x2, *x3, *x4;
    double *free;   /* rates without reactions, in case a problem is solved again */
    double *spread; /* 0 between uses */
} step_room;

/* Faster methods for small models; NULL: the model does not fit. */
typedef struct quick_ways {
    struct quick *steps;          /* data of sweep_quick */
    struct sample_later *samples; /* for columns that are computed later */
    struct gauss_later *gauss;    /* accelerations that no step needs, computed later */
    struct native *native;        /* compiled code for plain steps */
    struct lanes *lanes;          /* islands of one contact, in parallel */
    struct fixed_rows *fixed;     /* whole steps of columns */
    struct emitted_run *emit;     /* if not NULL, the run is written there as C instead of being computed */
    native_policy policy;         /* whether plain steps are compiled */
} quick_ways;

typedef struct sweep {
    const program *p;
    const run_options *o;
    results *r;
    system_t *s;
    arena *a, *scratch;
    int n;
    double h, theta, kept_theta;
    double tol;               /* tolerance of the current problem */
    double stiffness;         /* of the penalty of Uzawa's method; 0: not used */
    double t, *q, *v, *f;     /* at the current time */
    double t1, *q1, *v1, *f1; /* end of the trial step */
    double *M, *M1, *Mm;      /* masses now, at the end, their mean */
    double *acc;
    bool anew;   /* constant forces are evaluated again, because parameters may have changed */
    bool fresh;  /* acc belongs to the current state */
    bool jolt;   /* the gap of an equality has a nonzero rate: a shock at the start */
    bool linear; /* a step needs no prediction */
    step_way way;
    step_room room;
    step_matrices matrix;
    contact_lists contacts;
    problem_at_hand hand;
    crowd_problem crowd;
    putting_back putting;
    step_account account;
    event_watch watch;
    step_policy policy;
    sizes_seen size;
    quick_ways quick;
} sweep;

/* ---- sweep_problem.c ---- */
void sweep_forget(sweep *w, double residual); /* forgets a failure, because an alternative was found */
const char *sweep_number(sweep *w, double x); /* as text */
bool sweep_factor(sweep *w, const double *M, double t); /* masses at t, into s->minv */
void sweep_tolerance(sweep *w, int contacts); /* sets tol for a problem with this number of contacts */
void sweep_sizes(sweep *w);                   /* of q and q', including the current ones */
void sweep_tolerances(sweep *w, contact_state *k);
void sweep_gap_tolerances(sweep *w, contact_state *k); /* without that of the slip */
void sweep_sizes_known(sweep *w);                      /* updates tolerances after sizes have grown */
void sweep_law(void *ud, int i, double speed, double *mu, double *radius);
/* Was contact i held by friction below its bound during the step, with the impulses in rr? */
bool sweep_held(sweep *w, int i, double h);
void sweep_cone(sweep *w, int i, int *row);        /* of contact i of the current problem */
void sweep_room(sweep *w, int contacts, int rows); /* allocates room for a problem of this size */
void sweep_cones(sweep *w);
void sweep_matrix(sweep *w, bool mass); /* W = [H; S] G; mass: of forces or shocks at an instant */
/* Solves the current problem (cones, off; initial guess rr) for the reactions; x becomes the rates with them.
 */
bool sweep_solve(sweep *w, bool mass, double *x, double t);
/* The same; the caller has removed rounding from the required rates of gaps. */
bool sweep_solve_put(sweep *w, bool mass, double *x, double t);
void sweep_ways(sweep *w); /* counts the accelerations that satisfy the laws, if there may be several */
void sweep_react(const sweep *w, double *x, bool mass);        /* x += G r */
void sweep_chain(sweep *w);                                    /* lists the contacts, at the start */
void sweep_columns_put(sweep *w, contact_state *k, bool mass); /* computes columns unless they are known */
/* Computes normal forces and formulas that depend on the reactions in rr: of a step of size h, as forces, or
   impulses if h = 0. True: normal forces have changed. */
bool sweep_feed(sweep *w, double h);
bool sweep_fail_contact(sweep *w, int i, double t); /* not solved; contact i has the largest residual */
void sweep_columns(sweep *w, const contact_state *k, const double *H, const double *S, const factor *f,
                   column *G);
/* Column b of G with an entry for every dof; `done` clears it again. */
const double *sweep_column_spread(sweep *w, const contact_state *k, const column *G, int b);
void sweep_column_done(sweep *w, const contact_state *k, const column *G);
void sweep_move(const contact_state *k, double l, double *x); /* x += l M^-1 H^T, by its column Gm */
/* The shortest move in the kinetic metric that changes the gaps of back[0..m) by these amounts, added to x.
   Both arrays may be reordered. */
void sweep_shortest(sweep *w, int m, double *change, double *x);
/* The largest number of back[0..m) that are connected by the bodies they move; near pairs count as connected.
 */
int sweep_largest_group(sweep *w, int m);
double *sweep_lone_matrix(sweep *w, contact_state *k, bool mass);
/* false: it needs the general method */
bool sweep_solve_alone(sweep *w, bool mass, const cone *c, double *x);

bool sweep_solve_unbraked(sweep *w, bool mass, double *x); /* without friction that has no slip */

/* ---- sweep_brake.c ---- */
void sweep_brake_new(sweep *w);
bool sweep_brake_solve(sweep *w, bool mass, double *x);
double sweep_brake_speed(const sweep *w,
                         const double *v); /* of the whole model, in the metric of the masses */
double sweep_brake_rest(const sweep *w);   /* which speed counts as 0 */
double sweep_brake_slip(const contact *c, const double *v, double speed); /* of one contact */
/* power of the friction of the last problem at these rates */
double sweep_brake_power(const sweep *w, bool mass, const double *rate);
/* speed at the end of the trial step along the velocity at its start; see slip_along */
double sweep_brake_along(const sweep *w, double rest);

/* ---- sweep_record.c ---- */
/* Copies the current problem for the caller who records problems, before it is solved; NULL: it is not one of
   a step or an impact. Valid until `scratch` is released. */
struct step_problem *sweep_record(sweep *w, bool mass, const double *x);
void sweep_recorded(sweep *w, struct step_problem *s, bool solved, const char *solver);

/* ---- sweep_step.c ---- */
void sweep_lightness(sweep *w);        /* inverse masses of the dofs, at present */
void sweep_gather(sweep *w);           /* puts closed contacts into act */
bool sweep_not_finite(sweep *w);       /* fails: the trial step leads nowhere */
bool sweep_smooth(sweep *w, double h); /* a trial step: q1, v1, f1, impulses in rr */
bool sweep_look(sweep *w);             /* gaps at its end: was one crossed? */
void sweep_accept(sweep *w, double h);
/* v1: the rates at the end that smooth forces alone lead to, approximately. */
bool sweep_free(sweep *w, double h, double *v1);

/* Work over the trial step of forces without potential, for positions that move by the mean rates (way is
   NULL) or by `way`. */
double sweep_driven(sweep *w, double h, const double *way);
/* Updates f1 from the state q, v to q1, v1, if it is linear. */
void sweep_force_follows(sweep *w, const double *q, const double *v);

/* ---- sweep_quick.c ---- */
/* change of the rates by constant forces in a step, or NULL */
const double *sweep_quick_drift(const sweep *w);
void sweep_quick_new(sweep *w); /* sets up the quick step if the model fits; the start must be known */
/* Takes at most `count` steps of the run. If fewer, the next one needs another method, and nothing has
   changed. */
void sweep_quick(void *of, run_clock *c, int64_t count);

/* ---- sweep_lanes.c ---- */
void sweep_lanes_new(sweep *w); /* sets up the lanes if the model fits; the start must be known */
/* Takes a step of the run; its impacts, hits and impulses must be cleared. False: it needs another method,
   and nothing has changed. */
bool sweep_lanes(sweep *w, double end);

/* ---- sweep_native.c ---- */
/* Compiles plain steps if the policy says so; sweep_quick must be set up. */
void sweep_native_new(sweep *w, const run_clock *c);
/* called by sweep_quick, with the same meaning */
void sweep_native_steps(sweep *w, run_clock *c, int64_t count);
void sweep_native_close(sweep *w);

/* ---- sweep_shock.c ---- */
void sweep_impact(sweep *w, const contact_state *k, double pre, double post, double impulse);
bool sweep_shock(sweep *w);
/* closes contacts whose gap is within tolerance, with a shock if they approach above tolerance */
bool sweep_meet(sweep *w);
bool sweep_gauss(sweep *w); /* accelerations just after the current time, with their forces in rr */
/* If no accelerations satisfy the laws at the start: a shock after which there are some. residual: its value
   before. */
bool sweep_jam(sweep *w, double residual);
bool sweep_rates(sweep *w); /* after a jump: rates of first-order dofs, and forces */

/* ---- sweep_events.c ---- */
void sweep_events(sweep *w); /* allocates room for them */
/* Does a condition hold at the end of the trial step that did not hold before? */
bool sweep_rise(sweep *w, bool mark);
bool sweep_locate_event(sweep *w, double *h);
bool sweep_fire(sweep *w); /* resets of the events whose condition became true */

/* ---- sweep_islands.c ---- */
typedef enum { CROWD_WAITS, CROWD_LIES, CROWD_COUNTS, CROWD_UNSOLVED } crowd_reason;
void sweep_islands_new(sweep *w);
/* The rest of the step becomes a whole step. Which islands are the reason, and can others be followed? If so,
   stores their state for sweep_islands_follow. */
void sweep_islands_part(sweep *w, double end, crowd_reason why);
/* After a piece of the whole step: if a contact pushed between calm islands and the crowd, the step stays
   whole. */
void sweep_islands_met(sweep *w);
/* After the whole step: repeats it for the calm islands, with cuts at impacts. If that fails, the whole step
   stays. */
void sweep_islands_follow(sweep *w, double end);
void sweep_islands_forget(sweep *w); /* the step was followed: no island is crowded */
/* The step has many cuts, or many closed contacts that turn. Is this true of a single island? If islands are
   not known, yes. */
bool sweep_islands_crowded(sweep *w, double end);
/* Notes that contact k cuts the step; again: it was hit before in this step. */
void sweep_note_cut(sweep *w, const contact_state *k, bool again);

/* ---- sweep_advance.c, sweep_sample.c, sweeping.c ---- */
bool sweep_advance(sweep *w, double end);
bool sweep_follow_calm(sweep *w, double end); /* false: given up; its failure is forgotten */
bool sweep_turns(const sweep *w);             /* has a slip reversed or come to rest in the trial step? */
/* ---- sweep_contacts.c ---- */
/* Evaluates the gaps of these states at the instant, families in lanes. */
void sweep_gaps(sweep *w, contact_state *const *k, size_t n);
void sweep_gaps_but(sweep *w, const bool *known); /* of all others, unless evaluating all is cheaper */
void sweep_states(sweep *w);                      /* of all listed contacts */
/* Makes the contacts with a flag, in either array, the current problem; `also` may be NULL. */
void sweep_take(sweep *w, const bool *which, const bool *also);
void sweep_touch(sweep *w); /* finds what touches of shapes, for the step */
/* Points of shapes that overlap at the end of the trial step without being part of it join it. True: there
   are some. */
bool sweep_touch_ahead(sweep *w);
/* Do shapes overlap so deeply at the end of the trial step that a shorter one is better? */
bool sweep_too_deep(sweep *w);
bool sweep_part_shapes(sweep *w); /* moves shapes apart that overlap at the end of a step */
/* Finds pairs that may matter in the step, searching `listed` steps ahead; false: failed. */
bool sweep_near(sweep *w, double h, const double *v1, double listed);

void sweep_by_dof(sweep *w); /* lists contacts by dof, unless it is done */

void sweep_table_index(sweep *w); /* sets families and dofs of the table, for the current states */
void sweep_near_again(sweep *w);  /* restores pairs and states after reading a saved state, for near.seen */

/* ---- sweep_open.c ---- */
double sweep_small_share(const sweep *w); /* overlaps up to this fraction of a length are not opened */
void sweep_open_new(sweep *w);            /* after the states are set up */
void sweep_open(sweep *w); /* q1 += the shortest move that opens the contacts of the current problem */

/* ---- sweep_balls.c ---- */
void sweep_balls_new(sweep *w); /* finds which dofs are balls; pairs that may come near must be known */
/* Solves the current problem if it is one of many balls with a loose tolerance; rate: rates without impulses.
   False: it is not, or sweeps do not solve it; nothing has changed. */
bool sweep_balls_solve(sweep *w, double *rate);

/* ---- sweep_keep.c ---- */
void sweep_keep(void *of, run_state *s);
bool sweep_forgets(const program *p); /* does each step begin without the pivots of the one before? */

/* ---- sweep_whole.c ---- */
/* May it close within a step of size h? v1 contains the rates that smooth forces alone lead to. */
bool sweep_may_close(const sweep *w, size_t i, double h);
bool sweep_whole(sweep *w, double h); /* a trial step that includes impacts */
void sweep_whole_end(sweep *w);
/* Is this energy, gained in the step, more than rounding of the energy of the motion? */
bool sweep_whole_gained(const sweep *w, double gain);
bool sweep_whole_positions(sweep *w, double h); /* positions at the end: q1 and gaps */
void sweep_whole_account(sweep *w, double h);
double sweep_micro_time(const sweep *w,
                        double h);      /* gaps that count as closed, over the change of their rate */
void sweep_whole_note(sweep *w, int i); /* the impact of contact i of the problem at hand, if it is one */
void sweep_whole_open(sweep *w);        /* pushes remaining overlaps open; q1 and gaps must be known */

/* ---- sweep_fixed.c ---- */
void sweep_fixed_new(sweep *w); /* packs the rows if the model fits; the start must be known */
/* Can sweep_fixed take the whole step of size h? Then it gives the same result as the general method. */
bool sweep_fixed_fits(const sweep *w, double h);
bool sweep_fixed(sweep *w, double h);
void sweep_fixed_note(sweep *w); /* its impacts */
void sweep_fixed_accept(sweep *w,
                        double h); /* stores impulses, opens contacts, moves to the end of the step */

/* Kinetic energy of second-order dofs; shown: as the model defines it. */
double sweep_kinetic(sweep *w, double *shown);
double sweep_potential(sweep *w); /* energy at the current time */
void sweep_open_books(sweep *w);  /* energies at the start, before any impact */
bool sweep_sample(void *of, run_clock *c, int64_t at, energies *e);
/* Stores everything of a sample whose other columns are computed later, except what the clock stores. */
void sweep_sample_state(sweep *w, int64_t at);
const later_ops *sweep_offer_later(sweep *w); /* NULL: columns are filled at once */
/* component j of the last known reaction */
double sweep_reaction(const sweep *w, const contact_state *k, int j);
bool sweep_holds(sweep *w, const contact_state *k); /* is its gap finite and not negative? */
bool sweep_survey(sweep *w);                        /* gaps, rows and closed contacts of the current state */

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Gaps below this count as 0, for positions of these sizes. */
static inline double gap_tolerance(const contact *c, const double *size)
{
    return GAP_IS_ZERO * contact_size(c, c->H, size);
}

/* x = A^-1 b; small cases inline. */
static inline void solve_with(const factor *f, const double *b, double *x)
{
    int n = f->n;
    if (f->kind == FACTOR_DIAGONAL)
        for (int i = 0; i < n; i++)
            x[i] = f->a[i] * b[i];
    else if (f->kind == FACTOR_INVERSE)
        for (int i = 0; i < n; i++)
            x[i] = vec_dot(f->a + (size_t)i * n, b, n);
    else
        factor_solve(f, b, x);
}

enum { FETCHED = 8 }; /* how many contacts ahead a pass fetches data that are scattered in memory */

static inline void fetch(const double *row, int n)
{
    for (int k = 0; k < n; k += 8)
        __builtin_prefetch(row + k);
}

/* Fetches the rows of contact i + FETCHED of n, and the pointers to later ones. */
static inline void fetch_slip(contact_state *const *state, int i, int n)
{
    if (i + 3 * FETCHED < n)
        __builtin_prefetch(state[i + 3 * FETCHED]);
    if (i + 2 * FETCHED < n) {
        __builtin_prefetch(state[i + 2 * FETCHED]->c);
        __builtin_prefetch((const char *)state[i + 2 * FETCHED]->c + 64);
    }
    if (i + FETCHED < n) {
        const contact *c = state[i + FETCHED]->c;
        fetch(c->H, c->n);
        fetch(c->S, c->d * c->n);
    }
}

/* The row of a contact times v. */
static inline double row_rate(const gap_row *r, const double *v)
{
    const double *H = r->H;
    const int *dof = r->dof;
    double sum = 0;
    if (r->n == 2) /* two bodies on a line: without a loop */
        return sum + H[0] * v[dof[0]] + H[1] * v[dof[1]];
    for (int k = 0; k < r->n; k++)
        sum += H[k] * v[dof[k]];
    return sum;
}

/* Stores the current surface rate and restitution of a contact. */
static inline void row_note(gap_row *r, const contact_state *k)
{
    r->ht = k->c->ht;
    r->e = k->c->e;
    r->known = k->still;
}

/* A whole step uses rows and laws of its start. Not those of a bound on rates: it has no gap that could be
   corrected afterwards, so it must hold for the rates and rows at the end. */
static inline bool rows_of_start(const sweep *w, const contact_state *k)
{
    return w->policy.whole && !k->c->fam->f->of_rates;
}

/* Do reactions of the step act along the mean of the rows at both ends? */
static inline bool along_mean(const sweep *w, const contact_state *k)
{
    return !k->rows_fixed && !rows_of_start(w, k);
}

/* Component j of a slip, without the rate of the surface. */
static inline double slip_rate(const slip_row *s, int j, const double *v)
{
    const double *S = s->S + (size_t)j * (size_t)s->n;
    double sum = 0;
    if (!s->dof)
        return vec_dot(S, v, s->n);
    for (int k = 0; k < s->n; k++)
        sum += S[k] * v[s->dof[k]];
    return sum;
}

static inline double gap_rate(const contact_state *k, const double *v)
{
    return contact_gap_rate(k->c, v);
}

/* Rate of the gap of contact i of the current problem. */
static inline double act_rate(const sweep *w, int i, const double *v)
{
    const gap_row *r = &w->contacts.table.row[w->hand.place[i]];
    return r->known ? row_rate(r, v) + r->ht : gap_rate(w->hand.act[i], v);
}

/* Rows, offsets and cones that were computed for the current contacts are no longer valid. */
static inline void sweep_make_anew(sweep *w)
{
    w->hand.known.rows = w->hand.known.offsets = w->hand.known.cones = w->hand.known.listed = -1;
}

/* Points of two shapes that do not touch soon need no rows now: if they meet within the step, rows are
   computed then. */
static inline bool sweep_far(const sweep *w, const contact_state *k)
{
    return k->c->fam->f->pair.touch && shapes_far(w->s->shapes, k->c->fam->f, k->c->index);
}

static inline bool closed(const sweep *w, const contact_state *k)
{
    return w->contacts.table.closed[k->at];
}

/* Does it pull if necessary? Reactions of the problem are pushes; the pull is added as a force. */
static inline bool sticks_on(const sweep *w, const contact_state *k)
{
    return k->c->fam->adhesion.k && closed(w, k);
}

/* Is the motion of this dof ignored in the current pass? */
static inline bool set_aside(const sweep *w, int dof)
{
    return w->policy.islands.stage == STEP_CALM && !w->policy.islands.calm[dof];
}

static inline bool always(const contact_state *k)
{
    return !contact_opens(k->c);
} /* bilateral, always closed, or on a rate */

/* how many contacts are closed */
static inline int closed_now(const contact_table *t)
{
    int n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += t->closed[i];
    return n;
}

/* Is a constraint on a rate at its bound after this rate and push? */
static inline bool at_bound(const contact_table *t, int at, double rate, double push)
{
    return push > 0 || rate <= t->tol_u[at];
}

/* Component j of the problem. */
static inline const double *row_of(const contact_state *k, const double *H, const double *S, int j)
{
    return j < k->normal ? H : S + (size_t)(j - k->normal) * (size_t)k->c->n;
}

static inline int rows_of(const contact_state *k)
{
    return k->normal + k->c->d;
}

/* Do the directions of its friction change from step to step? Impulses of friction are then summed in the
   space of slip, where impulses with different directions can be added. */
static inline bool turns_its_slip(const contact_state *k)
{
    return k->show0 != NULL;
}

#define SWAP(a, b)           \
    do {                     \
        double *swap_ = (a); \
        (a) = (b);           \
        (b) = swap_;         \
    } while (0)
#endif
