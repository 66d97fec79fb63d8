/* inclusion: A x' in f(t, x) - graph(x) by implicit steps.  Each step inverts the graph exactly: where it
   has one solution, by Newton's method from kink to kink; where it has several, all are found and the one
   that the motion reaches first is used, which is on its present branch. order 1: implicit Euler.  order 2:
   the L-stable diagonally implicit scheme of two stages, with steps cut at kinks; without h, steps are
   chosen by comparing one step with two halves. */
#include <math.h>
#include <string.h>
#include "clock/clock.h"
#include "inclusion.h"
#include "base/linalg.h"
#include "base/tolerances.h"

typedef struct row_graph { /* of a row at frozen time: R(x) - R(ref) + slope*x, without rate */
    struct solver *w;
    int row;
    /* flat: without the rate */
    graph g, flat;
    graph_map map;
    double ref, offset, slope; /* slope: factor of the rate over the step */
    double least, A;           /* least slope of R; factor of the rate, where it is constant (0: not known) */
    /* known_slope: of g; reach: |x - ref| up to which the least slope is known */
    bool known;
    double reach, known_slope;
    int age;
} row_graph;

typedef struct solver {
    moment m;
    const run_options *o;
    results *r;
    arena *a;
    row_graph *graph;
    projector *proj;
    joint_work *joint;    /* rows are coupled through their selections; NULL: they are not */
    int n, nside;         /* rows; places in `side` */
    int8_t *side, *side0; /* of each row: where it is among its kinks */
    bool changed;         /* some row passed, reached or left a kink */
    double *last;         /* rates of the last solved stage */
    double *start, *base, *stage, *keep, *full, *rate;
    double *size; /* of each dof, from its values and rates so far */
    double *load; /* of each row: the largest force or rate in it so far, by which its residual is measured */
    double T, tolerance;
    int order;
    bool adaptive;
    times turns;
    size_t turn;
    double h;         /* of the next chosen step */
    bool exact_rates; /* of samples: those to the right, not those of the last step */
    bool linear;      /* one row, no cone */
} solver;

static bool failed(const solver *w)
{
    return w->m.trouble != NULL;
}

static void solver_fail(solver *w, span at, const char *what)
{
    moment_fail(&w->m, at, arena_printf(w->r->a, "%s at t = %s", what, number_text(w->r->a, w->m.in.t)));
}

/* ---- the graph of a row ---- */
static void graph_at(void *ud, double x, int side, double out[3])
{
    row_graph *g = ud;
    row_value v = moment_row(&g->w->m, g->row, x, side);
    out[0] = v.r - g->offset + g->slope * (x - g->ref);
    out[1] = v.dx + g->slope;
    out[2] = moment_curve(&g->w->m, g->row, x, side);
}

/* The range to search around x: the largest value so far, the kinks, the distance moved in the whole run at
   the present rate; if all of these are 0, at the rate that row k requires. */
static double graph_scale(solver *w, int k, double x)
{
    double s = fmax(fabs(x), fmax(w->size[k], w->T * fabs(w->last[k])));
    for (int j = 0; j < w->m.nkink[k]; j++)
        s = fmax(s, fabs(w->m.kink[k][j]));
    if (s > 0)
        return s;
    row_value at = moment_row(&w->m, k, x, 1);
    s = w->T * fabs(at.r / at.dv);
    return s > 0 && isfinite(s) ? s : 1;
}

/* The map at the present time; rows that are separable look alike at all times. */
static row_graph *graph_now(solver *w, int k, double slope)
{
    row_graph *g = &w->graph[k];
    g->map.kink = w->m.kink[k];
    g->map.nkink = w->m.nkink[k];
    g->slope = slope;
    g->offset = moment_row(&w->m, k, g->ref, 1).r;
    if (!w->m.ip->row[k].separable || g->known_slope != slope)
        g->g.piece.n = 0;
    g->known_slope = slope;
    return g;
}

enum { LEAST_AGE = 64 };

/* Has the step's graph one solution only?  Its slope is that of R plus `slope`. */
static bool is_unique(solver *w, int k, double x, double slope)
{
    row_graph *g = &w->graph[k];
    bool fixed = w->m.ip->row[k].separable;
    double scale = graph_scale(w, k, x);
    if (!g->known || fabs(x - g->ref) > g->reach || (!fixed && ++g->age > LEAST_AGE)) {
        graph_now(w, k, 0);
        g->reach = 16 * scale;
        graph_build(&g->flat, &g->map, g->ref - 4 * g->reach, g->ref + 4 * g->reach);
        g->least = graph_least_slope(&g->flat, &g->map);
        g->known = true, g->age = 0;
        g->A = fixed ? moment_row(&w->m, k, x, 1).dv : 0;
        g->known_slope = NAN;
    }
    return slope > (fixed ? 1.000001 : 4) * fmax(0, -g->least);
}

