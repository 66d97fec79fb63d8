/* sweep_step: one smooth step: theta scheme, closed contacts solved at the velocity at its end, positions
   corrected to gap = 0; then it is accepted and its work is added to the books. */
#include <math.h>
#include <string.h>
#include "sweep.h"
#include "base/tolerances.h"

void sweep_gather(sweep *w)
{
    sweep_take(w, w->contacts.table.closed, NULL);
}

/* D = M - theta h (Fv + theta h Fq); rows of first-order equations are h (M - Fv - theta h Fq). */
static bool step_matrix(sweep *w, double h, const double *M)
{
    const matrix_shape *shape = &w->s->step_shape;
    double a = w->theta * h;
    if (!w->s->force_of_state && w->s->mass_constant) {
        w->matrix.dinv = &w->s->minv;
        return true;
    }
    if (w->s->jacobian_constant && w->s->mass_constant && w->matrix.d_step == h)
        return true;
    if (w->s->force_of_state)
        system_jacobian(w->s, w->matrix.Fq, w->matrix.Fv);
    else {
        memset(w->matrix.Fq, 0, shape->count * sizeof *w->matrix.Fq);
        memset(w->matrix.Fv, 0, shape->count * sizeof *w->matrix.Fv);
    }
    bool lumped = mass_diagonal(w->s);
    for (int i = 0; i < w->n; i++) {
        bool first = w->p->order && w->p->order[i] == 1;
        double k = first ? 1 : a, z = first ? h : 1;
        size_t own = lumped ? matrix_at(shape, i, i) : 0;
        for (size_t at = matrix_row(shape, i), end = matrix_row(shape, i + 1); at < end; at++) {
            double m = !lumped ? M[at] : at == own ? M[i] : 0;
            w->matrix.D[at] = z * (m - k * (w->matrix.Fv[at] + a * w->matrix.Fq[at]));
        }
    }
    w->matrix.d_step = h;
    w->matrix.stamp++;
    w->matrix.dinv = &w->matrix.df;
    if (factor_matrix(&w->matrix.df, w->matrix.D))
        return true;
    return results_fail(
        w->r, SPAN_NONE,
        arena_printf(w->r->a, "the matrix of the step is singular at t = %s", sweep_number(w, w->t)));
}

/* h ((1 - theta) f0 + theta f1) - M (v1 - v0); for first-order rows h (f1 - M v1). */
static void step_defect(sweep *w, double h, const double *M, double *out)
{
    int n = w->n;
    double *dv = w->room.x2, *mdv = w->room.x3, th = w->theta;
    for (int i = 0; i < n; i++)
        dv[i] = w->v1[i] - w->v[i];
    mass_times(w->s, M, dv, mdv);
    for (int i = 0; i < n; i++)
        out[i] = h * ((1 - th) * w->f[i] + th * w->f1[i]) - mdv[i];
    if (!w->s->first_order)
        return;
    mass_times(w->s, M, w->v1, mdv);
    for (int i = 0; i < n; i++)
        if (w->p->order[i] == 1)
            out[i] = h * (w->f1[i] - mdv[i]);
}

static void step_positions(sweep *w, double h)
{
    double a = h * (1 - w->theta), b = h * w->theta;
    for (int i = 0; i < w->n; i++)
        w->q1[i] = w->q[i] + (a * w->v[i] + b * w->v1[i]);
    for (int i = 0; w->way.aside && i < w->n; i++)
        w->q1[i] += w->way.aside[i];
}

/* The inverse diagonal of the mass matrix; for a first-order dof, its factor is multiplied by the duration of
   the run. */
void sweep_lightness(sweep *w)
{
    const matrix_shape *shape = &w->s->mass_shape;
    if (w->size.light_known && w->s->mass_constant)
        return;
    for (int i = 0; i < w->n; i++) {
        double m = fabs(w->M[matrix_at(shape, i, i)]);
        if (w->p->order && w->p->order[i] == 1)
            m *= w->o->duration;
        w->size.light[i] = m > 0 ? 1 / m : 1;
    }
    w->size.light_known = true;
}

/* Do two rows of a contact have the same direction, in the kinetic metric? */
static bool rows_alike(const sweep *w, const contact *c, const double *a, const double *b)
{
    double ab = 0, bb = 0;
    for (int i = 0; i < c->n; i++) {
        double light = w->size.light[c->dof ? c->dof[i] : i];
        ab += light * a[i] * b[i];
        bb += light * b[i] * b[i];
    }
    return ab > 0.5 * bb;
}

/* Mean of two rows; false: the directions were chosen anew, so they are not averaged. */
static bool mean_row(const sweep *w, const contact *c, const double *a, const double *b, double *m)
{
    bool same = rows_alike(w, c, a, b);
    for (int i = 0; i < c->n; i++)
        m[i] = same ? 0.5 * (a[i] + b[i]) : b[i];
    return same;
}

