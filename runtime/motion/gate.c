#include "gate.h"
#include <math.h>
#include <string.h>
#include "instant.h"
#include "base/taylor.h"
#include "clock/clock.h"
#include "inclusion/inclusion.h"
#include "past/history.h"
#include "clock/later.h"
#include "program/system.h"
#include "rod/rod.h"
#include "base/tolerances.h"

struct gate {
    const program *p;
    arena *a;
    inputs in;
    double **gaps;    /* of each family: its members */
    double *room;     /* registers of a batch */
    double *one;      /* registers of one member */
    int32_t *index;   /* of the members of the family at hand */
    size_t listed;    /* that family, from 1 */
    int64_t capacity; /* of index */
    const double *v;
    past_samples *past; /* or NULL: it is not known */
    int64_t ran;        /* kernels, member by member; those over all members count once for each of LANES */
};

/* ---- an instant ---- */
static bool reads_only(const kernel *k, unsigned kinds)
{
    for (uint32_t i = 0; i < k->tape.nin; i++)
        if (!(kinds >> k->in[i].kind & 1))
            return false;
    return true;
}

static const unsigned PLAIN = 1u << IN_TIME | 1u << IN_PARAM | 1u << IN_Q | 1u << IN_INDEX;

bool gate_knows_gap(const gate *g, size_t of)
{
    const contact_family *f = &g->p->contact[of];
    return f->relation != REL_CLOSED && f->gap.tape.nout && reads_only(&f->gap, PLAIN);
}

bool gate_knows_bound(const gate *g, size_t of)
{
    const contact_family *f = &g->p->contact[of];
    return f->friction != FRICTION_NONE && f->slip_given && !f->mu_of_speed &&
           reads_only(&f->mu, 1u << IN_PARAM | 1u << IN_INDEX);
}

int64_t gate_members(const gate *g, size_t of)
{
    return index_members(&g->p->contact[of].over);
}

static void widest(const kernel *k, size_t *batch, size_t *regs)
{
    if (k->tape.nout && batch_regs(&k->tape) > *batch)
        *batch = batch_regs(&k->tape);
    if (k->tape.nreg > *regs)
        *regs = k->tape.nreg;
    if (k->where && k->where->nreg > *regs)
        *regs = k->where->nreg;
}

gate *gate_new(arena *a, const program *p, const double *param)
{
    gate *g = arena_make(a, gate);
    size_t batch = 1, regs = 1;
    *g = (gate){ .p = p, .a = a, .in.from[IN_PARAM] = param };
    for (size_t c = 0; c < p->ncontact; c++) {
        const contact_family *f = &p->contact[c];
        const kernel *of[] = { &f->gap, &f->gradient, &f->rate, &f->mu, &f->slip, &f->slip_map };
        for (size_t i = 0; i < sizeof of / sizeof *of; i++)
            widest(of[i], &batch, &regs);
    }
    const kernels *sums[] = { &p->mass, &p->kinetic, &p->potential, &p->init_q, &p->init_v, &p->force };
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        for (size_t j = 0; j < sums[i]->n; j++)
            widest(&sums[i]->at[j], &batch, &regs);
    g->room = arena_array(a, double, batch);
    g->one = arena_array(a, double, 2 * regs + 2);
    g->gaps = arena_array(a, double *, p->ncontact);
    return g;
}

void gate_at(gate *g, double t, const double *q, const double *v)
{
    g->in.t = t;
    g->in.from[IN_Q] = q;
    g->in.from[IN_V] = g->in.from[IN_PRE] = g->v = v;
    if (g->past)
        samples_fill(g->past, &g->in);
}

const double *gate_gaps(gate *g, size_t of)
{
    const kernel *k = &g->p->contact[of].gap;
    if (!g->gaps[of])
        g->gaps[of] = arena_array(g->a, double, (size_t)gate_members(g, of));
    g->ran += gate_members(g, of) / LANES + 1;
    kernel_run_all(k, &g->in, g->room, g->gaps[of]);
    return g->gaps[of];
}

