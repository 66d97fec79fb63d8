/* The step problem of many contacts, island by island: a single contact in closed form, chains by their band,
   the rest by Gauss-Seidel sweeps with conjugate directions, or by proximal Newton steps if these are too
   slow. v1 does not include impulses on entry, and includes them on return: v1 += M^-1 J^T r. */
#include <math.h>
#include <string.h>
#include "pile.h"
#include "rates.h"
#include "impulses.h"
#include "newton.h"
#include "plans.h"
#include "sweeps.h"
#include "base/linalg.h"
#include "base/tolerances.h"

enum { MAX_ROWS = 1 + MAX_TANGENT }; /* of a contact */
enum { LOCAL_WORK = CONE_WORK * MAX_TANGENT * (MAX_TANGENT + 4) + 8 };
enum { SHORT = 12 }; /* dofs of a contact whose rates fit on the stack */
enum { BY_FORM, BY_SET, BY_NEWTON, BY_SWEEPS, BY_PILE };

/* Contacts of an island. */
typedef struct {
    const int *at;
    int n;
} group;

/* Records the slowest solver that was needed. */
static void name_solver(impulses *w, int by)
{
    static const char *const names[] = {
        "closed form", "active set of a chain", "Newton on a chain", "Gauss-Seidel with conjugate directions",
        "Gauss-Seidel with conjugate directions, Newton and the central path"
    };
    if (by < w->by)
        return;
    w->by = by;
    w->solver = names[by];
}

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

/* ---- one contact, and one sweep ---- */
/* One normal and one tangential row, the common case: stick, otherwise slip in the direction in which it is
   driven; false: neither is a solution. */
static inline bool solve_two(const cone *o, const double *A, const double *b, double *r)
{
    if (pair_stick(A, pair_over(A[0] * A[3] - A[1] * A[2]), o->mu, o->radius, b, r))
        return true;
    double side = r[1] < 0 ? 1 : -1;
    return pair_slip(A, side, pair_over(A[0] - side * o->mu * A[1]), o->mu, o->radius, b, r);
}

static inline void solve_one(const cone *o, const double *A, int m, const double *b, double *r, double *work)
{
    if (o->dir)
        cone_solve(o, A, m, b, r, work);
    else if (m == 1 && o->kind == CONE_UNILATERAL)
        r[0] = b[0] < 0 ? -b[0] / A[0] : 0;
    else if (m == 2 && o->kind == CONE_UNILATERAL && b[0] < 0 && solve_two(o, A, b, r))
        return;
    else
        cone_solve(o, A, m, b, r, work);
}

/* The exact solution of one contact with the others held; returns the largest change. */
static inline __attribute__((always_inline)) double relax_sized(impulses *w, int c, int n, int m,
                                                                double *size, double *work)
{
    contact_list *l = &w->act;
    const cone *o = &l->cone[c];
    const int *dof = l->dof + l->dof_at[c];
    const double *A = l->A + l->A_at[c], *J = l->J + l->J_at[c], *K = l->K + l->J_at[c], *add = l->b + o->row;
    double few[SHORT], *v = n <= SHORT ? few : w->local, b[MAX_ROWS] = { 0 }, x[MAX_ROWS], *r = l->r + o->row,
                       e = 0;
    for (int k = 0; k < n; k++)
        v[k] = w->v1[dof[k]];
    for (int a = 0; a < m; a++) {
        b[a] = vec_dot(J + a * n, v, n) + add[a];
        for (int k = 0; k < m; k++)
            b[a] -= A[a * m + k] * r[k];
        /* it was open and stays open, if friction has no other bound than that of r_n */
        if (a == 0 && m <= 2 && b[0] >= 0 && r[0] == 0 && r[m - 1] == 0 && o->radius == 0 &&
            o->kind == CONE_UNILATERAL)
            return 0;
    }
    solve_one(o, A, m, b, x, work);
    for (int a = 0; a < m; a++) {
        double d = x[a] - r[a];
        e = larger(e, fabs(d));
        *size = larger(*size, fabs(x[a]));
        r[a] = x[a];
        for (int k = 0; k < n; k++)
            v[k] += d * K[a * n + k];
    }
    for (int k = 0; k < n && e != 0; k++)
        w->v1[dof[k]] = v[k];
    return e;
}

