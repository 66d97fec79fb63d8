/* session: the interpreter of top-level statements.  One object behind `cdl run`, the interactive session
   and the C API: definitions, runs, results as values, expectations.  session.c holds it together;
   session_check.c finds errors without running, session_run.c runs models, session_results.c turns their
   results into values, session_expect.c measures them (expectations, JSON), session_output.c writes them
   (save, plot), session_sweep.c runs experiments. */
#ifndef CDL_SESSION_H
#define CDL_SESSION_H
#include <string.h>
#include "base/budget.h"
#include "clock/backend.h"
#include "io/write.h"
#include "cdl.h"
#include "model/load.h"
#include "model/model.h"

/* ---- models that were compiled, kept by declaration and structural overrides ---- */
typedef struct built {
    const ast *decl;
    const override *set;
    size_t nset;
    /* NULL: it has errors, reported already */
    model *m;
    program *p;
    unsigned generation;      /* of the definitions it was built with */
    const struct built *next; /* of the same declaration */
} built;

/* ---- runs and their data ---- */
typedef struct measured {
    sym name;
    value v;
} measured;
typedef struct expectation {
    const char *text, *label;
    bool ok;
    bool has_bound;
    double bound;
    value v;
} expectation;

/* matrices of rotations at all samples of a run */
typedef struct turned {
    struct turned *next;
    int32_t first, count;
    int64_t samples;
    const double *R;
} turned;

typedef struct run {
    sym name; /* or NULL */
    const built *of;
    const backend *with;
    bool chosen; /* by the program, not by the user */
    arena *a;    /* of the results; freed with the run unless it is kept */
    results *r;
    scope *top;       /* its names */
    turned *turned;   /* rotations that were read */
    bool named, kept; /* has a name; a value refers to it */
    int held;         /* how often a program holds it: cdl_hold */
    bool cut;         /* the budget ended it, and its results are not whole */
} run;

/* How many contact problems were written: outside of experiments, and of a point of one. */
typedef struct problem_count {
    int64_t outside, inside;
    const ast *experiment;
    int64_t point;
} problem_count;
typedef struct problem_files problem_files;

typedef struct record {            /* a JSON object under construction: a run, or a point of an experiment */
    bool open, failed, incomplete; /* incomplete: interrupted, or no room for more */
    sym experiment;
    vec(measured) point, measures;
    vec(expectation) expects;
    const char *model, *backend; /* of the last run, or NULL */
    uint64_t ir;                 /* of its program; 0: none */
    const char *params;          /* all its parameters, as JSON, or NULL */
    const char *solver, *cut;    /* of its contact problem; policy of cutting steps; or NULL */
    const char *native;          /* where the code of its plain steps came from, or NULL */
    double seconds, max_penetration, residual, power_balance, drift;
    double error; /* 0: no estimate */
    int64_t steps, at_once, partly_at_once;
} record;

/* ---- tables that grow over the points of an experiment: save and plot ---- */
/* the rows where that column has that value */
typedef struct curve {
    size_t column;
    double is;
    const char *title;
} curve;
typedef vec(double) number_list;
typedef struct table {
    const ast *at;            /* the statement */
    outfile *file;            /* of the numbers */
    const char *path, *shown; /* of the file; plot: of the picture */
    int how;                  /* kind of file */
    spool *rows_at;           /* arrays: rows until all are there */
    size_t ncol, behind;      /* columns, without point and swept names; plot: a backdrop among them */
    bool series;
    const char *title, *log, *by, *style; /* plot: of the block; "" when absent */
    number_list marks, shades;            /* plot: points at impacts; intervals in contact, or a surface */
    int32_t surface;                      /* points on a line of the surface; 0: not a surface */
    vec(const char *) header;
    vec(const char *) labels; /* plot: of the columns, with units */
    vec(rows_array) arrays;
    int32_t grid[2];   /* rows are nodes in the plane */
    vec(curve) curves; /* plot: a title for each block of rows */
    int64_t rows;
    struct table *next;
} table;

/* ---- for the manifest ---- */
/* a file that was written; its path in the output folder */
typedef struct made {
    const char *path, *kind;
    int64_t bytes;
    char sha[65];
} made_file;
/* a text that was executed */
typedef struct given {
    const char *name, *text;
    size_t len;
    bool file;
} given_text;
typedef struct kept_program {
    const char *model;
    uint64_t hash;
} kept_program;

