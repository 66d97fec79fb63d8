/* sweeping: Moreau's time-stepping for M q'' = f + reactions.  A step is smooth (theta scheme, closed
   contacts solved at the velocity at its end, positions put back on gap = 0), and it is cut where a gap
   closes; there the impact law acts.  At an instant Gauss's principle gives accelerations.  Here: the start
   of a run and the run; sweep.h names the rest. */
#include <math.h>
#include <string.h>
#include <time.h>
#include "many.h"
#include "sweeping.h"
#include "sweep.h"

enum { OPTION_H, OPTION_THETA, OPTION_TOLERANCE };

/* ---- start ---- */
/* gaps, rows and closed contacts of the state as it is */
bool sweep_survey(sweep *w)
{
    system_t *s = w->s;
    system_at(s, w->t, w->q, w->v);
    if (!s->mass_constant || w->t == 0) {
        system_mass(s, w->M);
        if (!sweep_factor(w, w->M, w->t))
            return false;
    }
    sweep_sizes(w);
    for (size_t i = 0; i < w->ntrack; i++) {
        track *k = &w->track[i];
        contact *c = k->c;
        contact_gap(s, c);
        contact_rows(s, c, w->M, true);
        contact_laws(s, c, true);
        sweep_tolerances(w, k);
        if (c->fam->f->relation == REL_CLOSED)
            continue;
        double wrong = c->fam->f->relation == REL_BILATERAL ? fabs(c->gap) : -c->gap;
        if (!isfinite(c->gap))
            return sweep_fail(w, c->fam->f->at,
                              arena_printf(w->r->a, "the gap of '%s' is not finite at t = %s",
                                           contact_name(c, w->r->a), sweep_number(w, w->t)));
        if (wrong > 1e-6 * weighted(c->H, w->qmax, w->n) + 1e-12)
            return sweep_fail(w, c->fam->f->at,
                              arena_printf(w->r->a, "constraint '%s' does not hold at t = %s: its gap is %s",
                                           contact_name(c, w->r->a), sweep_number(w, w->t),
                                           sweep_number(w, c->gap)));
        if (wrong > w->r->max_penetration)
            w->r->max_penetration = wrong;
        double un = gap_rate(w, k, w->v);
        if (c->fam->f->relation == REL_GAP)
            k->closed = k->closed && c->gap <= k->tol_gap && fabs(un) <= k->tol_u;
        /* held from both sides: a rate of the gap is a shock */
        else
            k->closed = true, w->jolt |= fabs(un) > k->tol_u;
    }
    return true;
}

static double *numbers(sweep *w, size_t n)
{
    return arena_array(w->a, double, n ? n : 1);
}

static void track_new(sweep *w, track *k, contact *c)
{
    size_t n = (size_t)w->n, d = (size_t)c->fam->d, m = 1 + d;
    bool fixed = c->fam->rows_fixed;
    *k = (track){ .c = c,
                  .relation = c->fam->f->relation,
                  .normal = c->fam->f->relation != REL_CLOSED,
                  .rows_fixed = fixed,
                  .offset_fixed = c->fam->offset_fixed,
                  .still = c->fam->still,
                  .out = &w->r->contact[c->fam - w->s->family],
                  .stamp = -1,
                  .stamp_m = -1,
                  .stamp_a = -1,
                  .stamp_am = -1,
                  .cone_step = NAN };
    if (!fixed) {
        k->H0 = numbers(w, n);
        k->S0 = numbers(w, d * n);
        k->Hm = numbers(w, n);
        k->Sm = numbers(w, d * n);
    }
    k->s0m = numbers(w, d);
    k->G = numbers(w, m * n);
    k->Gm = numbers(w, m * n);
    k->A = numbers(w, m * m);
    k->Am = numbers(w, m * m);
    k->r = numbers(w, m);
    k->P = numbers(w, m);
    k->shock = numbers(w, m);
    k->closed = always(k);
}

