/* convex_round: where two bodies touch if one is a cylinder or an ellipsoid. The separation along any normal
   is at most the gap, so of all normals that are tried, the one with the largest separation is used: those of
   faces and flat ends, and for corners and edges near the touching points those that separate them most
   (Newton's method on the sphere). A first normal comes from bodies shrunk towards their middles (E. Gilbert,
   D. Johnson, S. Keerthi, A fast procedure for computing the distance between complex objects, 1988). */
#include "base/convex_round.h"
#include <stdint.h>
#include "base/convex_clip.h"
#include "base/tolerances.h"
#include "base/vec3.h"

/* A body in its current pose. */
typedef struct side {
    const convex *c;
    const body_pose *at;
    double *v, *normal, *level; /* of its core */
    double E[9], axis[3], middle[3];
} side;

typedef struct meeting {
    side x, y;
    double size; /* of both bodies: smaller lengths relative to it count as 0 */
    feature *out;
    int n;
} meeting;

static size_t side_room(const convex *c)
{
    return 3 * (size_t)c->nv + 4 * (size_t)c->nf;
}

static void side_place(side *s, const convex *c, const body_pose *at, double *room)
{
    double half[9];
    s->c = c;
    s->at = at;
    s->v = room;
    s->normal = s->v + 3 * c->nv;
    s->level = s->normal + 3 * c->nf;
    for (int i = 0; i < c->nv; i++)
        placed(at, c->v + 3 * i, s->v + 3 * i);
    for (int f = 0; f < c->nf; f++) {
        turned(at, c->normal + 3 * f, s->normal + 3 * f);
        s->level[f] = c->level[f] + dot(s->normal + 3 * f, at->p);
    }
    placed(at, c->middle, s->middle);
    turned(at, c->axis, s->axis);
    for (int i = 0; i < 3; i++) /* A E A^T */
        turned(at, c->E + 3 * i, half + 3 * i);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            s->E[3 * i + j] = 0;
            for (int k = 0; k < 3; k++)
                s->E[3 * i + j] += at->A[3 * i + k] * half[3 * k + j];
        }
}

/* ---- the separation along a normal ---- */

/* How far the added shape extends along n, and its farthest point; if it is flat there, the middle of that
   part. */
static double round_at(const side *s, const double *n, double *to)
{
    double e[3], k;
    if (s->c->ends) { /* a disk: only the part of n across the axis counts */
        copy(e, n);
        axpy(e, -dot(n, s->axis), s->axis);
        k = unit(e);
        if (k <= CYLINDER_STANDS)
            k = 0;
        axpy(e, -dot(e, s->axis), s->axis); /* rounding along the axis, by 1/k as large as it was */
        for (int i = 0; i < 3; i++)
            to[i] = k > 0 ? s->c->radius * e[i] : 0;
        return s->c->radius * k;
    }
    for (int i = 0; i < 3; i++)
        e[i] = dot(s->E + 3 * i, n);
    k = sqrt(fmax(dot(n, e), 0));
    for (int i = 0; i < 3; i++)
        to[i] = k > 0 ? e[i] / k : 0;
    return k;
}

static int corner_along(const side *s, const double *n)
{
    int best = 0;
    for (int i = 1; i < s->c->nv; i++)
        if (dot(n, s->v + 3 * i) > dot(n, s->v + 3 * best))
            best = i;
    return best;
}

/* The farthest point of a body along n, and the corner that it belongs to. */
static int furthest(const side *s, const double *n, double *to)
{
    double round[3];
    int i = corner_along(s, n);
    round_at(s, n, round);
    copy(to, s->v + 3 * i);
    axpy(to, 1, round);
    return i;
}

/* n: from y to x, of length 1. */
static double parted(const meeting *m, const double *n)
{
    double back[3] = { -n[0], -n[1], -n[2] }, p[3], q[3], d[3], kx = round_at(&m->x, n, p),
           ky = round_at(&m->y, n, q);
    int i = corner_along(&m->x, back), j = corner_along(&m->y, n);
    sub(d, m->x.v + 3 * i, m->y.v + 3 * j);
    return dot(n, d) - kx - ky;
}

/* ---- a first normal ---- */

enum { CORNERS = 4 }; /* of a simplex in space */
typedef struct simplex {
    int n;
    double point[CORNERS][3];
    int i[CORNERS], j[CORNERS]; /* corners of both bodies */
} simplex;

/* The point of the affine hull of some corners that is nearest to the origin; false: it is not inside them.
 */
