/* Speed of the tape interpreter, compared with the same loops written in C. One JSON line for each problem;
   times are the least of many repeats. Build this file with the flags of batch.c. That file selects wider
   vectors at run time, which plain flags do not give the loops here; so each loop is also timed with code
   built for the same vectors ("hand_wide", "ratio_wide"): the fair comparison. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "lower/emit.h"

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Nanoseconds for one call of f(ud), the least of `repeat`. */
static double least(void (*f)(void *), void *ud, int repeat)
{
    double best = INFINITY;
    for (int i = 0; i < repeat; i++) {
        double start = seconds();
        f(ud);
        best = fmin(best, seconds() - start);
    }
    return 1e9 * best;
}

static void report(const char *problem, const char *unit, double cdl, double hand)
{
    printf("{\"problem\":\"%s\",\"cdl\":%.3f,\"hand\":%.3f,\"unit\":\"%s\",\"ratio\":%.3f}\n", problem, cdl,
           hand, unit, cdl / hand);
}

/* A loop written by hand, in two builds. */
#if defined __x86_64__ && defined __GNUC__
#define WIDE __attribute__((target("avx2")))
static bool wide(void)
{
    return __builtin_cpu_supports("avx2");
}
#else
#define WIDE
static bool wide(void)
{
    return true;
}
#endif
#define HAND(name)                                                           \
    static inline __attribute__((always_inline)) void name##_loop(void *ud); \
    static void name##_hand(void *ud)                                        \
    {                                                                        \
        name##_loop(ud);                                                     \
    }                                                                        \
    WIDE static void name##_wide(void *ud)                                   \
    {                                                                        \
        name##_loop(ud);                                                     \
    }                                                                        \
    static inline void name##_loop(void *ud)

/* ---- helpers for building ---- */
static ir *g;
static ir_ref K(double k)
{
    return ir_const(g, k);
}
static ir_ref add(ir_ref a, ir_ref b)
{
    return ir_op2(g, OP_ADD, a, b);
}
static ir_ref sub(ir_ref a, ir_ref b)
{
    return ir_op2(g, OP_SUB, a, b);
}
static ir_ref mul(ir_ref a, ir_ref b)
{
    return ir_op2(g, OP_MUL, a, b);
}
static ir_ref in(in_kind kind, int base, int s0, int s1)
{
    return ir_in(g, (ir_input){ .kind = kind, .at = { base, { s0, s1 } } });
}

typedef struct {
    kernel k;
    inputs in;
    double *reg, *out, *hand;
    size_t n;
    double check;
} job;
static job job_new(arena *a, arena *s, const ir_ref *out, size_t n, index_set over, const double *q,
                   const double *v, const double *param)
{
    job j = { .in = { .t = 0.7 } };
    over.count = index_count(&over);
    j.n = (size_t)over.count;
    j.k = emit_kernel(a, s, g, out, n, &over, IR_NONE, (span){ 0 });
    j.in.from[IN_Q] = q;
    j.in.from[IN_V] = v;
    j.in.from[IN_PARAM] = param;
    j.reg = arena_array(a, double, batch_regs(&j.k.tape));
    j.out = arena_array(a, double, j.n *n);
    j.hand = arena_array(a, double, j.n *n);
    return j;
}
static void job_run(void *ud)
{
    job *j = ud;
    kernel_run_all(&j->k, &j->in, j->reg, j->out);
}

/* ---- Klarbring's right side, one member at a time ---- */
enum { TIMES = 1000 };
static void klarbring_tape(void *ud)
{
    job *j = ud;
    const tape *t = &j->k.tape;
    uint32_t time_at = 0;
    double sum = 0;
    while (j->k.in[time_at].kind != IN_TIME)
        time_at++;
    for (int i = 0; i < TIMES; i++) {
        j->reg[time_at] = 0.01 * i;
        tape_run(t, j->reg);
        sum += j->reg[t->out[0]] + j->reg[t->out[1]];
    }
    j->check = sum;
}

static void klarbring_kernel(void *ud)
{
    job *j = ud;
    int32_t index[MAX_INDEX] = { 0 };
    double sum = 0;
    for (int i = 0; i < TIMES; i++) {
        j->in.t = 0.01 * i;
        kernel_run(&j->k, &j->in, index, j->reg);
        sum += j->reg[j->k.tape.out[0]] + j->reg[j->k.tape.out[1]];
    }
    j->check = sum;
}

