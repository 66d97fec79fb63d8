/* problems: step problems in the layout of FCLIB and as text. */
#include <stdbool.h>
#include <string.h>
#include "hdf5.h"
#include "problems.h"

/* ---- which rows go where ---- */
/* contacts first, then rows that are held */
typedef struct fclib_plan {
    int dim, contacts, held;
    int *row, *held_row; /* by row of the problem; -1: none */
} fclib_plan;

static bool fits(const contact_problem *p)
{
    for (int c = 0; c < p->n; c++) {
        const cone *o = &p->cone[c];
        bool rough = o->d > 0 && o->mu != 0;
        if (o->kind == CONE_GIVEN || (o->kind == CONE_BILATERAL && rough) || o->radius != 0 || o->dir ||
            o->d > 2)
            return false;
    }
    return true;
}

static fclib_plan plan_make(const contact_problem *p, arena *a)
{
    fclib_plan f = { .dim = 2, .row = arena_array(a, int, p->m), .held_row = arena_array(a, int, p->m) };
    for (int c = 0; c < p->n; c++)
        if (p->cone[c].kind == CONE_UNILATERAL && p->cone[c].d == 2)
            f.dim = 3;
    for (int c = 0; c < p->n; c++) {
        const cone *o = &p->cone[c];
        bool held = o->kind == CONE_BILATERAL;
        for (int j = 0; j < cone_rows(o); j++) {
            f.row[o->row + j] = held ? -1 : f.contacts * f.dim + j;
            f.held_row[o->row + j] = held && j == 0 ? f.held : -1;
        }
        f.held += held;
        f.contacts += !held;
    }
    return f;
}

/* a vector of the problem: rows of contacts, rows that are held */
typedef struct fclib_vector {
    double *rows, *held;
} fclib_vector;

static fclib_vector split(const contact_problem *p, const fclib_plan *f, const double *x, arena *a)
{
    fclib_vector v = { arena_array(a, double, f->contacts * f->dim + 1),
                       arena_array(a, double, f->held + 1) };
    for (int i = 0; i < p->m; i++) {
        if (f->row[i] >= 0)
            v.rows[f->row[i]] = x[i];
        else if (f->held_row[i] >= 0)
            v.held[f->held_row[i]] = x[i];
    }
    return v;
}

/* ---- matrices ---- */
typedef struct fclib_entry {
    int row, col;
    double x;
} fclib_entry;
typedef vec(fclib_entry) fclib_entries;

static void put_matrix(hdf5_node *in, const char *name, int m, int n, const fclib_entries *e, arena *a)
{
    hdf5_node *g = hdf5_group(in, name);
    int *from = arena_array(a, int, n + 2), *row = arena_array(a, int, e->n + 1);
    double *x = arena_array(a, double, e->n + 1);
    for (size_t k = 0; k < e->n; k++)
        from[e->at[k].col + 2]++;
    for (int k = 2; k < n + 2; k++)
        from[k] += from[k - 1];
    for (size_t k = 0; k < e->n; k++) {
        int to = from[e->at[k].col + 1]++;
        row[to] = e->at[k].row;
        x[to] = e->at[k].x;
    }
    hdf5_int(g, "nzmax", (int)e->n);
    hdf5_int(g, "m", m);
    hdf5_int(g, "n", n);
    hdf5_int(g, "nz", -1); /* by columns */
    hdf5_ints(g, "p", from, (size_t)n + 1);
    hdf5_ints(g, "i", row, e->n);
    hdf5_numbers(g, "x", x, e->n);
}

/* entries of W by block: of contacts; of contacts in columns that are held; of those among themselves */
typedef struct fclib_blocks {
    fclib_entries W, V, R;
} fclib_blocks;

static void put_row(const contact_problem *p, const fclib_plan *f, int c, int j, fclib_blocks *to, arena *a)
{
    const int *col = problem_columns(p, c);
    const double *v = problem_row(p, c, j);
    int i = f->row[p->cone[c].row + j], h = f->held_row[p->cone[c].row + j];
    for (int k = 0, n = problem_width(p, c); k < n; k++) {
        int ic = f->row[col[k]], hc = f->held_row[col[k]];
        if (v[k] == 0)
            continue;
        if (i >= 0 && ic >= 0)
            *vec_push(a, &to->W) = (fclib_entry){ i, ic, v[k] };
        else if (i >= 0 && hc >= 0)
            *vec_push(a, &to->V) = (fclib_entry){ i, hc, v[k] };
        else if (h >= 0 && hc >= 0)
            *vec_push(a, &to->R) = (fclib_entry){ h, hc, v[k] };
    }
}

static fclib_blocks blocks_of(const contact_problem *p, const fclib_plan *f, double *mu, arena *a)
{
    fclib_blocks to = { 0 };
    for (int c = 0; c < p->n; c++) {
        const cone *o = &p->cone[c];
        for (int j = 0; j < cone_rows(o); j++)
            put_row(p, f, c, j, &to, a);
        if (o->kind == CONE_BILATERAL)
            continue;
        int first = f->row[o->row];
        mu[first / f->dim] = o->d ? o->mu : 0;
        /* rows that are filled up: of the size of the others, so that W stays well conditioned */
        for (int j = cone_rows(o); j < f->dim; j++)
            *vec_push(a, &to.W) = (fclib_entry){ first + j, first + j, problem_entry(p, c, 0, o->row) };
    }
    return to;
}