/* The mean of slip component j, and of its direction. */
static void mean_slip(const sweep *w, const contact_state *k, int j)
{
    const contact *c = k->c;
    size_t at = (size_t)j * (size_t)c->n;
    bool same = mean_row(w, c, k->S0 + at, c->S + at, k->Sm + at);
    for (int i = 0; turns_its_slip(k) && i < c->fam->shown; i++) {
        int place = i * c->d + j;
        k->showm[place] = same ? 0.5 * (k->show0[place] + c->show[place]) : c->show[place];
    }
}

static double slip_before(const sweep *w, const contact *c)
{
    return c->fam->brakes ? sweep_brake_slip(c, w->v, w->hand.brake.speed)
                          : contact_slip(c, w->v, w->room.x4);
}

/* Rows of closed contacts at the start of the step. */
static void rows_before(sweep *w)
{
    system_at(w->s, w->t, w->q, w->v);
    if (w->hand.brake.on)
        w->hand.brake.speed = sweep_brake_speed(w, w->v);
    if (w->hand.known.still && w->hand.known.rows == w->hand.known.stamp)
        return;
    w->hand.known.rows = w->hand.known.stamp;
    for (int i = 0; i < w->hand.nact; i++) {
        contact_state *k = w->hand.act[i];
        contact *c = k->c;
        size_t n = (size_t)c->n;
        bool joined = k->normal && rows_of_start(w, k);
        if (!k->offset_fixed && !joined)
            contact_rows(w->s, c, w->M, false);
        k->htm = c->ht;
        for (int j = 0; j < c->d; j++)
            k->s0m[j] = c->s0[j];
        if (joined && !closed(w, k) && (c->fam->f->mu_of_speed || c->fam->mu_static.k))
            sweep_tolerances(w, k);
        if (c->fam->f->mu_of_speed)
            k->speed = slip_before(w, c);
        if (!contact_slips(k->speed, k->tol_slip, k->now.held))
            k->speed = 0;
        k->pulls = sticks_on(w, k);
        k->now.rests = c->fam->mu_static.k && c->d &&
                       !contact_slips(contact_slip(c, w->v, w->room.x4), k->tol_slip, k->now.held);
        if (!k->still) {
            if (!joined)
                contact_laws(w->s, c, false);
            k->mu0 = c->fam->f->mu_of_speed ? contact_mu(w->s, c, k->speed) : c->mu;
            k->static0 = c->mu_static;
            k->normal0 = c->normal;
        }
        if (!along_mean(w, k))
            continue;
        memcpy(k->H0, c->H, n * sizeof(double));
        memcpy(k->S0, c->S, n * (size_t)c->d * sizeof(double));
        if (turns_its_slip(k))
            memcpy(k->show0, c->show, (size_t)(c->fam->shown * c->d) * sizeof(double));
    }
}

/* Rows, laws and columns at the current estimate of the end of the step. */
static void rows_after(sweep *w, const double *M)
{
    for (int i = 0; i < w->hand.nact && !w->hand.known.still; i++) {
        contact_state *k = w->hand.act[i];
        contact *c = k->c;
        if (!k->still) {
            if (rows_of_start(w, k))
                continue;
            contact_rows(w->s, c, M, false);
            contact_laws(w->s, c, false);
            c->mu = (1 - w->theta) * k->mu0 + w->theta * c->mu;
            c->mu_static = (1 - w->theta) * k->static0 + w->theta * c->mu_static;
            if (!c->fam->f->fed)
                c->normal = (1 - w->theta) * k->normal0 + w->theta * c->normal;
        }
        if (along_mean(w, k)) {
            mean_row(w, c, k->H0, c->H, k->Hm);
            for (int j = 0; j < c->d; j++)
                mean_slip(w, k, j);
        }
    }
}

/* Rates of the surfaces, and the required rates of the gap. */
static inline void contact_offsets(const sweep *w, int i)
{
    const contact_table *t = &w->contacts.table;
    const cone *o = &w->hand.cone[i];
    const gap_row *row = &t->row[w->hand.place[i]];
    const contact_state *k = w->hand.act[i];
    double *off = w->hand.off + o->row;
    if (cone_normal(o))
        *off++ = (row->known ? row->ht : k->c->ht) + t->ahead[w->hand.place[i]];
    for (int j = 0; j < o->d; j++) {
        const double *S = k->c->S + (size_t)j * (size_t)k->c->n;
        *off++ = k->c->s0[j] + (k->along != 0 ? k->along * (contact_rate(k->c, S, w->v) + k->c->s0[j]) : 0);
    }
}

static bool step_alone(sweep *w, double h, double *v)
{
    contact_state *k = w->hand.act[0];
    int row = 0;
    w->hand.step = h;
    bool waits = w->policy.whole && w->hand.known.tresca;
    if (!k->still || waits || k->alone.cone.d != k->c->d || k->alone.cone_step != h) {
        sweep_cone(w, 0, &row);
        k->alone.cone = w->hand.cone[0];
        k->alone.cone_step = h;
    }
    w->hand.cone[0] = k->alone.cone;
    if (k->alone.cone.of_speed)
        return false;
    k->row = 0;
    sweep_columns_put(w, k, false);
    sweep_lone_matrix(w, k, false);
    contact_offsets(w, 0);
    return sweep_solve_alone(w, false, &k->alone.cone, v);
}

