/* emit, tape, batch, program: the result equals the formula, bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include "lower/emit.h"
#include "clock/backend.h"

typedef struct {
    arena *a, *s;
    ir *g;
} fixture;

static int setup(void **state)
{
    arena *a = arena_new(&allocator_libc, NULL);
    fixture *f = arena_make(a, fixture);
    *f = (fixture){ a, arena_new(&allocator_libc, NULL), ir_new(a) };
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    arena_free(f->s);
    arena_free(f->a);
    return 0;
}

/* ---- helpers ---- */
static uint64_t seed = 1;
static uint32_t dice(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

static bool same(double x, double y)
{
    return (isnan(x) && isnan(y)) || memcmp(&x, &y, sizeof x) == 0;
}

static ir_ref in(fixture *f, in_kind kind, int base, int s0, int s1)
{
    return ir_in(f->g, (ir_input){ .kind = kind, .at = { base, { s0, s1 } } });
}

static kernel emit(fixture *f, const ir_ref *out, size_t n, index_set over, ir_ref where)
{
    over.count = index_count(&over);
    return emit_kernel(f->a, f->s, f->g, out, n, &over, where, (span){ 0 });
}

static const index_set one_member = { 0 };
static index_set range(int lo, int hi)
{
    return (index_set){ .n = 1, .r = { { .lo = lo, .hi = hi } } };
}
/* i in lo..hi, j in i+1..hi. */
static index_set triangle(int lo, int hi)
{
    return (index_set){ .n = 2, .r = { { .lo = lo, .hi = hi }, { .lo = 1, .lo_stride = { 1 }, .hi = hi } } };
}

/* The value of an input for a member, without kernel_gather. */
typedef struct {
    const inputs *from;
    const int32_t *index;
    int n;
} place;
static double place_value(const ir_input *i, void *ud)
{
    const place *p = ud;
    if (i->kind == IN_TIME)
        return p->from->t;
    if (i->kind == IN_SPEED)
        return p->from->speed;
    if (i->kind == IN_INDEX)
        return p->index[i->at.base];
    int at = i->at.base;
    for (int k = 0; k < p->n; k++)
        at += i->at.stride[k] * p->index[k];
    return p->from->from[i->kind][at];
}

/* All members: one by one, through batch_run and through kernel_run_all; each must have the value of the
   formula. */
static void check_kernel(fixture *f, const kernel *k, const ir_ref *out, const inputs *from)
{
    const tape *t = &k->tape;
    int32_t index[MAX_INDEX], lanes[MAX_INDEX * LANES];
    double *reg = arena_array(f->a, double, t->nreg), *work = arena_array(f->a, double, batch_regs(t));
    double *lane = arena_array(f->a, double, batch_regs(t));
    double *all = arena_array(f->a, double, (size_t)k->over.count * t->nout + 1);
    kernel_run_all(k, from, work, all);
    tape_start(t, reg);
    batch_start(t, lane);
    int64_t m = 0;
    for (bool any = index_first(&k->over, index); any; any = index_next(&k->over, index), m++) {
        place p = { from, index, k->over.n };
        kernel_run(k, from, index, reg);
        /* this member in all lanes except the last one, which has the first member */
        for (int j = 0; j < k->over.n; j++)
            for (int i = 0; i < LANES; i++)
                lanes[j * LANES + i] = index[j];
        batch_run(k, from, lanes, 7, lane);
        for (uint32_t j = 0; j < t->nout; j++) {
            double want = ir_value(f->g, f->s, out[j], place_value, &p);
            assert_true(same(reg[t->out[j]], want));
            assert_true(same(lane[t->out[j] * LANES], want));
            assert_true(same(lane[t->out[j] * LANES + 6], want));
            assert_true(same(all[m * t->nout + j], want));
        }
    }
    assert_int_equal(m, k->over.count);
}

/* ---- index sets ---- */
static void test_index_sets(void **state)
{
    (void)state;
    int32_t x[MAX_INDEX];
    assert_true(index_first(&one_member, x));
    assert_false(index_next(&one_member, x));
    assert_int_equal(index_count(&one_member), 1);
    index_set none = range(3, 2);
    assert_false(index_first(&none, x));
    assert_int_equal(index_count(&none), 0);
    index_set t = triangle(1, 4);
    static const int32_t want[][2] = { { 1, 2 }, { 1, 3 }, { 1, 4 }, { 2, 3 }, { 2, 4 }, { 3, 4 } };
    int n = 0;
    for (bool any = index_first(&t, x); any; any = index_next(&t, x), n++) {
        assert_in_range(n, 0, 5);
        assert_int_equal(x[0], want[n][0]);
        assert_int_equal(x[1], want[n][1]);
    }
    assert_int_equal(n, 6);
    assert_int_equal(index_count(&t), 6);
    index_set alone = triangle(1, 1);
    assert_false(index_first(&alone, x));
    /* empty rows first and in between: j in 3..i for i in 1..5, k in j..3 */
    index_set s = { .n = 3,
                    .r = { { .lo = 1, .hi = 5 },
                           { .lo = 3, .hi = 0, .hi_stride = { 1 } },
                           { .lo = 0, .lo_stride = { 0, 1 }, .hi = 3 } } };
    n = 0;
    for (bool any = index_first(&s, x); any; any = index_next(&s, x), n++) {
        assert_int_equal(x[0], 3 + n);
        assert_int_equal(x[1], 3);
        assert_int_equal(x[2], 3);
    }
    assert_int_equal(n, 3);
    assert_int_equal(index_count(&s), 3);
    index_set edge = range(INT32_MAX - 1, INT32_MAX);
    assert_true(index_first(&edge, x) && index_next(&edge, x));
    assert_int_equal(x[0], INT32_MAX);
    assert_false(index_next(&edge, x));
}

/* ---- operations ---- */
static const double some[] = { -2.5, -1, -0.3, -0.0, 0, 0.1, 0.7, 1, 2, 3.25, 40, 1e300 };
enum { NSOME = sizeof some / sizeof *some };

static void test_every_operation(void **state)
{
    fixture *f = *state;
    inputs from = { .from = { [IN_Q] = some } };
    for (int op = 0; op < OP_COUNT; op++) {
        /* b and c have other strides than a */
        ir_ref x[3] = { in(f, IN_Q, 0, 1, 0), in(f, IN_Q, 0, 0, 1), in(f, IN_Q, 3, 0, 0) };
        int n = op_arity((op_code)op);
        ir_ref r = ir_op(f->g, (op_code)op, x[0], n > 1 ? x[1] : IR_NONE, n > 2 ? x[2] : IR_NONE);
        index_set all = { .n = 2, .r = { { .lo = 0, .hi = NSOME - 1 }, { .lo = 0, .hi = NSOME - 1 } } };
        kernel k = emit(f, &r, 1, all, IR_NONE);
        check_kernel(f, &k, &r, &from);
    }
}

static double value_of(const tape *t, double *reg)
{
    tape_run(t, reg);
    return reg[t->out[0]];
}

/* A fused operation equals the two operations that it combines, in both interpreters. */
static void test_every_fused_operation(void **state)
{
    fixture *f = *state;
    static const uint8_t arity[] = {
#define X(id, n, value, outer, side, inner) n,
#include "base/fused.def"
#undef X
    };
    for (uint32_t op = OP_COUNT; op < TAPE_SINCOS; op++) {
        const tape_pair *p = &tape_pairs[op - OP_COUNT];
        int inner = op_arity((op_code)p->inner), outer = op_arity((op_code)p->outer);
        assert_int_equal(arity[op - OP_COUNT], inner + outer - 1);
        instr code[2] = { { op, 3, 0, 1, 2 }, { .op = TAPE_END } };
        uint32_t out = 3;
        tape t = { .nin = 3, .nreg = 4, .ncode = 1, .nout = 1, .code = code, .out = &out };
        tape plain = tape_plain(&t, f->a);
        assert_int_equal(plain.ncode, 2);
        slot q[3] = { { IN_Q, { 0, { 0 } } }, { IN_Q, { 1, { 0 } } }, { IN_Q, { 2, { 0 } } } };
        kernel k = { .tape = t, .in = q };
        double *work = arena_array(f->a, double, batch_regs(&t)), got;
        for (int i = 0; i < 200; i++) {
            double reg[5] = { some[dice(NSOME)], some[dice(NSOME)], some[dice(NSOME)] };
            double x = op_value((op_code)p->inner, reg[0], reg[1], 0), y = reg[inner];
            double want = p->side == SIDE_RIGHT ? op_value((op_code)p->outer, y, x, 0)
                                                : op_value((op_code)p->outer, x, y, 0);
            assert_true(same(value_of(&t, reg), want));
            assert_true(same(value_of(&plain, reg), want));
            kernel_run_all(&k, &(inputs){ .from = { [IN_Q] = reg } }, work, &got);
            assert_true(same(got, want));
        }
    }
}

/* Pairs are fused if possible, but not if the inner value is needed elsewhere. */
static void test_fusion(void **state)
{
    fixture *f = *state;
    ir_ref a = in(f, IN_Q, 0, 0, 0), b = in(f, IN_Q, 1, 0, 0), c = in(f, IN_Q, 2, 0, 0);
    ir_ref ab = ir_op2(f->g, OP_MUL, a, b), r[2] = { ir_op2(f->g, OP_ADD, ab, c), ab };
    kernel k = emit(f, r, 1, one_member, IR_NONE);
    assert_int_equal(k.tape.ncode, 1);
    assert_int_equal(k.tape.code[0].op, TAPE_MULADD);
    k = emit(f, r, 2, one_member, IR_NONE);
    assert_int_equal(k.tape.ncode, 2);
    ir_ref sc[2] = { ir_op1(f->g, OP_SIN, a), ir_op1(f->g, OP_COS, a) };
    k = emit(f, sc, 2, one_member, IR_NONE);
    assert_int_equal(k.tape.ncode, 1);
    assert_int_equal(k.tape.code[0].op, TAPE_SINCOS);
    tape plain = tape_plain(&k.tape, f->a);
    assert_int_equal(plain.ncode, 2);
    k = emit(f, sc + 1, 1, one_member, IR_NONE);
    assert_int_equal(k.tape.code[0].op, OP_COS);
}

/* sin and cos together give the same bits as separately. */
static void test_sine_and_cosine(void **state)
{
    fixture *f = *state;
    enum { N = 20000 };
    double *q = arena_array(f->a, double, N);
    for (int i = 0; i < N; i++)
        q[i] = ldexp((double)dice(1u << 30) - (1 << 29), (int)dice(70) - 60);
    ir_ref x = in(f, IN_Q, 0, 1, 0), r[2] = { ir_op1(f->g, OP_SIN, x), ir_op1(f->g, OP_COS, x) };
    kernel k = emit(f, r, 2, range(0, N - 1), IR_NONE);
    inputs from = { .from = { [IN_Q] = q } };
    double *work = arena_array(f->a, double, batch_regs(&k.tape)), *out = arena_array(f->a, double, 2 * N);
    kernel_run_all(&k, &from, work, out);
    for (int i = 0; i < N; i++) {
        assert_true(same(out[2 * i], op_value(OP_SIN, q[i], 0, 0)));
        assert_true(same(out[2 * i + 1], op_value(OP_COS, q[i], 0, 0)));
    }
}

/* Sine and cosine compared with long double: the error is below 0.8 units in the last place; beyond TRIG_FAR
   it is that of the C library. */
static double ulps(double got, long double want)
{
    double w = fabs((double)want);
    return (double)(fabsl(got - want) / (nextafter(w, INFINITY) - w));
}

static void test_sine_is_accurate(void **state)
{
    (void)state;
    double worst = 0;
    for (int i = 0; i < 300000; i++) {
        double x = ldexp((double)dice(1u << 31) / (1u << 30) - 1, (int)dice(25) - 8);
        if (i % 3 == 0)
            x = (double)dice(60000) * 1.5707963267948966 +
                ldexp((double)dice(1000) - 500, -40 - (int)dice(12));
        worst = fmax(worst, fmax(ulps(trig_sin(x), sinl(x)), ulps(trig_cos(x), cosl(x))));
        double s, c;
        trig_sincos(x, &s, &c);
        assert_true(same(s, trig_sin(x)) && same(c, trig_cos(x)));
        assert_true(same(trig_sin(-x), -s) && same(trig_cos(-x), c));
    }
    assert_true(worst < 0.8);
    assert_true(same(trig_sin(-0.0), -0.0) && same(trig_sin(0), 0) && trig_cos(0) == 1);
    assert_true(trig_sin(5e-324) == 5e-324 && trig_sin(1e-300) == 1e-300);
    assert_true(isnan(trig_sin(INFINITY)) && isnan(trig_cos(NAN)));
    assert_true(trig_sin(1e22) == sin(1e22) && trig_cos(TRIG_FAR) == cos(TRIG_FAR));
}

/* ---- random formulas ---- */
static ir_ref random_input(fixture *f, bool family)
{
    static const in_kind kind[] = { IN_Q, IN_V, IN_PARAM };
    int s = family ? (int)dice(4) : 0, s2 = family ? (int)dice(3) : 0;
    switch (dice(8)) {
    case 0:
        return in(f, IN_TIME, 0, 0, 0);
    case 1:
        return in(f, IN_SPEED, 0, 0, 0);
    case 2:
        if (family)
            return in(f, IN_INDEX, (int)dice(2), 0, 0);
        break;
    case 3:
        return ir_const(f->g, (double)dice(9) / 4 - 1);
    case 4:
        s = s2 = 0;
        break;
    }
    return in(f, kind[dice(3)], (int)dice(5), s, s2);
}

/* Nodes pool[0..n): leaves first, then operations on earlier nodes, preferring recent ones. */
static void random_nodes(fixture *f, ir_ref *pool, uint32_t n, uint32_t leaves, bool family)
{
    static const op_code often[] = { OP_ADD, OP_SUB, OP_MUL, OP_ADD, OP_SUB, OP_MUL,
                                     OP_NEG, OP_SQR, OP_SIN, OP_COS, OP_DIV };
    for (uint32_t i = 0; i < n; i++) {
        if (i < leaves) {
            pool[i] = random_input(f, family);
            continue;
        }
        op_code op = dice(4) ? often[dice(sizeof often / sizeof *often)] : (op_code)dice(OP_COUNT);
        ir_ref x[3] = { 0, 0, 0 };
        for (int k = 0; k < op_arity(op); k++)
            x[k] = pool[dice(2) ? dice(i) : i - 1 - dice(i < 6 ? i : 6)];
        pool[i] = ir_op(f->g, op, x[0], x[1], x[2]);
    }
}

static void random_case(fixture *f, index_set over, uint32_t n)
{
    ir_ref pool[200], out[6];
    double q[400], v[400], param[400];
    for (int i = 0; i < 400; i++) {
        q[i] = some[dice(NSOME - 1)];
        v[i] = dice(1000) * 1e-3;
        param[i] = 1 + dice(7);
    }
    inputs from = { .t = 0.3, .speed = 2.5, .from = { [IN_Q] = q, [IN_V] = v, [IN_PARAM] = param } };
    random_nodes(f, pool, n, 6, over.n > 0);
    uint32_t nout = 1 + dice(6);
    for (uint32_t i = 0; i < nout; i++)
        out[i] = pool[dice(4) ? n - 1 - dice(n / 2) : dice(n)];
    kernel k = emit(f, out, nout, over, IR_NONE);
    check_kernel(f, &k, out, &from);
    tape plain = tape_plain(&k.tape, f->a);
    kernel p = k;
    p.tape = plain;
    check_kernel(f, &p, out, &from);
}

static void test_random_single(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < 400; i++)
        random_case(f, one_member, 7 + dice(190));
}

