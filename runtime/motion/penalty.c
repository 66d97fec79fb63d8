/* penalty: contacts as stiff springs, or an obstacle as a soft one. One backend for three kinds of problem;
   the program determines which. */
#include "penalty.h"
#include "rod/rod.h"
#include <math.h>

static const backend_option penalty_options[] = {
    { "stiffness", OPT_REAL, NAN, 0, INFINITY, NULL,
      "contact stiffness (dynamics, rods); default from the sizes in the model", KIND_IN_TIME | KIND_RODS },
    { "damping", OPT_REAL, NAN, 0, INFINITY, NULL, "contact damping; default from the restitution",
      KIND_DYNAMICS },
    { "slip", OPT_REAL, NAN, 0, INFINITY, NULL,
      "slip speed over which friction builds up; default from the speeds and forces at the start",
      KIND_DYNAMICS },
    { "eps", OPT_REAL, NAN, 0, INFINITY, NULL,
      "compliance of the obstacle (fields); by default it yields by 1e-6 of u", KIND_FIELDS },
    { "h", OPT_REAL, NAN, 0, INFINITY, NULL, "first step; chosen automatically by default",
      KIND_IN_TIME | KIND_RODS },
    { "tolerance", OPT_REAL, 1e-6, 1e-14, 1, NULL, "local error, relative", KIND_ANY },
    { "cells", OPT_INT, NAN, 4, 1e7, NULL,
      "number of cells (fields); default 2000 on a line, 128 in the plane", KIND_FIELDS },
    OPTION_EVERY,
    OPTION_LIMIT,
    OPTION_ERROR,
};

static const char *penalty_refuse(const program *p, span *at)
{
#define REFUSE(what, text)  \
    do {                    \
        if (p->what.file) { \
            *at = p->what;  \
            return text;    \
        }                   \
    } while (0)
    if (p->field)
        return NULL;
    if (p->rod)
        return rod_refuse(p, at);
    REFUSE(has_inclusion, "penalty does not run inclusions; use inclusion()");
    REFUSE(has_delay, "penalty does not run delays; use sweeping() or events()");
    REFUSE(has_event, "penalty does not run `when` events; use sweeping() or events()");
#undef REFUSE
    for (size_t i = 0; i < p->ncontact; i++) {
        const contact_family *f = &p->contact[i];
        *at = f->at;
        if (f->pair.touch && (p->shapes.at[f->pair.first].kind == SHAPE_CYLINDER ||
                              p->shapes.at[f->pair.second].kind == SHAPE_CYLINDER))
            return "penalty does not follow the rims of a cylinder against another shape; use sweeping()";
        if (f->mu_static.tape.nout)
            return "penalty has one coefficient of friction, which grows with the slip; for static and "
                   "kinetic friction use sweeping() or events()";
        if (f->et.tape.nout)
            return "penalty has no tangential restitution; use sweeping() or events()";
        if (f->cascade)
            return "penalty has no simultaneous impacts: its springs take time; use sweeping() or events()";
    }
    return NULL;
}

static void penalty_run(const program *p, const run_options *o, results *r)
{
    r->backend = "penalty";
    if (p->field) {
        penalty_field_run(p, o, r);
        return;
    }
    if (p->rod) {
        rod_options ro = { .h = o->value[PENALTY_H],
                           .tolerance = o->value[PENALTY_TOLERANCE],
                           .stiffness = o->set[PENALTY_STIFFNESS] ? o->value[PENALTY_STIFFNESS] : NAN,
                           .penalty = true,
                           .theta = 0.5,
                           .arc = rod_arc_asked(o->word[PENALTY_LIMIT]) };
        rod_run(p, o, &ro, r);
        return;
    }
    penalty_dynamics_run(p, o, r);
}

static bool penalty_saves(const program *p)
{
    return !p->field && !p->rod;
}

const backend backend_penalty = {
    .name = "penalty",
    .doc = "contact and obstacles as springs",
    .option = penalty_options,
    .noption = sizeof penalty_options / sizeof *penalty_options,
    .built = true,
    .refuse = penalty_refuse,
    .run = penalty_run,
    .saves = penalty_saves,
};
