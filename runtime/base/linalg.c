#include "linalg.h"
#include "foreign.h"
#include "tolerances.h"
#include <lapacke.h>
#include <math.h>
#include <string.h>
#include <suitesparse/amd.h>
#include <suitesparse/cholmod.h>
#include <suitesparse/klu.h>
#include <suitesparse/umfpack.h>

/* [emit c */
double vec_max(const double *a, int n)
{
    double m = 0;
    for (int i = 0; i < n; i++)
        m = fmax(m, fabs(a[i]));
    return m;
}

/* emit c] */
void mat_vec(const double *a, const double *x, double *y, int m, int n)
{
    for (int i = 0; i < m; i++)
        y[i] = vec_dot(a + (size_t)i * n, x, n);
}

void factor_init(factor *f, arena *a, int n, bool diagonal)
{
    *f = (factor){ .kind = FACTOR_NONE, .n = n, .of = a };
    f->a = arena_array(a, double, diagonal ? (size_t)n : (size_t)n *n);
    f->pivot = arena_array(a, int, n);
}

bool factor_diagonal(factor *f, const double *d, int *bad)
{
    f->kind = FACTOR_DIAGONAL;
    for (int i = 0; i < f->n; i++) {
        if (!(d[i] > 0) || !isfinite(d[i])) {
            *bad = i;
            return false;
        }
        f->a[i] = 1 / d[i];
    }
    return true;
}

/* [emit c */
/* L in the lower triangle; a pivot must keep a fraction of its diagonal entry that is larger than
   rounding. */
static bool chol_plain(double *a, int n, int *bad)
{
    for (int j = 0; j < n; j++) {
        double *aj = a + (size_t)j * n, d = aj[j] - vec_dot(aj, aj, j);
        if (!(d > PIVOT_LEAST * fabs(aj[j])) || !isfinite(d)) {
            *bad = j;
            return false;
        }
        aj[j] = sqrt(d);
        for (int i = j + 1; i < n; i++) {
            double *ai = a + (size_t)i * n;
            ai[j] = (ai[j] - vec_dot(ai, aj, j)) / aj[j];
        }
    }
    return true;
}

static void chol_back(const double *l, int n, double *x)
{
    for (int i = 0; i < n; i++)
        x[i] = (x[i] - vec_dot(l + (size_t)i * n, x, i)) / l[(size_t)i * n + i];
    for (int i = n; i-- > 0;) {
        for (int k = i + 1; k < n; k++)
            x[i] -= l[(size_t)k * n + i] * x[k];
        x[i] /= l[(size_t)i * n + i];
    }
}

double power_unit(double a)
{
    int power;
    if (!(a > 0) || !isfinite(a))
        return 1;
    frexp(a, &power);
    return ldexp(1, -(int)floor(0.5 * power));
}

/* The units of rows in which their pivots compare: the matrices of mechanics have a row and a column for each
 * dof, in the unit of that dof. */
static void pivot_units(const double *a, int n, double *unit)
{
    for (int i = 0; i < n; i++)
        unit[i] = power_unit(fabs(a[(size_t)i * n + i]));
}

/* A pivot is compared with the largest original entry of its row, because equations may be in different
   units. */
static bool pivot_counts(double d, double size)
{
    return fabs(d) > PIVOT_LU * size && isfinite(d);
}

/* Gauss-Jordan with row pivoting on at most LINALG_SMALL rows. */
static bool invert_small(const double *a, double *inv, int n)
{
    double w[LINALG_SMALL * 2 * LINALG_SMALL], size[LINALG_SMALL], unit[LINALG_SMALL];
    int m = 2 * n;
    pivot_units(a, n, unit);
    for (int i = 0; i < n; i++)
        size[i] = vec_max(a + i * n, n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            w[i * m + j] = a[i * n + j];
            w[i * m + n + j] = i == j;
        }
    for (int k = 0; k < n; k++) {
        int p = k;
        for (int i = k + 1; i < n; i++)
            if (unit[i] * fabs(w[i * m + k]) > unit[p] * fabs(w[p * m + k]))
                p = i;
        double d = w[p * m + k];
        if (!pivot_counts(d, size[p]))
            return false;
        size[p] = size[k];
        unit[p] = unit[k];
        for (int j = 0; j < m; j++) {
            double x = w[p * m + j];
            w[p * m + j] = w[k * m + j];
            w[k * m + j] = x / d;
        }
        for (int i = 0; i < n; i++)
            if (i != k && w[i * m + k] != 0)
                vec_axpy(w + i * m, -w[i * m + k], w + k * m, m);
    }
    for (int i = 0; i < n; i++)
        memcpy(inv + i * n, w + i * m + n, (size_t)n * sizeof *inv);
    return true;
}

