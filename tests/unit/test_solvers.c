/* Every solver of the table on recorded step problems of piles (tests/problems): the plans solve them all. A
   solver that claims success must leave a residual within the tolerance, and the same velocities as the plan,
   except for problems with several known solutions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include "../problems/problem_text.h"
#include "base/matrix.h"
#include "contact/blocks.h"
#include "contact/contact.h"
#include "contact/impulses.h"
#include "contact/pile.h"
#include "contact/plans.h"
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

static contact_problem read_one(const char *path, double *tol, arena *a)
{
    contact_problem p;
    FILE *from = fopen(path, "r");
    assert_non_null(from);
    assert_true(problem_read(from, &p, tol, a));
    fclose(from);
    p.fine = reaction_fine(*tol);
    return p;
}

/* contacts: few solvers succeed on such problems, see pile_at_rest and load_is_shared */
enum { LARGE = 1000 };

static bool worth_it(int by, const contact_problem *p)
{
    if (by == SOLVER_LEMKE || by == SOLVER_LEMKE_LONG)
        return p->n <= 110;
    if (by == SOLVER_PROXIMAL_LONG || by == SOLVER_PROXIMAL_FIRM)
        return p->n <= 110 && p->cone[0].d < 2;
    if (by == SOLVER_CENTRAL || by == SOLVER_PIECES)
        return p->n <= 300; /* a short path through the pieces is tried on all of these */
    return by != SOLVER_LEMKE_QUAD || p->n <= 40;
}

/* The largest difference of velocities, relative to the largest of those without reactions. */
static double apart(const contact_problem *p, const double *ref, arena *a)
{
    double *u = arena_array(a, double, p->m), scale = 0, most = 0;
    problem_velocities(p, u);
    for (int k = 0; k < p->m; k++) {
        scale = fmax(scale, fabs(p->b[k]));
        most = fmax(most, fabs(u[k] - ref[k]));
    }
    return most / scale;
}

/* With Coulomb friction a problem may have several solutions. For these, solutions with residuals within the
   tolerance differ by 0.4 to 14 % of the largest velocity, mostly between warm and cold starts. */
