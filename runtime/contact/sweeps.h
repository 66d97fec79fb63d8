/* sweeps: block Gauss-Seidel with exact solutions of single contacts, taken as the gradient of a conjugate
   direction method, which needs far fewer sweeps for the same residual. */
#ifndef CDL_SWEEPS_H
#define CDL_SWEEPS_H
#include "problem.h"

/* ---- any storage ---- */
typedef enum { SWEEPS_ON, SWEEPS_DONE, SWEEPS_SLOW } sweeps_verdict;
/* what passes change: x[at[k]], or x[k] where at is NULL */
typedef struct sweep_part {
    double *x;
    const int *at;
    int n;
} sweep_part;
typedef struct sweeper {
    void *of;
    /* One pass over the contacts, up or down: the largest change of a reaction; *size: the largest reaction.
     */
    double (*pass)(void *of, bool down, double *size);
    /* After that many sweeps; NULL: done when changes are below the tolerance times the largest reaction. */
    sweeps_verdict (*verdict)(void *of, int sweeps);
    sweep_part part[2]; /* reactions; velocities where they are carried along */
    bool up_only;       /* a sweep is one pass up, not up and down */
    bool eager;         /* done after a pass up that changes little */
    int look;           /* the end where so many sweeps gain too little; 0: that is not looked at */
} sweeper;
/* At most `most` sweeps.  plain: without conjugate directions, which friction can mislead.  Returns the last
   change over the largest reaction; *done is set to the sweeps taken. */
double sweeps_run(const sweeper *s, int most, bool plain, double tol, arena *scratch, int *done);

/* ---- stored rows ---- */
/* Of a heap of so many contacts in the plane: what happens on one side is felt on the other after as many
 * sweeps. */
int sweeps_layers(const contact_problem *p);
/* True: the last sweep changed reactions by less than tol times the largest.  With conjugate directions it
   ends where sweeps over all layers and back gain little. */
bool sweeps_solve(contact_problem *p, arena *scratch, int most, bool plain, double tol);
/* W in full, velocities carried along in p->u, one pass up a sweep, laws that depend on the speed: until the
   residual is within the tolerance, or falls by less than 1/20 in 32 sweeps. */
bool sweeps_full(contact_problem *p, arena *scratch, int most, double tol);
#endif
