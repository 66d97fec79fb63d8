/* session_editor: queries of editors: diagnostics as structures, symbols, descriptions, choices,
   signatures, inferred units. The meaning of names comes from session_symbols.c. */
#include <ctype.h>
#include <math.h>
#include <string.h>
#include "syntax/parse.h"
#include "session.h"

/* Entries that return a count or a status; `lost` is returned without memory, or when the budget is spent. */
#define ENTER_EDITOR(s, lost)                    \
    do {                                         \
        if ((s)->broken || setjmp((s)->oom)) {   \
            session_lost(s);                     \
            return lost;                         \
        }                                        \
        session_begin(s);                        \
        arena_release((s)->answer, empty_arena); \
    } while (0)

static const arena_pos empty_arena = { NULL, 0 };

const char *cdl_symbol_text(cdl_symbol_kind k)
{
    static const char *const texts[] = {
#define CDL_SYMBOL_ROW(name, text) text,
        CDL_SYMBOL_LIST(CDL_SYMBOL_ROW)
#undef CDL_SYMBOL_ROW
    };
    return (unsigned)k < CDL_SYMBOL_KINDS ? texts[k] : "name";
}

/* ---- places ---- */

/* Columns are counted from the nearest place on the line that was counted before: places come in order,
   nearly, and a line may be long. */
enum { COUNTED = 4 };
typedef struct {
    uint32_t file, line, byte; /* line: the byte where it begins */
    size_t column, column16;
} counted_place;
typedef struct {
    session *s;
    counted_place known[COUNTED];
    int oldest;
} places;

static counted_place *place_near(places *p, uint32_t file, uint32_t line, uint32_t byte)
{
    counted_place *best = NULL;
    for (int k = 0; k < COUNTED; k++) {
        counted_place *c = &p->known[k];
        if (c->file == file && c->line == line && c->byte <= byte && (!best || c->byte > best->byte))
            best = c;
    }
    if (best)
        return best;
    best = &p->known[p->oldest];
    p->oldest = (p->oldest + 1) % COUNTED;
    *best = (counted_place){ file, line, line, 1, 1 };
    return best;
}

static cdl_position position_out(places *p, uint32_t file, uint32_t byte)
{
    const source *src = p->s->d->sources.at[file];
    size_t number = source_line(src, byte);
    counted_place *c = place_near(p, file, src->line[number], byte);
    while (c->byte < byte) {
        uint32_t cp = 0;
        size_t n = utf8_next(src->text + c->byte, src->len - c->byte, &cp);
        c->byte += n ? (uint32_t)n : 1;
        c->column++;
        c->column16 += cp > 0xFFFF ? 2 : 1;
    }
    return (cdl_position){ number + 1, c->column, c->column16, byte };
}

static cdl_span span_out(places *p, span at)
{
    const diags *d = p->s->d;
    cdl_span out = { 0 };
    if (!at.file || at.file >= d->sources.n)
        return out;
    uint32_t len = (uint32_t)d->sources.at[at.file]->len;
    uint32_t end = at.end < len ? at.end : len, begin = at.begin < end ? at.begin : end;
    out.file = d->sources.at[at.file]->name;
    out.begin = position_out(p, at.file, begin);
    out.end = position_out(p, at.file, end);
    return out;
}

/* ---- diagnostics ---- */

static cdl_diagnostic diagnostic_out(places *p, const diag *e)
{
    session *s = p->s;
    static const cdl_severity severities[] = { [DIAG_ERROR] = CDL_SEVERITY_ERROR,
                                               [DIAG_WARNING] = CDL_SEVERITY_WARNING,
                                               [DIAG_NOTE] = CDL_SEVERITY_NOTE };
    cdl_diagnostic out = { .code = diag_code_name(e->code),
                           .severity = severities[e->severity],
                           .at = span_out(p, e->at),
                           .message = e->message };
    if (e->hint) {
        const char **hint = arena_array(s->answer, const char *, 1);
        *hint = e->hint;
        out.hint = hint;
        out.nhint = 1;
    }
    if (e->message2) {
        cdl_remark *second = arena_array(s->answer, cdl_remark, 1);
        *second = (cdl_remark){ span_out(p, e->at2), e->message2 };
        out.second = second;
        out.nsecond = 1;
    }
    span wrong = diag_wrong_place(s->d, e);
    if (wrong.file) {
        out.replacement = e->right;
        out.replace = span_out(p, wrong);
    }
    return out;
}

