/* Time-stepping compared with the same schemes written by hand in C. Both store the same columns (state,
   acceleration, gap, reactions, status, energies; CDL computes some of them when they are read), of every
   step or of one in a thousand (`every`), and both must give the same numbers; otherwise the bench fails. One
   JSON line for each problem; times are the least of several repeats, CPU time including that of the system.
   `bench_dynamics ball` runs the problems with that in their name. */
#define _GNU_SOURCE
#include <math.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench.h"

enum { REPEAT = 9 };

/* Compares the column of an expression with numbers by hand: the largest difference over the largest number.
 */
static bool same_column(cdl *s, const char *problem, const char *expression, const double *hand, size_t n,
                        double tol)
{
    double *x = calloc(n, sizeof *x), most = 0, size = 0;
    size_t got = 0;
    bool ok = cdl_values(s, expression, x, n, &got) == CDL_OK && got == n;
    for (size_t i = 0; ok && i < n; i++) {
        most = fmax(most, fabs(x[i] - hand[i]));
        size = fmax(size, fabs(hand[i]));
    }
    ok = ok && most <= tol * size;
    if (!ok)
        fprintf(stderr, "%s: %s differs from the numbers by hand: %zu of %zu values, by %.3g of %.3g\n",
                problem, expression, got, n, most, size);
    free(x);
    return ok;
}

/* ---- columns of the program by hand ---- */
typedef struct {
    double t, energy, dissipated, work, gap, rn, rt, slip;
    unsigned char status;
} kept;
typedef struct {
    size_t n;
    double *q, *v, *a;
    kept *k;
    size_t impacts;
    double impulses;
} columns;

static columns columns_new(size_t samples, size_t nq)
{
    return (columns){ 0,
                      malloc(samples * nq * sizeof(double)),
                      malloc(samples * nq * sizeof(double)),
                      malloc(samples * nq * sizeof(double)),
                      malloc(samples * sizeof(kept)),
                      0,
                      0 };
}
/* Called before a repeat: the memory stays, so that from the second repeat on it is already allocated. */
static void columns_empty(columns *c)
{
    c->n = c->impacts = 0;
    c->impulses = 0;
}
static void columns_free(columns *c)
{
    free(c->q);
    free(c->v);
    free(c->a);
    free(c->k);
}
/* Copies a column of k from the records. */
static double *columns_of(const columns *c, size_t offset)
{
    double *x = malloc(c->n * sizeof *x);
    for (size_t i = 0; i < c->n; i++)
        memcpy(&x[i], (const char *)&c->k[i] + offset, sizeof *x);
    return x;
}

/* ---- a ball that bounces, comes to rest and rests ---- */
static const char ball_text[] = "model ball { param g = 9.81, e = 0.8; dof y = 1, y' = 0; y'' = -g; "
                                "constraint floor: y >= 0 { impact = newton(e) } }\n"
                                "run ball for 5 with sweeping(h = 5e-6%s)\n";

typedef struct {
    double y, v, dissipated, work;
    bool closed;
    double rn;
} ball;

static void ball_keep(const ball *b, columns *c, double t)
{
    const double g = 9.81;
    size_t i = c->n++;
    c->q[i] = b->y;
    c->v[i] = b->v;
    c->a[i] = b->closed ? 0 : -g;
    c->k[i] = (kept){
        t, 0.5 * b->v * b->v + g * b->y, b->dissipated, b->work, b->y, b->rn, 0, 0, b->closed ? 2 : 0
    };
}

/* Flight to the floor or to the end of the step; rebounds; rest if a rebound is too slow to be followed. */
static void ball_step(ball *b, columns *c, double h)
{
    const double g = 9.81, e = 0.8;
    double left = h;
    b->rn = 0;
    for (int hits = 0; left > 0 && !b->closed;) {
        double v = b->v - g * left, y = b->y + 0.5 * left * (b->v + v), s = left;
        bool down = y < 0;
        if (down) {
            s = (b->v + sqrt(b->v * b->v + 2 * g * b->y)) / g;
            v = b->v - g * s;
            y = 0;
        }
        b->work += s * -g * 0.5 * (b->v + v);
        b->y = y;
        b->v = v;
        left -= s;
        if (!down)
            return;
        double after = hits++ < 10 && v < -1e-11 ? -e * v : 0, impulse = after - v;
        b->dissipated -= 0.5 * (v + after) * impulse;
        c->impacts++;
        c->impulses += impulse;
        b->v = after;
        b->closed = after == 0;
    }
    if (b->closed)
        b->rn = g * left / h;
}

