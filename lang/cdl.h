/* cdl.h: the contact description language as a library.

   A session (`cdl`) reads text of the language, keeps its definitions and results,
       and runs its statements: the same object stands behind
   `cdl run`, the interactive session and programs that embed it.  Sessions share nothing;
       each may be used by one thread at a time.

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

/* How a call ended: X(NAME, number, text).  The larger number is the worse; what ended in several ways has
   the worst of them. */
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

/* A new session, or NULL without memory.  al == NULL: realloc and free.  cdl_free(NULL) is fine.
   When a call has returned CDL_MEMORY the session answers nothing else any more, and can only be freed. */
CDL_API cdl *cdl_new(const cdl_allocator *al);
CDL_API void cdl_free(cdl *s);

/* What the session says, and whether it was interrupted.  Any of them may be NULL.  Text is not terminated.
 * They must not call the session.
 */
typedef struct cdl_callbacks {
    /* results: what the command writes to standard output */
    void (*out)(void *ud, const char *text, size_t len);
    void (*err)(void *ud, const char *text, size_t len); /* diagnostics, progress, notes */
    /* called many times a second while the session works: how often it was interrupted.  Not 0: a run ends in
       order and what it computed is kept, other work is given up; a number that has grown since: at once. */
    int (*interrupted)(void *ud);
    void *ud;
} cdl_callbacks;
CDL_API void cdl_set_callbacks(cdl *s, const cdl_callbacks *c);

/* Options by name: X(NAME, "name", "default", "what it does").  CDL_USAGE when there is no such option or
 * value. */
#define CDL_OPTION_LIST(X)                                                                               \
    X(OUTPUT, "output", "",                                                                              \
      "directory that files are written into; made when it is missing. Empty: the current one")          \
    X(STDLIB, "stdlib", "", "directory of the library (`use std.x`); empty: the installed one")          \
    X(DIAGNOSTICS, "diagnostics", "text", "form of diagnostics: text or json")                           \
    X(JSON, "json", "no", "one JSON object for each run or sweep point on out, and nothing else")        \
    X(COLOUR, "colour", "no", "ANSI colours in diagnostics")                                             \
    X(QUIET, "quiet", "no", "no summaries of runs and no values of measures on out")                     \
    X(KEEP_GOING, "keep-going", "no", "record steps that could not be solved instead of ending the run") \
    X(PROGRESS, "progress", "no", "a progress line on err, for terminals")                               \
    X(INTERACTIVE, "interactive", "no",                                                                  \
      "statements come one by one: a definition may replace an earlier one")                             \
    X(MANIFEST, "manifest", "manifest.json",                                                             \
      "name of the file that records what was run, in `output`; no: none is written. "                   \
      "While neither is set it lies beside the first file, as STEM.manifest.json")                       \
    X(JOBS, "jobs", "1", "processes for the points of an experiment")                                    \
    X(RESUME, "resume", "no", "points of experiments that are finished already are not run again")       \
    X(SHARD, "shard", "",                                                                                \
      "k/n: of each experiment every n-th point, from the k-th; cdl merge does the rest")                \
    X(MERGE, "merge", "no", "points of experiments are taken from the shards, none is run")              \
    X(SPILL, "spill", "256",                                                                             \
      "megabytes of samples that a run keeps in memory; more go to a file in $TMPDIR or `output`")       \
    X(TIME, "time", "inf", "seconds that the session may take from now on")                              \
    X(MEMORY, "memory", "auto",                                                                          \
      "bytes (500M, 4G) that the session may hold; auto: 3/4 of what there is, at most 64G")             \
    X(DISK, "disk", "64G", "bytes that the session may write to files")                                  \
    X(ALLOW_OUTSIDE, "allow-outside", "no",                                                              \
      "models may read files outside of their folder, and write outside of `output`")                    \
    X(SHARDS, "shards", "", "merge: further directories with shards, a line each")                       \
    X(CHECKPOINT, "checkpoint", "", "file that the state of a run is written to; empty: none")           \
    X(CHECKPOINT_EVERY, "checkpoint-every", "",                                                          \
      "how often beside the end: seconds, or t=T of the time of the run")                                \
    X(FROM, "from", "", "file written by `checkpoint`: the run it belongs to continues from there")
CDL_API cdl_status cdl_set(cdl *s, const char *option, const char *value);
/* The value (an expression of the language) of every parameter of that name, in all models that are run and
   at top level; the `-p` of the command. */
CDL_API cdl_status cdl_set_param(cdl *s, const char *name, const char *value);

/* Checks and then executes a file or a text; `name` stands in diagnostics.  Definitions and results stay in
   the session. */
