/* session_results: the results of a run as values.  Names of the model become series, numbers and objects.
 */
#include <math.h>
#include <string.h>
#include "base/rotation.h"
#include "program/turns.h"
#include "session_view.h"

view *view_new(run *r, view of)
{
    view *v = arena_alloc(r->a, sizeof *v);
    *v = of;
    v->r = r;
    return v;
}

value view_value(view *v)
{
    value x = { .kind = V_OBJECT };
    x.object.in = &v->base;
    x.object.of = v;
    return x;
}

/* ---- series ---- */

static dim dim_per_time(dim u, int times)
{
    dim s = dim_none();
    s.e[2] = DIM_ONE;
    while (times-- > 0)
        u = dim_div(u, s);
    return u;
}

static double dof_at(void *of, int32_t column, int order, double t)
{
    return order == 0   ? results_q(of, column, t)
           : order == 1 ? results_v(of, column, t)
                        : results_a(of, column, t);
}

static bool dof_derivative(const value *y, value *out);
static const series_ops dof_ops = { dof_at, dof_derivative };

static value dof_series(const results *r, int32_t column, int order, dim unit)
{
    value v = { .kind = V_SERIES };
    if (order == 2)
        results_need(r, PART_ACC);
    const double *from[] = { r->q, r->v, r->acc };
    v.series.t = r->t;
    v.series.y = from[order] ? from[order] + column : r->t;
    v.series.n = r->samples;
    v.series.stride = r->prog->nq;
    v.series.unit = unit;
    v.series.ops = &dof_ops;
    memcpy(&v.series.of, &r, sizeof r);
    v.series.column = column;
    v.series.order = order;
    return v;
}

static bool dof_derivative(const value *y, value *out)
{
    if (y->series.order >= 2)
        return false;
    *out = dof_series(y->series.of, y->series.column, y->series.order + 1, dim_per_time(y->series.unit, 1));
    return true;
}

value plain_series(const results *r, const double *y, int64_t stride)
{
    value v = { .kind = V_SERIES };
    v.series.t = r->t;
    v.series.y = y;
    v.series.n = y ? r->samples : 0;
    v.series.stride = stride;
    v.series.unit = dim_any();
    return v;
}

