/* sweep_shock: an instant of a run: which contacts take part in it, and how it changes them. */
#include <math.h>
#include <string.h>
#include "sweep.h"

/* ---- the contacts that take part ---- */
void sweep_impact(sweep *w, const contact_state *k, double pre, double post, double impulse)
{
    note_impact(w->r->a, k->out, (impact){ w->t, pre, post, impulse, (int32_t)k->c->member });
}

/* rows and laws of the contacts at hand, at the current state */
static void rows_now(sweep *w)
{
    system_at(w->s, w->t, w->q, w->v);
    for (int i = 0; i < w->hand.nact; i++) {
        contact_state *k = w->hand.act[i];
        contact *c = k->c;
        if (!k->offset_fixed)
            contact_rows(w->s, c, w->M, false);
        if (!k->still)
            contact_laws(w->s, c, false);
    }
}

static void pose(instant_t *x, bool shock)
{
    sweep *w = x->of;
    w->hand.step = shock ? 0 : 1;
    w->hand.end = 1;
    sweep_cones(w);
    x->cone = w->hand.cone;
    x->off = w->hand.off;
    x->r = w->hand.rr;
    x->dir = w->hand.dir;
    for (int i = 0; i < w->hand.nact; i++) {
        contact_state *k = w->hand.act[i];
        k->now.row = k->row;
        for (int j = 0; j < rows_of(k); j++)
            w->hand.rr[k->row + j] = shock ? 0 : sweep_reaction(w, k, j);
    }
}

static bool solve(const instant_t *x, double *v)
{
    sweep *w = x->of;
    return sweep_solve(w, true, v, w->t);
}

static void react(const instant_t *x, double *v)
{
    sweep *w = x->of;
    for (int i = 0; i < w->hand.nact; i++)
        sweep_columns_put(w, w->hand.act[i], true);
    sweep_react(w, v, true);
}

static bool feed(const instant_t *x, bool shock)
{
    return sweep_feed(x->of, shock ? 0 : 1);
}

static instant_t now(sweep *w)
{
    static const instant_way way = { pose, solve, react, NULL }, feeding = { pose, solve, react, feed };
    instant_t x = instant_begin(w->contacts.feeds ? &feeding : &way, w, w->s, w->M, w->t, w->hand.meetings);
    x.before = w->room.x1;
    x.room = w->room.x2;
    for (int i = 0; i < w->hand.nact; i++) {
        contact_state *k = w->hand.act[i];
        instant_join(&x, &k->now, k->c, k->out, w->contacts.table.hits[k->at] < MAX_HITS,
                     w->contacts.table.tol_u[k->at],
                     k->c->fam->f->slots ? larger(k->tol_slip, w->hand.blur[false]) : k->tol_slip);
    }
    return x;
}

/* ---- shocks ---- */
/* Friction that held before the shock still holds if the slip after it is no more than solvers leave: about
   as much as before (speed), or a small part of the rates that cancel in the slip. */
static void shock_holds(const sweep *w, contact_state *k)
{
    const double NOISE = 100;
    const contact *c = k->c;
    if (!k->now.held)
        return;
    double slip = contact_slip(c, w->v, w->room.x4), size = 0;
    for (int j = 0; j < c->d; j++)
        size += contact_terms(c, c->S + (size_t)j * (size_t)c->n, w->v) + fabs(c->s0[j]);
    k->now.held = slip <= larger(larger(k->tol_slip, NOISE * k->speed), w->tol * size);
}

/* which contacts stay closed */
static void shock_end(sweep *w)
{
    contact_table *t = &w->contacts.table;
    int again = 0;
    t->counted = true;
    for (int i = 0; i < w->hand.nact; i++) {
        contact_state *k = w->hand.act[i];
        shock_holds(w, k);
        if (t->bounds[k->at])
            t->closed[k->at] = at_bound(t, k->at, k->now.after, k->now.impulse[0]);
        if (always(k))
            continue;
        if (k->now.hit) {
            bool before = t->hits[k->at]++ > 0;
            sweep_note_cut(w, k, before);
            again += before;
        }
        double tol_u = t->tol_u[k->at];
        bool was = closed(w, k), *is = &t->closed[k->at];
        bool thrown = k->now.before < -tol_u && k->now.e > 0;
        *is = k->now.after <= tol_u || (k->now.impulse[0] > 0 && !thrown);
        if (*is && !was && k->out->last_open)
            k->out->last_open[k->c->member] = w->t;
    }
    /* Contacts that are hit at the same time count once, however many they are.  With near pairs each of them
       counts, because a shock in a pile is a problem of the size of the pile.  No island has more than this;
       what each has is counted by sweep_islands_crowded. */
    w->policy.again += w->contacts.near.nof ? again : again > 0;
}

