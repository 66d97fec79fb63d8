#include "pile.h"
#include <math.h>
#include <string.h>
#include "impulses.h"
#include "lemke.h"
#include "newton.h"
#include "plans.h"
#include "base/tolerances.h"

enum { PATCH = 60 }; /* contacts that are solved together */
enum { FIRST = 3 };  /* steps of a plan that are fast: sweeps and polishing */

/* ---- one island ---- */
/* The best reactions so far. */
typedef struct {
    contact_problem *p;
    arena *a;
    double tol, best, *kept;
} attempt;

/* The reactions at hand are kept if they are better than those kept. */
static void keep_better(attempt *t)
{
    const contact_problem *p = t->p;
    double e = problem_measure(t->p, NULL, t->a);
    if (!(e < t->best))
        return;
    t->best = e;
    memcpy(t->kept, p->r, (size_t)p->m * sizeof *t->kept);
}

/* Those at hand are then the better ones. */
static bool better(attempt *t)
{
    keep_better(t);
    memcpy(t->p->r, t->kept, (size_t)t->p->m * sizeof *t->kept);
    return t->best <= t->tol;
}

/* Does the step fit the problem, with those that go on from it? */
static bool step_fits(const solver_plan *plan, int k, const contact_problem *p)
{
    bool fits = true;
    for (int j = k; j == k || (j < plan->n && plan->step[j].goes_on); j++)
        fits = fits && contact_solvers[plan->step[j].by].fits(p);
    return fits;
}

/* The contacts around the worst one, layer by layer. */
static int around(const contact_problem *p, int c, const int *contact_of, int *mark, int *who, int most)
{
    int n = 0;
    memset(mark, 0, (size_t)p->n * sizeof *mark);
    who[n++] = c;
    mark[c] = 1;
    for (int i = 0; i < n; i++)
        for (int k = p->start[who[i]]; k < p->start[who[i] + 1] && n < most; k++) {
            int o = contact_of[p->col[k]];
            if (!mark[o]) {
                mark[o] = 1;
                who[n++] = o;
            }
        }
    return n;
}

/* Close to the solution, a few contacts are on the wrong side: the surroundings of the worst one are solved
   exactly, then everything by Newton's steps. */
static bool patched(attempt *t, int rounds)
{
    contact_problem *p = t->p;
    arena *a = t->a;
    int *contact_of = arena_array(a, int, p->m), *mark = arena_array(a, int, p->n),
        *who = arena_array(a, int, p->n);
    for (int c = 0; c < p->n; c++)
        for (int j = 0; j < cone_rows(&p->cone[c]); j++)
            contact_of[p->cone[c].row + j] = c;
    for (int round = 0; round < rounds; round++) {
        problem_measure(p, NULL, a);
        lemke_contacts(p, who, around(p, p->worst, contact_of, mark, who, PATCH), p->r, LEMKE_DOUBLE, a);
        proximal_steps(p, a, PROXIMAL_POLISH, 2, 10, t->tol);
        double e = problem_measure(p, NULL, a);
        if (e < t->best) {
            t->best = e;
            memcpy(t->kept, p->r, (size_t)p->m * sizeof *t->kept);
        }
        if (t->best <= t->tol)
            return true;
    }
    return better(t);
}

static double most_of(const contact_problem *p)
{
    double most = 0;
    for (int i = 0; i < p->m; i++)
        most = fmax(most, fabs(p->r[i]));
    return most;
}

/* The sum of the reactions that velocities require. */
static double asked_of(const contact_problem *p)
{
    double all = 0;
    for (int c = 0; c < p->n; c++)
        for (int j = 0; j < cone_rows(&p->cone[c]); j++) {
            const double *row = p->val + p->at[c] + (size_t)j * (size_t)problem_width(p, c);
            for (int k = p->start[c]; k < p->start[c + 1]; k++)
                if (p->col[k] == p->cone[c].row + j && row[k - p->start[c]] > 0)
                    all += fabs(p->b[p->cone[c].row + j]) / row[k - p->start[c]];
        }
    return all;
}

