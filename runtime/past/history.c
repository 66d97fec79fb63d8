/* history: past values over series. A past value x(theta(t)) is the piece of the motion at theta(t0),
   composed with theta; integrals over the past are sums over the pieces, each by Gauss's formula at points
   that move with t. */
#include "history.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "clock/state.h"
#include "base/tolerances.h"

/* where a value is read: before the start; in the current series; otherwise the number of a piece */
enum { BEFORE = -1, AT_HAND = -2 };

typedef struct reader { /* x or x' of a dof at theta(t), or a number of a base */
    int32_t dof;        /* number of a base: its address */
    int kind, where;    /* kind: PAST_DOF ... */
    /* the piece about theta(t0), in powers of time by its unit; powers of theta - theta(t0); the value */
    double *P, unit, *pow, *out;
    taylor *given; /* the motion before the start, as given by the model */
} reader;

/* back: its time runs backwards */
typedef struct past {
    taylor *arg;
    reader rd;
    const char *name;
    bool back;
} past;

typedef struct node {
    taylor *f;
    double *bound, *local[PAST_KINDS];
    reader *rd;
    double *theta;
} node;

typedef struct integral {
    const integral_rule *rule;
    int32_t slot;
    int npast;
    taylor *lo, *hi, **arg0, **arg1; /* times at bound 0 and 1: they are linear in it */
    int32_t *local, *dof;
    int *kind;
    int *as; /* the first one that is read at the same times */
    double *bound0, *bound1;
    vec(node) node;
    /* series of the ends of segments */
    double *edge;
    int nedge, cap;
    /* interior edges: the time and the past value they belong to */
    double *edge_tb;
    int *edge_of;
    int *where;
    /* for each past value: its time at either end */
    double *theta_end;
    int *end_where;
} integral;

typedef struct {
    double t;
    int order;
} breaking;

struct history {
    arena *a;
    const program *p;
    const delay_program *d;
    int n, K, width, gain;
    const double *q0, *base0;
    double t, eps;
    double unit;     /* of time, in the current expansion */
    double duration; /* of the run: what times are measured by */
    past *past;
    int npast;
    integral *in;
    int nin;
    double *slots[PAST_KINDS + 1]; /* past values, integrals */
    double *bound;
    double *xi, *weight;
    int points;
    /* for each dof: its motion before the start, as given by the model */
    const kernel **given_kernel[2];
    int32_t (*given_index)[MAX_INDEX];
    vec(piece) pieces;
    vec(breaking) breaks;
    int met; /* order of the image of the breaking point at the end of this step */
    const char *error;
    span where;
};

static double *numbers(history *h, size_t n)
{
    return arena_array(h->a, double, (n ? n : 1) * (size_t)h->width);
}

/* ---- pieces ---- */

/* where two pieces meet: the one entered by an increasing time, or by a decreasing one */
static int piece_find(const history *h, double theta, bool back)
{
    double eps = back ? -h->eps : h->eps;
    if (theta < -eps)
        return BEFORE;
    size_t lo = 0, hi = h->pieces.n;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (h->pieces.at[mid].t <= theta + eps)
            lo = mid;
        else
            hi = mid;
    }
    return h->pieces.n ? (int)lo : AT_HAND;
}

/* How far beyond theta the same function holds; *order: of the breaking point there. */
static double holds_to(const history *h, int where, double theta, int *order)
{
    *order = 1 << 20;
    if (where == AT_HAND)
        return INFINITY;
    for (size_t i = 0; i < h->breaks.n; i++) {
        if (h->breaks.at[i].t <= theta + h->eps)
            continue;
        const piece *p = where >= 0 ? &h->pieces.at[where] : NULL;
        double end = p ? p->t + p->reach : INFINITY;
        if (end < h->breaks.at[i].t - h->eps)
            return end;
        *order = h->breaks.at[i].order;
        return h->breaks.at[i].t;
    }
    if (where == BEFORE)
        return INFINITY;
    const piece *p = &h->pieces.at[where];
    return fmin(p->t + p->reach, h->t);
}

