/* near: pairs of points or of shapes that may touch, from cells of the size of reach and margin; searched
   again when points may have crossed the margin. Bodies of very different sizes are in separate grids, one
   for each factor of 2: each body searches for those that are as large as itself, or larger. */
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

bool near_of_points(const contact_family *f)
{
    enum { FEW = 64 }; /* members that are checked one by one */
    if (!f->near_dim || f->over.n != 2 || f->gap.where || index_members(&f->over) <= FEW)
        return false;
    bool a0 = map_reads(&f->near_a[0], 0), a1 = map_reads(&f->near_a[0], 1), b0 = map_reads(&f->near_b[0], 0),
         b1 = map_reads(&f->near_b[0], 1);
    return a0 != a1 && b0 != b1 && a0 != b0;
}

bool near_fits(const contact_family *f)
{
    return f->pair.listed || near_of_points(f);
}

/* a reach that depends on the pair is computed once for all */
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

static bool of_bodies(const near_pairs *p)
{
    return p->fam->f->pair.listed;
}

/* ---- what an index stands for ---- */

/* The shape that an index numbers, and which of its instances. */
static int shape_at(const near_pairs *p, int index, int32_t i, int32_t *instance)
{
    const shape_pair *pair = &p->fam->f->pair;
    const slot_map *m = index == p->first ? &pair->first_of : &pair->second_of;
    *instance = m->base + m->stride[index] * i;
    return index == p->first ? pair->first : pair->second;
}

int32_t near_dof(const near_pairs *p, int index, int32_t i, int k)
{
    const contact_family *f = p->fam->f;
    const slot_map *m = (index == p->first ? f->near_a : f->near_b) + k;
    return m->base + m->stride[index] * i;
}

static void points_room(near_list *w, near_pairs *p, int index)
{
    near_points *of = &p->of[index];
    size_t n = (size_t)of->n;
    of->x = arena_array(w->a, double, NEAR_AXES *n);
    of->seen = arena_array(w->a, double, NEAR_AXES *n);
    of->next = arena_array(w->a, int32_t, n);
    if (!of_bodies(p))
        return;
    of->reach = arena_array(w->a, double, n);
    of->way = arena_array(w->a, double, n);
    of->level = arena_array(w->a, uint8_t, n);
    for (int32_t i = 0; i < of->n; i++) {
        int32_t instance;
        int shape = shape_at(p, index, of->lo + i, &instance);
        of->reach[i] = shapes_reach(w->s->shapes, shape, instance);
    }
}

/* Are the points of index 1 among those of index 0? */
static bool same_points(const near_pairs *p)
{
    const contact_family *f = p->fam->f;
    const slot_map *zero = p->first == 0 ? f->near_a : f->near_b,
                   *one = p->first == 0 ? f->near_b : f->near_a;
    if (of_bodies(p) || p->of[1].lo < p->of[0].lo || p->of[1].lo + p->of[1].n > p->of[0].lo + p->of[0].n)
        return false;
    for (int k = 0; k < p->dim; k++)
        if (zero[k].base != one[k].base || zero[k].stride[0] != one[k].stride[1])
            return false;
    return true;
}