/* All solutions, of which the first that the motion comes to. */
static double invert_all(solver *w, int k, double x0, double base, double slope)
{
    row_graph *g = graph_now(w, k, slope);
    double y = slope * (base - g->ref) - g->offset;
    graph_root all[16], to;
    if (g->g.piece.n == 0 && w->m.ip->row[k].separable)
        graph_tilt(&g->g, &g->flat, &g->map);
    if (!graph_cover(&g->g, &g->map, y, x0, graph_scale(w, k, x0))) {
        solver_fail(w, w->m.ip->row[k].at,
                    "the load is outside the range of the graph: no solution of the step");
        return x0;
    }
    to = graph_flow(&g->g, &g->map, y, x0);
    if (graph_roots(&g->g, &g->map, y, all, 16) > 1)
        w->r->count.branch_choices++;
    if (to.piece < 0)
        solver_fail(w, w->m.ip->row[k].at, "no solution of the step");
    return to.x;
}

/* ---- one row: phi(x) = R(x) + A (x - base)/h = 0 ---- */
typedef struct {
    double f, d, A;
} phi_value;

static inline phi_value phi(solver *w, int k, double x, int side, double base, double ih)
{
    row_value v = moment_row(&w->m, k, x, side);
    return (phi_value){ v.r + v.dv * ih * (x - base), v.dx + v.dv * ih, v.dv };
}

/* Newton's method from a, where dir*phi < 0, towards `end`.  sure: dir*phi > 0 at the end, which may be
 * infinite; else NAN when it leaves. */
static double newton(solver *w, int k, double a, phi_value p, double end, bool sure, int dir, double base,
                     double ih)
{
    double x = a, b = end;
    for (int i = 0; i < 400; i++) {
        double next = x - p.f / p.d;
        bool inside = dir > 0 ? next > a && next < b : next < a && next > b;
        if (!inside) {
            if (!sure)
                return NAN;
            next = isfinite(b) ? 0.5 * (a + b) : a + dir * 4 * fmax(fabs(a), 1);
            if (next == a || next == b)
                return x;
        }
        double step = next - x;
        x = next;
        p = phi(w, k, x, 0, base, ih);
        w->r->count.solver_iterations++;
        if (p.f == 0)
            return x;
        if (inside && fabs(step) <= ROUND_ROOT * fabs(x))
            return x - p.f / p.d;
        if (dir * p.f < 0)
            a = x;
        else
            b = x;
        if (fabs(b - a) <= ROUND_1 * fabs(x))
            return x;
    }
    return x;
}

/* If there is one solution, any starting point may be used: from the point predicted by the last rate,
   within the smooth stretch of x0, one Newton step is usually enough. NAN: it was not. */
static double seek_ahead(solver *w, int k, double lo, double hi, double base, double ih)
{
    row_graph *g = &w->graph[k];
    double x = base + w->last[k] / ih;
    if (!(g->A * ih > 1.000001 * fmax(0, -g->least)) || !(x > lo && x < hi) || fabs(x - g->ref) > g->reach)
        return NAN;
    for (int i = 0; i < 3; i++) {
        phi_value p = phi(w, k, x, 0, base, ih);
        double next = x - p.f / p.d;
        if (!(next > lo && next < hi))
            return NAN;
        if (fabs(next - x) <= ROUND_ROOT * fabs(x))
            return next;
        x = next;
    }
    return NAN;
}

static double seek(solver *w, int k, double x0, double base, double ih)
{
    moment *m = &w->m;
    moment_kinks(m, k);
    const double *kink = m->kink[k];
    int nk = m->nkink[k], at = 0, dir;
    while (at < nk && kink[at] < x0)
        at++;
    if (w->graph[k].A > 0 && (at == nk || kink[at] > x0)) {
        double x = seek_ahead(w, k, at ? kink[at - 1] : -INFINITY, at < nk ? kink[at] : INFINITY, base, ih);
        if (!isnan(x))
            return x;
    }
    phi_value right = phi(w, k, x0, 1, base, ih), left = right;
    bool on = at < nk && kink[at] == x0;
    if (on)
        left = phi(w, k, x0, -1, base, ih);
    if ((left.f <= 0 && right.f >= 0) || (left.f > 0 && right.f < 0))
        return x0;
    dir = right.f < 0 ? 1 : -1;
    phi_value p = dir > 0 ? right : left;
    if (!(isfinite(p.f) && isfinite(p.d))) {
        solver_fail(w, m->ip->row[k].at, "the inclusion is not finite");
        return x0;
    }
    if (!is_unique(w, k, x0, p.A * ih))
        return invert_all(w, k, x0, base, p.A * ih);
    double a = x0;
    for (int j = dir > 0 ? (on ? at + 1 : at) : at - 1;; j += dir) {
        if (j < 0 || j >= nk)
            return newton(w, k, a, p, dir * INFINITY, true, dir, base, ih);
        double end = kink[j], x = newton(w, k, a, p, end, false, dir, base, ih);
        if (!isnan(x))
            return x;
        phi_value close = phi(w, k, end, -dir, base, ih);
        if (dir * close.f > 0)
            return newton(w, k, a, p, end, true, dir, base, ih);
        phi_value far = phi(w, k, end, dir, base, ih);
        if (dir * far.f >= 0)
            return end;
        a = end, p = far;
    }
}

