/* ir: the DAG. Nodes are in one array and are found through a hash table; refs are creation numbers, so an
   operand is always older than its user and nothing (order of operands, walks, dumps) depends on addresses.

   Simplification is algebra over the reals: x*0, 0/x and x - x become 0, although they are not where x is inf
   or nan; otherwise no rule changes a finite value beyond rounding, or the set of points where a term is
   defined.  x/x and sqr(sqrt(x)) stay for that reason (the latter unless x cannot be negative). Normal form:
   a constant factor stands in front (k*x, or x/k where 1/k is not exact), a constant term behind (x + k),
   signs outside; a sum has no term that begins with a minus where a difference can be written; operands of
   commutative operations are ordered by age. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "base/whole.h"
#include "ir.h"
#include "base/tolerances.h"

enum { LINE = 8 };                    /* entries of the table in a line of the cache */
enum { OP_WORK = 16, WALK_WORK = 8 }; /* nanoseconds, for the budget */
/* behind a pointer, so that reading a const DAG can walk it */
typedef struct {
    ir_walk *free;
} walks;

struct ir {
    arena *a;
    /* node[0] is not used: nodes are 1 .. n */
    ir_node *node;
    size_t n, cap;
    ir_input *in;
    size_t nin, cap_in;
    /* hash << 32 | ref; 0 is empty; in lines of LINE */
    uint64_t *table;
    size_t mask;
    ir_walk first; /* grows with the nodes, so a const DAG need not allocate */
    walks *walks;
};

/* ---- nodes ---- */

/* grows p from old to n items; new items are not cleared, so pages are first accessed when they are used
 */
static void *regrow(arena *a, void *p, size_t old, size_t n, size_t size)
{
    if (n > SIZE_MAX / 2 / size)
        arena_alloc(a, SIZE_MAX); /* jumps */
    return old ? arena_grow(a, p, old * size, n * size) : arena_alloc(a, n * size);
}

/* room for cap nodes; walks that are not in progress have nothing to keep */
static void walk_fit(arena *a, ir_walk *w, size_t cap)
{
    size_t keep = w->n ? w->cap : 0;
    w->mark = regrow(a, w->mark, keep, cap, sizeof *w->mark);
    memset(w->mark + keep, 0, (cap - keep) * sizeof *w->mark);
    w->order = regrow(a, w->order, w->n, cap, sizeof *w->order);
    w->stack = regrow(a, w->stack, 0, cap, sizeof *w->stack);
    w->cap = cap;
}

static void nodes_grow(ir *g)
{
    if (g->cap > UINT32_MAX / 4)
        arena_alloc(g->a, SIZE_MAX); /* refs are 32 bits */
    size_t cap = g->cap ? 2 * g->cap : 256;
    g->node = regrow(g->a, g->node, g->cap, cap, sizeof *g->node);
    walk_fit(g->a, &g->first, cap);
    g->cap = cap;
}

static uint64_t bits_of(double k)
{
    uint64_t u;
    memcpy(&u, &k, sizeof u);
    return u;
}

static inline uint32_t hash_words(uint64_t x, uint64_t y)
{
    uint64_t h = (x ^ x >> 32) * 0x9E3779B97F4A7C15u;
    h = ((h ^ h >> 29) + y) * 0xD6E8FEB86659FD93u;
    return (uint32_t)(h >> 32 ^ h >> 11);
}

static bool input_equal(const ir_input *x, const ir_input *y)
{
    return x->kind == y->kind && x->arg == y->arg && x->at.base == y->at.base &&
           !memcmp(x->at.stride, y->at.stride, sizeof x->at.stride);
}

static uint32_t input_hash(const ir_input *in)
{
    uint64_t h = hash_words((uint64_t)in->kind << 32 | in->arg, (uint32_t)in->at.base);
    for (int i = 0; i < MAX_INDEX; i++)
        h = hash_words(h, (uint32_t)in->at.stride[i]);
    return (uint32_t)h;
}

/* what cannot be negative, from the operands alone */
static bool node_nonneg(const ir *g, const ir_node *n)
{
    bool a = g->node[n->a].nonneg, b = g->node[n->b].nonneg, c = g->node[n->c].nonneg;
    switch (n->op) {
    case OP_SQR:
    case OP_SQRT:
    case OP_EXP:
    case OP_COSH:
    case OP_ABS:
    case OP_ACOS:
        return true;
    case OP_ADD:
    case OP_MUL:
    case OP_DIV:
    case OP_MIN:
        return a && b;
    case OP_MAX:
        return a || b;
    case OP_POW:
        return a;
    case OP_SELECT:
        return b && c;
    case IR_CONST:
        return n->k >= 0;
    default:
        return op_decides(n->op);
    }
}

