/* session_inclusion: jumps, branches and the graph of a limit, as values. */
#include <string.h>
#include "session/session.h"

typedef enum { OF_JUMPS, OF_BRANCHES, OF_FOLDS, OF_GRAPH } what_kind;
typedef struct listing {
    scope base;
    const results *r;
    what_kind what;
} listing;

static const char *const listing_names[] = { "jumps", "branches", "folds", "graph" };
static const char *const listing_members[][6] = { { "t", "from", "to", "fold" },
                                                  { "from", "to", "load_from", "load_to", "stable" },
                                                  { "v", "load" },
                                                  { "v", "load" } };

/* a fold is where a rising and a falling branch meet */
static bool is_fold(const results *r, size_t k)
{
    return k + 1 < r->limit.branches.n &&
           r->limit.branches.at[k].stable != r->limit.branches.at[k + 1].stable;
}

static size_t listing_count(const listing *l)
{
    size_t n = 0;
    switch (l->what) {
    case OF_JUMPS:
        return l->r->limit.jumps.n;
    case OF_BRANCHES:
        return l->r->limit.branches.n;
    case OF_GRAPH:
        return l->r->limit.graph_v.n;
    case OF_FOLDS:
        break;
    }
    for (size_t k = 0; k < l->r->limit.branches.n; k++)
        n += is_fold(l->r, k);
    return n;
}

static double listing_number(const listing *l, size_t k, int column)
{
    const results *r = l->r;
    if (l->what == OF_JUMPS) {
        const limit_jump *j = &r->limit.jumps.at[k];
        return (const double[]){ j->t, j->from, j->to, j->fold }[column];
    }
    if (l->what == OF_GRAPH)
        return column ? r->limit.graph_load.at[k] : r->limit.graph_v.at[k];
    if (l->what == OF_BRANCHES) {
        const limit_branch *b = &r->limit.branches.at[k];
        return (const double[]){ b->x0, b->x1, b->y0, b->y1, b->stable }[column];
    }
    for (size_t i = 0; i < r->limit.branches.n; i++)
        if (is_fold(r, i) && k-- == 0)
            return column ? r->limit.branches.at[i].y1 : r->limit.branches.at[i].x1;
    return 0;
}

static look listing_find(scope *sc, evaluator *ev, sym name, span at, value *out)
{
    const listing *l = (listing *)sc;
    size_t n = listing_count(l);
    (void)at;
    for (int k = 0; listing_members[l->what][k]; k++) {
        if (strcmp(listing_members[l->what][k], name))
            continue;
        *out = v_vector(ev->a, (int32_t)n);
        for (size_t i = 0; i < n; i++)
            out->num.d[i] = listing_number(l, i, k);
        return LOOK_YES;
    }
    return LOOK_NO;
}

static void listing_near(scope *sc, near *n)
{
    for (const char *const *m = listing_members[((listing *)sc)->what]; *m; m++)
        near_try(n, *m);
}

look inclusion_name(run *r, evaluator *ev, sym name, value *out)
{
    (void)ev;
    if (!r->r->limit.has_jumps)
        return LOOK_NO;
    for (int k = 0; k <= OF_GRAPH; k++) {
        if (strcmp(listing_names[k], name))
            continue;
        listing *l = arena_make(r->a, listing);
        *l = (listing){ .base = { .find = listing_find, .names = listing_near },
                        .r = r->r,
                        .what = (what_kind)k };
        *out = (value){ .kind = V_OBJECT };
        out->object.in = &l->base;
        return LOOK_YES;
    }
    return LOOK_NO;
}

const char *const *inclusion_members(const value *v)
{
    return v->kind == V_OBJECT && v->object.in->find == listing_find
               ? listing_members[((const listing *)v->object.in)->what]
               : NULL;
}

bool inclusion_count(const value *v, double *n)
{
    if (v->kind != V_OBJECT || v->object.in->find != listing_find)
        return false;
    *n = (double)listing_count((const listing *)v->object.in);
    return true;
}

bool inclusion_show(text *t, const value *v)
{
    if (v->kind != V_OBJECT || v->object.in->find != listing_find)
        return false;
    const listing *l = (const listing *)v->object.in;
    text_printf(t, "%zu %s; they have", listing_count(l),
                l->what == OF_GRAPH ? "points of the graph" : listing_names[l->what]);
    for (int k = 0; listing_members[l->what][k]; k++)
        text_printf(t, "%s %s", k ? "," : "", listing_members[l->what][k]);
    return true;
}

bool inclusion_table(session *s, const value *v, put_column put, void *ud)
{
    if (v->kind != V_OBJECT || v->object.in->find != listing_find)
        return false;
    const listing *l = (const listing *)v->object.in;
    size_t n = listing_count(l);
    for (int k = 0; listing_members[l->what][k]; k++) {
        value x = v_vector(s->tmp, (int32_t)n);
        for (size_t i = 0; i < n; i++)
            x.num.d[i] = listing_number(l, i, k);
        put(ud, listing_members[l->what][k], &x, 0);
    }
    return true;
}

bool inclusion_graph(const value *v, const double **x, int64_t *n)
{
    if (v->kind != V_OBJECT || v->object.in->find != listing_find)
        return false;
    const listing *l = (const listing *)v->object.in;
    if (l->what != OF_GRAPH)
        return false;
    x[0] = l->r->limit.graph_v.at;
    x[1] = l->r->limit.graph_load.at;
    x[2] = l->r->q;
    x[3] = l->r->limit.load;
    n[0] = (int64_t)l->r->limit.graph_v.n;
    n[1] = l->r->samples;
    return true;
}