static bool has_several(const char *path)
{
    static const char *const names[] = { "hopper_60_0185", "rest_400_0001", "silo_400_0040", "silo_60_0148",
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
        contact_problem p = read_one(paths[i], &tol, a);
        if (p.n > LARGE) {
            arena_free(a);
            continue;
        }
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

/* ---- every solver of the table on every storage of W ---- */
enum { SMALL = 9 }; /* contacts */

/* The first contacts of a recorded problem, W in full; smooth: without friction. */
static contact_problem first_contacts(const contact_problem *p, bool smooth, double tol, arena *a)
{
    int n = p->n < SMALL ? p->n : SMALL, m = 0, *all;
    contact_problem s = {
        .n = n, .least = p->least, .fine = reaction_fine(tol), .cone = arena_array(a, cone, n)
    };
    for (int c = 0; c < n; c++) {
        s.cone[c] = p->cone[c];
        assert_int_equal(s.cone[c].row, m);
        m += cone_rows(&s.cone[c]);
        if (smooth)
            s.cone[c].mu = s.cone[c].radius = 0;
    }
    s.m = m;
    double **rows[] = { &s.b, &s.r, &s.u };
    for (int k = 0; k < 3; k++)
        *rows[k] = arena_array(a, double, m);
    s.W = arena_array(a, double, m *m);
    s.all = all = arena_array(a, int, m);
    for (int c = 0; c < n; c++)
        for (int j = 0, i = s.cone[c].row; j < cone_rows(&s.cone[c]); j++, i++) {
            s.b[i] = p->b[i];
            all[i] = i;
            for (int k = 0; k < m; k++)
                s.W[i * m + k] = problem_entry(p, c, j, k);
        }
    return s;
}

/* W = J D^-1 K^T with J = 2 W, D = 2 and K = 1: as many dofs as rows. */
static contact_problem never_formed(const contact_problem *p, coupled_rows *rows, arena *a)
{
    contact_problem s = *p;
    contact_list *l = arena_make(a, contact_list);
    matrix_shape *shape = arena_make(a, matrix_shape);
    int m = p->m, *dof_at = l->dof_at = arena_array(a, int, p->n + 1);
    double *D = arena_array(a, double, m);
    l->n = p->n;
    l->J_at = arena_array(a, size_t, p->n + 1);
    l->dof = arena_array(a, int, p->n *m);
    l->J = arena_array(a, double, m *m);
    l->K = arena_array(a, double, m *m);
    for (int c = 0; c < p->n; c++) {
        int rows_here = cone_rows(&p->cone[c]);
        dof_at[c + 1] = dof_at[c] + m;
        l->J_at[c + 1] = l->J_at[c] + (size_t)(rows_here * m);
        for (int k = 0; k < m; k++)
            l->dof[dof_at[c] + k] = k;
        for (int j = 0; j < rows_here; j++) {
            l->K[l->J_at[c] + (size_t)(j * m + p->cone[c].row + j)] = 1;
            for (int k = 0; k < m; k++)
                l->J[l->J_at[c] + (size_t)(j * m + k)] = 2 * p->W[(p->cone[c].row + j) * m + k];
        }
    }
    for (int k = 0; k < m; k++)
        D[k] = 2;
    *shape = matrix_diagonal(m);
    *rows = (coupled_rows){
        .n = m, .list = l, .shape = shape, .D = D, .changed = true, .dv = arena_array(a, double, m)
    };
    s.W = NULL;
    s.coupled = rows;
    return s;
}

/* The same stored by its diagonals. */
static contact_problem by_band(const contact_problem *p, arena *a)
{
    int kb = 1, m = p->m;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < i; j++)
            if (p->W[i * m + j] != 0 && i - j > kb)
                kb = i - j;
    contact_problem *s = band_new(a, p->n, m, kb);
    for (int c = 0; c < p->n; c++)
        s->cone[c] = p->cone[c];
    for (int i = 0; i < m; i++) {
        s->b[i] = p->b[i];
        for (int j = i > kb ? i - kb : 0; j < m && j <= i + kb; j++)
            *band_at(s, i, j) = p->W[i * m + j];
    }
    s->least = p->least;
    s->r = p->r;
    return *s;
}

/* Difference of the velocities of `of`, whose W is in full, for the reactions of p. */
static double apart_from(const contact_problem *of, const contact_problem *p, const double *ref, arena *a)
{
    contact_problem s = *of;
    s.r = p->r;
    return apart(&s, ref, a);
}

/* Only its tangential rows, with bounds that do not depend on a normal reaction. */
static contact_problem friction_alone(const contact_problem *p, arena *a)
{
    contact_problem s = { .n = p->n, .least = p->least, .fine = p->fine, .cone = arena_array(a, cone, p->n) };
    int *row = arena_array(a, int, p->m), *all;
    for (int c = 0; c < p->n; c++) {
        const cone *o = &p->cone[c];
        s.cone[c] = (cone){ .kind = CONE_GIVEN, .d = o->d, .row = s.m };
        for (int j = 0; j < o->d; j++) {
            int i = o->row + cone_normal(o) + j;
            s.cone[c].radius += (c % 3 + 0.2) * fabs(p->b[i]) / p->W[i * p->m + i];
            row[s.m++] = i;
        }
    }
    double **rows[] = { &s.b, &s.r, &s.u };
    for (int k = 0; k < 3; k++)
        *rows[k] = arena_array(a, double, s.m);
    s.W = arena_array(a, double, s.m *s.m);
    s.all = all = arena_array(a, int, s.m);
    for (int i = 0; i < s.m; i++) {
        all[i] = i;
        s.b[i] = p->b[row[i]];
        for (int k = 0; k < s.m; k++)
            s.W[i * s.m + k] = p->W[row[i] * p->m + row[k]];
    }
    return s;
}

static void every_storage(void **state)
{
    (void)state;
    int solved[SOLVERS] = { 0 }, tried[SOLVERS] = { 0 };
    for (int i = 0; i < 3 * npaths; i++) {
        arena *a = arena_new(&allocator_libc, NULL);
        double tol;
        const char *path = paths[i / 3];
        contact_problem whole = read_one(path, &tol, a), full = first_contacts(&whole, i % 3 == 1, tol, a);
        if (i % 3 == 2)
            full = friction_alone(&full, a);
        double *ref = arena_array(a, double, full.m);
        if (!contact_solve(&full, contact_work_new(a, full.n, full.m, 3), tol))
            fail_msg("%s: not solved, residual %g", path, full.residual);
        problem_velocities(&full, ref);
        coupled_rows rows;
        contact_problem by[] = { full, problem_by_rows(&full, a), never_formed(&full, &rows, a),
                                 by_band(&full, a) };
        for (int k = 0; k < 4; k++)
            for (int id = 0; id < SOLVERS; id++) {
                const contact_solver *s = &contact_solvers[id];
                if (!s->fits(&by[k]))
                    continue;
                tried[id]++;
                memset(full.r, 0, (size_t)full.m * sizeof *full.r);
                if (!s->solve(&by[k], a, tol))
                    continue;
                solved[id]++;
                double far = apart_from(&full, &by[k], ref, a);
                if (far > 1e3 * tol)
                    fail_msg("%s, storage %d: %s is apart by %.2g", path, k, s->name, far);
            }
        arena_free(a);
    }
    /* each algorithm solves most problems, with one of its settings */
    for (int id = 0; id < SOLVERS; id++) {
        bool most = false;
        for (int o = 0; o < SOLVERS; o++)
            most |= !strcmp(contact_solvers[o].name, contact_solvers[id].name) &&
                    3 * solved[o] >= 2 * tried[id];
        print_message("%2d of %d: %s\n", solved[id], tried[id], contact_solvers[id].name);
        assert_true(solved[id] > 0 && most);
    }
}

/* A pile that comes to rest, in which gaps far below g h^2 close. Sweeps and Newton's method stall on it, and
   the path of the interior point method folds; with a fraction of the slip in its matrix it passes the folds.
   */
static void pile_at_rest(void **state)
{
    (void)state;
    for (int i = 0; i < npaths; i++) {
        if (!strstr(paths[i], "rest_"))
            continue;
        arena *a = arena_new(&allocator_libc, NULL);
        double tol;
        contact_problem p = read_one(paths[i], &tol, a);
        p.effort = EFFORT_CUT;
        if (!pile_solve(&p, a, tol))
            fail_msg("%s: not solved, residual %g", paths[i], p.residual);
        if (p.n < LARGE)
            assert_string_equal(p.solver, contact_solvers[SOLVER_DAMPED].name);
        arena_free(a);
    }
}

/* 1000 disks at rest can share their load in many ways: from the centre of these a short path leads to the
   solution; from the results of sweeps or of the damped interior point method none does. */
static void load_is_shared(void **state)
{
    (void)state;
    int large = 0;
    for (int i = 0; i < npaths; i++) {
        if (!strstr(paths[i], "rest_1000"))
            continue;
        arena *a = arena_new(&allocator_libc, NULL);
        double tol;
        contact_problem p = read_one(paths[i], &tol, a);
        large++;
        assert_false(contact_solvers[SOLVER_SWEEPS].solve(&p, a, tol));
        assert_false(contact_solvers[SOLVER_DAMPED].solve(&p, a, tol));
        assert_false(contact_solvers[SOLVER_PIECES_FEW].solve(&p, a, tol));
        assert_true(contact_solvers[SOLVER_INTERIOR].solve(&p, a, tol) ||
                    contact_solvers[SOLVER_SWEEPS].solve(&p, a, tol) ||
                    contact_solvers[SOLVER_PIECES_MORE].solve(&p, a, tol));
        arena_free(a);
    }
    assert_true(large > 0);
}

/* If there is an alternative (samples can use mean rates), no slow solver is used. */
static void little_effort(void **state)
{
    (void)state;
    for (int i = 0; i < npaths; i++) {
        if (!strstr(paths[i], "rest_"))
            continue;
        arena *a = arena_new(&allocator_libc, NULL);
        double tol;
        contact_problem p = read_one(paths[i], &tol, a);
        p.effort = EFFORT_LITTLE;
        pile_solve(&p, a, tol);
        assert_string_equal(p.solver, contact_solvers[SOLVER_DAMPED].name);
        arena_free(a);
    }
    /* interior points are tried only if sweeps come near, or if the problem is small */
    for (int k = 0; k < plan_plane.n; k++)
        if (plan_plane.step[k].by == SOLVER_DAMPED) {
            assert_true(plan_ends(&plan_plane.step[k], EFFORT_LITTLE, 500, 1e-2));
            assert_false(plan_ends(&plan_plane.step[k], EFFORT_LITTLE, 500, 1e-5));
            assert_false(plan_ends(&plan_plane.step[k], EFFORT_LITTLE, 50, 1e-2));
            assert_false(plan_ends(&plan_plane.step[k], EFFORT_CUT, 500, 1e-2));
        }
}

/* A written problem is read back to the last bit. */
static void text_round_trip(void **state)
{
    (void)state;
    arena *a = arena_new(&allocator_libc, NULL);
    double tol, again_tol;
    contact_problem p = read_one(paths[0], &tol, a), again;
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

/* W = J K^T with the rows of W for J and K = 1: as many dofs as rows. */
static void list_of(impulses *w, const contact_problem *p)
{
    contact_list *l = &w->act;
    int widest = 1;
    for (int c = 0; c < p->n; c++)
        widest = problem_width(p, c) > widest ? problem_width(p, c) : widest;
    list_room(w, p->n, 2, widest);
    for (int c = 0; c < p->n; c++) {
        int n = problem_width(p, c);
        l->cone[c] = p->cone[c];
        l->dof_at[c + 1] = l->dof_at[c] + n;
        for (int k = 0; k < n; k++)
            l->dof[l->dof_at[c] + k] = problem_columns(p, c)[k];
        for (int j = 0; j < cone_rows(&p->cone[c]); j++)
            for (int k = 0; k < n; k++) {
                size_t at = l->J_at[c] + (size_t)(j * n + k);
                l->J[at] = problem_row(p, c, j)[k];
                l->K[at] = problem_columns(p, c)[k] == p->cone[c].row + j;
            }
        list_take(w);
    }
    for (int i = 0; i < p->m; i++)
        l->b[i] = p->b[i];
}

/* The problem as a list whose initial reactions are much too large. */
static void start_far_off(impulses *w, contact_problem *p, double tol, double r, arena *a, arena *scratch)
{
    impulses_init(w, a, scratch, p->m);
    list_of(w, p);
    w->tol = tol;
    w->v1 = arena_array(a, double, p->m);
    for (int k = 0; k < p->m; k++)
        w->act.r[k] = r;
}

/* Sweeps over a list may leave reactions so large that sums with them lose the rates. The solvers after them
   still solve the given problem. */
static void lost_start(void **state)
{
    (void)state;
    arena *a = arena_new(&allocator_libc, NULL), *scratch = arena_new(&allocator_libc, NULL);
    for (int i = 0; i < npaths; i++) {
        double tol;
        contact_problem p = read_one(paths[i], &tol, a);
        if (!strstr(paths[i], "silo_60") && !strstr(paths[i], "hopper_60"))
            continue;
        impulses w;
        start_far_off(&w, &p, tol, 1e20, a, scratch);
        if (!impulses_solve(&w))
            fail_msg("%s: not solved, residual %g", paths[i], w.residual);
        memcpy(p.r, w.act.r, (size_t)p.m * sizeof *p.r);
        assert_true(problem_measure(&p, NULL, a) <= 2 * tol);
        for (int k = 0; k < p.m; k++)
            assert_true(fabs(w.v1[k] - p.r[k]) <= 1e-12 * fabs(p.r[k]));
    }
    arena_free(scratch);
    arena_free(a);
}

/* The same problem twice, side by side. */
static contact_problem twice(const contact_problem *p, arena *a)
{
    int n = p->n, m = p->m, wide = p->start[n];
    size_t numbers = 0;
    for (int c = 0; c < n; c++)
        numbers += (size_t)problem_width(p, c) * (size_t)cone_rows(&p->cone[c]);
    contact_problem s = { .n = 2 * n, .m = 2 * m, .least = p->least, .fine = p->fine };
    s.cone = arena_array(a, cone, 2 * n);
    s.b = arena_array(a, double, 2 * m);
    s.r = arena_array(a, double, 2 * m);
    int *start = arena_array(a, int, 2 * n + 1), *col = arena_array(a, int, 2 * wide);
    size_t *at = arena_array(a, size_t, 2 * n);
    double *val = arena_array(a, double, 2 * numbers);
    for (int k = 0; k < 2; k++) {
        for (int c = 0; c < n; c++) {
            s.cone[k * n + c] = p->cone[c];
            s.cone[k * n + c].row += k * m;
            start[k * n + c] = k * wide + p->start[c];
            at[k * n + c] = (size_t)k * numbers + p->at[c];
        }
        for (int i = 0; i < wide; i++)
            col[k * wide + i] = p->col[i] + k * m;
        memcpy(val + (size_t)k * numbers, p->val, numbers * sizeof *val);
        memcpy(s.b + k * m, p->b, (size_t)m * sizeof *s.b);
    }
    start[2 * n] = 2 * wide;
    problem_set_rows(&s, start, col, at, val);
    return s;
}

/* Islands with contacts of shapes are accepted with a residual above the tolerance. All of them are solved to
   that accuracy, although the first one is not solved to the tolerance; islands without such contacts are not
   accepted. */
static void loose_islands(void **state)
{
    (void)state;
    const double ENOUGH = 1e-5;
    arena *a = arena_new(&allocator_libc, NULL), *scratch = arena_new(&allocator_libc, NULL);
    double tol;
    int large = 0;
    for (int i = 0; i < npaths; i++) {
        if (!strstr(paths[i], "rest_1000"))
            continue;
        contact_problem one = read_one(paths[i], &tol, a), p = twice(&one, a);
        large++;
        for (int loose = 1; loose <= 3; loose += 2) { /* bits: the first, the second */
            impulses w;
            bool *is = arena_array(a, bool, p.n);
            start_far_off(&w, &p, tol, 0, a, scratch);
            w.enough = ENOUGH;
            w.effort = EFFORT_LITTLE;
            for (int c = 0; c < p.n; c++)
                is[c] = w.act.loose[c] = c % one.n == 0 && (loose >> (c / one.n)) % 2;
            assert_false(impulses_solve(&w));
            assert_int_equal(w.isl.n, 2);
            assert_int_equal(w.taken, loose == 3);
            memcpy(p.r, w.act.r, (size_t)p.m * sizeof *p.r);
            if (loose == 3) {
                double residual = problem_measure(&p, NULL, a);
                assert_true(residual > tol && residual <= ENOUGH);
            }
            assert_int_equal(pile_taken(&p, is, ENOUGH, tol, a), loose == 3);
        }
    }
    assert_int_equal(large, 1);
    arena_free(scratch);
    arena_free(a);
}

/* Such reactions do not count as a solution with loose tolerances either: reactions take energy, so r.W r <=
   -r.b. */
static void loose_start(void **state)
{
    (void)state;
    static const double loose[] = { 0.2, 5e-2, 1e-2 };
    arena *a = arena_new(&allocator_libc, NULL), *scratch = arena_new(&allocator_libc, NULL);
    for (int i = 0; i < npaths; i++) {
        double tol;
        contact_problem p = read_one(paths[i], &tol, a);
        if (!strstr(paths[i], "silo_60") && !strstr(paths[i], "hopper_60"))
            continue;
        for (size_t j = 0; j < sizeof loose / sizeof *loose; j++) {
            impulses w;
            start_far_off(&w, &p, loose[j], 1e11, a, scratch);
            assert_true(impulses_solve(&w));
            memcpy(p.r, w.act.r, (size_t)p.m * sizeof *p.r);
            double *u = arena_array(a, double, p.m);
            problem_velocities(&p, u);
            double given = vec_dot(p.r, p.b, p.m), taken = vec_dot(p.r, u, p.m);
            if (!(taken <= 0.5 * (taken - given)))
                fail_msg("%s at %g: r.b %g, r.u %g", paths[i], loose[j], given, taken);
        }
    }
    arena_free(scratch);
    arena_free(a);
}

/* Contacts with zero to three rows in a ring, each coupled with some others: block factors solve the system,
   for each width of blocks; also for a second matrix of the same structure. */
static void blocks_of(int wide)
{
    enum { CONTACTS = 60, NEAR_BY = 3, ROWS = CONTACTS * BLOCKS_WIDE, MOST = ROWS * ROWS };
    arena *a = arena_new(&allocator_libc, NULL);
    int first[CONTACTS], count[CONTACTS], of[ROWS], m = 0, all = 0;
    int *start = arena_array(a, int, ROWS + 1), *col = arena_array(a, int, MOST);
    double *x = arena_array(a, double, MOST), b[ROWS], y[ROWS];
    for (int c = 0; c < CONTACTS; c++) {
        first[c] = m;
        count[c] = c % (wide + 1);
        for (int j = 0; j < count[c]; j++)
            of[m++] = c;
    }
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < m; j++) {
            int far = abs(of[i] - of[j]);
            if (far <= NEAR_BY || far >= CONTACTS - NEAR_BY || far == CONTACTS / 2)
                col[all++] = j;
        }
        start[i + 1] = all;
    }
    block_factors *f = block_factors_new(a, CONTACTS, first, count, start, col);
    assert_non_null(f);
    for (int round = 1; round <= 2; round++) {
        for (int i = 0; i < m; i++) {
            b[i] = y[i] = sin(i * round);
            for (int k = start[i]; k < start[i + 1]; k++)
                x[k] = sin(7.0 * i + 3.0 * col[k] + round) + (col[k] == i ? 20 : 0);
        }
        assert_true(block_factors_put(f, x));
        block_factors_solve(f, y);
        for (int i = 0; i < m; i++) {
            double left = b[i];
            for (int k = start[i]; k < start[i + 1]; k++)
                left -= x[k] * y[col[k]];
            assert_true(fabs(left) < 1e-13);
        }
    }
    memset(x, 0, (size_t)all * sizeof *x);
    assert_false(block_factors_put(f, x));
    arena_free(a);
}

