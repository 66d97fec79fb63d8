/* input_name: the inputs of formulas as names of the language.  Addresses are turned back into names: class
   and instance, part by part, then dof or parameter, then indices. */
#include <string.h>
#include "model.h"

/* ---- affine terms ---- */
/* The names and the first member of the indices in force. */
typedef struct {
    const model *m;
    const index_names *over;
    int n;
    int32_t first[MAX_INDEX];
} naming;

static naming naming_of(const model *m, const index_names *over)
{
    naming k = { .m = m, .over = over, .n = over ? over->n : 0 };
    if (over && !index_first(&over->set, k.first))
        memset(k.first, 0, sizeof k.first);
    return k;
}

static void put_affine(text *out, const naming *k, const address *x)
{
    bool any = false;
    for (int i = 0; i < k->n; i++) {
        int32_t c = x->stride[i];
        if (!c)
            continue;
        text_puts(out, c < 0 ? (any ? " - " : "-") : any ? " + " : "");
        if (c != 1 && c != -1)
            text_printf(out, "%lld*", (long long)(c < 0 ? -(int64_t)c : c));
        text_puts(out, k->over->name[i] ? k->over->name[i] : "instance");
        any = true;
    }
    if (any && x->base)
        text_printf(out, " %c %lld", x->base < 0 ? '-' : '+',
                    (long long)(x->base < 0 ? -(int64_t)x->base : x->base));
    else if (!any)
        text_printf(out, "%d", x->base);
}

/* Takes c from x = unit*c + rest, where c counts up to n and rest stays below unit (at the first member). */
static address take_coordinate(const naming *k, address *x, int32_t unit, int32_t n)
{
    address c = { 0 };
    if (n <= 1 || unit < 1)
        return c;
    int64_t at = slot_at(x, k->first, k->n), base = at >= 0 ? at / unit : -((-at + unit - 1) / unit);
    for (int i = 0; i < k->n; i++) {
        c.stride[i] = x->stride[i] / unit;
        x->stride[i] -= c.stride[i] * unit;
        base -= (int64_t)c.stride[i] * k->first[i];
    }
    c.base = (int32_t)base;
    x->base -= c.base * unit;
    return c;
}

static void put_subscript(text *out, const naming *k, address c, int32_t lo)
{
    c.base += lo;
    text_putc(out, '[');
    put_affine(out, k, &c);
    text_putc(out, ']');
}

/* ---- instances ---- */
/* The class whose instances are the first index of a family, or NULL. */
const mclass *model_instances(const model *m, const index_names *over)
{
    if (!over || over->n == 0)
        return NULL;
    for (size_t c = 0; c < m->classes.n; c++) {
        const index_names *inst = &m->classes.at[c]->inst;
        if (inst->n && inst->name[0] == over->name[0] &&
            !memcmp(inst->set.r, over->set.r, sizeof *inst->set.r))
            return m->classes.at[c];
    }
    return NULL;
}

/* Is it the instance over which the current family runs? Then its names need no prefix, as in the text of the
   model. */
static bool is_own_instance(const naming *k, const mclass *of, const address *inst)
{
    if (model_instances(k->m, k->over) != of || inst->base || inst->stride[0] != 1)
        return false;
    for (int i = 1; i < k->n; i++)
        if (inst->stride[i])
            return false;
    return true;
}

static bool part_holds(const mclass *p, const mpart *part, int32_t inst)
{
    int64_t at = (int64_t)inst - part->first, per = part->per > 0 ? part->per : 1;
    return at >= 0 && at / per < p->ninst && at % per < part->n;
}

static const mpart *part_of(const model *m, const mclass *of, int32_t inst, const mclass **holder)
{
    for (size_t c = 0; c < m->classes.n; c++) {
        *holder = m->classes.at[c];
        for (size_t j = 0; j < (*holder)->parts.n; j++) {
            const mpart *part = (*holder)->parts.at[j];
            if (part->of == of && part_holds(*holder, part, inst))
                return part;
        }
    }
    return NULL;
}