/* What friction without slip loses in the shock.  lost: by all other reactions; together they show whether
   the laws gave energy. */
static void shock_brake(sweep *w, instant_t *x, double lost)
{
    if (!w->hand.brake.acts[true])
        return;
    for (int i = 0; i < w->n; i++)
        x->room[i] = 0.5 * (x->before[i] + w->v[i]);
    double gain = sweep_brake_power(w, true, x->room);
    w->account.books->dissipated -= gain;
    x->gained = gain - lost > GAIN_ROUNDED * (fabs(gain) + fabs(lost)) ? gain - lost : 0;
}

/* A shock of the contacts with a flag in either array. */
static bool shock_of(sweep *w, const bool *which, const bool *also)
{
    sweep_take(w, which, also);
    rows_now(w);
    double speed = w->hand.brake.on ? sweep_brake_speed(w, w->v) : 0;
    for (int i = 0; i < w->hand.nact; i++) {
        const contact *c = w->hand.act[i]->c;
        if (c->fam->brakes)
            w->hand.act[i]->speed = sweep_brake_slip(c, w->v, speed);
        else if (c->fam->d)
            w->hand.act[i]->speed = contact_slip(c, w->v, w->room.x4);
    }
    w->hand.known.offsets = -1;
    w->hand.brake.acts[true] = false;
    instant_t x = now(w);
    if (!instant_shock(&x, w->v))
        return false;
    double before = w->account.books->dissipated;
    instant_account(&x, w->v, w->account.books, w->r->a);
    shock_brake(w, &x, w->account.books->dissipated - before);
    if (x.gained > 0 && !w->r->note)
        w->r->note = gain_text(&x, w->r->a, sweep_number(w, w->t));
    shock_end(w);
    return true;
}

/* ---- simultaneous impacts, one after the other ---- */
/* the contact whose gap closes fastest, relative to its tolerance; -1: no gap closes */
static int approached(sweep *w, const bool *all)
{
    const contact_table *t = &w->contacts.table;
    double most = 1;
    int found = -1;
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        if (!all[i] || always(w->contacts.state[i]))
            continue;
        double by = -gap_rate(w->contacts.state[i], w->v) / t->tol_u[i];
        if (by > most) {
            most = by;
            found = (int)i;
        }
    }
    return found;
}

static bool in_cascade(const sweep *w, size_t i)
{
    return w->contacts.state[i]->c->fam->f->cascade;
}

/* One impact after the other, the fastest first; contacts that are always closed take part in each.  Impacts
   of contacts that are not part of a cascade happen together. */
static bool cascade(sweep *w)
{
    enum { MOST = 1000 };
    contact_table *t = &w->contacts.table;
    size_t n = w->contacts.nstate;
    arena_pos mark = arena_mark(w->scratch);
    bool *all = arena_array(w->scratch, bool, n + 1), *who = arena_array(w->scratch, bool, n + 1), ok = true;
    int *hits = arena_array(w->scratch, int, n + 1), again = w->policy.again, notes = w->policy.cuts.n, first;
    for (size_t i = 0; i < n; i++)
        all[i] = t->closed[i] || t->met[i];
    memcpy(hits, t->hits, n * sizeof *hits);
    sweep_take(w, all, NULL);
    rows_now(w);
    for (size_t round = 0; ok && round < MOST * (n + 1) && (first = approached(w, all)) >= 0; round++) {
        for (size_t i = 0; i < n; i++)
            who[i] = all[i] && (always(w->contacts.state[i]) || (int)i == first ||
                                (!in_cascade(w, (size_t)first) && !in_cascade(w, i)));
        ok = shock_of(w, who, NULL);
        memcpy(t->hits, hits, n * sizeof *hits);
    }
    w->policy.cuts.n = notes; /* all of it is one cut */
    for (size_t i = 0; ok && i < n; i++) {
        contact_state *k = w->contacts.state[i];
        bool was = t->closed[i] && !t->met[i];
        if (!all[i] || always(k))
            continue;
        sweep_note_cut(w, k, false);
        t->closed[i] = gap_rate(k, w->v) <= t->tol_u[i];
        t->hits[i]++;
        if (t->closed[i] && !was && k->out->last_open)
            k->out->last_open[k->c->member] = w->t;
    }
    w->policy.again = again;
    arena_release(w->scratch, mark);
    return ok;
}