static const int32_t *member_index(gate *g, size_t of, int64_t member)
{
    const index_set *over = &g->p->contact[of].over;
    int64_t n = gate_members(g, of), m = 0;
    if (g->listed != of + 1) {
        int32_t index[MAX_INDEX] = { 0 };
        if (g->capacity < n) {
            g->index = arena_array(g->a, int32_t, (size_t)n * MAX_INDEX);
            g->capacity = n;
        }
        for (bool any = index_first(over, index); any && m < n; any = index_next(over, index), m++)
            memcpy(g->index + m * MAX_INDEX, index, sizeof index);
        g->listed = of + 1;
    }
    return g->index + member * MAX_INDEX;
}

static const double *run_member(gate *g, const kernel *k, const int32_t *index)
{
    g->ran++;
    tape_start(&k->tape, g->one);
    kernel_run(k, &g->in, index, g->one);
    return g->one;
}

double gate_bound(gate *g, size_t of, int64_t member, double rn)
{
    const contact_family *f = &g->p->contact[of];
    if (!f->mu.tape.nout)
        return 0;
    const double *reg = run_member(g, &f->mu, member_index(g, of, member));
    double mu = reg[f->mu.tape.out[0]];
    return f->friction == FRICTION_TRESCA ? mu : mu * fabs(rn);
}

double gate_length(gate *g, size_t of, int64_t member, const double *sizes)
{
    const kernel *k = &g->p->contact[of].gradient;
    double length = 0;
    if (!k->tape.nout)
        return 0;
    const int32_t *index = member_index(g, of, member);
    const double *reg = run_member(g, k, index);
    for (uint32_t i = 0; i < k->tape.nout; i++)
        length += fabs(reg[k->tape.out[i]]) * sizes[slot_at(&k->row[i], index, k->over.n)];
    return length;
}

const program *gate_program(const gate *g)
{
    return g->p;
}

double gate_row(gate *g, size_t of, int64_t member, double *H)
{
    const contact_family *f = &g->p->contact[of];
    const int32_t *index = member_index(g, of, member);
    memset(H, 0, (size_t)g->p->nq * sizeof *H);
    if (f->gradient.tape.nout) {
        const double *reg = run_member(g, &f->gradient, index);
        for (uint32_t i = 0; i < f->gradient.tape.nout; i++)
            H[slot_at(&f->gradient.row[i], index, f->over.n)] += reg[f->gradient.tape.out[i]];
    }
    return f->rate.tape.nout ? run_member(g, &f->rate, index)[f->rate.tape.out[0]] : 0;
}

/* What is done with an output of a kernel: its value, its row and column (0 where it has none). */
typedef void output_use(gate *g, double x, int32_t row, int32_t col, void *to);

/* all outputs of all members */
static void each_output(gate *g, const kernels *ks, output_use *use, void *to)
{
    for (size_t j = 0; j < ks->n; j++) {
        const kernel *k = &ks->at[j];
        int32_t index[MAX_INDEX] = { 0 };
        for (bool any = index_first(&k->over, index); any; any = index_next(&k->over, index)) {
            if (k->where && !kernel_member(k, index, g->one))
                continue;
            const double *reg = run_member(g, k, index);
            for (uint32_t i = 0; i < k->tape.nout; i++) {
                int32_t row = k->row ? slot_at(&k->row[i], index, k->over.n) : 0,
                        col = k->col ? slot_at(&k->col[i], index, k->over.n) : row;
                use(g, reg[k->tape.out[i]], row, col, to);
            }
        }
    }
}

static void use_sum(gate *g, double x, int32_t row, int32_t col, void *to)
{
    gate_total *sum = to;
    (void)g, (void)row, (void)col;
    sum->is += x;
    sum->size += fabs(x);
}

