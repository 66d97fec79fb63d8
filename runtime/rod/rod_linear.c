/* rod_linear: the linear problem of Newton's method. Without contact, nodes inside elements are eliminated
   and the rest is a band matrix; with contact, a sparse factorisation is used. */
#include "rod_work.h"
#include "base/linalg.h"
#include "base/tolerances.h"
#include <float.h>
#include <math.h>
#include <string.h>

/* SIDES: the largest number of right-hand sides. */
enum { BAND = 11, LDAB = 3 * BAND + 1, SIDES = 2, INNER = 12 * (12 + SIDES) };

/* ---- state ---- */
double rod_length(const rod_work *w)
{
    double L = 0;
    for (int i = 0; i < w->rp->nrod; i++)
        L = fmax(L, w->mesh[i].length);
    return L;
}

void rod_update(rod_work *w, const double *dx, double k)
{
    rod_ties_before(w);
    for (int i = 0; i < w->N; i++) {
        double th[3];
        for (int j = 0; j < 3; j++) {
            w->state.pos[3 * i + j] += k * dx[6 * i + j];
            th[j] = k * dx[6 * i + 3 + j];
        }
        quat_turn(w->state.rot + 4 * i, th);
    }
    rod_ties_after(w, dx, k);
}

void state_copy(rod_work *w, double *pos, double *rot, const double *pos1, const double *rot1)
{
    memcpy(pos, pos1, (size_t)(3 * w->N) * sizeof *pos);
    memcpy(rot, rot1, (size_t)(4 * w->N) * sizeof *rot);
}

static double *given_of(const rod_work *w, const rod_mesh *m, int e)
{
    return w->given + 6 * (m->first + 3 * e);
}

void forces_follow(rod_work *w, const double *dx)
{
    for (int r = 0; r < w->rp->nrod; r++)
        for (int e = 0; e < w->mesh[r].ne; e++)
            rod_element_forces(&w->mesh[r], e, w->state.pos, w->state.rot, dx, given_of(w, &w->mesh[r], e));
}

/* ---- the condensed band ---- */
/* LU factorisation of a small matrix with pivoting, applied to m right-hand sides; returns the sign of its
   determinant, 0 if it is singular. */
static int lu_small(double *A, int n, double *B, int m)
{
    int sign = 1;
    for (int c = 0; c < n; c++) {
        int p = c;
        for (int i = c + 1; i < n; i++)
            if (fabs(A[i * n + c]) > fabs(A[p * n + c]))
                p = i;
        if (!(fabs(A[p * n + c]) > 0))
            return 0;
        if (p != c) {
            for (int k = c; k < n; k++) {
                double y = A[c * n + k];
                A[c * n + k] = A[p * n + k];
                A[p * n + k] = y;
            }
            for (int k = 0; k < m; k++) {
                double y = B[c * m + k];
                B[c * m + k] = B[p * m + k];
                B[p * m + k] = y;
            }
            sign = -sign;
        }
        double d = 1 / A[c * n + c];
        if (d < 0)
            sign = -sign;
        for (int i = c + 1; i < n; i++) {
            double y = A[i * n + c] * d;
            if (y == 0)
                continue;
            for (int k = c + 1; k < n; k++)
                A[i * n + k] -= y * A[c * n + k];
            for (int k = 0; k < m; k++)
                B[i * m + k] -= y * B[c * m + k];
        }
    }
    for (int c = n - 1; c >= 0; c--) {
        double d = 1 / A[c * n + c];
        for (int k = 0; k < m; k++)
            B[c * m + k] *= d;
        for (int i = 0; i < c; i++)
            for (int k = 0; k < m; k++)
                B[i * m + k] -= A[i * n + c] * B[c * m + k];
    }
    return sign;
}

static int outer(int k)
{
    return k < 6 ? k : k + 12;
} /* dofs of the ends of an element */

static double *band_at(rod_work *w, int i, int j)
{
    return w->linear.band + (2 * BAND + i - j) + (size_t)j * LDAB;
}

/* Dofs of an element that are kept, and those that are eliminated. */
typedef struct split {
    int nk, ni, keep[ROD_DOFS], in[ROD_DOFS];
} split;

static split split_ends(void)
{
    split p = { .nk = 12, .ni = 12 };
    for (int k = 0; k < 12; k++) {
        p.keep[k] = outer(k);
        p.in[k] = 6 + k;
    }
    return p;
}

static split split_kept(const uint8_t *kept)
{
    split p = { 0 };
    for (int k = 0; k < ROD_DOFS; k++) {
        if (kept[k])
            p.keep[p.nk++] = k;
        else
            p.in[p.ni++] = k;
    }
    return p;
}

/* Eliminates dofs inside an element: X = Kii^-1 [Kie | fi] is stored for back substitution; the Schur
   complement is in `out`, nk rows of nk + m. f: m right-hand sides. */
