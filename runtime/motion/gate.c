#include "gate.h"
#include <math.h>
#include <string.h>
#include "instant.h"
#include "base/rotation.h"
#include "base/taylor.h"
#include "clock/clock.h"
#include "inclusion/inclusion.h"
#include "past/history.h"
#include "clock/later.h"
#include "program/system.h"
#include "rod/rod.h"
#include "base/tolerances.h"

/* Outputs of members of a kernel, one after the other: values, and their places. */
typedef struct output_list {
    double *value;
    int32_t *row, *col; /* row -1: of a member that is skipped; col: the row if the kernel has no columns */
    size_t n;
} output_list;

/* Outputs of all members. Places are computed once; values too if they are constant. */
typedef struct outputs {
    const kernel *k;
    output_list all;
    bool known; /* the values are constant and computed */
} outputs;

/* Members that differ only in the last index: the number of members before them, and the first one. */
typedef struct member_row {
    int64_t before;
    int32_t index[MAX_INDEX];
} member_row;

typedef struct gate_family {
    double *gaps;                 /* of its members */
    outputs *gradient, *slip_map; /* stored if they are constant and few; NULL: not computed yet */
    member_row *row;              /* NULL: not computed yet */
    int64_t rows;
} gate_family;

struct gate {
    const program *p;
    arena *a;
    inputs in;
    gate_family *family;
    outputs *mass, *force, *kinetic, *potential; /* of each kernel; NULL: not computed yet */
    output_list member;                          /* temporary: the outputs of one member */
    double *room;                                /* registers of a batch */
    double *one;                                 /* registers of one member */
    const double *v;
    past_samples *past;    /* NULL: not known */
    double *react;         /* values of reactions for formulas; NULL: none are read, or they are not known */
    double *base, *turned; /* rotations: bases, and the dofs relative to them; NULL: there are none */
    /* kernels that were run, counted by member; a run over all members counts once for each LANES of them */
    int64_t ran;
};

/* ---- an instant ---- */
static bool reads_only(const kernel *k, unsigned kinds)
{
    for (uint32_t i = 0; i < k->tape.nin; i++)
        if (!(kinds >> k->in[i].kind & 1))
            return false;
    return true;
}

static const unsigned CONSTANT = 1u << IN_PARAM | 1u << IN_INDEX;
static const unsigned PLAIN = 1u << IN_TIME | 1u << IN_PARAM | 1u << IN_Q | 1u << IN_INDEX | 1u << IN_BASE;

bool gate_knows_gap(const gate *g, size_t of)
{
    const contact_family *f = &g->p->contact[of];
    return f->relation != REL_CLOSED && f->gap.tape.nout && reads_only(&f->gap, PLAIN);
}

bool gate_knows_rate(const gate *g, size_t of)
{
    const contact_family *f = &g->p->contact[of];
    return f->of_rates && reads_only(&f->gradient, PLAIN) && reads_only(&f->rate, PLAIN);
}

bool gate_knows_bound(const gate *g, size_t of)
{
    const contact_family *f = &g->p->contact[of];
    return f->friction != FRICTION_NONE && f->slip_given && !f->mu_of_speed && reads_only(&f->mu, CONSTANT) &&
           reads_only(&f->mu_static, CONSTANT) && reads_only(&f->adhesion, CONSTANT);
}

int64_t gate_members(const gate *g, size_t of)
{
    return index_members(&g->p->contact[of].over);
}

static void widest(const kernel *k, size_t *batch, size_t *regs, size_t *out)
{
    if (k->tape.nout > *out)
        *out = k->tape.nout;
    if (k->tape.nout && batch_regs(&k->tape) > *batch)
        *batch = batch_regs(&k->tape);
    if (k->tape.nreg > *regs)
        *regs = k->tape.nreg;
    if (k->where && k->where->nreg > *regs)
        *regs = k->where->nreg;
}

static output_list outputs_room(arena *a, size_t n)
{
    return (output_list){ arena_array(a, double, n), arena_array(a, int32_t, n), arena_array(a, int32_t, n),
                          n };
}

gate *gate_new(arena *a, const program *p, const double *param)
{
    gate *g = arena_make(a, gate);
    size_t batch = 1, regs = 1, out = 1;
    *g = (gate){ .p = p, .a = a, .in.from[IN_PARAM] = param };
    for (size_t c = 0; c < p->ncontact; c++) {
        const contact_family *f = &p->contact[c];
        const kernel *of[] = { &f->gap, &f->gradient,  &f->rate,     &f->mu,      &f->slip,
                               &f->e,   &f->mu_static, &f->adhesion, &f->slip_map };
        for (size_t i = 0; i < sizeof of / sizeof *of; i++)
            widest(of[i], &batch, &regs, &out);
    }
    const kernels *sums[] = { &p->mass,    &p->kinetic, &p->potential, &p->start.base,
                              &p->start.q, &p->start.v, &p->force };
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        for (size_t j = 0; j < sums[i]->n; j++)
            widest(&sums[i]->at[j], &batch, &regs, &out);
    g->room = arena_array(a, double, batch);
    g->one = arena_array(a, double, 2 * regs + 2);
    g->member = outputs_room(a, out);
    g->family = arena_array(a, gate_family, p->ncontact + 1);
    if (p->rotations.n) {
        g->base = arena_array(a, double, 3 * (size_t)p->nq);
        g->turned = arena_array(a, double, (size_t)p->nq);
        turns_start(p, g->base);
        g->in.from[IN_BASE] = g->base;
    }
    return g;
}

void gate_at(gate *g, double t, const double *q, const double *v)
{
    g->in.t = t;
    if (g->base) {
        memcpy(g->turned, q, (size_t)g->p->nq * sizeof *q);
        turns_take(g->p, g->turned, g->base);
        q = g->turned;
    }
    g->in.from[IN_Q] = q;
    g->in.from[IN_V] = g->in.from[IN_PRE] = g->v = v;
    if (g->past)
        samples_fill(g->past, &g->in);
}

const double *gate_gaps(gate *g, size_t of)
{
    const kernel *k = &g->p->contact[of].gap;
    gate_family *f = &g->family[of];
    if (!f->gaps)
        f->gaps = arena_array(g->a, double, (size_t)gate_members(g, of));
    g->ran += gate_members(g, of) / LANES + 1;
    kernel_run_all(k, &g->in, g->room, f->gaps);
    return f->gaps;
}

static void list_rows(gate *g, size_t of)
{
    const index_set *over = &g->p->contact[of].over;
    gate_family *f = &g->family[of];
    index_set rows = *over;
    int32_t index[MAX_INDEX] = { 0 };
    int64_t before = 0;
    int last = --rows.n;
    f->row = arena_array(g->a, member_row, (size_t)index_count(&rows) + 1);
    for (bool any = index_first(&rows, index); any; any = index_next(&rows, index)) {
        int64_t lo = range_lo(over, index, last), hi = range_hi(over, index, last);
        if (hi < lo)
            continue;
        member_row *to = &f->row[f->rows++];
        memcpy(to->index, index, sizeof index);
        to->index[last] = (int32_t)lo;
        to->before = before;
        before += hi - lo + 1;
    }
}

