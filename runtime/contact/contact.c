#include "contact.h"
#include <math.h>
#include <string.h>
#include "base/linalg.h"
#include "pile.h"

struct contact_work {
    arena *a; /* scratch, released after each use */
    int n, m;
    double *A, *x, *y, *z, *local; /* m*m, m, m, m; for cone_solve */
    double *big;                   /* m*m + 2m */
    int *index, *perm;
    bool *in;
};

contact_work *contact_work_new(arena *a, int n, int m, int d)
{
    contact_work *w = arena_make(a, contact_work);
    size_t mm = (size_t)m;
    w->a = a;
    w->n = n;
    w->m = m;
    w->A = arena_array(a, double, mm *mm);
    w->big = arena_array(a, double, mm *mm + 2 * mm);
    w->x = arena_array(a, double, mm);
    w->y = arena_array(a, double, mm);
    w->z = arena_array(a, double, mm);
    w->local = arena_array(a, double, (size_t)CONE_WORK *(size_t)d *(size_t)(d + 4) + 8);
    w->index = arena_array(a, int, mm + 1);
    w->perm = arena_array(a, int, mm + 1);
    w->in = arena_array(a, bool, mm + 1);
    return w;
}

/* ---- one contact ---- */
static inline double larger(double a, double b)
{
    return a > b ? a : b;
}
static double positive(double x)
{
    return x > 0 ? x : 0;
}
static double length(const double *x, int d)
{
    return d == 1 ? fabs(x[0]) : sqrt(vec_dot(x, x, d));
}

/* Normal reaction for a tangential one: from u_n = 0. */
static double normal_for(const cone *c, const double *A, const double *b, const double *rt)
{
    if (c->kind == CONE_GIVEN)
        return 0;
    double rn = -(b[0] + vec_dot(A + 1, rt, c->d)) / A[0];
    return c->kind == CONE_UNILATERAL ? positive(rn) : rn;
}

static void put_reaction(const cone *c, double rn, const double *rt, double *r)
{
    int k = cone_normal(c);
    if (k)
        r[0] = rn;
    for (int i = 0; i < c->d; i++)
        r[k + i] = rt[i];
}

/* Slip in a known direction: r_t = -(mu |r_n| + radius) dir, u_n = 0.  False when pushing harder does not
 * open the contact (it jams). */
static bool slide(const cone *c, const double *A, const double *b, const double *dir, double *r, double *rt)
{
    double rn = 0;
    bool ok = true;
    if (cone_normal(c)) {
        double an = vec_dot(A + 1, dir, c->d), free = b[0] - c->radius * an, a = A[0] - c->mu * an;
        rn = -free / a;
        ok = a > 0 && isfinite(rn);
        if (rn < 0)
            rn = c->kind == CONE_UNILATERAL ? 0 : -free / (A[0] + c->mu * an);
    }
    double bound = c->mu * fabs(rn) + c->radius;
    for (int k = 0; k < c->d; k++)
        rt[k] = -bound * dir[k];
    put_reaction(c, rn, rt, r);
    return ok;
}

/* One tangent component: of the slides to either side, the one whose slip has its own direction. */
static bool slide_1d(const cone *c, const double *A, int lda, const double *b, double *r, double *rt)
{
    int k = cone_normal(c);
    double first = b[k] < 0 ? -1 : 1, best = -INFINITY, keep[2] = { 0, 0 };
    for (int side = 0; side < 2; side++) {
        double dir = side ? -first : first;
        bool ok = slide(c, A, b, &dir, r, rt);
        double ut = b[k] + vec_dot(A + k * lda, r, k + 1);
        if (ok && ut * dir >= 0)
            return true;
        if (ut * dir > best) {
            best = ut * dir;
            memcpy(keep, r, (size_t)(k + 1) * sizeof *r);
        }
    }
    memcpy(r, keep, (size_t)(k + 1) * sizeof *r);
    return false;
}

/* (S + lambda I) r_t = -c; S is the block of the tangent seen with u_n = 0 */
static bool tangent_solve(const double *S, const double *c, double lambda, int d, double *rt, double *work)
{
    if (d == 1) {
        rt[0] = -c[0] / (S[0] + lambda);
        return isfinite(rt[0]);
    }
    if (d == 2) {
        double p = S[0] + lambda, q = S[1], s = S[2], t = S[3] + lambda, det = p * t - q * s;
        rt[0] = -(t * c[0] - q * c[1]) / det;
        rt[1] = -(p * c[1] - s * c[0]) / det;
        return isfinite(rt[0]) && isfinite(rt[1]);
    }
    double *M = work, *l;
    memcpy(M, S, (size_t)d * d * sizeof *S);
    for (int i = 0; i < d; i++) {
        M[i * d + i] += lambda;
        rt[i] = -c[i];
    }
    for (int k = 0; k < d; k++) {
        int p = k;
        for (int i = k + 1; i < d; i++)
            if (fabs(M[i * d + k]) > fabs(M[p * d + k]))
                p = i;
        if (M[p * d + k] == 0)
            return false;
        for (int j = 0; p != k && j < d; j++) {
            double x = M[p * d + j];
            M[p * d + j] = M[k * d + j];
            M[k * d + j] = x;
        }
        double x = rt[p];
        rt[p] = rt[k];
        rt[k] = x;
        for (int i = k + 1; i < d; i++) {
            l = M + i * d;
            double f = l[k] / M[k * d + k];
            vec_axpy(l, -f, M + k * d, d);
            rt[i] -= f * rt[k];
        }
    }
    for (int i = d; i-- > 0;)
        rt[i] = (rt[i] - vec_dot(M + i * d + i + 1, rt + i + 1, d - i - 1)) / M[i * d + i];
    return true;
}

