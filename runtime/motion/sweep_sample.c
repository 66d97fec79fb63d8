/* sweep_sample: what is kept of an instant: the state, energies, and what each contact does. */
#include <math.h>
#include <string.h>
#include "program/ahead.h"
#include "sweep.h"

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

/* members of near pairs that are far apart: their gaps; they are open and push nothing */
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
        r->gap[first + m] = term_value(&fam->gap, &w->s->in, index);
}

/* A family of gaps without friction, all of its members in their order: they are read from the table. */
static bool sample_plain(const sweep *w, size_t f, int64_t at, double over, bool instant)
{
    const contact_table *t = &w->contacts.table;
    const contact_result *r = &w->r->contact[f];
    size_t from = t->from[f], n = t->from[f + 1] - from, m = (size_t)(at * r->members);
    if (w->s->family[f].d || w->p->contact[f].relation == REL_CLOSED || n != (size_t)r->members || n == 0)
        return false;
    const double *P = (instant ? t->r : t->P) + t->first[from];
    memcpy(r->gap + m, t->gap + from, n * sizeof *r->gap);
    for (size_t i = 0; i < n; i++)
        r->rn[m + i] = instant ? P[i] : over * P[i];
    for (size_t i = 0; i < n; i++)
        r->status[m + i] = t->closed[from + i] ? STATUS_SLIP : STATUS_OPEN;
    return true;
}

/* reactions, gap and state of a contact; what it slips by is in x4 */
static void sample_contact(sweep *w, const contact_state *k, int64_t at, double over, bool instant)
{
    contact *c = k->c;
    contact_result *r = k->out;
    size_t m = (size_t)(at * r->members + c->member), ns = (size_t)r->nslip;
    const double *P = instant ? k->r : k->P;
    int a = k->normal;
    double slip = 0, f = instant ? 1 : over;
    r->gap[m] = *c->gap;
    r->rn[m] = a ? f * P[0] : c->normal;
    if (c->fam->d) {
        if (!closed(w, k) && !k->offset_fixed) {
            system_at(w->s, w->t, w->q, w->v);
            contact_rows(w->s, c, w->M, false);
        }
        slip = contact_slip(c, w->v, w->room.x4);
        show(c, c->show_force, P + a, f, r->rt + m * ns);
    }
    r->status[m] = status_of(c, closed(w, k), contact_slips(slip, k->tol_slip, k->now.held));
}

static void sample_rough(sweep *w, const contact_state *k, int64_t at, double over, bool instant)
{
    const contact_result *r = k->out;
    sample_contact(w, k, at, over, instant);
    if (k->c->fam->d)
        show(k->c, k->c->show, w->room.x4, 1, r->slip + (at * r->members + k->c->member) * r->nslip);
}

static void sample_contacts(sweep *w, int64_t at, double over, bool instant)
{
    const contact_table *t = &w->contacts.table;
    system_at(w->s, w->t, w->q, w->v);
    for (size_t f = 0; f < w->p->ncontact; f++) {
        contact_result *r = &w->r->contact[f];
        if (!r->kept || sample_plain(w, f, at, over, instant))
            continue;
        if (near_fits(&w->p->contact[f]))
            sample_far(w, r, &w->s->family[f], (size_t)(at * r->members));
        for (size_t i = t->from[f]; i < t->from[f + 1]; i++)
            sample_rough(w, w->contacts.state[i], at, over, instant);
    }
}

/* rates with those of first-order dofs left out, which have no kinetic energy */
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

/* accelerations to the right of now; where they are not found, the mean over the step instead */
static bool sample_gauss(sweep *w, double over, bool instant)
{
    double residual = w->r->residual;
    w->policy.trial = !instant;
    w->policy.effort = instant ? EFFORT_ALL : EFFORT_LITTLE;
    w->fresh = sweep_gauss(w) || (instant && sweep_jam(w, residual) && sweep_gauss(w));
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

/* ---- samples of quick models, whose other columns are made later ---- */
/* Forces stand in the column of accelerations until those are made.  Where a contact sticks, accelerations
   are found at once: their problem may have to go the long way, which only a run can. */
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

/* the state is that of a sample */
static void state_again(sweep *w, const results *r, int64_t at)
{
    size_t first = (size_t)at * (size_t)w->n;
    w->t = r->t[at];
    vec_copy(w->q, r->q + first, w->n);
    vec_copy(w->v, r->v + first, w->n);
}

static void later_accelerations(void *of, const results *r, int64_t at, double *acc)
{
    sweep *w = of;
    contact_state *k = w->contacts.nstate ? w->contacts.state[0] : NULL;
    const double *kept = r->disk.absent & PART_ACC ? NULL : r->acc + (size_t)at * (size_t)w->n;
    contact_status is = k ? k->out->status[at] : STATUS_OPEN;
    if (is == STATUS_STICK) {
        vec_copy(acc, kept, w->n);
        return;
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

/* Pushing harder opens a contact that slips, whichever way it does: its problem is solved in closed form for
   any forces. */
static bool never_jams(sweep *w, contact_state *k)
{
    const contact *c = k->c;
    if (!k->normal)
        return true;
    sweep_columns_put(w, k, true);
    const double *A = sweep_lone_matrix(w, k, true);
    k->stamp_m = k->alone.stamp_am = -1; /* they belong to a cone that is not there yet */
    return A[0] > (1 + 1e-9) * c->mu * sqrt(vec_dot(A + 1, A + 1, c->d));
}

const later_ops *sweep_offer_later(sweep *w)
{
    contact_state *k = w->contacts.nstate ? w->contacts.state[0] : NULL;
    if (!w->quick.steps || w->s->minv.sparse || (k && !(k->out->kept && never_jams(w, k))))
        return NULL;
    struct sample_later *l = w->quick.samples = arena_make(w->a, struct sample_later);
    *l = (struct sample_later){ .ops = { .absent = PART_ENERGY | PART_SLIP,
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

/* at the start forces are those of Gauss's principle, after that the means over the last step */
bool sweep_sample(void *of, run_clock *c, int64_t at, energies *e)
{
    sweep *w = of;
    bool instant = at == 0;
    double over = w->t > w->account.step_from ? 1 / (w->t - w->account.step_from) : 0;
    size_t first = (size_t)at * (size_t)w->n;
    if (c->r->disk.later && !instant) {
        sweep_sample_state(w, at);
        return true;
    }
    if (!sample_gauss(w, over, instant))
        return false;
    if (instant)
        for (int i = 0; i < w->hand.nact; i++)
            for (int j = 0; j < rows_of(w->hand.act[i]); j++)
                w->hand.act[i]->r[j] = w->hand.rr[w->hand.act[i]->row + j];
    if (c->r->disk.later) {
        sweep_sample_state(w, at);
        return true;
    }
    vec_copy(c->r->q + first, w->q, w->n);
    vec_copy(c->r->v + first, w->v, w->n);
    vec_copy(c->r->acc + first, w->acc, w->n);
    e->kinetic = sweep_kinetic(w, &e->shown);
    e->potential = sweep_potential(w);
    sample_contacts(w, at, over, instant);
    return true;
}
