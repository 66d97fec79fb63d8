/* show: a model as text, in the words of the language: declarations, families and formulas, derivatives; and
   its hash. */
#include <math.h>
#include <string.h>
#include "dynamics.h"

/* ---- pieces of lines ---- */
enum { LONGEST = 5000 }; /* limit for formulas that are still readable */

/* parts of a formula as it would be written out, and no more than `most` */
static int parts_of(const ir *g, ir_ref f, int most)
{
    const ir_node *n = ir_at(g, f);
    const ir_ref under[] = { n->a, n->b, n->c };
    int parts = 1;
    if (n->op == IR_INPUT || n->op == IR_CONST)
        return parts;
    for (int i = 0; i < 3 && parts < most; i++)
        if (under[i])
            parts += parts_of(g, under[i], most - parts);
    return parts;
}

static void put_formula(text *out, const model *m, const index_names *over, ir_ref f)
{
    if (parts_of(m->g, f, LONGEST) >= LONGEST) {
        text_printf(out, "(a formula of more than %d parts; see show ir)", LONGEST);
        return;
    }
    ir_print(out, m->g, f, model_input_name, &(model_namer){ m, over });
}

static void put_range(text *out, const model *m, const index_names *over, int i)
{
    const index_range *r = &over->set.r[i];
    address lo = { .base = r->lo }, hi = { .base = r->hi };
    memcpy(lo.stride, r->lo_stride, sizeof lo.stride);
    memcpy(hi.stride, r->hi_stride, sizeof hi.stride);
    text_printf(out, "%s in ", over->name[i]);
    model_affine(out, m, over, &lo);
    text_puts(out, "..");
    model_affine(out, m, over, &hi);
}

/* The indices from number `from` on. */
static void put_ranges(text *out, const model *m, const index_names *over, int from)
{
    for (int i = from; i < over->n; i++) {
        if (i > from)
            text_puts(out, ", ");
        put_range(out, m, over, i);
    }
    if (over->where == IR_NONE)
        return;
    text_puts(out, " where ");
    put_formula(out, m, over, over->where);
}

/* " for i in 1..N", " for every disk", at the end of a line. */
static void put_for(text *out, const model *m, const index_names *over)
{
    const mclass *of = model_instances(m, over);
    if (of)
        text_printf(out, " for every %s", of->name);
    if (over->n == (of != NULL) && over->where == IR_NONE)
        return;
    text_puts(out, of ? ", " : " for ");
    put_ranges(out, m, over, of != NULL);
}

/* ---- families ---- */
typedef enum { FORM_SET, FORM_RATE, FORM_PARAM, FORM_RESIDUAL, FORM_TERM, FORM_FORCE, FORM_BASE } family_form;

static void dump_output(text *out, const model *m, const char *word, const mfamily *f, int i,
                        family_form form)
{
    text_printf(out, "%s ", word);
    if (form == FORM_BASE) {
        model_input_name(out, m->g, &(ir_input){ .kind = IN_BASE, .at = f->row[i] },
                         &(model_namer){ m, &f->over });
        text_puts(out, " = ");
    } else if (f->row && form != FORM_TERM) {
        model_place(out, m, &f->over, &f->row[i], form != FORM_PARAM);
        text_puts(out, form == FORM_RATE                             ? "' = "
                       : form == FORM_RESIDUAL || form == FORM_FORCE ? ": "
                                                                     : " = ");
    }
    put_formula(out, m, &f->over, f->out[i]);
    if (form == FORM_RESIDUAL)
        text_puts(out, " = 0");
    put_for(out, m, &f->over);
    text_putc(out, '\n');
}

static void dump_families(text *out, const model *m, const char *word, const mfamilies *fs, family_form form)
{
    for (size_t k = 0; k < fs->n; k++)
        for (int i = 0; i < fs->at[k].nout; i++)
            dump_output(out, m, word, &fs->at[k], i, form);
}

