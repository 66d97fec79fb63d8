/* sweep_quick: the most common step of small models: everything is linear, and there is at most one contact,
   which stays open or closed throughout. It gives the numbers of sweep_advance, bit for bit. Any other step
   is left to sweep_advance, with nothing changed. */
#include <math.h>
#include "sweep.h"
#include "program/ahead.h"
#include "base/tolerances.h"

/* The step is compiled separately for small sizes, which makes it faster: functions with this mark are
   inlined into each copy. */
#define COPIED static inline __attribute__((always_inline))

enum { FEW_DOFS = 2 };

/* Constant data. */
struct quick {
    double h, early, late; /* step; weights of its start and end in the positions: h (1 - theta), h theta */
    double *drift;         /* n: change of the rates by constant forces in a step; NULL: forces change */
    const factor *inverse; /* of the masses, or of the matrix of the step */
    bool few;              /* few dofs: matrices are full or diagonal, and rows have entries at all dofs */
    contact_state *k;      /* the contact, or NULL */
    int gap_dof;           /* its gap equals this dof; -1: it must be evaluated */
    /* Parts of the forces, and forces without potential, that depend only on time, at the ends of the next
       steps; NULL: not used. */
    timed_term *force, *driving;
    int64_t ahead; /* the first of these steps */
    int known;     /* their number */
    double *times; /* LANES */
};

/* ---- which models ---- */
static bool quick_fits(const sweep *w)
{
    const system_t *s = w->s;
    if (!w->linear || w->p->nevent || s->past || s->first_order || w->stiffness != 0 ||
        w->contacts.nstate > 1 || w->hand.brake.on || w->contacts.near.nof || w->policy.cut == CUT_NEVER ||
        w->o->only_general)
        return false;
    return w->contacts.nstate == 0 ||
           (w->contacts.state[0]->still && !w->contacts.state[0]->c->fam->f->mu_of_speed &&
            !w->contacts.state[0]->c->fam->f->of_rates && !w->contacts.state[0]->c->fam->f->cascade);
}

static bool few_dofs(const sweep *w)
{
    const matrix_shape *shape = &w->s->step_shape;
    return w->n <= FEW_DOFS && (shape->kind == MATRIX_DENSE || shape->kind == MATRIX_DIAGONAL) &&
           (w->contacts.nstate == 0 || !w->contacts.state[0]->c->dof);
}

static int gap_dof(const contact_state *k)
{
    const term *t = &k->c->fam->gap;
    bool copy = k->normal && t->k && t->nmove == 1 && t->k->tape.ncode == 0 && t->move->kind == IN_Q &&
                (int32_t)t->k->tape.out[0] == t->move->reg;
    return copy ? t->move->from : -1;
}

/* ---- values that depend only on time ---- */
static void quick_timed(sweep *w, struct quick *p)
{
    const system_t *s = w->s;
    if (!p->few || s->force_constant || w->o->inputs)
        return; /* inputs may change, so nothing is computed ahead */
    p->force = timed_new(w->a, &s->force);
    p->driving = s->power.n ? NULL : timed_new(w->a, &s->driving);
    if (p->driving && p->driving->rest.ncode)
        p->driving = NULL;
    p->times = arena_array(w->a, double, LANES);
}

/* Index of the step among those computed ahead; times are those of quick_step. */
static inline int quick_ahead(sweep *w, struct quick *p, const run_clock *c)
{
    int64_t step = c->step + 1;
    if (step >= p->ahead && step < p->ahead + p->known)
        return (int)(step - p->ahead);
    for (int i = 0; i < LANES; i++)
        p->times[i] = clock_time(c, step + i - 1) + p->h;
    if (p->force)
        timed_fill(p->force, w->r->param, p->times, LANES);
    if (p->driving)
        timed_fill(p->driving, w->r->param, p->times, LANES);
    p->ahead = step;
    p->known = LANES;
    return 0;
}

void sweep_quick_new(sweep *w)
{
    const system_t *s = w->s;
    if (!quick_fits(w))
        return;
    struct quick *p = w->quick.steps = arena_make(w->a, struct quick);
    p->h = w->h;
    p->early = w->h * (1 - w->theta);
    p->late = w->h * w->theta;
    p->inverse = s->force_of_state ? &w->matrix.df : &s->minv;
    p->few = few_dofs(w);
    p->k = w->contacts.nstate ? w->contacts.state[0] : NULL;
    p->gap_dof = p->k ? gap_dof(p->k) : -1;
    quick_timed(w, p);
    if (!s->force_constant)
        return;
    p->drift = arena_array(w->a, double, w->n);
    for (int i = 0; i < w->n; i++)
        w->room.x2[i] = w->h * ((1 - w->theta) * w->f[i] + w->theta * w->f1[i]);
    solve_with(&s->minv, w->room.x2, p->drift);
}

