/* auglag: augmented Lagrangian, one backend for several kinds of problem, told apart by the program. */
#include "rod.h"
#include <math.h>

enum { OPT_H, OPT_TOLERANCE, OPT_STIFFNESS };

static const char *auglag_refuse(const program *p, span *at)
{
    if (p->rod) return rod_refuse(p, at);
    *at = p->has_field.file ? p->has_field : p->has_inclusion;
    return p->has_field.file ? "auglag does not solve fields; use active_set()" : "auglag does not run dynamics yet; use sweeping()";
}

static void auglag_run(const program *p, const run_options *o, results *r)
{
    rod_options ro = { .h = o->value[OPT_H], .tolerance = o->value[OPT_TOLERANCE], .stiffness = o->value[OPT_STIFFNESS] };
    rod_run(p, o, &ro, r);
}

static const backend_option auglag_options[] = {
    { "h", OPT_REAL, NAN, 0, INFINITY, NULL, "step of the load; a twentieth of the run when left out" },
    { "tolerance", OPT_REAL, 1e-8, 1e-14, 1, NULL, "overlap that is left, by the radius" },
    { "stiffness", OPT_REAL, NAN, 0, INFINITY, NULL, "of the inner penalty, per length; from the rod when left out" },
};
const backend backend_auglag = {
    .name = "auglag", .doc = "rods; contact by augmented Lagrangian", .option = auglag_options,
    .noption = sizeof auglag_options / sizeof *auglag_options, .built = true, .refuse = auglag_refuse, .run = auglag_run,
};
