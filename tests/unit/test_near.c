/* near: which pairs of bodies may touch, against a comparison of all pairs.  Bodies are balls whose sizes lie
   within a factor of 100; they move at random, and pairs that touch are always listed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "base/random.h"
#include "lower/emit.h"
#include "program/near.h"

/* n balls; pairs of all with all (i < j), or of the first `split` with the others, with either index first.
 */
typedef struct {
    arena *a, *scratch;
    program p;
    contact_family c;
    family fam;
    system_t s;
    near_list list;
    int n, drawn;
    double *param, *q, *v;
} crowd;

enum { SAME = 0 };

static double draw(crowd *x)
{
    return draw_uniform(&(draw_key){ .seed = 7, .index = (uint64_t)x->drawn++, .name = "near" });
}

static ir_ref q_at(ir *g, int k, int inst)
{
    return ir_in(g, (ir_input){ .kind = IN_Q, .at = { k, { inst } } });
}

/* Positions and rotations of all balls. */
static kernel poses(crowd *x)
{
    ir *g = ir_new(x->a);
    ir_ref out[12];
    index_set over = { .n = 1, .r = { { .lo = 0, .hi = x->n - 1 } }, .count = x->n };
    for (int i = 0; i < 3; i++)
        out[i] = q_at(g, i, 3);
    for (int i = 0; i < 9; i++)
        out[3 + i] = ir_const(g, i % 4 == 0);
    return emit_kernel(x->a, x->scratch, g, out, 12, &over, IR_NONE, SPAN_NONE);
}

static void pairs_of(crowd *x, int split, bool turned)
{
    contact_family *c = &x->c;
    *c = (contact_family){ .name = "touch", .slots = FEATURES, .pair = { .touch = true, .listed = true } };
    c->over.n = 4;
    if (split == SAME) {
        c->over.r[0] = (index_range){ .lo = 0, .hi = x->n - 1 };
        c->over.r[1] = (index_range){ .lo = 1, .hi = x->n - 1, .lo_stride = { 1 } };
    } else {
        c->over.r[0] = (index_range){ .lo = 0, .hi = split - 1 };
        c->over.r[1] = (index_range){ .lo = split, .hi = x->n - 1 };
    }
    c->over.r[2] = (index_range){ .lo = 1, .hi = FEATURES };
    c->over.count = index_count(&c->over);
    c->pair.first_of.stride[turned ? 1 : 0] = 1;
    c->pair.second_of.stride[turned ? 0 : 1] = 1;
}

static void crowd_new(crowd *x, int n, int split, bool turned, double widest)
{
    const char *why = NULL;
    span at;
    *x = (crowd){ .n = n,
                  .a = arena_new(&allocator_libc, NULL),
                  .scratch = arena_new(&allocator_libc, NULL) };
    shape_info *shape = arena_make(x->a, shape_info);
    x->param = arena_array(x->a, double, 4 * (size_t)n);
    x->q = arena_array(x->a, double, 3 * (size_t)n);
    x->v = arena_array(x->a, double, 3 * (size_t)n);
    *shape = (shape_info){
        .name = "ball", .dim = 3, .npoint = 1, .size = 4, .instances = n, .pose = poses(x)
    };
    pairs_of(x, split, turned);
    x->p = (program){ .nq = 3 * n, .contact = &x->c, .ncontact = 1, .shapes = { shape, 1, 1, PAIR_NUMBERS } };
    /* the same space for each ball, so that the number of pairs per ball does not depend on their number */
    double room = 0;
    for (int i = 0; i < n; i++) {
        double r = x->param[4 * i + 3] = pow(widest, draw(x) - 1);
        room += 8 * r * r * r;
    }
    for (int k = 0; k < 3 * n; k++)
        x->q[k] = cbrt(room) * draw(x);
    x->fam.f = &x->c;
    x->s = (system_t){ .p = &x->p, .family = &x->fam, .n = 3 * n, .a = x->a };
    x->s.in.from[IN_PARAM] = x->param;
    x->s.shapes = shapes_new(x->a, &x->p, x->param, &why, &at);
    assert_non_null(x->s.shapes);
    near_new(&x->list, x->a, &x->s);
    assert_int_equal(x->list.nof, 1);
}

static void crowd_end(crowd *x)
{
    arena_free(x->scratch);
    arena_free(x->a);
}

/* Distance of the balls of a pair, and the sum of their radii. */
static double apart(const crowd *x, int i, int j, double *reach)
{
    double d2 = 0;
    for (int k = 0; k < 3; k++)
        d2 += pow(x->q[3 * i + k] - x->q[3 * j + k], 2);
    *reach = x->param[4 * i + 3] + x->param[4 * j + 3];
    return sqrt(d2) - *reach;
}

