/* rod_solve: rods along a load (those with a mass: rod_dynamics.c): steps, what is left of them, stability. */
#include "rod_work.h"
#include <math.h>
#include <string.h>

/* ---- results ---- */
static double elastic(rod_work *w, double *e)
{
    memset(e, 0, 4 * sizeof *e);
    for (int r = 0; r < w->rp->nrod; r++)
        for (int i = 0; i < w->mesh[r].ne; i++) rod_element(&w->mesh[r], i, w->pos, w->rot, NULL, NULL, NULL, e);
    return e[0] + e[1] + e[2] + e[3];
}

void rod_sample(rod_work *w, double t)
{
    double e[4];
    results *r = w->r;
    int64_t k = results_sample(r);
    r->t[k] = r->t_end = t;
    r->energy[k] = elastic(w, e) + (w->motion ? rod_kinetic(w) : 0);
    r->work[k] = w->motion ? rod_worked(w) : 0;
    memcpy(r->track + k * r->ntrack, w->pos, (size_t)r->ntrack * sizeof *w->pos);
    r->dissipated[k] = w->viscous + (w->contact ? contacts_dissipated(w) : 0);
    for (size_t c = 0; c < r->prog->ncontact; c++) {
        contact_result *x = &r->contact[c];
        for (int64_t m = 0; x->kept && m < x->members; m++) { x->gap[k * x->members + m] = INFINITY; x->rn[k * x->members + m] = 0; x->status[k * x->members + m] = 0; }
        for (int64_t m = 0; x->kept && m < x->members * x->nslip; m++) x->rt[k * x->members * x->nslip + m] = x->slip[k * x->members * x->nslip + m] = 0;
    }
    if (w->contact) contacts_accept(w, k);
}

static void finish(rod_work *w, double *critical, int ncritical)
{
    results *r = w->r;
    rod_result *x = arena_make(r->a, rod_result);
    *x = (rod_result){ .rp = w->rp, .mesh = w->mesh, .r = w->pos, .q = w->rot, .critical = critical, .ncritical = ncritical };
    elastic(w, x->energy);
    x->v = w->motion ? rod_velocities(w) : NULL;
    x->reaction = arena_array(r->a, double, w->ndof);
    if (w->contact) contacts_result(w, x);
    arena_pos mark = arena_mark(w->tmp);
    if (w->motion) memcpy(w->res, rod_left(w), (size_t)w->ndof * sizeof *w->res);
    else rod_residual(w, w->t, w->res);
    arena_release(w->tmp, mark);
    double worst = 0, L = rod_length(w);
    for (int i = 0; i < w->ndof; i++)
        if (!w->held[i]) worst = fmax(worst, fabs(w->res[i]) * (i % 6 < 3 ? L : 1));
    for (int i = 0; i < w->N; i++) {
        double R[9];
        const double *m = w->res + 6 * i + 3;
        quat_matrix(w->rot + 4 * i, R);
        for (int k = 0; k < 3; k++) {
            if (w->held[6 * i + k]) x->reaction[6 * i + k] = w->res[6 * i + k];
            if (w->held[6 * i + 3 + k]) x->reaction[6 * i + 3 + k] = R[3 * k] * m[0] + R[3 * k + 1] * m[1] + R[3 * k + 2] * m[2];
        }
    }
    if (!w->motion) r->residual = worst / (w->scale * L * L);
    r->solver_iterations = w->iterations;
    r->solver = w->contact ? w->ro->penalty ? "Newton, penalty" : "Newton, multipliers" : "Newton, band";
    r->rod = x;
    /* small increments alone do not prove an equilibrium: forces must balance too */
    if (r->status != RUN_FAILED && !w->motion && !(r->residual < 1e-2)) rod_fail(w, w->rp->rod[0].at, "the forces do not balance at t = %g: residual %.2g of EI/L", w->t, r->residual);
}

/* ---- along the load ---- */
typedef struct path {
    double critical[8]; int ncritical, sign, modes;
    double t[2], logdet[2]; int known;  /* of the last two steps: where moments have no energy */
} path;