static bool nearest_of(const simplex *s, const int *of, int n, double *to)
{
    double A[3][4], e[3][3], weight[3] = { 0 }, first = 1;
    const double *o = s->point[of[0]];
    for (int i = 1; i < n; i++)
        sub(e[i - 1], s->point[of[i]], o);
    for (int i = 0; i < n - 1; i++) {
        for (int j = 0; j < n - 1; j++)
            A[i][j] = dot(e[i], e[j]);
        A[i][3] = -dot(e[i], o);
    }
    for (int k = 0; k < n - 1; k++) { /* positive definite if the corners are independent */
        if (!(A[k][k] > GATE_DEPENDENT * dot(e[k], e[k])))
            return false;
        for (int i = 0; i < n - 1; i++) {
            double f = i == k ? 0 : A[i][k] / A[k][k];
            for (int j = 0; f != 0 && j < 4; j++)
                if (j == 3 || j < n - 1)
                    A[i][j] -= f * A[k][j];
        }
    }
    copy(to, o);
    for (int k = 0; k < n - 1; k++) {
        weight[k] = A[k][3] / A[k][k];
        first -= weight[k];
        axpy(to, weight[k], e[k]);
        if (weight[k] < 0)
            return false;
    }
    return first >= 0;
}

/* Keeps only the corners to which the nearest point belongs; false: the origin lies inside. */
static bool simplex_narrows(simplex *s, double *to)
{
    int best = 0;
    double least = INFINITY;
    for (int mask = 1; mask < 1 << s->n; mask++) {
        int of[CORNERS] = { 0 }, n = 0;
        double p[3];
        for (int k = 0; k < s->n; k++)
            if (mask >> k & 1)
                of[n++] = k;
        if (!nearest_of(s, of, n, p))
            continue;
        if (n == CORNERS)
            return false;
        if (dot(p, p) < least) {
            least = dot(p, p);
            best = mask;
            copy(to, p);
        }
    }
    int n = 0;
    for (int k = 0; k < s->n; k++)
        if (best >> k & 1) {
            memmove(s->point[n], s->point[k], sizeof s->point[n]);
            s->i[n] = s->i[k];
            s->j[n++] = s->j[k];
        }
    s->n = n;
    return true;
}

static void corner_put(const meeting *m, simplex *s, const double *n, double drawn, double *to)
{
    double back[3] = { -n[0], -n[1], -n[2] }, p[3], q[3];
    s->i[s->n] = furthest(&m->x, back, p);
    s->j[s->n] = furthest(&m->y, n, q);
    for (int k = 0; k < 3; k++) {
        p[k] += drawn * (m->x.middle[k] - p[k]);
        q[k] += drawn * (m->y.middle[k] - q[k]);
    }
    sub(to, p, q);
    copy(s->point[s->n], to);
}

/* The direction from y to x in which they are separated when shrunk towards their middles by the fraction
   `drawn`; false: they still meet. */
static bool apart_along(const meeting *m, double drawn, double *n, simplex *s)
{
    enum { MOST = 60 };
    double at[3], next[3], length = 0;
    sub(n, m->x.middle, m->y.middle);
    if (unit(n) == 0)
        n[0] = 1;
    s->n = 0;
    corner_put(m, s, n, drawn, at);
    s->n = 1;
    for (int it = 0; it < MOST; it++) {
        length = sqrt(dot(at, at));
        if (length <= APART_LEAST * m->size)
            return false;
        for (int k = 0; k < 3; k++)
            n[k] = at[k] / length;
        corner_put(m, s, n, drawn, next);
        if (dot(n, next) >= length * (1 - APART_ENOUGH))
            break;
        s->n++;
        if (!simplex_narrows(s, at))
            return false;
        if (!(dot(at, at) < length * length))
            break;
    }
    return true;
}

/* ---- normals of corners and edges ---- */

typedef struct choice {
    double far, n[3];
    enum { OF_FACE_Y, OF_FACE_X, OF_CORNERS } kind;
    int face;               /* for a cylinder: which end */
    int i[2], j[2], ni, nj; /* a corner or an edge of each */
    bool stays;             /* the normal does not turn with the bodies: none separates them most */
    bool meets;             /* these corners lie furthest along it, and no others further */
} choice;

/* The direction of an edge; a normal of an edge must be across it. */
static bool edge_of(const side *s, const int *i, int n, double *u)
{
    if (n < 2)
        return false;
    sub(u, s->v + 3 * i[1], s->v + 3 * i[0]);
    return unit(u) > 0;
}

/* Unit vectors that the normal must be perpendicular to; returns their number, 3 if there are too many. */
static int directions_held(const meeting *m, const choice *c, double held[3][3])
{
    int n = 0;
    if (m->x.c->dim == 2) {
        held[0][0] = held[0][1] = 0;
        held[n++][2] = 1;
    }
    for (int pass = 0; pass < 2; pass++) {
        double u[3];
        if (!(pass ? edge_of(&m->y, c->j, c->nj, u) : edge_of(&m->x, c->i, c->ni, u)))
            continue;
        for (int k = 0; k < n && n < 3; k++)
            axpy(u, -dot(u, held[k]), held[k]);
        if (n == 3 || !(unit(u) > EDGES_ALONG))
            continue;
        copy(held[n++], u);
    }
    return n;
}

