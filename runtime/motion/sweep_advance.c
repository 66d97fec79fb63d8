/* sweep_advance: one step of the run.  It consists of smooth steps that are cut where a gap closes or an
 * event happens; if there are too many impacts, the rest of the step is a whole step. */
#include <math.h>
#include <string.h>
#include "sweep.h"
#include "base/tolerances.h"

/* ---- where a gap closes within the step ---- */
/* estimate of the first crossing among the contacts `who`, by a Newton step from the end of the trial step */
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

/* is a gap of `who` within its tolerance, and not opening? */
static bool touches(sweep *w, const bool *who)
{
    for (size_t i = 0; i < w->contacts.nstate; i++)
        if (who[i] && w->contacts.table.gap[i] <= w->contacts.table.tol_gap[i] &&
            gap_rate(w->contacts.state[i], w->v1) <= w->contacts.table.tol_u[i])
            return true;
    return false;
}

/* Shortens the step to the first crossing. On return, the trial step has this length; no gap is below its
   tolerance, and one is at it. */
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
        /* no time in between: it closes here */
        if (hi - lo <= ROUND_2 * (fabs(w->t) + hi))
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

/* ---- where a slip reverses within the step ---- */
/* The search for a reversal ends where the slip is at most so many times its tolerance. */
enum { TURN_FOUND = 2 };

/* slips up to this count as 0 in the trial step */
static double slip_rests(const sweep *w, const contact_state *k)
{
    double tol = k == &w->hand.brake.turn ? sweep_brake_rest(w) : k->tol_slip;
    return larger(tol, w->hand.blur[false]);
}

/* slip at the end of the trial step, in the direction of the slip at its start; NAN if there was none at the
 * start */
static double slip_along(const sweep *w, const contact_state *k)
{
    double along = 0, before = 0, after = 0, rest = slip_rests(w, k);
    if (k == &w->hand.brake.turn)
        return sweep_brake_along(w, k == w->policy.turned ? larger(rest, w->policy.turned_slip) : rest);
    const contact *c = k->c;
    for (int j = 0; j < c->d; j++) {
        double a = contact_rate(c, (k->rows_fixed ? c->S : k->S0) + (size_t)j * c->n, w->v) + k->s0m[j];
        before += a * a;
    }
    double left = k == w->policy.turned ? w->policy.turned_slip : 0;
    if (before == 0 || !contact_slips(sqrt(before), larger(rest, left), k->now.held))
        return NAN;
    for (int j = 0; j < c->d; j++) {
        const double *S = c->S + (size_t)j * c->n, *S0 = k->rows_fixed ? S : k->S0 + (size_t)j * c->n;
        double a = contact_rate(c, S0, w->v) + k->s0m[j], b = contact_rate(c, S, w->v1) + c->s0[j];
        if (!k->rows_fixed && !(contact_common(w->s, c, w->M, S0, S) > 0))
            return NAN; /* the directions were chosen anew */
        along += a * b;
        after += b * b;
    }
    return after > rest * rest ? along / sqrt(before) : 0;
}

/* Slips of exactly 0 cannot reverse, and most contacts that stick have one. */
static inline bool at_rest(const sweep *w, int i)
{
    slip_row s = w->contacts.table.slip[w->hand.place[i]];
    if (!s.fixed)
        s.S = w->hand.act[i]->S0;
    for (int j = 0; j < w->hand.cone[i].d; j++)
        if (slip_rate(&s, j, w->v) + s.s0m[j] != 0)
            return false;
    return true;
}

