/* Bodies without a structure to exploit, compared with the same schemes as an expert writes them in C: balls
   that bounce separately, and balls poured into a box in space, with friction and rotation. Five runs of
   each, in turn; the ratio is that of the shortest times, the spread that of neighbours. CDL follows impacts
   one by one by default; the second set of grains takes whole steps, as the C does. `bench_grains balls` runs
   the problems with that in their name; BENCH_SIDE=cdl or =hand runs only that side, once, to count its
   instructions. */
#define _GNU_SOURCE
#include <math.h>
#include "bench.h"

/* Seconds of both sides. */
typedef struct times {
    double cdl, hand;
    spread ratios;
} times;

static bool side_wanted(const char *side)
{
    const char *only = getenv("BENCH_SIDE");
    return !only || !strcmp(only, side);
}

/* Both functions return their seconds. */
static times compare(double (*own)(void *), double (*hand)(void *), void *of)
{
    times t = { INFINITY, INFINITY, SPREAD_NONE };
    for (int k = 0; k < (getenv("BENCH_SIDE") ? 1 : RUNS); k++) {
        double a = side_wanted("cdl") ? own(of) : NAN, b = side_wanted("hand") ? hand(of) : NAN;
        t.cdl = lesser(t.cdl, a);
        t.hand = lesser(t.hand, b);
        if (a / b > 0)
            spread_add(&t.ratios, a / b);
    }
    return t;
}

static void report_times(const char *problem, const char *unit, double scale, times t, double reach)
{
    char name[160], text[32];
    if (getenv("BENCH_SIDE"))
        return;
    snprintf(name, sizeof name, "%s (ratios %.2f to %.2f)", problem, t.ratios.low, t.ratios.high);
    snprintf(text, sizeof text, "%g x", reach);
    report(name, unit, scale * t.cdl, scale * t.hand, text, t.cdl <= reach * t.hand);
}

/* ---- 1000 balls that bounce separately ---- */
enum { BALLS = 1000, BALL_STEPS = 2000 };

static const char balls_text[] = "model balls {\n"
                                 "    param N = 1000, g = 9.81, e = 0.8\n"
                                 "    dof y[i in 1..N] = 1 + i/N, y' = 0\n"
                                 "    for i in 1..N { kinetic y[i]'^2/2; potential g*y[i] }\n"
                                 "    constraint floor[i in 1..N]: y[i] >= 0 { impact = newton(e) }\n"
                                 "}\n"
                                 "run balls for 2 with sweeping(h = 1e-3%s)\n";

typedef struct ball_kept {
    double *y, *v, *rn, *t, *energy, *dissipated;
    unsigned char *status;
} ball_kept;

typedef struct balls {
    const char *text;
    int every;
    double end, lost, impulses; /* by hand: end position of the last ball, sums for all */
    double cdl_end, cdl_lost;
} balls;

typedef struct bouncing {
    double *y, *v, *rn;
    bool *closed;
    double lost, impulse;
    long impacts;
} bouncing;

static void balls_keep(const bouncing *b, const ball_kept *k, int at, double t)
{
    double energy = 0;
    size_t from = (size_t)at * BALLS;
    for (size_t i = 0; i < BALLS; i++) {
        k->y[from + i] = b->y[i];
        k->v[from + i] = b->v[i];
        k->rn[from + i] = b->rn[i];
        k->status[from + i] = b->closed[i];
        energy += 0.5 * b->v[i] * b->v[i] + 9.81 * b->y[i];
    }
    k->t[at] = t;
    k->energy[at] = energy;
    k->dissipated[at] = b->lost;
}