/* "big.", "small[i]." */
static void put_instance(text *out, const naming *k, const mclass *of, address inst)
{
    const mclass *holder;
    if (of == k->m->classes.at[0] || is_own_instance(k, of, &inst))
        return;
    const mpart *part = part_of(k->m, of, slot_at(&inst, k->first, k->n), &holder);
    if (!part) {
        text_puts(out, of->name);
        put_subscript(out, k, inst, 1);
    } else {
        inst.base -= part->first;
        put_instance(out, k, holder, take_coordinate(k, &inst, part->per, holder->ninst));
        text_puts(out, part->name);
        if (part->indexed)
            put_subscript(out, k, inst, part->lo);
    }
    text_putc(out, '.');
}

/* ---- dofs and parameters ---- */
static const mclass *class_at(const model *m, int64_t at)
{
    for (size_t c = 0; c < m->classes.n; c++) {
        const mclass *of = m->classes.at[c];
        if (at >= of->qbase && at < of->qbase + (int64_t)of->qsize * of->ninst)
            return of;
    }
    return NULL;
}

static void put_dof(text *out, const naming *k, const mdof *d, address x)
{
    int32_t unit = d->size;
    text_puts(out, d->name);
    x.base -= d->offset;
    for (int i = 0; i < d->ndim; i++) {
        unit /= d->n[i] > 0 ? d->n[i] : 1;
        put_subscript(out, k, take_coordinate(k, &x, unit, d->n[i]), d->lo[i]);
    }
    if (d->comp)
        put_subscript(out, k, x, 1);
}

static void put_param(text *out, const naming *k, const mparam *p, address x)
{
    text_puts(out, p->name);
    if (p->rank == 2)
        put_subscript(out, k, take_coordinate(k, &x, p->n[1], p->n[0]), 1);
    if (p->rank)
        put_subscript(out, k, x, 1);
}

static bool put_q(text *out, const naming *k, address x)
{
    const mclass *of = class_at(k->m, slot_at(&x, k->first, k->n));
    if (!of)
        return false;
    x.base -= of->qbase;
    address inst = take_coordinate(k, &x, of->qsize, of->ninst);
    int32_t at = slot_at(&x, k->first, k->n);
    for (size_t i = 0; i < of->dofs.n; i++) {
        const mdof *d = of->dofs.at[i];
        if (at < d->offset || at >= d->offset + d->size)
            continue;
        put_instance(out, k, of, inst);
        put_dof(out, k, d, x);
        return true;
    }
    return false;
}

static bool put_p(text *out, const naming *k, address x)
{
    int64_t at = slot_at(&x, k->first, k->n);
    for (size_t c = 0; c < k->m->classes.n; c++) {
        const mclass *of = k->m->classes.at[c];
        for (size_t i = 0; i < of->params.n; i++) {
            const mparam *p = of->params.at[i];
            if (at < p->offset || at >= p->offset + (int64_t)p->size * of->ninst)
                continue;
            x.base -= p->offset;
            put_instance(out, k, of, take_coordinate(k, &x, p->size, of->ninst));
            put_param(out, k, p, x);
            return true;
        }
    }
    return false;
}

static void put_address(text *out, const naming *k, const address *x, bool q)
{
    if (k->m && (q ? put_q(out, k, *x) : put_p(out, k, *x)))
        return;
    text_puts(out, q ? "q" : "param");
    put_subscript(out, k, *x, 0);
}

/* ---- other inputs ---- */
static void put_integral(text *out, const ir *g, int32_t number, const model *m, void *ud)
{
    if (!m || number < 0 || (size_t)number >= m->integrals.n) {
        text_printf(out, "integral%d", number + 1);
        return;
    }
    const mintegral *x = &m->integrals.at[number];
    text_puts(out, "integral(");
    ir_print(out, g, x->integrand, model_input_name, ud);
    text_printf(out, " for s%d in ", x->bound + 1);
    ir_print(out, g, x->lo, model_input_name, ud);
    text_puts(out, "..");
    ir_print(out, g, x->hi, model_input_name, ud);
    text_putc(out, ')');
}

