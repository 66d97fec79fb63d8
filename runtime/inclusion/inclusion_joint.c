/* inclusion_joint: a step of rows that are coupled through their selections.  R(x, x', s) = 0 with s_j in
   Sgn(a_j(x, x')): for each linearisation of R and a in x the selections solve a box problem, s = proj(s +
   rho (q - W s)) with W = a_x R_x^-1 R_s, by Gauss and Seidel's sweeps and then by fixing which of them are
   at their ends; so sticking is exact to rounding. */
#include <math.h>
#include <string.h>
#include "inclusion.h"
#include "base/linalg.h"
#include "base/tolerances.h"

struct joint_work {
    int n, m; /* rows, selections */
    double *R, *a, *x, *J, *B, *C, *W, *q, *s, *s0, *t, *col;
    double *rate; /* of each row: the factor of its own rate */
    double *size; /* of each unknown: the largest it was, or can move by in a step */
    factor rows, free;
    arena *scratch;
};

joint_work *joint_new(const inclusion_program *ip, int n, arena *a)
{
    joint_work *w = arena_make(a, joint_work);
    int m = ip->njoint;
    *w = (joint_work){ .n = n, .m = m, .scratch = a };
    double **v[] = { &w->R, &w->x, &w->t, &w->col, &w->rate, &w->size };
    for (size_t k = 0; k < sizeof v / sizeof *v; k++)
        *v[k] = arena_array(a, double, n + m + 1);
    double **s[] = { &w->a, &w->q, &w->s, &w->s0 };
    for (size_t k = 0; k < sizeof s / sizeof *s; k++)
        *s[k] = arena_array(a, double, m + 1);
    w->J = arena_array(a, double, (size_t)n *(size_t)n + 1);
    w->B = arena_array(a, double, (size_t)n *(size_t)m + 1);
    w->C = arena_array(a, double, (size_t)n *(size_t)m + 1);
    w->W = arena_array(a, double, (size_t)m *(size_t)m + 1);
    factor_init(&w->rows, a, n, false);
    factor_init(&w->free, a, m ? m : 1, false);
    return w;
}

static void rates(moment *m, const double *base, double ih, int n)
{
    for (int k = 0; k < n; k++)
        m->v[k] = (m->x[k] - base[k]) * ih;
}
static void values(const joint_work *w, moment *m, double *R, double *a)
{
    for (int k = 0; k < w->n; k++)
        R[k] = moment_raw(m, k);
    for (int j = 0; j < w->m && a; j++)
        a[j] = moment_argument(m, j);
}

/* derivatives of R in s, which are exact: selections enter linearly */
static void linearise_selections(joint_work *w, moment *m)
{
    int n = w->n, k = w->m;
    for (int j = 0; j < k; j++) {
        double *s = &m->s[m->ip->joint[j].number], keep = *s;
        *s = keep + 1;
        values(w, m, w->t, NULL);
        *s = keep;
        for (int r = 0; r < n; r++)
            w->B[r * k + j] = w->t[r] - w->R[r];
    }
}

/* An upper bound of the terms of row i without its rate. */
static double row_load(const joint_work *w, int i)
{
    double load = fabs(w->R[i]);
    for (int j = 0; j < w->m; j++)
        load += fabs(w->B[i * w->m + j]);
    return load;
}

static void sizes(joint_work *w, const moment *m, const double *base, double ih)
{
    for (int i = 0; i < w->n; i++) {
        double move = row_load(w, i) / (fabs(w->rate[i]) * ih);
        w->size[i] = fmax(w->size[i], fmax(fabs(m->x[i]), fabs(base[i])));
        if (isfinite(move))
            w->size[i] = fmax(w->size[i], move);
    }
}

/* derivatives of R in x (with x' moving along) and in s, of a in x */
static void linearise(joint_work *w, moment *m, const double *base, double ih)
{
    int n = w->n, k = w->m;
    double *a = w->t + n;
    rates(m, base, ih, n);
    values(w, m, w->R, w->a);
    for (int i = 0; i < n; i++)
        w->rate[i] = moment_factor(m, i);
    linearise_selections(w, m);
    sizes(w, m, base, ih);
    for (int i = 0; i < n; i++) {
        double x = m->x[i], e = DIFFERENCE_JOINT * (w->size[i] > 0 ? w->size[i] : SIZE_UNKNOWN);
        volatile double to = x + e; /* the step that is made, not the one that was meant */
        e = to - x;
        m->x[i] = to;
        m->v[i] = (to - base[i]) * ih;
        values(w, m, w->t, a);
        m->x[i] = x;
        m->v[i] = (x - base[i]) * ih;
        for (int r = 0; r < n; r++)
            w->J[r * n + i] = (w->t[r] - w->R[r]) / e;
        for (int j = 0; j < k; j++)
            w->C[j * n + i] = (a[j] - w->a[j]) / e;
    }
}

static double clip(double s)
{
    return s > 1 ? 1 : s < -1 ? -1 : s;
}

static double box_defect(const joint_work *w, const double *s)
{
    double worst = 0;
    for (int j = 0; j < w->m; j++) {
        double a = w->q[j];
        for (int i = 0; i < w->m; i++)
            a -= w->W[j * w->m + i] * s[i];
        worst = fmax(worst, fabs(s[j] - clip(s[j] + a / fmax(w->W[j * w->m + j], SIZE_LEAST))));
    }
    return worst;
}