/* Contacts of disks and balls with each other and with walls have known sizes, so that their loops can be
   unrolled. */
static double relax(impulses *w, int c, double *size, double *work)
{
    int m = list_rows(&w->act, c), n = w->act.dof_at[c + 1] - w->act.dof_at[c];
    switch (n * 4 + m) {
    case 6 * 4 + 2:
        return relax_sized(w, c, 6, 2, size, work);
    case 3 * 4 + 2:
        return relax_sized(w, c, 3, 2, size, work);
    case 4 * 4 + 1:
        return relax_sized(w, c, 4, 1, size, work);
    case 4 * 4 + 2:
        return relax_sized(w, c, 4, 2, size, work);
    case 6 * 4 + 1:
        return relax_sized(w, c, 6, 1, size, work);
    case 6 * 4 + 3:
        return relax_sized(w, c, 6, 3, size, work);
    case 1 * 4 + 1:
        return relax_sized(w, c, 1, 1, size, work);
    default:
        return relax_sized(w, c, n, m, size, work);
    }
}

/* One sweep, up or down the list; returns the largest residual; *size: the largest impulse. */
static double sweep(impulses *w, group g, bool down, double *size, int *worst)
{
    double most = 0, work[LOCAL_WORK];
    *size = 0;
    for (int at = 0; at < g.n; at++) {
        int c = g.at[down ? g.n - 1 - at : at];
        double e = relax(w, c, size, work);
        if (e > most) {
            most = e;
            *worst = c;
        }
    }
    return most;
}

/* v1 += M^-1 J^T r; sums that cancel to rounding become 0, so that rest and stick are exact. */
static void push_fixed(impulses *w)
{
    const int *at = w->act.at_dof, *row_of = w->act.row_of;
    const double *K = w->act.K_of, *r = w->act.r;
    double *v = w->v1;
    for (int i = 0, k = at[0]; i < w->n; i++) {
        double x = v[i], size = fabs(x);
        int end = at[i + 1];
        if (end - k == 2) { /* between two neighbours, as most are: without the cost of a loop */
            double c = K[k] * r[row_of[k]], d = K[k + 1] * r[row_of[k + 1]];
            x = (x + c) + d;
            size = (size + fabs(c)) + fabs(d);
            k = end;
        }
        for (; k < end; k++) {
            double d = K[k] * r[row_of[k]];
            x += d;
            size += fabs(d);
        }
        v[i] = fabs(x) <= ROUND_70 * size ? 0 : x;
    }
}

static void push_all(impulses *w, group g)
{
    contact_list *l = &w->act;
    double *size = w->move;
    if (w->fixed && w->isl.n == 1) {
        push_fixed(w);
        return;
    }
    for (int i = 0; i < g.n; i++)
        for (int k = l->dof_at[g.at[i]]; k < l->dof_at[g.at[i] + 1]; k++)
            size[l->dof[k]] = fabs(w->v1[l->dof[k]]);
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
            if (fabs(w->v1[l->dof[k]]) <= ROUND_70 * size[l->dof[k]])
                w->v1[l->dof[k]] = 0;
}

/* ---- chains ---- */
/* Rows of a fixed list without friction, in the order of its chain; NULL: one has more than two dofs. */
static const chain_row *chain_rows(const impulses *w, group g)
{
    const contact_list *l = &w->act;
    for (int k = 0; k < g.n; k++)
        if (list_rows(l, g.at[k]) != 1 || l->dof_at[g.at[k] + 1] - l->dof_at[g.at[k]] > 2)
            return NULL;
    chain_row *rows = arena_array(w->a, chain_row, g.n);
    for (int k = 0; k < g.n; k++) {
        int c = g.at[k], n = l->dof_at[c + 1] - l->dof_at[c];
        const int *dof = l->dof + l->dof_at[c];
        const double *J = l->J + l->J_at[c];
        if (n > 0)
            rows[k] = (chain_row){ dof[0], dof[n - 1], l->cone[c].row, { J[0], n == 2 ? J[1] : 0 } };
    }
    return rows;
}

