/* convex_clip: a flat face cut off by the sides of another one, and which of its corners carry it */
#ifndef CDL_CONVEX_CLIP_H
#define CDL_CONVEX_CLIP_H

typedef struct clip_point {
    double x[3];
    int tag; /* which corner, or what was cut by which side */
} clip_point;

/* What is left where dot(side, x) <= level of n corners in order around a face, of a segment or of a point;
   number: which side it is; room: for corners of `out`.  How many. */
int clip_side(const clip_point *in, int n, int room, const double *side, double level, int number,
              clip_point *out);
/* Of points near a plane: the nearest one (small: those that are as near), then the one that adds most to
   those that are taken.  -1: none does by more than `same`. */
int point_first(const clip_point *p, int n, const double *normal, double small);
int point_next(const clip_point *p, int n, const int *taken, int ntaken, const double *normal, double same);
#endif