static void ball_hand(columns *c, size_t steps, size_t every)
{
    const double h = 5e-6;
    ball b = { .y = 1 };
    ball_keep(&b, c, 0);
    for (size_t i = 1; i <= steps; i++) {
        ball_step(&b, c, h);
        if (i % every == 0)
            ball_keep(&b, c, (double)i * h);
    }
}

static bool ball_same(cdl *s, const columns *c)
{
    double *d = columns_of(c, offsetof(kept, dissipated));
    bool ok = same_column(s, "ball", "y", c->q, c->n, 1e-9) &&
              same_column(s, "ball", "dissipated", d, c->n, 1e-9) &&
              same_column(s, "ball", "sum(floor.impacts.impulse)", &c->impulses, 1, 1e-6);
    free(d);
    return ok;
}

/* ---- Klarbring's system: one contact with friction, linear forces, a load in time ---- */
static const char klarbring_text[] =
    "model klarbring {\n"
    "    param mu in 0..inf = 0.4, e in 0..1 = 0\n"
    "    let K = [2, 0.5; 0.5, 1]\n"
    "    dof u[2] = [-0.1, 0], u' = [1, 0.3]\n"
    "    u'' + K*u = [cos(t), 0.2*sin(3*t)]\n"
    "    constraint wall: u[1] <= 0 { friction = coulomb(mu), impact = newton(e) }\n"
    "}\n"
    "run klarbring for 100 with sweeping(h = 1e-4%s)\n";

typedef struct {
    double t, u[2], v[2], f[2], dissipated, work, r[2];
    bool closed;
} particle;

static const double well[2][2] = { { 2, 0.5 }, { 0.5, 1 } };

static void well_force(double t, const double *u, double *f)
{
    f[0] = cos(t) - (well[0][0] * u[0] + well[0][1] * u[1]);
    f[1] = 0.2 * sin(3 * t) - (well[1][0] * u[0] + well[1][1] * u[1]);
}

/* Reactions of one contact, normal in the first direction: velocities w + A r; r[0] <= 0 pushes away from the
   wall, u[0] <= 0. */
static void wall_react(double a00, double a01, double a11, const double *w, double mu, double *r)
{
    r[0] = r[1] = 0;
    if (w[0] < 0)
        return;
    /* stick: both rates 0 */
    double det = a00 * a11 - a01 * a01;
    r[0] = (-a11 * w[0] + a01 * w[1]) / det;
    r[1] = (a01 * w[0] - a00 * w[1]) / det;
    if (fabs(r[1]) <= -mu * r[0])
        return;
    /* slip: r1 = -s mu rn with rn = -r0, so r1 = s mu r0 */
    for (double s = -1; s <= 1; s += 2) {
        double r0 = -w[0] / (a00 + s * mu * a01), r1 = s * mu * r0, slip = w[1] + a01 * r0 + a11 * r1;
        if (r0 <= 0 && slip * s >= 0) {
            r[0] = r0;
            r[1] = r1;
            return;
        }
    }
}

/* theta = 1/2: D v1 = v0 + h/2 (f0 + g(t1) - K (u0 + h/2 v0)) + P with D = 1 + h^2/4 K. */
typedef struct {
    double h, i00, i01, i11;
} implicit;

static implicit implicit_of(double h)
{
    double k = 0.25 * h * h, d00 = 1 + k * well[0][0], d01 = k * well[0][1], d11 = 1 + k * well[1][1],
           det = d00 * d11 - d01 * d01;
    return (implicit){ h, d11 / det, -d01 / det, d00 / det };
}

