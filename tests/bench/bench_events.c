/* The events backend: Klarbring's system to t = 100 (10 ms), a delayed oscillator against a wall to t = 1000
   (100 ms), a thousand rebounds. Compared with the same series written by hand: smooth motion only, the same
   number of steps of that order. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "cdl.h"

#define WALL                                                                             \
    "model m {\n    let K = [2, 0.5; 0.5, 1]\n    dof u[2] = [-0.1, 0], u' = [1, 0.3]\n" \
    "    u'' + K*u = [cos(t), 0.2*sin(3*t)]\n"                                           \
    "    constraint wall: u[1] <= 0 { friction = coulomb(0.4) }\n}\n"
#define LATE                                                                                  \
    "model m {\n    dof x = 1, x' = 0\n    x'' = -x - 0.1*x' + 0.3*x(t - 0.5) + 0.4*cos(t)\n" \
    "    constraint wall: x >= -0.2 { impact = newton(0.8) }\n}\n"
#define BALL                                                                                    \
    "model m {\n    dof y = 5, y' = 0\n    y'' = -10\n    constraint floor: y >= 0 { impact = " \
    "newton(0.999) }\n}\n"

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The least time of several runs; the model is compiled once for all of them. */
static double run(const char *text, const char *statement, double *steps)
{
    double best = 1e9;
    cdl *s = cdl_new(NULL);
    if (!s || cdl_run_text(s, "bench", text, strlen(text)) != CDL_OK)
        return 1e9;
    for (int k = 0; k < 7; k++) {
        double start = seconds();
        if (cdl_run_text(s, "bench", statement, strlen(statement)) != CDL_OK)
            return 1e9;
        best = fmin(best, seconds() - start);
    }
    cdl_value(s, "steps", steps);
    cdl_free(s);
    return best;
}

/* u'' = -K u + (cos t, 0.2 sin 3t) by power series of order 22. */
enum { ORDER = 22 };
static double hand(int steps, double h)
{
    double q[2] = { -0.1, 0 }, v[2] = { 1, 0.3 }, best = 1e9;
    volatile double sink = 0;
    for (int turn = 0; turn < 7; turn++) {
        double start = seconds();
        for (int i = 0; i < steps; i++) {
            double t = i * h, a[ORDER + 3] = { q[0], v[0] }, b[ORDER + 3] = { q[1], v[1] }, c = cos(t),
                   s = sin(t), C = 0.2 * cos(3 * t), S = 0.2 * sin(3 * t);
            for (int j = 0; j < ORDER; j++) {
                a[j + 2] = (-2 * a[j] - 0.5 * b[j] + c) / ((j + 1) * (j + 2));
                b[j + 2] = (-0.5 * a[j] - b[j] + S) / ((j + 1) * (j + 2));
                double c1 = -s / (j + 1), S1 = 3 * C / (j + 1);
                s = c / (j + 1);
                c = c1;
                C = -3 * S / (j + 1);
                S = S1;
            }
            q[0] = q[1] = v[0] = v[1] = 0;
            for (int j = ORDER + 1; j >= 0; j--) {
                q[0] = q[0] * h + a[j];
                q[1] = q[1] * h + b[j];
                if (j) {
                    v[0] = v[0] * h + j * a[j];
                    v[1] = v[1] * h + j * b[j];
                }
            }
        }
        sink = q[0];
        best = fmin(best, seconds() - start);
    }
    (void)sink;
    return best;
}

static int tell(const char *problem, const char *model, const char *statement, double length, double bound)
{
    double steps = 1, took = run(model, statement, &steps), own = hand((int)steps, length / steps);
    printf("{\"problem\":\"%s\",\"cdl\":%.5f,\"hand\":%.6f,\"steps\":%.0f,\"unit\":\"s\",\"bound\":%g}\n",
           problem, took, own, steps, bound);
    return took < bound ? 0 : 1;
}

int main(void)
{
    int bad = tell("events: Klarbring to t = 100", WALL, "run m for 100 with events()", 100, 0.01);
    bad |= tell("events: delayed oscillator against a wall to t = 1000", LATE, "run m for 1000 with events()",
                1000, 0.1);
    bad |= tell("events: a ball, 1000 rebounds", BALL, "run m for 1300 with events()", 1300, 0.05);
    return bad;
}
