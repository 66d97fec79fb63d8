/* vim: He's variational iteration on pieces.  On a piece with origin o,
       U(n+1)(x) = U(n)(x) + integral from o to x of lambda(s) H(s, U(n)) ds,   lambda = (-1)^k (s -
   x)^(k-1)/(k-1)!, where H = F/(dF/du^(k)) is the residual in normal form; so the k-th derivative loses H and
   is integrated k times.  Functions are Chebyshev series on the piece, which represent polynomials exactly
   and other functions to rounding. The free constants of U(0) (u, u', … at o) and the ends of contact zones
   are the unknowns of the matching conditions, solved by Newton with exact derivatives: those of the iterates
   in the unknowns are iterated along. */
#include "field.h"
#include "base/linalg.h"
#include "base/tolerances.h"
#include <math.h>
#include <string.h>

enum { MAX_BENDS = 8, VIM_POINTS = 256, VIM_LOOPS = 120, VIM_NEWTON = 60 };
enum { OPT_ITERATIONS, OPT_CONTACT, OPT_MULTIPLIER, OPT_RATIONAL, OPT_PIECES };

typedef double *series; /* n coefficients */
/* a function and its derivatives */
typedef struct {
    series d[FIELD_ORDER + 1];
} tower;
typedef struct vpiece {
    double a, b, o;
    int ia, ib;  /* unknowns that are its ends, -1: none */
    int contact; /* obstacle that u lies on, -1: none */
    /* unknowns of the piece: u, u', … at o of each field that is not held by the obstacle */
    int first, count;
    int n;
    double side[MAX_BENDS]; /* sign of each bend on the piece */
    tower u[FIELD_MAX], *v; /* v[p*nfield + f]: derivative in unknown p of the piece */
} vpiece;
typedef enum { CUT_FIXED, CUT_FREE, CUT_POINT, CUT_BEND } cut_kind;
/* left, right: matched derivatives, with contact on that side */
typedef struct cut {
    double x;
    cut_kind kind;
    int unknown, obstacle, bend;
    int left, right;
} cut;

typedef struct vim {
    field_work *w;
    const field_program *fp;
    int nf, nparam, sum; /* unknowns in all; of a piece */
    int held;            /* the field that obstacles bound */
    int order[FIELD_MAX];
    double length;
    vpiece *piece;
    int npiece;
    /* cut k is the left end of piece k */
    cut *at;
    int ncut;
    double *theta, *g, *jac;
    int iterations; /* -1: until nothing changes */
    bool exact;
    double update[VIM_LOOPS];
    int nupdate;
    bool grown;  /* the iteration diverged */
    int stop[2]; /* obstacle that holds the left, the right end alone; -1: none */
} vim;

static double scale_of(const vim *v, int d)
{
    return pow(v->length, d);
}
static double piece_lo(const vpiece *p)
{
    return fmin(p->a, p->o);
}
static double piece_hi(const vpiece *p)
{
    return fmax(p->b, p->o);
}
static double to_unit(const vpiece *p, double x)
{
    double a = piece_lo(p), b = piece_hi(p);
    return b > a ? ((x - a) - (b - x)) / (b - a) : 0;
}

/* ---- a piece ---- */
static void tower_integrate(const vpiece *p, tower *u, int order, const double *at_o)
{
    double half = (piece_hi(p) - piece_lo(p)) / 2, t = to_unit(p, p->o);
    for (int d = order - 1; d >= 0; d--) {
        cheb_integral(u->d[d + 1], u->d[d], p->n, half, 0);
        u->d[d][0] += at_o[d] - cheb_value(u->d[d], p->n, t);
    }
}

static void piece_rooms(vim *v, vpiece *p)
{
    arena *a = v->w->a;
    if (p->first >= 0 && !p->v)
        p->v = arena_array(a, tower, v->sum * v->nf);
    for (int f = 0; f < v->nf; f++)
        for (int d = 0; d <= v->order[f]; d++) {
            p->u[f].d[d] = arena_array(a, double, p->n);
            for (int k = 0; p->v && k < v->sum; k++)
                p->v[k * v->nf + f].d[d] = arena_array(a, double, p->n);
        }
}

static bool is_held(const vim *v, const vpiece *p, int f)
{
    return p->contact >= 0 && f == v->held;
}
static void piece_psi(vim *v, vpiece *p);

/* U(0): the Taylor polynomial at o, and its derivatives in the unknowns */
static void piece_start(vim *v, vpiece *p)
{
    int at = 0;
    piece_rooms(v, p);
    if (p->contact >= 0)
        piece_psi(v, p);
    for (int f = 0; f < v->nf; f++) {
        if (is_held(v, p, f))
            continue;
        double o[FIELD_ORDER] = { 0 }, none[FIELD_ORDER] = { 0 };
        for (int d = 0; d < v->order[f]; d++)
            o[d] = v->theta[p->first + at + d] / scale_of(v, d);
        tower_integrate(p, &p->u[f], v->order[f], o);
        for (int d = 0; d < v->order[f]; d++) {
            double one[FIELD_ORDER] = { 0 };
            one[d] = 1 / scale_of(v, d);
            for (int k = 0; k < p->count; k++)
                if (k == at + d)
                    tower_integrate(p, &p->v[k * v->nf + f], v->order[f], one);
        }
        for (int k = 0; k < p->count; k++)
            if (k < at || k >= at + v->order[f])
                tower_integrate(p, &p->v[k * v->nf + f], v->order[f], none);
        at += v->order[f];
    }
}

typedef struct {
    double *x, *t, *jets, *out, *h, *c;
} points;

static void points_make(const vim *v, const vpiece *p, int n, points *q)
{
    arena *a = v->w->a;
    int most = 0;
    for (int f = 0; f < v->nf; f++)
        if (v->fp->eq[f].normal.njet > most)
            most = v->fp->eq[f].normal.njet;
    for (int f = 0; f < v->nf; f++)
        if (v->fp->eq[f].f.njet > most)
            most = v->fp->eq[f].f.njet;
    q->x = arena_array(a, double, n);
    q->t = arena_array(a, double, n);
    q->jets = arena_array(a, double, n *(most + 1));
    q->out = arena_array(a, double, n *(most + 1));
    q->h = arena_array(a, double, n * v->nf);
    q->c = arena_array(a, double, n);
    cheb_points(q->t, n);
    double lo = piece_lo(p), hi = piece_hi(p);
    for (int k = 0; k < n; k++)
        q->x[k] = side_of(v->w, (lo + hi) / 2 + (hi - lo) / 2 * q->t[k], lo, hi);
}

static void jets_put(const vim *v, const field_form *f, const tower *u, const vpiece *p, const points *q,
                     int n)
{
    for (int j = 0; j < f->njet; j++) {
        int fi = f->jet[j].field, d = f->jet[j].d[0];
        if (fi >= BEND_JET) {
            for (int k = 0; k < n; k++)
                q->jets[k * f->njet + j] = p->side[fi - BEND_JET];
            continue;
        }
        for (int k = 0; k < n; k++)
            q->jets[k * f->njet + j] = d <= v->order[fi] ? cheb_value(u[fi].d[d], p->n, q->t[k]) : 0;
    }
}

