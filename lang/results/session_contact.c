/* session_contact: constraints of a run as values: gaps, forces, states, impacts. */
#include <math.h>
#include <string.h>
#include "program/turns.h"
#include "program/shapes.h"
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

/* points in which a member may touch: members of the family one after the other, the view is at the first */
static int64_t view_slots(const view *v)
{
    int slots = v->r->of->m->contacts.at[v->contact].slots;
    return slots ? slots : 1;
}

bool view_has(const view *v, int64_t member)
{
    return v->member < 0 || (member >= v->member && member < v->member + view_slots(v));
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
    int first = of->over.set.n - of->own - contact_hidden(of),
        own = v->member < 0 && !of->one && of->own <= 4 ? of->own : 0;
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

/* ---- shapes that touch in several points ---- */

/* a quantity of all points of a member: the least gap, the sum of the forces */
typedef struct {
    const results *r;
    dense_item x;
    int64_t slots;
} points_view;

static double joined(bool least, double a, double b)
{
    return least ? fmin(a, b) : a + b;
}

static double points_dense_at(void *of, int32_t column, int order, double t)
{
    const points_view *p = of;
    dense_item x = p->x;
    double y = p->r->dense->at(p->r->dense->of, &x, t);
    (void)column;
    (void)order;
    for (int64_t k = 1; k < p->slots; k++) {
        x.member = p->x.member + k;
        y = joined(x.what == DENSE_GAP, y, p->r->dense->at(p->r->dense->of, &x, t));
    }
    return y;
}

static const series_ops points_ops = { points_dense_at, contact_derivative };

/* from: of the first point at the first sample; apart: from sample to sample, step: from point to point */
static value points_series(const view *v, const double *from, int64_t apart, int64_t step, dense_item x)
{
    run *of = v->r;
    int64_t n = of->r->samples, slots = view_slots(v);
    if (!from)
        return plain_series(of->r, NULL, 1);
    double *y = arena_array(of->a, double, n + 1);
    for (int64_t k = 0; k < n; k++) {
        y[k] = from[k * apart];
        for (int64_t s = 1; s < slots; s++)
            y[k] = joined(x.what == DENSE_GAP, y[k], from[k * apart + s * step]);
    }
    value out = plain_series(of->r, y, 1);
    if (of->r->dense) {
        points_view *p = arena_alloc(of->a, sizeof *p);
        *p = (points_view){ of->r, x, slots };
        out.series.ops = &points_ops;
        out.series.of = p;
    }
    return out;
}

/* the state at the end, as kernels read it */
static void last_state(arena *a, const results *r, inputs *in)
{
    size_t n = (size_t)r->prog->nq, last = (size_t)(r->samples - 1) * n;
    double *q = arena_array(a, double, n), *v = arena_array(a, double, n);
    memcpy(q, r->q + last, n * sizeof *q);
    memcpy(v, r->v + last, n * sizeof *v);
    *in = (inputs){ .t = r->t[r->samples - 1] };
    double *base = arena_array(a, double, 3 * n + 1);
    turns_start(r->prog, base);
    turns_take(r->prog, q, base);
    in->from[IN_BASE] = base;
    in->from[IN_Q] = q;
    in->from[IN_V] = v;
    in->from[IN_PARAM] = r->param;
    in->from[IN_FEATURE] = r->feature;
}

enum { MAX_TOUCHING = 1000 }; /* points that are listed of a member */

/* places and normals of the points that touch at the end, as rows; forces there */
static look points_find(scope *sc, evaluator *ev, sym name, span at, value *out)
{
    const view *v = (view *)sc;
    const results *r = v->r->r;
    const contact_result *c = &r->contact[v->contact];
    const contact_family *f = &r->prog->contact[v->contact];
    const kernel *k = &f->points;
    int which = result_find(OF_POINTS, name) - POINTS_place, axes = (int)k->tape.nout / 2, n = 0;
    int64_t slots = view_slots(v), first = (r->samples - 1) * c->members, members[MAX_TOUCHING];
    (void)at;
    if (which < 0)
        return LOOK_NO;
    for (int64_t m = v->member; m < v->member + slots && n < MAX_TOUCHING; m++)
        if (c->rn[first + m] != 0 || (c->status && c->status[first + m] != STATUS_OPEN))
            members[n++] = m;
    int wide = which == 3 ? c->nslip : axes;
    *out = which == 2 ? v_vector(ev->a, n) : v_matrix(ev->a, n, wide ? wide : 1);
    out->num.unit = dim_any();
    inputs in;
    last_state(ev->a, r, &in);
    double *reg = arena_array(ev->a, double, k->tape.nreg + 1);
    tape_start(&k->tape, reg);
    for (int i = 0; i < n; i++) {
        int32_t ix[MAX_INDEX] = { 0 };
        if (which == 2)
            out->num.d[i] = c->rn[first + members[i]];
        for (int j = 0; which == 3 && j < wide; j++)
            out->num.d[wide * i + j] = c->rt ? c->rt[(first + members[i]) * wide + j] : 0;
        if (which >= 2)
            continue;
        bool any = index_first(&f->over, ix);
        for (int64_t m = 0; any && f->over.n && m < members[i]; m++)
            index_next(&f->over, ix);
        shapes_index(r->prog, f, members[i], ix);
        kernel_run(k, &in, ix, reg);
        for (int j = 0; j < axes; j++)
            out->num.d[axes * i + j] = reg[k->tape.out[which * axes + j]];
    }
    return LOOK_YES;
}

static void points_names(scope *sc, near *n)
{
    (void)sc;
    near_list(n, result_list(OF_POINTS));
}

static const char *const status_word[] = { "open", "stick", "slip" };

static int status_at(const view *v, int64_t sample)
{
    const contact_result *c = &v->r->r->contact[v->contact];
    const uint8_t *of = c->status + sample * c->members + v->member;
    int all = of[0] % 3;
    for (int64_t k = 1; k < view_slots(v); k++) /* one point that sticks holds the body */
        all = of[k] == STATUS_STICK || all == STATUS_STICK ? STATUS_STICK : all > of[k] ? all : of[k];
    return all;
}

/* "open", "stick", "slip": status(0.5), and status[k] by the sample */
static value status_text(const view *v, evaluator *ev, int64_t sample)
{
    const char *w = status_word[status_at(v, sample)];
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
    if (!times_reach(r->t, r->samples, &t)) {
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

bool status_show(text *t, const value *v)
{
    if (v->kind != V_OBJECT || v->object.in->call != status_call)
        return false;
    const view *x = (const view *)v->object.in;
    int64_t count[] = { 0, 0, 0 };
    for (int64_t k = 0; k < x->r->r->samples; k++)
        count[status_at(x, k)]++;
    text_printf(t, "status of %s at %lld samples:", x->r->r->prog->contact[x->contact].name,
                (long long)x->r->r->samples);
    const char *between = " ";
    for (int k = 0; k < 3; k++) {
        if (count[k])
            text_printf(t, "%s%s %lld", between, status_word[k], (long long)count[k]);
        between = count[k] ? ", " : between;
    }
    return true;
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
        diag_error(ev->d, DIAG_UNKNOWN_MEMBER, at, "'%s' has no friction, so there is no tangential quantity",
                   v->r->r->prog->contact[v->contact].name);
        return LOOK_ERROR;
    }
    value *all = arena_array(ev->a, value, c->nslip);
    for (int k = 0; k < c->nslip; k++) {
        dense_item item = { .what = what, .k = k, .contact = v->contact, .member = v->member };
        const double *from = x + v->member * c->nslip + k;
        all[k] = view_slots(v) > 1 ? points_series(v, from, c->members * c->nslip, c->nslip, item)
                                   : contact_series(v->r, from, c->members * c->nslip, item);
    }
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
                         "constraint '%s' has %lld members, too many to keep their gaps, forces and states",
                         r->prog->contact[v->contact].name, (long long)r->contact[v->contact].members);
    diag_hint(ev->d, e, "its impacts and max_penetration are kept; up to %d members everything is",
              KEPT_MEMBERS);
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
    case CONTACT_rn: {
        const double *all = which == CONTACT_gap ? c->gap : c->rn, *from = all ? all + v->member : NULL;
        dense_item item = { .what = which == CONTACT_gap ? DENSE_GAP : DENSE_RN,
                            .contact = v->contact,
                            .member = v->member };
        *out = view_slots(v) > 1 ? points_series(v, from, c->members, 1, item)
                                 : contact_series(v->r, from, c->members, item);
        return LOOK_YES;
    }
    case CONTACT_rt:
        return tangential(v, ev, c->rt, DENSE_RT, at, out);
    case CONTACT_points:
        if (!v->r->r->prog->contact[v->contact].points.tape.nout || !v->r->r->samples) {
            diag_error(ev->d, DIAG_UNKNOWN_MEMBER, at, "'%s' is not between shapes: it has no points",
                       v->r->r->prog->contact[v->contact].name);
            return LOOK_ERROR;
        }
        w.base = (scope){ .find = points_find, .names = points_names };
        *out = view_value(view_new(v->r, w));
        return LOOK_YES;
    case CONTACT_slip:
        if (view_slots(v) > 1) {
            diag *e = diag_error(ev->d, DIAG_SHAPE, at,
                                 "'%s' touches at several points, each with its own slip",
                                 v->r->r->prog->contact[v->contact].name);
            diag_hint(
                ev->d, e,
                "status, rn and rt are for all of them together; the dofs give the velocity of any point");
            return LOOK_ERROR;
        }
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
    int32_t ix[MAX_INDEX] = { w.inst }, own[MAX_INDEX] = { 0 };
    int first = c->over.set.n - c->own - contact_hidden(c);
    (void)o;
    if (c->slots)
        ix[first + c->own] = 1;
    if (w.member >= 0 || (int)n != c->own) {
        diag_error(ev->d, DIAG_SHAPE, at, "constraint '%s' takes %d %s, not %zu", c->name, c->own,
                   c->own == 1 ? "index" : "indices", n);
        return v_error();
    }
    for (size_t k = 0; k < n; k++) {
        address a;
        if (!eval_index(ev, &index[k], INT32_MIN / 2, INT32_MAX / 2, at, &a))
            return v_error();
        own[k] = a.base;
        if (!c->one)
            ix[first + (int)k] = a.base;
    }
    w.member = c->one ? written_out(&w, own) : index_rank(&c->over.set, ix);
    if (w.member >= 0 && w.member < w.r->r->contact[w.contact].members)
        return view_value(view_new(w.r, w));
    diag_error(ev->d, DIAG_INDEX_RANGE, at, "constraint '%s' has no member with this index", c->name);
    return v_error();
}

value contact_value(run *r, size_t k, int32_t inst)
{
    const mcontact *c = &r->of->m->contacts.at[k];
    view v = { .contact = k, .member = -1, .inst = inst };
    v.base = (scope){ .find = contact_find, .names = contact_names, .subscript = contact_subscript };
    int32_t ix[MAX_INDEX] = { inst };
    if (c->slots)
        ix[c->over.set.n - contact_hidden(c)] = 1;
    if (c->own == 0)
        v.member = c->over.set.n ? index_rank(&c->over.set, ix) : 0;
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
    if (c->one || c->slots || (before && !indices_free(c)))
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
    if (!c->kept || member < 0 || which < 0 || which == CONTACT_impacts || which == CONTACT_points ||
        view_slots(x) > 1)
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
bool is_points(const value *v)
{
    return v->kind == V_OBJECT && v->object.in->find == points_find;
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
    if (which == CONTACT_points)
        return c->r->r->prog->contact[c->contact].points.tape.nout > 0;
    if (which == CONTACT_slip && view_slots(c) > 1)
        return false;
    return (which != CONTACT_rt && which != CONTACT_slip) || c->r->r->contact[c->contact].nslip;
}
