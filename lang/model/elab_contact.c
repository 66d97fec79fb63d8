/* elab_contact: constraints, their laws and attributes. */
#include "elab.h"
#include <stdio.h>
#include <string.h>
#include "base/whole.h"

const char *const contact_keys[] = {
#define X(id, name, doc) name,
#include "attributes.def"
#undef X
    NULL
};
enum {
#define X(id, name, doc) KEY_##id,
#include "attributes.def"
#undef X
    KEYS
};
static const char *const simultaneous_words[] = { "together", "cascade", NULL };
static const char *const moment_words[] = { "coulomb", NULL };
const char *const *const contact_words[] = { [KEY_SIMULTANEOUS] = simultaneous_words,
                                             [KEY_ROLLING] = moment_words,
                                             [KEY_SPINNING] = moment_words,
                                             [KEYS] = NULL };
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

static const ast *arg_value(const ast *arg)
{
    return arg->kind == AST_ARG ? arg->kid[0] : arg;
}

/* the argument of that name among those of a law; first: also the one without a name */
static const ast *law_arg(const ast *x, const char *name, bool first)
{
    for (uint32_t i = 1; i < x->n; i++) {
        const ast *arg = x->kid[i];
        if (arg->kind == AST_ARG ? !strcmp(arg->name, name) : first && i == 1)
            return arg;
    }
    return NULL;
}

/* Walks over the words of a list of arguments: the next name, where a way to call the law begins, and
   whether the name has to be written. */
typedef struct arg_word {
    const char *at;
    char name[16];
    bool begins, named;
} arg_word;

static bool arg_next(arg_word *w)
{
    size_t n = strspn(w->at, " ,|");
    w->begins = memchr(w->at, '|', n) != NULL;
    w->at += n;
    if (!*w->at)
        return false;
    size_t len = strcspn(w->at, " ,|");
    snprintf(w->name, sizeof w->name, "%.*s", (int)len, w->at);
    size_t rest = strcspn(w->at, ",|");
    w->named = memchr(w->at, '=', rest) != NULL;
    w->at += rest;
    return true;
}

static bool arg_known(const char *args, const char *name)
{
    for (arg_word w = { .at = args }; arg_next(&w);)
        if (!strcmp(w.name, name))
            return true;
    return false;
}

/* is there a way to call the law with just these arguments? */
static bool args_fit(const char *args, const ast *x)
{
    uint32_t found = 0, wanted = 0;
    for (arg_word w = { .at = args }; arg_next(&w);) {
        if (w.begins && found == wanted && found == x->n - 1)
            return true;
        if (w.begins)
            found = wanted = 0;
        found += law_arg(x, w.name, !w.named && wanted == 0) != NULL;
        wanted++;
    }
    return found == wanted && found == x->n - 1;
}

static bool law_called(elab *e, int law, const ast *x)
{
    const char *name = law_list[law].name, *args = law_list[law].args;
    for (uint32_t i = 1; x->kind == AST_CALL && i < x->n; i++) {
        const ast *arg = x->kid[i];
        if (arg->kind != AST_ARG || arg_known(args, arg->name))
            continue;
        diag *d = diag_error(e->m->d, DIAG_UNKNOWN_OPTION, arg->name_at, "the law '%s' has no argument '%s'",
                             name, arg->name);
        diag_hint(e->m->d, d, "%s(%s)", name, args);
        return false;
    }
    if (x->kind == AST_CALL && args_fit(args, x))
        return true;
    diag *d = strpbrk(args, "|,")
                  ? diag_error(e->m->d, DIAG_ARITY, x->at, "the law '%s' does not take these arguments", name)
                  : diag_error(e->m->d, DIAG_ARITY, x->at, "the law '%s' takes one argument", name);
    diag_hint(e->m->d, d, "%s(%s)", name, args);
    return false;
}

