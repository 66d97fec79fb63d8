/* rod_solve: a run of rods: its start and its results. Along a load: rod_path.c; in time: rod_dynamics.c. */
#include "rod_work.h"
#include "base/tolerances.h"
#include <math.h>
#include <string.h>

/* ---- results ---- */
double rod_elastic(rod_work *w, double *e)
{
    memset(e, 0, 4 * sizeof *e);
    for (int r = 0; r < w->rp->nrod; r++)
        for (int i = 0; i < w->mesh[r].ne; i++)
            rod_element(&w->mesh[r], i, w->state.pos, w->state.rot, NULL, NULL, NULL, e);
    return e[0] + e[1] + e[2] + e[3];
}

/* Force and moment in space on a supported node, from the residual. */
static void reaction_of(const rod_work *w, int node, double *out)
{
    double m[3], R[9];
    quat_matrix(w->state.rot + 4 * node, R);
    for (int k = 0; k < 3; k++) {
        out[k] = w->ends.held[6 * node + k] ? w->res[6 * node + k] : 0;
        m[k] = w->ends.held[6 * node + 3 + k] ? w->res[6 * node + 3 + k] : 0;
    }
    rod_off_axes(w, node, m);
    for (int k = 0; k < 3; k++)
        out[3 + k] = dot3(R + 3 * k, m);
}

/* The residual of the state; for a motion in time, that of its last step. */
static void residual_here(rod_work *w, double t)
{
    arena_pos mark = arena_mark(w->tmp);
    if (w->motion)
        memcpy(w->res, rod_left(w), (size_t)w->ndof * sizeof *w->res);
    else
        rod_residual(w, t, w->res);
    arena_release(w->tmp, mark);
}

/* Contacts are open unless contacts_accept finds otherwise. */
static void contacts_clear(results *r, int64_t k)
{
    for (size_t c = 0; c < r->prog->ncontact; c++) {
        contact_result *x = &r->contact[c];
        for (int64_t m = 0; x->kept && m < x->members; m++) {
            x->gap[k * x->members + m] = INFINITY;
            x->rn[k * x->members + m] = 0;
            x->status[k * x->members + m] = 0;
        }
        for (int64_t m = 0; x->kept && m < x->members * x->nslip; m++)
            x->rt[k * x->members * x->nslip + m] = x->slip[k * x->members * x->nslip + m] = 0;
    }
}

/* Along a load there is no balance of power; a motion starts with its first sample. */
bool rod_fill(void *of, run_clock *c, int64_t k, energies *out)
{
    double e[4];
    rod_work *w = of;
    results *r = c->r;
    r->t_end = r->t[k];
    out->kinetic = out->shown = rod_elastic(w, e) + (w->motion ? rod_kinetic(w) : 0);
    out->unaudited = !w->motion || k == 0;
    c->books.work = w->motion ? rod_worked(w) : 0;
    memcpy(r->track + k * r->ntrack, w->state.pos, (size_t)(3 * w->N) * sizeof *w->state.pos);
    residual_here(w, r->t[k]);
    for (int i = 0; i < w->ends.nsupport; i++)
        reaction_of(w, w->ends.support[i], r->track + k * r->ntrack + 3 * w->N + 6 * i);
    c->books.dissipated = w->viscous + (w->contact ? contacts_dissipated(w) : 0);
    contacts_clear(r, k);
    if (w->contact)
        contacts_accept(w, k);
    return true;
}

static const stepper along_load = { .sample = rod_fill };

void rod_sample(rod_work *w, double t)
{
    clock_sample(&w->clock, t);
}

/* Scale for the balance of forces: the largest sum of the absolute values of forces and moments at a node,
   forces with the length as lever arm. Because increments end at 1e-9 of the length, a rod without strain
   gets the forces that its stiffness gives for that. */
