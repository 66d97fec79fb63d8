#include "solvers.h"
#include <string.h>
#include "central.h"
#include "interior.h"
#include "lemke.h"
#include "proximal.h"
#include "sweeps.h"

enum { SWEEPS = 400 }; /* up and down, in one go */

static bool any(const sparse_problem *p)
{
    (void)p;
    return true;
}

/* what a solver left, measured by the natural map; one decade is kept in hand where that costs little */
static bool reached(sparse_problem *p, arena *scratch, double tol)
{
    return problem_measure(p, NULL, scratch) <= tol;
}

static bool sweeps_conjugate(sparse_problem *p, arena *scratch, double tol)
{
    sweeps_solve(p, scratch, SWEEPS, false, 0.3 * tol);
    return reached(p, scratch, tol);
}

static bool sweeps_plain(sparse_problem *p, arena *scratch, double tol)
{
    sweeps_solve(p, scratch, 2 * SWEEPS, true, 0.3 * tol);
    return reached(p, scratch, tol);
}

static bool proximal_polish(sparse_problem *p, arena *scratch, double tol)
{
    return proximal_steps(p, scratch, 1e-6, 1, 6, tol);
}

static bool proximal(sparse_problem *p, arena *scratch, double tol)
{
    return proximal_steps(p, scratch, 1e-2, 20, 20, tol);
}

static bool proximal_few(sparse_problem *p, arena *scratch, double tol)
{
    return proximal_steps(p, scratch, 1e-3, 3, 10, tol);
}

static bool proximal_long(sparse_problem *p, arena *scratch, double tol)
{
    return proximal_steps(p, scratch, 1e-3, 40, 40, tol);
}

static bool proximal_firm(sparse_problem *p, arena *scratch, double tol)
{
    return proximal_steps(p, scratch, 1, 40, 60, tol);
}

static bool damped(sparse_problem *p, arena *scratch, double tol)
{
    return damped_solve(p, scratch, 0.3, tol);
}

static bool damped_close(sparse_problem *p, arena *scratch, double tol)
{
    return damped_solve(p, scratch, 0.03, tol);
}

static bool damped_cold(sparse_problem *p, arena *scratch, double tol)
{
    memset(p->r, 0, (size_t)p->m * sizeof *p->r);
    return damped_solve(p, scratch, 0.3, tol);
}

/* ---- Lemke: all contacts together ---- */
static bool lemke_fits(const sparse_problem *p)
{
    for (int c = 0; c < p->n; c++)
        if (!lemke_knows(&p->cone[c]))
            return false;
    return true;
}

/* false where pivots end on a ray, too */
static bool lemke_all(sparse_problem *p, arena *scratch, double tol, lemke_digits digits)
{
    arena_pos mark = arena_mark(scratch);
    int *all = arena_array(scratch, int, p->n);
    for (int c = 0; c < p->n; c++)
        all[c] = c;
    bool ok = lemke_contacts(p, all, p->n, p->r, digits, scratch);
    arena_release(scratch, mark);
    p->iterations++;
    return reached(p, scratch, tol) && ok;
}

static bool lemke_double(sparse_problem *p, arena *scratch, double tol)
{
    return lemke_all(p, scratch, tol, LEMKE_DOUBLE);
}

static bool lemke_long(sparse_problem *p, arena *scratch, double tol)
{
    return lemke_all(p, scratch, tol, LEMKE_LONG);
}

static bool lemke_quad(sparse_problem *p, arena *scratch, double tol)
{
    return lemke_all(p, scratch, tol, LEMKE_QUAD);
}

const contact_solver contact_solvers[SOLVERS] = {
    [SOLVER_SWEEPS] = { "Gauss-Seidel with conjugate directions", any, sweeps_conjugate },
    [SOLVER_PLAIN_SWEEPS] = { "Gauss-Seidel", any, sweeps_plain },
    [SOLVER_POLISH] = { "proximal Newton", any, proximal_polish },
    [SOLVER_PROXIMAL] = { "proximal Newton", any, proximal },
    [SOLVER_PROXIMAL_FEW] = { "proximal Newton", any, proximal_few },
    [SOLVER_PROXIMAL_LONG] = { "proximal Newton", any, proximal_long },
    [SOLVER_PROXIMAL_FIRM] = { "proximal Newton", any, proximal_firm },
    [SOLVER_DAMPED] = { "damped interior point", central_fits, damped },
    [SOLVER_DAMPED_CLOSE] = { "damped interior point", central_fits, damped_close },
    [SOLVER_DAMPED_COLD] = { "damped interior point", central_fits, damped_cold },
    [SOLVER_CENTRAL] = { "central path", central_fits, central_solve },
    [SOLVER_INTERIOR] = { "interior point", interior_fits, interior_solve },
    [SOLVER_LEMKE] = { "Lemke", lemke_fits, lemke_double },
    [SOLVER_LEMKE_LONG] = { "Lemke", lemke_fits, lemke_long },
    [SOLVER_LEMKE_QUAD] = { "Lemke", lemke_fits, lemke_quad },
};
