/* rod_spline: a smooth curve through points, as a function of arc length: cubic between the points, with two
   continuous derivatives; chord lengths as knots. */
#include "rod_work.h"
#include "base/tolerances.h"
#include <math.h>
#include <string.h>

/* Pieces first .. last - 1 form the curve; m: second derivatives by u. */
struct rod_spline {
    int first, last;
    double *u, *x, *m, *arc;
};

static double chord(const double *a, const double *b)
{
    double d[3] = { b[0] - a[0], b[1] - a[1], b[2] - a[2] };
    return norm3(d);
}

/* Second derivatives of one coordinate; the first two pieces are one cubic, and so are the last two. */
static void bend(const double *u, const double *x, double *m, int n, double *pivot, double *rhs)
{
#define H(i)     (u[(i) + 1] - u[i])
#define SLOPE(i) ((x[3 * (i) + 3] - x[3 * (i)]) / H(i))
    double a = H(0) / H(1), b = H(n - 2) / H(n - 3);
    for (int i = 1; i < n - 1; i++) {
        double low = i == 1       ? 0
                     : i == n - 2 ? H(i - 1) - b * H(i)
                                  : H(i - 1),
               above = i == 2 ? H(1) - a * H(0) : H(i - 1);
        pivot[i] = 2 * (H(i - 1) + H(i)) + (i == 1 ? (1 + a) * H(0) : 0) + (i == n - 2 ? (1 + b) * H(i) : 0);
        rhs[i] = 6 * (SLOPE(i) - SLOPE(i - 1));
        if (i == 1)
            continue;
        double k = low / pivot[i - 1];
        pivot[i] -= k * above;
        rhs[i] -= k * rhs[i - 1];
    }
    for (int i = n - 2; i > 0; i--) {
        double above = i == 1 ? H(1) - a * H(0) : H(i);
        m[3 * i] = (rhs[i] - (i < n - 2 ? above * m[3 * i + 3] : 0)) / pivot[i];
    }
    m[0] = (1 + a) * m[3] - a * m[6];
    m[3 * (n - 1)] = (1 + b) * m[3 * (n - 2)] - b * m[3 * (n - 3)];
#undef H
#undef SLOPE
}

static void piece(const rod_spline *c, int i, double v, double *x, double *d)
{
    double h = c->u[i + 1] - c->u[i], a = (c->u[i + 1] - v) / h, b = 1 - a;
    for (int k = 0; k < 3; k++) {
        double p = c->x[3 * i + k], q = c->x[3 * i + 3 + k], m = c->m[3 * i + k], n = c->m[3 * i + 3 + k];
        if (x)
            x[k] = a * p + b * q + ((a * a * a - a) * m + (b * b * b - b) * n) * h * h / 6;
        if (d)
            d[k] = (q - p) / h + ((1 - 3 * a * a) * m + (3 * b * b - 1) * n) * h / 6;
    }
}

/* Arc length from the start of piece i to v. */
static double arc_to(const rod_spline *c, int i, double v)
{
    static const double at[5] = { 0.04691007703066800360, 0.23076534494715845448, 0.5, 0.76923465505284154552,
                                  0.95308992296933199640 };
    static const double weight[5] = { 0.11846344252809454376, 0.23931433524968323402, 0.28444444444444444444,
                                      0.23931433524968323402, 0.11846344252809454376 };
    double sum = 0, d[3], h = v - c->u[i];
    for (int g = 0; g < 5; g++) {
        piece(c, i, c->u[i] + at[g] * h, NULL, d);
        sum += weight[g] * h * norm3(d);
    }
    return sum;
}

/* If the last point equals the first one, the curve is closed smoothly: points of one end are repeated beyond
   the other. */
rod_spline *rod_spline_new(arena *a, const double *points, int n)
{
    enum { BEYOND = 20 };
    rod_spline *c = arena_make(a, rod_spline);
    double all = 0;
    for (int i = 1; i < n; i++)
        all += chord(points + 3 * i - 3, points + 3 * i);
    int more = chord(points, points + 3 * (n - 1)) > CLOSED_SHAPE * all ? 0
               : n - 1 < BEYOND                                         ? n - 1
                                                                        : BEYOND,
        N = n + 2 * more;
    c->first = more;
    c->last = more + n - 1;
    c->u = arena_array(a, double, N);
    c->x = arena_array(a, double, 3 * N);
    c->m = arena_array(a, double, 3 * N);
    c->arc = arena_array(a, double, N);
    double *pivot = arena_array(a, double, N), *rhs = arena_array(a, double, N);
    for (int i = 0; i < N; i++) {
        int from = more ? (i - more + 2 * (n - 1)) % (n - 1) : i;
        memcpy(c->x + 3 * i, points + 3 * from, 3 * sizeof *points);
        if (i)
            c->u[i] = c->u[i - 1] + chord(c->x + 3 * i - 3, c->x + 3 * i);
    }
    for (int k = 0; k < 3; k++)
        bend(c->u, c->x + k, c->m + k, N, pivot, rhs);
    for (int i = c->first; i < c->last; i++)
        c->arc[i + 1] = c->arc[i] + arc_to(c, i, c->u[i + 1]);
    return c;
}

double rod_spline_length(const rod_spline *c)
{
    return c->arc[c->last];
}

void rod_spline_at(const rod_spline *c, double s, double *x, double *tangent)
{
    int i = c->first;
    double d[3];
    for (int step = c->last - c->first; step > 0; step /= 2)
        while (i + step < c->last && c->arc[i + step] <= s)
            i += step;
    double h = c->u[i + 1] - c->u[i], v = c->u[i] + h * (s - c->arc[i]) / (c->arc[i + 1] - c->arc[i]);
    for (int k = 0; k < 8; k++) {
        piece(c, i, v, NULL, d);
        v -= (c->arc[i] + arc_to(c, i, v) - s) / norm3(d);
    }
    piece(c, i, v, x, d);
    double n = norm3(d);
    for (int k = 0; tangent && k < 3; k++)
        tangent[k] = d[k] / n;
}
