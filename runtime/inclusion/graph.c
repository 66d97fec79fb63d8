#include "graph.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>

/* ---- roots in a bracket ---- */
/* The root of f(x) = out[which] - y in [a, b], where it changes sign; out[which + 1] is its derivative.
 * Newton kept in the bracket. */
static double bracket_solve(const graph_map *m, double a, double b, int side_a, int side_b, int which,
                            double y)
{
    double out[3], fa, x;
    m->at(m->ud, a, side_a, out);
    fa = out[which] - y;
    if (fa == 0)
        return a;
    m->at(m->ud, b, side_b, out);
    if (out[which] - y == 0)
        return b;
    x = 0.5 * (a + b);
    for (int k = 0; k < 200; k++) {
        m->at(m->ud, x, 0, out);
        double f = out[which] - y, next;
        if (f == 0)
            return x;
        if ((f < 0) == (fa < 0))
            a = x;
        else
            b = x;
        next = which < 2 ? x - f / out[which + 1] : NAN;
        /* Newton where it stays inside; else halving, of the exponent where the ends are far apart in size */
        if (!(next > a && next < b)) {
            next = a > 0 && b > 4 * a   ? sqrt(a) * sqrt(b)
                   : b < 0 && a < 4 * b ? -sqrt(-a) * sqrt(-b)
                                        : 0.5 * (a + b);
            if (!(next > a && next < b))
                return fabs(f) < fabs(fa) ? x : a;
        } else if (fabs(next - x) <= 2 * DBL_EPSILON * fabs(x))
            return next;
        x = next;
    }
    return x;
}

/* ---- cutting ---- */
static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

enum { EVEN = 256, OCTAVES = 46 };

/* Points of [a, b]: evenly, and by half octaves towards both ends, where formulas of friction turn quickly.
 */
static void grid_fill(graph *g, double a, double b)
{
    double w = b - a;
    g->grid.n = 0;
    *vec_push(g->a, &g->grid) = a;
    *vec_push(g->a, &g->grid) = b;
    for (int k = 1; k < EVEN; k++)
        *vec_push(g->a, &g->grid) = a + w * k / EVEN;
    for (int k = 3; k < 2 * OCTAVES; k++) {
        double d = w * exp2(-0.5 * k);
        *vec_push(g->a, &g->grid) = a + d;
        *vec_push(g->a, &g->grid) = b - d;
    }
    qsort(g->grid.at, g->grid.n, sizeof *g->grid.at, compare);
}

static void slope_at(const graph_map *m, double x, double a, double b, double out[3])
{
    m->at(m->ud, x, x == a ? 1 : x == b ? -1 : 0, out);
}

/* Adds the points where column `which` (1: slope, 2: curvature) changes sign between points of the grid;
 * found: the new ones alone. */
static size_t grid_roots(graph *g, const graph_map *m, double a, double b, int which, double **found)
{
    size_t n = g->grid.n;
    double prev[3], out[3];
    slope_at(m, g->grid.at[0], a, b, prev);
    for (size_t k = 1; k < n; k++) {
        double x0 = g->grid.at[k - 1], x1 = g->grid.at[k];
        if (x1 <= x0)
            continue;
        slope_at(m, x1, a, b, out);
        if (prev[which] * out[which] < 0 || (out[which] == 0 && x1 < b && prev[which] != 0)) {
            double r = out[which] == 0 ? x1 : bracket_solve(m, x0, x1, 1, -1, which, 0);
            *vec_push(g->a, &g->grid) = r;
        }
        for (int j = 0; j < 3; j++)
            prev[j] = out[j];
    }
    *found = g->grid.at + n;
    return g->grid.n - n;
}

static void piece_add(graph *g, double x0, double x1, double y0, double y1)
{
    piece_kind k = x0 == x1 ? (y1 >= y0 ? PIECE_UP : PIECE_DOWN) : y1 >= y0 ? PIECE_RISING : PIECE_FALLING;
    *vec_push(g->a, &g->piece) = (graph_piece){ x0, x1, y0, y1, k };
}