/* the same to the left */
static double holds_from(const history *h, int where, int *order)
{
    *order = 1 << 20;
    if (where < 0)
        return -INFINITY;
    double t = h->pieces.at[where].t;
    for (size_t i = 0; i < h->breaks.n; i++)
        if (fabs(h->breaks.at[i].t - t) <= h->eps)
            *order = h->breaks.at[i].order;
    return t;
}

/* ---- reading ---- */
static reader reader_new(history *h, int32_t dof, int kind, double *out)
{
    reader r = { .dof = dof, .kind = kind, .out = out };
    r.P = numbers(h, 1);
    r.pow = NULL;
    const kernel *k = kind == PAST_BASE ? NULL : h->given_kernel[kind][dof];
    if (k)
        r.given = taylor_new(h->a, k, h->given_index[dof], h->width);
    return r;
}

static void reader_begin(history *h, reader *r, int where, double theta)
{
    int w = h->width;
    r->where = where;
    r->unit = where < 0 ? h->unit : h->pieces.at[where].unit;
    if (where < 0)
        return;
    const piece *p = &h->pieces.at[where];
    if (r->kind == PAST_BASE) {
        r->P[0] = p->base[r->dof];
        return;
    }
    const double *c = p->y + (size_t)r->dof * (size_t)(p->order + 1);
    double d[p->order + 1];
    int order = p->order;
    if (r->kind == PAST_RATE) {
        for (int j = 0; j < order; j++)
            d[j] = (j + 1) * c[j + 1] / p->unit;
        order--;
        c = d;
    }
    series_shift(c, order, (theta - p->t) / p->unit, r->P, w - 1);
}

static double compose(history *h, reader *r, const double *P, const double *theta, int j)
{
    int w = h->width;
    bool linear = true;
    if (j == 0)
        return P[0];
    for (int i = 2; i <= j; i++)
        linear &= theta[i] == 0;
    if (linear)
        return P[j] * pow(theta[1] / r->unit, j);
    if (!r->pow)
        r->pow = numbers(h, (size_t)w);
    /* (theta - theta0)^m, coefficient j; those of lower order are made up for when theta begins to bend */
    double s = 0;
    for (int i = 1; i <= j; i++) {
        r->pow[w + i] = theta[i] / r->unit;
        for (int m = 2; m <= i; m++) {
            double x = 0;
            if (i < j && r->pow[0] == j - 1)
                break;
            for (int l = 1; l <= i - m + 1; l++)
                x += theta[l] / r->unit * r->pow[(m - 1) * w + i - l];
            r->pow[m * w + i] = x;
        }
    }
    r->pow[0] = j;
    for (int m = 1; m <= j; m++)
        s += P[m] * r->pow[m * w + j];
    return s;
}

static void reader_step(history *h, reader *r, const series_inputs *in, const double *theta, int j)
{
    if (j == 0 && r->pow)
        r->pow[0] = 0;
    if (r->kind == PAST_BASE) { /* a piece has one base */
        const double *of = r->where == BEFORE ? h->base0 : r->where == AT_HAND ? in->base : NULL;
        r->out[j] = j ? 0 : of ? of[r->dof] : r->P[0];
        return;
    }
    if (r->where == BEFORE) {
        if (!r->given) {
            r->out[j] = j == 0 && r->kind == PAST_DOF ? h->q0[r->dof] : 0;
            return;
        }
        series_inputs with = *in;
        for (uint32_t i = 0; i < r->given->nin; i++)
            if (r->given->k->in[i].kind == IN_BOUND)
                h->bound[(size_t)r->given->k->in[i].at.base * (size_t)h->width + (size_t)j] = theta[j];
        with.from[IN_BOUND] = h->bound;
        taylor_step(r->given, &with, j);
        r->out[j] = taylor_out(r->given, 0)[j];
        return;
    }
    const double *P = r->P;
    if (r->where == AT_HAND)
        P = in->from[r->kind == PAST_RATE ? IN_V : IN_Q] + (size_t)r->dof * (size_t)h->width;
    r->out[j] = compose(h, r, P, theta, j);
}