static int8_t side_of(const moment *m, int k, double x)
{
    int s = 0;
    for (int j = 0; j < m->nkink[k]; j++)
        s += (x > m->kink[k][j]) - (x < m->kink[k][j]);
    return (int8_t)s;
}

/* ---- all rows ---- */
static void rates_set(solver *w, double ih)
{
    for (int k = 0; k < w->n; k++)
        w->last[k] = w->m.v[k] = (w->m.x[k] - w->base[k]) * ih;
}

/* a change of a dof over its size */
static double relative(const solver *w, int k, double change)
{
    double size = fmax(w->size[k], fabs(w->m.x[k]));
    return change == 0 ? 0 : fabs(change) / size;
}

static void sizes_grow(solver *w)
{
    for (int k = 0; k < w->n; k++)
        w->size[k] = fmax(w->size[k], fmax(fabs(w->m.x[k]), RUN_SCALE * w->T * fabs(w->last[k])));
    for (int c = 0; c < w->m.ip->ncone; c++) { /* a set lies in one space */
        const inclusion_cone *q = &w->m.ip->cone[c];
        double most = 0;
        for (int i = 0; i < q->n; i++)
            most = fmax(most, w->size[q->dof[i]]);
        for (int i = 0; i < q->n; i++)
            w->size[q->dof[i]] = most;
    }
}

static double row_solve(solver *w, int k, double ih)
{
    moment *m = &w->m;
    double x0 = w->start[k], x1 = m->x[k];
    m->v[k] = 0;
    x0 = seek(w, k, x0, w->base[k], ih);
    m->x[k] = x0;
    w->last[k] = m->v[k] = (x0 - w->base[k]) * ih;
    return relative(w, k, x0 - x1);
}

static double cone_solve(solver *w, int c, double h)
{
    moment *m = &w->m;
    const inclusion_cone *q = &m->ip->cone[c];
    double *z = w->full, *y = w->stage, change = 0, worst = 0, ratio = 0;
    const char *why = NULL;
    for (int i = 0; i < q->n; i++) {
        int k = q->dof[i];
        double r, a, s;
        moment_free(m, k, &r, &a, &s);
        z[i] = w->base[k] - h * r / a;
        if (i == 0)
            ratio = s / a;
        if (!(s / a > 0) || fabs(s / a - ratio) > FACTOR_SAME * ratio) {
            moment_fail(
                m, m->ip->row[k].at,
                s / a > 0
                    ? "the factors of rate and normal cone differ from row to row: divide each row by its own"
                    : "the normal cone pushes out of its set: write -x' in normal_cone(C, x)");
            return 0;
        }
    }
    if (!project(w->proj, m, c, z, y, &worst, &why)) {
        moment_fail(m, q->at, arena_printf(w->r->a, "%s at t = %s", why, number_text(w->r->a, m->in.t)));
        return 0;
    }
    w->r->max_penetration = fmax(w->r->max_penetration, worst);
    for (int i = 0; i < q->n; i++) {
        int k = q->dof[i];
        double was = m->x[k];
        m->x[k] = y[i];
        change = fmax(change, relative(w, k, y[i] - was));
        m->v[k] = (y[i] - w->base[k]) / h;
    }
    return change;
}

/* F(x) of all rows with each one on its kink (x = kink) or off it, for Newton's method if solving row after
 * row is slow. */
static void joint_value(solver *w, const int8_t *stuck, double ih, double *F)
{
    moment *m = &w->m;
    rates_set(w, ih);
    for (int k = 0; k < w->n; k++) {
        double x = m->x[k], v = m->v[k];
        if (stuck[k] >= 0) {
            F[k] = x - m->kink[k][stuck[k]];
            continue;
        }
        m->v[k] = 0;
        row_value r = moment_row(m, k, x, 0);
        m->v[k] = v;
        F[k] = r.r + r.dv * v;
    }
}

enum { JOINT_MAX = 400 };

