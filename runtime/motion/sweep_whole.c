/* sweep_whole: a whole step, for too many impacts to be followed one by one. All contacts that may close in
   it take part: u_n + gap/h >= 0, or restitution if the step would reach the surface. Bodies move by the mean
   rate, or by the rate at the end where they would overlap otherwise; remaining overlaps are opened by moving
   the bodies. */
#include <math.h>
#include <string.h>
#include "sweep.h"
#include "base/tolerances.h"

static int dof_of(const contact *c, int k)
{
    return c->dof ? c->dof[k] : k;
}

static double small_overlap(const sweep *w, const contact_state *k)
{
    return *k->length * sweep_small_share(w);
}

/* ---- which contacts take part ---- */
/* The change of the gap's rate by smooth forces in the step: sum of the absolute values of its terms. */
static double forced_rate(const sweep *w, const gap_row *r)
{
    const double *v = w->v, *v1 = w->v1;
    double change = 0;
    for (int k = 0; k < r->n; k++)
        change += fabs(r->H[k] * (v1[r->dof[k]] - v[r->dof[k]]));
    return change;
}

/* Gaps up to this count as closed in a step. Bodies then rest that far apart: at most 1e-4 of the distance
   that forces move them in a whole step, and less with tolerances below 1e-8. Such gaps make the step problem
   of a pile almost degenerate, with a solution far from the initial guess; the more so the smaller the part h
   of the step, because gap/h over the change of the rate grows with 1/h^2. Expressed as a time, for a given
   change of the rate in h. */
double sweep_micro_time(const sweep *w, double h)
{
    return fmin(MICRO_GAP, sqrt(w->tol)) * w->h * fmax(w->h / h, 1);
}

/* Properties shared by the contacts of a family that may join the step. */
typedef struct joining {
    double h, length, micro;
    contact_relation relation;
    bool of_speed, along; /* its restitution depends on the speed; it has tangential restitution */
    bool shapes;          /* points of pairs of shapes */
} joining;

/* What is added to the rate of the gap in its condition, besides the motion of the surface. */
static double gap_ahead(const sweep *w, size_t i, const joining *j)
{
    const contact_table *t = &w->contacts.table;
    const gap_row *r = &t->row[i];
    double gap = t->gap[i], un = t->un[i];
    /* rounding is not a gap, nor is a gap far below the resolution of a step */
    double ahead = fabs(gap) > ROUND_50 * j->length ? gap / j->h : 0;
    if (gap > 0 && gap <= j->micro * forced_rate(w, r))
        ahead = 0;
    /* it reaches the surface within the step: restitution acts now, unless the rebound is below the
       resolution of a step */
    if (r->e > 0 && t->hits[i] < MAX_HITS && gap + j->h * un <= 0 &&
        -r->e * un > 2 * fabs(row_rate(r, w->v1) + r->ht - un))
        return r->e * un;
    /* overlaps are opened by moving bodies, not by rates */
    return ahead < 0 && j->relation == REL_GAP ? 0 : ahead;
}

/* How much the gap may decrease in the step: any of its bodies may be stopped. */
static double reach_of(const sweep *w, const gap_row *r)
{
    double reach = fabs(r->ht);
    for (int k = 0; k < r->n; k++) {
        int dof = r->dof[k];
        reach += fabs(r->H[k]) * larger(fabs(w->v[dof]), fabs(w->v1[dof]));
    }
    return reach;
}

static bool too_far(const sweep *w, size_t i, double h, double length)
{
    const contact_table *t = &w->contacts.table;
    return t->gap[i] > w->contacts.margin * (h * reach_of(w, &t->row[i]) + FAR_AHEAD * length);
}

bool sweep_may_close(const sweep *w, size_t i, double h)
{
    return !too_far(w, i, h, *w->contacts.state[i]->length);
}

static bool shape_too_far(const sweep *w, size_t i, const joining *j)
{
    const contact_table *t = &w->contacts.table;
    const contact *c = w->contacts.state[i]->c;
    if (shapes_idle(w->s->shapes, c->fam->f, c->index))
        return true;
    double way = shapes_way(w->s->shapes, c->fam->f, c->index);
    return !t->in[i] && !t->met[i] && t->gap[i] > w->contacts.margin * (way + FAR_AHEAD * j->length);
}

