/* sweep_advance: one step of the run: smooth steps, cut where a gap closes or an event happens; where too
 * many impacts crowd, the rest of the step at once. */
#include <math.h>
#include <string.h>
#include "sweep.h"

/* ---- where a gap closes within the step ---- */
/* first estimate of a crossing by Newton from here, over the contacts in question */
static double first_crossing(sweep *w, double h, const bool *who)
{
    double best = INFINITY;
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        contact_state *k = w->contacts.state[i];
        if (!who[i])
            continue;
        if (!k->offset_fixed)
            contact_rows(w->s, k->c, w->s->mass_constant ? w->M : w->M1, false);
        double un = gap_rate(k, w->v1), at = h - w->contacts.table.gap[i] / un;
        if (un < 0 && at < best)
            best = at;
    }
    return best;
}

/* touching: at its tolerance, and coming */
static bool touches(sweep *w, const bool *who)
{
    for (size_t i = 0; i < w->contacts.nstate; i++)
        if (who[i] && w->contacts.table.gap[i] <= w->contacts.table.tol_gap[i] &&
            gap_rate(w->contacts.state[i], w->v1) <= w->contacts.state[i]->tol_u)
            return true;
    return false;
}

/* The step is cut down to the first crossing: on return the trial step has that size, no gap is below its
 * tolerance and one is at it. */
static bool locate(sweep *w, double *h)
{
    double lo = 0, hi = *h, x = hi;
    bool *who = w->hand.who;
    memcpy(who, w->contacts.table.met, w->contacts.nstate * sizeof *who);
    for (int it = 0; it < 120; it++) {
        double next = first_crossing(w, x, who);
        if (!(next > lo && next < hi))
            next = 0.5 * (lo + hi);
        if (it > 20 && it % 2)
            next = 0.5 * (lo + hi);
        /* no time left between: it closes here */
        if (hi - lo <= 4e-16 * (fabs(w->t) + hi))
            next = lo > 0 ? lo : hi;
        x = *h = next;
        if (!sweep_smooth(w, x))
            return false;
        if (sweep_look(w)) {
            if (x == hi)
                return true;
            hi = x;
            memcpy(who, w->contacts.table.met, w->contacts.nstate * sizeof *who);
        } else {
            if (touches(w, who) || x == lo)
                return true;
            lo = x;
        }
    }
    return true;
}

/* ---- where a slip turns round within the step ---- */
/* slip at the end of the trial step along that at the start; not finite where there is none at either end */
static double slip_along(const sweep *w, const contact_state *k)
{
    const contact *c = k->c;
    double along = 0, before = 0, after = 0, rest = larger(k->tol_slip, w->hand.blur[false]);
    for (int j = 0; j < c->d; j++) {
        double a = contact_rate(c, (k->rows_fixed ? c->S : k->S0) + (size_t)j * c->n, w->v) + k->s0m[j];
        before += a * a;
    }
    if (!contact_slips(sqrt(before), rest, k->now.held))
        return NAN;
    for (int j = 0; j < c->d; j++) {
        const double *S = c->S + (size_t)j * c->n, *S0 = k->rows_fixed ? S : k->S0 + (size_t)j * c->n;
        double a = contact_rate(c, S0, w->v) + k->s0m[j], b = contact_rate(c, S, w->v1) + c->s0[j];
        if (!k->rows_fixed && !(vec_dot(S0, S, c->n) > 0))
            return NAN; /* the directions were chosen anew */
        along += a * b;
        after += b * b;
    }
    return after > rest * rest ? along / sqrt(before) : 0;
}

bool sweep_turns(const sweep *w)
{
    for (int i = 0; i < w->hand.nact; i++)
        if (w->hand.act[i]->c->d && slip_along(w, w->hand.act[i]) <= 0)
            return true;
    return false;
}

static void swap_ends(sweep *w)
{
    double t = w->t;
    w->t = w->t1;
    w->t1 = t;
    SWAP(w->q, w->q1);
    SWAP(w->v, w->v1);
    SWAP(w->f, w->f1);
    if (!w->s->mass_constant)
        SWAP(w->M, w->M1);
}

/* accelerations at the end of the trial step, into acc */
static bool gauss_ahead(sweep *w)
{
    double residual = w->r->residual;
    swap_ends(w);
    bool ok = sweep_gauss(w);
    swap_ends(w);
    w->fresh = false;
    if (!ok)
        sweep_forget(w, residual);
    return ok;
}

/* Do the accelerations at the end of the trial step set the slip of k going again?  What stays below the
 * tolerance of the slip for a whole step is rounding. */
