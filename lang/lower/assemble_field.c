/* assemble_field: the fields of a model -> field_program.  Jets become rows of a table, so that a kernel runs
   over many points at once; point loads are taken out of the residuals; comparisons of coordinates are kept
   as the places where pieces end. */
#include <string.h>
#include "assemble.h"
#include "emit.h"
#include "field/field.h"

typedef struct {
    const model *m;
    ir *g;
    arena *a, *to;
    field_program *f;
    vec(field_switch) sw;
    vec(ir_ref) seen;
    vec(field_form) bend;
    vec(ir_ref) bend_of;
} work;

static bool is_field(const ir_input *in, void *ud)
{
    (void)ud;
    return in->kind == IN_FIELD;
}
static bool is_coord(const ir_input *in, void *ud)
{
    (void)ud;
    return in->kind == IN_COORD;
}
static bool is_foreign(const ir_input *in, void *ud)
{
    (void)ud;
    return in->kind != IN_FIELD && in->kind != IN_COORD && in->kind != IN_PARAM;
}
static bool has_field(const work *w, ir_ref r)
{
    return r && ir_depends(w->g, r, is_field, NULL);
}
static bool has_coord(const work *w, ir_ref r)
{
    return r && ir_depends(w->g, r, is_coord, NULL);
}

static bool form_check(const work *w, ir_ref r, span at)
{
    if (!ir_depends(w->g, r, is_foreign, NULL))
        return true;
    diag *d = diag_error(w->m->d, DIAG_NOT_SUPPORTED, at,
                         "an equation of a field may use only coordinates, fields and parameters");
    diag_hint(w->m->d, d, "fields are static: time, degrees of freedom and integrals are not allowed here");
    return false;
}

/* ---- nodes replaced ---- */
static ir_ref replace(const work *w, ir_ref root, ir_ref old, ir_ref new)
{
    ir_ref *now = arena_array(w->a, ir_ref, root + 1);
    for (ir_ref r = 1; r <= root; r++) {
        const ir_node x = *ir_at(w->g, r);
        if (r == old)
            now[r] = new;
        else if (r < old || x.op >= OP_COUNT)
            now[r] = r;
        else if (now[x.a] == x.a && now[x.b] == x.b && now[x.c] == x.c)
            now[r] = r;
        else
            now[r] = ir_op(w->g, (op_code)x.op, now[x.a], now[x.b], now[x.c]);
    }
    return now[root];
}

static ir_ref at_zero(ir *g, ir_ref input, void *ud)
{
    (void)ud;
    return ir_input_of(g, input)->kind == IN_COORD ? ir_const(g, 0) : IR_NONE;
}

/* ---- kernels over points ---- */
typedef struct {
    const jet *jet;
    int njet, ncoord;
} layout;

static ir_ref to_table(ir *g, ir_ref input, void *ud)
{
    const layout *l = ud;
    ir_input in = *ir_input_of(g, input);
    if (in.kind == IN_COORD) {
        in.at.stride[0] = l->ncoord;
        return ir_in(g, in);
    }
    if (in.kind != IN_FIELD)
        return IR_NONE;
    for (int k = 0; k < l->njet; k++)
        if (l->jet[k].field == in.at.base && l->jet[k].d[0] == in.at.stride[0] &&
            l->jet[k].d[1] == in.at.stride[1])
            return ir_in(g, (ir_input){ .kind = IN_BOUND, .at = { k, { l->njet } } });
    return IR_NONE;
}

static kernel points_kernel(const work *w, ir_ref *out, size_t n, const layout *l, span at)
{
    static const index_set many = { .n = 1, .count = 1 };
    layout own = *l;
    ir_substitute_all(w->g, out, n, to_table, &own);
    return emit_kernel(w->to, w->a, w->g, out, n, &many, IR_NONE, at);
}

static kernel coord_kernel(const work *w, ir_ref f, span at)
{
    return points_kernel(w, &f, 1, &(layout){ NULL, 0, w->f->ncoord }, at);
}

static kernel number_kernel(const work *w, ir_ref *out, size_t n, span at)
{
    static const index_set one = { .count = 1 };
    return emit_kernel(w->to, w->a, w->g, out, n, &one, IR_NONE, at);
}

