#include "backend.h"
#include "field.h"
#include <math.h>
#include <string.h>

extern const backend backend_vim, backend_active_set;
extern const backend backend_inclusion;
extern const backend backend_sweeping, backend_penalty;

/* ---- named in the language, not built yet ---- */
#define OPTIONS(x) .option = (x), .noption = sizeof(x) / sizeof *(x)
static const backend_option events_options[] = {
    { "tolerance", OPT_REAL, 1e-12, 1e-16, 1e-2, NULL, "local error, relative" },
    { "order", OPT_INT, NAN, 4, 60, NULL, "of the Taylor series; chosen from the tolerance when left out" },
};
static const backend_option auglag_options[] = {
    { "h", OPT_REAL, NAN, 0, INFINITY, NULL, "step of time or load" },
    { "tolerance", OPT_REAL, 1e-10, 1e-15, 1, NULL, "violation left, relative" },
    { "stiffness", OPT_REAL, NAN, 0, INFINITY, NULL, "of the inner penalty" },
};
static const backend_option limit_options[] = {
    { "name", OPT_NAME, NAN, 0, 0, NULL, "the parameter that goes to 0" },
};

static const backend backend_events = { .name = "events", .doc = "Taylor series, events located to round-off", OPTIONS(events_options) };
static const backend backend_auglag = { .name = "auglag", .doc = "augmented Lagrangian", OPTIONS(auglag_options) };
static const backend backend_limit = { .name = "limit", .doc = "limit of an inclusion as a parameter goes to 0", OPTIONS(limit_options) };

const backend *const backend_list[] = {
    &backend_sweeping, &backend_events, &backend_penalty, &backend_auglag,
    &backend_inclusion, &backend_limit, &backend_vim, &backend_active_set,
    NULL
};

const backend *backend_find(const char *name)
{
    for (const backend *const *b = backend_list; *b; b++) if (strcmp((*b)->name, name) == 0) return *b;
    return NULL;
}

const backend *backend_choose(const program *p)
{
    span at;
    if (p->field) return p->field->linear && p->field->ncoord == 1 && !p->field->nobst && !p->field->nbend ? &backend_vim : &backend_active_set;
    for (const backend *const *b = backend_list; *b; b++)
        if ((*b)->built && (!(*b)->refuse || !(*b)->refuse(p, &at))) return *b;
    return NULL;
}
