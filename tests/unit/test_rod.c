/* Elements of rods: the tangent compared with differences of the residual, rigid motions, energies compared
   with residuals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "rod/rod.h"

static uint64_t state = 7;
static double uniform(void) /* in -1 .. 1 */
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(state >> 11) / (double)(1ll << 52) - 1;
}

typedef struct {
    rod_mesh m;
    double s[4], v0[9], u0[9], r[12], q[16];
} bar;

/* An element with random bending, twist, shear and stretch, and a bent reference shape. */
static void bar_make(bar *b)
{
    memset(b, 0, sizeof *b);
    b->m = (rod_mesh){ .ne = 1, .nn = 4, .length = 0.7, .s = b->s, .v0 = b->v0, .u0 = b->u0 };
    for (int i = 0; i < 4; i++) {
        double th[3] = { 0.4 * uniform(), 0.4 * uniform(), 0.4 * uniform() };
        b->s[i] = 0.7 * i / 3;
        for (int k = 0; k < 3; k++)
            b->r[3 * i + k] = 0.1 * uniform() + (k == 2) * b->s[i];
        b->q[4 * i] = 1;
        quat_turn(b->q + 4 * i, th);
    }
    for (int i = 0; i < 9; i++) {
        b->v0[i] = 0.05 * uniform() + (i % 3 == 2);
        b->u0[i] = 0.3 * uniform();
    }
    const double B[9] = { 3, 0.2, 0.1, 0.2, 4, 0.3, 0.1, 0.3, 5 },
                 A[9] = { 1, 0.1, 0, 0.1, 2, 0.2, 0, 0.2, 1.5 };
    memcpy(b->m.B, B, sizeof B);
    memcpy(b->m.A, A, sizeof A);
    /* every second bar has sections that differ between points of integration */
    static double sections[18 * ROD_GAUSS];
    static int made;
    for (int k = 0; k < 18 * ROD_GAUSS; k++)
        sections[k] = (k % 18 < 9 ? B[k % 9] : A[k % 9]) * (1 - 0.3 * (k / 18));
    b->m.sections = made++ % 2 ? sections : NULL;
}

static void bar_move(const bar *from, const double *dx, double k, bar *to)
{
    *to = *from;
    to->m.s = to->s;
    to->m.v0 = to->v0;
    to->m.u0 = to->u0;
    for (int i = 0; i < 4; i++) {
        double th[3] = { k * dx[6 * i + 3], k * dx[6 * i + 4], k * dx[6 * i + 5] };
        for (int j = 0; j < 3; j++)
            to->r[3 * i + j] += k * dx[6 * i + j];
        quat_turn(to->q + 4 * i, th);
    }
}

static double energy_of(const bar *b)
{
    double e[4] = { 0 };
    rod_element(&b->m, 0, b->r, b->q, NULL, NULL, NULL, e);
    return e[0] + e[1] + e[2] + e[3];
}

static void test_residual_is_slope(void **st)
{
    (void)st;
    for (int n = 0; n < 20; n++) {
        bar b, p, q;
        double f[ROD_DOFS] = { 0 }, h = 1e-5;
        bar_make(&b);
        rod_element(&b.m, 0, b.r, b.q, NULL, f, NULL, NULL);
        for (int i = 0; i < ROD_DOFS; i++) {
            double dx[ROD_DOFS] = { 0 };
            dx[i] = 1;
            bar_move(&b, dx, h, &p);
            bar_move(&b, dx, -h, &q);
            assert_true(fabs((energy_of(&p) - energy_of(&q)) / (2 * h) - f[i]) < 1e-7);
        }
    }
}

static void test_tangent_is_slope(void **st)
{
    (void)st;
    for (int n = 0; n < 20; n++) {
        bar b, p, q;
        double K[ROD_DOFS * ROD_DOFS], h = 1e-5, most = 0;
        bar_make(&b);
        rod_element(&b.m, 0, b.r, b.q, NULL, NULL, K, NULL);
        for (int i = 0; i < ROD_DOFS * ROD_DOFS; i++)
            most = fmax(most, fabs(K[i]));
        for (int j = 0; j < ROD_DOFS; j++) {
            double dx[ROD_DOFS] = { 0 }, fp[ROD_DOFS] = { 0 }, fq[ROD_DOFS] = { 0 };
            dx[j] = 1;
            bar_move(&b, dx, h, &p);
            bar_move(&b, dx, -h, &q);
            rod_element(&p.m, 0, p.r, p.q, NULL, fp, NULL, NULL);
            rod_element(&q.m, 0, q.r, q.q, NULL, fq, NULL, NULL);
            for (int i = 0; i < ROD_DOFS; i++)
                assert_true(fabs((fp[i] - fq[i]) / (2 * h) - K[i * ROD_DOFS + j]) < 1e-7 * most);
        }
    }
}

