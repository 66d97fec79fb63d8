/* sweep_shock: what happens at an instant: impact laws, contacts that join, and the accelerations that
 * Gauss's principle gives. */
#include <math.h>
#include <string.h>
#include "sweep.h"

/* ---- shocks ---- */
void sweep_impact(sweep *w, const track *k, double pre, double post, double impulse)
{
    *vec_push(w->r->a, &k->out->impacts) = (impact){ w->t, fmin(pre, 0), larger(post, 0), impulse,
                                                     (int32_t)k->c->member };
}

/* rows and laws of the contacts at hand, now */
static void rows_now(sweep *w)
{
    system_at(w->s, w->t, w->q, w->v);
    for (int i = 0; i < w->nact; i++) {
        track *k = w->act[i];
        contact *c = k->c;
        if (!k->offset_fixed)
            contact_rows(w->s, c, w->M, false);
        if (!k->still)
            contact_laws(w->s, c, false);
    }
}

/* one phase: e is the share of the rate before that is asked back (Newton), 0 for compression and restitution
 * of Poisson's law */
static bool shock_phase(sweep *w, bool newton)
{
    for (int i = 0; i < w->nact; i++) {
        const track *k = w->act[i];
        const contact *c = k->c;
        int a = 0, has_normal = k->normal;
        double e = newton && c->fam->f->impact == IMPACT_NEWTON && k->relation == REL_GAP ? k->e : 0;
        if (has_normal)
            w->off[k->row + a++] = c->ht + (k->un < -k->tol_u ? e * k->un : 0);
        for (int j = 0; j < c->d; j++)
            w->off[k->row + a++] = c->s0[j];
        for (int j = 0; j < a; j++)
            w->rr[k->row + j] = 0;
    }
    if (!sweep_solve(w, true, w->v, w->t))
        return false;
    for (int i = 0; i < w->nact; i++)
        for (int j = 0; j < rows_of(w->act[i]); j++)
            w->act[i]->shock[j] += w->rr[w->act[i]->row + j];
    return true;
}

/* Restitution: the share e of the impulse of compression is given back, friction may use it too. */
static bool shock_poisson(sweep *w)
{
    bool any = false;
    for (int i = 0; i < w->nact; i++) {
        track *k = w->act[i];
        k->base = 0;
        if (k->c->fam->f->impact != IMPACT_POISSON || k->relation != REL_GAP || !(k->un < -k->tol_u))
            continue;
        k->base = k->e * k->shock[0];
        any |= k->base > 0;
    }
    if (!any)
        return true;
    memset(w->rr, 0, (size_t)w->pr.m * sizeof *w->rr);
    for (int i = 0; i < w->nact; i++)
        if (w->act[i]->base > 0) {
            w->rr[w->act[i]->row] = w->act[i]->base;
            sweep_columns_put(w, w->act[i], true);
            sweep_move(w->act[i], w->act[i]->base, w->v);
        }
    sweep_cones(w);
    bool ok = shock_phase(w, true);
    for (int i = 0; i < w->nact; i++) {
        w->act[i]->shock[0] += w->act[i]->base;
        w->act[i]->base = 0;
    }
    return ok;
}

/* Impulses of this shock: work by the mean of the rates before and after (x1 holds q' before). */
static void shock_account(sweep *w)
{
    int n = w->n;
    double *mean = w->x2, most = 0;
    for (int i = 0; i < n; i++)
        mean[i] = 0.5 * (w->x1[i] + w->v[i]);
    for (int i = 0; i < w->nact; i++)
        most = larger(most, fabs(w->act[i]->shock[0]));
    for (int i = 0; i < w->nact; i++) {
        track *k = w->act[i];
        contact *c = k->c;
        int a = k->normal;
        for (int j = 0; j < rows_of(k); j++) {
            double still = j < a ? c->ht : c->s0[j - a],
                   rate = contact_rate(c, row_of(k, c->H, c->S, j), mean);
            w->books->dissipated -= k->shock[j] * (rate + still);
            w->books->work -= k->shock[j] * still;
        }
        if (k->relation != REL_GAP)
            continue;
        double post = gap_rate(k, w->v);
        if (k->shock[0] > 1e-12 * most) {
            sweep_impact(w, k, k->un, post, k->shock[0]);
            busy(w, k);
            w->again += k->hits++ > 0;
        }
        bool was = closed(w, k), *is = &w->table.closed[k->at];
        *is = post <= k->tol_u || (k->shock[0] > 0 && !(k->un < -k->tol_u && k->e > 0));
        if (*is && !was && k->out->last_open)
            k->out->last_open[c->member] = w->t;
    }
}

bool sweep_shock(sweep *w)
{
    sweep_take(w, w->table.closed, w->table.met);
    rows_now(w);
    for (int i = 0; i < w->nact; i++) {
        track *k = w->act[i];
        k->e = k->hits < MAX_HITS ? k->c->e : 0;
        k->un = gap_rate(k, w->v);
        if (k->c->fam->d)
            k->speed = slip_of(k->c, w->v, w->x4);
        memset(k->shock, 0, (size_t)rows_of(k) * sizeof *k->shock);
    }
    memcpy(w->x1, w->v, (size_t)w->n * sizeof *w->v);
    w->step = 0;
    w->end = 1;
    w->known.offsets = -1;
    sweep_cones(w);
    if (!shock_phase(w, true) || !shock_poisson(w))
        return false;
    shock_account(w);
    if (w->s->past)
        samples_add(w->s->past, w->t, w->q, w->v);
    return sweep_rates(w);
}

