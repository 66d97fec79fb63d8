/* The contact problem of one step: random problems are solved, and the solutions satisfy the laws. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "contact/central.h"
#include "contact/contact.h"
#include "contact/interior.h"
#include "contact/lemke.h"
#include "base/linalg.h"

static uint64_t state;
static double uniform(void) /* in -1 .. 1 */
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(state >> 11) / (double)(1ll << 52) - 1;
}

typedef struct {
    arena *a;
    contact_problem p;
    contact_work *w;
} fixture;

/* W = J J^T for a random J of nq columns; b = J v */
static fixture problem(int n, int d, int nq, double mu, uint64_t seed)
{
    fixture f = { .a = arena_new(&allocator_libc, NULL) };
    int m = n * (1 + d);
    double *J = arena_array(f.a, double, m *nq), *v = arena_array(f.a, double, nq);
    state = seed;
    for (int i = 0; i < m * nq; i++)
        J[i] = uniform();
    for (int i = 0; i < nq; i++)
        v[i] = uniform();
    f.p = (contact_problem){ .n = n, .m = m, .cone = arena_array(f.a, cone, n) };
    f.p.W = arena_array(f.a, double, m *m);
    f.p.b = arena_array(f.a, double, m);
    f.p.r = arena_array(f.a, double, m);
    f.p.u = arena_array(f.a, double, m);
    for (int i = 0; i < m; i++) {
        f.p.b[i] = vec_dot(J + i * nq, v, nq);
        for (int j = 0; j < m; j++)
            f.p.W[i * m + j] = vec_dot(J + i * nq, J + j * nq, nq);
    }
    for (int i = 0; i < n; i++)
        f.p.cone[i] = (cone){ .kind = CONE_UNILATERAL, .d = d, .row = i * (1 + d), .mu = mu };
    f.w = contact_work_new(f.a, n, m, d);
    return f;
}

/* Checks cones, complementarity, the direction of friction, and u = b + W r. */
static void obeys(const contact_problem *p, double tol)
{
    for (int i = 0; i < p->n; i++) {
        const cone *c = &p->cone[i];
        const double *r = p->r + c->row, *u = p->u + c->row;
        double scale = 1 + fabs(r[0]), rt = 0, ut = 0, power = 0;
        assert_true(fabs(u[0] - p->b[c->row] - vec_dot(p->W + c->row * p->m, p->r, p->m)) <= tol * scale);
        if (c->kind == CONE_UNILATERAL) {
            assert_true(r[0] >= -tol * scale);
            assert_true(u[0] >= -tol * scale);
        } else
            assert_true(fabs(u[0]) <= tol * scale);
        assert_true(fabs(r[0] * u[0]) <= tol * scale);
        for (int k = 1; k <= c->d; k++) {
            rt = hypot(rt, r[k]);
            ut = hypot(ut, u[k]);
            power += r[k] * u[k];
        }
        assert_true(rt <= c->mu * fabs(r[0]) + tol * scale);
        if (c->d)
            assert_true(fabs(power + ut * c->mu * fabs(r[0])) <= tol * scale * (1 + ut));
    }
}

static void one_contact(void **s)
{
    (void)s;
    for (int d = 0; d <= 5; d++)
        for (uint64_t k = 1; k <= 200; k++) {
            fixture f = problem(1, d, 8, 0.4, 100 * k + (uint64_t)d);
            if (k % 3 == 0)
                f.p.cone[0].kind = CONE_BILATERAL;
            assert_true(contact_solve(&f.p, f.w, 1e-12));
            assert_string_equal(f.p.solver, "closed form");
            obeys(&f.p, 1e-11);
            arena_free(f.a);
        }
}

static void frictionless(void **s)
{
    (void)s;
    for (uint64_t k = 1; k <= 300; k++) {
        int n = 2 + (int)(k % 9);
        fixture f = problem(n, 0, k % 2 ? n + 3 : (n + 2) / 2, 0, k); /* every other problem is redundant */
        if (k % 5 == 0)
            f.p.cone[0].kind = CONE_BILATERAL;
        assert_true(contact_solve(&f.p, f.w, 1e-12));
        obeys(&f.p, 1e-10);
        arena_free(f.a);
    }
}