/* Directions in which the normal may turn; returns their number. */
static int turns_of(const double *n, double held[3][3], int nheld, double turn[2][3])
{
    if (nheld == 1) {
        cross(turn[0], held[0], n);
        unit(turn[0]);
        return 1;
    }
    double least[3] = { 0 };
    least[fabs(n[0]) < 0.6 ? 0 : fabs(n[1]) < 0.6 ? 1 : 2] = 1;
    cross(turn[0], least, n);
    unit(turn[0]);
    cross(turn[1], n, turn[0]);
    return 2;
}

/* Adds the curvature of the added shape: -d2 k/dn2 along the directions in which the normal may turn. */
static void curve_add(const side *s, const double *n, double turn[2][3], int count, double *H)
{
    double p[3], k = round_at(s, n, p), e[2][3] = { { 0 } };
    if (k == 0)
        return;
    for (int a = 0; a < count; a++)
        for (int i = 0; i < 3; i++)
            e[a][i] = dot(s->E + 3 * i, turn[a]) / k;
    for (int a = 0; a < count; a++)
        for (int b = 0; b < count; b++)
            H[2 * a + b] += dot(turn[a], e[b]) - dot(turn[a], p) * dot(turn[b], p) / k;
}

/* The vector between the touching points of the first corners; returns the gap along n. */
static double between(const meeting *m, const choice *c, const double *n, double *r)
{
    double p[3], q[3];
    round_at(&m->x, n, p);
    round_at(&m->y, n, q);
    sub(r, m->x.v + 3 * c->i[0], m->y.v + 3 * c->j[0]);
    axpy(r, -1, p);
    axpy(r, -1, q);
    return dot(n, r);
}

/* Minus the second derivative of the gap by rotations of the normal; returns its least eigenvalue. */
static double curvature(const meeting *m, const double *n, double far, double turn[2][3], int count,
                        double *H)
{
    for (int k = 0; k < 4; k++)
        H[k] = k % 3 == 0 ? far : 0;
    curve_add(&m->x, n, turn, count, H);
    curve_add(&m->y, n, turn, count, H);
    return count == 1 ? H[0] : (H[0] + H[3]) / 2 - hypot((H[0] - H[3]) / 2, H[1]);
}

/* Newton's step on the sphere; false: the normal stays. */
static bool normal_turns(const meeting *m, const choice *c, double held[3][3], int nheld, double *n)
{
    enum { HALVED = 12 };
    double turn[2][3], H[4], r[3], g[2] = { 0 }, step[2] = { 0 }, far = between(m, c, n, r);
    int count = turns_of(n, held, nheld, turn);
    double least = curvature(m, n, far, turn, count, H), shift = CURVED_LEAST * m->size - least;
    for (int a = 0; a < count; a++)
        g[a] = dot(turn[a], r);
    if (least <= CURVED_NOT * m->size) { /* it is a minimum there, or the normal is free to turn */
        H[0] += shift;
        H[3] += shift;
    }
    if (count == 1)
        step[0] = g[0] / H[0];
    else {
        double det = H[0] * H[3] - H[1] * H[2];
        step[0] = (H[3] * g[0] - H[1] * g[1]) / det;
        step[1] = (H[0] * g[1] - H[2] * g[0]) / det;
    }
    double way = hypot(step[0], step[1]), share = way > 0.5 ? 0.5 / way : 1;
    for (int k = 0; k < HALVED; k++, share /= 2) {
        double to[3], now[3];
        copy(to, n);
        axpy(to, share * step[0], turn[0]);
        if (count == 2)
            axpy(to, share * step[1], turn[1]);
        unit(to);
        /* close to the solution the gap no longer shows progress */
        if (way < NORMAL_CLOSE || between(m, c, to, now) >= far) {
            copy(n, to);
            return way > NORMAL_SAME;
        }
    }
    return false;
}

/* The normal near n that separates a corner or an edge of one body most from one of the other; false: there
   is none. */
static bool normal_of(const meeting *m, choice *c, const double *near)
{
    enum { MOST = 40 };
    double held[3][3];
    int nheld = directions_held(m, c, held);
    copy(c->n, near);
    if (nheld > 2)
        return false;
    if (nheld == 2) {
        double back[3];
        cross(c->n, held[0], held[1]);
        unit(c->n);
        for (int k = 0; k < 3; k++)
            back[k] = -c->n[k];
        if (parted(m, back) > parted(m, c->n))
            copy(c->n, back);
        return true;
    }
    for (int k = 0; k < nheld; k++)
        axpy(c->n, -dot(c->n, held[k]), held[k]);
    if (!(unit(c->n) > 0.1))
        return false;
    for (int it = 0; it < MOST && normal_turns(m, c, held, nheld, c->n); it++)
        ;
    return true;
}

