/* results: what a run leaves behind.  Columns of equal length, impacts, counters.  Grows in its own arena,
 * outside the time step's work. */
#ifndef CDL_RESULTS_H
#define CDL_RESULTS_H
#include "program/program.h"

typedef enum { STATUS_OPEN, STATUS_STICK, STATUS_SLIP } contact_status;

/* rate of the gap before and after, normal impulse */
typedef struct impact {
    double t, pre, post, impulse;
    int32_t member;
} impact;

typedef struct contact_result { /* one for each contact family; member m's samples are column m */
    int64_t members;
    bool kept;           /* else there are too many members: the columns below are NULL */
    int nslip;           /* components kept of rt and slip (0: none) */
    double *gap, *rn;    /* [sample*members + m] */
    double *rt, *slip;   /* [(sample*members + m)*nslip + k] */
    uint8_t *status;     /* contact_status */
    vec(impact) impacts; /* in the order of time */
    double *last_open;   /* per member: last time at which it was open (-inf: never); NULL when not kept */
} contact_result;

/* jump of a limit solution: fold: its branch ended there; else the load jumped, or the start lay off the
 * graph */
typedef struct limit_jump {
    double t, from, to;
    int32_t dof;
    bool fold;
} limit_jump;
/* a monotone stretch of a graph beta: from (x0, y0) to (x1, y1) */
typedef struct limit_branch {
    double x0, x1, y0, y1;
    bool stable;
} limit_branch;

/* What is there at a sample.  kinetic: as v.M v/2, for the audit; shown: as the model writes it. */
typedef struct energies {
    double kinetic, shown, potential;
    bool unaudited; /* the balance of power does not count this sample */
} energies;

/* Columns that may be made when they are read (later.h). */
typedef enum { PART_ACC = 1, PART_ENERGY = 2, PART_SLIP = 4 } results_part; /* energy: drift too */

typedef enum { RUN_OK, RUN_STOPPED, RUN_INTERRUPTED, RUN_FAILED } run_status;

/* Values and power series at any time, from a backend that has them: r->dense, else NULL. */
/* of the last two component k, values only */
typedef enum { DENSE_DOF, DENSE_GAP, DENSE_RN, DENSE_RT, DENSE_SLIP } dense_what;
/* order: derivatives taken */
typedef struct dense_item {
    dense_what what;
    int32_t k;
    int order;
    size_t contact;
    int64_t member;
} dense_item;
typedef struct dense_output {
    void *of;
    int order; /* coefficients 0..order can be read */
    double (*at)(void *of, const dense_item *x, double t);
    /* n + 1 coefficients to the right of t */
    bool (*series)(void *of, const dense_item *x, double t, int n, double *out);
} dense_output;

typedef struct run_promise {
    double tolerance; /* of gaps and reactions, relative; of the motion where contacts give way */
    bool gives_way;   /* gaps are no promise: contacts are springs, whose forces are those of the sample */
} run_promise;

typedef struct run_counts {
    int64_t steps, solver_iterations, branch_choices;
    /* samples whose acceleration is the mean over the step: Gauss's principle had no solution there */
    int64_t averaged;
    int64_t swept;          /* contacts visited in Gauss-Seidel sweeps, where there are many */
    int64_t at_once;        /* steps that were not cut at impacts */
    int64_t partly_at_once; /* those of them in which some islands were followed all the same */
    int64_t plain;          /* steps that went the short way of small models */
    const char *native;     /* whose code is "compiled" now or from the "cache"; NULL: the interpreter's */
    int64_t checked;        /* kernels that were run by the checks after it */
    const char *unchecked;  /* what they could not look at, for people; NULL: nothing */
    vec(double) resets;     /* times at which `when` gave dofs or rates new values */
    /* of series: their last terms, of the sizes of the dofs, added up over the run; NAN: there are none */
    double cut_off;
    /* of rods: at the places where contact is checked; max_penetration is that of the smooth lines everywhere
     */
    double pair_penetration;
    double default_h; /* step of a run that was given none, 0: it was, or needs none */
} run_counts;

/* What a limit run leaves besides. */
typedef struct limit_result {
    bool has_jumps;
    vec(limit_jump) jumps;
    vec(limit_branch) branches;      /* of the graph at the start */
    vec(double) graph_v, graph_load; /* that graph as a line, over the range of the solution */
    double *load;                    /* [samples]: the load along the solution, as a value of the graph */
} limit_result;

