/* field_plane: fields on a rectangle, by central differences.  Derivatives at the boundary close with a layer
   of ghost nodes, eliminated by the conditions, so that the equation holds on the boundary too where u is not
   given.  Obstacles: primal-dual active sets from grid to grid.  Second order: multigrid, nodes on the
   obstacle and given ones masked on every level; the set is corrected between cycles.  Fourth order: sparse
   factorisation. */
#include "field_plane.h"
#include "base/tolerances.h"
#include <math.h>
#include <string.h>

/* ---- grids ---- */
static void level_rooms(plane *p, level *l, bool finest)
{
    arena *a = p->w->a, *home = finest && !p->o->draft ? p->w->r->a : a;
    l->n = (int64_t)l->m[0] * l->m[1];
    for (int c = 0; c < 2; c++) {
        l->x[c] = arena_array(home, double, l->m[c]);
        l->h[c] = (p->w->hi[c] - p->w->lo[c]) / (l->m[c] - 1);
        for (int i = 0; i < l->m[c]; i++)
            l->x[c][i] = i + 1 == l->m[c] ? p->w->hi[c]
                                          : p->w->lo[c] + (p->w->hi[c] - p->w->lo[c]) * i / (l->m[c] - 1);
    }
    l->u = arena_array(home, double, l->n);
    l->fix = arena_array(a, uint8_t, l->n);
    l->a = arena_array(a, double, l->n * p->nc);
    l->f0 = arena_array(a, double, l->n);
    l->e = arena_array(a, double, l->n);
    l->r = arena_array(a, double, l->n);
    l->t = arena_array(a, double, l->n);
    l->act = arena_array(a, int8_t, l->n);
    l->wanted = arena_array(a, int8_t, l->n);
    l->strip = arena_array(a, int32_t, l->n);
    for (int s = 0; s < SIDES; s++) {
        int m = l->m[s < 2 ? 1 : 0];
        l->s[s].known = arena_array(a, uint8_t, m);
        l->s[s].value = arena_array(a, double, m);
        l->s[s].slope = arena_array(a, double, m);
        l->s[s].per_u = arena_array(a, double, m);
        l->s[s].bend = arena_array(a, double, m);
    }
}

static void level_link(arena *a, level *fine, const level *coarse)
{
    for (int c = 0; c < 2; c++) {
        fine->ci[c] = arena_array(a, int, fine->m[c]);
        fine->wi[c] = arena_array(a, double, fine->m[c]);
        for (int i = 0; i < fine->m[c]; i++) {
            double at = (double)i * (coarse->m[c] - 1) / (fine->m[c] - 1);
            int k = (int)at < coarse->m[c] - 1 ? (int)at : coarse->m[c] - 2;
            fine->ci[c][i] = k;
            fine->wi[c][i] = at - k < CELL_BESIDE ? 0 : at - k > 1 - CELL_BESIDE ? 1 : at - k;
        }
    }
}

/* ---- conditions ---- */
static int64_t side_node(const level *l, int s, int k)
{
    return s == 0   ? (int64_t)k * l->m[0]
           : s == 1 ? (int64_t)k * l->m[0] + l->m[0] - 1
           : s == 2 ? k
                    : (int64_t)(l->m[1] - 1) * l->m[0] + k;
}

static bool condition_on(const plane *p, const field_condition *c, const level *l, int s, const double *x)
{
    double yes;
    if (c->coord >= 0) {
        double place = kernel_number(p->w, &c->place), end = s % 2 ? p->w->hi[s / 2] : p->w->lo[s / 2];
        (void)l;
        return c->coord == s / 2 && fabs(place - end) <= PLACE_SAME * (p->w->hi[s / 2] - p->w->lo[s / 2]);
    }
    if (!c->where.tape.nout)
        return true;
    kernel_points(p->w, &c->where, x, 1, &yes);
    return yes != 0;
}