/* v.M v/2 of second-order dofs */
static void use_kinetic(gate *g, double x, int32_t row, int32_t col, void *to)
{
    const uint8_t *order = g->p->order;
    if (!order || order[row] != 1)
        use_sum(g, 0.5 * x * g->v[row] * g->v[col], row, col, to);
}

static void use_put(gate *g, double x, int32_t row, int32_t col, void *to)
{
    (void)g, (void)col;
    ((double *)to)[row] = x;
}

static void use_add(gate *g, double x, int32_t row, int32_t col, void *to)
{
    const gate_sum *sum = to;
    (void)g, (void)col;
    sum->at[row] += x;
    sum->size[row] += fabs(x);
}

typedef struct product {
    const double *x;
    gate_sum *sum;
} product;

static void use_times(gate *g, double m, int32_t row, int32_t col, void *to)
{
    const product *p = to;
    use_add(g, m * p->x[col], row, col, p->sum);
}

gate_total gate_audited(gate *g)
{
    gate_total sum = { 0 };
    each_output(g, &g->p->mass, use_kinetic, &sum);
    each_output(g, &g->p->potential, use_sum, &sum);
    return sum;
}

gate_total gate_energy(gate *g)
{
    gate_total sum = { 0 };
    if (!g->p->kinetic.n)
        return gate_audited(g);
    each_output(g, &g->p->kinetic, use_sum, &sum);
    each_output(g, &g->p->potential, use_sum, &sum);
    return sum;
}

/* ---- equations of motion ---- */
static bool all_read_only(const kernels *ks, unsigned kinds)
{
    for (size_t j = 0; j < ks->n; j++)
        if (!reads_only(&ks->at[j], kinds))
            return false;
    return true;
}

void gate_recall(gate *g, const results *r)
{
    enum { MOST = 4000000 }; /* numbers, all of which are kept */
    const program *p = g->p;
    if (!p->delay || r->samples < 2 || r->count.resets.n || r->samples > MOST / (p->nq + 1))
        return;
    for (size_t c = 0; c < p->ncontact; c++)
        if (r->contact[c].impacts.n)
            return;
    g->past = samples_new(g->a, p, r->param, r->q, r->t[r->samples - 1] / (double)(r->samples - 1));
    samples_all(g->past);
    for (int64_t at = 0; at < r->samples; at++)
        samples_add(g->past, r->t[at], r->q + at * p->nq, r->v + at * p->nq);
}

bool gate_knows_motion(const gate *g)
{
    const program *p = g->p;
    const unsigned past = g->past ? 1u << IN_PAST_Q | 1u << IN_PAST_V | 1u << IN_INTEGRAL : 0,
                   state = PLAIN | 1u << IN_V | 1u << IN_PRE | past;
    if (!all_read_only(&p->mass, state) || !all_read_only(&p->force, state))
        return false;
    for (size_t c = 0; c < p->ncontact; c++)
        if (!reads_only(&p->contact[c].gradient, PLAIN) || !reads_only(&p->contact[c].slip_map, PLAIN))
            return false;
    return true;
}

void gate_force(gate *g, gate_sum *sum)
{
    each_output(g, &g->p->force, use_add, sum);
}

static void use_diagonal(gate *g, double x, int32_t row, int32_t col, void *to)
{
    (void)g;
    if (row == col)
        ((double *)to)[row] += x;
}

void gate_mass_diagonal(gate *g, double *diagonal)
{
    memset(diagonal, 0, (size_t)g->p->nq * sizeof *diagonal);
    each_output(g, &g->p->mass, use_diagonal, diagonal);
}

void gate_mass_times(gate *g, const double *x, gate_sum *sum)
{
    each_output(g, &g->p->mass, use_times, &(product){ x, sum });
}