/* ---- which normal ---- */

/* Of an edge and its ends that have one normal, the edge is kept: along its ends alone the normal would not
   be that which parts them most. */
static void consider(const meeting *m, choice *best, choice *c)
{
    double r[3];
    c->far = parted(m, c->n);
    c->meets = c->kind != OF_CORNERS || between(m, c, c->n, r) <= c->far + CURVED_NOT * m->size;
    if (c->far > best->far + CONVEX_ROUND * m->size ||
        (c->meets && !best->meets && c->far > best->far - CURVED_NOT * m->size))
        *best = *c;
}

static void planes_consider(const meeting *m, choice *best)
{
    for (int pass = 0; pass < 2; pass++) {
        const side *of = pass ? &m->x : &m->y;
        choice c = { .kind = pass ? OF_FACE_X : OF_FACE_Y };
        int planes = of->c->ends ? 2 : of->c->nf;
        for (int f = 0; f < planes; f++) {
            const double *outward = of->c->ends ? of->axis : of->normal + 3 * f;
            double toward = (pass ? -1.0 : 1.0) * (of->c->ends && f == 0 ? -1 : 1);
            for (int k = 0; k < 3; k++)
                c.n[k] = toward * outward[k];
            c.face = f;
            consider(m, best, &c);
        }
    }
}

enum { NEAR_MOST = 6 };
typedef struct near_corners {
    int i[NEAR_MOST], j[NEAR_MOST], ni, nj;
} near_corners;

static bool corner_new(int *list, int *n, int i)
{
    for (int k = 0; k < *n; k++)
        if (list[k] == i)
            return false;
    if (*n == NEAR_MOST)
        return false;
    list[(*n)++] = i;
    return true;
}

/* All corners and edges formed by the nearby corners. */
static void corners_consider(const meeting *m, const near_corners *near, const double *n, choice *best)
{
    for (int a = 0; a < near->ni; a++)
        for (int b = a; b < near->ni; b++)
            for (int p = 0; p < near->nj; p++)
                for (int q = p; q < near->nj; q++) {
                    choice c = { .kind = OF_CORNERS,
                                 .i = { near->i[a], near->i[b] },
                                 .j = { near->j[p], near->j[q] },
                                 .ni = 1 + (a != b),
                                 .nj = 1 + (p != q) };
                    if (normal_of(m, &c, n))
                        consider(m, best, &c);
                }
}

/* A fixed normal, with the corners that are extreme along it. */
static choice choice_along(const meeting *m, const double *n)
{
    const double back[3] = { -n[0], -n[1], -n[2] };
    choice c = { .kind = OF_CORNERS,
                 .far = parted(m, n),
                 .i = { corner_along(&m->x, back) },
                 .j = { corner_along(&m->y, n) },
                 .ni = 1,
                 .nj = 1,
                 .stays = true };
    copy(c.n, n);
    return c;
}

/* The normal from the rim of a flat end of a cylinder to a body beside it; false: that body lies over the
   end. */
static bool from_rim(const meeting *m, const choice *end, double *n)
{
    bool of_x = end->kind == OF_FACE_X;
    const side *of = of_x ? &m->x : &m->y, *other = of_x ? &m->y : &m->x;
    double toward[3], back[3], p[3], d[3];
    if (end->kind == OF_CORNERS || !of->c->ends)
        return false;
    for (int k = 0; k < 3; k++) {
        toward[k] = of_x ? -end->n[k] : end->n[k];
        back[k] = -toward[k];
    }
    furthest(other, back, p);
    sub(d, p, of->v + 3 * end->face);
    axpy(d, -dot(d, toward), toward);
    double beside = sqrt(dot(d, d));
    if (beside <= of->c->radius)
        return false;
    sub(n, p, of->v + 3 * end->face);
    axpy(n, -of->c->radius / beside, d);
    for (int k = 0; k < 3 && of_x; k++)
        n[k] = -n[k];
    return unit(n) > 0;
}

