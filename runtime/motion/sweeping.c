/* sweeping: Moreau's time-stepping for M q'' = f + reactions. A step is smooth (theta scheme, closed contacts
   solved at the velocity at its end, positions corrected to gap = 0), and it is cut where a gap closes; the
   impact law acts there. Accelerations at an instant follow from Gauss's principle. This file contains the
   start of a run and the run; sweep.h lists the rest. */
#include <math.h>
#include <string.h>
#include "sweeping.h"
#include "sweep.h"
#include "base/tolerances.h"
#include "sweep_emit.h"

enum { OPTION_H, OPTION_THETA, OPTION_TOLERANCE, OPTION_KEEP, OPTION_CUT, OPTION_ERRORS, OPTION_NATIVE };
enum { UZAWA_CONTACTS = 400 }; /* the largest problem for which W is stored as a matrix */

static const char *const cut_names[CUT_POLICIES] = { "auto", "always", "never" };

/* ---- start ---- */
bool sweep_holds(sweep *w, const contact_state *k)
{
    const contact *c = k->c;
    if (k->relation == REL_CLOSED)
        return true;
    if (!isfinite(*c->gap))
        return results_fail(w->r, c->fam->f->at,
                            arena_printf(w->r->a, "the gap of '%s' is not finite at t = %s",
                                         contact_name(c, w->r->a), sweep_number(w, w->t)));
    double wrong = k->relation == REL_BILATERAL ? fabs(*c->gap) : -*c->gap;
    double loose = w->contacts.starts && c->fam->f->pair.listed ? START_ROUNDED : GATE_LOOSE;
    if (!(wrong > loose * contact_size(c, c->H, w->size.qmax) + GATE_GAP_LEAST)) {
        if (wrong > w->r->max_penetration)
            w->r->max_penetration = wrong;
        return true;
    }
    return results_fail(w->r, c->fam->f->at,
                        arena_printf(w->r->a, "constraint '%s' does not hold at t = %s: its gap is %s",
                                     contact_name(c, w->r->a), sweep_number(w, w->t),
                                     sweep_number(w, *c->gap)));
}

/* Gaps, rows and closed contacts of the current state. */
bool sweep_survey(sweep *w)
{
    system_t *s = w->s;
    system_at(s, w->t, w->q, w->v);
    if (s->shapes)
        shapes_all(s->shapes, &s->in);
    if (!s->mass_constant || w->t == 0) {
        system_mass(s, w->M);
        if (!sweep_factor(w, w->M, w->t))
            return false;
    }
    sweep_sizes(w);
    w->size.ngrown = 0; /* all tolerances are computed here */
    if (!sweep_near(w, w->h, w->v, NEAR_AHEAD))
        return false;
    system_at(s, w->t, w->q, w->v);
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        contact_state *k = w->contacts.state[i];
        contact *c = k->c;
        contact_gap(s, c);
        contact_rows(s, c, w->M, true);
        contact_laws(s, c, true);
        row_note(&w->contacts.table.row[i], k);
        sweep_tolerances(w, k);
        k->now.held = false;
        if (!sweep_holds(w, k))
            return false;
        if (k->relation == REL_CLOSED)
            continue;
        double un = gap_rate(k, w->v);
        bool *is = &w->contacts.table.closed[i];
        if (!always(k))
            *is = *is && *c->gap <= w->contacts.table.tol_gap[i] && fabs(un) <= w->contacts.table.tol_u[i];
        /* an equality: a nonzero rate of the gap is a shock */
        else if (w->contacts.table.bounds[i]) {
            *is = un <= w->contacts.table.tol_u[i];
            w->jolt |= un < -w->contacts.table.tol_u[i];
        } else {
            *is = true;
            w->jolt |= fabs(un) > w->contacts.table.tol_u[i];
        }
    }
    return true;
}

static double *numbers(sweep *w, size_t n)
{
    return arena_array(w->a, double, n ? n : 1);
}

static void bodies_room(sweep *w)
{
    w->crowd.bodies = system_bodies(w->s, w->a);
    if (!w->crowd.bodies)
        return;
    w->crowd.place = arena_array(w->a, int, w->n);
    for (int i = 0; i < w->n; i++)
        w->crowd.place[i] = -1;
    w->crowd.body_dofs = w->hand.dofs_most < w->n / MATRIX_GROUP ? MATRIX_GROUP * w->hand.dofs_most : w->n;
}