/* ---- declarations ---- */
static void dump_unit(text *out, dim u)
{
    if (u.any)
        return;
    text_puts(out, " [");
    dim_text(out, u);
    text_putc(out, ']');
}

static void dump_param(text *out, const char *prefix, const mparam *p)
{
    text_printf(out, "param %s%s", prefix, p->name);
    if (p->rank == 1)
        text_printf(out, "[%d]", p->n[0]);
    if (p->rank == 2)
        text_printf(out, "[%d, %d]", p->n[0], p->n[1]);
    dump_unit(out, p->unit);
    if (p->lo > -INFINITY || p->hi < INFINITY) {
        text_puts(out, " in ");
        text_num(out, p->lo);
        text_puts(out, "..");
        text_num(out, p->hi);
    }
    if (p->structural) {
        text_puts(out, " = ");
        text_num(out, p->fixed);
        text_puts(out, ", structural");
    } else if (!p->has_default)
        text_puts(out, ", no default");
    text_putc(out, '\n');
}

static void dump_dof(text *out, const model *m, const mclass *of, const char *prefix, const mdof *d)
{
    text_printf(out, "dof %s%s", prefix, d->name);
    for (int i = 0; i < d->ndim; i++)
        text_printf(out, "[%d..%d]", d->lo[i], d->lo[i] + d->n[i] - 1);
    if (d->rotation)
        text_puts(out, " in SO3");
    else if (d->comp)
        text_printf(out, " in R%d", d->comp);
    dump_unit(out, d->unit);
    if (d->size && of->ninst)
        text_printf(out, ", order %d", m->order[of->qbase + d->offset]);
    text_putc(out, '\n');
}

static void dump_part(text *out, const char *prefix, const mpart *p)
{
    text_printf(out, "part %s%s", prefix, p->name);
    if (p->indexed)
        text_printf(out, "[%d..%d]", p->lo, p->lo + p->n - 1);
    text_printf(out, ": %s\n", p->of->name);
}

static void dump_class(text *out, const model *m, size_t number)
{
    const mclass *c = m->classes.at[number];
    const char *prefix = number ? arena_printf(out->a, "%s.", c->name) : "";
    if (number)
        text_printf(out, "class %s: %d instance%s\n", c->name, c->ninst, c->ninst == 1 ? "" : "s");
    for (size_t k = 0; k < c->params.n; k++)
        dump_param(out, prefix, c->params.at[k]);
    for (size_t k = 0; k < c->dofs.n; k++)
        dump_dof(out, m, c, prefix, c->dofs.at[k]);
    for (size_t k = 0; k < c->parts.n; k++)
        dump_part(out, prefix, c->parts.at[k]);
}

/* ---- constraints and events ---- */
static const char *const relation_text[] = {
    [REL_GAP] = " >= 0", [REL_BILATERAL] = " = 0", [REL_CLOSED] = ""
};
static const char *const friction_text[] = {
    [FRICTION_NONE] = "none", [FRICTION_COULOMB] = "coulomb", [FRICTION_TRESCA] = "tresca"
};
static const char *const impact_text[] = { [IMPACT_NEWTON] = "newton", [IMPACT_POISSON] = "poisson" };

static void dump_law(text *out, const model *m, const mcontact *c, const char *key, const char *law, ir_ref f)
{
    text_printf(out, "    %s = %s%s", key, law ? law : "", law ? "(" : "");
    put_formula(out, m, &c->over, f);
    text_puts(out, law ? ")\n" : "\n");
}

static void dump_slip(text *out, const model *m, const mcontact *c)
{
    text_puts(out, "    slip = ");
    for (int k = 0; k < c->nslip; k++) {
        text_puts(out, k ? ", " : c->nslip > 1 ? "[" : "");
        put_formula(out, m, &c->over, c->slip[k]);
    }
    text_puts(out, c->nslip > 1 ? "]\n" : "\n");
}

