/* events: Taylor-series integration of M q'' = f + reactions, with impacts, contact modes, switches and
   breaking points located on the series. One step: decide the modes, compute the series, find the first time
   at which a mode ends, store the piece up to there, then handle what happens there. */
#include <math.h>
#include <string.h>
#include "events.h"
#include "base/tolerances.h"

enum { OPTION_TOLERANCE, OPTION_ORDER, OPTION_STEP };
enum { MAX_CONTACTS = 64, MAX_DOFS = 200, MAX_ORDER = 60 };

/* ---- where the modes end ---- */
/* The end of a piece, s after its start. low: the rounding remainder of s. */
typedef struct ending {
    double s, low;
    end_kind kind;
    int who;
    const site *at;
} ending;

static void end_at(ending *e, double s, end_kind kind, int who)
{
    if (s < e->s)
        *e = (ending){ s, 0, kind, who, NULL };
}

/* Sets to 0 the leading coefficients that the decision on modes took for 0. Those before `from` are known to
   be 0. */
static void as_decided(const ev *w, double *f, int from, int order, double zero)
{
    double h = ev_scale(w) / w->series.in.unit, p = pow(h, from);
    if (w->sizes.decided != w->t)
        return;
    for (int j = 0; j < from; j++)
        f[j] = 0;
    for (int j = from; j <= order && fabs(f[j]) * p <= zero; j++, p *= h)
        f[j] = 0;
}

static void end_cone(ev *w, rub *k, int i, ending *e)
{
    int K = w->K - 1;
    double f[w->width], b[w->width], size = ev_zero_friction(w, k), zero = 0.1 * size;
    bool given = k->c->fam->f->relation == REL_CLOSED || k->c->fam->f->friction == FRICTION_TRESCA,
         turned = ev_frame_turns(k);
    const double *rn = turned ? k->series.fn : k->series.rn;
    for (int j = 0; j <= K; j++)
        b[j] = given ? k->series.bound[j] : series_mul(k->series.beta, rn, j);
    if (k->c->d == 1 && !turned) {
        for (int s = -1; s <= 1; s += 2) {
            for (int j = 0; j <= K; j++)
                f[j] = b[j] - s * k->series.rt[j];
            as_decided(w, f, 0, K, size);
            end_at(e, ev_crossing(w, f, K, e->s, zero), END_CONE, i);
        }
        return;
    }
    for (int j = 0; j <= K; j++)
        f[j] = series_mul(b, b, j) - ev_friction2(w, k, j);
    as_decided(w, f, 0, K, size * fmax(fabs(b[0]), size));
    end_at(e, ev_crossing(w, f, K, e->s, zero * fmax(ev_size(w, b, K, e->s), zero)), END_CONE, i);
}

/* Hovering ends where the acting part of the bound reaches 0, or the full bound. */
static void end_hover(ev *w, rub *k, int i, ending *e)
{
    int K = w->K - 1;
    double f[w->width], zero = ev_zero_force(w, k->grip_t);
    for (int rest = 0; rest < 2; rest++) {
        for (int j = 0; j <= K; j++)
            f[j] = rest ? k->series.most[j] - k->series.bound[j] : k->series.bound[j];
        as_decided(w, f, 0, K, zero);
        end_at(e, ev_crossing(w, f, K, e->s, 0.1 * zero), END_RN, i);
    }
}

/* First time at which the quantity bounded by a constraint on rates reaches its bound. */
static double bounded_crossing(const ev *w, const rub *k, double h)
{
    double f[w->width], zero = fmax(ROUND_500 * ev_size(w, k->series.g, w->K - 1, h), 0.1 * k->zero.tol_u);
    memcpy(f, k->series.g, (size_t)w->K * sizeof *f);
    if (k->candidate)
        as_decided(w, f, 1, w->K - 1, k->zero.zero_gap);
    return ev_crossing(w, f, w->K - 1, h, zero);
}

/* If a gap opens or closes at a rate above tolerance, its value counts however small it is compared with
   later values: a rebound starts at 0, and the height of a low flight may be below the rounding of a whole
   step. */
static double gap_crossing(const ev *w, const rub *k, double h)
{
    if (k->c->fam->f->of_rates)
        return bounded_crossing(w, k, h);
    double f[w->width],
        zero = fmax(ROUND_500 * ev_size(w, k->series.g, w->K, h), EV_GAP_FINER * k->zero.tol_gap);
    memcpy(f, k->series.g, ((size_t)w->K + 1) * sizeof *f);
    double rate = f[1] / w->series.in.unit;
    bool leaves = rate > k->zero.tol_u, comes = rate < -k->zero.tol_u && f[0] > k->zero.tol_gap;
    if (f[0] <= fmax(zero, k->zero.tol_gap) && (leaves || comes)) {
        if (f[0] < 0 || k->last_hit == w->t)
            f[0] = 0;
        return ev_crossing(w, f, w->K, h, 0);
    }
    if (k->candidate)
        as_decided(w, f, 2, w->K, k->zero.zero_gap);
    return ev_crossing(w, f, w->K, h, zero);
}

/* Does slip begin in the current piece? */
static bool from_rest(const ev *w)
{
    return w->start.start_piece && w->start.elapsed <= w->series.natural;
}

static void end_contact(ev *w, int i, ending *e)
{
    rub *k = &w->rub[i];
    const contact_family *f = k->c->fam->f;
    int K = w->K;
    double zero = ev_zero_force(w, k->grip_n), x[w->width];
    if (k->mode == MODE_OPEN) {
        if (f->relation == REL_GAP)
            end_at(e, gap_crossing(w, k, e->s), END_GAP, i);
        return;
    }
    if (f->relation == REL_GAP || (f->relation == REL_BILATERAL && k->c->d)) {
        for (int j = 0; j < K; j++)
            x[j] = (f->relation == REL_GAP ? 1 : k->sigma) * ev_normal(k)[j];
        as_decided(w, x, 0, K - 1, zero);
        end_at(e, ev_crossing(w, x, K - 1, e->s, 0.1 * zero), END_RN, i);
    }
    if (k->mode == MODE_STICK)
        end_cone(w, k, i, e);
    if (k->mode == MODE_HOVER)
        end_hover(w, k, i, e);
    /* Also with more than one direction: slip along a straight line may come to rest, and its series does not
       show that. */
    if (ev_slips(k) && !(from_rest(w) && k->c->d > 1)) {
        double size = ev_size(w, k->series.speed, K - 1, e->s);
        memcpy(x, k->series.speed, (size_t)K * sizeof *x);
        if (!(x[0] > k->zero.tol_slip))
            as_decided(w, x, 1, K - 1, k->zero.zero_slip);
        end_at(e, ev_crossing(w, x, K - 1, e->s, fmax(ROUND_50 * size, 0.1 * k->zero.tol_slip)), END_SLIP, i);
    }
}

