/* Files with contact problems in FCLIB's layout (io/problems.h): written as cdl writes them, read with
   libhdf5 if it is available: HAVE_HDF5, 2 for Debian's directories. */
#ifndef CDL_PROBLEM_FCLIB_H
#define CDL_PROBLEM_FCLIB_H
#ifdef HAVE_HDF5
#if HAVE_HDF5 == 2
#include <hdf5/serial/hdf5.h>
#else
#include <hdf5.h>
#endif
#include <stdio.h>
#include "io/problems.h"

/* ---- numbers ---- */
/* Reads a dataset of n numbers; false: there is none of that length. */
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

/* ---- matrices ---- */
typedef struct fclib_entry {
    int row, col;
    double x;
} fclib_entry;
typedef vec(fclib_entry) fclib_entries;

/* Adds the entries of a matrix stored by columns, shifted by (down, right); turned: transposed. */
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
/* False: it does not have this form, or writing failed. */
static inline bool problem_fclib_write(const char *path, const contact_problem *p, const char *title,
                                       arena *a)
{
    text bytes = { .a = a };
    step_problem x = { .p = *p };
    if (!problem_fclib(&x, title, &bytes, a))
        return false;
    FILE *to = fopen(path, "wb");
    bool ok = to && fwrite(bytes.at, 1, bytes.n, to) == bytes.n;
    return to && fclose(to) == 0 && ok;
}

/* Contacts in order, then a frictionless contact for each equality; W in full. */
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