static int condense(const double *K, const double *f, int m, const split *p, double *X, double *out)
{
    double A[144];
    int nk = p->nk, ni = p->ni, wide = nk + m;
    for (int i = 0; i < ni; i++) {
        const double *from = K + p->in[i] * ROD_DOFS;
        for (int j = 0; j < ni; j++)
            A[ni * i + j] = from[p->in[j]];
        for (int j = 0; j < nk; j++)
            X[wide * i + j] = from[p->keep[j]];
        for (int c = 0; c < m; c++)
            X[wide * i + nk + c] = f[c * ROD_DOFS + p->in[i]];
    }
    int sign = lu_small(A, ni, X, wide);
    for (int i = 0; i < nk; i++) {
        const double *from = K + p->keep[i] * ROD_DOFS;
        double *to = out + wide * i;
        for (int j = 0; j < nk; j++)
            to[j] = from[p->keep[j]];
        for (int c = 0; c < m; c++)
            to[nk + c] = f[c * ROD_DOFS + p->keep[i]];
        for (int k = 0; k < ni; k++) {
            double y = from[p->in[k]];
            for (int j = 0; j < wide; j++)
                to[j] -= y * X[wide * k + j];
        }
    }
    return sign;
}

static int band_element(rod_work *w, const double *K, const double *f, int m, double *X, int r0)
{
    const split p = split_ends();
    double out[12 * (12 + SIDES)];
    int sign = condense(K, f, m, &p, X, out), wide = 12 + m;
    for (int i = 0; i < 12; i++) {
        for (int j = 0; j < 12; j++)
            *band_at(w, r0 + i, r0 + j) += out[wide * i + j];
        for (int c = 0; c < m; c++)
            w->linear.rhs[c * w->linear.nred + r0 + i] -= out[wide * i + 12 + c];
    }
    return sign;
}

/* Back substitution of the eliminated dofs of an element, for right-hand side c of m. */
static void split_back(const split *p, const double *X, int m, int c, double *dx)
{
    for (int i = 0; i < p->ni; i++) {
        const double *x = X + (p->nk + m) * i;
        double y = -x[p->nk + c];
        for (int j = 0; j < p->nk; j++)
            y -= x[j] * dx[p->keep[j]];
        dx[p->in[i]] = y;
    }
}

/* In the linear problem positions are measured in a unit near the length of the rods. Otherwise a matrix with
   entries EI/L^3 and EI/L would count as singular for rods of a few micrometres. Powers of two cost no
   digits. */
double rod_unit(const rod_work *w, int dof)
{
    return dof % 6 < 3 ? w->unit : 1;
}

static void hold_rows(rod_work *w, const double *dy)
{
    for (int node = 0; node < w->N; node++) {
        int r = w->linear.red[node];
        for (int k = 0; r >= 0 && k < 6; k++) {
            if (!w->ends.held[6 * node + k])
                continue;
            int i = r + k, lo = i - BAND < 0 ? 0 : i - BAND,
                hi = i + BAND >= w->linear.nred ? w->linear.nred - 1 : i + BAND;
            double d = fabs(*band_at(w, i, i));
            for (int j = lo; j <= hi; j++)
                *band_at(w, i, j) = 0;
            *band_at(w, i, i) = d = d > 0 ? d : 1;
            for (int j = 0; w->ends.tilt && k == 5 && j < 2; j++)
                *band_at(w, i, i - 2 + j) = d * w->ends.tilt[2 * node + j];
            w->linear.rhs[i] = d * w->dx[6 * node + k] / rod_unit(w, k);
            if (dy)
                w->linear.rhs[w->linear.nred + i] = d * dy[6 * node + k] / rod_unit(w, k);
        }
    }
}

void rod_band_new(rod_work *w)
{
    int ne = 0;
    w->linear.red = arena_array(w->a, int, w->N);
    for (int r = 0; r < w->rp->nrod; r++) {
        const rod_mesh *m = &w->mesh[r];
        for (int i = 0; i < m->nn; i++) {
            w->linear.red[m->first + i] = i % 3 ? -1 : w->linear.nred;
            if (i % 3 == 0)
                w->linear.nred += 6;
        }
        ne += m->ne;
    }
    w->linear.band = arena_array(w->a, double, (size_t)w->linear.nred *LDAB);
    w->linear.rhs = arena_array(w->a, double, SIDES * w->linear.nred);
    w->linear.pivot = arena_array(w->a, int, w->linear.nred);
    w->linear.inner = arena_array(w->a, double, (size_t)ne *INNER);
}

static bool band_factorise(rod_work *w)
{
    if (!band_lu_factor(w->linear.nred, BAND, BAND, w->linear.band, LDAB, w->linear.pivot, NULL))
        return false;
    double most = 0, least = INFINITY;
    for (int i = 0; i < w->linear.nred; i++) {
        double d = *band_at(w, i, i);
        if ((d < 0) != (w->linear.pivot[i] != i + 1))
            w->linear.sign = -w->linear.sign;
        most = fmax(most, fabs(d));
        least = fmin(least, fabs(d));
    }
    return least > PIVOT_ROD * most;
}

