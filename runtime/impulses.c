/* The step problem of many contacts, island by island: one contact in closed form, chains by their band, the rest by Gauss-Seidel sweeps with conjugate
   directions, and by proximal Newton steps where these are too slow.  v1 comes in free of impulses and goes out with them: v1 += M^-1 J^T r. */
#include <math.h>
#include <string.h>
#include "interior.h"
#include "pile.h"
#include "many_work.h"

enum { LOCAL_WORK = CONE_WORK * MAX_SLIP * (MAX_SLIP + 4) + 8 };
enum { BY_FORM, BY_SET, BY_NEWTON, BY_SWEEPS, BY_PROXIMAL, BY_INTERIOR };

typedef struct { const int *at; int n; } group;         /* contacts of an island */

/* the heaviest that was needed is named */
static void name_solver(many *w, int by)
{
    static const char *const names[] = { "closed form", "active set of a chain", "Newton on a chain", "Gauss-Seidel with conjugate directions",
                                         "Gauss-Seidel with conjugate directions, proximal Newton",
                                         "Gauss-Seidel with conjugate directions, proximal Newton, interior point" };
    if (by < w->by) return;
    w->by = by;
    w->r->solver = names[by];
}

/* ---- one contact, and one sweep ---- */
/* the exact solution of one contact with the others held; returns the largest change */
static inline double relax(many *w, int c, double *size, double *work)
{
    contact_list *l = &w->act;
    int m = list_rows(l, c), row = l->cone[c].row;
    const double *A = l->A + l->A_at[c];
    double b[MAX_ROWS] = { 0 }, r[MAX_ROWS], dr[MAX_ROWS], e = 0;
    for (int a = 0; a < m; a++) {
        b[a] = list_rate(l, c, a, w->v1) + l->b[row + a];
        for (int k = 0; k < m; k++) b[a] -= A[a * m + k] * l->r[row + k];
    }
    cone_solve(&l->cone[c], A, m, b, r, work);
    for (int a = 0; a < m; a++) {
        dr[a] = r[a] - l->r[row + a];
        e = larger(e, fabs(dr[a]));
        *size = larger(*size, fabs(r[a]));
        l->r[row + a] = r[a];
    }
    if (e != 0) list_push(l, c, dr, w->v1);
    return e;
}

/* One sweep, up or down the list; returns the largest distance to the fixed point, *size the largest impulse in play. */
static double sweep(many *w, group g, bool down, double *size, int *worst)
{
    double most = 0, work[LOCAL_WORK];
    *size = 0;
    for (int at = 0; at < g.n; at++) {
        int c = g.at[down ? g.n - 1 - at : at];
        double e = relax(w, c, size, work);
        if (e > most) { most = e; *worst = c; }
    }
    return most;
}

/* v1 += M^-1 J^T r; what cancels to rounding is 0, so that rest and stick are exact */
static void push_all(many *w, group g)
{
    contact_list *l = &w->act;
    double *size = w->move;
    for (int i = 0; i < g.n; i++)
        for (int k = l->dof_at[g.at[i]]; k < l->dof_at[g.at[i] + 1]; k++) size[l->dof[k]] = fabs(w->v1[l->dof[k]]);
    for (int i = 0; i < g.n; i++) {
        int c = g.at[i], n = l->dof_at[c + 1] - l->dof_at[c], m = list_rows(l, c);
        const int *dof = l->dof + l->dof_at[c];
        const double *K = l->K + l->J_at[c], *r = l->r + l->cone[c].row;
        for (int a = 0; a < m; a++)
            for (int k = 0; k < n && r[a] != 0; k++) {
                double d = r[a] * K[a * n + k];
                w->v1[dof[k]] += d;
                size[dof[k]] += fabs(d);
            }
    }
    for (int i = 0; i < g.n; i++)
        for (int k = l->dof_at[g.at[i]]; k < l->dof_at[g.at[i] + 1]; k++)
            if (fabs(w->v1[l->dof[k]]) <= 1.5e-14 * size[l->dof[k]]) w->v1[l->dof[k]] = 0;
}

