/* The sweeping backend on programs built by hand: known motions, exact sticking, impacts, Gauss's principle,
   energy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "clock/backend.h"
#include "lower/emit.h"

/* ---- building small models ---- */
typedef struct {
    arena *a, *scratch;
    ir *g;
    program p;
    kernel mass, force, dq, dv, q0, v0, kinetic, potential;
    contact_family c[4];
} kit;

static ir_ref input(kit *k, in_kind kind, int at)
{
    return ir_in(k->g, (ir_input){ .kind = kind, .at = { .base = at } });
}
static ir_ref Q(kit *k, int i)
{
    return input(k, IN_Q, i);
}
static ir_ref V(kit *k, int i)
{
    return input(k, IN_V, i);
}
static ir_ref T(kit *k)
{
    return input(k, IN_TIME, 0);
}
static ir_ref C(kit *k, double x)
{
    return ir_const(k->g, x);
}
#define ADD(a, b) ir_op2(k->g, OP_ADD, a, b)
#define SUB(a, b) ir_op2(k->g, OP_SUB, a, b)
#define MUL(a, b) ir_op2(k->g, OP_MUL, a, b)
#define SIN(a)    ir_op1(k->g, OP_SIN, a)
#define COS(a)    ir_op1(k->g, OP_COS, a)
#define EXP(a)    ir_op1(k->g, OP_EXP, a)

/* Outputs that are not 0, with their rows and columns. */
static kernel put(kit *k, const ir_ref *out, const int *row, const int *col, size_t n)
{
    ir_ref keep[64];
    slot_map *r = arena_array(k->a, slot_map, n), *c = arena_array(k->a, slot_map, n);
    size_t m = 0;
    index_set one = { .n = 0, .count = 1 };
    for (size_t i = 0; i < n; i++) {
        double x;
        if (ir_is_const(k->g, out[i], &x) && x == 0 && row)
            continue;
        if (row)
            r[m].base = row[i];
        if (col)
            c[m].base = col[i];
        keep[m++] = out[i];
    }
    if (m == 0)
        return (kernel){ .over = one };
    kernel ker = emit_kernel(k->a, k->scratch, k->g, keep, m, &one, IR_NONE, SPAN_NONE);
    ker.row = row ? r : NULL;
    ker.col = col ? c : NULL;
    return ker;
}

static kernel put1(kit *k, ir_ref x)
{
    return put(k, &x, NULL, NULL, 1);
}

static kit *kit_new(int n)
{
    arena *a = arena_new(&allocator_libc, NULL);
    kit *k = arena_make(a, kit);
    k->a = a;
    k->scratch = arena_new(&allocator_libc, NULL);
    k->g = ir_new(a);
    k->p.model = "test";
    k->p.nq = n;
    uint8_t *order = arena_array(a, uint8_t, n);
    memset(order, 2, (size_t)n);
    k->p.order = order;
    k->p.contact = k->c;
    return k;
}

static void kit_free(kit *k)
{
    arena_free(k->scratch);
    arena_free(k->a);
}

static bool reads_state(const ir_input *in, void *ud)
{
    (void)ud;
    return in->kind == IN_Q || in->kind == IN_V || in->kind == IN_TIME;
}

/* M (n*n, rows) q'' = f. */
static void equations(kit *k, const ir_ref *M, const ir_ref *f)
{
    int n = k->p.nq, row[64], col[64], line[8];
    ir_ref dq[64], dv[64];
    k->p.mass_constant = k->p.mass_diagonal = k->p.force_linear = true;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double x;
            row[i * n + j] = i;
            col[i * n + j] = j;
            line[i] = i;
            dq[i * n + j] = ir_derive(k->g, f[i], Q(k, j));
            dv[i * n + j] = ir_derive(k->g, f[i], V(k, j));
            if (ir_depends(k->g, M[i * n + j], reads_state, NULL))
                k->p.mass_constant = false;
            if (i != j && !(ir_is_const(k->g, M[i * n + j], &x) && x == 0))
                k->p.mass_diagonal = false;
        }
    k->mass = put(k, M, row, col, (size_t)(n * n));
    k->force = put(k, f, line, NULL, (size_t)n);
    k->dq = put(k, dq, row, col, (size_t)(n * n));
    k->dv = put(k, dv, row, col, (size_t)(n * n));
    k->p.mass = (kernels){ &k->mass, 1 };
    k->p.force = (kernels){ &k->force, 1 };
    k->p.driving = k->p.force; /* no potential is given: all forces do work */
    k->p.force_dq = (kernels){ &k->dq, 1 };
    k->p.force_dv = (kernels){ &k->dv, 1 };
}