static void friction(void **s)
{
    (void)s;
    for (uint64_t k = 1; k <= 300; k++) {
        int n = 2 + (int)(k % 5), d = 1 + (int)(k % 2);
        fixture f = problem(n, d, n * (1 + d) + 2, 0.3, 7 * k);
        assert_true(contact_solve(&f.p, f.w, 1e-12));
        obeys(&f.p, 1e-9);
        arena_free(f.a);
    }
}

/* more rows than degrees of freedom: W is singular, as in piles */
static void friction_redundant(void **s)
{
    (void)s;
    for (uint64_t k = 1; k <= 100; k++) {
        int n = 3 + (int)(k % 20);
        fixture f = problem(n, 1, n + 1, 0.2 + 0.1 * (double)(k % 7), 13 * k);
        assert_true(contact_solve(&f.p, f.w, 1e-12));
        obeys(&f.p, 1e-9);
        arena_free(f.a);
    }
}

/* Three disks in a row that just fill the width between two walls, with rates inconsistent by rounding:
   reactions do not grow to overcome it. The row compressed at rate 1e-3 by its first wall has the impulses of
   the chain, each mass 1. */
static void row_between_walls(void **s)
{
    (void)s;
    fixture f = problem(4, 1, 7, 0.3, 1);
    static const double H[4][3] = { { 1, 0, 0 }, { -1, 1, 0 }, { 0, -1, 1 }, { 0, 0, -1 } };
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            f.p.W[2 * i * 8 + 2 * j] = vec_dot(H[i], H[j], 3);
            f.p.W[2 * i * 8 + 2 * j + 1] = f.p.W[(2 * i + 1) * 8 + 2 * j] = 0;
            f.p.W[(2 * i + 1) * 8 + 2 * j + 1] = i == j;
        }
    static const double rate[4] = { 1e-3, -2e-3, 5e-4, 5e-4 - 1e-15 };
    for (int i = 0; i < 4; i++) {
        f.p.b[2 * i] = rate[i];
        f.p.b[2 * i + 1] = 1e-3 * i;
    }
    assert_true(contact_solve(&f.p, f.w, 1e-12));
    for (int i = 0; i < 8; i++)
        assert_true(fabs(f.p.r[i]) < 0.1);
    for (int i = 0; i < 4; i++)
        assert_true(fabs(f.p.u[2 * i]) < 1e-14);
    arena_free(f.a);
}

/* Lemke's method on a problem in closed form: w = M z + q with M = [2 1; 1 2], q = (-5, -6): z = (4/3, 7/3).
 */
static void lemke_closed_form(void **s)
{
    (void)s;
    arena *a = arena_new(&allocator_libc, NULL);
    double M[] = { 2, 1, 1, 2 }, q[] = { -5, -6 }, z[2];
    assert_true(lemke_solve(2, M, q, z, LEMKE_DOUBLE, a));
    assert_true(fabs(z[0] - 4.0 / 3) < 1e-14 && fabs(z[1] - 7.0 / 3) < 1e-14);
    q[0] = 1;
    assert_true(lemke_solve(2, M, q, z, LEMKE_LONG, a));
    assert_true(z[0] == 0 && fabs(z[1] - 3) < 1e-14);
    arena_free(a);
}

/* Nearly parallel normals: M = [1 1-e; 1-e 1], q = (-1, -1+e/2) with e = 2^-43: z = (3/4, 1/4) up to e; its
   pivot 2e is too small for doubles. */
static void lemke_more_digits(void **s)
{
    (void)s;
    arena *a = arena_new(&allocator_libc, NULL);
    double e = ldexp(1, -43), M[] = { 1, 1 - e, 1 - e, 1 }, q[] = { -1, -1 + e / 2 }, z[2];
    for (lemke_digits d = LEMKE_LONG; d <= LEMKE_QUAD; d++) {
        assert_true(lemke_solve(2, M, q, z, d, a));
        assert_true(fabs(z[0] - 0.75) < 1e-3 && fabs(z[1] - 0.25) < 1e-3);
    }
    arena_free(a);
}

/* The problem of a fixture with a full W, in the form for sparse solvers. */
static contact_problem sparse_of(fixture *f)
{
    int n = f->p.n, m = f->p.m, *start = arena_array(f->a, int, n + 1), *col = arena_array(f->a, int, n *m);
    size_t *at = arena_array(f->a, size_t, n);
    for (int c = 0; c < n; c++) {
        start[c + 1] = (c + 1) * m;
        at[c] = (size_t)f->p.cone[c].row * (size_t)m;
        for (int j = 0; j < m; j++)
            col[c * m + j] = j;
    }
    return (contact_problem){ .n = n,
                              .m = m,
                              .cone = f->p.cone,
                              .start = start,
                              .col = col,
                              .at = at,
                              .val = f->p.W,
                              .b = f->p.b,
                              .r = f->p.r };
}

