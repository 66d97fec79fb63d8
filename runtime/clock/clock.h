/* clock: the time of a run.  A backend of dynamics is a stepper: start, step, sample, keep.  The clock drives
   it: it owns the times of steps and samples, refused steps, progress and interruption, the books (energy,
   work, what is lost), checkpoints, and how the run ended.  Nobody else takes samples or sets the status. */
#ifndef CDL_CLOCK_H
#define CDL_CLOCK_H
#include <math.h>
#include "backend.h"
#include "state.h"
#include "base/tolerances.h"

typedef enum {
    STEP_DONE,    /* the state is that at the end of the step */
    STEP_REFUSED, /* nothing has changed; a shorter step may do */
    STEP_STOPPED, /* `stop when` ended the run, at clock.t, which the stepper has set */
    STEP_FAILED   /* results_fail was called, or the run was interrupted within the step */
} step_outcome;

typedef enum {
    STEPS_EQUAL,  /* of size h, the last one to the end exactly; a refused one is taken in two halves */
    STEPS_HALVED, /* h at most: half as long where refused, twice as long again after two that were not */
    STEPS_OWN     /* the stepper chooses; after a refused one it is called again */
} step_rule;

/* The one account of energy.  Steppers add to work (of forces without potential, moving surfaces and resets;
   integrated on its own, never taken from the change of energies) and to dissipated (at contacts). */
typedef struct books {
    double work, dissipated;
    double kinetic0, potential0; /* at the first sample */
    double top, worst;           /* the largest energy and drift seen */
    bool open;
    bool of_all; /* work is that of all forces, those with a potential too: what that gained is left out */
} books;
/* They begin with these energies, not with those of the first sample: something may happen before that. */
void books_open(books *b, double kinetic, double potential);
void books_enter(books *b, results *r, int64_t at, const energies *e);
/* what is not a number changes nothing */
static inline void books_grow(double *most, double x)
{
    if (x > *most)
        *most = x;
}

/* Drift: what energy has gained besides work, less what was dissipated.  top and worst grow. */
static inline double books_audit(books *b, const energies *e)
{
    double gained = e->potential - b->potential0, work = b->of_all ? b->work + gained : b->work;
    double drift = e->kinetic - b->kinetic0 + gained - work + b->dissipated;
    books_grow(&b->top, fabs(e->kinetic));
    books_grow(&b->top, fabs(gained));
    books_grow(&b->top, fabs(work));
    books_grow(&b->top, fabs(b->dissipated));
    books_grow(&b->worst, fabs(drift));
    return drift;
}

/* The largest drift, relative to the largest of what it is made of; where that is all rounding of the energy
   which was there from the start, relative to this. */
static inline double books_balance(const books *b)
{
    double size = fabs(b->kinetic0) + fabs(b->potential0), top = b->top > ROUND_500 * size ? b->top : size;
    return top > 0 ? b->worst / top : 0;
}

/* What was changed from outside: inputs, which a state that was read brings along; inputs; the state. */
typedef enum { CHANGE_READ, CHANGE_INPUTS, CHANGE_STATE } clock_change;

/* Dofs, rates, and bases of rotations as in IN_BASE (NULL: there are none). */
typedef struct state_now {
    double *q, *v, *base;
} state_now;

typedef struct run_clock run_clock;
typedef struct stepper {
    /* The state at t = 0, and how it steps, in the clock.  False: failed. */
    bool (*start)(void *of, run_clock *c);
    /* From c->t to `to` by a step h (to - c->t, and for equal steps the same to the last bit).  STEPS_OWN:
       the end of the run; the stepper goes as far as it likes and sets c->t. */
    step_outcome (*step)(void *of, run_clock *c, double h, double to);
    /* Equal steps that follow from each other and from nothing else, up to that many; clock_plain after each.
       Fewer: the next one needs `step`, and nothing has changed for it.  May be NULL. */
    void (*plain)(void *of, run_clock *c, int64_t count);
    /* Fills columns q, v, acc and those of contacts of sample `at`, at the time r->t[at].  False: failed. */
    bool (*sample)(void *of, run_clock *c, int64_t at, energies *e);
    /* At the end of a run, however it ended; may be NULL. */
    void (*finish)(void *of, run_clock *c);
    /* All that the next step depends on, written or read (state.h); NULL: it cannot be saved. */
    void (*keep)(void *of, run_state *s);
    /* ---- for runs in pieces, where the backend opens them; else NULL ---- */
    /* The state now, which may be written to before `changed`. */
    state_now (*now)(void *of);
    /* The state or values of parameters were changed from outside: what follows from them is made anew.
       False: failed. */
    bool (*changed)(void *of, run_clock *c, clock_change what);
    /* Gives back what lies outside of the arena of the results. */
    void (*close)(void *of);
} stepper;

