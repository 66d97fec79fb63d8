/* Piles at tight tolerance: disks and balls of six kinds, poured until they rest.
       bench_piles [WORD]               prints figures of the kinds with WORD in their name (rest: at rest)
       bench_piles record KIND N DIR K T MS    writes each K-th problem of a run of N bodies over time T to
                                        DIR, and those that took longer than MS milliseconds: as text, and
                                        in FCLIB's layout if libhdf5 is available; KIND rest: disks at rest
       bench_piles solve FILE ...       solves recorded problems, one line each
   If PILES_LOG is set in the environment, each problem of a run prints a line to standard error: contacts,
   time, solver. The program is linked with a wrapper of pile_solve, so that it sees each problem before the
   solver does. */
#include <math.h>
#include "bench.h"
#include "../problems/problem_fclib.h"
#include "../problems/problem_text.h"
#include "contact/pile.h"

/* Walls lean outwards by `lean`, the ground is tilted by `tilt`, radii vary by `spread`. */
#define DISKS_PARAMETERS                                                                                    \
    "model pile {\n"                                                                                        \
    "    param N = 60, cols = 10, R = 0.01, spread = 0, W = 0.22, lean = 0, tilt = 0, mu = 0.5, g = 9.81\n" \
    "    param y0 = 0, apart = 2.2*R, up = 2.2*R, shift = R/10, turn = 3\n"                                 \
    "    fn r(k) = R*(1 - spread*mod(7*k, 10)/10)\n"
#define DISKS_POURED                                                         \
    "    dof p[i in 1..N] in R2 = [\n"                                       \
    "        W/2 + apart*(mod(i - 1, cols) - (cols - 1)/2)\n"                \
    "            + shift*(mod(floor((i - 1)/cols), turn) - (turn - 1)/2),\n" \
    "        y0 + R + up*floor((i - 1)/cols)]\n"
#define DISKS_PLACED "    dof p[i in 1..N] in R2 = [P[2*i - 1], P[2*i]]\n" /* from param P */
#define DISKS_REST                                                                                      \
    "    dof a[i in 1..N] = 0\n"                                                                        \
    "    for i in 1..N {\n"                                                                             \
    "        kinetic (r(i)/R)^2*(norm(p[i]')^2/2 + (r(i)^2/2)*a[i]'^2/2)\n"                             \
    "        potential (r(i)/R)^2*g*(cos(tilt)*p[i][2] - sin(tilt)*p[i][1])\n"                          \
    "    }\n"                                                                                           \
    "    constraint ground[i in 1..N]: p[i][2] >= r(i) {\n"                                             \
    "        slip = p[i]' + r(i)*a[i]'*[1, 0], friction = coulomb(mu)\n"                                \
    "    }\n"                                                                                           \
    "    constraint left[i in 1..N]: cos(lean)*p[i][1] + sin(lean)*p[i][2] >= r(i) {\n"                 \
    "        slip = p[i]' + r(i)*a[i]'*[sin(lean), -cos(lean)], friction = coulomb(mu)\n"               \
    "    }\n"                                                                                           \
    "    constraint right[i in 1..N]: cos(lean)*(W - p[i][1]) + sin(lean)*p[i][2] >= r(i) {\n"          \
    "        slip = p[i]' + r(i)*a[i]'*[sin(lean), cos(lean)], friction = coulomb(mu)\n"                \
    "    }\n"                                                                                           \
    "    constraint touch[i in 1..N, j in i+1..N]: norm(p[i] - p[j]) >= r(i) + r(j) {\n"                \
    "        slip = p[i]' - p[j]' - (r(i)*a[i]' + r(j)*a[j]')*perp((p[i] - p[j])/norm(p[i] - p[j])),\n" \
    "        friction = coulomb(mu)\n"                                                                  \
    "    }\n"                                                                                           \
    "}\n"
static const char disks_model[] = DISKS_PARAMETERS DISKS_POURED DISKS_REST;

