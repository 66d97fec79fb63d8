/* Results, models and pictures for C programs: kinds, shapes, units, and places in memory. */
#include <math.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "cdl.h"

static char said[1 << 14];
static size_t nsaid;

static void on_err(void *ud, const char *t, size_t n)
{
    (void)ud;
    if (n > sizeof said - 1 - nsaid)
        n = sizeof said - 1 - nsaid;
    memcpy(said + nsaid, t, n);
    said[nsaid += n] = 0;
}

static void assert_said(const char *part)
{
    if (!strstr(said, part))
        fail_msg("no \"%s\" in:\n%s", part, said);
    nsaid = 0;
    said[0] = 0;
}

static cdl *open_session(const char *text)
{
    cdl *s = cdl_new(NULL);
    assert_non_null(s);
    nsaid = 0;
    said[0] = 0;
    cdl_set_callbacks(s, &(cdl_callbacks){ .err = on_err });
    cdl_set(s, "manifest", "no");
    if (cdl_run_text(s, "t.cdl", text, strlen(text)) != CDL_OK)
        fail_msg("%s", said);
    return s;
}

static const char column[] =
    "model column {\n"
    "    param N = 3, e in 0..1 = 0.5, g = 9.81 [m/s^2], w = [1, 2, 3], K = [1, 2; 3, 4]\n"
    "    dof z[i in 1..N] = i\n"
    "    dof p[i in 0..1] in R2 = [i, 5]\n"
    "    dof h = 2 [m]\n h'' = 0\n    let top = z[N] + 1\n"
    "    for i in 1..N { z[i]'' = -g }\n"
    "    for i in 0..1 { p[i]'' = [0, 0] }\n"
    "    constraint floor: z[1] >= 0 { impact = newton(e) }\n"
    "    constraint pair[i in 1..N-1]: z[i+1] - z[i] >= 0 { impact = newton(e) }\n"
    "    constraint rub[i in 0..1]: p[i][2] >= 0 { slip = p[i]', friction = coulomb(0.3) }\n"
    "}\n"
    "run column for 1 with sweeping(h = 0.01)\n";

static const double *numbers(cdl *s, const char *expression, cdl_result *r)
{
    if (cdl_get(s, NULL, expression, r) != CDL_OK)
        fail_msg("%s: %s", expression, said);
    return r->at;
}

static void shapes_of_results(void **state)
{
    (void)state;
    cdl *s = open_session(column);
    cdl_result r, t;
    const double *x = numbers(s, "z", &r);
    assert_int_equal(r.kind, CDL_NUMBERS);
    assert_int_equal(r.rank, 2);
    assert_int_equal(r.shape[0], 101);
    assert_int_equal(r.shape[1], 3);
    assert_int_equal(r.first[1], 1);
    assert_true(r.samples && r.lasting);
    double want, last = *(const double *)((const char *)x + 100 * r.stride[0] + 2 * r.stride[1]);
    assert_int_equal(cdl_value(s, "last(z[3])", &want), CDL_OK);
    assert_true(last == want);
    numbers(s, "p'", &r);
    assert_int_equal(r.rank, 3);
    assert_int_equal(r.shape[1], 2);
    assert_int_equal(r.shape[2], 2);
    assert_int_equal(r.first[1], 0);
    numbers(s, "h", &r);
    assert_string_equal(r.unit, "m");
    numbers(s, "h'", &r);
    assert_string_equal(r.unit, "m/s");
    numbers(s, "h''", &r);
    assert_string_equal(r.unit, "m/s^2");
    x = numbers(s, "pair.rn", &r);
    assert_int_equal(r.rank, 2);
    assert_int_equal(r.shape[1], 2);
    x = numbers(s, "rub.slip", &r);
    assert_int_equal(r.rank, 3);
    assert_int_equal(r.shape[2], 2);
    assert_int_equal(r.first[1], 0);
    numbers(s, "pair.status", &r);
    assert_int_equal(r.kind, CDL_STATES);
    assert_int_equal(r.rank, 2);
    assert_true(((const unsigned char *)r.at)[0] == 0);
    numbers(s, "floor.status", &r);
    assert_int_equal(r.rank, 1);
    x = numbers(s, "t", &t);
    assert_true(x[0] == 0 && *(const double *)((const char *)x + 100 * t.stride[0]) == 1);
    numbers(s, "top", &r);
    assert_int_equal(r.rank, 1);
    assert_false(r.lasting);
    x = numbers(s, "K", &r);
    assert_int_equal(r.rank, 2);
    assert_true(x[2] == 3);
    x = numbers(s, "g", &r);
    assert_int_equal(r.rank, 0);
    assert_true(*x == 9.81);
    assert_string_equal(r.unit, "m/s^2");
    numbers(s, "floor.status(0)", &r);
    assert_int_equal(r.kind, CDL_TEXT);
    assert_string_equal(r.text, "open");
    numbers(s, "1 < 2", &r);
    assert_int_equal(r.kind, CDL_TRUTH);
    numbers(s, "floor", &r);
    assert_int_equal(r.kind, CDL_OBJECT);
    assert_int_equal(cdl_get(s, NULL, "flor.rn", &r), CDL_MODEL);
    assert_said("did you mean 'floor'");
    assert_int_equal(cdl_get(s, NULL, "1 +", &r), CDL_MODEL);
    cdl_free(s);
}

