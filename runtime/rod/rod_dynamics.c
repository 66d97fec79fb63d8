/* rod_dynamics: rods with a mass, in time. A step goes from state 0 to state 1 with r1 - r0 = h (v0 + v1)/2
   and R1 = R0 cay(h (W0 + W1)/2), where W is the angular velocity in the frame of the section. The change of
   momentum is caused by elements (rod_step.c), loads at the middle of the step, and contact at its end. The
   axis of cay(phi) is the same in both frames, so phi.(R1 J W1 - R0 J W0) = h (T1 - T0): energy and momentum
   of a free rod are conserved, for any step. With theta > 1/2 the end of a step has more weight, in
   velocities and strains, which dissipates energy of motions that the steps do not resolve. Translation has
   the mass matrix of the cubic elements; rotary inertia is at the nodes, by the 3/8 rule. Contact dissipates
   energy and never adds any. */
#include "rod_work.h"
#include "base/tolerances.h"
#include <math.h>
#include <string.h>

enum { DRIVEN_PLACE = 1, DRIVEN_FRAME = 2 };
struct rod_motion {
    /* 6 per node: velocity in space and angular velocity in the frame of the section, at the start of the
       step; velocities of supports at its end. */
    double *vel, *goal;
    uint8_t *driven; /* by node: supported dofs, whose velocity is that of the support */
    double *left;    /* residual of the last step: reactions of supports */
    /* Weight of the end of a step; the step; work of loads and supports; defect of balance of the last step.
     */
    double theta, dt, worked, missed;
};

static void mat3(const double *M, const double *x, double *y)
{
    for (int i = 0; i < 3; i++)
        y[i] = dot3(M + 3 * i, x);
}

bool rod_moves(const rod_program *rp)
{
    return rp->nrod && (rp->rod[0].number[ROD_DENSITY].tape.nout || rp->rod[0].number[ROD_MASS].tape.nout);
}

/* ---- velocities ---- */
/* The increment of a node over the step: of the position, and cay of the rotation in the frame of the
   section. */
static void moved_by(const rod_work *w, int node, double *x)
{
    for (int k = 0; k < 3; k++)
        x[k] = w->state.pos[3 * node + k] - w->state.pos0[3 * node + k];
    quat_cayley(w->state.rot0 + 4 * node, w->state.rot + 4 * node, x + 3);
}

static bool driven(const rod_motion *d, int node, int k)
{
    return d->driven[node] & (k < 3 ? DRIVEN_PLACE : DRIVEN_FRAME);
}

/* Velocities at the end of the step; x is the increment. */
static void velocity_end(const rod_motion *d, int node, const double *x, double *v)
{
    for (int k = 0; k < 6; k++)
        v[k] = driven(d, node, k) ? d->goal[6 * node + k]
                                  : (x[k] / d->dt - (1 - d->theta) * d->vel[6 * node + k]) / d->theta;
}

/* Velocity of a support at t, from one-sided differences with a small distance e: f' = (4 (f(t) - f(t - e)) -
   (f(t) - f(t - 2 e)))/(2 e). */
static void support_velocity(rod_work *w, const rod_hold *h, double t, double e, double *v)
{
    double now[9], at[9], q[4], q1[4], d[2][3];
    rod_eval(w, &h->load->value, t, h->load->rod, 0, now);
    for (int i = 0; i < 2; i++) {
        rod_eval(w, &h->load->value, t - (i + 1) * e, h->load->rod, 0, at);
        if (h->load->what == LOAD_POSITION) {
            for (int k = 0; k < 3; k++)
                d[i][k] = now[k] - at[k];
            continue;
        }
        quat_of_matrix(now, q);
        quat_of_matrix(at, q1);
        quat_log(q1, q, d[i]);
    }
    for (int k = 0; k < 3; k++)
        v[k] = (4 * d[0][k] - d[1][k]) / (2 * e);
}

static void drive(rod_work *w, double t, double e, double *v)
{
    for (int i = 0; i < w->ends.nhold; i++) {
        const rod_hold *h = &w->ends.hold[i];
        if (h->load->what == LOAD_POSITION)
            support_velocity(w, h, t, e, v + 6 * h->node);
        else if (h->load->what == LOAD_FRAME)
            support_velocity(w, h, t, e, v + 6 * h->node + 3);
    }
    rod_follow(w, v);
}