/* Only the interior point method, for cones with one to three tangential components. It may fail: it is one
   method among several. */
static void interior_cones(void **s)
{
    (void)s;
    int solved = 0;
    for (uint64_t k = 1; k <= 60; k++) {
        int n = 2 + (int)(k % 6), d = 1 + (int)(k % 3), m = n * (1 + d);
        fixture f = problem(n, d, m + 2, 0.2, 11 * k);
        contact_problem p = sparse_of(&f);
        if (interior_solve(&p, f.a, 1e-8)) {
            for (int i = 0; i < m; i++)
                f.p.u[i] = f.p.b[i] + vec_dot(f.p.W + i * m, f.p.r, m);
            obeys(&f.p, 1e-6);
            solved++;
        }
        arena_free(f.a);
    }
    assert_true(solved >= 40);
}

/* Disks of radius 1 in staggered rows, each on two others, the lowest on a floor: rates after free fall with
   some noise, friction 1/2. Three dofs each: x, y, angle. */
static fixture heap(int rows, int wide, uint64_t seed)
{
    fixture f = { .a = arena_new(&allocator_libc, NULL) };
    int disks = rows * wide, nq = 3 * disks, n = 0;
    double *J = arena_array(f.a, double, (size_t)(3 * disks * 2) * (size_t)nq),
           *v = arena_array(f.a, double, nq);
    state = seed;
    for (int i = 0; i < nq; i++)
        v[i] = (i % 3 == 1 ? -1 : 0) + 0.003 * uniform();
    for (int a = 0; a < disks; a++)
        for (int k = 0; k < 3; k++) {
            int row = a / wide, shift = row % 2 ? 0 : -1, at = a % wide + shift + k,
                b = k == 2 ? a - 1
                    : row  ? (row - 1) * wide + at
                           : -1;
            double nx = k == 2 ? 1
                        : k    ? -0.5
                               : 0.5,
                   ny = k == 2 ? 0 : sqrt(0.75), *N = J + (size_t)(2 * n) * nq, *T = N + nq;
            if (k == 2 ? a % wide == 0 : row ? at < 0 || at >= wide : k == 1)
                continue;
            if (k < 2 && !row) {
                nx = 0;
                ny = 1;
            }
            N[3 * a] = nx;
            N[3 * a + 1] = ny;
            T[3 * a] = ny;
            T[3 * a + 1] = -nx;
            T[3 * a + 2] = sqrt(2);
            if (b >= 0) {
                N[3 * b] = -nx;
                N[3 * b + 1] = -ny;
                T[3 * b] = -ny;
                T[3 * b + 1] = nx;
                T[3 * b + 2] = sqrt(2);
            }
            n++;
        }
    int m = 2 * n;
    f.p = (contact_problem){ .n = n,
                             .m = m,
                             .cone = arena_array(f.a, cone, n),
                             .W = arena_array(f.a, double, (size_t)m *m),
                             .b = arena_array(f.a, double, m),
                             .r = arena_array(f.a, double, m),
                             .u = arena_array(f.a, double, m) };
    for (int i = 0; i < m; i++) {
        f.p.b[i] = vec_dot(J + (size_t)i * nq, v, nq);
        for (int j = 0; j < m; j++)
            f.p.W[(size_t)i * m + j] = vec_dot(J + (size_t)i * nq, J + (size_t)j * nq, nq);
    }
    for (int i = 0; i < n; i++)
        f.p.cone[i] = (cone){ .kind = CONE_UNILATERAL, .d = 1, .row = 2 * i, .mu = 0.5 };
    return f;
}

/* Only the central path, for more reactions than degrees of freedom (W is singular), where the path bends;
   with a frictionless contact, an equality and a contact with a given bound among them. */