/* ---- chains ---- */
static double chain_solve(many *w, island *i, group g, int *worst)
{
    contact_list *l = &w->act;
    if (!i->band) i->band = island_band(&w->isl, i, l, w->fixed ? w->a : w->scratch);
    band_problem *p = i->band;
    for (int k = 0; k < g.n; k++) {
        int c = g.at[k], row = l->cone[c].row, m = list_rows(l, c), to = p->cone[k].row;
        p->cone[k].mu = l->cone[c].mu;
        p->cone[k].radius = l->cone[c].radius;
        for (int a = 0; a < m; a++) { p->b[to + a] = list_rate(l, c, a, w->v1) + l->b[row + a]; p->r[to + a] = l->r[row + a]; }
    }
    bool ok = band_solve(p, w->tol);
    w->r->solver_iterations += p->iterations;
    *worst = g.at[p->worst];
    if (!ok) return fmax(p->residual, 2 * w->tol);      /* not solved, whatever it reached */
    for (int k = 0; k < g.n; k++) {
        int c = g.at[k];
        for (int a = 0; a < list_rows(l, c); a++) l->r[l->cone[c].row + a] = p->r[p->cone[k].row + a];
    }
    push_all(w, g);
    name_solver(w, p->m > p->n ? BY_NEWTON : BY_SET);
    return p->residual;
}

/* ---- too slow: W as a sparse matrix, by proximal Newton steps from where it stands, or by an interior point ---- */
typedef struct { int *start, *list; } touching;         /* places in the group, at each dof */

static touching places_at(many *w, group g)
{
    const contact_list *l = &w->act;
    int all = 0;
    touching t = { arena_array(w->scratch, int, w->n + 2), NULL };
    for (int i = 0; i < g.n; i++)
        for (int k = l->dof_at[g.at[i]]; k < l->dof_at[g.at[i] + 1]; k++, all++) t.start[l->dof[k] + 2]++;
    for (int k = 2; k < w->n + 2; k++) t.start[k] += t.start[k - 1];
    t.list = arena_array(w->scratch, int, all + 1);
    for (int i = 0; i < g.n; i++)
        for (int k = l->dof_at[g.at[i]]; k < l->dof_at[g.at[i] + 1]; k++) t.list[t.start[l->dof[k] + 1]++] = i;
    return t;
}

/* those that share a dof with place i, itself among them; seen[j] == i marks them */
static int neighbours_of(const many *w, group g, const touching *t, int i, int *seen, int *out)
{
    const contact_list *l = &w->act;
    int n = 0;
    for (int k = l->dof_at[g.at[i]]; k < l->dof_at[g.at[i] + 1]; k++)
        for (int at = t->start[l->dof[k]]; at < t->start[l->dof[k] + 1]; at++) {
            int j = t->list[at];
            if (seen[j] != i) { seen[j] = i; out[n++] = j; }
        }
    return n;
}

static void block_row(const many *w, group g, int i, int a, double *x, const int *near_by, int n, double *out)
{
    const contact_list *l = &w->act;
    int c = g.at[i], wide = l->dof_at[c + 1] - l->dof_at[c];
    for (int k = 0; k < wide; k++) x[l->dof[l->dof_at[c] + k]] += l->J[l->J_at[c] + (size_t)(a * wide + k)];
    for (int j = 0; j < n; j++) {
        int o = g.at[near_by[j]], m = l->dof_at[o + 1] - l->dof_at[o];
        for (int b = 0; b < list_rows(l, o); b++) {
            double s = 0;
            for (int k = 0; k < m; k++) s += l->K[l->J_at[o] + (size_t)(b * m + k)] * x[l->dof[l->dof_at[o] + k]];
            *out++ = s;
        }
    }
    for (int k = 0; k < wide; k++) x[l->dof[l->dof_at[c] + k]] = 0;
}

