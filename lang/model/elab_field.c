/* elab_field: domains, fields, boundary conditions, obstacles, rods. */
#include "elab.h"
#include <math.h>
#include <string.h>

/* ---- domains and fields ---- */

static void domain_statement(elab *e, mclass *c, const ast *s)
{
    for (uint32_t i = 0; i < s->kid[0]->n; i++) {
        const ast *ix = s->kid[0]->kid[i];
        const mdecl *d = class_find(c, ix->name);
        if (!d || d->node != ix)
            continue;
        value r = eval(&e->ev, &work_of(c)->own->base, ix->kid[0]);
        if (r.kind == V_ERROR)
            continue;
        if (r.kind != V_RANGE) {
            diag_error(e->m->d, DIAG_TYPE, ix->kid[0]->at, "a domain is a range: domain %s in 0..1",
                       ix->name);
            continue;
        }
        double lo, hi;
        if (v_scalar(r.range.lo, &lo) && v_scalar(r.range.hi, &hi) && !(lo < hi))
            diag_error(e->m->d, DIAG_TYPE, ix->kid[0]->at, "the domain is empty: %g..%g", lo, hi);
        mcoord *x = &e->m->coords.at[d->number];
        x->lo = v_ref(e->m->g, r.range.lo);
        x->hi = v_ref(e->m->g, r.range.hi);
    }
    if (e->m->coords.n > 2)
        diag_error(e->m->d, DIAG_NOT_SUPPORTED, s->at, "a domain has one or two coordinates");
}

static void field_statement(elab *e, mclass *c, const ast *s)
{
    for (uint32_t i = 0; i < s->kid[0]->n; i++) {
        const ast *item = s->kid[0]->kid[i];
        const mdecl *d = class_find(c, item->name);
        if (!d || d->node != item)
            continue;
        mfield *f = &e->m->fields.at[d->number];
        for (uint32_t k = 0; k < item->n && k < 2; k++) {
            const mdecl *x = class_find(c, item->kid[k]->name);
            if (!x || x->kind != DECL_COORD) {
                diag *err = diag_error(e->m->d, DIAG_UNKNOWN_NAME, item->kid[k]->at,
                                       "'%s' is not a coordinate of the domain", item->kid[k]->name);
                diag_hint(e->m->d, err, "declare it: domain %s in 0..1", item->kid[k]->name);
                f->ncoord++; /* the derivatives are defined nevertheless */
                continue;
            }
            f->coord[f->ncoord++] = x->number;
        }
        if (item->n == 0 || (item->n > 2 && e->m->coords.n <= 2))
            diag_error(e->m->d, DIAG_ARITY, item->at,
                       "a field has one or two coordinates, as in `field u(x)`");
    }
}

static void add_field_equation(elab *e, mclass *c, const ast *s)
{
    value a = eval(&e->ev, &work_of(c)->own->base, s->kid[0]),
          b = eval(&e->ev, &work_of(c)->own->base, s->kid[1]);
    value r = eval_op(&e->ev, OP_SUB, &a, &b, NULL, s->at);
    if (r.kind == V_ERROR)
        return;
    if (!v_is_scalar(&r)) {
        diag_error(e->m->d, DIAG_SHAPE, s->at, "an equation for a field is a single one, not %s",
                   v_kind_text(e->m->a, &r));
        return;
    }
    ir_ref x = v_ref(e->m->g, &r);
    if (!depends_on(e->m->g, x, BIT(IN_FIELD))) {
        diag *d = diag_error(e->m->d, DIAG_EQUATION_NO_DOF, s->at, "this equation contains no field");
        if (depends_on(e->m->g, x, BIT(IN_Q) | BIT(IN_V) | BIT(IN_A)))
            diag_hint(e->m->d, d, "a model has a domain and fields, or degrees of freedom, not both");
        return;
    }
    family_add(e, &e->m->field_equation, c, &single_member, s, 1, false)->out[0] = x;
}