/* Slip with u_t = -lambda r_t: f = bound/|r_t| - 1 is nearly linear in lambda. */
typedef struct {
    const cone *c;
    const double *A, *b, *S, *s;
    double *rt, *work, rn;
} slide_case;

static double slide_at(slide_case *k, double lambda)
{
    if (!tangent_solve(k->S, k->s, lambda, k->c->d, k->rt, k->work))
        return NAN;
    k->rn = normal_for(k->c, k->A, k->b, k->rt);
    return (k->c->mu * fabs(k->rn) + k->c->radius) / length(k->rt, k->c->d) - 1;
}

/* False position (halved on the side that stays) ends after a few steps. */
static bool slide_nd(slide_case *k, double *r)
{
    int d = k->c->d, i, side = 0;
    double hi = 0, lo = 0, flo = slide_at(k, 0), fhi, l, f;
    for (i = 0; i < d; i++)
        hi += k->S[i * d + i];
    fhi = slide_at(k, hi);
    for (i = 0; fhi < 0 && i < 200; i++) {
        lo = hi;
        flo = fhi;
        hi *= 4;
        fhi = slide_at(k, hi);
    }
    if (!(fhi >= 0)) {
        memset(k->rt, 0, (size_t)d * sizeof *k->rt);
        k->rn = normal_for(k->c, k->A, k->b, k->rt);
    } else
        for (i = 0; i < 100 && hi - lo > 4e-16 * hi; i++) {
            l = (lo * fhi - hi * flo) / (fhi - flo);
            if (!(l > lo && l < hi))
                l = 0.5 * (lo + hi);
            f = slide_at(k, l);
            if (!(fabs(f) > 2e-16))
                break;
            if (f < 0) {
                lo = l;
                flo = f;
                if (side < 0)
                    fhi *= 0.5;
                side = -1;
            } else {
                hi = l;
                fhi = f;
                if (side > 0)
                    flo *= 0.5;
                side = 1;
            }
        }
    put_reaction(k->c, k->rn, k->rt, r);
    return isfinite(k->rn);
}

static bool stick(const cone *c, const double *A, const double *b, const double *S, const double *s,
                  double *r, double *rt, double *work)
{
    if (!tangent_solve(S, s, 0, c->d, rt, work))
        return false;
    double rn = 0;
    if (cone_normal(c)) {
        rn = -(b[0] + vec_dot(A + 1, rt, c->d)) / A[0];
        if (c->kind == CONE_UNILATERAL && rn < 0)
            return false;
    }
    put_reaction(c, rn, rt, r);
    return length(rt, c->d) <= c->mu * fabs(rn) + c->radius;
}

/* one tangent component: two equations */
static bool stick_1d(const cone *c, const double *A, int lda, const double *b, double *r)
{
    double p = A[0], q = A[1], s = A[lda], t = A[lda + 1], over = -1 / (p * t - q * s);
    double rn = (t * b[0] - q * b[1]) * over, rt = (p * b[1] - s * b[0]) * over;
    if (c->kind == CONE_UNILATERAL && !(rn >= 0))
        return false;
    r[0] = rn;
    r[1] = rt;
    return fabs(rt) <= c->mu * fabs(rn) + c->radius;
}

/* A bound that is there without r_n: friction alone, where it leaves the contact open. */
static bool grip_alone(const cone *c, const double *A, int lda, const double *b, double *r, double *work)
{
    cone given = *c;
    given.kind = CONE_GIVEN;
    return cone_solve(&given, A + lda + 1, lda, b + 1, r + 1, work) &&
           b[0] + vec_dot(A + 1, r + 1, c->d) >= 0;
}

