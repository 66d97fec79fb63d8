/* convex: hulls of points, and where two of them touch. The numbers of features are small, so all of them are
   checked: separating planes along faces and along pairs of edges for bodies in contact, pairs of closest
   features for others. */
#include "base/convex.h"
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include "base/convex_clip.h"
#include "base/convex_round.h"
#include "base/tolerances.h"
#include "base/vec3.h"

/* ---- hulls ---- */

/* Builds a hull: the points that are extreme along some direction of a face; points inside faces are left
   out. */
typedef struct {
    arena *a;
    convex *c;
    double small;
    int room;        /* allocated number of faces */
    size_t loop_cap; /* allocated number of corners of faces */
    int *on;         /* points of the current plane */
    double *flat;    /* coordinates of points in a plane */
    int *chain;
    double inside[3];
} builder;

static void bounds_put(convex *c)
{
    for (int i = 0; i < c->nv; i++)
        axpy(c->middle, 1.0 / c->nv, c->v + 3 * i);
    for (int i = 0; i < c->nv; i++) {
        double d[3];
        sub(d, c->v + 3 * i, c->middle);
        c->reach = fmax(c->reach, sqrt(dot(d, d)));
    }
    c->reach += c->radius;
    for (int k = 0; k < c->dim; k++)
        c->E[4 * k] = c->radius * c->radius;
}

/* Do the points lie in the plane of a known face? */
static bool face_known(const builder *b, const int *k)
{
    const convex *c = b->c;
    for (int f = 0; f < c->nf; f++) {
        bool all = true;
        for (int i = 0; i < c->dim && all; i++)
            all = fabs(dot(c->normal + 3 * f, c->v + 3 * k[i]) - c->level[f]) <= b->small;
        if (all)
            return true;
    }
    return false;
}

/* Does the loop turn to the left at its corner i, seen from the side to which n points? */
static bool loop_turns(const convex *c, const double *n, const int *on, int count, int i)
{
    double x[3], y[3], z[3];
    sub(x, c->v + 3 * on[i], c->v + 3 * on[(i + count - 1) % count]);
    sub(y, c->v + 3 * on[(i + 1) % count], c->v + 3 * on[i]);
    cross(z, x, y);
    return dot(z, n) > 0 && dot(z, z) > EDGE_STRAIGHT * dot(x, x) * dot(y, y);
}

/* Orders points of the plane from left to right, by their first coordinates, then by their second ones. */
static bool left_of(const builder *b, int i, int j)
{
    const double *p = b->flat + 2 * i, *q = b->flat + 2 * j;
    return p[0] < q[0] || (p[0] == q[0] && p[1] < q[1]);
}

/* The chain along one side, from one end to the other: adds all its corners except the last after the first
   `from` ones (Andrew's algorithm). */
static int chain(const builder *b, const double *n, int count, bool back, int from)
{
    int *to = b->chain, top = from;
    for (int k = 0; k < count; k++) {
        int i = b->on[back ? count - 1 - k : k];
        while (top - from >= 2) {
            const int last[3] = { to[top - 2], to[top - 1], i };
            if (loop_turns(b->c, n, last, 3, 1))
                break;
            top--;
        }
        to[top++] = i;
    }
    return top - 1;
}

/* Corners of the plane in order around n, without points on a straight line between others or inside. */
static int loop_order(const builder *b, const double *n, int *on, int count)
{
    const convex *c = b->c;
    double o[3] = { 0 }, u[3], w[3];
    for (int k = 0; k < count; k++)
        axpy(o, 1.0 / count, c->v + 3 * on[k]);
    sub(u, c->v + 3 * on[0], o);
    unit(u);
    cross(w, n, u);
    for (int k = 0; k < count; k++) {
        double d[3];
        sub(d, c->v + 3 * on[k], o);
        b->flat[2 * on[k]] = dot(d, u);
        b->flat[2 * on[k] + 1] = dot(d, w);
    }
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0 && left_of(b, on[j], on[j - 1]); j--) {
            int s = on[j];
            on[j] = on[j - 1];
            on[j - 1] = s;
        }
    count = chain(b, n, count, true, chain(b, n, count, false, 0));
    int *loop = b->chain;
    /* the two ends may lie on a straight line too */
    for (int kept = 0, i = 0; kept < count && count > 3;) {
        if (loop_turns(c, n, loop, count, i)) {
            kept++;
            i = (i + 1) % count;
            continue;
        }
        memmove(loop + i, loop + i + 1, (size_t)(count - i - 1) * sizeof *loop);
        count--;
        kept = 0;
        i = (i + count - 1) % count;
    }
    /* the first corner is the one after the direction -u */
    int first = 0;
    for (int k = 1; k < count; k++) {
        const double *p = b->flat + 2 * loop[k], *q = b->flat + 2 * loop[first];
        if (atan2(p[1], p[0]) < atan2(q[1], q[0]))
            first = k;
    }
    for (int k = 0; k < count; k++)
        on[k] = loop[(first + k) % count];
    return count;
}

