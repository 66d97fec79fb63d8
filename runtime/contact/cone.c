#include "cone.h"
#include <math.h>
#include <string.h>
#include "base/linalg.h"
#include "base/tolerances.h"

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}
static double positive(double x)
{
    return x > 0 ? x : 0;
}
/* fmin is a function call. */
static inline double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* The length of r - rho u from its square, which underflows for very small numbers. */
static double length_of(double square, const double *r, const double *u, double rho, int d)
{
    double most = 0, s = 0;
    int power;
    if (!(square < SIZE_LEAST))
        return sqrt(square);
    for (int j = 0; j < d; j++)
        most = larger(most, fabs(r[j] - rho * u[j]));
    if (most == 0)
        return 0;
    frexp(most, &power);
    for (int j = 0; j < d; j++) {
        double x = ldexp(r[j] - rho * u[j], -power);
        s += x * x;
    }
    return ldexp(sqrt(s), power);
}

static double length(const double *x, int d)
{
    return d == 1 ? fabs(x[0]) : length_of(vec_dot(x, x, d), x, x, 0, d);
}

/* Normal reaction for a tangential one, from u_n = 0. */
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

/* Slip in a known direction: r_t = -(mu |r_n| + radius) dir, u_n = 0. False: a larger normal force does not
   open the contact (it jams). */
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

/* One tangential component: of the slips in both directions, the one whose velocity has its direction. */
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

/* (S + lambda I) r_t = -c; S is the tangential block for u_n = 0. */
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

/* False position (Illinois variant) needs only a few steps. */
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
        for (i = 0; i < 100 && hi - lo > ROUND_2 * hi; i++) {
            l = (lo * fhi - hi * flo) / (fhi - flo);
            if (!(l > lo && l < hi))
                l = 0.5 * (lo + hi);
            f = slide_at(k, l);
            if (!(fabs(f) > ROUND_1))
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

/* One tangential component: two equations. */
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

/* A bound that does not depend on r_n: friction alone, if the contact stays open with it. */
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

/* ---- accuracy of a solution ---- */
/* For friction alone along one line, both of the following functions in one: rows of blocks have nothing
   else. */
double line_defect(reaction_size *s, const cone *c, double r, double u, double b, double a)
{
    double bound = c->mu * 0 + c->radius, rho = a > 0 ? 1 / a : 0, x = r - rho * u,
           f = fabs(x) > bound ? bound / fabs(x) : 1, side = a > 0 ? fabs(b) / a : 0;
    s->n++;
    s->all += side;
    s->most = larger(s->most, bound);
    s->asked = larger(s->asked, larger(0, smaller(side, bound)));
    return fabs(r - f * x);
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
    x2 = length_of(x2, r + k, u + k, rho, c->d);
    f = x2 > bound ? bound / x2 : 1;
    for (int j = 0; j < c->d; j++) {
        double e = r[k + j] - (c->dir ? -bound * c->dir[j] : f * (r[k + j] - rho * u[k + j]));
        e2 += e * e;
    }
    *scale = larger(*scale, smaller(rho * length(b + k, c->d), bound));
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
    s->asked = larger(s->asked, larger(asked, smaller(side, bound)));
}

double reaction_scale(const reaction_size *s, double least)
{
    return larger(larger(least, s->asked), larger(fmin(s->most, 10 * s->n * s->all), s->fine * s->most));
}

/* ---- its derivative ---- */
cone_mode cone_newton(const cone *o, const double *r, const double *u, double an, double at, bool touching,
                      double *F, double *Fr, double *Fu)
{
    int k = cone_normal(o), m = cone_rows(o), mode = 0;
    double rn = 0, nx = 0;
    memset(Fr, 0, (size_t)m * (size_t)m * sizeof *Fr);
    memset(Fu, 0, (size_t)m * (size_t)m * sizeof *Fu);
    if (k) {
        double rho = 1 / an, x = r[0] - rho * u[0];
        rn = r[0];
        if (o->kind == CONE_BILATERAL || x > 0 || (touching && x == 0)) {
            F[0] = rho * u[0];
            Fu[0] = rho;
            mode = CONE_HELD;
        } else {
            F[0] = rn;
            Fr[0] = 1;
            rn = 0;
            mode = CONE_OPEN;
        }
    }
    if (o->d == 0)
        return mode;
    double bound = o->mu * fabs(rn) + o->radius, sign = rn < 0 ? -o->mu : o->mu, rho = 1 / at;
    for (int j = k; j < m; j++) {
        double x = r[j] - rho * u[j];
        nx += x * x;
    }
    nx = length_of(nx, r + k, u + k, rho, o->d);
    bool slips = o->dir || nx > bound;
    for (int row = k; row < m; row++) {
        if (!slips) {
            F[row] = rho * u[row];
            Fu[row * m + row] = rho;
            continue;
        }
        double e = o->dir ? -o->dir[row - k] : (r[row] - rho * u[row]) / nx, f = o->dir ? 0 : bound / nx;
        for (int i = k; i < m && f > 0 && o->d > 1; i++) {
            double g = f * ((i == row) - e * (r[i] - rho * u[i]) / nx);
            Fu[row * m + i] += g * rho;
            Fr[row * m + i] -= g;
        }
        Fr[row * m + row] += 1;
        if (k && (rn != 0 || (touching && mode == CONE_HELD)))
            Fr[row * m] -= e * sign;
        F[row] = r[row] - bound * e;
    }
    if (!slips)
        return mode | CONE_STICK;
    return mode | CONE_SLIP | (r[k] - rho * u[k] < 0 ? CONE_BACK : 0) |
           (o->d > 1 && !o->dir && bound > 0 ? CONE_TURNS : 0);
}
