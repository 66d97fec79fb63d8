/* assemble and show, on models built by hand: mass matrices, forces and Jacobians compared with formulas and
   finite differences, structure, errors, names. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include "lower/assemble.h"
#include "syntax/parse.h"

/* cmocka can only compare floats */
#define assert_near(x, y, eps) assert_true(fabs((x) - (y)) <= (eps))

/* ---- models by hand ---- */
typedef struct {
    arena *a, *to, *scratch;
    model *m;
    ir *g;
    mclass *root;
    program *p;
    double *param;
} bench;

static bench bench_new(void)
{
    bench b = { .a = arena_new(&allocator_libc, NULL),
                .to = arena_new(&allocator_libc, NULL),
                .scratch = arena_new(&allocator_libc, NULL) };
    b.m = arena_make(b.a, model);
    b.root = arena_make(b.a, mclass);
    *b.m = (model){
        .name = "bench", .a = b.a, .g = b.g = ir_new(b.a), .d = diags_new(b.a), .names = symtab_new(b.a)
    };
    *b.root = (mclass){ .name = "bench", .m = b.m, .ninst = 1 };
    *vec_push(b.a, &b.m->classes) = b.root;
    uint32_t file = diags_add_source(b.m->d, "bench.cdl", "x\ny\n", 4);
    assert_int_equal(file, 1);
    return b;
}

static void bench_end(bench *b)
{
    arena_free(b->to);
    arena_free(b->scratch);
    arena_free(b->a);
}

static const span HERE = { 1, 0, 1 }, THERE = { 1, 2, 3 };

static mdof *dof(bench *b, const char *name, int32_t n, int32_t comp)
{
    mdof *d = arena_make(b->a, mdof);
    *d = (mdof){ .name = name,
                 .ndim = n > 0,
                 .lo = { 1 },
                 .n = { n },
                 .comp = comp,
                 .offset = b->m->nq,
                 .unit = dim_any(),
                 .at = HERE,
                 .of = b->root };
    d->size = (n ? n : 1) * (comp ? comp : 1);
    b->m->nq += d->size;
    b->root->qsize = b->m->nq;
    *vec_push(b->a, &b->root->dofs) = d;
    b->m->order = arena_array(b->a, uint8_t, b->m->nq);
    memset(b->m->order, 2, (size_t)b->m->nq);
    return d;
}

static ir_ref in(bench *b, in_kind kind, int32_t base, int32_t s0, int32_t s1)
{
    return ir_in(b->g, (ir_input){ .kind = kind, .at = { base, { s0, s1 } } });
}
static ir_ref q(bench *b, int32_t k)
{
    return in(b, IN_Q, k, 0, 0);
}
static ir_ref v(bench *b, int32_t k)
{
    return in(b, IN_V, k, 0, 0);
}
static ir_ref acc(bench *b, int32_t k)
{
    return in(b, IN_A, k, 0, 0);
}
static ir_ref now(bench *b)
{
    return in(b, IN_TIME, 0, 0, 0);
}
static ir_ref con(bench *b, double k)
{
    return ir_const(b->g, k);
}

static mfamily *family(bench *b, mfamilies *fs, const index_names *over, ir_ref out, const address *row)
{
    mfamily *f = vec_push(b->a, fs);
    *f = (mfamily){ .over = *over, .nout = 1, .at = THERE, .of = b->root };
    f->out = arena_array(b->a, ir_ref, 1);
    f->out[0] = out;
    if (row) {
        f->row = arena_array(b->a, address, 1);
        f->row[0] = *row;
    }
    return f;
}

static const index_names ONE = { .set.count = 1 };
static void single(bench *b, mfamilies *fs, ir_ref out)
{
    family(b, fs, &ONE, out, NULL);
}
static void at_row(bench *b, mfamilies *fs, int32_t row, ir_ref out)
{
    family(b, fs, &ONE, out, &(address){ .base = row });
}

static ir_ref param(bench *b, const char *name, double x)
{
    mparam *p = arena_make(b->a, mparam);
    *p = (mparam){ .name = name,
                   .offset = b->m->nparam++,
                   .size = 1,
                   .unit = dim_any(),
                   .lo = -INFINITY,
                   .hi = INFINITY,
                   .has_default = true };
    *vec_push(b->a, &b->root->params) = p;
    at_row(b, &b->m->defaults, p->offset, con(b, x));
    return in(b, IN_PARAM, p->offset, 0, 0);
}

#define ADD(x, y) ir_op2(b->g, OP_ADD, (x), (y))
#define SUB(x, y) ir_op2(b->g, OP_SUB, (x), (y))
#define MUL(x, y) ir_op2(b->g, OP_MUL, (x), (y))
#define DIV(x, y) ir_op2(b->g, OP_DIV, (x), (y))
#define NEG(x)    ir_op1(b->g, OP_NEG, (x))
#define SQR(x)    ir_op1(b->g, OP_SQR, (x))
#define SQRT(x)   ir_op1(b->g, OP_SQRT, (x))
#define SIN(x)    ir_op1(b->g, OP_SIN, (x))
#define COS(x)    ir_op1(b->g, OP_COS, (x))

static mcontact *contact(bench *b, const char *name, const index_names *over, ir_ref gap)
{
    mcontact *c = vec_push(b->a, &b->m->contacts);
    *c = (mcontact){ .name = name,
                     .path = name,
                     .at = THERE,
                     .slip_at = HERE,
                     .over = *over,
                     .own = over->n,
                     .of = b->root,
                     .gap = gap };
    return c;
}

static index_names range(const char *i, int32_t lo, int32_t hi)
{
    return (index_names){ .n = 1,
                          .name = { i },
                          .set = { .n = 1, .r = { { .lo = lo, .hi = hi } }, .count = hi - lo + 1 } };
}

/* ---- running ---- */
static void run_kernel(const kernel *k, const inputs *from, double *out, int32_t n, bool set)
{
    int32_t index[MAX_INDEX] = { 0 };
    double *reg = calloc(k->tape.nreg + 1, sizeof *reg);
    tape_start(&k->tape, reg);
    for (bool any = index_first(&k->over, index); any; any = index_next(&k->over, index)) {
        kernel_run(k, from, index, reg);
        for (uint32_t i = 0; i < k->tape.nout; i++) {
            int32_t row = k->row ? slot_at(&k->row[i], index, k->over.n) : 0,
                    col = k->col ? slot_at(&k->col[i], index, k->over.n) : 0;
            double *to = &out[k->col ? row * n + col : row];
            *to = reg[k->tape.out[i]] + (set ? 0 : *to);
        }
    }
    free(reg);
}

