/* wellposed_data: is a model analytic?  its formulas are made of analytic operations, except those that
   choose a piece (abs, min, comparisons …) and those that have a singularity (roots, quotients …).  Where
   both meet, a piece has no power series at the place where it begins: found by going to the switch from a
   few points, by Newton's method, and looking at what vanishes. */
#include <math.h>
#include <string.h>
#include "model/elab.h"
#include "wellposed.h"
#include "base/tolerances.h"

/* f vanishes there */
typedef struct spot {
    ir_ref f;
    uint8_t op;
    bool steep;
} spot;
typedef vec(spot) spots;
typedef vec(ir_ref) refs;
typedef struct formula {
    posed *w;
    const index_names *over;
    span at;
    const ir_ref *root;
    size_t nroot;
    spots choice, bad;
} formula;

enum { STARTS = 6, NEWTON = 30, MAX_PAIRS = 400, MAX_VARIED = 64 };

/* ---- what an operation is singular or chosen by ---- */
static bool positive(const ir *g, ir_ref r)
{
    const ir_node *n = ir_at(g, r);
    switch (n->op) {
    case IR_CONST:
        return n->k > 0;
    case OP_EXP:
    case OP_COSH:
        return true;
    case OP_SQRT:
    case OP_SQR:
        return positive(g, n->a);
    case OP_ADD:
        return (positive(g, n->a) && (positive(g, n->b) || ir_at(g, n->b)->nonneg)) ||
               (positive(g, n->b) && ir_at(g, n->a)->nonneg);
    case OP_MUL:
    case OP_DIV:
        return positive(g, n->a) && positive(g, n->b);
    default:
        return false;
    }
}

static bool moving(const formula *x, ir_ref r)
{
    return r && depends_on(x->w->m->g, r, MOVING | BIT(IN_SPEED) | BIT(IN_BOUND));
}

static void spot_add(formula *x, spots *to, ir_ref f, uint8_t op, bool steep)
{
    if (!moving(x, f))
        return;
    for (size_t i = 0; i < to->n; i++)
        if (to->at[i].f == f && to->at[i].op == op)
            return;
    *vec_push(x->w->a, to) = (spot){ f, op, steep };
}

static ir_ref difference(ir *g, ir_ref a, ir_ref b)
{
    return ir_op2(g, OP_SUB, a, b);
}

static void power(formula *x, const ir_node *n)
{
    double k;
    bool fixed = ir_is_const(x->w->m->g, n->b, &k);
    if (fixed && k == floor(k) && k >= 0)
        return;
    if (!positive(x->w->m->g, n->a))
        spot_add(x, &x->bad, n->a, n->op, !(fixed && k >= 1));
}

static void node_look(formula *x, const ir_node *n)
{
    ir *g = x->w->m->g;
    switch (n->op) {
    case OP_ABS:
    case OP_SIGN:
        if (!ir_at(g, n->a)->nonneg)
            spot_add(x, &x->choice, n->a, n->op, false);
        break;
    case OP_MIN:
    case OP_MAX:
        spot_add(x, &x->choice, difference(g, n->a, n->b), n->op, false);
        break;
    case OP_FLOOR:
    case OP_CEIL:
        spot_add(x, &x->choice, n->a, n->op, false);
        break;
    case OP_MOD:
        spot_add(x, &x->choice, ir_op2(g, OP_DIV, n->a, n->b), n->op, false);
        break;
    case OP_SQRT:
        if (!positive(g, n->a))
            spot_add(x, &x->bad, n->a, n->op, true);
        break;
    case OP_LOG:
        if (!positive(g, n->a))
            spot_add(x, &x->bad, n->a, n->op, true);
        break;
    case OP_DIV:
        if (!positive(g, n->b))
            spot_add(x, &x->bad, n->b, n->op, false);
        break;
    case OP_POW:
        power(x, n);
        break;
    case OP_TAN:
        spot_add(x, &x->bad, ir_op1(g, OP_COS, n->a), n->op, false);
        break;
    case OP_ASIN:
    case OP_ACOS:
        spot_add(x, &x->bad, difference(g, ir_const(g, 1), ir_op1(g, OP_SQR, n->a)), n->op, true);
        break;
    case OP_ATAN2:
        spot_add(x, &x->bad, ir_op2(g, OP_ADD, ir_op1(g, OP_SQR, n->a), ir_op1(g, OP_SQR, n->b)), n->op,
                 true);
        break;
    default:
        if (op_compares(n->op))
            spot_add(x, &x->choice, difference(g, n->a, n->b), n->op, false);
    }
}

/* ---- going to a switch ---- */
typedef struct point {
    posed *w;
    const index_names *over;
    int32_t ix[MAX_INDEX];
    ir_ref *in;
    double *at, step[MAX_VARIED]; /* step: across the switch */
    size_t n;
} point;

