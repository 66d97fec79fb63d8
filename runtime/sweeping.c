/* sweeping: Moreau's time-stepping for M q'' = f + reactions.  A step is smooth (theta scheme, closed contacts solved at the velocity at its end, positions
   put back on gap = 0), and it is cut where a gap closes; there the impact law acts.  At an instant Gauss's principle gives accelerations. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "backend.h"
#include "contact.h"
#include "many.h"
#include "sweeping.h"
#include "system.h"

enum { OPTION_H, OPTION_THETA, OPTION_TOLERANCE };
enum { MAX_HITS = 10 };                 /* impacts of one contact in a step; after that it stays closed for the rest of it */
enum { MAX_AGAIN = 24 };                /* repeated impacts of a step, all contacts taken together, that are followed one by one */

/* What a contact carries along the run. */
typedef struct track {
    contact *c;
    bool closed;                        /* in contact to the right of now */
    bool in;                            /* joins the closed ones for a whole step */
    bool met;                           /* below its tolerance at the end of the trial step */
    int hits;                           /* impacts in this step */
    double ahead;                       /* added to the rate of the gap: what is left of the gap over a whole step, or restitution */
    double tol_gap, tol_u, tol_slip;    /* what counts as 0: from the sizes of q and q' seen so far */
    double un;                          /* rate of the gap */
    double *H0, *S0, *Hm, *Sm, *s0m;    /* rows at the start of the step, and their mean over it, along which reactions act */
    double htm;
    double *G, *Gm;                     /* D^-1 [Hm; Sm]^T and M^-1 [H; S]^T, a row for each component */
    cone cone, cone_now;                /* of its problem when it is alone, over a step and at an instant, and the matrices of that */
    double *A, *Am;
    int64_t stamp_a, stamp_am;
    double cone_step;
    double *shock, base, e;             /* impulse of a shock; what Poisson's law gives back; restitution that counts */
    int64_t stamp, stamp_m;             /* which D and M they belong to */
    double *r;                          /* reaction of the last smooth step, as a force: start of the next */
    double *P;                          /* impulse since the step began, shocks left out */
    int row;                            /* in the problem at hand */
    double speed;
} track;

typedef struct { term when, reset; } event_terms;

typedef struct sweep {
    const program *p;
    const run_options *o;
    results *r;
    system_t *s;
    arena *a;
    int n;
    double h, theta, kept_theta, tol;
    double stiffness;                   /* of the penalty that multipliers are found around; 0: none */
    double t, *q, *v, *f;               /* now */
    double t1, *q1, *v1, *f1;           /* end of the trial step */
    double *M, *M1, *Mm;                /* masses now, at the end, their mean */
    double *acc, *qmax, *vmax;
    double *Fq, *Fv, *D; factor df;     /* Jacobians, M - theta h Fv - theta^2 h^2 Fq and its factors */
    const factor *dinv;                 /* of the trial step */
    double d_step;                      /* step df belongs to; NAN: none */
    int64_t stamp, stamp_m;             /* numbers of the D and M at hand */
    double *x1, *x2, *x3, *x4;          /* n */
    track *track; size_t ntrack;
    track **act; int nact;              /* contacts of the problem at hand */
    track **back; bool *who; int *perm; double *more;
    event_terms *events; bool *rising;
    contact_problem pr; contact_work *work;
    double *W, *b, *rr, *u; cone *cone; double *dir, *local;
    double step;                        /* size of the problem at hand: 1 for forces, the step for impulses, 0 for shocks */
    double kinetic0, wf, potential0;    /* energies at the start; work of all smooth forces */
    double dissipated;
    double top;                         /* largest energy seen */
    bool *fired, stopped, jolt;
    bool fresh;                         /* acc is that of now */
    int again;                          /* impacts in this step of contacts that had one in it */
    bool trial;                         /* a step that fails is taken in another way */
    bool whole;                         /* the trial step takes in what may close, with the rows of its start: it can always be solved */
    int patience;                       /* impacts followed one by one in a step */
    bool linear;                        /* a step needs no prediction */
    bool grown;                         /* sizes have grown: tolerances follow */
} sweep;

/* ---- failing ---- */
static bool fail(sweep *w, span at, const char *message)
{
    if (w->r->status != RUN_FAILED) { w->r->status = RUN_FAILED; w->r->message = message; w->r->where = at; }
    return false;
}

/* a failure that another way around was found for */
static void forget(sweep *w, double residual)
{
    w->r->status = RUN_OK;
    w->r->message = NULL;
    w->r->where = SPAN_NONE;
    w->r->residual = residual;
}

static const char *number(sweep *w, double x)
{
    text s = { .a = w->r->a };
    text_num(&s, x);
    return s.at;
}

static bool fail_contact(sweep *w, int i, double t)
{
    const contact *c = w->act[i]->c;
    char residual[32];
    snprintf(residual, sizeof residual, "%.2g", w->pr.residual);
    w->r->residual = fmax(w->r->residual, w->pr.residual);
    if (w->o->keep_going && !w->trial) return true;
    return fail(w, c->fam->f->at, arena_printf(w->r->a, "the contact problem was not solved at t = %s: constraint '%s', residual %s (tolerance %s)",
                                               number(w, t), contact_name(c, w->r->a), residual, number(w, w->tol)));
}

static bool factor_mass(sweep *w, const double *M, double t)
{
    int bad;
    if (system_factor(w->s, M, &bad)) return true;
    return fail(w, SPAN_NONE, arena_printf(w->r->a, "the mass matrix is not positive definite at t = %s, in the row of '%s'",
                                           number(w, t), dof_name(w->p, bad, w->r->a)));
}

/* ---- sizes and tolerances ---- */
static inline double larger(double a, double b) { return a > b ? a : b; }

static double weighted(const double *row, const double *size, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++) s += fabs(row[i]) * size[i];
    return s;
}

static void sizes(sweep *w)
{
    for (int i = 0; i < w->n; i++) {
        double v = fabs(w->v[i]), q = larger(fabs(w->q[i]), w->h * v);
        if (v > w->vmax[i]) { w->vmax[i] = v; w->grown = true; }
        if (q > w->qmax[i]) { w->qmax[i] = q; w->grown = true; }
    }
}

static void tolerances(sweep *w, track *k)
{
    const contact *c = k->c;
    k->tol_gap = 1e-12 * weighted(c->H, w->qmax, w->n);
    k->tol_u = 1e-12 * (weighted(c->H, w->vmax, w->n) + fabs(c->ht));
    k->tol_slip = 0;
    for (int i = 0; i < c->d; i++) k->tol_slip += 1e-12 * (weighted(c->S + (size_t)i * w->n, w->vmax, w->n) + fabs(c->s0[i]));
}

static double gap_rate(const sweep *w, const track *k, const double *v) { return vec_dot(k->c->H, v, w->n) + k->c->ht; }

static double slip_of(const sweep *w, const contact *c, const double *v, double *slip)
{
    double s = 0;
    for (int i = 0; i < c->d; i++) {
        slip[i] = vec_dot(c->S + (size_t)i * w->n, v, w->n) + c->s0[i];
        s += slip[i] * slip[i];
    }
    return sqrt(s);
}

static bool always(const contact *c) { return c->fam->f->relation != REL_GAP; }     /* held, or always closed */

/* ---- the problem at hand ---- */
/* Coefficient and bound in the units of the problem: shocks know no bounded forces. */
static void law_at(void *ud, int i, double speed, double *mu, double *radius)
{
    sweep *w = ud;
    contact *c = w->act[i]->c;
    const contact_family *f = c->fam->f;
    double k = f->mu_of_speed ? contact_mu(w->s, c, speed) : c->mu;
    bool tresca = f->friction == FRICTION_TRESCA, given = f->relation == REL_CLOSED;
    *mu = tresca || given ? 0 : k;
    *radius = tresca ? k * w->step : given ? k * fabs(c->normal) * w->step : k * w->act[i]->base;
}