static bool step_contacts_once(sweep *w, double h, double *v)
{
    w->hand.end = w->theta;
    if (w->hand.nact == 1 && w->stiffness == 0 && !w->hand.brake.on && step_alone(w, h, v))
        return true;
    w->hand.step = h;
    sweep_cones(w);
    const contact_table *t = &w->contacts.table;
    bool known = w->hand.known.still && !w->policy.whole && w->hand.known.offsets == w->hand.known.stamp;
    for (int i = 0; !known && i < w->hand.nact; i++)
        contact_offsets(w, i);
    for (int i = 0, n = w->hand.nact; i < n; i++) {
        const cone *o = &w->hand.cone[i];
        const double *r = t->r + t->first[w->hand.place[i]];
        double *rr = w->hand.rr + o->row;
        for (int j = 0, m = cone_rows(o); j < m; j++)
            rr[j] = h * r[j];
    }
    w->hand.known.offsets = w->policy.whole ? -1 : w->hand.known.stamp;
    return sweep_solve(w, false, v, w->t1);
}

/* Changes contacts that the solved problem shows to give way, so that it must be solved again: those at rest
   whose friction has reached its bound slip with the kinetic coefficient; those whose adhesion is exceeded
   open. */
static bool step_gives_way(sweep *w)
{
    bool any = false;
    for (int i = 0; i < w->hand.nact; i++) {
        contact_state *k = w->hand.act[i];
        const cone *o = &w->hand.cone[i];
        const double *r = w->hand.rr + o->row;
        bool slips = k->now.rests && friction_lets_go(k->c, o, r), opens = k->pulls && !(r[0] > 0);
        k->now.rests &= !slips;
        k->pulls &= !opens;
        any |= slips || opens;
    }
    return any;
}

/* Adds the adhesion of closed contacts to the rates; their reactions are then pushes against it. */
static void step_pulls(sweep *w, double h, double *v)
{
    for (int i = 0; i < w->hand.nact; i++) {
        contact_state *k = w->hand.act[i];
        if (!k->pulls)
            continue;
        sweep_columns_put(w, k, false);
        for (int j = 0; j < k->G.n; j++)
            v[k->G.local ? k->c->dof[j] : j] -= h * k->c->adhesion * k->G.a[j];
    }
}

/* Impulses that keep the velocity at the end admissible. */
static bool step_contacts(sweep *w, double h, double *v)
{
    enum { AGAIN = 100 };
    bool some = w->contacts.feeds;
    for (int i = 0; w->hand.known.gives && i < w->hand.nact && !some; i++)
        some = w->hand.act[i]->now.rests || w->hand.act[i]->pulls;
    if (!some)
        return step_contacts_once(w, h, v);
    vec_copy(w->room.free, v, w->n);
    for (int again = 0;; again++) {
        step_pulls(w, h, v);
        if (!step_contacts_once(w, h, v))
            return false;
        bool fed = sweep_feed(w, h), gave = step_gives_way(w);
        if (again == AGAIN || !(fed || gave))
            return true;
        vec_copy(v, w->room.free, w->n);
    }
}

/* For a linear force, its value at the end of the step follows without an evaluation. */
void sweep_force_follows(sweep *w, const double *q, const double *v)
{
    int n = w->n;
    bool rates = w->s->force_dv.n > 0;
    for (int j = 0; j < n; j++) {
        w->room.x2[j] = w->q1[j] - q[j];
        w->room.x3[j] = w->v1[j] - v[j];
    }
    matrix_times_add(&w->s->step_shape, w->matrix.Fq, w->room.x2, w->f1);
    if (rates)
        matrix_times_add(&w->s->step_shape, w->matrix.Fv, w->room.x3, w->f1);
}

/* Masses at the end of the step, and the mean that acts over it. */
static bool step_masses(sweep *w, const double **M)
{
    system_t *s = w->s;
    *M = w->M;
    if (s->mass_constant)
        return true;
    system_mass(s, w->M1);
    for (size_t i = 0; i < s->mass_shape.count; i++)
        w->Mm[i] = 0.5 * (w->M[i] + w->M1[i]);
    *M = w->Mm;
    return sweep_factor(w, w->M1, w->t1);
}

/* Finds the contacts whose gap must be corrected to 0 (Newton's method in the kinetic metric): those that
   push or hold. */