/* A rigid motion changes no strain, and forces rotate with it. */
static void test_rigid_motion(void **st)
{
    (void)st;
    for (int n = 0; n < 20; n++) {
        bar b, c;
        double turn[4] = { 1, 0, 0, 0 }, th[3] = { 3 * uniform(), 3 * uniform(), 3 * uniform() }, R[9],
               f[ROD_DOFS] = { 0 }, g[ROD_DOFS] = { 0 };
        bar_make(&b);
        quat_turn(turn, th);
        quat_matrix(turn, R);
        bar_move(&b, f, 0, &c);
        for (int i = 0; i < 4; i++) {
            for (int k = 0; k < 3; k++)
                c.r[3 * i + k] = dot3(R + 3 * k, b.r + 3 * i) + 5;
            quat_mul(turn, b.q + 4 * i, c.q + 4 * i);
        }
        rod_strain x, y;
        rod_element_strain(&b.m, 0, b.r, b.q, 0.3, &x);
        rod_element_strain(&c.m, 0, c.r, c.q, 0.3, &y);
        for (int k = 0; k < 3; k++)
            assert_true(fabs(x.v[k] - y.v[k]) < 1e-13 && fabs(x.u[k] - y.u[k]) < 1e-13);
        rod_element(&b.m, 0, b.r, b.q, NULL, f, NULL, NULL);
        rod_element(&c.m, 0, c.r, c.q, NULL, g, NULL, NULL);
        for (int i = 0; i < 4; i++)
            for (int k = 0; k < 3; k++) {
                assert_true(fabs(dot3(R + 3 * k, f + 6 * i) - g[6 * i + k]) < 1e-12);
                assert_true(fabs(f[6 * i + 3 + k] - g[6 * i + 3 + k]) < 1e-12);
            }
    }
}

static void test_rotations(void **st)
{
    (void)st;
    for (int n = 0; n < 100; n++) {
        double a[4] = { 1, 0, 0, 0 }, b[4], th[3] = { 1.5 * uniform(), 1.5 * uniform(), 1.5 * uniform() },
               back[3], R[9], c[4], first[3] = { 3 * uniform(), uniform(), uniform() };
        quat_turn(a, first);
        memcpy(b, a, sizeof b);
        quat_turn(b, th);
        quat_log(a, b, back);
        for (int k = 0; k < 3; k++)
            assert_true(fabs(back[k] - th[k]) < 1e-13);
        quat_matrix(b, R);
        quat_of_matrix(R, c);
        double same = 0;
        for (int k = 0; k < 4; k++)
            same += b[k] * c[k];
        assert_true(fabs(fabs(same) - 1) < 1e-14);
    }
}

/* Forces that follow an increment: the linear part of the change. */
static void test_forces_follow(void **st)
{
    (void)st;
    bar b, p, q;
    double dx[ROD_DOFS], zero[18], lin[18], fp[18], fq[18], h = 1e-5;
    bar_make(&b);
    for (int i = 0; i < ROD_DOFS; i++)
        dx[i] = uniform();
    rod_element_forces(&b.m, 0, b.r, b.q, NULL, zero);
    rod_element_forces(&b.m, 0, b.r, b.q, dx, lin);
    bar_move(&b, dx, h, &p);
    bar_move(&b, dx, -h, &q);
    rod_element_forces(&p.m, 0, p.r, p.q, NULL, fp);
    rod_element_forces(&q.m, 0, q.r, q.q, NULL, fq);
    for (int i = 0; i < 18; i++)
        assert_true(fabs((fp[i] - fq[i]) / (2 * h) - (lin[i] - zero[i])) < 1e-6);
}

/* ---- forces over a step of time ---- */
/* A bar and its state after a step: a large rotation of everything, and much bending. */
static void bar_step(bar *b, bar *c, double turn, double bend)
{
    double dx[ROD_DOFS], th[3] = { turn * uniform(), turn * uniform(), turn * uniform() },
                         q[4] = { 1, 0, 0, 0 }, R[9];
    bar d;
    bar_make(b);
    for (int i = 0; i < ROD_DOFS; i++)
        dx[i] = bend * uniform();
    bar_move(b, dx, 1, &d);
    bar_move(&d, dx, 0, c);
    quat_turn(q, th);
    quat_matrix(q, R);
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 3; k++)
            c->r[3 * i + k] = dot3(R + 3 * k, d.r + 3 * i) + turn;
        quat_mul(q, d.q + 4 * i, c->q + 4 * i);
    }
}

