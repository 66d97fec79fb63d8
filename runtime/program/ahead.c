#include "ahead.h"
#include <string.h>

/* ---- kernels at many instants ---- */
/* Times come from an array, under an input kind that these kernels do not use otherwise. */
#define INSTANT_TIMES IN_A

/* Does it read nothing else? */
static bool kernel_of_states(const kernel *k)
{
    const unsigned known = 1u << IN_TIME | 1u << IN_PARAM | 1u << IN_Q | 1u << IN_V | 1u << IN_PRE |
                           1u << IN_INDEX;
    for (uint32_t i = 0; i < k->tape.nin; i++)
        if (!(known >> k->in[i].kind & 1))
            return false;
    return !k->where && k->over.n < MAX_INDEX;
}

static slot instant_time(int index)
{
    slot s = { .kind = INSTANT_TIMES };
    s.at.stride[index] = 1;
    return s;
}

/* The same kernel with the instant as one more index, the last one. */
static kernel kernel_over_instants(arena *a, const kernel *k, int nq)
{
    slot *in = arena_array(a, slot, k->tape.nin + 1);
    kernel out = *k;
    int index = k->over.n;
    for (uint32_t i = 0; i < k->tape.nin; i++) {
        in[i] = k->in[i];
        if (in[i].kind == IN_TIME)
            in[i] = instant_time(index);
        else if (in[i].kind == IN_Q || in[i].kind == IN_V || in[i].kind == IN_PRE)
            in[i].at.stride[index] = nq;
    }
    out.in = in;
    out.tape.nhead = 0; /* nothing is the same at all instants */
    out.over.n = index + 1;
    out.over.r[index] = (index_range){ 0 };
    return out;
}

static void instants_count(kernel *k, int n)
{
    k->over.r[k->over.n - 1].hi = n - 1;
    k->over.count = index_count(&k->over);
}

/* ---- sums ---- */
struct sums_ahead {
    kernel *k;
    size_t n;
    double *work, *out;
};

sums_ahead *sums_ahead_new(arena *a, const program *p, const kernels *of)
{
    sums_ahead *s = arena_make(a, sums_ahead);
    size_t work = 1, out = 1;
    s->k = arena_array(a, kernel, of->n + 1);
    for (size_t i = 0; i < of->n; i++) {
        const kernel *k = &of->at[i];
        if (!k->tape.nout)
            continue;
        if (!kernel_of_states(k))
            return NULL;
        size_t own = (size_t)index_members(&k->over) * k->tape.nout * LANES;
        work = batch_regs(&k->tape) > work ? batch_regs(&k->tape) : work;
        out = own > out ? own : out;
        s->k[s->n++] = kernel_over_instants(a, k, p->nq);
    }
    s->work = arena_array(a, double, work);
    s->out = arena_array(a, double, out);
    return s;
}

void sums_ahead_run(sums_ahead *s, const double *param, const double *t, const double *q, const double *v,
                    int n, double *sum)
{
    const inputs in = { .from = {
                            [IN_PARAM] = param, [IN_Q] = q, [IN_V] = v, [IN_PRE] = v, [INSTANT_TIMES] = t } };
    memset(sum, 0, (size_t)n * sizeof *sum);
    for (size_t j = 0; j < s->n; j++) {
        kernel *k = &s->k[j];
        const double *x = s->out;
        instants_count(k, n);
        kernel_run_all(k, &in, s->work, s->out);
        for (int64_t m = k->over.count / n; m > 0; m--)
            for (int i = 0; i < n; i++)
                for (uint32_t l = 0; l < k->tape.nout; l++)
                    sum[i] += *x++;
    }
}

/* ---- what depends on time alone ---- */
static int operands(const instr *p)
{
    static const uint8_t fused[] = {
#define X(id, arity, value, outer, side, inner) arity,
#include "base/fused.def"
#undef X
    };
    if (p->op < OP_COUNT)
        return op_arity((op_code)p->op);
    return p->op == TAPE_SINCOS ? 1 : fused[p->op - OP_COUNT];
}

/* The content of a register at the current instruction: whether it depends only on time, and its names in
   both parts (rest: NONE until that part reads it). */
typedef struct holds {
    bool timed;
    uint32_t early, rest;
} holds;
static const uint32_t NONE = UINT32_MAX;

