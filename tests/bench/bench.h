/* Shared by the benches: time, running a text in a session of its own, the line that is printed, the choice
   of problems. */
#ifndef CDL_BENCH_H
#define CDL_BENCH_H
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cdl.h"

static inline double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* CPU time of this process, including that of the system. */
static inline double seconds(void)
{
    return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

static inline void complain(void *ud, const char *text, size_t len)
{
    (void)ud;
    fwrite(text, 1, len, stderr);
}

/* Inline, because fmin and fmax of the library are function calls. */
static inline double lesser(double a, double b)
{
    return a < b ? a : b;
}

static inline double greater(double a, double b)
{
    return a > b ? a : b;
}

static inline double value(cdl *s, const char *expression)
{
    double x = NAN;
    size_t got = 0;
    return cdl_values(s, expression, &x, 1, &got) == CDL_OK && got == 1 ? x : NAN;
}

/* CPU seconds of a text in a session of its own, which is returned for its results. */
static inline double run_text(const char *text, cdl **session)
{
    cdl *s = *session = cdl_new(NULL);
    cdl_set_callbacks(s, &(cdl_callbacks){ .err = complain });
    cdl_set(s, "quiet", "yes");
    cdl_set(s, "manifest", "no");
    double start = seconds();
    if (cdl_run_text(s, "bench", text, strlen(text)) != CDL_OK)
        exit(1);
    return seconds() - start;
}

enum { RUNS = 5 }; /* of both sides, one after the other */

/* Smallest and largest ratio of two consecutive runs. */
typedef struct spread {
    double low, high;
} spread;
#define SPREAD_NONE ((spread){ 1e300, 0 })

static inline void spread_add(spread *s, double ratio)
{
    s->low = ratio < s->low ? ratio : s->low;
    s->high = ratio > s->high ? ratio : s->high;
}

/* hand: NAN or 0 if there is no such program. */
static inline void report(const char *problem, const char *unit, double own, double hand, const char *reach,
                          bool ok)
{
    printf("{\"problem\":\"%s\",\"cdl\":%.4g,", problem, own);
    if (hand > 0)
        printf("\"hand\":%.4g,", hand);
    printf("\"unit\":\"%s\",", unit);
    if (hand > 0)
        printf("\"ratio\":%.3g,", own / hand);
    printf("\"reach\":\"%s\",\"reached\":%s}\n", reach, ok ? "true" : "false");
    fflush(stdout);
}

/* The time of a text minus that of another text that does everything except the steps in question, and the
   time of C by hand for these steps: the least of RUNS of each, in turn. The difference of single runs is
   noise if compiling takes longer than the steps, and the first run includes allocating memory. ratios: of
   each run to the C run after it. */
typedef struct timing {
    double own, hand;
    spread ratios;
} timing;

/* Both texts must store the same samples, and fewer than all steps; otherwise the checks after the run
   differ. hand: seconds of the steps by hand; NULL: there is no such program. Returns the session of the last
   run. */
static inline timing time_beyond(const char *before, const char *whole, double (*hand)(void *), void *of,
                                 cdl **session)
{
    double least_before = 1e300, took[RUNS], by_hand[RUNS];
    timing t = { 1e300, hand ? 1e300 : 0, SPREAD_NONE };
    for (int k = 0; k < RUNS; k++) {
        cdl *s;
        least_before = lesser(least_before, run_text(before, &s));
        cdl_free(s);
        if (k)
            cdl_free(*session);
        took[k] = run_text(whole, session);
        t.own = lesser(t.own, took[k]);
        if (!hand)
            continue;
        by_hand[k] = hand(of);
        t.hand = lesser(t.hand, by_hand[k]);
    }
    t.own -= least_before;
    for (int k = 0; hand && k < RUNS; k++)
        spread_add(&t.ratios, (took[k] - least_before) / by_hand[k]);
    return t;
}

/* Prints times in seconds, multiplied by `unit_of`, with the spread of five runs. */
static inline void report_timing(const char *problem, const char *unit, timing t, double unit_of,
                                 const char *reach, bool ok)
{
    char name[160];
    if (t.hand > 0)
        snprintf(name, sizeof name, "%s (ratios %.2f to %.2f)", problem, t.ratios.low, t.ratios.high);
    else
        snprintf(name, sizeof name, "%s", problem);
    report(name, unit, unit_of * t.own, unit_of * t.hand, reach, ok);
}

typedef struct bench {
    const char *name;
    bool (*run)(void);
} bench;

/* Runs the problems with the first argument in their name; the result is that of main. */
static inline int run_problems(const bench *p, size_t n, int argc, char **argv)
{
    bool ok = true;
    for (size_t i = 0; i < n; i++)
        if (argc < 2 || strstr(p[i].name, argv[1]))
            ok &= p[i].run();
    return ok ? 0 : 1;
}
#endif
