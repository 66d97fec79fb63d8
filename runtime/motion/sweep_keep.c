/* sweep_keep: the saved state of a run of sweeping or auglag between two steps: everything that the next one
   depends on. Factors, columns and cones are recomputed from the same numbers, with the same bits. */
#include <limits.h>
#include "sweep.h"

/* Rows of the last evaluation: tolerances of open contacts depend on them. */
static void contact_keep(contact *c, run_state *s)
{
    size_t n = (size_t)c->n, d = (size_t)c->fam->d, shown = (size_t)c->fam->shown;
    double *one[] = { &c->ht, &c->bias, &c->mu, &c->e, &c->normal, &c->metric, c->gap };
    state_int(s, "directions", &c->d, 0, c->fam->d);
    for (size_t i = 0; i < sizeof one / sizeof *one; i++)
        state_f64(s, "contact", one[i], 1);
    state_f64(s, "normal row", c->H, n);
    state_f64(s, "slip rows", c->S, d * n);
    state_f64(s, "slip offset", c->s0, d);
    state_f64(s, "shown", c->show, d * shown);
    if (c->show_force != c->show)
        state_f64(s, "shown force", c->show_force, d * shown);
}

static void contact_state_keep(sweep *w, contact_state *k, run_state *s)
{
    size_t rows = 1 + (size_t)k->c->fam->d;
    contact_table *t = &w->contacts.table;
    double *one[] = { &t->ahead[k->at], &t->tol_gap[k->at], &t->tol_u[k->at], &k->tol_slip, &t->un[k->at],
                      &k->mu0,          &k->normal0,        &k->htm,          &k->speed };
    contact_keep(k->c, s);
    state_flags(s, "closed", &t->closed[k->at], 1);
    state_flags(s, "held", &k->now.held, 1);
    state_int(s, "hits", &t->hits[k->at], 0, INT_MAX);
    for (size_t i = 0; i < sizeof one / sizeof *one; i++)
        state_f64(s, "contact", one[i], 1);
    state_f64(s, "reaction", k->r, rows);
    state_f64(s, "impulse", k->P, rows);
    if (!state_reads(s))
        return;
    k->stamp = k->stamp_m = k->alone.stamp_a = k->alone.stamp_am = -1;
    k->alone.cone_step = NAN;
    t->counted = true;
}

static void numbers_keep(sweep *w, run_state *s)
{
    size_t n = (size_t)w->n;
    double *one[] = { &w->t, &w->account.step_from, &w->account.power, &w->r->promised.tolerance };
    double *all[] = { w->q, w->v, w->f, w->f1, w->acc, w->size.qmax, w->size.vmax, w->account.driving };
    bool *flags[] = { &w->policy.was_at_once, &w->fresh, &w->watch.stopped, &w->jolt,
                      &w->account.driving_known };
    for (size_t i = 0; i < sizeof one / sizeof *one; i++)
        state_f64(s, "time", one[i], 1);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        state_f64(s, "state", all[i], n);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        state_flags(s, "flag", flags[i], 1);
    state_int(s, "patience", &w->policy.patience, 0, MAX_AGAIN);
    state_int(s, "wait", &w->policy.wait, 0, INT_MAX);
    state_int(s, "wait next", &w->policy.wait_next, 1, INT_MAX / 2);
    state_int(s, "halved", &w->policy.halved, 0, HALVES);
    state_int(s, "part wait", &w->policy.part_wait, 0, INT_MAX);
    state_int(s, "part next", &w->policy.part_next, 1, INT_MAX / 2);
    state_flags(s, "fired", w->watch.fired, w->watch.nfired);
    if (w->policy.islands.judges)
        state_flags(s, "impatient", w->policy.islands.impatient, n);
    if (w->policy.islands.may) {
        state_flags(s, "crowded", w->policy.islands.marked, n);
        state_flags(s, "followed", w->policy.islands.followed, n);
    }
    state_f64(s, "lengths", w->size.lengths, w->p->ncontact);
    if (w->s->base)
        state_f64(s, "bases", w->s->base, 3 * n);
    if (w->s->react)
        state_f64(s, "reactions", w->s->react, w->s->nreact);
    if (!w->s->mass_constant)
        state_f64(s, "masses", w->M, w->s->mass_shape.count);
}

