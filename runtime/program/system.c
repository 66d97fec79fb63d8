#include "near.h"
#include "base/tolerances.h"
#include "base/rotation.h"
#include "base/four.h"
#include <math.h>
#include <string.h>

/* ---- kernels and their registers ---- */
static const unsigned STILL = 1u << IN_PARAM | 1u << IN_INDEX; /* data that do not change during a run */

static unsigned kernel_reads(const kernel *k)
{
    unsigned r = 0;
    for (uint32_t i = 0; i < k->tape.nin; i++)
        r |= 1u << k->in[i].kind;
    return r;
}

term term_new(arena *a, const kernel *k)
{
    term t = { .constant = true };
    if (k->tape.nout == 0)
        return t;
    t.k = k;
    t.reg = arena_array(a, double, (size_t)k->tape.nreg + 1);
    if (k->where)
        t.where = arena_array(a, double, (size_t)k->where->nreg + 1);
    tape_start(&k->tape, t.reg);
    t.constant = !(kernel_reads(k) & ~STILL);
    return t;
}

/* Parameters keep their registers, so a kernel of one member reads only the rest at each instant. */
static void term_settle(arena *a, term *t, const double *param)
{
    const unsigned known = 1u << IN_PARAM | 1u << IN_TIME | 1u << IN_SPEED | 1u << IN_Q | 1u << IN_V |
                           1u << IN_PRE | 1u << IN_BASE | 1u << IN_FEATURE;
    const kernel *k = t->k;
    if (!k || k->over.n || t->where || (kernel_reads(k) & ~known))
        return;
    int32_t none[MAX_INDEX] = { 0 };
    kernel_gather(k, &(inputs){ .from = { [IN_PARAM] = param } }, none, t->reg);
    reading *m = arena_array(a, reading, k->tape.nin + 1);
    t->time = t->speed = -1;
    for (uint32_t i = 0; i < k->tape.nin; i++) {
        in_kind kind = k->in[i].kind;
        if (kind == IN_TIME)
            t->time = (int32_t)i;
        else if (kind == IN_SPEED)
            t->speed = (int32_t)i;
        else if (kind != IN_PARAM)
            m[t->nmove++] = (reading){ kind, k->in[i].at.base, (int32_t)i };
    }
    t->move = m;
}

/* Memory to run all members of a family together, if there are enough of them. */
static void term_batch(arena *a, term *t)
{
    enum { FEW = 16 };
    if (!t->k || t->move || index_members(&t->k->over) < FEW)
        return;
    t->batch = arena_array(a, double,
                           batch_regs(&t->k->tape) + (size_t)index_members(&t->k->over) * t->k->tape.nout);
}

static terms terms_new(arena *a, const kernels *k, const double *param)
{
    terms t = { .at = arena_array(a, term, k->n), .n = k->n, .constant = true };
    for (size_t i = 0; i < k->n; i++) {
        t.at[i] = term_new(a, &k->at[i]);
        term_settle(a, &t.at[i], param);
        term_batch(a, &t.at[i]);
        t.reads |= kernel_reads(&k->at[i]);
        t.constant &= t.at[i].constant;
    }
    return t;
}

bool term_member(const term *t, const int32_t *index)
{
    return !t->where || kernel_member(t->k, index, t->where);
}

/* outputs of all members, member after member */
static const double *term_run_all(const term *t, const inputs *in)
{
    double *out = t->batch + batch_regs(&t->k->tape);
    kernel_run_all(t->k, in, t->batch, out);
    return out;
}

/* out[row] += each output; members along one index need no checks. */
static void add_outputs(const kernel *k, const double *value, double *out)
{
    uint32_t n = k->tape.nout;
    int32_t index[MAX_INDEX];
    if (k->over.n == 1) {
        int64_t lo = k->over.r[0].lo, count = index_members(&k->over);
        for (int64_t m = 0; m < count; m++)
            for (uint32_t i = 0; i < n; i++)
                out[k->row[i].base + k->row[i].stride[0] * (lo + m)] += *value++;
        return;
    }
    for (bool any = index_first(&k->over, index); any; any = index_next(&k->over, index))
        for (uint32_t i = 0; i < n; i++)
            out[slot_at(&k->row[i], index, k->over.n)] += *value++;
}

static void add_members(const term *t, const inputs *in, double *out)
{
    const kernel *k = t->k;
    int32_t index[MAX_INDEX];
    if (t->batch) {
        add_outputs(k, term_run_all(t, in), out);
        return;
    }
    for (bool any = index_first(&k->over, index); any; any = index_next(&k->over, index)) {
        if (!term_member(t, index))
            continue;
        kernel_run(k, in, index, t->reg);
        for (uint32_t i = 0; i < k->tape.nout; i++)
            out[slot_at(&k->row[i], index, k->over.n)] += t->reg[k->tape.out[i]];
    }
}

static inline void term_add(const term *t, const inputs *in, double *out)
{
    const kernel *k = t->k;
    if (!t->move) {
        if (k)
            add_members(t, in, out);
        return;
    }
    term_run(t, in, NULL);
    for (uint32_t i = 0, n = k->tape.nout; i < n; i++)
        out[k->row[i].base] += t->reg[k->tape.out[i]];
}

/* The same for a matrix; a diagonal one ignores columns. */
static void term_add_matrix(const term *t, const inputs *in, const matrix_shape *shape, double *out)
{
    const kernel *k = t->k;
    int32_t index[MAX_INDEX] = { 0 };
    if (!k)
        return;
    const double *all = t->batch ? term_run_all(t, in) : NULL;
    const int *place = t->place;
    for (bool any = index_first(&k->over, index); any; any = index_next(&k->over, index)) {
        const int *to = place;
        if (place)
            place += k->tape.nout;
        if (!all) {
            if (!term_member(t, index))
                continue;
            kernel_run(k, in, index, t->reg);
        }
        for (uint32_t i = 0; i < k->tape.nout; i++) {
            double x = all ? *all++ : t->reg[k->tape.out[i]];
            if (to)
                out[to[i]] += x;
            else
                out[matrix_at(shape, slot_at(&k->row[i], index, k->over.n),
                              slot_at(&k->col[i], index, k->over.n))] += x;
        }
    }
}

/* The same, but the last output counts: values that a container gives to its parts come after their own. */
static void term_put(const term *t, const inputs *in, double *out)
{
    const kernel *k = t->k;
    int32_t index[MAX_INDEX] = { 0 };
    if (!k)
        return;
    for (bool any = index_first(&k->over, index); any; any = index_next(&k->over, index)) {
        if (!term_member(t, index))
            continue;
        kernel_run(k, in, index, t->reg);
        for (uint32_t i = 0; i < k->tape.nout; i++)
            out[slot_at(&k->row[i], index, k->over.n)] = t->reg[k->tape.out[i]];
    }
}

/* ---- masses and forces ---- */
static void matrix_sum(system_t *s, const terms *t, const matrix_shape *shape, double *out)
{
    memset(out, 0, shape->count * sizeof *out);
    for (size_t i = 0; i < t->n; i++)
        if (shape->kind == MATRIX_DIAGONAL)
            term_add(&t->at[i], &s->in, out);
        else
            term_add_matrix(&t->at[i], &s->in, shape, out);
}

void system_mass(system_t *s, double *M)
{
    matrix_sum(s, &s->mass, &s->mass_shape, M);
}

void system_force(system_t *s, double *f)
{
    arena_tick(s->a, 64 + 32 * (int64_t)s->n);
    if (s->past && s->past_late)
        samples_fill(s->past, &s->in);
    for (int i = 0; i < s->n; i++)
        f[i] = 0;
    for (size_t i = 0; i < s->force.n; i++)
        term_add(&s->force.at[i], &s->in, f);
}

