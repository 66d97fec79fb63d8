/* estimate: how far a run may be off, found by running it again with another resolution. */
#ifndef CDL_ESTIMATE_H
#define CDL_ESTIMATE_H
#include "clock/backend.h"

/* Is `error = estimate` among the options? */
bool estimate_wanted(const backend *b, const run_options *o);
/* Why runs of p have none; NULL: they have one. */
const char *estimate_refused(const program *p);
/* Fills r->error, after a run that ended well: as the option says, or, when it says nothing, where that costs
   little. */
void estimate_error(const backend *b, const run_options *o, results *r);
#endif