const double *sweep_quick_drift(const sweep *w)
{
    return w->quick.steps->drift;
}

/* ---- a step ---- */
/* Properties of a copy of the step that are known at compile time. */
typedef struct copy {
    int n;
    bool few, steady; /* forces are constant */
} copy;

/* Ends of the trial step and temporary arrays. With few dofs the numbers are local; otherwise they are those
   of the run. */
typedef struct trial {
    const double *q, *v, *f;   /* at its start */
    double *q1, *v1;           /* at its end */
    double *x, *mean, *change; /* positions if rates stayed constant; mean rates of the step; a change */
} trial;

COPIED double row_times(const contact *c, const double *row, const double *v, copy y)
{
    return y.few ? vec_dot(row, v, y.n) : contact_rate(c, row, v);
}

COPIED double matrix_row_times(bool diagonal, const double *a, const double *x, int i, int n)
{
    return diagonal ? a[i] * x[i] : vec_dot(a + i * n, x, n);
}

/* Copies the end of the step to where kernels and others read it. */
COPIED void quick_put(sweep *w, trial o, copy y)
{
    for (int i = 0; y.few && i < y.n; i++) {
        w->q1[i] = o.q1[i];
        w->v1[i] = o.v1[i];
    }
}

/* Forces at the end of the step if rates stayed constant; then the rates and positions that they lead to. */
COPIED void quick_free(sweep *w, const struct quick *p, trial o, int at, copy y)
{
    double th = w->theta;
    if (y.steady) {
        for (int i = 0; i < y.n; i++)
            o.v1[i] = o.v[i] + p->drift[i];
        return;
    }
    for (int i = 0; i < y.n; i++)
        w->q1[i] = o.x[i] = o.q[i] + (p->early * o.v[i] + p->late * o.v[i]);
    system_at(w->s, w->t1, w->q1, w->v);
    if (y.few && p->force) {
        for (int i = 0; i < y.n; i++)
            w->f1[i] = 0;
        timed_add(p->force, at, &w->s->in, w->f1);
    } else
        system_force(w->s, w->f1);
    for (int i = 0; i < y.n; i++)
        o.mean[i] = p->h * ((1 - th) * o.f[i] + th * w->f1[i]);
    if (!y.few)
        solve_with(p->inverse, o.mean, o.change);
    else if (p->inverse->kind == FACTOR_DIAGONAL)
        for (int i = 0; i < y.n; i++)
            o.change[i] = matrix_row_times(true, p->inverse->a, o.mean, i, y.n);
    else
        for (int i = 0; i < y.n; i++)
            o.change[i] = matrix_row_times(false, p->inverse->a, o.mean, i, y.n);
    for (int i = 0; i < y.n; i++)
        o.v1[i] = o.v[i] + o.change[i];
}

/* Does the slip reverse or come to rest? See sweep_turns. */
COPIED bool quick_turns(const contact_state *k, trial o, copy y)
{
    const contact *c = k->c;
    double along = 0, before = 0, after = 0;
    for (int j = 0; j < c->d; j++) {
        const double *S = c->S + (size_t)j * (size_t)c->n;
        double a = row_times(c, S, o.v, y) + k->s0m[j], b = row_times(c, S, o.v1, y) + c->s0[j];
        along += a * b;
        before += a * a;
        after += b * b;
    }
    return contact_slips(sqrt(before), k->tol_slip, k->now.held) &&
           !(after > k->tol_slip * k->tol_slip && along > 0);
}

/* Adds the impulse of the closed contact to the rates at the end; false: something it needs is not computed
   yet. */
COPIED bool quick_react(sweep *w, const struct quick *p, trial o, copy y)
{
    contact_state *k = p->k;
    const contact *c = k->c;
    double *b = w->hand.b;
    if (k->alone.cone_step != p->h || k->alone.cone.d != c->d || k->stamp != w->matrix.stamp ||
        k->alone.stamp_a != w->matrix.stamp)
        return false;
    if (k->normal && !(k->alone.A[0] > 0))
        return false;
    if (k->normal)
        *b++ = row_times(c, c->H, o.v1, y) + (c->ht + w->contacts.table.ahead[k->at]);
    for (int j = 0; j < c->d; j++)
        *b++ = row_times(c, c->S + (size_t)j * (size_t)c->n, o.v1, y) + c->s0[j];
    k->row = 0; /* samples use it too */
    if (!cone_solve(&k->alone.cone, k->alone.A, rows_of(k), w->hand.b, w->hand.rr, w->hand.local))
        return false;
    if (k->relation == REL_GAP && !(w->hand.rr[0] > 0))
        return false; /* it opens */
    for (int i = 0; y.few && i < y.n; i++)
        w->v1[i] = o.v1[i];
    sweep_react(w, w->v1, false);
    for (int i = 0; y.few && i < y.n; i++)
        o.v1[i] = w->v1[i];
    return c->d == 0 || !quick_turns(k, o, y);
}

