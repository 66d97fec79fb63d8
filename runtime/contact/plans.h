/* plans: which solvers are tried for which problems, and in which order. This is the only place that
   determines it; pile.c, contact.c and impulses.c follow a plan until the tolerance is reached. */
#ifndef CDL_PLANS_H
#define CDL_PLANS_H
#include "solvers.h"

/* Steps of a plan that are not rows of contact_solvers: the problem island by island, each by the plan of
   islands (pile.c); for a list of contacts (impulses.c): Newton's method in the rates of its bodies, sweeps
   over its rows with conjugate directions or plain. */
enum { BY_ISLANDS = SOLVERS, BY_LIST_RATES, BY_LIST_SWEEPS, BY_LIST_PLAIN };

typedef struct plan_step {
    int by;
    int above, most; /* for problems of more than `above` contacts, and at most `most`; 0: any */
    /* The plan ends before this step if there are at least this many contacts (0: never): cut if the step can
       be shortened, little if there is an alternative. */
    int cut, little;
    int patch; /* number of patches before it */
    /* Even so it continues with a residual below these: near if there is an alternative, close if the step
       can be shortened. */
    double near, close;
    bool goes_on; /* begins where the step before it ended, not at the best reactions so far */
} plan_step;
typedef struct solver_plan {
    const plan_step *step;
    int n;
} solver_plan;

/* Does the plan end before this step, with the residual so far? */
static inline bool plan_ends(const plan_step *s, solver_effort effort, int contacts, double residual)
{
    if (effort == EFFORT_LITTLE)
        return s->little > 0 && contacts >= s->little && !(residual < s->near);
    return effort == EFFORT_CUT && s->cut > 0 && contacts >= s->cut && !(residual < s->close);
}

extern const solver_plan plan_smooth; /* W in full, without friction */
extern const solver_plan plan_rough;  /* W in full, with friction */
extern const solver_plan plan_speed;  /* W in full, friction that depends on the slip speed */
extern const solver_plan plan_plane;  /* an island by rows, at most one tangent component */
extern const solver_plan plan_space;  /* an island by rows, more of them */
/* an island from no reactions, if those found are too large to give a scale */
extern const solver_plan plan_calm;
extern const solver_plan plan_group_loose; /* a group of a list of contacts, loose tolerance */
extern const solver_plan plan_group_tight;
#endif