static void band_back(rod_work *w, int m, int c, double *dx)
{
    const double *X = w->linear.inner, *rhs = w->linear.rhs + c * w->linear.nred;
    const split p = split_ends();
    for (int r = 0; r < w->rp->nrod; r++) {
        const rod_mesh *mesh = &w->mesh[r];
        for (int e = 0; e < mesh->ne; e++, X += INNER) {
            int node = mesh->first + 3 * e, r0 = w->linear.red[node];
            for (int k = 0; k < 6; k++) {
                dx[6 * node + k] = rhs[r0 + k];
                dx[6 * (node + 3) + k] = rhs[r0 + 6 + k];
            }
            split_back(&p, X, m, c, dx + 6 * node);
        }
    }
    for (int i = 0; i < w->ndof; i++)
        dx[i] *= rod_unit(w, i);
}

/* Tangent and right-hand sides of an element, the second one from `rate` unless NULL; returns the number of
   its first dof. */
static int element_sides(rod_work *w, const rod_mesh *m, int e, const rod_outside *out, const double *rate,
                         double *f, double *K)
{
    int d0 = 6 * (m->first + 3 * e);
    memset(f, 0, SIDES * ROD_DOFS * sizeof *f);
    rod_element_loaded(w, m, e, out, given_of(w, m, e), f, K);
    for (int i = e ? 6 : 0; rate && i < ROD_DOFS; i++)
        f[ROD_DOFS + i] = rate[d0 + i];
    for (int i = 0; i < ROD_DOFS; i++) {
        f[i] *= rod_unit(w, i);
        f[ROD_DOFS + i] *= rod_unit(w, i);
        for (int j = 0; j < ROD_DOFS; j++)
            K[i * ROD_DOFS + j] *= rod_unit(w, i) * rod_unit(w, j);
    }
    return d0;
}

bool rod_solve_two(rod_work *w, double t, const double *rate, double *dy)
{
    if (w->ties)
        return rod_solve_sparse(w, t, rate, dy);
    arena_pos mark = arena_mark(w->tmp);
    rod_outside out = rod_outside_at(w, t);
    double *X = w->linear.inner;
    int m = dy ? 2 : 1;
    memset(w->linear.band, 0, (size_t)w->linear.nred * LDAB * sizeof *w->linear.band);
    memset(w->linear.rhs, 0, (size_t)(m * w->linear.nred) * sizeof *w->linear.rhs);
    w->linear.sign = 1;
    for (int r = 0; r < w->rp->nrod; r++) {
        const rod_mesh *mesh = &w->mesh[r];
        for (int e = 0; e < mesh->ne; e++, X += INNER) {
            double f[SIDES * ROD_DOFS], K[ROD_DOFS * ROD_DOFS];
            int d0 = element_sides(w, mesh, e, &out, rate, f, K);
            w->linear.sign *= band_element(w, K, f, m, X, w->linear.red[d0 / 6]);
        }
    }
    arena_release(w->tmp, mark);
    hold_rows(w, dy);
    if (!w->linear.sign || !band_factorise(w))
        return false;
    band_lu_use(w->linear.nred, BAND, BAND, w->linear.band, LDAB, w->linear.pivot, m, w->linear.rhs);
    band_back(w, m, 0, w->dx);
    if (dy)
        band_back(w, m, 1, dy);
    return isfinite(w->dx[0]) && (!dy || isfinite(dy[0]));
}

bool rod_solve_band(rod_work *w, double t)
{
    return rod_solve_two(w, t, NULL, NULL);
}

/* ---- eigenvalues near zero ---- */
/* Orthonormalises the columns of X, nred long, one after the other; twice, for accuracy. */
static void orthonormal(double *X, int n, int m)
{
    for (int c = 0; c < 2 * m; c++) {
        double *x = X + (size_t)(c / 2) * (size_t)n, size = 0;
        for (int b = 0; b < c / 2; b++) {
            const double *y = X + (size_t)b * (size_t)n;
            double dot = 0;
            for (int i = 0; i < n; i++)
                dot += x[i] * y[i];
            for (int i = 0; i < n; i++)
                x[i] -= dot * y[i];
        }
        for (int i = 0; i < n; i++)
            size += x[i] * x[i];
        for (int i = 0; size > 0 && i < n; i++)
            x[i] /= sqrt(size);
    }
}

/* Subspace iteration with the factors of the last band solve. If two eigenvalues pass zero together (a round
   section buckles in two directions at once), the sign of the determinant stays, but here their number
   changes by two. Eigenvalues farther from zero may be missing. */
