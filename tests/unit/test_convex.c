/* convex: the gap between two hulls is verified with the touching points, which lie in both hulls, and a
   plane between them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "base/convex.h"

static const double cube[] = { -1, -1, -1, 1, -1, -1, -1, 1, -1, 1, 1, -1, -1, -1,
                               1,  1,  -1, 1, -1, 1,  1,  1, 1,  1, 0, 0,  0.5 };
static const body_pose HOME = { .A = { 1, 0, 0, 0, 1, 0, 0, 0, 1 } };

static body_pose at(double x, double y, double z)
{
    body_pose p = HOME;
    p.p[0] = x;
    p.p[1] = y;
    p.p[2] = z;
    return p;
}

/* Rotates about axis k. */
static void turn(body_pose *p, int k, double angle)
{
    double R[9] = { 0 }, B[9] = { 0 };
    int i = (k + 1) % 3, j = (k + 2) % 3;
    R[4 * k] = 1;
    R[4 * i] = R[4 * j] = cos(angle);
    R[3 * i + j] = -sin(angle);
    R[3 * j + i] = sin(angle);
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++)
            for (int m = 0; m < 3; m++)
                B[3 * r + c] += R[3 * r + m] * p->A[3 * m + c];
    memcpy(p->A, B, sizeof B);
}

static double dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void place(const body_pose *p, const double *y, double *x)
{
    for (int i = 0; i < 3; i++)
        x[i] = p->p[i] + dot(p->A + 3 * i, y);
}

static void test_hull(void **state)
{
    convex *c = convex_hull(*state, 3, cube, 9, 3, 0);
    assert_int_equal(c->nv, 8);
    assert_int_equal(c->nf, 6);
    assert_int_equal(c->ne, 12);
    for (int f = 0; f < 6; f++)
        assert_int_equal(c->first[f + 1] - c->first[f], 4);
    const double flat[] = { 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 1, 0 };
    assert_null(convex_hull(*state, 3, flat, 4, 3, 0));
    const double square[] = { 0, 0, 1, 0, 1, 1, 0, 1, 0.5, 0.5 };
    c = convex_hull(*state, 2, square, 5, 2, 0);
    assert_int_equal(c->nv, 4);
    assert_int_equal(c->nf, 4);
}

static void test_faces(void **state)
{
    convex *c = convex_hull(*state, 3, cube, 8, 3, 0);
    feature f[FEATURES];
    body_pose up = at(0.5, 0.25, 2.125);
    assert_int_equal(convex_touch(c, &up, c, &HOME, f), 4);
    for (int k = 0; k < 4; k++)
        assert_true(fabs(f[k].gap - 0.125) <= 1e-15);
    up = at(0.5, 0.25, 2);
    assert_int_equal(convex_touch(c, &HOME, c, &up, f), 4);
    for (int k = 0; k < 4; k++)
        assert_true(fabs(f[k].gap) <= 1e-15);
    up = at(0, 0, 1.9); /* an overlap: its depth */
    assert_int_equal(convex_touch(c, &up, c, &HOME, f), 4);
    assert_true(fabs(f[0].gap + 0.1) <= 1e-14);
    up = at(0, 0, 3); /* on an edge: both ends of it */
    turn(&up, 0, atan(1));
    int n = convex_touch(c, &up, c, &HOME, f), low = 0;
    for (int k = 0; k < n; k++)
        low += fabs(f[k].gap - (2 - sqrt(2))) <= 1e-14;
    assert_int_equal(low, 2);
}

/* Two faces that springs press together, out of parallel by as much as they are deep: they touch as faces,
   with the depth of the deepest corner. */
