/* events_mode: what happens at an instant.  Shocks through the step problem; after them each contact opens,
   stays, sticks or slips: first by the step problem for accelerations, and where that leaves two answers by
   the first coefficient of the series of gap, reaction, cone or slip that is not 0 (Ballard & Basseville,
   Theorem 4.1). */
#include <float.h>
#include <math.h>
#include <string.h>
#include "events.h"

static double gap_rate(const ev *w, const rub *k, const double *v)
{
    return vec_dot(k->c->H, v, w->n) + k->c->ht;
}

static double slip_of(const ev *w, const contact *c, const double *v, double *slip)
{
    double s = 0;
    for (int i = 0; i < c->d; i++) {
        slip[i] = vec_dot(c->S + (size_t)i * w->n, v, w->n) + c->s0[i];
        s += slip[i] * slip[i];
    }
    return sqrt(s);
}

static double weighted(const double *row, const double *size, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++)
        s += fabs(row[i]) * size[i];
    return s;
}

/* Rates that a reaction has held at 0 are the rounding of what the forces would have made of them over the
   piece before: no larger ones were seen that they could be compared with. */
static void rounded_piece(const ev *w, rub *k)
{
    double v = 4 * DBL_EPSILON * w->size * w->last_h;
    k->tol_gap = fmax(k->tol_gap, v * w->last_h * k->grip_n);
    k->tol_u = fmax(k->tol_u, v * k->grip_n);
    k->tol_slip = fmax(k->tol_slip, v * k->grip_t);
}

static void tolerances(ev *w, rub *k)
{
    const contact *c = k->c;
    k->tol_gap = 1e-12 * weighted(c->H, w->qmax, w->n);
    k->tol_u = 1e-13 * (weighted(c->H, w->vmax, w->n) + fabs(c->ht));
    k->tol_slip = 0;
    for (int i = 0; i < c->d; i++)
        k->tol_slip += 1e-13 * (weighted(c->S + (size_t)i * w->n, w->vmax, w->n) + fabs(c->s0[i]));
    rounded_piece(w, k);
}

static double grip_of(ev *w, const double *row)
{
    factor_solve(&w->s->minv, row, w->x1);
    return sqrt(fmax(vec_dot(row, w->x1, w->n), 0));
}

/* A force f along a row moves it at the rate f grip^2: sizes of either follow from those of the motion. */
static void grips(ev *w, rub *k)
{
    const contact *c = k->c;
    k->grip_n = c->fam->f->relation != REL_CLOSED ? grip_of(w, c->H) : 0;
    k->grip_t = 0;
    for (int i = 0; i < c->d; i++)
        k->grip_t = fmax(k->grip_t, grip_of(w, c->S + (size_t)i * w->n));
}

double ev_zero_force(const ev *w, double grip)
{
    return grip > 0 ? 1e-11 * w->size / grip : 0;
}

double ev_zero_rate(const ev *w, double grip)
{
    return 1e-12 * w->size * grip;
}

/* rates of first-order dofs follow from the state */
static bool masses(ev *w)
{
    int bad;
    ev_force0(w);
    if (!system_factor(w->s, w->M, &bad))
        return ev_fail(w, mass_where(w->p, bad),
                       arena_printf(w->r->a,
                                    "the mass matrix is not positive definite at t = %s, in the row of '%s'",
                                    ev_number(w, w->t), dof_name(w->p, bad, w->r->a)));
    if (!w->s->first_order)
        return true;
    factor_solve(&w->s->minv, w->f, w->x1);
    for (int i = 0; i < w->n; i++)
        if (w->p->order[i] == 1) {
            w->v[i] = w->x1[i];
            w->v_low[i] = 0;
        }
    return true;
}