static bool goes_on(sweep *w, contact_state *k)
{
    const contact *c = k->c;
    double free = 0, left = 0, *bias = w->room.x2;
    solve_with(&w->s->minv, w->f1, w->room.x1);
    system_at(w->s, w->t1, w->q1, w->v1);
    contact_slip_bias(w->s, k->c, bias);
    for (int j = 0; j < c->d; j++) {
        const double *S = c->S + (size_t)j * c->n;
        free += fabs(contact_rate(c, S, w->room.x1));
        left += fabs(contact_rate(c, S, w->acc) + bias[j]);
    }
    return left > 1e-9 * free + larger(k->tol_slip / w->h, w->hand.blur[true]);
}

/* The contact whose slip turns round in the trial step, or comes to a rest that friction cannot hold; NULL:
 * none.  The trial step is as it was. */
static contact_state *turning(sweep *w, double h, bool *ok)
{
    if (!sweep_turns(w))
        return NULL;
    for (int i = 0; i < w->hand.nact; i++)
        if (w->hand.act[i]->c->d && slip_along(w, w->hand.act[i]) < 0)
            return w->hand.act[i];
    contact_state *found = NULL;
    bool known = gauss_ahead(w);
    for (int i = 0; known && !found && i < w->hand.nact; i++)
        if (w->hand.act[i]->c->d && slip_along(w, w->hand.act[i]) == 0 && goes_on(w, w->hand.act[i]))
            found = w->hand.act[i];
    *ok = sweep_smooth(w, h);
    return found;
}

/* The step is cut down to where the slip of k comes to rest, from the side that slides on: its speed is aimed
 * at half of what counts as 0. */
static bool locate_turn(sweep *w, const contact_state *k, double *h)
{
    double lo = 0, hi = *h, last = 0, speed = 0, x, s;
    for (int j = 0; j < k->c->d; j++) {
        const double *S = (k->rows_fixed ? k->c->S : k->S0) + (size_t)j * k->c->n;
        double a = contact_rate(k->c, S, w->v) + k->s0m[j];
        speed += a * a;
    }
    speed = sqrt(speed);
    for (int it = 0; it < 80 && hi - lo > 4e-16 * (fabs(w->t) + hi); it++) {
        /* the last two points that slid on, drawn out; at first and in between, the middle */
        x = last < 0 ? lo - (speed - 0.5 * k->tol_slip) / last : 0;
        if (!(x > lo && x < hi) || it % 8 == 7)
            x = 0.5 * (lo + hi);
        if (!sweep_smooth(w, *h = x))
            return false;
        s = slip_along(w, k);
        if (s > 0) {
            last = (s - speed) / (x - lo);
            lo = x;
            speed = s;
        } else
            hi = x;
        if (s > 0 && s <= 2 * k->tol_slip)
            break;
        if (lo == 0 && hi <= 1e-9 * w->h)
            break; /* it turns here and now */
    }
    if (*h != lo && lo > 0 && !sweep_smooth(w, *h = lo))
        return false;
    sweep_look(w);
    return true;
}

/* ---- one step of the run ---- */
/* closed contacts that positions could not be put back onto: too many hold each other */
static bool still_deep(const sweep *w)
{
    const double DEEP = 1e-9;
    for (int i = 0; i < w->hand.nact; i++)
        if (w->hand.act[i]->normal && *w->hand.act[i]->c->gap < -DEEP * *w->hand.act[i]->length)
            return true;
    return false;
}

/* Up to the next impact or event, or to the end.  False: the trial step could not be solved; what failed is
 * forgotten. */
static bool follow(sweep *w, double *h, bool *rise)
{
    results *r = w->r;
    double residual = r->residual;
    sweep_gather(w);
    w->policy.trial = true;
    bool ok = (w->fresh || w->linear || sweep_gauss(w)) && sweep_smooth(w, *h) &&
              (!sweep_look(w) || locate(w, h));
    const contact_state *turns = ok ? turning(w, *h, &ok) : NULL;
    ok = ok && (!turns || locate_turn(w, turns, h));
    *rise = ok && w->p->nevent && sweep_rise(w, false);
    ok = ok && (!*rise || sweep_locate_event(w, h)) && !still_deep(w);
    w->policy.trial = false;
    if (!ok)
        sweep_forget(w, residual);
    return ok;
}

/* Impacts that are followed in a step, all contacts taken together: each costs about as much as a step. */
static int cuts_most(const sweep *w)
{
    enum { ALWAYS = 10000, MOST = 64, LARGE = 1000 };
    if (w->policy.cut == CUT_ALWAYS)
        return ALWAYS;
    return MOST * LARGE / (LARGE + w->n + (int)w->contacts.nstate) + 1;
}

/* Piles that come to rest have crowds of impacts at every step: the next step gives up sooner, and where many
 * contacts take part, some steps are not followed at all. */