/* sum of dH/dj * (derivative of jet j), at the points */
static double jets_dot(const vim *v, const field_form *f, const double *dh, const tower *u, const vpiece *p,
                       double t, int skip)
{
    double s = 0;
    for (int j = 0; j < f->njet; j++) {
        int fi = f->jet[j].field, d = f->jet[j].d[0];
        if (fi >= BEND_JET)
            continue;
        if (fi < 0 || (fi == skip && d == v->order[fi]))
            continue;
        if (dh[j] != 0)
            s += dh[j] * cheb_value(u[fi].d[d], p->n, t);
    }
    return s;
}

/* takes h (values at the points) from the k-th derivative; with the exact multiplier of the linear part a,
 * what solves L delta = -h, delta = 0 at o */
static void correct(const vim *v, const vpiece *p, const points *q, tower *u, double *const *h,
                    double *const *lin)
{
    static const double none[FIELD_ORDER] = { 0 };
    int n = p->n;
    arena_pos mark = arena_mark(v->w->a);
    tower delta[FIELD_MAX];
    for (int f = 0; f < v->nf; f++) {
        for (int d = 0; d <= v->order[f]; d++)
            delta[f].d[d] = arena_array(v->w->a, double, n);
        cheb_fit(h[f], delta[f].d[v->order[f]], n);
        for (int k = 0; k < n; k++)
            delta[f].d[v->order[f]][k] *= -1;
        tower_integrate(p, &delta[f], v->order[f], none);
    }
    for (int loop = 0; v->exact && loop < VIM_LOOPS; loop++) {
        double moved = 0; /* over the size of each field's highest derivative */
        double *top = arena_array(v->w->a, double, n * v->nf);
        for (int f = 0; f < v->nf; f++) {
            const field_form *nf = &v->fp->eq[f].normal;
            for (int k = 0; k < n; k++)
                q->c[k] = is_held(v, p, f)
                              ? 0
                              : -h[f][k] - jets_dot(v, nf, lin[f] + (size_t)k * (size_t)(nf->njet + 1) + 1,
                                                    delta, p, q->t[k], f);
            cheb_fit(q->c, top + f * n, n);
        }
        for (int f = 0; f < v->nf; f++) {
            double change = 0, size = SIZE_LEAST;
            for (int k = 0; k < n; k++) {
                change = fmax(change, fabs(top[f * n + k] - delta[f].d[v->order[f]][k]));
                size = fmax(size, fabs(top[f * n + k]));
            }
            moved = isfinite(change) ? fmax(moved, change / size) : INFINITY;
            memcpy(delta[f].d[v->order[f]], top + f * n, (size_t)n * sizeof(double));
            tower_integrate(p, &delta[f], v->order[f], none);
        }
        if (!(moved > ROUND_HALF) || !isfinite(moved))
            break;
    }
    for (int f = 0; f < v->nf; f++)
        for (int d = 0; d <= v->order[f]; d++)
            for (int k = 0; k < n; k++)
                u[f].d[d][k] += delta[f].d[d][k];
    arena_release(v->w->a, mark);
}

static double **linear_part(const vim *v, const vpiece *p, const points *q)
{
    double **lin = arena_array(v->w->a, double *, v->nf);
    for (int f = 0; f < v->nf && v->exact; f++) {
        const field_form *nf = &v->fp->eq[f].normal;
        double *zero = arena_array(v->w->a, double, p->n *(nf->njet + 1));
        lin[f] = arena_array(v->w->a, double, p->n *(nf->njet + 1));
        form_run(v->w, nf, q->x, zero, p->n, lin[f]);
    }
    return lin;
}

/* the change in an iteration: the largest, and relative to the size of each field */
typedef struct {
    double most, relative;
} vim_change;

static vim_change change_of(const vim *v, const vpiece *p, const tower *u, double *old, bool first)
{
    vim_change c = { 0, 0 };
    for (int f = 0; f < v->nf; f++) {
        double most = 0, size = 0;
        for (int k = 0; k < p->n; k++) {
            double now = cheb_value(u[f].d[0], p->n, cos(M_PI * (k + 0.5) / p->n));
            if (!first)
                most = fmax(most, fabs(now - old[f * p->n + k]));
            if (!isfinite(now))
                most = INFINITY;
            size = fmax(size, fabs(now));
            old[f * p->n + k] = now;
        }
        c.most = fmax(c.most, most);
        c.relative = fmax(c.relative, most > 0 ? most / fmax(size, SIZE_LEAST) : 0);
    }
    return c;
}

/* one correction of the iterate and of its derivatives; false: not finite */
static bool piece_correct(vim *v, vpiece *p, points *q, double **lin, double *old, vim_change *done)
{
    int n = p->n;
    double *h[FIELD_MAX], *dh[FIELD_MAX], *hp[FIELD_MAX];
    for (int f = 0; f < v->nf; f++) {
        const field_form *nf = &v->fp->eq[f].normal;
        dh[f] = arena_array(v->w->a, double, n *(nf->njet + 1));
        h[f] = arena_array(v->w->a, double, n);
        hp[f] = arena_array(v->w->a, double, n);
        jets_put(v, nf, p->u, p, q, n);
        form_run(v->w, nf, q->x, q->jets, n, dh[f]);
        for (int k = 0; k < n; k++) {
            h[f][k] = is_held(v, p, f) ? 0 : dh[f][(size_t)k * (size_t)(nf->njet + 1)];
            if (!isfinite(h[f][k]))
                return false;
        }
    }
    for (int s = 0; s < p->count; s++) {
        tower *u = p->v + s * v->nf;
        for (int f = 0; f < v->nf; f++) {
            const field_form *nf = &v->fp->eq[f].normal;
            for (int k = 0; k < n; k++)
                hp[f][k] = is_held(v, p, f) ? 0
                                            : jets_dot(v, nf, dh[f] + (size_t)k * (size_t)(nf->njet + 1) + 1,
                                                       u, p, q->t[k], -1);
        }
        correct(v, p, q, u, hp, lin);
    }
    correct(v, p, q, p->u, h, lin);
    *done = change_of(v, p, p->u, old, false);
    return isfinite(done->most);
}

static bool series_short(const double *c, int n)
{
    double big = 0, tail = 0;
    for (int k = 0; k < n; k++)
        big = fmax(big, fabs(c[k]));
    for (int k = n - 3; k < n; k++)
        tail = fmax(tail, fabs(c[k]));
    return tail <= ROUND_10 * big;
}

static bool piece_resolved(const vim *v, const vpiece *p)
{
    for (int f = 0; f < v->nf; f++)
        if (!series_short(p->u[f].d[v->order[f]], p->n))
            return false;
    return true;
}

