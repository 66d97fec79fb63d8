/* penalty_dynamics: contacts as unilateral springs and dashpots, friction regularised over a small slip
   speed: rn = max(0, -k gap - c gap'),      rt = -mu rn s / sqrt(|s|^2 + vs^2). Integrated by TR-BDF2 (order
   2, L-stable, embedded error of order 3) with Newton in each stage and control of the step.  Of two shapes
   each point that may touch is a spring; what touches is held during a step, so that its forces are smooth.
 */
#include <math.h>
#include <string.h>
#include "instant.h"
#include "penalty.h"
#include "base/tolerances.h"

/* Bank et al.: gamma = 2 - sqrt(2); stages at t, t + gamma h, t + h; STAGE_W, STAGE_W, STAGE_D are the
   weights of the last stage; the embedded rule has order 3. */
static const double GAMMA = 0.58578643762690495, STAGE_D = 0.29289321881345248, STAGE_W = 0.35355339059327376;

typedef struct spring {
    contact *c;
    double k, c_damp,
        vs; /* stiffness (0: not chosen yet), damping, slip speed over which friction builds up */
    /* frequency of the spring: 1000 over the time scale of the motion before contact; 0: not known yet */
    double quick;
    bool vs_later; /* its slip at the start gives no slip speed: chosen later */
    bool on;       /* it pushes; constant during a step, because steps end where this changes */
    bool closed;
    bool idle;   /* of shapes: a point that touches nothing now */
    double left; /* rate at which its gap was left when shapes began to touch otherwise; NAN: they did not */
    double since, pre, impulse, rn, *rt, *slip;
    double speed, bound;     /* speed of slip (at least vs); bound of friction */
    const struct spring *by; /* the contact that supplies its normal force; NULL: none */
} spring;

/* Values at the stages of a step. */
typedef struct pen_stages {
    double *q2, *v2, *A2, *q3, *v3, *A3;
    double *qs, *vs0;
} pen_stages;

/* Scales for errors, in the units of the model: the largest |q| and |q'| of each dof; sqrt(mass) of each; the
   largest |q'| and force of all dofs, weighted with the masses; the duration of the run. */
typedef struct pen_sizes {
    double *qmax, *vmax, *root, speed, force, duration;
    double rounding; /* rounding of the current spring forces, over sqrt(mass): gaps are small differences */
} pen_sizes;

/* Pairs of shapes: what touches is held during a step and found anew where it ends. */
typedef struct pen_pairs {
    bool *anew; /* of each spring: it is about other corners, edges or faces than before */
    double *A;  /* accelerations with what touches now */
    double *feature;
    int64_t *id;
    spring *spring; /* these three: as before the step */
} pen_pairs;

typedef struct pen {
    const program *p;
    results *r;
    run_clock *c;
    system_t *s;
    int n;
    double k, damping, vs, tol;
    double t, h, *q, *v, *A; /* current time, step, state and acceleration */
    pen_stages stage;
    pen_sizes size;
    double *f, *M, *Fq, *Fv, *J, *g, *dA, *err;
    factor lu;
    spring *spring;
    size_t nspring, nfed; /* nfed: contacts whose normal force depends on other reactions */
    pen_pairs pairs;
    double *driving;         /* forces without potential, one per dof */
    double power_f, power_c; /* power of those forces; power of the springs */
} pen;

/* ---- damping from the restitution ---- */

/* The restitution of x'' + 2 b x' + x = 0, x(0) = 0, x'(0) = 1, if contact ends when the force x + 2 b x'
   reaches 0. */
static double restitution_of(double b)
{
    if (b < 1) {
        double w = sqrt(1 - b * b), t = atan2(2 * b * w, b * b - w * w) / w;
        return -exp(-b * t) * (cos(w * t) - b / w * sin(w * t));
    }
    if (b == 1)
        b = 1 + OFF_CRITICAL;
    double w = sqrt(b * b - 1), t = atanh(2 * b * w / (b * b + w * w)) / w;
    return -exp(-b * t) * (cosh(w * t) - b / w * sinh(w * t));
}

double penalty_damping_ratio(double e)
{
    double lo = 0, hi = 30;
    if (e >= 1)
        return 0;
    for (int i = 0; i < 80; i++) {
        double mid = (lo + hi) / 2;
        if (restitution_of(mid) > e)
            lo = mid;
        else
            hi = mid;
    }
    return (lo + hi) / 2;
}

/* The inverse of the effective mass of a contact, H M^-1 H^T; 0: no mass, or not a usable number. */
static double mass_inverse(pen *w, const contact *c)
{
    factor_solve(&w->s->minv, c->H, w->g);
    double inv = vec_dot(c->H, w->g, w->n);
    return inv > 0 && isfinite(inv) ? inv : 0;
}

/* c = 2 ratio sqrt(k m), m the effective mass of the contact. A restitution below 0.01 counts as 0.01. */
static double spring_damping(pen *w, const spring *x)
{
    const contact *c = x->c;
    if (!isnan(w->damping))
        return w->damping;
    double inv = mass_inverse(w, c), e = c->e < 0.01 ? 0.01 : c->e;
    if (!(inv > 0))
        return 0;
    /* the root of the quotient gives the same bits in all units; two roots only if the quotient overflows */
    double root = isnormal(x->k / inv) ? sqrt(x->k / inv) : sqrt(x->k) / sqrt(inv);
    return 2 * penalty_damping_ratio(e) * root;
}

/* ---- stiffness and slip speed from the sizes of the model ---- */

static double weighted(const double *row, const double *size, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++)
        s += fabs(row[i] * size[i]);
    return s;
}

/* The time scale of the motion before contact: the terms of the gap over its rate, or over the accelerations
   by forces. The duration of the run if both are 0. acc: accelerations without contacts; NULL: not known. */
static double spring_time(const pen *w, const contact *c, const double *acc)
{
    double length = weighted(c->H, w->q, w->n), rate = weighted(c->H, w->v, w->n) + fabs(c->ht),
           change = acc ? weighted(c->H, acc, w->n) : 0, t = w->size.duration;
    if (length > 0 && rate > 0)
        t = fmin(t, length / rate);
    if (length > 0 && change > 0)
        t = fmin(t, sqrt(length / change));
    return t;
}

/* A spring whose frequency, with the effective mass of the contact, is a thousand times that of the motion;
   0: the effective mass is 0 now. */
