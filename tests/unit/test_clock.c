/* The clock with a stepper whose results are known: times of steps and samples, refused steps, interruption,
   failure, the books, and states as values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "clock/clock.h"

/* q grows by h in each step, so q is the sum of the steps that were taken. */
typedef struct toy {
    step_rule rule;
    double h;
    int halves;
    /* What it does. */
    double longest;   /* refuses longer steps */
    double refuse_at; /* refuses the step that starts there */
    double fail_at, stop_at;
    double shorter; /* the fraction of a halved step that it takes */
    double loss;    /* energy lost in each step that is not in the books */
    int wait;       /* microseconds that a step takes; 0: checks for progress after each step */
    /* What it records. */
    double q;
    double size[256];
    int steps, tries;
} toy;

static toy toy_new(step_rule rule, double h)
{
    return (toy){ .rule = rule,
                  .h = h,
                  .longest = INFINITY,
                  .refuse_at = -1,
                  .fail_at = INFINITY,
                  .stop_at = INFINITY,
                  .shorter = 1 };
}

static bool toy_start(void *of, run_clock *c)
{
    toy *w = of;
    c->rule = w->rule;
    c->h = w->h;
    c->halves = w->halves;
    c->look = w->wait == 0;
    c->near = 1e-12;
    w->q = 0;
    return true;
}

static step_outcome toy_step(void *of, run_clock *c, double h, double to)
{
    toy *w = of;
    w->tries++;
    if (c->t >= w->fail_at) {
        results_fail(c->r, SPAN_NONE, "it was to fail");
        results_fail(c->r, SPAN_NONE, "the second failure");
        return STEP_FAILED;
    }
    if (w->rule == STEPS_OWN) {
        h = fmin(w->h, to - c->t);
        c->t += h;
    }
    if (h > w->longest && fabs(c->t - w->refuse_at) < 1e-9) {
        if (clock_may_refuse(c))
            return STEP_REFUSED;
        results_fail(c->r, SPAN_NONE, "no step is short enough");
        return STEP_FAILED;
    }
    if (w->rule == STEPS_HALVED)
        h = c->taken = h * w->shorter;
    w->q += h;
    if (w->steps < 256)
        w->size[w->steps++] = h;
    c->books.work += h;
    if (to >= w->stop_at && w->rule != STEPS_OWN) {
        c->t = to;
        return STEP_STOPPED;
    }
    return STEP_DONE;
}

static bool toy_sample(void *of, run_clock *c, int64_t at, energies *e)
{
    toy *w = of;
    c->r->q[at] = w->q;
    c->r->v[at] = 1;
    c->r->acc[at] = 0;
    e->kinetic = e->shown = 1 + w->q * (1 - w->loss);
    return true;
}

/* Steps that take some time, with checks for progress between them. */
static step_outcome slow_step(void *of, run_clock *c, double h, double to)
{
    toy *w = of;
    (void)c;
    (void)h;
    (void)to;
    usleep((unsigned)w->wait);
    w->tries++;
    return STEP_DONE;
}

static void slow_plain(void *of, run_clock *c, int64_t count)
{
    toy *w = of;
    while (count-- > 0) {
        usleep((unsigned)w->wait);
        w->tries++;
        if (clock_plain(c, clock_time(c, c->step + 1)) && !clock_sample(c, c->t))
            return;
    }
}

static void toy_keep(void *of, run_state *s)
{
    toy *w = of;
    state_f64(s, "q", &w->q, 1);
    state_int(s, "toy steps", &w->steps, 0, 256);
    state_f64(s, "sizes", w->size, 256);
}

static const stepper toy_stepper = {
    .start = toy_start, .step = toy_step, .sample = toy_sample, .keep = toy_keep
};

static const stepper slow_stepper = { .start = toy_start, .step = slow_step, .sample = toy_sample };
static const stepper slow_plain_stepper = {
    .start = toy_start, .step = slow_step, .plain = slow_plain, .sample = toy_sample
};

typedef struct kit {
    arena *a;
    program p;
    results *r;
    run_options o;
    int asked, stop_asking;
    checkpoint k;
} kit;

static bool asked(void *ud, double done)
{
    kit *k = ud;
    assert_true(done >= 0 && done <= 1);
    return ++k->asked == k->stop_asking;
}

static void kit_start(kit *k)
{
    k->r = results_new(k->a, &k->p);
    k->r->backend = "toy";
    for (int i = 0; i < k->p.nparam; i++)
        k->r->param[i] = i + 1;
}