static void dump_contact(text *out, const model *m, const mcontact *c)
{
    text_printf(out, "constraint %s", c->path);
    if ((c->own > 0 && !c->one) || c->slots) {
        text_putc(out, '[');
        put_ranges(out, m, &c->over, c->over.n - c->own - contact_hidden(c));
        text_putc(out, ']');
    }
    if (c->relation != REL_CLOSED) {
        text_puts(out, ": ");
        put_formula(out, m, &c->over, c->gap);
    }
    text_puts(out, relation_text[c->relation]);
    if (model_instances(m, &c->over))
        text_printf(out, " for every %s", model_instances(m, &c->over)->name);
    text_putc(out, '\n');
    if (c->normal)
        dump_law(out, m, c, "normal", NULL, c->normal);
    if (c->slip_given)
        dump_slip(out, m, c);
    if (c->friction != FRICTION_NONE && c->mu)
        dump_law(out, m, c, "friction", friction_text[c->friction], c->mu);
    if (c->mu_static)
        dump_law(out, m, c, "static friction", friction_text[c->friction], c->mu_static);
    if (c->e)
        dump_law(out, m, c, "impact", impact_text[c->impact], c->e);
    if (c->et)
        dump_law(out, m, c, "tangential", NULL, c->et);
    if (c->adhesion)
        dump_law(out, m, c, "adhesion", NULL, c->adhesion);
    if (c->fed_by)
        text_printf(out, "    normal = %s.rn\n", c->fed_by->name);
    if (c->cascade)
        text_puts(out, "    simultaneous = cascade\n");
}

static void dump_event(text *out, const model *m, const mevent *e)
{
    text_puts(out, e->stop ? "stop when " : "when ");
    put_formula(out, m, &e->over, e->when);
    if (e->nset)
        text_puts(out, " { ");
    for (int i = 0; i < e->nset; i++) {
        if (i)
            text_puts(out, ", ");
        model_place(out, m, &e->over, &e->target[i], true);
        text_puts(out, e->rate[i] ? "' = " : " = ");
        put_formula(out, m, &e->over, e->value[i]);
    }
    if (e->nset)
        text_puts(out, " }");
    put_for(out, m, &e->over);
    text_putc(out, '\n');
}

/* ---- fields and rods ---- */
static void dump_fields(text *out, const model *m)
{
    for (size_t k = 0; k < m->coords.n; k++) {
        text_printf(out, "domain %s in ", m->coords.at[k].name);
        put_formula(out, m, NULL, m->coords.at[k].lo);
        text_puts(out, "..");
        put_formula(out, m, NULL, m->coords.at[k].hi);
        text_putc(out, '\n');
    }
    for (size_t k = 0; k < m->fields.n; k++) {
        const mfield *f = &m->fields.at[k];
        text_printf(out, "field %s(", f->name);
        for (int c = 0; c < f->ncoord; c++)
            text_printf(out, "%s%s", c ? ", " : "", m->coords.at[f->coord[c]].name);
        text_puts(out, ")\n");
    }
    for (size_t k = 0; k < m->field_equation.n; k++)
        for (int i = 0; i < m->field_equation.at[k].nout; i++) {
            text_puts(out, "equation ");
            put_formula(out, m, &m->field_equation.at[k].over, m->field_equation.at[k].out[i]);
            text_puts(out, " = 0\n");
        }
}

static void dump_bounds(text *out, const model *m)
{
    for (size_t k = 0; k < m->obstacles.n; k++) {
        const mobstacle *o = &m->obstacles.at[k];
        text_puts(out, "obstacle ");
        put_formula(out, m, NULL, o->gap);
        text_printf(out, " >= 0, %s bounded from %s\n", m->fields.at[o->field].name,
                    o->sense > 0 ? "below" : "above");
    }
    for (size_t k = 0; k < m->conditions.n; k++) {
        const mcondition *c = &m->conditions.at[k];
        if (c->coord >= 0)
            text_printf(out, "at %s = ", m->coords.at[c->coord].name);
        else
            text_puts(out, c->where ? "boundary where " : "boundary");
        if (c->where)
            put_formula(out, m, NULL, c->where);
        text_puts(out, ": ");
        put_formula(out, m, NULL, c->residual);
        text_puts(out, " = 0\n");
    }
}