/* A rod that goes through itself changes its link by two: such a step is no motion.  Only asked where contact acts. */
static double links(const rod_work *w, double *pos, double *rot)
{
    rod_result x = { .rp = w->rp, .mesh = w->mesh, .r = pos, .q = rot };
    double sum = 0;
    for (int i = 0; i < w->rp->npair; i++) {
        int a = w->rp->pair[i].a;
        if (w->rp->pair[i].b == a) sum += rod_writhe_nodes(&x, a) + rod_twist(&x, a);
    }
    return sum;
}

bool rod_passed(const rod_work *w, double *pos, double *rot)
{
    return w->contact && contacts_near(w) && fabs(links(w, w->pos, w->rot) - links(w, pos, rot)) > 1.2;
}

/* flow: through a viscous motion */
static bool step_to(rod_work *w, double t, double tau, bool flow)
{
    arena_pos mark = arena_mark(w->tmp);
    double *pos = arena_array(w->tmp, double, 3 * w->N), *rot = arena_array(w->tmp, double, 4 * w->N), lost = w->viscous;
    if (!holds_at(w, t, tau)) return false;
    state_copy(w, pos, rot, w->pos, w->rot);
    state_copy(w, w->pos0, w->rot0, w->pos, w->rot);
    if (w->contact) contacts_save(w);
    bool ok = (flow ? rod_flow(w, t) : rod_equilibrium(w, t)) && !rod_passed(w, pos, rot);
    if (ok && w->contact) contacts_lose(w);
    if (!ok) {
        state_copy(w, w->pos, w->rot, pos, rot);
        w->viscous = lost;
        if (w->contact) contacts_restore(w);
    }
    arena_release(w->tmp, mark);
    return ok;
}

/* of the tangent: the directions that lower the energy, or the sign of the determinant where moments have no energy */
static int character(rod_work *w, double t) { return w->moments ? w->sign : rod_unstable(w, t); }

/* where it changes between a and b: halved; the state at b is put back */
static double critical_between(rod_work *w, double a, double b, int was)
{
    arena_pos mark = arena_mark(w->tmp);
    double *pos = arena_array(w->tmp, double, 3 * w->N), *rot = arena_array(w->tmp, double, 4 * w->N);
    double *pos1 = arena_array(w->tmp, double, 3 * w->N), *rot1 = arena_array(w->tmp, double, 4 * w->N);
    state_copy(w, pos1, rot1, w->pos, w->rot);
    state_copy(w, pos, rot, w->pos0, w->rot0);
    for (int k = 0; k < 24; k++) {
        double mid = (a + b) / 2;
        state_copy(w, w->pos, w->rot, pos, rot);
        if (!step_to(w, mid, 1, false)) break;
        if (character(w, mid) == was) { a = mid; state_copy(w, pos, rot, w->pos, w->rot); }
        else b = mid;
    }
    state_copy(w, w->pos, w->rot, pos1, rot1);
    arena_release(w->tmp, mark);
    return (a + b) / 2;
}

static double logdet_at(rod_work *w, double t) { return step_to(w, t, 1, false) ? w->logdet : INFINITY; }

/* A round section buckles in two directions at once: the determinant touches zero and keeps its sign.  Where it was least at the last step, the least is looked for. */
static void watch_double(rod_work *w, path *p, double now)
{
    double a = p->t[0], b = now, low = w->logdet, g = (sqrt(5) - 1) / 2;
    bool least = p->known == 2 && p->logdet[1] < p->logdet[0] && p->logdet[1] < low;
    if (least && p->ncritical < 8) {
        arena_pos mark = arena_mark(w->tmp);
        double *pos = arena_array(w->tmp, double, 3 * w->N), *rot = arena_array(w->tmp, double, 4 * w->N), top = fmin(low, p->logdet[0]);
        state_copy(w, pos, rot, w->pos, w->rot);
        double x = b - g * (b - a), y = a + g * (b - a), fx = logdet_at(w, x), fy = logdet_at(w, y);
        for (int k = 0; k < 40 && b - a > 1e-9 * now; k++) {
            if (fx < fy) { b = y; y = x; fy = fx; x = b - g * (b - a); fx = logdet_at(w, x); }
            else { a = x; x = y; fx = fy; y = a + g * (b - a); fy = logdet_at(w, y); }
        }
        if (fmin(fx, fy) < top - log(1e6)) p->critical[p->ncritical++] = (a + b) / 2;
        state_copy(w, w->pos, w->rot, pos, rot);
        arena_release(w->tmp, mark);
        holds_at(w, now, 1);
    }
    p->t[0] = p->t[1]; p->t[1] = now;
    p->logdet[0] = p->logdet[1]; p->logdet[1] = low;
    p->known += p->known < 2;
}

