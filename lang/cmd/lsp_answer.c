/* lsp_answer: the answers of the server: each request is a row of a table. All information about the
   language comes from the library; this file converts it to the terms of the protocol. */
#include <stdlib.h>
#include <string.h>
#include "lsp.h"

/* ---- kinds ---- */

static const char *const token_types[] = { "namespace", "class",    "function", "variable",
                                           "parameter", "property", "struct",   "enumMember",
                                           "type",      "event",    "keyword" };
enum {
    T_NAMESPACE,
    T_CLASS,
    T_FUNCTION,
    T_VARIABLE,
    T_PARAMETER,
    T_PROPERTY,
    T_STRUCT,
    T_MEMBER,
    T_TYPE,
    T_EVENT,
    T_KEYWORD
};
static const char *const token_modifiers[] = { "declaration", "readonly", "defaultLibrary" };
enum { MOD_DECLARATION = 1, MOD_READONLY = 2, MOD_LIBRARY = 4 };

/* SymbolKind, CompletionItemKind and token type of each kind */
static const struct {
    int symbol, completion, token, modifiers;
} kinds[CDL_SYMBOL_KINDS] = {
    [CDL_IS_MODULE] = { 2, 9, T_NAMESPACE, 0 },
    [CDL_IS_MODEL] = { 5, 7, T_CLASS, 0 },
    [CDL_IS_EXPERIMENT] = { 11, 7, T_CLASS, 0 },
    [CDL_IS_FUNCTION] = { 12, 3, T_FUNCTION, 0 },
    [CDL_IS_LET] = { 14, 21, T_VARIABLE, MOD_READONLY },
    [CDL_IS_PARAM] = { 7, 10, T_PARAMETER, MOD_READONLY },
    [CDL_IS_DOF] = { 13, 6, T_VARIABLE, 0 },
    [CDL_IS_PART] = { 19, 5, T_STRUCT, 0 },
    [CDL_IS_CONSTRAINT] = { 24, 5, T_EVENT, 0 },
    [CDL_IS_COORDINATE] = { 13, 6, T_VARIABLE, 0 },
    [CDL_IS_FIELD] = { 8, 5, T_VARIABLE, 0 },
    [CDL_IS_ROD] = { 19, 5, T_STRUCT, 0 },
    [CDL_IS_SHAPE] = { 19, 5, T_STRUCT, 0 },
    [CDL_IS_RUN] = { 24, 6, T_NAMESPACE, 0 },
    [CDL_IS_MEASURE] = { 13, 6, T_VARIABLE, 0 },
    [CDL_IS_SWEEP] = { 13, 6, T_VARIABLE, MOD_READONLY },
    [CDL_IS_INDEX] = { 13, 6, T_VARIABLE, MOD_READONLY },
    [CDL_IS_ARGUMENT] = { 13, 6, T_PARAMETER, 0 },
    [CDL_IS_RESULT] = { 7, 10, T_PROPERTY, MOD_LIBRARY },
    [CDL_IS_BUILTIN] = { 12, 3, T_FUNCTION, MOD_LIBRARY },
    [CDL_IS_CONSTANT] = { 14, 21, T_VARIABLE, MOD_LIBRARY | MOD_READONLY },
    [CDL_IS_LAW] = { 12, 3, T_FUNCTION, MOD_LIBRARY },
    [CDL_IS_BACKEND] = { 12, 3, T_FUNCTION, MOD_LIBRARY },
    [CDL_IS_OPTION] = { 7, 10, T_PROPERTY, MOD_LIBRARY },
    [CDL_IS_ATTRIBUTE] = { 7, 10, T_PROPERTY, MOD_LIBRARY },
    [CDL_IS_UNIT] = { 22, 11, T_TYPE, MOD_LIBRARY },
    [CDL_IS_KEYWORD] = { 14, 14, T_KEYWORD, 0 },
};

/* ---- JSON ---- */

static json_t *texts(const char *const *list, size_t n)
{
    json_t *a = json_array();
    for (size_t k = 0; k < n; k++)
        json_array_append_new(a, json_string(list[k]));
    return a;
}

