/* rod_solve: equilibria of rods along a load.  Newton's method with the consistent tangent; without contact the nodes inside elements are eliminated and the
   rest is a band, with contact the whole goes to a sparse factorisation.  Multipliers of contact are updated outside (Uzawa). */
#include "rod_work.h"
#include <lapacke.h>
#include <math.h>
#include <string.h>
#include <suitesparse/umfpack.h>

enum { BAND = 11, LDAB = 3 * BAND + 1, INNER = 12 * 12 + 12 };

/* ---- state ---- */
static double length_of(const rod_work *w)
{
    double L = 0;
    for (int i = 0; i < w->rp->nrod; i++) L = fmax(L, w->mesh[i].length);
    return L;
}

void rod_update(rod_work *w, const double *dx, double k)
{
    for (int i = 0; i < w->N; i++) {
        double th[3];
        for (int j = 0; j < 3; j++) {
            w->pos[3 * i + j] += k * dx[6 * i + j];
            th[j] = k * dx[6 * i + 3 + j];
        }
        quat_turn(w->rot + 4 * i, th);
    }
}

static void state_copy(rod_work *w, double *pos, double *rot, const double *pos1, const double *rot1)
{
    memcpy(pos, pos1, (size_t)(3 * w->N) * sizeof *pos);
    memcpy(rot, rot1, (size_t)(4 * w->N) * sizeof *rot);
}

static double *given_of(const rod_work *w, const rod_mesh *m, int e) { return w->given + 6 * (m->first + 3 * e); }

/* forces at the points of integration: of the state, or what the increment makes of them */
static void forces_follow(rod_work *w, const double *dx)
{
    for (int r = 0; r < w->rp->nrod; r++)
        for (int e = 0; e < w->mesh[r].ne; e++) rod_element_forces(&w->mesh[r], e, w->pos, w->rot, dx, given_of(w, &w->mesh[r], e));
}

/* ---- loads ---- */
/* in the frame of the section a dead moment M acts as R^T M, whose derivative is [R^T M]x */
static void push_moment(rod_work *w, const double *M, int node, double *res, double *block)
{
    double R[9], b[3];
    quat_matrix(w->rot + 4 * node, R);
    for (int k = 0; k < 3; k++) b[k] = R[k] * M[0] + R[3 + k] * M[1] + R[6 + k] * M[2];
    for (int k = 0; k < 3; k++) res[6 * node + 3 + k] -= b[k];
    if (!block) return;
    double *B = block + 9 * node;
    B[1] += b[2]; B[2] -= b[1]; B[3] -= b[2]; B[5] += b[0]; B[6] += b[1]; B[7] -= b[0];
}

static void push_along(rod_work *w, const rod_load *l, double t, double *res)
{
    const rod_mesh *m = &w->mesh[l->rod];
    for (int e = 0; e < m->ne; e++)
        for (int g = 0; g < ROD_GAUSS; g++) {
            double N[4], f[3], h = m->s[3 * e + 3] - m->s[3 * e];
            rod_eval(w, &l->value, t, l->rod, m->s[3 * e] + rod_gauss_x[g] * h, f);
            rod_shape_at(rod_gauss_x[g], N, NULL);
            for (int i = 0; i < 4; i++)
                for (int k = 0; k < 3; k++) res[6 * (m->first + 3 * e + i) + k] -= h * rod_gauss_w[g] * N[i] * f[k];
        }
}

/* res -= loads; block: derivatives of moments, 9 numbers a node (or NULL) */
static void loads_put(rod_work *w, double t, double *res, double *block)
{
    for (int i = 0; i < w->npush; i++) {
        const rod_push *x = &w->push[i];
        double f[3];
        if (x->node < 0) {
            push_along(w, x->load, t, res);
            continue;
        }
        rod_eval(w, &x->load->value, t, x->load->rod, 0, f);
        if (x->load->what == LOAD_MOMENT) push_moment(w, f, x->node, res, block);
        else for (int k = 0; k < 3; k++) res[6 * x->node + k] -= f[k];
    }
}

/* ---- the condensed band ---- */
/* LU of a small matrix with pivoting, applied to m right sides; the sign of its determinant, 0 when it is singular */
static int lu_small(double *A, int n, double *B, int m)
{
    int sign = 1;
    for (int c = 0; c < n; c++) {
        int p = c;
        for (int i = c + 1; i < n; i++) if (fabs(A[i * n + c]) > fabs(A[p * n + c])) p = i;
        if (!(fabs(A[p * n + c]) > 0)) return 0;
        if (p != c) {
            for (int k = c; k < n; k++) { double y = A[c * n + k]; A[c * n + k] = A[p * n + k]; A[p * n + k] = y; }
            for (int k = 0; k < m; k++) { double y = B[c * m + k]; B[c * m + k] = B[p * m + k]; B[p * m + k] = y; }
            sign = -sign;
        }
        double d = 1 / A[c * n + c];
        if (d < 0) sign = -sign;
        for (int i = c + 1; i < n; i++) {
            double y = A[i * n + c] * d;
            if (y == 0) continue;
            for (int k = c + 1; k < n; k++) A[i * n + k] -= y * A[c * n + k];
            for (int k = 0; k < m; k++) B[i * m + k] -= y * B[c * m + k];
        }
    }
    for (int c = n - 1; c >= 0; c--) {
        double d = 1 / A[c * n + c];
        for (int k = 0; k < m; k++) B[c * m + k] *= d;
        for (int i = 0; i < c; i++)
            for (int k = 0; k < m; k++) B[i * m + k] -= A[i * n + c] * B[c * m + k];
    }
    return sign;
}

