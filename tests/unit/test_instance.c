/* Models that a caller advances step by step. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include "cdl.h"

static char said[1 << 14];

static void on_err(void *ud, const char *t, size_t n)
{
    size_t have = strlen(said);
    (void)ud;
    if (n < sizeof said - have) {
        memcpy(said + have, t, n);
        said[have + n] = 0;
    }
}

static cdl *open_session(const char *text)
{
    cdl *s = cdl_new(NULL);
    said[0] = 0;
    cdl_set_callbacks(s, &(cdl_callbacks){ .err = on_err });
    cdl_set(s, "quiet", "yes");
    if (cdl_check_text(s, "t.cdl", text, strlen(text)) != CDL_OK)
        fail_msg("%s", said);
    return s;
}

static cdl_instance *make(cdl *s, const char *model, const char *input, const char *with)
{
    cdl_instance *i;
    if (cdl_instance_new(s, model, NULL, 0, &input, input != NULL, with, &i) != CDL_OK)
        fail_msg("%s", said);
    return i;
}

static double get(cdl_instance *i, const char *name)
{
    size_t n;
    double x[64];
    int k = cdl_instance_find(i, name, &n);
    if (k < 0 || cdl_instance_get(i, k, x) != CDL_OK)
        fail_msg("%s: %s", name, cdl_instance_message(i));
    return x[0];
}

static cdl_status set(cdl_instance *i, const char *name, double x)
{
    size_t n;
    return cdl_instance_set(i, cdl_instance_find(i, name, &n), &x);
}

static void go(cdl_instance *i, double to)
{
    if (cdl_instance_step(i, to) != CDL_OK)
        fail_msg("t = %g: %s", to, cdl_instance_message(i));
}

static void assert_near(double is, double want, double by)
{
    if (!(fabs(is - want) <= by))
        fail_msg("%.17g is not within %g of %.17g", is, by, want);
}

static const char models[] =
    "model ball { param g = 9.81, e in 0..1 = 0.7\n dof y = 1\n y'' = -g\n"
    "    constraint floor: y >= 0 { impact = newton(e) } }\n"
    "model block { param F = 0, mu = 0.3, m = 2\n dof x = 0, y = 0\n m*x'' = F\n m*y'' = -m*9.81\n"
    "    constraint floor: y >= 0 { slip = x', friction = coulomb(mu) } }\n"
    "model late { param tau = 0.1\n dof x = 1, x' = 0\n x'' = -x(t - tau) - 0.2*x'\n"
    "    constraint wall: x >= -0.5 { impact = newton(0.5) } }\n"
    "model wall { param w = -1\n dof x = 0, x' = -1\n x'' = 0\n constraint edge: x >= w { impact = newton(0) "
    "} }\n"
    "model stopped { dof x = 0, x' = 1\n x'' = 0\n stop when x > 0.5 }\n"
    "model driven { param F = 0, k = 3\n dof x = 0, x' = 0\n x'' + k*x = k*F }\n"
    "model brick { dof p in R3 = [0, 0, 0.4], p' = [1, 0, 0]\n kinetic norm(p')^2/2\n potential 9.81*p[3]\n"
    "    shape hull: box([-0.1, -0.05, -0.03], [0.1, 0.05, 0.03]) at p\n"
    "    shape table: box([-1, -1, -1], [1, 1, 0])\n"
    "    constraint touch: hull.gap(table) >= 0 { friction = coulomb(0.4) } }\n"
    "model fed { param a = 1, b = 2*a\n dof x = a\n x'' = b }\n"
    "model column { param N = 4\n dof z[i in 1..N] = i\n for i in 1..N { z[i]'' = -1 }\n"
    "    constraint floor: z[1] >= 0\n constraint pair[i in 1..N-1]: z[i+1] - z[i] >= 0.5 }\n";

/* a test of its own, since models with shapes take long to compile */
static const char turning[] =
    "model free_body { dof A in SO3 = rot_x(0.3), A' = [0, 5, 0.1]\n"
    "    kinetic dot(A', diag(1, 2, 3)*A')/2 }\n"
    "model damped { dof A in SO3 = rot_x(0.3), A' = [0, 5, 0.1]\n"
    "    kinetic dot(A', diag(1, 2, 3)*A')/2\n force A: -0.4*A'(t - 0.1) }\n"
    "model thrown { param m = 2\n dof p in R3 = [0, 0, 0.5], p' = [0.3, 0, 0]\n"
    "    dof A in SO3 = rot_x(0.4), A' = [1, 2, 0.5]\n"
    "    kinetic m*norm(p')^2/2 + 0.01*norm(A')^2/2\n potential m*9.81*p[3]\n"
    "    shape hull: box([-0.1, -0.05, -0.03], [0.1, 0.05, 0.03]) at p, A\n"
    "    shape table: box([-3, -3, -1], [3, 3, 0])\n"
    "    constraint touch: hull.gap(table) >= 0 { friction = coulomb(0.4), impact = newton(0.3) } }\n"
    "model bodies { param N = 3\n dof A[i in 1..N] in SO3 = rot_z(0.1*i), A[i in 1..N]' = [0.2, i, 0]\n"
    "    for i in 1..N { kinetic dot(A[i]', diag(1, 2, 3)*A[i]')/2 } }\n";

