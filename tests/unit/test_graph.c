/* Graphs and their inverses; projections onto polyhedra. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "inclusion/inclusion.h"

/* beta(x) = k x + mu(|x|) Sgn(x), mu(s) = d + (s0 - d)/(1 + s/c). */
typedef struct {
    double k, s0, d, c;
} slab;

static void slab_at(void *ud, double x, int side, double out[3])
{
    const slab *p = ud;
    double s = x > 0 ? 1 : x < 0 ? -1 : side, a = fabs(x), u = 1 + a / p->c;
    out[0] = p->k * x + s * (p->d + (p->s0 - p->d) / u);
    out[1] = p->k - (p->s0 - p->d) / (p->c * u * u);
    out[2] = s * 2 * (p->s0 - p->d) / (p->c * p->c * u * u * u);
}

/* x + a sin(w x): folds where 1 + a w cos(w x) = 0. */
static void wave_at(void *ud, double x, int side, double out[3])
{
    const double *p = ud;
    (void)side;
    out[0] = x + p[0] * sin(p[1] * x);
    out[1] = 1 + p[0] * p[1] * cos(p[1] * x);
    out[2] = -p[0] * p[1] * p[1] * sin(p[1] * x);
}

static arena *fresh(void)
{
    return arena_new(&allocator_libc, NULL);
}

/* Folds at +-(c sqrt((s0 - d)/(k c)) - c), and the kink between them. */
static void slab_is_cut(void **state)
{
    arena *a = fresh();
    slab p = { 1, 1, 0.4, 0.2 };
    const double kink[] = { 0 };
    graph_map m = { &p, slab_at, kink, 1 };
    graph g = { .a = a };
    (void)state;
    graph_build(&g, &m, -8, 8);
    double fold = p.c * sqrt((p.s0 - p.d) / (p.k * p.c)) - p.c;
    assert_int_equal(g.piece.n, 5);
    assert_true(fabs(g.piece.at[0].x1 + fold) < 1e-15);
    assert_int_equal(g.piece.at[1].kind, PIECE_FALLING);
    assert_int_equal(g.piece.at[2].kind, PIECE_UP);
    assert_true(g.piece.at[2].y0 == -1 && g.piece.at[2].y1 == 1);
    assert_true(fabs(g.piece.at[4].x0 - fold) < 1e-15);
    arena_free(a);
}

/* Load 0.9: stick, the root 0.1 on a falling branch and the root 0.2 on a rising one. */
static void slab_is_inverted(void **state)
{
    arena *a = fresh();
    slab p = { 1, 1, 0.4, 0.2 };
    const double kink[] = { 0 };
    graph_map m = { &p, slab_at, kink, 1 };
    graph g = { .a = a };
    graph_root r[8];
    (void)state;
    graph_build(&g, &m, -8, 8);
    assert_int_equal(graph_roots(&g, &m, 0.9, r, 8), 3);
    assert_true(r[0].x == 0 && g.piece.at[r[0].piece].kind == PIECE_UP);
    assert_true(fabs(r[1].x - 0.1) < 1e-15 && g.piece.at[r[1].piece].kind == PIECE_FALLING);
    assert_true(fabs(r[2].x - 0.2) < 1e-15 && g.piece.at[r[2].piece].kind == PIECE_RISING);
    assert_int_equal(graph_roots(&g, &m, -1.2, r, 8), 1);
    assert_true(graph_flow(&g, &m, 0.9, 0.05).x == 0);
    assert_true(fabs(graph_flow(&g, &m, 0.9, 0.15).x - 0.2) < 1e-15);
    assert_true(fabs(graph_flow(&g, &m, 0.9, 5).x - 0.2) < 1e-15);
    assert_true(graph_flow(&g, &m, 0.9, -3).x == 0);
    assert_true(fabs(graph_least_slope(&g, &m) + 2) < 1e-9);
    arena_free(a);
}