static void put_cone(sweep *w, int i, int *row)
{
    track *k = w->act[i];
    const contact_family *f = k->c->fam->f;
    cone *c = &w->cone[i];
    *c = (cone){ .kind = f->relation == REL_GAP ? CONE_UNILATERAL : f->relation == REL_BILATERAL ? CONE_BILATERAL : CONE_GIVEN };
    c->d = k->c->d;
    c->row = k->row = *row;
    c->of_speed = f->mu_of_speed && c->d;
    c->speed = k->speed;
    if (c->d && !c->of_speed) law_at(w, i, 0, &c->mu, &c->radius);
    *row += cone_rows(c);
}

static const double *row_of(const contact *c, const double *H, const double *S, int n, int j)   /* component j of the problem */
{
    int k = c->fam->f->relation != REL_CLOSED;
    return j < k ? H : S + (size_t)(j - k) * n;
}

static int rows_of(const contact *c) { return (c->fam->f->relation != REL_CLOSED) + c->d; }

/* W = [H; S] G */
static void put_matrix(sweep *w, bool mass)
{
    int m = w->pr.m, n = w->n;
    for (int i = 0; i < w->nact; i++) {
        const contact *c = w->act[i]->c;
        for (int a = 0; a < rows_of(c); a++) {
            const double *row = row_of(c, c->H, c->S, n, a);
            double *W = w->W + (size_t)(w->act[i]->row + a) * m;
            for (int j = 0; j < w->nact; j++) {
                const track *l = w->act[j];
                const double *G = mass ? l->Gm : l->G;
                for (int b = 0; b < rows_of(l->c); b++) W[l->row + b] = vec_dot(row, G + (size_t)b * n, n);
            }
        }
    }
}

static bool put_cones(sweep *w)
{
    int row = 0;
    for (int i = 0; i < w->nact; i++) put_cone(w, i, &row);
    w->pr = (contact_problem){ .n = w->nact, .m = row, .cone = w->cone, .W = w->W, .b = w->b, .r = w->rr, .u = w->u, .law = law_at, .ud = w };
    return true;
}

/* What rounding leaves of the rates of the gaps, as a reaction. */
static double rounding(const sweep *w)
{
    double most = 0;
    for (int i = 0; i < w->nact; i++) {
        const contact *c = w->act[i]->c;
        double s = fabs(c->ht), a = w->W[(size_t)w->act[i]->row * w->pr.m + w->act[i]->row];
        for (int k = 0; k < w->n; k++) s += fabs(c->H[k] * w->v[k]);
        if (c->fam->f->relation != REL_CLOSED && a > 0) most = larger(most, s / a);
    }
    return 1e-14 * most;
}

static bool solve(sweep *w, double t)
{
    if (w->step != 1) w->pr.least = rounding(w) / w->tol;
    bool ok = w->stiffness == 0 ? contact_solve(&w->pr, w->work, w->tol) : contact_uzawa(&w->pr, w->work, w->tol, w->stiffness);
    results *r = w->r;
    r->solver_iterations += w->pr.sweeps;
    r->branch_choices += w->pr.choices;
    if (w->pr.n > 1 || !r->solver) r->solver = w->pr.solver;
    if (!ok) return fail_contact(w, w->pr.worst, t);
    if (w->pr.residual > r->residual) r->residual = w->pr.residual;
    return true;
}

/* x += G r; what cancels to rounding is 0, so that stick is exact */
static void add_reactions(const sweep *w, double *x, bool mass)
{
    for (int k = 0; k < w->n; k++) {
        double sum = x[k], size = fabs(x[k]), change = 0;
        for (int i = 0; i < w->nact; i++) {
            const track *l = w->act[i];
            const double *G = (mass ? l->Gm : l->G) + k;
            for (int b = 0, m = rows_of(l->c); b < m; b++) {
                double d = G[(size_t)b * w->n] * w->rr[l->row + b];
                change += d;
                size += fabs(d);
            }
        }
        sum += change;
        x[k] = change != 0 && fabs(sum) <= 1.5e-14 * size ? 0 : sum;
    }
}

static void reaction_columns(const sweep *w, const contact *c, const double *H, const double *S, const factor *f, double *G)
{
    for (int j = 0; j < rows_of(c); j++) factor_solve(f, row_of(c, H, S, w->n, j), G + (size_t)j * w->n);
}

/* ---- the smooth step ---- */
static void gather_closed(sweep *w)
{
    w->nact = 0;
    for (size_t i = 0; i < w->ntrack; i++) if (w->track[i].closed) w->act[w->nact++] = &w->track[i];
}

/* D = M - theta h (Fv + theta h Fq); rows of first-order equations are h (M - Fv - theta h Fq) */
static bool step_matrix(sweep *w, double h, const double *M)
{
    int n = w->n;
    double a = w->theta * h;
    if (!w->s->force_of_state && w->s->mass_constant) { w->dinv = &w->s->minv; return true; }
    if (w->s->jacobian_constant && w->s->mass_constant && w->d_step == h) return true;
    if (w->s->force_of_state) system_jacobian(w->s, w->Fq, w->Fv);
    else { memset(w->Fq, 0, (size_t)n * n * sizeof *w->Fq); memset(w->Fv, 0, (size_t)n * n * sizeof *w->Fv); }
    for (int i = 0; i < n; i++) {
        bool first = w->p->order && w->p->order[i] == 1;
        double k = first ? 1 : a, z = first ? h : 1;
        for (int j = 0; j < n; j++) {
            size_t at = (size_t)i * n + j;
            double m = w->s->diagonal ? (i == j ? M[i] : 0) : M[at];
            w->D[at] = z * (m - k * (w->Fv[at] + a * w->Fq[at]));
        }
    }
    w->d_step = h;
    w->stamp++;
    w->dinv = &w->df;
    if (factor_general(&w->df, w->D)) return true;
    return fail(w, SPAN_NONE, arena_printf(w->r->a, "the matrix of the step is singular at t = %s", number(w, w->t)));
}

/* h ((1 - theta) f0 + theta f1) - M (v1 - v0); for first-order rows h (f1 - M v1) */
static void step_defect(sweep *w, double h, const double *M, double *out)
{
    int n = w->n;
    double *dv = w->x2, *mdv = w->x3, th = w->theta;
    for (int i = 0; i < n; i++) dv[i] = w->v1[i] - w->v[i];
    mass_times(w->s, M, dv, mdv);
    for (int i = 0; i < n; i++) out[i] = h * ((1 - th) * w->f[i] + th * w->f1[i]) - mdv[i];
    if (!w->s->first_order) return;
    mass_times(w->s, M, w->v1, mdv);
    for (int i = 0; i < n; i++) if (w->p->order[i] == 1) out[i] = h * (w->f1[i] - mdv[i]);
}

static void step_positions(sweep *w, double h)
{
    double a = h * (1 - w->theta), b = h * w->theta;
    for (int i = 0; i < w->n; i++) w->q1[i] = w->q[i] + (a * w->v[i] + b * w->v1[i]);
}

/* mean of two rows; directions that were chosen anew are not mixed */
static void mean_row(const double *a, const double *b, double *m, int n)
{
    bool same = vec_dot(a, b, n) > 0.5 * vec_dot(b, b, n);
    for (int i = 0; i < n; i++) m[i] = same ? 0.5 * (a[i] + b[i]) : b[i];
}

/* rows of closed contacts at the start of the step */
static void rows_before(sweep *w)
{
    size_t n = (size_t)w->n;
    system_at(w->s, w->t, w->q, w->v);
    for (int i = 0; i < w->nact; i++) {
        track *k = w->act[i];
        contact *c = k->c;
        if (!c->fam->offset_fixed) contact_rows(w->s, c, w->M, false);
        k->htm = c->ht;
        for (int j = 0; j < c->d; j++) k->s0m[j] = c->s0[j];
        if (c->fam->f->mu_of_speed) k->speed = slip_of(w, c, w->v, w->x4);
        if (k->speed <= k->tol_slip) k->speed = 0;
        if (c->fam->rows_fixed) continue;
        memcpy(k->H0, c->H, n * sizeof(double));
        memcpy(k->S0, c->S, n * (size_t)c->d * sizeof(double));
    }
}