static bool joint_newton(solver *w, double ih)
{
    int n = w->n;
    moment *m = &w->m;
    if (n > JOINT_MAX || m->ip->ncone)
        return false;
    arena_pos mark = arena_mark(w->a);
    double *J = arena_array(w->a, double, n *n), *F = arena_array(w->a, double, n),
           *G = arena_array(w->a, double, n), *d = arena_array(w->a, double, n);
    int8_t *stuck = arena_array(w->a, int8_t, n);
    factor f;
    bool good = false;
    factor_init(&f, w->a, n, false);
    for (int k = 0; k < n; k++) {
        moment_kinks(m, k);
        stuck[k] = -1;
        for (int j = 0; j < m->nkink[k]; j++)
            if (m->x[k] == m->kink[k][j])
                stuck[k] = (int8_t)j;
    }
    for (int i = 0; i < 30 && !good; i++) {
        double change = 0;
        joint_value(w, stuck, ih, F);
        for (int j = 0; j < n; j++) {
            double x = m->x[j], e = DIFFERENCE_FORWARD * fmax(w->size[j] > 0 ? w->size[j] : 1, fabs(x));
            m->x[j] = x + e;
            joint_value(w, stuck, ih, G);
            m->x[j] = x;
            for (int k = 0; k < n; k++)
                J[k * n + j] = (G[k] - F[k]) / e;
        }
        if (!factor_general(&f, J))
            break;
        factor_solve(&f, F, d);
        for (int k = 0; k < n; k++) {
            m->x[k] -= d[k];
            if (stuck[k] >= 0)
                m->x[k] = m->kink[k][stuck[k]];
            change = fmax(change, relative(w, k, d[k]));
        }
        good = change < ROUND_500;
    }
    rates_set(w, ih);
    arena_release(w->a, mark);
    return good;
}

enum { SWEEPS = 400, SWEEPS_SLOW = 25 };

static void solve_joint(solver *w, double t, double ih)
{
    moment *m = &w->m;
    int8_t *now = w->side0 + w->nside;
    double residual = 0;
    /* past values of this very step move along */
    for (int round = 0; round < (m->ip->npast ? 3 : 1); round++) {
        if (round)
            moment_time(m, t);
        if (joint_solve(w->joint, m, w->base, ih, now, &residual, &w->r->count.solver_iterations))
            continue;
        solver_fail(w, m->ip->joint[0].at,
                    "the rows of the inclusion could not be solved together: take a smaller h");
        return;
    }
    w->r->residual = fmax(w->r->residual, residual);
    for (int j = 0; j < w->nside; j++) {
        if (now[j] != w->side[j])
            w->changed = true;
        w->side[j] = now[j];
    }
}

/* Solves the step that ends at t: x' = (x - base) ih, from m->x = start. */
static void solve(solver *w, double t, double ih)
{
    moment *m = &w->m;
    double change = 1;
    moment_time(m, t);
    if (w->joint) {
        solve_joint(w, t, ih);
        return;
    }
    if (w->linear) {
        m->v[0] = 0;
        m->x[0] = seek(w, 0, w->start[0], w->base[0], ih);
    }
    rates_set(w, ih);
    for (int i = 0; !w->linear && change > ROUND_50; i++) {
        change = 0;
        for (int k = 0; k < w->n && !failed(w); k++)
            if (m->ip->row[k].cone < 0)
                change = fmax(change, row_solve(w, k, ih));
        for (int c = 0; c < m->ip->ncone && !failed(w); c++)
            change = fmax(change, cone_solve(w, c, 1 / ih));
        if (m->ip->npast)
            moment_time(m, t);
        if (failed(w))
            return;
        if (i % SWEEPS_SLOW == SWEEPS_SLOW - 1 && change > ROUND_50)
            joint_newton(w, ih);
        if (i > SWEEPS) {
            if (change < SWEEPS_ENOUGH)
                break;
            solver_fail(w, m->ip->row[0].at,
                        "the rows of the inclusion could not be solved together: take a smaller h");
            return;
        }
        if (w->n == 1)
            break;
    }
    for (int k = 0; k < w->n; k++) {
        int8_t s = m->ip->row[k].cone < 0 ? side_of(m, k, m->x[k]) : 0;
        if (s != w->side[k])
            w->changed = true;
        w->side[k] = s;
    }
}

/* The residual of the rows, relative to the larger of 1 and the terms of the step. */
static void residual_look(solver *w, double h)
{
    moment *m = &w->m;
    for (int k = 0; k < w->n; k++) {
        if (m->ip->row[k].cone >= 0)
            continue;
        double keep = m->v[k], x = m->x[k];
        m->v[k] = 0;
        row_value right = moment_row(m, k, x, 1), left = right;
        for (int j = 0; j < m->nkink[k]; j++)
            if (m->kink[k][j] == x) {
                left = moment_row(m, k, x, -1);
                break;
            }
        m->v[k] = keep;
        double f = right.r + right.dv * keep, g = left.r + left.dv * keep;
        double off = f < 0 ? -f : g > 0 ? g : 0, noise = ROUND_UNIT * fabs(x) * fabs(right.dv) / h;
        w->load[k] = fmax(w->load[k], fmax(fabs(right.dv * keep), fabs(right.r)));
        if (off > noise)
            w->r->residual = fmax(w->r->residual, (off - noise) / w->load[k]);
    }
}

