/* model: classes, their names and layout.  A model is built in passes: collect names; find structural
   parameters; find the classes of its parts; count instances; lay out dofs; then lower statements (elab.c).
 */
#include "elab.h"
#include <math.h>
#include <string.h>
#include "base/whole.h"

const mdecl *class_find(const mclass *c, sym name)
{
    uint64_t *k = map64_get(&c->names, sym_key(name));
    return k ? (const mdecl *)(uintptr_t)*k : NULL;
}

const mparam *model_param(const model *m, sym name)
{
    const mdecl *d = class_find(m->classes.at[0], name);
    return d && d->kind == DECL_PARAM ? d->param : NULL;
}

const mdof *model_dof(const model *m, int32_t q, int32_t *in)
{
    for (size_t i = 0; i < m->classes.n; i++) {
        const mclass *c = m->classes.at[i];
        if (q < c->qbase || c->qsize == 0 || (q - c->qbase) / c->qsize >= c->ninst)
            continue;
        int32_t at = (q - c->qbase) % c->qsize;
        for (size_t k = 0; k < c->dofs.n; k++) {
            const mdof *d = c->dofs.at[k];
            if (at < d->offset || at >= d->offset + d->size)
                continue;
            if (in)
                *in = at - d->offset;
            return d;
        }
    }
    return NULL;
}

/* ---- collecting names ---- */

static mdecl *declare(elab *e, mclass *c, decl_kind kind, const ast *node, sym name, span at)
{
    const mdecl *old = class_find(c, name);
    if (old) {
        diag *d = diag_error(e->m->d, DIAG_DUPLICATE, at, "'%s' is declared twice", name);
        diag_second(e->m->d, d, old->at, "first declared here");
        return NULL;
    }
    mdecl *d = arena_make(e->m->a, mdecl);
    *d = (mdecl){ .kind = kind, .name = name, .at = at, .node = node };
    *map64_put(&c->names, sym_key(name)) = (uint64_t)(uintptr_t)d;
    return d;
}

/* the comment of a statement is for all its declarations */
static const char *doc_of(const ast *item, const ast *statement)
{
    return item->doc ? item->doc : statement->doc;
}

static void declare_param(elab *e, mclass *c, const ast *item, const ast *statement)
{
    mdecl *d = declare(e, c, DECL_PARAM, item, item->name, item->name_at);
    if (!d)
        return;
    mparam *p = arena_make(e->m->a, mparam);
    *p = (mparam){ .name = item->name,
                   .doc = doc_of(item, statement),
                   .at = item->name_at,
                   .decl = item,
                   .offset = -1,
                   .unit = dim_any(),
                   .lo = -INFINITY,
                   .hi = INFINITY };
    p->has_default = item->kid[1] != NULL;
    d->param = p;
    *vec_push(e->m->a, &c->params) = p;
}

static void declare_dof(elab *e, mclass *c, const ast *item, const ast *statement)
{
    if (item->num > 0)
        return; /* a rate: an initial value, taken later */
    mdecl *d = declare(e, c, DECL_DOF, item, item->name, item->name_at);
    if (!d)
        return;
    mdof *f = arena_make(e->m->a, mdof);
    *f = (mdof){ .name = item->name,
                 .doc = doc_of(item, statement),
                 .at = item->name_at,
                 .decl = item,
                 .unit = dim_any(),
                 .of = c };
    d->dof = f;
    *vec_push(e->m->a, &c->dofs) = f;
}

static void declare_part(elab *e, mclass *c, const ast *s)
{
    mdecl *d = declare(e, c, DECL_PART, s, s->name, s->name_at);
    if (!d)
        return;
    mpart *p = arena_make(e->m->a, mpart);
    *p = (mpart){ .name = s->name, .decl = s, .lo = 1, .n = 1 };
    d->part = p;
    *vec_push(e->m->a, &c->parts) = p;
}

static void declare_let(elab *e, mclass *c, const ast *bind)
{
    mdecl *d = declare(e, c, DECL_LET, bind, bind->name, bind->name_at);
    if (!d)
        return;
    d->let = arena_make(e->m->a, mlet);
    d->let->decl = bind;
}

static void declare_shape(elab *e, mclass *c, const ast *s)
{
    mdecl *d = declare(e, c, DECL_SHAPE, s, s->name, s->name_at);
    if (!d)
        return;
    d->shape = arena_make(e->m->a, mshape);
    *d->shape = (mshape){ .name = s->name, .decl = s, .at = s->name_at };
}

static void declare_numbered(elab *e, mclass *c, decl_kind kind, const ast *node)
{
    mdecl *d = declare(e, c, kind, node, node->name, node->name_at);
    if (!d)
        return;
    model *m = e->m;
    if (kind == DECL_COORD) {
        d->number = (int32_t)m->coords.n;
        *vec_push(m->a, &m->coords) = (mcoord){ .name = node->name, .at = node->at };
    } else if (kind == DECL_FIELD) {
        d->number = (int32_t)m->fields.n;
        *vec_push(m->a, &m->fields) = (mfield){ .name = node->name, .doc = node->doc, .at = node->at };
    } else {
        d->number = (int32_t)m->rods.n;
        *vec_push(m->a, &m->rods) = (mrod){ .name = node->name, .doc = node->doc, .at = node->name_at };
    }
}