static void sparse_put(many *w, group g, sparse_problem *p, cone *cones)
{
    arena *a = w->scratch;
    int n = p->n, *seen = arena_array(a, int, n), *near_by = arena_array(a, int, n), *start = arena_array(a, int, n + 1);
    size_t *first = arena_array(a, size_t, n);
    double *x = arena_array(a, double, w->n);
    touching t = places_at(w, g);
    vec(int) col = { 0 };
    vec(double) val = { 0 };
    for (int i = 0; i < n; i++) seen[i] = -1;
    for (int i = 0; i < n; i++) {
        int m = neighbours_of(w, g, &t, i, seen, near_by), rows = cone_rows(&cones[i]), wide = 0;
        start[i] = (int)col.n;
        first[i] = val.n;
        for (int j = 0; j < m; j++)
            for (int b = 0; b < cone_rows(&cones[near_by[j]]); b++, wide++) *vec_push(a, &col) = cones[near_by[j]].row + b;
        for (int k = 0; k < rows * wide; k++) *vec_push(a, &val) = 0;
        for (int s = 0; s < rows; s++) block_row(w, g, i, s, x, near_by, m, val.at + first[i] + (size_t)s * wide);
    }
    start[n] = (int)col.n;
    p->start = start; p->col = col.at; p->at = first; p->val = val.at;
}

static double solve_sparse(many *w, group g, int by, int *worst)
{
    contact_list *l = &w->act;
    int n = g.n, m = 0;
    cone *cones = arena_array(w->scratch, cone, n);
    for (int i = 0; i < n; i++) {
        cones[i] = l->cone[g.at[i]];
        cones[i].row = m;
        m += cone_rows(&cones[i]);
    }
    double *b = arena_array(w->scratch, double, m), *r = arena_array(w->scratch, double, m);
    sparse_problem p = { .n = n, .m = m, .cone = cones, .b = b, .r = r };
    sparse_put(w, g, &p, cones);
    for (int i = 0; i < n; i++) for (int a = 0; a < cone_rows(&cones[i]); a++) r[cones[i].row + a] = l->r[l->cone[g.at[i]].row + a];
    for (int i = 0; i < n; i++)
        for (int a = 0; a < cone_rows(&cones[i]); a++) {
            double own = 0;
            int wide = p.start[i + 1] - p.start[i];
            for (int k = 0; k < wide; k++) own += p.val[p.at[i] + (size_t)a * wide + k] * r[p.col[p.start[i] + k]];
            b[cones[i].row + a] = list_rate(l, g.at[i], a, w->v1) + l->b[l->cone[g.at[i]].row + a] - own;
        }
    if (by == BY_INTERIOR) interior_solve(&p, w->scratch, w->tol);
    else pile_solve(&p, w->scratch, w->tol);
    for (int i = 0; i < n; i++) {
        int c = g.at[i], row = l->cone[c].row;
        double dr[MAX_ROWS];
        for (int a = 0; a < list_rows(l, c); a++) { dr[a] = r[cones[i].row + a] - l->r[row + a]; l->r[row + a] += dr[a]; }
        list_push(l, c, dr, w->v1);
    }
    *worst = g.at[p.worst];
    w->r->solver_iterations += p.iterations;
    name_solver(w, by);
    return p.residual;
}

/* ---- sweeps ---- */
static double gradient_norm2(const contact_list *l, group g, const double *keep)
{
    double g2 = 0;
    for (int i = 0; i < g.n; i++) {
        int c = g.at[i], row = l->cone[c].row;
        for (int a = 0; a < list_rows(l, c); a++) { double x = l->r[row + a] - keep[row + a]; g2 += x * x; }
    }
    return g2;
}

/* on along the direction of the last step, as conjugate gradients do */
static void go_on(many *w, group g, const double *keep, double beta, bool go)
{
    contact_list *l = &w->act;
    for (int i = 0; i < g.n; i++) {
        int c = g.at[i], row = l->cone[c].row, m = list_rows(l, c);
        double dr[MAX_ROWS];
        for (int a = 0; a < m; a++) {
            double x = l->r[row + a] - keep[row + a];
            dr[a] = beta * l->p[row + a];
            l->p[row + a] = go ? dr[a] + x : 0;
            l->r[row + a] += dr[a];
        }
        if (go) list_push(l, c, dr, w->v1);
    }
}

/* Gauss-Seidel as the gradient of a conjugate direction method: far fewer sweeps for the same residual, which is returned.
   plain: sweeps alone, which friction cannot mislead. */
