/* Every check of the gate can fail: a run passes it, then one stored number is changed, and the check reports
   it. The runs come from the backends, so the changed number is the only error. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "cdl.h"
#include "model_session.h"
#include "field/field.h"
#include "motion/gate.h"
#include "rod/rod.h"
#include "session/session.h"

typedef struct {
    const char *text; /* a model, and its run */
    void (*alter)(results *r);
    const char *message; /* a part of the message; NULL: no check can detect what is altered */
} spoiled;

static void one(const spoiled *x)
{
    cdl *s = session_with(x->text);
    results *r = s->last->r;
    run_options o = { .duration = r->duration, .word = { "eps" } };
    assert_int_equal(r->status, RUN_OK);
    results_need(r, PART_ACC | PART_ENERGY | PART_SLIP);
    x->alter(r);
    gate_check(r, &o);
    if (!x->message && r->message)
        fail_msg("it fails with: %s\n%s", r->message, x->text);
    if (x->message && (r->status != RUN_FAILED || !strstr(r->message, x->message)))
        fail_msg("'%s' is expected, not: %s\n%s", x->message, r->message ? r->message : "nothing", x->text);
    cdl_free(s);
}
#define ALL(x)                                           \
    for (size_t k = 0; k < sizeof(x) / sizeof *(x); k++) \
    one(&(x)[k])

/* ---- changes ---- */
/* The rate of the last dof at the sample after t, and the energy with it. */
static void rate_after(results *r, double t)
{
    int nq = r->prog->nq;
    int64_t at = 1;
    while (at < r->samples - 1 && r->t[at] < t)
        at++;
    double *v = r->v + at * nq + nq - 1, was = *v;
    *v += 0.3;
    r->energy[at] += (*v * *v - was * was) / 2;
}

static void rate_late(results *r)
{
    rate_after(r, 0.8 * r->t_end);
}

static void rate_hit(results *r)
{
    assert_true(r->contact[0].impacts.n > 0);
    rate_after(r, r->contact[0].impacts.at[0].t);
}

static void rate_first(results *r)
{
    rate_after(r, 0);
}

static void rate_reset(results *r)
{
    assert_true(r->count.resets.n > 0);
    rate_after(r, r->count.resets.at[0]);
}

static void sunk_late(results *r)
{
    r->q[(r->samples - 2) * r->prog->nq] = -0.01;
}

/* of several impacts in one step, the last one that pushes disks together */
static void impulse_off(results *r)
{
    contact_result *x = &r->contact[1];
    assert_true(x->impacts.n > 1);
    x->impacts.at[x->impacts.n - 1].impulse *= 1.1;
}

static void push_off(results *r)
{
    contact_result *x = &r->contact[1];
    for (int64_t m = 0; m < x->members; m++)
        x->rn[(r->samples - 1) * x->members + m] *= 1.5;
}

static void nothing(results *r)
{
    (void)r;
}

/* ---- equations of motion ---- */
/* Disks that fall on each other: several impacts in a step of half a gap, rows that turn between them. */
#define PILE                                                                                          \
    "model m { param N = 20, R = 0.01\n"                                                              \
    "dof p[i in 1..N] in R2 = [R + 2.3*R*mod(i - 1, 8) + 0.003*R*mod(7*i, 11), R + 2.2*R*floor((i - " \
    "1)/8)]\n"                                                                                        \
    "for i in 1..N { p[i][1]'' = 0; p[i][2]'' = -9.81 }\nconstraint floor[i in 1..N]: p[i][2] >= R\n" \
    "constraint touch[i in 1..N, j in i+1..N]: norm(p[i] - p[j]) >= 2*R }\n"                          \
    "run m for 0.03 with sweeping(h = 1e-2)"
#define BALL \
    "model m { dof y = 1, z = 0; y'' = -10; z'' = -1; constraint floor: y >= 0 { impact = newton(0.5)"
#define MISSED "the equation of motion of z does not hold"

