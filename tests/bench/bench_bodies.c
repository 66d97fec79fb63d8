/* Many bodies beside the same schemes written by hand in C: a column that settles, a tower with friction, a silo.  One JSON line for each problem; CPU time
   with that of the system in it, the least of some repeats.  `bench_bodies column` runs the problems with that in their name. */
#define _GNU_SOURCE
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include "cdl.h"

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void complain(void *ud, const char *text, size_t len) { (void)ud; fwrite(text, 1, len, stderr); }

/* CPU seconds of a text in a session of its own, which is handed on for its results */
static double run_text(const char *text, cdl **session)
{
    cdl *s = *session = cdl_new(NULL);
    cdl_set_callbacks(s, &(cdl_callbacks){ .err = complain });
    cdl_set(s, "quiet", "yes");
    cdl_set(s, "manifest", "no");
    double start = seconds();
    if (cdl_run_text(s, "bench", text, strlen(text)) != CDL_OK) exit(1);
    return seconds() - start;
}

static double value(cdl *s, const char *expression)
{
    double x = NAN;
    size_t got = 0;
    return cdl_values(s, expression, &x, 1, &got) == CDL_OK && got == 1 ? x : NAN;
}

static void report(const char *problem, const char *unit, double own, double hand, const char *reach, bool ok)
{
    printf("{\"problem\":\"%s\",\"cdl\":%.4g,", problem, own);
    if (hand > 0) printf("\"hand\":%.4g,\"ratio\":%.3g,", hand, own / hand);
    printf("\"unit\":\"%s\",\"reach\":\"%s\",\"reached\":%s}\n", unit, reach, ok ? "true" : "false");
    fflush(stdout);
}

/* ---- a column of balls that settles, without friction ---- */
static const char column_model[] =
    "model column {\n"
    "    param N = 20, r = 0.005, g = 9.81\n"
    "    dof z[i in 1..N] = (2*i - 1)*r + i*0.001\n"
    "    for i in 1..N { kinetic z[i]'^2/2; potential g*z[i] }\n"
    "    constraint floor: z[1] >= r\n"
    "    constraint pair[i in 1..N - 1]: z[i + 1] - z[i] >= 2*r\n"
    "}\n"
    "run column(N = %d) for %g with sweeping(h = 1e-3)\n";

/* what is kept of each step */
typedef struct { double *z, *v, *a, *gap, *rn, *t, *energy, *dissipated, *work; unsigned char *status; } columns;
typedef struct { int n; double *z, *v, *z1, *v1, *r, *b, *gap, *x, *d; bool *in, *end; double work, dissipated; } column;

static columns columns_new(size_t samples, size_t n)
{
    size_t all = samples * n * sizeof(double), one = samples * sizeof(double);
    return (columns){ malloc(all), malloc(all), malloc(all), malloc(all), malloc(all), malloc(one), malloc(one), malloc(one), malloc(one), malloc(samples * n) };
}

