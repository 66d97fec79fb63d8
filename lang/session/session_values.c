/* session_values: results for C programs: what they are (kind, shape, unit) and where they lie in memory. */
#include <string.h>
#include "results/session_view.h"

/* ---- runs that are kept ---- */

/* cdl_run is the run of the session; the name is for C programs alone */
static run *run_of(session *s, const cdl_run *given)
{
    union {
        const cdl_run *in;
        run *out;
    } u = { .in = given };
    return given ? u.out : s->last;
}

cdl_run *cdl_hold(cdl *s)
{
    if (!s->last || s->broken)
        return NULL;
    s->last->held++;
    return (cdl_run *)s->last;
}

void cdl_drop(cdl *s, cdl_run *given)
{
    run *r = (run *)given;
    if (!r || r->held == 0 || --r->held > 0)
        return;
    if (r != s->last)
        run_drop(s, r);
}

cdl_status cdl_summarise(cdl *s, const cdl_run *given, cdl_summary *out)
{
    static const char *const ended[] = {
        [RUN_OK] = "ok", [RUN_STOPPED] = "stopped", [RUN_INTERRUPTED] = "interrupted", [RUN_FAILED] = "failed"
    };
    const run *r = run_of(s, given);
    *out = (cdl_summary){ .model = "", .backend = "", .ended = "", .message = "" };
    if (!r || s->broken)
        return s->broken ? CDL_MEMORY : CDL_USAGE;
    const results *x = r->r;
    *out = (cdl_summary){ .model = x->prog->model,
                          .backend = r->with->name,
                          .ended = ended[x->status],
                          .message = x->message ? x->message : "",
                          .duration = x->duration,
                          .t_end = x->t_end,
                          .seconds = x->seconds,
                          .samples = (size_t)x->samples,
                          .steps = (size_t)x->count.steps };
    return CDL_OK;
}

/* ---- what a value is ---- */

static const char *unit_text(session *s, dim u)
{
    text t = { .a = s->tmp };
    if (u.any)
        return "";
    dim_text(&t, u);
    return t.at;
}

static void axis_add(cdl_result *out, size_t n, ptrdiff_t stride, int first)
{
    if (out->rank == CDL_AXES)
        return;
    out->shape[out->rank] = n;
    out->stride[out->rank] = stride;
    out->first[out->rank++] = first;
}

/* numbers that lie row after row fill the last axes */
static void axes_packed(cdl_result *out, int from, size_t size)
{
    for (int k = out->rank - 1; k >= from; k--) {
        out->stride[k] = (ptrdiff_t)size;
        size *= out->shape[k];
    }
}

static void describe_number(session *s, const value *v, cdl_result *out)
{
    double *x = arena_array(s->tmp, double, 1);
    if (!v_scalar(v, x))
        return;
    out->kind = v->kind == V_BOOL ? CDL_TRUTH : CDL_NUMBERS;
    out->unit = v->kind == V_BOOL ? "" : unit_text(s, v->num.unit);
    out->at = x;
}

static void describe_array(session *s, const value *v, cdl_result *out)
{
    out->kind = CDL_NUMBERS;
    out->unit = unit_text(s, v->num.unit);
    out->at = v->num.d;
    for (int k = 0; k < v->num.rank; k++)
        axis_add(out, (size_t)v->num.n[k], 0, 1);
    axes_packed(out, 0, sizeof(double));
}

static void describe_series(session *s, const run *of, const value *v, cdl_result *out)
{
    out->kind = CDL_NUMBERS;
    out->unit = unit_text(s, v->series.unit);
    out->at = v->series.y;
    out->samples = of && v->series.t == of->r->t;
    out->lasting = v->series.ops || (of && results_own(of->r, v->series.y));
    axis_add(out, (size_t)v->series.n, v->series.stride * (ptrdiff_t)sizeof(double), 1);
}