static void obstacle_statement(elab *e, mclass *c, const ast *s)
{
    const ast *rel = s->kid[0];
    if (rel->kind != AST_BINARY || (rel->op != OP_GE && rel->op != OP_LE)) {
        diag *d = diag_error(e->m->d, DIAG_SYNTAX, rel->at, "an obstacle has the form u >= psi or u <= psi");
        if (rel->kind == AST_BINARY && (rel->op == OP_LT || rel->op == OP_GT))
            diag_hint(e->m->d, d, "touching is allowed: write '%s='", op_name(rel->op));
        return;
    }
    value a = eval(&e->ev, &work_of(c)->own->base, rel->kid[0]),
          b = eval(&e->ev, &work_of(c)->own->base, rel->kid[1]);
    if (a.kind == V_ERROR || b.kind == V_ERROR)
        return;
    const ir_input *u = v_is_scalar(&a) && a.num.r0 ? ir_input_of(e->m->g, a.num.r0) : NULL;
    if (!u || u->kind != IN_FIELD || u->at.stride[0] || u->at.stride[1]) {
        diag *d = diag_error(e->m->d, DIAG_TYPE, rel->kid[0]->at,
                             "the left side of an obstacle must be a field");
        diag_hint(e->m->d, d, "obstacle u >= psi(x)");
        return;
    }
    int32_t number = u->at.base;
    value gap = rel->op == OP_GE ? eval_op(&e->ev, OP_SUB, &a, &b, NULL, rel->at)
                                 : eval_op(&e->ev, OP_SUB, &b, &a, NULL, rel->at);
    if (gap.kind == V_ERROR)
        return;
    *vec_push(e->m->a, &e->m->obstacles) = (mobstacle){ number, v_ref(e->m->g, &gap),
                                                        rel->op == OP_GE ? 1 : -1, s->at };
}

static void add_conditions(elab *e, mclass *c, const ast *block, int coord, ir_ref where)
{
    for (uint32_t i = 0; i < block->n; i++) {
        const ast *set = block->kid[i];
        if (set->kind != AST_SET)
            continue;
        value a = eval(&e->ev, &work_of(c)->own->base, set->kid[0]),
              b = eval(&e->ev, &work_of(c)->own->base, set->kid[1]);
        value r = eval_op(&e->ev, OP_SUB, &a, &b, NULL, set->at);
        if (r.kind == V_ERROR)
            continue;
        if (!v_is_scalar(&r) || !r.num.r0 || !depends_on(e->m->g, r.num.r0, BIT(IN_FIELD))) {
            diag *d = diag_error(e->m->d, DIAG_EQUATION_NO_DOF, set->at,
                                 "a boundary condition must contain a field or its derivatives");
            diag_hint(e->m->d, d, "at x = 0 { u = 0, u' = 0 }");
            continue;
        }
        *vec_push(e->m->a, &e->m->conditions) = (mcondition){ coord, where, r.num.r0, set->at };
    }
}

/* ---- rods ---- */

static const char *const rod_keys[] = { "length",  "radius",   "young",   "poisson",   "stiffness",
                                        "bending", "elements", "density", "reference", "curvature",
                                        "mass",    "inertia",  "damping", "velocity",  "spin",
                                        "refine",  "start",    "growth",  "drag",      NULL };
static const char *const rod_along[] = { "curvature", "velocity", "spin", NULL }; /* vectors of s */
enum { ROD_JOINT = 6 }; /* among the attributes of a place */
/* numbers and matrices that may be functions of s */
static const char *const rod_sections[] = { "refine",  "radius", "young",   "poisson", "stiffness", "bending",
                                            "density", "mass",   "inertia", "growth",  NULL };
static const char *const rod_place_keys[] = { "position", "frame", "moment", "axis",    "roll",
                                              "hinge",    "joint", "mass",   "inertia", NULL };

static int key_of(elab *e, const ast *key, const char *const *keys, const char *what)
{
    for (int k = 0; keys[k]; k++)
        if (key->kind == AST_NAME && !strcmp(key->name, keys[k]))
            return k;
    const char *got = key->kind == AST_NAME ? key->name : span_text(e->m->d, key->at, e->m->a);
    diag *d = diag_error(e->m->d, DIAG_UNKNOWN_ATTRIBUTE, key->at, "%s has no attribute '%s'", what, got);
    near n = near_to(got);
    for (int k = 0; keys[k]; k++)
        near_try(&n, keys[k]);
    diag_near_or_all(e->m->d, d, &n);
    return -1;
}

static bool word_in(const char *const *list, const char *word)
{
    while (*list && strcmp(*list, word))
        list++;
    return *list;
}

/* the arc length, as a name of a formula */
static value rod_arc(elab *e, int32_t rod)
{
    return v_node(ir_in(e->m->g, (ir_input){ .kind = IN_COORD, .at.base = rod }), dim_any());
}

static scope *rod_scope(elab *e, mclass *c, int32_t rod)
{
    table_scope *t = table_scope_new(e->m->a, &work_of(c)->own->base);
    table_scope_set(t, sym_str(e->m->names, "s"), rod_arc(e, rod));
    return &t->base;
}

