/* vec3: vectors of three numbers, and points of bodies that are placed in space */
#ifndef CDL_VEC3_H
#define CDL_VEC3_H
#include <math.h>
#include <string.h>
#include "base/convex.h"

static inline double dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
static inline void sub(double *to, const double *a, const double *b)
{
    for (int k = 0; k < 3; k++)
        to[k] = a[k] - b[k];
}
static inline void axpy(double *to, double s, const double *a)
{
    for (int k = 0; k < 3; k++)
        to[k] += s * a[k];
}
static inline void copy(double *to, const double *a)
{
    memcpy(to, a, 3 * sizeof *a);
}
static inline void cross(double *to, const double *a, const double *b)
{
    for (int i = 0; i < 3; i++)
        to[i] = a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3];
}
static inline double unit(double *a)
{
    double l = sqrt(dot(a, a));
    for (int k = 0; k < 3 && l > 0; k++)
        a[k] /= l;
    return l;
}
static inline void turned(const body_pose *p, const double *x, double *to)
{
    for (int i = 0; i < 3; i++)
        to[i] = dot(p->A + 3 * i, x);
}
static inline void turned_back(const body_pose *p, const double *x, double *to)
{
    for (int i = 0; i < 3; i++)
        to[i] = p->A[i] * x[0] + p->A[3 + i] * x[1] + p->A[6 + i] * x[2];
}
static inline void placed(const body_pose *p, const double *x, double *to)
{
    turned(p, x, to);
    axpy(to, 1, p->p);
}
static inline void placed_back(const body_pose *p, const double *x, double *to)
{
    double y[3];
    sub(y, x, p->p);
    turned_back(p, y, to);
}
#endif