static bool piece_iterate(vim *v, vpiece *p)
{
    points q;
    points_make(v, p, p->n, &q);
    piece_start(v, p);
    double **lin = linear_part(v, p, &q), *old = arena_array(v->w->a, double, p->n * v->nf), last = INFINITY;
    change_of(v, p, p->u, old, true);
    int most = v->iterations < 0 ? VIM_LOOPS : v->iterations, k = 0;
    for (; k < most; k++) {
        vim_change now;
        arena_pos mark = arena_mark(v->w->a);
        bool good = piece_correct(v, p, &q, lin, old, &now);
        arena_release(v->w->a, mark);
        if (!good)
            return false;
        v->update[k] = fmax(v->update[k], now.most);
        if (k + 1 > v->nupdate)
            v->nupdate = k + 1;
        if (v->iterations < 0 &&
            (now.relative <= ROUND_1 || (now.relative <= ROUND_500 && now.relative >= last)))
            return true;
        last = now.relative;
    }
    return v->iterations >= 0 || last <= SERIES_ENOUGH;
}

static bool piece_free(vim *v, vpiece *p)
{
    for (;;) {
        if (!piece_iterate(v, p))
            return false;
        if (piece_resolved(v, p) || 2 * p->n > VIM_POINTS)
            return true;
        p->n *= 2;
    }
}

/* on the obstacle: psi and its derivatives, with as many points as the piece has */
static void piece_psi(vim *v, vpiece *p)
{
    points q;
    tower *u = &p->u[v->held];
    double big = 0;
    points_make(v, p, p->n, &q);
    kernel_points(v->w, &v->fp->obst[p->contact].psi, q.x, p->n, q.h);
    cheb_fit(q.h, u->d[0], p->n);
    for (int k = 0; k < p->n; k++)
        big = fmax(big, fabs(u->d[0][k]));
    for (int k = p->n - 1; k >= 0 && fabs(u->d[0][k]) < ROUND_5 * big; k--)
        u->d[0][k] = 0;
    for (int d = 0; d < v->order[v->held]; d++)
        cheb_derivative(u->d[d], u->d[d + 1], p->n, (piece_hi(p) - piece_lo(p)) / 2);
}

static void piece_contact(vim *v, vpiece *p)
{
    for (;; p->n *= 2) {
        piece_rooms(v, p);
        piece_psi(v, p);
        if (series_short(p->u[v->held].d[0], p->n) || 2 * p->n > VIM_POINTS)
            return;
    }
}

static bool pieces_run(vim *v)
{
    memset(v->update, 0, sizeof v->update);
    v->nupdate = 0;
    for (int k = 0; k < v->npiece; k++) {
        vpiece *p = &v->piece[k];
        p->a = v->at[k].x;
        p->b = v->at[k + 1].x;
        if (p->contact >= 0 && !p->count)
            piece_contact(v, p);
        else if (!piece_free(v, p)) {
            v->grown = true;
            return false;
        }
    }
    return true;
}

/* ---- matching ---- */
static void row_add(vim *v, int row, int unknown, double k)
{
    v->jac[(size_t)row * (size_t)v->nparam + (size_t)unknown] += k;
}

static double value_of(const vim *v, const vpiece *p, int f, int d, double x)
{
    int top = v->order[f];
    if (top >= 0 && d > top) {
        double c[VIM_POINTS + 1];
        memcpy(c, p->u[f].d[top], (size_t)p->n * sizeof *c);
        for (int k = top; k < d; k++)
            cheb_derivative(c, c, p->n, (piece_hi(p) - piece_lo(p)) / 2);
        return cheb_value(c, p->n, to_unit(p, x));
    }
    return cheb_value(p->u[f].d[d], p->n, to_unit(p, x));
}

/* adds k*u^(d)(x) to a row; moving: the unknown that x is, or -1 */
static void row_value(vim *v, int row, const vpiece *p, int f, int d, double x, int moving, double k)
{
    v->g[row] += k * value_of(v, p, f, d, x);
    if (moving >= 0)
        row_add(v, row, moving, k * value_of(v, p, f, d + 1, x));
    for (int s = 0; s < p->count; s++)
        row_add(v, row, p->first + s,
                k * (d <= v->order[f] ? cheb_value(p->v[s * v->nf + f].d[d], p->n, to_unit(p, x)) : 0));
}

static double form_at(const vim *v, const vpiece *p, const field_form *f, double x, double *jets, double *out)
{
    double at = side_of(v->w, x, p->a, p->b);
    for (int j = 0; j < f->njet; j++)
        jets[j] = value_of(v, p, f->jet[j].field, f->jet[j].d[0], x);
    form_run(v->w, f, &at, jets, 1, out);
    return out[0];
}

static void row_form(vim *v, int row, const vpiece *p, const field_form *f, double x, int moving, double k)
{
    double jets[64], out[65], g = v->g[row];
    form_at(v, p, f, x, jets, out);
    for (int j = 0; j < f->njet; j++)
        row_value(v, row, p, f->jet[j].field, f->jet[j].d[0], x, moving, k * out[1 + j]);
    v->g[row] = g + k * out[0];
    if (moving < 0)
        return;
    double h = DIFFERENCE_CENTRAL * v->length, at[2] = { x - h, x + h }, twice[128],
           two[130]; /* the part from x itself */
    for (int j = 0; j < f->njet; j++)
        twice[j] = twice[f->njet + j] = jets[j];
    form_run(v->w, f, at, twice, 2, two);
    row_add(v, row, moving, k * (two[f->njet + 1] - two[0]) / (2 * h));
}

/* The flux of field f that replaces u^(d) where coefficients jump, or NULL. */
static const field_flux *flux_of(const vim *v, int f, int d)
{
    const field_equation *e = &v->fp->eq[f];
    for (int j = 0; j < e->nflux; j++)
        if (e->flux[j].order == d)
            return &e->flux[j];
    return NULL;
}

/* the jump of u^(k-1), or of the flux, at x that point loads give */
static double load_jump(const vim *v, int f, const vpiece *p, double x)
{
    const field_equation *e = &v->fp->eq[f];
    double jets[64], out[65], sum = 0, lead = 1;
    for (int j = 0; j < e->nload; j++) {
        double at = kernel_number(v->w, &e->load[j].place), weight;
        if (fabs(at - x) > PLACE_SAME * v->length)
            continue;
        kernel_points(v->w, &e->load[j].weight, &x, 1, &weight);
        sum += weight;
    }
    if (sum == 0)
        return 0;
    if (e->nflux) {
        kernel_points(v->w, &e->flux[0].per, &x, 1, &lead);
        return -sum / lead;
    }
    for (int j = 0; j < e->f.njet; j++)
        jets[j] = value_of(v, p, e->f.jet[j].field, e->f.jet[j].d[0], x);
    form_run(v->w, &e->f, &x, jets, 1, out);
    for (int j = 0; j < e->f.njet; j++)
        if (e->f.jet[j].field == f && e->f.jet[j].d[0] == e->order)
            lead = out[1 + j];
    return -sum / lead;
}

static double psi_at(const vim *v, int o, double x)
{
    double at[2] = { side_of(v->w, x, v->w->lo[0], x), side_of(v->w, x, x, v->w->hi[0]) }, y[2];
    kernel_points(v->w, &v->fp->obst[o].psi, at, 2, y);
    return v->fp->obst[o].sense > 0 ? fmax(y[0], y[1]) : fmin(y[0], y[1]);
}