static void run_kernels(const kernels *k, const inputs *from, double *out, int32_t n, bool set)
{
    for (size_t i = 0; i < k->n; i++)
        run_kernel(&k->at[i], from, out, n, set);
}

static bool build(bench *b)
{
    b->p = assemble(b->to, b->scratch, b->m);
    if (!b->p)
        return false;
    b->param = arena_array(b->to, double, b->p->nparam);
    inputs from = { .from = { [IN_PARAM] = b->param } };
    run_kernels(&b->p->defaults, &from, b->param, 0, true);
    run_kernels(&b->p->derived, &from, b->param, 0, true);
    return true;
}

/* Sums over kernels at an instant. */
static void at_instant(const bench *b, const kernels *k, double t, const double *qs, const double *vs,
                       double *out, int32_t n)
{
    inputs from = { .t = t, .from = { [IN_PARAM] = b->param, [IN_Q] = qs, [IN_V] = vs } };
    run_kernels(k, &from, out, n, false);
}

static double energy(const bench *b, const kernels *k, double t, const double *qs, const double *vs)
{
    double e = 0;
    at_instant(b, k, t, qs, vs, &e, 0);
    return e;
}

/* Compares Jacobians of the force with central differences. */
static void check_jacobian(const bench *b, double t, const double *qs, const double *vs)
{
    enum { N = 16 };
    int32_t n = b->p->nq;
    double Fq[N * N] = { 0 }, Fv[N * N] = { 0 }, x[2][N];
    assert_true(n <= N);
    at_instant(b, &b->p->force_dq, t, qs, vs, Fq, n);
    at_instant(b, &b->p->force_dv, t, qs, vs, Fv, n);
    for (int part = 0; part < 2; part++) {
        memcpy(x[0], qs, (size_t)n * sizeof **x);
        memcpy(x[1], vs, (size_t)n * sizeof **x);
        for (int32_t j = 0; j < n; j++) {
            double f[2][N] = { { 0 } }, old = x[part][j], h = 1e-6;
            x[part][j] = old + h;
            at_instant(b, &b->p->force, t, x[0], x[1], f[1], 0);
            x[part][j] = old - h;
            at_instant(b, &b->p->force, t, x[0], x[1], f[0], 0);
            x[part][j] = old;
            for (int32_t i = 0; i < n; i++) {
                double d = (f[1][i] - f[0][i]) / (2 * h);
                assert_near(part ? Fv[i * n + j] : Fq[i * n + j], d, 1e-7 * (1 + fabs(d)));
            }
        }
    }
}

/* ---- pendulum on a cart, from energies ---- */
static void cart(bench *b)
{
    dof(b, "x", 0, 0);
    dof(b, "a", 0, 0);
    ir_ref M = param(b, "M", 2), m = param(b, "m", 1.5), l = param(b, "l", 0.5), g = param(b, "g", 9.81);
    ir_ref px = ADD(q(b, 0), MUL(l, SIN(q(b, 1)))), py = NEG(MUL(l, COS(q(b, 1))));
    ir_ref vx = ir_time_derivative(b->g, px), vy = ir_time_derivative(b->g, py);
    single(b, &b->m->kinetic,
           ADD(DIV(MUL(M, SQR(v(b, 0))), con(b, 2)), DIV(MUL(m, ADD(SQR(vx), SQR(vy))), con(b, 2))));
    single(b, &b->m->potential, MUL(MUL(m, g), py));
}

static void cart_matches_formulas(void **state)
{
    (void)state;
    bench bb = bench_new(), *b = &bb;
    cart(b);
    single(b, &b->m->dissipation, MUL(con(b, 0.005), SQR(v(b, 1))));
    at_row(b, &b->m->force, 0, MUL(con(b, 2), COS(MUL(con(b, 3), now(b)))));
    assert_true(build(b));
    const double x[2] = { 0.3, 0.7 }, w[2] = { -0.4, 1.1 }, t = 0.2, M = 2, m = 1.5, l = 0.5, g = 9.81;
    double mass[4] = { 0 }, f[2] = { 0 };
    at_instant(b, &b->p->mass, t, x, w, mass, 2);
    at_instant(b, &b->p->force, t, x, w, f, 0);
    assert_near(mass[0], M + m, 1e-14);
    assert_near(mass[1], m * l * cos(x[1]), 1e-14);
    assert_near(mass[2], mass[1], 1e-14);
    assert_near(mass[3], m * l * l, 1e-14);
    assert_near(f[0], m * l * sin(x[1]) * w[1] * w[1] + 2 * cos(3 * t), 1e-13);
    assert_near(f[1], -m * g * l * sin(x[1]) - 0.01 * w[1], 1e-13);
    assert_false(b->p->mass_constant);
    assert_false(b->p->mass_diagonal);
    assert_false(b->p->force_linear);
    assert_true(b->p->force_of_state);
    assert_false(b->p->potential_whole);
    assert_int_equal(b->p->mass.n, 1);
    assert_int_equal(b->p->force.n, 1);
    check_jacobian(b, t, x, w);
    bench_end(b);
}

/* The mass matrix is the Hessian of the kinetic energy, and a free motion conserves energy. */
static void cart_matches_its_energy(void **state)
{
    (void)state;
    bench bb = bench_new(), *b = &bb;
    cart(b);
    assert_true(build(b));
    assert_true(b->p->potential_whole);
    double x[2] = { 0.1, -0.8 }, w[2] = { 0.5, 0.9 }, mass[4] = { 0 }, h = 1e-3;
    at_instant(b, &b->p->mass, 0, x, w, mass, 2);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            double sum = 0;
            for (int c = 0; c < 4; c++) {
                double u[2] = { w[0], w[1] };
                u[i] += c & 1 ? h : -h;
                u[j] += c & 2 ? h : -h;
                sum += ((c & 1) == (c >> 1) ? 1 : -1) * energy(b, &b->p->kinetic, 0, x, u);
            }
            assert_near(mass[2 * i + j], sum / (4 * h * h), 1e-7);
        }
    /* power: v.(M a) + v.dM/dt v/2 + dV/dt = 0 with M a = f */
    double f[2] = { 0 }, ahead[4] = { 0 }, y[2], d = 1e-6, power = 0;
    at_instant(b, &b->p->force, 0, x, w, f, 0);
    for (int i = 0; i < 2; i++)
        y[i] = x[i] + d * w[i];
    at_instant(b, &b->p->mass, 0, y, w, ahead, 2);
    for (int i = 0; i < 2; i++) {
        power += w[i] * f[i];
        for (int j = 0; j < 2; j++)
            power += w[i] * w[j] * (ahead[2 * i + j] - mass[2 * i + j]) / (2 * d);
    }
    power += (energy(b, &b->p->potential, 0, y, w) - energy(b, &b->p->potential, 0, x, w)) / d;
    assert_near(power, 0, 1e-4);
    bench_end(b);
}

