#include "program/shapes.h"
#include <math.h>
#include <string.h>
#include "base/tolerances.h"

_Static_assert(offsetof(feature, id) == FEATURE_NUMBERS * sizeof(double), "numbers of a feature come first");

static bool any_pair(const program *p)
{
    for (size_t k = 0; k < p->ncontact; k++)
        if (p->contact[k].pair.touch)
            return true;
    return false;
}

static int64_t pairs_count(const program *p)
{
    int64_t n = 0;
    for (size_t k = 0; k < p->ncontact; k++)
        if (p->contact[k].pair.touch)
            n += index_members(&p->contact[k].over) / p->contact[k].slots;
    return n;
}

static convex *hull_make(arena *a, const shape_info *s, const double *table)
{
    switch (s->kind) {
    case SHAPE_CYLINDER:
        return convex_cylinder(a, table, s->dim + 1, table[s->dim]);
    case SHAPE_ELLIPSOID:
        return convex_ellipsoid(a, s->dim, table, table + s->dim + 1);
    default:
        return convex_hull(a, s->dim, table, s->npoint, s->dim + 1, table[s->dim]);
    }
}

static const char *hull_missing(const shape_info *s)
{
    switch (s->kind) {
    case SHAPE_CYLINDER:
        return "this cylinder has no length or no radius";
    case SHAPE_ELLIPSOID:
        return "the matrix of this ellipsoid is not symmetric and positive definite";
    default:
        return s->npoint > CONVEX_POINTS
                   ? "this shape has more than 600 points, too many for contact with another shape"
                   : "the points of this shape have no hull with an interior";
    }
}

/* Makes the hulls of all instances of a shape in their own frames; true: all have one. */
static bool hulls_make(shapes *w, arena *a, size_t k)
{
    bool all = true;
    const shape_info *s = &w->p->shapes.at[k];
    w->hull[k] = arena_array(a, convex *, s->instances);
    w->at[k] = arena_array(a, body_pose, s->instances);
    w->was[k] = arena_array(a, body_pose, s->instances);
    w->way[k] = arena_array(a, double, s->instances);
    for (int32_t i = 0; i < s->instances; i++) {
        const double *table = w->param + s->table + i * s->size;
        w->at[k][i] = (body_pose){ .A = { 1, 0, 0, 0, 1, 0, 0, 0, 1 } };
        w->hull[k][i] = hull_make(a, s, table);
        all = all && w->hull[k][i];
    }
    return all;
}

/* How many numbers results keep for the families before `end`: those of listed pairs come after all others.
 */
static size_t kept_numbers(const program *p, const contact_family *end)
{
    size_t n = (size_t)p->shapes.nfeature;
    for (const contact_family *f = p->contact; f < end; f++)
        if (f->pair.listed && index_members(&f->over) <= KEPT_MEMBERS)
            n += (size_t)index_members(&f->over) * FEATURE_NUMBERS;
    return n;
}

static void features_room(shapes *w, size_t n)
{
    if (n > w->room) {
        size_t room = n + n / 2;
        double *numbers = arena_array(w->a, double, room);
        int64_t *id = arena_array(w->a, int64_t, room / FEATURE_NUMBERS + 1);
        if (w->nfeature) {
            memcpy(numbers, w->feature, w->nfeature * sizeof *numbers);
            memcpy(id, w->id, w->nfeature / FEATURE_NUMBERS * sizeof *id);
        }
        w->feature = numbers;
        w->id = id;
        w->room = room;
    }
    w->nfeature = n;
}

static shapes *shapes_room(arena *a, const program *p, const double *param, size_t n, bool every)
{
    enum { FEW = 64 };
    size_t most = 1;
    shapes *w = arena_make(a, shapes);
    *w = (shapes){ .a = a, .p = p, .param = param, .n = n, .exact = pairs_count(p) <= FEW, .every = every };
    w->hull = arena_array(a, convex **, n);
    w->at = arena_array(a, body_pose *, n);
    w->was = arena_array(a, body_pose *, n);
    w->way = arena_array(a, double *, n);
    for (size_t k = 0; k < n; k++)
        most = p->shapes.at[k].pose.tape.nreg > most ? p->shapes.at[k].pose.tape.nreg : most;
    w->reg = arena_array(a, double, most + 1);
    features_room(w, every ? kept_numbers(p, p->contact + p->ncontact) : (size_t)p->shapes.nfeature);
    return w;
}

