/* session_help: functions for the interactive session: help, types of values, completion by context, small
 * pictures of results. */
#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>
#include "syntax/parse.h"
#include "session.h"

/* ---- help ---- */

/* keywords, and laws by what they are for */
typedef struct {
    const char *name, *form, *what, *key;
} word;
static const word words[] = {
#define X(id, word, where, example, meaning) { word, example, meaning, NULL },
#include "syntax/keywords.def"
#undef X
#define X(id, name, role, args, meaning) { name, name "(" args ")", meaning, #role },
#include "model/laws.def"
#undef X
};
enum { WORDS = sizeof words / sizeof *words };

/* The key of a constraint for a role. */
static bool law_of(const word *w, const char *key)
{
    return w->key && !strcasecmp(w->key, key);
}

static bool help_words(text *t, const char *name)
{
    for (int k = 0; k < WORDS; k++) {
        if (strcmp(words[k].name, name))
            continue;
        text_printf(t, "%s%s\n    %s\n", words[k].key ? "law: " : "", words[k].what, words[k].form);
        return true;
    }
    return false;
}

static bool help_unit(text *t, const char *name)
{
    double factor;
    dim d;
    if (!unit_find(name, &factor, &d))
        return false;
    text_printf(t, "unit %s: ", name);
    text_num(t, factor);
    text_putc(t, ' ');
    dim_text(t, d);
    text_putc(t, '\n');
    return true;
}

static const char *const key_docs[] = {
#define X(id, name, doc) doc,
#include "model/attributes.def"
#undef X
};

static const char *law_nth(const char *key, const char *prefix, size_t k);

static bool is_among(const char *const *list, const char *name)
{
    while (list && *list && strcmp(*list, name))
        list++;
    return list && *list;
}

static bool help_space(text *t, const char *name)
{
    if (!is_among(dof_spaces, name))
        return false;
    if (*name == 'S')
        text_puts(
            t, "rotations in space, matrices of 3 x 3; A' is the angular velocity in the frame of the body\n"
               "    dof A in SO3 = rot_x(0.3), A' = [0, 5, 0.1]\n");
    else
        text_printf(t, "vectors of %s numbers, for degrees of freedom\n    dof p in %s\n", name + 1, name);
    return true;
}

/* Text of the brackets after a law, "static = a", and words that attributes accept. */
static bool help_argument(text *t, const char *name)
{
    bool found = false;
    for (int k = 0; k < WORDS; k++) {
        const char *at = words[k].key ? strstr(words[k].form, name) : NULL;
        if (!at || strncmp(at + strlen(name), " = ", 3) || isalpha((unsigned char)at[-1]))
            continue;
        text_printf(t, "argument of the law %s: %s\n    %s\n", words[k].name, words[k].form, words[k].what);
        found = true;
    }
    for (int k = 0; contact_keys[k]; k++)
        if (is_among(contact_words[k], name) && !law_nth("friction", name, 0)) {
            text_printf(t, "%s = %s: %s\n", contact_keys[k], name, key_docs[k]);
            found = true;
        }
    return found;
}

/* attributes of constraints: which laws they take, or what they are */
static bool help_key(text *t, const char *name)
{
    for (int k = 0; contact_keys[k]; k++) {
        if (strcmp(contact_keys[k], name))
            continue;
        text_printf(t, "attribute of a constraint: %s = ", name);
        int n = 0;
        for (int i = 0; i < WORDS; i++)
            if (law_of(&words[i], name))
                text_printf(t, "%s%s", n++ ? " | " : "", words[i].form);
        text_printf(t, "%s\n", n ? "" : key_docs[k]);
        return true;
    }
    return false;
}

static bool help_builtin(text *t, const builtin *list, const char *name)
{
    for (const builtin *b = list; b->name; b++) {
        if (strcmp(b->name, name))
            continue;
        text_printf(t, "%s\n    %s\n", b->doc ? b->doc : "a function", b->signature ? b->signature : b->name);
        return true;
    }
    return false;
}

static bool help_backend(text *t, const char *name)
{
    const backend *b = backend_find(name);
    if (!b)
        return false;
    text_printf(t, "backend %s: %s%s\n", b->name, b->doc ? b->doc : "", b->built ? "" : " (not built)");
    for (int k = 0; k < b->noption; k++) {
        text_printf(t, "    %-12s %s", b->option[k].name, b->option[k].doc ? b->option[k].doc : "");
        if (b->option[k].words)
            text_printf(t, ", one of %s", b->option[k].words);
        else if (isfinite(b->option[k].value))
            text_printf(t, "; default %g", b->option[k].value);
        text_putc(t, '\n');
    }
    return true;
}

