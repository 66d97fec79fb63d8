/* Fields: the string over a parabola with 10^6 cells, compared with the same active-set method written in C;
   membranes of 257^2 and 1025^2 nodes. One JSON line each; seconds are the least of a few runs (for cdl those
   of the backend), memory is the peak of the process. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Thomas' elimination for -u'' = 0 on n cells of [-1, 1], u >= 1/2 - x^2, starting from the set of a grid
   four times as coarse. */
static double *hand_grid(long n, double *zone)
{
    double *x = malloc((size_t)(n + 1) * sizeof *x), *c = malloc((size_t)(n + 1) * sizeof *c),
           *u = malloc((size_t)(n + 1) * sizeof *u);
    unsigned char *on = calloc((size_t)n + 1, 1);
    if (!x || !c || !u || !on)
        exit(5);
    double h = 2.0 / (double)n;
    for (long i = 0; i <= n; i++) {
        x[i] = -1 + h * (double)i;
        on[i] = x[i] >= zone[0] && x[i] <= zone[1];
    }
    for (long changed = 1; changed;) {
        double rest = 1; /* pivot minus upper neighbour, divided by the pivot */
        changed = 0;
        u[0] = 0;
        c[0] = 0;
        for (long i = 1; i < n; i++) {
            double held = on[i] ? 0 : 1, left = on[i] ? 1 : rest, beta = left + held;
            c[i] = -held / beta;
            u[i] = ((on[i] ? 0.5 - x[i] * x[i] : 0) + held * u[i - 1]) / beta;
            rest = left / beta;
        }
        u[n] = 0;
        for (long i = n; i-- > 1;)
            u[i] -= c[i] * u[i + 1];
        for (long i = 1; i < n; i++) {
            int now = on[i] ? 2 * u[i] - u[i - 1] - u[i + 1] > -8e-16 : u[i] < 0.5 - x[i] * x[i] - 1e-14;
            changed += now != on[i];
            on[i] = (unsigned char)now;
        }
    }
    zone[0] = 1;
    zone[1] = -1;
    for (long i = 1; i < n; i++)
        if (on[i])
            zone[0] = fmin(zone[0], x[i]), zone[1] = fmax(zone[1], x[i]);
    free(x);
    free(c);
    free(on);
    return u;
}

static double hand_string(long n)
{
    double start = seconds(), zone[2] = { 1, -1 };
    for (long k = 64; k <= n; k *= 4)
        free(hand_grid(n / (n / k), zone));
    free(hand_grid(n, zone));
    return seconds() - start;
}

static long memory(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return r.ru_maxrss / 1024;
}

/* Seconds of the backend, from the JSON of cdl. */
static double cdl_seconds(const char *text)
{
    const char *program = getenv("CDL");
    char line[4096];
    double best = INFINITY;
    for (int k = 0; k < 3; k++) {
        snprintf(line, sizeof line, "%s run --json - <<'E'\n%s\nE\n", program ? program : "./cdl", text);
        FILE *f = popen(line, "r");
        if (!f)
            return NAN;
        while (fgets(line, sizeof line, f)) {
            const char *at = strstr(line, "\"seconds\":");
            if (at)
                best = fmin(best, atof(at + 10));
        }
        pclose(f);
    }
    return best;
}

int main(void)
{
    static const char *const string =
        "model s { domain x in -1..1; field u(x); -d(d(u, x), x) = 0; obstacle u >= 1/2 - x^2; boundary u = "
        "0 }\nrun s with active_set(cells = 1000000)";
    static const char *const membrane =
        "model m { domain x in -1..1, y in -1..1; field u(x, y); -laplacian(u) = -1; obstacle u >= 0.3 - x^2 "
        "- y^2; boundary u = 0 }\n"
        "run m with active_set(cells = %d)";
    double hand = INFINITY;
    char text[1024];
    for (int k = 0; k < 3; k++)
        hand = fmin(hand, hand_string(1000000));
    double own = cdl_seconds(string);
    printf("{\"problem\":\"string over a parabola, 1e6 "
           "cells\",\"cdl\":%.4f,\"hand\":%.4f,\"unit\":\"s\",\"ratio\":%.2f}\n",
           own, hand, own / hand);
    for (int cells = 256; cells <= 1024; cells *= 4) {
        snprintf(text, sizeof text, membrane, cells);
        printf("{\"problem\":\"membrane, %d^2 nodes\",\"cdl\":%.4f,\"unit\":\"s\"}\n", cells + 1,
               cdl_seconds(text));
    }
    struct rusage r;
    getrusage(RUSAGE_CHILDREN, &r);
    printf("{\"problem\":\"memory of the largest\",\"cdl\":%ld,\"unit\":\"MB\",\"own\":%ld}\n",
           r.ru_maxrss / 1024, memory());
    return 0;
}
