/* near: pairs of points that may touch, from cells of the size of reach and skin; found anew when points may
 * have crossed the skin. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/whole.h"
#include "near.h"

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

static bool map_reads(const slot_map *m, int k)
{
    return m->stride[k] != 0;
}

bool near_fits(const contact_family *f)
{
    enum { FEW = 64 }; /* members that are looked at one by one */
    if (!f->near_dim || f->over.n != 2 || f->gap.where || index_members(&f->over) <= FEW)
        return false;
    bool a0 = map_reads(&f->near_a[0], 0), a1 = map_reads(&f->near_a[0], 1), b0 = map_reads(&f->near_b[0], 0),
         b1 = map_reads(&f->near_b[0], 1);
    return a0 != a1 && b0 != b1 && a0 != b0;
}

/* a reach that depends on the pair is looked at once for all */
static double largest_reach(const near_pairs *p, arena *a, const inputs *in)
{
    const contact_family *f = p->fam->f;
    term reach = term_new(a, &f->near_reach);
    int32_t index[MAX_INDEX] = { 0 };
    double most = 0;
    bool uniform = reach.constant;
    for (uint32_t k = 0; reach.k && k < reach.k->tape.nin; k++)
        uniform &= slot_uniform(&reach.k->in[k]);
    for (bool any = index_first(&f->over, index); any; any = index_next(&f->over, index)) {
        most = larger(most, term_value(&reach, in, index));
        if (uniform)
            break;
    }
    return most;
}

static void pairs_new(near_list *w, near_pairs *p, system_t *s)
{
    const contact_family *f = p->fam->f;
    int32_t index[MAX_INDEX] = { 0 }, lo1 = INT32_MAX, hi1 = INT32_MIN;
    int64_t at = 0;
    p->first = map_reads(&f->near_a[0], 0) ? 0 : 1;
    p->lo0 = f->over.r[0].lo;
    p->n0 = f->over.r[0].hi - f->over.r[0].lo + 1;
    p->row_start = arena_array(w->a, int64_t, p->n0 > 0 ? p->n0 + 1 : 1);
    for (int32_t i = 0; i < p->n0; i++) {
        index[0] = p->lo0 + i;
        int32_t lo = (int32_t)range_lo(&f->over, index, 1), hi = (int32_t)range_hi(&f->over, index, 1);
        p->row_start[i] = at;
        if (hi < lo)
            continue;
        at += hi - lo + 1;
        if (lo < lo1)
            lo1 = lo;
        if (hi > hi1)
            hi1 = hi;
    }
    p->lo1 = lo1;
    p->n1 = hi1 >= lo1 ? hi1 - lo1 + 1 : 0;
    p->reach = largest_reach(p, w->a, &s->in);
}

static int32_t coordinate_dof(const near_pairs *p, int index, int32_t i, int k)
{
    const contact_family *f = p->fam->f;
    const slot_map *m = (index == p->first ? f->near_a : f->near_b) + k;
    return m->base + m->stride[index] * i;
}

static void points_mark(near_list *w, const near_pairs *p)
{
    for (int index = 0; index < 2; index++)
        for (int32_t i = 0; i < (index ? p->n1 : p->n0); i++)
            for (int k = 0; k < p->fam->f->near_dim; k++)
                w->point[coordinate_dof(p, index, (index ? p->lo1 : p->lo0) + i, k)] = true;
}

void near_new(near_list *w, arena *a, system_t *s)
{
    *w = (near_list){ .a = a, .n = s->n };
    w->of = arena_array(a, near_pairs, s->p->ncontact);
    w->seen = arena_array(a, double, s->n);
    w->point = arena_array(a, bool, s->n);
    for (size_t i = 0; i < s->p->ncontact; i++) {
        if (!near_fits(&s->p->contact[i]))
            continue;
        near_pairs *p = &w->of[w->nof++];
        p->fam = &s->family[i];
        pairs_new(w, p, s);
        points_mark(w, p);
        w->reach = larger(w->reach, p->reach);
    }
}

int64_t near_member(const near_pairs *p, int32_t i, int32_t j)
{
    int32_t index[MAX_INDEX] = { i };
    return p->row_start[i - p->lo0] + (j - range_lo(&p->fam->f->over, index, 1));
}

