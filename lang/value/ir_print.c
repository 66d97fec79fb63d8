/* ir_print: nodes as formulas of the language, and as a numbered list.  Formulas are written from a stack
   of pending pieces, so that their depth does not matter; each piece knows the precedence required at its
   place. */
#include <ctype.h>
#include <math.h>
#include "ir.h"

/* the precedences of the language, low to high */
enum { P_IF, P_OR, P_AND, P_NOT, P_COMPARE, P_RANGE, P_SUM, P_PRODUCT, P_UNARY, P_POWER, P_ATOM };

/* a word, a node that binds at least so, or a number */
typedef struct {
    const char *word;
    ir_ref node;
    double num;
    int least;
} piece;
typedef vec(piece) pieces;
typedef struct {
    text *out;
    const ir *g;
    ir_namer name;
    void *ud;
    pieces todo;
    long left;
} printer;

/* n = base^e as a constant integer power is built: even by squares, odd by one factor more.  At most so
   deep, thus e <= 16 */
static ir_ref power_of(const ir *g, ir_ref n, int deep, int *e)
{
    const ir_node *x = ir_at(g, n);
    *e = 1;
    if (x->op == OP_SQR && deep) {
        ir_ref base = power_of(g, x->a, deep - 1, e);
        *e *= 2;
        return base;
    }
    if (x->op != OP_MUL || !deep)
        return n;
    for (int i = 0; i < 2; i++) {
        ir_ref one = i ? x->b : x->a, rest = i ? x->a : x->b;
        if (ir_at(g, rest)->op == OP_SQR && power_of(g, rest, deep, e) == one && *e < 16)
            return ++*e, one;
    }
    *e = 1;
    return n;
}

static bool const_of(const ir *g, ir_ref n, double *k)
{
    return n && ir_is_const(g, n, k);
}

/* k as 1/2, 1/4 …: written as a division; 0 when it is none */
static double halves(double k)
{
    int e;
    return fabs(frexp(k, &e)) == 0.5 && e <= 0 && e > -10 ? 1 / fabs(k) : 0;
}

static int level(const ir *g, ir_ref n)
{
    const ir_node *x = ir_at(g, n);
    int e;
    switch (x->op) {
    case IR_CONST:
        return isnan(x->k) ? P_PRODUCT : x->k < 0 ? P_UNARY : P_ATOM;
    case OP_ADD:
    case OP_SUB:
        return P_SUM;
    case OP_MUL:
        return power_of(g, n, 4, &e) != n ? P_POWER : P_PRODUCT;
    case OP_DIV:
        return P_PRODUCT;
    case OP_NEG:
        return level(g, x->a) == P_PRODUCT ? P_PRODUCT : P_UNARY;
    case OP_POW:
    case OP_SQR:
        return P_POWER;
    case OP_AND:
        return P_AND;
    case OP_OR:
        return P_OR;
    case OP_NOT:
        return P_NOT;
    case OP_SELECT:
        return P_IF;
    default:
        return op_compares(x->op) ? P_COMPARE : P_ATOM;
    }
}

/* the piece pushed last is printed first */
static void push_node(printer *p, ir_ref n, int least)
{
    *vec_push(p->out->a, &p->todo) = (piece){ .node = n, .least = least };
}

static void push_word(printer *p, const char *word)
{
    *vec_push(p->out->a, &p->todo) = (piece){ .word = word };
}
static void push_num(printer *p, double k)
{
    *vec_push(p->out->a, &p->todo) = (piece){ .num = k };
}

static void push_binary(printer *p, ir_ref a, int left, const char *sign, ir_ref b, int right)
{
    push_node(p, b, right);
    push_word(p, sign);
    push_node(p, a, left);
}

/* commutative and read from the left: a chain goes left, where it needs no parentheses */
static void push_chain(printer *p, ir_ref a, const char *sign, ir_ref b, int at, int right)
{
    bool swap = level(p->g, b) == at && level(p->g, a) != at;
    push_binary(p, swap ? b : a, at, sign, swap ? a : b, right);
}

static void push_add(printer *p, ir_ref a, ir_ref b)
{
    double k;
    if (const_of(p->g, b, &k) && k < 0) {
        push_num(p, -k);
        push_word(p, " - ");
        push_node(p, a, P_SUM);
    } else
        push_chain(p, a, " + ", b, P_SUM, P_PRODUCT);
}

/* k*x*y for k*(x*y): reading it takes the constant out again */
static void push_mul(printer *p, ir_ref a, ir_ref b)
{
    double k, d;
    if (!const_of(p->g, a, &k)) {
        push_chain(p, a, "*", b, P_PRODUCT, P_POWER);
        return;
    }
    if ((d = halves(k))) {
        push_num(p, d);
        push_word(p, "/");
        push_node(p, b, P_PRODUCT);
    } else {
        push_node(p, b, P_PRODUCT);
        push_word(p, "*");
        push_num(p, fabs(k));
    }
    if (k < 0)
        push_word(p, "-");
}

static void push_div(printer *p, ir_ref a, ir_ref b)
{
    double k;
    if (const_of(p->g, b, &k) && k < 0) {
        push_num(p, -k);
        push_word(p, "/");
        push_node(p, a, P_PRODUCT);
        push_word(p, "-");
    } else
        push_binary(p, a, P_PRODUCT, "/", b, P_POWER);
}