bool sweep_turns(const sweep *w)
{
    for (int i = 0; i < w->hand.nact; i++)
        if (w->hand.cone[i].d && !at_rest(w, i) && slip_along(w, w->hand.act[i]) <= 0)
            return true;
    return w->hand.brake.on && slip_along(w, &w->hand.brake.turn) <= 0;
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

/* Accelerations at the end of the trial step, into acc. */
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

/* Do the accelerations at the end of the trial step start the slip of k again?  A slip that would stay below
 * its tolerance for a whole step is rounding. */
static bool goes_on(sweep *w, contact_state *k)
{
    if (k == &w->hand.brake.turn) {
        solve_with(&w->s->minv, w->f1, w->room.x1);
        return sweep_brake_speed(w, w->acc) > HELD_BACK * sweep_brake_speed(w, w->room.x1) +
                                                  larger(sweep_brake_rest(w) / w->h, w->hand.blur[true]);
    }
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
    return left > HELD_BACK * free + larger(k->tol_slip / w->h, w->hand.blur[true]);
}

/* The part of a trial step that the problem of an instant overwrites, if nothing else of it changes: rows,
   offsets and laws are constant, and no contact feeds or bounds another.  Small problems are solved again
   instead, as emitted C does. */
typedef struct kept_step {
    cone *cone;
    double *impulse;
} kept_step;

static kept_step step_keep(const sweep *w)
{
    const act_known *known = &w->hand.known;
    const problem_at_hand *o = &w->hand;
    if (!known->fixed || !known->still || known->gives || w->contacts.bounds || w->contacts.feeds ||
        o->pr.m <= FEW_ROWS)
        return (kept_step){ 0 };
    kept_step x = { arena_alloc(w->scratch, (size_t)o->nact * sizeof *x.cone),
                    arena_alloc(w->scratch, (size_t)o->pr.m * sizeof *x.impulse) };
    memcpy(x.cone, o->cone, (size_t)o->nact * sizeof *x.cone);
    memcpy(x.impulse, o->rr, (size_t)o->pr.m * sizeof *x.impulse);
    return x;
}

/* Restores the trial step. */
static bool step_again(sweep *w, const kept_step *x, double h)
{
    if (!x->cone)
        return sweep_smooth(w, h);
    memcpy(w->hand.cone, x->cone, (size_t)w->hand.nact * sizeof *x->cone);
    memcpy(w->hand.rr, x->impulse, (size_t)w->hand.pr.m * sizeof *x->impulse);
    return true;
}

/* The contact whose slip reverses in the trial step, or comes to a rest that friction cannot hold; NULL:
 * there is none.  The trial step is unchanged on return. */
static contact_state *turning(sweep *w, double h, bool *ok)
{
    if (!sweep_turns(w))
        return NULL;
    for (int i = 0; i < w->hand.nact; i++)
        if (w->hand.act[i]->c->d && slip_along(w, w->hand.act[i]) < 0)
            return w->hand.act[i];
    if (w->hand.brake.on && slip_along(w, &w->hand.brake.turn) < 0)
        return &w->hand.brake.turn;
    contact_state *found = NULL;
    arena_pos mark = arena_mark(w->scratch);
    kept_step step = step_keep(w);
    bool known = gauss_ahead(w);
    for (int i = 0; known && !found && i < w->hand.nact; i++)
        if (w->hand.act[i]->c->d && slip_along(w, w->hand.act[i]) == 0 && goes_on(w, w->hand.act[i]))
            found = w->hand.act[i];
    if (known && !found && w->hand.brake.on && slip_along(w, &w->hand.brake.turn) == 0 &&
        goes_on(w, &w->hand.brake.turn))
        found = &w->hand.brake.turn;
    *ok = step_again(w, &step, h);
    arena_release(w->scratch, mark);
    return found;
}

/* The step is cut where the slip of k comes to rest, just before it does: the search aims at half of the
 * tolerance of the slip. */
static bool locate_turn(sweep *w, const contact_state *k, double *h)
{
    double lo = 0, hi = *h, last = 0, speed = 0, x, s;
    for (int j = 0; k != &w->hand.brake.turn && j < k->c->d; j++) {
        const double *S = (k->rows_fixed ? k->c->S : k->S0) + (size_t)j * k->c->n;
        double a = contact_rate(k->c, S, w->v) + k->s0m[j];
        speed += a * a;
    }
    speed = k == &w->hand.brake.turn ? sweep_brake_speed(w, w->v) : sqrt(speed);
    for (int it = 0; it < 80 && hi - lo > ROUND_2 * (fabs(w->t) + hi); it++) {
        /* extrapolates from the last two points with slip in the same direction; at first, and from time to
           time, bisects */
        x = last < 0 ? lo - (speed - 0.5 * slip_rests(w, k)) / last : 0;
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
        if (s > 0 && s <= TURN_FOUND * slip_rests(w, k))
            break;
        if (lo == 0 && hi <= STEP_SAME * w->h)
            break; /* it reverses immediately */
    }
    if (*h != lo && lo > 0 && !sweep_smooth(w, *h = lo))
        return false;
    /* the slip that the solver left counts as 0 for the rest of the step, however short it is */
    w->policy.turned = k;
    w->policy.turn_cut = true;
    w->policy.turned_slip = TURN_FOUND * w->hand.blur[false];
    sweep_look(w);
    return true;
}

/* Cuts the step at the first reversal of a slip: before the one that is found, another may have reversed. */
static bool first_turn(sweep *w, double *h)
{
    bool ok = true;
    const contact_state *k = turning(w, *h, &ok), *last = NULL;
    for (int i = 0; ok && k && k != last && i < w->hand.nact; i++) {
        last = k;
        ok = locate_turn(w, k, h);
        k = ok ? turning(w, *h, &ok) : NULL;
    }
    return ok;
}

/* ---- where the gap of a closed contact has a corner ---- */
/* relative change of a row, in the kinetic metric, because dofs may have different units */
static double row_change(const sweep *w, const contact *c, const double *a, const double *b)
{
    double change = 0, size = 0;
    for (int i = 0; i < c->n; i++) {
        double light = w->size.light[c->dof ? c->dof[i] : i];
        change += light * (a[i] - b[i]) * (a[i] - b[i]);
        size += light * a[i] * a[i];
    }
    return sqrt(change / size);
}

/* The row of k at the end of the trial step. */
static const double *row_at_end(sweep *w, const contact_state *k)
{
    system_at(w->s, w->t1, w->q1, w->v1);
    contact_rows(w->s, k->c, w->s->mass_constant ? w->M : w->M1, false);
    return k->c->H;
}

/* A step over a corner may have no solution, because the row at its end depends on where it ends.  Then the
   row is evaluated where the body would be without contact. */
static bool try_step(sweep *w, double h, const contact_state *k, double *row)
{
    double residual = w->r->residual;
    bool ok = sweep_smooth(w, h);
    if (!ok) {
        sweep_forget(w, residual);
        vec_copy(w->q1, w->q, w->n);
        vec_axpy(w->q1, h, w->v, w->n);
        vec_copy(w->v1, w->v, w->n);
    }
    memcpy(row, row_at_end(w, k), (size_t)k->c->n * sizeof *row);
    return ok;
}

/* Does the row of k jump within a trial step of size *h?  A row that turns changes by about one half in each
   half of the step, a row that jumps changes in one of them only.  If it jumps, the step is cut just before
   the jump. */
static bool at_corner(sweep *w, contact_state *k, double *h)
{
    const double TURNS = 0.02, JUMPS = 0.75;
    int n = k->c->n;
    double lo = 0, hi = *h, left[n + 1], right[n + 1], row[n + 1];
    memcpy(left, k->H0, (size_t)n * sizeof *left);
    try_step(w, hi, k, right);
    double change = row_change(w, k->c, left, right);
    while (change > TURNS && hi - lo > ROUND_2 * (fabs(w->t) + hi)) {
        double mid = 0.5 * (lo + hi);
        bool solved = try_step(w, mid, k, row);
        double before = row_change(w, k->c, left, row), after = row_change(w, k->c, row, right),
               most = larger(before, after);
        bool behind = !solved || before > after;
        change = !solved || most > JUMPS * change ? larger(most, solved ? 0 : change) : 0;
        if (behind)
            hi = mid;
        else
            lo = mid;
        if (solved)
            memcpy(behind ? right : left, row, (size_t)n * sizeof *row);
    }
    if (!(change > TURNS))
        return false;
    w->watch.corner_ahead = hi - lo;
    *h = lo > 0 ? lo : hi;
    return true;
}

/* Looks for a contact whose row jumps, whether the trial step was solved or not, and solves the cut step. */
static bool find_corner(sweep *w, double *h, bool solved)
{
    w->watch.corner = NULL;
    bool tried = false;
    sweep_lightness(w);
    for (int i = 0; i < w->hand.nact; i++) {
        contact_state *k = w->hand.act[i];
        if (k->relation == REL_CLOSED || k->c->fam->f->of_rates || k->rows_fixed ||
            !w->watch.pieces[k->c->fam - w->s->family])
            continue;
        if (solved && !(row_change(w, k->c, k->H0, row_at_end(w, k)) > 0.02))
            continue;
        tried = true;
        if (at_corner(w, k, h))
            w->watch.corner = k;
    }
    if (!tried)
        return solved;
    solved = sweep_smooth(w, *h);
    if (solved)
        sweep_look(w);
    return solved;
}

/* The motion continues on the next piece, behind the corner; with an impact if it moves towards that piece.
 */
static bool turn_corner(sweep *w)
{
    contact_state *k = w->watch.corner;
    vec_axpy(w->q, w->watch.corner_ahead, w->v, w->n);
    w->t += w->watch.corner_ahead;
    w->watch.corner = NULL;
    w->fresh = false;
    w->hand.known.rows = -1;
    system_at(w->s, w->t, w->q, w->v);
    contact_gap(w->s, k->c);
    if (k->relation == REL_GAP) {
        w->contacts.table.closed[k->at] = false;
        return true;
    }
    return sweep_shock(w);
}

/* ---- one step of the run ---- */
/* Do closed contacts still overlap after positions were corrected?  Too many then obstruct each other. */
static bool still_deep(sweep *w)
{
    for (int i = 0; i < w->hand.nact; i++) {
        double gap = w->contacts.table.gap[w->hand.place[i]];
        const contact_state *k = w->hand.act[i];
        if (!(gap < 0 && k->normal && gap < -GAP_DEEP * *k->length))
            continue;
        /* for a start at the origin, the motion of this step is the only size */
        if (gap < -GAP_DEEP * contact_terms(k->c, k->c->H, w->q1)) {
            w->policy.failed = k;
            return true;
        }
    }
    return false;
}

/* A smooth step up to the next impact or event, or to the end.  False: it could not be solved; its error is
 * dropped. */
static bool follow(sweep *w, double *h, bool *rise)
{
    results *r = w->r;
    double residual = r->residual;
    sweep_gather(w);
    w->policy.trial = true;
    w->policy.turn_cut = false;
    w->policy.failed = NULL;
    bool ok = w->fresh || w->linear || sweep_gauss(w);
    ok = ok && find_corner(w, h, sweep_smooth(w, *h) && (!sweep_look(w) || locate(w, h)));
    ok = ok && first_turn(w, h);
    *rise = ok && w->p->nevent && w->policy.islands.stage != STEP_CALM && sweep_rise(w, false);
    ok = ok && (!*rise || sweep_locate_event(w, h)) && !still_deep(w);
    w->policy.trial = false;
    if (!ok)
        sweep_forget(w, residual);
    return ok;
}

/* How many impacts of all contacts together may be followed in a step: each costs about as much as a step. */
static int cuts_most(const sweep *w)
{
    enum { ALWAYS = 10000, MOST = 64, LARGE = 1000 };
    if (w->policy.cut == CUT_ALWAYS)
        return ALWAYS;
    return MOST * LARGE / (LARGE + w->n + (int)w->contacts.nstate) + 1;
}

/* Piles that come to rest have too many impacts in every step.  After such a step the next one gives up
 * sooner; if many contacts took part, the next ones are whole steps without a trial. */
static void patience_after(sweep *w, bool crowd)
{
    enum { LONGEST = 256 };
    if (!crowd) {
        w->policy.wait_next = 4;
        if (w->policy.patience < MAX_AGAIN)
            w->policy.patience++;
        sweep_islands_forget(w);
        return;
    }
    w->policy.patience = w->policy.patience / 4 > 1 ? w->policy.patience / 4 : 1;
    if (w->policy.islands.acted <= FEW_WAIT)
        return;
    w->policy.wait = w->policy.wait_next;
    w->policy.wait_next = w->policy.wait_next < LONGEST ? 2 * w->policy.wait_next : LONGEST;
}

/* Has the model many closed contacts with rows that turn?  A step that follows them solves its problem
 * several times. */
static bool pile_at_hand(const sweep *w)
{
    int n = 0;
    for (size_t i = 0; i < w->contacts.nstate && n <= MANY_TURNING; i++)
        n += w->contacts.table.closed[i] && !w->contacts.state[i]->rows_fixed &&
             w->contacts.state[i]->relation == REL_GAP;
    return n > MANY_TURNING;
}

/* Does the rest of the step become a whole step?  It does if one island has too many impacts by itself, or if
 * all cuts of the model together cost too much. */
static bool crowded(sweep *w, double end, int sub, int most, bool waits)
{
    if (w->policy.cut == CUT_NEVER || waits)
        return true;
    if (w->policy.cut == CUT_ALWAYS || sub > most)
        return sub > most;
    bool many = w->policy.again > w->policy.patience ||
                (sub > w->policy.patience && w->policy.patience < MAX_AGAIN) ||
                (w->contacts.near.nof && pile_at_hand(w));
    return many && sweep_islands_crowded(w, end);
}

/* notes the contact at whose reversal of slip or corner the step was cut */
static void note_end(sweep *w, int next)
{
    w->policy.cuts.piece = next;
    if (w->policy.turn_cut)
        sweep_note_cut(w, w->policy.turned, false);
    if (w->watch.corner)
        sweep_note_cut(w, w->watch.corner, false);
}

static bool near_step(sweep *w, double h)
{
    if (!w->contacts.near.nof)
        return true;
    return sweep_free(w, h, w->room.x1) && sweep_near(w, h, w->room.x1, NEAR_AHEAD);
}

/* A part of the step was solved after `at` halvings, of which `from` were made without a trial.  Parts of
 * that size are then taken for a while before longer ones are tried: the longer, the more often those failed.
 */
static void part_solved(sweep *w, int from, int at)
{
    enum { FIRST = 2, LONGEST = 64 };
    step_policy *p = &w->policy;
    if (at > from) {
        p->halved = at;
        p->part_wait = p->part_next;
        p->part_next = p->part_next < LONGEST ? 2 * p->part_next : LONGEST;
    } else if (at == 0)
        p->part_next = FIRST;
    else if (p->part_wait > 1)
        p->part_wait--;
    else {
        p->part_wait = 0;
        p->halved = at - 1;
    }
}

/* May several contacts act in the step?  The problem at hand is still that of the step before; if near pairs
   have just been listed again, there is none. */
static bool several(const sweep *w)
{
    enum { FEW = 2 };
    return w->hand.nact > FEW || w->contacts.near.nof > 0;
}

/* If a step problem cannot be solved, that of half the time often can: wedges that stall the solvers are
 * rare. *h is the rest of the step, on return the part of it that was taken. */
static bool whole_or_halves(sweep *w, double *h)
{
    int from = w->policy.halved;
    double most = ldexp(w->h, -from);
    if (from && *h > most)
        *h /= ceil(*h / most * (1 - STEP_SAME));
    for (int half = from;; half++, *h /= 2) {
        double residual = w->r->residual;
        w->policy.trial = half < HALVES && several(w);
        w->policy.effort = w->policy.trial ? EFFORT_CUT : EFFORT_ALL;
        w->hand.unsolved = false;
        bool ok = sweep_whole(w, *h), again = w->policy.trial && w->hand.unsolved;
        w->policy.effort = EFFORT_ALL;
        w->policy.trial = false;
        if (ok)
            part_solved(w, from, half);
        if (ok || !again)
            return ok;
        sweep_forget(w, residual);
        sweep_whole_end(w);
    }
}

/* Was one of its bodies part of a whole step last time? */
static bool was_at_once(const sweep *w, const contact *c)
{
    bool all = w->policy.islands.may;
    for (int j = 0; all && j < c->n; j++)
        all = w->policy.islands.followed[c->dof ? c->dof[j] : j];
    return !all;
}

/* The rates after a whole step belong to the rows at its start.  Before impacts are followed again, closed
 * contacts whose gaps have a rate now, because their rows turned, are opened; sweep_meet then closes those
 * that approach with a shock. */
static void meet_anew(sweep *w)
{
    system_at(w->s, w->t, w->q, w->v);
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        contact_state *k = w->contacts.state[i];
        if (!w->contacts.table.closed[i] || always(k) || k->rows_fixed || !was_at_once(w, k->c))
            continue;
        contact_rows(w->s, k->c, w->M, false);
        w->contacts.table.closed[i] = fabs(gap_rate(k, w->v)) <= w->contacts.table.tol_u[i];
    }
}