static uint32_t node_hash(const ir_node *n, const ir_input *in)
{
    if (n->op == IR_INPUT)
        return input_hash(in);
    if (n->op == IR_CONST)
        return hash_words(bits_of(n->k), IR_CONST);
    return hash_words((uint64_t)n->a << 32 | n->b, (uint64_t)n->c << 8 | n->op);
}

static bool node_equal(const ir *g, const ir_node *n, const ir_input *in, const ir_node *m)
{
    if (m->op != n->op)
        return false;
    if (in)
        return input_equal(in, &g->in[m->a]);
    return m->a == n->a && m->b == n->b && m->c == n->c && bits_of(m->k) == bits_of(n->k);
}

/* The first line searched for a node depends on its youngest operand: nodes built together are stored
   together, which helps the cache. If this line is full (many users of one node), the search continues from
   line to line by the hash. */
static size_t home_line(const ir_node *n, uint32_t hash)
{
    if (n->op >= OP_COUNT)
        return hash;
    ir_ref young = n->a > n->b ? n->a : n->b;
    return ((n->c > young ? n->c : young) >> 2) + (hash & 3);
}

/* the entry of the node, or the empty one where it belongs */
static size_t table_find(const ir *g, const ir_node *n, const ir_input *in, uint32_t hash)
{
    for (size_t line = home_line(n, hash);; line += hash | 1)
        for (size_t i = 0, at = line * LINE & g->mask; i < LINE; i++, at++) {
            uint64_t e = g->table[at];
            if (!e || (e >> 32 == hash && node_equal(g, n, in, &g->node[(ir_ref)e])))
                return at;
        }
}

static void table_grow(ir *g)
{
    size_t size = g->table ? 2 * (g->mask + 1) : 512;
    g->table = arena_array(g->a, uint64_t, size);
    g->mask = size - 1;
    for (size_t r = 1; r <= g->n; r++) {
        const ir_input *in = ir_input_of(g, (ir_ref)r);
        uint32_t hash = node_hash(&g->node[r], in);
        g->table[table_find(g, &g->node[r], in, hash)] = (uint64_t)hash << 32 | r;
    }
}

/* the node, which exists once; `in` is the input where n is one */
static ir_ref intern(ir *g, ir_node n, const ir_input *in)
{
    uint32_t hash = node_hash(&n, in);
    size_t at = table_find(g, &n, in, hash);
    if (g->table[at])
        return (ir_ref)g->table[at];
    if (in) {
        vec_room_(g->a, (void **)&g->in, g->nin + 1, &g->cap_in, sizeof *g->in);
        g->in[g->nin] = *in;
        n.a = (ir_ref)g->nin++;
    } else
        n.nonneg = node_nonneg(g, &n);
    if (g->n + 1 == g->cap)
        nodes_grow(g);
    ir_ref r = (ir_ref)++g->n;
    g->node[r] = n;
    g->table[at] = (uint64_t)hash << 32 | r;
    if (2 * g->n > g->mask)
        table_grow(g);
    return r;
}

ir *ir_new(arena *a)
{
    ir *g = arena_make(a, ir);
    g->a = a;
    g->walks = arena_make(a, walks);
    g->walks->free = &g->first;
    nodes_grow(g);
    g->node[0] = (ir_node){ 0 };
    table_grow(g);
    return g;
}

ir_ref ir_const(ir *g, double k)
{
    if (k == 0)
        k = 0; /* one zero */
    return intern(g, (ir_node){ .op = IR_CONST, .k = k }, NULL);
}

ir_ref ir_in(ir *g, ir_input in)
{
    return intern(g, (ir_node){ .op = IR_INPUT }, &in);
}

static ir_ref make(ir *g, op_code op, ir_ref a, ir_ref b, ir_ref c)
{
    return intern(g, (ir_node){ .op = (uint8_t)op, .a = a, .b = b, .c = c }, NULL);
}
#define make1(g, op, a)    make((g), (op), (a), IR_NONE, IR_NONE)
#define make2(g, op, a, b) make((g), (op), (a), (b), IR_NONE)

static ir_ref make_commutative(ir *g, op_code op, ir_ref a, ir_ref b)
{
    return a < b ? make2(g, op, a, b) : make2(g, op, b, a);
}

const ir_node *ir_at(const ir *g, ir_ref n)
{
    return &g->node[n];
}
const ir_input *ir_input_of(const ir *g, ir_ref n)
{
    return g->node[n].op == IR_INPUT ? &g->in[g->node[n].a] : NULL;
}
size_t ir_count(const ir *g)
{
    return g->n;
}