/* one condition at one node: what it makes known across the side */
static bool condition_read(plane *p, const field_condition *c, level *l, int s, int k, const double *x)
{
    int across = s / 2;
    double zero[32] = { 0 }, out[33], cu = 0, cn = 0, cb = 0, rest = 0;
    form_run(p->w, &c->f, x, zero, 1, out);
    for (int j = 0; j < c->f.njet; j++) {
        const jet *q = &c->f.jet[j];
        int dn = q->d[across], dt = q->d[!across];
        if (q->field != p->field)
            rest = 1;
        else if (dn == 0 && dt == 0)
            cu = out[1 + j];
        else if (dn == 1 && dt == 0)
            cn = out[1 + j];
        else if (dn == 2 && dt == 0)
            cb = out[1 + j];
        else if (!(dn == 0 && dt == 2) && !(dn == 0 && dt == 1))
            rest = out[1 + j];
    }
    side *q = &l->s[s];
    if (!c->f.linear || rest != 0 || (cb != 0 && (cn != 0 || cu != 0)))
        return field_fail(
            p->w, c->at,
            "conditions of a field in the plane must be linear in u, its slope across the side, or "
            "its second derivative there");
    if (cb != 0)
        q->known[k] |= SIDE_BEND, q->bend[k] = -out[0] / cb;
    else if (cn != 0)
        q->known[k] |= SIDE_SLOPE, q->slope[k] = -out[0] / cn, q->per_u[k] = -cu / cn;
    else if (cu != 0)
        q->known[k] |= SIDE_GIVEN, q->value[k] = 0 - out[0] / cu;
    return true;
}

static bool condition_of(const plane *p, const field_condition *c)
{
    for (int j = 0; j < c->f.njet; j++)
        if (c->f.jet[j].field == p->field)
            return true;
    return false;
}

static bool sides_read(plane *p, level *l)
{
    for (int s = 0; s < SIDES; s++)
        for (int k = 0; k < l->m[s < 2 ? 1 : 0]; k++) {
            int64_t node = side_node(l, s, k);
            double x[2] = { l->x[0][node % l->m[0]], l->x[1][node / l->m[0]] };
            for (int c = 0; c < p->fp->ncond; c++)
                if (condition_of(p, &p->fp->cond[c]) && condition_on(p, &p->fp->cond[c], l, s, x) &&
                    !condition_read(p, &p->fp->cond[c], l, s, k, x))
                    return false;
            uint8_t known = l->s[s].known[k];
            bool good = p->order == 2 ? known != 0 && !(known & SIDE_BEND)
                                      : (known & SIDE_GIVEN) && (known & (SIDE_SLOPE | SIDE_BEND));
            if (!good)
                return field_fail(
                    p->w, p->fp->cond[0].at,
                    "the conditions do not fit: at (%g, %g) on the boundary an equation of order %d takes %s",
                    x[0], x[1], p->order,
                    p->order == 2 ? "u or its slope across" : "u, and its slope or second derivative across");
            if (known & SIDE_GIVEN)
                l->fix[node] = 1;
        }
    for (int s = 0; s < SIDES; s++)
        for (int k = 0; k < l->m[s < 2 ? 1 : 0]; k++) {
            int64_t node = side_node(l, s, k);
            if (l->s[s].known[k] & SIDE_GIVEN)
                l->u[node] = l->s[s].value[k];
        }
    return true;
}

/* ---- the equation ---- */
static void differences(double *w, int d, double h, int radius) /* weights at -radius .. radius */
{
    static const double table[5][5] = { { 0, 0, 1, 0, 0 },
                                        { 0, -0.5, 0, 0.5, 0 },
                                        { 0, 1, -2, 1, 0 },
                                        { -0.5, 1, 0, -1, 0.5 },
                                        { 1, -4, 6, -4, 1 } };
    for (int j = -radius; j <= radius; j++)
        w[j + radius] = table[d][j + 2] / pow(h, d);
}

