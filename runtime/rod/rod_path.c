/* rod_path: rods along a load: steps, and states that are left for others. */
#include "rod_work.h"
#include "base/tolerances.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- a step ---- */
/* Are elements shorter than the radius? Then their chords pass through each other when rods do. */
static bool short_elements(const rod_mesh *m)
{
    double most = 0;
    for (int e = 0; e < m->ne; e++)
        most = fmax(most, m->s[3 * e + 3] - m->s[3 * e]);
    return most <= 1.0001 * m->radius;
}

/* If a rod passes through itself, its link changes by two: such a step is not a motion. Only checked with
   contact. Without rot: only the writhe. */
static double links(const rod_work *w, double *pos, double *rot)
{
    rod_result x = { .rp = w->rp, .mesh = w->mesh, .r = pos, .q = rot };
    double sum = 0;
    for (int i = 0; i < w->rp->npair; i++) {
        int a = w->rp->pair[i].a;
        if (w->rp->pair[i].b == a)
            sum += rod_writhe_nodes(&x, a, short_elements(&w->mesh[a]) ? 3 : 1) +
                   (rot ? rod_twist(&x, a) : 0);
    }
    return sum;
}

double rod_writhes(const rod_work *w, double *pos)
{
    return links(w, pos, NULL);
}

/* Has no node moved by a radius? Then strands that lie side by side have not exchanged sides. */
static bool moved_little(const rod_work *w, const double *pos)
{
    double reach = INFINITY, most = 0;
    for (int i = 0; i < w->rp->npair; i++)
        reach = fmin(reach, w->mesh[w->rp->pair[i].a].radius);
    for (int i = 0; i < 3 * w->N; i += 3)
        most = fmax(most, norm3((double[3]){ w->state.pos[i] - pos[i], w->state.pos[i + 1] - pos[i + 1],
                                             w->state.pos[i + 2] - pos[i + 2] }));
    return most < reach;
}

/* The link of the last valid state is stored, because a step starts where the last one ended. Contacts of
   that state may have opened on the other side. */
bool rod_passed(rod_work *w, double *pos, double *rot, bool touched, bool brief)
{
    if (!w->contact || !(touched || contacts_near(w)) || (brief && moved_little(w, pos)))
        return false;
    if (memcmp(w->state.linked, pos, (size_t)(3 * w->N) * sizeof *pos))
        w->state.link = links(w, pos, rot);
    double now = links(w, w->state.pos, w->state.rot);
    if (fabs(now - w->state.link) > 1.2) {
        memcpy(w->state.linked, pos, (size_t)(3 * w->N) * sizeof *pos);
        return true;
    }
    memcpy(w->state.linked, w->state.pos, (size_t)(3 * w->N) * sizeof *pos);
    w->state.link = now;
    return false;
}

static bool reach_equilibrium(rod_work *w, double t, rod_way_to by)
{
    return by == BY_FLOW      ? rod_flow(w, t)
           : by == BY_DESCENT ? rod_descend(w, t, false)
                              : rod_equilibrium(w, t);
}

bool rod_step(rod_work *w, double t, double tau, rod_way_to by)
{
    arena_pos mark = arena_mark(w->tmp);
    double *pos = arena_array(w->tmp, double, 3 * w->N), *rot = arena_array(w->tmp, double, 4 * w->N),
           lost = w->viscous;
    if (!holds_at(w, t, tau))
        return false;
    state_copy(w, pos, rot, w->state.pos, w->state.rot);
    state_copy(w, w->state.pos0, w->state.rot0, w->state.pos, w->state.rot);
    bool touched = w->contact && contacts_near(w);
    if (w->contact)
        contacts_save(w);
    if (by == BY_NEWTON)
        rod_go_on(w);
    /* a descent over a long way checks that itself, and an end that may roll changes its link */
    bool own = w->start && by == BY_DESCENT;
    bool ok = reach_equilibrium(w, t, by) && (own || !rod_passed(w, pos, rot, touched, false));
    if (ok && w->contact)
        contacts_lose(w);
    if (!ok) {
        state_copy(w, w->state.pos, w->state.rot, pos, rot);
        w->viscous = lost;
        if (w->contact)
            contacts_restore(w);
    }
    arena_release(w->tmp, mark);
    return ok;
}