bool ir_is_const(const ir *g, ir_ref n, double *k)
{
    if (g->node[n].op != IR_CONST)
        return false;
    if (k)
        *k = g->node[n].k;
    return true;
}

/* ---- simplification ---- */

static inline bool is(const ir *g, ir_ref n, int op)
{
    return g->node[n].op == op;
}
static inline bool is_const(const ir *g, ir_ref n)
{
    return is(g, n, IR_CONST);
}
static inline bool is_value(const ir *g, ir_ref n, double k)
{
    return is_const(g, n) && g->node[n].k == k;
}
static bool is_finite(const ir *g, ir_ref n)
{
    return is_const(g, n) && isfinite(g->node[n].k);
}

static bool is_truth(const ir *g, ir_ref n)
{
    return op_decides(g->node[n].op) || is_value(g, n, 0) || is_value(g, n, 1);
}

/* constants that may be moved and multiplied without overflow or loss of digits */
static bool harmless(double k)
{
    return fabs(k) > FOLDED_LEAST && fabs(k) < 1e200;
}

static bool inverse_exact(double k)
{
    int e;
    return fabs(frexp(k, &e)) == 0.5;
}

/* n = num/den*rest, with the constant factor separated */
typedef struct {
    double num, den;
    ir_ref rest;
} scaled;

static scaled split(ir *g, ir_ref n)
{
    ir_node x = g->node[n];
    if (x.op == OP_NEG)
        return (scaled){ -1, 1, x.a };
    if (x.op == OP_MUL && is_const(g, x.a) && harmless(g->node[x.a].k))
        return (scaled){ g->node[x.a].k, 1, x.b };
    if (x.op == OP_DIV && is_const(g, x.b) && harmless(g->node[x.b].k))
        return (scaled){ 1, g->node[x.b].k, x.a };
    if (x.op == OP_DIV && is_const(g, x.a) && harmless(g->node[x.a].k) && !is_value(g, x.a, 1))
        return (scaled){ g->node[x.a].k, 1, make2(g, OP_DIV, ir_const(g, 1), x.b) };
    return (scaled){ 1, 1, n };
}

/* num/den*rest in normal form; both factors harmless */
static ir_ref scale(ir *g, double num, double den, ir_ref rest)
{
    ir_node x = g->node[rest];
    if (x.op == IR_CONST)
        return ir_const(g, num / den * x.k);
    if (x.op == OP_SUB && num * den < 0) { /* -(a - b) -> b - a */
        rest = ir_op2(g, OP_SUB, x.b, x.a);
        num = -num;
    }
    if (inverse_exact(den) || fabs(num) != 1) {
        num /= den;
        den = 1;
    }
    if (den != 1)
        return make2(g, OP_DIV, rest, ir_const(g, num * den));
    if (num == 1)
        return rest;
    if (x.op == OP_DIV && is_value(g, x.a, 1))
        return make2(g, OP_DIV, ir_const(g, num), x.b);
    if (num == -1)
        return make1(g, OP_NEG, rest);
    return make2(g, OP_MUL, ir_const(g, num), rest);
}

/* num/den*n, where n may have a factor of its own; IR_NONE when the factors do not go together */
static ir_ref rescale(ir *g, double num, double den, ir_ref n)
{
    scaled s = split(g, n);
    num *= s.num;
    den *= s.den;
    return harmless(num) && harmless(den) && harmless(num / den) ? scale(g, num, den, s.rest) : IR_NONE;
}

/* terms that begin with a minus */
static bool is_minus(const ir *g, ir_ref n)
{
    const ir_node *x = &g->node[n];
    if (x->op == OP_NEG)
        return true;
    if (x->op == OP_MUL)
        return is_const(g, x->a) && g->node[x->a].k < 0 && harmless(g->node[x->a].k);
    if (x->op != OP_DIV)
        return false;
    ir_ref k = is_const(g, x->a) ? x->a : x->b;
    return is_const(g, k) && g->node[k].k < 0 && harmless(g->node[k].k);
}

static ir_ref simplify_neg(ir *g, ir_ref a)
{
    ir_ref r = rescale(g, -1, 1, a);
    return r ? r : make1(g, OP_NEG, a);
}

static bool is_inverse(const ir *g, ir_ref n)
{
    return is(g, n, OP_DIV) && is_value(g, g->node[n].a, 1);
}

/* a product of two terms without factors: x*x -> sqr(x), x*(1/y) -> x/y */
static ir_ref product(ir *g, ir_ref a, ir_ref b)
{
    if (a == b)
        return ir_op1(g, OP_SQR, a);
    if (is_inverse(g, a) != is_inverse(g, b)) {
        if (is_inverse(g, a)) {
            ir_ref x = a;
            a = b;
            b = x;
        }
        return ir_op2(g, OP_DIV, a, g->node[b].b);
    }
    return make_commutative(g, OP_MUL, a, b);
}