/* the call before is not forgotten: no session_begin */
size_t cdl_diagnostics(cdl *s, const cdl_diagnostic **out)
{
    *out = NULL;
    if (s->broken || setjmp(s->oom)) {
        session_lost(s);
        return 0;
    }
    size_t n = s->tally.said.n;
    arena_release(s->answer, empty_arena);
    places p = { .s = s };
    cdl_diagnostic *list = arena_array(s->answer, cdl_diagnostic, n ? n : 1);
    for (size_t k = 0; k < n; k++)
        list[k] = diagnostic_out(&p, &s->tally.said.at[k]);
    *out = list;
    return n;
}

/* ---- symbols ---- */

static const source *text_read(const session *s)
{
    return s->main->file ? s->d->sources.at[s->main->file->at.file] : NULL;
}

/* a declaration in a line: up to the brace of its body, not too long */
static const char *declaration_text(session *s, span at)
{
    enum { MOST = 200 };
    char *p = span_text(s->d, at, s->answer);
    size_t n = strlen(p);
    if (n <= MOST)
        return p;
    n = MOST;
    while (n && ((unsigned char)p[n] & 0xC0) == 0x80)
        n--;
    return arena_printf(s->answer, "%.*s …", (int)n, p);
}

/* the keyword of a declaration precedes the items of a list: param g = 9.81 */
static const char *symbol_declaration(session *s, const symbol *y)
{
    static const char *const word[CDL_SYMBOL_KINDS] = {
        [CDL_IS_PARAM] = "param ",       [CDL_IS_DOF] = "dof ",     [CDL_IS_LET] = "let ",
        [CDL_IS_COORDINATE] = "domain ", [CDL_IS_FIELD] = "field ", [CDL_IS_MEASURE] = "measure ",
        [CDL_IS_SWEEP] = "sweep "
    };
    if (!y->decl)
        return y->name;
    if (y->kind == CDL_IS_MODEL || y->kind == CDL_IS_EXPERIMENT)
        return arena_printf(s->answer, "%s %s", cdl_symbol_text(y->kind), y->name);
    const char *line = declaration_text(s, y->decl->at);
    const char *before = word[y->kind];
    return before && strncmp(line, before, strlen(before)) ? arena_printf(s->answer, "%s%s", before, line)
                                                           : line;
}

size_t cdl_symbols(cdl *s, const cdl_symbol **out)
{
    *out = NULL;
    ENTER_EDITOR(s, 0);
    const symbols *x = session_symbols(s);
    size_t n = x ? x->all.n : 0, m = 0;
    places p = { .s = s };
    cdl_symbol *list = arena_array(s->answer, cdl_symbol, n ? n : 1);
    int *number = arena_array(s->tmp, int, n ? n : 1);
    for (size_t k = 0; k < n; k++) {
        const symbol *y = &x->all.at[k];
        number[k] = -1;
        if (!y->decl || y->local || y->decl->at.file != x->file->at.file)
            continue;
        number[k] = (int)m;
        cdl_symbol *to = &list[m++];
        *to = (cdl_symbol){ .kind = y->kind,
                            .name = y->name,
                            .detail = symbol_declaration(s, y),
                            .at = span_out(&p, y->at),
                            .name_at = span_out(&p, y->name_at),
                            .parent = y->parent >= 0 ? number[y->parent] : -1 };
    }
    *out = list;
    return m;
}

static cdl_use use_out(places *p, const symbols *x, const occurrence *o)
{
    const symbol *y = &x->all.at[o->symbol];
    return (cdl_use){ .kind = y->kind,
                      .at = span_out(p, o->at),
                      .declares = o->declares,
                      .library = !y->decl || y->decl->at.file != x->file->at.file };
}