/* law(args) by name; -1 after an error */
static int law_of(elab *e, const ast *x, law_role role)
{
    const ast *name = x->kind == AST_CALL ? x->kid[0] : x;
    const char *what = role == ROLE_FRICTION ? "friction" : "impact";
    for (int k = 0; k < LAWS && name->kind == AST_NAME; k++)
        if (law_list[k].role == role && !strcmp(law_list[k].name, name->name))
            return law_called(e, k, x) ? k : -1;
    bool other = false;
    for (int k = 0; k < LAWS && name->kind == AST_NAME; k++)
        other = other || !strcmp(law_list[k].name, name->name);
    diag *d = name->kind != AST_NAME ? diag_error(e->m->d, DIAG_TYPE, x->at, "%s %s law is needed here",
                                                  role == ROLE_FRICTION ? "a" : "an", what)
              : other
                  ? diag_error(e->m->d, DIAG_TYPE, name->at, "'%s' is not %s %s law", name->name,
                               role == ROLE_FRICTION ? "a" : "an", what)
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
                          arena_printf(e->m->a, "%s must be a number without a dimension", what), at);
}

/* A number, or a function of one argument, which is a speed; IR_NONE after an error.
   unit: what has no dimension, or NULL. */
static ir_ref law_number(elab *e, scope *in, const ast *x, const char *what, const char *of, const char *unit)
{
    value v = eval(&e->ev, in, x);
    if (v.kind == V_FN) {
        value speed = v_node(ir_in(e->m->g, (ir_input){ .kind = IN_SPEED }), dim_any());
        v = eval_call(&e->ev, in, &v, &speed, 1, x->at);
    }
    if (v.kind == V_ERROR)
        return IR_NONE;
    if (!v_is_scalar(&v)) {
        diag_error(e->m->d, DIAG_TYPE, x->at, "the %s must be a number or a function of the %s, not %s", what,
                   of, v_kind_text(e->m->a, &v));
        return IR_NONE;
    }
    if (unit && !pure_number(e, &v, unit, x->at))
        return IR_NONE;
    return v_ref(e->m->g, &v);
}

static void contact_impact(elab *e, scope *in, const ast *x, mcontact *c)
{
    int law = law_of(e, x, ROLE_IMPACT);
    if (law < 0)
        return;
    const ast *arg = arg_value(law_arg(x, "e", true)), *along = law_arg(x, "tangential", false);
    value v;
    c->impact = law == LAW_POISSON ? IMPACT_POISSON : IMPACT_NEWTON;
    c->e_at = arg->at;
    c->e = law_number(e, in, arg, "restitution", "approach speed", "the restitution");
    if (!along)
        return;
    c->et_at = arg_value(along)->at;
    if (eval_scalar(&e->ev, in, arg_value(along), "the tangential restitution", &v) &&
        pure_number(e, &v, "the tangential restitution", c->et_at))
        c->et = v_ref(e->m->g, &v);
}

static void contact_friction(elab *e, scope *in, const ast *x, mcontact *c)
{
    int law = law_of(e, x, ROLE_FRICTION);
    if (law < 0)
        return;
    const char *unit = "the coefficient of friction";
    const ast *rest = law_arg(x, "static", false), *angle = law_arg(x, "angle", false),
              *arg = angle  ? angle
                     : rest ? law_arg(x, "kinetic", false)
                            : law_arg(x, law == LAW_TRESCA ? "s" : "mu", true);
    c->friction = law == LAW_TRESCA ? FRICTION_TRESCA : FRICTION_COULOMB;
    c->mu_at = rest ? x->at : arg->at;
    c->mu = law_number(e, in, arg_value(arg), "friction", "slip speed",
                       law == LAW_TRESCA ? NULL
                       : angle           ? "the angle of friction"
                                         : unit);
    if (angle && c->mu)
        c->mu = ir_op1(e->m->g, OP_TAN, c->mu);
    if (rest)
        c->mu_static = law_number(e, in, arg_value(rest), "friction", "slip speed", unit);
    if (rest && c->mu && c->mu_static &&
        (depends_on(e->m->g, c->mu, BIT(IN_SPEED)) || depends_on(e->m->g, c->mu_static, BIT(IN_SPEED)))) {
        diag *d = diag_error(e->m->d, DIAG_TYPE, c->mu_at,
                             "static and kinetic friction are numbers: neither depends on the slip speed");
        diag_hint(e->m->d, d, "coulomb(f) with a function f of the slip speed has both");
    }
}

