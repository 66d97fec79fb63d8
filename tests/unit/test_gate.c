/* gate: a correct motion passes; with one wrong number it fails, with the constraint and the time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "cdl.h"
#include "inclusion/inclusion.h"
#include "lower/emit.h"
#include "motion/gate.h"
#include "rod/rod.h"
#include "session/session.h"

/* A block of mass 1 slides on a floor: x'' = -mu g, y = 0, rn = g, rt = -mu g; mu = 0.3, g = 10. */
enum { SAMPLES = 5, MANY = 100001 };
typedef struct {
    arena *a, *scratch;
    ir *g;
    program p;
    kernel mass, potential, force;
    contact_family floor;
    results *r;
} kit;

static ir_ref in(kit *k, in_kind kind, int at)
{
    return ir_in(k->g, (ir_input){ .kind = kind, .at.base = at });
}

static kernel put(kit *k, const ir_ref *out, size_t n, const slot_map *row)
{
    index_set one = { .count = 1 };
    kernel x = emit_kernel(k->a, k->scratch, k->g, out, n, &one, IR_NONE, SPAN_NONE);
    x.row = x.col = row;
    return x;
}

/* h: time between samples. */
static kit *kit_of(int samples, double h)
{
    static const slot_map both[] = { { .base = 0 }, { .base = 1 } };
    static const uint8_t order[] = { 2, 2 };
    static const dof_info dof[] = { { "x", NULL, 0, 1, { 1, 0, 1 } }, { "y", NULL, 1, 1, { 1, 0, 1 } } };
    arena *a = arena_new(&allocator_libc, NULL);
    kit *k = arena_make(a, kit);
    k->a = a;
    k->scratch = arena_new(&allocator_libc, NULL);
    k->g = ir_new(a);
    k->p = (program){ .model = "block", .nq = 2, .order = order, .dofs = { .at = dof, .n = 2 } };
    ir_ref one = ir_const(k->g, 1), zero = ir_const(k->g, 0), y = in(k, IN_Q, 1), mu = ir_const(k->g, 0.3);
    ir_ref V = ir_op2(k->g, OP_MUL, ir_const(k->g, 10), y);
    k->mass = put(k, (ir_ref[]){ one, one }, 2, both);
    k->potential = put(k, &V, 1, NULL);
    k->force = put(k, (ir_ref[]){ zero, ir_const(k->g, -10) }, 2, both);
    k->p.force = (kernels){ &k->force, 1 };
    k->p.mass = (kernels){ &k->mass, 1 };
    k->p.potential = (kernels){ &k->potential, 1 };
    k->floor = (contact_family){ .name = "floor",
                                 .at = { 1, 3, 4 },
                                 .over.count = 1,
                                 .relation = REL_GAP,
                                 .friction = FRICTION_COULOMB,
                                 .slip_given = true,
                                 .nslip = 1,
                                 .gap = put(k, &y, 1, NULL),
                                 .gradient = put(k, (ir_ref[]){ zero, one }, 2, both),
                                 .slip_map = put(k, &one, 1, both),
                                 .mu = put(k, &mu, 1, NULL) };
    k->p.contact = &k->floor;
    k->p.ncontact = 1;
    k->r = results_new(a, &k->p);
    k->r->backend = "sweeping";
    k->r->param = arena_array(a, double, 1);
    contact_result *c = &k->r->contact[0];
    k->r->count.steps = samples - 1;
    for (int i = 0; i < samples; i++) {
        int64_t at = results_sample(k->r);
        double t = h * i, v = 2 - 3 * t;
        results *r = k->r;
        r->t[at] = r->t_end = t;
        r->q[2 * at] = 2 * t - 1.5 * t * t;
        r->q[2 * at + 1] = 0;
        r->v[2 * at] = v;
        r->v[2 * at + 1] = 0;
        r->acc[2 * at] = -3;
        r->acc[2 * at + 1] = 0;
        r->energy[at] = v * v / 2;
        r->dissipated[at] = 2 - v * v / 2;
        r->work[at] = r->drift[at] = 0;
        c->gap[at] = 0;
        c->rn[at] = 10;
        c->rt[at] = -3;
        c->slip[at] = v;
        c->status[at] = STATUS_SLIP;
    }
    return k;
}

