/* dynamics: model -> the formulas of its motion.  know (what each node depends on) -> differentiate (sums
   term by term) -> Newton's or Lagrange's equations, contacts. Operands of a node have smaller numbers than
   the node, so one loop finds the facts about all nodes. */
#include <stdlib.h>
#include <string.h>
#include "collect.h"
#include "dynamics.h"

/* What a node depends on: a bit for each kind of input, and the ones below. */
#define ON(kind) (1u << (kind))
enum {
    ON_STATE = ON(IN_Q) | ON(IN_V),
    ON_STRIDED = ON(IN_KINDS), /* a parameter that differs from member to member */
    /* a piecewise constant operation of a position, whose derivative does not show it */
    ON_STEP_Q = ON(IN_KINDS + 1),
    ON_STEP_V = ON(IN_KINDS + 2),
    FIXED = ON(IN_PARAM) | ON(IN_INDEX) | ON_STRIDED /* constant during a run */
};

typedef struct {
    uint32_t on, mark, place;
} fact;
/* scale IR_NONE: 1 */
typedef struct {
    ir_ref f, scale;
    bool minus;
} summand;
typedef struct {
    ir_ref in, d;
} slope;

typedef struct work {
    const model *m;
    ir *g;
    arena *a;
    dynamics *dy;
    vec(fact) fact; /* of each node */
    uint32_t stamp; /* of the current walk, in fact.mark */
    vec(ir_ref) stack, inputs;
    vec(summand) todo, sum;
    vec(slope) slope;
    uint8_t order; /* of all dofs; 0: mixed */
    role inertia;  /* forces that come from kinetic energies */
    role moving;   /* masses of equations that change with time or position, as forces */
} work;

static bool is_zero(const work *w, ir_ref f)
{
    double k;
    return ir_is_const(w->g, f, &k) && k == 0;
}

/* ---- know ---- */
static const char *const derivative_rule[] = {
#define X(id, name, arity, value, deriv, unit, doc) #deriv,
#include "base/opcodes.def"
#undef X
};

/* Does the value jump with operand k without its derivative showing it? */
static bool op_steps(uint8_t op, int k)
{
    if (op == OP_MOD)
        return true;
    if (k == 0)
        return strncmp(derivative_rule[op] + 2, "(K(0)", 5) == 0;
    return strcmp(derivative_rule[op], "D2(K(0), K(0))") == 0;
}

static uint32_t input_on(const work *w, ir_ref r)
{
    const ir_input *in = ir_input_of(w->g, r);
    uint32_t on = ON(in->kind) | w->fact.at[in->arg].on;
    if (in->kind == IN_PARAM)
        for (int k = 0; k < MAX_INDEX; k++)
            if (in->at.stride[k])
                on |= ON_STRIDED;
    return on;
}

static uint32_t node_on(const work *w, ir_ref r)
{
    const ir_node *x = ir_at(w->g, r);
    if (x->op == IR_CONST)
        return 0;
    if (x->op == IR_INPUT)
        return input_on(w, r);
    const ir_ref operand[3] = { x->a, x->b, x->c };
    uint32_t on = 0;
    for (int k = 0; k < 3; k++) {
        uint32_t below = w->fact.at[operand[k]].on;
        on |= below;
        if ((below & ON_STATE) && op_steps(x->op, k))
            on |= (below & ON(IN_Q) ? ON_STEP_Q : 0) | (below & ON(IN_V) ? ON_STEP_V : 0);
    }
    return on;
}

static uint32_t on(work *w, ir_ref r)
{
    if (r >= w->fact.n) {
        size_t n = ir_count(w->g) + 1;
        vec_reserve(w->a, &w->fact, n);
        while (w->fact.n < n) {
            fact *f = &w->fact.at[w->fact.n];
            *f = (fact){ 0 };
            f->on = w->fact.n ? node_on(w, (ir_ref)w->fact.n) : 0;
            w->fact.n++;
        }
    }
    return w->fact.at[r].on;
}

/* The inputs of some kinds below a node, left to right, each once: in w->inputs. */
static void inputs_below(work *w, ir_ref root, uint32_t kinds)
{
    w->stamp++;
    w->inputs.n = w->stack.n = 0;
    *vec_push(w->a, &w->stack) = root;
    while (w->stack.n) {
        ir_ref r = w->stack.at[--w->stack.n];
        if (!(on(w, r) & kinds) || w->fact.at[r].mark == w->stamp)
            continue;
        w->fact.at[r].mark = w->stamp;
        const ir_node *x = ir_at(w->g, r);
        if (x->op == IR_INPUT) {
            if (ON(ir_input_of(w->g, r)->kind) & kinds)
                *vec_push(w->a, &w->inputs) = r;
            continue;
        }
        const ir_ref operand[3] = { x->a, x->b, x->c };
        for (int k = 3; k-- > 0;)
            if (operand[k])
                *vec_push(w->a, &w->stack) = operand[k];
    }
}

/* ---- orders of dofs ---- */
static uint8_t orders_all(const model *m)
{
    for (int32_t k = 1; k < m->nq; k++)
        if (m->order[k] != m->order[0])
            return 0;
    return m->nq ? m->order[0] : 2;
}