void gate_react(gate *g, size_t of, int64_t member, double rn, const double *rt, gate_sum *sum)
{
    const contact_family *f = &g->p->contact[of];
    const kernel *H = &f->gradient, *S = &f->slip_map;
    const int32_t *index = member_index(g, of, member);
    if (rn != 0 && f->relation != REL_CLOSED && H->tape.nout) {
        const double *reg = run_member(g, H, index);
        for (uint32_t i = 0; i < H->tape.nout; i++)
            use_add(g, rn * reg[H->tape.out[i]], slot_at(&H->row[i], index, f->over.n), 0, sum);
    }
    if (rt && S->tape.nout) {
        const double *reg = run_member(g, S, index);
        for (uint32_t i = 0; i < S->tape.nout; i++)
            use_add(g, rt[S->row[i].base] * reg[S->tape.out[i]], slot_at(&S->col[i], index, f->over.n), 0,
                    sum);
    }
}

void gate_reach(gate *g, size_t of, int64_t member, bool *dofs)
{
    const contact_family *f = &g->p->contact[of];
    const int32_t *index = member_index(g, of, member);
    for (uint32_t i = 0; i < f->gradient.tape.nout; i++)
        dofs[slot_at(&f->gradient.row[i], index, f->over.n)] = true;
    for (uint32_t i = 0; i < f->slip_map.tape.nout; i++)
        dofs[slot_at(&f->slip_map.col[i], index, f->over.n)] = true;
}

bool gate_slip(gate *g, size_t of, int64_t member, double *slip)
{
    const kernel *k = &g->p->contact[of].slip;
    if (!g->p->contact[of].slip_given || !reads_only(k, PLAIN | 1u << IN_V))
        return false;
    const double *reg = run_member(g, k, member_index(g, of, member));
    for (uint32_t i = 0; i < k->tape.nout; i++)
        slip[i] = reg[k->tape.out[i]];
    return true;
}

const char *gate_name(gate *g, size_t of, int64_t member, arena *a)
{
    family fam = { .f = &g->p->contact[of] };
    contact c = { .fam = &fam, .member = member };
    memcpy(c.index, member_index(g, of, member), sizeof c.index);
    return contact_name(&c, a);
}

void gate_sizes(double *sizes, int n)
{
    double most = 0;
    for (int i = 0; i < n; i++)
        most = fmax(most, sizes[i]);
    for (int i = 0; i < n; i++)
        sizes[i] = fmax(sizes[i], DOF_LEAST * most);
}

/* ---- the run ---- */
typedef struct check {
    gate *g;
    results *r;
    double *sizes;    /* of the dofs: the largest kept; behind them the rates of the sample rates_at */
    int64_t rates_at; /* 0: of none, as the first sample needs none */
    double loose;     /* relative: what the run promised, 1e-6 at least */
    double *force;    /* of each family: the largest normal force */
    double *friction; /* and the largest component of friction, which may have a unit of its own */
    balance *balance;
    arena *scratch;
    double energy_top; /* the largest size of an energy so far */
} check;

static const char *number(const check *k, double x)
{
    text t = { .a = k->r->a };
    text_num(&t, x);
    return t.at;
}

/* every number of the columns; true: all finite */
static bool finite_columns(check *k, int64_t at)
{
    results *r = k->r;
    size_t nq = (size_t)r->prog->nq, first = (size_t)at * nq;
    double sum = r->t[at] + (r->energy ? r->energy[at] : 0) + r->work[at] + r->dissipated[at];
    for (size_t i = 0; i < nq; i++)
        sum += 0 * (r->q[first + i] + r->v[first + i] + (r->acc ? r->acc[first + i] : 0));
    if (isfinite(sum))
        return true;
    for (size_t i = 0; i < nq; i++) {
        const double *of[] = { r->q + first, r->v + first, r->acc ? r->acc + first : NULL };
        static const char *const mark[] = { "", "'", "''" };
        for (int j = 0; j < 3 && of[j]; j++)
            if (!isfinite(of[j][i]))
                return results_fail(r, mass_where(r->prog, (int)i),
                                    arena_printf(r->a, "%s%s is not finite at t = %s",
                                                 dof_name(r->prog, (int)i, r->a), mark[j],
                                                 number(k, r->t[at])));
    }
    return results_fail(r, SPAN_NONE,
                        arena_printf(r->a, "the energy is not finite at t = %s", number(k, r->t[at])));
}

