/* field_check: checks a stored solution, using only its nodes or series and the kernels of the model, and
   no code of a solver.  Residuals are relative: |F| over the sum of the sizes of its terms, so that
   rounding is some 1e-16 at every scale.  If a number is not finite, an obstacle is passed or an equation
   is not satisfied, the run fails, with the place. */
#include "field.h"
#include "base/tolerances.h"
#include <math.h>
#include <string.h>

enum { BLOCK = 1 << 10, PIECE_POINTS = 24 };

typedef struct {
    field_work *w;
    field_result *r;
    const field_program *fp;
    double size[FIELD_MAX]; /* the largest |u| of each field */
    double residual, passed;
    double at_residual[2], at_passed[2];
    span by_residual;
} check;

static const double *place_of(const check *c, int64_t k, double *x)
{
    const field_result *r = c->r;
    x[0] = c->fp->ncoord == 2 ? r->ux[0][k % r->m[0]] : r->x[k];
    x[1] = c->fp->ncoord == 2 ? r->ux[1][k / r->m[0]] : 0;
    return x;
}

static const char *place_text(const check *c, const double *x)
{
    return c->fp->ncoord == 2 ? arena_printf(c->w->r->a, "(%g, %g)", x[0], x[1])
                              : arena_printf(c->w->r->a, "%s = %g", c->fp->coord[0], x[0]);
}

static void residual_seen(check *c, double value, double x, double y, span by)
{
    if (!(value > c->residual))
        return;
    c->residual = value;
    c->at_residual[0] = x;
    c->at_residual[1] = y;
    c->by_residual = by;
}

/* ---- finite numbers ---- */
static bool check_finite(check *c)
{
    const field_result *r = c->r;
    double x[2];
    for (int64_t k = 0; k < r->n; k++)
        for (int f = 0; f < c->fp->nfield; f++) {
            double u = r->u[k * c->fp->nfield + f];
            if (!isfinite(u))
                return field_fail(c->w, c->fp->eq[f].f.at, "the solution is not finite: %s is %g at %s",
                                  c->fp->name[f], u, place_text(c, place_of(c, k, x)));
            c->size[f] = fabs(u) > c->size[f] ? fabs(u) : c->size[f];
        }
    return true;
}

/* ---- obstacles ---- */
/* gap of every node to obstacle o, the smaller one where it jumps */
static void gaps_of(const check *c, const field_obstacle *o, double *gap)
{
    const field_result *r = c->r;
    int nf = c->fp->nfield, nc = c->fp->ncoord;
    arena_pos mark = arena_mark(c->w->a);
    double *x = arena_array(c->w->a, double, 2 * BLOCK), *psi = arena_array(c->w->a, double, BLOCK);
    for (int64_t from = 0; from < r->n; from += BLOCK) {
        int64_t n = r->n - from < BLOCK ? r->n - from : BLOCK;
        for (int64_t k = 0; k < n && nc == 2; k++)
            place_of(c, from + k, x + 2 * k);
        kernel_points(c->w, &o->psi, nc == 2 ? x : r->x + from, n, psi);
        for (int64_t k = 0; k < n; k++)
            gap[from + k] = o->sense * (r->u[(from + k) * nf + o->field] - psi[k]);
    }
    for (int64_t j = 0; j < r->nseg && nc == 1; j++)
        for (int s = -1; s <= 1; s += 2) {
            int64_t k = r->seg[j];
            double lo = s < 0 ? c->w->lo[0] : r->x[k], hi = s < 0 ? r->x[k] : c->w->hi[0], y;
            if (!(lo < hi))
                continue;
            lo = side_of(c->w, r->x[k], lo, hi);
            kernel_points(c->w, &o->psi, &lo, 1, &y);
            gap[k] = fmin(gap[k], o->sense * (r->u[k * nf + o->field] - y));
        }
    arena_release(c->w->a, mark);
}