static void test_random_families(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < 60; i++) {
        random_case(f, triangle(0, 1 + (int)dice(12)), 7 + dice(60));
        random_case(f, triangle(5, 45), 7 + dice(30)); /* long and short rows */
        index_set rows = { .n = 2, .r = { { .lo = 2, .hi = 3 }, { .lo = 1, .lo_stride = { 1 }, .hi = 60 } } };
        random_case(f, rows, 7 + dice(30));
        index_set empty = { .n = 2, .r = { { .lo = 2, .hi = 3 }, { .lo = 5, .hi = 4 } } };
        random_case(f, empty, 7 + dice(30));
    }
}

/* More than one batch in a row; strides 0, 1, 2, 3, -1; the last output is an input. */
static void test_long_family(void **state)
{
    fixture *f = *state;
    enum { N = 3 * LANES + 5 };
    double *q = arena_array(f->a, double, 4 * N);
    for (int i = 0; i < 4 * N; i++)
        q[i] = sin(i);
    inputs from = { .t = 1.5, .from = { [IN_Q] = q } };
    ir_ref x[5] = { in(f, IN_Q, 0, 0, 0), in(f, IN_Q, 1, 1, 0), in(f, IN_Q, 0, 2, 0), in(f, IN_Q, 5, 3, 0),
                    in(f, IN_Q, N, -1, 0) };
    ir_ref sum = ir_op1(f->g, OP_COS, in(f, IN_TIME, 0, 0, 0));
    for (int i = 0; i < 5; i++)
        sum = ir_op2(f->g, OP_ADD, ir_op2(f->g, OP_MUL, sum, x[i]), in(f, IN_INDEX, 0, 0, 0));
    ir_ref out[3] = { sum, x[1], x[0] };
    for (size_t n = 1; n <= 3; n++) {
        kernel k = emit(f, out, n, range(1, N), IR_NONE);
        check_kernel(f, &k, out, &from);
        k = emit(f, out + 3 - n, n, range(1, N), IR_NONE);
        check_kernel(f, &k, out + 3 - n, &from);
    }
}

