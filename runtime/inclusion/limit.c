/* limit: eps v' in alpha(t) - beta(v) as eps goes to 0.  The solution stays on a strictly increasing branch
   of beta, alpha(t) in beta(v), as long as the branch reaches alpha(t), and jumps where it ends to the
   point that v' = alpha - beta(v) reaches first (Renard 1998, theorem 1: the system only jumps when it has
   no other choice).  Branch ends are found from the derivatives of the graph, jump times from the load at
   the branch's end, both to round-off. v is left-continuous; samples are so dense that the cubic between
   them is exact to 1e-12. */
#include <math.h>
#include <string.h>
#include "clock/clock.h"
#include "inclusion.h"
#include "base/tolerances.h"

typedef struct {
    double t, v, rate, load;
} point;

typedef struct follower {
    moment m;
    const run_options *o;
    results *r;
    run_clock *c;
    arena *a;
    graph g;
    graph_map map;
    bool steady;        /* the graph is the same at all times */
    double ref, offset; /* graph(x) = R(x) - R(ref); the load is y = -R(ref) */
    double scale, load; /* sizes: of v, of the load */
    double y_lo, y_hi;
    double t, v;
    int piece; /* the branch it is on: one of its pieces */
    times turns;
    size_t turn;    /* the next of them */
    int grid, k;    /* parts of the run that are followed one by one; the next */
    point put;      /* the current sample */
    int64_t points; /* of the solution that were computed */
    double tiny;    /* of time */
} follower;

static bool failed(const follower *w)
{
    return w->m.trouble != NULL;
}

static void follower_fail(follower *w, span at, const char *what)
{
    moment_fail(&w->m, at, arena_printf(w->r->a, "%s at t = %s", what, number_text(w->r->a, w->m.in.t)));
}

/* ---- the graph at a time ---- */
static void graph_at(void *ud, double x, int side, double out[3])
{
    follower *w = ud;
    row_value v = moment_row(&w->m, 0, x, side);
    out[0] = v.r - w->offset;
    out[1] = v.dx;
    out[2] = moment_curve(&w->m, 0, x, side);
}

/* Moves to t; gives the load, and the graph that holds it. */
static double load_at(follower *w, double t)
{
    moment_time(&w->m, t);
    if (!w->steady || w->g.piece.n == 0) {
        w->m.kinks_known[0] = false;
        moment_kinks(&w->m, 0);
        w->map.kink = w->m.kink[0], w->map.nkink = w->m.nkink[0];
    }
    if (!w->steady && w->m.nkink[0])
        w->ref = w->m.kink[0][0];
    w->offset = moment_row(&w->m, 0, w->ref, 0).r;
    double y = -w->offset;
    if (!isfinite(y)) {
        follower_fail(w, w->m.ip->row[0].at, "the load is not finite");
        return 0;
    }
    if (!w->steady)
        w->g.piece.n = 0;
    double range = 1.01 * fmax(fabs(y), fmax(fabs(w->y_lo), fabs(w->y_hi)));
    if (w->g.piece.n == 0 || y > w->y_hi || y < w->y_lo) {
        w->y_hi = fmax(w->y_hi, y + 0.5 * range);
        w->y_lo = fmin(w->y_lo, y - 0.5 * range);
        /* wide enough for both ends, so that the order of pieces does not change while it grows */
        if (!graph_cover(&w->g, &w->map, w->y_hi, w->v, w->scale) ||
            !graph_cover(&w->g, &w->map, w->y_lo, w->v, w->scale)) {
            w->y_hi = w->y_lo = y;
            if (!graph_cover(&w->g, &w->map, y, w->v, w->scale))
                follower_fail(w, w->m.ip->row[0].at,
                              "the load is outside the range of the graph: no solution");
        }
    }
    return y;
}

static double load_size(const follower *w)
{
    return fmax(w->load, fmax(fabs(w->y_lo), fabs(w->y_hi)));
}