static void sweep_rooms(sweep *w)
{
    system_t *s = w->s;
    size_t n = (size_t)w->n, masses = s->mass_shape.count, all = s->step_shape.count, d = 0;
    for (size_t i = 0; i < w->p->ncontact; i++)
        if ((size_t)s->family[i].d > d)
            d = (size_t)s->family[i].d;
    double **vectors[] = { &w->q,
                           &w->v,
                           &w->f,
                           &w->q1,
                           &w->v1,
                           &w->f1,
                           &w->acc,
                           &w->size.qmax,
                           &w->size.vmax,
                           &w->size.light,
                           &w->room.x1,
                           &w->room.x2,
                           &w->room.x3,
                           &w->room.x4,
                           &w->room.free,
                           &w->room.spread,
                           &w->size.sizes,
                           &w->crowd.free,
                           &w->crowd.root,
                           &w->account.used,
                           &w->way.lumped,
                           &w->account.driving,
                           &w->account.driving1 };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        *vectors[i] = numbers(w, n + MAX_SLIP);
    w->M = numbers(w, masses);
    if (!s->mass_constant) {
        w->M1 = numbers(w, masses);
        w->Mm = numbers(w, masses);
    }
    if (s->force_of_state || !s->mass_constant) {
        w->matrix.Fq = numbers(w, all);
        w->matrix.Fv = numbers(w, all);
        w->matrix.D = numbers(w, all);
        factor_shape(&w->matrix.df, w->a, &s->step_shape);
    }
    for (size_t i = 0; i < w->p->rotations.n; i++)
        for (int k = 0; k < 3; k++)
            w->size.qmax[w->p->rotations.at[i] + k] =
                1; /* small angles are 0 at their base, so their values give no scale */
    w->size.grown = arena_array(w->a, int, n);
    w->size.has_grown = arena_array(w->a, bool, n);
    w->matrix.d_step = NAN;
    w->matrix.stamp = w->matrix.stamp_m = 1;
    w->policy.patience = MAX_AGAIN;
    sweep_states(w);
    sweep_open_new(w);
    w->way.by_end = arena_array(w->a, uint8_t, n);
    w->way.by_end_since = arena_array(w->a, int, n);
    w->hand.rows_most = 1 + (int)d;
    w->hand.dofs_most = 1;
    for (size_t i = 0; i < w->p->ncontact; i++) {
        int own = s->family[i].dof ? s->family[i].ndof : w->n;
        if (own > w->hand.dofs_most)
            w->hand.dofs_most = own;
    }
    impulses_init(&w->crowd.list, w->a, w->scratch, w->n);
    bodies_room(w);
    sweep_room(w, 1, 1 + (int)d);
    w->hand.local = numbers(w, CONE_WORK * d * (d + 4) + 8);
}

/* Contacts that meet take part in a shock, and so do equalities whose gap has a nonzero rate. */
static bool throw_in(sweep *w)
{
    if (!sweep_meet(w))
        return false;
    bool jolt = w->jolt;
    w->jolt = false;
    return !jolt || sweep_shock(w);
}

static bool any_listed(const program *p)
{
    for (size_t f = 0; f < p->ncontact; f++)
        if (p->contact[f].pair.listed)
            return true;
    return false;
}

/* The name of the listed point with the largest overlap; NULL: none overlaps. */
static const char *deepest_listed(sweep *w)
{
    const contact *worst = NULL;
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        const contact *c = w->contacts.state[i]->c;
        if (c->fam->f->pair.listed && *c->gap < (worst ? *worst->gap : 0))
            worst = c;
    }
    return worst ? contact_name(worst, w->r->a) : NULL;
}

/* system_start does not know pairs of listed shapes. If they overlap only by the rounding of published data,
   they are moved apart here. */
