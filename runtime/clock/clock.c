#include "later.h"
#include <math.h>
#include <string.h>
#include "base/budget.h"
#include "base/whole.h"
#include "base/tolerances.h"

/* ---- how a run ends ---- */
bool results_fail(results *r, span at, const char *message)
{
    if (r->status == RUN_FAILED)
        return false;
    r->status = RUN_FAILED;
    r->message = message;
    r->where = at;
    return false;
}

void results_unfail(results *r)
{
    if (r->status != RUN_FAILED)
        return;
    r->status = RUN_OK;
    r->message = NULL;
}

bool run_interrupted(const run_options *o, results *r, double done)
{
    if (r->status != RUN_INTERRUPTED && o->progress && o->progress(o->ud, done))
        r->status = RUN_INTERRUPTED;
    return r->status == RUN_INTERRUPTED;
}

/* ---- the books ---- */

void books_open(books *b, double kinetic, double potential)
{
    b->kinetic0 = kinetic;
    b->potential0 = potential;
    b->top = fabs(kinetic);
    b->open = true;
}

void books_enter(books *b, results *r, int64_t at, const energies *e)
{
    if (at == 0 && !b->open) {
        b->kinetic0 = e->kinetic;
        b->potential0 = e->potential;
    }
    r->drift[at] = e->unaudited ? 0 : books_audit(b, e);
    r->power_balance = books_balance(b);
    r->energy[at] = e->shown + e->potential;
    r->dissipated[at] = b->dissipated;
    r->work[at] = b->of_all ? b->work + (e->potential - b->potential0) : b->work;
}

/* ---- samples ---- */
bool clock_sample(run_clock *c, double t)
{
    results *r = c->r;
    energies e = { 0 };
    int64_t before = r->samples, at = results_sample(r);
    r->t[at] = t;
    if (!c->with->sample(c->of, c, at, &e)) {
        r->samples = before;
        return false;
    }
    c->last = t;
    r->count.steps = c->step; /* where a run is cut off, these are the steps to its last sample */
    if (!later_makes(r, PART_ENERGY)) {
        books_enter(&c->books, r, at, &e);
        return true;
    }
    r->work[at] = c->books.work;
    r->dissipated[at] = c->books.dissipated;
    return true;
}

int64_t clock_room(run_clock *c)
{
    return results_sample(c->r);
}

static bool at_end(const run_clock *c)
{
    return c->rule == STEPS_EQUAL ? c->step >= c->steps : !(c->t < c->end * (1 - c->near));
}

static double samples_apart(const run_clock *c)
{
    return c->sample_all || !(c->o->every > 0) ? 0 : c->o->every * (1 - STEP_SAME);
}

/* at intervals, and where the run ends */
static bool sample_due(const run_clock *c)
{
    return c->t - c->last >= c->apart || at_end(c) || c->stopped;
}

static void samples_reserve(run_clock *c)
{
    enum { MOST = 4000000 };
    const double NUMBERS = 2e8; /* samples in a file get room as needed */
    double every = c->sample_all ? 0 : c->o->every;
    double kept = c->end / fmax(c->h, every) + 2;
    if (c->rule == STEPS_OWN || kept * c->r->prog->nq >= NUMBERS)
        return;
    if (kept < MOST)
        later_begin(c, kept);
    results_reserve(c->r, whole_clamp(kept, 0, MOST));
}

/* ---- steps ---- */
double clock_steps(double T, double h)
{
    double n = T / h;
    return fmax(1, ceil(n - fmax(STEP_SAME, STEPS_ROUNDED * n)));
}

enum { EASY = 2 }; /* steps after which the next is longer */

bool clock_may_refuse(const run_clock *c)
{
    if (c->rule == STEPS_EQUAL)
        return c->depth < c->halves;
    return c->rule == STEPS_OWN || c->taken / 2 >= STEP_SHORTEST * c->h;
}

/* to the given time; a refused step is another one over half the time */
static step_outcome step_cut(run_clock *c, double h, double to, int depth)
{
    c->depth = depth;
    step_outcome out = c->with->step(c->of, c, h, to);
    if (out == STEP_DONE)
        c->t = to;
    if (out != STEP_REFUSED || !clock_may_refuse(c))
        return out;
    double mid = c->t + h / 2;
    out = step_cut(c, h / 2, mid, depth + 1);
    return out == STEP_DONE ? step_cut(c, to - mid, to, depth + 1) : out;
}

/* undivided steps have the same size to the last bit, so that data that depend on it are kept */
static step_outcome step_equal(run_clock *c)
{
    int64_t i = c->step + 1;
    double to = i == c->steps ? c->end : clock_time(c, i), h = to - c->t;
    if (fabs(h - c->h) <= STEP_SAME * c->h)
        h = c->h;
    return step_cut(c, h, to, 0);
}