static void chain_put_rows(const impulses *w, contact_problem *p, const chain_row *rows)
{
    const double *v = w->v1, *b = w->act.b, *r = w->act.r;
    for (int k = 0, n = p->n; k < n; k++) {
        const chain_row *x = &rows[k];
        double u = 0;
        u += x->J[0] * v[x->a];
        u += x->J[1] * v[x->b];
        p->b[k] = u + b[x->row];
        p->r[k] = r[x->row];
    }
}

/* Its problem with the current rates and reactions. */
static void chain_put(const impulses *w, contact_problem *p, group g)
{
    const contact_list *l = &w->act;
    const double *v = w->v1;
    for (int k = 0, to = 0; k < g.n; k++) {
        int c = g.at[k], n = l->dof_at[c + 1] - l->dof_at[c];
        const cone *o = &l->cone[c];
        const int *dof = l->dof + l->dof_at[c];
        const double *J = l->J + l->J_at[c], *b = l->b + o->row, *r = l->r + o->row;
        if (o->d) {
            p->cone[k].mu = o->mu;
            p->cone[k].radius = o->radius;
            p->cone[k].dir = o->dir;
            p->cone[k].of_speed = o->of_speed;
        }
        for (int a = 0, m = cone_rows(o); a < m; a++, to++, J += n) {
            double u = 0;
            for (int j = 0; j < n; j++)
                u += J[j] * v[dof[j]];
            p->b[to] = u + b[a];
            p->r[to] = r[a];
        }
    }
}

static double chain_solve(impulses *w, island *i, group g, int *worst)
{
    contact_list *l = &w->act;
    if (!i->band) {
        i->band = island_band(&w->isl, i, l, w->root != NULL, w->fixed ? w->a : w->scratch);
        i->rows = w->fixed && !band_rough(i->band) ? chain_rows(w, g) : NULL;
    }
    contact_problem *p = i->band;
    if (i->rows)
        chain_put_rows(w, p, i->rows);
    else
        chain_put(w, p, g);
    bool ok = band_solve(p, w->tol);
    w->iterations += p->iterations;
    *worst = g.at[p->worst];
    if (!ok)
        return fmax(p->residual, 2 * w->tol); /* not solved, although the residual may be small */
    for (int k = 0; i->rows && k < g.n; k++)
        l->r[i->rows[k].row] = p->r[k];
    for (int k = 0, from = 0; !i->rows && k < g.n; k++) {
        const cone *o = &l->cone[g.at[k]];
        double *r = l->r + o->row;
        for (int a = 0, m = cone_rows(o); a < m; a++)
            r[a] = p->r[from++];
    }
    push_all(w, g);
    name_solver(w, band_rough(p) ? BY_NEWTON : BY_SET);
    return p->residual;
}

/* ---- initial values of a group ---- */
typedef struct {
    /* rates without reactions, by the dofs of contact after contact; reactions, in the same order */
    double *rates, *r;
} group_start;

static group_start start_of(const impulses *w, group g)
{
    const contact_list *l = &w->act;
    int m = 0, dofs = 0;
    for (int i = 0; i < g.n; i++) {
        m += list_rows(l, g.at[i]);
        dofs += l->dof_at[g.at[i] + 1] - l->dof_at[g.at[i]];
    }
    group_start s = { arena_alloc(w->scratch, (size_t)dofs * sizeof(double)),
                      arena_alloc(w->scratch, (size_t)m * sizeof(double)) };
    m = dofs = 0;
    for (int i = 0; i < g.n; i++) {
        int c = g.at[i];
        for (int k = l->dof_at[c]; k < l->dof_at[c + 1]; k++)
            s.rates[dofs++] = w->v1[l->dof[k]];
        for (int a = 0; a < list_rows(l, c); a++)
            s.r[m++] = l->r[l->cone[c].row + a];
    }
    return s;
}

/* Rates with the current reactions. */
static void push_from(impulses *w, group g, const group_start *from)
{
    const contact_list *l = &w->act;
    const double *rate = from->rates;
    for (int i = 0; i < g.n; i++)
        for (int k = l->dof_at[g.at[i]]; k < l->dof_at[g.at[i] + 1]; k++)
            w->v1[l->dof[k]] = *rate++;
    for (int i = 0; i < g.n; i++)
        list_push(l, g.at[i], l->r + l->cone[g.at[i]].row, w->v1);
}

