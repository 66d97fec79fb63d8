/* sweep_sample: what is stored of an instant: the state, energies, and the status and forces of each contact.
 */
#include <math.h>
#include <string.h>
#include "clock/later.h"
#include "program/ahead.h"
#include "sweep.h"
#include "base/tolerances.h"

struct sample_later {
    later_ops ops;
    sums_ahead *kinetic, *potential;
    double *kinetics, *potentials; /* LANES */
};

static void show(const contact *c, const double *map, const double *x, double scale, double *out)
{
    int shown = c->fam->shown;
    if (shown == 1 && c->d == 1) {
        out[0] = scale * vec_dot(map, x, 1);
        return;
    }
    if (shown == 1 && c->d > 1 && !c->fam->f->slip_given) {
        out[0] = scale * sqrt(vec_dot(x, x, c->d));
        return;
    }
    for (int i = 0; i < shown; i++)
        out[i] = scale * vec_dot(map + (size_t)i * c->d, x, c->d);
}

/* Members of near pairs that are far apart: their gaps; they are open without force. */
static void sample_far(sweep *w, contact_result *r, const family *fam, size_t first)
{
    size_t ns = (size_t)r->nslip, all = (size_t)r->members, m = 0;
    int32_t index[MAX_INDEX] = { 0 };
    memset(r->rn + first, 0, all * sizeof(double));
    if (ns) {
        memset(r->rt + first * ns, 0, all * ns * sizeof(double));
        memset(r->slip + first * ns, 0, all * ns * sizeof(double));
    }
    memset(r->status + first, STATUS_OPEN, all);
    for (bool any = index_first(&fam->f->over, index); any; any = index_next(&fam->f->over, index), m++)
        r->gap[first + m] = fam->f->pair.listed ? shapes_room_between(w->s->shapes, fam->f, index)
                                                : term_value(&fam->gap, &w->s->in, index);
}

/* A family of gaps without friction with all its members in order: values are copied from the table. */
static bool sample_plain(const sweep *w, size_t f, int64_t at, double over, bool instant)
{
    const contact_table *t = &w->contacts.table;
    const contact_result *r = &w->r->contact[f];
    size_t from = t->from[f], n = t->from[f + 1] - from, m = (size_t)(at * r->members);
    if (w->s->family[f].d || w->p->contact[f].relation == REL_CLOSED || w->p->contact[f].of_rates ||
        w->s->family[f].adhesion.k || n != (size_t)r->members || n == 0)
        return false;
    const double *P = (instant ? t->r : t->P) + t->first[from];
    memcpy(r->gap + m, t->gap + from, n * sizeof *r->gap);
    for (size_t i = 0; i < n; i++)
        r->rn[m + i] = instant ? P[i] : over * P[i];
    for (size_t i = 0; i < n; i++)
        r->status[m + i] = t->closed[from + i] ? STATUS_SLIP : STATUS_OPEN;
    return true;
}

/* Reactions, gap and status of a contact; its slip is stored in x4. */
static void sample_contact(sweep *w, const contact_state *k, int64_t at, double over, bool instant)
{
    contact *c = k->c;
    contact_result *r = k->out;
    size_t m = (size_t)(at * r->members + c->member), ns = (size_t)r->nslip;
    const double *P = instant ? k->r : k->P;
    int a = k->normal;
    double slip = 0, f = instant ? 1 : over;
    if (c->fam->f->of_rates) {
        system_at(w->s, w->t, w->q, w->v);
        contact_rows(w->s, c, w->M, false);
    }
    r->gap[m] = contact_kept_gap(c, w->v);
    r->rn[m] = a ? f * P[0] - (instant && sticks_on(w, k) ? c->adhesion : 0) : c->normal;
    if (sweep_far(w, k)) {
        memset(w->room.x4, 0, (size_t)c->d * sizeof *w->room.x4);
        memset(r->rt + m * ns, 0, ns * sizeof *r->rt);
    } else if (c->fam->brakes) {
        r->rt[m * ns] = f * P[1];
        slip = r->slip[m * ns] = sweep_brake_slip(c, w->v, w->hand.brake.speed);
        r->status[m] = status_of(c, closed(w, k), slip > w->hand.brake.rest);
        return;
    } else if (c->fam->d) {
        if (!closed(w, k) && !k->offset_fixed) {
            system_at(w->s, w->t, w->q, w->v);
            contact_rows(w->s, c, w->M, false);
        }
        slip = contact_slip(c, w->v, w->room.x4);
        if (turns_its_slip(k) && !instant)
            for (size_t i = 0; i < ns; i++)
                r->rt[m * ns + i] = f * P[(size_t)a + i];
        else
            show(c, c->show_force, P + a, f, r->rt + m * ns);
    }
    r->status[m] = status_of(c, closed(w, k), contact_slips(slip, k->tol_slip, k->now.held));
}

