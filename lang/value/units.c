/* units: one table; prefixes are read off the name, so that kg is k and g. */
#include <math.h>
#include <string.h>
#include "units.h"
#include "base/whole.h"
#include "base/tolerances.h"

#define PI 3.14159265358979323846

/* P(name, value, power of ten, m, kg, s, A, K, mol, cd): value*10^power in SI, and takes prefixes; N(…) takes
 * none */
#define UNITS(P, N)                             \
    P("m", 1, 0, 1, 0, 0, 0, 0, 0, 0)           \
    P("g", 1, -3, 0, 1, 0, 0, 0, 0, 0)          \
    P("s", 1, 0, 0, 0, 1, 0, 0, 0, 0)           \
    P("A", 1, 0, 0, 0, 0, 1, 0, 0, 0)           \
    P("K", 1, 0, 0, 0, 0, 0, 1, 0, 0)           \
    P("mol", 1, 0, 0, 0, 0, 0, 0, 1, 0)         \
    P("cd", 1, 0, 0, 0, 0, 0, 0, 0, 1)          \
    P("N", 1, 0, 1, 1, -2, 0, 0, 0, 0)          \
    P("J", 1, 0, 2, 1, -2, 0, 0, 0, 0)          \
    P("W", 1, 0, 2, 1, -3, 0, 0, 0, 0)          \
    P("Pa", 1, 0, -1, 1, -2, 0, 0, 0, 0)        \
    P("Hz", 1, 0, 0, 0, -1, 0, 0, 0, 0)         \
    P("V", 1, 0, 2, 1, -3, -1, 0, 0, 0)         \
    P("C", 1, 0, 0, 0, 1, 1, 0, 0, 0)           \
    P("F", 1, 0, -2, -1, 4, 2, 0, 0, 0)         \
    P("Ohm", 1, 0, 2, 1, -3, -2, 0, 0, 0)       \
    P("Ω", 1, 0, 2, 1, -3, -2, 0, 0, 0)         \
    P("S", 1, 0, -2, -1, 3, 2, 0, 0, 0)         \
    P("T", 1, 0, 0, 1, -2, -1, 0, 0, 0)         \
    P("Wb", 1, 0, 2, 1, -2, -1, 0, 0, 0)        \
    P("H", 1, 0, 2, 1, -2, -2, 0, 0, 0)         \
    P("rad", 1, 0, 0, 0, 0, 0, 0, 0, 0)         \
    P("L", 1, -3, 3, 0, 0, 0, 0, 0, 0)          \
    P("l", 1, -3, 3, 0, 0, 0, 0, 0, 0)          \
    P("bar", 1, 5, -1, 1, -2, 0, 0, 0, 0)       \
    N("deg", PI / 180, 0, 0, 0, 0, 0, 0, 0, 0)  \
    N("rpm", PI / 30, 0, 0, 0, -1, 0, 0, 0, 0)  \
    N("min", 60, 0, 0, 0, 1, 0, 0, 0, 0)        \
    N("h", 3600, 0, 0, 0, 1, 0, 0, 0, 0)        \
    N("day", 86400, 0, 0, 0, 1, 0, 0, 0, 0)     \
    N("percent", 1, -2, 0, 0, 0, 0, 0, 0, 0)    \
    N("tonne", 1, 3, 0, 1, 0, 0, 0, 0, 0)       \
    N("atm", 101325, 0, -1, 1, -2, 0, 0, 0, 0)  \
    N("inch", 0.0254, 0, 1, 0, 0, 0, 0, 0, 0)   \
    N("ft", 0.3048, 0, 1, 0, 0, 0, 0, 0, 0)     \
    N("lb", 0.45359237, 0, 0, 1, 0, 0, 0, 0, 0) \
    N("lbf", 4.4482216152605, 0, 1, 1, -2, 0, 0, 0, 0)

static const struct unit {
    const char *name;
    bool prefixes;
    double value;
    int ten;
    int8_t e[DIM_BASES];
} units[] = {
#define P(name, value, ten, ...) { name, true, value, ten, { __VA_ARGS__ } },
#define N(name, value, ten, ...) { name, false, value, ten, { __VA_ARGS__ } },
    UNITS(P, N)
#undef P
#undef N
};

/* micro is u, the micro sign, or the Greek letter */
static const struct {
    const char *name;
    int ten;
} prefixes[] = { { "f", -15 },       { "p", -12 }, { "n", -9 }, { "u", -6 }, { "\xC2\xB5", -6 },
                 { "\xCE\xBC", -6 }, { "m", -3 },  { "c", -2 }, { "d", -1 }, { "h", 2 },
                 { "k", 3 },         { "M", 6 },   { "G", 9 },  { "T", 12 } };

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- dimensions ---- */

dim dim_none(void)
{
    return (dim){ .any = false };
}
dim dim_any(void)
{
    return (dim){ .any = true };
}

bool dim_equal(dim a, dim b)
{
    return a.any || b.any || !memcmp(a.e, b.e, sizeof a.e);
}

