/* Rattleback and tippe top: the models of examples/ against equations of motion that were derived by hand for
   each of them, from balances of momentum about the point that touches, and integrated by Runge and Kutta's
   method: states at times, and the times at which the spin reverses and the top turns upside down.  Nothing
   of CDL is used for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>
#include "cdl.h"

enum { MOST = 8 };

/* ---- vectors ---- */

static double dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void cross(const double *a, const double *b, double *c)
{
    for (int i = 0; i < 3; i++)
        c[i] = a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3];
}

static double det(const double M[3][3])
{
    double c[3];
    cross(M[1], M[2], c);
    return dot(M[0], c);
}

/* M x = b by Cramer's rule */
static void solve(const double M[3][3], const double *b, double *x)
{
    for (int k = 0; k < 3; k++) {
        double N[3][3];
        memcpy(N, M, sizeof N);
        for (int i = 0; i < 3; i++)
            N[i][k] = b[i];
        x[k] = det(N) / det(M);
    }
}

/* ---- Runge and Kutta ---- */

typedef void rates(const double *y, double *dy);

static void rk_step(rates *f, int n, double h, double *y)
{
    static const double at[4] = { 0, 0.5, 0.5, 1 }, weight[4] = { 1, 2, 2, 1 };
    double k[MOST] = { 0 }, sum[MOST] = { 0 }, z[MOST];
    for (int s = 0; s < 4; s++) {
        for (int i = 0; i < n; i++)
            z[i] = y[i] + at[s] * h * k[i];
        f(z, k);
        for (int i = 0; i < n; i++)
            sum[i] += weight[s] * k[i];
    }
    for (int i = 0; i < n; i++)
        y[i] += h / 6 * sum[i];
}

/* From 0 to t in steps of h.  *zero: the first time at which component `watch` comes to 0, between two steps
   by a straight line, which is off by a part of h^2. */
static void integrate(rates *f, int n, double h, double t, double *y, int watch, double *zero)
{
    int steps = (int)lrint(t / h);
    *zero = NAN;
    for (int i = 0; i < steps; i++) {
        double was = y[watch];
        rk_step(f, n, h, y);
        if (isnan(*zero) && was * y[watch] <= 0)
            *zero = h * (i + was / (was - y[watch]));
    }
}

/* ---- rattleback ---- */

/* In the frame of the stone, of mass 1: y = angular velocity w, vertical u.  From the centre of mass to the
   point that touches: r = h e3 - D u/sqrt(u.D u).  It rolls: v = r x w.  Its force is F = v' + w x v + g u,
   and J w' + w x J w = r x F. */
static void rattleback(const double *y, double *dy)
{
    static const double J[3][3] = { { 2e-4, -2e-5, 0 }, { -2e-5, 1.6e-3, 0 }, { 0, 0, 1.7e-3 } },
                        D[3] = { 0.04, 9e-4, 4e-4 };
    const double *w = y, *u = y + 3, h = 0.01, g = 9.81;
    double du[3], Du[3], Ddu[3], r[3], dr[3], v[3], a[3], b[3], Jw[3], F[3], M[3][3], right[3];
    cross(u, w, du);
    for (int i = 0; i < 3; i++) {
        Du[i] = D[i] * u[i];
        Ddu[i] = D[i] * du[i];
        Jw[i] = dot(J[i], w);
    }
    double s = sqrt(dot(u, Du));
    for (int i = 0; i < 3; i++) {
        r[i] = (i == 2 ? h : 0) - Du[i] / s;
        dr[i] = -Ddu[i] / s + Du[i] * dot(u, Ddu) / (s * s * s);
    }
    cross(r, w, v);
    cross(dr, w, a);
    cross(w, v, b);
    for (int i = 0; i < 3; i++)
        F[i] = a[i] + b[i] + g * u[i]; /* but for r x w' */
    cross(r, F, right);
    cross(w, Jw, b);
    for (int i = 0; i < 3; i++) {
        right[i] -= b[i];
        for (int j = 0; j < 3; j++) /* r x (w' x r) = (r.r) w' - r (r.w') */
            M[i][j] = J[i][j] + (i == j ? dot(r, r) : 0) - r[i] * r[j];
    }
    solve((const double(*)[3])M, right, dy);
    memcpy(dy + 3, du, sizeof du);
}

/* ---- tippe top ---- */

/* In space: y = angular velocity w, axis k from the centre of mass to the middle of the ball, velocity of the
   centre of mass along the table.  From there to the point that touches: c = d k - R e3.  With mu N q against
   the slip the force is N f, f = (-mu q, 1), and J w' = N c x f.  The ball stays on the table: the height
   R - d k3 gives N = m g - m d k3''. */