bool cone_solve(const cone *c, const double *A, int lda, const double *b, double *r, double *work)
{
    int d = c->d, k = cone_normal(c);
    if (c->kind == CONE_UNILATERAL && b[0] >= 0) {
        for (int i = 0; i <= d; i++)
            r[i] = 0;
        if (d == 0 || c->radius == 0 || grip_alone(c, A, lda, b, r, work))
            return true;
    }
    if (d == 0 || (c->mu == 0 && c->radius == 0)) {
        if (d)
            memset(r, 0, (size_t)(k + d) * sizeof *r);
        if (k)
            r[0] = -b[0] / A[0];
        return true;
    }
    double *rt = work, *s = rt + d, *S = s + d, *more = S + d * d;
    if (c->dir)
        return slide(c, A, b, c->dir, r, rt);
    if (d == 1 && k)
        return stick_1d(c, A, lda, b, r) || slide_1d(c, A, lda, b, r, rt);
    for (int i = 0; i < d; i++) {
        const double *Ai = A + (size_t)(k + i) * lda;
        double f = k ? Ai[0] / A[0] : 0;
        s[i] = b[k + i] - (k ? f * b[0] : 0);
        for (int j = 0; j < d; j++)
            S[i * d + j] = Ai[k + j] - (k ? f * A[1 + j] : 0);
    }
    if (stick(c, A, b, S, s, r, rt, more))
        return true;
    return d == 1 ? slide_1d(c, A, lda, b, r, rt) : slide_nd(&(slide_case){ c, A, b, S, s, rt, more, 0 }, r);
}

/* ---- friction that depends on the slip speed: the speed v solves |u_t(mu(v))| = v ---- */
typedef struct {
    contact_problem *p;
    int i;
    const double *A, *b;
    int lda;
    double *r, *work;
    cone c;
} speed_case;

static double speed_at(speed_case *k, double v)
{
    k->p->law(k->p->ud, k->i, v, &k->c.mu, &k->c.radius);
    cone_solve(&k->c, k->A, k->lda, k->b, k->r, k->work);
    int n = cone_normal(&k->c), d = k->c.d;
    double s = 0;
    for (int j = n; j < n + d; j++) {
        double u = k->b[j] + vec_dot(k->A + (size_t)j * k->lda, k->r, n + d);
        s += u * u;
    }
    s = sqrt(s);
    return s <= 1e-14 * length(k->b + n, d) ? 0 : s;
}

static double speed_root(speed_case *k, double lo, double hi, double flo)
{
    for (int i = 0; i < 200 && hi - lo > 4e-16 * hi; i++) {
        double v = 0.5 * (lo + hi), f = speed_at(k, v) - v;
        if (f == 0)
            return v;
        if ((f > 0) == (flo > 0))
            lo = v;
        else
            hi = v;
    }
    return 0.5 * (lo + hi);
}

enum { SPEED_GRID = 24, SPEED_LOOK = 8 };
static double speed_knot(double top, int j, int n)
{
    return top * j * j / (n * n);
}

/* Does the bound change so little with the speed that there is one solution?  Slopes of W bound(v) on a
 * coarse grid, for the normal reaction at hand. */
static bool speed_unique(speed_case *k, double top)
{
    int n = cone_normal(&k->c), d = k->c.d;
    double rn = n ? fabs(k->r[0]) : 0, w = 0, before = 0, at = 0;
    for (int j = n; j < n + d; j++)
        w = fmax(w, k->A[(size_t)j * k->lda + j]);
    for (int j = 0; j <= SPEED_LOOK; j++) {
        double mu, radius, v = speed_knot(top, j, SPEED_LOOK);
        k->p->law(k->p->ud, k->i, v, &mu, &radius);
        double bound = w * (mu * rn + radius);
        if (j && fabs(bound - before) > 0.3 * (v - at))
            return false;
        before = bound;
        at = v;
    }
    return true;
}

/* The one solution: secant on F(v) - v, whose slope is near -1. */
static void speed_only(speed_case *k, double v)
{
    double f = speed_at(k, v), g = f - v, slope = -1;
    for (int i = 0; i < 40 && fabs(g) > 1e-15 * (fabs(v) + fabs(f)); i++) {
        double next = fmax(v - g / slope, 0), g1 = speed_at(k, next) - next;
        if (next == v)
            break;
        slope = (g1 - g) / (next - v);
        if (!(slope < -0.5 && slope > -2))
            slope = -1;
        v = next;
        g = g1;
        f = v + g;
    }
}

/* All solutions on a grid of speeds up to that without friction; the one nearest to the speed before is kept.
 */
static double speed_nearest(speed_case *k, double top, bool stuck)
{
    int found = stuck;
    double before = k->p->cone[k->i].speed, far = stuck ? before : INFINITY, best = 0;
    double v0 = 0, f0 = stuck ? -1 : speed_at(k, 0);
    for (int j = 1; j <= SPEED_GRID && top > 0; j++) {
        double v1 = speed_knot(top, j, SPEED_GRID), f1 = speed_at(k, v1) - v1;
        if ((f0 > 0) != (f1 > 0)) {
            double v = speed_root(k, v0, v1, f0);
            found++;
            if (fabs(v - before) < far) {
                far = fabs(v - before);
                best = v;
            }
        }
        v0 = v1;
        f0 = f1;
    }
    k->p->choices += found > 1;
    return stuck && before == 0 ? 0 : best;
}