/* Joined sections must start with one velocity. */
static bool velocities_meet(rod_work *w)
{
    rod_motion *d = w->motion;
    arena_pos mark = arena_mark(w->tmp);
    double *v = arena_array(w->tmp, double, w->ndof), most = 0, L = rod_length(w);
    memcpy(v, d->vel, (size_t)w->ndof * sizeof *v);
    rod_follow(w, v);
    for (int i = 0; i < w->ndof; i++)
        most = fmax(most, fabs(v[i]) * (i % 6 < 3 ? 1 : L));
    for (int r = 0; r < w->rp->nrod; r++)
        for (int i = 6 * w->mesh[r].first; i < 6 * (w->mesh[r].first + w->mesh[r].nn); i++)
            if (fabs(v[i] - d->vel[i]) * (i % 6 < 3 ? 1 : L) > VELOCITIES_MEET * most)
                return rod_fail(
                    w, w->mesh[r].spec->start_at.file ? w->mesh[r].spec->start_at : w->mesh[r].spec->at,
                    "at the start rod '%s' and the rod that it is joined to move differently at "
                    "s = %.4g; give velocity and spin that agree there",
                    w->mesh[r].spec->name, w->mesh[r].s[i / 6 - w->mesh[r].first]);
    memcpy(d->vel, v, (size_t)w->ndof * sizeof *v);
    arena_release(w->tmp, mark);
    return true;
}

/* Initial velocities of the model. Without given angular velocities, sections rotate with the line: d3 x v'.
 */
static bool velocities_start(rod_work *w, const rod_mesh *m, int rod)
{
    const rod_spec *sp = m->spec;
    for (int i = 0; i < m->nn; i++) {
        double *v = w->motion->vel + 6 * (m->first + i), R[9], d3[3], spin[3] = { 0 },
               e = DIFFERENCE_CENTRAL * m->length, s = m->s[i], a[3], b[3];
        quat_matrix(w->state.rot + 4 * (m->first + i), R);
        for (int k = 0; k < 3; k++)
            d3[k] = R[3 * k + 2];
        if (sp->velocity.tape.nout)
            rod_eval(w, &sp->velocity, 0, rod, s, v);
        if (sp->spin.tape.nout)
            rod_eval(w, &sp->spin, 0, rod, s, spin);
        else if (sp->velocity.tape.nout) {
            double lo = fmax(s - e, 0), hi = fmin(s + e, m->length);
            rod_eval(w, &sp->velocity, 0, rod, lo, a);
            rod_eval(w, &sp->velocity, 0, rod, hi, b);
            for (int k = 0; k < 3; k++)
                a[k] = (b[k] - a[k]) / (hi - lo);
            cross3(d3, a, spin);
        }
        for (int k = 0; k < 3; k++)
            v[3 + k] = R[k] * spin[0] + R[3 + k] * spin[1] + R[6 + k] * spin[2];
        if (!isfinite(dot3(v, v) + dot3(spin, spin)))
            return rod_fail(w, sp->start_at,
                            "the velocity of rod '%s' at the start is not a number at s = %g", sp->name, s);
    }
    return true;
}

/* ---- inertia of an element ---- */
static void turn_inertia(const double *J, const rod_motion *d, int node, const double *q0, const double *q1,
                         const double *x, const double *v1, double weight, double *f, double *K)
{
    const double *phi = x + 3, *W0 = d->vel + 6 * node + 3;
    double c[4] = { q0[0], -q0[1], -q0[2], -q0[3] }, rel[4], R[9], y[3], z[3], k = weight / d->dt;
    quat_mul(c, q1, rel);
    quat_matrix(rel, R);
    mat3(J, W0, y);
    for (int i = 0; i < 3; i++)
        z[i] = R[i] * y[0] + R[3 + i] * y[1] + R[6 + i] * y[2]; /* R1^T pi0 */
    mat3(J, v1 + 3, y);
    for (int i = 0; f && i < 3; i++)
        f[3 + i] += k * (y[i] - z[i]);
    if (!K)
        return;
    /* a rotation by th changes phi by th + phi x th/2 + phi (phi.th)/4, and R1^T pi0 by R1^T pi0 x th */
    double P[9] = { 0, -phi[2], phi[1], phi[2], 0, -phi[0], -phi[1], phi[0], 0 },
           Z[9] = { 0, -z[2], z[1], z[2], 0, -z[0], -z[1], z[0], 0 };
    for (int i = 0; i < 9; i++)
        P[i] = P[i] / 2 + phi[i / 3] * phi[i % 3] / 4 + (i % 4 == 0);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            double JP = J[3 * i] * P[j] + J[3 * i + 1] * P[3 + j] + J[3 * i + 2] * P[6 + j];
            K[(3 + i) * ROD_DOFS + 3 + j] += k * ((driven(d, node, 3) ? 0 : 1 / (d->theta * d->dt)) * JP -
                                                  Z[3 * i + j]);
        }
}