static bool start_apart(sweep *w)
{
    double far = 0, dissipated = w->account.books->dissipated;
    w->contacts.starts = any_listed(w->p);
    if (!sweep_survey(w))
        return false;
    if (!w->contacts.starts)
        return true;
    w->contacts.starts = false;
    const char *name = deepest_listed(w);
    if (!name)
        return true;
    arena_pos mark = arena_mark(w->scratch);
    double *was = arena_array(w->scratch, double, w->n);
    vec_copy(was, w->q, w->n);
    if (!w->s->mass_constant) /* as after a step */
        memcpy(w->M1, w->M, w->s->mass_shape.count * sizeof *w->M);
    bool ok = sweep_part_shapes(w);
    for (int i = 0; i < w->n; i++)
        far = larger(far, fabs(w->q[i] - was[i]));
    arena_release(w->scratch, mark);
    w->account.books->dissipated = dissipated;
    if (far > 0) {
        w->r->max_penetration = 0;
        w->r->note = arena_printf(w->r->a, "initial values were moved by up to %.3g onto constraint '%s'",
                                  far, name);
    }
    return ok && sweep_survey(w);
}

/* If the initial rates violate constraints, a shock at t = 0 corrects them. */
static bool begin(sweep *w)
{
    span at;
    system_start(w->s, w->q, w->v);
    const char *wrong = system_start_error(w->s, &at);
    if (wrong)
        return results_fail(w->r, at, wrong);
    w->r->note = system_start_note(w->s, w->r->a);
    if (w->p->delay) {
        w->s->past = samples_new(w->a, w->p, w->r->param, w->q, w->s->base, w->h);
        w->s->past_late = samples_for_forces(w->p);
        samples_add(w->s->past, 0, w->q, w->v, w->s->base);
    }
    if (!start_apart(w) || !sweep_rates(w))
        return false;
    memcpy(w->f1, w->f, (size_t)w->n * sizeof *w->f);
    sweep_open_books(w);
    sweep_chain(w);
    sweep_balls_new(w);
    if (!throw_in(w))
        return false;
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
static bool past_read(sweep *w)
{
    span at;
    const char *why = w->s->past ? samples_error(w->s->past, &at) : NULL;
    return why ? results_fail(w->r, at, why) : true;
}

/* Moves the bases of rotations to about the middle of the next step. */
static bool sweep_centre(sweep *w, double h)
{
    double residual = w->r->residual;
    if (!w->s->base)
        return true;
    w->policy.trial = true;
    w->policy.effort = EFFORT_LITTLE;
    if (!w->fresh && !(w->fresh = sweep_gauss(w)))
        sweep_forget(w, residual);
    w->policy.trial = false;
    w->policy.effort = EFFORT_ALL;
    turns_centre(w->p, w->s->base, w->q, w->v, w->fresh ? w->acc : NULL, 0.5 * h);
    system_at(w->s, w->t, w->q, w->v);
    system_mass(w->s, w->M);
    if (!sweep_factor(w, w->M, w->t))
        return false;
    if (!w->s->force_constant)
        system_force(w->s, w->f);
    w->account.driving_known = false;
    w->hand.known.rows = -1;
    for (size_t i = 0; i < w->contacts.nstate; i++)
        /* for pairs of shapes they are computed when it is known what touches */
        if (!w->contacts.state[i]->rows_fixed && !w->contacts.state[i]->c->fam->f->pair.touch) {
            contact_rows(w->s, w->contacts.state[i]->c, w->M, false);
            row_note(&w->contacts.table.row[i], w->contacts.state[i]);
        }
    return true;
}

/* Sparse factors keep their pivots from one use to the next, but pivots are not part of a saved state. So in
   models that couple many dofs, for example those of bodies, each step starts without them. */
static bool forget_pivots(sweep *w)
{
    if (!sweep_forgets(w->p))
        return true;
    for (int k = 0; k < 2; k++)
        w->crowd.coupled_n[k] = -1;
    factor_free(&w->s->minv);
    factor_free(&w->matrix.df);
    w->matrix.d_step = NAN;
    w->hand.nact = 0;
    sweep_make_anew(w);
    return sweep_factor(w, w->M, w->t);
}

static step_outcome sweep_step(void *of, run_clock *c, double h, double end)
{
    sweep *w = of;
    w->account.step_from = w->t;
    if (!forget_pivots(w) || !sweep_centre(w, h) || !sweep_advance(w, end) || !past_read(w)) {
        c->t = w->t;
        return STEP_FAILED;
    }
    if (!w->watch.stopped) {
        w->t = end;
        return STEP_DONE;
    }
    c->t = w->t;
    return STEP_STOPPED;
}

static void sweep_close(sweep *w)
{
    sweep_native_close(w);
    system_close(w->s);
    factor_free(&w->matrix.df);
    factor_free(&w->hand.brake.df);
    mixed_free(w->crowd.coupled[0]);
    mixed_free(w->crowd.coupled[1]);
    mixed_free(w->putting.back_coupled);
}

/* A cascade consists of impacts at one instant, one after the other; whole steps have no such instant. */
static bool cascades_fit(sweep *w)
{
    for (size_t i = 0; i < w->p->ncontact; i++) {
        const contact_family *f = &w->p->contact[i];
        if (!f->cascade)
            continue;
        if (w->policy.cut == CUT_NEVER)
            return results_fail(
                w->r, f->at,
                arena_printf(w->r->a,
                             "simultaneous impacts of '%s' are a cascade, which cut = never cannot follow",
                             f->name));
        w->policy.cut = CUT_ALWAYS;
        w->r->cut = cut_names[CUT_ALWAYS];
    }
    return true;
}

/* All contacts except points of pairs of shapes, of which few touch. */
static int64_t contacts_of_one(const program *p)
{
    int64_t n = 0;
    for (size_t k = 0; k < p->ncontact; k++)
        if (!p->contact[k].pair.touch)
            n += index_members(&p->contact[k].over);
    return n;
}

static bool sweep_start(void *of, run_clock *c)
{
    const char *why = NULL;
    sweep *w = of;
    results *r = w->r;
    w->account.books = &c->books;
    c->h = w->h;
    if (w->stiffness != 0 && contacts_of_one(w->p) > UZAWA_CONTACTS)
        return results_fail(r, SPAN_NONE, "auglag runs dynamics with up to 400 contacts; use sweeping()");
    if (!cascades_fit(w))
        return false;
    storage how = w->hand.watch ? STORE_ROWS : STORE_SPARSE; /* problems that are recorded have rows */
    w->s = system_new(r->a, w->p, r->param, how, &why, &r->where);
    if (!w->s)
        return results_fail(r, r->where, why);
    /* a force that reads the past at times that depend on the state depends on the state, in general
       nonlinearly */
    if (w->p->delay && delay_of_state(w->p->delay)) {
        w->s->force_of_state = true;
        w->s->jacobian_constant = false;
    }
    w->linear = w->s->mass_constant && (!w->s->force_of_state || w->s->jacobian_constant);
    for (size_t i = 0; i < w->p->ncontact; i++)
        w->linear &= w->s->family[i].rows_fixed;
    for (size_t i = 0; i < w->p->ncontact; i++) {
        w->contacts.read |= w->p->contact[i].read_as > 0;
        w->contacts.feeds |= w->contacts.read || w->p->contact[i].fed;
    }
    w->linear &= !w->contacts.feeds;
    sweep_rooms(w);
    sweep_brake_new(w);
    sweep_islands_new(w);
    sweep_events(w);
    bool ok = begin(w);
    if (ok) {
        sweep_quick_new(w);
        sweep_lanes_new(w);
        sweep_fixed_new(w);
        c->later = sweep_offer_later(w);
        sweep_native_new(w, c);
    }
    c->stopped = w->watch.stopped;
    c->look_each = w->s->base && w->contacts.nstate > 0;
    return ok;
}

/* Stores for the results what touches at the end. */
static void shapes_leave(sweep *w)
{
    size_t n = 0;
    if (!w->s || !w->s->shapes)
        return;
    arena_pos mark = arena_mark(w->scratch);
    held_pair *held = arena_array(w->scratch, held_pair, w->contacts.nstate + 1);
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        const contact *c = w->contacts.state[i]->c;
        const contact_family *f = c->fam->f;
        if (f->pair.listed && c->index[index_of_point(f)] == 1)
            held[n++] = (held_pair){ f, c->member, c->index[f->over.n - 1] };
    }
    w->r->feature = shapes_kept(w->s->shapes, w->r->a, held, n);
    arena_release(w->scratch, mark);
}