int rod_negative(rod_work *w, double *least)
{
    enum { NEAR = 16, ROUNDS = 15 };
    arena_pos mark = arena_mark(w->tmp);
    int n = w->linear.nred, bad = 0, m = n < NEAR ? n : NEAR;
    double *X = arena_array(w->tmp, double, n *m), *Y = arena_array(w->tmp, double, n *m), H[NEAR * NEAR],
           re[NEAR], im[NEAR], far = 0;
    uint64_t seed = 1;
    for (int i = 0; i < n * m; i++)
        X[i] = (double)((seed = hash64(seed, (uint64_t)i)) >> 11) / 9007199254740992.0 - 0.5;
    for (int node = 0; node < w->N; node++)
        for (int k = 0; w->linear.red[node] >= 0 && k < 6; k++)
            for (int c = 0; w->ends.held[6 * node + k] && c < m; c++)
                X[c * n + w->linear.red[node] + k] = 0;
    for (int round = 0; round < ROUNDS; round++) {
        orthonormal(X, n, m);
        memcpy(Y, X, (size_t)(n * m) * sizeof *Y);
        band_lu_use(n, BAND, BAND, w->linear.band, LDAB, w->linear.pivot, m, Y);
        if (round + 1 < ROUNDS)
            memcpy(X, Y, (size_t)(n * m) * sizeof *Y);
    }
    for (int a = 0; a < m; a++)
        for (int b = 0; b < m; b++) {
            H[a * m + b] = 0;
            for (int i = 0; i < n; i++)
                H[a * m + b] += X[a * n + i] * Y[b * n + i];
        }
    double work[8 * NEAR], small = INFINITY;
    bool ok = eigenvalues(m, H, re, im, work);
    for (int i = 0; ok && i < m; i++) {
        double size = hypot(re[i], im[i]);
        far = fmax(far, size);
        small = fmin(small, size);
    }
    /* Rounding turns two equal eigenvalues into a complex pair.  Those of H are the inverse ones: that of
     * `small` is the largest found, and near zero an imaginary part counts beside it. */
    for (int i = 0; ok && i < m; i++) {
        double size = hypot(re[i], im[i]);
        bad += re[i] < 0 &&
               (fabs(im[i]) < -PAIR_REAL * re[i] || fabs(im[i]) * small < PAIR_ROUNDED * size * size);
    }
    *least = far > 0 ? 1 / far : INFINITY;
    arena_release(w->tmp, mark);
    return bad;
}

/* ---- stability ---- */
/* A = L D L^T without pivoting, A symmetric; returns the number of negative pivots; B (n x m) becomes A^-1 B.
 */
static int ldl_small(double *A, int n, double *B, int m)
{
    int bad = 0;
    for (int c = 0; c < n; c++) {
        double d = A[c * n + c];
        if (!(d > 0))
            bad++;
        for (int i = c + 1; i < n; i++) {
            double y = A[i * n + c] / d;
            for (int k = c + 1; k < n; k++)
                A[i * n + k] -= y * A[c * n + k];
            for (int k = 0; k < m; k++)
                B[i * m + k] -= y * B[c * m + k];
        }
    }
    for (int c = n - 1; c >= 0; c--) {
        for (int k = 0; k < m; k++)
            B[c * m + k] /= A[c * n + c];
        for (int i = 0; i < c; i++)
            for (int k = 0; k < m; k++)
                B[i * m + k] -= A[i * n + c] * B[c * m + k];
    }
    return bad;
}

/* A support that holds a roll leaves only rotations about the axis that depend on those across it. Along them
   the second derivatives of the roll vanish, so its moment has no effect. */
static void roll_held(const rod_work *w, int first, double *K)
{
    for (int k = 0; w->ends.tilt && k < 8; k++) {
        double f = w->ends.tilt[2 * first + k];
        int to = 6 * (k / 2) + 3 + k % 2, from = 6 * (k / 2) + 5;
        for (int j = 0; f != 0 && j < ROD_DOFS; j++)
            K[to * ROD_DOFS + j] -= f * K[from * ROD_DOFS + j];
        for (int j = 0; f != 0 && j < ROD_DOFS; j++)
            K[j * ROD_DOFS + to] -= f * K[j * ROD_DOFS + from];
    }
}

/* The symmetric part of an element's tangent, including loads. */
static void element_symmetric(rod_work *w, const rod_mesh *m, int e, const rod_outside *out, double *K)
{
    double f[ROD_DOFS] = { 0 };
    rod_element_loaded(w, m, e, out, NULL, f, K);
    for (int i = 0; i < ROD_DOFS; i++)
        for (int j = 0; j < i; j++)
            K[i * ROD_DOFS + j] = K[j * ROD_DOFS + i] = (K[i * ROD_DOFS + j] + K[j * ROD_DOFS + i]) / 2;
    roll_held(w, m->first + 3 * e, K);
}

/* Eliminates its inner nodes: the lower half of the Schur complement; returns the number of inner directions
   that lower the energy. */
static int condense_symmetric(const double *K, double *out)
{
    double A[144], B[144];
    for (int i = 0; i < 144; i++) {
        A[i] = K[(6 + i / 12) * ROD_DOFS + 6 + i % 12];
        B[i] = K[(6 + i / 12) * ROD_DOFS + outer(i % 12)];
    }
    int bad = ldl_small(A, 12, B, 12);
    for (int i = 0; i < 12; i++)
        for (int j = 0; j <= i; j++) {
            double y = K[outer(i) * ROD_DOFS + outer(j)];
            for (int k = 0; k < 12; k++)
                y -= K[outer(i) * ROD_DOFS + 6 + k] * B[12 * k + j];
            out[12 * i + j] = y;
        }
    return bad;
}