static void pairs_new(near_list *w, near_pairs *p)
{
    const contact_family *f = p->fam->f;
    int32_t index[MAX_INDEX] = { 0 }, lo1 = INT32_MAX, hi1 = INT32_MIN;
    int64_t at = 0;
    p->first = map_reads(f->pair.listed ? &f->pair.first_of : &f->near_a[0], 0) ? 0 : 1;
    p->slots = f->pair.listed ? f->slots : 1;
    p->dim = f->pair.listed ? w->s->p->shapes.at[f->pair.first].dim : f->near_dim;
    p->of[0].lo = f->over.r[0].lo;
    p->of[0].n = f->over.r[0].hi - f->over.r[0].lo + 1;
    p->row_start = arena_array(w->a, int64_t, p->of[0].n > 0 ? p->of[0].n + 1 : 1);
    for (int32_t i = 0; i < p->of[0].n; i++) {
        index[0] = p->of[0].lo + i;
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
    p->of[1].lo = lo1;
    p->of[1].n = hi1 >= lo1 ? hi1 - lo1 + 1 : 0;
    p->sides = same_points(p) ? 1 : 2;
    points_room(w, p, 0);
    points_room(w, p, 1);
    if (!of_bodies(p))
        p->reach = largest_reach(p, w->a, &w->s->in);
}

static void points_mark(near_list *w, const near_pairs *p)
{
    for (int index = 0; index < 2; index++)
        for (int32_t i = 0; i < p->of[index].n; i++)
            for (int k = 0; k < p->dim; k++)
                w->point[near_dof(p, index, p->of[index].lo + i, k)] = true;
}

void near_new(near_list *w, arena *a, system_t *s)
{
    int32_t most = 0;
    *w = (near_list){ .a = a, .s = s, .n = s->n };
    w->of = arena_array(a, near_pairs, s->p->ncontact);
    w->ahead = arena_array(a, double, s->n);
    w->point = arena_array(a, bool, s->n);
    for (size_t i = 0; i < s->p->ncontact; i++) {
        if (!near_fits(&s->p->contact[i]))
            continue;
        near_pairs *p = &w->of[w->nof++];
        p->fam = &s->family[i];
        pairs_new(w, p);
        for (int k = 0; k < 2; k++)
            most = p->of[k].n > most ? p->of[k].n : most;
        if (of_bodies(p))
            continue;
        points_mark(w, p);
        w->reach = larger(w->reach, p->reach);
    }
    w->list = arena_array(a, int32_t, (size_t)most + 1);
}

int64_t near_rank(const near_pairs *p, int32_t i, int32_t j)
{
    int32_t index[MAX_INDEX] = { i };
    return p->row_start[i - p->of[0].lo] + (j - range_lo(&p->fam->f->over, index, 1));
}

/* ---- where they are, and how far they come ---- */

static void points_put(const near_list *w, near_pairs *p, int index, const double *q)
{
    near_points *of = &p->of[index];
    for (int32_t i = 0; i < of->n; i++) {
        double *x = of->x + NEAR_AXES * i;
        int32_t instance;
        if (of_bodies(p)) {
            int shape = shape_at(p, index, of->lo + i, &instance);
            shapes_middle(w->s->shapes, shape, instance, x);
            continue;
        }
        for (int k = 0; k < p->dim; k++)
            x[k] = q[near_dof(p, index, of->lo + i, k)];
    }
}

static bool any_bodies(const near_list *w)
{
    for (size_t i = 0; i < w->nof; i++)
        if (of_bodies(&w->of[i]))
            return true;
    return false;
}

static void all_put(near_list *w, double t, const double *q)
{
    if (any_bodies(w)) {
        system_at(w->s, t, q, q);
        shapes_place(w->s->shapes, &w->s->in);
    }
    for (size_t i = 0; i < w->nof; i++)
        for (int index = 0; index < w->of[i].sides; index++)
            points_put(w, &w->of[i], index, q);
}

static double apart2(const double *x, const double *y, int dim)
{
    double d2 = 0;
    for (int k = 0; k < dim; k++)
        d2 += (x[k] - y[k]) * (x[k] - y[k]);
    return d2;
}

/* Upper bound of the distance that bodies move within a time at these rates. */
static void ways_grow(near_list *w, double t, const double *q, const double *v, double h)
{
    for (int i = 0; i < w->n; i++)
        w->ahead[i] = q[i] + h * v[i];
    system_at(w->s, t + h, w->ahead, v);
    shapes_place(w->s->shapes, &w->s->in);
    for (size_t f = 0; f < w->nof; f++)
        for (int index = 0; index < 2 && of_bodies(&w->of[f]); index++) {
            near_points *of = &w->of[f].of[index];
            for (int32_t i = 0; i < of->n; i++) {
                double x[NEAR_AXES];
                int32_t instance;
                int shape = shape_at(&w->of[f], index, of->lo + i, &instance);
                shapes_middle(w->s->shapes, shape, instance, x);
                of->way[i] = larger(of->way[i], sqrt(apart2(x, of->x + NEAR_AXES * i, NEAR_AXES)));
            }
        }
}

/* two points approach by both of their distances, rounded up */
static const double ROOM = 2.001;
/* bodies are near if their distance is below this fraction of their sizes */
static const double BODY_SKIN = 0.2;

/* the fastest of the points of a family */
static double points_speed(const near_pairs *p, const double *v)
{
    double most = 0;
    for (int index = 0; index < p->sides; index++)
        for (int32_t i = 0; i < p->of[index].n; i++) {
            double speed2 = 0;
            for (int k = 0; k < p->dim; k++) {
                double u = v[near_dof(p, index, p->of[index].lo + i, k)];
                speed2 += u * u;
            }
            most = larger(most, speed2);
        }
    return sqrt(most);
}

/* Upper bound of how much two points of a family may have approached since their pairs were found. The
   common motion of all points does not count: distances are relative to the middle of all of them. */
static double points_moved(const near_pairs *p)
{
    double lo[NEAR_AXES] = { INFINITY, INFINITY, INFINITY },
           hi[NEAR_AXES] = { -INFINITY, -INFINITY, -INFINITY }, most = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int index = 0; index < p->sides; index++) {
            const near_points *of = &p->of[index];
            for (int32_t i = 0; i < of->n; i++) {
                double length2 = 0;
                for (int k = 0; k < p->dim; k++) {
                    double d = of->x[NEAR_AXES * i + k] - of->seen[NEAR_AXES * i + k],
                           off = d - 0.5 * (lo[k] + hi[k]);
                    if (pass == 0) {
                        lo[k] = d < lo[k] ? d : lo[k];
                        hi[k] = d > hi[k] ? d : hi[k];
                    }
                    length2 += off * off;
                }
                most = pass ? larger(most, length2) : 0;
            }
        }
    return ROOM * sqrt(most);
}