static cdl *open_all(void)
{
    cdl *s = open_session(models);
    if (cdl_check_text(s, "turning.cdl", turning, strlen(turning)) != CDL_OK)
        fail_msg("%s", said);
    return s;
}

/* The last value of a name after `run text`. */
static double of_run(cdl *s, const char *text, const char *expression)
{
    double x = NAN;
    if (cdl_execute(s, text, strlen(text)) != CDL_OK || cdl_value(s, expression, &x) != CDL_OK)
        fail_msg("%s", said);
    return x;
}

static void same_as_a_run(void **state)
{
    (void)state;
    cdl *s = open_all();
    static const char *const all[][3] = {
        { "ball", "y", "sweeping(h = 1e-3)" },           { "late", "x", "sweeping(h = 2e-3)" },
        { "block", "y", "sweeping(h = 1e-2)" },          { "ball", "y", "auglag(h = 1e-3)" },
        { "column", "z[4]", "sweeping(h = 1e-2)" },      { "brick", "p[3]", "sweeping(h = 2e-3)" },
        { "free_body", "A[3,3]", "sweeping(h = 1e-2)" }, { "free_body", "A'[3]", "auglag(h = 1e-2)" },
        { "damped", "A[3,3]", "sweeping(h = 2e-3)" },    { "damped", "A''[3]", "sweeping(h = 2e-3)" },
        { "thrown", "A''[3]", "sweeping(h = 2e-3)" },    { "thrown", "A'[3]", "auglag(h = 4e-3)" },
        { "bodies", "A[3][3,3]", "sweeping(h = 1e-2)" }
    };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        cdl_instance *i = make(s, all[k][0], NULL, all[k][2]);
        char text[200], last[50], name[20];
        int pieces = strcmp(all[k][0], "thrown") ? 150 : 40; /* this one falls within 0.3 s */
        for (int j = 1; j <= pieces; j++)
            go(i, j * 0.02);
        snprintf(text, sizeof text, "run %s for %.17g with %s", all[k][0], pieces * 0.02, all[k][2]);
        snprintf(last, sizeof last, "last(%s)", all[k][1]);
        snprintf(name, sizeof name, "%s", all[k][1]);
        double want = of_run(s, text, last), is = 0, x[36];
        size_t n;
        name[strcspn(name, "[")] = 0;
        assert_int_equal(cdl_instance_get(i, cdl_instance_find(i, name, &n), x), CDL_OK);
        is = x[n - 1];
        if (is != want)
            fail_msg("%s: %.17g after steps, %.17g after a run", all[k][0], is, want);
        assert_true(cdl_instance_time(i) == pieces * 0.02);
        cdl_instance_free(i);
    }
    cdl_free(s);
}