size_t cdl_uses(cdl *s, const cdl_use **out)
{
    *out = NULL;
    ENTER_EDITOR(s, 0);
    const symbols *x = session_symbols(s);
    size_t n = x ? x->uses.n : 0;
    places p = { .s = s };
    cdl_use *list = arena_array(s->answer, cdl_use, n ? n : 1);
    for (size_t k = 0; k < n; k++)
        list[k] = use_out(&p, x, &x->uses.at[k]);
    *out = list;
    return n;
}

size_t cdl_references(cdl *s, size_t byte, const cdl_use **out)
{
    *out = NULL;
    ENTER_EDITOR(s, 0);
    const symbols *x = session_symbols(s);
    const occurrence *o = x ? symbols_at(x, byte) : NULL;
    size_t n = 0;
    if (!o)
        return 0;
    places p = { .s = s };
    cdl_use *list = arena_array(s->answer, cdl_use, x->uses.n);
    for (size_t k = 0; k < x->uses.n; k++)
        if (x->uses.at[k].symbol == o->symbol)
            list[n++] = use_out(&p, x, &x->uses.at[k]);
    *out = list;
    return n;
}

cdl_status cdl_declaration(cdl *s, size_t byte, cdl_span *at)
{
    *at = (cdl_span){ 0 };
    ENTER_EDITOR(s, s->broken ? CDL_MEMORY : CDL_USAGE);
    const symbols *x = session_symbols(s);
    const occurrence *o = x ? symbols_at(x, byte) : NULL;
    if (!o)
        return CDL_USAGE;
    const symbol *y = &x->all.at[o->symbol];
    if (y->kind == CDL_IS_MODULE && y->used && y->used->file)
        *at = span_out(&(places){ .s = s }, (span){ y->used->file->at.file, 0, 0 });
    else if (y->decl)
        *at = span_out(&(places){ .s = s }, y->name_at);
    return at->file ? CDL_OK : CDL_USAGE;
}

/* ---- units ---- */

static dim value_unit(const value *v)
{
    return v->kind == V_NUM ? v->num.unit : dim_any();
}

/* the unit of what a model or the text declares; `any` where none is known */
static dim symbol_unit(session *s, const symbol *y)
{
    if (!y->decl)
        return dim_any();
    if (!y->model) {
        const def *d = y->kind == CDL_IS_LET || y->kind == CDL_IS_PARAM ? module_find(s->main, y->name)
                                                                        : NULL;
        return d && d->at == y->decl && d->state == DEF_READY ? value_unit(&d->v) : dim_any();
    }
    const built *b = session_built(s, y->model);
    const mdecl *d = b && b->m ? class_find(b->m->classes.at[0], y->name) : NULL;
    if (!d || d->node != y->decl)
        return dim_any();
    return d->kind == DECL_PARAM ? d->param->unit
           : d->kind == DECL_DOF ? d->dof->unit
           : d->kind == DECL_LET ? value_unit(&d->let->v)
                                 : dim_any();
}

/* whether the text of a declaration ends in a unit already, or in a number that has none */
static bool unit_written(const ast *e)
{
    const ast *v = e->kind == AST_PARAM_ITEM ? e->kid[1] : e->kind == AST_DOF_ITEM ? e->kid[2] : e->kid[0];
    while (v && v->kind == AST_UNARY)
        v = v->kid[0];
    return v && v->kind == AST_NUM && v->n && v->kid[0];
}

size_t cdl_inlays(cdl *s, const cdl_inlay **out)
{
    *out = NULL;
    ENTER_EDITOR(s, 0);
    const symbols *x = session_symbols(s);
    size_t n = x ? x->all.n : 0, m = 0;
    places p = { .s = s };
    cdl_inlay *list = arena_array(s->answer, cdl_inlay, n ? n : 1);
    for (size_t k = 0; k < n; k++) {
        const symbol *y = &x->all.at[k];
        if (!y->decl || y->decl->at.file != x->file->at.file || y->local ||
            (y->kind != CDL_IS_PARAM && y->kind != CDL_IS_DOF && y->kind != CDL_IS_LET) ||
            unit_written(y->decl))
            continue;
        dim u = symbol_unit(s, y);
        text t = { .a = s->answer };
        if (u.any)
            continue;
        dim_text(&t, u);
        if (!strcmp(t.at, "1"))
            continue;
        list[m++] = (cdl_inlay){ span_out(&p, y->name_at).end, arena_printf(s->answer, "[%s]", t.at) };
    }
    *out = list;
    return m;
}

