/* series_root: zeros of polynomials on an interval.  In Bernstein form a polynomial lies between its
   coefficients, so what is positive there has no zero; else the interval is halved.  Double zeros cannot be
   missed. */
#include <math.h>
#include <string.h>
#include "taylor.h"
#include "tolerances.h"

enum { MAX_DEGREE = 80, MAX_DEPTH = 60 };

static double poly(const double *c, int n, double u)
{
    return series_value(c, n, u);
}

/* one change of sign in [a, b]: Newton, kept inside by bisection */
static double refine(const double *c, int n, double a, double b)
{
    double x = 0.5 * (a + b);
    for (int it = 0; it < 100 && b > a; it++) {
        double y = poly(c, n, x), d = series_rate(c, n, x), next;
        if (y > 0)
            a = x;
        else if (y < 0)
            b = x;
        else
            return x;
        next = x - y / d;
        if (!(next > a && next < b))
            next = 0.5 * (a + b);
        if (fabs(next - x) <= ROUND_HALF * fabs(x) || next == x)
            return next;
        x = next;
    }
    return x;
}

/* coefficients on [0, 1] */
static void to_bernstein(const double *c, int n, double *b)
{
    double binomial[MAX_DEGREE + 1];
    binomial[0] = 1;
    for (int k = 1; k <= n; k++)
        binomial[k] = binomial[k - 1] * (n - k + 1) / k;
    for (int k = 0; k <= n; k++)
        b[k] = c[k] / binomial[k];
    for (int l = 1; l <= n; l++)
        for (int k = n; k >= l; k--)
            b[k] += b[k - 1];
}

static int changes(const double *b, int n, double zero, bool *dips)
{
    int count = 0, last = 1;
    *dips = false;
    for (int k = 0; k <= n; k++) {
        int s = b[k] > zero ? 1 : b[k] < -zero ? -1 : 0;
        *dips |= s < 0;
        if (s && s != last) {
            count++;
            last = s;
        }
    }
    return count;
}

/* the left half first; b holds the coefficients on [lo, hi] and is destroyed */
static double search(const double *c, double *b, int n, double lo, double hi, double zero, int depth)
{
    bool dips;
    int count = changes(b, n, zero, &dips);
    if (!dips)
        return INFINITY;
    if (count == 1 && b[0] > zero && b[n] < -zero)
        return refine(c, n, lo, hi);
    if (depth == MAX_DEPTH)
        return lo;
    double right[MAX_DEGREE + 1], left[MAX_DEGREE + 1], mid = 0.5 * (lo + hi);
    /* de Casteljau: left half in place, right half read off the diagonal */
    memcpy(left, b, ((size_t)n + 1) * sizeof *b);
    for (int k = 0; k <= n; k++) {
        right[n - k] = left[n];
        for (int i = n; i > k; i--)
            left[i] = 0.5 * (left[i] + left[i - 1]);
    }
    double at = search(c, left, n, lo, mid, zero, depth + 1);
    return at < INFINITY ? at : search(c, right, n, mid, hi, zero, depth + 1);
}

double series_crossing(const double *c, int order, double h, double zero)
{
    double p[MAX_DEGREE + 1], b[MAX_DEGREE + 1], scale = 1, rest = 0;
    int m = 0, n;
    for (int k = 0; k <= order; k++, scale *= h)
        p[k] = c[k] * scale;
    while (m <= order && !(fabs(p[m]) > zero))
        m++;
    if (m > order)
        return INFINITY;
    if (p[m] < 0)
        return 0;
    n = order - m;
    while (n > 0 && p[m + n] == 0)
        n--;
    for (int k = 1; k <= n; k++)
        rest += fmin(p[m + k], 0);
    if (p[m] + rest > 0)
        return INFINITY;
    to_bernstein(p + m, n, b);
    double u = search(p + m, b, n, 0, 1, m ? ROUND_HALF * p[m] : fmin(zero, ROOT_ZERO_MOST * p[m]), 0);
    return u < INFINITY ? u * h : INFINITY;
}

int series_sign(const double *c, int from, int order, double h, double zero)
{
    double scale = pow(h, from);
    for (int k = from; k <= order; k++, scale *= h)
        if (fabs(c[k] * scale) > zero)
            return c[k] > 0 ? 1 : -1;
    return 0;
}
