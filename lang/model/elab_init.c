/* elab_init: values of parameters and initial values of degrees of freedom, arguments of parts included. */
#include "base/tolerances.h"
#include "elab.h"
#include <math.h>
#include "base/rotation.h"
#include "base/whole.h"

/* ---- parameters ---- */

static void param_bound(elab *e, mclass *c, mparam *p)
{
    const ast *b = p->decl->kid[0];
    if (!b)
        return;
    value r = eval(&e->ev, &work_of(c)->own->base, b);
    if (r.kind == V_ERROR)
        return;
    if (r.kind != V_RANGE || !v_scalar(r.range.lo, &p->lo) || !v_scalar(r.range.hi, &p->hi)) {
        diag *d = diag_error(e->m->d, DIAG_TYPE, b->at,
                             "the bounds of a parameter must be a range of numbers");
        diag_hint(e->m->d, d, "param %s in 0..1 = 0.5", p->name);
    } else if (p->lo > p->hi) {
        diag_error(e->m->d, DIAG_PARAM_BOUND, b->at, "no value of '%s' lies in this range: it is empty",
                   p->name);
        p->lo = -INFINITY, p->hi = INFINITY;
    }
}

/* a family of values that go to parameters: row = offset + instance*size + k */
static void param_family(elab *e, mclass *c, const index_names *over, const ast *node, const mparam *p,
                         address inst, const value *v)
{
    mfamily *f = family_add(e, &e->m->defaults, c, over, node, p->size, true);
    for (int32_t k = 0; k < p->size; k++) {
        value x = v_element(v, k);
        f->out[k] = v_ref(e->m->g, &x);
        f->row[k] = (address){ .base = p->offset + k + inst.base * p->size };
        for (int m = 0; m < MAX_INDEX; m++)
            f->row[k].stride[m] = inst.stride[m] * p->size;
    }
}

/* `other`: inputs that are known by then */
static bool known_before(elab *e, const value *v, unsigned other, const char *what, const char *may, span at)
{
    for (int32_t k = 0; k < v_count(v); k++) {
        value x = v_element(v, k);
        if (!x.num.r0 || !depends_on(e->m->g, x.num.r0, MOVING & ~other))
            continue;
        diag_error(e->m->d, DIAG_NOT_CONSTANT, at, "%s must be known before the run: it may depend on %s",
                   what, may);
        return false;
    }
    return true;
}

static const char param_may[] = "parameters, not on time or degrees of freedom";

static void param_default(elab *e, mclass *c, mparam *p)
{
    if (p->structural) {
        if (p->offset < 0) {
            p->offset = e->m->nparam;
            p->size = 1;
            e->m->nparam += c->ninst;
        }
        value v = v_num(p->fixed);
        param_family(e, c, c->inst.n ? &c->inst : &single_member, p->decl, p, class_own_instance(c), &v);
        p->has_default = true;
        return;
    }
    if (!p->has_default)
        return;
    e->ev.family = &c->inst;
    value v = eval(&e->ev, &work_of(c)->own->base, p->decl->kid[1]);
    e->ev.family = NULL;
    if (v.kind == V_NUM && known_before(e, &v, 0, "the value of a parameter", param_may, p->decl->kid[1]->at))
        param_family(e, c, &c->inst, p->decl->kid[1], p, class_own_instance(c), &v);
}

/* The instance of a part's class at the part's index in the current instance of the container. */
static address part_instance(elab *e, mclass *c, const mpart *p, const index_names *over, scope *in)
{
    address holder = instance_at(c, in), a = { .base = p->first + holder.base * p->per };
    for (int k = 0; k < MAX_INDEX; k++)
        a.stride[k] = holder.stride[k] * p->per;
    if (!p->indexed)
        return a;
    a.base -= p->lo;
    value v;
    double k;
    int64_t whole;
    look found = LOOK_NO;
    for (scope *s = in; s && found == LOOK_NO; s = s->up)
        found = s->find(s, &e->ev, p->decl->kid[0]->kid[0]->name, p->decl->at, &v);
    if (found == LOOK_YES && v_scalar(&v, &k) && whole_number(k, INT32_MIN / 2, INT32_MAX / 2, &whole))
        a.base += (int32_t)whole;
    else
        a.stride[over->n - 1] += 1;
    return a;
}