static void cone_solve_speed(contact_problem *p, int i, const double *A, int lda, const double *b, double *r,
                             double *work)
{
    cone *c = &p->cone[i];
    speed_case k = { p, i, A, b, lda, r, work, *c };
    int n = cone_normal(c);
    double top = 1.5 * length(b + n, c->d) + 2 * c->speed;
    bool stuck = speed_at(&k, 0) == 0;
    if (!speed_unique(&k, top))
        speed_at(&k, speed_nearest(&k, top, stuck));
    else if (stuck)
        speed_at(&k, 0);
    else
        speed_only(&k, c->speed);
    c->mu = k.c.mu;
    c->radius = k.c.radius;
}

static void local_solve(contact_problem *p, int i, const double *b, double *r, double *work)
{
    const cone *c = &p->cone[i];
    const double *A = p->W + (size_t)c->row * p->m + c->row;
    if (c->of_speed && !c->dir)
        cone_solve_speed(p, i, A, p->m, b, r, work);
    else
        cone_solve(c, A, p->m, b, r, work);
}

/* ---- how well it is solved ---- */
static double diagonal(const contact_problem *p, const cone *c) /* 1/rho of the tangent */
{
    double a = 0;
    for (int k = c->row + cone_normal(c); k < c->row + cone_rows(c); k++)
        a = larger(a, p->W[(size_t)k * p->m + k]);
    return a;
}

double cone_defect(const cone *c, const double *r, const double *u, const double *b, double an, double a,
                   double *scale)
{
    double res = 0, rn = 0;
    int k = cone_normal(c);
    if (k) {
        double rho = 1 / an;
        rn = r[0];
        res = c->kind == CONE_BILATERAL ? fabs(rho * u[0]) : fabs(rn - positive(rn - rho * u[0]));
        *scale = larger(*scale, larger(fabs(rn), rho * fabs(b[0])));
    }
    if (c->d == 0)
        return res;
    double bound = c->mu * fabs(rn) + c->radius, rho = a > 0 ? 1 / a : 0, x2 = 0, e2 = 0, f;
    for (int j = 0; j < c->d; j++) {
        double x = r[k + j] - rho * u[k + j];
        x2 += x * x;
    }
    f = x2 > bound * bound ? bound / sqrt(x2) : 1;
    for (int j = 0; j < c->d; j++) {
        double e = r[k + j] - (c->dir ? -bound * c->dir[j] : f * (r[k + j] - rho * u[k + j]));
        e2 += e * e;
    }
    *scale = larger(*scale, fmin(rho * length(b + k, c->d), bound));
    return larger(res, sqrt(e2));
}

void reaction_add(reaction_size *s, const cone *c, const double *r, const double *b, double an, double a)
{
    int k = cone_normal(c);
    double bound = c->mu * fabs(k ? r[0] : 0) + c->radius, asked = k ? fabs(b[0]) / an : 0,
           side = a > 0 ? length(b + k, c->d) / a : 0;
    s->n++;
    s->all += asked + side;
    s->most = larger(s->most, k ? fabs(r[0]) : bound);
    s->asked = larger(s->asked, larger(asked, fmin(side, bound)));
}

double reaction_scale(const reaction_size *s, double least)
{
    return larger(larger(least, s->asked), larger(fmin(s->most, 10 * s->n * s->all), s->fine * s->most));
}

double contact_micro_gap(double tol, double h, double change)
{
    return fmin(1e-4, sqrt(tol)) * h * change;
}

static double cone_residual(const contact_problem *p, const cone *c, reaction_size *size)
{
    int at = c->row;
    double an = cone_normal(c) ? p->W[(size_t)at * p->m + at] : 0, a = c->d ? diagonal(p, c) : 0, any = 0;
    reaction_add(size, c, p->r + at, p->b + at, an, a);
    return cone_defect(c, p->r + at, p->u + at, p->b + at, an, a, &any);
}

double contact_residual(contact_problem *p)
{
    reaction_size size = { .fine = p->fine };
    double worst = 0;
    p->worst = 0;
    for (int i = 0; i < p->n; i++) {
        double e = cone_residual(p, &p->cone[i], &size);
        if (e > worst || !(e == e)) {
            worst = e;
            p->worst = i;
        }
    }
    p->residual = worst == 0 ? 0 : worst / reaction_scale(&size, p->least);
    return p->residual;
}

static void velocity(contact_problem *p)
{
    for (int i = 0; i < p->m; i++)
        p->u[i] = p->b[i] + vec_dot(p->W + (size_t)i * p->m, p->r, p->m);
}