void row_fold(const plane *p, const level *l, int i, int j, int di, int dj, double k, double *a, double *f0)
{
    if (k == 0)
        return;
    for (int c = 0; c < 2; c++) {
        int at = c ? j : i, d = c ? dj : di, to = at + d, m = l->m[c];
        if (to >= 0 && to < m)
            continue;
        int sd = 2 * c + (to >= m), along = c ? i + di : j + dj, edge = to < 0 ? 0 : m - 1, other = l->m[!c];
        along = along < 0 ? 0 : along >= other ? other - 1 : along;
        const side *s = &l->s[sd];
        int back = 2 * edge - to - at; /* offset of the mirror node */
        double out = to < 0 ? -1 : 1;
        if (s->known[along] & SIDE_BEND) { /* ghost = 2 u_edge - u_in + h^2 bend */
            row_fold(p, l, i, j, c ? di : edge - at, c ? edge - at : dj, 2 * k, a, f0);
            row_fold(p, l, i, j, c ? di : back, c ? back : dj, -k, a, f0);
            *f0 += k * l->h[c] * l->h[c] * s->bend[along];
        } else { /* ghost = u_in + 2 h u_n outwards */
            row_fold(p, l, i, j, c ? di : back, c ? back : dj, k, a, f0);
            *f0 += 2 * out * l->h[c] * k * s->slope[along];
            if (s->per_u[along] != 0)
                row_fold(p, l, i, j, c ? di : edge - at, c ? edge - at : dj,
                         2 * out * l->h[c] * k * s->per_u[along], a, f0);
        }
        return;
    }
    for (int q = 0; q < p->nc; q++)
        if (p->dx[q] == di && p->dy[q] == dj) {
            a[q] += k;
            return;
        }
}

/* a derivative of u at a node */
static double jet_at(const plane *p, const level *l, const int *d, int i, int j)
{
    int64_t k = (int64_t)j * l->m[0] + i;
    int width = 2 * p->radius + 1;
    double wx[5], wy[5], row[25] = { 0 }, c = 0, s = 0;
    if (!d[0] && !d[1])
        return l->u[k];
    differences(wx, d[0], l->h[0], p->radius);
    differences(wy, d[1], l->h[1], p->radius);
    for (int b = 0; b < width; b++)
        for (int a = 0; a < width; a++)
            row_fold(p, l, i, j, a - p->radius, b - p->radius, wx[a] * wy[b], row, &c);
    for (int z = 0; z < p->nc; z++)
        if (row[z] != 0)
            s += row[z] * l->u[k + p->dy[z] * l->m[0] + p->dx[z]];
    return s + c;
}

