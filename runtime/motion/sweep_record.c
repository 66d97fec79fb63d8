/* sweep_record: copies the current contact problem for callers who collect problems (io/problems.h). W is
   computed here from rows and masses, whatever method solves the problem. */
#include <string.h>
#include "io/problems.h"
#include "sweep.h"

/* The entries of contact i in W: columns, and for each of them one entry per row. */
typedef struct recorded_rows {
    vec(int) col;
    vec(double) entry;
} recorded_rows;

/* Contacts of the problem by dof; those with entries at all dofs are in `whole`. */
typedef struct recorded_dofs {
    int *from, *contact;
    int *whole, nwhole;
} recorded_dofs;

static recorded_dofs dofs_find(const sweep *w, arena *a)
{
    recorded_dofs d = { .from = arena_array(a, int, w->n + 2), .whole = arena_array(a, int, w->hand.nact) };
    for (int i = 0; i < w->hand.nact; i++) {
        const contact *c = w->hand.act[i]->c;
        if (!c->dof)
            d.whole[d.nwhole++] = i;
        for (int k = 0; c->dof && k < c->n; k++)
            d.from[c->dof[k] + 2]++;
    }
    for (int k = 2; k < w->n + 2; k++)
        d.from[k] += d.from[k - 1];
    d.contact = arena_array(a, int, d.from[w->n + 1] + 1);
    for (int i = 0; i < w->hand.nact; i++) {
        const contact *c = w->hand.act[i]->c;
        for (int k = 0; c->dof && k < c->n; k++)
            d.contact[d.from[c->dof[k] + 1]++] = i;
    }
    return d;
}

/* Adds the entries of contact i in a column of W; g is the effect of that column's reaction on the rates. */
static void rows_add(const sweep *w, recorded_rows *to, int i, int number, const double *g, arena *a)
{
    const contact_state *k = w->hand.act[i];
    *vec_push(a, &to[i].col) = number;
    for (int j = 0; j < rows_of(k); j++)
        *vec_push(a, &to[i].entry) = contact_rate(k->c, row_of(k, k->c->H, k->c->S, j), g);
}

/* Adds a column for the contacts at its dofs, each once (`seen` contains the number of the last column). */
static void column_add(const sweep *w, const recorded_dofs *d, const contact_state *l, bool local, int number,
                       const double *g, recorded_rows *to, int *seen, arena *a)
{
    if (!local) {
        for (int i = 0; i < w->hand.nact; i++)
            rows_add(w, to, i, number, g, a);
        return;
    }
    for (int i = 0; i < d->nwhole; i++)
        rows_add(w, to, d->whole[i], number, g, a);
    for (int k = 0; k < l->c->n; k++)
        for (int at = d->from[l->c->dof[k]]; at < d->from[l->c->dof[k] + 1]; at++) {
            int i = d->contact[at];
            if (seen[i] == number + 1)
                continue;
            seen[i] = number + 1;
            rows_add(w, to, i, number, g, a);
        }
}

static recorded_rows *rows_make(sweep *w, bool mass, arena *a)
{
    recorded_rows *to = arena_array(a, recorded_rows, w->hand.nact);
    int *seen = arena_array(a, int, w->hand.nact);
    recorded_dofs d = dofs_find(w, a);
    for (int i = 0; i < w->hand.nact; i++) {
        const contact_state *l = w->hand.act[i];
        column *G = &w->hand.recorded;
        bool mean = !mass && along_mean(w, l);
        sweep_columns(w, l, mean ? l->Hm : l->c->H, mean ? l->Sm : l->c->S,
                      mass ? &w->s->minv : w->matrix.dinv, G);
        for (int b = 0; b < rows_of(l); b++) {
            const double *g = sweep_column_spread(w, l, G, b);
            column_add(w, &d, l, G->local, w->hand.cone[i].row + b, g, to, seen, a);
            sweep_column_done(w, l, G);
        }
    }
    return to;
}

