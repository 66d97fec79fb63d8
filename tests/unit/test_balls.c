/* Sweeps over contacts of balls in space: a heap of unequal balls on a floor and against a wall, solved to
   rounding; the laws are checked with rows that the solver does not use. Also rows that do not belong to
   balls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "contact/impulses.h"

enum { BALLS = 4, DOFS = 6 * BALLS, CONTACTS = 8 };

static const double radius[BALLS] = { 0.01, 0.013, 0.008, 0.011 }, mass[BALLS] = { 1, 2, 0.5, 1.3 };

static void cross(const double *a, const double *b, double *c)
{
    for (int k = 0; k < 3; k++)
        c[k] = a[(k + 1) % 3] * b[(k + 2) % 3] - a[(k + 2) % 3] * b[(k + 1) % 3];
}

/* positions are dofs 0..3 BALLS, rotations the dofs after them; rotations count in the sense opposite to the
   usual one: a sign of the model */
static int place(int ball)
{
    return 3 * ball;
}

static int turning(int ball)
{
    return 3 * (BALLS + ball);
}

static void entry(double (*J)[DOFS], int row, int ball, double side, const double *t, const double *n)
{
    double turn[3];
    cross(n, t, turn);
    for (int k = 0; k < 3; k++) {
        J[row][place(ball) + k] = side * t[k];
        if (row > 0)
            J[row][turning(ball) + k] = radius[ball] * turn[k];
    }
}

/* Contact of ball i with j, or with a plane if j < 0, along n; d = 0: frictionless. unit: of all its rows.
   Dofs without an entry are omitted in contacts with planes, and all dofs are in an unusual order. */
static void contact(impulses *w, int i, int j, const double *n, int d, double mu, double unit)
{
    contact_list *l = &w->act;
    int c = l->n, at = l->dof_at[c], some = fabs(n[0]) < 0.6 ? 0 : 1;
    double J[3][DOFS] = { 0 }, e[3] = { some == 0, some == 1, 0 }, t[2][3], length = 0;
    cross(n, e, t[0]);
    for (int k = 0; k < 3; k++)
        length += t[0][k] * t[0][k];
    for (int k = 0; k < 3; k++)
        t[0][k] /= sqrt(length);
    cross(n, t[0], t[1]);
    for (int a = 0; a <= d; a++) {
        const double *row = a == 0 ? n : t[a - 1];
        entry(J, a, i, 1, row, n);
        if (j >= 0)
            entry(J, a, j, -1, row, n);
    }
    int dofs = 0, order[DOFS];
    for (int k = 0; k < DOFS; k++) {
        int dof = (5 * k + 3) % DOFS, body = dof % (3 * BALLS) / 3;
        bool some_entry = J[0][dof] != 0 || J[1][dof] != 0 || J[2][dof] != 0;
        bool turns = dof >= 3 * BALLS;
        if ((body == i || body == j) && (j < 0 ? some_entry : d > 0 || !turns))
            order[dofs++] = dof;
    }
    l->cone[c] = (cone){ .kind = CONE_UNILATERAL, .d = d, .row = l->rows, .mu = mu };
    l->dof_at[c + 1] = at + dofs;
    for (int k = 0; k < dofs; k++) {
        l->dof[at + k] = order[k];
        for (int a = 0; a <= d; a++) {
            double s = w->root[order[k]];
            l->J[l->J_at[c] + (size_t)(a * dofs + k)] = unit * J[a][order[k]];
            l->K[l->J_at[c] + (size_t)(a * dofs + k)] = unit * J[a][order[k]] * s * s;
        }
    }
    for (int a = 0; a <= d; a++)
        l->b[l->rows + a] = a == 0 ? 0.001 * c : 0.02 * a;
    list_take(w);
}

static void heap(impulses *w, double *root, double *v, arena *a, arena *scratch)
{
    static const double up[3] = { 0, 0, 1 }, side[3] = { 1, 0, 0 };
    for (int b = 0; b < BALLS; b++)
        for (int k = 0; k < 3; k++) {
            root[place(b) + k] = 1 / sqrt(mass[b]);
            root[turning(b) + k] = 1 / sqrt(0.4 * mass[b] * radius[b] * radius[b]);
        }
    impulses_init(w, a, scratch, DOFS);
    list_room(w, CONTACTS, 3, DOFS);
    w->root = root;
    w->v1 = v;
    w->tol = 1e-14;
    contact(w, 0, -1, up, 2, 0.5, 1);
    contact(w, 1, -1, up, 2, 0.5, 0.7);
    contact(w, 2, -1, up, 2, 0.1, 1);
    contact(w, 0, -1, side, 0, 0, 1);
    contact(w, 1, 0, (double[]){ 0.96, 0, 0.28 }, 2, 0.3, 1);
    contact(w, 2, 1, (double[]){ 0.36, 0.48, 0.8 }, 2, 0.4, 1.3);
    contact(w, 3, 0, (double[]){ 0.48, 0.6, 0.64 }, 2, 0.2, 1);
    contact(w, 3, 1, (double[]){ -0.6, 0, 0.8 }, 2, 0.6, 1);
    for (int k = 0; k < DOFS; k++)
        v[k] = k % 3 == 2 && k < 3 * BALLS ? -0.5 : 0.1 * sin(k);
}