static json_t *words(const char *spaced)
{
    json_t *a = json_array();
    for (const char *p = spaced; *p;) {
        size_t n = strcspn(p, " ");
        json_array_append_new(a, json_stringn(p, n));
        p += n + (p[n] == ' ');
    }
    return a;
}

static json_t *object(const char *key, json_t *value)
{
    json_t *o = json_object();
    json_object_set_new(o, key, value);
    return o;
}

json_t *capabilities(void)
{
    static const char *const plain[] = { "hoverProvider",          "definitionProvider",
                                         "referencesProvider",     "documentHighlightProvider",
                                         "documentSymbolProvider", "documentFormattingProvider",
                                         "inlayHintProvider" };
    json_t *c = object("positionEncoding", json_string("utf-16"));
    json_t *sync = object("openClose", json_true());
    json_t *legend = object("tokenTypes", texts(token_types, sizeof token_types / sizeof *token_types));
    json_t *tokens = object("full", json_true());
    json_object_set_new(sync, "change", json_integer(2));
    json_object_set_new(sync, "save", json_true());
    json_object_set_new(c, "textDocumentSync", sync);
    for (size_t k = 0; k < sizeof plain / sizeof *plain; k++)
        json_object_set_new(c, plain[k], json_true());
    json_object_set_new(c, "completionProvider", object("triggerCharacters", words(". [")));
    json_object_set_new(c, "signatureHelpProvider", object("triggerCharacters", words("( ,")));
    json_object_set_new(c, "renameProvider", object("prepareProvider", json_true()));
    json_object_set_new(c, "codeActionProvider", object("codeActionKinds", words("quickfix")));
    json_object_set_new(legend, "tokenModifiers",
                        texts(token_modifiers, sizeof token_modifiers / sizeof *token_modifiers));
    json_object_set_new(tokens, "legend", legend);
    json_object_set_new(c, "semanticTokensProvider", tokens);
    return c;
}

/* whether a place lies in the text of the document */
static bool is_here(const document *d, const cdl_span *at)
{
    return at->file && !strcmp(at->file, d->path ? d->path : "<untitled>");
}

static json_t *range_of(document *d, const cdl_span *at)
{
    return document_range(d, at->begin.byte, at->end.byte);
}

static json_t *position16(const cdl_position *p)
{
    json_t *o = object("line", json_integer(p->line ? (json_int_t)p->line - 1 : 0));
    json_object_set_new(o, "character", json_integer(p->column16 ? (json_int_t)p->column16 - 1 : 0));
    return o;
}

/* a place in this document or in another file */
static json_t *location(document *d, const cdl_span *at)
{
    json_t *o = json_object();
    if (is_here(d, at)) {
        json_object_set_new(o, "uri", text_json(d->uri));
        json_object_set_new(o, "range", range_of(d, at));
        return o;
    }
    char *uri = path_uri(at->file);
    json_t *r = object("start", position16(&at->begin));
    json_object_set_new(r, "end", position16(&at->end));
    json_object_set_new(o, "uri", json_string(uri ? uri : ""));
    json_object_set_new(o, "range", r);
    free(uri);
    return o;
}

/* ---- diagnostics ---- */

static char *joined(const char *a, const char *between, const char *b)
{
    char *s = malloc(strlen(a) + strlen(between) + strlen(b) + 1);
    if (s)
        strcat(strcat(strcpy(s, a), between), b);
    return s;
}

/* the message with its hints, and its place if that is in another file */
static json_t *diagnostic_message(document *d, const cdl_diagnostic *e)
{
    char *text = joined(e->message, "", "");
    for (size_t k = 0; text && k < e->nhint; k++) {
        char *more = joined(text, "\nhint: ", e->hint[k]);
        free(text);
        text = more;
    }
    if (text && e->at.file && !is_here(d, &e->at)) {
        char place[64];
        snprintf(place, sizeof place, ":%zu:%zu: ", e->at.begin.line, e->at.begin.column);
        char *more = joined(e->at.file, place, text);
        free(text);
        text = more;
    }
    json_t *s = text_json(text ? text : e->message);
    free(text);
    return s;
}

