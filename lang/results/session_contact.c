/* session_contact: constraints of a run as values: gaps, forces, states, impacts. */
#include <string.h>
#include "session_view.h"

/* ---- series ---- */

/* gap and reaction of a contact: as exact between samples as at them, where the backend has more than samples
 */
typedef struct {
    const results *r;
    dense_item x;
} dense_view;

static double contact_dense_at(void *of, int32_t column, int order, double t)
{
    const dense_view *d = of;
    (void)column;
    (void)order;
    return d->r->dense->at(d->r->dense->of, &d->x, t);
}

static bool contact_derivative(const value *y, value *out)
{
    (void)y;
    (void)out;
    return false;
}

static const series_ops contact_ops = { contact_dense_at, contact_derivative };

static value contact_series(run *of, const double *y, int64_t stride, dense_item x)
{
    value v = plain_series(of->r, y, stride);
    if (!of->r->dense || !y)
        return v;
    dense_view *d = arena_alloc(of->a, sizeof *d);
    *d = (dense_view){ of->r, x };
    v.series.ops = &contact_ops;
    v.series.of = d;
    return v;
}

/* ---- constraints ---- */

static bool view_has(const view *v, int32_t member)
{
    return v->member < 0 || v->member == member;
}

size_t impacts_count(const view *v)
{
    const contact_result *c = &v->r->r->contact[v->contact];
    size_t n = 0;
    for (size_t k = 0; k < c->impacts.n; k++)
        n += view_has(v, c->impacts.at[k].member);
    return n;
}

static look impacts_find(scope *sc, evaluator *ev, sym name, span at, value *out)
{
    const view *v = (view *)sc;
    const contact_result *c = &v->r->r->contact[v->contact];
    int which = result_find(OF_IMPACT, name) - IMPACT_t;
    int32_t n = 0;
    (void)at;
    if (which < 0)
        return LOOK_NO;
    *out = v_vector(ev->a, (int32_t)impacts_count(v));
    for (size_t k = 0; k < c->impacts.n; k++) {
        const impact *x = &c->impacts.at[k];
        const double all[] = { x->t, x->pre, x->post, x->impulse };
        if (view_has(v, x->member))
            out->num.d[n++] = all[which];
    }
    return LOOK_YES;
}

static void impacts_names(scope *sc, near *n)
{
    (void)sc;
    near_list(n, result_list(OF_IMPACT));
}

