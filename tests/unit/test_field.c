/* Chebyshev series, difference weights, and the field programs of small models. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include "field/field.h"

static void close_to(double a, double b, double tol)
{
    if (!(fabs(a - b) <= tol))
        fail_msg("%.17g is not %.17g", a, b);
}

static void fit_holds_polynomials(void **state)
{
    (void)state;
    double t[12], y[12], c[12];
    cheb_points(t, 12);
    for (int k = 0; k < 12; k++)
        y[k] = 3 - t[k] + 2 * pow(t[k], 7);
    cheb_fit(y, c, 12);
    for (double x = -1; x <= 1; x += 0.125)
        close_to(cheb_value(c, 12, x), 3 - x + 2 * pow(x, 7), 1e-14);
    for (int k = 8; k < 12; k++)
        close_to(c[k], 0, 1e-15);
}

/* On [1, 3]: the integral of the derivative is the function. */
static void derivative_and_integral_undo_each_other(void **state)
{
    (void)state;
    double t[20], y[20], c[20], d[20], back[20];
    cheb_points(t, 20);
    for (int k = 0; k < 20; k++)
        y[k] = exp(2 + t[k]);
    cheb_fit(y, c, 20);
    cheb_derivative(c, d, 20, 1);
    close_to(cheb_value(d, 20, 0.3), exp(2.3), 1e-11);
    cheb_integral(d, back, 20, 1, exp(1));
    for (double x = -1; x <= 1; x += 0.25)
        close_to(cheb_value(back, 20, x), exp(2 + x), 1e-12);
    cheb_derivative(c, c, 20, 1); /* in place */
    for (int k = 0; k < 20; k++)
        close_to(c[k], d[k], 0);
}

static void powers_are_those_of_x(void **state)
{
    (void)state;
    double t[8], y[8], c[8], p[8];
    cheb_points(t, 8);
    for (int k = 0; k < 8; k++) {
        double x = 0.5 + 0.25 * t[k]; /* on [1/4, 3/4] */
        y[k] = 1 - 2 * x + 5 * x * x * x;
    }
    cheb_fit(y, c, 8);
    cheb_powers(c, 8, 0.25, 0.75, p);
    const double want[8] = { 1, -2, 0, 5, 0, 0, 0, 0 };
    for (int k = 0; k < 8; k++)
        close_to(p[k], want[k], 1e-9);
}

/* Weights for uneven nodes are exact for polynomials of their degree. */
static void weights_are_exact(void **state)
{
    (void)state;
    const double x[6] = { 0, 0.3, 0.35, 0.9, 1.2, 2 };
    for (int order = 0; order <= 4; order++) {
        double w[16], s = 0, z = 0.7, want = 1;
        stencil_weights(x, 6, z, order, w);
        for (int k = 0; k < 6; k++)
            s += w[k] * pow(x[k], 5);
        for (int k = 0; k < order; k++)
            want *= 5 - k;
        close_to(s, want * pow(z, 5 - order), 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fit_holds_polynomials),
        cmocka_unit_test(derivative_and_integral_undo_each_other),
        cmocka_unit_test(powers_are_those_of_x),
        cmocka_unit_test(weights_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
