/* rod_step: forces of an element over a step of time from state 0 to state 1. Their work along the step is
   the change of energy V1 - V0, and they do not act on rigid rotations of the mean state, so energy and
   momentum are conserved to rounding (Gonzalez, Simo, Romero; here for quaternions that are interpolated as
   vectors).

   A node rotates by R1 = cay(phi) R0, so that R1 - R0 = [phi]x (R0 + R1)/2: changes of products of vectors
   follow from the increments and the mean state. With all rotations relative to the first node of the
   element, strains are functions of rho = R_a^T r' and p_j = conj(q_a) q_j, which do not change under rigid
   motions: P = sum N_j p_j, P' = sum N_j' p_j, S = |P|^2, v = R(P)^T rho, u = 2 Im(conj(P) P')/S. Increments
   of these are written exactly as linear maps of increments; quotients by D(x/S) = mean(1/S) Dx + mean(x)
   D(1/S), D(1/S) = -DS/(S0 S1). Forces are the transposes of these maps applied to n = B (mean v - v0), m = A
   (mean u - u0); their work is V1 - V0 because the energy is quadratic. All of this is smooth: no increment
   is a divisor. A larger weight of the strains of state 1 dissipates energy and conserves momentum: the
   weight 1/2 + tau/h gives Kelvin-Voigt damping, tau B Dv/h and tau A Du/h. */
#include "rod.h"
#include <math.h>
#include <string.h>

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

static void quat_vec(const double *P, const double *a, double *c) /* P a, a without a real part */
{
    double b[4] = { 0, a[0], a[1], a[2] };
    quat_mul(P, b, c);
}

static void vec_quat_vec(const double *a, const double *P, const double *b, double *c) /* a P b */
{
    double A[4] = { 0, a[0], a[1], a[2] }, t[4];
    quat_mul(A, P, t);
    quat_vec(t, b, c);
}

static double dot4(const double *a, const double *b)
{
    return a[0] * b[0] + dot3(a + 1, b + 1);
}

/* ---- strains relative to the first node ---- */
/* D: P'; inv = conj(P)/S; Z = P^-1 P' */
typedef struct seen {
    double rho[3], P[4], D[4], S, G[9], v[3], u[3], inv[4], Z[4];
} seen;

static void seen_from(seen *x)
{
    x->S = dot4(x->P, x->P);
    x->inv[0] = x->P[0] / x->S;
    for (int k = 1; k < 4; k++)
        x->inv[k] = -x->P[k] / x->S;
    quat_mul(x->inv, x->D, x->Z);
    quat_matrix(x->P, x->G);
    mat3t(x->G, x->rho, x->v);
    for (int k = 0; k < 3; k++)
        x->u[k] = 2 * x->Z[k + 1];
}

/* Data of a point of integration: both states, their mean, forces. */
typedef struct gauss {
    double N[4], D[4], W;
    seen a, b;                        /* states 0 and 1 */
    double rp[3];                     /* mean r' */
    double rho[3], P[4], Pp[4], G[9]; /* means */
    double As, Bs;                    /* mean of 1/S; 1/(S0 S1) */
    double part;  /* weight of state 1 in the strains that give forces: 1/2, or more with damping */
    double Su[3]; /* S0 u0 + S1 u1 */
} gauss;

/* Places of rho, P, P' among the eleven variables of a point. */
enum { RHO = 0, QUAT = 3, SLOPE = 7, LOCAL = 11 };

static void mean_turn(const gauss *g, const double *n, double *Kn) /* mean of P n conj(P) */
{
    double x[3], y[3];
    mat3(g->a.G, n, x);
    mat3(g->b.G, n, y);
    for (int k = 0; k < 3; k++)
        Kn[k] = (g->a.S * x[k] + g->b.S * y[k]) / 2;
}

static double pull(const gauss *g, const double *Kn, const double *m)
{
    return dot3(g->rho, Kn) + dot3(m, g->Su) / 2;
}

