#include "mixed.h"
#include <math.h>
#include <string.h>
#include "base/linalg.h"
#include "base/matrix.h"
#include "base/tolerances.h"
#include "impulses.h"

enum { MOST = 60 };    /* Newton steps */
enum { MAX_ROWS = 4 }; /* of a contact */

struct mixed {
    arena *a;
    int room, entry_room, contact_room;
    /* Matrix of dv and r by rows; `shape` describes it for the factorisation. */
    matrix_shape shape;
    int *start, *column;
    double *value;
    factor factors;
    bool known; /* factors are those of `value` */
    /* For each dof: its first row, the numbers of its rows, and their entries of K. */
    int *at_dof, *row_of;
    size_t *entry_of;
    double *x, *rhs;
    double *light;            /* for each dof: 1 over its diagonal entry of D */
    double *unit;             /* for each dof: power_unit of that entry */
    double *normal, *tangent; /* for each contact: entries of W as they would be without coupling */
    int *mode, *mode_known;   /* for each contact: now, and in the factors */
    double slack;             /* weight of the proximal term on held rows; 0: none */
    bool of_speed;            /* some bounds depend on the speed */
};

mixed *mixed_new(arena *a)
{
    mixed *w = arena_make(a, mixed);
    w->a = a;
    return w;
}

void mixed_free(mixed *w)
{
    if (w)
        factor_free(&w->factors);
}

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

/* ---- structure ---- */
static int width(const contact_problem *p, int c)
{
    const contact_list *l = p->coupled->list;
    return l->dof_at[c + 1] - l->dof_at[c];
}

static void room(mixed *w, const contact_problem *p, size_t entries)
{
    const coupled_rows *q = p->coupled;
    int size = q->n + p->m;
    if (size > w->room) {
        w->room = size + size / 4;
        w->start = arena_array(w->a, int, w->room + 1);
        w->at_dof = arena_array(w->a, int, w->room + 2);
        w->x = arena_array(w->a, double, w->room);
        w->rhs = arena_array(w->a, double, w->room);
        w->light = arena_array(w->a, double, w->room);
        w->unit = arena_array(w->a, double, w->room);
    }
    if (p->n > w->contact_room) {
        w->contact_room = p->n + p->n / 4;
        w->normal = arena_array(w->a, double, w->contact_room);
        w->tangent = arena_array(w->a, double, w->contact_room);
        w->mode = arena_array(w->a, int, w->contact_room);
        w->mode_known = arena_array(w->a, int, w->contact_room);
    }
    if ((int)entries > w->entry_room) {
        w->entry_room = (int)entries + (int)entries / 4;
        w->column = arena_array(w->a, int, w->entry_room);
        w->value = arena_array(w->a, double, w->entry_room);
        w->row_of = arena_array(w->a, int, w->entry_room);
        w->entry_of = arena_array(w->a, size_t, w->entry_room);
    }
}

/* Lists the rows that push at each dof. */
static void turn(mixed *w, const contact_problem *p)
{
    const coupled_rows *q = p->coupled;
    const contact_list *l = q->list;
    memset(w->at_dof, 0, (size_t)(q->n + 2) * sizeof *w->at_dof);
    for (int pass = 0; pass < 2; pass++) {
        for (int c = 0; c < p->n; c++)
            for (int k = 0; k < width(p, c); k++)
                for (int a = 0; a < cone_rows(&p->cone[c]); a++) {
                    int dof = l->dof[l->dof_at[c] + k];
                    if (pass == 0) {
                        w->at_dof[dof + 2]++;
                        continue;
                    }
                    int to = w->at_dof[dof + 1]++;
                    w->row_of[to] = p->cone[c].row + a;
                    w->entry_of[to] = l->J_at[c] + (size_t)(a * width(p, c) + k);
                }
        for (int i = 2; pass == 0 && i < q->n + 2; i++)
            w->at_dof[i] += w->at_dof[i - 1];
    }
}

static int first_column(const matrix_shape *s, int i)
{
    return s->kind == MATRIX_BAND ? i - s->below : s->kind == MATRIX_DIAGONAL ? i : 0;
}