static double spring_stiffness(pen *w, spring *x, const double *acc)
{
    if (!isnan(w->k))
        return w->k;
    double inv = mass_inverse(w, x->c);
    if (!(inv > 0))
        return 0;
    if (!(x->quick > 0))
        x->quick = 1e3 / spring_time(w, x->c, acc);
    return x->quick * x->quick / inv;
}

/* Is the stiffness usable? If a gap has no gradient, or one whose square overflows, masses determine no
   stiffness; without this error, bodies would pass through each other silently. */
static bool spring_fits(pen *w, const spring *x)
{
    if (x->k > 0 && isfinite(x->k))
        return true;
    results *r = w->r;
    const contact *c = x->c;
    text t = { .a = r->a };
    text_printf(&t, "penalty: no spring can be chosen for constraint '%s', whose gap has no gradient at t = ",
                contact_name(c, r->a));
    text_num(&t, w->t);
    text_printf(&t, " that can be computed with; give stiffness");
    return results_fail(r, c->fam->f->at, t.at);
}

/* The first point of the pair that x is a point of; NULL: it is none of shapes. */
static spring *first_point(const pen *w, const spring *x)
{
    const contact_family *f = x->c->fam->f;
    return f->pair.touch ? w->spring + (x - w->spring) - (x->c->index[index_of_point(f)] - 1) : NULL;
}

/* A point at which the same two shapes push already; NULL: none. */
static const spring *pushing_beside(const pen *w, const spring *x)
{
    const spring *first = first_point(w, x);
    for (int k = 0; first && k < x->c->fam->f->slots; k++)
        if (first + k != x && first[k].on)
            return first + k;
    return NULL;
}

/* The mass that the contact sees, and a restitution that is not the same always, count as they are where the
   spring begins to push.  Points of two shapes have one stiffness as long as the shapes touch, so that the
   energy in it does not change with the point that carries it. */
static bool spring_meets(pen *w, spring *x, const double *v)
{
    contact *c = x->c;
    const spring *beside = pushing_beside(w, x);
    if (beside) {
        x->k = beside->k;
        x->c_damp = beside->c_damp;
        return true;
    }
    bool mass_known = w->s->mass_constant && c->fam->gradient.constant;
    if ((!mass_known || !(x->k > 0)) && !c->fam->f->of_rates) {
        x->k = spring_stiffness(w, x, NULL);
        if (!spring_fits(w, x))
            return false;
    }
    if (!contact_opens(c) || (mass_known && c->fam->e.constant && !c->fam->f->e_of_speed))
        return true;
    if (c->fam->f->e_of_speed)
        c->e = contact_restitution(w->s, c, fmax(-contact_gap_rate(c, v), 0));
    x->c_damp = spring_damping(w, x);
    return true;
}

/* The largest rate of slip that friction causes, with the known normal force or the one that the forces
   cause. */
static double friction_pull(pen *w, contact *c)
{
    double mu = c->fam->f->mu_of_speed ? contact_mu(w->s, c, 0) : c->mu, share, radius, own = 0,
           normal = fabs(c->normal);
    if (contact_has_normal(c)) {
        double inv = mass_inverse(w, c);
        normal = inv > 0 ? weighted(c->H, w->dA, w->n) / inv : 0;
    }
    friction_bound(c, mu, 1, 0, &share, &radius);
    for (int i = 0; i < c->d; i++) {
        const double *S = c->S + (size_t)i * (size_t)w->n;
        factor_solve(&w->s->minv, S, w->g);
        own = fmax(own, vec_dot(S, w->g, w->n));
    }
    return (share * normal + radius) * own;
}

/* What x does to a slip by its row.  Where a surface is level, a row may have the rounding of a direction at
   dofs that do not act on it: that counts as 0. */
static double slip_by(const pen *w, const double *row, const double *x)
{
    double sum = weighted(row, x, w->n), row2 = 0, x2 = 0;
    for (int i = 0; i < w->n; i++) {
        row2 += row[i] / w->size.root[i] * (row[i] / w->size.root[i]);
        x2 += w->size.root[i] * x[i] * (w->size.root[i] * x[i]);
    }
    return sum > ROUND_500 * sqrt(row2) * sqrt(x2) ? sum : 0;
}

/* A ten thousandth of the current slip, or of the slip that the accelerations dA cause; if nothing moves yet,
   of the slip that friction causes. 0: not known yet. */
static double spring_slip(pen *w, contact *c)
{
    double most = 0, t = contact_has_normal(c) ? spring_time(w, c, w->dA) : w->size.duration;
    for (int i = 0; i < c->d; i++) {
        const double *S = c->S + (size_t)i * (size_t)w->n;
        most = fmax(most, fmax(slip_by(w, S, w->v) + fabs(c->s0[i]), t * slip_by(w, S, w->dA)));
    }
    if (isnan(w->vs) && most == 0 && c->d)
        most = t * friction_pull(w, c);
    if (isnan(w->vs))
        return SLIP_SPEED * most;
    /* without a given slip, rates are weighted with the masses internally */
    bool shown = !c->fam->f->slip_given && c->d && c->fam->shown == c->d && c->show[0] > 0;
    return shown ? w->vs / c->show[0] : w->vs;
}

/* ---- forces ---- */

/* The force of a spring that is on. */
static double spring_push(const spring *x, double rate)
{
    return -x->k * *x->c->gap - x->c_damp * rate;
}

static void spring_rests(spring *x)
{
    x->rn = x->bound = 0;
    memset(x->rt, 0, (size_t)x->c->fam->d * sizeof *x->rt);
}

/* a point of shapes that are apart there */
static bool point_apart(const spring *x)
{
    return x->c->fam->f->pair.touch && !x->on && *x->c->gap > 0;
}

/* Positive if a spring is off and should push, or is on and would pull; -1: it never changes. */
static double spring_wrong(const spring *x, const double *v)
{
    if (x->c->fam->f->relation != REL_GAP || x->idle)
        return -1;
    if (point_apart(x))
        return -x->k * *x->c->gap;
    double push = spring_push(x, contact_gap_rate(x->c, v));
    if (x->c->fam->f->of_rates)
        return x->on ? -push : push;
    if (!(x->k > 0))
        return -*x->c->gap;
    return x->on ? -push - x->c->adhesion : fmin(-x->k * *x->c->gap, push);
}

