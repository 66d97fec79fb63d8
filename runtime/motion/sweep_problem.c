/* sweep_problem: the contact problem at hand: its cones, matrix and solution, what counts as zero, and how a
 * run fails. */
#include <math.h>
#include <stdio.h>
#include "sweep.h"

/* ---- failing ---- */
bool sweep_fail(sweep *w, span at, const char *message)
{
    if (w->r->status != RUN_FAILED) {
        w->r->status = RUN_FAILED;
        w->r->message = message;
        w->r->where = at;
    }
    return false;
}

/* a failure that another way around was found for */
void sweep_forget(sweep *w, double residual)
{
    w->r->status = RUN_OK;
    w->r->message = NULL;
    w->r->where = SPAN_NONE;
    w->r->residual = residual;
}

const char *sweep_number(sweep *w, double x)
{
    text s = { .a = w->r->a };
    text_num(&s, x);
    return s.at;
}

static bool fail_contact(sweep *w, int i, double t)
{
    const contact *c = w->act[i]->c;
    char residual[32];
    snprintf(residual, sizeof residual, "%.2g", w->pr.residual);
    w->r->residual = fmax(w->r->residual, w->pr.residual);
    if (w->o->keep_going && !w->trial)
        return true;
    return sweep_fail(
        w, c->fam->f->at,
        arena_printf(
            w->r->a,
            "the contact problem was not solved at t = %s: constraint '%s', residual %s (tolerance %s)",
            sweep_number(w, t), contact_name(c, w->r->a), residual, sweep_number(w, w->tol)));
}

bool sweep_factor(sweep *w, const double *M, double t)
{
    int bad;
    if (system_factor(w->s, M, &bad))
        return true;
    return sweep_fail(w, mass_where(w->p, bad),
                      arena_printf(w->r->a,
                                   "the mass matrix is not positive definite at t = %s, in the row of '%s'",
                                   sweep_number(w, t), dof_name(w->p, bad, w->r->a)));
}

/* ---- sizes and tolerances ---- */

void sweep_sizes(sweep *w)
{
    for (int i = 0; i < w->n; i++) {
        double v = fabs(w->v[i]), q = larger(fabs(w->q[i]), w->h * v);
        if (v > w->vmax[i]) {
            w->vmax[i] = v;
            w->grown = true;
        }
        if (q > w->qmax[i]) {
            w->qmax[i] = q;
            w->grown = true;
        }
    }
}

void sweep_tolerances(sweep *w, track *k)
{
    const contact *c = k->c;
    k->tol_gap = 1e-12 * weighted(c, c->H, w->qmax);
    k->tol_u = 1e-12 * (weighted(c, c->H, w->vmax) + fabs(c->ht));
    k->tol_slip = 0;
    for (int i = 0; i < c->d; i++)
        k->tol_slip += 1e-12 * (weighted(c, c->S + (size_t)i * c->n, w->vmax) + fabs(c->s0[i]));
}

/* ---- the problem at hand ---- */
/* Coefficient and bound in the units of the problem: shocks know no bounded forces. */
void sweep_law(void *ud, int i, double speed, double *mu, double *radius)
{
    sweep *w = ud;
    contact *c = w->act[i]->c;
    const contact_family *f = c->fam->f;
    double k = c->mu;
    if (f->mu_of_speed) {
        k = contact_mu(w->s, c, speed);
        if (w->end < 1)
            k = (1 - w->end) * w->act[i]->mu0 + w->end * k;
    }
    bool tresca = f->friction == FRICTION_TRESCA, given = f->relation == REL_CLOSED;
    *mu = tresca || given ? 0 : k;
    *radius = tresca ? k * w->step : given ? k * fabs(c->normal) * w->step : k * w->act[i]->base;
}

void sweep_cone(sweep *w, int i, int *row)
{
    track *k = w->act[i];
    const contact_family *f = k->c->fam->f;
    cone *c = &w->cone[i];
    *c = (cone){ .kind = f->relation == REL_GAP         ? CONE_UNILATERAL
                         : f->relation == REL_BILATERAL ? CONE_BILATERAL
                                                        : CONE_GIVEN };
    c->d = k->c->d;
    c->row = k->row = *row;
    c->of_speed = f->mu_of_speed && c->d;
    c->speed = k->speed;
    if (c->d && !c->of_speed)
        sweep_law(w, i, 0, &c->mu, &c->radius);
    *row += cone_rows(c);
}