/* A support that holds a roll acts about the axis of the section in any orientation: if it carries a moment,
   that moment has no potential. */
static void rolls_carry(rod_work *w, double t)
{
    if (!w->ends.tilt || w->lasting)
        return;
    arena_pos mark = arena_mark(w->tmp);
    double most = 0, L = rod_length(w);
    rod_residual(w, t, w->res);
    for (int i = 0; i < w->ends.nhold; i++)
        if (w->ends.hold[i].load->what == LOAD_ROLL)
            most = fmax(most, fabs(w->res[6 * w->ends.hold[i].node + 5]));
    w->moments = most > ROLL_MOMENT * w->scale * L;
    arena_release(w->tmp, mark);
}

bool rod_unclear(const rod_work *w)
{
    if (w->ties && w->moments)
        return true;
    return w->contact && contacts_near(w) && (w->moments || contacts_rough(w));
}

/* Character of the tangent: the number of directions that lower the energy, or the sign of the determinant if
   moments have no potential. */
int rod_character(rod_work *w, double t)
{
    return w->moments ? w->linear.sign : rod_unstable(w, t);
}

/* Leaves a state that is not a minimum of the energy for one that is. */
static bool leave_saddle(rod_work *w, double t)
{
    if (w->moments || rod_unclear(w) || !rod_unstable(w, t))
        return true;
    arena_pos mark = arena_mark(w->tmp);
    double *pos = arena_array(w->tmp, double, 3 * w->N), *rot = arena_array(w->tmp, double, 4 * w->N),
           lost = w->viscous;
    state_copy(w, pos, rot, w->state.pos, w->state.rot);
    bool touched = w->contact && contacts_near(w), neutral = w->neutral;
    if (w->contact)
        contacts_keep_arc(w, 1);
    rod_nudge(w);
    w->neutral = true;
    bool ok = rod_flow(w, t) && !rod_passed(w, pos, rot, touched, false);
    /* no better: rods that overlap */
    ok = ok && (!touched || rod_apart(w, t) || contacts_depth(w) <= OVERLAP_DEEP * rod_least_radius(w));
    if (!ok) {
        state_copy(w, w->state.pos, w->state.rot, pos, rot);
        w->viscous = lost;
    }
    if (!ok && w->contact)
        contacts_back_arc(w, 1);
    /* with contact, unstable directions are counted only up to rounding, and the state may be held better */
    if (touched)
        w->neutral = neutral;
    arena_release(w->tmp, mark);
    return ok;
}

/* ---- steps ---- */
void rod_path_point(rod_work *w, rod_path *p, double t)
{
    double e[4], *r = arena_array(w->a, double, 3 * w->N);
    memcpy(r, w->state.pos, (size_t)(3 * w->N) * sizeof *r);
    *vec_push(w->a, &p->points) = (rod_point){ .t = t,
                                               .energy = rod_elastic(w, e),
                                               .r = r,
                                               .unstable = w->moments       ? p->modes < 0
                                                           : rod_unclear(w) ? rod_unstable(w, t)
                                                                            : p->modes };
}

void rod_path_start(rod_work *w, rod_path *p)
{
    rolls_carry(w, 0);
    leave_saddle(w, 0);
    rod_apart(w, 0);
    p->modes = rod_modes_start(w);
    p->moments = w->moments;
    if (w->moments && !w->ties)
        p->negative = rod_negative(w, &p->near);
    p->pos = arena_array(w->a, double, 3 * w->N);
    p->rot = arena_array(w->a, double, 4 * w->N);
    state_copy(w, p->pos, p->rot, w->state.pos, w->state.rot);
    rod_sample(w, 0);
    if (w->ro->arc)
        rod_path_point(w, p, 0);
}

