/* events_mode: what happens at an instant. Shocks are solved as a step problem. Then the mode of each contact
   is decided: it opens, stays closed, sticks or slips. The step problem for accelerations decides first; if
   it leaves two answers, the first nonzero coefficient of the series of gap, reaction, cone or slip decides
   (Ballard & Basseville, Theorem 4.1). */
#include <float.h>
#include <math.h>
#include <string.h>
#include "contact/equal.h"
#include "events.h"
#include "base/tolerances.h"

/* A rate that a reaction has kept at 0 may show no value to compare rounding with. Its rounding is then that
   of the changes of rates that the forces alone would have caused over the pieces so far. */
static void rounded_piece(const ev *w, rub *k)
{
    double v = 4 * DBL_EPSILON * w->sizes.rounded;
    k->zero.tol_gap = fmax(k->zero.tol_gap, v * w->sizes.last_h * k->grip_n);
    k->zero.tol_u = fmax(k->zero.tol_u, v * k->grip_n);
    k->zero.tol_slip = fmax(k->zero.tol_slip, v * k->grip_t);
}

/* The gradient of a gap that turns has rounding errors, so a small fraction of the tangential speed appears
   in the rate of the gap. */
static double turned_rate(const ev *w, const rub *k)
{
    const taylor *g = k->terms.gradient;
    double speed = 0;
    for (uint32_t i = 0; g && !k->c->fam->rows_fixed && i < g->k->tape.nout; i++) {
        int at = slot_at(&g->k->row[i], g->index, g->k->over.n);
        speed = fmax(speed, w->sizes.vmax[at] * sqrt(ev_mass(w, at)));
    }
    return 8 * DBL_EPSILON * speed * k->grip_n;
}

static void tolerances(ev *w, rub *k)
{
    const contact *c = k->c;
    k->zero.tol_gap = EV_GAP_ZERO * contact_size(c, c->H, w->sizes.qmax);
    k->zero.tol_u = fmax(EV_RATE_ZERO * (contact_size(c, c->H, w->sizes.vmax) + fabs(c->ht)),
                         turned_rate(w, k));
    k->zero.tol_slip = 0;
    for (int i = 0; i < c->d; i++)
        k->zero.tol_slip += EV_RATE_ZERO *
                            (contact_size(c, c->S + (size_t)i * w->n, w->sizes.vmax) + fabs(c->s0[i]));
    rounded_piece(w, k);
}

static double grip_of(ev *w, const double *row)
{
    factor_solve(&w->s->minv, row, w->hand.x1);
    return sqrt(fmax(vec_dot(row, w->hand.x1, w->n), 0));
}

/* A force f along a row changes the rate of that row by f grip^2. So grips convert sizes of the motion into
   sizes of forces and rates of a row. */
static void grips(ev *w, rub *k)
{
    const contact *c = k->c;
    k->grip_n = contact_has_normal(c) ? grip_of(w, c->H) : 0;
    k->grip_t = 0;
    for (int i = 0; i < c->d; i++)
        k->grip_t = fmax(k->grip_t, grip_of(w, c->S + (size_t)i * w->n));
}

/* All modes tried in one decision are compared by one size, so that a quantity does not count as 0 for one
   mode only: the largest size of those tried, if they are of similar size. */
static double size_at_hand(const ev *w)
{
    const double ALIKE = 100, COLLOCATED = 1000; /* pieces that start a slip are less accurate */
    double size = w->sizes.decided == w->t
                      ? fmax(w->sizes.size, fmin(w->sizes.size_tried, ALIKE * w->sizes.size))
                      : w->sizes.size;
    return w->start.start_piece ? COLLOCATED * size : size;
}

double ev_zero_force(const ev *w, double grip)
{
    return grip > 0 ? EV_FORCE_ZERO * size_at_hand(w) / grip : 0;
}

double ev_zero_rate(const ev *w, double grip)
{
    return EV_ACC_ZERO * size_at_hand(w) * grip;
}

/* Masses and forces; rates of first-order dofs follow from the state. */
static bool masses(ev *w)
{
    int bad;
    ev_force0(w);
    if (!system_factor(w->s, w->M, &bad))
        return ev_fail(w, mass_where(w->p, bad),
                       arena_printf(w->r->a,
                                    "the mass matrix is not positive definite at t = %s, in the row of '%s'",
                                    ev_number(w, w->t), dof_name(w->p, bad, w->r->a)));
    if (!w->s->first_order)
        return true;
    factor_solve(&w->s->minv, w->f, w->hand.x1);
    for (int i = 0; i < w->n; i++)
        if (w->p->order[i] == 1) {
            w->v[i] = w->hand.x1[i];
            w->v_low[i] = 0;
        }
    return true;
}

/* ---- pieces of gaps and laws ---- */
/* Is the argument of a site at its switch, and after which time is it clearly on its next piece? Gaps that
   close or open leave their kernels on the piece of the other case: pieces are chosen anew. */
