/* assemble: model -> program. plan (the kernels needed) -> hoist (terms that depend only on parameters) ->
   emit. */
#include <string.h>
#include "assemble.h"
#include "emit.h"

typedef struct { /* a planned kernel */
    ir_ref *out;
    size_t n;
    slot_map *row, *col;
    const index_names *over;
    span at;
    kernel *to;
    bool step; /* runs in a time step */
} pending;

typedef struct work {
    const model *m;
    ir *g;
    arena *a;
    const dynamics *dy;
    arena *to; /* the program's */
    program *p;
    vec(pending) plan;
    bool *fixed; /* of each node: it depends only on parameters and constants */
    vec(ir_ref) hoisted;
} work;

static bool is_zero(const work *w, ir_ref f)
{
    double k;
    return ir_is_const(w->g, f, &k) && k == 0;
}

/* ---- plan ---- */
static pending *plan_add(work *w, kernel *to, const index_names *over, span at, const ir_ref *out, size_t n)
{
    pending *p = vec_push(w->a, &w->plan);
    *p = (pending){
        .out = arena_array(w->a, ir_ref, n), .n = n, .over = over, .at = at, .to = to, .step = true
    };
    if (n)
        memcpy(p->out, out, n * sizeof *out);
    return p;
}

static void plan_entries(work *w, kernel *to, const index_names *over, span at, const entries *e, bool row,
                         bool col)
{
    pending *p = plan_add(w, to, over, at, NULL, 0);
    p->out = arena_array(w->a, ir_ref, e->n);
    if (row)
        p->row = arena_array(w->to, slot_map, e->n);
    if (col)
        p->col = arena_array(w->to, slot_map, e->n);
    for (size_t i = 0; i < e->n; i++) {
        if (is_zero(w, e->at[i].f))
            continue;
        if (row)
            p->row[p->n] = e->at[i].row;
        if (col)
            p->col[p->n] = e->at[i].col;
        p->out[p->n++] = e->at[i].f;
    }
    if (p->n == 0)
        w->plan.n--;
}

static kernels plan_role(work *w, const role *r, bool row, bool col)
{
    kernels k = { arena_array(w->to, kernel, r->group.n), 0 };
    for (size_t i = 0; i < r->group.n; i++) {
        const entry_group *g = &r->group.at[i];
        size_t before = w->plan.n;
        plan_entries(w, &k.at[k.n], &g->over, g->at, &g->list, row, col);
        if (w->plan.n > before)
            k.n++;
    }
    return k;
}

/* A vec of one more output for the current kernel. */
typedef vec(ir_ref) outputs;
typedef struct {
    outputs out;
    vec(slot_map) row;
    span at;
} batch;

static bool is_strided(const address *a)
{
    for (int k = 0; k < MAX_INDEX; k++)
        if (a->stride[k])
            return true;
    return false;
}

static const index_names SINGLE = { .set.count = 1 };

static void batch_close(work *w, batch *b, kernels *k)
{
    if (b->out.n == 0)
        return;
    pending *p = plan_add(w, &k->at[k->n++], &SINGLE, b->at, b->out.at, b->out.n);
    p->row = arena_array(w->to, slot_map, b->row.n);
    memcpy(p->row, b->row.at, b->row.n * sizeof *p->row);
    p->step = false;
    b->out.n = b->row.n = 0;
}

/* Does f read what the batch is about to compute?  of[k]: number of the kernel that computes slot k, from 1.
 */
static bool batch_feeds(work *w, const mfamily *f, in_kind kind, const uint32_t *of, int32_t n, size_t now)
{
    ir_ref *input;
    size_t count = ir_inputs(w->g, w->a, f->out, (size_t)f->nout, &input);
    for (size_t j = 0; j < count; j++) {
        const ir_input *in = ir_input_of(w->g, input[j]);
        if (in->kind != kind)
            continue;
        if (is_strided(&in->at) || in->at.base < 0 || in->at.base >= n || of[in->at.base] == now)
            return true;
    }
    return false;
}