static void face_add(builder *b, const double *n, double level, int count)
{
    convex *c = b->c;
    if (c->dim == 3)
        count = loop_order(b, n, b->on, count);
    if (count < c->dim)
        return;
    size_t at = (size_t)c->first[c->nf], need = at + (size_t)count;
    if (need > b->loop_cap) {
        size_t cap = 2 * need;
        c->loop = arena_grow(b->a, c->loop, b->loop_cap * sizeof *c->loop, cap * sizeof *c->loop);
        b->loop_cap = cap;
    }
    copy(c->normal + 3 * c->nf, n);
    c->level[c->nf] = level;
    memcpy(c->loop + at, b->on, (size_t)count * sizeof *c->loop);
    c->first[++c->nf] = (int)need;
}

/* The plane through three corners (two in the plane) if all others lie on one side. */
static bool face_through(builder *b, const int *k, double *n, double *level, int *count)
{
    const convex *c = b->c;
    double x[3], y[3];
    sub(x, c->v + 3 * k[1], c->v + 3 * k[0]);
    if (c->dim == 2) {
        n[0] = x[1];
        n[1] = -x[0];
        n[2] = 0;
    } else {
        sub(y, c->v + 3 * k[2], c->v + 3 * k[0]);
        cross(n, x, y);
    }
    if (unit(n) <= (c->dim == 3 ? b->small * b->small * 1e6 : b->small))
        return false;
    *level = dot(n, c->v + 3 * k[0]);
    double lo = 0, hi = 0;
    *count = 0;
    arena_tick(b->a, 2 * c->nv);
    for (int i = 0; i < c->nv; i++) {
        double s = dot(n, c->v + 3 * i) - *level;
        lo = fmin(lo, s);
        hi = fmax(hi, s);
        if (fabs(s) <= b->small)
            b->on[(*count)++] = i;
    }
    if (hi > b->small && lo < -b->small)
        return false;
    if (hi > b->small) { /* make it point outwards */
        *level = -*level;
        for (int i = 0; i < 3; i++)
            n[i] = -n[i];
    }
    return hi > b->small || lo < -b->small;
}

static void edge_add(convex *c, int i, int j, int f)
{
    for (int e = 0; e < c->ne; e++) {
        int *x = c->edge + 4 * e;
        if ((x[0] == i && x[1] == j) || (x[0] == j && x[1] == i)) {
            x[3] = f;
            return;
        }
    }
    int *x = c->edge + 4 * c->ne++;
    x[0] = i;
    x[1] = j;
    x[2] = f;
    x[3] = -1;
}

/* Removes points that are not corners of a face. */
static void corners_only(builder *b)
{
    convex *c = b->c;
    int *to = b->on, n = 0;
    for (int i = 0; i < c->nv; i++)
        to[i] = -1;
    for (int k = 0; k < c->first[c->nf]; k++)
        to[c->loop[k]] = 0;
    for (int i = 0; i < c->nv; i++)
        if (to[i] == 0) {
            to[i] = n;
            memmove(c->v + 3 * n++, c->v + 3 * i, 3 * sizeof *c->v);
        }
    for (int k = 0; k < c->first[c->nf]; k++)
        c->loop[k] = to[c->loop[k]];
    c->nv = n;
}

static void face_try(builder *b, const int *k)
{
    double normal[3], level;
    int count;
    if (b->c->nf < b->room && !face_known(b, k) && face_through(b, k, normal, &level, &count))
        face_add(b, normal, level, count);
}

/* Seen along the line through two corners: if all points lie within half a turn around it, the first and the
   last one in that order; only the planes through these may be faces. */
static bool ends_around(const builder *b, int i, int j, int *first, int *last)
{
    const convex *c = b->c;
    double u[3], x[3], y[3], d[3], lo = 0, hi = 0, near = POINT_AROUND * b->small;
    sub(u, c->v + 3 * j, c->v + 3 * i);
    unit(u);
    sub(x, b->inside, c->v + 3 * i);
    axpy(x, -dot(x, u), u);
    if (unit(x) <= b->small)
        return false;
    cross(y, u, x);
    *first = *last = -1;
    for (int k = 0; k < c->nv; k++) {
        sub(d, c->v + 3 * k, c->v + 3 * i);
        double p = dot(d, x), q = dot(d, y);
        if (p * p + q * q <= near * near)
            continue;
        double angle = atan2(q, p);
        if (angle <= lo) {
            lo = angle;
            *first = k;
        }
        if (angle >= hi) {
            hi = angle;
            *last = k;
        }
        if (hi - lo > M_PI + HALF_TURN)
            return false;
    }
    return *first >= 0 && *last >= 0;
}

static void hull_faces(builder *b)
{
    convex *c = b->c;
    for (int i = 0; i < c->nv; i++)
        axpy(b->inside, 1.0 / c->nv, c->v + 3 * i);
    for (int i = 0; i < c->nv; i++)
        for (int j = i + 1, k[3] = { i }; j < c->nv; j++) {
            int first, last;
            k[1] = j;
            arena_tick(b->a, 100);
            if (c->dim == 2) {
                face_try(b, k);
                continue;
            }
            if (!ends_around(b, i, j, &first, &last))
                continue;
            k[2] = first < last ? first : last;
            face_try(b, k);
            k[2] = first < last ? last : first;
            face_try(b, k);
        }
}

/* Adds points; equal points only once. */
static void points_put(builder *b, const double *point, int n, int apart)
{
    convex *c = b->c;
    for (int i = 0; i < n; i++) {
        double x[3] = { 0 };
        bool new = true;
        arena_tick(b->a, 2 * c->nv);
        memcpy(x, point + i * apart, (size_t)c->dim * sizeof *x);
        for (int j = 0; j < c->nv && new; j++) {
            double d[3];
            sub(d, x, c->v + 3 * j);
            new = sqrt(dot(d, d)) > b->small;
        }
        if (new)
            copy(c->v + 3 * c->nv++, x);
    }
}

