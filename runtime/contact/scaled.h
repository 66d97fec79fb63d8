/* scaled: the contact problem with a sparse W in the unknowns and units of interior point methods: x with
   reactions r = unit (part x + given), and velocities u = W x + b, where the normal entries of W are 1 and
   the bound of friction is x_n itself. */
#ifndef CDL_SCALED_H
#define CDL_SCALED_H
#include "problem.h"

typedef struct scaled {
    contact_problem *p;
    int m;              /* unknowns: none for friction that follows from the normal reaction, or is absent */
    int *first, *count; /* those of each contact */
    int *row, *to;      /* row of the problem of an unknown; unknown of a reaction (-1: none) */
    /* Reaction = unit * (part * x[to] + given); row of u = weight * row of the velocities / unit. */
    double *part, *given, *weight;
    /* W by rows */
    int *Ws, *Wc;
    double *Wx;
    double *b, unit;
    double *an, *a; /* of each contact, unscaled: its normal entry of W, its largest tangential entry */
    double *rates;  /* unscaled velocities, for the residual */
} scaled;

scaled *scaled_new(contact_problem *p, arena *a);
static inline bool scaled_rough(const cone *c)
{
    return c->d > 0 && (c->mu > 0 || c->radius > 0);
}
/* Sets x from the reactions in p->r. */
void scaled_unknowns(const scaled *w, double *x);
/* Stores the reactions of x in p->r; returns their residual in the units of the problem and sets *worst to
   the contact where it is largest; u = W x + b. */
double scaled_measure(scaled *w, const double *x, double *u, int *worst);
#endif
