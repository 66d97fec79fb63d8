#include "later.h"
#include <math.h>
#include <string.h>

typedef struct later {
    results *r;
    void *of;
    const later_ops *with;
    unsigned left;  /* parts that are not computed yet */
    books at_start; /* the books before the first sample */
    energies *room; /* LANES */
    double drift;   /* of the last sample */
    bool finite;
} later;

/* ---- which runs ---- */
void later_begin(run_clock *c, double samples)
{
    results *r = c->r;
    const later_ops *with = c->later;
    /* columns in a file, and those of a checkpoint, are complete */
    if (!with || !c->o->later || c->o->checkpoint || !results_fit(r, samples))
        return;
    later *x = r->disk.later = arena_make(r->a, later);
    *x = (later){ .r = r,
                  .of = c->of,
                  .with = with,
                  .left = with->parts,
                  .at_start = c->books,
                  .room = arena_array(r->a, energies, LANES),
                  .finite = true };
    r->disk.absent = with->absent;
}

bool later_makes(const results *r, results_part part)
{
    return r->disk.later && r->disk.later->with->parts & part;
}

/* ---- the books ---- */
/* energies of all samples; column NULL: not kept */
static void audit(later *x, double *energy, double *drift)
{
    results *r = x->r;
    books b = x->at_start;
    double sum = 0;
    for (int64_t from = 0; from < r->samples; from += LANES) {
        int n = r->samples - from < LANES ? (int)(r->samples - from) : LANES;
        x->with->energies(x->of, r, from, n, x->room);
        for (int i = 0; i < n; i++) {
            const energies *e = &x->room[i];
            b.work = r->work[from + i];
            b.dissipated = r->dissipated[from + i];
            x->drift = books_audit(&b, e);
            sum += 0 * (e->shown + e->potential);
            if (!energy)
                continue;
            energy[from + i] = e->shown + e->potential;
            drift[from + i] = x->drift;
        }
    }
    x->finite = sum == 0;
    r->power_balance = books_balance(&b);
}

void later_audit(results *r)
{
    if (later_makes(r, PART_ENERGY))
        audit(r->disk.later, NULL, NULL);
}

bool later_finite(const results *r)
{
    return !r->disk.later || r->disk.later->finite;
}

/* ---- reading ---- */
static double *column_new(results *r, int64_t width)
{
    return arena_array(r->a, double, (size_t)r->samples *(size_t)width);
}

static void make_acc(later *x)
{
    results *r = x->r;
    double *acc = r->disk.absent & PART_ACC ? column_new(r, r->prog->nq) : r->acc;
    for (int64_t at = 0; at < r->samples; at++)
        r->count.averaged += !x->with->accelerations(x->of, r, at, acc + at * r->prog->nq);
    r->acc = acc;
}

static void make_energy(later *x)
{
    results *r = x->r;
    double *energy = column_new(r, 1), *drift = column_new(r, 1);
    audit(x, energy, drift);
    r->energy = energy;
    r->drift = drift;
}

static void make_slip(later *x)
{
    results *r = x->r;
    for (size_t i = 0; i < r->prog->ncontact; i++)
        if (r->contact[i].kept && r->contact[i].nslip)
            r->contact[i].slip = column_new(r, r->contact[i].members * r->contact[i].nslip);
    x->with->slips(x->of, r);
}

void results_need(const results *r, unsigned parts)
{
    static void (*const make[])(later * x) = { make_acc, make_energy, make_slip };
    later *x = r->disk.later;
    for (unsigned i = 0; x && i < sizeof make / sizeof *make; i++) {
        unsigned part = 1u << i;
        if (!(x->left & parts & part))
            continue;
        make[i](x);
        x->left &= ~part;
        x->r->disk.absent &= ~part;
    }
}

void results_acc(const results *r, int64_t at, double *acc)
{
    const later *x = r->disk.later;
    size_t nq = (size_t)r->prog->nq;
    if (x && x->left & PART_ACC)
        x->with->accelerations(x->of, r, at, acc);
    else
        memcpy(acc, r->acc + (size_t)at * nq, nq * sizeof *acc);
}

double results_energy(const results *r, int64_t at)
{
    const later *x = r->disk.later;
    if (r->energy)
        return r->energy[at];
    x->with->energies(x->of, r, at, 1, x->room);
    return x->room->shown + x->room->potential;
}

bool results_have_energy(const results *r)
{
    return r->samples > 0 && (r->energy || later_makes(r, PART_ENERGY));
}

double results_drift(const results *r)
{
    if (r->samples == 0)
        return 0;
    return r->drift ? r->drift[r->samples - 1] : r->disk.later ? r->disk.later->drift : 0;
}
