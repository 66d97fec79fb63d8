/* gate_shapes: the distance of two shapes of a run, from its states alone. Wolfe's method (P. Wolfe, Finding
   the nearest point in a polytope, 1976) finds the point of the difference of both bodies that is nearest to
   the origin. It uses neither faces and edges nor anything from a solver. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "gate.h"
#include "program/shapes.h"
#include "base/tolerances.h"

typedef struct carried {
    const double *table; /* its points, `width` numbers each, in the frame of the body */
    int n, dim, width;
    double round; /* radius of a ball that is added to every point */
    /* cylinder: radius of the disk across the axis; the points are the ends of the axis */
    double disk, axis[3];
    double E[9];              /* ellipsoid: its inverse matrix, 3 x 3 */
    double place[3], turn[9]; /* current position and rotation */
    double was[3], before[9]; /* position and rotation at the previous placement */
    /* middle of its points in the frame of the body, and distance of the farthest one, without `round` */
    double middle[3], reach;
} carried;

/* The interval that a body covers on an axis; the index that names the body, and whether it is the first one
   of its pairs. */
typedef struct covering {
    double lo, hi;
    int32_t i;
    bool first;
} covering;

struct gate_shapes {
    const program *p;
    arena *a;
    carried **body; /* of each shape that may touch another one, and of each instance */
    double *reg;
    covering *order; /* temporary: bodies of a family of pairs */
    size_t room;
};

