/* results: the results of a run: columns of equal length, impacts, counters. They grow in their own arena,
 * separate from the memory of a time step. */
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
    bool kept;           /* false: there are too many members, and the columns below are NULL */
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

/* The energies at a sample. kinetic: v.M v/2, for the books; shown: as written in the model. */
typedef struct energies {
    double kinetic, shown, potential;
    bool unaudited; /* the balance of power does not count this sample */
} energies;

/* Columns that may be computed when they are read (later.h). */
typedef enum { PART_ACC = 1, PART_ENERGY = 2, PART_SLIP = 4 } results_part; /* energy: drift too */

typedef enum { RUN_OK, RUN_STOPPED, RUN_INTERRUPTED, RUN_FAILED } run_status;

/* Values and power series at any time, if the backend has them: r->dense, otherwise NULL. */
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
    /* n + 1 coefficients of the motion just after t */
    bool (*series)(void *of, const dense_item *x, double t, int n, double *out);
} dense_output;

typedef struct run_promise {
    double tolerance; /* of gaps and reactions, relative; of the motion where contacts give way */
    bool gives_way;   /* gaps may be negative: contacts are springs, whose forces are those of the sample */
} run_promise;

typedef struct run_counts {
    int64_t steps, solver_iterations, branch_choices;
    /* samples whose acceleration is the mean over the step: Gauss's principle had no solution there */
    int64_t averaged;
    int64_t swept;          /* contacts visited in Gauss-Seidel sweeps, in models with many contacts */
    int64_t at_once;        /* steps that were not cut at impacts */
    int64_t partly_at_once; /* those of them in which some islands were followed */
    int64_t plain;          /* steps taken by the fast path of small models */
    const char *native;     /* their code was "compiled" now or is from the "cache"; NULL: interpreted */
    int64_t checked;        /* kernels that were run by the checks after it */
    const char *unchecked;  /* what they could not check, as text; NULL: nothing */
    vec(double) resets;     /* times at which `when` gave dofs or rates new values */
    /* of series: their last terms, relative to the sizes of the dofs, summed over the run; NAN: no
       series */
    double cut_off;
    /* of rods: at the places where contact is checked; max_penetration is that of the smooth lines everywhere
     */
    double pair_penetration;
    double default_h; /* default step that was used; 0: the step was given, or there is none */
} run_counts;

/* Additional results of a limit run. */
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
    struct spill *spill;        /* or NULL */
    int64_t rested, rest_every; /* samples whose memory was released, and how many more are kept in memory */
    /* the errno with which no more samples could be kept; the last sample is still the latest */
    int full;
    const char *io;      /* why a checkpoint could not be read or written; NULL: no problem */
    struct later *later; /* computes columns when they are read; NULL: all are complete */
    unsigned absent;     /* parts whose columns have no memory yet */
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
    double *drift;           /* [samples]: change of energy that is neither work nor dissipation */
    contact_result *contact; /* [prog->ncontact] */
    const double *
        feature; /* touching features of shapes at the end (IN_FEATURE); NULL: there are no pairs of shapes */
    /* worst over the run; power_balance: largest drift, relative to the largest energy */
    double max_penetration, residual, power_balance;
    double error; /* estimate of the largest error of a dof; NAN: none */
    run_promise promised;
    run_counts count;
    const char *cut; /* policy by which steps are cut at impacts; NULL: none */
    const dense_output *dense;
    const char *solver; /* of the step problem, by name */
    const char *note;   /* a note about the start for the user, or NULL */
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
/* Of one sample; of the last one. No column is computed for it. */
double results_energy(const results *r, int64_t at);
void results_acc(const results *r, int64_t at, double *acc);
double results_drift(const results *r);
bool results_have_energy(const results *r);
/* Room for that many samples in all; what was there is kept. */
void results_reserve(results *r, int64_t cap);
/* Does this number of samples, with all columns, stay in memory? */
bool results_fit(results *r, double samples);
/* Room for one more sample; returns its number. */
int64_t results_sample(results *r);
/* Releases memory of samples in a file; whether a number lies in a column; the end of the file, before r->a
 * is freed. */
void results_rest(results *r);
/* Everything except what the start of a run computes again, as part of a state. */
struct run_state;
void results_keep(results *r, struct run_state *s);
bool results_own(const results *r, const void *p);
void results_close(results *r);
/* Calls a function with scratch memory, which is released even if memory runs out; then the jump continues
 * to the owner of the results. */
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