/* Samples that lie in a file. */
typedef struct disk_samples {
    const char *spill_dir; /* beyond spill_bytes (0: never) samples lie in a file, which is made there */
    int64_t spill_bytes;
    struct spill *spill; /* or NULL */
    int64_t rested,
        rest_every; /* samples whose memory was given back, and how many more are left as they are */
    /* the errno with which no more samples could be kept; the last one is the latest all the same */
    int full;
    const char *io;      /* why a checkpoint could not be read or written; NULL: none was in the way */
    struct later *later; /* makes columns when they are read; NULL: all are there */
    unsigned absent;     /* parts whose columns have no room yet */
} disk_samples;

typedef struct results {
    const program *prog;
    arena *a;
    const char *backend; /* "sweeping" */
    run_status status;
    const char *message; /* RUN_FAILED: what went wrong, naming constraint, time, residual; else NULL */
    span where;          /* of the failure */
    double *param;       /* the values that were used: prog->nparam */
    double duration, t_end;
    int64_t samples, cap;
    double *t;           /* [samples] */
    double *q, *v, *acc; /* [sample*nq + k]; acc: right accelerations */
    /* [samples]; energy = kinetic + potential (+ minus work of other forces taken out: see work) */
    double *energy, *dissipated;
    /* [sample*ntrack + k]: places of the nodes of rods, forces and moments of their supports */
    double *track;
    int ntrack;
    double *work;            /* [samples]: work done by forces that have no potential, since the start */
    double *drift;           /* [samples]: what energy has gained besides, less what was dissipated */
    contact_result *contact; /* [prog->ncontact] */
    const double
        *feature; /* what touches of shapes at the end (IN_FEATURE); NULL: there are no pairs of them */
    /* worst over the run; power_balance: largest drift, relative to the largest energy */
    double max_penetration, residual, power_balance;
    double error; /* estimate of the largest error of a dof; NAN: none */
    run_promise promised;
    run_counts count;
    const char *cut; /* policy by which steps are cut at impacts; NULL: none */
    const dense_output *dense;
    const char *solver; /* of the step problem, by name */
    const char *note;   /* what the user should know of the start, or NULL */
    double seconds;
    bool linear, left; /* between samples: lines; at a jump: the value before it */
    limit_result limit;
    disk_samples disk;
    const struct field_result *field; /* field.h; NULL when there is none */
    const struct rod_result *rod;     /* rod.h; NULL when there is none */
} results;

results *results_new(arena *a, const program *p);
/* Columns of these parts can be read from now on. */
void results_need(const results *r, unsigned parts);
/* Of one sample; of the last one.  No column is made for it. */
double results_energy(const results *r, int64_t at);
void results_acc(const results *r, int64_t at, double *acc);
double results_drift(const results *r);
bool results_have_energy(const results *r);
/* Room for that many samples in all; what was there is kept. */
void results_reserve(results *r, int64_t cap);
/* Do so many samples, with all their columns, stay in memory? */
bool results_fit(results *r, double samples);
/* Room for one more sample; returns its number. */
int64_t results_sample(results *r);
/* Gives back memory of samples that lie in a file; whether a number lies in a column; the end of the file,
 * before r->a is freed. */
void results_rest(results *r);
/* All of it but what the start of a run finds again, as part of a state. */
struct run_state;
void results_keep(results *r, struct run_state *s);
bool results_own(const results *r, const void *p);
void results_close(results *r);
/* Runs go with scratch memory, which is given back even when there is none left: then on to the owner of the
 * results. */
void results_scratch(results *r, void (*go)(results *r, const void *ud, arena *scratch), const void *ud);
/* Value of column k of q, v or acc at a time: v right-continuous; dofs by cubic Hermite between samples when
 * the rate is continuous there, else linear. */
double results_q(const results *r, int32_t k, double t);
/* The matrix of the rotation whose first dof is given, at a time. */
void results_rotation(const results *r, int32_t first, double t, double R[9]);
double results_v(const results *r, int32_t k, double t);
double results_a(const results *r, int32_t k, double t);
/* Time from which member m of contact c stays closed to the end; t_end + inf when it does not. */
double results_settle(const results *r, int c, int64_t m);
#endif
