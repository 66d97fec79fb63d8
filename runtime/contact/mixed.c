#include "mixed.h"
#include <math.h>
#include <string.h>

enum { MOST = 60 };    /* Newton steps */
enum { MAX_ROWS = 4 }; /* of a contact */

struct mixed {
    arena *a;
    int room, entry_room, contact_room;
    /* matrix of dv and r by rows; shape is what factors know it by */
    matrix_shape shape;
    int *start, *column;
    double *value;
    factor factors;
    bool known; /* factors are those of `value` */
    /* rows that push at each dof: first of each, which one, its entry of P */
    int *at_dof, *row_of;
    size_t *entry_of;
    double *x, *rhs;
    double *normal, *tangent; /* of each contact: entries of W as they would be without coupling */
    int *mode, *mode_known;   /* of each contact, now and in the factors */
    double slack;             /* weight of the proximal term on held rows; 0: none */
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
static int width(const mixed_problem *p, int c)
{
    return p->dof_at[c + 1] - p->dof_at[c];
}

static void room(mixed *w, const mixed_problem *p, size_t entries)
{
    int size = p->n + p->m;
    if (size > w->room) {
        w->room = size + size / 4;
        w->start = arena_array(w->a, int, w->room + 1);
        w->at_dof = arena_array(w->a, int, w->room + 2);
        w->x = arena_array(w->a, double, w->room);
        w->rhs = arena_array(w->a, double, w->room);
    }
    if (p->contacts > w->contact_room) {
        w->contact_room = p->contacts + p->contacts / 4;
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

/* which rows push at each dof */
static void turn(mixed *w, const mixed_problem *p)
{
    memset(w->at_dof, 0, (size_t)(p->n + 2) * sizeof *w->at_dof);
    for (int pass = 0; pass < 2; pass++) {
        for (int c = 0; c < p->contacts; c++)
            for (int k = 0; k < width(p, c); k++)
                for (int a = 0; a < cone_rows(&p->cone[c]); a++) {
                    int dof = p->dof[p->dof_at[c] + k];
                    if (pass == 0) {
                        w->at_dof[dof + 2]++;
                        continue;
                    }
                    int to = w->at_dof[dof + 1]++;
                    w->row_of[to] = p->cone[c].row + a;
                    w->entry_of[to] = p->J_at[c] + (size_t)(a * width(p, c) + k);
                }
        for (int i = 2; pass == 0 && i < p->n + 2; i++)
            w->at_dof[i] += w->at_dof[i - 1];
    }
}

static int first_column(const matrix_shape *s, int i)
{
    return s->kind == MATRIX_BAND ? i - s->below : s->kind == MATRIX_DIAGONAL ? i : 0;
}

static void structure(mixed *w, const mixed_problem *p)
{
    size_t entries = p->shape->count, at = 0;
    for (int c = 0; c < p->contacts; c++) {
        size_t m = (size_t)cone_rows(&p->cone[c]);
        entries += 2 * m * (size_t)width(p, c) + m * m;
    }
    room(w, p, entries);
    turn(w, p);
    for (int i = 0; i < p->n; i++) {
        w->start[i] = (int)at;
        size_t lo = matrix_row(p->shape, i), hi = matrix_row(p->shape, i + 1);
        for (size_t e = lo; e < hi; e++) {
            int j = p->shape->kind == MATRIX_SPARSE ? p->shape->column[e]
                                                    : first_column(p->shape, i) + (int)(e - lo);
            if (j >= 0 && j < p->n)
                w->column[at++] = j;
        }
        for (int k = w->at_dof[i]; k < w->at_dof[i + 1]; k++)
            w->column[at++] = p->n + w->row_of[k];
    }
    for (int c = 0; c < p->contacts; c++)
        for (int a = 0; a < cone_rows(&p->cone[c]); a++) {
            w->start[p->n + p->cone[c].row + a] = (int)at;
            for (int k = 0; k < width(p, c); k++)
                w->column[at++] = p->dof[p->dof_at[c] + k];
            for (int b = 0; b < cone_rows(&p->cone[c]); b++)
                w->column[at++] = p->n + p->cone[c].row + b;
        }
    w->start[p->n + p->m] = (int)at;
    factor_free(&w->factors);
    bool first = w->shape.n == 0;
    w->shape = (matrix_shape){
        .kind = MATRIX_SPARSE, .n = p->n + p->m, .start = w->start, .column = w->column, .count = at
    };
    if (first)
        factor_shape(&w->factors, w->a, &w->shape);
    w->factors.n = w->shape.n;
    w->known = false;
}

/* ---- values ---- */
static void fill_dofs(mixed *w, const mixed_problem *p)
{
    double *to = w->value;
    for (int i = 0; i < p->n; i++) {
        size_t lo = matrix_row(p->shape, i), hi = matrix_row(p->shape, i + 1);
        int j = p->shape->kind == MATRIX_SPARSE ? 0 : first_column(p->shape, i);
        for (size_t e = lo; e < hi; e++, j++)
            if (p->shape->kind == MATRIX_SPARSE || (j >= 0 && j < p->n))
                *to++ = p->D[e];
        for (int k = w->at_dof[i]; k < w->at_dof[i + 1]; k++)
            *to++ = -p->P[w->entry_of[k]];
    }
}

/* what the entries of W are about: rows times the inverse of the diagonal of D */
static void sizes(mixed *w, const mixed_problem *p)
{
    for (int c = 0; c < p->contacts; c++) {
        const int *dof = p->dof + p->dof_at[c];
        int n = width(p, c), top = cone_normal(&p->cone[c]);
        w->normal[c] = w->tangent[c] = 0;
        for (int a = 0; a < cone_rows(&p->cone[c]); a++) {
            double s = 0;
            for (int k = 0; k < n; k++) {
                size_t at = p->J_at[c] + (size_t)(a * n + k);
                s += p->J[at] * p->P[at] / fabs(p->D[matrix_at(p->shape, dof[k], dof[k])]);
            }
            if (a < top)
                w->normal[c] = s;
            else
                w->tangent[c] = larger(w->tangent[c], s);
        }
    }
}

enum { OPEN = 1, HELD = 2, STICK = 4, SLIP = 8, BACK = 16, TURNS = 32 };

/* Alart and Curnier's map F of a contact, its derivatives by r and by u (m x m each); what it does */
static int cone_map(const cone *o, const double *r, const double *u, double an, double at, double *F,
                    double *Fr, double *Fu)
{
    int k = cone_normal(o), m = cone_rows(o), mode = 0;
    double rn = 0, x[MAX_ROWS] = { 0 }, nx = 0;
    memset(Fr, 0, (size_t)(m * m) * sizeof *Fr);
    memset(Fu, 0, (size_t)(m * m) * sizeof *Fu);
    if (k) {
        double rho = 1 / an;
        rn = r[0];
        if (o->kind == CONE_BILATERAL || rn - rho * u[0] > 0) {
            F[0] = rho * u[0];
            Fu[0] = rho;
            mode = HELD;
        } else {
            F[0] = rn;
            Fr[0] = 1;
            rn = 0;
            mode = OPEN;
        }
    }
    if (o->d == 0)
        return mode;
    double bound = o->mu * fabs(rn) + o->radius, sign = rn < 0 ? -o->mu : o->mu, rho = 1 / at;
    for (int j = 0; j < o->d; j++) {
        x[j] = r[k + j] - rho * u[k + j];
        nx += x[j] * x[j];
    }
    nx = sqrt(nx);
    bool slips = o->dir || nx > bound;
    for (int j = 0; j < o->d; j++) {
        int row = k + j;
        if (!slips) {
            F[row] = rho * u[row];
            Fu[row * m + row] = rho;
            continue;
        }
        double xj = o->dir ? -o->dir[j] : x[j] / nx, f = o->dir ? 0 : bound / nx;
        for (int i = 0; i < o->d && f > 0 && o->d > 1; i++) {
            double g = f * ((i == j) - xj * x[i] / nx);
            Fu[row * m + k + i] += g * rho;
            Fr[row * m + k + i] -= g;
        }
        Fr[row * m + row] += 1;
        if (k && rn != 0)
            Fr[row * m] -= xj * sign;
        F[row] = r[row] - bound * xj;
    }
    if (!slips)
        return mode | STICK;
    return mode | SLIP | (x[0] < 0 ? BACK : 0) | (o->d > 1 && !o->dir && bound > 0 ? TURNS : 0);
}

/* friction alone, along one line: rows of blocks that slide are no more than that */
static bool tangent_alone(const cone *o)
{
    return o->kind == CONE_GIVEN && o->d == 1 && !o->dir;
}

/* the right side of one */
static void tangent_put(mixed *w, const mixed_problem *p, int c)
{
    const cone *o = &p->cone[c];
    double rho = 1 / w->tangent[c], r = p->r[o->row], x = r - rho * p->u[o->row];
    bool slips = fabs(x) > o->radius;
    double F = slips ? r - o->radius * (x / fabs(x)) : rho * p->u[o->row];
    w->mode[c] = !slips ? STICK : SLIP | (x < 0 ? BACK : 0);
    w->rhs[p->n + o->row] = -F;
}

/* one contact: its part of the right side, and its rows of the matrix when they are wanted */
static void contact_rows_put(mixed *w, const mixed_problem *p, int c, bool matrix)
{
    const cone *o = &p->cone[c];
    if (!matrix && tangent_alone(o)) {
        tangent_put(w, p, c);
        return;
    }
    int m = cone_rows(o), n = width(p, c);
    double F[MAX_ROWS], Fr[MAX_ROWS * MAX_ROWS], Fu[MAX_ROWS * MAX_ROWS];
    const double *J = p->J + p->J_at[c];
    w->mode[c] = cone_map(o, p->r + o->row, p->u + o->row, w->normal[c], w->tangent[c], F, Fr, Fu);
    for (int a = 0; a < m; a++) {
        w->rhs[p->n + o->row + a] = -F[a];
        if (!matrix)
            continue;
        double *to = w->value + w->start[p->n + o->row + a];
        for (int k = 0; k < n; k++) {
            double s = 0;
            for (int b = 0; b < m; b++)
                s += Fu[a * m + b] * J[b * n + k];
            *to++ = s;
        }
        for (int b = 0; b < m; b++)
            *to++ = Fr[a * m + b] + (a == b && Fu[a * m + a] != 0 ? w->slack : 0);
    }
}

/* rates of all rows for the dv at hand */
static void rates(const mixed_problem *p)
{
    for (int c = 0; c < p->contacts; c++) {
        int n = width(p, c), row = p->cone[c].row;
        const int *dof = p->dof + p->dof_at[c];
        for (int a = 0; a < cone_rows(&p->cone[c]); a++) {
            const double *J = p->J + p->J_at[c] + (size_t)(a * n);
            double s = p->b[row + a];
            for (int k = 0; k < n; k++)
                s += J[k] * p->dv[dof[k]];
            p->u[row + a] = s;
        }
    }
}

static void laws(const mixed_problem *p)
{
    for (int c = 0; c < p->contacts; c++) {
        cone *o = &p->cone[c];
        if (!o->of_speed || o->dir)
            continue;
        double s = 0;
        for (int j = cone_normal(o); j < cone_rows(o); j++)
            s += p->u[o->row + j] * p->u[o->row + j];
        p->law(p->ud, c, sqrt(s), &o->mu, &o->radius);
    }
}

/* cone_defect and reaction_add for friction alone, along one line */
static double tangent_measure(const cone *o, double r, double u, double b, double at, reaction_size *size)
{
    double bound = o->radius, rho = 1 / at, x = r - rho * u, side = fabs(b) * rho,
           f = x * x > bound * bound ? bound / fabs(x) : 1;
    size->n++;
    size->all += side;
    size->most = larger(size->most, bound);
    size->asked = larger(size->asked, side < bound ? side : bound);
    return fabs(r - f * x);
}

static double measure_one(const mixed *w, const mixed_problem *p, int c, reaction_size *size)
{
    const cone *o = &p->cone[c];
    int i = o->row;
    double any = 0;
    if (tangent_alone(o) && w->tangent[c] > 0)
        return tangent_measure(o, p->r[i], p->u[i], p->b[i], w->tangent[c], size);
    reaction_add(size, o, p->r + i, p->b + i, w->normal[c], w->tangent[c]);
    return cone_defect(o, p->r + i, p->u + i, p->b + i, w->normal[c], w->tangent[c], &any);
}

static double measure(mixed *w, mixed_problem *p)
{
    reaction_size size = { .fine = reaction_fine(p->tol) };
    double most = 0;
    for (int c = 0; c < p->contacts; c++) {
        double e = measure_one(w, p, c, &size);
        if (e > most || !(e == e)) {
            most = e;
            p->worst = c;
        }
    }
    return p->residual = most == 0 ? 0 : most / reaction_scale(&size, p->least);
}

/* ---- Newton ---- */
static bool modes_kept(const mixed *w, const mixed_problem *p)
{
    for (int c = 0; c < p->contacts; c++)
        if (w->mode[c] != w->mode_known[c] || w->mode[c] & TURNS)
            return false;
    return true;
}

/* coefficients of slip that the factors depend on are those of the cone: mu of a normal reaction */
static bool direction(mixed *w, const mixed_problem *p)
{
    for (int c = 0; c < p->contacts; c++)
        contact_rows_put(w, p, c, false);
    if (!(w->known && modes_kept(w, p))) {
        for (int c = 0; c < p->contacts; c++)
            contact_rows_put(w, p, c, true);
        memcpy(w->mode_known, w->mode, (size_t)p->contacts * sizeof *w->mode);
        w->known = factor_matrix(&w->factors, w->value);
        if (!w->known)
            return false;
    }
    factor_solve(&w->factors, w->rhs, w->x);
    double finite = 0;
    for (int i = 0; i < p->n + p->m; i++)
        finite += 0 * w->x[i];
    return finite == 0 ? true : (w->known = false);
}

/* D dv = P^T r holds after the first step; before it what is missing stands on the right side */
static void start(mixed *w, const mixed_problem *p)
{
    memset(p->dv, 0, (size_t)p->n * sizeof *p->dv);
    for (int i = 0; i < p->n; i++) {
        double s = 0;
        for (int k = w->at_dof[i]; k < w->at_dof[i + 1]; k++)
            s += p->P[w->entry_of[k]] * p->r[w->row_of[k]];
        w->rhs[i] = s;
    }
}

static bool newton(mixed *w, mixed_problem *p)
{
    start(w, p);
    memcpy(p->u, p->b, (size_t)p->m * sizeof *p->u);
    laws(p);
    for (int it = 0; it < MOST; it++) {
        if (!direction(w, p))
            return false;
        for (int i = 0; i < p->n; i++)
            p->dv[i] += w->x[i];
        for (int i = 0; i < p->m; i++)
            p->r[i] += w->x[p->n + i];
        memset(w->rhs, 0, (size_t)p->n * sizeof *w->rhs);
        rates(p);
        laws(p);
        p->iterations++;
        if (measure(w, p) <= p->tol)
            return true;
    }
    return false;
}

static bool knows(const mixed_problem *p)
{
    for (int c = 0; c < p->contacts; c++)
        if (cone_rows(&p->cone[c]) > MAX_ROWS)
            return false;
    return true;
}

bool mixed_solve(mixed *w, mixed_problem *p, bool same)
{
    p->residual = INFINITY;
    p->worst = p->iterations = 0;
    if (!knows(p))
        return false;
    if (!same || w->shape.n != p->n + p->m) {
        structure(w, p);
        same = false;
    }
    if (!same || p->matrix_changed) {
        fill_dofs(w, p);
        sizes(w, p);
        w->known = false;
    }
    w->slack = 0;
    if (newton(w, p))
        return true;
    /* reactions that are not unique, or modes that do not settle: steps are held back a little */
    for (int k = 0; k < 3; k++) {
        static const double slack[] = { 1e-8, 1e-3, 0.3 };
        w->slack = slack[k];
        w->known = false;
        memset(p->r, 0, (size_t)p->m * sizeof *p->r);
        bool ok = newton(w, p);
        w->known = false;
        if (ok)
            return true;
    }
    return false;
}
