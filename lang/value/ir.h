/* ir: kernels as one hash-consed DAG of scalar operations.  Equal terms exist once; simplification is local
   and happens on construction. A node is an operation of opcodes.def, a constant, or an input.  An input says
   what is read (a dof, a rate, …) and where: an address that is affine in the indices of the family the
   kernel runs over.  Vectors are scalarised before they come here. */
#ifndef CDL_IR_H
#define CDL_IR_H
#include "base/arena.h"
#include "base/op.h"
#include "program/program.h" /* in_kind, MAX_INDEX */

typedef uint32_t ir_ref; /* a node; 0: no node */
#define IR_NONE 0u

typedef slot_map address; /* base + sum stride[k]*index[k] */

typedef struct ir_input {
    in_kind kind;
    address at; /* its meaning depends on the kind: see program.h */
    ir_ref arg; /* IN_PAST_*: the time it is read at; else IR_NONE */
} ir_input;

enum { IR_CONST = OP_COUNT, IR_INPUT };
typedef struct ir_node {
    uint8_t op;     /* op_code, IR_CONST or IR_INPUT */
    bool nonneg;    /* cannot be negative, whatever the inputs are */
    ir_ref a, b, c; /* operands; IR_INPUT: a is the number of the input */
    double k;       /* IR_CONST */
} ir_node;

typedef struct ir ir;
ir *ir_new(arena *a);

/* Builders.  Constants are folded, x+0, x*1, x*0, x-x, --x, x^2 -> sqr, select on a constant and the like are
   simplified; commutative operands are ordered, sums and products of a constant collect it.  No rule may
   change a finite value by more than rounding, and none divides by what may be 0. */
ir_ref ir_const(ir *g, double k);
ir_ref ir_in(ir *g, ir_input in);
ir_ref ir_op(ir *g, op_code op, ir_ref a, ir_ref b, ir_ref c); /* unused operands IR_NONE */
#define ir_op1(g, op, a)    ir_op((g), (op), (a), IR_NONE, IR_NONE)
#define ir_op2(g, op, a, b) ir_op((g), (op), (a), (b), IR_NONE)

const ir_node *ir_at(const ir *g, ir_ref n);
const ir_input *ir_input_of(const ir *g, ir_ref n); /* NULL when n is not an input */
bool ir_is_const(const ir *g, ir_ref n, double *k);
size_t ir_count(const ir *g); /* nodes, so refs are 1 .. count */

/* The inputs below the nodes, in the order of a depth-first walk (left to right), each once. */
size_t ir_inputs(const ir *g, arena *a, const ir_ref *roots, size_t n, ir_ref **out);
bool ir_depends(const ir *g, ir_ref root, bool (*on)(const ir_input *, void *), void *ud);

/* Replaces inputs (and nothing else): map(input) gives the new node or IR_NONE to keep it.  Memoised over one
   call. The time of a past value is below it: it is replaced first, and map sees the input with its new time.
 */
ir_ref ir_substitute(ir *g, ir_ref root, ir_ref (*map)(ir *g, ir_ref input, void *ud), void *ud);
void ir_substitute_all(ir *g, ir_ref *roots, size_t n, ir_ref (*map)(ir *g, ir_ref input, void *ud),
                       void *ud);

/* Value by direct walk, for constants, tests and compile time: input values through a callback. */
double ir_value(const ir *g, arena *scratch, ir_ref root, double (*in)(const ir_input *, void *), void *ud);

/* derive: d root / d input, one memoised pass for each input (or each set of seeds). */
ir_ref ir_derive(ir *g, ir_ref root, ir_ref input);
void ir_derive_all(ir *g, const ir_ref *roots, size_t n, ir_ref input, ir_ref *out);
/* Total derivative: seed(input) gives the derivative of an input (IR_NONE for 0).  Time: Q -> V, V -> A, t ->
   1, past values by the chain rule; space: u -> u_x, coordinates -> 1.  A past value that has no seed follows
   the chain rule through its time.  Inputs of the highest order kept (IN_A, IN_PAST_V) have no rate of their
   own: they count as constant, so call ir_depends where that matters. */
ir_ref ir_total(ir *g, ir_ref root, ir_ref (*seed)(ir *g, ir_ref input, void *ud), void *ud);
ir_ref ir_time_derivative(ir *g, ir_ref root);
ir_ref ir_space_derivative(ir *g, ir_ref root, int coordinate);

/* A formula in the language itself, with as few parentheses as precedence permits; it reads back as the same
   value, bit for bit (and as the same node, except for the place of a minus sign). name() prints an input.
   Shared terms are written out each time; beyond IR_PRINT_MAX terms the text is truncated with `…`. */
enum { IR_PRINT_MAX = 1 << 18 };
typedef void (*ir_namer)(text *out, const ir *g, const ir_input *in, void *ud);
void ir_print(text *out, const ir *g, ir_ref root, ir_namer name, void *ud);
/* The DAG below the roots, one line a node in a stable order: "%3 = mul %1 %2", "%1 = in NAME", "%2 = const
   4", then "out %3 …"; inputs through the namer, their times inside the name. */
void ir_dump(text *out, const ir *g, const ir_ref *roots, size_t n, ir_namer name, void *ud);
/* A hash of the DAG's shape and constants, independent of node numbers. */
uint64_t ir_hash(const ir *g, arena *scratch, ir_ref root, uint64_t h);

/* A walk: the nodes below the roots, each once, operands (from left to right) before what uses them.  Nodes
   numbered below `from` are left out: an operand is older than its user, so nothing there depends on
   `from`.  Each node has a word for a result, initially 0.  Walks may nest; end them in reverse. */
typedef struct ir_walk {
    ir_ref *order;
    size_t n;
    /* by node */
    struct ir_mark {
        uint32_t turn;
        ir_ref memo;
    } * mark;
    ir_ref *stack;
    size_t cap;
    uint32_t turn;
    struct ir_walk *next;
} ir_walk;
typedef enum { WALK_ALL, WALK_NO_TIMES } walk_kind; /* no times: not below the arguments of past values */
ir_walk *ir_walk_begin(const ir *g, const ir_ref *roots, size_t n, ir_ref from, walk_kind kind);
void ir_walk_end(const ir *g, ir_walk *w);
#define ir_memo(w, node) ((w)->mark[node].memo)
#endif