/* A smooth stretch: cut where the slope changes sign. */
static void stretch_cut(graph *g, const graph_map *m, double a, double b)
{
    double out[3], *fold, x = a, y;
    grid_fill(g, a, b);
    size_t bends = grid_roots(g, m, a, b, 2, &fold);
    for (size_t k = 0; k < bends; k++)
        *vec_push(g->a, &g->bend) = fold[k];
    if (bends)
        qsort(g->grid.at, g->grid.n, sizeof *g->grid.at, compare);
    size_t n = grid_roots(g, m, a, b, 1, &fold);
    qsort(fold, n, sizeof *fold, compare);
    m->at(m->ud, a, 1, out);
    y = out[0];
    for (size_t k = 0; k <= n; k++) {
        double next = k < n ? fold[k] : b;
        if (next <= x)
            continue;
        m->at(m->ud, next, -1, out);
        piece_add(g, x, next, y, out[0]);
        x = next;
        y = out[0];
    }
}

void graph_build(graph *g, const graph_map *m, double lo, double hi)
{
    double left[3], right[3], x = lo;
    g->piece.n = g->bend.n = 0;
    g->lo = lo, g->hi = hi;
    for (int k = 0; k <= m->nkink; k++) {
        double next = k < m->nkink ? m->kink[k] : hi;
        if (next <= lo || next > hi) {
            if (k < m->nkink)
                continue;
            next = hi;
        }
        if (next > x)
            stretch_cut(g, m, x, next);
        x = next;
        if (k == m->nkink)
            break;
        m->at(m->ud, next, -1, left);
        m->at(m->ud, next, 1, right);
        if (left[0] != right[0])
            piece_add(g, next, next, left[0], right[0]);
    }
}

/* A decreasing piece of the flat graph, with the larger slope: its slope is monotone between bends, so it
 * has at most one extremum between two of them. */
static void piece_tilt(graph *g, const graph *flat, const graph_map *m, const graph_piece *p)
{
    double out[3], x = p->x0, a = p->x0, y, d;
    m->at(m->ud, a, 1, out);
    y = out[0], d = out[1];
    for (size_t k = 0; k <= flat->bend.n; k++) {
        double b = k < flat->bend.n ? flat->bend.at[k] : p->x1;
        if (!(b > a && b <= p->x1))
            continue;
        m->at(m->ud, b, -1, out);
        double end = out[0], slope = out[1];
        if (d * slope < 0) {
            double turn = bracket_solve(m, a, b, 1, -1, 1, 0);
            m->at(m->ud, turn, 0, out);
            if (turn > x)
                piece_add(g, x, turn, y, out[0]);
            x = turn, y = out[0];
        }
        a = b, d = slope;
        if (b == p->x1 && b > x)
            piece_add(g, x, b, y, end);
    }
}

void graph_tilt(graph *g, const graph *flat, const graph_map *m)
{
    double out[3];
    g->piece.n = g->bend.n = 0;
    g->lo = flat->lo, g->hi = flat->hi;
    for (size_t k = 0; k < flat->piece.n; k++) {
        const graph_piece *p = &flat->piece.at[k];
        if (p->kind == PIECE_FALLING) {
            piece_tilt(g, flat, m, p);
            continue;
        }
        m->at(m->ud, p->x0, p->x0 == p->x1 ? -1 : 1, out);
        double y = out[0];
        m->at(m->ud, p->x1, p->x0 == p->x1 ? 1 : -1, out);
        piece_add(g, p->x0, p->x1, y, out[0]);
    }
}

bool graph_cover(graph *g, const graph_map *m, double y, double x, double scale)
{
    double lo = x, hi = x, out[3];
    if (g->piece.n && x >= g->lo && x <= g->hi && y > g->piece.at[0].y0 && y < g->piece.at[g->piece.n - 1].y1)
        return true;
    for (int k = 0; k < m->nkink; k++)
        lo = fmin(lo, m->kink[k]), hi = fmax(hi, m->kink[k]);
    for (double w = scale; w < 1e16 * scale; w *= 4) {
        m->at(m->ud, lo - w, 0, out);
        if (!(out[0] < y))
            continue;
        m->at(m->ud, hi + w, 0, out);
        if (!(out[0] > y))
            continue;
        graph_build(g, m, lo - 2 * w, hi + 2 * w);
        return true;
    }
    return false;
}