static void motion(void **unused)
{
    (void)unused;
    static const spoiled all[] = {
        { BALL " } }\nrun m for 1 with sweeping(h = 1e-2)", rate_late, MISSED },
        /* impulses are stored, except those of friction and of equalities, but these do not act on z */
        { BALL " } }\nrun m for 1 with sweeping(h = 1e-2)", rate_hit, MISSED },
        { "model m { dof y = 1, x = 0, x' = 1, z = 0; y'' = -10; x'' = 0; z'' = -1\n"
          "constraint floor: y >= 0 { impact = newton(0.5), slip = x', friction = coulomb(0.3) } }\n"
          "run m for 1 with sweeping(h = 1e-2)",
          rate_hit, MISSED },
        { "model m { dof y = 1, x = 0, z = 0; y'' = -10; x'' = 0; z'' = -1\n"
          "constraint floor: y >= 0 { impact = newton(0.5) }\nconstraint held: x = 0 }\n"
          "run m for 1 with sweeping(h = 1e-2)",
          rate_hit, MISSED },
        /* an impact before the first sample; steps that are not cut at impacts */
        { "model m { dof y = 0, y' = -1, z = 0; y'' = -10; z'' = -1; constraint floor: y >= 0 { impact = "
          "newton(0.5) } }\nrun m for 1 with sweeping(h = 1e-2)",
          rate_first, MISSED },
        { BALL " } }\nrun m for 1 with sweeping(h = 1e-2, cut = never)", rate_hit, MISSED },
        /* friction in the whole tangent space: before contact it can be checked, afterwards not */
        { BALL ", friction = coulomb(0.3) } }\nrun m for 0.4 with sweeping(h = 1e-2)", rate_late, MISSED },
        { BALL ", friction = coulomb(0.3) } }\nrun m for 3 with sweeping(h = 1e-2)", rate_late, NULL },
        /* several impacts in a step, on rows that turn between them */
        { PILE, nothing, NULL },
        { PILE, impulse_off, "the equation of motion of p" },
        { PILE, push_off, "the equation of motion of p" },
        /* resets */
        { "model m { dof y = 1, z = 0; y'' = -10; z'' = -1; when y < 0.5 { y' = 1 } }\n"
          "run m for 1 with sweeping(h = 1e-2)",
          rate_late, MISSED },
        { "model m { dof y = 1, z = 0; y'' = -10; z'' = -1; when y < 0.5 { y' = 1 } }\n"
          "run m for 1 with sweeping(h = 1e-2)",
          rate_reset, MISSED },
        { "model m { dof y = 1, z = 0; y'' = -10; z'' = -1; when y < 0.5 { y' = 1 } }\n"
          "run m for 1 with sweeping(h = 1e-2)",
          nothing, NULL },
        /* delays */
        { "model m { dof z = 1, z' = 0; history z(s) = 1 + s; z'' = -z(t - 0.5) }\n"
          "run m for 2 with sweeping(h = 1e-2)",
          rate_late, MISSED },
        { "model m { dof z = 1, z' = 0; history z(s) = 1 + s; z'' = -z'(t - 0.5) - integral(z(t + s) for s "
          "in "
          "-1..0) }\nrun m for 2 with sweeping(h = 1e-2)",
          rate_late, MISSED },
        /* forces that read reactions; a loose tolerance applies to a step */
        { "model m { dof y = 0, z = 0; y'' = -10 - sin(9*t); z'' = -4*z + 0.3*c.rn; constraint c: y >= 0 }\n"
          "run m for 1 with sweeping(h = 1e-2)",
          rate_late, MISSED },
        { BALL " } }\nrun m for 3 with sweeping(h = 1e-2, tolerance = 5e-2)", sunk_late, "its gap is -0.01" },
        /* the reactions of so many contacts are not stored */
        { "model m { dof y[i in 1..5000] = 1, z = 0; for i in 1..5000 { y[i]'' = -10 }; z'' = -1\n"
          "constraint floor[i in 1..5000]: y[i] >= 0 }\nrun m for 0.2 with sweeping(h = 1e-2)",
          rate_late, MISSED },
        { "model m { dof y[i in 1..5000] = 0, z = 0; for i in 1..5000 { y[i]'' = -10 }; z'' = -1\n"
          "constraint floor[i in 1..5000]: y[i] >= 0 }\nrun m for 0.1 with sweeping(h = 1e-2)",
          nothing, NULL },
    };
    ALL(all);
}