static void dump_rods(text *out, const model *m)
{
    for (size_t k = 0; k < m->rods.n; k++) {
        const mrod *r = &m->rods.at[k];
        text_printf(out, "rod %s\n", r->name);
        for (size_t i = 0; i < r->attr.n; i++) {
            text_printf(out, "    %s = ", r->attr.at[i].key);
            model_value(out, m, &r->attr.at[i].v, &(model_namer){ m, NULL });
            text_putc(out, '\n');
        }
    }
    for (size_t k = 0; k < m->loads.n; k++) {
        const mrodload *l = &m->loads.at[k];
        text_printf(out, "load %s.%s", m->rods.at[l->rod].name, l->what);
        if (l->point && l->s) {
            text_puts(out, " at ");
            put_formula(out, m, NULL, l->s);
        }
        text_puts(out, l->follower ? " = follower " : " = ");
        model_value(out, m, &l->v, &(model_namer){ m, NULL });
        text_putc(out, '\n');
    }
}

static void dump_links(text *out, const model *m)
{
    for (size_t k = 0; k < m->rod_links.pairs.n; k++) {
        const mrodpair *p = &m->rod_links.pairs.at[k];
        text_printf(out, "gap %zu of %s %s ", k + 1, m->rods.at[p->a].name, p->inside ? "inside" : "from");
        if (p->b >= 0)
            text_puts(out, m->rods.at[p->b].name);
        else
            model_value(out, m, &p->body, &(model_namer){ m, NULL });
        text_putc(out, '\n');
    }
    for (size_t k = 0; k < m->rod_links.joints.n; k++) {
        const mrodjoint *j = &m->rod_links.joints.at[k];
        text_printf(out, "joint %s of %s at ", j->what, m->rods.at[j->b].name);
        put_formula(out, m, NULL, j->sb);
        text_printf(out, " and %s at ", m->rods.at[j->a].name);
        put_formula(out, m, NULL, j->sa);
        if (!strcmp(j->what, "hinge")) {
            text_puts(out, " about ");
            model_value(out, m, &j->axis, &(model_namer){ m, NULL });
        }
        text_putc(out, '\n');
    }
}

/* ---- the whole ---- */
void model_dump(text *out, const model *m)
{
    text_printf(out, "model %s: %d dof%s, %d parameter%s\n", m->name ? m->name : "", m->nq,
                m->nq == 1 ? "" : "s", m->nparam, m->nparam == 1 ? "" : "s");
    for (size_t k = 0; k < m->classes.n; k++)
        dump_class(out, m, k);
    dump_families(out, m, "default", &m->defaults, FORM_PARAM);
    dump_families(out, m, "derived", &m->derived, FORM_PARAM);
    dump_families(out, m, "initial", &m->init_base, FORM_BASE);
    dump_families(out, m, "initial", &m->init_q, FORM_SET);
    dump_families(out, m, "initial", &m->init_v, FORM_RATE);
    dump_families(out, m, "history", &m->history, FORM_SET);
    dump_families(out, m, "equation", &m->equation, FORM_RESIDUAL);
    dump_families(out, m, "inclusion", &m->inclusion, FORM_RESIDUAL);
    dump_families(out, m, "kinetic", &m->kinetic, FORM_TERM);
    dump_families(out, m, "potential", &m->potential, FORM_TERM);
    dump_families(out, m, "dissipation", &m->dissipation, FORM_TERM);
    dump_families(out, m, "force", &m->force, FORM_FORCE);
    for (size_t k = 0; k < m->contacts.n; k++)
        dump_contact(out, m, &m->contacts.at[k]);
    for (size_t k = 0; k < m->events.n; k++)
        dump_event(out, m, &m->events.at[k]);
    dump_fields(out, m);
    dump_bounds(out, m);
    dump_rods(out, m);
    dump_links(out, m);
}