/* emit c] */
/* n^3 of a factorisation, n^2 of a solution */
static void count_work(const factor *f, int64_t power)
{
    if (f->of && f->n > LINALG_SMALL)
        arena_tick(f->of, power * f->n * f->n);
}

bool factor_spd(factor *f, const double *a, int *bad)
{
    int n = f->n;
    count_work(f, n);
    double small[LINALG_SMALL * LINALG_SMALL], *l = n <= LINALG_SMALL ? small : f->a;
    if (n == 0) {
        f->kind = FACTOR_INVERSE;
        return true;
    }
    memcpy(l, a, (size_t)n * n * sizeof *a);
    *bad = 0;
    f->kind = FACTOR_CHOLESKY;
    if (n < LINALG_LAPACK) {
        if (!chol_plain(l, n, bad))
            return false;
        if (n > LINALG_SMALL)
            return true;
        f->kind = FACTOR_INVERSE;
        return invert_small(a, f->a, n);
    }
    lapack_int info = FOREIGN(LAPACKE_dpotrf_work)(LAPACK_COL_MAJOR, 'U', n, f->a, n);
    if (info > 0)
        *bad = info - 1;
    return info == 0;
}

/* [emit c */
static bool lu_plain(double *a, int *pivot, int n)
{
    double size[LINALG_LAPACK], unit[LINALG_LAPACK];
    pivot_units(a, n, unit);
    for (int i = 0; i < n; i++)
        size[i] = vec_max(a + (size_t)i * n, n);
    for (int k = 0; k < n; k++) {
        int p = k;
        for (int i = k + 1; i < n; i++)
            if (unit[i] * fabs(a[(size_t)i * n + k]) > unit[p] * fabs(a[(size_t)p * n + k]))
                p = i;
        double d = a[(size_t)p * n + k];
        pivot[k] = p;
        if (!pivot_counts(d, size[p]))
            return false;
        size[p] = size[k];
        unit[p] = unit[k];
        for (int j = 0; p != k && j < n; j++) {
            double x = a[(size_t)p * n + j];
            a[(size_t)p * n + j] = a[(size_t)k * n + j];
            a[(size_t)k * n + j] = x;
        }
        for (int i = k + 1; i < n; i++) {
            double *ai = a + (size_t)i * n;
            if (ai[k] == 0)
                continue;
            ai[k] /= d;
            vec_axpy(ai + k + 1, -ai[k], a + (size_t)k * n + k + 1, n - k - 1);
        }
    }
    return true;
}

/* emit c] */
bool factor_general(factor *f, const double *a)
{
    int n = f->n;
    count_work(f, n);
    if (n <= LINALG_SMALL) {
        f->kind = FACTOR_INVERSE;
        return n == 0 || invert_small(a, f->a, n);
    }
    f->kind = FACTOR_LU;
    memcpy(f->a, a, (size_t)n * n * sizeof *a);
    if (n < LINALG_LAPACK)
        return lu_plain(f->a, f->pivot, n);
    return FOREIGN(LAPACKE_dgetrf_work)(LAPACK_COL_MAJOR, n, n, f->a, n, f->pivot) == 0;
}

/* [emit c */
static void lu_back(const double *a, const int *pivot, int n, double *x)
{
    for (int k = 0; k < n; k++) {
        double y = x[pivot[k]];
        x[pivot[k]] = x[k];
        x[k] = y;
    }
    for (int i = 0; i < n; i++)
        x[i] -= vec_dot(a + (size_t)i * n, x, i);
    for (int i = n; i-- > 0;)
        x[i] = (x[i] - vec_dot(a + (size_t)i * n + i + 1, x + i + 1, n - i - 1)) / a[(size_t)i * n + i];
}

