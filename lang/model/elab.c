/* elab: the statements of a model, checked and lowered to families of IR. */
#include "elab.h"
#include <math.h>
#include <string.h>
#include "base/whole.h"

/* ---- loops around a statement ---- */

const index_names single_member = { .set.count = 1 };

bool nest_add(elab *e, nest *n, const ast *list, const ast *where)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (n->n == MAX_INDEX) {
            diag_error(e->m->d, DIAG_LIMIT, list->kid[i]->at, "at most %d indices", MAX_INDEX);
            return false;
        }
        if (list->kid[i]->kind != AST_INDEX) {
            diag_error(e->m->d, DIAG_TYPE, list->kid[i]->at,
                       "after a named index all indices need a name: i in 1..n");
            return false;
        }
        for (int k = 0; k < n->n; k++)
            if (n->index[k]->name == list->kid[i]->name) {
                diag *d = diag_error(e->m->d, DIAG_DUPLICATE, list->kid[i]->at,
                                     "the index '%s' is already in use", list->kid[i]->name);
                diag_second(e->m->d, d, n->index[k]->at, "here");
                return false;
            }
        n->index[n->n++] = list->kid[i];
    }
    if (where) {
        if (n->nwhere == MAX_INDEX) {
            diag_error(e->m->d, DIAG_LIMIT, where->at, "too many conditions");
            return false;
        }
        n->where[n->nwhere++] = where;
    }
    return true;
}

/* the end of a range as an affine expression of the indices before it */
static bool nest_end(elab *e, const value *v, int32_t *c, int32_t *stride, span at)
{
    address a;
    if (!eval_index(&e->ev, v, INT32_MIN + 1, INT32_MAX - 1, at, &a))
        return false;
    if (a.base > 1000000000 || a.base < -1000000000) {
        diag_error(e->m->d, DIAG_LIMIT, at, "the ends of an index set lie between -10^9 and 10^9");
        return false;
    }
    *c = a.base;
    memcpy(stride, a.stride, sizeof a.stride);
    return true;
}

/* members of a set: a product where the ends are fixed, else counted loop by loop over the outer indices */
static int64_t set_count(index_set *s)
{
    int fixed = s->n;
    for (int k = 0; k < s->n; k++)
        for (int i = 0; i < k; i++)
            if (s->r[k].lo_stride[i] || s->r[k].hi_stride[i])
                fixed = 0;
    int64_t count = 1;
    if (fixed == s->n) {
        for (int k = 0; k < s->n; k++) {
            int64_t n = (int64_t)s->r[k].hi - s->r[k].lo + 1;
            count *= n < 0 ? 0 : n;
            if (count > INT64_MAX / 4000000000)
                return -1;
        }
        return count;
    }
    index_set outer = *s;
    outer.n--;
    count = 0;
    int32_t ix[MAX_INDEX];
    int64_t loops = 0;
    for (bool more = index_first(&outer, ix); more; more = index_next(&outer, ix)) {
        const index_range *r = &s->r[s->n - 1];
        int64_t lo = r->lo, hi = r->hi;
        for (int k = 0; k < outer.n; k++)
            lo += (int64_t)r->lo_stride[k] * ix[k], hi += (int64_t)r->hi_stride[k] * ix[k];
        if (hi >= lo)
            count += hi - lo + 1;
        if (++loops > 400000000)
            return -1;
    }
    return count;
}

static void set_empty(index_names *over)
{
    over->set.count = 0;
    if (over->n)
        over->set.r[over->n - 1] = (index_range){ .lo = 1, .hi = 0 };
}

static scope *bind_index(elab *e, scope *up, sym name, value v)
{
    table_scope *t = table_scope_new(e->m->a, up);
    table_scope_set(t, name, v);
    return &t->base;
}

/* symbolic indices; false: an error, or needs_members */
static bool nest_symbolic(elab *e, mclass *c, const nest *n, index_names *over, scope **in)
{
    evaluator *ev = &e->ev;
    *over = c->inst;
    *in = &work_of(c)->own->base;
    for (int i = 0; i < n->n; i++) {
        const ast *ix = n->index[i];
        if (over->n == MAX_INDEX) {
            diag_error(e->m->d, DIAG_LIMIT, ix->at, "at most %d indices, including that of the part",
                       MAX_INDEX);
            return false;
        }
        ev->family = over;
        value r = eval(ev, *in, ix->kid[0]);
        if (r.kind == V_ERROR)
            return false;
        if (r.kind != V_RANGE) {
            diag_error(e->m->d, DIAG_TYPE, ix->kid[0]->at,
                       "an index runs over a range, as in `%s in 1..N`, not over %s", ix->name,
                       v_kind_text(e->m->a, &r));
            return false;
        }
        index_range *to = &over->set.r[over->n];
        *to = (index_range){ 0 };
        if (!nest_end(e, r.range.lo, &to->lo, to->lo_stride, ix->at) ||
            !nest_end(e, r.range.hi, &to->hi, to->hi_stride, ix->at))
            return false;
        over->name[over->n] = ix->name;
        *in = bind_index(e, *in, ix->name,
                         v_node(ir_in(ev->g, (ir_input){ .kind = IN_INDEX, .at.base = over->n }), dim_any()));
        over->set.n = ++over->n;
    }
    over->set.count = set_count(&over->set);
    if (over->set.count < 0) {
        diag_error(e->m->d, DIAG_LIMIT, n->index[0]->at, "this index set has too many members");
        return false;
    }
    ev->family = over;
    for (int i = 0; i < n->nwhere; i++) {
        value w = eval(ev, *in, n->where[i]);
        if (w.kind == V_ERROR)
            return false;
        if (w.kind != V_BOOL) {
            diag_error(e->m->d, DIAG_TYPE, n->where[i]->at, "'where' takes a condition, not %s",
                       v_kind_text(e->m->a, &w));
            return false;
        }
        ir_ref r = v_ref(ev->g, &w);
        over->where = over->where ? ir_op2(ev->g, OP_AND, over->where, r) : r;
    }
    if (over->where && depends_on(ev->g, over->where, ~(1u << IN_INDEX))) {
        diag_error(e->m->d, DIAG_NOT_CONSTANT, n->where[0]->at,
                   "the condition after 'where' may depend on the indices only");
        return false;
    }
    double k;
    if (over->where && ir_is_const(ev->g, over->where, &k)) {
        over->where = IR_NONE;
        if (k == 0)
            set_empty(over);
    }
    return true;
}