/* ---- schemes ---- */
static void begin_step(solver *w)
{
    sizes_grow(w);
    memcpy(w->start, w->m.x, (size_t)w->n * sizeof(double));
    memcpy(w->base, w->m.x, (size_t)w->n * sizeof(double));
}

/* Did a set that is not convex pass over the point within the step?  Between its ends the point is then much
 * deeper outside than it moved. */
static void followed(solver *w, double t1, double h)
{
    moment *m = &w->m;
    for (int c = 0; c < m->ip->ncone && !failed(w); c++) {
        const inclusion_cone *q = &m->ip->cone[c];
        if (q->convex)
            continue;
        for (int k = 1; k < 4; k++) {
            double moved = 0;
            for (int i = 0; i < q->n; i++) {
                double x0 = w->base[q->dof[i]], x1 = m->x[q->dof[i]];
                w->stage[i] = x0 + (x1 - x0) * k / 4;
                moved = hypot(moved, x1 - x0);
            }
            m->in.t = t1 - h * (4 - k) / 4;
            if (cone_depth(w->proj, m, c, w->stage) > CONE_OUTSIDE * w->size[q->dof[0]] + moved)
                moment_fail(
                    m, q->at,
                    arena_printf(
                        w->r->a,
                        "the set C(t) moves faster than it can be followed (take a smaller h) at t = %s",
                        number_text(w->r->a, m->in.t)));
        }
        m->in.t = t1;
    }
}

static void euler(solver *w, double t1, double h)
{
    begin_step(w);
    solve(w, t1, 1 / h);
    if (!failed(w))
        followed(w, t1, h);
}

/* Alexander's scheme: gamma = 1 - 1/sqrt(2); the second stage is the end of the step, so what sticks stays
 * where it is. */
static void sdirk(solver *w, double t1, double h)
{
    const double g = 1 - M_SQRT1_2;
    begin_step(w);
    solve(w, t1 - (1 - g) * h, 1 / (g * h));
    for (int k = 0; k < w->n; k++)
        w->base[k] = w->start[k] + (1 - g) / g * (w->m.x[k] - w->start[k]);
    if (failed(w))
        return;
    memcpy(w->start, w->m.x, (size_t)w->n * sizeof(double));
    solve(w, t1, 1 / (g * h));
}

static void one_step(solver *w, double t1, double h)
{
    if (w->order == 2)
        sdirk(w, t1, h);
    else
        euler(w, t1, h);
}

/* ---- samples ---- */
/* The right rate of a row: that of the kink where it sticks. */
static double row_rate(solver *w, int k)
{
    moment *m = &w->m;
    double x = m->x[k], keep = m->v[k];
    m->v[k] = 0;
    row_value right = moment_row(m, k, x, 1), left = moment_row(m, k, x, -1);
    m->v[k] = keep;
    if (left.r <= 0 && right.r >= 0 && left.r != right.r)
        return moment_kink_rate(m, k, x);
    row_value v = right.r < 0 ? right : left;
    return -v.r / v.dv;
}

static bool inclusion_sample(void *of, run_clock *c, int64_t sample, energies *e)
{
    solver *w = of;
    results *r = c->r;
    size_t n = (size_t)w->n, at = (size_t)sample;
    *e = (energies){ 0 };
    memcpy(r->q + at * n, w->m.x, n * sizeof(double));
    memset(r->acc + at * n, 0, n * sizeof(double));
    for (int k = 0; k < w->n; k++)
        w->rate[k] = w->exact_rates && !w->joint && w->m.ip->row[k].cone < 0 ? row_rate(w, k) : w->m.v[k];
    memcpy(r->v + at * n, w->rate, n * sizeof(double));
    for (size_t k = 0; k < n; k++)
        if (!isfinite(w->m.x[k]))
            solver_fail(w, w->m.ip->row[k].at, "the solution is no longer finite");
    return true;
}

/* ---- equal steps ---- */
static double nudge(const solver *w)
{
    return JUST_BESIDE * w->T;
}

/* order 2: cut at kinks by halving; the remaining interval is passed by one tiny implicit step */
enum { CUTS = 5000 }; /* trials in a step; a kink takes about forty */

static void step_cut(solver *w, double t0, double t1)
{
    /* over: something changes before that time */
    double t = t0, least = fmax(CUT_LEAST * (t1 - t0), nudge(w)), over = INFINITY;
    for (int tries = 0; t < t1 && !failed(w); tries++) {
        if (tries == CUTS) {
            solver_fail(w, w->m.ip->row[0].at,
                        "the solution leaves the graph and returns more than a hundred times in one step: "
                        "take a smaller h");
            return;
        }
        if (over - t <= least) { /* over the kink by order 1 */
            euler(w, over, over - t);
            t = over, over = INFINITY;
            continue;
        }
        double h = over < INFINITY ? (over - t) / 2 : t1 - t;
        memcpy(w->keep, w->m.x, (size_t)w->n * sizeof(double));
        memcpy(w->side0, w->side, (size_t)w->nside);
        w->changed = false;
        one_step(w, t + h, h);
        if (!w->changed) {
            t = over < INFINITY ? t + h : t1;
            continue;
        }
        memcpy(w->m.x, w->keep, (size_t)w->n * sizeof(double));
        memcpy(w->side, w->side0, (size_t)w->nside);
        over = t + h;
    }
}