void system_jacobian(system_t *s, double *Fq, double *Fv)
{
    matrix_sum(s, &s->force_dq, &s->step_shape, Fq);
    matrix_sum(s, &s->force_dv, &s->step_shape, Fv);
}

static double sum_members(system_t *s, const term *t, double sum)
{
    const kernel *k = t->k;
    int32_t index[MAX_INDEX];
    if (t->batch) {
        const double *x = term_run_all(t, &s->in);
        size_t n = (size_t)index_members(&k->over) * k->tape.nout;
        for (size_t j = 0; j < n; j++)
            sum += x[j];
        return sum;
    }
    for (bool any = index_first(&k->over, index); any; any = index_next(&k->over, index)) {
        if (!term_member(t, index))
            continue;
        kernel_run(k, &s->in, index, t->reg);
        for (uint32_t j = 0; j < k->tape.nout; j++)
            sum += t->reg[k->tape.out[j]];
    }
    return sum;
}

double system_kinetic(const system_t *s, const double *M, const double *v)
{
    double sum = 0;
    if (!s->first_order)
        return 0.5 * mass_norm2(s, M, v);
    for (int i = 0; i < s->n; i++)
        if (s->p->order[i] == 2)
            sum += v[i] * (mass_diagonal(s) ? M[i] * v[i] : vec_dot(M + (size_t)i * (size_t)s->n, v, s->n));
    return 0.5 * sum;
}

double system_sum(system_t *s, const terms *e)
{
    double sum = 0;
    for (const term *t = e->at, *end = t + e->n; t < end; t++) {
        if (!t->move) {
            if (t->k)
                sum = sum_members(s, t, sum);
            continue;
        }
        term_run(t, &s->in, NULL);
        for (const uint32_t *out = t->k->tape.out, *last = out + t->k->tape.nout; out < last; out++)
            sum += t->reg[*out];
    }
    return sum;
}

double system_driving(system_t *s, double *f)
{
    if (s->past && s->past_late)
        samples_fill(s->past, &s->in);
    for (int i = 0; i < s->n; i++)
        f[i] = 0;
    for (size_t i = 0; i < s->driving.n; i++)
        term_add(&s->driving.at[i], &s->in, f);
    return system_sum(s, &s->power);
}

bool system_factor(system_t *s, const double *M, int *bad)
{
    *bad = 0;
    /* rows of first-order equations need not be symmetric */
    if (s->first_order && !mass_diagonal(s))
        return factor_matrix(&s->minv, M);
    return factor_matrix_spd(&s->minv, M, bad);
}

static void start_project(system_t *s, double *q, double *v);

/* The statement that sets the initial value of the rotation. */
static span base_where(const program *p, int32_t rotation)
{
    int32_t index[MAX_INDEX];
    span at = SPAN_NONE;
    for (size_t i = 0; i < p->start.base.n; i++) {
        const kernel *k = &p->start.base.at[i];
        for (bool any = index_first(&k->over, index); any; any = index_next(&k->over, index))
            for (uint32_t j = 0; j < k->tape.nout; j++)
                if (slot_at(&k->row[j], index, k->over.n) == 3 * rotation)
                    at = k->at;
    }
    return at;
}

/* Initial rotations, which depend on parameters. */
static void start_bases(system_t *s)
{
    const program *p = s->p;
    inputs in = { .from = { [IN_PARAM] = s->param, [IN_BASE] = s->base } };
    turns_start(p, s->base);
    s->start_wrong = SPAN_NONE;
    for (size_t i = 0; i < p->start.base.n; i++) {
        term t = term_new(s->a, &p->start.base.at[i]);
        term_put(&t, &in, s->base);
    }
    for (size_t i = 0; i < p->rotations.n; i++) {
        double *R = s->base + 3 * (size_t)p->rotations.at[i];
        if (rotation_defect(R) > ROTATION_SLACK && !s->start_wrong.file)
            s->start_wrong = base_where(p, p->rotations.at[i]);
        rotation_mend(R);
    }
}

const char *system_start_error(const system_t *s, span *at)
{
    if (s->start_missed) {
        text t = { .a = s->a };
        *at = s->start_missed->fam->f->at;
        text_printf(&t, "constraint '%s' does not hold at t = 0: the rates miss it by ",
                    contact_name(s->start_missed, s->a));
        text_num(&t, fabs(s->start_by_rate));
        return t.at;
    }
    *at = s->start_wrong;
    return s->start_wrong.file ? "the initial value of this rotation is not a rotation: its columns must "
                                 "have length 1, be at right angles and right-handed"
                               : NULL;
}

void system_start(system_t *s, double *q, double *v)
{
    const program *p = s->p;
    arena_pos mark = arena_mark(s->a);
    if (s->base)
        start_bases(s);
    inputs in = { .from = { [IN_PARAM] = s->param, [IN_Q] = q, [IN_V] = v, [IN_BASE] = s->base } };
    memset(q, 0, (size_t)s->n * sizeof *q);
    memset(v, 0, (size_t)s->n * sizeof *v);
    for (size_t i = 0; i < p->start.q.n; i++) {
        term t = term_new(s->a, &p->start.q.at[i]);
        term_put(&t, &in, q);
    }
    for (size_t i = 0; i < p->start.v.n; i++) {
        term t = term_new(s->a, &p->start.v.at[i]);
        term_put(&t, &in, v);
    }
    start_project(s, q, v);
    arena_release(s->a, mark);
}

/* ---- contacts ---- */
static int second_order(const program *p)
{
    int n = 0;
    for (int k = 0; k < p->nq; k++)
        n += !p->order || p->order[k] == 2;
    return n;
}

#define FAMILY_TERMS(f)                                                                               \
    &(f)->gap, &(f)->gradient, &(f)->rate, &(f)->bias, &(f)->slip, &(f)->slip_map, &(f)->slip_offset, \
        &(f)->slip_bias, &(f)->normal, &(f)->mu, &(f)->mu_static, &(f)->e, &(f)->et, &(f)->adhesion

static void family_new(system_t *s, family *fam, const contact_family *f)
{
    arena *a = s->a;
    *fam = (family){ .f = f, .nslip = f->nslip };
    fam->gap = term_new(a, &f->gap);
    fam->gradient = term_new(a, &f->gradient);
    fam->rate = term_new(a, &f->rate);
    fam->bias = term_new(a, &f->bias);
    fam->slip = term_new(a, &f->slip);
    fam->slip_map = term_new(a, &f->slip_map);
    fam->slip_offset = term_new(a, &f->slip_offset);
    fam->slip_bias = term_new(a, &f->slip_bias);
    fam->normal = term_new(a, &f->normal);
    fam->mu = term_new(a, &f->mu);
    fam->mu_static = term_new(a, &f->mu_static);
    fam->e = term_new(a, &f->e);
    fam->et = term_new(a, &f->et);
    fam->adhesion = term_new(a, &f->adhesion);
    term *all[] = { FAMILY_TERMS(fam) };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        term_settle(a, all[i], s->param);
    bool rough = f->friction != FRICTION_NONE;
    int free = second_order(s->p) - 1;
    fam->d = !rough ? 0 : f->slip_given ? f->nslip : free;
    fam->shown = !rough ? 0 : f->slip_given ? f->nslip : free <= MAX_SLIP ? free : 1;
    bool H = f->relation == REL_CLOSED || fam->gradient.constant;
    bool S = fam->d == 0 || (f->slip_given ? fam->slip_map.constant : s->mass_constant);
    fam->rows_fixed = H && S;
    unsigned moving = 1u << IN_TIME | 1u << IN_Q | 1u << IN_BASE | 1u << IN_FEATURE;
    fam->offset_fixed = fam->rows_fixed && fam->rate.constant &&
                        (!fam->slip_offset.k || !(kernel_reads(fam->slip_offset.k) & moving));
    /* a static coefficient and adhesion depend on the state of the contact */
    fam->still = fam->offset_fixed && fam->mu.constant && fam->e.constant && fam->normal.constant &&
                 !fam->mu_static.k && !fam->adhesion.k && !f->fed;
}