static double past_switch(const ev *w, taylor *t, site *s)
{
    double f[2], size, close;
    const instr *q = &t->code[s->code];
    if (site_two_sided(t, s))
        return 0;
    site_function(t, s, false, 1, f);
    f[1] /= w->series.in.unit;
    size = fabs(taylor_reg(t, q->a)[0]) + fabs(taylor_reg(t, q->b)[0]);
    close = ROUND_20 * size + (ROUND_500 * w->sizes.last_h + ROUND_50 * fabs(w->t)) * fabs(f[1]);
    s->near = f[1] != 0 && fabs(f[0]) <= close;
    if (!s->near)
        return 0;
    s->branch = f[1] > 0 ? 1 : -1;
    return 2 * fabs(f[0]) / fabs(f[1]) + 4 * DBL_EPSILON * (fabs(w->t) + size / fabs(f[1]) + w->sizes.moment);
}

static double past_switches(ev *w, const rub *k)
{
    taylor *all[] = { k->terms.gap,       k->terms.gradient, k->terms.bias, k->terms.slip_map,
                      k->terms.slip_bias, k->terms.normal,   k->terms.mu };
    double late = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        taylor *t = all[i];
        if (!t || !t->nsite)
            continue;
        for (uint32_t l = 0; l < t->nsite; l++)
            t->site[l].near = false;
        taylor_step(t, &w->series.in, 0);
        taylor_step(t, &w->series.in, 1);
        for (uint32_t l = 0; l < t->nsite; l++)
            late = fmax(late, past_switch(w, t, &t->site[l]));
    }
    return late;
}

/* Rows and laws just after this time belong to the pieces on which the motion continues. If the state lies on
   a switch, rounding must not choose the piece. */
static void stand(ev *w)
{
    double late = 0, q = 0, v = 0;
    for (int k = 0; k < w->n; k++) {
        double root = sqrt(ev_mass(w, k)); /* dofs may have different units */
        q = fmax(q, fabs(w->q[k]) * root);
        v = fmax(v, fabs(w->v[k]) * root);
        w->series.qs[(size_t)k * (size_t)w->width + 1] = w->v[k] * w->series.in.unit;
        w->series.vs[(size_t)k * (size_t)w->width + 1] = w->acc[k] * w->series.in.unit;
    }
    w->sizes.moment = v > 0 ? q / v : 0;
    for (int i = 0; i < w->nrub; i++)
        late = fmax(late, past_switches(w, &w->rub[i]));
    vec_copy(w->hand.q_right, w->q, w->n);
    vec_axpy(w->hand.q_right, late, w->v, w->n);
    system_at(w->s, w->t + late, w->hand.q_right, w->v);
}

/* T.M' q': the contribution of changing masses to the rate of slip in direction T. */
static double mass_rate(const ev *w, const double *T)
{
    int n = w->n;
    double s = 0;
    for (int i = 0; i < n && !w->s->mass_constant; i++)
        for (int k = 0; k < n; k++)
            s += T[i] * w->series.Ms[(size_t)(i * n + k) * (size_t)w->width + 1] * w->v[k];
    return s / w->series.in.unit;
}

/* A contact that sticks to a moving constraint moves with it along the normal. If the normal turns, this
   motion has an acceleration along the surface. */
static void turning_of(ev *w, rub *k)
{
    const contact *c = k->c;
    int n = w->n;
    const kernel *g = k->terms.gradient->k;
    double *dH = w->hand.x2, *T = w->hand.x1;
    memset(dH, 0, (size_t)n * sizeof *dH);
    taylor_step(k->terms.gradient, &w->series.in, 0);
    taylor_step(k->terms.gradient, &w->series.in, 1);
    for (uint32_t i = 0; i < g->tape.nout; i++)
        dH[slot_at(&g->row[i], k->terms.gradient->index, g->over.n)] += taylor_out(k->terms.gradient, i)[1] /
                                                                        w->series.in.unit;
    for (int l = 0; l < c->d; l++) {
        factor_solve(&w->s->minv, c->S + (size_t)l * n, T);
        k->series.turning[l] = c->ht / (k->grip_n * k->grip_n) * vec_dot(T, dH, n) + mass_rate(w, T);
    }
}

/* Masses, forces, rows and laws of the current state. */
static bool rows_again(ev *w)
{
    if (!masses(w))
        return false;
    system_at(w->s, w->t, w->q, w->v);
    for (int i = 0; i < w->nrub; i++)
        contact_gap(w->s, w->rub[i].c);
    stand(w);
    for (int i = 0; i < w->nrub; i++) {
        contact_rows(w->s, w->rub[i].c, w->M, true);
        contact_laws(w->s, w->rub[i].c, true);
    }
    return true;
}