/* -p */
typedef struct overriding {
    sym name;
    const char *text;
    value v;
    bool used, bad;
} overriding;

/* The experiment that is running, and random numbers. */
typedef struct experiment_now {
    table_scope *measures; /* measured names */
    table_scope *swept;    /* swept and measured names, or NULL */
    const ast *experiment;
    int64_t point, points; /* of it, from 0; how many it has */
    text *report;          /* buffer for the output and files of a point, or NULL: session_jobs.c */
    bool worker;           /* in a process of its own */
    const char *draw_name; /* random numbers: for whom, and how many were drawn */
    uint64_t drawn;
    bool seeded;
    int64_t seed; /* of the current experiment */
} experiment_now;

/* State of a call. */
typedef struct session_tally {
    size_t met, missed, skipped; /* expectations */
    vec(const char *) cleaned;   /* folders in which nothing is left of killed processes */
    vec(made_file) made;
    vec(given_text) given;
    vec(const char *) records; /* a JSON object for each run or point */
    vec(kept_program) programs;
    cdl_status worst, total; /* of this call; since the last cdl_finish */
    vec(diag) said;          /* what this call reported */
} session_tally;

/* `cdl emit`: one run statement is written, and nothing after it is executed. */
typedef struct emission {
    bool on, done;
    bool unit; /* of FMI, else C */
    sym model; /* of that model, or of that name; NULL: the first run there is */
} emission;

/* For programs that embed the library. */
typedef struct embedding {
    const cdl_result *parts; /* of the last result of cdl_get, in tmp */
    size_t nparts;
    void (*progress)(void *ud, const char *model, double done);
    void *progress_ud;
    void (*written)(void *ud, const char *path, const char *kind);
    void *written_ud;
    vec(const ast *) experiments; /* of all texts */
    /* a text that lies in tmp, until the next call */
    uint32_t passing;       /* its number; 0: there is none */
    const ast *before;      /* the tree of the text before it */
    size_t compiled_before; /* models */
} embedding;

struct cdl {
    allocator al;
    jmp_buf oom;
    budget budget;
    bool abandoned;      /* this call: the budget ended it, nothing more is executed */
    bool lacking;        /* this call: a missing library was reported */
    struct points *jobs; /* processes that are running points, or NULL */
    bool broken;         /* out of memory once */
    struct loose *loose; /* arenas of the experiment that is running; the one that is being made */
    arena *arriving;
    arena *a;      /* definitions, programs, diagnostics */
    arena *tmp;    /* of the current statement */
    arena *answer; /* what the last call returned */
    arena *keep;   /* of the record under construction */
    symtab *names;
    diags *d;
    cdl_callbacks call;
    const char *option[32];
    evaluator ev;
    scope builtins; /* functions of results */
    modules loaded;
    module *main;
    unsigned generation;
    size_t compiled; /* how often a model was compiled */
    map64 built;     /* declaration -> its compiled forms */
    vec(run *) runs;
    run *last;
    bool last_failed;   /* the last run statement gave no results */
    int64_t run_number; /* of the last run statement, from 1; those of experiments are not counted */
    problem_count problems;
    int64_t from_run; /* of the checkpoint to continue from; 0: none was read */
    experiment_now now;
    session_tally tally;
    bool interrupted;
    emission emit;
    record rec;
    table *tables;
    vec(overriding) params;
    struct symbols *symbols; /* of the text read last, after an editor has requested them */
    embedding embed;
};

typedef struct cdl session;

enum {
#define CDL_OPTION_ROW(id, name, value, doc) OPTION_##id,
    CDL_OPTION_LIST(CDL_OPTION_ROW)
#undef CDL_OPTION_ROW
        OPTION_COUNT
};
/* yes or no options */
static inline bool session_is(const session *s, int option)
{
    return !strcmp(s->option[option], "yes");
}