bool ev_survey(ev *w)
{
    for (int i = 0; i < w->n; i++) {
        w->qmax[i] = fmax(w->qmax[i], fabs(w->q[i]));
        w->vmax[i] = fmax(w->vmax[i], fabs(w->v[i]));
    }
    if (!masses(w))
        return false;
    system_at(w->s, w->t, w->q, w->v);
    for (int i = 0; i < w->nrub; i++) {
        rub *k = &w->rub[i];
        contact_gap(w->s, k->c);
        contact_rows(w->s, k->c, w->M, true);
        contact_laws(w->s, k->c, true);
        grips(w, k);
        tolerances(w, k);
        if (k->c->fam->f->relation != REL_CLOSED && !isfinite(*k->c->gap))
            return ev_fail(w, k->c->fam->f->at,
                           arena_printf(w->r->a, "the gap of '%s' is not finite at t = %s",
                                        contact_name(k->c, w->r->a), ev_number(w, w->t)));
        k->un = k->c->fam->f->relation == REL_CLOSED ? 0 : gap_rate(w, k, w->v);
    }
    return true;
}

/* ---- the step problem ---- */
static int rows_of(const contact *c)
{
    return (c->fam->f->relation != REL_CLOSED) + c->d;
}
static const double *row_of(const ev *w, const contact *c, int j)
{
    int k = c->fam->f->relation != REL_CLOSED;
    return j < k ? c->H : c->S + (size_t)(j - k) * w->n;
}

static void law_at(ev *w, const rub *k, double speed, bool shock, double *mu, double *radius)
{
    contact *c = k->c;
    const contact_family *f = c->fam->f;
    double x = f->mu_of_speed ? contact_mu(w->s, c, speed) : c->mu;
    bool tresca = f->friction == FRICTION_TRESCA, given = f->relation == REL_CLOSED;
    *mu = tresca || given ? 0 : x;
    *radius = tresca ? (shock ? 0 : x) : given ? (shock ? 0 : x * fabs(c->normal)) : x * k->base;
}

static void law_of_shock(void *ud, int i, double speed, double *mu, double *radius)
{
    ev *w = ud;
    law_at(w, w->act[i], speed, true, mu, radius);
}

static void put_problem(ev *w, bool shock)
{
    int m = 0, n = w->n;
    double *G = w->G;
    for (int i = 0; i < w->nact; i++) {
        rub *k = w->act[i];
        const contact_family *f = k->c->fam->f;
        cone *c = &w->cone[i];
        *c = (cone){ .kind = f->relation == REL_GAP         ? CONE_UNILATERAL
                             : f->relation == REL_BILATERAL ? CONE_BILATERAL
                                                            : CONE_GIVEN };
        c->d = k->c->d;
        c->row = k->row = m;
        c->of_speed = shock && f->mu_of_speed && c->d;
        if (c->of_speed)
            c->speed = slip_of(w, k->c, w->v, w->x2);
        else if (c->d)
            law_at(w, k, 0, shock, &c->mu, &c->radius);
        m += cone_rows(c);
        for (int j = 0; j < rows_of(k->c); j++)
            factor_solve(&w->s->minv, row_of(w, k->c, j), G + (size_t)(k->row + j) * n);
    }
    for (int i = 0; i < w->nact; i++)
        for (int j = 0; j < rows_of(w->act[i]->c); j++)
            for (int l = 0; l < m; l++)
                w->W[(size_t)(w->act[i]->row + j) * m + l] = vec_dot(row_of(w, w->act[i]->c, j),
                                                                     G + (size_t)l * n, n);
    w->pr = (contact_problem){ .n = w->nact,
                               .m = m,
                               .cone = w->cone,
                               .W = w->W,
                               .b = w->b,
                               .r = w->rr,
                               .u = w->u,
                               .law = law_of_shock,
                               .ud = w };
    memset(w->rr, 0, (size_t)m * sizeof *w->rr);
}

static bool solve(ev *w)
{
    if (w->nact == 0)
        return true;
    bool ok = contact_solve(&w->pr, w->cwork, 1e-13);
    w->r->solver_iterations += w->pr.sweeps;
    w->r->branch_choices += w->pr.choices;
    w->r->solver = w->pr.solver;
    if (!ok && !(w->pr.residual < 1e-10))
        return ev_fail(
            w, w->act[w->pr.worst]->c->fam->f->at,
            arena_printf(w->r->a,
                         "the contact problem was not solved at t = %s: constraint '%s', residual %.2g",
                         ev_number(w, w->t), contact_name(w->act[w->pr.worst]->c, w->r->a), w->pr.residual));
    w->r->residual = fmax(w->r->residual, w->pr.residual);
    return true;
}