/* Operations whose values are the same for all members come first. */
static void test_head(void **state)
{
    fixture *f = *state;
    ir_ref t = in(f, IN_TIME, 0, 0, 0), x = in(f, IN_Q, 0, 1, 0);
    ir_ref r = ir_op2(f->g, OP_MUL, x, ir_op1(f->g, OP_EXP, ir_op2(f->g, OP_MUL, ir_const(f->g, 3), t)));
    kernel k = emit(f, &r, 1, range(1, 9), IR_NONE);
    assert_int_equal(k.tape.ncode, 3);
    assert_int_equal(k.tape.nhead, 2);
    assert_int_equal(emit(f, &r, 1, one_member, IR_NONE).tape.nhead, 0);
}

/* ---- registers, size ---- */
static void test_registers(void **state)
{
    fixture *f = *state;
    /* a long chain needs few registers; an input used several times has one slot, a constant one register */
    ir_ref a = in(f, IN_Q, 0, 0, 0), b = in(f, IN_Q, 1, 0, 0), x = a;
    for (int i = 0; i < 1000; i++)
        x = ir_op1(f->g, OP_SIN, ir_op2(f->g, OP_ADD, ir_op2(f->g, OP_MUL, x, b), a));
    kernel k = emit(f, &x, 1, one_member, IR_NONE);
    assert_int_equal(k.tape.nin, 2);
    assert_in_range(k.tape.nreg, 3, 4);
    /* a full tree of depth d needs d registers, and 16 more for slow functions that are computed first */
    ir_ref leaf[256];
    for (int i = 0; i < 256; i++)
        leaf[i] = ir_op1(f->g, OP_EXP, in(f, IN_Q, i, 0, 0));
    for (int n = 128; n; n /= 2)
        for (int i = 0; i < n; i++)
            leaf[i] = ir_op2(f->g, OP_POW, leaf[2 * i], leaf[2 * i + 1]);
    k = emit(f, leaf, 1, one_member, IR_NONE);
    assert_int_equal(k.tape.nin, 256);
    assert_in_range(k.tape.nreg, 256, 256 + 9 + 16);
    /* no instruction writes to inputs and constants */
    for (uint32_t i = 0; i < k.tape.ncode; i++)
        assert_true(k.tape.code[i].dst >= k.tape.nin + k.tape.nconst);
}