/* clears the impacts and impulses of the step before */
static void counts_clear(sweep *w)
{
    contact_table *t = &w->contacts.table;
    if ((!t->counted && !w->quick.steps) || !t->rows) /* quick steps store impulses too */
        return;
    memset(t->hits, 0, t->n * sizeof *t->hits);
    memset(t->P, 0, t->rows * sizeof *t->P);
    t->counted = false;
}

/* A step to the end of a full one has exactly the size w->h, so that data computed for this size stay valid.
 */
static double step_to(const sweep *w, double end)
{
    double h = end - w->t;
    return fabs(h - w->h) <= STEP_SAME * w->h ? w->h : h;
}

bool sweep_follow_calm(sweep *w, double end)
{
    double residual = w->r->residual;
    int most = cuts_most(w), again = w->policy.again, from = w->policy.cuts.piece;
    bool ok = true, rise;
    if (w->policy.was_at_once)
        meet_anew(w);
    w->policy.again = 0;
    for (int sub = 0; ok; sub++) {
        w->policy.trial = true;
        w->policy.cuts.piece = from + sub;
        w->policy.failed = NULL;
        ok = sweep_meet(w);
        w->policy.trial = false;
        double h = step_to(w, end);
        if (!ok || h <= ROUND_2 * fabs(end))
            break;
        ok = sub <= most && !(w->policy.again > MAX_AGAIN && sweep_islands_crowded(w, end)) &&
             follow(w, &h, &rise);
        if (!ok)
            break;
        sweep_accept(w, h);
        note_end(w, from + sub + 1);
        if (w->t >= end)
            break;
    }
    if (!ok)
        sweep_forget(w, residual);
    w->policy.again = again;
    return ok;
}

