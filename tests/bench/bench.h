/* What the benches share: time, a text run in a session of its own, the line that is printed, the choice of
 * problems. */
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

/* of this process, with that of the system in it */
static inline double seconds(void)
{
    return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

static inline void complain(void *ud, const char *text, size_t len)
{
    (void)ud;
    fwrite(text, 1, len, stderr);
}

/* inline, where fmin and fmax of the library are calls */
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

/* CPU seconds of a text in a session of its own, which is handed on for its results */
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

/* What a text takes beyond another one that does all but the steps in question: the least of some runs of
   each, one after the other.  Of single runs the difference is noise where compiling takes longer than the
   steps, and the first one pays for the memory of all.  The session is that of the last run. */
static inline double run_beyond(const char *before, const char *whole, int repeats, cdl **session)
{
    double least_before = 0, least_whole = 0;
    for (int k = 0; k < repeats; k++) {
        cdl *s;
        double took = run_text(before, &s);
        cdl_free(s);
        least_before = k && least_before < took ? least_before : took;
        if (k)
            cdl_free(*session);
        took = run_text(whole, session);
        least_whole = k && least_whole < took ? least_whole : took;
    }
    return least_whole - least_before;
}

enum { RUNS = 5 }; /* of both sides, one after the other */

/* least and largest ratio of two runs that came one after the other */
typedef struct spread {
    double low, high;
} spread;
#define SPREAD_NONE ((spread){ 1e300, 0 })

static inline void spread_add(spread *s, double ratio)
{
    s->low = ratio < s->low ? ratio : s->low;
    s->high = ratio > s->high ? ratio : s->high;
}

/* hand NAN or 0: there is none */
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

typedef struct bench {
    const char *name;
    bool (*run)(void);
} bench;

/* those with the first argument in their name; what main returns */
static inline int run_problems(const bench *p, size_t n, int argc, char **argv)
{
    bool ok = true;
    for (size_t i = 0; i < n; i++)
        if (argc < 2 || strstr(p[i].name, argv[1]))
            ok &= p[i].run();
    return ok ? 0 : 1;
}
#endif