/* ---- descriptions ---- */

static bool word_in(const char *line, size_t n, const char *name)
{
    size_t len = strlen(name);
    for (size_t k = 0; k + len <= n; k++) {
        bool begins = !k ||
                      !(isalnum((unsigned char)line[k - 1]) || line[k - 1] == '_' || line[k - 1] == '.');
        if (begins && !strncmp(line + k, name, len) &&
            !(k + len < n && (isalnum((unsigned char)line[k + len]) || line[k + len] == '_')))
            return true;
    }
    return false;
}

/* of the equations of a model: all, or the lines whose left side holds the name */
static void equations_put(session *s, text *t, const symbol *y, const ast *decl, const char *name)
{
    enum { LINES = 12, DOFS = 2000 };
    const built *b = session_built(s, decl);
    if (!b || !b->m || b->m->nq > DOFS || y->in != s->main)
        return;
    text all = { .a = s->tmp };
    int lines = 0;
    model_dump_equations(&all, b->m);
    for (const char *p = all.at ? strchr(all.at, '\n') : NULL; p && p[1];) {
        const char *line = p + 1, *end = strchr(line, '\n'), *eq = strstr(line, " = ");
        size_t n = end ? (size_t)(end - line) : strlen(line);
        size_t left = eq && eq < line + n ? (size_t)(eq - line) : n;
        p = end;
        if (name && !word_in(line, left, name))
            continue;
        if (lines++ == LINES) {
            text_puts(t, "…\n");
            break;
        }
        if (lines == 1)
            text_puts(t, "\nDerived:\n```\n");
        text_putn(t, line, n);
        text_putc(t, '\n');
    }
    if (lines)
        text_puts(t, "```\n");
}

static void unit_put(session *s, text *t, const symbol *y)
{
    dim u = symbol_unit(s, y);
    if (u.any)
        return;
    text_puts(t, ", in [");
    dim_text(t, u);
    text_putc(t, ']');
}

/* Text as Markdown: text that contains markup characters becomes a block. */
static void block_put(text *t, const char *language, const char *body)
{
    text_printf(t, "```%s\n%s\n```\n", language, body);
}

static void declared_put(session *s, text *t, const symbol *y)
{
    block_put(t, "cdl", symbol_declaration(s, y));
    text_puts(t, cdl_symbol_text(y->kind));
    if (y->model)
        text_printf(t, " of %s", y->model->name);
    unit_put(s, t, y);
    if (y->decl->at.file != s->main->file->at.file)
        text_printf(t, ", from %s", s->d->sources.at[y->decl->at.file]->name);
    text_putc(t, '\n');
    if (y->doc)
        text_printf(t, "\n%s\n", y->doc);
    if (y->kind == CDL_IS_MODEL)
        equations_put(s, t, y, y->decl, NULL);
    else if (y->model && (y->kind == CDL_IS_DOF || y->kind == CDL_IS_CONSTRAINT))
        equations_put(s, t, y, y->model, y->name);
}

/* the word at a byte, be it a name or a keyword */
static span word_at(session *s, size_t byte)
{
    const source *src = text_read(s);
    size_t b = byte, e = byte;
    if (!src || byte > src->len)
        return SPAN_NONE;
    while (b && (isalnum((unsigned char)src->text[b - 1]) || src->text[b - 1] == '_'))
        b--;
    while (e < src->len && (isalnum((unsigned char)src->text[e]) || src->text[e] == '_'))
        e++;
    return e > b ? (span){ s->main->file->at.file, (uint32_t)b, (uint32_t)e } : SPAN_NONE;
}

static bool is_keyword(const char *word)
{
    for (int k = 0; keyword_list[k]; k++)
        if (!strcmp(keyword_list[k], word))
            return true;
    return false;
}

