/* sweep_problem: the current contact problem: its cones, matrix and solution, tolerances, and messages of
   failed runs. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "sweep.h"
#include "base/tolerances.h"

/* ---- failing ---- */
/* Forgets a failure, because an alternative was found. */
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
    const contact *c = w->hand.act[i]->c;
    char residual[32];
    snprintf(residual, sizeof residual, "%.2g", w->hand.pr.residual);
    w->hand.unsolved = true;
    w->policy.failed = w->hand.act[i];
    w->r->residual = fmax(w->r->residual, w->hand.pr.residual);
    if (w->o->keep_going && !w->policy.trial)
        return true;
    const char *why = row_text(c, w->r->a, sweep_number(w, t));
    if (why)
        return results_fail(w->r, c->fam->f->at, why);
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
    if (system_factor(w->s, M, &bad)) {
        w->crowd.by_bodies = w->crowd.bodies && groups_factor(w->crowd.bodies, &w->s->mass_shape, M);
        return true;
    }
    return results_fail(w->r, mass_where(w->p, bad),
                        arena_printf(w->r->a,
                                     "the mass matrix is not positive definite at t = %s, in the row of '%s'",
                                     sweep_number(w, t), dof_name(w->p, bad, w->r->a)));
}

/* ---- sizes and tolerances ---- */
/* Piles are solved less accurately, because each of their digits is expensive. The number of contacts that
   act counts, not that of the model; each additional contact changes the tolerance by 3 %. */
void sweep_tolerance(sweep *w, int contacts)
{
    enum { FEW = 100, MANY = 400 };
    if (!w->hand.tol_follows || contacts == w->hand.tol_contacts)
        return;
    w->hand.tol_contacts = contacts;
    if (contacts <= FEW)
        w->tol = SOLVED_FEW;
    else if (contacts >= MANY)
        w->tol = SOLVED_MANY;
    else
        w->tol = SOLVED_FEW * pow(SOLVED_MANY / SOLVED_FEW, (double)(contacts - FEW) / (MANY - FEW));
    w->r->promised.tolerance = larger(w->r->promised.tolerance, w->tol);
}

void sweep_sizes(sweep *w)
{
    for (int i = 0; i < w->n; i++) {
        double v = fabs(w->v[i]), q = larger(fabs(w->q[i]), w->h * v);
        bool faster = v > w->size.vmax[i], farther = q > w->size.qmax[i];
        if ((!faster && !farther) || set_aside(w, i))
            continue;
        if (faster)
            w->size.vmax[i] = v;
        if (farther)
            w->size.qmax[i] = q;
        w->size.grown[w->size.ngrown++] = i;
    }
}

/* If bodies have a size: the scale of overlaps, which is the change of the gap by a motion of that size; 0:
   the contact has no such body. of_pairs: its family is one of pairs of such bodies. */
static double body_length(const sweep *w, const gap_row *r, bool of_pairs)
{
    const near_list *pairs = &w->contacts.near;
    double hh = 0;
    if (pairs->reach == 0)
        return 0;
    if (of_pairs)
        return pairs->reach;
    for (int k = 0; k < r->n; k++)
        if (pairs->point[r->dof[k]])
            hh += r->H[k] * r->H[k];
    return pairs->reach * sqrt(hh);
}

/* Properties shared by the members of a family. */
typedef struct family_kind {
    size_t f;
    bool of_pairs; /* near_of_points */
    bool still; /* surfaces do not move by themselves, so their rate need not be read from scattered memory */
} family_kind;

static family_kind kind_of(const sweep *w, size_t f)
{
    return (family_kind){ f, near_of_points(&w->p->contact[f]), !w->s->family[f].rate.k };
}

/* For contact i of the table. */
static void gap_tolerances(sweep *w, size_t i, family_kind of)
{
    contact_table *t = &w->contacts.table;
    const gap_row *r = &t->row[i];
    const double *qmax = w->size.qmax, *vmax = w->size.vmax;
    double size = 0, rate = 0, body = body_length(w, r, of.of_pairs), ht = 0;
    for (int k = 0; k < r->n; k++) {
        size += fabs(r->H[k]) * qmax[r->dof[k]];
        rate += fabs(r->H[k]) * vmax[r->dof[k]];
    }
    /* members of a family are of one kind, so they share the scale of overlaps */
    w->size.lengths[of.f] = larger(w->size.lengths[of.f], body > 0 ? body : size);
    if (r->known)
        ht = r->ht;
    else if (!of.still)
        ht = w->contacts.state[i]->c->ht;
    t->tol_gap[i] = GAP_IS_ZERO * size;
    t->tol_u[i] = RATE_IS_ZERO * (rate + fabs(ht));
}

static void slip_tolerance(const sweep *w, contact_state *k)
{
    const contact *c = k->c;
    k->tol_slip = 0;
    for (int i = 0; i < c->d; i++)
        k->tol_slip += RATE_IS_ZERO *
                       (contact_size(c, c->S + (size_t)i * c->n, w->size.vmax) + fabs(c->s0[i]));
}

