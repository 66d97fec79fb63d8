/* cdl.h: the contact description language as a library.

   A session (`cdl`) reads text of the language, keeps its definitions and results,
       and runs its statements: the same object is used by `cdl run`, by the interactive session and by
   programs that embed it.  Sessions share nothing; each may be used by one thread at a time.

   The library never prints and never exits.  All text goes through callbacks;
       every function that can fail returns a status, whose numbers
   are the exit codes of the command.  See cdl(3) for a tour and cdl(5) for the language. */
#ifndef CDL_H
#define CDL_H
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined __GNUC__ || defined __clang__
#define CDL_API __attribute__((visibility("default")))
#else
#define CDL_API
#endif

/* How a call ended: X(NAME, number, text). A larger number is worse; a call that ended in several ways
   returns the worst. */
#define CDL_STATUS_LIST(X)                                 \
    X(OK, 0, "all is well")                                \
    X(EXPECT, 1, "an expectation was not met")             \
    X(USAGE, 2, "the call or an option is not understood") \
    X(MODEL, 3, "the text has errors")                     \
    X(SOLVER, 4, "a solver failed or was interrupted")     \
    X(IO, 5, "input or output failed")                     \
    X(MEMORY, 6, "there was not enough memory")

typedef enum cdl_status {
#define CDL_STATUS_ROW(name, number, text) CDL_##name = number,
    CDL_STATUS_LIST(CDL_STATUS_ROW)
#undef CDL_STATUS_ROW
        CDL_STATUS_MAX = 7
} cdl_status;

/* The text of a status, without a full stop. */
CDL_API const char *cdl_status_text(cdl_status s);
/* The exit code of the command for it: its number, and 5 for CDL_MEMORY. */
CDL_API int cdl_exit_code(cdl_status s);

typedef struct cdl cdl;

/* Where memory comes from: grow(ud, p, n) is realloc; n == 0 frees and returns NULL. */
typedef struct cdl_allocator {
    void *(*grow)(void *ud, void *p, size_t n);
    void *ud;
} cdl_allocator;

/* A new session, or NULL if there is no memory. al == NULL: realloc and free. cdl_free(NULL) is allowed.
   After a call has returned CDL_MEMORY, the session can only be freed. */
CDL_API cdl *cdl_new(const cdl_allocator *al);
CDL_API void cdl_free(cdl *s);

/* Output of the session, and whether it was interrupted. Any of them may be NULL.  Text is not terminated.
 * They must not call the session.
 */
typedef struct cdl_callbacks {
    /* results: what the command writes to standard output */
    void (*out)(void *ud, const char *text, size_t len);
    void (*err)(void *ud, const char *text, size_t len); /* diagnostics, progress, notes */
    /* called many times a second while the session works: how often it was interrupted. Not 0: a run stops
       and keeps its partial results, other work is abandoned; if the number increases further:
       immediately. */
    int (*interrupted)(void *ud);
    void *ud;
} cdl_callbacks;
CDL_API void cdl_set_callbacks(cdl *s, const cdl_callbacks *c);
/* Called from time to time during a run (up to many times a second): the model that runs, and the fraction
   of the run that is done, 0 to 1.  It must not call the session.  NULL: nobody. */
CDL_API void cdl_set_progress(cdl *s, void (*progress)(void *ud, const char *model, double done), void *ud);
/* Called when a file has been written by save, plot or animate: where it is, and what it is: "data", "script"
   or "picture".  It must not call the session.  NULL: nobody. */
CDL_API void cdl_set_written(cdl *s, void (*written)(void *ud, const char *path, const char *kind), void *ud);

/* Options by name: X(NAME, "name", "default", "what it does").  CDL_USAGE when there is no such option or
 * value. */