/* ---- block Gauss-Seidel with exact local solutions ---- */
static void sweep(contact_problem *p, contact_work *w)
{
    double *b = w->x, *r = w->y;
    int m = p->m;
    for (int i = 0; i < p->n; i++) {
        const cone *c = &p->cone[i];
        int k = cone_rows(c), at = c->row;
        for (int j = 0; j < k; j++)
            b[j] = p->u[at + j] - vec_dot(p->W + (size_t)(at + j) * m + at, p->r + at, k);
        local_solve(p, i, b, r, w->local);
        for (int j = 0; j < k; j++) {
            double dr = r[j] - p->r[at + j];
            if (dr == 0)
                continue;
            p->r[at + j] = r[j];
            for (int q = 0; q < m; q++)
                p->u[q] += p->W[(size_t)q * m + at + j] * dr;
        }
    }
    p->sweeps++;
}

static bool solve_sweeps(contact_problem *p, contact_work *w, double tol, int most)
{
    double before = INFINITY;
    for (int i = 1; i <= most; i++) {
        arena_tick(w->a, (int64_t)p->m * p->m);
        sweep(p, w);
        if (i % 16 == 0)
            velocity(p);
        if (contact_residual(p) <= tol) {
            velocity(p);
            if (contact_residual(p) <= tol)
                return true;
        }
        /* too slow to get there: leave it to Newton */
        if (i % 32 == 0) {
            if (p->residual > 0.05 * before)
                return false;
            before = p->residual;
        }
    }
    return false;
}

/* Island by island; laws are those at hand. */
static bool solve_islands(contact_problem *p, contact_work *w, double tol)
{
    arena_pos mark = arena_mark(w->a);
    int m = p->m, at = 0, *start = arena_array(w->a, int, p->n + 1),
        *col = arena_array(w->a, int, (size_t)p->n *m);
    size_t *first = arena_array(w->a, size_t, p->n), all = 0;
    double *val = arena_array(w->a, double, (size_t)m *m);
    for (int i = 0; i < p->n; i++) {
        const cone *c = &p->cone[i];
        start[i] = at;
        first[i] = all;
        for (int j = 0; j < m; j++) {
            bool any = j >= c->row && j < c->row + cone_rows(c);
            for (int k = 0; k < cone_rows(c); k++)
                any |= p->W[(size_t)(c->row + k) * m + j] != 0;
            if (any)
                col[at++] = j;
        }
        for (int k = 0; k < cone_rows(c); k++)
            for (int j = start[i]; j < at; j++)
                val[all++] = p->W[(size_t)(c->row + k) * m + col[j]];
    }
    start[p->n] = at;
    sparse_problem s = { .n = p->n,
                         .m = m,
                         .cone = p->cone,
                         .start = start,
                         .col = col,
                         .at = first,
                         .val = val,
                         .b = p->b,
                         .r = p->r,
                         .least = p->least,
                         .fine = p->fine };
    s.solver = p->solver;
    bool ok = pile_solve(&s, w->a, tol);
    p->sweeps += s.iterations;
    p->solver = s.solver;
    arena_release(w->a, mark);
    velocity(p);
    return contact_residual(p) <= tol && ok;
}

/* ---- no friction: active sets ---- */
/* Shortest r on the chosen rows with u = 0 there; r = 0 elsewhere.  W may be a little unsymmetric: its
 * symmetric part is factorised and the rest refined. */
static void solve_on(contact_problem *p, contact_work *w, const bool *in)
{
    int k = 0, m = p->m;
    for (int i = 0; i < m; i++) {
        p->r[i] = 0;
        if (in[i])
            w->index[k++] = i;
    }
    for (int pass = 0; pass < 3; pass++) {
        velocity(p);
        for (int i = 0; i < k; i++) {
            w->x[i] = -p->u[w->index[i]];
            for (int j = 0; j < k; j++) {
                size_t a = w->index[i], b = w->index[j];
                w->A[(size_t)i * k + j] = 0.5 * (p->W[a * m + b] + p->W[b * m + a]);
            }
        }
        sym_shortest(w->A, w->x, w->y, k, w->big, w->perm);
        for (int i = 0; i < k; i++)
            p->r[w->index[i]] += w->y[i];
    }
    velocity(p);
}

static void active_rows(const contact_problem *p, bool *in)
{
    memset(in, 0, (size_t)p->m * sizeof *in);
    for (int i = 0; i < p->n; i++) {
        const cone *c = &p->cone[i];
        if (c->kind == CONE_GIVEN)
            continue;
        double a = p->W[(size_t)c->row * p->m + c->row];
        in[c->row] = c->kind == CONE_BILATERAL || p->r[c->row] * a - p->u[c->row] > 0;
    }
}

/* Primal-dual active set from the start at hand: quick when the set changes little. */
static bool solve_primal_dual(contact_problem *p, contact_work *w, double tol)
{
    velocity(p);
    for (int it = 0; it < 12; it++) {
        active_rows(p, w->in);
        solve_on(p, w, w->in);
        p->sweeps++;
        if (contact_residual(p) <= tol)
            return true;
    }
    return false;
}

/* ---- Lemke's algorithm on w = M z + q (w, z >= 0, w.z = 0): T holds [I, -M, -cover | q] over the basis ----
 */