static void watch(rod_work *w, path *p, double before, double now)
{
    if (w->contact && contacts_near(w)) return;
    int is = character(w, now), was = p->modes;
    if (w->moments && is != was) p->known = 0;
    else if (w->moments) watch_double(w, p, now);
    if (is != was && p->ncritical < 8) {
        arena_pos mark = arena_mark(w->tmp);
        double *pos0 = arena_array(w->tmp, double, 3 * w->N), *rot0 = arena_array(w->tmp, double, 4 * w->N);
        state_copy(w, pos0, rot0, w->pos0, w->rot0);
        p->critical[p->ncritical++] = critical_between(w, before, now, was);
        state_copy(w, w->pos0, w->rot0, pos0, rot0);
        arena_release(w->tmp, mark);
        holds_at(w, now, 1);
    }
    p->modes = is;
}

/* Where no equilibrium is found, the branch may end: the load there, between a and b, by halves, for as long as the determinant falls.  The state is put back. */
static void watch_limit(rod_work *w, path *p, double a, double b)
{
    arena_pos mark = arena_mark(w->tmp);
    double *pos = arena_array(w->tmp, double, 3 * w->N), *rot = arena_array(w->tmp, double, 4 * w->N), beyond = b;
    double *kept = arena_array(w->tmp, double, 3 * w->N), *turned = arena_array(w->tmp, double, 4 * w->N);
    state_copy(w, pos, rot, w->pos, w->rot);
    state_copy(w, kept, turned, w->pos, w->rot);
    double first = logdet_at(w, a), last = first;
    for (int k = 0; k < 40 && b - a > 1e-9 * b; k++) {
        double mid = (a + b) / 2, det = logdet_at(w, mid);
        bool same = det <= last && !rod_unstable(w, mid);
        if (same) { a = mid; last = det; state_copy(w, kept, turned, w->pos, w->rot); }
        else { b = mid; state_copy(w, w->pos, w->rot, kept, turned); }
    }
    if (b < beyond && last < first - log(10)) p->critical[p->ncritical++] = (a + b) / 2;
    state_copy(w, w->pos, w->rot, pos, rot);
    arena_release(w->tmp, mark);
}

/* a state that is no minimum of the energy is left for one that is */
static bool leave_saddle(rod_work *w, double t)
{
    if (w->moments || (w->contact && contacts_near(w)) || !rod_unstable(w, t)) return true;
    arena_pos mark = arena_mark(w->tmp);
    double *pos = arena_array(w->tmp, double, 3 * w->N), *rot = arena_array(w->tmp, double, 4 * w->N);
    state_copy(w, pos, rot, w->pos, w->rot);
    rod_nudge(w);
    w->neutral = true;
    bool ok = rod_flow(w, t);
    if (!ok) state_copy(w, w->pos, w->rot, pos, rot);
    arena_release(w->tmp, mark);
    return ok;
}

/* t from 0 to 1 in steps of at most h, halved when Newton's method fails; `at` gives what is reached */
static bool march(rod_work *w, double end, double h, bool start, path *p, double *reached)
{
    double t = 0, dt = h;
    for (int64_t easy = 0; t < end * (1 - 1e-12);) {
        if (t + dt > end * (1 - 1e-9)) dt = end - t;
        while (!start && turn_between(w, t, dt) > 1 && dt > 1e-6 * h) dt /= 2;
        if (w->contact) contacts_step(w);
        double now = start ? 0 : t + dt, tau = start ? t + dt : 1;
        bool found = step_to(w, now, tau, false);
        if (!found && w->r->status != RUN_FAILED && dt < h / 3 && !w->moments) {
            int known = p->ncritical;
            if (!start && !w->contact && known < 8) watch_limit(w, p, t, now);
            found = step_to(w, now, tau, true);
            if (!found) p->ncritical = known;
        }
        if (found) {
            if (!start) watch(w, p, t, t + dt);
            leave_saddle(w, start ? 0 : t + dt);
            if (!w->moments && !(w->contact && contacts_near(w))) p->modes = rod_unstable(w, start ? 0 : t + dt);
            t += dt;
            *reached = t;
            w->t = start ? 0 : t;
            if (!start) { w->r->steps++; rod_sample(w, t); }
            if (++easy >= 2 && dt < h) { dt = fmin(2 * dt, h); easy = 0; }
            if (rod_interrupted(w)) return false;
            continue;
        }
        if (w->r->status == RUN_FAILED || w->r->status == RUN_INTERRUPTED) return false;
        easy = 0;
        dt /= 2;
        if (dt < h * 1e-4) return false;
    }
    return true;
}