static void test_faces_pressed(void **state)
{
    convex *c = convex_hull(*state, 3, cube, 8, 3, 0);
    feature f[FEATURES];
    double depth = 1e-3;
    int edges = 0;
    for (int k = 0; k < 400; k++) {
        double deepest = 0;
        body_pose up = at(0.2 * cos(2.0 * k), 0.2 * cos(3.0 * k), 2);
        turn(&up, 0, 0.4 * depth * sin(5.0 * k));
        turn(&up, 1, 0.4 * depth * sin(7.0 * k));
        turn(&up, 2, 0.7 * sin(k));
        up.p[2] -= depth * (0.6 + 0.4 * sin(11.0 * k));
        edges += convex_touch(c, &up, c, &HOME, f) < 3;
        int n = convex_touch_deep(c, &up, c, &HOME, f);
        assert_int_equal(n, 4);
        for (int i = 0; i < 8; i++) {
            double x[3];
            place(&up, c->v + 3 * i, x);
            if (fabs(x[0]) < 1 && fabs(x[1]) < 1)
                deepest = fmax(deepest, 1 - x[2]);
        }
        assert_true(-f[0].gap >= deepest - 1e-12 && -f[0].gap <= 2 * depth);
    }
    assert_true(edges > 20);                                      /* where one would not suspect it */
    body_pose up = at(0.1, 0.2, 2 * sqrt(2) - depth), low = HOME; /* edges that cross stay what they are */
    turn(&up, 1, atan(1));
    turn(&up, 2, 0.5);
    turn(&low, 0, atan(1));
    feature g[FEATURES];
    assert_int_equal(convex_touch(c, &up, c, &low, g), 1);
    assert_int_equal(convex_touch_deep(c, &up, c, &low, f), 1);
    assert_true(f[0].id == g[0].id && f[0].gap == g[0].gap);
}

static void test_round(void **state)
{
    const double origin[3] = { 0 }, segment[] = { -1, 0, 0, 1, 0, 0 };
    convex *ball = convex_hull(*state, 3, origin, 1, 3, 0.5), *box = convex_hull(*state, 3, cube, 8, 3, 0),
           *pill = convex_hull(*state, 3, segment, 2, 3, 0.25);
    feature f[FEATURES];
    body_pose p = at(2, 2, 2);
    convex_touch(ball, &p, box, &HOME, f);
    assert_true(fabs(f[0].gap - (sqrt(3) - 0.5)) <= 1e-15);
    p = at(2, 2, 0.3);
    convex_touch(box, &HOME, ball, &p, f);
    assert_true(fabs(f[0].gap - (sqrt(2) - 0.5)) <= 1e-15);
    p = at(0.2, 0.3, 1.6);
    assert_int_equal(convex_touch(ball, &p, box, &HOME, f), 1);
    assert_true(fabs(f[0].gap - 0.1) <= 1e-15);
    p = at(0.5, 0.75, 0);
    int n = convex_touch(pill, &p, pill, &HOME, f), low = 0;
    for (int k = 0; k < n; k++)
        low += fabs(f[k].gap - 0.25) <= 1e-15;
    assert_int_equal(low, 2);
    p = at(0.2, 0.3, 0.75);
    turn(&p, 2, 1);
    convex_touch(pill, &p, pill, &HOME, f);
    assert_true(fabs(f[0].gap - 0.25) <= 1e-15);
    p = at(0.3, 0, 1.35);
    n = convex_touch(pill, &p, box, &HOME, f);
    for (int k = low = 0; k < n; k++)
        low += fabs(f[k].gap - 0.1) <= 1e-15;
    assert_int_equal(low, 2);
}

/* Points of both bodies at this distance, and a plane at this distance from both: no other distance is
   possible. */
static void proved(const convex *x, const body_pose *px, const convex *y, const body_pose *py,
                   const feature *f)
{
    double a[3], b[3], n[3], least = INFINITY, most = -INFINITY;
    place(px, f->a, a);
    place(py, f->b, b);
    for (int k = 0; k < 3; k++)
        n[k] = a[k] - b[k];
    double d = sqrt(dot(n, n));
    assert_true(fabs(d - f->gap) <= 1e-12);
    for (int i = 0; i < x->nv; i++) {
        double v[3];
        place(px, x->v + 3 * i, v);
        least = fmin(least, dot(n, v) / d);
    }
    for (int i = 0; i < y->nv; i++) {
        double v[3];
        place(py, y->v + 3 * i, v);
        most = fmax(most, dot(n, v) / d);
    }
    assert_true(least - most >= f->gap - 1e-12);
    for (int g = 0; g < x->nf; g++)
        assert_true(dot(x->normal + 3 * g, f->a) <= x->level[g] + 1e-12);
    for (int g = 0; g < y->nf; g++)
        assert_true(dot(y->normal + 3 * g, f->b) <= y->level[g] + 1e-12);
}