static step_outcome step_halved(run_clock *c)
{
    double h = c->t + c->size > c->end * (1 - STEP_SAME) ? c->end - c->t : c->size;
    c->taken = h;
    step_outcome out = c->with->step(c->of, c, h, c->t + h);
    if (out == STEP_REFUSED && clock_may_refuse(c)) {
        c->size = c->taken / 2;
        c->easy = 0;
    }
    if (out != STEP_DONE)
        return out;
    c->t += c->taken;
    if (c->easy < EASY)
        c->easy++;
    if (c->easy == EASY && c->size < c->h) {
        c->size = fmin(2 * c->size, c->h);
        c->easy = 0;
    }
    return out;
}

static step_outcome step_one(run_clock *c)
{
    if (c->rule == STEPS_EQUAL)
        return step_equal(c);
    if (c->rule == STEPS_HALVED)
        return step_halved(c);
    return c->with->step(c->of, c, c->end - c->t, c->end);
}

/* ---- progress and interruption ---- */
/* The clock of the machine is read after a stretch of plain steps and after a few others. Their number is
   adapted to their duration: a step may take nanoseconds or seconds. No result depends on this. */
enum { PACE_STEPS = 16, PACE_PLAIN = 1 << 20 };
#define PACE_STRETCH (1 * MILLISECOND) /* a stretch takes that long, about */
#define PACE_ASK     (5 * MILLISECOND) /* between checks for progress */

static void pace_read(run_clock *c, double now)
{
    struct pace *p = &c->pace;
    p->quiet = 0;
    p->read = now;
    if (c->look || now - p->asked >= PACE_ASK) {
        p->asked = now;
        run_interrupted(c->o, c->r, c->t / c->end);
    }
}

static void pace_start(run_clock *c)
{
    c->pace = (struct pace){ .steps = c->look ? c->look : 1, .stretch = 1, .asked = -INFINITY };
    c->pace.read = clock_seconds();
}

/* after steps that are not plain */
static void pace_after_steps(run_clock *c)
{
    struct pace *p = &c->pace;
    if (p->quiet < p->steps)
        return;
    double now = clock_seconds();
    if (!c->look)
        p->steps = now - p->read > PACE_STRETCH ? 1 : p->steps < PACE_STEPS ? 2 * p->steps : PACE_STEPS;
    pace_read(c, now);
}

/* after plain steps, `whole` if all that were wanted were taken */
static void pace_after_plain(run_clock *c, int64_t taken, bool whole)
{
    struct pace *p = &c->pace;
    double now = clock_seconds(), each = (now - p->read) / (double)taken;
    if (each * (double)p->stretch > 2 * PACE_STRETCH)
        p->stretch = whole_clamp(PACE_STRETCH / each, 1, PACE_PLAIN);
    else if (whole && p->stretch < PACE_PLAIN)
        p->stretch *= 2;
    pace_read(c, now);
}

/* Plain steps, up to the next check for progress or the next checkpoint; the end of the run has a separate
   step. False: there was none. */
static bool plain_steps(run_clock *c)
{
    int64_t from = c->step, most = c->steps - 1 - c->step;
    if (!c->with->plain || c->rule != STEPS_EQUAL || c->own_samples || most <= 0)
        return false;
    int64_t stretch = c->look ? c->look : c->pace.stretch;
    if (most > stretch)
        most = stretch;
    if (c->o->checkpoint && c->o->checkpoint->to)
        most = 1;
    c->with->plain(c->of, c, most);
    int64_t taken = c->step - from;
    c->r->count.plain += taken;
    if (taken == 0)
        return false;
    pace_after_plain(c, taken, taken == stretch);
    return true;
}

/* A step and its bookkeeping. False: the run is over. */
static bool tick(run_clock *c)
{
    results *r = c->r;
    if (plain_steps(c)) {
        r->count.steps = c->step;
        r->t_end = c->t;
        return true;
    }
    step_outcome out = step_one(c);
    c->pace.quiet++;
    if (out == STEP_FAILED || (out == STEP_REFUSED && !clock_may_refuse(c))) {
        r->t_end = c->t;
        return false;
    }
    if (out == STEP_REFUSED)
        return true;
    c->stopped = out == STEP_STOPPED;
    r->count.steps = ++c->step;
    r->t_end = c->t;
    if (!c->own_samples && sample_due(c) && !clock_sample(c, c->t))
        return false;
    return !c->stopped;
}

