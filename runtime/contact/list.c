/* list: the contacts of a step problem, one after the other. */
#include <string.h>
#include "base/linalg.h"
#include "impulses.h"

void impulses_init(impulses *w, arena *a, arena *scratch, int n)
{
    *w = (impulses){ .a = a, .scratch = scratch, .n = n };
    w->move = arena_array(a, double, n);
    w->marked = arena_array(a, int, n);
    w->number = arena_array(a, int, n);
}

static void *moved(arena *a, const void *old, size_t used, size_t cap, size_t size)
{
    void *x = arena_array_(a, cap, size);
    if (used)
        memcpy(x, old, used * size);
    return x;
}

void list_room(impulses *w, int contacts, int rows, int dofs)
{
    contact_list *l = &w->act;
    if (contacts <= l->cap)
        return;
    size_t n = (size_t)l->n, c = 2 * (size_t)contacts + 16, m = (size_t)rows, d = (size_t)dofs,
           used = (size_t)l->rows;
    size_t at = l->dof_at ? (size_t)l->dof_at[n] : 0, J = l->J_at ? l->J_at[n] : 0,
           A = l->A_at ? l->A_at[n] : 0;
    bool old = l->cap > 0;
    if (!old)
        w->local = arena_array(w->a, double, d);
    l->cap = (int)c;
#define MOVE(x, used, all) (l->x) = moved(w->a, l->x, used, all, sizeof *l->x)
    MOVE(cone, n, c);
    MOVE(loose, n, c);
    MOVE(dof_at, old ? n + 1 : 0, c + 1);
    MOVE(J_at, old ? n + 1 : 0, c + 1);
    MOVE(A_at, old ? n + 1 : 0, c + 1);
    MOVE(dof, at, c * d);
    MOVE(J, J, c * d * m);
    MOVE(K, J, c * d * m);
    MOVE(A, A, c * m * m);
    MOVE(b, used, c * m);
    MOVE(r, used, c * m);
    MOVE(unit, used, c * m);
#undef MOVE
}

void list_take(impulses *w)
{
    contact_list *l = &w->act;
    int c = l->n++, m = list_rows(l, c), n = l->dof_at[c + 1] - l->dof_at[c];
    const double *J = l->J + l->J_at[c], *K = l->K + l->J_at[c];
    double *A = l->A + l->A_at[c];
    for (int a = 0; a < m; a++)
        for (int b = 0; b < m; b++)
            A[a * m + b] = vec_dot(J + a * n, K + b * n, n);
    l->J_at[c + 1] = l->J_at[c] + (size_t)(n * m);
    l->A_at[c + 1] = l->A_at[c] + (size_t)(m * m);
    l->rows += m;
}

/* Rows and entries of K at each dof, for v += K^T r dof by dof. */
static void list_turn(impulses *w)
{
    contact_list *l = &w->act;
    l->at_dof = arena_array(w->a, int, w->n + 2);
    l->row_of = arena_array(w->a, int, l->J_at[l->n]);
    l->K_of = arena_array(w->a, double, l->J_at[l->n]);
    for (int pass = 0; pass < 2; pass++) {
        for (int c = 0; c < l->n; c++) {
            int n = l->dof_at[c + 1] - l->dof_at[c];
            for (int k = 0; k < n; k++)
                for (int a = 0; a < list_rows(l, c); a++) {
                    int dof = l->dof[l->dof_at[c] + k];
                    if (pass == 0) {
                        l->at_dof[dof + 2]++;
                        continue;
                    }
                    int to = l->at_dof[dof + 1]++;
                    l->row_of[to] = l->cone[c].row + a;
                    l->K_of[to] = l->K[l->J_at[c] + (size_t)(a * n + k)];
                }
        }
        for (int i = 2; pass == 0 && i < w->n + 2; i++)
            l->at_dof[i] += l->at_dof[i - 1];
    }
}

bool list_fix(impulses *w)
{
    enum { CROWD = 12 }; /* contacts at a dof; more than these do not fit into a narrow band */
    const contact_list *l = &w->act;
    arena_pos mark = arena_mark(w->scratch);
    int *count = arena_array(w->scratch, int, w->n), most = 0;
    for (int k = 0; l->n && k < l->dof_at[l->n]; k++)
        if (++count[l->dof[k]] > most)
            most = count[l->dof[k]];
    w->fixed = false;
    if (l->n && most <= CROWD) {
        islands_find(&w->isl, l, w->n, true, w->a, w->scratch);
        for (int i = 0; i < w->isl.n; i++)
            if (w->isl.of[i].kb > most)
                most = w->isl.of[i].kb;
        w->fixed = most <= BAND_MOST;
    }
    if (w->fixed)
        list_turn(w);
    arena_release(w->scratch, mark);
    return w->fixed;
}
