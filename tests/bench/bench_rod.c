/* Rods: a Newton step of 1000 elements without contact (tangent, elimination of inner nodes, band); the
   complete loading of wires that are twisted until they coil up, with snaps and friction and without overlap;
   a step in time of a rod in flight. */
#include <math.h>
#include "bench.h"
#include "rod/rod_work.h"

static kernel constant(arena *a, double x)
{
    double *c = arena_make(a, double);
    instr *end = arena_make(a, instr);
    end->op = TAPE_END;
    *c = x;
    return (kernel){ .tape = { .nconst = 1,
                               .nreg = 1,
                               .nout = 1,
                               .constant = c,
                               .code = end,
                               .out = arena_array(a, uint32_t, 1) },
                     .over.count = 1 };
}

#define COIL(elements, radius, close, turns)                                                         \
    "model coil {\n"                                                                                 \
    "    param L = 1, r = " radius "\n"                                                              \
    "    rod wire { length = L, radius = r, young = 1e6, poisson = 0.4, elements = " elements " }\n" \
    "    at wire.s = 0 { position = [0, 0, 0], frame = eye(3) }\n"                                   \
    "    at wire.s = L { position = [0, 0, L*(1 - " close "*t)], frame = rot_z(" turns "*pi*t) }\n"  \
    "    constraint self: wire.self_gap >= 0 { friction = coulomb(0.3) }\n"                          \
    "}\n"                                                                                            \
    "run coil for 1 with auglag(h = 0.01)\n"                                                         \
    "expect max_penetration <= 1e-8*r\n"

static bool loading(const char *problem, const char *model, double most, const char *reach)
{
    cdl *s;
    double t = run_text(model, &s);
    report(problem, "s", t, 0, reach, t <= most);
    cdl_free(s);
    return true;
}

/* the coil of the language description */
static bool coil(void)
{
    return loading("rod: 120 elements wound up on themselves", COIL("120", "0.01", "0.3", "12"), INFINITY,
                   "-");
}

static bool plectoneme(void)
{
    return loading("rod: 200 elements in a plectoneme, 100 pairs or more",
                   COIL("200", "0.005", "0.9", "24") "expect count(wire.pairs.rn) >= 100\n", 60, "60 s");
}

static bool flight(void)
{
    cdl *s;
    double t = run_text("model flight {\n"
                        "    rod wire { length = 1, radius = 0.01, young = 1e6, poisson = 0.3, density = "
                        "1000, elements = 100, velocity = [0, 2*sin(5*s), s], spin = [1, 0, 30*s] }\n"
                        "}\n"
                        "run flight for 0.1 with auglag(h = 1e-3)\n"
                        "expect power_balance <= 1e-10\n",
                        &s);
    report("rod: a step of time, 100 elements in flight", "ms", 1e3 * t / 100, 0, "-", true);
    cdl_free(s);
    return true;
}

static bool newton_step(void)
{
    enum { ROUNDS = 20 };
    arena *a = arena_new(&allocator_libc, NULL);
    rod_spec s = { .name = "wire" };
    const double x[] = {
        [ROD_LENGTH] = 1, [ROD_RADIUS] = 0.01, [ROD_YOUNG] = 1e6, [ROD_POISSON] = 0.3, [ROD_ELEMENTS] = 1000
    };
    for (size_t k = 0; k < sizeof x / sizeof *x; k++)
        s.number[k] = constant(a, x[k]);
    rod_program rp = { .rod = &s, .nrod = 1 };
    program p = { .rod = &rp };
    rod_options ro = { .h = 1 };
    rod_work w = { .p = &p, .rp = &rp, .ro = &ro, .r = results_new(a, &p), .a = a, .tmp = a };
    if (!rod_build(&w))
        return false;
    rod_band_new(&w);
    for (int k = 0; k < 6; k++)
        w.ends.held[k] = 1;
    for (int i = 0; i < w.N; i++)
        w.state.pos[3 * i] = 0.01 * sin(w.mesh[0].s[i]);
    double best = INFINITY;
    for (int k = 0; k < ROUNDS; k++) {
        double begin = seconds();
        memset(w.dx, 0, (size_t)w.ndof * sizeof *w.dx);
        if (!rod_solve_band(&w, 0))
            return false;
        best = fmin(best, seconds() - begin);
    }
    report("rod: a Newton step of 1000 elements", "ms", 1e3 * best, 0, "5 ms", best <= 5e-3);
    arena_free(a);
    return true;
}

int main(int argc, char **argv)
{
    static const bench problems[] = {
        { "newton", newton_step }, { "flight", flight }, { "coil", coil }, { "plectoneme", plectoneme }
    };
    return run_problems(problems, sizeof problems / sizeof *problems, argc, argv);
}