/* all that is left of a family of dofs, over the samples */
static void describe_dofs(session *s, const run *of, const value *v, cdl_result *out)
{
    const view *x = v->object.of;
    const mdof *d = x->dof;
    const results *r = of->r;
    if (x->primes == 2)
        results_need(r, PART_ACC);
    const double *from[] = { r->q, r->v, r->acc };
    dim unit = d->unit, second = dim_none();
    second.e[2] = DIM_ONE;
    for (int k = 0; k < x->primes; k++)
        unit = dim_div(unit, second);
    out->kind = CDL_NUMBERS;
    out->unit = unit_text(s, unit);
    out->at = from[x->primes] ? from[x->primes] + x->at : NULL;
    out->samples = out->lasting = 1;
    bool matrices = d->rotation && !x->primes;
    int32_t members = 1;
    for (int k = x->given; k < d->ndim; k++)
        members *= d->n[k];
    if (matrices)
        out->at = rotation_samples(x->r, x->at, members);
    ptrdiff_t numbers = matrices ? 9 * (ptrdiff_t)members : r->prog->nq;
    axis_add(out, (size_t)r->samples, numbers * (ptrdiff_t)sizeof(double), 1);
    for (int k = x->given; k < d->ndim; k++)
        axis_add(out, (size_t)d->n[k], 0, d->lo[k]);
    if (matrices)
        axis_add(out, 3, 0, 1);
    if (d->comp)
        axis_add(out, (size_t)d->comp, 0, 1);
    axes_packed(out, 1, sizeof(double));
}

/* what goes over the samples of a constraint, for one member or for all of a family */
static bool describe_contact(const value *v, const char *name, bool make, cdl_result *out)
{
    contact_column c;
    const view *x = v->object.of;
    if (!contact_samples(v, name, make, &c))
        return false;
    size_t size = c.bytes ? 1 : sizeof(double);
    out->kind = c.bytes ? CDL_STATES : CDL_NUMBERS;
    out->unit = "";
    out->at = c.bytes ? (const void *)c.bytes : c.numbers;
    out->samples = out->lasting = 1;
    axis_add(out, (size_t)x->r->r->samples, c.apart * (ptrdiff_t)size, 1);
    for (int k = 0; k < c.naxis; k++)
        axis_add(out, (size_t)c.n[k], 0, c.first[k]);
    if (c.components > 1)
        axis_add(out, (size_t)c.components, 0, 1);
    axes_packed(out, 1, size);
    return true;
}

static void describe_plane(const value *v, cdl_result *out)
{
    int field;
    int32_t grid[2];
    int64_t n, stride;
    const double *y;
    const struct field_result *f = value_plane(v, &field);
    if (!plane_samples(v, &y, &n, &stride))
        return;
    out->kind = CDL_NUMBERS;
    out->unit = "";
    out->at = y;
    out->lasting = f != NULL;
    if (!f) {
        axis_add(out, (size_t)n, stride * (ptrdiff_t)sizeof *y, 1);
        return;
    }
    plane_grid(f, grid);
    axis_add(out, (size_t)grid[0], grid[1] * stride * (ptrdiff_t)sizeof *y, 1);
    axis_add(out, (size_t)grid[1], stride * (ptrdiff_t)sizeof *y, 1);
}

typedef vec(cdl_result) described_list;

typedef struct {
    session *s;
    run *of;
    described_list list;
} parts;

static void describe(session *s, run *of, const char *name, const value *v, parts *inside, cdl_result *out);

static void part_column(void *ud, const char *name, const value *v, int per)
{
    parts *p = ud;
    cdl_result x;
    describe(p->s, p->of, arena_strdup(p->s->tmp, name), v, NULL, &x);
    if (per > 0 && x.rank == 2 && x.shape[1] % (size_t)per == 0) { /* matrices, row after row */
        x.shape[1] /= (size_t)per;
        axis_add(&x, (size_t)per, 0, 1);
        axes_packed(&x, 1, sizeof(double));
    }
    *vec_push(p->s->tmp, &p->list) = x;
}

static void part_member(void *ud, const char *name)
{
    parts *p = ud;
    *vec_push(p->s->tmp, &p->list) = (cdl_result){ .name = name, .unit = "", .text = "", .kind = CDL_OBJECT };
}

static void describe_object(session *s, run *of, const value *v, parts *inside, cdl_result *out)
{
    parts all = { .s = s, .of = of };
    if (is_dofs(v)) {
        describe_dofs(s, of, v, out);
        return;
    }
    describe_plane(v, out);
    if (out->at)
        return;
    if (value_table(s, v, part_column, &all))
        out->kind = CDL_TABLE;
    else {
        out->kind = CDL_OBJECT;
        value_members(v, part_member, &all);
    }
    out->parts = all.list.n;
    if (out->kind == CDL_TABLE && all.list.n && all.list.at[0].rank)
        out->shape[0] = all.list.at[0].shape[0];
    if (inside)
        inside->list.at = all.list.at, inside->list.n = all.list.n;
}