/* Updates f1 from positions x to q1 and v1. */
COPIED void quick_follows(sweep *w, trial o, copy y)
{
    if (!y.few) {
        sweep_force_follows(w, o.x, w->v);
        return;
    }
    const system_t *s = w->s;
    bool diagonal = s->step_shape.kind == MATRIX_DIAGONAL;
    for (int i = 0; i < y.n; i++)
        o.change[i] = o.q1[i] - o.x[i];
    for (int i = 0; i < y.n; i++)
        w->f1[i] += matrix_row_times(diagonal, w->matrix.Fq, o.change, i, y.n);
    if (!s->force_dv.n)
        return;
    for (int i = 0; i < y.n; i++)
        o.change[i] = o.v1[i] - o.v[i];
    for (int i = 0; i < y.n; i++)
        w->f1[i] += matrix_row_times(diagonal, w->matrix.Fv, o.change, i, y.n);
}

COPIED bool quick_grows(const sweep *w, trial o, copy y)
{
    bool grown = false;
    for (int i = 0; i < y.n; i++) {
        double v = fabs(o.v1[i]), q = fabs(o.q1[i]);
        grown |= v > w->size.vmax[i] || q > w->size.qmax[i] || w->h * v > w->size.qmax[i];
    }
    return grown;
}

/* Does the contact do the same at the end as at the start? If it closes at the end, the next step handles
   that; sizes are then those of the end. */
COPIED bool quick_stays(sweep *w, const struct quick *p, trial o, bool grown, double *gap, copy y)
{
    const contact_state *k = p->k;
    if (!k || !k->normal)
        return true;
    if (p->gap_dof >= 0)
        *gap = o.q1[y.n == 1 ? 0 : p->gap_dof];
    else {
        quick_put(w, o, y);
        system_at(w->s, w->t1, w->q1, w->v1);
        *gap = term_value(&k->c->fam->gap, &w->s->in, k->c->index);
    }
    if (closed(w, k))
        return fabs(*gap) <= 0.25 * w->contacts.table.tol_gap[k->at];
    if (!grown)
        return *gap > w->contacts.table.tol_gap[k->at];
    for (int i = 0; i < y.n; i++)
        w->room.x3[i] = larger(larger(fabs(o.q1[i]), w->h * fabs(o.v1[i])), w->size.qmax[i]);
    return *gap > gap_tolerance(k->c, w->room.x3);
}

/* see sweep_driven */
COPIED double quick_driven(sweep *w, const struct quick *p, trial o, int at, copy y)
{
    double *now = w->account.driving, th = w->theta, work = 0, end[FEW_DOFS] = { 0 };
    if (!y.few || !p->driving || !w->account.driving_known)
        return sweep_driven(w, p->h, NULL);
    timed_add(p->driving, at, &w->s->in, end);
    for (int i = 0; i < y.n; i++) {
        work += 0.5 * p->h * (o.v[i] + o.v1[i]) * ((1 - th) * now[i] + th * end[i]);
        now[i] = end[i];
    }
    return work;
}

/* Adds the work of the forces and of the contact to the books, as sweep_accept does; q1, v1 must contain the
   end of the step. */
COPIED void quick_account(sweep *w, const struct quick *p, trial o, int at, copy y)
{
    contact_state *k = p->k;
    if (!y.steady || w->s->driving.n || w->s->power.n)
        w->account.books->work += quick_driven(w, p, o, at, y);
    for (int j = 0, a = k ? k->normal : 0; k && closed(w, k) && j < rows_of(k); j++) {
        const contact *c = k->c;
        const double *row = row_of(k, c->H, c->S, j);
        double P = w->hand.rr[j], still = 0.5 * (j < a ? k->htm + c->ht : k->s0m[j - a] + c->s0[j - a]);
        k->P[j] = 0 + P;
        k->r[j] = P / p->h;
        if (P == 0)
            continue;
        double rate = 0.5 * (row_times(c, row, o.v, y) + row_times(c, row, o.v1, y)) + still;
        w->account.books->dissipated -= P * rate;
        w->account.books->work -= P * still;
    }
}