static bool is_space(const char *word)
{
    int k = 0;
    while (dof_spaces[k] && strcmp(dof_spaces[k], word))
        k++;
    return dof_spaces[k] != NULL;
}

/* whether a byte lies in a comment or a string */
static bool in_prose(session *s, size_t byte)
{
    const source *src = text_read(s);
    lexeme *lex;
    size_t n = src ? lex_all(s->tmp, src->text, src->len, &lex) : 0;
    for (size_t k = 0; k < n && lex[k].begin < byte; k++)
        if (byte < lex[k].end + (lex[k].kind != LEX_STRING) &&
            (lex[k].kind == LEX_COMMENT || lex[k].kind == LEX_DOC || lex[k].kind == LEX_STRING))
            return true;
    return false;
}

cdl_status cdl_describe(cdl *s, size_t byte, cdl_span *at, const char **markdown)
{
    *at = (cdl_span){ 0 };
    *markdown = NULL;
    ENTER_EDITOR(s, s->broken ? CDL_MEMORY : CDL_USAGE);
    const symbols *x = session_symbols(s);
    const occurrence *o = x ? symbols_at(x, byte) : NULL;
    text t = { .a = s->answer };
    if (o) {
        symbol y = x->all.at[o->symbol];
        text help = { .a = s->tmp };
        *at = span_out(&(places){ .s = s }, o->at);
        if (y.decl)
            declared_put(s, &t, &y);
        else if (help_text(s, &help, y.name))
            block_put(&t, "", help.at);
    } else if (x) {
        span w = word_at(s, byte);
        const char *word = w.file ? arena_strndup(s->tmp, text_read(s)->text + w.begin, w.end - w.begin) : "";
        text help = { .a = s->tmp };
        if ((is_keyword(word) || is_space(word)) && !in_prose(s, byte) && help_text(s, &help, word)) {
            *at = span_out(&(places){ .s = s }, w);
            block_put(&t, "", help.at);
        }
    }
    *markdown = t.at;
    return t.at ? CDL_OK : CDL_USAGE;
}

/* ---- choices ---- */

typedef struct {
    session *s;
    const char *prefix;
    size_t len;
    map64 seen;
    vec(cdl_choice) list;
} choosing;

static void choice_add(choosing *c, cdl_symbol_kind kind, const char *name, const char *detail,
                       const char *doc)
{
    if (strncmp(name, c->prefix, c->len))
        return;
    uint64_t *seen = map64_put(&c->seen, sym_key(sym_str(c->s->names, name)));
    if ((*seen)++)
        return;
    *vec_push(c->s->answer, &c->list) = (cdl_choice){ kind, name, detail, doc };
}

static void choice_symbol(void *ud, const symbol *y)
{
    choosing *c = ud;
    if (!y->name || strncmp(y->name, c->prefix, c->len))
        return;
    choice_add(c, y->kind, y->name, y->decl ? symbol_declaration(c->s, y) : NULL, y->doc);
}

static void choice_model(void *ud, const symbol *y)
{
    if (y->kind == CDL_IS_MODEL || y->kind == CDL_IS_MODULE)
        choice_symbol(ud, y);
}

enum { MAY_NO, MAY_TOP = 1, MAY_MODEL = 2, MAY_BOTH = 3 };
static const unsigned char keyword_may[] = {
#define X(id, word, where, example, meaning) MAY_##where,
#include "syntax/keywords.def"
#undef X
};
static const char *const keyword_example[] = {
#define X(id, word, where, example, meaning) example,
#include "syntax/keywords.def"
#undef X
};

/* Words that begin a statement, or occur inside one. */
static void choice_keywords(choosing *c, bool first, bool in_model)
{
    for (int k = 0; keyword_list[k]; k++) {
        bool fits = first ? (keyword_may[k] & (in_model ? MAY_MODEL : MAY_TOP)) != 0
                          : keyword_may[k] == MAY_NO;
        if (fits || (!first && !strcmp(keyword_list[k], "for")))
            choice_add(c, CDL_IS_KEYWORD, keyword_list[k], keyword_example[k], NULL);
    }
}

