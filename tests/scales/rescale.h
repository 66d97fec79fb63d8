/* A program in other units, for tests: times by T, degrees of freedom by L, energies by E, gaps by G and so
   on. Kernels are wrapped, not edited: inputs are multiplied by their units, outputs divided by theirs. The
   copy describes the same physics, so its run is the run of the original with every number in other units.
   Units are powers of 4: multiplying by one is exact, and so is its square root. */
#ifndef CDL_RESCALE_H
#define CDL_RESCALE_H
#include <math.h>
#include <string.h>
#include "clock/backend.h"
#include "field/field.h"
#include "inclusion/inclusion.h"
#include "past/history.h"
#include "program/shapes.h"
#include "rod/rod.h"

typedef struct units {
    double T, L, E;                    /* of time, of lengths, of energies */
    double gap;                        /* of gaps, relative to L */
    double X, F;                       /* of coordinates of fields and lengths of rods; of forces on rods */
    double U[FIELD_MAX], K[FIELD_MAX]; /* of each field; of its equation */
    double row;                        /* of rows of inclusions */
    double *q;                         /* of each dof: L times a factor of its own */
} units;

typedef struct rescaling {
    arena *a;
    const program *from;
    const units *u;
    const jet *jet;      /* of the current form: the meaning of IN_BOUND in it */
    double speed;        /* unit of speeds of the current contact */
    const kernels *past; /* the dofs whose past values the current kernel reads; NULL: none */
} rescaling;

/* ---- tapes ---- */
static inline int tape_arity(uint32_t op)
{
    static const uint8_t fused[] = {
#define X(id, arity, value, outer, side, inner) arity,
#include "base/fused.def"
#undef X
    };
    return op < OP_COUNT ? op_arity((op_code)op) : op < TAPE_SINCOS ? fused[op - OP_COUNT] : 1;
}

static inline double jet_unit(const units *u, const jet *j)
{
    return j->field >= BEND_JET ? 1 : u->U[j->field] / pow(u->X, j->d[0] + j->d[1]);
}

static inline int32_t first_address(const kernel *k, const slot_map *m)
{
    int32_t index[MAX_INDEX] = { 0 };
    return index_first(&k->over, index) ? slot_at(m, index, k->over.n) : m->base;
}

static inline double dof_unit(const rescaling *w, const kernel *k, const slot_map *m)
{
    return w->from->nq > 0 ? w->u->q[first_address(k, m)] : 1;
}

/* The unit of the dof that a slot of past values reads. */
static inline double past_unit(const rescaling *w, const kernel *reads, const slot *s)
{
    int32_t at = first_address(reads, &s->at);
    for (size_t i = 0; i < w->past[s->kind == IN_PAST_V].n; i++) {
        const kernel *k = &w->past[s->kind == IN_PAST_V].at[i];
        int32_t index[MAX_INDEX] = { 0 };
        for (bool any = index_first(&k->over, index); any; any = index_next(&k->over, index))
            if (slot_at(k->row, index, k->over.n) == at)
                return w->u->q[slot_at(k->col, index, k->over.n)];
    }
    return 1;
}

/* For shapes that may touch each other, geometric quantities and the tables of their points, which are
   parameters, are in units of L. The points of an ellipsoid are followed by its matrix, in 1/L^2. */
static inline double table_unit(const program *p, const units *u, int32_t at)
{
    for (size_t k = 0; k < p->shapes.paired; k++) {
        const shape_info *s = &p->shapes.at[k];
        if (at < s->table || at >= s->table + s->size * s->instances)
            continue;
        bool of_matrix = (at - s->table) % s->size >= s->npoint * (s->dim + 1);
        return of_matrix ? 1 / (u->L * u->L) : u->L;
    }
    return 1;
}

static inline void tables_in(const program *p, const units *u, double *param)
{
    for (int32_t k = 0; k < p->nparam; k++)
        param[k] /= table_unit(p, u, k);
}

/* the family itself, or that whose normal force it has */
static inline const contact_family *pressed_by(const program *p, const contact_family *f)
{
    return f->fed_by >= 0 ? &p->contact[f->fed_by] : f;
}

/* Does the kernel belong to a constraint between shapes of which one is curved? */
static inline bool of_curved(const program *p, const kernel *k)
{
    for (size_t i = 0; i < p->ncontact; i++) {
        const contact_family *f = &p->contact[i];
        const char *at = (const char *)k;
        if (at < (const char *)f || at >= (const char *)(f + 1))
            continue;
        f = pressed_by(p, f);
        if (!f->pair.touch)
            return false;
        return p->shapes.at[f->pair.first].kind != SHAPE_BALL ||
               p->shapes.at[f->pair.second].kind != SHAPE_BALL;
    }
    return false;
}