static void sweep_rooms(sweep *w)
{
    system_t *s = w->s;
    size_t n = (size_t)w->n, nn = s->diagonal ? n : n * n, c = s->ncontact, m = (size_t)s->rows, d = 0;
    for (size_t i = 0; i < w->p->ncontact; i++)
        if ((size_t)s->family[i].d > d)
            d = (size_t)s->family[i].d;
    double **vectors[] = { &w->q,    &w->v,    &w->f,  &w->q1, &w->v1, &w->f1, &w->acc,
                           &w->qmax, &w->vmax, &w->x1, &w->x2, &w->x3, &w->x4 };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        *vectors[i] = numbers(w, n + MAX_SLIP);
    w->M = numbers(w, nn);
    if (!s->mass_constant) {
        w->M1 = numbers(w, nn);
        w->Mm = numbers(w, nn);
    }
    if (s->force_of_state || !s->mass_constant) {
        w->Fq = numbers(w, n * n);
        w->Fv = numbers(w, n * n);
        w->D = numbers(w, n * n);
        factor_init(&w->df, w->a, w->n, false);
    }
    w->d_step = NAN;
    w->stamp = w->stamp_m = 1;
    w->patience = MAX_AGAIN;
    w->ntrack = c;
    w->track = arena_array(w->a, track, c);
    for (size_t i = 0; i < c; i++)
        track_new(w, &w->track[i], &s->contact[i]);
    w->act = arena_array(w->a, track *, c);
    w->back = arena_array(w->a, track *, c);
    w->who = arena_array(w->a, bool, c);
    w->perm = arena_array(w->a, int, c);
    w->cone = arena_array(w->a, cone, c);
    w->W = numbers(w, m * m);
    w->b = numbers(w, m);
    w->rr = numbers(w, m);
    w->u = numbers(w, m);
    w->dir = numbers(w, m);
    w->more = numbers(w, c * c + 2 * c);
    w->local = numbers(w, CONE_WORK * d * (d + 4) + 8);
    w->work = contact_work_new(w->a, (int)c, s->rows, (int)d);
}

/* A state that does not obey its constraints at once is thrown into them by a shock at t = 0. */
static bool begin(sweep *w)
{
    system_start(w->s, w->q, w->v);
    w->r->note = system_start_note(w->s, w->r->a);
    if (w->p->delay) {
        w->s->past = samples_new(w->a, w->p, w->r->param, w->q, w->h);
        w->s->past_late = samples_for_forces(w->p);
        samples_add(w->s->past, 0, w->q, w->v);
    }
    if (!sweep_survey(w) || !sweep_rates(w))
        return false;
    memcpy(w->f1, w->f, (size_t)w->n * sizeof *w->f);
    if (!sweep_meet(w))
        return false;
    if (w->jolt) {
        w->jolt = false;
        if (!sweep_shock(w))
            return false;
    }
    w->t1 = w->t;
    if (w->p->nevent) {
        memcpy(w->q1, w->q, (size_t)w->n * sizeof *w->q);
        memcpy(w->v1, w->v, (size_t)w->n * sizeof *w->v);
        if (sweep_rise(w, false)) {
            sweep_rise(w, true);
            if (!sweep_fire(w))
                return false;
        }
    }
    return true;
}

/* ---- the run ---- */
static bool ask(sweep *w, double done)
{
    if (!w->o->progress || !w->o->progress(w->o->ud, done))
        return false;
    w->r->status = RUN_INTERRUPTED;
    return true;
}

static bool past_read(sweep *w)
{
    span at;
    const char *why = w->s->past ? samples_error(w->s->past, &at) : NULL;
    return why ? sweep_fail(w, at, why) : true;
}

static void march(sweep *w)
{
    double T = w->o->duration, every = w->o->every, h = w->h;
    int64_t steps = (int64_t)ceil(T / h - 1e-9);
    /* steps between questions: few where they take long */
    int64_t look = 1024 / (int64_t)(w->s->ncontact + 1) + 1;
    double last = 0;
    if (steps < 1)
        steps = 1;
    double kept = every > h ? T / every + 2 : (double)steps + 2;
    results_reserve(w->r, kept < 4e6 ? (int64_t)kept : 4000000);
    for (int64_t i = 1; i <= steps; i++) {
        double begin_t = w->t, end = i == steps ? T : (double)i * h;
        if (!sweep_advance(w, end) || !past_read(w)) {
            w->r->t_end = w->t;
            return;
        }
        if (!w->stopped)
            w->t = end;
        w->r->steps = i;
        bool keep = i == steps || w->stopped || !(every > 0) || w->t - last >= every * (1 - 1e-9);
        if (keep) {
            double over = w->t > begin_t ? 1 / (w->t - begin_t) : 0;
            if (!sweep_sample(w, over, false))
                break;
            last = w->t;
        }
        w->r->t_end = w->t;
        if (w->stopped) {
            w->r->status = RUN_STOPPED;
            return;
        }
        if (i % look == 0 && ask(w, (double)i / (double)steps))
            return;
    }
}