/* ---- sizes ---- */
/* the largest load of the run, and the kink farthest from 0; where they need the past, those of the start */
static double load_measure(follower *w)
{
    enum { TIMES = 64 };
    double far = 0;
    for (int k = 0; k <= (w->m.ip->npast ? 0 : TIMES) && !failed(w); k++) {
        moment_time(&w->m, w->o->duration * k / TIMES);
        double y = fabs(moment_row(&w->m, 0, w->ref, 0).r);
        if (isfinite(y))
            w->load = fmax(w->load, y);
        moment_kinks(&w->m, 0);
        for (int i = 0; i < w->m.nkink[0]; i++)
            far = fmax(far, fabs(w->m.kink[0][i]));
    }
    moment_time(&w->m, 0);
    moment_kinks(&w->m, 0);
    return far;
}

/* Does the graph lie beyond the loads at a distance d outside of the start and all kinks? */
static bool graph_beyond(follower *w, double d)
{
    double lo = w->v, hi = w->v, left[3], right[3];
    for (int k = 0; k < w->m.nkink[0]; k++) {
        lo = fmin(lo, w->m.kink[0][k]);
        hi = fmax(hi, w->m.kink[0][k]);
    }
    graph_at(w, lo - d, 0, left);
    graph_at(w, hi + d, 0, right);
    return !(left[0] >= -w->load) && !(right[0] <= w->load);
}

/* The size of v, in the units of the model: of the start and the kinks, and of the distance from which on the
 * graph is beyond all loads. */
static void sizes_find(follower *w)
{
    enum { POWERS = 200 };
    int k = POWERS;
    double own = fmax(fabs(w->v), load_measure(w));
    w->offset = moment_row(&w->m, 0, w->ref, 0).r;
    while (k > -POWERS && graph_beyond(w, ldexp(1, k)))
        k--;
    w->scale = k == POWERS || k == -POWERS ? own : fmax(own, ldexp(1, k + 1));
    w->m.x[0] = w->v;
    if (!(w->scale > 0))
        w->scale = 1;
}

/* ---- branches ---- */
typedef struct {
    int first, last;
    double x0, x1, y0, y1;
} run_of_pieces;

static run_of_pieces branch_of(const follower *w, int piece)
{
    run_of_pieces b;
    graph_branch(&w->g, piece, &b.first, &b.last);
    const graph_piece *p = &w->g.piece.at[b.first], *q = &w->g.piece.at[b.last];
    b.x0 = p->x0, b.y0 = p->y0, b.x1 = q->x1, b.y1 = q->y1;
    if (b.first == 0)
        b.y0 = -INFINITY;
    if (b.last + 1 == (int)w->g.piece.n)
        b.y1 = INFINITY;
    return b;
}

/* The branch that holds v, or whose end is nearest to it; -1: none. */
static int branch_near(const follower *w, double v)
{
    int best = -1;
    double far = INFINITY;
    for (int k = 0; k < (int)w->g.piece.n; k++) {
        const graph_piece *p = &w->g.piece.at[k];
        if (!piece_stable(p))
            continue;
        double d = fmax(0, fmax(p->x0 - v, v - p->x1));
        if (d < far)
            far = d, best = k;
    }
    return best;
}

/* The branch of the solution in the current graph, found again after the graph has moved. */
static run_of_pieces branch_now(follower *w)
{
    if (!w->steady || w->piece >= (int)w->g.piece.n || !piece_stable(&w->g.piece.at[w->piece]))
        w->piece = branch_near(w, w->v);
    else {
        const graph_piece *p = &w->g.piece.at[w->piece];
        if (w->v < p->x0 - BRANCH_INSIDE * w->scale || w->v > p->x1 + BRANCH_INSIDE * w->scale)
            w->piece = branch_near(w, w->v);
    }
    if (w->piece < 0) {
        follower_fail(w, w->m.ip->row[0].at, "the graph has no increasing branch");
        return (run_of_pieces){ 0 };
    }
    return branch_of(w, w->piece);
}

static double solve_in(follower *w, const run_of_pieces *b, double y, int *piece)
{
    for (int k = b->first; k <= b->last; k++) {
        const graph_piece *p = &w->g.piece.at[k];
        if (y > p->y1 && k < b->last)
            continue;
        *piece = k;
        return y <= p->y0 ? p->x0 : y >= p->y1 ? p->x1 : graph_solve(&w->g, &w->map, k, y);
    }
    return w->v;
}