/* rows, laws and columns at the end of the step as it is now */
static void rows_after(sweep *w, const double *M)
{
    int n = w->n;
    for (int i = 0; i < w->nact; i++) {
        track *k = w->act[i];
        contact *c = k->c;
        bool fixed = c->fam->rows_fixed;
        if (!c->fam->still) {
            if (!w->whole) contact_rows(w->s, c, M, false);
            contact_laws(w->s, c, false);
        }
        if (!fixed && w->whole) {
            vec_copy(k->Hm, k->H0, n);
            vec_copy(k->Sm, k->S0, n * c->d);
        } else if (!fixed) {
            mean_row(k->H0, c->H, k->Hm, n);
            for (int j = 0; j < c->d; j++) mean_row(k->S0 + (size_t)j * n, c->S + (size_t)j * n, k->Sm + (size_t)j * n, n);
        }
        if (fixed && k->stamp == w->stamp) continue;
        reaction_columns(w, c, fixed ? c->H : k->Hm, fixed ? c->S : k->Sm, w->dinv, k->G);
        k->stamp = fixed ? w->stamp : -1;
    }
}

/* the block of a lone contact, kept while nothing in it changes */
static double *lone_matrix(sweep *w, track *k, bool mass)
{
    const contact *c = k->c;
    bool fixed = c->fam->rows_fixed && (!mass || w->s->mass_constant);
    int64_t *stamp = mass ? &k->stamp_am : &k->stamp_a, now = mass ? w->stamp_m : w->stamp;
    double *A = mass ? k->Am : k->A;
    if (fixed && *stamp == now) return A;
    const double *G = mass ? k->Gm : k->G;
    int m = rows_of(c), n = w->n;
    for (int a = 0; a < m; a++)
        for (int b = 0; b < m; b++) A[a * m + b] = vec_dot(row_of(c, c->H, c->S, n, a), G + (size_t)b * n, n);
    *stamp = fixed ? now : -1;
    return A;
}

/* the problem of a lone contact in closed form; false: it has to go the long way */
static bool solve_alone(sweep *w, bool mass, const cone *c, double *x)
{
    const track *k = w->act[0];
    const double *A = mass ? k->Am : k->A;
    if (!w->r->solver) w->r->solver = "closed form";
    if (cone_normal(c) && !(A[0] > 0)) return false;
    if (!cone_solve(c, A, cone_rows(c), w->b, w->rr, w->local)) return false;
    add_reactions(w, x, mass);
    return true;
}

static void contact_velocity(const sweep *w, const track *k, const double *v)
{
    const contact *c = k->c;
    double *b = w->b + k->row;
    int n = w->n;
    if (c->fam->f->relation != REL_CLOSED) *b++ = vec_dot(c->H, v, n) + c->ht + k->ahead;
    for (int j = 0; j < c->d; j++) *b++ = vec_dot(c->S + (size_t)j * n, v, n) + c->s0[j];
}

static bool step_alone(sweep *w, double h, double *v)
{
    track *k = w->act[0];
    int row = 0;
    w->step = h;
    if (!k->c->fam->still || k->cone.d != k->c->d || k->cone_step != h) {
        put_cone(w, 0, &row);
        k->cone = w->cone[0];
        k->cone_step = h;
    }
    if (k->cone.of_speed) return false;
    k->row = 0;
    lone_matrix(w, k, false);
    contact_velocity(w, k, v);
    return solve_alone(w, false, &k->cone, v);
}

/* impulses that keep the velocity at the end admissible */
static bool step_contacts(sweep *w, double h, double *v)
{
    if (w->nact == 1 && w->stiffness == 0 && step_alone(w, h, v)) return true;
    w->step = h;
    put_cones(w);
    put_matrix(w, false);
    for (int i = 0; i < w->nact; i++) {
        const track *k = w->act[i];
        contact_velocity(w, k, v);
        for (int j = 0; j < rows_of(k->c); j++) w->rr[k->row + j] = h * k->r[j];
    }
    if (!solve(w, w->t1)) return false;
    add_reactions(w, v, false);
    return true;
}

/* A linear force at the end of the step follows without another evaluation. */
static void force_follows(sweep *w, const double *q, const double *v)
{
    int n = w->n;
    for (int j = 0; j < n; j++) { w->x2[j] = w->q1[j] - q[j]; w->x3[j] = w->v1[j] - v[j]; }
    for (int i = 0; i < n; i++)
        w->f1[i] += vec_dot(w->Fq + (size_t)i * n, w->x2, n) + vec_dot(w->Fv + (size_t)i * n, w->x3, n);
}

/* masses at the end of the step, and the mean that acts over it */
static bool step_masses(sweep *w, const double **M)
{
    system_t *s = w->s;
    *M = w->M;
    if (s->mass_constant) return true;
    system_mass(s, w->M1);
    size_t n = (size_t)w->n, all = s->diagonal ? n : n * n;
    for (size_t i = 0; i < all; i++) w->Mm[i] = 0.5 * (w->M[i] + w->M1[i]);
    *M = w->Mm;
    return factor_mass(w, w->M1, w->t1);
}

static bool put_back(sweep *w, bool *moved);

/* positions corrected; forces and masses belong to what came out */
static bool step_end(sweep *w, bool known)
{
    bool moved = false;
    if (w->nact && !put_back(w, &moved)) return false;
    if (known && !moved) return true;
    system_at(w->s, w->t1, w->q1, w->v1);
    if (!w->s->force_constant) system_force(w->s, w->f1);
    if (w->s->mass_constant) return true;
    system_mass(w->s, w->M1);
    return factor_mass(w, w->M1, w->t1);
}

/* One trial step from now: q1, v1, f1 and the impulses in rr.  Newton on the defect with the contact problem inside; one round when all is linear. */
static bool smooth_step(sweep *w, double h)
{
    system_t *s = w->s;
    int n = w->n, most = 40;
    bool curved = false, linear, known = false;
    double *dv = w->x1, *v = w->x4, change = 0, size = 0, before = INFINITY;
    const double *M = w->M;
    w->t1 = w->t + h;
    rows_before(w);
    for (int i = 0; i < w->nact; i++) curved |= !w->whole && !w->act[i]->c->fam->rows_fixed;
    linear = s->mass_constant && !curved && (!s->force_of_state || s->jacobian_constant);
    vec_copy(w->v1, w->v, n);
    if (!linear) vec_axpy(w->v1, h, w->acc, n);
    for (int it = 0; ; it++) {
        step_positions(w, h);
        system_at(s, w->t1, w->q1, w->v1);
        if (!step_masses(w, &M)) return false;
        if (!s->force_constant) system_force(s, w->f1);
        else if (it == 0) vec_copy(w->f1, w->f, n);
        if (it == 0 && !step_matrix(w, h, M)) return false;
        rows_after(w, s->mass_constant ? w->M : w->M1);
        step_defect(w, h, M, w->x2);
        factor_solve(w->dinv, w->x2, dv);
        for (int i = 0; i < n; i++) v[i] = w->v1[i] + dv[i];
        if (w->nact && !step_contacts(w, h, v)) return false;
        change = size = 0;
        for (int i = 0; i < n; i++) {
            change = larger(change, fabs(v[i] - w->v1[i]));
            size = larger(size, larger(fabs(v[i]), w->vmax[i]));
        }
        if (linear) {
            double *keep = w->x1;
            vec_copy(keep, w->v1, n);
            vec_copy(w->v1, v, n);
            if (s->force_of_state) {
                vec_copy(w->x4, w->q1, n);
                step_positions(w, h);
                force_follows(w, w->x4, keep);
            } else step_positions(w, h);
            known = true;
            break;
        }
        vec_copy(w->v1, v, n);
        if (!isfinite(change)) break;
        if (change <= 1e-14 * size || (it > 4 && change <= 1e-12 * size && change >= before)) break;
        if (it == most) {
            if (change <= 1e-9 * size) break;
            return fail(w, SPAN_NONE, arena_printf(w->r->a, "the step at t = %s did not converge; take a smaller h", number(w, w->t)));
        }
        before = change;
    }
    if (!known) step_positions(w, h);
    if (!isfinite(change)) return fail(w, SPAN_NONE, arena_printf(w->r->a, "the motion is no longer finite at t = %s", number(w, w->t1)));
    return step_end(w, known);
}