static double psi_slope(const vim *v, int o, double x)
{
    double h = DIFFERENCE_FOUR * v->length, y[4], at[4] = { x - 2 * h, x - h, x + h, x + 2 * h };
    kernel_points(v->w, &v->fp->obst[o].psi, at, 4, y);
    return (y[0] - 8 * y[1] + 8 * y[2] - y[3]) / (12 * h);
}

static double psi_bend(const vim *v, int o, double x)
{
    double h = DIFFERENCE_SECOND * v->length, y[3], at[3] = { x - h, x, x + h };
    kernel_points(v->w, &v->fp->obst[o].psi, at, 3, y);
    return (y[0] - 2 * y[1] + y[2]) / (h * h);
}

static int match_cut(vim *v, int k, int row)
{
    const cut *c = &v->at[k];
    const vpiece *l = &v->piece[k - 1], *r = &v->piece[k];
    if (l->contact >= 0 && r->contact >= 0) {
        for (int f = 0; f < v->nf; f++)
            for (int d = 0; f != v->held && d < v->order[f]; d++, row++) {
                row_value(v, row, r, f, d, c->x, c->unknown, scale_of(v, d));
                row_value(v, row, l, f, d, c->x, c->unknown, -scale_of(v, d));
                if (d == v->order[f] - 1)
                    v->g[row] -= scale_of(v, d) * load_jump(v, f, l, c->x);
            }
        return row;
    }
    if (l->contact >= 0 || r->contact >= 0) {
        int m = l->contact >= 0 ? c->right : c->left;
        for (int f = 0; f < v->nf; f++)
            for (int d = 0; d < (f == v->held ? m : v->order[f]); d++, row++) {
                row_value(v, row, l, f, d, c->x, c->unknown, scale_of(v, d));
                row_value(v, row, r, f, d, c->x, c->unknown, -scale_of(v, d));
            }
        return row;
    }
    for (int f = 0; f < v->nf; f++)
        for (int d = 0; d < v->order[f] - (c->kind == CUT_POINT && f == v->held); d++, row++) {
            const field_flux *q = flux_of(v, f, d);
            if (q) {
                row_form(v, row, r, &q->f, c->x, c->unknown, scale_of(v, d));
                row_form(v, row, l, &q->f, c->x, c->unknown, -scale_of(v, d));
            } else {
                row_value(v, row, r, f, d, c->x, c->unknown, scale_of(v, d));
                row_value(v, row, l, f, d, c->x, c->unknown, -scale_of(v, d));
            }
            if (d == v->order[f] - 1)
                v->g[row] -= scale_of(v, d) * load_jump(v, f, l, c->x);
        }
    if (c->kind == CUT_POINT) {
        row_value(v, row, l, v->held, 0, c->x, c->unknown, 1);
        v->g[row] -= psi_at(v, c->obstacle, c->x);
        if (c->unknown >= 0)
            row_add(v, row, c->unknown, -psi_slope(v, c->obstacle, c->x));
        row++;
        if (c->unknown < 0)
            return row;
        row_value(v, row, l, v->held, 1, c->x, c->unknown, scale_of(v, 1));
        v->g[row] -= scale_of(v, 1) * psi_slope(v, c->obstacle, c->x);
        row_add(v, row, c->unknown, -scale_of(v, 1) * psi_bend(v, c->obstacle, c->x));
        row++;
    }
    if (c->kind == CUT_BEND)
        row_form(v, row, l, &v->fp->bend[c->bend], c->x, c->unknown, 1), row++;
    return row;
}

/* the piece in which a condition at x is read: the left one at the right end */
static const vpiece *piece_with(const vim *v, double x)
{
    int k = 0;
    while (k + 1 < v->npiece && x >= v->piece[k].b)
        k++;
    return &v->piece[k];
}

static bool condition_held(const vim *v, const field_condition *c)
{
    for (int j = 0; j < c->f.njet; j++)
        if (c->f.jet[j].field == v->held)
            return true;
    return false;
}

/* the side (0, 1) whose free end condition c is at, held by an obstacle instead; -1: it holds */
static int stop_at(const vim *v, int c)
{
    double per;
    for (int side = 0; side < 2; side++)
        if (v->stop[side] >= 0 && free_end(v->w, v->held, side ? 1 : -1, &per) == c)
            return side;
    return -1;
}

static int match_all(vim *v)
{
    int row = 0;
    memset(v->g, 0, (size_t)v->nparam * sizeof *v->g);
    memset(v->jac, 0, (size_t)v->nparam * (size_t)v->nparam * sizeof *v->jac);
    for (int k = 0; k < v->fp->ncond && row < v->nparam; k++) {
        double x = kernel_number(v->w, &v->fp->cond[k].place);
        const vpiece *p = piece_with(v, x);
        int stop = stop_at(v, k);
        if (stop >= 0) {
            row_value(v, row, p, v->held, 0, x, -1, 1);
            v->g[row++] -= psi_at(v, v->stop[stop], x);
        } else if (/* the obstacle leaves nothing to determine */
                   p->contact < 0 || !condition_held(v, &v->fp->cond[k]))
            row_form(v, row++, p, &v->fp->cond[k].f, x, -1, 1);
    }
    for (int k = 1; k < v->npiece; k++)
        row = match_cut(v, k, row);
    return row;
}

static double norm_of(const double *x, int n)
{
    double s = 0;
    for (int k = 0; k < n; k++)
        s = isfinite(x[k]) ? fmax(s, fabs(x[k])) : INFINITY;
    return s;
}

/* The sizes of the unknowns: the length of the domain for ends of contact, the largest value of each field
 * for the rest (theta holds u^(d) times length^d).  dx counts along, as the first step may start from zero.
 */
static void unknown_sizes(const vim *v, const double *dx, double *size)
{
    double most[FIELD_MAX] = { 0 };
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < v->npiece; k++) {
            const vpiece *p = &v->piece[k];
            for (int f = 0, at = p->first; f < v->nf; f++) {
                for (int d = 0; d < v->order[f] && !is_held(v, p, f); d++, at++) {
                    if (pass)
                        size[at] = most[f] > 0 ? most[f] : 1;
                    else
                        most[f] = fmax(most[f], fmax(fabs(v->theta[at]), fabs(v->theta[at] + dx[at])));
                }
            }
        }
    for (int k = 0; k <= v->npiece; k++)
        if (v->at[k].unknown >= 0)
            size[v->at[k].unknown] = v->length;
}

/* what each row would change by if its unknowns changed by their sizes */
static void row_sizes(const vim *v, const double *size, double *row)
{
    for (int k = 0; k < v->nparam; k++) {
        row[k] = SIZE_LEAST;
        for (int j = 0; j < v->nparam; j++)
            row[k] += fabs(v->jac[(size_t)k * (size_t)v->nparam + (size_t)j]) * size[j];
    }
}

static double relative_norm(const double *x, const double *size, int n)
{
    double s = 0;
    for (int k = 0; k < n; k++)
        s = isfinite(x[k]) ? fmax(s, fabs(x[k]) / size[k]) : INFINITY;
    return s;
}

static void theta_use(vim *v)
{
    for (int k = 0; k <= v->npiece; k++)
        if (v->at[k].unknown >= 0)
            v->at[k].x = v->theta[v->at[k].unknown];
}