/* The unit of number k of a feature: points, directions, vectors that determine its normal, radii of hulls.
 */
static inline double feature_unit(const units *u, size_t k, bool curved)
{
    size_t at = k * sizeof(double);
    return at < offsetof(feature, ua) || (!curved && at >= offsetof(feature, ra)) ? u->L : 1;
}

static inline double input_unit(const rescaling *w, const kernel *k, const slot *s)
{
    const units *u = w->u;
    switch (s->kind) {
    case IN_TIME:
    case IN_INTEGRAL:
        return u->T;
    case IN_BOUND:
        return w->jet ? jet_unit(u, &w->jet[s->at.base]) : u->T;
    case IN_Q:
        return dof_unit(w, k, &s->at);
    case IN_V:
    case IN_PRE:
        return dof_unit(w, k, &s->at) / u->T;
    case IN_A:
        return dof_unit(w, k, &s->at) / (u->T * u->T);
    case IN_PAST_Q: /* for an inclusion, a value or a rate */
        if (w->past)
            return past_unit(w, k, s);
        return w->from->inclusion && w->from->inclusion->npast && w->from->inclusion->past[s->at.base].rate
                   ? u->L / u->T
                   : u->L;
    case IN_PAST_V:
        return w->past ? past_unit(w, k, s) / u->T : u->L / u->T;
    case IN_SPEED:
        return w->speed;
    case IN_REACT: /* of a gap, or along a slip */
        return u->E / (s->at.base % REACT ? u->L : u->gap * u->L);
    case IN_COORD:
    case IN_ROD:
        return u->X;
    case IN_PARAM:
        return table_unit(w->from, u, first_address(k, &s->at));
    case IN_FEATURE:
        return feature_unit(u, (size_t)first_address(k, &s->at) % FEATURE_NUMBERS, of_curved(w->from, k));
    default:
        return 1;
    }
}

/* Registers of the copy: inputs, constants, factors, computed values, inputs times their units, outputs. */
typedef struct wrapping {
    const kernel *k;
    uint32_t ninput, nfactor; /* inputs that have a unit; factors so far */
    uint32_t *scaled;         /* of each input: register of its value times the unit */
    uint32_t more;            /* total number of factors */
    double *factor;
    instr *code;
    uint32_t ncode, nreg;
} wrapping;

static inline uint32_t factor_register(wrapping *x, double value)
{
    x->factor[x->nfactor] = value;
    return x->k->tape.nin + x->k->tape.nconst + x->nfactor++;
}

static inline uint32_t moved(const wrapping *x, uint32_t r)
{
    const tape *t = &x->k->tape;
    return r < t->nin ? x->scaled[r] : r < t->nin + t->nconst ? r : r + x->more;
}

static inline uint32_t put_times(wrapping *x, uint32_t r, double by)
{
    uint32_t to = x->nreg++;
    x->code[x->ncode++] = (instr){ OP_MUL, to, r, factor_register(x, by), 0 };
    return to;
}

static inline void inputs_times(const rescaling *w, wrapping *x, bool uniform)
{
    const kernel *k = x->k;
    for (uint32_t i = 0; i < k->tape.nin; i++) {
        double unit = input_unit(w, k, &k->in[i]);
        if (unit != 1 && slot_uniform(&k->in[i]) == uniform)
            x->scaled[i] = put_times(x, i, unit);
    }
}

static inline void code_copy(wrapping *x, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        instr c = x->k->tape.code[i];
        int arity = tape_arity(c.op);
        c.dst = moved(x, c.dst);
        c.a = arity > 0 ? moved(x, c.a) : 0;
        c.b = arity > 1 || c.op == TAPE_SINCOS ? moved(x, c.b) : 0;
        c.c = arity > 2 ? moved(x, c.c) : 0;
        x->code[x->ncode++] = c;
    }
}