static choice normal_find(const meeting *m)
{
    enum { DRAWN = 7, ROUNDS = 8 };
    static const double drawn[DRAWN] = { 0, 1e-4, 1e-3, 1e-2, 0.1, 0.5, 0.9 };
    choice best = { .far = -INFINITY };
    near_corners near = { .ni = 0 };
    simplex s = { .n = 0 };
    double n[3] = { 1, 0, 0 }, rim[3];
    planes_consider(m, &best);
    const choice plane = best;
    bool beside = from_rim(m, &plane, rim);
    for (int k = 0; k < DRAWN && !apart_along(m, drawn[k], n, &s); k++)
        s.n = 0;
    for (int k = 0; k < s.n; k++) {
        corner_new(near.i, &near.ni, s.i[k]);
        corner_new(near.j, &near.nj, s.j[k]);
    }
    choice as_is = choice_along(m, n);
    for (int round = 0; round < ROUNDS; round++) {
        const double *to = round ? best.n : n, back[3] = { -to[0], -to[1], -to[2] };
        bool any = corner_new(near.i, &near.ni, corner_along(&m->x, back));
        any |= corner_new(near.j, &near.nj, corner_along(&m->y, to));
        if (round > 0 && !any)
            break;
        corners_consider(m, &near, n, &best);
        if (beside) {
            corners_consider(m, &near, rim, &best);
            corners_consider(m, &near, plane.n, &best); /* a line that lies nearly along the end */
        }
    }
    if (as_is.far > best.far + CURVED_NOT * m->size)
        return as_is;
    /* they overlap: use other corners than those that touch along this normal */
    if (!best.meets)
        return choice_along(m, best.n);
    return best;
}

/* ---- features ---- */

enum { KIND_OVER_Y = 16, KIND_OVER_X, KIND_CORNERS };

static int64_t id_of(int kind, int i, int j)
{
    return ((int64_t)kind << 48) | ((int64_t)(i + 1) << 24) | (int64_t)(j + 1);
}

static void put(meeting *m, const feature *f)
{
    for (int k = 0; k < m->n; k++)
        if (m->out[k].id == f->id)
            return;
    if (m->n < FEATURES)
        m->out[m->n++] = *f;
}

/* A point p of one body (of its core, if its added shape is part of the gap) over a plane of the other body,
   x or y. */
static void plane_put(meeting *m, bool of_x, const double *outward, double level, const double *p, bool round,
                      int64_t id)
{
    const side *of = of_x ? &m->x : &m->y, *other = of_x ? &m->y : &m->x;
    feature f = { .of_a = of_x, .id = id };
    double at[3], down[3], n[3];
    copy(at, p);
    for (int k = 0; k < 3; k++)
        n[k] = of_x ? -outward[k] : outward[k];
    if (round) {
        round_at(other, outward, down);
        axpy(at, -1, down);
    }
    f.gap = dot(outward, at) - level;
    axpy(at, -f.gap, outward);
    placed_back(other->at, p, of_x ? f.b : f.a);
    placed_back(of->at, at, of_x ? f.a : f.b);
    *(of_x ? &f.round_b : &f.round_a) = round;
    turned_back(of->at, n, f.n);
    put(m, &f);
}

/* The closest points of both edges, or of their corners; r: vector between the touching points. */
static void places_on(const meeting *m, const choice *c, const double *r, double *a, double *b)
{
    double u[3], w[3], d[3], both[3];
    bool on_x = edge_of(&m->x, c->i, c->ni, u), on_y = edge_of(&m->y, c->j, c->nj, w);
    copy(a, m->x.v + 3 * c->i[0]);
    copy(b, m->y.v + 3 * c->j[0]);
    copy(d, r);
    axpy(d, -dot(c->n, r), c->n);
    if (on_x && on_y) {
        cross(both, u, w);
        if (dot(both, both) > EDGES_PARALLEL * EDGES_PARALLEL) {
            double x[3], y[3];
            cross(x, d, w);
            cross(y, d, u);
            axpy(a, -dot(x, both) / dot(both, both), u);
            axpy(b, -dot(y, both) / dot(both, both), w);
            return;
        }
        /* the middle of the part in which they lie beside each other */
        double e[3], lo, hi, from = dot(d, w), to;
        sub(e, m->x.v + 3 * c->i[1], m->x.v + 3 * c->i[0]);
        to = from + dot(e, w);
        sub(e, m->y.v + 3 * c->j[1], m->y.v + 3 * c->j[0]);
        lo = fmax(0, fmin(from, to));
        hi = fmin(dot(e, w), fmax(from, to));
        axpy(b, (lo + hi) / 2, w);
        axpy(a, dot(u, w) * ((lo + hi) / 2 - from), u);
    } else if (on_x)
        axpy(a, -dot(d, u), u);
    else if (on_y)
        axpy(b, dot(d, w), w);
}

/* Sine of the angle between a normal and the axis of a cylinder. */
static double off_axis(const side *s, const double *n)
{
    double across[3];
    if (!s->c->ends)
        return INFINITY;
    copy(across, n);
    axpy(across, -dot(n, s->axis), s->axis);
    return sqrt(dot(across, across));
}