static kit *kit_new(void)
{
    return kit_of(SAMPLES, 0.1);
}

static void check(kit *k, const char *message)
{
    gate_check(k->r, &(run_options){ 0 });
    if (!message) {
        assert_null(k->r->message);
        assert_int_equal(k->r->status, RUN_OK);
    } else {
        assert_int_equal(k->r->status, RUN_FAILED);
        assert_string_equal(k->r->message, message);
    }
    arena_free(k->scratch);
    arena_free(k->a);
}

static void right(void **unused)
{
    (void)unused;
    check(kit_new(), NULL);
}

/* "penetration 0" while a body is far below the floor; the column of gaps is wrong, too */
static void below(void **unused)
{
    (void)unused;
    kit *k = kit_new();
    k->r->q[2 * 2 + 1] = -5;
    k->r->energy[2] -= 50;
    gate_check(k->r, &(run_options){ 0 });
    assert_true(k->r->max_penetration == 5);
    assert_int_equal(k->r->where.begin, 3);
    check(k, "constraint 'floor' does not hold at t = 0.2: its gap is -5");
}

static void not_finite(void **unused)
{
    (void)unused;
    kit *k = kit_new();
    k->r->q[2] = NAN;
    check(k, "x is not finite at t = 0.1");
    k = kit_new();
    k->r->v[2 * 3 + 1] = INFINITY;
    check(k, "y' is not finite at t = 0.30000000000000004");
    k = kit_new();
    k->r->acc[2 * 4] = -INFINITY;
    check(k, "x'' is not finite at t = 0.4");
    k = kit_new();
    k->r->energy[1] = NAN;
    check(k, "the energy is not finite at t = 0.1");
}

static void reactions(void **unused)
{
    (void)unused;
    kit *k = kit_new();
    k->r->contact[0].rn[1] = -1;
    check(k, "constraint 'floor' does not hold at t = 0.1: its reaction pulls with 1");
    k = kit_new();
    k->r->contact[0].rt[1] = -4;
    check(k, "constraint 'floor' does not hold at t = 0.1: its friction force passes the bound by 1");
    k = kit_new();
    k->r->q[2 * 4 + 1] = k->r->contact[0].gap[4] = 0.5;
    k->r->energy[4] += 5;
    check(k, "constraint 'floor' does not hold at t = 0.4: its reaction acts at a gap of 0.5");
}

static void energy(void **unused)
{
    (void)unused;
    kit *k = kit_new();
    k->r->energy[SAMPLES - 1] += 1e-3;
    gate_check(k->r, &(run_options){ 0 });
    assert_int_equal(k->r->status, RUN_FAILED);
    check(k, k->r->message);
}

/* All numbers agree with each other, but not with the law of motion. */
static void motion(void **unused)
{
    (void)unused;
    kit *k = kit_new();
    gate_check(k->r, &(run_options){ 0 });
    assert_true(k->r->residual <= 1e-14);
    k->r->contact[0].rt[2] = -1.5; /* half of the correct friction */
    gate_check(k->r, &(run_options){ 0 });
    assert_true(k->r->residual > 0.2);
    assert_int_equal(k->r->where.begin, 0);
    check(k, "the equation of motion of x does not hold at t = 0.2: its defect is 0.25 of its terms");
    k = kit_new();
    for (int i = 2; i < SAMPLES; i++) { /* it falls, with consistent energies */
        k->r->v[2 * i + 1] = -1;
        k->r->energy[i] += 0.5;
    }
    check(k, "the equation of motion of y does not hold at t = 0.2: its defect is 0.333 of its terms");
}

/* Contacts as springs: reactions are those of the sample; gaps may be negative. */
static void springs(void **unused)
{
    (void)unused;
    kit *k = kit_new();
    k->r->promised.gives_way = true;
    for (int i = 0; i < SAMPLES; i++) {
        k->r->q[2 * i + 1] = k->r->contact[0].gap[i] = -1e-3;
        k->r->energy[i] -= 0.01;
    }
    gate_check(k->r, &(run_options){ 0 });
    assert_true(k->r->max_penetration == 1e-3 && k->r->residual <= 1e-14);
    k->r->acc[2 * 3] = -2;
    check(k, "the equation of motion of x does not hold at t = 0.30000000000000004: its defect is 0.167 "
             "of its terms");
}

