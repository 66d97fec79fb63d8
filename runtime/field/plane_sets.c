/* plane_sets: which nodes of a rectangle's grid lie on the obstacle.  First the set is corrected after each
   cycle of the linear solver, which is cheap and nearly always ends at the right one.  Then the system of
   that set is solved as exactly as rounding allows and nodes whose sign is wrong change sides, until there
   is none.  Where off-diagonal entries are not positive (an M-matrix) and the obstacle is on one side this
   is Howard's policy iteration: u rises from one set to the next, so that no set is repeated and the
   iteration ends.  Else block pivots of Judice and Pires: all nodes of a wrong sign change sides as long as
   their number falls, else the last of them alone (Murty), which ends for every P-matrix.  Nodes come to
   the set only when they are below the obstacle by more than rounding, so that rounding cannot switch a
   node back and forth. */
#include "field_plane.h"
#include <string.h>
#include "base/linalg.h"
#include "base/tolerances.h"

enum { EARLY_CYCLES = 30, PATIENCE = 10, MAX_SETS = 400, SPARSE_NODES = 700 * 700 };

static bool fail_singular(plane *p)
{
    return field_fail(p->w, p->fp->cond[0].at,
                      "the system is singular or does not converge: the conditions do not determine %s",
                      p->fp->name[p->field]);
}

static bool fail_sets(plane *p)
{
    return field_fail(p->w, p->fp->obst[0].at,
                      "the contact set does not converge; is the sign of the equation that of a problem with "
                      "an obstacle (-laplacian(u) = f, bilaplacian(u) = f)?");
}

/* coarser grids only provide the starting point of the finest one */
double level_tolerance(const plane *p, const level *l)
{
    if (l != p->at)
        return PLANE_COARSE_SETS * level_size(l);
    double n = l->m[0] > l->m[1] ? l->m[0] : l->m[1];
    return 16 * ROUND_UNIT * level_size(l) * pow(n, p->order / 2.0);
}

/* ---- signs ---- */
/* lhs - rhs at a node, and a bound of its rounding error */
static double force_at(const plane *p, const level *l, int64_t k, double *noise)
{
    const double *a = l->a + k * p->nc;
    double s = l->f0[k], e = fabs(s);
    for (int q = 0; q < p->nc; q++) {
        if (a[q] == 0)
            continue;
        double x = a[q] * l->u[k + p->dy[q] * l->m[0] + p->dx[q]];
        s += x;
        e += fabs(x);
    }
    *noise = ROUND_4 * e;
    return s;
}

/* which side node k belongs to: 1 on the lower obstacle, -1 on the upper one, 0 on none */
static int8_t side_wanted(const plane *p, const level *l, int64_t k, double rounding)
{
    double under = l->lo[k] - l->u[k], over = l->u[k] - l->hi[k], noise;
    int8_t now = l->act[k];
    if (p->o->eps > 0) { /* a stiff bed needs a more accurate u; nodes exactly at the edge do not change */
        double a = fabs(l->a[k * p->nc + p->nc / 2]), tiny = rounding * a / (a + spring_of(p));
        return under > tiny ? 1 : over > tiny ? -1 : (now > 0 ? under : over) < -tiny ? 0 : now;
    }
    if (!now)
        return under > rounding ? 1 : over > rounding ? -1 : 0;
    double force = now * force_at(p, l, k, &noise);
    return force < -noise ? 0 : now;
}

static void side_set(const plane *p, level *l, int64_t k, int8_t to)
{
    l->act[k] = to;
    if (to && p->o->eps <= 0)
        l->u[k] = to > 0 ? l->lo[k] : l->hi[k];
}

/* changes all nodes of a wrong sign; how many there are.  Sides are decided before any u is set. */
static int64_t sides_change(const plane *p, level *l, double rounding)
{
    int64_t changed = 0;
    int8_t *wanted = l->wanted;
    for (int64_t k = 0; k < l->n; k++) {
        wanted[k] = l->fix[k] ? 0 : side_wanted(p, l, k, rounding);
        changed += wanted[k] != l->act[k];
    }
    for (int64_t k = 0; changed && k < l->n; k++)
        if (wanted[k] != l->act[k])
            side_set(p, l, k, wanted[k]);
    return changed;
}

/* the number of nodes of a wrong sign, and the last of them */
static int64_t wrong_sides(const plane *p, const level *l, double rounding, int64_t *last)
{
    int64_t n = 0;
    for (int64_t k = 0; k < l->n; k++)
        if (!l->fix[k] && side_wanted(p, l, k, rounding) != l->act[k])
            n++, *last = k;
    return n;
}

/* one obstacle and a matrix whose inverse is positive */
static bool is_monotone(const plane *p, const level *l)
{
    bool lower = false, upper = false;
    for (int64_t k = 0; k < l->n; k++) {
        if (l->fix[k])
            continue;
        lower = lower || isfinite(l->lo[k]);
        upper = upper || isfinite(l->hi[k]);
        for (int q = 0; q < p->nc; q++)
            if (q == p->nc / 2 ? !(l->a[k * p->nc + q] > 0) : l->a[k * p->nc + q] > 0)
                return false;
    }
    return !(lower && upper);
}