#define CDL_OPTION_LIST(X)                                                                                   \
    X(OUTPUT, "output", "", "directory for files, created if it does not exist; empty: the current one")     \
    X(STDLIB, "stdlib", "", "directory of the library (`use std.x`); empty: the installed one")              \
    X(DIAGNOSTICS, "diagnostics", "text", "form of diagnostics: text or json")                               \
    X(JSON, "json", "no", "write one JSON object per run or sweep point to out, and nothing else")           \
    X(COLOUR, "colour", "no", "ANSI colours in diagnostics")                                                 \
    X(QUIET, "quiet", "no", "write no summaries of runs and no values of measures to out")                   \
    X(KEEP_GOING, "keep-going", "no", "record steps that could not be solved instead of ending the run")     \
    X(PROGRESS, "progress", "no", "a progress line on err, for terminals")                                   \
    X(INTERACTIVE, "interactive", "no",                                                                      \
      "statements are entered one by one: a definition may replace an earlier one")                          \
    X(MANIFEST, "manifest", "manifest.json",                                                                 \
      "name of the file that records what was run, in `output`; no: none is written. "                       \
      "While neither is set it lies beside the first file, as STEM.manifest.json")                           \
    X(JOBS, "jobs", "1", "processes for the points of an experiment")                                        \
    X(RESUME, "resume", "no", "do not run finished points of experiments again")                             \
    X(SHARD, "shard", "", "k/n: run every n-th point of each experiment, from the k-th; then use cdl merge") \
    X(MERGE, "merge", "no", "take the points of experiments from the shards and run none")                   \
    X(SPILL, "spill", "256",                                                                                 \
      "megabytes of samples that a run keeps in memory; further ones go to a file in $TMPDIR or `output`")   \
    X(TIME, "time", "inf", "seconds that the session may take from now on")                                  \
    X(MEMORY, "memory", "auto",                                                                              \
      "bytes (500M, 4G) that the session may use; auto: 3/4 of the memory of the machine, at most 64G")      \
    X(DISK, "disk", "64G", "bytes that the session may write to files")                                      \
    X(ALLOW_OUTSIDE, "allow-outside", "no",                                                                  \
      "models may read files outside their folder and write outside `output`")                               \
    X(SHARDS, "shards", "", "merge: further directories with shards, one per line")                          \
    X(CHECKPOINT, "checkpoint", "", "file for the state of a run; empty: none")                              \
    X(CHECKPOINT_EVERY, "checkpoint-every", "",                                                              \
      "how often besides the end: seconds, or t=T of simulated time")                                        \
    X(PROBLEMS, "problems", "",                                                                              \
      "x.hdf5 (FCLIB) or x.txt below `output`: contact problems of steps are written beside that name")      \
    X(PROBLEMS_EVERY, "problems-every", "1", "write every k-th contact problem of a run")                    \
    X(REPORT, "report", "", "file for a page for a browser that shows all runs; empty: none")                \
    X(INPUTS, "inputs", "", "parameters, separated by commas, that are inputs of the FMU of `cdl emit fmu`") \
    X(FROM, "from", "", "file written by `checkpoint`: the run it belongs to continues from there")
CDL_API cdl_status cdl_set(cdl *s, const char *option, const char *value);
/* The value (an expression of the language) of every parameter of that name, in all models that are run and
   at top level; the `-p` of the command. */
CDL_API cdl_status cdl_set_param(cdl *s, const char *name, const char *value);

/* Checks and then executes a file or a text; `name` is used in diagnostics. Definitions and results are
   kept in the session. */
CDL_API cdl_status cdl_load_file(cdl *s, const char *path);
CDL_API cdl_status cdl_run_text(cdl *s, const char *name, const char *text, size_t len);
/* All that can be read from a file that is open, as a pipe: at most 64 MB, within the limits of the session.
   The text belongs to the session and lasts as long. */
CDL_API cdl_status cdl_read(cdl *s, int fd, const char **text, size_t *len);
/* Finds all errors without running anything. */
CDL_API cdl_status cdl_check_file(cdl *s, const char *path);
CDL_API cdl_status cdl_check_text(cdl *s, const char *name, const char *text, size_t len);
/* Completes the output of the previous calls: writes the last JSON object, reports how many expectations
   were met.  Returns the worst status since the session began or since the last cdl_finish. */
CDL_API cdl_status cdl_finish(cdl *s);
/* A page for a browser that shows a folder of results: its manifest.json and its tables of numbers. */
CDL_API cdl_status cdl_page_folder(cdl *s, const char *folder, const char *page);

/* The value of an expression, as in a statement after what was run: `cdl_value(s, "last(y)", &x)`.  CDL_MODEL
   when it is not a number. */