/* Attributes that may be functions of the arc length.  Where a model has an s of its own, that of vectors and
 * of refine is the arc length all the same; sections keep the model's. */
static scope *rod_attribute_scope(elab *e, mclass *c, int32_t rod, const char *key)
{
    bool along = word_in(rod_along, key) || !strcmp(key, "refine") ||
                 (word_in(rod_sections, key) && !class_find(c, sym_str(e->m->names, "s")));
    return along ? rod_scope(e, c, rod) : &work_of(c)->own->base;
}

/* what an attribute's value looks like: a number, a vector of 3, a matrix of 3 x 3 */
static bool rod_shape_fits(elab *e, const char *key, const value *v, span at)
{
    int rank = !strcmp(key, "stiffness") || !strcmp(key, "bending") || !strcmp(key, "inertia") ? 2
               : word_in(rod_along, key)                                                       ? 1
                                                                                               : 0;
    bool fits = v->kind == V_NUM && v->num.rank == rank && (rank < 1 || v->num.n[0] == 3) &&
                (rank < 2 || v->num.n[1] == 3);
    static const char *const shapes[] = { "a number", "a vector of 3 numbers", "a 3 x 3 matrix" };
    if (!fits)
        diag_error(e->m->d, DIAG_SHAPE, at, "'%s' must be %s, not %s", key, shapes[rank],
                   v_kind_text(e->m->a, v));
    return fits;
}

/* reference = curve(fn) | helix(…) | straight | "points.csv" is kept as a word with its arguments */
static value rod_reference(elab *e, scope *in, int32_t rod, const ast *x)
{
    if (x->kind == AST_STR)
        return rod_points(e, x);
    const ast *name = x->kind == AST_CALL ? x->kid[0] : x;
    static const char *const shapes[] = { "straight", "helix", "curve", NULL };
    if (key_of(e, name, shapes, "a reference") < 0)
        return v_error();
    value v = { .kind = V_SET };
    v.set.kind = name->name;
    v.set.n = x->kind == AST_CALL ? x->n - 1 : 0;
    v.set.arg = arena_array(e->m->a, value, v.set.n + 1);
    for (size_t i = 0; i < v.set.n; i++) {
        const ast *arg = x->kid[i + 1];
        v.set.arg[i] = eval(&e->ev, in, arg->kind == AST_ARG ? arg->kid[0] : arg);
        if (v.set.arg[i].kind == V_ERROR)
            return v_error();
    }
    bool curve = !strcmp(name->name, "curve"), helix = !strcmp(name->name, "helix");
    if (v.set.n != (curve ? 1u : helix ? 2u : 0u)) {
        diag *d = diag_error(e->m->d, DIAG_ARITY, x->at, "'%s' takes %d %s", name->name,
                             curve   ? 1
                             : helix ? 2
                                     : 0,
                             curve ? "argument" : "arguments");
        diag_hint(e->m->d, d,
                  "reference = straight, helix(radius, pitch), curve(fn of s), or a file of points");
        return v_error();
    }
    if (!curve)
        return v;
    value s = rod_arc(e, rod);
    if (v.set.arg[0].kind == V_FN)
        v.set.arg[0] = eval_call(&e->ev, in, &v.set.arg[0], &s, 1, x->at);
    if (v.set.arg[0].kind == V_ERROR)
        return v_error();
    if (v.set.arg[0].kind == V_NUM && v.set.arg[0].num.rank == 1 && v.set.arg[0].num.n[0] == 3)
        return v;
    diag_error(e->m->d, DIAG_SHAPE, x->at, "a curve gives a vector of 3 numbers for each s, not %s",
               v_kind_text(e->m->a, &v.set.arg[0]));
    return v_error();
}

/* start = equilibrium: a word too */
static value rod_start(elab *e, const ast *x)
{
    static const char *const words[] = { "equilibrium", NULL };
    if (key_of(e, x, words, "the start of a rod") < 0)
        return v_error();
    return (value){ .kind = V_SET, .set.kind = x->name };
}

/* sizes and moduli are positive numbers, elements a whole one */
static bool rod_value_ok(elab *e, const char *key, const value *v, span at)
{
    static const char *const positive[] = {
        "length", "radius", "young", "elements", "density", "mass", NULL
    };
    for (int k = 0; positive[k]; k++) {
        if (strcmp(key, positive[k]))
            continue;
        double x = 1;
        bool whole = !strcmp(key, "elements");
        if (v_is_scalar(v) && (!v_scalar(v, &x) || (x > 0 && (!whole || (x == floor(x) && x <= 1e7)))))
            return true;
        diag_error(e->m->d, DIAG_OPTION_VALUE, at,
                   whole ? "'%s' must be a positive whole number" : "'%s' must be a positive number", key);
        return false;
    }
    return true;
}