static int outer(int k) { return k < 6 ? k : k + 12; }      /* dofs of the ends of an element */

static double *band_at(rod_work *w, int i, int j) { return w->band + (2 * BAND + i - j) + (size_t)j * LDAB; }

/* inner nodes of an element out: X = Kii^-1 [Kie | fi] is kept for the way back */
static int condense(rod_work *w, const double *K, const double *f, double *X, int r0)
{
    double A[144], B[12 * 13];
    for (int i = 0; i < 12; i++) {
        for (int j = 0; j < 12; j++) {
            A[12 * i + j] = K[(6 + i) * ROD_DOFS + 6 + j];
            B[13 * i + j] = K[(6 + i) * ROD_DOFS + outer(j)];
        }
        B[13 * i + 12] = f[6 + i];
    }
    int sign = lu_small(A, 12, B, 13);
    memcpy(X, B, sizeof B);
    for (int i = 0; i < 12; i++) {
        const double *row = K + outer(i) * ROD_DOFS;
        double out[13];
        for (int j = 0; j < 12; j++) out[j] = row[outer(j)];
        out[12] = f[outer(i)];
        for (int k = 0; k < 12; k++) {
            double y = row[6 + k];
            for (int j = 0; j < 13; j++) out[j] -= y * B[13 * k + j];
        }
        for (int j = 0; j < 12; j++) *band_at(w, r0 + i, r0 + j) += out[j];
        w->rhs[r0 + i] -= out[12];
    }
    return sign;
}

static void hold_rows(rod_work *w)
{
    for (int node = 0; node < w->N; node++) {
        int r = w->red[node];
        for (int k = 0; r >= 0 && k < 6; k++) {
            if (!w->held[6 * node + k]) continue;
            int i = r + k, lo = i - BAND < 0 ? 0 : i - BAND, hi = i + BAND >= w->nred ? w->nred - 1 : i + BAND;
            double d = fabs(*band_at(w, i, i));
            for (int j = lo; j <= hi; j++) *band_at(w, i, j) = 0;
            *band_at(w, i, i) = d > 0 ? d : 1;
            w->rhs[i] = *band_at(w, i, i) * w->dx[6 * node + k];
        }
    }
}

void rod_band_new(rod_work *w)
{
    int ne = 0;
    w->red = arena_array(w->a, int, w->N);
    for (int r = 0; r < w->rp->nrod; r++) {
        const rod_mesh *m = &w->mesh[r];
        for (int i = 0; i < m->nn; i++) {
            w->red[m->first + i] = i % 3 ? -1 : w->nred;
            if (i % 3 == 0) w->nred += 6;
        }
        ne += m->ne;
    }
    w->band = arena_array(w->a, double, (size_t)w->nred * LDAB);
    w->rhs = arena_array(w->a, double, w->nred);
    w->pivot = arena_array(w->a, int, w->nred);
    w->inner = arena_array(w->a, double, (size_t)ne * INNER);
}

/* a length of rod as a weight of its nodes: what the relaxation drags */
static double drag_of(const rod_work *w, const rod_mesh *m, int i, int k)
{
    double a = i > 0 ? m->s[i - 1] : m->s[0], b = i + 1 < m->nn ? m->s[i + 1] : m->s[i];
    return w->shift * (b - a) / 2 * (k < 3 ? 1 : 0.01 * m->length * m->length);
}

/* external forces and their derivatives, put into the first element that has the node */
static void element_external(const rod_work *w, const rod_mesh *m, int e, const double *ext, const double *block, double *f, double *K)
{
    for (int i = e ? 1 : 0; i < 4; i++) {
        int node = m->first + 3 * e + i;
        for (int k = 0; k < 6; k++) f[6 * i + k] += ext[6 * node + k];
        for (int k = 0; k < 9; k++) K[(6 * i + 3 + k / 3) * ROD_DOFS + 6 * i + 3 + k % 3] += block[9 * node + k];
        for (int k = 0; w->shift > 0 && k < 6; k++) K[(6 * i + k) * (ROD_DOFS + 1)] += drag_of(w, m, 3 * e + i, k);
    }
}

static bool band_factor(rod_work *w)
{
    if (LAPACKE_dgbtrf_work(LAPACK_COL_MAJOR, w->nred, w->nred, BAND, BAND, w->band, LDAB, w->pivot)) return false;
    double most = 0, least = INFINITY;
    for (int i = 0; i < w->nred; i++) {
        double d = *band_at(w, i, i);
        if ((d < 0) != (w->pivot[i] != i + 1)) w->sign = -w->sign;
        most = fmax(most, fabs(d));
        least = fmin(least, fabs(d));
    }
    return least > 1e-15 * most * 1e-3;
}

static void band_back(rod_work *w)
{
    const double *X = w->inner;
    for (int r = 0; r < w->rp->nrod; r++) {
        const rod_mesh *m = &w->mesh[r];
        for (int e = 0; e < m->ne; e++, X += INNER) {
            int node = m->first + 3 * e, r0 = w->red[node];
            for (int k = 0; k < 6; k++) {
                w->dx[6 * node + k] = w->rhs[r0 + k];
                w->dx[6 * (node + 3) + k] = w->rhs[r0 + 6 + k];
            }
            for (int i = 0; i < 12; i++) {
                double y = -X[13 * i + 12];
                for (int j = 0; j < 12; j++) y -= X[13 * i + j] * w->rhs[r0 + j];
                w->dx[6 * (node + 1) + i] = y;
            }
        }
    }
}

