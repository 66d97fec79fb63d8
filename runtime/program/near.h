/* near: pairs of points that may touch, for families of contacts whose gap is a distance of two points less
   what they reach.  Pairs come from cells of the size of reach and skin and are found anew when points may
   have crossed the skin. */
#ifndef CDL_NEAR_H
#define CDL_NEAR_H
#include "system.h"

/* One family of pairs (i, j): one kind of point depends on each index. */
typedef struct near_pairs {
    family *fam;
    int first;          /* index whose points are near_a of the family */
    double reach;       /* largest distance that counts as touching */
    vec(int32_t) pair;  /* index 0 and 1, one after the other, in order */
    int64_t *row_start; /* member number of the first pair of each index 0 */
    int32_t lo0, n0, lo1, n1;
} near_pairs;

typedef struct near_list {
    arena *a;
    int n; /* dofs */
    near_pairs *of;
    size_t nof;
    double skin, far; /* far: how much closer points may come in the step */
    double reach;     /* largest of all */
    bool *point;      /* of each dof: is it a coordinate of a point? */
    double *seen;     /* positions for which pairs were found */
    bool known;
    int32_t *cell, *next, *list;
    size_t cells_cap;
} near_list;

/* Is it a family of pairs that is worth a search? */
bool near_fits(const contact_family *f);
/* The families of s for which that holds. */
void near_new(near_list *w, arena *a, system_t *s);
/* How many steps are looked ahead, as a rule. */
#define NEAR_AHEAD 1.5
/* Pairs for a step of size h from q with rates v, which may become v1; margin: how many such steps are looked
 * ahead; listed: for how many of them pairs are to be there, at most as many.  True: they were found anew. */
bool near_keep(near_list *w, const double *q, const double *v, const double *v1, double h, double margin,
               double listed);
/* Has no point moved so far, beside the others, that a pair may touch which is not listed? */
bool near_covers(const near_list *w, const double *q);
void near_find(near_list *w); /* the pairs of w->seen, with its skin */
int64_t near_member(const near_pairs *p, int32_t i, int32_t j);
#endif
