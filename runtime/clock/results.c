#include "results.h"
#include <errno.h>
#include <math.h>
#include <string.h>
#include "base/rotation.h"
#include "program/turns.h"
#include "spill.h"
#include "state.h"

/* components of slip and friction that are kept for a family: those given, or those of the tangent space when
 * they are few */
static int slip_shown(const program *p, const contact_family *f)
{
    int free = -1;
    if (f->friction == FRICTION_NONE)
        return 0;
    if (f->slip_given)
        return f->nslip;
    for (int k = 0; k < p->nq; k++)
        free += !p->order || p->order[k] == 2;
    return free < 0 ? 0 : free <= MAX_SLIP ? free : 1;
}

results *results_new(arena *a, const program *p)
{
    results *r = arena_make(a, results);
    r->prog = p;
    r->a = a;
    r->estimate.error = r->count.cut_off = NAN;
    r->param = arena_array(a, double, p->nparam);
    r->contact = arena_array(a, contact_result, p->ncontact);
    for (size_t i = 0; i < p->ncontact; i++) {
        contact_result *c = &r->contact[i];
        c->members = index_members(&p->contact[i].over);
        c->kept = c->members <= KEPT_MEMBERS;
        c->nslip = slip_shown(p, &p->contact[i]);
        if (c->kept)
            c->last_open = arena_array(a, double, c->members);
        for (int64_t m = 0; c->kept && m < c->members; m++)
            c->last_open[m] = -INFINITY;
    }
    return r;
}

/* ---- columns ---- */

/* one of them: numbers, or the states of contacts; bytes per sample; none: it is not kept at all; gaps:
   `where` excludes some members, and their places are 0 because nothing writes them */
typedef struct {
    double **d;
    uint8_t **u;
    size_t width;
    bool none, gaps;
} column;

enum { OWN_COLUMNS = 10, CONTACT_COLUMNS = 5, OWN_CONTACTS = 64 };

static int columns_count(const results *r)
{
    return OWN_COLUMNS + CONTACT_COLUMNS * (int)r->prog->ncontact;
}

static column column_of(double **d, size_t width, bool there)
{
    return (column){ .d = d, .width = there ? width : 0, .none = !there };
}

static void columns_list(results *r, column *c)
{
    size_t nq = (size_t)r->prog->nq * sizeof(double), one = sizeof(double);
    double **single[] = { &r->t, &r->dissipated, &r->work }, **wide[] = { &r->q, &r->v };
    for (int k = 0; k < 3; k++)
        *c++ = (column){ .d = single[k], .width = one };
    for (int k = 0; k < 2; k++)
        *c++ = (column){ .d = wide[k], .width = nq };
    *c++ = column_of(&r->acc, nq, !(r->disk.absent & PART_ACC));
    *c++ = column_of(&r->energy, one, !(r->disk.absent & PART_ENERGY));
    *c++ = column_of(&r->drift, one, !(r->disk.absent & PART_ENERGY));
    *c++ = column_of(&r->track, (size_t)r->ntrack * one, r->ntrack);
    *c++ = column_of(&r->limit.load, one, r->limit.has_jumps);
    for (size_t i = 0; i < r->prog->ncontact; i++) {
        contact_result *k = &r->contact[i];
        size_t m = k->kept ? (size_t)k->members : 0, slip = m * one * (size_t)k->nslip;
        *c++ = column_of(&k->gap, m * one, k->kept);
        *c++ = column_of(&k->rn, m * one, k->kept);
        *c++ = (column){ .u = &k->status, .width = m, .none = !k->kept };
        *c++ = column_of(&k->rt, slip, k->kept);
        *c++ = column_of(&k->slip, slip, k->kept && !(r->disk.absent & PART_SLIP));
        for (int j = 1; j <= CONTACT_COLUMNS; j++)
            c[-j].gaps = r->prog->contact[i].gap.where != NULL;
    }
}

static void column_set(const column *c, void *p)
{
    if (c->d)
        *c->d = p;
    else
        *c->u = p;
}
static void *column_get(const column *c)
{
    return c->d ? (void *)*c->d : (void *)*c->u;
}