/* ---- slow sweeps: W as a sparse matrix, for pile.c ---- */
/* Indices in the group of the contacts at each of its dofs. Dofs are renumbered (w->number), so that many
   small groups cost no more than a large one. */
typedef struct {
    int n, *start, *list;
} touching;

static int number_dofs(impulses *w, group g)
{
    const contact_list *l = &w->act;
    int mark = ++w->mark, n = 0;
    for (int i = 0; i < g.n; i++)
        for (int k = l->dof_at[g.at[i]]; k < l->dof_at[g.at[i] + 1]; k++) {
            int dof = l->dof[k];
            if (w->marked[dof] != mark)
                w->number[dof] = n++;
            w->marked[dof] = mark;
        }
    return n;
}

static touching places_at(impulses *w, group g)
{
    const contact_list *l = &w->act;
    int all = 0;
    touching t = { .n = number_dofs(w, g) };
    t.start = arena_array(w->scratch, int, t.n + 2);
    for (int i = 0; i < g.n; i++)
        for (int k = l->dof_at[g.at[i]]; k < l->dof_at[g.at[i] + 1]; k++, all++)
            t.start[w->number[l->dof[k]] + 2]++;
    for (int k = 2; k < t.n + 2; k++)
        t.start[k] += t.start[k - 1];
    t.list = arena_array(w->scratch, int, all + 1);
    for (int i = 0; i < g.n; i++)
        for (int k = l->dof_at[g.at[i]]; k < l->dof_at[g.at[i] + 1]; k++)
            t.list[t.start[w->number[l->dof[k]] + 1]++] = i;
    return t;
}

/* Contacts that share a dof with number i, including itself; seen[j] == i marks them. */
static int neighbours_of(const impulses *w, group g, const touching *t, int i, int *seen, int *out)
{
    const contact_list *l = &w->act;
    int n = 0;
    for (int k = l->dof_at[g.at[i]]; k < l->dof_at[g.at[i] + 1]; k++)
        for (int dof = w->number[l->dof[k]], at = t->start[dof]; at < t->start[dof + 1]; at++) {
            int j = t->list[at];
            if (seen[j] != i) {
                seen[j] = i;
                out[n++] = j;
            }
        }
    return n;
}

static void block_row(const impulses *w, group g, int i, int a, double *x, const int *near_by, int n,
                      double *out)
{
    const contact_list *l = &w->act;
    const int *number = w->number;
    int c = g.at[i], wide = l->dof_at[c + 1] - l->dof_at[c];
    for (int k = 0; k < wide; k++)
        x[number[l->dof[l->dof_at[c] + k]]] += l->J[l->J_at[c] + (size_t)(a * wide + k)];
    for (int j = 0; j < n; j++) {
        int o = g.at[near_by[j]], m = l->dof_at[o + 1] - l->dof_at[o];
        for (int b = 0; b < list_rows(l, o); b++) {
            double s = 0;
            for (int k = 0; k < m; k++)
                s += l->K[l->J_at[o] + (size_t)(b * m + k)] * x[number[l->dof[l->dof_at[o] + k]]];
            *out++ = s;
        }
    }
    for (int k = 0; k < wide; k++)
        x[number[l->dof[l->dof_at[c] + k]]] = 0;
}

static void sparse_put(impulses *w, group g, contact_problem *p, cone *cones)
{
    arena *a = w->scratch;
    int n = p->n, *seen = arena_array(a, int, n), *near_by = arena_array(a, int, n),
        *start = arena_array(a, int, n + 1);
    size_t *first = arena_array(a, size_t, n);
    touching t = places_at(w, g);
    double *x = arena_array(a, double, t.n);
    vec(int) col = { 0 };
    vec(double) val = { 0 };
    for (int i = 0; i < n; i++)
        seen[i] = -1;
    for (int i = 0; i < n; i++) {
        int m = neighbours_of(w, g, &t, i, seen, near_by), rows = cone_rows(&cones[i]), wide = 0;
        start[i] = (int)col.n;
        first[i] = val.n;
        for (int j = 0; j < m; j++)
            for (int b = 0; b < cone_rows(&cones[near_by[j]]); b++, wide++)
                *vec_push(a, &col) = cones[near_by[j]].row + b;
        for (int k = 0; k < rows * wide; k++)
            *vec_push(a, &val) = 0;
        for (int s = 0; s < rows; s++)
            block_row(w, g, i, s, x, near_by, m, val.at + first[i] + (size_t)s * wide);
    }
    start[n] = (int)col.n;
    problem_set_rows(p, start, col.at, first, val.at);
}