/* A relative velocity into out: how many components; 0 after an error. */
static int relative_velocity(elab *e, scope *in, const ast *x, const char *what, ir_ref *out)
{
    value v = eval(&e->ev, in, x);
    if (v.kind == V_ERROR || e->ev.needs_members)
        return 0;
    if (v.kind != V_NUM || v.num.rank > 1 || v_count(&v) > MAX_SLIP) {
        diag_error(e->m->d, DIAG_SHAPE, x->at,
                   "the %s must be a velocity: a number or a vector of at most %d, not %s", what, MAX_SLIP,
                   v_kind_text(e->m->a, &v));
        return 0;
    }
    bool moves = false;
    for (int k = 0; k < v_count(&v); k++) {
        value y = v_element(&v, k);
        out[k] = v_ref(e->m->g, &y);
        moves = moves || depends_on(e->m->g, out[k], BIT(IN_V) | BIT(IN_ROD));
    }
    if (moves)
        return v_count(&v);
    diag *d = diag_error(e->m->d, DIAG_FRICTION_NO_SLIP, x->at, "the %s contains no rate, so nothing slides",
                         what);
    diag_hint(e->m->d, d, "%s is the relative velocity at the contact, for example x' - V", what);
    return 0;
}

static void contact_slip(elab *e, scope *in, const ast *x, mcontact *c)
{
    c->slip_at = x->at;
    c->slip_given = true;
    c->nslip = relative_velocity(e, in, x, "slip", c->slip);
}

/* Moments against rolling and spinning: the law, and the angular velocity that it is against. */
typedef struct moment {
    span at;
    ir_ref bound, rate[MAX_SLIP];
    int n;
} moment;
typedef struct moments {
    moment rolling, spinning;
} moments;

static void moment_law(elab *e, scope *in, const ast *x, moment *to)
{
    int law = law_of(e, x, ROLE_FRICTION);
    if (law < 0)
        return;
    const ast *arg = law_arg(x, "mu", true);
    if (law != LAW_COULOMB || !arg) {
        diag *d = diag_error(e->m->d, DIAG_TYPE, x->at, "a moment is bounded by a length times rn");
        diag_hint(e->m->d, d, "rolling = coulomb(s), s a length");
        return;
    }
    value v;
    to->at = arg->at;
    if (eval_scalar(&e->ev, in, arg_value(arg), "the length", &v))
        to->bound = v_ref(e->m->g, &v);
}

static void contact_simultaneous(elab *e, const ast *x, mcontact *c)
{
    for (int k = 0; x->kind == AST_NAME && simultaneous_words[k]; k++)
        if (!strcmp(simultaneous_words[k], x->name)) {
            c->cascade = k == 1;
            return;
        }
    diag *d = diag_error(e->m->d, DIAG_TYPE, x->at,
                         "simultaneous impacts are solved together or as a cascade");
    diag_hint(e->m->d, d, "simultaneous = %s | %s", simultaneous_words[0], simultaneous_words[1]);
}

static void contact_attribute(elab *e, scope *in, int key, const ast *x, mcontact *c, moments *m)
{
    value v;
    switch (key) {
    case KEY_IMPACT:
        contact_impact(e, in, x, c);
        break;
    case KEY_FRICTION:
        contact_friction(e, in, x, c);
        break;
    case KEY_SLIP:
        contact_slip(e, in, x, c);
        break;
    case KEY_NORMAL:
        if (eval_scalar(&e->ev, in, x, "the normal force", &v))
            c->normal = v_ref(e->m->g, &v);
        break;
    case KEY_ADHESION:
        c->adhesion_at = x->at;
        if (eval_scalar(&e->ev, in, x, "the adhesion", &v))
            c->adhesion = v_ref(e->m->g, &v);
        break;
    case KEY_SIMULTANEOUS:
        contact_simultaneous(e, x, c);
        break;
    case KEY_ROLLING:
        moment_law(e, in, x, &m->rolling);
        break;
    case KEY_SPINNING:
        moment_law(e, in, x, &m->spinning);
        break;
    case KEY_ROLL:
        m->rolling.n = relative_velocity(e, in, x, "roll", m->rolling.rate);
        break;
    case KEY_SPIN:
        m->spinning.n = relative_velocity(e, in, x, "spin", m->spinning.rate);
        break;
    }
}

