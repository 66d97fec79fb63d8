/* The dynamics core at different sizes: a ball beside constraints that never touch, an elastic bar against a
   wall compared with a hand-written tridiagonal solver, a beam on stops compared with a banded one, rows of
   blocks that stick and slip. Each result is checked. `bench_core bar` runs the problems with that in their
   name. */
#include <math.h>
#include "bench.h"

static double number(cdl *s, const char *text)
{
    double x = NAN;
    if (cdl_value(s, text, &x) != CDL_OK)
        exit(1);
    return x;
}

/* ---- inert constraints ---- */
static const char inert_model[] = "model ball {\n"
                                  "    param N = 10, g = 9.81, e = 0.8\n"
                                  "    dof y = 1, x[i in 1..N] = i\n"
                                  "    y'' = -g\n"
                                  "    for i in 1..N { x[i]'' = 0 }\n"
                                  "    constraint floor: y >= 0 { impact = newton(e) }\n"
                                  "    constraint far[i in 1..N]: x[i] >= 0\n"
                                  "}\n"
                                  "run ball(N = %d) for %g with sweeping(h = 1e-3, every = %g)\n";

/* Seconds of 1400 steps with this number of them, and the error of the ball relative to the closed form. */
static double inert_of(int n, double exact, double *off)
{
    char text[1024], once[1024];
    cdl *s;
    snprintf(once, sizeof once, inert_model, n, 2e-3, 2e-3);
    snprintf(text, sizeof text, inert_model, n, 1.4, 1.4);
    double took = time_beyond(once, text, NULL, NULL, &s).own;
    *off = fmax(*off, fabs(number(s, "last(y)") - exact));
    cdl_free(s);
    return took;
}

static bool inert(void)
{
    static const int sizes[] = { 10, 40, 400, 4000 };
    const double t2 = sqrt(2 / 9.81) + 1.6 * sqrt(2 * 9.81) / 9.81, left = 1.4 - t2,
                 exact = 0.64 * sqrt(2 * 9.81) * left - 9.81 / 2 * left * left;
    double first = 0, cost = 0, off = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        double took = inert_of(sizes[i], exact, &off);
        if (i == 0)
            first = took;
        else
            cost = (took - first) / 1400 / (sizes[i] - sizes[0]) * 1e9;
    }
    bool cheap = cost > 0 && cost <= 20;
    report("ball beside 4000 inert constraints, each", "ns a step", cost, 0, "20 ns", cheap);
    report("ball beside 10 to 4000 inert constraints, off", "m", off, 0, "1e-12", off <= 1e-12);
    return cheap && off <= 1e-12;
}

/* ---- an elastic bar against a wall ---- */
static const char bar_model[] =
    "model bar {\n"
    "    param N = 1000, v0 = 0.01\n"
    "    let dx = 1/N\n"
    "    dof u[i in 0..N] = 0, u' = [-v0 for i in 0..N]\n"
    "    for i in 0..N { kinetic dx*(if i == 0 or i == N then 0.5 else 1)*u[i]'^2/2 }\n"
    "    for i in 1..N { potential (u[i] - u[i-1])^2/dx/2 }\n"
    "    constraint wall: u[0] >= 0\n"
    "}\n"
    "run bar(N = %d) for %g with sweeping(h = 1e-3, every = %g)\n";

typedef struct bar_steps {
    int n, steps;
} bar_steps;

/* The theta scheme with one contact: forces and elimination in one pass, back substitution, then the column
   of the contact. */