static void push_call(printer *p, const ir_node *x)
{
    ir_ref arg[3] = { x->a, x->b, x->c };
    push_word(p, ")");
    for (int i = op_arity((op_code)x->op); i-- > 0;) {
        push_node(p, arg[i], P_IF);
        push_word(p, i ? ", " : "(");
    }
    push_word(p, op_name((op_code)x->op));
}

static void push_select(printer *p, const ir_node *x)
{
    push_node(p, x->c, P_IF);
    push_word(p, " else ");
    push_node(p, x->b, P_OR);
    push_word(p, " then ");
    push_node(p, x->a, P_OR);
    push_word(p, "if ");
}

static bool push_power(printer *p, ir_ref n)
{
    int e;
    ir_ref base = power_of(p->g, n, 4, &e);
    if (base == n)
        return false;
    push_num(p, e);
    push_word(p, "^");
    push_node(p, base, P_ATOM);
    return true;
}

static const char *const compare_sign[] = { " < ", " <= ", " > ", " >= ", " == ", " != " };

static void push_operation(printer *p, ir_ref n)
{
    const ir_node *x = ir_at(p->g, n);
    switch (x->op) {
    case OP_ADD:
        push_add(p, x->a, x->b);
        break;
    case OP_SUB:
        push_binary(p, x->a, P_SUM, " - ", x->b, P_PRODUCT);
        break;
    case OP_SQR:
        push_power(p, n);
        break;
    case OP_MUL:
        if (!push_power(p, n))
            push_mul(p, x->a, x->b);
        break;
    case OP_DIV:
        push_div(p, x->a, x->b);
        break;
    case OP_NEG:
        push_node(p, x->a, level(p->g, x->a) == P_PRODUCT ? P_PRODUCT : P_POWER);
        push_word(p, "-");
        break;
    case OP_POW:
        push_binary(p, x->a, P_ATOM, "^", x->b, P_POWER);
        break;
    case OP_AND:
        push_chain(p, x->a, " and ", x->b, P_AND, P_NOT);
        break;
    case OP_OR:
        push_chain(p, x->a, " or ", x->b, P_OR, P_AND);
        break;
    case OP_NOT:
        push_node(p, x->a, P_NOT);
        push_word(p, "not ");
        break;
    case OP_SELECT:
        push_select(p, x);
        break;
    default:
        if (op_compares(x->op))
            push_binary(p, x->a, P_SUM, compare_sign[x->op - OP_LT], x->b, P_SUM);
        else
            push_call(p, x);
    }
}

static void print_node(printer *p, piece at)
{
    const ir_node *x = ir_at(p->g, at.node);
    if (p->left-- <= 0) {
        text_puts(p->out, "…");
        return;
    }
    if (level(p->g, at.node) < at.least) {
        text_putc(p->out, '(');
        push_word(p, ")");
    }
    if (x->op == IR_INPUT)
        p->name(p->out, p->g, ir_input_of(p->g, at.node), p->ud);
    else if (x->op != IR_CONST)
        push_operation(p, at.node);
    else if (isnan(x->k))
        text_puts(p->out, "0/0");
    else
        text_num(p->out, x->k);
}

void ir_print(text *out, const ir *g, ir_ref root, ir_namer name, void *ud)
{
    printer p = { .out = out, .g = g, .name = name, .ud = ud, .left = IR_PRINT_MAX };
    push_node(&p, root, P_IF);
    while (p.todo.n) {
        piece at = p.todo.at[--p.todo.n];
        if (at.word)
            text_puts(out, at.word);
        else if (at.node)
            print_node(&p, at);
        else
            text_num(out, at.num);
    }
}

static const char *const ids[] = {
#define X(id, name, arity, value, deriv, unit, doc) #id,
#include "base/opcodes.def"
#undef X
};

static void dump_node(text *out, const ir *g, const ir_walk *w, ir_ref n, ir_namer name, void *ud)
{
    const ir_node *x = ir_at(g, n);
    text_printf(out, "%%%u = ", ir_memo(w, n));
    if (x->op == IR_CONST) {
        text_puts(out, "const ");
        text_num(out, x->k);
    } else if (x->op == IR_INPUT) {
        text_puts(out, "in ");
        name(out, g, ir_input_of(g, n), ud);
    } else {
        for (const char *c = ids[x->op]; *c; c++)
            text_putc(out, (char)tolower((unsigned char)*c));
        ir_ref operand[3] = { x->a, x->b, x->c };
        for (int i = 0; i < 3 && operand[i]; i++)
            text_printf(out, " %%%u", ir_memo(w, operand[i]));
    }
    text_putc(out, '\n');
}

void ir_dump(text *out, const ir *g, const ir_ref *roots, size_t n, ir_namer name, void *ud)
{
    ir_walk *w = ir_walk_begin(g, roots, n, IR_NONE, WALK_NO_TIMES);
    for (size_t i = 0; i < w->n; i++) {
        ir_memo(w, w->order[i]) = (ir_ref)(i + 1);
        dump_node(out, g, w, w->order[i], name, ud);
    }
    text_puts(out, "out");
    for (size_t i = 0; i < n; i++)
        text_printf(out, " %%%u", roots[i] ? ir_memo(w, roots[i]) : 0);
    text_putc(out, '\n');
    ir_walk_end(g, w);
}
