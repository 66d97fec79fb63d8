/* gate: a motion that is right passes; with one number wrong it fails, at the constraint and the time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "lower/emit.h"
#include "motion/gate.h"

/* A block of mass 1 slides on a floor: x'' = -mu g, y = 0, rn = g, rt = -mu g; mu = 0.3, g = 10. */
enum { SAMPLES = 5 };
typedef struct {
    arena *a, *scratch;
    ir *g;
    program p;
    kernel mass, potential;
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

static kit *kit_new(void)
{
    static const slot_map both[] = { { .base = 0 }, { .base = 1 } };
    static const uint8_t order[] = { 2, 2 };
    static const dof_info dof[] = { { "x", NULL, 0, 1, { 1, 0, 1 } }, { "y", NULL, 1, 1, { 1, 0, 1 } } };
    arena *a = arena_new(&allocator_libc, NULL);
    kit *k = arena_make(a, kit);
    k->a = a;
    k->scratch = arena_new(&allocator_libc, NULL);
    k->g = ir_new(a);
    k->p = (program){ .model = "block", .nq = 2, .order = order, .dof = dof, .ndof_info = 2 };
    ir_ref one = ir_const(k->g, 1), zero = ir_const(k->g, 0), y = in(k, IN_Q, 1), mu = ir_const(k->g, 0.3);
    ir_ref V = ir_op2(k->g, OP_MUL, ir_const(k->g, 10), y);
    k->mass = put(k, (ir_ref[]){ one, one }, 2, both);
    k->potential = put(k, &V, 1, NULL);
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
                                 .mu = put(k, &mu, 1, NULL) };
    k->p.contact = &k->floor;
    k->p.ncontact = 1;
    k->r = results_new(a, &k->p);
    k->r->param = arena_array(a, double, 1);
    contact_result *c = &k->r->contact[0];
    for (int i = 0; i < SAMPLES; i++) {
        int64_t at = results_sample(k->r);
        double t = 0.1 * i, v = 2 - 3 * t;
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

/* "penetration 0" while a body is far below the floor, and the column of gaps says so too */
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
    check(k, "constraint 'floor' does not hold at t = 0.4: it pushes at a gap of 0.5");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right),     cmocka_unit_test(below),  cmocka_unit_test(not_finite),
        cmocka_unit_test(reactions), cmocka_unit_test(energy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
