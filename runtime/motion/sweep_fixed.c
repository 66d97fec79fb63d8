/* sweep_fixed: whole steps for contacts without friction whose rows are constant and have one or two dofs, as
   in columns and trains. The results equal those of sweep_whole.c and sweep_step.c bit for bit, but take
   fewer passes, over packed rows. Functions repeat those of the same name there. */
#include <string.h>
#include "sweep.h"
#include "base/tolerances.h"

/* The row of a contact: with one dof, b = a and the second entry is 0. */
typedef struct fixed_row {
    int a, b;
    double H[2];
    double ht, e; /* rate of its surface, restitution */
} fixed_row;

struct fixed_rows {
    fixed_row *row;
    /* for each contact: the last pass in which one of its bodies was set to move by the rate at the end */
    int *led;
};

/* ---- which models ---- */
static bool contact_fits(const contact_state *k)
{
    const contact *c = k->c;
    const contact_family *f = c->fam->f;
    if (f->of_rates || f->e_of_speed || f->cascade || c->fam->adhesion.k || c->fam->et.k || f->pair.touch)
        return false;
    return k->still && k->rows_fixed && k->relation == REL_GAP && c->fam->d == 0 && c->dof && !c->repeats &&
           c->n >= 1 && c->n <= 2;
}

static bool fixed_fits(const sweep *w)
{
    const system_t *s = w->s;
    if (!w->linear || !s->force_constant || s->force_of_state || s->minv.kind != FACTOR_DIAGONAL ||
        w->p->nevent || s->past || s->base || s->first_order || s->power.n || s->driving.n || s->shapes ||
        s->react || w->stiffness != 0 || w->contacts.near.nof || w->contacts.bounds || w->contacts.feeds ||
        w->contacts.nstate <= FEW_ROWS || !w->crowd.chain.fixed || w->o->only_general || w->o->inputs)
        return false;
    for (size_t i = 0; i < w->contacts.nstate; i++)
        if (!contact_fits(w->contacts.state[i]) || !w->contacts.table.row[i].known)
            return false;
    return true;
}

void sweep_fixed_new(sweep *w)
{
    size_t m = w->contacts.nstate;
    if (!fixed_fits(w))
        return;
    struct fixed_rows *p = w->quick.fixed = arena_make(w->a, struct fixed_rows);
    p->row = arena_array(w->a, fixed_row, m);
    p->led = arena_array(w->a, int, m);
    for (size_t i = 0; i < m; i++) {
        const gap_row *r = &w->contacts.table.row[i];
        p->row[i] = (fixed_row){
            r->dof[0], r->dof[r->n - 1], { r->H[0], r->n == 2 ? r->H[1] : 0 }, r->ht, r->e
        };
    }
}

bool sweep_fixed_fits(const sweep *w, double h)
{
    const problem_at_hand *o = &w->hand;
    const act_known *known = &o->known;
    return w->quick.fixed && !w->policy.tried && w->policy.islands.stage == STEP_UNDIVIDED && !o->watch &&
           (size_t)o->nact == w->contacts.nstate && known->still && known->rows == known->stamp &&
           known->cones == known->stamp && known->cone_step == h && known->cone_end == w->theta;
}

/* see row_rate */
static inline double fixed_rate(const fixed_row *r, const double *v)
{
    double sum = 0;
    return sum + r->H[0] * v[r->a] + r->H[1] * v[r->b];
}

static inline double fixed_size(const fixed_row *r, const double *v)
{
    return fabs(r->H[0] * v[r->a]) + fabs(r->H[1] * v[r->b]);
}

/* ---- the problem ---- */
/* Rates without reactions: `free` for the search for contacts, v1 for the step. */
static void rates_ahead(sweep *w, double h, double *free)
{
    const double *light = w->s->minv.a, *f = w->f, *v = w->v, th = w->theta;
    double *v1 = w->v1;
    vec_copy(w->f1, w->f, w->n);
    for (int i = 0, n = w->n; i < n; i++) {
        free[i] = v[i] + h * (light[i] * f[i]);
        v1[i] = v[i] + light[i] * (h * ((1 - th) * f[i] + th * f[i]));
    }
}