static void member_index(gate *g, size_t of, int64_t member, int32_t *index)
{
    int n = g->p->contact[of].over.n;
    gate_family *f = &g->family[of];
    memset(index, 0, MAX_INDEX * sizeof *index);
    if (n == 0)
        return;
    if (!f->row)
        list_rows(g, of);
    int64_t lo = 0, hi = f->rows;
    while (hi - lo > 1) {
        int64_t middle = lo + (hi - lo) / 2;
        if (f->row[middle].before <= member)
            lo = middle;
        else
            hi = middle;
    }
    memcpy(index, f->row[lo].index, MAX_INDEX * sizeof *index);
    index[n - 1] += (int32_t)(member - f->row[lo].before);
}

static const double *run_member(gate *g, const kernel *k, const int32_t *index)
{
    g->ran++;
    tape_start(&k->tape, g->one);
    kernel_run(k, &g->in, index, g->one);
    return g->one;
}

/* ---- outputs of kernels ---- */
/* Stores the outputs of one member from place `at` on; known: only the places. */
static void member_put(gate *g, const kernel *k, const int32_t *index, bool known, output_list *to, size_t at)
{
    const double *reg = known ? NULL : run_member(g, k, index);
    for (uint32_t i = 0; i < k->tape.nout; i++) {
        to->row[at + i] = k->row ? slot_at(&k->row[i], index, k->over.n) : 0;
        to->col[at + i] = k->col ? slot_at(&k->col[i], index, k->over.n) : to->row[at + i];
        if (reg)
            to->value[at + i] = reg[k->tape.out[i]];
    }
}

static void members_put(gate *g, outputs *o, bool known)
{
    const kernel *k = o->k;
    int32_t index[MAX_INDEX] = { 0 };
    size_t at = 0;
    for (bool any = index_first(&k->over, index); any; any = index_next(&k->over, index)) {
        if (!k->where || kernel_member(k, index, g->one))
            member_put(g, k, index, known, &o->all, at);
        else
            for (uint32_t i = 0; i < k->tape.nout; i++)
                o->all.row[at + i] = -1;
        at += k->tape.nout;
    }
}

/* Run the members of a kernel in lanes? Filling their registers pays only for many members. */
static bool in_lanes(const kernel *k)
{
    return index_members(&k->over) >= 16 && reads_only(k, PLAIN | 1u << IN_V | 1u << IN_PRE);
}

static void outputs_make(gate *g, const kernel *k, outputs *o)
{
    *o = (outputs){ .k = k, .all = outputs_room(g->a, (size_t)index_members(&k->over) * k->tape.nout) };
    if (in_lanes(k))
        members_put(g, o, true);
}

/* Outputs at the current instant of the gate. */
static const output_list *outputs_now(gate *g, outputs *o)
{
    if (o->known || !o->all.n)
        return &o->all;
    if (in_lanes(o->k)) {
        g->ran += index_members(&o->k->over) / LANES + 1;
        kernel_run_all(o->k, &g->in, g->room, o->all.value);
    } else
        members_put(g, o, false);
    o->known = reads_only(o->k, CONSTANT);
    return &o->all;
}

/* The outputs of one member of a family, by a kernel whose outputs may be stored in `kept`. */
static output_list of_member(gate *g, size_t of, int64_t member, const kernel *k, outputs **kept)
{
    enum { MOST_KEPT = 1 << 18 };
    size_t n = k->tape.nout;
    if (!*kept && !k->where && reads_only(k, CONSTANT) && (size_t)gate_members(g, of) * n <= MOST_KEPT) {
        *kept = arena_make(g->a, outputs);
        outputs_make(g, k, *kept);
    }
    if (*kept) {
        const output_list *all = outputs_now(g, *kept);
        size_t at = (size_t)member * n;
        return (output_list){ all->value + at, all->row + at, all->col + at, n };
    }
    int32_t index[MAX_INDEX];
    member_index(g, of, member, index);
    member_put(g, k, index, false, &g->member, 0);
    return (output_list){ g->member.value, g->member.row, g->member.col, n };
}

static output_list gradient_of(gate *g, size_t of, int64_t member)
{
    return of_member(g, of, member, &g->p->contact[of].gradient, &g->family[of].gradient);
}

static double one_number(gate *g, size_t of, int64_t member, const kernel *k)
{
    int32_t index[MAX_INDEX];
    member_index(g, of, member, index);
    return run_member(g, k, index)[k->tape.out[0]];
}

double gate_gap(gate *g, size_t of, int64_t member)
{
    return one_number(g, of, member, &g->p->contact[of].gap);
}

double gate_bound(gate *g, size_t of, int64_t member, double rn, bool slips)
{
    const contact_family *f = &g->p->contact[of];
    const kernel *k = !slips && f->mu_static.tape.nout ? &f->mu_static : &f->mu;
    if (!k->tape.nout)
        return 0;
    double mu = one_number(g, of, member, k);
    return f->friction == FRICTION_TRESCA ? mu : mu * fabs(rn + gate_adhesion(g, of, member));
}

double gate_adhesion(gate *g, size_t of, int64_t member)
{
    const kernel *k = &g->p->contact[of].adhesion;
    return k->tape.nout ? one_number(g, of, member, k) : 0;
}

double gate_length(gate *g, size_t of, int64_t member, const double *sizes)
{
    output_list H = gradient_of(g, of, member);
    double length = 0;
    for (size_t i = 0; i < H.n; i++)
        length += fabs(H.value[i]) * sizes[H.row[i]];
    return length;
}

const program *gate_program(const gate *g)
{
    return g->p;
}

double gate_row(gate *g, size_t of, int64_t member, double *H)
{
    const contact_family *f = &g->p->contact[of];
    output_list row = gradient_of(g, of, member);
    memset(H, 0, (size_t)g->p->nq * sizeof *H);
    for (size_t i = 0; i < row.n; i++)
        H[row.row[i]] += row.value[i];
    return f->rate.tape.nout ? one_number(g, of, member, &f->rate) : 0;
}

/* Processes an output of a kernel: its value, row and column (0 if it has none). */
typedef void output_use(gate *g, double x, int32_t row, int32_t col, void *to);

/* Processes all outputs of all members; `kept`: storage for these kernels from call to call. Inlined, because
   `use` does little work. */
static inline __attribute__((always_inline)) void each_output(gate *g, const kernels *ks, outputs **kept,
                                                              output_use *use, void *to)
{
    if (!*kept) {
        *kept = arena_array(g->a, outputs, ks->n + 1);
        for (size_t j = 0; j < ks->n; j++)
            outputs_make(g, &ks->at[j], &(*kept)[j]);
    }
    for (size_t j = 0; j < ks->n; j++) {
        const output_list *o = outputs_now(g, &(*kept)[j]);
        for (size_t i = 0; i < o->n; i++)
            if (o->row[i] >= 0)
                use(g, o->value[i], o->row[i], o->col[i], to);
    }
}

