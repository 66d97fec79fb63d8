/* Dense factors: each form solves its system, or reports that it cannot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "base/linalg.h"

static uint64_t state = 1;
static double uniform(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(state >> 11) / (double)(1ll << 52) - 1;
}

static double *matrix(arena *a, int m, int n)
{
    double *x = arena_array(a, double, m *n);
    for (int i = 0; i < m * n; i++)
        x[i] = uniform();
    return x;
}

/* B B^T of B with k columns: semidefinite of rank k. */
static double *gram(arena *a, int n, int k)
{
    double *B = matrix(a, n, k), *A = arena_array(a, double, n *n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            A[i * n + j] = vec_dot(B + i * k, B + j * k, k);
    return A;
}

static double defect(const double *A, const double *x, const double *b, int n)
{
    double worst = 0;
    for (int i = 0; i < n; i++)
        worst = fmax(worst, fabs(vec_dot(A + (size_t)i * n, x, n) - b[i]));
    return worst;
}

static const int sizes[] = { 1, 2, 3, 4, 5, 9, 20, 60 };

static void solves(void **s)
{
    (void)s;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        arena *a = arena_new(&allocator_libc, NULL);
        int n = sizes[i], bad;
        double *A = gram(a, n, n + 3), *B = matrix(a, n, n), *b = matrix(a, n, 1),
               *x = arena_array(a, double, n);
        factor f;
        factor_init(&f, a, n, false);
        for (int k = 0; k < n; k++) {
            A[k * n + k] += 0.1;
            B[k * n + k] += 4;
        }
        assert_true(factor_spd(&f, A, &bad));
        factor_solve(&f, b, x);
        assert_true(defect(A, x, b, n) < 1e-11);
        assert_true(factor_general(&f, B));
        factor_solve(&f, b, x);
        assert_true(defect(B, x, b, n) < 1e-11);
        arena_free(a);
    }
}

static void refuses(void **s)
{
    (void)s;
    for (size_t i = 1; i < sizeof sizes / sizeof *sizes; i++) {
        arena *a = arena_new(&allocator_libc, NULL);
        int n = sizes[i], bad = -1;
        double *A = arena_array(a, double, n *n), *d = arena_array(a, double, n);
        factor f;
        factor_init(&f, a, n, false);
        for (int k = 0; k < n; k++)
            A[k * n + k] = d[k] = k == n - 1 ? -1 : 2;
        assert_false(factor_spd(&f, A, &bad));
        assert_int_equal(bad, n - 1);
        assert_false(factor_diagonal(&f, d, &bad));
        assert_int_equal(bad, n - 1);
        A[n * n - 1] = 0;
        assert_false(factor_general(&f, A));
        arena_free(a);
    }
}

/* x is a solution orthogonal to the null space, so it is in the range of A */
static void shortest(void **s)
{
    (void)s;
    for (int n = 2; n <= 12; n++)
        for (int k = 1; k <= n; k++) {
            arena *a = arena_new(&allocator_libc, NULL);
            double *A = gram(a, n, k), *y = matrix(a, n, 1), *b = arena_array(a, double, n),
                   *x = arena_array(a, double, n);
            double *work = arena_array(a, double, n *n + 2 * n), *C = arena_array(a, double, n *n),
                   *z = arena_array(a, double, n);
            int *iwork = arena_array(a, int, n);
            mat_vec(A, y, b, n, n);
            memcpy(C, A, sizeof(double) * (size_t)(n * n));
            assert_int_equal(sym_shortest(C, b, x, n, work, iwork), k);
            assert_true(defect(A, x, b, n) < 1e-9);
            /* y - x is in the null space, so x is not longer than y, and orthogonal to it */
            for (int i = 0; i < n; i++)
                z[i] = y[i] - x[i];
            assert_true(k == n || fabs(vec_dot(z, x, n)) < 1e-6);
            assert_true(vec_dot(x, x, n) <= vec_dot(y, y, n) * (1 + 1e-6));
            arena_free(a);
        }
}

static void least_squares(void **s)
{
    (void)s;
    arena *a = arena_new(&allocator_libc, NULL);
    double A[] = { 1, 1, 1, 1 }, b[] = { 2, 4 };
    assert_true(least_norm(A, b, 2, 2, a));
    assert_true(fabs(b[0] - 1.5) < 1e-14 && fabs(b[1] - 1.5) < 1e-14);
    arena_free(a);
}

/* a band that needs pivoting: entries on and beside the diagonal are of the same size */
static void band(void **unused)
{
    enum { N = 40 };
    (void)unused;
    arena *a = arena_new(&allocator_libc, NULL);
    for (int kb = 0; kb <= 12; kb++) {
        int wide = 3 * kb + 1;
        double *A = arena_array(a, double, N *N), *lu = arena_array(a, double, N *wide),
               *b = arena_array(a, double, N), *x = arena_array(a, double, N);
        for (int i = 0; i < N; i++) {
            x[i] = b[i] = uniform();
            for (int j = i > kb ? i - kb : 0; j <= i + kb && j < N; j++) {
                double entry = kb && i == j && i % 3 == 0 ? 0 : uniform() + (kb == 0 ? 2 : 0);
                A[i * N + j] = lu[j * wide + 2 * kb + i - j] = entry;
            }
        }
        assert_true(band_lu(N, kb, lu, x));
        assert_true(defect(A, x, b, N) < 1e-9);
        memset(lu, 0, (size_t)(N * wide) * sizeof *lu);
        assert_false(band_lu(N, kb, lu, x));
    }
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(solves),        cmocka_unit_test(refuses), cmocka_unit_test(shortest),
        cmocka_unit_test(least_squares), cmocka_unit_test(band),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