static double drawn(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) / 9007199254740992.0 - 0.5;
}

static void test_random(void **state)
{
    uint64_t seed = 7;
    int apart = 0;
    convex *box = convex_hull(*state, 3, cube, 8, 3, 0);
    for (int trial = 0; trial < 3000; trial++) {
        double points[36];
        for (int k = 0; k < 36; k++)
            points[k] = 2 * drawn(&seed);
        convex *y = trial % 2 ? box : convex_hull(*state, 3, points, 12, 3, 0);
        body_pose p = at(6 * drawn(&seed), 6 * drawn(&seed), 6 * drawn(&seed)), q = HOME;
        for (int k = 0; k < 3; k++) {
            turn(&p, k, 6 * drawn(&seed));
            turn(&q, k, 6 * drawn(&seed));
        }
        feature f[FEATURES], g[FEATURES];
        convex_touch(box, &p, y, &q, f);
        convex_touch(y, &q, box, &p, g);
        assert_true(fabs(f[0].gap - g[0].gap) <= 1e-12);
        if (f[0].gap <= 1e-3)
            continue;
        proved(box, &p, y, &q, f);
        apart++;
    }
    assert_true(apart > 1000);
}

/* Corners, edges and faces form a closed surface, and no point lies outside a face. */
static void closed(const convex *c)
{
    assert_int_equal(c->nv - c->ne + c->nf, 2);
    for (int f = 0; f < c->nf; f++)
        for (int i = 0; i < c->nv; i++)
            assert_true(dot(c->normal + 3 * f, c->v + 3 * i) - c->level[f] <= 1e-9);
    for (int e = 0; e < c->ne; e++)
        assert_true(c->edge[4 * e + 3] >= 0);
}

/* Points inside faces and on edges are not corners, also if rounding moves them. */
static void test_lattice(void **state)
{
    for (double noise = 0; noise < 1e-10; noise = fmax(10 * noise, 1e-16)) {
        uint64_t seed = 5;
        double p[125 * 3];
        for (int i = 0; i < 125; i++)
            for (int k = 0; k < 3; k++)
                p[3 * i + k] = (k == 0 ? i % 5 : k == 1 ? i / 5 % 5 : i / 25) + noise * drawn(&seed);
        convex *c = convex_hull(*state, 3, p, 125, 3, 0);
        assert_int_equal(c->nv, 8);
        assert_int_equal(c->nf, 6);
        assert_int_equal(c->widest, 4);
        closed(c);
    }
}

static void test_many(void **state)
{
    uint64_t seed = 9;
    static double p[(CONVEX_POINTS + 1) * 3];
    for (int i = 0; i < CONVEX_POINTS + 1; i++) {
        double l = 0;
        while (l < 1e-3) {
            for (int k = 0; k < 3; k++)
                p[3 * i + k] = drawn(&seed);
            l = sqrt(dot(p + 3 * i, p + 3 * i));
        }
        for (int k = 0; k < 3; k++)
            p[3 * i + k] /= l;
    }
    convex *c = convex_hull(*state, 3, p, CONVEX_POINTS, 3, 0);
    assert_int_equal(c->nv, CONVEX_POINTS);
    assert_int_equal(c->nf, 2 * CONVEX_POINTS - 4);
    closed(c);
    assert_null(convex_hull(*state, 3, p, CONVEX_POINTS + 1, 3, 0));
}

/* Two round plates, the upper one tilted about a line: it stands on its lowest corner, for any direction of
   the line. */
