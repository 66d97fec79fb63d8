/* rod_touch: forces of contact and friction and their derivatives. */
#include "rod_touch.h"
#include <math.h>
#include <string.h>

/* ---- forces ---- */
static void cross_matrix(const double *a, double M[9])
{
    double c[9] = { 0, -a[2], a[1], a[2], 0, -a[0], -a[1], a[0], 0 };
    memcpy(M, c, sizeof c);
}

static void mul3(const double *A, const double *B, double *C)
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            C[3 * i + j] = A[3 * i] * B[j] + A[3 * i + 1] * B[3 + j] + A[3 * i + 2] * B[6 + j];
}

/* Local coordinates of a pair: variations of the two points and of the tangents there, of the two points at
   the start, rotations of the two nodes. */
enum { V_S, V_U, V_B, V_T, V_A, V_0, V_I, V_J, V_ALL };
enum { VN = 3 * V_ALL };
typedef struct local {
    double res[VN], K[VN][VN];
} local;
typedef double row_of_pair[VN];

/* fn, ft: forces whose rotation with the normal and the sections is differentiated. With springs they are
   those of the state; in a stiff solve they are the multipliers, and the residual contains the values that
   the multipliers get if nothing moves. The linear problem is then that of Newton's method for gap = 0 and
   slip = 0, or for friction against the slip. */
typedef struct force {
    /* Direction of the normal force; the length that it was divided by; the tangents in the previous state,
       if they matter. */
    double M[3], wide, U0[3], T0[3];
    double N[3]; /* normal across which friction acts */
    double U[3], Up[3], T[3], Tp[3], y[3], e[3], l[3], k, kt, mu, turn, fn, ft[3], Ri[9], Rj[9];
    /* Lever arms of friction about the two nodes, in space; fractions of a rotation and of the slip in them.
     */
    double Ai[3], Aj[3], half, quarter;
    /* y: its component across the normal sticks; e: direction of slip; l: the multiplier, if it rotates with
       its frame */
} force;

contact_status press_of(const rod_contacts *k, int pair, double lambda, double gap, double *fn, double *held,
                        double *give)
{
    double soft = k->k[pair], trial = lambda - soft * gap;
    /* springs stiffer than necessary would cost digits that the signs of pivots need */
    *give = !k->stiff ? soft : k->counting ? 1e4 * soft : k->hard[pair];
    *fn = trial > 0 ? lambda - *give * gap : 0;
    *held = k->stiff ? lambda : *fn;
    if (k->lagged && trial <= 0)
        *give = 0;
    return trial > 0 ? STATUS_STICK : STATUS_OPEN;
}

/* Along the normal; in a step of time along the mean of the vectors between the two material points at its
   start, D0, and at its end, D1. The work is then f (|D1|^2 - |D0|^2)/|D0 + D1|, not positive if they
   approach, and there is no moment about the mean positions: contact adds neither energy nor angular
   momentum. */
static void normal_direction(const rod_work *w, const touch *c, force *f)
{
    double p[3], N[3], q[3], far;
    row r;
    memcpy(f->M, c->N, sizeof f->M);
    f->wide = c->far;
    if (!w->motion || pair_of(w, c)->what == TOUCH_PLANE)
        return;
    slave_point(w, c, c->y, w->state.pos0, p);
    if (c->rod < 0) {
        far = body_normal(w, c, p, N);
        for (int i = 0; i < 3; i++)
            p[i] = far * N[i];
    } else {
        row_at(slave_of(w, c), c->y, &r);
        row_sum(slave_of(w, c), &r, r.d, w->state.pos0, f->U0);
        row_at(&w->mesh[c->rod], c->x, &r);
        row_sum(&w->mesh[c->rod], &r, r.d, w->state.pos0, f->T0);
        row_sum(&w->mesh[c->rod], &r, r.w, w->state.pos0, q);
        for (int i = 0; i < 3; i++)
            p[i] -= q[i];
    }
    for (int i = 0; i < 3; i++)
        f->M[i] = p[i] + c->far * c->N[i];
    f->wide = norm3(f->M);
    if (pair_of(w, c)->inside)
        f->wide = -f->wide;
    if (f->wide == 0) { /* on the axis of a bore: nothing touches */
        memcpy(f->M, c->N, sizeof f->M);
        return;
    }
    for (int i = 0; i < 3; i++)
        f->M[i] /= f->wide;
}

