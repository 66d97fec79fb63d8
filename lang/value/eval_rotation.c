/* eval_rotation: rotations in formulas.  A = R C(x) as in base/rotation.h: R the base (inputs of kind
   IN_BASE, constant for formulas), x the three degrees of freedom at its address.  Nodes are made one after
   the other, never as two arguments of one call: terms of a sum stand in the order in which their nodes were
   made, and compilers evaluate arguments in different orders. */
#include "eval.h"

static ir_ref add(ir *g, ir_ref a, ir_ref b)
{
    return ir_op2(g, OP_ADD, a, b);
}
static ir_ref sub(ir *g, ir_ref a, ir_ref b)
{
    return ir_op2(g, OP_SUB, a, b);
}
static ir_ref mul(ir *g, ir_ref a, ir_ref b)
{
    return ir_op2(g, OP_MUL, a, b);
}
static ir_ref scaled(ir *g, double k, ir_ref a)
{
    return mul(g, ir_const(g, k), a);
}

/* the three inputs of a kind at an address */
static void triple(ir *g, in_kind kind, address at, ir_ref to[3])
{
    for (int k = 0; k < 3; k++, at.base++)
        to[k] = ir_in(g, (ir_input){ .kind = kind, .at = at });
}

static ir_ref dot(ir *g, const ir_ref a[3], const ir_ref b[3])
{
    ir_ref term[3];
    for (int k = 2; k >= 0; k--)
        term[k] = mul(g, a[k], b[k]);
    return add(g, add(g, term[0], term[1]), term[2]);
}

static ir_ref cross(ir *g, const ir_ref a[3], const ir_ref b[3], int i)
{
    int j = (i + 1) % 3, k = (i + 2) % 3;
    ir_ref less = mul(g, a[k], b[j]);
    return sub(g, mul(g, a[j], b[k]), less);
}

/* 1/(1 + |x|^2/4) */
static ir_ref shrink(ir *g, const ir_ref x[3])
{
    ir_ref quarter = scaled(g, 0.25, dot(g, x, x)), one = ir_const(g, 1);
    return ir_op2(g, OP_DIV, one, add(g, one, quarter));
}

address rotation_base(address at)
{
    at.base *= 3;
    for (int k = 0; k < MAX_INDEX; k++)
        at.stride[k] *= 3;
    return at;
}

/* entry (i, j) of C(x)/shrink */
static ir_ref turned(ir *g, const ir_ref x[3], int i, int j)
{
    if (i == j) {
        ir_ref last = mul(g, x[(i + 2) % 3], x[(i + 2) % 3]);
        ir_ref rest = add(g, mul(g, x[(i + 1) % 3], x[(i + 1) % 3]), last);
        ir_ref quarter = scaled(g, 0.25, sub(g, mul(g, x[i], x[i]), rest));
        return add(g, ir_const(g, 1), quarter);
    }
    ir_ref other = x[3 - i - j];
    return ir_op2(g, (j - i + 3) % 3 == 1 ? OP_SUB : OP_ADD, scaled(g, 0.5, mul(g, x[i], x[j])), other);
}

static value rotation_matrix(evaluator *ev, address at)
{
    ir *g = ev->g;
    ir_ref x[3], s, R[9];
    address base = rotation_base(at);
    triple(g, IN_Q, at, x);
    s = shrink(g, x);
    for (int k = 0; k < 9; k++, base.base++)
        R[k] = ir_in(g, (ir_input){ .kind = IN_BASE, .at = base });
    value out = v_matrix(ev->a, 3, 3);
    for (int j = 0; j < 3; j++) {
        ir_ref column[3];
        for (int i = 0; i < 3; i++)
            column[i] = mul(g, s, turned(g, x, i, j));
        for (int i = 0; i < 3; i++) {
            value e = v_node(dot(g, R + 3 * i, column), dim_any());
            v_set(ev->a, &out, 3 * i + j, &e);
        }
    }
    return out;
}

/* s (y - cross(x, y)/2) */
static ir_ref body(ir *g, const ir_ref x[3], ir_ref s, const ir_ref y[3], int i)
{
    return mul(g, s, sub(g, y[i], scaled(g, 0.5, cross(g, x, y, i))));
}

static value rotation_rate(evaluator *ev, address at, int primes, dim unit)
{
    ir *g = ev->g;
    ir_ref x[3], v[3], a[3], s;
    triple(g, IN_Q, at, x);
    triple(g, IN_V, at, v);
    s = shrink(g, x);
    value out = v_vector(ev->a, 3);
    if (primes > 1)
        triple(g, IN_A, at, a);
    ir_ref along = dot(g, x, v), fall = mul(g, scaled(g, 0.5, s), along);
    for (int i = 0; i < 3; i++) {
        ir_ref f = body(g, x, s, v, i);
        if (primes > 1) {
            f = mul(g, fall, f);
            f = sub(g, body(g, x, s, a, i), f);
        }
        value e = v_node(f, unit);
        v_set(ev->a, &out, i, &e);
    }
    out.num.unit = unit;
    return out;
}

value eval_rotation(evaluator *ev, address at, int primes, dim unit)
{
    return primes ? rotation_rate(ev, at, primes, unit) : rotation_matrix(ev, at);
}

void rotation_moment(ir *g, address at, const ir_ref moment[3], ir_ref to[3])
{
    ir_ref x[3], s;
    triple(g, IN_Q, at, x);
    s = shrink(g, x);
    for (int i = 0; i < 3; i++)
        to[i] = mul(g, s, add(g, moment[i], scaled(g, 0.5, cross(g, x, moment, i))));
}

void rotation_rates_of(ir *g, address at, const ir_ref w[3], ir_ref to[3])
{
    ir_ref x[3];
    triple(g, IN_Q, at, x);
    for (int i = 0; i < 3; i++) {
        ir_ref along = scaled(g, 0.25, mul(g, x[i], dot(g, x, w)));
        to[i] = add(g, add(g, w[i], scaled(g, 0.5, cross(g, x, w, i))), along);
    }
}
