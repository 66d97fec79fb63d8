/* elab: the statements of a model, checked and lowered to families of IR. */
#include "elab.h"
#include <math.h>
#include <string.h>

/* ---- loops around a statement ---- */

bool nest_add(elab *e, nest *n, const ast *list, const ast *where)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (n->n == MAX_INDEX) {
            diag_error(e->m->d, DIAG_LIMIT, list->kid[i]->at, "at most %d indices", MAX_INDEX);
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
    if (!eval_index(&e->ev, v, INT32_MIN + 1, INT32_MAX - 1, at, &a)) return false;
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
            if (s->r[k].lo_stride[i] || s->r[k].hi_stride[i]) fixed = 0;
    int64_t count = 1;
    if (fixed == s->n) {
        for (int k = 0; k < s->n; k++) {
            int64_t n = (int64_t)s->r[k].hi - s->r[k].lo + 1;
            count *= n < 0 ? 0 : n;
            if (count > INT64_MAX / 4000000000) return -1;
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
        for (int k = 0; k < outer.n; k++) lo += (int64_t)r->lo_stride[k] * ix[k], hi += (int64_t)r->hi_stride[k] * ix[k];
        if (hi >= lo) count += hi - lo + 1;
        if (++loops > 400000000) return -1;
    }
    return count;
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
            diag_error(e->m->d, DIAG_LIMIT, ix->at, "at most %d indices, that of the part included", MAX_INDEX);
            return false;
        }
        ev->family = over;
        value r = eval(ev, *in, ix->kid[0]);
        if (r.kind == V_ERROR) return false;
        if (r.kind != V_RANGE) {
            diag_error(e->m->d, DIAG_TYPE, ix->kid[0]->at, "an index runs over a range, as in `%s in 1..N`, not over %s", ix->name, v_kind_text(e->m->a, &r));
            return false;
        }
        index_range *to = &over->set.r[over->n];
        *to = (index_range){0};
        if (!nest_end(e, r.range.lo, &to->lo, to->lo_stride, ix->at) || !nest_end(e, r.range.hi, &to->hi, to->hi_stride, ix->at)) return false;
        over->name[over->n] = ix->name;
        *in = bind_index(e, *in, ix->name, v_node(ir_in(ev->g, (ir_input){.kind = IN_INDEX, .at.base = over->n}), dim_none()));
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
        if (w.kind == V_ERROR) return false;
        if (w.kind != V_BOOL) {
            diag_error(e->m->d, DIAG_TYPE, n->where[i]->at, "'where' takes a condition, not %s", v_kind_text(e->m->a, &w));
            return false;
        }
        ir_ref r = v_ref(ev->g, &w);
        over->where = over->where ? ir_op2(ev->g, OP_AND, over->where, r) : r;
    }
    if (over->where && depends_on(ev->g, over->where, ~(1u << IN_INDEX))) {
        diag_error(e->m->d, DIAG_NOT_CONSTANT, n->where[0]->at, "the condition after 'where' may hang on the indices only");
        return false;
    }
    double k;
    if (over->where && ir_is_const(ev->g, over->where, &k)) {
        over->where = IR_NONE;
        if (k == 0) over->set.count = 0;
    }
    return true;
}

enum { MAX_MEMBERS = 20000 };

typedef struct members { elab *e; mclass *c; const nest *n; const ast *node; family_body *body; int64_t count; bool stop; } members;

/* one loop level after the other with numbers; the body sees no index at all */
static void members_level(members *w, scope *in, int level)
{
    elab *e = w->e;
    static const index_names none = {0};
    if (w->stop) return;
    e->ev.family = &none;
    if (level == w->n->n) {
        for (int i = 0; i < w->n->nwhere; i++) {
            value c = eval(&e->ev, in, w->n->where[i]);
            double k;
            if (!v_scalar(&c, &k)) { w->stop = true; return; }
            if (k == 0) return;
        }
        if (++w->count > MAX_MEMBERS) {
            diag *d = diag_error(e->m->d, DIAG_LIMIT, w->node->at, "this family has more than %d members that have to be written out one by one", MAX_MEMBERS);
            diag_hint(e->m->d, d, "let the indices enter as i, i + 1, 2*i - 1 …: then it is kept as one");
            w->stop = true;
            return;
        }
        e->ev.needs_members = false;
        w->body(e, w->c, in, &none, w->node);
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
        if (r.kind != V_ERROR) diag_error(e->m->d, DIAG_NOT_CONSTANT, ix->at, "the ends of this range must be known before the run");
        w->stop = true;
        return;
    }
    size_t errors = e->m->d->errors;
    for (double i = lo; i <= hi && !w->stop && e->m->d->errors == errors; i += 1)
        members_level(w, bind_index(e, in, ix->name, v_num_unit(i, dim_none())), level + 1);
}

void over_nest(elab *e, mclass *c, const nest *n, const ast *node, family_body *body)
{
    model *m = e->m;
    index_names over;
    scope *in;
    size_t integrals = m->integrals.n, sets = m->sets.n;
    int32_t nset = m->nset, nbound = m->nbound;
    e->ev.needs_members = false;
    if (nest_symbolic(e, c, n, &over, &in)) {
        index_names *keep = arena_make(m->a, index_names);
        *keep = over;
        e->ev.family = keep;
        body(e, c, in, keep, node);
    }
    e->ev.family = NULL;
    if (!e->ev.needs_members) return;
    m->integrals.n = integrals;
    m->sets.n = sets;
    m->nset = nset;
    m->nbound = nbound;
    members w = {e, c, n, node, body, 0, false};
    for (int32_t i = 0; i < c->ninst && !w.stop; i++) {
        class_scope *s = c->inst.n ? class_scope_new(e, c, (address){.base = i}, false) : work_of(c)->own;
        members_level(&w, &s->base, 0);
    }
    e->ev.family = NULL;
    e->ev.needs_members = false;
}

/* ---- small things ---- */