/* New memory is not zero. */
static void *grow_dirty(void *ud, void *p, size_t n)
{
    (void)ud;
    if (n == 0) {
        free(p);
        return NULL;
    }
    if (p)
        return realloc(p, n);
    return (p = malloc(n)) ? memset(p, 0xA5, n) : NULL;
}

/* Members that `where` excludes have places in the columns, which nothing writes: they are 0. */
static void members_left_out_are_zero(void **state)
{
    static const char text[] = "model m { dof x[i in 1..3] = i, x' = 0; for i in 1..3 { x[i]'' = -1 }\n"
                               "constraint pair[i in 1..3, j in 1..3 where i < j]: x[j] - x[i] >= 0.1 }\n"
                               "run m for 0.5 with sweeping(h = 0.01)\n";
    const cdl_allocator dirty = { grow_dirty, NULL };
    (void)state;
    cdl *s = cdl_new(&dirty);
    cdl_result r;
    assert_int_equal(cdl_run_text(s, "t.cdl", text, sizeof text - 1), CDL_OK);
    const double *rn = numbers(s, "pair.rn", &r);
    assert_int_equal(r.rank, 3);
    assert_int_equal(r.shape[0], 51);
    for (size_t k = 0; k < 51 * 9; k++)
        assert_true(rn[k] == 0);
    cdl_free(s);
}

static void tables_and_lists(void **state)
{
    (void)state;
    cdl *s = open_session(column);
    cdl_result r, c;
    numbers(s, "floor.impacts", &r);
    assert_int_equal(r.kind, CDL_TABLE);
    assert_int_equal(r.parts, 4);
    assert_int_equal(cdl_part(s, 0, &c), CDL_OK);
    assert_string_equal(c.name, "t");
    assert_true(c.shape[0] > 0 && fabs(*(const double *)c.at - sqrt(2 / 9.81)) < 1e-3);
    assert_int_equal(cdl_part(s, 4, &c), CDL_USAGE);
    numbers(s, "pair.impacts", &r); /* of a family: with the index of the member */
    assert_int_equal(r.parts, 5);
    cdl_part(s, 0, &c);
    assert_string_equal(c.name, "i");
    numbers(s, "rub[0].rt", &r);
    assert_int_equal(r.rank, 2);
    numbers(s, "[1, 2, 3]", &r);
    assert_int_equal(r.rank, 1);
    cdl_free(s);
}

static const cdl_result *among(const cdl_result *list, size_t n, const char *name)
{
    for (size_t k = 0; k < n; k++)
        if (!strcmp(list[k].name, name))
            return &list[k];
    fail_msg("no %s in the list", name);
    return NULL;
}

static void all_results(void **state)
{
    (void)state;
    cdl *s = open_session(column);
    const cdl_result *list;
    size_t n;
    assert_int_equal(cdl_results(s, NULL, &list, &n), CDL_OK);
    assert_int_equal(among(list, n, "z")->rank, 2);
    assert_int_equal(among(list, n, "p'")->rank, 3);
    assert_int_equal(among(list, n, "pair.rn")->shape[1], 2);
    assert_int_equal(among(list, n, "floor.impacts")->kind, CDL_TABLE);
    assert_int_equal(among(list, n, "energy")->shape[0], 101);
    assert_int_equal(among(list, n, "max_penetration")->rank, 0);
    assert_int_equal(among(list, n, "top")->rank, 1);
    cdl_free(s);
    /* the list does not compute columns that are computed when they are read */
    s = open_session("model ball { dof y = 1\n y'' = -9.81\n constraint floor: y >= 0 }\nrun ball for 1\n");
    assert_int_equal(cdl_results(s, NULL, &list, &n), CDL_OK);
    assert_null(among(list, n, "energy")->at);
    assert_int_equal(among(list, n, "energy")->shape[0], 1001);
    cdl_result e;
    assert_non_null(numbers(s, "energy", &e));
    assert_true(e.lasting);
    cdl_free(s);
}