static void add_reactions(ev *w, double *x)
{
    for (int k = 0; k < w->n; k++) {
        double sum = x[k], size = fabs(x[k]), change = 0;
        for (int l = 0; l < w->pr.m; l++) {
            double d = w->G[(size_t)l * w->n + k] * w->rr[l];
            change += d;
            size += fabs(d);
        }
        sum += change;
        x[k] = change != 0 && fabs(sum) <= 1.5e-14 * size ? 0 : sum;
    }
}

/* ---- shocks ---- */
static bool shock_phase(ev *w, bool newton)
{
    int n = w->n;
    for (int i = 0; i < w->nact; i++) {
        rub *k = w->act[i];
        contact *c = k->c;
        int a = 0;
        bool newtons = newton && c->fam->f->impact == IMPACT_NEWTON && c->fam->f->relation == REL_GAP;
        if (c->fam->f->relation != REL_CLOSED)
            w->b[k->row + a++] = gap_rate(w, k, w->v) + (newtons && k->un < -k->tol_u ? k->e_now * k->un : 0);
        for (int j = 0; j < c->d; j++)
            w->b[k->row + a++] = vec_dot(c->S + (size_t)j * n, w->v, n) + c->s0[j];
    }
    if (!solve(w))
        return false;
    add_reactions(w, w->v);
    for (int i = 0; i < w->nact; i++)
        for (int j = 0; j < rows_of(w->act[i]->c); j++)
            w->act[i]->shock[j] += w->rr[w->act[i]->row + j];
    return true;
}

/* the share e of the impulse of compression is given back; friction may use it too */
static bool shock_poisson(ev *w)
{
    bool any = false;
    for (int i = 0; i < w->nact; i++) {
        rub *k = w->act[i];
        const contact_family *f = k->c->fam->f;
        k->base = f->impact == IMPACT_POISSON && f->relation == REL_GAP && k->un < -k->tol_u
                      ? k->e_now * k->shock[0]
                      : 0;
        any |= k->base > 0;
    }
    if (!any)
        return true;
    put_problem(w, true);
    for (int i = 0; i < w->nact; i++)
        w->rr[w->act[i]->row] = w->act[i]->base;
    add_reactions(w, w->v);
    memset(w->rr, 0, (size_t)w->pr.m * sizeof *w->rr);
    if (!shock_phase(w, false))
        return false;
    for (int i = 0; i < w->nact; i++) {
        if (w->act[i]->base > 0)
            w->act[i]->shock[0] += w->act[i]->base;
        w->act[i]->base = 0;
    }
    return true;
}

void ev_round(ev *w)
{
    memset(w->q_low, 0, (size_t)w->n * sizeof *w->q_low);
    memset(w->v_low, 0, (size_t)w->n * sizeof *w->v_low);
}

/* H (v + low) + ht to twice the length */
static twofold rate_twofold(const ev *w, const contact *c, const double *v)
{
    twofold s = { c->ht, 0 };
    for (int i = 0; i < w->n; i++)
        s = twofold_sum(s, twofold_product((twofold){ c->H[i], 0 }, (twofold){ v[i], w->v_low[i] }));
    return s;
}

/* Newton's law to twice the length: what solving has left is put on the rates along the reactions.  Not with
   friction, which has a law of its own, nor with Poisson's. */
static void shock_sharpen(ev *w, const double *before)
{
    int n = w->n, m = 0;
    double most = 0, b[w->nact + 1], W[w->nact * w->nact + 1];
    int at[w->nact + 1], pivot[w->nact + 1];
    for (int i = 0; i < w->nact; i++) {
        const contact_family *f = w->act[i]->c->fam->f;
        if (w->act[i]->c->d || f->relation != REL_GAP || f->impact != IMPACT_NEWTON) {
            memset(w->v_low, 0, (size_t)n * sizeof *w->v_low);
            return;
        }
        most = fmax(most, w->act[i]->shock[0]);
    }
    for (int i = 0; i < w->nact; i++)
        if (w->act[i]->shock[0] > 1e-12 * most)
            at[m++] = i;
    for (int i = 0; i < m; i++) {
        const rub *k = w->act[at[i]];
        twofold u = rate_twofold(w, k->c, before), e = { k->un < -k->tol_u ? -k->e_now : 0, 0 },
                now = rate_twofold(w, k->c, w->v);
        twofold left = twofold_sum(twofold_product(u, e), (twofold){ -now.hi, -now.lo });
        b[i] = left.hi;
        for (int j = 0; j < m; j++)
            W[i * m + j] = w->W[(size_t)k->row * w->pr.m + w->act[at[j]]->row];
        if (!(fabs(b[i]) <= 1e-12 * fabs(u.hi)))
            return;
    }
    if (!dense_solve(W, b, m, pivot))
        return;
    for (int l = 0; l < n; l++) {
        twofold v = { w->v[l], w->v[l] == 0 ? 0 : w->v_low[l] };
        for (int i = 0; i < m; i++)
            v = twofold_sum(v, twofold_product((twofold){ w->G[(size_t)w->act[at[i]]->row * n + l], 0 },
                                               (twofold){ b[i], 0 }));
        w->v[l] = v.hi;
        w->v_low[l] = v.lo;
    }
}