/* the tokens before a byte; the last may be a word that is being written */
typedef struct {
    const char *text;
    lexeme *at;
    size_t n;
} tokens;

static tokens tokens_of(session *s, size_t from, size_t to)
{
    const source *src = text_read(s);
    tokens t = { .text = src->text + from };
    t.n = lex_all(s->tmp, t.text, to - from, &t.at);
    return t;
}

static bool token_is(const tokens *t, size_t k, const char *word)
{
    return t->at[k].end - t->at[k].begin == strlen(word) &&
           !strncmp(t->text + t->at[k].begin, word, strlen(word));
}

/* Start of the object before token k: words, dots, brackets. */
static size_t object_from(const tokens *t, size_t k)
{
    int depth = 0;
    while (k) {
        size_t j = k - 1;
        char c = t->text[t->at[j].begin];
        if (t->at[j].kind == LEX_OP && (c == ']' || c == ')'))
            depth++;
        else if (t->at[j].kind == LEX_OP && (c == '[' || c == '(')) {
            if (!depth--)
                break;
        } else if (!depth) {
            bool dot = t->at[j].kind == LEX_OP && token_is(t, j, ".");
            bool after_dot = k < t->n && token_is(t, k, ".");
            bool word = t->at[j].kind == LEX_NAME ||
                        (t->at[j].kind == LEX_KEYWORD && j && token_is(t, j - 1, "."));
            bool bracket = k < t->n && strchr("[(", t->text[t->at[k].begin]);
            if (!dot && !(word && (after_dot || bracket || k == t->n)))
                break;
        }
        k = j;
    }
    return k;
}

/* the bracket ( that is open before token n, or n */
static size_t call_open(const tokens *t, size_t n, size_t *commas)
{
    int depth = 0;
    *commas = 0;
    for (size_t k = n; k-- > 0;) {
        char c = t->at[k].kind == LEX_OP ? t->text[t->at[k].begin] : 0;
        if (c == ')' || c == ']' || c == '}')
            depth++;
        else if (c == '(' || c == '[' || c == '{') {
            if (!depth)
                return c == '(' ? k : n;
            depth--;
        } else if (c == ',' && !depth)
            ++*commas;
    }
    return n;
}

/* the object that ends before token k, as text */
static const char *object_text(const tokens *t, size_t k, size_t *len)
{
    size_t from = k ? object_from(&(tokens){ t->text, t->at, k }, k) : 0;
    *len = k > from ? t->at[k - 1].end - t->at[from].begin : 0;
    return k > from ? t->text + t->at[from].begin : "";
}

/* names of the arguments of a law */
static void choice_arguments(choosing *c, const char *object, size_t n)
{
    const char *law = arena_strndup(c->s->tmp, object, n), *name;
    size_t len;
    for (size_t k = 0; (name = law_argument(law, k, &len)); k++)
        choice_add(c, CDL_IS_OPTION, arena_strndup(c->s->answer, name, len), NULL, NULL);
}

static void choices_find(session *s, choosing *c, size_t begin, size_t word)
{
    name_scope in;
    tokens t = tokens_of(s, begin, word);
    size_t n = t.n, len, commas;
    while (n && (t.at[n - 1].kind == LEX_NEWLINE || t.at[n - 1].kind == LEX_COMMENT ||
                 t.at[n - 1].kind == LEX_DOC))
        n--;
    scope_at(s, begin < word ? word : begin, &in);
    if (n && token_is(&t, n - 1, ".")) {
        const char *object = object_text(&t, n - 1, &len);
        scope_members(s, &in, object, len, choice_symbol, c);
        return;
    }
    cdl_symbol_kind kind;
    const char *statement = arena_strndup(s->tmp, text_read(s)->text + begin, word + c->len - begin), *name;
    for (size_t k = 0; (name = name_by_form(statement, k, &kind)); k++)
        choice_add(c, kind, name, NULL, NULL);
    if (kind != CDL_SYMBOL_KINDS)
        return;
    bool part = n >= 2 && token_is(&t, 0, "part") && token_is(&t, n - 1, ":");
    bool running = n && token_is(&t, 0, "run") && (n == 1 || (n == 3 && token_is(&t, 2, "=")));
    if (part || running) {
        scope_names(s, &in, choice_model, c);
        return;
    }
    size_t open = call_open(&t, n, &commas);
    if (open < n && open && (token_is(&t, 0, "run") || token_is(&t, 0, "part"))) {
        const char *object = object_text(&t, open, &len);
        const symbol *y = scope_find(s, &in, object, len);
        if (y && y->kind == CDL_IS_MODEL) {
            symbol of = *y;
            model_params(s, &of, choice_symbol, c);
        }
    }
    if (open < n && open && token_is(&t, 0, "constraint")) {
        const char *law = object_text(&t, open, &len);
        choice_arguments(c, law, len);
    }
    choice_keywords(c, n == 0, in.model != NULL);
    scope_names(s, &in, choice_symbol, c);
}