/* Normal reaction and friction of a contact; sets rn, rt and slip of the spring. */
static void spring_reaction(pen *w, spring *x, const double *v)
{
    contact *c = x->c;
    x->rn = c->normal;
    if (contact_has_normal(c))
        x->rn = x->on ? spring_push(x, contact_gap_rate(c, v)) : 0;
    double speed = contact_slip(c, v, x->slip);
    x->speed = sqrt(x->vs * x->vs + speed * speed);
    x->bound = 0;
    if (c->d) {
        double mu = c->fam->f->mu_of_speed ? contact_mu(w->s, c, speed) : c->mu, share, radius;
        friction_bound(c, mu, 1, 0, &share, &radius);
        if (!contact_has_normal(c) || x->on)
            x->bound = share * fabs(x->rn + c->adhesion) + radius;
    }
    for (int i = 0; i < c->d; i++)
        x->rt[i] = -x->bound * x->slip[i] / x->speed;
}

/* Adds the force of a contact to f, and its derivatives to Fq and Fv (which may be NULL). */
static void spring_force(pen *w, const spring *x, double *f, double *Fq, double *Fv)
{
    const contact *c = x->c;
    int n = w->n, d = c->d;
    double dgap = 0, drate = 0, size = x->speed, s2 = size * size;
    if (contact_has_normal(c)) {
        dgap = x->on ? -x->k : 0;
        drate = x->on ? -x->c_damp : 0;
        vec_axpy(f, x->rn, c->H, n);
        double fuzz = x->on ? ROUND_5 * x->k * weighted(c->H, w->size.qmax, n) : 0;
        for (int i = 0; i < n; i++)
            w->size.rounding = fmax(w->size.rounding, fuzz * fabs(c->H[i]) / w->size.root[i]);
    }
    for (int i = 0; i < d; i++)
        vec_axpy(f, x->rt[i], c->S + (size_t)i * n, n);
    if (!Fq)
        return;
    for (int i = 0; i < n && (dgap != 0 || drate != 0); i++)
        for (int j = 0; j < n; j++) {
            Fq[i * n + j] += c->H[i] * dgap * c->H[j];
            Fv[i * n + j] += c->H[i] * drate * c->H[j];
        }
    for (int a = 0; a < d; a++)
        for (int b = 0; b < d; b++) {
            double k = -x->bound * ((a == b ? 1 / size : 0) - x->slip[a] * x->slip[b] / (size * s2));
            const double *Sa = c->S + (size_t)a * n, *Sb = c->S + (size_t)b * n;
            for (int i = 0; i < n && k != 0; i++)
                for (int j = 0; j < n; j++)
                    Fv[i * n + j] += Sa[i] * k * Sb[j];
        }
}

/* Stores the values of a contact that formulas read. The Jacobian does not contain their dependence on the
   state, so Newton's method needs one more iteration for each formula in the chain: nothing that reads a
   reaction is itself a spring. */
static void reaction_read(const pen *w, const spring *x)
{
    const contact *c = x->c;
    if (!c->fam->f->read_as)
        return;
    double *to = w->s->react + REACT * (c->fam->f->read_as - 1);
    memset(to, 0, REACT * sizeof *to);
    to[0] = x->rn;
    for (int j = 0; j < c->fam->shown && j < MAX_SLIP; j++)
        for (int i = 0; i < c->d; i++)
            to[1 + j] += c->show_force[j * c->d + i] * x->rt[i];
}

/* Normal forces that depend on other reactions: repeated until none changes. */
static void springs_feed(pen *w, const double *v)
{
    bool changed = w->nfed > 0;
    for (size_t turn = 0; changed && turn <= w->nfed; turn++) {
        changed = false;
        for (size_t i = 0; i < w->nspring; i++) {
            spring *x = &w->spring[i];
            contact *c = x->c;
            if (!c->fam->f->fed)
                continue;
            double was = c->normal;
            c->normal = x->by ? x->by->rn : term_value(&c->fam->normal, &w->s->in, c->index);
            changed |= c->normal != was;
            spring_reaction(w, x, v);
            reaction_read(w, x);
        }
    }
}

/* Masses and all forces, and on request their derivatives. */
static bool forces_at(pen *w, double t, const double *q, const double *v, bool derivatives)
{
    system_t *s = w->s;
    int bad;
    system_at(s, t, q, v);
    system_mass(s, w->M);
    if (!system_factor(s, w->M, &bad)) {
        w->r->where = mass_where(w->p, bad);
        return false;
    }
    for (size_t i = 0; i < w->nspring; i++) {
        spring *x = &w->spring[i];
        if (x->idle)
            continue;
        if (contact_has_normal(x->c))
            contact_gap(s, x->c);
        if (derivatives && point_apart(x)) { /* only results read more of it */
            spring_rests(x);
            continue;
        }
        contact_rows(s, x->c, w->M, true);
        contact_laws(s, x->c, true);
        spring_reaction(w, x, v);
        reaction_read(w, x);
    }
    springs_feed(w, v);
    if (s->driving.n || s->power.n) {
        w->power_f = system_driving(s, w->driving);
        w->power_f += vec_dot(w->driving, v, w->n);
    }
    system_force(s, w->f);
    for (int i = 0; i < w->n; i++)
        if (w->p->order[i] == 2)
            w->size.force = fmax(w->size.force, fabs(w->f[i]) / w->size.root[i]);
    w->size.rounding = 0;
    double smooth = vec_dot(w->f, v, w->n);
    if (derivatives)
        system_jacobian(s, w->Fq, w->Fv);
    for (size_t i = 0; i < w->nspring; i++)
        if (!w->spring[i].idle && !point_apart(&w->spring[i]))
            spring_force(w, &w->spring[i], w->f, derivatives ? w->Fq : NULL, w->Fv);
    w->power_c = vec_dot(w->f, v, w->n) - smooth;
    return true;
}

/* ---- one step ---- */

/* x = J^-1 b. J is factorised with rows and columns divided by sqrt(mass), so that its pivots are of similar
   size. Overwrites b. */
static void stage_matrix_solve(pen *w, double *b, double *x)
{
    for (int i = 0; i < w->n; i++)
        b[i] /= w->size.root[i];
    factor_solve(&w->lu, b, x);
    for (int i = 0; i < w->n; i++)
        x[i] /= w->size.root[i];
}

/* Is Newton's step dA negligible? Second-order dofs are compared together, relative to forces before they
   cancel; first-order dofs one by one. */
