/* sweep_whole: a step at once, where impacts are too many to be followed one by one.  All contacts that may
   close in it are part of it:  u_n + gap/h >= 0,  or restitution where the step would meet the surface.
   Bodies go by the mean rate, or by the rate at the end where they would overlap; overlaps that are left are
   pushed open. */
#include <math.h>
#include <string.h>
#include "sweep.h"

static int dof_of(const contact *c, int k)
{
    return c->dof ? c->dof[k] : k;
}

/* overlaps that are left as they are */
static double small_share(const sweep *w)
{
    return fmin(fmax(0.01 * w->tol, 1e-12), 1e-5);
}

static double small_overlap(const sweep *w, const contact_state *k)
{
    return *k->length * small_share(w);
}

/* ---- who takes part ---- */
/* By how much smooth forces change the rate of the gap in the step, their parts taken together by size. */
static double forced_rate(const sweep *w, const contact *c)
{
    double change = 0;
    for (int k = 0; k < c->n; k++)
        change += fabs(c->H[k] * (w->v1[dof_of(c, k)] - w->v[dof_of(c, k)]));
    return change;
}

/* Gaps up to this count as closed in a step of size h: the bodies then rest that far apart, at most 1e-4 of
   the way that forces move them in the step, and less where the tolerance is tighter than 1e-8.  Such gaps
   make the step problem of a pile nearly a vertex, far from the start. */
static double micro_gap(const sweep *w, const contact *c, double h)
{
    return fmin(1e-4, sqrt(w->tol)) * h * forced_rate(w, c);
}

/* What is asked of the gap's rate besides the motion of its surfaces. */
static double gap_ahead(const sweep *w, const contact_state *k, double h)
{
    const contact *c = k->c;
    double gap = *c->gap;
    /* rounding is no gap, nor is what lies far below a step's resolution */
    double ahead = fabs(gap) > 1e-14 * *k->length ? gap / h : 0;
    if (gap > 0 && gap <= micro_gap(w, c, h))
        ahead = 0;
    /* it meets the surface within the step: restitution now, unless the rebound is below what a step resolves
     */
    if (c->e > 0 && k->hits < MAX_HITS && gap + h * k->un <= 0 &&
        -c->e * k->un > 2 * fabs(contact_rate(c, c->H, w->v1) + c->ht - k->un))
        return c->e * k->un;
    /* an overlap is opened by positions, not by speed */
    return ahead < 0 && k->relation == REL_GAP ? 0 : ahead;
}

/* how far the gap may close in the step: any of its bodies may be stopped */
static double reach_of(const sweep *w, const contact *c)
{
    double reach = fabs(c->ht);
    for (int k = 0; k < c->n; k++) {
        int dof = dof_of(c, k);
        reach += fabs(c->H[k]) * larger(fabs(w->v[dof]), fabs(w->v1[dof]));
    }
    return reach;
}

static void join_one(sweep *w, size_t i, double h)
{
    contact_table *t = &w->contacts.table;
    contact_state *k = w->contacts.state[i];
    contact *c = k->c;
    if (!k->rows_fixed || !k->offset_fixed)
        contact_rows(w->s, c, w->M, false);
    if (!t->in[i] && !t->met[i] && !w->crowd.chain.fixed &&
        t->gap[i] > w->contacts.margin * (h * reach_of(w, c) + 2e-4 * *k->length))
        return;
    t->in[i] = true;
    if (!k->still)
        contact_laws(w->s, c, false);
    k->un = gap_rate(k, w->v);
    k->ahead = gap_ahead(w, k, h);
}

/* v1 holds the rates that smooth forces alone would lead to */
static void join(sweep *w, double h)
{
    contact_table *t = &w->contacts.table;
    double near_far = w->contacts.near.far + 1e-3 * w->contacts.near.skin;
    system_at(w->s, w->t, w->q, w->v);
    if (w->policy.tried) /* the gaps at hand are those of a step that was given up */
        sweep_gaps_but(w, NULL);
    memcpy(t->in, t->closed, w->contacts.nstate * sizeof *t->in);
    for (size_t f = 0; f < w->p->ncontact; f++) {
        bool pairs = near_fits(&w->p->contact[f]);
        for (size_t i = t->from[f]; i < t->from[f + 1]; i++)
            if (w->p->contact[f].relation == REL_CLOSED)
                t->in[i] = true;
            else if (!pairs || !(t->gap[i] > near_far))
                join_one(w, i, h);
    }
}