/* A normal of corners and edges, and how it turns. */
static void corners_put(meeting *m, const choice *c, int64_t id)
{
    feature f = { .round_a = 1, .round_b = 1, .id = id };
    double a[3], b[3], r[3], u[3], w[3], both[3], held[3][3], turn[2][3] = { { 0 } }, H[4];
    bool on_x = edge_of(&m->x, c->i, c->ni, u), on_y = edge_of(&m->y, c->j, c->nj, w);
    bool crossing = false;
    f.gap = between(m, c, c->n, r);
    places_on(m, c, r, a, b);
    placed_back(m->x.at, a, f.a);
    placed_back(m->y.at, b, f.b);
    if (m->x.c->dim == 3 && on_x && on_y) {
        cross(both, u, w);
        crossing = dot(both, both) > EDGES_PARALLEL * EDGES_PARALLEL;
    }
    /* Near the axis of a cylinder its rim curves so much that no step of Newton's method goes along with it.
       The normal stays in the frame of that body then, since its round reaches R times this sine along it. */
    double off_x = off_axis(&m->x, c->n), off_y = off_axis(&m->y, c->n);
    bool stays = c->stays || fmin(off_x, off_y) < RIM_NEAR;
    f.of_a = fmin(off_x, off_y) < RIM_NEAR ? off_x < off_y : on_x && !on_y;
    const body_pose *at = f.of_a != 0 ? m->x.at : m->y.at;
    turned_back(at, c->n, f.n);
    if (crossing) {
        cross(turn[0], w, c->n);
        turned_back(at, turn[0], f.s);
        turned_back(m->x.at, u, f.t);
        f.crossing = 1;
        put(m, &f);
        return;
    }
    int nheld = directions_held(m, c, held);
    if (m->x.c->dim == 3 && nheld > 1) { /* parallel edges */
        copy(held[0], w);
        nheld = 1;
    }
    if (nheld < 2) {
        int count = turns_of(c->n, held, nheld, turn);
        bool turns = !stays && curvature(m, c->n, f.gap, turn, count, H) > CURVED_LEAST * m->size;
        f.edge = turns && m->x.c->dim == 3 && nheld == 1;
        if (turns)
            turned_back(at, turn[0], f.s);
        if (f.edge != 0)
            turned_back(at, held[0], f.t);
        else if (turns && count == 2)
            turned_back(at, turn[1], f.t);
    }
    put(m, &f);
}

/* ---- points of flat faces and of lines ---- */

enum { RIM = 48, THIRD = RIM / 3, RIM_TAG = 1 << 20 };

/* The part of a body that faces a direction: a face, a line, or a point. */
typedef struct facing {
    clip_point *p; /* allocated for facing_room corners */
    int n;
    bool round, rim; /* its added shape is part of the gap; it is the flat end `end` of a cylinder */
    int end;
} facing;

static int facing_room(const side *s)
{
    return s->c->ends ? RIM : s->c->widest > 2 ? s->c->widest : 2;
}

static void rim_put(const side *s, int end, facing *f)
{
    double least[3] = { 0 }, u[3], w[3], own[3];
    copy(own, s->c->axis); /* rim points are fixed to the body */
    least[fabs(own[0]) < 0.6 ? 0 : fabs(own[1]) < 0.6 ? 1 : 2] = 1;
    cross(u, least, own);
    unit(u);
    cross(w, own, u);
    for (int k = 0; k < RIM; k++) {
        double y[3], angle = 2 * M_PI * k / RIM;
        copy(y, s->c->v + 3 * end);
        axpy(y, s->c->radius * cos(angle), u);
        axpy(y, s->c->radius * (end ? 1 : -1) * sin(angle), w);
        placed(s->at, y, f->p[k].x);
        f->p[k].tag = RIM_TAG + RIM * end + k;
    }
    f->n = RIM;
    f->rim = true;
    f->end = end;
}

static void face_put(const side *s, int face, facing *f)
{
    const convex *c = s->c;
    f->n = 0;
    for (int k = c->first[face]; k < c->first[face + 1]; k++) {
        f->p[f->n].tag = c->loop[k];
        copy(f->p[f->n++].x, s->v + 3 * c->loop[k]);
    }
}

/* The part that is farthest along n. */
static void facing_put(const side *s, const double *n, facing *f)
{
    const convex *c = s->c;
    double along = dot(s->axis, n);
    f->round = f->rim = false;
    if (c->ends && along * along > 0.5) {
        rim_put(s, along > 0, f);
        return;
    }
    if (c->nf == 0) {
        f->round = true;
        for (f->n = 0; f->n < c->nv; f->n++) {
            f->p[f->n].tag = f->n;
            copy(f->p[f->n].x, s->v + 3 * f->n);
        }
        return;
    }
    int low = corner_along(s, n), best = -1;
    for (int k = 0, face = 0; k < c->first[c->nf]; k++) {
        while (k >= c->first[face + 1])
            face++;
        if (c->loop[k] == low && (best < 0 || dot(n, s->normal + 3 * face) > dot(n, s->normal + 3 * best)))
            best = face;
    }
    face_put(s, best, f);
}