static double bar_hand(void *of)
{
    const bar_steps *b = of;
    const double h = 1e-3, k = b->n, a = 0.25 * h * h;
    size_t m = (size_t)b->n + 1;
    double *room = calloc(6 * m, sizeof *room), *u = room, *v = u + m, *d = v + m, *l = d + m, *x = l + m,
           *g = x + m;
    for (size_t i = 0; i < m; i++) {
        bool end = i == 0 || i + 1 == m;
        v[i] = i ? -0.01 : 0;
        d[i] = (end ? 0.5 : 1.0) / b->n + a * k * (end ? 1 : 2);
        if (i) {
            l[i] = -a * k * d[i - 1];
            d[i] -= l[i] * -a * k;
        }
        d[i] = 1 / d[i];
    }
    g[0] = 1;
    for (size_t i = 1; i < m; i++)
        g[i] = -l[i] * g[i - 1];
    g[m - 1] *= d[m - 1];
    for (size_t i = m - 1; i-- > 0;)
        g[i] = g[i] * d[i] - l[i + 1] * g[i + 1];
    double start = seconds();
    for (int step = 0; step < b->steps; step++) {
        double before = 0, last = 0, at = u[0] + 0.5 * h * v[0];
        for (size_t i = 0; i + 1 < m; i++) {
            double ahead = u[i + 1] + 0.5 * h * v[i + 1], next = k * (ahead - at);
            x[i] = last = h * (next - before) - l[i] * last;
            at = ahead;
            before = next;
        }
        x[m - 1] = last = (-h * before - l[m - 1] * last) * d[m - 1];
        for (size_t i = m - 1; i-- > 0;)
            x[i] = last = x[i] * d[i] - l[i + 1] * last;
        double r = u[0] <= 0 && v[0] + x[0] < 0 ? -(v[0] + x[0]) / g[0] : 0;
        for (size_t i = 0; i < m; i++) {
            double v1 = v[i] + x[i] + r * g[i];
            u[i] += 0.5 * h * (v[i] + v1);
            v[i] = v1;
        }
    }
    double took = seconds() - start;
    if (!isfinite(u[b->n]))
        exit(1);
    free(room);
    return took;
}

/* the pulse has returned after 2L/c: the bar leaves the wall, its end moves away */
static bool bar_answer(cdl *s)
{
    double settled = number(s, "last(u[0])"), rebound = number(s, "mean([last(u'[i]) for i in 0..100])");
    bool back = fabs(rebound / 0.01 - 1) < 0.1;
    report("  its wall is left, at", "m", settled, 0, "> 0", settled > 0);
    report("  its rebound over the approach", "1", rebound / 0.01, 0, "1 within 10 %", back);
    return settled > 0 && back;
}

static bool bar(void)
{
    static const bar_steps sizes[] = { { 100, 3000 }, { 1000, 3000 }, { 10000, 1000 }, { 100000, 1000 } };
    double each[4];
    bool ok = true;
    for (size_t i = 0; i < 4; i++) {
        char text[1024], once[1024], name[80];
        cdl *s;
        bar_steps of = sizes[i];
        double all = (double)of.steps * of.n;
        /* compilation is timed by a run of two steps that stores two samples as well */
        snprintf(once, sizeof once, bar_model, of.n, 2e-3, 2e-3);
        snprintf(text, sizeof text, bar_model, of.n, 1e-3 * (of.steps + 2), 1e-3 * (of.steps + 2));
        timing t = time_beyond(once, text, bar_hand, &of, &s);
        each[i] = t.own / all * 1e9;
        bool fast = t.own > 0 && t.own <= 4 * t.hand;
        snprintf(name, sizeof name, "elastic bar of %d elements", of.n);
        report_timing(name, "ns an element and step", t, 1e9 / all, "4 x", fast);
        ok &= fast && (of.steps < 3000 || bar_answer(s));
        cdl_free(s);
    }
    bool linear = each[3] > 0 && each[3] <= 1.5 * each[1];
    report("elastic bar: time an element, 100000 over 1000", "1", each[3] / each[1], 0, "1.5", linear);
    return ok && linear;
}

/* ---- a beam of finite elements on a row of stops ---- */
/* Hermite's cubics, u[i] = [w, l w'] at node i, clamped on the left; consistent masses. The load presses the
   beam on ten stops, then lifts it off them. */
