/* convex: hulls of points in the plane and in space, and where two of them touch. A body is the hull of its
   points with one round shape added to every point: a ball (a ball is a point, a capsule a segment with it),
   the disk across the axis of a cylinder, an ellipsoid. */
#ifndef CDL_CONVEX_H
#define CDL_CONVEX_H
#include <stdbool.h>
#include "base/arena.h"

/* Given in its own frame. In the plane faces are edges, and there are no other edges. */
typedef struct convex {
    int dim, nv, nf, ne;
    double *v;      /* corners, 3 numbers each (the third is 0 in the plane) */
    double *normal; /* for each face, outward, 3 numbers */
    double *level;  /* dot(normal, x) on a face */
    int *first;     /* nf + 1: where the corners of a face begin in `loop`, in order around it */
    int *loop;
    int *edge;               /* ne times: two corners, the two adjacent faces (-1: none) */
    int widest;              /* largest number of corners of a face; of all corners if there are no faces */
    double radius;           /* of the added ball or disk */
    bool curved;             /* the added shape is not a ball, see convex_round.h */
    bool ends;               /* it is a cylinder: flat ends across `axis` */
    double axis[3];          /* of length 1 */
    double E[9];             /* the added shape extends by sqrt(dot(n, E n)) along n */
    double middle[3], reach; /* the whole body lies within this distance of its middle */
} convex;

/* The hull of n points with dim numbers each, `apart` numbers from one point to the next; NULL: there are
   more than CONVEX_POINTS, or they have no interior and are neither a point nor a segment. */
enum { CONVEX_POINTS = 600 };
convex *convex_hull(arena *a, int dim, const double *point, int n, int apart, double radius);
/* ends: two points, `apart` numbers from one to the other; NULL: they coincide, or the radius is 0. */
convex *convex_cylinder(arena *a, const double *ends, int apart, double radius);
/* The points y with dot(y - c, A (y - c)) <= 1; NULL: A, dim x dim, is not symmetric and positive definite.
 */
convex *convex_ellipsoid(arena *a, int dim, const double *centre, const double *A);

typedef struct body_pose {
    double p[3], A[9]; /* row by row; 3 x 3 also in the plane */
} body_pose;

/* Determines how the gap at a touching point is computed while bodies move, see gap_pair and gap_curved in
   lang/model. a, b: the touching points in the frames of both bodies, without added shapes. */
typedef struct feature {
    double a[3], b[3];
    union {
        struct {                 /* hulls with balls added */
            double ua[3], ub[3]; /* a direction in each body */
            /* 0 or 1: which directions give the normal */
            double plane_b, plane_a, cross, point, edge_a, edge_b;
            double ra, rb;
        };
        struct { /* if one is curved: all in the frame of the second body, or of the first if of_a is 1 */
            double n[3];       /* the normal, of length 1 */
            double s[3], t[3]; /* directions in which it turns as bodies move; 0: it does not turn */
            double of_a, round_a, round_b; /* 0 or 1; is the added shape of a body part of the gap? */
            double edge; /* 1: t is the direction of an edge, and the normal turns along s */
            /* 1: t is an edge of the first body, in its frame; s likewise for the other one */
            double crossing;
        };
    };
    int64_t id; /* which corners, edges and faces: constant while they touch in the same way */
    double gap;
} feature;
enum { FEATURES = 4 };
/* The points at which x and y may touch, at most FEATURES, in order of the gap; returns their number. */
int convex_touch(const convex *x, const body_pose *px, const convex *y, const body_pose *py, feature *out);
/* The same where bodies overlap because contacts give way.  Two faces that lie on each other are as many
   depths out of parallel, and edges may then have a normal that is better than theirs by as much: faces go
   first up to twice the depth. */
int convex_touch_deep(const convex *x, const body_pose *px, const convex *y, const body_pose *py,
                      feature *out);
/* Does a plane along a face of one of them separate them by more than `room`? Then no touching point is
   needed. */
bool convex_clear(const convex *x, const body_pose *px, const convex *y, const body_pose *py, double room);
/* The same for two bodies far apart, with the balls around them: a lower bound. */
void convex_far(const convex *x, const convex *y, feature *out);
bool convex_is_far(int64_t id); /* of such a feature */
double convex_apart(const convex *x, const body_pose *px, const convex *y,
                    const body_pose *py); /* distance of the balls around them */
#endif
