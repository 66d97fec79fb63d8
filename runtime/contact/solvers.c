#include "solvers.h"
#include <math.h>
#include <string.h>
#include "active.h"
#include "band.h"
#include "central.h"
#include "interior.h"
#include "lemke.h"
#include "mixed.h"
#include "newton.h"
#include "pieces.h"
#include "sweeps.h"
#include "uzawa.h"
#include "base/tolerances.h"

/* up and down, at once; and for each layer of a large heap */
enum { SWEEPS = 400, SWEEPS_LAYER = 16 };
enum { NEWTON = 20 }; /* shortest steps */

static bool in_full(const contact_problem *p)
{
    return p->W && p->u && p->kb == 0;
}

/* Measures the result of a solver by the natural map; solvers aim at a tenth of the tolerance if that is
   cheap. */
static bool reached(contact_problem *p, arena *scratch, double tol)
{
    return problem_measure(p, NULL, scratch) <= tol;
}

static bool sweeps_conjugate(contact_problem *p, arena *scratch, double tol)
{
    int most = SWEEPS_LAYER * sweeps_layers(p);
    sweeps_solve(p, scratch, most > SWEEPS ? most : SWEEPS, false, 0.3 * tol);
    return reached(p, scratch, tol);
}

static bool sweeps_plain(contact_problem *p, arena *scratch, double tol)
{
    sweeps_solve(p, scratch, 2 * SWEEPS, true, 0.3 * tol);
    return reached(p, scratch, tol);
}

static bool proximal_polish(contact_problem *p, arena *scratch, double tol)
{
    return newton_polish(p, scratch, tol);
}

static bool proximal(contact_problem *p, arena *scratch, double tol)
{
    return proximal_steps(p, scratch, PROXIMAL_FIRM, 60, 20, tol);
}

static bool proximal_few(contact_problem *p, arena *scratch, double tol)
{
    return proximal_steps(p, scratch, PROXIMAL_USUAL, 3, 10, tol);
}

static bool proximal_long(contact_problem *p, arena *scratch, double tol)
{
    return proximal_steps(p, scratch, PROXIMAL_USUAL, 40, 40, tol);
}

static bool proximal_firm(contact_problem *p, arena *scratch, double tol)
{
    return proximal_steps(p, scratch, 1, 40, 60, tol);
}

static bool damped(contact_problem *p, arena *scratch, double tol)
{
    return damped_solve(p, scratch, 0.3, tol);
}

static bool damped_close(contact_problem *p, arena *scratch, double tol)
{
    return damped_solve(p, scratch, 0.03, tol);
}

static bool damped_cold(contact_problem *p, arena *scratch, double tol)
{
    memset(p->r, 0, (size_t)p->m * sizeof *p->r);
    return damped_solve(p, scratch, 0.3, tol);
}

/* ---- from piece to piece ---- */
/* factorisations: of a short way, of a longer one, and more than there are rounds */
enum { PIECES_FEW = 50, PIECES_MORE = 100, PIECES_ALL = 1000000 };

static bool pieces_few(contact_problem *p, arena *scratch, double tol)
{
    return pieces_solve(p, scratch, PIECES_FEW, tol);
}

static bool pieces_all(contact_problem *p, arena *scratch, double tol)
{
    return pieces_solve(p, scratch, PIECES_ALL, tol);
}

static bool pieces_more(contact_problem *p, arena *scratch, double tol)
{
    return pieces_solve(p, scratch, PIECES_MORE, tol);
}

/* ---- Lemke: all contacts together ---- */
static bool lemke_fits(const contact_problem *p)
{
    for (int c = 0; c < p->n; c++)
        if (!lemke_knows(&p->cone[c]))
            return false;
    return problem_stored(p);
}

/* Also false if pivots end on a ray. */
static bool lemke_all(contact_problem *p, arena *scratch, double tol, lemke_digits digits)
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

static bool lemke_double(contact_problem *p, arena *scratch, double tol)
{
    return lemke_all(p, scratch, tol, LEMKE_DOUBLE);
}

static bool lemke_long(contact_problem *p, arena *scratch, double tol)
{
    return lemke_all(p, scratch, tol, LEMKE_LONG);
}

static bool lemke_quad(contact_problem *p, arena *scratch, double tol)
{
    return lemke_all(p, scratch, tol, LEMKE_QUAD);
}

/* ---- W in full ---- */
static bool lemke_set_fits(const contact_problem *p)
{
    return active_fits(p) && lemke_fits(p);
}

static bool lemke_set(contact_problem *p, arena *scratch, double tol)
{
    return lemke_double(p, scratch, tol) && active_solve(p, scratch, tol);
}

static bool of_speed(const contact_problem *p)
{
    for (int i = 0; i < p->n; i++)
        if (problem_of_speed(&p->cone[i]))
            return true;
    return false;
}

static bool gauss_few(contact_problem *p, arena *scratch, double tol)
{
    return sweeps_full(p, scratch, of_speed(p) ? 64 : 32, tol);
}

/* If there are more contacts than bodies need, and one of them must open, sweeps drift towards that, always
   in the same direction and by as little as the error of the rates. This takes the rest of that way at once,
   to where the first contact opens. False: none opens. */
static bool drift(contact_problem *p, arena *scratch, double tol)
{
    arena_pos mark = arena_mark(scratch);
    double *way = arena_array(scratch, double, p->m), far = INFINITY;
    int first = -1;
    memcpy(way, p->r, (size_t)p->m * sizeof *way);
    sweeps_full(p, scratch, 1, tol);
    for (int i = 0; i < p->m; i++)
        way[i] = p->r[i] - way[i];
    for (int i = 0; i < p->n; i++) {
        int row = p->cone[i].row;
        if (p->cone[i].kind != CONE_UNILATERAL || !(way[row] < 0) || !(p->r[row] < -far * way[row]))
            continue;
        far = -p->r[row] / way[row];
        first = i;
    }
    for (int i = 0; first >= 0 && i < p->m; i++)
        p->r[i] += far * way[i];
    for (int j = 0; first >= 0 && j < cone_rows(&p->cone[first]); j++)
        p->r[p->cone[first].row + j] = 0;
    arena_release(scratch, mark);
    return first >= 0;
}

