/* ast: making and printing syntax nodes */
#include "ast.h"
#include <string.h>

const char *ast_kind_name(ast_kind k)
{
    static const char *const name[] = {
#define X(id, word, kids) word,
#include "ast.def"
#undef X
    };
    return (unsigned)k < AST_KINDS ? name[k] : "?";
}

/* room for children is a power of two, so ast_push can compute it from n */
static uint32_t room(uint32_t n)
{
    uint32_t c = 1;
    while (c < n)
        c *= 2;
    return n ? c : 0;
}

ast *ast_new(arena *a, ast_kind k, span at, uint32_t n)
{
    ast *x = arena_zalloc(a, sizeof *x + room(n) * sizeof *x->kid);
    x->kind = k;
    x->op = OP_NONE;
    x->at = at;
    x->n = n;
    x->kid = n ? (ast **)(x + 1) : NULL;
    return x;
}

void ast_push(arena *a, ast *list, ast *kid)
{
    if (list->n == room(list->n)) {
        ast **more = arena_array(a, ast *, room(list->n + 1));
        if (list->n)
            memcpy(more, list->kid, list->n * sizeof *more);
        list->kid = more;
    }
    list->kid[list->n++] = kid;
}

static void dump_place(const diags *d, span at, text *out)
{
    size_t line, col, line2, col2;
    span_place(d, at, &line, &col, &line2, &col2);
    text_printf(out, " @%zu:%zu-%zu:%zu", line, col, line2, col2);
}

static bool has_number(const ast *n)
{
    return n->kind == AST_NUM || n->kind == AST_BOOL || n->num != 0;
}

static void dump_head(const diags *d, const ast *n, bool spans, text *out)
{
    text_puts(out, ast_kind_name(n->kind));
    if (n->op != OP_NONE)
        text_printf(out, " %s", op_name(n->op));
    if (n->name)
        text_printf(out, " %s", n->name);
    if (n->text)
        text_putc(out, ' '), text_json_str(out, n->text, n->len);
    if (has_number(n))
        text_putc(out, ' '), text_num(out, n->num);
    if (spans)
        dump_place(d, n->at, out);
    if (n->doc)
        text_puts(out, " ## "), text_json_str(out, n->doc, strlen(n->doc));
}

static void dump(const diags *d, const ast *n, bool spans, int depth, text *out)
{
    for (int i = 0; i < depth; i++)
        text_puts(out, "  ");
    if (!n) {
        text_puts(out, "-\n");
        return;
    }
    text_putc(out, '(');
    dump_head(d, n, spans, out);
    for (uint32_t i = 0; i < n->n; i++) {
        if (i == 0)
            text_putc(out, '\n');
        dump(d, n->kid[i], spans, depth + 1, out);
    }
    /* the bracket comes after the last child */
    if (n->n)
        out->n--;
    text_puts(out, ")\n");
}

void ast_dump(const diags *d, const ast *n, bool spans, text *out)
{
    dump(d, n, spans, 0, out);
}
