/* What runs of many contacts cost, in counts that are the same on every machine: problems solved, pairs
 * listed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "cdl.h"
#include "model_session.h"
#include "program/near.h"
#include "session/session.h"

/* ---- slips that come to rest ---- */
static const char tower[] =
    "model tower {\n"
    "    param N = 40, mu = 0.3, g = 9.81, push = 60\n"
    "    dof p[i in 1..N] in R3 = [0, 0, i - 0.5]\n"
    "    for i in 1..N {\n"
    "        kinetic norm(p[i]')^2/2\n"
    "        potential g*p[i][3]\n"
    "        force p[i]: [push*sin(20*t)*exp(-((i - 24)/3)^2), push*cos(13*t)*exp(-((i - 12)/3)^2), 0]\n"
    "    }\n"
    "    constraint ground: p[1][3] >= 0.5 { slip = [p[1][1]', p[1][2]'], friction = coulomb(mu) }\n"
    "    constraint on[i in 1..N - 1]: p[i + 1][3] - p[i][3] >= 1 {\n"
    "        slip = [p[i + 1][1]' - p[i][1]', p[i + 1][2]' - p[i][2]'], friction = coulomb(mu)\n"
    "    }\n"
    "}\n"
    "run tower for 1 with sweeping(h = 1e-3, tolerance = 1e-8)\n";

/* A step solves one problem. A step that is cut where a slip comes to rest solves a few more, not the thirty
   that it takes to locate the time to rounding. */
static void turns_are_found_as_far_as_solved(void **state)
{
    (void)state;
    cdl *s = session_with(tower);
    const results *r = s->last->r;
    assert_int_equal(r->status, RUN_OK);
    assert_int_equal(r->count.steps, 1000);
    assert_true(r->count.solver_iterations <= 2600);
    assert_true(r->residual <= 1e-8);
    cdl_free(s);
}

/* ---- pairs that are near ---- */
static const char disks[] = "model disks {\n"
                            "    param N = 100, R = 0.01\n"
                            "    dof p[i in 1..N] in R2 = [2.2*R*mod(i - 1, 10), 2.2*R*floor((i - 1)/10)]\n"
                            "    for i in 1..N { kinetic norm(p[i]')^2/2 }\n"
                            "    constraint touch[i in 1..N, j in i+1..N]: norm(p[i] - p[j]) >= 2*R\n"
                            "}\n"
                            "run disks for 0.001 with sweeping(h = 1e-3)\n";

enum { DISKS = 100, DOFS = 2 * DISKS };

typedef struct places {
    arena *a;
    near_list near;
    double q[DOFS], v[DOFS];
} places;

static size_t pairs_of(const places *x)
{
    return x->near.of[0].pair.n / 2;
}

static bool keep(places *x, double margin, double listed)
{
    return near_keep(&x->near, 0, x->q, x->v, x->v, 1e-3, margin, listed);
}

static void near_pairs_are_found_where_they_help(void **state)
{
    (void)state;
    cdl *s = session_with(disks);
    const results *r = s->last->r;
    const char *why;
    span at;
    places x = { .a = arena_new(&allocator_libc, NULL) };
    system_t *sys = system_new(x.a, r->prog, r->param, STORE_SPARSE, &why, &at);
    assert_non_null(sys);
    system_start(sys, x.q, x.v);
    near_new(&x.near, x.a, sys);
    assert_int_equal(x.near.nof, 1);
    for (int i = 0; i < DOFS; i++)
        x.v[i] = i % 2 ? -3 : 0;
    assert_true(keep(&x, NEAR_AHEAD, NEAR_AHEAD));
    size_t usual = pairs_of(&x);
    /* all fall alike, by a hundred diameters: no two approach each other */
    for (int i = 0; i < DOFS; i++)
        x.q[i] += i % 2 ? -2 : 0;
    assert_false(keep(&x, NEAR_AHEAD, NEAR_AHEAD));
    assert_true(near_covers(&x.near, 0, x.q));
    /* one of them does not */
    x.q[1] += 1;
    assert_false(near_covers(&x.near, 0, x.q));
    assert_true(keep(&x, NEAR_AHEAD, NEAR_AHEAD));
    x.q[1] -= 1;
    assert_true(keep(&x, NEAR_AHEAD, NEAR_AHEAD));
    /* a larger search distance for listed pairs lists no more of them */
    assert_false(keep(&x, 9 * NEAR_AHEAD, NEAR_AHEAD));
    assert_int_equal(pairs_of(&x), usual);
    /* pairs that do move so far are listed, and removed when nothing moves so far any more */
    assert_true(keep(&x, 9 * NEAR_AHEAD, 9 * NEAR_AHEAD));
    assert_true(pairs_of(&x) > 2 * usual);
    assert_true(keep(&x, NEAR_AHEAD, NEAR_AHEAD));
    assert_int_equal(pairs_of(&x), usual);
    system_close(sys);
    arena_free(x.a);
    cdl_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_are_found_as_far_as_solved),
        cmocka_unit_test(near_pairs_are_found_where_they_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