static double depth_of(const contact_family *f, double gap)
{
    return f->relation == REL_BILATERAL ? fabs(gap) : -gap;
}

static bool fails(check *k, size_t c, int64_t m, int64_t at, const char *what, double x)
{
    results *r = k->r;
    span where;
    const char *proof = at ? gate_excludes(k->g, r->t[at], r->t[at] - r->t[at - 1], r->q + at * r->prog->nq,
                                           r->v + at * r->prog->nq, k->scratch, r->a, &where)
                           : NULL;
    if (proof)
        return results_fail(r, where, proof);
    const char *name = gate_name(k->g, c, m, r->a),
               *why = kernel_has_pieces(&r->prog->contact[c].gap) ? ": " CORNER_TEXT : "";
    return results_fail(r, r->prog->contact[c].at,
                        arena_printf(r->a, "constraint '%s' does not hold at t = %s: %s %s%s", name,
                                     number(k, r->t[at]), what, number(k, x), why));
}

static bool gaps_hold(check *k, size_t c, int64_t at)
{
    results *r = k->r;
    const contact_family *f = &r->prog->contact[c];
    const double *gap = gate_gaps(k->g, c);
    int64_t n = gate_members(k->g, c), worst = -1;
    double deepest = 0;
    for (int64_t m = 0; m < n; m++) {
        double depth = depth_of(f, gap[m]);
        if (!(depth <= deepest)) {
            deepest = depth;
            worst = m;
            if (!isfinite(depth))
                return fails(k, c, m, at, "its gap is", gap[m]);
        }
    }
    if (worst < 0)
        return true;
    r->max_penetration = fmax(r->max_penetration, deepest);
    if (!r->promised.gives_way && deepest > k->loose * gate_length(k->g, c, worst, k->sizes) + GATE_GAP_LEAST)
        return fails(k, c, worst, at, "its gap is", gap[worst]);
    return true;
}

/* How far a gap may have opened since its contact last pushed: reactions of steps are means over the step. */
static double opened(check *k, size_t c, int64_t m, int64_t at)
{
    results *r = k->r;
    int nq = r->prog->nq;
    if (r->dense || at == 0)
        return 0;
    const double *v = r->v + at * nq, *before = v - nq;
    double *rates = k->sizes + nq;
    for (int i = 0; k->rates_at != at && i < nq; i++)
        rates[i] = fmax(fabs(v[i]), fabs(before[i]));
    k->rates_at = at;
    return 2 * (r->t[at] - r->t[at - 1]) * gate_length(k->g, c, m, rates);
}

/* How far the largest force of the contact would move its gap over the run: what the rounding of a gap is
   compared with whose bodies never moved. */
static double pressed_way(check *k, size_t c, int64_t m)
{
    int nq = k->r->prog->nq;
    double *H = arena_array(k->scratch, double, 2 * (size_t)nq + 1), *mass = H + nq, yields = 0,
           time = k->r->t_end;
    gate_mass_diagonal(k->g, mass);
    gate_row(k->g, c, m, H);
    for (int i = 0; i < nq; i++)
        if (H[i] != 0 && mass[i] > 0)
            yields += H[i] * H[i] / mass[i];
    return time * time * k->force[c] * yields;
}

/* The largest force that acted on the bodies of the contact, along its row: what the rounding of a reaction
   is compared with that was 0 all the time. */
static double force_seen(check *k, size_t c, int64_t m)
{
    const results *r = k->r;
    int nq = r->prog->nq;
    double *H = arena_array(k->scratch, double, 3 * (size_t)nq + 1), *mass = H + nq, *acc = mass + nq,
           most = 0;
    gate_mass_diagonal(k->g, mass);
    gate_row(k->g, c, m, H);
    for (int64_t at = 0; at < r->samples; at++) {
        results_acc(r, at, acc);
        for (int i = 0; i < nq; i++)
            if (H[i] != 0)
                most = fmax(most, fabs(mass[i] * acc[i] / H[i]));
    }
    return most;
}

