/* sweep_texts: sources that are part of the C of a run, as arrays of lines; runtime/native/texts.awk writes
 * them. */
#include <stddef.h>
#include "sweep_emit.h"

#include "native/texts.inc"
