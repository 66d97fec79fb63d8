/* Contact and loads of rods: the tangent, friction included, against differences of the residual, in stick and in slip; forces in balance. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "rod_work.h"

static uint64_t state = 11;
static double uniform(void)                     /* in -1 .. 1 */
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(state >> 11) / (double)(1ll << 52) - 1;
}

/* kernels that are constants, and one that is its input */
static kernel constants(arena *a, int n, const double *x)
{
    double *c = arena_array(a, double, n);
    uint32_t *out = arena_array(a, uint32_t, n);
    instr *end = arena_make(a, instr);
    end->op = TAPE_END;
    for (int i = 0; i < n; i++) { c[i] = x[i]; out[i] = (uint32_t)i; }
    return (kernel){ .tape = { .nconst = (uint32_t)n, .nreg = (uint32_t)n, .nout = (uint32_t)n, .constant = c, .code = end, .out = out }, .over.count = 1 };
}

static kernel constant(arena *a, double x) { return constants(a, 1, &x); }

static kernel itself(arena *a, in_kind kind)
{
    slot *in = arena_make(a, slot);
    instr *end = arena_make(a, instr);
    end->op = TAPE_END;
    in->kind = kind;
    return (kernel){ .tape = { .nin = 1, .nreg = 1, .nout = 1, .code = end, .out = arena_array(a, uint32_t, 1) }, .in = in, .over.count = 1 };
}

static rod_spec spec(arena *a, const char *name)
{
    rod_spec s = { .name = name };
    const double x[ROD_NUMBERS] = { 1, 0.05, 1000, 0.3, 4, 1 };
    for (int k = 0; k <= ROD_DENSITY; k++) s.number[k] = constant(a, x[k]);
    return s;
}

typedef struct { arena *a; rod_work w; } fixture;

/* two bent rods that cross, near to each other or one a little into the other */
static void cross(fixture *f, double mu)
{
    arena *a = f->a = arena_new(&allocator_libc, NULL);
    rod_spec *s = arena_array(a, rod_spec, 2);
    s[0] = spec(a, "a"); s[1] = spec(a, "b");
    rod_pair *pair = arena_make(a, rod_pair);
    *pair = (rod_pair){ .a = 0, .b = 1, .what = TOUCH_RODS };
    rod_program *rp = arena_make(a, rod_program);
    *rp = (rod_program){ .rod = s, .nrod = 2, .pair = pair, .npair = 1 };
    contact_family *c = arena_make(a, contact_family);
    *c = (contact_family){ .name = "touch", .friction = FRICTION_COULOMB, .gap = itself(a, IN_ROD), .mu = constant(a, mu) };
    program *p = arena_make(a, program);
    *p = (program){ .rod = rp, .contact = c, .ncontact = 1 };
    rod_options *ro = arena_make(a, rod_options);
    *ro = (rod_options){ .h = 1, .tolerance = 1e-8, .stiffness = 50, .theta = 0.5 };
    f->w = (rod_work){ .p = p, .rp = rp, .ro = ro, .r = results_new(a, p), .a = a, .tmp = a };
    assert_true(rod_build(&f->w));
    contacts_new(&f->w);
    for (int i = 0; i < 13; i++) {              /* rod b along e1, above the middle of rod a */
        double *x = f->w.pos + 3 * (13 + i), z = i / 12.0 - 0.5, th[3] = { 0.1 * uniform(), M_PI / 2, 0.1 * uniform() };
        x[0] = z; x[1] = 0.101 + 0.3 * z * z; x[2] = 0.5 + 0.1 * z;
        quat_turn(f->w.rot + 4 * (13 + i), th);
    }
    for (int i = 0; i < 3 * f->w.N; i++) f->w.pos[i] += 2e-4 * uniform();
    assert_true(contacts_start(&f->w));
    contacts_step(&f->w);
}

static void push(rod_work *w, double size)      /* the rods into each other and along each other */
{
    double *dx = arena_array(w->a, double, w->ndof);
    for (int i = 0; i < w->ndof; i++) dx[i] = size * 0.1 * uniform();
    for (int i = 0; i < 13; i++) { dx[6 * i + 1] += 0.004; dx[6 * i + 2] += size; dx[6 * i + 5] += size; }
    rod_update(w, dx, 1);
    for (int k = 0; k < 6; k++) contacts_project(w, true);    /* the direction of slip is that of the last time */
}

static void compare(rod_work *w)
{
    rod_sparse K = { .n = w->ndof };
    int n = w->ndof;
    double *res = arena_array(w->a, double, n), *D = arena_array(w->a, double, n * n), *dx = arena_array(w->a, double, n), h = 1e-6, most = 0;
    double *p = arena_array(w->a, double, n), *q = arena_array(w->a, double, n);
    double *pos = arena_array(w->a, double, 3 * w->N), *rot = arena_array(w->a, double, 4 * w->N);
    assert_true(contacts_near(w));
    contacts_put(w, res, &K);
    for (int k = 0; k < K.nz; k++) { D[K.i[k] * n + K.j[k]] += K.x[k]; }
    for (int k = 0; k < n * n; k++) most = fmax(most, fabs(D[k]));
    memcpy(pos, w->pos, (size_t)(3 * w->N) * sizeof *pos);
    memcpy(rot, w->rot, (size_t)(4 * w->N) * sizeof *rot);
    for (int j = 0; j < n; j++) {
        double *side[2] = { p, q };
        for (int s = 0; s < 2; s++) {
            memcpy(w->pos, pos, (size_t)(3 * w->N) * sizeof *pos);
            memcpy(w->rot, rot, (size_t)(4 * w->N) * sizeof *rot);
            memset(dx, 0, (size_t)n * sizeof *dx);
            dx[j] = 1;
            rod_update(w, dx, s ? -h : h);
            contacts_project(w, true);
            memset(side[s], 0, (size_t)n * sizeof *p);
            contacts_put(w, side[s], NULL);
        }
        for (int i = 0; i < n; i++) assert_true(fabs((p[i] - q[i]) / (2 * h) - D[i * n + j]) < 1e-7 * most);
    }
    memcpy(w->pos, pos, (size_t)(3 * w->N) * sizeof *pos);
    memcpy(w->rot, rot, (size_t)(4 * w->N) * sizeof *rot);
    contacts_project(w, true);
}