/* A body at a section; as for loads, in the first element that contains its node. */
static void lump_put(const rod_work *w, const double *lump, int node, const double *x, const double *v,
                     double *f, double *K)
{
    const rod_motion *d = w->motion;
    double c = lump[0] / d->dt;
    for (int k = 0; k < 3; k++) {
        if (f)
            f[k] += c * (v[k] - d->vel[6 * node + k]);
        if (K && !driven(d, node, 0))
            K[k * (ROD_DOFS + 1)] += c / (d->theta * d->dt);
    }
    turn_inertia(lump + 1, d, node, w->state.rot0 + 4 * node, w->state.rot + 4 * node, x, v, 1, f, K);
}

void rod_inertia_put(const rod_work *w, const rod_mesh *m, int e, double *f, double *K)
{
    const rod_motion *d = w->motion;
    double h = m->s[3 * e + 3] - m->s[3 * e], x[4][6], v[4][6];
    int k0 = m->first + 3 * e;
    for (int i = 0; i < 4; i++) {
        moved_by(w, k0 + i, x[i]);
        velocity_end(d, k0 + i, x[i], v[i]);
    }
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            double c = h / d->dt * rod_mass_at(m, e, i, j);
            for (int k = 0; k < 3; k++) {
                if (f)
                    f[6 * i + k] += c * (v[j][k] - d->vel[6 * (k0 + j) + k]);
                if (K && !driven(d, k0 + j, 0))
                    K[(6 * i + k) * ROD_DOFS + 6 * j + k] += c / (d->theta * d->dt);
            }
        }
        turn_inertia(rod_inertia_at(m, 3 * e + i), d, k0 + i, w->state.rot0 + 4 * (k0 + i),
                     w->state.rot + 4 * (k0 + i), x[i], v[i], h * rod_piece[i], f ? f + 6 * i : NULL,
                     K ? K + 6 * i * (ROD_DOFS + 1) : NULL);
        const double *lump = i || !e ? rod_lump_at(m, 3 * e + i) : NULL;
        if (lump)
            lump_put(w, lump, k0 + i, x[i], v[i], f ? f + 6 * i : NULL,
                     K ? K + 6 * i * (ROD_DOFS + 1) : NULL);
    }
}

double rod_resist_put(const rod_work *w, const rod_mesh *m, int e, double *f, double *K)
{
    double c = m->drag * (m->s[3 * e + 3] - m->s[3 * e]) / w->motion->dt, work = 0;
    int k0 = m->first + 3 * e;
    for (int i = 0; m->drag > 0 && i < ROD_NODES; i++)
        for (int j = 0; j < ROD_NODES; j++)
            for (int k = 0; k < 3; k++) {
                const double *from = w->state.pos0, *to = w->state.pos;
                int a = 3 * (k0 + i) + k, b = 3 * (k0 + j) + k;
                double force = c * rod_mass[i][j] * (to[b] - from[b]);
                work += force * (to[a] - from[a]);
                if (f)
                    f[6 * i + k] += force;
                if (K)
                    K[(6 * i + k) * ROD_DOFS + 6 * j + k] += c * rod_mass[i][j];
            }
    return work;
}

double rod_part(const rod_work *w, const rod_mesh *m)
{
    return w->motion->theta + m->damping / w->motion->dt;
}