static void parts_fields_rods(void **state)
{
    (void)state;
    cdl *s = open_session(
        "model disk { param R = 1\n dof p in R2 = [0, 0], a = 0\n kinetic norm(p')^2/2 + a'^2/2 }\n"
        "model pair { part big: disk\n part small[i in 1..2]: disk { p = [i, i] } }\n"
        "run pair for 0.1\n");
    const cdl_result *list;
    size_t n;
    cdl_result r;
    const double *x = numbers(s, "small[2].p", &r);
    assert_int_equal(r.rank, 2);
    assert_true(x[0] == 2);
    cdl_results(s, NULL, &list, &n);
    assert_int_equal(among(list, n, "big.p")->rank, 2);
    cdl_free(s);
    s = open_session(
        "model m { domain x in -1..1, y in 0..1\n field u(x, y)\n -laplacian(u) = -1\n"
        "obstacle u >= 0.2 - x^2 - 2*(y - 0.5)^2\n boundary u = 0 }\nrun m with active_set(cells = 16)\n");
    numbers(s, "u", &r);
    assert_int_equal(r.kind, CDL_NUMBERS);
    assert_int_equal(r.rank, 2);
    x = r.at;
    double want;
    size_t rows = r.shape[0] / 2, columns = r.shape[1] / 2;
    assert_int_equal(cdl_value(s, "u(0, 0.5)", &want), CDL_OK);
    numbers(s, "u", &r);
    assert_true(fabs(*(const double *)((const char *)r.at + (ptrdiff_t)rows * r.stride[0] +
                                       (ptrdiff_t)columns * r.stride[1]) -
                     want) < 1e-12);
    cdl_free(s);
    s = open_session(
        "model f { domain x in 0..1\n field u(x)\n u'' = 1\n at x = 0 { u = 0 }\n at x = 1 { u = 0 } }\n"
        "run f with active_set(cells = 10)\n");
    numbers(s, "u", &r);
    assert_int_equal(r.rank, 1);
    assert_true(r.shape[0] >= 11 && !r.samples);
    cdl_free(s);
    s = open_session(
        "model r { rod wire { length = 1, radius = 0.01, young = 1e6, elements = 8 }\n"
        "at wire.s = 0 { position = [0, 0, 0], frame = eye(3) }\n force wire.x(1): [0.001*t, 0, 0] }\n"
        "run r for 1 with auglag(h = 0.5)\n");
    numbers(s, "wire", &r);
    assert_int_equal(r.kind, CDL_TABLE);
    cdl_result c;
    cdl_part(s, 1, &c);
    assert_string_equal(c.name, "x");
    assert_int_equal(c.rank, 2);
    assert_int_equal(c.shape[1], 3);
    cdl_free(s);
}

static void runs_are_held(void **state)
{
    (void)state;
    cdl *s = open_session(
        "model ball { param e = 0.5\n dof y = 1\n y'' = -9.81\n"
        "constraint floor: y >= 0 { impact = newton(e) } }\nrun ball for 1 with sweeping(h = 0.01)\n");
    cdl_run *first = cdl_hold(s);
    cdl_result a, b;
    cdl_summary u;
    assert_int_equal(cdl_get(s, first, "y", &a), CDL_OK);
    double was = ((const double *)a.at)[90];
    static const char again[] = "run ball(e = 0.9) for 2 with sweeping(h = 0.01)";
    assert_int_equal(cdl_execute(s, again, strlen(again)), CDL_OK);
    numbers(s, "y", &b);
    assert_int_equal(b.shape[0], 201);
    assert_true(((const double *)a.at)[90] == was && ((const double *)b.at)[90] != was);
    assert_int_equal(cdl_summarise(s, first, &u), CDL_OK);
    assert_string_equal(u.model, "ball");
    assert_string_equal(u.backend, "sweeping");
    assert_string_equal(u.ended, "ok");
    assert_int_equal(u.samples, 101);
    assert_true(u.t_end == 1);
    assert_int_equal(cdl_get(s, first, "e", &b), CDL_OK);
    assert_true(*(const double *)b.at == 0.5);
    cdl_drop(s, first);
    assert_int_equal(cdl_get(s, NULL, "e", &b), CDL_OK);
    assert_true(*(const double *)b.at == 0.9);
    cdl_free(s);
}