/* Keeps only the part over a face, seen along its normal. */
static void facing_clip(facing *f, const facing *over, const double *normal, double size)
{
    int most = f->n + over->n + 2;
    clip_point room[most];
    for (int k = 0; k < over->n && f->n; k++) {
        double u[3], beside[3];
        const double *p = over->p[k].x, *q = over->p[k + 1 < over->n ? k + 1 : 0].x;
        sub(u, q, p);
        cross(beside, u, normal);
        if (unit(beside) == 0)
            continue;
        double level = dot(beside, p) + CLIP_EDGE * size;
        if (f->n == 1) {
            f->n = dot(beside, f->p[0].x) <= level;
            continue;
        }
        f->n = clip_side(f->p, f->n, most, beside, level, k, room);
        memcpy(f->p, room, (size_t)f->n * sizeof *room);
    }
}

static const clip_point *tagged(const facing *f, int tag)
{
    for (int k = 0; k < f->n; k++)
        if (f->p[k].tag == tag)
            return &f->p[k];
    return NULL;
}

/* The plane of a face of x or y, and the part of the other body over it. A standing cylinder has the lowest
   point of its rim, wherever it is, and three fixed points of the rim if the whole rim is over the face. */
static void plane_points(meeting *m, const choice *c)
{
    bool of_x = c->kind == OF_FACE_X;
    const side *of = of_x ? &m->x : &m->y, *other = of_x ? &m->y : &m->x;
    int most = facing_room(of) + facing_room(other) + 2, kind = of_x ? KIND_OVER_X : KIND_OVER_Y;
    clip_point on_room[facing_room(of)], over_room[most];
    facing on = { .p = on_room }, over = { .p = over_room };
    double outward[3], back[3], level;
    for (int k = 0; k < 3; k++) {
        outward[k] = of_x ? -c->n[k] : c->n[k];
        back[k] = -outward[k];
    }
    if (of->c->ends)
        rim_put(of, c->face, &on);
    else
        face_put(of, c->face, &on);
    level = of->c->ends ? dot(outward, of->v + 3 * c->face) : of->level[c->face];
    facing_put(other, back, &over);
    bool rim = over.rim;
    int end = over.end;
    if (rim) {
        double low[3];
        clip_point lowest;
        facing alone = { .p = &lowest, .n = 1 };
        round_at(other, back, low);
        copy(lowest.x, other->v + 3 * end);
        axpy(lowest.x, 1, low);
        facing_clip(&alone, &on, outward, m->size);
        if (alone.n)
            plane_put(m, of_x, outward, level, other->v + 3 * end, true,
                      id_of(kind, RIM_TAG - 1 - end, c->face));
    } else if (over.round) /* by points of its surface */
        for (int k = 0; k < over.n; k++) {
            double low[3];
            round_at(other, back, low);
            axpy(over.p[k].x, 1, low);
        }
    facing_clip(&over, &on, outward, m->size);
    if (rim && tagged(&over, RIM_TAG + RIM * end) && tagged(&over, RIM_TAG + RIM * end + THIRD) &&
        tagged(&over, RIM_TAG + RIM * end + 2 * THIRD)) {
        for (int k = 0; k < 3; k++) {
            const clip_point *p = tagged(&over, RIM_TAG + RIM * end + k * THIRD);
            plane_put(m, of_x, outward, level, p->x, false, id_of(kind, p->tag, c->face));
        }
        return;
    }
    int taken[FEATURES], ntaken = 0, next = point_first(over.p, over.n, outward, CORNER_SAME * m->size);
    while (next >= 0 && ntaken < FEATURES) {
        const clip_point *p = &over.p[next];
        double at[3];
        copy(at, p->x);
        if (over.round) {
            double low[3];
            round_at(other, back, low);
            axpy(at, -1, low);
        }
        taken[ntaken++] = next;
        plane_put(m, of_x, outward, level, at, over.round, id_of(kind, p->tag, c->face));
        next = point_next(over.p, over.n, taken, ntaken, outward, POINT_STAYS * m->size);
    }
}

/* The edge of a body at a corner that is most parallel to u; false: there is none. */
static bool edge_along(const side *s, const int *i, int n, const double *u, int *edge)
{
    double most = 0;
    if (n == 2 || s->c->ne == 0) {
        memcpy(edge, i, 2 * sizeof *edge);
        return n == 2;
    }
    for (int e = 0; e < s->c->ne; e++) {
        const int *ends = s->c->edge + 4 * e;
        double w[3];
        if ((ends[0] != i[0] && ends[1] != i[0]) || !edge_of(s, ends, 2, w))
            continue;
        if (!u || fabs(dot(u, w)) > most) {
            most = u ? fabs(dot(u, w)) : 1;
            memcpy(edge, ends, 2 * sizeof *edge);
        }
    }
    return most > 0;
}