static bool check_obstacles(check *c, int8_t *touch)
{
    const field_result *r = c->r;
    double *gap = arena_array(c->w->a, double, r->n), x[2];
    for (int i = 0; i < c->fp->nobst; i++) {
        const field_obstacle *o = &c->fp->obst[i];
        double tiny = ROUND_200 * c->size[o->field];
        gaps_of(c, o, gap);
        for (int64_t k = 0; k < r->n; k++) {
            if (gap[k] <= tiny)
                touch[k * c->fp->nfield + o->field] |= o->sense > 0 ? 1 : 2;
            if (-gap[k] > c->passed) {
                c->passed = -gap[k];
                place_of(c, k, c->at_passed);
            }
            if (r->eps > 0 || -gap[k] <= (r->npiece ? FIELD_PASSED_SERIES : FIELD_PASSED) * c->size[o->field])
                continue;
            return field_fail(
                c->w, o->at, "%s passes the obstacle by %.3g at %s%s", c->fp->name[o->field], -gap[k],
                place_text(c, place_of(c, k, x)),
                r->npiece ? ": the contact set is of a kind that vim does not find; use active_set()" : "");
        }
    }
    return true;
}

/* ---- one value of a form ---- */
/* F from its values and jets; *size: the sum of the sizes of its terms */
static double term_sizes(const field_form *f, const double *out, const double *jets, const double *sizes,
                         double *size)
{
    double rest = out[0];
    *size = 0;
    for (int j = 0; j < f->njet; j++) {
        rest -= out[1 + j] * jets[j];
        *size += fabs(out[1 + j]) * sizes[j];
    }
    *size += fabs(rest);
    return out[0];
}

/* what F should be at a node: the force of a soft bed; hard obstacles give any force of the right sign */
static double force_left(const check *c, double F, double noise, int touch, double bed)
{
    if (c->r->eps > 0)
        return F - bed;
    if (touch == 3)
        return 0;
    if (touch)
        return (touch == 1 ? F : -F) >= -noise ? 0 : F;
    return F;
}

/* ---- a line ---- */
/* differences for a row of field f at its centre: for field g nodes first .. first + m - 1 */
typedef struct {
    int64_t first[FIELD_MAX];
    int m[FIELD_MAX];
    double w[FIELD_MAX][FIELD_ORDER + 1][16];
} row_weights;

static void weights_at(const check *c, int f, int64_t s, double h, row_weights *q, bool new_weights)
{
    int k = c->fp->eq[f].order;
    for (int g = 0; g < c->fp->nfield; g++) {
        int order = c->fp->eq[g].order, m = order + 1 + (g != f && order % 2 != k % 2);
        int64_t first = g == f ? s : s + k / 2 - (m - 1) / 2 + (k % 2 && m % 2);
        first = first < 0 ? 0 : first > c->r->n - m ? c->r->n - m : first;
        bool moved = new_weights || first - s != q->first[g];
        q->m[g] = m;
        q->first[g] = first - s;
        double y[16];
        for (int j = 0; j < m && moved; j++)
            y[j] = ((double)(first - s + j) - k / 2.0) * h;
        for (int d = 0; d <= order && moved; d++)
            stencil_weights(y, m, 0, d, q->w[g][d]);
    }
}

static double difference(const check *c, const row_weights *q, int64_t s, const jet *j, double *size)
{
    int g = j->field, d = j->d[0], nf = c->fp->nfield;
    const double *u = c->r->u + (s + q->first[g]) * nf + g, *w = q->w[g][d];
    double sum = 0;
    *size = 0;
    for (int i = 0; i < q->m[g]; i++) {
        double x = w[i] * u[i * nf];
        sum += x;
        *size += fabs(x);
    }
    return sum;
}

static bool form_reads_x(const field_form *f)
{
    for (uint32_t k = 0; k < f->k.tape.nin; k++)
        if (f->k.in[k].kind == IN_COORD)
            return true;
    return false;
}

static int conditions_left(const check *c, int f)
{
    int n = 0;
    for (int k = 0; k < c->fp->ncond; k++) {
        const field_condition *q = &c->fp->cond[k];
        bool mine = false;
        for (int j = 0; j < q->f.njet; j++)
            mine = mine || q->f.jet[j].field == f;
        n += mine && kernel_number(c->w, &q->place) <= c->w->lo[0];
    }
    return n;
}