/* Gaps of all contacts at the end of the trial step; met: those that were crossed. */
static bool look_ahead(sweep *w)
{
    bool any = false;
    system_at(w->s, w->t1, w->q1, w->v1);
    for (size_t i = 0; i < w->ntrack; i++) {
        track *k = &w->track[i];
        k->met = false;
        if (k->closed) continue;                        /* known since positions were corrected */
        contact_gap(w->s, k->c);
        k->met = !(k->c->gap >= -k->tol_gap);
        any |= k->met;
    }
    return any;
}

/* Closed contacts are put back on gap = 0: Newton in the kinetic metric, on those that push or hold. */
static int off_surface(sweep *w, double *gap)
{
    int m = 0;
    bool off = false;
    system_at(w->s, w->t1, w->q1, w->v1);
    for (int i = 0; i < w->nact; i++) {
        track *k = w->act[i];
        const contact_family *f = k->c->fam->f;
        if (f->relation == REL_CLOSED) continue;
        double g = contact_gap(w->s, k->c);
        if (f->relation == REL_GAP && g > 0 && (!(w->rr[k->row] > 0) || k->ahead < 0)) continue;
        off |= fabs(g) > 0.25 * k->tol_gap;
        gap[m] = -g;
        w->back[m++] = k;
    }
    return off ? m : 0;
}

static bool put_back(sweep *w, bool *moved)
{
    int n = w->n, m;
    double *gap = w->b, *A = w->W, *l = w->u;           /* free again: the problem is solved, only rr is still needed */
    for (int it = 0; it < 10 && (m = off_surface(w, gap)) > 0; it++) {
        *moved = true;
        for (int i = 0; i < m; i++) {
            contact *c = w->back[i]->c;
            if (!c->fam->rows_fixed) contact_rows(w->s, c, w->s->mass_constant ? w->M : w->M1, false);
            factor_solve(&w->s->minv, c->H, w->back[i]->Gm);
            w->back[i]->stamp_m = -1;
        }
        for (int i = 0; i < m; i++)
            for (int j = 0; j < m; j++) A[(size_t)i * m + j] = vec_dot(w->back[i]->c->H, w->back[j]->Gm, n);
        sym_shortest(A, gap, l, m, w->more, w->perm);
        for (int i = 0; i < m; i++) vec_axpy(w->q1, l[i], w->back[i]->Gm, n);
    }
    return true;
}

/* ---- where a gap closes within the step ---- */
/* first estimate of a crossing by Newton from here, over the contacts in question */
static double first_crossing(sweep *w, double h, const bool *who)
{
    double best = INFINITY;
    for (size_t i = 0; i < w->ntrack; i++) {
        track *k = &w->track[i];
        if (!who[i]) continue;
        if (!k->c->fam->offset_fixed) contact_rows(w->s, k->c, w->s->mass_constant ? w->M : w->M1, false);
        double un = gap_rate(w, k, w->v1), at = h - k->c->gap / un;
        if (un < 0 && at < best) best = at;
    }
    return best;
}

/* touching: at its tolerance, and coming */
static bool touches(sweep *w, const bool *who)
{
    for (size_t i = 0; i < w->ntrack; i++)
        if (who[i] && w->track[i].c->gap <= w->track[i].tol_gap && gap_rate(w, &w->track[i], w->v1) <= w->track[i].tol_u) return true;
    return false;
}

/* The step is cut down to the first crossing: on return the trial step has that size, no gap is below its tolerance and one is at it. */
static bool locate(sweep *w, double *h)
{
    double lo = 0, hi = *h, x = hi;
    bool *who = w->who;
    for (size_t i = 0; i < w->ntrack; i++) who[i] = w->track[i].met;
    for (int it = 0; it < 120; it++) {
        double next = first_crossing(w, x, who);
        if (!(next > lo && next < hi)) next = 0.5 * (lo + hi);
        if (it > 20 && it % 2) next = 0.5 * (lo + hi);
        /* no time left between: it closes here */
        if (hi - lo <= 4e-16 * (fabs(w->t) + hi)) next = lo > 0 ? lo : hi;
        x = *h = next;
        if (!smooth_step(w, x)) return false;
        if (look_ahead(w)) {
            if (x == hi) return true;
            hi = x;
            for (size_t i = 0; i < w->ntrack; i++) who[i] = w->track[i].met;
        } else {
            if (touches(w, who) || x == lo) return true;
            lo = x;
        }
    }
    return true;
}

/* ---- shocks ---- */
static void note_impact(sweep *w, const track *k, double pre, double post, double impulse)
{
    size_t f = (size_t)(k->c->fam - w->s->family);
    *vec_push(w->r->a, &w->r->contact[f].impacts) = (impact){ w->t, fmin(pre, 0), larger(post, 0), impulse, (int32_t)k->c->member };
}

static void mass_columns(sweep *w)
{
    system_at(w->s, w->t, w->q, w->v);
    for (int i = 0; i < w->nact; i++) {
        track *k = w->act[i];
        contact *c = k->c;
        if (!c->fam->offset_fixed) contact_rows(w->s, c, w->M, false);
        if (!c->fam->still) contact_laws(w->s, c, false);
        bool fixed = c->fam->rows_fixed && w->s->mass_constant;
        if (fixed && k->stamp_m == w->stamp_m) continue;
        reaction_columns(w, c, c->H, c->S, &w->s->minv, k->Gm);
        k->stamp_m = fixed ? w->stamp_m : -1;
    }
}

/* one phase: e is the share of the rate before that is asked back (Newton), 0 for compression and restitution of Poisson's law */
static bool shock_phase(sweep *w, bool newton)
{
    int n = w->n;
    for (int i = 0; i < w->nact; i++) {
        const track *k = w->act[i];
        const contact *c = k->c;
        int a = 0, has_normal = c->fam->f->relation != REL_CLOSED;
        double e = newton && c->fam->f->impact == IMPACT_NEWTON && c->fam->f->relation == REL_GAP ? k->e : 0;
        if (has_normal) w->b[k->row + a++] = gap_rate(w, k, w->v) + (k->un < -k->tol_u ? e * k->un : 0);
        for (int j = 0; j < c->d; j++) w->b[k->row + a++] = vec_dot(c->S + (size_t)j * n, w->v, n) + c->s0[j];
        for (int j = 0; j < a; j++) w->rr[k->row + j] = 0;
    }
    if (!solve(w, w->t)) return false;
    add_reactions(w, w->v, true);
    for (int i = 0; i < w->nact; i++)
        for (int j = 0; j < rows_of(w->act[i]->c); j++) w->act[i]->shock[j] += w->rr[w->act[i]->row + j];
    return true;
}

/* Restitution: the share e of the impulse of compression is given back, friction may use it too. */
static bool shock_poisson(sweep *w)
{
    bool any = false;
    for (int i = 0; i < w->nact; i++) {
        track *k = w->act[i];
        k->base = 0;
        if (k->c->fam->f->impact != IMPACT_POISSON || k->c->fam->f->relation != REL_GAP || !(k->un < -k->tol_u)) continue;
        k->base = k->e * k->shock[0];
        any |= k->base > 0;
    }
    if (!any) return true;
    memset(w->rr, 0, (size_t)w->pr.m * sizeof *w->rr);
    for (int i = 0; i < w->nact; i++) if (w->act[i]->base > 0) w->rr[w->act[i]->row] = w->act[i]->base;
    add_reactions(w, w->v, true);
    put_cones(w);
    put_matrix(w, true);
    bool ok = shock_phase(w, true);
    for (int i = 0; i < w->nact; i++) { w->act[i]->shock[0] += w->act[i]->base; w->act[i]->base = 0; }
    return ok;
}

/* Impulses of this shock: work by the mean of the rates before and after (x1 holds q' before). */
static void shock_account(sweep *w)
{
    int n = w->n;
    double *mean = w->x2, most = 0;
    for (int i = 0; i < n; i++) mean[i] = 0.5 * (w->x1[i] + w->v[i]);
    for (int i = 0; i < w->nact; i++) most = larger(most, fabs(w->act[i]->shock[0]));
    for (int i = 0; i < w->nact; i++) {
        track *k = w->act[i];
        contact *c = k->c;
        int a = c->fam->f->relation != REL_CLOSED;
        for (int j = 0; j < rows_of(c); j++) {
            double still = j < a ? c->ht : c->s0[j - a], rate = vec_dot(row_of(c, c->H, c->S, n, j), mean, n);
            w->dissipated -= k->shock[j] * (rate + still);
            w->wf -= k->shock[j] * still;
        }
        if (c->fam->f->relation != REL_GAP) continue;
        double post = gap_rate(w, k, w->v);
        if (k->shock[0] > 1e-12 * most) {
            note_impact(w, k, k->un, post, k->shock[0]);
            w->again += k->hits++ > 0;
        }
        bool was = k->closed;
        k->closed = post <= k->tol_u || (k->shock[0] > 0 && !(k->un < -k->tol_u && k->e > 0));
        if (k->closed && !was) w->r->contact[c->fam - w->s->family].last_open[c->member] = w->t;
    }
}

