/* Membranes with every number of cells: the contact set and u are compared with an independent active-set
   solution with a sparse factorisation where that is cheap, and always with the conditions of the discrete
   problem, whose solution is unique. With FIELD_GRIDS=all every size is compared with the factorisation, and
   some large ones are run: this takes minutes. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <suitesparse/umfpack.h>
#include "base/foreign.h"
#include "field/field.h"
#include "session/session.h"

static void quiet(void *ud, const char *t, size_t n)
{
    (void)ud;
    (void)t;
    (void)n;
}

typedef struct {
    double a, b; /* the domain is [-a, a] x [-b, b] */
    int nx, ny;
} problem;

static double psi(double x, double y)
{
    return 0.3 - x * x - y * y;
}

static cdl *solve(const problem *p, const field_result **r)
{
    char lines[512];
    cdl *s = cdl_new(NULL);
    assert_non_null(s);
    cdl_set_callbacks(s, &(cdl_callbacks){ quiet, quiet, NULL, NULL });
    snprintf(lines, sizeof lines,
             "model m { domain x in %g..%g, y in %g..%g; field u(x, y); -laplacian(u) = -1\n"
             "obstacle u >= 0.3 - x^2 - y^2; boundary u = 0 }\n"
             "run m with active_set(cells = %d, cells2 = %d)",
             -p->a, p->a, -p->b, p->b, p->nx, p->ny);
    if (cdl_run_text(s, "t.cdl", lines, strlen(lines)) != CDL_OK || !s->last || !s->last->r->field)
        fail_msg("%d x %d cells: not solved", p->nx, p->ny);
    *r = s->last->r->field;
    return s;
}

/* -laplacian(u) + 1 at an inner node. */
static double force(const double *u, const problem *p, int i, int j)
{
    double hx = 2 * p->a / p->nx, hy = 2 * p->b / p->ny;
    int64_t w = p->nx + 1, k = j * w + i;
    return (2 * u[k] - u[k - 1] - u[k + 1]) / (hx * hx) + (2 * u[k] - u[k - w] - u[k + w]) / (hy * hy) + 1;
}

static void conditions_hold(const problem *p, const double *u)
{
    double hx = 2 * p->a / p->nx, hy = 2 * p->b / p->ny, row = 4 / (hx * hx) + 4 / (hy * hy);
    for (int j = 1; j < p->ny; j++)
        for (int i = 1; i < p->nx; i++) {
            double x = -p->a + i * hx, y = -p->b + j * hy, gap = u[j * (p->nx + 1) + i] - psi(x, y),
                   f = force(u, p, i, j);
            bool good = gap >= -1e-14 && f >= -1e-11 * row && (gap <= 1e-12 || f <= 1e-11 * row);
            if (!good)
                fail_msg("%d x %d cells: gap %g, force %g at (%g, %g)", p->nx, p->ny, gap, f, x, y);
        }
}