/* options of backends, by the backends that have them; options of the session; attributes of save and plot */
static bool help_option(text *t, const char *name)
{
    bool found = false;
    for (size_t i = 0; backend_list[i]; i++)
        for (int k = 0; k < backend_list[i]->noption; k++) {
            const backend_option *o = &backend_list[i]->option[k];
            if (strcmp(o->name, name))
                continue;
            text_printf(t, "option of %s: %s\n", backend_list[i]->name, o->doc ? o->doc : "");
            found = true;
        }
#define CDL_OPTION_ROW(id, key, value, doc)                                         \
    if (!strcmp(name, key)) {                                                       \
        text_printf(t, "option of the session: %s\n    :set %s VALUE\n", doc, key); \
        found = true;                                                               \
    }
    CDL_OPTION_LIST(CDL_OPTION_ROW)
#undef CDL_OPTION_ROW
    for (size_t k = 0; output_key(k, false); k++) {
        bool save = !strcmp(output_key(k, false), name), plot = !strcmp(output_key(k, true), name);
        if (!save && !plot)
            continue;
        text_printf(t, "attribute of %s: %s = %s\n",
                    save && plot ? "save and plot"
                    : save       ? "save"
                                 : "plot",
                    name, output_what(k));
        found = true;
    }
    return found;
}

static bool help_code(text *t, const char *name)
{
    int k = diag_code_find(name);
    if (k >= 0)
        text_printf(t, "error '%s': %s\n", name, diag_code_help((diag_code)k));
    return k >= 0;
}

static bool help_defined(session *s, text *t, const char *name)
{
    static const char *const kinds[] = { "model", "function", "let", "parameter", "module", "run" };
    const def *d = module_find(s->main, sym_str(s->names, name));
    if (!d)
        return false;
    text_printf(t, "%s %s", kinds[d->kind], name);
    if (d->at && d->at->at.file) {
        size_t line;
        span_place(s->d, d->at->at, &line, NULL, NULL, NULL);
        text_printf(t, ", defined in %s, line %zu", s->d->sources.at[d->at->at.file]->name, line);
    }
    text_putc(t, '\n');
    if (d->at && d->at->doc)
        text_printf(t, "    %s\n", d->at->doc);
    return true;
}

static bool help_member(session *s, text *t, const char *name)
{
    const mclass *c = s->last ? s->last->of->m->classes.at[0] : NULL;
    for (size_t k = 0; c && k < s->last->of->p->nparam_info; k++) {
        const param_info *p = &s->last->of->p->param[k];
        if (strcmp(p->name, name))
            continue;
        text_printf(t, "parameter %s of %s in %g..%g\n", name, c->name, p->lo, p->hi);
        if (p->doc)
            text_printf(t, "    %s\n", p->doc);
        return true;
    }
    for (size_t k = 0; c && k < s->last->of->p->dofs.n; k++) {
        const dof_info *p = &s->last->of->p->dofs.at[k];
        if (strcmp(p->name, name))
            continue;
        text_printf(t, "degree of freedom %s of %s\n", name, c->name);
        if (p->doc)
            text_printf(t, "    %s\n", p->doc);
        return true;
    }
    return false;
}

bool help_text(session *s, text *t, const char *name)
{
    bool found = help_defined(s, t, name);
    found = help_member(s, t, name) || found;
    found = help_words(t, name) || found;
    found = help_key(t, name) || found;
    found = help_space(t, name) || found;
    found = help_argument(t, name) || found;
    found = help_builtin(t, result_builtins, name) || help_builtin(t, output_builtins, name) ||
            help_builtin(t, builtin_list, name) || found;
    for (int k = 0; k < OP_COUNT && !found; k++)
        if (op_builtin[k].name && !strcmp(op_builtin[k].name, name)) {
            text_printf(t, "%s\n    %s\n", op_builtin[k].doc ? op_builtin[k].doc : "a function",
                        op_builtin[k].signature ? op_builtin[k].signature : name);
            found = true;
        }
    found = help_backend(t, name) || found;
    found = help_option(t, name) || found;
    found = result_help(t, name) || found;
    found = help_code(t, name) || found;
    return found || help_unit(t, name);
}

cdl_status cdl_help(cdl *s, const char *name)
{
    ENTER(s);
    text t = { .a = s->tmp };
    bool found = help_text(s, &t, name);
    found = topic_help(s, &t, name) || found;
    session_out(s, &t);
    return found ? CDL_OK : CDL_USAGE;
}

cdl_status cdl_type(cdl *s, const char *expression)
{
    ENTER(s);
    const ast *e = read_expression(s, "<expression>", expression);
    value v = e ? session_eval(s, e) : v_error();
    text t = { .a = s->tmp };
    if (v.kind != V_ERROR) {
        dim u = v.kind == V_NUM ? v.num.unit : v.kind == V_SERIES ? v.series.unit : dim_any();
        if (!view_show(&t, &v))
            text_puts(&t, v_kind_text(s->tmp, &v));
        if (!u.any) {
            text_puts(&t, " in [");
            dim_text(&t, u);
            text_putc(&t, ']');
        }
        text_putc(&t, '\n');
        session_out(s, &t);
    }
    session_flush(s);
    return s->tally.worst;
}