static ir_ref simplify_mul(ir *g, ir_ref a, ir_ref b)
{
    if (is_const(g, b)) {
        ir_ref x = a;
        a = b;
        b = x;
    }
    if (is_value(g, a, 0))
        return a;
    if (is_value(g, a, 1))
        return b;
    ir_ref r = IR_NONE;
    if (is_const(g, a)) {
        r = rescale(g, g->node[a].k, 1, b);
        return r ? r : make2(g, OP_MUL, a, b);
    }
    scaled x = split(g, a), y = split(g, b);
    if (x.rest == a && y.rest == b)
        return product(g, a, b);
    if (harmless(x.num * y.num) && harmless(x.den * y.den))
        r = rescale(g, x.num * y.num, x.den * y.den, product(g, x.rest, y.rest));
    return r ? r : make_commutative(g, OP_MUL, a, b);
}

static ir_ref simplify_div(ir *g, ir_ref a, ir_ref b)
{
    if (is_value(g, b, 1))
        return a;
    if (is_const(g, b)) {
        ir_ref r = harmless(g->node[b].k) ? rescale(g, 1, g->node[b].k, a) : IR_NONE;
        return r ? r : make2(g, OP_DIV, a, b);
    }
    if (is_value(g, a, 0))
        return a;
    scaled y = split(g, b);
    if (is_const(g, a)) {
        double k = g->node[a].k * y.den / y.num;
        bool moved = y.rest != b && harmless(g->node[a].k) && harmless(k);
        return moved ? make2(g, OP_DIV, ir_const(g, k), y.rest) : make2(g, OP_DIV, a, b);
    }
    scaled x = split(g, a);
    double num = x.num * y.den, den = x.den * y.num;
    bool moved = (x.rest != a || y.rest != b) && harmless(num) && harmless(den) && harmless(num / den);
    return moved ? scale(g, num, den, make2(g, OP_DIV, x.rest, y.rest)) : make2(g, OP_DIV, a, b);
}

static ir_ref simplify_sqr(ir *g, ir_ref a)
{
    ir_node x = g->node[a];
    if (x.op == OP_ABS)
        return ir_op1(g, OP_SQR, x.a);
    if (x.op == OP_SQRT && g->node[x.a].nonneg)
        return x.a; /* norm(v)^2 is smooth at 0 again */
    scaled s = split(g, a);
    ir_ref r = IR_NONE;
    double num = s.num * s.num, den = s.den * s.den;
    if (s.rest != a && harmless(num) && harmless(den))
        r = rescale(g, num, den, ir_op1(g, OP_SQR, s.rest));
    return r ? r : make1(g, OP_SQR, a);
}

/* n = rest + k */
typedef struct {
    ir_ref rest;
    double k;
} offset;
static offset offset_of(const ir *g, ir_ref n)
{
    const ir_node *x = &g->node[n];
    return x->op == OP_ADD && is_finite(g, x->b) ? (offset){ x->a, g->node[x->b].k } : (offset){ n, 0 };
}

/* one of the two conditions holds, never both */
static bool complementary(const ir *g, ir_ref c, ir_ref d)
{
    ir_node x = g->node[c], y = g->node[d];
    if (x.op == OP_NOT && x.a == d)
        return true;
    if (y.op == OP_NOT && y.a == c)
        return true;
    if (x.a != y.a || x.b != y.b)
        return false;
    static const struct {
        op_code p, q;
    } pair[] = { { OP_LT, OP_GE }, { OP_LE, OP_GT }, { OP_EQ, OP_NE } };
    for (int i = 0; i < 3; i++)
        if ((x.op == pair[i].p && y.op == pair[i].q) || (x.op == pair[i].q && y.op == pair[i].p))
            return true;
    return false;
}

/* (if c then a else 0) ± (if c then 0 else b), in all ways to write it, is one choice */
static ir_ref merge_selects(ir *g, op_code op, ir_ref a, ir_ref b)
{
    if (!is(g, a, OP_SELECT) || !is(g, b, OP_SELECT))
        return IR_NONE;
    ir_node x = g->node[a], y = g->node[b];
    if (x.a != y.a) {
        if (!complementary(g, x.a, y.a))
            return IR_NONE;
        ir_ref t = y.b;
        y.b = y.c;
        y.c = t;
    }
    if (!(is_value(g, x.b, 0) || is_value(g, y.b, 0)) || !(is_value(g, x.c, 0) || is_value(g, y.c, 0)))
        return IR_NONE;
    ir_ref yes = ir_op2(g, op, x.b, y.b), no = ir_op2(g, op, x.c, y.c);
    return ir_op(g, OP_SELECT, x.a, yes, no);
}