static int off_surface(sweep *w, double *gap)
{
    int m = 0;
    bool off = false;
    system_at(w->s, w->t1, w->q1, w->v1);
    for (int i = 0; i < w->hand.nact; i++) {
        contact_state *k = w->hand.act[i];
        if (!cone_normal(&w->hand.cone[i]) || k->c->fam->f->of_rates)
            continue;
        double g = contact_gap(w->s, k->c);
        if (k->relation == REL_GAP && g > 0 && !(w->hand.rr[k->row] > 0))
            continue;
        off |= fabs(g) > 0.25 * w->contacts.table.tol_gap[k->at];
        gap[m] = -g;
        w->putting.back[m++] = k;
    }
    return off ? m : 0;
}

static bool pushes(const sweep *w, int m)
{
    for (int i = 0; i < m; i++)
        if (w->putting.back[i]->relation == REL_GAP && !w->putting.back[i]->rows_fixed)
            return true;
    return false;
}

/* Are the surfaces flat and at rest? Then the work of the correction belongs to the contacts; otherwise it is
   part of the error of the scheme. */
static bool flat(const sweep *w, int m)
{
    for (int i = 0; i < m; i++)
        if (!w->putting.back[i]->offset_fixed)
            return false;
    return true;
}

/* How far gaps that are to be closed ask the bodies to move, in the kinetic metric: each by itself, added up.
 */
static double way_asked(const sweep *w, int m, const double *gap)
{
    double way = 0;
    for (int i = 0; i < m; i++) {
        const contact *c = w->putting.back[i]->c;
        double yields = 0;
        for (int j = 0; j < c->n; j++)
            yields += c->H[j] * c->H[j] * w->size.light[c->dof ? c->dof[j] : j];
        way += yields > 0 ? fabs(gap[i]) / sqrt(yields) : 0;
    }
    return way;
}

/* Contacts that depend on each other up to rounding turn rounding of their gaps into a move of any size.  x4:
   where bodies were. */
static bool went_too_far(const sweep *w, double asked)
{
    double way = 0;
    for (int i = 0; i < w->n; i++) {
        double by = w->q1[i] - w->room.x4[i];
        way += by * by / w->size.light[i];
    }
    return !(sqrt(way) <= PUT_BACK_FAR * asked);
}

static bool put_back(sweep *w, bool *moved)
{
    enum { SYMMETRIC = 5 };
    int m;
    double *gap = w->hand.b; /* free for this use: the problem is solved, and only rr is needed */
    for (int it = 0; it < 10 && (m = off_surface(w, gap)) > 0; it++) {
        *moved = true;
        if (m > MANY_PUT_BACK && pushes(w, m) && sweep_largest_group(w, m) > MANY_PUT_BACK)
            return false; /* more contacts than the bodies have dofs for: a whole step follows */
        /* Along the mean of the rows at both ends: the way back is the same, so that motion along a curve
           neither gains nor loses energy. If the row turns too far for that, along the row at the end. */
        w->putting.back_mean = it < SYMMETRIC;
        for (int i = 0; i < m; i++) {
            contact_state *k = w->putting.back[i];
            if (k->rows_fixed)
                continue;
            contact_rows(w->s, k->c, w->s->mass_constant ? w->M : w->M1, false);
            if (w->putting.back_mean)
                mean_row(w, k->c, k->H0, k->c->H, k->Hm);
        }
        vec_copy(w->room.x4, w->q1, w->n);
        double asked = way_asked(w, m, gap);
        sweep_shortest(w, m, gap, w->q1);
        if (went_too_far(w, asked))
            return false;
        if (flat(w, m))
            for (int i = 0; i < w->n; i++)
                w->account.opened += w->f1[i] * (w->q1[i] - w->room.x4[i]);
    }
    return true;
}

/* Corrects positions; then updates forces and masses. */
static bool step_end(sweep *w, double h, bool known)
{
    bool moved = false, constant = w->s->mass_constant;
    w->account.opened = 0;
    if (w->policy.whole)
        moved = sweep_whole_positions(w, h);
    else if (w->hand.nact && !put_back(w, &moved))
        return false;
    if (known && !moved)
        return true;
    system_at(w->s, w->t1, w->q1, w->v1);
    if (!w->s->force_constant)
        system_force(w->s, w->f1);
    if (!constant)
        system_mass(w->s, w->M1);
    return constant || sweep_factor(w, w->M1, w->t1);
}

/* Forces and matrix at the current estimate of the end of the step, and v = v1 + D^-1 (defect): the rates
   that the smooth forces alone lead to. */
static bool step_free(sweep *w, double h, bool first, double *v)
{
    system_t *s = w->s;
    int n = w->n;
    const double *M = w->M;
    system_at(s, w->t1, w->q1, w->v1);
    if (!step_masses(w, &M))
        return false;
    if (!s->force_constant)
        system_force(s, w->f1);
    else if (first)
        vec_copy(w->f1, w->f, n);
    if (first && !step_matrix(w, h, M))
        return false;
    rows_after(w, s->mass_constant ? w->M : w->M1);
    step_defect(w, h, M, w->room.x2);
    solve_with(w->matrix.dinv, w->room.x2, w->room.x1);
    for (int i = 0; i < n; i++)
        v[i] = w->v1[i] + w->room.x1[i];
    return true;
}