/* The number of bytes that a session holds, without those that it has freed. */
static size_t held;

static void *counted(void *ud, void *p, size_t n)
{
    (void)ud;
    size_t *block = p ? (size_t *)p - 2 : NULL;
    held -= block ? block[0] : 0;
    if (n == 0) {
        free(block);
        return NULL;
    }
    block = realloc(block, n + 2 * sizeof *block);
    block[0] = n;
    held += n;
    return block + 2;
}

/* Resident pages of the process, for information. */
static long pages(void)
{
    long all = 0, here = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%ld %ld", &all, &here) != 2)
        here = 0;
    if (f)
        fclose(f);
    return here;
}

static void memory_is_flat(void **state)
{
    (void)state;
    const char *many = getenv("CDL_MANY");
    int n = many ? atoi(many) : 300;
    cdl *s = cdl_new(&(cdl_allocator){ counted, NULL });
    cdl_set_callbacks(s, &(cdl_callbacks){ .err = on_err });
    cdl_set(s, "quiet", "yes");
    cdl_set(s, "manifest", "no");
    cdl_set_param(s, "e", "0.25");
    size_t after = 0;
    long shown = 0;
    for (int k = 0; k < n; k++) {
        assert_int_equal(cdl_reset(s), CDL_OK);
        assert_int_equal(cdl_check_text(s, "t", column, strlen(column)), CDL_OK);
        if (k == n / 10)
            after = held;
        if (k == n / 10)
            shown = pages();
    }
    if (many)
        printf("# %d checks: %ld pages after a tenth, %ld at the end\n", n, shown, pages());
    assert_true(held <= after);
    const cdl_quantity *q;
    size_t nq;
    assert_int_equal(cdl_parameters(s, "column", NULL, 0, &q, &nq), CDL_OK);
    /* statements leave nothing in memory either */
    char line[100];
    for (int k = 0; k < n; k++) {
        snprintf(line, sizeof line, "run column(g = %d) for 0.1 with sweeping(h = 0.05)", k + 1);
        assert_int_equal(cdl_execute(s, line, strlen(line)), CDL_OK);
        cdl_result r;
        assert_non_null(numbers(s, "z", &r));
        if (k == n / 10)
            after = held;
        if (k == n / 10)
            shown = pages();
    }
    if (many)
        printf("# %d runs: %ld pages after a tenth, %ld at the end\n", n, shown, pages());
    assert_true(held <= after);
    assert_int_equal(cdl_compiled(s), n);
    cdl_free(s);
    assert_int_equal(held, 0);
}

static void statements_define_nothing(void **state)
{
    (void)state;
    cdl *s = open_session(column);
    assert_int_equal(cdl_execute(s, "let a = 1", 9), CDL_MODEL);
    assert_said("a definition is not allowed here");
    assert_int_equal(cdl_execute(s, "run columm for 1", 16), CDL_MODEL);
    assert_said("did you mean 'column'");
    assert_int_equal(cdl_execute(s, "run column(ee = 1) for 1", 24), CDL_MODEL);
    assert_said("ee");
    /* changing a size compiles the model again; the place of the argument stays valid */
    assert_int_equal(cdl_execute(s, "run column(N = 4) for 0.1", 25), CDL_OK);
    cdl_result r;
    numbers(s, "z", &r);
    assert_int_equal(r.shape[1], 4);
    cdl_free(s);
}

static void assert_near(double is, double want, double by)
{
    if (!(fabs(is - want) <= by))
        fail_msg("%.17g is not within %g of %.17g", is, by, want);
}

