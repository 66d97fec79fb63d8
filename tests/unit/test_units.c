/* Units and dimensions. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "value/units.h"
#include "base/diag.h"

static arena *a;

static int setup(void **state)
{
    (void)state;
    a = arena_new(&allocator_libc, NULL);
    return a ? 0 : -1;
}
static int teardown(void **state)
{
    (void)state;
    arena_free(a);
    return 0;
}

static const char *dim_str(dim d)
{
    text s = { .a = a };
    dim_text(&s, d);
    return s.at;
}

static dim unit(const char *name)
{
    dim d;
    if (!unit_find(name, NULL, &d))
        fail_msg("no unit '%s'", name);
    return d;
}

static void factors_and_dimensions(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double factor;
        const char *dim;
    } row[] = { { "m", 1, "m" },
                { "mm", 1e-3, "m" },
                { "cm", 1e-2, "m" },
                { "km", 1e3, "m" },
                { "um", 1e-6, "m" },
                { "µm", 1e-6, "m" },
                { "μm", 1e-6, "m" },
                { "nm", 1e-9, "m" },
                { "kg", 1, "kg" },
                { "g", 1e-3, "kg" },
                { "mg", 1e-6, "kg" },
                { "ug", 1e-9, "kg" },
                { "tonne", 1e3, "kg" },
                { "s", 1, "s" },
                { "ms", 1e-3, "s" },
                { "min", 60, "s" },
                { "h", 3600, "s" },
                { "day", 86400, "s" },
                { "N", 1, "kg*m/s^2" },
                { "kN", 1e3, "kg*m/s^2" },
                { "J", 1, "kg*m^2/s^2" },
                { "W", 1, "kg*m^2/s^3" },
                { "Pa", 1, "kg/(m*s^2)" },
                { "MPa", 1e6, "kg/(m*s^2)" },
                { "GPa", 1e9, "kg/(m*s^2)" },
                { "bar", 1e5, "kg/(m*s^2)" },
                { "mbar", 100, "kg/(m*s^2)" },
                { "Hz", 1, "1/s" },
                { "kHz", 1e3, "1/s" },
                { "rad", 1, "1" },
                { "percent", 0.01, "1" },
                { "L", 1e-3, "m^3" },
                { "ml", 1e-6, "m^3" },
                { "V", 1, "kg*m^2/(s^3*A)" },
                { "C", 1, "s*A" },
                { "F", 1, "s^4*A^2/(kg*m^2)" },
                { "Ohm", 1, "kg*m^2/(s^3*A^2)" },
                { "kΩ", 1e3, "kg*m^2/(s^3*A^2)" },
                { "S", 1, "s^3*A^2/(kg*m^2)" },
                { "T", 1, "kg/(s^2*A)" },
                { "Wb", 1, "kg*m^2/(s^2*A)" },
                { "H", 1, "kg*m^2/(s^2*A^2)" },
                { "K", 1, "K" },
                { "mol", 1, "mol" },
                { "mmol", 1e-3, "mol" },
                { "cd", 1, "cd" },
                { "ft", 0.3048, "m" },
                { "inch", 0.0254, "m" },
                { "lb", 0.45359237, "kg" },
                { "TW", 1e12, "kg*m^2/s^3" },
                { "deg", 0.017453292519943295, "1" },
                { "rpm", 0.10471975511965977, "1/s" } };
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        double f;
        dim d;
        if (!unit_find(row[k].name, &f, &d))
            fail_msg("no unit '%s'", row[k].name);
        if (f != row[k].factor)
            fail_msg("%s is %.17g", row[k].name, f);
        assert_string_equal(dim_str(d), row[k].dim);
    }
}

static void unknown_units(void **state)
{
    (void)state;
    static const char *const no[] = { "",      "x", "k",   "kk",   "kmin", "mday", "mh", "kkg",
                                      "meter", "M", "mmm", "kdeg", "t",    "e",    "n" };
    for (size_t k = 0; k < sizeof no / sizeof *no; k++)
        if (unit_find(no[k], NULL, NULL))
            fail_msg("'%s' is a unit", no[k]);
}

/* Every listed name is a unit, and no name occurs twice. */
static void names_are_units(void **state)
{
    (void)state;
    size_t n = 0;
    for (; unit_name(n); n++) {
        double f;
        dim d;
        assert_true(unit_find(unit_name(n), &f, &d));
        assert_true(f > 0 && isfinite(f));
        for (size_t k = 0; k < n; k++)
            assert_string_not_equal(unit_name(k), unit_name(n));
    }
    assert_true(n > 100);
    assert_null(unit_name(n));
    assert_null(unit_name(n + 1000));
}