static void declare_fn(elab *e, mclass *c, const ast *s)
{
    declare(e, c, DECL_FN, s, s->name, s->name_at);
    fn_check_params(e->m->d, s);
}

static void collect(elab *e, mclass *c, const ast *s)
{
    const ast *list = s->n ? s->kid[0] : NULL;
    switch (s->kind) {
    case AST_PARAM:
        for (uint32_t i = 0; i < list->n; i++)
            declare_param(e, c, list->kid[i], s);
        return;
    case AST_LET:
        for (uint32_t i = 0; i < list->n; i++)
            declare_let(e, c, list->kid[i]);
        return;
    case AST_FN:
        declare_fn(e, c, s);
        return;
    case AST_DOF:
        for (uint32_t i = 0; i < list->n; i++)
            declare_dof(e, c, list->kid[i], s);
        return;
    case AST_PART:
        declare_part(e, c, s);
        return;
    case AST_CONSTRAINT:
        declare(e, c, DECL_CONSTRAINT, s, s->name, s->name_at);
        break;
    case AST_DOMAIN:
        for (uint32_t i = 0; i < list->n; i++)
            declare_numbered(e, c, DECL_COORD, list->kid[i]);
        break;
    case AST_FIELD:
        for (uint32_t i = 0; i < list->n; i++)
            declare_numbered(e, c, DECL_FIELD, list->kid[i]);
        break;
    case AST_ROD:
        declare_numbered(e, c, DECL_ROD, s);
        break;
    case AST_SHAPE:
        declare_shape(e, c, s);
        break;
    case AST_ERROR:
        e->partial = true;
        break;
    case AST_FOR: {
        const ast *body = s->kid[2];
        for (uint32_t i = 0; i < body->n; i++)
            e->partial = e->partial || body->kid[i]->kind == AST_ERROR;
        for (uint32_t i = 0; i < body->n; i++)
            if (body->kid[i]->kind == AST_CONSTRAINT)
                declare(e, c, DECL_CONSTRAINT, body->kid[i], body->kid[i]->name, body->kid[i]->name_at);
        break;
    }
    default:
        break;
    }
    *vec_push(e->m->a, &work_of(c)->statements) = s;
}

/* `dof x' = 1` without x: reported once, and x is taken as declared */
static void lone_rates(elab *e, mclass *c, const ast *s)
{
    for (uint32_t i = 0; s->kind == AST_DOF && i < s->kid[0]->n; i++) {
        const ast *item = s->kid[0]->kid[i];
        if (item->num == 0 || class_find(c, item->name) || diag_doubtful(e->m->d, item->name))
            continue;
        diag *err = diag_error(e->m->d, DIAG_UNKNOWN_NAME, item->name_at,
                               "'%s' is not a degree of freedom, so its rate cannot be given", item->name);
        near n = near_to(item->name);
        for (size_t j = 0; j < c->dofs.n; j++)
            near_try(&n, c->dofs.at[j]->name);
        if (near_best(&n))
            diag_near(e->m->d, err, &n);
        else
            diag_hint(e->m->d, err, "write `dof %s = 0, %s' = …`", item->name, item->name);
        ast *x = arena_make(e->m->a, ast);
        *x = *item;
        x->num = 0;
        declare_dof(e, c, x, x);
    }
}

/* ---- structural parameters: those that a size depends on ---- */

static void mark_names(elab *e, mclass *c, const ast *x, int depth);

static void mark_name(elab *e, mclass *c, sym name, int depth)
{
    const mdecl *d = class_find(c, name);
    if (!d || depth > 50)
        return;
    if (d->kind == DECL_PARAM && !d->param->structural) {
        d->param->structural = true;
        if (d->node->kid[1])
            mark_names(e, c, d->node->kid[1], depth + 1);
    } else if (d->kind == DECL_LET)
        mark_names(e, c, d->node->kid[0], depth + 1);
    else if (d->kind == DECL_FN)
        mark_names(e, c, d->node->kid[1], depth + 1);
}

static void mark_names(elab *e, mclass *c, const ast *x, int depth)
{
    if (!x)
        return;
    if (x->kind == AST_NAME)
        mark_name(e, c, x->name, depth);
    for (uint32_t i = 0; i < x->n; i++)
        mark_names(e, c, x->kid[i], depth);
}

static bool is_call_of(const ast *x, const char *const *names)
{
    if (x->kind != AST_CALL || x->kid[0]->kind != AST_NAME)
        return false;
    for (; *names; names++)
        if (!strcmp(x->kid[0]->name, *names))
            return true;
    return false;
}