static const char balls_model[] =
    "model pile {\n"
    "    param N = 60, cols = 4, R = 0.01, spread = 0, W = 0.09, lean = 0, tilt = 0, mu = 0.5, g = 9.81, y0 "
    "= 0, deep = W\n"
    "    fn r(k) = R*(1 - spread*mod(7*k, 10)/10)\n"
    "    fn layer(k) = floor((k - 1)/cols^2)\n"
    "    dof p[i in 1..N] in R3 = [\n"
    "        W/2 + 2.2*R*(mod(i - 1, cols) - (cols - 1)/2) + R/10*(mod(layer(i), 3) - 1),\n"
    "        deep/2 + 2.2*R*(mod(floor((i - 1)/cols), cols) - (cols - 1)/2) + R/10*(mod(layer(i), 2) - "
    "0.5),\n"
    "        y0 + R + 2.2*R*layer(i)]\n"
    "    dof a[i in 1..N] in R3 = [0, 0, 0]\n"
    "    for i in 1..N {\n"
    "        kinetic (r(i)/R)^3*(norm(p[i]')^2/2 + (2*r(i)^2/5)*norm(a[i]')^2/2)\n"
    "        potential (r(i)/R)^3*g*(cos(tilt)*p[i][3] - sin(tilt)*p[i][1])\n"
    "    }\n"
    "    constraint ground[i in 1..N]: p[i][3] >= r(i) {\n"
    "        slip = p[i]' - r(i)*cross(a[i]', [0, 0, 1]), friction = coulomb(mu)\n"
    "    }\n"
    "    constraint left[i in 1..N]: cos(lean)*p[i][1] + sin(lean)*p[i][3] >= r(i) {\n"
    "        slip = p[i]' - r(i)*cross(a[i]', [cos(lean), 0, sin(lean)]), friction = coulomb(mu)\n"
    "    }\n"
    "    constraint right[i in 1..N]: cos(lean)*(W - p[i][1]) + sin(lean)*p[i][3] >= r(i) {\n"
    "        slip = p[i]' - r(i)*cross(a[i]', [-cos(lean), 0, sin(lean)]), friction = coulomb(mu)\n"
    "    }\n"
    "    constraint front[i in 1..N]: p[i][2] >= r(i)\n"
    "    constraint back[i in 1..N]: p[i][2] <= deep - r(i)\n"
    "    constraint touch[i in 1..N, j in i+1..N]: norm(p[i] - p[j]) >= r(i) + r(j) {\n"
    "        slip = p[i]' - p[j]' - cross(r(i)*a[i]' + r(j)*a[j]', (p[i] - p[j])/norm(p[i] - p[j])),\n"
    "        friction = coulomb(mu)\n"
    "    }\n"
    "}\n";

typedef struct pile_kind {
    const char *name;
    bool space;
    double aspect; /* height of the heap over its width, as poured */
    double wide, lean,
        y0; /* width over that of the columns; tilt of the walls; height of the pour over its width */
    double tilt, spread;
    bool packed; /* disks start in a triangular lattice, a thousandth apart */
    int turn;    /* number of layers after which the lateral positions repeat; 0: 3 */
} pile_kind;

