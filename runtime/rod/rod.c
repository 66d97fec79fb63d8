/* rod: rotations and elements. */
#include "rod.h"
#include "base/tolerances.h"
#include <math.h>
#include <string.h>

/* ---- rotations ---- */
void cross3(const double *a, const double *b, double *c)
{
    c[0] = a[1] * b[2] - a[2] * b[1];
    c[1] = a[2] * b[0] - a[0] * b[2];
    c[2] = a[0] * b[1] - a[1] * b[0];
}

double norm3(const double *a)
{
    return sqrt(dot3(a, a));
}

void quat_mul(const double *a, const double *b, double *c)
{
    c[0] = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3];
    c[1] = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2];
    c[2] = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1];
    c[3] = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0];
}

void quat_matrix(const double *q, double R[9])
{
    double w = q[0], x = q[1], y = q[2], z = q[3], k = 2 / (w * w + x * x + y * y + z * z);
    R[0] = 1 - k * (y * y + z * z);
    R[1] = k * (x * y - w * z);
    R[2] = k * (x * z + w * y);
    R[3] = k * (x * y + w * z);
    R[4] = 1 - k * (x * x + z * z);
    R[5] = k * (y * z - w * x);
    R[6] = k * (x * z - w * y);
    R[7] = k * (y * z + w * x);
    R[8] = 1 - k * (x * x + y * y);
}

static void quat_unit(double *q)
{
    double k = 1 / sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    for (int i = 0; i < 4; i++)
        q[i] *= k;
}

/* Starts from the largest of the four components, so that no small number is a divisor. */
void quat_of_matrix(const double R[9], double *q)
{
    double t[4] = { R[0] + R[4] + R[8], R[0] - R[4] - R[8], R[4] - R[0] - R[8], R[8] - R[0] - R[4] };
    int big = 0;
    for (int i = 1; i < 4; i++)
        if (t[i] > t[big])
            big = i;
    double a = R[7] - R[5], b = R[2] - R[6], c = R[3] - R[1], xy = R[1] + R[3], xz = R[2] + R[6],
           yz = R[5] + R[7];
    double all[4][4] = {
        { 1 + t[0], a, b, c }, { a, 1 + t[1], xy, xz }, { b, xy, 1 + t[2], yz }, { c, xz, yz, 1 + t[3] }
    };
    memcpy(q, all[big], sizeof all[big]);
    quat_unit(q);
}

void quat_turn(double *q, const double *theta)
{
    double a = norm3(theta), k = a > ROUND_ROOT ? sin(a / 2) / a : 0.5 - a * a / 48;
    double e[4] = { cos(a / 2), k * theta[0], k * theta[1], k * theta[2] }, out[4];
    quat_mul(q, e, out);
    memcpy(q, out, sizeof out);
    quat_unit(q);
}

void quat_log(const double *from, const double *to, double *theta)
{
    double c[4] = { from[0], -from[1], -from[2], -from[3] }, d[4];
    quat_mul(c, to, d);
    double s = norm3(d + 1), sign = d[0] < 0 ? -1 : 1;
    double k = s > ANGLE_ZERO ? 2 * atan2(s, sign * d[0]) / s : 2 / (sign * d[0]);
    for (int i = 0; i < 3; i++)
        theta[i] = sign * k * d[i + 1];
}

void quat_cayley(const double *from, const double *to, double *phi)
{
    double c[4] = { from[0], -from[1], -from[2], -from[3] }, d[4];
    quat_mul(c, to, d);
    for (int i = 0; i < 3; i++)
        phi[i] = 2 * d[i + 1] / d[0];
}

/* ---- shape functions ---- */
const double rod_gauss_x[ROD_GAUSS] = { 0.11270166537925831148, 0.5, 0.88729833462074168852 };
const double rod_gauss_w[ROD_GAUSS] = { 5.0 / 18, 8.0 / 18, 5.0 / 18 };