bool sweep_not_finite(sweep *w)
{
    return results_fail(
        w->r, SPAN_NONE,
        arena_printf(w->r->a, "the motion is no longer finite at t = %s", sweep_number(w, w->t1)));
}

/* The bases of rotations lie halfway between both ends of the step. Seen from there both ends are alike, so
   steps are reversible, and free motion neither gains nor loses energy in the mean. The start is the same
   state with other bases. */
static void step_middle(sweep *w)
{
    system_t *s = w->s;
    if (!turns_middle(w->p, s->base, w->q, w->v, w->acc, w->q1, w->v1))
        return;
    system_at(s, w->t, w->q, w->v);
    system_mass(s, w->M);
    if (!s->force_constant)
        system_force(s, w->f);
    w->account.driving_known = false;
    w->hand.known.rows = -1;
    rows_before(w);
}

/* Newton's method for the defect, with the contact problem inside. */
static bool step_newton(sweep *w, double h)
{
    enum { FOLLOWED = 8 }; /* iterations after which bases stay */
    int n = w->n, most = 40;
    bool once = false;
    double *v = w->room.x4, change, size, before = INFINITY, mark = INFINITY;
    vec_copy(w->v1, w->v, n);
    vec_axpy(w->v1, h, w->acc, n);
    for (int it = 0;; it++) {
        step_positions(w, h);
        if (w->s->base && !w->policy.whole && it < FOLLOWED)
            step_middle(w);
        if (!step_free(w, h, it == 0, v))
            return false;
        change = size = 0;
        /* a body that stays at rest is compared with what forces alone would do to it */
        for (int i = 0; w->hand.nact && i < n; i++)
            size = larger(size, (v[i] - w->v[i]) * (v[i] - w->v[i]) / w->size.light[i]);
        if (w->hand.nact && !step_contacts(w, h, v))
            return false;
        for (int i = 0; i < n; i++) {
            double light = w->size.light[i], by = v[i] - w->v1[i],
                   speed = larger(fabs(v[i]), w->size.vmax[i]);
            change = larger(change, by * by / light);
            size = larger(size, speed * speed / light);
        }
        change = sqrt(change);
        size = sqrt(size);
        vec_copy(w->v1, v, n);
        if (!isfinite(change))
            return sweep_not_finite(w);
        if (once || change <= ROUND_50 * size ||
            (it > 4 && change <= STEP_STALLED * size && change >= before))
            break;
        /* with large reactions only their rounding remains: more iterations do not help */
        bool stuck = it == most || (it % 8 == 7 && change > 0.3 * mark) ||
                     (w->policy.whole && it > 1 && change > 0.3 * before);
        if (it % 8 == 7)
            mark = change;
        if (stuck) {
            if (change <= larger(STEP_ENOUGH, STEP_SHARED * w->tol) * size)
                break;
            /* Friction may leave a choice of impulses, and every iteration may choose differently. A whole
               step accepts the first choice: masses and forces are then those of the straight motion. */
            if (w->policy.whole && !once) {
                once = true;
                vec_copy(w->v1, w->v, n);
                it = -1;
                before = mark = INFINITY;
                continue;
            }
            return results_fail(w->r, SPAN_NONE,
                                arena_printf(w->r->a, "the step at t = %s did not converge; take a smaller h",
                                             sweep_number(w, w->t)));
        }
        before = change;
    }
    step_positions(w, h);
    return step_end(w, h, false);
}

/* The rates v1 that forces alone lead to, by Newton's method for the defect. */
static bool step_forced(sweep *w, double h)
{
    enum { MOST = 8 };
    double *v = w->room.x4, before = INFINITY;
    vec_copy(w->v1, w->v, w->n);
    for (int it = 0; it < MOST; it++) {
        double change = 0, size = 0;
        step_positions(w, h);
        if (!step_free(w, h, it == 0, v))
            return false;
        for (int i = 0; i < w->n; i++) {
            double light = w->size.light[i], by = v[i] - w->v1[i],
                   speed = larger(fabs(v[i]), w->size.vmax[i]);
            change = larger(change, by * by / light);
            size = larger(size, speed * speed / light);
        }
        vec_copy(w->v1, v, w->n);
        if (!isfinite(change))
            return sweep_not_finite(w);
        if (sqrt(change) <= STEP_STALLED * sqrt(size) || !(change < before))
            break;
        before = change;
    }
    return true;
}

/* Do bounds on rates hold at the end, to rounding? */
static bool rates_hold(sweep *w)
{
    const contact_table *t = &w->contacts.table;
    system_at(w->s, w->t1, w->q1, w->v1);
    for (int i = 0; i < w->hand.nact; i++) {
        const contact_state *k = w->hand.act[i];
        if (!k->c->fam->f->of_rates || k->offset_fixed)
            continue;
        contact_rows(w->s, k->c, w->s->mass_constant ? w->M : w->M1, false);
        double rate = gap_rate(k, w->v1);
        if ((k->relation == REL_BILATERAL ? -fabs(rate) : rate) < -t->tol_u[k->at])
            return false;
    }
    return true;
}