/* The rest of a step for a ball that reaches the floor in it. */
static void ball_follow(bouncing *b, int i, double h)
{
    const double g = 9.81, e = 0.8;
    double y = b->y[i], v = b->v[i], left = h;
    for (int hits = 0; left > 0; hits++) {
        double to = (v + sqrt(v * v + 2 * g * y)) / g;
        if (to >= left || b->closed[i]) {
            y = b->closed[i] ? 0 : y + left * v - 0.5 * g * left * left;
            v = b->closed[i] ? 0 : v - g * left;
            break;
        }
        v -= g * to;
        left -= to;
        y = 0;
        double after = hits < 10 && v < -1e-11 ? -e * v : 0, impulse = after - v;
        b->lost -= 0.5 * (v + after) * impulse;
        b->impulse += impulse;
        b->impacts++;
        v = after;
        b->closed[i] = after == 0;
    }
    b->y[i] = y;
    b->v[i] = v;
    b->rn[i] = b->closed[i] ? g * left / h : 0;
}

static double balls_hand(void *of)
{
    const double h = 1e-3, fall = 9.81 * h;
    balls *x = of;
    size_t samples = (size_t)(BALL_STEPS / x->every + 1), all = samples * BALLS * sizeof(double),
           one = samples * sizeof(double);
    ball_kept k = {
        malloc(all), malloc(all), malloc(all), malloc(one), malloc(one), malloc(one), malloc(samples * BALLS)
    };
    double *room = calloc(3 * BALLS, sizeof *room);
    bouncing b = { room, room + BALLS, room + 2 * BALLS, calloc(BALLS, sizeof(bool)), 0, 0, 0 };
    double start = seconds();
    for (int i = 0; i < BALLS; i++)
        b.y[i] = 1 + (i + 1.0) / BALLS;
    balls_keep(&b, &k, 0, 0);
    for (int s = 1; s <= BALL_STEPS; s++) {
        for (int i = 0; i < BALLS; i++) {
            double v = b.v[i] - fall, y = b.y[i] + 0.5 * h * (b.v[i] + v);
            if (y > 0 && !b.closed[i]) {
                b.y[i] = y;
                b.v[i] = v;
            } else if (!b.closed[i])
                ball_follow(&b, i, h);
            else
                b.rn[i] = 9.81;
        }
        if (s % x->every == 0)
            balls_keep(&b, &k, s / x->every, s * h);
    }
    double took = seconds() - start;
    x->end = b.y[BALLS - 1];
    x->lost = b.lost;
    x->impulses = b.impulse;
    void *held[] = { k.y, k.v, k.rn, k.t, k.energy, k.dissipated, k.status, room, b.closed };
    for (size_t i = 0; i < sizeof held / sizeof *held; i++)
        free(held[i]);
    return took;
}

static double balls_own(void *of)
{
    balls *x = of;
    cdl *s;
    double took = run_text(x->text, &s);
    x->cdl_end = value(s, "last(y[1000])");
    x->cdl_lost = value(s, "last(dissipated)");
    cdl_free(s);
    return took;
}

static bool balls_of(const char *option, int every, const char *name)
{
    char text[1024];
    snprintf(text, sizeof text, balls_text, option);
    balls x = { .text = text, .every = every };
    times t = compare(balls_own, balls_hand, &x);
    report_times(name, "us a step", 1e6 / BALL_STEPS, t, 6);
    bool same = fabs(x.end - x.cdl_end) <= 1e-9 && fabs(x.lost - x.cdl_lost) <= 1e-9 * x.lost;
    if (!same && !getenv("BENCH_SIDE"))
        fprintf(stderr, "balls: y %.12g, %.12g by hand; lost %.12g, %.12g\n", x.cdl_end, x.end, x.cdl_lost,
                x.lost);
    return same || getenv("BENCH_SIDE");
}

static bool few_run(void)
{
    return balls_of(", every = 0.1", 100, "1000 bouncing balls, every 100th step kept");
}

static bool balls_run(void)
{
    bool ok = few_run();
    return balls_of("", 1, "1000 bouncing balls, all steps kept") && ok;
}

