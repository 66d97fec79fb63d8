/* convex_clip: a flat face clipped by the sides of another one, and which of its corners support it. */
#include "base/convex_clip.h"
#include <math.h>
#include <stdint.h>
#include "base/vec3.h"

/* A number that identifies the point at which a side cuts the edge from one tag to another. */
static int cut_tag(int side, int from, int to)
{
    uint32_t h = (uint32_t)(side + 1) * 2654435761u;
    h = (h ^ (uint32_t)from) * 2246822519u;
    h = (h ^ (uint32_t)to) * 3266489917u;
    return (int)(h >> 9) | 1 << 22;
}

int clip_side(const clip_point *in, int n, int room, const double *side, double level, int number,
              clip_point *out)
{
    int count = 0;
    for (int k = 0; k < n && count + 2 < room; k++) {
        const clip_point *p = &in[k], *q = &in[(k + 1) % n];
        double s = dot(side, p->x) - level, t = dot(side, q->x) - level;
        if (s <= 0)
            out[count++] = *p;
        if ((s < 0 && t > 0) || (s > 0 && t < 0)) {
            clip_point c = { .tag = cut_tag(number, p->tag, q->tag) };
            copy(c.x, p->x);
            double d[3];
            sub(d, q->x, p->x);
            axpy(c.x, s / (s - t), d);
            out[count++] = c;
        }
        if (n == 2 && k == 0 && t <= 0) { /* a segment has no return edge */
            out[count++] = *q;
            break;
        }
        if (n == 2)
            break;
    }
    return count;
}

/* from point j to point i, in the plane across the normal */
static void beside(const clip_point *p, int i, int j, const double *normal, double *d)
{
    sub(d, p[i].x, p[j].x);
    axpy(d, -dot(d, normal), normal);
}

static double beside2(const clip_point *p, int i, int j, const double *normal)
{
    double d[3];
    beside(p, i, j, normal, d);
    return dot(d, d);
}

/* Twice the signed area of a triangle, seen from the side to which the normal points. */
static double area_of(const clip_point *p, int i, int j, int k, const double *normal)
{
    double u[3], w[3], c[3];
    beside(p, j, i, normal, u);
    beside(p, k, i, normal, w);
    cross(c, u, w);
    return dot(c, normal);
}

/* How much a point adds to those that are taken: its distance, or the area beyond their line or their
   triangle.  `same` or less counts as nothing. */
static double adds(const clip_point *p, int i, const int *taken, int n, const double *normal, double same)
{
    double most = 0;
    for (int k = 0; k < n; k++)
        if (beside2(p, i, taken[k], normal) <= same * same)
            return 0;
    if (n == 1)
        return beside2(p, i, taken[0], normal);
    if (n == 2)
        return fabs(area_of(p, taken[0], taken[1], i, normal));
    double turn = area_of(p, taken[0], taken[1], taken[2], normal) < 0 ? -1 : 1;
    for (int k = 0; k < n; k++)
        most = fmax(most, -turn * area_of(p, taken[k], taken[(k + 1) % n], i, normal));
    return most > same * same ? most : 0;
}

/* The point to take next: the one that adds most.  Points between corners add little and are taken last, as
   rounding decides where they lie.  The first one is the nearest; if there are several, the one furthest from
   the middle of all. */
int point_next(const clip_point *p, int n, const int *taken, int ntaken, const double *normal, double same)
{
    int best = -1;
    double most = 0;
    for (int i = 0; i < n; i++) {
        double s = adds(p, i, taken, ntaken, normal, same);
        if (s > most) {
            most = s;
            best = i;
        }
    }
    return best;
}

int point_first(const clip_point *p, int n, const double *normal, double small)
{
    double middle[3] = { 0 }, least = INFINITY, most = -1;
    int best = -1;
    for (int i = 0; i < n; i++) {
        axpy(middle, 1.0 / n, p[i].x);
        least = fmin(least, dot(normal, p[i].x));
    }
    for (int i = 0; i < n; i++) {
        double d[3];
        sub(d, p[i].x, middle);
        axpy(d, -dot(d, normal), normal);
        if (dot(normal, p[i].x) <= least + small && dot(d, d) > most) {
            most = dot(d, d);
            best = i;
        }
    }
    return best;
}
