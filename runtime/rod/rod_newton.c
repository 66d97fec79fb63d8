/* rod_newton: equilibria at a load. Newton's method with the consistent tangent. Rods in contact are solved
   with springs first, then with multipliers as unknowns. A rod that snaps is followed through a viscous
   motion. */
#include "rod_work.h"
#include "base/tolerances.h"
#include <math.h>
#include <string.h>

/* ---- supports ---- */
bool holds_at(rod_work *w, double t, double tau)
{
    for (int i = 0; i < w->ends.nhold; i++) {
        rod_hold *h = &w->ends.hold[i];
        double v[9], q[4], th[3];
        rod_eval(w, &h->load->value, t, h->load->rod, 0, v);
        if (h->load->what == LOAD_POSITION) {
            for (int k = 0; k < 3; k++)
                h->goal[k] = h->start[k] + (v[k] - h->start[k]) * tau;
            if (!isfinite(v[0] + v[1] + v[2]))
                return rod_fail(w, h->load->at, "the position is not a number at t = %g", t);
            continue;
        }
        if (h->load->what == LOAD_ROLL) {
            h->goal[0] = v[0] * tau;
            if (!isfinite(v[0]))
                return rod_fail(w, h->load->at, "the roll is not a number at t = %g", t);
            continue;
        }
        if (h->load->what == LOAD_AXIS || h->load->what == LOAD_HINGE) {
            double n = norm3(v), m;
            if (!(n > 0 && isfinite(n)))
                return rod_fail(w, h->load->at, "the axis has no direction at t = %g", t);
            for (int k = 0; k < 3; k++)
                h->goal[k] = h->start[k] + (v[k] / n - h->start[k]) * tau;
            m = norm3(h->goal);
            for (int k = 0; k < 3; k++)
                h->goal[k] /= m;
            continue;
        }
        double off = 0;
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 3; b++)
                off += fabs(v[a] * v[b] + v[3 + a] * v[3 + b] + v[6 + a] * v[6 + b] - (a == b));
        double det = v[0] * (v[4] * v[8] - v[5] * v[7]) - v[1] * (v[3] * v[8] - v[5] * v[6]) +
                     v[2] * (v[3] * v[7] - v[4] * v[6]);
        if (!(off < FRAME_TURNS) || det < 0)
            return rod_fail(w, h->load->at, "the frame is not a rotation at t = %g", t);
        quat_of_matrix(v, q);
        quat_log(h->start, q, th);
        for (int k = 0; k < 3; k++)
            th[k] *= tau;
        memcpy(h->goal, h->start, sizeof h->goal);
        quat_turn(h->goal, th);
        if (tau == 1)
            memcpy(h->goal, q, sizeof q);
    }
    w->grown.missing = w->grown.on ? 1 - tau : 0;
    for (int r = 0, at = 0; w->goal0 && r < w->rp->nrod; at += 18 * w->mesh[r++].ne)
        for (int k = 0; k < 18 * w->mesh[r].ne; k++)
            w->mesh[r].v0[k] = w->start0[at + k] + (w->goal0[at + k] - w->start0[at + k]) * tau;
    return rod_grow(w, t, tau);
}

/* The rotation of supported frames from t to t + dt, summed over small pieces: half a turn more must not look
   like half a turn less. */
double turn_between(rod_work *w, double t, double dt)
{
    enum { PIECES = 32 };
    double most = 0;
    for (int i = 0; i < w->ends.nhold; i++) {
        const rod_hold *h = &w->ends.hold[i];
        double R[9], a[4], b[4], th[3], sum = 0;
        if (h->load->what == LOAD_ROLL) {
            rod_eval(w, &h->load->value, t, h->load->rod, 0, a);
            rod_eval(w, &h->load->value, t + dt, h->load->rod, 0, b);
            most = fmax(most, fabs(b[0] - a[0]));
        }
        if (h->load->what != LOAD_FRAME)
            continue;
        rod_eval(w, &h->load->value, t, h->load->rod, 0, R);
        quat_of_matrix(R, a);
        for (int k = 1; k <= PIECES; k++) {
            rod_eval(w, &h->load->value, t + dt * k / PIECES, h->load->rod, 0, R);
            quat_of_matrix(R, b);
            quat_log(a, b, th);
            sum += norm3(th);
            memcpy(a, b, sizeof a);
        }
        most = fmax(most, sum);
    }
    return most;
}