static void columns_in_arena(results *r, const column *c, int n, int64_t cap)
{
    for (int k = 0; k < n; k++) {
        size_t size;
        if (c[k].none)
            continue;
        if (__builtin_mul_overflow((size_t)cap, c[k].width, &size))
            size = SIZE_MAX / 2;
        void *new = arena_alloc(r->a, size);
        if (r->samples && c[k].width)
            memcpy(new, column_get(&c[k]), (size_t)r->samples * c[k].width);
        if (c[k].gaps)
            memset((char *)new + (size_t)r->samples *c[k].width, 0, (size_t)(cap - r->samples) * c[k].width);
        column_set(&c[k], new);
    }
    r->cap = cap;
}

enum { REST_BYTES = 32 << 20 };

/* 0, or an errno: then they stay where they are */
static int columns_in_file(results *r, const column *c, int n, int64_t cap)
{
    char **at = arena_array(r->a, char *, n);
    size_t *width = arena_array(r->a, size_t, n), row = 0;
    bool first = !r->disk.spill;
    for (int k = 0; k < n; k++)
        row += width[k] = c[k].width;
    if (first)
        r->disk.spill = spill_new(r->a, r->disk.spill_dir, width, n);
    int error = spill_grow(r->disk.spill, cap, at);
    if (error && first) {
        spill_close(r->disk.spill);
        r->disk.spill = NULL;
    }
    if (error)
        return error;
    for (int k = 0; k < n; k++) {
        if (first && r->samples && width[k])
            memcpy(at[k], column_get(&c[k]), (size_t)r->samples * width[k]);
        if (!c[k].none)
            column_set(&c[k], width[k] ? (void *)at[k] : (void *)r->disk.spill);
    }
    r->cap = spill_cap(r->disk.spill);
    r->disk.rest_every = REST_BYTES / (int64_t)row + 1;
    return 0;
}

static size_t row_bytes(const column *c, int n)
{
    size_t row = 0;
    for (int k = 0; k < n; k++)
        row += c[k].width;
    return row;
}

/* an arena keeps the old memory when a column grows, so the file begins at half of the memory limit */
static bool beyond_memory(const results *r, double samples, size_t row)
{
    return r->disk.spill ||
           (r->disk.spill_bytes > 0 && samples * (double)row > (double)r->disk.spill_bytes / 2);
}

bool results_fit(results *r, double samples)
{
    int n = columns_count(r);
    arena_pos mark = arena_mark(r->a);
    column *c = arena_array(r->a, column, n);
    columns_list(r, c);
    size_t row = row_bytes(c, n);
    arena_release(r->a, mark);
    return !beyond_memory(r, samples, row);
}

static int columns_grow(results *r, int64_t cap)
{
    int n = columns_count(r);
    bool was = r->disk.spill != NULL;
    arena_pos mark = arena_mark(r->a);
    column *c = arena_array(r->a, column, n);
    columns_list(r, c);
    size_t row = row_bytes(c, n);
    bool file = beyond_memory(r, (double)cap, row);
    if (file) { /* the file grows by as much at a time as memory may hold */
        int64_t most = r->samples + r->disk.spill_bytes / (int64_t)row + 1;
        int error = columns_in_file(r, c, n, cap < most ? cap : most);
        if (was)
            arena_release(r->a, mark);
        if (!error || r->disk.spill)
            return error;
    }
    columns_in_arena(r, c, n, cap);
    return 0;
}

void results_reserve(results *r, int64_t cap)
{
    if (cap <= r->cap)
        return;
    int error = columns_grow(r, cap);
    if (error)
        r->disk.full = error;
}

void results_rest(results *r)
{
    if (!r->disk.spill)
        return;
    spill_rest(r->disk.spill, 0, r->samples);
}

/* if no more can be kept, the last sample is replaced by the latest */
int64_t results_sample(results *r)
{
    if (r->samples == r->cap && !r->disk.full)
        results_reserve(r, r->disk.spill ? r->cap + 1 : r->cap < 64 ? 64 : 2 * r->cap);
    if (r->disk.full && r->samples == r->cap)
        return r->samples - 1;
    if (r->disk.spill && r->samples - r->disk.rested > r->disk.rest_every) {
        spill_rest(r->disk.spill, r->disk.rested, r->samples);
        r->disk.rested = r->samples;
    }
    return r->samples++;
}