/* The distance of the load from the end of the branch; < 0: the branch has ended. */
static double margin(const run_of_pieces *b, double y)
{
    return fmin(y - b->y0, b->y1 - y);
}

/* ---- samples ---- */
/* The rate -R_t/R_v if it moves; 0 if it sticks at a kink that does not move. */
static double rate_at(follower *w, double v, int piece)
{
    const graph_piece *p = &w->g.piece.at[piece];
    if (p->x0 == p->x1)
        return moment_kink_rate(&w->m, 0, p->x0);
    row_value r = moment_row(&w->m, 0, v, v == p->x0 ? 1 : -1);
    double rate = -moment_drift(&w->m, 0) / r.dx;
    return isfinite(rate) ? rate : 0;
}

static void sample_put(follower *w, const point *p)
{
    w->put = *p;
    clock_sample(w->c, p->t);
}

static bool limit_sample(void *of, run_clock *c, int64_t at, energies *e)
{
    const point *p = &((follower *)of)->put;
    results *r = c->r;
    r->q[at] = p->v, r->v[at] = p->rate, r->acc[at] = 0, r->limit.load[at] = p->load;
    *e = (energies){ 0 };
    return true;
}

/* The solution at t on the branch; side: -1 or +1 uses the load just before or after. */
static point point_at(follower *w, double t, int side)
{
    double y = load_at(w, t + side * w->tiny);
    point p = { t, w->v, 0, y };
    if (failed(w))
        return p;
    run_of_pieces b = branch_now(w);
    if (failed(w))
        return p;
    p.v = solve_in(w, &b, y, &w->piece);
    p.rate = rate_at(w, p.v, w->piece);
    w->points++;
    return p;
}

static double cubic_mid(const point *a, const point *b)
{
    return 0.5 * (a->v + b->v) + (b->t - a->t) / 8 * (a->rate - b->rate);
}

enum { DEPTH = 40, SAMPLES_MAX = 1000000 };

/* Samples between a and b (a is put already), halved until the cubic through them is as good as the solution.
   A run that needs too many fails: between fewer the values would be wrong. */
static void fill(follower *w, point a, point b, int depth)
{
    if (failed(w))
        return;
    double mid = 0.5 * (a.t + b.t);
    if (depth < DEPTH && mid > a.t && mid < b.t && b.t - a.t > 4 * w->tiny) {
        w->v = a.v;
        if (!w->steady || depth == 0)
            w->piece = branch_near(w, a.v);
        point m = point_at(w, mid, 0);
        double want = LIMIT_CUBIC * fmax(w->scale, fabs(m.v));
        if (depth < 1 || fabs(m.v - cubic_mid(&a, &b)) > want) {
            if (w->r->samples >= SAMPLES_MAX) {
                follower_fail(w, w->m.ip->row[0].at,
                              "a million samples do not show how often the solution changes (shorten the "
                              "run): none are left");
                return;
            }
            fill(w, a, m, depth + 1);
            fill(w, m, b, depth + 1);
            return;
        }
    }
    sample_put(w, &b);
}

/* ---- following ---- */
static void jump_put(follower *w, double t, double from, double to, bool fold)
{
    *vec_push(w->r->a, &w->r->limit.jumps) = (limit_jump){ t, from, to, 0, fold };
}

/* Goes to where v' = load - graph(v) leads from v at the time t+ ; lists the jump. */
static void settle(follower *w, double t, double v, double y, bool fold)
{
    w->v = v;
    graph_root to = graph_flow(&w->g, &w->map, y, v);
    if (to.piece < 0) {
        follower_fail(w, w->m.ip->row[0].at, "no branch of the graph contains the load");
        return;
    }
    if (fabs(to.x - v) > JUMP_LEAST * w->scale)
        jump_put(w, t, v, to.x, fold);
    w->v = to.x;
    w->piece = to.piece;
    if (!piece_stable(&w->g.piece.at[to.piece]))
        w->piece = branch_near(w, to.x);
}