static void numbers_of_models(void **state)
{
    (void)state;
    cdl *s = open_session(column);
    const cdl_quantity *q;
    const cdl_definition *d;
    size_t n;
    assert_int_equal(cdl_parameters(s, "column", NULL, 0, &q, &n), CDL_OK);
    assert_int_equal(n, 5);
    assert_string_equal(q[0].name, "N");
    assert_true(q[0].structural && q[0].at[0] == 3);
    assert_true(q[1].lo == 0 && q[1].hi == 1 && q[1].at[0] == 0.5);
    assert_string_equal(q[2].unit, "m/s^2");
    assert_int_equal(q[4].rank, 2);
    assert_true(q[4].at[3] == 4);
    const double four = 4, half = 0.75, big = 2;
    assert_int_equal(cdl_initial(s, "column", &(cdl_numbers){ "N", &four, 1 }, 1, &q, &n), CDL_OK);
    assert_int_equal(n, 3);
    assert_int_equal(q[0].n, 4);
    assert_true(q[0].at[3] == 4 && q[0].rate[3] == 0);
    assert_int_equal(q[1].rank, 2);
    assert_true(q[1].at[1] == 5 && q[1].at[2] == 1);
    assert_int_equal(cdl_parameters(s, "column", &(cdl_numbers){ "e", &half, 1 }, 1, &q, &n), CDL_OK);
    assert_true(q[1].at[0] == 0.75);
    assert_int_equal(cdl_parameters(s, "column", &(cdl_numbers){ "e", &big, 1 }, 1, &q, &n), CDL_MODEL);
    assert_said("lies outside 0..1");
    assert_int_equal(cdl_parameters(s, "column", &(cdl_numbers){ "ww", &big, 1 }, 1, &q, &n), CDL_MODEL);
    assert_said("model 'column' has no parameter 'ww'");
    assert_int_equal(cdl_parameters(s, "colum", NULL, 0, &q, &n), CDL_MODEL);
    assert_said("did you mean 'column'");
    assert_int_equal(cdl_definitions(s, &d, &n), CDL_OK);
    assert_int_equal(n, 1);
    assert_string_equal(d[0].kind, "model");
    cdl_free(s);
    s = open_session("## A thing.\nmodel m { param a\n dof x = a\n x'' = 0 }\n## Over a.\n"
                     "experiment over { sweep a in 1..2\n run m(a = a) for 1\n measure x1 = last(x) }\n");
    assert_int_equal(cdl_parameters(s, "m", NULL, 0, &q, &n), CDL_OK);
    assert_true(!q[0].given && isnan(q[0].at[0]));
    assert_int_equal(cdl_initial(s, "m", NULL, 0, &q, &n), CDL_MODEL);
    assert_said("has no value");
    assert_int_equal(cdl_definitions(s, &d, &n), CDL_OK);
    assert_int_equal(n, 2);
    assert_string_equal(d[0].doc, "A thing.");
    assert_string_equal(d[1].kind, "experiment");
    assert_string_equal(d[1].doc, "Over a.");
    assert_int_equal(cdl_experiment(s, "over"), CDL_OK);
    assert_int_equal(cdl_experiment(s, "ovr"), CDL_MODEL);
    assert_said("did you mean 'over'");
    cdl_free(s);
    s = open_session("model top { dof p = 1, A[i in 1..2] in SO3 = rot_z(0.1*i), A[i in 1..2]' = [i, 0, 3]\n"
                     "    p'' = 0\n for i in 1..2 { kinetic norm(A[i]')^2/2 } }\n");
    assert_int_equal(cdl_initial(s, "top", NULL, 0, &q, &n), CDL_OK);
    assert_int_equal(n, 2);
    assert_true(q[1].rank == 3 && q[1].shape[0] == 2 && q[1].shape[1] == 3 && q[1].shape[2] == 3);
    assert_true(q[1].n == 18 && q[1].nrate == 6 && q[0].nrate == 1);
    assert_near(q[1].at[9], cos(0.2), 1e-15);
    assert_near(q[1].at[12], sin(0.2), 1e-15);
    assert_true(q[1].rate[3] == 2 && q[1].rate[5] == 3);
    cdl_free(s);
}

static double most;
static int calls;

static void on_progress(void *ud, const char *model, double done)
{
    (void)ud;
    assert_string_equal(model, "slow");
    assert_true(done >= most && done <= 1);
    most = done;
    calls++;
}

static void progress_has_a_fraction(void **state)
{
    (void)state;
    cdl *s = cdl_new(NULL);
    static const char slow[] =
        "model slow { dof x = 1\n x'' = -sin(x) }\nrun slow for 1000 with sweeping(h = 1e-3, every = 1)\n";
    cdl_set_progress(s, on_progress, NULL);
    assert_int_equal(cdl_run_text(s, "t", slow, strlen(slow)), CDL_OK);
    assert_true(calls > 2 && most > 0.5);
    cdl_free(s);
}