/* j*x + k*x -> (j + k)*x, sign: of the second */
static ir_ref like_terms(ir *g, ir_ref a, ir_ref b, double sign)
{
    scaled x = split(g, a), y = split(g, b);
    if (x.rest != y.rest)
        return IR_NONE;
    bool same = x.den == y.den;
    double num = same ? x.num + sign * y.num : x.num / x.den + sign * y.num / y.den, den = same ? x.den : 1;
    if (num == 0)
        return ir_const(g, 0);
    return harmless(num) ? rescale(g, num, den, x.rest) : IR_NONE;
}

static ir_ref add_const(ir *g, ir_ref a, double k)
{
    if (k == 0)
        return a;
    ir_node x = g->node[a];
    offset o = offset_of(g, a);
    if (!isfinite(k))
        return make2(g, OP_ADD, a, ir_const(g, k));
    if (o.rest != a)
        return o.k + k == 0 ? o.rest : make2(g, OP_ADD, o.rest, ir_const(g, o.k + k));
    if (x.op == OP_SUB && is_finite(g, x.a))
        return ir_op2(g, OP_SUB, ir_const(g, g->node[x.a].k + k), x.b);
    if (is_minus(g, a))
        return ir_op2(g, OP_SUB, ir_const(g, k), simplify_neg(g, a));
    return make2(g, OP_ADD, a, ir_const(g, k));
}

static ir_ref simplify_add(ir *g, ir_ref a, ir_ref b)
{
    if (is_const(g, a))
        return add_const(g, b, g->node[a].k);
    if (is_const(g, b))
        return add_const(g, a, g->node[b].k);
    ir_ref r = like_terms(g, a, b, 1);
    if (r)
        return r;
    if (is_minus(g, b))
        return ir_op2(g, OP_SUB, a, simplify_neg(g, b));
    if (is_minus(g, a))
        return ir_op2(g, OP_SUB, b, simplify_neg(g, a));
    offset x = offset_of(g, a), y = offset_of(g, b);
    if (x.rest != a && y.rest != b)
        return add_const(g, ir_op2(g, OP_ADD, x.rest, y.rest), x.k + y.k);
    if ((r = merge_selects(g, OP_ADD, a, b)))
        return r;
    return make_commutative(g, OP_ADD, a, b);
}

/* k - b */
static ir_ref sub_from_const(ir *g, ir_ref a, ir_ref b)
{
    double k = g->node[a].k;
    if (k == 0)
        return simplify_neg(g, b);
    ir_node x = g->node[b];
    offset o = offset_of(g, b);
    if (isfinite(k) && o.rest != b)
        return ir_op2(g, OP_SUB, ir_const(g, k - o.k), o.rest);
    if (isfinite(k) && x.op == OP_SUB && is_finite(g, x.a))
        return add_const(g, x.b, k - g->node[x.a].k);
    return make2(g, OP_SUB, a, b);
}

static ir_ref simplify_sub(ir *g, ir_ref a, ir_ref b)
{
    if (a == b)
        return ir_const(g, 0);
    if (is_const(g, b))
        return add_const(g, a, -g->node[b].k);
    if (is_minus(g, b))
        return ir_op2(g, OP_ADD, a, simplify_neg(g, b));
    if (is_const(g, a))
        return sub_from_const(g, a, b);
    ir_ref r = like_terms(g, a, b, -1);
    if (r)
        return r;
    if (is(g, a, OP_NEG))
        return simplify_neg(g, ir_op2(g, OP_ADD, g->node[a].a, b));
    offset x = offset_of(g, a), y = offset_of(g, b);
    if (x.rest != a && y.rest != b)
        return add_const(g, ir_op2(g, OP_SUB, x.rest, y.rest), x.k - y.k);
    if ((r = merge_selects(g, OP_SUB, a, b)))
        return r;
    return make2(g, OP_SUB, a, b);
}

/* a^n by squaring, n >= 1; the printer recognises this form. */
static ir_ref power(ir *g, ir_ref a, int n)
{
    if (n == 1)
        return a;
    return n % 2 ? ir_op2(g, OP_MUL, a, power(g, a, n - 1)) : ir_op1(g, OP_SQR, power(g, a, n / 2));
}