/* ---- energies ---- */
double rod_kinetic(const rod_work *w)
{
    double sum = 0;
    for (int r = 0; r < w->rp->nrod; r++)
        for (int e = 0; e < w->mesh[r].ne; e++) {
            const rod_mesh *m = &w->mesh[r];
            const double *v = w->motion->vel + 6 * (m->first + 3 * e);
            double h = m->s[3 * e + 3] - m->s[3 * e], y[3];
            for (int i = 0; i < 4; i++) {
                for (int j = 0; j < 4; j++)
                    sum += h / 2 * rod_mass_at(m, e, i, j) * dot3(v + 6 * i, v + 6 * j);
                mat3(rod_inertia_at(m, 3 * e + i), v + 6 * i + 3, y);
                sum += h * rod_piece[i] * dot3(v + 6 * i + 3, y) / 2;
                const double *lump = i || !e ? rod_lump_at(m, 3 * e + i) : NULL;
                if (!lump)
                    continue;
                mat3(lump + 1, v + 6 * i + 3, y);
                sum += (lump[0] * dot3(v + 6 * i, v + 6 * i) + dot3(v + 6 * i + 3, y)) / 2;
            }
        }
    return sum;
}

double rod_worked(const rod_work *w)
{
    return w->motion->worked;
}
const double *rod_velocities(const rod_work *w)
{
    return w->motion->vel;
}
const double *rod_left(const rod_work *w)
{
    return w->motion->left;
}

/* Forces of a step, as parts of the residual. */
typedef struct forces {
    double *load, *touch, *mass;
} forces;

/* Work of a step: by loads and supports; by contact, damping and theta, which is dissipated. A support works
   with the mean of its velocities against inertia, and along its displacement against everything else: then
   the energies add up exactly. */
static void account(rod_work *w, const forces *f)
{
    rod_motion *d = w->motion;
    const double *all = d->left, *load = f->load, *touch = f->touch, *mass = f->mass;
    double *now = arena_array(w->tmp, double, w->ndof);
    for (int r = 0; r < w->rp->nrod; r++)
        for (int e = 0; e < w->mesh[r].ne; e++)
            w->viscous += rod_damped(&w->mesh[r], e, w->state.pos0, w->state.rot0, w->state.pos, w->state.rot,
                                     rod_part(w, &w->mesh[r])) +
                          rod_resist_put(w, &w->mesh[r], e, NULL, NULL);
    for (int node = 0; node < w->N; node++) {
        double x[6], v[6];
        moved_by(w, node, x);
        velocity_end(d, node, x, v);
        double own[6];
        memcpy(own, x, sizeof own);
        rod_on_axes(w, node, own + 3);
        for (int k = 0; k < 6; k++) {
            int i = 6 * node + k;
            d->worked -= load[i] * x[k];
            w->viscous += touch[i] * x[k];
            if (w->ends.held[i])
                d->worked += all[i] * own[k];
            double lag = mass[i] * (x[k] - (v[k] + d->vel[i]) * d->dt / 2);
            if (driven(d, node, k))
                d->worked -= lag;
            else if (d->theta > 0.5)
                w->viscous += lag;
        }
    }
    for (int node = 0; node < w->N; node++) {
        double x[6];
        moved_by(w, node, x);
        velocity_end(d, node, x, now + 6 * node);
    }
    memcpy(d->vel, now, (size_t)w->ndof * sizeof *now);
}

/* Do forces balance, relative to the largest of them or to the forces that bend the rod? Small increments
   alone do not prove it. */
static bool balanced(rod_work *w, const forces *f)
{
    rod_motion *d = w->motion;
    double worst = 0, size = 0, L = rod_length(w);
    for (int i = 0; i < w->ndof; i++) {
        double arm = i % 6 < 3 ? L : 1;
        if (!w->ends.held[i])
            worst = fmax(worst, fabs(d->left[i]) * arm);
        size = fmax(size, fmax(fabs(f->mass[i]), fmax(fabs(f->load[i]), fabs(f->touch[i]))) * arm);
    }
    d->missed = worst / fmax(size, w->scale * L);
    return d->missed < BALANCE_LOOSE;
}

/* After a solve: is it a valid step? Updates energies and velocities. */
static bool settle(rod_work *w, double t)
{
    arena_pos mark = arena_mark(w->tmp);
    forces f = { .load = arena_array(w->tmp, double, w->ndof),
                 .touch = arena_array(w->tmp, double, w->ndof),
                 .mass = arena_array(w->tmp, double, w->ndof) };
    rod_residual(w, t, w->motion->left);
    rod_loads(w, t, f.load);
    if (w->contact)
        contacts_put(w, f.touch, NULL);
    for (int r = 0; r < w->rp->nrod; r++)
        for (int e = 0; e < w->mesh[r].ne; e++)
            rod_inertia_put(w, &w->mesh[r], e, f.mass + 6 * (w->mesh[r].first + 3 * e), NULL);
    bool ok = balanced(w, &f);
    if (ok) {
        account(w, &f);
        w->r->residual = fmax(w->r->residual, w->motion->missed);
    }
    arena_release(w->tmp, mark);
    return ok;
}

