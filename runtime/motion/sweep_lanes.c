/* sweep_lanes: islands of one contact, in parallel. Forces and masses are constant, and no two contacts share
   a dof. So a step is a pass over arrays in which each island is in flight or at rest. An island that meets
   its surface is followed separately, cut only at its own impacts, however many others are hit in the step.
   */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "sweep.h"
#include "base/tolerances.h"

/* An impact of the current step. */
typedef struct lane_hit {
    impact what;
    const contact_state *k;
    size_t order;
} lane_hit;

enum { ABREAST = 8 }; /* dofs or contacts that are processed together */

struct lanes {
    double *drift; /* n: change of the rates by constant forces in a step */
    double *W;     /* of each contact: the inverse of its effective mass */
    double *fall;  /* of each contact: rate of change of the gap's rate by forces alone */
    double *from;  /* gaps at the start of the step */
    vec(lane_hit) hits;
};

/* ---- which models ---- */
static bool contact_fits(const contact_state *k)
{
    const contact *c = k->c;
    const contact_family *f = c->fam->f;
    if (f->of_rates || f->e_of_speed || f->cascade || c->fam->adhesion.k)
        return false;
    return k->still && k->relation == REL_GAP && c->fam->d == 0 && c->dof && !c->repeats && c->ht == 0 &&
           f->impact != IMPACT_POISSON && isfinite(c->e);
}

static bool no_dof_shared(const sweep *w, bool *taken)
{
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        const contact *c = w->contacts.state[i]->c;
        for (int j = 0; j < c->n; j++) {
            if (taken[c->dof[j]])
                return false;
            taken[c->dof[j]] = true;
        }
    }
    return true;
}

static bool lanes_fit(sweep *w)
{
    const system_t *s = w->s;
    if (!w->linear || !s->force_constant || s->force_of_state || s->minv.kind != FACTOR_DIAGONAL ||
        w->p->nevent || s->past || s->base || s->first_order || s->power.n || w->stiffness != 0 ||
        w->contacts.near.nof || w->contacts.nstate <= FEW_ROWS || w->policy.cut == CUT_NEVER ||
        w->o->only_general || w->o->inputs || w->s->react)
        return false;
    for (size_t i = 0; i < w->contacts.nstate; i++)
        if (!contact_fits(w->contacts.state[i]))
            return false;
    arena_pos mark = arena_mark(w->scratch);
    bool apart = no_dof_shared(w, arena_array(w->scratch, bool, (size_t)w->n + 1));
    arena_release(w->scratch, mark);
    return apart;
}

/* A row times the inverse masses times x. */
static double row_light(const sweep *w, const gap_row *r, const double *x)
{
    double sum = 0;
    for (int k = 0; k < r->n; k++)
        sum += r->H[k] * (w->s->minv.a[r->dof[k]] * x[k]);
    return sum;
}

void sweep_lanes_new(sweep *w)
{
    if (!lanes_fit(w))
        return;
    size_t m = w->contacts.nstate;
    struct lanes *l = arena_make(w->a, struct lanes);
    l->drift = arena_array(w->a, double, w->n);
    l->W = arena_array(w->a, double, m);
    l->fall = arena_array(w->a, double, m);
    l->from = arena_array(w->a, double, m);
    for (int i = 0; i < w->n; i++)
        w->room.x2[i] = w->h * ((1 - w->theta) * w->f[i] + w->theta * w->f[i]);
    solve_with(&w->s->minv, w->room.x2, l->drift);
    solve_with(&w->s->minv, w->f, w->room.x1);
    for (size_t i = 0; i < m; i++) {
        const gap_row *r = &w->contacts.table.row[i];
        l->W[i] = row_light(w, r, r->H);
        l->fall[i] = row_rate(r, w->room.x1);
        if (!(l->W[i] > 0) || !isfinite(l->fall[i]))
            return;
    }
    w->quick.lanes = l;
}

/* ---- one island ---- */
/* Its state is that of its dofs in q1, v1, at time t. */
typedef struct lane {
    sweep *w;
    struct lanes *l;
    size_t i;
    const gap_row *row;
    double t, gap;
} lane;

/* x += M^-1 H^T by */
static void lane_push(const lane *a, double by, double *x)
{
    for (int k = 0; k < a->row->n; k++)
        x[a->row->dof[k]] += by * (a->w->s->minv.a[a->row->dof[k]] * a->row->H[k]);
}