/* Families that may read what earlier ones computed: single ones are joined as long as they do not. */
static kernels plan_in_order(work *w, const mfamilies *fs, in_kind kind, int32_t n, size_t more)
{
    kernels k = { arena_array(w->to, kernel, fs->n + more), 0 };
    uint32_t *of = arena_array(w->a, uint32_t, n);
    batch b = { 0 };
    for (size_t i = 0; i < fs->n; i++) {
        const mfamily *f = &fs->at[i];
        bool single = f->over.n == 0 && f->over.where == IR_NONE;
        if (!single || batch_feeds(w, f, kind, of, n, k.n + 1))
            batch_close(w, &b, &k);
        if (!single) {
            pending *p = plan_add(w, &k.at[k.n++], &f->over, f->at, f->out, (size_t)f->nout);
            p->row = arena_array(w->to, slot_map, f->nout);
            if (f->nout)
                memcpy(p->row, f->row, (size_t)f->nout * sizeof *p->row);
            p->step = false;
            continue;
        }
        if (b.out.n == 0)
            b.at = f->at;
        for (int j = 0; j < f->nout; j++) {
            *vec_push(w->a, &b.out) = f->out[j];
            *vec_push(w->a, &b.row) = f->row[j];
            if (f->row[j].base >= 0 && f->row[j].base < n)
                of[f->row[j].base] = (uint32_t)k.n + 1;
        }
    }
    batch_close(w, &b, &k);
    return k;
}

static void plan_one(work *w, kernel *to, const mcontact *c, ir_ref f)
{
    if (f != IR_NONE)
        plan_add(w, to, &c->over, c->at, &f, 1);
}

static void plan_slip(work *w, contact_family *to, const mcontact *c, const contact_form *f)
{
    ir_ref bias[MAX_SLIP];
    if (!c->slip_given)
        return;
    to->nslip = c->nslip;
    plan_add(w, &to->slip, &c->over, c->slip_at, c->slip, (size_t)c->nslip);
    plan_entries(w, &to->slip_map, &c->over, c->slip_at, &f->slip_map, true, true);
    if (f->slip_carried)
        plan_add(w, &to->slip_offset, &c->over, c->slip_at, f->slip_offset, (size_t)c->nslip);
    if (!f->slip_moves)
        return;
    for (int k = 0; k < c->nslip; k++)
        bias[k] = f->slip_bias[k] ? f->slip_bias[k] : ir_const(w->g, 0);
    plan_add(w, &to->slip_bias, &c->over, c->slip_at, bias, (size_t)c->nslip);
}

static void plan_near(work *w, contact_family *to, const mcontact *c, const contact_form *f)
{
    to->near_dim = f->near_dim;
    if (!f->near_dim)
        return;
    memcpy(to->near_a, f->near_a, sizeof to->near_a);
    memcpy(to->near_b, f->near_b, sizeof to->near_b);
    plan_one(w, &to->near_reach, c, f->near_reach);
}

static bool is_speed(const ir_input *in, void *ud)
{
    (void)ud;
    return in->kind == IN_SPEED;
}

static bool is_reaction(const ir_input *in, void *ud)
{
    (void)ud;
    return in->kind == IN_REACT;
}

/* the last family of that constraint before `end`, moments left out */
static int32_t family_of(const model *m, const ast *decl, const mcontact *end)
{
    for (size_t k = (size_t)(end - m->contacts.at); k-- > 0;)
        if (m->contacts.at[k].decl == decl && !m->contacts.at[k].fed_by)
            return (int32_t)k;
    return -1;
}