static const mpart *part_of(const mclass *c, const ast *part)
{
    for (size_t i = 0; i < c->parts.n; i++)
        if (c->parts.at[i]->decl == part)
            return c->parts.at[i];
    return NULL;
}

/* `node` is the ARG; its part is found through the class */
static const ast *arg_part(const mclass *c, const ast *arg)
{
    for (size_t i = 0; i < c->parts.n; i++) {
        const ast *s = c->parts.at[i]->decl;
        for (uint32_t k = 0; k < s->kid[2]->n; k++)
            if (s->kid[2]->kid[k] == arg)
                return s;
        for (uint32_t k = 0; s->kid[3] && k < s->kid[3]->n; k++)
            if (s->kid[3]->kid[k] == arg)
                return s;
    }
    return NULL;
}

static void part_arg_body(elab *e, mclass *c, scope *in, const index_names *over, const ast *arg)
{
    const mpart *p = part_of(c, arg_part(c, arg));
    const mdecl *d = class_find(p->of, arg->name);
    e->of_param_at = arg->kid[0]->at;
    e->of_param++;
    value v = eval(&e->ev, in, arg->kid[0]);
    e->of_param--;
    if (v.kind == V_ERROR || e->ev.needs_members)
        return;
    mparam *to = d->param;
    if (v.kind != V_NUM || v_count(&v) != to->size) {
        diag_error(e->m->d, DIAG_SHAPE, arg->at, "parameter '%s' takes %d numbers, not %s", to->name,
                   to->size, v_kind_text(e->m->a, &v));
        return;
    }
    if (!eval_same_unit(&e->ev, v.num.unit, to->unit,
                        arena_printf(e->m->a, "parameter '%s' has another dimension", to->name), arg->at))
        return;
    if (!known_before(e, &v, 0, "the value of a parameter", param_may, arg->at))
        return;
    to->has_default = true;
    param_family(e, c, over, arg, to, part_instance(e, c, p, over, in), &v);
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
                if (args->kid[j]->name != p->name || p->structural)
                    continue;
                nest n = { 0 };
                if (nest_add(e, &n, part->decl->kid[0], NULL))
                    over_nest(e, holder, &n, args->kid[j], part_arg_body);
            }
        }
    }
}

void elab_params(elab *e, mclass *c)
{
    for (size_t i = 0; i < c->params.n; i++) {
        value v;
        param_bound(e, c, c->params.at[i]);
        work_of(c)->own->base.find(&work_of(c)->own->base, &e->ev, c->params.at[i]->name, c->params.at[i]->at,
                                   &v);
    }
    for (size_t i = 0; i < c->params.n; i++)
        if (c->params.at[i]->structural)
            param_default(e, c, c->params.at[i]);
    for (size_t i = 0; i < work_of(c)->order.n; i++) {
        mparam *p = work_of(c)->order.at[i];
        param_default(e, c, p);
        if (c != e->m->classes.at[0])
            param_overrides(e, c, p);
    }
}

/* ---- initial values ---- */

/* Values for all elements of a dof: one vector for a whole dof, or a family over its indices. */
static void init_family(elab *e, mclass *c, const index_names *over, const ast *node, const mdof *d,
                        int primes, address at, int32_t count, const value *v)
{
    mfamilies *to = primes ? &e->m->init_v : &e->m->init_q;
    if (d->rotation && !primes) { /* the bases: the rotation relative to them starts at 0 */
        to = &e->m->init_base;
        at = rotation_base(at);
        count *= 3;
    }
    mfamily *f = family_add(e, to, c, over, node, count, true);
    for (int32_t k = 0; k < count; k++) {
        value x = v_count(v) == 1 ? v_element(v, 0) : v_element(v, k % v_count(v));
        f->out[k] = v_ref(e->m->g, &x);
        f->row[k] = at;
        f->row[k].base += k;
    }
}