static void local_force(const gauss *g, const double *n, const double *m, double *f)
{
    double Kn[3], a[4], b[4], c[4];
    mat3(g->G, n, f + RHO);
    mean_turn(g, n, Kn);
    vec_quat_vec(g->rho, g->P, n, a);
    quat_vec(g->Pp, m, b);
    quat_vec(g->P, m, c);
    double kappa = pull(g, Kn, m);
    for (int k = 0; k < 4; k++) {
        f[QUAT + k] = -2 * g->As * (a[k] + b[k]) - 2 * g->Bs * kappa * g->P[k];
        f[SLOPE + k] = 2 * g->As * c[k];
    }
}

/* The derivative of these forces along a change d of the eleven variables of state 1: forces follow with the
   stiffness; n and m are constant otherwise. */
static void local_slope(const double *B, const double *A, const gauss *g, const double *n, const double *m,
                        const double *d, double *df)
{
    const double *drho = d + RHO, *dP = d + QUAT, *dD = d + SLOPE;
    double X[4], Y[4], XZ[4], dv[3], du[3], t[3], dn[3], dm[3], Kn[3], Kdn[3], GX[3], Gn[3], dKn[3], xn[3];
    double dS = 2 * dot4(g->b.P, dP), dA = -dS / (2 * g->b.S * g->b.S), dB = -g->Bs * dS / g->b.S;
    quat_mul(g->b.inv, dP, X);
    quat_mul(g->b.inv, dD, Y);
    quat_mul(X, g->b.Z, XZ);
    mat3t(g->b.G, drho, dv);
    cross3(g->b.v, X + 1, t);
    for (int k = 0; k < 3; k++) {
        dv[k] = g->part * (dv[k] + 2 * t[k]);
        du[k] = 2 * (Y[k + 1] - XZ[k + 1]);
    }
    mat3(B, dv, dn);
    mat3(A, du, dm);
    for (int k = 0; k < 3; k++)
        dm[k] *= g->part;
    cross3(X + 1, n, xn);
    mat3(g->b.G, xn, GX);
    mat3(g->b.G, n, Gn);
    mat3(g->G, dn, df + RHO);
    mean_turn(g, n, Kn);
    mean_turn(g, dn, Kdn);
    for (int k = 0; k < 3; k++) {
        df[RHO + k] += GX[k];
        dKn[k] = dS * Gn[k] + 2 * g->b.S * GX[k];
    }
    double T[4], T1[4], a[4], b[4], c[4], p[4], q[4], Pm[4], dPm[4], Pdm[4], kappa = pull(g, Kn, m);
    vec_quat_vec(g->rho, g->P, n, T);
    quat_vec(g->Pp, m, T1);
    vec_quat_vec(drho, g->P, n, a);
    vec_quat_vec(g->rho, dP, n, b);
    vec_quat_vec(g->rho, g->P, dn, c);
    quat_vec(dD, m, p);
    quat_vec(g->Pp, dm, q);
    quat_vec(g->P, m, Pm);
    quat_vec(dP, m, dPm);
    quat_vec(g->P, dm, Pdm);
    double dk = (dot3(drho, Kn) + dot3(g->rho, dKn) + dot3(dm, g->Su)) / 2 + dot3(g->rho, Kdn);
    for (int k = 0; k < 3; k++)
        dk += m[k] * (dS * g->b.u[k] + g->b.S * du[k]) / 2;
    for (int k = 0; k < 4; k++) {
        double dT = (a[k] + b[k] + p[k]) / 2 + c[k] + q[k];
        df[QUAT + k] = -2 * dA * (T[k] + T1[k]) - 2 * g->As * dT - 2 * (dB * kappa + g->Bs * dk) * g->P[k] -
                       g->Bs * kappa * dP[k];
        df[SLOPE + k] = 2 * dA * Pm[k] + g->As * dPm[k] + 2 * g->As * Pdm[k];
    }
}

/* ---- rotations of a node relative to the first one ---- */
/* p = (s, a/(4 s)), 4 s^2 = 1 + tr M, a the axial vector of M - M^T, M = R_a^T R_j; M changes by mean(R_a)^T
   [phi_j - phi_a]x mean(R_j). */
/* col: mean frames of the first node and of this one; end: those of state 1; by columns. */
typedef struct relative {
    double p0[4], p1[4], col[2][9], end[2][9];
} relative;