static json_t *diagnostic_json(document *d, const cdl_diagnostic *e)
{
    static const int severities[] = {
        [CDL_SEVERITY_ERROR] = 1, [CDL_SEVERITY_WARNING] = 2, [CDL_SEVERITY_NOTE] = 3
    };
    json_t *o = json_object(), *related = json_array();
    bool here = is_here(d, &e->at);
    json_object_set_new(o, "range", here ? range_of(d, &e->at) : document_range(d, 0, 0));
    json_object_set_new(o, "severity", json_integer(severities[e->severity]));
    json_object_set_new(o, "code", json_string(e->code));
    json_object_set_new(o, "source", json_string("cdl"));
    json_object_set_new(o, "message", diagnostic_message(d, e));
    if (!here && e->at.file) {
        json_t *r = object("location", location(d, &e->at));
        json_object_set_new(r, "message", text_json(e->message));
        json_array_append_new(related, r);
    }
    for (size_t k = 0; k < e->nsecond; k++) {
        if (!e->second[k].at.file)
            continue;
        json_t *r = object("location", location(d, &e->second[k].at));
        json_object_set_new(r, "message", text_json(e->second[k].message));
        json_array_append_new(related, r);
    }
    json_object_set_new(o, "relatedInformation", related);
    return o;
}

json_t *diagnostics_json(document *d, cdl *s)
{
    const cdl_diagnostic *e;
    size_t n = cdl_diagnostics(s, &e);
    json_t *list = json_array();
    for (size_t k = 0; k < n; k++) {
        json_t *o = object("diagnostic", diagnostic_json(d, &e[k]));
        if (e[k].replacement && is_here(d, &e[k].replace)) {
            json_t *edit = object("range", range_of(d, &e[k].replace));
            json_object_set_new(edit, "newText", text_json(e[k].replacement));
            json_object_set_new(o, "edit", edit);
        }
        json_array_append_new(list, o);
    }
    return list;
}

/* ---- parameters of a request ---- */

typedef struct {
    server *v;
    document *d;
    cdl *s; /* in which its text was checked */
    const json_t *params;
    size_t byte; /* of the position, where there is one */
} question;

/* ---- answers: NULL is null ---- */

static json_t *hover(question *q)
{
    cdl_span at;
    const char *text;
    if (cdl_describe(q->s, q->byte, &at, &text))
        return NULL;
    json_t *content = object("kind", json_string(q->v->markdown ? "markdown" : "plaintext"));
    json_object_set_new(content, "value", text_json(text));
    json_t *o = object("contents", content);
    json_object_set_new(o, "range", range_of(q->d, &at));
    return o;
}

static json_t *definition(question *q)
{
    cdl_span at;
    return cdl_declaration(q->s, q->byte, &at) ? NULL : location(q->d, &at);
}

/* what the use at the place of the question is called; freed by the caller */
static char *name_at(const document *d, const cdl_use *at)
{
    size_t n = at->at.end.byte - at->at.begin.byte;
    char *name = malloc(n + 1);
    if (name)
        memcpy(name, d->text + at->at.begin.byte, n);
    if (name)
        name[n] = 0;
    return name;
}

/* where the thing is declared among its uses, if that is in this text */
static const cdl_use *own_declaration(const cdl_use *use, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (use[k].declares && !use[k].library)
            return &use[k];
    return NULL;
}

/* the same thing in other texts, where this one declares it */
static json_t *others(question *q, const cdl_use *use, size_t n, const char *renamed_to, const char **wrong)
{
    const cdl_use *own = own_declaration(use, n);
    char *name = own ? name_at(q->d, own) : NULL;
    *wrong = NULL;
    if (!name)
        return json_object();
    json_t *found = uses_elsewhere(q->v, q->d, own->at.begin.byte, name, renamed_to, wrong);
    free(name);
    return found;
}