static bool fail_delay(history *h, const char *name, span at, double t)
{
    text s = { .a = h->a };
    if (!h->error) {
        text_printf(&s, "the delay %s%s%sis not positive at t = ", name ? "of '" : "", name ? name : "",
                    name ? "' " : "");
        text_num(&s, t);
        text_puts(&s, ": the value is not in the past");
        h->error = s.at;
        h->where = at;
    }
    return false;
}

/* ---- past values ---- */
static bool past_step(history *h, past *p, const series_inputs *in, int j)
{
    const double *theta = taylor_out(p->arg, 0);
    taylor_step(p->arg, in, j);
    if (j == 0) {
        /* a delay that starts at 0 is known from the current series */
        bool begins = h->t == 0 && theta[0] == 0;
        if (!begins && !(theta[0] < h->t))
            return fail_delay(h, p->name, p->arg->k->at, h->t);
        if (!isfinite(theta[0]))
            return fail_delay(h, p->name, p->arg->k->at, h->t);
        reader_begin(h, &p->rd, begins ? AT_HAND : piece_find(h, theta[0], p->back), theta[0]);
    }
    reader_step(h, &p->rd, in, theta, j);
    return true;
}

/* ---- integrals ---- */
static void gauss_points(history *h, int n)
{
    h->points = n;
    h->xi = arena_array(h->a, double, n);
    h->weight = arena_array(h->a, double, n);
    for (int i = 0; i < n; i++) {
        double x = cos(3.14159265358979323846 * (i + 0.75) / (n + 0.5)), d = 1;
        for (int it = 0; it < 100; it++) {
            double p0 = 1, p1 = x;
            for (int k = 2; k <= n; k++) {
                double p2 = ((2 * k - 1) * x * p1 - (k - 1) * p0) / k;
                p0 = p1;
                p1 = p2;
            }
            d = n * (x * p1 - p0) / (x * x - 1);
            double step = p1 / d;
            x -= step;
            if (fabs(step) < ROUND_HALF)
                break;
        }
        h->xi[i] = 0.5 * (1 - x);
        h->weight[i] = 1 / ((1 - x * x) * d * d);
    }
}

static double *edge(const history *h, const integral *x, int e)
{
    return x->edge + (size_t)e * (size_t)h->width;
}

static void edges_room(history *h, integral *x, int n)
{
    if (n <= x->cap)
        return;
    x->cap = 2 * n + 8;
    x->edge = numbers(h, (size_t)x->cap);
    double *tb = arena_array(h->a, double, x->cap);
    int *of = arena_array(h->a, int, x->cap);
    if (x->edge_tb) {
        memcpy(tb, x->edge_tb, (size_t)x->nedge * sizeof *tb);
        memcpy(of, x->edge_of, (size_t)x->nedge * sizeof *of);
    }
    x->edge_tb = tb;
    x->edge_of = of;
    x->where = arena_array(h->a, int, (size_t)x->cap *(size_t)(x->npast + 1));
}

static int node_new(history *h, integral *x)
{
    node *n = vec_push(h->a, &x->node);
    n->f = taylor_new(h->a, &x->rule->integrand, x->lo->index, h->width);
    n->bound = numbers(h, (size_t)x->rule->bound + 1);
    for (int r = 0; r < PAST_KINDS; r++)
        n->local[r] = numbers(h, (size_t)x->rule->npast[r]);
    n->theta = numbers(h, (size_t)x->npast);
    n->rd = arena_array(h->a, reader, x->npast + 1);
    for (int l = 0; l < x->npast; l++)
        n->rd[l] = reader_new(h, x->dof[l], x->kind[l],
                              n->local[x->kind[l]] + (size_t)x->local[l] * (size_t)h->width);
    return (int)x->node.n - 1;
}