/* A whole step with bounds on rates. Bodies may end elsewhere than where their mean rates lead, and the
   bounds must hold there: the step is solved again with rows of the place where it ended. Each round leaves a
   fraction of the order of the step. */
static bool step_bounded(sweep *w, double h)
{
    enum { ROUNDS = 20 };
    arena_pos mark = arena_mark(w->scratch);
    double *aside = arena_array(w->scratch, double, (size_t)w->n), *ended = w->room.x1;
    bool ok = step_newton(w, h);
    for (int round = 0; ok && round < ROUNDS && !rates_hold(w); round++) {
        vec_copy(ended, w->q1, w->n);
        w->way.aside = NULL;
        step_positions(w, h);
        for (int i = 0; i < w->n; i++)
            aside[i] = ended[i] - w->q1[i];
        w->way.aside = aside;
        ok = step_newton(w, h);
    }
    w->way.aside = NULL;
    arena_release(w->scratch, mark);
    return ok;
}

/* A whole step of rotating bodies: first the motion by the forces, then the impulses of their contacts, with
   the masses and rows of the start. The change of gyroscopic forces by impulses is of the order of the step.
   */
static bool step_bodies(sweep *w, double h)
{
    if (!step_forced(w, h) || !sweep_factor(w, w->M, w->t))
        return false;
    w->matrix.dinv = &w->s->minv;
    if (w->hand.nact && !step_contacts(w, h, w->v1))
        return false;
    return step_end(w, h, false);
}

/* If everything is linear, the step is solved directly, from the rates at its start. */
static bool step_linear(sweep *w, double h)
{
    system_t *s = w->s;
    int n = w->n;
    const double th = w->theta, a = h * (1 - th), b = h * th, *f = w->f, *f1 = w->f1;
    double *v = w->v1, finite = 0;
    for (int i = 0; i < n; i++)
        w->q1[i] = w->q[i] + (a * w->v[i] + b * w->v[i]);
    system_at(s, w->t1, w->q1, w->v);
    if (!s->force_constant)
        system_force(s, w->f1);
    else
        vec_copy(w->f1, w->f, n);
    if (!step_matrix(w, h, w->M))
        return false;
    rows_after(w, w->M);
    if (s->first_order) {
        vec_copy(w->v1, w->v, n);
        step_defect(w, h, w->M, w->room.x2);
    } else
        for (int i = 0; i < n; i++)
            w->room.x2[i] = h * ((1 - th) * f[i] + th * f1[i]);
    solve_with(w->matrix.dinv, w->room.x2, w->room.x1);
    for (int i = 0; i < n; i++)
        v[i] = w->v[i] + w->room.x1[i];
    if (w->hand.nact && !step_contacts(w, h, v))
        return false;
    if (s->force_of_state)
        vec_copy(w->room.x4, w->q1, n);
    for (int i = 0; i < n; i++) {
        w->q1[i] = w->q[i] + (a * w->v[i] + b * v[i]);
        finite += 0 * v[i];
    }
    if (s->force_of_state)
        sweep_force_follows(w, w->room.x4, w->v);
    return finite == 0 ? step_end(w, h, true) : sweep_not_finite(w);
}

bool sweep_free(sweep *w, double h, double *v1)
{
    /* a trial step that was given up has left the factors of its end */
    if (!w->s->mass_constant && !sweep_factor(w, w->M, w->t))
        return false;
    solve_with(&w->s->minv, w->f, w->room.x1);
    for (int i = 0; i < w->n; i++)
        v1[i] = w->v[i] + h * w->room.x1[i];
    return true;
}

/* One trial step from the current state: q1, v1, f1, and the impulses in rr. */
bool sweep_smooth(sweep *w, double h)
{
    w->t1 = w->t + h;
    w->hand.brake.acts[false] = false;
    if (w->contacts.bounds && !w->policy.whole)
        sweep_take(w, w->contacts.table.closed, w->contacts.table.bounds);
    bool linear = w->linear && !w->hand.known.rates;
    sweep_lightness(w);
    rows_before(w);
    if (!linear && !w->contacts.feeds && !w->hand.known.rates && w->s->mass_constant &&
        (!w->s->force_of_state || w->s->jacobian_constant)) {
        linear = true;
        for (int i = 0; i < w->hand.nact; i++)
            linear &= !along_mean(w, w->hand.act[i]);
    }
    if (linear)
        return step_linear(w, h);
    if (w->policy.whole && w->hand.known.rates)
        return step_bounded(w, h);
    return w->policy.whole && w->crowd.by_bodies && w->s->base ? step_bodies(w, h) : step_newton(w, h);
}