/* which are at their ends is fixed, the others solved for; again while that changes */
static bool box_exact(joint_work *w, double *s)
{
    int m = w->m, in[m + 1];
    arena_pos mark = arena_mark(w->scratch);
    double *M = arena_array(w->scratch, double, (size_t)m *(size_t)m + 1),
           *b = arena_array(w->scratch, double, m + 1), *y = arena_array(w->scratch, double, m + 1);
    bool done = false;
    for (int round = 0; round < 4 * m + 20 && !done; round++) {
        int n = 0;
        for (int j = 0; j < m; j++) {
            double a = w->q[j];
            for (int i = 0; i < m; i++)
                a -= w->W[j * m + i] * s[i];
            double z = s[j] + a / fmax(w->W[j * m + j], SIZE_LEAST);
            s[j] = clip(z);
            if (fabs(z) < 1)
                in[n++] = j;
        }
        for (int k = 0; k < n; k++) {
            b[k] = w->q[in[k]];
            for (int i = 0; i < m; i++)
                b[k] -= fabs(s[i]) == 1 ? w->W[in[k] * m + i] * s[i] : 0;
            for (int i = 0; i < n; i++)
                M[k * n + i] = w->W[in[k] * m + in[i]] + (i == k ? ROUND_5 * w->W[in[k] * m + in[k]] : 0);
        }
        factor f;
        factor_init(&f, w->scratch, n ? n : 1, false);
        if (n && !factor_general(&f, M))
            break;
        if (n)
            factor_solve(&f, b, y);
        for (int k = 0; k < n; k++)
            s[in[k]] = y[k];
        done = box_defect(w, s) <= BOX_EXACT;
    }
    arena_release(w->scratch, mark);
    return done;
}

static bool box_solve(joint_work *w, double *s)
{
    enum { SWEEPS = 20000 };
    int m = w->m;
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        double change = 0;
        for (int j = 0; j < m; j++) {
            double a = w->q[j], old = s[j];
            for (int i = 0; i < m; i++)
                a -= w->W[j * m + i] * s[i];
            s[j] = clip(old + a / fmax(w->W[j * m + j], SIZE_LEAST));
            change = fmax(change, fabs(s[j] - old));
        }
        if (change > BOX_NEAR && sweep % 20 != 19)
            continue;
        memcpy(w->s0, s, (size_t)m * sizeof *s);
        if (box_exact(w, w->s0)) {
            memcpy(s, w->s0, (size_t)m * sizeof *s);
            return true;
        }
        if (change <= ROUND_50)
            return box_defect(w, s) <= BOX_ENOUGH;
    }
    return false;
}

/* x(s) = x - R_x^-1 (R + R_s (s - s_now)), so a(s) = q - W s */
static bool reduce(joint_work *w, const moment *m)
{
    int n = w->n, k = w->m;
    if (!factor_general(&w->rows, w->J))
        return false;
    factor_solve(&w->rows, w->R, w->x);
    for (int j = 0; j < k; j++) {
        w->q[j] = w->a[j];
        for (int i = 0; i < n; i++)
            w->q[j] -= w->C[j * n + i] * w->x[i];
    }
    for (int j = 0; j < k; j++) {
        for (int i = 0; i < n; i++)
            w->col[i] = w->B[i * k + j];
        factor_solve(&w->rows, w->col, w->t);
        for (int l = 0; l < k; l++) {
            double s = 0;
            for (int i = 0; i < n; i++)
                s += w->C[l * n + i] * w->t[i];
            w->W[l * k + j] = s;
            w->q[l] += s * m->s[m->ip->joint[j].number];
        }
    }
    return true;
}

bool joint_solve(joint_work *w, moment *m, const double *base, double ih, int8_t *side, double *residual,
                 int64_t *iterations)
{
    int n = w->n, k = w->m;
    for (int it = 0; it < 60; it++) {
        double change = 0;
        linearise(w, m, base, ih);
        if (!reduce(w, m))
            return false;
        for (int j = 0; j < k; j++)
            w->s[j] = m->s[m->ip->joint[j].number];
        if (!box_solve(w, w->s))
            return false;
        for (int r = 0; r < n; r++) {
            w->col[r] = w->R[r];
            for (int j = 0; j < k; j++)
                w->col[r] += w->B[r * k + j] * (w->s[j] - m->s[m->ip->joint[j].number]);
        }
        factor_solve(&w->rows, w->col, w->t);
        for (int i = 0; i < n; i++) {
            m->x[i] -= w->t[i];
            change = fmax(change, w->t[i] == 0 ? 0 : fabs(w->t[i]) / w->size[i]);
            if (!isfinite(m->x[i]))
                return false;
        }
        for (int j = 0; j < k; j++)
            m->s[m->ip->joint[j].number] = w->s[j];
        ++*iterations;
        if (change <= ROUND_50 || (it > 3 && change <= JOINT_ENOUGH))
            break;
        if (it == 59)
            return false;
    }
    rates(m, base, ih, n);
    values(w, m, w->R, w->a);
    /* relative to the size of its terms; the rounding error of x' that comes from x is not a defect */
    for (int r = 0; r < n; r++) {
        double round = ROUND_5 * fabs(m->x[r]) * ih * fabs(w->rate[r]);
        double terms = row_load(w, r) + fabs(w->rate[r] * m->v[r]);
        if (fabs(w->R[r]) > round)
            *residual = fmax(*residual, (fabs(w->R[r]) - round) / terms);
    }
    for (int j = 0; j < k; j++)
        side[j] = (int8_t)(fabs(w->s[j]) < 1 ? 0 : w->s[j] > 0 ? 1 : -1);
    return true;
}