static void test_large(void **state)
{
    fixture *f = *state;
    enum { N = 100000 };
    ir_ref *pool = arena_array(f->a, ir_ref, N);
    double q[16];
    for (int i = 0; i < 16; i++)
        q[i] = 0.1 * i;
    random_nodes(f, pool, N, 6, false);
    double *v = arena_array(f->a, double, 400);
    inputs from = { .t = 0.3, .from = { [IN_Q] = q, [IN_V] = v, [IN_PARAM] = v } };
    ir_ref out[100];
    for (int i = 0; i < 100; i++)
        out[i] = pool[N - 1 - i];
    kernel k = emit(f, out, 100, one_member, IR_NONE);
    assert_true(k.tape.ncode > 1000);
    check_kernel(f, &k, out, &from);
    /* a million operations, deeply nested */
    ir_ref x = in(f, IN_Q, 1, 0, 0), t = in(f, IN_TIME, 0, 0, 0);
    for (int i = 0; i < 500000; i++)
        x = ir_op1(f->g, OP_COS, ir_op2(f->g, OP_ADD, x, t));
    clock_t start = clock();
    k = emit(f, &x, 1, one_member, IR_NONE);
    assert_int_equal(k.tape.ncode, 1000000);
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 20);
}

/* ---- members that `where` excludes ---- */
static void test_where(void **state)
{
    fixture *f = *state;
    double q[50];
    for (int i = 0; i < 50; i++)
        q[i] = i + 0.5;
    ir_ref i = in(f, IN_INDEX, 0, 0, 0), j = in(f, IN_INDEX, 1, 0, 0);
    ir_ref odd = ir_op2(f->g, OP_MOD, ir_op2(f->g, OP_ADD, i, j), ir_const(f->g, 2));
    ir_ref out[2] = { in(f, IN_Q, 0, 1, 0), in(f, IN_Q, 0, 0, 1) };
    inputs from = { .from = { [IN_Q] = q } };
    for (int last = 8; last < 50; last += 40) {
        kernel k = emit(f, out, 2, triangle(1, last), odd);
        double *reg = arena_array(f->a, double, k.where->nreg),
               *work = arena_array(f->a, double, batch_regs(&k.tape));
        double *all = arena_array(f->a, double, 2 * k.over.count);
        int32_t x[MAX_INDEX];
        kernel_run_all(&k, &from, work, all);
        int64_t m = 0;
        for (bool any = index_first(&k.over, x); any; any = index_next(&k.over, x), m++) {
            bool is = (x[0] + x[1]) % 2;
            assert_int_equal(kernel_member(&k, x, reg), is);
            assert_true(all[2 * m] == (is ? q[x[0]] : 0));
            assert_true(all[2 * m + 1] == (is ? q[x[1]] : 0));
        }
    }
}