/* The largest distance between two points. */
static double points_size(arena *a, int dim, const double *point, int n, int apart)
{
    double size = 0;
    for (int i = 0; i < n; i++) {
        arena_tick(a, 2 * n);
        for (int j = 0; j < i; j++) {
            double d[3] = { 0 };
            for (int k = 0; k < dim; k++)
                d[k] = point[i * apart + k] - point[j * apart + k];
            size = fmax(size, dot(d, d));
        }
    }
    return sqrt(size);
}

convex *convex_hull(arena *a, int dim, const double *point, int n, int apart, double radius)
{
    convex *c = arena_make(a, convex);
    *c = (convex){ .dim = dim, .radius = radius };
    if (n > CONVEX_POINTS)
        return NULL;
    c->v = arena_array(a, double, 3 * (size_t)n + 3);
    builder b = { .a = a, .c = c, .room = 2 * n + 8 };
    b.small = POINT_SAME * points_size(a, dim, point, n, apart);
    points_put(&b, point, n, apart);
    size_t faces = (size_t)b.room;
    c->normal = arena_array(a, double, 3 * faces);
    c->level = arena_array(a, double, faces);
    c->first = arena_array(a, int, faces + 1);
    b.on = arena_array(a, int, n);
    b.flat = arena_array(a, double, 2 * n);
    b.chain = arena_array(a, int, 2 * n);
    if (c->nv > 2) {
        hull_faces(&b);
        if (c->nf <= dim)
            return NULL;
        corners_only(&b);
        c->edge = arena_array(a, int, 4 * (size_t)c->first[c->nf]);
        for (int f = 0; dim == 3 && f < c->nf; f++)
            for (int k = c->first[f], end = c->first[f + 1]; k < end; k++) {
                arena_tick(a, 2 * c->ne);
                edge_add(c, c->loop[k], c->loop[k + 1 < end ? k + 1 : c->first[f]], f);
            }
    } else if (c->nv == 2) {
        c->edge = arena_array(a, int, 4);
        edge_add(c, 0, 1, -1);
        c->edge[2] = -1;
    }
    c->widest = c->nf ? 0 : c->nv;
    for (int f = 0; f < c->nf; f++)
        if (c->first[f + 1] - c->first[f] > c->widest)
            c->widest = c->first[f + 1] - c->first[f];
    bounds_put(c);
    return c;
}

/* ---- rounded bodies other than balls ---- */

convex *convex_cylinder(arena *a, const double *ends, int apart, double radius)
{
    convex *c = convex_hull(a, 3, ends, 2, apart, radius);
    if (c->nv < 2 || !(radius > 0))
        return NULL;
    c->curved = c->ends = true;
    sub(c->axis, c->v + 3, c->v);
    c->reach = hypot(unit(c->axis) / 2, radius);
    for (int i = 0; i < 9; i++)
        c->E[i] = radius * radius * ((i % 4 == 0) - c->axis[i / 3] * c->axis[i % 3]);
    return c;
}

/* The largest eigenvalue of a positive definite matrix, or slightly more: from the trace of a power. */
static double largest_eigenvalue(const double *E)
{
    enum { SQUARED = 10 };
    double P[9], Q[9], root = 1, scale = 0;
    memcpy(P, E, sizeof P);
    for (int step = 0; step <= SQUARED; step++) {
        double trace = P[0] + P[4] + P[8];
        scale += root * log(trace);
        root /= 2;
        for (int i = 0; i < 9; i++)
            P[i] /= trace;
        for (int i = 0; i < 9; i++) {
            Q[i] = 0;
            for (int k = 0; k < 3; k++)
                Q[i] += P[3 * (i / 3) + k] * P[3 * k + i % 3];
        }
        memcpy(P, Q, sizeof P);
    }
    return exp(scale);
}

convex *convex_ellipsoid(arena *a, int dim, const double *centre, const double *A)
{
    convex *c = convex_hull(a, dim, centre, 1, dim, 0);
    double M[9] = { 1, 0, 0, 0, 1, 0, 0, 0, 1 };
    for (int i = 0; i < dim; i++)
        for (int j = 0; j < dim; j++) {
            M[3 * i + j] = A[dim * i + j];
            if (fabs(A[dim * i + j] - A[dim * j + i]) > CORNER_SAME * (fabs(A[0]) + fabs(A[dim + 1])))
                return NULL;
        }
    /* positive definite if all leading minors are positive */
    double area = M[0] * M[4] - M[1] * M[3], det = 0, inverse[9];
    for (int i = 0; i < 3; i++) {
        cross(inverse + 3 * i, M + 3 * ((i + 1) % 3), M + 3 * ((i + 2) % 3));
        det += i == 0 ? dot(inverse, M) : 0;
    }
    if (!(M[0] > 0 && area > 0 && det > 0))
        return NULL;
    for (int i = 0; i < dim; i++)
        for (int j = 0; j < dim; j++)
            c->E[3 * i + j] = inverse[3 * i + j] / det;
    c->curved = true;
    c->reach = sqrt(largest_eigenvalue(c->E));
    return c;
}

/* ---- two hulls ---- */