static const pile_kind kinds[] = {
    { "silo", false, 1, 1, 0, 0, 0, 0, false, 0 },
    { "silo_other", false, 1, 1, 0, 0, 0, 0, false, 7 },
    { "silo_uneven", false, 1, 1, 0, 0, 0, 0.3, false, 0 },
    { "packed", false, 1, 1, 0, 0, 0, 0, true, 0 },
    { "hopper", false, 1, 0.4, 0.5, 0.6, 0, 0, false, 0 },
    { "slope", false, 0.4, 1.3, 0, 0, 0.5, 0, false, 0 },
    { "tower", false, 6, 1, 0, 0, 0, 0, false, 0 },
    { "wedge", false, 0.7, 0.05, 0.8, 0.5, 0, 0, false, 0 },
    { "mixed", false, 1, 1, 0, 0, 0, 0.6, false, 0 },
    { "box3", true, 1, 1, 0, 0, 0, 0, false, 0 },
    { "hopper3", true, 1, 0.5, 0.5, 0.5, 0, 0, false, 0 },
    { "slope3", true, 0.5, 1.2, 0, 0, 0.5, 0, false, 0 },
    { "mixed3", true, 1, 1, 0, 0, 0, 0.6, false, 0 },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- observing the solver ---- */
enum { WHOLES = 64 };
static struct {
    /* The last problems with more than this number of contacts, 0: none; the start of each, and the number of
       unsolved problems before it. */
    int whole, wholes;
    struct whole {
        double start;
        int unsolved;
    } of[WHOLES];
    double spent, most;
    int calls, unsolved;
    const char *dir, *name;
    int every;
    double slow;
} seen;

bool __real_pile_solve(contact_problem *p, arena *scratch, double tol);
bool __wrap_pile_solve(contact_problem *p, arena *scratch, double tol);

/* In FCLIB's layout, if libhdf5 is available and the problem has that form. */
static void record_fclib(const char *path, const contact_problem *p)
{
#ifdef HAVE_HDF5
    arena *a = arena_new(&allocator_libc, NULL);
    if (!problem_fclib_write(path, p, seen.name, a))
        fprintf(stderr, "%s: not written\n", path);
    arena_free(a);
#else
    (void)path;
    (void)p;
#endif
}

static void record(const contact_problem *p, double tol)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s_%04d.hdf5", seen.dir, seen.name, seen.calls);
    record_fclib(path, p);
    snprintf(path, sizeof path, "%s/%s_%04d.txt", seen.dir, seen.name, seen.calls);
    FILE *to = fopen(path, "w");
    if (!to) {
        perror(path);
        exit(1);
    }
    problem_write(to, p, tol);
    fclose(to);
}

bool __wrap_pile_solve(contact_problem *p, arena *scratch, double tol)
{
    arena_pos mark = arena_mark(scratch);
    double *from = arena_array(scratch, double, p->m), *r = p->r, start = seconds();
    memcpy(from, r, (size_t)p->m * sizeof *r);
    if (seen.whole && p->n > seen.whole)
        seen.of[seen.wholes++ % WHOLES] = (struct whole){ start, seen.unsolved };
    bool ok = __real_pile_solve(p, scratch, tol);
    double took = seconds() - start;
    p->r = from;
    if (seen.dir && (seen.calls % seen.every == 0 || took > seen.slow))
        record(p, tol);
    p->r = r;
    arena_release(scratch, mark);
    if (getenv("PILES_LOG"))
        fprintf(stderr, "%d: %d contacts, %.2f ms, %d iterations, residual %.2g %s%s\n", seen.calls, p->n,
                1e3 * took, p->iterations, p->residual, ok ? "" : "UNSOLVED ", p->solver ? p->solver : "");
    seen.spent += took;
    seen.most = fmax(seen.most, took);
    seen.calls++;
    seen.unsolved += !ok;
    return ok;
}

/* ---- runs ---- */
static char *pour(const pile_kind *k, int n, double duration, double tolerance)
{
    int cols = (int)lround(k->space ? cbrt(n / k->aspect) : sqrt(n / k->aspect));
    double apart = k->packed ? 2.002 : 2.2, beside = k->packed ? 1.001 : 0.2;
    double across = 0.01 * (apart * (cols > 1 ? cols : 1) + beside), w = k->wide * across;
    char *source = malloc(8192), lattice[128] = "";
    if (k->turn)
        snprintf(lattice, sizeof lattice, ", shift = %.17g, turn = %d", 0.002 / k->turn, k->turn);
    if (k->space)
        snprintf(lattice, sizeof lattice, ", deep = %.17g", across);
    if (k->packed)
        snprintf(lattice, sizeof lattice,
                 ", apart = 0.02002, up = 0.01001*sqrt(3), shift = 0.01001, turn = 2");
    snprintf(source, 8192,
             "%srun pile(N = %d, cols = %d, W = %.17g, lean = %g, y0 = %.17g, tilt = %g, spread = %g%s) for "
             "%g with "
             "sweeping(h = 1e-3, tolerance = %g, every = 0.1)\n",
             k->space ? balls_model : disks_model, n, cols, w, k->lean, k->y0 * across, k->tilt, k->spread,
             lattice, duration, tolerance);
    return source;
}

