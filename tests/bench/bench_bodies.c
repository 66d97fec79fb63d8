/* Many bodies, compared with the same schemes written by hand in C: a column that settles, a tower with
   friction, a silo. One JSON line for each problem; CPU time including that of the system, the least of
   several repeats. `bench_bodies column` runs the problems with that in their name. */
#define _GNU_SOURCE
#include <math.h>
#include <sys/resource.h>
#include "bench.h"

/* ---- a column of balls that settles, without friction ---- */
static const char column_model[] = "model column {\n"
                                   "    param N = 20, r = 0.005, g = 9.81\n"
                                   "    dof z[i in 1..N] = (2*i - 1)*r + i*0.001\n"
                                   "    for i in 1..N { kinetic z[i]'^2/2; potential g*z[i] }\n"
                                   "    constraint floor: z[1] >= r\n"
                                   "    constraint pair[i in 1..N - 1]: z[i + 1] - z[i] >= 2*r\n"
                                   "}\n"
                                   "run column(N = %d) for %g with sweeping(h = 1e-3, cut = never%s)\n";

/* Data stored for each step: positions, rates, the reaction of the floor; the model requests no more. */
typedef struct {
    double *z, *v, *t, *floor;
} columns;
typedef struct {
    int n;
    double *z, *v, *z1, *v1, *r, *b, *gap, *x, *d;
    bool *in, *end;
} column;

static columns columns_new(size_t samples, size_t n)
{
    size_t all = samples * n * sizeof(double), one = samples * sizeof(double);
    return (columns){ malloc(all), malloc(all), malloc(one), malloc(one) };
}

static void columns_free(columns *c)
{
    free(c->z);
    free(c->v);
    free(c->t);
    free(c->floor);
}

/* Impulses: W = tridiag(-1, 2, -1) with 1 at the floor, on the balls that press; the set changes until all
   rates and impulses have the right sign. */
static void column_impulses(column *c)
{
    int n = c->n;
    for (int it = 0; it < 1000; it++) {
        for (int i = 0; i < n; i++) {
            double d = i ? 2 : 1, x = -c->b[i];
            if (c->in[i] && i && c->in[i - 1]) {
                d -= c->d[i - 1];
                x += c->d[i - 1] * c->x[i - 1];
            }
            c->d[i] = c->in[i] ? 1 / d : 0; /* divided by the pivot: the off-diagonal is -1 */
            c->x[i] = c->in[i] ? x : 0;
        }
        double after = 0, scale = 0;
        for (int i = n; i-- > 0;) {
            c->r[i] = after = c->in[i] ? (c->x[i] + after) * c->d[i] : 0;
            scale = greater(scale, fabs(after));
        }
        bool change = false;
        for (int i = 0; i < n; i++) {
            double u = c->b[i] + (i ? 2 : 1) * c->r[i] - (i ? c->r[i - 1] : 0) -
                       (i + 1 < n ? c->r[i + 1] : 0);
            bool wrong = c->in[i] ? c->r[i] < -1e-14 * scale : u < -1e-14 * scale;
            if (wrong) {
                c->in[i] = !c->in[i];
                change = true;
            }
        }
        if (!change)
            break;
    }
    for (int i = 0; i < n; i++)
        c->r[i] = greater(c->r[i], 0);
}

static double column_gaps(column *c, const double *z)
{
    double deepest = 0;
    for (int i = 0; i < c->n; i++) {
        c->gap[i] = i ? z[i] - z[i - 1] - 2 * 0.005 : z[0] - 0.005;
        deepest = lesser(deepest, c->gap[i]);
    }
    return deepest;
}

