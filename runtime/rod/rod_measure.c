/* rod_measure: writhe and twist of a rod. */
#include "rod.h"
#include "base/tolerances.h"
#include <math.h>
#include <string.h>

/* The signed area of a triangle on the unit sphere, accurate to rounding also for the many thin ones. */
static double sphere_area(const double *a, const double *b, const double *c)
{
    double bc[3], na = norm3(a), nb = norm3(b), nc = norm3(c);
    cross3(b, c, bc);
    double y = dot3(a, bc), x = na * nb * nc + dot3(a, b) * nc + dot3(b, c) * na + dot3(c, a) * nb;
    return x == 0 && y == 0 ? 0 : 2 * atan2(y, x);
}

/* The Gauss integral of two straight pieces, exactly: the area of their quadrangle on the sphere. */
static double gauss_area(const double *a, const double *b, const double *c, const double *d)
{
    double r13[3], r14[3], r23[3], r24[3];
    for (int k = 0; k < 3; k++) {
        r13[k] = c[k] - a[k];
        r14[k] = d[k] - a[k];
        r23[k] = c[k] - b[k];
        r24[k] = d[k] - b[k];
    }
    if (norm3(r14) < CLOSED_ROD * norm3(r13))
        return 0; /* in a closed rod, the first and last pieces lie in a plane */
    return -(sphere_area(r13, r14, r24) + sphere_area(r13, r24, r23));
}

/* For the polygon through every k-th point. */
static double polygon_writhe(const double *r, int n, int every)
{
    double sum = 0;
    int to = 3 * every;
    for (int i = 0; i + every < n; i += every)
        for (int j = i + 2 * every; j + every < n; j += every)
            sum += gauss_area(r + 3 * i, r + 3 * i + to, r + 3 * j, r + 3 * j + to);
    return sum / (2 * M_PI);
}

double rod_writhe_nodes(const rod_result *x, int rod, int every)
{
    return polygon_writhe(x->r + 3 * x->mesh[rod].first, x->mesh[rod].nn, every);
}

/* A point in an element, by the polynomial through its nodes with the slopes R v there. */
static void between(const rod_mesh *m, const rod_result *y, int e, double part, double *x)
{
    const double *node = m->s + 3 * e;
    double s = node[0] + part * (node[3] - node[0]);
    x[0] = x[1] = x[2] = 0;
    for (int a = 0; a < ROD_NODES; a++) {
        const double *r = y->r + 3 * (m->first + 3 * e + a);
        double l = 1, slope = 0, R[9];
        rod_strain v;
        for (int b = 0; b < ROD_NODES; b++)
            if (b != a) {
                l *= (s - node[b]) / (node[a] - node[b]);
                slope += 1 / (node[a] - node[b]);
            }
        quat_matrix(y->q + 4 * (m->first + 3 * e + a), R);
        rod_element_strain(m, e, y->r, y->q, a / 3.0, &v);
        for (int k = 0; k < 3; k++)
            x[k] += l * l * ((1 - 2 * (s - node[a]) * slope) * r[k] + (s - node[a]) * dot3(R + 3 * k, v.v));
    }
}

static double refined(arena *a, const rod_mesh *m, const rod_result *y, int pieces)
{
    arena_pos mark = arena_mark(a);
    int n = pieces * (m->nn - 1) + 1;
    double *x = arena_array(a, double, 3 * n);
    for (int i = 0; i < n; i++) {
        int e = i / (3 * pieces) < m->ne ? i / (3 * pieces) : m->ne - 1;
        between(m, y, e, (double)i / (3 * pieces) - e, x + 3 * i);
    }
    double w = polygon_writhe(x, n, 1);
    arena_release(a, mark);
    return w;
}

/* For the smooth line: the error of polygons with 1, 2 and 4 pieces between nodes is a series in the square
   of their length, so extrapolation removes it. Long rods get fewer pieces. */
double rod_writhe(arena *scratch, const rod_result *x, int rod)
{
    enum { LONG = 800, VERY_LONG = 2000 };
    const rod_mesh *m = &x->mesh[rod];
    double one = rod_writhe_nodes(x, rod, 1);
    if (m->nn > VERY_LONG)
        return one;
    double two = refined(scratch, m, x, 2), ab = (4 * two - one) / 3;
    if (m->nn > LONG)
        return ab;
    double four = refined(scratch, m, x, 4), bc = (4 * four - two) / 3;
    return (16 * bc - ab) / 15;
}

/* Rotation of the section about its axis: the integral of u3. */
double rod_twist(const rod_result *x, int rod)
{
    const rod_mesh *m = &x->mesh[rod];
    double sum = 0;
    for (int e = 0; e < m->ne; e++)
        for (int g = 0; g < ROD_GAUSS; g++) {
            rod_strain s;
            rod_element_strain(m, e, x->r, x->q, rod_gauss_x[g], &s);
            sum += rod_gauss_w[g] * (m->s[3 * e + 3] - m->s[3 * e]) * s.u[2];
        }
    return sum / (2 * M_PI);
}

/* ---- momentum ---- */
void rod_momentum(const rod_result *x, int rod, double *p, double *L)
{
    const rod_mesh *m = &x->mesh[rod];
    memset(p, 0, 3 * sizeof *p);
    memset(L, 0, 3 * sizeof *L);
    for (int e = 0; e < m->ne; e++) {
        int k0 = m->first + 3 * e;
        double h = m->s[3 * e + 3] - m->s[3 * e], y[3], R[9], pi[3];
        for (int i = 0; i < 4; i++) {
            for (int j = 0; j < 4; j++) {
                cross3(x->r + 3 * (k0 + i), x->v + 6 * (k0 + j), y);
                for (int k = 0; k < 3; k++) {
                    p[k] += h * rod_mass_at(m, e, i, j) * x->v[6 * (k0 + j) + k];
                    L[k] += h * rod_mass_at(m, e, i, j) * y[k];
                }
            }
            const double *lump = i || !e ? rod_lump_at(m, 3 * e + i) : NULL, *spin = x->v + 6 * (k0 + i) + 3;
            for (int k = 0; k < 3; k++)
                pi[k] = h * rod_piece[i] * dot3(rod_inertia_at(m, 3 * e + i) + 3 * k, spin) +
                        (lump ? dot3(lump + 1 + 3 * k, spin) : 0);
            cross3(x->r + 3 * (k0 + i), x->v + 6 * (k0 + i), y);
            for (int k = 0; lump && k < 3; k++) {
                p[k] += lump[0] * x->v[6 * (k0 + i) + k];
                L[k] += lump[0] * y[k];
            }
            quat_matrix(x->q + 4 * (k0 + i), R);
            for (int k = 0; k < 3; k++)
                L[k] += dot3(R + 3 * k, pi);
        }
    }
}