/* A hull in its current pose. */
typedef struct {
    const convex *c;
    const body_pose *at;
    double *v, *normal, *level;
    double *arc; /* for each edge with two faces: the cross product of their normals, the second one first */
} body;

/* Numbers that a body needs. */
static size_t body_room(const convex *c)
{
    return 3 * (size_t)c->nv + 4 * (size_t)c->nf + 3 * (size_t)c->ne;
}

static void body_place(body *b, const convex *c, const body_pose *at, double *room)
{
    b->c = c;
    b->at = at;
    b->v = room;
    b->normal = b->v + 3 * c->nv;
    b->level = b->normal + 3 * c->nf;
    b->arc = b->level + c->nf;
    for (int i = 0; i < c->nv; i++)
        placed(at, c->v + 3 * i, b->v + 3 * i);
    for (int f = 0; f < c->nf; f++) {
        turned(at, c->normal + 3 * f, b->normal + 3 * f);
        b->level[f] = c->level[f] + dot(b->normal + 3 * f, at->p);
    }
    for (int e = 0; e < c->ne; e++) {
        const int *x = c->edge + 4 * e;
        if (x[3] >= 0)
            cross(b->arc + 3 * e, b->normal + 3 * x[3], b->normal + 3 * x[2]);
    }
}

typedef struct {
    const body *x, *y;
    feature *out;
    int n;
    double size; /* of both bodies: smaller lengths relative to it count as 0 */
} meeting;

enum { KIND_PLANE_B = 1, KIND_PLANE_A, KIND_CROSS, KIND_POINTS, KIND_EDGE_A, KIND_EDGE_B };

static int64_t feature_id(int kind, int i, int j)
{
    return ((int64_t)kind << 48) | ((int64_t)(i + 1) << 24) | (int64_t)(j + 1);
}

/* A feature from points and directions in space; the normal points from y to x. */
static void feature_put(const meeting *m, feature *f, int64_t id, int kind, const double *pa,
                        const double *pb, const double *ua, const double *ub, double gap)
{
    const double none[3] = { 0 };
    *f = (feature){ .plane_b = kind == KIND_PLANE_B,
                    .plane_a = kind == KIND_PLANE_A,
                    .cross = kind == KIND_CROSS,
                    .point = kind >= KIND_POINTS,
                    .edge_a = kind == KIND_EDGE_A,
                    .edge_b = kind == KIND_EDGE_B,
                    .ra = m->x->c->radius,
                    .rb = m->y->c->radius,
                    .id = id };
    placed_back(m->x->at, pa, f->a);
    placed_back(m->y->at, pb, f->b);
    turned_back(m->x->at, ua ? ua : none, f->ua);
    turned_back(m->y->at, ub ? ub : none, f->ub);
    f->gap = gap - f->ra - f->rb;
}

/* ---- separating planes ---- */

/* The face of one body with the largest distance of all of the other body beyond its plane. */
static int best_face(const body *of, const body *other, double *far)
{
    int best = -1;
    *far = -INFINITY;
    for (int f = 0; f < of->c->nf; f++) {
        double s = INFINITY;
        for (int i = 0; i < other->c->nv; i++)
            s = fmin(s, dot(of->normal + 3 * f, other->v + 3 * i));
        s -= of->level[f];
        if (s > *far) {
            *far = s;
            best = f;
        }
    }
    return best;
}

/* On the sphere, do the arcs of normals at edge i of x and, reversed, at edge j of y cross? Then the plane
   along both edges may separate the bodies (Gauss map). */
static bool arcs_cross(const body *x, int i, const body *y, int j)
{
    const int *e = x->c->edge + 4 * i, *g = y->c->edge + 4 * j;
    const double *ba = x->arc + 3 * i, *dc = y->arc + 3 * j;
    double cba = -dot(y->normal + 3 * g[2], ba), dba = -dot(y->normal + 3 * g[3], ba);
    if (!(cba * dba < 0))
        return false;
    double adc = dot(x->normal + 3 * e[2], dc), bdc = dot(x->normal + 3 * e[3], dc);
    return adc * bdc < 0 && cba * bdc > 0;
}

typedef struct {
    int i, j;
    double far, n[3];
} edge_pair;

static void best_edges(const meeting *m, edge_pair *best)
{
    const body *x = m->x, *y = m->y;
    best->far = -INFINITY;
    best->i = -1;
    for (int i = 0; i < x->c->ne; i++)
        for (int j = 0; j < y->c->ne; j++) {
            const int *e = x->c->edge + 4 * i, *g = y->c->edge + 4 * j;
            double u[3], w[3], n[3], o[3];
            if (e[3] < 0 || g[3] < 0 || !arcs_cross(x, i, y, j))
                continue;
            sub(u, x->v + 3 * e[1], x->v + 3 * e[0]);
            sub(w, y->v + 3 * g[1], y->v + 3 * g[0]);
            cross(n, u, w);
            if (unit(n) <= EDGES_ALONG * sqrt(dot(u, u) * dot(w, w)))
                continue;
            /* direction from y to x: opposite to the outward normals of x at its edge */
            double mean[3];
            copy(mean, x->normal + 3 * e[2]);
            axpy(mean, 1, x->normal + 3 * e[3]);
            if (dot(n, mean) > 0)
                for (int k = 0; k < 3; k++)
                    n[k] = -n[k];
            sub(o, x->v + 3 * e[0], y->v + 3 * g[0]);
            double far = dot(n, o);
            if (far > best->far) {
                best->far = far;
                best->i = i;
                best->j = j;
                copy(best->n, n);
            }
        }
}

