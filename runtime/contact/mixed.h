/* mixed: the contact problem with rates and reactions as unknowns together, for step matrices that couple
   many dofs:  D dv = P^T r,  u = b + J dv,  each contact in its cone.  W = J D^-1 P^T is never formed.
   Semi-smooth Newton (Alart and Curnier); where statuses stay as they were and D does too, the factors are
   those of the last problem. */
#ifndef CDL_MIXED_H
#define CDL_MIXED_H
#include "base/matrix.h"
#include "contact.h"

typedef struct mixed_problem {
    int n, m, contacts; /* dofs, rows, contacts */
    cone *cone;
    const matrix_shape *shape;
    const double *D;
    bool matrix_changed; /* since the last problem */
    /* contact c: dofs dof[dof_at[c]..), rows J and P at J_at[c], row after row */
    const int *dof_at, *dof;
    const size_t *J_at;
    const double *J, *P;
    const double *b; /* m: rates without reactions */
    double *r, *u;   /* m: reactions, start and solution; rates with them */
    double *dv;      /* n: what they do to the rates */
    /* friction that depends on the speed */
    void (*law)(void *ud, int contact, double speed, double *mu, double *radius);
    void *ud;
    double least, tol;
    /* outcome */
    double residual;
    int worst, iterations;
} mixed_problem;

typedef struct mixed mixed;
mixed *mixed_new(arena *a);
void mixed_free(mixed *w); /* what lies outside of the arena */
/* Solves; false: the tolerance was not reached.  same: contacts, their dofs and their order are those of the
 * last problem. */
bool mixed_solve(mixed *w, mixed_problem *p, bool same);
#endif