/* ---- balls poured into a box ---- */
static const char grains_text[] =
    "model grains {\n"
    "    param N = %d, cols = %d, R = 0.01, W = %.17g, mu = 0.5, g = 9.81\n"
    "    dof p[i in 1..N] in R3 = [R + 2.2*R*mod(i - 1, cols) + 1e-3*mod(floor((i - 1)/cols^2), 3), "
    "R + 2.2*R*mod(floor((i - 1)/cols), cols) + 1e-3*mod(floor((i - 1)/cols^2), 2), "
    "R + 2.2*R*floor((i - 1)/cols^2)]\n"
    "    dof a[i in 1..N] in R3 = [0, 0, 0]\n"
    "    for i in 1..N { kinetic norm(p[i]')^2/2 + (2/5*R^2)*norm(a[i]')^2/2; potential g*p[i][3] }\n"
    "    constraint floor[i in 1..N]: p[i][3] >= R { slip = p[i]' - R*cross(a[i]', [0, 0, 1]), friction = "
    "coulomb(mu) }\n"
    "    constraint left[i in 1..N]:  p[i][1] >= R\n"
    "    constraint right[i in 1..N]: p[i][1] <= W - R\n"
    "    constraint front[i in 1..N]: p[i][2] >= R\n"
    "    constraint back[i in 1..N]:  p[i][2] <= W - R\n"
    "    constraint touch[i in 1..N, j in i+1..N]: norm(p[i] - p[j]) >= 2*R {\n"
    "        slip = p[i]' - p[j]' - R*cross(a[i]' + a[j]', (p[i] - p[j])/norm(p[i] - p[j])), friction = "
    "coulomb(mu)\n"
    "    }\n"
    "}\n"
    "run grains for %g with sweeping(h = 1e-3, tolerance = %g, every = 0.05%s)\n";

static const double radius = 0.01;
enum { FLOOR = -1, WALL = -2, MOST_AT = 16, CELLS = 3 };

/* v: velocity; s: radius times the angular velocity. */
typedef struct grain {
    double x[3], v[3], s[3];
    int next;
} grain;

/* n points to i; r: normal impulse; t: friction as a vector across n. */
typedef struct touch {
    double n[3], gap, r, t[3], mu;
    int i, j;
} touch;

typedef struct box {
    int n, contacts, was, cells[CELLS];
    grain *g;
    touch *c, *old;
    int *cell, *first;
    double wide;
} box;

typedef struct grains {
    int n, steps;
    double tolerance;
    const char *text;
    double wide, height, overlap; /* by hand */
    double cdl_height, cdl_overlap, visits;
} grains;

static int grains_columns(int n)
{
    int cols = 1;
    while (cols * cols * cols < n)
        cols++;
    return cols;
}

static inline double dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static inline void cross(const double *a, const double *b, double *c)
{
    c[0] = a[1] * b[2] - a[2] * b[1];
    c[1] = a[2] * b[0] - a[0] * b[2];
    c[2] = a[0] * b[1] - a[1] * b[0];
}

static void touch_add(box *b, int i, int j, int wall, const double *n, double gap)
{
    touch *c = &b->c[b->contacts++];
    *c = (touch){ .i = i, .j = j - wall, .gap = gap, .mu = j == WALL ? 0 : 0.5 };
    memcpy(c->n, n, sizeof c->n);
    for (int k = b->first[i]; k < b->was && b->old[k].i == i; k++)
        if (b->old[k].j == c->j) {
            /* friction is projected to stay across the normal */
            double along = dot(b->old[k].t, n);
            c->r = b->old[k].r;
            for (int a = 0; a < 3; a++)
                c->t[a] = b->old[k].t[a] - along * n[a];
            break;
        }
}

static int box_cell(const box *b, const double *x, int *at)
{
    for (int k = 0; k < CELLS; k++) {
        at[k] = (int)(x[k] / (2.6 * radius));
        at[k] = at[k] < 0 ? 0 : at[k] >= b->cells[k] ? b->cells[k] - 1 : at[k];
    }
    return (at[0] * b->cells[1] + at[1]) * b->cells[2] + at[2];
}