/* The rotation angle of a section about its axis since the start, after the smallest rotation that aligns the
   axes. tilt: its derivatives by rotations across the axis. */
static double roll_of(const double *start, const double *q, double *tilt)
{
    double c[4] = { start[0], -start[1], -start[2], -start[3] }, d[4];
    quat_mul(c, q, d);
    double n = d[0] * d[0] + d[3] * d[3];
    tilt[0] = (d[3] * d[1] - d[0] * d[2]) / n;
    tilt[1] = (d[0] * d[1] + d[3] * d[2]) / n;
    return 2 * atan2(d[3], d[0]);
}

static void hold_turn(rod_work *w, const rod_hold *h, double *d)
{
    double R[9], b[3];
    const double *q = w->state.rot + 4 * h->node;
    if (h->load->what == LOAD_FRAME) {
        quat_log(q, h->goal, d);
        return;
    }
    if (h->load->what == LOAD_ROLL) {
        d[2] = remainder(h->goal[0] - roll_of(h->start, q, w->ends.tilt + 2 * h->node), 2 * M_PI);
        return;
    }
    quat_matrix(q, R);
    for (int k = 0; k < 3; k++)
        b[k] = R[k] * h->goal[0] + R[3 + k] * h->goal[1] + R[6 + k] * h->goal[2];
    rod_on_axes(w, h->node, b); /* components along the axes of a hinge */
    double s = hypot(b[0], b[1]), f = s > ANGLE_ZERO ? atan2(s, b[2]) / s : 1;
    d[0] = -b[1] * f;
    d[1] = b[0] * f;
}

void holds_put(rod_work *w)
{
    for (int i = 0; i < w->ends.nhold; i++) {
        const rod_hold *h = &w->ends.hold[i];
        double *d = w->dx + 6 * h->node;
        if (h->load->what != LOAD_POSITION)
            hold_turn(w, h, d + 3);
        else
            for (int k = 0; k < 3; k++)
                d[k] = h->goal[k] - w->state.pos[3 * h->node + k];
    }
}

/* ---- Newton ---- */
/* EASY: iterations in which springs replace the friction of reversing slip. BRIEF: for starting from a nearby
   state. */
enum { NEWTON_MAX = 30, EASY = 10, BRIEF = 12 };

/* Size of an increment: positions relative to the length, and angles. */
double rod_size(const rod_work *w, const double *dx, double *turn)
{
    double d = 0, a = 0, L = rod_length(w);
    for (int i = 0; i < w->N; i++) {
        d = fmax(d, norm3(dx + 6 * i) / L);
        a = fmax(a, norm3(dx + 6 * i + 3));
    }
    *turn = a;
    return fmax(d, a);
}

double rod_part_of(const rod_work *w, double turn, double most_turn, bool room)
{
    double cut = turn > most_turn ? most_turn / turn : 1, d = 0, reach = INFINITY;
    for (int i = 0; w->contact && i < w->N; i++)
        d = fmax(d, norm3(w->dx + 6 * i));
    for (int i = 0; i < w->rp->npair; i++)
        reach = fmin(reach, 0.8 * w->mesh[w->rp->pair[i].a].radius);
    return d * cut > reach ? fmin(cut, fmax(reach / d, room ? contacts_room(w) : 0)) : cut;
}

/* Called in every iteration, because iterations may take long. */
bool rod_interrupted(rod_work *w)
{
    double done = w->o->duration > 0 ? w->t / w->o->duration : 0;
    return run_interrupted(w->o, w->r, done);
}

/* Newton iterations until increments are smaller than `enough`. If multipliers are unknowns (stiff), they
   follow each increment. */
