/* sweep: a run of sweeping or auglag at work, shared by the files it is made of. */
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

enum { FEW_ROWS = 24 }; /* of W as a matrix: where that is the way */
enum { MAX_HITS = 10 }; /* impacts of one contact in a step; after that it stays closed for the rest of it */
/* repeated impacts of a step, all contacts taken together, that are followed one by one */
enum { MAX_AGAIN = 24 };
/* closed contacts of an island whose rows turn: more of them are not tried to be followed */
enum { MANY_TURNING = 100 };

/* What reactions do to the rates: rows of n entries, at the dofs of their contact or at all. */
typedef struct column {
    double *a;
    int n;
    bool local; /* at the dofs of the contact */
    size_t room;
} column;

/* The problem of a contact that is alone, over a step and at an instant, with the matrices of both. */
typedef struct lone_problem {
    cone cone, cone_now;
    double *A, *Am;
    int64_t stamp_a, stamp_am;
    double cone_step;
} lone_problem;

/* What a contact carries along the run. */
typedef struct contact_state {
    /* what every step reads */
    contact *c;
    int row;                   /* in the problem at hand */
    int normal;                /* normal rows: 1 or 0 */
    contact_relation relation; /* its family's: what each step asks for */
    bool rows_fixed, offset_fixed, still;
    bool near;       /* of a near pair */
    int at;          /* in the table of all; -1: not there yet */
    double *r, *P;   /* in the table: reaction and impulse, see there */
    double tol_slip; /* what counts as 0: from the sizes of q and q' seen so far */
    double *s0m, htm;
    double speed;
    const double *length; /* what its overlaps are measured by, of its family or of all near pairs */
    int64_t sized;        /* for which growth of sizes its tolerances are */
    contact_result *out;
    /* rows at the start of the step, and their mean over it, along which reactions act */
    double *H0, *S0, *Hm, *Sm;
    /* directions of friction in the space of slip, the same two; NULL: they never turn */
    double *show0, *showm;
    double mu0, static0, normal0; /* coefficients and given normal force at the start of the step */
    double push;  /* its normal reaction in the problem last solved, for those that it feeds */
    bool pulls;   /* over the step at hand, if it has to */
    double along; /* tangential restitution of the whole step; 0: none */
    /* D^-1 [Hm; Sm]^T and M^-1 [H; S]^T, a row for each component; which D and M they belong to */
    column G, Gm;
    int64_t stamp, stamp_m;
    lone_problem alone;
    meeting now; /* its part in what happens at an instant */
} contact_state;

/* The normal row of a contact as it was last evaluated, where a pass over all contacts finds it. */
typedef struct gap_row {
    const int *dof; /* n of them */
    const double *H;
    double ht, e; /* of a whole step, or known: rate of the surface, restitution */
    int n, all;   /* of all rows of the contact: behind n those that the gap does not see */
    bool whole;   /* at all dofs there are, though many entries may be 0 */
    bool known;   /* ht and e are there, and never change */
} gap_row;

/* Its slip, the same way: S v + s0, and s0 at the start of the step. */
typedef struct slip_row {
    const int *dof; /* NULL: all */
    const double *S, *s0, *s0m;
    int n;
    bool fixed; /* S never changes */
} slip_row;

/* What every step reads of all contacts, one array for each quantity, in the order of the states. */
typedef struct contact_table {
    double *gap;     /* where contacts keep it */
    double *tol_gap; /* which gap counts as 0 */
    double *tol_u;   /* which rate of the gap does; both from the sizes of q and q' seen so far */
    double *un;      /* rate of the gap at the start of the step */
    double *ahead;   /* added to it: what is left of the gap over a whole step, or restitution */
    gap_row *row;    /* normal rows */
    slip_row *slip;
    size_t *first; /* of the components of a contact in r and P */
    double *r;     /* reactions of the last smooth step, as forces: start of the next */
    double *P;     /* impulses since the step began, shocks left out; of friction: see turns_its_slip */
    size_t rows, rows_room; /* of r and P */
    int *hits;              /* impacts in this step */
    bool counted;           /* there are impacts or impulses of this step */
    bool *closed;           /* in contact to the right of now */
    bool *met;              /* below its tolerance at the end of the trial step */
    bool *in;               /* part of the whole step */
    bool *bounds;           /* bounds rates from one side: part of every step, closed at its bound */
    size_t *from;           /* of the first contact of each family, and of the end */
    int *pair_dof;          /* dofs of the rows of near pairs: what these carry lies all over the memory */
    size_t pair_room;
    /* contacts with rows at a dof: of_dof[at_dof[i] .. at_dof[i + 1]); those with rows at all dofs:
     * all[0..nall) */
    int *at_dof, *of_dof, *all;
    int *every;        /* all dofs, one after the other */
    int nall, entries; /* entries: room of of_dof */
    bool by_dof;       /* these are there: sweep_by_dof makes them */
    size_t n;
} contact_table;