static void sample_rough(sweep *w, const contact_state *k, int64_t at, double over, bool instant)
{
    const contact_result *r = k->out;
    sample_contact(w, k, at, over, instant);
    if (k->c->fam->d && !k->c->fam->brakes)
        show(k->c, k->c->show, w->room.x4, 1, r->slip + (at * r->members + k->c->member) * r->nslip);
}

/* Gaps between shapes at the state that is kept: a step holds normals and points, and goes on with them.
   from, end: the points of a pair. */
static void sample_pair(sweep *w, const family *fam, size_t from, size_t end, double *gap)
{
    contact_state *const *state = w->contacts.state;
    const contact_family *f = fam->f;
    held_points held;
    bool far = true;
    double least = INFINITY;
    for (size_t i = from; i < end; i++)
        far = far && shapes_far(w->s->shapes, f, state[i]->c->index);
    if (far)
        return;
    shapes_measure(w->s->shapes, f, state[from]->c->index, &held);
    for (size_t i = from; i < end; i++) {
        double *own = &gap[state[i]->c->member];
        *own = term_value(&fam->gap, &w->s->in, state[i]->c->index);
        if (!shapes_idle(w->s->shapes, f, state[i]->c->index))
            least = fmin(*own, least);
    }
    for (size_t i = from; i < end; i++) /* points that never touch are no nearer than those that may */
        gap[state[i]->c->member] = larger(gap[state[i]->c->member], least);
    shapes_hold_again(w->s->shapes, f, state[from]->c->index, &held);
}

static void sample_shapes(sweep *w, size_t f, int64_t at)
{
    const contact_table *t = &w->contacts.table;
    const family *fam = &w->s->family[f];
    const contact_result *r = &w->r->contact[f];
    contact_state *const *state = w->contacts.state;
    for (size_t i = t->from[f], next = i; i < t->from[f + 1]; i = next) {
        int64_t pair = state[i]->c->member / fam->f->slots;
        while (next < t->from[f + 1] && state[next]->c->member / fam->f->slots == pair)
            next++;
        sample_pair(w, fam, i, next, r->gap + at * r->members);
    }
}

static void sample_contacts(sweep *w, int64_t at, double over, bool instant)
{
    const contact_table *t = &w->contacts.table;
    system_at(w->s, w->t, w->q, w->v);
    if (w->hand.brake.on) {
        w->hand.brake.speed = sweep_brake_speed(w, w->v);
        w->hand.brake.rest = sweep_brake_rest(w);
    }
    for (size_t f = 0; f < w->p->ncontact; f++) {
        contact_result *r = &w->r->contact[f];
        if (!r->kept || sample_plain(w, f, at, over, instant))
            continue;
        if (near_fits(&w->p->contact[f]))
            sample_far(w, r, &w->s->family[f], (size_t)(at * r->members));
        for (size_t i = t->from[f]; i < t->from[f + 1]; i++)
            sample_rough(w, w->contacts.state[i], at, over, instant);
    }
    if (!w->s->shapes)
        return;
    system_at(w->s, w->t, w->q, w->v);
    shapes_place(w->s->shapes, &w->s->in);
    for (size_t f = 0; f < w->p->ncontact; f++)
        if (w->r->contact[f].kept && w->p->contact[f].pair.touch)
            sample_shapes(w, f, at);
}