static void rod_statement(elab *e, mclass *c, const ast *s)
{
    const mdecl *d = class_find(c, s->name);
    if (!d || d->node != s)
        return;
    if (c != e->m->classes.at[0]) {
        diag *err = diag_error(e->m->d, DIAG_NOT_SUPPORTED, s->name_at,
                               "a rod may not be in a part of a model");
        diag_hint(e->m->d, err, "declare the rods in the model that runs");
        return;
    }
    bool have[sizeof rod_keys / sizeof *rod_keys] = { 0 }, unknown = false;
    for (uint32_t i = 0; i < s->kid[0]->n; i++) {
        const ast *set = s->kid[0]->kid[i];
        if (set->kind != AST_SET)
            continue;
        int k = key_of(e, set->kid[0], rod_keys, "a rod");
        if (k < 0) {
            unknown = true;
            continue;
        }
        if (have[k]) {
            diag_error(e->m->d, DIAG_DUPLICATE, set->kid[0]->at, "'%s' is given twice", rod_keys[k]);
            continue;
        }
        have[k] = true;
        size_t errors = e->m->d->errors;
        bool reference = !strcmp(rod_keys[k], "reference"), start = !strcmp(rod_keys[k], "start");
        scope *in = rod_attribute_scope(e, c, d->number, rod_keys[k]);
        value v = reference ? rod_reference(e, in, d->number, set->kid[1])
                  : start   ? rod_start(e, set->kid[1])
                            : eval(&e->ev, in, set->kid[1]);
        if (v.kind == V_ERROR || e->m->d->errors != errors ||
            !rod_value_ok(e, rod_keys[k], &v, set->kid[1]->at))
            continue;
        if (!reference && !start && !rod_shape_fits(e, rod_keys[k], &v, set->kid[1]->at))
            continue;
        *vec_push(e->m->a, &e->m->rods.at[d->number].attr) = (mrodattr){ set->kid[0]->name, v, set->at };
    }
    bool elastic = (have[2] && have[1]) || (have[4] && have[5]);
    if (!unknown &&
        (!have[0] || !elastic)) { /* the attribute that seems to be missing may have been misspelt */
        diag *err = diag_error(e->m->d, DIAG_PARAM_MISSING, s->name_at,
                               have[0] ? "rod '%s' has no stiffness" : "rod '%s' has no length", s->name);
        diag_hint(e->m->d, err,
                  have[0] ? "give radius, young and poisson, or stiffness = diag(GA, GA, EA) and bending = "
                            "diag(EI, EI, GJ)"
                          : "rod %s { length = 1, … }",
                  s->name);
    }
}

/* wire.gap(other): the distance between the surfaces of two rods, or of a rod and a body */
static look gap_find(scope *s, evaluator *ev, sym name, span at, value *out)
{
    (void)s;
    (void)ev;
    (void)name;
    (void)at;
    (void)out;
    return LOOK_NO;
}

static bool body_fits(const value *v)
{
    bool ball = !strcmp(v->set.kind, "ball"), half = !strcmp(v->set.kind, "halfspace"),
         round = !strcmp(v->set.kind, "cylinder");
    if (!ball && !half && !round)
        return false;
    for (size_t k = 0; k < v->set.n; k++) {
        const value *x = &v->set.arg[k];
        bool vector = half ? k == 0 : k + 1 < v->set.n;
        if (vector ? x->kind != V_NUM || x->num.rank != 1 || x->num.n[0] != 3 : !v_is_scalar(x))
            return false;
    }
    return true;
}

