/* The fast path that most steps of small models take gives the same bytes as the general one, and so do
   columns that are computed when they are read: each model is run in all these ways, and everything that the
   runs keep is compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "cdl.h"
#include "clock/backend.h"
#include "session/session.h"

/* ---- two runs of one model ---- */
enum { H, THETA };
enum { WAITS = -1 };

typedef struct {
    const char *text; /* a model m */
    double duration, h, theta;
    /* the least part of the steps that take the fast path; 0: none does; WAITS: none, but accelerations are
       made later where all samples are kept */
    double share;
} sample_model;

typedef enum { SHORT, GENERAL, LATER } way;

static const char *cut_asked; /* NULL: auto */

static results *run_with(arena *a, const results *compiled, const sample_model *m, double every, way by)
{
    const backend *b = backend_find("sweeping");
    run_options o = {
        .duration = m->duration, .every = every, .only_general = by == GENERAL, .later = by == LATER
    };
    results *r = results_new(a, compiled->prog);
    for (int i = 0; i < b->noption; i++) {
        o.value[i] = b->option[i].value;
        if (strcmp(b->option[i].name, "cut") == 0)
            o.word[i] = cut_asked;
    }
    o.value[H] = m->h;
    o.value[THETA] = m->theta;
    memcpy(r->param, compiled->param, (size_t)compiled->prog->nparam * sizeof *r->param);
    b->run(compiled->prog, &o, r);
    return r;
}

static void same_bytes(const char *what, const void *a, const void *b, size_t each, int64_t n, const char *of)
{
    const char *x = a, *y = b;
    for (int64_t i = 0; i < n; i++)
        if (memcmp(x + (size_t)i * each, y + (size_t)i * each, each) != 0) {
            double u = 0, v = 0;
            memcpy(&u, x + (size_t)i * each, each < sizeof u ? each : sizeof u);
            memcpy(&v, y + (size_t)i * each, each < sizeof v ? each : sizeof v);
            fail_msg("%s differs first at sample %lld: %.17g, in general %.17g\n%s", what, (long long)i, u, v,
                     of);
        }
}

static void same_contacts(const contact_result *a, const contact_result *b, int64_t n, const char *of)
{
    size_t one = sizeof(double) * (size_t)a->members, slip = one * (size_t)a->nslip;
    assert_int_equal(a->kept, b->kept);
    if (!a->kept)
        n = 0;
    same_bytes("gap", a->gap, b->gap, one, n, of);
    same_bytes("rn", a->rn, b->rn, one, n, of);
    same_bytes("rt", a->rt, b->rt, slip, slip ? n : 0, of);
    same_bytes("slip", a->slip, b->slip, slip, slip ? n : 0, of);
    same_bytes("status", a->status, b->status, (size_t)a->members, n, of);
    same_bytes("last open", a->last_open, b->last_open, one, a->kept, of);
    assert_int_equal(a->impacts.n, b->impacts.n);
    for (size_t i = 0; i < a->impacts.n; i++) {
        const impact *x = &a->impacts.at[i], *y = &b->impacts.at[i];
        double u[] = { x->t, x->pre, x->post, x->impulse }, v[] = { y->t, y->pre, y->post, y->impulse };
        same_bytes("an impact", u, v, sizeof u, 1, of);
    }
}

static void same_results(const results *a, const results *b, const char *of)
{
    size_t one = sizeof(double), q = one * (size_t)a->prog->nq;
    int64_t n = a->samples;
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->samples, b->samples);
    assert_int_equal(a->count.steps, b->count.steps);
    const double *single[][2] = { { a->t, b->t },
                                  { a->energy, b->energy },
                                  { a->dissipated, b->dissipated },
                                  { a->work, b->work },
                                  { a->drift, b->drift } };
    static const char *const names[] = { "t", "energy", "dissipated", "work", "drift" };
    for (size_t k = 0; k < 5; k++)
        same_bytes(names[k], single[k][0], single[k][1], one, n, of);
    same_bytes("q", a->q, b->q, q, n, of);
    same_bytes("q'", a->v, b->v, q, n, of);
    same_bytes("q''", a->acc, b->acc, q, n, of);
    for (size_t i = 0; i < a->prog->ncontact; i++)
        same_contacts(&a->contact[i], &b->contact[i], n, of);
    double u[] = { a->t_end, a->max_penetration, a->residual, a->power_balance },
           v[] = { b->t_end, b->max_penetration, b->residual, b->power_balance };
    same_bytes("a figure of the summary", u, v, one, 4, of);
    assert_int_equal(a->count.averaged, b->count.averaged);
    assert_string_equal(a->solver, b->solver);
}