/* ---- a particle in a rotating frame: gyroscopic and centrifugal terms, explicit time ---- */
static void rotating_frame(void **state)
{
    (void)state;
    bench bb = bench_new(), *b = &bb;
    dof(b, "x", 0, 0);
    dof(b, "y", 0, 0);
    ir_ref m = param(b, "m", 2), w0 = param(b, "w", 3), om = MUL(w0, now(b)); /* angular velocity w*t */
    ir_ref vx = SUB(v(b, 0), MUL(om, q(b, 1))), vy = ADD(v(b, 1), MUL(om, q(b, 0)));
    single(b, &b->m->kinetic, MUL(DIV(m, con(b, 2)), ADD(SQR(vx), SQR(vy))));
    assert_true(build(b));
    const double x[2] = { 0.4, -0.3 }, u[2] = { 1.2, 0.5 }, t = 0.7, M = 2, w = 3 * t, dw = 3;
    double mass[4] = { 0 }, f[2] = { 0 };
    at_instant(b, &b->p->mass, t, x, u, mass, 2);
    at_instant(b, &b->p->force, t, x, u, f, 0);
    assert_near(mass[0], M, 1e-14);
    assert_near(mass[3], M, 1e-14);
    assert_near(mass[1], 0, 0);
    assert_near(f[0], M * (2 * w * u[1] + dw * x[1] + w * w * x[0]), 1e-12);
    assert_near(f[1], M * (-2 * w * u[0] - dw * x[0] + w * w * x[1]), 1e-12);
    assert_true(b->p->mass_constant);
    assert_true(b->p->mass_diagonal);
    assert_false(b->p->force_linear); /* coefficients depend on time */
    assert_false(b->p->potential_whole);
    check_jacobian(b, t, x, u);
    bench_end(b);
}

/* ---- Klarbring's system, from equations ---- */
static void klarbring(bench *b)
{
    static const double K[2][2] = { { 2, 0.5 }, { 0.5, 1 } };
    dof(b, "u", 2, 0);
    ir_ref load[2] = { COS(now(b)), MUL(con(b, 0.2), SIN(MUL(con(b, 3), now(b)))) };
    for (int i = 0; i < 2; i++)
        at_row(
            b, &b->m->equation, i,
            SUB(ADD(acc(b, i), ADD(MUL(con(b, K[i][0]), q(b, 0)), MUL(con(b, K[i][1]), q(b, 1)))), load[i]));
    mcontact *c = contact(b, "wall", &ONE, NEG(q(b, 0)));
    c->friction = FRICTION_COULOMB;
    c->mu = param(b, "mu", 0.4);
    c->slip_given = true;
    c->nslip = 1;
    c->slip[0] = v(b, 1);
}

static void klarbring_structure(void **state)
{
    (void)state;
    bench bb = bench_new(), *b = &bb;
    klarbring(b);
    assert_true(build(b));
    const double x[2] = { -0.1, 0.3 }, u[2] = { 1, 0.3 }, t = 0.5;
    double mass[4] = { 0 }, f[2] = { 0 };
    at_instant(b, &b->p->mass, t, x, u, mass, 2);
    at_instant(b, &b->p->force, t, x, u, f, 0);
    assert_near(mass[0], 1, 0);
    assert_near(mass[3], 1, 0);
    assert_near(f[0], cos(t) - 2 * x[0] - 0.5 * x[1], 1e-15);
    assert_near(f[1], 0.2 * sin(3 * t) - 0.5 * x[0] - x[1], 1e-15);
    assert_true(b->p->mass_constant);
    assert_true(b->p->mass_diagonal);
    assert_true(b->p->force_linear);
    assert_true(b->p->force_of_state);
    assert_int_equal(b->p->kinetic.n, 0);
    check_jacobian(b, t, x, u);
    const contact_family *c = &b->p->contact[0];
    assert_string_equal(c->name, "wall");
    assert_true(c->gap_linear);
    assert_true(c->gap_constant_gradient);
    assert_int_equal(c->gradient.tape.nout, 1);
    assert_int_equal(c->gradient.row[0].base, 0);
    assert_int_equal(c->rate.tape.nout, 0);
    assert_int_equal(c->bias.tape.nout, 0);
    assert_int_equal(c->slip_map.tape.nout, 1);
    assert_int_equal(c->slip_map.col[0].base, 1);
    assert_int_equal(c->slip_bias.tape.nout, 0);
    assert_int_equal(c->near_dim, 0);
    bench_end(b);
}

/* ---- a chain of springs: one family, no copies ---- */
enum { CHAIN = 8 };
static void chain(bench *b)
{
    index_names all = range("i", 1, CHAIN), links = range("i", 1, CHAIN - 1);
    dof(b, "z", CHAIN, 0);
    ir_ref m = param(b, "m", 0.5), k = param(b, "k", 40), l = param(b, "l", 0.1);
    ir_ref zi = in(b, IN_Q, -1, 1, 0), zj = in(b, IN_Q, 0, 1, 0), vi = in(b, IN_V, -1, 1, 0);
    family(b, &b->m->kinetic, &all, DIV(MUL(m, SQR(vi)), con(b, 2)), NULL);
    family(b, &b->m->potential, &links, DIV(MUL(k, SQR(SUB(SUB(zj, zi), l))), con(b, 2)), NULL);
    mcontact *c = contact(b, "pair", &links, SUB(SUB(zj, zi), MUL(con(b, 0.5), l)));
    c->e = con(b, 0.9);
}

