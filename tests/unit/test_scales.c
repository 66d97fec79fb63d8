/* The same physics at every scale: every run of tests/run and examples is repeated in other units, drawn at
   random (tests/scales/rescale.h), and the results are compared.
       test_scales [WORD ...]          files with one of these words in their names, with all of their runs
   CDL_SCALES_SEED selects other units. CDL_SCALES_ONLY names the kinds that are drawn (T time, L length, M
   mass, G gaps, Q dofs, X U K of fields and rods, R rows of inclusions). CDL_SCALES_ALL prints every run.
   CDL_SCALES_SAME sets the permitted difference, and shows where it is first exceeded. The program is linked
   with wrappers of backend_find and backend_choose, so that it sees each run before the backend does, and
   without plots and files. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "../scales/rescale.h"
#include "base/random.h"
#include "cdl.h"
#include "motion/gate.h"
#include "program/system.h"
#include "session/session.h"

/* ---- what is not compared to 1e-12, and why ---- */
static const char LONG[] = "takes longer than 1 s; runs when it is named";
static const struct exception {
    const char *file;
    int run;          /* 0: all */
    double tolerance; /* INFINITY: only the end status is compared; NAN: it is not run */
    const char *keep; /* units that are not changed, by their letters */
    const char *why;
} exceptions[] = {
    { "schatzman.cdl", 2, NAN, "", "the force passes through all sizes down to the smallest number" },
    { "shapes_penalty.cdl", 0, 1e-10, "G",
      "one stiffness is that of gaps of pairs and of half-spaces; stiff impacts multiply the last bit" },
    { "packed_lattice.cdl", 0, NAN, "", LONG },
    { "overhand_knot.cdl", 0, NAN, "", LONG },
    { "rod_hysteresis.cdl", 0, NAN, "", LONG },
    { "rod_moment_twist.cdl", 0, NAN, "", LONG },
    { "rod_knot.cdl", 0, NAN, "", LONG },
    { "rod_arc_contact.cdl", 0, NAN, "", LONG },
    { "rod_contact.cdl", 0, NAN, "", LONG },
    { "rod_impact.cdl", 0, NAN, "", LONG },
    { "rod_stability.cdl", 0, NAN, "", LONG },
    { "rod_flight.cdl", 0, NAN, "", LONG },
    { "twisted_ring.cdl", 0, NAN, "", LONG },
    { "rod_arc.cdl", 0, NAN, "", LONG },
    { "rod_dynamics.cdl", 0, NAN, "", LONG },
    { "rod_stable_contact.cdl", 0, NAN, "", LONG },
    { "flying_rod.cdl", 0, NAN, "", LONG },
    { "rod_capstan.cdl", 0, NAN, "", LONG },
    { "capstan.cdl", 0, NAN, "", LONG },
    { "plectoneme.cdl", 0, NAN, "", LONG },
    { "rod_line.cdl", 0, NAN, "", LONG },
};
/* Equilibria of rods are found to 1e-8 of their forces; buckled states and double roots amplify this error.
 */
static const double RODS = 1e-6;
/* Units are powers of two: results that do not depend on them are equal to the last bit. For piles, which are
   chaotic, any dependence would be visible. */
static const double SAME = 1e-12;

/* ---- the current file ---- */
enum { RUNS_OF_A_FILE = 6 }; /* unless it is named */
typedef struct file_state {
    const char *name;
    bool named;
    int runs, compared, failed;
    bool left;                     /* later runs are left out, because there are many */
    const struct exception *apart; /* of the current run */
} file_state;
static file_state now;

static const struct exception *exception_of(const char *file, int number)
{
    for (size_t k = 0; k < sizeof exceptions / sizeof *exceptions; k++)
        if (!strcmp(exceptions[k].file, file) && (!exceptions[k].run || exceptions[k].run == number))
            return &exceptions[k];
    return NULL;
}

/* ---- units ---- */
static uint64_t draw_state;
static double draw(void)
{
    draw_state += 0x9e3779b97f4a7c15u;
    uint64_t x = hash64(draw_state, 0x5ca1e);
    return (double)(x >> 11) / 9007199254740992.0;
}