static value gap_of(scope *s, evaluator *ev, const value *arg, size_t n, bool inside, span at)
{
    class_scope *cs = (class_scope *)s;
    elab *e = s->of;
    int32_t other = -1;
    if (inside &&
        (n != 1 || arg[0].kind != V_SET || !body_fits(&arg[0]) || !strcmp(arg[0].set.kind, "halfspace"))) {
        diag *d = diag_error(ev->d, DIAG_TYPE, at, "inside(…) takes a cylinder or a ball");
        diag_hint(ev->d, d, "wire.inside(cylinder(point, axis, radius)), wire.inside(ball(centre, radius))");
        return v_error();
    }
    bool rod = n == 1 && rod_object(&arg[0], &other);
    if (!rod && (n != 1 || arg[0].kind != V_SET || !body_fits(&arg[0]))) {
        diag *d = diag_error(ev->d, DIAG_TYPE, at, "gap(…) takes another rod or a body");
        diag_hint(ev->d, d,
                  "wire.gap(other), wire.gap(ball(centre, radius)), wire.gap(halfspace(n, c)), "
                  "wire.gap(cylinder(point, axis, radius))");
        return v_error();
    }
    if (rod && other == cs->inst.base)
        other = -1;
    ir_input in = { .kind = IN_ROD, .at.base = cs->inst.base };
    if (!rod || other >= 0) {
        *vec_push(e->m->a, &e->m->rod_links.pairs) = (mrodpair){ cs->inst.base, other, arg[0], inside, at };
        in.at.stride[0] = (int32_t)e->m->rod_links.pairs.n;
    }
    return v_node(ir_in(e->m->g, in), dim_any());
}

static value gap_call(scope *s, evaluator *ev, const value *o, const value *arg, size_t n, span at)
{
    (void)o;
    return gap_of(s, ev, arg, n, false, at);
}

static value inside_call(scope *s, evaluator *ev, const value *o, const value *arg, size_t n, span at)
{
    (void)o;
    return gap_of(s, ev, arg, n, true, at);
}

value rod_member(elab *e, mclass *c, int32_t rod, sym name, span at)
{
    bool inside = !strcmp(name, "inside");
    if (inside || !strcmp(name, "gap")) {
        class_scope *g = arena_make(e->m->a, class_scope);
        *g = (class_scope){ .base = { .find = gap_find, .call = inside ? inside_call : gap_call, .of = e },
                            .c = c,
                            .inst.base = rod };
        value v = { .kind = V_OBJECT };
        v.object.in = &g->base;
        return v;
    }
    if (!strcmp(name, "self_gap"))
        return v_node(ir_in(e->m->g, (ir_input){ .kind = IN_ROD, .at.base = rod }), dim_any());
    if (!strcmp(name, "s"))
        return v_node(ir_in(e->m->g, (ir_input){ .kind = IN_COORD, .at.base = rod }), dim_any());
    diag *d = diag_error(e->m->d, DIAG_UNKNOWN_MEMBER, at,
                         "in a model a rod has the members s, self_gap, gap(…) and inside(…), not '%s'",
                         name);
    near n = near_to(name);
    near_try(&n, "self_gap");
    diag_near(e->m->d, d, &n);
    return v_error();
}

static int32_t rod_of(const mclass *c, const ast *x)
{
    const mdecl *d = x->kind == AST_NAME ? class_find(c, x->name) : NULL;
    return d && d->kind == DECL_ROD ? d->number : -1;
}

/* follower(f): a force or moment given in the frame of the section; what stands in the brackets, else NULL */
static const ast *follower_of(const ast *x)
{
    bool is = x->kind == AST_CALL && x->n == 2 && x->kid[0]->kind == AST_NAME &&
              !strcmp(x->kid[0]->name, "follower");
    return is && x->kid[1]->kind != AST_ARG ? x->kid[1] : NULL;
}

/* other.x(s): a section of another rod, or of the same */
static bool rod_section_of(elab *e, mclass *c, const ast *x, int32_t *rod, ir_ref *s)
{
    const ast *m = x->kind == AST_CALL && x->n == 2 ? x->kid[0] : NULL;
    value where;
    *rod = m && m->kind == AST_MEMBER && !strcmp(m->name, "x") ? rod_of(c, m->kid[0]) : -1;
    if (*rod < 0) {
        diag *d = diag_error(e->m->d, DIAG_TYPE, x->at, "a joint is with a section of a rod");
        diag_hint(e->m->d, d, "joint = rigid(beam.x(0)), ball(beam.x(0)), hinge(beam.x(0), axis)");
        return false;
    }
    if (!eval_scalar(&e->ev, &work_of(c)->own->base, x->kid[1], "the place on a rod", &where))
        return false;
    *s = v_ref(e->m->g, &where);
    return true;
}