static void mark_sizes(elab *e, mclass *c, const ast *x)
{
    static const char *const integral[] = { "integral", NULL }, *const sized[] = { "eye", "zeros", NULL },
                             *const linspace[] = { "linspace", NULL };
    if (!x)
        return;
    if (is_call_of(x, integral)) { /* its range is not an index set */
        for (uint32_t i = 1; i < x->n; i++)
            if (x->kid[i]->kind == AST_GEN)
                mark_sizes(e, c, x->kid[i]->kid[0]);
        return;
    }
    if (x->kind == AST_INDEX)
        mark_names(e, c, x->kid[0], 0);
    else if (x->kind == AST_DOF_ITEM) {
        for (uint32_t i = 0; i < x->kid[0]->n; i++)
            if (x->kid[0]->kid[i]->kind != AST_INDEX)
                mark_names(e, c, x->kid[0]->kid[i], 0);
    } else if (is_call_of(x, sized)) {
        for (uint32_t i = 1; i < x->n; i++)
            mark_names(e, c, x->kid[i], 0);
    } else if (is_call_of(x, linspace) && x->n == 4)
        mark_names(e, c, x->kid[3], 0);
    else if (x->kind == AST_DOMAIN)
        return; /* the ends of a domain may be ordinary parameters */
    else if (x->kind == AST_ROD) {
        const ast *b = x->kid[0];
        for (uint32_t i = 0; i < b->n; i++)
            if (b->kid[i]->kind == AST_SET && b->kid[i]->kid[0]->kind == AST_NAME &&
                !strcmp(b->kid[i]->kid[0]->name, "elements"))
                mark_names(e, c, b->kid[i]->kid[1], 0);
    }
    for (uint32_t i = 0; i < x->n; i++)
        mark_sizes(e, c, x->kid[i]);
}

/* ---- classes ---- */

static void mark_arguments(elab *e, mclass *c);

static mclass *class_declared(elab *e, const ast *decl, scope *outer)
{
    model *m = e->m;
    mclass *c = arena_make(m->a, mclass);
    *c = (mclass){ .name = decl->name, .decl = decl, .m = m, .outer = outer, .inst.set.count = 1 };
    c->names.a = m->a;
    c->work = arena_make(m->a, class_work);
    for (uint32_t i = 0; i < decl->n; i++)
        collect(e, c, decl->kid[i]);
    for (uint32_t i = 0; i < decl->n; i++)
        lone_rates(e, c, decl->kid[i]);
    for (uint32_t i = 0; i < decl->n; i++)
        mark_sizes(e, c, decl->kid[i]);
    work_of(c)->own = class_scope_new(e, c, (address){ 0 }, true);
    return c;
}

static mclass *class_new(elab *e, const ast *decl, scope *outer)
{
    mclass *c = class_declared(e, decl, outer);
    mark_arguments(e, c);
    return c;
}

/* A class that shows which parameters of a model are structural. */
static mclass *probe_of(elab *e, const value *of)
{
    for (size_t i = 0; i < e->probes.n; i++)
        if (e->probes.at[i]->decl == of->fn.fn && e->probes.at[i]->outer == of->fn.in)
            return e->probes.at[i];
    mclass *c = class_declared(e, of->fn.fn, of->fn.in);
    *vec_push(e->m->a, &e->probes) = c; /* known before its parts are, which may be of the same model */
    mark_arguments(e, c);
    return c;
}

static value model_named(elab *e, mclass *c, const ast *name)
{
    value v = eval_keep(&e->ev, c->outer, name);
    if (v.kind == V_MODEL || v.kind == V_ERROR)
        return v;
    diag_error(e->m->d, DIAG_TYPE, name->at, "'%s' is %s, not a model", name->name, v_kind_text(e->m->a, &v));
    return v_error();
}

/* Each name is looked up once, so that a mistake is reported once. */
static value find_model(elab *e, mclass *c, const ast *name)
{
    for (size_t i = 0; i < e->uses.n; i++)
        if (e->uses.at[i].name == name)
            return e->uses.at[i].model;
    value v = model_named(e, c, name);
    *vec_push(e->m->a, &e->uses) = (model_use){ .name = name, .model = v };
    return v;
}

/* Parameters of c are structural if sizes in its parts depend on them. */
static void mark_arguments(elab *e, mclass *c)
{
    for (size_t i = 0; i < c->parts.n; i++) {
        const ast *s = c->parts.at[i]->decl, *args = s->kid[2];
        value of = find_model(e, c, s->kid[1]);
        const mclass *probe = of.kind == V_MODEL ? probe_of(e, &of) : NULL;
        for (uint32_t k = 0; probe && k < args->n; k++) {
            const mdecl *d = args->kid[k]->kind == AST_ARG ? class_find(probe, args->kid[k]->name) : NULL;
            if (d && d->kind == DECL_PARAM && d->param->structural)
                mark_names(e, c, args->kid[k]->kid[0], 0);
        }
    }
}

/* sets the structural parameters: an override, an argument, or the default */
static void class_fix(elab *e, mclass *c, const override *set, size_t nset)
{
    for (size_t i = 0; i < c->params.n; i++) {
        mparam *p = c->params.at[i];
        p->fixed = NAN;
        for (size_t k = 0; k < nset; k++)
            if (set[k].name == p->name && !set[k].input)
                p->fixed = set[k].value;
    }
    for (size_t i = 0; i < c->params.n; i++) {
        mparam *p = c->params.at[i];
        if (!p->structural || !isnan(p->fixed))
            continue;
        if (p->has_default) {
            if (!eval_constant(&e->ev, &work_of(c)->own->base, p->decl->kid[1],
                               "a parameter that decides a size", &p->fixed))
                p->fixed = 1;
        } else {
            diag *d = diag_error(e->m->d, DIAG_PARAM_MISSING, p->at,
                                 "parameter '%s' of '%s' has no value, and a size depends on it", p->name,
                                 c->name);
            diag_hint(e->m->d, d, "give it a default, or a value where the model is used");
            p->fixed = 1;
        }
    }
}

