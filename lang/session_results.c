/* session_results: what a run left behind, as values.  Names of the model become series, numbers and objects. */
#include <math.h>
#include <string.h>
#include "session.h"

/* a view is a scope over the results of a run: of an instance of a class, a family of dofs or parts, a constraint, its impacts */
typedef struct view {
    scope base;
    run *r;
    const mclass *c; int32_t inst;      /* class */
    const mdof *dof; int32_t at; uint8_t given, primes;     /* dofs: address so far, indices given, derivatives taken */
    const mpart *part;
    size_t contact; int64_t member;     /* constraint; member < 0: the family */
} view;

static view *view_new(run *r, view of)
{
    view *v = arena_alloc(r->a, sizeof *v);
    *v = of;
    v->r = r;
    return v;
}

static value view_value(view *v)
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
    while (times-- > 0) u = dim_div(u, s);
    return u;
}

static double dof_at(void *of, int32_t column, int order, double t)
{
    return order == 0 ? results_q(of, column, t) : order == 1 ? results_v(of, column, t) : results_a(of, column, t);
}

static bool dof_derivative(const value *y, value *out);
static const series_ops dof_ops = { dof_at, dof_derivative };

static value dof_series(const results *r, int32_t column, int order, dim unit)
{
    value v = { .kind = V_SERIES };
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
    if (y->series.order >= 2) return false;
    *out = dof_series(y->series.of, y->series.column, y->series.order + 1, dim_per_time(y->series.unit, 1));
    return true;
}

/* numbers beside the times of a run; between samples they are joined by lines */
static value plain_series(const results *r, const double *y, int64_t stride)
{
    value v = { .kind = V_SERIES };
    v.series.t = r->t;
    v.series.y = y;
    v.series.n = y ? r->samples : 0;
    v.series.stride = stride;
    v.series.unit = dim_any();
    return v;
}

/* gap and reaction of a contact: as exact between samples as at them, where the backend has more than samples */
typedef struct { const results *r; dense_item x; } dense_view;

static double contact_dense_at(void *of, int32_t column, int order, double t)
{
    const dense_view *d = of;
    (void)column; (void)order;
    return d->r->dense->at(d->r->dense->of, &d->x, t);
}

static bool contact_derivative(const value *y, value *out)
{
    (void)y; (void)out;
    return false;
}

static const series_ops contact_ops = { contact_dense_at, contact_derivative };

static value contact_series(run *of, const double *y, int64_t stride, dense_item x)
{
    value v = plain_series(of->r, y, stride);
    if (!of->r->dense || !y) return v;
    dense_view *d = arena_alloc(of->a, sizeof *d);
    *d = (dense_view){ of->r, x };
    v.series.ops = &contact_ops;
    v.series.of = d;
    return v;
}

static int64_t sample_before(const double *t, int64_t n, double at)
{
    int64_t lo = 0, hi = n;
    while (hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;
        if (t[mid] <= at) lo = mid; else hi = mid;
    }
    return lo;
}

double value_at(const value *v, double t)
{
    if (v->series.n == 0) return NAN;
    if (v->series.ops) return v->series.ops->at(v->series.of, v->series.column, v->series.order, t);
    int64_t k = sample_before(v->series.t, v->series.n, t), st = v->series.stride;
    const double *y = v->series.y;
    if (k + 1 >= v->series.n || t <= v->series.t[k]) return y[k * st];
    double t0 = v->series.t[k], t1 = v->series.t[k + 1];
    return y[k * st] + (y[(k + 1) * st] - y[k * st]) * (t - t0) / (t1 - t0);
}

/* ---- degrees of freedom with indices ---- */

static look dofs_find(scope *sc, evaluator *ev, sym name, span at, value *out);
static value dofs_subscript(scope *sc, evaluator *ev, const value *o, const value *index, size_t n, span at);
static value dofs_call(scope *sc, evaluator *ev, const value *o, const value *arg, size_t n, span at);

static value dofs_value(view of)
{
    const mdof *d = of.dof;
    if (of.given == d->ndim && !d->comp) return dof_series(of.r->r, of.at, of.primes, dim_per_time(d->unit, of.primes));
    of.base = (scope){ .find = dofs_find, .subscript = dofs_subscript, .call = dofs_call };
    return view_value(view_new(of.r, of));
}

static bool is_dofs(const value *v) { return v->kind == V_OBJECT && v->object.in->find == dofs_find; }

/* its only member is its derivative */
static look dofs_find(scope *sc, evaluator *ev, sym name, span at, value *out)
{
    view v = *(view *)sc;
    (void)ev; (void)at;
    if (strcmp(name, "'") || v.primes >= 2) return LOOK_NO;
    v.primes++;
    *out = dofs_value(v);
    return LOOK_YES;
}