static json_t *references(question *q)
{
    const cdl_use *use;
    size_t n = cdl_references(q->s, q->byte, &use), k;
    const json_t *context = json_object_get(q->params, "context");
    bool all = json_is_true(json_object_get(context, "includeDeclaration"));
    json_t *list = json_array();
    for (k = 0; k < n; k++)
        if (all || !use[k].declares)
            json_array_append_new(list, location(q->d, &use[k].at));
    const char *unused, *uri;
    json_t *elsewhere = others(q, use, n, NULL, &unused), *ranges, *range;
    json_object_foreach(elsewhere, uri, ranges) json_array_foreach(ranges, k, range)
    {
        json_t *o = object("uri", json_string(uri));
        json_object_set(o, "range", range);
        json_array_append_new(list, o);
    }
    json_decref(elsewhere);
    return list;
}

static json_t *highlights(question *q)
{
    const cdl_use *use;
    size_t n = cdl_references(q->s, q->byte, &use);
    json_t *list = json_array();
    for (size_t k = 0; k < n; k++) {
        json_t *o = object("range", range_of(q->d, &use[k].at));
        json_object_set_new(o, "kind", json_integer(use[k].declares ? 3 : 2));
        json_array_append_new(list, o);
    }
    return list;
}

/* the use at the place itself, if its thing is declared in this text */
static const cdl_use *own_use(question *q, const cdl_use *use, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (!use[k].library && use[k].at.begin.byte <= q->byte && q->byte <= use[k].at.end.byte)
            return &use[k];
    return NULL;
}

static json_t *prepare_rename(question *q)
{
    const cdl_use *use;
    size_t n = cdl_references(q->s, q->byte, &use);
    const cdl_use *at = own_use(q, use, n);
    return at ? range_of(q->d, &at->at) : NULL;
}

static size_t error_count(cdl *s)
{
    const cdl_diagnostic *e;
    size_t n = cdl_diagnostics(s, &e), errors = 0;
    for (size_t k = 0; k < n; k++)
        errors += e[k].severity == CDL_SEVERITY_ERROR;
    return errors;
}

/* the text with each use under its new name; freed by the caller */
static char *renamed(const document *d, const cdl_use *use, size_t n, const char *name, size_t *len)
{
    size_t size = strlen(name), from = 0;
    char *text = malloc(d->len + n * size + 1);
    *len = 0;
    for (size_t k = 0; text && k <= n; k++) {
        size_t to = k < n ? use[k].at.begin.byte : d->len;
        memcpy(text + *len, d->text + from, to - from);
        *len += to - from;
        if (k == n)
            break;
        memcpy(text + *len, name, size);
        *len += size;
        from = use[k].at.end.byte;
    }
    return text;
}

/* A new name must not refer to something else already: the text must have the same errors and uses as before.
 */
static const char *rename_wrong(question *q, const cdl_use *use, size_t n, const cdl_use *at,
                                const char *name)
{
    size_t len, before = 0, k;
    const json_t *x;
    json_array_foreach(q->d->found, k, x)
    {
        const json_t *severity = json_object_get(json_object_get(x, "diagnostic"), "severity");
        before += json_integer_value(severity) == 1;
    }
    char *text = renamed(q->d, use, n, name, &len);
    size_t byte = at->at.begin.byte;
    for (k = 0; k < n && use[k].at.begin.byte < at->at.begin.byte; k++)
        byte = byte + strlen(name) - (use[k].at.end.byte - use[k].at.begin.byte);
    cdl *s = text ? text_session(q->v, q->d, text, len) : NULL;
    free(text);
    if (!s)
        return "there is not enough memory";
    const cdl_use *same;
    size_t errors = error_count(s), uses = cdl_references(s, byte, &same);
    cdl_free(s);
    return errors > before || uses != n ? "this name already means something else here" : NULL;
}