static const char *keys_text(elab *e)
{
    text t = { .a = e->m->a };
    for (int k = 0; contact_keys[k]; k++)
        text_printf(&t, "%s%s", !k ? "" : contact_keys[k + 1] ? ", " : " and ", contact_keys[k]);
    return t.at;
}

/* coefficients as attributes, which laws take here; NULL: none of them */
static const char *attribute_instead(const char *name)
{
    static const char *const list[][2] = {
        { "mu", "friction = coulomb(0.3)" },  { "coulomb", "friction = coulomb(0.3)" },
        { "e", "impact = newton(0.5)" },      { "restitution", "impact = newton(0.5)" },
        { "newton", "impact = newton(0.5)" }, { "poisson", "impact = poisson(0.5)" },
    };
    for (size_t k = 0; k < sizeof list / sizeof *list; k++)
        if (!strcmp(name, list[k][0]))
            return list[k][1];
    return NULL;
}

static void contact_attributes(elab *e, scope *in, const ast *block, mcontact *c, moments *m)
{
    const ast *seen[KEYS] = { 0 };
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
            const char *instead = attribute_instead(got);
            if (instead)
                diag_hint(e->m->d, d, "write %s", instead);
            else if (near_best(&n))
                diag_near(e->m->d, d, &n);
            else
                diag_hint(e->m->d, d, "it has %s", keys_text(e));
            continue;
        }
        if (seen[k]) {
            diag *d = diag_error(e->m->d, DIAG_DUPLICATE, key->at, "'%s' is given twice", contact_keys[k]);
            diag_second(e->m->d, d, seen[k]->at, "first given here");
            continue;
        }
        seen[k] = key;
        contact_attribute(e, in, k, set->kid[1], c, m);
    }
}

static bool gap_fits(elab *e, mcontact *c, const ast *rel)
{
    if (depends_on(e->m->g, c->gap, BIT(IN_A) | BIT(IN_SET) | BIT(IN_PRE))) {
        diag_error(e->m->d, DIAG_TYPE, rel->at,
                   "a constraint bounds positions or rates; it may not contain accelerations");
        return false;
    }
    c->of_rates = depends_on(e->m->g, c->gap, BIT(IN_V));
    if (c->of_rates && e->m->rods.n) {
        diag_error(e->m->d, DIAG_NOT_SUPPORTED, rel->at,
                   "in a model with rods a constraint bounds positions");
        return false;
    }
    if (!depends_on(e->m->g, c->gap, BIT(IN_Q) | BIT(IN_V) | BIT(IN_ROD))) {
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
                                 : "a constraint has the form g <= 0, g >= 0 or g = 0");
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
                   "constraint '%s' has a gap, so its normal force is computed and cannot be given", c->name);
    } else if (c->of_rates && c->e) {
        diag_error(d, DIAG_MIXED_FORMS, c->e_at,
                   "constraint '%s' bounds rates, so there are no impacts and no restitution", c->name);
    } else if (c->relation != REL_GAP && c->e && !c->et) {
        diag_error(d, DIAG_MIXED_FORMS, c->e_at,
                   c->relation == REL_CLOSED
                       ? "'%s' is always closed, so it has no impacts and no restitution"
                       : "'%s' is an equality constraint, so it has no impacts and no restitution",
                   c->name);
    } else if (c->adhesion && (c->relation != REL_GAP || c->of_rates)) {
        diag_error(d, DIAG_MIXED_FORMS, c->adhesion_at,
                   "adhesion needs a contact that can open, and '%s' cannot", c->name);
    } else if (c->et && c->friction == FRICTION_NONE) {
        diag *x = diag_error(d, DIAG_FRICTION_NO_SLIP, c->et_at,
                             "tangential restitution on '%s' needs friction, and there is none", c->name);
        diag_hint(d, x, "give friction = coulomb(mu)");
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

/* a member compiled by itself: its indices are numbers in the scope */
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
                             "friction needs one normal direction: '%s' has %d components", k->name,
                             v_count(all));
        diag_hint(e->m->d, d, "write a separate constraint for the component with the normal force");
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