static const pile_kind *kind_of(const char *name)
{
    for (int i = 0; i < KINDS; i++)
        if (!strcmp(kinds[i].name, name))
            return &kinds[i];
    fprintf(stderr, "bench_piles: no kind '%s'\n", name);
    exit(2);
}

static bool figure(const pile_kind *k, int n, double duration, double tolerance, double reach)
{
    char *source = pour(k, n, duration, tolerance), name[128], limit[32];
    seen.spent = seen.most = 0;
    seen.calls = seen.unsolved = 0;
    cdl *s;
    double each = 1e3 * run_text(source, &s) / (duration / 1e-3);
    snprintf(name, sizeof name, "%s of %d, tolerance %g (solver %.3g, most %.3g, %d not at first)", k->name,
             n, tolerance, seen.calls ? 1e3 * seen.spent / seen.calls : 0, 1e3 * seen.most, seen.unsolved);
    snprintf(limit, sizeof limit, "%g ms", reach);
    report(name, "ms a step", each, 0, limit, each <= reach);
    cdl_free(s);
    free(source);
    return true;
}

/* ---- at rest ---- */
/* The positions of the disks of the last run, as a parameter of the next model; NULL: not known. */
static char *places(cdl *s, int n)
{
    size_t room = 64 * (size_t)n + 64, at, got = 0;
    char *list = malloc(room), name[32];
    at = (size_t)snprintf(list, room, "    param P = [");
    for (int i = 1; i <= n; i++) {
        double x[2];
        snprintf(name, sizeof name, "last(p[%d])", i);
        if (cdl_values(s, name, x, 2, &got) != CDL_OK || got != 2)
            return NULL;
        at += (size_t)snprintf(list + at, room - at, "%s%.17g, %.17g", i > 1 ? ", " : "", x[0], x[1]);
    }
    snprintf(list + at, room - at, "]\n");
    return list;
}

/* The disks of the last run at their positions, without rates or reactions. They are smaller by the overlap
   that the loose tolerance left. */
static char *from_places(cdl *s, const char *poured, int n, double shrink, double duration, double tolerance,
                         const char *options)
{
    char *P = places(s, n);
    if (!P)
        exit(1);
    size_t room = strlen(P) + sizeof disks_model + 1024;
    char *source = malloc(room);
    const char *run = strstr(poured, "run pile("), *end = strstr(run, ") for");
    snprintf(source, room,
             "%s%s%s%s%.*s, R = 0.01*(1 - %g)) for %g with sweeping(h = 1e-3, tolerance = %g%s)\n",
             DISKS_PARAMETERS, P, DISKS_PLACED, DISKS_REST, (int)(end - run), run, shrink, duration,
             tolerance, options);
    free(P);
    return source;
}

/* Disks poured into a box settle with one tolerance after the other; then a run with the default one. Each
   time they become smaller by the overlap that the previous tolerance left, and fall by that distance. */
static char *settled(int n, double duration)
{
    enum { STAGES = 5 };
    static const double left[STAGES] = { 1e-5, 2e-6, 2e-7, 2e-8, 2e-9 };
    char *poured = pour(kind_of("silo"), n, 1.2, 1e-3), *next = poured;
    double shrink = 0, tolerance = 1e-3;
    for (int k = 0; k < STAGES; k++) {
        cdl *s;
        run_text(next, &s);
        bool last = k == STAGES - 1;
        char *before = next;
        shrink += left[k];
        tolerance = last ? 1e-8 : 0.1 * tolerance;
        next = from_places(s, poured, n, shrink, last ? duration : 0.1, tolerance,
                           last ? "" : ", every = 0.1");
        cdl_free(s);
        if (before != poured)
            free(before);
    }
    free(poured);
    return next;
}

