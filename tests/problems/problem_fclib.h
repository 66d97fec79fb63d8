/* A contact problem in the layout of FCLIB 3 (fclib_local), where libhdf5 is there: HAVE_HDF5, 2 for Debian's
   folders. /fclib_local/spacedim               2 or 3: rows of each contact, normal first /fclib_local/W m n
   nzmax nz p i x: by columns (nz = -1) /fclib_local/vectors                q mu, s where there is R
       /fclib_local/V, /fclib_local/R      rows that are held: u = W r + V l + q, 0 = V^T r + R l + s
       /fclib_local/info                   title, description
       /guesses                            number_of_guesses = 1, 1/r, 1/u, 1/l: where solvers start
   Contacts of fewer rows are filled up: no friction, rows that couple to nothing.  FCLIB knows no bound of
   friction of its own (radius), no friction in contacts that are held, no known direction of slip: such
   problems are not written. */
#ifndef CDL_PROBLEM_FCLIB_H
#define CDL_PROBLEM_FCLIB_H
#ifdef HAVE_HDF5
#if HAVE_HDF5 == 2
#include <hdf5/serial/hdf5.h>
#else
#include <hdf5.h>
#endif
#include <string.h>
#include "contact/problem.h"

/* ---- numbers and strings ---- */
static inline bool fclib_put(hid_t at, const char *name, hid_t type, size_t n, const void *x)
{
    hsize_t dim = n;
    hid_t space = H5Screate_simple(1, &dim, NULL);
    hid_t set = H5Dcreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    bool ok = set >= 0 && (n == 0 || H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) >= 0);
    if (set >= 0)
        H5Dclose(set);
    H5Sclose(space);
    return ok;
}

static inline bool fclib_put_int(hid_t at, const char *name, int x)
{
    return fclib_put(at, name, H5T_NATIVE_INT, 1, &x);
}

static inline bool fclib_put_text(hid_t at, const char *name, const char *x)
{
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, strlen(x) + 1);
    hid_t set = H5Dcreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    bool ok = set >= 0 && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) >= 0;
    if (set >= 0)
        H5Dclose(set);
    H5Sclose(space);
    H5Tclose(type);
    return ok;
}

/* a dataset of n numbers; false: there is none of that length */
static inline bool fclib_get(hid_t at, const char *name, hid_t type, size_t n, void *x)
{
    if (H5Lexists(at, name, H5P_DEFAULT) <= 0)
        return false;
    hid_t set = H5Dopen2(at, name, H5P_DEFAULT);
    if (set < 0)
        return false;
    hid_t space = H5Dget_space(set);
    bool ok = H5Sget_simple_extent_npoints(space) == (hssize_t)n &&
              (n == 0 || H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) >= 0);
    H5Sclose(space);
    H5Dclose(set);
    return ok;
}

