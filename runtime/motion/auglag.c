/* auglag: the augmented Lagrangian method for rods and for motions; the program determines which. */
#include "rod/rod.h"
#include "sweeping.h"
#include "base/tolerances.h"
#include <math.h>

enum { OPT_H, OPT_TOLERANCE, OPT_STIFFNESS, OPT_THETA, OPT_EVERY, OPT_LIMIT };

static const char *auglag_refuse(const program *p, span *at)
{
    if (p->rod)
        return rod_refuse(p, at);
    if (p->has_field.file) {
        *at = p->has_field;
        return "auglag does not solve fields; use active_set()";
    }
    if (p->has_inclusion.file) {
        *at = p->has_inclusion;
        return "auglag does not run inclusions; use inclusion()";
    }
    if (p->has_delay.file) {
        *at = p->has_delay;
        return "auglag does not run delays; use sweeping()";
    }
    for (size_t i = 0; i < p->ncontact; i++)
        if (p->contact[i].mu_of_speed) {
            *at = p->contact[i].at;
            return "auglag does not run friction that depends on the slip speed; use sweeping()";
        }
    return NULL;
}

static stepping auglag_asked(const run_options *o)
{
    return (stepping){ .h = o->value[OPT_H],
                       .theta = o->value[OPT_THETA],
                       .tolerance = o->value[OPT_TOLERANCE],
                       .stiffness = o->value[OPT_STIFFNESS],
                       .name = "auglag",
                       .cut = CUT_AUTO,
                       .native = NATIVE_NEVER };
}

/* Rods cannot be advanced step by step by a caller. */
static const struct stepper *auglag_pieces(const program *p, const run_options *o, results *r, void **of)
{
    stepping how = auglag_asked(o);
    return p->rod ? NULL : sweeping_open(p, o, &how, r, of);
}

static void auglag_run(const program *p, const run_options *o, results *r)
{
    double tol = o->value[OPT_TOLERANCE];
    stepping how = auglag_asked(o);
    if (!p->rod) {
        sweeping_steps(p, o, &how, r);
        return;
    }
    rod_options ro = { .h = o->value[OPT_H],
                       .tolerance = tol > 0 ? tol : ROD_OVERLAP,
                       .stiffness = o->value[OPT_STIFFNESS],
                       .theta = o->value[OPT_THETA],
                       .arc = rod_arc_asked(o->word[OPT_LIMIT]) };
    rod_run(p, o, &ro, r);
}

static bool auglag_saves(const program *p)
{
    return !p->rod && sweep_saves(p);
}

static const backend_option auglag_options[] = {
    { "h", OPT_REAL, NAN, 0, INFINITY, NULL,
      "time step as in sweeping; for rods the step of the load, default a twentieth of the run, or of "
      "time, default a thousandth",
      KIND_ANY },
    { "tolerance", OPT_REAL, NAN, 1e-14, 1, NULL,
      "of the contact problem, as in sweeping; for rods the largest overlap relative to the radius, 1e-8",
      KIND_ANY },
    { "stiffness", OPT_REAL, NAN, 1e-300, INFINITY, NULL,
      "of the inner penalty: impulse per speed, for rods per length; default from the masses or the rod",
      KIND_ANY },
    { "theta", OPT_REAL, 0.5, 0.5, 1, NULL,
      "weight of the end of a time step: 1/2 conserves energy, more damps what the steps do not resolve",
      KIND_IN_TIME },
    OPTION_EVERY,
    OPTION_LIMIT,
    OPTION_ERROR,
};
const backend backend_auglag = {
    .name = "auglag",
    .doc = "rods and dynamics; contact by augmented Lagrangian",
    .option = auglag_options,
    .noption = sizeof auglag_options / sizeof *auglag_options,
    .built = true,
    .refuse = auglag_refuse,
    .run = auglag_run,
    .open = auglag_pieces,
    .saves = auglag_saves,
};