/* Order of the dofs at an address: those of all members, which must agree. */
static uint8_t order_at(work *w, const index_names *over, const address *at, span blame)
{
    if (w->order)
        return w->order;
    int32_t index[MAX_INDEX];
    uint8_t order = 0;
    for (bool any = index_first(&over->set, index); any; any = index_next(&over->set, index)) {
        uint8_t o = w->m->order[slot_at(at, index, over->n)];
        if (order && o != order) {
            diag_error(w->m->d, DIAG_NOT_SUPPORTED, blame,
                       "equations of first and of second order in one family");
            break;
        }
        order = o;
    }
    return order;
}

static bool leads(work *w, const index_names *over, const ir_input *in, span blame)
{
    return in->kind == IN_A || (in->kind == IN_V && order_at(w, over, &in->at, blame) == 1);
}

/* Does f contain second derivatives, or rates of first-order dofs? */
static bool holds_leading(work *w, const index_names *over, ir_ref f, span blame)
{
    inputs_below(w, f, w->order == 2 ? ON(IN_A) : ON(IN_A) | ON(IN_V));
    for (size_t i = 0; i < w->inputs.n; i++)
        if (leads(w, over, ir_input_of(w->g, w->inputs.at[i]), blame))
            return true;
    return false;
}

/* ---- differentiate ---- */
static bool op_is_sum(uint8_t op)
{
    return op == OP_ADD || op == OP_SUB || op == OP_NEG;
}

/* A factor or divisor that is free of the kinds goes into the scale. */
static bool summand_peel(work *w, summand *s, uint32_t kinds)
{
    const ir_node x = *ir_at(w->g, s->f);
    if ((x.op != OP_MUL && x.op != OP_DIV) || !(on(w, s->f) & kinds))
        return false;
    ir_ref rest = x.a, k = x.b;
    if (x.op == OP_MUL && !(on(w, rest) & kinds)) {
        rest = x.b;
        k = x.a;
    }
    if (on(w, k) & kinds)
        return false;
    s->f = rest;
    s->scale = ir_op2(w->g, (op_code)x.op, s->scale ? s->scale : ir_const(w->g, 1), k);
    return true;
}

/* Takes a sum apart, as far as its terms depend on the kinds, into w->sum. */
static void sum_split(work *w, ir_ref f, uint32_t kinds)
{
    w->sum.n = w->todo.n = 0;
    *vec_push(w->a, &w->todo) = (summand){ f, IR_NONE, false };
    while (w->todo.n) {
        summand s = w->todo.at[--w->todo.n];
        const ir_node x = *ir_at(w->g, s.f);
        if (!op_is_sum(x.op)) {
            if (summand_peel(w, &s, kinds))
                *vec_push(w->a, &w->todo) = s;
            else
                *vec_push(w->a, &w->sum) = s;
            continue;
        }
        if (x.op != OP_NEG)
            *vec_push(w->a, &w->todo) = (summand){ x.b, s.scale, s.minus != (x.op == OP_SUB) };
        *vec_push(w->a, &w->todo) = (summand){ x.a, s.scale, s.minus != (x.op == OP_NEG) };
    }
}

static ir_ref summand_scaled(work *w, const summand *s, ir_ref f)
{
    return s->scale ? ir_op2(w->g, OP_MUL, s->scale, f) : f;
}

static void slope_add(work *w, ir_ref in, ir_ref d, bool minus)
{
    uint32_t *place = &w->fact.at[in].place;
    if (!*place) {
        *vec_push(w->a, &w->slope) = (slope){ in, ir_const(w->g, 0) };
        *place = (uint32_t)w->slope.n;
    }
    slope *s = &w->slope.at[*place - 1];
    s->d = ir_op2(w->g, minus ? OP_SUB : OP_ADD, s->d, d);
}

/* d f / d input for all inputs of the kinds, without zeros, in w->slope.  Term by term, so that a long sum
   costs no more than its terms. */
static void gradient(work *w, ir_ref f, uint32_t kinds)
{
    size_t n = 0;
    w->slope.n = 0;
    if (!(on(w, f) & kinds))
        return;
    sum_split(w, f, kinds);
    for (size_t i = 0; i < w->sum.n; i++) {
        const summand s = w->sum.at[i];
        inputs_below(w, s.f, kinds);
        for (size_t j = 0; j < w->inputs.n; j++) {
            ir_ref in = w->inputs.at[j];
            slope_add(w, in, summand_scaled(w, &s, ir_derive(w->g, s.f, in)), s.minus);
        }
    }
    for (size_t i = 0; i < w->slope.n; i++) {
        const slope s = w->slope.at[i];
        w->fact.at[s.in].place = 0;
        if (!is_zero(w, s.d))
            w->slope.at[n++] = s;
    }
    w->slope.n = n;
}

/* ---- places ---- */
static bool same_set(const index_names *a, const index_names *b)
{
    return a->n == b->n && a->where == b->where && a->set.n == b->set.n &&
           (a->n == 0 || (memcmp(a->name, b->name, (size_t)a->n * sizeof *a->name) == 0 &&
                          memcmp(a->set.r, b->set.r, (size_t)a->n * sizeof *a->set.r) == 0));
}