/* ---- what reactions do to the rates ---- */
static const column *column_of(const track *k, bool mass)
{
    return mass ? &k->Gm : &k->G;
}

/* S NULL: of the normal row alone */
void sweep_columns(sweep *w, const track *k, const double *H, const double *S, const factor *f, column *G)
{
    const contact *c = k->c;
    int m = rows_of(k);
    G->local = c->dof && f->kind == FACTOR_DIAGONAL;
    G->n = G->local ? c->n : w->n;
    size_t need = (size_t)(1 + c->fam->d) * (size_t)G->n;
    if (need > G->room) {
        G->a = arena_array(w->a, double, need);
        G->room = need;
    }
    for (int j = 0; j < (S ? m : 1); j++) {
        const double *row = row_of(k, H, S, j);
        double *g = G->a + (size_t)j * (size_t)G->n;
        if (G->local) {
            for (int i = 0; i < c->n; i++)
                g[i] = f->a[c->dof[i]] * row[i];
            continue;
        }
        if (!c->dof) {
            factor_solve(f, row, g);
            continue;
        }
        for (int i = 0; i < c->n; i++)
            w->spread[c->dof[i]] += row[i];
        factor_solve(f, w->spread, g);
        for (int i = 0; i < c->n; i++)
            w->spread[c->dof[i]] = 0;
    }
}

/* column b of contact l with an entry for every dof; spread is cleared by column_done */
static const double *column_spread(sweep *w, const track *l, const column *G, int b)
{
    const double *g = G->a + (size_t)b * (size_t)G->n;
    if (!G->local)
        return g;
    for (int i = 0; i < G->n; i++)
        w->spread[l->c->dof[i]] += g[i];
    return w->spread;
}

static void column_done(sweep *w, const track *l, const column *G)
{
    for (int i = 0; G->local && i < G->n; i++)
        w->spread[l->c->dof[i]] = 0;
}

/* W = [H; S] G */
void sweep_matrix(sweep *w, bool mass)
{
    int m = w->pr.m;
    for (int j = 0; j < w->nact; j++) {
        const track *l = w->act[j];
        const column *G = column_of(l, mass);
        for (int b = 0; b < rows_of(l); b++) {
            const double *g = column_spread(w, l, G, b);
            for (int i = 0; i < w->nact; i++) {
                const track *k = w->act[i];
                for (int a = 0; a < rows_of(k); a++)
                    w->W[(size_t)(k->row + a) * (size_t)m + (size_t)(l->row + b)] = contact_rate(
                        k->c, row_of(k, k->c->H, k->c->S, a), g);
            }
            column_done(w, l, G);
        }
    }
}

void sweep_normal_matrix(sweep *w, track *const *who, int n, double *A)
{
    for (int j = 0; j < n; j++) {
        const double *g = column_spread(w, who[j], &who[j]->Gm, 0);
        for (int i = 0; i < n; i++)
            A[(size_t)i * (size_t)n + (size_t)j] = contact_rate(who[i]->c, who[i]->c->H, g);
        column_done(w, who[j], &who[j]->Gm);
    }
}

void sweep_move(const track *k, double l, double *x)
{
    for (int i = 0; i < k->Gm.n; i++)
        x[k->Gm.local ? k->c->dof[i] : i] += l * k->Gm.a[i];
}

void sweep_room(sweep *w, int contacts, int rows)
{
    int d = 0;
    if (rows <= w->rows_room && contacts <= w->contacts_room)
        return;
    for (size_t i = 0; i < w->p->ncontact; i++)
        if (w->s->family[i].d > d)
            d = w->s->family[i].d;
    w->rows_room = rows + rows / 2 + 4;
    w->contacts_room = contacts + contacts / 2 + 4;
    size_t m = (size_t)w->rows_room, c = (size_t)w->contacts_room;
    w->W = arena_array(w->a, double, m *m);
    w->b = arena_array(w->a, double, m);
    w->rr = arena_array(w->a, double, m);
    w->u = arena_array(w->a, double, m);
    w->dir = arena_array(w->a, double, m);
    w->more = arena_array(w->a, double, c *c + 2 * c);
    w->work = contact_work_new(w->a, w->contacts_room, w->rows_room, d);
}

void sweep_cones(sweep *w)
{
    int row = 0;
    for (int i = 0; i < w->nact; i++)
        sweep_cone(w, i, &row);
    sweep_room(w, w->nact, row);
    w->pr = (contact_problem){ .n = w->nact,
                               .m = row,
                               .cone = w->cone,
                               .W = w->W,
                               .b = w->b,
                               .r = w->rr,
                               .u = w->u,
                               .law = sweep_law,
                               .ud = w };
}

