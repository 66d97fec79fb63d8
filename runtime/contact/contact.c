#include "contact.h"
#include <math.h>
#include "newton.h"
#include "pile.h"
#include "solvers.h"
#include "sweeps.h"
#include "uzawa.h"

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
    return contact_residual(p) <= fmax(tol, 1e-11);
}

/* Island by island; laws are those at hand. */
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

static bool solve_by(contact_problem *p, contact_work *w, double tol, solver_id by)
{
    p->solver = contact_solvers[by].name;
    return contact_solvers[by].solve(p, w->a, tol);
}

/* Pivots find the set where the active set goes round in circles; the reactions are then those of the active
 * set. */
static bool solve_frictionless(contact_problem *p, contact_work *w, double tol)
{
    if (solve_by(p, w, tol, SOLVER_ACTIVE))
        return true;
    if (contact_solvers[SOLVER_LEMKE].fits(p) && solve_by(p, w, tol, SOLVER_LEMKE) &&
        contact_solvers[SOLVER_ACTIVE].solve(p, w->a, tol))
        return true;
    return solve_islands(p, w, tol);
}

/* Gauss-Seidel from the start at hand, then what is exact; where the law depends on the speed, Gauss-Seidel
 * and Newton in turn */
static bool solve_friction(contact_problem *p, contact_work *w, double tol)
{
    enum { SMALL = 60 }; /* rows: the cost of shortest steps grows with their cube */
    bool of_speed = false;
    for (int i = 0; i < p->n; i++)
        of_speed |= problem_of_speed(&p->cone[i]);
    p->solver = contact_solvers[SOLVER_GAUSS].name;
    if (sweeps_full(p, w->a, of_speed ? 64 : 32, tol))
        return true;
    if (!of_speed && solve_islands(p, w, tol))
        return true;
    p->solver = "Gauss-Seidel with Newton";
    for (int i = 0, most = p->rounds ? p->rounds : of_speed ? 40 : 1; i < most; i++) {
        if ((of_speed || p->m <= SMALL) && contact_solvers[SOLVER_NEWTON].solve(p, w->a, tol))
            return true;
        if (sweeps_full(p, w->a, 32 * (i + 1), tol))
            return true;
    }
    return false;
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
    return contact_solvers[SOLVER_ACTIVE].fits(p) ? solve_frictionless(p, w, tol) : solve_friction(p, w, tol);
}

bool contact_uzawa(contact_problem *p, contact_work *w, double tol, double stiffness)
{
    outcome_clear(p);
    p->solver = contact_solvers[SOLVER_UZAWA].name;
    if (!contact_solvers[SOLVER_UZAWA].fits(p)) {
        p->residual = INFINITY;
        return false;
    }
    return uzawa_solve(p, w->a, tol, stiffness);
}