static void plan_contact(work *w, contact_family *to, const mcontact *c, const contact_form *f)
{
    *to = (contact_family){ .name = arena_strdup(w->to, c->path),
                            .at = c->at,
                            .nindex = c->own + (c->slots > 0),
                            .slots = c->slots,
                            .over = c->over.set,
                            .relation = c->relation,
                            .friction = c->friction,
                            .impact = c->impact,
                            .of_rates = c->of_rates,
                            .slip_given = c->slip_given,
                            .mu_of_speed = c->mu && ir_depends(w->g, c->mu, is_speed, NULL),
                            .e_of_speed = c->e && ir_depends(w->g, c->e, is_speed, NULL),
                            .cascade = c->cascade,
                            .fed = c->fed_by || (c->normal && ir_depends(w->g, c->normal, is_reaction, NULL)),
                            .fed_by = c->fed_by ? family_of(w->m, c->fed_by, c) : -1,
                            .gap_linear = f->linear,
                            .gap_constant_gradient = f->constant_gradient };
    plan_one(w, &to->gap, c, c->relation == REL_CLOSED || c->of_rates ? IR_NONE : c->gap);
    plan_entries(w, &to->gradient, &c->over, c->at, &f->gradient, true, false);
    plan_one(w, &to->rate, c, f->rate);
    plan_one(w, &to->bias, c, f->bias);
    plan_slip(w, to, c, f);
    plan_one(w, &to->normal, c, c->normal);
    plan_one(w, &to->mu, c, c->mu);
    plan_one(w, &to->mu_static, c, c->mu_static);
    plan_one(w, &to->e, c, c->e);
    plan_one(w, &to->et, c, c->et);
    plan_one(w, &to->adhesion, c, c->adhesion);
    plan_near(w, to, c, f);
    if (c->pair.first) {
        to->pair.touch = true;
        to->pair.listed = c->pair.listed;
        to->pair.first = c->pair.first->number - 1;
        to->pair.second = c->pair.second->number - 1;
        to->pair.first_of = c->pair.first_of;
        to->pair.second_of = c->pair.second_of;
        to->pair.features = c->pair.features;
    }
    if (!c->dim)
        return;
    ir_ref at[6];
    for (int k = 0; k < c->dim; k++) {
        at[k] = c->point[k];
        at[c->dim + k] = c->facing[k];
    }
    plan_add(w, &to->points, &c->over, c->at, at, 2 * (size_t)c->dim);
}

static void plan_event(work *w, event_rule *to, const mevent *e)
{
    ir_ref *out = arena_array(w->a, ir_ref, e->nswitch + 1);
    *to = (event_rule){ .at = e->at, .stop = e->stop, .over = e->over.set };
    out[0] = e->when;
    if (e->nswitch)
        memcpy(out + 1, e->switches, (size_t)e->nswitch * sizeof *out);
    plan_add(w, &to->when, &e->over, e->at, out, (size_t)e->nswitch + 1);
    if (e->nset == 0)
        return;
    pending *p = plan_add(w, &to->reset, &e->over, e->at, e->value, (size_t)e->nset);
    p->row = arena_array(w->to, slot_map, e->nset);
    memcpy(p->row, e->target, (size_t)e->nset * sizeof *p->row);
    bool *rate = arena_array(w->to, bool, e->nset);
    memcpy(rate, e->rate, (size_t)e->nset * sizeof *rate);
    to->reset_rate = rate;
}

static int32_t class_number(const model *m, const mclass *c)
{
    for (size_t k = 0; k < m->classes.n; k++)
        if (m->classes.at[k] == c)
            return (int32_t)k;
    return -1;
}

static void plan_shape(work *w, shape_info *to, const mshape *s)
{
    *to = (shape_info){ .name = arena_strdup(w->to, s->name),
                        .where = s->at,
                        .kind = s->kind,
                        .of = class_number(w->m, s->of),
                        .dim = s->dim,
                        .npoint = s->npoint,
                        .table = s->table,
                        .size = s->size,
                        .instances = s->of ? s->of->ninst : 1 };
    if (s->of && s->decl->kid[1]->n)
        plan_add(w, &to->pose, &s->of->inst, s->at, s->pose, (size_t)(s->dim + s->dim * s->dim));
}

