#include "scaled.h"
#include <math.h>
#include "base/linalg.h"

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}
/* Unknowns of one contact: its normal reaction, and its friction divided by mu if it is free. */
static void unknowns(scaled *w, int c)
{
    const cone *o = &w->p->cone[c];
    bool rough = scaled_rough(o), own = rough && !o->dir;
    int top = cone_normal(o);
    double mu = o->mu > 0 ? o->mu : 1, s = 1 / sqrt(larger(top ? w->an[c] : 0, own ? mu * mu * w->a[c] : 0));
    w->first[c] = w->m;
    w->count[c] = top + (own ? o->d : 0);
    if (top) {
        w->to[o->row] = w->m;
        w->part[o->row] = s;
    }
    for (int j = 0; j < o->d; j++) {
        int r = o->row + top + j;
        w->to[r] = own ? w->m + top + j : rough && top ? w->m : -1;
        w->part[r] = own ? s * mu : rough && top ? -s * o->mu * o->dir[j] : 0;
        w->given[r] = rough && o->dir ? -o->radius * o->dir[j] : 0;
    }
    for (int j = 0; j < w->count[c]; j++) {
        w->row[w->m] = o->row + j;
        w->weight[w->m++] = j < top ? s : s * mu;
    }
}

/* Rows of W in the new unknowns; place[column]: index in the row. */
static void matrix(scaled *w, int *place)
{
    const contact_problem *p = w->p;
    int at = 0;
    for (int i = 0; i < w->m; i++)
        place[i] = -1;
    for (int c = 0; c < p->n; c++)
        for (int i = w->first[c]; i < w->first[c] + w->count[c]; i++) {
            const double *v = problem_row(p, c, w->row[i] - p->cone[c].row);
            const int *col = problem_columns(p, c);
            int begin = w->Ws[i] = at;
            w->b[i] = p->b[w->row[i]];
            for (int j = 0; j < problem_width(p, c); j++) {
                int r = col[j], to = w->to[r];
                w->b[i] += v[j] * w->given[r];
                if (to < 0)
                    continue;
                if (place[to] < begin) {
                    place[to] = at;
                    w->Wc[at] = to;
                    w->Wx[at++] = 0;
                }
                w->Wx[place[to]] += w->weight[i] * w->part[r] * v[j];
            }
            w->b[i] *= w->weight[i];
        }
    w->Ws[w->m] = at;
}

scaled *scaled_new(contact_problem *p, arena *a)
{
    scaled *w = arena_make(a, scaled);
    size_t m = (size_t)p->m, all = 0;
    for (int c = 0; c < p->n; c++)
        all += (size_t)cone_rows(&p->cone[c]) * (size_t)problem_width(p, c);
    double **rows[] = { &w->part, &w->given, &w->weight, &w->b, &w->an, &w->a, &w->rates };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        *rows[i] = arena_array(a, double, m + 1);
    w->p = p;
    w->first = arena_array(a, int, p->n);
    w->count = arena_array(a, int, p->n);
    w->row = arena_array(a, int, m);
    w->to = arena_array(a, int, m);
    w->Ws = arena_array(a, int, m + 1);
    w->Wc = arena_array(a, int, all);
    w->Wx = arena_array(a, double, all);
    problem_diagonal(p, w->an, w->a);
    for (int c = 0; c < p->n; c++)
        unknowns(w, c);
    matrix(w, arena_array(a, int, m + 1));
    for (int i = 0; i < w->m; i++)
        w->unit = larger(w->unit, fabs(w->b[i]));
    if (!(w->unit > 0))
        w->unit = 1;
    for (int i = 0; i < w->m; i++)
        w->b[i] /= w->unit;
    for (int i = 0; i < p->m; i++)
        w->given[i] /= w->unit;
    return w;
}

void scaled_unknowns(const scaled *w, double *x)
{
    for (int i = 0; i < w->m; i++)
        x[i] = (w->p->r[w->row[i]] / w->unit - w->given[w->row[i]]) / w->part[w->row[i]];
}

double scaled_measure(scaled *w, const double *x, double *u, int *worst)
{
    contact_problem *p = w->p;
    for (int r = 0; r < p->m; r++)
        p->r[r] = w->unit * (w->given[r] + (w->to[r] < 0 ? 0 : w->part[r] * x[w->to[r]]));
    for (int i = 0; i < w->m; i++) {
        u[i] = w->b[i];
        for (int j = w->Ws[i]; j < w->Ws[i + 1]; j++)
            u[i] += w->Wx[j] * x[w->Wc[j]];
    }
    problem_velocities(p, w->rates);
    return problem_defect(p, w->rates, w->an, w->a, NULL, worst);
}