/* ---- rows with entries at few dofs ---- */
static int dof_number(slot_map *dof, int *n, const slot_map *m)
{
    for (int k = 0; k < *n; k++)
        if (memcmp(&dof[k], m, sizeof *m) == 0)
            return k;
    dof[*n] = *m;
    return (*n)++;
}

static int *outputs_to(arena *a, const term *t, const slot_map *at, slot_map *dof, int *n)
{
    if (!t->k)
        return NULL;
    int *to = arena_array(a, int, t->k->tape.nout);
    for (uint32_t i = 0; i < t->k->tape.nout; i++)
        to[i] = dof_number(dof, n, &at[i]);
    return to;
}

/* The component of the slip to which each output of its map belongs, if that is the same for all members. */
static const int *components_of(arena *a, const term *t)
{
    if (!t->k)
        return NULL;
    int *row = arena_array(a, int, t->k->tape.nout);
    for (uint32_t i = 0; i < t->k->tape.nout; i++) {
        row[i] = t->k->row[i].base;
        for (int k = 0; k < t->k->over.n; k++)
            if (t->k->row[i].stride[k])
                return NULL;
    }
    return row;
}

/* Orders by index, then by address. */
static bool slot_before(const slot_map *a, const slot_map *b)
{
    for (int k = 0; k < MAX_INDEX; k++)
        if (a->stride[k] != b->stride[k])
            return a->stride[k] > b->stride[k];
    return a->base < b->base;
}

static void outputs_follow(const term *t, int *to, const int *place)
{
    for (uint32_t i = 0; t->k && i < t->k->tape.nout; i++)
        to[i] = place[to[i]];
}

/* Rows of pairs of points have the dofs of each point one after the other, those of the gap first, so that
   passes over many pairs go point by point. */
static void dofs_by_point(arena *a, const family *fam, slot_map *dof, int gap, int n, int *gradient_to,
                          int *slip_to)
{
    int *from = arena_array(a, int, n), *place = arena_array(a, int, n);
    slot_map *was = arena_array(a, slot_map, n);
    memcpy(was, dof, (size_t)n * sizeof *was);
    for (int k = 0; k < n; k++) {
        int i = k, first = k < gap ? 0 : gap;
        for (; i > first && slot_before(&was[k], &was[from[i - 1]]); i--)
            from[i] = from[i - 1];
        from[i] = k;
    }
    for (int k = 0; k < n; k++) {
        dof[k] = was[from[k]];
        place[from[k]] = k;
    }
    outputs_follow(&fam->gradient, gradient_to, place);
    outputs_follow(&fam->slip_map, slip_to, place);
}

/* Friction in the whole tangent space has entries everywhere; in small models all rows do. */
static void family_dofs(system_t *s, family *fam)
{
    enum { SMALL = 6 };
    const kernel *g = fam->gradient.k, *m = fam->slip_map.k;
    int n = 0, most = (int)((g ? g->tape.nout : 0) + (m ? m->tape.nout : 0));
    if (s->n <= SMALL || (fam->d && !fam->f->slip_given))
        return;
    slot_map *dof = arena_array(s->a, slot_map, most + 1);
    int *gradient_to = outputs_to(s->a, &fam->gradient, g ? g->row : NULL, dof, &n), gap = n;
    int *slip_to = outputs_to(s->a, &fam->slip_map, m ? m->col : NULL, dof, &n);
    if (near_of_points(fam->f))
        dofs_by_point(s->a, fam, dof, gap, n, gradient_to, slip_to);
    fam->gradient_to = gradient_to;
    fam->slip_to = slip_to;
    fam->slip_row = components_of(s->a, &fam->slip_map);
    fam->dof = dof;
    fam->ndof = n;
    fam->ngap = gap;
}

static void contact_dofs(const family *fam, contact *c)
{
    c->repeats = false;
    for (int k = 0; k < c->n; k++) {
        c->dof[k] = slot_at(&fam->dof[k], c->index, fam->f->over.n);
        for (int j = 0; j < k && !c->repeats; j++)
            c->repeats = c->dof[j] == c->dof[k];
    }
}

/* Entries of a dof that occurs twice are added at its first place. */
static void fold_row(const contact *c, double *row)
{
    for (int k = 1; k < c->n; k++)
        for (int j = 0; j < k; j++)
            if (c->dof[j] == c->dof[k]) {
                row[j] += row[k];
                row[k] = 0;
                break;
            }
}

void contact_start(contact *c, int64_t member, const int32_t *index)
{
    c->member = member;
    memcpy(c->index, index, sizeof c->index);
    if (c->dof)
        contact_dofs(c->fam, c);
}

static void contact_begin(system_t *s, family *fam, contact *c, double *gap)
{
    c->fam = fam;
    c->gap = gap;
    c->n = fam->dof ? fam->ndof : s->n;
    c->dof = fam->dof ? arena_array(s->a, int, c->n) : NULL;
    c->metric = 1;
}

/* Each quantity is computed for all contacts before the next one, so that passes over many contacts read
   adjacent memory. */
static void contacts_room(system_t *s, contact *c, size_t count)
{
    for (size_t i = 0; i < count; i++)
        c[i].H = arena_array(s->a, double, c[i].n);
    for (size_t i = 0; i < count; i++)
        c[i].S = arena_array(s->a, double, (size_t)c[i].fam->d *(size_t)c[i].n);
    for (size_t i = 0; i < count; i++)
        c[i].s0 = arena_array(s->a, double, c[i].fam->d);
    for (size_t i = 0; i < count; i++) {
        const family *fam = c[i].fam;
        size_t shown = (size_t)fam->d * (size_t)fam->shown;
        c[i].show = arena_array(s->a, double, shown);
        c[i].show_force = fam->f->slip_given ? c[i].show : arena_array(s->a, double, shown);
    }
}

void contact_new(system_t *s, family *fam, contact *c, double *gap)
{
    contact_begin(s, fam, c, gap);
    contacts_room(s, c, 1);
}

static void contacts_new(system_t *s, storage how)
{
    size_t at = 0;
    s->contact = arena_array(s->a, contact, s->ncontact);
    s->gaps = arena_array(s->a, double, s->ncontact);
    for (size_t i = 0; i < s->p->ncontact; i++) {
        family *fam = &s->family[i];
        const contact_family *f = fam->f;
        int32_t index[MAX_INDEX] = { 0 };
        int64_t member = 0;
        const term *counts = f->relation == REL_CLOSED ? &fam->slip
                             : f->of_rates             ? &fam->gradient
                                                       : &fam->gap;
        fam->first = at;
        if (how == STORE_SPARSE && near_fits(f))
            continue;
        for (bool any = index_first(&f->over, index); any; any = index_next(&f->over, index), member++) {
            if (counts->k && !term_member(counts, index))
                continue;
            contact *c = &s->contact[at];
            contact_begin(s, fam, c, &s->gaps[at++]);
            contact_start(c, member, index);
            s->rows += (f->relation != REL_CLOSED) + fam->d;
        }
        fam->count = at - fam->first;
    }
    s->ncontact = at;
    contacts_room(s, s->contact, at);
}