static kit *kit_new(double duration, double every)
{
    arena *a = arena_new(&allocator_libc, NULL);
    kit *k = arena_make(a, kit);
    k->a = a;
    k->p = (program){ .model = "toy", .nq = 1, .nparam = 2, .hash = 42 };
    k->o = (run_options){ .duration = duration, .every = every, .progress = asked, .ud = k };
    kit_start(k);
    return k;
}
static void kit_free(kit *k)
{
    results_close(k->r);
    arena_free(k->a);
}

/* ---- times ---- */
static void test_equal(void **unused)
{
    (void)unused;
    kit *k = kit_new(1, 0);
    toy w = toy_new(STEPS_EQUAL, 0.1);
    clock_run(&toy_stepper, &w, &k->o, k->r);
    assert_int_equal(k->r->status, RUN_OK);
    assert_int_equal(k->r->count.steps, 10);
    assert_int_equal(k->r->samples, 11);
    for (int i = 0; i <= 10; i++)
        assert_true(k->r->t[i] == (i == 10 ? 1 : i * 0.1));
    for (int i = 0; i < 10; i++)
        assert_true(w.size[i] == 0.1);
    assert_true(k->r->t_end == 1);
    kit_free(k);

    k = kit_new(1.05, 0);
    w = toy_new(STEPS_EQUAL, 0.1);
    clock_run(&toy_stepper, &w, &k->o, k->r);
    assert_int_equal(k->r->count.steps, 11);
    assert_true(k->r->t[11] == 1.05);
    assert_true(fabs(w.size[10] - 0.05) < 1e-12);
    kit_free(k);

    k = kit_new(0, 0);
    w = toy_new(STEPS_EQUAL, 0.1);
    clock_run(&toy_stepper, &w, &k->o, k->r);
    assert_int_equal(k->r->count.steps, 0);
    assert_int_equal(k->r->samples, 1);
    kit_free(k);
}

static void test_count(void **unused)
{
    (void)unused;
    assert_true(clock_steps(1, 0.1) == 10);
    assert_true(clock_steps(0.3, 0.1) == 3); /* 0.3/0.1 is slightly below 3 */
    assert_true(clock_steps(1e5, 1e-3) == 1e8);
    assert_true(clock_steps(1, 3) == 1);
    assert_true(clock_steps(1, 0.3) == 4);
}

static void test_every(void **unused)
{
    (void)unused;
    kit *k = kit_new(1, 0.25);
    toy w = toy_new(STEPS_EQUAL, 0.1);
    double want[] = { 0, 3 * 0.1, 6 * 0.1, 9 * 0.1, 1 };
    clock_run(&toy_stepper, &w, &k->o, k->r);
    assert_int_equal(k->r->samples, 5);
    for (int i = 0; i < 5; i++)
        assert_true(k->r->t[i] == want[i]);
    kit_free(k);
    /* samples as far apart as the steps: all steps are stored, in spite of rounding */
    k = kit_new(1, 0.1);
    w = toy_new(STEPS_EQUAL, 0.1);
    clock_run(&toy_stepper, &w, &k->o, k->r);
    assert_int_equal(k->r->samples, 11);
    kit_free(k);
}

static void test_own(void **unused)
{
    (void)unused;
    kit *k = kit_new(1, 0);
    toy w = toy_new(STEPS_OWN, 0.3);
    clock_run(&toy_stepper, &w, &k->o, k->r);
    assert_int_equal(k->r->count.steps, 4);
    assert_true(fabs(k->r->t[4] - 1) < 1e-15);
    assert_int_equal(k->r->status, RUN_OK);
    kit_free(k);
}

/* ---- refused steps ---- */
static void test_cut(void **unused)
{
    (void)unused;
    kit *k = kit_new(1, 0);
    toy w = toy_new(STEPS_EQUAL, 0.25);
    w.refuse_at = 0.5;
    w.longest = 0.1;
    w.halves = 5;
    clock_run(&toy_stepper, &w, &k->o, k->r);
    assert_int_equal(k->r->status, RUN_OK);
    /* 0.25, 0.25, then 1/16 + 1/16 + 1/8, then 0.25; one sample for each whole step */
    double want[] = { 0.25, 0.25, 0.0625, 0.0625, 0.125, 0.25 };
    assert_int_equal(w.steps, 6);
    for (int i = 0; i < 6; i++)
        assert_true(w.size[i] == want[i]);
    assert_int_equal(k->r->count.steps, 4);
    assert_int_equal(k->r->samples, 5);
    kit_free(k);

    k = kit_new(1, 0);
    w = toy_new(STEPS_EQUAL, 0.25);
    w.refuse_at = 0.5;
    w.longest = 1e-3;
    w.halves = 3;
    clock_run(&toy_stepper, &w, &k->o, k->r);
    assert_int_equal(k->r->status, RUN_FAILED);
    assert_string_equal(k->r->message, "no step is short enough");
    assert_true(k->r->t_end == 0.5);
    assert_int_equal(k->r->samples, 3);
    kit_free(k);
}