/* The end of the step becomes the current state. */
COPIED void quick_accept(sweep *w, const struct quick *p, bool grown, double gap, copy y)
{
    contact_state *k = p->k;
    SWAP(w->q, w->q1);
    SWAP(w->v, w->v1);
    if (!y.steady)
        SWAP(w->f, w->f1);
    if (grown) {
        sweep_sizes(w);
        sweep_sizes_known(w);
    }
    if (!k)
        return;
    *k->c->gap = gap;
    double depth = k->relation == REL_BILATERAL ? fabs(gap) : -gap;
    if (depth > w->r->max_penetration)
        w->r->max_penetration = depth;
}

COPIED bool quick_step(sweep *w, const struct quick *p, double end, int at, copy y)
{
    double q[FEW_DOFS], v[FEW_DOFS], f[FEW_DOFS], q1[FEW_DOFS], v1[FEW_DOFS], x[FEW_DOFS], mean[FEW_DOFS],
        change[FEW_DOFS], finite = 0, gap = 0;
    trial o = y.few ? (trial){ q, v, f, q1, v1, x, mean, change }
                    : (trial){ w->q, w->v, w->f, w->q1, w->v1, w->room.x4, w->room.x2, w->room.x1 };
    if (!(fabs(end - w->t - p->h) <= STEP_SAME * p->h))
        return false;
    w->t1 = w->t + p->h;
    for (int i = 0; y.few && i < y.n; i++) {
        q[i] = w->q[i];
        v[i] = w->v[i];
        f[i] = w->f[i];
    }
    quick_free(w, p, o, at, y);
    if (p->k && closed(w, p->k) && !quick_react(w, p, o, y))
        return false;
    for (int i = 0; i < y.n; i++) {
        o.q1[i] = o.q[i] + (p->early * o.v[i] + p->late * o.v1[i]);
        finite += 0 * o.v1[i];
    }
    if (!(finite == 0))
        return false;
    if (!y.steady && w->s->force_of_state)
        quick_follows(w, o, y);
    bool grown = quick_grows(w, o, y);
    if (!quick_stays(w, p, o, grown, &gap, y))
        return false;
    quick_put(w, o, y);
    quick_account(w, p, o, at, y);
    quick_accept(w, p, grown, gap, y);
    return true;
}

/* ---- steps of the run ---- */
/* Stores the current state as a sample. */
COPIED void quick_sample(sweep *w, const struct quick *p, int64_t at, copy y)
{
    const contact_state *k = p->k;
    results *r = w->r;
    if (k && closed(w, k)) {
        sweep_sample_state(w, at);
        return;
    }
    for (int i = 0; i < y.n; i++) {
        r->q[at * y.n + i] = w->q[i];
        r->v[at * y.n + i] = w->v[i];
    }
    for (int i = 0; !(r->disk.absent & PART_ACC) && i < y.n; i++)
        r->acc[at * y.n + i] = w->f[i];
    if (!k)
        return;
    k->out->gap[at] = *k->c->gap;
    k->out->rn[at] = 0;
    k->out->status[at] = STATUS_OPEN;
    for (int j = 0, n = k->out->nslip; j < n; j++)
        k->out->rt[at * n + j] = 0;
}

/* Can quick_flight take steps? Few dofs, constant forces that all have a potential, and no contact or an open
   one whose gap is a dof. */
static bool quick_flies(const sweep *w, const struct quick *p, copy y)
{
    if (!y.few || !y.steady || w->s->driving.n || w->s->power.n)
        return false;
    return !p->k || (p->k->normal && p->gap_dof >= 0 && !closed(w, p->k));
}

/* Steps in which sizes do not grow, with all data in local variables; the same numbers as quick_step. Takes
   at most `count` steps, up to the first at which a sample is due. Returns their number. */