typedef struct {
    term when, reset;
} event_terms;

/* Tracks of the pairs of a family that are near, in order, and some that are free again. */
typedef struct near_states {
    contact_state **at, **spare;
    int64_t n, nspare, room;
} near_states;

/* What is known of the contacts of the problem at hand.  Stamps say for which of them; -1: for none. */
typedef struct act_known {
    int64_t stamp; /* number of the last change of who they are */
    bool fixed;    /* their rows never change */
    bool still;    /* nor do their offsets and laws: what was made of these for a stamp stays */
    bool gives;    /* some adhere or have friction at rest, which may give way */
    bool turns;    /* some have directions of friction that turn */
    bool tresca;   /* the friction of some has a bound that does not follow from r_n */
    bool rough;    /* some have friction */
    int64_t rows, cones, offsets;
    int64_t made;               /* how often cones were made */
    double cone_step, cone_end; /* which the cones are for */
    int cone_rows;
    int listed; /* whether the list holds their rows as they are, for masses (1) or the step (0); -1: no */
} act_known;

/* Matrices of the step. */
typedef struct step_matrices {
    /* Jacobians, M - theta h Fv - theta^2 h^2 Fq and its factors */
    double *Fq, *Fv, *D;
    factor df;
    const factor *dinv;     /* of the trial step */
    double d_step;          /* step df belongs to; NAN: none */
    int64_t stamp, stamp_m; /* numbers of the D and M at hand */
} step_matrices;

/* Contacts that may matter, and how they are found. */
typedef struct contact_lists {
    contact_state **state; /* in the order of families and members */
    size_t nstate, state_room;
    contact_table table;
    near_list near;
    near_states *near_of; /* states of each family of near pairs */
    contact **gaps_of;    /* room of sweep_gaps */
    contact_state **look; /* room: those whose gaps are evaluated */
    bool bounds;          /* some bound rates from one side */
    bool feeds;           /* normal forces or formulas follow from reactions */
    bool read;            /* formulas do */
    bool starts;          /* pairs of shapes that are listed may overlap by a little: they are moved apart */
    double margin;        /* how far ahead contacts are looked for, in steps */
} contact_lists;

/* The problem at hand: of the step or of an instant, for the contacts that act. */
typedef struct problem_at_hand {
    contact_state **act;
    int *place; /* where the table has them */
    int nact;
    meeting **meetings; /* of those at an instant */
    act_known known;
    int rows_room, contacts_room;
    bool *who;
    int *perm;
    contact_problem pr;
    contact_work *work;
    double *W, *b, *off, *rr, *u;     /* u = J x + off without reactions: that is b */
    double *unit;                     /* of the rows of W, see contact/equal.h */
    double *kept_r;                   /* rows: reactions at the start */
    int rows_most, dofs_most;         /* of a contact */
    int matrix_rows, matrix_contacts; /* room of W */
    double blur[2]; /* rates that its tolerance leaves open, at an instant and over a step: [mass] */
    bool unsolved;  /* the last problem */
    cone *cone;
    const struct problem_watch *watch; /* of the options, as long as the run lasts */
    column recorded;                   /* room of sweep_record */
    double *dir, *local;
    bool tol_follows; /* its tolerance goes by how many contacts act: no other was asked for */
    int tol_contacts; /* for how many that is */
    double step;      /* its size: 1 for forces, the step for impulses, 0 for shocks */
    double end;       /* weight of the end of the step in its coefficients; 1 at an instant */
} problem_at_hand;