static void describe_list(session *s, run *of, const value *v, parts *inside, cdl_result *out)
{
    out->kind = CDL_LIST;
    out->parts = v->list.n;
    for (size_t k = 0; inside && k < v->list.n; k++) {
        cdl_result x;
        describe(s, of, arena_printf(s->tmp, "[%zu]", k + 1), &v->list.at[k], NULL, &x);
        *vec_push(s->tmp, &inside->list) = x;
    }
}

/* inside: what it is made of, for cdl_part; NULL: only how much that is */
static void describe(session *s, run *of, const char *name, const value *v, parts *inside, cdl_result *out)
{
    *out = (cdl_result){ .name = name, .unit = "", .kind = CDL_FUNCTION };
    switch (v->kind) {
    case V_NUM:
    case V_BOOL:
        if (v->num.rank)
            describe_array(s, v, out);
        else
            describe_number(s, v, out);
        break;
    case V_SERIES:
        describe_series(s, of, v, out);
        break;
    case V_STRING:
    case V_WORD:
        out->kind = CDL_TEXT;
        out->text = arena_strndup(s->tmp, v->str.at, v->str.len);
        out->length = v->str.len;
        return;
    case V_LIST:
        describe_list(s, of, v, inside, out);
        break;
    case V_OBJECT:
        describe_object(s, of, v, inside, out);
        break;
    default:
        break;
    }
    text words = { .a = s->tmp };
    out->text = out->kind == CDL_OBJECT && view_show(&words, v) ? words.at : v_kind_text(s->tmp, v);
}

/* ---- by expression ---- */

/* a quantity of a constraint over the samples, where the expression is one: touch.rn, floor.status */
static bool contact_asked(session *s, const ast *e, cdl_result *out)
{
    if (e->kind != AST_MEMBER || result_find(OF_CONTACT, e->name) < 0)
        return false;
    size_t errors = s->d->errors, messages = s->d->list.n;
    value v = session_eval(s, e->kid[0]);
    diag_forget(s->d, errors, messages);
    if (!is_contact(&v) || !describe_contact(&v, e->name, true, out))
        return false;
    out->text = "numbers of a constraint at the samples";
    return true;
}

cdl_status cdl_get(cdl *s, const cdl_run *given, const char *expression, cdl_result *out)
{
    *out = (cdl_result){ .name = "", .unit = "", .text = "", .kind = CDL_FUNCTION };
    ENTER(s);
    run *last = s->last, *of = run_of(s, given);
    const char *name = arena_strdup(s->tmp, expression);
    parts inside = { .s = s, .of = of };
    const ast *e = read_parsed(s, s->tmp, session_passing(s, "<expression>", expression, strlen(expression)));
    s->last = of;
    cdl_result asked = { .name = name };
    if (e && contact_asked(s, e, &asked))
        *out = asked;
    else if (e) {
        value v = session_eval(s, e);
        if (v.kind != V_ERROR)
            describe(s, of, name, &v, &inside, out);
    }
    s->last = last;
    session_flush(s);
    s->embed.parts = inside.list.at;
    s->embed.nparts = inside.list.n;
    return s->tally.worst;
}

cdl_status cdl_part(cdl *s, size_t k, cdl_result *out)
{
    *out = (cdl_result){ .name = "", .unit = "", .text = "", .kind = CDL_FUNCTION };
    if (s->broken)
        return CDL_MEMORY;
    if (k >= s->embed.nparts)
        return CDL_USAGE;
    *out = s->embed.parts[k];
    return CDL_OK;
}

/* ---- all of them ---- */

enum { LISTED_MOST = 4096, LISTED_DEEP = 4 };

typedef struct {
    session *s;
    run *of;
    const char *before; /* "big." */
    const value *object;
    int deep;
    described_list *list;
    vec(const char *) names;
} listing;

static void listing_name(void *ud, const char *name)
{
    listing *l = ud;
    *vec_push(l->s->tmp, &l->names) = name;
}

static void list_push(listing *l, const cdl_result *x)
{
    if (l->list->n < LISTED_MOST)
        *vec_push(l->s->tmp, l->list) = *x;
}