void rod_shape_at(double x, double *N, double *dN)
{
    double a = x, b = x - 1.0 / 3, c = x - 2.0 / 3, d = x - 1;
    if (N) {
        N[0] = -4.5 * b * c * d;
        N[1] = 13.5 * a * c * d;
        N[2] = -13.5 * a * b * d;
        N[3] = 4.5 * a * b * c;
    }
    if (!dN)
        return;
    dN[0] = -4.5 * (c * d + b * d + b * c);
    dN[1] = 13.5 * (c * d + a * d + a * c);
    dN[2] = -13.5 * (b * d + a * d + a * b);
    dN[3] = 4.5 * (b * c + a * c + a * b);
}

#define M(x) (x / 1680.0)
const double rod_mass[4][4] = { { M(128), M(99), M(-36), M(19) },
                                { M(99), M(648), M(-81), M(-36) },
                                { M(-36), M(-81), M(648), M(99) },
                                { M(19), M(-36), M(99), M(128) } };
#undef M
double rod_mass_at(const rod_mesh *m, int e, int i, int j)
{
    return m->masses ? m->masses[16 * e + 4 * i + j] : m->mass * rod_mass[i][j];
}

const double *rod_lump_at(const rod_mesh *m, int node)
{
    return m->lumps && (m->lumps[10 * node] > 0 || m->lumps[10 * node + 1] > 0) ? m->lumps + 10 * node : NULL;
}

const double *rod_inertia_at(const rod_mesh *m, int node)
{
    return m->inertias ? m->inertias + 9 * node : m->J;
}

const double rod_piece[4] = { 1.0 / 8, 3.0 / 8, 3.0 / 8, 1.0 / 8 };

/* ---- a point of integration ---- */
typedef struct point {
    double N[4], D[4], W;                             /* shape functions, their derivatives in s, weight */
    double Q[4], Qp[4], rp[3], R[9], inv[4][4], Z[4]; /* inv X = Q^-1 X */
    double v[3], u[3];
} point;

static void mat3(const double *M, const double *x, double *y)
{
    for (int i = 0; i < 3; i++)
        y[i] = M[3 * i] * x[0] + M[3 * i + 1] * x[1] + M[3 * i + 2] * x[2];
}

static void mat3t(const double *M, const double *x, double *y)
{
    for (int i = 0; i < 3; i++)
        y[i] = M[i] * x[0] + M[3 + i] * x[1] + M[6 + i] * x[2];
}

/* strains: v = R^T r', u = 2 Im(Q^-1 Q') */
static void point_at(const rod_mesh *m, int e, const double *r, const double *q, double x, double weight,
                     point *p)
{
    int k0 = m->first + 3 * e;
    double h = m->s[3 * e + 3] - m->s[3 * e];
    rod_shape_at(x, p->N, p->D);
    p->W = weight * h;
    memset(p->Q, 0, sizeof p->Q);
    memset(p->Qp, 0, sizeof p->Qp);
    memset(p->rp, 0, sizeof p->rp);
    for (int i = 0; i < 4; i++) {
        p->D[i] /= h;
        for (int k = 0; k < 4; k++) {
            p->Q[k] += p->N[i] * q[4 * (k0 + i) + k];
            p->Qp[k] += p->D[i] * q[4 * (k0 + i) + k];
        }
        for (int k = 0; k < 3; k++)
            p->rp[k] += p->D[i] * r[3 * (k0 + i) + k];
    }
    const double *Q = p->Q;
    double t = 1 / (Q[0] * Q[0] + Q[1] * Q[1] + Q[2] * Q[2] + Q[3] * Q[3]);
    double inv[4][4] = { { Q[0], Q[1], Q[2], Q[3] },
                         { -Q[1], Q[0], Q[3], -Q[2] },
                         { -Q[2], -Q[3], Q[0], Q[1] },
                         { -Q[3], Q[2], -Q[1], Q[0] } };
    for (int i = 0; i < 4; i++) {
        p->Z[i] = 0;
        for (int k = 0; k < 4; k++) {
            p->inv[i][k] = t * inv[i][k];
            p->Z[i] += p->inv[i][k] * p->Qp[k];
        }
    }
    quat_matrix(Q, p->R);
    mat3t(p->R, p->rp, p->v);
    for (int i = 0; i < 3; i++)
        p->u[i] = 2 * p->Z[i + 1];
}