/* ---- ir ---- */
static void dump_dag(text *out, const model *m, const index_names *over, const ir_ref *f, size_t n,
                     const char *fmt, ...) __attribute__((format(printf, 6, 7)));

static void dump_dag(text *out, const model *m, const index_names *over, const ir_ref *f, size_t n,
                     const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    text_vprintf(out, fmt, ap);
    va_end(ap);
    put_for(out, m, over);
    text_putc(out, '\n');
    ir_dump(out, m->g, f, n, model_input_name, &(model_namer){ m, over });
}

static void dump_dags(text *out, const model *m, const char *word, const mfamilies *fs)
{
    for (size_t k = 0; k < fs->n; k++)
        dump_dag(out, m, &fs->at[k].over, fs->at[k].out, (size_t)fs->at[k].nout, "%s", word);
}

enum { CONTACT_FORMULAS = 7 + MAX_SLIP };
/* The formulas of a constraint, in a fixed order, absent ones left out. */
static size_t contact_formulas(const mcontact *c, ir_ref *f)
{
    const ir_ref all[] = {
        c->relation == REL_CLOSED ? IR_NONE : c->gap, c->normal, c->mu, c->e, c->mu_static, c->et, c->adhesion
    };
    size_t n = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i])
            f[n++] = all[i];
    for (int k = 0; c->slip_given && k < c->nslip; k++)
        f[n++] = c->slip[k];
    return n;
}

typedef struct {
    const char *word;
    const mfamilies *fs;
} family_role;
enum { FAMILY_ROLES = 14 };
static void family_roles(const model *m, family_role *r)
{
    const family_role all[FAMILY_ROLES] = { { "default", &m->defaults },
                                            { "derived", &m->derived },
                                            { "initial base", &m->init_base },
                                            { "initial", &m->init_q },
                                            { "initial rate", &m->init_v },
                                            { "history", &m->history },
                                            { "equation", &m->equation },
                                            { "inclusion", &m->inclusion },
                                            { "kinetic", &m->kinetic },
                                            { "potential", &m->potential },
                                            { "dissipation", &m->dissipation },
                                            { "force", &m->force },
                                            { "field equation", &m->field_equation },
                                            { NULL, NULL } };
    memcpy(r, all, sizeof all);
}

void model_dump_ir(text *out, const model *m)
{
    family_role r[FAMILY_ROLES];
    ir_ref f[CONTACT_FORMULAS];
    text_printf(out, "model %s\n", m->name);
    family_roles(m, r);
    for (int k = 0; r[k].word; k++)
        dump_dags(out, m, r[k].word, r[k].fs);
    for (size_t k = 0; k < m->contacts.n; k++) {
        const mcontact *c = &m->contacts.at[k];
        size_t n = contact_formulas(c, f);
        dump_dag(out, m, &c->over, f, n, "constraint %s", c->path);
    }
    for (size_t k = 0; k < m->events.n; k++)
        dump_dag(out, m, &m->events.at[k].over, &m->events.at[k].when, 1, "when");
    for (size_t k = 0; k < m->obstacles.n; k++)
        dump_dag(out, m, &(index_names){ 0 }, &m->obstacles.at[k].gap, 1, "obstacle");
    for (size_t k = 0; k < m->conditions.n; k++)
        dump_dag(out, m, &(index_names){ 0 }, &m->conditions.at[k].residual, 1, "condition");
}

/* ---- derivatives ---- */
static void dump_value(text *out, const model *m, const index_names *over, ir_ref f)
{
    text_puts(out, " = ");
    put_formula(out, m, over, f);
    put_for(out, m, over);
    text_putc(out, '\n');
}