static double solve_sweeps(many *w, group g, int most, bool plain, double *keep, int *worst)
{
    contact_list *l = &w->act;
    double before = 0, size = 0, res = INFINITY;
    for (int i = 0; i < g.n; i++)
        for (int a = 0; a < list_rows(l, g.at[i]); a++) l->p[l->cone[g.at[i]].row + a] = 0;
    for (int it = 0; it < most; it++) {
        for (int i = 0; i < g.n; i++)
            for (int a = 0; a < list_rows(l, g.at[i]); a++) keep[l->cone[g.at[i]].row + a] = l->r[l->cone[g.at[i]].row + a];
        res = sweep(w, g, false, &size, worst);
        if (!(res <= w->tol * size)) res = larger(res, sweep(w, g, true, &size, worst));
        w->r->solver_iterations += 2;
        w->work += 2 * (int64_t)g.n;
        if (res <= w->tol * size || size == 0) break;
        if (plain) continue;
        double g2 = gradient_norm2(l, g, keep);
        bool go = before > 0 && g2 <= before;
        go_on(w, g, keep, go ? g2 / before : 0, go);
        before = go || before == 0 ? g2 : 0;
    }
    name_solver(w, BY_SWEEPS);
    return size > 0 ? res / size : 0;
}

/* hard: a chain that Newton's method did not solve */
static double solve_pile(many *w, group g, bool hard, int *worst)
{
    static const struct { int by, sweeps; bool plain; } way[] = {
        { BY_SWEEPS, 150, false }, { BY_PROXIMAL, 0, false }, { BY_INTERIOR, 0, false }, { BY_SWEEPS, 1000, true }, { BY_PROXIMAL, 0, false },
        { BY_SWEEPS, 1000, false }, { BY_PROXIMAL, 0, false },
    };
    double res = INFINITY, *keep = arena_array(w->scratch, double, w->act.rows);
    for (int i = 0; i < g.n; i++) list_push(&w->act, g.at[i], w->act.r + w->act.cone[g.at[i]].row, w->v1);
    for (size_t k = hard ? 2 : 0; k < sizeof way / sizeof *way && !(res <= w->tol); k++) {
        arena_pos mark = arena_mark(w->scratch);
        res = way[k].by == BY_SWEEPS ? solve_sweeps(w, g, way[k].sweeps, way[k].plain, keep, worst) : solve_sparse(w, g, way[k].by, worst);
        arena_release(w->scratch, mark);
    }
    return res;
}

static double solve_alone(many *w, group g, int *worst)
{
    double work[LOCAL_WORK], size = 0;
    int c = *worst = g.at[0];
    memset(w->act.r + w->act.cone[c].row, 0, (size_t)list_rows(&w->act, c) * sizeof *w->act.r);
    relax(w, c, &size, work);
    name_solver(w, BY_FORM);
    return 0;
}

static double solve_island(many *w, island *i, int *worst)
{
    group g = { w->isl.at + i->first, i->n };
    double res = INFINITY;
    if (g.n == 1) return solve_alone(w, g, worst);
    if (i->kb >= 0 && i->kb <= BAND_MOST) res = chain_solve(w, i, g, worst);
    return res <= w->tol ? res : solve_pile(w, g, res < INFINITY, worst);
}

static bool unsolved(many *w, int c, double res, double t)
{
    const contact_of *k = &w->act.of[c];
    contact named = { .fam = k->pat->fam, .member = k->member };
    memcpy(named.index, k->index, sizeof named.index);
    return many_fail(w, k->pat->fam->f->at, arena_printf(w->r->a, "the contact problem was not solved at t = %.6g: constraint '%s', residual %.2g (tolerance %.2g)",
                                                         t, contact_name(&named, w->r->a), res, w->tol));
}

bool impulses_solve(many *w, double t)
{
    enum { FEW = 64 };                  /* contacts whose order is always looked at; more when the tolerance is tight */
    if (w->act.n == 0) return true;
    arena_pos mark = arena_mark(w->scratch);
    if (!w->fixed) islands_find(&w->isl, &w->act, w->n, w->tol < 1e-6 || w->act.n <= FEW, w->a, w->scratch);
    bool ok = true;
    for (int i = 0; i < w->isl.n && ok; i++) {
        int worst = 0;
        double res = solve_island(w, &w->isl.of[i], &worst);
        if (res > w->r->residual) w->r->residual = res;
        if (!(res <= w->tol) && !w->o->keep_going) ok = unsolved(w, worst, res, t);
    }
    arena_release(w->scratch, mark);
    return ok;
}
