/* A contact problem as plain text, for tests and benches: numbers with all digits, W by its upper triangle.
       contacts N rows M tolerance T least L
       cone KIND TANGENTS MU RADIUS                  (N lines, rows one after the other)
       b ...    r ...                                (M numbers each; r is the initial guess)
       w ROW COUNT COLUMN VALUE ...                  (M lines, columns from ROW on)
   KIND is one of unilateral, bilateral, given. */
#ifndef CDL_PROBLEM_TEXT_H
#define CDL_PROBLEM_TEXT_H
#include <stdio.h>
#include <string.h>
#include "contact/problem.h"

static const char *const problem_kinds[] = { "unilateral", "bilateral", "given" };

static inline void problem_row_write(FILE *to, const contact_problem *p, int c, int j)
{
    int row = p->cone[c].row + j, n = problem_width(p, c), count = 0;
    const double *v = p->val + p->at[c] + (size_t)j * (size_t)n;
    const int *col = p->col + p->start[c];
    for (int k = 0; k < n; k++)
        count += col[k] >= row && v[k] != 0;
    fprintf(to, "w %d %d", row, count);
    for (int k = 0; k < n; k++)
        if (col[k] >= row && v[k] != 0)
            fprintf(to, " %d %.17g", col[k], v[k]);
    fputc('\n', to);
}

static inline void problem_write(FILE *to, const contact_problem *p, double tol)
{
    fprintf(to, "contacts %d rows %d tolerance %.17g least %.17g\n", p->n, p->m, tol, p->least);
    for (int c = 0; c < p->n; c++)
        fprintf(to, "cone %s %d %.17g %.17g\n", problem_kinds[p->cone[c].kind], p->cone[c].d, p->cone[c].mu,
                p->cone[c].radius);
    const double *vectors[] = { p->b, p->r };
    for (int k = 0; k < 2; k++) {
        fputs(k ? "r" : "b", to);
        for (int i = 0; i < p->m; i++)
            fprintf(to, " %.17g", vectors[k][i]);
        fputc('\n', to);
    }
    for (int c = 0; c < p->n; c++)
        for (int j = 0; j < cone_rows(&p->cone[c]); j++)
            problem_row_write(to, p, c, j);
}

/* Entries including the lower triangle; rows of a contact have the union of their columns. */
typedef struct problem_number {
    int row, col;
    double value;
} problem_number;

static inline void problem_assemble(contact_problem *p, const problem_number *e, size_t ne, arena *a)
{
    int m = p->m, *contact_of = arena_array(a, int, m), *place = arena_array(a, int, m), at = 0;
    int *count = arena_array(a, int, m + 2);
    for (int c = 0; c < p->n; c++)
        for (int j = 0; j < cone_rows(&p->cone[c]); j++)
            contact_of[p->cone[c].row + j] = c;
    for (size_t k = 0; k < ne; k++) {
        count[e[k].row + 2]++;
        if (e[k].row != e[k].col)
            count[e[k].col + 2]++;
    }
    for (int i = 2; i < m + 2; i++)
        count[i] += count[i - 1];
    int *col_of = arena_array(a, int, count[m + 1] + 1);
    double *value_of = arena_array(a, double, count[m + 1] + 1);
    for (size_t k = 0; k < ne; k++)
        for (int side = 0; side < 1 + (e[k].row != e[k].col); side++) {
            int i = side ? e[k].col : e[k].row, to = count[i + 1]++;
            col_of[to] = side ? e[k].row : e[k].col;
            value_of[to] = e[k].value;
        }
    int *start = arena_array(a, int, p->n + 1), *col = arena_array(a, int, 4 * (size_t)count[m] + (size_t)m);
    size_t *first = arena_array(a, size_t, p->n), all = 0;
    for (int i = 0; i < m; i++)
        place[i] = -1;
    for (int c = 0; c < p->n; c++) {
        int row = p->cone[c].row, rows = cone_rows(&p->cone[c]);
        start[c] = at;
        for (int i = row; i < row + rows; i++)
            for (int k = count[i]; k < count[i + 1]; k++)
                place[col_of[k]] = c;
        for (int j = 0; j < m; j++)
            if (place[j] == c)
                col[at++] = j;
        first[c] = all;
        all += (size_t)rows * (size_t)(at - start[c]);
    }
    start[p->n] = at;
    double *val = arena_array(a, double, all);
    for (int c = 0; c < p->n; c++) {
        int row = p->cone[c].row, wide = at = start[c + 1] - start[c];
        for (int k = 0; k < wide; k++)
            place[col[start[c] + k]] = k;
        for (int i = row; i < row + cone_rows(&p->cone[c]); i++)
            for (int k = count[i]; k < count[i + 1]; k++)
                val[first[c] + (size_t)(i - row) * (size_t)wide + (size_t)place[col_of[k]]] = value_of[k];
    }
    p->start = start;
    p->col = col;
    p->at = first;
    p->val = val;
}

/* False: the file has another format. */
static inline bool problem_read(FILE *from, contact_problem *p, double *tol, arena *a)
{
    *p = (contact_problem){ 0 };
    if (fscanf(from, "contacts %d rows %d tolerance %lg least %lg ", &p->n, &p->m, tol, &p->least) != 4)
        return false;
    cone *cones = arena_array(a, cone, p->n);
    for (int c = 0, row = 0; c < p->n; c++) {
        char kind[16];
        if (fscanf(from, "cone %15s %d %lg %lg ", kind, &cones[c].d, &cones[c].mu, &cones[c].radius) != 4)
            return false;
        for (int k = 0; k < 3; k++)
            if (!strcmp(kind, problem_kinds[k]))
                cones[c].kind = (cone_kind)k;
        cones[c].row = row;
        row += cone_rows(&cones[c]);
    }
    p->cone = cones;
    double *b = arena_array(a, double, p->m);
    p->r = arena_array(a, double, p->m);
    for (int k = 0; k < 2; k++) {
        char name;
        if (fscanf(from, " %c", &name) != 1 || name != "br"[k])
            return false;
        for (int i = 0; i < p->m; i++)
            if (fscanf(from, "%lg", k ? &p->r[i] : &b[i]) != 1)
                return false;
    }
    p->b = b;
    vec(problem_number) e = { 0 };
    for (int i = 0; i < p->m; i++) {
        int row, count;
        if (fscanf(from, " w %d %d", &row, &count) != 2 || row != i)
            return false;
        for (int k = 0; k < count; k++) {
            problem_number x = { .row = row };
            if (fscanf(from, "%d %lg", &x.col, &x.value) != 2 || x.col < row || x.col >= p->m)
                return false;
            *vec_push(a, &e) = x;
        }
    }
    problem_assemble(p, e.at, e.n, a);
    return true;
}
#endif