static void structure(mixed *w, const contact_problem *p)
{
    const coupled_rows *q = p->coupled;
    const contact_list *l = q->list;
    size_t entries = q->shape->count, at = 0;
    for (int c = 0; c < p->n; c++) {
        size_t m = (size_t)cone_rows(&p->cone[c]);
        entries += 2 * m * (size_t)width(p, c) + m * m;
    }
    room(w, p, entries);
    turn(w, p);
    for (int i = 0; i < q->n; i++) {
        w->start[i] = (int)at;
        size_t lo = matrix_row(q->shape, i), hi = matrix_row(q->shape, i + 1);
        for (size_t e = lo; e < hi; e++) {
            int j = q->shape->kind == MATRIX_SPARSE ? q->shape->column[e]
                                                    : first_column(q->shape, i) + (int)(e - lo);
            if (j >= 0 && j < q->n)
                w->column[at++] = j;
        }
        for (int k = w->at_dof[i]; k < w->at_dof[i + 1]; k++)
            w->column[at++] = q->n + w->row_of[k];
    }
    for (int c = 0; c < p->n; c++)
        for (int a = 0; a < cone_rows(&p->cone[c]); a++) {
            w->start[q->n + p->cone[c].row + a] = (int)at;
            for (int k = 0; k < width(p, c); k++)
                w->column[at++] = l->dof[l->dof_at[c] + k];
            for (int b = 0; b < cone_rows(&p->cone[c]); b++)
                w->column[at++] = q->n + p->cone[c].row + b;
        }
    w->start[q->n + p->m] = (int)at;
    factor_free(&w->factors);
    bool first = w->shape.n == 0;
    w->shape = (matrix_shape){
        .kind = MATRIX_SPARSE, .n = q->n + p->m, .start = w->start, .column = w->column, .count = at
    };
    if (first)
        factor_shape(&w->factors, w->a, &w->shape);
    w->factors.n = w->shape.n;
    w->known = false;
}

/* ---- values ---- */
static void fill_dofs(mixed *w, const contact_problem *p)
{
    const coupled_rows *q = p->coupled;
    const contact_list *l = q->list;
    double *to = w->value;
    for (int i = 0; i < q->n; i++) {
        size_t lo = matrix_row(q->shape, i), hi = matrix_row(q->shape, i + 1);
        int j = q->shape->kind == MATRIX_SPARSE ? 0 : first_column(q->shape, i);
        for (size_t e = lo; e < hi; e++, j++)
            if (q->shape->kind == MATRIX_SPARSE || (j >= 0 && j < q->n))
                *to++ = q->D[e] * w->unit[i] *
                        w->unit[q->shape->kind == MATRIX_SPARSE ? q->shape->column[e] : j];
        for (int k = w->at_dof[i]; k < w->at_dof[i + 1]; k++)
            *to++ = -l->K[w->entry_of[k]] * w->unit[i];
    }
}

/* Sizes of the entries of W: rows times the inverse of the diagonal of D. */
static void sizes(mixed *w, const contact_problem *p)
{
    const coupled_rows *q = p->coupled;
    const contact_list *l = q->list;
    for (int i = 0; i < q->n; i++) {
        double d = fabs(q->D[matrix_at(q->shape, i, i)]);
        w->light[i] = 1 / d;
        w->unit[i] = power_unit(d);
    }
    for (int c = 0; c < p->n; c++) {
        const int *dof = l->dof + l->dof_at[c];
        int n = width(p, c), top = cone_normal(&p->cone[c]);
        w->normal[c] = w->tangent[c] = 0;
        for (int a = 0; a < cone_rows(&p->cone[c]); a++) {
            double s = 0;
            for (int k = 0; k < n; k++) {
                size_t at = l->J_at[c] + (size_t)(a * n + k);
                s += l->J[at] * l->K[at] / fabs(q->D[matrix_at(q->shape, dof[k], dof[k])]);
            }
            if (a < top)
                w->normal[c] = s;
            else
                w->tangent[c] = larger(w->tangent[c], s);
        }
    }
}