static void state_is_a_value(void **state)
{
    (void)state;
    cdl *s = open_all();
    static const char *const all[][2] = { { "ball", "y" },   { "late", "x" },  { "block", "x" },
                                          { "column", "z" }, { "brick", "p" }, { "free_body", "A" },
                                          { "damped", "A" }, { "thrown", "A" } };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        cdl_instance *i = make(s, all[k][0], NULL, "sweeping(h = 1e-3)"),
                     *j = make(s, all[k][0], NULL, "sweeping(h = 1e-3)");
        const void *bytes;
        size_t n;
        go(i, 0.7305);
        assert_int_equal(cdl_instance_save(i, &bytes, &n), CDL_OK);
        assert_int_equal(cdl_instance_load(j, bytes, n), CDL_OK);
        char *kept = malloc(n);
        memcpy(kept, bytes, n);
        go(i, 1.9);
        go(j, 1.9);
        assert_true(get(i, all[k][1]) == get(j, all[k][1]));
        double then = get(i, all[k][1]), when = cdl_instance_time(i);
        assert_int_equal(cdl_instance_load(i, kept, n), CDL_OK);
        assert_true(cdl_instance_time(i) == 0.7305);
        go(i, 1.9);
        assert_true(get(i, all[k][1]) == then);
        /* damaged states are refused, and nothing changes */
        assert_int_equal(cdl_instance_load(i, kept, n / 2), CDL_USAGE);
        assert_int_equal(cdl_instance_load(i, "nonsense", 8), CDL_USAGE);
        if (cdl_instance_time(i) != when || get(i, all[k][1]) != then)
            fail_msg("%s at %.17g: %.17g, not %.17g", all[k][0], cdl_instance_time(i), get(i, all[k][1]),
                     then);
        free(kept);
        cdl_instance_free(i);
        cdl_instance_free(j);
    }
    cdl_free(s);
}

static void state_is_set(void **state)
{
    (void)state;
    cdl *s = open_session(models);
    cdl_instance *i = make(s, "ball", NULL, NULL);
    go(i, 0.2);
    assert_int_equal(set(i, "y", 2), CDL_OK);
    assert_int_equal(set(i, "y'", 0), CDL_OK);
    assert_true(get(i, "y") == 2);
    go(i, 0.5);
    assert_true(fabs(get(i, "y") - (2 - 9.81 * 0.09 / 2)) < 1e-12);
    assert_true(fabs(get(i, "y''") + 9.81) < 1e-12);
    assert_true(fabs(get(i, "energy") - 9.81 * 2) < 1e-9);
    /* on the floor and approaching it: the shock acts at once */
    set(i, "y", 0);
    set(i, "y'", -1);
    assert_true(get(i, "floor.gap") == 0);
    assert_true(fabs(get(i, "y'") - 0.7) < 1e-12);
    /* below the floor */
    set(i, "y", -1);
    assert_int_equal(cdl_instance_step(i, 0.6), CDL_SOLVER);
    assert_non_null(strstr(cdl_instance_message(i), "constraint 'floor' does not hold"));
    set(i, "y", 1);
    go(i, 0.6);
    assert_int_equal(set(i, "floor.rn", 1), CDL_USAGE);
    assert_int_equal(set(i, "y", NAN), CDL_USAGE);
    assert_int_equal(cdl_instance_step(i, 0.1), CDL_USAGE);
    cdl_instance_free(i);
    cdl_free(s);
}