static void unit_masses(kit *k, const ir_ref *f)
{
    ir_ref M[64];
    for (int i = 0; i < k->p.nq * k->p.nq; i++)
        M[i] = C(k, i % (k->p.nq + 1) == 0);
    equations(k, M, f);
}

static void initial(kit *k, const double *q, const double *v)
{
    ir_ref a[8], b[8];
    int line[8];
    for (int i = 0; i < k->p.nq; i++) {
        a[i] = C(k, q[i]);
        b[i] = C(k, v[i]);
        line[i] = i;
    }
    k->q0 = put(k, a, line, NULL, (size_t)k->p.nq);
    k->v0 = put(k, b, line, NULL, (size_t)k->p.nq);
    k->p.start.q = (kernels){ &k->q0, 1 };
    k->p.start.v = (kernels){ &k->v0, 1 };
}

static contact_family *constraint(kit *k, const char *name, ir_ref gap, contact_relation rel)
{
    contact_family *c = &k->c[k->p.ncontact++];
    int n = k->p.nq, line[8];
    ir_ref H[8];
    *c = (contact_family){ .name = name, .over = { .count = 1 }, .relation = rel };
    if (rel == REL_CLOSED)
        return c;
    for (int i = 0; i < n; i++) {
        H[i] = ir_derive(k->g, gap, Q(k, i));
        line[i] = i;
    }
    ir_ref dt = ir_derive(k->g, gap, T(k)), rate = dt, bias;
    for (int i = 0; i < n; i++)
        rate = ADD(rate, MUL(H[i], V(k, i)));
    bias = ir_derive(k->g, rate, T(k));
    for (int i = 0; i < n; i++)
        bias = ADD(bias, MUL(ir_derive(k->g, rate, Q(k, i)), V(k, i)));
    c->gap = put1(k, gap);
    c->gradient = put(k, H, line, NULL, (size_t)n);
    c->rate = put1(k, dt);
    c->bias = put1(k, bias);
    return c;
}

static void restitution(kit *k, contact_family *c, double e)
{
    c->e = put1(k, C(k, e));
}
static void coulomb(kit *k, contact_family *c, ir_ref mu)
{
    c->friction = FRICTION_COULOMB;
    c->mu = put1(k, mu);
}

static ir_ref at_rest(ir *g, ir_ref input, void *ud)
{
    (void)ud;
    return ir_input_of(g, input)->kind == IN_V ? ir_const(g, 0) : IR_NONE;
}

static void slip(kit *k, contact_family *c, const ir_ref *s, int m)
{
    int row[64], col[64], n = k->p.nq;
    ir_ref S[64], offset[64];
    for (int i = 0; i < m; i++) {
        offset[i] = ir_substitute(k->g, s[i], at_rest, NULL);
        for (int j = 0; j < n; j++) {
            row[i * n + j] = i;
            col[i * n + j] = j;
            S[i * n + j] = ir_derive(k->g, s[i], V(k, j));
        }
    }
    c->slip_given = true;
    c->nslip = m;
    c->slip = put(k, s, NULL, NULL, (size_t)m);
    c->slip_offset = put(k, offset, NULL, NULL, (size_t)m);
    c->slip_map = put(k, S, row, col, (size_t)(m * n));
}

static results *run_to(kit *k, double duration, double h, double tol)
{
    const backend *b = backend_find("sweeping");
    run_options o = { .duration = duration };
    for (int i = 0; i < b->noption; i++)
        o.value[i] = b->option[i].value;
    o.value[0] = h;
    o.value[2] = tol;
    results *r = results_new(k->a, &k->p);
    b->run(&k->p, &o, r);
    if (r->status == RUN_FAILED)
        fail_msg("%s", r->message);
    return r;
}

