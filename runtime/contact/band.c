#include "band.h"
#include <math.h>
#include <string.h>
#include "base/linalg.h"

typedef struct band_work {
    bool rough;          /* friction somewhere: not one normal row for each contact */
    bool known, entries; /* L belongs to the set `in`; an and at are there */
    bool *in;            /* rows that press */
    double *L; /* L D L^T of W on these rows, a row of the lower band each; D on its diagonal, inverted */
    double *start, *keep, *dr, *F; /* m */
    double *an, *at, *over;        /* by contact: normal entry of W, largest tangent entry, 1/an */
    /* Newton's matrix by columns, with room for pivoting */
    double *lu;
} band_work;

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

band_problem *band_new(arena *a, int n, int m, int kb)
{
    band_problem *p = arena_make(a, band_problem);
    band_work *w = p->work = arena_make(a, band_work);
    size_t mm = (size_t)m, wide = 2 * (size_t)kb + 1;
    *p = (band_problem){ .n = n, .m = m, .kb = kb, .work = w };
    p->cone = arena_array(a, cone, n);
    p->W = arena_array(a, double, mm *wide);
    double **rows[] = { &p->b, &p->r, &p->u, &w->start, &w->keep, &w->dr, &w->F, &w->an, &w->at, &w->over };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        *rows[i] = arena_array(a, double, mm);
    w->in = arena_array(a, bool, m);
    w->rough = m != n;
    if (w->rough)
        w->lu = arena_array(a, double, mm *(3 * (size_t)kb + 1));
    else
        w->L = arena_array(a, double, mm *((size_t)kb + 1));
    return p;
}

static inline double row_times(const band_problem *p, int i, const double *x)
{
    int lo = i > p->kb ? i - p->kb : 0, hi = i + p->kb < p->m ? i + p->kb : p->m - 1;
    const double *W = band_at(p, i, lo);
    double s = 0;
    for (int j = lo; j <= hi; j++)
        s += *W++ * x[j];
    return s;
}

/* u = b + W r */
static void velocities(band_problem *p)
{
    int m = p->m;
    const double *W = p->W, *r = p->r;
    if (p->kb != 1 || m < 2) {
        for (int i = 0; i < m; i++)
            p->u[i] = p->b[i] + row_times(p, i, r);
        return;
    }
    p->u[0] = p->b[0] + W[1] * r[0] + W[2] * r[1];
    for (int i = 1; i < m - 1; i++)
        p->u[i] = p->b[i] + (W[3 * i] * r[i - 1] + W[3 * i + 1] * r[i] + W[3 * i + 2] * r[i + 1]);
    p->u[m - 1] = p->b[m - 1] + W[3 * m - 3] * r[m - 2] + W[3 * m - 2] * r[m - 1];
}

static void entries(band_problem *p)
{
    band_work *w = p->work;
    w->entries = true;
    for (int c = 0; c < p->n; c++) {
        const cone *o = &p->cone[c];
        int k = cone_normal(o);
        w->an[c] = k ? *band_at(p, o->row, o->row) : 0;
        w->over[c] = 1 / w->an[c];
        w->at[c] = 0;
        for (int j = k; j < cone_rows(o); j++)
            w->at[c] = larger(w->at[c], *band_at(p, o->row + j, o->row + j));
    }
}

/* ---- no friction: an active set ---- */
/* rows outside the set are those of the unit matrix */
static bool set_factor(band_problem *p)
{
    band_work *w = p->work;
    int kb = p->kb;
    for (int i = 0; i < p->m; i++) {
        double *L = w->L + (size_t)i * (size_t)(kb + 1) + kb; /* L[j - i] */
        double d = *band_at(p, i, i), own = d;
        int lo = i > kb ? i - kb : 0;
        if (!w->in[i]) {
            for (int j = lo; j < i; j++)
                L[j - i] = 0;
            L[0] = 1;
            continue;
        }
        for (int j = lo; j < i; j++) {
            const double *Lj = w->L + (size_t)j * (size_t)(kb + 1) + kb;
            double x = w->in[j] ? *band_at(p, i, j) : 0;
            for (int k = lo > j - kb ? lo : j - kb; k < j; k++)
                x -= L[k - i] * Lj[k - j];
            L[j - i] = x; /* L_ij D_j, for now */
        }
        for (int j = lo; j < i; j++) {
            double x = L[j - i], l = x * w->L[(size_t)j * (size_t)(kb + 1) + kb];
            d -= x * l;
            L[j - i] = l;
        }
        if (!(d > 1e-13 * own))
            return false;
        L[0] = 1 / d;
    }
    return true;
}