static bool stage_settled(const pen *w, const double *A)
{
    double size = w->size.force + STAGE_SMALL * w->size.speed / w->size.duration, change = 0;
    for (int i = 0; i < w->n; i++) {
        if (w->p->order[i] == 2) {
            size = fmax(size, w->size.root[i] * fabs(A[i]));
            change = fmax(change, w->size.root[i] * fabs(w->dA[i]));
        } else if (fabs(w->dA[i]) > NEWTON_STAGE * fmax(fabs(A[i]), STAGE_SMALL * w->size.vmax[i]))
            return false;
    }
    return change <= NEWTON_STAGE * size + w->size.rounding;
}

/* Newton's method for A: v = v* + d h A, q = q* + d h v, M A = F(t, q, v). */
static bool stage_solve(pen *w, double t, const double *qs, const double *vs, double *q, double *v, double *A)
{
    int n = w->n;
    double dh = STAGE_D * w->h;
    for (int it = 0; it < 25; it++) {
        for (int i = 0; i < n; i++) {
            v[i] = w->p->order[i] == 2 ? vs[i] + dh * A[i] : A[i];
            q[i] = qs[i] + dh * v[i];
        }
        if (!forces_at(w, t, q, v, true))
            return false;
        mass_times(w->s, w->M, A, w->g);
        for (int i = 0; i < n; i++)
            w->g[i] = w->f[i] - w->g[i];
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                double m = mass_diagonal(w->s) ? (i == j ? w->M[i] : 0) : w->M[i * n + j];
                bool second = w->p->order[j] == 2;
                double all = m - (second ? dh * w->Fv[i * n + j] + dh * dh * w->Fq[i * n + j]
                                         : dh * w->Fq[i * n + j]);
                w->J[i * n + j] = all / (w->size.root[i] * w->size.root[j]);
            }
        if (!factor_general(&w->lu, w->J))
            return false;
        stage_matrix_solve(w, w->g, w->dA);
        vec_axpy(A, 1, w->dA, n);
        if (!isfinite(vec_max(A, n)))
            return false;
        if (stage_settled(w, A))
            return true;
    }
    return false;
}

/* The largest speed so far, of a unit mass, including the end of the current trial step. The speed that
   forces could cause over the whole run has a small weight only; otherwise longer runs would be less
   accurate. */
static double speed_so_far(const pen *w)
{
    double speed = 0;
    for (int i = 0; i < w->n; i++)
        if (w->p->order[i] == 2)
            speed = fmax(speed, w->size.root[i] * fmax(w->size.vmax[i], fabs(w->stage.v3[i])));
    return fmax(speed, SPEED_BEGUN * w->size.speed);
}

/* True: q3, v3, A3 contain the solution, and *e is the error divided by the tolerance. */
static bool step_try(pen *w, double *e)
{
    int n = w->n;
    double h = w->h;
    for (int i = 0; i < n; i++) {
        w->stage.vs0[i] = w->v[i] + STAGE_D * h * w->A[i];
        w->stage.qs[i] = w->q[i] + STAGE_D * h * w->v[i];
        w->stage.A2[i] = w->A[i];
    }
    if (!stage_solve(w, w->t + GAMMA * h, w->stage.qs, w->stage.vs0, w->stage.q2, w->stage.v2, w->stage.A2))
        return false;
    for (int i = 0; i < n; i++) {
        w->stage.vs0[i] = w->v[i] + STAGE_W * h * (w->A[i] + w->stage.A2[i]);
        w->stage.qs[i] = w->q[i] + STAGE_W * h * (w->v[i] + w->stage.v2[i]);
        w->stage.A3[i] = w->stage.A2[i];
    }
    if (!stage_solve(w, w->t + h, w->stage.qs, w->stage.vs0, w->stage.q3, w->stage.v3, w->stage.A3))
        return false;
    /* b - b^, filtered with the last factors so that stiff contacts do not spoil the estimate */
    double e1 = STAGE_W - (1 - STAGE_W) / 3, e2 = STAGE_W - (3 * STAGE_W + 1) / 3, e3 = STAGE_D - STAGE_D / 3;
    for (int i = 0; i < n; i++)
        w->g[i] = e1 * w->A[i] + e2 * w->stage.A2[i] + e3 * w->stage.A3[i];
    mass_times(w->s, w->M, w->g, w->f);
    stage_matrix_solve(w, w->f, w->err);
    *e = 0;
    double speed = speed_so_far(w), travel = w->t + h;
    for (int i = 0; i < n; i++) {
        double dv = h * fabs(w->err[i]),
               dq = h * fabs(e1 * w->v[i] + e2 * w->stage.v2[i] + e3 * w->stage.v3[i]);
        bool second = w->p->order[i] == 2;
        double least = ERROR_SIZE *
                       (second ? speed / w->size.root[i] : fmax(w->size.vmax[i], fabs(w->stage.v3[i])));
        if (second && dv > 0)
            *e = fmax(*e, dv / (w->tol * (w->size.vmax[i] + least)));
        if (dq > 0)
            *e = fmax(*e, dq / (w->tol * (w->size.qmax[i] + least * fmin(w->size.duration, travel))));
    }
    return isfinite(*e);
}

/* The spring whose switch is overdue by the largest force at the end of the trial step; NULL: none. */
static spring *wrong_most(pen *w)
{
    spring *found = NULL;
    double most = 0;
    for (size_t i = 0; i < w->nspring; i++) {
        double by = spring_wrong(&w->spring[i], w->stage.v3);
        if (by > most) {
            most = by;
            found = &w->spring[i];
        }
    }
    return found;
}

/* Shortens the step to the time of the first switch of a spring, by bisection and regula falsi in turn, so
   that results do not depend on where a step happened to cross it. False: no step could be taken. */
static bool step_cut(pen *w, double *e, double shortest)
{
    enum { MOST = 100 };
    spring *x = wrong_most(w);
    double lo = 0, hi = w->h, at_hi = x ? spring_wrong(x, w->stage.v3) : 0, at_lo = NAN;
    for (int i = 0; x && i < MOST && hi - lo > fmax(shortest, ROUND_2 * w->t); i++) {
        double mid = i % 3 < 2 && at_lo <= 0 ? lo + (hi - lo) * at_lo / (at_lo - at_hi) : 0;
        w->h = mid > lo && mid < hi ? mid : 0.5 * (lo + hi);
        if (!step_try(w, e))
            return false;
        spring *y = wrong_most(w);
        if (y) {
            hi = w->h;
            at_lo = y == x ? at_lo : NAN;
            x = y;
            at_hi = spring_wrong(x, w->stage.v3);
        } else {
            lo = w->h;
            at_lo = spring_wrong(x, w->stage.v3);
        }
    }
    return !x || w->h == hi || (w->h = hi, step_try(w, e));
}