CDL_API cdl_status cdl_value(cdl *s, const char *expression, double *out);
/* Numbers of a vector or a series: *n is how many there are, of which at most `room` are written to `out`. */
CDL_API cdl_status cdl_values(cdl *s, const char *expression, double *out, size_t room, size_t *n);

/* Writes a stage of the compilation to out, as stable text.  what: "ast", "model", "equations", "ir" or
   "jacobian"; or "wellposed": what theory says about the motions of each model, as JSON if the option is
   set. */
CDL_API cdl_status cdl_show(cdl *s, const char *what, const char *path);
CDL_API cdl_status cdl_show_text(cdl *s, const char *what, const char *name, const char *text, size_t len);

/* Writes a run of the file: the first run of that model, or of any where it is NULL, a run of sweeping().
   what: "c", to out as C that stands alone; "fmu", to a file as a unit of FMI 2.0 for co-simulation,
   MODEL.fmu in the folder `output`, or `output` itself where it ends in .fmu.  Runs before it are executed,
   nothing after it is. */
CDL_API cdl_status cdl_emit(cdl *s, const char *what, const char *path, const char *model);

/* The text in the standard layout.  The result belongs to the session and lasts until the next call. */
CDL_API cdl_status cdl_fmt(cdl *s, const char *name, const char *text, size_t len, const char **out,
                           size_t *outlen);
/* A file, rewritten in place, completely or not at all. check_only: nothing is written; CDL_EXPECT if it is
   not in that layout. */
CDL_API cdl_status cdl_fmt_file(cdl *s, const char *path, int check_only);

/* Whether the text is a complete input: 1, or 0 if it needs another line (an open bracket, a last word that
   cannot end a statement). */
CDL_API int cdl_complete(cdl *s, const char *text, size_t len);
/* How many brackets are open at its end. */
CDL_API int cdl_open_brackets(cdl *s, const char *text, size_t len);
/* Untrusted text, made safe for a terminal: control characters other than newline and tab become \u001b and
   the like.  Writes at most `room` bytes, returns how many there are: at most 6 for each byte. */
CDL_API size_t cdl_visible(const char *text, size_t len, char *out, size_t room);
/* The k-th name that may be written at the end of a line, beginning with `prefix`; NULL after the last.
   "floor." completes members. */
CDL_API const char *cdl_name(cdl *s, const char *prefix, size_t k);
/* How many models were compiled so far: runs that differ only in parameter values share one. */
CDL_API size_t cdl_compiled(const cdl *s);

/* As cdl_name, using the line up to the end of the word as context: after `with` backends and in their
   brackets options, units after a number and [, attribute keys in braces. */
CDL_API const char *cdl_name_at(cdl *s, const char *line, size_t k);
/* Writes the help on a name to out: a keyword, function, law, backend, error code, or a definition with its
   ## comment. CDL_USAGE if there is none. */
CDL_API cdl_status cdl_help(cdl *s, const char *name);
/* The k-th topic of cdl_help that begins with the prefix (functions, backends, std.planar ...), NULL after
   the last; "topics" lists them.  The text lasts until the next call. */
CDL_API const char *cdl_topic(cdl *s, const char *prefix, size_t k);
/* The same for examples; path and doc (the first line of its text) may be NULL. */
CDL_API const char *cdl_example(cdl *s, const char *prefix, size_t k, const char **path, const char **doc);
/* Writes the type of an expression to out. */
CDL_API cdl_status cdl_type(cdl *s, const char *expression);

/* Numbers under a name: a parameter, or a column of saved results. */
typedef struct cdl_numbers {
    const char *name;
    const double *at;
    size_t n;
} cdl_numbers;
/* The largest error of one kind in saved results: the error, the error allowed, the row (from 0) and the
   column or constraint. */
typedef struct cdl_finding {
    const char *what, *where;
    double worst, allowed;
    size_t row;
} cdl_finding;
/* Saved results against a model of the text that was checked last (NULL: the last one there is): gaps,
   cones, complementarity, energies are recomputed from t, the dofs and their rates. Columns are named as in
   CSV files. CDL_OK: all checks pass; CDL_EXPECT: one fails; CDL_USAGE: columns are missing.  The findings
   belong to the session until the next call. */
