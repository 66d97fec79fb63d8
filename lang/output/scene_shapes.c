/* scene_shapes: the shapes of the drawn objects, and their positions at a time. A shape belongs to the part
   it is attached to, or to the degree of freedom that is its position; a shape in a constraint, or without
   a position, is fixed. */
#include <math.h>
#include <string.h>
#include "base/rotation.h"
#include "results/session_view.h"
#include "scene.h"
#include "base/tolerances.h"

static const double eye[9] = { 1, 0, 0, 0, 1, 0, 0, 0, 1 };

static bool is_carried(const shape_info *s)
{
    return s->of >= 0 && s->pose.tape.nout;
}

/* ---- places ---- */

void solids_move(const scene *m, double t)
{
    const results *r = m->s->last->r;
    inputs in;
    if (!m->seen)
        return;
    size_t n = (size_t)r->prog->nq;
    arena_pos mark = arena_mark(m->s->answer);
    double *q = arena_array(m->s->answer, double, n + 1), *v = arena_array(m->s->answer, double, n + 1);
    state_read(m->s->answer, r, &in, q, v, t);
    shapes_place(m->seen, &in);
    arena_release(m->s->answer, mark);
}

/* an attitude between two samples: their mean, by weights, made a rotation again */
static void attitude_at(const scene *m, const double *samples, double t, double *A)
{
    const results *r = m->s->last->r;
    int64_t k = sample_before(r->t, r->samples, t), next = k + 1 < r->samples ? k + 1 : k;
    double w = r->t[next] > r->t[k] ? fmin(fmax((t - r->t[k]) / (r->t[next] - r->t[k]), 0), 1) : 0;
    for (int i = 0; i < 9; i++)
        A[i] = (1 - w) * samples[9 * k + i] + w * samples[9 * next + i];
    rotation_mend(A);
}

body_pose solid_pose(const scene *m, size_t k, double t)
{
    const solid *s = &m->solids.at[k];
    body_pose at = { .p = { 0 } };
    if (s->of)
        return m->seen->at[s->number][s->inst];
    mover_place(m, (size_t)s->body, t, at.p);
    attitude_at(m, m->all.at[s->body].attitude, t, at.A);
    return at;
}

void solid_seen(const solid *s, const body_pose *at, const double *y, double *z)
{
    double x[3];
    for (int i = 0; i < 3; i++)
        x[i] = at->p[i] + at->A[3 * i] * y[0] + at->A[3 * i + 1] * y[1] + at->A[3 * i + 2] * y[2];
    if (!s->of || s->of->dim == 3)
        seen_from_aside(x, 0, z);
    else
        memcpy(z, x, 2 * sizeof *z);
}

/* ---- a shape in its own frame ---- */

const double *solid_table(const scene *m, const solid *s)
{
    return m->s->last->r->param + s->of->table + s->inst * s->of->size;
}

/* the matrix that maps a ball of radius 1 to an ellipsoid y.A y <= 1: the inverse of the transposed root of A
 */
void ellipsoid_map(const shape_info *s, const double *numbers, double *A, double *M)
{
    int n = s->dim;
    double L[9] = { 0 };
    const double *of = numbers + n + 1;
    memcpy(A, eye, sizeof eye);
    memcpy(M, eye, sizeof eye);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            A[3 * i + j] = of[n * i + j];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j <= i; j++) {
            double x = A[3 * i + j];
            for (int k = 0; k < j; k++)
                x -= L[3 * i + k] * L[3 * j + k];
            L[3 * i + j] = i == j ? sqrt(fmax(x, 0)) : x / L[3 * j + j];
        }
    for (int c = 0; c < 3; c++) /* L^T M = 1 */
        for (int i = 2; i >= 0; i--) {
            double x = eye[3 * i + c];
            for (int k = i + 1; k < 3; k++)
                x -= L[3 * k + i] * M[3 * k + c];
            M[3 * i + c] = x / L[3 * i + i];
        }
}

/* ---- outlines ---- */

static void line_put(scene *m, solid *s, const double *a, const double *b)
{
    stroke *to = vec_push(m->s->tmp, &s->strokes);
    to->n = 2;
    memcpy(to->x[0], a, 3 * sizeof *a);
    memcpy(to->x[1], b, 3 * sizeof *b);
}