bool rod_solve_band(rod_work *w, double t)
{
    arena_pos mark = arena_mark(w->tmp);
    double *ext = arena_array(w->tmp, double, w->ndof), *block = arena_array(w->tmp, double, 9 * w->N), *X = w->inner;
    memset(w->band, 0, (size_t)w->nred * LDAB * sizeof *w->band);
    memset(w->rhs, 0, (size_t)w->nred * sizeof *w->rhs);
    loads_put(w, t, ext, block);
    w->sign = 1;
    for (int r = 0; r < w->rp->nrod; r++) {
        const rod_mesh *m = &w->mesh[r];
        for (int e = 0; e < m->ne; e++, X += INNER) {
            double f[ROD_DOFS] = { 0 }, K[ROD_DOFS * ROD_DOFS];
            rod_element(m, e, w->pos, w->rot, given_of(w, m, e), f, K, NULL);
            element_external(w, m, e, ext, block, f, K);
            w->sign *= condense(w, K, f, X, w->red[m->first + 3 * e]);
        }
    }
    arena_release(w->tmp, mark);
    hold_rows(w);
    if (!w->sign || !band_factor(w)) return false;
    LAPACKE_dgbtrs_work(LAPACK_COL_MAJOR, 'N', w->nred, BAND, BAND, 1, w->band, LDAB, w->pivot, w->rhs, w->nred);
    band_back(w);
    return isfinite(w->dx[0]);
}

/* ---- stability ---- */
/* A = L D L^T without pivots, A symmetric: negative ones are counted; B (n x m) becomes A^-1 B */
static int ldl_small(double *A, int n, double *B, int m)
{
    int bad = 0;
    for (int c = 0; c < n; c++) {
        double d = A[c * n + c];
        if (!(d > 0)) bad++;
        for (int i = c + 1; i < n; i++) {
            double y = A[i * n + c] / d;
            for (int k = c + 1; k < n; k++) A[i * n + k] -= y * A[c * n + k];
            for (int k = 0; k < m; k++) B[i * m + k] -= y * B[c * m + k];
        }
    }
    for (int c = n - 1; c >= 0; c--) {
        for (int k = 0; k < m; k++) B[c * m + k] /= A[c * n + c];
        for (int i = 0; i < c; i++) for (int k = 0; k < m; k++) B[i * m + k] -= A[i * n + c] * B[c * m + k];
    }
    return bad;
}

/* how many directions lower the energy of the rods (without contact; the symmetric part of the tangent) */
static int unstable_modes(rod_work *w, double t)
{
    enum { WIDE = BAND + 1 };
    arena_pos mark = arena_mark(w->tmp);
    double *S = arena_array(w->tmp, double, (size_t)w->nred * WIDE), *ext = arena_array(w->tmp, double, w->ndof), *block = arena_array(w->tmp, double, 9 * w->N);
    int bad = 0;
    loads_put(w, t, ext, block);
    for (int r = 0; r < w->rp->nrod; r++) {
        const rod_mesh *m = &w->mesh[r];
        for (int e = 0; e < m->ne; e++) {
            double f[ROD_DOFS] = { 0 }, K[ROD_DOFS * ROD_DOFS], A[144], B[144];
            int r0 = w->red[m->first + 3 * e];
            rod_element(m, e, w->pos, w->rot, NULL, f, K, NULL);
            element_external(w, m, e, ext, block, f, K);
            for (int i = 0; i < ROD_DOFS; i++)
                for (int j = 0; j < i; j++) K[i * ROD_DOFS + j] = K[j * ROD_DOFS + i] = (K[i * ROD_DOFS + j] + K[j * ROD_DOFS + i]) / 2;
            for (int i = 0; i < 144; i++) {
                A[i] = K[(6 + i / 12) * ROD_DOFS + 6 + i % 12];
                B[i] = K[(6 + i / 12) * ROD_DOFS + outer(i % 12)];
            }
            bad += ldl_small(A, 12, B, 12);
            for (int i = 0; i < 12; i++)
                for (int j = 0; j <= i; j++) {
                    double y = K[outer(i) * ROD_DOFS + outer(j)];
                    for (int k = 0; k < 12; k++) y -= K[outer(i) * ROD_DOFS + 6 + k] * B[12 * k + j];
                    S[(size_t)(r0 + j) * WIDE + i - j] += y;
                }
        }
    }
    for (int node = 0; node < w->N; node++)
        for (int k = 0; w->red[node] >= 0 && k < 6; k++) {
            int i = w->red[node] + k;
            if (!w->held[6 * node + k]) continue;
            for (int d = 1; d < WIDE; d++) { S[(size_t)i * WIDE + d] = 0; if (i >= d) S[(size_t)(i - d) * WIDE + d] = 0; }
            S[(size_t)i * WIDE] = 1;
        }
    for (int j = 0; j < w->nred; j++) {
        double *c = S + (size_t)j * WIDE;
        if (!(c[0] > 0)) bad++;
        for (int i = 1; i < WIDE && j + i < w->nred; i++) {
            double y = c[i] / c[0];
            for (int k = i; y != 0 && k < WIDE && j + k < w->nred; k++) S[(size_t)(j + i) * WIDE + k - i] -= y * c[k];
        }
    }
    arena_release(w->tmp, mark);
    return bad;
}

/* what rounding leaves of a motion that costs no energy, as the turn of a buckled column about its axis, does not count */
static double small_shift(const rod_work *w) { return 1e-2 * w->scale / (length_of(w) * length_of(w)); }

static bool unstable(rod_work *w, double t)
{
    double keep = w->shift;
    w->shift = fmax(keep, (w->neutral ? 1 : 1e-4) * small_shift(w));
    int n = unstable_modes(w, t);
    w->shift = keep;
    return n > 0;
}