/* d(f[x], a') = …, M[x, a] = … */
static void dump_matrix(text *out, const model *m, const role *r, const char *open, const char *between,
                        const char *close)
{
    double zero;
    for (size_t k = 0; k < r->group.n; k++) {
        const entry_group *g = &r->group.at[k];
        for (size_t i = 0; i < g->list.n; i++) {
            const entry *e = &g->list.at[i];
            if (ir_is_const(m->g, e->f, &zero) && zero == 0)
                continue;
            text_puts(out, open);
            model_place(out, m, &g->over, &e->row, true);
            text_puts(out, between);
            model_place(out, m, &g->over, &e->col, true);
            text_puts(out, close);
            dump_value(out, m, &g->over, e->f);
        }
    }
}

static void put_contact(text *out, const mcontact *c, const char *what)
{
    text_printf(out, "d(%s", c->path);
    int own = (c->one ? 0 : c->own) + contact_hidden(c), first = c->over.n - own;
    for (int i = first; i < c->over.n; i++)
        text_printf(out, "%s%s", i == first ? "[" : ", ", c->over.name[i] ? c->over.name[i] : "instance");
    text_printf(out, "%s.%s", own ? "]" : "", what);
}

static void dump_contact_derivatives(text *out, const model *m, const mcontact *c, const contact_form *f)
{
    for (size_t i = 0; i < f->gradient.n; i++) {
        put_contact(out, c, "gap, ");
        model_place(out, m, &c->over, &f->gradient.at[i].row, true);
        text_putc(out, ')');
        dump_value(out, m, &c->over, f->gradient.at[i].f);
    }
    if (f->rate) {
        put_contact(out, c, "gap, t)");
        dump_value(out, m, &c->over, f->rate);
    }
    for (size_t i = 0; i < f->slip_map.n; i++) {
        const entry *e = &f->slip_map.at[i];
        put_contact(out, c, "slip");
        if (c->nslip > 1)
            text_printf(out, "[%d]", e->row.base + 1);
        text_puts(out, ", ");
        model_place(out, m, &c->over, &e->col, true);
        text_puts(out, "')");
        dump_value(out, m, &c->over, e->f);
    }
}

void model_dump_jacobian(text *out, const model *m)
{
    const dynamics *dy = dynamics_of(out->a, m);
    if (!dy)
        return;
    text_printf(out, "model %s\n", m->name);
    dump_matrix(out, m, &dy->mass, "M[", ", ", "]");
    dump_matrix(out, m, &dy->force_dq, "d(f[", "], ", ")");
    dump_matrix(out, m, &dy->force_dv, "d(f[", "], ", "')");
    for (size_t k = 0; k < m->contacts.n; k++)
        dump_contact_derivatives(out, m, &m->contacts.at[k], &dy->contact[k]);
}

/* ---- equations of motion, as they are solved: M q'' = f + reactions ---- */
typedef struct {
    const char *row, *over;
    text left, right;
} balance;
typedef vec(balance) balances;

static const char *place_text(arena *a, const model *m, const index_names *over, const address *at)
{
    text t = { .a = a };
    model_place(&t, m, over, at, true);
    return t.at;
}

/* the balance of a dof over an index set; equal texts are the same */
static balance *balance_of(arena *a, balances *all, const model *m, const index_names *over,
                           const address *row)
{
    text f = { .a = a };
    text_puts(&f, "");
    put_for(&f, m, over);
    const char *at = place_text(a, m, over, row);
    for (size_t k = 0; k < all->n; k++)
        if (!strcmp(all->at[k].row, at) && !strcmp(all->at[k].over, f.at))
            return &all->at[k];
    balance *b = vec_push(a, all);
    *b = (balance){ .row = at, .over = f.at, .left.a = a, .right.a = a };
    return b;
}

static bool is_number(const model *m, ir_ref f, double x)
{
    double y;
    return ir_is_const(m->g, f, &y) && y == x;
}