CDL_API cdl_status cdl_verify(cdl *s, const char *model, const cdl_numbers *param, size_t nparam,
                              const cdl_numbers *column, size_t ncolumn, const cdl_finding **found,
                              size_t *nfound);

/* ---- results as values ---- */

/* A run with its results, which a program may keep (cdl_hold). */
typedef struct cdl_run cdl_run;

/* What kind of thing a result is. */
typedef enum cdl_kind {
    CDL_NUMBERS,  /* double: a number (rank 0), a vector, a matrix, a series, a family of them */
    CDL_TRUTH,    /* a truth value: a double, 0 or 1 */
    CDL_STATES,   /* states of contacts, a byte each: 0 open, 1 stick, 2 slip */
    CDL_TEXT,     /* a string: text */
    CDL_LIST,     /* items of any kind, one after the other: cdl_part */
    CDL_TABLE,    /* columns of equal length with names: cdl_part */
    CDL_OBJECT,   /* has members: a constraint, a part, a run; cdl_part gives their names */
    CDL_FUNCTION, /* can be called in an expression: u(0.3) */
} cdl_kind;

enum { CDL_AXES = 6 };

/* A result.  Texts and arrays belong to the session: until its next call, or, where `lasting` is set, as long
   as the results of the run do (cdl_hold); then `at` points to the samples as they are stored. */
typedef struct cdl_result {
    const char *name; /* as it is written in an expression */
    const char *unit; /* "m/s"; "1" when it has none, "" when it is not known */
    const char *text; /* CDL_TEXT: the text; otherwise a description */
    const void *at;   /* the first element; NULL: cdl_results lists what it has not computed */
    size_t length;    /* of the text, in bytes */
    size_t parts;     /* CDL_LIST, CDL_TABLE, CDL_OBJECT */
    size_t shape[CDL_AXES];
    ptrdiff_t stride[CDL_AXES]; /* in bytes */
    int first[CDL_AXES];        /* what the language calls the first index of the axis; samples: 1 */
    cdl_kind kind;
    int rank;
    int samples; /* 1: the first axis goes over the samples of the run, at the times `t` */
    int lasting;
} cdl_result;

/* The last run, kept with its results until cdl_drop or the end of the session, whatever is run after it.
   NULL: there is none.  Held twice, dropped twice. */
CDL_API cdl_run *cdl_hold(cdl *s);
CDL_API void cdl_drop(cdl *s, cdl_run *run);

typedef struct cdl_summary {
    const char *model, *backend;
    const char *ended;   /* "ok", "stopped", "interrupted" or "failed" */
    const char *message; /* why it failed, or "" */
    double duration, t_end, seconds;
    size_t samples, steps;
} cdl_summary;
/* How a run went; run == NULL: the last one.  CDL_USAGE when there is none. */
CDL_API cdl_status cdl_summarise(cdl *s, const cdl_run *run, cdl_summary *out);
/* The value of an expression over the results of a run (NULL: the last one): names of the model, or any
   expression. Whole families are arrays: `z`, `touch.rn`, `floor.status`. Columns that are computed on
   demand are computed now. */
CDL_API cdl_status cdl_get(cdl *s, const cdl_run *run, const char *expression, cdl_result *out);
/* Item, column or member k, from 0, of the last result of cdl_get.  CDL_USAGE after the last one. */
CDL_API cdl_status cdl_part(cdl *s, size_t k, cdl_result *out);
/* All results of a run with kind, shape and unit.  Nothing is computed for the list. */
CDL_API cdl_status cdl_results(cdl *s, const cdl_run *run, const cdl_result **out, size_t *n);

/* Executes statements that define nothing (run, measure, expect, save, plot), as if they followed the texts
   read before. The text is not kept, so memory does not grow however often it is called. */
CDL_API cdl_status cdl_execute(cdl *s, const char *text, size_t len);
/* An experiment of the texts that were read, by its name. */
CDL_API cdl_status cdl_experiment(cdl *s, const char *name);
/* Removes texts, definitions and runs, and frees their memory. Options, parameters, callbacks are kept. */
CDL_API cdl_status cdl_reset(cdl *s);

/* A picture in memory: executes the statements (`plot y against t { file = "y.svg" }`, save, animate) for a
   run (NULL: the last one) in a temporary folder, and returns the bytes of the last picture, or otherwise
   of the last file, that they wrote. The bytes are valid until the next call.  CDL_IO when nothing was
   written. */
