/* field_flux: what jumps inside the cells of a rectangle's grid: coefficients of fluxes, by the harmonic mean
   along an edge and the mean across it; forms with cases, by their means over the cells of nodes. */
#include "field_plane.h"
#include "base/tolerances.h"
#include <math.h>
#include <string.h>

/* ---- fluxes whose coefficients jump ---- */
static double coefficient(const plane *p, const field_flux *q, const double *at, int c, double along,
                          double across)
{
    double x[2], a;
    x[c] = at[c] + along;
    x[!c] = at[!c] + across;
    for (int k = 0; k < 2; k++)
        x[k] = fmin(fmax(x[k], p->w->lo[k]), p->w->hi[k]);
    kernel_points(p->w, &q->a, x, 1, &a);
    return a;
}

static bool close_to(double a, double b)
{
    return fabs(a - b) <= 0.2 * fmax(fabs(a), fabs(b));
}

/* share of a stretch before the place where a passes the mean of its ends a0, a1 */
static double jump_place(const plane *p, const field_flux *q, const double *at, int c, bool across,
                         double other, double from, double to, double a0, double a1)
{
    double lo = 0, hi = 1;
    for (int it = 0; it < 50; it++) {
        double mid = (lo + hi) / 2, s = from + mid * (to - from),
               a = coefficient(p, q, at, c, across ? other : s, across ? s : other);
        if ((a < (a0 + a1) / 2) == (a0 < a1))
            lo = mid;
        else
            hi = mid;
    }
    return (lo + hi) / 2;
}

/* in series along the edge: the harmonic mean where a jumps */
static double edge_along(const plane *p, const field_flux *q, const double *at, int c, double h,
                         double across)
{
    double tiny = CELL_BESIDE * h, a0 = coefficient(p, q, at, c, tiny, across),
           a1 = coefficient(p, q, at, c, h - tiny, across);
    if (close_to(a0, a1))
        return coefficient(p, q, at, c, h / 2, across);
    double t = jump_place(p, q, at, c, false, across, tiny, h - tiny, a0, a1);
    return 1 / (t / coefficient(p, q, at, c, t / 2 * h, across) +
                (1 - t) / coefficient(p, q, at, c, (1 + t) / 2 * h, across));
}

/* side by side across it: the mean */
static double edge_mean(const plane *p, const field_flux *q, const double *at, int c, double h, double wide)
{
    double lo = fmax(-wide / 2, p->w->lo[!c] - at[!c]), hi = fmin(wide / 2, p->w->hi[!c] - at[!c]);
    double b0 = coefficient(p, q, at, c, h / 2, lo), b1 = coefficient(p, q, at, c, h / 2, hi);
    if (close_to(b0, b1))
        return edge_along(p, q, at, c, h, lo + hi == 0 ? 0 : (lo + hi) / 2);
    double t = jump_place(p, q, at, c, true, h / 2, lo, hi, b0, b1);
    return t * edge_along(p, q, at, c, h, lo + t * (hi - lo) / 2) +
           (1 - t) * edge_along(p, q, at, c, h, hi - (1 - t) * (hi - lo) / 2);
}

/* five probes of each edge together; the few that differ are examined further */
void edges_make(plane *p, level *l)
{
    arena *a = p->w->a;
    for (int s = 0; s < p->fp->eq[p->field].nflux; s++) {
        const field_flux *q = &p->fp->eq[p->field].flux[s];
        int c = q->coord;
        double h = l->h[c], wide = l->h[!c];
        l->edge[c] = arena_array(a, double, l->n);
        arena_pos mark = arena_mark(a);
        double *x = arena_array(a, double, 10 * l->m[0]), *y = arena_array(a, double, 5 * l->m[0]);
        const double probe[5][2] = {
            { 0.5, 0 }, { CELL_BESIDE, 0 }, { 1 - CELL_BESIDE, 0 }, { 0.5, -0.5 }, { 0.5, 0.5 }
        };
        for (int j = 0; j < l->m[1]; j++) {
            for (int i = 0; i < l->m[0]; i++)
                for (int k = 0; k < 5; k++) {
                    double *z = x + 2 * (5 * i + k);
                    z[0] = l->x[0][i];
                    z[1] = l->x[1][j];
                    z[c] += probe[k][0] * h;
                    z[!c] += probe[k][1] * wide;
                    for (int d = 0; d < 2; d++)
                        z[d] = fmin(fmax(z[d], p->w->lo[d]), p->w->hi[d]);
                }
            kernel_points(p->w, &q->a, x, 5 * l->m[0], y);
            for (int i = 0; i < l->m[0]; i++) {
                const double *b = y + 5 * i, at[2] = { l->x[0][i], l->x[1][j] };
                bool plain = close_to(b[1], b[2]) && close_to(b[3], b[4]) && close_to(b[0], b[1]) &&
                             close_to(b[0], b[3]);
                l->edge[c][(int64_t)j * l->m[0] + i] = plain || (c ? j : i) + 1 == l->m[c]
                                                           ? b[0]
                                                           : edge_mean(p, q, at, c, h, wide);
            }
        }
        arena_release(a, mark);
    }
}