/* The kernel in these units: output i divided by unit[i]. */
static inline kernel wrap_outputs(const rescaling *w, const kernel *k, const double *unit)
{
    const tape *t = &k->tape;
    kernel r = *k;
    if (!t->nout)
        return r;
    wrapping x = { .k = k, .more = t->nin + t->nout, .nreg = t->nreg + t->nin + t->nout };
    x.factor = arena_array(w->a, double, x.more + t->nconst);
    x.scaled = arena_array(w->a, uint32_t, t->nin + 1);
    x.code = arena_array(w->a, instr, t->ncode + t->nin + t->nout + 1);
    uint32_t *out = arena_array(w->a, uint32_t, t->nout);
    for (uint32_t i = 0; i < t->nin; i++)
        x.scaled[i] = i;
    inputs_times(w, &x, true);
    if (!t->nhead)
        inputs_times(w, &x, false);
    code_copy(&x, 0, t->nhead);
    r.tape.nhead = t->nhead ? x.ncode : 0;
    if (t->nhead)
        inputs_times(w, &x, false);
    code_copy(&x, t->nhead, t->ncode);
    for (uint32_t i = 0; i < t->nout; i++) {
        bool fixed = t->out[i] >= t->nin && t->out[i] < t->nin + t->nconst;
        out[i] = unit[i] == 1 ? moved(&x, t->out[i])
                 : fixed      ? factor_register(&x, t->constant[t->out[i] - t->nin] / unit[i])
                              : put_times(&x, moved(&x, t->out[i]), 1 / unit[i]);
    }
    x.code[x.ncode] = (instr){ TAPE_END, 0, 0, 0, 0 };
    double *constant = arena_array(w->a, double, t->nconst + x.more);
    if (t->nconst)
        memcpy(constant, t->constant, t->nconst * sizeof *constant);
    memcpy(constant + t->nconst, x.factor, x.more * sizeof *constant);
    r.tape.nconst += x.more;
    r.tape.constant = constant;
    r.tape.code = x.code;
    r.tape.ncode = x.ncode;
    r.tape.nreg = x.nreg;
    r.tape.out = out;
    return r;
}

/* All outputs with one unit. */
static inline kernel wrap(const rescaling *w, const kernel *k, double unit)
{
    double *all = arena_array(w->a, double, k->tape.nout + 1);
    for (uint32_t i = 0; i < k->tape.nout; i++)
        all[i] = unit;
    return wrap_outputs(w, k, all);
}

/* Outputs in units of `unit` times powers of the unit of the row's (and column's) dof, for equations and
   their matrices. */
static inline kernel wrap_rows(const rescaling *w, const kernel *k, double unit, int row, int col)
{
    double *all = arena_array(w->a, double, k->tape.nout + 1);
    for (uint32_t i = 0; i < k->tape.nout; i++) {
        all[i] = unit;
        if (row)
            all[i] *= pow(dof_unit(w, k, &k->row[i]), row);
        if (col)
            all[i] *= pow(dof_unit(w, k, &k->col[i]), col);
    }
    return wrap_outputs(w, k, all);
}

static inline kernels wrap_all(const rescaling *w, const kernels *all, double unit, int row, int col)
{
    kernels r = { arena_array(w->a, kernel, all->n + 1), all->n };
    for (size_t k = 0; k < all->n; k++)
        r.at[k] = wrap_rows(w, &all->at[k], unit, row, col);
    return r;
}

/* ---- dofs that one kernel reads or writes at the same place for different members must have the same unit
   ---- */
static inline int32_t root_of(int32_t *parent, int32_t k)
{
    while (parent[k] != k)
        k = parent[k] = parent[parent[k]];
    return k;
}

static inline void tie(int32_t *parent, int32_t a, int32_t b)
{
    parent[root_of(parent, a)] = root_of(parent, b);
}

static inline void tie_map(int32_t *parent, const index_set *over, const slot_map *m)
{
    int32_t index[MAX_INDEX] = { 0 }, first = -1;
    for (bool any = index_first(over, index); any; any = index_next(over, index)) {
        int32_t at = slot_at(m, index, over->n);
        if (first >= 0)
            tie(parent, at, first);
        first = at;
    }
}

static inline void tie_kernel(int32_t *parent, const kernel *k, bool row, bool col)
{
    for (uint32_t i = 0; i < k->tape.nin; i++)
        if (k->in[i].kind == IN_Q || k->in[i].kind == IN_V || k->in[i].kind == IN_A ||
            k->in[i].kind == IN_PRE)
            tie_map(parent, &k->over, &k->in[i].at);
    for (uint32_t i = 0; i < k->tape.nout; i++) {
        if (row && k->row)
            tie_map(parent, &k->over, &k->row[i]);
        if (col && k->col)
            tie_map(parent, &k->over, &k->col[i]);
    }
}