__attribute__((noinline)) static void klarbring_rhs(double t, const double *u, double *f)
{
    f[0] = cos(t) - (2 * u[0] + 0.5 * u[1]);
    f[1] = 0.2 * sin(3 * t) - (0.5 * u[0] + u[1]);
}
static void klarbring_hand(void *ud)
{
    job *j = ud;
    double sum = 0;
    for (int i = 0; i < TIMES; i++) {
        klarbring_rhs(0.01 * i, j->in.from[IN_Q], j->out);
        sum += j->out[0] + j->out[1];
    }
    j->check = sum;
}

static void bench_klarbring(arena *a, arena *s)
{
    static const double u[2] = { -0.1, 0.3 };
    ir_ref t = in(IN_TIME, 0, 0, 0), u1 = in(IN_Q, 0, 0, 0), u2 = in(IN_Q, 1, 0, 0);
    ir_ref f[2] = {
        sub(ir_op1(g, OP_COS, t), add(mul(K(2), u1), mul(K(0.5), u2))),
        sub(mul(K(0.2), ir_op1(g, OP_SIN, mul(K(3), t))), add(mul(K(0.5), u1), u2)),
    };
    job j = job_new(a, s, f, 2, (index_set){ 0 }, u, u, u);
    double *reg = arena_array(a, double, j.k.tape.nreg);
    j.reg = reg;
    tape_start(&j.k.tape, reg);
    double instructions = tape_plain(&j.k.tape, a).ncode;
    double all = least(klarbring_kernel, &j, 2000), cdl = least(klarbring_tape, &j, 2000), sum = j.check,
           hand = least(klarbring_hand, &j, 2000);
    if (fabs(sum - j.check) > 1e-9)
        printf("klarbring: %g instead of %g\n", sum, j.check);
    report("klarbring right side", "ns/instruction", cdl / TIMES / instructions, hand / TIMES / instructions);
    report("klarbring right side, inputs gathered", "ns/instruction", all / TIMES / instructions,
           hand / TIMES / instructions);
}

/* ---- families ---- */
enum { MEMBERS = 100000, DISKS = 448, SPACE = 2 * MEMBERS + 4 };

static void bench_family(const char *problem, job *j, void (*hand)(void *), void (*hand_wide)(void *))
{
    double n = (double)j->n, cdl = least(job_run, j, 300) / n, by_hand = least(hand, j, 300) / n;
    double by_wide = least(wide() ? hand_wide : hand, j, 300) / n, worst = 0;
    for (size_t i = 0; i < j->n * j->k.tape.nout; i++)
        worst = fmax(worst, fabs(j->out[i] - j->hand[i]));
    if (worst > 1e-12)
        printf("%s: differs by %g\n", problem, worst);
    printf("{\"problem\":\"%s\",\"cdl\":%.3f,\"hand\":%.3f,\"unit\":\"ns/"
           "member\",\"ratio\":%.3f,\"hand_wide\":%.3f,\"ratio_wide\":%.3f}\n",
           problem, cdl, by_hand, cdl / by_hand, by_wide, cdl / by_wide);
}

static index_set range_1(int n)
{
    return (index_set){ .n = 1, .r = { { .lo = 1, .hi = n } } };
}

/* A chain of springs and dampers. */
HAND(springs)
{
    job *j = ud;
    const double *restrict x = j->in.from[IN_Q], *restrict v = j->in.from[IN_V], k = j->in.from[IN_PARAM][0],
                           c = j->in.from[IN_PARAM][1];
    double *restrict f = j->hand;
    for (int i = 1; i <= MEMBERS; i++)
        f[i - 1] = k * (x[i + 1] - x[i]) - k * (x[i] - x[i - 1]) - c * v[i];
}
static void bench_springs(arena *a, arena *s, const double *q, const double *v, const double *param)
{
    ir_ref x0 = in(IN_Q, -1, 1, 0), x1 = in(IN_Q, 0, 1, 0), x2 = in(IN_Q, 1, 1, 0), k = in(IN_PARAM, 0, 0, 0);
    ir_ref f = sub(sub(mul(k, sub(x2, x1)), mul(k, sub(x1, x0))),
                   mul(in(IN_PARAM, 1, 0, 0), in(IN_V, 0, 1, 0)));
    job j = job_new(a, s, &f, 1, range_1(MEMBERS), q, v, param);
    bench_family("chain of springs", &j, springs_hand, springs_wide);
}