/* rows at u (linearised; l->u when u enters): a and f0 = F(u) - A u */
static bool rows_make(plane *p, level *l, bool at_u)
{
    const field_form *f = p->f;
    int nj = f->njet, width = 2 * p->radius + 1;
    arena_pos mark = arena_mark(p->w->a);
    double *x = arena_array(p->w->a, double, 2 * l->m[0]),
           *jets = arena_array(p->w->a, double, l->m[0] * (nj + 1)),
           *out = arena_array(p->w->a, double, l->m[0] * (nj + 1)), wx[5], wy[5];
    memset(l->a, 0, (size_t)(l->n * p->nc) * sizeof *l->a);
    for (int j = 0; j < l->m[1]; j++) {
        arena_tick(p->w->a, 500 * (int64_t)l->m[0]);
        for (int i = 0; i < l->m[0]; i++)
            x[2 * i] = l->x[0][i], x[2 * i + 1] = l->x[1][j];
        memset(jets, 0, (size_t)(l->m[0] * nj) * sizeof *jets);
        for (int q = 0; q < nj; q++) { /* jets of u: the rows of each derivative alone */
            const plane *of = &p->all[f->jet[q].field];
            const level *lo = &of->at[l - p->at];
            if (of == p && !at_u)
                continue;
            for (int i = 0; i < l->m[0]; i++)
                if (!l->fix[(int64_t)j * l->m[0] + i])
                    jets[i * nj + q] = jet_at(of, lo, f->jet[q].d, i, j);
        }
        if (!f->cases)
            form_run(p->w, f, x, jets, l->m[0], out);
        else
            for (int i = 0; i < l->m[0]; i++)
                form_mean(&(cell_form){ p, l, f, x + 2 * i, jets + (int64_t)i * nj },
                          out + (int64_t)i * (nj + 1));
        for (int i = 0; i < l->m[0]; i++) {
            int64_t k = (int64_t)j * l->m[0] + i;
            double *o = out + (int64_t)i * (nj + 1), *a = l->a + k * p->nc, c = 0;
            if (l->fix[k]) {
                a[p->nc / 2] = 1;
                l->f0[k] = -l->u[k];
                continue;
            }
            if (!isfinite(o[0]))
                return field_fail(p->w, f->at, "the equation is not finite at (%g, %g)", x[2 * i],
                                  x[2 * i + 1]);
            double lin = 0;
            bool inside = i >= p->radius && j >= p->radius && i < l->m[0] - p->radius &&
                          j < l->m[1] - p->radius;
            for (int q = 0; q < nj; q++) {
                if (f->jet[q].field != p->field)
                    continue;
                lin += o[1 + q] * jets[i * nj + q];
                if (o[1 + q] == 0)
                    continue;
                differences(wx, f->jet[q].d[0], l->h[0], p->radius);
                differences(wy, f->jet[q].d[1], l->h[1], p->radius);
                if (inside) {
                    for (int z = 0; z < p->nc; z++)
                        a[z] += o[1 + q] * wx[p->dx[z] + p->radius] * wy[p->dy[z] + p->radius];
                    continue;
                }
                for (int b = 0; b < width; b++)
                    for (int d = 0; d < width; d++)
                        row_fold(p, l, i, j, d - p->radius, b - p->radius, o[1 + q] * wx[d] * wy[b], a, &c);
            }
            if (l->edge[0] || l->edge[1])
                row_fluxes(p, l, i, j, a, &c);
            l->f0[k] = o[0] - lin + c;
        }
    }
    arena_release(p->w->a, mark);
    return true;
}

/* ---- obstacles ---- */
static bool bounds_make(plane *p, level *l)
{
    const field_program *fp = p->fp;
    int mine = 0;
    for (int o = 0; o < fp->nobst; o++)
        mine += fp->obst[o].field == p->field;
    if (!mine)
        return true;
    arena_pos mark;
    l->lo = arena_array(p->w->a, double, l->n);
    l->hi = arena_array(p->w->a, double, l->n);
    for (int64_t k = 0; k < l->n; k++)
        l->lo[k] = -INFINITY, l->hi[k] = INFINITY;
    mark = arena_mark(p->w->a);
    double *x = arena_array(p->w->a, double, 2 * l->m[0]), *psi = arena_array(p->w->a, double, l->m[0]);
    for (int o = 0; o < fp->nobst; o++) {
        double big = obstacle_size(p->w, &fp->obst[o]);
        for (int j = 0; j < l->m[1] && fp->obst[o].field == p->field; j++) {
            for (int i = 0; i < l->m[0]; i++)
                x[2 * i] = l->x[0][i], x[2 * i + 1] = l->x[1][j];
            kernel_points(p->w, &fp->obst[o].psi, x, l->m[0], psi);
            if (!obstacle_known(p->w, &fp->obst[o], x, psi, l->m[0]))
                return false;
            for (int i = 0; i < l->m[0]; i++) {
                int64_t k = (int64_t)j * l->m[0] + i;
                if (fp->obst[o].sense > 0)
                    l->lo[k] = fmax(l->lo[k], psi[i]);
                else
                    l->hi[k] = fmin(l->hi[k], psi[i]);
                bool given = l->fix[k] && fp->obst[o].sense * (l->u[k] - psi[i]) < -FIELD_PASSED * big;
                if (given)
                    return field_fail(p->w, fp->obst[o].at,
                                      "no %s satisfies both: at (%g, %g) its boundary value %g lies %s the "
                                      "obstacle, which is %g there",
                                      fp->name[p->field], x[2 * i], x[2 * i + 1], l->u[k],
                                      fp->obst[o].sense > 0 ? "below" : "above", psi[i]);
                if (l->lo[k] > l->hi[k])
                    return field_fail(
                        p->w, fp->obst[o].at,
                        "no %s satisfies both obstacles: at (%g, %g) the lower one is %g, the upper one %g",
                        fp->name[p->field], x[2 * i], x[2 * i + 1], l->lo[k], l->hi[k]);
            }
        }
    }
    arena_release(p->w->a, mark);
    return true;
}

