/* view: what a run and its native steps exchange; both are compiled with it.  Pointers belong to the run. */
#ifndef CDL_VIEW_H
#define CDL_VIEW_H
#include <stdint.h>

typedef struct native_view {
    /* what no step changes: parameters, rows and laws of the contact, matrices of a whole step */
    const double *param, *drift, *inverse, *Fq, *Fv;
    const double *H, *S, *s0, *G, *A;
    const int *dof;
    double h, theta, ht, mu, normal;
    int relation, tresca; /* as in contact */
    int A_known;
    /* the state: of vectors where they lie, of numbers the value */
    double *q, *v, *f, *qmax, *vmax, *r, *P, *driving;
    double t, step_from, gap, tol_gap, tol_u, tol_slip, length;
    double work, dissipated, deepest, power;
    int closed, driving_known;
    int64_t step;
    double last, apart; /* time of the last sample, and how far they are apart */
    /* columns of samples whose contact is open, NULL where they are not kept; the next sample, and how many
       there is room for */
    double *col_t, *col_q, *col_v, *col_f, *col_work, *col_dissipated, *col_gap, *col_rn, *col_rt;
    uint8_t *col_status;
    int64_t at, room;
} native_view;

/* Up to `count` plain steps.  *due: the last of them has a sample that the run takes itself.  Returns how many
   were taken; fewer than asked and no sample is due: the next one is no plain step. */
typedef int64_t native_steps(native_view *x, int64_t count, int *due);
#define NATIVE_ENTRY "cdl_native_steps"
#endif