/* Current rows, and laws if it takes part. */
static bool join_rows(sweep *w, size_t i, const joining *j)
{
    contact_table *t = &w->contacts.table;
    gap_row *r = &t->row[i];
    contact_state *k = w->contacts.state[i];
    if (j->shapes && shape_too_far(w, i, j))
        return false;
    if (!r->known && !k->offset_fixed)
        contact_rows(w->s, k->c, w->M, false);
    if (!r->known)
        row_note(r, k);
    if (!t->in[i] && !t->met[i] && !w->crowd.chain.fixed && too_far(w, i, j->h, j->length))
        return false;
    if (!r->known) {
        contact_laws(w->s, k->c, false);
        r->e = k->c->e;
    }
    return true;
}

/* Joins a contact whose rows and laws are known. */
static void join_known(sweep *w, size_t i, const joining *j)
{
    contact_table *t = &w->contacts.table;
    t->in[i] = true;
    t->un[i] = row_rate(&t->row[i], w->v) + t->row[i].ht;
    if (j->of_speed)
        t->row[i].e = t->un[i] < -t->tol_u[i] ? contact_restitution(w->s, w->contacts.state[i]->c, -t->un[i])
                                              : 0;
    t->ahead[i] = gap_ahead(w, i, j);
    if (j->along) {
        contact_state *k = w->contacts.state[i];
        k->along = t->ahead[i] < 0 && !t->closed[i] ? k->c->et : 0;
    }
}

static void join_one(sweep *w, size_t i, const joining *j)
{
    if (join_rows(w, i, j))
        join_known(w, i, j);
}

/* A pair of points cannot approach faster than with the speeds of both, in any direction: that it is too far
   apart follows without its row. */
static bool pair_too_far(const sweep *w, size_t i, const joining *j)
{
    const gap_row *r = &w->contacts.table.row[i];
    double most = 0;
    for (int k = 0; k < r->n; k++) {
        int dof = r->dof[k];
        double speed = larger(fabs(w->v[dof]), fabs(w->v1[dof]));
        most += w->contacts.near.point[dof] ? speed * speed : 0;
    }
    double reach = (1 + NEAR_SKIN) * sqrt(2 * most);
    return w->contacts.table.gap[i] > w->contacts.margin * (j->h * reach + FAR_AHEAD * j->length);
}

/* Pairs of points that may join: normal rows of those that may come close, everything else for those that do.
 */
static void join_pairs(sweep *w, size_t f, const joining *j, double near_far)
{
    contact_table *t = &w->contacts.table;
    contact **look = w->contacts.gaps_of;
    contact_state *const *state = w->contacts.state;
    size_t n = 0, kept = 0;
    for (size_t i = t->from[f]; i < t->from[f + 1]; i++)
        if (t->in[i] || t->met[i] || (!(t->gap[i] > near_far) && !pair_too_far(w, i, j))) {
            w->contacts.look[n] = state[i];
            look[n++] = state[i]->c;
        }
    contacts_normals(w->s, look, n);
    for (size_t i = 0; i < n; i++) {
        contact_state *k = w->contacts.look[i];
        size_t at = (size_t)k->at;
        t->row[at].ht = k->c->ht;
        if (!t->in[at] && !t->met[at] && too_far(w, at, j->h, j->length))
            continue;
        w->contacts.look[kept] = k;
        look[kept++] = k->c;
    }
    contacts_slips(w->s, look, kept);
    for (size_t i = 0; i < kept; i++) {
        contact_state *k = w->contacts.look[i];
        fetch_slip(w->contacts.look, (int)i, (int)kept);
        contact_laws(w->s, k->c, false);
        row_note(&t->row[k->at], k);
        sweep_gap_tolerances(w, k);
        join_known(w, (size_t)k->at, j);
    }
}

/* How far shapes move in the step by the larger of both rates, so that rows of distant ones need not be
   computed. */
