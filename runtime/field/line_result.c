/* line_result: results of a solution on an interval: ends of contact inside cells, forces, energy. */
#include "base/whole.h"
#include "field_line.h"
#include "base/tolerances.h"
#include <string.h>

/* ---- levels ---- */
static double gap_of(const line *l, int f, int64_t k)
{
    int64_t i = k * l->nf + f;
    return fmin(fabs(l->u[i] - l->lo[i]), l->hi ? fabs(l->hi[i] - l->u[i]) : INFINITY);
}

/* How the gap closes at an end of contact, like (x - xi)^m: k constants, c conditions on this side and xi
 * itself leave m = k - c + 1 to match. */
static int gap_power(const line *l, int f, double x, int side)
{
    int k = l->fp->eq[f].order, there = 0;
    for (int c = 0; c < l->fp->ncond; c++) {
        const field_condition *q = &l->fp->cond[c];
        double at = kernel_number(l->w, &q->place);
        bool mine = false;
        for (int j = 0; j < q->f.njet; j++)
            mine = mine || q->f.jet[j].field == f;
        there += mine && (at - x) * side > 0;
    }
    return there > k ? 1 : k - there + 1;
}

/* The zero of derivative m - 1 of the gap is found: the gap itself has an error from the distance of the
 * nearest node to xi, its derivatives have not. */
double line_zone_end(const line *l, int f, int64_t k, int side)
{
    int m = gap_power(l, f, l->x[k], side), n = m + 2;
    double h = fabs(l->x[k] - l->x[k > 0 ? k - 1 : k + 1]), length = l->w->hi[0] - l->w->lo[0], x[16], w[16],
           c[2][16], z = 0;
    int64_t step = whole_clamp(ceil(pow(GAP_VISIBLE, 1.0 / m) * length / h), 1, l->n),
            last = k + side * n * step;
    if (last < 0 || last >= l->n)
        return l->x[k];
    for (int64_t j = 0; j < l->nbrk; j++) {
        int64_t q = l->brk[j];
        if (q > 0 && q < l->n - 1 && (side < 0 ? q <= k + 1 && q >= last : q >= k - 1 && q <= last))
            return l->x[k];
    }
    for (int j = 0; j < n; j++) {
        int64_t at = k + side * (j + 1) * step;
        x[j] = l->x[at] - l->x[k];
        w[j] = gap_of(l, f, at);
        if (l->act[at * l->nf + f])
            return l->x[k];
    }
    for (int it = 0; it < 6; it++) {
        double d[2] = { 0, 0 };
        for (int e = 0; e < 2; e++) {
            stencil_weights(x, n, z, m - 1 + e, c[e]);
            for (int j = 0; j < n; j++)
                d[e] += c[e][j] * w[j];
        }
        z -= d[0] / d[1];
    }
    if (!isfinite(z))
        return l->x[k];
    return l->x[k] + fmin(fmax(z, -1.5 * h), 1.5 * h);
}

/* ---- results ---- */
static double node_width(const line *l, int64_t k)
{
    return ((k + 1 < l->n ? l->x[k + 1] : l->x[k]) - (k ? l->x[k - 1] : l->x[k])) / 2;
}

static int obstacle_of(const line *l, int f, int8_t act)
{
    for (int o = 0; o < l->fp->nobst; o++)
        if (l->fp->obst[o].field == f && l->fp->obst[o].sense == act)
            return o;
    return 0;
}

/* cells from a node to the centre of the row that is paired with it */
static double row_shift(const line *l, int f)
{
    return l->fp->eq[f].order / 2.0 - l->left[f];
}

/* Rows of odd orders are between nodes: densities at the nodes, from the rows on both sides. */
static void density_shift(const line *l, int f, int64_t a, int64_t b, double *density)
{
    double shift = row_shift(l, f), before = density[a];
    if (shift == 0 || fabs(shift) > 1)
        return;
    if (shift > 0)
        for (int64_t k = a; k <= b; k++) {
            double now = density[k];
            if (k > a)
                density[k] = (before + now) / 2;
            before = now;
        }
    else
        for (int64_t k = a; k < b; k++)
            density[k] = (density[k] + density[k + 1]) / 2;
}

/* forces that do not vanish as the grid is refined are at single nodes: at the ends of zones and at
   corners */
