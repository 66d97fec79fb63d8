/* clock: the time of a run.  A backend of dynamics is a stepper: start, step, sample, keep.  The clock
   drives it: it is responsible for the times of steps and samples, refused steps, progress and
   interruption, the books (energy, work, dissipation), checkpoints, and how the run ends. Nothing else
   takes samples or sets the status. */
#ifndef CDL_CLOCK_H
#define CDL_CLOCK_H
#include <math.h>
#include "backend.h"
#include "state.h"
#include "base/tolerances.h"

typedef enum {
    STEP_DONE,    /* the state is that at the end of the step */
    STEP_REFUSED, /* nothing has changed; a shorter step may succeed */
    STEP_STOPPED, /* `stop when` ended the run, at clock.t, which the stepper has set */
    STEP_FAILED   /* results_fail was called, or the run was interrupted within the step */
} step_outcome;

typedef enum {
    STEPS_EQUAL,  /* of size h, the last one to the end exactly; a refused one is taken in two halves */
    STEPS_HALVED, /* at most h: halved if refused, doubled again after two accepted steps */
    STEPS_OWN     /* the stepper chooses; after a refused one it is called again */
} step_rule;

/* The one account of energy.  Steppers add to work (of forces without potential, moving surfaces and resets;
   integrated on its own, never taken from the change of energies) and to dissipated (at contacts). */
typedef struct books {
    double work, dissipated;
    double kinetic0, potential0; /* at the first sample */
    double top, worst;           /* the largest energy and drift seen */
    bool open;
    bool of_all; /* work is that of all forces, including those with a potential: the change of potential
                    energy is subtracted */
} books;
/* The books begin with these energies, not with those of the first sample, because something may happen
   before it. */
void books_open(books *b, double kinetic, double potential);
void books_enter(books *b, results *r, int64_t at, const energies *e);
/* undefined numbers change nothing */
static inline void books_grow(double *most, double x)
{
    if (x > *most)
        *most = x;
}

/* Drift: the change of energy that is neither work nor dissipation. Updates top and worst. */
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

/* The largest drift, relative to the largest of its terms; if these are only rounding of the initial
   energy, relative to the latter. */
static inline double books_balance(const books *b)
{
    double size = fabs(b->kinetic0) + fabs(b->potential0), top = b->top > ROUND_500 * size ? b->top : size;
    return top > 0 ? b->worst / top : 0;
}

/* What the caller changed: inputs (a state that was read contains them); inputs; the state. */
typedef enum { CHANGE_READ, CHANGE_INPUTS, CHANGE_STATE } clock_change;

/* Dofs, rates, and bases of rotations as in IN_BASE (NULL: there are none). */
typedef struct state_now {
    double *q, *v, *base;
} state_now;

typedef struct run_clock run_clock;
typedef struct stepper {
    /* Sets the state at t = 0, and in the clock the rule for its steps. False: failed. */
    bool (*start)(void *of, run_clock *c);
    /* From c->t to `to` by a step h (to - c->t, and for equal steps the same to the last bit).  STEPS_OWN:
       the end of the run; the stepper goes as far as it likes and sets c->t. */
    step_outcome (*step)(void *of, run_clock *c, double h, double to);
    /* Up to that many equal steps in which nothing happens; calls clock_plain after each. Fewer: the next
       one needs `step`, and nothing has changed for it. May be NULL. */
    void (*plain)(void *of, run_clock *c, int64_t count);
    /* Fills columns q, v, acc and those of contacts of sample `at`, at the time r->t[at].  False: failed. */
    bool (*sample)(void *of, run_clock *c, int64_t at, energies *e);
    /* At the end of a run, however it ended; may be NULL. */
    void (*finish)(void *of, run_clock *c);
    /* Everything that the next step depends on, written or read (state.h); NULL: it cannot be saved. */
    void (*keep)(void *of, run_state *s);
    /* ---- for runs in pieces, where the backend opens them; else NULL ---- */
    /* The state now, which may be written to before `changed`. */
    state_now (*now)(void *of);
    /* The caller changed the state or parameters: recomputes what depends on them. False: failed. */
    bool (*changed)(void *of, run_clock *c, clock_change what);
    /* Frees what is outside the arena of the results. */
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
    int look;         /* steps between checks for progress; 0: by elapsed time */
    bool own_samples; /* the stepper calls clock_sample, the clock does not */
    bool sample_all;  /* `every` does not count */
    /* steps use results of the last sample: in pieces, too, a sample follows each step */
    bool look_each;
    /* how to compute the columns that a sample omits while r->disk.later is set; NULL: it omits none */
    const struct later_ops *later;
    /* current time and state */
    double t, last; /* last: time of the last sample */
    double apart;   /* samples are taken that far apart; 0: at every step */
    int64_t step, steps;
    bool stopped;
    struct pace {
        int64_t quiet;   /* steps since the clock of the machine was last read */
        int64_t steps;   /* steps until it is read again */
        int64_t stretch; /* plain steps that take about PACE_STRETCH */
        double read;     /* when it was read: seconds */
        double asked;    /* when progress was last reported */
    } pace;
    int depth;    /* how often the current step was halved */
    double taken; /* halved steps: the stepper may set it to less than h */
    double size;  /* of the next halved step */
    int easy;     /* those since the last refused one */
    books books;
    double next_time, next_seconds; /* of the next checkpoint */
    bool any_run;                   /* states of runs with other parameters or options are taken too */
};