/* The best initial reactions: the current ones, those before sweeps that led away from the solution, or none.
 */
static void begin_best(contact_problem *p, const double *before, arena *scratch)
{
    size_t size = (size_t)p->m * sizeof *p->r;
    const double *none = arena_array(scratch, double, p->m), *other[] = { before, none };
    double *best = arena_array(scratch, double, p->m), least = problem_measure(p, NULL, scratch);
    memcpy(best, p->r, size);
    for (int k = 0; k < 2; k++) {
        memcpy(p->r, other[k], size);
        double e = problem_measure(p, NULL, scratch);
        if (e < least) {
            least = e;
            memcpy(best, p->r, size);
        }
    }
    memcpy(p->r, best, size);
}

/* The residual that is accepted for a group. */
static double enough_of(const impulses *w, group g)
{
    if (g.n == w->act.n && !memchr(w->act.loose, true, (size_t)g.n))
        return w->tol;
    for (int i = 0; i < g.n; i++)
        if (w->act.loose[g.at[i]])
            return larger(w->tol, w->enough);
    return w->tol;
}

/* A residual that ends the search for a better one, after sweeps and Newton's steps were tried; 0: none. */
static double search_end(const impulses *w, group g)
{
    double enough = enough_of(w, g);
    return enough > w->tol ? 0.3 * enough : 0;
}

/* The problem of a group without W, from the rates without reactions: if sweeps went astray, reactions may be
   so large that sums with them contain no digits of the rates. */
static contact_problem group_problem(impulses *w, group g, const group_start *from)
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
    contact_problem p = { .n = n,
                          .m = m,
                          .cone = cones,
                          .b = b,
                          .r = r,
                          .effort = w->effort,
                          .list = l,
                          .listed = g.at,
                          .fine = reaction_fine(w->tol),
                          .enough = search_end(w, g) };
    const double *rates = from->rates;
    for (int i = 0; i < n; i++) {
        int c = g.at[i], wide = l->dof_at[c + 1] - l->dof_at[c], row = l->cone[c].row;
        for (int a = 0; a < cone_rows(&cones[i]); a++) {
            r[cones[i].row + a] = l->r[row + a];
            b[cones[i].row + a] = vec_dot(l->J + l->J_at[c] + a * wide, rates, wide) + l->b[row + a];
        }
        rates += wide;
    }
    return p;
}

/* Stores its solution. */
static double group_take(impulses *w, group g, const group_start *from, const contact_problem *p, int *worst)
{
    contact_list *l = &w->act;
    for (int i = 0; i < g.n; i++)
        for (int a = 0, row = l->cone[g.at[i]].row; a < list_rows(l, g.at[i]); a++)
            l->r[row + a] = p->r[p->cone[i].row + a];
    push_from(w, g, from);
    *worst = g.at[p->worst];
    w->iterations += p->iterations;
    name_solver(w, BY_PILE);
    return p->residual;
}

static double solve_sparse(impulses *w, group g, const group_start *from, int *worst)
{
    contact_problem p = group_problem(w, g, from);
    sparse_put(w, g, &p, p.cone);
    begin_best(&p, from->r, w->scratch);
    pile_solve(&p, w->scratch, w->tol);
    return group_take(w, g, from, &p, worst);
}

/* A group at rest starts close to its solution; if this fails, nothing has changed. */
static double solve_rates(impulses *w, group g, const group_start *from, int *worst)
{
    int rows = 0;
    for (int i = 0; i < g.n; i++)
        rows += list_rows(&w->act, g.at[i]);
    if (!rates_worth(rows, number_dofs(w, g)))
        return INFINITY;
    contact_problem p = group_problem(w, g, from);
    return newton_rates(&p, w->scratch, w->tol) ? group_take(w, g, from, &p, worst) : INFINITY;
}