/* a matrix about an axis, and the angular velocity about it: the rotation of a free body */
static void rotations_are_set(void **state)
{
    (void)state;
    cdl *s = open_all();
    cdl_instance *i = make(s, "free_body", NULL, "sweeping(h = 1e-3)"),
                 *j = make(s, "bodies", NULL, "sweeping(h = 1e-3)");
    double c = cos(0.5), d = sin(0.5), is[27];
    const double turned[9] = { c, -d, 0, d, c, 0, 0, 0, 1 }, spin[3] = { 0, 0, 2 },
                 mirror[9] = { 0, 1, 0, 1, 0, 0, 0, 0, 1 }, stretched[9] = { 1.1, 0, 0, 0, 1, 0, 0, 0, 1 };
    size_t shape[CDL_AXES], n;
    int A = cdl_instance_find(i, "A", &n), w = cdl_instance_find(i, "A'", NULL);
    assert_int_equal(n, 9);
    assert_int_equal(cdl_instance_shape(i, A, shape), 2);
    assert_true(shape[0] == 3 && shape[1] == 3);
    go(i, 0.1);
    double before[3], after[3];
    assert_int_equal(cdl_instance_get(i, w, before), CDL_OK);
    assert_int_equal(cdl_instance_set(i, A, turned), CDL_OK);
    assert_int_equal(cdl_instance_get(i, w, after), CDL_OK);
    for (int k = 0; k < 3; k++) /* setting the rotation keeps the angular velocity in the frame of the body */
        assert_near(after[k], before[k], 1e-14);
    assert_int_equal(cdl_instance_set(i, A, mirror), CDL_USAGE);
    assert_non_null(strstr(cdl_instance_message(i), "must be a rotation"));
    assert_int_equal(cdl_instance_set(i, A, stretched), CDL_USAGE);
    assert_int_equal(cdl_instance_set(i, w, spin), CDL_OK);
    go(i, 0.6);
    assert_int_equal(cdl_instance_get(i, A, is), CDL_OK);
    double angle = 0.5 + 2 * 0.5,
           want[9] = { cos(angle), -sin(angle), 0, sin(angle), cos(angle), 0, 0, 0, 1 };
    for (int k = 0; k < 9; k++)
        assert_near(is[k], want[k], 2 * 0.5 * 4 * 1e-6 / 12 + 1e-12); /* w^3 t h^2/12 of the angle */
    A = cdl_instance_find(j, "A", &n);
    assert_int_equal(n, 27);
    assert_int_equal(cdl_instance_shape(j, A, shape), 3);
    assert_int_equal(cdl_instance_shape(j, cdl_instance_find(j, "A''", &n), shape), 2);
    assert_true(n == 9 && shape[0] == 3 && shape[1] == 3);
    assert_int_equal(cdl_instance_shape(j, 1000, shape), -1);
    assert_int_equal(cdl_instance_get(j, A, is), CDL_OK);
    assert_near(is[9], cos(0.2), 1e-15);
    assert_near(is[10], -sin(0.2), 1e-15);
    cdl_instance_free(i);
    cdl_instance_free(j);
    cdl_free(s);
}

/* Reading results between two steps does not change the steps. */
static void looking_changes_nothing(void **state)
{
    (void)state;
    cdl *s = open_all();
    static const char *const all[][2] = {
        { "thrown", "A" }, { "brick", "p" }, { "damped", "A" }, { "ball", "y" }
    };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        cdl_instance *i = make(s, all[k][0], NULL, "sweeping(h = 2e-3)"),
                     *j = make(s, all[k][0], NULL, "sweeping(h = 2e-3)");
        for (int t = 1; t <= 300; t++) {
            go(i, t * 5e-3);
            go(j, t * 5e-3);
            get(j, "energy");
            if (t % 3 == 0)
                get(j, "energy");
        }
        double x[9], y[9];
        size_t n;
        int at = cdl_instance_find(i, all[k][1], &n);
        assert_int_equal(cdl_instance_get(i, at, x), CDL_OK);
        assert_int_equal(cdl_instance_get(j, at, y), CDL_OK);
        assert_memory_equal(x, y, n * sizeof *x);
        cdl_instance_free(i);
        cdl_instance_free(j);
    }
    cdl_free(s);
}