mfamily *family_add(elab *e, mfamilies *to, mclass *c, const index_names *over, const ast *node, int nout, bool rows)
{
    mfamily *f = vec_push(e->m->a, to);
    *f = (mfamily){.over = *over, .nout = nout, .at = node->at, .decl = node, .of = c};
    f->out = arena_array(e->m->a, ir_ref, nout ? nout : 1);
    if (rows) f->row = arena_array(e->m->a, address, nout ? nout : 1);
    return f;
}

bool value_address(elab *e, const value *v, in_kind kind, address *at)
{
    const ir_input *in = v_is_scalar(v) && v->num.r0 ? ir_input_of(e->m->g, v->num.r0) : NULL;
    if (!in || in->kind != kind) return false;
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

#define BIT(k) (1u << (k))
enum { MOVING = BIT(IN_TIME) | BIT(IN_Q) | BIT(IN_V) | BIT(IN_A) | BIT(IN_PRE) | BIT(IN_PAST_Q) | BIT(IN_PAST_V) | BIT(IN_SET) | BIT(IN_COORD) | BIT(IN_FIELD) | BIT(IN_INTEGRAL) | BIT(IN_ROD) };

/* ---- parameters ---- */

static void param_bound(elab *e, mclass *c, mparam *p)
{
    const ast *b = p->decl->kid[0];
    if (!b) return;
    value r = eval(&e->ev, &work_of(c)->own->base, b);
    if (r.kind == V_ERROR) return;
    if (r.kind != V_RANGE || !v_scalar(r.range.lo, &p->lo) || !v_scalar(r.range.hi, &p->hi)) {
        diag *d = diag_error(e->m->d, DIAG_TYPE, b->at, "the bound of a parameter is a range of numbers");
        diag_hint(e->m->d, d, "param %s in 0..1 = 0.5", p->name);
    }
}

/* a family of values that go to parameters: row = offset + instance*size + k */
static void param_family(elab *e, mclass *c, const index_names *over, const ast *node, const mparam *p, address inst, const value *v)
{
    mfamily *f = family_add(e, &e->m->defaults, c, over, node, p->size, true);
    for (int32_t k = 0; k < p->size; k++) {
        value x = v_element(v, k);
        f->out[k] = v_ref(e->m->g, &x);
        f->row[k] = (address){.base = p->offset + k + inst.base * p->size};
        for (int m = 0; m < MAX_INDEX; m++) f->row[k].stride[m] = inst.stride[m] * p->size;
    }
}

static bool known_before(elab *e, const value *v, const char *what, span at)
{
    for (int32_t k = 0; k < v_count(v); k++) {
        value x = v_element(v, k);
        if (!x.num.r0 || !depends_on(e->m->g, x.num.r0, MOVING)) continue;
        diag_error(e->m->d, DIAG_NOT_CONSTANT, at, "%s must be known before the run: it may hang on parameters, not on time or degrees of freedom", what);
        return false;
    }
    return true;
}

static void param_default(elab *e, mclass *c, mparam *p)
{
    if (p->structural) {
        static const index_names none = {0};
        if (p->offset < 0) {
            p->offset = e->m->nparam;
            p->size = 1;
            e->m->nparam += c->ninst;
        }
        value v = v_num(p->fixed);
        param_family(e, c, c->inst.n ? &c->inst : &none, p->decl, p, class_own_instance(c), &v);
        p->has_default = true;
        return;
    }
    if (!p->has_default) return;
    e->ev.family = &c->inst;
    value v = eval(&e->ev, &work_of(c)->own->base, p->decl->kid[1]);
    e->ev.family = NULL;
    if (v.kind == V_NUM && known_before(e, &v, "the value of a parameter", p->decl->kid[1]->at))
        param_family(e, c, &c->inst, p->decl->kid[1], p, class_own_instance(c), &v);
}

typedef struct { mpart *p; mparam *to; } part_arg;

/* the instance of a part's class that stands at the part's index in the container's instance at hand */
static address part_instance(const mclass *c, const mpart *p, const index_names *over, scope *in, elab *e)
{
    address a = {.base = p->first};
    (void)in; (void)e;
    if (over->n == 0) return a;
    int k = 0;
    if (c->inst.n) a.stride[k++] = p->per;
    if (p->indexed && k < over->n) {
        a.stride[k] = 1;
        a.base -= p->lo;
    }
    return a;
}

/* when members are written out, the part's index and the container's instance are numbers in the scope */
static address part_instance_at(elab *e, mclass *c, const mpart *p, const index_names *over, scope *in)
{
    if (over->n || (!p->indexed && !c->inst.n)) return part_instance(c, p, over, in, e);
    address a = {.base = p->first};
    for (scope *s = in; s; s = s->up) {
        value v;
        double k;
        if (p->indexed && s->find(s, &e->ev, p->decl->kid[0]->kid[0]->name, SPAN_NONE, &v) == LOOK_YES && v_scalar(&v, &k)) {
            a.base += (int32_t)k - p->lo;
            break;
        }
    }
    for (scope *s = in; s; s = s->up)
        if (s->of == e && s->find == work_of(c)->own->base.find && ((class_scope *)s)->c == c) a.base += ((class_scope *)s)->inst.base * p->per;
    return a;
}

static const mpart *part_of(const mclass *c, const ast *part)
{
    for (size_t i = 0; i < c->parts.n; i++)
        if (c->parts.at[i]->decl == part) return c->parts.at[i];
    return NULL;
}

/* `node` is the ARG; its part is found through the class */
static const ast *arg_part(const mclass *c, const ast *arg)
{
    for (size_t i = 0; i < c->parts.n; i++) {
        const ast *s = c->parts.at[i]->decl;
        for (uint32_t k = 0; k < s->kid[2]->n; k++)
            if (s->kid[2]->kid[k] == arg) return s;
        for (uint32_t k = 0; s->kid[3] && k < s->kid[3]->n; k++)
            if (s->kid[3]->kid[k] == arg) return s;
    }
    return NULL;
}

static void part_arg_body(elab *e, mclass *c, scope *in, const index_names *over, const ast *arg)
{
    const mpart *p = part_of(c, arg_part(c, arg));
    const mdecl *d = class_find(p->of, arg->name);
    value v = eval(&e->ev, in, arg->kid[0]);
    if (v.kind == V_ERROR || e->ev.needs_members) return;
    mparam *to = d->param;
    if (v.kind != V_NUM || v_count(&v) != to->size) {
        diag_error(e->m->d, DIAG_SHAPE, arg->at, "parameter '%s' takes %d numbers, not %s", to->name, to->size, v_kind_text(e->m->a, &v));
        return;
    }
    if (!eval_same_unit(&e->ev, v.num.unit, to->unit, arena_printf(e->m->a, "parameter '%s' has another dimension", to->name), arg->at)) return;
    if (!known_before(e, &v, "the value of a parameter", arg->at)) return;
    to->has_default = true;
    param_family(e, c, over, arg, to, part_instance_at(e, c, p, over, in), &v);
}

/* values that containers give to the parameter p of class c */
static void param_overrides(elab *e, mclass *c, const mparam *p)
{
    for (size_t i = 0; i < e->m->classes.n; i++) {
        mclass *holder = e->m->classes.at[i];
        for (size_t k = 0; k < holder->parts.n; k++) {
            const mpart *part = holder->parts.at[k];
            const ast *args = part->decl->kid[2];
            for (uint32_t j = 0; part->of == c && j < args->n; j++) {
                if (args->kid[j]->name != p->name || p->structural) continue;
                nest n = {0};
                if (nest_add(e, &n, part->decl->kid[0], NULL)) over_nest(e, holder, &n, args->kid[j], part_arg_body);
            }
        }
    }
}

void elab_params(elab *e, mclass *c)
{
    for (size_t i = 0; i < c->params.n; i++) {
        value v;
        param_bound(e, c, c->params.at[i]);
        work_of(c)->own->base.find(&work_of(c)->own->base, &e->ev, c->params.at[i]->name, c->params.at[i]->at, &v);
    }
    for (size_t i = 0; i < c->params.n; i++)
        if (c->params.at[i]->structural) param_default(e, c, c->params.at[i]);
    for (size_t i = 0; i < work_of(c)->order.n; i++) {
        mparam *p = work_of(c)->order.at[i];
        param_default(e, c, p);
        if (c != e->m->classes.at[0]) param_overrides(e, c, p);
    }
}

/* ---- initial values ---- */

/* Values for all elements of a dof: one vector for a whole dof, or a family over its indices. */
static void init_family(elab *e, mclass *c, const index_names *over, const ast *node, const mdof *d, int primes, address at, int32_t count, const value *v)
{
    mfamily *f = family_add(e, primes ? &e->m->init_v : &e->m->init_q, c, over, node, count, true);
    for (int32_t k = 0; k < count; k++) {
        value x = v_count(v) == 1 ? v_element(v, 0) : v_element(v, k % v_count(v));
        f->out[k] = v_ref(e->m->g, &x);
        f->row[k] = at;
        f->row[k].base += k;
    }
    (void)d;
}

static bool init_value_ok(elab *e, const mdof *d, int primes, const value *v, int32_t count, const ast *expr)
{
    int32_t comp = d->comp ? d->comp : 1;
    if (v->kind == V_ERROR) return false;
    if (v->kind != V_NUM || (v_count(v) != count && v_count(v) != comp && !(v->num.rank == 0 && comp == 1))) {
        diag_error(e->m->d, DIAG_SHAPE, expr->at, "the initial value of '%s' has %d components, not %s", d->name, count, v_kind_text(e->m->a, v));
        return false;
    }
    dim s = dim_none(), want = d->unit;
    s.e[2] = DIM_ONE;
    if (primes) want = dim_div(want, s);
    if (!eval_same_unit(&e->ev, v->num.unit, want, arena_printf(e->m->a, "the initial %s of '%s' has another dimension", primes ? "rate" : "value", d->name), expr->at)) return false;
    return known_before(e, v, "an initial value", expr->at);
}

static mdof *item_dof(const mclass *c, const ast *item)
{
    const mdecl *d = class_find(c, item->name);
    return d && d->kind == DECL_DOF ? d->dof : NULL;
}

/* an item with its own named indices: one output set for each member */
static void init_indexed_body(elab *e, mclass *c, scope *in, const index_names *over, const ast *item)
{
    mdof *d = item_dof(c, item);
    int primes = (int)item->num, own = (int)item->kid[0]->n;
    value v = eval(&e->ev, in, item->kid[2]);
    if (e->ev.needs_members) return;
    int32_t comp = d->comp ? d->comp : 1;
    if (primes == 0 && v.kind == V_NUM && d->unit.any) d->unit = v.num.unit;
    if (!init_value_ok(e, d, primes, &v, comp, item->kid[2])) return;
    value ix[MAX_INDEX], dofs = {.kind = V_DOFS};
    for (int i = 0; i < own; i++) ix[i] = eval(&e->ev, in, &(ast){.kind = AST_NAME, .name = item->kid[0]->kid[i]->name, .at = item->at});
    address inst = class_own_instance(c);
    for (scope *s = in; s; s = s->up)
        if (s->find == work_of(c)->own->base.find && ((class_scope *)s)->c == c) inst = ((class_scope *)s)->inst;
    dofs.dofs.dof = d;
    dofs.dofs.at.base = c->qbase + d->offset + inst.base * c->qsize;
    for (int k = 0; k < MAX_INDEX; k++) dofs.dofs.at.stride[k] = inst.stride[k] * c->qsize;
    value el = eval_subscript(&e->ev, &dofs, ix, (size_t)own, item->at);
    address at;
    value first = el.kind == V_NUM ? v_element(&el, 0) : el;
    if (el.kind == V_ERROR || !value_address(e, &first, IN_Q, &at)) return;
    init_family(e, c, over, item, d, primes, at, comp, &v);
}

static void init_whole(elab *e, mclass *c, mdof *d, const ast *item)
{
    int primes = (int)item->num;
    address at = {.base = c->qbase + d->offset};
    if (c->inst.n) at.stride[0] = c->qsize;
    e->ev.family = &c->inst;
    value v = eval(&e->ev, &work_of(c)->own->base, item->kid[2]);
    e->ev.family = NULL;
    if (primes == 0 && v.kind == V_NUM && d->unit.any) d->unit = v.num.unit;
    if (!init_value_ok(e, d, primes, &v, d->size, item->kid[2])) return;
    int32_t comp = d->comp ? d->comp : 1;
    if (v_count(&v) == d->size || d->size <= 64 || c->inst.n || d->ndim != 1) {
        init_family(e, c, &c->inst, item, d, primes, at, d->size, &v);
        return;
    }
    /* the same value for each of many members: one family over them */
    index_names over = {.n = 1, .name = {sym_str(e->m->names, "(member)")}};
    over.set = (index_set){.n = 1, .count = d->n[0]};
    over.set.r[0] = (index_range){.lo = 0, .hi = d->n[0] - 1};
    at.stride[0] = comp;
    init_family(e, c, &over, item, d, primes, at, comp, &v);
}

static void init_item(elab *e, mclass *c, const ast *item)
{
    mdof *d = item_dof(c, item);
    if (!d || d->size == 0) return;
    const ast *dims = item->kid[0];
    bool named = dims->n > 0 && dims->kid[0]->kind == AST_INDEX;
    if (item->num > 1) {
        diag *err = diag_error(e->m->d, DIAG_TYPE, item->at, "second derivatives have no initial value: they follow from the equations");
        diag_hint(e->m->d, err, "write the equation as a statement of its own, without `dof`");
        return;
    }
    if (!item->kid[2]) return;
    int which = item->num > 0;
    if (d->has_init[which]) {
        diag_error(e->m->d, DIAG_DUPLICATE, item->at, "the initial %s of '%s' is given twice", which ? "rate" : "value", d->name);
        return;
    }
    d->has_init[which] = true;
    if (!named) {
        init_whole(e, c, d, item);
        return;
    }
    nest n = {0};
    if (nest_add(e, &n, dims, NULL)) over_nest(e, c, &n, item, init_indexed_body);
}

/* the dimension of a dof is that of its initial value, which is looked at when the dof is first met */
value dof_unit_of(elab *e, mclass *c, mdof *d)
{
    if (d->size == 0 && d->ndim == 0) return v_error();
    if (d->has_init[0] || !d->decl->kid[2]) return v_num(0);
    const index_names *family = e->ev.family;
    bool needs = e->ev.needs_members;
    init_item(e, c, d->decl);
    e->ev.family = family;
    e->ev.needs_members = needs;
    return v_num(0);
}

/* part small[i in 1..3]: disk { p = …, p' = … } */
static void part_init_body(elab *e, mclass *c, scope *in, const index_names *over, const ast *set)
{
    const mpart *p = part_of(c, arg_part(c, set));
    const ast *key = set->kid[0];
    int primes = 0;
    while (key->kind == AST_PRIME) key = key->kid[0], primes++;
    const mdecl *d = key->kind == AST_NAME ? class_find(p->of, key->name) : NULL;
    if (!d || d->kind != DECL_DOF || primes > 1) {
        diag *err = diag_error(e->m->d, DIAG_UNKNOWN_NAME, set->kid[0]->at, "model '%s' has no such degree of freedom", p->of->name);
        near n = near_to(key->kind == AST_NAME ? key->name : "");
        for (size_t i = 0; i < p->of->dofs.n; i++) near_try(&n, p->of->dofs.at[i]->name);
        diag_near(e->m->d, err, &n);
        return;
    }
    value v = eval(&e->ev, in, set->kid[1]);
    if (e->ev.needs_members || !init_value_ok(e, d->dof, primes, &v, d->dof->size, set->kid[1])) return;
    address inst = part_instance_at(e, c, p, over, in), at = {.base = p->of->qbase + d->dof->offset + inst.base * p->of->qsize};
    for (int k = 0; k < MAX_INDEX; k++) at.stride[k] = inst.stride[k] * p->of->qsize;
    init_family(e, c, over, set, d->dof, primes, at, d->dof->size, &v);
}

void elab_dofs(elab *e, mclass *c)
{
    for (uint32_t i = 0; i < c->decl->n; i++) {
        const ast *s = c->decl->kid[i];
        if (s->kind != AST_DOF) continue;
        for (uint32_t k = 0; k < s->kid[0]->n; k++) {
            const ast *item = s->kid[0]->kid[k];
            mdof *d = item_dof(c, item);
            if (!d) {
                if (item->num == 0) continue;               /* a duplicate: told */
                diag *err = diag_error(e->m->d, DIAG_UNKNOWN_NAME, item->name_at, "'%s' is no degree of freedom: its rate cannot be given", item->name);
                near n = near_to(item->name);
                for (size_t j = 0; j < c->dofs.n; j++) near_try(&n, c->dofs.at[j]->name);
                diag_near(e->m->d, err, &n);
            } else if (!(item == d->decl && d->has_init[0])) init_item(e, c, item);
        }
    }
    for (size_t i = 0; i < c->parts.n; i++) {
        const ast *s = c->parts.at[i]->decl, *block = s->kid[3];
        for (uint32_t k = 0; c->parts.at[i]->of && block && k < block->n; k++) {
            nest n = {0};
            if (nest_add(e, &n, s->kid[0], NULL)) over_nest(e, c, &n, block->kid[k], part_init_body);
        }
    }
}

/* ---- equations and energies ---- */

static bool both_sides(elab *e, scope *in, const ast *l, const ast *r, const char *what, span at, value *out)
{
    value a = eval(&e->ev, in, l), b = eval(&e->ev, in, r);
    if (a.kind == V_ERROR || b.kind == V_ERROR || e->ev.needs_members) return false;
    if (a.kind != V_NUM || b.kind != V_NUM) {
        const value *bad = a.kind != V_NUM ? &a : &b;
        diag_error(e->m->d, DIAG_TYPE, bad == &a ? l->at : r->at, "%s has numbers on both sides, not %s", what, v_kind_text(e->m->a, bad));
        return false;
    }
    if (a.num.rank == 1 && v_scalar(&b, &(double){0}) && b.num.d0 == 0) b = v_vector(e->m->a, a.num.n[0]);      /* u'' + K*u = 0 */
    if (a.num.rank != b.num.rank || v_count(&a) != v_count(&b)) {
        diag_error(e->m->d, DIAG_SHAPE, at, "the two sides have different sizes: %s and %s", v_kind_text(e->m->a, &a), v_kind_text(e->m->a, &b));
        return false;
    }
    if (!eval_same_unit(&e->ev, a.num.unit, b.num.unit, arena_printf(e->m->a, "the two sides of %s have different dimensions", what), at)) return false;
    *out = eval_op(&e->ev, OP_SUB, &a, &b, NULL, at);
    return out->kind == V_NUM;
}

static void equation_body(elab *e, mclass *c, scope *in, const index_names *over, const ast *s)
{
    value r;
    if (!both_sides(e, in, s->kid[0], s->kid[1], "an equation", s->at, &r)) return;
    mfamily *f = family_add(e, &e->m->equation, c, over, s, v_count(&r), true);
    for (int k = 0; k < f->nout; k++) {
        value x = v_element(&r, k);
        f->out[k] = v_ref(e->m->g, &x);
    }
}

static void inclusion_body(elab *e, mclass *c, scope *in, const index_names *over, const ast *s)
{
    value r;
    const ast *x = s->kid[0];
    if (!both_sides(e, in, x->kid[0], x->kid[1], "an inclusion", s->at, &r)) return;
    mfamily *f = family_add(e, &e->m->inclusion, c, over, s, v_count(&r), true);
    for (int k = 0; k < f->nout; k++) {
        value y = v_element(&r, k);
        f->out[k] = v_ref(e->m->g, &y);
    }
}

static void energy_body(elab *e, mclass *c, scope *in, const index_names *over, const ast *s)
{
    const char *what = s->kind == AST_KINETIC ? "a kinetic energy" : s->kind == AST_POTENTIAL ? "a potential" : "a dissipation";
    mfamilies *to = s->kind == AST_KINETIC ? &e->m->kinetic : s->kind == AST_POTENTIAL ? &e->m->potential : &e->m->dissipation;
    value v;
    if (!eval_scalar(&e->ev, in, s->kid[0], what, &v) || e->ev.needs_members) return;
    ir_ref r = v_ref(e->m->g, &v);
    unsigned bad = BIT(IN_A) | BIT(IN_PAST_Q) | BIT(IN_PAST_V) | BIT(IN_SET) | BIT(IN_INTEGRAL) | (s->kind == AST_POTENTIAL ? BIT(IN_V) : 0);
    if (depends_on(e->m->g, r, bad)) {
        diag *d = diag_error(e->m->d, DIAG_TYPE, s->kid[0]->at, s->kind == AST_POTENTIAL ? "a potential may hang on positions and time only" : "%s may hang on positions, rates and time only", what);
        diag_hint(e->m->d, d, "other forces are written as `force x: …`");
        return;
    }
    if (s->kind == AST_KINETIC && !depends_on(e->m->g, r, BIT(IN_V))) {
        diag_error(e->m->d, DIAG_EQUATION_NO_DOF, s->kid[0]->at, "this kinetic energy holds no rate");
        return;
    }
    family_add(e, to, c, over, s, 1, false)->out[0] = r;
}

static void force_body(elab *e, mclass *c, scope *in, const index_names *over, const ast *s)
{
    value q = eval(&e->ev, in, s->kid[0]), v = eval(&e->ev, in, s->kid[1]);
    if (q.kind == V_ERROR || v.kind == V_ERROR || e->ev.needs_members) return;
    address at;
    value q0 = q.kind == V_NUM && v_count(&q) ? v_element(&q, 0) : q;
    if (q.kind != V_NUM || !value_address(e, &q0, IN_Q, &at)) {
        diag *d = diag_error(e->m->d, DIAG_TYPE, s->kid[0]->at, "a force acts on a degree of freedom");
        diag_hint(e->m->d, d, "force x: 2*cos(t)");
        return;
    }
    if (v.kind != V_NUM || v_count(&v) != v_count(&q)) {
        diag_error(e->m->d, DIAG_SHAPE, s->kid[1]->at, "the force on %s has %d components, not %s", span_text(e->m->d, s->kid[0]->at, e->m->a), v_count(&q), v_kind_text(e->m->a, &v));
        return;
    }
    mfamily *f = family_add(e, &e->m->force, c, over, s, v_count(&v), true);
    for (int k = 0; k < f->nout; k++) {
        value x = v_element(&v, k), y = v_element(&q, k);
        f->out[k] = v_ref(e->m->g, &x);
        if (!value_address(e, &y, IN_Q, &f->row[k])) f->row[k] = at;
    }
}

/* ---- constraints ---- */

static const char *const contact_keys[] = {"impact", "friction", "slip", "normal", NULL};
typedef enum {
#define X(id, name, role, args, doc) LAW_##id,
#include "laws.def"
#undef X
    LAWS
} law_id;
typedef enum { ROLE_FRICTION, ROLE_IMPACT } law_role;
static const struct { const char *name; law_role role; const char *args; } law_list[] = {
#define X(id, name, role, args, doc) {name, ROLE_##role, args},
#include "laws.def"
#undef X
};

/* law(args) by name; -1 after an error */
static int law_of(elab *e, const ast *x, law_role role)
{
    const ast *name = x->kind == AST_CALL ? x->kid[0] : x;
    const char *what = role == ROLE_FRICTION ? "friction" : "impact";
    for (int k = 0; k < LAWS && name->kind == AST_NAME; k++)
        if (law_list[k].role == role && !strcmp(law_list[k].name, name->name)) {
            if (x->kind == AST_CALL && x->n == 2) return k;
            diag *d = diag_error(e->m->d, DIAG_ARITY, x->at, "the law '%s' takes one argument", law_list[k].name);
            diag_hint(e->m->d, d, "%s(%s)", law_list[k].name, law_list[k].args);
            return -1;
        }
    diag *d = name->kind == AST_NAME ? diag_error(e->m->d, DIAG_UNKNOWN_NAME, name->at, "unknown %s law '%s'", what, name->name)
                                     : diag_error(e->m->d, DIAG_TYPE, x->at, "a %s law is needed here", what);
    near n = near_to(name->kind == AST_NAME ? name->name : "");
    text list = {.a = e->m->a};
    for (int k = 0; k < LAWS; k++)
        if (law_list[k].role == role) {
            near_try(&n, law_list[k].name);
            text_printf(&list, "%s%s(%s)", list.n ? ", " : "", law_list[k].name, law_list[k].args);
        }
    if (near_best(&n)) diag_near(e->m->d, d, &n);
    else diag_hint(e->m->d, d, "%s = %s", what, list.at);
    return -1;
}

static void contact_impact(elab *e, scope *in, const ast *x, mcontact *c)
{
    int law = law_of(e, x, ROLE_IMPACT);
    if (law < 0) return;
    value v;
    c->impact = law == LAW_POISSON ? IMPACT_POISSON : IMPACT_NEWTON;
    c->e_at = x->kid[1]->at;
    if (!eval_scalar(&e->ev, in, x->kid[1], "the restitution", &v)) return;
    c->e = v_ref(e->m->g, &v);
}

static void contact_friction(elab *e, scope *in, const ast *x, mcontact *c)
{
    int law = law_of(e, x, ROLE_FRICTION);
    if (law < 0) return;
    const ast *arg = x->kid[1];
    bool angle = arg->kind == AST_ARG && !strcmp(arg->name, "angle");
    c->friction = law == LAW_TRESCA ? FRICTION_TRESCA : FRICTION_COULOMB;
    c->mu_at = arg->at;
    if (arg->kind == AST_ARG && (!angle || law == LAW_TRESCA)) {
        bool own = !strcmp(arg->name, law == LAW_TRESCA ? "s" : "mu");
        if (!own) {
            diag *d = diag_error(e->m->d, DIAG_UNKNOWN_OPTION, arg->name_at, "the law '%s' has no argument '%s'", law_list[law].name, arg->name);
            diag_hint(e->m->d, d, "%s(%s)", law_list[law].name, law_list[law].args);
            return;
        }
    }
    const ast *ex = arg->kind == AST_ARG ? arg->kid[0] : arg;
    value v = eval(&e->ev, in, ex);
    if (v.kind == V_FN) {
        value speed = v_node(ir_in(e->m->g, (ir_input){.kind = IN_SPEED}), dim_any());
        v = eval_call(&e->ev, in, &v, &speed, 1, ex->at);
    }
    if (v.kind == V_ERROR) return;
    if (!v_is_scalar(&v)) {
        diag_error(e->m->d, DIAG_TYPE, ex->at, "the friction is a number or a function of the slip speed, not %s", v_kind_text(e->m->a, &v));
        return;
    }
    c->mu = v_ref(e->m->g, &v);
    if (angle) c->mu = ir_op1(e->m->g, OP_TAN, c->mu);
}

static void contact_slip(elab *e, scope *in, const ast *x, mcontact *c)
{
    value v = eval(&e->ev, in, x);
    c->slip_at = x->at;
    c->slip_given = true;
    if (v.kind == V_ERROR || e->ev.needs_members) return;
    if (v.kind != V_NUM || v.num.rank > 1 || v_count(&v) > MAX_SLIP) {
        diag_error(e->m->d, DIAG_SHAPE, x->at, "the slip is a velocity: a number or a vector of at most %d, not %s", MAX_SLIP, v_kind_text(e->m->a, &v));
        return;
    }
    bool moves = false;
    for (int k = 0; k < v_count(&v); k++) {
        value y = v_element(&v, k);
        c->slip[k] = v_ref(e->m->g, &y);
        moves = moves || depends_on(e->m->g, c->slip[k], BIT(IN_V) | BIT(IN_ROD));
    }
    c->nslip = v_count(&v);
    if (!moves) {
        diag *d = diag_error(e->m->d, DIAG_FRICTION_NO_SLIP, x->at, "the slip holds no rate, so nothing slides");
        diag_hint(e->m->d, d, "slip is the relative velocity at the contact, for example x' - V");
    }
}

static void contact_attributes(elab *e, scope *in, const ast *block, mcontact *c)
{
    const ast *seen[4] = {0};
    for (uint32_t i = 0; block && i < block->n; i++) {
        const ast *set = block->kid[i], *key = set->kid[0];
        if (set->kind != AST_SET) continue;
        int k = 0;
        while (contact_keys[k] && !(key->kind == AST_NAME && !strcmp(key->name, contact_keys[k]))) k++;
        if (!contact_keys[k]) {
            const char *got = key->kind == AST_NAME ? key->name : "";
            diag *d = diag_error(e->m->d, DIAG_UNKNOWN_ATTRIBUTE, key->at, "a constraint has no attribute '%s'", *got ? got : span_text(e->m->d, key->at, e->m->a));
            near n = near_to(got);
            for (int j = 0; contact_keys[j]; j++) near_try(&n, contact_keys[j]);
            if (near_best(&n)) diag_near(e->m->d, d, &n);
            else diag_hint(e->m->d, d, "it has impact, friction, slip and normal");
            continue;
        }
        if (seen[k]) {
            diag *d = diag_error(e->m->d, DIAG_DUPLICATE, key->at, "'%s' is given twice", contact_keys[k]);
            diag_second(e->m->d, d, seen[k]->at, "first given here");
            continue;
        }
        seen[k] = key;
        value v;
        switch (k) {
        case 0: contact_impact(e, in, set->kid[1], c); break;
        case 1: contact_friction(e, in, set->kid[1], c); break;
        case 2: contact_slip(e, in, set->kid[1], c); break;
        case 3: if (eval_scalar(&e->ev, in, set->kid[1], "the normal force", &v)) c->normal = v_ref(e->m->g, &v); break;
        }
    }
}

/* gap >= 0 from g <= 0, g >= 0 or g = 0 */
static bool contact_relation_of(elab *e, scope *in, const ast *rel, mcontact *c)
{
    value gap;
    if (!rel) {
        c->relation = REL_CLOSED;
        return true;
    }
    bool eq = rel->kind == AST_SET, le = rel->kind == AST_BINARY && rel->op == OP_LE, ge = rel->kind == AST_BINARY && rel->op == OP_GE;
    if (!eq && !le && !ge) {
        diag *d = diag_error(e->m->d, DIAG_SYNTAX, rel->at, rel->kind == AST_BINARY && rel->op == OP_EQ ? "a bilateral constraint is written with a single '='" : "a constraint reads g <= 0, g >= 0 or g = 0");
        if (rel->kind == AST_BINARY && (rel->op == OP_LT || rel->op == OP_GT)) diag_hint(e->m->d, d, "touching is allowed: write '%s='", op_name(rel->op));
        return false;
    }
    c->relation = eq ? REL_BILATERAL : REL_GAP;
    if (!both_sides(e, in, rel->kid[le ? 1 : 0], rel->kid[le ? 0 : 1], "a constraint", rel->at, &gap)) return false;
    if (!v_is_scalar(&gap)) {
        diag *d = diag_error(e->m->d, DIAG_SHAPE, rel->at, "a constraint is a single condition, not %s", v_kind_text(e->m->a, &gap));
        diag_hint(e->m->d, d, "write it as a family: constraint c[i in 1..%d]: … ", v_count(&gap));
        return false;
    }
    c->gap = v_ref(e->m->g, &gap);
    if (depends_on(e->m->g, c->gap, BIT(IN_V) | BIT(IN_A) | BIT(IN_SET))) {
        diag_error(e->m->d, DIAG_TYPE, rel->at, "a constraint bounds positions: it may not hold rates");
        return false;
    }
    if (!depends_on(e->m->g, c->gap, BIT(IN_Q) | BIT(IN_ROD))) {
        diag_error(e->m->d, DIAG_CONSTRAINT_NO_DOF, rel->at, "this constraint does not depend on any degree of freedom");
        return false;
    }
    return true;
}

static const char *class_path(elab *e, const mclass *c, sym name)
{
    if (c == e->m->classes.at[0]) return name;
    for (size_t i = 0; i < e->m->classes.n; i++)
        for (size_t k = 0; k < e->m->classes.at[i]->parts.n; k++)
            if (e->m->classes.at[i]->parts.at[k]->of == c && c->ninst == 1)
                return class_path(e, e->m->classes.at[i], arena_printf(e->m->a, "%s.%s", e->m->classes.at[i]->parts.at[k]->name, name));
    return arena_printf(e->m->a, "%s.%s", c->name, name);
}

static void contact_consistent(elab *e, const mcontact *c, const ast *s)
{
    diags *d = e->m->d;
    if (c->relation == REL_CLOSED && !c->normal) {
        diag *x = diag_error(d, DIAG_SYNTAX, s->name_at, "constraint '%s' has neither a gap nor a normal force", c->name);
        diag_hint(d, x, "write `constraint %s: g <= 0`, or give normal = … for a contact that is always closed", c->name);
    } else if (c->relation != REL_CLOSED && c->normal) {
        diag_error(d, DIAG_MIXED_FORMS, s->name_at, "constraint '%s' has a gap, so its normal force is not given but found", c->name);
    } else if (c->friction != FRICTION_NONE && !c->slip_given && (c->relation == REL_CLOSED || e->m->nq < 2) && !e->m->rods.n) {
        diag *x = diag_error(d, DIAG_FRICTION_NO_SLIP, c->mu_at, "friction on '%s' has nothing to slide along", c->name);
        diag_hint(d, x, c->relation == REL_CLOSED ? "give slip = …, the relative velocity at the contact" : "a single degree of freedom leaves no tangent direction: give slip = …, or drop the friction");
    } else if (c->slip_given && c->friction == FRICTION_NONE) {
        diag_warn(d, DIAG_WARN_UNUSED, c->slip_at, "constraint '%s' has a slip but no friction", c->name);
    }
}

static void constraint_body(elab *e, mclass *c, scope *in, const index_names *over, const ast *s)
{
    mcontact k = {.name = s->name, .decl = s, .at = s->at, .of = c, .over = *over};
    k.own = over->n - (over->n ? c->inst.n : 0);
    size_t errors = e->m->d->errors;
    bool ok = contact_relation_of(e, in, s->kid[2], &k);
    if (!e->ev.needs_members) contact_attributes(e, in, s->kid[3], &k);
    if (!ok || e->ev.needs_members || e->m->d->errors != errors) return;
    contact_consistent(e, &k, s);
    k.path = class_path(e, c, s->name);
    *vec_push(e->m->a, &e->m->contacts) = k;
}

/* ---- events, histories ---- */

static void collect_switches(elab *e, ir_ref r, mevent *v, int depth)
{
    const ir_node *n = ir_at(e->m->g, r);
    if (depth > 100) return;
    ir_ref a = n->a, b = n->b;
    switch (n->op) {
    case OP_AND: case OP_OR:
        collect_switches(e, a, v, depth + 1);
        collect_switches(e, b, v, depth + 1);
        break;
    case OP_NOT: collect_switches(e, a, v, depth + 1); break;
    case OP_LT: case OP_LE: case OP_GT: case OP_GE: case OP_EQ: case OP_NE:
        v->switches = arena_grow(e->m->a, v->switches, (size_t)v->nswitch * sizeof(ir_ref), ((size_t)v->nswitch + 1) * sizeof(ir_ref));
        v->switches[v->nswitch++] = ir_op2(e->m->g, OP_SUB, a, b);
        break;
    default: break;
    }
}

static bool event_targets(elab *e, scope *in, const ast *block, mevent *v)
{
    int cap = 0;
    for (uint32_t i = 0; i < block->n; i++) {
        const ast *set = block->kid[i];
        if (set->kind != AST_SET) continue;
        value to = eval(&e->ev, in, set->kid[0]), x = eval(&e->ev, in, set->kid[1]);
        if (to.kind == V_ERROR || x.kind == V_ERROR || e->ev.needs_members) return false;
        if (x.kind != V_NUM || to.kind != V_NUM || v_count(&to) != v_count(&x)) {
            diag_error(e->m->d, DIAG_SHAPE, set->at, "the two sides of a reset have different sizes");
            return false;
        }
        for (int32_t k = 0; k < v_count(&to); k++, v->nset++) {
            value el = v_element(&to, k), xe = v_element(&x, k);
            if (v->nset == cap) {
                int n = cap ? 2 * cap : 4;
                v->target = arena_grow(e->m->a, v->target, (size_t)cap * sizeof(address), (size_t)n * sizeof(address));
                v->rate = arena_grow(e->m->a, v->rate, (size_t)cap * sizeof(bool), (size_t)n * sizeof(bool));
                v->value = arena_grow(e->m->a, v->value, (size_t)cap * sizeof(ir_ref), (size_t)n * sizeof(ir_ref));
                cap = n;
            }
            v->rate[v->nset] = value_address(e, &el, IN_V, &v->target[v->nset]);
            if (!v->rate[v->nset] && !value_address(e, &el, IN_Q, &v->target[v->nset])) {
                diag_error(e->m->d, DIAG_TYPE, set->kid[0]->at, "an event sets a degree of freedom or its rate");
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
    mevent v = {.at = s->at, .decl = s, .stop = s->kind == AST_STOP, .over = *over};
    value w = eval(&e->ev, in, s->kid[0]);
    if (w.kind == V_ERROR || e->ev.needs_members) return;
    if (w.kind != V_BOOL) {
        diag_error(e->m->d, DIAG_TYPE, s->kid[0]->at, "'when' takes a condition, not %s", v_kind_text(e->m->a, &w));
        return;
    }
    v.when = v_ref(e->m->g, &w);
    if (!v.stop && !event_targets(e, in, s->kid[1], &v)) return;
    collect_switches(e, v.when, &v, 0);
    *vec_push(e->m->a, &e->m->events) = v;
}

static void history_body(elab *e, mclass *c, scope *in, const index_names *over, const ast *s)
{
    const mdecl *d = class_find(c, s->name);
    if (!d || d->kind != DECL_DOF) {
        diag *err = diag_error(e->m->d, DIAG_UNKNOWN_NAME, s->name_at, "'%s' is no degree of freedom", s->name);
        near n = near_to(s->name);
        for (size_t i = 0; i < c->dofs.n; i++) near_try(&n, c->dofs.at[i]->name);
        diag_near(e->m->d, err, &n);
        return;
    }
    table_scope *t = table_scope_new(e->m->a, in);
    table_scope_set(t, s->kid[1]->name, v_node(ir_in(e->m->g, (ir_input){.kind = IN_BOUND, .at.base = e->m->nbound++}), dim_any()));
    value v = eval(&e->ev, &t->base, s->kid[2]);
    if (v.kind == V_ERROR || e->ev.needs_members) return;
    value dofs = {.kind = V_DOFS}, ix[MAX_INDEX];
    dofs.dofs.dof = d->dof;
    dofs.dofs.at.base = c->qbase + d->dof->offset;
    if (c->inst.n) dofs.dofs.at.stride[0] = c->qsize;
    size_t own = s->kid[0]->n;
    for (size_t i = 0; i < own; i++) ix[i] = eval(&e->ev, in, &(ast){.kind = AST_NAME, .name = s->kid[0]->kid[i]->name, .at = s->at});
    if (own) dofs = eval_subscript(&e->ev, &dofs, ix, own, s->at);
    else if (d->dof->ndim) {
        dofs = eval(&e->ev, in, &(ast){.kind = AST_NAME, .name = s->name, .at = s->name_at});
    } else dofs = eval_subscript(&e->ev, &dofs, NULL, 0, s->at);
    if (dofs.kind != V_NUM) return;
    if (v.kind != V_NUM || v_count(&v) != v_count(&dofs)) {
        diag_error(e->m->d, DIAG_SHAPE, s->kid[2]->at, "the history of '%s' has %d components, not %s", s->name, v_count(&dofs), v_kind_text(e->m->a, &v));
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

static void statement(elab *e, mclass *c, nest n, const ast *s)
{
    family_body *body = NULL;
    switch (s->kind) {
    case AST_FOR:
        if (!nest_add(e, &n, s->kid[0], s->kid[1])) return;
        for (uint32_t i = 0; i < s->kid[2]->n; i++) statement(e, c, n, s->kid[2]->kid[i]);
        return;
    case AST_CONSTRAINT:
        if (!nest_add(e, &n, s->kid[0], s->kid[1])) return;
        body = constraint_body;
        break;
    case AST_SET: body = e->m->coords.n ? NULL : equation_body; break;
    case AST_EXPR: body = s->kid[0]->kind == AST_IN ? inclusion_body : NULL; break;
    case AST_KINETIC: case AST_POTENTIAL: case AST_DISSIPATION: body = energy_body; break;
    case AST_FORCE:
        if (elab_rod_force(e, c, s)) return;
        body = force_body;
        break;
    case AST_WHEN: case AST_STOP: body = event_body; break;
    case AST_HISTORY:
        if (!nest_add(e, &n, s->kid[0], NULL)) return;
        body = history_body;
        break;
    case AST_ERROR: return;
    default: break;
    }
    if (body) over_nest(e, c, &n, s, body);
    else elab_field_statement(e, c, &n, s);
}

void elab_statements(elab *e, mclass *c)
{
    for (size_t i = 0; i < work_of(c)->statements.n; i++) statement(e, c, (nest){0}, work_of(c)->statements.at[i]);
}