/* joint = rigid(other.x(s)) | ball(other.x(s)) | hinge(other.x(s), axis) */
static void rod_joined(elab *e, mclass *c, int32_t rod, ir_ref s, const ast *set)
{
    static const char *const kinds[] = { "rigid", "ball", "hinge", NULL };
    const ast *x = set->kid[1], *name = x->kind == AST_CALL ? x->kid[0] : x;
    mrodjoint j = { .b = rod, .sb = s, .at = set->at };
    if (key_of(e, name, kinds, "a joint") < 0)
        return;
    bool hinge = !strcmp(name->name, "hinge");
    if (x->kind != AST_CALL || x->n != (hinge ? 3u : 2u)) {
        diag_error(e->m->d, DIAG_ARITY, x->at,
                   hinge ? "'%s' takes a section of a rod and an axis" : "'%s' takes a section of a rod",
                   name->name);
        return;
    }
    int32_t a;
    if (!rod_section_of(e, c, x->kid[1], &a, &j.sa))
        return;
    j.what = name->name;
    j.a = a;
    if (hinge) {
        j.axis = eval(&e->ev, &work_of(c)->own->base, x->kid[2]);
        if (j.axis.kind == V_ERROR)
            return;
        if (j.axis.kind != V_NUM || j.axis.num.rank != 1 || j.axis.num.n[0] != 3) {
            diag_error(e->m->d, DIAG_SHAPE, x->kid[2]->at,
                       "the axis of a hinge is a vector of 3 numbers, not %s", v_kind_text(e->m->a, &j.axis));
            return;
        }
    }
    *vec_push(e->m->a, &e->m->rod_links.joints) = j;
}

static void rod_place(elab *e, mclass *c, const ast *s, int32_t rod)
{
    value where;
    if (!eval_scalar(&e->ev, &work_of(c)->own->base, s->kid[1], "the place on a rod", &where))
        return;
    for (uint32_t i = 0; i < s->kid[2]->n; i++) {
        const ast *set = s->kid[2]->kid[i];
        if (set->kind != AST_SET)
            continue;
        int k = key_of(e, set->kid[0], rod_place_keys, "a place on a rod");
        if (k == ROD_JOINT) {
            rod_joined(e, c, rod, v_ref(e->m->g, &where), set);
            continue;
        }
        const ast *follow = k == 2 ? follower_of(set->kid[1]) : NULL;
        value v = eval(&e->ev, &work_of(c)->own->base, follow ? follow : set->kid[1]);
        if (k < 0 || v.kind == V_ERROR)
            continue;
        static const int ranks[] = { 1, 2, 1, 1, 0, 1, 0, 0, 2 };
        static const char *const shapes[] = { "a number", "a vector of 3 numbers", "a 3 x 3 matrix" };
        int rank = ranks[k];
        if (v.kind != V_NUM || v.num.rank != rank || (rank > 0 && v.num.n[0] != 3) ||
            (rank > 1 && v.num.n[1] != 3)) {
            diag_error(e->m->d, DIAG_SHAPE, set->kid[1]->at, "'%s' must be %s, not %s", rod_place_keys[k],
                       shapes[rank], v_kind_text(e->m->a, &v));
            continue;
        }
        *vec_push(e->m->a, &e->m->loads) = (mrodload){
            rod, v_ref(e->m->g, &where), true, set->kid[0]->name, v, set->at, follow
        };
    }
}

/* force wire.x(s): f at a point;  force wire.x: f(s) along the rod */
bool elab_rod_force(elab *e, mclass *c, const ast *s)
{
    const ast *to = s->kid[0], *m = to->kind == AST_CALL ? to->kid[0] : to;
    if (m->kind != AST_MEMBER)
        return false;
    int32_t rod = rod_of(c, m->kid[0]);
    if (rod < 0)
        return false;
    value where = v_num(0), v;
    scope *in = &work_of(c)->own->base;
    bool point = to->kind == AST_CALL;
    if (point && (to->n != 2 || !eval_scalar(&e->ev, in, to->kid[1], "the place on a rod", &where)))
        return true;
    if (!point)
        in = rod_scope(e, c, rod);
    const ast *follow = follower_of(s->kid[1]);
    v = eval(&e->ev, in, follow ? follow : s->kid[1]);
    if (v.kind == V_ERROR)
        return true;
    if (v.kind != V_NUM || v.num.rank != 1 || v.num.n[0] != 3) {
        diag_error(e->m->d, DIAG_SHAPE, s->kid[1]->at, "the force on a rod is a vector of 3 numbers, not %s",
                   v_kind_text(e->m->a, &v));
        return true;
    }
    *vec_push(e->m->a, &e->m->loads) = (mrodload){
        rod, v_ref(e->m->g, &where), point, sym_str(e->m->names, "force"), v, s->at, follow
    };
    return true;
}