static double slope(const integral *x, int l)
{
    return taylor_out(x->arg1[l], 0)[0] - taylor_out(x->arg0[l], 0)[0];
}

/* times where the pieces meet, as values of the bound variable at t0 */
static void edges_find(history *h, integral *x, double lo, double hi)
{
    x->nedge = 0;
    for (int l = 0; l < x->npast; l++) {
        double c = slope(x, l), th = taylor_out(x->arg0[l], 0)[0];
        double a = th + c * (c > 0 ? lo : hi), b = th + c * (c > 0 ? hi : lo);
        if (c == 0 || x->as[l] != l)
            continue;
        for (size_t k = 0; k <= h->pieces.n; k++) {
            double tb = k < h->pieces.n ? h->pieces.at[k].t : h->t;
            if (tb <= a + h->eps || tb > b + h->eps)
                continue;
            if (k && k == h->pieces.n && h->t == 0)
                continue;
            edges_room(h, x, x->nedge + 1);
            x->edge_tb[x->nedge] = tb;
            x->edge_of[x->nedge++] = l;
        }
    }
    edges_room(h, x, x->nedge + 2);
    /* by place */
    for (int i = 1; i < x->nedge; i++)
        for (int k = i; k > 0; k--) {
            double s1 = (x->edge_tb[k] - taylor_out(x->arg0[x->edge_of[k]], 0)[0]) / slope(x, x->edge_of[k]);
            double s0 = (x->edge_tb[k - 1] - taylor_out(x->arg0[x->edge_of[k - 1]], 0)[0]) /
                        slope(x, x->edge_of[k - 1]);
            if (!(s1 < s0))
                break;
            double tb = x->edge_tb[k];
            x->edge_tb[k] = x->edge_tb[k - 1];
            x->edge_tb[k - 1] = tb;
            int of = x->edge_of[k];
            x->edge_of[k] = x->edge_of[k - 1];
            x->edge_of[k - 1] = of;
        }
}

/* the piece of past value l between edges e and e + 1 (edge 0: lo, nedge + 1: hi) */
static int segment_piece(history *h, integral *x, int l, int e, double lo, double hi)
{
    double c = slope(x, l), th = taylor_out(x->arg0[l], 0)[0], at[2];
    for (int k = 0; k < 2; k++) {
        int i = e + k;
        at[k] = i == 0              ? lo
                : i == x->nedge + 1 ? hi
                                    : (x->edge_tb[i - 1] - taylor_out(x->arg0[x->edge_of[i - 1]], 0)[0]) /
                                          slope(x, x->edge_of[i - 1]);
    }
    double mid = th + c * 0.5 * (at[0] + at[1]);
    if (mid >= h->t - h->eps)
        return AT_HAND;
    if (mid < 0)
        return BEFORE;
    return piece_find(h, mid, false);
}

static bool integral_begin(history *h, integral *x)
{
    double lo = taylor_out(x->lo, 0)[0], hi = taylor_out(x->hi, 0)[0];
    edges_find(h, x, lo, hi);
    for (int l = 0; l < x->npast; l++) {
        double c = slope(x, l), th = taylor_out(x->arg0[l], 0)[0];
        if (fmax(th + c * lo, th + c * hi) > h->t + h->eps)
            return fail_delay(h, NULL, x->rule->at, h->t);
        for (int e = 0; e <= x->nedge; e++)
            x->where[e * x->npast + l] = segment_piece(h, x, l, e, lo, hi);
        x->end_where[2 * l] = x->where[0 * x->npast + l];
        x->end_where[2 * l + 1] = x->where[x->nedge * x->npast + l];
    }
    while ((int)x->node.n < (x->nedge + 1) * h->points)
        node_new(h, x);
    return true;
}