static void column_step(column *c, double h)
{
    const double g = 9.81;
    int n = c->n;
    for (int i = 0; i < n; i++) {
        c->b[i] = (i ? c->v[i] - c->v[i - 1] : c->v[0] - h * g) + greater(c->gap[i], 0) / h;
        if (!(c->b[i] > 0))
            c->in[i] = true;
    }
    column_impulses(c);
    for (int i = 0; i < n; i++) {
        double up = i + 1 < n ? c->r[i + 1] : 0, free = c->v[i] - h * g, v1 = free + (c->r[i] - up);
        c->v1[i] = fabs(v1) <= 1.5e-14 * (fabs(free) + c->r[i] + up) ? 0 : v1;
        c->z1[i] = c->z[i] + 0.5 * h * (c->v[i] + c->v1[i]);
        c->end[i] = false;
    }
    /* balls that would overlap move by the rate at the end */
    while (column_gaps(c, c->z1) < -1e-13) {
        bool more = false;
        for (int i = 0; i < n; i++) {
            if (!(c->gap[i] < -1e-13))
                continue;
            more |= !c->end[i] || (i && !c->end[i - 1]);
            c->end[i] = true;
            if (i)
                c->end[i - 1] = true;
        }
        if (!more)
            break;
        for (int i = 0; i < n; i++)
            if (c->end[i])
                c->z1[i] = c->z[i] + h * c->v1[i];
    }
}

static void column_keep(const column *c, columns *k, size_t at, double t, double h)
{
    size_t n = (size_t)c->n, from = at * n;
    memcpy(k->z + from, c->z1, n * sizeof *k->z);
    memcpy(k->v + from, c->v1, n * sizeof *k->v);
    k->t[at] = t;
    k->floor[at] = c->r[0] / h;
}

/* k: NULL stores nothing. */
static void column_hand(int n, size_t steps, columns *k)
{
    const double h = 1e-3;
    size_t m = (size_t)n;
    double *room = calloc(9 * m, sizeof *room);
    column c = { n,
                 room,
                 room + m,
                 room + 2 * m,
                 room + 3 * m,
                 room + 4 * m,
                 room + 5 * m,
                 room + 6 * m,
                 room + 7 * m,
                 room + 8 * m,
                 calloc(m, 1),
                 calloc(m, 1) };
    for (int i = 0; i < n; i++)
        c.z[i] = c.z1[i] = (2 * i + 1) * 0.005 + (i + 1) * 0.001;
    column_gaps(&c, c.z);
    if (k)
        column_keep(&c, k, 0, 0, 1);
    for (size_t i = 1; i <= steps; i++) {
        column_step(&c, h);
        if (k)
            column_keep(&c, k, i, (double)i * h, h);
        double *z = c.z, *v = c.v;
        c.z = c.z1;
        c.z1 = z;
        c.v = c.v1;
        c.v1 = v;
    }
    free(room);
    free(c.in);
    free(c.end);
}

static bool column_same(cdl *s, const columns *k, size_t n, size_t samples)
{
    static const struct {
        const char *form;
        size_t at;
    } ask[] = { { "z[%zu]", 0 }, { "z[%zu]", 1 }, { "z[%zu]", 2 } };
    double *x = malloc(samples * sizeof *x), off = 0;
    size_t places[3] = { 1, n / 2, n }, got;
    char text[32];
    for (size_t j = 0; j < sizeof ask / sizeof *ask; j++) {
        snprintf(text, sizeof text, "z[%zu]", places[ask[j].at]);
        if (cdl_values(s, text, x, samples, &got) != CDL_OK || got != samples)
            off = INFINITY;
        for (size_t i = 0; i < samples; i++)
            off = greater(off, fabs(x[i] - k->z[i * n + places[j] - 1]));
    }
    if (cdl_values(s, "floor.rn", x, samples, &got) != CDL_OK || got != samples)
        off = INFINITY;
    for (size_t i = 1; i < samples; i++)
        off = greater(off, fabs(x[i] - k->floor[i]) / (9.81 * (double)n) * 1e-3);
    free(x);
    if (!(off <= 1e-9))
        fprintf(stderr, "column of %zu: differs from the numbers by hand by %.3g\n", n, off);
    return off <= 1e-9;
}