size_t program_contacts(const program *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->ncontact; i++)
        n += (size_t)index_members(&p->contact[i].over);
    return n;
}

/* ---- shapes of the matrices ---- */
static size_t places_count(const terms *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        if (t->at[i].k)
            n += (size_t)index_members(&t->at[i].k->over) * t->at[i].k->tape.nout;
    return n;
}

static size_t places_put(const terms *t, matrix_place *to)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        const kernel *k = t->at[i].k;
        int32_t index[MAX_INDEX] = { 0 };
        if (!k)
            continue;
        for (bool any = index_first(&k->over, index); any; any = index_next(&k->over, index))
            for (uint32_t j = 0; j < k->tape.nout; j++)
                to[n++] = (matrix_place){ slot_at(&k->row[j], index, k->over.n),
                                          slot_at(&k->col[j], index, k->over.n) };
    }
    return n;
}

/* The places of the outputs of matrix terms, looked up once. */
static void places_keep(system_t *s, terms *t, const matrix_shape *shape)
{
    for (size_t i = 0; shape->kind == MATRIX_SPARSE && i < t->n; i++) {
        const kernel *k = t->at[i].k;
        int32_t index[MAX_INDEX] = { 0 };
        size_t n = 0;
        if (!k)
            continue;
        int *to = arena_array(s->a, int, (size_t)index_members(&k->over) * k->tape.nout);
        for (bool any = index_first(&k->over, index); any; any = index_next(&k->over, index))
            for (uint32_t j = 0; j < k->tape.nout; j++)
                to[n++] = (int)matrix_at(shape, slot_at(&k->row[j], index, k->over.n),
                                         slot_at(&k->col[j], index, k->over.n));
        t->at[i].place = to;
    }
}

static void shapes_whole(system_t *s)
{
    s->mass_shape = s->p->mass_diagonal ? matrix_diagonal(s->n) : matrix_dense(s->n);
    s->step_shape = matrix_dense(s->n);
}

static void shapes_sparse(system_t *s)
{
    terms *all[] = { &s->force_dq, &s->force_dv, &s->mass };
    size_t with_mass = s->p->mass_diagonal ? 2 : 3, count = 0;
    for (size_t i = 0; i < with_mass; i++)
        count += places_count(all[i]);
    matrix_place *place = arena_array(s->a, matrix_place, count + 1);
    count = 0;
    for (size_t i = 0; i < with_mass; i++)
        count += places_put(all[i], place + count);
    s->step_shape = matrix_shape_of(s->n, place, count, s->a);
    if (s->p->mass_diagonal)
        s->mass_shape = matrix_diagonal(s->n);
    else {
        if (s->step_shape.kind == MATRIX_DIAGONAL)
            s->step_shape = matrix_dense(s->n);
        s->mass_shape = s->step_shape;
    }
    for (size_t i = 0; i < 3; i++)
        places_keep(s, all[i], i == 2 ? &s->mass_shape : &s->step_shape);
}

matrix_groups *system_bodies(const system_t *s, arena *a)
{
    if (s->p->mass_diagonal || s->first_order)
        return NULL;
    matrix_place *place = arena_array(a, matrix_place, places_count(&s->mass) + 1);
    return matrix_groups_of(s->n, place, places_put(&s->mass, place), a);
}

system_t *system_new(arena *a, const program *p, const double *param, storage how, const char **why, span *at)
{
    system_t *s = arena_make(a, system_t);
    size_t n = (size_t)p->nq;
    *why = NULL;
    s->p = p;
    s->param = param;
    s->a = a;
    s->n = p->nq;
    s->in.from[IN_PARAM] = param;
    s->mass = terms_new(a, &p->mass, param);
    s->force = terms_new(a, &p->force, param);
    s->force_dq = terms_new(a, &p->force_dq, param);
    s->force_dv = terms_new(a, &p->force_dv, param);
    s->kinetic = terms_new(a, &p->kinetic, param);
    s->potential = terms_new(a, &p->potential, param);
    s->driving = terms_new(a, &p->driving, param);
    s->power = terms_new(a, &p->power, param);
    for (size_t k = 0; k < n; k++)
        s->first_order |= p->order && p->order[k] == 1;
    s->mass_constant = p->mass_constant || s->mass.constant;
    s->force_constant = s->force.constant;
    s->force_of_state = (s->force.reads & (1u << IN_Q | 1u << IN_V)) != 0 || s->first_order;
    if (p->rotations.n) {
        s->base = arena_array(a, double, 3 * n);
        turns_start(p, s->base);
        s->in.from[IN_BASE] = s->base;
    }
    size_t read = 0;
    for (size_t i = 0; i < p->ncontact; i++)
        read = (size_t)p->contact[i].read_as > read ? (size_t)p->contact[i].read_as : read;
    s->nreact = REACT * read;
    s->react = read ? arena_array(a, double, s->nreact) : NULL;
    s->in.from[IN_REACT] = s->react;
    s->shapes = shapes_new(a, p, param, why, at);
    if (*why)
        return NULL;
    if (s->shapes)
        s->in.from[IN_FEATURE] = s->shapes->feature;
    s->jacobian_constant = s->force_dq.constant && s->force_dv.constant;
    s->family = arena_array(a, family, p->ncontact);
    for (size_t i = 0; i < p->ncontact; i++) {
        family_new(s, &s->family[i], &p->contact[i]);
        if (how == STORE_SPARSE)
            family_dofs(s, &s->family[i]);
    }
    if (how == STORE_WHOLE && n > DENSE_DOFS && (!p->mass_diagonal || s->force_of_state)) {
        *why = arena_printf(
            a, "this backend takes at most %d degrees of freedom that are coupled; use sweeping()",
            DENSE_DOFS);
        *at = SPAN_NONE;
        return NULL;
    }
    if (how == STORE_WHOLE)
        shapes_whole(s);
    else
        shapes_sparse(s);
    for (size_t i = 0; i < p->ncontact; i++)
        if (how == STORE_WHOLE || !near_fits(&p->contact[i]))
            s->ncontact += (size_t)index_members(&p->contact[i].over);
    s->w1 = arena_array(a, double, n);
    s->w2 = arena_array(a, double, n);
    s->w3 = arena_array(a, double, n);
    factor_shape(&s->minv, a, &s->mass_shape);
    contacts_new(s, how);
    return s;
}

static void term_params(term *t, const double *param)
{
    int32_t none[MAX_INDEX] = { 0 };
    if (t->k && t->move)
        kernel_gather(t->k, &(inputs){ .from = { [IN_PARAM] = param } }, none, t->reg);
}

void system_params(system_t *s)
{
    terms *all[] = { &s->mass,    &s->force,     &s->force_dq, &s->force_dv,
                     &s->kinetic, &s->potential, &s->driving,  &s->power };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (size_t k = 0; k < all[i]->n; k++)
            term_params(&all[i]->at[k], s->param);
    for (size_t i = 0; i < s->p->ncontact; i++) {
        family *f = &s->family[i];
        term *of[] = { FAMILY_TERMS(f) };
        for (size_t k = 0; k < sizeof of / sizeof *of; k++)
            term_params(of[k], s->param);
    }
}

void system_close(system_t *s)
{
    if (s)
        factor_free(&s->minv);
}