static void test_plates(void **state)
{
    enum { CORNERS = 120 };
    double p[2 * CORNERS * 3];
    for (int i = 0; i < 2 * CORNERS; i++) {
        p[3 * i] = cos(2 * M_PI * i / CORNERS);
        p[3 * i + 1] = sin(2 * M_PI * i / CORNERS);
        p[3 * i + 2] = i < CORNERS ? -0.1 : 0.1;
    }
    convex *c = convex_hull(*state, 3, p, 2 * CORNERS, 3, 0);
    assert_int_equal(c->nf, CORNERS + 2);
    assert_int_equal(c->widest, CORNERS);
    closed(c);
    for (int i = 0; i < CORNERS; i++) {
        body_pose below = HOME, above = at(0, 0, 0);
        feature f[FEATURES];
        turn(&above, 2, -2 * M_PI * i / CORNERS);
        turn(&above, 1, 0.01);
        below.p[2] = -1; /* corner i of the upper one is farthest along x, and lowest */
        convex_touch(c, &above, c, &below, f);
        assert_true(fabs(f[0].gap - (0.9 - 0.1 * cos(0.01) - sin(0.01))) <= 1e-12);
    }
}

/* ---- cylinders and ellipsoids ---- */

/* A body by its definition: how far it reaches along n, and by how much a point lies outside of it, in its
 * own frame. */
typedef struct {
    enum { BALL, CAPSULE, HULL, CYLINDER, ELLIPSOID, KINDS } kind;
    double a[3], b[3], r; /* ends, radius */
    double A[9], B[9];    /* ellipsoid: y.A y <= 1, and the inverse of A */
    convex *c;
} solid;

static double segment_away(const double *a, const double *b, const double *y, double *along)
{
    double u[3], w[3], d[3];
    for (int k = 0; k < 3; k++) {
        u[k] = b[k] - a[k];
        w[k] = y[k] - a[k];
    }
    double uu = dot(u, u), t = uu > 0 ? dot(u, w) / uu : 0;
    *along = t;
    for (int k = 0; k < 3; k++)
        d[k] = w[k] - t * u[k];
    return sqrt(dot(d, d));
}

static double outside(const solid *s, const double *y)
{
    double t, far = 0, e[3];
    switch (s->kind) {
    case BALL:
        return segment_away(s->a, s->a, y, &t) - s->r;
    case CAPSULE:
        far = segment_away(s->a, s->b, y, &t);
        for (int k = 0; k < 3; k++)
            e[k] = y[k] - (t < 0.5 ? s->a[k] : s->b[k]);
        return (t < 0 || t > 1 ? sqrt(dot(e, e)) : far) - s->r;
    case CYLINDER:
        far = segment_away(s->a, s->b, y, &t);
        return fmax(far - s->r, fmax(-t, t - 1));
    case ELLIPSOID:
        for (int k = 0; k < 3; k++)
            e[k] = dot(s->A + 3 * k, y);
        return sqrt(dot(y, e)) - 1;
    default:
        far = -INFINITY;
        for (int f = 0; f < s->c->nf; f++)
            far = fmax(far, dot(s->c->normal + 3 * f, y) - s->c->level[f]);
        return far;
    }
}

static double reaches(const solid *s, const double *n)
{
    double axis[3], e[3], along, across;
    switch (s->kind) {
    case BALL:
    case CAPSULE:
        return fmax(dot(n, s->a), dot(n, s->kind == BALL ? s->a : s->b)) + s->r * sqrt(dot(n, n));
    case CYLINDER:
        for (int k = 0; k < 3; k++)
            axis[k] = s->b[k] - s->a[k];
        along = dot(n, axis) / sqrt(dot(axis, axis));
        for (int k = 0; k < 3; k++)
            e[k] = n[k] - along * axis[k] / sqrt(dot(axis, axis));
        across = sqrt(dot(e, e));
        return fmax(dot(n, s->a), dot(n, s->b)) + s->r * across;
    case ELLIPSOID:
        for (int k = 0; k < 3; k++)
            e[k] = dot(s->B + 3 * k, n);
        return sqrt(dot(n, e));
    default:
        along = -INFINITY;
        for (int i = 0; i < s->c->nv; i++)
            along = fmax(along, dot(n, s->c->v + 3 * i));
        return along;
    }
}

/* The normal of a feature, in space. */
static void normal_of(const feature *f, const body_pose *px, const body_pose *py, double *n)
{
    for (int i = 0; i < 3; i++)
        n[i] = dot((f->of_a != 0 ? px : py)->A + 3 * i, f->n);
}

static void own(const body_pose *p, const double *n, double *to)
{
    for (int i = 0; i < 3; i++)
        to[i] = p->A[i] * n[0] + p->A[3 + i] * n[1] + p->A[6 + i] * n[2];
}

