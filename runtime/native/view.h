/* view: the data that a run and its compiled steps exchange; both include this file. Pointers belong to the
   run. */
#ifndef CDL_VIEW_H
#define CDL_VIEW_H
#include <stdint.h>

/* Constant data: parameters, rows and laws of the contact, matrices of a whole step. */
typedef struct native_fixed {
    const double *param, *drift, *inverse, *Fq, *Fv;
    const double *H, *S, *s0, *G, *A;
    const int *dof;
    double h, theta, ht, mu, normal;
    int relation, tresca; /* as in contact */
    int A_known;
} native_fixed;

/* Vectors as pointers to those of the run, numbers as values. */
typedef struct native_state {
    double *q, *v, *f, *qmax, *vmax, *r, *P, *driving;
    double t, step_from, gap, tol_gap, tol_u, tol_slip, length;
    double work, dissipated, deepest, power;
    int closed, driving_known;
    int64_t step;
} native_state;

/* Columns of samples for an open contact, NULL if not stored; index of the next sample, allocated number of
   samples, time of the last one, and time between samples. */
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

/* Takes up to `count` plain steps. *due: the last of them has a sample that the run must take itself. Returns
   the number of steps; if it is less than `count` and no sample is due, the next step is not plain. */
typedef int64_t native_steps(native_view *x, int64_t count, int *due);
#define NATIVE_ENTRY "cdl_native_steps"
#endif