static bool cuts_ordered(const vim *v)
{
    for (int k = 0; k < v->npiece; k++)
        if (!(v->at[k].x < v->at[k + 1].x))
            return false;
    return true;
}

/* dx with J dx = -g; returns the reciprocal condition */
static double newton_step(const vim *v, double *dx)
{
    int n = v->nparam;
    arena *a = v->w->a;
    double *m = arena_array(a, double, (size_t)n *(size_t)n), *b = arena_array(a, double, n);
    for (int i = 0; i < n; i++) {
        b[i] = -v->g[i];
        for (int j = 0; j < n; j++)
            m[(size_t)j * (size_t)n + (size_t)i] = v->jac[(size_t)i * (size_t)n + (size_t)j];
    }
    for (size_t i = 0; i < (size_t)n * (size_t)n; i++)
        if (!isfinite(m[i]))
            return 0;
    return solve_refined(n, m, b, dx, a);
}

typedef enum { MATCH_OK, MATCH_SINGULAR, MATCH_ASTRAY, MATCH_STUCK, MATCH_COUNT, MATCH_STOPPED } match_end;

static match_end match_newton(vim *v)
{
    int n = v->nparam;
    double *dx = arena_array(v->w->a, double, n), *from = arena_array(v->w->a, double, n),
           *size = arena_array(v->w->a, double, n), *row = arena_array(v->w->a, double, n), before = INFINITY;
    theta_use(v);
    if (!pieces_run(v))
        return MATCH_ASTRAY;
    if (match_all(v) != n)
        return MATCH_COUNT;
    if (n == 0)
        return MATCH_OK; /* held everywhere: nothing is unknown */
    for (int it = 0; it < VIM_NEWTON; it++) {
        double step = 1;
        if (!field_goes_on(v->w, (double)it / VIM_NEWTON))
            return MATCH_STOPPED;
        arena_pos mark = arena_mark(v->w->a);
        double rcond = newton_step(v, dx);
        arena_release(v->w->a, mark);
        if (!(rcond > RCOND_SERIES))
            return MATCH_SINGULAR;
        memcpy(from, v->theta, (size_t)n * sizeof *from);
        unknown_sizes(v, dx, size);
        row_sizes(v, size, row);
        double g = relative_norm(v->g, row, n);
        for (;; step /= 2) {
            if (step < DAMPED_LEAST)
                return g < SERIES_ENOUGH ? (memcpy(v->theta, from, (size_t)n * sizeof *from), theta_use(v),
                                            pieces_run(v), match_all(v), MATCH_OK)
                                         : MATCH_STUCK;
            for (int k = 0; k < n; k++)
                v->theta[k] = from[k] + step * dx[k];
            theta_use(v);
            if (!cuts_ordered(v) || !pieces_run(v))
                continue;
            match_all(v);
            double now = relative_norm(v->g, row, n);
            if (now < g || now < ROUND_500)
                break;
        }
        double move = step * relative_norm(dx, size, n);
        v->w->r->count.solver_iterations++;
        if (step == 1 && (move <= ROUND_2 || (move <= SERIES_STALLED && move >= before / 2)))
            return MATCH_OK;
        before = move;
    }
    return MATCH_STUCK;
}

/* ---- pieces and unknowns ---- */
static void vim_begin(vim *v, field_work *w)
{
    *v = (vim){ .w = w, .fp = w->fp, .nf = w->fp->nfield, .length = w->hi[0] - w->lo[0] };
    for (int f = 0; f < v->nf; f++)
        v->sum += v->order[f] = w->fp->eq[f].order;
    v->stop[0] = v->stop[1] = -1;
    v->held = w->fp->nobst ? w->fp->obst[0].field : 0;
    const run_options *o = w->o;
    v->iterations = isnan(o->value[OPT_ITERATIONS]) ? -1 : (int)o->value[OPT_ITERATIONS];
    v->exact = o->word[OPT_MULTIPLIER] && !strcmp(o->word[OPT_MULTIPLIER], "exact");
}

static void unknowns_number(vim *v)
{
    int n = 0;
    for (int k = 0; k < v->npiece; k++) {
        vpiece *p = &v->piece[k];
        p->count = v->sum - (p->contact >= 0 ? v->order[v->held] : 0);
        p->first = p->count ? n : -1;
        n += p->count;
        p->n = 32;
        p->v = NULL;
    }
    for (int k = 0; k <= v->npiece; k++)
        v->at[k].unknown = v->at[k].unknown >= 0 ? n++ : -1;
    for (int k = 0; k < v->npiece; k++) {
        vpiece *p = &v->piece[k];
        p->a = v->at[k].x;
        p->b = v->at[k + 1].x;
        p->ia = v->at[k].unknown;
        p->ib = v->at[k + 1].unknown;
        p->o = p->ia < 0 ? p->a : p->ib < 0 ? p->b : (p->a + p->b) / 2;
    }
    v->nparam = n;
    v->theta = arena_array(v->w->a, double, n + 1);
    v->g = arena_array(v->w->a, double, n + 1);
    v->jac = arena_array(v->w->a, double, (size_t)n *(size_t)n + 1);
    for (int k = 0; k <= v->npiece; k++)
        if (v->at[k].unknown >= 0)
            v->theta[v->at[k].unknown] = v->at[k].x;
}

static void pieces_known(vim *v, int parts)
{
    double *x;
    int n = field_breaks(v->w, &x);
    v->npiece = (n - 1) * parts;
    v->piece = arena_array(v->w->a, vpiece, v->npiece + 1);
    v->at = arena_array(v->w->a, cut, v->npiece + 2);
    for (int k = 0; k < n; k++)
        for (int j = 0; j < parts && k * parts + j <= v->npiece; j++)
            v->at[k * parts + j] = (cut){ .x = j ? x[k] + (x[k + 1] - x[k]) * j / parts : x[k],
                                          .unknown = -1 };
    for (int k = 0; k < v->npiece; k++)
        v->piece[k].contact = -1;
    unknowns_number(v);
}

/* ---- contact sets that are not given ---- */
typedef struct {
    double x;
    int zone, side;
    cut_kind kind;
    bool moving;
    int obstacle, bend;
} mark_place;
typedef vec(mark_place) mark_places;

static double near_break(const double *x, int n, double at, double reach)
{
    double best = NAN;
    for (int k = 1; k + 1 < n; k++)
        if (fabs(x[k] - at) <= reach && !(fabs(best - at) < fabs(x[k] - at)))
            best = x[k];
    return best;
}

