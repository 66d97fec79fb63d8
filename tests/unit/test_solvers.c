/* Every solver of the table on recorded step problems of piles (tests/problems): the chain solves them all; a
   solver that says it solved one left a residual within the tolerance, and the velocities of the chain, but
   for the problems on which solvers found more than one solution. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include "../problems/problem_text.h"
#include "contact/pile.h"
#include "contact/solvers.h"

enum { MOST_FILES = 64 };

static char *paths[MOST_FILES];
static int npaths;

static void paths_find(void)
{
    const char *src = getenv("srcdir");
    char folder[512], path[1024];
    snprintf(folder, sizeof folder, "%s/tests/problems", src ? src : ".");
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) && npaths < MOST_FILES;)
        if (strstr(e->d_name, ".txt")) {
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
            paths[npaths++] = strdup(path);
        }
    closedir(d);
    assert_true(npaths >= 12);
}

static sparse_problem read_one(const char *path, double *tol, arena *a)
{
    sparse_problem p;
    FILE *from = fopen(path, "r");
    assert_non_null(from);
    assert_true(problem_read(from, &p, tol, a));
    fclose(from);
    p.fine = reaction_fine(*tol);
    return p;
}

static bool worth_it(int by, const sparse_problem *p)
{
    if (by == SOLVER_LEMKE || by == SOLVER_LEMKE_LONG)
        return p->n <= 110;
    if (by == SOLVER_PROXIMAL_LONG || by == SOLVER_PROXIMAL_FIRM)
        return p->n <= 110 && p->cone[0].d < 2;
    return by != SOLVER_LEMKE_QUAD || p->n <= 40;
}

/* largest difference of velocities, over the largest of those without reactions */
static double apart(const sparse_problem *p, const double *ref, arena *a)
{
    double *u = arena_array(a, double, p->m), scale = 0, most = 0;
    problem_velocities(p, u);
    for (int k = 0; k < p->m; k++) {
        scale = fmax(scale, fabs(p->b[k]));
        most = fmax(most, fabs(u[k] - ref[k]));
    }
    return most / scale;
}

/* Coulomb friction may leave a problem more than one solution.  On these, answers with residuals within the
 * tolerance differ by 0.4 to 14 % of the largest velocity, mostly between warm and cold starts. */
static bool has_several(const char *path)
{
    static const char *const names[] = { "hopper_60_0185", "silo_400_0040", "silo_60_0148",
                                         "slope_60_0222",  "tower_60_0000", "wedge_60_0222" };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (strstr(path, names[k]))
            return true;
    return false;
}

static void same_velocities(void **state)
{
    (void)state;
    int solved[SOLVERS] = { 0 };
    for (int i = 0; i < npaths; i++) {
        arena *a = arena_new(&allocator_libc, NULL);
        double tol;
        sparse_problem p = read_one(paths[i], &tol, a);
        double *start = arena_array(a, double, p.m), *ref = arena_array(a, double, p.m);
        memcpy(start, p.r, (size_t)p.m * sizeof *start);
        if (!pile_solve(&p, a, tol))
            fail_msg("%s: not solved, residual %g", paths[i], p.residual);
        problem_velocities(&p, ref);
        for (int by = 0; by < SOLVERS; by++) {
            if (!worth_it(by, &p) || !contact_solvers[by].fits(&p))
                continue;
            memcpy(p.r, start, (size_t)p.m * sizeof *start);
            if (!contact_solvers[by].solve(&p, a, tol))
                continue;
            solved[by]++;
            assert_true(problem_measure(&p, NULL, a) <= tol);
            double far = apart(&p, ref, a);
            if (far > 1e3 * tol && !has_several(paths[i]))
                fail_msg("%s: %s is apart by %.2g", paths[i], contact_solvers[by].name, far);
        }
        arena_free(a);
    }
    for (int by = 0; by < SOLVERS; by++)
        print_message("%2d of %d: %s\n", solved[by], npaths, contact_solvers[by].name);
    static const int often[] = { SOLVER_SWEEPS, SOLVER_DAMPED, SOLVER_CENTRAL };
    for (size_t k = 0; k < sizeof often / sizeof *often; k++)
        assert_true(3 * solved[often[k]] >= npaths);
}

static void micro_gaps(void **state)
{
    (void)state;
    double g = 9.81, h = 1e-3;
    assert_true(fabs(contact_micro_gap(1e-8, h, g * h) - 1e-4 * g * h * h) <= 1e-20);
    assert_true(contact_micro_gap(1e-3, h, g * h) <= 1e-4 * g * h * h);
    assert_true(contact_micro_gap(1e-12, h, g * h) <= 1.1e-6 * g * h * h);
    assert_true(contact_micro_gap(1e-8, h, 0) == 0);
}

/* what is written is read back to the last bit */
static void text_round_trip(void **state)
{
    (void)state;
    arena *a = arena_new(&allocator_libc, NULL);
    double tol, again_tol;
    sparse_problem p = read_one(paths[0], &tol, a), again;
    FILE *f = tmpfile();
    assert_non_null(f);
    problem_write(f, &p, tol);
    rewind(f);
    assert_true(problem_read(f, &again, &again_tol, a));
    fclose(f);
    assert_int_equal(p.n, again.n);
    assert_int_equal(p.m, again.m);
    assert_true(tol == again_tol);
    assert_memory_equal(p.b, again.b, (size_t)p.m * sizeof *p.b);
    assert_memory_equal(p.r, again.r, (size_t)p.m * sizeof *p.r);
    for (int c = 0; c < p.n; c++)
        for (int j = 0; j < cone_rows(&p.cone[c]); j++)
            for (int k = p.start[c]; k < p.start[c + 1]; k++)
                assert_true(problem_entry(&again, c, j, p.col[k]) == problem_entry(&p, c, j, p.col[k]));
    arena_free(a);
}

int main(void)
{
    paths_find();
    const struct CMUnitTest tests[] = { cmocka_unit_test(same_velocities), cmocka_unit_test(text_round_trip),
                                        cmocka_unit_test(micro_gaps) };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int i = 0; i < npaths; i++)
        free(paths[i]);
    return failed;
}