static double dot3(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Stores the inverse of the matrix of an ellipsoid; in the plane the third axis has length 0. */
static void ellipsoid_begin(carried *b, const double *A)
{
    int n = b->dim;
    double M[9] = { 1, 0, 0, 0, 1, 0, 0, 0, 1 }, det = 0, minor[9];
    for (int i = 0; i < n * n; i++)
        M[3 * (i / n) + i % n] = A[i];
    for (int i = 0; i < 9; i++) {
        int r = (i / 3 + 1) % 3, s = (i / 3 + 2) % 3, p = (i % 3 + 1) % 3, q = (i % 3 + 2) % 3;
        minor[i] = M[3 * r + p] * M[3 * s + q] - M[3 * r + q] * M[3 * s + p];
    }
    for (int i = 0; i < 3; i++)
        det += M[i] * minor[i];
    for (int i = 0; i < 9; i++)
        b->E[i] = i / 3 < n && i % 3 < n ? minor[3 * (i % 3) + i / 3] / det : 0;
}

/* Stores what is added to the points of a shape; returns its size, except for balls. */
static double round_begin(carried *b, const shape_info *s)
{
    double length = 0;
    switch (s->kind) {
    case SHAPE_CYLINDER:
        b->n = 2;
        b->disk = b->table[s->dim];
        for (int k = 0; k < 3; k++)
            b->axis[k] = b->table[b->width + k] - b->table[k];
        length = sqrt(dot3(b->axis, b->axis));
        for (int k = 0; k < 3; k++)
            b->axis[k] /= length;
        return b->disk;
    case SHAPE_ELLIPSOID:
        b->n = 1;
        ellipsoid_begin(b, b->table + b->width);
        return sqrt(b->E[0] + b->E[4] + b->E[8]);
    default:
        b->round = b->table[s->dim];
        return 0;
    }
}

static void cross3(const double *a, const double *b, double *to)
{
    for (int k = 0; k < 3; k++)
        to[k] = a[(k + 1) % 3] * b[(k + 2) % 3] - a[(k + 2) % 3] * b[(k + 1) % 3];
}

static void body_begin(carried *b, const shape_info *s, const double *table)
{
    *b = (carried){ .table = table, .n = s->npoint, .dim = s->dim, .width = s->dim + 1 };
    double around = round_begin(b, s);
    for (int k = 0; k < 3; k++)
        b->turn[4 * k] = b->before[4 * k] = 1;
    for (int i = 0; i < b->n; i++)
        for (int k = 0; k < b->dim; k++)
            b->middle[k] += table[i * b->width + k] / b->n;
    for (int i = 0; i < b->n; i++) {
        double far = 0;
        for (int k = 0; k < b->dim; k++) {
            double d = table[i * b->width + k] - b->middle[k];
            far += d * d;
        }
        b->reach = fmax(b->reach, sqrt(far));
    }
    b->reach += around;
}

gate_shapes *gate_shapes_new(arena *a, const program *p, const double *param)
{
    size_t most = 0;
    bool any = false;
    for (size_t c = 0; c < p->ncontact; c++)
        any |= p->contact[c].pair.touch;
    if (!any)
        return NULL;
    gate_shapes *g = arena_make(a, gate_shapes);
    *g = (gate_shapes){ .p = p, .a = a, .body = arena_array(a, carried *, p->shapes.paired) };
    for (size_t k = 0; k < p->shapes.paired; k++) {
        const shape_info *s = &p->shapes.at[k];
        g->body[k] = arena_array(a, carried, s->instances);
        for (int32_t i = 0; i < s->instances; i++)
            body_begin(&g->body[k][i], s, param + s->table + i * s->size);
        most = s->pose.tape.nreg > most ? s->pose.tape.nreg : most;
    }
    g->reg = arena_array(a, double, most + 1);
    return g;
}

void gate_shapes_place(gate_shapes *g, const inputs *in)
{
    for (size_t k = 0; k < g->p->shapes.paired; k++) {
        const kernel *pose = &g->p->shapes.at[k].pose;
        int32_t index[MAX_INDEX] = { 0 };
        if (!pose->tape.nout)
            continue;
        tape_start(&pose->tape, g->reg);
        for (bool any = index_first(&pose->over, index); any; any = index_next(&pose->over, index)) {
            carried *b = &g->body[k][pose->over.n ? index[0] - pose->over.r[0].lo : 0];
            const uint32_t *out = pose->tape.out;
            memcpy(b->was, b->place, sizeof b->was);
            memcpy(b->before, b->turn, sizeof b->before);
            kernel_run(pose, in, index, g->reg);
            for (int i = 0; i < b->dim; i++)
                b->place[i] = g->reg[*out++];
            for (int i = 0; i < b->dim; i++)
                for (int j = 0; j < b->dim; j++)
                    b->turn[3 * i + j] = g->reg[*out++];
        }
    }
}

/* A point of the body in its current pose, moved towards the middle of the body by the fraction `drawn`. */
static void point_at(const carried *b, int i, double drawn, double *x)
{
    double y[3] = { 0 };
    for (int k = 0; k < b->dim; k++) {
        double own = b->table[i * b->width + k];
        y[k] = own + drawn * (b->middle[k] - own);
    }
    for (int k = 0; k < 3; k++)
        x[k] = b->place[k] + dot3(b->turn + 3 * k, y);
}

static bool is_curved(const carried *b)
{
    return b->disk > 0 || b->E[0] > 0;
}

/* The point of a disk or an ellipsoid that is farthest along n, relative to its middle. */
static void round_furthest(const carried *b, const double *n, double *x)
{
    double own[3], y[3] = { 0 }, length = 0;
    for (int k = 0; k < 3; k++)
        own[k] = b->turn[k] * n[0] + b->turn[3 + k] * n[1] + b->turn[6 + k] * n[2];
    if (b->disk > 0) {
        double along = dot3(own, b->axis);
        for (int k = 0; k < 3; k++)
            y[k] = own[k] - along * b->axis[k];
        length = sqrt(dot3(y, y)) / b->disk;
    } else {
        for (int k = 0; k < 3; k++)
            y[k] = dot3(b->E + 3 * k, own);
        length = sqrt(dot3(own, y));
    }
    for (int k = 0; k < 3; k++)
        y[k] = length > 0 ? y[k] / length : 0;
    for (int k = 0; k < 3; k++)
        x[k] = dot3(b->turn + 3 * k, y);
}

/* The point that is farthest along n; *most: its distance along n. */
static void furthest(const carried *b, const double *n, double drawn, double *x, double *most)
{
    double y[3];
    *most = -INFINITY;
    for (int i = 0; i < b->n; i++) {
        point_at(b, i, drawn, y);
        double s = dot3(n, y);
        if (s > *most) {
            *most = s;
            memcpy(x, y, sizeof y);
        }
    }
    if (!is_curved(b))
        return;
    round_furthest(b, n, y);
    for (int k = 0; k < 3; k++)
        x[k] += (1 - drawn) * y[k];
    *most = dot3(n, x);
}

/* ---- the nearest point of a difference ---- */
enum { CORNERS = 4 }; /* of a simplex in space */
typedef struct corral {
    int n;
    double point[CORNERS][3], weight[CORNERS];
} corral;

/* Weights of the point of the affine hull that is nearest to the origin; false: the points are dependent. */
static bool affine_nearest(const corral *c, double *w)
{
    int n = c->n + 1;
    double A[CORNERS + 1][CORNERS + 2] = { 0 };
    double size = 0;
    for (int i = 0; i < c->n; i++)
        size = fmax(size, dot3(c->point[i], c->point[i]));
    for (int i = 0; i < c->n; i++) {
        for (int j = 0; j < c->n; j++)
            A[i][j] = dot3(c->point[i], c->point[j]) / size;
        A[i][c->n] = A[c->n][i] = 1;
    }
    A[c->n][n] = 1;
    for (int k = 0; k < n; k++) {
        int pivot = k;
        for (int i = k + 1; i < n; i++)
            if (fabs(A[i][k]) > fabs(A[pivot][k]))
                pivot = i;
        if (!(fabs(A[pivot][k]) > GATE_DEPENDENT))
            return false;
        for (int j = 0; j <= n; j++) {
            double x = A[k][j];
            A[k][j] = A[pivot][j];
            A[pivot][j] = x;
        }
        for (int i = 0; i < n; i++) {
            double f = i == k ? 0 : A[i][k] / A[k][k];
            for (int j = k; f != 0 && j <= n; j++)
                A[i][j] -= f * A[k][j];
        }
    }
    for (int i = 0; i < c->n; i++)
        w[i] = A[i][n] / A[i][i];
    return true;
}

static void corral_point(const corral *c, double *x)
{
    memset(x, 0, 3 * sizeof *x);
    for (int i = 0; i < c->n; i++)
        for (int k = 0; k < 3; k++)
            x[k] += c->weight[i] * c->point[i][k];
}

/* Moves towards the nearest point of the affine hull while weights stay positive; false: it has been reached.
 */
static bool corral_narrows(corral *c)
{
    double w[CORNERS], far = 1;
    int out = -1, n = 0;
    if (!affine_nearest(c, w)) {
        c->n--; /* the newest point adds nothing */
        return false;
    }
    for (int i = 0; i < c->n; i++)
        if (w[i] <= 0 && c->weight[i] / (c->weight[i] - w[i]) < far) {
            far = c->weight[i] / (c->weight[i] - w[i]);
            out = i;
        }
    for (int i = 0; i < c->n; i++)
        c->weight[i] += far * (w[i] - c->weight[i]);
    if (out < 0)
        return false;
    for (int i = 0; i < c->n; i++)
        if (i != out) {
            memcpy(c->point[n], c->point[i], sizeof c->point[n]);
            c->weight[n++] = c->weight[i];
        }
    c->n = n;
    return true;
}

/* The distance of the points of two bodies, and its direction from y to x; 0: they meet. */
static double distance(const carried *x, const carried *y, double drawn, double *n)
{
    enum { MOST = 200 };
    double size = x->reach + y->reach, p[3], q[3], at[3], far;
    corral c = { .n = 1, .weight = { 1 } };
    point_at(x, 0, drawn, p);
    point_at(y, 0, drawn, q);
    for (int k = 0; k < 3; k++)
        at[k] = c.point[0][k] = p[k] - q[k];
    for (int it = 0; it < MOST; it++) {
        double length = sqrt(dot3(at, at)), back[3];
        if (length <= ROUND_50 * size)
            return 0;
        for (int k = 0; k < 3; k++) {
            n[k] = at[k] / length;
            back[k] = -n[k];
        }
        furthest(x, back, drawn, p, &far);
        furthest(y, n, drawn, q, &far);
        double next[3] = { p[0] - q[0], p[1] - q[1], p[2] - q[2] };
        bool gains = dot3(n, next) < length - ROUND_50 * (size + length);
        for (int i = 0; i < c.n; i++)
            gains = gains && memcmp(c.point[i], next, sizeof next) != 0;
        if (!gains)
            return length;
        if (c.n == CORNERS)
            return 0; /* the origin lies in the simplex */
        memcpy(c.point[c.n], next, sizeof next);
        c.weight[c.n++] = 0;
        while (corral_narrows(&c))
            ;
        corral_point(&c, at);
        if (!(dot3(at, at) < length * length)) /* each step must come nearer; if not, the rest is rounding */
            return length;
    }
    return sqrt(dot3(at, at));
}

/* How far the bodies overlap along a direction from y to x. */
static double overlap_along(const carried *x, const carried *y, const double *n)
{
    double back[3] = { -n[0], -n[1], -n[2] }, p[3], most_x, most_y;
    furthest(x, back, 0, p, &most_x);
    furthest(y, n, 0, p, &most_y);
    return most_x + most_y;
}

/* A direction n, turned by u and v towards two directions across it, and the overlap along it. */
typedef struct turning {
    const carried *x, *y;
    double n[3], along_u[3], along_v[3];
    double u;      /* the value of u while v is searched */
    double widest; /* range of u and v to both sides */
} turning;

static double overlap_turned(const turning *t, double u, double v)
{
    double n[3], length;
    for (int k = 0; k < 3; k++)
        n[k] = t->n[k] + u * t->along_u[k] + v * t->along_v[k];
    length = sqrt(dot3(n, n));
    for (int k = 0; k < 3; k++)
        n[k] /= length;
    return overlap_along(t->x, t->y, n);
}

/* Minimum of a function of one number, by golden sections. */
static double least_of(const turning *t, double (*of)(const turning *t, double at), double *least)
{
    enum { SECTIONS = 16 };
    static const double golden = 0.6180339887498949;
    double lo = -t->widest, hi = t->widest, p = hi - golden * (hi - lo), q = lo + golden * (hi - lo),
           at_p = of(t, p), at_q = of(t, q);
    for (int k = 0; k < SECTIONS; k++)
        if (at_p < at_q) {
            hi = q;
            q = p;
            at_q = at_p;
            p = hi - golden * (hi - lo);
            at_p = of(t, p);
        } else {
            lo = p;
            p = q;
            at_p = at_q;
            q = lo + golden * (hi - lo);
            at_q = of(t, q);
        }
    *least = fmin(at_p, at_q);
    return at_p < at_q ? p : q;
}

static double at_v(const turning *t, double v)
{
    return overlap_turned(t, t->u, v);
}

static double least_over_v(const turning *t, double u)
{
    turning of = *t;
    double least;
    if (t->x->dim == 2)
        return overlap_turned(t, u, 0);
    of.u = u;
    least_of(&of, at_v, &least);
    return least;
}

/* The smallest overlap of curved bodies along directions near n. */
static double overlap_near(const carried *x, const carried *y, const double *n)
{
    enum { PASSES = 3 };
    static const double widest[PASSES] = { 0.2, 5e-3, 1e-4 };
    turning t = { .x = x, .y = y, .n = { n[0], n[1], n[2] } };
    double most = overlap_along(x, y, n), now;
    for (int pass = 0; pass < PASSES; pass++) {
        double across[3] = { 0 }, length;
        if (most + x->round + y->round <= GATE_LOOSE / 10 * (x->reach + y->reach))
            return most;
        across[x->dim == 2 ? 2 : fabs(t.n[0]) < 0.6 ? 0 : fabs(t.n[1]) < 0.6 ? 1 : 2] = 1;
        cross3(across, t.n, t.along_u);
        length = sqrt(dot3(t.along_u, t.along_u));
        for (int k = 0; k < 3; k++)
            t.along_u[k] /= length;
        cross3(t.n, t.along_u, t.along_v);
        t.widest = widest[pass];
        t.u = least_of(&t, least_over_v, &now);
        if (!(now < most))
            continue;
        most = now;
        double v = x->dim == 2 ? 0 : least_of(&t, at_v, &now);
        for (int k = 0; k < 3; k++)
            t.n[k] += t.u * t.along_u[k] + v * t.along_v[k];
        length = sqrt(dot3(t.n, t.n));
        for (int k = 0; k < 3; k++)
            t.n[k] /= length;
    }
    return most;
}

/* If bodies meet, they are shrunk until they do not. Along the direction of their distance then, the overlap
   of the original bodies is an upper bound. */
static double overlap(const carried *x, const carried *y)
{
    enum { DRAWN = 6 };
    static const double drawn[DRAWN] = { 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1 };
    double n[3], best[3] = { 1 }, least = x->reach + y->reach;
    bool curved = is_curved(x) || is_curved(y), any = false;
    for (int k = 0; k < DRAWN; k++) {
        if (distance(x, y, drawn[k], n) == 0)
            continue;
        double most = overlap_along(x, y, n);
        if (!curved && most <= GATE_LOOSE / 10 * (x->reach + y->reach))
            return fmax(most, 0);
        any = true;
        if (most < least) {
            least = most;
            memcpy(best, n, sizeof best);
        }
    }
    return any ? overlap_near(x, y, best) : least;
}

static void middle_at(const carried *b, const double *place, const double *turn, double *x)
{
    for (int k = 0; k < 3; k++)
        x[k] = place[k] + dot3(turn + 3 * k, b->middle);
}

/* The largest distance that a point of the body has moved since the previous placement. */
static double way_of(const carried *b)
{
    double from[3], to[3], far = 0, turn = 0;
    middle_at(b, b->was, b->before, from);
    middle_at(b, b->place, b->turn, to);
    for (int k = 0; k < 3; k++)
        far += (to[k] - from[k]) * (to[k] - from[k]);
    for (int k = 0; k < 9; k++)
        turn += (b->turn[k] - b->before[k]) * (b->turn[k] - b->before[k]);
    return sqrt(far) + sqrt(turn) * b->reach;
}

/* ---- which pairs of very many may overlap ---- */

static int by_lo(const void *a, const void *b)
{
    double x = ((const covering *)a)->lo, y = ((const covering *)b)->lo;
    return (x > y) - (x < y);
}

/* Adds to the order, after its first n, the bodies that index k of the family numbers, with their intervals
   on an axis. */
static size_t coverings_put(gate_shapes *g, const contact_family *f, int k, int axis, size_t n)
{
    const slot_map *first = &f->pair.first_of, *second = &f->pair.second_of;
    bool of_first = first->stride[k] != 0;
    const slot_map *m = of_first ? first : second;
    int32_t index[MAX_INDEX] = { 0 }, lo = f->over.r[0].lo, hi = f->over.r[0].hi, least = INT32_MAX,
            most = INT32_MIN;
    for (int32_t i = lo; k == 1 && i <= hi; i++) {
        index[0] = i;
        int32_t from = (int32_t)range_lo(&f->over, index, 1), to = (int32_t)range_hi(&f->over, index, 1);
        if (to < from)
            continue;
        least = from < least ? from : least;
        most = to > most ? to : most;
    }
    for (int32_t i = k ? least : lo; i <= (k ? most : hi); i++) {
        const carried *b = &g->body[of_first ? f->pair.first : f->pair.second][m->base + m->stride[k] * i];
        double x[3], reach = b->reach + b->round;
        middle_at(b, b->place, b->turn, x);
        if (n == g->room) {
            size_t room = 2 * g->room + 64;
            g->order = arena_grow(g->a, g->order, g->room * sizeof *g->order, room * sizeof *g->order);
            g->room = room;
        }
        g->order[n++] = (covering){ x[axis] - reach, x[axis] + reach, i, k == 0 };
    }
    return n;
}

/* The axis along which the bodies are spread most. */
static int axis_of(gate_shapes *g, const contact_family *f)
{
    int best = 0;
    double widest = -1;
    for (int axis = 0; axis < g->p->shapes.at[f->pair.first].dim; axis++) {
        size_t n = coverings_put(g, f, 0, axis, 0);
        double lo = INFINITY, hi = -INFINITY;
        for (size_t i = 0; i < n; i++) {
            lo = fmin(lo, g->order[i].lo);
            hi = fmax(hi, g->order[i].hi);
        }
        if (hi - lo > widest) {
            widest = hi - lo;
            best = axis;
        }
    }
    return best;
}

bool gate_shapes_each(gate_shapes *g, size_t of, bool (*look)(void *ud, const int32_t *index), void *ud)
{
    const contact_family *f = &g->p->contact[of];
    int axis = axis_of(g, f);
    size_t n = coverings_put(g, f, 1, axis, coverings_put(g, f, 0, axis, 0));
    qsort(g->order, n, sizeof *g->order, by_lo);
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n && g->order[j].lo <= g->order[i].hi; j++) {
            const covering *x = &g->order[i], *y = &g->order[j];
            int32_t index[MAX_INDEX] = { x->first ? x->i : y->i, x->first ? y->i : x->i, 1 };
            if (x->first == y->first || index[1] < range_lo(&f->over, index, 1) ||
                index[1] > range_hi(&f->over, index, 1))
                continue;
            if (!look(ud, index))
                return false;
        }
    return true;
}