/* ---- conditions on indices: they reduce the set ---- */

static bool other_than(const ir_input *in, void *ud)
{
    return in->kind != IN_INDEX || in->at.base != *(const int32_t *)ud;
}

typedef struct {
    int32_t index, value;
} index_at;
static double index_value(const ir_input *in, void *ud)
{
    const index_at *x = ud;
    return in->kind == IN_INDEX && in->at.base == x->index ? x->value : NAN;
}

enum { MAX_NARROWED = 2000000 };

/* one condition on index k, whose ends are fixed: the range shrinks to where it holds, if that is a range */
static bool narrow_index(elab *e, index_names *over, int32_t k, ir_ref condition)
{
    index_range *r = &over->set.r[k];
    for (int i = 0; i < k; i++)
        if (r->lo_stride[i] || r->hi_stride[i])
            return false;
    if ((int64_t)r->hi - r->lo > MAX_NARROWED)
        return false;
    int64_t first = 0, last = 0, count = 0;
    for (int64_t i = r->lo; i <= r->hi; i++) {
        arena_pos mark = arena_mark(e->m->a);
        index_at at = { k, (int32_t)i };
        bool holds = ir_value(e->m->g, e->m->a, condition, index_value, &at) != 0;
        arena_release(e->m->a, mark);
        if (!holds)
            continue;
        first = count++ ? first : i;
        last = i;
    }
    if (count && last - first + 1 != count)
        return false;
    r->lo = (int32_t)first;
    r->hi = (int32_t)(count ? last : first - 1);
    return true;
}

/* a condition becomes part of the ranges; false: it is no range of each index by itself */
static bool narrow(elab *e, index_names *over, ir_ref condition)
{
    const ir_node *x = ir_at(e->m->g, condition);
    ir_ref a = x->a, b = x->b;
    double k;
    if (ir_is_const(e->m->g, condition, &k)) {
        if (k == 0)
            set_empty(over);
        return true;
    }
    if (x->op == OP_AND)
        return narrow(e, over, a) && narrow(e, over, b);
    for (int32_t i = 0; i < over->n; i++)
        if (!ir_depends(e->m->g, condition, other_than, &i))
            return narrow_index(e, over, i, condition);
    return false;
}

static bool narrow_set(elab *e, index_names *over, ir_ref condition)
{
    if (!narrow(e, over, condition))
        return false;
    over->set.count = set_count(&over->set);
    return true;
}

enum { MAX_MEMBERS = 20000 };

typedef struct members {
    elab *e;
    mclass *c;
    const nest *n;
    const ast *node;
    family_body *body;
    const index_names *within; /* those of a half alone, or NULL */
    int32_t index[MAX_INDEX];  /* the instance first, where the class has several */
    int64_t count;
    bool stop;
} members;

static bool member_within(const members *w)
{
    const index_set *s = w->within ? &w->within->set : NULL;
    for (int k = 0; s && k < s->n; k++) {
        int64_t lo = s->r[k].lo, hi = s->r[k].hi;
        for (int i = 0; i < k; i++) {
            lo += (int64_t)s->r[k].lo_stride[i] * w->index[i];
            hi += (int64_t)s->r[k].hi_stride[i] * w->index[i];
        }
        if (w->index[k] < lo || w->index[k] > hi)
            return false;
    }
    return true;
}

