/* many: the sweeping step for models with many contacts: rows are sparse, pairs come from a cell list, steps are not cut at impacts. */
#ifndef CDL_MANY_H
#define CDL_MANY_H
#include "backend.h"

/* Runs p into r (r->a holds all memory).  tol: of the contact problem. */
void many_run(const program *p, const run_options *o, results *r, double h, double tol);
#endif