static void end_sites(ev *w, ending *e)
{
    int K = w->K - 1;
    double f[w->width];
    for (int i = 0; i < w->series.nall; i++) {
        taylor *t = w->series.all[i];
        for (uint32_t k = 0; k < t->nsite; k++) {
            site *s = &t->site[k];
            const instr *q = &t->code[s->code];
            if ((t->still[q->a] && t->still[q->b]) || (s->near && w->progress.creeping) || !t->live[q->dst])
                continue;
            for (int upper = 0; upper <= site_two_sided(t, s); upper++) {
                site_function(t, s, upper, K, f);
                if (!site_two_sided(t, s)) {
                    if (s->branch == 0)
                        continue;
                    for (int j = 0; j <= K; j++)
                        f[j] *= s->branch;
                }
                if (s->near && fabs(f[0]) < EV_SITE_MET * ev_size(w, f, K, e->s))
                    f[0] = 0;
                double at = ev_crossing(w, f, K, e->s, ROUND_5 * ev_size(w, f, K, e->s));
                if (at < e->s)
                    *e = (ending){ at, 0, END_SITE, i, s };
            }
        }
    }
}

/* Slip in two or more directions comes to rest where |slip| reaches 0. Steps shrink towards that time; slip
   that is left before the last of them counts as rest. */
static void rests_soon(ev *w, ending *e)
{
    for (int i = 0; i < w->nrub; i++) {
        rub *k = &w->rub[i];
        if (!ev_slips(k) || k->c->d == 1)
            continue;
        double left = k->series.speed[1] < 0 ? -k->series.speed[0] / k->series.speed[1] * w->series.in.unit
                                             : INFINITY;
        if (!(left < EV_STOPS * (fabs(w->t) + w->o->duration * RUN_SCALE)))
            continue;
        if (left < e->s)
            end_at(e, left, END_SLIP, i);
        else if (e->kind == END_STEP)
            *e = (ending){ .s = e->s, .kind = END_REST, .who = i };
    }
}

/* ---- after a piece ---- */
static void sites_after(ev *w, double h, const site *met)
{
    int K = w->K - 1;
    double f[w->width];
    for (int i = 0; i < w->series.nall; i++) {
        taylor *t = w->series.all[i];
        for (uint32_t k = 0; k < t->nsite; k++) {
            site *s = &t->site[k];
            s->near = false;
            s->before = s->branch;
            for (int upper = 0; upper <= site_two_sided(t, s); upper++) {
                site_function(t, s, upper, K, f);
                const instr *q = &t->code[s->code];
                double rate = ev_rate(w, f, K, h),
                       size = fabs(taylor_reg(t, q->a)[0]) + fabs(taylor_reg(t, q->b)[0]);
                double close = ROUND_500 * ev_size(w, f, K, h) + ROUND_10 * size +
                               ROUND_5 * (fabs(w->t) + h) * fabs(rate);
                if (!(fabs(ev_value(w, f, K, h)) <= close) && s != met)
                    continue;
                s->near = true;
                if (!site_two_sided(t, s))
                    s->branch = rate > 0 ? 1 : rate < 0 ? -1 : s->branch;
                else if (rate < 0)
                    s->branch += upper ? 1 : -1;
            }
        }
    }
}

/* Computes the time at which a gap closes to twice the length of a double: one more step of Newton's method.
 */
static void gap_sharpen(ev *w, ending *e)
{
    const rub *k = &w->rub[e->who];
    double low0 = vec_dot(k->c->H, w->q_low, w->n), low1 = vec_dot(k->c->H, w->v_low, w->n),
           rate = ev_rate(w, k->series.g, w->K, e->s);
    twofold y = series_twofold(k->series.g, w->K, low0, low1 * w->series.in.unit,
                               (twofold){ e->s / w->series.in.unit, 0 });
    if (fabs(y.hi) < EV_CORRECTION * fabs(rate) * e->s)
        e->low = -y.hi / rate;
}

/* The next piece starts with new bases of rotations: series of small angles reach farthest. */
static void ev_centre(ev *w)
{
    const program *p = w->p;
    for (size_t i = 0; i < p->rotations.n; i++)
        for (int k = p->rotations.at[i]; k < p->rotations.at[i] + 3; k++) {
            w->q[k] += w->q_low[k];
            w->v[k] += w->v_low[k];
            w->q_low[k] = w->v_low[k] = 0;
        }
    turns_centre(p, w->s->base, w->q, w->v, NULL, 0);
}

/* Moves to the end of the piece. Times and states are sums of two doubles, so rounding errors do not
   accumulate. */
