/* A Newton step of a rod of 1000 elements without contact (tangent, elimination of inner nodes, band), and a wire of 120 elements that is twisted until it winds up on
   itself, snaps included: the whole loading, with friction and without overlap; a step of time of a rod of 100 elements in flight. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "cdl.h"
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

static const char coil[] =
    "model coil {\n"
    "    param L = 1, r = 0.01\n"
    "    rod wire { length = L, radius = r, young = 1e6, poisson = 0.4, elements = 120 }\n"
    "    at wire.s = 0 { position = [0, 0, 0], frame = eye(3) }\n"
    "    at wire.s = L { position = [0, 0, L*(1 - 0.3*t)], frame = rot_z(12*pi*t) }\n"
    "    constraint self: wire.self_gap >= 0 { friction = coulomb(0.3) }\n"
    "}\n"
    "run coil for 1 with auglag(h = 0.01)\n"
    "expect max_penetration <= 1e-8*r\n";

static const char flight[] =
    "model flight {\n"
    "    rod wire { length = 1, radius = 0.01, young = 1e6, poisson = 0.3, density = 1000, elements = 100, velocity = [0, 2*sin(5*s), s], spin = [1, 0, 30*s] }\n"
    "}\n"
    "run flight for 0.1 with auglag(h = 1e-3)\n"
    "expect power_balance <= 1e-10\n";

static int flying(void)
{
    cdl *s = cdl_new(NULL);
    clock_t begin = clock();
    int status = s ? (int)cdl_run_text(s, "flight", flight, sizeof flight - 1) : 1;
    printf("rod: a step of time of 100 elements in flight  %.2f ms%s\n", 1e3 * (double)(clock() - begin) / CLOCKS_PER_SEC / 100, status ? ", failed" : "");
    cdl_free(s);
    return status;
}

static int plectoneme(void)
{
    cdl *s = cdl_new(NULL);
    clock_t begin = clock();
    int status = s ? (int)cdl_run_text(s, "coil", coil, sizeof coil - 1) : 1;
    printf("rod: a wire of 120 elements wound up on itself  %.1f s%s\n", (double)(clock() - begin) / CLOCKS_PER_SEC, status ? ", failed" : "");
    cdl_free(s);
    return status;
}

int main(void)
{
    enum { ROUNDS = 20 };
    arena *a = arena_new(&allocator_libc, NULL);
    rod_spec s = { .name = "wire" };
    const double x[ROD_NUMBERS] = { 1, 0.01, 1e6, 0.3, 1000, 1 };
    for (int k = 0; k <= ROD_DENSITY; k++) s.number[k] = constant(a, x[k]);
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
    return flying() || plectoneme();
}