/* First numbers and values that need no column, then the columns one after the other. */
static void same_later(results *later, const results *now, const sample_model *m)
{
    int64_t last = now->samples - 1;
    double u[] = { results_energy(later, 0), results_energy(later, last), results_drift(later) },
           v[] = { now->energy[0], now->energy[last], now->drift[last] };
    same_bytes("an energy", u, v, sizeof *u, 3, m->text);
    size_t nq = (size_t)now->prog->nq;
    for (int64_t at = 0; at <= last; at += last / 53 + 1) {
        double acc[64];
        results_acc(later, at, acc);
        same_bytes("q'' of a sample", acc, now->acc + (size_t)at * nq, nq * sizeof *acc, 1, m->text);
    }
    if (m->share <= 0) { /* general models compute all other columns at once */
        bool all = later->samples == later->count.steps + 1;
        assert_true((later->disk.later != NULL) == (m->share == WAITS && all));
        assert_non_null(later->energy);
    } else {
        assert_non_null(later->disk.later);
        assert_null(later->energy);
        assert_null(later->drift);
        for (size_t i = 0; i < later->prog->ncontact; i++)
            assert_null(later->contact[i].slip);
    }
    for (int32_t k = 0; k < now->prog->nq; k++)
        for (double t = 0; t <= now->t_end; t += now->t_end / 97) {
            double x[] = { results_q(later, k, t), results_v(later, k, t), results_a(later, k, t) },
                   y[] = { results_q(now, k, t), results_v(now, k, t), results_a(now, k, t) };
            same_bytes("a value between samples", x, y, sizeof *x, 3, m->text);
        }
    results_need(later, PART_SLIP);
    results_need(later, PART_ENERGY);
    same_results(later, now, m->text);
}

static void say(void *ud, const char *said, size_t n)
{
    (void)ud;
    fwrite(said, 1, n, stderr);
}

/* of the last run by the fast paths, and by that of columns */
static int64_t whole_steps, columns_took;

static void same_both_ways(const sample_model *m)
{
    char program_text[1024];
    cdl *s = cdl_new(NULL);
    cdl_set_callbacks(s, &(cdl_callbacks){ .err = say });
    cdl_set(s, "quiet", "yes");
    cdl_set(s, "manifest", "no");
    snprintf(program_text, sizeof program_text, "%s\nrun m for %g with sweeping(h = %g)\n", m->text, m->h,
             m->h);
    if (cdl_run_text(s, "model", program_text, strlen(program_text)) != CDL_OK)
        fail_msg("this model does not run:\n%s", m->text);
    const double every[] = { 0, 7.3 * m->h, 1000 * m->h };
    for (size_t k = 0; k < sizeof every / sizeof *every; k++) {
        arena *a = arena_new(&allocator_libc, NULL);
        const results *quick = run_with(a, s->last->r, m, every[k], SHORT),
                      *general = run_with(a, s->last->r, m, every[k], GENERAL);
        same_results(quick, general, m->text);
        whole_steps = quick->count.at_once; /* in the end those of the run without samples on its way */
        columns_took = quick->count.fixed;
        assert_int_equal(general->count.fixed, 0);
        same_later(run_with(a, s->last->r, m, every[k], LATER), quick, m);
        assert_int_equal(general->count.plain, 0);
        assert_true(m->share > 0 || quick->count.plain == 0);
        if ((double)quick->count.plain < m->share * (double)quick->count.steps)
            fail_msg("only %lld of %lld steps go the short way\n%s", (long long)quick->count.plain,
                     (long long)quick->count.steps, m->text);
        arena_free(a);
    }
    cdl_free(s);
}

/* ---- models ---- */
static void all_same(const sample_model *m, size_t n)
{
    for (size_t i = 0; i < n; i++)
        same_both_ways(&m[i]);
}

/* nearly all steps are whole steps by the fast path of columns */
static void columns_same(const sample_model *m, size_t n)
{
    cut_asked = "never";
    for (size_t i = 0; i < n; i++) {
        same_both_ways(&m[i]);
        if ((double)columns_took < 0.9 * (double)whole_steps || whole_steps == 0)
            fail_msg("only %lld of %lld whole steps take the fast path\n%s", (long long)columns_took,
                     (long long)whole_steps, m[i].text);
    }
    cut_asked = NULL;
}
#define ALL(m) all_same(m, sizeof(m) / sizeof *(m))

#define BALL(e) "model m { dof y = 1, y' = 0; y'' = -9.81; constraint floor: y >= 0 { impact = " e " } }"