/* The distance of two bodies along n: of the planes across n that touch them. */
static double between(const solid *x, const body_pose *px, const solid *y, const body_pose *py,
                      const double *n)
{
    double back[3] = { -n[0], -n[1], -n[2] }, u[3], w[3];
    own(px, back, u);
    own(py, n, w);
    return dot(n, px->p) - dot(n, py->p) - reaches(x, u) - reaches(y, w);
}

/* The touching point of a body, in its frame. */
static void touching(const convex *c, const double *core, double counts, const double *n, double *to)
{
    double e[3], k, along = dot(n, c->axis);
    for (int i = 0; i < 3; i++)
        e[i] = c->ends ? c->radius * (n[i] - along * c->axis[i]) : dot(c->E + 3 * i, n);
    k = c->ends ? sqrt(dot(e, e)) / c->radius : sqrt(dot(n, e));
    for (int i = 0; i < 3; i++)
        to[i] = core[i] + (counts != 0 && k > 1e-10 ? e[i] / k : 0);
}

static void curved_proved(const solid *x, const body_pose *px, const solid *y, const body_pose *py,
                          const feature *f)
{
    double n[3], back[3], u[3], w[3], a[3], b[3], p[3], q[3], d[3];
    normal_of(f, px, py, n);
    for (int k = 0; k < 3; k++)
        back[k] = -n[k];
    own(px, back, u);
    own(py, n, w);
    touching(x->c, f->a, f->round_a, u, a);
    touching(y->c, f->b, f->round_b, w, b);
    double size = x->c->reach + y->c->reach;
    assert_true(fabs(dot(n, n) - 1) <= 1e-13);
    assert_true(fabs(between(x, px, y, py, n) - f->gap) <= 1e-12 * size);
    assert_true(outside(x, a) <= 1e-12);
    assert_true(outside(y, b) <= 1e-12);
    place(px, a, p);
    place(py, b, q);
    for (int k = 0; k < 3; k++)
        d[k] = p[k] - q[k];
    assert_true(fabs(sqrt(dot(d, d)) - f->gap) <= 1e-12 * size);
    for (int k = 0; k < 3; k++)
        d[k] -= f->gap * n[k];
    assert_true(sqrt(dot(d, d)) <= 1e-8 * size);
}

static solid solid_drawn(arena *a, int kind, uint64_t *seed)
{
    solid s = { .kind = kind, .r = 0.3 + 0.5 * (drawn(seed) + 0.5) };
    double points[36], ends[8] = { 0 }, zero[3] = { 0 };
    for (int k = 0; k < 3; k++) {
        s.a[k] = drawn(seed);
        s.b[k] = kind == BALL ? s.a[k] : s.a[k] + (k == 0 ? 1 : 0.5) * (drawn(seed) + 0.6);
        ends[k] = s.a[k];
        ends[4 + k] = s.b[k];
    }
    if (kind == BALL || kind == CAPSULE)
        s.c = convex_hull(a, 3, ends, kind == BALL ? 1 : 2, 4, s.r);
    if (kind == CYLINDER)
        s.c = convex_cylinder(a, ends, 4, s.r);
    for (int k = 0; k < 36; k++)
        points[k] = 2 * drawn(seed);
    if (kind == HULL)
        s.c = convex_hull(a, 3, points, 12, 3, 0);
    if (kind == ELLIPSOID) {
        body_pose p = HOME;
        for (int k = 0; k < 3; k++)
            turn(&p, k, 6 * drawn(seed));
        for (int m = 0; m < 3; m++) {
            double axis = 0.2 + 1.5 * (drawn(seed) + 0.5);
            for (int k = 0; k < 9; k++) {
                s.A[k] += p.A[3 * (k / 3) + m] * p.A[3 * (k % 3) + m] / (axis * axis);
                s.B[k] += p.A[3 * (k / 3) + m] * p.A[3 * (k % 3) + m] * axis * axis;
            }
        }
        s.c = convex_ellipsoid(a, 3, zero, s.A);
    }
    return s;
}