static void use_sum(gate *g, double x, int32_t row, int32_t col, void *to)
{
    gate_total *sum = to;
    (void)g, (void)row, (void)col;
    sum->is += x;
    sum->size += fabs(x);
}

/* v.M v/2 of the second-order dofs. */
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
    each_output(g, &g->p->mass, &g->mass, use_kinetic, &sum);
    each_output(g, &g->p->potential, &g->potential, use_sum, &sum);
    return sum;
}

gate_total gate_energy(gate *g)
{
    gate_total sum = { 0 };
    if (!g->p->kinetic.n)
        return gate_audited(g);
    each_output(g, &g->p->kinetic, &g->kinetic, use_sum, &sum);
    each_output(g, &g->p->potential, &g->potential, use_sum, &sum);
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

static bool reactions_kept(const results *r)
{
    for (size_t c = 0; c < r->prog->ncontact; c++)
        if (r->prog->contact[c].read_as && !r->contact[c].kept)
            return false;
    return true;
}

void gate_reactions(gate *g, const results *r, int64_t at)
{
    for (size_t c = 0; g->react && c < g->p->ncontact; c++) {
        const contact_result *x = &r->contact[c];
        if (!g->p->contact[c].read_as)
            continue;
        double *to = g->react + REACT * (g->p->contact[c].read_as - 1);
        to[0] = x->rn[at * x->members];
        for (int j = 0; j < x->nslip && j < MAX_SLIP; j++)
            to[1 + j] = x->rt[at * x->members * x->nslip + j];
    }
}

bool gate_reads_reactions(const gate *g)
{
    return g->react != NULL;
}

void gate_recall(gate *g, const results *r)
{
    enum { MOST = 4000000 }; /* limit of the numbers that are stored */
    const program *p = g->p;
    size_t read = 0;
    for (size_t c = 0; c < p->ncontact; c++)
        read = p->contact[c].read_as > (int32_t)read ? (size_t)p->contact[c].read_as : read;
    if (read && reactions_kept(r))
        g->in.from[IN_REACT] = g->react = arena_array(g->a, double, REACT *read);
    if (!p->delay || r->samples < 2 || r->count.resets.n || r->samples > MOST / (p->nq + 1))
        return;
    for (size_t c = 0; c < p->ncontact; c++)
        if (r->contact[c].impacts.n)
            return;
    double *q = arena_array(g->a, double, p->nq + 1),
           *base = g->base ? arena_array(g->a, double, 3 * (size_t)p->nq) : NULL;
    for (int64_t at = 0; at < r->samples; at++) {
        memcpy(q, r->q + at * p->nq, (size_t)p->nq * sizeof *q);
        if (base)
            turns_take(p, q, base);
        if (at == 0) {
            double step = r->t[r->samples - 1] / (double)(r->samples - 1);
            g->past = samples_new(g->a, p, r->param, q, base, step);
            samples_all(g->past);
        }
        samples_add(g->past, r->t[at], q, r->v + at * p->nq, base);
    }
}

bool gate_knows_motion(const gate *g)
{
    const program *p = g->p;
    const unsigned past = g->past ? 1u << IN_PAST_Q | 1u << IN_PAST_V | 1u << IN_PAST_BASE | 1u << IN_INTEGRAL
                                  : 0,
                   react = g->react ? 1u << IN_REACT : 0,
                   state = PLAIN | 1u << IN_V | 1u << IN_PRE | past | react;
    if (!all_read_only(&p->mass, state) || !all_read_only(&p->force, state))
        return false;
    for (size_t c = 0; c < p->ncontact; c++)
        if (!reads_only(&p->contact[c].gradient, PLAIN) || !reads_only(&p->contact[c].slip_map, PLAIN))
            return false;
    return true;
}

gate_still gate_stays(const gate *g)
{
    const program *p = g->p;
    gate_still is = { all_read_only(&p->mass, CONSTANT), all_read_only(&p->force, CONSTANT), true };
    for (size_t c = 0; c < p->ncontact; c++)
        is.rows &= reads_only(&p->contact[c].gradient, CONSTANT) &&
                   reads_only(&p->contact[c].slip_map, CONSTANT);
    return is;
}

void gate_force(gate *g, gate_sum *sum)
{
    each_output(g, &g->p->force, &g->force, use_add, sum);
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
    each_output(g, &g->p->mass, &g->mass, use_diagonal, diagonal);
}

void gate_mass_times(gate *g, const double *x, gate_sum *sum)
{
    each_output(g, &g->p->mass, &g->mass, use_times, &(product){ x, sum });
}

void gate_react(gate *g, size_t of, int64_t member, double rn, const double *rt, gate_sum *sum)
{
    const contact_family *f = &g->p->contact[of];
    if (rn != 0 && f->relation != REL_CLOSED && f->gradient.tape.nout) {
        output_list H = gradient_of(g, of, member);
        for (size_t i = 0; i < H.n; i++)
            use_add(g, rn * H.value[i], H.row[i], 0, sum);
    }
    if (rt && f->slip_map.tape.nout) {
        output_list S = of_member(g, of, member, &f->slip_map, &g->family[of].slip_map);
        for (size_t i = 0; i < S.n; i++)
            use_add(g, rt[f->slip_map.row[i].base] * S.value[i], S.col[i], 0, sum);
    }
}

void gate_react_all(gate *g, size_t of, const double *rn, gate_sum *sum)
{
    const outputs *kept = g->p->contact[of].relation == REL_CLOSED ? NULL : g->family[of].gradient;
    size_t members = (size_t)gate_members(g, of);
    if (!kept || !kept->known) {
        for (size_t m = 0; m < members; m++)
            if (rn[m] != 0)
                gate_react(g, of, (int64_t)m, rn[m], NULL, sum);
        return;
    }
    const output_list *H = &kept->all;
    for (size_t m = 0, n = kept->k->tape.nout; m < members; m++)
        for (size_t i = m * n; rn[m] != 0 && i < (m + 1) * n; i++)
            use_add(g, rn[m] * H->value[i], H->row[i], 0, sum);
}

void gate_reach(gate *g, size_t of, int64_t member, bool *dofs)
{
    const contact_family *f = &g->p->contact[of];
    int32_t index[MAX_INDEX];
    member_index(g, of, member, index);
    for (uint32_t i = 0; i < f->gradient.tape.nout; i++)
        dofs[slot_at(&f->gradient.row[i], index, f->over.n)] = true;
    for (uint32_t i = 0; i < f->slip_map.tape.nout; i++)
        dofs[slot_at(&f->slip_map.col[i], index, f->over.n)] = true;
}

/* Solves A x = b for a symmetric positive A with n <= MAX_SLIP rows; false: A is not positive. */
static bool solve_positive(double (*A)[MAX_SLIP], double *b, int n)
{
    double most = 0;
    for (int c = 0; c < n; c++)
        most = fmax(most, A[c][c]);
    for (int c = 0; c < n; c++) {
        if (!(A[c][c] > RANK_CHOLESKY * most))
            return false;
        for (int i = c + 1; i < n; i++) {
            double y = A[i][c] / A[c][c];
            for (int k = c; k < n; k++)
                A[i][k] -= y * A[c][k];
            b[i] -= y * b[c];
        }
    }
    for (int c = n - 1; c >= 0; c--) {
        for (int k = c + 1; k < n; k++)
            b[c] -= A[c][k] * b[k];
        b[c] /= A[c][c];
    }
    return true;
}

/* The normal of the constraint in the space of slip: nu with S^T nu = H, if the rows S of the slip span the
   row H of the gap; false: they do not, so all slip is tangential. */
static bool slip_normal_of(gate *g, size_t of, int64_t member, const double *S, int n, double *nu)
{
    int nq = g->p->nq;
    double A[MAX_SLIP][MAX_SLIP] = { 0 }, left = 0, size = 0;
    double *H = arena_array(g->a, double, (size_t)nq), *unit = arena_array(g->a, double, (size_t)nq);
    gate_row(g, of, member, H);
    /* dofs are scaled by their columns, because one may be a length and another one an angle */
    for (int k = 0; k < nq; k++) {
        double column = 0;
        for (int i = 0; i < n; i++)
            column += S[i * nq + k] * S[i * nq + k];
        if (column == 0 && H[k] != 0)
            return false;
        unit[k] = column > 0 ? 1 / column : 0;
    }
    for (int i = 0; i < n; i++) {
        nu[i] = 0;
        for (int k = 0; k < nq; k++) {
            nu[i] += unit[k] * S[i * nq + k] * H[k];
            for (int j = 0; j < n; j++)
                A[i][j] += unit[k] * S[i * nq + k] * S[j * nq + k];
        }
    }
    if (!solve_positive(A, nu, n))
        return false;
    for (int k = 0; k < nq; k++) {
        double x = H[k];
        for (int i = 0; i < n; i++)
            x -= nu[i] * S[i * nq + k];
        left += unit[k] * x * x;
        size += unit[k] * H[k] * H[k];
    }
    return left <= SPANNED_SQUARE * size;
}

bool gate_slip(gate *g, size_t of, int64_t member, double *slip, double *size)
{
    const contact_family *f = &g->p->contact[of];
    const kernel *k = &f->slip;
    int nq = g->p->nq, n = (int)k->tape.nout;
    if (!f->slip_given || !reads_only(k, PLAIN | 1u << IN_V) || !f->slip_map.tape.nout)
        return false;
    int32_t index[MAX_INDEX];
    member_index(g, of, member, index);
    const double *reg = run_member(g, k, index);
    for (int i = 0; i < n; i++)
        slip[i] = reg[k->tape.out[i]];
    gradient_of(g, of, member); /* what this stores must be allocated before the mark */
    output_list map = of_member(g, of, member, &f->slip_map, &g->family[of].slip_map);
    arena_pos mark = arena_mark(g->a);
    double *S = arena_array(g->a, double, (size_t)(n * nq)), nu[MAX_SLIP], square = 0, along = 0;
    *size = 0;
    for (size_t i = 0; i < map.n; i++) {
        S[f->slip_map.row[i].base * nq + map.col[i]] += map.value[i];
        *size += fabs(map.value[i] * g->v[map.col[i]]);
    }
    if (n > 1 && f->relation != REL_CLOSED && slip_normal_of(g, of, member, S, n, nu)) {
        for (int i = 0; i < n; i++) {
            square += nu[i] * nu[i];
            along += nu[i] * slip[i];
        }
        for (int i = 0; i < n && square > 0; i++)
            slip[i] -= nu[i] * along / square;
    }
    arena_release(g->a, mark);
    return true;
}

const char *gate_name(gate *g, size_t of, int64_t member, arena *a)
{
    family fam = { .f = &g->p->contact[of] };
    contact c = { .fam = &fam, .member = member };
    member_index(g, of, member, c.index);
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
    double *sizes;    /* the largest stored size of each dof; after them the rates of the sample rates_at */
    double *row;      /* temporary: a row of a constraint, for all dofs */
    double *fastest;  /* the largest stored rate of each dof */
    int64_t rates_at; /* 0: of none, because the first sample needs none */
    double *so_far; /* the largest rate of each dof in the samples before so_far_at; NULL: not computed yet */
    int64_t so_far_at;
    double loose;     /* relative tolerance: that of the run, at least 1e-6 */
    double *gap;      /* the largest stored gap of each family */
    double *force;    /* the largest normal force of each family */
    double *friction; /* and the largest component of friction, which may have a different unit */
    balance *balance;
    gate_pairs **pairs;  /* of each family; NULL: all members are checked */
    gate_shapes *shapes; /* NULL: there are no pairs of shapes */
    bool *of_shapes;     /* of each family: does it bound the distance of two shapes? */
    arena *scratch;
    double energy_top; /* the largest size of an energy so far */
    double **touching; /* of each family and member: a gap below this counts as closed; NULL: not computed */
} check;

static const char *number(const check *k, double x)
{
    text t = { .a = k->r->a };
    text_num(&t, x);
    return t.at;
}

/* Checks every number of a sample; true: all are finite. */
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

/* The member with the largest overlap; -1: none overlaps. */
typedef struct overlap {
    int64_t member;
    double depth, gap;
} overlap;

static void overlap_note(overlap *o, const contact_family *f, int64_t member, double gap)
{
    double depth = depth_of(f, gap);
    if (!(depth <= o->depth) && !isnan(o->depth))
        *o = (overlap){ member, depth, gap };
}

/* Checks the pairs that may overlap, and a few of the others to confirm that they do not. False: not such a
   family, or its points are not finite. */
static bool deepest_pair(check *k, size_t c, int64_t at, overlap *o)
{
    enum { OTHERS = 2000 };
    const results *r = k->r;
    const contact_family *f = &r->prog->contact[c];
    const int64_t *close;
    size_t n;
    if (!k->pairs[c] || !gate_pairs_find(k->pairs[c], r->q + at * r->prog->nq, &close, &n))
        return false;
    for (size_t i = 0; i < n; i++)
        overlap_note(o, f, close[i], gate_gap(k->g, c, close[i]));
    int64_t members = gate_members(k->g, c), apart = members / OTHERS;
    for (int64_t m = at % apart; m < members; m += apart)
        overlap_note(o, f, m, gate_gap(k->g, c, m));
    return true;
}

static overlap deepest_now(check *k, size_t c, int64_t at)
{
    overlap o = { -1, 0, 0 };
    if (deepest_pair(k, c, at, &o))
        return o;
    const double *gap = gate_gaps(k->g, c);
    for (int64_t m = 0, n = gate_members(k->g, c); m < n; m++)
        overlap_note(&o, &k->r->prog->contact[c], m, gap[m]);
    return o;
}

/* A size for comparison with rounding; one that overflows counts as 0. */
static double measure(double size)
{
    return isfinite(size) ? size : 0;
}

/* How far the largest force of the contact would move its gap within a time. */
static double pressed_way(check *k, size_t c, int64_t m, double time)
{
    int nq = k->r->prog->nq;
    double *H = arena_array(k->scratch, double, 2 * (size_t)nq + 1), *mass = H + nq, yields = 0;
    gate_mass_diagonal(k->g, mass);
    gate_row(k->g, c, m, H);
    for (int i = 0; i < nq; i++)
        if (H[i] != 0 && mass[i] > 0)
            yields += H[i] * H[i] / mass[i];
    return measure(time * time * k->force[c] * yields);
}

static const double *rates_before(check *k, int64_t at)
{
    const results *r = k->r;
    int nq = r->prog->nq;
    if (!k->so_far)
        k->so_far = arena_array(k->scratch, double, (size_t)nq + 1);
    if (at < k->so_far_at) {
        memset(k->so_far, 0, (size_t)nq * sizeof *k->so_far);
        k->so_far_at = 0;
    }
    for (; k->so_far_at < at; k->so_far_at++)
        for (int i = 0; i < nq; i++)
            k->so_far[i] = fmax(k->so_far[i], fabs(r->v[k->so_far_at * nq + i]));
    return k->so_far;
}

/* The overlap that the tolerance of the run permits. For a step, the tolerance is relative to the motion
   during a step, by the rates before it and by the forces (a step that failed has wrong rates). Impulses are
   as accurate as the largest one, so the rate is that of the fastest body, compared by masses. */
static double tolerated(check *k, size_t c, int64_t m, int64_t at)
{
    const results *r = k->r;
    int nq = r->prog->nq;
    if (r->dense || r->count.steps < 1)
        return measure(r->promised.tolerance * gate_length(k->g, c, m, k->sizes));
    double h = r->t_end / (double)r->count.steps, fastest = 0,
           since = at > 0 ? r->t[at] - r->t[at - 1] : h; /* several steps, if not all are stored */
    double *room = arena_array(k->scratch, double, 4 * (size_t)nq + 1), *rates = room, *mass = room + nq;
    gate_sum force = { room + 2 * nq, room + 3 * nq };
    const double *before = rates_before(k, at);
    gate_mass_diagonal(k->g, mass);
    gate_force(k->g, &force);
    for (int i = 0; i < nq; i++)
        if (mass[i] > 0)
            fastest = fmax(fastest, sqrt(mass[i]) * before[i] + since * fabs(force.at[i]) / sqrt(mass[i]));
    for (int i = 0; i < nq; i++)
        rates[i] = mass[i] > 0 ? fastest / sqrt(mass[i]) : before[i];
    return measure(r->promised.tolerance * h * gate_length(k->g, c, m, rates));
}

static bool gaps_hold(check *k, size_t c, int64_t at)
{
    results *r = k->r;
    overlap o = deepest_now(k, c, at);
    if (o.member < 0)
        return true;
    if (!isfinite(o.depth))
        return fails(k, c, o.member, at, "its gap is", o.gap);
    r->max_penetration = fmax(r->max_penetration, o.depth);
    double length = measure(gate_length(k->g, c, o.member, k->sizes)), size = fmax(length, k->gap[c]);
    double least = size > 0 ? fmin(GATE_GAP_LEAST, GATE_LOOSE * size) : GATE_GAP_LEAST;
    /* bodies that never moved have no size; compared with the motion that their forces could cause, the
       overlap is rounding */
    if (!r->promised.gives_way && o.depth > GATE_LOOSE * length + least &&
        o.depth > ROUND_50 * pressed_way(k, c, o.member, r->t_end) &&
        o.depth > GATE_LOOSE * length + tolerated(k, c, o.member, at))
        return fails(k, c, o.member, at, "its gap is", o.gap);
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

/* A gap at which a push is no error: rounding, relative to the motion over the whole run (for bodies that
   never moved), and what a whole step does not resolve, because it closes gaps by half. */
static double unresolved(check *k, size_t c, int64_t m, int64_t at)
{
    const results *r = k->r;
    double rounding = ROUND_50 * pressed_way(k, c, m, r->t_end);
    if (!r->count.at_once || at == 0)
        return rounding;
    return fmax(rounding, GATE_RESOLVED * pressed_way(k, c, m, r->t[at] - r->t[at - 1]));
}

/* The largest force on the bodies of the contact, along its row: a scale for the rounding of a reaction that
   was always 0. */
static double force_seen(check *k, size_t c, int64_t m)
{
    const results *r = k->r;
    int nq = r->prog->nq;
    arena_pos mark = arena_mark(k->scratch);
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
    arena_release(k->scratch, mark);
    return most;
}

/* The length of a row in the metric of the inverse masses; dofs without a mass do not count. */
static double row_length(const double *H, const double *mass, int nq)
{
    double sum = 0;
    for (int i = 0; i < nq; i++)
        sum += H[i] != 0 && mass[i] > 0 ? H[i] * H[i] / mass[i] : 0;
    return sqrt(sum);
}

/* The largest current reaction of a contact that shares a dof with this one, as a force along its row: both
   are solved together, so this is the scale for rounding. */
static double force_beside(check *k, size_t c, int64_t m, int64_t at)
{
    const results *r = k->r;
    int nq = r->prog->nq;
    arena_pos mark = arena_mark(k->scratch);
    double *own = arena_array(k->scratch, double, 3 * (size_t)nq + 1), *H = own + nq, *mass = H + nq,
           most = 0;
    gate_mass_diagonal(k->g, mass);
    gate_row(k->g, c, m, own);
    for (size_t f = 0; f < r->prog->ncontact; f++) {
        const contact_result *x = &r->contact[f];
        for (int64_t i = 0; x->kept && !r->prog->contact[f].pair.touch && i < x->members; i++) {
            double rn = fabs(x->rn[at * x->members + i]);
            bool shares = false;
            if (!(rn > 0))
                continue;
            gate_row(k->g, f, i, H);
            for (int j = 0; j < nq; j++)
                shares |= H[j] != 0 && own[j] != 0;
            if (shares)
                most = fmax(most, rn * row_length(H, mass, nq));
        }
    }
    double length = row_length(own, mass, nq);
    arena_release(k->scratch, mark);
    return length > 0 ? most / length : 0;
}

/* Did it slip at the start and at the end of the step to this sample? Otherwise it may have stuck in between.
 */
static bool slid(const contact_result *x, size_t place, int64_t at)
{
    return at > 0 && x->status[place] == STATUS_SLIP && x->status[place - (size_t)x->members] == STATUS_SLIP;
}

/* A gap above this fraction of its scale counts as open. */
static double apart_of(const check *k)
{
    return (k->r->dense ? 1 : 1000) * k->loose;
}

/* Checks stored reactions: they push, lie in their cone, and act only where bodies touch. */
static bool reaction_holds(check *k, size_t c, int64_t m, int64_t at, bool bound)
{
    results *r = k->r;
    const contact_family *f = &r->prog->contact[c];
    const contact_result *x = &r->contact[c];
    size_t place = (size_t)(at * x->members + m);
    double rn = x->rn[place], size = k->force[c], small = k->loose * size, wrong = 0;
    if (f->relation == REL_GAP && reads_only(&f->adhesion, PLAIN)) {
        wrong = -rn - gate_adhesion(k->g, c, m);
        if (wrong > small) {
            if (f->pair.touch || wrong > FORCE_ROUNDED * fmax(force_seen(k, c, m), force_beside(k, c, m, at)))
                return fails(k, c, m, at, "its reaction pulls with", -rn);
            wrong = 0;
        }
        double gap = x->gap[place];
        if (!f->pair.touch && gap > 0 && rn > small &&
            gap > measure(apart_of(k) * gate_length(k->g, c, m, k->sizes) + opened(k, c, m, at)) &&
            gap > unresolved(k, c, m, at))
            return fails(k, c, m, at, "its reaction acts at a gap of", gap);
    }
    if (bound && x->nslip) {
        double rt = 0, most = gate_bound(k->g, c, m, rn, slid(x, place, at));
        for (int j = 0; j < x->nslip; j++)
            rt = hypot(rt, x->rt[place * (size_t)x->nslip + (size_t)j]);
        /* with a bound of 0, friction is only the rounding of the normal forces */
        if (!(rt - most <= measure(k->loose * (k->friction[c] + most) + FORCE_ROUNDED * size)))
            return fails(k, c, m, at, "its friction force passes the bound by", rt - most);
        if (rt > most && k->friction[c] > 0)
            r->residual = fmax(r->residual, (rt - most) / k->friction[c]);
    }
    if (size > 0 && wrong > 0)
        r->residual = fmax(r->residual, wrong / size);
    return true;
}

/* Member number of the first point of a pair, in a listed family. */
static int64_t pair_member(const contact_family *f, const int32_t *pair)
{
    int32_t index[MAX_INDEX] = { 0 };
    int64_t n = 0;
    for (index[0] = f->over.r[0].lo; index[0] < pair[0]; index[0]++) {
        int64_t row = range_hi(&f->over, index, 1) - range_lo(&f->over, index, 1) + 1;
        n += row > 0 ? row : 0;
    }
    return f->slots * (n + pair[1] - range_lo(&f->over, index, 1));
}

/* Checks a pair of shapes from their points alone: they do not overlap, and push only if they were close
   during the step; the reactions of its points push and lie in their cones. m: its first member, -1 if
   reactions are not stored. */
static bool shape_pair_holds(check *k, size_t c, int64_t m, int64_t at, const int32_t *index)
{
    results *r = k->r;
    const contact_result *x = &r->contact[c];
    int slots = r->prog->contact[c].slots;
    shapes_apart s = gate_shapes_pair(k->shapes, c, index);
    double push = 0;
    if (!isfinite(s.gap) || (!r->promised.gives_way && -s.gap > k->loose * s.size))
        return fails(k, c, m < 0 ? pair_member(&r->prog->contact[c], index) : m, at, "its gap is", s.gap);
    if (-s.gap > SHAPE_DEEP * s.size)
        r->max_penetration = fmax(r->max_penetration, -s.gap);
    for (int i = 0; x->kept && i < slots; i++) {
        double rn = x->rn[at * x->members + m + i];
        push = fmax(push, rn);
        if (rn != 0 && !reaction_holds(k, c, m + i, at, gate_knows_bound(k->g, c)))
            return false;
    }
    if (push > k->loose * k->force[c] && s.gap > apart_of(k) * s.size + 2 * s.way)
        return fails(k, c, m, at, "its reaction acts at a gap of", s.gap);
    return true;
}

/* A sample of a family whose reactions are not stored. */
typedef struct pair_check {
    check *k;
    size_t c;
    int64_t at;
} pair_check;

static bool near_pair_holds(void *ud, const int32_t *index)
{
    const pair_check *p = ud;
    return shape_pair_holds(p->k, p->c, -1, p->at, index);
}

static bool pairs_hold(check *k, size_t c, int64_t at)
{
    const contact_family *f = &k->r->prog->contact[c];
    int32_t index[MAX_INDEX] = { 0 };
    int64_t m = 0;
    if (f->pair.listed && !k->r->contact[c].kept)
        return gate_shapes_each(k->shapes, c, near_pair_holds, &(pair_check){ k, c, at });
    for (bool any = index_first(&f->over, index); any; any = index_next(&f->over, index), m++)
        if (index[index_of_point(f)] == 1 && !shape_pair_holds(k, c, m, at, index))
            return false;
    return true;
}

void gate_place(const gate *g, gate_shapes *bodies)
{
    gate_shapes_place(bodies, &g->in);
}

bool gate_plain(const gate *g, gate_shapes *bodies, size_t of)
{
    const contact_family *f = &g->p->contact[of];
    int32_t index[MAX_INDEX] = { 0 };
    return f->pair.touch && f->relation == REL_GAP && index_first(&f->over, index) &&
           gate_shapes_plain(bodies, of, index, &g->in);
}

/* Places the bodies at the previous sample, then at this one. */
static void shapes_place_at(check *k, int64_t at)
{
    const results *r = k->r;
    int nq = r->prog->nq;
    int64_t before = at > 0 ? at - 1 : 0;
    if (!k->shapes)
        return;
    gate_at(k->g, r->t[before], r->q + before * nq, r->v + before * nq);
    gate_place(k->g, k->shapes);
    gate_at(k->g, r->t[at], r->q + at * nq, r->v + at * nq);
    gate_place(k->g, k->shapes);
}

static void shapes_begin(check *k)
{
    const program *p = k->r->prog;
    k->shapes = gate_shapes_new(k->scratch, p, k->r->param);
    k->of_shapes = arena_array(k->scratch, bool, p->ncontact + 1);
    shapes_place_at(k, 0);
    for (size_t c = 0; k->shapes && c < p->ncontact; c++)
        k->of_shapes[c] = gate_plain(k->g, k->shapes, c);
}

/* Gaps at which members may push: reaction_holds permits at least these. NULL: they change between samples,
   or more than gaps and signs must be checked. */
static const double *touching_gaps(check *k, size_t c)
{
    const contact_family *f = &k->r->prog->contact[c];
    int64_t members = k->r->contact[c].members;
    if (f->relation != REL_GAP || f->adhesion.tape.nout || !reads_only(&f->gradient, CONSTANT) ||
        k->r->contact[c].nslip)
        return NULL;
    if (!k->touching[c]) {
        k->touching[c] = arena_array(k->scratch, double, (size_t)members + 1);
        for (int64_t m = 0; m < members; m++)
            k->touching[c][m] = apart_of(k) * gate_length(k->g, c, m, k->sizes);
    }
    return k->touching[c];
}

static bool reactions_hold(check *k, size_t c, int64_t at)
{
    const contact_result *x = &k->r->contact[c];
    bool bound = gate_knows_bound(k->g, c);
    const double *touching = touching_gaps(k, c);
    for (int64_t m = 0; m < x->members; m++) {
        size_t place = (size_t)(at * x->members + m);
        bool acts = x->rn[place] != 0;
        if (touching && x->rn[place] >= 0 && x->gap[place] <= touching[m])
            continue;
        for (int j = 0; j < x->nslip; j++)
            acts |= x->rt[place * (size_t)x->nslip + (size_t)j] != 0;
        if (acts && !reaction_holds(k, c, m, at, bound))
            return false;
    }
    return true;
}

/* A constraint on rates holds, and pushes only at its bound. */
static bool rates_hold(check *k, size_t c, int64_t at)
{
    const results *r = k->r;
    const contact_family *f = &r->prog->contact[c];
    const contact_result *x = &r->contact[c];
    int nq = r->prog->nq;
    const double *v = r->v + at * nq;
    double *H = k->row;
    bool holds = true;
    for (int64_t m = 0; holds && m < gate_members(k->g, c); m++) {
        double still = gate_row(k->g, c, m, H), rate = still, size = fabs(still);
        for (int i = 0; i < nq; i++) {
            rate += H[i] * v[i];
            size += fabs(H[i]) * k->fastest[i];
        }
        double rn = x->kept ? x->rn[at * x->members + m] : 0, small = k->loose * k->force[c];
        double within = 0; /* reactions of steps are means over the step */
        for (int i = 0; !r->dense && at > 0 && i < nq; i++)
            within += fabs(H[i] * (v[i] - v[i - nq]));
        if (!r->promised.gives_way && !(depth_of(f, rate) <= k->loose * size))
            holds = fails(k, c, m, at, "its bounded rate is", rate);
        else if (f->relation == REL_GAP && rn < -small)
            holds = fails(k, c, m, at, "its reaction pulls with", -rn);
        else if (f->relation == REL_GAP && rn > small && rate > 1000 * k->loose * size + 2 * within)
            holds = fails(k, c, m, at, "its reaction acts while its bounded rate is", rate);
    }
    return holds;
}

/* Compares the stored energy with that of the stored state. */
static bool energy_holds(check *k, int64_t at)
{
    results *r = k->r;
    gate_total is = gate_energy(k->g);
    double kept = results_energy(r, at);
    k->energy_top = fmax(k->energy_top, is.size);
    if (fabs(is.is - kept) <= GATE_SAME * (is.size + fabs(kept)) + ROUND_5 * k->energy_top + SIZE_LEAST)
        return true;
    return results_fail(r, SPAN_NONE,
                        arena_printf(r->a, "the stored energy at t = %s is %s, that of the state is %s",
                                     number(k, r->t[at]), number(k, kept), number(k, is.is)));
}

static bool sample_holds(check *k, int64_t at, bool energy)
{
    results *r = k->r;
    const program *p = r->prog;
    shapes_place_at(k, at);
    gate_at(k->g, r->t[at], r->q + at * p->nq, r->v + at * p->nq);
    for (size_t c = 0; c < p->ncontact; c++) {
        if (k->of_shapes[c] && !pairs_hold(k, c, at))
            return false;
        if (gate_knows_rate(k->g, c) && !rates_hold(k, c, at))
            return false;
        /* a constant given normal force bounds friction at the sample as well as over the step */
        bool given = p->contact[c].relation == REL_CLOSED && !p->contact[c].fed &&
                     reads_only(&p->contact[c].normal, CONSTANT);
        if (given && r->contact[c].kept && gate_knows_bound(k->g, c) && !reactions_hold(k, c, at))
            return false;
    }
    for (size_t c = 0; c < p->ncontact; c++)
        if (gate_knows_gap(k->g, c) &&
            (!gaps_hold(k, c, at) || (r->contact[c].kept && !reactions_hold(k, c, at))))
            return false;
    return !energy || energy_holds(k, at);
}

/* Samples from..to, every stride-th. Columns that are stored in a file are read once from start to end, and
   their memory is released after each stretch. */
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

/* Are n numbers of each sample finite? Several sums, so that additions need not wait for each other. */
static bool finite_stretch(const double *x, int64_t n, const stretch *p)
{
    double sum[4] = { 0 };
    for (int64_t at = p->from; x && at < p->to; at += p->stride) {
        const double *row = x + at * n;
        int64_t i = 0;
        for (; i + 4 <= n; i += 4)
            for (int k = 0; k < 4; k++)
                sum[k] += 0 * row[i + k];
        for (; i < n; i++)
            sum[0] += 0 * row[i];
    }
    return sum[0] + sum[1] + sum[2] + sum[3] == 0;
}

/* The largest absolute value of each of n columns. */
static void largest_each(const double *x, int64_t n, const stretch *p, double *most)
{
    for (int64_t at = p->from; at < p->to; at += p->stride)
        for (int64_t i = 0; i < n; i++) {
            double size = fabs(x[at * n + i]);
            most[i] = size > most[i] ? size : most[i];
        }
}

static double largest_of_all(const double *x, int64_t n, const stretch *p, double most)
{
    for (int64_t at = p->from; at < p->to; at += p->stride)
        for (int64_t i = 0; i < n; i++) {
            double size = fabs(x[at * n + i]);
            most = size > most ? size : most;
        }
    return most;
}

static bool all_finite(check *k, const stretch *p)
{
    const results *r = k->r;
    const double *single[] = { r->t, r->energy, r->work, r->dissipated }, *wide[] = { r->q, r->v, r->acc };
    bool finite = true;
    for (size_t i = 0; i < sizeof single / sizeof *single; i++)
        finite &= finite_stretch(single[i], 1, p);
    for (size_t j = 0; j < sizeof wide / sizeof *wide; j++)
        finite &= finite_stretch(wide[j], r->prog->nq, p);
    for (int64_t at = p->from; !finite && at < p->to; at += p->stride)
        if (!finite_columns(k, at))
            return false;
    return true;
}

/* Scales of dofs and reactions over the run; false: something is not finite. */
static bool survey(check *k, int64_t stride)
{
    results *r = k->r;
    int nq = r->prog->nq;
    for (stretch p = { .stride = stride }; next_stretch(r, &p);) {
        if (!all_finite(k, &p))
            return false;
        largest_each(r->q, nq, &p, k->sizes);
        largest_each(r->v, nq, &p, k->fastest);
        for (size_t c = 0; c < r->prog->ncontact; c++) {
            const contact_result *x = &r->contact[c];
            if (!x->kept)
                continue;
            k->force[c] = largest_of_all(x->rn, x->members, &p, k->force[c]);
            k->gap[c] = largest_of_all(x->gap, x->members, &p, k->gap[c]);
            k->friction[c] = largest_of_all(x->rt, x->members * x->nslip, &p, k->friction[c]);
        }
    }
    gate_sizes(k->sizes, nq);
    return true;
}

/* The sample at which a family overlapped most by its column. It is always checked, even if others are
   skipped. */
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
    enum { CLOSE = 16 }; /* limit, for each point */
    double members = 1;
    for (size_t c = 0; c < k->r->prog->ncontact; c++)
        members += k->pairs[c] ? CLOSE * gate_pairs_points(k->pairs[c]) : (double)gate_members(k->g, c);
    return members;
}

/* Checks the run. In long runs only some samples are checked, so that it takes a small fraction of the time
   of the run. */
static bool run_holds(check *k)
{
    results *r = k->r;
    const program *p = r->prog;
    double members = members_of_all(k), numbers = (double)r->samples * (3 * p->nq + members);
    int64_t look = numbers > NUMBERS ? (int64_t)(numbers / NUMBERS) + 1 : 1;
    int64_t most = (int64_t)fmin((double)r->samples, fmin(SAMPLES, fmax(2e6 / (members + p->nq), 4)));
    if (!later_finite(r))
        results_need(r, PART_ENERGY);
    if (!survey(k, look))
        return false;
    bool energy = results_have_energy(r) && !p->has_delay.file;
    results_rest(r);
    for (int64_t count = 0; count < most; count++) {
        int64_t at = count * r->samples / most;
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

/* Text of what was not checked: gaps that read more than t, q and parameters, equations of motion that were
   never checked. */
static const char *left_out(const check *k)
{
    const results *r = k->r;
    text t = { .a = r->a };
    const char *motion = balance_unchecked(k->balance, r->a);
    if (motion)
        text_puts(&t, motion);
    for (size_t c = 0; c < r->prog->ncontact; c++) {
        const contact_family *f = &r->prog->contact[c];
        if (f->relation != REL_CLOSED && !k->of_shapes[c] && !gate_knows_gap(k->g, c) &&
            !gate_knows_rate(k->g, c))
            text_printf(&t, "%sgaps and reactions of '%s', which %s", t.n ? "; " : "", f->name,
                        f->pair.touch ? "are between shapes" : "read the past");
    }
    return t.n ? t.at : NULL;
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
    shapes_begin(&k);
    k.balance = balance_new(k.g, r, scratch);
    k.sizes = arena_array(scratch, double, 2 * (size_t)p->nq + 1);
    k.row = arena_array(scratch, double, (size_t)p->nq + 1);
    k.fastest = arena_array(scratch, double, (size_t)p->nq + 1);
    k.touching = arena_array(scratch, double *, p->ncontact + 1);
    k.pairs = arena_array(scratch, gate_pairs *, p->ncontact + 1);
    for (size_t c = 0; c < p->ncontact; c++)
        k.pairs[c] = gate_pairs_new(scratch, &p->contact[c], r->param);
    k.gap = arena_array(scratch, double, p->ncontact + 1);
    k.force = arena_array(scratch, double, p->ncontact + 1);
    k.friction = arena_array(scratch, double, p->ncontact + 1);
    if (run_holds(&k))
        r->count.unchecked = left_out(&k);
    r->count.checked = k.g->ran;
}

void gate_initial(gate *g, double *q, double *v)
{
    gate_at(g, 0, q, v);
    outputs *bases = NULL, *places = NULL, *rates = NULL;
    if (g->base)
        each_output(g, &g->p->start.base, &bases, use_put, g->base);
    g->in.from[IN_Q] = q;
    each_output(g, &g->p->start.q, &places, use_put, q);
    each_output(g, &g->p->start.v, &rates, use_put, v);
    if (g->base)
        turns_keep(g->p, g->base, q, v, NULL);
}

/* After a step without solution: are there constraints that exclude each other? */
static void blame(results *r, const void *ud, arena *scratch)
{
    enum { GROWS = 10 };
    const program *p = r->prog;
    int nq = p->nq;
    (void)ud;
    double *q = arena_array(scratch, double, (size_t)nq), *start = arena_array(scratch, double, (size_t)nq);
    int64_t at = r->samples - 1;
    const double *v = at < 0 ? start : r->v + at * nq;
    gate *g = gate_new(scratch, p, r->param);
    span where;
    if (at < 0)
        gate_initial(g, q, start);
    for (int i = 0; at >= 0 && i < nq; i++)
        q[i] = r->q[at * nq + i] + (r->t_end - r->t[at]) * v[i];
    for (size_t i = 0; at >= 0 && i < p->rotations.n; i++) {
        int32_t first = p->rotations.at[i];
        double R[9], turn[3];
        for (int k = 0; k < 3; k++)
            turn[k] = (r->t_end - r->t[at]) * v[first + k];
        rotation_of_vector(r->q + at * nq + first, R);
        rotation_turn(R, turn);
        rotation_vector(R, q + first);
    }
    double over = at > 0 ? r->t[at] - r->t[at - 1] : GATE_WINDOW * fmax(r->duration, r->t_end);
    const char *proof = gate_excludes(g, r->t_end, over, q, v, scratch, r->a, &where);
    /* a contradiction in second or higher rates appears a little later */
    double longest = p->rotations.n ? 0 : fmax(r->duration - r->t_end, 0) / 16, gone = 0;
    for (double s = fmin(over, longest); !proof && s > gone; s = fmin(GROWS * s, longest)) {
        for (int i = 0; i < nq; i++)
            q[i] += (s - gone) * v[i];
        gone = s;
        proof = gate_excludes(g, r->t_end + s, s, q, v, scratch, r->a, &where);
    }
    if (!proof)
        return;
    r->message = arena_printf(r->a, "%s; %s", r->message, proof);
    r->where = where;
}

/* Equations of first order only; they are also run by other backends. */
static bool of_inclusion(const results *r)
{
    return !strcmp(r->backend, "inclusion") || !strcmp(r->backend, "limit");
}

void gate_check(results *r, const run_options *o)
{
    const program *p = r->prog;
    if (p->field)
        return; /* these solvers check their own results */
    if (p->rod)
        rod_check(r, o);
    else if (of_inclusion(r))
        inclusion_check(r, o);
    else if (r->status == RUN_FAILED && r->where.file)
        results_scratch(r, blame, NULL);
    else if (r->status != RUN_FAILED && r->samples > 0 && !o->keep_going)
        results_scratch(r, check_run, NULL);
}