/* a rotation that is known now: an invalid matrix is found before the run */
static bool init_turns(elab *e, const mdof *d, const value *v, const ast *expr)
{
    double R[9];
    if (v->num.rank != 2 || v->num.n[0] != 3 || v->num.n[1] != 3) {
        diag *err = diag_error(e->m->d, DIAG_SHAPE, expr->at, "the initial value of '%s' must be %s, not %s",
                               d->name, "a rotation, a 3 x 3 matrix", v_kind_text(e->m->a, v));
        diag_hint(e->m->d, err, "write rot_x(a), rot_y(a), rot_z(a), products of them, or eye(3)");
        return false;
    }
    for (int32_t k = 0; k < 9; k++) {
        value x = v_element(v, k);
        if (!v_scalar(&x, &R[k]))
            return known_before(e, v, 0, "the initial value of a rotation", "parameters", expr->at);
    }
    if (rotation_defect(R) <= ROTATION_SLACK)
        return true;
    diag *err = diag_error(
        e->m->d, DIAG_ROTATION, expr->at,
        "the initial value of '%s' is not a rotation: its columns must have length 1, be at right angles "
        "and right-handed",
        d->name);
    diag_hint(e->m->d, err, "write rot_x(a), rot_y(a), rot_z(a), or products of them");
    return false;
}

static bool init_value_ok(elab *e, const mdof *d, int primes, const value *v, int32_t count, const ast *expr)
{
    int32_t comp = d->comp ? d->comp : 1;
    if (v->kind == V_ERROR)
        return false;
    if (v->kind == V_NUM && d->rotation && !primes)
        return init_turns(e, d, v, expr);
    if (v->kind != V_NUM || (v_count(v) != count && v_count(v) != comp && !(v->num.rank == 0 && comp == 1))) {
        value want = count == 1 && !d->comp ? v_num(0) : v_vector(e->m->a, count);
        diag *err = diag_error(e->m->d, DIAG_SHAPE, expr->at, "the initial value of '%s' must be %s, not %s",
                               d->name, v_kind_text(e->m->a, &want), v_kind_text(e->m->a, v));
        if (count == 1 && d->ndim == 1 && v->kind == V_NUM && v_count(v) == d->n[0])
            diag_hint(e->m->d, err,
                      "the value applies to each index; for all of them together write dof "
                      "%s[%d] = [...]",
                      d->name, d->n[0]);
        return false;
    }
    dim s = dim_none(), want = d->unit;
    s.e[2] = DIM_ONE;
    if (primes)
        want = dim_div(want, s);
    if (!eval_same_unit(&e->ev, v->num.unit, want,
                        arena_printf(e->m->a, "the initial %s of '%s' has another dimension",
                                     primes ? "rate" : "value", d->name),
                        expr->at))
        return false;
    return primes ? known_before(e, v, BIT(IN_Q) | BIT(IN_V) | BIT(IN_BASE), "an initial rate",
                                 "parameters and other initial values and rates", expr->at)
                  : known_before(e, v, BIT(IN_Q) | BIT(IN_BASE), "an initial value",
                                 "parameters and the initial values of others", expr->at);
}

static int item_primes(const ast *item)
{
    return (int)whole_clamp(item->num, 0, 3);
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
    int primes = item_primes(item), own = (int)item->kid[0]->n;
    value v = eval(&e->ev, in, item->kid[2]);
    if (e->ev.needs_members)
        return;
    int32_t comp = d->comp ? d->comp : 1;
    if (primes == 0 && v.kind == V_NUM && d->unit.any && !d->rotation)
        d->unit = v.num.unit;
    if (!init_value_ok(e, d, primes, &v, comp, item->kid[2]))
        return;
    value ix[MAX_INDEX], dofs = { .kind = V_DOFS };
    for (int i = 0; i < own; i++)
        ix[i] = eval(&e->ev, in,
                     &(ast){ .kind = AST_NAME, .name = item->kid[0]->kid[i]->name, .at = item->at });
    address inst = instance_at(c, in);
    dofs.dofs.dof = d;
    dofs.dofs.at.base = c->qbase + d->offset + inst.base * c->qsize;
    for (int k = 0; k < MAX_INDEX; k++)
        dofs.dofs.at.stride[k] = inst.stride[k] * c->qsize;
    value el = eval_subscript(&e->ev, &dofs, ix, (size_t)own, item->at);
    address at;
    value first = el.kind == V_NUM ? v_element(&el, 0) : el;
    if (el.kind == V_DOFS) /* a rotation, which is not a vector of its dofs */
        at = el.dofs.at;
    else if (el.kind == V_ERROR || !value_address(e, &first, IN_Q, &at))
        return;
    init_family(e, c, over, item, d, primes, at, comp, &v);
}

