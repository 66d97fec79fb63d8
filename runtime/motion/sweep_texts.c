/* sweep_texts: sources that are part of the C of a run, as arrays of lines; written by
   runtime/native/texts.awk. */
#include <stddef.h>
#include "sweep_emit.h"

#include "native/texts.inc"