static void pictures_in_memory(void **state)
{
    (void)state;
    cdl *s = open_session(column);
    const void *bytes;
    size_t n;
    assert_int_equal(cdl_picture(s, NULL, "save t, z[1] { file = \"z.csv\", every = 0.5 }", &bytes, &n),
                     CDL_OK);
    assert_true(n > 5 && !memcmp(bytes, "t,z[1]\n", 7));
    assert_int_equal(access("z.csv", F_OK), -1);
    if (!system("command -v gnuplot >/dev/null")) {
        assert_int_equal(cdl_picture(s, NULL, "plot z[1] against t { file = \"z.svg\" }", &bytes, &n),
                         CDL_OK);
        assert_true(n > 100 && !memcmp(bytes, "<?xml", 5));
    }
    assert_int_equal(cdl_picture(s, NULL, "last(z[1])", &bytes, &n), CDL_IO);
    assert_said("wrote no file");
    assert_int_equal(cdl_picture(s, NULL, "plot zz against t", &bytes, &n), CDL_MODEL);
    cdl_free(s);
}

static int left; /* number of allocations that succeed */

static void *failing(void *ud, void *p, size_t n)
{
    if (n && left-- <= 0)
        return NULL;
    return counted(ud, p, n);
}

/* What a program might do with a session, until it fails. */
static cdl_status all_calls(cdl *s)
{
    static const char again[] = "run ball(e = 0.9) for 0.1 with sweeping(h = 0.01)",
                      ball[] = "model ball { param e = 0.5\n dof y = 1\n y'' = -9.81\n"
                               "constraint floor: y >= 0 { impact = newton(e) } }\n";
    const cdl_result *list;
    const cdl_quantity *q;
    const cdl_definition *d;
    cdl_result r;
    size_t n;
    cdl_status is = cdl_check_text(s, "t", ball, strlen(ball));
    for (int k = 0; is == CDL_OK && k < 2; k++) {
        is = cdl_execute(s, again, strlen(again));
        cdl_hold(s);
    }
    is = is == CDL_OK ? cdl_results(s, NULL, &list, &n) : is;
    is = is == CDL_OK ? cdl_get(s, NULL, "floor.impacts", &r) : is;
    is = is == CDL_OK ? cdl_get(s, NULL, "energy", &r) : is;
    is = is == CDL_OK ? cdl_parameters(s, "ball", NULL, 0, &q, &n) : is;
    is = is == CDL_OK ? cdl_initial(s, "ball", NULL, 0, &q, &n) : is;
    is = is == CDL_OK ? cdl_definitions(s, &d, &n) : is;
    is = is == CDL_OK ? cdl_reset(s) : is;
    return is == CDL_OK ? cdl_check_text(s, "t", ball, strlen(ball)) : is;
}

/* Each allocation fails once: no memory is lost, and the session reports it. */
static void no_memory(void **state)
{
    (void)state;
    cdl_status is = CDL_MEMORY;
    for (int k = 0; is != CDL_OK && k < 3000; k++) {
        left = 1 << 30;
        cdl *s = cdl_new(&(cdl_allocator){ failing, NULL });
        cdl_set_callbacks(s, &(cdl_callbacks){ .err = on_err });
        cdl_set(s, "quiet", "yes");
        cdl_set(s, "manifest", "no");
        cdl_set_param(s, "e", "0.25");
        nsaid = 0;
        left = k;
        is = all_calls(s);
        assert_true(is == CDL_OK || is == CDL_MEMORY);
        left = 1 << 30;
        cdl_free(s);
        assert_int_equal(held, 0);
    }
    assert_int_equal(is, CDL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_of_results),
        cmocka_unit_test(members_left_out_are_zero),
        cmocka_unit_test(tables_and_lists),
        cmocka_unit_test(all_results),
        cmocka_unit_test(parts_fields_rods),
        cmocka_unit_test(runs_are_held),
        cmocka_unit_test(memory_is_flat),
        cmocka_unit_test(numbers_of_models),
        cmocka_unit_test(statements_define_nothing),
        cmocka_unit_test(pictures_in_memory),
        cmocka_unit_test(progress_has_a_fraction),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
