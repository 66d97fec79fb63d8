/* emit: IR -> tape, in linear time and without recursion.
   find (the nodes below the outputs, operands first) -> fuse (pairs that one instruction does) -> weigh
   (registers a node's operands need) -> schedule (depth first, the heavier operand first, registers given
   back at the last use). What is the same for all members of a family comes first and keeps its registers, so
   that batches compute it once. */
#include <string.h>
#include "emit.h"

/* Nodes without their own instruction. */
enum { NODE_CONST = TAPE_END + 1, NODE_INPUT, NODE_FUSED, NODE_COS };

typedef struct node {
    uint32_t op;     /* tape_op or one of the above */
    uint32_t arg[3]; /* local numbers; SINCOS: arg[1] is the cosine; NODE_COS: arg[0] is SINCOS */
    uint32_t uses;   /* uses not yet emitted; an output counts as one that never comes */
    uint32_t reg, weight;
    ir_ref ref;
    uint8_t nargs;
    bool uniform, kept, done; /* uniform: the same for all members (of a family); kept: to the end */
    bool above_slow;          /* an operand is slow, or depends on a slow one */
} node;

typedef struct emitter {
    const ir *g;
    arena *s;                  /* scratch */
    map64 local;               /* ir_ref -> FIRST + number in `at`, or OPEN */
    vec(node) at;              /* operands before what uses them */
    vec(uint32_t) stack, open; /* of a walk; of free registers */
    vec(instr) code;
    uint32_t nin, nconst, nreg, nhead;
    bool family;
} emitter;
enum { OPEN = 1, FIRST = 2 };

/* ---- find ---- */
static uint32_t local_of(const emitter *e, ir_ref r)
{
    return (uint32_t)(*map64_get(&e->local, r) - FIRST);
}

static bool node_uniform(const emitter *e, const node *x)
{
    if (x->op == NODE_CONST)
        return true;
    if (x->op == NODE_INPUT) {
        const ir_input *in = ir_input_of(e->g, x->ref);
        return slot_uniform(&(slot){ in->kind, in->at });
    }
    for (int k = 0; k < x->nargs; k++)
        if (!e->at.at[x->arg[k]].uniform)
            return false;
    return true;
}

static void node_add(emitter *e, ir_ref r)
{
    const ir_node *x = ir_at(e->g, r);
    node n = { .op = x->op == IR_CONST ? NODE_CONST : x->op == IR_INPUT ? NODE_INPUT : x->op, .ref = r };
    if (n.op < OP_COUNT) {
        const ir_ref operand[3] = { x->a, x->b, x->c };
        n.nargs = (uint8_t)op_arity((op_code)x->op);
        for (int k = 0; k < n.nargs; k++) {
            n.arg[k] = local_of(e, operand[k]);
            e->at.at[n.arg[k]].uses++;
        }
    }
    n.uniform = e->family && node_uniform(e, &n);
    *map64_put(&e->local, r) = FIRST + e->at.n;
    *vec_push(e->s, &e->at) = n;
}

/* A node is met twice: first its operands are put on the stack above it, then it is added. */
static void find_visit(emitter *e, ir_ref r)
{
    uint64_t *mark = map64_put(&e->local, r);
    if (*mark >= FIRST)
        return;
    if (*mark == OPEN) {
        node_add(e, r);
        return;
    }
    *mark = OPEN;
    const ir_node *x = ir_at(e->g, r);
    const ir_ref operand[3] = { x->a, x->b, x->c };
    *vec_push(e->s, &e->stack) = r;
    for (int k = x->op < OP_COUNT ? op_arity((op_code)x->op) : 0; k-- > 0;)
        *vec_push(e->s, &e->stack) = operand[k];
}

static void nodes_find(emitter *e, const ir_ref *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        *vec_push(e->s, &e->stack) = out[i];
        while (e->stack.n)
            find_visit(e, e->stack.at[--e->stack.n]);
        e->at.at[local_of(e, out[i])].uses++;
    }
}

/* ---- fuse ---- */
static bool pair_fits(const emitter *e, const node *x, const tape_pair *f, int side)
{
    if (side >= x->nargs || (f->side != SIDE_EITHER && f->side != side))
        return false;
    const node *y = &e->at.at[x->arg[side]];
    return y->op == f->inner && y->uses == 1 && y->uniform == x->uniform;
}

static void pair_join(emitter *e, node *x, uint32_t op, int side)
{
    node *y = &e->at.at[x->arg[side]];
    uint32_t other = x->arg[!side];
    bool binary = x->nargs == 2;
    memcpy(x->arg, y->arg, sizeof x->arg);
    x->nargs = y->nargs;
    if (binary)
        x->arg[x->nargs++] = other;
    x->op = op;
    y->op = NODE_FUSED;
}