static void shock_account(ev *w, const double *before)
{
    int n = w->n;
    double most = 0;
    for (int i = 0; i < n; i++)
        w->x1[i] = 0.5 * (before[i] + w->v[i]);
    for (int i = 0; i < w->nact; i++)
        most = fmax(most, fabs(w->act[i]->shock[0]));
    for (int i = 0; i < w->nact; i++) {
        rub *k = w->act[i];
        contact *c = k->c;
        int a = c->fam->f->relation != REL_CLOSED;
        for (int j = 0; j < rows_of(c); j++) {
            double still = j < a ? c->ht : c->s0[j - a];
            w->c->books.dissipated -= k->shock[j] * (vec_dot(row_of(w, c, j), w->x1, n) + still);
            w->c->books.work -= k->shock[j] * still;
        }
        if (c->fam->f->relation != REL_GAP || !(k->shock[0] > 1e-12 * most))
            continue;
        double post = gap_rate(w, k, w->v);
        *vec_push(w->r->a, &w->r->contact[k->family].impacts) = (impact){ w->t, fmin(k->un, 0), fmax(post, 0),
                                                                          k->shock[0], (int32_t)c->member };
        k->before = k->flight;
        k->flight = (w->t - k->last_hit) + (w->t_low - k->last_low);
        k->last_hit = w->t;
        k->last_low = w->t_low;
    }
}

/* All contacts that are closed or at their gap take part. */
bool ev_shock(ev *w)
{
    w->nact = 0;
    for (int i = 0; i < w->nrub; i++) {
        rub *k = &w->rub[i];
        const contact_family *f = k->c->fam->f;
        if (f->relation == REL_GAP && k->mode == MODE_OPEN &&
            !(*k->c->gap <= k->tol_gap && k->un <= k->tol_u))
            continue;
        k->e_now = k->c->e;
        k->base = 0;
        memset(k->shock, 0, (size_t)(1 + k->c->fam->d) * sizeof *k->shock);
        w->act[w->nact++] = k;
    }
    double *before = w->acc;
    memcpy(before, w->v, (size_t)w->n * sizeof *w->v);
    put_problem(w, true);
    if (!shock_phase(w, true) || !shock_poisson(w))
        return false;
    shock_sharpen(w, before);
    shock_account(w, before);
    for (int i = 0; i < w->nact; i++)
        w->act[i]->un = w->act[i]->c->fam->f->relation == REL_CLOSED ? 0 : gap_rate(w, w->act[i], w->v);
    return true;
}

/* ---- accelerations: the step problem of Gauss's principle ---- */
static bool gauss(ev *w)
{
    int n = w->n;
    factor_solve(&w->s->minv, w->f, w->acc);
    system_at(w->s, w->t, w->q, w->v);
    put_problem(w, false);
    for (int i = 0; i < w->nact; i++) {
        rub *k = w->act[i];
        contact *c = k->c;
        cone *o = &w->cone[i];
        double *b = w->b + k->row, *dir = w->dir + k->row, bias[MAX_SLIP + 64], speed;
        if (c->fam->f->relation != REL_CLOSED)
            *b++ = vec_dot(c->H, w->acc, n) + contact_bias(w->s, c);
        if (c->d == 0)
            continue;
        double *sb = c->d <= MAX_SLIP + 64 ? bias : w->x2;
        contact_slip_bias(w->s, c, sb);
        for (int j = 0; j < c->d; j++)
            *b++ = vec_dot(c->S + (size_t)j * n, w->acc, n) + sb[j];
        speed = slip_of(w, c, w->v, dir);
        if (speed <= k->tol_slip)
            speed = 0;
        for (int j = 0; speed > 0 && j < c->d; j++)
            dir[j] /= speed;
        if (speed > 0)
            o->dir = dir;
        law_at(w, k, speed, false, &o->mu, &o->radius);
    }
    if (!solve(w))
        return false;
    if (w->nact)
        add_reactions(w, w->acc);
    return true;
}