/* not made for a list: energies of a run that makes them when they are read */
static bool list_later(listing *l, const char *name)
{
    const results *r = l->of->r;
    if (!r->disk.later || l->deep || (strcmp(name, "energy") && strcmp(name, "drift")))
        return false;
    cdl_result x = { .name = arena_strdup(l->s->tmp, name),
                     .unit = "",
                     .text = "a series",
                     .kind = CDL_NUMBERS,
                     .samples = 1,
                     .lasting = 1 };
    axis_add(&x, (size_t)r->samples, sizeof(double), 1);
    list_push(l, &x);
    return true;
}

static void list_contact(listing *l, const char *name, const value *v)
{
    session *s = l->s;
    for (const char *const *k = result_list(OF_CONTACT); *k; k++) {
        cdl_result x = { .name = arena_printf(s->tmp, "%s%s.%s", l->before, name, *k),
                         .text = "numbers of a constraint at the samples" };
        if (describe_contact(v, *k, false, &x))
            list_push(l, &x);
    }
    value impacts;
    if (v->object.in->find(v->object.in, &s->ev, sym_str(s->names, "impacts"), SPAN_NONE, &impacts) !=
        LOOK_YES)
        return;
    cdl_result x;
    describe(s, l->of, arena_printf(s->tmp, "%s%s.impacts", l->before, name), &impacts, NULL, &x);
    list_push(l, &x);
}

static void list_object(listing *l, const value *object);

/* a dof has rates too */
static void list_rates(listing *l, const char *name, const value *v)
{
    value rate = v_error();
    cdl_result x;
    if (v->kind == V_SERIES && v->series.ops && v->series.order == 0)
        v->series.ops->derivative(v, &rate);
    else if (is_dofs(v))
        v->object.in->find(v->object.in, &l->s->ev, sym_str(l->s->names, "'"), SPAN_NONE, &rate);
    if (rate.kind == V_ERROR || rate.kind == V_FN)
        return;
    describe(l->s, l->of, arena_printf(l->s->tmp, "%s%s'", l->before, name), &rate, NULL, &x);
    if (x.kind == CDL_NUMBERS)
        list_push(l, &x);
}

static void list_value(void *ud, const value *v)
{
    listing *l = ud, down = *l;
    if (l->deep < LISTED_DEEP) {
        down.deep++;
        list_object(&down, v);
    }
}

static void list_one(listing *l, const char *name)
{
    session *s = l->s;
    scope *in = l->object->object.in;
    value v;
    cdl_result x;
    size_t errors = s->d->errors, messages = s->d->list.n;
    if (list_later(l, name))
        return;
    look found = in->find(in, &s->ev, sym_str(s->names, name), SPAN_NONE, &v);
    s->d->errors = errors;
    s->d->list.n = messages;
    if (found != LOOK_YES || v.kind == V_ERROR || v.kind == V_FN || v.kind == V_MODEL)
        return;
    if (is_contact(&v)) {
        list_contact(l, name, &v);
        return;
    }
    describe(s, l->of, arena_printf(s->tmp, "%s%s", l->before, name), &v, NULL, &x);
    if (x.kind != CDL_OBJECT)
        list_push(l, &x);
    list_rates(l, name, &v);
    listing down = *l;
    down.before = arena_printf(s->tmp, "%s%s.", l->before, name);
    if (x.kind == CDL_OBJECT && value_is_class(&v))
        list_value(&down, &v);
    else if (x.kind == CDL_OBJECT)
        list_push(l, &x);
}

static void list_object(listing *l, const value *object)
{
    l->object = object;
    l->names.at = NULL;
    l->names.n = l->names.cap = 0;
    value_members(object, listing_name, l);
    for (size_t k = 0; k < l->names.n; k++)
        list_one(l, l->names.at[k]);
}

cdl_status cdl_results(cdl *s, const cdl_run *given, const cdl_result **out, size_t *n)
{
    *out = NULL;
    *n = 0;
    ENTER(s);
    run *of = run_of(s, given), *last = s->last;
    if (!of)
        return CDL_USAGE;
    described_list all = { 0 };
    value top = { .kind = V_OBJECT };
    top.object.in = of->top;
    s->last = of;
    listing l = { .s = s, .of = of, .before = "", .list = &all };
    list_object(&l, &top);
    s->last = last;
    *out = all.at;
    *n = all.n;
    return session_flush(s) ? CDL_OK : s->tally.worst;
}
