#include "band.h"
#include <math.h>
#include <string.h>
#include "newton.h"
#include "base/tolerances.h"

typedef struct band_work {
    bool rough;          /* there is friction: rows that are not normal ones */
    bool known, entries; /* L belongs to the set `in`; an and at are computed */
    bool held;           /* some rows are bilateral: those always press */
    bool *in;            /* rows that press */
    int first, last;     /* no others press */
    int from, to;        /* no others have changed sides since L was made */
    double *L;     /* L D L^T of W on these rows, each a row of the lower band; the diagonal contains 1/D */
    double *U;     /* the same for the upper part, by columns: W = L D^-1 U; NULL if W is symmetric */
    double *start; /* m */
    double *an, *at, *over; /* by contact: normal entry of W, largest tangent entry, 1/an */
    arena *a;
    newton *newton; /* with friction */
} band_work;

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

contact_problem *band_new(arena *a, int n, int m, int kb)
{
    contact_problem *p = arena_make(a, contact_problem);
    band_work *w = p->work = arena_make(a, band_work);
    size_t mm = (size_t)m, wide = 2 * (size_t)kb + 1;
    *p = (contact_problem){ .n = n, .m = m, .kb = kb, .work = w };
    p->cone = arena_array(a, cone, n);
    p->W = arena_array(a, double, mm *wide);
    w->a = a;
    double **rows[] = { &p->b, &p->r, &p->u, &w->start, &w->an, &w->at, &w->over };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        *rows[i] = arena_array(a, double, mm);
    w->in = arena_array(a, bool, m);
    return p;
}

bool band_rough(const contact_problem *p)
{
    if (p->work->entries)
        return p->work->rough;
    for (int c = 0; c < p->n; c++)
        if (p->cone[c].d)
            return true;
    return false;
}

void band_unsymmetric(contact_problem *p)
{
    band_work *w = p->work;
    if (!band_rough(p))
        w->U = arena_array(w->a, double, (size_t)p->m *((size_t)p->kb + 1));
}

/* Requires W and the kinds of the cones. */
static void entries(contact_problem *p)
{
    band_work *w = p->work;
    w->rough = band_rough(p);
    w->entries = true;
    w->to = p->m - 1;
    for (int c = 0; c < p->n; c++)
        w->held |= p->cone[c].kind == CONE_BILATERAL;
    if (!w->rough)
        w->L = arena_array(w->a, double, (size_t)p->m *((size_t)p->kb + 1));
    problem_diagonal(p, w->an, w->at);
    for (int c = 0; c < p->n; c++)
        w->over[c] = 1 / w->an[c];
    if (w->rough)
        w->newton = newton_on_band(p, w->a);
}

/* ---- without friction: an active set ---- */
/* Row i of L and column i of U, U_ji = W_ji - sum over k < j of L_jk U_ki, and L with the pivots divided out.
 */
static double skew_factor(contact_problem *p, int i)
{
    band_work *w = p->work;
    size_t wide = (size_t)p->kb + 1;
    double *L = w->L + (size_t)i * wide + p->kb, *U = w->U + (size_t)i * wide + p->kb; /* [j - i] */
    int lo = i > p->kb ? i - p->kb : 0;
    double d = *band_at(p, i, i);
    for (int j = lo; j < i; j++) {
        const double *Lj = w->L + (size_t)j * wide + p->kb, *Uj = w->U + (size_t)j * wide + p->kb;
        double left = w->in[j] ? *band_at(p, i, j) : 0, above = w->in[j] ? *band_at(p, j, i) : 0;
        for (int k = lo > j - p->kb ? lo : j - p->kb; k < j; k++) {
            left -= L[k - i] * Uj[k - j];
            above -= Lj[k - j] * U[k - i];
        }
        L[j - i] = left * Lj[0];
        U[j - i] = above;
        d -= L[j - i] * above;
    }
    return d;
}

static void row_out(contact_problem *p, int i)
{
    band_work *w = p->work;
    size_t wide = (size_t)p->kb + 1, n = wide * sizeof *w->L;
    memset(w->L + (size_t)i * wide, 0, n);
    w->L[(size_t)i * wide + (size_t)p->kb] = 1;
    memset(w->U + (size_t)i * wide, 0, n);
}

