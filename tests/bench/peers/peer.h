/* What programs on other engines share: the problems of the benches, time, and the line they print. */
#ifndef CDL_PEER_H
#define CDL_PEER_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RADIUS 0.01
#define ROUGH  0.5
#define STEP   1e-3
#define WEIGHT 9.81

static inline double peer_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* balls along an edge of the floor, as bench_grains has them */
static inline int grains_columns(int n)
{
    int cols = 1;
    while (cols * cols * cols < n)
        cols++;
    return cols;
}

static inline double grains_width(int n)
{
    return 2.2 * RADIUS * grains_columns(n) + 0.02;
}

static inline void grains_place(int n, int i, double *p)
{
    int cols = grains_columns(n), layer = i / (cols * cols);
    p[0] = RADIUS + 2.2 * RADIUS * (i % cols) + 1e-3 * (layer % 3);
    p[1] = RADIUS + 2.2 * RADIUS * (i / cols % cols) + 1e-3 * (layer % 2);
    p[2] = RADIUS + 2.2 * RADIUS * layer;
}

/* Boxes of three different edges poured into the same room: they stand apart at first, each turned in its own way
   about the vertical axis, so that no two faces are parallel.  boxes.cdl has the same numbers. */
static const double BOX[3] = { 0.02, 0.016, 0.012 };

static inline double box_angle(int i)
{
    return 0.1 + 0.7 * (i % 7);
}

static inline void box_place(int n, int i, double *p)
{
    grains_place(n, i, p);
    for (int k = 0; k < 2; k++)
        p[k] = 0.014 + 0.028 * (k ? i / grains_columns(n) % grains_columns(n) : i % grains_columns(n));
    p[2] = 0.01 + 0.016 * (i / (grains_columns(n) * grains_columns(n)));
}

static inline double box_width(int n)
{
    return 0.028 * grains_columns(n);
}

/* a column of balls on each other, a gap of 1e-3 below each: a fifth of the radius in the bench's units */
static inline double column_place(int i)
{
    return (2 * i + 1) * 0.005 + (i + 1) * 0.001;
}

/* seconds a step, the largest overlap of the run, mean height at its end */
static inline void peer_report(const char *engine, const char *problem, int n, double step, double overlap,
                               double height)
{
    printf("%s\t%s\t%d\t%.4g\t%.2g\t%.5g\n", engine, problem, n, 1e3 * step, overlap, height);
}
#endif