shapes *shapes_new(arena *a, const program *p, const double *param, const char **why, span *at)
{
    if (!any_pair(p))
        return NULL;
    shapes *w = shapes_room(a, p, param, p->shapes.paired, false);
    for (size_t k = 0; k < w->n; k++)
        if (!hulls_make(w, a, k)) {
            *why = hull_missing(&p->shapes.at[k]);
            *at = p->shapes.at[k].where;
            return NULL;
        }
    return w;
}

shapes *shapes_seen(arena *a, const program *p, const double *param)
{
    if (!p->shapes.n)
        return NULL;
    shapes *w = shapes_room(a, p, param, p->shapes.n, true);
    for (size_t k = 0; k < w->n; k++)
        (void)hulls_make(w, a, k);
    return w;
}

void shapes_place(shapes *w, const inputs *in)
{
    for (size_t k = 0; k < w->n; k++) {
        const shape_info *s = &w->p->shapes.at[k];
        const kernel *pose_of = &s->pose;
        int32_t index[MAX_INDEX] = { 0 };
        if (!pose_of->tape.nout)
            continue;
        tape_start(&pose_of->tape, w->reg);
        for (bool any = index_first(&pose_of->over, index); any; any = index_next(&pose_of->over, index)) {
            kernel_run(pose_of, in, index, w->reg);
            body_pose *to = &w->at[k][pose_of->over.n ? index[0] - pose_of->over.r[0].lo : 0];
            const uint32_t *out = pose_of->tape.out;
            for (int i = 0; i < s->dim; i++) {
                to->p[i] = w->reg[out[i]];
                for (int j = 0; j < s->dim; j++)
                    to->A[3 * i + j] = w->reg[out[s->dim + s->dim * i + j]];
            }
        }
    }
}

/* how far a point of it moves at most: the way of its middle, and the change of its matrix times its reach */
static double way_between(const convex *c, const body_pose *a, const body_pose *b)
{
    double far = 0, turn = 0, arm = c->reach;
    for (int i = 0; i < 3; i++) {
        double d = b->p[i] - a->p[i];
        for (int j = 0; j < 3; j++) {
            double e = b->A[3 * i + j] - a->A[3 * i + j];
            d += e * c->middle[j];
            turn += e * e;
        }
        far += d * d;
    }
    return sqrt(far) + sqrt(turn) * arm;
}

void shapes_ways(shapes *w, const inputs *then)
{
    for (size_t k = 0; k < w->n; k++)
        memcpy(w->was[k], w->at[k], (size_t)w->p->shapes.at[k].instances * sizeof *w->at[k]);
    shapes_place(w, then);
    for (size_t k = 0; k < w->n; k++)
        for (int32_t i = 0; i < w->p->shapes.at[k].instances; i++)
            w->way[k][i] = way_between(w->hull[k][i], &w->was[k][i], &w->at[k][i]);
}

/* a pair of bodies */
typedef struct {
    const convex *x, *y;
    const body_pose *px, *py;
    int64_t first; /* of its numbers */
} body_pair;

enum { NOTHING = -1 }; /* id of a point that never touches */

/* A point that never touches where a body is curved: its round is counted with the other sign, so that the
   gap stays larger than both bodies. */