/* ---- sparse ---- */
void sparse_add(arena *a, rod_sparse *s, int i, int j, double x)
{
    if (s->nz == s->cap) {
        int cap = s->cap ? 2 * s->cap : 4096;
        s->i = arena_grow(a, s->i, (size_t)s->cap * sizeof *s->i, (size_t)cap * sizeof *s->i);
        s->j = arena_grow(a, s->j, (size_t)s->cap * sizeof *s->j, (size_t)cap * sizeof *s->j);
        s->x = arena_grow(a, s->x, (size_t)s->cap * sizeof *s->x, (size_t)cap * sizeof *s->x);
        s->cap = cap;
    }
    s->i[s->nz] = i; s->j[s->nz] = j; s->x[s->nz++] = x;
}

/* umfpack takes its memory from malloc and is given no way to leave but through here: nothing of the arena is taken while it holds any */
static bool sparse_solve(int n, const int *Ap, const int *Ai, const double *Ax, const double *b, double *x)
{
    void *symbolic = NULL, *numeric = NULL;
    bool ok = umfpack_di_symbolic(n, n, Ap, Ai, Ax, &symbolic, NULL, NULL) == UMFPACK_OK
           && umfpack_di_numeric(Ap, Ai, Ax, symbolic, &numeric, NULL, NULL) == UMFPACK_OK
           && umfpack_di_solve(UMFPACK_A, Ap, Ai, Ax, x, b, numeric, NULL, NULL) == UMFPACK_OK;
    if (symbolic) umfpack_di_free_symbolic(&symbolic);
    if (numeric) umfpack_di_free_numeric(&numeric);
    return ok;
}

/* residual of everything; tangent when K is given */
static void residual(rod_work *w, double t, double *res, rod_sparse *K)
{
    double *block = K ? arena_array(w->tmp, double, 9 * w->N) : NULL;
    memset(res, 0, (size_t)w->ndof * sizeof *res);
    for (int r = 0; r < w->rp->nrod; r++) {
        const rod_mesh *m = &w->mesh[r];
        for (int e = 0; e < m->ne; e++) {
            double k[ROD_DOFS * ROD_DOFS];
            int d0 = 6 * (m->first + 3 * e);
            rod_element(m, e, w->pos, w->rot, given_of(w, m, e), res + d0, K ? k : NULL, NULL);
            for (int i = 0; K && i < ROD_DOFS; i++)
                for (int j = 0; j < ROD_DOFS; j++) if (k[i * ROD_DOFS + j] != 0) sparse_add(w->tmp, K, d0 + i, d0 + j, k[i * ROD_DOFS + j]);
        }
    }
    loads_put(w, t, res, block);
    for (int i = 0; K && i < w->N; i++)
        for (int k = 0; k < 9; k++) if (block[9 * i + k] != 0) sparse_add(w->tmp, K, 6 * i + 3 + k / 3, 6 * i + 3 + k % 3, block[9 * i + k]);
    for (int r = 0; K && w->shift > 0 && r < w->rp->nrod; r++)
        for (int i = 0; i < w->mesh[r].nn; i++)
            for (int k = 0; k < 6; k++) sparse_add(w->tmp, K, 6 * (w->mesh[r].first + i) + k, 6 * (w->mesh[r].first + i) + k, drag_of(w, &w->mesh[r], i, k));
    if (w->contact) contacts_put(w, res, K);
}

bool rod_solve_sparse(rod_work *w, double t)
{
    arena_pos mark = arena_mark(w->tmp);
    rod_sparse K = { .n = w->ndof };
    double *b = arena_array(w->tmp, double, w->ndof), *x = arena_array(w->tmp, double, w->ndof);
    residual(w, t, w->res, &K);
    for (int k = 0; k < K.nz; k++) if (w->held[K.i[k]]) K.x[k] = 0;
    for (int i = 0; i < w->ndof; i++) {
        b[i] = w->held[i] ? w->dx[i] * w->scale : -w->res[i];
        if (w->held[i]) sparse_add(w->tmp, &K, i, i, w->scale);
    }
    int *Ap = arena_array(w->tmp, int, w->ndof + 1), *Ai = arena_array(w->tmp, int, K.nz);
    double *Ax = arena_array(w->tmp, double, K.nz);
    bool ok = umfpack_di_triplet_to_col(w->ndof, w->ndof, K.nz, K.i, K.j, K.x, Ap, Ai, Ax, NULL) == UMFPACK_OK && sparse_solve(w->ndof, Ap, Ai, Ax, b, x);
    if (ok) memcpy(w->dx, x, (size_t)w->ndof * sizeof *x);
    arena_release(w->tmp, mark);
    w->sign = 0;
    for (int i = 0; ok && i < w->ndof; i++) ok = isfinite(w->dx[i]);
    return ok;
}