/* Reactions that are kept: they push, in their cone, on what they touch. */
static bool reaction_holds(check *k, size_t c, int64_t m, int64_t at, bool bound)
{
    results *r = k->r;
    const contact_family *f = &r->prog->contact[c];
    const contact_result *x = &r->contact[c];
    size_t place = (size_t)(at * x->members + m);
    double rn = x->rn[place], size = k->force[c], small = k->loose * size, wrong = 0;
    if (f->relation == REL_GAP) {
        wrong = -rn;
        if (wrong > small) {
            if (wrong > FORCE_ROUNDED * force_seen(k, c, m))
                return fails(k, c, m, at, "its reaction pulls with", -rn);
            wrong = 0;
        }
        double gap = x->gap[place], apart = (r->dense ? 1 : 1000) * k->loose;
        if (gap > 0 && rn > small && gap > apart * gate_length(k->g, c, m, k->sizes) + opened(k, c, m, at) &&
            gap > ROUND_50 * pressed_way(k, c, m))
            return fails(k, c, m, at, "it pushes at a gap of", gap);
    }
    if (bound && x->nslip) {
        double rt = 0, most = gate_bound(k->g, c, m, rn);
        for (int j = 0; j < x->nslip; j++)
            rt = hypot(rt, x->rt[place * (size_t)x->nslip + (size_t)j]);
        /* where the bound is 0 friction is all rounding, of the normal forces */
        if (rt - most > k->loose * (k->friction[c] + most) + FORCE_ROUNDED * size)
            return fails(k, c, m, at, "its friction force passes the bound by", rt - most);
        if (rt > most && k->friction[c] > 0)
            r->residual = fmax(r->residual, (rt - most) / k->friction[c]);
    }
    if (size > 0 && wrong > 0)
        r->residual = fmax(r->residual, wrong / size);
    return true;
}

static bool reactions_hold(check *k, size_t c, int64_t at)
{
    const contact_result *x = &k->r->contact[c];
    bool bound = gate_knows_bound(k->g, c);
    for (int64_t m = 0; m < x->members; m++) {
        size_t place = (size_t)(at * x->members + m);
        bool acts = x->rn[place] != 0;
        for (int j = 0; j < x->nslip; j++)
            acts |= x->rt[place * (size_t)x->nslip + (size_t)j] != 0;
        if (acts && !reaction_holds(k, c, m, at, bound))
            return false;
    }
    return true;
}

/* The energy that was kept is that of the state. */
static bool energy_holds(check *k, int64_t at)
{
    results *r = k->r;
    gate_total is = gate_energy(k->g);
    double kept = results_energy(r, at);
    k->energy_top = fmax(k->energy_top, is.size);
    if (fabs(is.is - kept) <= GATE_SAME * (is.size + fabs(kept)) + ROUND_5 * k->energy_top + SIZE_LEAST)
        return true;
    return results_fail(r, SPAN_NONE,
                        arena_printf(r->a, "the energy kept at t = %s is %s, that of the state is %s",
                                     number(k, r->t[at]), number(k, kept), number(k, is.is)));
}

static bool sample_holds(check *k, int64_t at, bool energy)
{
    results *r = k->r;
    const program *p = r->prog;
    gate_at(k->g, r->t[at], r->q + at * p->nq, r->v + at * p->nq);
    for (size_t c = 0; c < p->ncontact; c++)
        if (gate_knows_gap(k->g, c) &&
            (!gaps_hold(k, c, at) || (r->contact[c].kept && !reactions_hold(k, c, at))))
            return false;
    return !energy || energy_holds(k, at);
}