/* Wedged contacts may press arbitrarily hard. If reactions are far larger than velocities require, their
   rounding dominates: a solution with small ones is searched from 0. */
static void calm(attempt *t)
{
    const double FAR = 1e3;
    contact_problem *p = t->p;
    double most = most_of(p);
    if (!(most > FAR * asked_of(p)))
        return;
    memcpy(t->kept, p->r, (size_t)p->m * sizeof *t->kept);
    memset(p->r, 0, (size_t)p->m * sizeof *p->r);
    for (int k = 0; k < plan_calm.n; k++) {
        const contact_solver *s = &contact_solvers[plan_calm.step[k].by];
        if (s->fits(p))
            s->solve(p, t->a, t->tol);
        if (problem_measure(p, NULL, t->a) <= t->tol && most_of(p) < 0.1 * most)
            return;
    }
    memcpy(p->r, t->kept, (size_t)p->m * sizeof *t->kept);
    problem_measure(p, NULL, t->a);
}

static bool island_solve(contact_problem *p, double tol, const char **solver, arena *a)
{
    attempt t = { p, a, tol, problem_measure(p, NULL, a), arena_array(a, double, p->m) };
    bool flat = contact_solvers[SOLVER_LEMKE].fits(p), none = false;
    const solver_plan *plan = flat ? &plan_plane : &plan_space;
    memcpy(t.kept, p->r, (size_t)p->m * sizeof *t.kept);
    bool taken = false;
    for (int k = 0; k < plan->n && !(t.best <= tol); k++) {
        const plan_step *step = &plan->step[k];
        const contact_solver *s = &contact_solvers[step->by];
        if (step->goes_on && taken) {
            *solver = s->name;
            s->solve(p, a, tol);
            keep_better(&t);
        }
        if (step->goes_on)
            continue;
        memcpy(p->r, t.kept, (size_t)p->m * sizeof *t.kept);
        taken = false;
        if (plan_ends(step, p->effort, p->n, t.best) || (k >= FIRST && t.best <= p->enough))
            return false;
        if (step->patch && patched(&t, step->patch))
            return true;
        if (p->n <= step->above || (step->most && p->n > step->most) || !step_fits(plan, k, p))
            continue;
        *solver = s->name;
        bool ok = s->solve(p, a, tol);
        taken = true;
        keep_better(&t);
        /* if exact pivots end on a ray, other methods do not find a solution either */
        if (none && step->by == SOLVER_PROXIMAL_FEW)
            break;
        none |= step->by == SOLVER_LEMKE_QUAD && !ok;
    }
    memcpy(p->r, t.kept, (size_t)p->m * sizeof *t.kept);
    if (t.best <= tol)
        calm(&t);
    return t.best <= tol;
}

/* ---- islands ---- */
/* The island number of each contact; contacts share columns of their rows like dofs. */
static int islands_of(const contact_problem *p, int *of, arena *a)
{
    islands g = { 0 };
    contact_list rows = { .n = p->n, .dof_at = (int *)p->start, .dof = (int *)p->col };
    islands_find(&g, &rows, p->m, false, a, a);
    for (int i = 0; i < g.n; i++)
        for (int k = g.of[i].first; k < g.of[i].first + g.of[i].n; k++)
            of[g.at[k]] = i;
    return g.n;
}