/* their columns; of a family also the indices of the members */
void impacts_put(session *s, const view *v, put_column put, void *ud)
{
    static const char *const letters[] = { "i", "j", "k", "l" };
    const contact_result *c = &v->r->r->contact[v->contact];
    const mcontact *of = &v->r->of->m->contacts.at[v->contact];
    int first = of->over.set.n - of->own, own = v->member < 0 && !of->one && of->own <= 4 ? of->own : 0;
    int32_t ix[MAX_INDEX], n = (int32_t)impacts_count(v),
                           *at = arena_array(s->tmp, int32_t, own ? c->members * own : 1);
    int64_t m = 0;
    for (bool more = own && index_first(&of->over.set, ix); more && m < c->members;
         more = index_next(&of->over.set, ix), m++)
        for (int k = 0; k < own; k++)
            at[m * own + k] = ix[first + k];
    for (int k = 0; k < own; k++) {
        value col = v_vector(s->tmp, n);
        for (int32_t i = 0; i < n; i++)
            col.num.d[i] = at[c->impacts.at[i].member * own + k];
        put(ud, letters[k], &col, 0);
    }
    for (const char *const *name = result_list(OF_IMPACT); *name; name++) {
        value col;
        union {
            const scope *in;
            scope *out;
        } sc = { .in = &v->base };
        if (impacts_find(sc.out, &s->ev, sym_str(s->names, *name), SPAN_NONE, &col) == LOOK_YES)
            put(ud, *name, &col, 0);
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
    if (n != 1 || !v_scalar(&arg[0], &t)) {
        diag_error(ev->d, DIAG_ARITY, at, "a status is read at one time: status(1.5)");
        return v_error();
    }
    if (!r->samples || t < r->t[0] || t > r->t[r->samples - 1]) {
        diag_error(ev->d, DIAG_INDEX_RANGE, at, "the time %g is outside the run, which goes to %g", t,
                   r->t_end);
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
    if (n != 1 || !eval_index(ev, &index[0], 1, (int32_t)last, at, &a))
        return v_error();
    return status_text(v, ev, a.base - 1);
}

static look nothing_find(scope *sc, evaluator *ev, sym name, span at, value *out)
{
    (void)sc;
    (void)ev;
    (void)name;
    (void)at;
    (void)out;
    return LOOK_NO;
}

/* components of a tangential quantity: one series, or a list of them */
static look tangential(const view *v, evaluator *ev, const double *x, dense_what what, span at, value *out)
{
    const contact_result *c = &v->r->r->contact[v->contact];
    if (!c->nslip || !x) {
        diag_error(ev->d, DIAG_UNKNOWN_MEMBER, at, "'%s' has no friction, and so nothing tangential",
                   v->r->r->prog->contact[v->contact].name);
        return LOOK_ERROR;
    }
    value *all = arena_array(ev->a, value, c->nslip);
    for (int k = 0; k < c->nslip; k++)
        all[k] = contact_series(
            v->r, x + v->member * c->nslip + k, c->members * c->nslip,
            (dense_item){ .what = what, .k = k, .contact = v->contact, .member = v->member });
    *out = all[0];
    if (c->nslip == 1)
        return LOOK_YES;
    *out = (value){ .kind = V_LIST };
    out->list.at = all;
    out->list.n = (size_t)c->nslip;
    return LOOK_YES;
}

/* of large families only counts, impacts and extremes are known */
look contact_not_kept(const view *v, evaluator *ev, span at)
{
    const results *r = v->r->r;
    diag *e = diag_error(ev->d, DIAG_LIMIT, at,
                         "constraint '%s' has %lld members: of so many, gaps, forces and states are not kept",
                         r->prog->contact[v->contact].name, (long long)r->contact[v->contact].members);
    diag_hint(ev->d, e, "its impacts are, and max_penetration; up to %d members all is kept", KEPT_MEMBERS);
    return LOOK_ERROR;
}

static look contact_find(scope *sc, evaluator *ev, sym name, span at, value *out)
{
    view *v = (view *)sc, w = *v;
    const contact_result *c = &v->r->r->contact[v->contact];
    int which = result_find(OF_CONTACT, name);
    bool kept = which != CONTACT_impacts; /* a number or a state for each sample */
    if (which < 0)
        return LOOK_NO;
    if ((kept || v->r->of->m->contacts.at[v->contact].one) && v->member < 0) {
        diag *e = diag_error(ev->d, DIAG_SHAPE, at, "'%s' of which member?", name);
        diag_hint(ev->d, e, "write %s[1].%s", v->r->r->prog->contact[v->contact].name, name);
        return LOOK_ERROR;
    }
    if (kept && !c->kept)
        return contact_not_kept(v, ev, at);
    w.base = which == CONTACT_status
                 ? (scope){ .find = nothing_find, .call = status_call, .subscript = status_subscript }
                 : (scope){ .find = impacts_find, .names = impacts_names };
    switch (which) {
    case CONTACT_gap:
        *out = contact_series(v->r, c->gap ? c->gap + v->member : NULL, c->members,
                              (dense_item){ .what = DENSE_GAP, .contact = v->contact, .member = v->member });
        return LOOK_YES;
    case CONTACT_rn:
        *out = contact_series(v->r, c->rn ? c->rn + v->member : NULL, c->members,
                              (dense_item){ .what = DENSE_RN, .contact = v->contact, .member = v->member });
        return LOOK_YES;
    case CONTACT_rt:
        return tangential(v, ev, c->rt, DENSE_RT, at, out);
    case CONTACT_slip:
        results_need(v->r->r, PART_SLIP);
        return tangential(v, ev, c->slip, DENSE_SLIP, at, out);
    default:
        *out = view_value(view_new(v->r, w));
        return LOOK_YES;
    }
}

static void contact_names(scope *sc, near *n)
{
    (void)sc;
    near_list(n, result_list(OF_CONTACT));
}

/* members that were written out are contacts of their own; w->contact becomes the one with these indices */
static int64_t written_out(view *w, const int32_t *ix)
{
    const model *m = w->r->of->m;
    const mcontact *c = &m->contacts.at[w->contact];
    for (size_t k = 0; k < m->contacts.n; k++) {
        const mcontact *x = &m->contacts.at[k];
        if (x->decl != c->decl || x->of != c->of || x->inst != w->inst ||
            memcmp(x->index, ix, (size_t)c->own * sizeof *ix))
            continue;
        w->contact = k;
        return 0;
    }
    return -1;
}

/* c[i, j]: the user's indices are the last ones */
static value contact_subscript(scope *sc, evaluator *ev, const value *o, const value *index, size_t n,
                               span at)
{
    view w = *(view *)sc;
    const mcontact *c = &w.r->of->m->contacts.at[w.contact];
    int32_t ix[MAX_INDEX] = { w.inst };
    int first = c->over.set.n - c->own;
    (void)o;
    if (w.member >= 0 || (int)n != c->own) {
        diag_error(ev->d, DIAG_SHAPE, at, "constraint '%s' takes %d %s, not %zu", c->name, c->own,
                   c->own == 1 ? "index" : "indices", n);
        return v_error();
    }
    for (size_t k = 0; k < n; k++) {
        address a;
        if (!eval_index(ev, &index[k], INT32_MIN / 2, INT32_MAX / 2, at, &a))
            return v_error();
        ix[c->one ? (int)k : first + (int)k] = a.base;
    }
    w.member = c->one ? written_out(&w, ix) : index_rank(&c->over.set, ix);
    if (w.member >= 0 && w.member < w.r->r->contact[w.contact].members)
        return view_value(view_new(w.r, w));
    diag_error(ev->d, DIAG_INDEX_RANGE, at, "constraint '%s' has no member of this index", c->name);
    return v_error();
}

value contact_value(run *r, size_t k, int32_t inst)
{
    const mcontact *c = &r->of->m->contacts.at[k];
    view v = { .contact = k, .member = -1, .inst = inst };
    v.base = (scope){ .find = contact_find, .names = contact_names, .subscript = contact_subscript };
    if (c->own == 0)
        v.member = c->over.set.n ? index_rank(&c->over.set, &inst) : 0;
    return view_value(view_new(r, v));
}

/* ---- as arrays ---- */

/* the indices that the user wrote do not depend on each other */
static bool indices_free(const mcontact *c)
{
    for (int k = c->over.set.n - c->own; k < c->over.set.n; k++)
        for (int i = 0; i < k; i++)
            if (c->over.set.r[k].lo_stride[i] || c->over.set.r[k].hi_stride[i])
                return false;
    return true;
}

/* Axes of the family: one for each index, or one for all members where they are not independent.  Returns the
   first member, -1: these members do not follow each other. */
static int64_t family_axes(const view *v, contact_column *out)
{
    const mcontact *c = &v->r->of->m->contacts.at[v->contact];
    const contact_result *x = &v->r->r->contact[v->contact];
    int before = c->over.set.n - c->own;
    int64_t all = 1;
    if (c->one || (before && !indices_free(c)))
        return -1;
    if (!indices_free(c)) {
        out->naxis = 1;
        out->n[0] = (int32_t)x->members;
        out->first[0] = 1;
        return 0;
    }
    out->naxis = c->own;
    for (int k = 0; k < c->own; k++) {
        const index_range *r = &c->over.set.r[before + k];
        out->first[k] = r->lo;
        out->n[k] = r->hi - r->lo + 1;
        all *= out->n[k];
    }
    return before ? v->inst * all : 0;
}

bool contact_samples(const value *v, const char *name, bool make, contact_column *out)
{
    const view *x = v->object.of;
    const contact_result *c = &x->r->r->contact[x->contact];
    int which = result_find(OF_CONTACT, name);
    *out = (contact_column){ .components = 1, .apart = c->members };
    int64_t member = x->member >= 0 ? x->member : family_axes(x, out);
    if (!c->kept || member < 0 || which < 0 || which == CONTACT_impacts)
        return false;
    bool slips = which == CONTACT_rt || which == CONTACT_slip;
    if (slips && !c->nslip)
        return false;
    if (which == CONTACT_slip && make)
        results_need(x->r->r, PART_SLIP);
    if (slips) {
        out->components = c->nslip;
        out->apart *= c->nslip;
        member *= c->nslip;
    }
    const double *of = which == CONTACT_gap  ? c->gap
                       : which == CONTACT_rn ? c->rn
                       : which == CONTACT_rt ? c->rt
                                             : c->slip;
    if (which == CONTACT_status)
        out->bytes = c->status ? c->status + member : NULL;
    else
        out->numbers = of ? of + member : NULL;
    return out->bytes || out->numbers || !make;
}

bool is_contact(const value *v)
{
    return v->kind == V_OBJECT && v->object.in->find == contact_find;
}
bool is_impacts(const value *v)
{
    return v->kind == V_OBJECT && v->object.in->find == impacts_find;
}

const results *contact_dense(const value *y, dense_item *x)
{
    if (y->kind != V_SERIES || y->series.ops != &contact_ops)
        return NULL;
    const dense_view *d = y->series.of;
    *x = d->x;
    return x->what <= DENSE_RN ? d->r : NULL;
}

/* without friction there is nothing tangential */
bool contact_has(const value *v, const char *name)
{
    const view *c = v->object.of;
    int which = result_find(OF_CONTACT, name);
    return (which != CONTACT_rt && which != CONTACT_slip) || c->r->r->contact[c->contact].nslip;
}
