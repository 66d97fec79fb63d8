/* rod_linear: the linear problem of a Newton step.  Without contact the nodes inside elements are eliminated and the rest is a band, with contact the whole goes
   to a sparse factorisation. */
#include "rod_work.h"
#include <lapacke.h>
#include <math.h>
#include <string.h>
#include <suitesparse/umfpack.h>

enum { BAND = 11, LDAB = 3 * BAND + 1, INNER = 12 * 12 + 12 };

/* ---- state ---- */
double rod_length(const rod_work *w)
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

void state_copy(rod_work *w, double *pos, double *rot, const double *pos1, const double *rot1)
{
    memcpy(pos, pos1, (size_t)(3 * w->N) * sizeof *pos);
    memcpy(rot, rot1, (size_t)(4 * w->N) * sizeof *rot);
}

static double *given_of(const rod_work *w, const rod_mesh *m, int e) { return w->given + 6 * (m->first + 3 * e); }

void forces_follow(rod_work *w, const double *dx)
{
    for (int r = 0; r < w->rp->nrod; r++)
        for (int e = 0; e < w->mesh[r].ne; e++) rod_element_forces(&w->mesh[r], e, w->pos, w->rot, dx, given_of(w, &w->mesh[r], e));
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

/* inner nodes of an element out: X = Kii^-1 [Kie | fi] is kept for the way back; what is left of the ends in `out`, 12 x 13 */
static int condense(const double *K, const double *f, double *X, double *out)
{
    double A[144];
    for (int i = 0; i < 12; i++) {
        for (int j = 0; j < 12; j++) {
            A[12 * i + j] = K[(6 + i) * ROD_DOFS + 6 + j];
            X[13 * i + j] = K[(6 + i) * ROD_DOFS + outer(j)];
        }
        X[13 * i + 12] = f[6 + i];
    }
    int sign = lu_small(A, 12, X, 13);
    for (int i = 0; i < 12; i++) {
        const double *from = K + outer(i) * ROD_DOFS;
        double *to = out + 13 * i;
        for (int j = 0; j < 12; j++) to[j] = from[outer(j)];
        to[12] = f[outer(i)];
        for (int k = 0; k < 12; k++) {
            double y = from[6 + k];
            for (int j = 0; j < 13; j++) to[j] -= y * X[13 * k + j];
        }
    }
    return sign;
}

static int band_element(rod_work *w, const double *K, const double *f, double *X, int r0)
{
    double out[12 * 13];
    int sign = condense(K, f, X, out);
    for (int i = 0; i < 12; i++) {
        for (int j = 0; j < 12; j++) *band_at(w, r0 + i, r0 + j) += out[13 * i + j];
        w->rhs[r0 + i] -= out[13 * i + 12];
    }
    return sign;
}

/* the nodes inside, from what the ends do */
static void inner_back(const double *X, const double *ends, double *inside)
{
    for (int i = 0; i < 12; i++) {
        double y = -X[13 * i + 12];
        for (int j = 0; j < 12; j++) y -= X[13 * i + j] * ends[j];
        inside[i] = y;
    }
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
            *band_at(w, i, i) = d = d > 0 ? d : 1;
            for (int j = 0; w->tilt && k == 5 && j < 2; j++) *band_at(w, i, i - 2 + j) = d * w->tilt[2 * node + j];
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

static bool band_factor(rod_work *w)
{
    if (LAPACKE_dgbtrf_work(LAPACK_COL_MAJOR, w->nred, w->nred, BAND, BAND, w->band, LDAB, w->pivot)) return false;
    double most = 0, least = INFINITY;
    w->logdet = 0;
    for (int i = 0; i < w->nred; i++) {
        double d = *band_at(w, i, i);
        if ((d < 0) != (w->pivot[i] != i + 1)) w->sign = -w->sign;
        most = fmax(most, fabs(d));
        least = fmin(least, fabs(d));
        w->logdet += log(fabs(d));
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
            inner_back(X, w->rhs + r0, w->dx + 6 * (node + 1));
        }
    }
}

bool rod_solve_band(rod_work *w, double t)
{
    arena_pos mark = arena_mark(w->tmp);
    rod_outside out = rod_outside_at(w, t);
    double *X = w->inner;
    memset(w->band, 0, (size_t)w->nred * LDAB * sizeof *w->band);
    memset(w->rhs, 0, (size_t)w->nred * sizeof *w->rhs);
    w->sign = 1;
    for (int r = 0; r < w->rp->nrod; r++) {
        const rod_mesh *m = &w->mesh[r];
        for (int e = 0; e < m->ne; e++, X += INNER) {
            double f[ROD_DOFS] = { 0 }, K[ROD_DOFS * ROD_DOFS];
            rod_element_loaded(w, m, e, &out, given_of(w, m, e), f, K);
            w->sign *= band_element(w, K, f, X, w->red[m->first + 3 * e]);
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
    double *S = arena_array(w->tmp, double, (size_t)w->nred * WIDE);
    rod_outside out = rod_outside_at(w, t);
    int bad = 0;
    for (int r = 0; r < w->rp->nrod; r++) {
        const rod_mesh *m = &w->mesh[r];
        for (int e = 0; e < m->ne; e++) {
            double f[ROD_DOFS] = { 0 }, K[ROD_DOFS * ROD_DOFS], A[144], B[144];
            int r0 = w->red[m->first + 3 * e];
            rod_element_loaded(w, m, e, &out, NULL, f, K);
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
double rod_small_shift(const rod_work *w) { return 1e-2 * w->scale / (rod_length(w) * rod_length(w)); }

int rod_unstable(rod_work *w, double t)
{
    double keep = w->shift;
    w->shift = fmax(keep, (w->neutral ? 1 : 1e-4) * rod_small_shift(w));
    int n = unstable_modes(w, t);
    w->shift = keep;
    return n;
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
    double control[UMFPACK_CONTROL];
    umfpack_di_defaults(control);
    control[UMFPACK_IRSTEP] = 0;        /* Newton's method corrects itself */
    bool ok = umfpack_di_symbolic(n, n, Ap, Ai, Ax, &symbolic, control, NULL) == UMFPACK_OK
           && umfpack_di_numeric(Ap, Ai, Ax, symbolic, &numeric, control, NULL) == UMFPACK_OK
           && umfpack_di_solve(UMFPACK_A, Ap, Ai, Ax, x, b, numeric, control, NULL) == UMFPACK_OK;
    if (symbolic) umfpack_di_free_symbolic(&symbolic);
    if (numeric) umfpack_di_free_numeric(&numeric);
    return ok;
}

/* residual of everything, drag and contact included */
void rod_residual(rod_work *w, double t, double *res)
{
    memset(res, 0, (size_t)w->ndof * sizeof *res);
    for (int r = 0; r < w->rp->nrod; r++) {
        const rod_mesh *m = &w->mesh[r];
        for (int e = 0; e < m->ne; e++) rod_element_own(w, m, e, NULL, res + 6 * (m->first + 3 * e), NULL);
    }
    rod_loads(w, t, res);
    if (w->contact) contacts_put(w, res, NULL);
}

/* number of each dof among those that are left: nodes inside elements that nothing touches are eliminated; also those that loads act on are met by their element */
static int number_dofs(const rod_work *w, const rod_sparse *C, int *number)
{
    int n = 0;
    for (int i = 0; i < w->N; i++) number[6 * i] = w->red[i] >= 0;
    for (int k = 0; k < C->nz; k++) number[6 * (C->i[k] / 6)] = 1;
    for (int r = 0; r < w->rp->nrod; r++)       /* both nodes of an element, or none */
        for (int i = w->mesh[r].first; i + 3 < w->mesh[r].first + w->mesh[r].nn; i += 3)
            if (number[6 * (i + 1)] || number[6 * (i + 2)]) number[6 * (i + 1)] = number[6 * (i + 2)] = 1;
    for (int i = 0; i < w->N; i++) {
        bool there = number[6 * i];
        for (int k = 0; k < 6; k++) number[6 * i + k] = there ? n++ : -1;
    }
    return n;
}

static void sparse_element(rod_work *w, int d0, const int *number, const double *K, const double *f, double *X, rod_sparse *S, double *b)
{
    double out[12 * 13];
    bool whole = number[d0 + 6] >= 0;
    if (!whole) condense(K, f, X, out);
    for (int i = 0; i < (whole ? ROD_DOFS : 12); i++) {
        int row = d0 + (whole ? i : outer(i));
        b[number[row]] -= whole ? f[i] : out[13 * i + 12];
        for (int j = 0; j < (whole ? ROD_DOFS : 12) && !w->held[row]; j++)
            sparse_add(w->tmp, S, number[row], number[d0 + (whole ? j : outer(j))], whole ? K[i * ROD_DOFS + j] : out[13 * i + j]);
    }
}

/* the same with contact: elements that touch are kept whole */
bool rod_solve_sparse(rod_work *w, double t)
{
    arena_pos mark = arena_mark(w->tmp);
    rod_sparse C = { .n = w->ndof }, S = { 0 };
    rod_outside out = rod_outside_at(w, t);
    double *X = w->inner;
    int *number = arena_array(w->tmp, int, w->ndof);
    memset(w->res, 0, (size_t)w->ndof * sizeof *w->res);
    contacts_put(w, w->res, &C);
    int n = S.n = number_dofs(w, &C, number);
    double *b = arena_array(w->tmp, double, n), *x = arena_array(w->tmp, double, n);
    for (int r = 0; r < w->rp->nrod; r++) {
        const rod_mesh *m = &w->mesh[r];
        for (int e = 0; e < m->ne; e++, X += INNER) {
            double f[ROD_DOFS] = { 0 }, K[ROD_DOFS * ROD_DOFS];
            rod_element_loaded(w, m, e, &out, given_of(w, m, e), f, K);
            sparse_element(w, 6 * (m->first + 3 * e), number, K, f, X, &S, b);
        }
    }
    for (int k = 0; k < C.nz; k++) if (!w->held[C.i[k]]) sparse_add(w->tmp, &S, number[C.i[k]], number[C.j[k]], C.x[k]);
    for (int i = 0; i < w->ndof; i++) {
        if (number[i] >= 0) b[number[i]] -= w->res[i];
        if (!w->held[i]) continue;
        b[number[i]] = w->dx[i] * w->scale;
        sparse_add(w->tmp, &S, number[i], number[i], w->scale);
        for (int j = 0; w->tilt && i % 6 == 5 && j < 2; j++) sparse_add(w->tmp, &S, number[i], number[i - 2 + j], w->scale * w->tilt[2 * (i / 6) + j]);
    }
    int *Ap = arena_array(w->tmp, int, n + 1), *Ai = arena_array(w->tmp, int, S.nz);
    double *Ax = arena_array(w->tmp, double, S.nz);
    bool ok = umfpack_di_triplet_to_col(n, n, S.nz, S.i, S.j, S.x, Ap, Ai, Ax, NULL) == UMFPACK_OK && sparse_solve(n, Ap, Ai, Ax, b, x);
    for (int i = 0; ok && i < w->ndof; i++) if (number[i] >= 0) w->dx[i] = x[number[i]];
    X = w->inner;
    for (int r = 0; ok && r < w->rp->nrod; r++)
        for (int e = 0; e < w->mesh[r].ne; e++, X += INNER) {
            int d0 = 6 * (w->mesh[r].first + 3 * e);
            double ends[12];
            if (number[d0 + 6] >= 0) continue;
            for (int k = 0; k < 12; k++) ends[k] = w->dx[d0 + outer(k)];
            inner_back(X, ends, w->dx + d0 + 6);
        }
    arena_release(w->tmp, mark);
    w->sign = 0;
    for (int i = 0; ok && i < w->ndof; i++) ok = isfinite(w->dx[i]);
    return ok;
}