static void ways_ahead(sweep *w, double h)
{
    if (!w->s->shapes)
        return;
    for (int i = 0; i < w->n; i++)
        w->room.x1[i] = w->q[i] + h * (fabs(w->v[i]) > fabs(w->v1[i]) ? w->v[i] : w->v1[i]);
    system_at(w->s, w->t, w->q, w->v);
    shapes_place(w->s->shapes, &w->s->in);
    system_at(w->s, w->t + h, w->room.x1, w->v);
    shapes_ways(w->s->shapes, &w->s->in);
}

/* Finds the contacts that join the step. v1 contains the rates that smooth forces alone lead to. */
static void join(sweep *w, double h)
{
    contact_table *t = &w->contacts.table;
    ways_ahead(w, h);
    double near_far = w->contacts.near.far + NEAR_SKIN * w->contacts.near.skin;
    system_at(w->s, w->t, w->q, w->v);
    if (w->policy.tried) /* the gaps belong to a step that was given up */
        sweep_gaps_but(w, NULL);
    memcpy(t->in, t->closed, w->contacts.nstate * sizeof *t->in);
    sweep_tolerance(w, closed_now(t));
    for (size_t f = 0; f < w->p->ncontact; f++) {
        bool pairs = near_of_points(&w->p->contact[f]);
        joining j = { h,
                      w->size.lengths[f],
                      sweep_micro_time(w, h),
                      w->p->contact[f].relation,
                      w->p->contact[f].e_of_speed,
                      w->s->family[f].et.k != NULL,
                      w->p->contact[f].pair.touch };
        if (pairs && j.relation == REL_GAP && !j.shapes && contacts_in_lanes(&w->s->family[f])) {
            join_pairs(w, f, &j, near_far);
            continue;
        }
        for (size_t i = t->from[f]; i < t->from[f + 1]; i++)
            if (j.relation == REL_CLOSED)
                t->in[i] = true;
            else if (!pairs || t->in[i] || t->met[i] || (!(t->gap[i] > near_far) && !pair_too_far(w, i, &j)))
                join_one(w, i, &j);
    }
}

/* Do no contacts overlap at the end that were left out? */
static bool still_apart(sweep *w)
{
    contact_table *t = &w->contacts.table;
    bool apart = true;
    system_at(w->s, w->t1, w->q1, w->v1);
    sweep_gaps_but(w, t->in);
    if (!memchr(t->in, false, t->n) && !memchr(t->met, true, t->n))
        return true;
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        if (t->in[i] && !t->met[i])
            continue;
        t->met[i] = !t->in[i] && !(t->gap[i] >= 0) && !(t->gap[i] >= -small_overlap(w, w->contacts.state[i]));
        apart &= !t->met[i];
    }
    return apart;
}

/* Does contact i of the problem have an impulse, and can it open? */
static bool pushes_open(const sweep *w, int i)
{
    return w->hand.cone[i].kind == CONE_UNILATERAL && w->hand.rr[w->hand.cone[i].row] > 0;
}

/* In a whole step, a gap closes by half if bodies move by the mean rate. So a contact that pushed in the last
   step and still pushes, without restitution, is the same impact. */
static bool pushed_before(const sweep *w, int at)
{
    const contact_table *t = &w->contacts.table;
    return (w->policy.was_at_once || t->hits[at] > 0) && t->ahead[at] >= 0 && t->r[t->first[at]] > 0;
}

void sweep_whole_note(sweep *w, int i)
{
    contact_table *t = &w->contacts.table;
    double now = w->t;
    int at = w->hand.place[i];
    if (t->closed[at] || !(t->un[at] < -t->tol_u[at]) || !pushes_open(w, i) || pushed_before(w, at))
        return;
    const contact_state *k = w->hand.act[i];
    w->t = w->t1;
    sweep_impact(w, k, t->un[at], gap_rate(k, w->v1), w->hand.rr[k->row]);
    w->t = now;
    t->counted = true;
    t->hits[at]++;
    if (k->out->last_open)
        k->out->last_open[k->c->member] = w->t1;
}

static void note_impacts(sweep *w)
{
    if (w->policy.fixed)
        sweep_fixed_note(w);
    else
        for (int i = 0; i < w->hand.nact; i++)
            sweep_whole_note(w, i);
}