/* none that was left out overlaps at the end */
static bool still_apart(sweep *w)
{
    contact_table *t = &w->contacts.table;
    bool apart = true;
    system_at(w->s, w->t1, w->q1, w->v1);
    sweep_gaps_but(w, t->in);
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        t->met[i] = !t->in[i] && !(t->gap[i] >= 0) && !(t->gap[i] >= -small_overlap(w, w->contacts.state[i]));
        apart &= !t->met[i];
    }
    return apart;
}

static void note_impacts(sweep *w)
{
    double t = w->t;
    w->t = w->t1;
    for (int i = 0; i < w->hand.nact; i++) {
        contact_state *k = w->hand.act[i];
        if (!closed(w, k) && k->relation == REL_GAP && k->un < -k->tol_u && w->hand.rr[k->row] > 0) {
            sweep_impact(w, k, k->un, gap_rate(k, w->v1), w->hand.rr[k->row]);
            busy(w, k);
            k->hits++;
            if (k->out->last_open)
                k->out->last_open[k->c->member] = w->t1;
        }
    }
    w->t = t;
}

bool sweep_whole(sweep *w, double h)
{
    bool ok = true;
    w->policy.whole = true;
    memset(w->contacts.table.met, 0, w->contacts.nstate * sizeof *w->contacts.table.met);
    /* bodies that others set in motion may meet what was too far off: then with a wider look, once more */
    for (w->contacts.margin = 1.5; ok; w->contacts.margin *= 3) {
        w->hand.nact = 0;
        w->t1 = w->t + h;
        ok = sweep_free(w, h) && sweep_near(w, h, w->v1);
        if (!ok)
            break;
        join(w, h);
        sweep_take(w, w->contacts.table.in, NULL);
        ok = sweep_smooth(w, h);
        w->policy.tried = true;
        if (!ok || still_apart(w) || w->contacts.margin > 20)
            break;
    }
    w->policy.tried = !ok;
    w->contacts.margin = 1.5;
    if (ok)
        note_impacts(w);
    return ok;
}

void sweep_whole_end(sweep *w)
{
    for (int i = 0; i < w->hand.nact; i++)
        w->hand.act[i]->ahead = 0;
    memset(w->contacts.table.in, 0, w->contacts.nstate * sizeof *w->contacts.table.in);
    w->policy.whole = false;
}

/* ---- where bodies go ---- */
static double overlap_of(const contact_state *k)
{
    if (k->relation == REL_CLOSED)
        return 0;
    return k->relation == REL_BILATERAL ? fabs(*k->c->gap) : -*k->c->gap;
}

/* is an overlap above that share of its length left, among contacts that take part? */
static bool overlap_left(const sweep *w, double share)
{
    const contact_table *t = &w->contacts.table;
    bool left = false;
    for (size_t f = 0; f < w->p->ncontact && !left; f++) {
        bool held = w->p->contact[f].relation == REL_BILATERAL;
        double most = share * (w->contacts.near.reach > 0 ? w->contacts.near.reach : w->size.lengths[f]);
        if (w->p->contact[f].relation == REL_CLOSED)
            continue;
        for (size_t i = t->from[f]; i < t->from[f + 1]; i++)
            left |= t->in[i] && (held ? fabs(t->gap[i]) : -t->gap[i]) > most;
    }
    return left;
}

/* by the rates of the step; is an overlap above `least` of its length left? */
static bool positions_by(sweep *w, double h, double least)
{
    double a = h * (1 - w->theta), b = h * w->theta;
    for (int i = 0; i < w->n; i++)
        w->q1[i] = w->q[i] + (w->by_end[i] ? h * w->v1[i] : a * w->v[i] + b * w->v1[i]);
    system_at(w->s, w->t1, w->q1, w->v1);
    sweep_gaps(w, w->hand.act, (size_t)w->hand.nact);
    return overlap_left(w, least);
}