bool ev_survey(ev *w)
{
    for (int i = 0; i < w->n; i++) {
        w->sizes.qmax[i] = fmax(w->sizes.qmax[i], fabs(w->q[i]));
        w->sizes.vmax[i] = fmax(w->sizes.vmax[i], fabs(w->v[i]));
    }
    if (!rows_again(w))
        return false;
    for (int i = 0; i < w->nrub; i++) {
        rub *k = &w->rub[i];
        grips(w, k);
        tolerances(w, k);
        if (k->series.turning)
            turning_of(w, k);
        if (k->c->fam->f->relation != REL_CLOSED && !isfinite(*k->c->gap))
            return ev_fail(w, k->c->fam->f->at,
                           arena_printf(w->r->a, "the gap of '%s' is not finite at t = %s",
                                        contact_name(k->c, w->r->a), ev_number(w, w->t)));
        k->un = contact_has_normal(k->c) ? contact_gap_rate(k->c, w->v) : 0;
    }
    return true;
}

/* ---- the step problem ---- */
static void law_of_shock(void *ud, int i, double speed, double *mu, double *radius)
{
    ev *w = ud;
    contact *c = w->hand.act[i]->c;
    friction_bound(c, contact_mu(w->s, c, speed), 0, w->hand.act[i]->now.given, mu, radius);
}

static void put_cones(ev *w, bool shock)
{
    int m = 0;
    for (int i = 0; i < w->hand.nact; i++) {
        rub *k = w->hand.act[i];
        contact *c = k->c;
        cone *o = &w->hand.cone[i];
        *o = contact_cone(c, m, 0);
        k->row = k->now.row = m;
        if (o->of_speed && shock)
            o->speed = contact_slip(c, w->v, w->hand.x2);
        else if (c->d)
            friction_bound(c, o->of_speed ? contact_mu(w->s, c, 0) : contact_coefficient(c, k->now.rests),
                           shock ? 0 : 1, k->now.given, &o->mu, &o->radius);
        m += cone_rows(o);
    }
    w->hand.pr = (contact_problem){ .n = w->hand.nact,
                                    .m = m,
                                    .cone = w->hand.cone,
                                    .W = w->hand.W,
                                    .b = w->hand.b,
                                    .r = w->hand.rr,
                                    .u = w->hand.u,
                                    .law = law_of_shock,
                                    .ud = w };
    memset(w->hand.rr, 0, (size_t)m * sizeof *w->hand.rr);
}

/* The matrix W of the contact problem: changes of rates (or accelerations) by unit impulses (or forces). */
static void put_matrix(ev *w)
{
    int m = w->hand.pr.m, n = w->n;
    for (int i = 0; i < w->hand.nact; i++)
        for (int j = 0; j < contact_row_count(w->hand.act[i]->c); j++)
            factor_solve(&w->s->minv, contact_row(w->hand.act[i]->c, j),
                         w->hand.G + (size_t)(w->hand.act[i]->row + j) * n);
    for (int i = 0; i < w->hand.nact; i++)
        for (int j = 0; j < contact_row_count(w->hand.act[i]->c); j++)
            for (int l = 0; l < m; l++)
                w->hand.W[(size_t)(w->hand.act[i]->row + j) * m + l] = vec_dot(
                    contact_row(w->hand.act[i]->c, j), w->hand.G + (size_t)l * n, n);
}

static bool unsolved(ev *w)
{
    const contact *c = w->hand.act[w->hand.pr.worst]->c;
    const char *why = row_text(c, w->r->a, ev_number(w, w->t));
    if (why)
        return ev_fail(w, c->fam->f->at, why);
    return ev_fail(w, c->fam->f->at,
                   arena_printf(w->r->a,
                                "the contact problem was not solved at t = %s: constraint '%s', residual "
                                "%.2g",
                                ev_number(w, w->t), contact_name(c, w->r->a), w->hand.pr.residual));
}

static void add_reactions(ev *w, double *x)
{
    for (int k = 0; k < w->n; k++) {
        double sum = x[k], size = fabs(x[k]), change = 0;
        for (int l = 0; l < w->hand.pr.m; l++) {
            double d = w->hand.G[(size_t)l * w->n + k] * w->hand.rr[l];
            change += d;
            size += fabs(d);
        }
        sum += change;
        x[k] = change != 0 && fabs(sum) <= ROUND_70 * size ? 0 : sum;
    }
}

/* Solves with equilibrated rows. W is used again afterwards, so the scaling is undone. */
static bool contacts_solve(ev *w)
{
    contact_problem *p = &w->hand.pr;
    size_t m = (size_t)p->m;
    double unit[m];
    equal_units units;
    equal_make(&units, p, unit);
    bool ok = contact_solve(p, w->hand.cwork, EV_SOLVED);
    equal_undo(&units);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < m; j++)
            p->W[i * m + j] /= unit[i] * unit[j];
    return ok;
}