static double margin_at(follower *w, double t, double v)
{
    double y = load_at(w, t);
    w->v = v;
    run_of_pieces b = branch_now(w);
    return failed(w) ? 0 : margin(&b, y);
}

/* The time in (lo, hi] from which the branch no longer holds the load: regula falsi and halving in turn. */
static double branch_end(follower *w, double lo, double hi, double v)
{
    double f0 = margin_at(w, lo, v), f1 = margin_at(w, hi, v);
    for (int k = 0; k < 200 && hi - lo > ROUND_HALF * w->o->duration && !failed(w); k++) {
        double mid = k % 3 == 2 || !isfinite(f0) || f0 <= 0 ? 0.5 * (lo + hi)
                                                            : lo + (hi - lo) * f0 / (f0 - f1);
        if (k % 3 == 1)
            mid += mid < 0.5 * (lo + hi) ? fmin(0.1 * w->tiny, hi - mid) : -fmin(0.1 * w->tiny, mid - lo);
        if (!(mid > lo && mid < hi))
            mid = 0.5 * (lo + hi);
        if (!(mid > lo && mid < hi))
            break;
        double f = margin_at(w, mid, v);
        if (f == 0)
            return mid;
        if (f > 0)
            lo = mid, f0 = f;
        else
            hi = mid, f1 = f;
    }
    return hi;
}

/* From w->t to t1, within which the load is smooth and goes one way. */
static void follow(follower *w, double t1)
{
    for (int jumps = 0; w->t < t1 && !failed(w); jumps++) {
        point a = point_at(w, w->t, w->t + 2 * w->tiny < t1 ? 1 : 0);
        if (failed(w))
            return;
        sample_put(w, &a);
        w->v = a.v;
        double m = margin_at(w, t1 - w->tiny, a.v), from_t = w->t, v = a.v;
        if (failed(w))
            return;
        if (m >= -ROUND_500 * load_size(w)) {
            w->v = v;
            if (!w->steady)
                w->piece = branch_near(w, v);
            point b = point_at(w, t1, -1);
            double end = b.v;
            fill(w, a, b, 0);
            w->t = t1, w->v = end;
            w->piece = branch_near(w, end);
            return;
        }
        double te = branch_end(w, from_t, t1, v);
        double y = load_at(w, te);
        w->v = v;
        run_of_pieces b = branch_now(w);
        if (failed(w))
            return;
        bool above = y - b.y0 >= b.y1 - y;
        point e = { te, above ? b.x1 : b.x0, 0, y };
        if (te > from_t)
            fill(w, a, e, 0);
        /* slightly beyond the branch's end, so that the flow leads away from it */
        y = load_at(w, te);
        double end_y = above ? b.y1 : b.y0;
        settle(w, te, e.v, end_y + (above ? 1 : -1) * ROUND_50 * fmax(load_size(w), fabs(end_y)), true);
        w->t = te;
        if (jumps > 1000) {
            follower_fail(w, w->m.ip->row[0].at, "the solution jumps without end");
            return;
        }
    }
}

/* ---- times to stop at ---- */
static bool load_breaks(follower *w, double t)
{
    double y0 = load_at(w, t - w->tiny), y1 = load_at(w, t + w->tiny);
    return fabs(y1 - y0) > LOAD_BREAKS * load_size(w);
}

static double drift_now(follower *w, double t)
{
    load_at(w, t);
    moment_row(&w->m, 0, w->ref, 0);
    return moment_drift(&w->m, 0);
}

/* An extremum of the load in (t0, t1), or t1. */
static double extremum(follower *w, double t0, double t1)
{
    double d0 = drift_now(w, t0 + w->tiny), d1 = drift_now(w, t1 - w->tiny);
    if (!w->steady || !(d0 * d1 < 0))
        return t1;
    for (int k = 0; k < 60 && !failed(w); k++) {
        double mid = 0.5 * (t0 + t1);
        if (!(mid > t0 && mid < t1))
            break;
        if (drift_now(w, mid) * d0 > 0)
            t0 = mid;
        else
            t1 = mid;
    }
    return t1;
}