static void node_fuse(emitter *e, node *x)
{
    for (uint32_t k = 0; k < TAPE_SINCOS - OP_COUNT; k++) {
        if (tape_pairs[k].outer != x->op)
            continue;
        for (int side = 0; side < 2; side++)
            if (pair_fits(e, x, &tape_pairs[k], side)) {
                pair_join(e, x, OP_COUNT + k, side);
                return;
            }
    }
}

/* A sine and a cosine of the same: the sine does both. */
static void sines_join(emitter *e)
{
    uint32_t *sine = arena_array(e->s, uint32_t, e->at.n); /* of each node; 0: none (no sine comes first) */
    for (uint32_t i = 0; i < e->at.n; i++)
        if (e->at.at[i].op == OP_SIN)
            sine[e->at.at[i].arg[0]] = i;
    for (uint32_t i = 0; i < e->at.n; i++) {
        node *x = &e->at.at[i];
        if (x->op != OP_COS || !sine[x->arg[0]])
            continue;
        e->at.at[x->arg[0]].uses--;
        x->op = NODE_COS;
        x->arg[0] = sine[x->arg[0]];
        e->at.at[x->arg[0]].op = TAPE_SINCOS;
        e->at.at[x->arg[0]].arg[1] = i;
    }
}

/* Users before what they use, so that a pair is never taken from a pair. */
static void nodes_fuse(emitter *e)
{
    for (size_t i = e->at.n; i-- > 0;)
        if (e->at.at[i].op < OP_COUNT)
            node_fuse(e, &e->at.at[i]);
    sines_join(e);
}

/* ---- weigh ---- */
/* Operands of x, the heaviest first. */
static void args_order(const emitter *e, const node *x, uint32_t *arg)
{
    for (int k = 0; k < x->nargs; k++) {
        int j = k;
        for (; j > 0 && e->at.at[arg[j - 1]].weight < e->at.at[x->arg[k]].weight; j--)
            arg[j] = arg[j - 1];
        arg[j] = x->arg[k];
    }
}

/* Sethi and Ullman's number: the registers needed for a tree when its heavier branches go first. */
static void nodes_weigh(emitter *e)
{
    for (size_t i = 0; i < e->at.n; i++) {
        node *x = &e->at.at[i];
        uint32_t arg[3] = { 0, 0, 0 };
        if (x->op >= NODE_CONST)
            continue;
        args_order(e, x, arg);
        x->weight = 1;
        for (uint32_t k = 0; k < x->nargs; k++) {
            uint32_t w = e->at.at[arg[k]].weight + (arg[k] == arg[0] ? 0 : k);
            if (w > x->weight)
                x->weight = w;
        }
    }
}

/* ---- schedule ---- */
static uint32_t reg_take(emitter *e)
{
    return e->open.n ? e->open.at[--e->open.n] : e->nreg++;
}

static uint32_t reg_use(emitter *e, uint32_t i)
{
    node *x = &e->at.at[i];
    if (--x->uses == 0 && x->reg >= e->nin + e->nconst)
        *vec_push(e->s, &e->open) = x->reg;
    return x->reg;
}

static void node_emit(emitter *e, node *x)
{
    uint32_t r[3] = { 0, 0, 0 };
    for (int k = 0; k < x->nargs; k++)
        r[k] = reg_use(e, x->arg[k]);
    x->reg = reg_take(e);
    if (x->op == TAPE_SINCOS)
        r[1] = e->at.at[x->arg[1]].reg = reg_take(e);
    *vec_push(e->s, &e->code) = (instr){ x->op, x->reg, r[0], r[1], r[2] };
}

/* As in find: first the operands, then the node.  The bit above all numbers marks the second time. */
static const uint32_t AGAIN = 1u << 31;
static void schedule_visit(emitter *e, uint32_t i)
{
    node *x = &e->at.at[i & ~AGAIN];
    uint32_t arg[3] = { 0, 0, 0 };
    if (x->done || x->op == NODE_CONST || x->op == NODE_INPUT)
        return;
    if (i & AGAIN) {
        x->done = true;
        if (x->op != NODE_COS)
            node_emit(e, x);
        return;
    }
    *vec_push(e->s, &e->stack) = i | AGAIN;
    args_order(e, x, arg);
    for (int k = x->nargs; k-- > 0;)
        *vec_push(e->s, &e->stack) = arg[k];
}

static void node_schedule(emitter *e, uint32_t i)
{
    *vec_push(e->s, &e->stack) = i;
    while (e->stack.n)
        schedule_visit(e, e->stack.at[--e->stack.n]);
}

/* Head values used by the code of a member: one more use, so that the register is kept. */
static void head_mark(emitter *e)
{
    for (size_t i = 0; i < e->at.n; i++) {
        const node *x = &e->at.at[i];
        if (x->uniform || x->op == NODE_FUSED)
            continue;
        for (int k = 0; k < x->nargs; k++) {
            node *y = &e->at.at[x->arg[k]];
            y->uses += y->uniform;
            y->kept |= y->uniform;
        }
    }
}