/* Solves for the reactions, given the rates or accelerations x without them. */
static bool solve_with(ev *w, double *x)
{
    if (w->hand.nact == 0)
        return true;
    for (int i = 0; i < w->hand.nact; i++) {
        const contact *c = w->hand.act[i]->c;
        for (int j = 0, row = w->hand.act[i]->row; j < contact_row_count(c); j++)
            w->hand.b[row + j] = contact_rate(c, contact_row(c, j), x) + w->hand.off[row + j];
    }
    bool ok = contacts_solve(w);
    w->r->count.solver_iterations += w->hand.pr.iterations;
    w->r->count.branch_choices += w->hand.pr.choices;
    w->r->solver = w->hand.pr.solver;
    if (!ok && !(w->hand.pr.residual < EV_SOLVED_LEAST))
        return w->hand.trying ? false : unsolved(w);
    w->r->residual = fmax(w->r->residual, w->hand.pr.residual);
    add_reactions(w, x);
    return true;
}

/* ---- the contacts that take part, as an instant ---- */
static void pose(instant_t *x, bool shock)
{
    ev *w = x->of;
    put_cones(w, shock);
    put_matrix(w);
    x->cone = w->hand.cone;
    x->off = w->hand.off;
    x->r = w->hand.rr;
    x->dir = w->hand.dir;
}

static bool solve(const instant_t *x, double *v)
{
    return solve_with(x->of, v);
}

static void react(const instant_t *x, double *v)
{
    add_reactions(x->of, v);
}

static instant_t now(ev *w)
{
    static const instant_way way = { pose, solve, react, NULL };
    instant_t x = instant_begin(&way, w, w->s, w->M, w->t, w->hand.meetings);
    x.before = w->hand.before;
    x.room = w->hand.x1;
    for (int i = 0; i < w->hand.nact; i++) {
        rub *k = w->hand.act[i];
        k->now.turning = k->series.turning;
        instant_join(&x, &k->now, k->c, &w->r->contact[k->family], true, k->zero.tol_u, k->zero.tol_slip);
    }
    return x;
}

void ev_round(ev *w)
{
    memset(w->q_low, 0, (size_t)w->n * sizeof *w->q_low);
    memset(w->v_low, 0, (size_t)w->n * sizeof *w->v_low);
}

/* H (v + v_low) + ht, to twice the length of a double. */
static twofold rate_twofold(const ev *w, const contact *c, const double *v)
{
    twofold s = { c->ht, 0 };
    for (int i = 0; i < w->n; i++)
        s = twofold_sum(s, twofold_product((twofold){ c->H[i], 0 }, (twofold){ v[i], w->v_low[i] }));
    return s;
}

/* Satisfies Newton's law to twice the length of a double: residuals of the solve are removed by changing the
   rates along the reactions. Not with friction, which has its own law, nor with Poisson's law. */
static void shock_sharpen(ev *w)
{
    int n = w->n, m = 0;
    double most = 0, b[w->hand.nact + 1], W[w->hand.nact * w->hand.nact + 1];
    int at[w->hand.nact + 1], pivot[w->hand.nact + 1];
    for (int i = 0; i < w->hand.nact; i++) {
        const contact_family *f = w->hand.act[i]->c->fam->f;
        if (w->hand.act[i]->c->d || f->relation != REL_GAP || f->impact != IMPACT_NEWTON) {
            memset(w->v_low, 0, (size_t)n * sizeof *w->v_low);
            return;
        }
        most = fmax(most, impulse_size(w->s, w->M, &w->hand.act[i]->now));
    }
    for (int i = 0; i < w->hand.nact; i++)
        if (w->hand.act[i]->now.impulse[0] > 0 &&
            impulse_size(w->s, w->M, &w->hand.act[i]->now) > IMPULSE_ZERO * most)
            at[m++] = i;
    for (int i = 0; i < m; i++) {
        const rub *k = w->hand.act[at[i]];
        twofold u = rate_twofold(w, k->c, w->hand.before),
                e = { k->now.before < -k->zero.tol_u ? -k->now.e : 0, 0 }, now = rate_twofold(w, k->c, w->v);
        twofold left = twofold_sum(twofold_product(u, e), (twofold){ -now.hi, -now.lo });
        b[i] = left.hi;
        for (int j = 0; j < m; j++)
            W[i * m + j] = w->hand.W[(size_t)k->row * w->hand.pr.m + w->hand.act[at[j]]->row];
        if (!(fabs(b[i]) <= EV_RESTITUTED * fabs(u.hi)))
            return;
    }
    if (!dense_solve(W, b, m, pivot))
        return;
    for (int l = 0; l < n; l++) {
        twofold v = { w->v[l], w->v[l] == 0 ? 0 : w->v_low[l] };
        for (int i = 0; i < m; i++)
            v = twofold_sum(
                v, twofold_product((twofold){ w->hand.G[(size_t)w->hand.act[at[i]]->row * n + l], 0 },
                                   (twofold){ b[i], 0 }));
        w->v[l] = v.hi;
        w->v_low[l] = v.lo;
    }
}