static void chain_is_a_family(void **state)
{
    (void)state;
    bench bb = bench_new(), *b = &bb;
    chain(b);
    assert_true(build(b));
    double x[CHAIN], u[CHAIN] = { 0 }, f[CHAIN] = { 0 }, mass[CHAIN * CHAIN] = { 0 };
    for (int i = 0; i < CHAIN; i++)
        x[i] = 0.12 * i + 0.01 * i * i;
    at_instant(b, &b->p->mass, 0, x, u, mass, CHAIN);
    at_instant(b, &b->p->force, 0, x, u, f, 0);
    for (int i = 0; i < CHAIN; i++) {
        double left = i ? 40 * (x[i] - x[i - 1] - 0.1) : 0,
               right = i < CHAIN - 1 ? 40 * (x[i + 1] - x[i] - 0.1) : 0;
        assert_near(f[i], right - left, 1e-13);
        for (int j = 0; j < CHAIN; j++)
            assert_near(mass[CHAIN * i + j], i == j ? 0.5 : 0, 0);
    }
    assert_true(b->p->mass_constant && b->p->mass_diagonal && b->p->force_linear);
    assert_int_equal(b->p->mass.n, 1);
    assert_int_equal(b->p->mass.at[0].tape.nout, 1);
    assert_int_equal(b->p->force.n, 1);
    assert_int_equal(b->p->force_dq.at[0].tape.nout, 4);
    assert_int_equal(b->p->force_dv.n, 0);
    check_jacobian(b, 0, x, u);
    const contact_family *c = &b->p->contact[0];
    assert_int_equal(c->over.count, CHAIN - 1);
    assert_int_equal(c->nindex, 1);
    assert_int_equal(c->gradient.tape.nout, 2);
    bench_end(b);
}

/* What depends only on parameters is computed once: l/2 of the gap, and -k of the Jacobian. */
static void parameters_are_hoisted(void **state)
{
    (void)state;
    bench bb = bench_new(), *b = &bb;
    chain(b);
    assert_true(build(b));
    assert_int_equal(b->p->nparam, 3 + 2);
    assert_near(fmin(b->param[3], b->param[4]), -40, 0);
    assert_near(fmax(b->param[3], b->param[4]), 0.05, 1e-17);
    assert_int_equal(b->p->contact[0].gap.tape.nconst, 0);
    assert_int_equal(b->p->contact[0].gap.tape.nin, 3);
    double x[CHAIN] = { 0, 0.2 }, reg[16];
    inputs from = { .from = { [IN_PARAM] = b->param, [IN_Q] = x } };
    const kernel *gap = &b->p->contact[0].gap;
    tape_start(&gap->tape, reg);
    kernel_run(gap, &from, (int32_t[]){ 1 }, reg);
    assert_near(reg[gap->tape.out[0]], 0.15, 1e-16);
    bench_end(b);
}

/* ---- disks: pairs, gradients, rates, neighbours ---- */
static index_names pairs(int32_t n)
{
    return (index_names){ .n = 2,
                          .name = { "i", "j" },
                          .set = { .n = 2,
                                   .r = { { .lo = 1, .hi = n }, { .lo = 1, .lo_stride = { 1 }, .hi = n } },
                                   .count = (int64_t)n * (n - 1) / 2 } };
}

static void disks(bench *b, int32_t n)
{
    index_names all = range("i", 1, n), two = pairs(n);
    dof(b, "p", n, 2);
    ir_ref R = param(b, "R", 0.1);
    ir_ref vx = in(b, IN_V, -2, 2, 0), vy = in(b, IN_V, -1, 2, 0), wx = in(b, IN_V, -2, 0, 2),
           wy = in(b, IN_V, -1, 0, 2);
    ir_ref dx = SUB(in(b, IN_Q, -2, 2, 0), in(b, IN_Q, -2, 0, 2)),
           dy = SUB(in(b, IN_Q, -1, 2, 0), in(b, IN_Q, -1, 0, 2));
    ir_ref r = SQRT(ADD(SQR(dx), SQR(dy)));
    family(b, &b->m->kinetic, &all, DIV(ADD(SQR(vx), SQR(vy)), con(b, 2)), NULL);
    mcontact *c = contact(b, "touch", &two, SUB(r, MUL(con(b, 2), R)));
    c->slip_given = true;
    c->nslip = 1;
    c->slip[0] = DIV(SUB(MUL(dx, SUB(vy, wy)), MUL(dy, SUB(vx, wx))), r);
}

static double pair_value(const bench *b, const kernel *k, const double *x, const double *u,
                         const int32_t *index)
{
    double reg[64];
    inputs from = { .from = { [IN_PARAM] = b->param, [IN_Q] = x, [IN_V] = u } };
    assert_true(k->tape.nreg <= 64);
    tape_start(&k->tape, reg);
    kernel_run(k, &from, index, reg);
    return reg[k->tape.out[0]];
}

static void disk_pairs(void **state)
{
    (void)state;
    enum { N = 4 };
    bench bb = bench_new(), *b = &bb;
    disks(b, N);
    assert_true(build(b));
    const contact_family *c = &b->p->contact[0];
    const int32_t ij[2] = { 2, 4 };
    double x[2 * N] = { 0, 0, 0.3, 0.1, -0.5, 0.4, 0.7, -0.3 }, u[2 * N] = { 0, 0, 1, -0.5, 0, 0, -0.2, 0.8 },
                 H[2 * N] = { 0 }, reg[64], h = 1e-6;
    inputs from = { .from = { [IN_PARAM] = b->param, [IN_Q] = x, [IN_V] = u } };
    tape_start(&c->gradient.tape, reg);
    kernel_run(&c->gradient, &from, ij, reg);
    for (uint32_t i = 0; i < c->gradient.tape.nout; i++)
        H[slot_at(&c->gradient.row[i], ij, 2)] += reg[c->gradient.tape.out[i]];
    for (int k = 0; k < 2 * N; k++) {
        double y[2 * N];
        memcpy(y, x, sizeof y);
        y[k] += h;
        double up = pair_value(b, &c->gap, y, u, ij);
        y[k] -= 2 * h;
        assert_near(H[k], (up - pair_value(b, &c->gap, y, u, ij)) / (2 * h), 1e-8);
    }
    /* bias and slip bias along the straight motion x + s*u */
    double g[3], s[3], d = 1e-4;
    for (int k = -1; k <= 1; k++) {
        double y[2 * N];
        for (int i = 0; i < 2 * N; i++)
            y[i] = x[i] + k * d * u[i];
        g[k + 1] = pair_value(b, &c->gap, y, u, ij);
        s[k + 1] = pair_value(b, &c->slip, y, u, ij);
    }
    assert_near(pair_value(b, &c->bias, x, u, ij), (g[2] - 2 * g[1] + g[0]) / (d * d), 1e-5);
    assert_near(pair_value(b, &c->slip_bias, x, u, ij), (s[2] - s[0]) / (2 * d), 1e-6);
    /* slip = S u */
    double S = 0;
    tape_start(&c->slip_map.tape, reg);
    kernel_run(&c->slip_map, &from, ij, reg);
    for (uint32_t i = 0; i < c->slip_map.tape.nout; i++) {
        assert_int_equal(c->slip_map.row[i].base, 0);
        S += reg[c->slip_map.tape.out[i]] * u[slot_at(&c->slip_map.col[i], ij, 2)];
    }
    assert_near(S, s[1], 1e-14);
    assert_false(c->gap_linear);
    assert_int_equal(c->rate.tape.nout, 0);
    bench_end(b);
}