/* the linearisation is the same on all coarser levels: u is carried down */
static void carry_down(plane *p, int k)
{
    for (int i = k + 1; i < p->nlevel; i++) {
        level *l = &p->at[i];
        const level *f = &p->at[i - 1];
        for (int y = 0; y < l->m[1]; y++)
            for (int x = 0; x < l->m[0]; x++) {
                int fi = (int)lround((double)x * (f->m[0] - 1) / (l->m[0] - 1)),
                    fj = (int)lround((double)y * (f->m[1] - 1) / (l->m[1] - 1));
                int64_t q = (int64_t)y * l->m[0] + x;
                if (!l->fix[q])
                    l->u[q] = f->u[(int64_t)fj * f->m[0] + fi];
            }
    }
}

static bool rows_all(plane *p, int k)
{
    if (p->order == 2)
        for (int f = 0; f < p->nf; f++)
            carry_down(&p->all[f], k);
    for (int i = k; i < (p->order == 4 ? k + 1 : p->nlevel); i++)
        if (!rows_make(p, &p->at[i], !p->fp->eq[p->field].f.linear))
            return false;
    return true;
}

static bool level_solve(plane *p, int k)
{
    level *l = &p->at[k];
    if (p->fp->eq[p->field].f.linear)
        return (p->nf == 1 || rows_all(p, k)) && obstacle_solve(p, k);
    for (int it = 0; it < MAX_NEWTON; it++) {
        double move = 0;
        double *old = l->old;
        memcpy(old, l->u, (size_t)l->n * sizeof *old);
        if (!rows_all(p, k) || !obstacle_solve(p, k))
            return false;
        for (int64_t q = 0; q < l->n; q++)
            move = fmax(move, fabs(l->u[q] - old[q]));
        if (!isfinite(move))
            break;
        p->w->r->count.solver_iterations++;
        if (move <= (k ? PLANE_COARSE : fmax(p->o->tolerance, PLANE_FINE)) * level_size(l))
            return true;
    }
    return field_fail(p->w, p->f->at,
                      "Newton's method does not converge: there may be no solution for these parameters");
}

static void level_start(plane *p, int k)
{
    level *l = &p->at[k];
    const level *c = &p->at[k + 1];
    for (int j = 0; j < l->m[1]; j++)
        for (int i = 0; i < l->m[0]; i++) {
            int64_t q = (int64_t)j * l->m[0] + i, n = (int64_t)(l->ci[1][j] + (l->wi[1][j] > 0.5)) * c->m[0] +
                                                      l->ci[0][i] + (l->wi[0][i] > 0.5);
            if (l->fix[q])
                continue;
            l->u[q] = coarse_at(l, c, c->u, i, j);
            if (l->lo)
                l->act[q] = c->act[n];
            if (l->act[q] && p->o->eps <= 0)
                l->u[q] = l->act[q] > 0 ? l->lo[q] : l->hi[q];
        }
}

/* ---- results ---- */
static double node_area(const level *l, int64_t k)
{
    int i = (int)(k % l->m[0]), j = (int)(k / l->m[0]);
    return l->h[0] * l->h[1] * (i == 0 || i + 1 == l->m[0] ? 0.5 : 1) *
           (j == 0 || j + 1 == l->m[1] ? 0.5 : 1);
}

/* The fraction of a node's cell in contact: its force divided by the force that the obstacle itself would
   require there.  Summed against smooth functions the forces are right to second order, and the ratio is 1
   inside a zone, between 0 and 1 at its border. */