/* All touching pairs are listed, in order and once. */
static void listed(const crowd *x)
{
    const near_pairs *p = &x->list.of[0];
    size_t at = 0;
    for (size_t k = 2; k < p->pair.n; k += 2) {
        bool after = p->pair.at[k] > p->pair.at[k - 2] ||
                     (p->pair.at[k] == p->pair.at[k - 2] && p->pair.at[k + 1] > p->pair.at[k - 1]);
        assert_true(after);
    }
    int32_t index[MAX_INDEX];
    int64_t rank = 0;
    for (bool any = index_first(&x->c.over, index); any; any = index_next(&x->c.over, index)) {
        double reach;
        if (index[2] != 1)
            continue;
        bool is = at < p->pair.n && p->pair.at[at] == index[0] && p->pair.at[at + 1] == index[1];
        assert_true(is || apart(x, index[0], index[1], &reach) > 0);
        if (is) {
            assert_int_equal(near_rank(p, index[0], index[1]), rank);
            at += 2;
        }
        rank++;
    }
    assert_int_equal(at, p->pair.n);
}

static void moves(crowd *x, double speed, int steps)
{
    const double H = 0.01;
    int found = 0;
    for (int k = 0; k < 3 * x->n; k++)
        x->v[k] = speed * (2 * draw(x) - 1) * x->param[k / 3 * 4 + 3];
    for (int step = 0; step < steps; step++) {
        found += near_keep(&x->list, 0, x->q, x->v, x->v, H, 2, 2);
        listed(x);
        for (int k = 0; k < 3 * x->n; k++)
            x->q[k] += H * x->v[k];
        assert_true(near_covers(&x->list, 0, x->q));
        listed(x); /* no other pairs may touch within the step */
    }
    if (speed > 0)
        assert_in_range(found, 1, steps - 1);
    else
        assert_int_equal(found, 0); /* found before */
}

static void test_all(void **state)
{
    (void)state;
    crowd x;
    crowd_new(&x, 300, SAME, false, 100);
    moves(&x, 3, 20);
    moves(&x, 0, 3);
    /* a jump is not covered */
    for (int k = 0; k < 3; k++)
        x.q[k] += 10;
    assert_false(near_covers(&x.list, 0, x.q));
    crowd_end(&x);
}

static void test_two_kinds(void **state)
{
    (void)state;
    for (int turned = 0; turned < 2; turned++) {
        crowd x;
        crowd_new(&x, 300, 40, turned, 100);
        moves(&x, 3, 10);
        crowd_end(&x);
    }
}

/* Pairs and cells for each ball, and the work. */
static void test_linear(void **state)
{
    (void)state;
    double pairs[2];
    for (int k = 0; k < 2; k++) {
        crowd x;
        int n = k ? 16000 : 4000;
        crowd_new(&x, n, SAME, false, 100);
        near_keep(&x.list, 0, x.q, x.v, x.v, 0.01, 2, 2);
        pairs[k] = (double)x.list.of[0].pair.n / 2 / n;
        crowd_end(&x);
    }
    assert_true(pairs[0] > 0.5);
    assert_true(pairs[1] < 2 * pairs[0]);
}

/* places of pairs: released ones are used again, and those of other pairs stay */
static void test_places(void **state)
{
    (void)state;
    crowd x;
    crowd_new(&x, 100, SAME, false, 1);
    shapes *w = x.s.shapes;
    int32_t place[200];
    for (int k = 0; k < 200; k++) {
        place[k] = shapes_take(w);
        w->feature[(size_t)place[k] * PAIR_NUMBERS] = k;
    }
    for (int k = 0; k < 200; k += 2)
        shapes_give(w, place[k]);
    size_t room = w->nfeature;
    for (int k = 0; k < 200; k += 2) {
        place[k] = shapes_take(w);
        assert_true(w->feature[(size_t)place[k] * PAIR_NUMBERS] == 0);
    }
    assert_int_equal(w->nfeature, room);
    for (int k = 1; k < 200; k += 2)
        assert_true(w->feature[(size_t)place[k] * PAIR_NUMBERS] == k);
    crowd_end(&x);
}

int main(void)
{
    const struct CMUnitTest all[] = { cmocka_unit_test(test_all), cmocka_unit_test(test_two_kinds),
                                      cmocka_unit_test(test_linear), cmocka_unit_test(test_places) };
    return cmocka_run_group_tests(all, NULL, NULL);
}
