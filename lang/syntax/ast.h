/* ast: the syntax tree, one node type.  Owned by the compile arena; never changed after parsing. */
#ifndef CDL_AST_H
#define CDL_AST_H
#include "base/diag.h"
#include "base/op.h"

typedef enum {
#define X(id, name, kids) AST_##id,
#include "ast.def"
#undef X
    AST_KINDS
} ast_kind;

typedef struct ast ast;
struct ast {
    ast_kind kind;
    op_code op;
    span at;      /* the whole construct */
    span name_at; /* the name's own place, where there is a name; a BINARY's operator */
    sym name;
    const char *text;
    size_t len;
    double num;
    const char *doc; /* the ## comment before it (statements and declared items), or NULL */
    uint32_t n;
    ast **kid;
};

const char *ast_kind_name(ast_kind k);
ast *ast_new(arena *a, ast_kind k, span at, uint32_t n); /* kids NULL */
void ast_push(arena *a, ast *list, ast *kid);            /* appends; amortised */
/* A stable indented tree, one node a line: (kind name num … @line:col-line:col) */
void ast_dump(const diags *d, const ast *n, bool spans, text *out);

/* Source limits, each with its own message. */
enum { AST_MAX_DEPTH = 200, SOURCE_MAX_BYTES = 64 << 20 };
#endif