/* v after h by an implicit step with the forces at its end */
bool ev_implicit(ev *w, double h, double *v)
{
    int n = w->n;
    ev_force0(w);
    factor_solve(&w->s->minv, w->f, w->x1);
    for (int k = 0; k < n; k++)
        v[k] = w->v[k] + h * w->x1[k];
    w->nact = 0;
    for (int i = 0; i < w->nrub; i++)
        if (w->rub[i].mode != MODE_OPEN)
            w->act[w->nact++] = &w->rub[i];
    put_problem(w, false);
    for (int i = 0; i < w->nact; i++) {
        rub *k = w->act[i];
        double *b = w->b + k->row;
        w->cone[i].radius *= h;
        if (k->c->fam->f->relation != REL_CLOSED)
            *b++ = gap_rate(w, k, v);
        for (int j = 0; j < k->c->d; j++)
            *b++ = vec_dot(k->c->S + (size_t)j * n, v, n) + k->c->s0[j];
    }
    if (!solve(w))
        return false;
    add_reactions(w, v);
    return true;
}

/* ---- modes ---- */
typedef struct option {
    contact_mode mode;
    int sign, sigma;
} option;
enum { MAX_CHOICES = 6, MAX_OPEN_QUESTIONS = 6 };
typedef struct choice {
    rub *k;
    option o[MAX_CHOICES];
    int n, at;
} choice;

static void choice_add(choice *c, contact_mode mode, int sign, int sigma)
{
    if (c->n < MAX_CHOICES)
        c->o[c->n++] = (option){ mode, sign, sigma };
}

static void friction_options(ev *w, choice *c, rub *k, double rn, const double *rt, double bound,
                             const double *ut, double eps_t, int sigma)
{
    contact *x = k->c;
    double slip[64], speed = x->d <= 64 ? slip_of(w, x, w->v, slip) : 0, f = sqrt(vec_dot(rt, rt, x->d)),
                     a = sqrt(vec_dot(ut, ut, x->d));
    (void)rn;
    if (x->d == 0) {
        choice_add(c, MODE_CLOSED, 0, sigma);
        return;
    }
    if (speed > k->tol_slip) {
        choice_add(c, MODE_SLIP, slip[0] > 0 ? 1 : -1, sigma);
        return;
    }
    bool sticks = f<bound *(1 - 1e-10), slides = a> eps_t;
    if (sticks || !slides)
        choice_add(c, MODE_STICK, 0, sigma);
    if (sticks && bound > 0)
        return;
    if (slides) {
        choice_add(c, MODE_SLIP, ut[0] > 0 ? 1 : -1, sigma);
        return;
    }
    if (x->d > 1) {
        choice_add(c, MODE_SLIP, 1, sigma);
        return;
    }
    choice_add(c, MODE_SLIP, rt[0] > 0 ? -1 : 1, sigma);
    choice_add(c, MODE_SLIP, rt[0] > 0 ? 1 : -1, sigma);
}

