#include "uzawa.h"
#include <math.h>
#include <string.h>

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

enum { MOST_ROWS = 8 }; /* of a contact */

bool uzawa_fits(const contact_problem *p)
{
    for (int i = 0; i < p->n; i++)
        if (cone_rows(&p->cone[i]) > MOST_ROWS)
            return false;
    return p->W && p->u && p->kb == 0;
}

/* The step size of rows at..at + n: from their own block, because gap and slip of a contact may have
   unrelated units. */
static double uzawa_step(const contact_problem *p, int at, int n, double stiffness)
{
    double own = 0;
    for (int j = at; j < at + n; j++) {
        double s = 0;
        for (int i = at; i < at + n; i++)
            s += fabs(p->W[(size_t)j * p->m + i]);
        own = larger(own, s);
    }
    if (p->unit)
        stiffness /= p->unit[at] * p->unit[at];
    return stiffness < 1 / own ? stiffness : 1 / own;
}

static void uzawa_move(contact_problem *p, int row, double dr)
{
    for (int i = 0; dr != 0 && i < p->m; i++)
        p->u[i] += p->W[(size_t)i * p->m + row] * dr;
}

/* Multipliers of one contact after a step of size rho, with the current velocities of all others. */
static void uzawa_cone(contact_problem *p, const cone *c, double stiffness)
{
    int k = cone_normal(c);
    double x2 = 0, *r = p->r + c->row, *u = p->u + c->row, old[MOST_ROWS];
    memcpy(old, r, (size_t)cone_rows(c) * sizeof *old);
    if (k) {
        double rho = uzawa_step(p, c->row, 1, stiffness);
        r[0] = c->kind == CONE_BILATERAL ? r[0] - rho * u[0] : larger(r[0] - rho * u[0], 0);
        uzawa_move(p, c->row, r[0] - old[0]);
    }
    if (c->d == 0)
        return;
    double bound = c->mu * fabs(k ? r[0] : 0) + c->radius, f,
           rho = uzawa_step(p, c->row + k, c->d, stiffness);
    for (int j = k; j < k + c->d; j++) {
        r[j] -= rho * u[j];
        x2 += r[j] * r[j];
    }
    f = x2 > bound * bound ? bound / sqrt(x2) : 1;
    for (int j = k; j < k + c->d; j++)
        r[j] = c->dir ? -bound * c->dir[j - k] : f * r[j];
    for (int j = k; j < k + c->d; j++)
        uzawa_move(p, c->row + j, r[j] - old[j]);
}

bool uzawa_solve(contact_problem *p, arena *scratch, double tol, double stiffness)
{
    enum { MOST = 200000, LOOK = 2000 };
    arena_pos mark = arena_mark(scratch);
    double *an = arena_alloc(scratch, 2 * (size_t)p->n * sizeof *an), *at = an + p->n;
    problem_diagonal(p, an, at);
    problem_velocities(p, p->u);
    p->residual = problem_defect(p, p->u, an, at, NULL, &p->worst);
    double before = INFINITY;
    for (int it = 1; p->residual > tol && it <= MOST; it++) {
        /* slower than a factor of ten in all remaining checks */
        if (it % LOOK == 0 && p->residual > 0.97 * before)
            break;
        if (it % LOOK == 0)
            before = p->residual;
        arena_tick(scratch, (int64_t)p->m * p->m);
        for (int i = 0; i < p->n; i++)
            uzawa_cone(p, &p->cone[i], stiffness);
        p->iterations++;
        if (it % 16 == 0)
            problem_velocities(p, p->u);
        p->residual = problem_defect(p, p->u, an, at, NULL, &p->worst);
    }
    problem_velocities(p, p->u);
    p->residual = problem_defect(p, p->u, an, at, NULL, &p->worst);
    arena_release(scratch, mark);
    return p->residual <= 2 * tol;
}