/* ---- laws of contact ---- */
static void pulls_late(results *r)
{
    r->contact[0].rn[r->samples - 2] = -3;
}

static void pushes_first(results *r)
{
    r->contact[0].rn[1] = 1;
}

static void rubs_late(results *r)
{
    r->contact[0].rt[r->samples - 2] = -4;
}

#define GOVERNED "model m { dof z = 0; z'' = 1; constraint c: z' <= 0.5 }\nrun m for 1 with "
#define GLUED    "model m { dof z = 0; z'' = 1; constraint c: z >= 0 { adhesion = 2 } }\nrun m for 1 with "
#define DRAGGED                                                                                    \
    "model m { dof z = 0, z' = 9; z'' = 0\n"                                                       \
    "constraint c { normal = 10, slip = z', friction = coulomb(static = 0.5, kinetic = 0.3) } }\n" \
    "run m for 1 with "

static void laws(void **unused)
{
    (void)unused;
    static const spoiled all[] = {
        { "model m { dof y = 0, y' = 1, z = 0, z' = 1; y'' = 0; z'' = -1; constraint c: z' = y' }\n"
          "run m for 1 with sweeping(h = 1e-2)",
          rate_late, "its bounded rate is" },
        { GOVERNED "sweeping(h = 1e-2)", rate_late, "its bounded rate is" },
        { GOVERNED "sweeping(h = 1e-2)", pulls_late, "its reaction pulls" },
        { GOVERNED "sweeping(h = 1e-2)", pushes_first, "its reaction acts while its bounded rate is" },
        { GOVERNED "events()", pulls_late, "its reaction pulls" },
        { GLUED "sweeping(h = 1e-2)", pulls_late, "its reaction pulls" },
        { GLUED "events()", nothing, NULL },
        { DRAGGED "sweeping(h = 1e-2)", rubs_late, "its friction force passes the bound" },
        { DRAGGED "events()", rubs_late, "its friction force passes the bound" },
    };
    ALL(all);
}

/* ---- inclusions and limits ---- */
/* ---- shapes on each other: changes of a box at the last sample but one ---- */
static void box_sinks(results *r)
{
    r->q[(r->samples - 2) * r->prog->nq + 2] -= 1e-3;
}

static void box_hovers(results *r)
{
    for (int64_t at = r->samples - 4; at < r->samples - 1; at++)
        r->q[at * r->prog->nq + 2] += 0.1;
}

static void box_pulls(results *r)
{
    r->contact[0].rn[(r->samples - 2) * r->contact[0].members] = -5;
}

static void box_rubs(results *r)
{
    contact_result *x = &r->contact[0];
    x->rt[(r->samples - 2) * x->members * x->nslip] += 100;
}

static void boxes(void **unused)
{
#define BOX                                                                                           \
    "model m { dof p in R3 = [0, 0, 0.1]; kinetic norm(p')^2/2; potential 10*p[3]\n"                  \
    "shape s: box([-0.1, -0.1, -0.1], [0.1, 0.1, 0.1]) at p; shape t: box([-1, -1, -1], [1, 1, 0])\n" \
    "constraint c: s.gap(t) >= 0 { friction = coulomb(0.3) } }\nrun m for 0.05 with sweeping(h = 1e-3)"
    static const spoiled all[] = {
        { BOX, nothing, NULL },
        { BOX, box_sinks, "its gap is" },
        { BOX, box_hovers, "its reaction acts at a gap of" },
        { BOX, box_pulls, "its reaction pulls with" },
        { BOX, box_rubs, "its friction force passes the bound by" },
    };
    (void)unused;
    ALL(all);
#undef BOX
}

static void value_late(results *r)
{
    r->q[(r->samples - 1) * r->prog->nq] += 0.01;
}

static void jump_back(results *r)
{
    assert_true(r->limit.jumps.n > 1);
    limit_jump *j = &r->limit.jumps.at[0];
    double to = j->to;
    j->to = j->from;
    j->from = to;
}

static void not_finite(results *r)
{
    r->q[(r->samples - 1) * r->prog->nq] = NAN;
}

#define SLAB                                                                  \
    "model m { param eps = 1e-2; fn mu(s) = 0.4 + 0.6/(1 + 5*s); dof v = 0\n" \
    "eps*v' in 2*sin(t) - (v + mu(abs(v))*Sgn(v)) }\nrun m for 6 with limit(eps)"