/* ---- as part of a state ---- */
/* room for n samples, which are about to be read */
static void samples_make(results *r, run_state *s, size_t n)
{
    r->disk.rested = 0;
    for (r->samples = 0; (size_t)r->cap < n && !r->disk.full; r->samples = r->cap)
        results_reserve(r, (int64_t)n);
    if (r->disk.full && (size_t)r->cap < n)
        state_wrong(s, "there is no room for its %zu samples", n);
    r->samples = state_ok(s) ? (int64_t)n : 0;
}

static void columns_keep(results *r, run_state *s)
{
    size_t nq = (size_t)r->prog->nq,
           n = state_count(s, "samples", (size_t)r->samples, (5 + 3 * nq) * sizeof(double));
    if (state_reads(s))
        samples_make(r, s, state_ok(s) ? n : 0);
    if (!state_ok(s) || n == 0)
        return;
    double *single[] = { r->t, r->energy, r->dissipated, r->work, r->drift },
           *wide[] = { r->q, r->v, r->acc };
    for (int k = 0; k < 5; k++)
        state_f64(s, "column", single[k], n);
    for (int k = 0; k < 3; k++)
        state_f64(s, "column", wide[k], n * nq);
    for (size_t i = 0; i < r->prog->ncontact; i++) {
        contact_result *x = &r->contact[i];
        size_t m = x->kept ? n * (size_t)x->members : 0;
        state_f64(s, "gap", x->gap, m);
        state_f64(s, "rn", x->rn, m);
        state_u8(s, "status", x->status, m);
        state_f64(s, "rt", x->rt, m * (size_t)x->nslip);
        state_f64(s, "slip", x->slip, m * (size_t)x->nslip);
        for (size_t k = 0; state_reads(s) && state_ok(s) && k < m; k++)
            if (x->status[k] > STATUS_SLIP)
                state_wrong(s, "a contact has a status that does not exist");
    }
}

static void impacts_keep(results *r, contact_result *c, run_state *s)
{
    size_t n = state_count(s, "impacts", c->impacts.n, 4 * sizeof(double));
    if (state_reads(s)) {
        c->impacts.n = 0;
        vec_reserve(r->a, &c->impacts, n);
    }
    for (size_t i = 0; i < n && state_ok(s); i++) {
        impact *x = state_reads(s) ? vec_push(r->a, &c->impacts) : &c->impacts.at[i];
        int member = state_reads(s) ? 0 : x->member;
        double of[] = { x->t, x->pre, x->post, x->impulse };
        state_f64(s, "impact", of, 4);
        state_int(s, "member", &member, 0, (int)c->members - 1);
        *x = (impact){ of[0], of[1], of[2], of[3], member };
    }
    if (c->last_open)
        state_f64(s, "last open", c->last_open, (size_t)c->members);
}

void results_keep(results *r, run_state *s)
{
    double worst[] = { r->t_end,         r->max_penetration,        r->residual,
                       r->power_balance, r->count.pair_penetration, r->count.cut_off };
    int64_t counts[] = { r->count.steps,          r->count.solver_iterations,
                         r->count.branch_choices, r->count.averaged,
                         r->count.swept,          r->count.at_once,
                         r->count.partly_at_once };
    state_f64(s, "worst", worst, 6);
    state_i64(s, "counts", counts, 7);
    state_name(s, "solver", &r->solver, r->a);
    if (state_reads(s) && state_ok(s)) {
        r->t_end = worst[0], r->max_penetration = worst[1], r->residual = worst[2];
        r->power_balance = worst[3], r->count.pair_penetration = worst[4];
        r->count.cut_off = worst[5];
        r->count.steps = counts[0], r->count.solver_iterations = counts[1],
        r->count.branch_choices = counts[2];
        r->count.averaged = counts[3], r->count.swept = counts[4], r->count.at_once = counts[5];
        r->count.partly_at_once = counts[6];
    }
    for (size_t i = 0; i < r->prog->ncontact; i++)
        impacts_keep(r, &r->contact[i], s);
    size_t resets = state_count(s, "resets", r->count.resets.n, sizeof(double));
    vec_reserve(r->a, &r->count.resets, resets);
    r->count.resets.n = resets;
    state_f64(s, "reset", r->count.resets.at, resets);
    columns_keep(r, s);
}

