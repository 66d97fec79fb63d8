/* collect: a formula as a sum of monomials, like terms put together.  Lagrange's equations contain terms
   that cancel; this finds them. */
#ifndef CDL_COLLECT_H
#define CDL_COLLECT_H
#include "value/ir.h"

typedef struct collector collector;
/* fixed: whether a node is constant during a run; operations on such nodes cost nothing. */
collector *collector_new(arena *a, ir *g, bool (*fixed)(void *ud, ir_ref n), void *ud);
/* f multiplied out and collected (also sin^2 + cos^2 = 1), if that takes no more operations than f itself;
 * otherwise f. */
ir_ref collect(collector *c, ir_ref f);
#endif