static bool same_class(const mclass *c, const ast *decl, const override *set, size_t nset)
{
    if (c->decl != decl)
        return false;
    for (size_t i = 0; i < c->params.n; i++) {
        const mparam *p = c->params.at[i];
        if (!p->structural)
            continue;
        for (size_t k = 0; k < nset; k++)
            if (set[k].name == p->name && set[k].value != p->fixed)
                return false;
    }
    return true;
}

static void class_discover(elab *e, mclass *c);

static mclass *class_for(elab *e, const ast *decl, scope *outer, const override *set, size_t nset)
{
    for (size_t i = 0; i < e->found.n; i++)
        if (same_class(e->found.at[i], decl, set, nset))
            return e->found.at[i];
    mclass *c = class_new(e, decl, outer);
    class_fix(e, c, set, nset);
    *vec_push(e->m->a, &e->found) = c;
    return c;
}

/* ---- parts ---- */

enum { MAX_DOFS = 10000000 }; /* limits for a check in seconds and a run in the memory of a workstation */

/* the first value of an index and how many there are */
static bool index_range_of(elab *e, const value *r, const ast *index, int32_t *first, int32_t *count)
{
    double from, to;
    int64_t lo, hi;
    if (r->kind != V_RANGE || !v_scalar(r->range.lo, &from) || !v_scalar(r->range.hi, &to) ||
        from != floor(from) || to != floor(to)) {
        diag_error(e->m->d, DIAG_TYPE, index->at,
                   "the index '%s' runs over a range of whole numbers known before the run", index->name);
        return false;
    }
    if (to - from + 1 > MAX_DOFS || !whole_number(from, -1e9, 1e9, &lo)) {
        diag_error(e->m->d, DIAG_LIMIT, index->at,
                   to - from + 1 > MAX_DOFS ? "this index set has more than %d members"
                                            : "an index set begins between -10^9 and 10^9",
                   MAX_DOFS);
        return false;
    }
    hi = whole_clamp(to, lo - 1, lo + MAX_DOFS);
    *first = (int32_t)lo;
    *count = (int32_t)(hi - lo + 1);
    return true;
}

static void part_indices(elab *e, mclass *c, mpart *p)
{
    const ast *list = p->decl->kid[0];
    if (list->n == 0)
        return;
    p->indexed = true;
    if (list->n > 1) {
        diag_error(e->m->d, DIAG_NOT_SUPPORTED, list->kid[1]->at, "a family of parts has one index");
        return;
    }
    value r = eval(&e->ev, &work_of(c)->own->base, list->kid[0]->kid[0]);
    if (r.kind != V_ERROR)
        index_range_of(e, &r, list->kid[0], &p->lo, &p->n);
}

/* arguments that sizes depend on are needed now, the others are computed for each instance when a run
   starts */
static void part_discover(elab *e, mclass *c, mpart *p)
{
    const ast *s = p->decl, *args = s->kid[2];
    value mv = find_model(e, c, s->kid[1]);
    part_indices(e, c, p);
    if (mv.kind == V_ERROR)
        return;
    for (size_t i = 0; i < e->found.n; i++)
        if (e->found.at[i]->decl == mv.fn.fn && work_of(e->found.at[i])->state == 1) {
            diag *d = diag_error(e->m->d, DIAG_CYCLE, s->kid[1]->at, "model '%s' is a part of itself",
                                 mv.fn.fn->name);
            diag_second(e->m->d, d, e->found.at[i]->decl->name_at, "declared here");
            return;
        }
    mclass *probe = probe_of(e, &mv);
    override *set = arena_array(e->m->a, override, args->n + 1);
    size_t nset = 0;
    for (uint32_t i = 0; i < args->n; i++) {
        if (args->kid[i]->kind != AST_ARG) {
            diag *err = diag_error(e->m->d, DIAG_UNKNOWN_NAME, args->kid[i]->at,
                                   "arguments of a model are named");
            diag_hint(e->m->d, err, "write %s(name = value)", probe->name);
            continue;
        }
        for (uint32_t k = 0; k < i; k++)
            if (args->kid[k]->name == args->kid[i]->name)
                diag_error(e->m->d, DIAG_DUPLICATE, args->kid[i]->at, "parameter '%s' is given twice",
                           args->kid[i]->name);
        const mdecl *d = class_find(probe, args->kid[i]->name);
        if (!d && diag_doubtful(e->m->d, args->kid[i]->name))
            continue;
        if (!d || d->kind != DECL_PARAM) {
            diag *err = diag_error(e->m->d, DIAG_UNKNOWN_NAME, args->kid[i]->name_at,
                                   "model '%s' has no parameter '%s'", probe->name, args->kid[i]->name);
            near n = near_to(args->kid[i]->name);
            for (size_t k = 0; k < probe->params.n; k++)
                near_try(&n, probe->params.at[k]->name);
            diag_near(e->m->d, err, &n);
            continue;
        }
        if (!d->param->structural)
            continue;
        double x;
        if (eval_constant(&e->ev, &work_of(c)->own->base, args->kid[i]->kid[0],
                          "an argument that decides a size", &x))
            set[nset++] = (override){ .name = d->name, .value = x, .at = args->kid[i]->at };
    }
    p->of = class_for(e, mv.fn.fn, mv.fn.in, set, nset);
    class_discover(e, p->of);
}

