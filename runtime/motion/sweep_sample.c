/* sweep_sample: what is kept of an instant: the state, energies, and what each contact does. */
#include <math.h>
#include <string.h>
#include "sweep.h"

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

static void sample_contacts(sweep *w, int64_t at, double over, bool instant)
{
    system_at(w->s, w->t, w->q, w->v);
    for (size_t i = 0; i < w->contacts.near.nof; i++) {
        const family *fam = w->contacts.near.of[i].fam;
        contact_result *r = &w->r->contact[fam - w->s->family];
        if (r->kept)
            sample_far(w, r, fam, (size_t)(at * r->members));
    }
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        contact_state *k = w->contacts.state[i];
        contact *c = k->c;
        contact_result *r = k->out;
        if (!r->kept)
            continue;
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
            show(c, c->show, w->room.x4, 1, r->slip + m * ns);
            show(c, c->show_force, P + a, f, r->rt + m * ns);
        }
        r->status[m] = status_of(c, closed(w, k), contact_slips(slip, k->tol_slip, k->now.held));
    }
}

double sweep_kinetic(sweep *w, double *shown)
{
    double kin = 0.5 * mass_norm2(w->s, w->M, w->v);
    for (int i = 0; w->s->first_order && i < w->n; i++)
        if (w->p->order[i] == 1)
            kin -= 0.5 * w->v[i] * w->f[i];
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
    enum { MANY = 32 };
    double residual = w->r->residual;
    bool crowd = !instant && w->policy.was_at_once && w->hand.nact > MANY;
    w->policy.trial = !instant;
    w->fresh = !crowd && (sweep_gauss(w) || (instant && sweep_jam(w, residual) && sweep_gauss(w)));
    w->policy.trial = false;
    if (w->fresh || instant)
        return w->fresh;
    sweep_forget(w, residual);
    w->r->count.averaged++;
    for (int i = 0; i < w->n; i++)
        w->acc[i] = over * (w->v[i] - w->v1[i]);
    return true;
}

/* at the start forces are those of Gauss's principle, after that the means over the last step */
bool sweep_sample(void *of, run_clock *c, int64_t at, energies *e)
{
    sweep *w = of;
    bool instant = at == 0;
    double over = w->t > w->account.step_from ? 1 / (w->t - w->account.step_from) : 0;
    size_t first = (size_t)at * (size_t)w->n;
    if (!sample_gauss(w, over, instant))
        return false;
    if (instant)
        for (int i = 0; i < w->hand.nact; i++)
            for (int j = 0; j < rows_of(w->hand.act[i]); j++)
                w->hand.act[i]->r[j] = w->hand.rr[w->hand.act[i]->row + j];
    vec_copy(c->r->q + first, w->q, w->n);
    vec_copy(c->r->v + first, w->v, w->n);
    vec_copy(c->r->acc + first, w->acc, w->n);
    e->kinetic = sweep_kinetic(w, &e->shown);
    e->potential = sweep_potential(w);
    sample_contacts(w, at, over, instant);
    return true;
}