static bool skew_set_factor(contact_problem *p)
{
    band_work *w = p->work;
    for (int i = 0; i < p->m; i++) {
        if (!w->in[i]) {
            row_out(p, i);
            continue;
        }
        double d = skew_factor(p, i);
        if (!(d > PIVOT_LOOSE * *band_at(p, i, i)))
            return false;
        w->L[(size_t)i * ((size_t)p->kb + 1) + (size_t)p->kb] = 1 / d;
    }
    return true;
}

static void skew_factor_use(const contact_problem *p, double *x)
{
    const band_work *w = p->work;
    size_t wide = (size_t)p->kb + 1;
    for (int i = 0; i < p->m; i++) {
        const double *L = w->L + (size_t)i * wide + p->kb;
        for (int j = i > p->kb ? i - p->kb : 0; j < i; j++)
            x[i] -= L[j - i] * x[j];
    }
    for (int i = p->m; i-- > 0;) {
        const double *U = w->U + (size_t)i * wide + p->kb;
        x[i] *= w->L[(size_t)i * wide + (size_t)p->kb];
        for (int j = i > p->kb ? i - p->kb : 0; j < i; j++)
            x[j] -= U[j - i] * x[i];
    }
}

/* The same without what other numbers of diagonals need.  Only rows from the first change on differ, and none
   behind the last one once a row is as it was. */
static bool set_factor_3(contact_problem *p)
{
    const band_work *w = p->work;
    const bool *in = w->in;
    for (int i = w->from; i < p->m; i++) {
        const double *W = p->W + 3 * (size_t)i;
        double *L = w->L + 2 * (size_t)i, left = 0, over = 1;
        if (in[i]) {
            double x = i > 0 && in[i - 1] ? W[0] : 0;
            if (i > 0)
                left = x * L[-1];
            double d = W[1] - x * left;
            if (!(d > PIVOT_LOOSE * W[1]))
                return false;
            over = 1 / d;
        }
        if (i > w->to && L[0] == left && L[1] == over)
            break;
        L[0] = left;
        L[1] = over;
    }
    return true;
}

/* Rows outside the set are those of the identity matrix. */
static bool set_factor(contact_problem *p)
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
        if (!(d > PIVOT_LOOSE * own))
            return false;
        L[0] = 1 / d;
    }
    return true;
}

static void factor_use(const contact_problem *p, double *x)
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

/* The same for three diagonals, with the right-hand side: only rows between the first and the last that press
   have reactions. */
static void set_solve_3(contact_problem *p)
{
    const band_work *w = p->work;
    const double *L = w->L, *b = p->b;
    const bool *in = w->in;
    double *x = p->r, before = 0;
    int first = w->first, last = w->last;
    for (int i = first; i <= last; i++)
        x[i] = before = (in[i] ? -b[i] : 0) - (i > first ? L[2 * i] * before : 0);
    if (first <= last)
        x[last] *= L[2 * last + 1];
    for (int i = last; i-- > first;)
        x[i] = x[i] * L[2 * i + 1] - L[2 * i + 2] * x[i + 1];
}

static void set_solve(contact_problem *p)
{
    const band_work *w = p->work;
    const double *b = p->b;
    double *r = p->r;
    if (!w->U && p->kb == 1) {
        set_solve_3(p);
        return;
    }
    for (int i = 0, m = p->m; i < m; i++)
        r[i] = w->in[i] ? -b[i] : 0;
    if (w->U)
        skew_factor_use(p, p->r);
    else
        factor_use(p, p->r);
}

/* Rates with the reactions: far from rows that press they are those without. */
static void set_velocities(const contact_problem *p)
{
    const band_work *w = p->work;
    int first = w->first > 0 ? w->first - 1 : 0, end = w->last + 2 < p->m ? w->last + 2 : p->m;
    if (p->kb != 1 || p->m < 2) {
        problem_velocities(p, p->u);
        return;
    }
    memcpy(p->u, p->b, (size_t)p->m * sizeof *p->u);
    const double *W = p->W, *r = p->r, *b = p->b;
    for (int i = first; i < end; i++) {
        const double *row = W + 3 * (size_t)i;
        if (i == 0)
            p->u[i] = b[i] + row[1] * r[0] + row[2] * r[1];
        else if (i == p->m - 1)
            p->u[i] = b[i] + row[0] * r[i - 1] + row[1] * r[i];
        else
            p->u[i] = b[i] + (row[0] * r[i - 1] + row[1] * r[i] + row[2] * r[i + 1]);
    }
}