/* Number of directions that lower the energy, for rods without contact. */
static int unstable_free(rod_work *w, double t)
{
    enum { WIDE = BAND + 1 };
    arena_pos mark = arena_mark(w->tmp);
    double *S = arena_array(w->tmp, double, (size_t)w->linear.nred *WIDE);
    rod_outside out = rod_outside_at(w, t);
    int bad = 0;
    for (int r = 0; r < w->rp->nrod; r++) {
        const rod_mesh *m = &w->mesh[r];
        for (int e = 0; e < m->ne; e++) {
            double K[ROD_DOFS * ROD_DOFS], ends[144];
            int r0 = w->linear.red[m->first + 3 * e];
            element_symmetric(w, m, e, &out, K);
            bad += condense_symmetric(K, ends);
            for (int i = 0; i < 12; i++)
                for (int j = 0; j <= i; j++)
                    S[(size_t)(r0 + j) * WIDE + i - j] += ends[12 * i + j];
        }
    }
    for (int node = 0; node < w->N; node++)
        for (int k = 0; w->linear.red[node] >= 0 && k < 6; k++) {
            int i = w->linear.red[node] + k;
            if (!w->ends.held[6 * node + k])
                continue;
            for (int d = 1; d < WIDE; d++) {
                S[(size_t)i * WIDE + d] = 0;
                if (i >= d)
                    S[(size_t)(i - d) * WIDE + d] = 0;
            }
            S[(size_t)i * WIDE] = 1;
        }
    for (int j = 0; j < w->linear.nred; j++) {
        double *c = S + (size_t)j * WIDE;
        if (!(c[0] > 0))
            bad++;
        for (int i = 1; i < WIDE && j + i < w->linear.nred; i++) {
            double y = c[i] / c[0];
            for (int k = i; y != 0 && k < WIDE && j + k < w->linear.nred; k++)
                S[(size_t)(j + i) * WIDE + k - i] -= y * c[k];
        }
    }
    arena_release(w->tmp, mark);
    return bad;
}

/* Motions without resistance, such as the rotation of a buckled column about its axis, have eigenvalues of
   the size of rounding; this shift makes them positive. */
double rod_small_shift(const rod_work *w)
{
    return SHIFT_SMALL * w->scale / (rod_length(w) * rod_length(w));
}

/* ---- sparse ---- */
void sparse_add(arena *a, rod_sparse *s, int i, int j, double x)
{
    if (s->nz == s->cap) {
        int cap = s->cap ? 2 * s->cap : 1 << 16;
        s->i = arena_grow(a, s->i, (size_t)s->cap * sizeof *s->i, (size_t)cap * sizeof *s->i);
        s->j = arena_grow(a, s->j, (size_t)s->cap * sizeof *s->j, (size_t)cap * sizeof *s->j);
        s->x = arena_grow(a, s->x, (size_t)s->cap * sizeof *s->x, (size_t)cap * sizeof *s->x);
        s->cap = cap;
    }
    s->i[s->nz] = i;
    s->j[s->nz] = j;
    s->x[s->nz++] = x;
}

rod_columns rod_columns_of(arena *a, const rod_sparse *s)
{
    rod_columns c = { arena_array(a, int, s->n + 2), arena_array(a, int, s->nz),
                      arena_array(a, double, s->nz) };
    int *last = arena_array(a, int, s->n), at = 0;
    for (int k = 0; k < s->nz; k++)
        c.p[s->j[k] + 2]++;
    for (int j = 0; j < s->n; j++) {
        c.p[j + 2] += c.p[j + 1];
        last[j] = -1;
    }
    for (int k = 0; k < s->nz; k++) {
        int to = c.p[s->j[k] + 1]++;
        c.i[to] = s->i[k];
        c.x[to] = s->x[k];
    }
    for (int j = 0; j < s->n; j++) {
        int begin = at;
        for (int k = c.p[j]; k < c.p[j + 1]; k++) {
            int i = c.i[k];
            double x = c.x[k];
            if (last[i] >= begin) {
                c.x[last[i]] += x;
                continue;
            }
            last[i] = at;
            c.i[at] = i;
            c.x[at++] = x;
        }
        c.p[j] = begin;
    }
    c.p[s->n] = at;
    return c;
}

/* An elimination order with little fill: that of groups of three dofs which belong together (a ninth of the
   entries); NULL: none found. */
static int *order_threes(arena *a, const rod_columns *c, int n)
{
    int nb = n / 3, at = 0, *p = arena_array(a, int, nb + 1), *i = arena_array(a, int, c->p[n]),
        *last = arena_array(a, int, nb), *way = arena_array(a, int, nb);
    for (int J = 0; J < nb; J++) {
        for (int k = c->p[3 * J]; k < c->p[3 * J + 3]; k++) {
            int row = c->i[k] / 3;
            if (last[row] == J + 1)
                continue;
            last[row] = J + 1;
            i[at++] = row;
        }
        p[J + 1] = at;
    }
    if (!sparse_order(nb, p, i, way))
        return NULL;
    int *order = arena_array(a, int, n);
    for (int k = 0; k < n; k++)
        order[k] = 3 * way[k / 3] + k % 3;
    return order;
}