static void factors_by_blocks(void **state)
{
    (void)state;
    for (int wide = 1; wide <= BLOCKS_WIDE; wide++)
        blocks_of(wide);
}

/* A column of disks between walls: contact c pushes dofs 2c .. 2c + 3 along rows that differ from those of
   its rates, as if rows rotate within a step. W is not symmetric, and the solution must belong to this W. */
static void chain_list(impulses *w, int n, int tangents)
{
    contact_list *l = &w->act;
    list_room(w, n, 2, 4);
    for (int c = 0; c < n; c++) {
        double turn = 0.05 * sin(3 * c), J[8] = { 1, 0, -1, 0, 0.1, 1, -0.1, -1 };
        int rows = 1 + tangents;
        l->cone[c] = (cone){ .d = tangents, .row = rows * c, .mu = 0.4 };
        l->dof_at[c + 1] = l->dof_at[c] + 4;
        for (int k = 0; k < 4; k++)
            l->dof[l->dof_at[c] + k] = 2 * c + k;
        for (int k = 0; k < 4 * rows; k++) {
            l->J[l->J_at[c] + (size_t)k] = J[k];
            l->K[l->J_at[c] + (size_t)k] = J[k] + turn * J[(k + 4) % 8];
        }
        list_take(w);
        l->b[rows * c] = -0.1 - 0.05 * cos(c) + (c % 4 == 0);
        if (tangents)
            l->b[rows * c + 1] = 0.3 * sin(2 * c);
    }
}