/* ---- checkpoints ---- */
/* the run that a state belongs to; no other run can use it */
static void identity_keep(run_clock *c, run_state *s)
{
    const results *r = c->r;
    const run_options *o = c->o;
    int64_t run = o->checkpoint ? o->checkpoint->run : 0, was = run, hash = (int64_t)r->prog->hash;
    state_i64(s, "run", &run, 1);
    if (run != was)
        state_wrong(s, "it belongs to run %lld of its file, and this is run %lld", (long long)run,
                    (long long)was);
    state_same_text(s, "version", o->checkpoint ? o->checkpoint->version : "",
                    "it was written by another version of the program");
    state_i64(s, "program", &hash, 1);
    if (hash != (int64_t)r->prog->hash)
        state_wrong(s, "it belongs to another model, or the model has changed");
    state_same_text(s, "backend", r->backend, "it belongs to a run with another backend");
    state_same_f64(s, "parameters", r->param, (size_t)r->prog->nparam,
                   "it belongs to a run with other parameters");
    state_same_f64(s, "options", o->value, MAX_OPTIONS,
                   "it belongs to a run with other options of the backend");
    for (int k = 0; k < MAX_OPTIONS; k++)
        state_same_text(s, "word", o->word[k], "it belongs to a run with other options of the backend");
}

void clock_keep(void *of, run_state *s)
{
    run_clock *c = of;
    books *b = &c->books;
    if (!c->any_run)
        identity_keep(c, s);
    double now[] = { c->t, c->last, c->size },
           book[] = { b->work, b->dissipated, b->kinetic0, b->potential0, b->top, b->worst };
    int64_t steps = c->step;
    state_f64(s, "clock", now, 3);
    state_f64(s, "books", book, 6);
    state_i64(s, "steps", &steps, 1);
    state_int(s, "easy", &c->easy, 0, EASY);
    state_flags(s, "stopped", &c->stopped, 1);
    if (state_reads(s) && state_ok(s)) {
        c->t = now[0], c->last = now[1], c->size = now[2];
        *b = (books){ book[0], book[1], book[2], book[3], book[4], book[5], true, b->of_all };
        c->step = steps;
        if (!(c->t >= 0 && c->t <= c->end) || steps < 0)
            state_wrong(s, "it is at t = %g, and this run ends at t = %g", c->t, c->end);
    }
    results_keep(c->r, s);
    if (state_ok(s))
        c->with->keep(c->of, s);
}

static void checkpoint_write(run_clock *c)
{
    const checkpoint *k = c->o->checkpoint;
    if (!k || !k->to || !c->with->keep || c->r->disk.io)
        return;
    c->r->disk.io = state_save_file(c->r->a, k->to, clock_keep, c);
    if (k->time > 0)
        c->next_time = (floor(c->t / k->time + STEP_SAME) + 1) * k->time;
    if (k->seconds > 0)
        c->next_seconds = clock_seconds() + k->seconds;
}

static bool checkpoint_due(const run_clock *c)
{
    const checkpoint *k = c->o->checkpoint;
    if (!k || !k->to)
        return false;
    return (k->time > 0 && c->t >= c->next_time) || (k->seconds > 0 && clock_seconds() >= c->next_seconds);
}

static void checkpoint_begin(run_clock *c)
{
    const checkpoint *k = c->o->checkpoint;
    if (!k)
        return;
    c->next_time = k->time > 0 ? (floor(c->t / k->time + STEP_SAME) + 1) * k->time : INFINITY;
    c->next_seconds = k->seconds > 0 ? clock_seconds() + k->seconds : INFINITY;
}

/* the bytes of the file are released after reading */
static void read_from(results *r, const void *ud, arena *scratch)
{
    run_clock *const *c = ud;
    const char *why = state_load_file(scratch, (*c)->o->checkpoint->from, clock_keep, *c);
    if (!why)
        return;
    r->disk.io = arena_strdup(r->a, why);
    r->samples = 0;
    results_fail(r, SPAN_NONE, r->disk.io);
}

static bool checkpoint_read(run_clock *c)
{
    if (!c->with->keep)
        return results_fail(c->r, SPAN_NONE, c->r->disk.io = "the state of this run cannot be restored");
    results_scratch(c->r, read_from, &c);
    return c->r->status == RUN_OK;
}

static void number_keep(void *of, run_state *s)
{
    int64_t *run = of;
    state_i64(s, "run", run, 1);
    if (state_ok(s) && *run < 1)
        state_wrong(s, "it belongs to no run");
    state_skip(s);
}

const char *checkpoint_run(arena *a, const char *path, int64_t *run)
{
    return state_load_file(a, path, number_keep, run);
}