static double point_input(const ir_input *in, void *ud)
{
    const point *p = ud;
    if (in->kind == IN_PARAM)
        return p->w->param[slot_at(&in->at, p->ix, p->over->n)];
    if (in->kind == IN_INDEX)
        return p->ix[in->at.base];
    for (size_t i = 0; i < p->n; i++) {
        const ir_input *x = ir_input_of(p->w->m->g, p->in[i]);
        if (x->kind == in->kind && x->arg == in->arg && !memcmp(&x->at, &in->at, sizeof in->at))
            return p->at[i];
    }
    return 0.3;
}

static double value_of(point *p, ir_ref f)
{
    arena_pos mark = arena_mark(p->w->a);
    double v = ir_value(p->w->m->g, p->w->a, f, point_input, p);
    arena_release(p->w->a, mark);
    return v;
}

/* numbers in (-1, 1), the same each time */
static double pseudo(uint64_t *seed)
{
    *seed = hash64(*seed, 0x9e3779b97f4a7c15u);
    return (double)(int64_t)(*seed >> 11) / 4503599627370496.0 - 1;
}

/* the shortest steps to f = 0; for floor and the like to the next whole number */
static bool go_to(point *p, const spot *s)
{
    double grad[MAX_VARIED], whole = 0;
    bool counts = s->op == OP_FLOOR || s->op == OP_CEIL || s->op == OP_MOD;
    if (counts)
        whole = floor(value_of(p, s->f));
    for (int it = 0; it < NEWTON; it++) {
        double f = value_of(p, s->f) - whole, g2 = 0, size = 0;
        if (!isfinite(f))
            return false;
        for (size_t i = 0; i < p->n; i++) {
            double x = p->at[i], d = DIFFERENCE_JOINT * (1 + fabs(x));
            p->at[i] = x + d;
            double up = value_of(p, s->f);
            p->at[i] = x - d;
            grad[i] = (up - value_of(p, s->f)) / (2 * d);
            p->at[i] = x;
            g2 += grad[i] * grad[i];
            size += fabs(grad[i] * x);
        }
        if (!(g2 > 0) || !isfinite(g2))
            return false;
        for (size_t i = 0; i < p->n; i++)
            p->step[i] = grad[i] / sqrt(g2);
        if (fabs(f) <= ROUND_2 * size || f == 0)
            return true;
        for (size_t i = 0; i < p->n; i++)
            p->at[i] -= f * grad[i] / g2;
    }
    return fabs(value_of(p, s->f) - whole) <= FACTOR_SAME;
}

/* Nodes below the roots that count: not below comparisons, whose operands only decide; at a point, of each
 * select the chosen branch. */
static refs nodes_below(formula *x, point *at)
{
    ir *g = x->w->m->g;
    refs todo = { 0 }, out = { 0 };
    bool *seen = arena_array(x->w->a, bool, ir_count(g) + 1);
    for (size_t i = 0; i < x->nroot; i++)
        *vec_push(x->w->a, &todo) = x->root[i];
    while (todo.n) {
        ir_ref r = todo.at[--todo.n];
        if (!r || seen[r])
            continue;
        seen[r] = true;
        *vec_push(x->w->a, &out) = r;
        const ir_node n = *ir_at(g, r);
        if (n.op == IR_INPUT) {
            *vec_push(x->w->a, &todo) = ir_input_of(g, r)->arg;
            continue;
        }
        if (n.op == IR_CONST || op_compares(n.op))
            continue;
        if (n.op == OP_SELECT && at) {
            *vec_push(x->w->a, &todo) = value_of(at, n.a) != 0 ? n.b : n.c;
            continue;
        }
        ir_ref below[] = { n.c, n.b, n.a };
        for (int k = 0; k < 3; k++)
            *vec_push(x->w->a, &todo) = below[k];
    }
    return out;
}

static bool singular_by(const ir *g, ir_ref r, const spot *bad)
{
    const ir_node *n = ir_at(g, r);
    return n->op == bad->op && (bad->op == OP_TAN || bad->op == OP_ASIN || bad->op == OP_ACOS ||
                                bad->op == OP_ATAN2 || (bad->op == OP_DIV ? n->b : n->a) == bad->f);
}

/* is the singular operation at work on either side of the switch? */
static bool at_work(formula *x, point *p, const spot *bad)
{
    bool any = false;
    for (int side = -1; side <= 1 && !any; side += 2) {
        double keep[MAX_VARIED];
        memcpy(keep, p->at, p->n * sizeof *keep);
        for (size_t i = 0; i < p->n; i++)
            p->at[i] += side * DATA_PROBE * p->step[i];
        arena_pos mark = arena_mark(x->w->a);
        refs r = nodes_below(x, p);
        for (size_t i = 0; i < r.n; i++)
            any |= singular_by(x->w->m->g, r.at[i], bad);
        arena_release(x->w->a, mark);
        memcpy(p->at, keep, p->n * sizeof *keep);
    }
    return any;
}