/* Stores entries, which were computed column by column, row by row. */
static void rows_store(contact_problem *p, const recorded_rows *rows, arena *a)
{
    int *start = arena_array(a, int, p->n + 1);
    size_t *first = arena_array(a, size_t, p->n + 1), all = 0;
    for (int c = 0; c < p->n; c++) {
        start[c + 1] = start[c] + (int)rows[c].col.n;
        first[c] = all;
        all += rows[c].entry.n;
    }
    int *col = arena_array(a, int, start[p->n] + 1);
    double *val = arena_array(a, double, all + 1);
    for (int c = 0; c < p->n; c++) {
        size_t width = rows[c].col.n, m = (size_t)cone_rows(&p->cone[c]);
        for (size_t k = 0; k < width; k++) {
            col[(size_t)start[c] + k] = rows[c].col.at[k];
            for (size_t j = 0; j < m; j++)
                val[first[c] + j * width + k] = rows[c].entry.at[k * m + j];
        }
    }
    problem_set_rows(p, start, col, first, val);
}

/* Reactions below this are rounding: they correspond to rates that count as 0. */
static double rounding(const sweep *w, const contact_problem *p)
{
    double most = 0;
    for (int i = 0; i < p->n; i++) {
        const contact_state *k = w->hand.act[i];
        double own = k->normal ? problem_entry(p, i, 0, p->cone[i].row) : 0;
        if (own > 0)
            most = larger(most, w->contacts.table.tol_u[k->at] / own);
    }
    return 0.5 * most;
}

step_problem *sweep_record(sweep *w, bool mass, const double *x)
{
    bool forces = mass && w->hand.step != 0; /* accelerations at an instant, with the same law */
    if (!w->hand.watch || forces || w->hand.nact == 0)
        return NULL;
    arena *a = w->scratch;
    step_problem *s = arena_make(a, step_problem);
    contact_problem *p = &s->p;
    for (int i = 0; i < w->hand.nact; i++)
        p->m += cone_rows(&w->hand.cone[i]);
    p->n = w->hand.nact;
    p->cone = arena_array(a, cone, p->n);
    p->b = arena_array(a, double, p->m);
    p->r = arena_array(a, double, p->m);
    memcpy(p->cone, w->hand.cone, (size_t)p->n * sizeof *p->cone);
    vec_copy(p->r, w->hand.rr, p->m);
    for (int i = 0; i < p->n; i++) {
        const contact_state *k = w->hand.act[i];
        for (int j = 0, row = p->cone[i].row; j < rows_of(k); j++)
            p->b[row + j] = contact_rate(k->c, row_of(k, k->c->H, k->c->S, j), x) + w->hand.off[row + j];
    }
    rows_store(p, rows_make(w, mass, a), a);
    p->least = rounding(w, p) / w->tol;
    s->impact = mass;
    s->h = w->hand.step;
    s->t = mass ? w->t : w->t1;
    s->tolerance = w->tol;
    return s;
}

/* Laws that depend on the speed, evaluated at the solution. */
static void laws_end(sweep *w, step_problem *s, const double *u)
{
    for (int i = 0; i < s->p.n; i++) {
        cone *c = &s->p.cone[i];
        const double *ut = u + c->row + cone_normal(c);
        if (c->of_speed && !c->dir)
            sweep_law(w, i, sqrt(vec_dot(ut, ut, c->d)), &c->mu, &c->radius);
    }
}

void sweep_recorded(sweep *w, step_problem *s, bool solved, const char *solver)
{
    arena *a = w->scratch;
    contact_problem at = s->p;
    double *u = arena_array(a, double, s->p.m);
    at.r = w->hand.rr;
    at.fine = reaction_fine(w->tol);
    problem_velocities(&at, u);
    laws_end(w, s, u);
    s->solution = w->hand.rr;
    s->solved = solved;
    s->residual = problem_measure(&at, NULL, a);
    s->solver = solver;
    w->hand.watch->see(w->hand.watch->ud, s, a);
}
