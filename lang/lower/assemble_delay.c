/* assemble_delay: past values and integrals of a model become slots, each with a kernel that gives the time
   it is read at. A past value under a family takes a slot for each member, numbered by the box around the
   index set. */
#include <string.h>
#include "assemble.h"
#include "emit.h"

typedef struct {
    ir_ref arg;
    address dof;
    const index_names *over;
    slot_map slot;
    int kind; /* past_kind */
} past_use;
typedef vec(past_use) past_uses;
typedef struct {
    int32_t number;
    const index_names *over;
    slot_map slot;
} integral_use;

struct delays {
    const model *m;
    ir *g;
    arena *a, *to;
    delay_program *p;
    past_uses use;
    vec(integral_use) integral;
    const index_names *over; /* of the current formula */
    /* where its past values go */
    past_uses *into;
    int32_t *count;
    bool inside; /* an integrand */
};

static const index_names SINGLE = { .set.count = 1 };

static bool reads_index(const ir_input *in, void *ud)
{
    (void)ud;
    for (int k = 0; k < MAX_INDEX; k++)
        if (in->at.stride[k])
            return true;
    return in->kind == IN_INDEX;
}

/* Slots of all members: affine in the indices. */
static slot_map slots_take(const index_names *over, int32_t *count)
{
    slot_map s = { .base = *count };
    int32_t index[MAX_INDEX], lo[MAX_INDEX], hi[MAX_INDEX], size = 1;
    bool any = false;
    for (bool more = index_first(&over->set, index); more; more = index_next(&over->set, index), any = true)
        for (int k = 0; k < over->n; k++) {
            if (!any || index[k] < lo[k])
                lo[k] = index[k];
            if (!any || index[k] > hi[k])
                hi[k] = index[k];
        }
    for (int k = over->n; any && k-- > 0;) {
        s.stride[k] = size;
        s.base -= size * lo[k];
        size *= hi[k] - lo[k] + 1;
    }
    *count += size;
    return s;
}

static const index_names *over_of(delays *d, ir_ref f, const address *at)
{
    bool strided = f && ir_depends(d->g, f, reads_index, NULL);
    for (int k = 0; at && k < MAX_INDEX; k++)
        strided |= at->stride[k] != 0;
    return strided ? d->over : &SINGLE;
}

/* which of the past values an input is; -1: none */
static int past_kind_of(in_kind k)
{
    return k == IN_PAST_Q ? PAST_DOF : k == IN_PAST_V ? PAST_RATE : k == IN_PAST_BASE ? PAST_BASE : -1;
}

static slot_map past_slot(delays *d, const ir_input *in)
{
    const index_names *over = over_of(d, in->arg, &in->at);
    int kind = past_kind_of(in->kind);
    for (size_t i = 0; i < d->into->n; i++) {
        const past_use *u = &d->into->at[i];
        if (u->arg == in->arg && u->kind == kind && u->over == over &&
            memcmp(&u->dof, &in->at, sizeof in->at) == 0)
            return u->slot;
    }
    past_use *u = vec_push(d->a, d->into);
    *u = (past_use){ in->arg, in->at, over, slots_take(over, &d->count[kind]), kind };
    return u->slot;
}

static slot_map integral_slot(delays *d, int32_t number)
{
    const mintegral *x = &d->m->integrals.at[number];
    const index_names *over = over_of(d, x->integrand, NULL);
    for (size_t i = 0; i < d->integral.n; i++)
        if (d->integral.at[i].number == number && d->integral.at[i].over == over)
            return d->integral.at[i].slot;
    integral_use *u = vec_push(d->a, &d->integral);
    *u = (integral_use){ number, over, slots_take(over, &d->p->nintegral) };
    return u->slot;
}

static ir_ref lower(ir *g, ir_ref input, void *ud)
{
    delays *d = ud;
    ir_input in = *ir_input_of(g, input);
    if (past_kind_of(in.kind) >= 0 && in.arg)
        return ir_in(g, (ir_input){ .kind = in.kind, .at = past_slot(d, &in) });
    if (in.kind == IN_INTEGRAL && !d->inside)
        return ir_in(g, (ir_input){ .kind = in.kind, .at = integral_slot(d, in.at.base) });
    return IR_NONE;
}

delays *delays_new(arena *to, arena *scratch, const model *m)
{
    delays *d = arena_make(scratch, delays);
    *d = (delays){ .m = m, .g = m->g, .a = scratch, .to = to, .p = arena_make(to, delay_program) };
    d->p->at = m->has_delay.file ? m->has_delay : m->integrals.at[0].at;
    d->p->nbound = m->nbound;
    return d;
}

void delays_lower(delays *d, const index_names *over, ir_ref *out, size_t n)
{
    d->over = over;
    d->into = &d->use;
    d->count = d->p->npast;
    ir_substitute_all(d->g, out, n, lower, d);
}

static kernel emit_one(delays *d, ir_ref f, const index_names *over, span at, const slot_map *row,
                       const address *col)
{
    kernel k = emit_kernel(d->to, d->a, d->g, &f, 1, &over->set, over->where, at);
    slot_map *r = arena_array(d->to, slot_map, 2);
    r[0] = *row;
    if (col)
        r[1] = *col;
    k.row = r;
    k.col = col ? r + 1 : NULL;
    return k;
}