static bool supports_differ(const rod_work *w, double least)
{
    double d = 0, th[3];
    for (int i = 0; i < w->nhold; i++) {
        const rod_hold *h = &w->hold[i];
        if (h->load->what == LOAD_ROLL) d = fmax(d, fabs(h->goal[0]));
        else if (h->load->what == LOAD_FRAME) { quat_log(h->start, h->goal, th); d = fmax(d, norm3(th)); }
        else for (int k = 0; k < 3; k++) d = fmax(d, fabs(h->goal[k] - h->start[k]) / (h->load->what == LOAD_AXIS ? 1 : rod_length(w)));
    }
    return d > least;
}

static void go(rod_work *w)
{
    results *r = w->r;
    double end = isnan(w->o->duration) ? 1 : w->o->duration, h = w->ro->h, reached = 0;
    path p = { .ncritical = 0 };
    if (!rod_build(w)) return;
    rod_band_new(w);
    if (w->rp->npair) contacts_new(w);
    bool moves = rod_moves(w->rp), ok = true;
    r->ntrack = 3 * w->N;
    if ((!moves && !rod_supported(w)) || !holds_at(w, 0, 1)) return;
    if (w->contact && !contacts_start(w)) return;
    if ((w->u0_goal && !moves) || supports_differ(w, moves ? 1e-9 : 0.02)) {
        if (moves && !rod_supported(w)) {
            rod_fail(w, w->rp->rod[0].at, "the supports at t = 0 do not agree with the shape of the rods, and hold too little to bend them there; give a reference that agrees");
            return;
        }
        ok = march(w, 1, 0.1, true, &p, &reached);
        if (!ok && r->status == RUN_OK) rod_fail(w, w->rp->rod[0].at, "no equilibrium was found that agrees with the supports at t = 0 (%.3g of the way from the reference shape)", reached);
    }
    reached = 0;
    if (moves && ok) {
        ok = rod_motion_run(w, end, h, &reached);
        if (!ok && r->status == RUN_OK) rod_fail(w, w->rp->rod[0].at, "no motion was found beyond t = %.10g, with steps down to a ten-thousandth of h; what was reached is kept", reached);
    } else if (ok) {
        if (w->contact) contacts_step(w);
        ok = step_to(w, 0, 1, false);
        if (!ok && r->status == RUN_OK) rod_fail(w, w->rp->rod[0].at, "no equilibrium was found at t = 0");
        if (ok) { leave_saddle(w, 0); p.modes = character(w, 0); rod_sample(w, 0); }
    }
    if (ok && end > 0 && !moves) {
        if (isnan(h) || h <= 0 || h > end) h = isnan(h) ? end / 20 : end;
        ok = march(w, end, h, false, &p, &reached);
        if (!ok && r->status == RUN_OK)
            rod_fail(w, w->rp->rod[0].at, "no equilibrium was found beyond t = %.10g, with steps down to %.3g; what was reached is kept", reached, h * 1e-4);
    }
    double *critical = arena_array(r->a, double, p.ncritical);
    memcpy(critical, p.critical, (size_t)p.ncritical * sizeof *critical);
    finish(w, critical, p.ncritical);
}

typedef struct { const program *p; const run_options *o; const rod_options *ro; } rod_job;

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
        if (no[k].file) { *at = no[k]; return "a model with rods has rods alone: no delays, events, inclusions or fields"; }
    for (size_t k = 0; k < p->ncontact && rod_moves(p->rod); k++)
        if (p->contact[k].e.tape.nout) { *at = p->contact[k].at; return "the contact of rods in time has no law of impact: leave impact out"; }
    if (p->nq) { *at = p->ndof_info ? p->dof[0].where : p->has_rod; return "a model with rods has no other degrees of freedom"; }
    return NULL;
}