/* Shapes know how they roll and spin where they touch: their relative angular velocity across the normal and
   along it.  In the plane they roll. */
static void moments_of_shapes(elab *e, const mcontact *k, const touching *t, moments *m)
{
    ir *g = e->m->g;
    bool rolls = m->rolling.bound && !m->rolling.n,
         spins = m->spinning.bound && !m->spinning.n && t->dim == 3;
    ir_ref along = IR_NONE;
    if (t->pair.listed && (m->rolling.bound || m->spinning.bound)) {
        diag_error(e->m->d, DIAG_NOT_SUPPORTED, k->at,
                   "'%s' has too many pairs of shapes for moments against rolling and spinning: at most 64",
                   k->name);
        return;
    }
    if (!rolls && !spins)
        return;
    for (int i = 0; t->dim == 3 && i < 3; i++) {
        ir_ref part = ir_op2(g, OP_MUL, t->normal[i], t->turn[i]);
        along = i ? ir_op2(g, OP_ADD, along, part) : part;
    }
    if (spins) {
        m->spinning.n = 1;
        m->spinning.rate[0] = along;
    }
    if (!rolls)
        return;
    m->rolling.n = t->dim == 3 ? 3 : 1;
    for (int i = 0; i < m->rolling.n; i++)
        m->rolling.rate[i] = t->dim == 3
                                 ? ir_op2(g, OP_SUB, t->turn[i], ir_op2(g, OP_MUL, along, t->normal[i]))
                                 : t->turn[i];
}

/* A moment is a separate friction law with the normal force of the contact. */
static void moment_keep(elab *e, mclass *c, const mcontact *of, const moment *m, const char *law,
                        const char *rate)
{
    if (!m->bound && !m->n)
        return;
    if (!m->bound || !m->n) {
        diag *d = diag_error(e->m->d, DIAG_FRICTION_NO_SLIP, of->at, "'%s' has '%s' without '%s'", of->name,
                             m->n ? rate : law, m->n ? law : rate);
        diag_hint(e->m->d, d, "%s = coulomb(s), %s = the relative angular velocity", law, rate);
        return;
    }
    mcontact k = { .name = arena_printf(e->m->a, "%s.%s", of->name, law),
                   .decl = of->decl,
                   .at = of->at,
                   .of = of->of,
                   .over = of->over,
                   .own = of->own,
                   .one = of->one,
                   .inst = of->inst,
                   .relation = REL_CLOSED,
                   .friction = FRICTION_COULOMB,
                   .mu = m->bound,
                   .mu_at = m->at,
                   .slip_given = true,
                   .slip_at = of->at,
                   .nslip = m->n,
                   .fed_by = of->decl };
    memcpy(k.index, of->index, sizeof k.index);
    memcpy(k.slip, m->rate, sizeof k.slip);
    contact_keep(e, c, &k);
}

/* ---- reactions in formulas ---- */
static const ast *attribute_of(const ast *constraint, const char *key)
{
    const ast *block = constraint->kid[3];
    for (uint32_t i = 0; block && i < block->n; i++) {
        const ast *set = block->kid[i];
        if (set->kind == AST_SET && set->kid[0]->kind == AST_NAME && !strcmp(set->kid[0]->name, key))
            return set->kid[1];
    }
    return NULL;
}

/* which of the reactions that formulas read */
static int32_t react_number(elab *e, const ast *constraint, span at)
{
    for (size_t k = 0; k < e->m->reacts.n; k++)
        if (e->m->reacts.at[k].decl == constraint)
            return (int32_t)k;
    *vec_push(e->m->a, &e->m->reacts) = (mreact){ constraint, at };
    return (int32_t)e->m->reacts.n - 1;
}

static ir_ref react_input(elab *e, int32_t number, int component)
{
    return ir_in(e->m->g, (ir_input){ .kind = IN_REACT, .at.base = REACT * number + component });
}