/* ---- the run ---- */
static void march(run_clock *c)
{
    pace_start(c);
    while (!at_end(c) && c->r->status == RUN_OK && tick(c)) {
        pace_after_steps(c);
        if (checkpoint_due(c) && !at_end(c))
            checkpoint_write(c);
    }
}

static bool begin(run_clock *c)
{
    if (!c->with->start(c->of, c) || c->r->status != RUN_OK)
        return false;
    c->size = c->h;
    c->apart = samples_apart(c);
    if (c->rule == STEPS_EQUAL && c->end > 0 &&
        !whole_number(clock_steps(c->end, c->h), 1, WHOLE_MAX, &c->steps))
        return results_fail(c->r, SPAN_NONE, "the run would take too many steps");
    if (c->end > 0)
        samples_reserve(c);
    if (!c->own_samples && !clock_sample(c, 0))
        return false;
    if (c->o->checkpoint && c->o->checkpoint->from)
        return checkpoint_read(c);
    return true;
}

double clock_default_step(results *r, double duration)
{
    r->count.default_h = duration > 0 ? fmin(STEP_DEFAULT, duration / 1000) : STEP_DEFAULT;
    return r->count.default_h;
}

void clock_init(run_clock *c, const stepper *with, void *of, const run_options *o, results *r)
{
    *c = (run_clock){ .o = o, .r = r, .with = with, .of = of, .end = o->duration };
}

void clock_run(const stepper *with, void *of, const run_options *o, results *r)
{
    double began = clock_seconds();
    run_clock c;
    clock_init(&c, with, of, o, r);
    r->status = RUN_OK;
    r->duration = o->duration;
    bool begun = begin(&c);
    checkpoint_begin(&c);
    if (begun && c.end > 0 && !c.stopped)
        march(&c);
    if (begun && r->status != RUN_FAILED && !r->disk.full)
        checkpoint_write(&c);
    if (c.stopped && r->status == RUN_OK)
        r->status = RUN_STOPPED;
    later_audit(r);
    if (with->finish)
        with->finish(of, &c);
    r->seconds = clock_seconds() - began;
}

/* ---- a run in pieces ---- */
bool clock_open(run_clock *c, const stepper *with, void *of, const run_options *o, results *r)
{
    enum { ROOM = 2 }; /* the initial sample, and the current one */
    clock_init(c, with, of, o, r);
    c->end = c->apart = INFINITY;
    r->status = RUN_OK;
    r->duration = INFINITY;
    if (!with->start(of, c) || r->status != RUN_OK)
        return false;
    c->size = c->h;
    if (c->rule != STEPS_EQUAL)
        return results_fail(r, SPAN_NONE,
                            "this backend chooses its own steps, so it does not support "
                            "stepping");
    results_reserve(r, ROOM);
    return true;
}

/* the end of the next step on the way to that time, which becomes a multiple of h where it is one */
static double piece_end(run_clock *c, double *to)
{
    double grid = clock_time(c, c->step + 1);
    if (fabs(*to - grid) <= STEP_SAME * c->h)
        *to = grid;
    return grid <= *to ? grid : *to;
}

static bool piece_plain(run_clock *c, double to)
{
    int64_t from = c->step, count = whole_clamp(floor((to - c->t) / c->h + STEP_SAME), 0, 1 << 20);
    if (!c->with->plain || count == 0)
        return false;
    c->with->plain(c->of, c, count);
    c->r->count.plain += c->step - from;
    return c->step > from;
}

int64_t clock_look(run_clock *c, energies *e)
{
    results *r = c->r;
    int64_t at = c->t > 0;
    r->t[at] = c->t;
    *e = (energies){ 0 };
    return c->with->sample(c->of, c, at, e) ? at : -1;
}

step_outcome clock_advance(run_clock *c, double to)
{
    results *r = c->r;
    step_outcome out = STEP_DONE;
    for (size_t i = 0; i < r->prog->ncontact; i++)
        r->contact[i].impacts.n = 0;
    while (out == STEP_DONE && c->t < to) {
        double end = piece_end(c, &to), h = end - c->t;
        if (!(h > 0))
            break;
        if (piece_plain(c, to))
            continue;
        if (fabs(h - c->h) <= STEP_SAME * c->h)
            h = c->h;
        out = step_cut(c, h, end, 0);
        if (out == STEP_DONE && end == clock_time(c, c->step + 1))
            c->step++;
        energies seen;
        if (out == STEP_DONE && c->look_each && clock_look(c, &seen) < 0)
            out = STEP_FAILED;
    }
    r->count.steps = c->step;
    r->t_end = c->t;
    c->stopped = out == STEP_STOPPED;
    return out;
}