/* Samples from..to, every stride-th.  Columns that lie in a file are read once from one end to the other:
   what was read is let go after each stretch. */
typedef struct stretch {
    int64_t from, to, stride;
} stretch;

static bool next_stretch(results *r, stretch *p)
{
    enum { OFTEN = 16384 };
    if (p->to > 0)
        results_rest(r);
    p->from = p->to;
    p->to = r->samples - p->from < OFTEN * p->stride ? r->samples : p->from + OFTEN * p->stride;
    return p->from < p->to;
}

/* of column k among n */
static bool finite_stretch(const double *x, int64_t n, int64_t k, const stretch *p)
{
    double sum = 0;
    for (int64_t at = p->from; x && at < p->to; at += p->stride)
        sum += 0 * x[at * n + k];
    return sum == 0;
}

static double largest_in(const double *x, int64_t n, int64_t k, const stretch *p, double most)
{
    for (int64_t at = p->from; at < p->to; at += p->stride) {
        double size = fabs(x[at * n + k]);
        if (size > most)
            most = size;
    }
    return most;
}

static bool all_finite(check *k, const stretch *p)
{
    const results *r = k->r;
    const double *single[] = { r->t, r->energy, r->work, r->dissipated }, *wide[] = { r->q, r->v, r->acc };
    int nq = r->prog->nq;
    bool finite = true;
    for (size_t i = 0; i < sizeof single / sizeof *single; i++)
        finite &= finite_stretch(single[i], 1, 0, p);
    for (size_t j = 0; j < sizeof wide / sizeof *wide; j++)
        for (int i = 0; i < nq; i++)
            finite &= finite_stretch(wide[j], nq, i, p);
    for (int64_t at = p->from; !finite && at < p->to; at += p->stride)
        if (!finite_columns(k, at))
            return false;
    return true;
}

/* sizes of dofs and reactions over the run; false: something is not finite */
static bool survey(check *k, int64_t stride)
{
    results *r = k->r;
    int nq = r->prog->nq;
    for (stretch p = { .stride = stride }; next_stretch(r, &p);) {
        if (!all_finite(k, &p))
            return false;
        for (int i = 0; i < nq; i++)
            k->sizes[i] = largest_in(r->q, nq, i, &p, k->sizes[i]);
        for (size_t c = 0; c < r->prog->ncontact; c++) {
            const contact_result *x = &r->contact[c];
            for (int64_t m = 0; x->kept && m < x->members; m++)
                k->force[c] = largest_in(x->rn, x->members, m, &p, k->force[c]);
            for (int64_t j = 0; x->kept && j < x->members * x->nslip; j++)
                k->friction[c] = largest_in(x->rt, x->members * x->nslip, j, &p, k->friction[c]);
        }
    }
    gate_sizes(k->sizes, nq);
    return true;
}

/* The sample at which a family was deepest by the columns: that one is looked at again whatever is left out.
 */
static int64_t deepest_kept(results *r, size_t c, int64_t stride)
{
    const contact_result *x = &r->contact[c];
    const contact_family *f = &r->prog->contact[c];
    int64_t worst = -1;
    double most = 0;
    for (stretch p = { .stride = stride }; x->kept && next_stretch(r, &p);)
        for (int64_t at = p.from; at < p.to; at += stride)
            for (int64_t m = 0; m < x->members; m++) {
                double depth = depth_of(f, x->gap[at * x->members + m]);
                if (depth > most) {
                    most = depth;
                    worst = at;
                }
            }
    return worst;
}

enum { SAMPLES = 1024, NUMBERS = 20000000, ENERGIES = 16 };

static double members_of_all(const check *k)
{
    double members = 1;
    for (size_t c = 0; c < k->r->prog->ncontact; c++)
        members += (double)gate_members(k->g, c);
    return members;
}