/* ---- the file ---- */
static void put_reactions(hdf5_node *in, const contact_problem *p, const fclib_plan *f, const double *r,
                          arena *a)
{
    contact_problem at = *p;
    double *u = arena_array(a, double, p->m + 1);
    at.r = memcpy(arena_array(a, double, p->m + 1), r, (size_t)p->m * sizeof *r);
    problem_velocities(&at, u);
    fclib_vector react = split(p, f, r, a), rate = split(p, f, u, a);
    size_t rows = (size_t)(f->contacts * f->dim);
    hdf5_numbers(in, "r", react.rows, rows);
    hdf5_numbers(in, "u", rate.rows, rows);
    if (f->held)
        hdf5_numbers(in, "l", react.held, (size_t)f->held);
}

static const char *description(const step_problem *x, arena *a)
{
    text t = { .a = a };
    text_puts(&t, x->impact ? "impact at t = " : "step to t = ");
    text_num(&t, x->t);
    if (!x->impact) {
        text_puts(&t, ", h = ");
        text_num(&t, x->h);
    }
    text_puts(&t, ", tolerance ");
    text_num(&t, x->tolerance);
    text_puts(&t, x->solved ? ", solved, residual " : ", NOT solved, residual ");
    text_num(&t, x->residual);
    if (x->solver)
        text_printf(&t, ", solver: %s", x->solver);
    return t.at;
}

bool problem_fclib(const step_problem *x, const char *title, text *out, arena *a)
{
    const contact_problem *p = &x->p;
    if (!fits(p))
        return false;
    fclib_plan f = plan_make(p, a);
    int m = f.contacts * f.dim;
    double *mu = arena_array(a, double, f.contacts + 1);
    fclib_vector b = split(p, &f, p->b, a);
    fclib_blocks of = blocks_of(p, &f, mu, a);
    if (of.W.n > INT32_MAX)
        return false; /* more entries than its files can count */
    hdf5_node *root = hdf5_new(a), *g = hdf5_group(root, "fclib_local"), *vectors = hdf5_group(g, "vectors"),
              *info = hdf5_group(g, "info"), *guesses = hdf5_group(root, "guesses");
    hdf5_int(g, "spacedim", f.dim);
    put_matrix(g, "W", m, m, &of.W, a);
    hdf5_numbers(vectors, "q", b.rows, (size_t)m);
    hdf5_numbers(vectors, "mu", mu, (size_t)f.contacts);
    if (f.held) {
        put_matrix(g, "V", m, f.held, &of.V, a);
        put_matrix(g, "R", f.held, f.held, &of.R, a);
        hdf5_numbers(vectors, "s", b.held, (size_t)f.held);
    }
    hdf5_string(info, "title", title);
    hdf5_string(info, "description", description(x, a));
    hdf5_int(guesses, "number_of_guesses", 1);
    put_reactions(hdf5_group(guesses, "1"), p, &f, p->r, a);
    if (x->solution)
        put_reactions(hdf5_group(root, "solution"), p, &f, x->solution, a);
    hdf5_put(out, root);
    return true;
}

/* ---- as text ---- */
static void put_vector(text *out, const char *name, const double *x, int n)
{
    text_puts(out, name);
    for (int i = 0; i < n; i++) {
        text_putc(out, ' ');
        text_num(out, x[i]);
    }
    text_putc(out, '\n');
}

static void put_line(text *out, const contact_problem *p, int c, int j)
{
    int n = problem_width(p, c), count = 0;
    const double *v = problem_row(p, c, j);
    const int *col = problem_columns(p, c);
    for (int k = 0; k < n; k++)
        count += v[k] != 0;
    text_printf(out, "W %d %d", p->cone[c].row + j, count);
    for (int k = 0; k < n; k++)
        if (v[k] != 0) {
            text_printf(out, " %d ", col[k]);
            text_num(out, v[k]);
        }
    text_putc(out, '\n');
}

bool problem_lines(const step_problem *x, text *out)
{
    static const char *const kinds[] = { "unilateral", "bilateral", "given" };
    const contact_problem *p = &x->p;
    for (int c = 0; c < p->n; c++)
        if (p->cone[c].dir)
            return false;
    text_printf(out, "contacts %d rows %d tolerance ", p->n, p->m);
    text_num(out, x->tolerance);
    text_puts(out, " least ");
    text_num(out, p->least);
    text_putc(out, '\n');
    for (int c = 0; c < p->n; c++) {
        const cone *o = &p->cone[c];
        text_printf(out, "cone %s %d ", kinds[o->kind], o->d);
        text_num(out, o->mu);
        text_putc(out, ' ');
        text_num(out, o->radius);
        text_putc(out, '\n');
    }
    put_vector(out, "b", p->b, p->m);
    put_vector(out, "r", p->r, p->m);
    if (x->solution)
        put_vector(out, "solution", x->solution, p->m);
    for (int c = 0; c < p->n; c++)
        for (int j = 0; j < cone_rows(&p->cone[c]); j++)
            put_line(out, p, c, j);
    return true;
}
