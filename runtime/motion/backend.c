#include "clock/backend.h"
#include "field/field.h"
#include "rod/rod.h"
#include <math.h>
#include <string.h>

extern const backend backend_vim, backend_active_set;
extern const backend backend_inclusion, backend_limit;
extern const backend backend_auglag;
extern const backend backend_events;
extern const backend backend_sweeping, backend_penalty;

/* ---- the table; backends are tried in this order ---- */
#define OPTIONS(x) .option = (x), .noption = sizeof(x) / sizeof *(x)

const backend *const backend_list[] = { &backend_sweeping, &backend_events,     &backend_penalty,
                                        &backend_auglag,   &backend_inclusion,  &backend_limit,
                                        &backend_vim,      &backend_active_set, NULL };

const backend *backend_find(const char *name)
{
    for (const backend *const *b = backend_list; *b; b++)
        if (strcmp((*b)->name, name) == 0)
            return *b;
    return NULL;
}

const backend *backend_choose(const program *p)
{
    span at;
    if (p->field)
        return p->field->linear && p->field->ncoord == 1 && !p->field->nobst && !p->field->nbend
                   ? &backend_vim
                   : &backend_active_set;
    for (const backend *const *b = backend_list; *b; b++)
        if ((*b)->built && (!(*b)->refuse || !(*b)->refuse(p, &at)))
            return *b;
    return NULL;
}

const char *const problem_kind_name[] = { "the dynamics of bodies",
                                          "fields on a line",
                                          "fields in the plane",
                                          "equilibria of rods",
                                          "rods in time",
                                          "inclusions",
                                          NULL };

problem_kind program_kind(const program *p)
{
    if (p->field)
        return p->field->ncoord == 1 ? KIND_LINE : KIND_PLANE;
    if (p->rod)
        return rod_moves(p->rod) ? KIND_ROD_MOTION : KIND_RODS;
    return p->has_inclusion.file ? KIND_INCLUSION : KIND_DYNAMICS;
}
