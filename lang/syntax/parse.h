/* parse: source text -> AST.  Reentrant; reports to diags and continues after an error (statement by
 * statement). */
#ifndef CDL_PARSE_H
#define CDL_PARSE_H
#include "ast.h"

/* Always returns a FILE node; if there are errors it contains the valid parts (and ERROR nodes for the
   others). */
ast *parse_source(arena *a, symtab *names, diags *d, uint32_t file);

/* Whether the text is a complete input for the REPL: 1 complete, 0 wants more lines (open bracket, or a
   last token that cannot end a statement). */
int parse_complete(arena *scratch, const char *text, size_t len);
int parse_open_brackets(arena *scratch, const char *s, size_t len);

/* The tokens with comments and line ends kept, for fmt and for highlighting. */
typedef enum {
    LEX_NAME,
    LEX_KEYWORD,
    LEX_NUMBER,
    LEX_STRING,
    LEX_OP,
    LEX_COMMENT,
    LEX_DOC,
    LEX_NEWLINE,
    LEX_BAD
} lex_kind;
typedef struct {
    lex_kind kind;
    uint32_t begin, end;
} lexeme;
size_t lex_all(arena *a, const char *text, size_t len, lexeme **out);

extern const char *const keyword_list[]; /* NULL-terminated, the order of LANGUAGE.md */

/* fmt: the same tokens, in the standard layout.  Idempotent; keeps comments; NULL when the text does not lex.
 */
char *fmt_source(arena *a, const char *text, size_t len, size_t *outlen);
#endif