static void advance(ev *w, double h, double low)
{
    for (int i = 0; i < w->nrub; i++) {
        rub *k = &w->rub[i];
        k->r0 = k->col_n >= 0 ? ev_value(w, k->series.rn, w->K - 1, h) : 0;
        for (int l = 0; l < k->c->d; l++)
            k->rt0[l] = k->col_t >= 0 ? ev_value(w, k->series.rt + (size_t)l * w->width, w->K - 1, h) : 0;
    }
    double unit = w->series.in.unit;
    twofold s = { h / unit, low / unit };
    for (int k = 0; k < w->n; k++) {
        bool first = w->p->order && w->p->order[k] == 1;
        twofold q = series_twofold(w->series.qs + (size_t)k * w->width, w->K + 1, w->q_low[k],
                                   first ? 0 : w->v_low[k] * unit, s);
        twofold v = series_twofold(w->series.vs + (size_t)k * w->width, w->K - first, first ? 0 : w->v_low[k],
                                   0, s);
        w->q[k] = q.hi;
        w->q_low[k] = q.lo;
        w->v[k] = v.hi;
        w->v_low[k] = first ? 0 : v.lo;
    }
    /* consecutive pieces of one starting slip share their accelerations, so they must share the bases too */
    if (w->s->base && !w->start.starting)
        ev_centre(w);
    twofold t = twofold_sum((twofold){ w->t, w->t_low }, (twofold){ h, low });
    w->t = t.hi;
    w->t_low = t.lo;
    w->sizes.last_h = h;
    w->sizes.rounded = fmax(w->sizes.rounded, w->sizes.size * h);
}

/* Removes rounding errors: gaps of closed contacts and their rates, slip of sticking contacts. */
static void put_back(ev *w)
{
    int n = w->n, m = 0;
    if (w->nrub == 0)
        return;
    for (int turn = 0; turn < 2; turn++) {
        m = 0;
        for (int i = 0; i < w->nrub; i++) {
            rub *k = &w->rub[i];
            if (k->mode == MODE_OPEN || k->c->fam->f->relation == REL_CLOSED ||
                (turn == 0 && k->c->fam->f->of_rates))
                continue;
            factor_solve(&w->s->minv, k->c->H, w->hand.G + (size_t)m * n);
            w->hand.b[m] = turn == 0 ? -*k->c->gap : -k->un;
            w->hand.act[m++] = k;
        }
        for (int i = 0; i < m; i++)
            for (int j = 0; j < m; j++)
                w->hand.W[(size_t)i * m + j] = vec_dot(w->hand.act[i]->c->H, w->hand.G + (size_t)j * n, n);
        if (m == 0)
            continue;
        ev_round(w);
        double work[m * m + 3 * m];
        int iwork[m];
        sym_shortest_rows(w->hand.W, w->hand.b, w->hand.u, m, work, iwork);
        for (int i = 0; i < m; i++)
            vec_axpy(turn == 0 ? w->q : w->v, w->hand.u[i], w->hand.G + (size_t)i * n, n);
    }
    for (int i = 0; i < w->nrub; i++) {
        rub *k = &w->rub[i];
        if (k->mode != MODE_STICK)
            continue;
        for (int l = 0; l < k->c->d; l++) {
            const double *S = k->c->S + (size_t)l * n;
            double s = vec_dot(S, w->v, n) + k->c->s0[l];
            factor_solve(&w->s->minv, S, w->hand.x1);
            double ss = vec_dot(S, w->hand.x1, n);
            if (ss > 0)
                vec_axpy(w->v, -s / ss, w->hand.x1, n);
        }
    }
}

/* Sets the slip of contact k to 0, by impulses along the directions of its friction. */
static void come_to_rest(ev *w, const rub *k)
{
    int n = w->n, d = k->c->d;
    double A[d * d + 1], b[d + 1], x[d + 1], work[d * d + 2 * d + 1];
    int iwork[d + 1];
    for (int i = 0; i < d; i++)
        factor_solve(&w->s->minv, k->c->S + (size_t)i * n, w->hand.G + (size_t)i * n);
    for (int i = 0; i < d; i++) {
        b[i] = -vec_dot(k->c->S + (size_t)i * n, w->v, n) - k->c->s0[i];
        for (int j = 0; j < d; j++)
            A[i * d + j] = vec_dot(k->c->S + (size_t)i * n, w->hand.G + (size_t)j * n, n);
    }
    sym_shortest(A, b, x, d, work, iwork);
    for (int i = 0; i < d; i++)
        vec_axpy(w->v, x[i], w->hand.G + (size_t)i * n, n);
    ev_round(w);
}

/* Rebounds that follow each other ever faster: the times left form a geometric series, of which the sum is
   taken.  Its ratio is at most the restitution, however other contacts change single flights.  Not before the
   rate that is left is within the tolerance of the rates that were, or the flights within what a double can
   tell of the time. */
static bool settles(ev *w, rub *k, double *end)
{
    double next = k->flight, r = fmin(next / k->before, k->now.e), left = next * r / (1 - r),
           most = 1e13 * k->zero.tol_u;
    if (!(next > 0 && k->before > 0 && next < k->before))
        return false;
    if (!(fabs(k->un) <= fmin(w->tol, EV_ACCUMULATED) * most || next <= ROUND_2 * fabs(w->t)))
        return false;
    *end = w->t + left;
    return true;
}

static void open_marks(ev *w, const contact_mode *before)
{
    for (int i = 0; i < w->nrub; i++) {
        rub *k = &w->rub[i];
        double *last = &w->r->contact[k->family].last_open[k->c->member];
        if (before[i] == MODE_OPEN && k->mode != MODE_OPEN && w->pieces.n)
            *last = fmax(*last, w->t);
        if (k->mode == MODE_OPEN)
            *last = fmax(*last, w->t);
    }
}

/* Contacts that approach above tolerance take part in a shock. After it, contacts whose rebounds have become
   negligible are closed. */