double contact_common(const system_t *s, const contact *c, const double *M, const double *row,
                      const double *other)
{
    double sum = 0;
    for (int k = 0; k < c->n; k++) {
        int i = c->dof ? c->dof[k] : k;
        double m = M[matrix_at(&s->mass_shape, i, i)];
        sum += m > 0 ? row[k] * other[k] / m : 0;
    }
    return sum;
}

double contact_gap(system_t *s, contact *c)
{
    if (c->fam->f->relation == REL_CLOSED || c->fam->f->of_rates)
        return *c->gap = 0;
    return *c->gap = term_value(&c->fam->gap, &s->in, c->index);
}

/* room to run the kernel of a family in lanes */
static double *term_lanes(system_t *s, term *t)
{
    if (!t->batch)
        t->batch = arena_array(s->a, double, batch_regs(&t->k->tape));
    return t->batch;
}

/* Runs a kernel for contacts side by side; its constants must be set. */
static void contacts_run(system_t *s, const term *t, contact *const *c, int count)
{
    const kernel *k = t->k;
    int32_t index[MAX_INDEX * LANES];
    for (int j = 0; j < k->over.n; j++)
        for (int lane = 0; lane < count; lane++)
            index[j * LANES + lane] = c[lane]->index[j];
    batch_run(k, &s->in, index, count, t->batch);
}

static inline int lanes_left(size_t n, size_t at)
{
    return n - at < LANES ? (int)(n - at) : LANES;
}

bool family_gaps(system_t *s, family *fam, double *gap)
{
    enum { FEW = 8 };
    const kernel *k = fam->gap.k;
    if (!k || k->tape.nout != 1 || fam->gap.move || fam->gap.where || fam->f->relation == REL_CLOSED ||
        fam->count < FEW || fam->count != (size_t)index_members(&k->over))
        return false;
    kernel_run_all(k, &s->in, term_lanes(s, &fam->gap), gap);
    return true;
}

void contact_gaps(system_t *s, contact *const *c, size_t n)
{
    enum { FEW = 8 };
    family *fam = c[0]->fam;
    const kernel *k = fam->gap.k;
    if (n < FEW || !k || fam->gap.move || fam->f->relation == REL_CLOSED) {
        for (size_t i = 0; i < n; i++)
            contact_gap(s, c[i]);
        return;
    }
    const double *reg = term_lanes(s, &fam->gap);
    batch_start(&k->tape, fam->gap.batch);
    for (size_t at = 0; at < n; at += LANES) {
        int count = lanes_left(n, at);
        contacts_run(s, &fam->gap, c + at, count);
        for (int lane = 0; lane < count; lane++)
            *c[at + (size_t)lane]->gap = reg[k->tape.out[0] * LANES + (uint32_t)lane];
    }
}

static void gradient(system_t *s, contact *c)
{
    const term *t = &c->fam->gradient;
    memset(c->H, 0, (size_t)c->n * sizeof *c->H);
    if (!t->k)
        return;
    term_run(t, &s->in, c->index);
    for (uint32_t i = 0; i < t->k->tape.nout; i++) {
        int to = c->dof ? c->fam->gradient_to[i] : slot_at(&t->k->row[i], c->index, t->k->over.n);
        c->H[to] += t->reg[t->k->tape.out[i]];
    }
    if (c->repeats)
        fold_row(c, c->H);
}

/* ---- friction with a given slip ---- */
/* 1 over the square of each column of S, so that dofs have equal weight in all units; 0: no slip there. */
static double column_weight(const double *S, int k, int n, int j)
{
    double all = 0;
    for (int i = 0; i < k; i++)
        all += S[(size_t)i * n + j] * S[(size_t)i * n + j];
    return all > 0 ? 1 / all : 0;
}

/* G nu = b for few components, if G is far from singular; false: it may be near singular */
static bool normal_of_few(const double *G, const double *b, int k, double *nu)
{
    if (k == 2) {
        double two = G[0] * G[3] - G[1] * G[2];
        if (!(two > FAR_FROM_SINGULAR * G[0] * G[3]))
            return false;
        nu[0] = (G[3] * b[0] - G[1] * b[1]) / two;
        nu[1] = (G[0] * b[1] - G[2] * b[0]) / two;
        return true;
    }
    if (k != 3)
        return false;
    double a = G[4] * G[8] - G[5] * G[5], d = G[2] * G[5] - G[1] * G[8], e = G[1] * G[5] - G[2] * G[4],
           three = G[0] * a + G[1] * d + G[2] * e;
    if (!(three > FAR_FROM_SINGULAR * G[0] * G[4] * G[8]))
        return false;
    nu[0] = (a * b[0] + d * b[1] + e * b[2]) / three;
    nu[1] = (d * b[0] + (G[0] * G[8] - G[2] * G[2]) * b[1] + (G[1] * G[2] - G[0] * G[5]) * b[2]) / three;
    nu[2] = (e * b[0] + (G[1] * G[2] - G[0] * G[5]) * b[1] + (G[0] * G[4] - G[1] * G[1]) * b[2]) / three;
    return true;
}

/* S as given by the model, nslip x n in out; nu (nslip) with nu.S = H if the slip is a full relative
   velocity, of which only the part across nu is used. */
static inline __attribute__((always_inline)) bool slip_normal_of(const double *S, const double *H, int k,
                                                                 int n, double spanned, double *nu)
{
    double G[MAX_SLIP * MAX_SLIP] = { 0 }, b[MAX_SLIP] = { 0 }, off = 0, all = 0;
    for (int j = 0; j < n; j++) {
        double weight = column_weight(S, k, n, j);
        if (weight == 0 && H[j] != 0)
            return false;
        all += weight * H[j] * H[j];
        for (int i = 0; i < k; i++) {
            double s = weight * S[(size_t)i * n + j];
            b[i] += s * H[j];
            for (int l = 0; l < k; l++)
                G[i * k + l] += s * S[(size_t)l * n + j];
        }
    }
    if (all == 0)
        return false;
    if (!normal_of_few(G, b, k, nu)) {
        double work[MAX_SLIP * MAX_SLIP + 2 * MAX_SLIP];
        int iwork[MAX_SLIP];
        sym_shortest(G, b, nu, k, work, iwork);
    }
    for (int j = 0; j < n; j++) {
        double h = -H[j];
        for (int i = 0; i < k; i++)
            h += nu[i] * S[(size_t)i * n + j];
        if (h != 0)
            off += column_weight(S, k, n, j) * h * h;
    }
    return off <= spanned * all;
}

/* Two points in space: if the rates of the first one are the first columns of the slip, its normal is the row
   there. */
static bool slip_normal_first(const double *S, const double *H, double *nu)
{
    enum { SPACE = 3, DOFS = 12 };
    double off = 0;
    for (int i = 0; i < SPACE; i++) {
        for (int j = 0; j < SPACE; j++)
            if (S[i * DOFS + j] != (i == j))
                return false;
        nu[i] = H[i];
    }
    double all = nu[0] * nu[0] + nu[1] * nu[1] + nu[2] * nu[2];
    for (int j = SPACE; j < DOFS; j++) {
        const double x = S[j], y = S[DOFS + j], z = S[2 * DOFS + j], size = x * x + y * y + z * z;
        double h = nu[0] * x + nu[1] * y + nu[2] * z - H[j];
        if (h != 0 && size == 0)
            return false;
        if (h != 0)
            off += h * h / size;
    }
    return all > 0 && off <= SPANNED_SQUARE * all;
}

