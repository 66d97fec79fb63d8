/* scan: what the flex scanner, the token filter (parse.c) and the grammar share.  Private to the parser. */
#ifndef CDL_SCAN_H
#define CDL_SCAN_H
#include "parse.h"

/* where a statement may begin */
typedef enum { BEGINS_NO, BEGINS_TOP = 1, BEGINS_MODEL = 2, BEGINS_BOTH = 3 } begins;

/* body: for a { of statements, which may begin in it; col: the column of the statement around it */
typedef struct {
    char sign;
    begins body;
    span at;
    uint32_t col;
} bracket;

/* missing braces, so that a } that belongs to them is not reported */
typedef struct {
    uint32_t closed;    /* bodies closed because a } is missing, whose } may still follow */
    bool unopened;      /* a block without its {, whose } may still follow: */
    uint32_t line, col; /* where the line of its statement begins, its column */
} lost_braces;

typedef struct scanner {
    arena *a;
    const char *text;
    uint32_t len, file;
    void *flex;
    uint8_t keyword[256]; /* hash table: index + 1 into the keywords */
    /* for the parser alone */
    symtab *names;
    diags *d;
    vec(bracket) open;
    /* the tokens given last, and before it */
    int last, prev;
    span last_at, prev_at;
    /* a token read and not yet given; 0: none, -1: the end */
    int held;
    span held_at;
    bool held_fresh;
    bool resync;                   /* end the statement before the held token */
    uint32_t line;                 /* where the line begins */
    bool fresh, blank, last_fresh; /* line without token, without anything; `last` began it */
    /* the statement's first token; how many were given */
    int first;
    span first_at;
    uint32_t first_col, count;
    bool failed, limited, misplaced; /* said: an error here, a limit, a statement out of place */
    bool commented;                  /* said: a comment of another language */
    bool in_comment;                 /* the rest of the line belongs to one */
    bool skipping, ended, stray;     /* leaving a statement; no more text; `last` closes none */
    lost_braces lost;
    uint32_t relations; /* comparisons since the last thing that ends one */
    bracket missing;    /* left open by what closes `last`, or sign 0 */
    text doc;
    vec(struct {
        uint32_t begin;
        const char *doc;
    }) docs;
} scanner;

/* lexer.l: tokens as they stand, comments and line ends included */
void scan_begin(scanner *sc, arena *a, const char *text, size_t len);
int scan_token(scanner *sc, span *at);
int scan_keyword(const scanner *sc, const char *p, size_t n); /* its index, or -1 */

/* parse.c, for the grammar */
/* what could follow: an operand, or n things */
typedef struct {
    bool expr;
    char list[200];
    int n;
} expected;
void scan_unexpected(scanner *sc, const expected *want);
void scan_limit(scanner *sc, span at, const char *what, int most);
const char *scan_doc(const scanner *sc, uint32_t begin);
void scan_doubt(scanner *sc, span at); /* names in a text with syntax errors are not reported as unknown */
#endif