static void factor_use(const band_problem *p, double *x)
{
    const band_work *w = p->work;
    int kb = p->kb, m = p->m;
    for (int i = 0; i < m; i++) {
        const double *L = w->L + (size_t)i * (size_t)(kb + 1) + kb;
        double s = x[i];
        for (int j = i > kb ? i - kb : 0; j < i; j++)
            s -= L[j - i] * x[j];
        x[i] = s;
    }
    for (int i = 0; i < m; i++)
        x[i] *= w->L[(size_t)i * (size_t)(kb + 1) + kb];
    for (int i = m; i-- > 0;) {
        const double *L = w->L + (size_t)i * (size_t)(kb + 1) + kb;
        for (int j = i > kb ? i - kb : 0; j < i; j++)
            x[j] -= L[j - i] * x[i];
    }
}

/* the same for three diagonals */
static void factor_use_3(const band_problem *p, double *x)
{
    const double *L = p->work->L;
    int m = p->m;
    for (int i = 1; i < m; i++)
        x[i] -= L[2 * i] * x[i - 1];
    x[m - 1] *= L[2 * m - 1];
    for (int i = m - 1; i-- > 0;)
        x[i] = x[i] * L[2 * i + 1] - L[2 * i + 2] * x[i + 1];
}

static void set_solve(band_problem *p)
{
    const band_work *w = p->work;
    for (int i = 0; i < p->m; i++)
        p->r[i] = w->in[i] ? -p->b[i] : 0;
    if (p->kb == 1)
        factor_use_3(p, p->r);
    else
        factor_use(p, p->r);
}

/* Rates, and how many rows are on the wrong side; those change sides (only the last of them when one). */
static int set_change(band_problem *p, bool one)
{
    band_work *w = p->work;
    double scale = p->least, eps;
    int wrong = 0, last = -1;
    velocities(p);
    for (int i = 0; i < p->m; i++)
        scale = larger(scale, fabs(p->r[i]));
    if (scale == 0)
        for (int i = 0; i < p->m; i++)
            scale = larger(scale, -p->b[i] * w->over[i]);
    eps = 1e-14 * scale;
    for (int i = 0; i < p->m; i++) {
        bool off = w->in[i] ? p->r[i] < -eps : p->u[i] * w->over[i] < 0.5 * eps; /* what just touches is in */
        if (!off || p->cone[i].kind == CONE_BILATERAL)
            continue;
        wrong++;
        last = i;
        if (!one)
            w->in[i] = !w->in[i];
    }
    if (one && last >= 0)
        w->in[last] = !w->in[last];
    if (wrong)
        w->known = false;
    return wrong;
}

/* natural map of all rows; what rounding leaves below 0 is clipped */
static double set_residual(band_problem *p)
{
    const band_work *w = p->work;
    reaction_size size = { 0 };
    double most = 0;
    p->worst = 0;
    for (int i = 0; i < p->m; i++) {
        bool held = p->cone[i].kind == CONE_BILATERAL;
        double r = p->r[i] < 0 && !held ? 0 : p->r[i], u = p->u[i] * w->over[i],
               e = held ? fabs(u) : fabs(r < u ? r : u);
        e = larger(e, fabs(r - p->r[i]));
        p->r[i] = r;
        size.n++;
        size.most = larger(size.most, fabs(r));
        size.asked = larger(size.asked, fabs(p->b[i]) * w->over[i]);
        size.all += fabs(p->b[i]) * w->over[i];
        if (e > most || !(e == e)) {
            most = e;
            p->worst = i;
        }
    }
    return most == 0 ? 0 : most / reaction_scale(&size, p->least);
}