size_t cdl_choices(cdl *s, size_t byte, size_t *from, const cdl_choice **out)
{
    *out = NULL;
    *from = byte;
    ENTER_EDITOR(s, 0);
    const source *src = text_read(s);
    if (!src || !session_symbols(s) || byte > src->len || in_prose(s, byte))
        return 0;
    size_t word = byte;
    while (word && (isalnum((unsigned char)src->text[word - 1]) || src->text[word - 1] == '_' ||
                    (unsigned char)src->text[word - 1] >= 0x80))
        word--;
    *from = word;
    choosing c = { .s = s,
                   .prefix = arena_strndup(s->answer, src->text + word, byte - word),
                   .len = byte - word,
                   .seen.a = s->tmp };
    size_t begin = statement_begin_at(s, byte);
    choices_find(s, &c, begin < word ? begin : word, word);
    *out = c.list.at;
    return c.list.n;
}

/* ---- signatures ---- */

/* the arguments of a signature are what commas divide in its outermost brackets */
static void signature_divide(session *s, cdl_signature *out)
{
    vec(cdl_argument) list = { 0 };
    const char *p = out->label, *open = strchr(p, '(');
    int depth = 0;
    size_t begin = open ? (size_t)(open - p) + 1 : 0;
    for (size_t k = begin; open && p[k]; k++) {
        bool end = depth == 0 && (p[k] == ',' || p[k] == ')');
        depth += (p[k] == '(' || p[k] == '[') - (p[k] == ')' || p[k] == ']');
        if (!end)
            continue;
        while (begin < k && p[begin] == ' ')
            begin++;
        if (k > begin)
            *vec_push(s->answer, &list) = (cdl_argument){ begin, k };
        begin = k + 1;
        if (p[k] == ')')
            break;
    }
    out->argument = list.at;
    out->nargument = list.n;
}

typedef struct {
    session *s;
    text t;
    int n;
} listing;

static void list_param(void *ud, const symbol *y)
{
    listing *l = ud;
    char *item = span_text(l->s->d, y->decl->at, l->s->tmp);
    text_printf(&l->t, "%s%s", l->n++ ? ", " : "", item);
}

static const builtin *builtin_by_name(const char *name)
{
    const builtin *b = builtin_find(name);
    for (const builtin *const *list = session_builtins; *list && !b; list++)
        for (const builtin *k = *list; k->name && !b; k++)
            if (!strcmp(k->name, name))
                b = k;
    return b;
}

static const char *law_signature(session *s, const char *name, const char **doc)
{
    static const struct {
        const char *name, *args, *doc;
    } laws[] = {
#define X(id, word, role, args, meaning) { word, args, meaning },
#include "model/laws.def"
#undef X
    };
    for (size_t k = 0; k < sizeof laws / sizeof *laws; k++)
        if (!strcmp(laws[k].name, name)) {
            *doc = laws[k].doc;
            return arena_printf(s->answer, "%s(%s)", name, laws[k].args);
        }
    return NULL;
}