static void parameters_are_set(void **state)
{
    (void)state;
    cdl *s = open_session(models);
    cdl_instance *i = make(s, "ball", NULL, NULL);
    go(i, 0.1);
    double y = get(i, "y"), v = get(i, "y'");
    assert_int_equal(set(i, "g", 1), CDL_OK);
    assert_true(get(i, "y") == y && cdl_instance_time(i) == 0.1);
    go(i, 0.3);
    assert_true(fabs(get(i, "y") - (y + v * 0.2 - 0.5 * 0.04)) < 1e-12);
    assert_int_equal(set(i, "e", 2), CDL_USAGE);
    assert_non_null(strstr(cdl_instance_message(i), "'e' = 2 lies outside 0..1"));
    cdl_instance_free(i);
    i = make(s, "block", NULL, NULL);
    go(i, 0.1);
    assert_true(fabs(get(i, "floor.rn") - 2 * 9.81) < 1e-9);
    set(i, "m", 3);
    go(i, 0.2);
    assert_true(fabs(get(i, "floor.rn") - 3 * 9.81) < 1e-9);
    assert_true(get(i, "floor.status") == 1);
    set(i, "F", 20); /* more than friction can hold */
    go(i, 1.2);
    assert_true(get(i, "floor.status") == 2);
    assert_true(fabs(get(i, "x'") - (20 - 0.3 * 3 * 9.81) / 3) < 1e-9);
    cdl_instance_free(i);
    cdl_free(s);
}

static void wave(void *ud, double t, double *out)
{
    (void)ud;
    *out = sin(t);
}

static void inputs_are_functions(void **state)
{
    (void)state;
    cdl *s = open_session(models);
    size_t n;
    cdl_instance *i = make(s, "block", "F", NULL);
    int F = cdl_instance_find(i, "F", NULL);
    const double hold[] = { 10 }, ramp[] = { 0, 2 }, none[] = { 0 };
    go(i, 0.1);
    assert_int_equal(cdl_instance_input(i, F, hold, 1), CDL_OK);
    go(i, 1.1);
    assert_true(fabs(get(i, "x'") - (10 - 0.3 * 2 * 9.81) / 2) < 1e-9);
    assert_true(get(i, "F") == 10);
    cdl_instance_input(i, F, none, 1);
    go(i, 5);
    assert_true(get(i, "x'") == 0 && get(i, "floor.status") == 1);
    /* friction holds for the first 2.943 s of the ramp */
    cdl_instance_input(i, F, ramp, 2);
    go(i, 7.9);
    assert_true(get(i, "x'") == 0 && fabs(get(i, "floor.rt") + 2 * 2.9) < 0.01);
    go(i, 9);
    double late = 4 - 0.3 * 9.81;
    assert_true(fabs(get(i, "x'") - late * late / 2) < 1e-2);
    cdl_instance_free(i);
    /* the same as the model that contains the function */
    i = make(s, "driven", "F", "sweeping(h = 1e-3)");
    F = cdl_instance_find(i, "F", &n);
    assert_int_equal(cdl_instance_function(i, F, wave, NULL), CDL_OK);
    for (int k = 1; k <= 200; k++)
        go(i, k * 0.01);
    static const char within[] = "model w { dof x = 0, x' = 0\n x'' + 3*x = 3*sin(t) }\n";
    assert_int_equal(cdl_run_text(s, "w", within, strlen(within)), CDL_OK);
    double want = of_run(s, "run w for 2 with sweeping(h = 1e-3)", "last(x)");
    assert_true(fabs(get(i, "x") - want) < 1e-10);
    const void *bytes;
    assert_int_equal(cdl_instance_save(i, &bytes, &n), CDL_OK);
    cdl_instance_free(i);
    /* a wall moved by an input pushes */
    i = make(s, "wall", "w", NULL);
    const double moves[] = { -1, 2 };
    cdl_instance_input(i, cdl_instance_find(i, "w", &n), moves, 2);
    go(i, 1);
    assert_true(fabs(get(i, "x'") - 2) < 1e-9 && fabs(get(i, "x") - 1) < 1e-9);
    cdl_instance_free(i);
    /* quantities that depend on an input through a parameter would not follow it */
    cdl_instance *none_made;
    const char *a = "a", *nn = "N";
    assert_int_equal(cdl_instance_new(s, "fed", NULL, 0, &a, 1, NULL, &none_made), CDL_MODEL);
    assert_non_null(strstr(said, "depends on 'a', an input"));
    assert_int_equal(cdl_instance_new(s, "column", NULL, 0, &nn, 1, NULL, &none_made), CDL_MODEL);
    assert_non_null(strstr(said, "a size depends on 'N'"));
    assert_int_equal(cdl_instance_new(s, "driven", NULL, 0, &nn, 1, NULL, &none_made), CDL_MODEL);
    assert_int_equal(cdl_instance_new(s, "driven", NULL, 0, NULL, 0, "events()", &none_made), CDL_MODEL);
    assert_non_null(strstr(said, "does not support stepping"));
    assert_int_equal(cdl_instance_new(s, "driven", NULL, 0, NULL, 0, "sweping()", &none_made), CDL_MODEL);
    assert_non_null(strstr(said, "did you mean 'sweeping'"));
    cdl_free(s);
}