static bool meet(ev *w)
{
    bool hit = false;
    double fastest = 0;
    for (int i = 0; i < w->nrub; i++) {
        rub *k = &w->rub[i];
        const contact_family *f = k->c->fam->f;
        if (f->relation == REL_CLOSED)
            continue;
        if (f->relation == REL_GAP && *k->c->gap <= k->zero.tol_gap)
            fastest = fmax(fastest, -k->un / k->zero.tol_u);
        if (f->relation == REL_BILATERAL) {
            hit |= fabs(k->un) > 1e3 * k->zero.tol_u;
            continue;
        }
        hit |= *k->c->gap <= k->zero.tol_gap && k->un < -k->zero.tol_u && k->mode == MODE_OPEN;
        hit |= k->mode != MODE_OPEN && k->un < -1e3 * k->zero.tol_u;
    }
    if (!hit)
        return true;
    w->progress.met = fastest;
    if (!ev_shock(w))
        return false;
    for (int i = 0; i < w->nrub; i++) {
        rub *k = &w->rub[i];
        double end;
        if (k->c->fam->f->relation != REL_GAP || k->last_hit != w->t || !settles(w, k, &end))
            continue;
        double *last = &w->r->contact[k->family].last_open[k->c->member];
        *last = fmax(*last, end);
        /* the remaining rate is dissipated, as the earlier rebounds would have done */
        factor_solve(&w->s->minv, k->c->H, w->hand.x1);
        double hh = vec_dot(k->c->H, w->hand.x1, w->n);
        w->c->books.dissipated += 0.5 * k->un * k->un / hh;
        vec_axpy(w->v, -k->un / hh, w->hand.x1, w->n);
        k->un = 0;
        k->flight = k->before = 0;
    }
    return true;
}

/* ---- events of the model ---- */
static void fire_one(ev *w, ev_event *e, double *q, double *v, bool *reset)
{
    const kernel *k = e->reset.k;
    if (e->rule->stop)
        w->progress.stopped = true;
    if (!k)
        return;
    kernel_run(k, &w->s->in, e->index, e->reset.reg);
    for (uint32_t j = 0; j < k->tape.nout; j++)
        (e->rule->reset_rate[j] ? v
                                : q)[slot_at(&k->row[j], e->index, k->over.n)] = e->reset.reg[k->tape.out[j]];
    *reset = true;
}

static bool truth(ev *w, ev_event *e)
{
    for (int k = 0; k < w->n; k++) {
        w->series.qs[(size_t)k * w->width] = w->q[k];
        w->series.vs[(size_t)k * w->width] = w->v[k];
    }
    w->series.in.t = w->t;
    for (uint32_t k = 0; k < e->when->nsite; k++)
        if (e->when->code[e->when->site[k].code].op == OP_EQ && e->when->site[k].near)
            e->when->site[k].branch = 0;
    taylor_step(e->when, &w->series.in, 0);
    return taylor_out(e->when, 0)[0] != 0;
}

/* A condition with an equality holds only at an instant, so it does not hold afterwards. */
static bool equality(const ev_event *e)
{
    for (uint32_t k = 0; k < e->when->nsite; k++)
        if (e->when->code[e->when->site[k].code].op == OP_EQ && e->when->site[k].near)
            return true;
    return false;
}

/* f at a switch of the condition, in the current state */
static double edge_value(const taylor *t, const site *s)
{
    double f[1];
    site_function(t, s, false, 0, f);
    return f[0];
}

/* After a reset, a switch counts as met only if its f has not changed, up to rounding. */
static void still_met(const taylor *t, site *s)
{
    const instr *q = &t->code[s->code];
    double size = fabs(taylor_reg(t, q->a)[0]) + fabs(taylor_reg(t, q->b)[0]);
    s->near = s->near && fabs(edge_value(t, s) - s->met) <= ROUND_500 * size;
}

/* After a reset that makes a condition false, the condition may become true again. Switches that were met and
   have not moved keep their side. */
static void arm_again(ev *w, ev_event *e)
{
    truth(w, e); /* updates the registers for the new state */
    for (uint32_t k = 0; k < e->when->nsite; k++)
        still_met(e->when, &e->when->site[k]);
    bool holds = truth(w, e);
    if (!e->fired)
        e->was = e->was && holds;
}

/* Fires events whose condition has become true, each once per instant. right: conditions just after this
   time, by the current series; equalities do not hold there. */
static void fire(ev *w, bool right, bool *reset)
{
    double q[w->n + 1], v[w->n + 1];
    memcpy(q, w->q, (size_t)w->n * sizeof *q);
    memcpy(v, w->v, (size_t)w->n * sizeof *v);
    system_at(w->s, w->t, w->q, w->v);
    *reset = false;
    for (int i = 0; i < w->nevent; i++) {
        ev_event *e = &w->event[i];
        bool now = truth(w, e), edge = equality(e);
        if (now && !e->was && !e->fired && !(right && edge)) {
            fire_one(w, e, q, v, reset);
            e->fired = true;
        }
        e->was = now && !edge;
        for (uint32_t k = 0; k < e->when->nsite; k++)
            e->when->site[k].met = edge_value(e->when, &e->when->site[k]);
    }
    if (!*reset)
        return;
    /* the energy that an event adds or removes counts as work */
    w->c->books.work += 0.5 * (mass_norm2(w->s, w->M, v) - mass_norm2(w->s, w->M, w->v));
    if (!w->c->books.of_all && w->s->potential.n) {
        double before = system_sum(w->s, &w->s->potential);
        system_at(w->s, w->t, q, v);
        w->c->books.work += system_sum(w->s, &w->s->potential) - before;
        system_at(w->s, w->t, w->q, w->v);
    }
    memcpy(w->q, q, (size_t)w->n * sizeof *q);
    memcpy(w->v, v, (size_t)w->n * sizeof *v);
    ev_round(w);
    for (int i = 0; i < w->nevent; i++)
        arm_again(w, &w->event[i]);
}

/* ---- the run ---- */
/* How much a gap can change over the run: a scale for gaps whose dofs are all 0. */
static double gap_reach(ev *w, const rub *k)
{
    double T = w->o->duration, reach = fabs(k->c->ht) * T;
    factor_solve(&w->s->minv, w->f, w->hand.x1);
    for (int i = 0; i < w->n; i++)
        reach += fabs(k->c->H[i]) * T * (w->sizes.vmax[i] + T * fabs(w->hand.x1[i]));
    return reach > 0 ? reach : 1;
}