CDL_API cdl_status cdl_load_file(cdl *s, const char *path);
CDL_API cdl_status cdl_run_text(cdl *s, const char *name, const char *text, size_t len);
/* Finds all errors without running anything. */
CDL_API cdl_status cdl_check_file(cdl *s, const char *path);
CDL_API cdl_status cdl_check_text(cdl *s, const char *name, const char *text, size_t len);
/* Ends what the calls before have begun: writes the last JSON object, says how many expectations were met.
   Returns the worst status since the session began or since the last cdl_finish. */
CDL_API cdl_status cdl_finish(cdl *s);

/* The value of an expression, as in a statement after what was run: `cdl_value(s, "last(y)", &x)`.  CDL_MODEL
   when it is no number. */
CDL_API cdl_status cdl_value(cdl *s, const char *expression, double *out);
/* Numbers of a vector or a series: *n is how many there are, of which at most `room` are written to `out`. */
CDL_API cdl_status cdl_values(cdl *s, const char *expression, double *out, size_t room, size_t *n);

/* Writes a stage of the translation to out, as stable text.  what: "ast", "model", "equations", "ir" or
   "jacobian"; or "wellposed": what theory says of the motions of each model, which is JSON when the option is
   set. */
CDL_API cdl_status cdl_show(cdl *s, const char *what, const char *path);
CDL_API cdl_status cdl_show_text(cdl *s, const char *what, const char *name, const char *text, size_t len);

/* Writes a run of the file to out as C that stands alone: the first run of that model, or of any where it is
   NULL, a run of sweeping().  what: "c".  Runs before it are executed, nothing after it is. */
CDL_API cdl_status cdl_emit(cdl *s, const char *what, const char *path, const char *model);

/* The text in the house's layout.  The result belongs to the session and lasts until the next call. */
CDL_API cdl_status cdl_fmt(cdl *s, const char *name, const char *text, size_t len, const char **out,
                           size_t *outlen);
/* A file, rewritten in place, whole or not at all.  check_only: nothing is written; CDL_EXPECT when it is not
   in that layout. */
CDL_API cdl_status cdl_fmt_file(cdl *s, const char *path, int check_only);

/* Whether the text is a whole input: 1, or 0 when it needs another line (an open bracket, a last word that
   cannot end a statement). */
CDL_API int cdl_complete(cdl *s, const char *text, size_t len);
/* How many brackets are open at its end. */
CDL_API int cdl_open_brackets(cdl *s, const char *text, size_t len);
/* Text that came from outside, as it can be shown on a terminal: what would steer one (control characters but
   newline and tab) becomes \u001b and the like.  Writes at most `room` bytes, returns how many there are: at
   most 6 for each byte. */
CDL_API size_t cdl_visible(const char *text, size_t len, char *out, size_t room);
/* The k-th name that may be written at the end of a line, beginning with `prefix`; NULL behind the last.
   "floor." completes members. */
CDL_API const char *cdl_name(cdl *s, const char *prefix, size_t k);
/* How many times a model was compiled so far: runs that differ in values of parameters alone share one. */
CDL_API size_t cdl_compiled(const cdl *s);

/* As cdl_name, from all that stands before the end of the word: after `with` backends and in their brackets
   options, units after a number and [, attribute keys in braces. */
CDL_API const char *cdl_name_at(cdl *s, const char *line, size_t k);
/* Writes what is known of a name to out: a keyword, function, law, backend, error code, or what was defined
   with its ## comment. CDL_USAGE when nothing has the name. */
CDL_API cdl_status cdl_help(cdl *s, const char *name);
/* Writes what kind of value an expression has to out. */
CDL_API cdl_status cdl_type(cdl *s, const char *expression);

/* Numbers under a name: a parameter, or a column of saved results. */
typedef struct cdl_numbers {
    const char *name;
    const double *at;
    size_t n;
} cdl_numbers;
/* The worst of one kind in saved results: how far it is off, how much is allowed, the row (from 0) and the
   column or constraint. */
typedef struct cdl_finding {
    const char *what, *where;
    double worst, allowed;
    size_t row;
} cdl_finding;
/* Saved results against a model of the text that was checked last (NULL: the last one there is): gaps, cones,
   complementarity, energies are computed again from t, the dofs and their rates.  Columns are named as in CSV
   files.  CDL_OK: all is as it should be; CDL_EXPECT: something is not; CDL_USAGE: columns are missing.  The
   findings belong to the session until the next call. */
CDL_API cdl_status cdl_verify(cdl *s, const char *model, const cdl_numbers *param, size_t nparam,
                              const cdl_numbers *column, size_t ncolumn, const cdl_finding **found,
                              size_t *nfound);

/* The SHA-256 of a file's bytes in hexadecimal digits; CDL_IO when it cannot be read, or when interrupted
   (called now and then; NULL: never) does not return 0. */
CDL_API cdl_status cdl_hash_file(const char *path, char hex[65], int (*interrupted)(void *ud), void *ud);

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