CDL_API cdl_status cdl_picture(cdl *s, const cdl_run *run, const char *statements, const void **bytes,
                               size_t *n);

/* ---- models ---- */

/* What a text defines: kind is "model", "experiment", "fn", "let", "param", "module" or "run". */
typedef struct cdl_definition {
    const char *kind, *name;
    const char *doc; /* its ## comment, or "" */
} cdl_definition;
CDL_API cdl_status cdl_definitions(cdl *s, const cdl_definition **out, size_t *n);

/* A parameter or a degree of freedom of a model, with its numbers: row after row. */
typedef struct cdl_quantity {
    const char *name, *doc, *unit;
    const double *at;   /* value; initial value */
    const double *rate; /* initial rate; NULL for parameters */
    double lo, hi;      /* bounds of a parameter */
    size_t n;           /* numbers in all */
    size_t nrate; /* those of rate: n, or for rotations, matrices of 3 x 3, vectors of 3 in n/3 numbers */
    size_t shape[CDL_AXES];
    int first[CDL_AXES];
    int rank;
    int given;      /* 0: a parameter that has no value yet; its number is NaN */
    int structural; /* changing it compiles the model anew */
} cdl_quantity;
/* With these values of parameters, the others having their defaults.  CDL_USAGE: there is no such model or
   parameter; CDL_MODEL: the values are not allowed. */
CDL_API cdl_status cdl_parameters(cdl *s, const char *model, const cdl_numbers *given, size_t ngiven,
                                  const cdl_quantity **out, size_t *n);
CDL_API cdl_status cdl_initial(cdl *s, const char *model, const cdl_numbers *given, size_t ngiven,
                               const cdl_quantity **out, size_t *n);

/* ---- stepping a model ---- */

/* A motion that a program advances step by step: for control loops, co-simulation, learning. It belongs to
   the session that created it, and is freed before it; but it can be used while the session, or other
   instances, are used by other threads.  Each instance is used by one thread at a time.  An allocator given
   to cdl_new is then called by several threads at once. */
typedef struct cdl_instance cdl_instance;

/* A model (by name) at t = 0, with these parameters.  with: a backend with its options, "sweeping(h =
   1e-3)"; NULL: sweeping() with h = 1e-3.  Backends with equal steps support this: sweeping, auglag. input:
   names of parameters whose values are functions of time, set by the program (cdl_instance_input). */
CDL_API cdl_status cdl_instance_new(cdl *s, const char *model, const cdl_numbers *given, size_t ngiven,
                                    const char *const *input, size_t ninput, const char *with,
                                    cdl_instance **out);
CDL_API void cdl_instance_free(cdl_instance *i);
/* Advances to that time. Steps end at multiples of h and at the times of these calls; a time that differs
   from a multiple of h by rounding is that multiple, so that the numbers are those of a run, to the last
   bit.  CDL_OK; CDL_EXPECT: `stop when` ended the motion before (cdl_instance_time); CDL_SOLVER: it failed
   there; CDL_USAGE: the time lies in the past. */
CDL_API cdl_status cdl_instance_step(cdl_instance *i, double to);
CDL_API double cdl_instance_time(const cdl_instance *i);
/* Why the last call did not return CDL_OK; lasts until the next call. */
CDL_API const char *cdl_instance_message(const cdl_instance *i);

/* Quantities by name, found once and read often: dofs (`y`), rates and accelerations (`y'`, `y''`), gap, rn,
   rt, slip and status of constraints (`floor.rn`; 0 open, 1 stick, 2 slip; forces are means over the last
   step), `energy`, parameters and inputs.  A rotation A is a matrix, row by row; A' and A'' are its angular
   velocity and acceleration in the frame of the body.  A number for use below, from 0, and how many numbers
   it has (n may be NULL); or -1. */