/* ---- inverting ---- */
double graph_solve(const graph *g, const graph_map *m, int k, double y)
{
    const graph_piece *p = &g->piece.at[k];
    if (p->x0 == p->x1 || y == p->y0)
        return p->x0;
    if (y == p->y1)
        return p->x1;
    return bracket_solve(m, p->x0, p->x1, 1, -1, 0, y);
}

static bool piece_holds(const graph_piece *p, double y)
{
    return (y - p->y0) * (y - p->y1) <= 0;
}

int graph_roots(const graph *g, const graph_map *m, double y, graph_root *out, int cap)
{
    int n = 0;
    double last = NAN;
    for (size_t k = 0; k < g->piece.n; k++) {
        if (!piece_holds(&g->piece.at[k], y))
            continue;
        double x = graph_solve(g, m, (int)k, y);
        if (x == last)
            continue; /* an end that two pieces share */
        if (n < cap)
            out[n] = (graph_root){ x, (int)k };
        n++;
        last = x;
    }
    return n;
}

/* the last piece that begins at or before x */
static int piece_of(const graph *g, double x)
{
    int lo = 0, hi = (int)g->piece.n;
    while (hi - lo > 1) {
        int mid = (lo + hi) / 2;
        if (g->piece.at[mid].x0 <= x)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

graph_root graph_flow(const graph *g, const graph_map *m, double y, double x)
{
    int n = (int)g->piece.n, k, first;
    double out[3];
    if (n == 0)
        return (graph_root){ x, -1 };
    first = k = piece_of(g, x);
    while (first > 0 && g->piece.at[first - 1].x1 >= x)
        first--; /* at a corner or kink several pieces meet */
    for (int j = first; j <= k; j++) {
        const graph_piece *p = &g->piece.at[j];
        if (p->x0 == p->x1 && p->x0 == x && piece_holds(p, y))
            return (graph_root){ x, j };
    }
    m->at(m->ud, x, 1, out);
    if (out[0] == y)
        return (graph_root){ x, k };
    if (out[0] < y) { /* to the right, along pieces that lie below y */
        for (; k < n; k++) {
            const graph_piece *p = &g->piece.at[k];
            if (p->x1 < x || (p->x1 == x && p->x0 < x))
                continue;
            if (p->y1 >= y)
                return (graph_root){ graph_solve(g, m, k, y), k };
        }
        return (graph_root){ x, -1 };
    }
    m->at(m->ud, x, -1, out);
    if (out[0] == y)
        return (graph_root){ x, first };
    for (k = first; k >= 0; k--) {
        const graph_piece *p = &g->piece.at[k];
        if (p->x0 > x || (p->x0 == x && p->x1 > x))
            continue;
        if (p->y0 <= y)
            return (graph_root){ graph_solve(g, m, k, y), k };
    }
    return (graph_root){ x, -1 };
}

void graph_branch(const graph *g, int k, int *first, int *last)
{
    int n = (int)g->piece.n;
    *first = *last = k;
    while (*first > 0 && piece_stable(&g->piece.at[*first - 1]))
        (*first)--;
    while (*last + 1 < n && piece_stable(&g->piece.at[*last + 1]))
        (*last)++;
}

double graph_least_slope(const graph *g, const graph_map *m)
{
    double least = INFINITY, out[3];
    for (size_t k = 0; k < g->piece.n; k++) {
        const graph_piece *p = &g->piece.at[k];
        double w = p->x1 - p->x0;
        if (w == 0) {
            if (p->kind == PIECE_DOWN)
                return -INFINITY;
            continue;
        }
        for (int j = 0; j <= 64; j++) {
            double s = j < 20 ? exp2(j - 40.0) : j > 44 ? 1 - exp2(24.0 - j) : (j - 20) / 24.0;
            if (j == 64)
                s = 1;
            m->at(m->ud, p->x0 + w * s, s == 1 ? -1 : 1, out);
            least = fmin(least, out[1]);
        }
    }
    return least;
}
