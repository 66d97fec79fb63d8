/* convex: hulls of points in the plane and in space, and where two of them touch.  A body is the hull of its
   points with one round around it: a ball (a ball is a point, a capsule a segment), the disk across the axis
   of a cylinder, an ellipsoid. */
#ifndef CDL_CONVEX_H
#define CDL_CONVEX_H
#include <stdbool.h>
#include "base/arena.h"

/* In its own frame.  In the plane faces are edges, and there are no other edges. */
typedef struct convex {
    int dim, nv, nf, ne;
    double *v;      /* corners, 3 numbers each (the third is 0 in the plane) */
    double *normal; /* of faces, outward, 3 numbers each */
    double *level;  /* dot(normal, x) on a face */
    int *first;     /* nf + 1: where the corners of a face begin in `loop`, in order around it */
    int *loop;
    int *edge;               /* ne times: two corners, the two faces beside it (-1: none) */
    int widest;              /* corners of the face that has most; of all, where there are no faces */
    double radius;           /* of the ball around it, of the disk */
    bool curved;             /* its round is none of a ball, see convex_round.h */
    bool ends;               /* it is a cylinder: flat ends across `axis` */
    double axis[3];          /* of length 1 */
    double E[9];             /* its round reaches sqrt(dot(n, E n)) along n */
    double middle[3], reach; /* all of it lies within this distance of its middle */
} convex;

/* Of n points of dim numbers, `apart` numbers from point to point; NULL: they are more than CONVEX_POINTS, or
   have no interior and are neither a point nor a segment. */
enum { CONVEX_POINTS = 600 };
convex *convex_hull(arena *a, int dim, const double *point, int n, int apart, double radius);
/* ends: two points with `apart` numbers from one to the other; NULL: they are one, or there is no radius */
convex *convex_cylinder(arena *a, const double *ends, int apart, double radius);
/* the points y with dot(y - c, A (y - c)) <= 1; NULL: A, dim x dim, is not symmetric and positive definite */
convex *convex_ellipsoid(arena *a, int dim, const double *centre, const double *A);

typedef struct body_pose {
    double p[3], A[9]; /* row by row, 3 x 3 in the plane too */
} body_pose;

/* How a point of the gap is measured, see gap_pair and gap_curved in lang/model: what is held while bodies
   move. a, b: the touching points in the frames of both, without rounds. */
typedef struct feature {
    double a[3], b[3];
    union {
        struct {                                                   /* of hulls with balls around them */
            double ua[3], ub[3];                                   /* a direction in each body */
            double plane_b, plane_a, cross, point, edge_a, edge_b; /* 0 or 1: what the normal is made of */
            double ra, rb;
        };
        struct { /* where one is curved: all in the frame of the second body, of the first where of_a is 1 */
            double n[3];                   /* the normal, of length 1 */
            double s[3], t[3];             /* directions in which it turns as bodies move; 0: it does not */
            double of_a, round_a, round_b; /* 0 or 1; does the round of a body count? */
            double edge;     /* 1: t is the direction of an edge, and the normal turns along s */
            double crossing; /* 1: t is an edge of the first body, in its frame, s as for that of the other */
        };
    };
    int64_t id; /* which corners, edges and faces: the same while they touch in the same way */
    double gap;
} feature;
enum { FEATURES = 4 };
/* The points in which x and y may touch, at most FEATURES, the least gap first; how many. */
int convex_touch(const convex *x, const body_pose *px, const convex *y, const body_pose *py, feature *out);
/* The same where bodies overlap because contacts give way.  Two faces that lie on each other are as many
   depths out of parallel, and edges may then have a normal that is better than theirs by as much: faces go
   first up to twice the depth. */
int convex_touch_deep(const convex *x, const body_pose *px, const convex *y, const body_pose *py,
                      feature *out);
/* Whether a plane along a face of one of them keeps them more than `room` apart: no touching point is sought.
 */
bool convex_clear(const convex *x, const body_pose *px, const convex *y, const body_pose *py, double room);
/* The same for two that are far apart, by the balls around them: a lower bound. */
void convex_far(const convex *x, const convex *y, feature *out);
bool convex_is_far(int64_t id); /* of such a feature */
double convex_apart(const convex *x, const body_pose *px, const convex *y,
                    const body_pose *py); /* gap of these balls */
#endif
