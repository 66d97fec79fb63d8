/* session_backend: `with b(options)`: the backend that is named, its options, and whether it can run the
 * model. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "session.h"

/* ---- options ---- */

static const backend *backend_read(session *s, const ast *with)
{
    const ast *name = with->kind == AST_CALL ? with->kid[0] : with;
    if (name->kind != AST_NAME) {
        diag_error(s->d, DIAG_UNKNOWN_BACKEND, name->at, "'with' must be followed by the name of a backend");
        return NULL;
    }
    const backend *b = backend_find(name->name);
    if (b)
        return b;
    near n = near_to(name->name);
    text all = { .a = s->tmp };
    for (size_t k = 0; backend_list[k]; k++) {
        near_try(&n, backend_list[k]->name);
        text_printf(&all, "%s%s", k ? ", " : "", backend_list[k]->name);
    }
    diag *e = diag_error(s->d, DIAG_UNKNOWN_BACKEND, name->at, "unknown backend '%s'", name->name);
    if (near_best(&n))
        diag_near(s->d, e, &n);
    else
        diag_hint(s->d, e, "there are %s", all.at);
    return NULL;
}

static int option_find(session *s, const backend *b, const ast *arg)
{
    for (int k = 0; k < b->noption; k++) {
        if (arg->kind == AST_ARG && !strcmp(b->option[k].name, arg->name))
            return k;
        if (arg->kind == AST_NAME && b->option[k].type == OPT_NAME)
            return k;
    }
    if (arg->kind != AST_ARG) {
        diag *e = diag_error(s->d, DIAG_UNKNOWN_OPTION, arg->at, "options of '%s' are named", b->name);
        if (b->noption)
            diag_hint(s->d, e, "such as %s(%s = ...)", b->name, b->option[0].name);
        return -1;
    }
    near n = near_to(arg->name);
    text all = { .a = s->tmp };
    text_puts(&all, "");
    for (int k = 0; k < b->noption; k++) {
        near_try(&n, b->option[k].name);
        text_printf(&all, "%s%s", k ? ", " : "", b->option[k].name);
    }
    diag *e = diag_error(s->d, DIAG_UNKNOWN_OPTION, arg->name_at.file ? arg->name_at : arg->at,
                         "'%s' has no option '%s'", b->name, arg->name);
    static const char *const steps[] = { "dt",       "step",     "timestep", "time_step",
                                         "stepsize", "max_step", "delta" };
    bool step = false;
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++)
        step |= !strcmp(arg->name, steps[k]);
    for (int k = 0; step && k < b->noption; k++)
        if (!strcmp(b->option[k].name, "h")) {
            diag_hint(s->d, e, "the step is h: %s(h = 1e-3)", b->name);
            return -1;
        }
    if (near_best(&n))
        diag_near(s->d, e, &n);
    else if (b->noption)
        diag_hint(s->d, e, "its options are %s", all.at);
    return -1;
}

static bool word_among(const char *words, const char *w)
{
    size_t n = strlen(w);
    for (const char *p = words; p && *p; p = strchr(p, '|'), p = p ? p + 1 : NULL)
        if (!strncmp(p, w, n) && (p[n] == '|' || !p[n]))
            return true;
    return false;
}

static bool option_word(session *s, const backend_option *o, const ast *e, const char **word)
{
    if (e->kind != AST_NAME) {
        diag_error(s->d, DIAG_OPTION_VALUE, e->at, "option '%s' takes a word", o->name);
        return false;
    }
    if (o->type == OPT_WORD && o->words && !word_among(o->words, e->name)) {
        diag *d = diag_error(s->d, DIAG_OPTION_VALUE, e->at, "option '%s' does not take '%s'", o->name,
                             e->name);
        diag_hint(s->d, d, "it is one of %s", o->words);
        return false;
    }
    *word = e->name;
    return true;
}

static bool option_number(session *s, const backend_option *o, const ast *e, double *x)
{
    value v = eval(&s->ev, session_input_scope(s), e);
    if (v.kind == V_ERROR)
        return false;
    bool fits = o->type == OPT_BOOL ? v.kind == V_BOOL : v.kind == V_NUM;
    if (!fits || !v_scalar(&v, x)) {
        diag_error(s->d, DIAG_OPTION_VALUE, e->at, "option '%s' takes %s, not %s", o->name,
                   o->type == OPT_BOOL ? "true or false" : "a number", v_kind_text(s->tmp, &v));
        return false;
    }
    if (o->type == OPT_BOOL)
        return true;
    bool whole = o->type != OPT_INT || *x == floor(*x);
    if (whole && *x >= o->lo && *x <= o->hi)
        return true;
    diag *d = diag_error(s->d, DIAG_OPTION_VALUE, e->at, "option '%s' cannot be %s", o->name,
                         num_text(s->tmp, *x));
    diag_hint(s->d, d, "it is %s from %s to %s: %s", o->type == OPT_INT ? "a whole number" : "a number",
              num_text(s->tmp, o->lo), num_text(s->tmp, o->hi), o->doc);
    return false;
}