static void points_take(const line *l, field_result *r, int f, int64_t a, int64_t b,
                        const contact_interval *z, double *density, int8_t act)
{
    double total = 0;
    bool small = b - a < 12;
    for (int64_t k = a; k <= b; k++)
        total += density[k] * node_width(l, k);
    if (small && (l->fp->eq[f].order > 2 || b - a < 2) && act * total > 0) {
        r->point[r->npoint++] = (point_force){ (z->a + z->b) / 2, total, obstacle_of(l, f, act) };
        for (int64_t j = a; j <= b; j++)
            density[j] = 0;
    }
    for (int end = 0; end < 2 && !small && l->fp->eq[f].order > 2; end++) {
        int64_t in = end ? b - 5 : a + 5, from = end ? in : a, to = end ? b : in;
        double d = density[in], force = 0;
        for (int64_t j = from; j <= to; j++)
            force += (density[j] - (j == in ? d / 2 : 0)) * node_width(l, j);
        double at = l->x[in] + row_shift(l, f) * node_width(l, in);
        force -= d * (end ? z->b - at : at - z->a);
        if (!(act * force > 0.01 * fabs(total)) || !(act * force > 2 * fabs(d) * node_width(l, in)))
            continue;
        r->point[r->npoint++] = (point_force){ end ? z->b : z->a, force, obstacle_of(l, f, act) };
        for (int64_t j = from; j <= to; j++)
            density[j] = d;
    }
    for (int64_t j = 1; j + 1 < l->nbrk; j++) {
        int64_t k = l->brk[j];
        if (k <= a + 1 || k >= b - 1)
            continue;
        double d = (density[k - 2] + density[k + 2]) / 2, excess = (density[k] - d) * node_width(l, k);
        if (fabs(density[k] - d) < 4 * (fabs(density[k - 2]) + fabs(density[k + 2])) ||
            !(act * excess > 0.001 * fabs(total)))
            continue;
        r->point[r->npoint++] = (point_force){ l->x[k], excess, obstacle_of(l, f, act) };
        density[k] = d;
    }
}

/* nodes at the ends of the domain have conditions, no pair: contact reaches them where the gap is closed
 * there too */
static bool touches_end(const line *l, int f, int64_t k, int side, double size)
{
    double tiny = END_TOUCHES * size;
    if (l->o->eps > 0 || (side < 0 ? k > l->left[f] : k < l->n - 1 - l->fp->eq[f].order))
        return false;
    for (k += side; k >= 0 && k < l->n; k += side)
        if (!(gap_of(l, f, k) <= tiny))
            return false;
    return true;
}

static void zones_take(const line *l, field_result *r)
{
    arena *a = l->w->r->a;
    int room = 0;
    for (int64_t k = 0; k < l->size; k++)
        room += l->act[k] && (k < l->nf || l->act[k - l->nf] != l->act[k]);
    r->zone = arena_array(a, contact_interval, room + 2);
    r->point = arena_array(a, point_force, 2 * room + (int)l->nbrk + l->nend + 4);
    for (int f = 0; f < l->nf; f++) {
        double size = size_of(l, f);
        for (int64_t k = 0; k < l->n; k++) {
            int8_t act = l->act[k * l->nf + f];
            int64_t to = k;
            if (!act)
                continue;
            while (to + 1 < l->n && l->act[(to + 1) * l->nf + f] == act)
                to++;
            contact_interval z = { .a = l->x[k], .b = l->x[to], .obstacle = obstacle_of(l, f, act) };
            if (to > k + 2 || (to > k && l->fp->eq[f].order == 2))
                z.a = line_zone_end(l, f, k, -1), z.b = line_zone_end(l, f, to, 1);
            if (z.a > z.b)
                z.a = z.b = (z.a + z.b) / 2;
            if (touches_end(l, f, k, -1, size))
                z.a = l->x[0];
            if (touches_end(l, f, to, 1, size))
                z.b = l->x[l->n - 1];
            contact_interval *before = r->nzone ? &r->zone[r->nzone - 1] : NULL;
            if (before && before->obstacle == z.obstacle &&
                z.a <= before->b) /* nodes without a pair between */
                before->b = z.b;
            else
                r->zone[r->nzone++] = z;
            int64_t first = k, last = to;
            for (int j = 0; j < l->nend; j++) {
                if (l->end[j].field != f || (l->end[j].node != k && l->end[j].node != to))
                    continue;
                double noise, force = line_end_force(l, &l->end[j], &noise);
                if (act * force > 4 * noise)
                    r->point[r->npoint++] = (point_force){ l->x[l->end[j].node], force, z.obstacle };
                first += l->end[j].node == k;
                last -= l->end[j].node == to;
            }
            if (l->o->eps <= 0 && first <= last) {
                points_take(l, r, f, first, last, &r->zone[r->nzone - 1], r->reaction, act);
                density_shift(l, f, first, last, r->reaction);
            }
            k = to;
        }
    }
}