/* The right-hand side of friction alone, along one line. */
static inline void line_put(mixed *w, const contact_problem *p, int c)
{
    const cone *o = &p->cone[c];
    double rho = 1 / w->tangent[c], r = p->r[o->row], x = r - rho * p->u[o->row];
    bool slips = fabs(x) > o->radius;
    double F = slips ? r - o->radius * (x / fabs(x)) : rho * p->u[o->row];
    w->mode[c] = !slips ? CONE_STICK : CONE_SLIP | (x < 0 ? CONE_BACK : 0);
    w->rhs[p->coupled->n + o->row] = -F;
}

/* One contact: its part of the right-hand side, and on request its rows of the matrix. */
static void contact_rows_put(mixed *w, const contact_problem *p, int c, bool matrix)
{
    const coupled_rows *q = p->coupled;
    const contact_list *l = q->list;
    const cone *o = &p->cone[c];
    int m = cone_rows(o), n = width(p, c);
    double F[MAX_ROWS], Fr[MAX_ROWS * MAX_ROWS], Fu[MAX_ROWS * MAX_ROWS];
    const double *J = l->J + l->J_at[c];
    const int *dof = l->dof + l->dof_at[c];
    w->mode[c] = cone_newton(o, p->r + o->row, p->u + o->row, w->normal[c], w->tangent[c], false, F, Fr, Fu);
    for (int a = 0; a < m; a++) {
        w->rhs[q->n + o->row + a] = -F[a];
        if (!matrix)
            continue;
        double *to = w->value + w->start[q->n + o->row + a];
        for (int k = 0; k < n; k++) {
            double s = 0;
            for (int b = 0; b < m; b++)
                s += Fu[a * m + b] * J[b * n + k];
            *to++ = s * w->unit[dof[k]];
        }
        for (int b = 0; b < m; b++)
            *to++ = Fr[a * m + b] + (a == b && Fu[a * m + a] != 0 ? w->slack : 0);
    }
}

/* Rates of all rows for the current dv. */
static void rates(const contact_problem *p)
{
    const coupled_rows *q = p->coupled;
    const contact_list *l = q->list;
    for (int c = 0; c < p->n; c++) {
        int n = width(p, c), row = p->cone[c].row;
        const int *dof = l->dof + l->dof_at[c];
        const double *J = l->J + l->J_at[c], *dv = q->dv;
        for (int a = 0, m = cone_rows(&p->cone[c]); a < m; a++, J += n) {
            double s = p->b[row + a];
            for (int k = 0; k < n; k++)
                s += J[k] * dv[dof[k]];
            p->u[row + a] = s;
        }
    }
}

static void laws(const mixed *w, const contact_problem *p)
{
    for (int c = 0; w->of_speed && c < p->n; c++) {
        cone *o = &p->cone[c];
        if (!o->of_speed || o->dir)
            continue;
        double s = 0;
        for (int j = cone_normal(o); j < cone_rows(o); j++)
            s += p->u[o->row + j] * p->u[o->row + j];
        p->law(p->ud, c, sqrt(s), &o->mu, &o->radius);
    }
}

static double measure(mixed *w, contact_problem *p)
{
    return p->residual = problem_defect(p, p->u, w->normal, w->tangent, NULL, &p->worst);
}

/* ---- Newton ---- */
static bool modes_kept(const mixed *w, const contact_problem *p)
{
    for (int c = 0; c < p->n; c++)
        if (w->mode[c] != w->mode_known[c] || w->mode[c] & CONE_TURNS)
            return false;
    return true;
}

/* Coefficients of friction that the factors depend on are those of the cone. */
static bool direction(mixed *w, const contact_problem *p)
{
    const coupled_rows *q = p->coupled;
    for (int c = 0; c < p->n; c++)
        if (cone_is_line(&p->cone[c]))
            line_put(w, p, c);
        else
            contact_rows_put(w, p, c, false);
    if (!(w->known && modes_kept(w, p))) {
        for (int c = 0; c < p->n; c++)
            contact_rows_put(w, p, c, true);
        memcpy(w->mode_known, w->mode, (size_t)p->n * sizeof *w->mode);
        w->known = factor_matrix(&w->factors, w->value);
        if (!w->known)
            return false;
    }
    for (int i = 0; i < q->n; i++)
        w->rhs[i] *= w->unit[i];
    factor_solve(&w->factors, w->rhs, w->x);
    for (int i = 0; i < q->n; i++)
        w->x[i] *= w->unit[i];
    double finite = 0;
    for (int i = 0; i < q->n + p->m; i++)
        finite += 0 * w->x[i];
    return finite == 0 ? true : (w->known = false);
}