static step_outcome equal_step(solver *w, run_clock *c, double to)
{
    if (w->order == 2)
        step_cut(w, c->t, to);
    else
        euler(w, to, to - c->t);
    if (failed(w))
        return STEP_FAILED;
    if (w->order == 1 && !w->joint)
        residual_look(w, c->h);
    w->exact_rates = w->order == 2;
    return STEP_DONE;
}

/* ---- chosen steps ---- */
static double next_turn(solver *w, double t)
{
    while (w->turn < w->turns.n && w->turns.at[w->turn] <= t)
        w->turn++;
    return w->turn < w->turns.n ? w->turns.at[w->turn] : w->T;
}

/* One step and two halves; the error of the halves, relative to the tolerance.  Leaves their end,
 * extrapolated nowhere. */
static double step_try(solver *w, double t, double h, double shift)
{
    size_t bytes = (size_t)w->n * sizeof(double);
    double err = 0;
    w->changed = false;
    one_step(w, t + h - shift, h);
    if (w->changed || failed(w))
        return INFINITY;
    memcpy(w->full, w->m.x, bytes);
    memcpy(w->m.x, w->keep, bytes);
    one_step(w, t + h / 2, h / 2);
    if (w->changed || failed(w))
        return INFINITY;
    one_step(w, t + h - shift, h / 2);
    if (w->changed || failed(w))
        return INFINITY;
    for (int k = 0; k < w->n; k++)
        err = fmax(err, relative(w, k, w->m.x[k] - w->full[k]) / (w->order == 2 ? 3 : 1) / w->tolerance);
    return err;
}

/* what a trial has changed */
static void take_back(solver *w)
{
    memcpy(w->m.x, w->keep, (size_t)w->n * sizeof(double));
    memcpy(w->side, w->side0, (size_t)w->nside);
}

static step_outcome chosen_step(solver *w, run_clock *c)
{
    double least = CHOSEN_LEAST * w->T, stop = next_turn(w, c->t), shift = 0,
           h = fmin(w->h, w->T / (w->o->finer > 0 ? 50 * w->o->finer : 50));
    if (c->t + 1.01 * h >= stop)
        h = stop - c->t, shift = stop < w->T ? nudge(w) : 0;
    memcpy(w->keep, w->m.x, (size_t)w->n * sizeof(double));
    memcpy(w->side0, w->side, (size_t)w->nside);
    double err = step_try(w, c->t, h, shift);
    if (failed(w))
        return STEP_FAILED;
    if (err > 1)
        take_back(w);
    if (err > 1 && h > least) {
        w->h = h * (isfinite(err) ? fmax(0.2, 0.9 * pow(err, -1.0 / (w->order + 1))) : 0.25);
        return STEP_REFUSED;
    }
    if (err > 1) /* at a kink, or a jump of the load */
        euler(w, c->t + h - shift, h);
    c->t = c->t + h >= stop - least ? stop : c->t + h;
    clock_sample(c, c->t);
    if (shift > 0 && c->t == stop) { /* the rate just after it */
        moment_time(&w->m, c->t + nudge(w));
        clock_sample(c, c->t);
    }
    w->h = h * (err > 1 ? 4 : fmin(4, fmax(0.3, 0.9 * pow(fmax(err, ERROR_LEAST), -1.0 / (w->order + 1)))));
    return STEP_DONE;
}

static step_outcome inclusion_step(void *of, run_clock *c, double h, double to)
{
    solver *w = of;
    (void)h;
    if (failed(w))
        return STEP_FAILED;
    return w->adaptive ? chosen_step(w, c) : equal_step(w, c, to);
}

/* ---- the run ---- */
enum { OPTION_H, OPTION_ORDER, OPTION_TOLERANCE };