static void misspelt(void **state)
{
    (void)state;
    static const char *const row[][2] = {
        { "hz", "Hz" }, { "Kg", "kg" }, { "kpa", "kPa" }, { "ohm", "Ohm" }, { "dgr", NULL }
    };
    for (size_t k = 0; k < 5; k++) {
        near q = near_to(row[k][0]);
        for (size_t i = 0; unit_name(i); i++)
            near_try(&q, unit_name(i));
        if (row[k][1])
            assert_string_equal(near_best(&q), row[k][1]);
    }
}

/* a value in a unit is the nearest double */
static void scaled_once(void **state)
{
    (void)state;
    double mm, km, h;
    assert_true(unit_find("mm", &mm, NULL) && unit_find("km", &km, NULL) && unit_find("h", &h, NULL));
    for (int k = 0; k < 1000; k++)
        assert_true(unit_scale(k, mm) == k / 1000.0);
    assert_true(unit_scale(9, mm) == 0.009);
    assert_true(unit_scale(2.5, km) == 2500);
    assert_true(unit_scale(36, km / h) == 10);
    assert_true(unit_scale(0, mm) == 0);
    assert_true(unit_scale(INFINITY, mm) == INFINITY);
}

static void arithmetic(void **state)
{
    (void)state;
    bool ok;
    dim speed = dim_div(unit("m"), unit("s"));
    assert_string_equal(dim_str(speed), "m/s");
    assert_string_equal(dim_str(dim_div(speed, unit("s"))), "m/s^2");
    assert_string_equal(dim_str(dim_mul(unit("kg"), dim_pow(speed, 2, &ok))), "kg*m^2/s^2");
    assert_true(ok);
    assert_true(dim_equal(dim_mul(unit("N"), unit("m")), unit("J")));
    assert_false(dim_equal(unit("N"), unit("J")));
    assert_true(dim_equal(dim_div(unit("m"), unit("mm")), dim_none()));
    assert_string_equal(dim_str(dim_none()), "1");
}

static void roots(void **state)
{
    (void)state;
    bool ok;
    dim r = dim_pow(unit("N"), 0.5, &ok);
    assert_true(ok);
    assert_string_equal(dim_str(r), "kg^(1/2)*m^(1/2)/s");
    assert_true(dim_equal(dim_mul(r, r), unit("N")));
    assert_string_equal(dim_str(dim_pow(unit("Hz"), 0.5, &ok)), "1/s^(1/2)");
    assert_string_equal(dim_str(dim_pow(unit("m"), 2.0 / 3, &ok)), "m^(2/3)");
    assert_true(ok);
    assert_string_equal(dim_str(dim_pow(unit("m"), -1.5, &ok)), "1/m^(3/2)");
    assert_true(dim_pow(unit("m"), 0.3, &ok).any && !ok);
    assert_true(dim_pow(unit("m"), 1e9, &ok).any && !ok);
    assert_true(dim_pow(unit("m"), NAN, &ok).any && !ok);
    assert_true(dim_equal(dim_pow(dim_none(), 0.3, &ok), dim_none()) && ok);
}

static void any_fits_all(void **state)
{
    (void)state;
    bool ok;
    assert_true(dim_equal(dim_any(), unit("m")));
    assert_true(dim_equal(unit("m"), dim_any()));
    assert_true(dim_mul(dim_any(), unit("m")).any);
    assert_true(dim_div(unit("m"), dim_any()).any);
    assert_true(dim_pow(dim_any(), 0.3, &ok).any && ok);
    assert_false(dim_mul(unit("s"), unit("m")).any);
    assert_false(dim_equal(dim_none(), unit("m")));
    assert_string_equal(dim_str(dim_any()), "any");
}

static void exponents_stay_in_range(void **state)
{
    (void)state;
    dim d = unit("m");
    for (int k = 0; k < 40; k++)
        d = dim_mul(d, d);
    assert_int_equal(d.e[0], INT16_MAX);
    d = dim_div(dim_none(), d);
    for (int k = 0; k < 3; k++)
        d = dim_mul(d, d);
    assert_int_equal(d.e[0], -INT16_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(factors_and_dimensions),
                                        cmocka_unit_test(unknown_units),
                                        cmocka_unit_test(names_are_units),
                                        cmocka_unit_test(misspelt),
                                        cmocka_unit_test(scaled_once),
                                        cmocka_unit_test(arithmetic),
                                        cmocka_unit_test(roots),
                                        cmocka_unit_test(any_fits_all),
                                        cmocka_unit_test(exponents_stay_in_range) };
    return cmocka_run_group_tests(tests, setup, teardown);
}