/* The required rate of the gap, without the motion of its surface. least: gaps of the family above this are
   more than rounding; micro: see sweep_micro_time. */
static inline double gap_ahead(const sweep *w, const fixed_row *r, size_t i, double h, double least,
                               double micro, const double *free)
{
    const contact_table *t = &w->contacts.table;
    const double *v = w->v;
    double gap = t->gap[i], un = t->un[i], ahead = fabs(gap) > least ? gap / h : 0;
    if (gap > 0 &&
        gap <= micro * (fabs(r->H[0] * (free[r->a] - v[r->a])) + fabs(r->H[1] * (free[r->b] - v[r->b]))))
        ahead = 0;
    if (r->e > 0 && t->hits[i] < MAX_HITS && gap + h * un <= 0 &&
        -r->e * un > 2 * fabs(fixed_rate(r, free) + r->ht - un))
        return r->e * un;
    return ahead < 0 ? 0 : ahead;
}

/* Sets up the current problem: the required rate of each gap and the initial impulses. */
static void fixed_join(sweep *w, double h, double micro, const double *free)
{
    contact_table *t = &w->contacts.table;
    const fixed_row *row = w->quick.fixed->row;
    double *off = w->hand.off, *rr = w->hand.rr;
    for (size_t f = 0; f < w->p->ncontact; f++) {
        double least = ROUND_50 * w->size.lengths[f];
        for (size_t i = t->from[f], end = t->from[f + 1]; i < end; i++) {
            const fixed_row *r = &row[i];
            t->un[i] = fixed_rate(r, w->v) + r->ht;
            t->ahead[i] = gap_ahead(w, r, i, h, least, micro, free);
            double asked = r->ht + t->ahead[i], rate = fixed_rate(r, w->v1);
            off[i] = fabs(rate + asked) <= 0.5 * t->tol_u[i]
                         ? -rate
                         : asked; /* a rate that is only rounding counts as 0 */
            rr[i] = h * t->r[i];
        }
    }
}

static bool all_finite(const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += 0 * x[i];
    return sum == 0;
}

/* ---- positions ---- */
/* The bodies of contact i move by the rate at the end of the step. rate: the rates by which bodies move. */
static void go_by_end(sweep *w, size_t i, int look, double *rate)
{
    struct fixed_rows *p = w->quick.fixed;
    const contact_list *l = &w->crowd.chain.act;
    const int dof[] = { p->row[i].a, p->row[i].b };
    for (int k = 0; k < 2; k++) {
        for (int at = l->at_dof[dof[k]]; !w->way.by_end[dof[k]] && at < l->at_dof[dof[k] + 1]; at++)
            p->led[l->row_of[at]] = look;
        w->way.by_end[dof[k]] = 1;
        rate[dof[k]] = w->v1[dof[k]];
    }
}

/* Does the impulse r do positive work at these rates, beyond rounding? */
static inline bool gains(const fixed_row *row, double r, const double *rate)
{
    double power = r * (fixed_rate(row, rate) + row->ht);
    return power > 0 && power > POWER_ROUNDED * (r * (fixed_size(row, rate) + fabs(row->ht)));
}

/* Returns whether a body was set to move by the rate at the end. */
static bool no_gain(sweep *w, int *look, double *rate)
{
    const struct fixed_rows *p = w->quick.fixed;
    const uint8_t *by_end = w->way.by_end;
    const double *rr = w->hand.rr;
    bool any = false;
    for (bool more = true; more; ++*look) {
        more = false;
        for (size_t i = 0, m = w->contacts.nstate; i < m; i++) {
            const fixed_row *r = &p->row[i];
            if (!(rr[i] > 0) || (*look > 1 && p->led[i] < *look - 1) || (by_end[r->a] && by_end[r->b]) ||
                !gains(r, rr[i], rate))
                continue;
            go_by_end(w, i, *look, rate);
            more = any = true;
        }
    }
    return any;
}