/* emit c] */
void factor_solve(const factor *f, const double *b, double *x)
{
    int n = f->n;
    count_work(f, 1);
    switch (f->kind) {
    case FACTOR_DIAGONAL:
        for (int i = 0; i < n; i++)
            x[i] = f->a[i] * b[i];
        return;
    case FACTOR_INVERSE:
        mat_vec(f->a, b, x, n, n);
        return;
    case FACTOR_CHOLESKY:
        memcpy(x, b, (size_t)n * sizeof *x);
        chol_back(f->a, n, x);
        return;
    case FACTOR_LU:
        memcpy(x, b, (size_t)n * sizeof *x);
        if (n < LINALG_LAPACK)
            lu_back(f->a, f->pivot, n, x);
        else
            FOREIGN(LAPACKE_dgetrs_work)(LAPACK_COL_MAJOR, 'T', n, 1, f->a, n, f->pivot, x, n);
        return;
    case FACTOR_BAND:
    case FACTOR_BAND_LU:
    case FACTOR_SPARSE:
        factor_solve_shaped(f, b, x);
        return;
    case FACTOR_NONE:
        return;
    }
}

/* [emit c */
/* swaps rows and columns i and j of the symmetric matrix, and the finished columns of L with them */
static void chol_swap(double *a, int n, int i, int j)
{
    for (int k = 0; k < n; k++) {
        double x = a[i * n + k];
        a[i * n + k] = a[j * n + k];
        a[j * n + k] = x;
    }
    for (int k = 0; k < n; k++) {
        double x = a[k * n + i];
        a[k * n + i] = a[k * n + j];
        a[k * n + j] = x;
    }
}

int chol_rank(double *a, int n, int *perm, double tol)
{
    double big = 0;
    for (int i = 0; i < n; i++) {
        perm[i] = i;
        big = fmax(big, a[i * n + i]);
    }
    for (int j = 0; j < n; j++) {
        int p = j;
        for (int i = j + 1; i < n; i++)
            if (a[i * n + i] > a[p * n + p])
                p = i;
        if (!(a[p * n + p] > tol * big))
            return j;
        /* finished columns of L live below the diagonal only, so rows are swapped whole and columns from j on
         */
        if (p != j) {
            int k = perm[p];
            perm[p] = perm[j];
            perm[j] = k;
            chol_swap(a, n, p, j);
        }
        double d = a[j * n + j] = sqrt(a[j * n + j]);
        for (int i = j + 1; i < n; i++)
            a[i * n + j] /= d;
        for (int i = j + 1; i < n; i++)
            for (int k = j + 1; k <= i; k++)
                a[k * n + i] = a[i * n + k] -= a[i * n + j] * a[k * n + j];
    }
    return n;
}

/* A = L L^T with L n by k:  x = L (L^T L)^-2 L^T b lies in the range of A. */
static inline __attribute__((always_inline)) int shortest_factor(double *a, int n, double *work, int *iwork)
{
    double *g = work;
    int k = chol_rank(a, n, iwork, RANK_CHOLESKY), bad;
    if (k == n)
        return k;
    for (int i = 0; i < k; i++)
        for (int j = 0; j <= i; j++) {
            double s = 0;
            for (int r = i; r < n; r++)
                s += a[r * n + i] * a[r * n + j];
            g[i * k + j] = g[j * k + i] = s;
        }
    return chol_plain(g, k, &bad) ? k : 0;
}

static inline __attribute__((always_inline)) void shortest_use(const double *a, int k, const double *b,
                                                               double *x, int n, double *work,
                                                               const int *iwork)
{
    double *g = work, *y = work + (size_t)n * n, *pb = y + n;
    for (int i = 0; i < n; i++)
        pb[i] = b[iwork[i]];
    if (k == n) {
        chol_back(a, n, pb);
    } else {
        for (int i = 0; i < k; i++) {
            y[i] = 0;
            for (int r = i; r < n; r++)
                y[i] += a[r * n + i] * pb[r];
        }
        chol_back(g, k, y);
        chol_back(g, k, y);
        for (int r = 0; r < n; r++)
            pb[r] = vec_dot(a + (size_t)r * n, y, r < k ? r + 1 : k);
    }
    for (int i = 0; i < n; i++)
        x[iwork[i]] = pb[i];
}

int sym_shortest_factor(double *a, int n, double *work, int *iwork)
{
    return shortest_factor(a, n, work, iwork);
}

void sym_shortest_use(const double *a, int rank, const double *b, double *x, int n, double *work,
                      const int *iwork)
{
    shortest_use(a, rank, b, x, n, work, iwork);
}

int sym_shortest(double *a, const double *b, double *x, int n, double *work, int *iwork)
{
    int k = shortest_factor(a, n, work, iwork);
    shortest_use(a, k, b, x, n, work, iwork);
    return k;
}