static void sweep_finish(void *of, run_clock *c)
{
    sweep *w = of;
    shapes_leave(w);
    if (w->s && !c->r->solver)
        c->r->solver = "none needed";
}

/* ---- runs in pieces ---- */
static state_now sweep_now(void *of)
{
    sweep *w = of;
    return (state_now){ w->q, w->v, w->s->base };
}

/* A change of the state from outside counts as work. A state that violates its constraints is corrected by a
   shock, as at the start. */
static bool sweep_changed(void *of, run_clock *c, clock_change what)
{
    sweep *w = of;
    const books *b = &c->books;
    double shown, before = b->kinetic0 + b->potential0 + b->work - b->dissipated;
    system_params(w->s);
    if (what == CHANGE_READ)
        return true;
    if (what == CHANGE_STATE && w->s->past)
        samples_add(w->s->past, w->t, w->q, w->v, w->s->base);
    w->anew = true;
    bool ok = sweep_survey(w) && sweep_rates(w);
    w->anew = false;
    if (!ok)
        return false;
    memcpy(w->f1, w->f, (size_t)w->n * sizeof *w->f);
    if (what == CHANGE_STATE)
        w->account.books->work += sweep_kinetic(w, &shown) + sweep_potential(w) - before;
    if (what == CHANGE_STATE)
        w->watch.stopped = false;
    return throw_in(w) && past_read(w);
}