/* Shortest steps and sweeps after each contact that opens this way; without success the reactions are
   restored. */
static bool drifts(contact_problem *p, arena *scratch, double tol)
{
    if (!(p->residual <= SWEEPS_NEAR))
        return false;
    arena_pos mark = arena_mark(scratch);
    size_t size = (size_t)p->m * sizeof *p->r;
    double *kept = arena_array(scratch, double, p->m);
    bool solved = false;
    memcpy(kept, p->r, size);
    for (int k = 0; k < p->n && !solved && drift(p, scratch, tol); k++)
        solved = newton_shortest(p, scratch, NEWTON, tol) || sweeps_full(p, scratch, 32, tol);
    if (!solved) {
        memcpy(p->r, kept, size);
        problem_velocities(p, p->u);
        p->residual = problem_defect(p, p->u, NULL, NULL, NULL, &p->worst);
    }
    arena_release(scratch, mark);
    return solved;
}

/* Many rounds if the law depends on the speed. */
static bool in_turn(contact_problem *p, arena *scratch, double tol)
{
    enum { SMALL = 60 }; /* rows: the cost of shortest steps grows with their cube */
    bool speed = of_speed(p);
    for (int i = 0, most = p->rounds ? p->rounds : speed ? 40 : 1; i < most; i++) {
        if ((speed || p->m <= SMALL) && newton_shortest(p, scratch, NEWTON, tol))
            return true;
        if (sweeps_full(p, scratch, 32 * (i + 1), tol))
            return true;
    }
    return p->m <= SMALL && !speed && drifts(p, scratch, tol);
}

static bool gauss(contact_problem *p, arena *scratch, double tol)
{
    return sweeps_full(p, scratch, 5 * SWEEPS, tol);
}

static bool shortest(contact_problem *p, arena *scratch, double tol)
{
    return newton_shortest(p, scratch, NEWTON, tol);
}

static bool uzawa(contact_problem *p, arena *scratch, double tol)
{
    return uzawa_solve(p, scratch, tol, NAN);
}

/* ---- a band ---- */
static bool on_band(const contact_problem *p)
{
    return p->W && p->kb && p->work;
}

static bool band(contact_problem *p, arena *scratch, double tol)
{
    (void)scratch;
    return band_solve(p, tol);
}

/* ---- W never formed ---- */
static bool coupled(contact_problem *p, arena *scratch, double tol)
{
    mixed *w = mixed_new(scratch);
    bool ok = mixed_solve(w, p, false, tol);
    mixed_free(w);
    return ok;
}

const contact_solver contact_solvers[SOLVERS] = {
    [SOLVER_SWEEPS] = { "Gauss-Seidel with conjugate directions", problem_stored, sweeps_conjugate },
    [SOLVER_PLAIN_SWEEPS] = { "Gauss-Seidel", problem_stored, sweeps_plain },
    [SOLVER_POLISH] = { "proximal Newton", problem_stored, proximal_polish },
    [SOLVER_PROXIMAL] = { "proximal Newton", problem_stored, proximal },
    [SOLVER_PROXIMAL_FEW] = { "proximal Newton", problem_stored, proximal_few },
    [SOLVER_PROXIMAL_LONG] = { "proximal Newton", problem_stored, proximal_long },
    [SOLVER_PROXIMAL_FIRM] = { "proximal Newton", problem_stored, proximal_firm },
    [SOLVER_DAMPED] = { "damped interior point", central_fits, damped },
    [SOLVER_DAMPED_CLOSE] = { "damped interior point", central_fits, damped_close },
    [SOLVER_DAMPED_COLD] = { "damped interior point", central_fits, damped_cold },
    [SOLVER_PIECES] = { "path from piece to piece", central_fits, pieces_all },
    [SOLVER_PIECES_FEW] = { "path from piece to piece", central_fits, pieces_few },
    [SOLVER_PIECES_MORE] = { "path from piece to piece", central_fits, pieces_more },
    [SOLVER_CENTRAL] = { "central path", central_fits, central_solve },
    [SOLVER_INTERIOR] = { "interior point", interior_fits, interior_solve },
    [SOLVER_LEMKE] = { "Lemke", lemke_fits, lemke_double },
    [SOLVER_LEMKE_LONG] = { "Lemke", lemke_fits, lemke_long },
    [SOLVER_LEMKE_QUAD] = { "Lemke", lemke_fits, lemke_quad },
    [SOLVER_LEMKE_SET] = { "Lemke", lemke_set_fits, lemke_set },
    [SOLVER_ACTIVE] = { "active set", active_fits, active_solve },
    [SOLVER_GAUSS] = { "Gauss-Seidel", in_full, gauss },
    [SOLVER_GAUSS_FEW] = { "Gauss-Seidel", in_full, gauss_few },
    [SOLVER_TURNS] = { "Gauss-Seidel with Newton", in_full, in_turn },
    [SOLVER_NEWTON] = { "Newton by shortest steps", in_full, shortest },
    [SOLVER_UZAWA] = { "Uzawa", uzawa_fits, uzawa },
    [SOLVER_BAND] = { "active set or Newton on a band", on_band, band },
    [SOLVER_COUPLED] = { "Newton on rates and reactions", mixed_fits, coupled },
};
