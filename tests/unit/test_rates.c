/* rates: Newton's matrix in the dofs of bodies, compared with the products that it represents. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "base/random.h"
#include "contact/impulses.h"
#include "contact/newton.h"
#include "contact/rates.h"

enum { BODIES = 5, POINTS = 8, DOFS = 6, ROWS = 3 };
enum { CONTACTS = BODIES * POINTS };

/* A ring of bodies; each touches the next one at many points. */
typedef struct {
    arena *a;
    contact_list list;
    contact_problem p;
    int listed[CONTACTS], drawn;
    cone cones[CONTACTS];
    double b[ROWS * CONTACTS], r[ROWS * CONTACTS];
} ring;

static double draw(ring *x)
{
    return 2 * draw_uniform(&(draw_key){ .seed = 3, .index = (uint64_t)x->drawn++, .name = "rates" }) - 1;
}

static void ring_new(ring *x)
{
    enum { WIDE = 2 * DOFS };
    *x = (ring){ .a = arena_new(&allocator_libc, NULL) };
    contact_list *l = &x->list;
    l->n = CONTACTS;
    l->cone = x->cones;
    l->dof_at = arena_array(x->a, int, CONTACTS + 1);
    l->dof = arena_array(x->a, int, CONTACTS *WIDE);
    l->J_at = arena_array(x->a, size_t, CONTACTS + 1);
    l->J = arena_array(x->a, double, CONTACTS *ROWS *WIDE);
    for (int c = 0; c < CONTACTS; c++) {
        int body[2] = { c / POINTS, (c / POINTS + 1) % BODIES };
        x->listed[c] = c;
        x->cones[c] = (cone){ .kind = CONE_UNILATERAL, .row = ROWS * c, .d = 2, .mu = 0.4 };
        for (int k = 0; k < WIDE; k++)
            l->dof[c * WIDE + k] = 10 + DOFS * body[k / DOFS] + k % DOFS; /* other dofs precede them */
        for (int k = 0; k < ROWS * WIDE; k++)
            l->J[c * ROWS * WIDE + k] = draw(x);
        l->dof_at[c + 1] = (c + 1) * WIDE;
        l->J_at[c + 1] = (size_t)(c + 1) * ROWS * WIDE;
    }
    l->K = l->J;
    x->p = (contact_problem){ .n = CONTACTS,
                              .m = ROWS * CONTACTS,
                              .cone = x->cones,
                              .b = x->b,
                              .r = x->r,
                              .list = l,
                              .listed = x->listed };
}

static void test_factors(void **state)
{
    (void)state;
    ring x;
    ring_new(&x);
    rate_factors *f = rate_factors_new(x.a, &x.p);
    assert_non_null(f);
    double A[CONTACTS * RATES_BLOCK], kept[CONTACTS * RATES_BLOCK], B[CONTACTS * RATES_BLOCK],
        y[ROWS * CONTACTS], r[ROWS * CONTACTS], u[ROWS * CONTACTS], most = 0;
    for (int i = 0; i < CONTACTS * RATES_BLOCK; i++) {
        A[i] = draw(&x) + (i % RATES_BLOCK % 4 == 0 ? 3 : 0);
        B[i] = i / RATES_BLOCK % 4 == 0 ? 0 : 0.1 * draw(&x) + (i % RATES_BLOCK % 4 == 0); /* some are open */
    }
    memcpy(kept, A, sizeof A);
    for (int i = 0; i < ROWS * CONTACTS; i++)
        r[i] = y[i] = draw(&x);
    assert_true(rate_factors_put(f, A, B));
    rate_factors_solve(f, r);
    rate_factors_times(f, r, u);
    for (int c = 0; c < CONTACTS; c++)
        for (int i = 0; i < ROWS; i++) {
            double rest = y[ROWS * c + i];
            for (int j = 0; j < ROWS; j++)
                rest -= kept[c * RATES_BLOCK + ROWS * i + j] * r[ROWS * c + j] +
                        B[c * RATES_BLOCK + ROWS * i + j] * u[ROWS * c + j];
            most = fmax(most, fabs(rest));
        }
    assert_true(most <= 1e-10);
    arena_free(x.a);
}

/* W r by dofs is J K^T r. */
static void test_times(void **state)
{
    (void)state;
    ring x;
    ring_new(&x);
    rate_factors *f = rate_factors_new(x.a, &x.p);
    double r[ROWS * CONTACTS], u[ROWS * CONTACTS], v[10 + DOFS * BODIES] = { 0 }, an[CONTACTS], at[CONTACTS];
    for (int i = 0; i < ROWS * CONTACTS; i++)
        r[i] = draw(&x);
    for (int c = 0; c < CONTACTS; c++)
        list_push(&x.list, c, r + ROWS * c, v);
    rate_factors_times(f, r, u);
    for (int c = 0; c < CONTACTS; c++)
        for (int a = 0; a < ROWS; a++)
            assert_true(fabs(u[ROWS * c + a] - list_rate(&x.list, c, a, v)) <= 1e-12);
    rate_factors_diagonal(f, an, at);
    for (int c = 0; c < CONTACTS; c++) {
        double own = 0;
        for (int k = 0; k < 2 * DOFS; k++)
            own += pow(x.list.J[c * ROWS * 2 * DOFS + k], 2);
        assert_true(fabs(an[c] - own) <= 1e-13);
    }
    arena_free(x.a);
}

/* It is not worth it for few contacts with many dofs. */
static void test_worth(void **state)
{
    (void)state;
    ring x;
    ring_new(&x);
    x.p.n = 3;
    x.p.m = 3 * ROWS;
    assert_null(rate_factors_new(x.a, &x.p));
    x.p.list = NULL;
    assert_null(rate_factors_new(x.a, &x.p));
    assert_false(newton_rates(&x.p, x.a, 1e-8));
    arena_free(x.a);
}

/* A close start is polished; a distant one is left unchanged. */
static void test_start(void **state)
{
    (void)state;
    ring x;
    ring_new(&x);
    rate_factors *f = rate_factors_new(x.a, &x.p);
    double u[ROWS * CONTACTS], is[ROWS * CONTACTS];
    for (int c = 0; c < CONTACTS; c++) { /* every contact sticks: b cancels these reactions */
        double *r = is + ROWS * c;
        r[0] = 1 + 0.5 * draw(&x);
        r[1] = 0.1 * draw(&x);
        r[2] = 0.1 * draw(&x);
    }
    rate_factors_times(f, is, u);
    for (int i = 0; i < ROWS * CONTACTS; i++) {
        x.b[i] = -u[i];
        x.r[i] = is[i] * (1 + 1e-6 * draw(&x));
    }
    assert_true(newton_rates(&x.p, x.a, 1e-9));
    rate_factors_times(f, x.r, u);
    for (int i = 0; i < ROWS * CONTACTS; i++)
        assert_true(fabs(u[i] + x.b[i]) <= 1e-6);
    double far[ROWS * CONTACTS] = { 0 };
    memcpy(x.r, far, sizeof far);
    assert_false(newton_rates(&x.p, x.a, 1e-9));
    assert_memory_equal(x.r, far, sizeof far);
    arena_free(x.a);
}

int main(void)
{
    const struct CMUnitTest all[] = { cmocka_unit_test(test_factors), cmocka_unit_test(test_times),
                                      cmocka_unit_test(test_worth), cmocka_unit_test(test_start) };
    return cmocka_run_group_tests(all, NULL, NULL);
}