static bool rates_after_jump(sweep *w);

static bool shock(sweep *w)
{
    w->nact = 0;
    for (size_t i = 0; i < w->ntrack; i++) {
        track *k = &w->track[i];
        if (k->closed || k->met) w->act[w->nact++] = k;
    }
    mass_columns(w);
    for (int i = 0; i < w->nact; i++) {
        track *k = w->act[i];
        k->e = k->hits < MAX_HITS ? k->c->e : 0;
        k->un = gap_rate(w, k, w->v);
        if (k->c->fam->d) k->speed = slip_of(w, k->c, w->v, w->x4);
        memset(k->shock, 0, (size_t)rows_of(k->c) * sizeof *k->shock);
    }
    memcpy(w->x1, w->v, (size_t)w->n * sizeof *w->v);
    w->step = 0;
    put_cones(w);
    put_matrix(w, true);
    if (!shock_phase(w, true) || !shock_poisson(w)) return false;
    shock_account(w);
    if (w->s->past) samples_add(w->s->past, w->t, w->q, w->v);
    return rates_after_jump(w);
}

/* Contacts at their tolerance join the closed ones, with a shock when they come at a speed. */
static bool meet(sweep *w)
{
    bool hit = false, any = false;
    for (size_t i = 0; i < w->ntrack; i++) {
        track *k = &w->track[i];
        contact *c = k->c;
        k->met = false;
        if (k->closed || c->gap > k->tol_gap) continue;
        system_at(w->s, w->t, w->q, w->v);
        if (!c->fam->offset_fixed) { contact_rows(w->s, c, w->M, false); tolerances(w, k); }
        k->un = gap_rate(w, k, w->v);
        if (k->un > k->tol_u) continue;
        k->met = any = true;
        hit |= k->un < -k->tol_u;
    }
    if (hit) return shock(w);
    for (size_t i = 0; any && i < w->ntrack; i++) {
        track *k = &w->track[i];
        if (!k->met) continue;
        k->closed = true;
        w->r->contact[k->c->fam - w->s->family].last_open[k->c->member] = w->t;
    }
    return true;
}

/* ---- Gauss's principle: accelerations to the right of now, and the forces that go with them in rr ---- */
static void gauss_contact(sweep *w, int i)
{
    track *k = w->act[i];
    contact *c = k->c;
    cone *o = &w->cone[i];
    double *bias = w->x2, *dir = w->dir + k->row, speed, *b = w->b + k->row;
    int n = w->n;
    if (c->fam->f->relation != REL_CLOSED) *b++ = vec_dot(c->H, w->acc, n) + contact_bias(w->s, c);
    if (c->d == 0) return;
    if (c->fam->slip_bias.k) contact_slip_bias(w->s, c, bias);
    else for (int j = 0; j < c->d; j++) bias[j] = 0;
    for (int j = 0; j < c->d; j++) *b++ = vec_dot(c->S + (size_t)j * n, w->acc, n) + bias[j];
    speed = slip_of(w, c, w->v, dir);
    if (speed <= k->tol_slip) speed = 0;
    for (int j = 0; speed > 0 && j < c->d; j++) dir[j] /= speed;
    if (speed > 0) o->dir = dir;
    /* the coefficient is that of the speed now; the problem's velocities are accelerations */
    if (o->of_speed) law_at(w, i, speed, &o->mu, &o->radius);
    o->of_speed = false;
}

/* columns and cone of a lone contact are kept when nothing in them changes */
static bool gauss_alone(sweep *w)
{
    track *k = w->act[0];
    int row = 0;
    bool known = k->c->fam->still && w->s->mass_constant && k->stamp_am == w->stamp_m && k->stamp_m == w->stamp_m;
    if (!known) mass_columns(w);
    else system_at(w->s, w->t, w->q, w->v);
    if (!known || k->cone_now.d != k->c->d) { put_cone(w, 0, &row); k->cone_now = w->cone[0]; }
    w->cone[0] = k->cone_now;
    k->row = 0;
    gauss_contact(w, 0);
    lone_matrix(w, k, true);
    return solve_alone(w, true, w->cone, w->acc);
}

static bool gauss(sweep *w)
{
    factor_solve(&w->s->minv, w->f, w->acc);
    gather_closed(w);
    if (w->nact == 0) return true;
    w->step = 1;
    if (w->nact == 1 && w->stiffness == 0 && gauss_alone(w)) return true;
    mass_columns(w);
    put_cones(w);
    for (int i = 0; i < w->nact; i++) gauss_contact(w, i);
    put_matrix(w, true);
    for (int i = 0; i < w->nact; i++)
        for (int j = 0; j < rows_of(w->act[i]->c); j++) w->rr[w->act[i]->row + j] = w->act[i]->r[j];
    if (!solve(w, w->t)) return false;
    add_reactions(w, w->acc, true);
    return true;
}

/* ---- going on ---- */
/* rates of first-order dofs follow from the state; forces are those of it */
static bool rates_after_jump(sweep *w)
{
    system_at(w->s, w->t, w->q, w->v);
    if (!w->s->force_constant || w->t == 0) system_force(w->s, w->f);
    if (w->s->first_order) {
        factor_solve(&w->s->minv, w->f, w->x1);
        for (int i = 0; i < w->n; i++) if (w->p->order[i] == 1) w->v[i] = w->x1[i];
        system_force(w->s, w->f);
    }
    w->fresh = false;
    return true;
}

/* Work over the smooth step: v1 - v0 times the mean rate, so that the balance closes as the scheme does. */
static void account(sweep *w, double h)
{
    int n = w->n;
    double *mean = w->x1, th = w->theta, p = 0;
    for (int i = 0; i < n; i++) {
        mean[i] = 0.5 * (w->v[i] + w->v1[i]);
        if (!w->s->first_order || w->p->order[i] == 2) p += mean[i] * ((1 - th) * w->f[i] + th * w->f1[i]);
    }
    w->wf += h * p;
    if (!w->s->mass_constant) {
        /* d(v.Mv/2) = v.M dv + v.dM v/2: the second part is the work of inertia forces in f, taken back */
        size_t all = (size_t)n * (w->s->diagonal ? 1 : (size_t)n);
        for (size_t i = 0; i < all; i++) w->Mm[i] = w->M1[i] - w->M[i];
        w->wf += 0.25 * (mass_norm2(w->s, w->Mm, w->v) + mass_norm2(w->s, w->Mm, w->v1));
    }
    for (int i = 0; i < w->nact; i++) {
        const track *k = w->act[i];
        const contact *c = k->c;
        bool fixed = c->fam->rows_fixed;
        int a = c->fam->f->relation != REL_CLOSED;
        for (int j = 0; j < rows_of(c); j++) {
            double P = w->rr[k->row + j], still = 0.5 * (j < a ? k->htm + c->ht : k->s0m[j - a] + c->s0[j - a]);
            if (P == 0) continue;
            double rate = vec_dot(row_of(c, fixed ? c->H : k->Hm, fixed ? c->S : k->Sm, n, j), mean, n);
            w->dissipated -= P * (rate + still);
            w->wf -= P * still;
        }
    }
}

#define SWAP(a, b) do { double *swap_ = (a); (a) = (b); (b) = swap_; } while (0)