/* With arc length, a state counts only on the current branch: up to a limit point a step is at most twice as
   long as its tangent predicts (x* - x is the root of t* - t there); leaving a limit point, at most twice as
   long as the tangent at its end predicts. Longer steps reached another branch. If contact begins or ends,
   the tangent may change. */
static bool step_along(rod_work *w, double t, double now, double end)
{
    double reach = rod_reach(w, t, end);
    bool touch = w->contact && contacts_near(w);
    if (!rod_step(w, now, 1, BY_NEWTON))
        return false;
    if (touch == (w->contact && contacts_near(w)))
        reach = fmin(reach, rod_reach(w, now, end));
    if (rod_distance(w, w->state.pos0, w->state.rot0) <= 2.5 * reach * (now - t) + REACH_SLACK)
        return true;
    state_copy(w, w->state.pos, w->state.rot, w->state.pos0, w->state.rot0);
    if (w->contact)
        contacts_restore(w);
    return false;
}

/* By Newton's method, or by a descent if allowed. If the last state was found only by a descent, descent is
   allowed and comes first, except for every fifth state (every twentieth if rods lie along each other, for
   which Newton's method rarely succeeds). */
static bool step_to(rod_work *w, rod_path *p, double now, double tau, bool descend)
{
    enum { AGAIN = 5, ALONG = 20 };
    bool first = p->descents % (contacts_lined(w) ? ALONG : AGAIN) > 0;
    rod_way_to way[2] = { first ? BY_DESCENT : BY_NEWTON, first ? BY_NEWTON : BY_DESCENT };
    for (int k = 0; k < 2 && w->r->status == RUN_OK; k++) {
        if (way[k] == BY_DESCENT && !descend && !p->descents)
            continue;
        bool found = rod_step(w, now, tau, way[k]);
        if (!found && way[k] == BY_NEWTON && descend && w->contact && contacts_thin(w))
            found = rod_step(w, now, tau, BY_NEWTON);
        if (!found)
            continue;
        p->descents = way[k] == BY_DESCENT ? p->descents + 1 : 0;
        return true;
    }
    return false;
}

/* No equilibrium was found at the load `now`: follows the branch around a limit point that may be there, or,
   if it is already listed, leaves it through a viscous motion. turned: the branch was followed, and `now` is
   the load that it led to. */
static bool step_beyond(rod_work *w, rod_path *p, double t, double *now, double tau, double end, bool *turned)
{
    int known = p->ncritical;
    size_t points = p->points.n;
    bool start = tau < 1 || end == 0, arc = w->ro->arc;
    if (!start && (arc || (!w->contact && !w->moments)))
        *turned = rod_arc(w, p, t, *now, end, arc, now);
    if (*turned || w->moments || w->r->status == RUN_INTERRUPTED)
        return *turned;
    bool found = rod_step(w, *now, tau, BY_FLOW);
    if (!found) {
        p->ncritical = known;
        p->points.n = points;
    }
    return found;
}

/* Records critical loads after a new state, and leaves it if it is unstable. */
static void step_done(rod_work *w, rod_path *p, double t, double now)
{
    if (rod_unclear(w))
        return;
    rod_watch(w, p, t, now);
    bool touch = w->contact && contacts_near(w);
    if (w->moments || p->modes == 0 || (touch && p->modes == p->stuck))
        return;
    leave_saddle(w, now);
    if (!rod_unclear(w))
        p->modes = rod_unstable(w, now);
    p->stuck = p->modes;
}

/* Pairs closer than nodes are placed if a state is accepted although lines overlap. */
static void apart_finely(rod_work *w, double t)
{
    if (!w->contact)
        return;
    contacts_refine(w, true);
    rod_apart(w, t);
    contacts_refine(w, false);
}

/* The rods of the state that was found overlap deeply, and no shorter step helped.  A viscous motion from the
 * last state, to this load or to one a little further, may lead to a state in which they do not; false: all
 * is as it was. */