bool results_own(const results *r, const void *p)
{
    const char *x = p;
    union {
        const results *in;
        results *out;
    } u = { .in = r };
    column c[OWN_COLUMNS + CONTACT_COLUMNS * OWN_CONTACTS];
    if (r->prog->ncontact > OWN_CONTACTS)
        return false;
    columns_list(u.out, c);
    for (int k = 0; k < columns_count(r); k++) {
        const char *base = column_get(&c[k]);
        if (c[k].width && base && x >= base && x < base + (size_t)r->cap * c[k].width)
            return true;
    }
    return false;
}

void results_close(results *r)
{
    if (r)
        spill_close(r->disk.spill);
}

void results_scratch(results *r, void (*go)(results *r, const void *ud, arena *scratch), const void *ud)
{
    arena *volatile scratch = arena_new(arena_allocator(r->a), NULL);
    jmp_buf none, *owner = arena_on_oom(r->a, &none);
    if (!scratch || setjmp(none)) {
        arena_free(scratch);
        arena_on_oom(r->a, owner);
        if (owner)
            longjmp(*owner, 1);
        r->status = RUN_FAILED;
        r->message = "out of memory";
        return;
    }
    arena_on_oom(scratch, &none);
    go(r, ud, scratch);
    arena_on_oom(r->a, owner);
    arena_free(scratch);
}

/* ---- values between samples ---- */
/* the last sample at or before t (the last of equal times), clipped */
static int64_t sample_before(const results *r, double t)
{
    int64_t lo = 0, hi = r->samples;
    while (hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;
        if (r->left ? r->t[mid] < t : r->t[mid] <= t)
            lo = mid;
        else
            hi = mid;
    }
    return r->left && lo + 1 < r->samples && r->t[lo] < t && r->t[lo + 1] == t ? lo + 1 : lo;
}

/* first and last impact in (t0, t1] */
static bool impacts_between(const results *r, double t0, double t1, double *first, double *last)
{
    *first = INFINITY;
    *last = -INFINITY;
    for (size_t i = 0; i < r->prog->ncontact; i++) {
        const contact_result *c = &r->contact[i];
        size_t lo = 0, hi = c->impacts.n;
        while (lo < hi) {
            size_t mid = (lo + hi) / 2;
            if (c->impacts.at[mid].t <= t0)
                lo = mid + 1;
            else
                hi = mid;
        }
        for (; lo < c->impacts.n && c->impacts.at[lo].t <= t1; lo++) {
            *first = fmin(*first, c->impacts.at[lo].t);
            *last = fmax(*last, c->impacts.at[lo].t);
        }
    }
    return *first <= t1;
}

/* A value in the interval that begins with sample i: either end is known with rate and second derivative (0
 * where it is not). */
typedef struct {
    double t, x, v, a;
} knot;
typedef enum { KNOT_VALUE, KNOT_RATE } knot_order;

static double knot_extend(const knot *k, double t)
{
    double s = t - k->t;
    return k->x + s * (k->v + 0.5 * s * k->a);
}

static double knot_between(const results *r, const knot *a, const knot *b, double t, knot_order o)
{
    double first, last, h = b->t - a->t, s = (t - a->t) / h;
    if (impacts_between(r, a->t, b->t, &first, &last)) {
        if (t < first)
            return knot_extend(a, t);
        if (t >= last)
            return knot_extend(b, t);
        return a->x + s * (b->x - a->x);
    }
    if (o == KNOT_RATE || r->linear)
        return a->x + s * (b->x - a->x);
    double d = b->x - a->x, c0 = h * a->v, c1 = h * b->v;
    return a->x + s * (c0 + s * (3 * d - 2 * c0 - c1 + s * (c0 + c1 - 2 * d)));
}