static double node_share(const plane *p, const level *l, int64_t k)
{
    if (p->order != 2 || p->o->eps > 0)
        return 1;
    double whole = l->act[k] * (row_at(p, l, l->act[k] > 0 ? l->lo : l->hi, k) + l->f0[k]),
           force = l->act[k] * (row_at(p, l, l->u, k) + l->f0[k]);
    return whole > 0 && force <= whole ? fmax(force, 0) / whole : 1;
}

/* contact zones as connected sets of nodes: their areas */
static void zones_take(plane *p, level *l, field_result *r)
{
    arena *a = p->w->r->a;
    vec(contact_interval) zone = { .at = r->zone, .n = (size_t)r->nzone, .cap = (size_t)r->nzone };
    int64_t *stack = arena_array(p->w->a, int64_t, l->n);
    uint8_t *seen = arena_array(p->w->a, uint8_t, l->n);
    if (!r->touch)
        r->touch = arena_array(a, uint8_t, l->n);
    for (int64_t k = 0; k < l->n; k++) {
        if (!l->act[k] || seen[k])
            continue;
        int64_t top = 0;
        double area = 0;
        stack[top++] = k;
        seen[k] = 1;
        while (top) {
            int64_t q = stack[--top], i = q % l->m[0], j = q / l->m[0];
            area += node_share(p, l, q) * node_area(l, q);
            r->touch[q] = 1;
            const int64_t next[4] = { i > 0 ? q - 1 : -1, i + 1 < l->m[0] ? q + 1 : -1,
                                      j > 0 ? q - l->m[0] : -1, j + 1 < l->m[1] ? q + l->m[0] : -1 };
            for (int d = 0; d < 4; d++)
                if (next[d] >= 0 && !seen[next[d]] && l->act[next[d]] == l->act[k])
                    seen[next[d]] = 1, stack[top++] = next[d];
        }
        *vec_push(a, &zone) = (contact_interval){ .a = area, .obstacle = 0 };
        r->area += area;
    }
    r->zone = zone.at;
    r->nzone = (int)zone.n;
}

/* integral of F(s u) u over s in 0..1 and over the domain: the energy where F is its gradient */
static double energy_of(plane *all, int nf)
{
    static const double at[3] = { 0.11270166537925831, 0.5, 0.88729833462074169 },
                        weight[3] = { 5. / 18, 8. / 18, 5. / 18 };
    double sum = 0;
    for (int f = 0; f < nf; f++)
        memcpy(all[f].at[0].old, all[f].at[0].u, (size_t)all[f].at[0].n * sizeof(double));
    for (int g = 0; g < 3 && isfinite(sum); g++) {
        for (int f = 0; f < nf; f++)
            for (int64_t k = 0; k < all[f].at[0].n; k++)
                all[f].at[0].u[k] = at[g] * all[f].at[0].old[k];
        for (int f = 0; f < nf; f++) {
            level *l = &all[f].at[0];
            if (!rows_make(&all[f], l, true))
                sum = NAN;
            for (int64_t k = 0; k < l->n; k++)
                if (!l->fix[k])
                    sum += weight[g] * (row_at(&all[f], l, l->u, k) + l->f0[k]) * l->old[k] * node_area(l, k);
        }
    }
    for (int f = 0; f < nf; f++)
        memcpy(all[f].at[0].u, all[f].at[0].old, (size_t)all[f].at[0].n * sizeof(double));
    return sum;
}

/* results of one field: residual, reaction, zones */
static void field_take(plane *p, field_result *r)
{
    level *l = &p->at[0];
    results *out = p->w->r;
    double worst = 0, scale = 0;
    bool touched = p->fp->nobst ? p->fp->obst[0].field == p->field : p->field == 0;
    for (int64_t k = 0; k < l->n; k++) {
        if (l->fix[k])
            continue;
        double F = row_at(p, l, l->u, k) + l->f0[k];
        r->energy += (F + l->f0[k]) / 2 * l->u[k] * node_area(l, k);
        if (l->act[k] && touched)
            r->reaction[k] = F;
        worst = fmax(worst, fabs(l->act[k] && p->o->eps <= 0 ? 0 : row_defect(p, l, k)));
        scale = fmax(scale, fabs(diagonal(p, l, k) * l->u[k]));
        if (l->lo)
            out->max_penetration = fmax(out->max_penetration, fmax(l->lo[k] - l->u[k], l->u[k] - l->hi[k]));
    }
    out->residual = fmax(out->residual, scale > 0 ? worst / scale : worst);
    if (l->lo)
        zones_take(p, l, r);
}