static void patience_after(sweep *w, bool crowd)
{
    enum { FEW = 32, LONGEST = 256 };
    if (!crowd) {
        w->policy.wait_next = 4;
        if (w->policy.patience < MAX_AGAIN)
            w->policy.patience++;
        return;
    }
    w->policy.patience = w->policy.patience / 4 > 1 ? w->policy.patience / 4 : 1;
    if (w->hand.nact <= FEW)
        return;
    w->policy.wait = w->policy.wait_next;
    w->policy.wait_next = w->policy.wait_next < LONGEST ? 2 * w->policy.wait_next : LONGEST;
}

/* Closed contacts that turn as they move: a step that follows them solves its problem several times over. */
static bool pile_at_hand(const sweep *w)
{
    enum { MANY = 100 };
    int n = 0;
    for (size_t i = 0; i < w->contacts.nstate && n <= MANY; i++)
        n += w->contacts.table.closed[i] && !w->contacts.state[i]->rows_fixed &&
             w->contacts.state[i]->relation == REL_GAP;
    return n > MANY;
}

static bool crowded(const sweep *w, int sub, int most, bool waits)
{
    if (w->policy.cut == CUT_NEVER || waits)
        return true;
    if (w->policy.cut == CUT_ALWAYS)
        return sub > most;
    if (w->contacts.near.nof && pile_at_hand(w))
        return true;
    return w->policy.again > w->policy.patience || sub > most ||
           (sub > w->policy.patience && w->policy.patience < MAX_AGAIN);
}

static bool near_step(sweep *w, double h)
{
    if (!w->contacts.near.nof)
        return true;
    solve_with(&w->s->minv, w->f, w->room.x1);
    for (int i = 0; i < w->n; i++)
        w->room.x1[i] = w->v[i] + h * w->room.x1[i];
    return sweep_near(w, h, w->room.x1);
}

/* A step problem that is not solved is another one over half the time: wedges that stall the solvers are
 * rare, and not at every instant. */
static bool whole_or_halves(sweep *w, double *h)
{
    enum { HALVES = 5 };
    for (int half = 0;; half++, *h /= 2) {
        double residual = w->r->residual;
        w->policy.may_halve = w->policy.trial = half < HALVES && w->hand.nact > 2;
        w->hand.unsolved = false;
        bool ok = sweep_whole(w, *h), again = w->policy.may_halve && w->hand.unsolved;
        w->policy.may_halve = w->policy.trial = false;
        if (ok || !again)
            return ok;
        sweep_forget(w, residual);
        sweep_whole_end(w);
    }
}

/* A step at once leaves rates that fit the rows of its start.  Before impacts are followed again, contacts
 * that turned meanwhile are met anew. */
static void meet_anew(sweep *w)
{
    system_at(w->s, w->t, w->q, w->v);
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        contact_state *k = w->contacts.state[i];
        if (!w->contacts.table.closed[i] || k->relation != REL_GAP || k->rows_fixed)
            continue;
        contact_rows(w->s, k->c, w->M, false);
        w->contacts.table.closed[i] = fabs(gap_rate(k, w->v)) <= k->tol_u;
    }
}

/* a step has no impacts and impulses yet */
static void counts_clear(sweep *w)
{
    for (size_t i = 0; i < w->contacts.nbusy; i++) {
        contact_state *k = w->contacts.busy[i];
        k->busy = false;
        k->hits = 0;
        for (int j = 0; j < rows_of(k); j++)
            k->P[j] = 0;
    }
    w->contacts.nbusy = 0;
}

bool sweep_advance(sweep *w, double end)
{
    if (!near_step(w, end - w->t))
        return false;
    counts_clear(w);
    bool was = false, waits = w->policy.wait > 0;
    int most = cuts_most(w);
    if (waits)
        w->policy.wait--;
    else if (w->policy.was_at_once && w->policy.cut != CUT_NEVER)
        meet_anew(w);
    w->policy.again = 0;
    for (int sub = 0;; sub++) {
        if (!sweep_meet(w))
            return false;
        double h = end - w->t;
        if (h <= 4e-16 * fabs(end))
            break;
        /* whole steps have the same size to the last bit, so that what belongs to it is kept */
        if (fabs(h - w->h) <= 1e-9 * w->h)
            h = w->h;
        bool rise = false, crowd = crowded(w, sub, most, waits);
        w->policy.tried = !crowd;
        crowd = crowd || !follow(w, &h, &rise);
        if (crowd) {
            h = end - w->t;
            if (fabs(h - w->h) <= 1e-9 * w->h)
                h = w->h;
            if (!whole_or_halves(w, &h))
                return false;
            rise = w->p->nevent && sweep_rise(w, false);
        }
        if (w->p->nevent)
            sweep_rise(w, true);
        sweep_accept(w, h);
        if (crowd)
            sweep_whole_end(w);
        was |= crowd;
        if (rise && !sweep_fire(w))
            return false;
        if (w->watch.stopped || w->t >= end)
            break;
    }
    w->r->count.at_once += was;
    w->policy.was_at_once = was;
    if (!waits)
        patience_after(w, was);
    return true;
}
