#include "turns.h"
#include <math.h>
#include <string.h>
#include "base/rotation.h"

void turns_start(const program *p, double *base)
{
    for (size_t i = 0; i < p->nrotation; i++)
        for (int k = 0; k < 9; k++)
            base[3 * (size_t)p->rotation[i] + (size_t)k] = k % 4 == 0;
}

/* what is turned in the time, no more than about a radian: any base serves, near ones serve best */
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
    for (size_t i = 0; i < p->nrotation; i++) {
        size_t at = (size_t)p->rotation[i];
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

void turns_keep(const program *p, const double *base, double *q, double *v, double *a)
{
    for (size_t i = 0; i < p->nrotation; i++) {
        size_t at = (size_t)p->rotation[i];
        double R[9];
        memcpy(R, base + 3 * at, sizeof R);
        rotation_turn(R, q + at);
        rotation_rates(q + at, v + at, a ? a + at : NULL);
        rotation_vector(R, q + at);
    }
}

void turns_take(const program *p, double *q, double *base)
{
    for (size_t i = 0; i < p->nrotation; i++) {
        size_t at = (size_t)p->rotation[i];
        rotation_of_vector(q + at, base + 3 * at);
        memset(q + at, 0, 3 * sizeof *q);
    }
}

int32_t turns_of(const program *p, int32_t k)
{
    size_t lo = 0, hi = p->nrotation;
    while (hi > lo) {
        size_t mid = (lo + hi) / 2;
        if (p->rotation[mid] + 2 < k)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < p->nrotation && p->rotation[lo] <= k ? p->rotation[lo] : -1;
}