static void box_walls(box *b, int i, double reach)
{
    const double *x = b->g[i].x;
    if (x[2] - radius < reach)
        touch_add(b, i, FLOOR, 0, (double[]){ 0, 0, 1 }, x[2] - radius);
    for (int k = 0; k < 2; k++) {
        double n[3] = { k == 0, k == 1, 0 }, back[3] = { -n[0], -n[1], 0 };
        if (x[k] - radius < reach)
            touch_add(b, i, WALL, 2 * k, n, x[k] - radius);
        if (b->wide - radius - x[k] < reach)
            touch_add(b, i, WALL, 2 * k + 1, back, b->wide - radius - x[k]);
    }
}

static void box_pairs(box *b, int i, int cell, double reach)
{
    const double *x = b->g[i].x;
    for (int j = b->cell[cell]; j >= 0; j = b->g[j].next) {
        double d[3] = { x[0] - b->g[j].x[0], x[1] - b->g[j].x[1], x[2] - b->g[j].x[2] }, l2 = dot(d, d),
               far = 2 * radius + 2 * reach;
        if (j <= i || l2 > far * far)
            continue;
        double l = sqrt(l2), n[3] = { d[0] / l, d[1] / l, d[2] / l };
        touch_add(b, i, j, 0, n, l - 2 * radius);
    }
}

static void box_contacts(box *b, double h)
{
    int at[CELLS];
    touch *old = b->old;
    b->old = b->c;
    b->c = old;
    b->was = b->contacts;
    b->contacts = 0;
    for (int i = 0; i < b->n; i++)
        b->first[i] = b->was;
    for (int k = b->was; k-- > 0;)
        b->first[b->old[k].i] = k;
    memset(b->cell, -1, sizeof(int) * (size_t)(b->cells[0] * b->cells[1] * b->cells[2]));
    for (int i = b->n; i-- > 0;) {
        int c = box_cell(b, b->g[i].x, at);
        b->g[i].next = b->cell[c];
        b->cell[c] = i;
    }
    for (int i = 0; i < b->n; i++) {
        const grain *g = &b->g[i];
        double reach = 2 * h * (fabs(g->v[0]) + fabs(g->v[1]) + fabs(g->v[2])) + 1e-4;
        box_walls(b, i, reach);
        box_cell(b, g->x, at);
        for (int x = at[0] - (at[0] > 0); x <= at[0] + 1 && x < b->cells[0]; x++)
            for (int y = at[1] - (at[1] > 0); y <= at[1] + 1 && y < b->cells[1]; y++)
                for (int z = at[2] - (at[2] > 0); z <= at[2] + 1 && z < b->cells[2]; z++)
                    box_pairs(b, i, (x * b->cells[1] + y) * b->cells[2] + z, reach);
    }
}

static inline void touch_push(box *b, const touch *c, double dn, const double *dt)
{
    double p[3], turn[3];
    grain *i = &b->g[c->i], *j = c->j >= 0 ? &b->g[c->j] : NULL;
    cross(c->n, dt, turn);
    for (int k = 0; k < 3; k++) {
        p[k] = dn * c->n[k] + dt[k];
        i->v[k] += p[k];
        i->s[k] -= 2.5 * turn[k];
    }
    for (int k = 0; j && k < 3; k++) {
        j->v[k] -= p[k];
        j->s[k] -= 2.5 * turn[k];
    }
}