/* Takes the rest of the step as a whole step, or the part of it that can be solved. */
static bool at_once(sweep *w, double end, crowd_reason why, double *h, bool *rise)
{
    sweep_islands_part(w, end, why);
    *h = step_to(w, end);
    if (!whole_or_halves(w, h))
        return false;
    *rise = w->p->nevent && sweep_rise(w, false);
    if (*rise)
        w->policy.islands.stage = STEP_UNDIVIDED;
    return true;
}

static int root_of(int *up, int i)
{
    while (up[i] != i)
        i = up[i] = up[up[i]];
    return i;
}

/* Do three or more of the n touching points `of` belong to shapes that are connected by them? */
static bool many_connect(const sweep *w, contact_state *const *of, int n)
{
    enum { MANY = 3 };
    arena_pos mark = arena_mark(w->scratch);
    int *up = arena_array(w->scratch, int, w->n), *count = arena_array(w->scratch, int, w->n), most = 0;
    for (int i = 0; i < w->n; i++)
        up[i] = i;
    for (int i = 0; i < n; i++)
        for (int j = 1; j < of[i]->c->n; j++) {
            const int *dof = of[i]->c->dof;
            up[root_of(up, dof ? dof[j] : j)] = root_of(up, dof ? dof[0] : 0);
        }
    for (int i = 0; i < n; i++) {
        int own = ++count[root_of(up, of[i]->c->dof ? of[i]->c->dof[0] : 0)];
        most = own > most ? own : most;
    }
    arena_release(w->scratch, mark);
    return most >= MANY;
}