/* Loops of fixed length, in the plane and in space. */
static bool slip_normal(const double *S, const double *H, int k, int n, double spanned, double *nu)
{
    if (k == 2)
        return slip_normal_of(S, H, 2, n, spanned, nu);
    if (k == 3 && n == 12)
        return slip_normal_first(S, H, nu) || slip_normal_of(S, H, 3, 12, spanned, nu);
    return slip_normal_of(S, H, k, n, spanned, nu);
}

/* Finds d orthonormal vectors across nu in k dimensions, as rows of E. */
static int across(const double *nu, int k, double *E)
{
    double l2 = vec_dot(nu, nu, k);
    int big = 0, d = 0;
    if (k == 2) {
        E[0] = nu[1] / sqrt(l2);
        E[1] = -nu[0] / sqrt(l2);
        return 1;
    }
    for (int i = 1; i < k; i++)
        if (fabs(nu[i]) > fabs(nu[big]))
            big = i;
    for (int j = 0; j < k; j++) {
        if (j == big)
            continue;
        double *e = E + d * k;
        for (int i = 0; i < k; i++)
            e[i] = (i == j) - nu[j] * nu[i] / l2;
        for (int p = 0; p < d; p++)
            vec_axpy(e, -vec_dot(e, E + p * k, k), E + p * k, k);
        double l = sqrt(vec_dot(e, e, k));
        for (int i = 0; i < k; i++)
            e[i] /= l;
        d++;
    }
    return d;
}

int slip_frame(const double *S, const double *H, int k, int n, bool touching, double *E)
{
    double nu[MAX_SLIP];
    if (H && slip_normal(S, H, k, n, touching ? SPANNED_SHAPES : SPANNED_SQUARE, nu))
        return across(nu, k, E);
    for (int i = 0; i < k * k; i++)
        E[i] = i % (k + 1) == 0;
    return k;
}

static void slip_raw(system_t *s, contact *c, double *S)
{
    const term *t = &c->fam->slip_map;
    memset(S, 0, (size_t)c->fam->nslip * (size_t)c->n * sizeof *S);
    if (!t->k)
        return;
    term_run(t, &s->in, c->index);
    for (uint32_t i = 0; i < t->k->tape.nout; i++) {
        size_t row = (size_t)(c->fam->slip_row ? c->fam->slip_row[i]
                                               : slot_at(&t->k->row[i], c->index, t->k->over.n));
        int to = c->dof ? c->fam->slip_to[i] : slot_at(&t->k->col[i], c->index, t->k->over.n);
        S[row * (size_t)c->n + (size_t)to] += t->reg[t->k->tape.out[i]];
    }
    for (int i = 0; c->repeats && i < c->fam->nslip; i++)
        fold_row(c, S + (size_t)i * (size_t)c->n);
}

/* Two directions across a normal may be any pair in their plane: takes the pair nearest to the previous one,
   so that they do not jump for impulses and means over a step. E has them as rows; before: as columns, or 0.
   */
static void slip_frame_goes_on(const double *before, int k, double *E)
{
    double a[4] = { 0 }, c, s, flip;
    for (int i = 0; i < k; i++)
        for (int j = 0; j < 4; j++)
            a[j] += E[(j / 2) * k + i] * before[2 * i + j % 2];
    flip = a[0] * a[3] < a[1] * a[2] ? -1 : 1;
    c = a[0] + flip * a[3];
    s = a[2] - flip * a[1];
    double l = sqrt(c * c + s * s);
    if (!(l > 0))
        return;
    for (int i = 0; i < k; i++) {
        double e = E[i], f = E[k + i];
        E[i] = (c * e + s * f) / l;
        E[k + i] = flip * (c * f - s * e) / l;
    }
}

/* S = E S_raw in place, from three rows to two. */
static void rows_across(double *S, const double *E, int n)
{
    enum { STEP = sizeof(four) / sizeof *S };
    int j = 0;
    for (; j + STEP <= n; j += STEP) {
        four x = *four_at(S + j), y = *four_at(S + n + j), z = *four_at(S + 2 * n + j);
        *four_at(S + j) = 0 + E[0] * x + E[1] * y + E[2] * z;
        *four_at(S + n + j) = 0 + E[3] * x + E[4] * y + E[5] * z;
    }
    for (; j < n; j++) {
        double x = S[j], y = S[n + j], z = S[2 * n + j];
        S[j] = 0 + E[0] * x + E[1] * y + E[2] * z;
        S[n + j] = 0 + E[3] * x + E[4] * y + E[5] * z;
    }
}

/* show is k x d: the d directions as columns; the given S becomes show^T S in place. */
static void slip_across(contact *c)
{
    int k = c->fam->nslip, n = c->n, had = c->d;
    double E[MAX_SLIP * MAX_SLIP], col[MAX_SLIP];
    c->d = slip_frame(c->S, c->fam->f->relation == REL_CLOSED ? NULL : c->H, k, n, c->fam->f->pair.touch, E);
    if (k > 2 && c->d == 2 && had == 2)
        slip_frame_goes_on(c->show, k, E);
    for (int i = 0; i < k; i++)
        for (int j = 0; j < c->d; j++)
            c->show[i * c->d + j] = E[j * k + i];
    if (k == 3 && c->d == 2) {
        rows_across(c->S, E, n);
        return;
    }
    for (int j = 0; j < n; j++) {
        for (int i = 0; i < k; i++)
            col[i] = c->S[(size_t)i * n + j];
        for (int i = 0; i < c->d; i++)
            c->S[(size_t)i * n + j] = vec_dot(E + i * k, col, k);
    }
}

/* s0: the slip at q' = 0; its values are at reg, `step` numbers from register to register. */
static void offset_put(contact *c, const double *reg, size_t step)
{
    const tape *t = &c->fam->slip_offset.k->tape;
    for (int i = 0; i < c->d; i++)
        for (int j = 0; j < c->fam->nslip; j++)
            c->s0[i] += c->show[j * c->d + i] * reg[t->out[j] * step];
}

static void slip_offset(system_t *s, contact *c)
{
    const term *t = &c->fam->slip_offset;
    for (int i = 0; i < c->d; i++)
        c->s0[i] = 0;
    if (!c->fam->f->slip_given || !t->k)
        return;
    term_run(t, &s->in, c->index);
    offset_put(c, t->reg, 1);
}

/* ---- rows of many contacts of a family, their kernels in lanes ---- */
/* Can they be run in lanes? */
static bool lanes_fit(const term *t)
{
    return t->k && !t->move && !t->where;
}

static void lanes_begin(system_t *s, term *t)
{
    batch_start(&t->k->tape, term_lanes(s, t));
}

static void gradients_put(system_t *s, contact *const *c, int count)
{
    const family *fam = c[0]->fam;
    const tape *t = &fam->gradient.k->tape;
    contacts_run(s, &fam->gradient, c, count);
    for (int lane = 0; lane < count; lane++) {
        const double *reg = fam->gradient.batch + lane;
        contact *x = c[lane];
        memset(x->H, 0, (size_t)x->n * sizeof *x->H);
        for (uint32_t i = 0; i < t->nout; i++)
            x->H[fam->gradient_to[i]] += reg[(size_t)t->out[i] * LANES];
        if (x->repeats)
            fold_row(x, x->H);
    }
}

static void slips_put(system_t *s, contact *const *c, int count)
{
    const family *fam = c[0]->fam;
    const tape *t = &fam->slip_map.k->tape;
    contacts_run(s, &fam->slip_map, c, count);
    for (int lane = 0; lane < count; lane++) {
        const double *reg = fam->slip_map.batch + lane;
        contact *x = c[lane];
        memset(x->S, 0, (size_t)(fam->nslip * x->n) * sizeof *x->S);
        for (uint32_t i = 0; i < t->nout; i++)
            x->S[fam->slip_row[i] * x->n + fam->slip_to[i]] += reg[(size_t)t->out[i] * LANES];
        for (int i = 0; x->repeats && i < fam->nslip; i++)
            fold_row(x, x->S + (size_t)i * (size_t)x->n);
        slip_across(x);
    }
}