/* Rates below their tolerance count as 0: what that is as a reaction. */
static double rounding(const sweep *w)
{
    double most = 0;
    for (int i = 0; i < w->nact; i++) {
        const track *k = w->act[i];
        double a = w->W[(size_t)k->row * w->pr.m + k->row];
        if (k->normal && a > 0)
            most = larger(most, k->tol_u / a);
    }
    return 0.5 * most;
}

bool sweep_solve(sweep *w, double t)
{
    if (w->step != 1)
        w->pr.least = rounding(w) / w->tol;
    bool ok = w->stiffness == 0 ? contact_solve(&w->pr, w->work, w->tol)
                                : contact_uzawa(&w->pr, w->work, w->tol, w->stiffness);
    results *r = w->r;
    r->solver_iterations += w->pr.sweeps;
    r->branch_choices += w->pr.choices;
    if (w->pr.n > 1 || !r->solver)
        r->solver = w->pr.solver;
    if (!ok)
        return fail_contact(w, w->pr.worst, t);
    if (w->pr.residual > r->residual)
        r->residual = w->pr.residual;
    return true;
}

/* what cancels to rounding is 0, so that stick is exact */
static inline double cancelled(double x, double change, double size)
{
    double sum = x + change;
    return change != 0 && fabs(sum) <= 1.5e-14 * size ? 0 : sum;
}

/* x += G r of one contact */
static void react_alone(const track *l, const column *G, const double *r, double *x)
{
    for (int k = 0, m = rows_of(l); k < G->n; k++) {
        double *to = &x[G->local ? l->c->dof[k] : k], size = fabs(*to), change = 0;
        for (int b = 0; b < m; b++) {
            double d = G->a[(size_t)b * (size_t)G->n + (size_t)k] * r[b];
            change += d;
            size += fabs(d);
        }
        *to = cancelled(*to, change, size);
    }
}

void sweep_react(const sweep *w, double *x, bool mass)
{
    if (w->nact == 1) {
        const track *l = w->act[0];
        react_alone(l, column_of(l, mass), w->rr + l->row, x);
        return;
    }
    double *change = w->spread, *size = w->sizes;
    for (int k = 0; k < w->n; k++)
        size[k] = fabs(x[k]);
    for (int i = 0; i < w->nact; i++) {
        const track *l = w->act[i];
        const column *G = column_of(l, mass);
        const double *r = w->rr + l->row;
        for (int b = 0, m = rows_of(l); b < m; b++) {
            const double *g = G->a + (size_t)b * (size_t)G->n;
            for (int k = 0; k < G->n; k++) {
                int to = G->local ? l->c->dof[k] : k;
                double d = g[k] * r[b];
                change[to] += d;
                size[to] += fabs(d);
            }
        }
    }
    for (int k = 0; k < w->n; k++) {
        x[k] = cancelled(x[k], change[k], size[k]);
        change[k] = 0;
    }
}

/* the block of a lone contact, kept while nothing in it changes */
double *sweep_lone_matrix(sweep *w, track *k, bool mass)
{
    const contact *c = k->c;
    bool fixed = k->rows_fixed && (!mass || w->s->mass_constant);
    int64_t *stamp = mass ? &k->stamp_am : &k->stamp_a, now = mass ? w->stamp_m : w->stamp;
    double *A = mass ? k->Am : k->A;
    if (fixed && *stamp == now)
        return A;
    const column *G = column_of(k, mass);
    int m = rows_of(k);
    for (int a = 0; a < m; a++)
        for (int b = 0; b < m; b++) {
            const double *row = row_of(k, c->H, c->S, a), *g = G->a + (size_t)b * (size_t)G->n;
            A[a * m + b] = G->local ? vec_dot(row, g, G->n) : contact_rate(c, row, g);
        }
    *stamp = fixed ? now : -1;
    return A;
}

/* the problem of a lone contact in closed form; false: it has to go the long way */
bool sweep_solve_alone(sweep *w, bool mass, const cone *c, double *x)
{
    const track *k = w->act[0];
    const double *A = mass ? k->Am : k->A;
    if (!w->r->solver)
        w->r->solver = "closed form";
    if (cone_normal(c) && !(A[0] > 0))
        return false;
    if (!cone_solve(c, A, cone_rows(c), w->b, w->rr, w->local))
        return false;
    sweep_react(w, x, mass);
    return true;
}