static int32_t dofs_step(const mdof *d, int given)
{
    int32_t step = d->comp ? d->comp : 1;
    for (int k = given + 1; k < d->ndim; k++) step *= d->n[k];
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
        int32_t lo = component ? 1 : d->lo[v.given], count = component ? d->comp : d->n[v.given];
        if (!eval_index(ev, &index[k], lo, lo + count - 1, at, &a)) return v_error();
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
static value dofs_call(scope *sc, evaluator *ev, const value *o, const value *arg, size_t n, span at)
{
    const view *v = (view *)sc;
    const mdof *d = v->dof;
    const results *r = v->r->r;
    double t;
    (void)o;
    int32_t count = v->given < d->ndim ? d->n[v->given] * dofs_step(d, v->given) : d->comp;
    if (n != 1 || !v_scalar(&arg[0], &t)) { diag_error(ev->d, DIAG_ARITY, at, "a result is asked for at one time: %s(1.5)", d->name); return v_error(); }
    if (!r->samples || t < r->t[0] || t > r->t[r->samples - 1]) {
        diag_error(ev->d, DIAG_INDEX_RANGE, at, "the time %g is outside the run, which goes to %g", t, r->t_end);
        return v_error();
    }
    bool rows = v->given + 1 == d->ndim && d->comp;
    value out = rows ? v_matrix(ev->a, d->n[v->given], d->comp) : v_vector(ev->a, count);
    out.num.unit = dim_per_time(d->unit, v->primes);
    union { const results *r; void *p; } of = { .r = r };
    for (int32_t k = 0; k < count; k++) out.num.d[k] = dof_at(of.p, v->at + k, v->primes, t);
    return out;
}

void value_parts(session *s, const value *v, const char *index, void (*put)(void *ud, const char *index, const value *part), void *ud)
{
    if (v->kind == V_LIST)
        for (size_t k = 0; k < v->list.n; k++)
            value_parts(s, &v->list.at[k], arena_printf(s->tmp, "%s[%zu]", index, k + 1), put, ud);
    else if (!is_dofs(v)) put(ud, index, v);
    else {
        const view *d = v->object.of;
        bool component = d->given == d->dof->ndim;
        int32_t lo = component ? 1 : d->dof->lo[d->given], n = component ? d->dof->comp : d->dof->n[d->given];
        for (int32_t k = lo; k < lo + n; k++) {
            value i = v_num(k), part = dofs_subscript(v->object.in, &s->ev, v, &i, 1, SPAN_NONE);
            value_parts(s, &part, arena_printf(s->tmp, "%s[%d]", index, k), put, ud);
        }
    }
}

/* ---- constraints ---- */

const char *const contact_members[] = { "gap", "rn", "rt", "slip", "status", "impacts", NULL };
const char *const impact_members[] = { "t", "pre", "post", "impulse", NULL };

static bool view_has(const view *v, int32_t member) { return v->member < 0 || v->member == member; }

static size_t impacts_count(const view *v)
{
    const contact_result *c = &v->r->r->contact[v->contact];
    size_t n = 0;
    for (size_t k = 0; k < c->impacts.n; k++) n += view_has(v, c->impacts.at[k].member);
    return n;
}

static look impacts_find(scope *sc, evaluator *ev, sym name, span at, value *out)
{
    const view *v = (view *)sc;
    const contact_result *c = &v->r->r->contact[v->contact];
    int which = 0;
    int32_t n = 0;
    (void)at;
    while (impact_members[which] && strcmp(impact_members[which], name)) which++;
    if (!impact_members[which]) return LOOK_NO;
    *out = v_vector(ev->a, (int32_t)impacts_count(v));
    for (size_t k = 0; k < c->impacts.n; k++) {
        const impact *x = &c->impacts.at[k];
        const double all[] = { x->t, x->pre, x->post, x->impulse };
        if (view_has(v, x->member)) out->num.d[n++] = all[which];
    }
    return LOOK_YES;
}

static void near_list(near *n, const char *const *list) { while (*list) near_try(n, *list++); }
static void impacts_names(scope *sc, near *n) { (void)sc; near_list(n, impact_members); }

/* their columns; of a family also the indices of the members */
static void impacts_put(session *s, const view *v, put_column put, void *ud)
{
    static const char *const letters[] = { "i", "j", "k", "l" };
    const contact_result *c = &v->r->r->contact[v->contact];
    const mcontact *of = &v->r->of->m->contacts.at[v->contact];
    int first = of->over.set.n - of->own, own = v->member < 0 && !of->one && of->own <= 4 ? of->own : 0;
    int32_t ix[MAX_INDEX], n = (int32_t)impacts_count(v), *at = arena_array(s->tmp, int32_t, own ? c->members * own : 1);
    int64_t m = 0;
    for (bool more = own && index_first(&of->over.set, ix); more && m < c->members; more = index_next(&of->over.set, ix), m++)
        for (int k = 0; k < own; k++) at[m * own + k] = ix[first + k];
    for (int k = 0; k < own; k++) {
        value col = v_vector(s->tmp, n);
        for (int32_t i = 0; i < n; i++) col.num.d[i] = at[c->impacts.at[i].member * own + k];
        put(ud, letters[k], &col, 0);
    }
    for (int k = 0; impact_members[k]; k++) {
        value col;
        union { const scope *in; scope *out; } sc = { .in = &v->base };
        if (impacts_find(sc.out, &s->ev, sym_str(s->names, impact_members[k]), SPAN_NONE, &col) == LOOK_YES) put(ud, impact_members[k], &col, 0);
    }
}

/* "open", "stick", "slip": status(0.5), and status[k] by the sample */
static value status_text(const view *v, evaluator *ev, int64_t sample)
{
    static const char *const words[] = { "open", "stick", "slip" };
    const contact_result *c = &v->r->r->contact[v->contact];
    const char *w = words[c->status[sample * c->members + v->member] % 3];
    return v_string(ev->a, w, strlen(w));
}

static value status_call(scope *sc, evaluator *ev, const value *o, const value *arg, size_t n, span at)
{
    const view *v = (view *)sc;
    const results *r = v->r->r;
    double t;
    (void)o;
    if (n != 1 || !v_scalar(&arg[0], &t)) { diag_error(ev->d, DIAG_ARITY, at, "a status is asked for at one time: status(1.5)"); return v_error(); }
    if (!r->samples || t < r->t[0] || t > r->t[r->samples - 1]) {
        diag_error(ev->d, DIAG_INDEX_RANGE, at, "the time %g is outside the run, which goes to %g", t, r->t_end);
        return v_error();
    }
    return status_text(v, ev, sample_before(r->t, r->samples, t));
}

static value status_subscript(scope *sc, evaluator *ev, const value *o, const value *index, size_t n, span at)
{
    const view *v = (view *)sc;
    int64_t last = v->r->r->samples < INT32_MAX ? v->r->r->samples : INT32_MAX;
    address a;
    (void)o;
    if (n != 1 || !eval_index(ev, &index[0], 1, (int32_t)last, at, &a)) return v_error();
    return status_text(v, ev, a.base - 1);
}

static look nothing_find(scope *sc, evaluator *ev, sym name, span at, value *out)
{
    (void)sc; (void)ev; (void)name; (void)at; (void)out;
    return LOOK_NO;
}

/* components of a tangential quantity: one series, or a list of them */
static look tangential(const view *v, evaluator *ev, const double *x, dense_what what, span at, value *out)
{
    const contact_result *c = &v->r->r->contact[v->contact];
    if (!c->nslip || !x) {
        diag_error(ev->d, DIAG_UNKNOWN_MEMBER, at, "'%s' has no friction, and so nothing tangential", v->r->r->prog->contact[v->contact].name);
        return LOOK_ERROR;
    }
    value *all = arena_array(ev->a, value, c->nslip);
    for (int k = 0; k < c->nslip; k++) 
        all[k] = contact_series(v->r, x + v->member * c->nslip + k, c->members * c->nslip,
                                (dense_item){ .what = what, .k = k, .contact = v->contact, .member = v->member });
    *out = all[0];
    if (c->nslip == 1) return LOOK_YES;
    *out = (value){ .kind = V_LIST };
    out->list.at = all;
    out->list.n = (size_t)c->nslip;
    return LOOK_YES;
}

/* of large families only counts, impacts and extremes are known */
static look not_kept(const view *v, evaluator *ev, span at)
{
    const results *r = v->r->r;
    diag *e = diag_error(ev->d, DIAG_LIMIT, at, "constraint '%s' has %lld members: of so many, gaps, forces and states are not kept",
                         r->prog->contact[v->contact].name, (long long)r->contact[v->contact].members);
    diag_hint(ev->d, e, "its impacts are, and max_penetration; up to %d members all is kept", KEPT_MEMBERS);
    return LOOK_ERROR;
}

static look contact_find(scope *sc, evaluator *ev, sym name, span at, value *out)
{
    view *v = (view *)sc, w = *v;
    const contact_result *c = &v->r->r->contact[v->contact];
    int which = 0;
    while (contact_members[which] && strcmp(contact_members[which], name)) which++;
    if (!contact_members[which]) return LOOK_NO;
    if ((which < 5 || v->r->of->m->contacts.at[v->contact].one) && v->member < 0) {
        diag *e = diag_error(ev->d, DIAG_SHAPE, at, "'%s' of which member?", name);
        diag_hint(ev->d, e, "write %s[1].%s", v->r->r->prog->contact[v->contact].name, name);
        return LOOK_ERROR;
    }
    if (which < 5 && !c->kept) return not_kept(v, ev, at);
    w.base = which == 4 ? (scope){ .find = nothing_find, .call = status_call, .subscript = status_subscript }
                        : (scope){ .find = impacts_find, .names = impacts_names };
    switch (which) {
    case 0: *out = contact_series(v->r, c->gap ? c->gap + v->member : NULL, c->members, (dense_item){ .what = DENSE_GAP, .contact = v->contact, .member = v->member }); return LOOK_YES;
    case 1: *out = contact_series(v->r, c->rn ? c->rn + v->member : NULL, c->members, (dense_item){ .what = DENSE_RN, .contact = v->contact, .member = v->member }); return LOOK_YES;
    case 2: return tangential(v, ev, c->rt, DENSE_RT, at, out);
    case 3: return tangential(v, ev, c->slip, DENSE_SLIP, at, out);
    default: *out = view_value(view_new(v->r, w)); return LOOK_YES;
    }
}

static void contact_names(scope *sc, near *n) { (void)sc; near_list(n, contact_members); }

/* members that were written out are contacts of their own; w->contact becomes the one with these indices */
static int64_t written_out(view *w, const int32_t *ix)
{
    const model *m = w->r->of->m;
    const mcontact *c = &m->contacts.at[w->contact];
    for (size_t k = 0; k < m->contacts.n; k++) {
        const mcontact *x = &m->contacts.at[k];
        if (x->decl != c->decl || x->of != c->of || x->inst != w->inst || memcmp(x->index, ix, (size_t)c->own * sizeof *ix)) continue;
        w->contact = k;
        return 0;
    }
    return -1;
}

/* c[i, j]: the user's indices are the last ones */
static value contact_subscript(scope *sc, evaluator *ev, const value *o, const value *index, size_t n, span at)
{
    view w = *(view *)sc;
    const mcontact *c = &w.r->of->m->contacts.at[w.contact];
    int32_t ix[MAX_INDEX] = { w.inst };
    int first = c->over.set.n - c->own;
    (void)o;
    if (w.member >= 0 || (int)n != c->own) {
        diag_error(ev->d, DIAG_SHAPE, at, "constraint '%s' takes %d %s, not %zu", c->name, c->own, c->own == 1 ? "index" : "indices", n);
        return v_error();
    }
    for (size_t k = 0; k < n; k++) {
        address a;
        if (!eval_index(ev, &index[k], INT32_MIN / 2, INT32_MAX / 2, at, &a)) return v_error();
        ix[c->one ? (int)k : first + (int)k] = a.base;
    }
    w.member = c->one ? written_out(&w, ix) : index_rank(&c->over.set, ix);
    if (w.member >= 0 && w.member < w.r->r->contact[w.contact].members) return view_value(view_new(w.r, w));
    diag_error(ev->d, DIAG_INDEX_RANGE, at, "constraint '%s' has no member of this index", c->name);
    return v_error();
}

static value contact_value(run *r, size_t k, int32_t inst)
{
    const mcontact *c = &r->of->m->contacts.at[k];
    view v = { .contact = k, .member = -1, .inst = inst };
    v.base = (scope){ .find = contact_find, .names = contact_names, .subscript = contact_subscript };
    if (c->own == 0) v.member = c->over.set.n ? index_rank(&c->over.set, &inst) : 0;
    return view_value(view_new(r, v));
}

/* ---- parts and the names of a class ---- */

static value class_value(session *s, run *r, const mclass *c, int32_t inst);

static look part_find(scope *sc, evaluator *ev, sym name, span at, value *out)
{
    const view *v = (view *)sc;
    (void)out;
    diag *e = diag_error(ev->d, DIAG_SHAPE, at, "'%s' is a family of parts: '%s' of which one?", v->part->name, name);
    diag_hint(ev->d, e, "write %s[%d].%s", v->part->name, v->part->lo, name);
    return LOOK_ERROR;
}

static value part_subscript(scope *sc, evaluator *ev, const value *o, const value *index, size_t n, span at)
{
    const view *v = (view *)sc;
    const mpart *p = v->part;
    address a;
    (void)o;
    if (n != 1) { diag_error(ev->d, DIAG_SHAPE, at, "a family of parts takes one index"); return v_error(); }
    if (!eval_index(ev, &index[0], p->lo, p->lo + p->n - 1, at, &a)) return v_error();
    return class_value(v->base.of, v->r, p->of, p->first + v->inst * p->per + a.base - p->lo);
}

static value part_value(session *s, run *r, const mpart *p, int32_t inst)
{
    if (!p->indexed) return class_value(s, r, p->of, p->first + inst * p->per);
    view v = { .part = p, .inst = inst };
    v.base = (scope){ .find = part_find, .subscript = part_subscript, .of = s };
    return view_value(view_new(r, v));
}

static value param_value(const results *r, const mparam *p, int32_t inst, arena *a)
{
    if (p->offset < 0) return v_num_unit(p->fixed, p->unit);
    const double *x = r->param + p->offset + inst * p->size;
    value v = p->rank == 0 ? v_num(x[0]) : p->rank == 1 ? v_vector(a, p->n[0]) : v_matrix(a, p->n[0], p->n[1]);
    if (p->rank) memcpy(v.num.d, x, (size_t)p->size * sizeof *x);
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
    diag_error(ev->d, DIAG_NOT_SUPPORTED, at, "backend '%s' gives no '%s'", v->r->with->name, name);
    return LOOK_ERROR;
}

static look declared_value(view *v, evaluator *ev, const mdecl *d, span at, value *out)
{
    const results *r = v->r->r;
    switch (d->kind) {
    case DECL_PARAM: *out = param_value(r, d->param, v->inst, ev->a); return LOOK_YES;
    case DECL_LET: *out = eval(ev, &v->base, d->node->kid[0]); return out->kind == V_ERROR ? LOOK_ERROR : LOOK_YES;
    case DECL_FN: *out = (value){ .kind = V_FN }; out->fn.fn = d->node; out->fn.in = &v->base; return LOOK_YES;
    case DECL_PART: *out = part_value(v->base.of, v->r, d->part, v->inst); return LOOK_YES;
    case DECL_CONSTRAINT: return constraint_value(v, d->name, out);
    case DECL_DOF:
        *out = dofs_value((view){ .r = v->r, .dof = d->dof, .at = v->c->qbase + v->inst * v->c->qsize + d->dof->offset });
        return LOOK_YES;
    case DECL_COORD: if (field_coordinate(v->r, d->number, out)) return LOOK_YES; break;
    case DECL_FIELD: if (field_value(v->r, d->number, out)) return LOOK_YES; break;
    case DECL_ROD: if (rod_value(v->r, d->number, out)) return LOOK_YES; break;
    }
    return not_given(v, ev, d->name, at);
}

/* ---- names of the whole run ---- */

#define RUN_NAMES(X)                                                            \
    X("t",               plain_series(r, r->t, 1))                              \
    X("energy",          plain_series(r, r->energy, 1))                         \
    X("dissipated",      plain_series(r, r->dissipated, 1))                     \
    X("work",            plain_series(r, r->work, 1))                           \
    X("max_penetration", v_num(r->max_penetration))                             \
    X("residual",        v_num(r->residual))                                    \
    X("power_balance",   v_num(r->power_balance))                               \
    X("steps",           v_num((double)r->steps))                               \
    X("swept",           v_num((double)r->swept))

const char *const result_names[] = {
#define X(name, v) name,
    RUN_NAMES(X)
#undef X
    "contact_set", "jumps", "branches", "folds", "graph", "load", "reaction", "point_forces", "error", "complementarity", "updates", "iterations", "matching", "critical", NULL
};

static look run_value(const view *v, evaluator *ev, sym name, span at, value *out)
{
    const results *r = v->r->r;
    look f = field_name(v->r, ev, name, out);
    if (f != LOOK_NO || (f = rod_name(v->r, ev, name, out)) != LOOK_NO) return f;
#define X(n, x) if (!strcmp(name, n)) { *out = x; return out->kind == V_SERIES && !out->series.y ? not_given(v, ev, name, at) : LOOK_YES; }
    RUN_NAMES(X)
#undef X
    if ((f = inclusion_name(v->r, ev, name, out)) != LOOK_NO) return f;
    if (!strcmp(name, "load") && r->has_jumps) { *out = plain_series(r, r->load, 1); return LOOK_YES; }
    static const char *const of_limits[] = { "jumps", "branches", "folds", "graph", "load" };
    for (size_t k = 0; k < sizeof of_limits / sizeof *of_limits; k++) if (!strcmp(name, of_limits[k])) return not_given(v, ev, name, at);
    if (!strcmp(name, "contact_set")) return not_given(v, ev, name, at);
    return LOOK_NO;
}

static look class_find_value(scope *sc, evaluator *ev, sym name, span at, value *out)
{
    view *v = (view *)sc;
    const mdecl *d = class_find(v->c, name);
    if (d) return declared_value(v, ev, d, at, out);
    if (v->c == v->r->of->m->classes.at[0]) return run_value(v, ev, name, at, out);
    if (strcmp(name, "t")) return LOOK_NO;
    *out = plain_series(v->r->r, v->r->r->t, 1);
    return LOOK_YES;
}

static void class_names(scope *sc, near *n)
{
    const view *v = (view *)sc;
    for (size_t i = 0; i < v->c->names.cap; i++)
        if (v->c->names.key[i] != UINT64_MAX) near_try(n, ((const mdecl *)(uintptr_t)v->c->names.val[i])->name);
    near_list(n, result_names);
}

static value class_value(session *s, run *r, const mclass *c, int32_t inst)
{
    view v = { .c = c, .inst = inst };
    v.base = (scope){ .up = c->outer, .find = class_find_value, .names = class_names, .of = s };
    return view_value(view_new(r, v));
}

scope *results_scope(session *s, run *r) { return class_value(s, r, r->of->m->classes.at[0], 0).object.in; }

bool value_bodies(session *s, const value *v, void (*put)(void *ud, const value *part), void *ud)
{
    if (v->kind != V_OBJECT) return false;
    if (v->object.in->find == class_find_value) { put(ud, v); return true; }
    if (v->object.in->find != part_find) return false;
    const mpart *p = ((const view *)v->object.of)->part;
    for (int32_t k = p->lo; k < p->lo + p->n; k++) {
        value i = v_num(k), part = part_subscript(v->object.in, &s->ev, v, &i, 1, SPAN_NONE);
        if (part.kind == V_OBJECT) put(ud, &part);
    }
    return true;
}

bool value_table(session *s, const value *v, put_column put, void *ud)
{
    if (rod_table(s, v, put, ud) || inclusion_table(s, v, put, ud)) return true;
    if (v->kind != V_OBJECT || v->object.in->find != impacts_find) return false;
    impacts_put(s, v->object.of, put, ud);
    return true;
}

/* what an object of results is, in a line; false when it is none */
bool view_show(text *t, const value *v)
{
    if (inclusion_show(t, v)) return true;
    if (v->kind != V_OBJECT || v->object.of == NULL) return false;
    const view *x = v->object.of;
    if (v->object.in->find == dofs_find)
        text_printf(t, "degrees of freedom %s, %d numbers at a time: %s(0)", x->dof->name, x->dof->size, x->dof->name);
    else if (v->object.in->find == contact_find)
        text_printf(t, "constraint %s: %zu impacts; it has gap, rn, rt, slip, status, impacts", x->r->r->prog->contact[x->contact].name, impacts_count(x));
    else if (v->object.in->find == impacts_find) text_printf(t, "%zu impacts; they have t, pre, post, impulse", impacts_count(x));
    else if (v->object.in->find == part_find) text_printf(t, "parts %s[%d..%d]", x->part->name, x->part->lo, x->part->lo + x->part->n - 1);
    else if (v->object.in->find == class_find_value) text_printf(t, "results of model %s", ((view *)v->object.in)->c->name);
    else return false;
    return true;
}

/* ---- functions of results ---- */

/* times (NULL for a vector) and numbers; false when it is neither */
bool value_samples(session *s, const value *v, const double **t, const double **y, int64_t *n, int64_t *stride)
{
    *t = NULL;
    *stride = 1;
    if (v->kind == V_SERIES) {
        *t = v->series.t; *y = v->series.y; *n = v->series.n; *stride = v->series.stride;
        return true;
    }
    if (plane_samples(v, y, n, stride)) return true;
    if (v->kind == V_BOOL || (v->kind == V_NUM && v->num.rank == 0)) {
        double *x = arena_alloc(s->tmp, sizeof *x);
        if (!v_scalar(v, x)) return false;
        *y = x; *n = 1;
        return true;
    }
    if (v->kind != V_NUM || v->num.r) return false;
    *y = v->num.d; *n = v_count(v);
    return true;
}

typedef struct { const double *t, *y; int64_t n, stride; dim unit; } numbers;

static bool numbers_of(evaluator *ev, const ast *call, const value *v, numbers *x)
{
    span at = call ? call->at : SPAN_NONE;
    if (v->kind == V_SERIES) *x = (numbers){ v->series.t, v->series.y, v->series.n, v->series.stride, v->series.unit };
    else if (v->kind == V_NUM && v->num.rank && !v->num.r) *x = (numbers){ NULL, v->num.d, v_count(v), 1, v->num.unit };
    else if (plane_samples(v, &x->y, &x->n, &x->stride)) x->t = NULL, x->unit = dim_any();
    else {
        diag_error(ev->d, DIAG_TYPE, at, "a series or a vector of numbers is needed here, not %s", v_kind_text(ev->a, v));
        return false;
    }
    if (x->n > 0) return true;
    diag_error(ev->d, DIAG_SHAPE, at, "there is nothing to take it of: no numbers");
    return false;
}

static int64_t extreme(session *s, const numbers *x, bool largest)
{
    int64_t best = 0;
    scan rest = { .s = s };
    for (int64_t k = 1; k < x->n; k++) {
        scan_pass(&rest, x->stride * (int64_t)sizeof(double));
        double a = x->y[k * x->stride], b = x->y[best * x->stride];
        if (largest ? a > b : a < b) best = k;
    }
    return best;
}

static value extremum(evaluator *ev, const ast *call, const value *arg, size_t n, bool largest)
{
    numbers x;
    value best = arg[0];
    op_code op = largest ? OP_MAX : OP_MIN;
    if (n == 1 && v_is_scalar(&arg[0])) return arg[0];
    if (n == 1 && arg[0].kind == V_NUM && arg[0].num.r) {   /* of a symbolic vector, in a model */
        best = v_element(&arg[0], 0);
        for (int32_t k = 1; k < v_count(&arg[0]); k++) {
            value e = v_element(&arg[0], k);
            best = eval_op(ev, op, &best, &e, NULL, call->at);
        }
        return best;
    }
    if (n == 1) return numbers_of(ev, call, &arg[0], &x) ? v_num_unit(x.y[extreme(ev->of, &x, largest) * x.stride], x.unit) : v_error();
    for (size_t k = 1; k < n; k++) best = eval_op(ev, op, &best, &arg[k], NULL, call ? call->at : SPAN_NONE);
    return best;
}

/* the mean over time of a series (by trapezia), of the numbers of a vector */
static double mean_of(session *s, const numbers *x, bool squares)
{
    scan rest = { .s = s };
    double sum = 0, weight = 0;
    for (int64_t k = 0; k < x->n; k++) {
        double y = x->y[k * x->stride], w = 1;
        if (x->t) w = ((k + 1 < x->n ? x->t[k + 1] : x->t[k]) - (k ? x->t[k - 1] : x->t[k])) / 2;
        scan_pass(&rest, (x->stride + 1) * (int64_t)sizeof(double));
        sum += w * (squares ? y * y : y);
        weight += w;
    }
    double y0 = x->y[0];
    return weight > 0 ? sum / weight : squares ? y0 * y0 : y0;
}

#define BUILTIN(name) static value call_##name(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
BUILTIN(min) { (void)in; return extremum(ev, call, arg, n, false); }
BUILTIN(max) { (void)in; return extremum(ev, call, arg, n, true); }

BUILTIN(mean)
{
    numbers x;
    (void)in; (void)n;
    return numbers_of(ev, call, &arg[0], &x) ? v_num_unit(mean_of(ev->of, &x, false), x.unit) : v_error();
}

BUILTIN(rms)
{
    numbers x;
    (void)in; (void)n;
    return numbers_of(ev, call, &arg[0], &x) ? v_num_unit(sqrt(mean_of(ev->of, &x, true)), x.unit) : v_error();
}

static value end_of(evaluator *ev, const ast *call, const value *v, bool last)
{
    numbers x;
    if (v->kind == V_LIST && v->list.n) return v->list.at[last ? v->list.n - 1 : 0];
    if (is_dofs(v)) {
        const results *r = ((view *)v->object.of)->r->r;
        value t = v_num(r->samples ? r->t[last ? r->samples - 1 : 0] : 0);
        return dofs_call(v->object.in, ev, v, &t, 1, call->at);
    }
    return numbers_of(ev, call, v, &x) ? v_num_unit(x.y[last ? (x.n - 1) * x.stride : 0], x.unit) : v_error();
}

BUILTIN(first) { (void)in; (void)n; return end_of(ev, call, &arg[0], false); }
BUILTIN(last) { (void)in; (void)n; return end_of(ev, call, &arg[0], true); }

BUILTIN(count)
{
    const value *v = &arg[0];
    (void)in; (void)n;
    if (v->kind == V_LIST) return v_num((double)v->list.n);
    if (v->kind == V_SERIES) return v_num((double)v->series.n);
    if (v->kind == V_NUM && v->num.rank) return v_num(v->num.rank == 2 ? v->num.n[0] : v_count(v));
    if (v->kind == V_OBJECT && v->object.in->find == impacts_find) return v_num((double)impacts_count(v->object.of));
    double listed;
    if (inclusion_count(v, &listed)) return v_num(listed);
    diag_error(ev->d, DIAG_TYPE, call->at, "'count' takes a vector, a list or impacts, not %s", v_kind_text(ev->a, v));
    return v_error();
}

BUILTIN(argmax)
{
    numbers x;
    (void)in; (void)n;
    if (!numbers_of(ev, call, &arg[0], &x)) return v_error();
    int64_t k = extreme(ev->of, &x, true);
    return v_num(x.t ? x.t[k] : (double)(k + 1));
}

BUILTIN(settle_time)
{
    const value *v = &arg[0];
    (void)in; (void)n;
    if (v->kind != V_OBJECT || v->object.in->find != contact_find) {
        diag_error(ev->d, DIAG_TYPE, call->at, "'settle_time' takes a constraint, not %s", v_kind_text(ev->a, v));
        return v_error();
    }
    const view *c = v->object.of;
    const results *r = c->r->r;
    double t = -INFINITY;
    if (!r->contact[c->contact].kept) { not_kept(c, ev, call->at); return v_error(); }
    for (int64_t m = 0; m < r->contact[c->contact].members; m++)
        if (c->member < 0 || c->member == m) t = fmax(t, results_settle(r, (int)c->contact, m));
    return v_num(t);
}

/* taylor(y, t0, n): coefficients of degree 0 .. n to the right of t0 */
BUILTIN(taylor)
{
    const value *y = &arg[0];
    double t, degree;
    dense_item x;
    const results *r;
    (void)in; (void)n;
    if (y->kind == V_SERIES && y->series.ops == &dof_ops) {
        r = y->series.of;
        x = (dense_item){ .what = DENSE_DOF, .k = y->series.column, .order = y->series.order };
    } else if (y->kind == V_SERIES && y->series.ops == &contact_ops && ((dense_view *)y->series.of)->x.what <= DENSE_RN) {
        r = ((dense_view *)y->series.of)->r;
        x = ((dense_view *)y->series.of)->x;
    } else {
        diag_error(ev->d, DIAG_NOT_SUPPORTED, call->at, "'taylor' takes a degree of freedom, a rate, a gap or a reaction of a run with events()");
        return v_error();
    }
    if (!r->dense) {
        diag_error(ev->d, DIAG_NOT_SUPPORTED, call->at, "backend '%s' has no power series; use events()", r->backend);
        return v_error();
    }
    if (!v_scalar(&arg[1], &t) || !v_scalar(&arg[2], &degree) || degree != floor(degree) || degree < 0) {
        diag_error(ev->d, DIAG_TYPE, call->at, "'taylor' takes a time and a degree: taylor(y, 0, 8)");
        return v_error();
    }
    if (t < r->t[0] || t > r->t_end || degree + x.order > r->dense->order) {
        diag_error(ev->d, DIAG_INDEX_RANGE, call->at, "power series of this run go from t = %g to %g, up to degree %d", r->t[0], r->t_end, r->dense->order - x.order);
        return v_error();
    }
    value out = v_vector(ev->a, (int32_t)degree + 1);
    r->dense->series(r->dense->of, &x, t, (int)degree, out.num.d);
    return out;
}

/* ---- long results ---- */

void scan_pass(scan *x, int64_t bytes)
{
    enum { ENOUGH = 64 << 20 };
    x->bytes += bytes;
    if (x->bytes < ENOUGH) return;
    x->bytes = 0;
    for (size_t k = 0; k < x->s->runs.n; k++) if (x->s->runs.at[k]->r) results_rest(x->s->runs.at[k]->r);
}

const builtin result_builtins[] = {
    { "min", 1, -1, call_min, false, "min(y)  min(a, b, ...)", "the smallest number of a series or a vector, or of the arguments" },
    { "max", 1, -1, call_max, false, "max(y)  max(a, b, ...)", "the largest number of a series or a vector, or of the arguments" },
    { "mean", 1, 1, call_mean, false, "mean(y)", "the mean: over time for a series" },
    { "rms", 1, 1, call_rms, false, "rms(y)", "the root of the mean square: over time for a series" },
    { "first", 1, 1, call_first, false, "first(y)", "the first number" },
    { "last", 1, 1, call_last, false, "last(y)", "the last number" },
    { "count", 1, 1, call_count, false, "count(c.impacts)", "how many there are" },
    { "argmax", 1, 1, call_argmax, false, "argmax(y)", "the time at which a series is largest; the index, for a vector" },
    { "settle_time", 1, 1, call_settle_time, false, "settle_time(c)", "the time from which a constraint stays closed to the end" },
    { "taylor", 3, 3, call_taylor, false, "taylor(y, t0, n)", "coefficients of the power series to the right of t0" },
    { "animate", 2, -1, call_animate, false, "animate(\"a.svg\", p, ...)", "writes the motion of dofs, points, lines and parts in the plane as an SVG that moves, or a .gif" },
    { "random", 0, 1, call_random, false, "random()  random(n)", "a number between 0 and 1, or n of them, from the seed of the experiment" },
    { "random_normal", 0, 1, call_random_normal, false, "random_normal()  random_normal(n)", "as random: normal, with mean 0 and variance 1" },
    { "pieces", 1, 1, call_pieces, false, "pieces(u)", "coefficients of a field on its pieces" },
    { NULL, 0, 0, NULL, false, NULL, NULL }
};