static void neighbours_are_recognised(void **state)
{
    (void)state;
    bench bb = bench_new(), *b = &bb;
    disks(b, 5);
    assert_true(build(b));
    const contact_family *c = &b->p->contact[0];
    assert_int_equal(c->near_dim, 2);
    const int32_t ij[2] = { 2, 5 };
    for (int k = 0; k < 2; k++)
        assert_int_equal(slot_at(&c->near_b[k], ij, 2) - slot_at(&c->near_a[k], ij, 2), 6);
    assert_int_equal(slot_at(&c->near_a[0], ij, 2) + slot_at(&c->near_a[1], ij, 2), 2 + 3);
    assert_near(pair_value(b, &c->near_reach, NULL, NULL, ij), 0.2, 1e-16);
    bench_end(b);
    /* a sum that is not a distance */
    bb = bench_new();
    disks(b, 5);
    mcontact *other = &b->m->contacts.at[0];
    other->gap = MUL(con(b, 2), other->gap);
    assert_true(build(b));
    assert_int_equal(b->p->contact[0].near_dim, 0);
    bench_end(b);
}

/* ---- a moving wall ---- */
static void moving_wall(void **state)
{
    (void)state;
    bench bb = bench_new(), *b = &bb;
    dof(b, "x", 0, 0);
    at_row(b, &b->m->equation, 0, ADD(acc(b, 0), con(b, 9.81)));
    contact(b, "wall", &ONE, ADD(q(b, 0), MUL(con(b, 0.05), SIN(now(b)))));
    assert_true(build(b));
    const contact_family *c = &b->p->contact[0];
    double reg[16];
    inputs from = { .t = 0.4,
                    .from = { [IN_PARAM] = b->param, [IN_Q] = (double[]){ 1 }, [IN_V] = (double[]){ 2 } } };
    assert_false(c->gap_linear);
    assert_true(c->gap_constant_gradient);
    tape_start(&c->rate.tape, reg);
    kernel_run(&c->rate, &from, NULL, reg);
    assert_near(reg[c->rate.tape.out[0]], 0.05 * cos(0.4), 1e-16);
    tape_start(&c->bias.tape, reg);
    kernel_run(&c->bias, &from, NULL, reg);
    assert_near(reg[c->bias.tape.out[0]], -0.05 * sin(0.4), 1e-16);
    assert_false(b->p->force_of_state);
    assert_true(b->p->force_linear);
    bench_end(b);
}

/* ---- first-order dofs beside second-order ones ---- */
static void mixed_orders(void **state)
{
    (void)state;
    bench bb = bench_new(), *b = &bb;
    dof(b, "x", 0, 0);
    dof(b, "s", 0, 0);
    b->m->order[1] = 1;
    at_row(b, &b->m->equation, 0, ADD(acc(b, 0), MUL(con(b, 3), v(b, 0))));
    at_row(b, &b->m->equation, 1, SUB(MUL(con(b, 2), v(b, 1)), SUB(v(b, 0), q(b, 1))));
    assert_true(build(b));
    double mass[4] = { 0 }, f[2] = { 0 };
    const double x[2] = { 1, 4 }, u[2] = { 5, 7 };
    at_instant(b, &b->p->mass, 0, x, u, mass, 2);
    at_instant(b, &b->p->force, 0, x, u, f, 0);
    assert_near(mass[0], 1, 0);
    assert_near(mass[3], 2, 0);
    assert_near(f[0], -15, 0);
    assert_near(f[1], 1, 0);
    assert_int_equal(b->p->has_first_order.file, THERE.file);
    check_jacobian(b, 0, x, u);
    bench_end(b);
}

/* A piecewise constant force has no derivative, but that does not make it linear. */
static void steps_are_not_linear(void **state)
{
    (void)state;
    bench bb = bench_new(), *b = &bb;
    dof(b, "x", 0, 0);
    at_row(b, &b->m->equation, 0,
           SUB(acc(b, 0),
               ir_op(b->g, OP_SELECT, ir_op2(b->g, OP_GT, q(b, 0), con(b, 0)), con(b, -1), con(b, 1))));
    assert_true(build(b));
    assert_false(b->p->force_linear);
    assert_true(b->p->force_of_state);
    assert_int_equal(b->p->force_dq.n, 0);
    bench_end(b);
}

/* ---- parameters that depend on each other ---- */
static void defaults_in_order(void **state)
{
    (void)state;
    bench bb = bench_new(), *b = &bb;
    ir_ref p0 = param(b, "a", 3), p1 = param(b, "b", 5);
    b->m->nparam = 4;
    at_row(b, &b->m->defaults, 2, MUL(p0, p1));
    at_row(b, &b->m->defaults, 3, ADD(in(b, IN_PARAM, 2, 0, 0), p0));
    assert_true(build(b));
    assert_int_equal(b->p->defaults.n, 3);
    assert_near(b->param[2], 15, 0);
    assert_near(b->param[3], 18, 0);
    bench_end(b);
}

/* ---- errors ---- */
static void expect_error(bench *b, diag_code code, span at, const char *word)
{
    assert_false(build(b));
    assert_int_equal(b->m->d->errors, 1);
    const diag *e = &b->m->d->list.at[0];
    assert_int_equal(e->code, code);
    assert_memory_equal(&e->at, &at, sizeof at);
    assert_non_null(strstr(e->message, word));
    bench_end(b);
}

static bench particle(void)
{
    bench bb = bench_new(), *b = &bb;
    dof(b, "x", 0, 0);
    at_row(b, &b->m->equation, 0, acc(b, 0));
    return bb;
}

