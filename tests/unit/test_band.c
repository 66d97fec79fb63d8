/* Contact problems with few diagonals, compared with closed forms and with the dense solver. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "contact/band.h"
#include "contact/contact.h"

static arena *a;
static int setup(void **s)
{
    (void)s;
    a = arena_new(&allocator_libc, NULL);
    return a ? 0 : 1;
}
static int teardown(void **s)
{
    (void)s;
    arena_free(a);
    return 0;
}

/* A column of n balls of mass 1: W = tridiag(-1, 2, -1), 1 at the floor. */
static contact_problem *column(int n)
{
    contact_problem *p = band_new(a, n, n, 1);
    for (int i = 0; i < n; i++) {
        p->cone[i] = (cone){ .kind = CONE_UNILATERAL, .row = i };
        *band_at(p, i, i) = i ? 2 : 1;
        if (i)
            *band_at(p, i, i - 1) = *band_at(p, i - 1, i) = -1;
    }
    return p;
}

/* At rest each ball carries those above it; if a ball is thrown up, those above it carry nothing. */
static void column_rests(void **s)
{
    (void)s;
    int n = 1000;
    contact_problem *p = column(n);
    p->b[0] = -1;
    assert_true(band_solve(p, 1e-12));
    for (int i = 0; i < n; i++)
        assert_float_equal(p->r[i], n - i, 1e-9);
    p->b[600] = 5;
    assert_true(band_solve(p, 1e-12));
    for (int i = 0; i < n; i++)
        assert_float_equal(p->r[i], i < 600 ? 600 - i : 0, 1e-9);
    assert_true(p->u[600] > 0);
    p->b[600] = 0;
    assert_true(band_solve(p, 1e-12));
    assert_float_equal(p->r[600], 400, 1e-9);
}

/* Equalities: reactions of either sign. */
static void column_hangs(void **s)
{
    (void)s;
    contact_problem *p = column(4);
    for (int i = 0; i < 4; i++)
        p->cone[i].kind = CONE_BILATERAL;
    p->b[0] = 1;
    assert_true(band_solve(p, 1e-12));
    for (int i = 0; i < 4; i++)
        assert_float_equal(p->r[i], i - 4, 1e-12);
}

/* The same contact twice has no unique solution; this is reported, and the problem is unchanged. */
static void twice_is_told(void **s)
{
    (void)s;
    contact_problem *p = band_new(a, 2, 2, 1);
    for (int i = 0; i < 2; i++) {
        p->cone[i] = (cone){ .kind = CONE_UNILATERAL, .row = i };
        for (int j = 0; j < 2; j++)
            *band_at(p, i, j) = 1;
        p->b[i] = -1;
        p->r[i] = 0.25;
    }
    assert_false(band_solve(p, 1e-12));
    assert_float_equal(p->r[0], 0.25, 0);
}

static double noise(uint64_t *x)
{
    *x = *x * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(*x >> 11) / 9007199254740992.0 * 2 - 1;
}

/* Towers with friction and random normals: W = J J^T of random rows of neighbours; the same result as that of
   the dense solver. */
static void towers_as_dense(void **s)
{
    (void)s;
    enum { N = 12, M = 3 * N, D = 3 * N };
    uint64_t seed = 7;
    for (int turn = 0; turn < 60; turn++) {
        static double J[M][D], W[M * M], b[M], r[M], u[M];
        for (int i = 0; i < M; i++)
            for (int k = 0; k < D; k++)
                J[i][k] = 0;
        for (int c = 0; c < N; c++) {
            double n[3] = { 0.2 * noise(&seed), 0.2 * noise(&seed), 1 }, t[3] = { 1, 0, -n[0] },
                   l = sqrt(n[0] * n[0] + n[1] * n[1] + 1), x;
            for (int k = 0; k < 3; k++)
                n[k] /= l;
            l = sqrt(1 + t[2] * t[2]);
            for (int k = 0; k < 3; k++)
                t[k] /= l;
            double o[3] = { n[1] * t[2] - n[2] * t[1], n[2] * t[0] - n[0] * t[2], n[0] * t[1] - n[1] * t[0] };
            for (int k = 0; k < 3; k++)
                for (int j = 0; j < 3; j++) {
                    x = j == 0 ? n[k] : j == 1 ? t[k] : o[k];
                    J[3 * c + j][3 * c + k] = x;
                    if (c)
                        J[3 * c + j][3 * (c - 1) + k] = -x;
                }
        }
        contact_problem *p = band_new(a, N, M, 5);
        cone cones[N];
        for (int c = 0; c < N; c++) {
            cones[c] = p->cone[c] = (cone){ .kind = CONE_UNILATERAL, .d = 2, .row = 3 * c, .mu = 0.3 };
            for (int j = 0; j < 3; j++)
                p->b[3 * c + j] = b[3 * c + j] = j ? noise(&seed) : -1 + 1.5 * noise(&seed);
        }
        for (int i = 0; i < M; i++)
            for (int j = 0; j < M; j++) {
                W[i * M + j] = 0;
                for (int k = 0; k < D; k++)
                    W[i * M + j] += J[i][k] * J[j][k];
                if (abs(i / 3 - j / 3) <= 1)
                    *band_at(p, i, j) = W[i * M + j];
                r[i] = u[i] = 0;
            }
        contact_problem q = { .n = N, .m = M, .cone = cones, .W = W, .b = b, .r = r, .u = u };
        bool dense = contact_solve(&q, contact_work_new(a, N, M, 2), 1e-11), banded = band_solve(p, 1e-11);
        assert_true(dense);
        assert_true(banded);
        for (int i = 0; i < M; i++)
            assert_float_equal(p->u[i], u[i], 1e-6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(column_rests, setup, teardown),
        cmocka_unit_test_setup_teardown(column_hangs, setup, teardown),
        cmocka_unit_test_setup_teardown(twice_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(towers_as_dense, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