/* A power of 4 in this range; CDL_SCALES_ONLY names the units that are drawn, by their letters. */
static double draw_unit(char name, double lo, double hi)
{
    const char *only = getenv("CDL_SCALES_ONLY");
    double a = log2(lo) / 2, b = log2(hi) / 2;
    double unit = exp2(2 * floor(a + (b - a) * draw() + 0.5));
    bool kept = now.apart && strchr(now.apart->keep, name);
    return kept || (only && !strchr(only, name)) ? 1 : unit;
}

static units draw_units(const program *p, arena *a)
{
    units u = { .T = draw_unit('T', 1e-6, 1e6),
                .L = draw_unit('L', 1e-9, 1e6),
                .gap = draw_unit('G', 1e-7, 1e7) };
    double mass = draw_unit('M', 1e-18, 1e12);
    u.E = mass * u.L * u.L / (u.T * u.T);
    u.X = draw_unit('X', 1e-9, 1e6);
    u.F = draw_unit('K', 1e-12, 1e12);
    for (int k = 0; k < FIELD_MAX; k++) {
        u.U[k] = draw_unit('U', 1e-9, 1e6);
        u.K[k] = draw_unit('K', 1e-12, 1e12);
    }
    u.row = draw_unit('R', 1e-12, 1e12);
    u.q = arena_array(a, double, p->nq + 1);
    int32_t *group = dof_groups(p, a);
    bool one = true;
    for (int32_t k = 0; k < p->nq; k++) {
        u.q[k] = 0;
        one = one && group[k] == group[0];
    }
    for (size_t k = 0; k < p->rotations.n; k++)
        for (int32_t j = 0; j < 3; j++)
            u.q[group[p->rotations.at[k] + j]] = 1; /* angles have no unit */
    for (int32_t k = 0; k < p->nq; k++) {
        if (u.q[group[k]] == 0)
            u.q[group[k]] = one ? u.L : u.L * draw_unit('Q', 1e-3, 1e3);
        u.q[k] = u.q[group[k]];
    }
    return u;
}

/* The options in these units. */
static run_options options_in(const backend *b, const run_options *o, const program *p, units *u)
{
    run_options r = *o;
    double force = p->rod ? u->F / (u->X * u->X) : u->E / (gap_unit(u) * gap_unit(u));
    double T = r.duration;
    r.duration /= u->T;
    r.every /= u->T;
    /* steps with a documented default size in seconds */
    bool cones = p->inclusion && p->inclusion->ncone;
    if (!p->rod && (!strcmp(b->name, "sweeping") || !strcmp(b->name, "auglag") || cones))
        for (int k = 0; k < b->noption; k++)
            if (!strcmp(b->option[k].name, "h") && isnan(r.value[k]))
                r.value[k] = fmin(1e-3, T / 1000);
    for (int k = 0; k < b->noption; k++) {
        const char *name = b->option[k].name;
        double unit = !strcmp(name, "h")           ? u->T
                      : !strcmp(name, "stiffness") ? force
                      : !strcmp(name, "damping")   ? force * u->T
                      : !strcmp(name, "slip")      ? u->L / u->T
                      : !strcmp(name, "eps")       ? u->U[0] / u->K[0]
                                                   : 1;
        r.value[k] /= unit;
    }
    return r;
}

/* ---- comparison ---- */
static double tolerance; /* of the current run */
typedef struct difference {
    double worst; /* relative to the size of the compared numbers */
    const char *what;
    double t;
    int64_t k;
    double first; /* time of the first difference that is too large */
    const char *first_what;
} difference;

static void differ(difference *d, const char *what, double a, double b, double size, double t, int64_t k)
{
    double off = a == b ? 0 : fabs(a - b) / size;
    if (!(off <= tolerance) && (!d->first_what || t < d->first)) {
        d->first = t;
        if (getenv("CDL_SCALES_SAME"))
            printf("#   %s t %.17g place %lld: %.17g %.17g size %g\n", what, t, (long long)k, a, b, size);
        d->first_what = what;
    }
    if (!(off <= d->worst))
        *d = (difference){ off, what, t, k, d->first, d->first_what };
}

static double largest(const double *x, int64_t n)
{
    double most = 0;
    for (int64_t k = 0; x && k < n; k++)
        if (isfinite(x[k]))
            most = fmax(most, fabs(x[k]));
    return most;
}

/* Scales of the rates of dofs at rest: a thousandth of the rate that the dof would have with the energy of
   another one, because contacts are solved to 1e-12 of that. NULL: masses are not known. */