/* Residual on the unknowns of all forces, with drag and contact. */
static void rod_residual_nodes(rod_work *w, double t, double *res)
{
    memset(res, 0, (size_t)w->ndof * sizeof *res);
    for (int r = 0; r < w->rp->nrod; r++) {
        const rod_mesh *m = &w->mesh[r];
        for (int e = 0; e < m->ne; e++)
            rod_element_own(w, m, e, NULL, res + 6 * (m->first + 3 * e), NULL);
    }
    rod_loads(w, t, res);
    if (w->contact)
        contacts_put(w, res, NULL);
}

void rod_residual(rod_work *w, double t, double *res)
{
    rod_residual_nodes(w, t, res);
    rod_gather(w, res);
}

/* Which dofs of each element are kept, and the number of each unknown that remains: positions and rotations
   of nodes inside elements without contact are eliminated. whole: either all dofs of both inner nodes are
   kept, or none. Loads belong to their element. */
static int number_dofs(const rod_work *w, const rod_sparse *C, bool whole, int *number, uint8_t *kept)
{
    int n = 0;
    for (int i = 0; i < 2 * w->N; i++)
        number[3 * i] = w->linear.red[i / 2] >= 0;
    for (int k = 0; k < C->nz; k++)
        number[3 * (C->i[k] / 3)] = 1;
    for (int r = 0; whole && r < w->rp->nrod; r++)
        for (int i = w->mesh[r].first; i + 3 < w->mesh[r].first + w->mesh[r].nn; i += 3) {
            int *in = number + 6 * (i + 1);
            in[0] = in[3] = in[6] = in[9] = in[0] || in[3] || in[6] || in[9];
        }
    for (int i = 0; i < 2 * w->N; i++) {
        bool there = number[3 * i];
        for (int k = 0; k < 3; k++) {
            kept[3 * i + k] = there;
            number[3 * i + k] = there && rod_is_unknown(w, 3 * i) ? n++ : -1;
        }
    }
    return n;
}

/* The unknowns that move the kept dofs of an element. */
static void terms_element(const rod_work *w, int first, rod_terms *t)
{
    for (int i = 0; i < ROD_NODES; i++)
        rod_terms_of(w, first + i, t + 6 * i);
}

/* Adds x, given for two dofs, at their unknowns. */
static void sparse_spread(rod_work *w, rod_sparse *S, const int *number, const rod_terms *row,
                          const rod_terms *col, double x)
{
    for (int u = 0; u < row->n; u++)
        for (int v = 0; v < col->n && !w->ends.held[row->slot[u]]; v++)
            sparse_add(w->tmp, S, number[row->slot[u]], number[col->slot[v]], row->c[u] * col->c[v] * x);
}

static void sparse_element(rod_work *w, int d0, const int *number, const uint8_t *kept, const double *K,
                           const double *f, int m, double *X, rod_sparse *S, double *b)
{
    const split p = split_kept(kept + d0);
    double out[ROD_DOFS * (ROD_DOFS + SIDES)];
    rod_terms t[ROD_DOFS];
    int wide = p.nk + m;
    condense(K, f, m, &p, X, out);
    terms_element(w, d0 / 6, t);
    for (int i = 0; i < p.nk; i++) {
        const rod_terms *row = &t[p.keep[i]];
        for (int u = 0; u < row->n; u++)
            for (int c = 0; c < m; c++)
                b[c * S->n + number[row->slot[u]]] -= row->c[u] * out[wide * i + p.nk + c];
        for (int j = 0; j < p.nk; j++)
            sparse_spread(w, S, number, row, &t[p.keep[j]], out[wide * i + j]);
    }
}

/* Diagonal entries for dofs that are no unknowns, beside those of hinges. */
static void sparse_spare(rod_work *w, rod_sparse *S, const int *number, double stiff)
{
    for (int i = 0; w->ties && i < w->ndof; i++)
        if (number[i] >= 0 && rod_is_spare(w, i))
            sparse_add(w->tmp, S, number[i], number[i], stiff);
}

static void sparse_hinges(rod_work *w, const double *f, const int *number, rod_sparse *S)
{
    rod_sparse H = { .n = w->ndof };
    rod_hinges_put(w, f, &H);
    for (int k = 0; k < H.nz; k++)
        if (!w->ends.held[H.i[k]])
            sparse_add(w->tmp, S, number[H.i[k]], number[H.j[k]], H.x[k]);
}

