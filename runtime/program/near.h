/* near: pairs of points, or of shapes, that may touch, for families of contacts whose gap is the distance
   of two points minus a length, or the distance of two shapes. Pairs come from cells of the size of reach
   and margin and are searched again when points may have crossed the margin. */
#ifndef CDL_NEAR_H
#define CDL_NEAR_H
#include "system.h"

enum { NEAR_AXES = 3 };

/* The objects that one index of a family numbers, in its order: points, or the middles of bodies. */
typedef struct near_points {
    int32_t lo, n;
    double *x, *seen; /* NEAR_AXES numbers each: now, and when pairs were found */
    double *reach;    /* of each body from its middle; NULL: points, whose pairs all have the same */
    double *way;      /* of each body, within the step */
    uint8_t *level;   /* of bodies: level of the grid that contains each */
    int32_t *next;    /* in the same cell */
} near_points;

/* Points of one level of size, in cells. */
typedef struct near_grid {
    double lo[NEAR_AXES], size;
    int32_t n[NEAR_AXES], points;
    int32_t *cell; /* the first point in each; -1: none */
    size_t room;
} near_grid;
enum { NEAR_LEVELS = 12 }; /* sizes of bodies, by factors of 2 */

/* One family of pairs (i, j): one kind of point depends on each index. */
typedef struct near_pairs {
    family *fam;
    int dim;
    int first;          /* index whose points are near_a of the family, or that reads its first shape */
    int slots;          /* contacts of a pair */
    int sides;          /* 1: the points of index 1 are among those of index 0, whose data are used */
    double reach;       /* largest distance of points that counts as touching */
    vec(int32_t) pair;  /* index 0 and 1, one after the other, in order */
    int64_t *row_start; /* pairs before the first one of each index 0 */
    near_points of[2];  /* of index 0 and 1 */
    near_grid grid[2][NEAR_LEVELS];
    vec(int32_t) back; /* room: pairs found from index 1 */
} near_pairs;

typedef struct near_list {
    arena *a;
    system_t *s;
    int n; /* dofs */
    near_pairs *of;
    size_t nof;
    double skin, far; /* far: how much points, not bodies, may approach in the step */
    double reach;     /* largest of all points */
    bool *point;      /* of each dof: is it a coordinate of a point? */
    double *ahead;    /* n: room */
    bool known;
    int32_t *list;
} near_list;

/* Is it a family of pairs for which a search pays? */
bool near_fits(const contact_family *f);
/* One of points, whose gap is at most their distance minus their reach. */
bool near_of_points(const contact_family *f);
/* The families of s for which that holds. */
void near_new(near_list *w, arena *a, system_t *s);
/* How many steps are looked ahead, as a rule. */
#define NEAR_AHEAD 1.5
/* Finds pairs for a step of size h from q at t with rates v, which may become v1; margin: how many such steps
   are searched ahead; listed: the number of steps for which pairs must be listed, at most `margin`. True:
   they were searched anew. Shapes are placed at time t. */
bool near_keep(near_list *w, double t, const double *q, const double *v, const double *v1, double h,
               double margin, double listed);
/* Is every pair that may touch still listed, considering how far points have moved relative to the
   others? */
bool near_covers(near_list *w, double t, const double *q);
void near_find(near_list *w); /* the pairs of the positions seen, with their margin */
/* Number of a pair among all of its family, from 0. */
/* The dof of coordinate k of the point with number i, of index 0 or 1. */
int32_t near_dof(const near_pairs *p, int index, int32_t i, int k);
int64_t near_rank(const near_pairs *p, int32_t i, int32_t j);
#endif
