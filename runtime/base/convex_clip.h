/* convex_clip: a flat face clipped by the sides of another one, and which of its corners support it. */
#ifndef CDL_CONVEX_CLIP_H
#define CDL_CONVEX_CLIP_H

typedef struct clip_point {
    double x[3];
    int tag; /* identifies the corner, or the edge and side that were cut */
} clip_point;

/* The part with dot(side, x) <= level of n corners in order around a face, of a segment or of a point;
   number: which side it is; room: allocated corners of `out`. Returns the number of corners. */
int clip_side(const clip_point *in, int n, int room, const double *side, double level, int number,
              clip_point *out);
/* Of points near a plane: point_first gives the nearest one (small: distances that count as equal),
   point_next the one with the largest gain beside those that are taken. -1: none gains more than `same`. */
int point_first(const clip_point *p, int n, const double *normal, double small);
int point_next(const clip_point *p, int n, const int *taken, int ntaken, const double *normal, double same);
#endif