static double *least_rates(const results *r, arena *a)
{
    const program *p = r->prog;
    const char *why = NULL;
    span at;
    double most = 0;
    system_t *s = p->has_first_order.file || p->inclusion
                      ? NULL
                      : system_new(a, p, r->param, STORE_WHOLE, &why, &at);
    if (!s)
        return NULL;
    size_t n = (size_t)p->nq;
    double *q = arena_array(a, double, n + 1), *v = arena_array(a, double, n + 1),
           *M = arena_array(a, double, n *n + 1), *least = arena_array(a, double, n + 1);
    system_start(s, q, v);
    system_at(s, 0, q, v);
    system_mass(s, M);
    for (size_t k = 0; k < n; k++)
        least[k] = sqrt(mass_diagonal(s) ? M[k] : M[k * n + k]);
    for (size_t k = 0; k < n * (size_t)r->samples; k++)
        most = fmax(most, fabs(r->v[k]) * least[k % n]);
    for (size_t k = 0; k < n; k++)
        least[k] = 1e-3 * most / least[k];
    return least;
}

/* Compares n numbers of each row with those of the other run times their units; least: their least scales,
   multiplied by `time`. */
static void compare_columns(difference *d, const char *what, const results *r, const double *x,
                            const double *y, int64_t n, const double *unit, double by, int32_t *group,
                            const double *least, double time)
{
    double *size = calloc((size_t)n + 1, sizeof *size);
    for (int64_t k = 0; least && k < n; k++)
        size[group[k]] = fmax(size[group[k]], least[k] * time);
    for (int64_t k = 0; k < n; k++)
        for (int64_t s = 0; s < r->samples; s++) {
            double *to = &size[group ? group[k] : 0], v = fabs(x[s * n + k]) / (group  ? 1
                                                                                : unit ? unit[k]
                                                                                       : 1);
            if (isfinite(v))
                *to = fmax(*to, v);
        }
    for (int64_t s = 0; s < r->samples; s++)
        for (int64_t k = 0; k < n; k++) {
            double u = unit ? unit[k] : 1, big = group ? size[group[k]] : size[0] * u;
            differ(d, what, x[s * n + k], y[s * n + k] * u * by, big, r->t[s], k);
        }
    free(size);
}

static bool same_times(const results *r, const results *s, double T)
{
    if (r->samples != s->samples)
        return false;
    for (int64_t k = 0; k < r->samples; k++)
        if (!(fabs(r->t[k] - s->t[k] * T) <= 1e-9 * (r->t_end + 1e-300)))
            return false;
    return true;
}

/* For steps of different size: interpolates between the samples of the other run. */
static void compare_between(difference *d, const results *r, const results *s, const units *u,
                            const int32_t *group, const double *least)
{
    int32_t n = r->prog->nq;
    double *size = calloc((size_t)n + 1, sizeof *size);
    for (int32_t k = 0; least && k < n; k++)
        size[group[k]] = fmax(size[group[k]], least[k] * r->t_end);
    for (int64_t k = 0; k < r->samples * n; k++)
        size[group[k % n]] = fmax(size[group[k % n]], fabs(r->q[k]));
    for (int64_t k = 0; k < r->samples; k += 1 + r->samples / 400)
        for (int32_t i = 0; i < n; i++)
            differ(d, "q between samples", r->q[k * n + i], results_q(s, i, r->t[k] / u->T) * u->q[i],
                   size[group[i]], r->t[k], i);
    free(size);
}

static void compare_motion(difference *d, const results *r, const results *s, const units *u)
{
    const program *p = r->prog;
    int32_t *group = dof_groups(p, s->a);
    double *least = least_rates(r, s->a);
    differ(d, "t_end", r->t_end, s->t_end * u->T, fmax(r->t_end, 1e-300), r->t_end, 0);
    if (!same_times(r, s, u->T)) {
        compare_between(d, r, s, u, group, least);
        return;
    }
    compare_columns(d, "q", r, r->q, s->q, p->nq, u->q, 1, group, least, r->t_end);
    compare_columns(d, "v", r, r->v, s->v, p->nq, u->q, 1 / u->T, group, least, 1);
    if (r->energy && !p->inclusion) {
        double top = fmax(largest(r->energy, r->samples),
                          fmax(largest(r->work, r->samples), largest(r->dissipated, r->samples)));
        for (int64_t k = 0; k < r->samples; k++) {
            differ(d, "energy", r->energy[k], s->energy[k] * u->E, top, r->t[k], k);
            differ(d, "dissipated", r->dissipated[k], s->dissipated[k] * u->E, top, r->t[k], k);
        }
    }
}