static void test_curved(void **state)
{
    uint64_t seed = 3;
    int apart[KINDS][KINDS] = { 0 };
    for (int trial = 0; trial < 20000; trial++) {
        int i = CYLINDER + trial % 2, j = trial / 2 % KINDS;
        arena_pos mark = arena_mark(*state);
        solid x = solid_drawn(*state, i, &seed), y = solid_drawn(*state, j, &seed);
        body_pose p = at(6 * drawn(&seed), 6 * drawn(&seed), 6 * drawn(&seed)), q = HOME;
        feature f[FEATURES], g[FEATURES];
        for (int k = 0; k < 3; k++) {
            turn(&p, k, 6 * drawn(&seed));
            turn(&q, k, 6 * drawn(&seed));
        }
        assert_true(convex_touch(x.c, &p, y.c, &q, f) >= 1);
        assert_true(convex_touch(y.c, &q, x.c, &p, g) >= 1);
        if (f[0].gap > 1e-6) {
            curved_proved(&x, &p, &y, &q, f);
            curved_proved(&y, &q, &x, &p, g);
            apart[i][j]++;
        }
        arena_release(*state, mark);
    }
    for (int j = 0; j < KINDS; j++)
        assert_true(apart[CYLINDER][j] > 500 && apart[ELLIPSOID][j] > 500);
}

/* Bodies moved along their normal until they touch, and slightly into each other: the gaps change
   accordingly. So do the normals if one of them is smooth everywhere; for two sharp bodies that overlap,
   other normals separate them more. */
static void test_curved_close(void **state)
{
    uint64_t seed = 11;
    int tried = 0;
    for (int trial = 0; trial < 3000; trial++) {
        arena_pos mark = arena_mark(*state);
        solid x = solid_drawn(*state, CYLINDER + trial % 2, &seed),
              y = solid_drawn(*state, trial / 2 % KINDS, &seed);
        bool sharp = x.kind == CYLINDER && (y.kind == CYLINDER || y.kind == HULL);
        body_pose p = at(6 * drawn(&seed), 6 * drawn(&seed), 6 * drawn(&seed)), q = HOME, moved = p;
        feature f[FEATURES];
        double n[3], m[3];
        for (int k = 0; k < 3; k++)
            turn(&p, k, 6 * drawn(&seed));
        convex_touch(x.c, &p, y.c, &q, f);
        double from = f[0].gap;
        normal_of(&f[0], &p, &q, n);
        moved = p;
        for (double gap = 1e-3; from > 0.1 && gap > -1e-5; gap = gap > 1e-12 ? gap / 10
                                                                 : gap > 0   ? -1e-12
                                                                             : 10 * gap) {
            for (int k = 0; k < 3; k++)
                moved.p[k] = p.p[k] + n[k] * (gap - from);
            convex_touch(x.c, &moved, y.c, &q, f);
            normal_of(&f[0], &moved, &q, m);
            double small = 2e-12 * (x.c->reach + y.c->reach), least = gap, most = gap;
            if (sharp && gap < 2e-8) {
                least = fmin(0, 3 * gap);
                most = fmax(0, gap);
            }
            assert_true(f[0].gap >= least - small && f[0].gap <= most + small);
            assert_true(sharp || dot(n, m) >= 1 - 1e-9);
            tried++;
        }
        arena_release(*state, mark);
    }
    assert_true(tried > 10000);
}

/* how far the round of a body reaches along n, in space */
static double round_reach(const convex *c, const body_pose *p, const double *n)
{
    double u[3], e[3];
    own(p, n, u);
    for (int k = 0; k < 3; k++)
        e[k] = c->ends ? c->radius * (u[k] - dot(u, c->axis) * c->axis[k]) : dot(c->E + 3 * k, u);
    return c->ends ? sqrt(dot(e, e)) : sqrt(dot(u, e));
}

/* the gap of a feature whose normal stays on a body, after both have moved */
static double held_gap(const solid *x, const body_pose *px, const solid *y, const body_pose *py,
                       const feature *f)
{
    double n[3], back[3], a[3], b[3], gap = 0;
    normal_of(f, px, py, n);
    place(px, f->a, a);
    place(py, f->b, b);
    for (int k = 0; k < 3; k++) {
        back[k] = -n[k];
        gap += n[k] * (a[k] - b[k]);
    }
    return gap - (f->round_a != 0 ? round_reach(x->c, px, back) : 0) -
           (f->round_b != 0 ? round_reach(y->c, py, n) : 0);
}