bool sweep_whole(sweep *w, double h)
{
    enum { AHEAD = 3, WIDER = 3, WIDEST = 20 };
    bool ok = true, covered = true;
    int ahead = 0;
    double *margin = &w->contacts.margin;
    w->policy.whole = true;
    w->policy.fixed = sweep_fixed_fits(w, h);
    memset(w->contacts.table.met, 0, w->contacts.nstate * sizeof *w->contacts.table.met);
    if (w->policy.fixed)
        ok = sweep_fixed(w, h);
    /* Bodies that are set in motion by others may meet bodies that were too far away: then the step is solved
       again with a larger search distance. More pairs are listed only if points moved farther than the list
       covers. */
    for (*margin = NEAR_AHEAD; ok && !w->policy.fixed; *margin *= WIDER) {
        w->t1 = w->t + h;
        ok = sweep_free(w, h, w->v1) && sweep_near(w, h, w->v1, covered ? NEAR_AHEAD : *margin);
        if (!ok)
            break;
        join(w, h);
        sweep_take(w, w->contacts.table.in, NULL);
        ok = sweep_smooth(w, h);
        w->policy.tried = true;
        if (ok && ahead++ < AHEAD && sweep_touch_ahead(w)) {
            *margin /= WIDER;
            continue;
        }
        if (!ok)
            break;
        bool apart = still_apart(w);
        covered = near_covers(&w->contacts.near, w->t1, w->q1);
        if ((apart && covered) || *margin > WIDEST)
            break;
    }
    w->policy.tried = !ok;
    *margin = NEAR_AHEAD;
    if (ok && w->policy.trial && sweep_too_deep(w)) {
        w->hand.unsolved = true;
        return false;
    }
    if (ok)
        note_impacts(w);
    return ok;
}

void sweep_whole_end(sweep *w)
{
    contact_table *t = &w->contacts.table;
    memset(t->ahead, 0, w->contacts.nstate * sizeof *t->ahead);
    memset(t->in, 0, w->contacts.nstate * sizeof *t->in);
    for (size_t f = 0; f < w->p->ncontact; f++)
        for (size_t i = t->from[f]; w->s->family[f].et.k && i < t->from[f + 1]; i++)
            w->contacts.state[i]->along = 0;
    w->policy.whole = w->policy.fixed = false;
}

/* ---- positions at the end ---- */
/* Is there an overlap above this fraction of its scale, among contacts that take part? */
static bool overlap_left(const sweep *w, double share)
{
    const contact_table *t = &w->contacts.table;
    for (size_t f = 0; f < w->p->ncontact; f++) {
        bool held = w->p->contact[f].relation == REL_BILATERAL;
        double most = share * w->size.lengths[f];
        if (w->p->contact[f].relation == REL_CLOSED)
            continue;
        const double *gap = t->gap;
        for (size_t i = t->from[f], end = t->from[f + 1]; i < end; i++)
            if ((held ? fabs(gap[i]) : -gap[i]) > most && t->in[i])
                return true;
    }
    return false;
}

/* Positions by the rates of the step; is there an overlap above `least` times its scale? */
static bool positions_by(sweep *w, double h, double least)
{
    const double a = h * (1 - w->theta), b = h * w->theta, *q = w->q, *v = w->v, *v1 = w->v1;
    const uint8_t *by_end = w->way.by_end;
    double *q1 = w->q1;
    for (int i = 0, n = w->n; i < n; i++)
        q1[i] = q[i] + (by_end[i] ? h * v1[i] : a * v[i] + b * v1[i]);
    system_at(w->s, w->t1, w->q1, w->v1);
    sweep_gaps(w, w->hand.act, (size_t)w->hand.nact);
    return overlap_left(w, least);
}

/* Does dof k take part in the contact? Most do not in a contact that lists all dofs. */
static bool takes_part(const contact *c, int k)
{
    return c->dof || c->H[k] != 0;
}

/* Lets the bodies of a contact move by the rate at the end; x1 contains the rates of their motion. */
static void go_by_end(sweep *w, const contact *c, int look)
{
    for (int k = 0; k < c->n; k++) {
        int dof = dof_of(c, k);
        if (!takes_part(c, k))
            continue;
        if (!w->way.by_end[dof])
            w->way.by_end_since[dof] = look;
        w->way.by_end[dof] = 1;
        w->room.x1[dof] = w->v1[dof];
    }
}