static void zones_mark(vim *v, const field_result *s, const double *x, int n, mark_places *out)
{
    double h = v->length / (double)(s->n - 1);
    for (int z = 0; z < s->nzone; z++) {
        const contact_interval *c = &s->zone[z];
        double a = near_break(x, n, c->a, 1.5 * h), b = near_break(x, n, c->b, 1.5 * h);
        if (c->b - c->a < 3.5 * h && (c->a == v->w->lo[0] || c->b == v->w->hi[0])) {
            v->stop[c->b == v->w->hi[0]] = c->obstacle;
            continue;
        }
        if (c->b - c->a < 3.5 * h) {
            double at = !isnan(a) ? a : b;
            *vec_push(v->w->a, out) = (mark_place){
                isnan(at) ? (c->a + c->b) / 2 : at, z, 0, CUT_POINT, isnan(at), c->obstacle, 0
            };
            continue;
        }
        bool ends[2] = { c->a <= v->w->lo[0] + h, c->b >= v->w->hi[0] - h };
        if (!ends[0])
            *vec_push(v->w->a, out) = (mark_place){ isnan(a) ? c->a : a, z, -1, CUT_FREE, isnan(a),
                                                    c->obstacle,         0 };
        if (!ends[1])
            *vec_push(v->w->a, out) = (mark_place){ isnan(b) ? c->b : b, z, 1, CUT_FREE, isnan(b),
                                                    c->obstacle,         0 };
    }
}

static double bend_at(const vim *v, const field_result *s, const field_form *f, double x)
{
    double jets[64], out[65];
    for (int j = 0; j < f->njet; j++)
        jets[j] = field_at(s, f->jet[j].field, x, f->jet[j].d[0]);
    form_run(v->w, f, &x, jets, 1, out);
    return out[0];
}

static void bends_mark(vim *v, const field_result *s, mark_places *out)
{
    for (int b = 0; b < v->fp->nbend; b++) {
        double last = bend_at(v, s, &v->fp->bend[b], s->x[0]);
        for (int64_t k = 1; k < s->n; k++) {
            double now = bend_at(v, s, &v->fp->bend[b], s->x[k]);
            if (last * now < 0)
                *vec_push(v->w->a, out) = (mark_place){
                    s->x[k - 1] + (s->x[k] - s->x[k - 1]) * last / (last - now), 0, 0, CUT_BEND, true, 0, b
                };
            last = now;
        }
    }
}

static int in_zone(const field_result *s, const mark_places *m, double x)
{
    double h = (s->x[s->n - 1] - s->x[0]) / (double)(s->n - 1);
    for (int z = 0; z < s->nzone; z++) {
        double a = s->zone[z].a, b = s->zone[z].b;
        bool point = b - a < 3.5 * h;
        for (size_t k = 0; k < m->n; k++) {
            if (m->at[k].kind == CUT_BEND || m->at[k].zone != z)
                continue;
            if (m->at[k].kind == CUT_POINT)
                point = true;
            else if (m->at[k].side < 0)
                a = m->at[k].x;
            else
                b = m->at[k].x;
        }
        if (!point && x > a && x < b)
            return s->zone[z].obstacle;
    }
    return -1;
}

static void cuts_sort(cut *c, int n)
{
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && c[j].x < c[j - 1].x; j--) {
            cut t = c[j];
            c[j] = c[j - 1];
            c[j - 1] = t;
        }
}

/* how many derivatives are matched with the obstacle at the ends of each stretch off it */
static void contacts_count(vim *v)
{
    for (int k = 0; k < v->npiece;) {
        if (v->piece[k].contact >= 0) {
            k++;
            continue;
        }
        int to = k, need = v->order[v->held];
        while (to + 1 < v->npiece && v->piece[to + 1].contact < 0)
            to++;
        double a = v->at[k].x, b = v->at[to + 1].x;
        for (int c = 0; c < v->fp->ncond; c++) {
            double x = kernel_number(v->w, &v->fp->cond[c].place);
            bool on = (x > a || (x == a && k == 0)) && (x < b || (x == b && to + 1 == v->npiece));
            need -= on && condition_held(v, &v->fp->cond[c]);
        }
        bool l = k > 0, r = to + 1 < v->npiece, ml = l && v->at[k].unknown >= 0,
             mr = r && v->at[to + 1].unknown >= 0;
        int left = !l ? 0 : !r ? need : (need + 1) / 2, right = need - left;
        if (l)
            v->at[k].right = left + ml;
        if (r)
            v->at[to + 1].left = right + mr;
        k = to + 1;
    }
}

static void pieces_found(vim *v, const field_result *s)
{
    double *x;
    int n = field_breaks(v->w, &x), nc = 0;
    mark_places m = { 0 };
    zones_mark(v, s, x, n, &m);
    bends_mark(v, s, &m);
    v->at = arena_array(v->w->a, cut, (size_t)n + m.n + 2);
    for (int k = 0; k < n; k++)
        v->at[nc++] = (cut){ .x = x[k], .unknown = -1 };
    for (size_t k = 0; k < m.n; k++) {
        int same = -1;
        for (int j = 0; j < n && !m.at[k].moving; j++)
            if (v->at[j].x == m.at[k].x)
                same = j;
        cut c = { .x = m.at[k].x,
                  .kind = m.at[k].kind,
                  .unknown = m.at[k].moving ? 0 : -1,
                  .obstacle = m.at[k].obstacle,
                  .bend = m.at[k].bend };
        v->at[same >= 0 ? same : nc++] = c;
    }
    cuts_sort(v->at, nc);
    v->npiece = nc - 1;
    v->piece = arena_array(v->w->a, vpiece, nc);
    for (int k = 0; k < v->npiece; k++)
        for (int b = 0; b < v->fp->nbend; b++)
            v->piece[k].side[b] = bend_at(v, s, &v->fp->bend[b], (v->at[k].x + v->at[k + 1].x) / 2) > 0 ? 1
                                                                                                        : -1;
    for (int k = 0; k < v->npiece; k++)
        v->piece[k].contact = in_zone(s, &m, (v->at[k].x + v->at[k + 1].x) / 2);
    unknowns_number(v);
    contacts_count(v);
    for (int k = 0; k < v->npiece; k++) /* start where the grid's solution is */
        for (int f = 0, at = 0; f < v->nf; at += is_held(v, &v->piece[k], f) ? 0 : v->order[f], f++)
            for (int d = 0; d < v->order[f] && !is_held(v, &v->piece[k], f); d++)
                v->theta[v->piece[k].first + at + d] = field_at(s, f, v->piece[k].o, d) * scale_of(v, d);
}

/* ---- results ---- */
/* integral of F(s u) u over s in 0..1 and over the piece: the energy where F is its gradient */
static double piece_energy(const vim *v, const vpiece *p)
{
    static const double gs[3] = { 0.11270166537925831, 0.5, 0.88729833462074169 },
                        gw[3] = { 5. / 18, 8. / 18, 5. / 18 };
    int n = 2 * p->n;
    double energy = 0;
    points q;
    points_make(v, p, n, &q);
    for (int f = 0; f < v->nf; f++) {
        const field_form *e = &v->fp->eq[f].f;
        double *sum = arena_array(v->w->a, double, n), *c = arena_array(v->w->a, double, n);
        for (int g = 0; g < 3; g++) {
            for (int j = 0; j < e->njet; j++)
                for (int k = 0; k < n; k++)
                    q.jets[k * e->njet + j] = gs[g] * cheb_value(p->u[e->jet[j].field].d[e->jet[j].d[0]],
                                                                 p->n, q.t[k]);
            form_run(v->w, e, q.x, q.jets, n, q.out);
            for (int k = 0; k < n; k++)
                sum[k] += gw[g] * q.out[(size_t)k * (size_t)(e->njet + 1)] *
                          cheb_value(p->u[f].d[0], p->n, q.t[k]);
        }
        cheb_fit(sum, c, n);
        for (int k = 0; k < n; k += 2)
            energy += c[k] * (piece_hi(p) - piece_lo(p)) / (1 - (double)k * k);
    }
    return energy;
}