static bool newton_steps(rod_work *w, double t, double enough, bool stiff)
{
    double best = INFINITY;
    int again = 0;
    w->state.last = INFINITY;
    forces_follow(w, NULL);
    w->shift = w->neutral ? 10 * rod_small_shift(w) : 0;
    for (int k = 0; k < (w->brief ? BRIEF : NEWTON_MAX) && !rod_interrupted(w); k++) {
        double turn;
        if (w->contact && !contacts_project(w, k < EASY))
            return false;
        uint64_t pattern = w->contact ? contacts_pattern(w) : 0;
        bool touch = w->contact && contacts_near(w);
        holds_put(w);
        w->iterations++;
        if (!(touch ? rod_solve_sparse(w, t, NULL, NULL) : rod_solve_band(w, t)))
            return false;
        double size = rod_size(w, w->dx, &turn), cut = rod_part_of(w, turn, 0.7, true);
        best = fmin(best, size);
        w->state.last = best;
        if (!isfinite(size) || (k > 3 && size > 3) || (k > 6 && size > 20 * best && size > 0.05))
            return false;
        if (stiff)
            contacts_predict(w, w->dx, cut);
        for (int i = 0; cut < 1 && i < w->ndof; i++)
            w->dx[i] *= cut;
        forces_follow(w, w->dx);
        rod_update(w, w->dx, 1);
        if (stiff)
            contacts_carry(w);
        /* the second increment removes what stiff springs yielded in the first */
        bool small = size < enough && !(stiff && k == 0);
        if (small && w->contact) {
            if (!contacts_project(w, k < EASY))
                return false;
            /* pairs that just touch may alternate between contact and no contact */
            if (contacts_pattern(w) != pattern && size > ROUND_500 && again++ < 6)
                continue;
        }
        if (small || (k > 5 && size < (stiff        ? (w->neutral ? ROD_SLOW_STIFF_NEUTRAL : ROD_SLOW_STIFF)
                                       : w->neutral ? ROD_SLOW_NEUTRAL
                                                    : ROD_SLOW)))
            return true;
    }
    return false;
}

static bool newton(rod_work *w, double t, double enough, bool stiff)
{
    bool ok = newton_steps(w, t, enough, stiff);
    /* wandering along a motion without resistance */
    if (!ok && !w->neutral && !w->motion &&
        w->state.last < (w->contact && contacts_rough(w) ? ROD_NEUTRAL_ROUGH : ROD_NEUTRAL)) {
        w->neutral = true;
        ok = newton_steps(w, t, enough, stiff);
    }
    w->shift = 0;
    return ok;
}

double rod_least_radius(const rod_work *w)
{
    double r = INFINITY;
    for (int i = 0; i < w->rp->npair; i++)
        r = fmin(r, w->mesh[w->rp->pair[i].a].radius);
    return r;
}

bool rod_gaps_closed(const rod_work *w)
{
    return contacts_open(w) <= w->ro->tolerance * rod_least_radius(w);
}

bool rod_close_gaps(rod_work *w, double t)
{
    bool ok = false;
    contacts_stiffen(w, true);
    for (int k = 0; k < 5 && !ok; k++) {
        if (!newton(w, t, w->drag > 0 ? ROD_END_DRAG : ROD_END_STIFF, true))
            break;
        ok = w->drag > 0 || rod_gaps_closed(w);
    }
    contacts_soften(w);
    contacts_project(w, false);
    return ok;
}

static bool close_apart(rod_work *w, double t)
{
    bool ok = rod_close_gaps(w, t);
    if (!w->motion && w->drag == 0)
        contacts_report_separation(w, ok);
    return ok;
}

bool rod_equilibrium(rod_work *w, double t)
{
    if (!w->contact)
        return newton(w, t, ROD_END, false);
    contacts_find(w);
    return w->ro->penalty ? newton(w, t, w->drag > 0 ? ROD_END_DRAG : ROD_END, false) : close_apart(w, t);
}

/* From a state whose pairs are less far apart than required now, finds one with the required distances: at
   once, or part of the way, from which the next round continues. skin: previous distances. */