/* The work is the change of energy; forces, and moments about the mean positions, add up to zero; both for
   steps of any size. */
static void test_step_conserves(void **st)
{
    (void)st;
    for (int n = 0; n < 40; n++) {
        bar b, c;
        double f[ROD_DOFS] = { 0 }, work = 0, force[3] = { 0 }, moment[3] = { 0 };
        bar_step(&b, &c, n % 2 ? 1 : 0, n % 4 < 2 ? 0.3 : 1e-6);
        rod_element_step(&b.m, 0, b.r, b.q, c.r, c.q, NULL, 0.5, f, NULL);
        for (int i = 0; i < 4; i++) {
            double phi[3], R[9], mid[3], x[3];
            quat_cayley(b.q + 4 * i, c.q + 4 * i, phi);
            quat_matrix(c.q + 4 * i, R);
            for (int k = 0; k < 3; k++) {
                work += f[6 * i + k] * (c.r[3 * i + k] - b.r[3 * i + k]) + f[6 * i + 3 + k] * phi[k];
                mid[k] = (b.r[3 * i + k] + c.r[3 * i + k]) / 2;
            }
            cross3(mid, f + 6 * i, x);
            for (int k = 0; k < 3; k++) {
                force[k] += f[6 * i + k];
                moment[k] += x[k] + dot3(R + 3 * k, f + 6 * i + 3);
            }
        }
        assert_true(fabs(work - (energy_of(&c) - energy_of(&b))) < 1e-13);
        for (int k = 0; k < 3; k++)
            assert_true(fabs(force[k]) < 1e-13 && fabs(moment[k]) < 1e-13);
    }
}

/* for a step of length 0 they are the forces of the state */
static void test_step_is_state(void **st)
{
    (void)st;
    for (int n = 0; n < 20; n++) {
        bar b;
        double f[ROD_DOFS] = { 0 }, g[ROD_DOFS] = { 0 };
        bar_make(&b);
        rod_element(&b.m, 0, b.r, b.q, NULL, f, NULL, NULL);
        rod_element_step(&b.m, 0, b.r, b.q, b.r, b.q, NULL, 0.5, g, NULL);
        for (int i = 0; i < ROD_DOFS; i++)
            assert_true(fabs(f[i] - g[i]) < 1e-13);
    }
}

static void test_step_tangent(void **st)
{
    (void)st;
    for (int n = 0; n < 20; n++) {
        bar b, c, p, q;
        double K[ROD_DOFS * ROD_DOFS], h = 1e-5, most = 0;
        bar_step(&b, &c, n % 2, n % 4 < 2 ? 0.3 : 0.01);
        rod_element_step(&b.m, 0, b.r, b.q, c.r, c.q, NULL, 0.5 + 0.2 * (n % 3), NULL, K);
        for (int i = 0; i < ROD_DOFS * ROD_DOFS; i++)
            most = fmax(most, fabs(K[i]));
        for (int j = 0; j < ROD_DOFS; j++) {
            double dx[ROD_DOFS] = { 0 }, fp[ROD_DOFS] = { 0 }, fq[ROD_DOFS] = { 0 };
            dx[j] = 1;
            bar_move(&c, dx, h, &p);
            bar_move(&c, dx, -h, &q);
            rod_element_step(&b.m, 0, b.r, b.q, p.r, p.q, NULL, 0.5 + 0.2 * (n % 3), fp, NULL);
            rod_element_step(&b.m, 0, b.r, b.q, q.r, q.q, NULL, 0.5 + 0.2 * (n % 3), fq, NULL);
            for (int i = 0; i < ROD_DOFS; i++)
                assert_true(fabs((fp[i] - fq[i]) / (2 * h) - K[i * ROD_DOFS + j]) < 1e-7 * most);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_residual_is_slope), cmocka_unit_test(test_tangent_is_slope),
        cmocka_unit_test(test_rigid_motion),      cmocka_unit_test(test_rotations),
        cmocka_unit_test(test_forces_follow),     cmocka_unit_test(test_step_conserves),
        cmocka_unit_test(test_step_is_state),     cmocka_unit_test(test_step_tangent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