static double reaction_at(const vim *v, const vpiece *p, double x)
{
    const field_form *e = &v->fp->eq[v->held].f;
    double jets[64], out[65];
    if (p->contact < 0)
        return 0;
    for (int j = 0; j < e->njet; j++)
        jets[j] = value_of(v, p, e->jet[j].field, e->jet[j].d[0], x);
    x = side_of(v->w, x, p->a, p->b);
    form_run(v->w, e, &x, jets, 1, out);
    return out[0];
}

static double lead_at(const vim *v, const vpiece *p, double x)
{
    const field_form *e = &v->fp->eq[v->held].f;
    double jets[64], out[65];
    for (int j = 0; j < e->njet; j++)
        jets[j] = value_of(v, p, e->jet[j].field, e->jet[j].d[0], x);
    form_run(v->w, e, &x, jets, 1, out);
    for (int j = 0; j < e->njet; j++)
        if (e->jet[j].field == v->held && e->jet[j].d[0] == v->order[v->held])
            return out[1 + j];
    return 0;
}

static void result_samples(const vim *v, field_result *r)
{
    enum { EACH = 100 };
    arena *a = v->w->r->a;
    r->n = (int64_t)v->npiece * EACH + 1;
    r->x = arena_array(a, double, r->n);
    r->u = arena_array(a, double, r->n * v->nf);
    r->reaction = arena_array(a, double, r->n);
    for (int k = 0; k < v->npiece; k++)
        for (int j = 0; j < EACH + (k + 1 == v->npiece); j++) {
            const vpiece *p = &v->piece[k];
            int64_t at = (int64_t)k * EACH + j;
            r->x[at] = j == EACH ? p->b : p->a + (p->b - p->a) * j / EACH;
            for (int f = 0; f < v->nf; f++)
                r->u[at * v->nf + f] = value_of(v, p, f, 0, r->x[at]);
            r->reaction[at] = reaction_at(v, p, r->x[at]);
        }
}

static void result_pieces(const vim *v, field_result *r)
{
    arena *a = v->w->r->a;
    field_piece *out = arena_array(a, field_piece, v->npiece);
    for (int k = 0; k < v->npiece; k++) {
        const vpiece *p = &v->piece[k];
        int n = 1;
        out[k].a = piece_lo(p);
        out[k].b = piece_hi(p);
        for (int f = 0; f < v->nf; f++) {
            double big = 0;
            out[k].c[f] = arena_array(a, double, p->n);
            memcpy(out[k].c[f], p->u[f].d[0], (size_t)p->n * sizeof(double));
            out[k].top[f] = arena_array(a, double, p->n);
            memcpy(out[k].top[f], p->u[f].d[v->order[f]], (size_t)p->n * sizeof(double));
            for (int j = 0; j < p->n; j++)
                big = fmax(big, fabs(out[k].c[f][j]));
            for (int j = 0; j < p->n; j++)
                if (fabs(out[k].c[f][j]) > ROUND_1 * big && j + 1 > n)
                    n = j + 1;
        }
        out[k].n = n;
    }
    r->piece = out;
    r->npiece = v->npiece;
}

/* a free end on the obstacle: its force is what the condition there leaves */
static void stop_result(const vim *v, field_result *r, int side)
{
    double per, x = side ? v->w->hi[0] : v->w->lo[0], jets[64], out[65], size = 0;
    const vpiece *p = side ? &v->piece[v->npiece - 1] : &v->piece[0];
    int c = free_end(v->w, v->held, side ? 1 : -1, &per),
        obstacle = p->contact >= 0 ? p->contact : v->stop[side];
    if (c < 0 || obstacle < 0)
        return;
    if (v->stop[side] >= 0)
        r->zone[r->nzone++] = (contact_interval){ .a = x, .b = x, .obstacle = obstacle };
    const field_form *f = &v->fp->cond[c].f;
    double left = form_at(v, p, f, x, jets, out);
    for (int j = 0; j < f->njet; j++)
        size += fabs(out[1 + j] * jets[j]);
    if (fabs(left) > POINT_FORCE * size)
        r->point[r->npoint++] = (point_force){ x, per * left, obstacle };
}

static void result_contact(const vim *v, field_result *r)
{
    arena *a = v->w->r->a;
    double size = norm_of(r->u, (int)r->n * v->nf);
    r->zone = arena_array(a, contact_interval, v->npiece + 4);
    r->point = arena_array(a, point_force, v->npiece + 4);
    for (int k = 0; k < v->npiece; k++) {
        const vpiece *p = &v->piece[k];
        if (v->at[k].kind == CUT_POINT)
            r->zone[r->nzone++] = (contact_interval){ .a = p->a, .b = p->a, .obstacle = v->at[k].obstacle };
        if (p->contact < 0)
            continue;
        contact_interval *last = r->nzone ? &r->zone[r->nzone - 1] : NULL;
        if (last && last->b == p->a && last->obstacle == p->contact)
            last->b = p->b;
        else
            r->zone[r->nzone++] = (contact_interval){ .a = p->a, .b = p->b, .obstacle = p->contact };
    }
    for (int side = 0; side < 2 && v->fp->nobst; side++)
        stop_result(v, r, side);
    for (int k = 1; k < v->npiece && v->fp->nobst; k++) {
        const vpiece *l = &v->piece[k - 1], *q = &v->piece[k];
        if (l->contact < 0 && q->contact < 0 && v->at[k].kind != CUT_POINT)
            continue;
        int g = v->held, d = v->order[g] - 1;
        double x = v->at[k].x, jets[64], out[65], jump = value_of(v, q, g, d, x) - value_of(v, l, g, d, x),
               lead = lead_at(v, l, x);
        const field_flux *flux = flux_of(v, g, d);
        if (flux) {
            jump = form_at(v, q, &flux->f, x, jets, out) - form_at(v, l, &flux->f, x, jets, out);
            kernel_points(v->w, &flux->per, &x, 1, &lead);
        }
        jump -= load_jump(v, g, l, x);
        double force = lead * jump;
        if (fabs(jump) * scale_of(v, d) >
            POINT_FORCE_CUT * (size + fabs(value_of(v, l, g, d, x)) * scale_of(v, d)))
            r->point[r->npoint++] = (point_force){ x, force,
                                                   l->contact >= 0   ? l->contact
                                                   : q->contact >= 0 ? q->contact
                                                                     : v->at[k].obstacle };
    }
}

/* gap of every obstacle at samples; the deepest, and where */
static double deepest(const vim *v, const field_result *r, double *where)
{
    double worst = 0;
    for (int o = 0; o < v->fp->nobst; o++)
        for (int64_t k = 1; k + 1 < r->n; k++) {
            double psi, x = r->x[k];
            kernel_points(v->w, &v->fp->obst[o].psi, &x, 1, &psi);
            double in = v->fp->obst[o].sense * (psi - r->u[k * v->nf + v->fp->obst[o].field]);
            if (in > worst)
                worst = in, *where = x;
        }
    return worst;
}