static void forces_of(const rod_mesh *m, int at, const point *p, double *n, double *mm)
{
    double dv[3], du[3];
    for (int i = 0; i < 3; i++) {
        dv[i] = p->v[i] - m->v0[3 * at + i];
        du[i] = p->u[i] - m->u0[3 * at + i];
    }
    mat3(rod_stretch_at(m, at), dv, n);
    mat3(rod_bend_at(m, at), du, mm);
}

/* Derivatives of the energy with respect to rho = R^T dr', X = Q^-1 dQ, Y = Q^-1 dQ'. */
typedef struct slopes {
    double rho[3], X[4], Y[4];
} slopes;

static void slopes_of(const point *p, const double *n, const double *m, slopes *g, double *w)
{
    double k[3], mu[3], sigma = p->Z[0];
    cross3(n, p->v, k);
    cross3(m, p->u, mu);
    w[0] = dot3(m, p->u) / 2;
    for (int i = 0; i < 3; i++)
        w[i + 1] = sigma * m[i] - mu[i] / 2;
    g->X[0] = -2 * w[0];
    g->Y[0] = 0;
    for (int i = 0; i < 3; i++) {
        g->rho[i] = n[i];
        g->X[i + 1] = 2 * (k[i] - w[i + 1]);
        g->Y[i + 1] = 2 * m[i];
    }
}

static void put_cross(const double *a, double k, double *M, int ld) /* M += k [a]x */
{
    M[1] -= k * a[2];
    M[2] += k * a[1];
    M[ld] += k * a[2];
    M[ld + 2] -= k * a[0];
    M[2 * ld] -= k * a[1];
    M[2 * ld + 1] += k * a[0];
}

/* Second derivatives in these variables: of the strains times the stiffness, and of the strains times the
   forces. */
typedef struct hessian {
    double RX[3][4], XX[4][4], XY[4][4], YY[4][4];
} hessian;

static void hessian_of(const double *B, const double *A, const point *p, const double *n, const double *m,
                       const double *w, hessian *H)
{
    double Vx[3][4] = { { 0 } }, Ux[3][4] = { { 0 } }, BV[3][4], AU[3][4], k[3], nv = dot3(n, p->v);
    put_cross(p->v, 2, &Vx[0][1], 4);
    put_cross(p->u, 1, &Ux[0][1], 4);
    for (int i = 0; i < 3; i++) {
        Ux[i][0] = -p->u[i];
        Ux[i][i + 1] -= 2 * p->Z[0];
    }
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++) {
            BV[i][j] = B[3 * i] * Vx[0][j] + B[3 * i + 1] * Vx[1][j] + B[3 * i + 2] * Vx[2][j];
            AU[i][j] = A[3 * i] * Ux[0][j] + A[3 * i + 1] * Ux[1][j] + A[3 * i + 2] * Ux[2][j];
        }
    memcpy(H->RX, BV, sizeof BV);
    put_cross(n, -2, &H->RX[0][1], 4);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            H->XX[i][j] = Vx[0][i] * BV[0][j] + Vx[1][i] * BV[1][j] + Vx[2][i] * BV[2][j] +
                          Ux[0][i] * AU[0][j] + Ux[1][i] * AU[1][j] + Ux[2][i] * AU[2][j];
            H->XY[i][j] = j ? 2 * AU[j - 1][i] : 0;
            H->YY[i][j] = i && j ? 4 * A[3 * (i - 1) + j - 1] : 0;
        }
    cross3(n, p->v, k);
    H->XX[0][0] += 4 * w[0];
    for (int i = 0; i < 3; i++) {
        H->XX[0][i + 1] += 4 * w[i + 1] - 2 * k[i];
        H->XX[i + 1][0] += 4 * w[i + 1] - 2 * k[i];
        H->XX[i + 1][i + 1] -= 4 * (nv + w[0]);
        H->XY[0][i + 1] -= 2 * m[i];
        H->XY[i + 1][0] -= 2 * m[i];
        for (int j = 0; j < 3; j++)
            H->XX[i + 1][j + 1] += 2 * (n[i] * p->v[j] + p->v[i] * n[j]);
    }
    put_cross(m, 2, &H->XY[1][1], 4);
}