static void all(int *at)
{
    for (int c = 0; c < CONTACTS; c++)
        at[c] = c;
}

static void law_holds(const impulses *w, int c)
{
    const contact_list *l = &w->act;
    const cone *o = &l->cone[c];
    int m = cone_rows(o);
    const double *r = l->r + o->row, *A = l->A + l->A_at[c];
    double u[3] = { 0 }, b[3] = { 0 }, scale = 0;
    for (int a = 0; a < m; a++) {
        u[a] = b[a] = list_rate(l, c, a, w->v1) + l->b[o->row + a];
        for (int k = 0; k < m; k++)
            b[a] -= A[a * m + k] * r[k];
    }
    double e = cone_defect(o, r, u, b, A[0], A[m * m - 1], &scale);
    assert_true(e <= 1e-11 * scale);
}

/* Fills memory, so that the next allocations do not contain zeros. */
static void litter(arena *a)
{
    enum { MUCH = 1 << 16 };
    arena_pos mark = arena_mark(a);
    memset(arena_alloc(a, MUCH), 0x40, MUCH);
    arena_release(a, mark);
}

static void heap_is_solved(void **state)
{
    (void)state;
    arena *a = arena_new(&allocator_libc, NULL), *scratch = arena_new(&allocator_libc, NULL);
    impulses w;
    double root[DOFS], v[DOFS], free[DOFS], residual = 1;
    int at[CONTACTS], worst = 0, pushing = 0, slipping = 0;
    heap(&w, root, v, a, scratch);
    memcpy(free, v, sizeof v);
    all(at);
    litter(scratch);
    assert_true(balls_solve(&w, at, CONTACTS, 10000, true, &worst, &residual));
    assert_true(residual <= 1e-14);
    for (int c = 0; c < CONTACTS; c++) {
        const double *r = w.act.r + w.act.cone[c].row;
        law_holds(&w, c);
        list_push(&w.act, c, r, free);
        pushing += r[0] > 0;
        slipping += w.act.cone[c].d && r[0] > 0 && hypot(r[1], r[2]) >= (1 - 1e-12) * w.act.cone[c].mu * r[0];
    }
    for (int k = 0; k < DOFS; k++)
        assert_true(fabs(free[k] - v[k]) <= 1e-12 * (1 + fabs(v[k])));
    assert_true(pushing >= 5 && slipping >= 1 && slipping < pushing);
    arena_free(scratch);
    arena_free(a);
}

/* With one wrong entry these are not balls, and nothing changes. */
static void others_are_left(void **state)
{
    (void)state;
    arena *a = arena_new(&allocator_libc, NULL), *scratch = arena_new(&allocator_libc, NULL);
    impulses w;
    double root[DOFS], v[DOFS], kept[DOFS], residual = 1;
    int at[CONTACTS], worst = 0;
    heap(&w, root, v, a, scratch);
    all(at);
    memcpy(kept, v, sizeof v);
    for (int c = 0; c < CONTACTS; c++) {
        double *J = w.act.J + w.act.J_at[c] + (w.act.dof_at[c + 1] - w.act.dof_at[c]) - 1;
        if (c == 3)
            continue; /* a row with one entry fits a ball for any value */
        *J += 1e-6;
        assert_false(balls_solve(&w, at, CONTACTS, 10, true, &worst, &residual));
        *J -= 1e-6;
    }
    w.act.cone[4].radius = 1;
    assert_false(balls_solve(&w, at, CONTACTS, 10, true, &worst, &residual));
    w.act.cone[4].radius = 0;
    w.root = NULL;
    assert_false(balls_solve(&w, at, CONTACTS, 10, true, &worst, &residual));
    assert_memory_equal(kept, v, sizeof v);
    arena_free(scratch);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(heap_is_solved), cmocka_unit_test(others_are_left) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