/* Gaps of all pairs of disks, then their gradients. */
HAND(gaps)
{
    job *j = ud;
    const double *restrict p = j->in.from[IN_Q], R = j->in.from[IN_PARAM][2];
    double *restrict gap = j->hand;
    for (int i = 1; i <= DISKS; i++)
        for (int k = i + 1; k <= DISKS; k++) {
            double dx = p[2 * i] - p[2 * k], dy = p[2 * i + 1] - p[2 * k + 1];
            *gap++ = sqrt(dx * dx + dy * dy) - 2 * R;
        }
}
HAND(normals)
{
    job *j = ud;
    const double *restrict p = j->in.from[IN_Q];
    double *restrict n = j->hand;
    for (int i = 1; i <= DISKS; i++)
        for (int k = i + 1; k <= DISKS; k++, n += 4) {
            double dx = p[2 * i] - p[2 * k], dy = p[2 * i + 1] - p[2 * k + 1], d = sqrt(dx * dx + dy * dy);
            n[0] = dx / d;
            n[1] = dy / d;
            n[2] = -n[0];
            n[3] = -n[1];
        }
}
static void bench_disks(arena *a, arena *s, const double *q, const double *v, const double *param)
{
    index_set pairs = { .n = 2,
                        .r = { { .lo = 1, .hi = DISKS }, { .lo = 1, .lo_stride = { 1 }, .hi = DISKS } } };
    ir_ref dx = sub(in(IN_Q, 0, 2, 0), in(IN_Q, 0, 0, 2)), dy = sub(in(IN_Q, 1, 2, 0), in(IN_Q, 1, 0, 2));
    ir_ref d = ir_op1(g, OP_SQRT, add(ir_op1(g, OP_SQR, dx), ir_op1(g, OP_SQR, dy)));
    ir_ref gap = sub(d, mul(K(2), in(IN_PARAM, 2, 0, 0))), nx = ir_op2(g, OP_DIV, dx, d),
           ny = ir_op2(g, OP_DIV, dy, d);
    job j = job_new(a, s, &gap, 1, pairs, q, v, param);
    bench_family("gaps of disks", &j, gaps_hand, gaps_wide);
    j = job_new(a, s, (ir_ref[]){ nx, ny, ir_op1(g, OP_NEG, nx), ir_op1(g, OP_NEG, ny) }, 4, pairs, q, v,
                param);
    bench_family("gradients of gaps of disks", &j, normals_hand, normals_wide);
}

/* Pendulums on a support that moves. */
HAND(pendulums)
{
    job *j = ud;
    const double *restrict q = j->in.from[IN_Q], *restrict v = j->in.from[IN_V], w = j->in.from[IN_PARAM][0],
                           c = j->in.from[IN_PARAM][1];
    double *restrict f = j->hand, t = j->in.t;
    double push = 0.3 * cos(2 * t);
    for (int i = 1; i <= MEMBERS; i++)
        f[i - 1] = push * cos(q[i]) - w * sin(q[i]) - c * v[i];
}
static void bench_pendulums(arena *a, arena *s, const double *q, const double *v, const double *param)
{
    ir_ref x = in(IN_Q, 0, 1, 0), push = mul(K(0.3), ir_op1(g, OP_COS, mul(K(2), in(IN_TIME, 0, 0, 0))));
    ir_ref f = sub(sub(mul(push, ir_op1(g, OP_COS, x)), mul(in(IN_PARAM, 0, 0, 0), ir_op1(g, OP_SIN, x))),
                   mul(in(IN_PARAM, 1, 0, 0), in(IN_V, 0, 1, 0)));
    job j = job_new(a, s, &f, 1, range_1(MEMBERS), q, v, param);
    bench_family("pendulums", &j, pendulums_hand, pendulums_wide);
}

int main(void)
{
    arena *a = arena_new(&allocator_libc, NULL), *s = arena_new(&allocator_libc, NULL);
    double *q = arena_array(a, double, SPACE), *v = arena_array(a, double, SPACE);
    static const double param[3] = { 7.5, 0.1, 0.01 };
    for (int i = 0; i < SPACE; i++) {
        q[i] = sin(0.37 * i) + 1e-3 * i / SPACE;
        v[i] = cos(0.11 * i);
    }
    g = ir_new(a);
    bench_klarbring(a, s);
    bench_springs(a, s, q, v, param);
    bench_disks(a, s, q, v, param);
    bench_pendulums(a, s, q, v, param);
    arena_free(s);
    arena_free(a);
    return 0;
}