/* per*(what flows out of a node's cell in direction c), added to its row */
void row_fluxes(const plane *p, const level *l, int i, int j, double *a, double *f0)
{
    int64_t k = (int64_t)j * l->m[0] + i;
    for (int s = 0; s < p->fp->eq[p->field].nflux; s++) {
        const field_flux *q = &p->fp->eq[p->field].flux[s];
        int c = q->coord, at = c ? j : i;
        int64_t step = c ? l->m[0] : 1;
        double per, x[2] = { l->x[0][i], l->x[1][j] };
        double up = l->edge[c][at + 1 < l->m[c] ? k : k - step], down = l->edge[c][at ? k - step : k];
        kernel_points(p->w, &q->per, x, 1, &per);
        per /= l->h[c] * l->h[c];
        row_fold(p, l, i, j, c ? 0 : 1, c ? 1 : 0, per * up, a, f0);
        row_fold(p, l, i, j, c ? 0 : -1, c ? -1 : 0, per * down, a, f0);
        row_fold(p, l, i, j, 0, 0, -per * (up + down), a, f0);
    }
}

/* ---- forms with cases: their means over the cell of a node ---- */
static void cell_at(const cell_form *c, const double *off, double *out) /* off in cells from the node */
{
    double x[2];
    for (int k = 0; k < 2; k++)
        x[k] = fmin(fmax(c->at[k] + off[k] * c->l->h[k], c->p->w->lo[k]), c->p->w->hi[k]);
    form_run(c->p->w, c->f, x, c->jets, 1, out);
}

/* the first value that does, or -1 */
static int cell_differs(const cell_form *c, const double *a, const double *b)
{
    for (int j = 0; j <= c->f->njet; j++)
        if (!close_to(a[j], b[j]))
            return j;
    return -1;
}

#define CELL (0.5 * (1 - CELL_BESIDE)) /* just inside */

/* along a line through the cell in direction d; both sides of a jump count by their length */
static void cell_line(const cell_form *c, int d, double across, double *out)
{
    double off[2], a[65], b[65], mid[65], lo = -CELL, hi = CELL;
    off[!d] = across;
    off[d] = lo;
    cell_at(c, off, a);
    off[d] = hi;
    cell_at(c, off, b);
    int j = cell_differs(c, a, b);
    for (int it = 0; it < 30 && j >= 0; it++) {
        off[d] = (lo + hi) / 2;
        cell_at(c, off, mid);
        if (fabs(mid[j] - a[j]) <= fabs(mid[j] - b[j]))
            lo = off[d];
        else
            hi = off[d];
    }
    double t = j >= 0 ? lo + 0.5 : 1;
    off[d] = -0.5 + t / 2;
    cell_at(c, off, a);
    off[d] = t / 2;
    cell_at(c, off, b);
    for (int k = 0; k <= c->f->njet; k++)
        out[k] = t * a[k] + (1 - t) * b[k];
}

void form_mean(const cell_form *c, double *out)
{
    enum { LINES = 16 };
    static const double corner[4][2] = { { -CELL, -CELL }, { CELL, -CELL }, { -CELL, CELL }, { CELL, CELL } },
                        centre[2] = { 0, 0 };
    double y[4][65], one[65];
    cell_at(c, centre, out);
    for (int k = 0; k < 4; k++)
        cell_at(c, corner[k], y[k]);
    bool across_x = cell_differs(c, y[0], y[1]) >= 0 || cell_differs(c, y[2], y[3]) >= 0,
         across_y = cell_differs(c, y[0], y[2]) >= 0 || cell_differs(c, y[1], y[3]) >= 0;
    if (!across_x && !across_y)
        return;
    int n = across_x && across_y ? LINES : 1;
    memset(out, 0, (size_t)(c->f->njet + 1) * sizeof *out);
    for (int k = 0; k < n; k++) {
        cell_line(c, across_x ? 0 : 1, (k + 0.5) / n - 0.5, one);
        for (int j = 0; j <= c->f->njet; j++)
            out[j] += one[j] / n;
    }
}