/* one loop level after the other with numbers; the body sees no index at all */
static void members_level(members *w, scope *in, int level)
{
    elab *e = w->e;
    if (w->stop)
        return;
    e->ev.family = &single_member;
    if (level == w->n->n) {
        for (int i = 0; i < w->n->nwhere; i++) {
            value c = eval(&e->ev, in, w->n->where[i]);
            double k;
            if (!v_scalar(&c, &k)) {
                w->stop = true;
                return;
            }
            if (k == 0)
                return;
        }
        if (!member_within(w))
            return;
        if (++w->count > MAX_MEMBERS) {
            diag *d = diag_error(e->m->d, DIAG_LIMIT, w->node->at,
                                 "this family has more than %d members that must be compiled one by one",
                                 MAX_MEMBERS);
            diag_hint(e->m->d, d,
                      "use indices such as i, i + 1 or 2*i - 1: the family is then compiled "
                      "as a whole");
            w->stop = true;
            return;
        }
        e->ev.needs_members = false;
        w->body(e, w->c, in, &single_member, w->node);
        if (e->ev.needs_members) {
            diag_error(e->m->d, DIAG_NOT_CONSTANT, w->node->at, "an index here is not known before the run");
            w->stop = true;
        }
        return;
    }
    const ast *ix = w->n->index[level];
    value r = eval(&e->ev, in, ix->kid[0]);
    double lo, hi;
    if (r.kind != V_RANGE || !v_scalar(r.range.lo, &lo) || !v_scalar(r.range.hi, &hi)) {
        if (r.kind != V_ERROR)
            diag_error(e->m->d, DIAG_NOT_CONSTANT, ix->at,
                       "the ends of this range must be known before the run");
        w->stop = true;
        return;
    }
    size_t errors = e->m->d->errors;
    for (double i = lo; i <= hi && !w->stop && e->m->d->errors == errors; i += 1) {
        w->index[level + w->c->inst.n] = (int32_t)whole_clamp(i, INT32_MIN, INT32_MAX);
        members_level(w, bind_index(e, in, ix->name, v_num(i)), level + 1);
    }
}

/* the members of a family, or of a half of it, with numbers */
static void write_out(elab *e, mclass *c, const nest *n, const ast *node, family_body *body,
                      const index_names *within)
{
    members w = { .e = e, .c = c, .n = n, .node = node, .body = body, .within = within };
    const assumption *assumed = e->ev.assumed;
    e->ev.assumed = NULL;
    for (int32_t i = 0; i < c->ninst && !w.stop; i++) {
        class_scope *s = c->inst.n ? class_scope_new(e, c, (address){ .base = i }, false) : work_of(c)->own;
        w.index[0] = i;
        members_level(&w, &s->base, 0);
    }
    e->ev.family = NULL;
    e->ev.needs_members = false;
    e->ev.assumed = assumed;
}

/* Calls the body with symbolic indices; in two halves if a condition on an index excludes members, in
   single members if it cannot be kept symbolic. Constraints are not divided: a name denotes one family of
   them. */
static void over_set(elab *e, mclass *c, const nest *n, const ast *node, family_body *body,
                     const index_names *over, scope *in, int depth)
{
    enum { MAX_HALVES = 6 };
    model *m = e->m;
    size_t integrals = m->integrals.n, sets = m->sets.n;
    int32_t nset = m->nset, nbound = m->nbound;
    index_names *keep = arena_make(m->a, index_names);
    *keep = *over;
    e->ev.family = keep;
    e->ev.needs_members = false;
    e->ev.split = IR_NONE;
    body(e, c, in, keep, node);
    e->ev.family = NULL;
    if (!e->ev.needs_members)
        return;
    m->integrals.n = integrals;
    m->sets.n = sets;
    m->nset = nset;
    m->nbound = nbound;
    ir_ref cut = body == constraint_body || depth == MAX_HALVES ? IR_NONE : e->ev.split;
    index_names half[2] = { *over, *over };
    if (!cut || !narrow_set(e, &half[1], cut) || !narrow_set(e, &half[0], ir_op1(m->g, OP_NOT, cut))) {
        write_out(e, c, n, node, body, depth ? over : NULL);
        return;
    }
    for (int side = 1; side >= 0; side--) {
        assumption known = { e->ev.assumed, cut, side };
        e->ev.assumed = &known;
        if (half[side].set.count)
            over_set(e, c, n, node, body, &half[side], in, depth + 1);
        e->ev.assumed = known.up;
    }
}

void over_nest(elab *e, mclass *c, const nest *n, const ast *node, family_body *body)
{
    index_names over;
    scope *in;
    evaluator was = e->ev;
    const nest *loops = e->loops;
    e->ev.needs_members = false;
    e->ev.pruned = e->ev.split = IR_NONE;
    e->ev.assumed = NULL;
    e->loops = n;
    bool symbolic = nest_symbolic(e, c, n, &over, &in);
    /* only constraints keep a condition: everything else relies on its set */
    if (symbolic && over.where && body != constraint_body) {
        symbolic = narrow_set(e, &over, over.where);
        over.where = IR_NONE;
        e->ev.needs_members = !symbolic;
    }
    if (symbolic)
        over_set(e, c, n, node, body, &over, in, 0);
    else if (e->ev.needs_members)
        write_out(e, c, n, node, body, NULL);
    e->ev.family = NULL;
    e->ev.needs_members = false;
    e->ev.pruned = was.pruned;
    e->ev.split = was.split;
    e->ev.assumed = was.assumed;
    e->loops = loops;
}

/* ---- small things ---- */