static void names_and_impacts(void **state)
{
    (void)state;
    cdl *s = open_session(models);
    cdl_instance *i = make(s, "ball", NULL, "sweeping(h = 1e-3)");
    const cdl_impact *x;
    size_t n;
    assert_int_equal(cdl_instance_find(i, "floor.r", &n), -1);
    assert_non_null(strstr(cdl_instance_message(i), "did you mean 'floor.rn'"));
    go(i, 0.4);
    assert_int_equal(cdl_instance_impacts(i, &x), 0);
    go(i, 0.5);
    assert_int_equal(cdl_instance_impacts(i, &x), 1);
    assert_string_equal(x[0].constraint, "floor");
    assert_true(fabs(x[0].t - sqrt(2 / 9.81)) < 1e-6 && fabs(x[0].post + 0.7 * x[0].pre) < 1e-12);
    go(i, 0.6);
    assert_int_equal(cdl_instance_impacts(i, &x), 0);
    cdl_instance_free(i);
    i = make(s, "stopped", NULL, NULL);
    assert_int_equal(cdl_instance_step(i, 2), CDL_EXPECT);
    assert_true(fabs(cdl_instance_time(i) - 0.5) < 1e-9);
    assert_int_equal(cdl_instance_step(i, 2), CDL_EXPECT);
    assert_true(fabs(cdl_instance_time(i) - 0.5) < 1e-9);
    set(i, "x", 0); /* continues from there */
    go(i, 0.8);
    assert_true(fabs(get(i, "x") - 0.3) < 1e-9);
    cdl_instance_free(i);
    cdl_free(s);
}

typedef struct {
    cdl_instance *i;
    double y;
} job;

static void *work(void *of)
{
    job *j = of;
    size_t n;
    double x[8];
    for (int k = 1; k <= 2000; k++)
        cdl_instance_step(j->i, k * 1e-3);
    cdl_instance_get(j->i, cdl_instance_find(j->i, "z", &n), x);
    j->y = x[3];
    return NULL;
}