void touch_slip(const rod_work *w, const touch *c, const double *Ri, const double *Rj, double *g)
{
    double p[3], q[3];
    slave_point(w, c, c->y0, w->state.pos, p);
    other_place(w, c, q);
    for (int i = 0; i < 3; i++)
        g[i] = p[i] + dot3(Ri + 3 * i, c->a) - q[i] - dot3(Rj + 3 * i, c->rho);
}

static void across(const double *N, const double *y, double *tau)
{
    double n = dot3(N, y);
    for (int i = 0; i < 3; i++)
        tau[i] = y[i] - n * N[i];
}

/* Springs: tau = l - k slip, limited to the bound. */
static void friction_springs(touch *c, force *f, const double *Rl, const double *g, double trial,
                             double bound)
{
    double tau[3], size;
    for (int i = 0; i < 3; i++) {
        f->y[i] = Rl[i] - f->kt * g[i];
        f->l[i] = c->l[i];
    }
    across(c->N, f->y, tau);
    size = norm3(tau);
    if (size > trial)
        c->status = STATUS_SLIP;
    f->turn = c->status == STATUS_SLIP ? bound / size : 1;
    for (int i = 0; i < 3; i++) {
        f->e[i] = tau[i] / size;
        c->ft[i] = f->ft[i] = f->turn * tau[i];
    }
}

/* Multipliers tau as unknowns, following Alart and Curnier: x = tau - r slip decides. Inside the bound slip =
   0, with a small compliance; outside tau = bound x/|x|. From the linearisation of the latter, d tau is
   eliminated: across x/|x| the force is -k slip with k = r b/(1 - b), b = bound/|x|, which is bound/|slip| at
   the solution for any r; along x/|x| the force follows the bound. y: the component of slip along the normal
   counts too, because it becomes tangential if the normal rotates. */
static void friction_unknown(const rod_contacts *k, touch *c, force *f, const double *Rl, const double *g,
                             double trial, double now)
{
    double tau[3], gt[3], x[3], size, r = f->kt, hard = k->hard[c->pair];
    across(c->N, Rl, tau);
    across(c->N, g, gt);
    for (int i = 0; i < 3; i++)
        x[i] = tau[i] - r * gt[i];
    size = norm3(x);
    f->turn = 1;
    memcpy(f->ft, tau, sizeof tau);
    if (size <= trial || !(size > 0)) {
        f->kt = hard;
        for (int i = 0; i < 3; i++) {
            f->y[i] = Rl[i] - hard * (g[i] - gt[i]);
            f->l[i] = c->l[i];
            c->ft[i] = tau[i] - hard * gt[i];
        }
        return;
    }
    c->status = STATUS_SLIP;
    double b = fmax(0, trial) / size, along;
    f->kt = fmin(hard, r * b / (1 - b));
    for (int i = 0; i < 3; i++)
        f->e[i] = x[i] / size;
    along = dot3(f->e, gt);
    for (int i = 0; i < 3; i++) {
        f->y[i] = tau[i] - f->kt * (g[i] - gt[i]);
        c->ft[i] = now * f->e[i] - f->kt * (gt[i] - along * f->e[i]);
    }
}

/* Lever arms of friction about the nodes: R a and R rho. In a step of time with the mean of both frames,
   because R1 - R0 = [phi]x (R0 + R1)/2: the work is then that on the slip g. The forces on both rods act at
   one point, halfway between the mean positions of the material points, which are g/2 apart: they add no
   angular momentum. */
static void friction_arms(const rod_work *w, const touch *c, const double *g, force *f)
{
    double R[9];
    f->half = w->motion ? 0.5 : 1;
    f->quarter = w->motion && c->rod >= 0 ? 0.25 : 0;
    for (int i = 0; i < 3; i++) {
        f->Ai[i] = f->half * dot3(f->Ri + 3 * i, c->a) - f->quarter * g[i];
        f->Aj[i] = f->half * dot3(f->Rj + 3 * i, c->rho) + f->quarter * g[i];
    }
    if (!w->motion)
        return;
    quat_matrix(w->state.rot0 + 4 * c->node, R);
    for (int i = 0; i < 3; i++)
        f->Ai[i] += dot3(R + 3 * i, c->a) / 2;
    if (c->rod < 0)
        return;
    quat_matrix(w->state.rot0 + 4 * c->other, R);
    for (int i = 0; i < 3; i++)
        f->Aj[i] += dot3(R + 3 * i, c->rho) / 2;
}