int64_t sample_before(const double *t, int64_t n, double at)
{
    int64_t lo = 0, hi = n;
    while (hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;
        if (t[mid] <= at)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

double value_at(const value *v, double t)
{
    if (v->series.n == 0)
        return NAN;
    if (v->series.ops)
        return v->series.ops->at(v->series.of, v->series.column, v->series.order, t);
    int64_t k = sample_before(v->series.t, v->series.n, t), st = v->series.stride;
    const double *y = v->series.y;
    if (k + 1 >= v->series.n || t <= v->series.t[k])
        return y[k * st];
    double t0 = v->series.t[k], t1 = v->series.t[k + 1];
    return y[k * st] + (y[(k + 1) * st] - y[k * st]) * (t - t0) / (t1 - t0);
}

/* ---- rotations ---- */
/* an entry of the matrix; column = 9*first + entry */
static double entry_at(void *of, int32_t column, int order, double t)
{
    double R[9];
    (void)order;
    results_rotation(of, column / 9, t, R);
    return R[column % 9];
}

static bool entry_derivative(const value *y, value *out)
{
    (void)y;
    (void)out;
    return false;
}

static const series_ops entry_ops = { entry_at, entry_derivative };

const double *rotation_samples(run *r, int32_t first, int32_t count)
{
    const results *x = r->r;
    for (turned *t = r->turned; t; t = t->next)
        if (t->first == first && t->count == count && t->samples == x->samples)
            return t->R;
    turned *t = arena_make(r->a, turned);
    double *R = arena_array(r->a, double, 9 * (size_t)count * (size_t)x->samples + 1), *to = R;
    for (int64_t i = 0; i < x->samples; i++)
        for (int32_t k = 0; k < count; k++, to += 9)
            rotation_of_vector(x->q + i * x->prog->nq + first + 3 * k, to);
    *t = (turned){ r->turned, first, count, x->samples, R };
    r->turned = t;
    return R;
}

static value entry_series(run *r, int32_t first, int entry)
{
    value v = plain_series(r->r, rotation_samples(r, first, 1) + entry, 9);
    v.series.ops = &entry_ops;
    memcpy(&v.series.of, &r->r, sizeof r->r);
    v.series.column = 9 * first + entry;
    return v;
}

static bool is_matrix(const view *v)
{
    return v->dof->rotation && !v->primes && v->given == v->dof->ndim;
}

/* A[i, j]; A[i][j] by way of a row */
static value matrix_subscript(const view *v, evaluator *ev, const value *index, size_t n, span at)
{
    address i, j;
    if (!eval_index(ev, &index[0], 1, 3, at, &i))
        return v_error();
    if (n == 1) {
        value list = { .kind = V_LIST };
        list.list.at = arena_array(ev->a, value, 3);
        list.list.n = 3;
        for (int k = 0; k < 3; k++)
            list.list.at[k] = entry_series(v->r, v->at, 3 * (i.base - 1) + k);
        return list;
    }
    if (!eval_index(ev, &index[1], 1, 3, at, &j))
        return v_error();
    value s = entry_series(v->r, v->at, 3 * (i.base - 1) + j.base - 1);
    return n == 2 ? s : eval_subscript(ev, &s, index + 2, n - 2, at);
}

static value matrix_at(const view *v, evaluator *ev, double t)
{
    value out = v_matrix(ev->a, 3, 3);
    results_rotation(v->r->r, v->at, t, out.num.d);
    return out;
}

/* ---- degrees of freedom with indices ---- */

static look dofs_find(scope *sc, evaluator *ev, sym name, span at, value *out);
static value dofs_subscript(scope *sc, evaluator *ev, const value *o, const value *index, size_t n, span at);

static value dofs_value(view of)
{
    const mdof *d = of.dof;
    if (of.given == d->ndim && !d->comp)
        return dof_series(of.r->r, of.at, of.primes, dim_per_time(d->unit, of.primes));
    of.base = (scope){ .find = dofs_find, .subscript = dofs_subscript, .call = dofs_call };
    return view_value(view_new(of.r, of));
}

bool is_dofs(const value *v)
{
    return v->kind == V_OBJECT && v->object.in->find == dofs_find;
}

/* its only member is its derivative */
static look dofs_find(scope *sc, evaluator *ev, sym name, span at, value *out)
{
    view v = *(view *)sc;
    (void)ev;
    (void)at;
    if (strcmp(name, "'") || v.primes >= 2)
        return LOOK_NO;
    v.primes++;
    *out = dofs_value(v);
    return LOOK_YES;
}

static int32_t dofs_step(const mdof *d, int given)
{
    int32_t step = d->comp ? d->comp : 1;
    for (int k = given + 1; k < d->ndim; k++)
        step *= d->n[k];
    return step;
}

static value dofs_subscript(scope *sc, evaluator *ev, const value *o, const value *index, size_t n, span at)
{
    view v = *(view *)sc;
    const mdof *d = v.dof;
    (void)o;
    for (size_t k = 0; k < n; k++) {
        address a;
        bool component = v.given == d->ndim;
        if (is_matrix(&v))
            return matrix_subscript(&v, ev, index + k, n - k, at);
        int32_t lo = component ? 1 : d->lo[v.given], count = component ? d->comp : d->n[v.given];
        if (!eval_index(ev, &index[k], lo, lo + count - 1, at, &a))
            return v_error();
        v.at += (a.base - lo) * (component ? 1 : dofs_step(d, v.given));
        if (component) {
            value s = dof_series(v.r->r, v.at, v.primes, dim_per_time(d->unit, v.primes));
            return k + 1 == n ? s : eval_subscript(ev, &s, index + k + 1, n - k - 1, at);
        }
        v.given++;
    }
    return dofs_value(v);
}

/* u(2): all that is left of the family, at a time */
value dofs_call(scope *sc, evaluator *ev, const value *o, const value *arg, size_t n, span at)
{
    const view *v = (view *)sc;
    const mdof *d = v->dof;
    const results *r = v->r->r;
    double t;
    (void)o;
    int32_t count = v->given < d->ndim ? d->n[v->given] * dofs_step(d, v->given) : d->comp;
    if (n != 1 || !v_scalar(&arg[0], &t)) {
        diag_error(ev->d, DIAG_ARITY, at, "a result is read at one time: %s(1.5)", d->name);
        return v_error();
    }
    if (!times_reach(r->t, r->samples, &t)) {
        diag_error(ev->d, DIAG_INDEX_RANGE, at, "the time %g is outside the run, which goes to %g", t,
                   r->t_end);
        return v_error();
    }
    if (is_matrix(v))
        return matrix_at(v, ev, t);
    if (d->rotation && !v->primes) {
        diag *e = diag_error(ev->d, DIAG_SHAPE, at, "'%s' is a family of rotations: which one?", d->name);
        diag_hint(ev->d, e, "write %s[%d](%g)", d->name, (int)d->lo[v->given], t);
        return v_error();
    }
    bool rows = v->given + 1 == d->ndim && d->comp;
    value out = rows ? v_matrix(ev->a, d->n[v->given], d->comp) : v_vector(ev->a, count);
    out.num.unit = dim_per_time(d->unit, v->primes);
    union {
        const results *r;
        void *p;
    } of = { .r = r };
    for (int32_t k = 0; k < count; k++)
        out.num.d[k] = dof_at(of.p, v->at + k, v->primes, t);
    return out;
}

const double *value_attitude(const value *v)
{
    const view *x = is_dofs(v) ? v->object.of : NULL;
    return x && is_matrix(x) ? rotation_samples(x->r, x->at, 1) : NULL;
}

void value_parts(session *s, const value *v, const char *index,
                 void (*put)(void *ud, const char *index, const value *part), void *ud)
{
    if (v->kind == V_LIST)
        for (size_t k = 0; k < v->list.n; k++)
            value_parts(s, &v->list.at[k], arena_printf(s->tmp, "%s[%zu]", index, k + 1), put, ud);
    else if (!is_dofs(v))
        put(ud, index, v);
    else {
        const view *d = v->object.of;
        if (is_matrix(d)) {
            for (int k = 0; k < 9; k++) {
                value part = entry_series(d->r, d->at, k);
                put(ud, arena_printf(s->tmp, "%s[%d][%d]", index, k / 3 + 1, k % 3 + 1), &part);
            }
            return;
        }
        bool component = d->given == d->dof->ndim;
        int32_t lo = component ? 1 : d->dof->lo[d->given], n = component ? d->dof->comp : d->dof->n[d->given];
        for (int32_t k = lo; k < lo + n; k++) {
            value i = v_num(k), part = dofs_subscript(v->object.in, &s->ev, v, &i, 1, SPAN_NONE);
            value_parts(s, &part, arena_printf(s->tmp, "%s[%d]", index, k), put, ud);
        }
    }
}

/* ---- parts and the names of a class ---- */

static value class_value(session *s, run *r, const mclass *c, int32_t inst);

static look part_find(scope *sc, evaluator *ev, sym name, span at, value *out)
{
    const view *v = (view *)sc;
    (void)out;
    diag *e = diag_error(ev->d, DIAG_SHAPE, at, "'%s' is a family of parts: '%s' of which one?",
                         v->part->name, name);
    diag_hint(ev->d, e, "write %s[%d].%s", v->part->name, v->part->lo, name);
    return LOOK_ERROR;
}

static value part_subscript(scope *sc, evaluator *ev, const value *o, const value *index, size_t n, span at)
{
    const view *v = (view *)sc;
    const mpart *p = v->part;
    address a;
    (void)o;
    if (n != 1) {
        diag_error(ev->d, DIAG_SHAPE, at, "a family of parts takes one index");
        return v_error();
    }
    if (!eval_index(ev, &index[0], p->lo, p->lo + p->n - 1, at, &a))
        return v_error();
    return class_value(v->base.of, v->r, p->of, p->first + v->inst * p->per + a.base - p->lo);
}

static value part_value(session *s, run *r, const mpart *p, int32_t inst)
{
    if (!p->indexed)
        return class_value(s, r, p->of, p->first + inst * p->per);
    view v = { .part = p, .inst = inst };
    v.base = (scope){ .find = part_find, .subscript = part_subscript, .of = s };
    return view_value(view_new(r, v));
}

static value param_value(const results *r, const mparam *p, int32_t inst, arena *a)
{
    if (p->offset < 0)
        return v_num_unit(p->fixed, p->unit);
    const double *x = r->param + p->offset + inst * p->size;
    value v = p->rank == 0   ? v_num(x[0])
              : p->rank == 1 ? v_vector(a, p->n[0])
                             : v_matrix(a, p->n[0], p->n[1]);
    if (p->rank)
        memcpy(v.num.d, x, (size_t)p->size * sizeof *x);
    v.num.unit = p->unit;
    return v;
}

static look constraint_value(const view *v, sym name, value *out)
{
    const model *m = v->r->of->m;
    for (size_t k = 0; k < m->contacts.n && k < v->r->of->p->ncontact; k++)
        if (m->contacts.at[k].name == name && m->contacts.at[k].of == v->c) {
            *out = contact_value(v->r, k, v->inst);
            return LOOK_YES;
        }
    return LOOK_NO;
}

static look not_given(const view *v, evaluator *ev, const char *name, span at)
{
    diag_error(ev->d, DIAG_NOT_SUPPORTED, at, "backend '%s' does not provide '%s'", v->r->with->name, name);
    return LOOK_ERROR;
}

static look declared_value(view *v, evaluator *ev, const mdecl *d, span at, value *out)
{
    const results *r = v->r->r;
    switch (d->kind) {
    case DECL_PARAM:
        *out = param_value(r, d->param, v->inst, ev->a);
        return LOOK_YES;
    case DECL_LET:
        *out = eval(ev, &v->base, d->node->kid[0]);
        return out->kind == V_ERROR ? LOOK_ERROR : LOOK_YES;
    case DECL_FN:
        *out = (value){ .kind = V_FN };
        out->fn.fn = d->node;
        out->fn.in = &v->base;
        return LOOK_YES;
    case DECL_PART:
        *out = part_value(v->base.of, v->r, d->part, v->inst);
        return LOOK_YES;
    case DECL_CONSTRAINT:
        return constraint_value(v, d->name, out);
    case DECL_DOF:
        *out = dofs_value(
            (view){ .r = v->r, .dof = d->dof, .at = v->c->qbase + v->inst * v->c->qsize + d->dof->offset });
        return LOOK_YES;
    case DECL_COORD:
        if (field_coordinate(v->r, d->number, out))
            return LOOK_YES;
        break;
    case DECL_FIELD:
        if (field_value(v->r, d->number, out))
            return LOOK_YES;
        break;
    case DECL_SHAPE:
        break;
    case DECL_ROD:
        if (rod_value(v->r, d->number, out))
            return LOOK_YES;
        break;
    }
    return not_given(v, ev, d->name, at);
}

/* ---- the table of names ---- */

typedef struct {
    const char *name, *doc;
    int of;
} result_row;
static const result_row rows[] = {
#define X(of, name, doc) { #name, doc, OF_##of },
#include "results.def"
#undef X
};

/* lists one after the other: of the whole run, a constraint, impacts, a rod, its contacts */
static const char *const row_names[] = {
#define END              NULL,
#define X(of, name, doc) #name,
#include "results.def"
#undef X
};

const char *const *result_list(int of)
{
    const char *const *p = row_names;
    for (int k = OF_LIMIT; k < of; k++, p++)
        while (*p)
            p++;
    return p;
}

int result_find(int of, const char *name)
{
    for (int k = 0; k < RESULT_ROWS; k++)
        if (rows[k].of == of && !strcmp(rows[k].name, name))
            return k;
    return -1;
}

const char *result_doc(int of, const char *name)
{
    int k = result_find(of, name);
    return k < 0 ? "" : rows[k].doc;
}

bool result_help(text *t, const char *name)
{
    static const char *const whose[] = { [OF_RUN] = "a run",
                                         [OF_FIELD] = "a run with fields",
                                         [OF_ROD] = "a run with rods",
                                         [OF_LIMIT] = "a limit",
                                         [OF_CONTACT] = "a constraint",
                                         [OF_IMPACT] = "impacts",
                                         [OF_POINTS] = "touching points",
                                         [OF_WIRE] = "a rod",
                                         [OF_PAIR] = "contacts of a rod",
                                         [OF_PATH] = "a branch of equilibria",
                                         [OF_SHAPE] = "a shape" };
    bool found = false;
    for (int k = 0; k < RESULT_ROWS; k++) {
        if (strcmp(rows[k].name, name))
            continue;
        text_printf(t, "result of %s: %s\n", whose[rows[k].of], rows[k].doc);
        found = true;
    }
    return found;
}

/* ---- names of the whole run ---- */

static look run_own(const view *v, evaluator *ev, sym name, span at, value *out)
{
    const results *r = v->r->r;
    switch (result_find(OF_RUN, name)) {
    case RUN_t:
        *out = plain_series(r, r->t, 1);
        break;
    case RUN_energy:
        results_need(r, PART_ENERGY);
        *out = plain_series(r, r->energy, 1);
        break;
    case RUN_dissipated:
        *out = plain_series(r, r->dissipated, 1);
        break;
    case RUN_work:
        *out = plain_series(r, r->work, 1);
        break;
    case RUN_drift:
        results_need(r, PART_ENERGY);
        *out = plain_series(r, r->drift, 1);
        break;
    case RUN_max_penetration:
        *out = v_num(r->max_penetration);
        break;
    case RUN_residual:
        *out = v_num(r->residual);
        break;
    case RUN_power_balance:
        *out = v_num(r->power_balance);
        break;
    case RUN_error:
        if (isnan(r->estimate.error)) {
            diag *d = diag_error(ev->d, DIAG_NOT_SUPPORTED, at, "this run has no estimate of its error%s%s",
                                 r->estimate.why ? ": " : "", r->estimate.why ? r->estimate.why : "");
            if (!r->estimate.why)
                diag_hint(ev->d, d,
                          r->limit.has_jumps ? "limits are exact up to rounding"
                                             : "ask for one: with %s(error = estimate)",
                          r->backend);
            *out = v_error();
        } else
            *out = v_num(r->estimate.error);
        break;
    case RUN_steps:
        *out = v_num((double)r->count.steps);
        break;
    case RUN_swept:
        *out = v_num((double)r->count.swept);
        break;
    default:
        return LOOK_NO;
    }
    return out->kind == V_SERIES && !out->series.y ? not_given(v, ev, name, at) : LOOK_YES;
}

static look run_value(const view *v, evaluator *ev, sym name, span at, value *out)
{
    const results *r = v->r->r;
    look f = field_name(v->r, ev, name, at, out);
    if (f != LOOK_NO || (f = rod_name(v->r, ev, name, out)) != LOOK_NO ||
        (f = run_own(v, ev, name, at, out)) != LOOK_NO ||
        (f = inclusion_name(v->r, ev, name, out)) != LOOK_NO)
        return f;
    int limit = result_find(OF_LIMIT, name);
    if (limit == LIMIT_load && r->limit.has_jumps) {
        *out = plain_series(r, r->limit.load, 1);
        return LOOK_YES;
    }
    return limit >= 0 || result_find(OF_FIELD, name) == FIELD_contact_set ? not_given(v, ev, name, at)
                                                                          : LOOK_NO;
}

static look class_find_value(scope *sc, evaluator *ev, sym name, span at, value *out)
{
    view *v = (view *)sc;
    const mdecl *d = class_find(v->c, name);
    if (d)
        return declared_value(v, ev, d, at, out);
    if (v->c == v->r->of->m->classes.at[0])
        return run_value(v, ev, name, at, out);
    if (strcmp(name, "t"))
        return LOOK_NO;
    *out = plain_series(v->r->r, v->r->r->t, 1);
    return LOOK_YES;
}

static void class_names(scope *sc, near *n)
{
    const view *v = (view *)sc;
    for (size_t i = 0; i < v->c->names.cap; i++)
        if (v->c->names.key[i] != UINT64_MAX)
            near_try(n, ((const mdecl *)(uintptr_t)v->c->names.val[i])->name);
    near_list(n, result_list(OF_RUN));
}

static value class_value(session *s, run *r, const mclass *c, int32_t inst)
{
    view v = { .c = c, .inst = inst };
    v.base = (scope){ .up = c->outer, .find = class_find_value, .names = class_names, .of = s };
    return view_value(view_new(r, v));
}

bool value_is_class(const value *v)
{
    return v->kind == V_OBJECT && v->object.in->find == class_find_value;
}

scope *results_scope(session *s, run *r)
{
    return class_value(s, r, r->of->m->classes.at[0], 0).object.in;
}

const mpart *value_family(const value *v)
{
    return v->kind == V_OBJECT && v->object.in->find == part_find ? ((const view *)v->object.of)->part : NULL;
}

bool value_bodies(session *s, const value *v, void (*put)(void *ud, const value *part), void *ud)
{
    if (v->kind != V_OBJECT)
        return false;
    if (v->object.in->find == class_find_value) {
        put(ud, v);
        return true;
    }
    const mpart *p = value_family(v);
    if (!p)
        return false;
    for (int32_t k = p->lo; k < p->lo + p->n; k++) {
        value i = v_num(k), part = part_subscript(v->object.in, &s->ev, v, &i, 1, SPAN_NONE);
        if (part.kind == V_OBJECT)
            put(ud, &part);
    }
    return true;
}

bool value_table(session *s, const value *v, put_column put, void *ud)
{
    if (rod_table(s, v, put, ud) || inclusion_table(s, v, put, ud))
        return true;
    if (!is_impacts(v))
        return false;
    impacts_put(s, v->object.of, put, ud);
    return true;
}

/* names of a class, then of the run: of what its kind of results has */
static void class_members(const view *v, void (*offer)(void *ud, const char *name), void *ud)
{
    for (size_t i = 0; i < v->c->names.cap; i++)
        if (v->c->names.key[i] != UINT64_MAX)
            offer(ud, ((const mdecl *)(uintptr_t)v->c->names.val[i])->name);
    if (v->c != v->r->of->m->classes.at[0])
        return;
    const results *r = v->r->r;
    for (int k = 0; k < RESULT_ROWS; k++)
        if (rows[k].of == OF_RUN || (rows[k].of == OF_FIELD && r->field) ||
            (rows[k].of == OF_ROD && r->rod) || (rows[k].of == OF_LIMIT && r->limit.has_jumps))
            offer(ud, rows[k].name);
}

void value_members(const value *v, void (*offer)(void *ud, const char *name), void *ud)
{
    const char *few[4];
    const char *const *list = is_contact(v)   ? result_list(OF_CONTACT)
                              : is_impacts(v) ? result_list(OF_IMPACT)
                              : is_points(v)  ? result_list(OF_POINTS)
                              : is_rod(v)     ? result_list(OF_WIRE)
                              : is_pairs(v)   ? result_list(OF_PAIR)
                              : is_path(v)    ? result_list(OF_PATH)
                                              : inclusion_members(v);
    if (v->kind != V_OBJECT)
        return;
    for (; list && *list; list++)
        if (!is_contact(v) || contact_has(v, *list))
            offer(ud, *list);
    for (int k = 0, n = field_members(v, few); k < n; k++)
        offer(ud, few[k]);
    if (v->object.in->find == class_find_value)
        class_members((const view *)v->object.in, offer, ud);
}

bool value_lone(const value *part, value *out)
{
    if (part->kind != V_OBJECT || part->object.in->find != class_find_value)
        return false;
    const view *v = (const view *)part->object.in;
    if (v->c->dofs.n != 1 || v->c->dofs.at[0]->size != 1 || v->c->dofs.at[0]->ndim || v->c->dofs.at[0]->comp)
        return false;
    *out = dofs_value((view){ .r = v->r,
                              .dof = v->c->dofs.at[0],
                              .at = v->c->qbase + v->inst * v->c->qsize + v->c->dofs.at[0]->offset });
    return true;
}

int value_components(const value *v)
{
    return is_dofs(v) ? ((const view *)v->object.of)->dof->comp : -1;
}

static void name_put(void *ud, const char *name)
{
    text *t = ud;
    text_printf(t, "%s %s", t->n && t->at[t->n - 1] == ':' ? "" : ",", name);
}

/* Describes an object of results in one line; false: it is none. */
bool view_show(text *t, const value *v)
{
    if (inclusion_show(t, v) || status_show(t, v))
        return true;
    if (is_rod(v) || is_pairs(v) || is_path(v)) {
        text_puts(t, is_rod(v)     ? "a rod, with:"
                     : is_pairs(v) ? "contacts of a rod, with:"
                                   : "points of a branch, with:");
        value_members(v, name_put, t);
        return true;
    }
    if (v->kind != V_OBJECT || v->object.of == NULL)
        return false;
    const view *x = v->object.of;
    if (v->object.in->find == dofs_find)
        text_printf(t, "degrees of freedom %s, %d numbers at a time: %s(0)", x->dof->name, x->dof->size,
                    x->dof->name);
    else if (is_contact(v)) {
        text_printf(t, "constraint %s, %zu impact%s, with:", x->r->r->prog->contact[x->contact].name,
                    impacts_count(x), impacts_count(x) == 1 ? "" : "s");
        value_members(v, name_put, t);
    } else if (is_impacts(v))
        text_printf(t, "%zu impact%s, with: t, pre, post, impulse", impacts_count(x),
                    impacts_count(x) == 1 ? "" : "s");
    else if (v->object.in->find == part_find)
        text_printf(t, "parts %s[%d..%d]", x->part->name, x->part->lo, x->part->lo + x->part->n - 1);
    else if (v->object.in->find == class_find_value)
        text_printf(t, "results of model %s", ((view *)v->object.in)->c->name);
    else
        return false;
    return true;
}

const results *dof_dense(const value *y, dense_item *x)
{
    if (y->kind != V_SERIES || y->series.ops != &dof_ops)
        return NULL;
    const results *r = y->series.of;
    *x = (dense_item){ .what = DENSE_DOF, .k = y->series.column, .order = y->series.order };
    return turns_of(r->prog, x->k) < 0 ? r : NULL; /* rotations have values at any time, no power series */
}