/* c + cos u + sin w */
static void ring_put(scene *m, solid *s, const double *c, const double *u, const double *w)
{
    stroke *to = vec_push(m->s->tmp, &s->strokes);
    to->n = STROKE;
    for (int k = 0; k < STROKE; k++) {
        double a = 2 * acos(-1) * k / (STROKE - 1);
        for (int i = 0; i < 3; i++)
            to->x[k][i] = c[i] + cos(a) * u[i] + sin(a) * w[i];
    }
}

/* r times three directions, the first one along d */
static void frame_along(const double *d, double r, double *F)
{
    double n = sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]), c = 0, *u = F + 3;
    for (int i = 0; i < 3; i++)
        F[i] = n > 0 ? d[i] / n : i == 0;
    double any[3] = { -F[1], F[0], 0 }; /* in the plane when d is */
    if (fabs(F[2]) > 0.9) {
        any[0] = 1;
        any[1] = 0;
    }
    for (int i = 0; i < 3; i++)
        c += any[i] * F[i];
    n = 0;
    for (int i = 0; i < 3; i++) {
        u[i] = any[i] - c * F[i];
        n += u[i] * u[i];
    }
    for (int i = 0; i < 3; i++)
        u[i] /= sqrt(n);
    for (int i = 0; i < 3; i++)
        F[6 + i] = F[(i + 1) % 3] * u[(i + 2) % 3] - F[(i + 2) % 3] * u[(i + 1) % 3];
    for (int i = 0; i < 9; i++)
        F[i] *= r;
}

/* balls, capsules and cylinders: n ends with the radius r */
static void round_put(scene *m, solid *s, double end[2][3], int n, double r)
{
    const double d[3] = { end[n - 1][0] - end[0][0], end[n - 1][1] - end[0][1], end[n - 1][2] - end[0][2] };
    double F[9];
    bool space = s->of->dim == 3;
    frame_along(d, r, F);
    for (int k = 0; k < n; k++) {
        if (space)
            ring_put(m, s, end[k], F + 3, F + 6);
        if (s->of->kind == SHAPE_BALL)
            ring_put(m, s, end[k], F, F + 3);
        if (s->of->kind == SHAPE_BALL && space)
            ring_put(m, s, end[k], F, F + 6);
    }
    for (int k = 0; n == 2 && k < (space ? 4 : 2); k++) {
        double a[2][3];
        for (int i = 0; i < 6; i++)
            a[i / 3][i % 3] = end[i / 3][i % 3] + (k % 2 ? -1 : 1) * F[3 + 3 * (k / 2) + i % 3];
        line_put(m, s, a[0], a[1]);
    }
}

static void hull_put(scene *m, solid *s, const convex *h)
{
    for (int k = 0; k < h->ne; k++)
        line_put(m, s, h->v + 3 * h->edge[4 * k], h->v + 3 * h->edge[4 * k + 1]);
    for (int f = 0; f < h->nf && h->dim == 2; f++)
        line_put(m, s, h->v + 3 * h->loop[h->first[f]], h->v + 3 * h->loop[h->first[f] + 1]);
}

/* the first and the second point, which are the ends of what is round; how many there are (one: twice) */
static int shape_ends(const scene *m, const solid *s, double end[2][3])
{
    const double *point = solid_table(m, s);
    int n = s->of->dim, ends = s->of->npoint < 2 ? 1 : 2;
    memset(end, 0, 6 * sizeof(double));
    for (int k = 0; k < 2; k++)
        memcpy(end[k], point + (k < ends ? k : 0) * (n + 1), (size_t)n * sizeof(double));
    return ends;
}

static void outline_find(scene *m, solid *s)
{
    const double *point = solid_table(m, s);
    const convex *h = m->seen->hull[s->number][s->inst];
    double end[2][3], A[9], M[9];
    int n = s->of->dim, ends = shape_ends(m, s, end);
    if (s->of->kind == SHAPE_ELLIPSOID) {
        ellipsoid_map(s->of, point, A, M);
        for (int k = 0; k < (n == 3 ? 3 : 1); k++) {
            double u[3], w[3];
            for (int i = 0; i < 3; i++) {
                u[i] = M[3 * i + k];
                w[i] = M[3 * i + (k + 1) % 3];
            }
            ring_put(m, s, end[0], u, w);
        }
    } else if (s->of->kind == SHAPE_CYLINDER || (h && h->nv < 3))
        round_put(m, s, end, ends, point[n]);
    else if (h)
        hull_put(m, s, h);
}

