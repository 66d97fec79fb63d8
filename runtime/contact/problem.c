#include "problem.h"
#include <math.h>
#include <string.h>
#include "base/linalg.h"

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

void problem_set_rows(contact_problem *p, const int *start, const int *col, const size_t *at,
                      const double *val)
{
    p->W = NULL;
    p->start = start;
    p->col = col;
    p->at = at;
    p->val = val;
}

contact_problem problem_by_rows(const contact_problem *p, arena *a)
{
    contact_problem s = *p;
    int m = p->m, at = 0, *start = arena_array(a, int, p->n + 1), *col = arena_array(a, int, (size_t)p->n *m);
    size_t *first = arena_array(a, size_t, p->n), all = 0;
    double *val = arena_array(a, double, (size_t)m *m);
    for (int i = 0; i < p->n; i++) {
        const cone *c = &p->cone[i];
        start[i] = at;
        first[i] = all;
        for (int j = 0; j < m; j++) {
            bool any = j >= c->row && j < c->row + cone_rows(c);
            for (int k = 0; k < cone_rows(c); k++)
                any |= problem_row(p, i, k)[j] != 0;
            if (any)
                col[at++] = j;
        }
        for (int k = 0; k < cone_rows(c); k++)
            for (int j = start[i]; j < at; j++)
                val[all++] = problem_row(p, i, k)[col[j]];
    }
    start[p->n] = at;
    problem_set_rows(&s, start, col, first, val);
    return s;
}

bool problem_stored(const contact_problem *p)
{
    return p->val || (p->W && p->all && p->kb == 0);
}

/* ---- a band ---- */
static double band_times(const contact_problem *p, int i, const double *x)
{
    int lo = i > p->kb ? i - p->kb : 0, hi = i + p->kb < p->m ? i + p->kb : p->m - 1;
    const double *W = band_at(p, i, lo);
    double s = 0;
    for (int j = lo; j <= hi; j++)
        s += *W++ * x[j];
    return s;
}

/* Three diagonals, as for columns of balls, in one expression. */
static void band_velocities(const contact_problem *p, double *u)
{
    int m = p->m;
    const double *W = p->W, *r = p->r;
    if (p->kb != 1 || m < 2) {
        for (int i = 0; i < m; i++)
            u[i] = p->b[i] + band_times(p, i, r);
        return;
    }
    u[0] = p->b[0] + W[1] * r[0] + W[2] * r[1];
    for (int i = 1; i < m - 1; i++)
        u[i] = p->b[i] + (W[3 * i] * r[i - 1] + W[3 * i + 1] * r[i] + W[3 * i + 2] * r[i + 1]);
    u[m - 1] = p->b[m - 1] + W[3 * m - 3] * r[m - 2] + W[3 * m - 2] * r[m - 1];
}

/* ---- all forms ---- */
double problem_times(const contact_problem *p, int c, int j, const double *x)
{
    if (!p->val)
        return p->kb ? band_times(p, p->cone[c].row + j, x) : vec_dot(problem_row(p, c, j), x, p->m);
    const double *v = problem_row(p, c, j);
    const int *col = problem_columns(p, c);
    double s = 0;
    for (int k = 0, n = problem_width(p, c); k < n; k++)
        s += v[k] * x[col[k]];
    return s;
}

void problem_velocities(const contact_problem *p, double *u)
{
    int m = p->m;
    if (!p->val && p->kb) {
        band_velocities(p, u);
        return;
    }
    if (!p->val) {
        for (int i = 0; i < m; i++)
            u[i] = p->b[i] + vec_dot(p->W + (size_t)i * (size_t)m, p->r, m);
        return;
    }
    for (int c = 0; c < p->n; c++)
        for (int j = 0, row = p->cone[c].row; j < cone_rows(&p->cone[c]); j++)
            u[row + j] = p->b[row + j] + problem_times(p, c, j, p->r);
}

/* W in full or as a band. */
static inline double full_entry(const contact_problem *p, int i, int j)
{
    if (p->kb)
        return i - j <= p->kb && j - i <= p->kb ? *band_at(p, i, j) : 0;
    return p->W[(size_t)i * (size_t)p->m + (size_t)j];
}

double problem_entry(const contact_problem *p, int c, int j, int col)
{
    if (!p->val)
        return full_entry(p, p->cone[c].row + j, col);
    const double *v = problem_row(p, c, j);
    const int *at = problem_columns(p, c);
    for (int k = 0, n = problem_width(p, c); k < n; k++)
        if (at[k] == col)
            return v[k];
    return 0;
}

void problem_block(const contact_problem *p, int c, double *A)
{
    int row = p->cone[c].row, rows = cone_rows(&p->cone[c]);
    for (int j = 0; j < rows; j++)
        for (int k = 0; k < rows; k++)
            A[j * rows + k] = problem_entry(p, c, j, row + k);
}

static double normal_entry(const contact_problem *p, int c)
{
    return cone_normal(&p->cone[c]) ? problem_entry(p, c, 0, p->cone[c].row) : 0;
}

static double tangent_entry(const contact_problem *p, int c)
{
    const cone *o = &p->cone[c];
    double most = 0;
    if (!p->val)
        for (int i = o->row + cone_normal(o); i < o->row + cone_rows(o); i++)
            most = larger(most, full_entry(p, i, i));
    else
        for (int j = cone_normal(o); j < cone_rows(o); j++)
            most = larger(most, problem_entry(p, c, j, o->row + j));
    return most;
}

void problem_diagonal(const contact_problem *p, double *an, double *at)
{
    for (int c = 0; c < p->n; c++) {
        an[c] = normal_entry(p, c);
        at[c] = tangent_entry(p, c);
    }
}

size_t problem_work(const contact_problem *p)
{
    int d = 0;
    for (int c = 0; c < p->n; c++)
        d = p->cone[c].d > d ? p->cone[c].d : d;
    return (size_t)CONE_WORK * (size_t)d * (size_t)(d + 4) + 8;
}

double problem_defect(const contact_problem *p, const double *u, const double *an, const double *at,
                      double *e, int *worst)
{
    reaction_size size = { .fine = p->fine };
    double most = 0, any = 0;
    for (int c = 0; c < p->n; c++) {
        int i = p->cone[c].row;
        double tangent = at ? at[c] : tangent_entry(p, c), x;
        if (cone_is_line(&p->cone[c]))
            x = line_defect(&size, &p->cone[c], p->r[i], u[i], p->b[i], tangent);
        else {
            double normal = an ? an[c] : normal_entry(p, c);
            x = cone_defect(&p->cone[c], p->r + i, u + i, p->b + i, normal, tangent, &any);
            reaction_add(&size, &p->cone[c], p->r + i, p->b + i, normal, tangent);
        }
        if (!isfinite(x))
            x = INFINITY;
        if (e)
            e[c] = x;
        if (worst && x > (1 + ROUND_ROOT) * most) /* of equal ones the first, whatever rounding gives */
            *worst = c;
        most = larger(x, most);
    }
    double scale = reaction_scale(&size, p->least);
    for (int c = 0; e && c < p->n; c++)
        e[c] = e[c] == 0 ? 0 : e[c] / scale;
    return most == 0 ? 0 : most / scale;
}

double problem_measure(contact_problem *p, double *e, arena *scratch)
{
    arena_pos mark = arena_mark(scratch);
    double *u = arena_array(scratch, double, p->m);
    problem_velocities(p, u);
    p->residual = problem_defect(p, u, NULL, NULL, e, &p->worst);
    arena_release(scratch, mark);
    return p->residual;
}