static field_result *plane_result(plane *p)
{
    level *l = &p->at[0];
    results *out = p->w->r;
    field_result *r = result_new(p->w);
    for (int c = 0; c < 2; c++)
        r->m[c] = l->m[c], r->ux[c] = l->x[c];
    r->n = l->n;
    r->eps = p->o->eps;
    r->u = p->nf == 1 ? l->u : arena_array(out->a, double, l->n * p->nf);
    for (int f = 0; f < p->nf && p->nf > 1; f++)
        for (int64_t k = 0; k < l->n; k++)
            r->u[k * p->nf + f] = p->all[f].at[0].u[k];
    r->reaction = arena_array(out->a, double, l->n);
    out->residual = 0;
    for (int f = 0; f < p->nf; f++)
        field_take(&p->all[f], r);
    if (!p->fp->linear || p->nf > 1)
        r->energy = energy_of(p->all, p->nf);
    r->iterations = p->steps;
    r->ngrid = p->nlevel;
    r->grid_steps = arena_array(out->a, double, p->nlevel);
    for (int k = 0; k < p->nlevel; k++)
        r->grid_steps[k] = p->at[p->nlevel - 1 - k].steps;
    out->count.steps = l->m[0] - 1;
    out->solver = p->order == 4 ? "primal-dual active set, sparse factorisation"
                                : "primal-dual active set, multigrid";
    return r;
}

/* ---- the whole ---- */
static bool plane_begin(plane *all, int field, field_work *w, const line_options *o)
{
    const field_equation *e = &w->fp->eq[field];
    plane *p = &all[field];
    *p = (plane){ .field = field,
                  .nf = w->fp->nfield,
                  .all = all,
                  .w = w,
                  .fp = w->fp,
                  .o = o,
                  .f = e->nflux ? &e->rest : &e->f,
                  .order = e->order };
    if (p->order != 2 && p->order != 4)
        return field_fail(w, p->f->at, "in the plane equations are of order 2 or 4, this one is of order %d",
                          p->order);
    bool cross = false;
    for (int q = 0; q < p->nf; q++)
        for (int j = 0; j < w->fp->eq[q].f.njet; j++) {
            const jet *x = &w->fp->eq[q].f.jet[j];
            cross = cross || (x->field == field && x->d[0] && x->d[1]);
        }
    p->radius = p->order / 2;
    for (int b = -p->radius; b <= p->radius; b++)
        for (int a = -p->radius; a <= p->radius; a++) {
            if (p->order == 2 && !cross && a && b)
                continue;
            p->dx[p->nc] = a;
            p->dy[p->nc] = b;
            p->nc++;
        }
    return true;
}

/* how strongly the rows of a level join neighbours in x, over the same in y; from the cells alone when there
 * are no rows yet */
static double coupling_ratio(const plane *p, const level *l, bool rows)
{
    double sum[2] = { 0, 0 };
    for (int64_t k = 0; rows && k < l->n; k++)
        for (int q = 0; q < p->nc && !l->fix[k]; q++)
            if (!p->dx[q] != !p->dy[q])
                sum[p->dx[q] == 0] += fabs(l->a[k * p->nc + q]);
    return sum[0] > 0 && sum[1] > 0 ? sum[0] / sum[1] : pow(l->h[1] / l->h[0], 2);
}

/* Cells of the next coarser grid.  Where neighbours are joined more strongly in one direction, sweeps smooth
 * in that direction alone, so that only it may be coarsened.  false: the grid is small enough. */
