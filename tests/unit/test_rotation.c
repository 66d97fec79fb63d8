/* Rotations: Cayley's map and back, rates compared with differences, rotation vectors at all angles,
   orthogonality after many steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "base/rotation.h"
#include "base/tolerances.h"
#include "program/turns.h"

static uint64_t state = 1;
static double uniform(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(state >> 11) / (double)(1ll << 52) - 1;
}

static void draw(double x[3], double size)
{
    for (int k = 0; k < 3; k++)
        x[k] = size * uniform();
}

static double apart(const double *a, const double *b, int n)
{
    double most = 0;
    for (int i = 0; i < n; i++)
        most = fmax(most, fabs(a[i] - b[i]));
    return most;
}

static void test_cayley(void **unused)
{
    (void)unused;
    for (int i = 0; i < 1000; i++) {
        double x[3], C[9], y[3];
        draw(x, i % 2 ? 3 : 1e-9);
        rotation_cayley(x, C);
        assert_true(rotation_defect(C) < 1e-15);
        rotation_uncayley(C, y);
        assert_true(apart(x, y, 3) <= 1e-13 * (1 + fabs(x[0]) + fabs(x[1]) + fabs(x[2])));
        /* a rotation about its axis by 2 atan(|x|/2) */
        double phi[3], angle = 0, size = 0;
        rotation_vector(C, phi);
        for (int k = 0; k < 3; k++) {
            angle += phi[k] * phi[k];
            size += x[k] * x[k];
        }
        assert_true(fabs(sqrt(angle) - 2 * atan(sqrt(size) / 2)) < 1e-14);
        assert_true(phi[0] * x[0] + phi[1] * x[1] + phi[2] * x[2] >= 0);
    }
}

/* A' = A [w], A'' = A ([w]^2 + [w']), by central differences of x + t v + t^2 a/2. */
static void test_rates(void **unused)
{
    (void)unused;
    const double t = 1e-4;
    for (int i = 0; i < 200; i++) {
        double x[3], v[3], a[3], R[3][9], w[3], dw[3], back_v[3], back_a[3];
        draw(x, 1);
        draw(v, 1);
        draw(a, 1);
        for (int s = -1; s <= 1; s++) {
            double y[3];
            for (int k = 0; k < 3; k++)
                y[k] = x[k] + s * t * (v[k] + 0.5 * s * t * a[k]);
            rotation_cayley(y, R[s + 1]);
        }
        memcpy(w, v, sizeof w);
        memcpy(dw, a, sizeof dw);
        rotation_rates(x, w, dw);
        for (int k = 0; k < 3; k++) {
            int j = (k + 1) % 3, l = (k + 2) % 3;
            double first = 0, second = 0; /* Entry (l, j) of A^T A' and of A^T A''. */
            for (int r = 0; r < 3; r++) {
                double at = R[1][3 * r + l], up = R[2][3 * r + j], down = R[0][3 * r + j],
                       mid = R[1][3 * r + j];
                first += at * (up - down) / (2 * t);
                second += at * (up - 2 * mid + down) / (t * t);
            }
            assert_true(fabs(first - w[k]) < 1e-7);
            assert_true(fabs(second - (dw[k] + w[l] * w[j])) < 1e-6);
        }
        memcpy(back_v, w, sizeof w);
        memcpy(back_a, dw, sizeof dw);
        rotation_unrates(x, back_v, back_a);
        assert_true(apart(back_v, v, 3) < 1e-14 && apart(back_a, a, 3) < 1e-14);
    }
}

static void test_vector(void **unused)
{
    (void)unused;
    const double angles[] = {
        0, 1e-300, 1e-16, 1e-9, 2e-9, 1e-5, 2e-5, 0.1, 2, 3, 3.141592, 3.141592653589793
    };
    for (size_t i = 0; i < sizeof angles / sizeof *angles; i++)
        for (int turn = 0; turn < 50; turn++) {
            double u[3], R[9], back[9], phi[3], size;
            draw(u, 1);
            if (turn < 3)
                for (int k = 0; k < 3; k++)
                    u[k] = k == turn;
            size = sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
            for (int k = 0; k < 3; k++)
                u[k] *= angles[i] / size;
            rotation_of_vector(u, R);
            assert_true(rotation_defect(R) < 2e-15);
            rotation_vector(R, phi);
            rotation_of_vector(phi, back);
            assert_true(apart(R, back, 9) < 2e-15);
            if (angles[i] < 3.1)
                assert_true(apart(u, phi, 3) <= 1e-15 + 1e-14 * angles[i]);
        }
}