static void turn_back(const double inv[4][4], const double M[4][4], double out[4][4]) /* inv^T M inv */
{
    double T[4][4];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            T[i][j] = M[i][0] * inv[0][j] + M[i][1] * inv[1][j] + M[i][2] * inv[2][j] + M[i][3] * inv[3][j];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            out[i][j] = inv[0][i] * T[0][j] + inv[1][i] * T[1][j] + inv[2][i] * T[2][j] + inv[3][i] * T[3][j];
}

/* Derivatives with respect to positions and quaternions of the nodes, with all seven numbers as independent
   variables. */
typedef struct raw {
    double f[4][7];
    double rr[4][4][3][3], rq[4][4][3][4], qq[4][4][4][4];
} raw;

static void raw_slopes(const point *p, const slopes *g, raw *w)
{
    double pr[3], pQ[4], pP[4];
    mat3(p->R, g->rho, pr);
    for (int k = 0; k < 4; k++) {
        pQ[k] = p->inv[0][k] * g->X[0] + p->inv[1][k] * g->X[1] + p->inv[2][k] * g->X[2] +
                p->inv[3][k] * g->X[3];
        pP[k] = p->inv[1][k] * g->Y[1] + p->inv[2][k] * g->Y[2] + p->inv[3][k] * g->Y[3];
    }
    for (int i = 0; i < 4; i++) {
        double a = p->W * p->N[i], b = p->W * p->D[i];
        for (int k = 0; k < 3; k++)
            w->f[i][k] += b * pr[k];
        for (int k = 0; k < 4; k++)
            w->f[i][3 + k] += a * pQ[k] + b * pP[k];
    }
}

static void raw_tangent(const double *B, const point *p, const hessian *H, raw *w)
{
    double RB[3][3], rr[3][3], T[3][4], rq[3][4], XX[4][4], XY[4][4], YY[4][4];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            RB[i][j] = p->R[3 * i] * B[j] + p->R[3 * i + 1] * B[3 + j] + p->R[3 * i + 2] * B[6 + j];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            rr[i][j] = p->W * dot3(RB[i], p->R + 3 * j);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++)
            T[i][j] = p->R[3 * i] * H->RX[0][j] + p->R[3 * i + 1] * H->RX[1][j] +
                      p->R[3 * i + 2] * H->RX[2][j];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++)
            rq[i][j] = p->W * (T[i][0] * p->inv[0][j] + T[i][1] * p->inv[1][j] + T[i][2] * p->inv[2][j] +
                               T[i][3] * p->inv[3][j]);
    turn_back(p->inv, H->XX, XX);
    turn_back(p->inv, H->XY, XY);
    turn_back(p->inv, H->YY, YY);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            double a = p->D[i] * p->D[j], b = p->D[i] * p->N[j];
            for (int k = 0; k < 3; k++) {
                for (int l = 0; l < 3; l++)
                    w->rr[i][j][k][l] += a * rr[k][l];
                for (int l = 0; l < 4; l++)
                    w->rq[i][j][k][l] += b * rq[k][l];
            }
            if (j < i)
                continue;
            double nn = p->W * p->N[i] * p->N[j], nd = p->W * p->N[i] * p->D[j], dn = p->W * b, dd = p->W * a;
            for (int k = 0; k < 4; k++)
                for (int l = 0; l < 4; l++)
                    w->qq[i][j][k][l] += nn * XX[k][l] + nd * XY[k][l] + dn * XY[l][k] + dd * YY[k][l];
        }
}