static void test_halved(void **unused)
{
    (void)unused;
    kit *k = kit_new(1, 0);
    toy w = toy_new(STEPS_HALVED, 0.125);
    w.refuse_at = 0.25;
    w.longest = 0.05;
    clock_run(&toy_stepper, &w, &k->o, k->r);
    assert_int_equal(k->r->status, RUN_OK);
    /* half of it twice, and back to h after two that were not refused */
    double want[] = { 0.125, 0.125, 0.03125, 0.03125, 0.0625, 0.0625, 0.125 };
    for (int i = 0; i < 7; i++)
        assert_true(w.size[i] == want[i]);
    assert_true(fabs(w.q - 1) < 1e-12);
    kit_free(k);

    k = kit_new(1, 0);
    w = toy_new(STEPS_HALVED, 0.125);
    w.refuse_at = 0.25;
    w.longest = 1e-9;
    clock_run(&toy_stepper, &w, &k->o, k->r);
    assert_int_equal(k->r->status, RUN_FAILED);
    assert_string_equal(k->r->message, "no step is short enough");
    kit_free(k);
}

/* ---- ends ---- */
static void test_interrupt(void **unused)
{
    (void)unused;
    kit *k = kit_new(1, 0);
    toy w = toy_new(STEPS_EQUAL, 0.1);
    k->stop_asking = 4;
    clock_run(&toy_stepper, &w, &k->o, k->r);
    assert_int_equal(k->r->status, RUN_INTERRUPTED);
    assert_int_equal(k->r->count.steps, 4);
    assert_int_equal(k->r->samples, 5);
    assert_int_equal(k->asked, 4); /* and not checked again */
    kit_free(k);
}

/* An interrupt is noticed soon, however long a step takes, for plain steps and others. */
static void test_interrupt_soon(void **unused)
{
    (void)unused;
    const stepper *with[] = { &slow_stepper, &slow_plain_stepper };
    const int wait[] = { 10, 300, 10000 };
    for (int i = 0; i < 6; i++) {
        kit *k = kit_new(1, 0);
        toy w = toy_new(STEPS_EQUAL, 1e-5);
        w.wait = wait[i / 2];
        k->stop_asking = 3;
        clock_run(with[i % 2], &w, &k->o, k->r);
        assert_int_equal(k->r->status, RUN_INTERRUPTED);
        assert_int_equal(k->r->count.steps, w.tries);
        /* two checks, 5 ms apart, and at most a stretch of steps after each */
        assert_true(w.tries <= 4 + 100000 / w.wait);
        kit_free(k);
    }
}

static void test_fail(void **unused)
{
    (void)unused;
    kit *k = kit_new(1, 0);
    toy w = toy_new(STEPS_EQUAL, 0.25);
    w.fail_at = 0.5;
    clock_run(&toy_stepper, &w, &k->o, k->r);
    assert_int_equal(k->r->status, RUN_FAILED);
    assert_string_equal(k->r->message, "it was to fail");
    assert_true(k->r->t_end == 0.5);
    assert_int_equal(k->r->samples, 3);
    results_unfail(k->r);
    assert_int_equal(k->r->status, RUN_OK);
    assert_null(k->r->message);
    kit_free(k);
}

static void test_stop(void **unused)
{
    (void)unused;
    kit *k = kit_new(1, 0.7);
    toy w = toy_new(STEPS_EQUAL, 0.25);
    w.stop_at = 0.5;
    clock_run(&toy_stepper, &w, &k->o, k->r);
    assert_int_equal(k->r->status, RUN_STOPPED);
    assert_int_equal(k->r->samples, 2); /* the sample at which it stopped is kept */
    assert_true(k->r->t[1] == 0.5 && k->r->t_end == 0.5);
    kit_free(k);
}

static void test_books(void **unused)
{
    (void)unused;
    kit *k = kit_new(1, 0);
    toy w = toy_new(STEPS_EQUAL, 0.25);
    clock_run(&toy_stepper, &w, &k->o, k->r);
    assert_true(k->r->power_balance == 0);
    assert_true(k->r->work[4] == 1 && k->r->energy[4] == 2 && k->r->dissipated[4] == 0);
    kit_free(k);
    k = kit_new(1, 0);
    w = toy_new(STEPS_EQUAL, 0.25);
    w.loss = 0.5;
    clock_run(&toy_stepper, &w, &k->o, k->r);
    /* at the end: energy 1.5, work 1, so 0.5 is missing relative to the largest energy of 1.5 */
    assert_true(fabs(k->r->power_balance - 0.5 / 1.5) < 1e-15);
    kit_free(k);
}