static bool integral_step(history *h, integral *x, const series_inputs *in, int j)
{
    int w = h->width;
    series_inputs with = *in;
    taylor_step(x->lo, in, j);
    taylor_step(x->hi, in, j);
    if (j == 0) {
        memset(x->bound0, 0, ((size_t)x->rule->bound + 1) * (size_t)w * sizeof(double));
        memset(x->bound1, 0, ((size_t)x->rule->bound + 1) * (size_t)w * sizeof(double));
        x->bound1[(size_t)x->rule->bound * (size_t)w] = 1;
    }
    for (int l = 0; l < x->npast; l++) {
        with.from[IN_BOUND] = x->bound0;
        taylor_step(x->arg0[l], &with, j);
        with.from[IN_BOUND] = x->bound1;
        taylor_step(x->arg1[l], &with, j);
    }
    if (j == 0 && !integral_begin(h, x))
        return false;
    for (int e = 0; e <= x->nedge + 1; e++)
        edge(h, x, e)[j] = e == 0              ? taylor_out(x->lo, 0)[j]
                           : e == x->nedge + 1 ? taylor_out(x->hi, 0)[j]
                                               : ((j == 0 ? x->edge_tb[e - 1] : 0) -
                                                  taylor_out(x->arg0[x->edge_of[e - 1]], 0)[j]) /
                                                     slope(x, x->edge_of[e - 1]);
    for (int l = 0; l < x->npast; l++)
        for (int k = 0; k < 2; k++)
            x->theta_end[(size_t)(2 * l + k) * (size_t)w + (size_t)j] =
                taylor_out(x->arg0[l], 0)[j] + slope(x, l) * edge(h, x, k ? x->nedge + 1 : 0)[j];
    double sum = 0;
    for (int e = 0; e <= x->nedge; e++) {
        const double *a = edge(h, x, e), *b = edge(h, x, e + 1);
        double length[w];
        for (int i = 0; i <= j; i++)
            length[i] = b[i] - a[i];
        for (int k = 0; k < h->points; k++) {
            node *n = &x->node.at[e * h->points + k];
            double *s = n->bound + (size_t)x->rule->bound * (size_t)w;
            s[j] = a[j] + h->xi[k] * (b[j] - a[j]);
            for (int l = 0; l < x->npast; l++) {
                double *theta = n->theta + (size_t)l * (size_t)w;
                theta[j] = taylor_out(x->arg0[l], 0)[j] + slope(x, l) * s[j];
                if (j == 0)
                    reader_begin(h, &n->rd[l], x->where[e * x->npast + l], theta[0]);
                reader_step(h, &n->rd[l], in, theta, j);
            }
            with.from[IN_BOUND] = n->bound;
            with.from[IN_PAST_Q] = n->local[0];
            with.from[IN_PAST_V] = n->local[1];
            with.from[IN_PAST_BASE] = n->local[2];
            taylor_step(n->f, &with, j);
            sum += h->weight[k] * series_mul(length, taylor_out(n->f, 0), j);
        }
    }
    h->slots[PAST_KINDS][(size_t)x->slot * (size_t)w + (size_t)j] = sum;
    return true;
}

/* ---- all of it ---- */
void history_begin(history *h, double t, double unit)
{
    h->t = t;
    h->unit = unit;
    h->eps = ROUND_10 * (fabs(t) + RUN_SCALE * h->duration);
}

bool history_step(history *h, series_inputs *in, int j)
{
    in->from[IN_PAST_Q] = h->slots[0];
    in->from[IN_PAST_V] = h->slots[1];
    in->from[IN_PAST_BASE] = h->slots[2];
    in->from[IN_INTEGRAL] = h->slots[PAST_KINDS];
    for (int i = 0; i < h->npast; i++)
        if (!past_step(h, &h->past[i], in, j))
            return false;
    for (int i = 0; i < h->nin; i++)
        if (!integral_step(h, &h->in[i], in, j))
            return false;
    return true;
}

const char *history_error(const history *h, span *at)
{
    *at = h->where;
    return h->error;
}