/* ---- sparse factorisation ---- */
bool sparse_solve(plane *p, level *l)
{
    arena_pos mark = arena_mark(p->w->a);
    int64_t nz = 0, n = l->n;
    double spring = spring_of(p);
    int32_t *start = arena_array(p->w->a, int32_t, n + 1), *col = arena_array(p->w->a, int32_t, n * p->nc);
    double *val = arena_array(p->w->a, double, n * p->nc), *b = arena_array(p->w->a, double, n);
    for (int64_t k = 0; k < n; k++) {
        start[k] = (int32_t)nz;
        if (is_held(p, l, k)) {
            col[nz] = (int32_t)k;
            val[nz++] = 1;
            b[k] = l->fix[k] ? l->u[k] : l->act[k] > 0 ? l->lo[k] : l->hi[k];
            continue;
        }
        double scale = 1 / fabs(diagonal(p, l, k));
        if (!isfinite(scale))
            scale = 1;
        b[k] = -l->f0[k] * scale;
        if (l->act[k])
            b[k] += spring * scale * (l->act[k] > 0 ? l->lo[k] : l->hi[k]);
        for (int q = 0; q < p->nc; q++) { /* dy, dx rise with q: columns in order */
            double a = l->a[k * p->nc + q] + (q == p->nc / 2 && l->act[k] ? spring : 0);
            if (a == 0)
                continue;
            col[nz] = (int32_t)(k + p->dy[q] * l->m[0] + p->dx[q]);
            val[nz++] = a * scale;
        }
    }
    start[n] = (int32_t)nz;
    /* rows taken as columns: the transposed system is solved */
    sparse_factors *f = sparse_factors_new(p->w->a, (int)n, start, col, true);
    bool good = sparse_factors_put(f, val, true) && sparse_factors_solve_rows(f, b);
    sparse_factors_free(f);
    for (int64_t k = 0; good && k < n; k++)
        good = isfinite(b[k]);
    if (good)
        memcpy(l->u, b, (size_t)n * sizeof *l->u);
    arena_release(p->w->a, mark);
    return good;
}

/* ---- the problem of a level ---- */
/* u for the current set. */
static bool set_solve(plane *p, int k, bool *direct)
{
    level *l = &p->at[k];
    if (!*direct) {
        contact_to_coarse(p, k);
        if (multigrid_solve(p, k, level_tolerance(p, l)))
            return true;
        if (p->w->r->status == RUN_INTERRUPTED || l->n > SPARSE_NODES)
            return false;
        *direct = true;
    }
    return sparse_solve(p, l);
}

static bool stopped(const plane *p)
{
    return p->w->r->status == RUN_INTERRUPTED || p->w->r->status == RUN_FAILED;
}

/* u lies above the obstacle to the last bit: only rounding is moved */
static void obstacle_hold(const plane *p, level *l)
{
    for (int64_t k = 0; p->o->eps <= 0 && k < l->n; k++)
        if (!l->fix[k])
            l->u[k] = fmin(fmax(l->u[k], l->lo[k]), l->hi[k]);
}

/* cycles, the set corrected between them; true: set and u are found */
static bool early_cycles(plane *p, int k)
{
    level *l = &p->at[k];
    double last = INFINITY, rounding = level_tolerance(p, l);
    for (int it = 0; it < EARLY_CYCLES; it++, p->steps++) {
        if (!field_goes_on(p->w, pow(4, -k - 1.0)))
            return false;
        int64_t changed = l->lo ? sides_change(p, l, rounding) : 0;
        if (changed || !it)
            contact_to_coarse(p, k);
        double change = multigrid_cycle(p, k), share = change / last;
        rounding = level_tolerance(p, l);
        if (!isfinite(change))
            return false;
        bool small = cycle_left(change, last) <= rounding / 4;
        if (!changed && small && (!l->lo || !sides_change(p, l, rounding)))
            return true;
        if (!changed && it > 2 && share > 0.25 && isfinite(last) && change > rounding)
            return false; /* cycles alone are slow */
        last = changed ? INFINITY : change;
    }
    return false;
}

static bool set_find(plane *p, int k)
{
    level *l = &p->at[k];
    int64_t fewest = INT64_MAX, last = 0;
    int patience = PATIENCE;
    bool direct = p->order == 4, all = l->lo && is_monotone(p, l);
    for (int round = 0; round < MAX_SETS; round++, p->steps++) {
        if (!field_goes_on(p->w, pow(4, -k - 1.0)))
            return false;
        if (!set_solve(p, k, &direct))
            return stopped(p) ? false : fail_singular(p);
        double rounding = level_tolerance(p, l);
        int64_t wrong = l->lo ? wrong_sides(p, l, rounding, &last) : 0;
        if (!wrong)
            return true;
        if (wrong < fewest) {
            fewest = wrong;
            patience = PATIENCE;
        } else
            patience--;
        if (all || patience > 0)
            sides_change(p, l, rounding);
        else
            side_set(p, l, last, side_wanted(p, l, last, rounding));
    }
    return fail_sets(p);
}

bool obstacle_solve(plane *p, int k)
{
    level *l = &p->at[k];
    p->steps = 1;
    bool found = p->order == 2 && early_cycles(p, k);
    if (!found && stopped(p))
        return false;
    for (int64_t q = 0; !found && q < l->n; q++)
        if (!isfinite(l->u[q]))
            l->u[q] = 0;
    if (!found && !set_find(p, k))
        return false;
    if (l->lo)
        obstacle_hold(p, l);
    return true;
}