/* Does `bad` vanish wherever the choice changes? */
static bool meets(formula *x, const spot *choice, const spot *bad)
{
    posed *w = x->w;
    ir_ref roots[2] = { choice->f, bad->f }, *all;
    point p = { .w = w, .over = x->over };
    uint64_t seed = 1;
    int reached = 0, zero = 0;
    if (!index_first(&x->over->set, p.ix))
        return false;
    /* the whole formula is checked, so all its inputs vary */
    ir_ref *more = arena_array(w->a, ir_ref, x->nroot + 2);
    memcpy(more, x->root, x->nroot * sizeof *more);
    memcpy(more + x->nroot, roots, sizeof roots);
    size_t n = ir_inputs(w->m->g, w->a, more, x->nroot + 2, &all);
    p.in = arena_array(w->a, ir_ref, n + 1);
    p.at = arena_array(w->a, double, n + 1);
    for (size_t i = 0; i < n; i++) {
        in_kind k = ir_input_of(w->m->g, all[i])->kind;
        if (k != IN_PARAM && k != IN_INDEX)
            p.in[p.n++] = all[i];
    }
    if (p.n > MAX_VARIED)
        return false;
    for (int k = 0; k < STARTS; k++) {
        for (size_t i = 0; i < p.n; i++)
            p.at[i] = pseudo(&seed);
        double before = fabs(value_of(&p, bad->f));
        if (!go_to(&p, choice))
            continue;
        reached++;
        zero += fabs(value_of(&p, bad->f)) <= DATA_ZERO * (isfinite(before) && before > 0 ? before : 1) &&
                at_work(x, &p, bad);
    }
    return reached && zero == reached;
}

/* ---- the report ---- */
static void tell_choice(formula *x, const spot *s)
{
    const char *f = posed_formula(x->w, x->over, s->f);
    bool whole = s->op == OP_FLOOR || s->op == OP_CEIL || s->op == OP_MOD,
         kink = s->op == OP_ABS || s->op == OP_MIN || s->op == OP_MAX;
    found_add(x->w, FOUND_SWITCH, x->at, "pieces %s where %s %s", kink ? "meet in a kink" : "switch", f,
              whole ? "is a whole number" : "= 0");
}

static void tell_meeting(formula *x, const spot *s, const spot *bad)
{
    x->w->flat = true;
    x->w->rough |= bad->steep;
    found_add(x->w, FOUND_UNKNOWN, x->at,
              "not analytic where %s = 0: %s vanishes there, so the piece that begins has no power series",
              posed_formula(x->w, x->over, s->f), posed_formula(x->w, x->over, bad->f));
}

static void formula_data(posed *w, const index_names *over, span at, const ir_ref *roots, size_t n)
{
    formula x = { .w = w, .over = over, .at = at, .root = roots, .nroot = n };
    refs all = nodes_below(&x, NULL);
    for (size_t i = 0; i < all.n; i++) {
        ir_node one = *ir_at(w->m->g, all.at[i]); /* the check creates nodes, which may move the others */
        if (one.op < OP_COUNT)
            node_look(&x, &one);
    }
    bool *met = arena_array(w->a, bool, x.bad.n + 1);
    for (size_t i = 0; i < x.choice.n; i++) {
        tell_choice(&x, &x.choice.at[i]);
        for (size_t k = 0; k < x.bad.n && x.choice.n * x.bad.n <= MAX_PAIRS; k++) {
            if (!meets(&x, &x.choice.at[i], &x.bad.at[k]))
                continue;
            met[k] = true;
            tell_meeting(&x, &x.choice.at[i], &x.bad.at[k]);
        }
    }
    for (size_t k = 0; k < x.bad.n; k++)
        if (!met[k])
            found_add(w, FOUND_EXCEPT, at, "no power series where %s = 0",
                      posed_formula(w, over, x.bad.at[k].f));
}

static void families_data(posed *w, const mfamilies *f)
{
    for (size_t i = 0; i < f->n; i++)
        formula_data(w, &f->at[i].over, f->at[i].at, f->at[i].out, (size_t)f->at[i].nout);
}

void posed_data(posed *w)
{
    const model *m = w->m;
    const mfamilies *all[] = { &m->equation, &m->kinetic,   &m->potential, &m->dissipation,
                               &m->force,    &m->inclusion, &m->history,   &m->field_equation };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        families_data(w, all[i]);
    for (size_t i = 0; i < m->contacts.n; i++) {
        const mcontact *c = &m->contacts.at[i];
        const ir_ref parts[] = { c->gap, c->normal, c->mu };
        ir_ref f[3 + MAX_SLIP];
        size_t n = 0;
        for (size_t k = 0; k < 3; k++)
            if (parts[k])
                f[n++] = parts[k];
        for (int k = 0; k < c->nslip; k++)
            f[n++] = c->slip[k];
        formula_data(w, &c->over, c->at, f, n);
    }
    for (size_t i = 0; i < m->obstacles.n; i++)
        formula_data(w, &single_member, m->obstacles.at[i].at, &m->obstacles.at[i].gap, 1);
    for (size_t i = 0; i < m->integrals.n; i++)
        formula_data(w, &single_member, m->integrals.at[i].at, &m->integrals.at[i].integrand, 1);
}