/* ---- pairs of shapes ---- */

/* What touches at an instant. */
static void pairs_touch(pen *w, double t, const double *q, const double *v)
{
    system_at(w->s, t, q, v);
    system_touch(w->s, w->pairs.anew);
    for (size_t i = 0; w->s->shapes && i < w->nspring; i++) {
        spring *x = &w->spring[i];
        x->left = NAN;
        x->idle = first_point(w, x) && shapes_far(w->s->shapes, x->c->fam->f, x->c->index);
        if (!x->idle)
            continue;
        contact_gap(w->s, x->c);
        spring_rests(x);
        memset(x->slip, 0, (size_t)x->c->fam->d * sizeof *x->slip);
    }
}

/* Two shapes that push go on doing so where they touch now; the impact that began at another point goes on
   with them. */
static void contact_goes_on(spring *first, int slots, const bool *anew, spring *x)
{
    for (int k = 0; k < slots; k++) {
        spring *was = first + k;
        if (!anew[k] || !was->closed || was->on || was == x)
            continue;
        x->closed = true;
        x->since = was->since;
        x->pre = was->pre;
        x->impulse = was->impulse;
        was->closed = false;
        return;
    }
}

/* The springs of two shapes that touch otherwise than before the step.  False: one could not be chosen. */
static bool pair_change(pen *w, spring *first)
{
    int slots = first->c->fam->f->slots;
    const bool *anew = w->pairs.anew + (first - w->spring);
    const double *v = w->stage.v3;
    double k = 0, damping = 0;
    for (int i = 0; i < slots; i++) {
        if (first[i].on) {
            k = first[i].k;
            damping = first[i].c_damp;
        }
        if (!anew[i])
            continue;
        first[i].left = contact_gap_rate(first[i].c, v);
        first[i].on = false;
    }
    for (int i = 0; i < slots; i++) {
        spring *x = first + i;
        if (!anew[i] || x->idle || contact_gap(w->s, x->c) >= 0)
            continue;
        contact_rows(w->s, x->c, w->M, true);
        contact_laws(w->s, x->c, true);
        if (!(k > 0) && !spring_meets(w, x, v))
            return false;
        if (k > 0) {
            x->k = k;
            x->c_damp = damping;
        }
        x->on = spring_push(x, contact_gap_rate(x->c, v)) > 0;
        if (!x->on)
            continue;
        x->left = NAN;
        contact_goes_on(first, slots, anew, x);
    }
    return true;
}

static void pairs_hold(pen *w)
{
    const shapes *s = w->s->shapes;
    memcpy(w->pairs.feature, s->feature, s->nfeature * sizeof *s->feature);
    memcpy(w->pairs.id, s->id, s->nfeature / FEATURE_NUMBERS * sizeof *s->id);
    memcpy(w->pairs.spring, w->spring, w->nspring * sizeof *w->spring);
}

static void pairs_back(pen *w)
{
    shapes *s = w->s->shapes;
    memcpy(s->feature, w->pairs.feature, s->nfeature * sizeof *s->feature);
    memcpy(s->id, w->pairs.id, s->nfeature / FEATURE_NUMBERS * sizeof *s->id);
    memcpy(w->spring, w->pairs.spring, w->nspring * sizeof *w->spring);
}

/* Shapes are looked at anew at the end of the step that was tried.  What was held during the step is wrong by
   as much as forces jump there: that over the step counts as an error of rates, as any other.  Where it is
   too large everything is as before.  False: a spring could not be chosen. */
static bool pairs_renew(pen *w, double *e)
{
    *e = 0;
    if (!w->s->shapes)
        return true;
    double t = w->t + w->h, *q = w->stage.q3, *v = w->stage.v3, speed = speed_so_far(w);
    pairs_hold(w);
    pairs_touch(w, t, q, v);
    for (size_t i = 0; i < w->nspring; i++)
        if (pair_begins(w->spring[i].c) && !pair_change(w, &w->spring[i]))
            return false;
    if (!forces_at(w, t, q, v, false))
        return true;
    factor_solve(&w->s->minv, w->f, w->pairs.A);
    double same = NEWTON_STAGE * w->size.force + w->size.rounding; /* what Newton's method leaves */
    for (int i = 0; i < w->n; i++) {
        double jump = fabs(w->pairs.A[i] - w->stage.A3[i]) - same / w->size.root[i], dv = w->h * jump,
               least = ERROR_SIZE * speed / w->size.root[i];
        if (w->p->order[i] == 2 && dv > 0)
            *e = fmax(*e, dv / (w->tol * (w->size.vmax[i] + least)));
    }
    if (!(*e <= 1))
        pairs_back(w);
    return true;
}

static void pairs_room(pen *w, arena *a)
{
    const shapes *s = w->s->shapes;
    if (!s)
        return;
    w->pairs.anew = arena_array(a, bool, w->nspring);
    w->pairs.A = arena_array(a, double, (size_t)w->n);
    w->pairs.feature = arena_array(a, double, s->nfeature);
    w->pairs.id = arena_array(a, int64_t, s->nfeature / FEATURE_NUMBERS);
    w->pairs.spring = arena_array(a, spring, w->nspring);
}

/* what touches at the end, where results look for it */
static void pen_finish(void *of, run_clock *c)
{
    const pen *w = of;
    size_t n = 0;
    if (!w->s || !w->s->shapes)
        return;
    held_pair *held = arena_array(c->r->a, held_pair, w->nspring + 1);
    for (size_t i = 0; i < w->nspring; i++) {
        const contact *x = w->spring[i].c;
        const contact_family *f = x->fam->f;
        if (f->pair.listed && pair_begins(x))
            held[n++] = (held_pair){ f, x->member, x->index[f->over.n - 1] };
    }
    c->r->feature = shapes_kept(w->s->shapes, c->r->a, held, n);
}

/* ---- results ---- */