static void class_discover(elab *e, mclass *c)
{
    if (work_of(c)->state)
        return;
    work_of(c)->state = 1;
    for (size_t i = 0; i < c->parts.n; i++)
        part_discover(e, c, c->parts.at[i]);
    work_of(c)->state = 2;
}

static void class_order(elab *e, mclass *c)
{
    if (work_of(c)->state == 3)
        return;
    work_of(c)->state = 3;
    for (size_t i = 0; i < c->parts.n; i++)
        if (c->parts.at[i]->of)
            class_order(e, c->parts.at[i]->of);
    *vec_push(e->m->a, &e->m->classes) = c;
}

/* instances of the parts of a class: one block for each part, the container's instance varying slowest */
static void count_instances(elab *e)
{
    model *m = e->m;
    class_order(e, e->found.at[0]);
    for (size_t i = 0, j = m->classes.n - 1; i < j; i++, j--) {
        mclass *x = m->classes.at[i];
        m->classes.at[i] = m->classes.at[j];
        m->classes.at[j] = x;
    }
    m->classes.at[0]->ninst = 1;
    for (size_t i = 0; i < m->classes.n; i++) {
        mclass *c = m->classes.at[i];
        for (size_t k = 0; k < c->parts.n; k++) {
            mpart *p = c->parts.at[k];
            if (!p->of)
                continue;
            p->first = p->of->ninst;
            p->per = p->n;
            int64_t n = (int64_t)c->ninst * p->n + p->of->ninst;
            if (n > 100000000) {
                diag_error(m->d, DIAG_LIMIT, p->decl->at, "more than 10^8 parts");
                return;
            }
            p->of->ninst = (int32_t)n;
        }
    }
    for (size_t i = 0; i < m->classes.n; i++) {
        mclass *c = m->classes.at[i];
        if (i == 0 || c->ninst == 1)
            continue;
        c->inst.n = c->inst.set.n = 1;
        c->inst.name[0] = sym_str(m->names, "(instance)");
        c->inst.set.r[0] = (index_range){ .lo = 0, .hi = c->ninst - 1 };
        c->inst.set.count = c->ninst;
        work_of(c)->own->inst = class_own_instance(c);
    }
}

address class_own_instance(const mclass *c)
{
    address a = { 0 };
    if (c->inst.n)
        a.stride[0] = 1;
    return a;
}

const char *const dof_spaces[] = { "R2", "R3", "SO3", "R4", "R5", "R6", "R7", "R8", "R9", NULL };

/* ---- layout of dofs ---- */

static bool dof_space(elab *e, mdof *d, const ast *space)
{
    if (!space)
        return true;
    if (space->kind == AST_NAME && space->name[0] == 'R' && space->name[1] >= '1' && space->name[1] <= '9' &&
        !space->name[2]) {
        d->comp = space->name[1] - '0';
        return true;
    }
    if (space->kind == AST_NAME && !strcmp(space->name, "SO3")) {
        d->comp = 3;
        d->rotation = true;
        return true;
    }
    diag *err = diag_error(e->m->d, DIAG_TYPE, space->at,
                           "a degree of freedom lies in R2, R3, … R9, or in SO3 (rotations)");
    diag_hint(e->m->d, err, "write `dof p in R2 = [0, 0]`");
    return false;
}

static void dof_layout(elab *e, mclass *c, mdof *d)
{
    const ast *dims = d->decl->kid[0];
    scope *in = &work_of(c)->own->base;
    int64_t size = 1;
    d->size = 0;
    if (!dof_space(e, d, d->decl->kid[1]))
        return;
    if (dims->n > MAX_INDEX) {
        diag_error(e->m->d, DIAG_LIMIT, dims->at, "at most %d indices", MAX_INDEX);
        return;
    }
    for (uint32_t i = 0; i < dims->n; i++) {
        const ast *x = dims->kid[i];
        d->lo[i] = 1;
        if (x->kind == AST_INDEX) {
            value r = eval(&e->ev, in, x->kid[0]);
            if (r.kind == V_ERROR || !index_range_of(e, &r, x, &d->lo[i], &d->n[i]))
                return;
        } else if (!eval_integer(&e->ev, in, x, "the size of a degree of freedom", &d->n[i]))
            return;
        else if (d->n[i] < 1) {
            diag_error(e->m->d, DIAG_SHAPE, x->at, "the size must be at least 1, not %d", d->n[i]);
            return;
        }
        size *= d->n[i];
        if (size > MAX_DOFS)
            break;
    }
    size *= d->comp ? d->comp : 1;
    if (size > MAX_DOFS) {
        diag_error(e->m->d, DIAG_LIMIT, d->decl->at, "more than %d degrees of freedom", MAX_DOFS);
        return;
    }
    d->ndim = (int)dims->n;
    d->size = (int32_t)size;
}

