/* convex_round: where two bodies touch of which one is a cylinder or an ellipsoid.  With the core of a body,
   a hull, and its round, which reaches k(n) along n, the gap is the most that a normal n of length 1 parts
   them: min dot(n, x) - max dot(n, y) - k_x(n) - k_y(n) over the corners x and y of both. */
#ifndef CDL_CONVEX_ROUND_H
#define CDL_CONVEX_ROUND_H
#include "base/convex.h"

/* as convex_touch */
int round_touch(const convex *x, const body_pose *px, const convex *y, const body_pose *py, feature *out);
#endif