/* With the default tolerance the first steps must find the last contacts and reactions, which takes long; the
   last LAST steps are those of a pile at rest. Each of them has one problem of the whole pile unless it is
   halved. */
static bool figure_at_rest(int n, double reach)
{
    enum { STEPS = 100, LAST = 50 };
    char *at_rest = settled(n, STEPS * 1e-3), name[128], limit[32];
    cdl *rest;
    seen.calls = seen.unsolved = seen.wholes = 0;
    seen.whole = 3 * n / 2;
    double all = run_text(at_rest, &rest), end = seconds();
    const struct whole *from = &seen.of[(seen.wholes + WHOLES - LAST) % WHOLES];
    double each = 1e3 * (end - from->start) / LAST;
    bool ok = seen.wholes >= STEPS && from->unsolved == seen.unsolved && each <= reach;
    snprintf(name, sizeof name, "rest of %d, default tolerance (all %d steps: %.3g ms each, %d not at first)",
             n, STEPS, 1e3 * all / STEPS, seen.unsolved);
    snprintf(limit, sizeof limit, "%g ms", reach);
    report(name, "ms a step", each, 0, limit, ok);
    seen.whole = 0;
    cdl_free(rest);
    free(at_rest);
    return ok;
}

static int record_run(char **args)
{
    int n = atoi(args[1]);
    char name[64];
    snprintf(name, sizeof name, "%s_%d", args[0], n);
    char *source = strcmp(args[0], "rest") ? pour(kind_of(args[0]), n, atof(args[4]), 1e-8)
                                           : settled(n, atof(args[4]));
    seen.dir = args[2];
    seen.name = name;
    seen.every = atoi(args[3]);
    seen.slow = 1e-3 * atof(args[5]);
    cdl *s;
    printf("%s: %.3g s\n", name, run_text(source, &s));
    cdl_free(s);
    free(source);
    return 0;
}

static int solve_files(char **paths, int n)
{
    arena *a = arena_new(&allocator_libc, NULL);
    double all = 0, most = 0;
    int bad = 0;
    for (int i = 0; i < n; i++) {
        contact_problem p;
        double tol;
        FILE *from = fopen(paths[i], "r");
        arena_pos mark = arena_mark(a);
        if (!from || !problem_read(from, &p, &tol, a)) {
            fprintf(stderr, "%s: not a contact problem\n", paths[i]);
            return 1;
        }
        fclose(from);
        double start = seconds();
        bool ok = __real_pile_solve(&p, a, tol);
        double ms = 1e3 * (seconds() - start);
        all += ms;
        most = fmax(most, ms);
        bad += !ok;
        const char *base = strrchr(paths[i], '/');
        printf("%-24s %5d contacts %8.2f ms %5d iterations  residual %8.2g %s %s\n",
               base ? base + 1 : paths[i], p.n, ms, p.iterations, p.residual, ok ? "      " : "UNSOLVED",
               p.solver ? p.solver : "");
        arena_release(a, mark);
    }
    printf("mean %.2f ms, most %.2f ms, %d of %d not solved\n", all / n, most, bad, n);
    arena_free(a);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 8 && !strcmp(argv[1], "record"))
        return record_run(argv + 2);
    if (argc > 2 && !strcmp(argv[1], "solve"))
        return solve_files(argv + 2, argc - 2);
    bool ok = true;
    if (argc < 2 || !strcmp(argv[1], "rest"))
        ok &= figure_at_rest(400, 40) & figure_at_rest(1000, 120);
    for (int i = 0; i < KINDS; i++)
        if (argc < 2 || strstr(kinds[i].name, argv[1]))
            ok &= kinds[i].space
                      ? figure(&kinds[i], 500, 0.5, 1e-8, 100)
                      : figure(&kinds[i], 100, 0.5, 1e-8, 4) && figure(&kinds[i], 400, 0.5, 1e-8, 40) &&
                            figure(&kinds[i], kinds[i].packed ? 1000 : 1600, 0.5, 1e-8, 400);
    return !ok;
}