mfamily *family_add(elab *e, mfamilies *to, mclass *c, const index_names *over, const ast *node, int nout,
                    bool rows)
{
    mfamily *f = vec_push(e->m->a, to);
    *f = (mfamily){ .over = *over, .nout = nout, .at = node->at, .decl = node, .of = c };
    f->out = arena_array(e->m->a, ir_ref, nout ? nout : 1);
    if (rows)
        f->row = arena_array(e->m->a, address, nout ? nout : 1);
    return f;
}

bool value_address(elab *e, const value *v, in_kind kind, address *at)
{
    const ir_input *in = v_is_scalar(v) && v->num.r0 ? ir_input_of(e->m->g, v->num.r0) : NULL;
    if (!in || in->kind != kind)
        return false;
    *at = in->at;
    return true;
}

static bool of_kinds(const ir_input *in, void *ud)
{
    return *(unsigned *)ud & (1u << in->kind);
}

bool depends_on(const ir *g, ir_ref r, unsigned kinds)
{
    return ir_depends(g, r, of_kinds, &kinds);
}

/* ---- rotations ---- */

/* the rotation of which an input is a component, as the address of its first; false: it is of none */
static bool rotation_of(const model *m, const index_names *over, const ir_input *in, address *at)
{
    int32_t ix[MAX_INDEX] = { 0 };
    if (!index_first(&over->set, ix))
        return false;
    int32_t component;
    const mdof *d = model_dof(m, slot_at(&in->at, ix, over->set.n), &component);
    if (!d || !d->rotation)
        return false;
    *at = in->at;
    at->base -= component % 3;
    return true;
}

/* `A` or `A'` as written, not as a matrix or a formula. */
static bool is_rotation(const value *v)
{
    return v->kind == V_DOFS && v->dofs.dof->rotation && v->dofs.given == v->dofs.dof->ndim;
}

/* The three components of an equation in A'' are moments in the body's frame: what they do to the dofs of A.
   false: an error. */
static bool balance_of_moments(elab *e, mfamily *f, const ast *s)
{
    ir_ref *in, moment[3];
    address at = { 0 }, one;
    bool turns = false, other = false;
    size_t n = ir_inputs(e->m->g, e->m->a, f->out, (size_t)f->nout, &in);
    for (size_t k = 0; k < n; k++) {
        const ir_input *x = ir_input_of(e->m->g, in[k]);
        if (x->kind != IN_A)
            continue;
        bool is = rotation_of(e->m, &f->over, x, &one);
        other = other || !is || (turns && memcmp(&one, &at, sizeof at));
        at = is ? one : at;
        turns = turns || is;
    }
    if (!turns)
        return true;
    if (other || f->nout != 3) {
        diag *d = diag_error(e->m->d, other ? DIAG_NOT_SUPPORTED : DIAG_SHAPE, s->at,
                             other ? "an equation with the angular acceleration of a rotation may "
                                     "contain no other second derivative"
                                   : "the equation of a rotation is a vector equation: three moments in the "
                                     "frame of the body");
        diag_hint(e->m->d, d,
                  other ? "write kinetic energies: the coupling is then derived"
                        : "J*A'' + cross(A', J*A') = tau");
        return false;
    }
    memcpy(moment, f->out, sizeof moment);
    rotation_moment(e->m->g, at, moment, f->out);
    for (int k = 0; k < 3; k++) {
        f->row[k] = at;
        f->row[k].base += k;
    }
    f->moments = true;
    return true;
}

/* ---- equations and energies ---- */

bool both_sides(elab *e, scope *in, const ast *l, const ast *r, const char *what, span at, value *out)
{
    value a = eval(&e->ev, in, l), b = eval(&e->ev, in, r);
    if (a.kind == V_ERROR || b.kind == V_ERROR || e->ev.needs_members)
        return false;
    if (a.kind != V_NUM || b.kind != V_NUM) {
        const value *bad = a.kind != V_NUM ? &a : &b;
        diag_error(e->m->d, DIAG_TYPE, bad == &a ? l->at : r->at, "%s has numbers on both sides, not %s",
                   what, v_kind_text(e->m->a, bad));
        return false;
    }
    /* u'' + K*u = 0 */
    if (a.num.rank == 1 && v_scalar(&b, &(double){ 0 }) && b.num.d0 == 0)
        b = v_vector(e->m->a, a.num.n[0]);
    if (a.num.rank != b.num.rank || v_count(&a) != v_count(&b)) {
        diag_error(e->m->d, DIAG_SHAPE, at, "the two sides have different sizes: %s and %s",
                   v_kind_text(e->m->a, &a), v_kind_text(e->m->a, &b));
        return false;
    }
    if (!eval_same_unit(&e->ev, a.num.unit, b.num.unit,
                        arena_printf(e->m->a, "the two sides of %s have different dimensions", what), at))
        return false;
    *out = eval_op(&e->ev, OP_SUB, &a, &b, NULL, at);
    return out->kind == V_NUM;
}