static inline hid_t fclib_group(hid_t at, const char *name)
{
    return H5Gcreate2(at, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
}

/* ---- matrices ---- */
typedef struct fclib_entry {
    int row, col;
    double x;
} fclib_entry;
typedef vec(fclib_entry) fclib_entries;

static inline bool fclib_put_matrix(hid_t at, const char *name, int m, int n, const fclib_entries *e,
                                    arena *a)
{
    hid_t g = fclib_group(at, name);
    int *p = arena_array(a, int, n + 2), *i = arena_array(a, int, e->n + 1);
    double *x = arena_array(a, double, e->n + 1);
    for (size_t k = 0; k < e->n; k++)
        p[e->at[k].col + 2]++;
    for (int k = 2; k < n + 2; k++)
        p[k] += p[k - 1];
    for (size_t k = 0; k < e->n; k++) {
        int to = p[e->at[k].col + 1]++;
        i[to] = e->at[k].row;
        x[to] = e->at[k].x;
    }
    bool ok = g >= 0 && fclib_put_int(g, "nzmax", (int)e->n) && fclib_put_int(g, "m", m) &&
              fclib_put_int(g, "n", n) && fclib_put_int(g, "nz", -1) &&
              fclib_put(g, "p", H5T_NATIVE_INT, (size_t)n + 1, p) &&
              fclib_put(g, "i", H5T_NATIVE_INT, e->n, i) && fclib_put(g, "x", H5T_NATIVE_DOUBLE, e->n, x);
    if (g >= 0)
        H5Gclose(g);
    return ok;
}

/* Adds the entries of a matrix by columns, moved by (down, right); turned: with rows and columns exchanged.
 */
static inline bool fclib_get_matrix(hid_t at, const char *name, int *m, int *n, bool turned, int down,
                                    int right, fclib_entries *e, arena *a)
{
    int nzmax, nz;
    hid_t g = H5Gopen2(at, name, H5P_DEFAULT);
    bool ok = g >= 0 && fclib_get(g, "nzmax", H5T_NATIVE_INT, 1, &nzmax) &&
              fclib_get(g, "m", H5T_NATIVE_INT, 1, m) && fclib_get(g, "n", H5T_NATIVE_INT, 1, n) &&
              fclib_get(g, "nz", H5T_NATIVE_INT, 1, &nz) && nz == -1 && nzmax >= 0 && *m >= 0 && *n >= 0;
    if (ok) {
        int *p = arena_array(a, int, *n + 1), *i = arena_array(a, int, nzmax + 1);
        double *x = arena_array(a, double, nzmax + 1);
        ok = fclib_get(g, "p", H5T_NATIVE_INT, (size_t)*n + 1, p) &&
             fclib_get(g, "i", H5T_NATIVE_INT, (size_t)nzmax, i) &&
             fclib_get(g, "x", H5T_NATIVE_DOUBLE, (size_t)nzmax, x);
        for (int c = 0; ok && c < *n; c++)
            for (int k = p[c]; k < p[c + 1] && k < nzmax; k++)
                *vec_push(a, e) = turned ? (fclib_entry){ c + down, i[k] + right, x[k] }
                                         : (fclib_entry){ i[k] + down, c + right, x[k] };
    }
    if (g >= 0)
        H5Gclose(g);
    return ok;
}

/* ---- problems ---- */
/* where the rows of a problem go: contacts first, then rows that are held (-1: those) */
typedef struct fclib_plan {
    int dim, contacts, held;
    int *row, *held_row; /* by row of the problem; -1: none */
} fclib_plan;

static inline bool fclib_plan_make(const contact_problem *p, fclib_plan *f, arena *a)
{
    *f = (fclib_plan){ .dim = 2, .row = arena_array(a, int, p->m), .held_row = arena_array(a, int, p->m) };
    for (int c = 0; c < p->n; c++) {
        const cone *o = &p->cone[c];
        bool rough = o->d > 0 && o->mu != 0;
        if (o->kind == CONE_GIVEN || (o->kind == CONE_BILATERAL && rough) || o->radius != 0 || o->dir ||
            o->d > 2)
            return false;
        if (o->kind == CONE_UNILATERAL && o->d == 2)
            f->dim = 3;
    }
    for (int c = 0; c < p->n; c++) {
        const cone *o = &p->cone[c];
        bool held = o->kind == CONE_BILATERAL;
        for (int j = 0; j < cone_rows(o); j++) {
            f->row[o->row + j] = held ? -1 : f->contacts * f->dim + j;
            f->held_row[o->row + j] = held && j == 0 ? f->held : -1;
        }
        f->held += held;
        f->contacts += !held;
    }
    return true;
}

/* the vector x of the problem: rows of contacts, rows that are held */
static inline void fclib_split(const contact_problem *p, const fclib_plan *f, const double *x, double *rows,
                               double *held)
{
    for (int i = 0; i < p->m; i++) {
        if (f->row[i] >= 0)
            rows[f->row[i]] = x[i];
        else if (f->held_row[i] >= 0)
            held[f->held_row[i]] = x[i];
    }
}

/* entries of W by block: contacts, contacts and held rows, held rows */
static inline void fclib_blocks(const contact_problem *p, const fclib_plan *f, fclib_entries *W,
                                fclib_entries *V, fclib_entries *R, double *mu, arena *a)
{
    for (int c = 0; c < p->n; c++) {
        const cone *o = &p->cone[c];
        const int *col = problem_columns(p, c);
        for (int j = 0; j < cone_rows(o); j++) {
            int i = f->row[o->row + j], h = f->held_row[o->row + j];
            const double *v = problem_row(p, c, j);
            for (int k = 0, n = problem_width(p, c); k < n; k++) {
                int ic = f->row[col[k]], hc = f->held_row[col[k]];
                if (v[k] == 0)
                    continue;
                if (i >= 0 && ic >= 0)
                    *vec_push(a, W) = (fclib_entry){ i, ic, v[k] };
                else if (i >= 0 && hc >= 0)
                    *vec_push(a, V) = (fclib_entry){ i, hc, v[k] };
                else if (h >= 0 && hc >= 0)
                    *vec_push(a, R) = (fclib_entry){ h, hc, v[k] };
            }
        }
        if (o->kind == CONE_BILATERAL)
            continue;
        int first = f->row[o->row];
        mu[first / f->dim] = o->d ? o->mu : 0;
        for (int j = cone_rows(o); j < f->dim; j++)
            *vec_push(a, W) = (fclib_entry){ first + j, first + j, problem_entry(p, c, 0, o->row) };
    }
}

static inline bool fclib_guess(hid_t file, const contact_problem *p, const fclib_plan *f, arena *a)
{
    size_t m = (size_t)(f->contacts * f->dim), held = (size_t)f->held;
    double *u = arena_array(a, double, p->m), *rows = arena_array(a, double, m),
           *l = arena_array(a, double, held + 1), *none = arena_array(a, double, held + 1);
    hid_t g = fclib_group(file, "guesses"), one = fclib_group(g, "1");
    bool ok = fclib_put_int(g, "number_of_guesses", 1);
    fclib_split(p, f, p->r, rows, l);
    ok = ok && fclib_put(one, "r", H5T_NATIVE_DOUBLE, m, rows);
    problem_velocities(p, u);
    fclib_split(p, f, u, rows, none);
    ok = ok && fclib_put(one, "u", H5T_NATIVE_DOUBLE, m, rows) &&
         (!held || fclib_put(one, "l", H5T_NATIVE_DOUBLE, held, l));
    H5Gclose(one);
    H5Gclose(g);
    return ok;
}

/* False: it cannot be written so, or not at all. */
static inline bool problem_fclib_write(const char *path, const contact_problem *p, const char *title,
                                       arena *a)
{
    fclib_plan f;
    if (!fclib_plan_make(p, &f, a))
        return false;
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    if (file < 0)
        return false;
    int m = f.contacts * f.dim;
    double *q = arena_array(a, double, m + 1), *s = arena_array(a, double, f.held + 1),
           *mu = arena_array(a, double, f.contacts + 1);
    fclib_entries W = { 0 }, V = { 0 }, R = { 0 };
    fclib_split(p, &f, p->b, q, s);
    fclib_blocks(p, &f, &W, &V, &R, mu, a);
    hid_t g = fclib_group(file, "fclib_local"), vectors = fclib_group(g, "vectors"),
          info = fclib_group(g, "info");
    bool ok = fclib_put_int(g, "spacedim", f.dim) && fclib_put_matrix(g, "W", m, m, &W, a) &&
              fclib_put(vectors, "q", H5T_NATIVE_DOUBLE, (size_t)m, q) &&
              fclib_put(vectors, "mu", H5T_NATIVE_DOUBLE, (size_t)f.contacts, mu);
    if (f.held)
        ok = ok && fclib_put_matrix(g, "V", m, f.held, &V, a) &&
             fclib_put_matrix(g, "R", f.held, f.held, &R, a) &&
             fclib_put(vectors, "s", H5T_NATIVE_DOUBLE, (size_t)f.held, s);
    ok = ok && fclib_put_text(info, "title", title) &&
         fclib_put_text(info, "description", "contact problem of a time step, recorded by CDL") &&
         fclib_guess(file, p, &f, a);
    H5Gclose(info);
    H5Gclose(vectors);
    H5Gclose(g);
    H5Fclose(file);
    return ok;
}

/* Contacts in their order, then a contact without friction for each row that is held; W in full. */
static inline bool problem_fclib_read(const char *path, contact_problem *p, arena *a)
{
    int dim, m = 0, n = 0, held = 0, any;
    fclib_entries e = { 0 };
    *p = (contact_problem){ 0 };
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file < 0)
        return false;
    hid_t g = H5Gopen2(file, "fclib_local", H5P_DEFAULT);
    bool ok = g >= 0 && fclib_get(g, "spacedim", H5T_NATIVE_INT, 1, &dim) && (dim == 2 || dim == 3) &&
              fclib_get_matrix(g, "W", &m, &n, false, 0, 0, &e, a) && m == n && m % dim == 0;
    if (ok && H5Lexists(g, "V", H5P_DEFAULT) > 0)
        ok = fclib_get_matrix(g, "V", &any, &held, false, 0, m, &e, a) && any == m &&
             fclib_get_matrix(g, "V", &any, &held, true, m, 0, &e, a) &&
             fclib_get_matrix(g, "R", &any, &n, false, m, m, &e, a) && any == held && n == held;
    int all = m + held, *column = arena_array(a, int, all + 1);
    double *mu = arena_array(a, double, m / 2 + 1);
    p->m = all;
    p->b = arena_array(a, double, all + 1);
    p->r = arena_array(a, double, all + 1);
    p->u = arena_array(a, double, all + 1);
    p->W = arena_array(a, double, (size_t)all *(size_t)all + 1);
    ok = ok && fclib_get(g, "vectors/q", H5T_NATIVE_DOUBLE, (size_t)m, p->b) &&
         fclib_get(g, "vectors/mu", H5T_NATIVE_DOUBLE, (size_t)(m / dim), mu) &&
         (!held || fclib_get(g, "vectors/s", H5T_NATIVE_DOUBLE, (size_t)held, p->b + m));
    if (ok && H5Lexists(file, "guesses", H5P_DEFAULT) > 0)
        ok = fclib_get(file, "guesses/1/r", H5T_NATIVE_DOUBLE, (size_t)m, p->r) &&
             (!held || fclib_get(file, "guesses/1/l", H5T_NATIVE_DOUBLE, (size_t)held, p->r + m));
    for (size_t k = 0; ok && k < e.n; k++) {
        ok = e.at[k].row >= 0 && e.at[k].row < all && e.at[k].col >= 0 && e.at[k].col < all;
        if (ok)
            p->W[(size_t)e.at[k].row * (size_t)all + (size_t)e.at[k].col] += e.at[k].x;
    }
    p->n = ok ? m / dim + held : 0;
    p->cone = arena_array(a, cone, p->n + 1);
    for (int c = 0; ok && c < m / dim; c++)
        p->cone[c] = (cone){ .kind = CONE_UNILATERAL, .d = dim - 1, .row = c * dim, .mu = mu[c] };
    for (int h = 0; ok && h < held; h++)
        p->cone[m / dim + h] = (cone){ .kind = CONE_BILATERAL, .row = m + h };
    for (int i = 0; i < all; i++)
        column[i] = i;
    p->all = column;
    if (g >= 0)
        H5Gclose(g);
    H5Fclose(file);
    return ok;
}
#endif
#endif