static const char beam_model[] =
    "model beam {\n"
    "    param N = 500, T = 0.4\n"
    "    let l = 1/N, k = N^3\n"
    "    dof u[i in 1..N] in R2 = [0, 0]\n"
    "    kinetic l/840*(156*u[1][1]'^2 + 4*u[1][2]'^2 - 44*u[1][1]'*u[1][2]')\n"
    "    potential k/2*(12*u[1][1]^2 + 4*u[1][2]^2 - 12*u[1][1]*u[1][2])\n"
    "    for i in 2..N {\n"
    "        kinetic l/840*(156*(u[i-1][1]'^2 + u[i][1]'^2) + 4*(u[i-1][2]'^2 + u[i][2]'^2)\n"
    "            + 108*u[i-1][1]'*u[i][1]' - 6*u[i-1][2]'*u[i][2]'\n"
    "            + 44*(u[i-1][1]'*u[i-1][2]' - u[i][1]'*u[i][2]')\n"
    "            + 26*(u[i-1][2]'*u[i][1]' - u[i-1][1]'*u[i][2]'))\n"
    "        potential k/2*(12*(u[i][1] - u[i-1][1])^2 + 4*(u[i-1][2]^2 + u[i-1][2]*u[i][2] + u[i][2]^2)\n"
    "            - 12*(u[i][1] - u[i-1][1])*(u[i-1][2] + u[i][2]))\n"
    "    }\n"
    "    for i in 1..N { force u[i]: [-l*sin(2*pi*t/T), 0] }\n"
    "    constraint rest[j in 1..10]: u[50*j][1] >= 0\n"
    "}\n"
    "run beam for %g with sweeping(h = 1e-3, every = %g)\n";

enum { ELEMENTS = 500, BEAM = 2 * ELEMENTS, STOPS = 10, BAND = 3, WIDE = 2 * BAND + 1 };

/* Symmetric matrices by rows of their band, and the factor of such a matrix: L unit lower, 1/D on the
   diagonal. Vectors are padded with a band of zeros on both sides, so that no row is special. */
enum { PADDED = BEAM + 2 * BAND };
typedef struct {
    double K[BEAM][WIDE], D[BEAM][WIDE], L[BEAM + BAND][WIDE];
    double column[STOPS][PADDED], W[STOPS][STOPS];
    double u[PADDED], v[PADDED], x[PADDED], y[PADDED];
} beam_hand;

static void beam_matrices(beam_hand *b, double h)
{
    static const double
        M[4][4] = { { 156, 22, 54, -13 }, { 22, 4, 13, -3 }, { 54, 13, 156, -22 }, { -13, -3, -22, 4 } },
        K[4][4] = { { 12, 6, -12, 6 }, { 6, 4, -6, 2 }, { -12, -6, 12, -6 }, { 6, 2, -6, 4 } };
    const double mass = 1.0 / ELEMENTS / 420, stiff = pow(ELEMENTS, 3);
    for (int e = 0; e < ELEMENTS; e++)
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++) {
                int row = 2 * (e - 1) + i, col = 2 * (e - 1) + j;
                if (row < 0 || col < 0)
                    continue;
                b->K[row][BAND + col - row] += stiff * K[i][j];
                b->D[row][BAND + col - row] += mass * M[i][j] + 0.25 * h * h * stiff * K[i][j];
            }
    for (int i = 0; i < BEAM; i++) {
        double d = b->D[i][BAND];
        for (int j = i > BAND ? i - BAND : 0; j < i; j++) {
            double x = b->D[i][BAND + j - i];
            for (int k = i > BAND ? i - BAND : 0; k < j; k++)
                if (j - k <= BAND)
                    x -= b->L[i][BAND + k - i] * b->L[j][BAND + k - j] / b->L[k][BAND];
            b->L[i][BAND + j - i] = x * b->L[j][BAND];
            d -= x * x * b->L[j][BAND];
        }
        b->L[i][BAND] = 1 / d;
    }
}

static void beam_solve(const beam_hand *b, double *padded)
{
    double *x = padded + BAND;
    for (int i = 0; i < BEAM; i++) {
        const double *L = b->L[i];
        x[i] = x[i] - L[0] * x[i - 3] - L[1] * x[i - 2] - L[2] * x[i - 1];
    }
    for (int i = BEAM; i-- > 0;)
        x[i] = x[i] * b->L[i][BAND] - b->L[i + 3][0] * x[i + 3] - b->L[i + 2][1] * x[i + 2] -
               b->L[i + 1][2] * x[i + 1];
}