static bool pen_sample(void *of, run_clock *clock, int64_t sample, energies *e)
{
    pen *w = of;
    results *r = clock->r;
    size_t n = (size_t)w->n, at = (size_t)sample;
    memcpy(r->q + at * n, w->q, n * sizeof(double));
    memcpy(r->v + at * n, w->v, n * sizeof(double));
    memcpy(r->acc + at * n, w->A, n * sizeof(double));
    system_at(w->s, w->t, w->q, w->v);
    e->kinetic = e->shown = system_kinetic(w->s, w->M, w->v);
    if (w->s->kinetic.n)
        e->shown = system_sum(w->s, &w->s->kinetic);
    e->potential = w->s->potential.n ? system_sum(w->s, &w->s->potential) : 0;
    for (size_t i = 0; i < w->nspring; i++) {
        const spring *x = &w->spring[i];
        contact_result *c = &r->contact[x->c->fam - w->s->family];
        if (!c->kept)
            continue;
        size_t m = at * (size_t)c->members + (size_t)x->c->member, ns = (size_t)c->nslip;
        c->gap[m] = contact_kept_gap(x->c, w->v);
        c->rn[m] = x->rn;
        for (size_t j = 0; j < ns && x->c->show; j++) {
            c->slip[m * ns + j] = c->rt[m * ns + j] = 0;
            for (int k = 0; k < x->c->d; k++) {
                c->slip[m * ns + j] += x->c->show[j * (size_t)x->c->d + (size_t)k] * x->slip[k];
                c->rt[m * ns + j] += x->c->show_force[j * (size_t)x->c->d + (size_t)k] * x->rt[k];
            }
        }
        bool closed = !contact_has_normal(x->c) || x->rn != 0;
        double slip = sqrt(vec_dot(x->slip, x->slip, x->c->d));
        c->status[m] = status_of(x->c, closed, contact_slips(slip, x->vs, false));
    }
    if (w->s->base)
        turns_keep(w->p, w->s->base, r->q + at * n, r->v + at * n, r->acc + at * n);
    return true;
}

/* Does friction of the impact of x press what rests on y?  The spring of y then yields while the impact
   lasts, and the slip of x ends sooner than under Newton's law, however stiff both springs are. */
static bool presses(pen *w, const spring *x, const spring *y)
{
    const contact *c = x->c;
    double force = 0;
    if (y == x || !y->closed || !(y->rn > 0) || y->c->fam->f->relation != REL_GAP)
        return false;
    factor_solve(&w->s->minv, y->c->H, w->g);
    for (int l = 0; l < c->d; l++)
        force -= x->slip[l] * vec_dot(c->S + (size_t)l * (size_t)w->n, w->g, w->n);
    return force < 0;
}

static void presses_note(pen *w, const spring *x)
{
    for (size_t i = 0; x->bound > 0 && i < w->nspring && !w->r->note; i++)
        if (presses(w, x, &w->spring[i]))
            w->r->note = arena_printf(
                w->r->a,
                "at t = %.6g friction of the impact of '%s' presses what rests on '%s', which yields like a "
                "spring: the motion differs from that under Newton's law, at any stiffness",
                w->t, contact_name(x->c, w->r->a), contact_name(w->spring[i].c, w->r->a));
}

/* Records an impact: it begins when a contact closes, and ends when it opens. */
static void spring_watch(pen *w, spring *x, double h)
{
    contact *c = x->c;
    contact_result *r = &w->r->contact[c->fam - w->s->family];
    if (!contact_has_normal(c) || c->fam->f->of_rates)
        return;
    double rate = isnan(x->left) ? contact_gap_rate(c, w->v) : x->left;
    w->r->max_penetration = fmax(w->r->max_penetration,
                                 c->fam->f->relation == REL_BILATERAL ? fabs(*c->gap) : -*c->gap);
    bool closed = x->rn > 0;
    if (closed && !x->closed) {
        x->since = w->t, x->pre = rate, x->impulse = 0;
        if (c->d && rate < -RATE_IS_ZERO * weighted(c->H, w->v, w->n))
            presses_note(w, x);
    }
    if (closed)
        x->impulse += h * x->rn;
    if (!closed && x->closed && x->since >= 0)
        note_impact(w->r->a, r, (impact){ x->since, x->pre, rate, x->impulse, (int32_t)c->member });
    if (!closed)
        r->last_open[c->member] = w->t;
    x->closed = closed;
}

static void sizes_grow(pen *w)
{
    for (int i = 0; i < w->n; i++) {
        w->size.qmax[i] = fmax(w->size.qmax[i], fabs(w->q[i]));
        w->size.vmax[i] = fmax(w->size.vmax[i], fabs(w->v[i]));
        if (w->p->order[i] == 2)
            w->size.speed = fmax(w->size.speed, w->size.root[i] * fabs(w->v[i]));
    }
}

/* Switches springs at the end of a step, and computes the new accelerations. */
static bool springs_change(pen *w)
{
    bool any = false;
    for (size_t i = 0; i < w->nspring; i++) {
        spring *x = &w->spring[i];
        bool wrong = spring_wrong(x, w->v) > 0;
        x->on ^= wrong;
        if (wrong && x->on && !spring_meets(w, x, w->v))
            return false;
        any |= wrong;
    }
    if (!any || !forces_at(w, w->t, w->q, w->v, false))
        return true;
    factor_solve(&w->s->minv, w->f, w->A);
    for (int i = 0; i < w->n; i++)
        if (w->p->order[i] == 1)
            w->v[i] = w->A[i];
    return true;
}

/* power_f, power_c: at the start of the step.  False: a spring could not be chosen. */
static bool accept(pen *w, double power_f, double power_c)
{
    double h = w->h;
    size_t bytes = (size_t)w->n * sizeof(double);
    w->t += h;
    memcpy(w->q, w->stage.q3, bytes);
    memcpy(w->v, w->stage.v3, bytes);
    memcpy(w->A, w->stage.A3, bytes);
    forces_at(w, w->t, w->q, w->v, false);
    w->c->books.work += h * (power_f + w->power_f) / 2;
    w->c->books.dissipated -= h * (power_c + w->power_c) / 2;
    if (!springs_change(w))
        return false;
    sizes_grow(w);
    for (size_t i = 0; i < w->nspring; i++)
        spring_watch(w, &w->spring[i], h);
    return true;
}

/* ---- the run ---- */

static bool failed(pen *w, const char *what)
{
    text t = { .a = w->r->a };
    text_printf(&t, "penalty: %s at t = ", what);
    text_num(&t, w->t);
    return results_fail(w->r, w->r->where, t.at);
}

/* The spring of the contact that supplies the normal force of c, the same member of its family; NULL: none.
 */