/* All wrong rows change sides at once; when that does not lead on, one at a time (which ends for every
 * positive definite W). */
static bool set_find(band_problem *p)
{
    enum { PATIENCE = 10 };
    band_work *w = p->work;
    int best = p->m + 1, stall = 0;
    for (int it = 0; it < 40 + p->m / 8; it++) {
        if (!w->known) {
            if (!set_factor(p))
                return false;
            w->known = true;
        }
        set_solve(p);
        p->iterations++;
        int wrong = set_change(p, stall > PATIENCE);
        if (wrong == 0)
            return true;
        if (wrong < best) {
            best = wrong;
            stall = 0;
        } else
            stall++;
    }
    return false;
}

/* ---- friction: semi-smooth Newton on Alart and Curnier's map, with a search along the step ---- */
static double defect(band_problem *p)
{
    const band_work *w = p->work;
    reaction_size size = { 0 };
    double any = 0, most = 0;
    for (int c = 0; c < p->n; c++) {
        int i = p->cone[c].row;
        double e = cone_defect(&p->cone[c], p->r + i, p->u + i, p->b + i, w->an[c], w->at[c], &any);
        reaction_add(&size, &p->cone[c], p->r + i, p->b + i, w->an[c], w->at[c]);
        if (e > most || !(e == e)) {
            most = e;
            p->worst = c;
        }
    }
    return most == 0 ? 0 : most / reaction_scale(&size, p->least);
}

/* entry (i, j) of Newton's matrix */
static double *lu_at(band_problem *p, int i, int j)
{
    return &p->work->lu[(size_t)j * (size_t)(3 * p->kb + 1) + (size_t)(2 * p->kb + i - j)];
}

static void lu_row(band_problem *p, int i, int from, double k)
{
    int lo = from > p->kb ? from - p->kb : 0, hi = from + p->kb < p->m ? from + p->kb : p->m - 1;
    for (int j = lo > i - p->kb ? lo : i - p->kb; j <= hi && j <= i + p->kb; j++)
        *lu_at(p, i, j) += k * *band_at(p, from, j);
}

static void newton_tangent(band_problem *p, const cone *o, double bound, double sign, double rho)
{
    band_work *w = p->work;
    int k = cone_normal(o), row = o->row + k, d = o->d;
    double x[MAX_TANGENT], nx = 0;
    for (int j = 0; j < d; j++) {
        x[j] = p->r[row + j] - rho * p->u[row + j];
        nx += x[j] * x[j];
    }
    nx = sqrt(nx);
    for (int j = 0; j < d; j++) {
        if (o->dir) {
            *lu_at(p, row + j, row + j) += 1;
            if (k)
                *lu_at(p, row + j, o->row) += o->dir[j] * sign;
            w->F[row + j] = p->r[row + j] + bound * o->dir[j];
            continue;
        }
        if (nx <= bound) {
            lu_row(p, row + j, row + j, rho);
            w->F[row + j] = rho * p->u[row + j];
            continue;
        }
        double xj = x[j] / nx, f = bound / nx;
        for (int i = 0; i < d && f > 0; i++) {
            double g = f * ((i == j) - xj * x[i] / nx);
            lu_row(p, row + j, row + i, g * rho);
            *lu_at(p, row + j, row + i) -= g;
        }
        *lu_at(p, row + j, row + j) += 1;
        if (k && sign != 0)
            *lu_at(p, row + j, o->row) -= xj * sign;
        w->F[row + j] = p->r[row + j] - bound * xj;
    }
}

static void newton_fill(band_problem *p)
{
    band_work *w = p->work;
    memset(w->lu, 0, (size_t)p->m * (size_t)(3 * p->kb + 1) * sizeof *w->lu);
    for (int c = 0; c < p->n; c++) {
        const cone *o = &p->cone[c];
        int row = o->row;
        double rn = 0, sign = 0;
        if (cone_normal(o)) {
            double rho = 1 / w->an[c];
            rn = p->r[row];
            sign = rn < 0 ? -o->mu : o->mu;
            if (o->kind == CONE_BILATERAL || rn - rho * p->u[row] >= 0) {
                lu_row(p, row, row, rho);
                w->F[row] = rho * p->u[row];
            } else {
                *lu_at(p, row, row) = 1;
                w->F[row] = rn;
                rn = sign = 0;
            }
        }
        if (o->d)
            newton_tangent(p, o, o->mu * fabs(rn) + o->radius, sign, 1 / w->at[c]);
    }
}

