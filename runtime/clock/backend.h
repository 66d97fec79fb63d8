/* backend: a way to run a program.  One static const struct at the foot of each backend's file, one line in
 * the table in backend.c. */
#ifndef CDL_BACKEND_H
#define CDL_BACKEND_H
#include "results.h"

/* Kinds of problems, as a sum: what a program is, and which of them use an option. */
typedef enum {
    KIND_DYNAMICS = 1,
    KIND_LINE = 2,  /* a field on a line */
    KIND_PLANE = 4, /* a field in the plane */
    KIND_RODS = 8,  /* equilibria of rods */
    KIND_ROD_MOTION = 16,
    KIND_INCLUSION = 32,
    KIND_FIELDS = KIND_LINE | KIND_PLANE,
    KIND_IN_TIME = KIND_DYNAMICS | KIND_ROD_MOTION,
    KIND_ANY = 63 /* all that the backend runs */
} problem_kind;
extern const char *const problem_kind_name[]; /* in their order, NULL-terminated */
problem_kind program_kind(const program *p);

typedef enum { OPT_REAL, OPT_INT, OPT_WORD, OPT_BOOL, OPT_NAME } option_type;
typedef struct backend_option {
    const char *name;
    option_type type;
    double value;      /* default; NAN: chosen by the backend */
    double lo, hi;     /* allowed (inclusive) */
    const char *words; /* OPT_WORD: "find|given" */
    const char *doc;   /* one line */
    unsigned kinds;    /* of problems that it is for */
} backend_option;

/* The option of backends that keep fewer samples than steps; its value is run_options.every. */
#define OPTION_EVERY                                                                                       \
    {                                                                                                      \
        "every", OPT_REAL, NAN, 1e-300, INFINITY, NULL,                                                    \
            "of the motion samples are kept that far apart in time; all steps when left out", KIND_IN_TIME \
    }

/* The option of backends whose runs can be repeated with finer resolutions, for an estimate of the
   error. */
#define OPTION_ERROR                                                                                  \
    {                                                                                                 \
        "error", OPT_WORD, NAN, 0, 0, "none|estimate",                                                \
            "estimate: a motion or rods are computed again more finely; `error` is how far they are " \
            "off",                                                                                    \
            KIND_ANY                                                                                  \
    }

/* Where the state of a run is written, and where it continues from. */
typedef struct checkpoint {
    const char *to, *from; /* files; NULL: none */
    double seconds, time;  /* written at this interval of real or simulated time; 0: at the end of the run */
    int64_t run;           /* number of the run in its session, from 1 */
    const char *version;   /* of the program */
} checkpoint;

enum { MAX_OPTIONS = 12 };
typedef struct run_options {
    double duration; /* `for`; NAN when not given */
    double every;    /* keep a sample at least this far apart; 0: every step */
    bool set[MAX_OPTIONS];
    double value[MAX_OPTIONS]; /* in the order of backend->option; defaults filled in */
    const char *word[MAX_OPTIONS];
    bool keep_going;
    double finer;      /* by how much an estimate of the error refines; 0: this is no such run */
    bool later;        /* columns that follow from the states may be computed when they are read (later.h) */
    bool inputs;       /* parameters change between steps: see stepper.changed */
    bool only_general; /* steps with a fast path use the general one: for tests */
    /* called from time to time with the fraction done: true stops the run in order. May be NULL. */
    bool (*progress)(void *ud, double done);
    void *ud;
    const checkpoint *checkpoint; /* or NULL */
    /* receives the contact problems of steps (io/problems.h), which then use the general method; NULL: not
       needed */
    const struct problem_watch *watch;
} run_options;

typedef struct backend {
    const char *name;
    const char *doc; /* one line */
    const backend_option *option;
    int noption;
    bool built; /* false: named in the language, refused by name */
    /* NULL if the program can be run; otherwise the reason why not, and *at is the place in the model. */
    const char *(*refuse)(const program *p, span *at);
    /* Runs the program; parameters are ready in r->param. Fills r; r->status says how the run ended. */
    void (*run)(const program *p, const run_options *o, results *r);
    /* Begins a run that is taken in pieces (clock_open): its stepper, and *of. NULL: not supported.
     */
    const struct stepper *(*open)(const program *p, const run_options *o, results *r, void **of);
    /* Can the state of a run of p be saved?  NULL: never. */
    bool (*saves)(const program *p);
} backend;

extern const backend *const backend_list[]; /* NULL-terminated: all of LANGUAGE.md */
const backend *backend_find(const char *name);
/* The best one that can run p; NULL when none can. */
const backend *backend_choose(const program *p);
/* Evaluates defaults and derived parameters into param (nparam doubles) with overrides: set[k] keeps param[k]
 * as given. */
void program_params(const program *p, const bool *set, double *param, arena *scratch);
/* Derived ones alone, of parameters that have their values. */
void program_derive(const program *p, double *param, arena *scratch);
#endif