static const spring *spring_that_feeds(const pen *w, const contact *c)
{
    const contact_family *f = c->fam->f;
    for (size_t i = 0; f->fed && f->fed_by >= 0 && i < w->nspring; i++) {
        const contact *by = &w->s->contact[i];
        if (by->fam == &w->s->family[f->fed_by] && by->member == c->member)
            return &w->spring[i];
    }
    return NULL;
}

static void rooms(pen *w, arena *a)
{
    size_t n = (size_t)w->n;
    double **one[] = { &w->q,         &w->v,         &w->A,        &w->stage.q2, &w->stage.v2,
                       &w->stage.A2,  &w->stage.q3,  &w->stage.v3, &w->stage.A3, &w->stage.qs,
                       &w->stage.vs0, &w->f,         &w->g,        &w->dA,       &w->err,
                       &w->size.qmax, &w->size.vmax, &w->driving,  &w->size.root };
    double **square[] = { &w->M, &w->Fq, &w->Fv, &w->J };
    for (size_t i = 0; i < sizeof one / sizeof *one; i++)
        *one[i] = arena_array(a, double, n);
    for (size_t i = 0; i < sizeof square / sizeof *square; i++)
        *square[i] = arena_array(a, double, n *n);
    factor_init(&w->lu, a, w->n, false);
    w->nspring = w->s->ncontact;
    w->spring = arena_array(a, spring, w->nspring);
    for (size_t i = 0; i < w->nspring; i++) {
        spring *x = &w->spring[i];
        x->c = &w->s->contact[i];
        x->left = NAN;
        x->rt = arena_array(a, double, x->c->fam->d + 1);
        x->slip = arena_array(a, double, x->c->fam->d + 1);
        x->by = spring_that_feeds(w, x->c);
        w->nfed += x->c->fam->f->fed;
    }
    pairs_room(w, a);
}

/* Slip speeds that could not be chosen at the start: from the forces later in the run, otherwise from any
   motion at all. */
static void slips_later(pen *w)
{
    double end = w->size.duration, v = w->size.speed;
    for (double t = end / 16; t <= 2 * end; t *= 2) {
        system_at(w->s, fmin(t, end), w->q, w->v);
        system_force(w->s, w->f);
        factor_solve(&w->s->minv, w->f, w->dA);
        for (size_t i = 0; i < w->nspring; i++) {
            spring *x = &w->spring[i];
            if (!x->vs_later)
                continue;
            double vs = spring_slip(w, x->c);
            if (t > end && !(vs > 0))
                for (int k = 0; k < x->c->d * w->n; k++)
                    if (w->size.root[k % w->n] > 0)
                        vs = fmax(vs, SLIP_SPEED * fabs(x->c->S[k]) * v / w->size.root[k % w->n]);
            if (vs > 0) {
                x->vs = vs;
                x->vs_later = false;
            }
        }
    }
    forces_at(w, 0, w->q, w->v, false);
}

/* Masses, and accelerations without contacts in dA: springs and scales are derived from them. */
static bool forces_start(pen *w)
{
    for (int i = 0; i < w->n; i++)
        w->size.root[i] = 1;
    pairs_touch(w, 0, w->q, w->v);
    if (!forces_at(w, 0, w->q, w->v, false))
        return false;
    for (int i = 0; i < w->n; i++)
        w->size.root[i] = sqrt(mass_diagonal(w->s) ? w->M[i] : w->M[i * w->n + i]);
    system_force(w->s, w->f);
    factor_solve(&w->s->minv, w->f, w->dA);
    sizes_grow(w);
    for (int i = 0; i < w->n; i++)
        if (w->p->order[i] == 2)
            w->size.speed = fmax(w->size.speed, w->size.root[i] * w->size.duration * fabs(w->dA[i]));
    bool unknown = false;
    for (size_t i = 0; i < w->nspring; i++) {
        spring *x = &w->spring[i];
        x->vs = spring_slip(w, x->c);
        x->vs_later = x->c->d && !(x->vs > 0);
        unknown |= x->vs_later;
        if (!(x->vs > 0))
            x->vs = SLIP_SPEED;
        if (!contact_has_normal(x->c))
            continue;
        x->k = spring_stiffness(w, x, w->dA);
        x->c_damp = spring_damping(w, x);
        if (x->k > 0 && !spring_meets(w, x, w->v))
            return false;
        double push = spring_push(x, contact_gap_rate(x->c, w->v)),
               zero = GAP_IS_ZERO * weighted(x->c->H, w->q, w->n);
        x->on = x->c->fam->f->relation == REL_BILATERAL ||
                (x->c->fam->f->of_rates ? push > 0 : *x->c->gap <= zero && push >= -x->k * zero);
    }
    if (unknown)
        slips_later(w);
    w->size.force = 0;
    return forces_at(w, 0, w->q, w->v, false);
}

/* If nothing acts at the start, scales come from the forces at time t. */
static void forces_later(pen *w, double t)
{
    system_at(w->s, t, w->q, w->v);
    system_force(w->s, w->f);
    factor_solve(&w->s->minv, w->f, w->dA);
    for (int i = 0; i < w->n; i++)
        if (w->p->order[i] == 2)
            w->size.speed = fmax(w->size.speed, w->size.root[i] * w->size.duration * fabs(w->dA[i]));
    forces_at(w, 0, w->q, w->v, false);
}

/* Bodies that touch and approach each other at the start begin with an impact; resting ones do not. */
static void spring_begin(pen *w, spring *x)
{
    const contact *c = x->c;
    x->since = -1;
    x->closed = x->rn > 0;
    if (!contact_has_normal(c) || c->fam->f->of_rates)
        return;
    double rate = contact_gap_rate(c, w->v);
    if (x->on && c->fam->f->relation == REL_GAP && rate < -RATE_IS_ZERO * weighted(c->H, w->v, w->n)) {
        x->closed = true;
        x->since = 0;
        x->pre = rate;
    }
    if (!x->closed)
        w->r->contact[c->fam - w->s->family].last_open[c->member] = 0;
}