/* ---- session.c ---- */
file_root session_folder(const session *s);             /* files are written below */
const char *session_path(session *s, const char *name); /* name of a file there, for messages */
void session_out(session *s, const text *t);
void session_err(session *s, const text *t);
void session_steer(session *s, const text *t); /* as session_err, with CDL's own colours and controls */
void session_note(session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void session_worse(session *s, cdl_status status);
/* Writes the diagnostics since the last call; false if there were errors. */
bool session_flush(session *s);
/* A temporary arena, which the session frees if an out-of-memory jump leaves it behind. */
arena *session_arena(session *s);
void session_arena_pass(session *s, arena *a); /* to an owner who frees it */
void session_arena_free(session *s, arena *a);
/* A text that is not kept, in tmp: its number. */
uint32_t session_passing(session *s, const char *name, const char *text_, size_t len);
/* Checks the tree of the module and executes it. */
cdl_status session_finish_text(session *s, bool run_it);
void session_note_experiments(session *s);
void session_forget(session *s);                  /* texts, definitions, runs */
void session_misplaced(session *s, const ast *e); /* reports a statement that belongs elsewhere */
void session_misplaced_in(session *s, const ast *e, const char *hint);
void session_execute(session *s, const ast *statement);
void run_emit(session *s, const ast *e); /* a run statement as C, where it is the one */
/* Calls go; false if the budget ended it: s->budget.why is the reason, which the caller reports. */
bool session_try(session *s, void (*go)(session *s, void *ud), void *ud);
/* "this exceeds the memory limit of --memory (4 GB)": for s->budget.why. */
const char *spent_text(session *s);
/* Names in force for a statement: measures, then the last run, then definitions; for what goes into a run
 * definitions come first. */
scope *session_scope(session *s);
scope *session_input_scope(session *s);
/* The declaration to which a name or a path of names (p.ball) refers; NULL after a report. */
const ast *session_model(session *s, const ast *name, scope **outer);
/* A copy that lasts as long as the arena; a run that it refers to is kept. */
value session_copy(session *s, arena *a, const value *v);
void session_set(session *s, sym name, const value *v); /* a measured name */
value session_eval(session *s, const ast *e);           /* in session_scope, into tmp */
const char *num_text(arena *a, double x);               /* exact */

#define ENTER(s)                             \
    do {                                     \
        if ((s)->broken || setjmp((s)->oom)) \
            return session_lost(s);          \
        session_begin(s);                    \
    } while (0)
void session_begin(session *s);
cdl_status session_lost(session *s);
const ast *read_expression(session *s, const char *name, const char *text_);
const ast *read_parsed(session *s, arena *a, uint32_t file); /* the expression that a source is */
/* ---- session_help.c ---- */
void impacts_show(session *s, text *t, const value *v); /* a table; nothing for what is no list of impacts */
void spark_put(text *t, const value *series, double lo, double hi); /* a line of bars */

bool help_text(session *s, text *t, const char *name); /* the help on a name */
/* session_topics.c: what a topic lists, by name; false: there is no such topic.  All of them with a word
 * each. */
bool topic_help(session *s, text *t, const char *name);
void topics_put(text *t);
/* Names that the statement before the cursor requires by its form: backends, options, units, attributes,
   laws. The k-th, NULL after the last; *of: what they are, or CDL_SYMBOL_KINDS: any name is possible here. */
const char *name_by_form(const char *statement, size_t k, cdl_symbol_kind *of);
/* Names of the arguments that a law takes; a 0 does not end them. */
const char *law_argument(const char *law, size_t k, size_t *len);

/* ---- session_symbols.c: the meaning of each name in the text read last ---- */
typedef struct symbol {
    cdl_symbol_kind kind;
    sym name;
    span name_at, at;
    const ast *decl;   /* its declaration, or NULL */
    const ast *model;  /* that it is declared in, or NULL */
    module *in, *used; /* whose text contains it; MODULE: the module that it names */
    const char *doc;
    int parent;
    bool local; /* an index or an argument */
} symbol;
typedef struct occurrence {
    span at;
    int symbol;
    bool declares;
} occurrence;
typedef struct symbols {
    const ast *file;
    vec(symbol) all;
    vec(occurrence) uses; /* by place */
    map64 known;          /* declarations, members of models and words -> number + 1 */
} symbols;
symbols *session_symbols(session *s);
const occurrence *symbols_at(const symbols *x, size_t byte);
/* Calls `put` for every name in force at a byte; objects before a dot are resolved in it. */
typedef struct name_scope {
    const ast *model;   /* around the place, or NULL */
    const ast *results; /* the model of the last run before it, or NULL */
    module *of;         /* whose text contains that model */
    vec(int) locals;
} name_scope;
typedef void (*put_symbol)(void *ud, const symbol *x);
void scope_at(session *s, size_t byte, name_scope *out);
void scope_names(session *s, const name_scope *in, put_symbol put, void *ud);
/* members of the object that text[0..len) names: parts[1].p, floor.impacts, planar */
void scope_members(session *s, const name_scope *in, const char *text, size_t len, put_symbol put, void *ud);
/* The symbol to which a path of names refers, or NULL. */
const symbol *scope_find(session *s, const name_scope *in, const char *text, size_t len);
/* the statement around a byte, or the one that begins there: where it begins */
size_t statement_begin_at(session *s, size_t byte);
void model_params(session *s, const symbol *model, put_symbol put, void *ud);
/* ---- session_embed.c ---- */
/* What a program requests of a model: values of parameters, and which of them are inputs. */
typedef struct model_request {
    const cdl_numbers *given;
    size_t ngiven;
    const char *const *input;
    size_t ninput;
    bool partial; /* parameters without a value are NaN */
} model_request;
/* A model by name; names that are not parameters are reported. */
const built *session_model_numbers(session *s, const char *model, const model_request *want, double **param);
/* A dof by its name in the whole model (big.p, small[1].p), and its place in q and v. */
typedef struct named_dof {
    const char *name;
    const mdof *dof;
    int32_t at;
} named_dof;
/* All dofs of a model, into tmp. */
void session_dofs(session *s, const model *m, named_dof **out, size_t *n);
/* The shape of its values, or of its rates: they differ for rotations, which are matrices of 3 x 3 and turn
   at vectors of 3.  Returns the rank; first may be NULL. */
int dof_shape(const mdof *d, bool rates, size_t shape[CDL_AXES], int first[CDL_AXES]);

/* ---- session_check.c ---- */
void check_module(session *s, module *m, bool to_run);
/* session_steady.c: lets and params that no result is needed for */
void check_constants(session *s, const mclass *last, const ast *list);
void check_params(session *s); /* -p names that nothing has */

/* ---- session_run.c ---- */
/* The model with the overrides that change its structure, compiled once. NULL after a report. */
const built *session_build(session *s, const ast *decl, scope *outer, const override *set, size_t nset);
/* any form of it that was compiled, or NULL */
const built *session_built(const session *s, const ast *decl);
/* The model for it, and all its parameters; NULL after a report. */
const built *session_program(session *s, const ast *decl, scope *outer, const model_request *want,
                             double **param);
void run_statement(session *s, const ast *e);
bool checkpoint_every(const char *given, double *seconds, double *time); /* the value of that option */
/* session_problems.c: contact problems of a run as files; NULL: none are wanted */
bool problems_named(const char *path); /* the value of that option */
problem_files *problems_begin(session *s, const run *r, run_options *o);
void problems_end(const problem_files *f, const ast *e);
void run_drop(session *s, run *r); /* frees it, unless it is still reached */
/* session_backend.c: the backend that `with` names and its options; false after a report.  o may be NULL:
 * then only names are checked. */
bool run_options_read(session *s, const ast *with, const backend **b, run_options *o);
/* The time after `for`; dry: only what is known without evaluating names. */
bool run_duration(session *s, const ast *e, const program *p, bool dry, double *out);
void run_check_backend(session *s, const ast *e, const built *of, const backend *b, bool as_error);
void run_check_args(session *s, const ast *e, const built *of, bool to_run);
bool is_literal(const ast *e); /* numbers and their arithmetic */
bool is_param_of(const ast *decl, sym name);
/* session_instance.c: may these parameters be inputs?  False after a report. */
bool inputs_allowed(session *s, const model *m, const char *const *input, size_t n);
/* session_fmu.c: a run that was written, as a file */
struct emitted_run;
void fmu_write(session *s, const ast *e, const run *r, const run_options *o, const struct emitted_run *from);
void near_params(const ast *decl, near *n);

/* ---- session_results.c ---- */
scope *results_scope(session *s, run *r);
extern const builtin result_builtins[], output_builtins[];
/* both: functions of results, and those that write files; ends with NULL */
extern const builtin *const session_builtins[];
/* The rows of results.def, and whose they are. */
enum {
    OF_RUN,
    OF_FIELD,
    OF_ROD,
    OF_LIMIT,
    OF_CONTACT,
    OF_IMPACT,
    OF_POINTS,
    OF_WIRE,
    OF_PAIR,
    OF_PATH,
    OF_SHAPE
};
enum {
#define X(of, name, doc) of##_##name,
#include "results/results.def"
#undef X
    RESULT_ROWS
};
int result_find(int of, const char *name); /* its row; -1 when there is none */
const char *result_doc(int of, const char *name);
const char *const *result_list(int of); /* names, up to a NULL; OF_RUN: all names of runs */
bool result_help(text *t, const char *name);
bool contact_has(const value *v, const char *name); /* a constraint that member */
/* Calls offer for each member that an object of results has. */
void value_members(const value *v, void (*offer)(void *ud, const char *name), void *ud);
bool value_is_class(const value *v);            /* a part, or the run as a whole */
bool value_lone(const value *part, value *out); /* the only coordinate of a part that has no other */
int value_components(const value *v);           /* of dofs that are vectors; 0: of numbers; -1: no dofs */
bool value_samples(session *s, const value *v, const double **t, const double **y, int64_t *n,
                   int64_t *stride);
/* ---- session_rod.c ---- */
bool rod_value(const run *r, int rod, value *out); /* false: the run has no rods */
look rod_name(const run *r, evaluator *ev, sym name, value *out);
bool is_rod(const value *v), is_pairs(const value *v), is_path(const value *v);
bool path_count(const value *v, double *n); /* false: not a branch of rods */
/* places of its nodes at the samples, r->ntrack apart; NULL: no rod, or one at a single sample */
const double *rod_in_time(const value *v, const results **r, int *nodes);
double rod_radius(const value *v);                          /* of a rod; 0 of others */
bool rod_save_vtp(session *s, const value *v, outfile *to); /* false: not a rod */
bool rod_save_svg(session *s, const value *v, outfile *to);
/* ---- session_field.c ---- */
bool field_value(const run *r, int field, value *out); /* false: the run has no fields */
bool field_coordinate(const run *r, int coord, value *out);
const char *line_coordinate(const value *v); /* of a field on a line; NULL: it is not one */
/* session_inclusion.c: jumps, branches, folds and the graph of a limit */
const char *const *inclusion_members(const value *v); /* NULL: no table of a limit */
look inclusion_name(run *r, evaluator *ev, sym name, value *out);
bool inclusion_count(const value *v, double *n);
bool inclusion_show(text *t, const value *v);
look field_name(const run *r, evaluator *ev, sym name, span at, value *out);
/* A field on a line: by formulas if there are some; false: it is not one. */
bool field_show(session *s, text *t, const value *v);
/* Derivatives of a field in the plane; returns their number, 0: it is not one. */
int field_members(const value *v, const char *out[4]);
value call_pieces(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n);
void field_summary(const run *r, text *t);
/* false: v is no field in the plane */
bool field_save_vtk(session *s, const value *v, outfile *to);
bool plane_samples(const value *v, const double **y, int64_t *n, int64_t *stride);
const struct field_result *value_plane(const value *v, int *field); /* a field in the plane, or NULL */
void plane_grid(const struct field_result *f, int32_t grid[2]);
/* its k-th obstacle at the nodes; NULL: there is none */
const double *field_obstacle_at(const run *r, const value *u, int k, arena *a);
/* Results that are tables: put(ud, name, column, per) for each column, n numbers or n rows of numbers; per:
 * those are rows of `per`. */
typedef void (*put_column)(void *ud, const char *name, const value *v, int per);
/* impacts, rods, pairs, jumps …; false: something else */
bool value_table(session *s, const value *v, put_column put, void *ud);
/* a field with its grid */
bool field_table(session *s, const char *name, const value *v, put_column put, void *ud);
bool rod_table(session *s, const value *v, put_column put, void *ud);
bool inclusion_table(session *s, const value *v, put_column put, void *ud);
/* Places and loads of the graph, places and loads of the solution; false when it is no graph. */
bool inclusion_graph(const value *v, const double **x, int64_t *n);

bool view_show(text *t, const value *v); /* Describes an object of results in one line; false: it is none. */
double value_at(const value *v, double t); /* of a series */

/* Code that walks over long results reports how many bytes it passed, so that memory of results in files is
   released from time to time. */
typedef struct scan {
    session *s;
    int64_t bytes;
} scan;
void scan_pass(scan *x, int64_t bytes);

/* dofs with indices, lists: their parts one by one.  Calls put(ud, "[1]", series) for each; anything else is
 * one part. */
void value_parts(session *s, const value *v, const char *index,
                 void (*put)(void *ud, const char *index, const value *part), void *ud);

/* Parts: one, or all of a family; false: it is none. */
/* Matrices of a rotation at the samples of its run, row after row; NULL: it is not a rotation. */
const double *value_attitude(const value *v);
bool value_bodies(session *s, const value *v, void (*put)(void *ud, const value *part), void *ud);

/* ---- session_expect.c ---- */
void record_flush(session *s);
void expect_statement(session *s, const ast *e);
void measure_statement(session *s, const ast *e);
void value_show(session *s, text *t, const value *v); /* text for people: a long series by its range */
void point_show(session *s, text *t);                 /* e = 0.5, mu = 0.1: where an experiment is */

/* ---- session_output.c ---- */
void save_statement(session *s, const ast *e);
void plot_statement(session *s, const ast *e);
void tables_finish(session *s);
/* Keys of the block of save or plot, and the kinds of their values; reports. */
void output_check(session *s, const ast *e);
const char *output_what(size_t k); /* what is its value */
/* the names of keys: "" where it is not of that statement, NULL after the last */
const char *output_key(size_t k, bool plot);

/* A file that is written immediately. In an experiment its bytes go into the report of the point, and are
   written when the report is read. */
outfile *whole_begin(session *s, const char *name);
bool whole_end(session *s, outfile *f, const char *name, const char *kind, span at);
bool whole_named(const char *name); /* whether its ending is one that is written so */
bool animation_named(const char *name);
/* Reports stored data that do not match the statement. */
void kept_damaged(session *s, span at);
bool tables_failed(const session *s); /* a file could not be written */

/* A block of rows for its table, as bytes that may come from another process. */
void table_take(session *s, const ast *e, const char *bytes, size_t n);

/* page.c: pages for a browser: of all that was run, in the file that the option names; of a folder */
void page_report(session *s, const text *manifest);
void page_folder(session *s, const char *folder, const char *page);
/* ---- session_sweep.c ---- */

/* ---- session_jobs.c: points of experiments, here, in other processes, or from files ---- */
typedef struct point_range {
    int64_t points;
    void (*run)(session *s, const ast *e, const void *axes, int64_t k, bool crashed);
    const void *axes;
    void (*tell)(session *s, const void *axes, int64_t k, text *t);
} point_range;
void points_run(session *s, const ast *e, const point_range *p);
void points_abandon(session *s); /* ends processes of an experiment that was abandoned */
/* session_report.c */
/* all but errors, which have been shown when they came; those alone */
typedef enum { TAKE_ALL, TAKE_ERRORS } taking;
void report_take(session *s, const ast *e, const char *bytes, size_t n, taking how, bool shard);
/* met, missed, not tried; status; failed, interrupted */
void report_counts_put(session *s, bool interrupted);
bool report_counts(const char *bytes, size_t n, uint64_t x[6]);

/* ---- session_manifest.c ---- */
void manifest_file(session *s, const char *path, const char *kind); /* "data", "script" or "picture" */
void manifest_text(session *s, const char *name, const char *text, size_t len, bool file);
void manifest_record(session *s, const char *json, size_t n);
void manifest_program(session *s, const program *p);
void manifest_write(session *s);
void manifest_put(session *s, text *t, const char *name); /* as JSON */

/* ---- version.c ---- */
void version_json(text *t);

/* ---- session_sweep.c ---- */
void experiment_statement(session *s, const ast *e);
bool sweep_is_zip(const ast *sweep);
#endif