int sym_shortest_rows(double *a, const double *b, double *x, int n, double *work, int *iwork)
{
    double *unit = work + (size_t)n * n + 2 * (size_t)n;
    for (int i = 0; i < n; i++) {
        unit[i] = power_unit(a[i * n + i]);
        x[i] = unit[i] * b[i];
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            a[i * n + j] *= unit[i] * unit[j];
    int k = sym_shortest(a, x, x, n, work, iwork);
    for (int i = 0; i < n; i++)
        x[i] *= unit[i];
    return k;
}

/* emit c] */
/* LAPACK reads columns: A is turned first. */
bool least_norm(double *a, double *b, int m, int n, arena *scratch)
{
    lapack_int rank, lwork = 4 * (m + n) + 64 * (n + 1);
    int *jpvt = arena_array(scratch, int, n);
    double *at = arena_array(scratch, double, (size_t)m *n), *work = arena_array(scratch, double, lwork);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            at[(size_t)j * m + i] = a[(size_t)i * n + j];
    return FOREIGN(LAPACKE_dgelsy_work)(LAPACK_COL_MAJOR, m, n, 1, at, m, b, m > n ? m : n, jpvt, RANK_QR,
                                        &rank, work, lwork) == 0;
}

/* KLU, not UMFPACK: the fronts of contact problems and rods are small, and managing them took three times
 * as long as the factorisation */
bool sparse_lu(int n, int *p, int *i, double *x, bool rows, int *order, int m, double *b)
{
    klu_common c;
    FOREIGN(klu_defaults)(&c);
    if (order)
        c.btf = 0;
    klu_symbolic *symbolic = order ? FOREIGN(klu_analyze_given)(n, p, i, order, order, &c)
                                   : FOREIGN(klu_analyze)(n, p, i, &c);
    klu_numeric *numeric = symbolic ? FOREIGN(klu_factor)(p, i, x, symbolic, &c) : NULL;
    bool ok = numeric && (rows ? FOREIGN(klu_tsolve) : FOREIGN(klu_solve))(symbolic, numeric, n, m, b, &c);
    FOREIGN(klu_free_numeric)(&numeric, &c);
    FOREIGN(klu_free_symbolic)(&symbolic, &c);
    return ok;
}

struct sparse_factors {
    int n, *p, *i;
    bool many;
    klu_common common;
    klu_symbolic *symbolic;
    klu_numeric *numeric;
    /* UMFPACK's, which needs the matrix itself to solve */
    void *order, *factors;
    double *x, *copy;
};

sparse_factors *sparse_factors_new(arena *a, int n, int *p, int *i, bool many)
{
    sparse_factors *f = arena_make(a, sparse_factors);
    *f = (sparse_factors){ .n = n, .p = p, .i = i, .many = many };
    if (many) {
        f->copy = arena_array(a, double, n);
        return f;
    }
    FOREIGN(klu_defaults)(&f->common);
    f->common.btf = 0;
    return f;
}

static bool klu_put(sparse_factors *f, double *x, bool pivots)
{
    if (!f->symbolic)
        f->symbolic = FOREIGN(klu_analyze)(f->n, f->p, f->i, &f->common);
    if (!f->symbolic)
        return false;
    if (pivots)
        FOREIGN(klu_free_numeric)(&f->numeric, &f->common);
    if (f->numeric)
        return FOREIGN(klu_refactor)(f->p, f->i, x, f->symbolic, f->numeric, &f->common) &&
               f->common.status == KLU_OK;
    f->numeric = FOREIGN(klu_factor)(f->p, f->i, x, f->symbolic, &f->common);
    return f->numeric != NULL;
}

static bool umfpack_put(sparse_factors *f, double *x)
{
    double control[UMFPACK_CONTROL], info[UMFPACK_INFO];
    FOREIGN(umfpack_di_defaults)(control);
    f->x = x;
    if (!f->order &&
        FOREIGN(umfpack_di_symbolic)(f->n, f->n, f->p, f->i, x, &f->order, control, info) != UMFPACK_OK)
        return false;
    FOREIGN(umfpack_di_free_numeric)(&f->factors);
    int e = FOREIGN(umfpack_di_numeric)(f->p, f->i, x, f->order, &f->factors, control, info);
    return e == UMFPACK_OK || e == UMFPACK_WARNING_singular_matrix;
}

bool sparse_factors_put(sparse_factors *f, double *x, bool pivots)
{
    return f->many ? umfpack_put(f, x) : klu_put(f, x, pivots);
}

bool sparse_factors_solve_rows(sparse_factors *f, double *b)
{
    if (!f->many)
        return FOREIGN(klu_tsolve)(f->symbolic, f->numeric, f->n, 1, b, &f->common) != 0;
    memcpy(f->copy, b, (size_t)f->n * sizeof *b);
    return FOREIGN(umfpack_di_solve)(UMFPACK_At, f->p, f->i, f->x, b, f->copy, f->factors, NULL, NULL) >= 0;
}

/* of the diagonal, and of the order that pivots were taken in */
int sparse_factors_sign(const sparse_factors *f, int *room)
{
    const double *d = f->numeric->Udiag;
    const int *to = f->numeric->Pnum;
    int sign = 1;
    memset(room, 0, (size_t)f->n * sizeof *room);
    for (int i = 0; i < f->n; i++) {
        if (d[i] < 0)
            sign = -sign;
        for (int j = i; !room[j]; j = to[j]) {
            room[j] = 1;
            if (to[j] != i)
                sign = -sign;
        }
    }
    return sign;
}

void sparse_factors_free(sparse_factors *f)
{
    if (f->many) {
        FOREIGN(umfpack_di_free_numeric)(&f->factors);
        FOREIGN(umfpack_di_free_symbolic)(&f->order);
        return;
    }
    FOREIGN(klu_free_numeric)(&f->numeric, &f->common);
    FOREIGN(klu_free_symbolic)(&f->symbolic, &f->common);
}

/* Row exchange and elimination of one column, as dgbtf2 does it, and of b along with it.  at(i, j) of the
 * band stands at lu[2 kb + i - j + j wide]; `last` is the last column that the pivots so far reach. */
static bool band_column(int n, int kb, double *lu, int j, int *last, double *b)
{
    int wide = 3 * kb + 1, rows = n - 1 - j < kb ? n - 1 - j : kb, best = 0;
    double *d = lu + (size_t)j * (size_t)wide + 2 * kb;
    for (int i = 1; i <= rows; i++)
        if (fabs(d[i]) > fabs(d[best]))
            best = i;
    if (!(fabs(d[best]) > 0))
        return false;
    int reach = j + kb + best < n - 1 ? j + kb + best : n - 1;
    *last = reach > *last ? reach : *last;
    for (int c = j; best && c <= *last; c++) {
        double *x = lu + (size_t)c * (size_t)wide + 2 * kb + j - c, keep = x[0];
        x[0] = x[best];
        x[best] = keep;
    }
    double keep = b[j], over = 1 / d[0];
    b[j] = b[j + best];
    b[j + best] = keep;
    for (int i = 1; i <= rows; i++) {
        d[i] *= over;
        b[j + i] -= d[i] * b[j];
    }
    for (int c = j + 1; c <= *last; c++) {
        double *x = lu + (size_t)c * (size_t)wide + 2 * kb + j - c, top = x[0];
        if (top == 0)
            continue;
        for (int i = 1; i <= rows; i++)
            x[i] -= d[i] * top;
    }
    return true;
}

bool band_lu(int n, int kb, double *lu, double *b)
{
    int wide = 3 * kb + 1, last = 0;
    for (int j = 0; j < n; j++)
        if (!band_column(n, kb, lu, j, &last, b))
            return false;
    for (int j = n; j-- > 0;) {
        const double *d = lu + (size_t)j * (size_t)wide + 2 * kb;
        double x = b[j] /= d[0];
        for (int i = 1; i <= 2 * kb && i <= j; i++)
            b[j - i] -= d[-i] * x;
    }
    return true;
}

bool band_lu_factor(int n, int kl, int ku, double *a, int ld, int *pivot, double *rcond)
{
    double norm = rcond ? FOREIGN(LAPACKE_dlangb)(LAPACK_COL_MAJOR, '1', n, kl, ku, a + kl, ld) : 0;
    if (FOREIGN(LAPACKE_dgbtrf_work)(LAPACK_COL_MAJOR, n, n, kl, ku, a, ld, pivot))
        return false;
    if (rcond)
        FOREIGN(LAPACKE_dgbcon)(LAPACK_COL_MAJOR, '1', n, kl, ku, a, ld, pivot, norm, rcond);
    return true;
}

bool band_lu_use(int n, int kl, int ku, const double *a, int ld, const int *pivot, int m, double *b)
{
    return FOREIGN(LAPACKE_dgbtrs_work)(LAPACK_COL_MAJOR, 'N', n, kl, ku, m, a, ld, pivot, b, n) == 0;
}

double solve_refined(int n, double *a, double *b, double *x, arena *scratch)
{
    double *lu = arena_array(scratch, double, (size_t)n *(size_t)n), *r = arena_array(scratch, double, n),
           *c = arena_array(scratch, double, n), rcond = 0, ferr, berr, rpivot;
    int *pivot = arena_array(scratch, int, n);
    char equed = 'N';
    int info = FOREIGN(LAPACKE_dgesvx)(LAPACK_COL_MAJOR, 'E', 'N', n, 1, a, n, lu, n, pivot, &equed, r, c, b,
                                       n, x, n, &rcond, &ferr, &berr, &rpivot);
    return info < 0 || (info > 0 && info <= n) ? 0 : rcond;
}

bool eigenvalues(int n, double *a, double *re, double *im, double *work)
{
    return FOREIGN(LAPACKE_dgeev_work)(LAPACK_COL_MAJOR, 'N', 'N', n, a, n, re, im, NULL, 1, NULL, 1, work,
                                       8 * n) == 0;
}

/* ---- symmetric and sparse ---- */

bool sparse_order(int n, const int *p, const int *i, int *order)
{
    return FOREIGN(amd_order)(n, p, i, order, NULL, NULL) >= AMD_OK;
}

/* memory is cholmod's own, and nothing is allocated from an arena while it holds any */
static cholmod_sparse lower_half(int n, int *p, int *i, double *x)
{
    return (cholmod_sparse){ .nrow = (size_t)n,
                             .ncol = (size_t)n,
                             .nzmax = (size_t)p[n],
                             .p = p,
                             .i = i,
                             .x = x,
                             .stype = -1,
                             .itype = CHOLMOD_INT,
                             .xtype = CHOLMOD_REAL,
                             .dtype = CHOLMOD_DOUBLE,
                             .sorted = 0,
                             .packed = 1 };
}

/* L D L^T, or L L^T */
static cholmod_factor *factorised(cholmod_sparse *A, bool squares, cholmod_common *c)
{
    FOREIGN(cholmod_start)(c);
    c->print = 0;
    c->supernodal = CHOLMOD_SIMPLICIAL;
    c->final_ll = squares;
    c->nmethods = 1;
    c->method[0].ordering = CHOLMOD_AMD;
    cholmod_factor *L = FOREIGN(cholmod_analyze)(A, c);
    if (L && !FOREIGN(cholmod_factorize)(A, L, c))
        FOREIGN(cholmod_free_factor)(&L, c);
    return L;
}

int sparse_negative(int n, int *p, int *i, double *x)
{
    cholmod_common c;
    cholmod_sparse A = lower_half(n, p, i, x);
    cholmod_factor *L = factorised(&A, false, &c);
    int bad = 0;
    if (L && L->xtype == CHOLMOD_REAL && !L->is_ll)
        for (int j = 0; j < n; j++)
            bad += !(((double *)L->x)[((int *)L->p)[j]] > 0);
    FOREIGN(cholmod_free_factor)(&L, &c);
    FOREIGN(cholmod_finish)(&c);
    return bad;
}

bool sparse_spd(int n, int *p, int *i, double *x, double *b)
{
    cholmod_common c;
    cholmod_sparse A = lower_half(n, p, i, x);
    cholmod_dense B = { .nrow = (size_t)n,
                        .ncol = 1,
                        .nzmax = (size_t)n,
                        .d = (size_t)n,
                        .x = b,
                        .xtype = CHOLMOD_REAL,
                        .dtype = CHOLMOD_DOUBLE };
    cholmod_factor *L = factorised(&A, true, &c);
    bool ok = L && c.status == CHOLMOD_OK && L->minor == L->n;
    cholmod_dense *solution = ok ? FOREIGN(cholmod_solve)(CHOLMOD_A, L, &B, &c) : NULL;
    if (solution)
        memcpy(b, solution->x, (size_t)n * sizeof *b);
    ok = solution != NULL;
    FOREIGN(cholmod_free_dense)(&solution, &c);
    FOREIGN(cholmod_free_factor)(&L, &c);
    FOREIGN(cholmod_finish)(&c);
    return ok;
}
