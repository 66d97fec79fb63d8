/* elab_contact: constraints, their laws and attributes. */
#include "elab.h"
#include <string.h>
#include "base/whole.h"

const char *const contact_keys[] = { "impact", "friction", "slip", "normal", NULL };
typedef enum {
#define X(id, name, role, args, doc) LAW_##id,
#include "laws.def"
#undef X
    LAWS
} law_id;
typedef enum { ROLE_FRICTION, ROLE_IMPACT } law_role;
static const struct {
    const char *name;
    law_role role;
    const char *args;
} law_list[] = {
#define X(id, name, role, args, doc) { name, ROLE_##role, args },
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
            if (x->kind == AST_CALL && x->n == 2)
                return k;
            diag *d = diag_error(e->m->d, DIAG_ARITY, x->at, "the law '%s' takes one argument",
                                 law_list[k].name);
            diag_hint(e->m->d, d, "%s(%s)", law_list[k].name, law_list[k].args);
            return -1;
        }
    bool other = false;
    for (int k = 0; k < LAWS && name->kind == AST_NAME; k++)
        other = other || !strcmp(law_list[k].name, name->name);
    diag *d = name->kind != AST_NAME ? diag_error(e->m->d, DIAG_TYPE, x->at, "%s %s law is needed here",
                                                  role == ROLE_FRICTION ? "a" : "an", what)
              : other
                  ? diag_error(e->m->d, DIAG_TYPE, name->at, "'%s' is no %s law", name->name, what)
                  : diag_error(e->m->d, DIAG_UNKNOWN_NAME, name->at, "unknown %s law '%s'", what, name->name);
    near n = near_to(name->kind == AST_NAME ? name->name : "");
    text list = { .a = e->m->a };
    for (int k = 0; k < LAWS; k++)
        if (law_list[k].role == role) {
            near_try(&n, law_list[k].name);
            text_printf(&list, "%s%s(%s)", list.n ? ", " : "", law_list[k].name, law_list[k].args);
        }
    if (near_best(&n))
        diag_near(e->m->d, d, &n);
    else
        diag_hint(e->m->d, d, "%s = %s", what, list.at);
    return -1;
}

static bool pure_number(elab *e, const value *v, const char *what, span at)
{
    return eval_same_unit(&e->ev, v->num.unit, dim_none(),
                          arena_printf(e->m->a, "%s is a number without dimension", what), at);
}

static void contact_impact(elab *e, scope *in, const ast *x, mcontact *c)
{
    int law = law_of(e, x, ROLE_IMPACT);
    if (law < 0)
        return;
    value v;
    c->impact = law == LAW_POISSON ? IMPACT_POISSON : IMPACT_NEWTON;
    c->e_at = x->kid[1]->at;
    if (!eval_scalar(&e->ev, in, x->kid[1], "the restitution", &v) ||
        !pure_number(e, &v, "the restitution", x->kid[1]->at))
        return;
    c->e = v_ref(e->m->g, &v);
}

static void contact_friction(elab *e, scope *in, const ast *x, mcontact *c)
{
    int law = law_of(e, x, ROLE_FRICTION);
    if (law < 0)
        return;
    const ast *arg = x->kid[1];
    bool angle = arg->kind == AST_ARG && !strcmp(arg->name, "angle");
    c->friction = law == LAW_TRESCA ? FRICTION_TRESCA : FRICTION_COULOMB;
    c->mu_at = arg->at;
    if (arg->kind == AST_ARG && (!angle || law == LAW_TRESCA)) {
        bool own = !strcmp(arg->name, law == LAW_TRESCA ? "s" : "mu");
        if (!own) {
            diag *d = diag_error(e->m->d, DIAG_UNKNOWN_OPTION, arg->name_at,
                                 "the law '%s' has no argument '%s'", law_list[law].name, arg->name);
            diag_hint(e->m->d, d, "%s(%s)", law_list[law].name, law_list[law].args);
            return;
        }
    }
    const ast *ex = arg->kind == AST_ARG ? arg->kid[0] : arg;
    value v = eval(&e->ev, in, ex);
    if (v.kind == V_FN) {
        value speed = v_node(ir_in(e->m->g, (ir_input){ .kind = IN_SPEED }), dim_any());
        v = eval_call(&e->ev, in, &v, &speed, 1, ex->at);
    }
    if (v.kind == V_ERROR)
        return;
    if (!v_is_scalar(&v)) {
        diag_error(e->m->d, DIAG_TYPE, ex->at,
                   "the friction is a number or a function of the slip speed, not %s",
                   v_kind_text(e->m->a, &v));
        return;
    }
    if (law != LAW_TRESCA &&
        !pure_number(e, &v, angle ? "the angle of friction" : "the coefficient of friction", ex->at))
        return;
    c->mu = v_ref(e->m->g, &v);
    if (angle)
        c->mu = ir_op1(e->m->g, OP_TAN, c->mu);
}