COPIED int64_t quick_flight(sweep *w, const struct quick *p, run_clock *c, int64_t count, copy y)
{
    double q[FEW_DOFS], v[FEW_DOFS], q0[FEW_DOFS], v0[FEW_DOFS], drift[FEW_DOFS], qmax[FEW_DOFS],
        vmax[FEW_DOFS];
    const double h = p->h, early = p->early, late = p->late, last = c->last, apart = c->apart,
                 slack = STEP_SAME * h;
    double t = w->t, from = t, tol = p->k ? w->contacts.table.tol_gap[p->k->at] : 0;
    int at = y.n == 1 || !p->k ? 0 : p->gap_dof;
    bool touches = p->k;
    int64_t done = 0, step = c->step;
    for (int i = 0; i < y.n; i++) {
        q[i] = q0[i] = w->q[i];
        v[i] = v0[i] = w->v[i];
        drift[i] = p->drift[i];
        qmax[i] = w->size.qmax[i];
        vmax[i] = w->size.vmax[i];
    }
    while (done < count) {
        double end = (double)(step + done + 1) * c->h, q1[FEW_DOFS], v1[FEW_DOFS], finite = 0;
        bool plain = fabs(end - t - h) <= slack;
        for (int i = 0; i < y.n; i++) {
            v1[i] = v[i] + drift[i];
            q1[i] = q[i] + (early * v[i] + late * v1[i]);
            finite += 0 * v1[i];
            double speed = fabs(v1[i]), size = fabs(q1[i]);
            plain &= (speed <= vmax[i]) & (size <= qmax[i]) & (h * speed <= qmax[i]);
        }
        if (!plain || !(finite == 0) || (touches && !(q1[at] > tol)))
            break;
        for (int i = 0; i < y.n; i++) {
            q0[i] = q[i];
            v0[i] = v[i];
            q[i] = q1[i];
            v[i] = v1[i];
        }
        from = t;
        t = end;
        done++;
        if (end - last >= apart)
            break;
    }
    if (done == 0)
        return 0;
    for (int i = 0; i < y.n; i++) {
        w->q[i] = q[i];
        w->v[i] = v[i];
        w->q1[i] = q0[i];
        w->v1[i] = v0[i];
    }
    if (touches)
        *p->k->c->gap = q[at];
    w->fresh = false;
    w->account.step_from = from;
    w->t1 = from + h;
    c->t = w->t = t;
    c->step = step + done;
    return done;
}

COPIED void quick_steps(sweep *w, run_clock *c, int64_t count, copy y)
{
    struct quick *p = w->quick.steps;
    double from = w->t;
    bool timed = y.few && p->times && from == clock_time(c, c->step);
    if (y.few && p->times && !timed)
        return;
    const bool flies = c->apart > 0 && quick_flies(w, p, y);
    for (int64_t i = 0; i < count;) {
        int64_t flown = flies ? quick_flight(w, p, c, count - i, y) : 0;
        double end = flown ? w->t : clock_time(c, c->step + 1);
        if (!flown) {
            if (!quick_step(w, p, end, timed ? quick_ahead(w, p, c) : 0, y))
                return;
            w->fresh = false;
            w->account.step_from = from;
            w->t = end;
        }
        i += flown ? flown : 1;
        from = end;
        if (flown ? !(end - c->last >= c->apart) : !clock_plain(c, end))
            continue;
        if (w->r->disk.later)
            quick_sample(w, p, clock_sample_state(c, end), y);
        else if (!clock_sample(c, end))
            return;
    }
}

/* Is the contact far enough from closing or opening? Then the step is like any other. */
static bool quick_ready(sweep *w)
{
    contact_state *k = w->quick.steps ? w->quick.steps->k : NULL;
    if (!w->quick.steps || w->policy.patience < MAX_AGAIN ||
        (w->s->force_of_state && w->matrix.d_step != w->h) ||
        (k && !closed(w, k) && !(*k->c->gap > w->contacts.table.tol_gap[k->at])))
        return false;
    w->policy.again = 0;
    w->account.opened = 0;
    sweep_gather(w);
    if (k) {
        w->contacts.table.hits[k->at] = 0;
        k->row = 0;
    }
    for (int j = 0; k && j < rows_of(k); j++)
        k->P[j] = 0;
    return true;
}

void sweep_quick(void *of, run_clock *c, int64_t count)
{
    sweep *w = of;
    if (!quick_ready(w))
        return;
    if (w->quick.native) {
        sweep_native_steps(w, c, count);
        return;
    }
    int n = w->quick.steps->few ? w->n : 0;
    bool steady = w->quick.steps->drift;
    if (n == 1 && steady)
        quick_steps(w, c, count, (copy){ 1, true, true });
    else if (n == 1)
        quick_steps(w, c, count, (copy){ 1, true, false });
    else if (n == 2 && steady)
        quick_steps(w, c, count, (copy){ 2, true, true });
    else if (n == 2)
        quick_steps(w, c, count, (copy){ 2, true, false });
    else
        quick_steps(w, c, count, (copy){ w->n, false, steady });
}