struct run_clock {
    const run_options *o;
    results *r;
    const stepper *with;
    void *of;
    /* set by start */
    step_rule rule;
    double end;       /* o->duration when it begins */
    double h;         /* of equal and halved steps */
    double near;      /* the end counts as reached at end (1 - near) */
    int halves;       /* how often an equal step may be halved */
    int look;         /* steps between questions for progress; 0: by the time that passed */
    bool own_samples; /* the stepper calls clock_sample, the clock does not */
    bool sample_all;  /* `every` does not count */
    /* steps begin with what a sample has found: in pieces, too, there is one after each of them */
    bool look_each;
    /* how columns are made that a sample leaves out while r->disk.later is set; NULL: it leaves out none */
    const struct later_ops *later;
    /* now */
    double t, last; /* last: time of the last sample */
    double apart;   /* samples are taken that far apart; 0: at every step */
    int64_t step, steps;
    bool stopped;
    struct pace {
        int64_t quiet;   /* steps since the clock of the machine was last read */
        int64_t steps;   /* so many steps until it is read again */
        int64_t stretch; /* plain steps that take about PACE_STRETCH */
        double read;     /* when it was read: seconds */
        double asked;    /* when progress was last reported */
    } pace;
    int depth;    /* how often the step at hand was halved */
    double taken; /* halved steps: the stepper may set it to less than h */
    double size;  /* of the next halved step */
    int easy;     /* those since the last refused one */
    books books;
    double next_time, next_seconds; /* of the next checkpoint */
    bool any_run;                   /* states of runs with other parameters or options are taken too */
};

/* The whole run. */
void clock_run(const stepper *with, void *of, const run_options *o, results *r);
/* Of equal steps where none is given, in seconds: 1e-3, or a thousandth of a shorter run; the summary says
 * so.
 */
double clock_default_step(results *r, double duration);
/* A sample at time t: room for it, the stepper's columns, the books.  False: failed. */
bool clock_sample(run_clock *c, double t);
int64_t clock_room(run_clock *c); /* for one more sample: its number */
/* The end of plain step number i, from 1. */
static inline double clock_time(const run_clock *c, int64_t i)
{
    return (double)i * c->h;
}
/* A sample of which only the state is kept: its number; the stepper puts what is its own. */
static inline int64_t clock_sample_state(run_clock *c, double t)
{
    results *r = c->r;
    int64_t at = r->samples < r->cap ? r->samples++ : clock_room(c);
    r->t[at] = c->last = t;
    r->work[at] = c->books.work;
    r->dissipated[at] = c->books.dissipated;
    return at;
}
/* A plain step has been taken; is a sample due?  Then the stepper takes it, by one of the two above. */
static inline bool clock_plain(run_clock *c, double t)
{
    c->t = t;
    c->step++;
    return t - c->last >= c->apart;
}
/* ---- a run in pieces: equal steps, no end, no samples but the one at hand ---- */
/* False: it failed, r->message says why. */
bool clock_open(run_clock *c, const stepper *with, void *of, const run_options *o, results *r);
/* To that time.  Steps end at multiples of h, and there: a time that differs from a multiple by rounding is
   that multiple.  Impacts of this piece are in the results after it. */
step_outcome clock_advance(run_clock *c, double to);
/* The columns of now; the number of their sample, -1: failed. */
int64_t clock_look(run_clock *c, energies *e);
/* All that a run in pieces goes on from, for state_save and state_load; of is the clock.  any_run: see above.
 */
void clock_keep(void *of, run_state *s);

/* May the step at hand be refused?  Else the stepper has to fail, and say why. */
bool clock_may_refuse(const run_clock *c);
/* A clock that is not run: for samples along a load. */
void clock_init(run_clock *c, const stepper *with, void *of, const run_options *o, results *r);
/* Equal steps of size h to the end T: how many. */
double clock_steps(double T, double h);

/* The number of the run that a checkpoint belongs to.  NULL, or what is wrong with the file. */
const char *checkpoint_run(arena *a, const char *path, int64_t *run);

/* ---- how a run ends: for all backends ---- */
/* The run has failed, there and so; the first failure counts.  Returns false. */
bool results_fail(results *r, span at, const char *message);
/* A failure that was only tried for is taken back. */
void results_unfail(results *r);
/* Asks whether to go on; true: it was interrupted, now or before. */
bool run_interrupted(const run_options *o, results *r, double done);
#endif