static bool apart_by_flow(rod_work *w, double t, double dt, double end, double *now)
{
    enum { STEPS = 3 };
    arena_pos mark = arena_mark(w->tmp);
    double *pos = arena_array(w->tmp, double, 3 * w->N), *rot = arena_array(w->tmp, double, 4 * w->N),
           *pos0 = arena_array(w->tmp, double, 3 * w->N), *rot0 = arena_array(w->tmp, double, 4 * w->N),
           lost = w->viscous;
    bool found = false;
    state_copy(w, pos, rot, w->state.pos, w->state.rot);
    state_copy(w, pos0, rot0, w->state.pos0, w->state.rot0);
    contacts_keep_arc(w, 0);
    for (int k = 0; k < STEPS && !found && w->r->status == RUN_OK; k++, dt *= 2) {
        double to = fmin(t + dt, end);
        state_copy(w, w->state.pos, w->state.rot, pos0, rot0);
        contacts_restore(w);
        w->viscous = lost;
        found = rod_step(w, to, 1, BY_FLOW) && rod_apart(w, to);
        *now = found ? to : *now;
    }
    if (!found) {
        state_copy(w, w->state.pos, w->state.rot, pos, rot);
        state_copy(w, w->state.pos0, w->state.rot0, pos0, rot0);
        contacts_back_arc(w, 0);
        w->viscous = lost;
        holds_at(w, *now, 1);
    }
    arena_release(w->tmp, mark);
    return found;
}

/* start: from the reference shape to the state that supports require at t = 0; otherwise t from 0 to the end.
 */
bool rod_march(rod_work *w, double end, double h, bool start, rod_path *p, double *reached)
{
    double t = 0, dt = h;
    bool whole = false; /* a descent over the whole way to the start was tried */
    for (int64_t easy = 0; t < end * (1 - CLOCK_END);) {
        bool turned = false, flowed = false;
        if (t + dt > end * (1 - STEP_SAME))
            dt = end - t;
        while (!start && turn_between(w, t, dt) > 1 && dt > TURN_SHORTEST * h)
            dt /= 2;
        if (w->contact)
            contacts_step(w);
        double now = start ? 0 : t + dt, tau = start ? t + dt : 1;
        w->guess = start || w->ro->arc ? 0 : dt;
        bool found = w->ro->arc && !start
                         ? step_along(w, t, now, end)
                         : step_to(w, p, now, tau, start ? whole : dt < h / 3 || contacts_lined(w));
        if (!found && w->start && !whole && w->contact && w->r->status == RUN_OK) {
            whole = true;
            found = rod_step(w, 0, 1, BY_DESCENT);
            dt = found ? 1 - t : dt;
        }
        if (!found && w->r->status == RUN_OK && dt < h / 3)
            found = flowed = step_beyond(w, p, t, &now, tau, start ? 0 : end, &turned);
        /* a shorter step may find one */
        if (found && !start && !rod_apart(w, now) && !flowed) {
            found = dt <= h / 16;
            if (found && contacts_depth(w) > OVERLAP_DEEP * rod_least_radius(w))
                flowed = apart_by_flow(w, t, dt, end, &now);
            if (!found) {
                state_copy(w, w->state.pos, w->state.rot, w->state.pos0, w->state.rot0);
                contacts_restore(w);
            }
        }
        if (found) {
            rod_way(w, flowed || start ? 0 : dt);
            rolls_carry(w, now);
            if (start)
                leave_saddle(w, 0);
            else if (!turned)
                step_done(w, p, t, now);
            if (!start)
                apart_finely(w, now);
            t = start ? t + dt : now;
            *reached = t;
            w->t = start ? 0 : t;
            if (!start) {
                w->r->count.steps++;
                rod_sample(w, t);
            }
            if (!start && w->ro->arc && !turned)
                rod_path_point(w, p, t);
            if (++easy >= 2 && dt < h) {
                dt = fmin(2 * dt, h);
                easy = 0;
            }
            if (rod_interrupted(w))
                return false;
            continue;
        }
        if (w->r->status == RUN_FAILED || w->r->status == RUN_INTERRUPTED)
            return false;
        easy = 0;
        dt /= 2;
        if (dt < h * STEP_SHORTEST)
            return false;
    }
    return true;
}