typedef struct {
    int n, cols;
    double *T;
    int *basis;
} lemke;

static void lemke_pivot(lemke *l, int row, int col)
{
    double *t = l->T + (size_t)row * l->cols, d = t[col];
    for (int j = 0; j < l->cols; j++)
        t[j] /= d;
    for (int i = 0; i < l->n; i++) {
        double *ti = l->T + (size_t)i * l->cols;
        if (i != row && ti[col] != 0)
            vec_axpy(ti, -ti[col], t, l->cols);
    }
    l->basis[row] = col;
}

/* smallest ratio; among equals the cover leaves, else the lexicographically smallest row */
static int lemke_ratio(const lemke *l, int col)
{
    int best = -1, last = l->cols - 1, z0 = 2 * l->n;
    for (int i = 0; i < l->n; i++) {
        const double *ti = l->T + (size_t)i * l->cols;
        if (ti[col] <= 1e-11)
            continue;
        if (best < 0) {
            best = i;
            continue;
        }
        const double *tb = l->T + (size_t)best * l->cols;
        double d = ti[last] / ti[col] - tb[last] / tb[col];
        if (fabs(d) <= 1e-13 * (fabs(ti[last] / ti[col]) + 1e-300)) {
            if (l->basis[best] == z0)
                continue;
            d = l->basis[i] == z0 ? -1 : 0;
            for (int j = 0; d == 0 && j < l->n; j++)
                d = ti[j] / ti[col] - tb[j] / tb[col];
        }
        if (d < 0)
            best = i;
    }
    return best;
}

static bool lemke_run(lemke *l)
{
    int z0 = 2 * l->n, last = l->cols - 1, row = 0, enter, limit = 50 * l->n + 100;
    for (int i = 1; i < l->n; i++)
        if (l->T[(size_t)i * l->cols + last] < l->T[(size_t)row * l->cols + last])
            row = i;
    if (l->T[(size_t)row * l->cols + last] >= 0)
        return true;
    enter = l->basis[row] + l->n;
    lemke_pivot(l, row, z0);
    for (int it = 0; it < limit; it++) {
        if ((row = lemke_ratio(l, enter)) < 0)
            return false;
        int leave = l->basis[row];
        lemke_pivot(l, row, enter);
        if (leave == z0)
            return true;
        enter = leave < l->n ? leave + l->n : leave - l->n;
    }
    return false;
}

/* Rows of the problem as rows of the LCP: bilateral ones twice, with both signs. */
static bool solve_lemke(contact_problem *p, contact_work *w)
{
    arena_pos mark = arena_mark(w->a);
    int *at = arena_array(w->a, int, 2 * (size_t)p->m), n = 0;
    double *sign = arena_array(w->a, double, 2 * (size_t)p->m), big = vec_max(p->b, p->m);
    for (int i = 0; i < p->n; i++) {
        if (p->cone[i].kind == CONE_GIVEN)
            continue;
        at[n] = p->cone[i].row;
        sign[n++] = 1;
        if (p->cone[i].kind == CONE_BILATERAL) {
            at[n] = p->cone[i].row;
            sign[n++] = -1;
        }
    }
    lemke l = { n, 2 * n + 2, arena_array(w->a, double, (size_t)n *(2 * n + 2)), arena_array(w->a, int, n) };
    for (int i = 0; i < n; i++) {
        double *t = l.T + (size_t)i * l.cols, s = sign[i] / sqrt(p->W[(size_t)at[i] * p->m + at[i]]);
        l.basis[i] = i;
        t[i] = 1;
        for (int j = 0; j < n; j++)
            t[n + j] = -s * sign[j] * p->W[(size_t)at[i] * p->m + at[j]] /
                       sqrt(p->W[(size_t)at[j] * p->m + at[j]]);
        t[2 * n] = -1;
        t[2 * n + 1] = s * p->b[at[i]] / (big > 0 ? big : 1);
    }
    bool ok = lemke_run(&l);
    memset(p->r, 0, (size_t)p->m * sizeof *p->r);
    for (int i = 0; i < n; i++) {
        int j = l.basis[i] - n;
        if (j >= 0 && j < n)
            p->r[at[j]] += sign[j] * big * l.T[(size_t)i * l.cols + l.cols - 1] /
                           sqrt(p->W[(size_t)at[j] * p->m + at[j]]);
    }
    arena_release(w->a, mark);
    velocity(p);
    return ok;
}

/* Where gradients depend on each other the reactions are not unique: take the shortest ones on all contacts
 * that stay closed, when they only push. */
static void shortest(contact_problem *p, contact_work *w, double tol)
{
    double *keep = w->z, top = vec_max(p->b, p->m);
    memcpy(keep, p->r, (size_t)p->m * sizeof *keep);
    for (int i = 0; i < p->m; i++)
        w->in[i] = fabs(p->u[i]) <= 1e-10 * top;
    solve_on(p, w, w->in);
    if (contact_residual(p) <= tol)
        return;
    memcpy(p->r, keep, (size_t)p->m * sizeof *keep);
    velocity(p);
    contact_residual(p);
}