/* How far bodies have moved, or will move in this number of steps, beyond their own margins. */
static double bodies_moved(const near_pairs *p, bool moved, double ways)
{
    double most = 0;
    for (int index = 0; index < 2; index++) {
        const near_points *of = &p->of[index];
        for (int32_t i = 0; i < of->n; i++) {
            double d2 = moved ? apart2(of->x + NEAR_AXES * i, of->seen + NEAR_AXES * i, p->dim) : 0;
            most = larger(most, sqrt(d2) + ways * of->way[i] - BODY_SKIN * of->reach[i]);
        }
    }
    return ROOM * most;
}

/* The fraction of the margin that is used up at the current positions, if points approach by `need`, and
   bodies by this number of steps. */
static double skin_used(const near_list *w, double need, double ways)
{
    double most = 0;
    for (size_t i = 0; i < w->nof; i++) {
        const near_pairs *p = &w->of[i];
        most = larger(most, of_bodies(p) ? bodies_moved(p, true, ways) : points_moved(p) + need);
    }
    return most;
}

bool near_covers(near_list *w, double t, const double *q)
{
    if (w->nof == 0)
        return true;
    all_put(w, t, q);
    return w->known && skin_used(w, 0, 0) <= w->skin;
}

/* of all bodies, in the step */
static void ways_put(near_list *w, double t, const double *q, const double *v, const double *v1, double h)
{
    if (!any_bodies(w))
        return;
    for (size_t f = 0; f < w->nof; f++)
        for (int index = 0; index < 2 && of_bodies(&w->of[f]); index++)
            memset(w->of[f].of[index].way, 0, (size_t)w->of[f].of[index].n * sizeof(double));
    ways_grow(w, t, q, v, h);
    ways_grow(w, t, q, v1, h);
    system_at(w->s, t, q, v);
    shapes_place(w->s->shapes, &w->s->in);
}

bool near_keep(near_list *w, double t, const double *q, const double *v, const double *v1, double h,
               double margin, double listed)
{
    enum { THICK = 3 }; /* times the required margin: beyond it, it is cheaper to find fewer pairs */
    double ahead = 0, skin = 0.3 * w->reach;
    w->far = 0;
    if (w->nof == 0)
        return false;
    all_put(w, t, q);
    ways_put(w, t, q, v, v1, h);
    for (size_t i = 0; i < w->nof; i++)
        if (!of_bodies(&w->of[i]))
            ahead = larger(ahead, ROOM * h * larger(points_speed(&w->of[i], v), points_speed(&w->of[i], v1)));
    w->far = margin * ahead;
    skin = larger(skin, larger(listed, 2 * NEAR_AHEAD) * ahead);
    for (size_t i = 0; i < w->nof; i++)
        if (of_bodies(&w->of[i]))
            skin = larger(skin, bodies_moved(&w->of[i], false, larger(listed, 2 * NEAR_AHEAD)));
    if (w->known && skin_used(w, listed * ahead, listed) <= w->skin && w->skin <= THICK * skin)
        return false;
    w->skin = skin;
    for (size_t i = 0; i < w->nof; i++)
        for (int index = 0; index < 2; index++) {
            const near_points *of = &w->of[i].of[index], *at = w->of[i].sides == 1 ? &w->of[i].of[0] : of;
            memcpy(of->seen, at->x + NEAR_AXES * (of->lo - at->lo),
                   NEAR_AXES * (size_t)of->n * sizeof *of->x);
        }
    near_find(w);
    return true;
}