/* ---- supports ---- */
/* where what is held goes at t; tau < 1: on the way from the start to the values at t = 0 */
static bool holds_at(rod_work *w, double t, double tau)
{
    for (int i = 0; i < w->nhold; i++) {
        rod_hold *h = &w->hold[i];
        double v[9], q[4], th[3];
        rod_eval(w, &h->load->value, t, h->load->rod, 0, v);
        if (h->load->what == LOAD_POSITION) {
            for (int k = 0; k < 3; k++) h->goal[k] = h->start[k] + (v[k] - h->start[k]) * tau;
            if (!isfinite(v[0] + v[1] + v[2])) return rod_fail(w, h->load->at, "the position is not a number at t = %g", t);
            continue;
        }
        double off = 0;
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 3; b++) off += fabs(v[a] * v[b] + v[3 + a] * v[3 + b] + v[6 + a] * v[6 + b] - (a == b));
        double det = v[0] * (v[4] * v[8] - v[5] * v[7]) - v[1] * (v[3] * v[8] - v[5] * v[6]) + v[2] * (v[3] * v[7] - v[4] * v[6]);
        if (!(off < 1e-6) || det < 0) return rod_fail(w, h->load->at, "the frame is no rotation at t = %g", t);
        quat_of_matrix(v, q);
        quat_log(h->start, q, th);
        for (int k = 0; k < 3; k++) th[k] *= tau;
        memcpy(h->goal, h->start, sizeof h->goal);
        quat_turn(h->goal, th);
        if (tau == 1) memcpy(h->goal, q, sizeof q);
    }
    for (int r = 0, at = 0; w->u0_goal && r < w->rp->nrod; at += 9 * w->mesh[r++].ne)
        for (int k = 0; k < 9 * w->mesh[r].ne; k++) w->mesh[r].u0[k] = w->u0_start[at + k] + (w->u0_goal[at + k] - w->u0_start[at + k]) * tau;
    return true;
}

/* the turn of the frames that are held, from t to t + dt, by small pieces: half a turn more must not look like half a turn less */
static double turn_between(rod_work *w, double t, double dt)
{
    enum { PIECES = 32 };
    double most = 0;
    for (int i = 0; i < w->nhold; i++) {
        const rod_hold *h = &w->hold[i];
        double R[9], a[4], b[4], th[3], sum = 0;
        if (h->load->what != LOAD_FRAME) continue;
        rod_eval(w, &h->load->value, t, h->load->rod, 0, R);
        quat_of_matrix(R, a);
        for (int k = 1; k <= PIECES; k++) {
            rod_eval(w, &h->load->value, t + dt * k / PIECES, h->load->rod, 0, R);
            quat_of_matrix(R, b);
            quat_log(a, b, th);
            sum += norm3(th);
            memcpy(a, b, sizeof a);
        }
        most = fmax(most, sum);
    }
    return most;
}

/* increments that bring what is held to its goal */
static void holds_put(rod_work *w)
{
    for (int i = 0; i < w->nhold; i++) {
        const rod_hold *h = &w->hold[i];
        double *d = w->dx + 6 * h->node;
        if (h->load->what == LOAD_FRAME) quat_log(w->rot + 4 * h->node, h->goal, d + 3);
        else for (int k = 0; k < 3; k++) d[k] = h->goal[k] - w->pos[3 * h->node + k];
    }
}

/* ---- Newton ---- */
enum { NEWTON_MAX = 30 };

/* sizes of an increment: positions by the length, and angles */
static double size_of(const rod_work *w, const double *dx, double *turn)
{
    double d = 0, a = 0, L = length_of(w);
    for (int i = 0; i < w->N; i++) {
        d = fmax(d, norm3(dx + 6 * i) / L);
        a = fmax(a, norm3(dx + 6 * i + 3));
    }
    *turn = a;
    return fmax(d, a);
}

/* the part of an increment that is taken: turns stay moderate, and rods that may touch do not jump over each other */
static double part_of(const rod_work *w, double turn, double most_turn)
{
    double cut = turn > most_turn ? most_turn / turn : 1, d = 0, reach = INFINITY;
    for (int i = 0; w->contact && i < w->N; i++) d = fmax(d, norm3(w->dx + 6 * i));
    for (int i = 0; i < w->rp->npair; i++) reach = fmin(reach, 0.8 * w->mesh[w->rp->pair[i].a].radius);
    return d * cut > reach ? reach / d : cut;
}

static bool newton_steps(rod_work *w, double t)
{
    double best = INFINITY;
    bool dense = !w->contact;
    w->last = INFINITY;
    forces_follow(w, NULL);
    w->shift = w->neutral ? 10 * small_shift(w) : 0;
    for (int k = 0; k < NEWTON_MAX; k++) {
        double turn;
        if (w->contact && !contacts_project(w)) return false;
        uint64_t pattern = w->contact ? contacts_pattern(w) : 0;
        bool touch = w->contact && contacts_near(w);
        holds_put(w);
        w->iterations++;
        if (!((dense || !touch) ? rod_solve_band(w, t) : rod_solve_sparse(w, t))) return false;
        double size = size_of(w, w->dx, &turn), cut = part_of(w, turn, 0.7);
        best = fmin(best, size);
        w->last = best;
        if (!isfinite(size) || (k > 3 && size > 3) || (k > 6 && size > 20 * best && size > 0.05)) return false;
        for (int i = 0; cut < 1 && i < w->ndof; i++) w->dx[i] *= cut;
        forces_follow(w, w->dx);
        rod_update(w, w->dx, 1);
        if (size < 1e-9 && w->contact) {
            if (!contacts_project(w)) return false;
            if (contacts_pattern(w) != pattern && size > 1e-13) continue;
        }
        if (size < 1e-9 || (k > 5 && size < (w->neutral ? 1e-6 : 3e-8))) return true;
    }
    return false;
}

static bool newton(rod_work *w, double t)
{
    bool ok = newton_steps(w, t);
    if (!ok && !w->neutral && w->last < 1e-3) {         /* wandering along a motion that costs nothing */
        w->neutral = true;
        ok = newton_steps(w, t);
    }
    w->shift = 0;
    return ok;
}

/* A way down in energy, as through a very viscous fluid: K + shift is kept positive, the shift going to 0 as the motion dies away.  For rods that buckled,
   snap or lost their balance in contact: Newton's method alone would find the saddle, or nothing. */
