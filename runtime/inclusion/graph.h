/* graph: a scalar set-valued map cut into monotone pieces, and its inverse.  Between kinks the map is smooth;
 * at a kink the graph is vertical. */
#ifndef CDL_GRAPH_H
#define CDL_GRAPH_H
#include <stdbool.h>
#include "base/arena.h"

typedef struct graph_map {
    void *ud;
    /* value, slope and curvature at x; side -1 or +1: which limit is meant when x is a kink */
    void (*at)(void *ud, double x, int side, double out[3]);
    /* ascending */
    const double *kink;
    int nkink;
} graph_map;

/* up, down: vertical, at x0 == x1 */
typedef enum { PIECE_RISING, PIECE_FALLING, PIECE_UP, PIECE_DOWN } piece_kind;
typedef struct graph_piece {
    double x0, x1, y0, y1;
    piece_kind kind;
} graph_piece;
/* bend: where the curvature changes sign */
typedef struct graph {
    arena *a;
    vec(graph_piece) piece;
    vec(double) grid, bend;
    double lo, hi;
} graph;
typedef struct graph_root {
    double x;
    int piece;
} graph_root;

static inline bool piece_stable(const graph_piece *p)
{
    return p->kind == PIECE_RISING || p->kind == PIECE_UP;
}

/* Cuts the map over [lo, hi]; folds to round-off. */
void graph_build(graph *g, const graph_map *m, double lo, double hi);
/* The graph of a map whose slope is larger by a constant, from that of the flat one: few evaluations. */
void graph_tilt(graph *g, const graph *flat, const graph_map *m);
/* Builds it over a range that holds y and x inside, growing it from `scale`; false: the map does not reach y.
 */
bool graph_cover(graph *g, const graph_map *m, double y, double x, double scale);
/* All x with y in map(x), ascending; at most `cap` are written, the number of all is returned. */
int graph_roots(const graph *g, const graph_map *m, double y, graph_root *out, int cap);
/* The x in piece k with map(x) = y (y between its ends). */
double graph_solve(const graph *g, const graph_map *m, int k, double y);
/* The root that a motion x' = y - map(x) from x reaches first; piece < 0: there is none. If x is on the
   graph, x itself. */
graph_root graph_flow(const graph *g, const graph_map *m, double y, double x);
/* The ends of the strictly increasing branch that piece k belongs to: first and last piece. */
void graph_branch(const graph *g, int k, int *first, int *last);
/* The least slope over the graph (vertical pieces apart): its semi-Lipschitz constant is minus that. */
double graph_least_slope(const graph *g, const graph_map *m);
#endif