static void contact_slip(elab *e, scope *in, const ast *x, mcontact *c)
{
    value v = eval(&e->ev, in, x);
    c->slip_at = x->at;
    c->slip_given = true;
    if (v.kind == V_ERROR || e->ev.needs_members)
        return;
    if (v.kind != V_NUM || v.num.rank > 1 || v_count(&v) > MAX_SLIP) {
        diag_error(e->m->d, DIAG_SHAPE, x->at,
                   "the slip is a velocity: a number or a vector of at most %d, not %s", MAX_SLIP,
                   v_kind_text(e->m->a, &v));
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
        diag *d = diag_error(e->m->d, DIAG_FRICTION_NO_SLIP, x->at,
                             "the slip holds no rate, so nothing slides");
        diag_hint(e->m->d, d, "slip is the relative velocity at the contact, for example x' - V");
    }
}

static void contact_attributes(elab *e, scope *in, const ast *block, mcontact *c)
{
    const ast *seen[4] = { 0 };
    for (uint32_t i = 0; block && i < block->n; i++) {
        const ast *set = block->kid[i], *key = set->kid[0];
        if (set->kind != AST_SET)
            continue;
        int k = 0;
        while (contact_keys[k] && !(key->kind == AST_NAME && !strcmp(key->name, contact_keys[k])))
            k++;
        if (!contact_keys[k]) {
            const char *got = key->kind == AST_NAME ? key->name : "";
            diag *d = diag_error(e->m->d, DIAG_UNKNOWN_ATTRIBUTE, key->at,
                                 "a constraint has no attribute '%s'",
                                 *got ? got : span_text(e->m->d, key->at, e->m->a));
            near n = near_to(got);
            for (int j = 0; contact_keys[j]; j++)
                near_try(&n, contact_keys[j]);
            if (near_best(&n))
                diag_near(e->m->d, d, &n);
            else
                diag_hint(e->m->d, d, "it has impact, friction, slip and normal");
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
        case 0:
            contact_impact(e, in, set->kid[1], c);
            break;
        case 1:
            contact_friction(e, in, set->kid[1], c);
            break;
        case 2:
            contact_slip(e, in, set->kid[1], c);
            break;
        case 3:
            if (eval_scalar(&e->ev, in, set->kid[1], "the normal force", &v))
                c->normal = v_ref(e->m->g, &v);
            break;
        }
    }
}

static bool gap_fits(elab *e, const mcontact *c, const ast *rel)
{
    if (depends_on(e->m->g, c->gap, BIT(IN_V) | BIT(IN_A) | BIT(IN_SET))) {
        diag_error(e->m->d, DIAG_TYPE, rel->at, "a constraint bounds positions: it may not hold rates");
        return false;
    }
    if (!depends_on(e->m->g, c->gap, BIT(IN_Q) | BIT(IN_ROD))) {
        diag_error(e->m->d, DIAG_CONSTRAINT_NO_DOF, rel->at,
                   "this constraint does not depend on any degree of freedom");
        return false;
    }
    return true;
}

/* gap >= 0 from g <= 0, g >= 0 or g = 0; all: the whole, which is a vector where c has no gap */
static bool contact_relation_of(elab *e, scope *in, const ast *rel, mcontact *c, value *all)
{
    value gap;
    if (!rel) {
        c->relation = REL_CLOSED;
        return true;
    }
    bool eq = rel->kind == AST_SET, le = rel->kind == AST_BINARY && rel->op == OP_LE,
         ge = rel->kind == AST_BINARY && rel->op == OP_GE;
    if (!eq && !le && !ge) {
        diag *d = diag_error(e->m->d, DIAG_SYNTAX, rel->at,
                             rel->kind == AST_BINARY && rel->op == OP_EQ
                                 ? "a bilateral constraint is written with a single '='"
                                 : "a constraint reads g <= 0, g >= 0 or g = 0");
        if (rel->kind == AST_BINARY && (rel->op == OP_LT || rel->op == OP_GT))
            diag_hint(e->m->d, d, "touching is allowed: write '%s='", op_name(rel->op));
        return false;
    }
    c->relation = eq ? REL_BILATERAL : REL_GAP;
    if (!both_sides(e, in, rel->kid[le ? 1 : 0], rel->kid[le ? 0 : 1], "a constraint", rel->at, &gap))
        return false;
    *all = gap;
    if (eq && gap.num.rank == 1 && c->own < MAX_INDEX)
        return true; /* a constraint for each component */
    if (!v_is_scalar(&gap)) {
        diag *d = diag_error(e->m->d, DIAG_SHAPE, rel->at, "a constraint is a single condition, not %s",
                             v_kind_text(e->m->a, &gap));
        diag_hint(e->m->d, d, "write it as a family: constraint c[i in 1..%d]: … ", v_count(&gap));
        return false;
    }
    c->gap = v_ref(e->m->g, &gap);
    return gap_fits(e, c, rel);
}