#define ECHO                                                                                        \
    "model m { param eps = 1e-2; dof v = 0\n"                                                       \
    "eps*v' in 2*sin(t) - 0.3*(if t >= 1 then v(t - 1) else 0) - (v + Sgn(v)) }\nrun m for 6 with " \
    "limit(eps)"

static void inclusions(void **unused)
{
    (void)unused;
    static const spoiled all[] = {
        { SLAB, nothing, NULL },
        { SLAB, value_late, "the limit does not lie on its graph" },
        { SLAB, jump_back, "a jump passes a value at which it would stay" },
        { SLAB, not_finite, "the solution is not finite" },
        { ECHO, nothing, NULL },
        { ECHO, value_late, "the limit does not lie on its graph" },
        { "model m { dof x = 1; x' in -Sgn(x) }\nrun m for 0.5 with inclusion(h = 1e-2)", value_late,
          "the values do not follow their rates" },
    };
    ALL(all);
}

/* ---- rods ---- */
static rod_result *rods_of(results *r)
{
    union {
        const rod_result *in;
        rod_result *out;
    } u = { .in = r->rod };
    return u.out;
}

static void place_late(results *r)
{
    int64_t at = r->samples / 2;
    for (int i = 0; i < r->ntrack; i += 3)
        r->track[at * r->ntrack + i] += 1e-3;
}

static void place_none(results *r)
{
    r->track[0] = NAN;
}

static void spin_none(results *r)
{
    rods_of(r)->q[1] = NAN;
}

static void energy_last(results *r)
{
    r->energy[r->samples - 1] *= 1.01;
}

static void held_more(results *r)
{
    rod_result *x = rods_of(r);
    x->reaction[6 * x->support[0] + 2] *= 1.5;
}

static rod_touching *touch_of(results *r)
{
    union {
        const rod_touching *in;
        rod_touching *out;
    } u = { .in = r->rod->touch };
    assert_true(r->rod->ntouch > 0);
    return u.out;
}

static void press_not(results *r)
{
    touch_of(r)->fn = -1;
}

static void press_less(results *r)
{
    for (int64_t i = 0; i < r->rod->ntouch; i++) {
        touch_of(r)[i].fn *= 0.1;
        touch_of(r)[i].ft[0] = touch_of(r)[i].fn;
    }
}

/* Moves the whole upper rod by three twentieths of the radius. */
static void sink_upper(results *r)
{
    rod_result *x = rods_of(r);
    for (int i = 0; i < x->mesh[1].nn; i++)
        x->r[3 * (x->mesh[1].first + i) + 2] -= 0.003;
}

/* the same in a state on the way, and not at the end */
static void sink_on_the_way(results *r)
{
    assert_true(r->samples > 3);
    double *places = r->track + 2 * r->ntrack;
    for (int i = 0; i < r->rod->mesh[1].nn; i++)
        places[3 * (r->rod->mesh[1].first + i) + 2] -= 0.003;
}

/* Doubles all loads: the sum of forces contains rods in contact, too. */
static void load_more(results *r)
{
    r->param[0] *= 2;
}

#define FLIGHT                                                                                        \
    "model m { fn line(s) = [0, 0, s]\nrod wire { length = 1, radius = 0.01, young = 1e6, poisson = " \
    "0.3, density = 1000, elements = 3, reference = curve(line), velocity = [sin(9*s), 0, s] } }\n"   \
    "run m for 0.02 with auglag(h = 2e-3)"
#define BENT                                                                                           \
    "model m { rod bar { length = 1, radius = 0.02, young = 1e5, poisson = 0.3, elements = 4 }\n"      \
    "at bar.s = 0 { position = [0, 0, 0], frame = eye(3) }\nforce bar.x(1): [0.001*t, 0, 0.001*t] }\n" \
    "run m for 1 with auglag(h = 0.5)"