shapes_apart gate_shapes_pair(const gate_shapes *g, size_t of, const int32_t *index)
{
    const contact_family *f = &g->p->contact[of];
    int last = f->over.n - 1;
    const carried *x = &g->body[f->pair.first][slot_at(&f->pair.first_of, index, last)],
                  *y = &g->body[f->pair.second][slot_at(&f->pair.second_of, index, last)];
    double a[3], b[3], n[3], far = 0, round = x->round + y->round;
    shapes_apart s = { .size = x->reach + y->reach + round, .way = way_of(x) + way_of(y) };
    middle_at(x, x->place, x->turn, a);
    middle_at(y, y->place, y->turn, b);
    for (int k = 0; k < 3; k++)
        far += (a[k] - b[k]) * (a[k] - b[k]);
    far = sqrt(far) - s.size;
    if (far > s.way + s.size) { /* separated by the distance of the balls around them */
        s.gap = far;
        return s;
    }
    s.gap = distance(x, y, 0, n);
    if (s.gap == 0)
        s.gap = -overlap(x, y);
    /* along the direction of distance, because corners of the polytope are too close together */
    else if (is_curved(x) || is_curved(y))
        s.gap = -overlap_near(x, y, n);
    s.gap -= round;
    return s;
}

bool gate_shapes_plain(gate_shapes *g, size_t of, const int32_t *index, const inputs *in)
{
    /* places of feature.n and of .point or .of_a among the numbers of a feature */
    enum { N = 6, POINT = 15 };
    const contact_family *f = &g->p->contact[of];
    int last = f->over.n - 1;
    const carried *x = &g->body[f->pair.first][slot_at(&f->pair.first_of, index, last)],
                  *y = &g->body[f->pair.second][slot_at(&f->pair.second_of, index, last)];
    bool curved = g->p->shapes.at[f->pair.first].kind != SHAPE_BALL ||
                  g->p->shapes.at[f->pair.second].kind != SHAPE_BALL;
    double what[FEATURE_NUMBERS] = { [POINT] = 1 }, far = 0, arm = x->reach + y->reach, d[3];
    inputs other = *in;
    what[0] = arm;
    for (int k = 0; k < 3; k++) {
        d[k] = x->place[k] + arm * x->turn[3 * k] - y->place[k];
        far += d[k] * d[k];
    }
    /* along the normal, between the points, without the rounded parts */
    for (int k = 0; curved && k < x->dim; k++)
        what[N + k] = (x->turn[k] * d[0] + x->turn[3 + k] * d[1] + x->turn[6 + k] * d[2]) / sqrt(far);
    arena_pos mark = arena_mark(g->a);
    double *reg = arena_array(g->a, double, f->gap.tape.nreg + 1);
    other.from[IN_FEATURE] = what - slot_at(&f->pair.features, index, f->over.n);
    tape_start(&f->gap.tape, reg);
    kernel_run(&f->gap, &other, index, reg);
    double gap = reg[f->gap.tape.out[0]];
    arena_release(g->a, mark);
    return fabs(gap - sqrt(far)) <= GATE_SAME * (arm + sqrt(far));
}