static bool gaps_hold(ev *w)
{
    for (int i = 0; i < w->nrub; i++) {
        rub *k = &w->rub[i];
        double wrong = k->c->fam->f->relation == REL_BILATERAL ? fabs(*k->c->gap)
                       : k->c->fam->f->relation == REL_GAP     ? -*k->c->gap
                                                               : 0;
        if (wrong > 1e6 * k->zero.tol_gap + EV_REACH * gap_reach(w, k))
            return ev_fail(w, k->c->fam->f->at,
                           arena_printf(w->r->a, "constraint '%s' does not hold at t = %s: its gap is %s",
                                        contact_name(k->c, w->r->a), ev_number(w, w->t),
                                        ev_number(w, *k->c->gap)));
        if (wrong > w->r->max_penetration)
            w->r->max_penetration = wrong;
    }
    return true;
}

/* Contacts after a reset of the state. */
static bool survey_again(ev *w)
{
    for (int i = 0; i < w->nrub; i++)
        if (w->rub[i].c->fam->f->relation == REL_GAP)
            w->rub[i].mode = MODE_OPEN;
    return ev_survey(w);
}

static bool at_instant(ev *w)
{
    bool reset = false;
    contact_mode before[w->nrub + 1];
    for (int i = 0; i < w->nrub; i++)
        before[i] = w->rub[i].mode;
    for (int i = 0; i < w->nevent; i++)
        w->event[i].fired = false;
    if (!ev_survey(w))
        return false;
    if (w->start.resting >= 0) {
        come_to_rest(w, &w->rub[w->start.resting]);
        w->start.resting = -1;
    }
    fire(w, false, &reset);
    /* events that become true just after this time fire here, each once */
    for (bool more = true; more; more = reset) {
        if (reset && !survey_again(w))
            return false;
        if (w->progress.stopped && w->pieces.n)
            return true;
        if (!gaps_hold(w) || !meet(w) || !ev_survey(w) || !ev_decide(w))
            return false;
        fire(w, true, &reset);
    }
    if (w->progress.stopped && w->pieces.n)
        return true;
    put_back(w);
    open_marks(w, before);
    return true;
}

/* Thousands of tiny steps in a row: the direction of a slip changes too fast for a power series. */
static bool crawls(ev *w, const ending *e, double end)
{
    enum { MOST = 3000 };
    bool slips = false;
    for (int i = 0; i < w->nrub; i++)
        slips |= ev_slips(&w->rub[i]) && w->rub[i].c->d > 1;
    bool tiny = slips && e->kind == END_STEP && !(w->fixed > 0) && e->s < EV_CRAWL * end;
    w->progress.crawled = tiny ? w->progress.crawled + 1 : 0;
    return w->progress.crawled > MOST;
}

/* Modes and pieces keep changing while no time passes. */
static bool stands_still(ev *w)
{
    for (int i = 0; i < w->nrub; i++) {
        const contact *c = w->rub[i].c;
        if (c->fam->f->relation == REL_GAP && *c->gap <= w->rub[i].zero.tol_gap &&
            kernel_has_pieces(&c->fam->f->gap))
            return ev_fail(w, c->fam->f->at,
                           arena_printf(w->r->a, "the motion cannot be continued at t = %s: " CORNER_TEXT,
                                        ev_number(w, w->t)));
    }
    return ev_fail(
        w, SPAN_NONE,
        arena_printf(
            w->r->a,
            "the motion cannot be continued at t = %s: its contact modes change without end; use sweeping()",
            ev_number(w, w->t)));
}

/* Impacts of several contacts may accumulate at one time: beyond what gaps can tell they follow each other
   without time between them, and end as their speeds fall. */
static bool collapses(ev *w)
{
    enum { MOST = 20 };
    if (++w->progress.stuck == 1)
        w->progress.met_first = w->progress.met;
    if (w->progress.stuck <= MOST)
        return true;
    if (!(w->progress.met < EV_COLLAPSES * w->progress.met_first))
        return false;
    w->progress.met_first = w->progress.met;
    w->progress.stuck = 1;
    return true;
}

/* Size of the last terms of the series over a piece: the difference from a series of one order less. */
static void cut_off_count(ev *w, double h)
{
    double most = 0, top = vec_max(w->sizes.qmax, w->n), last = pow(h / w->series.in.unit, w->K + 1);
    for (int k = 0; k < w->n; k++) {
        double size = fmax(w->sizes.qmax[k], DOF_LEAST * top),
               left = fabs(w->series.qs[(size_t)k * (size_t)w->width + (size_t)w->K + 1]) * last;
        if (size > 0)
            most = fmax(most, left / size);
    }
    w->r->count.cut_off = (isnan(w->r->count.cut_off) ? 0 : w->r->count.cut_off) + most;
}

static bool run_piece(ev *w, double end, ending *e)
{
    double left = end - w->t;
    *e = (ending){ fmin(w->series.natural, left), 0, END_STEP, -1, NULL };
    if (w->hist) {
        bool breaks;
        double s = history_limit(w->hist, e->s, &breaks);
        if (s < e->s || breaks)
            *e = (ending){ s, 0, breaks ? END_BREAK : END_STEP, -1, NULL };
    }
    for (int i = 0; i < w->nrub; i++)
        end_contact(w, i, e);
    end_sites(w, e);
    if (!from_rest(w))
        rests_soon(w, e);
    if (!(e->s > 0))
        return collapses(w) || stands_still(w);
    if (w->hist && history_vanishes(w->hist)) {
        span at;
        const char *why = history_error(w->hist, &at);
        return ev_fail(w, at, why);
    }
    if (!(e->s > ROUND_5 * fabs(w->t)) && e->kind == END_STEP && left > CLOCK_END * end)
        return ev_fail(w, SPAN_NONE,
                       arena_printf(w->r->a,
                                    "steps become too small at t = %s: the motion is not analytic there",
                                    ev_number(w, w->t)));
    if (crawls(w, e, end))
        return ev_fail(w, SPAN_NONE,
                       arena_printf(w->r->a,
                                    "steps become too small at t = %s: a slip comes to rest there while its "
                                    "direction turns; use sweeping()",
                                    ev_number(w, w->t)));
    w->progress.stuck = 0;
    cut_off_count(w, e->s);
    dense_keep(w, e->s);
    dense_sample(w, e->s);
    if (w->hist)
        history_add(w->hist, &w->pieces.at[w->pieces.n - 1]);
    sites_after(w, e->s, e->at);
    if (e->kind == END_GAP && w->rub[e->who].terms.gap)
        gap_sharpen(w, e);
    advance(w, e->s, e->low);
    if (e->s >= left) {
        w->t = end;
        w->t_low = 0;
    }
    if (w->hist && e->kind == END_BREAK)
        history_image(w->hist, w->t);
    else if (w->hist && e->kind != END_STEP)
        history_break(w->hist, w->t, e->kind == END_GAP && w->rub[e->who].terms.gap ? 1 : 2);
    return true;
}