static void layout(elab *e)
{
    model *m = e->m;
    int64_t total = 0;
    for (size_t i = 0; i < m->classes.n; i++) {
        mclass *c = m->classes.at[i];
        int64_t size = 0;
        for (size_t k = 0; k < c->dofs.n; k++) {
            mdof *d = c->dofs.at[k];
            dof_layout(e, c, d);
            d->offset = (int32_t)size;
            size += d->size;
            if (size > MAX_DOFS)
                break;
        }
        c->qsize = (int32_t)(size > MAX_DOFS ? 0 : size);
        c->qbase = (int32_t)total;
        total += size * c->ninst;
        if (total > MAX_DOFS) {
            diag_error(m->d, DIAG_LIMIT, m->decl->name_at, "the model has more than %d degrees of freedom",
                       MAX_DOFS);
            return;
        }
    }
    if (m->d->errors)
        return;
    m->nq = (int32_t)total;
    m->order = arena_array(m->a, uint8_t, m->nq + 1);
}

/* ---- names of a class, for an instance ---- */

static address instance_times(address inst, int32_t size, int32_t base)
{
    address a = { .base = base + inst.base * size };
    for (int k = 0; k < MAX_INDEX; k++)
        a.stride[k] = inst.stride[k] * size;
    return a;
}

static bool is_input(const elab *e, const mclass *c, const mparam *p)
{
    for (size_t k = 0; c == e->m->classes.at[0] && k < e->nset; k++)
        if (e->set[k].input && e->set[k].name == p->name)
            return true;
    return false;
}

/* the default of a parameter decides its shape; taken when the parameter is first met */
static bool param_shape(elab *e, mclass *c, mparam *p)
{
    if (p->offset >= 0)
        return true;
    if (p->offset == -2) {
        diag_error(e->m->d, DIAG_CYCLE, p->at, "the value of '%s' depends on itself", p->name);
        return false;
    }
    p->offset = -2;
    value v = v_num(0);
    if (p->has_default) {
        const index_names *old = e->ev.family;
        span outer = e->of_param_at;
        e->ev.family = &c->inst;
        e->of_param_at = p->decl->kid[1]->at;
        e->of_param++;
        v = eval(&e->ev, &work_of(c)->own->base, p->decl->kid[1]);
        e->of_param--;
        e->of_param_at = outer;
        e->ev.family = old;
        if (v.kind != V_ERROR && v.kind != V_NUM) {
            diag_error(e->m->d, DIAG_TYPE, p->decl->kid[1]->at,
                       "a parameter is a number, a vector or a matrix, not %s", v_kind_text(e->m->a, &v));
            v = v_error();
        }
        if (v.kind == V_ERROR)
            v = v_num(NAN);
    }
    p->rank = v.num.rank;
    p->n[0] = v.num.n[0];
    p->n[1] = v.num.n[1];
    p->size = v_count(&v);
    p->unit = v.num.unit;
    p->offset = e->m->nparam;
    e->m->nparam += p->size * (c->ninst ? c->ninst : 1);
    if (is_input(e, c, p)) {
        p->input = e->m->nparam;
        e->m->nparam += 3 * p->size + 1;
        e->inputs = true;
    }
    *vec_push(e->m->a, &work_of(c)->order) = p;
    return true;
}

static ir_ref param_node(elab *e, int32_t at)
{
    return ir_in(e->m->g, (ir_input){ .kind = IN_PARAM, .at.base = at });
}

/* element k of an input, see mparam */
static ir_ref input_node(elab *e, const mparam *p, int32_t k)
{
    ir *g = e->m->g;
    ir_ref s = ir_op(g, OP_SUB, ir_in(g, (ir_input){ .kind = IN_TIME }),
                     param_node(e, p->input + 3 * p->size), IR_NONE),
           x = param_node(e, p->input + 3 * k + 2);
    for (int j = 1; j >= -1; j--) {
        x = ir_op(g, OP_MUL, s, x, IR_NONE);
        x = ir_op(g, OP_ADD, param_node(e, j < 0 ? p->offset + k : p->input + 3 * k + j), x, IR_NONE);
    }
    return x;
}

static bool input_allowed(elab *e, const mparam *p)
{
    if (!p->input || !e->of_param)
        return true;
    diag *d = diag_error(e->m->d, DIAG_NOT_CONSTANT, e->of_param_at,
                         "the value of this parameter depends on '%s', an input", p->name);
    diag_hint(e->m->d, d, "inputs change during the motion, parameters do not: write let instead of param");
    return false;
}

static value param_value(elab *e, class_scope *s, mparam *p)
{
    if (p->structural)
        return v_num(p->fixed);
    if (!param_shape(e, s->c, p) || !input_allowed(e, p))
        return v_error();
    value v = p->rank == 0   ? v_num(0)
              : p->rank == 1 ? v_vector(e->m->a, p->n[0])
                             : v_matrix(e->m->a, p->n[0], p->n[1]);
    v.num.unit = p->unit;
    for (int32_t k = 0; k < p->size; k++) {
        value x = v_node(
            p->input && e->moving
                ? input_node(e, p, k)
                : ir_in(e->m->g, (ir_input){ .kind = IN_PARAM,
                                             .at = instance_times(s->inst, p->size, p->offset + k) }),
            p->unit);
        v_set(e->m->a, &v, k, &x);
    }
    return v;
}