static bool pen_start(void *of, run_clock *c)
{
    pen *w = of;
    const char *why = NULL;
    w->c = c;
    w->r = c->r;
    w->r->promised.tolerance = w->tol;
    w->r->promised.gives_way = true;
    c->rule = STEPS_OWN;
    c->near = ROUND_50;
    c->r->solver = "springs";
    w->s = system_new(c->r->a, w->p, c->r->param, STORE_WHOLE, &why, &c->r->where);
    if (!w->s)
        return results_fail(c->r, c->r->where, why);
    if (w->s->shapes)
        w->s->shapes->deep = true;
    rooms(w, c->r->a);
    for (size_t i = 0; i < w->p->rotations.n; i++)
        for (int k = 0; k < 3; k++)
            w->size.qmax[w->p->rotations.at[i] + k] =
                1; /* small angles are 0 at their base, so their values give no scale */
    system_start(w->s, w->q, w->v);
    why = system_start_error(w->s, &c->r->where);
    if (why)
        return results_fail(c->r, c->r->where, why);
    c->r->note = system_start_note(w->s, c->r->a);
    w->size.duration = c->end > 0 ? c->end : 1;
    if (!forces_start(w))
        return failed(w, "the mass matrix is not positive definite");
    for (size_t i = 0; i < w->nspring; i++) {
        const contact *held = w->spring[i].c;
        why = held->fam->f->relation == REL_BILATERAL ? row_text(held, c->r->a, "0") : NULL;
        if (why)
            return results_fail(c->r, held->fam->f->at, why);
        if (w->spring[i].on && !held->fam->f->of_rates && !spring_fits(w, &w->spring[i]))
            return false;
    }
    factor_solve(&w->s->minv, w->f, w->A);
    double carried = 0;
    for (int i = 0; i < w->n; i++)
        if (w->p->order[i] == 1)
            w->v[i] = w->A[i];
        else
            carried = fmax(carried, w->size.root[i] * w->size.duration * fabs(w->A[i]));
    if (w->size.speed < SPEED_CARRIED * carried)
        w->size.speed = carried; /* only contacts start the motion, for example a belt */
    for (double t = w->size.duration / 16; w->size.speed == 0 && t <= w->size.duration; t *= 2)
        forces_later(w, t);
    for (size_t i = 0; i < w->nspring; i++)
        spring_begin(w, &w->spring[i]);
    if (!(w->h > 0))
        w->h = c->end * STEP_FIRST;
    return true;
}

/* Rounds step factors down to powers of 2^(1/8), so that steps and results do not depend on rounding of the
   error. */
static double step_rounded(double grow)
{
    return exp2(floor(8 * log2(grow)) / 8);
}

/* One trial step: its error decides whether it is accepted, and the size of the next one. */
static step_outcome pen_step(void *of, run_clock *c, double left, double end)
{
    pen *w = of;
    double e, h = w->h;
    bool clipped = w->t + h > end;
    if (clipped)
        w->h = left;
    if (w->s->base)
        turns_centre(w->p, w->s->base, w->q, w->v, w->A, 0);
    if (!step_try(w, &e))
        e = 1e3;
    double tried = w->h, error = e;
    if (e <= 1) {
        if (!step_cut(w, &e, ROUND_5 * c->end)) {
            e = error = 1e3;
            /* a shortened step may have a larger error than the whole one: the next is shorter again */
        } else if (e > 1) {
            error = e;
            tried = w->h;
        }
    }
    double power_f = 0, power_c = 0, jump = 0;
    if (e <= 1) {
        forces_at(w, w->t, w->q, w->v, false); /* powers at the start of the step */
        power_f = w->power_f;
        power_c = w->power_c;
        if (!pairs_renew(w, &jump))
            return STEP_FAILED;
        error = fmax(error, jump); /* points that slide past each other allow no longer steps next time */
        if (!(jump <= 1))
            e = error = jump;
    }
    if (e <= 1) {
        if (!accept(w, power_f, power_c))
            return STEP_FAILED;
        c->t = w->t;
    }
    double grow = 0.9 * cbrt(1 / fmax(error, ERROR_LEAST));
    w->h = tried;
    grow = step_rounded(grow < 0.2 ? 0.2 : grow > 4 ? 4 : grow);
    w->h = e <= 1 && clipped ? fmax(h, w->h * grow) : w->h * grow;
    if (w->h < ROUND_50 * (end + w->t) && e > 1) {
        failed(w, "the step became too small");
        return STEP_FAILED;
    }
    return e <= 1 ? STEP_DONE : STEP_REFUSED;
}

static void spring_keep(spring *x, run_state *s)
{
    double *of[] = { &x->k, &x->quick, &x->c_damp, &x->vs, &x->since, &x->pre, &x->impulse, &x->rn };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        state_f64(s, "spring", of[i], 1);
    state_flags(s, "on", &x->on, 1);
    state_flags(s, "closed", &x->closed, 1);
    state_flags(s, "idle", &x->idle, 1);
    contact *c = x->c;
    state_int(s, "directions", &c->d, 0, c->fam->d);
    if (c->show) /* across a normal that turns they go on from those of the step before */
        state_f64(s, "shown", c->show, (size_t)c->fam->d * (size_t)c->fam->shown);
}

/* Forces, rows and factors are recomputed in each step, so they are not stored. */
static void pen_keep(void *of, run_state *s)
{
    pen *w = of;
    size_t n = (size_t)w->n;
    double *all[] = { w->q, w->v, w->A, w->size.qmax, w->size.vmax };
    state_f64(s, "t", &w->t, 1);
    state_f64(s, "h", &w->h, 1);
    state_f64(s, "speed", &w->size.speed, 1);
    state_f64(s, "force", &w->size.force, 1);
    state_f64(s, "duration", &w->size.duration, 1);
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        state_f64(s, "state", all[k], n);
    if (w->s->base)
        state_f64(s, "bases", w->s->base, 3 * n);
    shapes *touching = w->s->shapes;
    if (touching) {
        state_f64(s, "touching", touching->feature, touching->nfeature);
        state_i64(s, "points", touching->id, touching->nfeature / FEATURE_NUMBERS);
    }
    for (size_t i = 0; i < w->nspring; i++)
        spring_keep(&w->spring[i], s);
}

static const stepper penalty_stepper = {
    .start = pen_start, .step = pen_step, .sample = pen_sample, .keep = pen_keep, .finish = pen_finish
};

void penalty_dynamics_run(const program *p, const run_options *o, results *r)
{
    pen *w = arena_make(r->a, pen);
    *w = (pen){ .p = p,
                .n = p->nq,
                .k = o->value[PENALTY_STIFFNESS],
                .damping = o->value[PENALTY_DAMPING],
                .vs = o->value[PENALTY_SLIP],
                .tol = o->value[PENALTY_TOLERANCE],
                .h = o->value[PENALTY_H] };
    clock_run(&penalty_stepper, w, o, r);
}