bool sweep_shock(sweep *w)
{
    bool some = false;
    for (size_t i = 0; w->contacts.bounds && i < w->contacts.nstate; i++)
        w->contacts.table.met[i] |= w->contacts.table.bounds[i];
    for (size_t i = 0; i < w->p->ncontact && !some; i++)
        some = w->p->contact[i].cascade;
    if (!(some ? cascade(w) : shock_of(w, w->contacts.table.closed, w->contacts.table.met)))
        return false;
    if (w->s->past)
        samples_add(w->s->past, w->t, w->q, w->v, w->s->base);
    return sweep_rates(w);
}

/* Does a whole step decide all that contact i does until the end of the step?  It does while a crowd waits.
   Islands that are followed beside the crowd meet their contacts later, when they are followed. */
static bool at_once(const sweep *w, size_t i)
{
    const island_parts *x = &w->policy.islands;
    return w->policy.cut == CUT_NEVER || (w->policy.waits && x->stage != STEP_CALM) ||
           (x->stage == STEP_CROWD && x->part[i] == PART_CALM);
}

/* Does the gap of contact i open, or close at a speed that the whole step deals with?  That is so for most
   contacts that are near, and their normal rows are enough to see it. */
static bool stays_open(sweep *w, size_t i)
{
    contact_state *k = w->contacts.state[i];
    if (k->offset_fixed || !(at_once(w, i) && w->t > 0) || !contacts_in_lanes(k->c->fam))
        return false;
    contact_normal(w->s, k->c);
    sweep_gap_tolerances(w, k);
    double un = w->contacts.table.un[i] = gap_rate(k, w->v);
    return fabs(un) > w->contacts.table.tol_u[i];
}

/* Contacts whose gaps are within their tolerance become closed; with a shock if their gaps are closing. */
bool sweep_meet(sweep *w)
{
    contact_table *t = &w->contacts.table;
    bool hit = false, any = false;
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        t->met[i] = false;
        if (t->closed[i] || t->gap[i] > t->tol_gap[i])
            continue;
        contact_state *k = w->contacts.state[i];
        contact *c = k->c;
        system_at(w->s, w->t, w->q, w->v);
        if (stays_open(w, i))
            continue;
        if (!k->offset_fixed)
            contact_rows(w->s, c, w->M, false);
        if (!k->offset_fixed || c->fam->d)
            sweep_tolerances(w, k);
        double un = t->un[i] = gap_rate(k, w->v);
        if (un > t->tol_u[i])
            continue;
        if (at_once(w, i) && w->t > 0 && un < -t->tol_u[i])
            continue; /* its impact is part of the whole step */
        t->met[i] = any = true;
        hit |= un < -t->tol_u[i];
    }
    if (hit)
        return sweep_shock(w);
    for (size_t i = 0; any && i < w->contacts.nstate; i++) {
        contact_state *k = w->contacts.state[i];
        if (!t->met[i])
            continue;
        t->closed[i] = true;
        sweep_note_cut(w, k, false);
        if (k->out->last_open)
            k->out->last_open[k->c->member] = w->t;
    }
    return !any || !w->contacts.read || sweep_rates(w);
}

/* ---- Gauss's principle: accelerations just after the current time; the forces are in rr ---- */
/* columns and cone of a single contact are reused while nothing in them changes */
static bool gauss_alone(sweep *w, instant_t *x)
{
    contact_state *k = w->hand.act[0];
    int row = 0;
    bool known = k->still && w->s->mass_constant && k->alone.stamp_am == w->matrix.stamp_m &&
                 k->stamp_m == w->matrix.stamp_m;
    if (!known) {
        rows_now(w);
        sweep_columns_put(w, k, true);
    } else
        system_at(w->s, w->t, w->q, w->v);
    w->hand.step = 1;
    w->hand.end = 1;
    if (!known || k->alone.cone_now.d != k->c->d) {
        sweep_cone(w, 0, &row);
        k->alone.cone_now = w->hand.cone[0];
    }
    w->hand.cone[0] = k->alone.cone_now;
    k->row = k->now.row = 0;
    x->cone = w->hand.cone;
    x->off = w->hand.off;
    x->dir = w->hand.dir;
    instant_asks(x, 0, w->v);
    sweep_lone_matrix(w, k, true);
    return sweep_solve_alone(w, true, w->hand.cone, w->acc);
}