/* the force of the bed on the node of row s */
static double bed_force(const check *c, int f, int64_t node)
{
    double sum = 0, psi, u = c->r->u[node * c->fp->nfield + f];
    for (int i = 0; i < c->fp->nobst && c->r->eps > 0; i++) {
        const field_obstacle *o = &c->fp->obst[i];
        double x[2];
        if (o->field != f)
            continue;
        kernel_points(c->w, &o->psi, place_of(c, node, x), 1, &psi);
        sum += o->sense * fmax(0, o->sense * (psi - u)) / c->r->eps;
    }
    return sum;
}

/* The contact state of a row: that of its node or, for rows between nodes, of all nodes that it reads (4:
 * they differ) */
static int row_touch(const check *c, const int8_t *touch, int f, int64_t s, int shift)
{
    int k = c->fp->eq[f].order, nf = c->fp->nfield;
    if (shift == 0 && k % 2 == 0)
        return touch[(s + k / 2) * nf + f];
    int all = touch[s * nf + f];
    for (int i = 1; i <= k; i++)
        if (touch[(s + i) * nf + f] != all)
            return 4;
    return all;
}

typedef struct {
    int f, shift;
    const int8_t *touch;
    row_weights q;
    double h;
    bool fixed; /* derivatives and constant of F are the same in all rows */
    double out[65];
} row_job;

static void row_check(check *c, row_job *j, int64_t s)
{
    const field_equation *e = &c->fp->eq[j->f];
    double jets[64], sizes[64], out[65], size, x = c->r->x[s + e->order / 2];
    if (e->order % 2)
        x = (x + c->r->x[s + e->order / 2 + 1]) / 2;
    for (int i = 0; i < e->f.njet; i++)
        jets[i] = difference(c, &j->q, s, &e->f.jet[i], &sizes[i]);
    const double *o = out;
    if (j->fixed) {
        out[0] = j->out[0];
        for (int i = 0; i < e->f.njet; i++)
            out[0] += (out[1 + i] = j->out[1 + i]) * jets[i];
    } else
        form_run(c->w, &e->f, &x, jets, 1, out);
    double F = term_sizes(&e->f, o, jets, sizes, &size), noise = FORCE_NOISE * size,
           bed = c->r->eps > 0 ? bed_force(c, j->f, s + e->order / 2) : 0;
    int touch = c->fp->nobst ? row_touch(c, j->touch, j->f, s, j->shift) : 0;
    if (touch == 4 || (c->r->eps > 0 && touch && (j->shift || e->order % 2)))
        return;
    double left = fabs(force_left(c, F, noise, touch, bed));
    residual_seen(c, left / fmax(size + fabs(bed), SIZE_LEAST), x, 0, e->f.at);
}

/* identical rows of one field: their terms are combined once */
static void rows_alike(check *c, row_job *j, int64_t from, int64_t to)
{
    const field_equation *e = &c->fp->eq[0];
    const double *u = c->r->u;
    int k = e->order;
    double w[FIELD_ORDER + 1] = { 0 }, size, worst = 0, F;
    int64_t at = -1;
    for (int q = 0; q < e->f.njet; q++)
        for (int i = 0; i <= k; i++)
            w[i] += j->out[1 + q] * j->q.w[0][e->f.jet[q].d[0]][i];
    for (int64_t s = from; s + k <= to; s++) {
        F = j->out[0];
        size = fabs(F);
        for (int i = 0; i <= k; i++) {
            F += w[i] * u[s + i];
            size += fabs(w[i] * u[s + i]);
        }
        if (fabs(F) <= worst * size)
            continue;
        int touch = c->fp->nobst ? row_touch(c, j->touch, 0, s, j->shift) : 0;
        if (touch == 4 || force_left(c, F, FORCE_NOISE * size, touch, 0) == 0)
            continue;
        worst = fabs(F) / size;
        at = s;
    }
    if (at >= 0)
        residual_seen(c, worst, c->r->x[at + k / 2], 0, e->f.at);
}

