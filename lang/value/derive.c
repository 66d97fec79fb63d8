/* derive: one memoised pass IR -> IR.  The partial derivatives are the column of opcodes.def, read as calls
   of the builder. */
#include "ir.h"

/* the words of that column: a term carries its DAG, so a row's ID is a function of terms */
typedef struct {
    ir *g;
    ir_ref n;
} term;
#define WORD_1(id)                                       \
    static inline term id(term a)                        \
    {                                                    \
        return (term){ a.g, ir_op1(a.g, OP_##id, a.n) }; \
    }
#define WORD_2(id)                                            \
    static inline term id(term a, term b)                     \
    {                                                         \
        return (term){ a.g, ir_op2(a.g, OP_##id, a.n, b.n) }; \
    }
#define WORD_3(id)                                                \
    static inline term id(term a, term b, term c)                 \
    {                                                             \
        return (term){ a.g, ir_op(a.g, OP_##id, a.n, b.n, c.n) }; \
    }
#define X(id, name, arity, value, deriv, unit, doc) WORD_##arity(id)
#include "base/opcodes.def"
#undef X

/* d node / d operand i (0, 1, 2); only the requested one is built */
static ir_ref partial(ir *g, ir_ref n, int i)
{
    ir_node x = *ir_at(g, n);
    term A = { g, x.a }, B = { g, x.b }, C = { g, x.c }, R = { g, n };
    (void)C;
#define K(x)           ((term){ g, ir_const(g, (x)) })
#define D1(da)         (da).n
#define D2(da, db)     (i == 0 ? (da).n : (db).n)
#define D3(da, db, dc) (i == 0 ? (da).n : i == 1 ? (db).n : (dc).n)
    switch (x.op) {
#define X(id, name, arity, value, deriv, unit, doc) \
    case OP_##id:                                   \
        return deriv;
#include "base/opcodes.def"
#undef X
    default:
        return IR_NONE;
    }
}

static bool is_truth(const ir *g, ir_ref n)
{
    return op_decides(ir_at(g, n)->op);
}

/* partial * d.  A partial derivative that is a truth value chooses: a branch that is not taken may be
   singular, and 0*nan would spread */
static ir_ref chain(ir *g, ir_ref p, ir_ref d)
{
    return is_truth(g, p) ? ir_op(g, OP_SELECT, p, d, ir_const(g, 0)) : ir_op2(g, OP_MUL, p, d);
}

static bool is_zero(const ir *g, ir_ref n)
{
    double k;
    return n == IR_NONE || (ir_is_const(g, n, &k) && k == 0);
}

/* derivative of an operation from those of its operands; IR_NONE is 0, and what is multiplied by it is not
 * built */
static ir_ref operation_rate(ir *g, const ir_walk *w, ir_ref n, ir_ref from)
{
    ir_node x = *ir_at(g, n);
    ir_ref operand[3] = { x.a, x.b, x.c }, sum = IR_NONE;
    for (int i = 0; i < 3 && operand[i]; i++) {
        ir_ref d = operand[i] < from ? IR_NONE : ir_memo(w, operand[i]);
        if (!d)
            continue;
        ir_ref t = chain(g, partial(g, n, i), d);
        sum = sum ? ir_op2(g, OP_ADD, sum, t) : t;
    }
    return is_zero(g, sum) ? IR_NONE : sum;
}

/* x(s)' = x'(s)*s'; the second rate of a past value is not kept and counts as 0 */
static ir_ref past_rate(ir *g, const ir_walk *w, ir_ref n, ir_ref from)
{
    ir_input in = *ir_input_of(g, n);
    ir_ref ds = in.arg && in.arg >= from ? ir_memo(w, in.arg) : IR_NONE;
    if (!ds || in.kind != IN_PAST_Q)
        return IR_NONE;
    in.kind = IN_PAST_V;
    return ir_op2(g, OP_MUL, ir_in(g, in), ds);
}

typedef ir_ref seed_fn(ir *g, ir_ref input, void *ud);

/* the pass; nodes older than `from` are known to be constant */
static void derive(ir *g, const ir_ref *roots, size_t n, ir_ref from, seed_fn *seed, void *ud, ir_ref *out)
{
    ir_walk *w = ir_walk_begin(g, roots, n, from, WALK_ALL);
    for (size_t i = 0; i < w->n; i++) {
        ir_ref at = w->order[i], d = IR_NONE;
        int op = ir_at(g, at)->op;
        if (op == IR_INPUT) {
            d = seed(g, at, ud);
            if (!d)
                d = past_rate(g, w, at, from);
            if (is_zero(g, d))
                d = IR_NONE;
        } else if (op != IR_CONST)
            d = operation_rate(g, w, at, from);
        ir_memo(w, at) = d;
    }
    for (size_t i = 0; i < n; i++) {
        ir_ref d = roots[i] < from || !roots[i] ? IR_NONE : ir_memo(w, roots[i]);
        out[i] = d ? d : ir_const(g, 0);
    }
    ir_walk_end(g, w);
}

static ir_ref seed_one(ir *g, ir_ref input, void *ud)
{
    return input == *(const ir_ref *)ud ? ir_const(g, 1) : IR_NONE;
}

void ir_derive_all(ir *g, const ir_ref *roots, size_t n, ir_ref input, ir_ref *out)
{
    derive(g, roots, n, input, seed_one, &input, out);
}

ir_ref ir_derive(ir *g, ir_ref root, ir_ref input)
{
    ir_ref d;
    ir_derive_all(g, &root, 1, input, &d);
    return d;
}

ir_ref ir_total(ir *g, ir_ref root, ir_ref (*seed)(ir *g, ir_ref input, void *ud), void *ud)
{
    ir_ref d;
    derive(g, &root, 1, IR_NONE, seed, ud, &d);
    return d;
}

static ir_ref seed_time(ir *g, ir_ref input, void *ud)
{
    (void)ud;
    ir_input in = *ir_input_of(g, input);
    switch (in.kind) {
    case IN_TIME:
        return ir_const(g, 1);
    case IN_Q:
        in.kind = IN_V;
        return ir_in(g, in);
    case IN_V:
        in.kind = IN_A;
        return ir_in(g, in);
    default:
        return IR_NONE;
    }
}

ir_ref ir_time_derivative(ir *g, ir_ref root)
{
    return ir_total(g, root, seed_time, NULL);
}

static ir_ref seed_space(ir *g, ir_ref input, void *ud)
{
    int c = *(const int *)ud;
    ir_input in = *ir_input_of(g, input);
    if (in.kind == IN_COORD)
        return in.at.base == c ? ir_const(g, 1) : IR_NONE;
    if (in.kind != IN_FIELD)
        return IR_NONE;
    in.at.stride[c]++;
    return ir_in(g, in);
}

ir_ref ir_space_derivative(ir *g, ir_ref root, int coordinate)
{
    return ir_total(g, root, seed_space, &coordinate);
}