static void at_statement(elab *e, mclass *c, const ast *s)
{
    const ast *place = s->kid[0];
    if (place->kind == AST_MEMBER && rod_of(c, place->kid[0]) >= 0) {
        if (!strcmp(place->name, "s"))
            rod_place(e, c, s, rod_of(c, place->kid[0]));
        else
            diag_error(e->m->d, DIAG_UNKNOWN_MEMBER, place->name_at,
                       "a place on a rod is given by its arc length: at %s.s = …", place->kid[0]->name);
        return;
    }
    const mdecl *d = place->kind == AST_NAME ? class_find(c, place->name) : NULL;
    const ast *root = place->kind == AST_MEMBER ? place->kid[0] : place;
    if (!d && root->kind == AST_NAME && !class_find(c, root->name) && diag_doubtful(e->m->d, root->name))
        return;
    if (!d || d->kind != DECL_COORD) {
        diag *err = diag_error(e->m->d, DIAG_UNKNOWN_NAME, place->at,
                               "'at' names a coordinate of the domain or a place on a rod");
        if (e->m->rods.n)
            diag_hint(e->m->d, err, "at %s.s = 0 { position = [0, 0, 0] }", e->m->rods.at[0].name);
        else
            diag_hint(e->m->d, err, "at %s = 0 { u = 0 }", e->m->coords.n ? e->m->coords.at[0].name : "x");
        return;
    }
    value where;
    if (eval_scalar(&e->ev, &work_of(c)->own->base, s->kid[1], "the place of a condition", &where))
        add_conditions(e, c, s->kid[2], d->number, v_ref(e->m->g, &where));
}

static void boundary_statement(elab *e, mclass *c, const ast *s)
{
    ir_ref where = IR_NONE;
    if (s->kid[1]) {
        value w = eval(&e->ev, &work_of(c)->own->base, s->kid[1]);
        if (w.kind == V_ERROR)
            return;
        where = v_ref(e->m->g, &w);
    }
    add_conditions(e, c, &(ast){ .kind = AST_BLOCK, .n = 1, .kid = (ast *[]){ s->kid[0] } }, -1, where);
}

void elab_field_statement(elab *e, mclass *c, const nest *n, const ast *s)
{
    (void)n;
    bool field = s->kind == AST_FIELD || s->kind == AST_OBSTACLE || s->kind == AST_BOUNDARY;
    if (field && !e->m->coords.n) {
        diag *d = diag_error(e->m->d, DIAG_SYNTAX, s->at, "there is no domain");
        diag_hint(e->m->d, d, "declare `domain x in 0..1` and `field u(x)`");
        for (size_t i = 0; i < e->m->fields.n; i++)
            e->m->fields.at[i].ncoord = 1;
        return;
    }
    switch (s->kind) {
    case AST_DOMAIN:
        domain_statement(e, c, s);
        break;
    case AST_FIELD:
        field_statement(e, c, s);
        break;
    case AST_SET:
        add_field_equation(e, c, s);
        break;
    case AST_OBSTACLE:
        obstacle_statement(e, c, s);
        break;
    case AST_AT:
        at_statement(e, c, s);
        break;
    case AST_BOUNDARY:
        boundary_statement(e, c, s);
        break;
    case AST_ROD:
        rod_statement(e, c, s);
        break;
    case AST_EXPR: {
        diag *d = diag_error(e->m->d, DIAG_SYNTAX, s->at, "an expression alone has no meaning in a model");
        if (s->kid[0]->kind == AST_BINARY && s->kid[0]->op == OP_EQ)
            diag_hint(e->m->d, d, "an equation is written with a single '='");
        else if (s->kid[0]->kind == AST_BINARY && (s->kid[0]->op == OP_GE || s->kid[0]->op == OP_LE))
            diag_hint(e->m->d, d, "a bound is a constraint with a name: constraint floor: y >= 0");
        else if (s->kid[0]->kind == AST_NAME && eval_name_instead(s->kid[0]->name))
            diag_hint(e->m->d, d, "%s", eval_name_instead(s->kid[0]->name));
        else if (s->kid[0]->kind == AST_CALL && s->kid[0]->kid[0]->kind == AST_NAME &&
                 eval_name_instead(s->kid[0]->kid[0]->name))
            diag_hint(e->m->d, d, "%s", eval_name_instead(s->kid[0]->kid[0]->name));
        else
            diag_hint(e->m->d, d, "write an equation `left = right`, or a constraint");
        break;
    }
    default: {
        diag *d = diag_error(e->m->d, DIAG_SYNTAX, s->at, "this statement does not belong in a model");
        diag_hint(
            e->m->d, d,
            "runs, measures, plots and expectations go outside the model, so that it runs on every backend");
    }
    }
}