static bool apart_round(rod_work *w, double t, const double *skin, double *goal)
{
    enum { PARTS = 3 };
    arena_pos mark = arena_mark(w->tmp);
    double *pos = arena_array(w->tmp, double, 3 * w->N), *rot = arena_array(w->tmp, double, 4 * w->N),
           part = 1;
    bool ok = false, wider = false;
    state_copy(w, pos, rot, w->state.pos, w->state.rot);
    contacts_keep_watch(w);
    contacts_skin(w, goal, NULL);
    for (int i = 0; i < w->rp->npair; i++)
        wider = wider || goal[i] > skin[i];
    for (int k = 0; k < (wider ? PARTS : 1) && !ok && !rod_interrupted(w); k++, part /= 2) {
        double *now = arena_array(w->tmp, double, w->rp->npair);
        for (int i = 0; i < w->rp->npair; i++)
            now[i] = skin[i] + part * (goal[i] - skin[i]);
        contacts_skin(w, NULL, now);
        contacts_project(w, false);
        ok = rod_close_gaps(w, t) || (part == 1 && rod_descend(w, t, true));
        if (ok)
            break;
        state_copy(w, w->state.pos, w->state.rot, pos, rot);
        contacts_back_watch(w);
    }
    arena_release(w->tmp, mark);
    return ok;
}

/* Rods that overlap between their pairs are held farther apart; if no state is found, the previous one is
   restored. */
bool rod_apart(rod_work *w, double t)
{
    enum { ROUNDS = 24 };
    if (!w->contact || w->ro->penalty)
        return true;
    arena_pos mark = arena_mark(w->tmp);
    double *pos = arena_array(w->tmp, double, 3 * w->N), *rot = arena_array(w->tmp, double, 4 * w->N),
           *skin = arena_array(w->tmp, double, 3 * w->rp->npair), *last = skin + w->rp->npair;
    bool ok = true;
    state_copy(w, pos, rot, w->state.pos, w->state.rot);
    contacts_keep_apart(w);
    contacts_skin(w, skin, NULL);
    for (int k = 0; k < ROUNDS && ok; k++) {
        contacts_skin(w, last, NULL);
        if (contacts_part(w, w->ro->tolerance))
            break;
        ok = apart_round(w, t, last, last + w->rp->npair);
        contacts_report_separation(w, ok);
    }
    ok = ok && !rod_passed(w, pos, rot, true, true);
    if (!ok) {
        state_copy(w, w->state.pos, w->state.rot, pos, rot);
        contacts_back_apart(w);
        contacts_skin(w, NULL, skin);
        contacts_project(w, false);
    }
    arena_release(w->tmp, mark);
    return ok;
}

/* ---- a viscous motion ---- */
static double moved(const rod_work *w)
{
    double d = 0, L = rod_length(w);
    for (int i = 0; i < w->N; i++) {
        double x[3], th[3];
        for (int k = 0; k < 3; k++)
            x[k] = (w->state.pos[3 * i + k] - w->state.pos0[3 * i + k]) / L;
        quat_log(w->state.rot0 + 4 * i, w->state.rot + 4 * i, th);
        d = fmax(d, fmax(norm3(x), norm3(th)));
    }
    return d;
}

/* A step with the drag c (0: to rest), which counts for friction like any other step; false: the state is
   unchanged. */
static bool flow_step(rod_work *w, double t, double c, double most)
{
    if (w->contact) {
        contacts_step(w);
        contacts_keep_flow(w);
    } else
        state_copy(w, w->state.pos0, w->state.rot0, w->state.pos, w->state.rot);
    w->drag = c;
    bool ok = rod_equilibrium(w, t) && moved(w) < most &&
              !rod_passed(w, w->state.pos0, w->state.rot0, false, true);
    if (ok)
        w->viscous += rod_drag_work(w);
    w->drag = 0;
    if (ok)
        return true;
    state_copy(w, w->state.pos, w->state.rot, w->state.pos0, w->state.rot0);
    if (w->contact)
        contacts_back_flow(w);
    return false;
}

/* Finds the state at rest; it must be stable if `stable` is set. */
static bool flow_rests(rod_work *w, double t, double most, bool stable)
{
    arena_pos mark = arena_mark(w->tmp);
    double *pos = arena_array(w->tmp, double, 3 * w->N), *rot = arena_array(w->tmp, double, 4 * w->N);
    state_copy(w, pos, rot, w->state.pos, w->state.rot);
    bool ok = flow_step(w, t, 0, most);
    if (ok && stable && !rod_unclear(w) && rod_unstable(w, t)) {
        state_copy(w, w->state.pos, w->state.rot, pos, rot);
        if (w->contact)
            contacts_back_flow(w);
        ok = false;
    }
    arena_release(w->tmp, mark);
    return ok;
}