CDL_API int cdl_instance_find(cdl_instance *i, const char *name, size_t *n);
/* The shape of a quantity: its rank, 0 for a number, -1 when there is no such quantity. */
CDL_API int cdl_instance_shape(const cdl_instance *i, int which, size_t shape[CDL_AXES]);
/* The k-th name, NULL after the last. */
CDL_API const char *cdl_instance_name(const cdl_instance *i, size_t k);
CDL_API cdl_status cdl_instance_get(cdl_instance *i, int which, double *out);
/* Dofs and rates: the motion continues from there, keeping contact memory and past; rates that violate
   constraints are corrected by an impact, as at the start of a run. Matrices of rotations must be rotations
   to 1e-6, and keep their angular velocity.  Parameters: new values from now on.  Anything else is
   CDL_USAGE. */
CDL_API cdl_status cdl_instance_set(cdl_instance *i, int which, const double *x);
/* An input from now on: c[0] + c[1] s + c[2] s^2 + c[3] s^3, s being the time since now; n coefficients (1
   to 4) per number, one number after the other. n = 1: a constant. */
CDL_API cdl_status cdl_instance_input(cdl_instance *i, int which, const double *c, size_t n);
/* An input as a function of time: each call of cdl_instance_step uses the cubic through its values at both
   ends and at one and two thirds of the interval. f == NULL: a constant. */
CDL_API cdl_status cdl_instance_function(cdl_instance *i, int which,
                                         void (*f)(void *ud, double t, double *value), void *ud);
/* Impacts of the last step: time, member of the constraint (from 0), rates of the gap, impulse. */
typedef struct cdl_impact {
    const char *constraint;
    double t, pre, post, impulse;
    int member;
} cdl_impact;
CDL_API size_t cdl_instance_impacts(cdl_instance *i, const cdl_impact **out);
/* The whole state as a value, with contact memory, past and inputs: bytes that last until the next call, and
   back into an instance of the same model with the same parameters and options.  A motion that goes on from
   it is the same to the last bit. */
CDL_API cdl_status cdl_instance_save(cdl_instance *i, const void **bytes, size_t *n);
CDL_API cdl_status cdl_instance_load(cdl_instance *i, const void *bytes, size_t n);

/* The SHA-256 of a file's bytes in hexadecimal digits; CDL_IO when it cannot be read, or when interrupted
   (called now and then; NULL: never) does not return 0. */
CDL_API cdl_status cdl_hash_file(const char *path, char hex[65], int (*interrupted)(void *ud), void *ud);

/* ---- diagnostics as structures ---- */

/* A place in a text.  line, column (in characters) and column16 (in UTF-16 units) count from 1, byte from 0.
 */
typedef struct cdl_position {
    size_t line, column, column16, byte;
} cdl_position;
/* end lies just after the last character; file NULL: nowhere.  file is the name that the text was given. */
typedef struct cdl_span {
    const char *file;
    cdl_position begin, end;
} cdl_span;

typedef enum cdl_severity { CDL_SEVERITY_ERROR, CDL_SEVERITY_WARNING, CDL_SEVERITY_NOTE } cdl_severity;
/* A related place of a diagnostic, with a note. */
typedef struct cdl_remark {
    cdl_span at;
    const char *message;
} cdl_remark;
typedef struct cdl_diagnostic {
    const char *code; /* "unknown-name"; cdl_help explains it */
    cdl_severity severity;
    cdl_span at;
    const char *message;
    const char *const *hint;
    size_t nhint;
    const cdl_remark *second;
    size_t nsecond;
    const char *replacement; /* a correction for `replace`; NULL: none known */
    cdl_span replace;
} cdl_diagnostic;
/* What the last call that read or executed a text has reported to err, by place; returns how many.  They
   belong to the session until the next call. */
CDL_API size_t cdl_diagnostics(cdl *s, const cdl_diagnostic **out);
/* As cdl_check_file, with this text as the content of the file: for texts that are being edited. */
CDL_API cdl_status cdl_check_as(cdl *s, const char *path, const char *text, size_t len);

/* ---- what editors ask about the text that was checked last ----

   All information comes from the text alone: nothing is run, and for a text with errors it covers the valid
   parts. A place is given as a byte of that text. Returned data belong to the session until the next call. */