/* The gradient of a potential of the slip g: |tau|^2/(2 kt) within the bound, linear beyond it. */
static void friction_lagged(touch *c, force *f, const double *g)
{
    double tau[3], size;
    memcpy(f->N, c->held_normal, sizeof f->N);
    for (int i = 0; i < 3; i++)
        f->y[i] = c->held_force[i] - f->kt * g[i];
    across(f->N, f->y, tau);
    size = norm3(tau);
    c->status = size > c->bound ? STATUS_SLIP : STATUS_STICK;
    f->turn = c->status == STATUS_SLIP ? c->bound / size : 1;
    for (int i = 0; i < 3; i++) {
        f->e[i] = size > 0 ? tau[i] / size : 0;
        c->ft[i] = f->ft[i] = f->turn * tau[i];
    }
}

static void friction_force(const rod_work *w, touch *c, force *f)
{
    const rod_contacts *k = w->contact;
    double g[3], Rl[3], mu = k->mu[c->pair], trial = mu, now = mu, bound = mu;
    /* far from a closed gap, only the multiplier is reliable */
    bool coupled = !k->stiff || fabs(c->fn - c->lambda) <= 0.5 * c->lambda;
    f->mu = k->tresca[c->pair] || k->lagged || !coupled ? 0 : mu;
    if (!k->tresca[c->pair]) {
        trial = mu * (c->lambda - k->k[c->pair] * c->gap);
        now = mu * (coupled ? c->fn : c->lambda);
        bound = mu * fmax(0, f->fn);
    }
    f->kt = k->k[c->pair] * k->grip;
    quat_matrix(w->state.rot + 4 * c->node, f->Ri);
    other_matrix(w, c, f->Rj);
    touch_slip(w, c, f->Ri, f->Rj, g);
    friction_arms(w, c, g, f);
    if (c->hats)
        return;
    if (k->lagged) {
        friction_lagged(c, f, g);
        return;
    }
    for (int i = 0; i < 3; i++)
        Rl[i] = dot3(f->Rj + 3 * i, c->l);
    if (k->stiff)
        friction_unknown(k, c, f, Rl, g, trial, now);
    else
        friction_springs(c, f, Rl, g, trial, bound);
}

static bool frictional(const rod_contacts *k, const touch *c)
{
    if (c->hats)
        return k->mu[c->pair] > 0 && !k->smooth;
    if (k->lagged)
        return c->bound > 0;
    return c->status != STATUS_OPEN && k->mu[c->pair] > 0 && !k->smooth;
}

/* At a point of a line: from its hats, whose forces are known. */
static void line_force(const rod_contacts *k, touch *c, force *f)
{
    c->fn = 0;
    c->status = STATUS_OPEN;
    for (int h = 0; h < c->hats; h++) {
        const line_hat *x = &k->line.at[c->hat[h]];
        c->fn += c->top[h] * x->fn;
        f->fn += c->top[h] * x->held_fn;
        for (int q = 0; q < 2; q++)
            for (int i = 0; i < 3; i++) {
                c->ft[i] += c->top[h] * x->f[q] * c->base[q][i];
                f->ft[i] += c->top[h] * x->held_f[q] * c->base[q][i];
            }
        c->status = x->status > c->status ? x->status : c->status;
    }
}

static void force_of(rod_work *w, touch *c, force *f)
{
    row r;
    memset(f, 0, sizeof *f);
    memset(c->ft, 0, sizeof c->ft);
    memcpy(f->N, c->N, sizeof f->N);
    if (c->hats)
        line_force(w->contact, c, f);
    else
        c->status = press_of(w->contact, c->pair, c->lambda, c->gap, &c->fn, &f->fn, &f->k);
    if (c->status == STATUS_OPEN && !frictional(w->contact, c))
        return;
    normal_direction(w, c, f);
    if (c->rod >= 0) {
        row_at(slave_of(w, c), c->y, &r);
        row_sum(slave_of(w, c), &r, r.d, w->state.pos, f->U);
        row_sum(slave_of(w, c), &r, r.dd, w->state.pos, f->Up);
        row_at(&w->mesh[c->rod], c->x, &r);
        row_sum(&w->mesh[c->rod], &r, r.d, w->state.pos, f->T);
        row_sum(&w->mesh[c->rod], &r, r.dd, w->state.pos, f->Tp);
    }
    if (frictional(w->contact, c))
        friction_force(w, c, f);
}