static void offsets_put(system_t *s, contact *const *c, int count)
{
    family *fam = c[0]->fam;
    for (int lane = 0; lane < count; lane++)
        for (int i = 0; i < c[lane]->d; i++)
            c[lane]->s0[i] = 0;
    if (!fam->slip_offset.k)
        return;
    lanes_begin(s, &fam->slip_offset);
    contacts_run(s, &fam->slip_offset, c, count);
    for (int lane = 0; lane < count; lane++)
        offset_put(c[lane], fam->slip_offset.batch + lane, LANES);
}

bool contacts_in_lanes(const family *fam)
{
    bool slips = fam->d && fam->f->slip_given;
    if (!fam->dof || fam->rows_fixed || !lanes_fit(&fam->gradient) || fam->d != (slips ? fam->nslip : 0))
        return false;
    if (slips && fam->slip_offset.k && !lanes_fit(&fam->slip_offset))
        return false;
    return !slips || (fam->slip_row && lanes_fit(&fam->slip_map));
}

void contact_normal(system_t *s, contact *c)
{
    gradient(s, c);
    c->ht = term_value(&c->fam->rate, &s->in, c->index);
}

void contacts_normals(system_t *s, contact *const *c, size_t n)
{
    if (n == 0)
        return;
    lanes_begin(s, &c[0]->fam->gradient);
    for (size_t at = 0; at < n; at += LANES)
        gradients_put(s, c + at, lanes_left(n, at));
}

void contacts_slips(system_t *s, contact *const *c, size_t n)
{
    if (n == 0)
        return;
    family *fam = c[0]->fam;
    for (size_t i = 0; i < n; i++)
        c[i]->ht = term_value(&fam->rate, &s->in, c[i]->index);
    if (!fam->d) {
        for (size_t i = 0; i < n; i++)
            c[i]->d = 0;
        return;
    }
    lanes_begin(s, &fam->slip_map);
    for (size_t at = 0; at < n; at += LANES) {
        slips_put(s, c + at, lanes_left(n, at));
        offsets_put(s, c + at, lanes_left(n, at));
    }
}

/* ---- friction on the whole tangent space, in the kinetic metric ----
   Tangent vectors w (H w = 0) with w_i.M w_j = delta_ij; slip components w_i.M q', force M w_i r_i.  |slip|
   is the kinetic length of the tangent velocity and |r| the dual length of the force, bounded by mu r_n
   sqrt(H M^-1 H^T); for M = m I these are the Euclidean lengths times m^1/2, m^-1/2. */
static void tangent_vector(system_t *s, contact *c, const double *M, double *w, int i)
{
    int n = s->n;
    double *Mw = c->S + (size_t)i * n, l;
    mass_times(s, M, w, Mw);
    l = sqrt(vec_dot(w, Mw, n));
    for (int j = 0; j < n; j++) {
        w[j] /= l;
        Mw[j] /= l;
    }
    /* in the plane of a single particle, components refer to a unit vector */
    double lw = sqrt(vec_dot(w, w, n)), lf = sqrt(vec_dot(Mw, Mw, n));
    if (c->fam->shown == c->d) {
        c->show[i * c->d + i] = lw;
        c->show_force[i * c->d + i] = lf;
    }
}

static bool is_second(const system_t *s, int k)
{
    return !s->p->order || s->p->order[k] == 2;
}

static void tangent_rows(system_t *s, contact *c, const double *M)
{
    int n = s->n, big = 0, d = 0;
    double *nm = s->w1, *w = s->w2, hh;
    factor_solve(&s->minv, c->H, nm);
    hh = vec_dot(c->H, nm, n);
    c->metric = sqrt(hh);
    c->d = c->fam->d;
    if (n == 2 && c->d == 1) {
        w[0] = c->H[1];
        w[1] = -c->H[0];
        tangent_vector(s, c, M, w, 0);
        return;
    }
    for (int j = 0; j < n; j++)
        if (fabs(c->H[j] * nm[j]) > fabs(c->H[big] * nm[big]))
            big = j;
    for (int j = 0; j < n && d < c->d; j++) {
        if (j == big || !is_second(s, j))
            continue;
        for (int i = 0; i < n; i++)
            w[i] = (i == j) - nm[i] * c->H[j] / hh;
        /* orthogonal to the previous ones: rows of S are M w_i, so their products with w are the kinetic ones
         */
        for (int i = 0; i < d; i++) {
            double k = vec_dot(c->S + (size_t)i * n, w, n);
            factor_solve(&s->minv, c->S + (size_t)i * n, s->w3);
            vec_axpy(w, -k, s->w3, n);
        }
        tangent_vector(s, c, M, w, d++);
    }
}

/* ---- initial values on their constraints ---- */

/* The violation of the gap (or of its rate, for equalities and constraints on rates); *size: that of its
 * terms. */
static double start_miss(system_t *s, contact *c, const double *x, bool rates, double *size)
{
    contact_relation kind = c->fam->f->relation;
    gradient(s, c);
    *size = 0;
    for (int j = 0; j < c->n; j++)
        *size += fabs(c->H[j] * x[c->dof ? c->dof[j] : j]);
    if (rates) {
        double still = term_value(&c->fam->rate, &s->in, c->index), rate = contact_rate(c, c->H, x) + still;
        *size += fabs(still);
        return kind == REL_BILATERAL ? rate : c->fam->f->of_rates ? fmin(rate, 0) : 0;
    }
    double gap = kind == REL_CLOSED ? 0 : contact_gap(s, c);
    return kind == REL_GAP ? fmin(gap, 0) : gap;
}

/* The mobility of each dof: 1 over the diagonal of the mass matrix; without masses, all are equal. */
static void start_lightness(system_t *s, double *light)
{
    arena_pos mark = arena_mark(s->a);
    double *M = arena_array(s->a, double, s->mass_shape.count);
    system_mass(s, M);
    for (int j = 0; j < s->n; j++) {
        double m = M[matrix_at(&s->mass_shape, j, j)];
        light[j] = m > 0 ? 1 / m : 1;
    }
    arena_release(s->a, mark);
}

/* The squared gradient of the gap, weighted with the mobilities. */
static double start_give(const contact *c, const double *light)
{
    double hh = 0;
    for (int j = 0; j < c->n; j++)
        hh += c->H[j] * c->H[j] * light[c->dof ? c->dof[j] : j];
    return hh;
}

/* Corrects all violated constraints, one after the other, until none is left; false: nothing was changed.
   The shortest correction is that in the kinetic metric, by its diagonal: the same in all units of the
   dofs. */
static bool start_sweep(system_t *s, double *x, bool rates, const double *light)
{
    enum { SWEEPS = 200 };
    for (int round = 0; round < SWEEPS; round++) {
        bool missed = false;
        for (size_t i = 0; i < s->ncontact; i++) {
            contact *c = &s->contact[i];
            double size, miss = start_miss(s, c, x, rates, &size), hh = start_give(c, light);
            if (!(fabs(miss) > START_TINY * size))
                continue;
            if (!(fabs(miss) <= 2 * START_ROUNDED * size) || !(hh > 0))
                return false;
            missed = missed || fabs(miss) > ROUND_50 * size;
            for (int j = 0; j < c->n; j++) {
                int to = c->dof ? c->dof[j] : j;
                x[to] -= miss / hh * c->H[j] * light[to];
            }
        }
        if (!missed)
            return true;
    }
    return false;
}