/* a contact that lists all dofs has no part in most of them */
static bool takes_part(const contact *c, int k)
{
    return c->dof || c->H[k] != 0;
}

/* x1 holds the rates along which bodies go */
static void go_by_end(sweep *w, const contact *c)
{
    for (int k = 0; k < c->n; k++) {
        int dof = dof_of(c, k);
        if (!takes_part(c, k))
            continue;
        w->by_end[dof] = 1;
        w->room.x1[dof] = w->v1[dof];
    }
}

static double way_rate(const sweep *w, int i)
{
    return w->by_end[i] ? w->v1[i] : 0.5 * (w->v[i] + w->v1[i]);
}

/* does the contact's impulse do work along the way its bodies go? */
static bool gains(const sweep *w, const contact_state *k, const double *rate)
{
    const contact *c = k->c;
    double power = 0, size = 0, speed = 0;
    bool new = false;
    for (int j = 0; j < c->n; j++) {
        new |= takes_part(c, j) && !w->by_end[dof_of(c, j)];
        speed = larger(speed, fabs(rate[dof_of(c, j)]));
    }
    for (int a = 0; new &&a < rows_of(k); a++) {
        double r = w->hand.rr[k->row + a], still = a < k->normal ? c->ht : c->s0[a - k->normal];
        power += r * (contact_rate(c, row_of(k, c->H, c->S, a), rate) + still);
        size += fabs(r) * (speed + fabs(still));
    }
    return power > 1e-9 * size;
}

/* contact i of the problem has an impulse, and may let go */
static bool pushes_open(const sweep *w, int i)
{
    return w->hand.cone[i].kind == CONE_UNILATERAL && w->hand.rr[w->hand.cone[i].row] > 0;
}

/* Bodies on which an impulse would do work at the mean rate, as where they went apart and are pressed anew,
 * go by the rate at the end: that is no gain. */
static void no_gain(sweep *w)
{
    bool may = false; /* without friction and restitution only what goes apart at the start can do so */
    for (int i = 0; i < w->hand.nact && !may; i++)
        may = pushes_open(w, i) && (w->hand.cone[i].d || w->hand.act[i]->c->e > 0 || w->hand.act[i]->un > 0);
    for (int i = 0; i < w->n; i++)
        w->room.x1[i] = way_rate(w, i);
    for (bool more = may; more;) {
        more = false;
        for (int i = 0; i < w->hand.nact; i++) {
            if (!pushes_open(w, i) || !gains(w, w->hand.act[i], w->room.x1))
                continue;
            go_by_end(w, w->hand.act[i]->c);
            more = true;
        }
    }
}

/* bodies of overlapping contacts go by the rate at the end, for which gap + h u_n >= 0 was asked */
static bool no_overlap(sweep *w, double h, double least)
{
    bool more = false;
    for (int i = 0; i < w->hand.nact; i++) {
        const contact_state *k = w->hand.act[i];
        double over = overlap_of(k);
        if (!(over > least * *k->length))
            continue;
        const contact *c = k->c;
        bool any = -k->un * h > over, all = true; /* it came at a speed, or others were moved */
        for (int j = 0; j < c->n; j++) {
            any |= w->by_end[dof_of(c, j)];
            all &= w->by_end[dof_of(c, j)];
        }
        if (!any || all)
            continue;
        more = true;
        go_by_end(w, c);
    }
    return more;
}

/* ---- overlaps are pushed open ---- */
/* Normal rows of the contacts at hand, one after the other. */
typedef struct opening {
    int n, *at, *dof;
    double *J, *K, *A, *gap, *small;
    double *l, *before, *direction; /* moves; as before; their conjugate direction */
    bool *held;
} opening;