/* indices in the padded vectors */
static int stop_at(int j)
{
    return BAND + 2 * (50 * (j + 1) - 1);
}

/* W r = -free on the stops that press; stops that would pull are removed until none does. */
static void beam_reactions(const beam_hand *b, const double *free, bool *in, double *r)
{
    for (bool again = true; again;) {
        double A[STOPS][STOPS + 1];
        int at[STOPS], n = 0;
        for (int j = 0; j < STOPS; j++) {
            r[j] = 0;
            if (in[j])
                at[n++] = j;
        }
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n; j++)
                A[i][j] = b->W[at[i]][at[j]];
            A[i][n] = -free[at[i]];
        }
        for (int k = 0; k < n; k++)
            for (int i = k + 1; i < n; i++) {
                double f = A[i][k] / A[k][k];
                for (int j = k; j <= n; j++)
                    A[i][j] -= f * A[k][j];
            }
        again = false;
        for (int i = n; i-- > 0;) {
            double x = A[i][n];
            for (int j = i + 1; j < n; j++)
                x -= A[i][j] * r[at[j]];
            r[at[i]] = x / A[i][i];
        }
        for (int i = 0; i < n; i++)
            if (r[at[i]] < 0) {
                in[at[i]] = false;
                again = true;
            }
    }
}

static double load_at(double t)
{
    return -sin(2 * acos(-1) * t / 0.4) / ELEMENTS;
}

/* The theta scheme: forces at both ends with constant rates; then the reactions. */
static void beam_step(beam_hand *b, double t, double h, bool *closed)
{
    double free[STOPS], r[STOPS], load = 0.5 * (load_at(t) + load_at(t + h));
    bool in[STOPS];
    for (int i = 0; i < PADDED; i++)
        b->y[i] = b->u[i] + 0.5 * h * b->v[i];
    for (int i = 0; i < BEAM; i++) {
        const double *K = b->K[i], *y = b->y + i;
        double f = i % 2 ? 0 : load;
        b->x[BAND + i] = h * (f - (K[0] * y[0] + K[1] * y[1] + K[2] * y[2] + K[3] * y[3] + K[4] * y[4] +
                                   K[5] * y[5] + K[6] * y[6]));
    }
    beam_solve(b, b->x);
    for (int j = 0; j < STOPS; j++) {
        free[j] = b->v[stop_at(j)] + b->x[stop_at(j)];
        in[j] = closed[j];
    }
    beam_reactions(b, free, in, r);
    for (int j = 0; j < STOPS; j++)
        for (int i = 0; i < PADDED && r[j] != 0; i++)
            b->x[i] += r[j] * b->column[j][i];
    for (int i = 0; i < PADDED; i++) {
        b->u[i] += 0.5 * h * (2 * b->v[i] + b->x[i]);
        b->v[i] += b->x[i];
    }
    for (int j = 0; j < STOPS; j++)
        closed[j] = closed[j] && !(r[j] == 0 && b->v[stop_at(j)] > 0);
}

enum { BEAM_STEPS = 300 };

static double beam_by_hand(void *of)
{
    beam_hand *b = of;
    const double h = 1e-3;
    bool closed[STOPS];
    memset(b, 0, sizeof *b);
    beam_matrices(b, h);
    for (int j = 0; j < STOPS; j++) {
        closed[j] = true;
        b->column[j][stop_at(j)] = 1;
        beam_solve(b, b->column[j]);
        for (int i = 0; i < STOPS; i++)
            b->W[j][i] = b->column[j][stop_at(i)];
    }
    double start = seconds();
    for (int i = 0; i < BEAM_STEPS + 2; i++)
        beam_step(b, i * h, h, closed);
    return (seconds() - start) * BEAM_STEPS / (BEAM_STEPS + 2);
}