/* Whole runs, including compilation. all: every sample is stored, otherwise both ends. */
static bool column_of(int n, double duration, bool all, double *each)
{
    spread ratios = SPREAD_NONE;
    char text[1024], name[128], every[32] = "";
    size_t steps = (size_t)(duration / 1e-3 + 0.5);
    double own = INFINITY, hand = INFINITY, whole = (double)steps;
    bool same = true;
    columns k = columns_new(steps + 1, (size_t)n);
    if (!all)
        snprintf(every, sizeof every, ", every = %g", duration);
    snprintf(text, sizeof text, column_model, n, duration, every);
    for (int i = 0; i < RUNS; i++) {
        cdl *s;
        double took = run_text(text, &s), start = seconds();
        column_hand(n, steps, all ? &k : NULL);
        double hand_took = seconds() - start;
        own = lesser(own, took);
        hand = lesser(hand, hand_took);
        spread_add(&ratios, took / hand_took);
        if (i == 0 && all)
            same = column_same(s, &k, (size_t)n, steps + 1);
        cdl_free(s);
    }
    columns_free(&k);
    snprintf(name, sizeof name, "column of %d balls, %zu steps, %s kept (ratios %.2f to %.2f)", n, steps,
             all ? "all" : "ends", ratios.low, ratios.high);
    report(name, "us a step", 1e6 * own / whole, 1e6 * hand / whole, "2.5 x", own <= 2.5 * hand);
    *each = own / whole / n;
    return same;
}

static bool column_run(void)
{
    double one, ten, hundred;
    bool ok = true;
    for (int all = 0; all < 2; all++) {
        ok &= column_of(100, 2, all, &one);
        ok &= column_of(1000, 1, all, &ten);
        ok &= column_of(10000, 0.2, all, &hundred);
    }
    report("column: time a ball, 10000 balls over 1000", "1", hundred / ten, 0, "1.5", hundred / ten <= 1.5);
    return ok;
}

/* ---- a tower with friction in two directions, pushed aside so that some of it slips ---- */
static bool tower_run(void)
{
    static const char text[] =
        "model tower {\n"
        "    param N = 100, mu = 0.3, g = 9.81, push = 150\n"
        "    dof p[i in 1..N] in R3 = [0, 0, i - 0.5]\n"
        "    for i in 1..N {\n"
        "        kinetic norm(p[i]')^2/2\n"
        "        potential g*p[i][3]\n"
        "        force p[i]: [push*sin(20*t)*exp(-((i - 60)/3)^2), push*cos(13*t)*exp(-((i - 30)/3)^2), 0]\n"
        "    }\n"
        "    constraint ground: p[1][3] >= 0.5 { slip = [p[1][1]', p[1][2]'], friction = coulomb(mu) }\n"
        "    constraint on[i in 1..N - 1]: p[i + 1][3] - p[i][3] >= 1 {\n"
        "        slip = [p[i + 1][1]' - p[i][1]', p[i + 1][2]' - p[i][2]'], friction = coulomb(mu)\n"
        "    }\n"
        "}\n"
        "run tower for 1 with sweeping(h = 1e-3, tolerance = 1e-8)\n"
        "expect residual <= 1e-8\n";
    double best = INFINITY;
    bool ok = true;
    for (int k = 0; k < 3; k++) {
        cdl *s;
        best = lesser(best, run_text(text, &s) / 1000);
        double moved = value(s, "norm(last(p[62]))");
        ok = moved > 61.5 + 1e-3 || fabs(value(s, "last(p[62][1])")) > 1e-3;
        if (!ok)
            fprintf(stderr, "tower: nothing slipped (%g)\n", moved);
        cdl_free(s);
    }
    report("tower of 100 blocks, friction, tolerance 1e-8", "ms a step", 1e3 * best, 0, "2 ms", best <= 2e-3);
    return ok;
}