static bool relax(rod_work *w, double t)
{
    enum { RELAX_MAX = 300 };
    arena_pos mark = arena_mark(w->tmp);
    double *pos = arena_array(w->tmp, double, 3 * w->N), *rot = arena_array(w->tmp, double, 4 * w->N), turn, before = 0;
    double c = 1e3 * w->scale / (length_of(w) * length_of(w)), attempt = 1e-2;
    bool done = false;
    if (w->contact) contacts_smooth(w, true);
    for (int k = 0; k < RELAX_MAX && !done; k++) {
        if (w->contact && !contacts_project(w)) break;
        bool touch = w->contact && contacts_near(w);
        w->shift = c;
        for (int j = 0; j < 12 && (!touch || before > 5e-3) && unstable(w, t); j++) w->shift = c *= touch ? 1.5 : 3;
        forces_follow(w, NULL);
        holds_put(w);
        w->iterations++;
        bool ok = touch ? rod_solve_sparse(w, t) : rod_solve_band(w, t);
        double size = ok ? size_of(w, w->dx, &turn) : INFINITY;
        w->shift = 0;
        if (!isfinite(size)) break;
        double cut = part_of(w, turn, 0.3);
        rod_update(w, w->dx, cut);
        size *= cut;
        c *= size > 0.15 || cut < 0.3 || (touch && size > 2 * before && size > 0.02) ? 2 : size < 0.05 && cut == 1 ? (touch ? 0.6 : 0.4) : 1;
        before = size;
        if (size > attempt || (!touch && unstable(w, t))) continue;
        state_copy(w, pos, rot, w->pos, w->rot);
        if (w->contact) contacts_keep(w);
        done = newton(w, t) && ((w->contact && contacts_near(w)) || !unstable(w, t));
        if (done) break;
        state_copy(w, w->pos, w->rot, pos, rot);
        if (w->contact) contacts_back(w);
        attempt = size / 3;
        if (size < 1e-7) break;
    }
    w->shift = 0;
    if (w->contact) contacts_smooth(w, false);
    arena_release(w->tmp, mark);
    return done;
}

/* a small push that no symmetry survives */
static void nudge(rod_work *w)
{
    for (int r = 0; r < w->rp->nrod; r++) {
        const rod_mesh *m = &w->mesh[r];
        for (int i = 0; i < m->nn; i++) {
            double x = m->s[i] / m->length, a = 1e-3 * m->length, R[9];
            int node = m->first + i;
            double b[3] = { a * x * (1 - x) * (1 + x), a * x * (1 - x) * sin(5 * x), 0 };
            quat_matrix(w->rot + 4 * node, R);
            for (int k = 0; k < 3; k++) if (!w->held[6 * node + k]) w->pos[3 * node + k] += R[3 * k] * b[0] + R[3 * k + 1] * b[1];
        }
    }
}

/* with contact: multipliers are updated until nothing overlaps */
static bool equilibrium(rod_work *w, double t)
{
    enum { UZAWA_MAX = 60 };
    if (w->contact) contacts_find(w);
    if (!(w->relaxing ? relax(w, t) : newton(w, t))) return false;
    if (!w->contact || w->ro->penalty) return true;
    double r = INFINITY;
    for (int i = 0; i < w->rp->npair; i++) r = fmin(r, w->mesh[w->rp->pair[i].a].radius);
    for (int k = 0; k < UZAWA_MAX; k++) {
        double slip, depth = contacts_uzawa(w, &slip);
        if (depth <= w->ro->tolerance * r && slip <= 1e-6) return true;
        contacts_find(w);
        contacts_keep(w);
        state_copy(w, w->pos1, w->rot1, w->pos, w->rot);
        if (newton(w, t)) continue;
        if (!w->relaxing) return false;
        state_copy(w, w->pos, w->rot, w->pos1, w->rot1);
        contacts_back(w);
        if (!relax(w, t)) return false;
    }
    return false;
}

/* ---- results ---- */
static double elastic(rod_work *w, double *e)
{
    memset(e, 0, 4 * sizeof *e);
    for (int r = 0; r < w->rp->nrod; r++)
        for (int i = 0; i < w->mesh[r].ne; i++) rod_element(&w->mesh[r], i, w->pos, w->rot, NULL, NULL, NULL, e);
    return e[0] + e[1] + e[2] + e[3];
}

static void sample(rod_work *w, double t)
{
    double e[4];
    results *r = w->r;
    int64_t k = results_sample(r);
    r->t[k] = r->t_end = t;
    r->energy[k] = elastic(w, e);
    r->work[k] = 0;
    r->dissipated[k] = w->contact ? contacts_dissipated(w) : 0;
    for (size_t c = 0; c < r->prog->ncontact; c++) {
        contact_result *x = &r->contact[c];
        for (int64_t m = 0; x->kept && m < x->members; m++) { x->gap[k * x->members + m] = INFINITY; x->rn[k * x->members + m] = 0; x->status[k * x->members + m] = 0; }
        for (int64_t m = 0; x->kept && m < x->members * x->nslip; m++) x->rt[k * x->members * x->nslip + m] = x->slip[k * x->members * x->nslip + m] = 0;
    }
    if (w->contact) contacts_accept(w, k);
}