/* y(0) = 1, y'(0) = 0 */
static bool is_initial_value(elab *e, const mclass *c, const ast *s)
{
    const ast *l = s->kid[0], *of = l->kind == AST_CALL && l->n == 2 ? l->kid[0] : NULL;
    while (of && of->kind == AST_PRIME)
        of = of->kid[0];
    const mdecl *d = of && of->kind == AST_NAME ? class_find(c, of->name) : NULL;
    if (!d || d->kind != DECL_DOF || l->kid[1]->kind != AST_NUM)
        return false;
    diag *x = diag_error(e->m->d, DIAG_SYNTAX, s->at, "an initial value is part of the declaration");
    diag_hint(e->m->d, x, "write dof %s = %s", span_text(e->m->d, l->kid[0]->at, e->m->a),
              span_text(e->m->d, s->kid[1]->at, e->m->a));
    return true;
}

static void equation_body(elab *e, mclass *c, scope *in, const index_names *over, const ast *s)
{
    value r;
    if (is_initial_value(e, c, s))
        return;
    if (!both_sides(e, in, s->kid[0], s->kid[1], "an equation", s->at, &r))
        return;
    for (int k = 0; k < v_count(&r); k++) {
        value x = v_element(&r, k);
        if (!x.num.r0 || !depends_on(e->m->g, x.num.r0, BIT(IN_SET)))
            continue;
        diag *d = diag_error(e->m->d, DIAG_TYPE, s->at, "an equation cannot contain sets");
        diag_hint(e->m->d, d, "write an inclusion, with `in` instead of `=`");
        return;
    }
    mfamily *f = family_add(e, &e->m->equation, c, over, s, v_count(&r), true);
    for (int k = 0; k < f->nout; k++) {
        value x = v_element(&r, k);
        f->out[k] = v_ref(e->m->g, &x);
    }
    balance_of_moments(e, f, s);
}

static void inclusion_body(elab *e, mclass *c, scope *in, const index_names *over, const ast *s)
{
    value r;
    const ast *x = s->kid[0];
    e->ev.inclusion = true;
    bool ok = both_sides(e, in, x->kid[0], x->kid[1], "an inclusion", s->at, &r);
    e->ev.inclusion = false;
    if (!ok)
        return;
    mfamily *f = family_add(e, &e->m->inclusion, c, over, s, v_count(&r), true);
    for (int k = 0; k < f->nout; k++) {
        value y = v_element(&r, k);
        f->out[k] = v_ref(e->m->g, &y);
    }
}

/* kinetic energies and potentials are added up */
static bool energy_fits(elab *e, const ast *s, dim unit)
{
    if (s->kind == AST_DISSIPATION || unit.any)
        return true;
    if (!e->energy)
        e->energy = s, e->energy_unit = unit;
    return eval_same_unit(&e->ev, unit, e->energy_unit, "the energies have different dimensions",
                          s->kid[0]->at);
}

static void energy_body(elab *e, mclass *c, scope *in, const index_names *over, const ast *s)
{
    const char *what = s->kind == AST_KINETIC     ? "a kinetic energy"
                       : s->kind == AST_POTENTIAL ? "a potential"
                                                  : "a dissipation";
    mfamilies *to = s->kind == AST_KINETIC     ? &e->m->kinetic
                    : s->kind == AST_POTENTIAL ? &e->m->potential
                                               : &e->m->dissipation;
    value v;
    if (!eval_scalar(&e->ev, in, s->kid[0], what, &v) || e->ev.needs_members)
        return;
    ir_ref r = v_ref(e->m->g, &v);
    unsigned bad = BIT(IN_A) | BIT(IN_PAST_Q) | BIT(IN_PAST_V) | BIT(IN_SET) | BIT(IN_INTEGRAL) |
                   (s->kind == AST_POTENTIAL ? BIT(IN_V) : 0);
    if (depends_on(e->m->g, r, bad)) {
        diag *d = diag_error(e->m->d, DIAG_TYPE, s->kid[0]->at,
                             s->kind == AST_POTENTIAL ? "a potential may depend on positions and time only"
                                                      : "%s may depend on positions, rates and time only",
                             what);
        diag_hint(e->m->d, d, "other forces are written as `force x: …`");
        return;
    }
    if (s->kind == AST_KINETIC && !depends_on(e->m->g, r, BIT(IN_V))) {
        diag_error(e->m->d, DIAG_EQUATION_NO_DOF, s->kid[0]->at, "this kinetic energy contains no rate");
        return;
    }
    if (!e->m->nq && (e->m->fields.n || e->m->rods.n)) {
        diag_error(e->m->d, DIAG_MIXED_FORMS, s->kid[0]->at,
                   "energies belong to degrees of freedom, and this model has none");
        return;
    }
    if (!energy_fits(e, s, v.num.unit))
        return;
    family_add(e, to, c, over, s, 1, false)->out[0] = r;
}

/* force A: a moment in the frame of the body */
static void moment_body(elab *e, mclass *c, const index_names *over, const ast *s, address at, const value *v)
{
    ir_ref moment[3];
    if (v->kind != V_NUM || v_count(v) != 3) {
        diag_error(e->m->d, DIAG_SHAPE, s->kid[1]->at,
                   "the force on the rotation %s is a moment in the frame of the body, a vector of 3, not %s",
                   span_text(e->m->d, s->kid[0]->at, e->m->a), v_kind_text(e->m->a, v));
        return;
    }
    mfamily *f = family_add(e, &e->m->force, c, over, s, 3, true);
    for (int k = 0; k < 3; k++) {
        value x = v_element(v, k);
        moment[k] = v_ref(e->m->g, &x);
        f->row[k] = at;
        f->row[k].base += k;
    }
    rotation_moment(e->m->g, at, moment, f->out);
}