static field_result *vim_result(vim *v)
{
    field_result *r = result_new(v->w);
    r->promised = v->iterations < 0;
    result_pieces(v, r);
    result_samples(v, r);
    result_contact(v, r);
    for (int k = 0; k < v->npiece; k++)
        r->energy += piece_energy(v, &v->piece[k]);
    for (int k = 0; k < r->npoint; k++)
        r->energy += r->point[k].force * field_at(r, v->held, r->point[k].x, 0) / 2;
    r->nupdate = v->nupdate;
    r->update = arena_array(v->w->r->a, double, v->nupdate);
    memcpy(r->update, v->update, (size_t)v->nupdate * sizeof *r->update);
    r->iterations = v->nupdate;
    r->rational = isnan(v->w->o->value[OPT_RATIONAL]) ? 0 : v->w->o->value[OPT_RATIONAL];
    r->matching = arena_array(v->w->r->a, double, v->nparam);
    r->nmatching = v->nparam;
    memcpy(r->matching, v->g, (size_t)v->nparam * sizeof(double));
    v->w->r->count.steps = v->nupdate;
    v->w->r->solver = "variational iteration, Newton for the matching";
    return r;
}

/* ---- the run ---- */
static bool diverges(const vim *v)
{
    double size = 0;
    int n = v->nupdate;
    for (int k = 0; k < v->npiece; k++)
        for (int j = 0; j < v->piece[k].count; j++)
            size = fmax(size, fabs(v->theta[v->piece[k].first + j]));
    return v->iterations >= 2 && n >= 2 && v->update[n - 1] > v->update[n - 2] &&
           v->update[n - 1] > SERIES_GROWS * size;
}

static span equation_at(const vim *v)
{
    return v->fp->eq[0].f.at;
}

static field_result *vim_report(vim *v, match_end end)
{
    double where = 0;
    switch (end) {
    case MATCH_OK:
        break;
    case MATCH_STOPPED:
        return NULL;
    case MATCH_SINGULAR:
        field_fail(v->w, v->fp->ncond ? v->fp->cond[0].at : equation_at(v),
                   "the matching system is singular: the conditions do not determine %s", v->fp->name[0]);
        return NULL;
    case MATCH_COUNT:
        field_fail(v->w, equation_at(v),
                   "the conditions do not fit the contact set that was found; try active_set()");
        return NULL;
    case MATCH_STUCK:
        field_fail(v->w, equation_at(v),
                   "Newton's method for the matching conditions does not converge (defect %.3g); try pieces "
                   "= 4, or active_set()",
                   norm_of(v->g, v->nparam));
        return NULL;
    case MATCH_ASTRAY:
        field_fail(v->w, equation_at(v),
                   "the variational iteration diverges; try fewer iterations, multiplier = exact, pieces = 4 "
                   "(shorter pieces), or active_set()");
        return NULL;
    }
    if (diverges(v)) {
        field_fail(v->w, equation_at(v),
                   "the variational iteration diverges: the last two changes are %.3g and %.3g; "
                   "try more iterations, multiplier = exact, pieces = 4 (shorter pieces), or active_set()",
                   v->update[v->nupdate - 2], v->update[v->nupdate - 1]);
        return NULL;
    }
    field_result *r = vim_result(v);
    if (v->fp->nobst && deepest(v, r, &where) > FIELD_PASSED_SERIES * norm_of(r->u, (int)r->n * v->nf)) {
        field_fail(v->w, v->fp->obst[0].at,
                   "the matching conditions hold, but %s passes the obstacle by %.3g at %s = %g: the contact "
                   "set is of another kind; use active_set()",
                   v->fp->name[0], deepest(v, r, &where), v->fp->coord[0], where);
        return NULL;
    }
    return r;
}

static match_end vim_known(vim *v)
{
    double given = v->w->o->value[OPT_PIECES];
    int parts = isnan(given) ? 1 : (int)given;
    for (;; parts *= 4) {
        v->grown = false;
        pieces_known(v, parts);
        match_end end = match_newton(v);
        /* without options it takes shorter pieces where the iteration does not converge */
        if (end == MATCH_OK || v->iterations >= 0 || !isnan(given) || parts >= 64 ||
            (end != MATCH_ASTRAY && !(end == MATCH_STUCK && v->fp->linear)))
            return end;
    }
}

static field_result *vim_solve(field_work *w)
{
    vim v;
    vim_begin(&v, w);
    bool find = v.fp->nobst || v.fp->nbend;
    if (w->o->word[OPT_CONTACT] && !strcmp(w->o->word[OPT_CONTACT], "given") && v.fp->nobst) {
        field_fail(w, v.fp->obst[0].at,
                   "contact = given needs an equation with known switches, without an obstacle; leave it "
                   "out, or write contact = find");
        return NULL;
    }
    if (!find)
        return vim_report(&v, vim_known(&v));
    for (int o = 1; o < v.fp->nobst; o++) {
        if (v.fp->obst[o].field == v.held)
            continue;
        field_fail(w, v.fp->obst[o].at,
                   "vim finds the contact sets of one field among several; use active_set()");
        return NULL;
    }
    field_result *s = line_solve(w, &(line_options){ .cells = 800, .tolerance = FIELD_DEFAULT });
    if (!s)
        return NULL;
    pieces_found(&v, s);
    return vim_report(&v, match_newton(&v));
}

static void vim_run(const program *p, const run_options *o, results *r)
{
    field_run(p, o, r, vim_solve);
}

static const char *vim_refuse(const program *p, span *at)
{
    *at = SPAN_NONE;
    if (!p->field)
        return "vim solves fields";
    *at = p->has_field;
    if (p->field->ncoord != 1)
        return "vim works on a line; use active_set()";
    if (p->field->nbend > MAX_BENDS) {
        *at = p->field->has_bend;
        return "too many max, min, abs and conditions of the field for vim; use active_set()";
    }
    return NULL;
}

static const backend_option vim_options[] = {
    { "iterations", OPT_INT, NAN, 0, 100, NULL, "number of corrections; by default until nothing changes",
      KIND_ANY },
    { "contact", OPT_WORD, NAN, 0, 0, "find|given",
      "whether ends of contact zones are unknowns; default find if there is an obstacle", KIND_ANY },
    { "multiplier", OPT_WORD, NAN, 0, 0, "power|exact",
      "power: (-1)^k (s - x)^(k-1)/(k-1)!; exact: that of the linear part", KIND_ANY },
    { "rational", OPT_REAL, NAN, 1e-15, 1, NULL, "prints coefficients as fractions within this tolerance",
      KIND_ANY },
    { "pieces", OPT_INT, NAN, 1, 256, NULL, "divides each piece into this many", KIND_ANY },
};
const backend backend_vim = {
    .name = "vim",
    .doc = "variational iteration: fields as formulas, with contact sets found",
    .option = vim_options,
    .noption = sizeof vim_options / sizeof *vim_options,
    .built = true,
    .refuse = vim_refuse,
    .run = vim_run,
};