/* ---- near pairs: cells of the size of reach and skin, points of index 1 listed in them ---- */
static double coordinate(const near_pairs *p, int index, int32_t i, int k, const double *q)
{
    return q[coordinate_dof(p, index, i, k)];
}

typedef struct {
    int dim;
    double lo[3], size;
    int32_t n[3];
} grid;

static int32_t grid_cell(const grid *g, const double *x, int32_t *at)
{
    int32_t c = 0;
    for (int k = 0; k < g->dim; k++) {
        double f = floor((x[k] - g->lo[k]) / g->size);
        at[k] = (int32_t)whole_clamp(f, 0, g->n[k] - 1);
        c = c * g->n[k] + at[k];
    }
    return c;
}

static int32_t grid_make(const near_list *w, const near_pairs *p, const double *q, grid *g)
{
    double hi[3];
    g->dim = p->fam->f->near_dim;
    g->size = p->reach + w->skin;
    for (int k = 0; k < g->dim; k++) {
        g->lo[k] = INFINITY;
        hi[k] = -INFINITY;
        for (int32_t j = 0; j < p->n1; j++) {
            double x = coordinate(p, 1, p->lo1 + j, k, q);
            g->lo[k] = fmin(g->lo[k], x);
            hi[k] = fmax(hi[k], x);
        }
    }
    double most = 8.0 * p->n1 + 64, need;
    for (;; g->size *= 1.5) {
        need = 1;
        for (int k = 0; k < g->dim; k++)
            need *= floor((hi[k] - g->lo[k]) / g->size) + 1;
        if (!(need > most))
            break;
    }
    int32_t cells = 1;
    for (int k = 0; k < g->dim; k++) {
        double m = floor((hi[k] - g->lo[k]) / g->size) + 1;
        g->n[k] = need <= most ? (int32_t)whole_clamp(m, 1, INT32_MAX)
                               : 1; /* one cell where a point is nan */
        cells *= g->n[k];
    }
    return cells;
}