static void errors_are_located(void **state)
{
    (void)state;
    bench bb = bench_new(), *b = &bb;
    dof(b, "x", 0, 0);
    at_row(b, &b->m->equation, 0, ADD(SQR(acc(b, 0)), q(b, 0)));
    expect_error(b, DIAG_NOT_SUPPORTED, THERE, "second derivatives must enter linearly");
    bb = bench_new();
    dof(b, "x", 0, 0);
    single(b, &b->m->kinetic, SQR(SQR(v(b, 0))));
    expect_error(b, DIAG_NOT_SUPPORTED, THERE, "quadratic");
    bb = bench_new();
    dof(b, "x", 0, 0);
    dof(b, "y", 0, 0);
    single(b, &b->m->kinetic, SQR(v(b, 0)));
    single(b, &b->m->potential, SQR(q(b, 1)));
    expect_error(b, DIAG_SINGULAR_MASS, HERE, "'y'");
    bb = particle();
    contact(b, "c", &ONE, now(b));
    expect_error(b, DIAG_CONSTRAINT_NO_DOF, THERE, "'c'");
    bb = particle();
    contact(b, "c", &ONE, SQR(v(b, 0)))->of_rates = true;
    expect_error(b, DIAG_SLIP_NOT_LINEAR, THERE, "rates");
    bb = particle();
    mcontact *c = contact(b, "c", &ONE, q(b, 0));
    c->slip_given = true, c->nslip = 1, c->slip[0] = SQR(v(b, 0));
    expect_error(b, DIAG_SLIP_NOT_LINEAR, HERE, "not linear");
    bb = particle();
    single(b, &b->m->potential, v(b, 0));
    expect_error(b, DIAG_NOT_SUPPORTED, THERE, "potential");
}

/* ---- text ---- */
static void expect_name(bench *b, const index_names *over, ir_input x, const char *name)
{
    text out = { .a = b->a };
    model_input_name(&out, b->g, &x, &(model_namer){ b->m, over });
    assert_string_equal(out.at, name);
}

static void names_of_inputs(void **state)
{
    (void)state;
    bench bb = bench_new(), *b = &bb;
    dof(b, "y", 0, 0);
    dof(b, "z", 5, 0);
    dof(b, "p", 4, 2);
    ir_ref tau = param(b, "tau", 1);
    index_names i = range("i", 1, 4), two = pairs(4);
    expect_name(b, NULL, (ir_input){ .kind = IN_V, .at.base = 0 }, "y'");
    expect_name(b, NULL, (ir_input){ .kind = IN_A, .at.base = 0 }, "y''");
    expect_name(b, NULL, (ir_input){ .kind = IN_PRE, .at.base = 0 }, "pre(y')");
    expect_name(b, NULL, (ir_input){ .kind = IN_Q, .at.base = 3 }, "z[3]");
    expect_name(b, &i, (ir_input){ .kind = IN_Q, .at = { 1, { 1 } } }, "z[i + 1]");
    expect_name(b, &i, (ir_input){ .kind = IN_V, .at = { 6, { -1 } } }, "z[-i + 6]'");
    expect_name(b, &two, (ir_input){ .kind = IN_Q, .at = { 5, { 0, 2 } } }, "p[j][2]");
    expect_name(b, &two, (ir_input){ .kind = IN_Q, .at = { 4, { 2, 0 } } }, "p[i][1]");
    expect_name(b, NULL, (ir_input){ .kind = IN_PAST_Q, .at.base = 0, .arg = SUB(now(b), tau) },
                "y(t - tau)");
    expect_name(b, NULL, (ir_input){ .kind = IN_PAST_V, .at.base = 0, .arg = SUB(now(b), tau) },
                "y'(t - tau)");
    expect_name(b, NULL, (ir_input){ .kind = IN_Q, .at.base = 77 }, "q[77]");
    expect_name(b, &two, (ir_input){ .kind = IN_INDEX, .at.base = 1 }, "j");
    bench_end(b);
}

/* Parts: big and small[1..3] of one class, instances 0 and 1..3. */
static void names_of_parts(void **state)
{
    (void)state;
    bench bb = bench_new(), *b = &bb;
    mclass *disk = arena_make(b->a, mclass);
    *disk = (mclass){ .name = "disk", .m = b->m, .ninst = 4, .qbase = 0, .qsize = 3 };
    *vec_push(b->a, &b->m->classes) = disk;
    mdof d[2] = { { .name = "p", .comp = 2, .size = 2 }, { .name = "a", .offset = 2, .size = 1 } };
    mpart part[2] = {
        { .name = "big", .of = disk, .per = 1, .lo = 1, .n = 1 },
        { .name = "small", .of = disk, .first = 1, .per = 3, .lo = 1, .n = 3, .indexed = true }
    };
    mparam R = { .name = "R", .offset = 10, .size = 1 };
    disk->inst = range("(instance)", 0, 3);
    *vec_push(b->a, &disk->dofs) = &d[0];
    *vec_push(b->a, &disk->dofs) = &d[1];
    *vec_push(b->a, &disk->params) = &R;
    *vec_push(b->a, &b->root->parts) = &part[0];
    *vec_push(b->a, &b->root->parts) = &part[1];
    b->m->nq = 12;
    b->m->nparam = 14;
    index_names i = range("i", 1, 3);
    expect_name(b, NULL, (ir_input){ .kind = IN_Q, .at.base = 0 }, "big.p[1]");
    expect_name(b, NULL, (ir_input){ .kind = IN_V, .at.base = 2 }, "big.a'");
    expect_name(b, &i, (ir_input){ .kind = IN_Q, .at = { 1, { 3 } } }, "small[i].p[2]");
    expect_name(b, NULL, (ir_input){ .kind = IN_Q, .at.base = 7 }, "small[2].p[2]");
    expect_name(b, NULL, (ir_input){ .kind = IN_PARAM, .at.base = 10 }, "big.R");
    expect_name(b, &i, (ir_input){ .kind = IN_PARAM, .at = { 10, { 1 } } }, "small[i].R");
    expect_name(b, &disk->inst, (ir_input){ .kind = IN_Q, .at = { 1, { 3 } } }, "p[2]");
    expect_name(b, &disk->inst, (ir_input){ .kind = IN_PARAM, .at = { 10, { 1 } } }, "R");
    bench_end(b);
}

static void expect_jacobian(bench *b, const char *lines)
{
    text out = { .a = b->a };
    model_dump_jacobian(&out, b->m);
    assert_string_equal(out.at, lines);
    bench_end(b);
}