/* a term, in brackets where a factor follows it */
static void put_term(text *t, const model *m, const index_names *over, ir_ref f, const char *of)
{
    if (t->n)
        text_puts(t, " + ");
    if (of && is_number(m, f, 1)) {
        text_puts(t, of);
        return;
    }
    if (of && is_number(m, f, -1)) {
        text_printf(t, "-%s", of);
        return;
    }
    text one = { .a = t->a };
    put_formula(&one, m, over, f);
    bool sum = of && (strstr(one.at, " + ") || strstr(one.at, " - "));
    text_printf(t, sum ? "(%s)" : "%s", one.at);
    if (of)
        text_printf(t, "*%s", of);
}

static void balances_mass(arena *a, balances *all, const model *m, const role *r)
{
    for (size_t k = 0; k < r->group.n; k++)
        for (size_t i = 0; i < r->group.at[k].list.n; i++) {
            const entry_group *g = &r->group.at[k];
            const entry *e = &g->list.at[i];
            if (is_number(m, e->f, 0))
                continue;
            put_term(&balance_of(a, all, m, &g->over, &e->row)->left, m, &g->over, e->f,
                     arena_printf(a, "%s''", place_text(a, m, &g->over, &e->col)));
        }
}

static void balances_force(arena *a, balances *all, const model *m, const role *r)
{
    for (size_t k = 0; k < r->group.n; k++)
        for (size_t i = 0; i < r->group.at[k].list.n; i++) {
            const entry_group *g = &r->group.at[k];
            const entry *e = &g->list.at[i];
            if (!is_number(m, e->f, 0))
                put_term(&balance_of(a, all, m, &g->over, &e->row)->right, m, &g->over, e->f, NULL);
        }
}

/* the terms that a constraint adds to them, and its conditions */
static void dump_reaction(text *out, const model *m, const mcontact *c, const contact_form *f)
{
    dump_contact(out, m, c);
    for (size_t i = 0; i < f->gradient.n; i++) {
        text name = { .a = out->a }, term = { .a = out->a };
        put_contact(&name, c, "rn");
        put_term(&term, m, &c->over, f->gradient.at[i].f, name.at + 2);
        text_printf(out, "    adds %s to the equation of %s\n", term.at,
                    place_text(out->a, m, &c->over, &f->gradient.at[i].row));
    }
}

void model_dump_equations(text *out, const model *m)
{
    const dynamics *dy = m->nq ? dynamics_of(out->a, m) : NULL;
    balances all = { 0 };
    /* of fields and rods the model is all there is */
    if (!dy) {
        model_dump(out, m);
        return;
    }
    text_printf(out, "model %s\n", m->name);
    balances_mass(out->a, &all, m, &dy->mass);
    balances_force(out->a, &all, m, &dy->force);
    for (size_t k = 0; k < all.n; k++) {
        const balance *b = &all.at[k];
        if (b->left.n)
            text_printf(out, "%s = %s", b->left.at, b->right.n ? b->right.at : "0");
        else
            text_printf(out, "to the equation of %s is added %s", b->row, b->right.at);
        text_printf(out, "%s\n", b->over);
    }
    for (size_t k = 0; k < m->contacts.n; k++)
        dump_reaction(out, m, &m->contacts.at[k], &dy->contact[k]);
}

/* ---- hash ---- */
static uint64_t hash_formula(const model *m, ir_ref f, uint64_t h)
{
    return f ? ir_hash(m->g, m->a, f, h) : hash64(h, 0);
}

static uint64_t hash_over(const model *m, const index_names *over, uint64_t h)
{
    h = hash64(h, (uint64_t)over->n);
    if (over->n)
        h = hash_bytes(over->set.r, (size_t)over->n * sizeof *over->set.r, h);
    return hash_formula(m, over->where, h);
}