static void solver_new(solver *w, const run_options *o, results *r, arena *a)
{
    int n = r->prog->nq;
    *w = (solver){ .o = o, .r = r, .a = a, .n = n };
    moment_new(&w->m, r, a, r->param);
    w->graph = arena_array(a, row_graph, n + 1);
    for (int k = 0; k < n; k++)
        w->graph[k] = (row_graph){
            .w = w, .row = k, .g.a = a, .flat.a = a, .map = { .ud = &w->graph[k], .at = graph_at }
        };
    const inclusion_program *ip = r->prog->inclusion;
    w->nside = ip->njoint ? ip->njoint : n;
    w->side = arena_array(a, int8_t, w->nside + 1), w->side0 = arena_array(a, int8_t, 2 * w->nside + 1);
    w->joint = ip->njoint ? joint_new(ip, n, a) : NULL;
    double **all[] = { &w->last, &w->start, &w->base, &w->stage, &w->keep,
                       &w->full, &w->rate,  &w->size, &w->load };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        *all[k] = arena_array(a, double, n + 1);
    w->proj = projector_new(r->prog->inclusion, a);
    w->linear = n == 1 && ip->ncone == 0 && !w->joint;
    w->T = o->duration;
    w->tolerance = o->value[OPTION_TOLERANCE];
}

/* x(0) in C(0)? */
static bool starts_inside(solver *w)
{
    const inclusion_program *ip = w->m.ip;
    for (int c = 0; c < ip->ncone; c++) {
        const inclusion_cone *q = &ip->cone[c];
        double worst = 0, off = 0, scale = 1;
        const char *why = NULL;
        for (int i = 0; i < q->n; i++)
            w->full[i] = w->m.x[q->dof[i]], scale = fmax(scale, fabs(w->full[i]));
        if (!project(w->proj, &w->m, c, w->full, w->stage, &worst, &why)) {
            moment_fail(&w->m, q->at, arena_printf(w->r->a, "%s at t = 0", why));
            return false;
        }
        for (int i = 0; i < q->n; i++)
            off = fmax(off, fabs(w->full[i] - w->stage[i]));
        for (int i = 0; i < q->n; i++)
            w->m.x[q->dof[i]] = w->stage[i];
        if (off <= CONE_OUTSIDE * scale)
            continue;
        moment_fail(&w->m, q->at,
                    arena_printf(w->r->a, "the initial value is not in C(0): it lies %s outside",
                                 number_text(w->r->a, off)));
        return false;
    }
    return true;
}

/* where the rows are among their kinks */
static void sides_start(solver *w)
{
    for (int k = 0; k < w->n && !w->joint; k++)
        w->side[k] = w->m.ip->row[k].cone < 0 ? side_of(&w->m, k, w->m.x[k]) : 0;
    for (int j = 0; w->joint && j < w->nside; j++) {
        double a = moment_argument(&w->m, j);
        w->side[j] = (int8_t)((a > 0) - (a < 0));
        w->m.s[w->m.ip->joint[j].number] = w->side[j];
    }
}

static void steps_choose(solver *w, run_clock *c)
{
    double h = w->o->value[OPTION_H], order = w->o->value[OPTION_ORDER];
    bool cones = w->m.ip->ncone > 0;
    w->adaptive = isnan(h) && !cones;
    w->order = isnan(order) ? (w->adaptive ? 2 : 1) : (int)order;
    w->h = STEP_FIRST * w->T;
    w->exact_rates = w->adaptive || !cones;
    c->rule = w->adaptive ? STEPS_OWN : STEPS_EQUAL;
    c->h = !isnan(h) ? h : w->adaptive ? w->T / 1000 : clock_default_step(c->r, w->T);
    c->own_samples = w->adaptive;
    c->sample_all = w->m.ip->npast || w->m.ip->nintegral; /* samples are the past */
    if (cones && w->order == 2)
        moment_fail(&w->m, w->m.ip->cone[0].at, "a normal cone allows order 1 only");
    else if (!w->adaptive && w->T > 0 && !(clock_steps(w->T, c->h) < 1e9))
        moment_fail(&w->m, SPAN_NONE, "more than 1e9 steps: take a larger h");
}

static bool inclusion_start(void *of, run_clock *c)
{
    solver *w = of;
    solver_new(w, c->o, c->r, w->a);
    steps_choose(w, c);
    if (failed(w))
        return false;
    c->r->linear = !w->adaptive && w->order == 1;
    c->r->solver = w->m.ip->ncone ? "catching-up" : "graph inversion";
    moment_time(&w->m, 0);
    if (!moment_signs(&w->m) || !starts_inside(w) || failed(w))
        return false;
    sides_start(w);
    if (w->adaptive)
        (void)moment_turns(&w->m, w->T, w->a, &w->turns); /* steps pass those that are too many */
    moment_time(&w->m, w->adaptive ? nudge(w) : 0);
    return w->adaptive ? clock_sample(c, 0) : true;
}

static void inclusion_finish(void *of, run_clock *c)
{
    solver *w = of;
    if (failed(w))
        results_fail(c->r, w->m.trouble_at, arena_strdup(c->r->a, w->m.trouble));
}

/* ---- as part of a state ---- */
static void doubles_keep(arena *a, run_state *s, const char *name, double **at, size_t *n, size_t *cap)
{
    size_t count = state_count(s, name, *n, sizeof(double));
    if (state_reads(s)) {
        vec_room_(a, (void **)at, count, cap, sizeof(double));
        *n = count;
    }
    state_f64(s, name, *at, count);
}