static void finish(rod_work *w, double *critical, int ncritical)
{
    results *r = w->r;
    rod_result *x = arena_make(r->a, rod_result);
    *x = (rod_result){ .rp = w->rp, .mesh = w->mesh, .r = w->pos, .q = w->rot, .critical = critical, .ncritical = ncritical };
    elastic(w, x->energy);
    x->reaction = arena_array(r->a, double, w->ndof);
    if (w->contact) contacts_result(w, x);
    arena_pos mark = arena_mark(w->tmp);
    residual(w, w->t, w->res, NULL);
    arena_release(w->tmp, mark);
    double worst = 0, L = length_of(w);
    for (int i = 0; i < w->ndof; i++)
        if (!w->held[i]) worst = fmax(worst, fabs(w->res[i]) * (i % 6 < 3 ? L : 1));
    for (int i = 0; i < w->N; i++) {
        double R[9];
        const double *m = w->res + 6 * i + 3;
        quat_matrix(w->rot + 4 * i, R);
        for (int k = 0; k < 3; k++) {
            if (w->held[6 * i + k]) x->reaction[6 * i + k] = w->res[6 * i + k];
            if (w->held[6 * i + 3 + k]) x->reaction[6 * i + 3 + k] = R[3 * k] * m[0] + R[3 * k + 1] * m[1] + R[3 * k + 2] * m[2];
        }
    }
    r->residual = worst / (w->scale * L * L);
    r->solver_iterations = w->iterations;
    r->solver = w->contact ? w->ro->penalty ? "Newton, penalty" : "Newton, Uzawa" : "Newton, band";
    r->rod = x;
    /* small increments alone do not prove an equilibrium: forces must balance too */
    if (r->status != RUN_FAILED && !(r->residual < 1e-2)) rod_fail(w, w->rp->rod[0].at, "the forces do not balance at t = %g: residual %.2g of EI/L", w->t, r->residual);
}

/* ---- along the load ---- */
typedef struct path { double critical[8]; int ncritical, sign, modes; } path;

/* A rod that goes through itself changes its link by two: such a step is no motion.  Only asked where contact acts. */
static double links(const rod_work *w, double *pos, double *rot)
{
    rod_result x = { .rp = w->rp, .mesh = w->mesh, .r = pos, .q = rot };
    double sum = 0;
    for (int i = 0; i < w->rp->npair; i++) {
        int a = w->rp->pair[i].a;
        if (w->rp->pair[i].b == a) sum += rod_writhe(&x, a) + rod_twist(&x, a);
    }
    return sum;
}

static bool passed_through(const rod_work *w)
{
    return w->contact && (w->relaxing || contacts_near(w)) && fabs(links(w, w->pos, w->rot) - links(w, w->pos0, w->rot0)) > 1.2;
}

static bool step_to(rod_work *w, double t, double tau)
{
    state_copy(w, w->pos0, w->rot0, w->pos, w->rot);
    if (w->contact) contacts_save(w);
    if (!holds_at(w, t, tau)) return false;
    if (equilibrium(w, t) && !passed_through(w)) return true;
    state_copy(w, w->pos, w->rot, w->pos0, w->rot0);
    if (w->contact) contacts_restore(w);
    return false;
}

/* of the tangent: the directions that lower the energy, or the sign of the determinant where moments have no energy */
static int character(rod_work *w, double t) { return w->moments ? w->sign : unstable(w, t); }

/* where it changes between a and b: halved; the state at b is put back */
static double critical_between(rod_work *w, double a, double b, int was)
{
    arena_pos mark = arena_mark(w->tmp);
    double *pos = arena_array(w->tmp, double, 3 * w->N), *rot = arena_array(w->tmp, double, 4 * w->N);
    double *pos1 = arena_array(w->tmp, double, 3 * w->N), *rot1 = arena_array(w->tmp, double, 4 * w->N);
    state_copy(w, pos1, rot1, w->pos, w->rot);
    state_copy(w, pos, rot, w->pos0, w->rot0);
    for (int k = 0; k < 24; k++) {
        double mid = (a + b) / 2;
        state_copy(w, w->pos, w->rot, pos, rot);
        if (!step_to(w, mid, 1)) break;
        if (character(w, mid) == was) { a = mid; state_copy(w, pos, rot, w->pos, w->rot); }
        else b = mid;
    }
    state_copy(w, w->pos, w->rot, pos1, rot1);
    arena_release(w->tmp, mark);
    return (a + b) / 2;
}

static void watch(rod_work *w, path *p, double before, double now)
{
    if (w->contact && contacts_near(w)) return;
    int is = character(w, now), was = p->modes;
    if (is != was && p->ncritical < 8) {
        arena_pos mark = arena_mark(w->tmp);
        double *pos0 = arena_array(w->tmp, double, 3 * w->N), *rot0 = arena_array(w->tmp, double, 4 * w->N);
        state_copy(w, pos0, rot0, w->pos0, w->rot0);
        p->critical[p->ncritical++] = critical_between(w, before, now, was);
        state_copy(w, w->pos0, w->rot0, pos0, rot0);
        arena_release(w->tmp, mark);
        holds_at(w, now, 1);
    }
    p->modes = is;
}

/* a state that is no minimum of the energy is left for one that is */
static bool leave_saddle(rod_work *w, double t)
{
    if (w->moments || (w->contact && contacts_near(w)) || !unstable(w, t)) return true;
    arena_pos mark = arena_mark(w->tmp);
    double *pos = arena_array(w->tmp, double, 3 * w->N), *rot = arena_array(w->tmp, double, 4 * w->N);
    state_copy(w, pos, rot, w->pos, w->rot);
    nudge(w);
    w->neutral = true;
    w->relaxing = true;
    bool ok = equilibrium(w, t);
    w->relaxing = false;
    if (!ok) state_copy(w, w->pos, w->rot, pos, rot);
    arena_release(w->tmp, mark);
    return ok;
}