/* A shock of the contacts in w->hand.act. */
static bool shock_of(ev *w)
{
    instant_t x = now(w);
    if (!instant_shock(&x, w->v))
        return false;
    shock_sharpen(w);
    instant_account(&x, w->v, &w->c->books, w->r->a);
    if (x.gained > 0 && !w->r->note)
        w->r->note = gain_text(&x, w->r->a, ev_number(w, w->t));
    for (int i = 0; i < w->hand.nact; i++) {
        rub *k = w->hand.act[i];
        k->un = k->now.after;
        if (!k->now.hit || k->last_hit == w->t)
            continue;
        k->before = k->flight;
        k->flight = (w->t - k->last_hit) + (w->t_low - k->last_low);
        k->last_hit = w->t;
        k->last_low = w->t_low;
    }
    return true;
}

static bool takes_part(const rub *k)
{
    return !contact_opens(k->c) || k->mode != MODE_OPEN ||
           (*k->c->gap <= k->zero.tol_gap && k->un <= k->zero.tol_u);
}

/* The contact with the largest approach speed relative to its tolerance; NULL: none. */
static rub *approached(ev *w, const bool *all)
{
    rub *found = NULL;
    double most = 1;
    for (int i = 0; i < w->nrub; i++) {
        rub *k = &w->rub[i];
        if (!all[i] || !contact_opens(k->c))
            continue;
        double by = -contact_gap_rate(k->c, w->v) / k->zero.tol_u;
        if (by > most) {
            most = by;
            found = k;
        }
    }
    return found;
}

/* Impacts one after the other, the fastest first, each together with the contacts that cannot open. Contacts
   that are not part of a cascade are hit together. */
static bool cascade(ev *w, const bool *all)
{
    enum { MOST = 1000 };
    rub *first;
    for (int round = 0; round < MOST * (w->nrub + 1) && (first = approached(w, all)); round++) {
        bool alone = first->c->fam->f->cascade;
        w->hand.nact = 0;
        for (int i = 0; i < w->nrub; i++) {
            rub *k = &w->rub[i];
            if (all[i] && (k == first || !contact_opens(k->c) || (!alone && !k->c->fam->f->cascade)))
                w->hand.act[w->hand.nact++] = k;
        }
        if (!shock_of(w))
            return false;
    }
    return true;
}

/* A shock of all contacts that are closed or at their gap. */
bool ev_shock(ev *w)
{
    bool all[w->nrub + 1], some = false;
    w->hand.nact = 0;
    for (int i = 0; i < w->nrub; i++) {
        rub *k = &w->rub[i];
        all[i] = takes_part(k);
        some |= all[i] && k->c->fam->f->cascade;
        if (all[i])
            w->hand.act[w->hand.nact++] = k;
    }
    return some ? cascade(w, all) : shock_of(w);
}

/* ---- accelerations: the step problem of Gauss's principle ---- */
/* Adds the adhesion of a closed contact to the accelerations; the reaction of the problem is then only the
   push. */
static void pull(ev *w, const rub *k)
{
    if (!k->c->fam->adhesion.k)
        return;
    factor_solve(&w->s->minv, k->c->H, w->hand.x1);
    vec_axpy(w->acc, -k->c->adhesion, w->hand.x1, w->n);
}

static bool gauss(ev *w)
{
    factor_solve(&w->s->minv, w->f, w->acc);
    stand(w);
    for (int i = 0; i < w->hand.nact; i++)
        pull(w, w->hand.act[i]);
    instant_t x = now(w);
    return instant_gauss(&x, w->v, w->acc);
}

/* Accelerations at time t + h, if those of the current time stay constant until then. Slip that starts from
   rest is treated as if it started then: its direction is that of its acceleration. */
bool ev_ahead(ev *w, double h, double *acc)
{
    double t = w->t, *q = w->q, *v = w->v, *now_acc = w->acc;
    for (int k = 0; k < w->n; k++) {
        w->start.qx[k] = q[k] + h * (v[k] + 0.5 * h * now_acc[k]);
        w->start.vx[k] = v[k] + h * now_acc[k];
    }
    w->hand.nact = 0;
    for (int i = 0; i < w->nrub; i++) {
        w->rub[i].now.held = w->rub[i].start;
        if (w->rub[i].mode != MODE_OPEN)
            w->hand.act[w->hand.nact++] = &w->rub[i];
    }
    w->t = t + h;
    w->q = w->start.qx;
    w->v = w->start.vx;
    w->acc = acc;
    bool ok = rows_again(w) && gauss(w);
    w->t = t;
    w->q = q;
    w->v = v;
    w->acc = now_acc;
    for (int i = 0; i < w->nrub; i++)
        w->rub[i].now.held = false;
    return ok && rows_again(w);
}

/* ---- modes ---- */
typedef struct option {
    contact_mode mode;
    int sign, sigma;
} option;
enum { MAX_CHOICES = 6, MAX_OPEN_QUESTIONS = 6 };
typedef struct choice {
    rub *k;
    option o[MAX_CHOICES];
    int n, at;
} choice;

static void choice_add(choice *c, contact_mode mode, int sign, int sigma)
{
    if (c->n < MAX_CHOICES)
        c->o[c->n++] = (option){ mode, sign, sigma };
}

/* Adds the friction modes that are possible. all: every one, as if order 0 decided nothing. If several
   contacts resist the same slip, order 0 does not determine their friction, so its size at one of them does
   not show whether it slips. */
