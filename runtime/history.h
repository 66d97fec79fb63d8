/* history: what a motion was.  Past values of degrees of freedom and of their rates, from pieces that were kept or from the
   history that the model gives; integrals over the past. */
#ifndef CDL_HISTORY_H
#define CDL_HISTORY_H
#include "results.h"
#include "taylor.h"

typedef struct history history;
#endif