/* Evaluates the gaps of all contacts at the end of the trial step; `met`: those that were crossed. */
bool sweep_look(sweep *w)
{
    contact_table *t = &w->contacts.table;
    bool any = false;
    sweep_touch_ahead(w);
    system_at(w->s, w->t1, w->q1, w->v1);
    sweep_gaps_but(w, t->closed); /* those are known since positions were corrected */
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        t->met[i] = !t->closed[i] && !(t->gap[i] >= -t->tol_gap[i]);
        any |= t->met[i];
    }
    return any;
}

/* Work of forces without potential at both ends of the step, with the weights of the scheme; most models have
   none. */
double sweep_driven(sweep *w, double h, const double *way)
{
    double th = w->theta, work = 0;
    if (!w->s->driving.n && !w->s->power.n)
        return 0;
    if (!w->account.driving_known) {
        system_at(w->s, w->t, w->q, w->v);
        w->account.power = system_driving(w->s, w->account.driving);
    }
    system_at(w->s, w->t1, w->q1, w->v1);
    w->account.power1 = system_driving(w->s, w->account.driving1);
    for (int i = 0; i < w->n; i++)
        work += (way ? way[i] : 0.5 * h * (w->v[i] + w->v1[i])) *
                ((1 - th) * w->account.driving[i] + th * w->account.driving1[i]);
    work += h * ((1 - th) * w->account.power + th * w->account.power1);
    SWAP(w->account.driving, w->account.driving1);
    w->account.power = w->account.power1;
    w->account.driving_known = true;
    return work;
}

/* Rate of component j of k: mean of both ends of the step, each with its own row. */
static double mean_rate(const sweep *w, const contact_state *k, int j, double *still)
{
    const contact *c = k->c;
    int a = k->normal;
    const double *row1 = row_of(k, c->H, c->S, j), *row0 = row1;
    if (along_mean(w, k))
        row0 = row_of(k, k->H0, k->S0, j);
    if (row0 != row1 && !rows_alike(w, c, row0, row1))
        row0 = row1; /* directions were chosen anew */
    *still = 0.5 * (j < a ? k->htm + c->ht : k->s0m[j - a] + c->s0[j - a]);
    return 0.5 * (contact_rate(c, row0, w->v) + contact_rate(c, row1, w->v1)) + *still;
}

/* The same for friction alone, along constant rows. */
static void account_slip(sweep *w, const cone *o, const slip_row *s)
{
    for (int j = 0; j < o->d; j++) {
        double P = w->hand.rr[o->row + j], still = 0.5 * (s->s0m[j] + s->s0[j]);
        if (P == 0)
            continue;
        w->account.books->dissipated -= P * (0.5 * (slip_rate(s, j, w->v) + slip_rate(s, j, w->v1)) + still);
        w->account.books->work -= P * still;
    }
}

static void account_brake(sweep *w)
{
    double *rate = w->room.x1;
    if (!w->hand.brake.acts[false])
        return;
    for (int i = 0; i < w->n; i++)
        rate[i] = 0.5 * (w->v[i] + w->v1[i]);
    w->account.books->dissipated -= sweep_brake_power(w, false, rate);
}

/* Adds the energy that contacts took in the smooth step: reactions times the mean rates of both ends. Moving
   surfaces do work. */
static void account(sweep *w, double h)
{
    bool moved = w->account.opened != 0;
    double *way = moved || w->policy.islands.stage == STEP_CALM ? w->room.x1 : NULL;
    for (int i = 0; way && i < w->n; i++)
        way[i] = set_aside(w, i) ? 0 : moved ? w->q1[i] - w->q[i] : 0.5 * h * (w->v[i] + w->v1[i]);
    w->account.books->work += sweep_driven(w, h, way);
    w->account.books->dissipated += w->account.opened;
    for (int i = 0, n = w->hand.nact; i < n; i++) {
        const cone *o = &w->hand.cone[i];
        const slip_row *s = &w->contacts.table.slip[w->hand.place[i]];
        if (!cone_normal(o) && s->fixed && !w->hand.known.gives) {
            account_slip(w, o, s);
            continue;
        }
        const contact_state *k = w->hand.act[i];
        for (int j = 0; j < rows_of(k); j++) {
            double P = w->hand.rr[k->row + j] - (j == 0 && k->pulls ? h * k->c->adhesion : 0), still;
            if (P == 0)
                continue;
            double rate = mean_rate(w, k, j, &still);
            if (j < k->normal && k->c->fam->f->of_rates) { /* it drives, and dissipates nothing */
                w->account.books->work += P * (rate - still);
                continue;
            }
            /* a curved or moving surface takes nothing while contact lasts: its rate is 0 up to the error of
               the step */
            if (j >= k->normal || w->policy.whole || k->offset_fixed)
                w->account.books->dissipated -= P * rate;
            w->account.books->work -= P * still;
        }
    }
    account_brake(w);
}