/* Which point of two shapes is which depends on how they came to touch. A continued run stores listed pairs
   at other places, so they are saved pair by pair. */
static void touch_keep(sweep *w, run_state *s)
{
    shapes *of = w->s->shapes;
    if (!of)
        return;
    size_t n = (size_t)w->p->shapes.nfeature;
    state_f64(s, "touching", of->feature, n);
    state_i64(s, "points", of->id, n / FEATURE_NUMBERS);
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        const contact *c = w->contacts.state[i]->c;
        const contact_family *f = c->fam->f;
        if (!f->pair.listed || c->index[index_of_point(f)] != 1)
            continue;
        size_t place = (size_t)c->index[f->over.n - 1];
        state_f64(s, "touching", of->feature + place * PAIR_NUMBERS, PAIR_NUMBERS);
        state_i64(s, "points", of->id + place * FEATURES, FEATURES);
    }
}

static void near_state(sweep *w, run_state *s)
{
    near_list *l = &w->contacts.near;
    if (l->nof == 0)
        return;
    for (size_t i = 0; i < l->nof; i++)
        for (int k = 0; k < 2; k++)
            state_f64(s, "seen", l->of[i].of[k].seen, NEAR_AXES * (size_t)l->of[i].of[k].n);
    state_f64(s, "skin", &l->skin, 1);
    state_f64(s, "far", &l->far, 1);
    if (!state_reads(s) || !state_ok(s))
        return;
    bool fits = l->skin >= 0 && isfinite(l->skin);
    for (size_t i = 0; i < l->nof; i++)
        for (int k = 0; k < 2; k++)
            for (int32_t j = 0; j < NEAR_AXES * l->of[i].of[k].n; j++)
                fits = fits && isfinite(l->of[i].of[k].seen[j]);
    if (fits)
        sweep_near_again(w);
    else
        state_wrong(s, "the places for which near pairs were found are not finite");
}

void sweep_keep(void *of, run_state *s)
{
    sweep *w = of;
    int bad;
    numbers_keep(w, s);
    near_state(w, s);
    touch_keep(w, s);
    for (size_t i = 0; i < w->contacts.nstate && state_ok(s); i++)
        contact_state_keep(w, w->contacts.state[i], s);
    if (w->s->past)
        samples_keep(w->s->past, s);
    if (!state_reads(s) || !state_ok(s))
        return;
    w->matrix.d_step = NAN;
    w->hand.nact = 0;
    sweep_make_anew(w);
    if (!w->s->mass_constant && !system_factor(w->s, w->M, &bad))
        state_wrong(s, "its masses are not positive");
}

/* ---- which runs can be saved ---- */
static size_t rows_of_family(const program *p, const contact_family *f)
{
    size_t slip = f->friction == FRICTION_NONE ? 0 : f->slip_given ? (size_t)f->nslip : (size_t)p->nq;
    return (size_t)index_members(&f->over) * (1 + slip);
}

bool sweep_forgets(const program *p)
{
    return p->rotations.n > 0 || p->shapes.nfeature > 0;
}

/* Sparse factors keep their pivots from step to step, and pivots are not part of a state. They occur with
   many coupled dofs, or many contacts of such dofs. */
bool sweep_saves(const program *p)
{
    size_t rows = 0;
    if (sweep_forgets(p))
        return true;
    if (p->mass_diagonal && p->force_dq.n == 0 && p->force_dv.n == 0)
        return true;
    for (size_t i = 0; i < p->ncontact; i++)
        rows += rows_of_family(p, &p->contact[i]);
    return p->nq <= MATRIX_SMALL && rows <= FEW_ROWS;
}