/* Slow functions: what follows waits for them.  Outside of families, where lanes hide it, a few of them go
 * first. */
static bool node_slow(const node *x)
{
    return (x->op >= OP_EXP && x->op <= OP_TANH) || x->op == OP_POW || x->op == OP_ERF ||
           x->op == TAPE_SINCOS;
}

static void slow_schedule(emitter *e)
{
    int left = 16;
    for (uint32_t i = 0; i < e->at.n && left > 0; i++) {
        node *x = &e->at.at[i];
        if (x->op >= NODE_CONST)
            continue;
        for (int k = 0; k < x->nargs; k++) {
            const node *y = &e->at.at[x->arg[k]];
            x->above_slow |= y->above_slow || node_slow(y);
        }
        if (node_slow(x) && !x->above_slow) {
            node_schedule(e, i);
            left--;
        }
    }
}

static void nodes_schedule(emitter *e, const ir_ref *out, size_t n)
{
    head_mark(e);
    for (size_t i = 0; i < n; i++)
        e->at.at[local_of(e, out[i])].kept |= e->at.at[local_of(e, out[i])].uniform;
    for (size_t i = 0; i < e->at.n; i++)
        if (e->at.at[i].kept)
            node_schedule(e, (uint32_t)i);
    e->nhead = (uint32_t)e->code.n;
    if (!e->family)
        slow_schedule(e);
    for (size_t i = 0; i < n; i++)
        node_schedule(e, local_of(e, out[i]));
    *vec_push(e->s, &e->code) = (instr){ .op = TAPE_END };
}

/* ---- inputs, constants, the whole ---- */
static uint32_t nodes_count(const emitter *e, uint32_t op)
{
    uint32_t n = 0;
    for (size_t i = 0; i < e->at.n; i++)
        n += e->at.at[i].op == op;
    return n;
}

/* Registers for the inputs; in == NULL: they are the indices, of which there are nindex. */
static void inputs_place(emitter *e, arena *a, slot **in, uint32_t nindex)
{
    uint32_t at = 0;
    e->nin = in ? nodes_count(e, NODE_INPUT) : nindex;
    if (in)
        *in = arena_array(a, slot, e->nin);
    for (size_t i = 0; i < e->at.n; i++) {
        node *x = &e->at.at[i];
        if (x->op != NODE_INPUT)
            continue;
        const ir_input *from = ir_input_of(e->g, x->ref);
        x->reg = in ? at++ : (uint32_t)from->at.base;
        if (in)
            (*in)[x->reg] = (slot){ from->kind, from->at };
    }
}

static const double *constants_place(emitter *e, arena *a)
{
    e->nconst = nodes_count(e, NODE_CONST);
    double *k = arena_array(a, double, e->nconst), *end = k;
    for (size_t i = 0; i < e->at.n; i++) {
        node *x = &e->at.at[i];
        if (x->op != NODE_CONST)
            continue;
        x->reg = e->nin + (uint32_t)(end - k);
        *end++ = ir_at(e->g, x->ref)->k;
    }
    return k;
}

static tape emit_tape(arena *a, arena *scratch, const ir *g, const ir_ref *out, size_t n, slot **in,
                      uint32_t nindex, bool family)
{
    emitter e = { .g = g, .s = scratch, .local = { .a = scratch }, .family = family };
    nodes_find(&e, out, n);
    nodes_fuse(&e);
    nodes_weigh(&e);
    inputs_place(&e, a, in, nindex);
    const double *constant = constants_place(&e, a);
    e.nreg = e.nin + e.nconst;
    nodes_schedule(&e, out, n);
    instr *code = arena_array(a, instr, e.code.n);
    memcpy(code, e.code.at, e.code.n * sizeof *code);
    uint32_t *reg = arena_array(a, uint32_t, n);
    for (size_t i = 0; i < n; i++)
        reg[i] = e.at.at[local_of(&e, out[i])].reg;
    return (tape){ e.nin,    e.nconst, e.nreg, (uint32_t)e.code.n - 1, (uint32_t)n, e.nhead, 0,
                   constant, code,     reg };
}

kernel emit_kernel(arena *a, arena *scratch, const ir *g, const ir_ref *out, size_t n, const index_set *over,
                   ir_ref where, span at)
{
    arena_pos mark = arena_mark(scratch);
    slot *in;
    kernel k = { .over = *over, .at = at };
    k.tape = emit_tape(a, scratch, g, out, n, &in, 0, over->n > 0);
    k.in = in;
    if (where != IR_NONE) {
        tape *w = arena_make(a, tape);
        *w = emit_tape(a, scratch, g, &where, 1, NULL, (uint32_t)over->n, false);
        k.where = w;
        k.tape.nmore = w->nreg;
    }
    arena_release(scratch, mark);
    return k;
}