static inline void tie_kernels(int32_t *parent, const kernels *all, bool row, bool col)
{
    for (size_t k = 0; k < all->n; k++)
        tie_kernel(parent, &all->at[k], row, col);
}

static inline void tie_contact(int32_t *parent, const contact_family *f)
{
    const kernel *plain[] = { &f->gap,    &f->rate, &f->bias,      &f->slip, &f->slip_bias, &f->slip_offset,
                              &f->normal, &f->mu,   &f->mu_static, &f->e,    &f->et,        &f->adhesion };
    for (size_t k = 0; k < sizeof plain / sizeof *plain; k++)
        tie_kernel(parent, plain[k], false, false);
    tie_kernel(parent, &f->gradient, true, false);
    tie_kernel(parent, &f->slip_map, false, true);
    for (int k = 0; k < f->near_dim; k++) {
        tie_map(parent, &f->over, &f->near_a[k]);
        tie_map(parent, &f->over, &f->near_b[k]);
        tie(parent, first_address(&f->gap, &f->near_a[k]), first_address(&f->gap, &f->near_b[k]));
        tie(parent, first_address(&f->gap, &f->near_a[k]), first_address(&f->gap, &f->near_a[0]));
    }
}

/* The group of each dof, given by one of its members. */
static inline int32_t *dof_groups(const program *p, arena *a)
{
    int32_t *parent = arena_array(a, int32_t, p->nq + 1);
    for (int32_t k = 0; k < p->nq; k++)
        parent[k] = k;
    const kernels *rows[] = { &p->start.q, &p->start.v, &p->force, &p->driving },
                  *both[] = { &p->mass, &p->force_dq, &p->force_dv },
                  *none[] = { &p->kinetic, &p->potential, &p->power };
    for (int k = 0; k < 4; k++)
        tie_kernels(parent, rows[k], true, false);
    for (int k = 0; k < 3; k++)
        tie_kernels(parent, both[k], true, true);
    for (int k = 0; k < 3; k++)
        tie_kernels(parent, none[k], false, false);
    const contact_family *pairs = NULL; /* their points are in the same space */
    for (size_t k = 0; k < p->ncontact; k++) {
        const contact_family *f = &p->contact[k];
        tie_contact(parent, f);
        if (f->near_dim && pairs)
            tie(parent, first_address(&f->gap, &f->near_a[0]), first_address(&pairs->gap, &pairs->near_a[0]));
        pairs = f->near_dim ? f : pairs;
    }
    for (size_t k = 0; k < p->nevent; k++) {
        tie_kernel(parent, &p->event[k].when, false, false);
        tie_kernel(parent, &p->event[k].reset, true, false);
    }
    for (size_t k = 0; k < p->dofs.n; k++)
        for (int32_t j = 1; j < p->dofs.at[k].size; j++)
            tie(parent, p->dofs.at[k].at, p->dofs.at[k].at + j);
    /* friction without a given slip shows forces and speeds as vectors of all dofs */
    bool one = p->delay || p->inclusion;
    for (size_t k = 0; k < p->ncontact; k++)
        one = one || (p->contact[k].friction != FRICTION_NONE && !p->contact[k].slip_given);
    for (int32_t k = 1; one && k < p->nq; k++)
        tie(parent, 0, k);
    for (int32_t k = 0; k < p->nq; k++)
        parent[k] = root_of(parent, k);
    return parent;
}

/* ---- contacts and events ---- */
/* For rods: forces are per length. */
static inline contact_family rod_contact_in(const rescaling *w, const contact_family *f)
{
    contact_family r = *f;
    r.gap = wrap(w, &f->gap, w->u->X);
    if (f->friction == FRICTION_TRESCA)
        r.mu = wrap(w, &f->mu, w->u->F / w->u->X);
    return r;
}

/* Without a given slip, friction is measured in the kinetic metric. */
static inline double slip_unit(const units *u, const contact_family *f)
{
    return f->slip_given ? u->L / u->T : sqrt(u->E);
}

static inline double gap_unit(const units *u)
{
    return u->gap * u->L;
}

/* The gap of near pairs is a distance of points; that of shapes is a distance, too. */
static inline double family_gap_unit(const program *p, const units *u, const contact_family *f)
{
    f = pressed_by(p, f);
    if (f->pair.touch)
        return u->L;
    return f->near_dim ? u->q[first_address(&f->gap, &f->near_a[0])] : gap_unit(u);
}

/* The unit of a friction force. */
static inline double drag_unit(const units *u, const contact_family *f)
{
    return u->E / (slip_unit(u, f) * u->T);
}

