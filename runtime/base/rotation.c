#include "rotation.h"
#include "tolerances.h"
#include <math.h>
#include <string.h>

static void cross3(const double a[3], const double b[3], double to[3])
{
    double x = a[1] * b[2] - a[2] * b[1], y = a[2] * b[0] - a[0] * b[2], z = a[0] * b[1] - a[1] * b[0];
    to[0] = x;
    to[1] = y;
    to[2] = z;
}

static double dot3(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void matrix3(const double A[9], const double B[9], double to[9])
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            to[3 * i + j] = A[3 * i] * B[j] + A[3 * i + 1] * B[3 + j] + A[3 * i + 2] * B[6 + j];
}

void rotation_cayley(const double x[3], double C[9])
{
    double quarter = 0.25 * dot3(x, x), s = 1 / (1 + quarter);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            C[3 * i + j] = s * (0.5 * x[i] * x[j] + (i == j ? 1 - quarter : 0));
    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3, k = (i + 2) % 3;
        C[3 * k + j] += s * x[i];
        C[3 * j + k] -= s * x[i];
    }
}

void rotation_uncayley(const double R[9], double x[3])
{
    double s = 4 / (1 + R[0] + R[4] + R[8]); /* 1 + |x|^2/4 */
    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3, k = (i + 2) % 3;
        x[i] = 0.5 * s * (R[3 * k + j] - R[3 * j + k]);
    }
}

double rotation_defect(const double R[9])
{
    double most = 0;
    for (int i = 0; i < 3; i++)
        for (int j = i; j < 3; j++) {
            double d = fabs(R[i] * R[j] + R[3 + i] * R[3 + j] + R[6 + i] * R[6 + j] - (i == j));
            if (!isfinite(d))
                return INFINITY;
            most = fmax(most, d);
        }
    double c[3];
    cross3(R, R + 3, c);
    return dot3(c, R + 6) > 0 ? most : fmax(most, 2);
}

/* Newton's method for the polar part, R <- R (3 I - R^T R)/2: an error d becomes d^2 */
void rotation_mend(double R[9])
{
    for (int turn = 0; turn < 4; turn++) {
        double Q[9], to[9], most = 0;
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
                double d = R[i] * R[j] + R[3 + i] * R[3 + j] + R[6 + i] * R[6 + j] - (i == j);
                Q[3 * i + j] = -0.5 * d;
                most = fmax(most, fabs(d));
            }
        matrix3(R, Q, to);
        for (int i = 0; i < 9; i++)
            R[i] += to[i];
        if (most < ROTATION_MENDED)
            return;
    }
}

void rotation_turn(double R[9], const double x[3])
{
    double C[9], to[9];
    rotation_cayley(x, C);
    matrix3(R, C, to);
    rotation_mend(to);
    memcpy(R, to, sizeof to);
}

void rotation_between(const double A[9], const double B[9], double to[9])
{
    double T[9];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            T[3 * i + j] = A[3 * j + i];
    matrix3(T, B, to);
}

void rotation_rates(const double x[3], double v[3], double a[3])
{
    double s = 1 / (1 + 0.25 * dot3(x, x)), fall = 0.5 * s * dot3(x, v), c[3];
    cross3(x, v, c);
    for (int i = 0; i < 3; i++)
        v[i] = s * (v[i] - 0.5 * c[i]);
    if (!a)
        return;
    cross3(x, a, c);
    for (int i = 0; i < 3; i++)
        a[i] = s * (a[i] - 0.5 * c[i]) - fall * v[i];
}

/* w -> w + cross(x, w)/2 + x (x.w)/4 */
static void unrate(const double x[3], double w[3])
{
    double c[3], along = 0.25 * dot3(x, w);
    cross3(x, w, c);
    for (int i = 0; i < 3; i++)
        w[i] += 0.5 * c[i] + along * x[i];
}

void rotation_unrates(const double x[3], double v[3], double a[3])
{
    double w[3] = { v[0], v[1], v[2] };
    unrate(x, v);
    if (!a)
        return;
    double fall = 0.5 * dot3(x, v) / (1 + 0.25 * dot3(x, x));
    for (int i = 0; i < 3; i++)
        a[i] += fall * w[i];
    unrate(x, a);
}

/* via the unit quaternion u, without loss of digits: its largest component is computed first */
void rotation_vector(const double R[9], double phi[3])
{
    double d[4] = { R[0] + R[4] + R[8], R[0], R[4], R[8] }, u[4];
    int m = 0;
    for (int i = 1; i < 4; i++)
        if (d[i] > d[m])
            m = i;
    double skew[3] = { R[7] - R[5], R[2] - R[6], R[3] - R[1] };
    if (m == 0) {
        u[0] = 1 + d[0];
        for (int i = 0; i < 3; i++)
            u[i + 1] = skew[i];
    } else {
        int i = m - 1, j = (i + 1) % 3, k = (i + 2) % 3;
        u[0] = skew[i];
        u[i + 1] = 1 + R[4 * i] - R[4 * j] - R[4 * k];
        u[j + 1] = R[3 * i + j] + R[3 * j + i];
        u[k + 1] = R[3 * i + k] + R[3 * k + i];
    }
    double sine = sqrt(dot3(u + 1, u + 1)), sign = u[0] < 0 ? -1 : 1;
    /* 2 atan(sine/u0)/sine, which is 2/u0 where sine is small */
    double by = sine > ROTATION_SMALL * fabs(u[0]) ? 2 * atan2(sine, fabs(u[0])) / sine : 2 / fabs(u[0]);
    for (int i = 0; i < 3; i++)
        phi[i] = sign * by * u[i + 1];
}

void rotation_of_vector(const double phi[3], double R[9])
{
    double angle = sqrt(dot3(phi, phi)), half = 0.5 * angle;
    double w = cos(half), by = half > ROTATION_SERIES ? sin(half) / angle : 0.5 - half * half / 12, u[3];
    for (int i = 0; i < 3; i++)
        u[i] = by * phi[i];
    double uu = dot3(u, u);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            R[3 * i + j] = 2 * u[i] * u[j] + (i == j ? w * w - uu : 0);
    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3, k = (i + 2) % 3;
        R[3 * k + j] += 2 * w * u[i];
        R[3 * j + k] -= 2 * w * u[i];
    }
    rotation_mend(R);
}

void rotation_kept(const double R[9], double x[3], double v[3], double a[3])
{
    double A[9];
    memcpy(A, R, sizeof A);
    rotation_turn(A, x);
    rotation_rates(x, v, a);
    rotation_vector(A, x);
}