/* dq = q theta/2 as a matrix. */
static void half_turn(const double *q, double G[4][3])
{
    double t[4][3] = {
        { -q[1], -q[2], -q[3] }, { q[0], -q[3], q[2] }, { q[3], q[0], -q[1] }, { -q[2], q[1], q[0] }
    };
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 3; j++)
            G[i][j] = t[i][j] / 2;
}

static void residual_put(const raw *w, double G[4][4][3], double *f)
{
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++) {
            f[6 * i + k] += w->f[i][k];
            for (int l = 0; l < 4; l++)
                f[6 * i + 3 + k] += G[i][l][k] * w->f[i][3 + l];
        }
}

/* Adds the contribution of the second derivative of q exp(theta/2): the tangent is not symmetric if there is
   a residual. */
static void bend_put(const double *q, const double *p, double *K)
{
    double c[4] = { q[0], -q[1], -q[2], -q[3] }, z[4];
    quat_mul(c, p, z);
    for (int k = 0; k < 3; k++)
        K[k * ROD_DOFS + k] -= z[0] / 4;
    put_cross(z + 1, 0.25, K, ROD_DOFS);
}

static void tangent_put(const raw *w, double G[4][4][3], const double *q, double *K)
{
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            double *to = K + 6 * i * ROD_DOFS + 6 * j;
            for (int k = 0; k < 3; k++)
                for (int l = 0; l < 3; l++) {
                    const double *x = w->rq[i][j][k], *y = w->rq[j][i][l];
                    to[k * ROD_DOFS + l] = w->rr[i][j][k][l];
                    to[k * ROD_DOFS + 3 + l] = x[0] * G[j][0][l] + x[1] * G[j][1][l] + x[2] * G[j][2][l] +
                                               x[3] * G[j][3][l];
                    to[(k + 3) * ROD_DOFS + l] = y[0] * G[i][0][k] + y[1] * G[i][1][k] + y[2] * G[i][2][k] +
                                                 y[3] * G[i][3][k];
                }
            if (j < i)
                continue;
            double T[4][3];
            for (int k = 0; k < 4; k++)
                for (int l = 0; l < 3; l++) {
                    const double *x = w->qq[i][j][k];
                    T[k][l] = x[0] * G[j][0][l] + x[1] * G[j][1][l] + x[2] * G[j][2][l] + x[3] * G[j][3][l];
                }
            for (int k = 0; k < 3; k++)
                for (int l = 0; l < 3; l++) {
                    double y = G[i][0][k] * T[0][l] + G[i][1][k] * T[1][l] + G[i][2][k] * T[2][l] +
                               G[i][3][k] * T[3][l];
                    to[(k + 3) * ROD_DOFS + 3 + l] = y;
                    if (j > i)
                        K[(6 * j + 3 + l) * ROD_DOFS + 6 * i + 3 + k] = y;
                }
        }
    for (int i = 0; i < 4; i++)
        bend_put(q + 4 * i, w->f[i] + 3, K + (6 * i + 3) * ROD_DOFS + 6 * i + 3);
}

static void energy_put(const rod_mesh *m, int at, const point *p, const double *n, const double *mm,
                       double *energy)
{
    for (int i = 0; i < 3; i++) {
        double v = p->W * n[i] * (p->v[i] - m->v0[3 * at + i]) / 2,
               u = p->W * mm[i] * (p->u[i] - m->u0[3 * at + i]) / 2;
        energy[i == 2 ? 0 : 1] += v;
        energy[i == 2 ? 3 : 2] += u;
    }
}