static inline contact_family contact_in(rescaling *w, const contact_family *f)
{
    const units *u = w->u;
    contact_family r = *f;
    double T = u->T, g = family_gap_unit(w->from, u, f), s = slip_unit(u, f), force = u->E / g,
           drag = drag_unit(u, f);
    double mu = f->friction == FRICTION_TRESCA ? drag : f->slip_given ? drag / force : 1;
    w->speed = s;
    r.gap = wrap(w, &f->gap, g);
    r.gradient = wrap_rows(w, &f->gradient, g, -1, 0);
    r.rate = wrap(w, &f->rate, g / T);
    r.bias = wrap(w, &f->bias, g / (T * T));
    r.slip = wrap(w, &f->slip, s);
    r.slip_map = wrap_rows(w, &f->slip_map, s * T, 0, -1);
    r.slip_offset = wrap(w, &f->slip_offset, s);
    r.slip_bias = wrap(w, &f->slip_bias, s / T);
    r.normal = wrap(w, &f->normal, force);
    r.mu = wrap(w, &f->mu, mu);
    r.mu_static = wrap(w, &f->mu_static, mu);
    r.et = wrap(w, &f->et, 1);
    r.adhesion = wrap(w, &f->adhesion, force);
    w->speed = g / T;
    r.e = wrap(w, &f->e, 1);
    if (f->near_dim)
        r.near_reach = wrap(w, &f->near_reach, dof_unit(w, &f->gap, &f->near_a[0]));
    w->speed = 1;
    return r;
}

static inline event_rule event_in(const rescaling *w, const event_rule *e)
{
    event_rule r = *e;
    const kernel *k = &e->reset;
    double *when = arena_array(w->a, double, e->when.tape.nout + 1),
           *reset = arena_array(w->a, double, k->tape.nout + 1);
    for (uint32_t i = 0; i < e->when.tape.nout; i++)
        when[i] = i ? w->u->L : 1;
    for (uint32_t i = 0; i < k->tape.nout; i++)
        reset[i] = dof_unit(w, k, &k->row[i]) / (e->reset_rate[i] ? w->u->T : 1);
    r.when = wrap_outputs(w, &e->when, when);
    r.reset = wrap_outputs(w, k, reset);
    return r;
}

/* Positions and rotations of shapes; only shapes that may touch are scaled, the others are only drawn. */
static inline const shape_info *shapes_in(const rescaling *w, const shape_list *of)
{
    shape_info *r = arena_array(w->a, shape_info, of->n + 1);
    for (size_t k = 0; k < of->n; k++) {
        const shape_info *s = &of->at[k];
        double *unit = arena_array(w->a, double, s->pose.tape.nout + 1);
        for (uint32_t i = 0; i < s->pose.tape.nout; i++)
            unit[i] = (int)i < s->dim && k < of->paired ? w->u->L : 1;
        r[k] = *s;
        r[k].pose = wrap_outputs(w, &s->pose, unit);
    }
    return r;
}

/* ---- the past ---- */
static inline const delay_program *delay_in(const rescaling *w, const delay_program *d)
{
    delay_program *r = arena_make(w->a, delay_program);
    double T = w->u->T;
    *r = *d;
    for (int k = 0; k < PAST_KINDS; k++)
        r->past[k] = wrap_all(w, &d->past[k], T, 0, 0);
    r->integral = arena_array(w->a, integral_rule, d->nrule + 1);
    for (size_t k = 0; k < d->nrule; k++) {
        const integral_rule *x = &d->integral[k];
        integral_rule *to = &r->integral[k];
        *to = *x;
        to->lo = wrap(w, &x->lo, T);
        to->hi = wrap(w, &x->hi, T);
        rescaling under = *w;
        /* for inclusions, these are numbers of another kind */
        under.past = w->from->inclusion ? NULL : x->past;
        to->integrand = wrap(&under, &x->integrand, 1);
        for (int j = 0; j < PAST_KINDS; j++)
            to->past[j] = wrap_all(w, &x->past[j], T, 0, 0);
    }
    r->history = wrap_all(w, &d->history, 1, 1, 0);
    r->history_rate = wrap_all(w, &d->history_rate, 1 / T, 1, 0);
    return r;
}

