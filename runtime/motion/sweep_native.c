/* sweep_native: plain steps by code that the system's compiler made of their C.  The run keeps the state;
   what is no plain step is taken by sweep_advance as ever, so the numbers are those of the interpreter. */
#include <math.h>
#include "base/budget.h"
#include "io/compiled.h"
#include "native/view.h"
#include "sweep.h"
#include "sweep_emit.h"

/* Steps from which on it pays: to look for code that was made before, to make it. */
static const double LOOK = 1e6, MAKE = 1e8;

struct native {
    native_steps *go;
    void *handle;
    native_view x;
};

static double run_steps(const sweep *w)
{
    return w->o->duration / w->h;
}

/* a function came as a pointer to an object */
static native_steps *as_steps(void *p)
{
    union {
        void *object;
        native_steps *function;
    } u = { p };
    return u.function;
}

/* what stays where it is for the run */
static void view_new(sweep *w, native_view *x)
{
    const contact_state *k = w->contacts.nstate ? w->contacts.state[0] : NULL;
    *x = (native_view){ .param = w->r->param,
                        .inverse = w->s->force_of_state ? w->matrix.df.a : w->s->minv.a,
                        .Fq = w->matrix.Fq,
                        .Fv = w->matrix.Fv,
                        .qmax = w->size.qmax,
                        .vmax = w->size.vmax,
                        .h = w->h,
                        .theta = w->theta };
    if (!k)
        return;
    const contact *c = k->c;
    x->H = c->H;
    x->S = c->S;
    x->s0 = c->s0;
    x->A = k->alone.A;
    x->dof = w->contacts.table.row[k->at].dof;
    x->ht = c->ht;
    x->mu = c->mu;
    x->normal = c->normal;
    x->relation = k->relation == REL_GAP ? 0 : k->relation == REL_BILATERAL ? 1 : 2;
    x->tresca = c->fam->f->friction == FRICTION_TRESCA;
}

void sweep_native_new(sweep *w, const run_clock *c)
{
    bool wanted = w->native == NATIVE_ALWAYS || (w->native == NATIVE_AUTO && run_steps(w) >= LOOK);
    (void)c;
    if (!w->quick.steps || !wanted || w->o->only_general)
        return;
    arena_pos mark = arena_mark(w->scratch);
    text t = { .a = w->scratch };
    struct budget *b = arena_budget(w->a);
    void *handle = NULL, *found = NULL;
    struct native *made = arena_make(w->a, struct native);
    bool cached = false;
    if (sweep_emit_plain(w, &t)) {
        char name[COMPILED_NAME];
        compiled_name(t.at, t.n, name);
        found = compiled_find(name, NATIVE_ENTRY, &handle);
        cached = found;
        if (!found && (w->native == NATIVE_ALWAYS || run_steps(w) >= MAKE)) {
            sweep_emit_rest(&t);
            found = compiled_make(name, t.at, t.n, NATIVE_ENTRY, b, &handle);
        }
    }
    arena_release(w->scratch, mark);
    if (!found)
        return;
    *made = (struct native){ .go = as_steps(found), .handle = handle };
    view_new(w, &made->x);
    w->quick.native = made;
    w->r->native = cached ? "cache" : "compiled";
}

void sweep_native_close(sweep *w)
{
    if (w->quick.native)
        compiled_close(w->quick.native->handle);
    w->quick.native = NULL;
}

/* ---- the state, there and back ---- */
static bool lone_known(const sweep *w, const contact_state *k)
{
    return k->alone.cone_step == w->h && k->alone.cone.d == k->c->d && k->stamp == w->matrix.stamp &&
           k->alone.stamp_a == w->matrix.stamp;
}

static void view_columns(const sweep *w, native_view *x, const run_clock *c)
{
    results *r = w->r;
    const contact_result *out = w->contacts.nstate ? w->contacts.state[0]->out : NULL;
    x->last = c->last;
    x->apart = c->apart;
    x->at = r->samples;
    x->room = r->disk.later ? r->cap : 0;
    x->col_t = r->t;
    x->col_q = r->q;
    x->col_v = r->v;
    x->col_f = r->disk.absent & PART_ACC ? NULL : r->acc;
    x->col_work = r->work;
    x->col_dissipated = r->dissipated;
    if (!out)
        return;
    x->col_gap = out->gap;
    x->col_rn = out->rn;
    x->col_rt = out->rt;
    x->col_status = out->status;
}

static void view_enter(sweep *w, native_view *x, const run_clock *c)
{
    const contact_table *t = &w->contacts.table;
    contact_state *k = w->contacts.nstate ? w->contacts.state[0] : NULL;
    x->q = w->q;
    x->v = w->v;
    x->f = w->f;
    x->driving = w->account.driving;
    x->power = w->account.power;
    x->driving_known = w->account.driving_known;
    x->t = w->t;
    x->step = c->step;
    x->step_from = w->account.step_from;
    x->work = w->account.books->work;
    x->dissipated = w->account.books->dissipated;
    x->deepest = w->r->max_penetration;
    view_columns(w, x, c);
    if (!k)
        return;
    x->G = k->G.a;
    x->A_known = lone_known(w, k);
    x->r = k->r;
    x->P = k->P;
    x->closed = closed(w, k);
    x->gap = *k->c->gap;
    x->tol_gap = t->tol_gap[k->at];
    x->tol_u = t->tol_u[k->at];
    x->tol_slip = k->tol_slip;
    x->length = *k->length;
}

static void view_leave(sweep *w, const native_view *x, run_clock *c)
{
    contact_table *t = &w->contacts.table;
    contact_state *k = w->contacts.nstate ? w->contacts.state[0] : NULL;
    w->account.power = x->power;
    w->account.driving_known = x->driving_known;
    w->account.step_from = x->step_from;
    w->account.books->work = x->work;
    w->account.books->dissipated = x->dissipated;
    w->r->max_penetration = x->deepest;
    w->r->samples = x->at;
    c->t = w->t = x->t;
    c->step = x->step;
    c->last = x->last;
    w->fresh = false;
    if (!k)
        return;
    *k->c->gap = x->gap;
    t->tol_gap[k->at] = x->tol_gap;
    t->tol_u[k->at] = x->tol_u;
    k->tol_slip = x->tol_slip;
    w->size.lengths[k->c->fam - w->s->family] = x->length;
}

void sweep_native_steps(sweep *w, run_clock *c, int64_t count)
{
    native_view *x = &w->quick.native->x;
    x->drift = sweep_quick_drift(w);
    for (int due = 1; due && count > 0;) {
        view_enter(w, x, c);
        int64_t done = w->quick.native->go(x, count, &due);
        if (done == 0)
            return;
        view_leave(w, x, c);
        count -= done;
        arena_tick(w->a, 8 * done);
        if (due && w->r->disk.later)
            sweep_sample_state(w, clock_sample_state(c, w->t));
        else if (due && !clock_sample(c, w->t))
            return;
    }
}