static void plan_shapes(work *w)
{
    const model *m = w->m;
    shape_info *to = arena_array(w->to, shape_info, m->shapes.solids.n);
    w->p->shapes.at = to;
    w->p->shapes.n = w->p->shapes.paired = m->shapes.list.n;
    for (size_t k = 0; k < m->shapes.list.n; k++)
        plan_shape(w, &to[k], m->shapes.list.at[k]);
    for (size_t k = 0; k < m->shapes.solids.n; k++)
        if (!m->shapes.solids.at[k]->number)
            plan_shape(w, &to[w->p->shapes.n++], m->shapes.solids.at[k]);
    w->p->shapes.nfeature = m->shapes.nfeature;
}

static void plan_dynamics(work *w)
{
    const model *m = w->m;
    const dynamics *dy = w->dy;
    program *p = w->p;
    p->mass = plan_role(w, &dy->mass, true, true);
    p->force = plan_role(w, &dy->force, true, false);
    p->force_dq = plan_role(w, &dy->force_dq, true, true);
    p->force_dv = plan_role(w, &dy->force_dv, true, true);
    p->kinetic = plan_role(w, &dy->kinetic, false, false);
    p->potential = plan_role(w, &dy->potential, false, false);
    p->driving = plan_role(w, &dy->driving, true, false);
    p->power = plan_role(w, &dy->power, false, false);
    contact_family *c = arena_array(w->to, contact_family, m->contacts.n);
    for (size_t k = 0; k < m->contacts.n; k++)
        plan_contact(w, &c[k], &m->contacts.at[k], &dy->contact[k]);
    event_rule *e = arena_array(w->to, event_rule, m->events.n);
    for (size_t k = 0; k < m->events.n; k++)
        plan_event(w, &e[k], &m->events.at[k]);
    plan_shapes(w);
    p->contact = c, p->ncontact = m->contacts.n;
    for (size_t k = 0; k < m->reacts.n; k++) {
        contact_family *read = &c[family_of(m, m->reacts.at[k].decl, m->contacts.at + m->contacts.n)];
        read->read_as = (int32_t)k + 1;
        read->read_at = m->reacts.at[k].at;
    }
    p->event = e, p->nevent = m->events.n;
}

/* ---- hoist ---- */
/* Operands have smaller numbers than their users, so that passes over all nodes are loops. */
static void hoist_look(work *w, size_t n)
{
    w->fixed = arena_array(w->a, bool, n + 1);
    w->fixed[IR_NONE] = true;
    for (ir_ref r = 1; r <= n; r++) {
        const ir_node *x = ir_at(w->g, r);
        const ir_input *in = ir_input_of(w->g, r);
        if (in)
            w->fixed[r] = in->kind == IN_PARAM && !is_strided(&in->at);
        else
            w->fixed[r] = x->op == IR_CONST || (w->fixed[x->a] && w->fixed[x->b] && w->fixed[x->c]);
    }
}

static bool hoists(const work *w, ir_ref r)
{
    return w->fixed[r] && ir_at(w->g, r)->op < OP_COUNT;
}

/* The nodes below the outputs that are computed in a step, without the hoisted ones. */
static bool *hoist_need(work *w, size_t n)
{
    bool *need = arena_array(w->a, bool, n + 1);
    for (size_t i = 0; i < w->plan.n; i++)
        for (size_t j = 0; w->plan.at[i].step && j < w->plan.at[i].n; j++)
            need[w->plan.at[i].out[j]] = true;
    for (ir_ref r = (ir_ref)n; r > 0; r--) {
        if (!need[r] || hoists(w, r))
            continue;
        const ir_node *x = ir_at(w->g, r);
        const ir_input *in = ir_input_of(w->g, r);
        if (in)
            need[in->arg] = true;
        else if (x->op < OP_COUNT)
            need[x->a] = need[x->b] = need[x->c] = true;
    }
    return need;
}