/* A[0] for the trace, the others for the axial vector: D = A . (phi_j - phi_a). */
static void axes_of(const double col[2][9], double A[4][3])
{
    double x[3], y[3];
    memset(A[0], 0, sizeof A[0]);
    for (int k = 0; k < 3; k++) {
        int l = (k + 1) % 3, m = (k + 2) % 3;
        cross3(col[1] + 3 * k, col[0] + 3 * k, x);
        for (int i = 0; i < 3; i++)
            A[0][i] += x[i];
        cross3(col[1] + 3 * l, col[0] + 3 * m, x);
        cross3(col[1] + 3 * m, col[0] + 3 * l, y);
        for (int i = 0; i < 3; i++)
            A[k + 1][i] = x[i] - y[i];
    }
}

/* The moment of a force f on p, as coefficients of these four vectors, and its derivative along a change dp
   of p1 (or NULL). */
static void parts_of(const relative *x, const double *f, const double *dp, double *c, double *dc)
{
    double s0 = x->p0[0], s1 = x->p1[0], sum = s0 + s1, af = 0, daf = 0;
    for (int k = 1; k < 4; k++) {
        af += 2 * (s0 * x->p0[k] + s1 * x->p1[k]) * f[k];
        if (dp)
            daf += 2 * (dp[0] * x->p1[k] + s1 * dp[k]) * f[k];
    }
    double y = f[0] - af / (4 * s0 * s1);
    c[0] = y / (4 * sum);
    for (int k = 1; k < 4; k++)
        c[k] = (1 / s0 + 1 / s1) / 8 * f[k];
    if (!dp)
        return;
    dc[0] = -(daf - af * dp[0] / s1) / (4 * s0 * s1) / (4 * sum) - y * dp[0] / (4 * sum * sum);
    for (int k = 1; k < 4; k++)
        dc[k] = -dp[0] / (8 * s1 * s1) * f[k];
}

static void parts_sum(const double *c, double A[4][3], double *tau) /* added */
{
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 3; i++)
            tau[i] += c[k] * A[k][i];
}

/* The change of the moment of a constant force f if the first node (which = 0) or the other one rotates by th
   in its frame. */
static void moment_slope(const relative *x, const double *f, double A[4][3], int which, const double *th,
                         const double *dp, double *dtau)
{
    double c[4], dc[4], turned[2][9], dA[4][3];
    parts_of(x, f, dp, c, dc);
    parts_sum(dc, A, dtau);
    memcpy(turned, x->col, sizeof turned);
    for (int l = 0; l < 3; l++) { /* d(R e_l) = R (th x e_l), half of it in the mean */
        double e[3] = { l == 0, l == 1, l == 2 }, y[3];
        cross3(th, e, y);
        for (int i = 0; i < 3; i++)
            turned[which][3 * l + i] = (x->end[which][i] * y[0] + x->end[which][3 + i] * y[1] +
                                        x->end[which][6 + i] * y[2]) /
                                       2;
    }
    axes_of(turned, dA); /* bilinear: change of one factor with the other one constant */
    parts_sum(c, dA, dtau);
}

/* ---- an element ---- */
typedef struct step {
    const rod_mesh *m;
    gauss g[ROD_GAUSS];
    relative rel[4]; /* of nodes 1, 2, 3 */
    double A[4][4][3];
    double R[4][9], mean[9]; /* frames of state 1; mean frame of the first node */
} step;

static void columns(const double *R, double *C)
{
    for (int i = 0; i < 9; i++)
        C[i] = R[3 * (i % 3) + i / 3];
}

static void relative_to(const double *q, int j, double *p)
{
    double c[4] = { q[0], -q[1], -q[2], -q[3] };
    quat_mul(c, q + 4 * j, p);
}

static void point_state(const gauss *g, const double *r, const double *frame, const double p[4][4], seen *x,
                        double *rp)
{
    memset(rp, 0, 3 * sizeof *rp);
    memset(x->P, 0, sizeof x->P);
    memset(x->D, 0, sizeof x->D);
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 3; k++)
            rp[k] += g->D[i] * r[3 * i + k];
        for (int k = 0; k < 4; k++) {
            x->P[k] += g->N[i] * p[i][k];
            x->D[k] += g->D[i] * p[i][k];
        }
    }
    mat3t(frame, rp, x->rho);
    seen_from(x);
}