/* Terms that cancel in Lagrange's equations are removed: f[a] contains nothing of the kinetic energy. */
static void jacobian_as_formulas(void **state)
{
    (void)state;
    bench bb = bench_new(), *b = &bb;
    cart(b);
    contact(b, "left", &ONE, ADD(q(b, 0), con(b, 0.2)));
    expect_jacobian(
        b, "model bench\nM[x, x] = M + m\nM[x, a] = m*l*cos(a)\nM[a, x] = m*l*cos(a)\nM[a, a] = m*l^2\n"
           "d(f[x], a) = m*l*cos(a)*a'^2\nd(f[a], a) = -m*g*l*cos(a)\nd(f[x], a') = 2*m*l*sin(a)*a'\n"
           "d(left.gap, x) = 1\n");
    bb = bench_new();
    chain(b);
    expect_jacobian(b,
                    "model bench\nM[z[i], z[i]] = m for i in 1..8\n"
                    "d(f[z[i]], z[i]) = -k for i in 1..7\nd(f[z[i]], z[i + 1]) = k for i in 1..7\n"
                    "d(f[z[i + 1]], z[i]) = k for i in 1..7\nd(f[z[i + 1]], z[i + 1]) = -k for i in 1..7\n"
                    "d(pair[i].gap, z[i]) = -1 for i in 1..7\nd(pair[i].gap, z[i + 1]) = 1 for i in 1..7\n");
}

static void model_as_text(void **state)
{
    (void)state;
    bench bb = bench_new(), *b = &bb;
    text out = { .a = b->a };
    chain(b);
    model_dump(&out, b->m);
    assert_string_equal(out.at, "model bench: 8 dofs, 3 parameters\n"
                                "param m\nparam k\nparam l\n"
                                "dof z[1..8], order 2\n"
                                "default m = 0.5\ndefault k = 40\ndefault l = 0.1\n"
                                "kinetic m*z[i]'^2/2 for i in 1..8\n"
                                "potential k*(z[i + 1] - z[i] - l)^2/2 for i in 1..7\n"
                                "constraint pair[i in 1..7]: z[i + 1] - z[i] - l/2 >= 0\n"
                                "    impact = newton(0.9)\n");
    bench_end(b);
}

static void hash_tells_models_apart(void **state)
{
    (void)state;
    bench one = bench_new(), two = bench_new(), three = bench_new(), *b = &three;
    cart(&one);
    cart(&two);
    cart(b);
    b->m->potential.at[0].out[0] = MUL(con(b, 2), b->m->potential.at[0].out[0]);
    assert_true(model_hash(one.m) == model_hash(two.m));
    assert_true(model_hash(one.m) != model_hash(b->m));
    bench_end(&one);
    bench_end(&two);
    bench_end(&three);
}

/* ---- models from text: every derivative against differences ---- */
static bench from_text(const char *model_text)
{
    bench b = { .a = arena_new(&allocator_libc, NULL),
                .to = arena_new(&allocator_libc, NULL),
                .scratch = arena_new(&allocator_libc, NULL) };
    diags *d = diags_new(b.a);
    symtab *names = symtab_new(b.a);
    ast *file = parse_source(b.a, names, d, diags_add_source(d, "text", model_text, strlen(model_text)));
    evaluator ev = { .a = b.a, .names = names, .d = d, .fuel = 1000 };
    table_scope *top = table_scope_new(b.a, eval_root_scope(&ev));
    for (uint32_t i = 0; i < file->n; i++) {
        value x = { .kind = V_MODEL };
        x.fn.fn = file->kid[i];
        x.fn.in = &top->base;
        table_scope_set(top, file->kid[i]->name, x);
    }
    b.m = model_build(b.a, names, d, &top->base, file->kid[file->n - 1], NULL, 0);
    assert_non_null(b.m);
    b.g = b.m->g;
    assert_true(build(&b));
    return b;
}

typedef struct {
    double t, q[16], v[16];
} instant;

static double contact_value(const bench *b, const kernel *k, const instant *x, const int32_t *index, int out)
{
    double reg[256];
    inputs from = { .t = x->t, .from = { [IN_PARAM] = b->param, [IN_Q] = x->q, [IN_V] = x->v } };
    if (k->tape.nout == 0)
        return 0;
    assert_true(k->tape.nreg <= 256);
    tape_start(&k->tape, reg);
    kernel_run(k, &from, index, reg);
    return reg[k->tape.out[out]];
}

static instant moved(const bench *b, const instant *x, double s)
{
    instant y = *x;
    y.t += s;
    for (int i = 0; i < b->p->nq; i++)
        y.q[i] += s * x->v[i];
    return y;
}

/* Along t + s, q + s v: d gap/ds = H v + rate, d2 gap/ds2 = bias, d slip/ds = slip_bias; and the slip is S v
   plus its value for v = 0. */
static void check_member(const bench *b, const contact_family *c, const instant *x, const int32_t *index)
{
    double h = 1e-4, rate = contact_value(b, &c->rate, x, index, 0);
    instant up = moved(b, x, h), down = moved(b, x, -h), rest = *x;
    for (uint32_t i = 0; i < c->gradient.tape.nout; i++)
        rate += contact_value(b, &c->gradient, x, index, (int)i) *
                x->v[slot_at(&c->gradient.row[i], index, c->over.n)];
    double g[3] = { contact_value(b, &c->gap, &down, index, 0), contact_value(b, &c->gap, x, index, 0),
                    contact_value(b, &c->gap, &up, index, 0) };
    assert_near(rate, (g[2] - g[0]) / (2 * h), 1e-5);
    assert_near(contact_value(b, &c->bias, x, index, 0), (g[2] - 2 * g[1] + g[0]) / (h * h), 1e-4);
    memset(rest.v, 0, sizeof rest.v);
    for (int k = 0; k < c->nslip; k++) {
        double s = contact_value(b, &c->slip_offset, x, index, k);
        assert_near(s, contact_value(b, &c->slip, &rest, index, k), 1e-14);
        for (uint32_t i = 0; i < c->slip_map.tape.nout; i++)
            if (c->slip_map.row[i].base == k)
                s += contact_value(b, &c->slip_map, x, index, (int)i) *
                     x->v[slot_at(&c->slip_map.col[i], index, c->over.n)];
        assert_near(s, contact_value(b, &c->slip, x, index, k), 1e-13);
        assert_near(
            contact_value(b, &c->slip_bias, x, index, k),
            (contact_value(b, &c->slip, &up, index, k) - contact_value(b, &c->slip, &down, index, k)) /
                (2 * h),
            1e-5);
    }
}

static void check_contacts(const bench *b, const instant *x)
{
    int32_t index[MAX_INDEX] = { 0 };
    for (size_t k = 0; k < b->p->ncontact; k++) {
        const contact_family *c = &b->p->contact[k];
        for (bool any = index_first(&c->over, index); any; any = index_next(&c->over, index))
            check_member(b, c, x, index);
    }
}

/* d/dt dT/dv = dT/dq - dV/dq + (dissipative and given forces, none here): M v is dT/dv for homogeneous T, and
   energy is conserved. */