/* exponents beyond the range are clipped: no real unit has them */
static int16_t exponent_fit(int e)
{
    return (int16_t)(e > INT16_MAX ? INT16_MAX : e < -INT16_MAX ? -INT16_MAX : e);
}

static dim dim_combine(dim a, dim b, int sign)
{
    if (a.any || b.any)
        return dim_any();
    for (int k = 0; k < DIM_BASES; k++)
        a.e[k] = exponent_fit(a.e[k] + sign * b.e[k]);
    return a;
}

dim dim_mul(dim a, dim b)
{
    return dim_combine(a, b, 1);
}
dim dim_div(dim a, dim b)
{
    return dim_combine(a, b, -1);
}

dim dim_pow(dim a, double exponent, bool *ok)
{
    *ok = true;
    if (a.any)
        return a;
    for (int k = 0; k < DIM_BASES; k++) {
        if (!a.e[k])
            continue;
        /* 1/3 is not a double, so a tiny difference is accepted */
        double e = a.e[k] * exponent, whole = rint(e);
        *ok = fabs(e) <= INT16_MAX && fabs(e - whole) <= EXPONENT_WHOLE * (1 + fabs(e));
        if (!*ok)
            return dim_any();
        a.e[k] = (int16_t)whole_clamp(whole, -INT16_MAX, INT16_MAX);
    }
    return a;
}

/* ^2, ^(1/2), nothing for 1 */
static void exponent_text(text *out, int e)
{
    int over = DIM_ONE;
    for (int p = 2; p <= 3; p++)
        while (e % p == 0 && over % p == 0) {
            e /= p;
            over /= p;
        }
    if (over > 1)
        text_printf(out, "^(%d/%d)", e, over);
    else if (e > 1)
        text_printf(out, "^%d", e);
}

/* the factors whose exponents have the given sign; how many there were */
static int factors_text(text *out, dim d, int sign)
{
    static const struct {
        const char *name;
        int base;
    } order[DIM_BASES] = { { "kg", 1 }, { "m", 0 },   { "s", 2 }, { "A", 3 },
                           { "K", 4 },  { "mol", 5 }, { "cd", 6 } };
    int n = 0;
    for (int k = 0; k < DIM_BASES; k++) {
        int e = sign * d.e[order[k].base];
        if (e <= 0)
            continue;
        if (n++)
            text_putc(out, '*');
        text_puts(out, order[k].name);
        exponent_text(out, e);
    }
    return n;
}

static int factors_below(dim d)
{
    int n = 0;
    for (int k = 0; k < DIM_BASES; k++)
        n += d.e[k] < 0;
    return n;
}

void dim_text(text *out, dim d)
{
    if (d.any) {
        text_puts(out, "any");
        return;
    }
    if (!factors_text(out, d, 1))
        text_putc(out, '1');
    int below = factors_below(d);
    if (!below)
        return;
    text_puts(out, below > 1 ? "/(" : "/");
    factors_text(out, d, -1);
    if (below > 1)
        text_putc(out, ')');
}

/* ---- units ---- */

static const struct unit *unit_plain(const char *name)
{
    for (size_t k = 0; k < COUNT(units); k++)
        if (!strcmp(units[k].name, name))
            return &units[k];
    return NULL;
}

/* the unit after a prefix, whose power of ten is added */
static const struct unit *unit_prefixed(const char *name, int *ten)
{
    for (size_t k = 0; k < COUNT(prefixes); k++) {
        size_t len = strlen(prefixes[k].name);
        if (strncmp(name, prefixes[k].name, len))
            continue;
        const struct unit *u = unit_plain(name + len);
        if (!u || !u->prefixes)
            continue;
        *ten += prefixes[k].ten;
        return u;
    }
    return NULL;
}

/* value*10^ten, rounded once: powers of ten up to 22 are exact */
static double times_ten_to(double value, int ten)
{
    double power = 1;
    for (int k = ten < 0 ? -ten : ten; k > 0; k--)
        power *= 10;
    return ten < 0 ? value / power : value * power;
}

bool unit_find(const char *name, double *factor, dim *d)
{
    int ten = 0;
    const struct unit *u = unit_plain(name);
    if (!u)
        u = unit_prefixed(name, &ten);
    if (!u)
        return false;
    if (factor)
        *factor = times_ten_to(u->value, u->ten + ten);
    if (!d)
        return true;
    *d = dim_none();
    for (int k = 0; k < DIM_BASES; k++)
        d->e[k] = (int16_t)(u->e[k] * DIM_ONE);
    return true;
}

/* dividing by a whole number rounds once, where the factor would have been rounded before */
double unit_scale(double x, double factor)
{
    double parts = rint(1 / factor);
    return factor < 1 && parts < 1e22 && 1 / parts == factor ? x / parts : x * factor;
}

static const char *const names[] = {
#define P(name, ...) name,
    UNITS(P, P)
#undef P
#define P(name, ...) "m" name, "k" name, "M" name, "u" name, "n" name, "G" name,
#define N(name, ...)
        UNITS(P, N)
#undef P
#undef N
            "cm",
    "dm", "hPa", NULL
};

const char *unit_name(size_t k)
{
    return k < COUNT(names) ? names[k] : NULL;
}