static ir_ref simplify_pow(ir *g, ir_ref a, ir_ref b)
{
    if (is_value(g, a, 1))
        return a;
    if (!is_const(g, b))
        return make2(g, OP_POW, a, b);
    double k = g->node[b].k;
    if (k == 0)
        return ir_const(g, 1);
    if (k == trunc(k) && fabs(k) <= 16) {
        ir_ref p = power(g, a, (int)whole_clamp(fabs(k), 1, 16));
        return k > 0 ? p : ir_op2(g, OP_DIV, ir_const(g, 1), p);
    }
    if (fabs(k) == 0.5) {
        ir_ref p = ir_op1(g, OP_SQRT, a);
        return k > 0 ? p : ir_op2(g, OP_DIV, ir_const(g, 1), p);
    }
    return make2(g, OP_POW, a, b);
}

static ir_ref simplify_abs(ir *g, ir_ref a)
{
    if (g->node[a].nonneg)
        return a;
    scaled s = split(g, a);
    ir_ref r = s.rest != a ? rescale(g, fabs(s.num), fabs(s.den), ir_op1(g, OP_ABS, s.rest)) : IR_NONE;
    return r ? r : make1(g, OP_ABS, a);
}

static ir_ref truth(ir *g, ir_ref a)
{
    return is_truth(g, a) ? a : make2(g, OP_NE, a, ir_const(g, 0));
}

static ir_ref simplify_compare(ir *g, op_code op, ir_ref a, ir_ref b)
{
    if (a == b)
        return ir_const(g, op == OP_LE || op == OP_GE || op == OP_EQ);
    if (op != OP_EQ && op != OP_NE)
        return make2(g, op, a, b);
    if (is_const(g, a) || (!is_const(g, b) && a > b)) {
        ir_ref x = a;
        a = b;
        b = x;
    }
    if (is_value(g, b, 0) && is_truth(g, a))
        return op == OP_NE ? a : ir_op1(g, OP_NOT, a);
    return make2(g, op, a, b);
}

static ir_ref simplify_logic(ir *g, op_code op, ir_ref a, ir_ref b)
{
    if (a == b)
        return truth(g, a);
    if (is_const(g, a)) {
        ir_ref x = a;
        a = b;
        b = x;
    }
    if (is_const(g, b)) {
        bool k = g->node[b].k != 0;
        return k == (op == OP_AND) ? truth(g, a) : ir_const(g, k);
    }
    if (complementary(g, a, b))
        return ir_const(g, op == OP_OR);
    return make_commutative(g, op, a, b);
}

static ir_ref simplify_not(ir *g, ir_ref a)
{
    ir_node x = g->node[a];
    if (x.op == OP_NOT)
        return truth(g, x.a);
    if (x.op == OP_EQ || x.op == OP_NE)
        return make2(g, x.op == OP_EQ ? OP_NE : OP_EQ, x.a, x.b);
    return make1(g, OP_NOT, a);
}

static ir_ref simplify_select(ir *g, ir_ref a, ir_ref b, ir_ref c)
{
    if (is_const(g, a))
        return g->node[a].k != 0 ? b : c;
    if (is(g, a, OP_NOT))
        return ir_op(g, OP_SELECT, g->node[a].a, c, b);
    /* a choice already made above */
    if (is(g, b, OP_SELECT) && g->node[b].a == a)
        b = g->node[b].b;
    if (is(g, c, OP_SELECT) && g->node[c].a == a)
        c = g->node[c].c;
    return b == c ? b : make(g, OP_SELECT, a, b, c);
}

static ir_ref fold(ir *g, op_code op, ir_ref a, ir_ref b, ir_ref c)
{
    double v = op_value(op, g->node[a].k, g->node[b].k, g->node[c].k);
    return isnan(v) ? make(g, op, a, b, c) : ir_const(g, v); /* log(-1) keeps its form for messages */
}