/* ---- cells ---- */

/* pairs further apart than what both add to it are not listed */
static double share_of(const near_list *w, const near_pairs *p, int index, int32_t i)
{
    const double *reach = p->of[index].reach;
    return reach ? (1 + BODY_SKIN) * reach[i] + 0.5 * w->skin : 0.5 * (p->reach + w->skin);
}

static int level_of(const near_points *of, int32_t i)
{
    return of->level ? of->level[i] : 0;
}

static void levels_put(const near_list *w, near_pairs *p)
{
    double most = 0;
    if (!of_bodies(p))
        return;
    for (int index = 0; index < 2; index++)
        for (int32_t i = 0; i < p->of[index].n; i++)
            most = larger(most, share_of(w, p, index, i));
    for (int index = 0; index < 2; index++)
        for (int32_t i = 0; i < p->of[index].n; i++) {
            double smaller = floor(log2(most / share_of(w, p, index, i)));
            p->of[index].level[i] = (uint8_t)whole_clamp(smaller, 0, NEAR_LEVELS - 1);
        }
}

static int32_t grid_cell(const near_grid *g, int dim, const double *x, int32_t *at)
{
    int32_t c = 0;
    for (int k = 0; k < dim; k++) {
        double f = floor((x[k] - g->lo[k]) / g->size);
        at[k] = (int32_t)whole_clamp(f, 0, g->n[k] - 1);
        c = c * g->n[k] + at[k];
    }
    return c;
}

/* bounds of the points of a level, and cells no smaller than what two of them reach */
static void grid_bounds(const near_list *w, const near_pairs *p, int index, int level, near_grid *g,
                        double *hi)
{
    const near_points *of = &p->of[index];
    g->size = g->points = 0;
    for (int k = 0; k < NEAR_AXES; k++) {
        g->lo[k] = INFINITY;
        hi[k] = -INFINITY;
    }
    for (int32_t i = 0; i < of->n; i++) {
        if (level_of(of, i) != level)
            continue;
        g->points++;
        g->size = larger(g->size, 2 * share_of(w, p, index, i));
        for (int k = 0; k < p->dim; k++) {
            double x = of->seen[NEAR_AXES * i + k];
            g->lo[k] = fmin(g->lo[k], x);
            hi[k] = fmax(hi[k], x);
        }
    }
}

/* The grid of a level; those that look into it are no larger than it (least: twice what the largest has). */
static void grid_fill(near_list *w, near_pairs *p, int index, int level, double least)
{
    near_grid *g = &p->grid[index][level];
    near_points *of = &p->of[index];
    double hi[NEAR_AXES], need;
    int32_t cells = 1, at[NEAR_AXES];
    grid_bounds(w, p, index, level, g, hi);
    if (!g->points)
        return;
    g->size = larger(g->size, least);
    double most = 8.0 * g->points + 64;
    for (;; g->size *= 1.5) {
        need = 1;
        for (int k = 0; k < p->dim; k++)
            need *= floor((hi[k] - g->lo[k]) / g->size) + 1;
        if (!(need > most))
            break;
    }
    for (int k = 0; k < p->dim; k++) {
        double m = floor((hi[k] - g->lo[k]) / g->size) + 1;
        /* one cell where a point is nan */
        g->n[k] = need <= most ? (int32_t)whole_clamp(m, 1, INT32_MAX) : 1;
        cells *= g->n[k];
    }
    if ((size_t)cells > g->room) {
        g->room = 2 * (size_t)cells;
        g->cell = arena_array(w->a, int32_t, g->room);
    }
    for (int32_t c = 0; c < cells; c++)
        g->cell[c] = -1;
    for (int32_t i = 0; i < of->n; i++) {
        if (level_of(of, i) != level)
            continue;
        int32_t c = grid_cell(g, p->dim, of->seen + NEAR_AXES * i, at);
        of->next[i] = g->cell[c];
        g->cell[c] = i;
    }
}

/* points of an index and a level in the cells around x that lie within both shares, behind the n in the list
 */