/* ---- closest features ---- */

typedef struct {
    double d; /* distance; INFINITY: none so far */
    int kind, i, j;
    double pa[3], pb[3];
    /* Coordinates of the corners of both along an axis from y to x: those of x are at least `low`, those of y
       reach up to it. Features that are more than `most` apart along it are skipped; `most` is at least the
       distance of the bodies. */
    const double *along_x, *along_y;
    double most;
} closest;

/* Coordinates of the corners along an axis. */
static void along(const body *b, const double *axis, double *to)
{
    for (int i = 0; i < b->c->nv; i++)
        to[i] = dot(axis, b->v + 3 * i);
}

static inline double lower(double a, double b)
{
    return a < b ? a : b;
}

static inline double upper(double a, double b)
{
    return a > b ? a : b;
}

static inline double edge_low(const body *b, const double *s, int e)
{
    return lower(s[b->c->edge[4 * e]], s[b->c->edge[4 * e + 1]]);
}

static inline double edge_high(const body *b, const double *s, int e)
{
    return upper(s[b->c->edge[4 * e]], s[b->c->edge[4 * e + 1]]);
}

static void closest_try(closest *c, int kind, int i, int j, const double *pa, const double *pb)
{
    double d[3];
    sub(d, pa, pb);
    double l = sqrt(dot(d, d));
    if (!(l < c->d))
        return;
    c->d = l;
    c->kind = kind;
    c->i = i;
    c->j = j;
    copy(c->pa, pa);
    copy(c->pb, pb);
}

/* Is the point, which lies in the plane of a face, inside the face? */
static bool face_holds(const body *b, int f, const double *p)
{
    const convex *c = b->c;
    int from = c->first[f], end = c->first[f + 1];
    if (c->dim == 2) {
        double u[3], w[3];
        sub(u, b->v + 3 * c->loop[from + 1], b->v + 3 * c->loop[from]);
        sub(w, p, b->v + 3 * c->loop[from]);
        double t = dot(u, w) / dot(u, u);
        return t >= 0 && t <= 1;
    }
    for (int k = from; k < end; k++) {
        double u[3], w[3], n[3];
        sub(u, b->v + 3 * c->loop[k + 1 < end ? k + 1 : from], b->v + 3 * c->loop[k]);
        sub(w, p, b->v + 3 * c->loop[k]);
        cross(n, b->normal + 3 * f, u);
        if (dot(n, w) < 0)
            return false;
    }
    return true;
}

static void points_faces(const body *of, const body *to, bool first, closest *c)
{
    for (int i = 0; i < of->c->nv; i++)
        for (int f = 0; f < to->c->nf; f++) {
            double far = dot(to->normal + 3 * f, of->v + 3 * i) - to->level[f], p[3];
            if (far < 0 || far >= c->d)
                continue;
            copy(p, of->v + 3 * i);
            axpy(p, -far, to->normal + 3 * f);
            if (!face_holds(to, f, p))
                continue;
            if (first)
                closest_try(c, KIND_PLANE_B, i, f, of->v + 3 * i, p);
            else
                closest_try(c, KIND_PLANE_A, f, i, p, of->v + 3 * i);
        }
}

/* The point p of an edge that is closest to x; false: it is an end of the edge. */
static bool onto_edge(const double *a, const double *b, const double *x, double *p)
{
    double u[3], w[3];
    sub(u, b, a);
    sub(w, x, a);
    double t = dot(u, w) / dot(u, u);
    if (!(t > 0 && t < 1))
        return false;
    copy(p, a);
    axpy(p, t, u);
    return true;
}

static void points_edges(const body *of, const body *to, bool first, closest *c)
{
    for (int i = 0; i < of->c->nv; i++)
        for (int e = 0; e < to->c->ne; e++) {
            const double *a = to->v + 3 * to->c->edge[4 * e], *b = to->v + 3 * to->c->edge[4 * e + 1];
            double p[3], apart = first ? c->along_x[i] - edge_high(to, c->along_y, e)
                                       : edge_low(to, c->along_x, e) - c->along_y[i];
            if (apart > c->most || !onto_edge(a, b, of->v + 3 * i, p))
                continue;
            if (first)
                closest_try(c, KIND_EDGE_B, i, e, of->v + 3 * i, p);
            else
                closest_try(c, KIND_EDGE_A, e, i, p, of->v + 3 * i);
        }
}

/* The closest points of two lines; false: outside the segments, or parallel. */
static bool lines_meet(const double *a, const double *b, const double *c, const double *d, double *p,
                       double *q)
{
    double u[3], w[3], o[3];
    sub(u, b, a);
    sub(w, d, c);
    sub(o, a, c);
    double uu = dot(u, u), ww = dot(w, w), uw = dot(u, w), uo = dot(u, o), wo = dot(w, o),
           det = uu * ww - uw * uw;
    if (det <= LINES_ALONG * uu * ww)
        return false;
    double s = (uw * wo - ww * uo) / det, t = (uu * wo - uw * uo) / det;
    copy(p, a);
    axpy(p, s, u);
    copy(q, c);
    axpy(q, t, w);
    return s >= 0 && s <= 1 && t >= 0 && t <= 1;
}