static bool newton_direction(band_problem *p)
{
    band_work *w = p->work;
    int m = p->m;
    newton_fill(p);
    memcpy(w->dr, w->F, (size_t)m * sizeof *w->dr);
    if (!band_lu(m, p->kb, w->lu, w->dr))
        return false;
    for (int i = 0; i < m; i++)
        if (!isfinite(w->dr[i]))
            return false;
    return true;
}

/* one pass of exact local solutions, up and down */
static void relax(band_problem *p)
{
    double A[(1 + MAX_TANGENT) * (1 + MAX_TANGENT)], b[1 + MAX_TANGENT], r[1 + MAX_TANGENT],
        work[CONE_WORK * MAX_TANGENT * (MAX_TANGENT + 4) + 8];
    for (int at = 0; at < 2 * p->n; at++) {
        const cone *o = &p->cone[at < p->n ? at : 2 * p->n - 1 - at];
        int m = cone_rows(o), row = o->row;
        for (int i = 0; i < m; i++) {
            b[i] = p->b[row + i] + row_times(p, row + i, p->r);
            for (int j = 0; j < m; j++) {
                A[i * m + j] = *band_at(p, row + i, row + j);
                b[i] -= A[i * m + j] * p->r[row + j];
            }
        }
        if (cone_solve(o, A, m, b, r, work))
            memcpy(p->r + row, r, (size_t)m * sizeof *r);
    }
}

static bool newton(band_problem *p, double tol)
{
    enum { MOST = 60, MEMORY = 4, HALVES = 6 };
    band_work *w = p->work;
    double memory[MEMORY], e;
    size_t size = (size_t)p->m * sizeof *p->r;
    velocities(p);
    e = defect(p);
    for (int i = 0; i < MEMORY; i++)
        memory[i] = e;
    for (int it = 0; it < MOST && !(e <= tol); it++) {
        double allow = 0, s = 1;
        memcpy(w->keep, p->r, size);
        bool ok = newton_direction(p), down = false;
        for (int i = 0; i < MEMORY; i++)
            allow = larger(allow, memory[i]);
        for (int half = 0; ok && half < HALVES && !down; half++, s *= 0.5) {
            for (int i = 0; i < p->m; i++)
                p->r[i] = w->keep[i] - s * w->dr[i];
            velocities(p);
            e = defect(p);
            down = e <= tol || e < (1 - 0.1 * s) * allow;
        }
        p->iterations++;
        if (!down) {
            memcpy(p->r, w->keep, size);
            for (int i = 0; i < 4; i++)
                relax(p);
            velocities(p);
            e = defect(p);
        }
        memory[it % MEMORY] = e;
    }
    p->residual = e;
    return e <= tol;
}

static bool set_run(band_problem *p, double tol)
{
    band_work *w = p->work;
    for (int i = 0; i < p->m; i++) {
        bool in = p->r[i] != 0 || !(p->b[i] > 0) || p->cone[i].kind == CONE_BILATERAL;
        if (in != w->in[i]) {
            w->in[i] = in;
            w->known = false;
        }
    }
    if (!set_find(p)) {
        w->known = false;
        return false;
    }
    p->residual = set_residual(p);
    return p->residual <= tol;
}

bool band_solve(band_problem *p, double tol)
{
    band_work *w = p->work;
    size_t size = (size_t)p->m * sizeof *p->r;
    p->iterations = 0;
    p->residual = 0;
    if (p->m == 0)
        return true;
    if (!w->entries)
        entries(p);
    memcpy(w->start, p->r, size);
    if (w->rough ? newton(p, tol) : set_run(p, tol))
        return true;
    memcpy(p->r, w->start, size);
    return false;
}