static uint64_t hash_families(const model *m, const mfamilies *fs, uint64_t h)
{
    h = hash64(h, fs->n);
    for (size_t k = 0; k < fs->n; k++) {
        const mfamily *f = &fs->at[k];
        h = hash_over(m, &f->over, h);
        for (int i = 0; i < f->nout; i++)
            h = hash_formula(m, f->out[i], h);
        if (f->row && f->nout)
            h = hash_bytes(f->row, (size_t)f->nout * sizeof *f->row, h);
    }
    return h;
}

static uint64_t hash_contact(const model *m, const mcontact *c, uint64_t h)
{
    ir_ref f[CONTACT_FORMULAS];
    size_t n = contact_formulas(c, f);
    h = hash_over(m, &c->over, h);
    h = hash64(h, (uint64_t)c->relation << 8 | (uint64_t)c->friction << 4 | (uint64_t)c->impact << 2 |
                      (uint64_t)c->slip_given);
    h = hash64(h, (uint64_t)(c->normal != IR_NONE) << 2 | (uint64_t)(c->mu != IR_NONE) << 1 |
                      (uint64_t)(c->e != IR_NONE));
    uint64_t more = (uint64_t)(c->mu_static != IR_NONE) << 3 | (uint64_t)(c->et != IR_NONE) << 2 |
                    (uint64_t)(c->adhesion != IR_NONE) << 1 | (uint64_t)c->cascade;
    if (more)
        h = hash64(h, more);
    for (size_t i = 0; i < n; i++)
        h = hash_formula(m, f[i], h);
    return h;
}

static uint64_t hash_event(const model *m, const mevent *e, uint64_t h)
{
    h = hash_over(m, &e->over, hash64(h, e->stop));
    h = hash_formula(m, e->when, h);
    for (int i = 0; i < e->nset; i++)
        h = hash_formula(m, e->value[i],
                         hash_bytes(&e->target[i], sizeof e->target[i], hash64(h, e->rate[i])));
    return h;
}

static uint64_t hash_fields(const model *m, uint64_t h)
{
    for (size_t k = 0; k < m->integrals.n; k++) {
        const mintegral *x = &m->integrals.at[k];
        h = hash_formula(m, x->integrand, hash_formula(m, x->hi, hash_formula(m, x->lo, h)));
    }
    for (size_t k = 0; k < m->coords.n; k++)
        h = hash_formula(m, m->coords.at[k].hi, hash_formula(m, m->coords.at[k].lo, h));
    for (size_t k = 0; k < m->obstacles.n; k++)
        h = hash_formula(m, m->obstacles.at[k].gap, hash64(h, m->obstacles.at[k].sense > 0));
    for (size_t k = 0; k < m->conditions.n; k++) {
        const mcondition *c = &m->conditions.at[k];
        h = hash_formula(m, c->residual, hash_formula(m, c->where, hash64(h, (uint64_t)(int64_t)c->coord)));
    }
    return h;
}

/* Of what is computed: formulas, sets and addresses; not of names, layout or the order of building. */
uint64_t model_hash(const model *m)
{
    family_role r[FAMILY_ROLES];
    uint64_t h = hash64(hash64(0, (uint64_t)m->nq), (uint64_t)m->nparam);
    family_roles(m, r);
    for (int k = 0; r[k].word; k++)
        h = hash_families(m, r[k].fs, h);
    for (size_t k = 0; k < m->contacts.n; k++)
        h = hash_contact(m, &m->contacts.at[k], h);
    for (size_t k = 0; k < m->events.n; k++)
        h = hash_event(m, &m->events.at[k], h);
    h = hash_fields(m, h);
    if (m->nq)
        h = hash_bytes(m->order, (size_t)m->nq, h);
    if (m->rods.n) {
        text rods = { .a = m->a };
        dump_rods(&rods, m);
        dump_links(&rods, m);
        h = hash_bytes(rods.at, rods.n, h);
    }
    return h;
}