/* ---- completion by context ---- */

static const char *nth(const char *const *list, const char *prefix, size_t k)
{
    for (; *list; list++)
        if (!strncmp(*list, prefix, strlen(prefix)) && k-- == 0)
            return *list;
    return NULL;
}

/* names of a list that is shown one by one */
static const char *unit_nth(const char *prefix, size_t k)
{
    const char *name;
    for (size_t i = 0; (name = unit_name(i)); i++)
        if (!strncmp(name, prefix, strlen(prefix)) && k-- == 0)
            return name;
    return NULL;
}

static const char *law_nth(const char *key, const char *prefix, size_t k)
{
    for (int i = 0; i < WORDS; i++)
        if (law_of(&words[i], key) && !strncmp(words[i].name, prefix, strlen(prefix)) && k-- == 0)
            return words[i].name;
    return NULL;
}

static const char *output_nth(bool plot, const char *prefix, size_t k)
{
    const char *name;
    for (size_t i = 0; (name = output_key(i, plot)); i++)
        if (*name && !strncmp(name, prefix, strlen(prefix)) && k-- == 0)
            return name;
    return NULL;
}

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || (unsigned char)c >= 128;
}

/* the word before p, skipping blanks; its length */
static size_t word_before(const char *line, size_t p, const char **at)
{
    while (p && (line[p - 1] == ' ' || line[p - 1] == '\t'))
        p--;
    size_t end = p;
    while (p && in_word(line[p - 1]))
        p--;
    *at = line + p;
    return end - p;
}

/* the bracket that is open at the end, or n */
static size_t open_bracket(const char *line, size_t n)
{
    int depth = 0;
    for (size_t k = n; k-- > 0;) {
        if (strchr(")]}", line[k]))
            depth++;
        if (strchr("([{", line[k]) && depth-- == 0)
            return k;
    }
    return n;
}

/* where the object begins that a dot follows: words and subscripts */
static size_t object_begin(const char *line, size_t p)
{
    while (p) {
        if (line[p - 1] == ']') {
            int depth = 0;
            do
                depth += (line[p - 1] == ']') - (line[p - 1] == '[');
            while (--p && depth);
        } else if (in_word(line[p - 1]))
            p--;
        else
            break;
    }
    return p;
}

static const char *option_nth(const backend *b, const char *prefix, size_t k)
{
    for (int i = 0; i < b->noption; i++)
        if (!strncmp(b->option[i].name, prefix, strlen(prefix)) && k-- == 0)
            return b->option[i].name;
    return NULL;
}

static const char *backend_nth(const char *prefix, size_t k)
{
    for (size_t i = 0; backend_list[i]; i++)
        if (!strncmp(backend_list[i]->name, prefix, strlen(prefix)) && k-- == 0)
            return backend_list[i]->name;
    return NULL;
}

static bool begins(const char *line, const char *with)
{
    line += strspn(line, " \t");
    size_t n = strlen(with);
    return !strncmp(line, with, n) && !in_word(line[n]);
}

/* the word before p as a string; "" when it is too long to be a name of ours */
static const char *name_before(const char *line, size_t p, char name[64])
{
    const char *w;
    size_t len = word_before(line, p, &w);
    memset(name, 0, 64);
    if (len < 64)
        memcpy(name, w, len);
    return name;
}

static size_t word_begin(const char *line)
{
    size_t begin = strlen(line);
    while (begin && in_word(line[begin - 1]))
        begin--;
    return begin;
}

/* in the braces of save, plot and constraint */
static const char *name_in_block(const char *line, size_t begin, size_t k, cdl_symbol_kind *of)
{
    const char *prefix = line + begin, *last = prefix;
    char name[64];
    while (last > line && strchr(" \t\n\r", last[-1]))
        last--;
    bool key = last > line && strchr("{,", last[-1]);
    bool line_begins = last < prefix && memchr(last, '\n', (size_t)(prefix - last));
    bool constraint = strstr(line, "constraint") != NULL;
    *of = CDL_IS_ATTRIBUTE;
    if ((begins(line, "save") || begins(line, "plot")) && (key || line_begins))
        return output_nth(begins(line, "plot"), prefix, k);
    if (constraint && (key || line_begins))
        return nth(contact_keys, prefix, k);
    if (constraint && last > line && last[-1] == '=') {
        name_before(line, (size_t)(last - line) - 1, name);
        *of = CDL_IS_LAW;
        if (law_nth(name, "", 0))
            return law_nth(name, prefix, k);
        for (int i = 0; contact_keys[i]; i++)
            if (!strcmp(contact_keys[i], name) && contact_words[i])
                return nth(contact_words[i], prefix, k);
    }
    *of = CDL_SYMBOL_KINDS;
    return NULL;
}