/* Does a shape lie on another or on a half-space with two points or more, or are many that touch connected?
   Which of their points open and close again within a step is decided by rounding, so these are whole steps.
 */
static bool lies_on_shape(const sweep *w)
{
    const contact_table *t = &w->contacts.table;
    const contact_family *of = NULL;
    int64_t pair = -1;
    int touching = 0;
    for (size_t i = 0; w->s->shapes && i < t->n; i++) {
        const contact *c = w->contacts.state[i]->c;
        const contact_family *f = c->fam->f;
        if (!t->closed[i] || !f->slots)
            continue;
        if (f == of && c->member / f->slots == pair)
            return true;
        w->contacts.look[touching++] = w->contacts.state[i];
        of = f;
        pair = c->member / f->slots;
    }
    return touching > 0 && many_connect(w, w->contacts.look, touching);
}

bool sweep_advance(sweep *w, double end)
{
    if (!near_step(w, end - w->t))
        return false;
    sweep_touch(w);
    counts_clear(w);
    if (sweep_lanes(w, end)) {
        w->policy.was_at_once = false;
        patience_after(w, false);
        return true;
    }
    bool was = false, wait = w->policy.wait > 0;
    bool lies = w->policy.lies = w->policy.cut == CUT_AUTO && lies_on_shape(w);
    bool waits = w->policy.waits = lies || wait;
    int most = cuts_most(w);
    if (wait)
        w->policy.wait--;
    else if (!lies && w->policy.was_at_once && w->policy.cut != CUT_NEVER)
        meet_anew(w);
    w->policy.again = w->policy.cuts.n = 0;
    w->policy.islands.found = w->policy.islands.known = false;
    w->policy.turned = NULL;
    for (int sub = 0;; sub++) {
        w->policy.cuts.piece = sub;
        if (!sweep_meet(w))
            return false;
        if (end - w->t <= ROUND_2 * fabs(end))
            break;
        double h = step_to(w, end);
        bool rise = false, crowd = crowded(w, end, sub, most, waits) || w->policy.islands.stage == STEP_CROWD;
        crowd_reason why = wait ? CROWD_WAITS : lies ? CROWD_LIES : crowd ? CROWD_COUNTS : CROWD_UNSOLVED;
        w->policy.tried = !crowd;
        crowd = crowd || !follow(w, &h, &rise);
        if (crowd && !at_once(w, end, why, &h, &rise))
            return false;
        if (w->p->nevent)
            sweep_rise(w, true);
        sweep_accept(w, h);
        w->policy.islands.found = false;
        if (crowd) {
            sweep_islands_met(w);
            sweep_whole_end(w);
        } else
            note_end(w, sub + 1);
        was |= crowd;
        if (!crowd && w->watch.corner && !turn_corner(w))
            return false;
        if (rise && !sweep_fire(w))
            return false;
        if (w->watch.stopped || w->t >= end)
            break;
    }
    sweep_islands_follow(w, end);
    if (!sweep_part_shapes(w))
        return false;
    w->r->count.at_once += was;
    w->policy.was_at_once = was;
    if (!waits)
        patience_after(w, was);
    return true;
}