ir_ref ir_op(ir *g, op_code op, ir_ref a, ir_ref b, ir_ref c)
{
    arena_tick(g->a, OP_WORK);
    if (is_const(g, a) && (!b || is_const(g, b)) && (!c || is_const(g, c)))
        return fold(g, op, a, b, c);
    switch (op) {
    case OP_ADD:
        return simplify_add(g, a, b);
    case OP_SUB:
        return simplify_sub(g, a, b);
    case OP_MUL:
        return simplify_mul(g, a, b);
    case OP_DIV:
        return simplify_div(g, a, b);
    case OP_NEG:
        return simplify_neg(g, a);
    case OP_POW:
        return simplify_pow(g, a, b);
    case OP_SQR:
        return simplify_sqr(g, a);
    case OP_ABS:
        return simplify_abs(g, a);
    case OP_SQRT:
        return is(g, a, OP_SQR) ? ir_op1(g, OP_ABS, g->node[a].a) : make1(g, op, a);
    case OP_LOG:
        return is(g, a, OP_EXP) ? g->node[a].a : make1(g, op, a);
    /* odd, and even */
    case OP_SIN:
    case OP_TAN:
    case OP_ASIN:
    case OP_ATAN:
    case OP_SINH:
    case OP_TANH:
    case OP_ERF:
    case OP_SIGN:
        return is_minus(g, a) ? simplify_neg(g, ir_op1(g, op, simplify_neg(g, a))) : make1(g, op, a);
    case OP_COS:
    case OP_COSH:
        return make1(g, op, is_minus(g, a) ? simplify_neg(g, a) : a);
    case OP_MIN:
    case OP_MAX:
        return a == b ? a : make_commutative(g, op, a, b);
    case OP_AND:
    case OP_OR:
        return simplify_logic(g, op, a, b);
    case OP_NOT:
        return simplify_not(g, a);
    case OP_SELECT:
        return simplify_select(g, a, b, c);
    default:
        return op_compares(op) ? simplify_compare(g, op, a, b) : make(g, op, a, b, c);
    }
}

/* ---- walks ---- */

static ir_walk *walk_take(const ir *g)
{
    ir_walk *w = g->walks->free;
    if (!w)
        w = arena_make(g->a, ir_walk);
    else
        g->walks->free = w->next;
    if (w->cap < g->cap)
        walk_fit(g->a, w, g->cap);
    if (w->turn == UINT32_MAX) {
        memset(w->mark, 0, w->cap * sizeof *w->mark);
        w->turn = 0;
    }
    w->turn++;
    return w;
}

void ir_walk_end(const ir *g, ir_walk *w)
{
    w->n = 0;
    w->next = g->walks->free;
    g->walks->free = w;
}

/* operand number i of n, IR_NONE beyond the last */
static ir_ref operand(const ir *g, ir_ref n, uint32_t i, walk_kind kind)
{
    const ir_node *x = &g->node[n];
    if (x->op < OP_COUNT)
        return i == 0 ? x->a : i == 1 ? x->b : i == 2 ? x->c : IR_NONE;
    return x->op == IR_INPUT && i == 0 && kind == WALK_ALL ? g->in[x->a].arg : IR_NONE;
}

ir_walk *ir_walk_begin(const ir *g, const ir_ref *roots, size_t n, ir_ref from, walk_kind kind)
{
    ir_walk *w = walk_take(g);
    if (from == IR_NONE)
        from = 1;
    for (size_t i = 0; i < n; i++) {
        size_t top = 0;
        ir_ref next = roots[i];
        for (;;) {
            if (next >= from && w->mark[next].turn != w->turn) {
                w->mark[next] = (struct ir_mark){ w->turn, 0 };
                w->stack[top++] = next;
            }
            if (!top)
                break;
            /* the memo of an open node counts the operands seen */
            ir_ref open = w->stack[top - 1];
            next = operand(g, open, ir_memo(w, open)++, kind);
            if (next == IR_NONE) {
                ir_memo(w, open) = 0;
                w->order[w->n++] = open;
                top--;
            }
        }
    }
    arena_tick(g->a, WALK_WORK * (int64_t)w->n);
    return w;
}

size_t ir_inputs(const ir *g, arena *a, const ir_ref *roots, size_t n, ir_ref **out)
{
    ir_walk *w = ir_walk_begin(g, roots, n, IR_NONE, WALK_ALL);
    size_t count = 0;
    for (size_t i = 0; i < w->n; i++)
        count += is(g, w->order[i], IR_INPUT);
    ir_ref *at = *out = arena_array(a, ir_ref, count);
    for (size_t i = 0; i < w->n; i++)
        if (is(g, w->order[i], IR_INPUT))
            *at++ = w->order[i];
    ir_walk_end(g, w);
    return count;
}

bool ir_depends(const ir *g, ir_ref root, bool (*on)(const ir_input *, void *), void *ud)
{
    ir_walk *w = ir_walk_begin(g, &root, 1, IR_NONE, WALK_ALL);
    bool found = false;
    for (size_t i = 0; i < w->n && !found; i++)
        if (is(g, w->order[i], IR_INPUT))
            found = on(ir_input_of(g, w->order[i]), ud);
    ir_walk_end(g, w);
    return found;
}

static ir_ref input_replace(ir *g, ir_ref n, const ir_walk *w, ir_ref (*map)(ir *g, ir_ref input, void *ud),
                            void *ud)
{
    ir_input in = *ir_input_of(g, n);
    if (in.arg) {
        in.arg = ir_memo(w, in.arg);
        n = ir_in(g, in);
    }
    ir_ref r = map(g, n, ud);
    return r ? r : n;
}