static double way_rate(const sweep *w, int i)
{
    return w->way.by_end[i] ? w->v1[i] : 0.5 * (w->v[i] + w->v1[i]);
}

/* Sum of the absolute values of its terms. */
static double rate_size(const contact *c, const double *row, const double *rate)
{
    double size = 0;
    for (int k = 0; k < c->n; k++)
        size += fabs(row[k] * rate[dof_of(c, k)]);
    return size;
}

/* Does one of its bodies move by the mean rate? */
static bool by_mean(const sweep *w, const gap_row *row)
{
    for (int j = 0; j < row->all; j++)
        if (!w->way.by_end[row->dof[j]] && (!row->whole || row->H[j] != 0))
            return true;
    return false;
}

/* Does the impulse of contact i do positive work along the motion of its bodies, in total or by its normal
   part? (Dissipation by friction does not compensate for bodies that are pressed together while they
   separate.) */
static bool gains(const sweep *w, int i, const double *rate)
{
    const gap_row *row = &w->contacts.table.row[w->hand.place[i]];
    const cone *o = &w->hand.cone[i];
    const double *r = w->hand.rr + o->row;
    double normal = r[0] * (row_rate(row, rate) + row->ht), power = normal, speed = 0;
    const contact *c = o->d ? w->hand.act[i]->c : NULL;
    for (int a = 0; a < o->d; a++)
        power += r[1 + a] * (contact_rate(c, c->S + (size_t)a * (size_t)c->n, rate) + c->s0[a]);
    if (!(larger(power, normal) > 0)) /* most lose energy; for those nothing else is needed */
        return false;
    for (int j = 0; j < row->n; j++)
        speed += fabs(row->H[j] * rate[row->dof[j]]);
    double size = fabs(r[0]) * (speed + fabs(row->ht));
    for (int a = 0; a < o->d; a++)
        size += fabs(r[1 + a]) * (rate_size(c, c->S + (size_t)a * (size_t)c->n, rate) + fabs(c->s0[a]));
    return larger(power, normal) > POWER_ROUNDED * size;
}

/* Has the motion of the bodies of contact i changed since the previous pass? */
static bool led_on(const sweep *w, int i, int look)
{
    const gap_row *row = &w->contacts.table.row[w->hand.place[i]];
    for (int j = 0; j < row->all; j++)
        if (w->way.by_end_since[row->dof[j]] >= look - 1)
            return true;
    return false;
}

/* Without friction and restitution, only contacts that separate at the start can gain energy. */
static bool any_may_gain(const sweep *w)
{
    const contact_table *t = &w->contacts.table;
    for (int i = 0; i < w->hand.nact; i++)
        if (pushes_open(w, i) &&
            (w->hand.cone[i].d || t->row[w->hand.place[i]].e > 0 || t->un[w->hand.place[i]] > 0))
            return true;
    return false;
}

/* Lists contacts that push and have a body that moves by the mean rate; returns their number. */
static int may_gain(const sweep *w, int *at)
{
    int n = 0;
    for (int i = 0; i < w->hand.nact; i++)
        if (pushes_open(w, i) && by_mean(w, &w->contacts.table.row[w->hand.place[i]]))
            at[n++] = i;
    return n;
}

/* If an impulse would do positive work at the mean rate (for example if bodies were separating and are
   pressed together), its bodies move by the rate at the end, which gains no energy. *look counts the passes
   over all contacts in the step. */
static void no_gain(sweep *w, int *look)
{
    const contact_table *t = &w->contacts.table;
    if (!any_may_gain(w))
        return;
    arena_pos mark = arena_mark(w->scratch);
    int *at = arena_alloc(w->scratch, (size_t)w->hand.nact * sizeof *at), n = may_gain(w, at);
    for (int i = 0; i < w->n; i++)
        w->room.x1[i] = way_rate(w, i);
    for (bool more = true; more; ++*look) {
        more = false;
        for (int k = 0; k < n; k++) {
            int i = at[k];
            if ((*look > 1 && !led_on(w, i, *look)) || !by_mean(w, &t->row[w->hand.place[i]]) ||
                !gains(w, i, w->room.x1))
                continue;
            go_by_end(w, w->hand.act[i]->c, *look);
            more = true;
        }
    }
    arena_release(w->scratch, mark);
}