/* A delay that becomes 0 stops the motion. */
bool history_vanishes(history *h)
{
    for (int i = 0; i < h->npast; i++)
        if (h->past[i].rd.where != AT_HAND &&
            h->t - taylor_out(h->past[i].arg, 0)[0] < DELAY_LEAST * (h->duration + fabs(h->t)))
            return !fail_delay(h, h->past[i].name, h->past[i].arg->k->at, h->t);
    return false;
}

static int runs_back(const double *theta, int K)
{
    for (int j = 1; j <= K; j++)
        if (theta[j] != 0)
            return theta[j] < 0;
    return 0;
}

/* Were past times at a joint of two pieces read on the side to which they move? If not, the next expansion
 * does so. */
bool history_agrees(history *h)
{
    bool ok = true;
    for (int i = 0; i < h->npast; i++) {
        past *p = &h->past[i];
        const double *theta = taylor_out(p->arg, 0);
        bool back = runs_back(theta, h->K - 1);
        if (p->rd.where != AT_HAND && back != p->back)
            ok &= piece_find(h, theta[0], true) == piece_find(h, theta[0], false);
        p->back = back;
    }
    return ok;
}

/* where theta reaches what ends the function that is read, above (side 1) or below (-1) */
static void limit_side(history *h, const double *theta, int where, int side, int gain, double *s,
                       bool *breaks)
{
    int order, K = h->K - 1;
    double end = side > 0 ? holds_to(h, where, theta[0], &order) : holds_from(h, where, &order), f[h->width];
    if (!isfinite(end))
        return;
    for (int j = 0; j <= K; j++)
        f[j] = side * ((j == 0 ? end : 0) - theta[j]);
    double at = side > 0 && f[0] <= 0 ? 0
                                      : h->unit * series_crossing(f, K, *s / h->unit, side > 0 ? 0 : h->eps);
    if (at > *s)
        return;
    bool first = at < *s - h->eps;
    if (first)
        h->met = 1 << 20;
    *s = at;
    if (order + gain < h->met)
        h->met = order + gain;
    *breaks = h->met <= h->K + 1;
}

static void limit_one(history *h, const double *theta, int where, int gain, double *s, bool *breaks)
{
    limit_side(h, theta, where, 1, gain, s, breaks);
    for (int j = 1; j < h->K; j++)
        if (theta[j] < 0) {
            limit_side(h, theta, where, -1, gain, s, breaks);
            return;
        }
}

/* kernels over series with their own choice of pieces */
int history_kernels(const history *h, taylor **out)
{
    int n = 0;
    for (int i = 0; i < h->npast; i++) {
        out[n++] = h->past[i].arg;
        if (h->past[i].rd.where == BEFORE && h->past[i].rd.given)
            out[n++] = h->past[i].rd.given;
    }
    for (int i = 0; i < h->nin; i++) {
        out[n++] = h->in[i].lo;
        out[n++] = h->in[i].hi;
    }
    return n;
}
int history_most(const history *h)
{
    return 2 * h->npast + 2 * h->nin;
}

double history_limit(history *h, double s, bool *breaks)
{
    *breaks = false;
    h->met = 1 << 20;
    for (int i = 0; i < h->npast; i++)
        limit_one(h, taylor_out(h->past[i].arg, 0), h->past[i].rd.where,
                  h->gain - (h->past[i].rd.kind == PAST_RATE), &s, breaks);
    for (int i = 0; i < h->nin; i++)
        for (int l = 0; l < 2 * h->in[i].npast; l++)
            limit_one(h, h->in[i].theta_end + (size_t)l * (size_t)h->width, h->in[i].end_where[l],
                      h->gain + 1 - (h->in[i].kind[l / 2] == PAST_RATE), &s, breaks);
    return s;
}

void history_add(history *h, const piece *p)
{
    *vec_push(h->a, &h->pieces) = *p;
}

