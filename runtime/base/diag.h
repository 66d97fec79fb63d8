/* diag: sources, spans and the diagnostics about them. The only place that draws carets. */
#ifndef CDL_DIAG_H
#define CDL_DIAG_H
#include <stdbool.h>
#include "arena.h"

/* byte offsets into sources->at[file]; file 0 is "nowhere" */
typedef struct {
    uint32_t file, begin, end;
} span;
#define SPAN_NONE ((span){ 0, 0, 0 })
span span_join(span a, span b);

typedef struct source {
    const char *name; /* as the user wrote it; "<stdin>", "<command>", … */
    const char *text; /* NUL-terminated copy */
    size_t len;
    uint32_t *line; /* byte offset of each line's start */
    size_t nlines;
} source;

typedef enum { /* code, kebab name, what it means and what to do */
#define X(id, name, help) DIAG_##id,
#include "diag.def"
#undef X
               DIAG_CODES
} diag_code;
const char *diag_code_name(diag_code c);
const char *diag_code_help(diag_code c);
int diag_code_find(const char *name); /* -1 when unknown */

typedef enum { DIAG_ERROR, DIAG_WARNING, DIAG_NOTE } diag_severity;

typedef struct diag diag;
struct diag {
    diag_severity severity;
    diag_code code;
    span at;
    const char *message;
    /* secondary place, message2 NULL when there is none */
    span at2;
    const char *message2;
    const char *hint; /* or NULL */
    /* the word that is wrong, somewhere in `at`, and what to write for it; or NULL */
    const char *wrong, *right;
};

enum { DIAG_MAX = 20 }; /* more errors than this are counted, not kept */

typedef struct diags {
    arena *a;
    vec(source *) sources; /* [0] is a placeholder */
    vec(diag) list;
    size_t errors, warnings; /* all, kept or not */
    map64 doubt;             /* names in statements with syntax errors, see diag_doubtful */
    bool doubt_all;          /* any name may be one: a library could not be read */
} diags;

diags *diags_new(arena *a);
uint32_t diags_add_source(diags *d, const char *name, const char *text, size_t len); /* copies */
/* A temporary source: it is in an arena of the caller, who drops it before the arena is released.
   Diagnostics that still refer to it (kept) get a lasting copy. */
uint32_t diags_add_passing(diags *d, arena *a, const char *name, const char *text, size_t len);
void diags_drop_passing(diags *d, uint32_t file, bool kept);
/* Adds an error.  Returns it, for diag_hint and diag_second (both accept NULL); NULL when it was dropped:
   past DIAG_MAX, or a second error at the same place. */
diag *diag_error(diags *d, diag_code c, span at, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
diag *diag_warn(diags *d, diag_code c, span at, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void diag_hint(diags *d, diag *e, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void diag_second(diags *d, diag *e, span at, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Sets the hint «did you mean 'x'?» when one of the candidates is close to `got`. */
enum { NEAR_SEEN = 16 };
typedef struct {
    const char *got, *best;
    size_t bestd;
    const char *seen[NEAR_SEEN]; /* the first candidates */
    size_t tried;                /* how many there were, also beyond those kept */
} near;
near near_to(const char *got);
void near_try(near *n, const char *candidate);
const char *near_best(const near *n); /* NULL when nothing is close */
void diag_near(diags *d, diag *e, const near *n);
/* The same; if none is close and they are few, the hint lists them all. */
void diag_near_or_all(diags *d, diag *e, const near *n);
/* A correction for editors: `right` replaces `wrong`, which is in the span of the error. */
void diag_replace(diags *d, diag *e, const char *wrong, const char *right);
/* The place of `wrong`; SPAN_NONE if it is not there. */
span diag_wrong_place(const diags *d, const diag *e);

void diags_sort(diags *d, size_t from); /* by place, stable, the entries from `from` on */
/* One mistake, one message: a name that occurs in a statement with a syntax error is not reported as
   unknown. diag_doubtful counts an error without keeping it, so that code that needs the name fails. */
void diag_doubt(diags *d, sym name);
bool diag_doubtful(diags *d, sym name);
void diag_doubt_end(diags *d); /* forgets them before the next text */
/* Undoes an attempt: removes everything reported since there was this number of errors and messages. */
void diag_forget(diags *d, size_t errors, size_t messages);
/* Text as compilers print it, one entry after the other; colour: ANSI.  JSON: an object a line. */
void diag_print(const diags *d, const diag *e, bool colour, text *out);
void diag_print_json(const diags *d, const diag *e, text *out);
/* Makes text safe to print: characters that would control a terminal (control characters except newline and
   tab, also those of U+0080..U+009F; those that change the direction of writing) and bytes that are not UTF-8
   become \u001b and the like. Writes at most `room` bytes and returns their number. */
size_t visible_text(const char *p, size_t n, char *out, size_t room);
void text_visible(text *out, const char *p, size_t n);
/* Line and column from 1; columns count code points; the second pair is just after the span.  0 for
 * SPAN_NONE; any may be NULL. */
void span_place(const diags *d, span s, size_t *line, size_t *col, size_t *line2, size_t *col2);
/* The source text of a span, white space folded, in the arena. */
/* the last line that begins at or before the offset, from 0 */
size_t source_line(const source *s, uint32_t offset);
char *span_text(const diags *d, span s, arena *a);
#endif
