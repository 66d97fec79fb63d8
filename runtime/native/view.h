/* view: what a run and its native steps exchange; both are compiled with it.  Pointers belong to the run. */
#ifndef CDL_VIEW_H
#define CDL_VIEW_H
#include <stdint.h>

/* what no step changes: parameters, rows and laws of the contact, matrices of a whole step */
typedef struct native_fixed {
    const double *param, *drift, *inverse, *Fq, *Fv;
    const double *H, *S, *s0, *G, *A;
    const int *dof;
    double h, theta, ht, mu, normal;
    int relation, tresca; /* as in contact */
    int A_known;
} native_fixed;

/* of vectors where they lie, of numbers the value */
typedef struct native_state {
    double *q, *v, *f, *qmax, *vmax, *r, *P, *driving;
    double t, step_from, gap, tol_gap, tol_u, tol_slip, length;
    double work, dissipated, deepest, power;
    int closed, driving_known;
    int64_t step;
} native_state;

/* Columns of samples whose contact is open, NULL where they are not kept; the next sample, how many there is
   room for, the time of the last one, and how far they are apart. */
typedef struct native_columns {
    double *t, *q, *v, *f, *work, *dissipated, *gap, *rn, *rt;
    uint8_t *status;
    int64_t at, room;
    double last, apart;
} native_columns;

typedef struct native_view {
    native_fixed fixed;
    native_state now;
    native_columns kept;
} native_view;

/* Up to `count` plain steps.  *due: the last of them has a sample that the run takes itself.  Returns how
   many were taken; fewer than asked and no sample is due: the next one is no plain step. */
typedef int64_t native_steps(native_view *x, int64_t count, int *due);
#define NATIVE_ENTRY "cdl_native_steps"
#endif