static feature nothing_curved(const body_pair *b)
{
    bool of_x = !b->y->curved;
    const convex *c = of_x ? b->x : b->y;
    const body_pose *at = of_x ? b->px : b->py;
    double u[3] = { 1 }, along = 0, reach = 0;
    for (int k = 0, i = 0; c->ends && k < 3; k++) /* across its axis */
        if (fabs(c->axis[k]) <= fabs(c->axis[i])) {
            i = k;
            for (int j = 0; j < 3; j++)
                u[j] = (j == i) - c->axis[i] * c->axis[j];
        }
    feature f = { .of_a = of_x, .id = NOTHING };
    double length = sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
    memcpy(f.a, b->x->middle, sizeof f.a);
    memcpy(f.b, b->y->middle, sizeof f.b);
    for (int i = 0; i < 3; i++) {
        double d = b->px->p[i] - b->py->p[i], n = 0;
        for (int j = 0; j < 3; j++) {
            d += b->px->A[3 * i + j] * f.a[j] - b->py->A[3 * i + j] * f.b[j];
            n += at->A[3 * i + j] * u[j] / length;
            reach += u[i] * c->E[3 * i + j] * u[j] / (length * length);
        }
        along += d * n;
    }
    for (int i = 0; i < 3; i++)
        f.n[i] = (along < 0 ? -1 : 1) * u[i] / length;
    *(of_x ? &f.round_a : &f.round_b) = -(b->x->reach + b->y->reach) / sqrt(reach);
    return f;
}

/* A point that never touches: negative radii keep its gap larger than both bodies. */
static feature nothing(const body_pair *b)
{
    feature f;
    if (b->x->curved || b->y->curved)
        return nothing_curved(b);
    convex_far(b->x, b->y, &f);
    f.ra = -b->x->reach;
    f.rb = -b->y->reach;
    f.id = NOTHING;
    return f;
}

static body_pair pair_at(const shapes *w, const contact_family *f, const int32_t *index)
{
    int n = f->over.n;
    int32_t i = slot_at(&f->pair.first_of, index, n), j = slot_at(&f->pair.second_of, index, n),
            at[MAX_INDEX] = { 0 };
    memcpy(at, index, (size_t)n * sizeof *at);
    at[index_of_point(f)] = 1;
    return (body_pair){ w->hull[f->pair.first][i], w->hull[f->pair.second][j], &w->at[f->pair.first][i],
                        &w->at[f->pair.second][j], slot_at(&f->pair.features, at, n) };
}

double shapes_way(const shapes *w, const contact_family *f, const int32_t *index)
{
    int n = f->over.n;
    return w->way[f->pair.first][slot_at(&f->pair.first_of, index, n)] +
           w->way[f->pair.second][slot_at(&f->pair.second_of, index, n)];
}

double shapes_room_between(const shapes *w, const contact_family *f, const int32_t *index)
{
    body_pair b = pair_at(w, f, index);
    return convex_apart(b.x, b.px, b.y, b.py);
}

double shapes_reach(const shapes *w, int shape, int32_t instance)
{
    return w->hull[shape][instance]->reach;
}

void shapes_middle(const shapes *w, int shape, int32_t instance, double *x)
{
    const body_pose *at = &w->at[shape][instance];
    const double *middle = w->hull[shape][instance]->middle;
    for (int i = 0; i < 3; i++) {
        x[i] = at->p[i];
        for (int j = 0; j < 3; j++)
            x[i] += at->A[3 * i + j] * middle[j];
    }
}

/* ---- places of listed pairs ---- */

int32_t shapes_take(shapes *w)
{
    int32_t place;
    if (w->spare.n)
        place = w->spare.at[--w->spare.n];
    else {
        place = (int32_t)(w->nfeature / PAIR_NUMBERS);
        features_room(w, w->nfeature + PAIR_NUMBERS);
    }
    memset(w->feature + (size_t)place * PAIR_NUMBERS, 0, PAIR_NUMBERS * sizeof *w->feature);
    memset(w->id + (size_t)place * FEATURES, 0, FEATURES * sizeof *w->id);
    return place;
}

void shapes_give(shapes *w, int32_t place)
{
    *vec_push(w->a, &w->spare) = place;
}

void shapes_index(const program *p, const contact_family *f, int64_t member, int32_t *index)
{
    if (f->pair.listed)
        index[f->over.n - 1] = (int32_t)(kept_numbers(p, f) / PAIR_NUMBERS) + (int32_t)(member / f->slots);
}