static bool solve_frictionless(contact_problem *p, contact_work *w, double tol)
{
    p->solver = "active set";
    if (solve_primal_dual(p, w, tol)) {
        int idle = 0;
        for (int i = 0; i < p->n; i++)
            idle += !w->in[p->cone[i].row] && fabs(p->u[p->cone[i].row]) <= 1e-10 * vec_max(p->b, p->m);
        if (idle)
            shortest(p, w, tol);
        return true;
    }
    p->solver = "Lemke";
    if (solve_lemke(p, w)) {
        active_rows(p, w->in);
        solve_on(p, w, w->in);
        if (contact_residual(p) > tol) {
            solve_lemke(p, w);
            contact_residual(p);
        }
        shortest(p, w, tol);
        if (p->residual <= tol)
            return true;
    }
    return solve_islands(p, w, tol);
}

/* ---- semi-smooth Newton on the natural map (Alart and Curnier) ---- */
static void newton_row(double *J, const double *W, double rho, int m)
{
    for (int j = 0; j < m; j++)
        J[j] = rho * W[j];
}

static void newton_cone(const contact_problem *p, const cone *c, double *J, double *F, double *x)
{
    int m = p->m, k = cone_normal(c), at = c->row;
    const double *W = p->W + (size_t)at * m, *r = p->r + at, *u = p->u + at;
    double *Jn = J + (size_t)at * m, rn = 0;
    if (k) {
        double rho = 1 / W[at];
        rn = r[0];
        if (c->kind == CONE_BILATERAL || rn - rho * u[0] > 0) {
            newton_row(Jn, W, rho, m);
            F[at] = rho * u[0];
        } else {
            memset(Jn, 0, (size_t)m * sizeof *J);
            Jn[at] = 1;
            F[at] = rn;
            if (!c->dir)
                rn = 0;
        }
    }
    if (c->d == 0)
        return;
    double bound = c->mu * fabs(rn) + c->radius, sg = rn < 0 ? -c->mu : c->mu, rho = 1 / diagonal(p, c), nx;
    for (int j = 0; j < c->d; j++)
        x[j] = r[k + j] - rho * u[k + j];
    nx = length(x, c->d);
    for (int j = 0; j < c->d; j++) {
        double *Jt = J + (size_t)(at + k + j) * m;
        int row = at + k + j;
        if (c->dir || nx > bound) {
            double xj = c->dir ? -c->dir[j] : x[j] / nx, f = c->dir ? 0 : bound / nx;
            memset(Jt, 0, (size_t)m * sizeof *Jt);
            for (int i = 0; i < c->d && f > 0; i++) {
                double g = f * ((i == j) - xj * x[i] / nx);
                vec_axpy(Jt, g * rho, W + (size_t)(k + i) * m, m);
                Jt[at + k + i] -= g;
            }
            Jt[row] += 1;
            if (k && rn != 0)
                Jt[at] -= xj * sg;
            F[row] = r[k + j] - bound * xj;
        } else {
            newton_row(Jt, W + (size_t)(k + j) * m, rho, m);
            F[row] = rho * u[k + j];
        }
    }
}

static bool newton_step(contact_problem *p, contact_work *w, arena *a)
{
    int m = p->m;
    double *J = w->A, *F = w->x;
    for (int i = 0; i < p->n; i++)
        newton_cone(p, &p->cone[i], J, F, w->y);
    for (int i = 0; i < m; i++)
        F[i] = -F[i];
    return least_norm(J, F, m, m, a);
}

/* least-norm steps cost m^3: for few rows only */
static bool m_small(const contact_problem *p)
{
    return p->m <= 60;
}

static bool solve_newton(contact_problem *p, contact_work *w, double tol, int most)
{
    double best = contact_residual(p), *keep = w->z;
    for (int it = 0; it < most; it++) {
        arena_pos mark = arena_mark(w->a);
        bool ok = newton_step(p, w, w->a);
        arena_release(w->a, mark);
        if (!ok)
            return false;
        memcpy(keep, p->r, (size_t)p->m * sizeof *keep);
        double step = 1;
        for (int half = 0; half < 8; half++, step *= 0.5) {
            for (int i = 0; i < p->m; i++)
                p->r[i] = keep[i] + step * w->x[i];
            velocity(p);
            if (contact_residual(p) <= tol)
                return true;
            if (p->residual < best)
                break;
        }
        p->sweeps++;
        if (!(p->residual < best)) {
            memcpy(p->r, keep, (size_t)p->m * sizeof *keep);
            velocity(p);
            contact_residual(p);
            return false;
        }
        best = p->residual;
    }
    return false;
}

/* Gauss-Seidel from the start at hand, then what is exact; where the law hangs on the speed, Gauss-Seidel and
 * Newton in turn */