/* The next time after t, up to t1, at which a jump of the past reappears through a delay. */
static double echo(follower *w, double t, double t1)
{
    static const int32_t none[MAX_INDEX];
    const inclusion_program *ip = w->m.ip;
    for (int k = 0; k < ip->npast; k++)
        for (size_t j = 0; j < w->r->limit.jumps.n; j++) {
            const kernel *f = &ip->past[k].when;
            double at = w->r->limit.jumps.at[j].t, lo = t + w->tiny, hi = t1;
            w->m.in.t = lo;
            kernel_run(f, &w->m.in, none, w->m.reg_past[k]);
            if (w->m.reg_past[k][f->tape.out[0]] >= at)
                continue;
            w->m.in.t = hi;
            kernel_run(f, &w->m.in, none, w->m.reg_past[k]);
            if (w->m.reg_past[k][f->tape.out[0]] <= at)
                continue;
            for (int i = 0; i < 100 && lo < 0.5 * (lo + hi) && 0.5 * (lo + hi) < hi; i++) {
                w->m.in.t = 0.5 * (lo + hi);
                kernel_run(f, &w->m.in, none, w->m.reg_past[k]);
                if (w->m.reg_past[k][f->tape.out[0]] < at)
                    lo = w->m.in.t;
                else
                    hi = w->m.in.t;
            }
            t1 = hi;
        }
    return t1;
}

enum { GRID = 512, GRID_MOVING = 128, GRID_MOST = 1 << 22 };

static const char too_often[] = "the load changes too often for a run of this length (shorten it), first";

/* Does the load turn more than once within some of n parts of the run?  Looked for inside of each part. */
static bool turns_within(follower *w, int n)
{
    double T = w->o->duration, least = FACTOR_SAME * load_size(w) / T * n;
    for (int k = 0; k < n && !failed(w); k++) {
        int changes = 0;
        double last = 0;
        for (int j = 0; j < PART_LOOKS; j++) {
            moment_time(&w->m, T * ((double)k + part_look[j]) / n);
            moment_row(&w->m, 0, w->ref, 0);
            double drift = moment_drift(&w->m, 0);
            if (!(fabs(drift) > least))
                continue;
            changes += drift * last < 0;
            last = drift;
        }
        if (changes > 1)
            return true;
    }
    return false;
}

/* Parts in which the load turns once at most.  With a past they are not known before it is. */
static void grid_find(follower *w)
{
    double x = w->m.x[0];
    w->grid = w->steady ? GRID : GRID_MOVING;
    if (w->m.ip->npast)
        return;
    while (w->grid < GRID_MOST && turns_within(w, w->grid))
        w->grid *= 2;
    if (w->grid == GRID_MOST)
        follower_fail(w, w->m.ip->row[0].at, too_often);
    w->m.x[0] = x;
    moment_time(&w->m, 0);
}

/* to the next of: a part of the grid, a turn of the load, an echo of a jump, an extremum of the load */
static step_outcome limit_step(void *of, run_clock *c, double h, double T)
{
    follower *w = of;
    double part = T * w->k / w->grid, t1 = part, v = w->v;
    bool at_turn = false;
    (void)h;
    while (w->turn < w->turns.n && w->turns.at[w->turn] <= w->t + 2 * w->tiny)
        w->turn++;
    if (w->turn < w->turns.n && w->turns.at[w->turn] <= t1)
        t1 = w->turns.at[w->turn], at_turn = true;
    if (w->m.ip->npast) {
        double e = echo(w, w->t, t1);
        if (e < t1)
            t1 = e, at_turn = true;
    }
    double x = extremum(w, w->t, t1);
    if (x < t1 - 2 * w->tiny && x > w->t + 2 * w->tiny)
        t1 = x, at_turn = false;
    if (t1 >= part)
        w->k++;
    w->v = v;
    follow(w, t1);
    c->t = w->t;
    if (failed(w))
        return STEP_FAILED;
    if (!at_turn || t1 >= T)
        return STEP_DONE;
    v = w->v;
    bool breaks = load_breaks(w, t1);
    double y = breaks ? load_at(w, t1 + w->tiny) : 0;
    w->v = v;
    if (breaks)
        settle(w, t1, v, y, false);
    return failed(w) ? STEP_FAILED : STEP_DONE;
}