/* A step runs at least one kernel of forces; for a long run the gate runs far fewer in total. */
static void cost(void **unused)
{
    (void)unused;
    kit *k = kit_of(MANY, 1e-6);
    gate_check(k->r, &(run_options){ 0 });
    assert_true(k->r->count.checked > 1000 && k->r->count.checked < 0.15 * MANY);
    check(k, NULL);
}

/* ---- inclusions ---- */
/* x' in -Sgn(x) from x = 0.25, beside z' in t - normal_cone(z <= 0.05): x decreases to 0 and stays there; z
   grows as t^2/2 and is stopped. Steps of order 1: x and z at the samples follow from their rates. */
enum { ROWS = 2 };
typedef struct {
    kit *k;
    inclusion_program ip;
    inclusion_row row[ROWS];
    inclusion_sgn sgn;
    inclusion_cone cone;
    kernel history[ROWS];
} inclusion_kit;

static kit *inclusion_new(void)
{
    static const dof_info dof[] = { { "x", NULL, 0, 1, { 1, 0, 1 } }, { "z", NULL, 1, 1, { 1, 0, 1 } } };
    static const int32_t of_cone[] = { 1 }, number[] = { 1 };
    arena *a = arena_new(&allocator_libc, NULL);
    kit *k = arena_make(a, kit);
    inclusion_kit *i = arena_make(a, inclusion_kit);
    k->a = a;
    k->scratch = arena_new(&allocator_libc, NULL);
    k->g = ir_new(a);
    k->p = (program){ .model = "two", .nq = ROWS, .dofs = { .at = dof, .n = ROWS }, .inclusion = &i->ip };
    ir_ref one = ir_const(k->g, 1), zero = ir_const(k->g, 0), x = in(k, IN_Q, 0), z = in(k, IN_Q, 1);
    ir_ref Rx = ir_op2(k->g, OP_ADD, in(k, IN_V, 0), in(k, IN_SET, 0)),
           Rz = ir_op2(k->g, OP_ADD, ir_op2(k->g, OP_SUB, in(k, IN_V, 1), in(k, IN_TIME, 0)),
                       in(k, IN_SET, 1));
    i->sgn = (inclusion_sgn){ .number = 0, .arg = put(k, (ir_ref[]){ x, one, zero }, 3, NULL) };
    i->row[0] = (inclusion_row){ .dof = 0,
                                 .cone = -1,
                                 .at = { 1, 7, 8 },
                                 .r = put(k, (ir_ref[]){ Rx, zero, one }, 3, NULL),
                                 .sgn = &i->sgn,
                                 .nsgn = 1 };
    i->row[1] = (inclusion_row){ .dof = 1,
                                 .cone = 0,
                                 .r = put(k, (ir_ref[]){ Rz, zero, one, one }, 4, NULL) };
    i->cone = (inclusion_cone){ .n = 1,
                                .ng = 1,
                                .dof = of_cone,
                                .number = number,
                                .g = put(k, (ir_ref[]){ ir_op2(k->g, OP_SUB, z, ir_const(k->g, 0.05)), one },
                                         2, NULL),
                                .at = { 1, 9, 10 } };
    i->ip = (inclusion_program){
        .nset = 2, .row = i->row, .cone = &i->cone, .ncone = 1, .history = i->history
    };
    results *r = k->r = results_new(a, &k->p);
    r->backend = "inclusion";
    r->param = arena_array(a, double, 1);
    r->linear = true;
    r->count.steps = SAMPLES - 1;
    for (int n = 0; n < SAMPLES; n++) {
        int64_t at = results_sample(r);
        double t = 0.1 * n;
        r->t[at] = r->t_end = r->duration = t;
        r->q[2 * at] = n ? fmax(r->q[2 * at - 2] - 0.1, 0) : 0.25;
        r->q[2 * at + 1] = n ? fmin(r->q[2 * at - 1] + 0.1 * t, 0.05) : 0;
        for (int j = 0; j < ROWS; j++) {
            r->v[2 * at + j] = n ? (r->q[2 * at + j] - r->q[2 * at - 2 + j]) / 0.1 : 0;
            r->acc[2 * at + j] = 0;
        }
        r->energy[at] = r->dissipated[at] = r->work[at] = r->drift[at] = 0;
    }
    return k;
}