/* D dv = P^T r holds after the first step; before that, the difference is on the right-hand side. */
static void start(mixed *w, const contact_problem *p)
{
    const coupled_rows *q = p->coupled;
    const contact_list *l = q->list;
    memset(q->dv, 0, (size_t)q->n * sizeof *q->dv);
    for (int i = 0; i < q->n; i++) {
        double s = 0;
        for (int k = w->at_dof[i]; k < w->at_dof[i + 1]; k++)
            s += l->K[w->entry_of[k]] * p->r[w->row_of[k]];
        w->rhs[i] = s;
    }
}

/* Does D dv = K^T r hold up to rounding? Dependent rows give a nearly singular matrix; the residual of its
   factors is the right-hand side of the next step. */
static bool in_balance(mixed *w, const contact_problem *p)
{
    const coupled_rows *q = p->coupled;
    const contact_list *l = q->list;
    double *left = w->rhs, off = 0, size = 0;
    memset(left, 0, (size_t)q->n * sizeof *left);
    matrix_times_add(q->shape, q->D, q->dv, left);
    for (int i = 0; i < q->n; i++) {
        double push = 0, parts = fabs(left[i]), light = w->light[i];
        for (int k = w->at_dof[i]; k < w->at_dof[i + 1]; k++) {
            double part = l->K[w->entry_of[k]] * p->r[w->row_of[k]];
            push += part;
            parts += fabs(part);
        }
        size = larger(size, parts * parts * light);
        left[i] = push - left[i];
        off = larger(off, left[i] * left[i] * light);
    }
    if (sqrt(off) > BALANCE_ROUNDED * sqrt(size))
        return false;
    memset(left, 0, (size_t)q->n * sizeof *left);
    return true;
}

static bool newton(mixed *w, contact_problem *p, double tol)
{
    const coupled_rows *q = p->coupled;
    start(w, p);
    memcpy(p->u, p->b, (size_t)p->m * sizeof *p->u);
    laws(w, p);
    for (int it = 0; it < MOST; it++) {
        if (!direction(w, p))
            return false;
        for (int i = 0; i < q->n; i++)
            q->dv[i] += w->x[i];
        for (int i = 0; i < p->m; i++)
            p->r[i] += w->x[q->n + i];
        bool balanced = in_balance(w, p);
        rates(p);
        laws(w, p);
        p->iterations++;
        /* a first step with a proximal term leaves a fraction of the reactions, which may exceed the
           tolerance */
        if (measure(w, p) <= tol && balanced && (it > 0 || w->slack == 0))
            return true;
    }
    return false;
}

bool mixed_fits(const contact_problem *p)
{
    for (int c = 0; c < p->n; c++)
        if (cone_rows(&p->cone[c]) > MAX_ROWS)
            return false;
    return p->coupled && p->u;
}

bool mixed_solve(mixed *w, contact_problem *p, bool same, double tol)
{
    const coupled_rows *q = p->coupled;
    p->residual = INFINITY;
    p->worst = p->iterations = 0;
    p->fine = reaction_fine(tol);
    if (!mixed_fits(p))
        return false;
    if (!same || w->shape.n != q->n + p->m) {
        structure(w, p);
        same = false;
    }
    if (!same || q->changed) {
        sizes(w, p);
        fill_dofs(w, p);
        w->known = false;
    }
    w->slack = 0;
    w->of_speed = false;
    for (int c = 0; c < p->n; c++)
        w->of_speed |= p->cone[c].of_speed;
    if (newton(w, p, tol))
        return true;
    /* reactions that are not unique, or modes that alternate: a proximal term shortens the steps */
    for (int k = 0; k < 3; k++) {
        static const double slack[] = { 1e-8, 1e-3, 0.3 };
        w->slack = slack[k];
        w->known = false;
        memset(p->r, 0, (size_t)p->m * sizeof *p->r);
        bool ok = newton(w, p, tol);
        w->known = false;
        if (ok)
            return true;
    }
    return false;
}