static json_t *rename_to(question *q)
{
    const char *name = json_string_value(json_object_get(q->params, "newName"));
    const cdl_use *kept;
    if (!name || !cdl_is_name(q->s, name, strlen(name))) {
        send_error(q->v, RPC_PARAMS, "this is not a valid name");
        return (json_t *)q;
    }
    size_t n = cdl_references(q->s, q->byte, &kept);
    const cdl_use *at = own_use(q, kept, n);
    const char *wrong = at ? rename_wrong(q, kept, n, at, name)
                           : "only what this text declares can be renamed";
    if (wrong) {
        send_error(q->v, RPC_FAILED, wrong);
        return (json_t *)q;
    }
    json_t *changes = others(q, kept, n, name, &wrong), *own = json_array(), *ranges;
    const char *uri;
    if (wrong) {
        json_decref(changes);
        send_error(q->v, RPC_FAILED, wrong);
        return (json_t *)q;
    }
    for (size_t k = 0; k < n; k++)
        json_array_append_new(own, range_of(q->d, &kept[k].at));
    json_object_set_new(changes, q->d->uri, own);
    json_object_foreach(changes, uri, ranges)
    {
        json_t *range, *edits = json_array();
        size_t k;
        json_array_foreach(ranges, k, range)
        {
            json_t *e = object("newText", text_json(name));
            json_object_set(e, "range", range);
            json_array_append_new(edits, e);
        }
        json_object_set_new(changes, uri, edits);
    }
    return object("changes", changes);
}

/* ---- outline ---- */

static json_t *symbol_json(question *q, const cdl_symbol *y)
{
    json_t *o = object("name", text_json(y->name && *y->name ? y->name : "?"));
    json_object_set_new(o, "kind", json_integer(kinds[y->kind].symbol));
    if (!q->v->hierarchical) {
        json_object_set_new(o, "location", location(q->d, &y->at));
        return o;
    }
    size_t begin = y->at.begin.byte, end = y->at.end.byte;
    size_t from = y->name_at.begin.byte, to = y->name_at.end.byte;
    if (from < begin)
        begin = from;
    if (to > end)
        end = to;
    json_object_set_new(o, "detail", text_json(cdl_symbol_text(y->kind)));
    json_object_set_new(o, "range", document_range(q->d, begin, end));
    json_object_set_new(o, "selectionRange", document_range(q->d, from, to));
    json_object_set_new(o, "children", json_array());
    return o;
}

static json_t *outline(question *q)
{
    const cdl_symbol *y;
    size_t n = cdl_symbols(q->s, &y);
    json_t *list = json_array(), **of = calloc(n + 1, sizeof *of);
    for (size_t k = 0; of && k < n; k++) {
        of[k] = symbol_json(q, &y[k]);
        json_t *in = list;
        if (q->v->hierarchical && y[k].parent >= 0)
            in = json_object_get(of[y[k].parent], "children");
        json_array_append_new(in, of[k]);
    }
    free(of);
    return list;
}

/* ---- formatting ---- */