/* long runs are checked here and there: it takes a small part of the time of the run */
static bool run_holds(check *k)
{
    results *r = k->r;
    const program *p = r->prog;
    double members = members_of_all(k), numbers = (double)r->samples * (3 * p->nq + members);
    int64_t look = numbers > NUMBERS ? (int64_t)(numbers / NUMBERS) + 1 : 1;
    int64_t most = (int64_t)fmin(SAMPLES, fmax(2e6 / (members + p->nq), 4)),
            stride = r->samples > most ? r->samples / most : 1, count = 0;
    if (!later_finite(r))
        results_need(r, PART_ENERGY);
    if (!survey(k, look))
        return false;
    bool energy = results_have_energy(r) && !p->has_delay.file;
    results_rest(r);
    for (int64_t at = 0; at < r->samples; at += stride, count++) {
        if (count % 64 == 63)
            results_rest(r);
        if (!sample_holds(k, at, energy && count % (SAMPLES / ENERGIES) == 0))
            return false;
        balance_instant(k->balance, at);
        balance_step(k->balance, at);
    }
    results_rest(r);
    if (!sample_holds(k, r->samples - 1, energy) || !balance_holds(k->balance))
        return false;
    for (size_t c = 0; c < p->ncontact; c++) {
        int64_t at = deepest_kept(r, c, look);
        if (at >= 0 && !sample_holds(k, at, false))
            return false;
    }
    return true;
}

static void check_run(results *r, const void *ud, arena *scratch)
{
    const program *p = r->prog;
    (void)ud;
    check k = { .g = gate_new(scratch, p, r->param),
                .r = r,
                .loose = fmax(GATE_LOOSE, r->promised.tolerance),
                .scratch = scratch };
    gate_recall(k.g, r);
    k.balance = balance_new(k.g, r, scratch);
    k.sizes = arena_array(scratch, double, 2 * (size_t)p->nq + 1);
    k.force = arena_array(scratch, double, p->ncontact + 1);
    k.friction = arena_array(scratch, double, p->ncontact + 1);
    run_holds(&k);
    r->count.checked = k.g->ran;
}

/* values at the start, as the model gives them */
static void initial(gate *g, double *q, double *v)
{
    gate_at(g, 0, q, v);
    each_output(g, &g->p->init_q, use_put, q);
    each_output(g, &g->p->init_v, use_put, v);
}

/* A step that was not solved: were there constraints that nothing can keep? */
static void blame(results *r, const void *ud, arena *scratch)
{
    const program *p = r->prog;
    int nq = p->nq;
    (void)ud;
    double *q = arena_array(scratch, double, (size_t)nq), *start = arena_array(scratch, double, (size_t)nq);
    int64_t at = r->samples - 1;
    const double *v = at < 0 ? start : r->v + at * nq;
    gate *g = gate_new(scratch, p, r->param);
    span where;
    if (at < 0)
        initial(g, q, start);
    for (int i = 0; at >= 0 && i < nq; i++)
        q[i] = r->q[at * nq + i] + (r->t_end - r->t[at]) * v[i];
    double over = at > 0 ? r->t[at] - r->t[at - 1] : GATE_WINDOW * fmax(r->duration, r->t_end);
    const char *proof = gate_excludes(g, r->t_end, over, q, v, scratch, r->a, &where);
    if (!proof)
        return;
    r->message = arena_printf(r->a, "%s; %s", r->message, proof);
    r->where = where;
}

/* equations of first order alone are run by other backends, too */
static bool of_inclusion(const results *r)
{
    return !strcmp(r->backend, "inclusion") || !strcmp(r->backend, "limit");
}

void gate_check(results *r, const run_options *o)
{
    const program *p = r->prog;
    if (p->field)
        return; /* its solvers check what they keep */
    if (p->rod)
        rod_check(r, o);
    else if (of_inclusion(r))
        inclusion_check(r, o);
    else if (r->status == RUN_FAILED && r->where.file)
        results_scratch(r, blame, NULL);
    else if (r->status != RUN_FAILED && r->samples > 0 && !o->keep_going)
        results_scratch(r, check_run, NULL);
}