static double forces_acting(rod_work *w, double t)
{
    arena_pos mark = arena_mark(w->tmp);
    double *sum = arena_array(w->tmp, double, w->ndof), *part = arena_array(w->tmp, double, w->ndof),
           L = rod_length(w), most = 0;
    rod_loads(w, t, part);
    for (int i = 0; i < w->ndof; i++)
        sum[i] = fabs(part[i]);
    memset(part, 0, (size_t)w->ndof * sizeof *part);
    if (w->contact)
        contacts_put(w, part, NULL);
    for (int i = 0; i < w->ndof; i++)
        sum[i] += fabs(part[i]);
    for (int r = 0; r < w->rp->nrod; r++) {
        const rod_mesh *m = &w->mesh[r];
        for (int e = 0; e < m->ne; e++) {
            double f[ROD_DOFS] = { 0 };
            rod_element_own(w, m, e, NULL, f, NULL);
            for (int i = 0; i < ROD_DOFS; i++)
                sum[6 * (m->first + 3 * e) + i] += fabs(f[i]);
            double h = m->s[3 * e + 3] - m->s[3 * e], stiff = fmax(m->B[0], fmax(m->B[4], m->B[8]));
            most = fmax(most, ROD_END * stiff * L / h * L);
        }
    }
    for (int i = 0; i < w->ndof; i++)
        most = fmax(most, sum[i] * (i % 6 < 3 ? L : 1));
    arena_release(w->tmp, mark);
    return most;
}

static void finish(rod_work *w, const rod_path *p)
{
    results *r = w->r;
    rod_result *x = arena_make(r->a, rod_result);
    *x = (rod_result){ .rp = w->rp,
                       .mesh = w->mesh,
                       .r = w->state.pos,
                       .q = w->state.rot,
                       .ncritical = p->ncritical,
                       .path = p->points.at,
                       .npath = p->points.n,
                       .support = w->ends.support,
                       .nsupport = w->ends.nsupport };
    x->critical = arena_array(r->a, double, p->ncritical);
    memcpy(x->critical, p->critical, (size_t)p->ncritical * sizeof *x->critical);
    rod_elastic(w, x->energy);
    x->tie = rod_ties_list(w, r->a, &x->ntie);
    x->v = w->motion ? rod_velocities(w) : NULL;
    x->reaction = arena_array(r->a, double, w->ndof);
    if (w->contact)
        contacts_result(w, x);
    if (w->grown.strains)
        holds_at(w, w->t, 1); /* natural strains of the stored state */
    residual_here(w, w->t);
    double worst = 0, L = rod_length(w);
    for (int i = 0; i < w->ndof; i++)
        if (!w->ends.held[i])
            worst = fmax(worst, fabs(w->res[i]) * (i % 6 < 3 ? L : 1));
    for (int i = 0; i < w->ends.nsupport; i++)
        reaction_of(w, w->ends.support[i], x->reaction + 6 * w->ends.support[i]);
    if (!w->motion)
        r->residual = worst / forces_acting(w, w->t);
    r->count.solver_iterations = w->iterations;
    r->solver = w->contact ? w->ro->penalty ? "Newton, penalty" : "Newton, multipliers" : "Newton, band";
    r->rod = x;
    /* small increments alone do not prove an equilibrium: forces must balance too */
    if (r->status == RUN_OK && !w->motion && !(r->residual < BALANCE_LOOSE))
        rod_fail(w, w->rp->rod[0].at,
                 "the forces do not balance at t = %g: the defect is %.2g of the largest force", w->t,
                 r->residual);
}

/* ---- the run ---- */
static bool supports_differ(const rod_work *w, double least)
{
    double d = 0, th[3];
    for (int i = 0; i < w->ends.nhold; i++) {
        const rod_hold *h = &w->ends.hold[i];
        if (h->load->what == LOAD_ROLL)
            d = fmax(d, fabs(h->goal[0]));
        else if (h->load->what == LOAD_FRAME) {
            quat_log(h->start, h->goal, th);
            d = fmax(d, norm3(th));
        } else
            for (int k = 0; k < 3; k++)
                d = fmax(d, fabs(h->goal[k] - h->start[k]) /
                                (h->load->what == LOAD_POSITION ? rod_length(w) : 1));
    }
    return d > least;
}