/* ---- states ---- */
typedef struct sample_state {
    double x[3];
    int64_t n;
    int choice;
    bool flag[2];
    uint8_t byte[5];
    size_t many;
    double list[8];
} sample_state;

static void sample_keep(void *of, run_state *s)
{
    sample_state *w = of;
    state_f64(s, "x", w->x, 3);
    state_i64(s, "n", &w->n, 1);
    state_int(s, "choice", &w->choice, 0, 7);
    state_flags(s, "flag", w->flag, 2);
    state_u8(s, "byte", w->byte, 5);
    size_t n = state_count(s, "many", w->many, sizeof(double));
    if (state_reads(s)) {
        if (n > 8)
            state_wrong(s, "too many");
        w->many = state_ok(s) ? n : 0;
    }
    state_f64(s, "list", w->list, w->many);
    state_same_text(s, "name", "sample", "it is of another name");
}

static const sample_state sample_one = { { 1, -0.0, NAN },    -7, 5,          { true, false },
                                         { 1, 2, 3, 4, 255 }, 3,  { 9, 8, 7 } };

static void test_state(void **unused)
{
    (void)unused;
    arena *a = arena_new(&allocator_libc, NULL);
    sample_state from = sample_one, to = { 0 };
    state_bytes b = state_save(a, sample_keep, &from);
    assert_null(state_load(a, b.at, b.n, sample_keep, &to));
    state_bytes again = state_save(a, sample_keep, &to);
    assert_int_equal(again.n, b.n);
    assert_memory_equal(again.at, b.at, b.n);
    assert_memory_equal(to.x, from.x, sizeof to.x);
    arena_free(a);
}

/* A state that is truncated anywhere, or has any wrong bit, is refused. */
static void test_damage(void **unused)
{
    (void)unused;
    arena *a = arena_new(&allocator_libc, NULL);
    sample_state from = sample_one, to = { 0 };
    state_bytes b = state_save(a, sample_keep, &from);
    for (size_t n = 0; n < b.n; n++) {
        char *part = malloc(n + 1);
        memcpy(part, b.at, n);
        assert_non_null(state_load(a, part, n, sample_keep, &to));
        free(part);
    }
    for (size_t i = 0; i < b.n * 8; i++) {
        b.at[i / 8] ^= (char)(1 << i % 8);
        assert_non_null(state_load(a, b.at, b.n, sample_keep, &to));
        b.at[i / 8] ^= (char)(1 << i % 8);
    }
    assert_null(state_load(a, b.at, b.n, sample_keep, &to));
    arena_free(a);
}

/* The digest is right but the contents are wrong: other names, numbers out of bounds, counts beyond the end.
 */
static int forged;
static void forged_keep(void *of, run_state *s)
{
    (void)of;
    double x[3] = { 0 };
    int64_t n = 0, bad = 99;
    uint8_t two[2] = { 2, 1 };
    if (forged == 0) {
        state_f64(s, "y", x, 3);
        return;
    }
    if (forged == 1) {
        state_f64(s, "x", x, 2);
        return;
    }
    state_f64(s, "x", x, 3);
    state_i64(s, "n", &n, 1);
    state_i64(s, "choice", forged == 2 ? &bad : &n, 1);
    state_u8(s, "flag", forged == 3 ? two : (uint8_t[]){ 1, 0 }, 2);
    state_u8(s, "byte", (uint8_t[]){ 0, 0, 0, 0, 0 }, 5);
    state_count(s, "many", (size_t)1 << 60, 8);
}

static void test_forged(void **unused)
{
    (void)unused;
    static const char *const why[] = { "it has no 'x' where this version expects it",
                                       "it has 2 numbers of 'x', not 3",
                                       "'choice' is 99, which is not in 0..7",
                                       "'flag' is neither true nor false", "it is too short for" };
    arena *a = arena_new(&allocator_libc, NULL);
    for (forged = 0; forged < 5; forged++) {
        sample_state to = { 0 };
        state_bytes b = state_save(a, forged_keep, NULL);
        const char *got = state_load(a, b.at, b.n, sample_keep, &to);
        assert_non_null(got);
        assert_non_null(strstr(got, why[forged]));
    }
    arena_free(a);
}