/* Flight, impacts, rest; a sinking floor. */
static void balls(void **state)
{
    (void)state;
    static const sample_model m[] = {
        { BALL("newton(0.8)"), 5, 1e-4, 0.5, 0.9 },
        { BALL("newton(0)"), 2, 1e-4, 0.5, 0.9 },
        { BALL("newton(1)"), 3, 1e-3, 0.5, 0.9 },
        { BALL("poisson(0.6)"), 4, 3e-4, 0.5, 0.9 },
        { BALL("newton(0.5)"), 3, 1.0 / 1024, 1, 0.7 },
        { BALL("newton(0.5)"), 3, 1.0 / 1024, 0, 0.7 },
        { "model m { dof y = 1, y' = 0; 2.5*y'' = -9.81; constraint floor: y >= -0.3*t { impact = "
          "newton(0.4) } }",
          4, 7e-4, 0.5, 0.9 },
        /* it lands exactly at the end of a step */
        { "model m { dof y = 0.5, y' = -1; y'' = 0; constraint floor: y >= 0 { impact = newton(0.25) } }", 2,
          0.015625, 0.5, 0.9 },
        /* the same, but 0.5 + 0.1 is less than 6*0.1 */
        { "model m { dof y = 0.6, y' = -1; y'' = 0; constraint floor: y >= 0 { impact = newton(0.25) } }", 2,
          0.1, 0.5, 0.7 },
    };
    ALL(m);
}

#define KLARBRING(e)                        \
    "model m { let K = [2, 0.5; 0.5, 1]\n"  \
    "dof u[2] = [-0.1, 0], u' = [1, 0.3]\n" \
    "u'' + K*u = [cos(t), 0.2*sin(3*t)]\n"  \
    "constraint wall: u[1] <= 0 { friction = coulomb(0.4), " e " } }"

/* Impacts, stick and slip with changing forces. */
static void friction_with_impacts(void **state)
{
    (void)state;
    static const sample_model m[] = {
        { KLARBRING("impact = newton(0)"), 40, 1e-3, 0.5, 0.9 },
        { KLARBRING("impact = newton(0.6)"), 40, 1e-3, 0.5, 0.9 },
        { KLARBRING("impact = poisson(0.6)"), 20, 1e-3, 0.75, 0.9 },
        { "model m { dof x = 0, x' = 1; dof y = 0.2, y' = 0; x'' = 3*sin(2*t); 2*y'' = -9.81 + x\n"
          "constraint floor: y >= 0 { slip = x', friction = coulomb(0.25), impact = newton(0.5) } }",
          20, 1e-3, 0.5, 0.8 },
        { "model m { dof x = 0, x' = 1; dof y = 0, y' = 0; x'' = 3*sin(2*t); y'' = -9.81\n"
          "constraint floor: y >= 0 { slip = x' - 0.2, friction = tresca(2) } }",
          20, 1e-3, 0.5, 0.8 },
    };
    ALL(m);
}

/* A block in stick and slip: constant forces, forces in time, springs and dampers, a belt. */
static void blocks(void **state)
{
    (void)state;
    static const sample_model m[] = {
        { "model m { dof x = 0, x' = 2; x'' = -0.5; constraint rub { normal = 2, slip = x', friction = "
          "coulomb(0.3) } }",
          4, 1e-3, 0.5, 0.8 },
        { "model m { dof x = 0, x' = 2; x'' = 2*sin(t); constraint rub { normal = 2, slip = x', friction = "
          "coulomb(0.3) } }",
          30, 1e-3, 0.5, 0.8 },
        { "model m { dof x = 0, x' = 0; x'' + 0.1*x' + 4*x = 0; constraint rub { normal = 2, slip = x' - "
          "0.5, "
          "friction = coulomb(0.3) } }",
          30, 1e-3, 0.5, 0.8 },
    };
    ALL(m);
}

/* Equalities, and springs with dampers at a stop. */
static void bilateral_and_stops(void **state)
{
    (void)state;
    static const sample_model m[] = {
        { "model m { dof x = 0, x' = 1; dof y = 0, y' = 0.5; x'' + x = 0; 3*y'' = -1\n"
          "constraint rail: y - 0.5*x = 0 }",
          10, 1e-3, 0.5, 0.9 },
        { "model m { dof x = 0, x' = 1; dof y = 0, y' = 0.5; x'' + x = 0.2*cos(2*t); 3*y'' = -1\n"
          "constraint rail: y - 0.5*x = 0 { friction = coulomb(0.2) } }",
          10, 1e-3, 0.5, 0.5 },
        { "model m { dof x = 0, x' = 1; x'' + 0.2*x' + x = cos(1.3*t); constraint end: x <= 0.3 { impact = "
          "newton(0.5) } }",
          40, 1e-3, 0.5, 0.9 },
        { "model m { dof x = 0, x' = 1; x'' + 0.2*x' + 3*x = cos(1.3*t) }", 20, 1e-3, 0.5, 0.99 },
        { "model m { dof x = 0, x' = 1; dof y = 1, y' = 0; 2*x'' + 0.3*y'' + x = 0; y'' + 0.3*x'' + 2*y + "
          "0.1*x' = 0\n"
          "constraint end: x + y <= 1.1 { impact = newton(0.7) } }",
          20, 1e-3, 0.5, 0.9 },
    };
    ALL(m);
}