/* Contact: its derivatives, and its forces w->res. */
static void sparse_contact(rod_work *w, const rod_sparse *C, const int *number, rod_sparse *S, double *b)
{
    for (int k = 0; k < C->nz; k++) {
        double x = C->x[k] * rod_unit(w, C->i[k]) * rod_unit(w, C->j[k]);
        rod_terms row, col;
        rod_term_of(w, C->i[k], &row);
        rod_term_of(w, C->j[k], &col);
        sparse_spread(w, S, number, &row, &col, x);
    }
    for (int i = 0; w->contact && i < w->ndof; i++) {
        rod_terms t;
        if (w->res[i] == 0)
            continue;
        rod_term_of(w, i, &t);
        for (int u = 0; u < t.n; u++)
            b[number[t.slot[u]]] -= t.c[u] * w->res[i] * rod_unit(w, i);
    }
}

/* The same with contact, or with joints. */
bool rod_solve_sparse(rod_work *w, double t, const double *rate, double *dy)
{
    arena_pos mark = arena_mark(w->tmp);
    rod_sparse C = { .n = w->ndof }, S = { 0 };
    rod_outside out = rod_outside_at(w, t);
    double *X = w->linear.inner, *both[SIDES] = { w->dx, dy };
    int *number = arena_array(w->tmp, int, w->ndof), m = dy ? 2 : 1;
    uint8_t *kept = arena_array(w->tmp, uint8_t, w->ndof);
    double *all = w->ties ? arena_array(w->tmp, double, w->ndof) : NULL;
    memset(w->res, 0, (size_t)w->ndof * sizeof *w->res);
    if (w->contact)
        contacts_put(w, w->res, &C);
    int n = S.n = number_dofs(w, &C, false, number, kept);
    double *b = arena_array(w->tmp, double, m *n);
    for (int r = 0; r < w->rp->nrod; r++) {
        const rod_mesh *mesh = &w->mesh[r];
        for (int e = 0; e < mesh->ne; e++, X += INNER) {
            double f[SIDES * ROD_DOFS], K[ROD_DOFS * ROD_DOFS];
            int d0 = element_sides(w, mesh, e, &out, rate, f, K);
            for (int i = 0; all && i < ROD_DOFS; i++)
                all[d0 + i] += f[i];
            sparse_element(w, d0, number, kept, K, f, m, X, &S, b);
        }
    }
    double stiff = w->scale * w->unit;
    sparse_contact(w, &C, number, &S, b);
    if (all) {
        for (int i = 0; i < w->ndof; i++)
            all[i] += w->res[i];
        sparse_hinges(w, all, number, &S);
        sparse_spare(w, &S, number, stiff);
    }
    for (int i = 0; i < w->ndof; i++) {
        if (!w->ends.held[i])
            continue;
        for (int c = 0; c < m; c++)
            b[c * n + number[i]] = both[c][i] / rod_unit(w, i) * stiff;
        sparse_add(w->tmp, &S, number[i], number[i], stiff);
        for (int j = 0; w->ends.tilt && i % 6 == 5 && j < 2; j++)
            sparse_add(w->tmp, &S, number[i], number[i - 2 + j], stiff * w->ends.tilt[2 * (i / 6) + j]);
    }
    rod_columns A = rod_columns_of(w->tmp, &S);
    bool ok = sparse_lu(n, A.p, A.i, A.x, false, order_threes(w->tmp, &A, n), m, b);
    for (int i = 0; ok && i < w->ndof; i++)
        for (int c = 0; c < m && number[i] >= 0; c++)
            both[c][i] = b[c * n + number[i]];
    for (int c = 0; ok && c < m; c++)
        rod_spread(w, both[c]);
    X = w->linear.inner;
    for (int r = 0; ok && r < w->rp->nrod; r++)
        for (int e = 0; e < w->mesh[r].ne; e++, X += INNER) {
            int d0 = 6 * (w->mesh[r].first + 3 * e);
            const split p = split_kept(kept + d0);
            for (int c = 0; c < m; c++)
                split_back(&p, X, m, c, both[c] + d0);
        }
    for (int i = 0; ok && i < w->ndof; i++)
        for (int c = 0; c < m; c++)
            both[c][i] *= rod_unit(w, i);
    arena_release(w->tmp, mark);
    w->linear.sign = 0;
    for (int i = 0; ok && i < w->ndof; i++)
        ok = isfinite(w->dx[i]) && (!dy || isfinite(dy[i]));
    return ok;
}

/* ---- stability in contact ---- */
bool rod_solve_positive(int n, const rod_columns *columns, double *b)
{
    return sparse_spd(n, columns->p, columns->i, columns->x, b);
}

static void lower_add(rod_work *w, rod_sparse *S, const int *number, int i, int j, double x)
{
    if (!w->ends.held[i] && !w->ends.held[j] && number[i] >= number[j])
        sparse_add(w->tmp, S, number[i], number[j], x);
}