static void tippe(const double *y, double *dy)
{
    static const double m = 0.02, R = 0.02, d = 0.003, g = 9.81;
    const double *w = y, *k = y + 3, J = 0.4 * m * R * R;
    double dk[3], ddk[3], c[3] = { d * k[0], d * k[1], d * k[2] - R }, slip[3], f[3] = { 0, 0, 1 }, turn[3],
                          lifts[3];
    cross(w, k, dk);
    cross(w, dk, ddk);
    cross(w, c, slip);
    slip[0] += y[6];
    slip[1] += y[7];
    double speed2 = slip[0] * slip[0] + slip[1] * slip[1];
    for (int i = 0; i < 2; i++) /* mu(v)/v, of mu(v) = 0.3 v/sqrt(v^2 + 0.01) */
        f[i] = -0.3 / sqrt(speed2 + 0.01) * slip[i];
    cross(c, f, turn);
    cross(turn, k, lifts);
    double N = m * (g - d * ddk[2]) / (1 + m * d * lifts[2] / J);
    for (int i = 0; i < 3; i++) {
        dy[i] = N * turn[i] / J;
        dy[3 + i] = dk[i];
    }
    for (int i = 0; i < 2; i++)
        dy[6 + i] = N * f[i] / m;
}

/* ---- the models ---- */

static void errors_shown(void *ud, const char *text, size_t len)
{
    (void)ud;
    fprintf(stderr, "%.*s", (int)len, text);
}

/* the model of an example, run in another way */
static cdl *model_run(const char *name, const char *run)
{
    const char *src = getenv("srcdir");
    char path[4096], text[1 << 14];
    snprintf(path, sizeof path, "%s/examples/%s", src ? src : ".", name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 200, f);
    fclose(f);
    text[n] = 0;
    char *end = strstr(text, "\nrun ");
    assert_non_null(end);
    snprintf(end, 200, "\n%s\n", run);
    cdl *s = cdl_new(NULL);
    cdl_set_callbacks(s, &(cdl_callbacks){ .err = errors_shown });
    assert_int_equal(cdl_run_text(s, name, text, strlen(text)), CDL_OK);
    return s;
}

static double value(cdl *s, const char *form, double t)
{
    char expression[200];
    double x = NAN;
    snprintf(expression, sizeof expression, form, t);
    assert_int_equal(cdl_value(s, expression, &x), CDL_OK);
    return x;
}

static void close_to(double x, double y, double within)
{
    if (!(fabs(x - y) <= within))
        fail_msg("%.15g is not %.15g within %g", x, y, within);
}

static void test_rattleback(void **state)
{
    (void)state;
    double tilt = 0.5 * acos(-1) / 180, reverses;
    cdl *s = model_run("rattleback.cdl", "run rattleback for 5 with events()");
    double y[MOST] = { 0, 0, -5, 0, sin(tilt), cos(tilt) };
    integrate(rattleback, 6, 2e-5, 5, y, 2, &reverses);
    assert_true(y[2] > 1 && reverses > 3 && reverses < 5);
    static const char *const of[6] = { "A'[1](%.17g)",   "A'[2](%.17g)",   "A'[3](%.17g)",
                                       "A[3, 1](%.17g)", "A[3, 2](%.17g)", "A[3, 3](%.17g)" };
    for (int i = 0; i < 6; i++)
        close_to(value(s, of[i], 5), y[i], 1e-7);
    close_to(value(s, "A'[3](%.17g)", reverses), 0, 1e-6 * fabs(value(s, "A''[3](%.17g)", reverses)));
    cdl_free(s);
}

static void test_tippe_top(void **state)
{
    (void)state;
    double tilt = 0.1, k[3] = { 0, -sin(tilt), cos(tilt) }, inverts;
    cdl *s = model_run("tippe_top.cdl", "run tippe for 2 with events()");
    double y[MOST] = { 150 * k[0], 150 * k[1], 150 * k[2], k[0], k[1], k[2] };
    integrate(tippe, 8, 2e-5, 2, y, 5, &inverts);
    assert_true(y[5] < -0.99 && inverts > 0.5 && inverts < 2);
    static const char *const of[5] = { "A[1, 3](%.17g)", "A[2, 3](%.17g)", "A[3, 3](%.17g)", "p'[1](%.17g)",
                                       "p'[2](%.17g)" };
    for (int i = 0; i < 5; i++)
        close_to(value(s, of[i], 2), y[3 + i], 1e-7);
    close_to(value(s, "A'[3](%.17g)", 2), dot(y, y + 3), 1e-5);
    assert_true(value(s, "A[3, 3](%.17g)", inverts - 1e-6) > 0);
    assert_true(value(s, "A[3, 3](%.17g)", inverts + 1e-6) < 0);
    cdl_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_rattleback), cmocka_unit_test(test_tippe_top) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