/* Bodies of overlapping contacts move by the rate at the end, which satisfies gap + h u_n >= 0. */
static bool no_overlap(sweep *w, double h, double least, int look)
{
    const contact_table *t = &w->contacts.table;
    bool more = false;
    for (int i = 0; i < w->hand.nact; i++) {
        int at = w->hand.place[i];
        if (w->hand.cone[i].kind == CONE_GIVEN)
            continue;
        double over = w->hand.cone[i].kind == CONE_BILATERAL ? fabs(t->gap[at]) : -t->gap[at];
        if (!(over > 0) || !(over > least * *w->hand.act[i]->length))
            continue;
        const contact *c = w->hand.act[i]->c;
        /* it approached above tolerance, or others were moved */
        bool any = -t->un[at] * h > over, all = true;
        for (int j = 0; j < c->n; j++) {
            any |= w->way.by_end[dof_of(c, j)];
            all &= w->way.by_end[dof_of(c, j)];
        }
        if (!any || all)
            continue;
        more = true;
        go_by_end(w, c, look);
    }
    return more;
}

/* Opens remaining overlaps; gaps must be evaluated at the end positions. */
static void no_overlaps_left(sweep *w)
{
    enum { ROUNDS = 6 };
    for (int round = 0; round < ROUNDS && overlap_left(w, sweep_small_share(w)); round++) {
        sweep_open(w);
        system_at(w->s, w->t1, w->q1, w->v1);
        sweep_gaps(w, w->hand.act, (size_t)w->hand.nact);
    }
}

/* ---- books ---- */
/* Energy that dofs moving by the rate at the end lose. */
static double lost_by_end(const sweep *w, bool crowd)
{
    double lost = 0, *dv = w->room.x2, *mdv = w->room.x3;
    for (int i = 0; i < w->n; i++)
        dv[i] = w->v1[i] - w->v[i];
    mass_times(w->s, w->M, dv, mdv);
    for (int i = 0; i < w->n; i++)
        if (w->way.by_end[i] && !(crowd && w->policy.islands.calm[i]))
            lost += 0.5 * dv[i] * mdv[i];
    return lost;
}

/* The rate along which the reaction of a bound on rates does work. */
static double pushed_rate(const sweep *w, const contact_state *k, const double *rate)
{
    return contact_rate(k->c, along_mean(w, k) ? k->Hm : k->c->H, rate);
}

/* Energy gained by the contacts in the step: work along the motion, and minus half of dv.M dv for dofs that
   move by the rate at the end. *to_surfaces: energy given to moving surfaces. crowd: without calm islands. */
static double contacts_gain(sweep *w, bool crowd, double *to_surfaces)
{
    const island_parts *x = &w->policy.islands;
    double gain = 0, given = 0, *rate = w->room.x1;
    for (int i = 0; i < w->n; i++)
        rate[i] = way_rate(w, i);
    if (w->n > 0 && memchr(w->way.by_end, 1, (size_t)w->n))
        gain = -lost_by_end(w, crowd);
    for (int i = 0, n = w->hand.nact; i < n; i++) {
        if (crowd && x->part[w->hand.place[i]] == PART_CALM)
            continue;
        const cone *o = &w->hand.cone[i];
        const double *r = w->hand.rr + o->row;
        fetch_slip(w->hand.act, i, n);
        if (cone_normal(o)) {
            const gap_row *row = &w->contacts.table.row[w->hand.place[i]];
            double push = *r++;
            if (push != 0 && w->hand.act[i]->c->fam->f->of_rates)
                given -= push * pushed_rate(w, w->hand.act[i], rate); /* it drives, and dissipates nothing */
            else if (push != 0) {
                gain += push * (row_rate(row, rate) + row->ht);
                given += push * row->ht;
            }
        }
        if (!o->d)
            continue;
        const contact *c = w->hand.act[i]->c;
        for (int a = 0; a < o->d; a++) {
            if (r[a] == 0)
                continue;
            gain += r[a] * (contact_rate(c, c->S + (size_t)a * (size_t)c->n, rate) + c->s0[a]);
            given += r[a] * c->s0[a];
        }
    }
    *to_surfaces = given;
    return gain + sweep_brake_power(w, false, rate);
}