static void columns_free(columns *c)
{
    void *all[] = { c->z, c->v, c->a, c->gap, c->rn, c->t, c->energy, c->dissipated, c->work, c->status };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

/* impulses: W = tridiag(-1, 2, -1) with 1 at the floor, on the balls that press; sets change until all rates and impulses have their sign */
static void column_impulses(column *c)
{
    int n = c->n;
    for (int it = 0; it < 1000; it++) {
        for (int i = 0; i < n; i++) {
            double d = i ? 2 : 1, x = -c->b[i];
            if (c->in[i] && i && c->in[i - 1]) { d -= c->d[i - 1]; x += c->d[i - 1] * c->x[i - 1]; }
            c->d[i] = c->in[i] ? 1 / d : 0;                             /* over the pivot: the off-diagonal is -1 */
            c->x[i] = c->in[i] ? x : 0;
        }
        double after = 0, scale = 0;
        for (int i = n; i-- > 0;) {
            c->r[i] = after = c->in[i] ? (c->x[i] + after) * c->d[i] : 0;
            scale = fmax(scale, fabs(after));
        }
        bool change = false;
        for (int i = 0; i < n; i++) {
            double u = c->b[i] + (i ? 2 : 1) * c->r[i] - (i ? c->r[i - 1] : 0) - (i + 1 < n ? c->r[i + 1] : 0);
            bool wrong = c->in[i] ? c->r[i] < -1e-14 * scale : u < -1e-14 * scale;
            if (wrong) { c->in[i] = !c->in[i]; change = true; }
        }
        if (!change) break;
    }
    for (int i = 0; i < n; i++) c->r[i] = fmax(c->r[i], 0);
}

static double column_gaps(column *c, const double *z)
{
    double least = 0;
    for (int i = 0; i < c->n; i++) {
        c->gap[i] = i ? z[i] - z[i - 1] - 2 * 0.005 : z[0] - 0.005;
        least = fmin(least, c->gap[i]);
    }
    return least;
}

static void column_step(column *c, double h)
{
    const double g = 9.81;
    int n = c->n;
    for (int i = 0; i < n; i++) {
        c->b[i] = (i ? c->v[i] - c->v[i - 1] : c->v[0] - h * g) + fmax(c->gap[i], 0) / h;
        if (!(c->b[i] > 0)) c->in[i] = true;
    }
    column_impulses(c);
    double mean = 0, lost = 0;
    for (int i = 0; i < n; i++) {
        double up = i + 1 < n ? c->r[i + 1] : 0, free = c->v[i] - h * g, v1 = free + (c->r[i] - up);
        c->v1[i] = fabs(v1) <= 1.5e-14 * (fabs(free) + c->r[i] + up) ? 0 : v1;
        c->z1[i] = c->z[i] + 0.5 * h * (c->v[i] + c->v1[i]);
        c->end[i] = false;
        mean += 0.5 * (c->v[i] + c->v1[i]);
        lost += c->r[i] * 0.5 * (c->v[i] + c->v1[i] - (i ? c->v[i - 1] + c->v1[i - 1] : 0));
    }
    c->work -= h * g * mean;
    c->dissipated -= lost;
    /* balls that would overlap go by the rate at the end */
    while (column_gaps(c, c->z1) < -1e-13) {
        bool more = false;
        for (int i = 0; i < n; i++) {
            if (!(c->gap[i] < -1e-13)) continue;
            more |= !c->end[i] || (i && !c->end[i - 1]);
            c->end[i] = true;
            if (i) c->end[i - 1] = true;
        }
        if (!more) break;
        for (int i = 0; i < n; i++) if (c->end[i]) c->z1[i] = c->z[i] + h * c->v1[i];
    }
}

static void column_keep(column *c, columns *k, size_t at, double t, double h)
{
    size_t n = (size_t)c->n, from = at * n;
    double energy = 0;
    for (size_t i = 0; i < n; i++) {
        k->z[from + i] = c->z1[i];
        k->v[from + i] = c->v1[i];
        k->a[from + i] = (c->v1[i] - c->v[i]) / h;
        k->gap[from + i] = c->gap[i];
        k->rn[from + i] = c->r[i] / h;
        k->status[from + i] = c->r[i] > 0 ? 2 : 0;
        energy += 0.5 * c->v1[i] * c->v1[i] + 9.81 * c->z1[i];
    }
    k->t[at] = t; k->energy[at] = energy; k->dissipated[at] = c->dissipated; k->work[at] = c->work;
}

static void column_hand(int n, size_t steps, columns *k)
{
    const double h = 1e-3;
    size_t m = (size_t)n;
    double *room = calloc(9 * m, sizeof *room);
    column c = { n, room, room + m, room + 2 * m, room + 3 * m, room + 4 * m, room + 5 * m, room + 6 * m, room + 7 * m, room + 8 * m,
                 calloc(m, 1), calloc(m, 1), 0, 0 };
    for (int i = 0; i < n; i++) c.z[i] = c.z1[i] = (2 * i + 1) * 0.005 + (i + 1) * 0.001;
    column_gaps(&c, c.z);
    column_keep(&c, k, 0, 0, 1);
    for (size_t i = 1; i <= steps; i++) {
        column_step(&c, h);
        column_keep(&c, k, i, (double)i * h, h);
        double *z = c.z, *v = c.v;
        c.z = c.z1; c.z1 = z;
        c.v = c.v1; c.v1 = v;
    }
    free(room); free(c.in); free(c.end);
}

static bool column_same(cdl *s, const columns *k, size_t n, size_t samples)
{
    static const struct { const char *form; size_t at; } ask[] = { { "z[%zu]", 0 }, { "z[%zu]", 1 }, { "z[%zu]", 2 } };
    double *x = malloc(samples * sizeof *x), most = 0;
    size_t places[3] = { 1, n / 2, n }, got;
    char text[32];
    for (size_t j = 0; j < sizeof ask / sizeof *ask; j++) {
        snprintf(text, sizeof text, "z[%zu]", places[ask[j].at]);
        if (cdl_values(s, text, x, samples, &got) != CDL_OK || got != samples) most = INFINITY;
        for (size_t i = 0; i < samples; i++) most = fmax(most, fabs(x[i] - k->z[i * n + places[j] - 1]));
    }
    if (cdl_values(s, "floor.rn", x, samples, &got) != CDL_OK || got != samples) most = INFINITY;
    for (size_t i = 1; i < samples; i++) most = fmax(most, fabs(x[i] - k->rn[i * n]) / (9.81 * (double)n) * 1e-3);
    free(x);
    if (!(most <= 1e-9)) fprintf(stderr, "column of %zu: differs from the numbers by hand by %.3g\n", n, most);
    return most <= 1e-9;
}

static bool column_of(int n, double duration, int repeat, double *each)
{
    char text[1024], name[64];
    size_t steps = (size_t)(duration / 1e-3 + 0.5);
    double own = INFINITY, hand = INFINITY, whole = (double)steps;
    bool same = true;
    columns k = columns_new(steps + 1, (size_t)n);
    snprintf(text, sizeof text, column_model, n, duration);
    for (int i = 0; i < repeat; i++) {
        cdl *s;
        own = fmin(own, run_text(text, &s));
        double start = seconds();
        column_hand(n, steps, &k);
        hand = fmin(hand, seconds() - start);
        if (i == 0) same = column_same(s, &k, (size_t)n, steps + 1);
        cdl_free(s);
    }
    columns_free(&k);
    snprintf(name, sizeof name, "column of %d balls, %zu steps", n, steps);
    report(name, "us a step", 1e6 * own / whole, 1e6 * hand / whole, "3 x", own <= 3 * hand);
    *each = own / whole / n;
    return same;
}

static bool column_run(void)
{
    double one, ten, hundred;
    bool ok = column_of(100, 2, 5, &one);
    ok &= column_of(1000, 1, 3, &ten);
    ok &= column_of(10000, 0.2, 2, &hundred);
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
        best = fmin(best, run_text(text, &s) / 1000);
        double moved = value(s, "norm(last(p[62]))");
        ok = moved > 61.5 + 1e-3 || fabs(value(s, "last(p[62][1])")) > 1e-3;
        if (!ok) fprintf(stderr, "tower: nothing slipped (%g)\n", moved);
        cdl_free(s);
    }
    report("tower of 100 blocks, friction, tolerance 1e-8", "ms a step", 1e3 * best, 0, "2 ms", best <= 2e-3);
    return ok;
}

/* ---- all of them ---- */
static const struct { const char *name; bool (*run)(void); } problems[] = {
    { "column", column_run },
    { "tower", tower_run },
};

int main(int argc, char **argv)
{
    bool ok = true;
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
        if (argc < 2 || strstr(problems[i].name, argv[1])) ok &= problems[i].run();
    return ok ? 0 : 1;
}
