/* many_samples: what is kept of a run with many contacts. */
#include <math.h>
#include <string.h>
#include "many_work.h"

/* gaps of members that are not listed; what is not listed is open and pushes nothing */
static void sample_open(many *w, contact_result *k, const family *fam, size_t base)
{
    size_t ns = (size_t)k->nslip, all = (size_t)k->members, m = 0;
    int32_t index[MAX_INDEX] = { 0 };
    memset(k->rn + base, 0, all * sizeof(double));
    if (ns) {
        memset(k->rt + base * ns, 0, all * ns * sizeof(double));
        memset(k->slip + base * ns, 0, all * ns * sizeof(double));
    }
    memset(k->status + base, STATUS_OPEN, all);
    for (bool any = index_first(&fam->f->over, index); any; any = index_next(&fam->f->over, index), m++)
        k->gap[base + m] = term_value(&fam->gap, &w->s->in, index);
}

static void sample_contact(many *w, const contact_list *l, int c, contact_result *k, size_t m, double over)
{
    const cone *o = &l->cone[c];
    const double *r = l->r + o->row, *E = l->frame + (size_t)c * MAX_SLIP * MAX_SLIP;
    size_t ns = (size_t)k->nslip;
    int top = cone_normal(o), nslip = l->of[c].pat->fam->nslip;
    double rt = 0, bound = o->mu * fabs(top ? r[0] : 0) + o->radius;
    k->gap[m] = top ? l->gap[c] : 0;
    k->rn[m] = top ? r[0] * over : term_value(&l->of[c].pat->fam->normal, &w->s->in, l->of[c].index);
    for (int a = 0; a < o->d; a++) {
        double u = list_rate(l, c, top + a, w->v) + l->off[o->row + top + a];
        rt = hypot(rt, r[top + a]);
        for (size_t j = 0; j < ns; j++) {
            if (a == 0)
                k->rt[m * ns + j] = k->slip[m * ns + j] = 0;
            k->rt[m * ns + j] += E[a * nslip + (int)j] * r[top + a] * over;
            k->slip[m * ns + j] += E[a * nslip + (int)j] * u;
        }
    }
    k->status[m] = top && r[0] == 0                  ? STATUS_OPEN
                   : o->d && rt < bound * (1 - 1e-9) ? STATUS_STICK
                                                     : STATUS_SLIP;
}

static void sample_contacts(many *w, int64_t at, double over)
{
    results *r = w->r;
    const contact_list *l = w->fixed ? &w->act : &w->old;
    system_at(w->s, w->t, w->q, w->v);
    for (size_t f = 0; f < w->p->ncontact; f++)
        if (r->contact[f].kept && !(w->fixed && !w->s->family[f].gap.where))
            sample_open(w, &r->contact[f], &w->s->family[f], (size_t)(at * r->contact[f].members));
    for (int c = 0; c < l->n; c++) {
        contact_result *k = &r->contact[l->of[c].pat - w->pat];
        size_t m = (size_t)(at * k->members + l->of[c].member);
        if (!k->kept)
            continue;
        if (l->cone[c].d || l->cone[c].kind == CONE_GIVEN) {
            sample_contact(w, l, c, k, m, over);
            continue;
        }
        double rn = l->r[l->cone[c].row];
        k->gap[m] = l->gap[c];
        k->rn[m] = rn * over;
        k->status[m] = rn == 0 ? STATUS_OPEN : STATUS_SLIP;
    }
}

/* sum of all outputs, members in batches */
static double energy_of(many *w, const terms *e)
{
    double sum = 0;
    for (size_t i = 0; i < e->n; i++) {
        const kernel *k = e->at[i].k;
        if (!k)
            continue;
        size_t regs = batch_regs(&k->tape), outs = (size_t)index_members(&k->over) * k->tape.nout;
        if (regs + outs > w->energies_cap) {
            w->energies_cap = regs + outs;
            w->energies = arena_array(w->a, double, w->energies_cap);
        }
        kernel_run_all(k, &w->s->in, w->energies, w->energies + regs);
        for (size_t j = 0; j < outs; j++)
            sum += w->energies[regs + j];
    }
    return sum;
}

/* Is the kinetic energy as written v.M v/2?  It is a polynomial of degree 2 in v: 0 at 0, and the same at x
 * and -x. */
bool many_kinetic(many *w)
{
    const unsigned still = 1u << IN_PARAM | 1u << IN_INDEX | 1u << IN_V;
    double *x = w->qmid, e[3], mass = 0;
    if (!w->s->kinetic.n)
        return true;
    if (w->s->kinetic.reads & ~still)
        return false;
    for (int k = -1; k <= 1; k++) {
        for (int i = 0; i < w->n; i++)
            x[i] = k * (1 + 0.5 * sin(i + 1.0));
        system_at(w->s, 0, w->q, x);
        e[k + 1] = energy_of(w, &w->s->kinetic);
    }
    for (int i = 0; i < w->n; i++)
        mass += 0.5 * w->M[i] * x[i] * x[i];
    return e[1] == 0 && fabs(e[0] - mass) <= 1e-12 * mass && fabs(e[2] - mass) <= 1e-12 * mass;
}

/* over: 1 / size of the step that impulses belong to */
void many_sample(many *w, double over)
{
    results *r = w->r;
    int64_t at = results_sample(r);
    size_t n = (size_t)w->n;
    double kin = 0, pot = 0, shown;
    r->t[at] = w->t;
    memcpy(r->q + (size_t)at * n, w->q, n * sizeof(double));
    memcpy(r->v + (size_t)at * n, w->v, n * sizeof(double));
    memcpy(r->acc + (size_t)at * n, w->acc, n * sizeof(double));
    for (size_t i = 0; i < n; i++)
        kin += 0.5 * w->M[i] * w->v[i] * w->v[i];
    system_at(w->s, w->t, w->q, w->v);
    shown = w->kinetic_is_mass ? kin : energy_of(w, &w->s->kinetic);
    if (w->s->potential.n)
        pot = energy_of(w, &w->s->potential);
    if (at == 0) {
        w->kinetic0 = kin;
        w->potential0 = pot;
    }
    w->top = fmax(w->top, fmax(kin, fmax(fabs(w->wf), fabs(w->dissipated))));
    double defect = fabs(kin - w->kinetic0 - w->wf + w->dissipated);
    if (defect > 0)
        r->power_balance = fmax(r->power_balance, defect / w->top);
    r->energy[at] = shown + pot;
    r->dissipated[at] = w->dissipated;
    r->work[at] = w->wf + (pot - w->potential0);
    sample_contacts(w, at, over);
}