/* v.M v without first-order dofs, which have no kinetic energy. */
static double second_order_norm2(sweep *w)
{
    arena_pos mark = arena_mark(w->scratch);
    double *v = arena_array(w->scratch, double, w->n);
    for (int i = 0; i < w->n; i++)
        v[i] = w->p->order[i] == 1 ? 0 : w->v[i];
    double norm2 = mass_norm2(w->s, w->M, v);
    arena_release(w->scratch, mark);
    return norm2;
}

double sweep_kinetic(sweep *w, double *shown)
{
    double kin = 0.5 * (w->s->first_order ? second_order_norm2(w) : mass_norm2(w->s, w->M, w->v));
    *shown = kin;
    if (w->s->kinetic.n) {
        system_at(w->s, w->t, w->q, w->v);
        *shown = system_sum(w->s, &w->s->kinetic);
    }
    return kin;
}

double sweep_potential(sweep *w)
{
    if (!w->s->potential.n)
        return 0;
    system_at(w->s, w->t, w->q, w->v);
    return system_sum(w->s, &w->s->potential);
}

void sweep_open_books(sweep *w)
{
    double shown, kinetic = sweep_kinetic(w, &shown);
    books_open(w->account.books, kinetic, sweep_potential(w));
}

/* Accelerations just after the current time; if there is no solution, the mean over the step. */
static bool sample_gauss(sweep *w, double over, bool instant)
{
    double residual = w->r->residual;
    if (w->fresh && w->s->base &&
        !instant) /* the next step uses them too: computing them again changes nothing */
        return true;
    w->policy.trial = !instant;
    w->policy.effort = instant ? EFFORT_ALL : EFFORT_LITTLE;
    w->fresh = sweep_gauss(w) || (instant && sweep_jam(w, residual) && sweep_gauss(w));
    if (w->fresh && instant)
        sweep_ways(w);
    w->policy.trial = false;
    w->policy.effort = EFFORT_ALL;
    if (w->fresh || instant)
        return w->fresh;
    sweep_forget(w, residual);
    w->r->count.averaged++;
    for (int i = 0; i < w->n; i++)
        w->acc[i] = over * (w->v[i] - w->v1[i]);
    return true;
}

/* ---- accelerations that can be computed later from a sample ---- */
/* No step uses them, so they are computed when they are read; until then their column contains the forces.
   The status of contacts is that of the sample, and its reactions are the initial guess. So the problem is
   the same, whether it is solved at once or later. */
struct gauss_later {
    later_ops ops;
    double *first; /* of the first sample, computed with its forces */
    int64_t at;    /* the sample for which they are computed; -1: none */
    /* If reactions of a family are not stored: which contacts are closed at each sample. */
    bool unkept, *closed;
    int64_t room; /* allocated number of samples */
};

double sweep_reaction(const sweep *w, const contact_state *k, int j)
{
    const struct gauss_later *g = w->quick.gauss;
    if (!g || g->at < 0)
        return k->r[j];
    const contact_result *r = k->out;
    if (!r->kept)
        return 0;
    size_t at = (size_t)(g->at * r->members + k->c->member);
    return j < k->normal ? r->rn[at] : r->rt[at * (size_t)r->nslip + (size_t)(j - k->normal)];
}