void rod_element(const rod_mesh *m, int e, const double *r, const double *q, const double *given, double *f,
                 double *K, double *energy)
{
    raw w, held;
    double G[4][4][3];
    const double *qe = q + 4 * (m->first + 3 * e);
    memset(&w, 0, K ? sizeof w : sizeof w.f);
    memset(held.f, 0, sizeof held.f);
    for (int g = 0; g < ROD_GAUSS; g++) {
        point p;
        slopes sl;
        double n[3], mm[3], ww[4];
        int at = 3 * e + g;
        point_at(m, e, r, q, rod_gauss_x[g], rod_gauss_w[g], &p);
        forces_of(m, at, &p, n, mm);
        if (energy)
            energy_put(m, at, &p, n, mm, energy);
        slopes_of(&p, n, mm, &sl, ww);
        raw_slopes(&p, &sl, &w);
        if (!K)
            continue;
        if (given) { /* separate forces for the second derivatives of strains */
            memcpy(n, given + 6 * g, sizeof n);
            memcpy(mm, given + 6 * g + 3, sizeof mm);
            slopes_of(&p, n, mm, &sl, ww);
        }
        raw_slopes(&p, &sl, &held);
        hessian H;
        hessian_of(rod_stretch_at(m, at), rod_bend_at(m, at), &p, n, mm, ww, &H);
        raw_tangent(rod_stretch_at(m, at), &p, &H, &w);
    }
    for (int i = 0; i < 4; i++)
        half_turn(qe + 4 * i, G[i]);
    if (f)
        residual_put(&w, G, f);
    if (!K)
        return;
    memcpy(w.f, held.f, sizeof w.f);
    tangent_put(&w, G, qe, K);
}

/* R f, whose derivative is -2 R [f]x Im(Q^-1 dQ) */
void rod_element_follow(const rod_mesh *m, int e, const double *q, double x, const double *f, double weight,
                        double *res, double *K)
{
    point p;
    double zero[12] = { 0 }, F[3], RF[9], fx[9] = { 0 }, G[4][3];
    rod_mesh one = *m; /* positions do not matter */
    one.first = 0;
    one.s = m->s + 3 * e;
    point_at(&one, 0, zero, q + 4 * (m->first + 3 * e), x, 1, &p);
    mat3(p.R, f, F);
    put_cross(f, 2 * weight, fx, 3);
    for (int i = 0; res && i < 4; i++)
        for (int k = 0; k < 3; k++)
            res[6 * i + k] -= weight * p.N[i] * F[k];
    for (int i = 0; i < 9; i++)
        RF[i] = p.R[3 * (i / 3)] * fx[i % 3] + p.R[3 * (i / 3) + 1] * fx[3 + i % 3] +
                p.R[3 * (i / 3) + 2] * fx[6 + i % 3];
    for (int j = 0; K && j < 4; j++) {
        half_turn(q + 4 * (m->first + 3 * e + j), G);
        for (int l = 0; l < 3; l++) {
            double X[3] = { 0 }, y[3];
            for (int k = 0; k < 3; k++)
                for (int n = 0; n < 4; n++)
                    X[k] += p.N[j] * p.inv[k + 1][n] * G[n][l];
            mat3(RF, X, y);
            for (int i = 0; i < 4; i++)
                for (int k = 0; k < 3; k++)
                    K[(6 * i + k) * ROD_DOFS + 6 * j + 3 + l] += p.N[i] * y[k];
        }
    }
}