/* Contacts at their tolerance join the closed ones, with a shock when they come at a speed. */
bool sweep_meet(sweep *w)
{
    contact_table *t = &w->table;
    bool hit = false, any = false;
    for (size_t i = 0; i < w->ntrack; i++) {
        t->met[i] = false;
        if (t->closed[i] || t->gap[i] > t->tol_gap[i])
            continue;
        track *k = w->track[i];
        contact *c = k->c;
        system_at(w->s, w->t, w->q, w->v);
        if (!k->offset_fixed) {
            contact_rows(w->s, c, w->M, false);
            sweep_tolerances(w, k);
        }
        k->un = gap_rate(k, w->v);
        if (k->un > k->tol_u)
            continue;
        if (w->cut == CUT_NEVER && w->t > 0 && k->un < -k->tol_u)
            continue; /* the step at once takes its impact in */
        t->met[i] = any = true;
        hit |= k->un < -k->tol_u;
    }
    if (hit)
        return sweep_shock(w);
    for (size_t i = 0; any && i < w->ntrack; i++) {
        track *k = w->track[i];
        if (!t->met[i])
            continue;
        t->closed[i] = true;
        if (k->out->last_open)
            k->out->last_open[k->c->member] = w->t;
    }
    return true;
}

/* ---- Gauss's principle: accelerations to the right of now, and the forces that go with them in rr ---- */
static void gauss_contact(sweep *w, int i)
{
    track *k = w->act[i];
    contact *c = k->c;
    cone *o = &w->cone[i];
    double *bias = w->x2, *dir = w->dir + k->row, speed, *off = w->off + k->row;
    if (k->normal)
        *off++ = contact_bias(w->s, c);
    if (c->d == 0)
        return;
    if (c->fam->slip_bias.k)
        contact_slip_bias(w->s, c, bias);
    else
        for (int j = 0; j < c->d; j++)
            bias[j] = 0;
    for (int j = 0; j < c->d; j++)
        *off++ = bias[j];
    speed = slip_of(c, w->v, dir);
    if (speed <= k->tol_slip)
        speed = 0;
    for (int j = 0; speed > 0 && j < c->d; j++)
        dir[j] /= speed;
    if (speed > 0)
        o->dir = dir;
    /* the coefficient is that of the speed now; the problem's velocities are accelerations */
    if (o->of_speed)
        sweep_law(w, i, speed, &o->mu, &o->radius);
    o->of_speed = false;
}

/* columns and cone of a lone contact are kept when nothing in them changes */
static bool gauss_alone(sweep *w)
{
    track *k = w->act[0];
    int row = 0;
    bool known = k->still && w->s->mass_constant && k->stamp_am == w->stamp_m && k->stamp_m == w->stamp_m;
    if (!known) {
        rows_now(w);
        sweep_columns_put(w, k, true);
    } else
        system_at(w->s, w->t, w->q, w->v);
    if (!known || k->cone_now.d != k->c->d) {
        sweep_cone(w, 0, &row);
        k->cone_now = w->cone[0];
    }
    w->cone[0] = k->cone_now;
    k->row = 0;
    gauss_contact(w, 0);
    sweep_lone_matrix(w, k, true);
    return sweep_solve_alone(w, true, w->cone, w->acc);
}

bool sweep_gauss(sweep *w)
{
    solve_with(&w->s->minv, w->f, w->acc);
    sweep_gather(w);
    w->known.cones = w->known.offsets = -1; /* they are those of accelerations now */
    if (w->nact == 0)
        return true;
    w->step = 1;
    w->end = 1;
    if (w->nact == 1 && w->stiffness == 0 && gauss_alone(w))
        return true;
    rows_now(w);
    sweep_cones(w);
    for (int i = 0; i < w->nact; i++)
        gauss_contact(w, i);
    for (int i = 0; i < w->nact; i++)
        for (int j = 0; j < rows_of(w->act[i]); j++)
            w->rr[w->act[i]->row + j] = w->act[i]->r[j];
    return sweep_solve(w, true, w->acc, w->t);
}

/* ---- going on ---- */
/* rates of first-order dofs follow from the state; forces are those of it */
bool sweep_rates(sweep *w)
{
    system_at(w->s, w->t, w->q, w->v);
    if (!w->s->force_constant || w->t == 0)
        system_force(w->s, w->f);
    if (w->s->first_order) {
        factor_solve(&w->s->minv, w->f, w->x1);
        for (int i = 0; i < w->n; i++)
            if (w->p->order[i] == 1)
                w->v[i] = w->x1[i];
        system_force(w->s, w->f);
    }
    w->fresh = false;
    return true;
}
