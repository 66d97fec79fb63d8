#include "later.h"
#include <math.h>
#include <string.h>

typedef struct later {
    results *r;
    void *of;
    const later_ops *with;
    unsigned left;  /* parts that are still to be made */
    books at_start; /* the books before the first sample */
    energies *room; /* LANES */
    double drift;   /* of the last sample */
    bool finite;
} later;

/* ---- sums of kernels at many samples ---- */
struct sample_sum {
    kernel *k; /* with the sample as one more index, the last one */
    size_t n;
    double *work, *out;
};

/* Time is read from the column of times, by a kind that these kernels have no use for. */
static const in_kind TIMES = IN_A;

static bool kernel_fits(const kernel *k)
{
    const unsigned known = 1u << IN_TIME | 1u << IN_PARAM | 1u << IN_Q | 1u << IN_V | 1u << IN_PRE |
                           1u << IN_INDEX;
    for (uint32_t i = 0; i < k->tape.nin; i++)
        if (!(known >> k->in[i].kind & 1))
            return false;
    return !k->where && k->over.n < MAX_INDEX;
}

static slot sample_time(int sample)
{
    slot s = { .kind = TIMES };
    s.at.stride[sample] = 1;
    return s;
}

static kernel kernel_over_samples(arena *a, const kernel *k, int nq)
{
    slot *in = arena_array(a, slot, k->tape.nin + 1);
    kernel out = *k;
    int sample = k->over.n;
    for (uint32_t i = 0; i < k->tape.nin; i++) {
        in[i] = k->in[i];
        if (in[i].kind == IN_TIME)
            in[i] = sample_time(sample);
        else if (in[i].kind == IN_Q || in[i].kind == IN_V || in[i].kind == IN_PRE)
            in[i].at.stride[sample] = nq;
    }
    out.in = in;
    out.tape.nhead = 0; /* nothing is the same for all samples */
    out.over.n = sample + 1;
    out.over.r[sample] = (index_range){ 0 };
    return out;
}

sample_sum *sample_sum_new(arena *a, const program *p, const kernels *of)
{
    sample_sum *s = arena_make(a, sample_sum);
    size_t work = 1, out = 1;
    s->k = arena_array(a, kernel, of->n + 1);
    for (size_t i = 0; i < of->n; i++) {
        const kernel *k = &of->at[i];
        if (!k->tape.nout)
            continue;
        if (!kernel_fits(k))
            return NULL;
        size_t own = (size_t)index_members(&k->over) * k->tape.nout * LANES;
        work = batch_regs(&k->tape) > work ? batch_regs(&k->tape) : work;
        out = own > out ? own : out;
        s->k[s->n++] = kernel_over_samples(a, k, p->nq);
    }
    s->work = arena_array(a, double, work);
    s->out = arena_array(a, double, out);
    return s;
}

void sample_sum_run(sample_sum *s, const results *r, int64_t from, int n, double *sum)
{
    int64_t first = from * r->prog->nq;
    inputs in = { .from = { [IN_PARAM] = r->param,
                            [IN_Q] = r->q + first,
                            [IN_V] = r->v + first,
                            [IN_PRE] = r->v + first } };
    in.from[TIMES] = r->t + from;
    memset(sum, 0, (size_t)n * sizeof *sum);
    for (size_t j = 0; j < s->n; j++) {
        kernel *k = &s->k[j];
        uint32_t nout = k->tape.nout;
        k->over.r[k->over.n - 1].hi = n - 1;
        k->over.count = index_count(&k->over);
        kernel_run_all(k, &in, s->work, s->out);
        const double *x = s->out;
        for (int64_t m = k->over.count / n; m > 0; m--)
            for (int i = 0; i < n; i++)
                for (uint32_t l = 0; l < nout; l++)
                    sum[i] += *x++;
    }
}

/* ---- which runs ---- */
void later_begin(run_clock *c, double samples)
{
    results *r = c->r;
    const later_ops *with = c->later;
    /* columns in a file, and those of a checkpoint, are all there */
    if (!with || !c->o->later || c->o->checkpoint || !results_fit(r, samples))
        return;
    later *x = r->later = arena_make(r->a, later);
    *x = (later){ .r = r,
                  .of = c->of,
                  .with = with,
                  .left = PART_ACC | PART_ENERGY | PART_SLIP,
                  .at_start = c->books,
                  .room = arena_array(r->a, energies, LANES),
                  .finite = true };
    r->absent = with->absent;
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
    if (b.top > 0)
        r->power_balance = b.worst / b.top;
}

void later_audit(results *r)
{
    if (r->later)
        audit(r->later, NULL, NULL);
}

bool later_finite(const results *r)
{
    return !r->later || r->later->finite;
}

/* ---- reading ---- */
static double *column_new(results *r, int64_t width)
{
    return arena_array(r->a, double, (size_t)r->samples *(size_t)width);
}

static void make_acc(later *x)
{
    results *r = x->r;
    if (r->absent & PART_ACC)
        r->acc = column_new(r, r->prog->nq);
    x->with->accelerations(x->of, r);
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
    later *x = r->later;
    for (unsigned i = 0; x && i < sizeof make / sizeof *make; i++) {
        unsigned part = 1u << i;
        if (!(x->left & parts & part))
            continue;
        make[i](x);
        x->left &= ~part;
        x->r->absent &= ~part;
    }
}

double results_energy(const results *r, int64_t at)
{
    const later *x = r->later;
    if (r->energy)
        return r->energy[at];
    x->with->energies(x->of, r, at, 1, x->room);
    return x->room->shown + x->room->potential;
}

bool results_have_energy(const results *r)
{
    return r->samples > 0 && (r->energy || r->later);
}

double results_drift(const results *r)
{
    if (r->samples == 0)
        return 0;
    return r->drift ? r->drift[r->samples - 1] : r->later ? r->later->drift : 0;
}
