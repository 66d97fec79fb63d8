/* Recorded step problems in FCLIB's layout: a written problem is read back, and has the same solution.
   Skipped if libhdf5 is not found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include "../problems/problem_fclib.h"
#include "../problems/problem_text.h"
#include "contact/contact.h"
#include "contact/pile.h"

#ifdef HAVE_HDF5
static contact_problem recorded(const char *name, double *tol, arena *a)
{
    contact_problem p;
    char path[512];
    const char *src = getenv("srcdir");
    snprintf(path, sizeof path, "%s/tests/problems/%s", src ? src : ".", name);
    FILE *from = fopen(path, "r");
    assert_non_null(from);
    assert_true(problem_read(from, &p, tol, a));
    fclose(from);
    return p;
}

static contact_problem there_and_back(const contact_problem *p, arena *a)
{
    contact_problem q;
    char path[] = "/tmp/cdl_fclib_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_true(problem_fclib_write(path, p, "a test", a));
    assert_true(problem_fclib_read(path, &q, a));
    unlink(path);
    return q;
}

/* Contacts with one and with three rows, an initial guess; velocities of a solution, row by row. */
static void same_problem(void **state)
{
    (void)state;
    static const char *const names[] = { "box3_60_0111.txt", "tower_60_0148.txt" };
    for (int k = 0; k < 2; k++) {
        arena *a = arena_new(&allocator_libc, NULL);
        double tol;
        contact_problem p = recorded(names[k], &tol, a), q = there_and_back(&p, a);
        assert_int_equal(q.n, p.n);
        assert_int_equal(q.cone[0].d, k ? 1 : 2);
        double *u = arena_array(a, double, p.m), *start = arena_array(a, double, q.m);
        memcpy(start, q.r, (size_t)q.m * sizeof *start);
        for (int solved = 0; solved < 2; solved++) {
            if (solved)
                assert_true(pile_solve(&p, a, tol));
            problem_velocities(&p, u);
            for (int c = 0; c < p.n; c++)
                for (int j = 0; j < cone_rows(&p.cone[c]); j++) {
                    if (!solved)
                        assert_true(start[q.cone[c].row + j] == p.r[p.cone[c].row + j]);
                    q.r[q.cone[c].row + j] = p.r[p.cone[c].row + j];
                }
            problem_velocities(&q, q.u);
            for (int c = 0; c < p.n; c++) {
                assert_true(q.cone[c].mu == (p.cone[c].d ? p.cone[c].mu : 0));
                for (int j = 0; j < cone_rows(&p.cone[c]); j++)
                    assert_true(fabs(q.u[q.cone[c].row + j] - u[p.cone[c].row + j]) <= 1e-13);
            }
        }
        q.fine = reaction_fine(tol);
        assert_true(contact_residual(&q) <= 2 * tol);
        arena_free(a);
    }
}

/* Two contacts and an equality between them become W, V and R. */
static void held_rows(void **state)
{
    (void)state;
    arena *a = arena_new(&allocator_libc, NULL);
    double W[9] = { 2, 0.5, 0, 0.5, 1, 0.25, 0, 0.25, 3 }, b[3] = { -1, 0.2, -2 }, r[3] = { 1, -1, 0.5 },
           u[3];
    int all[3] = { 0, 1, 2 };
    cone c[3] = { { .row = 0 }, { .kind = CONE_BILATERAL, .row = 1 }, { .row = 2 } };
    contact_problem p = { .n = 3, .m = 3, .cone = c, .W = W, .all = all, .b = b, .r = r, .u = u },
                    q = there_and_back(&p, a);
    assert_int_equal(q.n, 3);
    assert_int_equal(q.m, 5);
    assert_int_equal(q.cone[2].kind, CONE_BILATERAL);
    assert_true(contact_solve(&p, contact_work_new(a, 3, 3, 0), 1e-12));
    assert_true(contact_solve(&q, contact_work_new(a, 3, 5, 1), 1e-12));
    static const int to[3] = { 0, 4, 2 };
    for (int i = 0; i < 3; i++)
        assert_true(fabs(r[i] - q.r[to[i]]) <= 1e-12 && fabs(u[i] - q.u[to[i]]) <= 1e-12);
    c[0].d = 1;
    c[0].radius = 0.1;
    char path[] = "/tmp/cdl_fclib_never";
    assert_false(problem_fclib_write(path, &p, "a bound of its own", a));
    assert_int_equal(access(path, F_OK), -1);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(same_problem), cmocka_unit_test(held_rows) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    puts("1..1\nok 1 # SKIP libhdf5 was not found");
    return 0;
}
#endif