value contact_member_value(elab *e, scope *in, const ast *constraint, sym name, span at)
{
    static const char *const known[] = { "rn", "rt", "slip", NULL };
    const ast *slip = attribute_of(constraint, "slip");
    if ((constraint->kid[0] && constraint->kid[0]->n) || ((class_scope *)in)->c->ninst != 1) {
        diag_error(e->m->d, DIAG_NOT_SUPPORTED, at,
                   "'%s' is a family: a formula may use only the reaction of a single constraint",
                   constraint->name);
        return v_error();
    }
    if (!strcmp(name, "rn"))
        return v_node(react_input(e, react_number(e, constraint, at), 0), dim_any());
    if ((!strcmp(name, "rt") || !strcmp(name, "slip")) && !slip) {
        diag_error(e->m->d, DIAG_FRICTION_NO_SLIP, at, "'%s' has no slip", constraint->name);
        return v_error();
    }
    if (!strcmp(name, "slip"))
        return eval(&e->ev, in, slip);
    if (!strcmp(name, "rt")) {
        value v = eval(&e->ev, in, slip), y = v;
        int32_t number = react_number(e, constraint, at);
        if (v.kind != V_NUM || v_count(&v) > MAX_SLIP)
            return v_error();
        if (v.num.rank == 0)
            return v_node(react_input(e, number, 1), dim_any());
        y = v_vector(e->m->a, v_count(&v));
        for (int k = 0; k < v_count(&v); k++) {
            value part = v_node(react_input(e, number, 1 + k), dim_any());
            v_set(e->m->a, &y, k, &part);
        }
        return y;
    }
    near n = near_to(name);
    for (int k = 0; known[k]; k++)
        near_try(&n, known[k]);
    diag *d = diag_error(e->m->d, DIAG_UNKNOWN_NAME, at,
                         "a formula may use rn, rt and slip of a constraint, not '%s'", name);
    if (near_best(&n))
        diag_near(e->m->d, d, &n);
    return v_error();
}

/* if shapes may touch in several points, the point is the last index; its slip is known */
static void contact_shapes(elab *e, mcontact *k, const touching *t)
{
    k->slots = t->slots;
    k->dim = t->dim;
    k->point = t->point;
    k->facing = t->normal;
    k->pair = t->pair;
    if (t->slots) {
        k->over.set.r[k->over.n] = (index_range){ .lo = 1, .hi = t->slots };
        k->over.name[k->over.n++] = sym_str(e->m->names, "point");
        if (t->pair.listed) {
            k->over.set.r[k->over.n] = (index_range){ 0 };
            k->over.name[k->over.n++] = sym_str(e->m->names, "place");
        }
        k->over.set.n = k->over.n;
        k->over.set.count *= t->slots;
    }
    if (k->friction == FRICTION_NONE || k->slip_given)
        return;
    k->slip_given = true;
    k->nslip = t->dim;
    k->slip_at = k->at;
    memcpy(k->slip, t->slip, sizeof k->slip);
}

void constraint_body(elab *e, mclass *c, scope *in, const index_names *over, const ast *s)
{
    mcontact k = { .name = s->name, .decl = s, .at = s->at, .of = c, .over = *over };
    k.own = e->loops->n;
    k.one = over->n == 0 && (k.own || c->inst.n);
    moments m = { 0 };
    size_t errors = e->m->d->errors;
    value all;
    e->touch = (touching){ .of = c, .node = s };
    bool ok = contact_relation_of(e, in, s->kid[2], &k, &all);
    touching touch = e->touch;
    e->touch.of = NULL;
    bool vector = ok && k.relation != REL_CLOSED && !k.gap;
    if (vector && over->n)
        e->ev.needs_members = true; /* its members are compiled one by one */
    if (!e->ev.needs_members)
        contact_attributes(e, in, s->kid[3], &k, &m);
    if (!ok || e->ev.needs_members || e->m->d->errors != errors)
        return;
    if (touch.used) {
        contact_shapes(e, &k, &touch);
        moments_of_shapes(e, &k, &touch, &m);
    }
    contact_consistent(e, &k, s);
    slip_missing_warn(e, &k);
    if (k.one || vector)
        contact_member(e, in, &k);
    if (vector)
        contact_components(e, c, &k, &all, s->kid[2]);
    else {
        contact_keep(e, c, &k);
        moment_keep(e, c, &k, &m.rolling, "rolling", "roll");
        moment_keep(e, c, &k, &m.spinning, "spinning", "spin");
    }
}