/* does anything depend on a comparison of coordinates? */
static bool has_cases(const work *w, ir_ref f)
{
    bool found = false;
    ir_walk *walk = ir_walk_begin(w->g, &f, 1, 1, WALK_ALL);
    for (size_t k = 0; k < walk->n && !found; k++) {
        const ir_node *x = ir_at(w->g, walk->order[k]);
        found = (x->op == OP_SELECT || x->op == OP_SIGN || x->op == OP_LT || x->op == OP_LE ||
                 x->op == OP_GT || x->op == OP_GE) &&
                has_coord(w, x->a);
    }
    ir_walk_end(w->g, walk);
    return found;
}

static field_form form_of(const work *w, ir_ref f, span at)
{
    ir_ref *in, *out;
    size_t n = ir_inputs(w->g, w->a, &f, 1, &in);
    field_form r = { .at = at, .linear = true, .cases = has_cases(w, f) };
    jet *j = arena_array(w->to, jet, n + 1);
    out = arena_array(w->a, ir_ref, n + 1);
    out[0] = f;
    for (size_t k = 0; k < n; k++) {
        const ir_input x = *ir_input_of(w->g, in[k]);
        if (x.kind != IN_FIELD)
            continue;
        j[r.njet] = (jet){ x.at.base, { x.at.stride[0], x.at.stride[1] } };
        out[++r.njet] = ir_derive(w->g, f, in[k]);
        if (has_field(w, out[r.njet]))
            r.linear = false;
    }
    r.jet = j;
    r.k = points_kernel(w, out, (size_t)r.njet + 1, &(layout){ j, r.njet, w->f->ncoord }, at);
    return r;
}

/* ---- places where pieces end ---- */
static bool seen_before(work *w, ir_ref g)
{
    for (size_t k = 0; k < w->seen.n; k++)
        if (w->seen.at[k] == g)
            return true;
    *vec_push(w->a, &w->seen) = g;
    return false;
}

static void switch_add(work *w, ir_ref g, span at)
{
    if (seen_before(w, g))
        return;
    if (has_field(w, g)) {
        *vec_push(w->a, &w->bend_of) = g;
        *vec_push(w->to, &w->bend) = form_of(w, g, at);
        if (!w->f->has_bend.file)
            w->f->has_bend = at;
        return;
    }
    if (!has_coord(w, g) || w->f->ncoord != 1)
        return;
    ir_ref out[2] = { g, ir_space_derivative(w->g, g, 0) };
    bool affine = !has_coord(w, out[1]);
    *vec_push(w->to, &w->sw) = (field_switch){ points_kernel(w, out, 2, &(layout){ NULL, 0, 1 }, at),
                                               affine };
}

static void switches_find(work *w, ir_ref root, span at)
{
    ir_walk *walk = ir_walk_begin(w->g, &root, 1, 1, WALK_ALL);
    size_t n = walk->n;
    ir_ref *order = arena_array(w->a, ir_ref, n + 1);
    if (n)
        memcpy(order, walk->order, n * sizeof *order);
    ir_walk_end(w->g, walk);
    for (size_t k = 0; k < n; k++) {
        const ir_node x = *ir_at(w->g, order[k]);
        if (x.op == OP_LT || x.op == OP_LE || x.op == OP_GT || x.op == OP_GE || x.op == OP_MIN ||
            x.op == OP_MAX)
            switch_add(w, ir_op2(w->g, OP_SUB, x.a, x.b), at);
        else if (x.op == OP_ABS || x.op == OP_SIGN)
            switch_add(w, x.a, at);
    }
}

/* What changes its form at a corner takes the side that a piece is on: jet number BEND_JET + b is the sign of
 * bend b there. */
static ir_ref bend_argument(const work *w, const ir_node *x)
{
    switch (x->op) {
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE:
    case OP_MIN:
    case OP_MAX:
        return ir_op2(w->g, OP_SUB, x->a, x->b);
    case OP_ABS:
    case OP_SIGN:
        return x->a;
    default:
        return IR_NONE;
    }
}