static bool no_overlap(sweep *w, double h, double least, int look, double *rate)
{
    const contact_table *t = &w->contacts.table;
    const fixed_row *row = w->quick.fixed->row;
    const uint8_t *by_end = w->way.by_end;
    bool more = false;
    for (size_t i = 0; i < t->n; i++) {
        double over = -t->gap[i];
        if (!(over > 0) || !(over > least * *w->contacts.state[i]->length))
            continue;
        bool a = by_end[row[i].a], b = by_end[row[i].b];
        if (!(-t->un[i] * h > over || a || b) || (a && b))
            continue;
        more = true;
        go_by_end(w, i, look, rate);
    }
    return more;
}

/* Computes positions and gaps at the end; is there an overlap above `least` of its length? */
static bool positions_by(sweep *w, double h, double least, bool led)
{
    const contact_table *t = &w->contacts.table;
    const double a = h * (1 - w->theta), b = h * w->theta, *q = w->q, *v = w->v, *v1 = w->v1;
    const uint8_t *by_end = w->way.by_end;
    double *q1 = w->q1;
    if (led)
        for (int i = 0, n = w->n; i < n; i++)
            q1[i] = q[i] + (by_end[i] ? h * v1[i] : a * v[i] + b * v1[i]);
    else
        for (int i = 0, n = w->n; i < n; i++)
            q1[i] = q[i] + (a * v[i] + b * v1[i]);
    system_at(w->s, w->t1, w->q1, w->v1);
    sweep_gaps_but(w, NULL);
    for (size_t f = 0; f < w->p->ncontact; f++) {
        double most = least * w->size.lengths[f];
        for (const double *gap = t->gap + t->from[f], *end = t->gap + t->from[f + 1]; gap < end; gap++)
            if (-*gap > most)
                return true;
    }
    return false;
}

/* Work of the impulses at these rates, minus `lost`; *given: its part on moving surfaces. */
static double gain_of(const sweep *w, const double *rate, double lost, double *given)
{
    const fixed_row *row = w->quick.fixed->row;
    const double *rr = w->hand.rr;
    double gain = -lost, to = 0;
    for (size_t i = 0, m = w->contacts.nstate; i < m; i++) {
        if (rr[i] == 0)
            continue;
        gain += rr[i] * (fixed_rate(&row[i], rate) + row[i].ht);
        to += rr[i] * row[i].ht;
    }
    *given = to;
    return gain;
}

static bool any_may_gain(const sweep *w)
{
    const contact_table *t = &w->contacts.table;
    const fixed_row *row = w->quick.fixed->row;
    for (size_t i = 0; i < t->n; i++)
        if (w->hand.rr[i] > 0 && (row[i].e > 0 || t->un[i] > 0))
            return true;
    return false;
}

/* Energy lost by bodies that move by the rate at the end. */
static double lost_by_end(const sweep *w)
{
    double lost = 0;
    for (int i = 0; i < w->n; i++) {
        double dv = w->v1[i] - w->v[i];
        if (w->way.by_end[i])
            lost += 0.5 * dv * (w->M[i] * dv);
    }
    return lost;
}

static void all_by_end(sweep *w, double *rate)
{
    for (int i = 0; i < w->n; i++) {
        w->way.by_end[i] = !w->policy.islands.may || !w->policy.islands.calm[i];
        rate[i] = w->way.by_end[i] ? w->v1[i] : 0.5 * (w->v[i] + w->v1[i]);
    }
}

/* As sweep_whole_positions. */
static void fixed_positions(sweep *w, double h)
{
    enum { ROUNDS = 64 };
    struct fixed_rows *p = w->quick.fixed;
    const double least = ROUND_500;
    double *rate = w->room.x1;
    bool led = false, deep = false;
    int look = 1;
    for (int i = 0, n = w->n; i < n; i++)
        rate[i] = 0.5 * (w->v[i] + w->v1[i]);
    memset(w->way.by_end, 0, (size_t)w->n * sizeof *w->way.by_end);
    bool may = any_may_gain(w);
    if (may) {
        memset(p->led, -1, w->contacts.nstate * sizeof *p->led);
        led = no_gain(w, &look, rate);
    }
    for (int round = 0; round < ROUNDS && (deep = positions_by(w, h, least, led)); round++) {
        if (!led && !may)
            memset(p->led, -1, w->contacts.nstate * sizeof *p->led);
        if (!no_overlap(w, h, least, look, rate))
            break;
        led = true;
        if (may)
            no_gain(w, &look, rate);
    }
    double given, gain = gain_of(w, rate, led ? lost_by_end(w) : 0, &given);
    if (sweep_whole_gained(w, gain)) {
        all_by_end(w, rate);
        deep = positions_by(w, h, least, true);
        gain = gain_of(w, rate, lost_by_end(w), &given);
    }
    w->account.opened = w->policy.islands.opened = 0;
    w->account.gain = gain;
    w->account.given = given;
    w->account.gain_known = true;
    if (deep) /* otherwise there is no overlap to open: only larger ones count */
        sweep_whole_open(w);
}