static value let_value(elab *e, class_scope *s, const mdecl *d)
{
    mlet *l = d->let;
    if (s->own && l->state == 2)
        return l->v;
    if (l->state == 1) {
        diag_error(e->m->d, DIAG_CYCLE, d->at, "the value of '%s' depends on itself", d->name);
        return v_error();
    }
    int old_state = l->state;
    const index_names *family = e->ev.family;
    l->state = 1;
    if (s->own)
        e->ev.family = &s->c->inst;
    value v = eval_keep(&e->ev, &s->base, l->decl->kid[0]);
    e->ev.family = family;
    l->state = old_state;
    if (s->own && !e->ev.needs_members && (e->moving || !e->inputs)) {
        l->v = v;
        l->state = 2;
    }
    return v;
}

static look part_missing(scope *s, evaluator *ev, sym name, span at, value *out)
{
    (void)out;
    const mpart *p = s->of;
    diag *d = diag_error(ev->d, DIAG_SHAPE, at, "'%s' is a family of parts: '%s' of which one?", p->name,
                         name);
    diag_hint(ev->d, d, "write %s[i].%s", p->name, name);
    return LOOK_ERROR;
}

typedef struct {
    scope base;
    mpart *p;
    address inst;
    elab *e;
} part_scope;

static value part_object(elab *e, mpart *p, address parent, address index)
{
    address inst = { .base = p->first + parent.base * p->per + index.base };
    for (int k = 0; k < MAX_INDEX; k++)
        inst.stride[k] = parent.stride[k] * p->per + index.stride[k];
    value v = { .kind = V_OBJECT };
    v.object.in = &class_scope_new(e, p->of, inst, false)->base;
    return v;
}

static value part_subscript(scope *s, evaluator *ev, const value *object, const value *index, size_t n,
                            span at)
{
    (void)object;
    part_scope *ps = (part_scope *)s;
    if (n != 1) {
        diag_error(ev->d, DIAG_SHAPE, at, "a family of parts takes one index");
        return v_error();
    }
    address a;
    if (!eval_index(ev, &index[0], ps->p->lo, ps->p->lo + ps->p->n - 1, at, &a))
        return v_error();
    a.base -= ps->p->lo;
    return part_object(ps->e, ps->p, ps->inst, a);
}

static value part_value(elab *e, class_scope *s, mpart *p)
{
    if (!p->of)
        return v_error();
    if (!p->indexed)
        return part_object(e, p, s->inst, (address){ 0 });
    part_scope *ps = arena_make(e->m->a, part_scope);
    *ps = (part_scope){ .base = { .find = part_missing, .subscript = part_subscript, .of = p },
                        .p = p,
                        .inst = s->inst,
                        .e = e };
    value v = { .kind = V_OBJECT };
    v.object.in = &ps->base;
    return v;
}

static look rod_find(scope *s, evaluator *ev, sym name, span at, value *out)
{
    (void)ev;
    class_scope *cs = (class_scope *)s;
    *out = rod_member(s->of, cs->c, cs->inst.base, name, at);
    return out->kind == V_ERROR ? LOOK_ERROR : LOOK_YES;
}

/* a constraint in a formula */
typedef struct contact_scope {
    scope base, *in;
    const ast *decl;
} contact_scope;

static look contact_find(scope *s, evaluator *ev, sym name, span at, value *out)
{
    (void)ev;
    contact_scope *c = (contact_scope *)s;
    *out = contact_member_value(s->of, c->in, c->decl, name, at);
    return out->kind == V_ERROR ? LOOK_ERROR : LOOK_YES;
}

bool rod_object(const value *v, int32_t *rod)
{
    if (v->kind != V_OBJECT || v->object.in->find != rod_find)
        return false;
    *rod = ((class_scope *)v->object.in)->inst.base;
    return true;
}

static look class_lookup(scope *base, evaluator *ev, sym name, span at, value *out)
{
    class_scope *s = (class_scope *)base;
    elab *e = base->of;
    const mdecl *d = class_find(s->c, name);
    (void)at;
    /* neither can be called: the function of that name is meant, as in `shape ball: ball(c, r)` */
    if (!d || (ev->callee && (d->kind == DECL_CONSTRAINT || d->kind == DECL_SHAPE)))
        return LOOK_NO;
    ev->callee = false;
    switch (d->kind) {
    case DECL_PARAM:
        *out = param_value(e, s, d->param);
        break;
    case DECL_LET:
        *out = let_value(e, s, d);
        break;
    case DECL_FN:
        *out = (value){ .kind = V_FN };
        out->fn.fn = d->node;
        out->fn.in = base;
        break;
    case DECL_DOF: {
        *out = dof_unit_of(e, s->c, d->dof);
        if (out->kind == V_ERROR)
            break;
        *out = (value){ .kind = V_DOFS };
        out->dofs.dof = d->dof;
        out->dofs.at = instance_times(s->inst, s->c->qsize, s->c->qbase + d->dof->offset);
        break;
    }
    case DECL_PART:
        *out = part_value(e, s, d->part);
        break;
    case DECL_COORD:
        *out = v_node(ir_in(ev->g, (ir_input){ .kind = IN_COORD, .at.base = d->number }), dim_any());
        break;
    case DECL_FIELD:
        *out = v_node(ir_in(ev->g, (ir_input){ .kind = IN_FIELD, .at.base = d->number }), dim_any());
        break;
    case DECL_ROD: {
        class_scope *r = arena_make(e->m->a, class_scope);
        *r = (class_scope){ .base = { .find = rod_find, .of = e }, .c = s->c, .inst.base = d->number };
        *out = (value){ .kind = V_OBJECT };
        out->object.in = &r->base;
        break;
    }
    case DECL_SHAPE:
        *out = shape_value(e, s, d);
        break;
    case DECL_CONSTRAINT: {
        contact_scope *r = arena_make(e->m->a, contact_scope);
        *r = (contact_scope){ .base = { .find = contact_find, .of = e }, .in = base, .decl = d->node };
        *out = (value){ .kind = V_OBJECT };
        out->object.in = &r->base;
        break;
    }
    }
    return out->kind == V_ERROR ? LOOK_ERROR : LOOK_YES;
}