/* ---- steps ---- */
/* First guess from the velocities, and the supports. */
static void predict(rod_work *w)
{
    const rod_motion *d = w->motion;
    for (int i = 0; i < w->N; i++) {
        /* the angle of cay is 2 atan(a) */
        double th[3], a = norm3(d->vel + 6 * i + 3) * d->dt / 2,
                      k2 = a > ROUND_ROOT ? d->dt * atan(a) / a : d->dt;
        for (int k = 0; k < 3; k++) {
            w->state.pos[3 * i + k] += d->dt * d->vel[6 * i + k];
            th[k] = k2 * d->vel[6 * i + 3 + k];
        }
        quat_turn(w->state.rot + 4 * i, th);
    }
}

static bool motion_step(rod_work *w, double t, double dt)
{
    rod_motion *d = w->motion;
    double middle = t + d->theta * dt;
    d->dt = dt;
    if (!holds_at(w, t + dt, 1))
        return false;
    drive(w, t + dt, DIFFERENCE_DRIVE * dt, d->goal);
    if (w->contact) {
        contacts_step(w);
        contacts_save(w);
    }
    if (!w->contact) {
        state_copy(w, w->state.pos0, w->state.rot0, w->state.pos, w->state.rot);
        predict(w);
    }
    if (rod_equilibrium(w, middle) && !rod_passed(w, w->state.pos0, w->state.rot0, false, true) &&
        settle(w, middle))
        return true;
    state_copy(w, w->state.pos, w->state.rot, w->state.pos0, w->state.rot0);
    if (w->contact)
        contacts_restore(w);
    return false;
}

bool rod_motion_new(rod_work *w, double dt)
{
    rod_motion *d = arena_make(w->a, rod_motion);
    d->theta = w->ro->theta;
    d->dt = dt;
    d->vel = arena_array(w->a, double, w->ndof);
    d->goal = arena_array(w->a, double, w->ndof);
    d->left = arena_array(w->a, double, w->ndof);
    d->driven = arena_array(w->a, uint8_t, w->N);
    for (int i = 0; i < w->ends.nhold; i++) {
        if (w->ends.hold[i].load->what == LOAD_POSITION)
            d->driven[w->ends.hold[i].node] |= DRIVEN_PLACE;
        if (w->ends.hold[i].load->what == LOAD_FRAME)
            d->driven[w->ends.hold[i].node] |= DRIVEN_FRAME;
    }
    w->motion = d;
    for (int i = 0; i < w->rp->nrod; i++)
        if (!velocities_start(w, &w->mesh[i], i))
            return false;
    for (int k = 0; k < w->N; k++) /* nodes that follow others move with their supports */
        d->driven[k] |= rod_driven_by(w, k, d->driven);
    return velocities_meet(w);
}

/* ---- for the clock ---- */
static bool motion_start(void *of, run_clock *c)
{
    rod_work *w = of;
    c->rule = STEPS_HALVED;
    c->near = CLOCK_END;
    c->look = 1;
    c->h = w->ro->h > 0 ? w->ro->h : c->end / 1000;
    if (!rod_motion_new(w, c->h))
        return false;
    drive(w, 0, -DIFFERENCE_DRIVE * c->h, w->motion->vel);
    return true;
}

/* The step is shortened if supports rotate far in it. */
static step_outcome motion_go(void *of, run_clock *c, double h, double to)
{
    rod_work *w = of;
    (void)to;
    while (turn_between(w, c->t, h) > 1 && h > STEP_SHORTEST * c->h)
        h /= 2;
    c->taken = h;
    if (motion_step(w, c->t, h)) {
        w->t = c->t + h;
        return STEP_DONE;
    }
    if (c->r->status != RUN_OK)
        return STEP_FAILED;
    if (clock_may_refuse(c))
        return STEP_REFUSED;
    rod_fail(w, w->rp->rod[0].at,
             "no motion was found beyond t = %.10g, with steps down to a ten-thousandth of h; the results so "
             "far are kept",
             c->t);
    return STEP_FAILED;
}

const stepper rod_motion_stepper = { .start = motion_start, .step = motion_go, .sample = rod_fill };