static void sweep_shut(void *of)
{
    sweep *w = of;
    sweep_close(w);
    arena_free(w->scratch);
}

static const stepper sweep_stepper = { .now = sweep_now,
                                       .changed = sweep_changed,
                                       .close = sweep_shut,
                                       .start = sweep_start,
                                       .step = sweep_step,
                                       .plain = sweep_quick,
                                       .sample = sweep_sample,
                                       .finish = sweep_finish,
                                       .keep = sweep_keep };

/* When a run is written as C, only its start is computed. */
static void emit_finish(void *of, run_clock *c)
{
    sweep *w = of;
    if (w->s && c->r->status == RUN_OK)
        sweep_emit_run(w, c, w->quick.emit);
}

static const stepper emit_stepper = {
    .start = sweep_start, .step = sweep_step, .sample = sweep_sample, .finish = emit_finish
};

/* Resources outside arenas are released even if memory runs out; then the error goes on to the owner of the
   results. */
static void run_whole(sweep *w)
{
    jmp_buf none, *owner = arena_on_oom(w->r->a, NULL);
    arena *volatile scratch = arena_new(arena_allocator(w->r->a), NULL);
    volatile bool full = false;
    if (!scratch || setjmp(none))
        full = true;
    else {
        arena_on_oom(w->r->a, &none);
        arena_on_oom(scratch, &none);
        w->scratch = scratch;
        w->hand.watch = w->o->watch;
        clock_run(w->quick.emit ? &emit_stepper : &sweep_stepper, w, w->o, w->r);
    }
    arena_on_oom(w->r->a, owner);
    w->hand.watch = NULL;
    sweep_close(w);
    arena_free(scratch);
    if (full && owner)
        longjmp(*owner, 1);
    if (full)
        results_fail(w->r, SPAN_NONE, "out of memory");
}

/* Do shapes touch in several points at once? There are more rows than a body has dofs, so forces are not
   unique. */
static bool several_points(const program *p)
{
    for (size_t k = 0; k < p->ncontact; k++)
        if (p->contact[k].slots)
            return true;
    return false;
}

static sweep *sweep_make(const program *p, const run_options *o, const stepping *how, results *r)
{
    sweep *w = arena_make(r->a, sweep);
    *w = (sweep){ .p = p,
                  .o = o,
                  .r = r,
                  .a = r->a,
                  .n = p->nq,
                  .theta = how->theta,
                  .h = how->h,
                  .tol = how->tolerance,
                  .stiffness = how->stiffness,
                  .policy.cut = how->cut,
                  .contacts.margin = NEAR_AHEAD,
                  .policy.wait_next = 4,
                  .policy.part_next = 2,
                  .quick.policy = how->emit ? NATIVE_NEVER : how->native,
                  .quick.emit = how->emit };
    r->backend = how->name;
    r->cut = cut_names[how->cut];
    if (!(w->h > 0))
        w->h = clock_default_step(r, o->duration);
    w->hand.tol_follows = !(w->tol > 0) && !several_points(p);
    if (!(w->tol > 0))
        w->tol = w->hand.tol_follows ? SOLVED_FEW : SOLVED_MANY;
    r->promised.tolerance = w->tol;
    return w;
}