/* Reactions are unique if contacts have at most as many rows as there are dofs. */
static bool reactions_unique(const program *p)
{
    int64_t rows = 0;
    for (size_t c = 0; c < p->ncontact; c++)
        rows += index_members(&p->contact[c].over) * (1 + p->contact[c].nslip);
    return rows <= p->nq;
}

static void compare_contacts(difference *d, const results *r, const results *s, const units *u)
{
    bool unique = reactions_unique(r->prog);
    for (size_t c = 0; c < r->prog->ncontact && !r->prog->rod; c++) {
        const contact_result *x = &r->contact[c], *y = &s->contact[c];
        double force = u->E / family_gap_unit(r->prog, u, &r->prog->contact[c]), top = 0;
        if (unique)
            differ(d, "number of impacts", (double)x->impacts.n, (double)y->impacts.n,
                   (double)(x->impacts.n + 1), r->t_end, (int64_t)c);
        for (size_t k = 0; k < x->impacts.n; k++)
            top = fmax(top, fabs(x->impacts.at[k].impulse));
        for (size_t k = 0; unique && k < x->impacts.n && k < y->impacts.n; k++) {
            differ(d, "time of impact", x->impacts.at[k].t, y->impacts.at[k].t * u->T, r->t_end + 1e-300,
                   x->impacts.at[k].t, (int64_t)c);
            differ(d, "impulse", x->impacts.at[k].impulse, y->impacts.at[k].impulse * force * u->T, top,
                   x->impacts.at[k].t, (int64_t)c);
        }
        if (unique && x->rn && y->rn && same_times(r, s, u->T))
            compare_columns(d, "rn", r, x->rn, y->rn, x->members, NULL, force, NULL, NULL, 0);
    }
}

static void compare_jumps(difference *d, const results *r, const results *s, const units *u)
{
    differ(d, "number of jumps", (double)r->limit.jumps.n, (double)s->limit.jumps.n, 1, 0, 0);
    for (size_t k = 0; k < r->limit.jumps.n && k < s->limit.jumps.n; k++)
        differ(d, "time of jump", r->limit.jumps.at[k].t, s->limit.jumps.at[k].t * u->T, r->t_end,
               r->limit.jumps.at[k].t, (int64_t)k);
}

static void compare_field(difference *d, const results *r, const results *s, const units *u)
{
    enum { POINTS = 37 };
    const field_result *x = r->field, *y = s->field;
    const field_program *fp = r->prog->field;
    for (int f = 0; f < fp->nfield; f++) {
        double a[POINTS * POINTS], b[POINTS * POINTS];
        int rows = fp->ncoord > 1 ? POINTS : 1;
        for (int j = 0; j < rows; j++)
            for (int i = 0; i < POINTS; i++) {
                double X = x->lo[0] + (x->hi[0] - x->lo[0]) * i / (POINTS - 1);
                double Y = x->lo[1] + (x->hi[1] - x->lo[1]) * j / (POINTS - 1);
                static const int none[2] = { 0, 0 };
                a[j * POINTS + i] = rows > 1 ? field_at2(x, f, X, Y, none) : field_at(x, f, X, 0);
                b[j * POINTS + i] = rows > 1 ? field_at2(y, f, X / u->X, Y / u->X, none)
                                             : field_at(y, f, X / u->X, 0);
            }
        double size = largest(a, rows * POINTS);
        for (int k = 0; k < rows * POINTS; k++)
            differ(d, "u", a[k], b[k] * u->U[f], size, k, f);
    }
    differ(d, "number of zones", x->nzone, y->nzone, 1, 0, 0);
    differ(d, "number of point forces", x->npoint, y->npoint, 1, 0, 0);
    double size = fmax(fabs(x->lo[0]), fabs(x->hi[0])), top = 0, by = fp->ncoord > 1 ? u->X * u->X : u->X;
    for (int k = 0; k < x->nzone && k < y->nzone; k++) {
        differ(d, "zone", x->zone[k].a, y->zone[k].a * by, size, x->zone[k].a, k);
        differ(d, "zone", x->zone[k].b, y->zone[k].b * by, size, x->zone[k].b, k);
    }
    for (int k = 0; k < x->npoint; k++)
        top = fmax(top, fabs(x->point[k].force));
    for (int k = 0; k < x->npoint && k < y->npoint; k++)
        differ(d, "point force", x->point[k].force, y->point[k].force * u->K[0] * u->X, top, x->point[k].x,
               k);
}

