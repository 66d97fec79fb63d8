/* instant: impacts, and accelerations by Gauss's principle. */
#include <string.h>
#include "instant.h"

void note_impact(arena *a, contact_result *out, impact i)
{
    i.pre = fmin(i.pre, 0);
    i.post = fmax(i.post, 0);
    *vec_push(a, &out->impacts) = i;
}

/* ---- laws ---- */
cone contact_cone(const contact *c, int row, double speed)
{
    const contact_family *f = c->fam->f;
    return (cone){ .kind = f->relation == REL_GAP         ? CONE_UNILATERAL
                           : f->relation == REL_BILATERAL ? CONE_BILATERAL
                                                          : CONE_GIVEN,
                   .d = c->d,
                   .row = row,
                   .of_speed = f->mu_of_speed && c->d,
                   .speed = speed };
}

void friction_bound(const contact *c, double k, double step, double base, double *mu, double *radius)
{
    const contact_family *f = c->fam->f;
    bool tresca = f->friction == FRICTION_TRESCA, given = f->relation == REL_CLOSED;
    *mu = tresca || given ? 0 : k;
    *radius = tresca ? k * step : given ? k * fabs(c->normal) * step : k * base;
}

/* ---- shocks ---- */
static bool comes(const meeting *k)
{
    return k->c->fam->f->relation == REL_GAP && k->before < -k->tol_u;
}

/* Newton's law asks for the share e of the rate before, Poisson's for a share of the impulse. */
static double restitution(const meeting *k)
{
    return k->c->fam->f->impact == IMPACT_NEWTON && comes(k) ? k->e * k->before : 0;
}

static bool shock_phase(instant_t *x, double *v)
{
    for (int i = 0; i < x->n; i++) {
        const meeting *k = x->at[i];
        double *off = x->off + k->row;
        if (contact_has_normal(k->c))
            *off++ = k->c->ht + restitution(k);
        for (int j = 0; j < k->c->d; j++)
            *off++ = k->c->s0[j];
    }
    if (!x->solve(x, v))
        return false;
    for (int i = 0; i < x->n; i++)
        for (int j = 0; j < contact_row_count(x->at[i]->c); j++)
            x->at[i]->impulse[j] += x->r[x->at[i]->row + j];
    return true;
}

/* The share e of the impulse of compression is given back; friction may use it too. */
static bool shock_poisson(instant_t *x, double *v)
{
    bool any = false;
    for (int i = 0; i < x->n; i++) {
        meeting *k = x->at[i];
        if (k->c->fam->f->impact == IMPACT_POISSON && comes(k))
            k->given = k->e * k->impulse[0];
        any |= k->given > 0;
    }
    if (!any)
        return true;
    x->pose(x, true);
    for (int i = 0; i < x->n; i++)
        if (x->at[i]->given > 0)
            x->r[x->at[i]->row] = x->at[i]->given;
    x->react(x, v);
    x->pose(x, true);
    bool ok = shock_phase(x, v);
    for (int i = 0; i < x->n; i++) {
        if (x->at[i]->given > 0)
            x->at[i]->impulse[0] += x->at[i]->given;
        x->at[i]->given = 0;
    }
    return ok;
}

static void shock_begin(instant_t *x, const double *v)
{
    vec_copy(x->before, v, x->s->n);
    for (int i = 0; i < x->n; i++) {
        meeting *k = x->at[i];
        k->given = 0;
        k->held = false;
        k->before = contact_has_normal(k->c) ? contact_gap_rate(k->c, v) : 0;
        for (int j = 0; j < contact_row_count(k->c); j++)
            k->impulse[j] = 0;
    }
    x->pose(x, true);
}

bool instant_shock(instant_t *x, double *v)
{
    shock_begin(x, v);
    return shock_phase(x, v) && shock_poisson(x, v);
}

void instant_account(instant_t *x, const double *v, books *b, arena *a)
{
    double *mean = x->room, most = 0;
    for (int i = 0; i < x->s->n; i++)
        mean[i] = 0.5 * (x->before[i] + v[i]); /* impulses do work by the mean of the rates */
    for (int i = 0; i < x->n; i++)
        most = fmax(most, fabs(x->at[i]->impulse[0]));
    for (int i = 0; i < x->n; i++) {
        meeting *k = x->at[i];
        const contact *c = k->c;
        int normal = contact_has_normal(c);
        for (int j = 0; j < contact_row_count(c); j++) {
            double still = j < normal ? c->ht : c->s0[j - normal];
            b->dissipated -= k->impulse[j] * (contact_rate(c, contact_row(c, j), mean) + still);
            b->work -= k->impulse[j] * still;
        }
        k->after = normal ? contact_gap_rate(c, v) : 0;
        k->hit = c->fam->f->relation == REL_GAP && k->impulse[0] > 1e-12 * most;
        if (k->hit)
            note_impact(a, k->out, (impact){ x->t, k->before, k->after, k->impulse[0], (int32_t)c->member });
    }
}

/* ---- accelerations ---- */
void instant_asks(instant_t *x, int i, const double *v)
{
    const meeting *k = x->at[i];
    contact *c = k->c;
    cone *o = &x->cone[i];
    double *off = x->off + k->row, *dir = x->dir + k->row, mu;
    if (contact_has_normal(c))
        *off++ = contact_bias(x->s, c);
    if (c->d == 0)
        return;
    contact_slip_bias(x->s, c, off);
    double speed = contact_slip(c, v, dir);
    if (!contact_slips(speed, k->tol_slip, k->held))
        speed = 0;
    for (int j = 0; speed > 0 && j < c->d; j++)
        dir[j] /= speed;
    if (speed > 0)
        o->dir = dir;
    if (!o->of_speed)
        return;
    /* the coefficient is that of the speed now; the problem's velocities are accelerations */
    mu = contact_mu(x->s, c, speed);
    friction_bound(c, mu, 1, 0, &o->mu, &o->radius);
    o->of_speed = false;
}

bool instant_gauss(instant_t *x, const double *v, double *acc)
{
    x->pose(x, false);
    for (int i = 0; i < x->n; i++)
        instant_asks(x, i, v);
    return x->solve(x, acc);
}