static bool option_read(session *s, const backend *b, const ast *arg, run_options *o, bool dry)
{
    int k = option_find(s, b, arg);
    if (k < 0)
        return false;
    const backend_option *row = &b->option[k];
    const ast *e = arg->kind == AST_ARG ? arg->kid[0] : arg;
    if (o->set[k]) {
        diag_error(s->d, DIAG_DUPLICATE, arg->at, "option '%s' is given twice", row->name);
        return false;
    }
    o->set[k] = true;
    if (row->type == OPT_WORD || row->type == OPT_NAME)
        return option_word(s, row, e, &o->word[k]);
    return (dry && !is_literal(e)) || option_number(s, row, e, &o->value[k]);
}

bool run_options_read(session *s, const ast *with, const backend **b, run_options *o)
{
    run_options dry = { 0 }, *to = o ? o : &dry;
    bool good = true;
    if (!(*b = backend_read(s, with)))
        return false;
    for (int k = 0; k < (*b)->noption; k++)
        to->value[k] = (*b)->option[k].value;
    for (uint32_t k = 1; with->kind == AST_CALL && k < with->n; k++)
        good = option_read(s, *b, with->kid[k], to, !o) && good;
    for (int k = 0; k < (*b)->noption; k++)
        if (!strcmp((*b)->option[k].name, "every") && to->set[k])
            to->every = to->value[k];
    return good;
}

/* ---- who can run it ---- */

static void complain(session *s, bool as_error, span at, const char *message, span at2, const char *why,
                     const char *hint)
{
    diag *e = as_error ? diag_error(s->d, DIAG_NOT_SUPPORTED, at, "%s", message)
                       : diag_warn(s->d, DIAG_NOT_SUPPORTED, at, "%s", message);
    if (why && at2.file)
        diag_second(s->d, e, at2, "%s", why);
    if (hint)
        diag_hint(s->d, e, "%s", hint);
}

/* what else could run it, as a hint; NULL when nothing can */
static const char *other_backend(session *s, const program *p)
{
    const backend *b = backend_choose(p);
    return b ? arena_printf(s->tmp, "this model can run with %s()", b->name) : NULL;
}

/* no backend was named: the message is that of the first one that is built */
static void none_can(session *s, const ast *e, const built *of, bool as_error)
{
    for (size_t k = 0; backend_list[k]; k++) {
        span at = SPAN_NONE;
        const char *why = backend_list[k]->built && backend_list[k]->refuse
                              ? backend_list[k]->refuse(of->p, &at)
                              : NULL;
        if (!why)
            continue;
        complain(
            s, as_error, e->at,
            arena_printf(s->tmp, "no backend of this version can run model '%s': %s", of->decl->name, why),
            at, arena_printf(s->tmp, "%s cannot run this", backend_list[k]->name), NULL);
        return;
    }
    complain(s, as_error, e->at,
             arena_printf(s->tmp, "no backend of this version can run model '%s'", of->decl->name), SPAN_NONE,
             NULL, NULL);
}

/* An option that this kind of problem does not use is an error: otherwise it would be ignored silently. */
static void check_options_used(session *s, const ast *with, const program *p, const backend *b, bool as_error)
{
    unsigned kind = program_kind(p);
    for (uint32_t k = 1; with->kind == AST_CALL && k < with->n; k++) {
        const ast *arg = with->kid[k];
        for (int i = 0; arg->kind == AST_ARG && i < b->noption; i++) {
            const backend_option *o = &b->option[i];
            if (strcmp(o->name, arg->name) != 0 || (o->kinds & kind))
                continue;
            text of = { .a = s->tmp };
            for (int j = 0; problem_kind_name[j]; j++)
                if (o->kinds >> j & 1)
                    text_printf(&of, "%s%s", of.n ? ", " : "", problem_kind_name[j]);
            complain(s, as_error, arg->name_at.file ? arg->name_at : arg->at,
                     arena_printf(s->tmp, "option '%s' of %s does nothing in this run: it is for %s", o->name,
                                  b->name, of.at),
                     SPAN_NONE, NULL, NULL);
        }
    }
}

void run_check_backend(session *s, const ast *e, const built *of, const backend *b, bool as_error)
{
    const ast *with = e->kid[3];
    span at = SPAN_NONE;
    if (!b && !backend_choose(of->p))
        none_can(s, e, of, as_error);
    if (!b)
        return;
    if (!b->built) {
        complain(s, as_error, with->at, arena_printf(s->tmp, "backend '%s' is not built yet", b->name),
                 SPAN_NONE, NULL, other_backend(s, of->p));
        return;
    }
    const char *why = b->refuse ? b->refuse(of->p, &at) : NULL;
    if (why)
        complain(s, as_error, with->at,
                 arena_printf(s->tmp, "backend '%s' cannot run this model: %s", b->name, why), at,
                 "needed here", other_backend(s, of->p));
    else
        check_options_used(s, with, of->p, b, as_error);
}