/* What a name stands for: X(NAME, "in words"). */
#define CDL_SYMBOL_LIST(X)          \
    X(MODULE, "module")             \
    X(MODEL, "model")               \
    X(EXPERIMENT, "experiment")     \
    X(FUNCTION, "function")         \
    X(LET, "definition")            \
    X(PARAM, "parameter")           \
    X(DOF, "degree of freedom")     \
    X(PART, "part")                 \
    X(CONSTRAINT, "constraint")     \
    X(COORDINATE, "coordinate")     \
    X(FIELD, "field")               \
    X(ROD, "rod")                   \
    X(SHAPE, "shape")               \
    X(RUN, "run")                   \
    X(MEASURE, "measure")           \
    X(SWEEP, "swept name")          \
    X(INDEX, "index")               \
    X(ARGUMENT, "argument")         \
    X(RESULT, "result")             \
    X(BUILTIN, "built-in function") \
    X(CONSTANT, "constant")         \
    X(LAW, "law")                   \
    X(BACKEND, "backend")           \
    X(OPTION, "option")             \
    X(ATTRIBUTE, "attribute")       \
    X(UNIT, "unit")                 \
    X(KEYWORD, "word of the language")
typedef enum cdl_symbol_kind {
#define CDL_SYMBOL_ROW(name, text) CDL_IS_##name,
    CDL_SYMBOL_LIST(CDL_SYMBOL_ROW)
#undef CDL_SYMBOL_ROW
        CDL_SYMBOL_KINDS
} cdl_symbol_kind;
CDL_API const char *cdl_symbol_text(cdl_symbol_kind k);

/* A declared symbol: the whole declaration and its name there; parent: the number of the enclosing symbol,
   or -1. */
typedef struct cdl_symbol {
    cdl_symbol_kind kind;
    const char *name, *detail;
    cdl_span at, name_at;
    int parent;
} cdl_symbol;
/* All declarations of the text, outer ones before inner ones. */
CDL_API size_t cdl_symbols(cdl *s, const cdl_symbol **out);

/* A name in the text.  declares: it is the one that declares; library: declared in another text. */
typedef struct cdl_use {
    cdl_symbol_kind kind;
    cdl_span at;
    int declares, library;
} cdl_use;
/* All names that are known, in the order of the text. */
CDL_API size_t cdl_uses(cdl *s, const cdl_use **out);
/* Where the name at that byte is declared, maybe in another text; CDL_USAGE when nothing is. */
CDL_API cdl_status cdl_declaration(cdl *s, size_t byte, cdl_span *at);
/* All places of the text that name the same thing as the one at that byte, in order. */
CDL_API size_t cdl_references(cdl *s, size_t byte, const cdl_use **out);
/* A description of the word at that byte, as Markdown: its declaration, documentation, unit, and
   for dofs, constraints and models the derived equations.  CDL_USAGE when there is nothing. */
CDL_API cdl_status cdl_describe(cdl *s, size_t byte, cdl_span *at, const char **markdown);

/* A name that may be written at a place. */
typedef struct cdl_choice {
    cdl_symbol_kind kind;
    const char *name, *detail, *doc; /* detail, doc: NULL when there is none */
} cdl_choice;
/* What may be written at that byte; *from is where the word begun there starts. */
CDL_API size_t cdl_choices(cdl *s, size_t byte, size_t *from, const cdl_choice **out);

/* A call that is being written: its text, the bytes of label that are its arguments, and which one it is. */
typedef struct cdl_argument {
    size_t begin, end;
} cdl_argument;
typedef struct cdl_signature {
    const char *label, *doc;
    const cdl_argument *argument;
    size_t nargument, active;
} cdl_signature;
CDL_API cdl_status cdl_signature_at(cdl *s, size_t byte, cdl_signature *out);

/* An inferred unit that is not written in the text. */
typedef struct cdl_inlay {
    cdl_position at;
    const char *text;
} cdl_inlay;
CDL_API size_t cdl_inlays(cdl *s, const cdl_inlay **out);
/* Whether a text is a valid name. */
CDL_API int cdl_is_name(cdl *s, const char *text, size_t len);

/* "0.1.0", and what this build is: {"version":…,"commit":…,"compiler":…,"blas":…,"features":{…}}.  Static
 * text. */
CDL_API const char *cdl_version(void);
CDL_API const char *cdl_commit(void);
/* Into the session, as above: belongs to it until the next call. */
CDL_API const char *cdl_version_json(cdl *s);

#ifdef __cplusplus
}
#endif
#endif