static bool beam(void)
{
    beam_hand *b = malloc(sizeof *b);
    double off = 0, most = 0;
    char text[2048], once[2048], name[32];
    cdl *s;
    snprintf(once, sizeof once, beam_model, 2e-3, 2e-3);
    snprintf(text, sizeof text, beam_model, 1e-3 * (BEAM_STEPS + 2), 1e-3 * (BEAM_STEPS + 2));
    timing t = time_beyond(once, text, beam_by_hand, b, &s);
    for (int i = 10; i <= ELEMENTS; i += 10) {
        snprintf(name, sizeof name, "last(u[%d][1])", i);
        off = fmax(off, fabs(number(s, name) - b->u[BAND + 2 * i - 2]));
        most = fmax(most, fabs(b->u[BAND + 2 * i - 2]));
    }
    double balance = number(s, "power_balance");
    cdl_free(s);
    free(b);
    bool fast = t.own > 0 && t.own <= 5 * t.hand, same = off <= 1e-7 * most && balance <= 1e-9;
    report_timing("beam of 500 elements on ten stops", "us a step", t, 1e6 / BEAM_STEPS, "5 x", fast);
    report("  its shape, off that by hand", "1", off / most, 0, "1e-7", same);
    return fast && same;
}

/* ---- rows of blocks on a rough floor, springs between them ---- */
static const char row_model[] =
    "model row {\n"
    "    param N = 100, k = 100, V = 0\n"
    "    fn mu(v) = 0.2 + 0.2*exp(-v/0.1)\n"
    "    dof x[i in 1..N] = 0.001*V*sin(i), x' = [V*sin(3*i) for i in 1..N]\n"
    "    for i in 1..N { kinetic x[i]'^2/2; potential 30*V*x[i]^2/2 }\n"
    "    for i in 1..N-1 { potential k*(x[i+1] - x[i])^2/2 }\n"
    "    force x[1]: sin(t)\n"
    "    constraint rub[i in 1..N] { normal = 10, slip = x[i]' - V, friction = %s }\n"
    "}\n"
    "run row(N = %d, V = %g) for %g with sweeping(h = 1e-3, every = %g)\n";

static bool rows_of(const char *name, const char *law, double V, const int *sizes, int n, double reach)
{
    double last = 0, first = 0;
    bool ok = true;
    for (int i = 0; i < n; i++) {
        char text[2048], once[2048], what[80];
        cdl *s;
        const int steps = sizes[i] < 1000 ? 4000 : sizes[i] < 10000 ? 1000 : 300;
        snprintf(once, sizeof once, row_model, law, sizes[i], V, 2e-3, 2e-3);
        snprintf(text, sizeof text, row_model, law, sizes[i], V, 1e-3 * (steps + 2), 1e-3 * (steps + 2));
        last = time_beyond(once, text, NULL, NULL, &s).own / steps / sizes[i] * 1e9;
        if (i == 0)
            first = last;
        snprintf(what, sizeof what, "row of %d blocks, %s", sizes[i], name);
        bool good = last > 0 && (!(reach > 0) || last <= reach);
        report(what, "ns a block and step", last, 0, reach > 0 ? "100 ns" : "-", good);
        ok &= good;
        double balance = number(s, "power_balance");
        if (!(balance <= 1e-9))
            report("  its balance", "1", balance, 0, "1e-9", ok = false);
        cdl_free(s);
    }
    report("  the largest over the smallest", "1", last / first, 0, "2", last <= 2 * first);
    return ok && last <= 2 * first;
}

static bool row(void)
{
    static const int sizes[] = { 100, 1000, 10000 };
    bool stick = rows_of("sticking", "coulomb(0.4)", 0, sizes, 3, 100);
    return rows_of("stick and slip", "coulomb(mu)", 0.2, sizes, 3, 0) && stick;
}

int main(int argc, char **argv)
{
    static const bench all[] = { { "inert", inert }, { "bar", bar }, { "beam", beam }, { "row", row } };
    return run_problems(all, sizeof all / sizeof *all, argc, argv);
}
