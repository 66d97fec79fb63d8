/* collect: expand (sums and products to monomials over what is neither) -> join (like terms, sin^2 + cos^2)
   -> build (common factors outside, fixed factors first).
   Small formulas only: beyond a bound of terms or factors the formula is not changed. */
#include <string.h>
#include "collect.h"

enum { MAX_TERMS = 48, MAX_FACTORS = 12, MAX_POWER = 16, MAX_DEPTH = 60, MAX_NODES = 2000 };

typedef struct {
    ir_ref atom;
    int power;
} factor;
/* factors in order: fixed ones first, then by number */
typedef struct {
    double k;
    int n;
    factor f[MAX_FACTORS];
} monomial;
typedef struct {
    int n;
    monomial at[MAX_TERMS];
} poly;

struct collector {
    ir *g;
    bool (*fixed)(void *ud, ir_ref n);
    void *ud;
    int depth;
    poly *room; /* two for each depth, and one */
};

/* ---- monomials ---- */
static bool atom_before(const collector *c, ir_ref x, ir_ref y)
{
    bool fx = c->fixed(c->ud, x), fy = c->fixed(c->ud, y);
    return fx != fy ? fx : x < y;
}

static bool monomial_times(const collector *c, monomial *m, ir_ref atom, int power)
{
    int i = 0;
    while (i < m->n && m->f[i].atom != atom && atom_before(c, m->f[i].atom, atom))
        i++;
    if (i < m->n && m->f[i].atom == atom)
        return (m->f[i].power += power) <= MAX_POWER;
    if (m->n == MAX_FACTORS)
        return false;
    memmove(&m->f[i + 1], &m->f[i], (size_t)(m->n - i) * sizeof *m->f);
    m->f[i] = (factor){ atom, power };
    m->n++;
    return true;
}

static bool same_factors(const monomial *x, const monomial *y)
{
    if (x->n != y->n)
        return false;
    for (int i = 0; i < x->n; i++)
        if (x->f[i].atom != y->f[i].atom || x->f[i].power != y->f[i].power)
            return false;
    return true;
}

/* ---- sums of them ---- */
static bool poly_add(poly *p, const monomial *m)
{
    for (int i = 0; i < p->n; i++) {
        if (!same_factors(&p->at[i], m))
            continue;
        p->at[i].k += m->k;
        if (p->at[i].k == 0) {
            memmove(&p->at[i], &p->at[i + 1], (size_t)(p->n - i - 1) * sizeof *p->at);
            p->n--;
        }
        return true;
    }
    if (p->n == MAX_TERMS)
        return false;
    p->at[p->n++] = *m;
    return true;
}

static bool poly_times(const collector *c, const poly *x, const poly *y, poly *out)
{
    out->n = 0;
    for (int i = 0; i < x->n; i++)
        for (int j = 0; j < y->n; j++) {
            monomial m = x->at[i];
            m.k *= y->at[j].k;
            for (int k = 0; k < y->at[j].n; k++)
                if (!monomial_times(c, &m, y->at[j].f[k].atom, y->at[j].f[k].power))
                    return false;
            if (!poly_add(out, &m))
                return false;
        }
    return true;
}

static void poly_scale(poly *p, double k)
{
    for (int i = 0; i < p->n; i++)
        p->at[i].k *= k;
}

/* ---- expand ---- */
static bool expand(collector *c, ir_ref r, poly *out);

static bool expand_sum(collector *c, ir_ref a, ir_ref b, double sign, poly *out)
{
    poly *y = &c->room[2 * c->depth];
    if (!expand(c, a, out) || !expand(c, b, y))
        return false;
    poly_scale(y, sign);
    for (int i = 0; i < y->n; i++)
        if (!poly_add(out, &y->at[i]))
            return false;
    return true;
}

static bool expand_product(collector *c, ir_ref a, ir_ref b, poly *out)
{
    poly *x = &c->room[2 * c->depth], *y = a == b ? x : x + 1;
    return expand(c, a, x) && (a == b || expand(c, b, y)) && poly_times(c, x, y, out);
}

static bool expand_atom(ir_ref r, poly *out)
{
    out->n = 1;
    out->at[0] = (monomial){ .k = 1, .n = 1, .f = { { r, 1 } } };
    return true;
}

static bool expand_node(collector *c, ir_ref r, poly *out)
{
    const ir_node x = *ir_at(c->g, r);
    double k;
    switch (x.op) {
    case IR_CONST:
        out->n = x.k != 0;
        out->at[0] = (monomial){ .k = x.k };
        return true;
    case OP_ADD:
        return expand_sum(c, x.a, x.b, 1, out);
    case OP_SUB:
        return expand_sum(c, x.a, x.b, -1, out);
    case OP_MUL:
        return expand_product(c, x.a, x.b, out);
    case OP_SQR:
        return expand_product(c, x.a, x.a, out);
    case OP_NEG:
        if (!expand(c, x.a, out))
            return false;
        poly_scale(out, -1);
        return true;
    case OP_DIV:
        if (ir_is_const(c->g, x.a, &k) && k == 1)
            return expand_atom(r, out);
        if (!ir_is_const(c->g, x.b, &k))
            return expand_product(c, x.a, ir_op2(c->g, OP_DIV, ir_const(c->g, 1), x.b), out);
        if (!expand(c, x.a, out))
            return false;
        poly_scale(out, 1 / k);
        return true;
    default:
        return expand_atom(r, out);
    }
}