static entry_group *role_group(work *w, role *r, const index_names *over, span at)
{
    if (r->last < r->group.n && same_set(&r->group.at[r->last].over, over))
        return &r->group.at[r->last];
    uint64_t key = hash64(over->where, (uint64_t)over->n);
    if (over->n)
        key = hash_bytes(over->set.r, (size_t)over->n * sizeof *over->set.r, key);
    r->by_set.a = w->a;
    for (;; key = hash64(key, 1)) {
        uint64_t *k = map64_put(&r->by_set, key >> 1);
        if (*k && !same_set(&r->group.at[*k - 1].over, over))
            continue;
        if (!*k) {
            *vec_push(w->a, &r->group) = (entry_group){ .over = *over, .at = at, .by_place = { .a = w->a } };
            *k = r->group.n;
        }
        r->last = *k - 1;
        return &r->group.at[r->last];
    }
}

static bool same_address(const address *a, const address *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static entry *group_entry(work *w, entry_group *g, const address *row, const address *col)
{
    uint64_t key = hash_bytes(col, sizeof *col, hash_bytes(row, sizeof *row, 0));
    for (;; key = hash64(key, 1)) {
        uint64_t *k = map64_put(&g->by_place, key >> 1);
        if (!*k) {
            *vec_push(w->a, &g->list) = (entry){ ir_const(w->g, 0), *row, *col };
            *k = g->list.n;
        }
        entry *e = &g->list.at[*k - 1];
        if (same_address(&e->row, row) && same_address(&e->col, col))
            return e;
    }
}

static const address NOWHERE;

/* Adds a contribution (or takes it away); row and col may be NULL. */
static void role_add(work *w, role *r, const index_names *over, span at, const address *row,
                     const address *col, ir_ref f, bool minus)
{
    entry_group *g = role_group(w, r, over, at);
    entry *e = group_entry(w, g, row ? row : &NOWHERE, col ? col : &NOWHERE);
    e->f = ir_op2(w->g, minus ? OP_SUB : OP_ADD, e->f, f);
}

/* ---- Newton: equations ---- */
typedef struct {
    work *w;
    const mfamily *f;
} rest_of;

static ir_ref leading_to_zero(ir *g, ir_ref input, void *ud)
{
    rest_of *r = ud;
    return leads(r->w, &r->f->over, ir_input_of(g, input), r->f->at) ? ir_const(g, 0) : IR_NONE;
}

static ir_ref accelerations_to_zero(ir *g, ir_ref input, void *ud)
{
    (void)ud;
    return ir_input_of(g, input)->kind == IN_A ? ir_const(g, 0) : IR_NONE;
}

static ir_ref rates_to_zero(ir *g, ir_ref input, void *ud)
{
    (void)ud;
    return ir_input_of(g, input)->kind == IN_V ? ir_const(g, 0) : IR_NONE;
}

/* q'.M q'/2 changes with M too: as if a force M' q'/2 acted. */
static void moving_mass_add(work *w, const mfamily *f, const address *row, const address *col, ir_ref mass)
{
    if (!(on(w, mass) & ~FIXED))
        return;
    ir_ref rate = ir_substitute(w->g, ir_time_derivative(w->g, mass), accelerations_to_zero, NULL);
    ir_ref v = ir_in(w->g, (ir_input){ .kind = IN_V, .at = *col });
    ir_ref half = ir_op2(w->g, OP_MUL, ir_const(w->g, 0.5), rate);
    role_add(w, &w->moving, &f->over, f->at, row, NULL, ir_op2(w->g, OP_MUL, half, v), false);
}

/* The part of a residual in the highest derivatives.  Gives how many entries it has. */
static int equation_mass(work *w, const mfamily *f, ir_ref residual, const address *row)
{
    int n = 0;
    bool linear = true;
    gradient(w, residual, w->order == 2 ? ON(IN_A) : ON(IN_A) | ON(IN_V));
    for (size_t i = 0; i < w->slope.n; i++) {
        const slope s = w->slope.at[i];
        const ir_input in = *ir_input_of(w->g, s.in);
        if (!leads(w, &f->over, &in, f->at))
            continue;
        linear = linear && !holds_leading(w, &f->over, s.d, f->at);
        role_add(w, &w->dy->mass, &f->over, f->at, row, &in.at, s.d, false);
        if (in.kind == IN_A)
            moving_mass_add(w, f, row, &in.at, s.d);
        n++;
    }
    if (!linear)
        diag_error(w->m->d, DIAG_NOT_SUPPORTED, f->at, "%s must enter linearly",
                   order_at(w, &f->over, row, f->at) == 1 ? "first-order rates" : "second derivatives");
    return n;
}

static void equation_add(work *w, const mfamily *f)
{
    ir_ref *rest = arena_array(w->a, ir_ref, f->nout);
    rest_of r = { w, f };
    for (int i = 0; i < f->nout; i++) {
        rest[i] = f->out[i];
        if (equation_mass(w, f, f->out[i], &f->row[i]))
            continue;
        text name = { .a = w->a };
        model_place(&name, w->m, &f->over, &f->row[i], true);
        diag_error(w->m->d, DIAG_SINGULAR_MASS, f->at,
                   "the equation for '%s' has no inertia: all factors of the highest derivatives vanish",
                   name.at);
    }
    ir_substitute_all(w->g, rest, (size_t)f->nout, leading_to_zero, &r);
    for (int i = 0; i < f->nout; i++) {
        role_add(w, &w->dy->force, &f->over, f->at, &f->row[i], NULL, rest[i], true);
        if (order_at(w, &f->over, &f->row[i], f->at) == 2)
            role_add(w, &w->dy->driving, &f->over, f->at, &f->row[i], NULL, rest[i], true);
    }
    if (!w->dy->first_order.file && f->nout && order_at(w, &f->over, &f->row[0], f->at) == 1)
        w->dy->first_order = f->at;
}

/* ---- Lagrange: energies ---- */
static void refuse(work *w, span at, uint32_t bad, ir_ref f, const char *what)
{
    if (on(w, f) & bad)
        diag_error(w->m->d, DIAG_NOT_SUPPORTED, at, "%s", what);
}

/* d/dt of the momentum p = dT/dv at s goes to the mass matrix and, where free of second derivatives, with a
   minus to the forces. */
static void momentum_add(work *w, const mfamily *f, const address *s, ir_ref p)
{
    dynamics *dy = w->dy;
    gradient(w, p, ON_STATE | ON(IN_TIME));
    for (size_t i = 0; i < w->slope.n; i++) {
        slope x = w->slope.at[i];
        ir_input in = *ir_input_of(w->g, x.in);
        if (in.kind == IN_V) {
            refuse(w, f->at, ON(IN_V) | ON_STEP_V, x.d, "kinetic energy must be quadratic in the rates");
            role_add(w, &dy->mass, &f->over, f->at, s, &in.at, x.d, false);
            continue;
        }
        if (in.kind == IN_Q) {
            in.kind = IN_V;
            x.d = ir_op2(w->g, OP_MUL, x.d, ir_in(w->g, in));
        }
        role_add(w, &w->inertia, &f->over, f->at, s, NULL, x.d, true);
    }
    if (dy->potential_whole)
        dy->potential_whole = is_zero(w, ir_substitute(w->g, p, rates_to_zero, NULL));
}

/* The partial derivative by time is power of no dof. */
static void power_of_time(work *w, const mfamily *f, ir_ref energy, bool minus)
{
    gradient(w, energy, ON(IN_TIME));
    if (w->slope.n)
        role_add(w, &w->dy->power, &f->over, f->at, NULL, NULL, w->slope.at[0].d, minus);
}

/* T = T2 + T1 + T0 by powers of the rates. Lagrange's equations give d/dt (T2 - T0 + V) = Q.q' + dV/dt -
   dT/dt (partial derivatives), so T2 + V also gains d/dt T0 - dT/dt. */
static void kinetic_power(work *w, const mfamily *f, ir_ref T)
{
    ir_ref T0 = ir_substitute(w->g, T, rates_to_zero, NULL);
    power_of_time(w, f, T, true);
    if (is_zero(w, T0))
        return;
    power_of_time(w, f, T0, false);
    gradient(w, T0, ON(IN_Q));
    for (size_t i = 0; i < w->slope.n; i++) {
        const address at = ir_input_of(w->g, w->slope.at[i].in)->at;
        role_add(w, &w->dy->driving, &f->over, f->at, &at, NULL, w->slope.at[i].d, false);
    }
}

static void kinetic_add(work *w, const mfamily *f, ir_ref T)
{
    dynamics *dy = w->dy;
    refuse(w, f->at, ~(ON_STATE | ON(IN_BASE) | FIXED | ON(IN_TIME) | ON_STEP_Q), T,
           "kinetic energy is a function of time, positions and rates");
    role_add(w, &dy->kinetic, &f->over, f->at, NULL, NULL, T, false);
    if (dy->potential_whole)
        dy->potential_whole = !(on(w, T) & ON(IN_TIME)) &&
                              is_zero(w, ir_substitute(w->g, T, rates_to_zero, NULL));
    gradient(w, T, ON_STATE);
    size_t n = w->slope.n;
    slope *s = arena_array(w->a, slope, n);
    if (n)
        memcpy(s, w->slope.at, n * sizeof *s);
    for (size_t i = 0; i < n; i++) {
        const ir_input in = *ir_input_of(w->g, s[i].in);
        if (in.kind == IN_V)
            momentum_add(w, f, &in.at, s[i].d);
        else
            role_add(w, &w->inertia, &f->over, f->at, &in.at, NULL, s[i].d, false);
    }
    kinetic_power(w, f, T);
}

static bool is_fixed(void *ud, ir_ref r)
{
    return !(on(ud, r) & ~FIXED);
}

/* Terms of d/dt dT/dv and dT/dq partly cancel: the rest is added to the forces. */
static void inertia_add(work *w)
{
    collector *c = collector_new(w->a, w->g, is_fixed, w);
    for (size_t k = 0; k < w->inertia.group.n; k++) {
        const entry_group *g = &w->inertia.group.at[k];
        for (size_t i = 0; i < g->list.n; i++)
            role_add(w, &w->dy->force, &g->over, g->at, &g->list.at[i].row, NULL, collect(c, g->list.at[i].f),
                     false);
    }
    for (size_t k = 0; k < w->dy->mass.group.n; k++) {
        entries *e = &w->dy->mass.group.at[k].list;
        for (size_t i = 0; i < e->n; i++)
            e->at[i].f = collect(c, e->at[i].f);
    }
}

/* Forces that are minus a gradient in the inputs of one kind. */
static void descent_add(work *w, const mfamily *f, ir_ref energy, in_kind kind)
{
    gradient(w, energy, ON(kind));
    for (size_t i = 0; i < w->slope.n; i++) {
        const address at = ir_input_of(w->g, w->slope.at[i].in)->at;
        role_add(w, &w->dy->force, &f->over, f->at, &at, NULL, w->slope.at[i].d, true);
        if (kind == IN_V)
            role_add(w, &w->dy->driving, &f->over, f->at, &at, NULL, w->slope.at[i].d, true);
    }
}

static void potential_add(work *w, const mfamily *f, ir_ref V)
{
    const uint32_t ok = ON(IN_Q) | ON(IN_BASE) | FIXED | ON(IN_TIME) | ON_STEP_Q;
    refuse(w, f->at, ~ok, V, "potential energy is a function of time and positions");
    if (on(w, V) & ON(IN_TIME))
        w->dy->potential_whole = false;
    role_add(w, &w->dy->potential, &f->over, f->at, NULL, NULL, V, false);
    descent_add(w, f, V, IN_Q);
    power_of_time(w, f, V, false);
}

static void dissipation_add(work *w, const mfamily *f, ir_ref D)
{
    refuse(w, f->at, ON(IN_A), D, "a dissipation function is one of time, positions and rates");
    descent_add(w, f, D, IN_V);
}

static void forces_add(work *w, const mfamily *f)
{
    for (int i = 0; i < f->nout; i++) {
        refuse(w, f->at, ON(IN_A), f->out[i],
               "a force must not depend on second derivatives: write an equation or kinetic energy");
        role_add(w, &w->dy->force, &f->over, f->at, &f->row[i], NULL, f->out[i], false);
        role_add(w, &w->dy->driving, &f->over, f->at, &f->row[i], NULL, f->out[i], false);
    }
}

static void energies_add(work *w, const mfamilies *fs, void (*add)(work *, const mfamily *, ir_ref))
{
    for (size_t k = 0; k < fs->n; k++)
        for (int i = 0; i < fs->at[k].nout; i++)
            add(w, &fs->at[k], fs->at[k].out[i]);
}

/* ---- forces not covered by the potential of linear forces ---- */
/* Such a force is c + J q + (terms that rates, time or the past decide); the potential has J q, and c where
   the force is fixed at q = 0, q' = 0. */
static ir_ref force_driving(work *w, ir_ref f)
{
    const uint32_t other = ~(FIXED | ON(IN_Q));
    ir *g = w->g;
    ir_ref rest = ir_const(g, 0);
    if (!(on(w, f) & other))
        return rest;
    bool taken = potential_constant(g, f) != IR_NONE;
    sum_split(w, f, ~(uint32_t)FIXED);
    for (size_t i = 0; i < w->sum.n; i++) {
        const summand s = w->sum.at[i];
        ir_ref x = s.f, c = potential_constant(g, x);
        if (!(on(w, x) & other))
            x = taken ? ir_const(g, 0) : c;
        else if (taken && c)
            x = ir_op2(g, OP_SUB, x, c);
        rest = ir_op2(g, s.minus ? OP_SUB : OP_ADD, rest, summand_scaled(w, &s, x));
    }
    return rest;
}

static void moving_masses_drive(work *w)
{
    for (size_t k = 0; k < w->moving.group.n; k++) {
        const entry_group *g = &w->moving.group.at[k];
        for (size_t i = 0; i < g->list.n; i++)
            role_add(w, &w->dy->driving, &g->over, g->at, &g->list.at[i].row, NULL, g->list.at[i].f, false);
    }
}

static void driving_less_linear(work *w)
{
    dynamics *dy = w->dy;
    dy->driving = (role){ 0 };
    for (size_t k = 0; k < dy->force.group.n; k++) {
        const entry_group *g = &dy->force.group.at[k];
        for (size_t i = 0; i < g->list.n; i++) {
            ir_ref rest = force_driving(w, g->list.at[i].f);
            if (!is_zero(w, rest))
                role_add(w, &dy->driving, &g->over, g->at, &g->list.at[i].row, NULL, rest, false);
        }
    }
}

/* ---- structure ---- */
static void jacobian_add(work *w, const entry_group *g)
{
    dynamics *dy = w->dy;
    for (size_t i = 0; i < g->list.n; i++) {
        const entry e = g->list.at[i];
        gradient(w, e.f, ON_STATE);
        for (size_t k = 0; k < w->slope.n; k++) {
            const slope s = w->slope.at[k];
            const ir_input in = *ir_input_of(w->g, s.in);
            role_add(w, in.kind == IN_Q ? &dy->force_dq : &dy->force_dv, &g->over, g->at, &e.row, &in.at, s.d,
                     false);
            if (on(w, s.d) & ~FIXED)
                dy->force_linear = false;
        }
        if (on(w, e.f) & ON_STATE)
            dy->force_of_state = true;
        if (on(w, e.f) & (ON_STEP_Q | ON_STEP_V))
            dy->force_linear = false;
    }
}

static void mass_look(work *w)
{
    dynamics *dy = w->dy;
    dy->mass_constant = dy->mass_diagonal = true;
    for (size_t k = 0; k < dy->mass.group.n; k++) {
        const entries *e = &dy->mass.group.at[k].list;
        for (size_t i = 0; i < e->n; i++) {
            if (on(w, e->at[i].f) & ~FIXED)
                dy->mass_constant = false;
            if (!same_address(&e->at[i].row, &e->at[i].col))
                dy->mass_diagonal = false;
        }
    }
}

static void mark_members(const index_names *over, const address *at, uint8_t *mark, uint8_t bit)
{
    int32_t index[MAX_INDEX];
    for (bool any = index_first(&over->set, index); any; any = index_next(&over->set, index))
        mark[slot_at(at, index, over->n)] |= bit;
}

/* Every dof must have an entry in its row and in its column; otherwise the mass matrix is singular for all
 * numbers. */
static void mass_check(work *w)
{
    enum { ROW = 1, COL = 2 };
    const model *m = w->m;
    uint8_t *mark = arena_array(w->a, uint8_t, m->nq);
    for (size_t k = 0; k < w->dy->mass.group.n; k++) {
        const entry_group *g = &w->dy->mass.group.at[k];
        for (size_t i = 0; i < g->list.n; i++) {
            if (is_zero(w, g->list.at[i].f))
                continue;
            mark_members(&g->over, &g->list.at[i].row, mark, ROW);
            mark_members(&g->over, &g->list.at[i].col, mark, COL);
        }
    }
    for (size_t k = 0; k < m->inclusion.n; k++)
        for (int i = 0; i < m->inclusion.at[k].nout; i++)
            mark_members(&m->inclusion.at[k].over, &m->inclusion.at[k].row[i], mark, ROW | COL);
    for (int32_t q = 0; q < m->nq; q++) {
        if (mark[q] == (ROW | COL))
            continue;
        text name = { .a = w->a };
        model_place(&name, m, NULL, &(address){ .base = q }, true);
        const mdof *d = model_dof(m, q, NULL);
        diag *e = diag_error(m->d, DIAG_SINGULAR_MASS, d ? d->at : SPAN_NONE, "no inertia for '%s'", name.at);
        diag_hint(
            m->d, e,
            m->order[q] == 1
                ? "its rate is in no equation"
                : "no equation contains its second derivative, no kinetic energy the square of its rate");
    }
}

/* ---- contacts ---- */
static ir_ref time_derivative(work *w, ir_ref f)
{
    ir_ref d = ir_substitute(w->g, ir_time_derivative(w->g, f), accelerations_to_zero, NULL);
    return is_zero(w, d) ? IR_NONE : d;
}

static bool moves_with_state(const ir_input *in, void *ud)
{
    (void)ud;
    return in->kind == IN_Q || in->kind == IN_V || in->kind == IN_PAST_Q || in->kind == IN_PAST_V;
}

/* A gap needs its rate: positions at times that are known have one, past rates and integrals over the past do
 * not. */
static bool gap_past(work *w, const mcontact *c)
{
    ir_ref *in;
    size_t n = ir_inputs(w->g, w->a, &c->gap, 1, &in), errors = w->m->d->errors;
    for (size_t i = 0; i < n; i++) {
        const ir_input *x = ir_input_of(w->g, in[i]);
        bool past = x->kind == IN_PAST_Q, state = past && ir_depends(w->g, x->arg, moves_with_state, NULL);
        if (x->kind != IN_PAST_V && x->kind != IN_INTEGRAL && !state)
            continue;
        diag *e = diag_error(w->m->d, DIAG_NOT_SUPPORTED, c->at,
                             "the gap of '%s' reads %s: its rate is not available", c->path,
                             state                  ? "the past at a time that depends on the state"
                             : past                 ? "the past"
                             : x->kind == IN_PAST_V ? "a past rate"
                                                    : "an integral over the past");
        diag_hint(w->m->d, e, "introduce a degree of freedom that follows it, and write the gap with that");
    }
    return w->m->d->errors == errors;
}

/* A bounded rate is linear in the rates: a row of factors, and a rest. */
/* A reaction is a force: it needs an equation with a second derivative to act in. */
static bool pushes_first_order(work *w, const mcontact *c, ir_ref in, span at)
{
    const ir_input *x = ir_input_of(w->g, in);
    if (w->m->inclusion.n || order_at(w, &c->over, &x->at, at) != 1)
        return false;
    text name = { .a = w->a };
    model_namer by = { w->m, &c->over };
    model_input_name(&name, w->g, x, &by);
    diag *e = diag_error(w->m->d, DIAG_NOT_SUPPORTED, at,
                         "the reaction of '%s' would act on %s, whose equation is of first order", c->path,
                         name.at);
    diag_hint(w->m->d, e,
              "give it an equation with a second derivative, or write an inclusion with normal_cone; a "
              "prescribed motion may be a formula of t");
    return true;
}

static void contact_rates(work *w, const mcontact *c, contact_form *f)
{
    bool fixed = true, linear = !(on(w, c->gap) & ON_STEP_V);
    gradient(w, c->gap, ON(IN_V));
    for (size_t i = 0; i < w->slope.n; i++) {
        const slope s = w->slope.at[i];
        const ir_input in = *ir_input_of(w->g, s.in);
        if (pushes_first_order(w, c, s.in, c->at))
            return;
        linear = linear && !(on(w, s.d) & ON(IN_V));
        fixed = fixed && !(on(w, s.d) & ~FIXED);
        *vec_push(w->a, &f->gradient) = (entry){ s.d, in.at, NOWHERE };
    }
    if (!linear || f->gradient.n == 0) {
        diag_error(w->m->d, DIAG_SLIP_NOT_LINEAR, c->at, "the constraint '%s' is not linear in the rates",
                   c->path);
        return;
    }
    if (!gap_past(w, c))
        return;
    ir_ref rest = ir_substitute(w->g, c->gap, rates_to_zero, NULL);
    f->rate = is_zero(w, rest) ? IR_NONE : rest;
    f->constant_gradient = fixed;
    f->linear = fixed && !(on(w, rest) & ~FIXED);
    if (!f->linear)
        f->bias = time_derivative(w, c->gap);
}

static void contact_gap(work *w, const mcontact *c, contact_form *f)
{
    bool q_free = true, fixed = true;
    gradient(w, c->gap, ON(IN_Q) | ON(IN_TIME));
    for (size_t i = 0; i < w->slope.n; i++) {
        const slope s = w->slope.at[i];
        const ir_input *in = ir_input_of(w->g, s.in);
        if (in->kind == IN_Q && pushes_first_order(w, c, s.in, c->at))
            return;
        if (in->kind == IN_Q)
            *vec_push(w->a, &f->gradient) = (entry){ s.d, in->at, NOWHERE };
        else
            f->rate = s.d;
        if (on(w, s.d) & ~FIXED)
            fixed = false;
        if (in->kind == IN_Q && (on(w, s.d) & ~FIXED))
            q_free = false;
    }
    if (!gap_past(w, c))
        return;
    /* the times of past values contain time too */
    if (on(w, c->gap) & (ON(IN_PAST_Q) | ON(IN_PAST_V))) {
        f->rate = ir_substitute(w->g, ir_time_derivative(w->g, c->gap), rates_to_zero, NULL);
        fixed = false;
    }
    f->constant_gradient = q_free;
    f->linear = fixed && !(on(w, c->gap) & ON_STEP_Q);
    if (!fixed)
        f->bias = time_derivative(w, ir_time_derivative(w->g, c->gap));
    if (f->gradient.n == 0 && !(on(w, c->gap) & ON(IN_ROD)))
        diag_error(w->m->d, DIAG_CONSTRAINT_NO_DOF, c->at,
                   "the constraint '%s' depends on no degree of freedom", c->path);
}

static bool contact_slip_linear(work *w, const mcontact *c, contact_form *f, span at)
{
    for (int k = 0; k < c->nslip; k++) {
        if (on(w, c->slip[k]) & (ON(IN_A) | ON_STEP_V))
            return false;
        gradient(w, c->slip[k], ON(IN_V));
        for (size_t i = 0; i < w->slope.n; i++) {
            const slope s = w->slope.at[i];
            if (pushes_first_order(w, c, s.in, at))
                return true;
            if (on(w, s.d) & ON(IN_V))
                return false;
            *vec_push(w->a, &f->slip_map) = (entry){ s.d, { .base = k }, ir_input_of(w->g, s.in)->at };
        }
        f->slip_bias[k] = time_derivative(w, c->slip[k]);
        if (f->slip_bias[k])
            f->slip_moves = true;
        f->slip_offset[k] = ir_substitute(w->g, c->slip[k], rates_to_zero, NULL);
        if (!is_zero(w, f->slip_offset[k]))
            f->slip_carried = true;
    }
    return true;
}

static void contact_slip(work *w, const mcontact *c, contact_form *f)
{
    span at = c->slip_at.file ? c->slip_at : c->at;
    if (!contact_slip_linear(w, c, f, at))
        diag_error(w->m->d, DIAG_SLIP_NOT_LINEAR, at, "the slip of '%s' is not linear in the rates", c->path);
    else if (c->nslip && f->slip_map.n == 0)
        diag_error(w->m->d, DIAG_SLIP_NOT_LINEAR, at,
                   "the slip of '%s' contains no rate of a degree of freedom", c->path);
}

/* ---- pairs of points ---- */
static uint32_t strides_used(const address *a)
{
    uint32_t used = 0;
    for (int k = 0; k < MAX_INDEX; k++)
        if (a->stride[k])
            used |= 1u << k;
    return used;
}

/* (x - y)^2 of two positions; the one that moves with the same indices as the first ones comes first. */
static bool near_coordinate(work *w, const summand *s, contact_form *f)
{
    const ir_node *sq = ir_at(w->g, s->f);
    if (s->minus || s->scale || sq->op != OP_SQR)
        return false;
    const ir_node *d = ir_at(w->g, sq->a);
    if (d->op != OP_SUB)
        return false;
    const ir_input *x = ir_input_of(w->g, d->a), *y = ir_input_of(w->g, d->b);
    if (!x || !y || x->kind != IN_Q || y->kind != IN_Q)
        return false;
    int k = f->near_dim++;
    if (k && strides_used(&x->at) != strides_used(&f->near_a[0])) {
        const ir_input *z = x;
        x = y;
        y = z;
    }
    f->near_a[k] = x->at;
    f->near_b[k] = y->at;
    uint32_t a = strides_used(&x->at), b = strides_used(&y->at);
    return (a & ~b) && (b & ~a) && a == strides_used(&f->near_a[0]) && b == strides_used(&f->near_b[0]);
}

static bool near_points(work *w, ir_ref squares, contact_form *f)
{
    sum_split(w, squares, ON(IN_Q));
    if (w->sum.n < 2 || w->sum.n > 3)
        return false;
    for (size_t i = 0; i < w->sum.n; i++)
        if (!near_coordinate(w, &w->sum.at[i], f))
            return false;
    return true;
}

/* gap = sqrt(sum of (x - y)^2) - c, over pairs of points? */
static bool near_form(work *w, ir_ref gap, contact_form *f)
{
    ir_ref root = IR_NONE, reach = ir_const(w->g, 0);
    sum_split(w, gap, ON(IN_Q));
    for (size_t i = 0; i < w->sum.n; i++) {
        const summand s = w->sum.at[i];
        if (on(w, s.f) & ON(IN_Q)) {
            if (root || s.minus || s.scale || ir_at(w->g, s.f)->op != OP_SQRT)
                return false;
            root = s.f;
        } else
            reach = ir_op2(w->g, s.minus ? OP_ADD : OP_SUB, reach, summand_scaled(w, &s, s.f));
    }
    f->near_reach = reach;
    return root && !(on(w, reach) & ~(FIXED | ON(IN_TIME))) && near_points(w, ir_at(w->g, root)->a, f);
}

static void contact_add(work *w, const mcontact *c, contact_form *f)
{
    if (c->of_rates)
        contact_rates(w, c, f);
    else if (c->relation != REL_CLOSED)
        contact_gap(w, c, f);
    if (c->slip_given)
        contact_slip(w, c, f);
    if (c->relation == REL_GAP && !c->of_rates && c->over.n >= 2 && !near_form(w, c->gap, f))
        f->near_dim = 0;
}

/* ---- order ---- */
static int address_compare(const address *a, const address *b)
{
    if (a->base != b->base)
        return a->base < b->base ? -1 : 1;
    for (int k = 0; k < MAX_INDEX; k++)
        if (a->stride[k] != b->stride[k])
            return a->stride[k] > b->stride[k] ? -1 : 1;
    return 0;
}

static int entry_compare(const void *x, const void *y)
{
    const entry *a = x, *b = y;
    int rows = address_compare(&a->row, &b->row);
    return rows ? rows : address_compare(&a->col, &b->col);
}

/* By rows and columns, so that the order does not depend on how the formulas were built. */
static void entries_sort(entries *e)
{
    for (size_t i = 1; i < e->n; i++)
        if (entry_compare(&e->at[i - 1], &e->at[i]) > 0) {
            qsort(e->at, e->n, sizeof *e->at, entry_compare);
            return;
        }
}

static void role_sort(role *r)
{
    for (size_t k = 0; k < r->group.n; k++)
        entries_sort(&r->group.at[k].list);
}

/* ---- formulas ---- */
static void formulas(work *w)
{
    const model *m = w->m;
    dynamics *dy = w->dy = arena_make(w->a, dynamics);
    dy->potential_whole = m->equation.n + m->inclusion.n + m->dissipation.n + m->force.n == 0;
    dy->force_linear = true;
    w->order = orders_all(m);
    for (size_t k = 0; k < m->equation.n; k++)
        equation_add(w, &m->equation.at[k]);
    energies_add(w, &m->kinetic, kinetic_add);
    if (m->kinetic.n)
        inertia_add(w);
    energies_add(w, &m->potential, potential_add);
    energies_add(w, &m->dissipation, dissipation_add);
    for (size_t k = 0; k < m->force.n; k++)
        forces_add(w, &m->force.at[k]);
    for (size_t k = 0; k < dy->force.group.n; k++)
        jacobian_add(w, &dy->force.group.at[k]);
    dy->contact = arena_array(w->a, contact_form, m->contacts.n);
    for (size_t k = 0; k < m->contacts.n; k++) {
        contact_add(w, &m->contacts.at[k], &dy->contact[k]);
        entries_sort(&dy->contact[k].gradient);
        entries_sort(&dy->contact[k].slip_map);
    }
    role_sort(&dy->mass);
    role_sort(&dy->force);
    role_sort(&dy->force_dq);
    role_sort(&dy->force_dv);
    mass_look(w);
    mass_check(w);
    if (potential_of_forces(w->a, m, dy))
        driving_less_linear(w);
    moving_masses_drive(w);
    role_sort(&dy->driving);
}

dynamics *dynamics_of(arena *a, const model *m)
{
    work w = { .m = m, .g = m->g, .a = a };
    size_t before = m->d->errors;
    formulas(&w);
    return m->d->errors == before ? w.dy : NULL;
}