/* Updates the sizes seen so far, and the tolerances. */
static void lane_sizes(const lane *a)
{
    sweep *w = a->w;
    bool grown = false;
    for (int k = 0; k < a->row->n; k++) {
        int i = a->row->dof[k];
        double v = fabs(w->v1[i]), q = larger(fabs(w->q1[i]), w->h * v);
        grown |= v > w->size.vmax[i] || q > w->size.qmax[i];
        w->size.vmax[i] = larger(v, w->size.vmax[i]);
        w->size.qmax[i] = larger(q, w->size.qmax[i]);
    }
    if (grown)
        sweep_tolerances(w, w->contacts.state[a->i]);
}

/* The gap for its dofs in q1. */
static double lane_gap(const lane *a)
{
    const contact *c = a->w->contacts.state[a->i]->c;
    return term_value(&c->fam->gap, &a->w->s->in, c->index);
}

/* An impact as in instant_shock: Newton's law for one contact. */
static void lane_shock(lane *a, double before)
{
    sweep *w = a->w;
    contact_table *t = &w->contacts.table;
    const contact_state *k = w->contacts.state[a->i];
    double e = t->hits[a->i] < MAX_HITS ? k->c->e : 0, tol = t->tol_u[a->i], b = before + e * before;
    double P = b < 0 ? -b / a->l->W[a->i] : 0;
    bool thrown = before < -tol && e > 0;
    lane_push(a, P, w->v1);
    double after = row_rate(a->row, w->v1);
    w->account.books->dissipated -= P * (0.5 * (before + after));
    t->hits[a->i]++;
    t->closed[a->i] = after <= tol || !thrown;
    *vec_push(w->a,
              &a->l->hits) = (lane_hit){ { a->t, before, after, P, (int32_t)k->c->member }, k, a->l->hits.n };
}

/* See sweep_meet; the gap is within its tolerance. */
static void lane_meet(lane *a)
{
    sweep *w = a->w;
    contact_table *t = &w->contacts.table;
    const contact_state *k = w->contacts.state[a->i];
    double un = t->un[a->i] = row_rate(a->row, w->v1);
    if (un > t->tol_u[a->i])
        return;
    if (un < -t->tol_u[a->i])
        lane_shock(a, un);
    else
        t->closed[a->i] = true;
    if (t->closed[a->i] && k->out->last_open)
        k->out->last_open[k->c->member] = a->t;
}

/* A part of a step, of size h: rates and positions by the forces, and by the contact if it is closed. Returns
   its impulse. */
static double lane_move(const lane *a, double h)
{
    sweep *w = a->w;
    const gap_row *r = a->row;
    double early = h * (1 - w->theta), late = h * w->theta, P = 0, before = 0;
    bool held = w->contacts.table.closed[a->i];
    for (int k = 0; k < r->n; k++) {
        int i = r->dof[k];
        before += r->H[k] * w->v1[i];
        w->q1[i] += early * w->v1[i];
        w->v1[i] += w->s->minv.a[i] * (h * ((1 - w->theta) * w->f[i] + w->theta * w->f[i]));
    }
    double un = row_rate(r, w->v1);
    if (held && un < 0) {
        P = -un / a->l->W[a->i];
        lane_push(a, P, w->v1);
        w->account.books->dissipated -= P * (0.5 * (before + row_rate(r, w->v1)));
    }
    for (int k = 0; k < r->n; k++)
        w->q1[r->dof[k]] += late * w->v1[r->dof[k]];
    return P;
}

/* Corrects the position of a closed contact to its surface, see put_back. */
static void lane_back(lane *a, double P)
{
    sweep *w = a->w;
    if ((a->gap > 0 && !(P > 0)) || !(fabs(a->gap) > 0.25 * w->contacts.table.tol_gap[a->i]))
        return;
    for (int k = 0; k < a->row->n; k++) {
        int i = a->row->dof[k];
        double by = -a->gap / a->l->W[a->i] * (w->s->minv.a[i] * a->row->H[k]);
        w->q1[i] += by;
        w->account.books->dissipated += w->f[i] * by;
    }
    a->gap = lane_gap(a);
}

/* Stores the impulse of a closed contact in a part of the step, and decides whether it opens. */
static void lane_hold(lane *a, double h, double P)
{
    contact_table *t = &a->w->contacts.table;
    double *r = t->r + t->first[a->i];
    lane_back(a, P);
    t->P[t->first[a->i]] += P;
    *r = P / h;
    if (P > 0 || !(row_rate(a->row, a->w->v1) > t->tol_u[a->i]))
        return;
    t->closed[a->i] = false;
    *r = 0;
}

/* Time until the gap is 0, for an open contact: the first root of gap + u x + fall theta x^2 at which the gap
   decreases. */
static double lane_meets_after(const lane *a, double most)
{
    double u = row_rate(a->row, a->w->v1), c = a->w->theta * a->l->fall[a->i], x;
    double root = u * u - 4 * c * a->gap, sum = -0.5 * (u + (u < 0 ? -1 : 1) * sqrt(root > 0 ? root : 0));
    x = u < 0 ? a->gap / sum : sum / c;
    return x > 0 && x < most ? x : most;
}