static const char *backend_signature(session *s, const char *name, const char **doc)
{
    const backend *b = backend_find(name);
    if (!b)
        return NULL;
    text t = { .a = s->answer };
    text_printf(&t, "%s(", b->name);
    for (int k = 0; k < b->noption; k++) {
        text_printf(&t, "%s%s", k ? ", " : "", b->option[k].name);
        if (isfinite(b->option[k].value) && !b->option[k].words)
            text_printf(&t, " = %g", b->option[k].value);
    }
    text_putc(&t, ')');
    *doc = b->doc;
    return t.at;
}

static bool signature_find(session *s, const name_scope *in, const char *object, size_t len, bool with,
                           cdl_signature *out)
{
    char *name = arena_strndup(s->answer, object, len);
    if (with && (out->label = backend_signature(s, name, &out->doc)))
        return true;
    const symbol *y = scope_find(s, in, object, len);
    if (y && y->kind == CDL_IS_FUNCTION) {
        text t = { .a = s->answer };
        text_printf(&t, "%s(", y->name);
        for (uint32_t k = 0; k < y->decl->kid[0]->n; k++)
            text_printf(&t, "%s%s", k ? ", " : "", y->decl->kid[0]->kid[k]->name);
        text_putc(&t, ')');
        out->label = t.at;
        out->doc = y->doc;
        return true;
    }
    if (y && y->kind == CDL_IS_MODEL) {
        symbol of = *y;
        listing l = { .s = s, .t.a = s->answer };
        text_printf(&l.t, "%s(", of.name);
        model_params(s, &of, list_param, &l);
        text_putc(&l.t, ')');
        out->label = l.t.at;
        out->doc = of.doc;
        return true;
    }
    if ((!y || y->kind == CDL_IS_LAW) && (out->label = law_signature(s, name, &out->doc)))
        return true;
    const builtin *b = !y || y->kind == CDL_IS_BUILTIN ? builtin_by_name(name) : NULL;
    if (!b)
        return false;
    out->label = b->signature ? b->signature
                              : arena_printf(s->answer, "%s(%s)", b->name, b->min == 1 ? "x" : "x, y");
    out->doc = b->doc;
    return true;
}

/* options and parameters are named: which one it is, is found by the name before the = */
static size_t argument_active(const tokens *t, size_t open, size_t commas, const cdl_signature *sig)
{
    size_t first = t->n;
    for (size_t k = t->n; k-- > open + 1;)
        if (token_is(t, k, "=") && t->at[k - 1].kind == LEX_NAME) {
            first = k - 1;
            break;
        } else if (token_is(t, k, ","))
            break;
    if (first == t->n)
        return commas;
    size_t len = t->at[first].end - t->at[first].begin;
    for (size_t k = 0; k < sig->nargument; k++) {
        const char *p = sig->label + sig->argument[k].begin;
        if (!strncmp(p, t->text + t->at[first].begin, len) && !isalnum((unsigned char)p[len]) &&
            p[len] != '_')
            return k;
    }
    return commas;
}

cdl_status cdl_signature_at(cdl *s, size_t byte, cdl_signature *out)
{
    *out = (cdl_signature){ 0 };
    ENTER_EDITOR(s, s->broken ? CDL_MEMORY : CDL_USAGE);
    const source *src = text_read(s);
    size_t commas, len;
    if (!src || !session_symbols(s) || byte > src->len || in_prose(s, byte))
        return CDL_USAGE;
    tokens t = tokens_of(s, statement_begin_at(s, byte), byte);
    size_t open = call_open(&t, t.n, &commas);
    if (open == t.n || !open)
        return CDL_USAGE;
    const char *object = object_text(&t, open, &len);
    name_scope in;
    scope_at(s, byte, &in);
    bool with = open >= 2 && token_is(&t, open - 2, "with");
    if (!len || !signature_find(s, &in, object, len, with, out))
        return CDL_USAGE;
    signature_divide(s, out);
    out->active = argument_active(&t, open, commas, out);
    return CDL_OK;
}

int cdl_is_name(cdl *s, const char *name, size_t len)
{
    ENTER_EDITOR(s, 0);
    lexeme *lex;
    return lex_all(s->tmp, name, len, &lex) == 1 && lex->kind == LEX_NAME && lex->end - lex->begin == len;
}