static void check_rows(check *c, const int8_t *touch)
{
    const field_result *r = c->r;
    for (int f = 0; f < c->fp->nfield; f++) {
        const field_equation *e = &c->fp->eq[f];
        row_job j = { .f = f, .touch = touch, .shift = conditions_left(c, f) - e->order / 2 };
        double zero[64] = { 0 };
        j.fixed = e->f.linear && !form_reads_x(&e->f);
        if (j.fixed)
            form_run(c->w, &e->f, r->x, zero, 1, j.out);
        for (int64_t p = 0; p + 1 < r->nseg; p++) { /* rows across a switch weight both sides: not checked */
            double h = (r->x[r->seg[p + 1]] - r->x[r->seg[p]]) / (double)(r->seg[p + 1] - r->seg[p]);
            bool alike = j.fixed && c->fp->nfield == 1 && r->eps <= 0 && !(e->nload && e->order == 1);
            if (alike) {
                weights_at(c, f, r->seg[p], h, &j.q, true);
                rows_alike(c, &j, r->seg[p], r->seg[p + 1]);
            }
            for (int64_t s = r->seg[p]; s + e->order <= r->seg[p + 1] && !alike; s++) {
                if (c->fp->nfield > 1 || s == r->seg[p])
                    weights_at(c, f, s, h, &j.q, s == r->seg[p]);
                if (!(e->nload && e->order == 1))
                    row_check(c, &j, s);
            }
        }
    }
}

/* A condition at an end uses derivatives from the nodes beside it. A force of the obstacle between these
 * nodes would make the solution there non-smooth, and the result would be wrong. */
static bool forces_beside(check *c, const field_condition *q, double x, int64_t first, int m)
{
    const field_result *r = c->r;
    for (int k = 0; k < r->npoint && m > 1; k++) {
        double at = r->point[k].x;
        if (at <= r->x[first] || at >= r->x[first + m - 1])
            continue;
        return field_fail(c->w, q->at,
                          "contact at %s = %g lies within %d cells of the end %s = %g, too near for "
                          "this condition; take more cells",
                          c->fp->coord[0], at, m - 1, c->fp->coord[0], x);
    }
    return true;
}

/* conditions of a line: differences over as many nodes as second order takes */
static bool check_conditions(check *c, const int8_t *touch)
{
    const field_result *r = c->r;
    int nf = c->fp->nfield;
    for (int k = 0; k < c->fp->ncond; k++) {
        const field_condition *q = &c->fp->cond[k];
        double x = kernel_number(c->w, &q->place), jets[64], sizes[64], out[65], w[16], size, per;
        int most = 0;
        for (int j = 0; j < q->f.njet; j++)
            most = q->f.jet[j].d[0] > most ? q->f.jet[j].d[0] : most;
        bool left = x <= c->w->lo[0], right = x >= c->w->hi[0];
        if (!left && !right)
            continue;
        int m = most ? most + 3 : 1;
        m = m > r->n ? (int)r->n : m;
        int64_t first = left ? 0 : r->n - m;
        if (!forces_beside(c, q, x, first, m))
            return false;
        for (int j = 0; j < q->f.njet; j++) {
            stencil_weights(r->x + first, m, x, q->f.jet[j].d[0], w);
            jets[j] = sizes[j] = 0;
            for (int i = 0; i < m; i++) {
                double term = w[i] * r->u[(first + i) * nf + q->f.jet[j].field];
                jets[j] += term;
                sizes[j] += fabs(term);
            }
        }
        double in = side_of(c->w, x, c->w->lo[0], c->w->hi[0]);
        form_run(c->w, &q->f, &in, jets, 1, out);
        double C = term_sizes(&q->f, out, jets, sizes, &size), F = C;
        int touched = 0;
        for (int f = 0; f < nf && c->fp->nobst; f++)
            if (free_end(c->w, f, left ? -1 : 1, &per) == k) {
                touched = touch[(left ? 0 : r->n - 1) * nf + f];
                F = per * C;
            }
        F = force_left(c, F, FORCE_NOISE * size * (C != 0 ? fabs(F / C) : 1), r->eps > 0 ? 0 : touched, 0);
        residual_seen(c, F == 0 ? 0 : fabs(C) / fmax(size, SIZE_LEAST), x, 0, q->at);
    }
    return true;
}