static void go(rod_work *w)
{
    results *r = w->r;
    double end = isnan(w->o->duration) ? 1 : w->o->duration, h = w->ro->h, reached = 0;
    rod_path p = { .ncritical = 0 };
    clock_init(&w->clock, &along_load, w, w->o, r);
    if (!rod_build(w))
        return;
    rod_band_new(w);
    if (w->rp->npair)
        contacts_new(w);
    bool moves = rod_moves(w->rp), ok = true;
    w->ends.support = arena_array(w->a, int, w->N);
    for (int i = 0; i < w->ndof; i++)
        if (w->ends.held[i] && (!w->ends.nsupport || w->ends.support[w->ends.nsupport - 1] != i / 6))
            w->ends.support[w->ends.nsupport++] = i / 6;
    r->ntrack = 3 * w->N + 6 * w->ends.nsupport;
    if ((!moves && !rod_supported(w)) || !holds_at(w, 0, 1))
        return;
    if (w->contact && !contacts_start(w))
        return;
    for (int i = 0; i < w->rp->nrod; i++)
        w->grown.on = w->grown.on || w->rp->rod[i].loaded;
    if ((w->goal0 && !moves) || w->grown.on || supports_differ(w, moves ? SUPPORT_SAME : 0.02)) {
        if (moves && !rod_supported(w)) {
            if (w->grown.on)
                return;
            results_unfail(r); /* missing numbers matter only because of the shape */
            rod_fail(w, w->rp->rod[0].at,
                     "the supports at t = 0 do not fit the shape of the rods, and are too few to "
                     "bend them there; give a reference that fits");
            return;
        }
        if (w->contact)
            contacts_smooth(w, w->goal0);
        w->start = w->goal0 != NULL;
        ok = rod_march(w, 1, 0.1, true, &p, &reached);
        w->start = w->grown.on = false;
        if (w->contact) {
            if (ok && w->goal0)
                rod_apart(w, 0);
            contacts_smooth(w, false);
        }
        if (!ok && r->status == RUN_OK)
            rod_fail(w, w->rp->rod[0].at,
                     "no equilibrium was found for the supports and loads at t = 0 (%.3g of the way from "
                     "the reference shape)",
                     reached);
    }
    reached = 0;
    if (moves && ok)
        clock_run(&rod_motion_stepper, w, w->o, r);
    else if (ok) {
        if (w->contact)
            contacts_step(w);
        ok = rod_step(w, 0, 1, BY_NEWTON) ||
             (w->contact && r->status == RUN_OK && rod_step(w, 0, 1, BY_FLOW));
        if (!ok && r->status == RUN_OK)
            rod_fail(w, w->rp->rod[0].at, "no equilibrium was found at t = 0");
        if (ok)
            rod_path_start(w, &p);
    }
    if (ok && end > 0 && !moves) {
        if (isnan(h) || h <= 0 || h > end)
            h = isnan(h) ? end / 20 : end;
        ok = rod_march(w, end, h, false, &p, &reached);
        if (!ok && r->status == RUN_OK)
            rod_fail(w, w->rp->rod[0].at,
                     "no equilibrium was found beyond t = %.10g, with steps down to %.3g; the results so "
                     "far are kept",
                     reached, h * STEP_SHORTEST);
    }
    finish(w, &p);
}

typedef struct {
    const program *p;
    const run_options *o;
    const rod_options *ro;
} rod_job;

static void rod_go(results *r, const void *ud, arena *scratch)
{
    const rod_job *j = ud;
    rod_work w = { .p = j->p, .rp = j->p->rod, .o = j->o, .ro = j->ro, .r = r, .a = r->a, .tmp = scratch };
    go(&w);
}

void rod_run(const program *p, const run_options *o, const rod_options *ro, results *r)
{
    results_scratch(r, rod_go, &(rod_job){ p, o, ro });
}

const char *rod_refuse(const program *p, span *at)
{
    span no[] = { p->has_delay, p->has_inclusion, p->has_field, p->has_event, p->has_first_order };
    for (size_t k = 0; k < sizeof no / sizeof *no; k++)
        if (no[k].file) {
            *at = no[k];
            return "a model with rods may not have delays, events, inclusions or fields";
        }
    for (size_t k = 0; k < p->ncontact && rod_moves(p->rod); k++)
        if (p->contact[k].e.tape.nout) {
            *at = p->contact[k].at;
            return "contact of rods in time has no impact law: leave out impact";
        }
    if (p->nq) {
        *at = p->dofs.n ? p->dofs.at[0].where : p->has_rod;
        return "a model with rods has no other degrees of freedom";
    }
    return NULL;
}