/* The largest overlap in a family. Points of shapes are held during the step and may leave their faces;
   overlaps of shapes are measured where they are moved apart. */
static double deepest(const sweep *w, size_t f)
{
    if (w->p->contact[f].pair.touch)
        return 0;
    const double *gap = w->contacts.table.gap + w->contacts.table.from[f],
                 *end = w->contacts.table.gap + w->contacts.table.from[f + 1];
    double least = 0;
    if (w->p->contact[f].relation == REL_BILATERAL)
        for (; gap < end; gap++)
            least = -fabs(*gap) < least ? -fabs(*gap) : least;
    else if (w->p->contact[f].relation == REL_GAP)
        for (; gap < end; gap++)
            least = *gap < least ? *gap : least;
    return -least;
}

/* Adds the impulse of friction of a step, given in its own directions r, in the space of slip. */
static void add_turned(const sweep *w, const contact_state *k, const double *r, double *P)
{
    const contact *c = k->c;
    const double *show = w->policy.whole ? c->show : k->showm;
    for (int i = 0; i < c->fam->shown; i++)
        P[i] += vec_dot(show + (size_t)(i * c->d), r, c->d);
}

/* Must it be determined whether it is at rest, beyond its computed slip? The error of the solver may exceed
   rounding if the surface moves along, or if there is a coefficient of static friction. */
static bool asks_for_rest(const contact_state *k)
{
    return !k->offset_fixed || k->c->fam->mu_static.k;
}

/* numbers of the reaction of contact i of the problem, with the size of friction that is part of a brake */
static int rows_kept(const sweep *w, int i)
{
    return cone_rows(&w->hand.cone[i]) + (w->hand.brake.on && w->hand.act[i]->c->fam->brakes);
}

/* Stores the impulses of the step, and finds which contacts open at its end. */
static void accept_contacts(sweep *w, double h)
{
    contact_table *t = &w->contacts.table;
    const act_known known = w->hand.known;
    t->counted |= w->hand.nact > 0;
    for (int i = 0, n = w->hand.nact; i < n; i++) {
        const cone *o = &w->hand.cone[i];
        const double *rr = w->hand.rr + o->row;
        int at = w->hand.place[i];
        if (!known.still && i + FETCHED < n && w->hand.act[i + FETCHED]->c->show)
            __builtin_prefetch(w->hand.act[i + FETCHED]->c->show);
        double *r = t->r + t->first[at], *P = t->P + t->first[at];
        bool turns = known.turns && turns_its_slip(w->hand.act[i]);
        int rows = cone_rows(o), normal = cone_normal(o), summed = turns ? normal : rows;
        for (int j = 0; j < rows; j++)
            r[j] = rr[j] / h;
        for (int j = 0; j < summed; j++)
            P[j] += rr[j];
        if (turns)
            add_turned(w, w->hand.act[i], rr + normal, P + normal);
        if (w->hand.brake.on && w->hand.act[i]->c->fam->brakes) {
            r[rows] = w->hand.act[i]->rubs[false] / h;
            P[rows] += w->hand.act[i]->rubs[false];
        }
        if (known.gives && w->hand.act[i]->pulls)
            P[0] -= h * w->hand.act[i]->c->adhesion;
        if (!known.still && (o->d || !known.fixed)) /* those are never held by a friction bound */
            w->hand.act[i]->now.held = asks_for_rest(w->hand.act[i]) && sweep_held(w, i, h);
        bool bounds = w->contacts.bounds && t->bounds[at];
        if (bounds)
            t->closed[at] = at_bound(t, at, act_rate(w, i, w->v1), rr[0]);
        if (o->kind != CONE_UNILATERAL || rr[0] > 0 || bounds)
            continue;
        if (act_rate(w, i, w->v1) > t->tol_u[at]) {
            t->closed[at] = false;
            for (int j = 0; j < rows_kept(w, i); j++)
                r[j] = 0;
        }
    }
}

/* the end of the step is the state now */
static void state_ahead(sweep *w)
{
    SWAP(w->q, w->q1);
    SWAP(w->v, w->v1);
    if (w->s->past)
        samples_add(w->s->past, w->t1, w->q, w->v, w->s->base);
    if (!w->s->force_constant)
        SWAP(w->f, w->f1);
    if (!w->s->mass_constant)
        SWAP(w->M, w->M1);
    w->t = w->t1;
    w->fresh = false;
    sweep_sizes(w);
    sweep_sizes_known(w);
}

void sweep_accept(sweep *w, double h)
{
    if (w->policy.whole && (w->s->mass_constant || w->crowd.by_bodies))
        sweep_whole_account(w, h);
    else
        account(w, h);
    if (w->policy.fixed)
        sweep_fixed_accept(w, h);
    else {
        accept_contacts(w, h);
        state_ahead(w);
    }
    for (size_t f = 0; f < w->p->ncontact; f++)
        w->r->max_penetration = larger(deepest(w, f), w->r->max_penetration);
}