static void check_power(const bench *b, const instant *x)
{
    enum { N = 16 };
    if (!b->p->potential_whole)
        return;
    int32_t n = b->p->nq;
    double f[N] = { 0 }, M0[N * N] = { 0 }, M1[N * N] = { 0 }, h = 1e-5, power = 0, scale = 1;
    instant up = moved(b, x, h), down = moved(b, x, -h);
    at_instant(b, &b->p->force, x->t, x->q, x->v, f, 0);
    at_instant(b, &b->p->mass, x->t, down.q, x->v, M0, n);
    at_instant(b, &b->p->mass, x->t, up.q, x->v, M1, n);
    for (int32_t i = 0; i < n; i++) {
        power += x->v[i] * f[i];
        scale += fabs(x->v[i] * f[i]);
        for (int32_t j = 0; j < n; j++)
            power += x->v[i] * x->v[j] * (M1[n * i + j] - M0[n * i + j]) / (4 * h);
    }
    power += (energy(b, &b->p->potential, x->t, up.q, x->v) -
              energy(b, &b->p->potential, x->t, down.q, x->v)) /
             (2 * h);
    assert_near(power, 0, 1e-7 * scale);
}

static const char *const texts[] = {
    "model double { param m1 = 1, m2 = 2, l1 = 1, l2 = 0.5, g = 9.81; dof a = 1, b = 0.5\n"
    "let x1 = l1*sin(a), y1 = -l1*cos(a), x2 = x1 + l2*sin(b), y2 = y1 - l2*cos(b)\n"
    "kinetic m1*(d(x1, t)^2 + d(y1, t)^2)/2 + m2*(d(x2, t)^2 + d(y2, t)^2)/2\n potential m1*g*y1 + m2*g*y2\n"
    "constraint wall: x2 >= -3 - 0.1*sin(2*t) { slip = d(y2, t) - t, friction = coulomb(0.3) } }",
    "model spherical { param m = 1, l = 2, g = 9.81; dof th = 0.5, ph = 0\n"
    "let p = l*[sin(th)*cos(ph), sin(th)*sin(ph), -cos(th)]\n"
    "kinetic m*norm(d(p, t))^2/2\n potential m*g*p[3]\n constraint plane: p[1] + p[2] <= 1.5 }",
    "model kepler { param m = 1, k = 1; dof r = 1, f = 0; kinetic m*(r'^2 + r^2*f'^2)/2; potential -k/r\n"
    "constraint core: r >= 0.1 }",
    "model arm { param J = 2; dof a = 0, x[3] = 0\n"
    "kinetic J*a'^2/2 + sum((1 + i)*(x[i]' + a'*cos(a + x[i]))^2/2 for i in 1..3)\n"
    "potential sum(x[i]^2*a^2 for i in 1..3)\n dissipation a'^2*x[1]'^2\n force x[2]: a*x[3]'*t }",
    "model pairs { dof p[i in 1..3] in R2 = [i, 0], a[i in 1..3] = 0\n"
    "for i in 1..3 { kinetic norm(p[i]')^2/2 + a[i]'^2/2; potential p[i][1]*p[i][2]^2 }\n"
    "constraint touch[i in 1..3, j in i+1..3]: norm(p[i] - p[j]) >= 0.1 {\n"
    "    slip = p[i]' - p[j]' - 0.1*(a[i]' + a[j]')*perp((p[i] - p[j])/norm(p[i] - p[j])) } }",
    "model ball { param R = 1; dof p in R2 = [0, 0]; kinetic R^2*norm(p')^2/2 }\n"
    "model parts { part big: ball(R = 2); part small[i in 1..2]: ball(R = 0.5*i); dof h = 0\n"
    "3*h'' = -h*sin(t) + big.p[1]\n"
    "constraint hit[i in 1..2]: norm(big.p - small[i].p) >= big.R + small[i].R }",
};

static void texts_match_differences(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        bench b = from_text(texts[k]);
        instant x = { .t = 0.3 };
        uint64_t seed = 1;
        for (int i = 0; i < b.p->nq; i++) {
            x.q[i] = 0.7 + 1e-9 * (double)((seed = hash64(seed, 1)) % 1000000000);
            x.v[i] = -0.5 + 1e-9 * (double)((seed = hash64(seed, 2)) % 1000000000);
        }
        check_jacobian(&b, x.t, x.q, x.v);
        check_contacts(&b, &x);
        check_power(&b, &x);
        bench_end(&b);
    }
}

/* ---- size ---- */
static void large_models_take_linear_time(void **state)
{
    (void)state;
    enum { N = 30000 };
    bench bb = bench_new(), *b = &bb;
    dof(b, "z", N, 0);
    ir_ref k = param(b, "k", 10), r = param(b, "r", 0.01);
    for (int32_t i = 0; i < N; i++) {
        ir_ref f = MUL(k, SUB(q(b, i), q(b, (i + 1) % N)));
        at_row(b, &b->m->equation, i, ADD(MUL(con(b, 1 + i % 7), acc(b, i)), f));
        contact(b, "c", &ONE, SUB(SUB(q(b, (i + 1) % N), q(b, i)), MUL(con(b, 2), r)));
    }
    clock_t start = clock();
    assert_true(build(b));
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    assert_int_equal(b->p->mass.at[0].tape.nout, N);
    assert_int_equal(b->p->force_dq.at[0].tape.nout, 2 * N);
    assert_int_equal(b->p->ncontact, N);
    print_message("%d equations and constraints: %.2f s\n", N, seconds);
    assert_true(seconds < 10);
    bench_end(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(cart_matches_formulas),
                                        cmocka_unit_test(cart_matches_its_energy),
                                        cmocka_unit_test(rotating_frame),
                                        cmocka_unit_test(klarbring_structure),
                                        cmocka_unit_test(chain_is_a_family),
                                        cmocka_unit_test(parameters_are_hoisted),
                                        cmocka_unit_test(disk_pairs),
                                        cmocka_unit_test(neighbours_are_recognised),
                                        cmocka_unit_test(moving_wall),
                                        cmocka_unit_test(mixed_orders),
                                        cmocka_unit_test(steps_are_not_linear),
                                        cmocka_unit_test(defaults_in_order),
                                        cmocka_unit_test(errors_are_located),
                                        cmocka_unit_test(names_of_inputs),
                                        cmocka_unit_test(names_of_parts),
                                        cmocka_unit_test(jacobian_as_formulas),
                                        cmocka_unit_test(model_as_text),
                                        cmocka_unit_test(hash_tells_models_apart),
                                        cmocka_unit_test(texts_match_differences),
                                        cmocka_unit_test(large_models_take_linear_time) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