/* Modes and series just after the end of the last piece. False: failed. */
static bool go_on(ev *w)
{
    if (w->progress.pending != END_STEP) {
        w->start.starting = false;
        return at_instant(w);
    }
    if (!ev_survey(w))
        return false;
    put_back(w);
    if (!w->start.starting)
        return ev_series(w);
    return slip_start(w) ||
           ev_fail(w, SPAN_NONE,
                   arena_printf(w->r->a, "slip could not be followed at t = %s; use sweeping()",
                                ev_number(w, w->t)));
}

/* One piece. What happens at its end is handled when the next one begins, because the run may end with this
   piece. */
static step_outcome events_step(void *of, run_clock *c, double left, double end)
{
    ev *w = of;
    ending e;
    (void)left;
    if (w->progress.pending != END_NONE && !go_on(w))
        return STEP_FAILED;
    if (w->progress.stopped) {
        c->step--; /* the run ends where the last piece ended */
        return STEP_STOPPED;
    }
    w->progress.pending = END_NONE;
    if (!run_piece(w, end, &e))
        return STEP_FAILED;
    w->progress.pending = e.kind;
    w->start.resting = e.kind == END_REST ? e.who : -1;
    c->t = w->t;
    return w->progress.stuck ? STEP_REFUSED : STEP_DONE;
}

/* ---- start ---- */
static double *series(ev *w, size_t n)
{
    return arena_array(w->a, double, (n ? n : 1) * (size_t)w->width);
}

static taylor *taylor_of(ev *w, const kernel *k, const int32_t *index)
{
    return k->tape.nout ? taylor_new(w->a, k, index, w->width) : NULL;
}

static int taylor_all(ev *w, const kernels *k, taylor ***out)
{
    int n = 0;
    int64_t most = 0;
    for (size_t i = 0; i < k->n; i++)
        most += index_members(&k->at[i].over);
    *out = arena_array(w->a, taylor *, most + 1);
    for (size_t i = 0; i < k->n; i++) {
        const kernel *x = &k->at[i];
        int32_t index[MAX_INDEX] = { 0 };
        double *where = x->where ? arena_array(w->a, double, (size_t)x->where->nreg + 1) : NULL;
        for (bool any = index_first(&x->over, index); any; any = index_next(&x->over, index))
            if (!x->where || kernel_member(x, index, where))
                (*out)[n++] = taylor_new(w->a, x, index, w->width);
    }
    return n;
}

/* Series for friction without a given slip on a moving constraint whose normal turns. */
static void frame_new(ev *w, rub *k)
{
    const family *f = k->c->fam;
    size_t n = (size_t)w->n, d = (size_t)f->d;
    if (!d || f->f->slip_given || !f->f->rate.tape.nout || f->rows_fixed)
        return;
    k->series.frame = series(w, d + 1);
    k->series.ft = series(w, n);
    k->series.carried = series(w, 1);
    k->series.along = arena_array(w->a, double, (d + 1) * n);
    k->series.turning = arena_array(w->a, double, d);
}

static void rub_new(ev *w, rub *k, contact *c)
{
    const contact_family *f = c->fam->f;
    size_t n = (size_t)w->n, d = (size_t)c->fam->d, m = (size_t)c->fam->nslip;
    *k = (rub){ .c = c, .family = (size_t)(c->fam - w->s->family), .sigma = 1, .last_hit = -INFINITY };
    k->terms.gap = f->relation == REL_CLOSED ? NULL : taylor_of(w, &f->gap, c->index);
    k->terms.gradient = taylor_of(w, &f->gradient, c->index);
    k->terms.rate = f->of_rates ? taylor_of(w, &f->rate, c->index) : NULL;
    k->terms.bias = taylor_of(w, &f->bias, c->index);
    k->terms.slip = taylor_of(w, &f->slip, c->index);
    k->terms.slip_map = taylor_of(w, &f->slip_map, c->index);
    k->terms.slip_bias = taylor_of(w, &f->slip_bias, c->index);
    k->terms.normal = taylor_of(w, &f->normal, c->index);
    k->terms.mu = taylor_of(w, &f->mu, c->index);
    k->terms.mu_static = taylor_of(w, &f->mu_static, c->index);
    k->terms.adhesion = taylor_of(w, &f->adhesion, c->index);
    k->series.g = series(w, 1);
    k->series.rn = series(w, 1);
    k->series.H = series(w, n);
    k->series.N = series(w, n);
    k->now.impulse = arena_array(w->a, double, d + 1);
    k->mode = f->relation == REL_GAP ? MODE_OPEN : d ? MODE_STICK : MODE_CLOSED;
    if (!d)
        return;
    k->series.rt = series(w, d);
    k->rt0 = arena_array(w->a, double, d);
    k->series.S = series(w, d * n);
    k->series.raw = series(w, m * n);
    k->series.w = series(w, n > m ? n : m);
    k->series.nu = series(w, m);
    k->series.gram = series(w, m * m);
    k->series.y = series(w, n);
    k->series.metric = series(w, 1);
    k->series.hy = series(w, 1);
    k->series.D = series(w, n);
    k->series.fn = series(w, 1);
    k->series.ft2 = series(w, 1);
    k->series.ft = series(w, m);
    k->series.beta = series(w, 1);
    k->series.bound = series(w, 1);
    k->series.speed = series(w, 1);
    k->series.most = f->friction == FRICTION_TRESCA && f->relation == REL_GAP ? series(w, 1) : NULL;
    k->series.work = series(w, (n > m ? n : m) + 6);
    frame_new(w, k);
}

