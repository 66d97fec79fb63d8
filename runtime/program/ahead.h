/* ahead: kernels at many instants together, in lanes: at stored states, or at times known in advance.
   Values have the same bits as one instant after the other. */
#ifndef CDL_AHEAD_H
#define CDL_AHEAD_H
#include "system.h"

/* Sums over all outputs of kernels, as system_sum makes them. */
typedef struct sums_ahead sums_ahead;
/* NULL: the kernels also read other inputs than parameters, indices, time, q and q'. */
sums_ahead *sums_ahead_new(arena *a, const program *p, const kernels *of);
/* At n states (n <= LANES), those of q and q' one after the other. */
void sums_ahead_run(sums_ahead *s, const double *param, const double *t, const double *q, const double *v,
                    int n, double *sum);

/* Kernels of one member, whose time-dependent part is computed for many times together. */
typedef struct timed_term {
    kernel early; /* that part, at many times */
    tape rest;    /* the rest of it, with its own registers; those of `early` come last */
    const term *of;
    double *reg;
    double *work, *values; /* values: of LANES times, early.tape.nout each */
} timed_term;
/* NULL: there is more than one kernel, or nothing in it depends on time alone. */
timed_term *timed_new(arena *a, const terms *t);
void timed_fill(timed_term *x, const double *param, const double *times, int n); /* n <= LANES */
/* All outputs at time number i, added to f by rows. */
static inline void timed_add(const timed_term *x, int i, const inputs *in, double *f)
{
    const tape *t = &x->rest;
    const term *of = x->of;
    uint32_t n = x->early.tape.nout;
    const double *early = x->values + (size_t)i * n;
    double *reg = x->reg, *late = reg + t->nreg;
    for (uint32_t k = 0; k < n; k++)
        late[k] = early[k];
    if (t->ncode) {
        if (of->time >= 0)
            reg[of->time] = in->t;
        for (const reading *m = of->move, *end = m + of->nmove; m < end; m++)
            reg[m->reg] = in->from[m->kind][m->from];
        tape_run(t, reg);
    }
    for (uint32_t k = 0; k < t->nout; k++)
        f[of->k->row[k].base] += reg[t->out[k]];
}
#endif