/* The same problem where there are many contacts. */
typedef struct balls_known balls_known;
typedef struct crowd_problem {
    const balls_known *balls;        /* the model is one of balls in space; NULL: it is not */
    impulses chain;                  /* of all contacts, where rows never change and few meet at a dof */
    impulses list;                   /* as a list of contacts */
    int64_t chain_cones, list_cones; /* which cones these have, by their number; -1: others */
    mixed *coupled[2];               /* with the rates among its unknowns; of masses, of the step */
    contact_state **coupled_act[2];  /* what their last problem was about */
    int coupled_n[2];
    int64_t coupled_stamp[2];
    int coupled_room[2];
    double *free, *root;   /* n: rates without reactions; roots of the inverse masses */
    matrix_groups *bodies; /* that masses couple the dofs of; NULL: all by themselves, or too many */
    int *place, body_dofs; /* n: where a dof stands in a row by bodies, -1 between uses; dofs of such rows */
    bool by_bodies;        /* the masses last factorised are known body by body too */
    bool root_known;       /* those of masses that never change */
} crowd_problem;

/* Contacts that are put back on their surfaces. */
typedef struct putting_back {
    contact_state **back;
    bool back_mean;      /* along the mean of their rows over the step */
    mixed *back_coupled; /* for moves of many contacts */
    double *back_room;
    int back_most;
} putting_back;

/* Energy and work of the step. */
typedef struct step_account {
    books *books;               /* of the clock */
    double step_from;           /* where the last step of the run began */
    double *driving, *driving1; /* n: forces without potential now and at the end of the step */
    double power, power1;       /* and the power of no dof */
    bool driving_known;         /* those of now */
    double *used;               /* n: forces that the whole step used */
    double opened;              /* work of smooth forces while positions were put right */
    /* of its contacts, and what they give to surfaces that move, where that is known */
    double gain, given;
    bool gain_known;
} step_account;

/* Conditions of `when`. */
typedef struct event_watch {
    event_terms *events;
    bool *rising, *fired, stopped;
    size_t nfired;
    bool *pieces;                 /* of each family of contacts: its gap has pieces, so its row may jump */
    struct contact_state *corner; /* that the step at hand ends in front of; NULL: none */
    double corner_ahead;          /* by how much */
} event_watch;

/* A whole step may have islands that are calm enough to be followed beside the crowd (sweep_islands.c). */
typedef enum { STEP_UNDIVIDED, STEP_CROWD, STEP_CALM } step_stage;
typedef enum { PART_CROWD, PART_CALM, PART_BETWEEN } contact_part;

typedef struct island_parts {
    bool may;         /* the model is one for it */
    bool *marked;     /* n: dofs of islands that crowded when impacts were last followed */
    bool *followed;   /* n: dofs that were followed in the last step, beside a crowd */
    step_stage stage; /* crowd: all take a whole step; calm: those islands once more, with impacts cut */
    bool *calm;       /* n: dofs of the calm islands of the step */
    uint8_t *part;    /* contact_part of each contact, in the order of the states */
    /* what the whole step did to the crowd alone */
    double work, dissipated, opened;
    int acted; /* contacts of the last problem of the whole step */
    struct island_room *room;
} island_parts;

/* a whole step that is not solved is halved so often at most */
enum { HALVES = 5 };

/* How impacts are followed, and what is tried when a step fails. */
typedef struct step_policy {
    cut_policy cut;
    bool was_at_once;    /* the last step */
    int wait, wait_next; /* whole steps before impacts are followed again */
    bool waits;          /* this step is one of them */
    int again;           /* times in this step at which contacts are hit that were hit in it before */
    int patience;        /* impacts followed one by one in a step */
    /* a step that is not solved is tried in halves: EFFORT_CUT; a sample has the mean rates too:
       EFFORT_LITTLE */
    solver_effort effort;
    /* whole steps: how often they are halved; parts to be solved before longer ones are tried; after the
       next one that is in vain */
    int halved, part_wait, part_next;
    bool trial; /* a step that fails is taken in another way */
    /* the contact whose slip was found to turn last in this step, and the slip that its problem left */
    const struct contact_state *turned;
    double turned_slip;
    bool tried; /* gaps are those of a step that was given up */
    /* the trial step takes in what may close, with the rows of its start: it can always be solved */
    bool whole;
    bool fixed;           /* by sweep_fixed */
    island_parts islands; /* that are followed beside a crowd */
} step_policy;

/* Sizes seen so far, which tolerances follow. */
typedef struct sizes_seen {
    double *qmax, *vmax; /* n */
    double *light;       /* n: 1 over the mass of each dof, by which dofs in other units are compared */
    bool light_known;
    double *lengths;    /* of each family: largest of what its gaps are made of */
    double *sizes;      /* n: sizes of what is summed up */
    int *grown, ngrown; /* dofs whose sizes have grown */
    bool *has_grown;    /* n: false between uses */
    int64_t sized;      /* how often they did */
} sizes_seen;

