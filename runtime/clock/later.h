/* later: columns that follow from the states of a run, computed when something reads them. Until then a
   sample costs only its state. This is done for runs whose stepper can compute the columns from the stored
   data, with the same bytes, and whose samples stay in memory. */
#ifndef CDL_LATER_H
#define CDL_LATER_H
#include "clock.h"

/* The functions of a stepper; `of` is its own data, and lives as long as the results. */
typedef struct later_ops {
    unsigned parts; /* that are computed later */
    /* Those of them without memory during the run; the others contain the data they are computed from. */
    unsigned absent;
    /* of one sample; acc may be its place in the column.  False: they are the mean over the step. */
    bool (*accelerations)(void *of, const results *r, int64_t at, double *acc);
    void (*slips)(void *of, results *r); /* of contacts */
    /* of samples from `from` on, at most LANES of them */
    void (*energies)(void *of, const results *r, int64_t from, int n, energies *e);
} later_ops;

/* If the stepper supports it, and for a run of that many samples, columns are computed later. */
void later_begin(run_clock *c, double samples);
bool later_makes(const results *r, results_part part); /* does a sample omit it? */
/* The samples go through the books; the balance of power is that of the run. */
void later_audit(results *r);
bool later_finite(const results *r); /* were all energies in it? */
#endif