static void accept(sweep *w, double h)
{
    account(w, h);
    for (int i = 0; i < w->nact; i++) {
        track *k = w->act[i];
        for (int j = 0; j < rows_of(k->c); j++) {
            k->P[j] += w->rr[k->row + j];
            k->r[j] = w->rr[k->row + j] / h;
        }
        if (always(k->c) || w->rr[k->row] > 0) continue;
        if (gap_rate(w, k, w->v1) > k->tol_u) {
            k->closed = false;
            for (int j = 0; j < rows_of(k->c); j++) k->r[j] = 0;
        }
    }
    SWAP(w->q, w->q1);
    SWAP(w->v, w->v1);
    if (w->s->past) samples_add(w->s->past, w->t1, w->q, w->v);
    if (!w->s->force_constant) SWAP(w->f, w->f1);
    if (!w->s->mass_constant) SWAP(w->M, w->M1);
    w->t = w->t1;
    w->fresh = false;
    sizes(w);
    for (size_t i = 0; i < w->ntrack; i++) {
        track *k = &w->track[i];
        const contact_family *f = k->c->fam->f;
        if (w->grown) tolerances(w, k);
        if (f->relation == REL_CLOSED) continue;
        double depth = f->relation == REL_BILATERAL ? fabs(k->c->gap) : -k->c->gap;
        if (depth > w->r->max_penetration) w->r->max_penetration = depth;
    }
    w->grown = false;
}

/* ---- events of the model ---- */
static bool event_true(sweep *w, size_t i, const int32_t *index)
{
    const kernel *k = w->events[i].when.k;
    kernel_run(k, &w->s->in, index, w->events[i].when.reg);
    return w->events[i].when.reg[k->tape.out[0]] != 0;
}

/* does a condition hold at the end of the trial step that did not before? */
static bool events_rise(sweep *w, bool mark)
{
    bool any = false;
    size_t at = 0;
    system_at(w->s, w->t1, w->q1, w->v1);
    w->s->in.from[IN_PRE] = w->v1;
    for (size_t i = 0; i < w->p->nevent; i++) {
        const index_set *over = &w->p->event[i].over;
        int32_t index[MAX_INDEX] = { 0 };
        for (bool more = index_first(over, index); more; more = index_next(over, index), at++) {
            bool now = event_true(w, i, index);
            if (now && !w->fired[at]) any = true;
            if (mark) { w->rising[at] = now && !w->fired[at]; w->fired[at] = now; }
        }
    }
    return any;
}

static bool locate_event(sweep *w, double *h)
{
    double lo = 0, hi = *h;
    for (int it = 0; it < 60 && hi - lo > 2e-16 * (fabs(w->t) + hi); it++) {
        double mid = 0.5 * (lo + hi);
        if (!smooth_step(w, mid)) return false;
        if (events_rise(w, false)) hi = mid; else lo = mid;
    }
    *h = hi;
    if (!smooth_step(w, hi)) return false;
    look_ahead(w);
    return true;
}

static bool survey(sweep *w);

/* resets of the events that rose, all from the values before */
static bool fire(sweep *w)
{
    size_t at = 0;
    bool reset = false;
    memcpy(w->q1, w->q, (size_t)w->n * sizeof *w->q);
    memcpy(w->v1, w->v, (size_t)w->n * sizeof *w->v);
    system_at(w->s, w->t, w->q, w->v);
    for (size_t i = 0; i < w->p->nevent; i++) {
        const event_rule *e = &w->p->event[i];
        const term *t = &w->events[i].reset;
        int32_t index[MAX_INDEX] = { 0 };
        for (bool more = index_first(&e->over, index); more; more = index_next(&e->over, index), at++) {
            if (!w->rising[at]) continue;
            if (e->stop) w->stopped = true;
            if (!t->k) continue;
            kernel_run(t->k, &w->s->in, index, t->reg);
            for (uint32_t j = 0; j < t->k->tape.nout; j++)
                (e->reset_rate[j] ? w->v1 : w->q1)[slot_at(&t->k->row[j], index, t->k->over.n)] = t->reg[t->k->tape.out[j]];
            reset = true;
        }
    }
    if (!reset) return true;
    SWAP(w->q, w->q1);
    SWAP(w->v, w->v1);
    if (w->s->past) samples_add(w->s->past, w->t, w->q, w->v);
    return survey(w) && rates_after_jump(w);
}

/* ---- too many impacts to follow one by one: the rest of the step at once ---- */
/* What may close joins: gap/h + u_n >= 0, or restitution where the surface is met in the step.  All others keep off. */
static void whole_join(sweep *w, double h, bool overlaps)
{
    system_at(w->s, w->t, w->q, w->v);
    for (size_t i = 0; i < w->ntrack; i++) {
        track *k = &w->track[i];
        contact *c = k->c;
        if (k->closed || k->in || (overlaps && !k->met)) continue;
        contact_gap(w->s, c);
        if (!c->fam->offset_fixed) contact_rows(w->s, c, w->M, false);
        double reach = fabs(c->ht);
        for (int j = 0; j < w->n; j++) reach += fabs(c->H[j]) * (fabs(w->v[j]) + h * fabs(w->acc[j]));
        if (!overlaps && c->gap > h * reach + k->tol_gap) continue;
        k->in = true;
        k->un = gap_rate(w, k, w->v);
        k->ahead = larger(c->gap, 0) / h;
        if (k->hits < 2 && c->e > 0 && c->gap + h * k->un <= 0) k->ahead = c->e * k->un;
    }
}

static void whole_gather(sweep *w)
{
    w->nact = 0;
    for (size_t i = 0; i < w->ntrack; i++) if (w->track[i].closed || w->track[i].in) w->act[w->nact++] = &w->track[i];
}

static void whole_note(sweep *w)
{
    double t = w->t;
    w->t = w->t1;
    for (int i = 0; i < w->nact; i++) {
        const track *k = w->act[i];
        if (k->in && k->un < -k->tol_u && w->rr[k->row] > 0) note_impact(w, k, k->un, gap_rate(w, k, w->v1), w->rr[k->row]);
    }
    w->t = t;
}

static bool whole_step(sweep *w, double h)
{
    for (size_t i = 0; i < w->ntrack; i++) w->track[i].in = false;
    w->whole = true;
    w->kept_theta = w->theta;
    w->theta = 1;
    w->d_step = NAN;
    for (size_t round = 0; round <= w->ntrack; round++) {
        whole_join(w, h, round > 0);
        whole_gather(w);
        if (!smooth_step(w, h)) return false;
        if (!look_ahead(w)) break;
        bool more = false;
        for (size_t i = 0; i < w->ntrack; i++) more |= w->track[i].met && !w->track[i].in;
        if (!more) break;
    }
    whole_note(w);
    return true;
}

static void whole_end(sweep *w)
{
    for (size_t i = 0; i < w->ntrack; i++) w->track[i].ahead = 0, w->track[i].in = false;
    w->whole = false;
    w->theta = w->kept_theta;
    w->d_step = NAN;
}

/* ---- one step of the run ---- */
/* Up to the next impact or event, or to the end.  False: the trial step could not be solved; what failed is forgotten. */
static bool follow(sweep *w, double *h, bool *rise)
{
    results *r = w->r;
    double residual = r->residual;
    gather_closed(w);
    w->trial = true;
    bool ok = (w->fresh || w->linear || gauss(w)) && smooth_step(w, *h) && (!look_ahead(w) || locate(w, h));
    *rise = ok && w->p->nevent && events_rise(w, false);
    ok = ok && (!*rise || locate_event(w, h));
    w->trial = false;
    if (!ok) forget(w, residual);
    return ok;
}

static bool advance(sweep *w, double end)
{
    for (size_t i = 0; i < w->ntrack; i++) {
        track *k = &w->track[i];
        k->hits = 0;
        for (int j = 0; j < rows_of(k->c); j++) k->P[j] = 0;
    }
    bool was = false;
    int full = 64 + (int)w->ntrack / 2;
    w->again = 0;
    for (int sub = 0; ; sub++) {
        if (!meet(w)) return false;
        double h = end - w->t;
        if (h <= 4e-16 * fabs(end)) break;
        /* whole steps have the same size to the last bit, so that what belongs to it is kept */
        if (fabs(h - w->h) <= 1e-9 * w->h) h = w->h;
        bool rise = false, crowd = w->again > w->patience || sub > full || (sub > w->patience && w->patience < MAX_AGAIN) || !follow(w, &h, &rise);
        if (crowd) {
            h = end - w->t;
            if (!whole_step(w, h)) return false;
            rise = w->p->nevent && events_rise(w, false);
        }
        if (w->p->nevent) events_rise(w, true);
        accept(w, h);
        if (crowd) whole_end(w);
        was |= crowd;
        if (rise && !fire(w)) return false;
        if (w->stopped || w->t >= end) break;
    }
    /* piles that come to rest have crowds of impacts at every step: the next is asked less long */
    if (was) w->patience = w->patience / 4 > 1 ? w->patience / 4 : 1;
    else if (w->patience < MAX_AGAIN) w->patience++;
    return true;
}