static const char *set_nth(const char *prefix, size_t k)
{
    const char *name;
    for (size_t i = 0; (name = shape_set_name(i)); i++)
        if (!strncmp(name, prefix, strlen(prefix)) && k-- == 0)
            return name;
    return NULL;
}

/* behind `dof p in` and `shape hull:` */
static const char *name_in_declaration(const char *line, size_t begin, size_t k, cdl_symbol_kind *of)
{
    size_t last = begin;
    char name[64];
    while (last && strchr(" \t", line[last - 1]))
        last--;
    *of = CDL_IS_BUILTIN;
    if (begins(line, "shape") && last && line[last - 1] == ':')
        return set_nth(line + begin, k);
    *of = CDL_IS_KEYWORD;
    if (begins(line, "dof") && begin > last && !strcmp(name_before(line, begin, name), "in"))
        return nth(dof_spaces, line + begin, k);
    *of = CDL_SYMBOL_KINDS;
    return NULL;
}

const char *name_by_form(const char *line, size_t k, cdl_symbol_kind *of)
{
    size_t begin = word_begin(line), open = open_bracket(line, begin);
    const char *prefix = line + begin, *w;
    char name[64];
    *of = CDL_IS_BACKEND;
    if (!strcmp(name_before(line, begin, name), "with"))
        return backend_nth(prefix, k);
    *of = CDL_IS_OPTION;
    if (open < begin && line[open] == '(') {
        const backend *b = backend_find(name_before(line, open, name));
        size_t len = b ? word_before(line, begin, &w) : 0;
        bool behind_set = b && !len && w > line && w[-1] == '=';
        if (b && strstr(line, "with") && !behind_set)
            return option_nth(b, prefix, k);
    }
    *of = CDL_IS_UNIT;
    if (open < begin && line[open] == '[' && word_before(line, open, &w) &&
        (isdigit((unsigned char)*w) || *w == '.'))
        return unit_nth(prefix, k);
    if (open < begin && line[open] == '{')
        return name_in_block(line, begin, k, of);
    if (open == begin)
        return name_in_declaration(line, begin, k, of);
    *of = CDL_SYMBOL_KINDS;
    return NULL;
}

/* names of the arguments of a law, those before " = " */
const char *law_argument(const char *law, size_t k, size_t *len)
{
    for (int i = 0; i < WORDS; i++)
        for (const char *p = words[i].key && !strcmp(words[i].name, law) ? words[i].form : ""; *p; p++) {
            *len = strspn(p, "abcdefghijklmnopqrstuvwxyz");
            if (*len && !strncmp(p + *len, " = ", 3) && k-- == 0)
                return p;
            p += *len ? *len - 1 : 0;
        }
    return NULL;
}

const char *cdl_name_at(cdl *s, const char *line, size_t k)
{
    cdl_symbol_kind of;
    size_t begin = word_begin(line);
    const char *prefix = line + begin, *found = name_by_form(line, k, &of);
    if (of != CDL_SYMBOL_KINDS)
        return found;
    size_t from = *prefix == '.' ? object_begin(line, begin) : begin;
    if (from == begin)
        return cdl_name(s, prefix, k);
    const char *whole = cdl_name(s, line + from, k); /* parts[1].p: from the dot on */
    return whole ? whole + (begin - from) : NULL;
}

/* ---- small pictures of results ---- */

static bool member_numbers(session *s, const value *v, const char *name, value *out)
{
    scope *in = v->object.in;
    return in && in->find && in->find(in, &s->ev, sym_str(s->names, name), SPAN_NONE, out) == LOOK_YES &&
           out->kind == V_NUM && out->num.rank == 1;
}

void impacts_show(session *s, text *t, const value *v)
{
    static const char *const names[] = { "t", "pre", "post", "impulse" };
    value col[4];
    enum { ROWS = 20 };
    size_t errors = s->d->errors;
    if (v->kind != V_OBJECT)
        return;
    for (int k = 3; k >= 0; k--)
        if (!member_numbers(s, v, names[k], &col[k])) {
            if (s->d->errors != errors)
                diag_forget(s->d, errors, 0);
            return;
        }
    int32_t n = v_count(&col[0]);
    for (int k = 0; k < 4; k++)
        text_printf(t, "%14s", names[k]);
    text_putc(t, '\n');
    for (int32_t i = 0; i < n && i < ROWS; i++) {
        for (int k = 0; k < 4; k++)
            text_printf(t, "%14.7g", col[k].num.d[i]);
        text_putc(t, '\n');
    }
    if (n > ROWS)
        text_printf(t, "    and %d more\n", (int)(n - ROWS));
}