/* how far it reaches from its own origin */
static double solid_reach(const scene *m, const solid *s)
{
    const double *point = solid_table(m, s);
    int n = s->of->dim;
    double far = 0, A[9], M[9], round = 0;
    for (int k = 0; k < s->of->npoint; k++, point += n + 1) {
        double y2 = 0;
        for (int i = 0; i < n; i++)
            y2 += point[i] * point[i];
        far = fmax(far, sqrt(y2) + (s->of->kind == SHAPE_ELLIPSOID ? 0 : point[n]));
    }
    if (s->of->kind == SHAPE_ELLIPSOID) {
        ellipsoid_map(s->of, solid_table(m, s), A, M);
        for (int k = 0; k < 9; k++)
            round += k < 6 || n == 3 ? M[k] * M[k] : 0;
    }
    return far + sqrt(round);
}

/* ---- polygons ---- */

enum { RING = 24, HALF_BALL = 6 }; /* corners around an axis; rings of half a ball */

static void corner_put(scene *m, polygons *to, const double *x)
{
    for (int i = 0; i < 3; i++)
        *vec_push(m->s->tmp, &to->x) = x[i];
}

static void polygon_end(scene *m, polygons *to)
{
    *vec_push(m->s->tmp, &to->end) = (int32_t)to->corner.n;
}

static void polygon_put(scene *m, polygons *to, const int *corner, int n)
{
    for (int k = 0; k < n; k++)
        *vec_push(m->s->tmp, &to->corner) = corner[k];
    polygon_end(m, to);
}

/* of n rings one after the other: what lies between them, and both ends */
static void rings_join(scene *m, polygons *to, int n)
{
    int around[RING];
    for (int last = 0; last < 2; last++) {
        for (int k = 0; k < RING; k++)
            around[k] = last ? (n - 1) * RING + k : RING - 1 - k;
        polygon_put(m, to, around, RING);
    }
    for (int ring = 0; ring + 1 < n; ring++)
        for (int k = 0; k < RING; k++) {
            int a = ring * RING + k, b = ring * RING + (k + 1) % RING;
            polygon_put(m, to, (const int[]){ a, b, b + RING, a + RING }, 4);
        }
}

/* a ring across the first axis of F at its multiple `along`, `wide` times as wide as the others */
static void ring_corners(scene *m, polygons *to, const double *c, const double *F, double along, double wide)
{
    for (int k = 0; k < RING; k++) {
        double a = 2 * acos(-1) * k / RING, x[3];
        for (int i = 0; i < 3; i++)
            x[i] = c[i] + along * F[i] + wide * (cos(a) * F[3 + i] + sin(a) * F[6 + i]);
        corner_put(m, to, x);
    }
}

/* what turns about the first axis of F: a cylinder from end to end, or with half a ball on both; its corners
   lie on the surface */
static void round_polygons(scene *m, polygons *to, double end[2][3], const double *F, bool flat)
{
    int half = flat ? 1 : HALF_BALL;
    for (int k = 0; k < 2 * half; k++) {
        double a = flat ? 0 : acos(-1) / 2 * (k - half + 0.5) / half;
        ring_corners(m, to, end[k >= half], F, sin(a), cos(a));
    }
    rings_join(m, to, 2 * half);
}

/* in the plane: around a disk, or around two that are joined */
static void round_outline(scene *m, polygons *to, double end[2][3], const double *F)
{
    for (int k = 0; k < 2 * RING; k++) {
        double a = acos(-1) * (k + 0.5) / RING, x[3] = { 0 };
        for (int i = 0; i < 2; i++) /* the second half goes around the first end */
            x[i] = end[k < RING][i] + sin(a) * F[i] + cos(a) * F[3 + i];
        corner_put(m, to, x);
        *vec_push(m->s->tmp, &to->corner) = k;
    }
    polygon_end(m, to);
}