static const contact *start_worst(system_t *s, const double *x, bool rates)
{
    const contact *worst = NULL;
    double most = START_TINY, size;
    for (size_t i = 0; i < s->ncontact; i++) {
        double miss = fabs(start_miss(s, &s->contact[i], x, rates, &size));
        if (miss > START_ROUNDED * size)
            return NULL; /* not due to rounding: the backend reports the error */
        if (miss > most * size) {
            most = miss / size;
            worst = &s->contact[i];
        }
    }
    return worst;
}

static void start_move(system_t *s, double *x, bool rates)
{
    const contact *worst = start_worst(s, x, rates);
    if (!worst)
        return;
    double *was = arena_array(s->a, double, s->n), *light = arena_array(s->a, double, s->n);
    memcpy(was, x, (size_t)s->n * sizeof *x);
    start_lightness(s, light);
    if (!start_sweep(s, x, rates, light)) {
        memcpy(x, was, (size_t)s->n * sizeof *x);
        return;
    }
    if (rates && (!worst->fam->f->of_rates || s->start_by))
        return;
    for (int j = 0; j < s->n; j++)
        s->start_moved = fmax(s->start_moved, fabs(x[j] - was[j]));
    s->start_by = worst;
}

/* The first constraint on rates that the initial rates violate. */
static void start_missed(system_t *s, const double *v)
{
    double size;
    s->start_missed = NULL;
    for (size_t i = 0; i < s->ncontact && !s->start_missed; i++) {
        contact *c = &s->contact[i];
        s->start_by_rate = c->fam->f->of_rates ? start_miss(s, c, v, true, &size) : 0;
        if (fabs(s->start_by_rate) > START_TINY * size)
            s->start_missed = c;
    }
}

static void start_project(system_t *s, double *q, double *v)
{
    s->start_moved = 0;
    s->start_by = NULL;
    if (!s->ncontact)
        return;
    system_at(s, 0, q, v);
    if (s->shapes)
        shapes_all(s->shapes, &s->in);
    if (!s->p->delay && !s->first_order) {
        start_move(s, q, false);
        start_move(s, v, true);
    }
    start_missed(s, v);
}

const char *system_start_note(const system_t *s, arena *a)
{
    if (!s->start_by)
        return NULL;
    return arena_printf(a, "initial %s were moved by up to %.3g onto constraint '%s'",
                        s->start_by->fam->f->of_rates ? "rates" : "values", s->start_moved,
                        contact_name(s->start_by, a));
}

void contact_rows(system_t *s, contact *c, const double *M, bool all)
{
    family *fam = c->fam;
    if (all || !fam->rows_fixed) {
        gradient(s, c);
        if (fam->d && fam->f->slip_given) {
            slip_raw(s, c, c->S);
            slip_across(c);
        } else if (fam->d)
            tangent_rows(s, c, M);
        else
            c->d = 0;
    }
    if (all || !fam->offset_fixed) {
        c->ht = term_value(&fam->rate, &s->in, c->index);
        slip_offset(s, c);
    }
}

void contact_laws(system_t *s, contact *c, bool all)
{
    family *fam = c->fam;
    if (all && fam->bias.constant)
        c->bias = term_value(&fam->bias, &s->in, c->index);
    if (!fam->f->e_of_speed && (all || !fam->e.constant))
        c->e = term_value(&fam->e, &s->in, c->index);
    if (fam->et.k && (all || !fam->et.constant))
        c->et = term_value(&fam->et, &s->in, c->index);
    if (fam->adhesion.k && (all || !fam->adhesion.constant))
        c->adhesion = term_value(&fam->adhesion, &s->in, c->index);
    if (!(fam->f->fed && fam->f->fed_by >= 0) && (all || !fam->normal.constant))
        c->normal = term_value(&fam->normal, &s->in, c->index);
    if (fam->d && !fam->f->mu_of_speed && (all || !fam->mu.constant || !fam->rows_fixed))
        c->mu = contact_mu(s, c, 0);
    if (fam->d && fam->mu_static.k && (all || !fam->mu_static.constant || !fam->rows_fixed))
        c->mu_static = term_value(&fam->mu_static, &s->in, c->index) * c->metric;
}

double contact_restitution(system_t *s, contact *c, double approach)
{
    s->in.speed = approach;
    return term_value(&c->fam->e, &s->in, c->index);
}

double contact_mu(system_t *s, contact *c, double speed)
{
    s->in.speed = speed;
    double mu = term_value(&c->fam->mu, &s->in, c->index);
    return c->fam->f->friction == FRICTION_COULOMB ? mu * c->metric : mu;
}

double contact_bias(system_t *s, contact *c)
{
    if (c->fam->bias.constant)
        return c->bias;
    return term_value(&c->fam->bias, &s->in, c->index);
}

/* With constant directions: their rotation would add terms of second order in the slip, and the slip is 0
   where this is used. */
void contact_slip_bias(system_t *s, contact *c, double *out)
{
    const term *t = &c->fam->slip_bias;
    for (int i = 0; i < c->d; i++)
        out[i] = 0;
    if (!c->fam->f->slip_given || !t->k)
        return;
    term_run(t, &s->in, c->index);
    for (int i = 0; i < c->d; i++)
        for (int j = 0; j < c->fam->nslip; j++)
            out[i] += c->show[j * c->d + i] * t->reg[t->k->tape.out[j]];
}

const char *contact_name(const contact *c, arena *a)
{
    const contact_family *f = c->fam->f;
    text s = { .a = a };
    text_puts(&s, f->name);
    if (f->nindex > f->over.n)
        return s.at; /* a member that was defined separately has its indices in its name */
    for (int k = 0; k < f->nindex; k++)
        text_printf(&s, "%s%d", k ? ", " : "[", (int)c->index[index_first_own(f) + k]);
    if (f->nindex)
        text_putc(&s, ']');
    return s.at;
}

const char *dof_name(const program *p, int k, arena *a)
{
    for (size_t i = 0; i < p->dofs.n; i++) {
        const dof_info *d = &p->dofs.at[i];
        if (k < d->at || k >= d->at + d->size)
            continue;
        return d->size == 1 ? d->name : arena_printf(a, "%s[%d]", d->name, (int)(k - d->at + 1));
    }
    text t = { .a = a };
    if (!p->dofs.put)
        return arena_printf(a, "dof %d", k + 1);
    p->dofs.put(&t, p->dofs.source, k);
    return t.at;
}

/* Does the statement set row k, and no other row in the same member? */
static bool kernel_gives(const kernel *m, int k)
{
    int32_t index[MAX_INDEX] = { 0 };
    for (bool any = index_first(&m->over, index); any; any = index_next(&m->over, index)) {
        uint32_t hits = 0;
        for (uint32_t j = 0; j < m->tape.nout; j++)
            hits += slot_at(&m->row[j], index, m->over.n) == k;
        if (hits)
            return hits == m->tape.nout;
    }
    return false;
}

span mass_where(const program *p, int k)
{
    for (size_t i = 0; i < p->mass.n; i++)
        if (p->mass.at[i].at.file && kernel_gives(&p->mass.at[i], k))
            return p->mass.at[i].at;
    for (size_t i = 0; i < p->dofs.n; i++)
        if (k >= p->dofs.at[i].at && k < p->dofs.at[i].at + p->dofs.at[i].size)
            return p->dofs.at[i].where;
    return SPAN_NONE;
}