static void wall_smooth(const particle *p, const implicit *m, double mu, particle *o)
{
    double h = m->h, half[2], b[2], w[2], f[2];
    for (int i = 0; i < 2; i++)
        half[i] = p->u[i] + 0.5 * h * p->v[i];
    *o = *p;
    o->t = p->t + h;
    well_force(o->t, half, f);
    for (int i = 0; i < 2; i++)
        b[i] = p->v[i] + 0.5 * h * (p->f[i] + f[i]);
    w[0] = m->i00 * b[0] + m->i01 * b[1];
    w[1] = m->i01 * b[0] + m->i11 * b[1];
    o->r[0] = o->r[1] = 0;
    if (p->closed)
        wall_react(m->i00, m->i01, m->i11, w, mu, o->r);
    o->v[0] = w[0] + m->i00 * o->r[0] + m->i01 * o->r[1];
    o->v[1] = w[1] + m->i01 * o->r[0] + m->i11 * o->r[1];
    if (p->closed && o->r[0] < 0)
        o->v[0] = 0;
    if (p->closed && fabs(o->r[1]) < -mu * o->r[0])
        o->v[1] = 0;
    for (int i = 0; i < 2; i++) {
        o->u[i] = half[i] + 0.5 * h * o->v[i];
        o->f[i] = f[i] - 0.5 * h * (well[i][0] * o->v[0] + well[i][1] * o->v[1]);
        o->work += 0.5 * h * (p->f[i] + o->f[i]) * 0.5 * (p->v[i] + o->v[i]);
        o->dissipated -= o->r[i] * 0.5 * (p->v[i] + o->v[i]);
    }
    if (p->closed && o->r[0] < 0)
        o->u[0] = 0;
}

/* The time at which the wall is reached within the step: secant method for the step size. */
static double wall_meets(const particle *p, double h, double mu, particle *o)
{
    double lo = 0, hi = h, x = h;
    for (int it = 0; it < 100; it++) {
        double next = x - o->u[0] / o->v[0];
        x = next > lo && next < hi ? next : 0.5 * (lo + hi);
        implicit m = implicit_of(x);
        wall_smooth(p, &m, mu, o);
        if (fabs(o->u[0]) <= 1e-15)
            break;
        if (o->u[0] > 0)
            hi = x;
        else
            lo = x;
    }
    o->u[0] = 0;
    return x;
}

static void wall_hit(particle *p, double mu, columns *c)
{
    double before[2] = { p->v[0], p->v[1] }, r[2];
    wall_react(1, 0, 1, p->v, mu, r);
    for (int i = 0; i < 2; i++)
        p->v[i] += r[i];
    p->v[0] = 0;
    for (int i = 0; i < 2; i++)
        p->dissipated -= r[i] * 0.5 * (before[i] + p->v[i]);
    p->closed = true;
    c->impacts++;
    c->impulses -= r[0];
}

/* Accelerations by Gauss's principle, and storing the sample. */
static void wall_keep(const particle *p, const double *impulse, double over, double mu, columns *c)
{
    size_t i = c->n++;
    double a[2] = { p->f[0], p->f[1] }, *u = c->q + 2 * i, *v = c->v + 2 * i;
    if (p->closed && a[0] > 0) {
        double bound = mu * a[0], rt = p->v[1] > 0   ? -bound
                                       : p->v[1] < 0 ? bound
                                                     : -fmax(-bound, fmin(bound, a[1]));
        a[0] = 0;
        a[1] += rt;
    }
    memcpy(u, p->u, sizeof p->u);
    memcpy(v, p->v, sizeof p->v);
    memcpy(c->a + 2 * i, a, sizeof a);
    double kinetic = 0.5 * (v[0] * v[0] + v[1] * v[1]);
    double potential = 0.5 * (u[0] * (well[0][0] * u[0] + 2 * well[0][1] * u[1]) + well[1][1] * u[1] * u[1]);
    c->k[i] = (kept){ p->t,
                      kinetic + potential,
                      p->dissipated,
                      p->work + potential,
                      -u[0],
                      -over * impulse[0],
                      over * impulse[1],
                      v[1],
                      !p->closed  ? 0
                      : v[1] == 0 ? 1
                                  : 2 };
}