static opening opening_new(sweep *w, arena *a)
{
    opening o = { 0 };
    int entries = 0;
    for (int i = 0; i < w->hand.nact; i++)
        entries += w->hand.act[i]->normal ? w->hand.act[i]->c->n : 0;
    size_t m = (size_t)w->hand.nact;
    o.at = arena_array(a, int, m + 1);
    o.dof = arena_array(a, int, entries);
    o.J = arena_array(a, double, entries);
    o.K = arena_array(a, double, entries);
    double **by_contact[] = { &o.A, &o.gap, &o.small, &o.l, &o.before, &o.direction };
    for (size_t i = 0; i < sizeof by_contact / sizeof *by_contact; i++)
        *by_contact[i] = arena_array(a, double, m);
    o.held = arena_array(a, bool, m);
    const double *M = w->s->mass_constant ? w->M : w->M1;
    for (int i = 0; i < w->n; i++)
        w->lumped[i] = 1 / M[matrix_at(&w->s->mass_shape, i, i)];
    for (int i = 0; i < w->hand.nact; i++) {
        const contact *c = w->hand.act[i]->c;
        if (!w->hand.act[i]->normal)
            continue;
        int at = o.at[o.n];
        for (int k = 0; k < c->n; k++) {
            o.dof[at + k] = dof_of(c, k);
            o.J[at + k] = c->H[k];
            o.K[at + k] = c->H[k] * w->lumped[dof_of(c, k)];
        }
        o.A[o.n] = vec_dot(o.J + at, o.K + at, c->n);
        o.held[o.n] = w->hand.act[i]->relation == REL_BILATERAL;
        o.small[o.n] = small_overlap(w, w->hand.act[i]);
        o.at[++o.n] = at + c->n;
    }
    return o;
}

/* one contact; returns how far it was off, over what is small */
static double open_one(opening *o, int c, double *move)
{
    int n = o->at[c + 1] - o->at[c];
    const int *dof = o->dof + o->at[c];
    const double *J = o->J + o->at[c], *K = o->K + o->at[c];
    double u = o->gap[c];
    for (int k = 0; k < n; k++)
        u += J[k] * move[dof[k]];
    if ((u >= 0 && o->l[c] == 0 && !o->held[c]) || !(o->A[c] > 0))
        return 0;
    double to = o->l[c] - u / o->A[c];
    if (!o->held[c] && to < 0)
        to = 0;
    double dl = to - o->l[c];
    o->l[c] = to;
    for (int k = 0; k < n; k++)
        move[dof[k]] += dl * K[k];
    return fabs(dl) * o->A[c] / o->small[c];
}

static double open_sweep(opening *o, double *move, bool down)
{
    double worst = 0;
    for (int i = 0; i < o->n; i++)
        worst = larger(worst, open_one(o, down ? o->n - 1 - i : i, move));
    return worst;
}

static void open_direction(opening *o, double *move, double *before)
{
    double g2 = 0;
    for (int c = 0; c < o->n; c++) {
        double g = o->l[c] - o->before[c];
        g2 += g * g;
    }
    bool go = *before > 0 && g2 <= *before;
    double beta = go ? g2 / *before : 0;
    for (int c = 0; c < o->n; c++) {
        double g = o->l[c] - o->before[c], dl = beta * o->direction[c];
        o->direction[c] = go ? dl + g : 0;
        if (dl == 0)
            continue;
        o->l[c] += dl;
        for (int k = o->at[c]; k < o->at[c + 1]; k++)
            move[o->dof[k]] += dl * o->K[k];
    }
    *before = go || *before == 0 ? g2 : 0;
}