static void rooms(ev *w)
{
    size_t n = (size_t)w->n, c = w->s->ncontact, rows = (size_t)w->s->rows + 1, size = n + rows, d = 0;
    double **vectors[] = { &w->q,
                           &w->v,
                           &w->acc,
                           &w->f,
                           &w->sizes.vmax,
                           &w->sizes.qmax,
                           &w->hand.x1,
                           &w->hand.before,
                           &w->hand.q_right,
                           &w->start.acc_rest,
                           &w->hand.x2,
                           &w->q_low,
                           &w->v_low,
                           &w->start.acc_end,
                           &w->start.jerk_end,
                           &w->start.qx,
                           &w->start.vx };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        *vectors[i] = arena_array(w->a, double, n + 64);
    w->M = arena_array(w->a, double, n *n + 1);
    w->series.qs = series(w, n);
    w->series.vs = series(w, n);
    w->series.xs = series(w, n);
    w->series.fs = series(w, n);
    w->series.Ms = series(w, n * n);
    w->series.nmass = taylor_all(w, &w->p->mass, &w->series.mass);
    w->series.nforce = taylor_all(w, &w->p->force, &w->series.force);
    w->nrub = (int)c;
    w->rub = arena_array(w->a, rub, c + 1);
    for (size_t i = 0; i < c; i++) {
        rub_new(w, &w->rub[i], &w->s->contact[i]);
        if ((size_t)w->s->contact[i].fam->d > d)
            d = (size_t)w->s->contact[i].fam->d;
        w->frames |= w->rub[i].series.frame != NULL;
    }
    w->tangents = (int)(w->frames && n > d ? n : d > MAX_SLIP ? d : MAX_SLIP);
    w->linear.A = arena_array(w->a, double, size *size);
    w->linear.row_scale = arena_array(w->a, double, size);
    w->linear.col_scale = arena_array(w->a, double, size);
    w->linear.lu = arena_array(w->a, double, size *size);
    w->linear.rhs = arena_array(w->a, double, size);
    w->linear.sol = arena_array(w->a, double, size);
    w->linear.pivot = arena_array(w->a, int, size);
    w->hand.act = arena_array(w->a, rub *, c + 1);
    w->hand.meetings = arena_array(w->a, meeting *, c + 1);
    w->hand.cone = arena_array(w->a, cone, c + 1);
    w->hand.W = arena_array(w->a, double, rows *rows);
    w->hand.b = arena_array(w->a, double, rows);
    w->hand.off = arena_array(w->a, double, rows);
    w->hand.rr = arena_array(w->a, double, rows);
    w->hand.u = arena_array(w->a, double, rows);
    w->hand.dir = arena_array(w->a, double, rows);
    w->hand.G = arena_array(w->a, double, rows *n + 1);
    w->hand.cwork = contact_work_new(w->a, (int)c, w->s->rows, (int)d);
}

static void events_new(ev *w)
{
    int64_t most = 0;
    for (size_t i = 0; i < w->p->nevent; i++)
        most += index_members(&w->p->event[i].over);
    w->event = arena_array(w->a, ev_event, most + 1);
    for (size_t i = 0; i < w->p->nevent; i++) {
        const event_rule *e = &w->p->event[i];
        int32_t index[MAX_INDEX] = { 0 };
        for (bool any = index_first(&e->over, index); any; any = index_next(&e->over, index)) {
            ev_event *x = &w->event[w->nevent++];
            x->rule = e;
            memcpy(x->index, index, sizeof index);
            x->when = taylor_new(w->a, &e->when, index, w->width);
            x->reset = term_new(w->a, &e->reset);
        }
    }
}

static void history_start(ev *w)
{
    double *q0 = arena_array(w->a, double, w->n + 1), *v0 = arena_array(w->a, double, w->n + 1);
    system_start(w->s, q0, v0);
    double *base0 = w->s->base ? arena_array(w->a, double, 3 * (size_t)w->n) : NULL;
    if (base0)
        memcpy(base0, w->s->base, 3 * (size_t)w->n * sizeof *base0);
    w->hist = history_new(w->a, w->p, w->K, w->width, w->o->duration, q0, base0);
    history_begin(w->hist, 0, w->series.unit);
    history_break(w->hist, 0, 0);
}

static void options_read(ev *w, const run_options *o)
{
    w->tol = w->r->promised.tolerance = o->value[OPTION_TOLERANCE];
    w->local = fmax(EV_LOCAL * w->tol, EV_LOCAL_LEAST);
    w->K = o->value[OPTION_ORDER] > 0 ? (int)o->value[OPTION_ORDER]
                                      : (int)fmin(fmax(ceil(-0.5 * log(w->local)) + 4, 8), MAX_ORDER);
    w->width = w->K + 4;
    w->fixed = o->value[OPTION_STEP] > 0 ? o->value[OPTION_STEP] : 0;
    w->sizes.creep = EV_CREEP;
}

/* Energies before the first impact or reset. */
static bool open_books(ev *w)
{
    energies e = { 0 };
    if (!ev_survey(w))
        return false;
    system_at(w->s, 0, w->q, w->v);
    dense_energy(w, w->v, &e);
    books_open(&w->c->books, e.kinetic, e.potential);
    w->c->books.of_all = w->s->driving.n || w->s->power.n;
    return true;
}

/* A power of 2: multiplying by it is exact. */
static double time_unit(double duration)
{
    int e = 0;
    frexp(duration, &e);
    return ldexp(1, e);
}