static void friction_options(ev *w, choice *c, rub *k, const double *rt, double bound, const double *ut,
                             double eps_t, int sigma, bool all)
{
    contact *x = k->c;
    double slip[64], speed = x->d <= 64 ? contact_slip(x, w->v, slip) : 0, f = sqrt(vec_dot(rt, rt, x->d)),
                     a = sqrt(vec_dot(ut, ut, x->d));
    if (x->d == 0) {
        choice_add(c, MODE_CLOSED, 0, sigma);
        return;
    }
    if (contact_slips(speed, k->zero.tol_slip, false)) {
        choice_add(c, MODE_SLIP, slip[0] > 0 ? 1 : -1, sigma);
        return;
    }
    bool sticks = f<bound *(1 - EV_MODE), slides = a> eps_t;
    if (sticks || !slides || all)
        choice_add(c, MODE_STICK, 0, sigma);
    if (sticks && bound > 0 && !all)
        return;
    if (slides && !all) {
        choice_add(c, MODE_SLIP, ut[0] > 0 ? 1 : -1, sigma);
        return;
    }
    if (x->d > 1) {
        choice_add(c, MODE_SLIP, 1, sigma);
        return;
    }
    int first = slides ? (ut[0] > 0 ? 1 : -1) : rt[0] > 0 ? -1 : 1;
    choice_add(c, MODE_SLIP, first, sigma);
    choice_add(c, MODE_SLIP, -first, sigma);
}

/* Adds a hovering mode for each slipping mode among the first n options. */
static void hover_options(choice *c, int n)
{
    for (int i = 0; i < n; i++)
        if (c->o[i].mode == MODE_SLIP)
            choice_add(c, MODE_HOVER, c->o[i].sign, 1);
}

/* The modes of a contact that order 0 leaves possible. */
static void options_of(ev *w, int i, choice *c, bool all)
{
    rub *k = w->hand.act[i];
    contact *x = k->c;
    const contact_family *f = x->fam->f;
    int a = contact_has_normal(x);
    const double *r = w->hand.rr + k->row, *u = w->hand.u + k->row;
    double eps_u = 0, eps_t, eps_r = 0, size = w->sizes.size * k->grip_t, mu, radius;
    /* gap and slip may have different units */
    for (int j = a; j < contact_row_count(x); j++)
        size = fmax(size, fabs(w->hand.b[k->row + j]) + contact_size(x, contact_row(x, j), w->acc));
    eps_t = EV_MODE * size;
    if (a) {
        size = fmax(fabs(w->hand.b[k->row]) + contact_size(x, x->H, w->acc), w->sizes.size * k->grip_n);
        eps_u = EV_MODE * size;
        eps_r = eps_u / fmax(w->hand.W[(size_t)k->row * w->hand.pr.m + k->row], SIZE_LEAST);
    }
    mu = w->hand.cone[i].mu;
    radius = w->hand.cone[i].radius;
    *c = (choice){ .k = k };
    if (f->relation == REL_BILATERAL) {
        int s = r[0] < 0 ? -1 : 1;
        friction_options(w, c, k, r + a, mu * fabs(r[0]) + radius, u + a, eps_t, s, all);
        if (x->d && (all || fabs(r[0]) <= eps_r))
            friction_options(w, c, k, r + a, mu * fabs(r[0]) + radius, u + a, eps_t, -s, all);
        return;
    }
    if (f->relation == REL_CLOSED) {
        friction_options(w, c, k, r, radius, u, eps_t, 1, all);
        return;
    }
    bool opens = u[0] > eps_u && r[0] <= eps_r, stays = r[0] > eps_r;
    if (!opens || all)
        friction_options(w, c, k, r + a, mu * r[0] + radius, u + a, eps_t, 1, all);
    int slips = c->n;
    if (!stays || all)
        choice_add(c, MODE_OPEN, 0, 1);
    if (all && k->series.most)
        hover_options(c, slips);
}

static void option_take(choice *c)
{
    const option *o = &c->o[c->at];
    c->k->mode = o->mode;
    c->k->sign = o->sign;
    c->k->sigma = o->sigma;
}

/* Sign of the bound minus friction just after this time: the smallest of both directions in one dimension. */
static int cone_sign(ev *w, rub *k, double h)
{
    double f[w->width];
    int K = w->K - 1, worst = 1;
    bool given = k->c->fam->f->relation == REL_CLOSED || k->c->fam->f->friction == FRICTION_TRESCA;
    if (k->c->d == 1 && !ev_frame_turns(k)) {
        for (int s = -1; s <= 1; s += 2) {
            for (int j = 0; j <= K; j++)
                f[j] = (given ? k->series.bound[j] : series_mul(k->series.beta, k->series.rn, j)) -
                       s * k->series.rt[j];
            int x = ev_sign(w, f, 0, K, h, ev_zero_friction(w, k));
            if (x < 0)
                worst = -1;
        }
        return worst;
    }
    double b[w->width], size = ev_zero_friction(w, k);
    bool turned = ev_frame_turns(k);
    const double *rn = turned ? k->series.fn : k->series.rn;
    for (int j = 0; j <= K; j++)
        b[j] = given ? k->series.bound[j] : series_mul(k->series.beta, rn, j);
    for (int j = 0; j <= K; j++)
        f[j] = series_mul(b, b, j) - ev_friction2(w, k, j);
    return ev_sign(w, f, 0, K, h, size * fmax(fabs(b[0]), size));
}