void touch_force(rod_work *w, touch *c)
{
    force f;
    force_of(w, c, &f);
}

static void put_rows(local *o, int at, double k, row_of_pair *d)
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < VN; j++)
            o->K[3 * at + i][j] += k * d[i][j];
}

/* How the two points move if the configuration changes: N.U + eps (y - node) = 0 and N.T = 0 remain valid,
   for points that can move. */
static void places_slope(const touch *c, const force *f, double *dy, double *dx)
{
    double NU = dot3(c->N, f->U), NT = dot3(c->N, f->T), gy[VN] = { 0 }, gx[VN] = { 0 };
    double yy = (dot3(f->U, f->U) - NU * NU) / c->far + dot3(c->N, f->Up) + c->eps;
    double xx = (dot3(f->T, f->T) - NT * NT) / c->far - dot3(c->N, f->Tp),
           yx = (NU * NT - dot3(f->U, f->T)) / c->far;
    for (int i = 0; i < 3; i++) {
        double u = (f->U[i] - NU * c->N[i]) / c->far, t = (f->T[i] - NT * c->N[i]) / c->far;
        gy[3 * V_S + i] = u;
        gy[3 * V_B + i] = -u;
        gy[3 * V_U + i] = c->N[i];
        gx[3 * V_S + i] = -t;
        gx[3 * V_B + i] = t;
        gx[3 * V_T + i] = -c->N[i];
    }
    if (c->fixed)
        yx = 0, yy = INFINITY;
    if (c->clipped)
        yx = 0, xx = INFINITY;
    double det = 1 - (yx / yy) * (yx / xx);
    for (int j = 0; j < VN; j++) {
        dy[j] = -(gy[j] / yy - yx / yy * (gx[j] / xx)) / det;
        dx[j] = -(gx[j] / xx - yx / xx * (gy[j] / yy)) / det;
    }
}

/* Derivatives of the normal force; dN and dfn are returned for friction. */
static void normal_put(const touch *c, const force *f, double ds, bool plane, const double *axis, local *o,
                       row_of_pair *dN, double *dfn, bool tangent)
{
    for (int i = 0; i < 3; i++) {
        o->res[3 * V_S + i] -= ds * c->fn * f->M[i];
        o->res[3 * V_B + i] += ds * c->fn * f->M[i];
    }
    if (!tangent)
        return;
    double dx[VN] = { 0 }, dy[VN] = { 0 };
    if (c->rod >= 0)
        places_slope(c, f, dy, dx);
    for (int j = 0; j < VN; j++)
        dfn[j] = 0;
    for (int i = 0; i < 3; i++) {
        dfn[3 * V_S + i] = -f->k * c->N[i];
        dfn[3 * V_B + i] = f->k * c->N[i];
    }
    double E[3][VN], E0[3][VN], along[VN] = { 0 }, over[VN] = { 0 };
    row_of_pair dM[3];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < VN; j++) {
            E[i][j] = (j == 3 * V_S + i) - (j == 3 * V_B + i) + f->U[i] * dy[j] - f->T[i] * dx[j];
            if (axis && j / 3 == V_S)
                E[i][j] -= axis[i] * axis[j % 3];
            E0[i][j] = E[i][j] + f->U0[i] * dy[j] - f->T0[i] * dx[j];
        }
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < VN; j++) {
            along[j] += c->N[i] * E[i][j];
            over[j] += f->M[i] * E0[i][j];
        }
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < VN; j++) {
            dN[i][j] = plane ? 0 : (E[i][j] - c->N[i] * along[j]) / c->far;
            dM[i][j] = plane ? 0 : (E0[i][j] - f->M[i] * over[j]) / f->wide;
        }
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < VN; j++) {
            double y = ds * (dfn[j] * f->M[i] + f->fn * dM[i][j]);
            o->K[3 * V_S + i][j] -= y;
            o->K[3 * V_B + i][j] += y;
            o->K[3 * V_U + i][j] -= ds * f->fn * f->M[i] * dy[j];
            o->K[3 * V_T + i][j] += ds * f->fn * f->M[i] * dx[j];
        }
}