void sweep_gap_tolerances(sweep *w, contact_state *k)
{
    gap_tolerances(w, (size_t)k->at, kind_of(w, (size_t)(k->c->fam - w->s->family)));
}

void sweep_tolerances(sweep *w, contact_state *k)
{
    sweep_gap_tolerances(w, k);
    slip_tolerance(w, k);
}

/* Computes tolerances of each contact once, although several of its dofs may have grown. */
static void sized(sweep *w, contact_state *k)
{
    if (k->sized == w->size.sized)
        return;
    k->sized = w->size.sized;
    sweep_tolerances(w, k);
}

/* Has one of its dofs grown? */
static bool row_grown(const sweep *w, const gap_row *r)
{
    bool any = r->whole;
    for (int k = 0; k < r->all && !any; k++)
        any = w->size.has_grown[r->dof[k]];
    return any;
}

/* Pairs of points that cannot touch in the step need no tolerances: they are updated when the pair joins a
   step (sweep_whole.c), or with their dofs once they are closer. */
static bool too_far_for_size(const sweep *w, size_t i, family_kind of)
{
    const contact_table *t = &w->contacts.table;
    return of.of_pairs && !t->closed[i] && t->gap[i] > w->contacts.near.far;
}

/* All contacts in order, if many dofs have grown. The tolerance of slip is updated for closed contacts; for
   others when they close (sweep_meet). */
static void sized_in_order(sweep *w)
{
    const contact_table *t = &w->contacts.table;
    for (int i = 0; i < w->size.ngrown; i++)
        w->size.has_grown[w->size.grown[i]] = true;
    for (size_t f = 0; f < w->p->ncontact; f++) {
        bool rough = w->s->family[f].d > 0;
        family_kind of = kind_of(w, f);
        for (size_t i = t->from[f]; i < t->from[f + 1]; i++) {
            if (of.of_pairs && i + FETCHED < t->from[f + 1])
                fetch(t->row[i + FETCHED].H, t->row[i + FETCHED].n);
            if (too_far_for_size(w, i, of) || !row_grown(w, &t->row[i]))
                continue;
            gap_tolerances(w, i, of);
            if (rough && t->closed[i])
                slip_tolerance(w, w->contacts.state[i]);
        }
    }
    memset(w->size.has_grown, 0, (size_t)w->n * sizeof *w->size.has_grown);
    w->size.ngrown = 0;
}

void sweep_sizes_known(sweep *w)
{
    const contact_table *t = &w->contacts.table;
    if (w->size.ngrown == 0)
        return;
    if (8 * w->size.ngrown > w->n) {
        sized_in_order(w);
        return;
    }
    w->size.sized++;
    sweep_by_dof(w);
    for (int i = 0; i < w->size.ngrown; i++)
        for (int j = t->at_dof[w->size.grown[i]]; j < t->at_dof[w->size.grown[i] + 1]; j++)
            sized(w, w->contacts.state[t->of_dof[j]]);
    for (int i = 0; i < t->nall; i++)
        sized(w, w->contacts.state[t->all[i]]);
    w->size.ngrown = 0;
}

/* ---- values that depend on reactions ---- */
static void react_put(const sweep *w, const contact_state *k, double per, double *to)
{
    const contact *c = k->c;
    const double *r = w->hand.rr + k->row;
    to[0] = k->push;
    for (int j = 0; j < c->fam->shown && j < MAX_SLIP; j++) {
        to[1 + j] = 0;
        for (int i = 0; i < c->d; i++)
            to[1 + j] += per * c->show_force[j * c->d + i] * r[k->normal + i];
    }
}

/* The contact that supplies the normal force of k. */
static const contact_state *fed_from(const sweep *w, const contact_state *k)
{
    const contact_table *t = &w->contacts.table;
    size_t of = (size_t)k->c->fam->f->fed_by;
    for (size_t i = t->from[of]; i < t->from[of + 1]; i++)
        if (w->contacts.state[i]->c->member == k->c->member)
            return w->contacts.state[i];
    return NULL;
}

static bool normal_fed(sweep *w, contact_state *k)
{
    contact *c = k->c;
    double was = c->normal;
    if (c->fam->f->fed_by >= 0) {
        const contact_state *by = fed_from(w, k);
        c->normal = by ? by->push : 0;
    } else
        c->normal = term_value(&c->fam->normal, &w->s->in, c->index);
    return fabs(c->normal - was) > w->tol * fabs(was);
}