static void test_for_ever(void **unused)
{
    (void)unused;
    double R[9] = { 1, 0, 0, 0, 1, 0, 0, 0, 1 }, x[3] = { 0.01, -0.02, 0.015 };
    for (int i = 0; i < 1000000; i++)
        rotation_turn(R, x);
    assert_true(rotation_defect(R) < 4e-16);
}

static void test_defect(void **unused)
{
    (void)unused;
    double R[9] = { 1, 0, 0, 0, 1, 0, 0, 0, 1 };
    assert_true(rotation_defect(R) == 0);
    R[8] = -1;
    assert_true(rotation_defect(R) == 2);
    R[8] = NAN;
    assert_true(rotation_defect(R) == INFINITY);
    R[8] = 1 + 1e-7;
    assert_true(rotation_defect(R) < ROTATION_SLACK);
    rotation_mend(R);
    assert_true(rotation_defect(R) < 1e-15);
}

/* The same motion with other bases. */
static void test_centre(void **unused)
{
    (void)unused;
    const int32_t first[] = { 1, 5 };
    const program p = { .nq = 8, .rotations = { first, 2 } };
    for (int i = 0; i < 100; i++) {
        double base[24] = { 0 }, q[8], v[8], a[8], kept[3][8], again[3][8];
        turns_start(&p, base);
        for (int k = 0; k < 8; k++) {
            q[k] = uniform();
            v[k] = uniform();
            a[k] = uniform();
        }
        for (int pass = 0; pass < 2; pass++) {
            double(*to)[8] = pass ? again : kept;
            if (pass)
                turns_centre(&p, base, q, v, a, 0.3 * (i % 3));
            memcpy(to[0], q, sizeof q);
            memcpy(to[1], v, sizeof v);
            memcpy(to[2], a, sizeof a);
            turns_keep(&p, base, to[0], to[1], to[2]);
        }
        assert_true(apart(kept[0], again[0], 24) < 1e-14);
        /* bases halfway to another state */
        double q1[8], v1[8], ends[2][2][8];
        for (int k = 0; k < 8; k++) {
            q1[k] = q[k] + 0.5 * uniform();
            v1[k] = uniform();
        }
        for (int pass = 0; pass < 2; pass++) {
            if (pass) {
                assert_true(turns_middle(&p, base, q, v, a, q1, v1));
                assert_true(q[1] == -q1[1] && q[7] == -q1[7]);
                memcpy(again[0], q, sizeof q);
                memcpy(again[1], v, sizeof v);
                memcpy(again[2], a, sizeof a);
                turns_keep(&p, base, again[0], again[1], again[2]);
                assert_true(apart(kept[0], again[0], 24) < 2e-14);
                assert_false(turns_middle(&p, base, q, v, a, q1, v1));
            }
            memcpy(ends[pass][0], q1, sizeof q1);
            memcpy(ends[pass][1], v1, sizeof v1);
            turns_keep(&p, base, ends[pass][0], ends[pass][1], NULL);
        }
        assert_true(apart(ends[0][0], ends[1][0], 16) < 2e-14);
        turns_take(&p, again[0], base);
        assert_true(again[0][1] == 0 && again[0][7] == 0 && again[0][4] == q[4]);
    }
    assert_true(turns_of(&p, 0) == -1 && turns_of(&p, 1) == 1 && turns_of(&p, 3) == 1);
    assert_true(turns_of(&p, 4) == -1 && turns_of(&p, 6) == 5 && turns_of(&p, 7) == 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cayley),   cmocka_unit_test(test_rates),  cmocka_unit_test(test_vector),
        cmocka_unit_test(test_for_ever), cmocka_unit_test(test_defect), cmocka_unit_test(test_centre),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