/* ---- inclusions ---- */
static inline inclusion_row row_in(const rescaling *w, const inclusion_row *x)
{
    const units *u = w->u;
    double R = u->row, L = u->L, T = u->T;
    inclusion_row r = *x;
    inclusion_sgn *sgn = arena_array(w->a, inclusion_sgn, x->nsgn + 1);
    r.r = wrap_outputs(w, &x->r, (double[]){ R, R / L, R * T / L, R });
    r.curve = wrap(w, &x->curve, R / (L * L));
    r.drift = wrap(w, &x->drift, R / T);
    for (int k = 0; k < x->nsgn; k++) {
        double A = gap_unit(u);
        sgn[k] = x->sgn[k];
        sgn[k].arg = wrap_outputs(w, &x->sgn[k].arg, (double[]){ A, A / L, A / T });
    }
    r.sgn = sgn;
    return r;
}

static inline inclusion_cone cone_in(const rescaling *w, const inclusion_cone *x)
{
    inclusion_cone r = *x;
    double *unit = arena_array(w->a, double, x->g.tape.nout + 1), G = gap_unit(w->u);
    for (uint32_t i = 0; i < x->g.tape.nout; i++)
        unit[i] = (int)i < x->ng ? G : G / w->u->L;
    r.g = wrap_outputs(w, &x->g, unit);
    return r;
}

static inline const inclusion_program *inclusion_in(const rescaling *w, const inclusion_program *x)
{
    inclusion_program *r = arena_make(w->a, inclusion_program);
    const units *u = w->u;
    int32_t nq = w->from->nq;
    *r = *x;
    if (x->refused)
        return r;
    inclusion_joint *joint = arena_array(w->a, inclusion_joint, x->njoint + 1);
    inclusion_row *row = arena_array(w->a, inclusion_row, nq + 1);
    inclusion_cone *cone = arena_array(w->a, inclusion_cone, x->ncone + 1);
    inclusion_past *past = arena_array(w->a, inclusion_past, x->npast + 1);
    inclusion_integral *integral = arena_array(w->a, inclusion_integral, x->nintegral + 1);
    for (int k = 0; k < x->njoint; k++) {
        joint[k] = x->joint[k];
        joint[k].arg = wrap(w, &x->joint[k].arg, gap_unit(u));
    }
    for (int32_t k = 0; k < nq; k++)
        row[k] = row_in(w, &x->row[k]);
    for (int k = 0; k < x->ncone; k++)
        cone[k] = cone_in(w, &x->cone[k]);
    for (int k = 0; k < x->npast; k++) {
        past[k] = x->past[k];
        past[k].when = wrap(w, &x->past[k].when, u->T);
    }
    for (int k = 0; k < x->nintegral; k++) {
        integral[k] = x->integral[k];
        integral[k].ends = wrap(w, &x->integral[k].ends, u->T);
        integral[k].f = wrap(w, &x->integral[k].f, 1);
    }
    r->joint = joint, r->row = row, r->cone = cone, r->past = past, r->integral = integral;
    r->history = arena_array(w->a, kernel, nq + 1);
    for (int32_t k = 0; k < nq; k++)
        r->history[k] = wrap_outputs(w, &x->history[k], (double[]){ u->L, u->L / u->T });
    r->turn = wrap(w, &x->turn, u->T);
    return r;
}

/* ---- fields ---- */
static inline field_form form_in(rescaling *w, const field_form *f, double unit)
{
    field_form r = *f;
    double *all = arena_array(w->a, double, f->njet + 1);
    w->jet = f->jet;
    all[0] = unit;
    for (int k = 0; k < f->njet; k++)
        all[1 + k] = unit / jet_unit(w->u, &f->jet[k]);
    r.k = wrap_outputs(w, &f->k, all);
    w->jet = NULL;
    return r;
}

static inline field_equation equation_in(rescaling *w, const field_equation *e, int ncoord)
{
    const units *u = w->u;
    double K = u->K[e->field], U = u->U[e->field], X = u->X, top = U / pow(X, e->order);
    field_equation r = *e;
    field_load *load = arena_array(w->a, field_load, e->nload + 1);
    field_flux *flux = arena_array(w->a, field_flux, e->nflux + 1);
    r.f = form_in(w, &e->f, K);
    r.normal = form_in(w, &e->normal, ncoord == 1 ? top : K);
    r.rest = form_in(w, &e->rest, K);
    for (int k = 0; k < e->nload; k++) {
        load[k] = e->load[k];
        load[k].place = wrap(w, &e->load[k].place, X);
        load[k].weight = wrap(w, &e->load[k].weight, K * X);
    }
    for (int k = 0; k < e->nflux; k++) {
        double unit = K * pow(X, e->order - e->flux[k].order);
        flux[k] = e->flux[k];
        flux[k].f = form_in(w, &e->flux[k].f, unit);
        flux[k].a = wrap(w, &e->flux[k].a, unit * X / U);
        flux[k].per = wrap(w, &e->flux[k].per, K * X / unit);
    }
    r.load = load, r.flux = flux;
    return r;
}