/* Reports of solvers concern the steps, so anything found here is restored. */
static bool gauss_of(sweep *w, const results *r, int64_t at, double *acc)
{
    struct gauss_later *g = w->quick.gauss;
    double residual = w->r->residual;
    run_counts count = w->r->count;
    const char *solver = w->r->solver;
    g->at = at;
    w->policy.trial = true;
    w->policy.effort = EFFORT_LITTLE;
    bool found = sweep_gauss(w);
    w->policy.trial = false;
    w->policy.effort = EFFORT_ALL;
    g->at = -1;
    if (!found)
        sweep_forget(w, residual);
    w->r->residual = residual;
    w->r->count = count;
    w->r->solver = solver;
    const double *v = r->v + at * w->n, *before = v - w->n;
    double over = 1 / (r->t[at] - r->t[at - 1]);
    for (int i = 0; i < w->n; i++)
        acc[i] = found ? w->acc[i] : over * (v[i] - before[i]);
    return found;
}

/* Sets the state to that of a sample. */
static void state_again(sweep *w, const results *r, int64_t at)
{
    size_t first = (size_t)at * (size_t)w->n;
    w->t = r->t[at];
    vec_copy(w->q, r->q + first, w->n);
    vec_copy(w->v, r->v + first, w->n);
}

static void contacts_again(sweep *w, int64_t at)
{
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        contact_state *k = w->contacts.state[i];
        if (!k->out->kept) {
            w->contacts.table.closed[i] = w->quick.gauss->closed[(size_t)at * w->contacts.nstate + i];
            continue;
        }
        contact_status is = k->out->status[at * k->out->members + k->c->member];
        w->contacts.table.closed[i] = is != STATUS_OPEN;
        k->tol_slip = is == STATUS_SLIP ? 0 : INFINITY;
        k->now.held = false;
    }
}

typedef struct gauss_sample {
    sweep *w;
    int64_t at;
    double *acc;
    bool *found;
} gauss_sample;

static void gauss_again(results *r, const void *ud, arena *scratch)
{
    const gauss_sample *x = ud;
    sweep *w = x->w;
    w->scratch = w->crowd.list.scratch = w->crowd.chain.scratch = scratch;
    state_again(w, r, x->at);
    contacts_again(w, x->at);
    if (!(r->disk.absent & PART_ACC))
        vec_copy(w->f, r->acc + x->at * w->n, w->n);
    *x->found = gauss_of(w, r, x->at, x->acc);
}

static bool gauss_later(void *of, const results *r, int64_t at, double *acc)
{
    sweep *w = of;
    bool found = true;
    (void)r;
    if (at == 0)
        vec_copy(acc, w->quick.gauss->first, w->n);
    else
        results_scratch(w->r, gauss_again, &(gauss_sample){ w, at, acc, &found });
    return found;
}

/* Are the stored components of friction those of the problem? */
static bool shown_as_they_are(const contact *c)
{
    if (c->d != c->fam->shown)
        return false;
    for (int i = 0; i < c->d; i++)
        for (int j = 0; j < c->d; j++)
            if (c->show_force[i * c->d + j] != (i == j))
                return false;
    return true;
}

static void closed_note(sweep *w, int64_t at)
{
    struct gauss_later *g = w->quick.gauss;
    size_t n = w->contacts.nstate;
    if (at >= g->room) {
        int64_t room = w->r->cap > 2 * g->room ? w->r->cap : 2 * g->room;
        bool *more = arena_array(w->a, bool, (size_t)room *n);
        if (at)
            memcpy(more, g->closed, (size_t)at * n * sizeof *more);
        g->closed = more;
        g->room = room;
    }
    memcpy(g->closed + (size_t)at * n, w->contacts.table.closed, n * sizeof *g->closed);
}

static bool gauss_may_wait(const sweep *w)
{
    bool all_kept = !(w->o->every > w->h);
    if (!w->linear || !all_kept || w->s->base || w->s->first_order || w->s->past || w->p->nevent ||
        w->stiffness != 0 || w->o->keep_going || w->contacts.near.nof || w->s->minv.kind != FACTOR_DIAGONAL)
        return false;
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        const contact_state *k = w->contacts.state[i];
        const contact *c = k->c;
        if (c->fam->d && (!k->out->kept || !c->fam->f->slip_given || !shown_as_they_are(c)))
            return false;
    }
    return true;
}