/* Forces that depend only on time, in part, completely or not at all: these are computed for many steps at
   once. */
static void forces_in_time(void **state)
{
    (void)state;
    static const sample_model m[] = {
        { "model m { dof x = 0, x' = 1; x'' + x = sin(t) + 2*cos(t); constraint end: x <= 0.3 { impact = "
          "newton(0.5) } }",
          20, 1e-3, 0.5, 0.9 },
        { "model m { param a = 0.7, w = 3; dof x = 0, x' = 0.1; 2*x'' = a*exp(-t)*sin(w*t)^2 - t/4\n"
          "constraint floor: x >= -0.2 { impact = newton(0.8) } }",
          6, 1e-3, 0.5, 0.9 },
        { "model m { dof x = 0, x' = 1; dof y = 0.3, y' = 0; x'' = cos(40*t)\n"
          "y'' = -9.81 + 0.5*(x - 3*sin(t)) - 0.2*(y' - cos(t))*2\n"
          "constraint floor: y >= 0 { slip = x', friction = coulomb(0.3), impact = newton(0.4) } }",
          10, 7e-4, 0.75, 0.8 },
        { "model m { dof x = 1, x' = 0; dof y = 0, y' = 0; x'' = -x; y'' = if t < 1 then 2 else -1 }", 3,
          1e-3, 0.5, 0.9 },
        { "model m { dof x = 1, x' = 0; x'' = 1e9*sin(1e7*t) }", 0.5, 1e-3, 0.5, 0.99 },
        { "model m { dof x = 1, x' = 0; x'' = -4*x - 0.1*x' }", 3, 1e-3, 0.5, 0.99 },
    };
    ALL(m);
}

/* More dofs than copies are compiled for, matrices of other forms, more than one contact. */
static void larger_models(void **state)
{
    (void)state;
    static const sample_model m[] = {
        { "model m { dof u[3] = [0, 0, 0.1], u' = [1, 0.5, 0]; u'' = [-0.1, 0.3*sin(t), -9.81]\n"
          "constraint floor: u[3] >= 0 { friction = coulomb(0.2), impact = newton(0.3) } }",
          4, 1e-3, 0.5, 0.5 },
        { "model m { dof u[4] = [0, 0, 0.1, 0], u' = [1, 0.5, 0, 0]; let K = [2,-1,0,0; -1,2,-1,0; "
          "0,-1,2,-1; "
          "0,0,-1,2]\n"
          "u'' + 30*K*u = [0, 0, 0, cos(t)]; constraint wall: u[1] <= 0.05 { impact = newton(0.3) } }",
          6, 1e-3, 0.5, 0.8 },
        { "model m { dof x[40] = 0, x' = 1; for i in 2..39 { x[i]'' = 400*(x[i + 1] - 2*x[i] + x[i - 1]) }\n"
          "x[1]'' = 400*(x[2] - x[1]); x[40]'' = 400*(x[39] - x[40]); constraint wall: x[40] <= 0.1 }",
          2, 1e-3, 0.5, 0.8 },
        { "model m { dof y = 1, y' = 0; y'' = -9.81; constraint floor: y >= 0 { impact = newton(0.9) }\n"
          "constraint roof: y <= 1.05 { impact = newton(0.9) } }",
          3, 1e-3, 0.5, WAITS },
        { "model m { dof y = 1, y' = 0; y'' = -9.81; constraint floor: y >= 0 { impact = newton(0.9) }\n"
          "constraint roof: y <= 1.05*cos(t) { impact = newton(0.9) } }",
          3, 1e-3, 0.5, WAITS },
        { "model m { dof x = 0, x' = 1; x'' = -x^3; constraint wall: x <= 0.5 { impact = newton(0.9) } }", 3,
          1e-3, 0.5, 0 },
    };
    ALL(m);
}