static ir_ref hoist_node(work *w, ir_ref r, const ir_ref *now)
{
    const ir_node x = *ir_at(w->g, r);
    if (hoists(w, r)) {
        *vec_push(w->a, &w->hoisted) = r;
        return ir_in(w->g, (ir_input){ .kind = IN_PARAM, .at.base = w->p->nparam++ });
    }
    if (x.op == IR_CONST)
        return r;
    if (x.op == IR_INPUT) {
        ir_input in = *ir_input_of(w->g, r);
        if (now[in.arg] == in.arg)
            return r;
        in.arg = now[in.arg];
        return ir_in(w->g, in);
    }
    if (now[x.a] == x.a && now[x.b] == x.b && now[x.c] == x.c)
        return r;
    return ir_op(w->g, (op_code)x.op, now[x.a], now[x.b], now[x.c]);
}

/* Terms that depend only on parameters become derived parameters, so that no step computes them again. */
static void hoist(work *w)
{
    size_t n = ir_count(w->g);
    hoist_look(w, n);
    const bool *need = hoist_need(w, n);
    ir_ref *now = arena_array(w->a, ir_ref, n + 1);
    for (ir_ref r = 1; r <= n; r++)
        if (need[r])
            now[r] = hoist_node(w, r, now);
    for (size_t i = 0; i < w->plan.n; i++)
        for (size_t j = 0; w->plan.at[i].step && j < w->plan.at[i].n; j++)
            w->plan.at[i].out[j] = now[w->plan.at[i].out[j]];
}

static void plan_derived(work *w)
{
    program *p = w->p;
    p->derived = plan_in_order(w, &w->m->derived, IN_PARAM, w->m->nparam, 1);
    if (w->hoisted.n == 0)
        return;
    span at = w->m->decl ? w->m->decl->at : SPAN_NONE;
    pending *k = plan_add(w, &p->derived.at[p->derived.n++], &SINGLE, at, w->hoisted.at, w->hoisted.n);
    k->step = false;
    k->row = arena_array(w->to, slot_map, w->hoisted.n);
    for (size_t i = 0; i < w->hoisted.n; i++)
        k->row[i].base = w->m->nparam + (int32_t)i;
}

/* ---- emit ---- */
static void emit_plan(work *w)
{
    for (size_t i = 0; i < w->plan.n; i++) {
        const pending *p = &w->plan.at[i];
        *p->to = emit_kernel(w->to, w->a, w->g, p->out, p->n, &p->over->set, p->over->where, p->at);
        p->to->row = p->row;
        p->to->col = p->col;
    }
}

static const char *keep(arena *a, const char *s)
{
    return s ? arena_strdup(a, s) : NULL;
}

static void put_dof(text *out, const void *m, int32_t dof)
{
    model_place(out, m, NULL, &(address){ .base = dof }, true);
}

static void program_names(work *w)
{
    program *p = w->p;
    const mclass *root = w->m->classes.n ? w->m->classes.at[0] : &(mclass){ 0 };
    param_info *param = arena_array(w->to, param_info, root->params.n);
    dof_info *dof = arena_array(w->to, dof_info, root->dofs.n);
    for (size_t k = 0; k < root->params.n; k++) {
        const mparam *x = root->params.at[k];
        param[k] = (param_info){ keep(w->to, x->name), keep(w->to, x->doc), x->offset, x->size, x->lo, x->hi,
                                 x->has_default,       x->structural,       x->at };
    }
    for (size_t k = 0; k < root->dofs.n; k++) {
        const mdof *x = root->dofs.at[k];
        dof[k] = (dof_info){ keep(w->to, x->name), keep(w->to, x->doc), root->qbase + x->offset, x->size,
                             x->at };
    }
    p->param = param, p->nparam_info = root->params.n;
    p->dofs.at = dof, p->dofs.n = root->dofs.n;
    p->dofs.put = put_dof, p->dofs.source = w->m;
}