static void init_whole(elab *e, mclass *c, mdof *d, const ast *item)
{
    int primes = item_primes(item);
    address at = { .base = c->qbase + d->offset };
    if (c->inst.n)
        at.stride[0] = c->qsize;
    e->ev.family = &c->inst;
    value v = eval(&e->ev, &work_of(c)->own->base, item->kid[2]);
    e->ev.family = NULL;
    if (primes == 0 && v.kind == V_NUM && d->unit.any && !d->rotation)
        d->unit = v.num.unit;
    if (!init_value_ok(e, d, primes, &v, d->size, item->kid[2]))
        return;
    int32_t comp = d->comp ? d->comp : 1;
    if (v_count(&v) == (d->rotation && !primes ? 3 * d->size : d->size) || d->size <= 64 || c->inst.n ||
        d->ndim != 1) {
        init_family(e, c, &c->inst, item, d, primes, at, d->size, &v);
        return;
    }
    /* the same value for each of many members: one family over them */
    index_names over = { .n = 1, .name = { sym_str(e->m->names, "(member)") } };
    over.set = (index_set){ .n = 1, .count = d->n[0] };
    over.set.r[0] = (index_range){ .lo = 0, .hi = d->n[0] - 1 };
    at.stride[0] = comp;
    init_family(e, c, &over, item, d, primes, at, comp, &v);
}

static void init_item(elab *e, mclass *c, const ast *item)
{
    mdof *d = item_dof(c, item);
    if (!d || d->size == 0)
        return;
    const ast *dims = item->kid[0];
    bool named = dims->n > 0 && dims->kid[0]->kind == AST_INDEX;
    if (item->num > 1) {
        diag *err = diag_error(e->m->d, DIAG_TYPE, item->at,
                               "second derivatives have no initial value: they follow from the equations");
        diag_hint(e->m->d, err, "write the equation as a statement of its own, without `dof`");
        return;
    }
    if (!item->kid[2])
        return;
    if (item != d->decl && dims->n > 0 && !named) {
        diag *err = diag_error(e->m->d, DIAG_TYPE, item->at,
                               "the initial %s of '%s' must be given as a whole, not member by member",
                               item->num > 0 ? "rate" : "value", d->name);
        diag_hint(e->m->d, err,
                  "write %s%s = [0, 1, …], or name the index: %s[i in 1..%d]%s = if i == 1 then 1 else 0",
                  d->name, item->num > 0 ? "'" : "", d->name, (int)d->n[0], item->num > 0 ? "'" : "");
        return;
    }
    int which = item->num > 0;
    if (d->has_init[which]) {
        diag_error(e->m->d, DIAG_DUPLICATE, item->at, "the initial %s of '%s' is given twice",
                   which ? "rate" : "value", d->name);
        return;
    }
    d->has_init[which] = true;
    if (!named) {
        init_whole(e, c, d, item);
        return;
    }
    nest n = { 0 };
    if (nest_add(e, &n, dims, NULL))
        over_nest(e, c, &n, item, init_indexed_body);
}