/* How far its solution violates the law, computed from the rates of the dofs alone. */
static double chain_off(const impulses *w, const double *v)
{
    const contact_list *l = &w->act;
    double most = 0;
    for (int c = 0; c < l->n; c++) {
        int row = l->cone[c].row;
        const double *r = l->r + row;
        double un = list_rate(l, c, 0, v) + l->b[row];
        most = fmax(most, fabs(fmin(r[0], un)));
        if (l->cone[c].d == 0)
            continue;
        double ut = list_rate(l, c, 1, v) + l->b[row + 1], bound = l->cone[c].mu * r[0];
        most = fmax(most, fabs(r[1]) - bound);
        most = fmax(most, fmin(fabs(ut), fabs(r[1] + copysign(bound, ut))));
    }
    return most;
}

static void chain_that_turns(void **state)
{
    (void)state;
    enum { CONTACTS = 30, DOFS = 2 * CONTACTS + 2 };
    static const char *const by[] = { "active set of a chain", "Newton on a chain" };
    for (int tangents = 0; tangents < 2; tangents++) {
        arena *a = arena_new(&allocator_libc, NULL), *scratch = arena_new(&allocator_libc, NULL);
        impulses w;
        double v[DOFS] = { 0 };
        impulses_init(&w, a, scratch, DOFS);
        chain_list(&w, CONTACTS, tangents);
        w.tol = 1e-10;
        w.v1 = v;
        assert_true(impulses_solve(&w));
        assert_string_equal(w.solver, by[tangents]);
        double most = chain_off(&w, v);
        if (!(most <= 1e-9))
            fail_msg("the law is off by %g with '%s', residual %g", most, w.solver, w.residual);
        arena_free(scratch);
        arena_free(a);
    }
}

int main(void)
{
    paths_find();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_velocities), cmocka_unit_test(pile_at_rest),
        cmocka_unit_test(load_is_shared),  cmocka_unit_test(text_round_trip),
        cmocka_unit_test(every_storage),   cmocka_unit_test(lost_start),
        cmocka_unit_test(little_effort),   cmocka_unit_test(factors_by_blocks),
        cmocka_unit_test(loose_start),     cmocka_unit_test(loose_islands),
        cmocka_unit_test(chain_that_turns)
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int i = 0; i < npaths; i++)
        free(paths[i]);
    return failed;
}