/* time: forces of a step of time */
static void tangent(double mu, double size, bool time)
{
    fixture f;
    cross(&f, mu);
    if (time) assert_true(rod_motion_new(&f.w, 0.1));
    push(&f.w, size);
    compare(&f.w);
    contacts_stiffen(&f.w, false);                  /* with multipliers */
    push(&f.w, size / 2);
    compare(&f.w);
    double *res = arena_array(f.a, double, f.w.ndof), sum[3] = { 0 };
    contacts_put(&f.w, res, NULL);
    for (int i = 0; i < f.w.N; i++) for (int k = 0; k < 3; k++) sum[k] += res[6 * i + k];
    for (int k = 0; k < 3; k++) assert_true(fabs(sum[k]) < 1e-12);      /* what acts on one acts on the other */
    arena_free(f.a);
}

static void test_smooth(void **st) { (void)st; tangent(0, 1e-3, false); tangent(0, 1e-2, true); }
static void test_stick(void **st) { (void)st; tangent(50, 1e-3, false); tangent(50, 1e-3, true); }
static void test_slip(void **st) { (void)st; tangent(0.1, 5e-3, false); tangent(0.1, 5e-3, true); }

/* dead and follower loads, at a point and along the rod, on a rod bent at random; in time: after a step that bent it, with its inertia */
static void loads(bool time)
{
    arena *a = arena_new(&allocator_libc, NULL);
    rod_spec s = spec(a, "a");
    const double one[3] = { 30, -20, 40 }, two[3] = { 50, 10, -30 };
    rod_load load[] = {
        { .what = LOAD_POSITION, .point = true, .s = constant(a, 0), .value = constants(a, 3, (double[3]){ 0 }) },
        { .what = LOAD_FORCE, .point = true, .follower = true, .s = constant(a, 1), .value = constants(a, 3, one) },
        { .what = LOAD_FORCE, .follower = true, .s = constant(a, 0), .value = constants(a, 3, two) },
        { .what = LOAD_FORCE, .s = constant(a, 0), .value = constants(a, 3, one) },
        { .what = LOAD_MOMENT, .point = true, .follower = true, .s = constant(a, 0.5), .value = constants(a, 3, two) },
        { .what = LOAD_MOMENT, .point = true, .s = constant(a, 0.5), .value = constants(a, 3, one) } };
    rod_program rp = { .rod = &s, .nrod = 1, .load = load, .nload = 6 };
    program p = { .rod = &rp };
    rod_options ro = { .h = 1, .theta = 0.6 };
    rod_work w = { .p = &p, .rp = &rp, .ro = &ro, .r = results_new(a, &p), .a = a, .tmp = a };
    s.velocity = constants(a, 3, two);
    s.spin = constants(a, 3, one);
    assert_true(rod_build(&w));
    state_copy(&w, w.pos0, w.rot0, w.pos, w.rot);
    if (time) assert_true(rod_motion_new(&w, 0.1));
    int n = w.ndof;
    double *dx = arena_array(a, double, n), *D = arena_array(a, double, n * n), *f = arena_array(a, double, n), h = 1e-5, most = 0, skew = 0;
    for (int i = 0; i < n; i++) dx[i] = 0.05 * uniform();
    rod_update(&w, dx, 1);
    rod_outside out = rod_outside_at(&w, 0);
    for (int e = 0; e < w.mesh->ne; e++) {
        double K[ROD_DOFS * ROD_DOFS];
        rod_element_loaded(&w, w.mesh, e, &out, NULL, f + 18 * e, K);
        for (int i = 0; i < ROD_DOFS; i++) for (int j = 0; j < ROD_DOFS; j++) D[(18 * e + i) * n + 18 * e + j] += K[i * ROD_DOFS + j];
    }
    double *res = arena_array(a, double, n), *fp = arena_array(a, double, n), *fq = arena_array(a, double, n);
    rod_residual(&w, 0, res);
    for (int i = 0; i < n; i++) assert_true(fabs(res[i] - f[i]) < 1e-10);
    for (int i = 0; i < n * n; i++) { most = fmax(most, fabs(D[i])); skew = fmax(skew, fabs(D[i] - D[i % n * n + i / n])); }
    assert_true(skew > 10);
    for (int j = 0; j < n; j++) {
        memset(dx, 0, (size_t)n * sizeof *dx);
        double *pos = arena_array(a, double, 3 * w.N), *rot = arena_array(a, double, 4 * w.N);
        state_copy(&w, pos, rot, w.pos, w.rot);
        dx[j] = 1;
        rod_update(&w, dx, h);
        rod_residual(&w, 0, fp);
        state_copy(&w, w.pos, w.rot, pos, rot);
        rod_update(&w, dx, -h);
        rod_residual(&w, 0, fq);
        state_copy(&w, w.pos, w.rot, pos, rot);
        for (int i = 0; i < n; i++) assert_true(fabs((fp[i] - fq[i]) / (2 * h) - D[i * n + j]) < 1e-7 * most);
    }
    arena_free(a);
}

static void test_loads(void **st) { (void)st; loads(false); loads(true); }

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_loads), cmocka_unit_test(test_smooth), cmocka_unit_test(test_stick), cmocka_unit_test(test_slip) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