/* The shortest move with gap + J x >= 0, by sweeps with conjugate directions. */
static void open_overlaps(sweep *w)
{
    enum { SWEEPS = 300 };
    arena_pos mark = arena_mark(w->scratch);
    opening o = opening_new(w, w->scratch);
    double before = 0, *move = w->room.x1;
    memset(move, 0, (size_t)w->n * sizeof *move);
    for (int i = 0, c = 0; i < w->hand.nact; i++)
        if (w->hand.act[i]->normal)
            o.gap[c++] = *w->hand.act[i]->c->gap;
    for (int it = 0; it < SWEEPS; it++) {
        memcpy(o.before, o.l, (size_t)o.n * sizeof *o.l);
        if (larger(open_sweep(&o, move, false), open_sweep(&o, move, true)) <= 0.1)
            break;
        open_direction(&o, move, &before);
    }
    for (int i = 0; i < w->n; i++) {
        w->q1[i] += move[i];
        w->account.opened += w->account.used[i] * move[i];
    }
    arena_release(w->scratch, mark);
}

static bool overlaps(sweep *w)
{
    system_at(w->s, w->t1, w->q1, w->v1);
    sweep_gaps(w, w->hand.act, (size_t)w->hand.nact);
    return overlap_left(w, small_share(w));
}

/* ---- books ---- */
static bool reacts(const sweep *w, int i)
{
    const double *r = w->hand.rr + w->hand.cone[i].row;
    bool any = false;
    for (int a = 0; a < cone_rows(&w->hand.cone[i]); a++)
        any |= r[a] != 0;
    return any;
}

/* Work is done along the way that is gone; where that is by the rate at the end, half of dv.M dv is lost.
 * What contacts gain in the step; *to_surfaces: given to those that move. */
static double contacts_gain(sweep *w, double *to_surfaces)
{
    double gain = 0, given = 0, *rate = w->room.x1, *dv = w->room.x2, *mdv = w->room.x3;
    for (int i = 0; i < w->n; i++) {
        rate[i] = way_rate(w, i);
        dv[i] = w->v1[i] - w->v[i];
    }
    mass_times(w->s, w->M, dv, mdv);
    for (int i = 0; i < w->n; i++)
        if (w->by_end[i])
            gain -= 0.5 * dv[i] * mdv[i];
    for (int i = 0; i < w->hand.nact; i++) {
        if (!reacts(w, i))
            continue;
        const contact_state *k = w->hand.act[i];
        const contact *c = k->c;
        for (int a = 0; a < rows_of(k); a++) {
            double r = w->hand.rr[k->row + a], still = a < k->normal ? c->ht : c->s0[a - k->normal];
            if (r == 0)
                continue;
            gain += r * (contact_rate(c, row_of(k, c->H, c->S, a), rate) + still);
            given += r * still;
        }
    }
    *to_surfaces = given;
    return gain;
}

/* contacts that push overlaps open lift what they lost before */
void sweep_whole_account(sweep *w, double h)
{
    double given = w->account.given, gain = w->account.gain, *way = w->room.x1;
    if (!w->account.gain_known)
        gain = contacts_gain(w, &given);
    for (int i = 0; i < w->n; i++)
        way[i] = w->q1[i] - w->q[i];
    w->account.books->work += sweep_driven(w, h, way) - given;
    w->account.books->dissipated += w->account.opened - gain;
}

bool sweep_whole_positions(sweep *w, double h)
{
    double least = fmin(fmin(fmax(0.01 * w->tol, 1e-12), 1e-5), 1e-13);
    for (int i = 0; i < w->n; i++) {
        w->account.used[i] = (1 - w->theta) * w->f[i] + w->theta * w->f1[i];
        w->by_end[i] = 0;
    }
    w->account.opened = 0;
    bool free = w->s->mass_constant && !w->s->first_order;
    if (free)
        no_gain(w);
    for (int round = 0; round < 64 && positions_by(w, h, least); round++) {
        if (!free || !no_overlap(w, h, least))
            break;
        no_gain(w); /* who goes by the end now may have others gain */
    }
    /* bodies that are wedged have reactions whose rounding alone is a gain: then all go by the end */
    w->account.gain_known = free;
    if (free && (w->account.gain = contacts_gain(w, &w->account.given)) > 0) {
        memset(w->by_end, 1, (size_t)w->n);
        positions_by(w, h, least);
        w->account.gain_known = false;
    }
    for (int round = 0; round < 6 && overlaps(w); round++)
        open_overlaps(w);
    return true;
}
