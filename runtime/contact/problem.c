#include "problem.h"
#include <math.h>
#include <string.h>

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

double problem_times(const sparse_problem *p, int c, int j, const double *x)
{
    const double *v = problem_row(p, c, j);
    const int *col = p->col + p->start[c];
    double s = 0;
    for (int k = 0, n = problem_width(p, c); k < n; k++)
        s += v[k] * x[col[k]];
    return s;
}

void problem_velocities(const sparse_problem *p, double *u)
{
    for (int c = 0; c < p->n; c++)
        for (int j = 0, row = p->cone[c].row; j < cone_rows(&p->cone[c]); j++)
            u[row + j] = p->b[row + j] + problem_times(p, c, j, p->r);
}

double problem_entry(const sparse_problem *p, int c, int j, int col)
{
    for (int k = 0, n = problem_width(p, c); k < n; k++)
        if (p->col[p->start[c] + k] == col)
            return problem_row(p, c, j)[k];
    return 0;
}

void problem_diagonal(const sparse_problem *p, double *an, double *at)
{
    for (int c = 0; c < p->n; c++) {
        const cone *o = &p->cone[c];
        int top = cone_normal(o);
        an[c] = top ? problem_entry(p, c, 0, o->row) : 0;
        at[c] = 0;
        for (int j = top; j < cone_rows(o); j++)
            at[c] = larger(at[c], problem_entry(p, c, j, o->row + j));
    }
}

double problem_defect(const sparse_problem *p, const double *u, const double *an, const double *at, double *e,
                      int *worst)
{
    reaction_size size = { .fine = p->fine };
    double most = 0, any = 0;
    for (int c = 0; c < p->n; c++) {
        int i = p->cone[c].row;
        double x = cone_defect(&p->cone[c], p->r + i, u + i, p->b + i, an[c], at[c], &any);
        reaction_add(&size, &p->cone[c], p->r + i, p->b + i, an[c], at[c]);
        if (!isfinite(x))
            x = INFINITY;
        if (e)
            e[c] = x;
        if (x > most) {
            most = x;
            if (worst)
                *worst = c;
        }
    }
    double scale = reaction_scale(&size, p->least);
    for (int c = 0; e && c < p->n; c++)
        e[c] = e[c] == 0 ? 0 : e[c] / scale;
    return most == 0 ? 0 : most / scale;
}

double problem_measure(sparse_problem *p, double *e, arena *scratch)
{
    arena_pos mark = arena_mark(scratch);
    double *u = arena_array(scratch, double, p->m), *an = arena_array(scratch, double, p->n),
           *at = arena_array(scratch, double, p->n);
    problem_velocities(p, u);
    problem_diagonal(p, an, at);
    p->residual = problem_defect(p, u, an, at, e, &p->worst);
    arena_release(scratch, mark);
    return p->residual;
}