static void point_both(gauss *g, const double *r0, const double *r1, const double *R0, const double *R1,
                       const double p0[4][4], const double p1[4][4])
{
    double a[3], b[3];
    point_state(g, r0, R0, p0, &g->a, a);
    point_state(g, r1, R1, p1, &g->b, b);
    for (int k = 0; k < 3; k++) {
        g->rp[k] = (a[k] + b[k]) / 2;
        g->rho[k] = (g->a.rho[k] + g->b.rho[k]) / 2;
        g->Su[k] = g->a.S * g->a.u[k] + g->b.S * g->b.u[k];
    }
    for (int k = 0; k < 4; k++) {
        g->P[k] = (g->a.P[k] + g->b.P[k]) / 2;
        g->Pp[k] = (g->a.D[k] + g->b.D[k]) / 2;
    }
    for (int k = 0; k < 9; k++)
        g->G[k] = (g->a.G[k] + g->b.G[k]) / 2;
    g->As = (1 / g->a.S + 1 / g->b.S) / 2;
    g->Bs = 1 / (g->a.S * g->b.S);
}

static void step_of(const rod_mesh *m, int e, const double *r0, const double *q0, const double *r1,
                    const double *q1, double part, step *s)
{
    double p0[4][4], p1[4][4], R0[4][9], C0[4][9], C1[4][9], h = m->s[3 * e + 3] - m->s[3 * e];
    s->m = m;
    for (int j = 0; j < 4; j++) {
        relative_to(q0, j, p0[j]);
        relative_to(q1, j, p1[j]);
        quat_matrix(q0 + 4 * j, R0[j]);
        quat_matrix(q1 + 4 * j, s->R[j]);
        columns(R0[j], C0[j]);
        columns(s->R[j], C1[j]);
    }
    for (int k = 0; k < 9; k++)
        s->mean[k] = (R0[0][k] + s->R[0][k]) / 2;
    for (int j = 1; j < 4; j++) {
        relative *x = &s->rel[j];
        memcpy(x->p0, p0[j], sizeof x->p0);
        memcpy(x->p1, p1[j], sizeof x->p1);
        memcpy(x->end[0], C1[0], sizeof x->end[0]);
        memcpy(x->end[1], C1[j], sizeof x->end[1]);
        for (int k = 0; k < 9; k++) {
            x->col[0][k] = (C0[0][k] + C1[0][k]) / 2;
            x->col[1][k] = (C0[j][k] + C1[j][k]) / 2;
        }
        axes_of(x->col, s->A[j]);
    }
    for (int k = 0; k < ROD_GAUSS; k++) {
        gauss *g = &s->g[k];
        rod_shape_at(rod_gauss_x[k], g->N, g->D);
        for (int i = 0; i < 4; i++)
            g->D[i] /= h;
        g->W = rod_gauss_w[k] * h;
        g->part = part;
        point_both(g, r0, r1, R0[0], s->R[0], p0, p1);
    }
}

/* Forces of the mean strains; given: forces in state 1 to be used instead. */
static void forces_mean(const rod_mesh *m, int at, const gauss *g, const double *given, double *n, double *mm)
{
    double dv[3], du[3], dv0[3], du0[3];
    for (int k = 0; k < 3; k++) {
        double v0 = m->v0[3 * at + k], u0 = m->u0[3 * at + k];
        dv0[k] = (1 - g->part) * (g->a.v[k] - v0);
        du0[k] = (1 - g->part) * (g->a.u[k] - u0);
        dv[k] = dv0[k] + g->part * (g->b.v[k] - v0);
        du[k] = du0[k] + g->part * (g->b.u[k] - u0);
    }
    mat3(rod_stretch_at(m, at), given ? dv0 : dv, n);
    mat3(rod_bend_at(m, at), given ? du0 : du, mm);
    for (int k = 0; given && k < 3; k++) {
        n[k] += g->part * given[k];
        mm[k] += g->part * given[3 + k];
    }
}

