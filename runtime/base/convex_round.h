/* convex_round: where two bodies touch if one is a cylinder or an ellipsoid. A body consists of a core, which
   is a hull, and an added shape that extends by k(n) along n. The gap is the largest separation along a unit
   normal n: min dot(n, x) - max dot(n, y) - k_x(n) - k_y(n) over the corners x and y of both. */
#ifndef CDL_CONVEX_ROUND_H
#define CDL_CONVEX_ROUND_H
#include "base/convex.h"

/* See convex_touch. */
int round_touch(const convex *x, const body_pose *px, const convex *y, const body_pose *py, feature *out);
#endif
