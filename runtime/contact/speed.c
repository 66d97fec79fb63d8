/* speed: one contact whose friction depends on the slip speed v, the solution of |u_t(mu(v))| = v. */
#include <math.h>
#include "base/linalg.h"
#include "problem.h"
#include "base/tolerances.h"

static double length(const double *x, int d)
{
    return d == 1 ? fabs(x[0]) : sqrt(vec_dot(x, x, d));
}

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
    return s <= ROUND_50 * length(k->b + n, d) ? 0 : s;
}

static double speed_root(speed_case *k, double lo, double hi, double flo)
{
    for (int i = 0; i < 200 && hi - lo > ROUND_2 * hi; i++) {
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

/* Does the bound change so little with the speed that there is only one solution? Slopes of W bound(v) on a
   coarse grid, for the current normal reaction. */
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

/* The only solution: secant method for F(v) - v, whose slope is near -1. */
static void speed_only(speed_case *k, double v)
{
    double f = speed_at(k, v), g = f - v, slope = -1;
    for (int i = 0; i < 40 && fabs(g) > ROUND_5 * (fabs(v) + fabs(f)); i++) {
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

/* All solutions on a grid of speeds up to that without friction; the one nearest to the previous speed is
   taken. */
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

static void solve_speed(contact_problem *p, int i, const double *A, int lda, const double *b, double *r,
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

bool problem_alone(contact_problem *p, int c, const double *A, int lda, const double *b, double *r,
                   double *work)
{
    if (!problem_of_speed(&p->cone[c]))
        return cone_solve(&p->cone[c], A, lda, b, r, work);
    solve_speed(p, c, A, lda, b, r, work);
    return true;
}
