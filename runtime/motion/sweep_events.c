/* sweep_events: `when` and `stop when`: conditions that become true within a step, at which time, and their
   resets. */
#include <math.h>
#include <string.h>
#include "sweep.h"
#include "base/taylor.h"
#include "base/tolerances.h"

void sweep_events(sweep *w)
{
    size_t total = 0;
    w->watch.pieces = arena_array(w->a, bool, w->p->ncontact + 1);
    for (size_t i = 0; i < w->p->ncontact; i++)
        w->watch.pieces[i] = kernel_has_pieces(&w->p->contact[i].gap);
    w->watch.events = arena_array(w->a, event_terms, w->p->nevent);
    for (size_t i = 0; i < w->p->nevent; i++) {
        w->watch.events[i].when = term_new(w->a, &w->p->event[i].when);
        w->watch.events[i].reset = term_new(w->a, &w->p->event[i].reset);
        total += (size_t)index_members(&w->p->event[i].over);
    }
    w->watch.nfired = total;
    w->watch.fired = arena_array(w->a, bool, total + 1);
    w->watch.rising = arena_array(w->a, bool, total + 1);
}

/* ---- events of the model ---- */
static bool event_true(sweep *w, size_t i, const int32_t *index)
{
    const kernel *k = w->watch.events[i].when.k;
    kernel_run(k, &w->s->in, index, w->watch.events[i].when.reg);
    return w->watch.events[i].when.reg[k->tape.out[0]] != 0;
}

/* Does a condition hold at the end of the trial step that did not hold before? */
bool sweep_rise(sweep *w, bool mark)
{
    bool any = false;
    size_t at = 0;
    system_at(w->s, w->t1, w->q1, w->v1);
    w->s->in.from[IN_PRE] = w->v1;
    for (size_t i = 0; i < w->p->nevent; i++) {
        const index_set *over = &w->p->event[i].over;
        int32_t index[MAX_INDEX] = { 0 };
        for (bool more = index_first(over, index); more; more = index_next(over, index), at++) {
            bool now = event_true(w, i, index);
            if (now && !w->watch.fired[at])
                any = true;
            if (mark) {
                w->watch.rising[at] = now && !w->watch.fired[at];
                w->watch.fired[at] = now;
            }
        }
    }
    return any;
}

bool sweep_locate_event(sweep *w, double *h)
{
    double lo = 0, hi = *h;
    for (int it = 0; it < 60 && hi - lo > ROUND_1 * (fabs(w->t) + hi); it++) {
        double mid = 0.5 * (lo + hi);
        if (!sweep_smooth(w, mid))
            return false;
        if (sweep_rise(w, false))
            hi = mid;
        else
            lo = mid;
    }
    *h = hi;
    if (!sweep_smooth(w, hi))
        return false;
    sweep_look(w);
    return true;
}

/* After a reset that makes a condition false, the condition may become true again. */
static void arm_again(sweep *w)
{
    size_t at = 0;
    system_at(w->s, w->t, w->q, w->v);
    for (size_t i = 0; i < w->p->nevent; i++) {
        const index_set *over = &w->p->event[i].over;
        int32_t index[MAX_INDEX] = { 0 };
        for (bool more = index_first(over, index); more; more = index_next(over, index), at++)
            w->watch.fired[at] = w->watch.fired[at] && event_true(w, i, index);
    }
}

/* Resets of all events whose condition became true, computed from the values before. */
bool sweep_fire(sweep *w)
{
    size_t at = 0;
    bool reset = false;
    memcpy(w->q1, w->q, (size_t)w->n * sizeof *w->q);
    memcpy(w->v1, w->v, (size_t)w->n * sizeof *w->v);
    system_at(w->s, w->t, w->q, w->v);
    for (size_t i = 0; i < w->p->nevent; i++) {
        const event_rule *e = &w->p->event[i];
        const term *t = &w->watch.events[i].reset;
        int32_t index[MAX_INDEX] = { 0 };
        for (bool more = index_first(&e->over, index); more; more = index_next(&e->over, index), at++) {
            if (!w->watch.rising[at])
                continue;
            if (e->stop)
                w->watch.stopped = true;
            if (!t->k)
                continue;
            kernel_run(t->k, &w->s->in, index, t->reg);
            for (uint32_t j = 0; j < t->k->tape.nout; j++)
                (e->reset_rate[j]
                     ? w->v1
                     : w->q1)[slot_at(&t->k->row[j], index, t->k->over.n)] = t->reg[t->k->tape.out[j]];
            reset = true;
        }
    }
    if (!reset)
        return true;
    *vec_push(w->r->a, &w->r->count.resets) = w->t;
    double shown, before = sweep_kinetic(w, &shown) + sweep_potential(w);
    SWAP(w->q, w->q1);
    SWAP(w->v, w->v1);
    if (w->s->past)
        samples_add(w->s->past, w->t, w->q, w->v, w->s->base);
    if (!sweep_survey(w) || !sweep_rates(w))
        return false;
    arm_again(w);
    /* the energy of a reset counts as work */
    w->account.books->work += sweep_kinetic(w, &shown) + sweep_potential(w) - before;
    return true;
}
