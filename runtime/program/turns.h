/* turns: the rotations of a running program. Their dofs are small rotations relative to bases that do not
   change during a step (base/rotation.h); between steps the bases are updated, so that the rotations stay
   small. In results, and wherever else a state is stored, the three columns of a rotation hold its rotation
   vector, its angular velocity and its angular acceleration, both in the frame of the body. */
#ifndef CDL_TURNS_H
#define CDL_TURNS_H
#include "program.h"

/* All bases are eye(3). */
void turns_start(const program *p, double *base);
/* Bases move to where rotations will be after the time `ahead`, by their rates and accelerations (a, or
   NULL); q, v and a, which belong to now, are the same motion about the new bases. */
void turns_centre(const program *p, double *base, double *q, double *v, double *a, double ahead);
/* Moves the bases to the middle between two states q, v, a and q1, v1, which are expressed relative to the
   new ones; false: the bases were already there, up to a negligible rotation, and nothing has changed. */
bool turns_middle(const program *p, double *base, double *q, double *v, double *a, double *q1, double *v1);
/* A state relative to bases, in the form that is stored; a may be NULL. */
void turns_keep(const program *p, const double *base, double *q, double *v, double *a);
/* The bases of a state that was kept; its turns are 0. */
void turns_take(const program *p, double *q, double *base);
/* Is dof k one of a rotation?  Its first one, or -1. */
static inline int32_t turns_of(const program *p, int32_t k)
{
    size_t lo = 0, hi = p->rotations.n;
    while (hi > lo) {
        size_t mid = (lo + hi) / 2;
        if (p->rotations.at[mid] + 2 < k)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < p->rotations.n && p->rotations.at[lo] <= k ? p->rotations.at[lo] : -1;
}
#endif