void history_break(history *h, double t, int order)
{
    breaking *last = h->breaks.n ? &h->breaks.at[h->breaks.n - 1] : NULL;
    if (order > h->K + 1)
        return;
    if (last && fabs(last->t - t) <= h->eps) {
        if (order < last->order)
            last->order = order;
        return;
    }
    *vec_push(h->a, &h->breaks) = (breaking){ t, order };
}

void history_image(history *h, double t)
{
    history_break(h, t, h->met);
}

/* ---- making ---- */
static void given_find(history *h, const kernels *k, int rate)
{
    h->given_kernel[rate] = arena_array(h->a, const kernel *, h->n + 1);
    for (size_t i = 0; i < k->n; i++) {
        int32_t index[MAX_INDEX] = { 0 };
        for (bool any = index_first(&k->at[i].over, index); any; any = index_next(&k->at[i].over, index)) {
            int32_t dof = slot_at(&k->at[i].row[0], index, k->at[i].over.n);
            h->given_kernel[rate][dof] = &k->at[i];
            memcpy(h->given_index[dof], index, sizeof index);
        }
    }
}

static void past_new(history *h)
{
    int count = h->d->npast[PAST_DOF] + h->d->npast[PAST_RATE] + h->d->npast[PAST_BASE];
    h->past = arena_array(h->a, past, count + 1);
    for (int kind = 0; kind < PAST_KINDS; kind++)
        for (size_t i = 0; i < h->d->past[kind].n; i++) {
            const kernel *k = &h->d->past[kind].at[i];
            int32_t index[MAX_INDEX] = { 0 };
            for (bool any = index_first(&k->over, index); any; any = index_next(&k->over, index)) {
                int32_t to = slot_at(&k->row[0], index, k->over.n),
                        dof = slot_at(&k->col[0], index, k->over.n);
                h->past[h->npast++] = (past){
                    .arg = taylor_new(h->a, k, index, h->width),
                    .name = h->d->name[kind][i],
                    .rd = reader_new(h, dof, kind, h->slots[kind] + (size_t)to * (size_t)h->width)
                };
            }
        }
}

/* Do both kernels give the same time?  (A rotation is read by many of them.) */
static bool same_times(const kernel *x, const kernel *y)
{
    const tape *a = &x->tape, *b = &y->tape;
    return a->nin == b->nin && a->nconst == b->nconst && a->ncode == b->ncode && a->out[0] == b->out[0] &&
           memcmp(x->in, y->in, a->nin * sizeof *x->in) == 0 &&
           memcmp(a->constant, b->constant, a->nconst * sizeof *a->constant) == 0 &&
           memcmp(a->code, b->code, a->ncode * sizeof *a->code) == 0;
}

static void integral_new(history *h, const integral_rule *r, const int32_t *index)
{
    integral *x = &h->in[h->nin++];
    const kernel *k = &r->integrand;
    size_t most = r->past[PAST_DOF].n + r->past[PAST_RATE].n + r->past[PAST_BASE].n + 1;
    *x = (integral){ .rule = r, .slot = slot_at(&k->row[0], index, k->over.n) };
    x->lo = taylor_new(h->a, &r->lo, index, h->width);
    x->hi = taylor_new(h->a, &r->hi, index, h->width);
    x->arg0 = arena_array(h->a, taylor *, most);
    x->arg1 = arena_array(h->a, taylor *, most);
    x->local = arena_array(h->a, int32_t, most);
    x->dof = arena_array(h->a, int32_t, most);
    x->kind = arena_array(h->a, int, most);
    x->as = arena_array(h->a, int, most);
    x->end_where = arena_array(h->a, int, 2 * most);
    x->theta_end = numbers(h, 2 * most);
    x->bound0 = numbers(h, (size_t)r->bound + 1);
    x->bound1 = numbers(h, (size_t)r->bound + 1);
    for (int kind = 0; kind < PAST_KINDS; kind++)
        for (size_t i = 0; i < r->past[kind].n; i++) {
            const kernel *a = &r->past[kind].at[i];
            int l = x->npast++;
            x->arg0[l] = taylor_new(h->a, a, index, h->width);
            x->arg1[l] = taylor_new(h->a, a, index, h->width);
            x->local[l] = slot_at(&a->row[0], index, a->over.n);
            x->dof[l] = slot_at(&a->col[0], index, a->over.n);
            x->kind[l] = kind;
            x->as[l] = 0;
            while (!same_times(x->arg0[x->as[l]]->k, a))
                x->as[l]++;
        }
}