bool sweep_feed(sweep *w, double h)
{
    double per = h > 0 ? 1 / h : 1;
    bool changed = false;
    if (!w->contacts.feeds)
        return false;
    for (size_t i = 0; i < w->contacts.nstate; i++)
        w->contacts.state[i]->push = 0;
    for (int i = 0; i < w->hand.nact; i++) {
        contact_state *k = w->hand.act[i];
        k->push = k->normal ? per * w->hand.rr[k->row] : k->c->normal;
        if (k->normal && h > 0 && sticks_on(w, k))
            k->push -= k->c->adhesion;
    }
    for (size_t f = 0; f < w->p->ncontact; f++)
        if (w->p->contact[f].read_as)
            memset(w->s->react + REACT * (w->p->contact[f].read_as - 1), 0, REACT * sizeof *w->s->react);
    for (int i = 0; i < w->hand.nact; i++)
        if (w->hand.act[i]->c->fam->f->read_as)
            react_put(w, w->hand.act[i], per, w->s->react + REACT * (w->hand.act[i]->c->fam->f->read_as - 1));
    for (int i = 0; i < w->hand.nact; i++)
        if (w->hand.act[i]->c->fam->f->fed)
            changed |= normal_fed(w, w->hand.act[i]);
    return changed;
}

/* ---- the current problem ---- */
/* Is contact i open at the start of a whole step? It may close in the step; friction whose bound does not
   depend on r_n would act even if it does not. */
static bool open_at_once(const sweep *w, int i)
{
    const contact_table *t = &w->contacts.table;
    int at = w->hand.place[i];
    return w->policy.whole && contact_opens(w->hand.act[i]->c) && !t->closed[at] && t->ahead[at] > 0;
}

/* Coefficient and bound in the units of the problem. In shocks, bounded forces have no effect. */
void sweep_law(void *ud, int i, double speed, double *mu, double *radius)
{
    sweep *w = ud;
    contact *c = w->hand.act[i]->c;
    const contact_family *f = c->fam->f;
    double k = contact_coefficient(c, w->hand.act[i]->now.rests);
    if (f->mu_of_speed) {
        k = contact_mu(w->s, c, w->hand.brake.on ? speed / w->hand.brake.scale : speed);
        if (w->hand.end < 1)
            k = (1 - w->hand.end) * w->hand.act[i]->mu0 + w->hand.end * k;
    }
    friction_bound(c, k, w->hand.step, w->hand.act[i]->now.given, mu, radius);
    if (f->friction == FRICTION_TRESCA && open_at_once(w, i))
        *radius = 0;
}

bool sweep_held(sweep *w, int i, double h)
{
    const contact_state *k = w->hand.act[i];
    const double *r = w->hand.rr + k->row, *rt = r + k->normal;
    double mu, radius;
    if (k->c->d == 0)
        return false;
    w->hand.step = h;
    /* at its speed: friction that decreases with the speed is below its static bound while it slips */
    sweep_law(w, i, k->c->fam->f->mu_of_speed ? contact_slip(k->c, w->v1, w->room.x4) : 0, &mu, &radius);
    return friction_holds(sqrt(vec_dot(rt, rt, k->c->d)), (k->normal ? mu * fabs(r[0]) : 0) + radius);
}

void sweep_cone(sweep *w, int i, int *row)
{
    contact_state *k = w->hand.act[i];
    cone *c = &w->hand.cone[i];
    *c = contact_cone(k->c, *row, k->speed);
    k->row = *row;
    if (c->d && !c->of_speed)
        sweep_law(w, i, 0, &c->mu, &c->radius);
    *row += cone_rows(c);
}

void sweep_room(sweep *w, int contacts, int rows)
{
    if (rows <= w->hand.rows_room && contacts <= w->hand.contacts_room)
        return;
    w->hand.rows_room = rows + rows / 2 + 4;
    w->hand.contacts_room = contacts + contacts / 2 + 4;
    size_t m = (size_t)w->hand.rows_room;
    w->hand.known.offsets = -1;
    w->hand.b = arena_array(w->a, double, m);
    w->hand.off = arena_array(w->a, double, m);
    w->hand.kept_r = arena_array(w->a, double, m);
    w->hand.rr = arena_array(w->a, double, m);
    w->hand.u = arena_array(w->a, double, m);
    w->hand.dir = arena_array(w->a, double, m);
}

void sweep_cones(sweep *w)
{
    act_known *known = &w->hand.known;
    int row = known->cone_rows;
    bool waits = w->policy.whole && known->tresca; /* friction acts from the time at which the gap closes */
    if (!(w->hand.step > 0) || !known->still || waits || known->cones != known->stamp ||
        known->cone_step != w->hand.step || known->cone_end != w->hand.end) {
        row = 0;
        for (int i = 0; i < w->hand.nact; i++)
            sweep_cone(w, i, &row);
        known->made++;
        known->cones = w->hand.step > 0 ? known->stamp : -1;
        known->cone_step = w->hand.step;
        known->cone_end = w->hand.end;
        known->cone_rows = row;
    }
    sweep_room(w, w->hand.nact, row);
    w->hand.pr = (contact_problem){ .n = w->hand.nact,
                                    .m = row,
                                    .cone = w->hand.cone,
                                    .b = w->hand.b,
                                    .r = w->hand.rr,
                                    .u = w->hand.u,
                                    .law = sweep_law,
                                    .ud = w };
}
