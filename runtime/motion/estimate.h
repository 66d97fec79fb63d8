/* estimate: the error of a run, estimated by running it again with another resolution. */
#ifndef CDL_ESTIMATE_H
#define CDL_ESTIMATE_H
#include "clock/backend.h"

/* Does the user request `error = estimate`? */
bool estimate_wanted(const backend *b, const run_options *o);
/* Why there is no estimate for runs of p; NULL: there is one. */
const char *estimate_refused(const program *p);
/* Computes r->error after a run that ended normally: as the option requests; without the option, if that
   costs little. */
void estimate_error(const backend *b, const run_options *o, results *r);
#endif
