/* rod_measure: writhe and twist of a rod. */
#include "rod.h"
#include <math.h>
#include <string.h>

/* the Gauss integral of two straight pieces, exactly: the area of their quadrangle on the sphere */
static double gauss_area(const double *a, const double *b, const double *c, const double *d)
{
    double r13[3], r14[3], r23[3], r24[3], r12[3], r34[3], n[4][3], x[3], sum = 0;
    for (int k = 0; k < 3; k++) {
        r13[k] = c[k] - a[k]; r14[k] = d[k] - a[k]; r23[k] = c[k] - b[k]; r24[k] = d[k] - b[k];
        r12[k] = b[k] - a[k]; r34[k] = d[k] - c[k];
    }
    cross3(r13, r14, n[0]); cross3(r14, r24, n[1]); cross3(r24, r23, n[2]); cross3(r23, r13, n[3]);
    for (int i = 0; i < 4; i++) {
        double k = norm3(n[i]);
        if (!(k > 1e-300)) return 0;
        for (int j = 0; j < 3; j++) n[i][j] /= k;
    }
    for (int i = 0; i < 4; i++) sum += asin(fmax(-1, fmin(1, dot3(n[i], n[(i + 1) % 4]))));
    cross3(r34, r12, x);
    double s = dot3(x, r13);
    return s > 0 ? sum : s < 0 ? -sum : 0;
}

double rod_writhe(const rod_result *x, int rod)
{
    const rod_mesh *m = &x->mesh[rod];
    const double *r = x->r + 3 * m->first;
    double sum = 0;
    for (int i = 0; i + 1 < m->nn; i++)
        for (int j = i + 2; j + 1 < m->nn; j++) sum += gauss_area(r + 3 * i, r + 3 * i + 3, r + 3 * j, r + 3 * j + 3);
    return sum / (2 * M_PI);
}

/* of the section about its own axis: the integral of u3 */
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