static const char *class_path(elab *e, const mclass *c, sym name)
{
    if (c == e->m->classes.at[0])
        return name;
    for (size_t i = 0; i < e->m->classes.n; i++)
        for (size_t k = 0; k < e->m->classes.at[i]->parts.n; k++)
            if (e->m->classes.at[i]->parts.at[k]->of == c && c->ninst == 1)
                return class_path(
                    e, e->m->classes.at[i],
                    arena_printf(e->m->a, "%s.%s", e->m->classes.at[i]->parts.at[k]->name, name));
    return arena_printf(e->m->a, "%s.%s", c->name, name);
}

static void contact_consistent(elab *e, const mcontact *c, const ast *s)
{
    diags *d = e->m->d;
    if (c->relation == REL_CLOSED && !c->normal) {
        diag *x = diag_error(d, DIAG_SYNTAX, s->name_at,
                             "constraint '%s' has neither a gap nor a normal force", c->name);
        diag_hint(d, x,
                  "write `constraint %s: g <= 0`, or give normal = … for a contact that is always closed",
                  c->name);
    } else if (c->relation != REL_CLOSED && c->normal) {
        diag_error(d, DIAG_MIXED_FORMS, s->name_at,
                   "constraint '%s' has a gap, so its normal force is not given but found", c->name);
    } else if (c->friction != FRICTION_NONE && !c->slip_given &&
               (c->relation == REL_CLOSED || e->m->nq < 2) && !e->m->rods.n) {
        diag *x = diag_error(d, DIAG_FRICTION_NO_SLIP, c->mu_at,
                             "friction on '%s' has nothing to slide along", c->name);
        diag_hint(d, x,
                  c->relation == REL_CLOSED ? "give slip = …, the relative velocity at the contact"
                                            : "a single degree of freedom leaves no tangent direction: give "
                                              "slip = …, or drop the friction");
    } else if (c->slip_given && c->friction == FRICTION_NONE) {
        diag_warn(d, DIAG_WARN_UNUSED, c->slip_at, "constraint '%s' has a slip but no friction", c->name);
    }
}

/* a member that was written out: its indices are numbers in the scope */
static void contact_member(elab *e, scope *in, mcontact *k)
{
    for (int i = 0; i < k->own; i++) {
        value v;
        double x = 0;
        int64_t whole;
        look found = LOOK_NO;
        for (scope *s = in; s && found == LOOK_NO; s = s->up)
            found = s->find(s, &e->ev, e->loops->index[i]->name, k->at, &v);
        if (found == LOOK_YES && v_scalar(&v, &x) && whole_number(x, INT32_MIN, INT32_MAX, &whole))
            k->index[i] = (int32_t)whole;
    }
    k->inst = instance_at(k->of, in).base;
}

static const char *member_name(elab *e, const mcontact *k)
{
    text t = { .a = e->m->a };
    text_puts(&t, k->name);
    for (int i = 0; i < k->own; i++)
        text_printf(&t, "%s%d", i ? ", " : "[", k->index[i]);
    text_putc(&t, ']');
    return t.at;
}

static void contact_keep(elab *e, mclass *c, mcontact *k)
{
    k->path = class_path(e, c, k->one && k->own ? member_name(e, k) : k->name);
    *vec_push(e->m->a, &e->m->contacts) = *k;
}

/* a vector equation holds for each component, which is the last index of its members */
static void contact_components(elab *e, mclass *c, mcontact *k, const value *all, const ast *rel)
{
    int component = k->own++;
    k->one = true;
    if (k->friction != FRICTION_NONE) {
        diag *d = diag_error(e->m->d, DIAG_SHAPE, k->mu_at,
                             "friction needs one normal direction: '%s' holds %d components", k->name,
                             v_count(all));
        diag_hint(e->m->d, d, "write a constraint of its own for the component that presses");
        return;
    }
    for (int32_t i = 0; i < v_count(all); i++) {
        value x = v_element(all, i);
        k->gap = v_ref(e->m->g, &x);
        k->index[component] = i + 1;
        if (!gap_fits(e, k, rel))
            return;
        contact_keep(e, c, k);
    }
}

void constraint_body(elab *e, mclass *c, scope *in, const index_names *over, const ast *s)
{
    mcontact k = { .name = s->name, .decl = s, .at = s->at, .of = c, .over = *over };
    k.own = e->loops->n;
    k.one = over->n == 0 && (k.own || c->inst.n);
    size_t errors = e->m->d->errors;
    value all;
    bool ok = contact_relation_of(e, in, s->kid[2], &k, &all);
    bool vector = ok && k.relation != REL_CLOSED && !k.gap;
    if (vector && over->n)
        e->ev.needs_members = true; /* its members are written out */
    if (!e->ev.needs_members)
        contact_attributes(e, in, s->kid[3], &k);
    if (!ok || e->ev.needs_members || e->m->d->errors != errors)
        return;
    contact_consistent(e, &k, s);
    if (k.one || vector)
        contact_member(e, in, &k);
    if (vector)
        contact_components(e, c, &k, &all, s->kid[2]);
    else
        contact_keep(e, c, &k);
}