static ir_ref bend_side(const work *w, const ir_node *x, int b)
{
    ir_ref sign = ir_in(w->g, (ir_input){ .kind = IN_FIELD, .at.base = BEND_JET + b }),
           up = ir_op2(w->g, OP_GT, sign, ir_const(w->g, 0));
    ir_ref yes = ir_const(w->g, 1), no = ir_const(w->g, 0);
    switch (x->op) {
    case OP_MAX:
        return ir_op(w->g, OP_SELECT, up, x->a, x->b);
    case OP_MIN:
        return ir_op(w->g, OP_SELECT, up, x->b, x->a);
    case OP_ABS:
        return ir_op(w->g, OP_SELECT, up, x->a, ir_op1(w->g, OP_NEG, x->a));
    case OP_SIGN:
        return ir_op(w->g, OP_SELECT, up, yes, ir_const(w->g, -1));
    case OP_LT:
    case OP_LE:
        return ir_op(w->g, OP_SELECT, up, no, yes);
    default:
        return ir_op(w->g, OP_SELECT, up, yes, no);
    }
}

static ir_ref bends_pin(const work *w, ir_ref f)
{
    for (bool again = true; again;) {
        ir_walk *walk = ir_walk_begin(w->g, &f, 1, 1, WALK_ALL);
        ir_ref found = IR_NONE;
        ir_node x = { 0 };
        again = false;
        for (size_t k = 0; k < walk->n && !found; k++) {
            x = *ir_at(w->g, walk->order[k]);
            if (x.op == OP_GT && ir_input_of(w->g, x.a) && ir_input_of(w->g, x.a)->kind == IN_FIELD &&
                ir_input_of(w->g, x.a)->at.base >= BEND_JET)
                continue;
            if (x.op < OP_COUNT && (has_field(w, x.a) || has_field(w, x.b)))
                found = walk->order[k];
            if (found && x.op != OP_LT && x.op != OP_LE && x.op != OP_GT && x.op != OP_GE && x.op != OP_MIN &&
                x.op != OP_MAX && x.op != OP_ABS && x.op != OP_SIGN)
                found = IR_NONE;
        }
        ir_walk_end(w->g, walk);
        ir_ref g = found ? bend_argument(w, &x) : IR_NONE;
        for (size_t b = 0; g && b < w->bend_of.n && !again; b++) {
            if (w->bend_of.at[b] != g)
                continue;
            f = replace(w, f, found, bend_side(w, &x, (int)b));
            again = true;
        }
    }
    return f;
}

/* ---- point loads ---- */
static bool load_take(const work *w, ir_ref node, ir_ref *f, span at, field_load *out)
{
    ir_ref g = ir_at(w->g, node)->a, slope = ir_space_derivative(w->g, g, 0);
    if (has_field(w, g) || has_coord(w, slope) || !has_coord(w, g) || w->f->ncoord != 1) {
        diag *d = diag_error(w->m->d, DIAG_NOT_SUPPORTED, at, "a point load is dirac(x - a) on a line");
        diag_hint(w->m->d, d, "a is a number or a parameter");
        return false;
    }
    /* fields do not read time: it represents the load */
    ir_ref mark = ir_in(w->g, (ir_input){ .kind = IN_TIME });
    ir_ref none = replace(w, *f, node, ir_const(w->g, 0)), marked = replace(w, *f, node, mark);
    ir_ref weight = ir_op2(w->g, OP_DIV, ir_derive(w->g, marked, mark), ir_op1(w->g, OP_ABS, slope));
    if (has_field(w, weight) || ir_depends(w->g, weight, is_foreign, NULL)) {
        diag_error(w->m->d, DIAG_NOT_SUPPORTED, at,
                   "the weight of a point load may depend on coordinates and parameters only");
        return false;
    }
    ir_ref place = ir_op1(w->g, OP_NEG, ir_op2(w->g, OP_DIV, ir_substitute(w->g, g, at_zero, NULL), slope));
    *f = none;
    *out = (field_load){ number_kernel(w, &place, 1, at), coord_kernel(w, weight, at), at };
    return true;
}