const double *shapes_kept(const shapes *w, arena *a, const held_pair *held, size_t n)
{
    const program *p = w->p;
    double *out = arena_array(a, double, kept_numbers(p, p->contact + p->ncontact));
    if (p->shapes.nfeature)
        memcpy(out, w->feature, (size_t)p->shapes.nfeature * sizeof *out);
    for (size_t k = 0; k < n; k++) {
        int32_t index[MAX_INDEX] = { 0 };
        const contact_family *f = held[k].f;
        if (index_members(&f->over) > KEPT_MEMBERS)
            continue;
        shapes_index(p, f, held[k].member, index);
        memcpy(out + (size_t)index[f->over.n - 1] * PAIR_NUMBERS,
               w->feature + (size_t)held[k].place * PAIR_NUMBERS, PAIR_NUMBERS * sizeof *out);
    }
    return out;
}

/* ---- finding features ---- */

static int pair_touch(const shapes *w, const body_pair *b, feature *all)
{
    enum { CURVED_WORK = 20000 };
    bool curved = b->x->curved || b->y->curved;
    if (!w->exact && !curved && convex_apart(b->x, b->px, b->y, b->py) > fmax(b->x->reach, b->y->reach)) {
        convex_far(b->x, b->y, &all[0]);
        all[0].gap = INFINITY;
        return 1;
    }
    /* nanoseconds, for each corner, face and edge of one body and each of the other */
    int64_t x = b->x->nv + b->x->nf + b->x->ne, y = b->y->nv + b->y->nf + b->y->ne;
    arena_tick(w->a, curved ? CURVED_WORK + x + y : 4 * x * y);
    return (w->deep ? convex_touch_deep : convex_touch)(b->x, b->px, b->y, b->py, all);
}

int shapes_meet(const shapes *w, const contact_family *f, const int32_t *index, feature *all, double *size)
{
    body_pair b = pair_at(w, f, index);
    *size = b.x->reach + b.y->reach;
    if (convex_apart(b.x, b.px, b.y, b.py) > 0 || convex_clear(b.x, b.px, b.y, b.py, SHAPE_CLOSE * *size))
        return 0;
    return pair_touch(w, &b, all);
}

static int64_t id_at(const shapes *w, const contact_family *f, const int32_t *index)
{
    return w->id[slot_at(&f->pair.features, index, f->over.n) / FEATURE_NUMBERS];
}

bool shapes_idle(const shapes *w, const contact_family *f, const int32_t *index)
{
    return id_at(w, f, index) == NOTHING;
}

bool shapes_far(const shapes *w, const contact_family *f, const int32_t *index)
{
    int64_t id = id_at(w, f, index);
    return id == NOTHING || convex_is_far(id);
}

bool shapes_holds(const shapes *w, const contact_family *f, const int32_t *index, int64_t id)
{
    const int64_t *held = w->id + pair_at(w, f, index).first / FEATURE_NUMBERS;
    for (int s = 0; s < f->slots; s++)
        if (held[s] == id)
            return true;
    return false;
}

static void point_hold(shapes *w, const body_pair *b, int point, const feature *f)
{
    w->id[b->first / FEATURE_NUMBERS + point] = f->id;
    memcpy(w->feature + b->first + point * FEATURE_NUMBERS, f, FEATURE_NUMBERS * sizeof(double));
}

void shapes_hold(shapes *w, const contact_family *f, const int32_t *index, int point, const feature *what)
{
    body_pair b = pair_at(w, f, index);
    feature none = nothing(&b);
    if (!what)
        what = &none;
    point_hold(w, &b, point, what);
}

/* The normal of what is held where a body is curved, in space; false: it turns with the bodies. */
static bool curved_normal(const body_pair *b, const double *held, double *n)
{
    enum { N = 6, S = 9, OF_A = 15 };
    const body_pose *at = held[OF_A] != 0 ? b->px : b->py;
    if (held[S] != 0 || held[S + 1] != 0 || held[S + 2] != 0)
        return false;
    for (int i = 0; i < 3; i++)
        n[i] = at->A[3 * i] * held[N] + at->A[3 * i + 1] * held[N + 1] + at->A[3 * i + 2] * held[N + 2];
    return true;
}

