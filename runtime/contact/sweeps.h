/* sweeps: block Gauss-Seidel with exact solutions of single contacts, used as the gradient of a conjugate
   direction method, which needs far fewer sweeps for the same residual. */
#ifndef CDL_SWEEPS_H
#define CDL_SWEEPS_H
#include "problem.h"

/* ---- any storage ---- */
typedef enum { SWEEPS_ON, SWEEPS_DONE, SWEEPS_SLOW } sweeps_verdict;
/* The numbers that passes change: x[at[k]], or x[k] if at is NULL. */
typedef struct sweep_part {
    double *x;
    const int *at;
    int n;
} sweep_part;
typedef struct sweeper {
    void *of;
    /* One pass over the contacts, up or down; returns the largest change of a reaction; *size: the largest
       reaction. */
    double (*pass)(void *of, bool down, double *size);
    /* Called after each number of sweeps; NULL: the sweeps are done when changes are below the tolerance
       times the largest reaction. */
    sweeps_verdict (*verdict)(void *of, int sweeps);
    sweep_part part[2]; /* reactions; velocities if they are updated */
    bool up_only;       /* a sweep is one pass up, not up and down */
    bool eager;         /* done after a pass up with small changes */
    int look;           /* ends if this number of sweeps gains too little; 0: not checked */
} sweeper;
/* At most `most` sweeps. plain: without conjugate directions, which friction may mislead. Returns the last
   change relative to the largest reaction; *done is set to the number of sweeps. */
double sweeps_run(const sweeper *s, int most, bool plain, double tol, arena *scratch, int *done);

/* ---- stored rows ---- */
/* The number of layers of a heap with this many contacts in the plane: a change on one side reaches the other
   side after that many sweeps. */
int sweeps_layers(const contact_problem *p);
/* True: the last sweep changed reactions by less than tol times the largest one. With conjugate directions it
   ends if sweeps over all layers and back gain little. */
bool sweeps_solve(contact_problem *p, arena *scratch, int most, bool plain, double tol);
/* W in full, with updated velocities in p->u, one pass up for each sweep, laws that depend on the speed:
   until the residual is within the tolerance, or falls by less than 1/20 in 32 sweeps. */
bool sweeps_full(contact_problem *p, arena *scratch, int most, double tol);
#endif