/* ---- orders and boundary conditions ---- */

static int field_order(const elab *e, int field)
{
    int order = 0;
    for (size_t i = 0; i < e->m->field_equation.n; i++) {
        ir_ref *in;
        size_t n = ir_inputs(e->m->g, e->m->a, e->m->field_equation.at[i].out, 1, &in);
        for (size_t k = 0; k < n; k++) {
            const ir_input *x = ir_input_of(e->m->g, in[k]);
            int o = x->kind == IN_FIELD && x->at.base == field ? x->at.stride[0] + x->at.stride[1] : 0;
            if (o > order)
                order = o;
        }
    }
    return order;
}

/* on a line, `boundary` means both ends */
static void boundary_ends(model *m)
{
    for (size_t i = 0; m->coords.n == 1 && i < m->conditions.n; i++) {
        mcondition *c = &m->conditions.at[i];
        if (c->coord >= 0 || c->where)
            continue;
        c->coord = 0;
        c->where = m->coords.at[0].lo;
        mcondition other = *c;
        other.where = m->coords.at[0].hi;
        *vec_push(m->a, &m->conditions) = other;
    }
}

/* on a line `boundary u = 0` holds at both ends */
static void line_boundary(model *m)
{
    size_t n = m->conditions.n;
    for (size_t k = 0; k < n; k++) {
        mcondition c = m->conditions.at[k];
        if (c.coord >= 0 || c.where)
            continue;
        c.coord = 0;
        c.where = m->coords.at[0].lo;
        m->conditions.at[k] = c;
        c.where = m->coords.at[0].hi;
        *vec_push(m->a, &m->conditions) = c;
    }
}

void elab_fields_check(elab *e)
{
    model *m = e->m;
    if (!m->coords.n)
        return;
    if (m->coords.n == 1)
        line_boundary(m);
    if (!m->fields.n) {
        diag *d = diag_error(m->d, DIAG_SYNTAX, m->coords.at[0].at, "the domain has no field");
        diag_hint(m->d, d, "declare `field u(%s)`", m->coords.at[0].name);
        return;
    }
    if (m->field_equation.n != m->fields.n) {
        if (!m->field_equation.n) {
            diag *d = diag_error(m->d, DIAG_DOF_NO_EQUATION, m->fields.at[0].at,
                                 "the field '%s' has no equation", m->fields.at[0].name);
            diag_hint(m->d, d, "write one, for example -%s'' = 1", m->fields.at[0].name);
        } else if (m->field_equation.n > m->fields.n) {
            diag_error(m->d, DIAG_EQUATION_NO_DOF, m->field_equation.at[m->fields.n].at,
                       "there are more equations than fields: %zu for %zu", m->field_equation.n, m->fields.n);
        } else
            diag_error(m->d, DIAG_DOF_NO_EQUATION, m->fields.at[m->field_equation.n].at,
                       "there are fewer equations than fields: %zu for %zu", m->field_equation.n,
                       m->fields.n);
        return;
    }
    int order = 0;
    for (size_t i = 0; i < m->fields.n; i++) {
        int o = field_order(e, (int)i);
        if (o == 0)
            diag_error(m->d, DIAG_EQUATION_NO_DOF, m->fields.at[i].at,
                       "the field '%s' is not differentiated in any equation", m->fields.at[i].name);
        if (o > 6)
            diag_error(m->d, DIAG_NOT_SUPPORTED, m->field_equation.at[0].at,
                       "the order of an equation is at most 6, this one has %d", o);
        order += o;
    }
    bool plane = m->coords.n == 2;
    boundary_ends(m);
    if (plane ? m->conditions.n == 0 : m->conditions.n != (size_t)order) {
        diag *d = plane ? diag_error(m->d, DIAG_BOUNDARY_COUNT, m->fields.at[0].at,
                                     "no boundary condition is given")
                        : diag_error(m->d, DIAG_BOUNDARY_COUNT, m->field_equation.at[0].at,
                                     "an equation of order %d takes %d boundary %s, %zu %s given", order,
                                     order, order == 1 ? "condition" : "conditions", m->conditions.n,
                                     m->conditions.n == 1 ? "is" : "are");
        diag_hint(m->d, d, plane ? "boundary u = 0" : "conditions are written as at x = 0 { u = 0, u' = 0 }");
    }
}