/* Numbers and sets, their symbolic parts as formulas. */
void model_value(text *out, const model *m, const value *v, void *ud)
{
    if (v->kind == V_SET) {
        text_printf(out, "%s(", v->set.kind);
        for (size_t k = 0; k < v->set.n; k++) {
            if (k)
                text_puts(out, ", ");
            model_value(out, m, &v->set.arg[k], ud);
        }
        text_putc(out, ')');
        return;
    }
    if (v->kind != V_NUM || (v->num.rank ? !v->num.r : !v->num.r0)) {
        v_print(out, v);
        return;
    }
    int32_t n = v_count(v), cols = v->num.rank == 2 ? v->num.n[1] : n;
    if (v->num.rank)
        text_putc(out, '[');
    for (int32_t k = 0; k < n; k++) {
        value x = v_element(v, k);
        if (k)
            text_puts(out, k % cols ? ", " : "; ");
        ir_print(out, m->g, v_ref(m->g, &x), model_input_name, ud);
    }
    if (v->num.rank)
        text_putc(out, ']');
}

static const char *const set_word[] = {
    [SET_SGN] = "Sgn", [SET_NORMAL_CONE] = "normal_cone", [SET_INTERVAL] = "interval"
};

static void put_set(text *out, const ir *g, int32_t number, const model *m, void *ud)
{
    for (size_t i = 0; m && i < m->sets.n; i++) {
        const mset *s = &m->sets.at[i];
        if (number < s->first || number >= s->first + s->narg)
            continue;
        text_printf(out, "%s(", set_word[s->kind]);
        if (s->kind == SET_SGN)
            ir_print(out, g, s->arg[number - s->first], model_input_name, ud);
        else {
            model_value(out, m, &s->of, ud);
            for (int k = 0; k < s->narg; k++) {
                text_puts(out, k ? ", " : s->narg > 1 ? ", [" : ", ");
                ir_print(out, g, s->arg[k], model_input_name, ud);
            }
            if (s->narg > 1)
                text_putc(out, ']');
        }
        text_putc(out, ')');
        if (s->kind != SET_SGN && s->narg > 1)
            text_printf(out, "[%d]", number - s->first + 1);
        return;
    }
    text_printf(out, "set%d", number + 1);
}

/* u''' of one coordinate, d(d(u, x), y) of two. */
static void put_field(text *out, const ir_input *in, const model *m)
{
    if (!m || (size_t)in->at.base >= m->fields.n) {
        text_printf(out, "field%d", in->at.base + 1);
        return;
    }
    const mfield *f = &m->fields.at[in->at.base];
    if (f->ncoord == 1) {
        text_puts(out, f->name);
        for (int i = 0; i < in->at.stride[f->coord[0]]; i++)
            text_putc(out, '\'');
        return;
    }
    for (int c = 0; c < 2; c++)
        for (int i = 0; i < in->at.stride[c]; i++)
            text_puts(out, "d(");
    text_puts(out, f->name);
    for (int c = 0; c < 2; c++)
        for (int i = 0; i < in->at.stride[c]; i++)
            text_printf(out, ", %s)", m->coords.at[c].name);
}

static void put_coord(text *out, int32_t number, const model *m)
{
    if (m && number >= 0 && (size_t)number < m->coords.n)
        text_puts(out, m->coords.at[number].name);
    else
        text_puts(out, "s");
}

static void put_reaction(text *out, int32_t base, const model *m)
{
    const ast *c = m->reacts.at[base / REACT].decl;
    text_printf(out, base % REACT ? "%s.rt[%d]" : "%s.rn", c->name, (int)(base % REACT));
}

static void put_rod(text *out, int32_t number, const model *m)
{
    text_printf(out, "%s.self_gap",
                m && number >= 0 && (size_t)number < m->rods.n ? m->rods.at[number].name : "rod");
}

static void put_index(text *out, int32_t number, const naming *k)
{
    if (number >= 0 && number < k->n && k->over->name[number])
        text_puts(out, k->over->name[number]);
    else
        text_puts(out, "instance");
}

/* the first dof of the rotation that `at` is a component or an entry of, for the first member; -1: of none */
static int32_t rotation_first(const naming *k, const address *at, int each)
{
    int32_t ix[MAX_INDEX] = { 0 }, in = 0;
    if (!k->m)
        return -1;
    if (k->over)
        index_first(&k->over->set, ix);
    int32_t q = slot_at(at, ix, k->over ? k->over->set.n : 0) / each;
    const mdof *d = model_dof(k->m, q, &in);
    return d && d->rotation ? q - in % 3 : -1;
}

