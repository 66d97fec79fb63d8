/* session_steady: definitions at top level that depend on no results are computed when the text is checked,
   so that their errors are reported before anything runs. */
#include <string.h>
#include "session.h"

/* of each definition found: steady, not steady, or being checked */
enum { UNKNOWN, STEADY, MOVES };
typedef struct {
    session *s;
    const mclass *results;
    map64 known;
    vec(sym) local;
    int depth;
} steady;

static bool is_steady(steady *w, const ast *e);

static bool is_local(const steady *w, sym name)
{
    for (size_t k = 0; k < w->local.n; k++)
        if (w->local.at[k] == name)
            return true;
    return false;
}

/* a circle is left to the evaluation, which reports it */
static bool def_is_steady(steady *w, const def *d)
{
    session *s = w->s;
    if (d->kind == DEF_RUN || d->in != s->main)
        return d->kind != DEF_RUN;
    if (d->kind == DEF_MODEL || d->kind == DEF_MODULE)
        return true;
    if (d->state == DEF_READY)
        return true;
    if (w->depth > 200)
        return false;
    uint64_t *k = map64_put(&w->known, (uint64_t)(uintptr_t)d);
    if (*k)
        return *k == STEADY;
    *k = STEADY;
    const ast *e = d->kind == DEF_PARAM ? d->at->kid[1] : d->kind == DEF_LET ? d->at->kid[0] : d->at->kid[1];
    size_t locals = w->local.n;
    for (uint32_t i = 0; d->kind == DEF_FN && i < d->at->kid[0]->n; i++)
        *vec_push(s->tmp, &w->local) = d->at->kid[0]->kid[i]->name;
    w->depth++;
    bool good = e && is_steady(w, e) &&
                !(d->kind == DEF_PARAM && d->at->kid[0] && !is_steady(w, d->at->kid[0]));
    w->depth--;
    w->local.n = locals;
    *map64_put(&w->known, (uint64_t)(uintptr_t)d) = good ? STEADY : MOVES;
    return good;
}

static bool name_is_steady(steady *w, sym name)
{
    session *s = w->s;
    if (is_local(w, name))
        return true;
    if (!strcmp(name, "t") || map64_get(&s->now.measures->at, sym_key(name)) ||
        (w->results && class_find(w->results, name)))
        return false;
    const def *d = module_find(s->main, name);
    if (d)
        return def_is_steady(w, d);
    value v;
    for (scope *sc = &s->builtins; sc; sc = sc->up)
        if (sc->find(sc, &s->ev, name, SPAN_NONE, &v) != LOOK_NO)
            return true;
    return false;
}

static bool is_steady(steady *w, const ast *e)
{
    size_t locals = w->local.n;
    bool good = e->kind != AST_ERROR && (e->kind != AST_NAME || name_is_steady(w, e->name));
    if (e->kind == AST_GEN)
        for (uint32_t k = 1; k + 1 < e->n; k++)
            *vec_push(w->s->tmp, &w->local) = e->kid[k]->name;
    for (uint32_t k = 0; k < e->n && good; k++)
        good = !e->kid[k] || is_steady(w, e->kid[k]);
    w->local.n = locals;
    return good;
}

void check_constants(session *s, const mclass *last, const ast *list)
{
    steady w = { .s = s, .results = last, .known.a = s->tmp };
    for (uint32_t k = 0; k < list->n; k++) {
        const def *d = module_find(s->main, list->kid[k]->name);
        value v;
        if (!d || d->at != list->kid[k] || (d->kind != DEF_LET && d->kind != DEF_PARAM) ||
            !def_is_steady(&w, d))
            continue;
        s->main->base.find(&s->main->base, &s->ev, d->name, d->at->name_at, &v);
    }
}