static void two_threads(void **state)
{
    (void)state;
    cdl *s = open_session(models);
    job j[3] = { { make(s, "column", NULL, NULL), 0 },
                 { make(s, "column", NULL, NULL), 0 },
                 { make(s, "column", NULL, NULL), 0 } };
    pthread_t t[2];
    for (int k = 0; k < 2; k++)
        assert_int_equal(pthread_create(&t[k], NULL, work, &j[k]), 0);
    /* meanwhile, the session runs */
    of_run(s, "run column for 0.5", "last(z[1])");
    for (int k = 0; k < 2; k++)
        pthread_join(t[k], NULL);
    work(&j[2]);
    assert_true(j[0].y == j[2].y && j[1].y == j[2].y && j[0].y != 0);
    for (int k = 0; k < 3; k++)
        cdl_instance_free(j[k].i);
    cdl_free(s);
}

/* The number of bytes that an instance holds does not grow with its steps. */
static size_t held;

static void *counted(void *ud, void *p, size_t n)
{
    (void)ud;
    size_t *block = p ? (size_t *)p - 2 : NULL;
    held -= block ? block[0] : 0;
    if (n == 0) {
        free(block);
        return NULL;
    }
    block = realloc(block, n + 2 * sizeof *block);
    block[0] = n;
    held += n;
    return block + 2;
}

static void steps_take_no_memory(void **state)
{
    (void)state;
    cdl *s = cdl_new(&(cdl_allocator){ counted, NULL });
    assert_int_equal(cdl_check_text(s, "t", models, strlen(models)), CDL_OK);
    static const char *const all[] = { "ball", "late", "block", "column" };
    for (size_t k = 0; k < 4; k++) {
        cdl_instance *i = make(s, all[k], NULL, "sweeping(h = 1e-2)");
        size_t n, after = 0;
        const void *bytes;
        for (int j = 1; j <= 4000; j++) {
            go(i, j * 0.01);
            if (j % 10 == 0)
                cdl_instance_save(i, &bytes, &n);
            if (j == 1000)
                after = held;
        }
        assert_true(held <= after);
        cdl_instance_free(i);
    }
    cdl_free(s);
    assert_int_equal(held, 0);
}

static int left; /* number of allocations that succeed */

static void *failing(void *ud, void *p, size_t n)
{
    if (n && left-- <= 0)
        return NULL;
    return counted(ud, p, n);
}

/* Each allocation fails once, when making, stepping, setting and saving: no memory is lost. */
static void no_memory(void **state)
{
    (void)state;
    bool whole = false;
    for (int k = 0; !whole && k < 2000; k++) {
        left = 1 << 30;
        cdl *s = cdl_new(&(cdl_allocator){ failing, NULL });
        cdl_set_callbacks(s, &(cdl_callbacks){ .err = on_err });
        assert_int_equal(cdl_check_text(s, "t", models, strlen(models)), CDL_OK);
        cdl_instance *i = NULL;
        const char *F = "F";
        const void *bytes;
        size_t n;
        left = k;
        cdl_status is = cdl_instance_new(s, "block", NULL, 0, &F, 1, NULL, &i);
        assert_true(is == CDL_OK ? i != NULL : is == CDL_MEMORY && !i);
        if (i)
            is = cdl_instance_step(i, 0.1);
        if (is == CDL_OK)
            is = set(i, "mu", 0.2);
        if (is == CDL_OK)
            is = cdl_instance_save(i, &bytes, &n);
        if (is == CDL_OK)
            is = cdl_instance_load(i, bytes, n);
        whole = is == CDL_OK && left >= 0;
        assert_true(is == CDL_OK || is == CDL_MEMORY);
        left = 1 << 30;
        cdl_instance_free(i);
        cdl_free(s);
        assert_int_equal(held, 0);
    }
    assert_true(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_a_run),
        cmocka_unit_test(state_is_a_value),
        cmocka_unit_test(state_is_set),
        cmocka_unit_test(rotations_are_set),
        cmocka_unit_test(looking_changes_nothing),
        cmocka_unit_test(parameters_are_set),
        cmocka_unit_test(inputs_are_functions),
        cmocka_unit_test(names_and_impacts),
        cmocka_unit_test(two_threads),
        cmocka_unit_test(steps_take_no_memory),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
