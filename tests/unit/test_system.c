/* A program at an instant: initial values, masses, forces and energies, with kernels built by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "base/random.h"
#include "program/system.h"
#include "lower/emit.h"

typedef struct {
    arena *a, *scratch;
    ir *g;
    program p;
    kernel k[8];
    int n;
} kit;

static kit *kit_new(int nq)
{
    arena *a = arena_new(&allocator_libc, NULL);
    kit *k = arena_make(a, kit);
    uint8_t *order = arena_array(a, uint8_t, nq);
    memset(order, 2, (size_t)nq);
    k->a = a;
    k->scratch = arena_new(&allocator_libc, NULL);
    k->g = ir_new(a);
    k->p.nq = nq;
    k->p.order = order;
    k->p.mass_diagonal = k->p.mass_constant = true;
    return k;
}
static void kit_free(kit *k)
{
    arena_free(k->scratch);
    arena_free(k->a);
}

static ir_ref input(kit *k, in_kind kind, int at, int stride)
{
    return ir_in(k->g, (ir_input){ .kind = kind, .at = { .base = at, .stride = { stride } } });
}
static ir_ref C(kit *k, double x)
{
    return ir_const(k->g, x);
}
static ir_ref mul(kit *k, ir_ref a, ir_ref b)
{
    return ir_op2(k->g, OP_MUL, a, b);
}

/* One output with its row, for one member or for the members 1..count. */
static kernel *put(kit *k, ir_ref x, int row, int stride, int count, span at)
{
    index_set over = { .n = count > 0, .count = count > 0 ? count : 1, .r = { { .lo = 1, .hi = count } } };
    slot_map *r = arena_array(k->a, slot_map, 1);
    kernel *o = &k->k[k->n++];
    *o = emit_kernel(k->a, k->scratch, k->g, &x, 1, &over, IR_NONE, at);
    *r = (slot_map){ .base = row, .stride = { stride } };
    o->row = o->col = r;
    return o;
}

static system_t *at_work(kit *k, const double *param)
{
    const char *why = "of a call before";
    span at;
    system_t *s = system_new(k->a, &k->p, param, STORE_WHOLE, &why, &at);
    assert_non_null(s);
    return s;
}

/* A part's own initial values, then those from its container: the last value counts, they are not added. */
static void last_initial_value_counts(void **state)
{
    (void)state;
    kit *k = kit_new(3);
    double param[1] = { 7 }, q[3], v[3];
    kernel *own = put(k, C(k, 2), -1, 1, 3, SPAN_NONE);                     /* q[0..2] = 2 */
    put(k, mul(k, C(k, 10), input(k, IN_INDEX, 0, 0)), 0, 1, 2, SPAN_NONE); /* then q[1], q[2] = 10 i */
    put(k, input(k, IN_PARAM, 0, 0), 2, 0, 0, SPAN_NONE);                   /* then q[2] = the parameter */
    k->p.start.q = (kernels){ own, 3 };
    /* v[0] = q[1], with its value at that point */
    k->p.start.v = (kernels){ put(k, input(k, IN_Q, 1, 0), 0, 0, 0, SPAN_NONE), 1 };
    system_t *s = at_work(k, param);
    system_start(s, q, v);
    assert_true(q[0] == 2 && q[1] == 10 && q[2] == 7);
    assert_true(v[0] == 10 && v[1] == 0 && v[2] == 0);
    kit_free(k);
}

/* Several kernels with the same row are added; parameters are constant, time and state are evaluated at each
   instant. */