/* One contact: its block is 1/m of each body for the normal, 7/2 of that for tangents. */
static inline double touch_relax(box *b, touch *c, double over_h, double *size)
{
    const grain *i = &b->g[c->i], *j = c->j >= 0 ? &b->g[c->j] : NULL;
    double v[3], s[3], W = j ? 2 : 1, dt[3] = { 0, 0, 0 };
    for (int k = 0; k < 3; k++) {
        v[k] = i->v[k] - (j ? j->v[k] : 0);
        s[k] = i->s[k] + (j ? j->s[k] : 0);
    }
    double un = dot(v, c->n), r = greater(c->r - (un + c->gap * over_h) / W, 0), dn = r - c->r, e = fabs(dn);
    if (r == 0 && c->r == 0)
        return 0;
    if (c->mu > 0) {
        double turn[3], t[3], bound = c->mu * r;
        cross(s, c->n, turn);
        for (int k = 0; k < 3; k++)
            t[k] = c->t[k] - (v[k] - un * c->n[k] - turn[k]) / (3.5 * W);
        double l2 = dot(t, t), f = l2 > bound * bound ? bound / sqrt(l2) : 1;
        for (int k = 0; k < 3; k++) {
            dt[k] = f * t[k] - c->t[k];
            c->t[k] = f * t[k];
            e = greater(e, fabs(dt[k]));
        }
    }
    c->r = r;
    *size = greater(*size, r);
    touch_push(b, c, dn, dt);
    return e;
}

static void box_solve(box *b, double h, double tolerance)
{
    for (int k = 0; k < b->contacts; k++)
        touch_push(b, &b->c[k], b->c[k].r, b->c[k].t);
    for (int it = 0; it < 300; it++) {
        double e = 0, size = 0;
        for (int k = 0; k < b->contacts; k++)
            e = greater(e, touch_relax(b, &b->c[k], 1 / h, &size));
        if (e <= tolerance * size)
            break;
    }
}

static void box_fill(box *b, int n)
{
    int cols = grains_columns(n);
    for (int i = 0; i < n; i++) {
        int layer = i / (cols * cols);
        b->g[i].x[0] = radius + 2.2 * radius * (i % cols) + 1e-3 * (layer % 3);
        b->g[i].x[1] = radius + 2.2 * radius * (i / cols % cols) + 1e-3 * (layer % 2);
        b->g[i].x[2] = radius + 2.2 * radius * layer;
    }
}

static double grains_hand(void *of)
{
    const double h = 1e-3;
    grains *x = of;
    int cols = grains_columns(x->n), across = (int)(x->wide / (2.6 * radius)) + 2;
    box b = { .n = x->n, .wide = x->wide, .cells = { across, across, 2 * cols + 8 } };
    size_t n = (size_t)x->n;
    b.g = calloc(n, sizeof *b.g);
    b.c = calloc(n * MOST_AT, sizeof *b.c);
    b.old = calloc(n * MOST_AT, sizeof *b.old);
    b.first = calloc(n, sizeof *b.first);
    b.cell = calloc((size_t)(b.cells[0] * b.cells[1] * b.cells[2]), sizeof *b.cell);
    double start = seconds();
    box_fill(&b, x->n);
    x->overlap = x->height = 0;
    for (int s = 0; s < x->steps; s++) {
        box_contacts(&b, h);
        for (int k = 0; k < b.contacts; k++)
            x->overlap = greater(x->overlap, -b.c[k].gap);
        for (int i = 0; i < x->n; i++)
            b.g[i].v[2] -= 9.81 * h;
        box_solve(&b, h, x->tolerance);
        for (int i = 0; i < x->n; i++)
            for (int k = 0; k < 3; k++)
                b.g[i].x[k] += h * b.g[i].v[k];
    }
    double took = seconds() - start;
    for (int i = 0; i < x->n; i++)
        x->height += b.g[i].x[2] / x->n;
    void *held[] = { b.g, b.c, b.old, b.first, b.cell };
    for (size_t i = 0; i < sizeof held / sizeof *held; i++)
        free(held[i]);
    return took;
}

static double grains_own(void *of)
{
    grains *x = of;
    char mean[64];
    cdl *s;
    double took = run_text(x->text, &s);
    snprintf(mean, sizeof mean, "sum(last(p[i][3]) for i in 1..%d)/%d", x->n, x->n);
    x->cdl_height = value(s, mean);
    x->cdl_overlap = value(s, "max_penetration");
    x->visits = value(s, "swept");
    cdl_free(s);
    return took;
}