static void wall_step(particle *p, const implicit *m, double mu, double end, columns *c, double *impulse)
{
    particle o;
    double done = 0;
    impulse[0] = impulse[1] = 0;
    for (implicit part = *m;; part = implicit_of(m->h - done)) {
        wall_smooth(p, &part, mu, &o);
        bool meets = !p->closed && o.u[0] > 0;
        if (meets)
            done += wall_meets(p, part.h, mu, &o);
        for (int i = 0; i < 2; i++)
            impulse[i] += o.r[i];
        if (p->closed && !(o.r[0] < 0) && o.v[0] < -1e-12)
            o.closed = false;
        *p = o;
        if (!meets)
            break;
        wall_hit(p, mu, c);
    }
    p->t = end;
}

static void klarbring_hand(columns *c, size_t steps, size_t every)
{
    const double h = 1e-4, mu = 0.4;
    particle p = { .u = { -0.1, 0 }, .v = { 1, 0.3 } };
    double impulse[2] = { 0, 0 };
    implicit m = implicit_of(h);
    well_force(0, p.u, p.f);
    wall_keep(&p, impulse, 0, mu, c);
    for (size_t i = 1; i <= steps; i++) {
        wall_step(&p, &m, mu, (double)i * h, c, impulse);
        if (i % every == 0)
            wall_keep(&p, impulse, 1 / h, mu, c);
    }
}

static bool klarbring_same(cdl *s, const columns *c)
{
    double *x = malloc(c->n * sizeof *x), *rn = columns_of(c, offsetof(kept, rn)),
           *d = columns_of(c, offsetof(kept, dissipated));
    bool ok = same_column(s, "klarbring", "wall.rn", rn, c->n, 1e-8) &&
              same_column(s, "klarbring", "dissipated", d, c->n, 1e-9);
    static const char *const names[] = { "u[1]", "u[2]" }, *const rates[] = { "u[1]'", "u[2]'" };
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < c->n; i++)
            x[i] = c->q[2 * i + k];
        ok = ok && same_column(s, "klarbring", names[k], x, c->n, 1e-9);
        for (size_t i = 0; i < c->n; i++)
            x[i] = c->v[2 * i + k];
        ok = ok && same_column(s, "klarbring", rates[k], x, c->n, 1e-9);
    }
    free(x);
    free(rn);
    free(d);
    return ok;
}

/* ---- both ---- */
/* Least time of the repeats; smallest and largest ratio of two consecutive runs. */
typedef struct {
    double cdl, hand, low, high;
    bool same;
} times;

/* A million steps with each, the least time of several repeats; the numbers are compared once. */
static times compare(const char *format, const char *native, double h, size_t every, size_t nq,
                     void (*by_hand)(columns *, size_t, size_t), bool (*same)(cdl *, const columns *))
{
    const size_t steps = 1000000;
    times t = { INFINITY, INFINITY, INFINITY, 0, true };
    char option[96] = "", text[1024];
    snprintf(option, sizeof option, ", native = %s", native);
    if (every > 1)
        snprintf(option + strlen(option), sizeof option - strlen(option), ", every = %.17g",
                 (double)every * h);
    snprintf(text, sizeof text, format, option);
    columns c = columns_new(steps + 1, nq);
    for (int k = 0; k < REPEAT; k++) {
        cdl *s;
        double own = run_text(text, &s) / (double)steps;
        columns_empty(&c);
        double start = seconds();
        by_hand(&c, steps, every);
        double hand = (seconds() - start) / (double)steps;
        t.cdl = fmin(t.cdl, own);
        t.hand = fmin(t.hand, hand);
        if (k > 0) { /* memory is allocated, and code is compiled */
            t.low = fmin(t.low, own / hand);
            t.high = fmax(t.high, own / hand);
        }
        if (k == 0)
            t.same = same(s, &c);
        cdl_free(s);
    }
    columns_free(&c);
    return t;
}

enum { EVERY = 1000, NANOSECONDS = 50 };

/* One line: the problem with the interpreter or with compiled steps, with all samples stored or few. */
typedef struct {
    const char *problem, *text, *native;
    double h, most; /* the ratio to reach, or nanoseconds per step if it is above NANOSECONDS */
    size_t every, nq;
    void (*by_hand)(columns *, size_t, size_t);
    bool (*same)(cdl *, const columns *);
} row;