/* Follows the island to `end`, with cuts at its impacts. */
static void lane_follow(lane *a, double end)
{
    sweep *w = a->w;
    contact_table *t = &w->contacts.table;
    const gap_row *r = a->row;
    double tol = t->tol_gap[a->i];
    for (int k = 0; k < r->n; k++) {
        w->q1[r->dof[k]] = w->q[r->dof[k]];
        w->v1[r->dof[k]] = w->v[r->dof[k]];
    }
    for (bool meets = !(a->gap > tol); a->t < end;) {
        double h = end - a->t, u = row_rate(r, w->v1);
        if (meets && !t->closed[a->i])
            lane_meet(a);
        if (h <= ROUND_2 * fabs(end))
            break;
        u = row_rate(r, w->v1);
        meets = !t->closed[a->i] && a->gap + h * (u + w->theta * h * a->l->fall[a->i]) < -tol;
        if (meets)
            h = lane_meets_after(a, h);
        double P = lane_move(a, h);
        a->gap = lane_gap(a);
        if (t->closed[a->i])
            lane_hold(a, h, P);
        lane_sizes(a);
        tol = t->tol_gap[a->i];
        a->t = meets ? a->t + h : end;
    }
    t->gap[a->i] = a->gap;
}

/* ---- all islands ---- */
static int earlier(const void *x, const void *y)
{
    const lane_hit *a = x, *b = y;
    if (a->what.t != b->what.t)
        return a->what.t < b->what.t ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

/* Records the impacts of the step, sorted by time as in other steps. */
static void lanes_note(sweep *w, struct lanes *l)
{
    if (l->hits.n > 1)
        qsort(l->hits.at, l->hits.n, sizeof *l->hits.at, earlier);
    for (size_t i = 0; i < l->hits.n; i++)
        note_impact(w->r->a, l->hits.at[i].k->out, l->hits.at[i].what);
    l->hits.n = 0;
}

/* Moves n dofs from `at` on without contacts. Returns 0 if all are finite; sets *more if a size grows. Loops
   of a known length are vectorised by compilers. */
static inline double fly(sweep *w, const struct lanes *l, int at, int n, int *more)
{
    const double h = w->h, early = h * (1 - w->theta), late = h * w->theta, *q = w->q + at, *v = w->v + at,
                 *drift = l->drift + at, *vmax = w->size.vmax + at, *qmax = w->size.qmax + at;
    double q1[ABREAST], v1[ABREAST], finite[ABREAST] = { 0 }, over[ABREAST] = { 0 }, sum = 0, most = -1;
    for (int i = 0; i < n; i++) {
        v1[i] = v[i] + drift[i];
        q1[i] = q[i] + (early * v[i] + late * v1[i]);
        double speed = fabs(v1[i]), far = larger(fabs(q1[i]), h * speed);
        finite[i] = 0 * q1[i];
        over[i] = larger(speed - vmax[i], far - qmax[i]);
    }
    memcpy(w->q1 + at, q1, (size_t)n * sizeof *q1);
    memcpy(w->v1 + at, v1, (size_t)n * sizeof *v1);
    for (int i = 0; i < n; i++) {
        sum += finite[i];
        most = larger(most, over[i]);
    }
    *more |= most > 0;
    return sum;
}

/* Moves all dofs; false: some are not finite, and nothing has changed. */
static bool lanes_fly(sweep *w, const struct lanes *l, bool *grown)
{
    double finite = 0;
    int more = 0, i = 0;
    for (; i + ABREAST <= w->n; i += ABREAST)
        finite += fly(w, l, i, ABREAST, &more);
    if (i < w->n)
        finite += fly(w, l, i, w->n - i, &more);
    *grown = more;
    return finite == 0;
}

/* Closed contacts hold their islands, over the whole step. */
static void lanes_rest(sweep *w, struct lanes *l, double h)
{
    contact_table *t = &w->contacts.table;
    for (size_t i = 0; i < t->n; i++) {
        if (!t->closed[i])
            continue;
        lane a = { w, l, i, &t->row[i], w->t1, 0 };
        for (int k = 0; k < a.row->n; k++) {
            w->q1[a.row->dof[k]] = w->q[a.row->dof[k]];
            w->v1[a.row->dof[k]] = w->v[a.row->dof[k]];
        }
        t->P[t->first[i]] = lane_move(&a, h);
        w->r->solver = w->r->solver ? w->r->solver : "closed form";
    }
}

/* Processes a contact at the end of the step. */
static void lane_look(sweep *w, struct lanes *l, size_t i, double end)
{
    contact_table *t = &w->contacts.table;
    lane a = { w, l, i, &t->row[i], w->t, t->gap[i] };
    if (t->closed[i]) {
        double P = t->P[t->first[i]];
        t->P[t->first[i]] = 0;
        lane_hold(&a, w->h, P);
        t->gap[i] = a.gap;
    } else if (!(l->from[i] > t->tol_gap[i]) || !(t->gap[i] >= -t->tol_gap[i])) {
        a.gap = l->from[i];
        lane_follow(&a, end);
        w->r->solver = w->r->solver ? w->r->solver : "closed form";
    }
    w->r->max_penetration = larger(-t->gap[i], w->r->max_penetration);
}

/* Do all contacts from `at` on stay open, above their tolerance at both ends of the step? */
static inline bool all_open(const contact_table *t, const struct lanes *l, size_t at)
{
    uint64_t closed;
    const double *from = l->from + at, *gap = t->gap + at, *tol = t->tol_gap + at;
    double least[ABREAST], all = INFINITY;
    for (int i = 0; i < ABREAST; i++) {
        double nearer = from[i] < gap[i] ? from[i] : gap[i];
        least[i] = nearer - tol[i];
    }
    for (int i = 0; i < ABREAST; i++)
        all = least[i] < all ? least[i] : all;
    _Static_assert(sizeof closed == ABREAST * sizeof *t->closed, "flags of the contacts abreast");
    memcpy(&closed, t->closed + at, sizeof closed);
    return all > 0 && closed == 0;
}

static void lanes_look(sweep *w, struct lanes *l, double end)
{
    contact_table *t = &w->contacts.table;
    for (size_t at = 0; at < t->n; at += ABREAST) {
        size_t stop = at + ABREAST < t->n ? at + ABREAST : t->n;
        if (stop - at == ABREAST && all_open(t, l, at))
            continue;
        for (size_t i = at; i < stop; i++)
            lane_look(w, l, i, end);
    }
}

/* Updates the sizes of all dofs, and tolerances: the same as sweep_sizes and sweep_sizes_known, for contacts
   whose surfaces do not move. */
static void lanes_sizes(sweep *w)
{
    contact_table *t = &w->contacts.table;
    double *qmax = w->size.qmax, *vmax = w->size.vmax;
    for (int i = 0; i < w->n; i++) {
        double v = fabs(w->v[i]), q = larger(fabs(w->q[i]), w->h * v);
        vmax[i] = larger(v, vmax[i]);
        qmax[i] = larger(q, qmax[i]);
    }
    for (size_t f = 0; f < w->p->ncontact; f++) {
        double length = w->size.lengths[f];
        for (size_t i = t->from[f]; i < t->from[f + 1]; i++) {
            const gap_row *r = &t->row[i];
            double size = 0, rate = 0;
            for (int k = 0; k < r->n; k++) {
                size += fabs(r->H[k]) * qmax[r->dof[k]];
                rate += fabs(r->H[k]) * vmax[r->dof[k]];
            }
            length = larger(length, size);
            t->tol_gap[i] = GAP_IS_ZERO * size;
            t->tol_u[i] = RATE_IS_ZERO * rate;
        }
        w->size.lengths[f] = length;
    }
}

/* Adds the work of forces without potential along the motion of each dof; the end of the step becomes the
   current state. */
static void lanes_accept(sweep *w)
{
    double *way = w->room.x1;
    for (int i = 0; w->s->driving.n && i < w->n; i++)
        way[i] = w->q1[i] - w->q[i];
    w->account.books->work += sweep_driven(w, w->h, way);
    SWAP(w->q, w->q1);
    SWAP(w->v, w->v1);
    w->t = w->t1;
    w->fresh = false;
    w->account.opened = 0;
}

bool sweep_lanes(sweep *w, double end)
{
    struct lanes *l = w->quick.lanes;
    contact_table *t = &w->contacts.table;
    bool grown;
    if (!l || !(fabs(end - w->t - w->h) <= STEP_SAME * w->h) || !lanes_fly(w, l, &grown))
        return false;
    w->t1 = w->t + w->h;
    bool rest = memchr(t->closed, true, t->n);
    if (rest)
        lanes_rest(w, l, w->h);
    memcpy(l->from, t->gap, t->n * sizeof *l->from);
    system_at(w->s, w->t1, w->q1, w->v1);
    sweep_gaps_but(w, NULL);
    lanes_look(w, l, end);
    t->counted = rest || l->hits.n;
    lanes_note(w, l);
    lanes_accept(w);
    if (grown)
        lanes_sizes(w);
    return true;
}