/* Derivatives of the lever arms, and with them of the slip g, by the coordinates of the pair. */
static void arm_slope(const touch *c, const force *f, bool other, row_of_pair *dA)
{
    double C[9], Mi[9], Mj[9], k = other ? -f->quarter : f->quarter;
    cross_matrix(c->a, C);
    mul3(f->Ri, C, Mi);
    cross_matrix(c->rho, C);
    mul3(f->Rj, C, Mj);
    memset(dA, 0, 3 * sizeof *dA);
    for (int i = 0; i < 3; i++) {
        dA[i][3 * V_A + i] = -k;
        dA[i][3 * V_0 + i] = k;
        for (int j = 0; j < 3; j++) {
            dA[i][3 * V_I + j] = (k - (other ? 0 : f->half)) * Mi[3 * i + j];
            dA[i][3 * V_J + j] = (-k - (other ? f->half : 0)) * Mj[3 * i + j];
        }
    }
}

/* A force F with a lever arm from the node: the moment in its frame is R^T (arm x F). */
static void moment_put(const touch *c, const force *f, bool other, row_of_pair *dF, local *o, bool tangent)
{
    const double *R = other ? f->Rj : f->Ri, *arm = other ? f->Aj : f->Ai;
    double sign = other ? c->ds : -c->ds, v[3], held[3], m[3], C[9];
    int at = other ? V_J : V_I;
    row_of_pair dA[3];
    cross3(arm, c->ft, v);
    for (int i = 0; i < 3; i++)
        o->res[3 * at + i] += sign * (R[i] * v[0] + R[3 + i] * v[1] + R[6 + i] * v[2]);
    if (!tangent)
        return;
    arm_slope(c, f, other, dA);
    for (int j = 0; j < VN; j++) {
        cross3((double[3]){ dA[0][j], dA[1][j], dA[2][j] }, f->ft, v);
        cross3(arm, (double[3]){ dF[0][j], dF[1][j], dF[2][j] }, held);
        for (int i = 0; i < 3; i++)
            v[i] += held[i];
        for (int i = 0; i < 3; i++)
            o->K[3 * at + i][j] += sign * (R[i] * v[0] + R[3 + i] * v[1] + R[6 + i] * v[2]);
    }
    cross3(arm, f->ft, v);
    for (int i = 0; i < 3; i++)
        m[i] = R[i] * v[0] + R[3 + i] * v[1] + R[6 + i] * v[2];
    cross_matrix(m, C);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            o->K[3 * at + i][3 * at + j] += sign * C[3 * i + j];
}

static void friction_slope(const touch *c, const force *f, row_of_pair *dN, const double *dfn,
                           row_of_pair *dF)
{
    row_of_pair dy[3] = { { 0 } };
    double C[9], M[9], b[3], ny = dot3(f->N, f->y), dny[VN] = { 0 };
    for (int i = 0; i < 3; i++) {
        dy[i][3 * V_A + i] = -f->kt;
        dy[i][3 * V_0 + i] = f->kt;
        b[i] = f->l[i] + f->kt * c->rho[i];
    }
    cross_matrix(c->a, C);
    mul3(f->Ri, C, M);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            dy[i][3 * V_I + j] = f->kt * M[3 * i + j];
    cross_matrix(b, C);
    mul3(f->Rj, C, M);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            dy[i][3 * V_J + j] = -M[3 * i + j];
    for (int j = 0; j < VN; j++)
        for (int i = 0; i < 3; i++)
            dny[j] += dN[i][j] * f->y[i] + f->N[i] * dy[i][j];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < VN; j++)
            dF[i][j] = dy[i][j] - dN[i][j] * ny - f->N[i] * dny[j];
    if (c->status != STATUS_SLIP)
        return;
    for (int j = 0; c->turned && j < VN; j++)
        for (int i = 0; i < 3; i++)
            dF[i][j] *= f->turn;
    if (c->turned)
        return;
    for (int j = 0; j < VN; j++) {
        double along = dot3(f->e, (double[3]){ dF[0][j], dF[1][j], dF[2][j] });
        for (int i = 0; i < 3; i++)
            dF[i][j] = f->turn * (dF[i][j] - along * f->e[i]) + f->mu * dfn[j] * f->e[i];
    }
}

