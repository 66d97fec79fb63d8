/* sweep_problem: the contact problem at hand: its cones, matrix and solution, what counts as zero, and how a
 * run fails. */
#include <math.h>
#include <stdio.h>
#include "sweep.h"

/* ---- failing ---- */
/* a failure that another way around was found for */
void sweep_forget(sweep *w, double residual)
{
    results_unfail(w->r);
    w->r->residual = residual;
}

const char *sweep_number(sweep *w, double x)
{
    text s = { .a = w->r->a };
    text_num(&s, x);
    return s.at;
}

bool sweep_fail_contact(sweep *w, int i, double t)
{
    const contact *c = w->act[i]->c;
    char residual[32];
    snprintf(residual, sizeof residual, "%.2g", w->pr.residual);
    w->unsolved = true;
    w->r->residual = fmax(w->r->residual, w->pr.residual);
    if (w->o->keep_going && !w->trial)
        return true;
    return results_fail(
        w->r, c->fam->f->at,
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
    return results_fail(w->r, mass_where(w->p, bad),
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
    /* members of a family are of one kind: they share what overlaps are measured by */
    double *length = &w->lengths[c->fam - w->s->family];
    *length = larger(*length, weighted(c, c->H, w->qmax));
    k->length = w->near.reach > 0 ? w->near.reach : *length;
    k->tol_gap = gap_tolerance(c, w->qmax);
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

void sweep_room(sweep *w, int contacts, int rows)
{
    if (rows <= w->rows_room && contacts <= w->contacts_room)
        return;
    w->rows_room = rows + rows / 2 + 4;
    w->contacts_room = contacts + contacts / 2 + 4;
    size_t m = (size_t)w->rows_room;
    w->b = arena_array(w->a, double, m);
    w->off = arena_array(w->a, double, m);
    w->kept_r = arena_array(w->a, double, m);
    w->rr = arena_array(w->a, double, m);
    w->u = arena_array(w->a, double, m);
    w->dir = arena_array(w->a, double, m);
}

void sweep_cones(sweep *w)
{
    int row = 0;
    for (int i = 0; i < w->nact; i++)
        sweep_cone(w, i, &row);
    sweep_room(w, w->nact, row);
    w->pr = (contact_problem){
        .n = w->nact, .m = row, .cone = w->cone, .b = w->b, .r = w->rr, .u = w->u, .law = sweep_law, .ud = w
    };
}