static void inclusions(void **unused)
{
    (void)unused;
    kit *k = inclusion_new();
    gate_check(k->r, &(run_options){ 0 });
    assert_true(k->r->residual <= 1e-12 && k->r->max_penetration <= 1e-15);
    check(k, NULL);
    k = inclusion_new();
    k->r->v[2 * 2] = -0.5; /* Sgn is 1 there */
    gate_check(k->r, &(run_options){ 0 });
    assert_int_equal(k->r->where.begin, 7);
    check(k, "the inclusion does not hold at t = 0.2, by 0.5");
    k = inclusion_new();
    k->r->q[2 * 2 + 1] = 0.08;
    k->r->v[2 * 2 + 1] = 0.7;
    gate_check(k->r, &(run_options){ 0 });
    assert_int_equal(k->r->where.begin, 9);
    check(k, "x does not lie in C(t) at t = 0.2, by 0.03");
    k = inclusion_new(); /* inside C nothing pushes */
    k->r->q[2 * 2 + 1] = 0.02;
    k->r->v[2 * 2 + 1] = 0.1;
    check(k, "the velocity leaves the normal cone at t = 0.2, by 0.1");
    k = inclusion_new();
    k->r->q[2 * 4] = k->r->q[2 * 3] = 0.1;
    check(k, "the inclusion does not hold at t = 0.30000000000000004, by 0.5");
    k = inclusion_new();
    k->r->q[2] = NAN;
    check(k, "the solution is not finite at t = 0.1");
}

/* ---- rods ---- */
/* A rod of length 1 along axis 3, stretched by a tenth between two supports: B = diag(1, 1, 2), so it pulls
   with 0.2 and its energy is 0.01. */
typedef struct {
    rod_spec spec;
    rod_program rp;
    rod_mesh mesh;
    rod_result result;
} rod_kit;

static kit *rod_new(rod_kit **to)
{
    static double s[] = { 0, 1. / 3, 2. / 3, 1 }, v0[] = { 0, 0, 1, 0, 0, 1, 0, 0, 1 }, u0[9];
    static const int support[] = { 0, 3 };
    arena *a = arena_new(&allocator_libc, NULL);
    kit *k = arena_make(a, kit);
    rod_kit *w = *to = arena_make(a, rod_kit);
    k->a = a;
    k->scratch = arena_new(&allocator_libc, NULL);
    w->spec = (rod_spec){ .name = "bar", .at = { 1, 5, 6 } };
    w->rp = (rod_program){ .rod = &w->spec, .nrod = 1 };
    w->mesh = (rod_mesh){ .spec = &w->spec,
                          .ne = 1,
                          .nn = ROD_NODES,
                          .length = 1,
                          .B = { 1, 0, 0, 0, 1, 0, 0, 0, 2 },
                          .A = { 1, 0, 0, 0, 1, 0, 0, 0, 1 },
                          .s = s,
                          .v0 = v0,
                          .u0 = u0 };
    w->result = (rod_result){ .rp = &w->rp, .mesh = &w->mesh, .support = support, .nsupport = 2 };
    w->result.r = arena_array(a, double, 3 * ROD_NODES);
    w->result.q = arena_array(a, double, 4 * ROD_NODES);
    w->result.reaction = arena_array(a, double, 6 * ROD_NODES);
    for (int i = 0; i < ROD_NODES; i++) {
        w->result.r[3 * i + 2] = 1.1 * s[i];
        w->result.q[4 * i] = 1;
    }
    w->result.reaction[2] = -0.2;
    w->result.reaction[6 * 3 + 2] = 0.2;
    k->p = (program){ .model = "pull", .rod = &w->rp };
    k->r = results_new(a, &k->p);
    k->r->backend = "sweeping";
    k->r->param = arena_array(a, double, 1);
    k->r->ntrack = 3 * ROD_NODES + 12;
    int64_t at = results_sample(k->r);
    k->r->t[at] = k->r->t_end = 1;
    k->r->energy[at] = 0.01;
    memset(k->r->track, 0, (size_t)k->r->ntrack * sizeof(double));
    k->r->rod = &w->result;
    return k;
}

