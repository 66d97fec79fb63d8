/* assemble: model -> program.  Plans the kernels of its dynamics, extracts terms that depend only on
   parameters, and emits them. */
#ifndef CDL_ASSEMBLE_H
#define CDL_ASSEMBLE_H
#include "dynamics.h"
#include "past/history.h"

/* NULL when there were errors: see dynamics_of.  The program lives in `a`; scratch is another arena than
   that and the model's, and is released to where it was.  Names of dofs are read from the model later, so
   the model must exist as long as the program. */
program *assemble(arena *a, arena *scratch, const model *m);
/* Fields, obstacles and their conditions (assemble_field.c); NULL after an error was reported. */
const struct field_program *assemble_field(arena *a, arena *scratch, const model *m);
/* First-order inclusions and equations (assemble_inclusion.c); NULL after an error was reported. */
const struct inclusion_program *assemble_inclusion(arena *a, arena *scratch, const model *m);
/* Rods (assemble_rod.c), p having its contacts; NULL after an error was reported. */
const struct rod_program *assemble_rod(arena *a, arena *scratch, const model *m, const program *p);
/* Past values and integrals (assemble_delay.c): formulas are lowered to slots, then the kernels of these are
 * emitted. */
typedef struct delays delays;
delays *delays_new(arena *to, arena *scratch, const model *m);
void delays_lower(delays *d, const index_names *over, ir_ref *out, size_t n);
const delay_program *delays_end(delays *d);
#endif