/* The same for the crowd alone; the forces at both ends of the step are known, and already swapped. */
static void account_crowd(sweep *w)
{
    island_parts *x = &w->policy.islands;
    double given, gain = contacts_gain(w, true, &given), work = 0, th = w->theta;
    for (int i = 0; w->s->driving.n && i < w->n; i++)
        if (!x->calm[i])
            work += (w->q1[i] - w->q[i]) * ((1 - th) * w->account.driving1[i] + th * w->account.driving[i]);
    x->work += work - given;
    x->dissipated += x->opened - gain;
    x->opened = 0;
}

/* Contacts that open overlaps by moving bodies do work against the forces, which they lost before. */
void sweep_whole_account(sweep *w, double h)
{
    double given = w->account.given, gain = w->account.gain, *way = w->room.x1;
    if (!w->account.gain_known)
        gain = contacts_gain(w, false, &given);
    for (int i = 0; i < w->n; i++)
        way[i] = w->q1[i] - w->q[i];
    w->account.books->work += sweep_driven(w, h, way) - given;
    w->account.books->dissipated += w->account.opened - gain;
    if (w->policy.islands.stage == STEP_CROWD)
        account_crowd(w);
}

/* Rotating bodies that are pushed move by the rate at the end, with all their dofs: the condition on that
   rate keeps their gaps open, and no impulse does positive work. */
static void pushed_by_end(sweep *w)
{
    const matrix_groups *g = w->crowd.bodies;
    for (int i = 0; i < w->hand.nact; i++) {
        const contact *c = w->hand.act[i]->c;
        if ((w->hand.cone[i].kind != CONE_BILATERAL && !pushes_open(w, i)) || c->fam->f->of_rates)
            continue;
        for (int j = 0; j < c->n; j++) {
            int body = g->of[dof_of(c, j)];
            for (int k = g->first[body]; k < g->first[body + 1]; k++)
                w->way.by_end[g->dof[k]] = 1;
        }
    }
}

/* Bodies that are wedged have reactions whose rounding alone is a gain: then all of the crowd go by the end.
 */
static void all_by_end(sweep *w, double h)
{
    for (int i = 0; i < w->n; i++)
        w->way.by_end[i] = !w->policy.islands.may || !w->policy.islands.calm[i];
    positions_by(w, h, ROUND_500);
    w->account.gain_known = false;
}

void sweep_whole_open(sweep *w)
{
    const double th = w->theta, *f = w->f, *f1 = w->f1;
    double *used = w->account.used;
    for (int i = 0, n = w->n; i < n; i++)
        used[i] = (1 - th) * f[i] + th * f1[i];
    no_overlaps_left(w);
}

bool sweep_whole_gained(const sweep *w, double gain)
{
    return gain > 0 && gain > ROUND_500 * (mass_norm2(w->s, w->M, w->v) + mass_norm2(w->s, w->M, w->v1));
}

bool sweep_whole_positions(sweep *w, double h)
{
    const double least = ROUND_500;
    memset(w->way.by_end, 0, (size_t)w->n * sizeof *w->way.by_end);
    memset(w->way.by_end_since, -1, (size_t)w->n * sizeof *w->way.by_end_since);
    w->account.opened = w->policy.islands.opened = 0;
    bool free = w->s->mass_constant && !w->s->first_order;
    int look = 1;
    if (free)
        no_gain(w, &look);
    else if (w->crowd.by_bodies)
        pushed_by_end(w);
    for (int round = 0; round < 64 && positions_by(w, h, least); round++) {
        if (!free || !no_overlap(w, h, least, look))
            break;
        no_gain(w, &look); /* bodies that now move by the rate at the end may make others gain energy */
    }
    w->account.gain_known = free;
    if (free)
        w->account.gain = contacts_gain(w, false, &w->account.given);
    if (free && sweep_whole_gained(w, w->account.gain))
        all_by_end(w, h);
    sweep_whole_open(w);
    return true;
}