static void compare_rods(difference *d, const results *r, const results *s, const units *u)
{
    const rod_result *x = r->rod, *y = s->rod;
    int64_t nodes = 0;
    for (int k = 0; k < x->rp->nrod; k++)
        nodes += x->mesh[k].nn;
    double size = largest(x->r, 3 * nodes), top = 0;
    for (int64_t k = 0; k < 3 * nodes; k++)
        differ(d, "place of a node", x->r[k], y->r[k] * u->X, size, 0, k);
    /* if moments hold a rod, its forces are compared with these */
    for (int64_t k = 0; k < nodes; k++)
        top = fmax(top, fmax(largest(x->reaction + 6 * k, 3), largest(x->reaction + 6 * k + 3, 3) / size));
    for (int64_t k = 0; k < 6 * nodes; k++)
        if (k % 6 < 3)
            differ(d, "reaction", x->reaction[k], y->reaction[k] * u->F, top, 0, k);
    differ(d, "number of critical loads", x->ncritical, y->ncritical, 1, 0, 0);
    for (int k = 0; k < x->ncritical && k < y->ncritical; k++)
        differ(d, "critical load", x->critical[k], y->critical[k] * u->T, x->critical[k], 0, k);
}

static const char *const endings[] = { "ok", "stopped", "interrupted", "failed" };

static difference compare(const results *r, const results *s, const units *u)
{
    difference d = { 0 };
    if (r->status != s->status)
        return (difference){ .worst = INFINITY,
                             .what = s->message ? s->message : endings[s->status],
                             .t = s->t_end * u->T };
    if (r->status == RUN_FAILED)
        return d;
    if (r->field && s->field)
        compare_field(&d, r, s, u);
    else if (r->rod && s->rod)
        compare_rods(&d, r, s, u);
    else {
        compare_motion(&d, r, s, u);
        compare_contacts(&d, r, s, u);
        compare_jumps(&d, r, s, u);
    }
    return d;
}

/* ---- the run ---- */
static double seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* A run that takes much longer than the original is a different run. */
static bool too_long(void *ud, double done)
{
    (void)done;
    return seconds() > *(double *)ud;
}

const backend *__real_backend_find(const char *name);
const backend *__real_backend_choose(const program *p);

static void run_again(const backend *b, const program *p, const run_options *o, const results *r, double took)
{
    arena *a = arena_new(&allocator_libc, NULL);
    units u = draw_units(p, a);
    run_options own = options_in(b, o, p, &u);
    results *s = results_new(a, program_in(a, p, &u));
    memcpy(s->param, r->param, (size_t)p->nparam * sizeof *s->param);
    tables_in(p, &u, s->param);
    s->backend = b->name;
    double began = seconds(), stop = began + 1 + 20 * took;
    own.progress = too_long;
    own.ud = &stop;
    b->run(s->prog, &own, s);
    gate_check(s, &own);
    difference d = compare(r, s, &u);
    bool bad = isinf(tolerance) ? r->status != s->status : !(d.worst <= tolerance);
    now.compared++;
    now.failed += bad;
    if (bad || getenv("CDL_SCALES_ALL")) {
        printf("%s %s run %d (%s, %s): %s differs by %.3g at t = %.6g, place %lld, first %s at %.6g; %.2f s, "
               "%.2f s again\n",
               bad ? "#!" : "#", now.name, now.runs, p->model, b->name, d.what ? d.what : "nothing", d.worst,
               d.t, (long long)d.k, d.first_what ? d.first_what : "-", d.first, took, seconds() - began);
        if (bad)
            printf("#    time %g length %g energy %g gap %g X %g U %g K %g row %g\n", u.T, u.L, u.E, u.gap,
                   u.X, u.U[0], u.K[0], u.row);
    }
    results_close(s);
    arena_free(a);
}

static const backend *last_backend;