static bool solve_friction(contact_problem *p, contact_work *w, double tol)
{
    bool of_speed = false;
    for (int i = 0; i < p->n; i++)
        of_speed |= p->cone[i].of_speed && !p->cone[i].dir;
    p->solver = "Gauss-Seidel";
    velocity(p);
    if (solve_sweeps(p, w, tol, of_speed ? 64 : 32))
        return true;
    if (!of_speed && solve_islands(p, w, tol))
        return true;
    p->solver = "Gauss-Seidel with Newton";
    for (int i = 0, most = p->rounds ? p->rounds : of_speed ? 40 : 1; i < most; i++) {
        if ((of_speed || m_small(p)) && solve_newton(p, w, tol, 20))
            return true;
        if (solve_sweeps(p, w, tol, 32 * (i + 1)))
            return true;
    }
    return false;
}

bool contact_solve(contact_problem *p, contact_work *w, double tol)
{
    p->residual = 0;
    p->worst = 0;
    p->sweeps = 0;
    p->choices = 0;
    p->fine = reaction_fine(tol);
    p->solver = "closed form";
    if (p->n == 0)
        return true;
    for (int i = 0; i < p->n; i++)
        if (cone_normal(&p->cone[i]) && !(p->W[(size_t)p->cone[i].row * p->m + p->cone[i].row] > 0)) {
            p->residual = INFINITY;
            p->worst = i;
            return false;
        }
    if (p->n == 1) {
        local_solve(p, 0, p->b, p->r, w->local);
        velocity(p);
        return contact_residual(p) <= fmax(tol, 1e-11);
    }
    bool rough = false;
    for (int i = 0; i < p->n; i++)
        rough |= p->cone[i].d > 0 && (p->cone[i].of_speed || p->cone[i].mu != 0 || p->cone[i].radius != 0);
    return rough ? solve_friction(p, w, tol) : solve_frictionless(p, w, tol);
}

/* ---- Uzawa ---- */
/* The step of rows at..at + n: by their own block, as the gap and the slip of a contact may be in units that
   have nothing to do with each other. */
static double uzawa_step(const contact_problem *p, int at, int n, double stiffness)
{
    double own = 0;
    for (int j = at; j < at + n; j++) {
        double s = 0;
        for (int i = at; i < at + n; i++)
            s += fabs(p->W[(size_t)j * p->m + i]);
        own = larger(own, s);
    }
    if (p->unit)
        stiffness /= p->unit[at] * p->unit[at];
    return stiffness < 1 / own ? stiffness : 1 / own;
}

static void uzawa_move(contact_problem *p, int row, double dr)
{
    for (int i = 0; dr != 0 && i < p->m; i++)
        p->u[i] += p->W[(size_t)i * p->m + row] * dr;
}

/* multipliers of one contact after a step of size rho, with the velocities of all others as they are */
static void uzawa_cone(contact_problem *p, const cone *c, double stiffness)
{
    int k = cone_normal(c);
    double x2 = 0, *r = p->r + c->row, *u = p->u + c->row, old[8];
    memcpy(old, r, (size_t)cone_rows(c) * sizeof *old);
    if (k) {
        double rho = uzawa_step(p, c->row, 1, stiffness);
        r[0] = c->kind == CONE_BILATERAL ? r[0] - rho * u[0] : positive(r[0] - rho * u[0]);
        uzawa_move(p, c->row, r[0] - old[0]);
    }
    if (c->d == 0)
        return;
    double bound = c->mu * fabs(k ? r[0] : 0) + c->radius, f,
           rho = uzawa_step(p, c->row + k, c->d, stiffness);
    for (int j = k; j < k + c->d; j++) {
        r[j] -= rho * u[j];
        x2 += r[j] * r[j];
    }
    f = x2 > bound * bound ? bound / sqrt(x2) : 1;
    for (int j = k; j < k + c->d; j++)
        r[j] = c->dir ? -bound * c->dir[j - k] : f * r[j];
    for (int j = k; j < k + c->d; j++)
        uzawa_move(p, c->row + j, r[j] - old[j]);
}

bool contact_uzawa(contact_problem *p, contact_work *w, double tol, double stiffness)
{
    enum { MOST = 200000 };
    p->residual = 0;
    p->worst = 0;
    p->sweeps = 0;
    p->choices = 0;
    p->solver = "Uzawa";
    velocity(p);
    for (int i = 0; i < p->n; i++)
        if (cone_rows(&p->cone[i]) > 8) {
            p->worst = i;
            p->residual = INFINITY;
            return false;
        }
    while (contact_residual(p) > tol && p->sweeps < MOST) {
        arena_tick(w->a, (int64_t)p->m * p->m);
        for (int i = 0; i < p->n; i++)
            uzawa_cone(p, &p->cone[i], stiffness);
        if (++p->sweeps % 16 == 0)
            velocity(p);
    }
    velocity(p);
    return contact_residual(p) <= 2 * tol;
}