/* ---- checkpoints ---- */
static void same_results(const results *a, const results *b)
{
    size_t n = (size_t)a->samples * sizeof(double);
    assert_null(b->disk.io);
    assert_int_equal(a->samples, b->samples);
    const double *x[] = { a->t, a->q, a->v, a->acc, a->energy, a->work, a->dissipated },
                 *y[] = { b->t, b->q, b->v, b->acc, b->energy, b->work, b->dissipated };
    for (int i = 0; i < 7; i++)
        assert_memory_equal(x[i], y[i], n);
    assert_int_equal(a->count.steps, b->count.steps);
    assert_int_equal(a->status, b->status);
    assert_memory_equal(&a->power_balance, &b->power_balance, sizeof(double));
    assert_memory_equal(&a->t_end, &b->t_end, sizeof(double));
}

static const char *temp_name(void)
{
    static char name[] = "/tmp/test_clock_XXXXXX";
    static bool made;
    if (!made)
        close(mkstemp(name));
    made = true;
    return name;
}

/* Interrupted after each of its steps and continued, a run gives the same bytes as without interruption. */
static void continued(step_rule rule)
{
    for (int at = 1; at < 12; at++) {
        kit *whole = kit_new(1.03, 0.17), *k = kit_new(1.03, 0.17);
        toy w = toy_new(rule, 0.1), first = w, second = w;
        w.loss = first.loss = second.loss = 0.3;
        w.refuse_at = first.refuse_at = second.refuse_at = rule == STEPS_HALVED ? 0.5 : -1;
        w.longest = first.longest = second.longest = 0.04;
        clock_run(&toy_stepper, &w, &whole->o, whole->r);
        k->k = (checkpoint){ .to = temp_name(), .run = 1, .version = "1" };
        k->o.checkpoint = &k->k;
        k->stop_asking = at;
        clock_run(&toy_stepper, &first, &k->o, k->r);
        k->k = (checkpoint){ .from = temp_name(), .run = 1, .version = "1" };
        k->stop_asking = 0;
        kit_start(k);
        clock_run(&toy_stepper, &second, &k->o, k->r);
        same_results(whole->r, k->r);
        kit_free(k);
        kit_free(whole);
    }
}

static void test_continue(void **unused)
{
    (void)unused;
    continued(STEPS_EQUAL);
    continued(STEPS_HALVED);
    continued(STEPS_OWN);
}

static void test_wrong_run(void **unused)
{
    (void)unused;
    static const char *const why[] = {
        "it belongs to another model, or the model has changed",
        "it belongs to a run with another backend",
        "it belongs to a run with other parameters",
        "it belongs to a run with other options of the backend",
        "it was written by another version of the program",
        "it belongs to run 1 of its file, and this is run 2",
        "it is at t = 1, and this run ends at t = 0.5",
    };
    kit *k = kit_new(1, 0);
    toy w = toy_new(STEPS_EQUAL, 0.1);
    int64_t run;
    k->k = (checkpoint){ .to = temp_name(), .run = 1, .version = "1" };
    k->o.checkpoint = &k->k;
    clock_run(&toy_stepper, &w, &k->o, k->r);
    assert_null(checkpoint_run(k->a, temp_name(), &run));
    assert_int_equal(run, 1);
    for (int i = 0; i < 7; i++) {
        kit *o = kit_new(i == 6 ? 0.5 : 1, 0);
        o->k = (checkpoint){ .from = temp_name(), .run = i == 5 ? 2 : 1, .version = i == 4 ? "2" : "1" };
        o->o.checkpoint = &o->k;
        o->p.hash += i == 0;
        if (i == 1)
            o->r->backend = "top";
        if (i == 2)
            o->r->param[1] = 3;
        if (i == 3)
            o->o.value[2] = 1;
        w = toy_new(STEPS_EQUAL, 0.1);
        clock_run(&toy_stepper, &w, &o->o, o->r);
        assert_int_equal(o->r->status, RUN_FAILED);
        assert_non_null(o->r->disk.io);
        assert_non_null(strstr(o->r->disk.io, why[i]));
        kit_free(o);
    }
    unlink(temp_name());
    assert_non_null(checkpoint_run(k->a, temp_name(), &run));
    kit_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),     cmocka_unit_test(test_count),
        cmocka_unit_test(test_every),     cmocka_unit_test(test_own),
        cmocka_unit_test(test_cut),       cmocka_unit_test(test_halved),
        cmocka_unit_test(test_interrupt), cmocka_unit_test(test_fail),
        cmocka_unit_test(test_stop),      cmocka_unit_test(test_books),
        cmocka_unit_test(test_state),     cmocka_unit_test(test_damage),
        cmocka_unit_test(test_forged),    cmocka_unit_test(test_continue),
        cmocka_unit_test(test_wrong_run), cmocka_unit_test(test_interrupt_soon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