static void run_twice(const program *p, const run_options *o, results *r)
{
    const backend *b = r->backend ? __real_backend_find(r->backend) : last_backend;
    last_backend = b;
    double began = seconds();
    if (r->backend && now.runs >= RUNS_OF_A_FILE && !now.named)
        now.left = true;
    b->run(p, o, r);
    if (!r->backend || now.left)
        return;
    now.apart = exception_of(now.name, ++now.runs);
    tolerance = now.apart ? now.apart->tolerance : p->rod ? RODS : SAME;
    if (now.apart && now.apart->why == LONG)
        tolerance = RODS;
    if (getenv("CDL_SCALES_SAME"))
        tolerance = atof(getenv("CDL_SCALES_SAME"));
    if (isnan(tolerance))
        return;
    gate_check(r, o);
    run_again(b, p, o, r, seconds() - began);
}

static const backend *watched(const backend *b)
{
    static backend copies[16];
    static const backend *of[16];
    for (int k = 0; b && k < 16; k++) {
        if (of[k] == b)
            return &copies[k];
        if (of[k])
            continue;
        of[k] = b;
        copies[k] = *b;
        copies[k].run = run_twice;
        return &copies[k];
    }
    return b;
}

const backend *__wrap_backend_find(const char *name);
const backend *__wrap_backend_choose(const program *p);
const backend *__wrap_backend_find(const char *name)
{
    return watched(__real_backend_find(name));
}
const backend *__wrap_backend_choose(const program *p)
{
    return watched(__real_backend_choose(p));
}

/* ---- files ---- */
void __wrap_plot_statement(session *s, const ast *e);
void __wrap_save_statement(session *s, const ast *e);
void __wrap_plot_statement(session *s, const ast *e)
{
    (void)s, (void)e;
}
void __wrap_save_statement(session *s, const ast *e)
{
    (void)s, (void)e;
}

static void err(void *ud, const char *t, size_t n)
{
    (void)ud;
    if (getenv("CDL_SCALES_ERR"))
        fwrite(t, 1, n, stderr);
}

/* what is not compared is not run */
static int enough(void *ud)
{
    (void)ud;
    return now.left;
}

static int failures;

static void file_test(const char *path, const char *name, bool named)
{
    const struct exception *apart = exception_of(name, 1);
    if (apart && apart->why == LONG && !named) {
        printf("ok %s # SKIP %s\n", name, apart->why);
        return;
    }
    cdl *s = cdl_new(NULL);
    cdl_set_callbacks(s, &(cdl_callbacks){ .err = err, .interrupted = enough });
    cdl_set(s, "manifest", "no");
    cdl_set(s, "allow-outside", "yes");
    const char *seed = getenv("CDL_SCALES_SEED");
    now = (file_state){ .name = name, .named = named };
    draw_state = hash_bytes(name, strlen(name), seed ? strtoull(seed, NULL, 0) : 15);
    double began = seconds();
    cdl_load_file(s, path);
    cdl_free(s);
    failures += now.failed;
    printf("%s %s: %d runs in other units\n", now.failed ? "not ok" : "ok", name, now.compared);
    if (now.left)
        printf("# later runs of it were left out\n");
    if (getenv("CDL_SCALES_ALL"))
        printf("# %.2f s\n", seconds() - began);
    fflush(stdout);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool wanted(const char *name, int n, char **words)
{
    for (int k = 1; k < n; k++)
        if (strstr(name, words[k]))
            return true;
    return n < 2;
}

static int folder_test(const char *folder, int argc, char **argv)
{
    char *names[512];
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) && n < 512;) {
        size_t len = strlen(e->d_name);
        if (len > 4 && !strcmp(e->d_name + len - 4, ".cdl"))
            names[n++] = strdup(e->d_name);
    }
    if (d)
        closedir(d);
    qsort(names, (size_t)n, sizeof *names, by_name);
    for (int k = 0; k < n; k++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, names[k]);
        if (wanted(path, argc, argv))
            file_test(path, names[k], argc > 1);
        free(names[k]);
    }
    return n;
}

int main(int argc, char **argv)
{
    const char *tests = getenv("tests");
    char models[4096], examples[4096];
    snprintf(models, sizeof models, "%s/run", tests ? tests : "tests");
    snprintf(examples, sizeof examples, "%s/../examples", tests ? tests : "tests");
    const char *seed = getenv("CDL_SCALES_SEED");
    printf("# seed %s\n", seed ? seed : "15");
    int files = folder_test(models, argc, argv) + folder_test(examples, argc, argv);
    if (!files)
        printf("not ok no model found below %s\n", tests ? tests : "tests");
    return failures > 0 || !files;
}