static void graph_keep(graph *g, run_state *s)
{
    size_t n = state_count(s, "pieces", g->piece.n, 4 * sizeof(double));
    double range[] = { g->lo, g->hi };
    if (state_reads(s)) {
        g->piece.n = 0;
        vec_reserve(g->a, &g->piece, n);
    }
    for (size_t k = 0; k < n && state_ok(s); k++) {
        graph_piece *p = state_reads(s) ? vec_push(g->a, &g->piece) : &g->piece.at[k];
        double of[] = { p->x0, p->x1, p->y0, p->y1 };
        int kind = state_reads(s) ? 0 : (int)p->kind;
        state_f64(s, "piece", of, 4);
        state_int(s, "kind", &kind, PIECE_RISING, PIECE_DOWN);
        *p = (graph_piece){ of[0], of[1], of[2], of[3], (piece_kind)kind };
    }
    doubles_keep(g->a, s, "grid", &g->grid.at, &g->grid.n, &g->grid.cap);
    doubles_keep(g->a, s, "bend", &g->bend.at, &g->bend.n, &g->bend.cap);
    state_f64(s, "range", range, 2);
    g->lo = range[0], g->hi = range[1];
}

/* what is known of the graph of a row: it decides how the next solution is sought */
static void row_keep(solver *w, int k, run_state *s)
{
    moment *m = &w->m;
    row_graph *g = &w->graph[k];
    int nsgn = m->ip->row[k].nsgn;
    double of[] = { g->ref, g->offset, g->slope, g->least, g->A, g->reach, g->known_slope };
    state_f64(s, "row", of, 7);
    g->ref = of[0], g->offset = of[1], g->slope = of[2], g->least = of[3], g->A = of[4], g->reach = of[5],
    g->known_slope = of[6];
    state_flags(s, "known", &g->known, 1);
    state_int(s, "age", &g->age, 0, LEAST_AGE + 1);
    graph_keep(&g->g, s);
    graph_keep(&g->flat, s);
    state_f64(s, "kinks", m->kink[k], (size_t)nsgn);
    state_int(s, "kinks in use", &m->nkink[k], 0, nsgn);
    state_f64(s, "turns", m->turn_at[k], (size_t)nsgn);
    state_u8(s, "sides of turns", (uint8_t *)m->turn_dir[k], (size_t)nsgn);
}

static void inclusion_keep(void *of, run_state *s)
{
    solver *w = of;
    moment *m = &w->m;
    size_t n = (size_t)w->n;
    double *all[] = { m->x, m->v, w->last, w->start, w->base, w->stage, w->keep, w->full, w->size, w->load };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        state_f64(s, "state", all[k], n);
    state_f64(s, "selections", m->s, (size_t)m->ip->nset);
    state_u8(s, "sides", (uint8_t *)w->side, (size_t)w->nside);
    state_f64(s, "h", &w->h, 1);
    state_flags(s, "kinks known", m->kinks_known, n);
    for (int k = 0; k < w->n; k++)
        row_keep(w, k, s);
}

static const stepper inclusion_stepper = {
    .start = inclusion_start,
    .step = inclusion_step,
    .sample = inclusion_sample,
    .finish = inclusion_finish,
    .keep = inclusion_keep,
};

static void inclusion_go(results *r, const void *ud, arena *a)
{
    solver *w = arena_make(a, solver);
    w->a = a;
    clock_run(&inclusion_stepper, w, ud, r);
}

static void inclusion_run(const program *p, const run_options *o, results *r)
{
    (void)p;
    results_scratch(r, inclusion_go, o);
}

static const char *inclusion_refuse(const program *p, span *at)
{
    if (!p->inclusion)
        return "it has no inclusion and no equation of first order";
    *at = p->inclusion->refused_at;
    return p->inclusion->refused;
}

static const backend_option inclusion_options[] = {
    { "h", OPT_REAL, NAN, 1e-300, INFINITY, NULL,
      "time step; adaptive by default (with normal cones 1e-3, or a thousandth of a run shorter than 1)",
      KIND_ANY },
    { "order", OPT_INT, NAN, 1, 2, NULL, "order of the scheme; default 1 with h, 2 without", KIND_ANY },
    { "tolerance", OPT_REAL, 1e-9, 1e-14, 1e-2, NULL, "error allowed in an adaptive step", KIND_ANY },
    OPTION_ERROR,
};
static bool inclusion_saves(const program *p)
{
    (void)p;
    return true;
}

const backend backend_inclusion = {
    .name = "inclusion",
    .doc = "first-order inclusions by implicit steps that invert the graph",
    .option = inclusion_options,
    .noption = sizeof inclusion_options / sizeof *inclusion_options,
    .built = true,
    .refuse = inclusion_refuse,
    .run = inclusion_run,
    .saves = inclusion_saves,
};
