#include "backend.h"
#include <math.h>
#include <string.h>

extern const backend backend_sweeping;

/* ---- named in the language, not built yet ---- */
#define OPTIONS(x) .option = (x), .noption = sizeof(x) / sizeof *(x)
static const backend_option events_options[] = {
    { "tolerance", OPT_REAL, 1e-12, 1e-16, 1e-2, NULL, "local error, relative" },
    { "order", OPT_INT, NAN, 4, 60, NULL, "of the Taylor series; chosen from the tolerance when left out" },
};
static const backend_option penalty_options[] = {
    { "stiffness", OPT_REAL, 1e6, 0, INFINITY, NULL, "contact stiffness (dynamics, rods)" },
    { "damping", OPT_REAL, NAN, 0, INFINITY, NULL, "contact damping; from the restitution when left out" },
    { "slip", OPT_REAL, 1e-4, 0, INFINITY, NULL, "slip speed over which friction builds up" },
    { "eps", OPT_REAL, 1e-6, 0, INFINITY, NULL, "compliance of the obstacle (fields)" },
    { "h", OPT_REAL, NAN, 0, INFINITY, NULL, "first step; chosen when left out" },
    { "tolerance", OPT_REAL, 1e-6, 1e-14, 1, NULL, "local error, relative" },
};
static const backend_option auglag_options[] = {
    { "h", OPT_REAL, NAN, 0, INFINITY, NULL, "step of time or load" },
    { "tolerance", OPT_REAL, 1e-10, 1e-15, 1, NULL, "violation left, relative" },
    { "stiffness", OPT_REAL, NAN, 0, INFINITY, NULL, "of the inner penalty" },
};
static const backend_option inclusion_options[] = {
    { "h", OPT_REAL, 1e-3, 0, INFINITY, NULL, "step" },
    { "order", OPT_INT, 1, 1, 2, NULL, "of the scheme" },
};
static const backend_option limit_options[] = {
    { "name", OPT_NAME, NAN, 0, 0, NULL, "the parameter that goes to 0" },
};
static const backend_option vim_options[] = {
    { "iterations", OPT_INT, 2, 0, 50, NULL, "of the correction" },
    { "contact", OPT_WORD, 0, 0, 0, "given|find", "whether ends of contact zones are unknowns" },
};
static const backend_option active_set_options[] = {
    { "cells", OPT_INT, 200, 2, 1e7, NULL, "of the mesh, in each direction" },
};

static const backend backend_events = { .name = "events", .doc = "Taylor series, events located to round-off", OPTIONS(events_options) };
static const backend backend_penalty = { .name = "penalty", .doc = "contact as stiff springs", OPTIONS(penalty_options) };
static const backend backend_auglag = { .name = "auglag", .doc = "augmented Lagrangian", OPTIONS(auglag_options) };
static const backend backend_inclusion = { .name = "inclusion", .doc = "first-order inclusions by implicit Euler", OPTIONS(inclusion_options) };
static const backend backend_limit = { .name = "limit", .doc = "limit of an inclusion as a parameter goes to 0", OPTIONS(limit_options) };
static const backend backend_vim = { .name = "vim", .doc = "variational iteration: obstacle problems as formulas", OPTIONS(vim_options) };
static const backend backend_active_set = { .name = "active_set", .doc = "obstacle problems by primal-dual active sets", OPTIONS(active_set_options) };

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
    for (const backend *const *b = backend_list; *b; b++)
        if ((*b)->built && (!(*b)->refuse || !(*b)->refuse(p, &at))) return *b;
    return NULL;
}