/* Primal-dual active sets with UMFPACK, from an empty set. */
static double *reference(const problem *p)
{
    int n = (p->nx + 1) * (p->ny + 1), w = p->nx + 1;
    double hx = 2 * p->a / p->nx, hy = 2 * p->b / p->ny;
    int *start = calloc((size_t)n + 1, sizeof *start), *col = calloc(5 * (size_t)n, sizeof *col);
    double *val = calloc(5 * (size_t)n, sizeof *val), *b = calloc((size_t)n, sizeof *b),
           *u = calloc((size_t)n, sizeof *u);
    char *on = calloc((size_t)n, 1);
    assert_true(start && col && val && b && u && on);
    for (int changed = 1, round = 0; changed; round++) {
        int nz = 0;
        assert_true(round < 200);
        for (int k = 0; k < n; k++) {
            int i = k % w, j = k / w;
            bool edge = i == 0 || j == 0 || i == p->nx || j == p->ny;
            start[k] = nz;
            b[k] = edge ? 0 : on[k] ? psi(-p->a + i * hx, -p->b + j * hy) : -1;
            const int to[5] = { k - w, k - 1, k, k + 1, k + w };
            const double a[5] = { -1 / (hy * hy), -1 / (hx * hx), 2 / (hx * hx) + 2 / (hy * hy),
                                  -1 / (hx * hx), -1 / (hy * hy) };
            for (int q = 0; q < 5; q++)
                if (q == 2 || !(edge || on[k])) {
                    col[nz] = to[q];
                    val[nz++] = edge || on[k] ? 1 : a[q];
                }
        }
        start[n] = nz;
        void *symbolic, *numeric;
        assert_int_equal(FOREIGN(umfpack_di_symbolic)(n, n, start, col, val, &symbolic, NULL, NULL), 0);
        assert_int_equal(FOREIGN(umfpack_di_numeric)(start, col, val, symbolic, &numeric, NULL, NULL), 0);
        assert_int_equal(FOREIGN(umfpack_di_solve)(UMFPACK_At, start, col, val, u, b, numeric, NULL, NULL),
                         0);
        FOREIGN(umfpack_di_free_symbolic)(&symbolic);
        FOREIGN(umfpack_di_free_numeric)(&numeric);
        changed = 0;
        for (int j = 1; j < p->ny; j++)
            for (int i = 1; i < p->nx; i++) {
                int k = j * w + i;
                char now = on[k] ? force(u, p, i, j) >= -1e-9
                                 : u[k] < psi(-p->a + i * hx, -p->b + j * hy) - 1e-12;
                changed += now != on[k];
                on[k] = now;
            }
    }
    free(start);
    free(col);
    free(val);
    free(b);
    free(on);
    return u;
}

static void agrees(const problem *p)
{
    const field_result *r;
    cdl *s = solve(p, &r);
    double *u = reference(p);
    for (int64_t k = 0; k < r->n; k++)
        if (!(fabs(u[k] - r->u[k]) <= 1e-11))
            fail_msg("%d x %d cells: %.17g, factorised %.17g", p->nx, p->ny, r->u[k], u[k]);
    free(u);
    cdl_free(s);
}

static bool all_of_it(void)
{
    const char *e = getenv("FIELD_GRIDS");
    return e && !strcmp(e, "all");
}

static void every_number_of_cells(void **state)
{
    (void)state;
    for (int n = 4; n <= 300; n++) {
        const problem p = { 1, 1, n, n };
        if (n > 64 && n % 32 != 5 && !all_of_it())
            continue;
        if (n <= 24 || all_of_it())
            agrees(&p);
        const field_result *r;
        cdl *s = solve(&p, &r);
        conditions_hold(&p, r->u);
        cdl_free(s);
    }
}

static void different_numbers_in_x_and_y(void **state)
{
    (void)state;
    static const problem of[] = { { 1, 1, 4, 300 },  { 1, 1, 300, 4 },     { 1, 1, 5, 501 },
                                  { 1, 1, 257, 17 }, { 1, 1, 33, 160 },    { 10, 1, 64, 64 },
                                  { 1, 50, 41, 97 }, { 0.6, 0.6, 7, 255 }, { 100, 1, 200, 20 },
                                  { 3, 1, 30, 300 } };
    for (size_t k = 0; k < sizeof of / sizeof *of; k++)
        agrees(&of[k]);
}

static void large_awkward_numbers(void **state)
{
    (void)state;
    static const int cells[] = { 401, 511, 513, 639, 801, 1002, 1022, 1023, 1279, 2047, 2048, 2049 };
    for (size_t k = 0; k < sizeof cells / sizeof *cells && (k < 1 || all_of_it()); k++) {
        const problem p = { 1, 1, cells[k], cells[k] };
        const field_result *r;
        cdl *s = solve(&p, &r);
        conditions_hold(&p, r->u);
        cdl_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_of_cells),
        cmocka_unit_test(different_numbers_in_x_and_y),
        cmocka_unit_test(large_awkward_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
