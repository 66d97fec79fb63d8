/* later: columns that follow from the states of a run, made when something reads them.  Until then a sample
   costs what its state does.  Which runs: those whose stepper can make the columns from what it has kept,
   with the bytes that a sample would have had, and whose samples stay in memory. */
#ifndef CDL_LATER_H
#define CDL_LATER_H
#include "clock.h"

/* What a stepper offers; `of` is its own, and lives as long as the results. */
typedef struct later_ops {
    unsigned parts; /* that are made later */
    /* Those of them that have no room while the run goes on; the others hold what they are made of. */
    unsigned absent;
    /* of one sample; acc may be its place in the column.  False: they are the mean over the step. */
    bool (*accelerations)(void *of, const results *r, int64_t at, double *acc);
    void (*slips)(void *of, results *r); /* of contacts */
    /* of samples from `from` on, at most LANES of them */
    void (*energies)(void *of, const results *r, int64_t from, int n, energies *e);
} later_ops;

/* If the clock's stepper has an offer and it fits the run of that many samples: columns are made later. */
void later_begin(run_clock *c, double samples);
bool later_makes(const results *r, results_part part); /* does a sample leave it out? */
/* The samples go through the books; the balance of power is that of the run. */
void later_audit(results *r);
bool later_finite(const results *r); /* were all energies in it? */
#endif