/* The dimension of a dof is that of its initial value, which is evaluated when the dof is first used. */
value dof_unit_of(elab *e, mclass *c, mdof *d)
{
    if (d->size == 0 && d->ndim == 0)
        return v_error();
    if (d->has_init[0] || !d->decl->kid[2])
        return v_num(0);
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
    while (key->kind == AST_PRIME)
        key = key->kid[0], primes++;
    const mdecl *d = key->kind == AST_NAME ? class_find(p->of, key->name) : NULL;
    if (!d && key->kind == AST_NAME && diag_doubtful(e->m->d, key->name))
        return;
    if (!d || d->kind != DECL_DOF || primes > 1) {
        diag *err = diag_error(e->m->d, DIAG_UNKNOWN_NAME, set->kid[0]->at,
                               "model '%s' has no degree of freedom '%s'", p->of->name,
                               span_text(e->m->d, set->kid[0]->at, e->m->a));
        near n = near_to(key->kind == AST_NAME ? key->name : "");
        for (size_t i = 0; i < p->of->dofs.n; i++)
            near_try(&n, p->of->dofs.at[i]->name);
        diag_near(e->m->d, err, &n);
        return;
    }
    value v = eval(&e->ev, in, set->kid[1]);
    if (e->ev.needs_members || !init_value_ok(e, d->dof, primes, &v, d->dof->size, set->kid[1]))
        return;
    address inst = part_instance(e, c, p, over, in),
            at = { .base = p->of->qbase + d->dof->offset + inst.base * p->of->qsize };
    for (int k = 0; k < MAX_INDEX; k++)
        at.stride[k] = inst.stride[k] * p->of->qsize;
    init_family(e, c, over, set, d->dof, primes, at, d->dof->size, &v);
}

static bool same_key(const ast *a, const ast *b)
{
    while (a->kind == AST_PRIME && b->kind == AST_PRIME)
        a = a->kid[0], b = b->kid[0];
    return a->kind == AST_NAME && b->kind == AST_NAME && a->name == b->name;
}

static bool given_before(elab *e, const ast *block, uint32_t k)
{
    for (uint32_t j = 0; j < k; j++) {
        if (!same_key(block->kid[j]->kid[0], block->kid[k]->kid[0]))
            continue;
        diag *d = diag_error(e->m->d, DIAG_DUPLICATE, block->kid[k]->kid[0]->at, "'%s' is given twice",
                             span_text(e->m->d, block->kid[k]->kid[0]->at, e->m->a));
        diag_second(e->m->d, d, block->kid[j]->kid[0]->at, "first given here");
        return true;
    }
    return false;
}

void elab_dofs(elab *e, mclass *c)
{
    for (uint32_t i = 0; i < c->decl->n; i++) {
        const ast *s = c->decl->kid[i];
        if (s->kind != AST_DOF)
            continue;
        for (uint32_t k = 0; k < s->kid[0]->n; k++) {
            const ast *item = s->kid[0]->kid[k];
            mdof *d = item_dof(c, item);
            if (!d) {
                if (item->num == 0)
                    continue; /* a duplicate: reported */
                if (diag_doubtful(e->m->d, item->name))
                    continue;
                diag *err = diag_error(e->m->d, DIAG_UNKNOWN_NAME, item->name_at,
                                       "'%s' is not a degree of freedom, so its rate cannot be given",
                                       item->name);
                near n = near_to(item->name);
                for (size_t j = 0; j < c->dofs.n; j++)
                    near_try(&n, c->dofs.at[j]->name);
                diag_near(e->m->d, err, &n);
            } else if (!(item == d->decl && d->has_init[0]))
                init_item(e, c, item);
        }
    }
    for (size_t i = 0; i < c->parts.n; i++) {
        const ast *s = c->parts.at[i]->decl, *block = s->kid[3];
        for (uint32_t k = 0; c->parts.at[i]->of && block && k < block->n; k++) {
            nest n = { 0 };
            if (given_before(e, block, k))
                continue;
            if (nest_add(e, &n, s->kid[0], NULL))
                over_nest(e, c, &n, block->kid[k], part_init_body);
        }
    }
}

/* ---- the order of initial values: what others use comes first ---- */

typedef struct {
    elab *e;
    in_kind kind;     /* IN_Q: values, IN_V: rates */
    int32_t *pending; /* families yet to come that give the dof a value */
    uint8_t *early;   /* one of these families comes earlier in the order, and waits */
    int32_t *own;     /* temporary: members of the current family that give the dof a value */
} init_order;

static int64_t each_slot(const mfamily *f, const address *at, int32_t *slots, int change)
{
    int32_t ix[MAX_INDEX];
    int64_t n = 0;
    for (bool more = index_first(&f->over.set, ix); more; more = index_next(&f->over.set, ix), n++)
        slots[slot_at(at, ix, f->over.set.n)] += change;
    return n;
}