static bool grains_of(int n, int steps, double tolerance, const char *option)
{
    char text[4096], name[128];
    int cols = grains_columns(n);
    grains x = {
        .n = n, .steps = steps, .tolerance = tolerance, .text = text, .wide = 2.2 * radius * cols + 0.02
    };
    snprintf(text, sizeof text, grains_text, n, cols, x.wide, 1e-3 * steps, tolerance, option);
    times t = compare(grains_own, grains_hand, &x);
    snprintf(name, sizeof name, "%d grains in space, tolerance %g%s", n, tolerance, option);
    report_times(name, "ms a step", 1e3 / steps, t, 2.5);
    if (getenv("BENCH_SIDE"))
        return true;
    snprintf(name, sizeof name, "%d grains in space%s, overlap (by hand %.1e)", n, option, x.overlap);
    report(name, "m", x.cdl_overlap, 0, "1e-5", x.cdl_overlap <= 1e-5);
    bool same = fabs(x.cdl_height - x.height) <= 0.05 * x.height;
    if (!same)
        fprintf(stderr, "%d grains: mean height %g, by hand %g\n", n, x.cdl_height, x.height);
    return same;
}

static bool grains_run(void)
{
    bool ok = grains_of(100, 300, 1e-2, "");
    ok &= grains_of(100, 300, 1e-2, ", cut = never");
    return grains_of(1000, 300, 1e-2, ", cut = never") && ok;
}

/* Takes minutes. */
static bool large_run(void)
{
    bool ok = grains_of(5000, 150, 1e-2, ", cut = never");
    return grains_of(20000, 60, 1e-2, ", cut = never") && ok;
}

/* ---- the list of problems ---- */
static const bench problems[] = {
    { "balls", balls_run },
    { "grains", grains_run },
    { "large", large_run }, /* this one and those below run only if named */
    { "few", few_run },
};

/* Lines for the table of tests/bench/peers: bench_grains peer grains|balls N STEPS. */
static void peer_line(const char *who, const char *problem, int n, double step, double overlap, double height)
{
    printf("%s\t%s\t%d\t%.4g\t%.2g\t%.5g\n", who, problem, n, 1e3 * step, overlap, height);
}

static int peer_run(char **argv)
{
    int n = atoi(argv[3]), steps = atoi(argv[4]), cols = grains_columns(n);
    char text[4096];
    if (!strcmp(argv[2], "balls")) {
        snprintf(text, sizeof text, balls_text, ", every = 0.1");
        balls x = { .text = text, .every = 100 };
        double own = balls_own(&x) / BALL_STEPS, hand = balls_hand(&x) / BALL_STEPS;
        peer_line("CDL", "balls", BALLS, own, 0, NAN);
        peer_line("C by hand", "balls", BALLS, hand, 0, NAN);
        return 0;
    }
    static const struct {
        const char *who, *option;
    } way[] = { { "CDL", "" }, { "CDL, cut = never", ", cut = never" } };
    grains x = {
        .n = n, .steps = steps, .tolerance = 1e-2, .text = text, .wide = 2.2 * radius * cols + 0.02
    };
    for (size_t k = 0; k < sizeof way / sizeof *way; k++) {
        snprintf(text, sizeof text, grains_text, n, cols, x.wide, 1e-3 * steps, x.tolerance, way[k].option);
        double took = grains_own(&x) / steps;
        peer_line(way[k].who, "grains", n, took, x.cdl_overlap, x.cdl_height);
    }
    double took = grains_hand(&x) / steps;
    peer_line("C by hand", "grains", n, took, x.overlap, x.height);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && !strcmp(argv[1], "peer"))
        return peer_run(argv);
    return run_problems(problems, argc > 1 ? sizeof problems / sizeof *problems : 2, argc, argv);
}