static inline field_condition condition_in(rescaling *w, const field_condition *c)
{
    field_condition r = *c;
    r.place = wrap(w, &c->place, w->u->X);
    r.f = form_in(w, &c->f, w->u->U[0]);
    r.where = wrap(w, &c->where, 1);
    return r;
}

static inline const field_program *field_in(rescaling *w, const field_program *x)
{
    field_program *r = arena_make(w->a, field_program);
    double X = w->u->X;
    *r = *x;
    field_equation *eq = arena_array(w->a, field_equation, x->nfield);
    field_condition *cond = arena_array(w->a, field_condition, x->ncond + 1);
    field_obstacle *obst = arena_array(w->a, field_obstacle, x->nobst + 1);
    field_switch *sw = arena_array(w->a, field_switch, x->nsw + 1);
    field_form *bend = arena_array(w->a, field_form, x->nbend + 1);
    r->domain = wrap(w, &x->domain, X);
    for (int k = 0; k < x->nfield; k++)
        eq[k] = equation_in(w, &x->eq[k], x->ncoord);
    for (int k = 0; k < x->ncond; k++)
        cond[k] = condition_in(w, &x->cond[k]);
    for (int k = 0; k < x->nobst; k++) {
        obst[k] = x->obst[k];
        obst[k].psi = wrap(w, &x->obst[k].psi, w->u->U[x->obst[k].field]);
    }
    for (int k = 0; k < x->nsw; k++) {
        sw[k] = x->sw[k];
        sw[k].k = wrap_outputs(w, &x->sw[k].k, (double[]){ X, 1 });
    }
    for (int k = 0; k < x->nbend; k++)
        bend[k] = form_in(w, &x->bend[k], w->u->U[0]);
    r->eq = eq, r->cond = cond, r->obst = obst, r->sw = sw, r->bend = bend;
    return r;
}

/* ---- rods ---- */
static inline rod_spec spec_in(const rescaling *w, const rod_spec *s)
{
    const units *u = w->u;
    double X = u->X, F = u->F, T = u->T, mass = F * T * T / (X * X);
    const double number[ROD_NUMBERS] = {
        [ROD_LENGTH] = X,  [ROD_RADIUS] = X,   [ROD_YOUNG] = F / (X * X),
        [ROD_POISSON] = 1, [ROD_ELEMENTS] = 1, [ROD_DENSITY] = mass / (X * X),
        [ROD_MASS] = mass, [ROD_DAMPING] = T,  [ROD_DRAG] = mass / T
    };
    rod_spec r = *s;
    for (int k = 0; k < ROD_NUMBERS; k++)
        r.number[k] = wrap(w, &s->number[k], number[k]);
    r.stiffness = wrap(w, &s->stiffness, F);
    r.bending = wrap(w, &s->bending, F * X * X);
    r.curve = wrap(w, &s->curve, X);
    r.curvature = wrap(w, &s->curvature, 1 / X);
    r.refine = wrap(w, &s->refine, 1);
    r.growth = wrap(w, &s->growth, 1);
    r.inertia = wrap(w, &s->inertia, mass * X * X);
    r.velocity = wrap(w, &s->velocity, X / T);
    r.spin = wrap(w, &s->spin, 1 / T);
    double *points = arena_array(w->a, double, 3 * s->npoints + 1);
    for (int k = 0; k < 3 * s->npoints; k++)
        points[k] = s->points[k] / X;
    r.points = points;
    return r;
}

static inline rod_load load_in(const rescaling *w, const rod_load *l)
{
    double X = w->u->X, F = w->u->F, mass = F * w->u->T * w->u->T / X;
    const double unit[] = { [LOAD_POSITION] = X, [LOAD_FRAME] = 1,   [LOAD_AXIS] = 1,
                            [LOAD_ROLL] = 1,     [LOAD_HINGE] = 1,   [LOAD_MOMENT] = F * X,
                            [LOAD_FORCE] = F,    [LOAD_MASS] = mass, [LOAD_INERTIA] = mass * X * X };
    rod_load r = *l;
    r.s = wrap(w, &l->s, X);
    r.value = wrap(w, &l->value, unit[l->what] / (l->point ? 1 : X));
    return r;
}