/* Many contacts: accelerations are those of chains, with and without friction. */
static void stacks(void **state)
{
    (void)state;
    static const sample_model m[] = {
        { "model m { dof z[i in 1..40] = 0.01*i + 0.001*i^2\n"
          "for i in 1..40 { kinetic z[i]'^2/2; potential 9.81*z[i] }\n"
          "constraint floor: z[1] >= 0.005\n"
          "constraint pair[i in 1..39]: z[i + 1] - z[i] >= 0.01 }",
          0.6, 1e-3, 0.5, WAITS },
        /* the reactions of so many contacts are not stored */
        { "model m { dof z[i in 1..40] = 0.01*i + 0.001*i^2\n"
          "for i in 1..40 { kinetic z[i]'^2/2; potential 9.81*z[i] }\n"
          "constraint floor: z[1] >= 0.005\n"
          "constraint pair[i in 1..39]: z[i + 1] - z[i] >= 0.01\n"
          "constraint roof[i in 1..40, k in 1..103]: z[i] <= 3 + k/100 }",
          0.4, 1e-3, 0.5, WAITS },
        { "model m { dof p[i in 1..20] in R3 = [0, 0, i - 0.5]\n"
          "for i in 1..20 { kinetic norm(p[i]')^2/2; potential 9.81*p[i][3]\n"
          "force p[i]: [50*sin(20*t)*exp(-((i - 12)/3)^2), 50*cos(13*t)*exp(-((i - 6)/3)^2), 0] }\n"
          "constraint ground: p[1][3] >= 0.5 { slip = [p[1][1]', p[1][2]'], friction = coulomb(0.3) }\n"
          "constraint on[i in 1..19]: p[i + 1][3] - p[i][3] >= 1 {\n"
          "slip = [p[i + 1][1]' - p[i][1]', p[i + 1][2]' - p[i][2]'], friction = coulomb(0.3) } }",
          0.3, 1e-3, 0.5, WAITS },
    };
    ALL(m);
}

#define PILED(masses, laws)                                                                 \
    "model m { dof z[i in 1..60] = 0.01*i + 0.0002*i^1.3\n"                                 \
    "for i in 1..60 { kinetic (" masses ")*z[i]'^2/2; potential (" masses ")*9.81*z[i] }\n" \
    "constraint floor: z[1] >= 0.005 " laws "\n"                                            \
    "constraint pair[i in 1..59]: z[i + 1] - z[i] >= 0.01 " laws " }"

/* columns and trains, by whole steps: they fall, pile up, rebound and rest */
static void columns(void **state)
{
    (void)state;
    static const sample_model m[] = {
        { PILED("1", ""), 0.6, 1e-3, 0.5, WAITS },
        { PILED("1", ""), 0.6, 1e-3, 1, WAITS },
        { PILED("1 + 0.3*mod(i, 7)", ""), 0.6, 2e-3, 0.5, WAITS },
        { PILED("if i > 40 then 100 else 1", "{ impact = newton(0.5) }"), 0.6, 1e-3, 0.5, WAITS },
        /* two columns, and gaps of one dof and of two that overlap at the start by rounding */
        { "model m { dof x[i in 1..30] = 0.1*i, x[i in 1..30]' = 2 - 0.1*i\n"
          "dof y[i in 1..30] = -0.2*i, y[i in 1..30]' = if i == 30 then 20 else 0\n"
          "for i in 1..30 { kinetic x[i]'^2/2 + y[i]'^2 }\n"
          "constraint wall: x[30] <= 3.05\n"
          "constraint cars[i in 1..29]: x[i + 1] - x[i] >= 0.1 { impact = newton(0.8) }\n"
          "constraint end: y[1] <= 0.1 { impact = newton(0.9) }\n"
          "constraint others[i in 1..29]: 2*y[i] - 2*y[i + 1] >= 0.3 }",
          1.5, 2e-3, 0.5, WAITS },
        /* a floor that moves at a constant rate; rows of three diagonals and more */
        { "model m { dof z[i in 1..40] = 0.011*i\n"
          "for i in 1..40 { kinetic z[i]'^2/2; potential 9.81*z[i] }\n"
          "constraint floor: z[1] - 0.3*t >= 0\n"
          "constraint pair[i in 1..39]: z[i + 1] - z[i] >= 0.01\n"
          "constraint next[i in 1..38]: z[i + 2] - z[i] >= 0.0201 }",
          0.3, 1e-3, 0.5, WAITS },
    };
    columns_same(m, sizeof m / sizeof *m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(balls),         cmocka_unit_test(friction_with_impacts),
        cmocka_unit_test(blocks),        cmocka_unit_test(bilateral_and_stops),
        cmocka_unit_test(larger_models), cmocka_unit_test(forces_in_time),
        cmocka_unit_test(stacks),        cmocka_unit_test(columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