/* ---- start ---- */
static bool start(follower *w)
{
    double v = w->m.x[0], y = load_at(w, w->tiny), slack;
    if (failed(w))
        return false;
    graph_root to = graph_flow(&w->g, &w->map, y, v);
    for (size_t k = 0; k < w->g.piece.n; k++) {
        const graph_piece *p = &w->g.piece.at[k];
        *vec_push(w->r->a, &w->r->limit.branches) = (limit_branch){ p->x0, p->x1, p->y0, p->y1,
                                                                    piece_stable(p) };
        if (piece_stable(p) || !(v >= p->x0 && v <= p->x1) || (p->x0 < p->x1 && (v == p->x0 || v == p->x1)))
            continue;
        slack = UNSTABLE_START * load_size(w);
        double out[3];
        graph_at(w, v, 1, out);
        bool on = p->x0 == p->x1 ? y < p->y0 && y > p->y1 : fabs(out[0] - y) <= slack;
        if (!on)
            continue;
        moment_fail(
            &w->m, w->m.ip->row[0].at,
            arena_printf(w->r->a,
                         "the initial value %s lies on a decreasing branch of the graph (from %s to %s), "
                         "which is unstable: the limit is not determined",
                         number_text(w->r->a, v), number_text(w->r->a, p->x0), number_text(w->r->a, p->x1)));
        return false;
    }
    (void)to;
    sample_put(w, &(point){ 0, v, 0, y });
    settle(w, 0, v, y, false);
    return !failed(w);
}

enum { DRAWN = 400 };

static void drawn_put(follower *w, double x, int side)
{
    double out[3];
    graph_at(w, x, side, out);
    *vec_push(w->r->a, &w->r->limit.graph_v) = x;
    *vec_push(w->r->a, &w->r->limit.graph_load) = out[0];
}

/* The graph as a line, over the range of the solution and a little more. */
static void draw(follower *w)
{
    const results *r = w->r;
    double lo = INFINITY, hi = -INFINITY;
    for (int64_t k = 0; k < r->samples; k++)
        lo = fmin(lo, r->q[k]), hi = fmax(hi, r->q[k]);
    double wide = fmax(hi - lo, VIEW_LEAST * w->scale);
    lo -= 0.25 * wide, hi += 0.25 * wide;
    for (size_t k = 0; k < w->g.piece.n; k++) {
        const graph_piece *p = &w->g.piece.at[k];
        double a = fmax(p->x0, lo), b = fmin(p->x1, hi);
        if (a > b)
            continue;
        for (int j = 0; j <= DRAWN; j++) {
            double x = a + (b - a) * j / DRAWN;
            if (a == b && j > 0 && j < DRAWN)
                continue;
            drawn_put(w, j == DRAWN ? b : x, a == b ? (j ? 1 : -1) : j == 0 ? 1 : -1);
        }
    }
}

static int32_t param_of(const program *p, const char *name)
{
    for (size_t k = 0; k < p->nparam_info; k++)
        if (!strcmp(p->param[k].name, name))
            return p->param[k].size == 1 ? p->param[k].at : -1;
    return -1;
}

double *limit_params(const results *r, const char *name, arena *a)
{
    const program *p = r->prog;
    double *param = arena_array(a, double, p->nparam + 1);
    bool *set = arena_array(a, bool, p->nparam + 1);
    memcpy(param, r->param, (size_t)p->nparam * sizeof *param);
    param[param_of(p, name)] = 0;
    for (size_t k = 0; k < p->nparam_info; k++)
        for (int32_t i = 0; i < p->param[k].size && p->param[k].at >= 0; i++)
            set[p->param[k].at + i] = true;
    program_params(p, set, param, a);
    return param;
}