/* Increases drag until the tangent is positive definite: with less, a step would end on a saddle. */
static double drag_enough(rod_work *w, double t, double c)
{
    for (int k = 0; k < 20; k++, c *= 3) {
        w->shift = c;
        bool enough = !rod_unstable(w, t);
        w->shift = 0;
        if (enough)
            break;
    }
    return c;
}

/* A motion in a very viscous fluid, along decreasing energy, in steps with moderate rotations: for rods that
   buckle, snap or lose their balance in contact. */
bool rod_flow(rod_work *w, double t)
{
    /* FLOW_CLEAR: with contact, stability is required for this many steps; a state that creeps along a flat
       valley is accepted where it comes to rest */
    enum { FLOW_MAX = 600, FLOW_CLEAR = 80 };
    double unit = w->scale / (rod_length(w) * rod_length(w)), c = 1e3 * unit, rest = FLOW_REST, down = 0.3;
    for (int k = 0; k < FLOW_MAX && c < 1e15 * unit && !rod_interrupted(w); k++) {
        bool touch = w->contact && contacts_near(w), stable;
        stable = !touch || (k < FLOW_CLEAR && !rod_unclear(w));
        if (stable)
            c = drag_enough(w, t, c);
        if (!flow_step(w, t, c, 0.5)) {
            c *= 4;
            down = 0.7;
            continue;
        }
        double size = moved(w);
        if (w->contact)
            contacts_lose(w);
        c *= size > 0.2 ? 2 : size < 0.1 ? down : 1;
        down = fmax(0.3, 0.8 * down);
        if (size > rest)
            continue;
        if (touch && stable && size > ROD_END && rod_unstable(w, t))
            continue; /* still leaving a saddle */
        if (flow_rests(w, t, 0.2, stable))
            return true;
        rest = size / 3;
        if (size < ROD_END)
            return false;
    }
    return false;
}

/* ---- from one step to the next ---- */
/* Stores the increment of the last step, from pos0, rot0; dt = 0: the next step starts without prediction. */
void rod_way(rod_work *w, double dt)
{
    w->way_dt = dt;
    for (int i = 0; dt > 0 && i < w->N; i++) {
        for (int k = 0; k < 3; k++)
            w->way[6 * i + k] = w->state.pos[3 * i + k] - w->state.pos0[3 * i + k];
        quat_log(w->state.rot0 + 4 * i, w->state.rot + 4 * i, w->way + 6 * i + 3);
    }
}

/* Predicts the same increment again, if it is not long and nothing touches (prediction would tear off
   sticking contacts). */
void rod_go_on(rod_work *w)
{
    double turn, k = w->way_dt > 0 ? w->guess / w->way_dt : 0;
    w->guess = 0;
    if (k > 0 && k * rod_size(w, w->way, &turn) < 1 && !(w->contact && contacts_near(w)))
        rod_update(w, w->way, k);
}

/* A small disturbance that breaks every symmetry, and leaves rods in contact on the same sides of each other.
 */
void rod_nudge(rod_work *w)
{
    double most = w->contact && contacts_near(w) ? 0.1 * rod_least_radius(w) : INFINITY;
    for (int r = 0; r < w->rp->nrod; r++) {
        const rod_mesh *m = &w->mesh[r];
        for (int i = 0; i < m->nn; i++) {
            double x = m->s[i] / m->length, a = fmin(DISTURBANCE * m->length, most), R[9];
            int node = m->first + i;
            double b[3] = { a * x * (1 - x) * (1 + x), a * x * (1 - x) * sin(5 * x), 0 };
            quat_matrix(w->state.rot + 4 * node, R);
            for (int k = 0; k < 3; k++)
                if (!w->ends.held[6 * node + k])
                    w->state.pos[3 * node + k] += R[3 * k] * b[0] + R[3 * k + 1] * b[1];
        }
    }
    rod_ties_before(w);
    rod_ties_after(w, NULL, 0);
}