/* ---- samples ---- */
static void show(const contact *c, const double *map, const double *x, double scale, double *out)
{
    int shown = c->fam->shown;
    if (shown == 1 && c->d > 1 && !c->fam->f->slip_given) { out[0] = scale * sqrt(vec_dot(x, x, c->d)); return; }
    for (int i = 0; i < shown; i++) out[i] = scale * vec_dot(map + (size_t)i * c->d, x, c->d);
}

static void sample_contacts(sweep *w, int64_t at, double over, bool instant)
{
    for (size_t i = 0; i < w->ntrack; i++) {
        track *k = &w->track[i];
        contact *c = k->c;
        contact_result *r = &w->r->contact[c->fam - w->s->family];
        size_t m = (size_t)(at * r->members + c->member), ns = (size_t)r->nslip;
        const double *P = instant ? k->r : k->P;
        int a = c->fam->f->relation != REL_CLOSED;
        double slip = 0, f = instant ? 1 : over;
        r->gap[m] = c->gap;
        r->rn[m] = a ? f * P[0] : c->normal;
        if (c->fam->d) {
            if (!k->closed && !c->fam->offset_fixed) {
                system_at(w->s, w->t, w->q, w->v);
                contact_rows(w->s, c, w->M, false);
            }
            slip = slip_of(w, c, w->v, w->x4);
            show(c, c->show, w->x4, 1, r->slip + m * ns);
            show(c, c->show_force, P + a, f, r->rt + m * ns);
        }
        r->status[m] = !k->closed ? STATUS_OPEN : c->fam->d && slip <= k->tol_slip ? STATUS_STICK : STATUS_SLIP;
    }
}

static void sample_energy(sweep *w, int64_t at)
{
    results *r = w->r;
    double kin = 0.5 * mass_norm2(w->s, w->M, w->v), pot = 0, shown = kin;
    if (w->s->first_order)          /* masses of first-order equations carry no energy */
        for (int i = 0; i < w->n; i++) if (w->p->order[i] == 1) { kin -= 0.5 * w->v[i] * w->f[i]; shown = kin; }
    if (w->s->kinetic.n || w->s->potential.n) {
        system_at(w->s, w->t, w->q, w->v);
        if (w->s->kinetic.n) shown = system_sum(w->s, &w->s->kinetic);
        if (w->s->potential.n) pot = system_sum(w->s, &w->s->potential);
    }
    if (at == 0) { w->kinetic0 = kin; w->potential0 = pot; w->top = fabs(kin); }
    w->top = larger(w->top, larger(fabs(kin), larger(fabs(w->wf), fabs(w->dissipated))));
    double defect = fabs(kin - w->kinetic0 - w->wf + w->dissipated);
    if (defect > 0 && defect / w->top > r->power_balance) r->power_balance = defect / w->top;
    r->energy[at] = shown + pot;
    r->dissipated[at] = w->dissipated;
    r->work[at] = w->wf + (pot - w->potential0);
}

/* over: 1 / size of the step; instant: forces are those of Gauss's principle */
static bool sample(sweep *w, double over, bool instant)
{
    double residual = w->r->residual;
    w->trial = !instant;
    w->fresh = gauss(w);
    w->trial = false;
    if (!w->fresh && instant) return false;
    if (!w->fresh) {                    /* the mean over the step instead */
        forget(w, residual);
        for (int i = 0; i < w->n; i++) w->acc[i] = over * (w->v[i] - w->v1[i]);
    }
    if (instant)
        for (int i = 0; i < w->nact; i++)
            for (int j = 0; j < rows_of(w->act[i]->c); j++) w->act[i]->r[j] = w->rr[w->act[i]->row + j];
    int64_t at = results_sample(w->r);
    size_t first = (size_t)at * (size_t)w->n;
    w->r->t[at] = w->t;
    vec_copy(w->r->q + first, w->q, w->n);
    vec_copy(w->r->v + first, w->v, w->n);
    vec_copy(w->r->acc + first, w->acc, w->n);
    sample_energy(w, at);
    sample_contacts(w, at, over, instant);
    return true;
}

/* ---- start ---- */
/* gaps, rows and closed contacts of the state as it is */
static bool survey(sweep *w)
{
    system_t *s = w->s;
    system_at(s, w->t, w->q, w->v);
    if (!s->mass_constant || w->t == 0) {
        system_mass(s, w->M);
        if (!factor_mass(w, w->M, w->t)) return false;
    }
    sizes(w);
    for (size_t i = 0; i < w->ntrack; i++) {
        track *k = &w->track[i];
        contact *c = k->c;
        contact_gap(s, c);
        contact_rows(s, c, w->M, true);
        contact_laws(s, c, true);
        tolerances(w, k);
        if (c->fam->f->relation == REL_CLOSED) continue;
        double wrong = c->fam->f->relation == REL_BILATERAL ? fabs(c->gap) : -c->gap;
        if (!isfinite(c->gap))
            return fail(w, c->fam->f->at, arena_printf(w->r->a, "the gap of '%s' is not finite at t = %s", contact_name(c, w->r->a), number(w, w->t)));
        if (wrong > 1e-6 * weighted(c->H, w->qmax, w->n) + 1e-12)
            return fail(w, c->fam->f->at, arena_printf(w->r->a, "constraint '%s' does not hold at t = %s: its gap is %s",
                                                       contact_name(c, w->r->a), number(w, w->t), number(w, c->gap)));
        if (wrong > w->r->max_penetration) w->r->max_penetration = wrong;
        double un = gap_rate(w, k, w->v);
        if (c->fam->f->relation == REL_GAP) k->closed = k->closed && c->gap <= k->tol_gap && fabs(un) <= k->tol_u;
        /* held from both sides: a rate of the gap is a shock */
        else k->closed = true, w->jolt |= fabs(un) > k->tol_u;
    }
    return true;
}

static double *numbers(sweep *w, size_t n) { return arena_array(w->a, double, n ? n : 1); }

static void track_new(sweep *w, track *k, contact *c)
{
    size_t n = (size_t)w->n, d = (size_t)c->fam->d, m = 1 + d;
    bool fixed = c->fam->rows_fixed;
    *k = (track){ .c = c, .stamp = -1, .stamp_m = -1, .stamp_a = -1, .stamp_am = -1, .cone_step = NAN };
    if (!fixed) {
        k->H0 = numbers(w, n); k->S0 = numbers(w, d * n);
        k->Hm = numbers(w, n); k->Sm = numbers(w, d * n);
    }
    k->s0m = numbers(w, d);
    k->G = numbers(w, m * n);
    k->Gm = numbers(w, m * n);
    k->A = numbers(w, m * m);
    k->Am = numbers(w, m * m);
    k->r = numbers(w, m);
    k->P = numbers(w, m);
    k->shock = numbers(w, m);
    k->closed = always(c);
}