/* adhesion of closed contacts, as accelerations */
static void pull(sweep *w, double *acc)
{
    for (int i = 0; i < w->hand.nact; i++) {
        contact_state *k = w->hand.act[i];
        if (!sticks_on(w, k))
            continue;
        sweep_columns_put(w, k, true);
        sweep_move(k, -k->c->adhesion, acc);
    }
}

bool sweep_gauss(sweep *w)
{
    solve_with(&w->s->minv, w->f, w->acc);
    sweep_gather(w);
    w->hand.known.cones = w->hand.known.offsets = -1; /* they are those of accelerations now */
    if (w->hand.nact == 0) {
        sweep_feed(w, 1);
        return true;
    }
    instant_t x = now(w);
    bool plain = !w->hand.act[0]->c->fam->mu_static.k && !w->hand.act[0]->c->fam->adhesion.k;
    plain = plain && !w->contacts.feeds && !w->hand.brake.on;
    if (w->hand.nact == 1 && w->stiffness == 0 && plain && gauss_alone(w, &x))
        return true;
    rows_now(w);
    pull(w, w->acc);
    return instant_gauss(&x, w->v, w->acc);
}

void sweep_ways(sweep *w)
{
    instant_t x = now(w);
    x.cone = w->hand.cone;
    x.off = w->hand.off;
    x.r = w->hand.rr;
    x.dir = w->hand.dir;
    if (w->contacts.feeds || w->hand.nact == 0 || !instant_pressed(&x))
        return;
    sweep_gather(w);
    rows_now(w);
    x = now(w);
    solve_with(&w->s->minv, w->f, w->acc);
    int ways = instant_ways(&x, w->acc, w->v, w->scratch);
    if (!sweep_gauss(w) || ways < 2)
        return;
    x = now(w);
    x.r = w->hand.rr;
    w->r->count.branch_choices++;
    if (!w->r->note)
        w->r->note = ways_text(&x, ways, w->r->a, sweep_number(w, w->t));
}

/* ---- the start ---- */
/* No accelerations satisfy the laws at the start: is it Painleve's paradox, and does a shock end it? */
bool sweep_jam(sweep *w, double residual)
{
    sweep_gather(w);
    rows_now(w);
    for (int i = 0; i < w->hand.nact; i++)
        w->hand.act[i]->speed = 0;
    instant_t x = now(w);
    w->policy.trial = true;
    const contact *c = w->hand.nact ? instant_paradox(&x, w->v) : NULL;
    solve_with(&w->s->minv, w->f, w->acc);
    bool ok = c && instant_jam(&x, w->acc, w->v);
    w->policy.trial = false;
    if (!c)
        return false;
    sweep_forget(w, residual);
    const char *what = paradox_text(w->r->a, c, sweep_number(w, w->t), ok);
    if (!ok)
        return results_fail(w->r, c->fam->f->at, what);
    w->r->note = what;
    instant_account(&x, w->v, w->account.books, w->r->a);
    shock_end(w);
    if (w->s->past)
        samples_add(w->s->past, w->t, w->q, w->v, w->s->base);
    return sweep_rates(w);
}

/* ---- continuing ---- */
/* rates of first-order dofs and all forces, recomputed from the state */
bool sweep_rates(sweep *w)
{
    system_at(w->s, w->t, w->q, w->v);
    w->account.driving_known = false;
    if (!w->s->force_constant || w->t == 0 || w->anew)
        system_force(w->s, w->f);
    if (w->contacts.read) { /* forces that read reactions use the current ones */
        double residual = w->r->residual;
        if (!sweep_gauss(w))
            sweep_forget(w, residual);
        system_at(w->s, w->t, w->q, w->v);
        system_force(w->s, w->f);
    }
    if (w->s->first_order) {
        factor_solve(&w->s->minv, w->f, w->room.x1);
        for (int i = 0; i < w->n; i++)
            if (w->p->order[i] == 1)
                w->v[i] = w->room.x1[i];
        system_force(w->s, w->f);
    }
    w->fresh = false;
    return true;
}
