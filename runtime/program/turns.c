#include "turns.h"
#include <math.h>
#include <string.h>
#include "base/rotation.h"
#include "base/tolerances.h"

void turns_start(const program *p, double *base)
{
    for (size_t i = 0; i < p->rotations.n; i++)
        for (int k = 0; k < 9; k++)
            base[3 * (size_t)p->rotations.at[i] + (size_t)k] = k % 4 == 0;
}

/* the rotation in this time, at most about a radian: any base is valid, near ones are best */
static void turn_ahead(const double *w, const double *a, double ahead, double *x)
{
    double size = 0;
    for (int k = 0; k < 3; k++) {
        x[k] = ahead * (w[k] + (a ? 0.5 * ahead * a[k] : 0));
        size += x[k] * x[k];
    }
    if (!(size > 1))
        return;
    size = sqrt(size);
    for (int k = 0; k < 3; k++)
        x[k] = isfinite(size) ? x[k] / size : 0;
}

void turns_centre(const program *p, double *base, double *q, double *v, double *a, double ahead)
{
    for (size_t i = 0; i < p->rotations.n; i++) {
        size_t at = (size_t)p->rotations.at[i];
        double *R = base + 3 * at, *x = q + at, *of = a ? a + at : NULL;
        rotation_turn(R, x);
        rotation_rates(x, v + at, of);
        memset(x, 0, 3 * sizeof *x);
        if (ahead == 0)
            continue;
        turn_ahead(v + at, of, ahead, x);
        rotation_turn(R, x);
        for (int k = 0; k < 3; k++)
            x[k] = -x[k];
        rotation_unrates(x, v + at, of);
    }
}

static bool in_middle(const double *x0, const double *x1)
{
    double off = 0, turn = 0;
    for (int k = 0; k < 3; k++) {
        off = fmax(off, fabs(x0[k] + x1[k]));
        turn = fmax(turn, fabs(x1[k] - x0[k]));
    }
    return off <= TURN_MIDDLE * turn;
}

/* z: half of the turn y */
static void half_turn(const double *y, double *z)
{
    double by = 1 / (1 + sqrt(1 + 0.25 * (y[0] * y[0] + y[1] * y[1] + y[2] * y[2])));
    for (int k = 0; k < 3; k++)
        z[k] = by * y[k];
}

bool turns_middle(const program *p, double *base, double *q, double *v, double *a, double *q1, double *v1)
{
    bool any = false;
    for (size_t i = 0; i < p->rotations.n; i++) {
        size_t at = (size_t)p->rotations.at[i];
        double *R = base + 3 * at, *x0 = q + at, *x1 = q1 + at, end[9], rest[9], y[3], z[3];
        if (in_middle(x0, x1))
            continue;
        memcpy(end, R, sizeof end);
        rotation_turn(end, x1);
        rotation_turn(R, x0);
        rotation_between(R, end, rest);
        rotation_uncayley(rest, y);
        half_turn(y, z);
        rotation_rates(x0, v + at, a ? a + at : NULL);
        rotation_rates(x1, v1 + at, NULL);
        rotation_turn(R, z);
        for (int k = 0; k < 3; k++) {
            x0[k] = -z[k];
            x1[k] = z[k];
        }
        rotation_unrates(x0, v + at, a ? a + at : NULL);
        rotation_unrates(x1, v1 + at, NULL);
        any = true;
    }
    return any;
}

void turns_keep(const program *p, const double *base, double *q, double *v, double *a)
{
    for (size_t i = 0; i < p->rotations.n; i++) {
        size_t at = (size_t)p->rotations.at[i];
        rotation_kept(base + 3 * at, q + at, v + at, a ? a + at : NULL);
    }
}

void turns_take(const program *p, double *q, double *base)
{
    for (size_t i = 0; i < p->rotations.n; i++) {
        size_t at = (size_t)p->rotations.at[i];
        rotation_of_vector(q + at, base + 3 * at);
        memset(q + at, 0, 3 * sizeof *q);
    }
}