static bool init_reads(const init_order *w, const mfamily *f)
{
    for (int k = 0; k < f->nout; k++)
        if (depends_on(w->e->m->g, f->out[k], BIT(w->kind)))
            return true;
    return false;
}

/* members are computed one after the other: each may use what those before it gave */
static bool reads_ready(init_order *w, const mfamily *f)
{
    ir_ref *in;
    int32_t ix[MAX_INDEX];
    bool ready = true;
    arena_pos mark = arena_mark(w->e->m->a);
    size_t n = ir_inputs(w->e->m->g, w->e->m->a, f->out, (size_t)f->nout, &in);
    for (int k = 0; k < f->nout; k++)
        each_slot(f, &f->row[k], w->own, 1);
    for (bool more = index_first(&f->over.set, ix); more; more = index_next(&f->over.set, ix)) {
        for (size_t j = 0; j < n && ready; j++) {
            const ir_input *x = ir_input_of(w->e->m->g, in[j]);
            int32_t dof = x->kind == w->kind ? slot_at(&x->at, ix, f->over.set.n) : 0;
            /* what the family itself is still to give counts once in pending */
            ready = x->kind != w->kind || w->pending[dof] == 0 || (w->pending[dof] == 1 && w->own[dof] < 0);
        }
        for (int k = 0; k < f->nout; k++)
            w->own[slot_at(&f->row[k], ix, f->over.set.n)] = -1;
    }
    int32_t *own = w->own;
    for (int k = 0; k < f->nout; k++)
        for (bool more = index_first(&f->over.set, ix); more; more = index_next(&f->over.set, ix))
            own[slot_at(&f->row[k], ix, f->over.set.n)] = 0;
    arena_release(w->e->m->a, mark);
    return ready;
}

static bool init_ready(init_order *w, const mfamily *f)
{
    int32_t ix[MAX_INDEX];
    for (int k = 0; k < f->nout; k++)
        for (bool more = index_first(&f->over.set, ix); more; more = index_next(&f->over.set, ix))
            if (w->early[slot_at(&f->row[k], ix, f->over.set.n)])
                return false;
    return !init_reads(w, f) || reads_ready(w, f);
}

static void init_wait(init_order *w, const mfamily *f)
{
    int32_t ix[MAX_INDEX];
    for (int k = 0; k < f->nout; k++)
        for (bool more = index_first(&f->over.set, ix); more; more = index_next(&f->over.set, ix))
            w->early[slot_at(&f->row[k], ix, f->over.set.n)] = 1;
}

/* Families that set the same dof keep their order, because the last one counts; a family that reads dofs
   comes after all that set them. The remaining ones form a circle. */
static void init_sort(elab *e, mfamilies *list, in_kind kind)
{
    model *m = e->m;
    init_order w = { e, kind, arena_array(m->a, int32_t, m->nq + 1), NULL,
                     arena_array(m->a, int32_t, m->nq + 1) };
    bool any = false;
    for (size_t i = 0; i < list->n; i++) {
        any = any || init_reads(&w, &list->at[i]);
        for (int k = 0; k < list->at[i].nout; k++)
            each_slot(&list->at[i], &list->at[i].row[k], w.pending, 1);
    }
    mfamilies sorted = { 0 };
    bool *done = arena_array(m->a, bool, list->n + 1);
    for (bool progress = any; progress;) {
        progress = false;
        w.early = arena_array(m->a, uint8_t, m->nq + 1);
        for (size_t i = 0; i < list->n; i++) {
            const mfamily *f = &list->at[i];
            if (done[i])
                continue;
            if (!init_ready(&w, f)) {
                init_wait(&w, f);
                continue;
            }
            for (int k = 0; k < f->nout; k++)
                each_slot(f, &f->row[k], w.pending, -1);
            *vec_push(m->a, &sorted) = *f;
            done[i] = progress = true;
        }
    }
    for (size_t i = 0; any && i < list->n; i++)
        if (!done[i]) {
            diag_error(m->d, DIAG_CYCLE, list->at[i].at, "this initial value depends on itself");
            return;
        }
    if (any)
        *list = sorted;
}

void elab_init_order(elab *e)
{
    init_sort(e, &e->m->init_q, IN_Q);
    init_sort(e, &e->m->init_v, IN_V);
}