/* Does a part of the bound act, more than nothing and at most all of it? */
static bool hovers(ev *w, rub *k, double h)
{
    int K = w->K - 1;
    double rest[w->width], zero = ev_zero_force(w, k->grip_t);
    for (int j = 0; j <= K; j++)
        rest[j] = k->series.most[j] - k->series.bound[j];
    return ev_sign(w, k->series.bound, 0, K, h, zero) > 0 && ev_sign(w, rest, 0, K, h, zero) >= 0;
}

static bool mode_holds(ev *w, rub *k, double h)
{
    int K = w->K;
    const contact *c = k->c;
    double zero_r = ev_zero_force(w, k->grip_n), zero_g = ev_zero_rate(w, k->grip_n) * h * h;
    /* a reaction that counts as 0 for a closed contact must give an acceleration that counts as 0 for an open
       one */
    if (k->candidate && c->fam->f->relation == REL_GAP)
        zero_g = fmax(zero_g, 0.5 * k->grip_n * k->grip_n * zero_r * h * h);
    bool rates = c->fam->f->of_rates;
    if (rates)
        zero_g /= h;
    k->zero.zero_gap = zero_g;
    /* likewise, a friction force that counts as 0 for sticking contacts must give a slip acceleration that
       counts as 0 */
    k->zero.zero_slip = fmax(ev_zero_rate(w, k->grip_t),
                             w->hand.nact * k->grip_t * k->grip_t * ev_zero_force(w, k->grip_t)) *
                        h;
    if (k->mode == MODE_OPEN)
        return !k->candidate || ev_sign(w, k->series.g, rates ? 1 : 2, K - rates, h, zero_g) >= 0;
    if (c->fam->f->relation == REL_GAP && ev_sign(w, ev_normal(k), 0, K - 1, h, zero_r) < 0)
        return false;
    if (c->fam->f->relation == REL_BILATERAL && c->d) {
        double f[w->width];
        for (int j = 0; j < K; j++)
            f[j] = k->sigma * ev_normal(k)[j];
        if (ev_sign(w, f, 0, K - 1, h, zero_r) < 0)
            return false;
    }
    if (k->mode == MODE_STICK)
        return cone_sign(w, k, h) >= 0;
    if (k->mode == MODE_HOVER && !hovers(w, k, h))
        return false;
    if (ev_slips(k) && k->start)
        return ev_value(w, k->series.speed, K - 1, h) > EV_SLIDES * w->sizes.size * k->grip_t * h;
    if (ev_slips(k)) {
        if (k->series.speed[0] > fmax(k->zero.tol_slip, 0))
            return true;
        return ev_sign(w, k->series.speed, 1, K - 1, h, k->zero.zero_slip) > 0;
    }
    return true;
}

static bool consistent(ev *w)
{
    double h = w->start.start_piece ? w->series.natural : ev_scale(w);
    w->sizes.size_tried = fmax(w->sizes.size_tried, w->sizes.size);
    if (w->linear.contradicts)
        return false;
    for (int i = 0; i < w->nrub; i++)
        if (w->rub[i].candidate && !mode_holds(w, &w->rub[i], h))
            return false;
    return true;
}

/* Does a slip start from rest in two or more directions? */
static bool needs_start(ev *w)
{
    bool any = false;
    for (int i = 0; i < w->nrub; i++) {
        rub *k = &w->rub[i];
        double slip[64];
        k->start = ev_slips(k) && k->c->d > 1 && k->c->d <= 64 &&
                   !contact_slips(contact_slip(k->c, w->v, slip), k->zero.tol_slip, false);
        any |= k->start;
    }
    return any;
}

/* The first step of slip from rest, in the current modes. False: none was found; other modes may have one. */
static bool start_from_rest(ev *w)
{
    w->start.starting = true;
    w->start.elapsed = 0;
    w->start.start_unit = w->series.last_natural > 0 ? fmin(w->series.last_natural, w->o->duration)
                                                     : w->o->duration;
    return slip_start(w);
}

static bool try_options(ev *w, choice *c, int n, bool *found)
{
    *found = false;
    for (int i = 0; i < n; i++)
        c[i].at = 0;
    for (;;) {
        for (int i = 0; i < n; i++)
            option_take(&c[i]);
        bool starts = needs_start(w), begun = starts && start_from_rest(w);
        if (!starts && !ev_series(w))
            return false;
        if (starts == begun && consistent(w)) {
            *found = true;
            return true;
        }
        w->start.starting = w->start.start_piece = false;
        int i = 0;
        while (i < n && ++c[i].at == c[i].n)
            c[i++].at = 0;
        if (i == n)
            return true;
    }
}