static void force_body(elab *e, mclass *c, scope *in, const index_names *over, const ast *s)
{
    value q = eval_keep(&e->ev, in, s->kid[0]), v = eval(&e->ev, in, s->kid[1]);
    if (q.kind == V_ERROR || v.kind == V_ERROR || e->ev.needs_members)
        return;
    address at;
    if (is_rotation(&q) && !q.dofs.primes) {
        moment_body(e, c, over, s, q.dofs.at, &v);
        return;
    }
    if (q.kind == V_DOFS)
        q = eval_dofs(&e->ev, &q, s->kid[0]->at);
    if (q.kind == V_ERROR)
        return;
    value q0 = q.kind == V_NUM && v_count(&q) ? v_element(&q, 0) : q;
    if (q.kind != V_NUM || !value_address(e, &q0, IN_Q, &at)) {
        diag *d = diag_error(e->m->d, DIAG_TYPE, s->kid[0]->at, "a force acts on a degree of freedom");
        diag_hint(e->m->d, d, "force x: 2*cos(t)");
        return;
    }
    if (v.kind != V_NUM || v_count(&v) != v_count(&q)) {
        diag_error(e->m->d, DIAG_SHAPE, s->kid[1]->at, "the force on %s must be %s, not %s",
                   span_text(e->m->d, s->kid[0]->at, e->m->a), v_kind_text(e->m->a, &q),
                   v_kind_text(e->m->a, &v));
        return;
    }
    mfamily *f = family_add(e, &e->m->force, c, over, s, v_count(&v), true);
    for (int k = 0; k < f->nout; k++) {
        value x = v_element(&v, k), y = v_element(&q, k);
        f->out[k] = v_ref(e->m->g, &x);
        if (!value_address(e, &y, IN_Q, &f->row[k]))
            f->row[k] = at;
    }
}

/* ---- events, histories ---- */

static void collect_switches(elab *e, ir_ref r, mevent *v, int depth)
{
    const ir_node *n = ir_at(e->m->g, r);
    if (depth > 100)
        return;
    ir_ref a = n->a, b = n->b;
    switch (n->op) {
    case OP_AND:
    case OP_OR:
        collect_switches(e, a, v, depth + 1);
        collect_switches(e, b, v, depth + 1);
        break;
    case OP_NOT:
        collect_switches(e, a, v, depth + 1);
        break;
    default:
        if (!op_compares(n->op))
            break;
        v->switches = arena_grow(e->m->a, v->switches, (size_t)v->nswitch * sizeof(ir_ref),
                                 ((size_t)v->nswitch + 1) * sizeof(ir_ref));
        v->switches[v->nswitch++] = ir_op2(e->m->g, OP_SUB, a, b);
    }
}

/* an angular velocity that is set, as rates of the dofs; at: of the first of them */
static bool event_turns(elab *e, const ast *set, const value *to, value *x, address *at)
{
    if (!to->dofs.primes) {
        diag *d = diag_error(e->m->d, DIAG_NOT_SUPPORTED, set->kid[0]->at,
                             "an event cannot set a rotation: attitudes do not jump");
        diag_hint(e->m->d, d, "it may set the angular velocity, %s' = …",
                  span_text(e->m->d, set->kid[0]->at, e->m->a));
        return false;
    }
    if (to->dofs.primes > 1 || x->kind != V_NUM || v_count(x) != 3)
        return true; /* reported as for all others */
    ir_ref w[3], rates[3];
    for (int k = 0; k < 3; k++) {
        value y = v_element(x, k);
        w[k] = v_ref(e->m->g, &y);
    }
    rotation_rates_of(e->m->g, to->dofs.at, w, rates);
    value out = v_vector(e->m->a, 3);
    out.num.unit = x->num.unit;
    for (int k = 0; k < 3; k++) {
        value y = v_node(rates[k], x->num.unit);
        v_set(e->m->a, &out, k, &y);
    }
    *x = out;
    *at = to->dofs.at;
    return true;
}