/* By which rates bodies move over a whole step. */
typedef struct step_way {
    uint8_t *by_end;   /* n: goes by the rate at the end of the step */
    int *by_end_since; /* n: in which look at the contacts that was found */
    double *lumped;    /* n: inverse masses without coupling, that overlaps are opened by */
    int *slot, slots;  /* n: where moves that open overlaps lie; how many places there are */
} step_way;

/* Room of n numbers for one use at a time. */
typedef struct step_room {
    double *x1, *x2, *x3, *x4;
    double *free;   /* rates without reactions, where a problem may be solved again */
    double *spread; /* 0 between uses */
} step_room;

/* The short ways of small models; NULL: the model is none for them. */
typedef struct quick_ways {
    struct quick *steps;          /* what sweep_quick steps with */
    struct sample_later *samples; /* what columns are made with later */
    struct gauss_later *gauss;    /* accelerations of all models that take no step by them */
    struct native *native;        /* code of the system's compiler for them */
    struct lanes *lanes;          /* islands of one contact, side by side */
    struct fixed_rows *fixed;     /* whole steps of columns */
    struct emitted_run *emit; /* what the run is written to as C instead of being taken; NULL: it is taken */
    native_policy policy;     /* of that */
} quick_ways;

typedef struct sweep {
    const program *p;
    const run_options *o;
    results *r;
    system_t *s;
    arena *a, *scratch;
    int n;
    double h, theta, kept_theta;
    double tol;               /* of the problem at hand */
    double stiffness;         /* of the penalty that multipliers are found around; 0: none */
    double t, *q, *v, *f;     /* now */
    double t1, *q1, *v1, *f1; /* end of the trial step */
    double *M, *M1, *Mm;      /* masses now, at the end, their mean */
    double *acc;
    bool anew;   /* constant forces are evaluated too: parameters may have changed */
    bool fresh;  /* acc is that of now */
    bool jolt;   /* the gap of an equality has a rate: a shock at the start */
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
void sweep_forget(sweep *w, double residual);           /* a failure that another way around was found for */
const char *sweep_number(sweep *w, double x);           /* as text */
bool sweep_factor(sweep *w, const double *M, double t); /* masses at t, into s->minv */
void sweep_tolerance(sweep *w, int contacts);           /* tol, for a problem of so many */
void sweep_sizes(sweep *w);                             /* of q and q', grown to those of now */
void sweep_tolerances(sweep *w, contact_state *k);
void sweep_gap_tolerances(sweep *w, contact_state *k); /* without those of the slip */
void sweep_sizes_known(sweep *w);                      /* tolerances follow sizes that have grown */
void sweep_law(void *ud, int i, double speed, double *mu, double *radius);
/* Was contact i held by friction below its bound, over the step with the impulses in rr? */
bool sweep_held(sweep *w, int i, double h);
void sweep_cone(sweep *w, int i, int *row);        /* of contact i of the problem at hand */
void sweep_room(sweep *w, int contacts, int rows); /* for a problem of that size */
void sweep_cones(sweep *w);
void sweep_matrix(sweep *w, bool mass); /* W = [H; S] G; mass: of forces or shocks at an instant */
/* Reactions of the problem at hand (cones, off; rr is the start), and the rates x with them. */
bool sweep_solve(sweep *w, bool mass, double *x, double t);
/* The same where rounding has been taken out of what is asked of gaps. */
bool sweep_solve_put(sweep *w, bool mass, double *x, double t);
void sweep_ways(sweep *w); /* counts the accelerations that fit, where sweep_gauss has found one of several */
void sweep_react(const sweep *w, double *x, bool mass);        /* x += G r */
void sweep_chain(sweep *w);                                    /* lists them, at the start */
void sweep_columns_put(sweep *w, contact_state *k, bool mass); /* unless they are known */
/* What follows from the reactions in rr, of a step of size h, as forces; h = 0: impulses.  True: normal
   forces have changed. */
bool sweep_feed(sweep *w, double h);
bool sweep_fail_contact(sweep *w, int i, double t); /* not solved, contact i worst; keep_going: true */
void sweep_columns(sweep *w, const contact_state *k, const double *H, const double *S, const factor *f,
                   column *G);
/* the block of a lone contact, kept while nothing in it changes */
/* column b of G with an entry for every dof; `done` clears it again */
const double *sweep_column_spread(sweep *w, const contact_state *k, const column *G, int b);
void sweep_column_done(sweep *w, const contact_state *k, const column *G);
void sweep_move(const contact_state *k, double l, double *x); /* x += l M^-1 H^T, by its column Gm */
/* The shortest move in the kinetic metric that changes the gaps of back[0..m) by those amounts, added to x.
   Both may be put in another order. */
void sweep_shortest(sweep *w, int m, double *change, double *x);
double *sweep_lone_matrix(sweep *w, contact_state *k, bool mass);
bool sweep_solve_alone(sweep *w, bool mass, const cone *c, double *x); /* false: it has to go the long way */

/* ---- sweep_record.c ---- */
/* The problem at hand for the one who watches, before it is solved; NULL: it is none of a step or an impact.
   It is there until `scratch` is released. */
struct step_problem *sweep_record(sweep *w, bool mass, const double *x);
void sweep_recorded(sweep *w, struct step_problem *s, bool solved, const char *solver);

/* ---- sweep_step.c ---- */
void sweep_lightness(sweep *w);        /* of the dofs, as masses are now */
void sweep_gather(sweep *w);           /* closed contacts, into act */
bool sweep_not_finite(sweep *w);       /* fails: the trial step leads nowhere */
bool sweep_smooth(sweep *w, double h); /* a trial step: q1, v1, f1, impulses in rr */
bool sweep_look(sweep *w);             /* gaps at its end: was one crossed? */
void sweep_accept(sweep *w, double h);
/* v1: rates at the end that smooth forces alone lead to, roughly */
bool sweep_free(sweep *w, double h, double *v1);

/* Work over the trial step of forces without potential, for positions that move by the mean of the rates
   (NULL) or by `way`. */
double sweep_driven(sweep *w, double h, const double *way);
/* f1 from those at q, v to q1, v1, where it is linear */
void sweep_force_follows(sweep *w, const double *q, const double *v);

/* ---- sweep_quick.c ---- */
const double *sweep_quick_drift(const sweep *w); /* what constant forces do to the rates in a step, or NULL */
void sweep_quick_new(sweep *w);                  /* where the model is one for it; the start is known */
/* Up to that many steps of the run; fewer: the next one not by this way, and nothing has changed. */
void sweep_quick(void *of, run_clock *c, int64_t count);

/* ---- sweep_lanes.c ---- */
void sweep_lanes_new(sweep *w); /* where the model is one for it; the start is known */
/* A step of the run, with impacts, hits and impulses of it not counted yet; false: not by this way, and
   nothing has changed. */
bool sweep_lanes(sweep *w, double end);

/* ---- sweep_native.c ---- */
/* Code for the plain steps, as the policy has it; the short ways are known. */
void sweep_native_new(sweep *w, const run_clock *c);
void sweep_native_steps(sweep *w, run_clock *c, int64_t count); /* as sweep_quick, which calls it */
void sweep_native_close(sweep *w);

/* ---- sweep_shock.c ---- */
void sweep_impact(sweep *w, const contact_state *k, double pre, double post, double impulse);
bool sweep_shock(sweep *w);
bool sweep_meet(sweep *w);  /* contacts at their tolerance join, with a shock when they come at a speed */
bool sweep_gauss(sweep *w); /* acc to the right of now, and the forces that go with it in rr */
/* no accelerations fit at the start: a shock that makes them fit; residual: as it was before they were asked
 * for */
bool sweep_jam(sweep *w, double residual);
bool sweep_rates(sweep *w); /* after a jump: rates of first-order dofs, and forces */

/* ---- sweep_events.c ---- */
void sweep_events(sweep *w); /* room for them */
/* does a condition hold at the end of the trial step that did not before? */
bool sweep_rise(sweep *w, bool mark);
bool sweep_locate_event(sweep *w, double *h);
bool sweep_fire(sweep *w); /* resets of those that rose */

/* ---- sweep_islands.c ---- */
typedef enum { CROWD_WAITS, CROWD_COUNTS, CROWD_UNSOLVED } crowd_reason;
void sweep_islands_new(sweep *w);
/* The rest becomes a whole step: which islands are the cause, and are there others that could be followed?
   Then their state is kept, for sweep_islands_follow. */
void sweep_islands_part(sweep *w, double end, crowd_reason why);
/* A piece of the whole step is done.  Where it pushed between calm islands and the crowd, it stays whole.
 */
void sweep_islands_met(sweep *w);
/* The whole step is done: calm islands once more, with impacts cut.  Where that fails it stays as it is. */
void sweep_islands_follow(sweep *w, double end);
void sweep_islands_forget(sweep *w); /* the step was followed: nobody crowds */

/* ---- sweep_advance.c, sweep_sample.c, sweeping.c ---- */
bool sweep_advance(sweep *w, double end);
bool sweep_follow_calm(sweep *w, double end); /* false: given up, what failed is forgotten */
bool sweep_turns(const sweep *w);             /* has a slip turned round or come to rest in the trial step? */
/* ---- sweep_contacts.c ---- */
/* gaps of those states at the instant, families in lanes */
void sweep_gaps(sweep *w, contact_state *const *k, size_t n);
void sweep_gaps_but(sweep *w, const bool *known); /* of all but those, as far as that saves something */
void sweep_states(sweep *w);                      /* of all listed contacts */
/* The problem at hand is that of the contacts with a flag, in either array; `also` may be NULL. */
void sweep_take(sweep *w, const bool *which, const bool *also);
void sweep_touch(sweep *w); /* what touches of shapes, for the step */
/* Points of shapes that overlap at the end of the trial step and were not looked at take part in it from now
 * on.  True: there are some. */
bool sweep_touch_ahead(sweep *w);
/* Do shapes overlap at the end of the trial step so that a shorter one is better? */
bool sweep_too_deep(sweep *w);
bool sweep_part_shapes(sweep *w); /* shapes that overlap at the end of a step are moved apart */
/* Pairs that may matter in the step, as far as `listed` of them lead; false: failed. */
bool sweep_near(sweep *w, double h, const double *v1, double listed);

void sweep_by_dof(sweep *w); /* contacts at each dof, unless they are listed */

void sweep_table_index(sweep *w); /* families and dofs of the table, for the states as they are */
void sweep_near_again(sweep *w);  /* pairs and states of a state that is read, for near.seen */

/* ---- sweep_open.c ---- */
double sweep_small_share(const sweep *w); /* overlaps that are left as they are, as a share of a length */
void sweep_open_new(sweep *w);            /* the states are there */
void sweep_open(sweep *w);                /* q1: the shortest move that opens the contacts at hand */

/* ---- sweep_balls.c ---- */
void sweep_balls_new(sweep *w); /* which dofs are balls; pairs that may come near are known */
/* The problem at hand, if it is one of many balls at a loose tolerance, from the rates without impulses.
   False: it is none, or sweeps do not solve it; nothing has changed. */
bool sweep_balls_solve(sweep *w, double *rate);

/* ---- sweep_keep.c ---- */
void sweep_keep(void *of, run_state *s);
bool sweep_forgets(const program *p); /* does each step begin without the pivots of the one before? */

/* ---- sweep_whole.c ---- */
/* may it close within a step of size h?  v1 holds the rates that smooth forces alone would lead to */
bool sweep_may_close(const sweep *w, size_t i, double h);
bool sweep_whole(sweep *w, double h); /* a trial whole step, impacts and all */
void sweep_whole_end(sweep *w);
bool sweep_whole_positions(sweep *w, double h); /* part of it: where bodies go; q1 and gaps */
void sweep_whole_account(sweep *w, double h);
double sweep_micro_time(const sweep *w,
                        double h);      /* gaps that count as closed, over the change of their rate */
void sweep_whole_note(sweep *w, int i); /* the impact of contact i of the problem at hand, if it is one */
void sweep_whole_open(sweep *w);        /* q1 and gaps are known: overlaps that are left are pushed open */

/* ---- sweep_fixed.c ---- */
void sweep_fixed_new(sweep *w); /* where the model is one for it; the start is known */
/* Can the whole step of size h go by this way?  Then sweep_fixed is the trial step, with the same outcome. */
bool sweep_fixed_fits(const sweep *w, double h);
bool sweep_fixed(sweep *w, double h);
void sweep_fixed_note(sweep *w);             /* its impacts */
void sweep_fixed_accept(sweep *w, double h); /* impulses, who lets go; the end of the step is the state now */

/* kinetic energy of what moves by second-order equations; shown: as it is written */
double sweep_kinetic(sweep *w, double *shown);
double sweep_potential(sweep *w); /* energy now */
void sweep_open_books(sweep *w);  /* energies at the start, before any impact */
bool sweep_sample(void *of, run_clock *c, int64_t at, energies *e);
/* All that is kept of a sample whose columns are made later, but for what the clock keeps. */
void sweep_sample_state(sweep *w, int64_t at);
const later_ops *sweep_offer_later(sweep *w);                         /* NULL: columns are filled at once */
double sweep_reaction(const sweep *w, const contact_state *k, int j); /* the last one known, component j */
bool sweep_holds(sweep *w, const contact_state *k); /* is its gap finite, and not below 0? */
bool sweep_survey(sweep *w);                        /* gaps, rows and closed contacts of the state as it is */

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

/* what counts as a gap of 0 where positions are of those sizes */
static inline double gap_tolerance(const contact *c, const double *size)
{
    return GAP_IS_ZERO * contact_size(c, c->H, size);
}

/* x = A^-1 b, the short ones here */
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

enum { FETCHED = 8 }; /* how many contacts ahead a pass fetches what lies anywhere in memory */

static inline void fetch(const double *row, int n)
{
    for (int k = 0; k < n; k += 8)
        __builtin_prefetch(row + k);
}

/* of contact i + FETCHED of n, and what leads to it of the next ones */
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

/* the row of a contact times v */
static inline double row_rate(const gap_row *r, const double *v)
{
    const double *H = r->H;
    const int *dof = r->dof;
    double sum = 0;
    if (r->n == 2) /* two bodies on a line: without the cost of a loop */
        return sum + H[0] * v[dof[0]] + H[1] * v[dof[1]];
    for (int k = 0; k < r->n; k++)
        sum += H[k] * v[dof[k]];
    return sum;
}

/* the surface and the restitution of a contact as they are now */
static inline void row_note(gap_row *r, const contact_state *k)
{
    r->ht = k->c->ht;
    r->e = k->c->e;
    r->known = k->still;
}

/* component j of a slip, without the rate of the surface */
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

/* the same for contact i of the problem at hand */
static inline double act_rate(const sweep *w, int i, const double *v)
{
    const gap_row *r = &w->contacts.table.row[w->hand.place[i]];
    return r->known ? row_rate(r, v) + r->ht : gap_rate(w->hand.act[i], v);
}

/* What was made for the contacts at hand, rows, offsets and cones, is of no use any more. */
static inline void sweep_make_anew(sweep *w)
{
    w->hand.known.rows = w->hand.known.offsets = w->hand.known.cones = w->hand.known.listed = -1;
}

/* A point of two shapes that never touches, or not soon: rows of where the bodies are now are of no use. When
   they meet within the step, they are made there. */
static inline bool sweep_far(const sweep *w, const contact_state *k)
{
    return k->c->fam->f->pair.touch && shapes_far(w->s->shapes, k->c->fam->f, k->c->index);
}

static inline bool closed(const sweep *w, const contact_state *k)
{
    return w->contacts.table.closed[k->at];
}

/* does it pull, if it has to?  Reactions of the problem at hand are those of pushing, and the pull is a
 * force. */
static inline bool sticks_on(const sweep *w, const contact_state *k)
{
    return k->c->fam->adhesion.k && closed(w, k);
}

/* does the pass at hand count what becomes of that dof? */
static inline bool set_aside(const sweep *w, int dof)
{
    return w->policy.islands.stage == STEP_CALM && !w->policy.islands.calm[dof];
}

static inline bool always(const contact_state *k)
{
    return !contact_opens(k->c);
} /* held, always closed, or of rates */

/* how many contacts are closed */
static inline int closed_now(const contact_table *t)
{
    int n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += t->closed[i];
    return n;
}

/* after which rate it is closed; whether it pushes */
static inline bool at_bound(const contact_table *t, int at, double rate, double push)
{
    return push > 0 || rate <= t->tol_u[at];
}

/* component j of the problem */
/* component j of the problem */
static inline const double *row_of(const contact_state *k, const double *H, const double *S, int j)
{
    return j < k->normal ? H : S + (size_t)(j - k->normal) * (size_t)k->c->n;
}

static inline int rows_of(const contact_state *k)
{
    return k->normal + k->c->d;
}

/* Do the directions of its friction change from step to step?  Impulses of friction are then summed in the
   space of slip itself, where those of steps with other directions can be added. */
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