/* Forces at the points; in space; on the p_j; on the nodes. */
typedef struct acting {
    double f[ROD_GAUSS][LOCAL], F[ROD_GAUSS][3], p[4][4], r[4][3], tau[4][3];
} acting;

/* Adds the forces of the points on positions and on the p_j. */
static void spread_local(const gauss *g, const double *f, double p[4][4])
{
    for (int j = 1; j < 4; j++)
        for (int k = 0; k < 4; k++)
            p[j][k] += g->W * (g->N[j] * f[QUAT + k] + g->D[j] * f[SLOPE + k]);
}

static void moments_of(const step *s, double (*p)[4], double (*tau)[3]) /* added */
{
    for (int j = 1; j < 4; j++) {
        double c[4], y[3] = { 0 };
        parts_of(&s->rel[j], p[j], NULL, c, NULL);
        parts_sum(c, (double(*)[3])s->A[j], y);
        for (int k = 0; k < 3; k++) {
            tau[j][k] += y[k];
            tau[0][k] -= y[k];
        }
    }
}

static void acting_of(const step *s, double n[ROD_GAUSS][6], acting *a)
{
    memset(a, 0, sizeof *a);
    for (int k = 0; k < ROD_GAUSS; k++) {
        const gauss *g = &s->g[k];
        double t[3];
        local_force(g, n[k], n[k] + 3, a->f[k]);
        mat3(s->mean, a->f[k] + RHO, a->F[k]);
        cross3(g->rp, a->F[k], t);
        for (int i = 0; i < 4; i++)
            for (int l = 0; l < 3; l++)
                a->r[i][l] += g->W * g->D[i] * a->F[k][l];
        for (int l = 0; l < 3; l++)
            a->tau[0][l] -= g->W * t[l];
        spread_local(g, a->f[k], a->p);
    }
    moments_of(s, a->p, a->tau);
}

/* One column of the tangent: a change of state 1, either a displacement of node c (turn = false) or its
   rotation. */
static void column(const step *s, const acting *a, double J[ROD_GAUSS][LOCAL][LOCAL], int c, int k, bool turn,
                   double *K)
{
    double e[3] = { k == 0, k == 1, k == 2 }, fr[4][3] = { { 0 } }, tau[4][3] = { { 0 } },
           fp[4][4] = { { 0 } }, dp[4][4] = { { 0 } };
    for (int j = 1; turn && j < 4; j++) { /* p = conj(q_a) q_j */
        double y[4];
        if (c == j)
            quat_vec(s->rel[j].p1, e, y);
        else if (c == 0) {
            double th[4] = { 0, -e[0], -e[1], -e[2] };
            quat_mul(th, s->rel[j].p1, y);
        } else
            continue;
        for (int i = 0; i < 4; i++)
            dp[j][i] = y[i] / 2;
    }
    for (int q = 0; q < ROD_GAUSS; q++) {
        const gauss *g = &s->g[q];
        double d[LOCAL] = { 0 }, df[LOCAL], dF[3], t[3], u[3], drp[3] = { 0 };
        if (!turn)
            for (int i = 0; i < 3; i++) {
                d[RHO + i] = g->D[c] * s->R[0][3 * k + i];
                drp[i] = g->D[c] * e[i] / 2;
            }
        else if (c == 0)
            cross3(g->b.rho, e, d + RHO);
        for (int j = 1; j < 4; j++)
            for (int i = 0; i < 4; i++) {
                d[QUAT + i] += g->N[j] * dp[j][i];
                d[SLOPE + i] += g->D[j] * dp[j][i];
            }
        for (int i = 0; i < LOCAL; i++) {
            df[i] = 0;
            for (int l = turn && c ? QUAT : 0; l < (turn ? LOCAL : QUAT); l++)
                df[i] += J[q][i][l] * d[l];
        }
        mat3(s->mean, df + RHO, dF);
        if (turn && c == 0) {
            cross3(e, a->f[q] + RHO, t);
            mat3(s->R[0], t, u);
            for (int i = 0; i < 3; i++)
                dF[i] += u[i] / 2;
        }
        cross3(g->rp, dF, t);
        cross3(drp, a->F[q], u);
        for (int i = 0; i < 4; i++)
            for (int l = 0; l < 3; l++)
                fr[i][l] += g->W * g->D[i] * dF[l];
        for (int l = 0; l < 3; l++)
            tau[0][l] -= g->W * (t[l] + u[l]);
        spread_local(g, df, fp);
    }
    moments_of(s, fp, tau);
    for (int j = 1; turn && j < 4; j++) {
        double y[3] = { 0 };
        if (c != 0 && c != j)
            continue;
        moment_slope(&s->rel[j], a->p[j], (double(*)[3])s->A[j], c != 0, e, dp[j], y);
        for (int i = 0; i < 3; i++) {
            tau[j][i] += y[i];
            tau[0][i] -= y[i];
        }
    }
    int col = 6 * c + (turn ? 3 : 0) + k;
    for (int i = 0; i < 4; i++) {
        double y[3], t[3], z[3] = { 0 };
        mat3t(s->R[i], tau[i], y);
        if (turn && c == i) {
            mat3t(s->R[i], a->tau[i], t);
            cross3(t, e, z);
        }
        for (int l = 0; l < 3; l++) {
            K[(6 * i + l) * ROD_DOFS + col] = fr[i][l];
            K[(6 * i + 3 + l) * ROD_DOFS + col] = y[l] + z[l];
        }
    }
}

