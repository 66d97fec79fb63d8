/* assemble: model -> program.  Plans the kernels of its dynamics, takes out what only parameters decide, and emits
   them. */
#ifndef CDL_ASSEMBLE_H
#define CDL_ASSEMBLE_H
#include "dynamics.h"

/* NULL when there were errors: see dynamics_of.  The program lives in `a`; scratch is another arena than that and the
   model's, and is released to where
   it was. */
program *assemble(arena *a, arena *scratch, const model *m);
#endif
