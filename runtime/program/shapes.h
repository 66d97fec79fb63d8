/* shapes: bodies of a program that may touch each other.  If two of them are close, the corners, edges and
   faces that touch are found at the start of a step and kept during the step: gaps read them as inputs of
   the kind IN_FEATURE. */
#ifndef CDL_SHAPES_H
#define CDL_SHAPES_H
#include "base/convex.h"
#include "program/program.h"

/* of a point: the numbers of a feature before its id; of a pair */
enum { FEATURE_NUMBERS = 20, PAIR_NUMBERS = FEATURES * FEATURE_NUMBERS };

typedef struct shapes {
    arena *a; /* counts the work of finding features */
    const program *p;
    const double *param;
    size_t n;       /* the first ones of the program */
    convex ***hull; /* of each shape, of each instance */
    body_pose **at, **was;
    double **way; /* how far points of a body move at most between two placements, see shapes_ways */
    double *reg;
    double *feature; /* IN_FEATURE: nfeature numbers */
    int64_t *id;     /* of each point: which features it belongs to; 0: none so far */
    size_t nfeature, room;
    vec(int32_t) spare; /* places of pairs that are no longer listed */
    bool exact;         /* few pairs: features of distant ones are computed too */
    bool deep;          /* contacts give way: bodies overlap by what forces press them together */
    bool every;         /* listed pairs have places for all pairs that results store */
} shapes;

/* Those that may touch each other.  NULL: no two shapes may touch, or *why not. */
shapes *shapes_new(arena *a, const program *p, const double *param, const char **why, span *at);
/* All shapes, for pictures: a hull is NULL if its points have none. NULL: there are no shapes. */
shapes *shapes_seen(arena *a, const program *p, const double *param);
void shapes_place(shapes *w, const inputs *in); /* places the bodies at the current instant */
/* For an instance of a shape: the whole shape lies within this distance of its middle; the middle where it is
   placed. */
double shapes_reach(const shapes *w, int shape, int32_t instance);
void shapes_middle(const shapes *w, int shape, int32_t instance, double *x);
/* Reserves, and releases, an empty place for the data of a listed pair. The array that IN_FEATURE reads may
 * have moved. */
int32_t shapes_take(shapes *w);
void shapes_give(shapes *w, int32_t place);
/* The place in the results of the data of a pair of family f, for its index, which names the member. */
void shapes_index(const program *p, const contact_family *f, int64_t member, int32_t *index);
/* The features of all pairs that results store, at the places of shapes_index; `held` lists the pairs with
   features by member number and place. */
typedef struct held_pair {
    const contact_family *f;
    int64_t member; /* the first of its points */
    int32_t place;
} held_pair;
const double *shapes_kept(const shapes *w, arena *a, const held_pair *held, size_t n);
/* Places the bodies at that time; `way` gets the distances that their points move. Placing them again does
 * not change it. */
void shapes_ways(shapes *w, const inputs *then);
/* of both bodies of a pair */
double shapes_way(const shapes *w, const contact_family *f, const int32_t *index);
/* Finds the points of a pair (a member of f without its last index); anew: for each point, whether its
   features differ from those before. */
void shapes_pair(shapes *w, const contact_family *f, const int32_t *index, bool *anew);
/* The same for a look at another state: what was held is kept in `was`, and held again afterwards. */
typedef struct held_points {
    double number[FEATURES * FEATURE_NUMBERS];
    int64_t id[FEATURES];
} held_points;
void shapes_measure(shapes *w, const contact_family *f, const int32_t *index, held_points *was);
void shapes_hold_again(shapes *w, const contact_family *f, const int32_t *index, const held_points *was);
/* for all pairs except listed ones, unless each of these has a place */
void shapes_all(shapes *w, const inputs *in);
/* distance of the balls around both, as placed */
double shapes_room_between(const shapes *w, const contact_family *f, const int32_t *index);
/* Finds what touches of a pair as its bodies are placed, into `all` (FEATURES), without storing it; returns
   the number. Points more than SHAPE_CLOSE of the size apart may be left out. *size: of both bodies. */
int shapes_meet(const shapes *w, const contact_family *f, const int32_t *index, feature *all, double *size);
/* Does the point with this index never touch? Its gap stays larger than both bodies. */
bool shapes_idle(const shapes *w, const contact_family *f, const int32_t *index);
/* Is it such a point, or the only one of two bodies that are farther apart than their sizes? */
bool shapes_far(const shapes *w, const contact_family *f, const int32_t *index);
bool shapes_holds(const shapes *w, const contact_family *f, const int32_t *index, int64_t id);
/* point: from 0; NULL: a point that never touches. */
void shapes_hold(shapes *w, const contact_family *f, const int32_t *index, int point, const feature *what);
#endif