/* an entry of the base of a rotation: base(A)[1, 3]; a component of the rotation relative to it:
   turn(A)[2] */
static void put_rotation(text *out, const naming *k, address at, const char *what, int each, int32_t first)
{
    int32_t ix[MAX_INDEX] = { 0 };
    if (k->over)
        index_first(&k->over->set, ix);
    int32_t entry = slot_at(&at, ix, k->over ? k->over->set.n : 0) - each * first;
    address dof = { .base = (at.base - entry) / each };
    for (int i = 0; i < MAX_INDEX; i++)
        dof.stride[i] = at.stride[i] / each;
    text name = { .a = out->a };
    put_address(&name, k, &dof, true);
    while (name.n && name.at[name.n - 1] != '[')
        name.n--; /* without its component */
    text_printf(out, "%s(%.*s)[", what, (int)(name.n ? name.n - 1 : 0), name.at);
    text_printf(out, each == 1 ? "%d]" : "%d, ", each == 1 ? entry + 1 : entry / 3 + 1);
    if (each > 1)
        text_printf(out, "%d]", entry % 3 + 1);
}

/* a dof as formulas read it */
static void put_variable(text *out, const naming *k, const address *at)
{
    int32_t first = rotation_first(k, at, 1);
    if (first >= 0)
        put_rotation(out, k, *at, "turn", 1, first);
    else
        put_address(out, k, at, true);
}

static void put_past(text *out, const ir *g, const ir_input *in, const naming *k, void *ud)
{
    if (in->kind == IN_PAST_BASE)
        put_rotation(out, k, in->at, "base", 3, rotation_first(k, &in->at, 3));
    else
        put_variable(out, k, &in->at);
    text_puts(out, in->kind == IN_PAST_V ? "'(" : "(");
    if (in->arg)
        ir_print(out, g, in->arg, model_input_name, ud);
    text_putc(out, ')');
}

void model_input_name(text *out, const ir *g, const ir_input *in, void *ud)
{
    const model_namer *by = ud;
    const naming k = naming_of(by ? by->m : NULL, by ? by->over : NULL);
    switch (in->kind) {
    case IN_TIME:
        text_puts(out, "t");
        break;
    case IN_PARAM:
        put_address(out, &k, &in->at, false);
        break;
    case IN_Q:
        put_variable(out, &k, &in->at);
        break;
    case IN_V:
        put_variable(out, &k, &in->at);
        text_puts(out, "'");
        break;
    case IN_A:
        put_variable(out, &k, &in->at);
        text_puts(out, "''");
        break;
    case IN_PRE:
        text_puts(out, "pre(");
        put_variable(out, &k, &in->at);
        text_puts(out, "')");
        break;
    case IN_PAST_Q:
    case IN_PAST_V:
    case IN_PAST_BASE:
        put_past(out, g, in, &k, ud);
        break;
    case IN_INDEX:
        put_index(out, in->at.base, &k);
        break;
    case IN_SPEED:
        text_puts(out, "norm(slip)");
        break;
    case IN_BOUND:
        text_printf(out, "s%d", in->at.base + 1);
        break;
    case IN_INTEGRAL:
        put_integral(out, g, in->at.base, k.m, ud);
        break;
    case IN_SET:
        put_set(out, g, in->at.base, k.m, ud);
        break;
    case IN_COORD:
        put_coord(out, in->at.base, k.m);
        break;
    case IN_FIELD:
        put_field(out, in, k.m);
        break;
    case IN_ROD:
        put_rod(out, in->at.base, k.m);
        break;
    case IN_REACT:
        put_reaction(out, in->at.base, k.m);
        break;
    case IN_BASE:
        put_rotation(out, &k, in->at, "base", 3, rotation_first(&k, &in->at, 3));
        break;
    case IN_FEATURE:
        text_puts(out, "touch[");
        model_affine(out, k.m, k.over, &in->at);
        text_putc(out, ']');
        break;
    case IN_KINDS:
        break;
    }
}

void model_place(text *out, const model *m, const index_names *over, const address *at, bool q)
{
    const naming k = naming_of(m, over);
    put_address(out, &k, at, q);
}

void model_affine(text *out, const model *m, const index_names *over, const address *at)
{
    const naming k = naming_of(m, over);
    put_affine(out, &k, at);
}
