/* taylor: every row of opcodes.def as a series: its sum is the value of the operation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "motion/events.h"

enum { ORDER = 24, WIDTH = ORDER + 4 };

/* One instruction with three inputs. */
typedef struct {
    kernel k;
    instr code[2];
    uint32_t out[1];
    slot in[3];
} unit;

static unit *unit_of(arena *a, op_code op)
{
    unit *u = arena_make(a, unit);
    u->code[0] = (instr){ (uint32_t)op, 3, 0, 1, 2 };
    u->code[1].op = TAPE_END;
    u->out[0] = 3;
    for (int i = 0; i < 3; i++)
        u->in[i] = (slot){ .kind = IN_Q, .at.base = i };
    u->k.tape = (tape){ .nin = 3, .nreg = 4, .ncode = 1, .nout = 1, .code = u->code, .out = u->out };
    u->k.in = u->in;
    return u;
}

static const double A[] = { 0.3, 0.5, -0.2, 0.1 }, B[] = { 0.7, -0.4, 0.3, 0.2 },
                    C[] = { 0.2, 0.1, -0.6, 0.3 };

static void series_of(arena *a, op_code op, double *out, double x0)
{
    double q[3 * WIDTH] = { 0 };
    memcpy(q, A, sizeof A);
    memcpy(q + WIDTH, B, sizeof B);
    memcpy(q + 2 * WIDTH, C, sizeof C);
    q[0] = x0;
    series_inputs in = { .unit = 1, .from = { [IN_Q] = q } };
    taylor *t = taylor_new(a, &unit_of(a, op)->k, NULL, WIDTH);
    for (int j = 0; j <= ORDER; j++)
        taylor_step(t, &in, j);
    memcpy(out, taylor_out(t, 0), (ORDER + 1) * sizeof *out);
}

static double value_of(op_code op, double s, double x0)
{
    double a = series_value(A, 3, s) - A[0] + x0;
    return op_value(op, a, series_value(B, 3, s), series_value(C, 3, s));
}

static void rows(void **state)
{
    arena *a = arena_new(&allocator_libc, NULL);
    (void)state;
    for (int op = 0; op < OP_COUNT; op++) {
        double c[ORDER + 1];
        series_of(a, (op_code)op, c, A[0]);
        for (int k = -2; k <= 2; k++) {
            double s = 0.03 * k, y = value_of((op_code)op, s, A[0]), x = series_value(c, ORDER, s);
            if (!(fabs(x - y) <= 4e-15 * (1 + fabs(y))))
                fail_msg("%s at %g: %.17g, not %.17g", op_name((op_code)op), s, x, y);
        }
    }
    arena_free(a);
}

/* (t + ...)^3 at a zero; a root has no series there. */
static void powers_at_zero(void **state)
{
    double a[8] = { 0, 2, 3 }, r[8] = { 0 };
    (void)state;
    for (int j = 0; j < 8; j++)
        r[j] = series_pow(a, 3, r, j);
    assert_true(r[3] == 8 && fabs(r[4] - 36) < 1e-13 && fabs(r[5] - 54) < 1e-13 && fabs(r[6] - 27) < 1e-13 &&
                fabs(r[7]) < 1e-12);
    double q[8] = { 0 };
    double d[4] = { 0, 1 };
    assert_true(isnan(series_pow(d, 0.5, q, 1)));
}

/* Pieces at a switch: sites are near, and their functions change sign there. */
static void pieces(void **state)
{
    arena *a = arena_new(&allocator_libc, NULL);
    double q[3 * WIDTH] = { 0 }, f[4];
    (void)state;
    series_inputs in = { .unit = 1, .from = { [IN_Q] = q } };
    q[0] = 0;
    q[1] = -1;
    taylor *t = taylor_new(a, &unit_of(a, OP_ABS)->k, NULL, WIDTH);
    for (int j = 0; j < 4; j++)
        taylor_step(t, &in, j);
    assert_true(t->nsite == 1 && t->site[0].near);
    site_function(t, &t->site[0], false, 3, f);
    assert_int_equal(series_sign(f, 1, 3, 1, 1e-12), -1);
    q[0] = 2.5;
    q[1] = 1;
    t = taylor_new(a, &unit_of(a, OP_FLOOR)->k, NULL, WIDTH);
    for (int j = 0; j < 4; j++)
        taylor_step(t, &in, j);
    assert_true(taylor_out(t, 0)[0] == 2 && taylor_out(t, 0)[1] == 0 && t->site[0].branch == 2);
    site_function(t, &t->site[0], true, 3, f);
    assert_true(fabs(series_crossing(f, 3, 1, 0) - 0.5) < 1e-15);
    arena_free(a);
}

static void crossings(void **state)
{
    (void)state;
    double c[] = { 1, 0, -4 }, twice[] = { 0.25, -1, 1 }, close_by[] = { 0.25 + 1e-10, -1, 1 },
           below[] = { 0.25 - 1e-10, -1, 1 }, rise[] = { 0, 1, -4 };
    assert_true(fabs(series_crossing(c, 2, 1, 0) - 0.5) < 1e-16);
    assert_true(series_crossing(c, 2, 0.4, 0) == INFINITY);
    assert_true(series_crossing(twice, 2, 1, 1e-13) == INFINITY); /* touches 0 */
    assert_true(series_crossing(close_by, 2, 1, 1e-13) == INFINITY);
    assert_true(fabs(series_crossing(below, 2, 1, 1e-13) - (0.5 - 1e-5)) < 1e-9);
    assert_true(fabs(series_crossing(rise, 2, 1, 1e-13) - 0.25) < 1e-16); /* the zero at 0 is ignored */
    double away[] = { 0, -1 };
    assert_true(series_crossing(away, 1, 1, 1e-13) == 0);
    /* a product of (x - k/10)^2 for two k, and one simple zero at 0.83 */
    double p[6] = { 1 };
    int n = 0;
    const double zero[] = { 0.3, 0.3, 0.6, 0.6, 0.83 };
    for (int i = 0; i < 5; i++)
        for (int j = ++n; j >= 0; j--)
            p[j] = (j ? p[j - 1] : 0) - zero[i] * (j < n ? p[j] : 0);
    for (int j = 0; j < 6; j++)
        p[j] = -p[j];
    assert_true(fabs(series_crossing(p, 5, 1, 1e-14) - 0.83) < 1e-12);
}

static void shifts(void **state)
{
    double c[] = { 1, -2, 3, 0.5, 7 }, d[5], e[5];
    (void)state;
    series_shift(c, 4, 0.37, d, 4);
    series_shift(d, 4, -0.37, e, 4);
    for (int j = 0; j < 5; j++)
        assert_true(fabs(c[j] - e[j]) < 1e-14);
    assert_true(fabs(d[0] - series_value(c, 4, 0.37)) < 1e-15 &&
                fabs(d[1] - series_rate(c, 4, 0.37)) < 1e-14);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows),      cmocka_unit_test(powers_at_zero), cmocka_unit_test(pieces),
        cmocka_unit_test(crossings), cmocka_unit_test(shifts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