/* ---- series ---- */
/* u^(d) at t of [-1, 1]: integrals of u^(k) and a polynomial below degree k */
typedef struct {
    int n;
    double *top[FIELD_ORDER + 1]; /* u^(k) integrated k - d times, from zero */
    double low[FIELD_ORDER][FIELD_ORDER];
} parts;

/* *off: by how much u is not the integral of its highest derivative */
static void parts_make(const check *c, const field_piece *p, int f, parts *q, double *off)
{
    int k = c->fp->eq[f].order, n = p->n + k;
    double half = (p->b - p->a) / 2, *rest = arena_array(c->w->a, double, n);
    q->n = n;
    for (int d = 0; d <= k; d++)
        q->top[d] = arena_array(c->w->a, double, n);
    memcpy(q->top[k], p->top[f], (size_t)p->n * sizeof(double));
    for (int d = k; d-- > 0;)
        cheb_integral(q->top[d + 1], q->top[d], n, half, 0);
    for (int i = 0; i < n; i++) {
        rest[i] = (i < p->n ? p->c[f][i] : 0) - q->top[0][i];
        if (i >= k)
            *off = fmax(*off, fabs(rest[i]));
    }
    memset(q->low, 0, sizeof q->low);
    memcpy(q->low[0], rest, (size_t)(k < n ? k : n) * sizeof(double));
    for (int d = 1; d < k; d++)
        cheb_derivative(q->low[d - 1], q->low[d], k, half);
}

static double part_at(const parts *q, int k, int d, double t)
{
    return cheb_value(q->top[d], q->n, t) + (d < k ? cheb_value(q->low[d], k, t) : 0);
}

/* a zone that x lies inside: 1, 2 on its obstacle's side; 0: none */
static int zone_at(const check *c, int f, double a, double b)
{
    for (int z = 0; z < c->r->nzone; z++) {
        const contact_interval *i = &c->r->zone[z];
        const field_obstacle *o = &c->fp->obst[i->obstacle];
        if (o->field == f && a >= i->a && b <= i->b)
            return o->sense > 0 ? 1 : 2;
    }
    return 0;
}

static void piece_check(check *c, const field_piece *p)
{
    int nf = c->fp->nfield;
    parts q[FIELD_MAX];
    double off = 0, t[PIECE_POINTS], worst[FIELD_MAX] = { 0 }, sizes[FIELD_MAX] = { 0 },
           at[FIELD_MAX] = { 0 };
    for (int f = 0; f < nf; f++) {
        off = 0;
        parts_make(c, p, f, &q[f], &off);
        if (c->size[f] > 0)
            residual_seen(c, off / c->size[f], p->a, 0, c->fp->eq[f].f.at);
    }
    cheb_points(t, PIECE_POINTS);
    for (int i = 0; i < PIECE_POINTS; i++)
        for (int f = 0; f < nf; f++) {
            const field_form *e = &c->fp->eq[f].f;
            double x = (p->a + p->b) / 2 + (p->b - p->a) / 2 * t[i], jets[64], mine[64], out[65], size;
            x = side_of(c->w, x, p->a, p->b);
            for (int j = 0; j < e->njet; j++) {
                int g = e->jet[j].field;
                jets[j] = part_at(&q[g], c->fp->eq[g].order, e->jet[j].d[0], t[i]);
                mine[j] = fabs(jets[j]);
            }
            form_run(c->w, e, &x, jets, 1, out);
            double F = term_sizes(e, out, jets, mine, &size);
            F = fabs(force_left(c, F, FORCE_NOISE_SERIES * size, zone_at(c, f, p->a, p->b), 0));
            sizes[f] = fmax(sizes[f], size);
            if (F > worst[f]) {
                worst[f] = F;
                at[f] = x;
            }
        }
    for (int f = 0; f < nf; f++)
        if (worst[f] > 0)
            residual_seen(c, worst[f] / sizes[f], at[f], 0, c->fp->eq[f].f.at);
}

