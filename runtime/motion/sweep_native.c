/* sweep_native: plain steps by code that the system's compiler makes from their C. The run keeps the state.
   Other steps are taken by sweep_advance as usual, so the numbers are those of the interpreter. */
#include <math.h>
#include "base/budget.h"
#include "io/compiled.h"
#include "native/view.h"
#include "sweep.h"
#include "sweep_emit.h"

/* Numbers of steps above which it pays off to look for code compiled earlier, and to compile. */
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

/* dlsym returns functions as pointers to objects. */
static native_steps *as_steps(void *p)
{
    union {
        void *object;
        native_steps *function;
    } u = { p };
    return u.function;
}

/* Pointers that stay valid during the run. */
static void view_new(sweep *w, native_view *x)
{
    const contact_state *k = w->contacts.nstate ? w->contacts.state[0] : NULL;
    *x = (native_view){ .fixed = { .param = w->r->param,
                                   .drift = sweep_quick_drift(w),
                                   .inverse = w->s->force_of_state ? w->matrix.df.a : w->s->minv.a,
                                   .Fq = w->matrix.Fq,
                                   .Fv = w->matrix.Fv,
                                   .h = w->h,
                                   .theta = w->theta },
                        .now = { .qmax = w->size.qmax, .vmax = w->size.vmax } };
    if (!k)
        return;
    const contact *c = k->c;
    x->fixed.H = c->H;
    x->fixed.S = c->S;
    x->fixed.s0 = c->s0;
    x->fixed.A = k->alone.A;
    x->fixed.dof = w->contacts.table.row[k->at].dof;
    x->fixed.ht = c->ht;
    x->fixed.mu = c->mu;
    x->fixed.normal = c->normal;
    x->fixed.relation = k->relation == REL_GAP ? 0 : k->relation == REL_BILATERAL ? 1 : 2;
    x->fixed.tresca = c->fam->f->friction == FRICTION_TRESCA;
}

/* Seconds that the compiler may take: if the user did not request it, a tenth of the remaining time, so that
   waiting for it costs little. */
static double patience(const sweep *w, const struct budget *b)
{
    if (w->quick.policy == NATIVE_ALWAYS || !b)
        return INFINITY;
    return 0.1 * (b->time - (clock_seconds() - b->begin));
}

void sweep_native_new(sweep *w, const run_clock *c)
{
    bool wanted = w->quick.policy == NATIVE_ALWAYS ||
                  (w->quick.policy == NATIVE_AUTO && run_steps(w) >= LOOK);
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
        if (!found && (w->quick.policy == NATIVE_ALWAYS || run_steps(w) >= MAKE)) {
            sweep_emit_rest(&t);
            found = compiled_make(name, t.at, t.n, NATIVE_ENTRY, b, patience(w, b), &handle);
        }
    }
    arena_release(w->scratch, mark);
    if (!found)
        return;
    *made = (struct native){ .go = as_steps(found), .handle = handle };
    view_new(w, &made->x);
    w->quick.native = made;
    w->r->count.native = cached ? "cache" : "compiled";
}

void sweep_native_close(sweep *w)
{
    if (w->quick.native)
        compiled_close(w->quick.native->handle);
    w->quick.native = NULL;
}

/* ---- copying the state to the code and back ---- */
static bool lone_known(const sweep *w, const contact_state *k)
{
    return k->alone.cone_step == w->h && k->alone.cone.d == k->c->d && k->stamp == w->matrix.stamp &&
           k->alone.stamp_a == w->matrix.stamp;
}

static void view_columns(const sweep *w, native_view *x, const run_clock *c)
{
    results *r = w->r;
    const contact_result *out = w->contacts.nstate ? w->contacts.state[0]->out : NULL;
    x->kept.last = c->last;
    x->kept.apart = c->apart;
    x->kept.at = r->samples;
    x->kept.room = r->disk.later ? r->cap : 0;
    x->kept.t = r->t;
    x->kept.q = r->q;
    x->kept.v = r->v;
    x->kept.f = r->disk.absent & PART_ACC ? NULL : r->acc;
    x->kept.work = r->work;
    x->kept.dissipated = r->dissipated;
    if (!out)
        return;
    x->kept.gap = out->gap;
    x->kept.rn = out->rn;
    x->kept.rt = out->rt;
    x->kept.status = out->status;
}

static void view_enter(sweep *w, native_view *x, const run_clock *c)
{
    const contact_table *t = &w->contacts.table;
    contact_state *k = w->contacts.nstate ? w->contacts.state[0] : NULL;
    x->now.q = w->q;
    x->now.v = w->v;
    x->now.f = w->f;
    x->now.driving = w->account.driving;
    x->now.power = w->account.power;
    x->now.driving_known = w->account.driving_known;
    x->now.t = w->t;
    x->now.step = c->step;
    x->now.step_from = w->account.step_from;
    x->now.work = w->account.books->work;
    x->now.dissipated = w->account.books->dissipated;
    x->now.deepest = w->r->max_penetration;
    view_columns(w, x, c);
    if (!k)
        return;
    x->fixed.G = k->G.a;
    x->fixed.A_known = lone_known(w, k);
    x->now.r = k->r;
    x->now.P = k->P;
    x->now.closed = closed(w, k);
    x->now.gap = *k->c->gap;
    x->now.tol_gap = t->tol_gap[k->at];
    x->now.tol_u = t->tol_u[k->at];
    x->now.tol_slip = k->tol_slip;
    x->now.length = *k->length;
}

static void view_leave(sweep *w, const native_view *x, run_clock *c)
{
    contact_table *t = &w->contacts.table;
    contact_state *k = w->contacts.nstate ? w->contacts.state[0] : NULL;
    w->account.power = x->now.power;
    w->account.driving_known = x->now.driving_known;
    w->account.step_from = x->now.step_from;
    w->account.books->work = x->now.work;
    w->account.books->dissipated = x->now.dissipated;
    w->r->max_penetration = x->now.deepest;
    w->r->samples = x->kept.at;
    c->t = w->t = x->now.t;
    c->step = x->now.step;
    c->last = x->kept.last;
    w->fresh = false;
    if (!k)
        return;
    *k->c->gap = x->now.gap;
    t->tol_gap[k->at] = x->now.tol_gap;
    t->tol_u[k->at] = x->now.tol_u;
    k->tol_slip = x->now.tol_slip;
    w->size.lengths[k->c->fam - w->s->family] = x->now.length;
}

void sweep_native_steps(sweep *w, run_clock *c, int64_t count)
{
    native_view *x = &w->quick.native->x;
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