static const later_ops *offer_gauss(sweep *w)
{
    if (!gauss_may_wait(w))
        return NULL;
    struct gauss_later *g = w->quick.gauss = arena_make(w->a, struct gauss_later);
    *g = (struct gauss_later){ .ops = { .parts = PART_ACC,
                                        .absent = w->s->force_constant ? PART_ACC : 0,
                                        .accelerations = gauss_later },
                               .first = arena_array(w->a, double, (size_t)w->n + 1),
                               .at = -1 };
    for (size_t i = 0; i < w->p->ncontact; i++)
        g->unkept |= !w->r->contact[i].kept;
    return &g->ops;
}

/* ---- samples of quick models, whose other columns are computed later ---- */
/* The column of accelerations contains the forces until those are computed. If a contact sticks,
   accelerations are computed at once: their problem may need the general method, which works only during the
   run. */
void sweep_sample_state(sweep *w, int64_t at)
{
    const contact_state *k = w->contacts.nstate ? w->contacts.state[0] : NULL;
    results *r = w->r;
    size_t first = (size_t)at * (size_t)w->n;
    const double *kept = w->f;
    vec_copy(r->q + first, w->q, w->n);
    vec_copy(r->v + first, w->v, w->n);
    if (k) {
        double over = w->t > w->account.step_from ? 1 / (w->t - w->account.step_from) : 0;
        sample_contact(w, k, at, over, at == 0);
        if (k->out->status[at] == STATUS_STICK) {
            if (at > 0)
                sample_gauss(w, over, false);
            kept = w->acc;
        }
    }
    if (!(r->disk.absent & PART_ACC))
        vec_copy(r->acc + first, kept, w->n);
}

static bool later_accelerations(void *of, const results *r, int64_t at, double *acc)
{
    sweep *w = of;
    contact_state *k = w->contacts.nstate ? w->contacts.state[0] : NULL;
    const double *kept = r->disk.absent & PART_ACC ? NULL : r->acc + (size_t)at * (size_t)w->n;
    contact_status is = k ? k->out->status[at] : STATUS_OPEN;
    if (is == STATUS_STICK) {
        vec_copy(acc, kept, w->n);
        return true;
    }
    state_again(w, r, at);
    if (kept)
        vec_copy(w->f, kept, w->n);
    if (k) {
        w->contacts.table.closed[k->at] = is != STATUS_OPEN;
        k->tol_slip = 0; /* it slips, by more than counted as 0 then */
    }
    sweep_gauss(w);
    vec_copy(acc, w->acc, w->n);
    return true;
}

static void later_slips(void *of, results *r)
{
    sweep *w = of;
    const contact_state *k = w->contacts.nstate ? w->contacts.state[0] : NULL;
    for (int64_t at = 0; k && k->c->fam->d && at < r->samples; at++) {
        contact_slip(k->c, r->v + (size_t)at * (size_t)w->n, w->room.x4);
        show(k->c, k->c->show, w->room.x4, 1, k->out->slip + at * k->out->nslip);
    }
}

static void later_energies(void *of, const results *r, int64_t from, int n, energies *e)
{
    sweep *w = of;
    struct sample_later *l = w->quick.samples;
    const double *t = r->t + from, *q = r->q + (size_t)from * (size_t)w->n,
                 *v = r->v + (size_t)from * (size_t)w->n;
    sums_ahead_run(l->potential, r->param, t, q, v, n, l->potentials);
    if (w->s->kinetic.n)
        sums_ahead_run(l->kinetic, r->param, t, q, v, n, l->kinetics);
    for (int i = 0; i < n; i++, v += w->n) {
        double kinetic = 0.5 * mass_norm2(w->s, w->M, v);
        e[i] = (energies){ .kinetic = kinetic,
                           .shown = w->s->kinetic.n ? l->kinetics[i] : kinetic,
                           .potential = l->potentials[i] };
    }
}