/* ---- disks poured into a box, with friction: plain block Gauss-Seidel over a cell list by hand ---- */
static const char silo_text[] =
    "model silo {\n"
    "    param N = %d, cols = %d, R = 0.01, W = %g, mu = 0.5, g = 9.81\n"
    "    dof p[i in 1..N] in R2 = [R + 2.2*R*mod(i - 1, cols) + 1e-3*mod(floor((i - 1)/cols), 3), R + "
    "2.2*R*floor((i - 1)/cols)]\n"
    "    dof a[i in 1..N] = 0\n"
    "    for i in 1..N { kinetic norm(p[i]')^2/2 + (R^2/2)*a[i]'^2/2; potential g*p[i][2] }\n"
    "    constraint floor[i in 1..N]: p[i][2] >= R { slip = p[i]' + R*a[i]'*[1, 0], friction = coulomb(mu) "
    "}\n"
    "    constraint left[i in 1..N]:  p[i][1] >= R\n"
    "    constraint right[i in 1..N]: p[i][1] <= W - R\n"
    "    constraint touch[i in 1..N, j in i+1..N]: norm(p[i] - p[j]) >= 2*R {\n"
    "        slip = p[i]' - p[j]' - R*(a[i]' + a[j]')*perp((p[i] - p[j])/norm(p[i] - p[j])), friction = "
    "coulomb(mu)\n"
    "    }\n"
    "}\n"
    "run silo for %g with sweeping(h = 1e-3, tolerance = 1e-3, every = 0.05)\n";

enum { FLOOR = -1, LEFT = -2, RIGHT = -3, MOST_AT = 10 };
/* Contact of disks i and j; n points to i. */
typedef struct {
    int i, j;
    double n[2], r[2], open, mu, an, at; /* open: gap over the step; an, at: inverse entries of W */
} touch;
typedef struct {
    double x[2], v[2], w;
    int next;
} disk;
typedef struct {
    int n, contacts, was, cells[2];
    disk *d;
    touch *c, *old;
    int *cell, *first;
    double wide;
    long long swept;
} box;

static const double radius = 0.01;

static void touch_add(box *b, int i, int j, double nx, double ny, double open)
{
    touch *c = &b->c[b->contacts++];
    bool rough = j >= FLOOR;
    *c = (touch){ .i = i,
                  .j = j,
                  .n = { nx, ny },
                  .open = open,
                  .mu = rough ? 0.5 : 0,
                  .an = j >= 0 ? 1.0 / 2 : 1,
                  .at = j >= 0 ? 1.0 / 6 : 1.0 / 3 };
    for (int k = b->first[i]; k < b->was && b->old[k].i == i; k++)
        if (b->old[k].j == j) {
            c->r[0] = b->old[k].r[0];
            c->r[1] = b->old[k].r[1];
            break;
        }
}

static int box_cell(const box *b, const double *x, int *at)
{
    for (int k = 0; k < 2; k++) {
        at[k] = (int)(x[k] / (2.6 * radius));
        at[k] = at[k] < 0 ? 0 : at[k] >= b->cells[k] ? b->cells[k] - 1 : at[k];
    }
    return at[0] * b->cells[1] + at[1];
}

static void box_contacts(box *b, double h)
{
    int at[2];
    touch *old = b->old;
    b->old = b->c;
    b->c = old;
    b->was = b->contacts;
    b->contacts = 0;
    for (int i = 0; i < b->n; i++)
        b->first[i] = b->was;
    for (int k = b->was; k-- > 0;)
        b->first[b->old[k].i] = k;
    memset(b->cell, -1, sizeof(int) * (size_t)(b->cells[0] * b->cells[1]));
    for (int i = b->n; i-- > 0;) {
        int c = box_cell(b, b->d[i].x, at);
        b->d[i].next = b->cell[c];
        b->cell[c] = i;
    }
    for (int i = 0; i < b->n; i++) {
        const disk *d = &b->d[i];
        double reach = 2 * h * (fabs(d->v[0]) + fabs(d->v[1])) + 1e-4;
        if (d->x[1] - radius < reach)
            touch_add(b, i, FLOOR, 0, 1, (d->x[1] - radius) / h);
        if (d->x[0] - radius < reach)
            touch_add(b, i, LEFT, 1, 0, (d->x[0] - radius) / h);
        if (b->wide - radius - d->x[0] < reach)
            touch_add(b, i, RIGHT, -1, 0, (b->wide - radius - d->x[0]) / h);
        box_cell(b, d->x, at);
        for (int cx = at[0] - 1; cx <= at[0] + 1; cx++)
            for (int cy = at[1] - 1; cy <= at[1] + 1; cy++) {
                if (cx < 0 || cy < 0 || cx >= b->cells[0] || cy >= b->cells[1])
                    continue;
                for (int j = b->cell[cx * b->cells[1] + cy]; j >= 0; j = b->d[j].next) {
                    double dx = d->x[0] - b->d[j].x[0], dy = d->x[1] - b->d[j].x[1], l2 = dx * dx + dy * dy,
                           far = 2 * radius + 2 * reach;
                    if (j <= i || l2 > far * far)
                        continue;
                    double l = sqrt(l2);
                    touch_add(b, i, j, dx / l, dy / l, (l - 2 * radius) / h);
                }
            }
    }
}

