/* many: the sweeping step for models with many contacts: rows are sparse, pairs come from a cell list, steps
 * are not cut at impacts. */
#ifndef CDL_MANY_H
#define CDL_MANY_H
#include "sweeping.h"

enum { CHAIN_CONTACTS = 32, DENSE_CONTACTS = 400 }; /* chains of more contacts than that are run here */
/* Runs p into r.  chain: only when all contacts are known once for all and hang together in chains.
   False: it was not run, since it is no chain, or has what this way of stepping does not know and is small
   enough for the dense one. */
bool many_run(const program *p, const run_options *o, results *r, const stepping *how, bool chain);
#endif