static bool row_run(const row *r)
{
    char name[128], reach[32];
    times t = compare(r->text, r->native, r->h, r->every, r->nq, r->by_hand, r->same);
    snprintf(name, sizeof name, "%s, 1e6 steps%s%s (ratios %.2f to %.2f)", r->problem,
             r->every > 1 ? ", every 1000th kept" : "", strcmp(r->native, "never") ? ", native" : "", t.low,
             t.high);
    bool by_time = r->most > NANOSECONDS;
    snprintf(reach, sizeof reach, by_time ? "%g ns" : "%g x", r->most);
    report(name, "ns a step", 1e9 * t.cdl, 1e9 * t.hand, reach,
           by_time ? 1e9 * t.cdl <= r->most : t.cdl <= r->most * t.hand);
    return t.same;
}

static bool rows_run(const row *rows, size_t n)
{
    bool ok = true;
    for (size_t i = 0; i < n; i++)
        ok &= row_run(&rows[i]);
    return ok;
}

static bool ball_run(void)
{
    static const row rows[] = {
        { "ball", ball_text, "never", 5e-6, 80, 1, 1, ball_hand, ball_same },
        { "ball", ball_text, "never", 5e-6, 3, EVERY, 1, ball_hand, ball_same },
        { "ball", ball_text, "always", 5e-6, 1.5, EVERY, 1, ball_hand, ball_same },
    };
    return rows_run(rows, sizeof rows / sizeof *rows);
}

static bool klarbring_run(void)
{
    static const row rows[] = {
        { "klarbring", klarbring_text, "never", 1e-4, 3.9, 1, 2, klarbring_hand, klarbring_same },
        { "klarbring", klarbring_text, "never", 1e-4, 3, EVERY, 2, klarbring_hand, klarbring_same },
        { "klarbring", klarbring_text, "always", 1e-4, 1.5, EVERY, 2, klarbring_hand, klarbring_same },
    };
    return rows_run(rows, sizeof rows / sizeof *rows);
}

/* ---- from the command line: wall time from the start of the process to its end ---- */
extern char **environ;

static bool command_once(const char *program, char *dir, char *file, double *took)
{
    char *args[] = { (char *)"cdl", (char *)"run", (char *)"-o", dir, file, NULL };
    posix_spawn_file_actions_t quiet;
    pid_t pid;
    int status = 1;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", 1, 0);
    double start = seconds_of(CLOCK_MONOTONIC);
    bool ok = posix_spawnp(&pid, program, &quiet, NULL, args, environ) == 0 &&
              waitpid(pid, &status, 0) == pid && status == 0;
    *took = seconds_of(CLOCK_MONOTONIC) - start;
    posix_spawn_file_actions_destroy(&quiet);
    return ok;
}

static bool command_run(void)
{
    static const char text[] = "model ball { param g = 9.81, e = 0.8; dof y = 1, y' = 0; y'' = -g; "
                               "constraint floor: y >= 0 { impact = newton(e) } }\n"
                               "run ball for 2 with sweeping(h = 1e-3)\n"
                               "expect y(0.4) == 1 - 9.81*0.4^2/2 within 1e-9\n";
    const char *program = getenv("CDL");
    char dir[] = "/tmp/cdl_bench_XXXXXX", file[sizeof dir + 16], made[sizeof dir + 16];
    double best = INFINITY, took;
    bool ok = mkdtemp(dir) != NULL;
    snprintf(file, sizeof file, "%s/ball.cdl", dir);
    snprintf(made, sizeof made, "%s/manifest.json", dir);
    FILE *f = ok ? fopen(file, "w") : NULL;
    ok = f && fputs(text, f) >= 0;
    if (f)
        fclose(f);
    for (int k = 0; ok && k < 20; k++) {
        ok = command_once(program ? program : "cdl", dir, file, &took);
        best = fmin(best, took);
    }
    unlink(file);
    unlink(made);
    rmdir(dir);
    if (!ok) {
        fprintf(stderr, "command line: %s run failed\n", program ? program : "cdl");
        return false;
    }
    report("ball, 2000 steps from the command line", "ms", 1e3 * best, NAN, "15 ms", best <= 15e-3);
    return true;
}

/* ---- the list of problems ---- */
static const bench problems[] = {
    { "ball", ball_run },
    { "klarbring", klarbring_run },
    { "command", command_run },
};

int main(int argc, char **argv)
{
    return run_problems(problems, sizeof problems / sizeof *problems, argc, argv);
}