/* The normal of a plane of either body, in space; false: the feature has no such plane. */
static bool plane_normal(const body_pair *b, const double *held, double *n)
{
    enum { UA = 6, UB = 9, PLANE_B = 12, PLANE_A };
    if (b->x->curved || b->y->curved)
        return curved_normal(b, held, n);
    const body_pose *at = held[PLANE_B] != 0 ? b->py : b->px;
    const double *u = held + (held[PLANE_B] != 0 ? UB : UA);
    if (held[PLANE_B] == 0 && held[PLANE_A] == 0)
        return false;
    for (int i = 0; i < 3; i++)
        n[i] = at->A[3 * i] * u[0] + at->A[3 * i + 1] * u[1] + at->A[3 * i + 2] * u[2];
    return true;
}

/* Is a point of touching faces at the place of an earlier one? If corners lie on edges, rounding decides
   which of them it is. */
static bool same_place(const body_pair *b, const double *held, const feature *now)
{
    double n[3], m[3], numbers[FEATURE_NUMBERS], far = 0, turned = 0, size = b->x->reach + b->y->reach;
    memcpy(numbers, now, sizeof numbers);
    if (!plane_normal(b, held, n) || !plane_normal(b, numbers, m))
        return false;
    for (int i = 0; i < 3; i++) {
        far += (held[i] - now->a[i]) * (held[i] - now->a[i]);
        turned += (n[i] - m[i]) * (n[i] - m[i]);
    }
    return sqrt(far) <= POINT_STAYS * size && sqrt(turned) <= POINT_STAYS;
}

void shapes_pair(shapes *w, const contact_family *f, const int32_t *index, bool *anew)
{
    body_pair b = pair_at(w, f, index);
    int slots = f->slots;
    int64_t *id = w->id + b.first / FEATURE_NUMBERS;
    feature all[FEATURES];
    int count = pair_touch(w, &b, all);
    bool put[FEATURES] = { false }, kept[FEATURES] = { false };
    for (int by_place = 0; by_place < 2; by_place++) /* points that were there before keep their places */
        for (int k = 0; k < count; k++)
            for (int s = 0; s < slots && !put[k]; s++)
                if (!kept[s] &&
                    (by_place ? same_place(&b, w->feature + b.first + s * FEATURE_NUMBERS, &all[k])
                              : id[s] == all[k].id)) {
                    put[k] = kept[s] = true;
                    anew[s] = false;
                    point_hold(w, &b, s, &all[k]);
                }
    for (int s = 0, k = 0; s < slots; s++) {
        if (kept[s])
            continue;
        while (k < count && put[k])
            k++;
        feature f_s = k < count ? all[k++] : nothing(&b);
        anew[s] = id[s] != f_s.id;
        point_hold(w, &b, s, &f_s);
    }
}

void shapes_measure(shapes *w, const contact_family *f, const int32_t *index, held_points *was)
{
    bool anew[FEATURES];
    int64_t first = pair_at(w, f, index).first;
    memcpy(was->number, w->feature + first, (size_t)f->slots * FEATURE_NUMBERS * sizeof *was->number);
    memcpy(was->id, w->id + first / FEATURE_NUMBERS, (size_t)f->slots * sizeof *was->id);
    shapes_pair(w, f, index, anew);
}

void shapes_hold_again(shapes *w, const contact_family *f, const int32_t *index, const held_points *was)
{
    int64_t first = pair_at(w, f, index).first;
    memcpy(w->feature + first, was->number, (size_t)f->slots * FEATURE_NUMBERS * sizeof *was->number);
    memcpy(w->id + first / FEATURE_NUMBERS, was->id, (size_t)f->slots * sizeof *was->id);
}

void shapes_all(shapes *w, const inputs *in)
{
    bool anew[FEATURES];
    shapes_place(w, in);
    for (size_t k = 0; k < w->p->ncontact; k++) {
        const contact_family *f = &w->p->contact[k];
        int32_t index[MAX_INDEX] = { 0 };
        int64_t member = 0;
        if (!f->pair.touch || (f->pair.listed && (!w->every || index_members(&f->over) > KEPT_MEMBERS)))
            continue;
        for (bool any = index_first(&f->over, index); any; any = index_next(&f->over, index), member++)
            if (index[index_of_point(f)] == 1) {
                int32_t at[MAX_INDEX];
                memcpy(at, index, sizeof at);
                shapes_index(w->p, f, member, at);
                shapes_pair(w, f, at, anew);
            }
    }
}