static void edges_edges(const body *x, const body *y, closest *c)
{
    for (int i = 0; i < x->c->ne; i++)
        for (int j = 0; j < y->c->ne; j++) {
            const int *e = x->c->edge + 4 * i, *g = y->c->edge + 4 * j;
            double p[3], q[3];
            if (edge_low(x, c->along_x, i) - edge_high(y, c->along_y, j) > c->most)
                continue;
            if (lines_meet(x->v + 3 * e[0], x->v + 3 * e[1], y->v + 3 * g[0], y->v + 3 * g[1], p, q))
                closest_try(c, KIND_CROSS, i, j, p, q);
        }
}

static void points_points(const body *x, const body *y, closest *c)
{
    for (int i = 0; i < x->c->nv; i++)
        for (int j = 0; j < y->c->nv; j++)
            closest_try(c, KIND_POINTS, i, j, x->v + 3 * i, y->v + 3 * j);
}

static void edge_direction(const body *b, int e, double *u)
{
    const int *x = b->c->edge + 4 * e;
    sub(u, b->v + 3 * x[1], b->v + 3 * x[0]);
    unit(u);
}

/* The normal is along ua x ub and points from b to a. */
static void crossing_put(const meeting *m, feature *f, int64_t id, const double *pa, const double *pb, int i,
                         int j, const double *toward, double gap)
{
    double ua[3], ub[3], n[3];
    edge_direction(m->x, i, ua);
    edge_direction(m->y, j, ub);
    cross(n, ua, ub);
    if (dot(n, toward) < 0)
        for (int k = 0; k < 3; k++)
            ua[k] = -ua[k];
    feature_put(m, f, id, KIND_CROSS, pa, pb, ua, ub, gap);
}

static void closest_put(const meeting *m, const closest *c, feature *f)
{
    double u[3], d[3];
    int64_t id = feature_id(c->kind, c->i, c->j);
    sub(d, c->pa, c->pb);
    /* without radii, the distance of two points has no sign: a plane across their direction is used, which
       changes sign when they pass each other */
    if (c->kind >= KIND_POINTS && m->x->c->radius + m->y->c->radius == 0 && unit(d) > 0) {
        feature_put(m, f, id, KIND_PLANE_B, c->pa, c->pb, NULL, d, c->d);
        return;
    }
    switch (c->kind) {
    case KIND_PLANE_B:
        feature_put(m, f, id, c->kind, c->pa, c->pb, NULL, m->y->normal + 3 * c->j, c->d);
        break;
    case KIND_PLANE_A:
        for (int k = 0; k < 3; k++)
            u[k] = -m->x->normal[3 * c->i + k];
        feature_put(m, f, id, c->kind, c->pa, c->pb, u, NULL, c->d);
        break;
    case KIND_CROSS:
        crossing_put(m, f, id, c->pa, c->pb, c->i, c->j, d, c->d);
        break;
    case KIND_EDGE_A:
        edge_direction(m->x, c->i, u);
        feature_put(m, f, id, c->kind, c->pa, c->pb, u, NULL, c->d);
        break;
    case KIND_EDGE_B:
        edge_direction(m->y, c->j, u);
        feature_put(m, f, id, c->kind, c->pa, c->pb, NULL, u, c->d);
        break;
    default:
        feature_put(m, f, id, c->kind, c->pa, c->pb, NULL, NULL, c->d);
    }
}

/* The distance of their nearest corners. */
static double corners_apart(const body *x, const body *y)
{
    double least = INFINITY;
    for (int i = 0; i < x->c->nv; i++)
        for (int j = 0; j < y->c->nv; j++) {
            double d[3];
            sub(d, x->v + 3 * i, y->v + 3 * j);
            least = lower(least, dot(d, d));
        }
    return sqrt(least);
}

/* axis: normal of a plane between them, from y to x. */
static void closest_find(const body *x, const body *y, const double *axis, double size, closest *c)
{
    double along_x[x->c->nv], along_y[y->c->nv];
    along(x, axis, along_x);
    along(y, axis, along_y);
    c->along_x = along_x;
    c->along_y = along_y;
    c->most = corners_apart(x, y) + CONVEX_ROUND * size;
    points_faces(x, y, true, c);
    points_faces(y, x, false, c);
    c->most = lower(c->most, c->d + CONVEX_ROUND * size);
    edges_edges(x, y, c);
    points_edges(x, y, true, c);
    points_edges(y, x, false, c);
    points_points(x, y, c);
    c->along_x = c->along_y = NULL;
}

/* ---- points of a face that another body may touch ---- */

/* Room for a face clipped by the sides of another one: each side adds at most one corner, and rounding may
   add two more. */
static int clip_room(const body *x, const body *y)
{
    return x->c->widest + y->c->widest + 2;
}

/* The corners of a body that face a plane with normal n: those of the face of `of` at its nearest corner that
   is most parallel to the plane, of its segment, or its point. */