typedef struct {
    double *sum;
    double weight;
} path;
static void use_energy(line *l, int f, int64_t s, const row_stencils *r, const double *out, void *ud)
{
    const path *p = ud;
    int64_t k = s + l->left[f];
    (void)r;
    *p->sum += p->weight * out[0] * l->u[k * l->nf + f] * node_width(l, k);
}

/* integral of F(s u) u over s in 0..1 and over the domain: the energy where F is its gradient */
static double energy_of(line *l)
{
    static const double at[3] = { 0.11270166537925831, 0.5, 0.88729833462074169 },
                        weight[3] = { 5. / 18, 8. / 18, 5. / 18 };
    double sum = 0;
    for (int f = 0; f < l->nf; f++) {
        for (int k = 0; k < 3; k++)
            if (!line_rows_run(l, f, l->u, at[k], use_energy, &(path){ &sum, weight[k] }))
                return NAN;
    }
    return sum;
}

/* reactions, energy of linear problems */
static void reactions_take(line *l, field_result *r)
{
    results *out = l->w->r;
    r->reaction = arena_array(out->a, double, l->n);
    for (int f = 0; f < l->nf; f++)
        for (int64_t s = 0; s < rows_of(l, f); s++) {
            int64_t p = pair_of(l, f, s), row = row_place(l, f, s);
            double noise = 0, F = row_value(l, row, &noise);
            if (!l->fp->linear)
                F = l->rhs[row];
            else
                r->energy += (F + l->rhs[row_slot(l, row)]) / 2 * l->u[p] * node_width(l, p / l->nf);
            if (l->act && l->act[p] && (f == 0 || l->fp->obst[0].field == f))
                r->reaction[p / l->nf] = F;
        }
}

/* derivatives may jump at switches and at the ends of contact */
static void breaks_take(const line *l, field_result *r)
{
    arena *a = l->w->r->a;
    int64_t room = l->nbrk + 2 * r->nzone + 2, n = 0;
    r->brk = arena_array(a, int64_t, room);
    for (int64_t k = 0; k < l->nbrk; k++)
        r->brk[n++] = l->brk[k];
    for (int z = 0; z < r->nzone; z++)
        for (int end = 0; end < 2; end++) {
            double x = end ? r->zone[z].b : r->zone[z].a;
            int64_t lo = 0, hi = l->n - 1;
            while (hi - lo > 1) {
                int64_t mid = lo + (hi - lo) / 2;
                if (l->x[mid] <= x)
                    lo = mid;
                else
                    hi = mid;
            }
            if (x - l->x[lo] > l->x[hi] - x)
                lo = hi;
            r->brk[n++] = lo;
        }
    for (int64_t i = 1; i < n; i++)
        for (int64_t j = i; j > 0 && r->brk[j] < r->brk[j - 1]; j--) {
            int64_t t = r->brk[j];
            r->brk[j] = r->brk[j - 1];
            r->brk[j - 1] = t;
        }
    int64_t m = 1;
    for (int64_t i = 1; i < n; i++)
        if (r->brk[i] != r->brk[m - 1])
            r->brk[m++] = r->brk[i];
    r->nbreak = m;
}

field_result *line_result(line *l, int levels)
{
    results *out = l->w->r;
    field_result *r = result_new(l->w);
    r->n = l->n;
    r->x = l->x;
    r->u = l->u;
    r->eps = l->o->eps;
    r->nseg = l->nbrk;
    r->seg = arena_array(out->a, int64_t, l->nbrk);
    memcpy(r->seg, l->brk, (size_t)l->nbrk * sizeof *r->seg);
    reactions_take(l, r);
    if (l->act)
        zones_take(l, r);
    breaks_take(l, r);
    if (!l->fp->linear)
        r->energy = energy_of(l);
    r->iterations = l->steps;
    r->ngrid = levels;
    r->grid_steps = arena_array(out->a, double, levels);
    for (int k = 0; k < levels; k++)
        r->grid_steps[k] = (l - levels + 1 + k)->steps;
    out->count.steps = l->n - 1;
    out->solver = l->o->eps > 0 ? "semi-smooth Newton" : "primal-dual active set";
    return r;
}