void rod_element_step(const rod_mesh *m, int e, const double *r0, const double *q0, const double *r1,
                      const double *q1, const double *given, double part, double *f, double *K)
{
    int k0 = m->first + 3 * e;
    step s;
    acting a;
    double n[ROD_GAUSS][6];
    step_of(m, e, r0 + 3 * k0, q0 + 4 * k0, r1 + 3 * k0, q1 + 4 * k0, part, &s);
    for (int k = 0; k < ROD_GAUSS; k++)
        forces_mean(m, 3 * e + k, &s.g[k], NULL, n[k], n[k] + 3);
    acting_of(&s, n, &a);
    for (int i = 0; f && i < 4; i++) {
        double y[3];
        mat3t(s.R[i], a.tau[i], y);
        for (int k = 0; k < 3; k++) {
            f[6 * i + k] += a.r[i][k];
            f[6 * i + 3 + k] += y[k];
        }
    }
    if (!K)
        return;
    double J[ROD_GAUSS][LOCAL][LOCAL];
    if (given) {
        for (int k = 0; k < ROD_GAUSS; k++)
            forces_mean(m, 3 * e + k, &s.g[k], given + 6 * k, n[k], n[k] + 3);
        acting_of(&s, n, &a);
    }
    for (int k = 0; k < ROD_GAUSS; k++)
        for (int c = 0; c < LOCAL; c++) {
            double d[LOCAL] = { 0 }, df[LOCAL];
            d[c] = 1;
            local_slope(rod_stretch_at(m, 3 * e + k), rod_bend_at(m, 3 * e + k), &s.g[k], n[k], n[k] + 3, d,
                        df);
            for (int i = 0; i < LOCAL; i++)
                J[k][i][c] = df[i];
        }
    for (int c = 0; c < 4; c++)
        for (int k = 0; k < 6; k++)
            column(&s, &a, J, c, k % 3, k > 2, K);
}

double rod_damped(const rod_mesh *m, int e, const double *r0, const double *q0, const double *r1,
                  const double *q1, double part)
{
    int k0 = m->first + 3 * e;
    double sum = 0;
    step s;
    if (!(part > 0.5))
        return 0;
    step_of(m, e, r0 + 3 * k0, q0 + 4 * k0, r1 + 3 * k0, q1 + 4 * k0, part, &s);
    for (int k = 0; k < ROD_GAUSS; k++) {
        const gauss *g = &s.g[k];
        double dv[3], du[3], n[3], mm[3];
        for (int i = 0; i < 3; i++) {
            dv[i] = g->b.v[i] - g->a.v[i];
            du[i] = g->b.u[i] - g->a.u[i];
        }
        mat3(rod_stretch_at(m, 3 * e + k), dv, n);
        mat3(rod_bend_at(m, 3 * e + k), du, mm);
        sum += (part - 0.5) * g->W * (dot3(dv, n) + dot3(du, mm));
    }
    return sum;
}