static void friction_put(const touch *c, const force *f, local *o, row_of_pair *dN, const double *dfn,
                         row_of_pair *dF, bool tangent)
{
    double ds = c->ds;
    if (tangent && !c->hats) {
        friction_slope(c, f, dN, dfn, dF);
        put_rows(o, V_A, -ds, dF);
        put_rows(o, V_0, ds, dF);
    }
    for (int i = 0; i < 3; i++) {
        o->res[3 * V_A + i] -= ds * c->ft[i];
        o->res[3 * V_0 + i] += ds * c->ft[i];
    }
    moment_put(c, f, false, dF, o, tangent);
    moment_put(c, f, true, dF, o, tangent);
}

/* The coordinates of a pair as sums over dofs. */
/* n == 0: the rotation of node `first`. */
typedef struct {
    int at;
    const double *w;
    int first, n;
} spread;

static int spread_dof(const spread *s, int i, int k, double *weight)
{
    *weight = s->n ? s->w[i] : 1;
    return 6 * (s->first + i) + (s->n ? 0 : 3) + k;
}

/* Coordinates of bodies, which do not move, are left out. */
typedef struct rows {
    row s, s0, b, b0;
} rows;

static int spreads(const rod_work *w, const touch *c, rows *r, spread *all)
{
    const rod_mesh *a = slave_of(w, c), *b = &w->mesh[c->rod < 0 ? 0 : c->rod];
    row_at(a, c->y, &r->s);
    row_at(a, c->y0, &r->s0);
    all[0] = (spread){ V_S, r->s.w, a->first + r->s.first, r->s.n };
    all[1] = (spread){ V_A, r->s0.w, a->first + r->s0.first, r->s0.n };
    all[2] = (spread){ V_I, NULL, c->node, 0 };
    if (c->rod < 0)
        return 3;
    row_at(b, c->x, &r->b);
    row_at(b, c->x0, &r->b0);
    all[3] = (spread){ V_U, r->s.d, a->first + r->s.first, r->s.n };
    all[4] = (spread){ V_B, r->b.w, b->first + r->b.first, r->b.n };
    all[5] = (spread){ V_T, r->b.d, b->first + r->b.first, r->b.n };
    all[6] = (spread){ V_0, r->b0.w, b->first + r->b0.first, r->b0.n };
    all[7] = (spread){ V_J, NULL, c->other, 0 };
    return 8;
}

/* Dofs of a pair, each once, and the derivatives of its coordinates by them. */
enum { PAIR_DOFS = 3 * (6 * WINDOW + 2) };
typedef struct gather {
    int n, dof[PAIR_DOFS];
    double B[PAIR_DOFS][VN];
} gather;

static void gather_dofs(const rod_work *w, const touch *c, gather *g)
{
    rows r;
    spread all[V_ALL];
    int n = spreads(w, c, &r, all);
    g->n = 0;
    for (int p = 0; p < n; p++)
        for (int i = 0; i < (all[p].n ? all[p].n : 1); i++) {
            double weight;
            int first = spread_dof(&all[p], i, 0, &weight), at = 0;
            if (weight == 0)
                continue;
            while (at < g->n && g->dof[at] != first)
                at += 3;
            if (at == g->n) {
                memset(g->B[at], 0, 3 * sizeof g->B[at]);
                for (int k = 0; k < 3; k++)
                    g->dof[at + k] = first + k;
                g->n += 3;
            }
            for (int k = 0; k < 3; k++)
                g->B[at + k][3 * all[p].at + k] += weight;
        }
}