static bool expand(collector *c, ir_ref r, poly *out)
{
    if (c->depth == MAX_DEPTH)
        return false;
    c->depth++;
    bool ok = expand_node(c, r, out);
    c->depth--;
    return ok;
}

/* ---- join ---- */
/* The atom cos(u) where f is sin(u)^2 or higher; IR_NONE otherwise. */
static ir_ref partner_of(collector *c, factor f)
{
    const ir_node x = *ir_at(c->g, f.atom);
    return x.op == OP_SIN && f.power >= 2 ? ir_op1(c->g, OP_COS, x.a) : IR_NONE;
}

static void factor_drop(monomial *m, int i, int power)
{
    if ((m->f[i].power -= power) > 0)
        return;
    memmove(&m->f[i], &m->f[i + 1], (size_t)(m->n - i - 1) * sizeof *m->f);
    m->n--;
}

/* k sin(u)^2 X + k cos(u)^2 X -> k X, for one pair; false: there is none. */
static bool join_squares(collector *c, poly *p)
{
    for (int i = 0; i < p->n; i++)
        for (int s = 0; s < p->at[i].n; s++) {
            ir_ref cosine = partner_of(c, p->at[i].f[s]);
            if (!cosine)
                continue;
            monomial rest = p->at[i], other;
            factor_drop(&rest, s, 2);
            other = rest;
            if (!monomial_times(c, &other, cosine, 2))
                continue;
            for (int j = 0; j < p->n; j++) {
                if (j == i || p->at[j].k != rest.k || !same_factors(&p->at[j], &other))
                    continue;
                int hi = i > j ? i : j, lo = i > j ? j : i;
                memmove(&p->at[hi], &p->at[hi + 1], (size_t)(p->n-- - hi - 1) * sizeof *p->at);
                memmove(&p->at[lo], &p->at[lo + 1], (size_t)(p->n-- - lo - 1) * sizeof *p->at);
                return poly_add(p, &rest);
            }
        }
    return false;
}

/* ---- build ---- */
static ir_ref build_product(collector *c, ir_ref to, const monomial *m)
{
    for (int i = 0; i < m->n; i++) {
        ir_ref f = ir_op2(c->g, OP_POW, m->f[i].atom, ir_const(c->g, m->f[i].power));
        to = to ? ir_op2(c->g, OP_MUL, to, f) : f;
    }
    return to;
}

/* Factors that all terms share. */
static monomial common_of(const poly *p)
{
    monomial m = p->at[0];
    m.k = 1;
    for (int i = 0; i < m.n; i++)
        for (int j = 1; j < p->n; j++) {
            int power = 0;
            for (int k = 0; k < p->at[j].n; k++)
                if (p->at[j].f[k].atom == m.f[i].atom)
                    power = p->at[j].f[k].power;
            if (power < m.f[i].power)
                m.f[i].power = power;
        }
    for (int i = m.n; i-- > 0;)
        if (m.f[i].power == 0)
            factor_drop(&m, i, 0);
    return m;
}

static void take_common(poly *p, const monomial *m)
{
    for (int j = 0; j < p->n; j++)
        for (int i = 0; i < m->n; i++)
            for (int k = p->at[j].n; k-- > 0;)
                if (p->at[j].f[k].atom == m->f[i].atom)
                    factor_drop(&p->at[j], k, m->f[i].power);
}

static ir_ref build(collector *c, poly *p)
{
    ir_ref sum = ir_const(c->g, 0);
    if (p->n == 0)
        return sum;
    monomial common = p->n > 1 ? common_of(p) : (monomial){ 0 };
    take_common(p, &common);
    for (int j = 0; j < p->n; j++) {
        ir_ref term = build_product(c, IR_NONE, &p->at[j]);
        ir_ref k = ir_const(c->g, p->at[j].k);
        sum = ir_op2(c->g, OP_ADD, sum, term ? ir_op2(c->g, OP_MUL, k, term) : k);
    }
    ir_ref outside = build_product(c, IR_NONE, &common);
    return outside ? ir_op2(c->g, OP_MUL, outside, sum) : sum;
}

/* ---- the whole ---- */
/* Operations below a node that a step would run. */
static size_t cost(const collector *c, ir_ref f)
{
    size_t n = 0;
    ir_walk *w = ir_walk_begin(c->g, &f, 1, IR_NONE, WALK_NO_TIMES);
    for (size_t i = 0; i < w->n; i++)
        n += ir_at(c->g, w->order[i])->op < OP_COUNT && !c->fixed(c->ud, w->order[i]);
    ir_walk_end(c->g, w);
    return n;
}

collector *collector_new(arena *a, ir *g, bool (*fixed)(void *ud, ir_ref n), void *ud)
{
    collector *c = arena_make(a, collector);
    *c = (collector){
        .g = g, .fixed = fixed, .ud = ud, .room = arena_alloc(a, (2 * MAX_DEPTH + 3) * sizeof(poly))
    };
    return c;
}

ir_ref collect(collector *c, ir_ref f)
{
    if (ir_at(c->g, f)->op >= OP_COUNT)
        return f;
    size_t before = cost(c, f);
    poly *p = &c->room[0];
    c->depth = 0;
    if (before > MAX_NODES || !expand(c, f, p))
        return f;
    while (join_squares(c, p))
        ;
    ir_ref to = build(c, p);
    return cost(c, to) > before ? f : to;
}