static ir_ref dirac_in(const work *w, ir_ref root)
{
    ir_ref found = IR_NONE;
    ir_walk *walk = ir_walk_begin(w->g, &root, 1, 1, WALK_ALL);
    for (size_t k = 0; k < walk->n && !found; k++)
        if (ir_at(w->g, walk->order[k])->op == OP_DIRAC)
            found = walk->order[k];
    ir_walk_end(w->g, walk);
    return found;
}

static bool loads_take(work *w, field_equation *e, ir_ref *f, span at)
{
    vec(field_load) all = { 0 };
    for (ir_ref d; (d = dirac_in(w, *f));)
        if (!load_take(w, d, f, at, vec_push(w->to, &all)))
            return false;
    e->load = all.at;
    e->nload = (int)all.n;
    return true;
}

/* ---- fluxes whose coefficients jump ---- */
static bool below(const work *w, ir_ref root, ir_ref node)
{
    bool found = false;
    ir_walk *walk = ir_walk_begin(w->g, &root, 1, 1, WALK_ALL);
    for (size_t k = 0; k < walk->n && !found; k++)
        found = walk->order[k] == node;
    ir_walk_end(w->g, walk);
    return found;
}

static int order_in(const work *w, ir_ref f, int field);

static void flux_warn(const work *w, span at)
{
    diag *d = diag_warn(w->m->d, DIAG_NOT_SUPPORTED, at,
                        "this derivative contains a coefficient with cases: where it jumps, the slope is "
                        "taken as continuous, not the flux");
    diag_hint(
        w->m->d, d,
        "write a*u' or a*grad(u) under the derivative, and the derivative itself as a term of the equation");
}

/* F = per*D + rest, D the derivative of the flux; in the plane the flux is a*u_c */
static bool flux_take(work *w, int field, const mflux *x, ir_ref *rest, field_flux *out)
{
    ir_ref mark = ir_in(w->g, (ir_input){ .kind = IN_TIME }); /* fields do not read time: it represents D */
    ir_ref per = ir_derive(w->g, replace(w, *rest, x->derivative, mark), mark);
    if (has_field(w, per) || ir_depends(w->g, per, is_foreign, NULL))
        return false;
    *out = (field_flux){ .coord = x->coord, .order = order_in(w, x->flux, field), .at = x->at };
    if (w->f->ncoord == 2) {
        ir_input in = { .kind = IN_FIELD, .at.base = field };
        in.at.stride[x->coord] = 1;
        ir_ref slope = ir_in(w->g, in), a = ir_derive(w->g, x->flux, slope),
               left = ir_op2(w->g, OP_SUB, x->flux, ir_op2(w->g, OP_MUL, a, slope));
        double none;
        if (has_field(w, a) || !ir_is_const(w->g, left, &none) || none != 0)
            return false;
        out->a = coord_kernel(w, a, x->at);
    }
    out->f = form_of(w, x->flux, x->at);
    out->per = coord_kernel(w, per, x->at);
    *rest = replace(w, *rest, x->derivative, ir_const(w->g, 0));
    return true;
}

/* on a line the flux of order k - 1, then those whose derivatives it is; in the plane one for each coordinate
 */
static void fluxes_take(work *w, field_equation *e, ir_ref f, span at)
{
    vec(field_flux) all = { 0 };
    ir_ref rest = f, top = IR_NONE;
    for (size_t k = 0; k < w->m->fluxes.n; k++) {
        const mflux *x = &w->m->fluxes.at[k];
        field_flux one;
        if (!below(w, rest, x->derivative) || order_in(w, x->flux, e->field) + 1 != e->order)
            continue;
        if (w->f->ncoord == 1 ? top != IR_NONE : all.n > 1)
            continue;
        if (!flux_take(w, e->field, x, &rest, &one)) {
            flux_warn(w, x->at);
            continue;
        }
        *vec_push(w->to, &all) = one;
        top = x->flux;
    }
    for (size_t k = 0; w->f->ncoord == 1 && top && k < w->m->fluxes.n; k++) {
        const mflux *x = &w->m->fluxes.at[k];
        if (x->derivative != top)
            continue;
        *vec_push(w->to, &all) = (field_flux){ .order = order_in(w, x->flux, e->field),
                                               .f = form_of(w, x->flux, x->at),
                                               .at = x->at };
        top = x->flux;
        k = (size_t)-1;
    }
    e->flux = all.at;
    e->nflux = (int)all.n;
    if (all.n)
        e->rest = form_of(w, rest, at);
}