/* ---- sweeps ---- */
/* Rows of the contacts of a group, and their dofs. */
static sweep_part group_rows(impulses *w, group g)
{
    const contact_list *l = &w->act;
    int n = 0;
    for (int i = 0; i < g.n; i++)
        n += list_rows(l, g.at[i]);
    int *at = arena_array(w->scratch, int, n);
    n = 0;
    for (int i = 0; i < g.n; i++)
        for (int a = 0; a < list_rows(l, g.at[i]); a++)
            at[n++] = l->cone[g.at[i]].row + a;
    return (sweep_part){ l->r, at, n };
}

static sweep_part group_dofs(impulses *w, group g)
{
    const contact_list *l = &w->act;
    int all = 0, mark = ++w->mark, n = 0;
    for (int i = 0; i < g.n; i++)
        all += l->dof_at[g.at[i] + 1] - l->dof_at[g.at[i]];
    int *at = arena_array(w->scratch, int, all < w->n ? all : w->n);
    for (int i = 0; i < g.n; i++)
        for (int k = l->dof_at[g.at[i]]; k < l->dof_at[g.at[i] + 1]; k++)
            if (w->marked[l->dof[k]] != mark) {
                w->marked[l->dof[k]] = mark;
                at[n++] = l->dof[k];
            }
    return (sweep_part){ w->v1, at, n };
}

typedef struct {
    impulses *w;
    group g;
    int *worst;
} list_sweeps;

static double list_pass(void *of, bool down, double *size)
{
    list_sweeps *s = of;
    arena_tick(s->w->scratch, 128 * (int64_t)s->g.n);
    s->w->swept += s->g.n;
    return sweep(s->w, s->g, down, size, s->worst);
}

/* Returns the residual. */
static double solve_sweeps(impulses *w, group g, int most, bool plain, int *worst)
{
    int done;
    double residual;
    name_solver(w, BY_SWEEPS);
    if (relax_fits(w, g.at, g.n))
        return relax_solve(w, g.at, g.n, most, plain, worst);
    if (balls_solve(w, g.at, g.n, most, plain, worst, &residual))
        return residual;
    list_sweeps l = { w, g, worst };
    sweeper s = {
        .of = &l, .pass = list_pass, .part = { group_rows(w, g), group_dofs(w, g) }, .eager = true
    };
    double res = sweeps_run(&s, most, plain, w->tol, w->scratch, &done);
    w->iterations += 2 * done;
    return res;
}

static double solve_alone(impulses *w, group g, int *worst)
{
    contact_list *l = &w->act;
    int c = *worst = g.at[0], m = list_rows(l, c), row = l->cone[c].row, top = cone_normal(&l->cone[c]);
    const double *A = l->A + l->A_at[c];
    double work[LOCAL_WORK], size = 0, b[MAX_ROWS] = { 0 }, u[MAX_ROWS] = { 0 }, at = 0, e;
    memset(l->r + row, 0, (size_t)m * sizeof *l->r);
    for (int a = 0; a < m; a++)
        b[a] = list_rate(l, c, a, w->v1) + l->b[row + a];
    relax(w, c, &size, work);
    name_solver(w, BY_FORM);
    if (m == top)
        return 0;
    for (int a = 0; a < m; a++) {
        u[a] = b[a] + vec_dot(A + a * m, l->r + row, m);
        if (a >= top)
            at = larger(at, A[a * m + a]);
    }
    e = cone_defect(&l->cone[c], l->r + row, u, b, A[0], at, &size);
    return e == 0 ? 0 : e / size;
}

static bool is_chain(const impulses *w, const island *i, group g)
{
    bool rough = i->band && band_rough(i->band);
    for (int k = 0; k < g.n && !i->band && !rough; k++)
        rough = w->act.cone[g.at[k]].d > 0;
    return i->kb >= 0 && i->kb <= (rough ? BAND_ROUGH : BAND_MOST);
}

/* Sweeps that start from much too large reactions change them by small fractions; with a loose tolerance this
   would count as a solution, and move bodies wrongly. A solution satisfies r.u <= 0, because contacts take
   energy, so r.W r <= -r.b; half of r.W r exceeds the r.u that a loose tolerance permits. Given directions of
   slip may add energy: there, the error of W r that the tolerance permits must be less than b. */