/* Does a normal force open the contact, in whatever direction it slips? Then its problem is solved in closed
   form for any forces. */
static bool never_jams(sweep *w, contact_state *k)
{
    const contact *c = k->c;
    if (!k->normal)
        return true;
    sweep_columns_put(w, k, true);
    const double *A = sweep_lone_matrix(w, k, true);
    k->stamp_m = k->alone.stamp_am = -1; /* they belong to a cone that does not exist yet */
    return A[0] > (1 + JAMS_APART) * c->mu * sqrt(vec_dot(A + 1, A + 1, c->d));
}

const later_ops *sweep_offer_later(sweep *w)
{
    contact_state *k = w->contacts.nstate ? w->contacts.state[0] : NULL;
    if (!w->quick.steps || w->s->minv.sparse || (k && !(k->out->kept && never_jams(w, k))))
        return offer_gauss(w);
    struct sample_later *l = w->quick.samples = arena_make(w->a, struct sample_later);
    *l = (struct sample_later){ .ops = { .parts = PART_ACC | PART_ENERGY | PART_SLIP,
                                         .absent = PART_ENERGY | PART_SLIP,
                                         .accelerations = later_accelerations,
                                         .slips = later_slips,
                                         .energies = later_energies },
                                .kinetic = sums_ahead_new(w->a, w->p, &w->p->kinetic),
                                .potential = sums_ahead_new(w->a, w->p, &w->p->potential),
                                .kinetics = arena_array(w->a, double, LANES),
                                .potentials = arena_array(w->a, double, LANES) };
    if (w->s->force_constant && !(k && k->c->fam->d))
        l->ops.absent |= PART_ACC;
    return l->kinetic && l->potential ? &l->ops : NULL;
}

/* from the problem of accelerations */
static void reaction_take(const sweep *w, contact_state *k)
{
    for (int j = 0; j < rows_of(k); j++)
        k->r[j] = w->hand.rr[k->row + j];
    if (k->c->fam->brakes)
        k->r[rows_of(k)] = k->rubs[true];
}

/* At the start, forces are those of Gauss's principle, afterwards means over the last step. */
bool sweep_sample(void *of, run_clock *c, int64_t at, energies *e)
{
    sweep *w = of;
    bool instant = at == 0;
    double over = w->t > w->account.step_from ? 1 / (w->t - w->account.step_from) : 0;
    size_t first = (size_t)at * (size_t)w->n;
    bool short_way = later_makes(c->r, PART_ENERGY);
    if (short_way && !instant) {
        sweep_sample_state(w, at);
        return true;
    }
    struct gauss_later *g = w->quick.gauss;
    if ((instant || !g) && !sample_gauss(w, over, instant))
        return false;
    if (instant)
        for (int i = 0; i < w->hand.nact; i++)
            reaction_take(w, w->hand.act[i]);
    if (short_way) {
        sweep_sample_state(w, at);
        return true;
    }
    vec_copy(c->r->q + first, w->q, w->n);
    vec_copy(c->r->v + first, w->v, w->n);
    e->kinetic = sweep_kinetic(w, &e->shown);
    e->potential = sweep_potential(w);
    sample_contacts(w, at, over, instant);
    if (g && instant)
        vec_copy(g->first, w->acc, w->n);
    if (g && g->unkept && later_makes(c->r, PART_ACC))
        closed_note(w, at);
    if (g && !instant && !later_makes(c->r, PART_ACC))
        c->r->count.averaged += !gauss_of(w, c->r, at, c->r->acc + first);
    else if (!(c->r->disk.absent & PART_ACC))
        vec_copy(c->r->acc + first, g && !instant ? w->f : w->acc, w->n);
    if (w->s->base)
        turns_keep(w->p, w->s->base, c->r->q + first, c->r->v + first, c->r->acc + first);
    return true;
}