/* conditions, and u from piece to piece */
static void check_joints(check *c)
{
    const field_result *r = c->r;
    for (int k = 0; k + 1 < r->npiece; k++)
        for (int f = 0; f < c->fp->nfield; f++) {
            const field_piece *a = &r->piece[k], *b = a + 1;
            double jump = cheb_value(a->c[f], a->n, 1) - cheb_value(b->c[f], b->n, -1);
            if (jump != 0)
                residual_seen(c, fabs(jump) / c->size[f], a->b, 0, c->fp->eq[f].f.at);
        }
    for (int k = 0; k < c->fp->ncond; k++) {
        const field_condition *q = &c->fp->cond[k];
        double x = kernel_number(c->w, &q->place), jets[64], sizes[64], out[65], size, per;
        int at = 0;
        while (at + 1 < r->npiece && x >= r->piece[at].b)
            at++;
        const field_piece *p = &r->piece[at];
        bool held = false;
        for (int j = 0; j < q->f.njet; j++) {
            int g = q->f.jet[j].field, d = q->f.jet[j].d[0];
            parts part;
            double off = 0;
            parts_make(c, p, g, &part, &off);
            jets[j] = part_at(&part, c->fp->eq[g].order, d, (2 * x - p->a - p->b) / (p->b - p->a));
            sizes[j] = fmax(fabs(jets[j]), c->size[g] / pow(c->w->hi[0] - c->w->lo[0], d));
            held = held || zone_at(c, g, p->a, p->b);
            held = held || (free_end(c->w, g, x <= c->w->lo[0] ? -1 : 1, &per) == k && zone_at(c, g, x, x));
        }
        x = side_of(c->w, x, p->a, p->b);
        form_run(c->w, &q->f, &x, jets, 1, out);
        double C = term_sizes(&q->f, out, jets, sizes, &size);
        if (!held && C != 0)
            residual_seen(c, fabs(C) / size, x, 0, q->at);
    }
}

/* ---- a rectangle ---- */
/* central differences for one jet, over the nodes that second order takes */
typedef struct {
    int n;
    int64_t at[25]; /* offset from the node, in numbers of u */
    double w[25];
} plane_weights;

static void plane_weights_make(const check *c, const jet *q, plane_weights *out)
{
    double w[2][5], y[5];
    for (int d = 0; d < 2; d++) {
        double h = (c->w->hi[d] - c->w->lo[d]) / (c->r->m[d] - 1);
        int reach = q->d[d] == 0 ? 0 : q->d[d] > 2 ? 2 : 1;
        memset(w[d], 0, sizeof w[d]);
        for (int s = -reach; s <= reach; s++)
            y[s + reach] = s * h;
        stencil_weights(y, 2 * reach + 1, 0, q->d[d], w[d] + 2 - reach);
    }
    out->n = 0;
    for (int b = -2; b <= 2; b++)
        for (int a = -2; a <= 2; a++)
            if (w[0][a + 2] * w[1][b + 2] != 0) {
                out->at[out->n] = ((int64_t)b * c->r->m[0] + a) * c->fp->nfield + q->field;
                out->w[out->n++] = w[0][a + 2] * w[1][b + 2];
            }
}

typedef struct {
    int f;
    const int8_t *touch;
    plane_weights *q;
    double *x, *jets, *sizes, *out;
} plane_job;