typedef struct splitting {
    const tape *t;
    holds *reg;
    instr *early, *rest;
    uint32_t nearly, nrest, names, nout;
    uint32_t *out; /* of the early part: read by the rest, or an output of the whole */
} splitting;

/* the name in the rest */
static uint32_t rest_name(splitting *s, uint32_t r)
{
    holds *h = &s->reg[r];
    if (h->rest == NONE) {
        h->rest = s->t->nreg + s->nout;
        s->out[s->nout++] = h->early;
    }
    return h->rest;
}

static void split_one(splitting *s, const instr *p)
{
    const uint32_t *from = &p->a;
    int n = operands(p);
    bool timed = true, two = p->op == TAPE_SINCOS;
    instr is = *p;
    uint32_t *to = &is.a;
    for (int i = 0; i < n; i++)
        timed &= s->reg[from[i]].timed;
    for (int i = 0; i < n; i++)
        to[i] = timed ? s->reg[from[i]].early : rest_name(s, from[i]);
    if (timed) {
        is.dst = s->names++;
        s->reg[p->dst] = (holds){ true, is.dst, NONE };
        if (two) {
            is.b = s->names++;
            s->reg[p->b] = (holds){ true, is.b, NONE };
        }
        s->early[s->nearly++] = is;
        return;
    }
    s->reg[p->dst] = (holds){ false, NONE, p->dst };
    if (two)
        s->reg[p->b] = (holds){ false, NONE, p->b };
    s->rest[s->nrest++] = is;
}

/* Registers of the early part have one value each; those of the rest are unchanged. */
static void split(arena *a, const kernel *k, splitting *s)
{
    const tape *t = &k->tape;
    *s = (splitting){ .t = t, .names = t->nreg };
    s->reg = arena_array(a, holds, t->nreg + 1);
    s->early = arena_array(a, instr, t->ncode + 1);
    s->rest = arena_array(a, instr, t->ncode + 1);
    s->out = arena_array(a, uint32_t, 2 * t->ncode + 1);
    for (uint32_t r = 0; r < t->nin + t->nconst; r++) {
        bool timed = r >= t->nin || k->in[r].kind == IN_TIME || k->in[r].kind == IN_PARAM;
        s->reg[r] = (holds){ timed, r, r };
    }
    for (uint32_t i = 0; i < t->ncode; i++)
        split_one(s, &t->code[i]);
    s->early[s->nearly] = s->rest[s->nrest] = (instr){ .op = TAPE_END };
}

timed_term *timed_new(arena *a, const terms *t)
{
    const term *of = t->at;
    splitting s;
    if (t->n != 1 || !of->move || of->speed >= 0)
        return NULL;
    const kernel *k = of->k;
    split(a, k, &s);
    uint32_t *out = arena_array(a, uint32_t, k->tape.nout);
    for (uint32_t i = 0; i < k->tape.nout; i++)
        out[i] = rest_name(&s, k->tape.out[i]);
    if (!s.nout)
        return NULL;
    timed_term *x = arena_make(a, timed_term);
    x->of = of;
    x->rest = k->tape;
    x->rest.code = s.rest;
    x->rest.ncode = s.nrest;
    x->rest.out = out;
    x->reg = arena_array(a, double, k->tape.nreg + s.nout + 1);
    memcpy(x->reg, of->reg, k->tape.nreg * sizeof *x->reg);
    x->early = kernel_over_instants(a, k, 0);
    tape *early = &x->early.tape;
    slot *in = arena_array(a, slot, k->tape.nin + 1);
    for (uint32_t i = 0; i < k->tape.nin; i++) /* inputs that the early part does not use have any value */
        in[i] = k->in[i].kind == IN_PARAM ? k->in[i] : instant_time(0);
    x->early.in = in;
    early->code = s.early;
    early->ncode = s.nearly;
    early->nreg = s.names;
    early->out = s.out;
    early->nout = s.nout;
    x->work = arena_array(a, double, batch_regs(early));
    x->values = arena_array(a, double, (size_t)LANES *s.nout);
    return x;
}

void timed_fill(timed_term *x, const double *param, const double *times, int n)
{
    inputs in = { .from = { [IN_PARAM] = param, [INSTANT_TIMES] = times } };
    instants_count(&x->early, n);
    kernel_run_all(&x->early, &in, x->work, x->values);
}