static void central_path(void **s)
{
    (void)s;
    int long_ones = 0;
    for (uint64_t k = 1; k <= 12; k++) {
        fixture f = heap(6, 8, 7 * k);
        f.p.cone[1].mu = 0;
        if (k % 3 == 0) {
            f.p.cone[2].kind = CONE_BILATERAL;
            f.p.cone[2].mu = 0;
        }
        if (k % 4 == 0) {
            f.p.cone[3].mu = 0;
            f.p.cone[3].radius = 0.1;
        }
        contact_problem p = sparse_of(&f);
        assert_true(central_solve(&p, f.a, 1e-8));
        for (int i = 0; i < f.p.m; i++)
            f.p.u[i] = f.p.b[i] + vec_dot(f.p.W + (size_t)i * f.p.m, f.p.r, f.p.m);
        assert_true(contact_residual(&f.p) <= 1e-8);
        long_ones += p.iterations > 20; /* about a dozen without a bend */
        arena_free(f.a);
    }
    /* some paths must have bends; otherwise the test proves nothing about them */
    assert_true(long_ones >= 1);
}

/* A box on four corners: more reactions than degrees of freedom, but they are symmetric. */
static void redundant_is_symmetric(void **s)
{
    (void)s;
    fixture f = problem(3, 0, 2, 0, 1);
    static const double H[3][2] = { { 0, 1 }, { 1, 1 }, { -1, 1 } };
    for (int i = 0; i < 3; i++) {
        f.p.b[i] = -H[i][1];
        for (int j = 0; j < 3; j++)
            f.p.W[i * 3 + j] = vec_dot(H[i], H[j], 2);
    }
    assert_true(contact_solve(&f.p, f.w, 1e-12));
    assert_true(fabs(f.p.r[0] + f.p.r[1] + f.p.r[2] - 1) < 1e-14);
    assert_true(fabs(f.p.r[1] - f.p.r[2]) < 1e-14);
    arena_free(f.a);
}

/* Sticking is exact: the velocity of the block becomes exactly 0. */
static void sticks_within_the_cone(void **s)
{
    (void)s;
    double W[] = { 1, 0, 0, 1 }, b[] = { -1, 0.3 }, r[2] = { 0 }, work[64];
    cone c = { .kind = CONE_UNILATERAL, .d = 1, .mu = 0.4 };
    cone_solve(&c, W, 2, b, r, work);
    assert_true(r[0] == 1 && r[1] == -0.3);
    c.mu = 0.2;
    cone_solve(&c, W, 2, b, r, work);
    assert_true(r[0] == 1 && r[1] == -0.2);
}

/* Friction that decreases steeply with the speed: stick and slip are both solutions, and the current one is
   kept. */
static void falling(void *ud, int i, double v, double *mu, double *radius)
{
    (void)ud;
    (void)i;
    *mu = 0;
    *radius = 0.2 + 0.8 * exp(-v / 0.05);
}

static void stays_on_its_branch(void **s)
{
    (void)s;
    double W = 1, b = 0.9, r = 0, u = 0;
    for (int slipping = 0; slipping < 2; slipping++) {
        cone c = { .kind = CONE_GIVEN, .d = 1, .of_speed = true, .speed = slipping ? 0.8 : 0 };
        contact_problem p = {
            .n = 1, .m = 1, .cone = &c, .W = &W, .b = &b, .r = &r, .u = &u, .law = falling
        };
        arena *a = arena_new(&allocator_libc, NULL);
        assert_true(contact_solve(&p, contact_work_new(a, 1, 1, 1), 1e-12));
        assert_int_equal(p.choices, 1);
        /* for slip, u = b - bound(u) on the upper branch; for stick, friction cancels b */
        assert_true(slipping ? u > 0.6 && fabs(u - (0.7 - 0.8 * exp(-u / 0.05))) < 1e-12 : fabs(u) < 1e-15);
        assert_true(slipping ? fabs(r + 0.2 + 0.8 * exp(-u / 0.05)) < 1e-12 : fabs(r + 0.9) < 1e-15);
        arena_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_contact),
        cmocka_unit_test(frictionless),
        cmocka_unit_test(friction),
        cmocka_unit_test(friction_redundant),
        cmocka_unit_test(row_between_walls),
        cmocka_unit_test(lemke_closed_form),
        cmocka_unit_test(lemke_more_digits),
        cmocka_unit_test(interior_cones),
        cmocka_unit_test(central_path),
        cmocka_unit_test(redundant_is_symmetric),
        cmocka_unit_test(sticks_within_the_cone),
        cmocka_unit_test(stays_on_its_branch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