/* a body near the plane z = 0, and as far from it as its lowest point */
static void lay(const solid *s, body_pose *p, double tilt, uint64_t *seed)
{
    double down[3] = { 0, 0, -1 }, u[3];
    turn(p, 2, 6 * drawn(seed));
    turn(p, 0, tilt * drawn(seed));
    turn(p, 1, tilt * drawn(seed));
    own(p, down, u);
    p->p[0] = 1.5 * drawn(seed);
    p->p[1] = 1.5 * drawn(seed);
    p->p[2] = reaches(s, u);
}

/* the same place, seen from below */
static body_pose hanging(const body_pose *p)
{
    body_pose q = *p;
    for (int k = 3; k < 9; k++)
        q.A[k] = -p->A[k];
    q.p[1] = -p->p[1];
    q.p[2] = -p->p[2];
    return q;
}

/* A cylinder stands on its end, on a box or a capsule that lies there, both tilted by any small angle, its
   rim over an edge: when they turn, the point where both touch has no gap far below that of the bodies.
   Normals near the axis must stay on the cylinder for that. */
static void test_rims_turn(void **state)
{
    const double ends[] = { 0, 0, 0, 0, 0, 1 }, line[] = { -0.5, 0, 0, 0.5, 0, 0 }, turned = 1e-3;
    uint64_t seed = 5;
    int tried = 0;
    for (int trial = 0; trial < 4000; trial++) {
        arena_pos mark = arena_mark(*state);
        double tilt = pow(10, -10 * (drawn(&seed) + 0.5));
        solid x = {
            .kind = CYLINDER, .r = 0.5, .b = { 0, 0, 1 }, .c = convex_cylinder(*state, ends, 3, 0.5)
        };
        solid y = { .kind = HULL };
        if (trial % 2)
            y = (solid){ .kind = CAPSULE, .r = 0.3, .a = { -0.5, 0, 0 }, .b = { 0.5, 0, 0 } };
        y.c = trial % 2 ? convex_hull(*state, 3, line, 2, 3, y.r) : convex_hull(*state, 3, cube, 8, 3, 0);
        body_pose p = HOME, q = HOME;
        lay(&x, &p, tilt, &seed);
        lay(&y, &q, tilt, &seed);
        q = hanging(&q);
        bool first = trial % 4 < 2;
        const solid *a = first ? &x : &y, *b = first ? &y : &x;
        const body_pose *pa = first ? &p : &q, *pb = first ? &q : &p;
        feature f[FEATURES], now[FEATURES];
        int n = convex_touch(a->c, pa, b->c, pb, f);
        for (int k = 0; k < 3; k++) {
            turn(&p, k, turned * drawn(&seed));
            turn(&q, k, turned * drawn(&seed));
        }
        convex_touch(a->c, pa, b->c, pb, now);
        for (int k = 0; k < n; k++) {
            bool corners = f[k].round_a != 0 && f[k].round_b != 0, turns = dot(f[k].s, f[k].s) != 0;
            if (!corners || turns || !(now[0].gap > 0))
                continue;
            tried++;
            assert_true(held_gap(a, pa, b, pb, &f[k]) >= now[0].gap - 20 * turned * turned);
        }
        arena_release(*state, mark);
    }
    assert_true(tried > 400);
}

static int arena_begin(void **state)
{
    *state = arena_new(&allocator_libc, NULL);
    return *state ? 0 : -1;
}

static int arena_end(void **state)
{
    arena_free(*state);
    return 0;
}

#define in_arena(test) cmocka_unit_test_setup_teardown(test, arena_begin, arena_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_arena(test_hull),         in_arena(test_faces),     in_arena(test_faces_pressed),
        in_arena(test_round),        in_arena(test_random),    in_arena(test_lattice),
        in_arena(test_many),         in_arena(test_plates),    in_arena(test_curved),
        in_arena(test_curved_close), in_arena(test_rims_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
