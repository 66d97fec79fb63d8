/* A Newton step of a rod of 1000 elements without contact: tangent, elimination of inner nodes, band. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "rod_work.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static kernel constant(arena *a, double x)
{
    double *c = arena_make(a, double);
    instr *end = arena_make(a, instr);
    end->op = TAPE_END;
    *c = x;
    return (kernel){ .tape = { .nconst = 1, .nreg = 1, .nout = 1, .constant = c, .code = end, .out = arena_array(a, uint32_t, 1) }, .over.count = 1 };
}

int main(void)
{
    enum { ROUNDS = 20 };
    arena *a = arena_new(&allocator_libc, NULL);
    rod_spec s = { .name = "wire" };
    const double x[ROD_NUMBERS] = { 1, 0.01, 1e6, 0.3, 1000, 1 };
    for (int k = 0; k < ROD_NUMBERS; k++) s.number[k] = constant(a, x[k]);
    rod_program rp = { .rod = &s, .nrod = 1 };
    program p = { .rod = &rp };
    rod_options ro = { .h = 1 };
    rod_work w = { .p = &p, .rp = &rp, .ro = &ro, .r = results_new(a, &p), .a = a, .tmp = a };
    if (!rod_build(&w)) return 1;
    rod_band_new(&w);
    for (int k = 0; k < 6; k++) w.held[k] = 1;
    for (int i = 0; i < w.N; i++) w.pos[3 * i] = 0.01 * sin(w.mesh[0].s[i]);
    double best = INFINITY;
    for (int k = 0; k < ROUNDS; k++) {
        double begin = now();
        memset(w.dx, 0, (size_t)w.ndof * sizeof *w.dx);
        if (!rod_solve_band(&w, 0)) return 1;
        best = fmin(best, now() - begin);
    }
    printf("rod: a Newton step of 1000 elements (%d unknowns)  %.2f ms\n", w.ndof, 1e3 * best);
    arena_free(a);
    return 0;
}