static void scatter(rod_work *w, const touch *c, const local *o, double *res, rod_sparse *K)
{
    gather g;
    gather_dofs(w, c, &g);
    for (int i = 0; i < g.n; i++) {
        double T[VN] = { 0 };
        for (int k = i % 3; k < VN; k += 3) {
            double b = g.B[i][k];
            if (b == 0)
                continue;
            res[g.dof[i]] += b * o->res[k];
            for (int j = 0; K && j < VN; j++)
                T[j] += b * o->K[k][j];
        }
        for (int j = 0; K && j < g.n; j++) {
            double y = 0;
            for (int k = j % 3; k < VN; k += 3)
                y += T[k] * g.B[j][k];
            if (y != 0)
                sparse_add(w->tmp, K, g.dof[i], g.dof[j], y);
        }
    }
}

/* Everything about a pair in the state. */
typedef struct pair_at {
    force f;
    local o;
    row_of_pair dN[3], dF[3];
    double dfn[VN];
} pair_at;

static bool pair_put(rod_work *w, touch *c, bool tangent, pair_at *p)
{
    const rod_contacts *k = w->contact;
    rod_touch what = pair_of(w, c)->what;
    force_of(w, c, &p->f);
    if (c->status == STATUS_OPEN)
        return false;
    memset(&p->o, 0, sizeof p->o);
    memset(p->dF, 0, sizeof p->dF);
    normal_put(c, &p->f, c->ds, what == TOUCH_PLANE,
               what == TOUCH_CYLINDER ? k->body + 7 * c->pair + 3 : NULL, &p->o, p->dN, p->dfn, tangent);
    if (k->lagged)
        memset(p->dN, 0, sizeof p->dN);
    if (frictional(k, c) && (c->hats || !(k->counting && c->status == STATUS_SLIP)))
        friction_put(c, &p->f, &p->o, p->dN, p->dfn, p->dF, tangent);
    return true;
}

void contacts_put(rod_work *w, double *res, rod_sparse *K)
{
    rod_contacts *k = w->contact;
    pair_at p;
    lines_force(w);
    for (size_t i = 0; i < k->list.n; i++)
        if (pair_put(w, &k->list.at[i], K != NULL, &p))
            scatter(w, &k->list.at[i], &p.o, res, K);
    if (K)
        lines_put(w, K);
}

/* Multipliers after a part of an increment; pairs that would pull are opened, and lose their multipliers. */
static void predict(rod_work *w, touch *c, const double *dx, double part)
{
    pair_at p;
    gather g;
    double dv[VN] = { 0 }, fn = 0, ft[3] = { 0 };
    if (pair_put(w, c, true, &p)) {
        gather_dofs(w, c, &g);
        for (int i = 0; i < g.n; i++)
            for (int j = i % 3; j < VN; j += 3)
                dv[j] += g.B[i][j] * dx[g.dof[i]];
        fn = c->fn;
        for (int j = 0; j < VN; j++)
            fn += p.dfn[j] * dv[j];
        for (int i = 0; i < 3; i++) {
            ft[i] = c->ft[i];
            for (int j = 0; j < VN; j++)
                ft[i] += p.dF[i][j] * dv[j];
        }
    }
    c->lambda += part * (fn - c->lambda);
    for (int i = 0; i < 3; i++)
        c->next[i] = p.f.ft[i] + part * (ft[i] - p.f.ft[i]);
}

void contacts_predict(rod_work *w, const double *dx, double part)
{
    for (size_t i = 0; i < w->contact->list.n; i++)
        if (!w->contact->list.at[i].hats)
            predict(w, &w->contact->list.at[i], dx, part);
    lines_force(w);
    lines_predict(w, dx, part);
}

/* ---- potentials ---- */
/* (lambda - k gap)^2/(2 k) of pairs that press, and the potential of friction. */
double contacts_energy(rod_work *w)
{
    const rod_contacts *k = w->contact;
    lines_force(w);
    double sum = lines_energy(w);
    for (size_t i = 0; i < k->list.n; i++) {
        touch *c = &k->list.at[i];
        force f;
        double tau[3], size;
        if (c->hats)
            continue;
        force_of(w, c, &f);
        sum += c->ds * c->fn * c->fn / (2 * k->k[c->pair]);
        if (!frictional(k, c))
            continue;
        across(f.N, f.y, tau);
        size = norm3(tau);
        sum += c->ds * (size > c->bound ? c->bound * (size - c->bound / 2) : size * size / 2) / f.kt;
    }
    return sum;
}
