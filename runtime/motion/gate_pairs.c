/* gate_pairs: finds which of very many pairs of points may overlap, by sorting the points along one axis. It
   shares nothing with the search of the solvers (near.c). */
#include <math.h>
#include <stdlib.h>
#include "gate.h"
#include "base/tolerances.h"

typedef struct placed {
    double x;
    int32_t i;
} placed;

struct gate_pairs {
    const contact_family *f;
    arena *a;
    double reach;
    int first; /* index that numbers the points near_a of the family */
    int32_t lo0, n0, lo1, n1;
    int64_t *before; /* for each value of index 0: number of members before its own */
    placed *order;   /* points of index 1, sorted */
    vec(int64_t) found;
};

/* Does each of two indices determine one point, and do radii depend only on parameters? */
static bool fits(const contact_family *f)
{
    enum { MANY = 1 << 15 };
    if (!f->near_dim || f->over.n != 2 || f->gap.where || index_members(&f->over) < MANY)
        return false;
    for (uint32_t i = 0; i < f->near_reach.tape.nin; i++)
        if (f->near_reach.in[i].kind != IN_PARAM && f->near_reach.in[i].kind != IN_INDEX)
            return false;
    bool a0 = f->near_a[0].stride[0] != 0, a1 = f->near_a[0].stride[1] != 0;
    bool b0 = f->near_b[0].stride[0] != 0, b1 = f->near_b[0].stride[1] != 0;
    return a0 != a1 && b0 != b1 && a0 != b0;
}

static void row_bounds(const contact_family *f, int32_t i, int64_t *lo, int64_t *hi)
{
    int32_t index[MAX_INDEX] = { i };
    *lo = range_lo(&f->over, index, 1);
    *hi = range_hi(&f->over, index, 1);
}

/* The largest reach, row by row. */
static double longest_reach(const gate_pairs *p, const double *param)
{
    kernel k = p->f->near_reach;
    double *work = arena_array(p->a, double, batch_regs(&k.tape)),
           *out = arena_array(p->a, double, (size_t)p->n1 + 1), most = 0;
    const inputs in = { .from = { [IN_PARAM] = param } };
    bool uniform = true;
    for (uint32_t i = 0; i < k.tape.nin; i++)
        uniform &= slot_uniform(&k.in[i]);
    for (int32_t i = 0; i < p->n0; i++) {
        int64_t lo, hi;
        row_bounds(p->f, p->lo0 + i, &lo, &hi);
        if (hi < lo)
            continue;
        k.over.r[0].lo = k.over.r[0].hi = p->lo0 + i;
        k.over.count = hi - lo + 1;
        kernel_run_all(&k, &in, work, out);
        for (int64_t j = 0; j <= hi - lo; j++)
            most = fmax(most, out[j]);
        if (uniform)
            break;
    }
    return most;
}

gate_pairs *gate_pairs_new(arena *a, const contact_family *f, const double *param)
{
    if (!fits(f))
        return NULL;
    gate_pairs *p = arena_make(a, gate_pairs);
    *p = (gate_pairs){ .f = f, .a = a, .first = f->near_a[0].stride[0] ? 0 : 1, .lo0 = f->over.r[0].lo };
    p->n0 = f->over.r[0].hi - p->lo0 + 1;
    p->before = arena_array(a, int64_t, (size_t)p->n0 + 1);
    int64_t at = 0, least = INT32_MAX, most = INT32_MIN;
    for (int32_t i = 0; i < p->n0; i++) {
        int64_t lo, hi;
        row_bounds(f, p->lo0 + i, &lo, &hi);
        p->before[i] = at;
        if (hi < lo)
            continue;
        at += hi - lo + 1;
        least = lo < least ? lo : least;
        most = hi > most ? hi : most;
    }
    p->lo1 = (int32_t)least;
    p->n1 = (int32_t)(most - least + 1);
    p->order = arena_array(a, placed, (size_t)p->n1 + 1);
    p->reach = longest_reach(p, param) * (1 + PAIR_REACH);
    return p;
}

double gate_pairs_points(const gate_pairs *p)
{
    return p->n0;
}

/* ---- the search ---- */
static double coordinate(const gate_pairs *p, int index, int32_t i, int axis, const double *q)
{
    const slot_map *m = (index == p->first ? p->f->near_a : p->f->near_b) + axis;
    return q[m->base + m->stride[index] * i];
}

static int by_place(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    return x->x < y->x ? -1 : x->x > y->x;
}

/* The axis along which the points are spread most; -1: some are not finite. */
static int widest_axis(const gate_pairs *p, const double *q)
{
    double widest = -1;
    int axis = 0;
    for (int k = 0; k < p->f->near_dim; k++) {
        double lo = INFINITY, hi = -INFINITY, finite = 0;
        for (int32_t j = 0; j < p->n1; j++) {
            double x = coordinate(p, 1, p->lo1 + j, k, q);
            finite += 0 * x;
            lo = fmin(lo, x);
            hi = fmax(hi, x);
        }
        for (int32_t i = 0; i < p->n0; i++)
            finite += 0 * coordinate(p, 0, p->lo0 + i, k, q);
        if (finite != 0)
            return -1;
        if (hi - lo > widest) {
            widest = hi - lo;
            axis = k;
        }
    }
    return axis;
}

static int32_t first_from(const gate_pairs *p, double x)
{
    int32_t lo = 0, hi = p->n1;
    while (lo < hi) {
        int32_t middle = lo + (hi - lo) / 2;
        if (p->order[middle].x < x)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

static bool within_reach(const gate_pairs *p, int32_t i, int32_t j, const double *q)
{
    double square = 0;
    for (int k = 0; k < p->f->near_dim; k++) {
        double d = coordinate(p, 0, i, k, q) - coordinate(p, 1, j, k, q);
        square += d * d;
    }
    return square <= p->reach * p->reach;
}

static void look_around(gate_pairs *p, int32_t i, int axis, const double *q)
{
    double x = coordinate(p, 0, i, axis, q);
    int64_t lo, hi;
    row_bounds(p->f, i, &lo, &hi);
    for (int32_t k = first_from(p, x - p->reach); k < p->n1 && p->order[k].x <= x + p->reach; k++) {
        int32_t j = p->order[k].i;
        if (j >= lo && j <= hi && within_reach(p, i, j, q))
            *vec_push(p->a, &p->found) = p->before[i - p->lo0] + (j - lo);
    }
}

bool gate_pairs_find(gate_pairs *p, const double *q, const int64_t **members, size_t *n)
{
    int axis = widest_axis(p, q);
    if (axis < 0)
        return false;
    for (int32_t j = 0; j < p->n1; j++)
        p->order[j] = (placed){ coordinate(p, 1, p->lo1 + j, axis, q), p->lo1 + j };
    qsort(p->order, (size_t)p->n1, sizeof *p->order, by_place);
    p->found.n = 0;
    for (int32_t i = 0; i < p->n0; i++)
        look_around(p, p->lo0 + i, axis, q);
    *members = p->found.at;
    *n = p->found.n;
    return true;
}