static bool branch_start(follower *w)
{
    const program *p = w->r->prog;
    double sign = w->m.sign[0];
    moment_new(&w->m, w->r, w->a, limit_params(w->r, w->o->word[0], w->a));
    w->m.sign[0] = sign;
    moment_time(&w->m, 0);
    moment_kinks(&w->m, 0);
    row_value at = moment_row(&w->m, 0, w->m.x[0], 1);
    if (!(at.dv == 0))
        moment_fail(&w->m, p->inclusion->row[0].at,
                    arena_printf(w->r->a,
                                 "the factor of the rate does not vanish with '%s': write %s*v' in ...",
                                 w->o->word[0], w->o->word[0]));
    w->v = w->m.x[0];
    w->ref = w->m.nkink[0] ? w->m.kink[0][0] : 0;
    w->steady = p->inclusion->row[0].separable;
    sizes_find(w);
    grid_find(w);
    w->k = 1;
    if (!moment_turns(&w->m, w->o->duration, w->a, &w->turns))
        follower_fail(w, w->m.ip->row[0].at, too_often);
    return !failed(w) && start(w);
}

static bool limit_start(void *of, run_clock *c)
{
    follower *w = of;
    arena *a = w->a;
    results *r = c->r;
    const run_options *o = c->o;
    int32_t small = o->word[0] ? param_of(r->prog, o->word[0]) : -1;
    *w = (follower){ .o = o, .r = r, .c = c, .a = a, .g.a = a, .map = { .ud = w, .at = graph_at } };
    r->limit.has_jumps = r->left = true;
    r->solver = "branches";
    c->rule = STEPS_OWN;
    c->own_samples = true;
    w->tiny = JUST_BESIDE * o->duration;
    moment_new(&w->m, r, a, r->param);
    moment_time(&w->m, 0);
    if (small < 0)
        moment_fail(
            &w->m, SPAN_NONE,
            o->word[0]
                ? arena_printf(
                      r->a, "'%s' is not a parameter of model '%s': limit(eps) names the one that goes to 0",
                      o->word[0], r->prog->model)
                : "limit(eps) names the parameter that goes to 0");
    return !failed(w) && moment_signs(&w->m) && branch_start(w);
}

static void limit_finish(void *of, run_clock *c)
{
    follower *w = of;
    results *r = c->r;
    r->count.steps = w->points;
    r->t_end = r->samples ? r->t[r->samples - 1] : 0;
    if (failed(w))
        results_fail(r, w->m.trouble_at, w->m.trouble);
    else
        draw(w);
}

static const stepper limit_stepper = {
    .start = limit_start, .step = limit_step, .sample = limit_sample, .finish = limit_finish
};

static void limit_go(results *r, const void *ud, arena *a)
{
    follower *w = arena_make(a, follower);
    w->a = a;
    clock_run(&limit_stepper, w, ud, r);
}

static void limit_run(const program *p, const run_options *o, results *r)
{
    (void)p;
    results_scratch(r, limit_go, o);
}

static const char *limit_refuse(const program *p, span *at)
{
    const inclusion_program *ip = p->inclusion;
    if (!ip || !p->has_inclusion.file)
        return "it has no inclusion";
    *at = ip->refused_at;
    if (ip->refused)
        return ip->refused;
    if (ip->nintegral) {
        *at = ip->integral[0].at;
        return "limits are taken without integrals over the past";
    }
    if (ip->njoint) {
        *at = ip->joint[0].at;
        return "limits are taken of graphs over the unknown: Sgn of a rate or of several unknowns, and "
               "intervals, have none";
    }
    *at = p->has_inclusion;
    if (p->nq != 1)
        return "limits are taken of one inclusion for one unknown";
    if (ip->ncone)
        return "limits are taken of graphs, not of normal cones";
    return NULL;
}

static const backend_option limit_options[] = {
    { "name", OPT_NAME, NAN, 0, 0, NULL, "the parameter that goes to 0", KIND_ANY },
};
const backend backend_limit = {
    .name = "limit",
    .doc = "limit of an inclusion as a parameter goes to 0: jumps only where a branch ends",
    .option = limit_options,
    .noption = sizeof limit_options / sizeof *limit_options,
    .built = true,
    .refuse = limit_refuse,
    .run = limit_run,
};