static int facing(const body *of, const double *n, clip_point *out)
{
    const convex *c = of->c;
    int low = 0, best = -1, count = 0;
    for (int i = 1; i < c->nv; i++)
        if (dot(n, of->v + 3 * i) < dot(n, of->v + 3 * low))
            low = i;
    for (int f = 0; f < c->nf; f++) {
        bool at = false;
        for (int k = c->first[f]; k < c->first[f + 1]; k++)
            at = at || c->loop[k] == low;
        if (at && (best < 0 || dot(n, of->normal + 3 * f) < dot(n, of->normal + 3 * best)))
            best = f;
    }
    int from = best < 0 ? 0 : c->first[best], end = best < 0 ? c->nv : c->first[best + 1];
    for (int k = from; k < end; k++) {
        int i = best < 0 ? k : c->loop[k];
        out[count].tag = i;
        copy(out[count++].x, of->v + 3 * i);
    }
    return count;
}

/* The part of `other` over the face f of `of`. */
static int over_face(const body *of, int f, const body *other, clip_point *out)
{
    int most = clip_room(of, other);
    clip_point room[most];
    const convex *c = of->c;
    const double *n = of->normal + 3 * f;
    int count = facing(other, n, out), from = c->first[f], end = c->first[f + 1];
    for (int k = from; k < end && count; k++) {
        double u[3], side[3];
        const double *p = of->v + 3 * c->loop[k], *q = of->v + 3 * c->loop[k + 1 < end ? k + 1 : from];
        sub(u, q, p);
        if (c->dim == 2) { /* both ends of the edge */
            copy(side, u);
            for (int i = 0; i < 3; i++)
                side[i] = -side[i];
        } else
            cross(side, u, n);
        if (unit(side) == 0)
            continue;
        /* points on the edge itself remain */
        double level = dot(side, p) + CLIP_EDGE * c->reach;
        if (count == 1) {
            count = dot(side, out[0].x) <= level;
            continue;
        }
        count = clip_side(out, count, most, side, level, k - from, room);
        memcpy(out, room, (size_t)count * sizeof *out);
    }
    return count;
}

/* Points of `other` over the face f of `of`: the nearest, and those farthest from it; first: the face belongs
   to x. */
static void face_points(meeting *m, bool first, int f)
{
    const body *of = first ? m->x : m->y, *other = first ? m->y : m->x;
    const double *n = of->normal + 3 * f;
    int most = clip_room(of, other), taken[FEATURES], ntaken = 0;
    clip_point p[most];
    int count = over_face(of, f, other, p), next = point_first(p, count, n, CORNER_SAME * m->size);
    double same = POINT_STAYS * m->size;
    for (; next >= 0 && m->n < FEATURES; next = point_next(p, count, taken, ntaken, n, same)) {
        double far = dot(n, p[next].x) - of->level[f], on[3], back[3] = { -n[0], -n[1], -n[2] };
        taken[ntaken++] = next;
        copy(on, p[next].x);
        axpy(on, -far, n);
        int64_t id = feature_id(first ? KIND_PLANE_A : KIND_PLANE_B, first ? f : p[next].tag,
                                first ? p[next].tag : f);
        bool there = false;
        for (int k = 0; k < m->n; k++)
            there = there || m->out[k].id == id;
        if (there)
            continue;
        if (first)
            feature_put(m, &m->out[m->n++], id, KIND_PLANE_A, on, p[next].x, back, NULL, far);
        else
            feature_put(m, &m->out[m->n++], id, KIND_PLANE_B, p[next].x, on, NULL, n, far);
    }
}

/* Ends of one segment beside another: a capsule along a capsule. */
static void segment_points(meeting *m)
{
    for (int pass = 0; pass < 2; pass++) {
        const body *of = pass ? m->y : m->x, *to = pass ? m->x : m->y;
        for (int i = 0; i < of->c->nv && m->n < FEATURES; i++) {
            closest c = { .d = INFINITY };
            const int *e = to->c->edge;
            const double *a = to->v + 3 * e[0], *b = to->v + 3 * e[1];
            double p[3];
            if (!onto_edge(a, b, of->v + 3 * i, p))
                continue;
            if (pass)
                closest_try(&c, KIND_EDGE_A, 0, i, p, of->v + 3 * i);
            else
                closest_try(&c, KIND_EDGE_B, i, 0, of->v + 3 * i, p);
            feature f;
            closest_put(m, &c, &f);
            bool there = false;
            for (int k = 0; k < m->n; k++)
                there = there || m->out[k].id == f.id;
            if (!there)
                m->out[m->n++] = f;
        }
    }
}

/* Parallel edges, separated along n: ends of one beside the other become separate points, so that the edges
   are supported at both ends. */
static void beside_edges(meeting *m, const double *n, const double *on)
{
    double near = 0.05 * m->size;
    for (int pass = 0; pass < 2; pass++) {
        const body *of = pass ? m->y : m->x, *to = pass ? m->x : m->y;
        for (int i = 0; i < of->c->nv; i++)
            for (int e = 0; e < to->c->ne && m->n < FEATURES; e++) {
                const double *v = of->v + 3 * i, *a = to->v + 3 * to->c->edge[4 * e],
                             *b = to->v + 3 * to->c->edge[4 * e + 1];
                double u[3], w[3], p[3], d[3];
                if (fabs(dot(n, v) - dot(n, on)) > near || fabs(dot(n, a) - dot(n, on)) > near ||
                    fabs(dot(n, b) - dot(n, on)) > near)
                    continue;
                sub(u, b, a);
                sub(w, v, a);
                double t = dot(u, w) / dot(u, u);
                if (!(t >= 0 && t <= 1))
                    continue;
                copy(p, a);
                axpy(p, t, u);
                sub(d, v, p);
                double gap = pass ? -dot(n, d) : dot(n, d);
                axpy(d, -dot(n, d), n);
                int64_t id = feature_id(pass ? KIND_EDGE_A : KIND_EDGE_B, pass ? e : i, pass ? i : e);
                bool there = dot(d, d) > near * near;
                for (int k = 0; k < m->n; k++)
                    there = there || m->out[k].id == id;
                if (!there)
                    feature_put(m, &m->out[m->n++], id, KIND_PLANE_B, pass ? p : v, pass ? v : p, NULL, n,
                                gap);
            }
    }
}

