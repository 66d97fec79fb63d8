/* emit: IR -> tape.  Orders the DAG, drops what no output needs, reuses registers. */
#ifndef CDL_EMIT_H
#define CDL_EMIT_H
#include "value/ir.h"

/* A kernel with the given outputs over an index set.  where: IR_NONE or a condition on the indices.  row and
   col are left NULL for the caller. Memory from `a` (the program's arena); `scratch` is released to where it
   was. */
kernel emit_kernel(arena *a, arena *scratch, const ir *g, const ir_ref *out, size_t n, const index_set *over,
                   ir_ref where, span at);
#endif