static int32_t neighbours(near_list *w, const near_pairs *p, int index, int level, const double *x,
                          double share, int32_t n)
{
    const near_grid *g = &p->grid[index][level];
    const near_points *of = &p->of[index];
    int32_t at[NEAR_AXES] = { 0 }, around[NEAR_AXES] = { 1, 1, 1 }, c[NEAR_AXES];
    if (!g->points)
        return n;
    grid_cell(g, p->dim, x, at);
    for (int k = p->dim; k < NEAR_AXES; k++)
        at[k] = around[k] = 0;
    for (c[0] = at[0] - around[0]; c[0] <= at[0] + around[0]; c[0]++)
        for (c[1] = at[1] - around[1]; c[1] <= at[1] + around[1]; c[1]++)
            for (c[2] = at[2] - around[2]; c[2] <= at[2] + around[2]; c[2]++) {
                int32_t cell = 0;
                bool in = true;
                for (int k = 0; k < p->dim; k++) {
                    in &= c[k] >= 0 && c[k] < g->n[k];
                    cell = cell * g->n[k] + c[k];
                }
                for (int32_t j = in ? g->cell[cell] : -1; j >= 0; j = of->next[j]) {
                    double cut = of->reach ? share + share_of(w, p, index, j) : p->reach + w->skin;
                    if (apart2(of->seen + NEAR_AXES * j, x, p->dim) <= cut * cut)
                        w->list[n++] = j;
                }
            }
    return n;
}

static int by_number(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static int by_pair(const void *a, const void *b)
{
    int first = by_number(a, b);
    return first ? first : by_number((const int32_t *)a + 1, (const int32_t *)b + 1);
}

/* Pairs whose second body is the smaller one: found from that one, sorted. */
static void back_find(near_list *w, near_pairs *p)
{
    const near_points *of = &p->of[1];
    p->back.n = 0;
    for (int32_t j = 0; of_bodies(p) && j < of->n; j++) {
        int32_t n = 0;
        for (int level = 0; level < level_of(of, j); level++) {
            n = neighbours(w, p, 0, level, of->seen + NEAR_AXES * j, share_of(w, p, 1, j), 0);
            for (int32_t k = 0; k < n; k++) {
                *vec_push(w->a, &p->back) = w->list[k];
                *vec_push(w->a, &p->back) = j;
            }
        }
    }
    if (p->back.n)
        qsort(p->back.at, p->back.n / 2, 2 * sizeof *p->back.at, by_pair);
}

static void grids_fill(near_list *w, near_pairs *p)
{
    double largest[NEAR_LEVELS] = { 0 };
    levels_put(w, p);
    for (int index = 0; index < 2; index++)
        for (int32_t i = 0; i < p->of[index].n; i++) {
            double *l = &largest[level_of(&p->of[index], i)];
            *l = larger(*l, 2 * share_of(w, p, index, i));
        }
    for (int level = NEAR_LEVELS - 2; level >= 0; level--)
        largest[level] = larger(largest[level], largest[level + 1]);
    for (int level = 0; level < (of_bodies(p) ? NEAR_LEVELS : 1); level++) {
        grid_fill(w, p, 1, level, of_bodies(p) ? largest[level] : 0);
        if (of_bodies(p))
            grid_fill(w, p, 0, level, largest[level]);
    }
}

static void pairs_find(near_list *w, near_pairs *p)
{
    const near_points *of = &p->of[0];
    int32_t index[MAX_INDEX] = { 0 };
    grids_fill(w, p);
    back_find(w, p);
    p->pair.n = 0;
    for (int32_t i = 0, back = 0; i < of->n; i++) {
        int32_t n = 0;
        index[0] = of->lo + i;
        int64_t lo = range_lo(&p->fam->f->over, index, 1), hi = range_hi(&p->fam->f->over, index, 1);
        for (int level = 0; level <= level_of(of, i); level++)
            n = neighbours(w, p, 1, level, of->seen + NEAR_AXES * i, share_of(w, p, 0, i), n);
        for (; 2 * (size_t)back < p->back.n && p->back.at[2 * back] == i; back++)
            w->list[n++] = p->back.at[2 * back + 1];
        qsort(w->list, (size_t)n, sizeof *w->list, by_number);
        for (int32_t k = 0; k < n; k++) {
            int32_t j = p->of[1].lo + w->list[k];
            if (j < lo || j > hi)
                continue;
            *vec_push(w->a, &p->pair) = index[0];
            *vec_push(w->a, &p->pair) = j;
        }
    }
}

void near_find(near_list *w)
{
    for (size_t i = 0; i < w->nof; i++)
        pairs_find(w, &w->of[i]);
    w->known = true;
}