static int by_gap(const feature *f, int n)
{
    int best = 0;
    for (int k = 1; k < n; k++)
        if (f[k].gap < f[best].gap)
            best = k;
    return best;
}

/* give: how much worse than the best normal that of a face may be, over the depth of an overlap */
static int hulls_touch(const convex *x, const body_pose *px, const convex *y, const body_pose *py,
                       double give, feature *out)
{
    if (x->curved || y->curved)
        return round_touch(x, px, y, py, out);
    double room[body_room(x) + body_room(y) + 1];
    body a, b;
    body_place(&a, x, px, room);
    body_place(&b, y, py, room + body_room(x));
    meeting m = { &a, &b, out, 0, x->reach + y->reach };
    double fx, fy;
    edge_pair edges = { .far = -INFINITY };
    int face_x = best_face(&a, &b, &fx), face_y = best_face(&b, &a, &fy);
    if (x->dim == 3)
        best_edges(&m, &edges);
    double planes = fmax(fx, fy), best = fmax(planes, edges.far),
           small = fmax(CORNER_SAME * m.size, -give * best);
    bool apart = best > 0 || (face_x < 0 && face_y < 0);
    closest c = { .d = INFINITY };
    if (apart) {
        double axis[3] = { 0 };
        if (edges.far > planes)
            copy(axis, edges.n);
        else if (fy >= fx && face_y >= 0)
            copy(axis, b.normal + 3 * face_y);
        else if (face_x >= 0)
            axpy(axis, -1, a.normal + 3 * face_x);
        closest_find(&a, &b, axis, m.size, &c);
    }
    /* if two faces touch each other, always the same one supports the points */
    bool first = fx >= fy - (best > small ? 0 : 0.1 * small);
    bool along_face = planes >= edges.far - small && (face_x >= 0 || face_y >= 0);
    /* if no plane along faces or edges separates them, the closest features give the normal; if they touch,
       planes do */
    if (apart && c.d > best + (best > small ? CONVEX_ROUND * m.size : small)) {
        closest_put(&m, &c, &out[m.n++]);
        double n[3];
        sub(n, c.pa, c.pb);
        if (x->dim == 3 && x->radius + y->radius == 0 && unit(n) > 0)
            beside_edges(&m, n, c.pb);
    } else if (!along_face && edges.i >= 0) {
        double p[3], q[3];
        const int *e = x->edge + 4 * edges.i, *g = y->edge + 4 * edges.j;
        lines_meet(a.v + 3 * e[0], a.v + 3 * e[1], b.v + 3 * g[0], b.v + 3 * g[1], p, q);
        crossing_put(&m, &out[m.n++], feature_id(KIND_CROSS, edges.i, edges.j), p, q, edges.i, edges.j,
                     edges.n, edges.far);
    }
    if (along_face || (planes > -small && (face_x >= 0 || face_y >= 0)))
        face_points(&m, first, first ? face_x : face_y);
    if (x->ne == 1 && y->ne == 1 && x->nf == 0 && y->nf == 0)
        segment_points(&m);
    if (m.n == 0 && c.d < INFINITY)
        closest_put(&m, &c, &out[m.n++]);
    int least = by_gap(out, m.n);
    feature f = out[least];
    out[least] = out[0];
    out[0] = f;
    return m.n;
}

int convex_touch(const convex *x, const body_pose *px, const convex *y, const body_pose *py, feature *out)
{
    return hulls_touch(x, px, y, py, 0, out);
}

int convex_touch_deep(const convex *x, const body_pose *px, const convex *y, const body_pose *py,
                      feature *out)
{
    return hulls_touch(x, px, y, py, 1, out);
}

bool convex_clear(const convex *x, const body_pose *px, const convex *y, const body_pose *py, double room)
{
    double numbers[body_room(x) + body_room(y) + 1], far;
    body a, b;
    body_place(&a, x, px, numbers);
    body_place(&b, y, py, numbers + body_room(x));
    room += x->radius + y->radius;
    return (best_face(&a, &b, &far) >= 0 && far > room) || (best_face(&b, &a, &far) >= 0 && far > room);
}

double convex_apart(const convex *x, const body_pose *px, const convex *y, const body_pose *py)
{
    double p[3], q[3], d[3];
    placed(px, x->middle, p);
    placed(py, y->middle, q);
    sub(d, p, q);
    return sqrt(dot(d, d)) - x->reach - y->reach;
}

static int64_t far_id(void)
{
    return feature_id(KIND_POINTS, -1, -1);
}

bool convex_is_far(int64_t id)
{
    return id == far_id();
}

void convex_far(const convex *x, const convex *y, feature *out)
{
    *out = (feature){ .point = 1, .ra = x->reach, .rb = y->reach, .id = far_id() };
    copy(out->a, x->middle);
    copy(out->b, y->middle);
}