/* ---- equations ---- */
static int order_in(const work *w, ir_ref f, int field)
{
    ir_ref *in;
    int order = -1;
    size_t n = ir_inputs(w->g, w->a, &f, 1, &in);
    for (size_t k = 0; k < n; k++) {
        const ir_input *x = ir_input_of(w->g, in[k]);
        if (x->kind == IN_FIELD && x->at.base == field && x->at.stride[0] + x->at.stride[1] > order)
            order = x->at.stride[0] + x->at.stride[1];
    }
    return order;
}

/* An equation for each field, which contains its highest derivative: of[field] = equation. */
static bool equations_assign(const work *w, int field, const int *order, bool *used, int *of)
{
    int n = w->f->nfield;
    if (field == n)
        return true;
    for (int e = 0; e < n; e++) {
        if (used[e] || order_in(w, w->m->field_equation.at[e].out[0], field) != order[field])
            continue;
        used[e] = true;
        of[field] = e;
        if (equations_assign(w, field + 1, order, used, of))
            return true;
        used[e] = false;
    }
    return false;
}

static ir_ref normal_form(const work *w, ir_ref f, int field, int order)
{
    if (w->f->ncoord != 1)
        return f;
    ir_ref top = ir_in(w->g, (ir_input){ .kind = IN_FIELD, .at = { field, { order } } });
    return ir_op2(w->g, OP_DIV, f, ir_derive(w->g, f, top));
}

static bool equations_make(work *w)
{
    const model *m = w->m;
    int n = w->f->nfield, order[FIELD_MAX] = { 0 }, of[FIELD_MAX];
    bool used[FIELD_MAX] = { 0 };
    for (int k = 0; k < n; k++)
        for (size_t e = 0; e < m->field_equation.n; e++) {
            int o = order_in(w, m->field_equation.at[e].out[0], k);
            if (o > order[k])
                order[k] = o;
        }
    if (!equations_assign(w, 0, order, used, of)) {
        diag_error(m->d, DIAG_NOT_SUPPORTED, m->field_equation.at[0].at,
                   "each field needs an equation of its own that contains its highest derivative");
        return false;
    }
    field_equation *eq = arena_array(w->to, field_equation, n);
    w->f->linear = true;
    for (int k = 0; k < n; k++) {
        const mfamily *from = &m->field_equation.at[of[k]];
        ir_ref f = from->out[0];
        if (!form_check(w, f, from->at) || !loads_take(w, &eq[k], &f, from->at))
            return false;
        switches_find(w, f, from->at);
        eq[k].field = k;
        eq[k].order = order[k];
        eq[k].f = form_of(w, f, from->at);
        eq[k].normal = form_of(w, normal_form(w, bends_pin(w, f), k, order[k]), from->at);
        fluxes_take(w, &eq[k], f, from->at);
        w->f->linear = w->f->linear && eq[k].f.linear;
    }
    w->f->eq = eq;
    return true;
}

static bool conditions_make(work *w)
{
    const model *m = w->m;
    field_condition *c = arena_array(w->to, field_condition, m->conditions.n);
    for (size_t k = 0; k < m->conditions.n; k++) {
        const mcondition *from = &m->conditions.at[k];
        if (!form_check(w, from->residual, from->at))
            return false;
        for (int f = 0; f < w->f->nfield; f++)
            if (order_in(w, from->residual, f) >= w->f->eq[f].order) {
                diag_error(
                    m->d, DIAG_BOUNDARY_COUNT, from->at,
                    "a condition may contain only derivatives below the order of the equation, which is %d",
                    w->f->eq[f].order);
                return false;
            }
        c[k].coord = from->coord;
        c[k].at = from->at;
        c[k].f = form_of(w, from->residual, from->at);
        if (!c[k].f.linear)
            w->f->linear = false;
        ir_ref where = from->where;
        if (from->coord >= 0)
            c[k].place = number_kernel(w, &where, 1, from->at);
        else if (where)
            c[k].where = coord_kernel(w, where, from->at);
    }
    w->f->cond = c;
    w->f->ncond = (int)m->conditions.n;
    return true;
}