static bool coarsen(const plane *p, const level *l, bool rows, int least, int *n)
{
    double ratio = coupling_ratio(p, l, rows);
    bool can[2] = { n[0] > least, n[1] > least }, strong[2] = { ratio > 1. / 3, ratio < 3 };
    for (int c = 0; c < 2; c++)
        if (can[c] && (strong[c] || !can[!c]))
            n[c] = (n[c] + 1) / 2;
    return can[0] || can[1];
}

static bool levels_make(plane *p, const int64_t *cells)
{
    int least = 4, n[2] = { (int)cells[0], (int)cells[1] };
    bool rows = p->fp->linear && p->nf == 1;
    for (int f = 0; f < p->nf; f++)
        if (p->fp->eq[f].order == 4)
            least = 8;
    for (p->nlevel = 0; p->nlevel < MAX_LEVELS;) {
        level *l = &p->at[p->nlevel];
        l->m[0] = n[0] + 1;
        l->m[1] = n[1] + 1;
        level_rooms(p, l, p->nlevel == 0);
        if (!sides_read(p, l) || !bounds_make(p, l))
            return false;
        edges_make(p, l);
        if (!p->fp->linear || p->nf > 1)
            l->old = arena_array(p->w->a, double, l->n);
        if (rows && !rows_make(p, l, false))
            return false;
        if (p->nlevel)
            level_link(p->w->a, &p->at[p->nlevel - 1], l);
        p->nlevel++;
        if (!coarsen(p, l, rows, least, n))
            break;
    }
    return true;
}

static void start_at(plane *p, int k)
{
    level *l = &p->at[k];
    if (k + 1 < p->nlevel)
        level_start(p, k);
    else
        for (int64_t q = 0; l->lo && q < l->n; q++)
            if (!l->fix[q])
                l->u[q] = fmin(fmax(0, isfinite(l->lo[q]) ? l->lo[q] : 0), l->hi[q]);
}

/* several fields: each in its turn with the others as they are, until nothing changes */
static bool turns_solve(plane *all, int nf, int k)
{
    enum { TURNS = 200 };
    int64_t n = all->at[k].n;
    arena_pos mark = arena_mark(all->w->a);
    double *was = arena_array(all->w->a, double, n), tolerance = k ? PLANE_COARSE : PLANE_TOGETHER;
    for (int turn = 0; turn < TURNS; turn++) {
        double change = 0, size = SIZE_LEAST;
        for (int f = 0; f < nf; f++) {
            level *l = &all[f].at[k];
            memcpy(was, l->u, (size_t)n * sizeof *was);
            if (!level_solve(&all[f], k))
                return false;
            for (int64_t q = 0; q < n; q++)
                change = fmax(change, fabs(l->u[q] - was[q]));
            size = fmax(size, level_size(l));
        }
        all->steps = turn + 1;
        if (change <= tolerance * size) {
            arena_release(all->w->a, mark);
            return true;
        }
        if (!isfinite(change) || change > 1e12 * size)
            break;
    }
    return field_fail(
        all->w, all->f->at,
        "the fields are coupled too strongly to be solved in turn: no convergence after %d rounds", TURNS);
}

field_result *plane_solve(field_work *w, const line_options *o)
{
    int nf = w->fp->nfield;
    plane *p = arena_array(w->a, plane, nf);
    const int64_t cells[2] = { o->cells, o->cells2 ? o->cells2 : o->cells };
    if (cells[0] > 8192 || cells[1] > 8192) {
        field_fail(w, w->fp->at, "at most 8192 cells in each direction");
        return NULL;
    }
    for (int f = 0; f < nf; f++)
        if (!plane_begin(p, f, w, o))
            return NULL;
    for (int f = 0; f < nf; f++)
        if (!levels_make(&p[f], cells))
            return NULL;
    for (int k = p->nlevel - 1; k >= 0; k--) {
        for (int f = 0; f < nf; f++)
            start_at(&p[f], k);
        if (!(nf == 1 ? level_solve(p, k) : turns_solve(p, nf, k)))
            return NULL;
        p->at[k].steps = p->steps;
    }
    return plane_result(p);
}