bool sweep_fixed(sweep *w, double h)
{
    double *free = w->room.x2;
    w->t1 = w->t + h;
    rates_ahead(w, h, free);
    memset(w->contacts.table.in, true, w->contacts.nstate * sizeof *w->contacts.table.in);
    sweep_tolerance(w, closed_now(&w->contacts.table));
    double micro = sweep_micro_time(w, h);
    sweep_tolerance(w, w->hand.nact);
    fixed_join(w, h, micro, free);
    w->matrix.dinv = &w->s->minv;
    w->hand.end = w->theta;
    w->hand.step = h;
    sweep_cones(w);
    w->hand.known.offsets = -1;
    w->policy.tried = true;
    if (!sweep_solve_put(w, false, w->v1, w->t1))
        return false;
    if (!all_finite(w->v1, w->n))
        return sweep_not_finite(w);
    fixed_positions(w, h);
    w->r->count.fixed++;
    return true;
}

/* ---- the end of the step ---- */
void sweep_fixed_note(sweep *w)
{
    const contact_table *t = &w->contacts.table;
    const double *rr = w->hand.rr;
    for (size_t i = 0; i < t->n; i++)
        if (rr[i] > 0 && !t->closed[i] && t->un[i] < -t->tol_u[i])
            sweep_whole_note(w, (int)i);
}

/* The largest values of all dofs and the tolerances that follow: sweep_sizes and sweep_sizes_known. */
static void fixed_sizes(sweep *w)
{
    contact_table *t = &w->contacts.table;
    const fixed_row *row = w->quick.fixed->row;
    double *qmax = w->size.qmax, *vmax = w->size.vmax, h = w->h;
    const double *q = w->q, *v = w->v;
    bool grown = false;
    for (int i = 0, n = w->n; i < n; i++) {
        double speed = fabs(v[i]), far = larger(fabs(q[i]), h * speed);
        grown |= speed > vmax[i] || far > qmax[i];
        vmax[i] = larger(speed, vmax[i]);
        qmax[i] = larger(far, qmax[i]);
    }
    for (size_t f = 0; grown && f < w->p->ncontact; f++) {
        double length = w->size.lengths[f];
        for (size_t i = t->from[f]; i < t->from[f + 1]; i++) {
            const fixed_row *r = &row[i];
            double a = fabs(r->H[0]), b = fabs(r->H[1]), size = a * qmax[r->a] + b * qmax[r->b];
            length = larger(length, size);
            t->tol_gap[i] = GAP_IS_ZERO * size;
            t->tol_u[i] = RATE_IS_ZERO * (a * vmax[r->a] + b * vmax[r->b] + fabs(r->ht));
        }
        w->size.lengths[f] = length;
    }
}

void sweep_fixed_accept(sweep *w, double h)
{
    contact_table *t = &w->contacts.table;
    const fixed_row *row = w->quick.fixed->row;
    const double *rr = w->hand.rr;
    t->counted = true;
    for (size_t i = 0; i < t->n; i++) {
        t->r[i] = rr[i] != 0 ? rr[i] / h : 0;
        t->P[i] += rr[i];
        if (rr[i] > 0 || !(fixed_rate(&row[i], w->v1) + row[i].ht > t->tol_u[i]))
            continue;
        t->closed[i] = false;
        t->r[i] = 0;
    }
    SWAP(w->q, w->q1);
    SWAP(w->v, w->v1);
    w->t = w->t1;
    w->fresh = false;
    fixed_sizes(w);
}