/* The contacts that take part are those whose mode must be decided; all others are open. */
static void take_candidates(ev *w)
{
    w->hand.nact = 0;
    for (int i = 0; i < w->nrub; i++)
        if (w->rub[i].candidate)
            w->hand.act[w->hand.nact++] = &w->rub[i];
        else
            w->rub[i].mode = MODE_OPEN;
}

static void candidates(ev *w)
{
    for (int i = 0; i < w->nrub; i++) {
        rub *k = &w->rub[i];
        bool was = k->mode != MODE_OPEN;
        k->candidate = k->c->fam->f->relation != REL_GAP ||
                       ((was || *k->c->gap <= k->zero.tol_gap) &&
                        fabs(k->un) <= fmax(k->zero.tol_u, was ? 1e3 * k->zero.tol_u : 0));
    }
    take_candidates(w);
}

/* No accelerations satisfy the laws. If this is Painleve's paradox, a shock without a collision follows. */
static bool jam(ev *w)
{
    instant_t x = now(w);
    contact_problem failed = w->hand.pr;
    const contact *c = instant_paradox(&x, w->v);
    factor_solve(&w->s->minv, w->f, w->acc);
    if (!c) {
        w->hand.pr = failed;
        return unsolved(w);
    }
    bool ok = instant_jam(&x, w->acc, w->v);
    const char *what = paradox_text(w->r->a, c, ev_number(w, w->t), ok);
    if (!ok)
        return ev_fail(w, c->fam->f->at, what);
    w->r->note = what;
    ev_round(w);
    instant_account(&x, w->v, &w->c->books, w->r->a);
    return true;
}

static bool accelerations(ev *w)
{
    candidates(w);
    w->hand.trying = true;
    bool found = gauss(w), jammed = !found && jam(w);
    w->hand.trying = false;
    if (!jammed)
        return found;
    if (!ev_survey(w))
        return false;
    candidates(w);
    return gauss(w);
}

/* Accelerations were found. If a contact is pressed on by its own friction, count how many other solutions
   there are. */
static bool count_ways(ev *w)
{
    instant_t x = now(w);
    x.cone = w->hand.cone;
    x.off = w->hand.off;
    x.r = w->hand.rr;
    x.dir = w->hand.dir;
    if (w->hand.nact == 0 || !instant_pressed(&x))
        return true;
    factor_solve(&w->s->minv, w->f, w->acc);
    int ways = instant_ways(&x, w->acc, w->v, w->a);
    if (!gauss(w))
        return false;
    if (ways > 1) {
        w->r->count.branch_choices++;
        if (!w->r->note)
            w->r->note = ways_text(&x, ways, w->r->a, ev_number(w, w->t));
    }
    return true;
}

bool ev_decide(ev *w)
{
    bool found;
    w->sizes.decided = w->t;
    w->sizes.size_tried = 0;
    w->start.start_failed = false;
    if (!accelerations(w) || !count_ways(w))
        return false;
    for (int i = 0; i < w->hand.nact; i++) {
        rub *k = w->hand.act[i];
        int a = contact_has_normal(k->c);
        k->r0 = a ? w->hand.rr[k->row] : 0;
        for (int j = 0; j < k->c->d; j++)
            k->rt0[j] = w->hand.rr[k->row + a + j];
    }
    if (!(w->o->duration > 0)) {
        for (int i = 0; i < w->hand.nact; i++)
            w->hand.act[i]->mode = w->hand.act[i]->r0 > 0 || w->hand.act[i]->c->fam->f->relation != REL_GAP
                                       ? (w->hand.act[i]->c->d ? MODE_STICK : MODE_CLOSED)
                                       : MODE_OPEN;
        return true;
    }
    if (!w->choice)
        w->choice = arena_array(w->a, choice, w->nrub + 1);
    choice *c = w->choice;
    for (int pass = 0; pass < 4; pass++) {
        w->linear.split = pass & 1;
        for (int i = 0; i < w->hand.nact; i++)
            options_of(w, i, &c[i], pass > 1);
        if (!try_options(w, c, w->hand.nact, &found))
            return false;
        if (found)
            return true;
        if (pass && w->hand.nact > MAX_OPEN_QUESTIONS)
            break;
        /* the series has overwritten these values: compute order 0 again */
        if (!ev_survey(w))
            return false;
        take_candidates(w);
        if (!gauss(w))
            return false;
    }
    const rub *k = w->hand.nact ? w->hand.act[0] : &w->rub[0];
    return ev_fail(w, k->c->fam->f->at,
                   arena_printf(w->r->a,
                                w->start.start_failed
                                    ? "the slip of '%s' could not be started at t = %s; use sweeping()"
                                    : "no contact mode of '%s' holds just after t = %s; use sweeping()",
                                contact_name(k->c, w->r->a), ev_number(w, w->t)));
}