history *history_new(arena *a, const program *p, int order, int width, double duration, const double *q0,
                     const double *base0)
{
    history *h = arena_make(a, history);
    *h = (history){ .a = a,
                    .p = p,
                    .d = p->delay,
                    .n = p->nq,
                    .K = order,
                    .width = width,
                    .gain = 2,
                    .q0 = q0,
                    .base0 = base0,
                    .duration = duration };
    for (int k = 0; k < p->nq; k++)
        if (p->order && p->order[k] == 1)
            h->gain = 1;
    h->given_index = arena_array_(a, (size_t)p->nq + 1, sizeof *h->given_index);
    given_find(h, &h->d->history, 0);
    given_find(h, &h->d->history_rate, 1);
    for (int k = 0; k < PAST_KINDS; k++)
        h->slots[k] = numbers(h, (size_t)h->d->npast[k]);
    h->slots[PAST_KINDS] = numbers(h, (size_t)h->d->nintegral);
    h->bound = numbers(h, (size_t)h->d->nbound + 1);
    gauss_points(h, order / 2 + 3);
    past_new(h);
    int64_t count = 0;
    for (size_t i = 0; i < h->d->nrule; i++)
        count += index_members(&h->d->integral[i].integrand.over);
    h->in = arena_array(a, integral, count + 1);
    for (size_t i = 0; i < h->d->nrule; i++) {
        const integral_rule *r = &h->d->integral[i];
        int32_t index[MAX_INDEX] = { 0 };
        for (bool any = index_first(&r->integrand.over, index); any;
             any = index_next(&r->integrand.over, index))
            integral_new(h, r, index);
    }
    return h;
}

/* ---- as part of a state ---- */
void taylor_keep(taylor *t, run_state *s)
{
    if (!t)
        return;
    for (uint32_t k = 0; k < t->nsite; k++) {
        site *x = &t->site[k];
        double of[] = { x->branch, x->before, x->met };
        state_f64(s, "site", of, 3);
        state_flags(s, "near", &x->near, 1);
        x->branch = of[0], x->before = of[1], x->met = of[2];
    }
    state_f64(s, "registers", t->c, (size_t)t->nreg * (size_t)t->width);
    state_flags(s, "live", t->live, t->nreg);
}

static void breaks_keep(history *h, run_state *s)
{
    size_t n = state_count(s, "breaking points", h->breaks.n, sizeof(double));
    if (state_reads(s)) {
        h->breaks.n = 0;
        vec_reserve(h->a, &h->breaks, n);
    }
    for (size_t k = 0; k < n && state_ok(s); k++) {
        breaking *b = state_reads(s) ? vec_push(h->a, &h->breaks) : &h->breaks.at[k];
        state_f64(s, "break", &b->t, 1);
        state_int(s, "order", &b->order, 0, 1 << 20);
    }
}

void history_keep(history *h, run_state *s)
{
    state_f64(s, "past", &h->t, 1);
    state_f64(s, "unit", &h->unit, 1);
    if (state_reads(s)) {
        history_begin(h, h->t, h->unit);
        h->pieces.n = 0;
    }
    breaks_keep(h, s);
    for (int i = 0; i < h->npast; i++) {
        taylor_keep(h->past[i].arg, s);
        taylor_keep(h->past[i].rd.given, s);
        state_flags(s, "back", &h->past[i].back, 1);
    }
    for (int i = 0; i < h->nin; i++) {
        taylor_keep(h->in[i].lo, s);
        taylor_keep(h->in[i].hi, s);
    }
}