/* A kind without a source is left to the caller. */
static void test_left_to_the_caller(void **state)
{
    fixture *f = *state;
    ir_ref r = ir_op2(f->g, OP_SUB, in(f, IN_BOUND, 0, 0, 0), in(f, IN_Q, 0, 0, 0));
    kernel k = emit(f, &r, 1, one_member, IR_NONE);
    double reg[8], q = 2;
    int32_t none[MAX_INDEX] = { 0 };
    tape_start(&k.tape, reg);
    reg[0] = 7;
    kernel_run(&k, &(inputs){ .from = { [IN_Q] = &q } }, none, reg);
    assert_true(reg[k.tape.out[0]] == 5);
}

/* ---- parameters ---- */
static void test_params(void **state)
{
    fixture *f = *state;
    /* p0 = 2, p1 = p0 + 1, p[2..5] = p[i-1]*2, derived p6 = p5 + p1 */
    ir_ref out[4] = { ir_const(f->g, 2), ir_op2(f->g, OP_ADD, in(f, IN_PARAM, 0, 0, 0), ir_const(f->g, 1)),
                      ir_op2(f->g, OP_MUL, in(f, IN_PARAM, -1, 1, 0), ir_const(f->g, 2)),
                      ir_op2(f->g, OP_ADD, in(f, IN_PARAM, 5, 0, 0), in(f, IN_PARAM, 1, 0, 0)) };
    kernel k[4];
    slot_map row[4] = { { 0, { 0 } }, { 1, { 0 } }, { 0, { 1 } }, { 6, { 0 } } };
    for (int i = 0; i < 4; i++) {
        k[i] = emit(f, &out[i], 1, i == 2 ? range(2, 5) : one_member, IR_NONE);
        k[i].row = &row[i];
    }
    program p = { .nparam = 7, .defaults = { k, 3 }, .derived = { k + 3, 1 } };
    double param[7] = { 0 };
    program_params(&p, NULL, param, f->s);
    static const double want[7] = { 2, 3, 6, 12, 24, 48, 51 };
    for (int i = 0; i < 7; i++)
        assert_true(param[i] == want[i]);
    /* given values stay, and later ones depend on them */
    bool set[7] = { [0] = true, [3] = true };
    param[0] = 10;
    param[3] = 1;
    program_params(&p, set, param, f->s);
    static const double then[7] = { 10, 11, 22, 1, 2, 4, 15 };
    for (int i = 0; i < 7; i++)
        assert_true(param[i] == then[i]);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_index_sets),    T(test_every_operation),    T(test_every_fused_operation),
        T(test_fusion),        T(test_sine_and_cosine),    T(test_sine_is_accurate),
        T(test_random_single), T(test_random_families),    T(test_long_family),
        T(test_head),          T(test_registers),          T(test_large),
        T(test_where),         T(test_left_to_the_caller), T(test_params),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