/* in the order of the dofs, all instances and members */
static void program_rotations(work *w)
{
    const model *m = w->m;
    int32_t *at = arena_array(w->to, int32_t, m->nq / 3 + 1);
    size_t n = 0;
    for (size_t c = 0; c < m->classes.n; c++) {
        const mclass *of = m->classes.at[c];
        for (int32_t inst = 0; inst < of->ninst; inst++)
            for (size_t k = 0; k < of->dofs.n; k++)
                for (int32_t i = 0; of->dofs.at[k]->rotation && i < of->dofs.at[k]->size; i += 3)
                    at[n++] = of->qbase + inst * of->qsize + of->dofs.at[k]->offset + i;
    }
    w->p->rotations = (rotation_list){ at, n };
}

static void program_facts(work *w)
{
    const model *m = w->m;
    const dynamics *dy = w->dy;
    program *p = w->p;
    uint8_t *order = arena_array(w->to, uint8_t, m->nq);
    if (m->nq)
        memcpy(order, m->order, (size_t)m->nq);
    p->order = order;
    p->mass_constant = dy->mass_constant, p->mass_diagonal = dy->mass_diagonal;
    p->force_linear = dy->force_linear, p->force_of_state = dy->force_of_state;
    p->potential_whole = dy->potential_whole;
    p->has_first_order = dy->first_order;
    p->has_delay = m->has_delay;
    if (m->inclusion.n)
        p->has_inclusion = m->inclusion.at[0].at;
    else if (m->sets.n)
        p->has_inclusion = m->sets.at[0].at;
    if (m->fields.n)
        p->has_field = m->fields.at[0].at;
    if (m->rods.n)
        p->has_rod = m->rods.at[0].at;
    if (m->events.n)
        p->has_event = m->events.at[0].at;
}

/* Past values become slots before anything is hoisted: their times may hold parameters. */
static void plan_delays(work *w)
{
    delays *d = delays_new(w->to, w->a, w->m);
    for (size_t i = 0; i < w->plan.n; i++)
        if (w->plan.at[i].step)
            delays_lower(d, w->plan.at[i].over, w->plan.at[i].out, w->plan.at[i].n);
    w->p->delay = delays_end(d);
    w->p->has_delay = w->p->delay->at;
}

static void program_plan(work *w)
{
    const model *m = w->m;
    program *p = w->p;
    p->defaults = plan_in_order(w, &m->defaults, IN_PARAM, m->nparam, 0);
    p->start.base = plan_in_order(w, &m->init_base, IN_BASE, 3 * m->nq, 0);
    p->start.q = plan_in_order(w, &m->init_q, IN_Q, m->nq, 0);
    p->start.v = plan_in_order(w, &m->init_v, IN_V, m->nq, 0);
    plan_dynamics(w);
    if (m->has_delay.file || m->integrals.n)
        plan_delays(w);
    hoist(w);
    plan_derived(w);
}

program *assemble(arena *a, arena *scratch, const model *m)
{
    work w = { .m = m, .g = m->g, .a = scratch, .to = a };
    arena_pos mark = arena_mark(scratch);
    w.dy = dynamics_of(scratch, m);
    if (w.dy) {
        w.p = arena_make(a, program);
        *w.p = (program){
            .model = keep(a, m->name), .hash = model_hash(m), .nparam = m->nparam, .nq = m->nq
        };
        program_names(&w);
        program_facts(&w);
        program_rotations(&w);
        program_plan(&w);
        emit_plan(&w);
        if (!m->fields.n && (w.p->has_inclusion.file || w.p->has_first_order.file) &&
            !(w.p->inclusion = assemble_inclusion(a, scratch, m)))
            w.p = NULL;
        else if (m->fields.n && !(w.p->field = assemble_field(a, scratch, m)))
            w.p = NULL;
        else if (m->rods.n && !(w.p->rod = assemble_rod(a, scratch, m, w.p)))
            w.p = NULL;
    }
    arena_release(scratch, mark);
    return w.p;
}