/* corners in the plane, in order around their middle */
static void flat_polygon(scene *m, polygons *to, const convex *h)
{
    double angle[h->nv], o[2] = { 0 };
    int order[h->nv];
    for (int k = 0; k < 2 * h->nv; k++)
        o[k % 2] += h->v[3 * (k / 2) + k % 2] / h->nv;
    for (int k = 0; k < h->nv; k++) {
        int at = k;
        angle[k] = atan2(h->v[3 * k + 1] - o[1], h->v[3 * k] - o[0]);
        for (; at > 0 && angle[order[at - 1]] > angle[k]; at--)
            order[at] = order[at - 1];
        order[at] = k;
    }
    polygon_put(m, to, order, h->nv);
}

static void hull_polygons(scene *m, polygons *to, const convex *h)
{
    for (int k = 0; k < h->nv; k++)
        corner_put(m, to, h->v + 3 * k);
    if (h->dim == 2)
        flat_polygon(m, to, h);
    for (int f = 0; f < h->nf && h->dim == 3; f++)
        polygon_put(m, to, h->loop + h->first[f], h->first[f + 1] - h->first[f]);
}

void solid_polygons(scene *m, const solid *s, polygons *to)
{
    double end[2][3], F[9], A[9], M[9];
    *to = (polygons){ 0 };
    if (!s->of)
        return;
    const convex *h = m->seen->hull[s->number][s->inst];
    int n = shape_ends(m, s, end);
    if (s->of->kind == SHAPE_BALL && !(h && h->nv < 3)) {
        if (h)
            hull_polygons(m, to, h);
        return;
    }
    const double d[3] = { end[1][0] - end[0][0], end[1][1] - end[0][1], end[1][2] - end[0][2] };
    if (s->of->kind == SHAPE_ELLIPSOID) {
        ellipsoid_map(s->of, solid_table(m, s), A, M);
        for (int k = 0; k < 9; k++)
            F[k] = M[3 * (k % 3) + k / 3]; /* columns */
    } else
        frame_along(d, solid_table(m, s)[s->of->dim], F);
    if (s->of->dim == 2)
        round_outline(m, to, end, F);
    else
        round_polygons(m, to, end, F, s->of->kind == SHAPE_CYLINDER && n == 2);
}

/* ---- which shapes are drawn ---- */

static bool is_at(const scene *m, size_t body, const solid *s, double t)
{
    double x[3], far = 0, size = 0;
    const body_pose at = m->seen->at[s->number][s->inst];
    mover_place(m, body, t, x);
    for (int i = 0; i < 3; i++) {
        far = fmax(far, fabs(x[i] - at.p[i]));
        size = fmax(size, fabs(x[i]));
    }
    return far <= CORNER_SAME * size;
}

/* the part that carries it; of the model itself the first thing that is where the shape is, at two times */
static int body_of(scene *m, const solid *s)
{
    const results *r = m->s->last->r;
    const mclass *c = m->s->last->of->m->classes.at[s->of->of];
    double times[2] = { r->t[0], r->t[r->samples - 1] };
    for (size_t k = 0; k < m->all.n; k++) {
        const mover *b = &m->all.at[k];
        if (b->of == c && b->inst == s->inst)
            return (int)k;
        if (s->of->of || b->of || b->line || b->n != s->of->dim)
            continue;
        bool here = true;
        for (int i = 1; i >= 0 && here; i--) {
            solids_move(m, times[i]);
            here = is_at(m, k, s, times[i]);
        }
        if (here)
            return (int)k;
    }
    return -1;
}

static void solid_add(scene *m, solid s)
{
    if (is_carried(s.of)) {
        s.body = body_of(m, &s);
        if (s.body < 0 && !m->whole)
            return;
    }
    s.reach = solid_reach(m, &s);
    outline_find(m, &s);
    if (s.body >= 0) {
        mover *b = &m->all.at[s.body];
        b->shaped = true;
        b->reach = fmax(b->reach, s.reach);
    }
    *vec_push(m->s->tmp, &m->solids) = s;
}