/* the nodes of row j, edge of them left out at both ends */
static void plane_row(check *c, plane_job *p, int j, int edge)
{
    const field_result *r = c->r;
    const field_form *f = &c->fp->eq[p->f].f;
    int n = r->m[0] - 2 * edge, nj = f->njet, nf = c->fp->nfield;
    int64_t first = (int64_t)j * r->m[0] + edge;
    for (int i = 0; i < n; i++) {
        const double *u = r->u + (first + i) * nf;
        place_of(c, first + i, p->x + 2 * i);
        for (int q = 0; q < nj; q++) {
            double sum = 0, size = 0, weights = 0;
            for (int k = 0; k < p->q[q].n; k++) {
                double term = p->q[q].w[k] * u[p->q[q].at[k]];
                sum += term;
                size += fabs(term);
                weights += fabs(p->q[q].w[k]);
            }
            p->jets[i * nj + q] = sum;
            /* where u passes through zero, its size is that of its error */
            p->sizes[i * nj + q] = fmax(size, FIELD_NODE * weights * c->size[f->jet[q].field]);
        }
    }
    form_run(c->w, f, p->x, p->jets, n, p->out);
    for (int i = 0; i < n; i++) {
        double size, bed = c->r->eps > 0 ? bed_force(c, p->f, first + i) : 0,
                     F = term_sizes(f, p->out + (size_t)i * (size_t)(nj + 1), p->jets + i * nj,
                                    p->sizes + i * nj, &size);
        F = force_left(c, F, FORCE_NOISE_SERIES * size, p->touch[(first + i) * nf + p->f], bed);
        residual_seen(c, fabs(F) / fmax(size + fabs(bed), SIZE_LEAST), p->x[2 * i], p->x[2 * i + 1], f->at);
    }
}

/* Nodes inside, of equations without fluxes or cases: those are means over cells, and keep what the solver
 * found. */
static void check_plane(check *c, const int8_t *touch)
{
    const field_result *r = c->r;
    arena *a = c->w->a;
    bool all = true;
    for (int f = 0; f < c->fp->nfield; f++) {
        const field_equation *e = &c->fp->eq[f];
        int edge = e->order / 2, nj = e->f.njet + 1;
        if (e->nflux || e->f.cases) {
            all = false;
            continue;
        }
        plane_job p = { .f = f,
                        .touch = touch,
                        .q = arena_array(a, plane_weights, nj),
                        .x = arena_array(a, double, 2 * r->m[0]),
                        .jets = arena_array(a, double, nj * r->m[0]),
                        .sizes = arena_array(a, double, nj * r->m[0]),
                        .out = arena_array(a, double, nj * r->m[0]) };
        for (int q = 0; q < e->f.njet; q++)
            plane_weights_make(c, &e->f.jet[q], &p.q[q]);
        for (int j = edge; j < r->m[1] - edge; j++)
            plane_row(c, &p, j, edge);
    }
    if (!all)
        c->residual = fmax(c->residual, c->w->r->residual);
}

/* ---- the gate ---- */
bool field_check(field_work *w, field_result *r)
{
    check c = { .w = w, .r = r, .fp = w->fp };
    arena_pos mark = arena_mark(w->a);
    int8_t *touch = arena_array(w->a, int8_t, r->n * w->fp->nfield);
    bool good = check_finite(&c) && check_obstacles(&c, touch);
    if (good && r->npiece) {
        for (int k = 0; k < r->npiece; k++)
            piece_check(&c, &r->piece[k]);
        check_joints(&c);
    } else if (good && w->fp->ncoord == 2)
        check_plane(&c, touch);
    else if (good) {
        check_rows(&c, touch);
        good = check_conditions(&c, touch);
    }
    arena_release(w->a, mark);
    w->r->max_penetration = fmax(c.passed, 0);
    w->r->residual = c.residual;
    double size = SIZE_LEAST;
    for (int f = 0; f < w->fp->nfield; f++)
        size = fmax(size, c.size[f]);
    r->complementarity = fmax(c.residual, w->r->max_penetration / size);
    if (good && r->promised && !(c.residual <= FIELD_RESIDUAL))
        return field_fail(w, c.by_residual,
                          "the solution does not satisfy its equations: relative residual %.3g at %s",
                          c.residual, place_text(&c, c.at_residual));
    return good;
}
