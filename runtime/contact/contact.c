#include "contact.h"
#include <math.h>
#include "pile.h"
#include "plans.h"
#include "uzawa.h"
#include "base/tolerances.h"

struct contact_work {
    arena *a;      /* scratch, released after each use */
    int *all;      /* 0, 1, 2 .. */
    double *local; /* for cone_solve */
};

contact_work *contact_work_new(arena *a, int n, int m, int d)
{
    contact_work *w = arena_make(a, contact_work);
    (void)n;
    w->a = a;
    w->local = arena_array(a, double, (size_t)CONE_WORK *(size_t)d *(size_t)(d + 4) + 8);
    w->all = arena_array(a, int, m);
    for (int i = 0; i < m; i++)
        w->all[i] = i;
    return w;
}

double contact_residual(contact_problem *p)
{
    return p->residual = problem_defect(p, p->u, NULL, NULL, NULL, &p->worst);
}

static bool solve_alone(contact_problem *p, contact_work *w, double tol)
{
    problem_alone(p, 0, p->W, p->m, p->b, p->r, w->local);
    problem_velocities(p, p->u);
    return contact_residual(p) <= fmax(tol, SOLVED_TIGHT);
}

/* Island by island, with the current laws. */
static bool solve_islands(contact_problem *p, contact_work *w, double tol)
{
    arena_pos mark = arena_mark(w->a);
    contact_problem s = problem_by_rows(p, w->a);
    bool ok = pile_solve(&s, w->a, tol);
    p->iterations = s.iterations;
    p->solver = s.solver;
    arena_release(w->a, mark);
    problem_velocities(p, p->u);
    return contact_residual(p) <= tol && ok;
}

static bool solve_by(contact_problem *p, contact_work *w, double tol, const solver_plan *plan)
{
    for (int k = 0; k < plan->n; k++) {
        int by = plan->step[k].by;
        if (by == BY_ISLANDS) {
            if (solve_islands(p, w, tol))
                return true;
            continue;
        }
        const contact_solver *s = &contact_solvers[by];
        if (!s->fits(p))
            continue;
        p->solver = s->name;
        if (s->solve(p, w->a, tol))
            return true;
    }
    return false;
}

static const solver_plan *plan_of(const contact_problem *p)
{
    if (contact_solvers[SOLVER_ACTIVE].fits(p))
        return &plan_smooth;
    for (int i = 0; i < p->n; i++)
        if (problem_of_speed(&p->cone[i]))
            return &plan_speed;
    return &plan_rough;
}

static void outcome_clear(contact_problem *p)
{
    p->residual = 0;
    p->worst = 0;
    p->iterations = 0;
    p->choices = 0;
}

bool contact_solve(contact_problem *p, contact_work *w, double tol)
{
    outcome_clear(p);
    p->fine = reaction_fine(tol);
    p->all = w->all;
    p->solver = "closed form";
    if (p->n == 0)
        return true;
    for (int i = 0; i < p->n; i++)
        if (cone_normal(&p->cone[i]) && !(p->W[(size_t)p->cone[i].row * p->m + p->cone[i].row] > 0)) {
            p->residual = INFINITY;
            p->worst = i;
            return false;
        }
    if (p->n == 1)
        return solve_alone(p, w, tol);
    return solve_by(p, w, tol, plan_of(p));
}

bool contact_uzawa(contact_problem *p, contact_work *w, double tol, double stiffness)
{
    outcome_clear(p);
    p->solver = contact_solvers[SOLVER_UZAWA].name;
    if (!contact_solvers[SOLVER_UZAWA].fits(p)) {
        p->residual = INFINITY;
        return false;
    }
    if (uzawa_solve(p, w->a, tol, stiffness))
        return true;
    /* if contacts share a load, or a slip is about to reverse, Uzawa's method is slow: other solvers continue
       from its result */
    return contact_solve(p, w, tol);
}