static void touch_push(box *b, const touch *c, double rn, double rt)
{
    double px = rn * c->n[0] - rt * c->n[1], py = rn * c->n[1] + rt * c->n[0], turn = 2 * rt / radius;
    disk *d = &b->d[c->i];
    d->v[0] += px;
    d->v[1] += py;
    d->w -= turn;
    if (c->j < 0)
        return;
    d = &b->d[c->j];
    d->v[0] -= px;
    d->v[1] -= py;
    d->w -= turn;
}

/* Rates: normal, and along (-n_y, n_x) including the rotation of both disks. */
static double box_sweep(box *b, double *size)
{
    double change = 0;
    for (int k = 0; k < b->contacts; k++) {
        touch *c = &b->c[k];
        const disk *d = &b->d[c->i];
        double vx = d->v[0], vy = d->v[1], w = d->w;
        if (c->j >= 0) {
            vx -= b->d[c->j].v[0];
            vy -= b->d[c->j].v[1];
            w += b->d[c->j].w;
        }
        double rn = greater(c->r[0] - (vx * c->n[0] + vy * c->n[1] + c->open) * c->an, 0);
        if (rn == 0 && c->r[0] == 0) /* it was open and stays open */
            continue;
        double ut = vy * c->n[0] - vx * c->n[1] - radius * w, rt = c->r[1] - ut * c->at, bound = c->mu * rn;
        rt = greater(-bound, lesser(bound, rt));
        double dn = rn - c->r[0], dt = rt - c->r[1];
        change = greater(change, greater(fabs(dn), fabs(dt)));
        *size = greater(*size, rn);
        c->r[0] = rn;
        c->r[1] = rt;
        if (dn != 0 || dt != 0)
            touch_push(b, c, dn, dt);
    }
    b->swept += b->contacts;
    return change;
}

static long long silo_hand(int n, int cols, double wide, size_t steps, double *x)
{
    const double h = 1e-3;
    box b = { .n = n, .wide = wide, .cells = { (int)(wide / (2.6 * radius)) + 2, 2 * (n / cols) + 8 } };
    b.d = calloc((size_t)n, sizeof *b.d);
    b.c = calloc((size_t)n * MOST_AT, sizeof *b.c);
    b.old = calloc((size_t)n * MOST_AT, sizeof *b.old);
    b.first = calloc((size_t)n, sizeof *b.first);
    b.cell = calloc((size_t)(b.cells[0] * b.cells[1]), sizeof *b.cell);
    for (int i = 0; i < n; i++) {
        b.d[i].x[0] = radius + 2.2 * radius * (i % cols) + 1e-3 * (i / cols % 3);
        b.d[i].x[1] = radius + 2.2 * radius * (i / cols);
    }
    for (size_t s = 0; s < steps; s++) {
        double size = 0, e = INFINITY;
        box_contacts(&b, h);
        for (int i = 0; i < n; i++)
            b.d[i].v[1] -= 9.81 * h;
        for (int k = 0; k < b.contacts; k++)
            touch_push(&b, &b.c[k], b.c[k].r[0], b.c[k].r[1]);
        for (int it = 0; it < 300 && e > 1e-3 * size; it++) {
            size = 0;
            e = box_sweep(&b, &size);
        }
        for (int i = 0; i < n; i++)
            for (int k = 0; k < 2; k++)
                b.d[i].x[k] += h * b.d[i].v[k];
    }
    *x = 0;
    for (int i = 0; i < n; i++)
        *x += b.d[i].x[1] / n;
    free(b.d);
    free(b.c);
    free(b.old);
    free(b.first);
    free(b.cell);
    return b.swept;
}