static void class_names(scope *base, near *n)
{
    class_scope *s = (class_scope *)base;
    for (size_t i = 0; i < s->c->names.cap; i++)
        if (s->c->names.key[i] != UINT64_MAX)
            near_try(n, ((const mdecl *)(uintptr_t)s->c->names.val[i])->name);
}

address instance_at(const mclass *c, scope *in)
{
    for (scope *s = in; s; s = s->up)
        if (s->find == class_lookup && ((class_scope *)s)->c == c)
            return ((class_scope *)s)->inst;
    return class_own_instance(c);
}

class_scope *class_scope_new(elab *e, mclass *c, address inst, bool own)
{
    class_scope *s = arena_make(e->m->a, class_scope);
    *s = (class_scope){ .base = { .up = c->outer, .find = class_lookup, .names = class_names, .of = e },
                        .c = c,
                        .inst = inst,
                        .own = own };
    return s;
}

/* ---- the whole ---- */

static void check_functions(elab *e, mclass *c)
{
    for (uint32_t i = 0; i < c->decl->n; i++) {
        const ast *s = c->decl->kid[i];
        if (s->kind == AST_FN)
            resolve_function(e, &work_of(c)->own->base, s);
    }
}

/* in the order of the text, so that a long chain of them is not a deep one; sets may stand in them, as an
 * inclusion may use them */
static void elab_lets(elab *e, mclass *c)
{
    e->ev.inclusion = true;
    for (uint32_t i = 0; i < c->decl->n; i++) {
        const ast *s = c->decl->kid[i];
        for (uint32_t k = 0; s->kind == AST_LET && k < s->kid[0]->n; k++) {
            value v;
            class_lookup(&work_of(c)->own->base, &e->ev, s->kid[0]->kid[k]->name, s->kid[0]->kid[k]->at, &v);
            e->ev.needs_members = false;
        }
    }
    e->ev.inclusion = false;
}

static void build(elab *e, scope *outer, const ast *decl)
{
    model *m = e->m;
    mclass *root = class_new(e, decl, outer);
    *vec_push(m->a, &e->found) = root;
    class_fix(e, root, e->set, e->nset);
    class_discover(e, root);
    count_instances(e);
    if (m->d->errors)
        return;
    layout(e);
    if (m->d->errors)
        return; /* without sizes every use would give another message */
    for (size_t i = 0; i < m->classes.n; i++)
        elab_params(e, m->classes.at[i]);
    /* parts first: values given by a container come after */
    for (size_t i = m->classes.n; i-- > 0;)
        elab_dofs(e, m->classes.at[i]);
    if (!m->d->errors)
        elab_init_order(e);
    e->moving = true;
    for (size_t i = 0; i < m->classes.n; i++)
        elab_lets(e, m->classes.at[i]);
    for (size_t i = 0; i < m->classes.n; i++)
        elab_statements(e, m->classes.at[i]);
    for (size_t i = 0; i < m->classes.n; i++)
        check_functions(e, m->classes.at[i]);
}

model *model_build(arena *a, symtab *names, diags *d, scope *outer, const ast *decl, const override *set,
                   size_t nset)
{
    model *m = arena_make(a, model);
    *m = (model){ .name = decl->name, .decl = decl, .a = a, .g = ir_new(a), .d = d, .names = names };
    elab *e = arena_make(a, elab);
    *e = (elab){ .m = m, .set = set, .nset = nset };
    e->ev = (evaluator){ .a = a, .names = names, .d = d, .g = m->g, .fuel = EVAL_FUEL, .model = m };
    size_t before = d->errors;
    d->errors = 0;
    build(e, outer, decl);
    if (!d->errors && !e->partial) {
        elab_fields_check(e);
        match_equations(e);
    }
    if (!d->errors && !e->partial)
        check_values(e);
    bool ok = d->errors == 0 && !e->partial;
    d->errors += before;
    return ok ? m : NULL;
}

int64_t index_rank(const index_set *s, const int32_t *index)
{
    int32_t k[MAX_INDEX];
    int64_t rank = 0;
    if (s->n == 0)
        return 0;
    /* whole loops before the requested member are counted by their ends */
    if (s->n == 1)
        return index[0] >= s->r[0].lo && index[0] <= s->r[0].hi ? index[0] - s->r[0].lo : -1;
    for (bool more = index_first(s, k); more; more = index_next(s, k), rank++) {
        bool same = true;
        for (int i = 0; i < s->n; i++)
            same = same && k[i] == index[i];
        if (same)
            return rank;
    }
    return -1;
}