/* Four folds: x + 1.5 sin 2x between -pi and pi. */
static void four_folds(void **state)
{
    arena *a = fresh();
    double p[] = { 1.5, 2 }, c = acos(-1.0 / 3) / 2;
    graph_map m = { p, wave_at, NULL, 0 };
    graph g = { .a = a };
    graph_root r[8];
    (void)state;
    graph_build(&g, &m, -M_PI, M_PI);
    const double fold[] = { -M_PI + c, -c, c, M_PI - c };
    assert_int_equal(g.piece.n, 5);
    for (int k = 0; k < 4; k++)
        assert_true(fabs(g.piece.at[k].x1 - fold[k]) < 1e-15);
    int n = graph_roots(&g, &m, 0.3, r, 8);
    assert_int_equal(n, 1);
    assert_true(fabs(r[0].x + 1.5 * sin(2 * r[0].x) - 0.3) < 1e-14);
    n = graph_roots(&g, &m, 1.9, r, 8);
    for (int k = 0; k < n; k++)
        assert_true(fabs(r[k].x + 1.5 * sin(2 * r[k].x) - 1.9) < 1e-14);
    assert_int_equal(n, 3);
    arena_free(a);
}

/* Every load has an odd number of roots, and each root gives that load. */
static void many_loads(void **state)
{
    arena *a = fresh();
    slab p = { 0.3, 1, 0.2, 0.01 };
    const double kink[] = { 0 };
    graph_map m = { &p, slab_at, kink, 1 };
    graph g = { .a = a };
    (void)state;
    graph_build(&g, &m, -100, 100);
    for (int k = -200; k <= 200; k++) {
        double y = 0.1003 * k, out[3];
        graph_root r[8];
        int n = graph_roots(&g, &m, y, r, 8);
        assert_true(n % 2 == 1 && n <= 5);
        for (int i = 0; i < n; i++) {
            if (r[i].x == 0) {
                assert_true(fabs(y) <= 1);
                continue;
            }
            slab_at(&p, r[i].x, 0, out);
            assert_true(fabs(out[0] - y) <= 1e-13 * fmax(1, fabs(y)));
        }
    }
    arena_free(a);
}

static void polyhedra(void **state)
{
    arena *a = fresh();
    polyhedron_work w;
    double y[3];
    (void)state;
    polyhedron_work_new(&w, 3, a);
    /* a corner of the unit box, an edge, a face, inside */
    const double box[] = { 1, 0, 0, 0, 1, 0, 0, 0, 1, -1, 0, 0, 0, -1, 0, 0, 0, -1 },
                 d[] = { 1, 1, 1, 1, 1, 1 };
    const double from[][3] = { { 2, 3, -4 }, { 2, 0.5, 7 }, { 0.1, -5, 0.2 }, { 0.3, 0.2, 0.1 } };
    for (int k = 0; k < 4; k++) {
        assert_true(polyhedron_project(&w, box, d, 6, 3, from[k], y));
        for (int i = 0; i < 3; i++)
            assert_true(fabs(y[i] - fmax(-1, fmin(1, from[k][i]))) < 1e-15);
    }
    /* a wedge with a redundant row: the nearest point of x + y <= 0, x - y <= 0 to (1, 0.2) is (0, 0) */
    const double s = M_SQRT1_2, wedge[] = { s, s, s, -s, 1, 0 }, e[] = { 0, 0, 0 }, z[] = { 1, 0.2 };
    polyhedron_work_new(&w, 2, a);
    assert_true(polyhedron_project(&w, wedge, e, 3, 2, z, y));
    assert_true(fabs(y[0]) < 1e-15 && fabs(y[1]) < 1e-15);
    /* x <= -1 and x >= 1: empty */
    const double both[] = { 1, 0, -1, 0 }, f[] = { -1, -1 };
    assert_false(polyhedron_project(&w, both, f, 2, 2, z, y));
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slab_is_cut), cmocka_unit_test(slab_is_inverted), cmocka_unit_test(four_folds),
        cmocka_unit_test(many_loads),  cmocka_unit_test(polyhedra),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