/* what the order 0 leaves open */
static void options_of(ev *w, int i, choice *c, bool all)
{
    rub *k = w->act[i];
    contact *x = k->c;
    const contact_family *f = x->fam->f;
    int a = f->relation != REL_CLOSED, n = w->n;
    const double *r = w->rr + k->row, *u = w->u + k->row;
    double eps_u = 0, eps_t, eps_r = 0, size = w->size * k->grip_t, mu, radius;
    /* a gap and a slip may be in units of their own */
    for (int j = a; j < rows_of(x); j++)
        size = fmax(size, fabs(w->b[k->row + j]) + weighted(row_of(w, x, j), w->acc, n));
    eps_t = 1e-10 * size;
    if (a) {
        size = fmax(fabs(w->b[k->row]) + weighted(x->H, w->acc, n), w->size * k->grip_n);
        eps_u = 1e-10 * size;
        eps_r = eps_u / fmax(w->W[(size_t)k->row * w->pr.m + k->row], 1e-300);
    }
    mu = w->cone[i].mu;
    radius = w->cone[i].radius;
    *c = (choice){ .k = k };
    if (f->relation == REL_BILATERAL) {
        int s = r[0] < 0 ? -1 : 1;
        friction_options(w, c, k, r[0], r + a, mu * fabs(r[0]) + radius, u + a, eps_t, s);
        if (x->d && (all || fabs(r[0]) <= eps_r))
            friction_options(w, c, k, r[0], r + a, mu * fabs(r[0]) + radius, u + a, eps_t, -s);
        return;
    }
    if (f->relation == REL_CLOSED) {
        friction_options(w, c, k, 1, r, radius, u, eps_t, 1);
        return;
    }
    bool opens = u[0] > eps_u && r[0] <= eps_r, stays = r[0] > eps_r;
    if (!opens || all)
        friction_options(w, c, k, r[0], r + a, mu * r[0] + radius, u + a, eps_t, 1);
    if (!stays || all)
        choice_add(c, MODE_OPEN, 0, 1);
}

static void option_take(choice *c)
{
    const option *o = &c->o[c->at];
    c->k->mode = o->mode;
    c->k->sign = o->sign;
    c->k->sigma = o->sigma;
}

/* the two or one functions that must not be negative while a contact sticks */
static int cone_sign(ev *w, rub *k, double h)
{
    double f[w->width];
    int K = w->K - 1, worst = 1;
    bool given = k->c->fam->f->relation == REL_CLOSED || k->c->fam->f->friction == FRICTION_TRESCA;
    if (k->c->d == 1) {
        for (int s = -1; s <= 1; s += 2) {
            for (int j = 0; j <= K; j++)
                f[j] = (given ? k->bound[j] : series_mul(k->beta, k->rn, j)) - s * k->rt[j];
            int x = series_sign(f, 0, K, h, ev_zero_force(w, k->grip_t));
            if (x < 0)
                worst = -1;
        }
        return worst;
    }
    double b[w->width], size = ev_zero_force(w, k->grip_t);
    bool turned = ev_frame_turns(k);
    const double *rn = turned ? k->fn : k->rn, *rt = turned ? k->ft : k->rt;
    for (int j = 0; j <= K; j++)
        b[j] = given ? k->bound[j] : series_mul(k->beta, rn, j);
    for (int j = 0; j <= K; j++) {
        f[j] = series_mul(b, b, j);
        for (int l = 0; l < k->c->d + turned; l++)
            f[j] -= series_mul(rt + (size_t)l * w->width, rt + (size_t)l * w->width, j);
    }
    return series_sign(f, 0, K, h, size * fmax(fabs(b[0]), size));
}

static bool mode_holds(ev *w, rub *k, double h)
{
    int K = w->K;
    const contact *c = k->c;
    double zero_r = ev_zero_force(w, k->grip_n), zero_g = ev_zero_rate(w, k->grip_n) * h * h;
    /* what is no reaction for a closed contact is no acceleration for an open one */
    if (k->candidate && c->fam->f->relation == REL_GAP)
        zero_g = fmax(zero_g, 0.5 * k->grip_n * k->grip_n * zero_r * h * h);
    k->zero_gap = zero_g;
    if (k->mode == MODE_OPEN)
        return !k->candidate || series_sign(k->g, 2, K, h, zero_g) >= 0;
    if (c->fam->f->relation == REL_GAP && series_sign(ev_normal(k), 0, K - 1, h, zero_r) < 0)
        return false;
    if (c->fam->f->relation == REL_BILATERAL && c->d) {
        double f[w->width];
        for (int j = 0; j < K; j++)
            f[j] = k->sigma * ev_normal(k)[j];
        if (series_sign(f, 0, K - 1, h, zero_r) < 0)
            return false;
    }
    if (k->mode == MODE_STICK)
        return cone_sign(w, k, h) >= 0;
    if (k->mode == MODE_SLIP) {
        double size = ev_zero_rate(w, k->grip_t) * h;
        if (k->speed[0] > fmax(k->tol_slip, 0))
            return true;
        return series_sign(k->speed, 1, K - 1, h, size) > 0;
    }
    return true;
}