static void sweep_rooms(sweep *w)
{
    system_t *s = w->s;
    size_t n = (size_t)w->n, nn = s->diagonal ? n : n * n, c = s->ncontact, m = (size_t)s->rows, d = 0;
    for (size_t i = 0; i < w->p->ncontact; i++) if ((size_t)s->family[i].d > d) d = (size_t)s->family[i].d;
    double **vectors[] = { &w->q, &w->v, &w->f, &w->q1, &w->v1, &w->f1, &w->acc, &w->qmax, &w->vmax, &w->x1, &w->x2, &w->x3, &w->x4 };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) *vectors[i] = numbers(w, n + MAX_SLIP);
    w->M = numbers(w, nn);
    if (!s->mass_constant) { w->M1 = numbers(w, nn); w->Mm = numbers(w, nn); }
    if (s->force_of_state || !s->mass_constant) {
        w->Fq = numbers(w, n * n); w->Fv = numbers(w, n * n); w->D = numbers(w, n * n);
        factor_init(&w->df, w->a, w->n, false);
    }
    w->d_step = NAN;
    w->stamp = w->stamp_m = 1;
    w->patience = MAX_AGAIN;
    w->ntrack = c;
    w->track = arena_array(w->a, track, c);
    for (size_t i = 0; i < c; i++) track_new(w, &w->track[i], &s->contact[i]);
    w->act = arena_array(w->a, track *, c);
    w->back = arena_array(w->a, track *, c);
    w->who = arena_array(w->a, bool, c);
    w->perm = arena_array(w->a, int, c);
    w->cone = arena_array(w->a, cone, c);
    w->W = numbers(w, m * m); w->b = numbers(w, m); w->rr = numbers(w, m); w->u = numbers(w, m); w->dir = numbers(w, m);
    w->more = numbers(w, c * c + 2 * c);
    w->local = numbers(w, CONE_WORK * d * (d + 4) + 8);
    w->work = contact_work_new(w->a, (int)c, s->rows, (int)d);
}

static void sweep_events(sweep *w)
{
    size_t total = 0;
    w->events = arena_array(w->a, event_terms, w->p->nevent);
    for (size_t i = 0; i < w->p->nevent; i++) {
        w->events[i].when = term_new(w->a, &w->p->event[i].when);
        w->events[i].reset = term_new(w->a, &w->p->event[i].reset);
        total += (size_t)index_members(&w->p->event[i].over);
    }
    w->fired = arena_array(w->a, bool, total + 1);
    w->rising = arena_array(w->a, bool, total + 1);
}

/* A state that does not obey its constraints at once is thrown into them by a shock at t = 0. */
static bool begin(sweep *w)
{
    system_start(w->s, w->q, w->v);
    if (w->p->delay) {
        w->s->past = samples_new(w->a, w->p, w->r->param, w->q, w->h);
        w->s->past_late = samples_for_forces(w->p);
        samples_add(w->s->past, 0, w->q, w->v);
    }
    if (!survey(w) || !rates_after_jump(w)) return false;
    memcpy(w->f1, w->f, (size_t)w->n * sizeof *w->f);
    if (!meet(w)) return false;
    if (w->jolt) { w->jolt = false; if (!shock(w)) return false; }
    w->t1 = w->t;
    if (w->p->nevent) {
        memcpy(w->q1, w->q, (size_t)w->n * sizeof *w->q);
        memcpy(w->v1, w->v, (size_t)w->n * sizeof *w->v);
        if (events_rise(w, false)) { events_rise(w, true); if (!fire(w)) return false; }
    }
    return true;
}

/* ---- the run ---- */
static bool ask(sweep *w, double done)
{
    if (!w->o->progress || !w->o->progress(w->o->ud, done)) return false;
    w->r->status = RUN_INTERRUPTED;
    return true;
}

static bool past_read(sweep *w)
{
    span at;
    const char *why = w->s->past ? samples_error(w->s->past, &at) : NULL;
    return why ? fail(w, at, why) : true;
}

static void march(sweep *w)
{
    double T = w->o->duration, every = w->o->every, h = w->h;
    int64_t steps = (int64_t)ceil(T / h - 1e-9);
    double last = 0;
    if (steps < 1) steps = 1;
    double kept = every > h ? T / every + 2 : (double)steps + 2;
    results_reserve(w->r, kept < 4e6 ? (int64_t)kept : 4000000);
    for (int64_t i = 1; i <= steps; i++) {
        double begin_t = w->t, end = i == steps ? T : (double)i * h;
        if (!advance(w, end) || !past_read(w)) { w->r->t_end = w->t; return; }
        if (!w->stopped) w->t = end;
        w->r->steps = i;
        bool keep = i == steps || w->stopped || !(every > 0) || w->t - last >= every * (1 - 1e-9);
        if (keep) {
            double over = w->t > begin_t ? 1 / (w->t - begin_t) : 0;
            if (!sample(w, over, false)) break;
            last = w->t;
        }
        w->r->t_end = w->t;
        if (w->stopped) { w->r->status = RUN_STOPPED; return; }
        if (i % 1024 == 0 && ask(w, (double)i / (double)steps)) return;
    }
}

static void march_dense(sweep *w)
{
    const char *why = NULL;
    results *r = w->r;
    w->s = system_new(r->a, w->p, r->param, false, &why, &r->where);
    if (!w->s) { fail(w, r->where, why); return; }
    /* a force that reads the past at times that hang on the state depends on it, if not linearly */
    if (w->p->delay && delay_of_state(w->p->delay)) { w->s->force_of_state = true; w->s->jacobian_constant = false; }
    w->linear = w->s->mass_constant && (!w->s->force_of_state || w->s->jacobian_constant);
    for (size_t i = 0; i < w->p->ncontact; i++) w->linear &= w->s->family[i].rows_fixed;
    sweep_rooms(w);
    sweep_events(w);
    if (begin(w) && sample(w, 0, true) && w->o->duration > 0 && !w->stopped) march(w);
    if (w->stopped && r->status == RUN_OK) r->status = RUN_STOPPED;
    if (!r->solver) r->solver = "none needed";
}

void sweeping_steps(const program *p, const run_options *o, const stepping *how, results *r)
{
    struct timespec a, b;
    sweep *w = arena_make(r->a, sweep);
    size_t contacts = program_contacts(p);
    clock_gettime(CLOCK_MONOTONIC, &a);
    *w = (sweep){ .p = p, .o = o, .r = r, .a = r->a, .n = p->nq, .theta = how->theta, .h = how->h, .tol = how->tolerance,
                   .stiffness = how->stiffness };
    r->backend = how->name;
    r->status = RUN_OK;
    r->duration = o->duration;
    if (!(w->h > 0)) w->h = o->duration < 1 && o->duration > 0 ? o->duration / 1000 : 1e-3;
    if (!(w->tol > 0)) w->tol = contacts <= 100 ? 1e-12 : 1e-8;
    if (contacts > DENSE_CONTACTS && w->stiffness != 0) fail(w, SPAN_NONE, "auglag runs dynamics with up to 400 contacts; use sweeping()");
    else if (contacts > DENSE_CONTACTS) many_run(p, o, r, w->h, w->tol);
    else march_dense(w);
    clock_gettime(CLOCK_MONOTONIC, &b);
    r->seconds = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
}

static void sweeping_run(const program *p, const run_options *o, results *r)
{
    sweeping_steps(p, o, &(stepping){ o->value[OPTION_H], o->value[OPTION_THETA], o->value[OPTION_TOLERANCE], 0, "sweeping" }, r);
}

static const char *sweeping_refuse(const program *p, span *at)
{
#define REFUSE(what, text) do { if (p->what.file) { *at = p->what; return text; } } while (0)
    if (p->delay && program_contacts(p) > DENSE_CONTACTS) REFUSE(has_delay, "sweeping runs delays with up to 400 contacts");
    REFUSE(has_inclusion, "sweeping does not run inclusions; use inclusion()");
    REFUSE(has_field, "sweeping does not solve fields; use vim(), penalty() or active_set()");
    REFUSE(has_rod, "sweeping does not solve rods; use auglag()");
#undef REFUSE
    return NULL;
}

static const backend_option sweeping_options[] = {
    { "h", OPT_REAL, NAN, 1e-300, INFINITY, NULL, "time step; 1e-3, or a thousandth of a run shorter than 1" },
    { "theta", OPT_REAL, 0.5, 0, 1, NULL, "weight of the end of the step in forces and positions: 1/2 trapezoidal, 1 implicit, 0 explicit" },
    { "tolerance", OPT_REAL, NAN, 1e-15, 1, NULL, "of the contact problem; 1e-12 up to 100 contacts, else 1e-8" },
};
const backend backend_sweeping = {
    .name = "sweeping", .doc = "Moreau's time-stepping: contact, friction and impacts",
    .option = sweeping_options, .noption = sizeof sweeping_options / sizeof *sweeping_options,
    .built = true, .refuse = sweeping_refuse, .run = sweeping_run,
};