void sweeping_steps(const program *p, const run_options *o, const stepping *how, results *r)
{
    sweep *w = sweep_make(p, o, how, r);
    run_options start = *o;
    if (w->quick.emit) {
        w->quick.emit->duration = o->duration;
        start.duration = 0;
        w->o = &start;
    }
    run_whole(w);
}

const struct stepper *sweeping_open(const program *p, const run_options *o, const stepping *how, results *r,
                                    void **of)
{
    sweep *w = sweep_make(p, o, how, r);
    jmp_buf *owner = arena_on_oom(r->a, NULL);
    arena_on_oom(r->a, owner);
    w->scratch = arena_new(arena_allocator(r->a), owner);
    if (!w->scratch && owner)
        longjmp(*owner, 1);
    *of = w;
    return w->scratch ? &sweep_stepper : NULL;
}

/* Both policies have the same words; `auto` is the first one. */
static int word_asked(const char *word)
{
    for (int k = 0; word && k < CUT_POLICIES; k++)
        if (strcmp(word, cut_names[k]) == 0)
            return k;
    return 0;
}

static stepping sweeping_how(const run_options *o)
{
    return (stepping){ .h = o->value[OPTION_H],
                       .theta = o->value[OPTION_THETA],
                       .tolerance = o->value[OPTION_TOLERANCE],
                       .name = "sweeping",
                       .cut = (cut_policy)word_asked(o->word[OPTION_CUT]),
                       .native = (native_policy)word_asked(o->word[OPTION_NATIVE]) };
}

static void sweeping_run(const program *p, const run_options *o, results *r)
{
    stepping how = sweeping_how(o);
    sweeping_steps(p, o, &how, r);
}

static const struct stepper *sweeping_pieces(const program *p, const run_options *o, results *r, void **of)
{
    stepping how = sweeping_how(o);
    return sweeping_open(p, o, &how, r, of);
}

void sweeping_emit(const program *p, const run_options *o, results *r, emitted_run *to)
{
    stepping how = sweeping_how(o);
    how.emit = to;
    sweeping_steps(p, o, &how, r);
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
    REFUSE(has_inclusion, "sweeping does not run inclusions; use inclusion()");
    REFUSE(has_field, "sweeping does not solve fields; use vim(), penalty() or active_set()");
    REFUSE(has_rod, "sweeping does not solve rods; use auglag()");
#undef REFUSE
    return NULL;
}

static const backend_option sweeping_options[] = {
    { "h", OPT_REAL, NAN, 1e-300, INFINITY, NULL,
      "time step; default 1e-3, or a thousandth of a run "
      "shorter than 1",
      KIND_ANY },
    { "theta", OPT_REAL, 0.5, 0, 1, NULL,
      "weight of the end of the step in forces and positions: 1/2 trapezoidal, 1 implicit, 0 explicit",
      KIND_ANY },
    { "tolerance", OPT_REAL, NAN, 1e-15, 1, NULL,
      "of the contact problem; default 1e-12 for up to 100 acting contacts, 1e-8 from 400 on, in between "
      "by their number; 1e-8 between shapes",
      KIND_ANY },
    OPTION_EVERY,
    { "cut", OPT_WORD, NAN, 0, 0, "auto|always|never",
      "whether a step is cut at impacts: as long as that costs little, island by island (auto), always, or "
      "never",
      KIND_ANY },
    OPTION_ERROR,
    { "native", OPT_WORD, NAN, 0, 0, "auto|always|never",
      "whether the plain steps of small models are compiled by the system's compiler: where that pays "
      "(auto), "
      "always, or never; the numbers are the same",
      KIND_ANY },
};
const backend backend_sweeping = {
    .name = "sweeping",
    .doc = "Moreau's time-stepping: contact, friction and impacts",
    .option = sweeping_options,
    .noption = sizeof sweeping_options / sizeof *sweeping_options,
    .built = true,
    .refuse = sweeping_refuse,
    .run = sweeping_run,
    .open = sweeping_pieces,
    .saves = sweep_saves,
};