/* t from 0 to 1 in steps of at most h, halved when Newton's method fails; `at` gives what is reached */
static bool march(rod_work *w, double end, double h, bool start, path *p, double *reached)
{
    double t = 0, dt = h;
    for (int64_t easy = 0; t < end * (1 - 1e-12);) {
        if (t + dt > end * (1 - 1e-9)) dt = end - t;
        while (!start && turn_between(w, t, dt) > 1 && dt > 1e-6 * h) dt /= 2;
        if (w->contact) contacts_step(w);
        bool found = start ? step_to(w, 0, t + dt) : step_to(w, t + dt, 1);
        if (!found && w->r->status != RUN_FAILED && dt < h / 7 && !w->moments) {
            w->relaxing = true;
            found = start ? step_to(w, 0, t + dt) : step_to(w, t + dt, 1);
            w->relaxing = false;
        }
        if (found) {
            if (!start) watch(w, p, t, t + dt);
            leave_saddle(w, start ? 0 : t + dt);
            if (!w->moments && !(w->contact && contacts_near(w))) p->modes = unstable(w, start ? 0 : t + dt);
            t += dt;
            *reached = t;
            w->t = start ? 0 : t;
            if (!start) { w->r->steps++; sample(w, t); }
            if (++easy >= 2 && dt < h) { dt = fmin(2 * dt, h); easy = 0; }
            if (w->o->progress && w->o->progress(w->o->ud, start ? 0 : t / end)) { w->r->status = RUN_INTERRUPTED; return false; }
            continue;
        }
        if (w->r->status == RUN_FAILED) return false;
        easy = 0;
        dt /= 2;
        if (dt < h * 1e-4) return false;
    }
    return true;
}

static bool start_differs(rod_work *w)
{
    double d = 0, th[3];
    if (w->u0_goal) return true;
    for (int i = 0; i < w->nhold; i++) {
        const rod_hold *h = &w->hold[i];
        if (h->load->what == LOAD_FRAME) { quat_log(h->start, h->goal, th); d = fmax(d, norm3(th)); }
        else for (int k = 0; k < 3; k++) d = fmax(d, fabs(h->goal[k] - h->start[k]) / length_of(w));
    }
    return d > 0.02;
}

static void go(rod_work *w)
{
    results *r = w->r;
    double end = isnan(w->o->duration) ? 1 : w->o->duration, h = w->ro->h, reached = 0;
    path p = { .ncritical = 0 };
    if (!rod_build(w)) return;
    rod_band_new(w);
    if (w->rp->npair) contacts_new(w);
    if (!rod_supported(w) || !holds_at(w, 0, 1)) return;
    if (w->contact && !contacts_start(w)) return;
    bool ok = true;
    if (start_differs(w)) {
        ok = march(w, 1, 0.1, true, &p, &reached);
        if (!ok && r->status == RUN_OK) rod_fail(w, w->rp->rod[0].at, "no equilibrium was found that agrees with the supports at t = 0 (%.3g of the way from the reference shape)", reached);
    }
    reached = 0;
    if (ok) {
        if (w->contact) contacts_step(w);
        ok = step_to(w, 0, 1);
        if (!ok && r->status == RUN_OK) rod_fail(w, w->rp->rod[0].at, "no equilibrium was found at t = 0");
        if (ok) { leave_saddle(w, 0); p.modes = character(w, 0); sample(w, 0); }
    }
    if (ok && end > 0) {
        if (isnan(h) || h <= 0 || h > end) h = isnan(h) ? end / 20 : end;
        ok = march(w, end, h, false, &p, &reached);
        if (!ok && r->status == RUN_OK)
            rod_fail(w, w->rp->rod[0].at, "no equilibrium was found beyond t = %.10g, with steps down to %.3g; what was reached is kept", reached, h * 1e-4);
    }
    double *critical = arena_array(r->a, double, p.ncritical);
    memcpy(critical, p.critical, (size_t)p.ncritical * sizeof *critical);
    finish(w, critical, p.ncritical);
}

void rod_run(const program *p, const run_options *o, const rod_options *ro, results *r)
{
    arena *volatile scratch = arena_new(arena_allocator(r->a), NULL);
    jmp_buf none, *owner = arena_on_oom(r->a, &none);
    rod_work w = { .p = p, .rp = p->rod, .o = o, .ro = ro, .r = r, .a = r->a, .tmp = scratch };
    if (!scratch || setjmp(none)) {     /* scratch memory is given back even when there is none left */
        arena_free(scratch);
        arena_on_oom(r->a, owner);
        if (owner) longjmp(*owner, 1);
        r->status = RUN_FAILED;
        r->message = "out of memory";
        return;
    }
    arena_on_oom(scratch, &none);
    go(&w);
    arena_on_oom(r->a, owner);
    arena_free(scratch);
}

const char *rod_refuse(const program *p, span *at)
{
    span no[] = { p->has_delay, p->has_inclusion, p->has_field, p->has_event, p->has_first_order };
    for (size_t k = 0; k < sizeof no / sizeof *no; k++)
        if (no[k].file) { *at = no[k]; return "a model with rods has rods alone: no delays, events, inclusions or fields"; }
    for (int k = 0; k < p->rod->nrod; k++)
        if (p->rod->rod[k].number[ROD_DENSITY].tape.nout) {
            *at = p->rod->rod[k].number_at[ROD_DENSITY];
            return "the dynamics of rods is not built: leave density out for equilibria along a load";
        }
    if (p->nq) { *at = p->ndof_info ? p->dof[0].where : p->has_rod; return "a model with rods has no other degrees of freedom"; }
    return NULL;
}