/* "x(t - tau)" */
static const char *past_name(delays *d, const past_use *u)
{
    text t = { .a = d->to };
    static const in_kind kinds[] = { IN_PAST_Q, IN_PAST_V, IN_PAST_BASE };
    ir_input in = { .kind = kinds[u->kind], .at = u->dof, .arg = u->arg };
    model_input_name(&t, d->g, &in, &(model_namer){ d->m, u->over });
    return t.at;
}

static void emit_past(delays *d, const past_uses *use, kernels *to, const char **name[PAST_KINDS], span at)
{
    for (int kind = 0; kind < PAST_KINDS; kind++) {
        to[kind].at = arena_array(d->to, kernel, use->n);
        if (name)
            name[kind] = arena_array(d->to, const char *, use->n + 1);
        for (size_t i = 0; i < use->n; i++) {
            const past_use *u = &use->at[i];
            if (u->kind != kind)
                continue;
            if (name)
                name[kind][to[kind].n] = past_name(d, u);
            to[kind].at[to[kind].n++] = emit_one(d, u->arg, u->over, at, &u->slot, &u->dof);
        }
    }
}

static bool unknown_before(const ir_input *in, void *ud)
{
    (void)ud;
    return in->kind != IN_PARAM && in->kind != IN_INDEX;
}
static bool of_motion(const ir_input *in, void *ud)
{
    return in->kind != IN_TIME && in->kind != IN_BOUND && unknown_before(in, ud);
}

/* t - arg is known from the parameters (and the variable of an integral) */
static bool steady(delays *d, ir_ref arg)
{
    return !ir_depends(d->g, arg, of_motion, NULL) && eval_steady_delay(d->g, arg);
}

/* d arg / d s is known from the parameters */
static bool linear_in(delays *d, ir_ref arg, int bound)
{
    ir_ref s = ir_in(d->g, (ir_input){ .kind = IN_BOUND, .at.base = bound });
    return !ir_depends(d->g, ir_derive(d->g, arg, s), unknown_before, NULL);
}

static bool is_integral(const ir_input *in, void *ud)
{
    (void)ud;
    return in->kind == IN_INTEGRAL;
}

static void emit_integral(delays *d, const integral_use *u, integral_rule *to)
{
    const mintegral *x = &d->m->integrals.at[u->number];
    past_uses use = { 0 };
    ir_ref f[3] = { x->lo, x->hi, x->integrand };
    *to = (integral_rule){ .at = x->at, .bound = x->bound };
    d->over = u->over;
    d->into = &use;
    d->count = to->npast;
    d->inside = true;
    if (ir_depends(d->g, x->integrand, is_integral, NULL))
        diag_error(d->m->d, DIAG_NOT_SUPPORTED, x->at,
                   "an integral over the past inside another one is not supported");
    ir_substitute_all(d->g, f, 3, lower, d);
    d->inside = false;
    to->lo = emit_one(d, f[0], u->over, x->at, &u->slot, NULL);
    to->hi = emit_one(d, f[1], u->over, x->at, &u->slot, NULL);
    to->integrand = emit_one(d, f[2], u->over, x->at, &u->slot, NULL);
    emit_past(d, &use, to->past, NULL, x->at);
    to->linear = true;
    for (size_t i = 0; i < use.n; i++) {
        to->linear &= linear_in(d, use.at[i].arg, x->bound);
        d->p->steady &= steady(d, use.at[i].arg);
    }
    d->p->steady &= to->linear && !ir_depends(d->g, x->lo, unknown_before, NULL) &&
                    !ir_depends(d->g, x->hi, unknown_before, NULL);
}

static bool is_bound(const ir_input *in, void *ud)
{
    (void)ud;
    return in->kind == IN_BOUND;
}

/* d/ds of the given history. */
static ir_ref rate_of(delays *d, ir_ref f)
{
    ir_ref *in;
    size_t n = ir_inputs(d->g, d->a, &f, 1, &in);
    for (size_t i = 0; i < n; i++)
        if (is_bound(ir_input_of(d->g, in[i]), NULL))
            return ir_derive(d->g, f, in[i]);
    return ir_const(d->g, 0);
}

static void emit_history(delays *d)
{
    const mfamilies *h = &d->m->history;
    size_t n = 0;
    for (size_t i = 0; i < h->n; i++)
        n += (size_t)h->at[i].nout;
    d->p->history.at = arena_array(d->to, kernel, n);
    d->p->history_rate.at = arena_array(d->to, kernel, n);
    for (size_t i = 0; i < h->n; i++)
        for (int k = 0; k < h->at[i].nout; k++) {
            const mfamily *f = &h->at[i];
            d->p->history.at[d->p->history.n++] = emit_one(d, f->out[k], &f->over, f->at, &f->row[k], NULL);
            d->p->history_rate.at[d->p->history_rate.n++] = emit_one(d, rate_of(d, f->out[k]), &f->over,
                                                                     f->at, &f->row[k], NULL);
        }
}

const delay_program *delays_end(delays *d)
{
    delay_program *p = d->p;
    p->steady = true;
    for (size_t i = 0; i < d->use.n; i++)
        p->steady &= steady(d, d->use.at[i].arg);
    /* integrals may need more past values of their own, kept with them */
    p->integral = arena_array(d->to, integral_rule, d->integral.n);
    for (size_t i = 0; i < d->integral.n; i++)
        emit_integral(d, &d->integral.at[i], &p->integral[i]);
    p->nrule = d->integral.n;
    emit_past(d, &d->use, p->past, p->name, p->at);
    emit_history(d);
    return p;
}