static bool event_targets(elab *e, scope *in, const ast *block, mevent *v)
{
    int cap = 0;
    for (uint32_t i = 0; i < block->n; i++) {
        const ast *set = block->kid[i];
        if (set->kind != AST_SET)
            continue;
        value to = eval_keep(&e->ev, in, set->kid[0]), x = eval(&e->ev, in, set->kid[1]);
        if (to.kind == V_ERROR || x.kind == V_ERROR || e->ev.needs_members)
            return false;
        bool turns = is_rotation(&to);
        address first = { 0 };
        if (turns && !event_turns(e, set, &to, &x, &first))
            return false;
        if (to.kind == V_DOFS)
            to = eval_dofs(&e->ev, &to, set->kid[0]->at);
        if (to.kind == V_ERROR)
            return false;
        if (x.kind != V_NUM || to.kind != V_NUM || v_count(&to) != v_count(&x)) {
            diag_error(e->m->d, DIAG_SHAPE, set->at,
                       "the two sides of a reset have different sizes: %s and %s", v_kind_text(e->m->a, &to),
                       v_kind_text(e->m->a, &x));
            return false;
        }
        if (!eval_same_unit(&e->ev, to.num.unit, x.num.unit,
                            "the two sides of a reset have different dimensions", set->at))
            return false;
        for (int32_t k = 0; k < v_count(&to); k++, v->nset++) {
            value el = v_element(&to, k), xe = v_element(&x, k);
            if (v->nset == cap) {
                int n = cap ? 2 * cap : 4;
                v->target = arena_grow(e->m->a, v->target, (size_t)cap * sizeof(address),
                                       (size_t)n * sizeof(address));
                v->rate = arena_grow(e->m->a, v->rate, (size_t)cap * sizeof(bool), (size_t)n * sizeof(bool));
                v->value = arena_grow(e->m->a, v->value, (size_t)cap * sizeof(ir_ref),
                                      (size_t)n * sizeof(ir_ref));
                cap = n;
            }
            v->rate[v->nset] = turns || value_address(e, &el, IN_V, &v->target[v->nset]);
            if (turns) {
                v->target[v->nset] = first;
                v->target[v->nset].base += k;
            }
            if (!v->rate[v->nset] && !value_address(e, &el, IN_Q, &v->target[v->nset])) {
                diag_error(e->m->d, DIAG_TYPE, set->kid[0]->at,
                           "an event sets a degree of freedom or its rate");
                return false;
            }
            for (int j = 0; j < v->nset; j++)
                if (v->rate[j] == v->rate[v->nset] &&
                    !memcmp(&v->target[j], &v->target[v->nset], sizeof(address))) {
                    diag_error(e->m->d, DIAG_DUPLICATE, set->kid[0]->at, "the event sets '%s' twice",
                               span_text(e->m->d, set->kid[0]->at, e->m->a));
                    return false;
                }
            v->value[v->nset] = v_ref(e->m->g, &xe);
        }
    }
    return true;
}

static void event_body(elab *e, mclass *c, scope *in, const index_names *over, const ast *s)
{
    (void)c;
    mevent v = { .at = s->at, .decl = s, .stop = s->kind == AST_STOP, .over = *over };
    value w = eval(&e->ev, in, s->kid[0]);
    if (w.kind == V_ERROR || e->ev.needs_members)
        return;
    if (w.kind != V_BOOL) {
        diag_error(e->m->d, DIAG_TYPE, s->kid[0]->at, "'when' takes a condition, not %s",
                   v_kind_text(e->m->a, &w));
        return;
    }
    v.when = v_ref(e->m->g, &w);
    if (!v.stop && !event_targets(e, in, s->kid[1], &v))
        return;
    collect_switches(e, v.when, &v, 0);
    *vec_push(e->m->a, &e->m->events) = v;
}

static void history_body(elab *e, mclass *c, scope *in, const index_names *over, const ast *s)
{
    const mdecl *d = class_find(c, s->name);
    if (!d && diag_doubtful(e->m->d, s->name))
        return;
    if (!d || d->kind != DECL_DOF) {
        diag *err = diag_error(e->m->d, DIAG_UNKNOWN_NAME, s->name_at, "'%s' is not a degree of freedom",
                               s->name);
        near n = near_to(s->name);
        for (size_t i = 0; i < c->dofs.n; i++)
            near_try(&n, c->dofs.at[i]->name);
        diag_near(e->m->d, err, &n);
        return;
    }
    if (d->dof->rotation) {
        diag_error(e->m->d, DIAG_NOT_SUPPORTED, s->name_at,
                   "'%s' is a rotation, which takes no history: before t = 0 it has its initial value",
                   s->name);
        return;
    }
    for (size_t i = 0; i < e->m->history.n; i++) {
        const ast *old = e->m->history.at[i].decl;
        if (old == s || e->m->history.at[i].of != c || old->name != s->name || old->num != s->num ||
            old->kid[0]->n || s->kid[0]->n)
            continue;
        diag *err = diag_error(e->m->d, DIAG_DUPLICATE, s->name_at, "the history of '%s' is given twice",
                               s->name);
        diag_second(e->m->d, err, old->name_at, "first given here");
        return;
    }
    table_scope *t = table_scope_new(e->m->a, in);
    table_scope_set(
        t, s->kid[1]->name,
        v_node(ir_in(e->m->g, (ir_input){ .kind = IN_BOUND, .at.base = e->m->nbound++ }), dim_any()));
    value v = eval(&e->ev, &t->base, s->kid[2]);
    if (v.kind == V_ERROR || e->ev.needs_members)
        return;
    value dofs = { .kind = V_DOFS }, ix[MAX_INDEX];
    dofs.dofs.dof = d->dof;
    dofs.dofs.at.base = c->qbase + d->dof->offset;
    if (c->inst.n)
        dofs.dofs.at.stride[0] = c->qsize;
    size_t own = s->kid[0]->n;
    for (size_t i = 0; i < own; i++)
        ix[i] = eval(&e->ev, in, &(ast){ .kind = AST_NAME, .name = s->kid[0]->kid[i]->name, .at = s->at });
    if (own)
        dofs = eval_subscript(&e->ev, &dofs, ix, own, s->at);
    else if (d->dof->ndim) {
        dofs = eval(&e->ev, in, &(ast){ .kind = AST_NAME, .name = s->name, .at = s->name_at });
    } else
        dofs = eval_subscript(&e->ev, &dofs, NULL, 0, s->at);
    if (dofs.kind != V_NUM)
        return;
    if (v.kind != V_NUM || v_count(&v) != v_count(&dofs)) {
        diag_error(e->m->d, DIAG_SHAPE, s->kid[2]->at, "the history of '%s' must be %s, not %s", s->name,
                   v_kind_text(e->m->a, &dofs), v_kind_text(e->m->a, &v));
        return;
    }
    for (int k = 0; k < v_count(&v); k++) {
        value x = v_element(&v, k);
        if (!x.num.r0 || !depends_on(e->m->g, x.num.r0, MOVING))
            continue;
        diag_error(e->m->d, DIAG_NOT_CONSTANT, s->kid[2]->at,
                   "the history of '%s' must be known before the run: it may depend on %s and on parameters",
                   s->name, s->kid[1]->name);
        return;
    }
    mfamily *f = family_add(e, &e->m->history, c, over, s, v_count(&v), true);
    for (int k = 0; k < f->nout; k++) {
        value x = v_element(&v, k), y = v_element(&dofs, k);
        f->out[k] = v_ref(e->m->g, &x);
        value_address(e, &y, IN_Q, &f->row[k]);
    }
}