static bool is_tail(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* one edit: from the first byte that differs to the last */
static json_t *edits_to(document *d, const char *out, size_t n)
{
    size_t begin = 0, same = 0;
    json_t *edits = json_array();
    if (n == d->len && !memcmp(out, d->text, n))
        return edits;
    while (begin < n && begin < d->len && out[begin] == d->text[begin])
        begin++;
    /* neither in a character nor between \r and \n: an editor has no such place */
    while (begin && ((begin < n && is_tail(out[begin])) || (begin < d->len && is_tail(d->text[begin])) ||
                     d->text[begin - 1] == '\r'))
        begin--;
    while (same < n - begin && same < d->len - begin && out[n - 1 - same] == d->text[d->len - 1 - same])
        same++;
    while (same && (is_tail(out[n - same]) || (d->len > same && d->text[d->len - same - 1] == '\r')))
        same--;
    json_t *e = object("range", document_range(d, begin, d->len - same));
    json_object_set_new(e, "newText", json_stringn(out + begin, n - same - begin));
    json_array_append_new(edits, e);
    return edits;
}

/* a text with syntax errors is left unchanged */
static json_t *formatting(question *q)
{
    cdl_status st;
    const char *out;
    size_t n;
    json_t *edits = NULL;
    cdl *s = session_open(q->v->o, &st);
    if (!s)
        return NULL;
    session_silent(s);
    if (cdl_fmt(s, "<format>", q->d->text, q->d->len, &out, &n) == CDL_OK)
        edits = edits_to(q->d, out, n);
    cdl_free(s);
    return edits;
}

/* ---- completion and signatures ---- */

static json_t *completion(question *q)
{
    const cdl_choice *c;
    size_t from, n = cdl_choices(q->s, q->byte, &from, &c);
    json_t *items = json_array();
    for (size_t k = 0; k < n; k++) {
        json_t *o = object("label", text_json(c[k].name)), *edit;
        edit = object("range", document_range(q->d, from, q->byte));
        json_object_set_new(edit, "newText", text_json(c[k].name));
        json_object_set_new(o, "kind", json_integer(kinds[c[k].kind].completion));
        json_object_set_new(o, "textEdit", edit);
        json_object_set_new(o, "detail", text_json(c[k].detail ? c[k].detail : cdl_symbol_text(c[k].kind)));
        if (c[k].doc)
            json_object_set_new(o, "documentation", text_json(c[k].doc));
        json_array_append_new(items, o);
    }
    json_t *o = object("isIncomplete", json_false());
    json_object_set_new(o, "items", items);
    return o;
}

/* UTF-16 units of the first n bytes */
static json_int_t units(const char *text, size_t n)
{
    json_int_t k = 0;
    for (size_t i = 0; i < n; i++)
        k += !is_tail(text[i]) + ((unsigned char)text[i] >= 0xF0);
    return k;
}

static json_t *parameter_label(const question *q, const cdl_signature *s, size_t k)
{
    const cdl_argument *a = &s->argument[k];
    if (!q->v->label_offsets)
        return json_stringn(s->label + a->begin, a->end - a->begin);
    json_t *pair = json_array();
    json_array_append_new(pair, json_integer(units(s->label, a->begin)));
    json_array_append_new(pair, json_integer(units(s->label, a->end)));
    return pair;
}

static json_t *signature(question *q)
{
    cdl_signature s;
    if (cdl_signature_at(q->s, q->byte, &s))
        return NULL;
    json_t *parameters = json_array(), *list = json_array(), *one = object("label", text_json(s.label));
    for (size_t k = 0; k < s.nargument; k++)
        json_array_append_new(parameters, object("label", parameter_label(q, &s, k)));
    json_object_set_new(one, "parameters", parameters);
    if (s.doc)
        json_object_set_new(one, "documentation", text_json(s.doc));
    json_array_append_new(list, one);
    json_t *o = object("signatures", list);
    json_object_set_new(o, "activeSignature", json_integer(0));
    json_object_set_new(o, "activeParameter", json_integer((json_int_t)s.active));
    return o;
}

/* ---- quick fixes ---- */

static void range_bytes(const document *d, const json_t *range, size_t *begin, size_t *end)
{
    *begin = document_place(d, json_object_get(range, "start"));
    *end = document_place(d, json_object_get(range, "end"));
}

static json_t *fixes(question *q)
{
    size_t k, from, to, begin, end;
    const json_t *x;
    json_t *list = json_array();
    range_bytes(q->d, json_object_get(q->params, "range"), &from, &to);
    json_array_foreach(q->d->found, k, x)
    {
        json_t *edit = json_object_get(x, "edit"), *about = json_object_get(x, "diagnostic");
        range_bytes(q->d, json_object_get(about, "range"), &begin, &end);
        if (!edit || begin > to || end < from)
            continue;
        char *title = joined("write ", "", json_string_value(json_object_get(edit, "newText")));
        json_t *o = object("title", text_json(title ? title : "mend it")), *edits = json_array();
        free(title);
        json_array_append(edits, edit);
        json_object_set_new(o, "kind", json_string("quickfix"));
        json_object_set_new(o, "isPreferred", json_true());
        json_t *diagnostics = json_array();
        json_array_append(diagnostics, about);
        json_object_set_new(o, "diagnostics", diagnostics);
        json_object_set_new(o, "edit", object("changes", object(q->d->uri, edits)));
        json_array_append_new(list, o);
    }
    return list;
}

/* ---- colours and units ---- */

static json_int_t member(const json_t *position, const char *key)
{
    return json_integer_value(json_object_get(position, key));
}

/* five numbers for each name: lines and units since the last one, its units, type and modifiers */
static json_t *semantic_tokens(question *q)
{
    const cdl_use *use;
    size_t n = cdl_uses(q->s, &use);
    json_t *data = json_array();
    json_int_t line = 0, unit = 0;
    size_t behind = 0;
    for (size_t k = 0; k < n; k++) {
        size_t begin = use[k].at.begin.byte, end = use[k].at.end.byte;
        if (begin < behind)
            continue; /* never twice the same */
        behind = end;
        json_t *p = document_position(q->d, begin);
        json_int_t l = member(p, "line"), u = member(p, "character");
        json_int_t five[] = { l - line, l == line ? u - unit : u, units(q->d->text + begin, end - begin),
                              kinds[use[k].kind].token,
                              kinds[use[k].kind].modifiers | (use[k].declares ? MOD_DECLARATION : 0) };
        for (int i = 0; i < 5; i++)
            json_array_append_new(data, json_integer(five[i]));
        line = l;
        unit = u;
        json_decref(p);
    }
    return object("data", data);
}

static json_t *inlays(question *q)
{
    const cdl_inlay *x;
    size_t n = cdl_inlays(q->s, &x), from, to;
    json_t *list = json_array();
    range_bytes(q->d, json_object_get(q->params, "range"), &from, &to);
    for (size_t k = 0; k < n; k++) {
        if (x[k].at.byte < from || x[k].at.byte > to)
            continue;
        json_t *o = object("position", document_position(q->d, x[k].at.byte));
        json_object_set_new(o, "label", text_json(x[k].text));
        json_object_set_new(o, "kind", json_integer(1));
        json_object_set_new(o, "paddingLeft", json_true());
        json_array_append_new(list, o);
    }
    return list;
}

/* ---- the table ---- */

/* answer: NULL for null; the question itself when an error was sent */
static const struct {
    const char *method;
    bool position;
    json_t *(*answer)(question *q);
} rows[] = {
    { "textDocument/hover", true, hover },
    { "textDocument/definition", true, definition },
    { "textDocument/references", true, references },
    { "textDocument/documentHighlight", true, highlights },
    { "textDocument/prepareRename", true, prepare_rename },
    { "textDocument/rename", true, rename_to },
    { "textDocument/documentSymbol", false, outline },
    { "textDocument/formatting", false, formatting },
    { "textDocument/completion", true, completion },
    { "textDocument/signatureHelp", true, signature },
    { "textDocument/codeAction", false, fixes },
    { "textDocument/semanticTokens/full", false, semantic_tokens },
    { "textDocument/inlayHint", false, inlays },
};

bool answer_request(server *v, const char *method, const json_t *params)
{
    size_t k = 0;
    while (k < sizeof rows / sizeof *rows && strcmp(rows[k].method, method))
        k++;
    if (k == sizeof rows / sizeof *rows)
        return false;
    const char *uri = json_string_value(json_object_get(json_object_get(params, "textDocument"), "uri"));
    question q = { .v = v, .d = uri ? document_find(v, uri) : NULL, .params = params };
    const json_t *position = json_object_get(params, "position");
    if (!q.d)
        send_error(v, RPC_PARAMS, "no such document is open");
    else if (rows[k].position && !json_is_object(position))
        send_error(v, RPC_PARAMS, "the request has no position");
    else if (!(q.s = document_session(v, q.d)))
        send_error(v, RPC_INTERNAL, "there is not enough memory");
    else {
        q.byte = rows[k].position ? document_place(q.d, position) : 0;
        json_t *answer = rows[k].answer(&q);
        if (answer != (json_t *)&q)
            send_result(v, answer);
    }
    return true;
}