/* The whole run. */
void clock_run(const stepper *with, void *of, const run_options *o, results *r);
/* Default size of equal steps, in seconds: 1e-3, or a thousandth of a shorter run; the summary prints
 * it. */
double clock_default_step(results *r, double duration);
/* A sample at time t: room for it, the stepper's columns, the books.  False: failed. */
bool clock_sample(run_clock *c, double t);
int64_t clock_room(run_clock *c); /* for one more sample: its number */
/* The end of plain step number i, from 1. */
static inline double clock_time(const run_clock *c, int64_t i)
{
    return (double)i * c->h;
}
/* A sample of which only the state is stored: its number; the stepper adds its own data. */
static inline int64_t clock_sample_state(run_clock *c, double t)
{
    results *r = c->r;
    int64_t at = r->samples < r->cap ? r->samples++ : clock_room(c);
    r->t[at] = c->last = t;
    r->work[at] = c->books.work;
    r->dissipated[at] = c->books.dissipated;
    return at;
}
/* A plain step has been taken; is a sample due? If so, the stepper takes it with one of the two functions
   above. */
static inline bool clock_plain(run_clock *c, double t)
{
    c->t = t;
    c->step++;
    return t - c->last >= c->apart;
}
/* ---- a run in pieces: equal steps, no end, only the current sample ---- */
/* False: it failed, r->message says why. */
bool clock_open(run_clock *c, const stepper *with, void *of, const run_options *o, results *r);
/* To that time.  Steps end at multiples of h, and there: a time that differs from a multiple by rounding is
   that multiple.  Impacts of this piece are in the results after it. */
step_outcome clock_advance(run_clock *c, double to);
/* The columns of the current state; returns the number of their sample, -1: failed. */
int64_t clock_look(run_clock *c, energies *e);
/* The complete state of a run in pieces, for state_save and state_load; of is the clock. any_run: see
   above. */
void clock_keep(void *of, run_state *s);

/* May the current step be refused? Otherwise the stepper must fail with a message. */
bool clock_may_refuse(const run_clock *c);
/* A clock that is not run, for samples along a load. */
void clock_init(run_clock *c, const stepper *with, void *of, const run_options *o, results *r);
/* Equal steps of size h to the end T: how many. */
double clock_steps(double T, double h);

/* The number of the run that a checkpoint belongs to.  NULL, or what is wrong with the file. */
const char *checkpoint_run(arena *a, const char *path, int64_t *run);

/* ---- how a run ends: for all backends ---- */
/* Marks the run as failed, with place and message; the first failure counts. Returns false. */
bool results_fail(results *r, span at, const char *message);
/* Removes a failure that happened in a trial. */
void results_unfail(results *r);
/* Checks for an interrupt; true: the run was interrupted, now or before. */
bool run_interrupted(const run_options *o, results *r, double done);
#endif