/* An end of an edge of one body beside an edge of the other. */
static void end_put(meeting *m, const choice *lines, const double *n, bool of_x, int end)
{
    choice c = *lines;
    double r[3], a[3], b[3];
    if (of_x) {
        c.i[0] = lines->i[end];
        c.ni = 1;
    } else {
        c.j[0] = lines->j[end];
        c.nj = 1;
    }
    if (!normal_of(m, &c, n))
        return;
    const side *to = of_x ? &m->y : &m->x;
    const int *edge = of_x ? c.j : c.i;
    double u[3], d[3], length;
    between(m, &c, c.n, r);
    places_on(m, &c, r, a, b);
    sub(u, to->v + 3 * edge[1], to->v + 3 * edge[0]);
    length = unit(u);
    sub(d, of_x ? b : a, to->v + 3 * edge[0]);
    if (dot(d, u) >= 0 && dot(d, u) <= length)
        corners_put(m, &c,
                    id_of(KIND_CORNERS + (of_x ? 1 : 2), of_x ? c.i[0] : edge[0] * 1024 + edge[1],
                          of_x ? edge[0] * 1024 + edge[1] : c.j[0]));
}

/* Two nearly parallel lines: the ends of the part in which they lie beside each other become separate points.
 */
static void lines_put(meeting *m, const choice *best)
{
    choice c = *best;
    double u[3], w[3];
    const side *lone = m->x.c->nv == 2 ? &m->x : &m->y;
    bool x_first = lone == &m->x;
    if (lone->c->nv != 2 || m->x.c->dim == 2 || !edge_of(lone, (const int[]){ 0, 1 }, 2, u))
        return;
    if (x_first) {
        if (!edge_along(&m->y, c.j, c.nj, u, c.j) || !edge_of(&m->y, c.j, 2, w))
            return;
        c.i[0] = 0;
        c.i[1] = 1;
    } else {
        if (!edge_along(&m->x, c.i, c.ni, u, c.i) || !edge_of(&m->x, c.i, 2, w))
            return;
        c.j[0] = 0;
        c.j[1] = 1;
    }
    c.ni = c.nj = 2;
    if (fabs(dot(u, w)) < LINES_BESIDE)
        return;
    for (int k = 0; k < 4; k++)
        end_put(m, &c, best->n, k < 2, k % 2);
}

static double least_gap(const meeting *m)
{
    double least = INFINITY;
    for (int k = 0; k < m->n; k++)
        least = fmin(least, m->out[k].gap);
    return least;
}

/* The point nearest to a separating plane, if it lies exactly over the edge of the face. */
static void nearest_put(meeting *m, const choice *c)
{
    bool of_x = c->kind == OF_FACE_X;
    const side *of = of_x ? &m->x : &m->y, *other = of_x ? &m->y : &m->x;
    double outward[3], back[3];
    for (int k = 0; k < 3; k++) {
        outward[k] = of_x ? -c->n[k] : c->n[k];
        back[k] = -outward[k];
    }
    int i = corner_along(other, back);
    double level = of->c->ends ? dot(outward, of->v + 3 * c->face) : of->level[c->face];
    m->n = m->n < FEATURES ? m->n : FEATURES - 1;
    plane_put(m, of_x, outward, level, other->v + 3 * i, true,
              id_of(of_x ? KIND_OVER_X : KIND_OVER_Y, i, c->face));
}

int round_touch(const convex *x, const body_pose *px, const convex *y, const body_pose *py, feature *out)
{
    double room[side_room(x) + side_room(y) + 1];
    meeting m = { .out = out, .size = x->reach + y->reach };
    side_place(&m.x, x, px, room);
    side_place(&m.y, y, py, room + side_room(x));
    choice best = normal_find(&m), plane = { .far = -INFINITY };
    if (best.kind == OF_CORNERS)
        corners_put(&m, &best,
                    id_of(KIND_CORNERS, best.i[0] * 1024 + (best.ni == 2 ? best.i[1] + 1 : 0),
                          best.j[0] * 1024 + (best.nj == 2 ? best.j[1] + 1 : 0)));
    planes_consider(&m, &plane);
    if (x->dim == 3 && (best.kind != OF_CORNERS || plane.far > -CORNER_SAME * m.size))
        plane_points(&m, best.kind == OF_CORNERS ? &plane : &best);
    else if (best.kind == OF_CORNERS)
        lines_put(&m, &best);
    if (best.kind != OF_CORNERS && least_gap(&m) > best.far + CORNER_SAME * m.size)
        nearest_put(&m, &best);
    int least = 0;
    for (int k = 1; k < m.n; k++)
        if (out[k].gap < out[least].gap)
            least = k;
    feature f = out[least];
    out[least] = out[0];
    out[0] = f;
    return m.n;
}