static int by_number(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* points of index 1 in the cells around x that lie within the skin, in order */
static int32_t neighbours(near_list *w, const near_pairs *p, const double *q, const grid *g, const double *x)
{
    int32_t at[3] = { 0 }, n = 0;
    double cut = p->reach + w->skin, cut2 = cut * cut;
    int32_t span_[3] = { 1, 1, 1 }, c[3];
    grid_cell(g, x, at);
    for (int k = g->dim; k < 3; k++) {
        at[k] = 0;
        span_[k] = 0;
    }
    for (c[0] = at[0] - span_[0]; c[0] <= at[0] + span_[0]; c[0]++)
        for (c[1] = at[1] - span_[1]; c[1] <= at[1] + span_[1]; c[1]++)
            for (c[2] = at[2] - span_[2]; c[2] <= at[2] + span_[2]; c[2]++) {
                int32_t cell = 0;
                bool in = true;
                for (int k = 0; k < g->dim; k++) {
                    in &= c[k] >= 0 && c[k] < g->n[k];
                    cell = cell * g->n[k] + c[k];
                }
                for (int32_t j = in ? w->cell[cell] : -1; j >= 0; j = w->next[j]) {
                    double d2 = 0;
                    for (int k = 0; k < g->dim; k++) {
                        double d = coordinate(p, 1, p->lo1 + j, k, q) - x[k];
                        d2 += d * d;
                    }
                    if (d2 <= cut2)
                        w->list[n++] = j;
                }
            }
    qsort(w->list, (size_t)n, sizeof *w->list, by_number);
    return n;
}

static void pairs_find(near_list *w, near_pairs *p, const double *q)
{
    grid g;
    int32_t cells = grid_make(w, p, q, &g), index[MAX_INDEX] = { 0 }, at[3];
    size_t need = (size_t)(cells > p->n1 ? cells : p->n1) + 1;
    if (need > w->cells_cap) {
        w->cells_cap = 2 * need;
        w->cell = arena_array(w->a, int32_t, w->cells_cap);
        w->next = arena_array(w->a, int32_t, w->cells_cap);
        w->list = arena_array(w->a, int32_t, w->cells_cap);
    }
    for (int32_t c = 0; c < cells; c++)
        w->cell[c] = -1;
    for (int32_t j = 0; j < p->n1; j++) {
        double x[3];
        for (int k = 0; k < g.dim; k++)
            x[k] = coordinate(p, 1, p->lo1 + j, k, q);
        int32_t c = grid_cell(&g, x, at);
        w->next[j] = w->cell[c];
        w->cell[c] = j;
    }
    p->pair.n = 0;
    for (int32_t i = 0; i < p->n0; i++) {
        double x[3];
        index[0] = p->lo0 + i;
        int64_t lo = range_lo(&p->fam->f->over, index, 1), hi = range_hi(&p->fam->f->over, index, 1);
        for (int k = 0; k < g.dim; k++)
            x[k] = coordinate(p, 0, index[0], k, q);
        int32_t n = neighbours(w, p, q, &g, x);
        for (int32_t k = 0; k < n; k++) {
            int32_t j = p->lo1 + w->list[k];
            if (j < lo || j > hi)
                continue;
            *vec_push(w->a, &p->pair) = index[0];
            *vec_push(w->a, &p->pair) = j;
        }
    }
}

/* the longest of the vectors x over the points of a family */
static double points_most(const near_pairs *p, const double *x)
{
    double most = 0;
    for (int index = 0; index < 2; index++)
        for (int32_t i = 0; i < (index ? p->n1 : p->n0); i++) {
            int32_t at = (index ? p->lo1 : p->lo0) + i;
            double length2 = 0;
            for (int k = 0; k < p->fam->f->near_dim; k++) {
                double d = coordinate(p, index, at, k, x);
                length2 += d * d;
            }
            most = larger(most, length2);
        }
    return sqrt(most);
}

void near_find(near_list *w)
{
    for (size_t i = 0; i < w->nof; i++)
        pairs_find(w, &w->of[i], w->seen);
    w->known = true;
}

/* two points come closer by both of their ways, rounded up */
static const double ROOM = 2.001;

/* By how much two points of a family may have come closer since their pairs were found.  What all have in
   common brings none closer: ways are counted from the middle of all of them. */
static double pairs_moved(const near_pairs *p, const double *q, const double *seen)
{
    enum { SPACE = 3 };
    double lo[SPACE] = { INFINITY, INFINITY, INFINITY }, hi[SPACE] = { -INFINITY, -INFINITY, -INFINITY },
           most = 0;
    int dim = p->fam->f->near_dim;
    for (int pass = 0; pass < 2; pass++)
        for (int index = 0; index < 2; index++)
            for (int32_t i = 0; i < (index ? p->n1 : p->n0); i++) {
                double length2 = 0;
                for (int k = 0; k < dim; k++) {
                    int32_t dof = coordinate_dof(p, index, (index ? p->lo1 : p->lo0) + i, k);
                    double d = q[dof] - seen[dof], off = d - 0.5 * (lo[k] + hi[k]);
                    if (pass == 0) {
                        lo[k] = d < lo[k] ? d : lo[k];
                        hi[k] = d > hi[k] ? d : hi[k];
                    }
                    length2 += off * off;
                }
                most = pass ? larger(most, length2) : 0;
            }
    return ROOM * sqrt(most);
}

static double most_moved(const near_list *w, const double *q)
{
    double moved = 0;
    for (size_t i = 0; i < w->nof; i++)
        moved = larger(moved, pairs_moved(&w->of[i], q, w->seen));
    return moved;
}

bool near_covers(const near_list *w, const double *q)
{
    return w->nof == 0 || (w->known && most_moved(w, q) <= w->skin);
}

bool near_keep(near_list *w, const double *q, const double *v, const double *v1, double h, double margin,
               double listed)
{
    enum { THICK = 3 }; /* times the skin that is wanted: then it is cheaper to find fewer pairs */
    double ahead = 0;
    for (size_t i = 0; i < w->nof; i++)
        ahead = larger(ahead, ROOM * h * larger(points_most(&w->of[i], v), points_most(&w->of[i], v1)));
    w->far = margin * ahead;
    if (w->nof == 0)
        return false;
    double need = listed * ahead, skin = larger(0.3 * w->reach, larger(need, 2 * NEAR_AHEAD * ahead));
    if (w->known && most_moved(w, q) + need <= w->skin && w->skin <= THICK * skin)
        return false;
    w->skin = skin;
    memcpy(w->seen, q, (size_t)w->n * sizeof *q);
    near_find(w);
    return true;
}