static void forces_add_up(void **state)
{
    (void)state;
    kit *k = kit_new(2);
    double param[2] = { 3, 5 }, q[2] = { 1, 2 }, v[2] = { 10, 20 }, f[2], q2[2] = { 4, 4 };
    kernel *first = put(k, mul(k, input(k, IN_PARAM, 0, 0), input(k, IN_TIME, 0, 0)), 0, 0, 0, SPAN_NONE);
    put(k, mul(k, input(k, IN_PARAM, 1, 0), input(k, IN_Q, 1, 0)), 0, 0, 0, SPAN_NONE);
    put(k, input(k, IN_V, -1, 1), -1, 1, 2, SPAN_NONE);
    k->p.force = (kernels){ first, 3 };
    kernel *energy = put(k, mul(k, input(k, IN_PARAM, 0, 0), input(k, IN_Q, 0, 0)), 0, 0, 0, SPAN_NONE);
    put(k, input(k, IN_Q, -1, 1), 0, 0, 2, SPAN_NONE);
    k->p.potential = (kernels){ energy, 2 };
    system_t *s = at_work(k, param);
    system_at(s, 2, q, v);
    system_force(s, f);
    assert_true(f[0] == 3 * 2 + 5 * 2 + 10 && f[1] == 20);
    assert_true(system_sum(s, &s->potential) == 3 * 1 + 1 + 2);
    system_at(s, 4, q2, v);
    system_force(s, f);
    assert_true(f[0] == 3 * 4 + 5 * 4 + 10 && f[1] == 20);
    assert_true(system_sum(s, &s->potential) == 3 * 4 + 4 + 4);
    assert_true(s->force_of_state && !s->force_constant);
    kit_free(k);
}

/* A mass that is not positive is reported with its row and the statement that defines it. */
static void bad_mass_is_located(void **state)
{
    (void)state;
    kit *k = kit_new(2);
    double M[2];
    int bad = -1;
    span one = { .file = 1, .begin = 3, .end = 5 }, two = { .file = 1, .begin = 8, .end = 9 };
    kernel *m = put(k, C(k, 1), 0, 0, 0, one);
    put(k, C(k, -2), 1, 0, 0, two);
    k->p.mass = (kernels){ m, 2 };
    system_t *s = at_work(k, NULL);
    system_at(s, 0, M, M);
    system_mass(s, M);
    assert_true(M[0] == 1 && M[1] == -2);
    assert_false(system_factor(s, M, &bad));
    assert_int_equal(bad, 1);
    span at = mass_where(&k->p, bad);
    assert_int_equal(at.begin, two.begin);
    kit_free(k);
}

static double drawn(uint64_t *seed)
{
    *seed += 0x9e3779b97f4a7c15u;
    return (double)(hash64(*seed, 1) >> 11) / 9007199254740992.0;
}

/* The directions of slip of two points in space: the same to the last bit whatever unit a dof has, also where
   the row of the gap is not quite spanned by the slip, as between curved shapes. */
static void slip_frame_in_any_unit(void **state)
{
    enum { SPACE = 3, DOFS = 12, TRIALS = 200 };
    (void)state;
    uint64_t seed = 1;
    for (int trial = 0; trial < TRIALS; trial++) {
        double S[SPACE * DOFS] = { 0 }, H[DOFS], S1[SPACE * DOFS], H1[DOFS], nu[SPACE], E[9], E1[9];
        for (int i = 0; i < SPACE; i++) {
            nu[i] = drawn(&seed) - 0.5;
            S[i * DOFS + i] = 1;
            S[i * DOFS + 6 + i] = -1;
            for (int j = 0; j < SPACE; j++) {
                S[i * DOFS + 3 + j] = drawn(&seed) - 0.5;
                S[i * DOFS + 9 + j] = drawn(&seed) - 0.5;
            }
        }
        for (int j = 0; j < DOFS; j++) {
            double unit = ldexp(1, 2 * (int)(10 * drawn(&seed)) - 10);
            H[j] = 1e-11 * drawn(&seed);
            for (int i = 0; i < SPACE; i++) {
                H[j] += nu[i] * S[i * DOFS + j];
                S1[i * DOFS + j] = S[i * DOFS + j] * unit;
            }
            H1[j] = H[j] * unit;
        }
        assert_int_equal(slip_frame(S, H, SPACE, DOFS, true, E), 2);
        assert_int_equal(slip_frame(S1, H1, SPACE, DOFS, true, E1), 2);
        assert_memory_equal(E, E1, 2 * SPACE * sizeof *E);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slip_frame_in_any_unit),
        cmocka_unit_test(last_initial_value_counts),
        cmocka_unit_test(forces_add_up),
        cmocka_unit_test(bad_mass_is_located),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