static knot knot_at(const results *r, const double *const *x, int32_t k, int64_t i)
{
    size_t at = (size_t)i * (size_t)r->prog->nq + (size_t)k;
    return (knot){ r->t[i], x[0][at], x[1] ? x[1][at] : 0, x[2] ? x[2][at] : 0 };
}

/* Of q, or of its derivative of that order. Accelerations are used only next to impacts. */
static double value_at(const results *r, int order, int32_t k, double t)
{
    double first, last;
    if (r->samples == 0)
        return NAN;
    int64_t i = sample_before(r, t);
    bool between = t > r->t[i] && i + 1 < r->samples;
    if (order == 2 || (between && impacts_between(r, r->t[i], r->t[i + 1], &first, &last)))
        results_need(r, PART_ACC);
    const double *const x[] = { r->q, r->v, r->acc, NULL, NULL };
    knot a = knot_at(r, x + order, k, i);
    if (!between)
        return a.x;
    knot b = knot_at(r, x + order, k, i + 1);
    return knot_between(r, &a, &b, t, order == 0 ? KNOT_VALUE : KNOT_RATE);
}

/* The same for a rotation. Between samples, the rotation since the previous one is interpolated; it has
   first and second rates at both ends like any dof. */
static void rotation_between_samples(const results *r, int32_t first, double t, double R[9])
{
    size_t nq = (size_t)r->prog->nq;
    int64_t i = sample_before(r, t);
    rotation_of_vector(r->q + (size_t)i * nq + (size_t)first, R);
    if (!(t > r->t[i] && i + 1 < r->samples))
        return;
    double x[3][3], a[3], B[9], rest[9];
    results_need(r, PART_ACC);
    rotation_of_vector(r->q + (size_t)(i + 1) * nq + (size_t)first, B);
    rotation_between(R, B, rest);
    rotation_uncayley(rest, x[0]);
    memcpy(x[1], r->v + (size_t)(i + 1) * nq + (size_t)first, sizeof x[1]);
    memcpy(x[2], r->acc + (size_t)(i + 1) * nq + (size_t)first, sizeof x[2]);
    rotation_unrates(x[0], x[1], x[2]);
    for (int k = 0; k < 3; k++) {
        size_t at = (size_t)i * nq + (size_t)(first + k);
        const knot from = { r->t[i], 0, r->v[at], r->acc[at] },
                   to = { r->t[i + 1], x[0][k], x[1][k], x[2][k] };
        a[k] = knot_between(r, &from, &to, t, KNOT_VALUE);
    }
    rotation_turn(R, a);
}

/* outside the run, the nearest end is used */
static double dense_value(const results *r, int32_t k, int order, double t)
{
    const dense_item x = { .what = DENSE_DOF, .k = k, .order = order };
    return r->dense->at(r->dense->of, &x, fmin(fmax(t, 0), r->t_end));
}

void results_rotation(const results *r, int32_t first, double t, double R[9])
{
    double phi[3];
    if (!r->dense) {
        rotation_between_samples(r, first, t, R);
        return;
    }
    for (int k = 0; k < 3; k++)
        phi[k] = dense_value(r, first + k, 0, t);
    rotation_of_vector(phi, R);
}

double results_q(const results *r, int32_t k, double t)
{
    int32_t first = r->prog->rotations.n ? turns_of(r->prog, k) : -1;
    if (r->dense)
        return dense_value(r, k, 0, t);
    if (first >= 0 && r->samples) {
        double R[9], phi[3];
        rotation_between_samples(r, first, t, R);
        rotation_vector(R, phi);
        return phi[k - first];
    }
    return value_at(r, 0, k, t);
}
double results_v(const results *r, int32_t k, double t)
{
    if (r->dense)
        return dense_value(r, k, 1, t);
    return value_at(r, 1, k, t);
}
double results_a(const results *r, int32_t k, double t)
{
    if (r->dense)
        return dense_value(r, k, 2, t);
    return value_at(r, 2, k, t);
}

double results_settle(const results *r, int c, int64_t m)
{
    const contact_result *k = &r->contact[c];
    if (r->samples == 0 || !k->kept || k->status[(r->samples - 1) * k->members + m] == STATUS_OPEN)
        return INFINITY;
    return k->last_open[m] == -INFINITY ? 0 : k->last_open[m];
}