static void march_dense(sweep *w)
{
    const char *why = NULL;
    results *r = w->r;
    w->s = system_new(r->a, w->p, r->param, false, &why, &r->where);
    if (!w->s) {
        sweep_fail(w, r->where, why);
        return;
    }
    /* a force that reads the past at times that hang on the state depends on it, if not linearly */
    if (w->p->delay && delay_of_state(w->p->delay)) {
        w->s->force_of_state = true;
        w->s->jacobian_constant = false;
    }
    w->linear = w->s->mass_constant && (!w->s->force_of_state || w->s->jacobian_constant);
    for (size_t i = 0; i < w->p->ncontact; i++)
        w->linear &= w->s->family[i].rows_fixed;
    sweep_rooms(w);
    sweep_events(w);
    w->quick = sweep_quick_fits(w);
    if (begin(w) && sweep_sample(w, 0, true) && w->o->duration > 0 && !w->stopped)
        march(w);
    if (w->stopped && r->status == RUN_OK)
        r->status = RUN_STOPPED;
    if (!r->solver)
        r->solver = "none needed";
}

void sweeping_steps(const program *p, const run_options *o, const stepping *how, results *r)
{
    struct timespec a, b;
    sweep *w = arena_make(r->a, sweep);
    size_t contacts = program_contacts(p);
    clock_gettime(CLOCK_MONOTONIC, &a);
    *w = (sweep){ .p = p,
                  .o = o,
                  .r = r,
                  .a = r->a,
                  .n = p->nq,
                  .theta = how->theta,
                  .h = how->h,
                  .tol = how->tolerance,
                  .stiffness = how->stiffness };
    r->backend = how->name;
    r->status = RUN_OK;
    r->duration = o->duration;
    if (!(w->h > 0))
        w->h = o->duration < 1 && o->duration > 0 ? o->duration / 1000 : 1e-3;
    if (!(w->tol > 0))
        w->tol = contacts <= 100 ? 1e-12 : 1e-8;
    stepping given = { w->h, w->theta, w->tol, w->stiffness, how->name };
    if (contacts > DENSE_CONTACTS && w->stiffness != 0)
        sweep_fail(w, SPAN_NONE, "auglag runs dynamics with up to 400 contacts; use sweeping()");
    else if (contacts > DENSE_CONTACTS && many_run(p, o, r, &given, false))
        ;
    else if (contacts > CHAIN_CONTACTS && contacts <= DENSE_CONTACTS && w->stiffness == 0 && !p->delay &&
             many_run(p, o, r, &given, true))
        ;
    else
        march_dense(w);
    clock_gettime(CLOCK_MONOTONIC, &b);
    r->seconds = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
}

static void sweeping_run(const program *p, const run_options *o, results *r)
{
    sweeping_steps(
        p, o,
        &(stepping){ o->value[OPTION_H], o->value[OPTION_THETA], o->value[OPTION_TOLERANCE], 0, "sweeping" },
        r);
}

static const char *sweeping_refuse(const program *p, span *at)
{
#define REFUSE(what, text)  \
    do {                    \
        if (p->what.file) { \
            *at = p->what;  \
            return text;    \
        }                   \
    } while (0)
    if (p->delay && program_contacts(p) > DENSE_CONTACTS)
        REFUSE(has_delay, "sweeping runs delays with up to 400 contacts");
    REFUSE(has_inclusion, "sweeping does not run inclusions; use inclusion()");
    REFUSE(has_field, "sweeping does not solve fields; use vim(), penalty() or active_set()");
    REFUSE(has_rod, "sweeping does not solve rods; use auglag()");
#undef REFUSE
    return NULL;
}

static const backend_option sweeping_options[] = {
    { "h", OPT_REAL, NAN, 1e-300, INFINITY, NULL,
      "time step; 1e-3, or a thousandth of a run shorter than 1" },
    { "theta", OPT_REAL, 0.5, 0, 1, NULL,
      "weight of the end of the step in forces and positions: 1/2 trapezoidal, 1 implicit, 0 explicit" },
    { "tolerance", OPT_REAL, NAN, 1e-15, 1, NULL,
      "of the contact problem; 1e-12 up to 100 contacts, else 1e-8" },
    OPTION_EVERY,
};
const backend backend_sweeping = {
    .name = "sweeping",
    .doc = "Moreau's time-stepping: contact, friction and impacts",
    .option = sweeping_options,
    .noption = sizeof sweeping_options / sizeof *sweeping_options,
    .built = true,
    .refuse = sweeping_refuse,
    .run = sweeping_run,
};
