/* field_line: the working data of a field on an interval, shared by the files that solve it. */
#ifndef CDL_FIELD_LINE_H
#define CDL_FIELD_LINE_H
#include "field.h"
#include "base/tolerances.h"
#include <math.h>

/* derivative d at the centre: sum w[d][j] u[first + j] */
typedef struct stencil {
    double w[FIELD_ORDER + 1][16];
    int m;
    /* nodes evenly spaced: whole[d][j]*per[d] = w[d][j] with whole numbers; else per[d] is 0 */
    double whole[FIELD_ORDER + 1][16], per[FIELD_ORDER + 1];
    int bits[FIELD_ORDER + 1]; /* that a factor may have for exact products */
} stencil;

/* A free end: its node has no row of the equation; the force of the obstacle there enters the condition that
   gives u^(k-1). At the end u^(k-1) jumps by force/lead, lead = dF/du^(k), so force = per*(residual of the
   condition). */
typedef struct end_pair {
    int field, condition;
    int64_t node;
    double per;
} end_pair;

typedef struct line {
    field_work *w;
    const field_program *fp;
    const line_options *o;
    int nf;
    arena *home;     /* of what is left behind */
    int64_t n, size; /* nodes; unknowns */
    double *x;
    int64_t nbrk, *brk;
    int left[FIELD_MAX];     /* conditions at the left end: row s of a field is paired with node s + left */
    int64_t *pos[FIELD_MAX]; /* place of row s in the matrix; NULL: s + left[0] */
    int64_t *cpos;           /* of each condition */
    end_pair end[2 * FIELD_MAX]; /* ends of the domain that are free to meet the obstacle */
    int nend;
    int kl, ku, band;
    bool three;          /* tridiagonal */
    bool alike;          /* and all rows but the first and the last are the same: three are kept */
    double *sum;         /* of each row, then; NULL: 0 */
    double *ab, *rhs;    /* ab[row*band + column - row + kl]; residual at the linearisation */
    double *u, *lo, *hi; /* bounds by unknown; NULL without obstacles, hi: without upper ones */
    int8_t *act;         /* -1, 0, 1: on the upper, no, on the lower bound */
    double *low;         /* rounding error of u; NULL: not known */
    double *work, *keep;
    double done; /* of the whole, before this level */
    int steps;
} line;

typedef struct {
    stencil other[FIELD_MAX];
    int64_t first[FIELD_MAX];
} row_stencils;

/* computed for each row: value and derivatives of F there */
typedef void (*row_use)(line *l, int f, int64_t s, const row_stencils *r, const double *out, void *ud);

/* not cleared: for data that are filled immediately */
static inline double *numbers(arena *a, int64_t n)
{
    size_t size;
    if (__builtin_mul_overflow((size_t)n, sizeof(double), &size))
        size = SIZE_MAX / 2;
    return arena_alloc(a, size);
}

static inline int64_t rows_of(const line *l, int f)
{
    return l->n - l->fp->eq[f].order;
}

static inline int64_t row_slot(const line *l, int64_t row)
{
    return !l->alike ? row : row == 0 ? 0 : row + 1 == l->size ? 2 : 1;
}

static inline double *row_start(const line *l, int64_t row)
{
    return l->ab + row_slot(l, row) * l->band;
}

static inline int64_t row_place(const line *l, int f, int64_t s)
{
    return l->pos[f] ? l->pos[f][s] : s + l->left[0];
}

/* unknown that is paired with each row, by field */
static inline int64_t pair_of(const line *l, int f, int64_t s)
{
    return (s + l->left[f]) * l->nf + f;
}

static inline int64_t end_unknown(const line *l, const end_pair *e)
{
    return e->node * l->nf + e->field;
}

/* of a field: each has a unit of its own */
static inline double size_of(const line *l, int f)
{
    double s = 0;
    for (int64_t k = f; k < l->size; k += l->nf)
        s = fabs(l->u[k]) > s ? fabs(l->u[k]) : s;
    return s;
}

/* residual of a row with u, and a bound for its rounding error */
static inline double row_value(const line *l, int64_t row, double *noise)
{
    const double *a = row_start(l, row);
    double s = l->rhs[row_slot(l, row)], e = fabs(s);
    int64_t first = row - l->kl;
    if (l->three && row > 0 && row + 1 < l->size) {
        double x = a[0] * l->u[row - 1], y = a[1] * l->u[row], z = a[2] * l->u[row + 1];
        *noise = ROUND_4 * (e + fabs(x) + fabs(y) + fabs(z));
        return s + x + y + z;
    }
    long double sum = s;
    for (int j = 0; j < l->band; j++) {
        int64_t col = first + j;
        if (col < 0 || col >= l->size || a[j] == 0)
            continue;
        long double t = (long double)a[j] * ((long double)l->u[col] + (l->low ? l->low[col] : 0));
        sum += t;
        e += fabs((double)t);
    }
    *noise = (l->low ? ROUND_TWOFOLD : ROUND_4) * e;
    return (double)sum;
}

/* ---- grid and rows (line_rows.c) ---- */
bool line_assemble(line *l, const double *u);
bool line_form_uniform(const field_form *f);
bool line_grid(line *l, const double *brk, int nb, int64_t cells);
void line_place_rows(line *l);
bool line_rows_run(line *l, int f, const double *u, double k, row_use use, void *ud);
/* ---- obstacles (line_obstacle.c) ---- */
bool line_bounds_check(line *l);
bool line_bounds(line *l);
bool line_end_holds(const line *l, int c);
void line_ends(line *l);
/* ---- linear systems (line_linear.c): b becomes the solution ---- */
bool line_band_solve(line *l, double *b, double *rcond);
bool line_system_solve(line *l, double *b);
bool line_tridiagonal_solve(line *l, double *b);
/* ---- contact sets (line_sets.c) ---- */
double line_end_force(const line *l, const end_pair *e, double *noise);
bool line_linear_solve(line *l, bool coarsest, bool finest);
bool line_newton_solve(line *l, bool coarsest);
/* ---- results (line_result.c) ---- */
double line_zone_end(const line *l, int f, int64_t k, int side);
field_result *line_result(line *l, int levels);
#endif