/* Adds x for two dofs of nodes (and its mirror entry if they differ) at their unknowns. */
static void lower_spread(rod_work *w, rod_sparse *S, const int *number, const rod_terms *a,
                         const rod_terms *b, bool same, double x)
{
    for (int u = 0; u < a->n; u++)
        for (int v = 0; v < b->n; v++) {
            int i = a->slot[u], j = b->slot[v];
            double y = a->c[u] * b->c[v] * x;
            if (same || number[i] > number[j])
                lower_add(w, S, number, i, j, y);
            else
                lower_add(w, S, number, j, i, i == j ? 2 * y : y);
        }
}

/* The symmetric part of the derivatives of moments by the rotation of hinges. */
static void lower_hinges(rod_work *w, double t, const int *number, rod_sparse *S)
{
    rod_sparse H = { .n = w->ndof };
    double *f = arena_array(w->tmp, double, w->ndof);
    rod_residual_nodes(w, t, f);
    rod_hinges_put(w, f, &H);
    for (int k = 0; k < H.nz; k++) {
        bool low = number[H.i[k]] >= number[H.j[k]];
        lower_add(w, S, number, low ? H.i[k] : H.j[k], low ? H.j[k] : H.i[k], H.x[k] / 2);
    }
}

/* The same for rods in contact: closed pairs are held by stiff springs, and their forces follow rotations, so
   that only directions count along which nothing opens or closes. Sticking pairs are held across the normal
   too; slipping pairs are free there. */
static int unstable_touching(rod_work *w, double t)
{
    arena_pos mark = arena_mark(w->tmp);
    rod_sparse C = { .n = w->ndof }, S = { 0 };
    rod_outside out = rod_outside_at(w, t);
    int *number = arena_array(w->tmp, int, w->ndof), bad = 0;
    uint8_t *kept = arena_array(w->tmp, uint8_t, w->ndof);
    if (w->contact && contacts_near(w))
        contacts_count(w, &C);
    int n = S.n = number_dofs(w, &C, true, number, kept);
    for (int r = 0; r < w->rp->nrod; r++) {
        const rod_mesh *m = &w->mesh[r];
        for (int e = 0; e < m->ne; e++) {
            double K[ROD_DOFS * ROD_DOFS], ends[144];
            int d0 = 6 * (m->first + 3 * e);
            rod_terms terms[ROD_DOFS];
            bool whole = kept[d0 + 6];
            element_symmetric(w, m, e, &out, K);
            terms_element(w, d0 / 6, terms);
            if (!whole)
                bad += condense_symmetric(K, ends);
            for (int i = 0; i < (whole ? ROD_DOFS : 12); i++)
                for (int j = 0; j <= i; j++)
                    lower_spread(w, &S, number, &terms[whole ? i : outer(i)], &terms[whole ? j : outer(j)],
                                 i == j, whole ? K[i * ROD_DOFS + j] : ends[12 * i + j]);
        }
    }
    for (int k = 0; k < C.nz; k++) { /* half of each entry and its mirror entry */
        rod_terms row, col;
        rod_term_of(w, C.i[k], &row);
        rod_term_of(w, C.j[k], &col);
        lower_spread(w, &S, number, &row, &col, C.i[k] == C.j[k], C.i[k] == C.j[k] ? C.x[k] : C.x[k] / 2);
    }
    if (w->ties) {
        lower_hinges(w, t, number, &S);
        sparse_spare(w, &S, number, w->scale);
    }
    for (int i = 0; i < w->ndof; i++)
        if (w->ends.held[i] && number[i] >= 0)
            sparse_add(w->tmp, &S, number[i], number[i], w->scale);
    rod_columns A = rod_columns_of(w->tmp, &S);
    /* rounding has no sign: motions without resistance must not count */
    for (int j = 0; j < n; j++)
        for (int k = A.p[j]; k < A.p[j + 1]; k++)
            if (A.i[k] == j)
                A.x[k] *= 1 + 16 * DBL_EPSILON;
    bad += sparse_negative(n, A.p, A.i, A.x);
    arena_release(w->tmp, mark);
    return bad;
}

static int unstable_shifted(rod_work *w, double t, double shift)
{
    double keep = w->shift;
    w->shift = shift;
    bool sparse = w->ties || (w->contact && contacts_near(w));
    int n = sparse ? unstable_touching(w, t) : unstable_free(w, t);
    w->shift = keep;
    return n;
}

int rod_unstable(rod_work *w, double t)
{
    return unstable_shifted(w, t, fmax(w->shift, (w->neutral ? 1 : SHIFT_LOOK) * rod_small_shift(w)));
}

double rod_rounding(const rod_work *w)
{
    double most = 0;
    for (int r = 0; r < w->rp->nrod; r++) {
        const rod_mesh *m = &w->mesh[r];
        double stiff = fmax(m->B[0], fmax(m->B[4], m->B[8])), h = INFINITY;
        for (int i = 1; i < m->nn; i++)
            h = fmin(h, m->s[i] - m->s[i - 1]);
        most = fmax(most, stiff / (h * h));
    }
    return SHIFT_ROUNDED * most;
}

rod_range rod_unstable_range(rod_work *w, double t, double shift)
{
    return (rod_range){ unstable_shifted(w, t, shift), unstable_shifted(w, t, -shift) };
}