static bool silo_of(int n, int cols, double duration, double *each)
{
    char text[2048], name[128];
    double wide = 2.2 * radius * cols + 0.02, height = 0;
    size_t steps = (size_t)(duration / 1e-3 + 0.5);
    snprintf(text, sizeof text, silo_text, n, cols, wide, duration);
    double took = INFINITY, hand_took = INFINITY, swept = 0, over = 0, y = 0;
    long long by_hand = 0;
    spread ratios = SPREAD_NONE;
    char mean[64];
    snprintf(mean, sizeof mean, "sum(last(p[i][2]) for i in 1..%d)/%d", n, n);
    /* both count each visit of a sweep to a contact */
    for (int k = 0; k < RUNS; k++) {
        cdl *s;
        double own_took = run_text(text, &s);
        took = lesser(took, own_took);
        swept = value(s, "swept");
        over = value(s, "max_penetration");
        y = value(s, mean);
        cdl_free(s);
        double start = seconds();
        by_hand = silo_hand(n, cols, wide, steps, &height);
        double c_took = seconds() - start;
        hand_took = lesser(hand_took, c_took);
        spread_add(&ratios, own_took / swept / (c_took / (double)by_hand));
    }
    double own = took / swept, hand = hand_took / (double)by_hand;
    snprintf(name, sizeof name, "silo of %d disks, a contact and sweep (ratios %.2f to %.2f)", n, ratios.low,
             ratios.high);
    report(name, "ns", 1e9 * own, 1e9 * hand, "2 x", own <= 2 * hand);
    snprintf(name, sizeof name, "silo of %d disks, overlap over the radius", n);
    report(name, "1", over / radius, 0, "1e-4", over <= 1e-4 * radius);
    snprintf(name, sizeof name, "silo of %d disks, a step", n);
    report(name, "ms", 1e3 * took / (double)steps, 1e3 * hand_took / (double)steps, "-", true);
    *each = took / (double)steps / n;
    bool same = fabs(y - height) <= 0.05 * height;
    if (!same)
        fprintf(stderr, "silo of %d: mean height %g, by hand %g\n", n, y, height);
    return same;
}

static bool silo_run(void)
{
    double one, five;
    struct rusage use;
    bool ok = silo_of(1000, 40, 0.3, &one);
    ok &= silo_of(5000, 200, 0.15, &five);
    getrusage(RUSAGE_SELF, &use);
    report("silo: time a disk, 5000 disks over 1000", "1", five / one, 0, "1.5", five / one <= 1.5);
    report("silo of 5000 disks, memory", "MB", (double)use.ru_maxrss / 1024, 0, "-", true);
    return ok;
}

/* ---- the list of problems ---- */
static const bench problems[] = {
    { "column", column_run },
    { "tower", tower_run },
    { "silo", silo_run },
};

/* The line for the table of tests/bench/peers: bench_bodies peer column N STEPS. */
static int peer_run(char **argv)
{
    int n = atoi(argv[3]), steps = atoi(argv[4]);
    char text[1024], mean[64];
    snprintf(text, sizeof text, column_model, n, 1e-3 * steps, "");
    snprintf(mean, sizeof mean, "sum(last(z[i]) for i in 1..%d)/%d", n, n);
    cdl *s;
    double own = run_text(text, &s) / steps;
    printf("CDL, cut = never\tcolumn\t%d\t%.4g\t%.2g\t%.5g\n", n, 1e3 * own, value(s, "max_penetration"),
           value(s, mean));
    cdl_free(s);
    columns k = columns_new((size_t)steps + 1, (size_t)n);
    double start = seconds();
    column_hand(n, (size_t)steps, &k);
    printf("C by hand\tcolumn\t%d\t%.4g\t0\tnan\n", n, 1e3 * (seconds() - start) / steps);
    columns_free(&k);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && !strcmp(argv[1], "peer"))
        return peer_run(argv);
    return run_problems(problems, sizeof problems / sizeof *problems, argc, argv);
}