static bool events_start(void *of, run_clock *c)
{
    ev *w = of;
    results *r = c->r;
    const char *why = NULL;
    *w = (ev){ .p = r->prog, .o = c->o, .r = r, .c = c, .a = r->a, .n = r->prog->nq, .start.resting = -1 };
    c->rule = STEPS_OWN;
    c->own_samples = true;
    options_read(w, c->o);
    w->series.in.unit = w->series.unit = time_unit(c->o->duration);
    w->s = system_new(r->a, w->p, r->param, STORE_WHOLE, &why, &r->where);
    if (!w->s)
        return ev_fail(w, r->where, why);
    rooms(w);
    events_new(w);
    if (w->p->delay)
        history_start(w);
    int most = w->series.nmass + w->series.nforce + w->nevent + 11 * w->nrub + 1 +
               (w->hist ? history_most(w->hist) : 0);
    w->series.all = arena_array(w->a, taylor *, most);
    system_start(w->s, w->q, w->v);
    why = system_start_error(w->s, &r->where);
    if (why)
        return ev_fail(w, r->where, why);
    for (size_t i = 0; i < w->p->rotations.n; i++)
        for (int k = 0; k < 3; k++)
            w->sizes.qmax[w->p->rotations.at[i] + k] =
                1; /* small angles are 0 at their base, so their values give no scale */
    r->note = system_start_note(w->s, r->a);
    w->series.in.param = r->param;
    w->series.in.base = w->s->base;
    w->series.in.from[IN_Q] = w->series.qs;
    w->series.in.from[IN_V] = w->series.vs;
    w->series.in.from[IN_PRE] = w->series.vs;
    if (!open_books(w) || !at_instant(w))
        return false;
    c->stopped = w->progress.stopped;
    if (c->end > 0 && !w->progress.stopped)
        dense_install(w);
    else
        dense_sample(w, 0);
    return true;
}

static void events_finish(void *of, run_clock *c)
{
    const ev *w = of;
    if (w->s && !c->r->solver)
        c->r->solver = "none needed";
}

static const stepper events_stepper = {
    .start = events_start,
    .step = events_step,
    .sample = dense_fill,
    .finish = events_finish,
    .keep = ev_keep,
};

static void events_run(const program *p, const run_options *o, results *r)
{
    (void)p;
    r->backend = "events";
    clock_run(&events_stepper, arena_make(r->a, ev), o, r);
}

/* ---- what it does not support ---- */
static bool reads_past(const kernel *k)
{
    for (uint32_t i = 0; i < k->tape.nin; i++)
        if (k->in[i].kind == IN_PAST_Q || k->in[i].kind == IN_PAST_V || k->in[i].kind == IN_INTEGRAL)
            return true;
    return false;
}

static const char *refuse_contact(const program *p, const contact_family *f, span *at)
{
    bool mixed = false;
    for (int k = 0; k < p->nq; k++)
        mixed |= p->order && p->order[k] != p->order[0];
    *at = f->at;
    if (f->pair.touch)
        return "events does not follow which corners, edges and faces of two shapes touch; balls may touch "
               "each "
               "other and all shapes half-spaces, else use sweeping()";
    if (reads_past(&f->gap) || reads_past(&f->slip) || reads_past(&f->slip_map))
        return "events needs the second derivative of a gap and the rate of a slip, which past values do not "
               "have; use sweeping()";
    if (f->friction == FRICTION_NONE || f->slip_given)
        return NULL;
    if (mixed)
        return "events needs 'slip' for friction beside first-order equations; give it, or use sweeping()";
    return NULL;
}

/* Sums over sample points do not detect where an integrand switches its piece, nor past times that are not
   linear. */
static const char *refuse_past(const program *p, span *at)
{
    const delay_program *d = p->delay;
    bool pieces = false;
    for (size_t i = 0; d && i < d->history.n; i++)
        pieces |= kernel_has_pieces(&d->history.at[i]);
    for (size_t i = 0; d && i < d->nrule; i++) {
        *at = d->integral[i].at;
        if (!d->integral[i].linear)
            return "events integrates only over past times that are linear in the variable, with a factor "
                   "that "
                   "does not move; use sweeping()";
        if (kernel_has_pieces(&d->integral[i].integrand))
            return "events integrates over a single piece: split the range where the integrand switches, or "
                   "use "
                   "sweeping()";
        if (pieces)
            return "events does not integrate over a history that has pieces; use sweeping()";
    }
    return NULL;
}

static const char *events_refuse(const program *p, span *at)
{
#define REFUSE(what, text)  \
    do {                    \
        if (p->what.file) { \
            *at = p->what;  \
            return text;    \
        }                   \
    } while (0)
    REFUSE(has_inclusion, "events does not run inclusions; use inclusion()");
    REFUSE(has_field, "events does not solve fields; use vim(), penalty() or active_set()");
    REFUSE(has_rod, "events does not solve rods; use auglag()");
#undef REFUSE
    const char *past = refuse_past(p, at);
    if (past)
        return past;
    for (size_t i = 0; i < p->ncontact; i++) {
        *at = p->contact[i].read_at;
        if (p->contact[i].read_as)
            return "events does not support reactions inside formulas; use sweeping()";
        *at = p->contact[i].at;
        if (p->contact[i].fed)
            return "events does not support moments against rolling and spinning; use sweeping()";
        const char *why = refuse_contact(p, &p->contact[i], at);
        if (why)
            return why;
    }
    *at = p->ncontact ? p->contact[0].at : SPAN_NONE;
    if (program_contacts(p) > MAX_CONTACTS)
        return "events takes up to 64 contacts; use sweeping()";
    if (p->nq > MAX_DOFS)
        return "events takes up to 200 degrees of freedom; use sweeping()";
    return NULL;
}

static const backend_option events_options[] = {
    { "tolerance", OPT_REAL, 1e-12, 1e-16, 1e-2, NULL,
      "relative, of the motion; each step is computed to a thousandth of it", KIND_ANY },
    { "order", OPT_INT, NAN, 4, 60, NULL, "order of the Taylor series; default from the tolerance",
      KIND_ANY },
    { "h", OPT_REAL, NAN, 1e-300, INFINITY, NULL, "time step, cut only at events; default from the tolerance",
      KIND_ANY },
    OPTION_EVERY,
    OPTION_ERROR,
};
static bool events_saves(const program *p)
{
    (void)p;
    return true;
}

const backend backend_events = {
    .name = "events",
    .doc = "Taylor series, events located to round-off",
    .option = events_options,
    .noption = sizeof events_options / sizeof *events_options,
    .built = true,
    .refuse = events_refuse,
    .run = events_run,
    .saves = events_saves,
};