void scene_solids(scene *m)
{
    const results *r = m->s->last ? m->s->last->r : NULL;
    if (m->solids.n || !r || !r->samples || !m->all.n || !m->s->last->of->m)
        return;
    m->seen = shapes_seen(m->s->tmp, r->prog, r->param);
    for (size_t k = 0; m->seen && k < r->prog->shapes.n; k++)
        for (int32_t i = 0; i < r->prog->shapes.at[k].instances && m->solids.n < m->most; i++)
            solid_add(m, (solid){ .of = &r->prog->shapes.at[k],
                                  .number = k,
                                  .inst = i,
                                  .body = -1,
                                  .fixed = !is_carried(&r->prog->shapes.at[k]) });
    for (size_t k = 0; m->columns && m->solids.n && k < m->all.n; k++)
        m->all.at[k].shaped = true; /* a body is clearer than the columns of its rotation */
    for (size_t k = 0; k < m->all.n && m->solids.n < m->most; k++)
        if (m->all.at[k].attitude && !m->all.at[k].shaped)
            *vec_push(m->s->tmp, &m->solids) = (solid){ .body = (int)k };
}

/* ---- what touches ---- */

/* A sample has the forces of the step that ends there; which points of two shapes touch was found where that
   step began, and what was found in all steps before decides which point is which. */
void touching_read(scene *m, inputs *in, double *q, double *v, double t)
{
    const results *r = m->s->last->r;
    int64_t sample = sample_before(r->t, r->samples, t);
    arena *a = m->s->answer;
    arena_pos mark = arena_mark(a);
    bool pairs = m->seen && r->prog->shapes.nfeature;
    for (; pairs && m->followed < (sample > 0 ? sample : 1); m->followed++) {
        state_read(a, r, in, q, v, r->t[m->followed]);
        shapes_all(m->seen, in);
        arena_release(a, mark);
    }
    state_read(m->s->tmp, r, in, q, v, t);
    bool ends = sample == r->samples - 1 && r->feature; /* what the run itself left */
    in->from[IN_FEATURE] = ends ? r->feature : pairs ? m->seen->feature : NULL;
}

bool touching_at(const contact_family *f, const inputs *in, const int32_t *ix, double *reg, double *x,
                 double *normal)
{
    int n = (int)f->points.tape.nout / 2;
    if (!n)
        return false;
    memset(x, 0, 3 * sizeof *x);
    memset(normal, 0, 3 * sizeof *normal);
    tape_start(&f->points.tape, reg);
    kernel_run(&f->points, in, ix, reg);
    for (int i = 0; i < n; i++) {
        x[i] = reg[f->points.tape.out[i]];
        normal[i] = reg[f->points.tape.out[n + i]];
    }
    return true;
}

/* ---- half-spaces ---- */

static bool facing(const contact_family *f, const inputs *in, const int32_t *ix, double *reg, wall_plane *out)
{
    double x[3];
    *out = (wall_plane){ 0 };
    tape_start(&f->gap.tape, reg);
    kernel_run(&f->gap, in, ix, reg);
    double gap = reg[f->gap.tape.out[0]];
    touching_at(f, in, ix, reg, x, out->n);
    for (int i = 0; i < 3; i++)
        out->level += out->n[i] * x[i];
    out->level -= gap;
    return isfinite(out->level);
}

bool halfspace_of(const scene *m, const contact_family *f, const inputs *in, double *q, double *reg,
                  wall_plane *out)
{
    int32_t ix[MAX_INDEX] = { 0 };
    wall_plane moved;
    if (!f->points.tape.nout || f->pair.touch || !f->gap.tape.nout || f->points.where ||
        (f->over.n && !index_first(&f->over, ix)) || !facing(f, in, ix, reg, out))
        return false;
    /* it is one when it stays where it is while the body moves */
    size_t n = (size_t)m->s->last->r->prog->nq;
    double size = 1 + fabs(out->level), far = 0;
    double *was = arena_array(m->s->tmp, double, n);
    memcpy(was, q, n * sizeof *q);
    for (size_t k = 0; k < n; k++)
        q[k] += 0.1 * sin((double)(k + 1));
    bool finite = facing(f, in, ix, reg, &moved);
    memcpy(q, was, n * sizeof *q);
    for (int i = 0; i < 3; i++)
        far = fmax(far, fabs(moved.n[i] - out->n[i]));
    return finite && fmax(far, fabs(moved.level - out->level)) <= CORNER_SAME * size;
}