/* ---- statements ---- */

static bool may_repeat(ast_kind k)
{
    switch (k) {
    case AST_PARAM:
    case AST_LET:
    case AST_FN:
    case AST_DOF:
    case AST_PART:
    case AST_DOMAIN:
    case AST_FIELD:
    case AST_ROD:
    case AST_SHAPE:
        return false;
    default:
        return true;
    }
}

static void statement(elab *e, mclass *c, nest n, const ast *s)
{
    family_body *body = NULL;
    switch (s->kind) {
    case AST_FOR:
        if (!nest_add(e, &n, s->kid[0], s->kid[1]))
            return;
        for (uint32_t i = 0; i < s->kid[2]->n; i++)
            if (may_repeat(s->kid[2]->kid[i]->kind))
                statement(e, c, n, s->kid[2]->kid[i]);
            else {
                diag *d = diag_error(e->m->d, DIAG_UNKNOWN_STATEMENT, s->kid[2]->kid[i]->at,
                                     "this statement is not allowed inside a 'for'");
                diag_hint(
                    e->m->d, d,
                    "declarations take their indices themselves: dof x[i in 1..N], part p[i in 1..N]: m");
            }
        return;
    case AST_CONSTRAINT:
        if (!nest_add(e, &n, s->kid[0], s->kid[1]))
            return;
        body = constraint_body;
        break;
    case AST_SET:
        body = e->m->coords.n ? NULL : equation_body;
        break;
    case AST_EXPR:
        body = s->kid[0]->kind == AST_IN ? inclusion_body : NULL;
        break;
    case AST_KINETIC:
    case AST_POTENTIAL:
    case AST_DISSIPATION:
        body = energy_body;
        break;
    case AST_FORCE:
        if (elab_rod_force(e, c, s))
            return;
        body = force_body;
        break;
    case AST_WHEN:
    case AST_STOP:
        body = event_body;
        break;
    case AST_HISTORY:
        if (!nest_add(e, &n, s->kid[0], NULL))
            return;
        body = history_body;
        break;
    case AST_SHAPE:
        shape_value(e, work_of(c)->own, class_find(c, s->name));
        return;
    case AST_ERROR:
        return;
    default:
        break;
    }
    if (body)
        over_nest(e, c, &n, s, body);
    else
        elab_field_statement(e, c, &n, s);
}

static bool known_outside(elab *e, const mclass *c, const ast *name)
{
    value v;
    for (scope *s = c->outer; s; s = s->up)
        if (s->find(s, &e->ev, name->name, name->at, &v) != LOOK_NO)
            return true;
    return false;
}

/* F = 3, intended as a name and its value: reported here, and its uses are not reported */
static void value_undeclared(elab *e, const mclass *c, const ast *s)
{
    const ast *l = s->kind == AST_SET ? s->kid[0] : NULL;
    if (!l || l->kind != AST_NAME || !strcmp(l->name, "t") || class_find(c, l->name) || e->m->coords.n ||
        eval_name_instead(l->name) || known_outside(e, c, l) || diag_doubtful(e->m->d, l->name))
        return;
    diag *d = diag_error(e->m->d, DIAG_UNKNOWN_NAME, l->at, "unknown name '%s'", l->name);
    diag_hint(e->m->d, d, "a name is given a value with let, a parameter with param, an unknown with dof");
    diag_doubt(e->m->d, l->name);
}

void elab_statements(elab *e, mclass *c)
{
    for (size_t i = 0; i < work_of(c)->statements.n; i++)
        value_undeclared(e, c, work_of(c)->statements.at[i]);
    for (size_t i = 0; i < work_of(c)->statements.n; i++)
        statement(e, c, (nest){ 0 }, work_of(c)->statements.at[i]);
}