void ir_substitute_all(ir *g, ir_ref *roots, size_t n, ir_ref (*map)(ir *g, ir_ref input, void *ud), void *ud)
{
    ir_walk *w = ir_walk_begin(g, roots, n, IR_NONE, WALK_ALL);
    for (size_t i = 0; i < w->n; i++) {
        ir_ref at = w->order[i], r = at;
        ir_node x = g->node[at];
        if (x.op == IR_INPUT)
            r = input_replace(g, at, w, map, ud);
        else if (x.op != IR_CONST) {
            /* a node without changed operands is itself */
            ir_ref a = ir_memo(w, x.a), b = x.b ? ir_memo(w, x.b) : IR_NONE,
                   c = x.c ? ir_memo(w, x.c) : IR_NONE;
            if (a != x.a || b != x.b || c != x.c)
                r = ir_op(g, (op_code)x.op, a, b, c);
        }
        ir_memo(w, at) = r;
    }
    for (size_t i = 0; i < n; i++)
        if (roots[i])
            roots[i] = ir_memo(w, roots[i]);
    ir_walk_end(g, w);
}

ir_ref ir_substitute(ir *g, ir_ref root, ir_ref (*map)(ir *g, ir_ref input, void *ud), void *ud)
{
    ir_substitute_all(g, &root, 1, map, ud);
    return root;
}

/* the callback answers for a past value as a whole, so its time is not walked */
double ir_value(const ir *g, arena *scratch, ir_ref root, double (*in)(const ir_input *, void *), void *ud)
{
    ir_walk *w = ir_walk_begin(g, &root, 1, IR_NONE, WALK_NO_TIMES);
    arena_pos mark = arena_mark(scratch);
    double *v = arena_array(scratch, double, w->n + 1), value = NAN;
    /* memo: where the value is; place 0 is for the operands that are not there */
    for (size_t i = 0; i < w->n; i++) {
        const ir_node *x = &g->node[w->order[i]];
        if (x->op == IR_CONST)
            value = x->k;
        else if (x->op == IR_INPUT)
            value = in ? in(&g->in[x->a], ud) : NAN;
        else {
            size_t a = ir_memo(w, x->a), b = x->b ? ir_memo(w, x->b) : 0, c = x->c ? ir_memo(w, x->c) : 0;
            value = op_value((op_code)x->op, v[a], v[b], v[c]);
        }
        v[i + 1] = value;
        ir_memo(w, w->order[i]) = (ir_ref)(i + 1);
    }
    arena_release(scratch, mark);
    ir_walk_end(g, w);
    return value;
}

static bool is_commutative(int op)
{
    return op == OP_ADD || op == OP_MUL || op == OP_MIN || op == OP_MAX || op == OP_EQ || op == OP_NE ||
           op == OP_AND || op == OP_OR;
}

static uint64_t shape_hash(const ir *g, const ir_walk *w, const uint64_t *h, const ir_node *x)
{
    uint64_t r = hash64(0, x->op);
    if (x->op == IR_CONST)
        return hash64(r, bits_of(x->k));
    if (x->op == IR_INPUT) {
        const ir_input *in = &g->in[x->a];
        r = hash64(hash64(r, in->kind), (uint32_t)in->at.base);
        for (int i = 0; i < MAX_INDEX; i++)
            r = hash64(r, (uint32_t)in->at.stride[i]);
        return in->arg ? hash64(r, h[ir_memo(w, in->arg)]) : r;
    }
    /* the age of operands does not affect the shape */
    uint64_t a = h[ir_memo(w, x->a)], b = x->b ? h[ir_memo(w, x->b)] : 0;
    bool swap = is_commutative(x->op) && a > b;
    r = hash64(hash64(r, swap ? b : a), swap ? a : b);
    return x->c ? hash64(r, h[ir_memo(w, x->c)]) : r;
}

uint64_t ir_hash(const ir *g, arena *scratch, ir_ref root, uint64_t h)
{
    ir_walk *w = ir_walk_begin(g, &root, 1, IR_NONE, WALK_ALL);
    arena_pos mark = arena_mark(scratch);
    uint64_t *v = arena_array(scratch, uint64_t, w->n);
    for (size_t i = 0; i < w->n; i++) {
        v[i] = shape_hash(g, w, v, &g->node[w->order[i]]);
        ir_memo(w, w->order[i]) = (ir_ref)i;
    }
    h = hash64(h, w->n ? v[w->n - 1] : 0);
    arena_release(scratch, mark);
    ir_walk_end(g, w);
    return h;
}