/* Two crossing bars, one on the other: all nodes are near the touching points. */
#define CROSSED                                                                                              \
    "model m { param F = 0.02, mu = 0.3; fn along(s) = [s - 0.5, 0, 0]; fn across(s) = [0, s - 0.5, "        \
    "0.041]\n"                                                                                               \
    "rod a { length = 1, radius = 0.02, young = 1e5, poisson = 0.3, reference = curve(along), elements = 4 " \
    "}\n"                                                                                                    \
    "rod b { length = 1, radius = 0.02, young = 1e5, poisson = 0.3, reference = curve(across), elements = "  \
    "4 }\n"                                                                                                  \
    "at a.s = 0 { position = [-0.5, 0, 0], frame = rot_y(pi/2) }\nat a.s = 1 { position = [0.5, 0, 0] }\n"   \
    "at b.s = 0 { position = [0, -0.5, 0.041], frame = rot_x(-pi/2) }\nat b.s = 1 { position = [0, 0.5, "    \
    "0.041] }\n"                                                                                             \
    "force b.x(0.5): [0, 0, -F*t]\nconstraint pair: a.gap(b) >= 0 { friction = coulomb(mu) } }\n"            \
    "run m for 1 with auglag(h = 0.25)"

static void rods(void **unused)
{
    (void)unused;
    static const spoiled all[] = {
        { FLIGHT, nothing, NULL },
        { FLIGHT, place_late, "momentum does not follow the forces" },
        { FLIGHT, place_none, "a place or a force of the rods is not finite" },
        { FLIGHT, spin_none, "a frame or a velocity of the rods is not finite" },
        { FLIGHT, energy_last, "the stored energy at t = 0.02" },
        { BENT, held_more, "forces and moments do not balance" },
        { CROSSED, nothing, NULL },
        { CROSSED, load_more, "forces and moments do not balance" },
        { CROSSED, sink_upper, "the rods overlap by 0.15 of their radius" },
        { CROSSED, sink_on_the_way, "the rods overlap by 0.15 of their radius at t = 0.5, s = 0.4" },
        { CROSSED, press_not, "a pair of points pulls with" },
        { CROSSED, press_less, "friction passes its bound" },
    };
    ALL(all);
}

/* ---- fields ---- */
static void (*field_alter)(field_result *r);

static field_result *line_then_alter(field_work *w)
{
    field_result *r = line_solve(w, &(line_options){ .cells = 64, .tolerance = 1e-12 });
    assert_non_null(r);
    field_alter(r);
    return r;
}

static void field_one(const char *program_text, void (*alter)(field_result *r), const char *message)
{
    cdl *s = session_with(program_text);
    arena *a = arena_new(&allocator_libc, NULL);
    const results *was = s->last->r;
    results *r = results_new(a, was->prog);
    memcpy(r->param, was->param, (size_t)was->prog->nparam * sizeof *r->param);
    field_alter = alter;
    field_run(was->prog, &(run_options){ .duration = NAN }, r, line_then_alter);
    if (message && (r->status != RUN_FAILED || !strstr(r->message, message)))
        fail_msg("'%s' is expected, not: %s", message, r->message ? r->message : "nothing");
    if (!message && r->message)
        fail_msg("it fails with: %s", r->message);
    arena_free(a);
    cdl_free(s);
}

static void as_it_is(field_result *r)
{
    (void)r;
}

static void no_number(field_result *r)
{
    r->u[10] = NAN;
}

static void through(field_result *r)
{
    r->u[r->n / 2] -= 0.1;
}

static void lifted(field_result *r)
{
    r->u[5] += 1e-3;
}

static void end_moved(field_result *r)
{
    r->u[0] += 1e-3;
}

#define STRING                                                                                  \
    "model m { domain x in 0..1; field u(x); -u'' = -8; obstacle u >= -0.5; boundary u = 0 }\n" \
    "run m with active_set(cells = 64)"

static void fields(void **unused)
{
    (void)unused;
    field_one(STRING, as_it_is, NULL);
    field_one(STRING, no_number, "the solution is not finite");
    field_one(STRING, through, "passes the obstacle by");
    field_one(STRING, lifted, "the solution does not satisfy its equations: relative residual");
    field_one(STRING, end_moved, "the solution does not satisfy its equations: relative residual");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(motion),     cmocka_unit_test(laws), cmocka_unit_test(boxes),
        cmocka_unit_test(inclusions), cmocka_unit_test(rods), cmocka_unit_test(fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