bool ev_consistent(ev *w)
{
    double h = ev_scale(w);
    for (int i = 0; i < w->nrub; i++)
        if (w->rub[i].candidate && !mode_holds(w, &w->rub[i], h))
            return false;
    return true;
}

/* slip that starts from rest in two or more directions */
static bool needs_start(ev *w)
{
    bool any = false;
    for (int i = 0; i < w->nrub; i++) {
        rub *k = &w->rub[i];
        double slip[64];
        k->start = k->mode == MODE_SLIP && k->c->d > 1 && k->c->d <= 64 &&
                   slip_of(w, k->c, w->v, slip) <= k->tol_slip;
        any |= k->start;
    }
    return any;
}

static bool try_options(ev *w, choice *c, int n, bool *found)
{
    *found = false;
    for (int i = 0; i < n; i++)
        c[i].at = 0;
    for (;;) {
        for (int i = 0; i < n; i++)
            option_take(&c[i]);
        if (needs_start(w)) {
            *found = true;
            w->starting = true;
            w->elapsed = 0;
            w->start_unit = w->last_natural > 0 ? fmin(w->last_natural, w->o->duration) : w->o->duration;
            return slip_start(w);
        }
        if (!ev_series(w))
            return false;
        if (ev_consistent(w)) {
            *found = true;
            return true;
        }
        int i = 0;
        while (i < n && ++c[i].at == c[i].n)
            c[i++].at = 0;
        if (i == n)
            return true;
    }
}

static void candidates(ev *w)
{
    w->nact = 0;
    for (int i = 0; i < w->nrub; i++) {
        rub *k = &w->rub[i];
        bool was = k->mode != MODE_OPEN;
        k->candidate = k->c->fam->f->relation != REL_GAP ||
                       ((was || *k->c->gap <= k->tol_gap) &&
                        fabs(k->un) <= fmax(k->tol_u, was ? 1e3 * k->tol_u : 0));
        if (k->candidate)
            w->act[w->nact++] = k;
        else
            k->mode = MODE_OPEN;
    }
}

bool ev_decide(ev *w)
{
    bool found;
    w->decided = w->t;
    candidates(w);
    if (!gauss(w))
        return false;
    for (int i = 0; i < w->nact; i++) {
        rub *k = w->act[i];
        int a = k->c->fam->f->relation != REL_CLOSED;
        k->r0 = a ? w->rr[k->row] : 0;
        for (int j = 0; j < k->c->d && j < MAX_SLIP; j++)
            k->rt0[j] = w->rr[k->row + a + j];
    }
    if (!(w->o->duration > 0)) {
        for (int i = 0; i < w->nact; i++)
            w->act[i]->mode = w->act[i]->r0 > 0 || w->act[i]->c->fam->f->relation != REL_GAP
                                  ? (w->act[i]->c->d ? MODE_STICK : MODE_CLOSED)
                                  : MODE_OPEN;
        return true;
    }
    if (!w->choice)
        w->choice = arena_array(w->a, choice, w->nrub + 1);
    choice *c = w->choice;
    for (int pass = 0; pass < 4; pass++) {
        w->split = pass & 1;
        for (int i = 0; i < w->nact; i++)
            options_of(w, i, &c[i], pass > 1);
        if (!try_options(w, c, w->nact, &found))
            return false;
        if (found)
            return true;
        if (pass && w->nact > MAX_OPEN_QUESTIONS)
            break;
        /* the series has changed what was put there: once more from order 0 */
        if (!ev_survey(w))
            return false;
        candidates(w);
        if (!gauss(w))
            return false;
    }
    const rub *k = w->nact ? w->act[0] : &w->rub[0];
    return ev_fail(w, k->c->fam->f->at,
                   arena_printf(w->r->a,
                                "no contact mode of '%s' holds to the right of t = %s; use sweeping()",
                                contact_name(k->c, w->r->a), ev_number(w, w->t)));
}
