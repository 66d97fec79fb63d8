/* plans: which solvers are tried, in which order, for which problems.  This is the one place that says so;
   pile.c, contact.c and impulses.c walk through a plan until the tolerance is reached. */
#ifndef CDL_PLANS_H
#define CDL_PLANS_H
#include "solvers.h"

/* What a step of a plan may name beside the rows of contact_solvers: the problem island by island, each by
   the plan of islands (pile.c); of a list of contacts (impulses.c): Newton's method by the rates of its
   bodies, sweeps over its rows with conjugate directions or plain. */
enum { BY_ISLANDS = SOLVERS, BY_LIST_RATES, BY_LIST_SWEEPS, BY_LIST_PLAIN };

typedef struct plan_step {
    int by;
    int above, most; /* for problems of more than `above` contacts, and at most `most`; 0: any */
    /* sent back before it, with so many contacts or more (0: with none): who may cut the step, who has
       another answer */
    int cut, little;
    int patch; /* rounds of patches before it */
    /* who has another answer, who may cut the step goes on all the same with a residual below it */
    double near, close;
    bool goes_on; /* begins where the step before it ended, not at the best reactions so far */
} plan_step;
typedef struct solver_plan {
    const plan_step *step;
    int n;
} solver_plan;

/* Is that step left to others, with the residual so far? */
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
extern const solver_plan plan_calm;   /* an island from no reactions, where those found have no measure */
extern const solver_plan plan_group_loose; /* a group of a list of contacts, loose tolerance */
extern const solver_plan plan_group_tight;
#endif