static bool beyond_energy(const impulses *w, group g, const group_start *from)
{
    const contact_list *l = &w->act;
    const double *rate = from->rates;
    double given = 0, size = 0, pushed = 0;
    bool directed = false;
    for (int i = 0; i < g.n; i++) {
        int c = g.at[i], wide = l->dof_at[c + 1] - l->dof_at[c], row = l->cone[c].row;
        directed |= l->cone[c].dir != NULL;
        for (int a = 0; a < list_rows(l, c); a++) {
            double free = vec_dot(l->J + l->J_at[c] + a * wide, rate, wide), r = l->r[row + a];
            given += r * (free + l->b[row + a]);
            size += fabs(r * (free + l->b[row + a]));
            pushed += r * (list_rate(l, c, a, w->v1) - free);
        }
        rate += wide;
    }
    return pushed > 0 && !(directed ? w->tol * pushed <= size : given + pushed <= 0.5 * pushed);
}

/* Restarts without initial reactions. */
static void begin_anew(impulses *w, group g, const group_start *from)
{
    double *r = from->r;
    for (int i = 0; i < g.n; i++)
        for (int a = 0, row = w->act.cone[g.at[i]].row; a < list_rows(&w->act, g.at[i]); a++)
            *r++ = w->act.r[row + a] = 0;
    push_from(w, g, from);
}

static double solve_step(impulses *w, group g, int by, const group_start *from, int *worst)
{
    enum { SWEEPS = 1000 };
    if (by == BY_ISLANDS)
        return solve_sparse(w, g, from, worst);
    if (by == BY_LIST_RATES)
        return solve_rates(w, g, from, worst);
    bool plain = by == BY_LIST_PLAIN;
    double res = solve_sweeps(w, g, SWEEPS, plain, worst);
    if (!(res <= w->tol) || !beyond_energy(w, g, from))
        return res;
    begin_anew(w, g, from);
    res = solve_sweeps(w, g, SWEEPS, plain, worst);
    return beyond_energy(w, g, from) ? INFINITY : res;
}

/* One step of the plan; its temporary memory is released. */
static double try_step(impulses *w, group g, int by, const group_start *from, int *worst)
{
    arena_pos mark = arena_mark(w->scratch);
    double res = solve_step(w, g, by, from, worst);
    arena_release(w->scratch, mark);
    return res;
}

static double solve_island(impulses *w, island *i, int *worst)
{
    group g = { w->isl.at + i->first, i->n };
    double res = INFINITY;
    group_start from = { 0 }; /* valid when rates include the current reactions */
    if (g.n == 1)
        return solve_alone(w, g, worst);
    const solver_plan *plan = w->tol >= ISLAND_LOOSE ? &plan_group_loose : &plan_group_tight;
    double enough = larger(w->tol, search_end(w, g));
    for (int k = 0; k < plan->n && !(res <= (from.rates ? enough : w->tol)); k++) {
        if (plan_ends(&plan->step[k], w->effort, g.n, res))
            break;
        if (plan->step[k].by == SOLVER_BAND) {
            res = is_chain(w, i, g) ? chain_solve(w, i, g, worst) : res;
            continue;
        }
        if (!from.rates) {
            from = start_of(w, g);
            push_from(w, g, &from);
        }
        res = try_step(w, g, plan->step[k].by, &from, worst);
    }
    return res;
}

bool impulses_solve(impulses *w)
{
    enum { FEW = 64 }; /* contacts whose order is always searched; more with tight tolerances */
    w->residual = 0;
    w->worst = 0;
    w->taken = true;
    w->iterations = w->swept = 0;
    w->by = -1;
    w->solver = NULL;
    if (w->act.n == 0)
        return true;
    arena_pos mark = arena_mark(w->scratch);
    if (!w->fixed)
        islands_find(&w->isl, &w->act, w->n, w->tol < ISLAND_TIGHT || w->act.n <= FEW, w->a, w->scratch);
    for (int i = 0; i < w->isl.n; i++) {
        int worst = 0;
        island *of = &w->isl.of[i];
        double res = solve_island(w, of, &worst),
               enough = enough_of(w, (group){ w->isl.at + of->first, of->n });
        if (!(res <= w->residual)) {
            w->residual = res;
            w->worst = worst;
        }
        w->taken = w->taken && res <= enough;
        if (!w->taken && w->effort != EFFORT_ALL)
            break;
    }
    arena_release(w->scratch, mark);
    return w->residual <= w->tol;
}