static ir_ref field_zero(ir *g, ir_ref input, void *ud)
{
    (void)ud;
    return ir_input_of(g, input)->kind == IN_FIELD ? ir_const(g, 0) : IR_NONE;
}

static size_t fields_in(const work *w, ir_ref f)
{
    ir_ref *in;
    size_t n = ir_inputs(w->g, w->a, &f, 1, &in), count = 0;
    for (size_t k = 0; k < n; k++)
        count += ir_input_of(w->g, in[k])->kind == IN_FIELD;
    return count;
}

/* gap = u - psi or psi - u */
static bool obstacles_make(work *w)
{
    const model *m = w->m;
    field_obstacle *o = arena_array(w->to, field_obstacle, m->obstacles.n);
    for (size_t k = 0; k < m->obstacles.n; k++) {
        const mobstacle *from = &m->obstacles.at[k];
        ir_ref u = ir_in(w->g, (ir_input){ .kind = IN_FIELD, .at.base = from->field });
        ir_ref psi = ir_substitute(w->g, from->gap, field_zero, NULL);
        double slope;
        bool plain = ir_is_const(w->g, ir_derive(w->g, from->gap, u), &slope) && slope == from->sense &&
                     fields_in(w, from->gap) == 1;
        if (!form_check(w, from->gap, from->at))
            return false;
        if (!plain) {
            diag_error(m->d, DIAG_NOT_SUPPORTED, from->at, "an obstacle may depend only on the coordinates");
            return false;
        }
        if (from->sense > 0)
            psi = ir_op1(w->g, OP_NEG, psi);
        switches_find(w, psi, from->at);
        o[k] = (field_obstacle){ from->field, from->sense, coord_kernel(w, psi, from->at), from->at };
    }
    w->f->obst = o;
    w->f->nobst = (int)m->obstacles.n;
    return true;
}

const field_program *assemble_field(arena *to, arena *scratch, const model *m)
{
    work w = { .m = m, .g = m->g, .a = scratch, .to = to };
    w.f = arena_make(to, field_program);
    if (m->fields.n > FIELD_MAX) {
        diag_error(m->d, DIAG_NOT_SUPPORTED, m->fields.at[FIELD_MAX].at, "a model has at most %d fields",
                   FIELD_MAX);
        return NULL;
    }
    for (size_t k = 0; k < m->fields.n; k++)
        if (m->fields.at[k].ncoord != (int)m->coords.n) {
            diag_error(m->d, DIAG_NOT_SUPPORTED, m->fields.at[k].at,
                       "a field is a function of all coordinates of the domain, of which there are %zu",
                       m->coords.n);
            return NULL;
        }
    if (m->nq) {
        diag_error(m->d, DIAG_NOT_SUPPORTED, m->fields.at[0].at,
                   "a model has fields or degrees of freedom, not both");
        return NULL;
    }
    if (m->events.n) {
        diag_error(m->d, DIAG_NOT_SUPPORTED, m->events.at[0].at,
                   "a field is static, so nothing happens during its run");
        return NULL;
    }
    const char **name = arena_array(to, const char *, m->fields.n);
    ir_ref ends[4];
    w.f->ncoord = (int)m->coords.n;
    w.f->nfield = (int)m->fields.n;
    w.f->at = m->fields.at[0].at;
    w.f->name = name;
    for (size_t k = 0; k < m->fields.n; k++)
        name[k] = arena_strdup(to, m->fields.at[k].name);
    for (size_t k = 0; k < m->coords.n; k++) {
        w.f->coord[k] = arena_strdup(to, m->coords.at[k].name);
        ends[2 * k] = m->coords.at[k].lo;
        ends[2 * k + 1] = m->coords.at[k].hi;
    }
    w.f->domain = number_kernel(&w, ends, 2 * m->coords.n, m->coords.at[0].at);
    if (!equations_make(&w) || !conditions_make(&w) || !obstacles_make(&w))
        return NULL;
    w.f->sw = w.sw.at;
    w.f->nsw = (int)w.sw.n;
    w.f->bend = w.bend.at;
    w.f->nbend = (int)w.bend.n;
    return w.f;
}