static inline const rod_program *rod_in(const rescaling *w, const rod_program *x)
{
    double X = w->u->X;
    const double body[] = { X, X, X, 1, 1, 1, X }; /* a point, a direction, a distance */
    rod_program *r = arena_make(w->a, rod_program);
    *r = *x;
    rod_spec *spec = arena_array(w->a, rod_spec, x->nrod);
    rod_load *load = arena_array(w->a, rod_load, x->nload + 1);
    rod_pair *pair = arena_array(w->a, rod_pair, x->npair + 1);
    for (int k = 0; k < x->nrod; k++)
        spec[k] = spec_in(w, &x->rod[k]);
    for (int k = 0; k < x->nload; k++)
        load[k] = load_in(w, &x->load[k]);
    rod_joint *joint = arena_array(w->a, rod_joint, x->njoint + 1);
    for (int k = 0; k < x->njoint; k++) {
        joint[k] = x->joint[k];
        joint[k].sa = wrap(w, &x->joint[k].sa, X);
        joint[k].sb = wrap(w, &x->joint[k].sb, X);
        joint[k].axis = wrap(w, &x->joint[k].axis, 1);
    }
    for (int k = 0; k < x->npair; k++) {
        pair[k] = x->pair[k];
        pair[k].body = wrap_outputs(w, &x->pair[k].body, body);
    }
    r->rod = spec, r->load = load, r->pair = pair, r->joint = joint;
    return r;
}

/* ---- the whole program ---- */
/* Derivatives of first-order dofs are rates, so their columns of the matrix have another unit. */
static inline kernel mass_in(const rescaling *w, const kernel *k)
{
    const units *u = w->u;
    const program *p = w->from;
    const slot_map *col = k->col ? k->col : k->row;
    double *all = arena_array(w->a, double, k->tape.nout + 1);
    for (uint32_t i = 0; i < k->tape.nout; i++) {
        int order = p->order ? p->order[first_address(k, &col[i])] : 2;
        all[i] = u->E * pow(u->T, order) / (dof_unit(w, k, &k->row[i]) * dof_unit(w, k, &col[i]));
    }
    return wrap_outputs(w, k, all);
}

static inline const program *program_in(arena *a, const program *p, const units *u)
{
    rescaling w = {
        .a = a, .from = p, .u = u, .speed = 1, .past = p->delay && !p->inclusion ? p->delay->past : NULL
    };
    program *r = arena_make(a, program);
    contact_family *contact = arena_array(a, contact_family, p->ncontact + 1);
    event_rule *event = arena_array(a, event_rule, p->nevent + 1);
    double T = u->T, E = u->E;
    *r = *p;
    r->start.q = wrap_all(&w, &p->start.q, 1, 1, 0);
    r->start.v = wrap_all(&w, &p->start.v, 1 / T, 1, 0);
    r->mass.at = arena_array(a, kernel, p->mass.n + 1);
    for (size_t k = 0; k < p->mass.n; k++)
        r->mass.at[k] = mass_in(&w, &p->mass.at[k]);
    r->force = wrap_all(&w, &p->force, E, -1, 0);
    r->force_dq = wrap_all(&w, &p->force_dq, E, -1, -1);
    r->force_dv = wrap_all(&w, &p->force_dv, E * T, -1, -1);
    r->kinetic = wrap_all(&w, &p->kinetic, E, 0, 0);
    r->potential = wrap_all(&w, &p->potential, E, 0, 0);
    r->driving = wrap_all(&w, &p->driving, E, -1, 0);
    r->power = wrap_all(&w, &p->power, E / T, 0, 0);
    for (size_t k = 0; k < p->ncontact; k++)
        contact[k] = p->rod ? rod_contact_in(&w, &p->contact[k]) : contact_in(&w, &p->contact[k]);
    for (size_t k = 0; k < p->nevent; k++)
        event[k] = event_in(&w, &p->event[k]);
    r->contact = contact, r->event = event;
    r->shapes.at = shapes_in(&w, &p->shapes);
    r->inclusion = p->inclusion ? inclusion_in(&w, p->inclusion) : NULL;
    r->field = p->field ? field_in(&w, p->field) : NULL;
    r->rod = p->rod ? rod_in(&w, p->rod) : NULL;
    r->delay = p->delay ? delay_in(&w, p->delay) : NULL;
    return r;
}
#endif