static void change_side(band_work *w, int i)
{
    w->in[i] = !w->in[i];
    w->known = false;
    w->from = i < w->from ? i : w->from;
    w->to = i > w->to ? i : w->to;
    if (!w->in[i])
        return;
    w->first = i < w->first ? i : w->first;
    w->last = i > w->last ? i : w->last;
}

/* Computes rates; returns the number of rows on the wrong side, which change sides (only the last of them if
   `one`). */
static int set_change(contact_problem *p, bool one)
{
    band_work *w = p->work;
    const double *r = p->r, *u = p->u, *over = w->over;
    const bool *in = w->in;
    double scale = p->least, eps;
    int wrong = 0, last = -1, m = p->m;
    set_velocities(p);
    for (int i = w->first; i <= w->last; i++)
        scale = larger(scale, fabs(r[i]));
    if (scale == 0)
        for (int i = w->first; i <= w->last; i++)
            scale = larger(scale, -p->b[i] * over[i]);
    eps = ROUND_50 * scale;
    for (int i = 0; i < m; i++) {
        /* touching contacts are in the set */
        bool off = in[i] ? r[i] < -eps : u[i] * over[i] < 0.5 * eps;
        if (!off || (w->held && p->cone[i].kind == CONE_BILATERAL))
            continue;
        wrong++;
        last = i;
        if (!one)
            change_side(w, i);
    }
    if (one && last >= 0)
        change_side(w, last);
    return wrong;
}

/* The natural map of all rows; negative reactions within rounding are set to 0. */
static double set_residual(contact_problem *p)
{
    const band_work *w = p->work;
    reaction_size size = { .n = p->m };
    double most = 0;
    p->worst = 0;
    for (int i = 0, m = p->m; i < m; i++) {
        double asked = fabs(p->b[i]) * w->over[i];
        size.asked = larger(size.asked, asked);
        size.all += asked;
        if (!w->in[i] && p->r[i] == 0 && p->u[i] >= 0) /* open as it should be */
            continue;
        bool held = w->held && p->cone[i].kind == CONE_BILATERAL;
        double r = p->r[i] < 0 && !held ? 0 : p->r[i], u = p->u[i] * w->over[i],
               e = held ? fabs(u) : fabs(r < u ? r : u);
        e = larger(e, fabs(r - p->r[i]));
        p->r[i] = r;
        size.most = larger(size.most, fabs(r));
        if (e > most || !(e == e)) {
            most = e;
            p->worst = i;
        }
    }
    return most == 0 ? 0 : most / reaction_scale(&size, p->least);
}

static bool set_factors(contact_problem *p)
{
    band_work *w = p->work;
    if (w->U ? !skew_set_factor(p) : p->kb == 1 ? !set_factor_3(p) : !set_factor(p))
        return false;
    w->known = true;
    w->from = p->m;
    w->to = -1;
    return true;
}

/* All wrong rows change sides at once; if that makes no progress, one at a time (which terminates for every
   positive definite W). */
static bool set_find(contact_problem *p)
{
    enum { PATIENCE = 10 };
    band_work *w = p->work;
    int best = p->m + 1, stall = 0;
    for (int it = 0; it < 40 + p->m / 8; it++) {
        if (!w->known && !set_factors(p))
            return false;
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

/* as if no factors were there */
static void set_forget(contact_problem *p)
{
    p->work->known = false;
    p->work->from = 0;
    p->work->to = p->m - 1;
}

static bool set_run(contact_problem *p, double tol)
{
    band_work *w = p->work;
    w->first = p->m;
    w->last = -1;
    for (int i = 0, m = p->m; i < m; i++) {
        bool in = p->r[i] != 0 || !(p->b[i] > 0) || (w->held && p->cone[i].kind == CONE_BILATERAL);
        if (in != w->in[i])
            change_side(w, i);
        if (!in) {
            p->r[i] = 0;
            continue;
        }
        w->first = i < w->first ? i : w->first;
        w->last = i;
    }
    if (!set_find(p)) {
        set_forget(p);
        return false;
    }
    p->residual = set_residual(p);
    return p->residual <= tol;
}

bool band_solve(contact_problem *p, double tol)
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
    if (w->rough ? newton_band(w->newton, tol) : set_run(p, tol))
        return true;
    memcpy(p->r, w->start, size);
    return false;
}