static results *run(kit *k, double duration, double h)
{
    return run_to(k, duration, h, NAN);
}
static double last_q(const results *r, int i)
{
    return r->q[(r->samples - 1) * r->prog->nq + i];
}
static double last_v(const results *r, int i)
{
    return r->v[(r->samples - 1) * r->prog->nq + i];
}
#define near_to_(a, b, tol)                                                     \
    do {                                                                        \
        double a_ = (a), b_ = (b);                                              \
        if (!(fabs(a_ - b_) <= (tol)))                                          \
            fail_msg(#a " is %.17g, not %.17g (off by %.2g)", a_, b_, a_ - b_); \
    } while (0)

static kit *ball(double e)
{
    kit *k = kit_new(1);
    unit_masses(k, (ir_ref[]){ C(k, -9.81) });
    initial(k, (double[]){ 1 }, (double[]){ 0 });
    restitution(k, constraint(k, "floor", Q(k, 0), REL_GAP), e);
    return k;
}

/* Free flight under a constant force is exact; impacts are located to rounding. */
static void ball_bounces(void **s)
{
    (void)s;
    kit *k = ball(0.8);
    results *r = run(k, 3, 1e-3);
    double t1 = sqrt(2 / 9.81);
    assert_true(r->contact[0].impacts.n >= 4);
    near_to_(r->contact[0].impacts.at[0].t, t1, 1e-12);
    near_to_(r->contact[0].impacts.at[0].pre, -9.81 * t1, 1e-11);
    near_to_(r->contact[0].impacts.at[0].post, 0.8 * 9.81 * t1, 1e-11);
    near_to_(r->contact[0].impacts.at[1].t, t1 * 2.6, 1e-11);
    near_to_(results_q(r, 0, t1 * 1.8), 0.64, 1e-11);
    assert_true(r->max_penetration <= 1e-11);
    assert_true(r->power_balance <= 1e-12);
    assert_int_equal(r->samples, 3001);
    kit_free(k);
}

/* Infinitely many rebounds end at sqrt(2/g)(1 + e)/(1 - e). */
static void ball_comes_to_rest(void **s)
{
    (void)s;
    for (double e = 0.3; e < 0.85; e += 0.25) {
        kit *k = ball(e);
        results *r = run(k, 6, 1e-3);
        near_to_(results_settle(r, 0, 0), sqrt(2 / 9.81) * (1 + e) / (1 - e), 2e-3);
        near_to_(last_q(r, 0), 0, 1e-12);
        assert_true(last_v(r, 0) == 0);
        near_to_(r->contact[0].rn[r->samples - 1], 9.81, 1e-10);
        near_to_(r->dissipated[r->samples - 1], 9.81, 1e-9);
        assert_true(r->power_balance <= 1e-10);
        kit_free(k);
    }
}

/* Slides at 45 degrees, stops after v^2/(2 mu g), and then never creeps. */
static void block_slides_and_sticks(void **s)
{
    (void)s;
    kit *k = kit_new(3);
    unit_masses(k, (ir_ref[]){ C(k, 0), C(k, 0), C(k, -9.81) });
    initial(k, (double[]){ 0, 0, 0 }, (double[]){ 1, 1, 0 });
    contact_family *c = constraint(k, "floor", Q(k, 2), REL_GAP);
    coulomb(k, c, C(k, 0.3));
    results *r = run(k, 2, 1e-3);
    double way = 2 / (2 * 0.3 * 9.81) / sqrt(2);
    near_to_(last_q(r, 0), way, 0.005 * way);
    near_to_(last_q(r, 0), way, 1e-6);
    assert_true(fabs(last_q(r, 0) - last_q(r, 1)) <= 1e-13);
    assert_true(last_v(r, 0) == 0 && last_v(r, 1) == 0 && last_v(r, 2) == 0);
    int64_t half = r->samples * 3 / 4;
    assert_true(r->q[half * 3] == last_q(r, 0) && r->q[half * 3 + 1] == last_q(r, 1));
    assert_int_equal(r->contact[0].status[r->samples - 1], STATUS_STICK);
    assert_int_equal(r->contact[0].status[10], STATUS_SLIP);
    kit_free(k);
}

/* On a slope below the friction angle nothing moves, not by one bit. */
static void block_on_a_slope(void **s)
{
    (void)s;
    kit *k = kit_new(2);
    double a = 0.25;
    unit_masses(k, (ir_ref[]){ C(k, 0), C(k, -9.81) });
    initial(k, (double[]){ 0.3, 0.3 * tan(a) }, (double[]){ 0, 0 });
    contact_family *c = constraint(k, "slope", SUB(MUL(Q(k, 1), C(k, cos(a))), MUL(Q(k, 0), C(k, sin(a)))),
                                   REL_GAP);
    coulomb(k, c, C(k, 0.3));
    results *r = run(k, 10, 1e-3);
    assert_true(last_q(r, 0) == 0.3 && last_q(r, 1) == 0.3 * tan(a));
    assert_true(last_v(r, 0) == 0 && last_v(r, 1) == 0);
    near_to_(r->contact[0].rn[5], 9.81 * cos(a), 1e-9);
    kit_free(k);
}

static kit *belt(void)
{
    kit *k = kit_new(1);
    unit_masses(k, (ir_ref[]){ MUL(C(k, -100), Q(k, 0)) });
    initial(k, (double[]){ 0 }, (double[]){ 0 });
    contact_family *c = constraint(k, "rub", IR_NONE, REL_CLOSED);
    slip(k, c, (ir_ref[]){ SUB(V(k, 0), C(k, 0.1)) }, 1);
    c->normal = put1(k, C(k, 9.81));
    c->mu_of_speed = true;
    coulomb(k, c, ADD(C(k, 0.2), MUL(C(k, 0.2), EXP(MUL(input(k, IN_SPEED, 0), C(k, -10))))));
    return k;
}

/* Stick-slip: the block moves with the belt until the spring force exceeds mu(0) N, at mu(0) N/k. */
static void belt_sticks_and_slips(void **s)
{
    (void)s;
    kit *k = belt();
    results *r = run(k, 2, 1e-4);
    double top = 0;
    bool stuck = false;
    for (int64_t i = 0; i < r->samples; i++) {
        top = fmax(top, r->q[i]);
        stuck |= r->contact[0].status[i] == STATUS_STICK;
        if (r->contact[0].status[i] == STATUS_STICK)
            near_to_(r->v[i], 0.1, 1e-12);
    }
    assert_true(stuck);
    assert_true(top > 0.4 * 9.81 / 100 * 0.99 && top < 0.4 * 9.81 / 100 * 1.5);
    assert_true(r->power_balance <= 1e-10);
    kit_free(k);
}

/* Klarbring's system: flight, impact into slip, stick, slip back (values by power series with 40 digits). */
static results *klarbring(kit **out, double h)
{
    kit *k = *out = kit_new(2);
    ir_ref f0 = SUB(C(k, 1), ADD(MUL(C(k, 2), Q(k, 0)), MUL(C(k, 0.5), Q(k, 1))));
    ir_ref f1 = SUB(MUL(C(k, 1.2), SIN(MUL(C(k, 0.8), T(k)))), ADD(MUL(C(k, 0.5), Q(k, 0)), Q(k, 1)));
    unit_masses(k, (ir_ref[]){ f0, f1 });
    initial(k, (double[]){ -0.5, 0 }, (double[]){ 0, 1 });
    contact_family *c = constraint(k, "wall", MUL(C(k, -1), Q(k, 0)), REL_GAP);
    coulomb(k, c, C(k, 0.9));
    restitution(k, c, 0);
    return run(k, 12, h);
}

static void klarbring_slips_and_sticks(void **s)
{
    (void)s;
    kit *k;
    results *r = klarbring(&k, 1e-3);
    near_to_(r->contact[0].impacts.at[0].t, 0.7707296360877722, 1e-6);
    near_to_(results_q(r, 1, 2), 0.8298271587666507, 1e-5);
    assert_true(results_v(r, 1, 2) == 0);
    near_to_(results_q(r, 1, 4), 0.8204366231206173, 1e-4);
    near_to_(results_q(r, 1, 8), -0.9907215965381215, 1e-3);
    near_to_(results_q(r, 1, 12), 1.027739526417373, 1e-3);
    assert_true(r->max_penetration <= 1e-10);
    assert_true(r->power_balance <= 1e-10);
    kit_free(k);
}

/* Gauss's principle in a wedge with a redundant floor: the weight is carried, symmetrically. */
static void wedge_carries(void **s)
{
    (void)s;
    kit *k = kit_new(2);
    unit_masses(k, (ir_ref[]){ C(k, 0), C(k, -1) });
    initial(k, (double[]){ 0, 0 }, (double[]){ 0, 0 });
    constraint(k, "floor", Q(k, 1), REL_GAP);
    constraint(k, "left", ADD(Q(k, 0), Q(k, 1)), REL_GAP);
    constraint(k, "right", SUB(Q(k, 1), Q(k, 0)), REL_GAP);
    results *r = run(k, 0, 1e-3);
    assert_int_equal(r->samples, 1);
    near_to_(r->acc[0], 0, 1e-15);
    near_to_(r->acc[1], 0, 1e-15);
    near_to_(r->contact[0].rn[0] + r->contact[1].rn[0] + r->contact[2].rn[0], 1, 1e-14);
    near_to_(r->contact[1].rn[0], r->contact[2].rn[0], 1e-14);
    kit_free(k);
}

/* A pendulum: a point on a circle, by an equality; period and energy. */
static void bilateral_pendulum(void **s)
{
    (void)s;
    double err[2];
    for (int i = 0; i < 2; i++) {
        kit *k = kit_new(2);
        unit_masses(k, (ir_ref[]){ C(k, 0), C(k, -9.81) });
        initial(k, (double[]){ sin(0.5), -cos(0.5) }, (double[]){ 0, 0 });
        constraint(k, "rod", SUB(ADD(MUL(Q(k, 0), Q(k, 0)), MUL(Q(k, 1), Q(k, 1))), C(k, 1)), REL_BILATERAL);
        results *r = run(k, 1, i ? 5e-4 : 1e-3);
        /* angle after 1 s from the pendulum equation, by Runge-Kutta with a small step */
        double a = 0.5, w = 0, h = 1e-4;
        for (int j = 0; j < 10000; j++) {
            double k1 = -9.81 * sin(a), k2 = -9.81 * sin(a + h / 2 * w),
                   k3 = -9.81 * sin(a + h / 2 * (w + h / 2 * k1)), k4 = -9.81 * sin(a + h * (w + h / 2 * k2));
            double a1 = a + h * w + h * h / 6 * (k1 + k2 + k3);
            w += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
            a = a1;
        }
        err[i] = fabs(last_q(r, 0) - sin(a));
        assert_true(err[i] < 2e-6);
        assert_true(r->max_penetration <= 1e-10);
        kit_free(k);
    }
    if (!(err[0] / err[1] > 3.5 && err[0] / err[1] < 4.5))
        fail_msg("order: errors %g and %g", err[0], err[1]);
}

/* A mass that depends on q: m(q) = 1 + q^2, kinetic energy is conserved: f = -q q'^2. */
static void variable_mass(void **s)
{
    (void)s;
    kit *k = kit_new(1);
    equations(k, (ir_ref[]){ ADD(C(k, 1), MUL(Q(k, 0), Q(k, 0))) },
              (ir_ref[]){ MUL(C(k, -1), MUL(Q(k, 0), MUL(V(k, 0), V(k, 0)))) });
    k->p.driving.n = 0; /* f.q' and q'.M' q'/2 cancel */
    initial(k, (double[]){ 0 }, (double[]){ 1 });
    results *r = run(k, 2, 1e-3);
    /* q' sqrt(1 + q^2) = 1: (q sqrt(1 + q^2) + asinh q)/2 = t */
    double q = last_q(r, 0);
    near_to_(0.5 * (q * sqrt(1 + q * q) + asinh(q)), 2, 1e-6);
    near_to_(r->energy[r->samples - 1], 0.5, 1e-6);
    near_to_(r->drift[r->samples - 1], r->energy[r->samples - 1] - 0.5, 1e-15);
    assert_true(r->power_balance <= 1e-6);
    kit_free(k);
}

/* Friction on a circle: a particle released at rest swings with decreasing amplitude and stays where it
   stops. */
static void bowl_with_friction(void **s)
{
    (void)s;
    kit *k = kit_new(2);
    unit_masses(k, (ir_ref[]){ C(k, 0), C(k, -9.81) });
    initial(k, (double[]){ sin(1.2), -cos(1.2) }, (double[]){ 0, 0 });
    contact_family *c = constraint(k, "rim", SUB(C(k, 1), ADD(MUL(Q(k, 0), Q(k, 0)), MUL(Q(k, 1), Q(k, 1)))),
                                   REL_GAP);
    coulomb(k, c, C(k, 0.1));
    results *r = run(k, 6, 1e-3);
    near_to_(results_q(r, 0, 1.073036305892208), sin(-0.8501949678095045), 1e-3);
    near_to_(last_q(r, 0), sin(0.05554429474215481), 1e-3);
    assert_true(last_v(r, 0) == 0 && last_v(r, 1) == 0);
    assert_true(r->max_penetration <= 1e-10);
    kit_free(k);
}

static void same_input_same_bytes(void **s)
{
    (void)s;
    kit *a, *b;
    results *x = klarbring(&a, 1e-3), *y = klarbring(&b, 1e-3);
    assert_int_equal(x->samples, y->samples);
    assert_memory_equal(x->q, y->q, (size_t)x->samples * 2 * sizeof(double));
    assert_memory_equal(x->contact[0].rn, y->contact[0].rn, (size_t)x->samples * sizeof(double));
    kit_free(a);
    kit_free(b);
}

/* ---- many contacts: a family of disks over a floor, all pairs ---- */
enum { COLUMNS = 6, ROWS = 7, DISKS = COLUMNS * ROWS };

static ir_ref at(kit *k, in_kind kind, int base, int s0, int s1)
{
    return ir_in(k->g, (ir_input){ .kind = kind, .at = { .base = base, .stride = { s0, s1 } } });
}

static kernel over(kit *k, const index_set *set, ir_ref *out, size_t n, const slot_map *row,
                   const slot_map *col)
{
    kernel ker = emit_kernel(k->a, k->scratch, k->g, out, n, set, IR_NONE, SPAN_NONE);
    slot_map *r = arena_array(k->a, slot_map, n), *c = arena_array(k->a, slot_map, n);
    for (size_t i = 0; i < n; i++) {
        if (row)
            r[i] = row[i];
        if (col)
            c[i] = col[i];
    }
    ker.row = row ? r : NULL;
    ker.col = col ? c : NULL;
    return ker;
}

/* Disk i has x and y at 2(i - 1); radius 1; the gap of a pair is a distance. */
static kit *disks(void)
{
    kit *k = kit_new(2 * DISKS);
    index_set one = { .n = 1, .r = { { .lo = 1, .hi = DISKS } }, .count = DISKS };
    index_set two = { .n = 2,
                      .r = { { .lo = 1, .hi = DISKS }, { .lo = 1, .hi = DISKS, .lo_stride = { 1 } } },
                      .count = DISKS * (DISKS - 1) / 2 };
    slot_map x = { -2, { 2 } }, y = { -1, { 2 } }, xj = { -2, { 0, 2 } }, yj = { -1, { 0, 2 } },
             both[] = { x, y }, four[] = { x, y, xj, yj };
    k->mass = over(k, &one, (ir_ref[]){ C(k, 1), C(k, 1) }, 2, both, both);
    k->force = over(k, &one, (ir_ref[]){ C(k, -10) }, 1, &y, NULL);
    k->p.mass = (kernels){ &k->mass, 1 };
    k->p.force = (kernels){ &k->force, 1 };
    k->p.driving = k->p.force; /* no potential is given: all forces do work */
    k->p.mass_constant = k->p.mass_diagonal = true;
    /* rows of six, slightly apart and slightly displaced */
    ir_ref i0 = SUB(input(k, IN_INDEX, 0), C(k, 1)), col = ir_op2(k->g, OP_MOD, i0, C(k, COLUMNS)),
           row = ir_op1(k->g, OP_FLOOR, MUL(i0, C(k, 1.0 / COLUMNS)));
    ir_ref q0[] = { ADD(MUL(C(k, 2.1), col), MUL(C(k, 0.04), SIN(MUL(C(k, 7), i0)))),
                    ADD(C(k, 1), MUL(C(k, 2.2), row)) };
    k->q0 = over(k, &one, q0, 2, both, NULL);
    k->p.start.q = (kernels){ &k->q0, 1 };
    contact_family *f = &k->c[k->p.ncontact++];
    *f = (contact_family){ .name = "floor",
                           .over = one,
                           .nindex = 1,
                           .relation = REL_GAP,
                           .friction = FRICTION_COULOMB,
                           .slip_given = true,
                           .nslip = 1 };
    f->gap = over(k, &one, (ir_ref[]){ SUB(at(k, IN_Q, -1, 2, 0), C(k, 1)) }, 1, NULL, NULL);
    f->gradient = over(k, &one, (ir_ref[]){ C(k, 1) }, 1, &y, NULL);
    f->slip = over(k, &one, (ir_ref[]){ at(k, IN_V, -2, 2, 0) }, 1, NULL, NULL);
    f->slip_map = over(k, &one, (ir_ref[]){ C(k, 1) }, 1, &(slot_map){ 0, { 0 } }, &x);
    f->mu = over(k, &one, (ir_ref[]){ C(k, 0.5) }, 1, NULL, NULL);
    contact_family *t = &k->c[k->p.ncontact++];
    ir_ref dx = SUB(at(k, IN_Q, -2, 2, 0), at(k, IN_Q, -2, 0, 2)),
           dy = SUB(at(k, IN_Q, -1, 2, 0), at(k, IN_Q, -1, 0, 2));
    ir_ref r = ir_op1(k->g, OP_SQRT, ADD(MUL(dx, dx), MUL(dy, dy))), nx = ir_op2(k->g, OP_DIV, dx, r),
           ny = ir_op2(k->g, OP_DIV, dy, r);
    *t = (contact_family){ .name = "touch",
                           .over = two,
                           .nindex = 2,
                           .relation = REL_GAP,
                           .near_dim = 2,
                           .near_a = { x, y },
                           .near_b = { xj, yj } };
    t->gap = over(k, &two, (ir_ref[]){ SUB(r, C(k, 2)) }, 1, NULL, NULL);
    t->gradient = over(k, &two, (ir_ref[]){ nx, ny, MUL(C(k, -1), nx), MUL(C(k, -1), ny) }, 4, four, NULL);
    t->near_reach = over(k, &two, (ir_ref[]){ C(k, 2) }, 1, NULL, NULL);
    return k;
}

/* They fall into a heap: no overlap, no energy is created, the floor carries everything. */
static void many_disks_settle(void **s)
{
    (void)s;
    kit *k = disks();
    results *r = run(k, 6, 5e-3);
    double carried = 0, fast = 0;
    const contact_result *f = &r->contact[0];
    for (int i = 0; i < DISKS; i++)
        carried += f->rn[(r->samples - 1) * DISKS + i];
    for (int i = 0; i < 2 * DISKS; i++)
        fast = fmax(fast, fabs(last_v(r, i)));
    assert_true(r->max_penetration <= 1e-6);
    assert_true(r->residual <= 1e-8);
    assert_true(r->power_balance <= 1e-8);
    assert_true(r->dissipated[r->samples - 1] > 0);
    assert_true(r->contact[1].impacts.n > 0);
    double least = 0;
    for (int64_t i = 1; i < r->samples; i++)
        least = fmin(least, r->dissipated[i] - r->dissipated[i - 1]);
    assert_true(least >= -1e-12 * r->dissipated[r->samples - 1]);
    /* momentum: the floor carries the weight and the change of speed of the last step */
    double change = 0;
    for (int i = 0; i < DISKS; i++)
        change += (r->v[(r->samples - 1) * 2 * DISKS + 2 * i + 1] -
                   r->v[(r->samples - 2) * 2 * DISKS + 2 * i + 1]) /
                  (r->t[r->samples - 1] - r->t[r->samples - 2]);
    near_to_(carried, 10 * DISKS + change, 1e-9 * 10 * DISKS);
    assert_true(fast < 20);
    kit_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ball_bounces),
        cmocka_unit_test(ball_comes_to_rest),
        cmocka_unit_test(block_slides_and_sticks),
        cmocka_unit_test(block_on_a_slope),
        cmocka_unit_test(belt_sticks_and_slips),
        cmocka_unit_test(klarbring_slips_and_sticks),
        cmocka_unit_test(wedge_carries),
        cmocka_unit_test(bilateral_pendulum),
        cmocka_unit_test(variable_mass),
        cmocka_unit_test(bowl_with_friction),
        cmocka_unit_test(same_input_same_bytes),
        cmocka_unit_test(many_disks_settle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