static void rods(void **unused)
{
    (void)unused;
    rod_kit *w;
    kit *k = rod_new(&w);
    gate_check(k->r, &(run_options){ 0 });
    assert_true(k->r->residual <= 1e-14);
    check(k, NULL);
    k = rod_new(&w);
    w->result.reaction[6 * 3 + 2] = 0.1;
    gate_check(k->r, &(run_options){ 0 });
    assert_int_equal(k->r->where.begin, 5);
    assert_true(k->r->residual > 0.01);
    assert_non_null(strstr(k->r->message, "forces and moments do not balance at t = 1"));
    check(k, k->r->message);
    k = rod_new(&w); /* rotating an inner section causes moments */
    w->result.q[4] = cos(0.05);
    w->result.q[5] = sin(0.05);
    k->r->energy[0] = NAN;
    gate_check(k->r, &(run_options){ 0 });
    assert_non_null(strstr(k->r->message, "the stored energy at t = 1"));
    check(k, k->r->message);
    k = rod_new(&w);
    k->r->track[4] = NAN;
    check(k, "a place or a force of the rods is not finite at t = 1");
}

/* ---- very many pairs ---- */
/* The largest overlap, from all pairs. */
static double deepest_of_all(const results *r, int n, int axes, const double *radius)
{
    double deepest = 0;
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++) {
            double square = 0;
            for (int k = 0; k < axes; k++)
                square += pow(r->q[axes * i + k] - r->q[axes * j + k], 2);
            deepest = fmax(deepest, radius[i] + radius[j] - sqrt(square));
        }
    return deepest;
}

/* In the plane and in space, with equal and different sizes: the overlap that is found is the largest one. */
static void pairs(void **unused)
{
    (void)unused;
    enum { N = 300, TRIES = 20 };
    for (int kind = 0; kind < 4; kind++) {
        int axes = 2 + kind % 2;
        double radius[N], one = kind < 2 ? 0 : 1e-3;
        char form[512];
        snprintf(form, sizeof form,
                 "model m { param N = %d; dof p[i in 1..N] in R%d = [i, %s2*i]\n"
                 "for i in 1..N { kinetic norm(p[i]')^2/2 }\n"
                 "constraint touch[i in 1..N, j in i+1..N]: norm(p[i] - p[j]) >= 0.2 + %g*(i + j) }\n"
                 "run m for 0.01 with sweeping(h = 0.01)\n",
                 N, axes, axes == 3 ? "0, " : "", one);
        cdl *s = cdl_new(NULL);
        cdl_set(s, "quiet", "yes");
        cdl_set(s, "manifest", "no");
        assert_int_equal(cdl_run_text(s, "disks", form, strlen(form)), CDL_OK);
        results *r = s->last->r;
        unsigned seed = 1;
        double most = 0;
        for (int i = 0; i < N; i++)
            radius[i] = 0.1 + one * (i + 1);
        for (int k = 0; k < TRIES; k++) {
            for (int i = 0; i < N * axes; i++) {
                seed = seed * 1664525u + 1013904223u;
                r->q[i] = (double)(seed >> 8) / (1 << 24) * (i % axes ? 10 + k : 3);
            }
            r->samples = 1;
            r->status = RUN_OK;
            r->max_penetration = 0;
            r->promised.gives_way = true;
            gate_check(r, &(run_options){ 0 });
            assert_true(fabs(r->max_penetration - deepest_of_all(r, N, axes, radius)) <= 1e-12);
            most = fmax(most, r->max_penetration);
        }
        assert_true(most > 0.01);
        assert_true(r->count.checked < N * N / 4);
        r->q[7] = NAN;
        r->status = RUN_OK;
        gate_check(r, &(run_options){ 0 });
        assert_int_equal(r->status, RUN_FAILED);
        cdl_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right),     cmocka_unit_test(below),  cmocka_unit_test(not_finite),
        cmocka_unit_test(reactions), cmocka_unit_test(energy), cmocka_unit_test(motion),
        cmocka_unit_test(springs),   cmocka_unit_test(cost),   cmocka_unit_test(inclusions),
        cmocka_unit_test(rods),      cmocka_unit_test(pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