/* The part of the problem for the contacts of one island: contacts and rows renumbered, columns in order. */
static contact_problem part_of(const contact_problem *p, const int *who, int n, int *row_of, arena *a)
{
    contact_problem s = {
        .n = n, .least = p->least, .fine = p->fine, .enough = p->enough, .effort = p->effort, .list = p->list
    };
    int *listed = arena_array(a, int, n);
    cone *cones = arena_array(a, cone, n);
    int *start = arena_array(a, int, n + 1), at = 0, widest = 0;
    size_t *first = arena_array(a, size_t, n), all = 0;
    for (int i = 0; i < n; i++) {
        cones[i] = p->cone[who[i]];
        listed[i] = p->list ? p->listed[who[i]] : 0;
        for (int j = 0; j < cone_rows(&cones[i]); j++)
            row_of[cones[i].row + j] = s.m + j;
        cones[i].row = s.m;
        s.m += cone_rows(&cones[i]);
        start[i] = at;
        first[i] = all;
        at += problem_width(p, who[i]);
        all += (size_t)problem_width(p, who[i]) * (size_t)cone_rows(&cones[i]);
        if (problem_width(p, who[i]) > widest)
            widest = problem_width(p, who[i]);
    }
    start[n] = at;
    int *col = arena_array(a, int, at), *from = arena_array(a, int, widest);
    double *val = arena_array(a, double, all), *b = arena_array(a, double, s.m);
    s.r = arena_array(a, double, s.m);
    for (int i = 0; i < n; i++) {
        int c = who[i], wide = problem_width(p, c);
        for (int k = 0; k < wide; k++) {
            int j = k, x = row_of[p->col[p->start[c] + k]];
            for (; j > 0 && col[start[i] + j - 1] > x; j--) {
                col[start[i] + j] = col[start[i] + j - 1];
                from[j] = from[j - 1];
            }
            col[start[i] + j] = x;
            from[j] = k;
        }
        for (int j = 0; j < cone_rows(&cones[i]); j++) {
            const double *v = p->val + p->at[c] + (size_t)j * wide;
            for (int k = 0; k < wide; k++)
                val[first[i] + (size_t)j * wide + k] = v[from[k]];
            b[cones[i].row + j] = p->b[p->cone[c].row + j];
            s.r[cones[i].row + j] = p->r[p->cone[c].row + j];
        }
    }
    s.cone = cones;
    s.listed = listed;
    problem_set_rows(&s, start, col, first, val);
    s.b = b;
    return s;
}

bool pile_solve(contact_problem *p, arena *scratch, double tol)
{
    arena_pos mark = arena_mark(scratch);
    int n = p->n, *of = arena_array(scratch, int, n), *who = arena_array(scratch, int, n);
    int *row_of = arena_array(scratch, int, p->m), hardest = 0;
    double *e = arena_array(scratch, double, n);
    p->fine = reaction_fine(tol);
    int count = islands_of(p, of, scratch);
    problem_measure(p, e, scratch);
    for (int i = 0; i < count; i++) {
        int k = 0;
        bool solved = true;
        for (int c = 0; c < n; c++)
            if (of[c] == i) {
                who[k++] = c;
                solved &= e[c] <= tol;
            }
        if (solved)
            continue;
        arena_pos inner = arena_mark(scratch);
        contact_problem s = part_of(p, who, k, row_of, scratch);
        const char *solver = p->solver;
        island_solve(&s, tol, &solver, scratch);
        if (k > hardest) {
            hardest = k;
            p->solver = solver;
        }
        p->iterations += s.iterations;
        for (int j = 0; j < k; j++) {
            const cone *o = &p->cone[who[j]];
            memcpy(p->r + o->row, s.r + s.cone[j].row, (size_t)cone_rows(o) * sizeof *p->r);
        }
        arena_release(scratch, inner);
    }
    problem_measure(p, NULL, scratch);
    arena_release(scratch, mark);
    return p->residual <= tol;
}

bool pile_taken(const contact_problem *p, const bool *loose, double enough, double tol, arena *scratch)
{
    arena_pos mark = arena_mark(scratch);
    contact_problem rows = p->val ? *p : problem_by_rows(p, scratch);
    int *of = arena_array(scratch, int, p->n), count = islands_of(&rows, of, scratch);
    bool *may = arena_array(scratch, bool, count), taken = true;
    double *e = arena_array(scratch, double, p->n);
    problem_measure(&rows, e, scratch);
    for (int c = 0; c < p->n; c++)
        may[of[c]] = may[of[c]] || loose[c];
    for (int c = 0; c < p->n && taken; c++)
        taken = e[c] <= (may[of[c]] ? enough : tol);
    arena_release(scratch, mark);
    return taken;
}