void rod_element_forces(const rod_mesh *m, int e, const double *r, const double *q, const double *dx,
                        double *given)
{
    int k0 = m->first + 3 * e;
    for (int g = 0; g < ROD_GAUSS; g++) {
        point p;
        double dr[3] = { 0 }, dQ[4] = { 0 }, dP[4] = { 0 }, rho[3], X[4], Y[4], XZ[4], t[3];
        point_at(m, e, r, q, rod_gauss_x[g], rod_gauss_w[g], &p);
        for (int i = 0; dx && i < 4; i++) {
            const double *d = dx + 6 * (k0 + i);
            double th[4] = { 0, d[3] / 2, d[4] / 2, d[5] / 2 }, y[4];
            quat_mul(q + 4 * (k0 + i), th, y);
            for (int k = 0; k < 3; k++)
                dr[k] += p.D[i] * d[k];
            for (int k = 0; k < 4; k++) {
                dQ[k] += p.N[i] * y[k];
                dP[k] += p.D[i] * y[k];
            }
        }
        mat3t(p.R, dr, rho);
        for (int i = 0; i < 4; i++) {
            X[i] = Y[i] = 0;
            for (int k = 0; k < 4; k++) {
                X[i] += p.inv[i][k] * dQ[k];
                Y[i] += p.inv[i][k] * dP[k];
            }
        }
        quat_mul(X, p.Z, XZ);
        cross3(p.v, X + 1, t);
        for (int i = 0; i < 3; i++) {
            p.v[i] += rho[i] + 2 * t[i];
            p.u[i] += 2 * (Y[i + 1] - XZ[i + 1]);
        }
        forces_of(m, 3 * e + g, &p, given + 6 * g, given + 6 * g + 3);
    }
}

void rod_reference(rod_mesh *m, const double *r, const double *q)
{
    for (int e = 0; e < m->ne; e++)
        for (int g = 0; g < ROD_GAUSS; g++) {
            point p;
            point_at(m, e, r, q, rod_gauss_x[g], rod_gauss_w[g], &p);
            memcpy(m->v0 + 3 * (3 * e + g), p.v, sizeof p.v);
            memcpy(m->u0 + 3 * (3 * e + g), p.u, sizeof p.u);
        }
}

/* ---- between the nodes ---- */
int rod_find(const rod_mesh *m, double s, double *x)
{
    int lo = 0, hi = m->ne;
    while (hi - lo > 1) {
        int mid = (lo + hi) / 2;
        if (m->s[3 * mid] <= s)
            lo = mid;
        else
            hi = mid;
    }
    *x = (s - m->s[3 * lo]) / (m->s[3 * lo + 3] - m->s[3 * lo]);
    if (*x < 0)
        *x = 0;
    if (*x > 1)
        *x = 1;
    return lo;
}

void rod_at(const rod_mesh *m, const double *r, const double *q, double s, double *position, double *quat)
{
    double x, N[4];
    int k0 = m->first + 3 * rod_find(m, s, &x);
    rod_shape_at(x, N, NULL);
    if (position)
        memset(position, 0, 3 * sizeof *position);
    if (quat)
        memset(quat, 0, 4 * sizeof *quat);
    for (int i = 0; i < 4; i++) {
        for (int k = 0; position && k < 3; k++)
            position[k] += N[i] * r[3 * (k0 + i) + k];
        for (int k = 0; quat && k < 4; k++)
            quat[k] += N[i] * q[4 * (k0 + i) + k];
    }
    if (quat)
        quat_unit(quat);
}

/* The parabola through the points of integration, where strains are most accurate. */
void rod_element_strain(const rod_mesh *m, int e, const double *r, const double *q, double x, rod_strain *out)
{
    memset(out, 0, sizeof *out);
    for (int g = 0; g < ROD_GAUSS; g++) {
        point p;
        double n[3], mm[3], L = 1;
        point_at(m, e, r, q, rod_gauss_x[g], rod_gauss_w[g], &p);
        forces_of(m, 3 * e + g, &p, n, mm);
        for (int k = 0; k < ROD_GAUSS; k++)
            if (k != g)
                L *= (x - rod_gauss_x[k]) / (rod_gauss_x[g] - rod_gauss_x[k]);
        for (int k = 0; k < 3; k++) {
            out->v[k] += L * p.v[k];
            out->u[k] += L * p.u[k];
            out->n[k] += L * n[k];
            out->m[k] += L * mm[k];
        }
    }
}
