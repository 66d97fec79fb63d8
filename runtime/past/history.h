/* history: the past of a motion. Past values of degrees of freedom and of their rates, from stored pieces
   or from the history given in the model; integrals over the past. */
#ifndef CDL_HISTORY_H
#define CDL_HISTORY_H
#include "clock/results.h"
#include "base/taylor.h"

/* Past values: dofs, rates, bases of rotations (addressed as IN_BASE; those of the dofs read with them). */
enum { PAST_DOF, PAST_RATE, PAST_BASE, PAST_KINDS };

/* What a program reads from the past. IN_PAST_Q, IN_PAST_V, IN_PAST_BASE and IN_INTEGRAL read slots, which
 * are described here. */
typedef struct integral_rule {
    span at;
    int32_t bound;            /* number of its variable */
    kernel lo, hi, integrand; /* row: the slot */
    kernels past[PAST_KINDS]; /* past values under it, by slots of its own; out: the time, col: the dof */
    int32_t npast[PAST_KINDS];
    bool linear; /* the times it reads are linear in its variable, with a factor that parameters decide */
} integral_rule;
typedef struct delay_program {
    span at;
    kernels past[PAST_KINDS];      /* out: the time it is read at, row: the slot, col: the dof */
    const char **name[PAST_KINDS]; /* of each of these, as written in the model */
    bool steady; /* all delays are known from the parameters: as much of the past is kept as they reach */
    int32_t npast[PAST_KINDS], nintegral, nbound; /* slots; bound variables */
    integral_rule *integral;
    size_t nrule;
    /* before t = 0, of IN_BOUND; row: the dof.  None: the initial value is held */
    kernels history, history_rate;
} delay_program;

/* An interval of the motion: y[k*(order + 1) + j], first the dofs, then gap and rn of each contact. */
typedef struct piece {
    /* where it begins (a double and its correction); its length, and the length for which the series is
       valid */
    double t, low, h, reach;
    double unit; /* of time: coefficients are those of powers of time by it */
    int order;
    double *y;
    double *base;  /* bases of rotations; NULL: there are none */
    uint8_t *mode; /* of each contact: its mode, and the sign of slip + 1 */
} piece;

/* ---- over series ---- */
typedef struct history history;
/* duration: of the run, which times are measured by */
/* base0: bases of rotations at the start, NULL: there are none */
history *history_new(arena *a, const program *p, int order, int width, double duration, const double *q0,
                     const double *base0);
/* expansions about t follow, in powers of time by this unit */
void history_begin(history *h, double t, double unit);
/* Coefficient j of past values and integrals, which `in` reads from then on.  False: history_error says why.
 */
bool history_step(history *h, series_inputs *in, int j);
bool history_vanishes(history *h); /* a delay has become 0: history_error says which */
const char *history_error(const history *h, span *at);
/* How far the past values of the current expansion are valid, at most s; *breaks: a breaking point ends
 * them (otherwise the end of a piece). */
double history_limit(history *h, double s, bool *breaks);
bool history_agrees(history *h); /* past times were read on the side they move to; else expand again */
/* past values of the current expansion whose pieces must be checked */
int history_kernels(const history *h, taylor **out);
int history_most(const history *h);
void history_add(history *h, const piece *p);
/* Now is a breaking point: the first derivative that jumps.  image: it is that of the breaking point that
 * history_limit met. */
void history_break(history *h, double t, int order);
void history_image(history *h, double t);

/* As part of a state: sites and registers of a kernel over series; the past without its pieces, which the
   caller stores and adds again. */
struct run_state;
void taylor_keep(taylor *t, struct run_state *s);
void history_keep(history *h, struct run_state *s);

/* ---- between samples (history_samples.c): for schemes that step by numbers ---- */
typedef struct past_samples past_samples;
/* base, base0: bases of rotations, NULL: there are none */
past_samples *samples_new(arena *a, const program *p, const double *param, const double *q0,
                          const double *base0, double step);
/* twice at one time: the rate jumped */
void samples_add(past_samples *h, double t, const double *q, const double *v, const double *base);
void samples_fill(past_samples *h, inputs *in); /* past values at in->t, which `in` reads from then on */
const char *samples_error(const past_samples *h, span *at); /* NULL, or why a value could not be read */
void samples_all(past_samples *h);                          /* nothing is discarded, however old */
void samples_keep(past_samples *h, struct run_state *s);    /* as part of a state */
bool samples_for_forces(const program *p);                  /* nothing but forces reads the past */
bool delay_of_state(const delay_program *d);
#endif
