/* balls: Gauss-Seidel sweeps over contacts of balls in space that are contiguous in memory. The rows of such
   a contact are n, t1, t2 for the centres, and R n x t for the rotation of each ball: its block of W is
   diagonal with one entry for the normal and one for all tangents, so that both are solved in closed form,
   and the frame t1, t2 is not needed. A group with other rows is left to other solvers. */
#include <math.h>
#include <string.h>
#include "balls.h"
#include "base/four.h"
#include "impulses.h"
#include "base/linalg.h"
#include "base/tolerances.h"

enum { WIDE = 12, NOWHERE = -1 };

/* Needed only at the start and end of a solve: the frame, and the units of its rows. */
typedef struct touch_frame {
    double t[2][3], unit_n, unit_t;
} touch_frame;

/* The part of a ball that a dof is: 0 to 2 position, 3 to 5 rotation. */
typedef struct ball_dof {
    int32_t ball, part;
} ball_dof;

typedef struct rolling {
    impulses *w;
    const int *at; /* contacts of the list */
    int n, nball;
    ball_dof *dof;  /* for all dofs of the model */
    int (*dofs)[2]; /* for each ball: first dof of its position, first of its rotation */
    double *radius; /* with the sign of the rotation; NAN: not known yet */
    ball *ball;
    touch *touch;
    touch_frame *frame;
    reaction *r;
} rolling;

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

/* ---- are they balls? ---- */
static bool law_fits(const cone *o)
{
    return o->kind == CONE_UNILATERAL && (o->d == 0 || o->d == 2) && !o->dir && !o->of_speed &&
           o->radius == 0;
}

/* Three consecutive dofs with one mass. */
static bool in_threes(const impulses *w, const int *dof)
{
    return dof[1] == dof[0] + 1 && dof[2] == dof[0] + 2 && w->root[dof[0]] == w->root[dof[1]] &&
           w->root[dof[0]] == w->root[dof[2]];
}

/* The dofs of a contact in order, and its normal row. */
static void dofs_in_order(const contact_list *l, int c, int *dof, double *N)
{
    const int *from = l->dof + l->dof_at[c];
    const double *row = l->J + l->J_at[c];
    for (int k = 0; k < WIDE; k++) {
        int i = k;
        for (; i > 0 && dof[i - 1] > from[k]; i--) {
            dof[i] = dof[i - 1];
            N[i] = N[i - 1];
        }
        dof[i] = from[k];
        N[i] = row[k];
    }
}

/* Known are dofs that were visited in this search. */
static inline ball_dof dof_of(const rolling *x, int dof)
{
    return x->w->marked[dof] == x->w->mark ? x->dof[dof] : (ball_dof){ NOWHERE, 0 };
}

/* The ball whose position and rotation begin at these dofs; a new one if they are unknown; NOWHERE: they are
   parts of other balls. */
static int ball_at(rolling *x, int place, int turning)
{
    ball_dof p = dof_of(x, place), a = dof_of(x, turning);
    if (p.ball != NOWHERE || a.ball != NOWHERE)
        return p.ball == a.ball && p.part == 0 && a.part == 3 ? p.ball : NOWHERE;
    int b = x->nball++;
    for (int k = 0; k < 3; k++) {
        x->w->marked[place + k] = x->w->marked[turning + k] = x->w->mark;
        x->dof[place + k] = (ball_dof){ b, k };
        x->dof[turning + k] = (ball_dof){ b, 3 + k };
    }
    x->dofs[b][0] = place;
    x->dofs[b][1] = turning;
    x->radius[b] = NAN;
    return b;
}

/* Two balls in contact: four times three dofs. The normal row has entries only at positions. The assignment
   of rotations to positions is arbitrary for a single contact, but must be the same for all contacts. */
static bool pair_find(rolling *x, int c)
{
    const contact_list *l = &x->w->act;
    int dof[WIDE], place[2], turning[2], np = 0, nt = 0;
    double N[WIDE];
    dofs_in_order(l, c, dof, N);
    for (int k = 0; k < WIDE; k += 3) {
        bool moves = N[k] != 0 || N[k + 1] != 0 || N[k + 2] != 0;
        if (!in_threes(x->w, dof + k) || (moves ? np : nt) == 2)
            return false;
        if (moves)
            place[np++] = dof[k];
        else
            turning[nt++] = dof[k];
    }
    return np == 2 && ball_at(x, place[0], turning[0]) != NOWHERE &&
           ball_at(x, place[1], turning[1]) != NOWHERE;
}

/* Rows of a contact by ball: which balls, and for each its rows at position and rotation. */
typedef struct touch_rows {
    int n, ball[2];
    double at[2][3][6];
} touch_rows;

static bool rows_find(const rolling *x, int c, touch_rows *out)
{
    const contact_list *l = &x->w->act;
    int wide = l->dof_at[c + 1] - l->dof_at[c], rows = list_rows(l, c);
    const int *dof = l->dof + l->dof_at[c];
    const double *J = l->J + l->J_at[c];
    *out = (touch_rows){ 0 };
    for (int k = 0; k < wide; k++) {
        ball_dof d = dof_of(x, dof[k]);
        int b = 0;
        while (b < out->n && out->ball[b] != d.ball)
            b++;
        if (d.ball == NOWHERE || b == 2)
            return false;
        if (b == out->n)
            out->ball[out->n++] = d.ball;
        for (int a = 0; a < rows; a++)
            out->at[b][a][d.part] = J[a * wide + k];
    }
    return out->n > 0;
}

static bool zero3(const double *a, double size)
{
    return same3(a, 0, a, size);
}

/* n, t1, t2 of a contact from its rows at the first position. */
static bool frame_find(const touch_rows *rows, int tangents, touch *t, touch_frame *f)
{
    const double(*R)[6] = rows->at[0];
    f->unit_n = sqrt(dot3(R[0], R[0]));
    f->unit_t = tangents ? sqrt(dot3(R[1], R[1])) : 1;
    if (!(f->unit_n > 0) || !(f->unit_t > 0))
        return false;
    for (int k = 0; k < 3; k++) {
        t->n[k] = R[0][k] / f->unit_n;
        for (int a = 0; a < tangents; a++)
            f->t[a][k] = R[1 + a][k] / f->unit_t;
    }
    if (!tangents)
        return true;
    double third[3];
    cross3(t->n, f->t[0], third);
    double side = dot3(third, f->t[1]) < 0 ? -1 : 1;
    return fabs(dot3(t->n, f->t[0])) <= FACTOR_SAME && same3(f->t[1], side, third, 1);
}

/* Rows at the rotation of a ball: -R n x t; the radius is the same in all of its contacts. */
static bool turning_fits(rolling *x, const touch_rows *rows, int b, int tangents, const touch *t,
                         const touch_frame *f)
{
    double *radius = &x->radius[rows->ball[b]];
    double size = fabs(*radius) * f->unit_t;
    for (int a = 0; a < tangents; a++) {
        double across[3];
        const double *Z = rows->at[b][1 + a] + 3;
        cross3(t->n, f->t[a], across);
        if (isnan(*radius)) {
            *radius = -dot3(Z, across) / f->unit_t;
            size = fabs(*radius) * f->unit_t;
        }
        if (!same3(Z, -*radius * f->unit_t, across, size))
            return false;
    }
    return zero3(rows->at[b][0] + 3, 0);
}

static bool touch_find(rolling *x, int k)
{
    const contact_list *l = &x->w->act;
    int c = x->at[k], tangents = l->cone[c].d;
    const double *add = l->b + l->cone[c].row, *r = l->r + l->cone[c].row;
    touch *t = &x->touch[k];
    touch_frame *f = &x->frame[k];
    touch_rows rows;
    *t = (touch){ .none = 0 };
    if (!rows_find(x, c, &rows) || !frame_find(&rows, tangents, t, f) ||
        !turning_fits(x, &rows, 0, tangents, t, f))
        return false;
    for (int a = 0; rows.n == 2 && a <= tangents; a++)
        if (!same3(rows.at[1][a], -1, rows.at[0][a], a ? f->unit_t : f->unit_n))
            return false;
    if (rows.n == 2 && !turning_fits(x, &rows, 1, tangents, t, f))
        return false;
    t->i = rows.ball[0];
    t->j = rows.n == 2 ? rows.ball[1] : NOWHERE;
    t->bn = add[0] / f->unit_n;
    t->mu = tangents ? l->cone[c].mu * f->unit_t / f->unit_n : 0;
    x->r[k].n = r[0] * f->unit_n;
    for (int i = 0; tangents && i < 3; i++) {
        t->bt[i] = (add[1] * f->t[0][i] + add[2] * f->t[1][i]) / f->unit_t;
        x->r[k].t[i] = (r[1] * f->t[0][i] + r[2] * f->t[1][i]) * f->unit_t;
    }
    return true;
}

/* The state of each ball, and the divisors of each contact. */
static bool balls_put(rolling *x)
{
    const impulses *w = x->w;
    for (int b = 0; b < x->nball; b++) {
        ball *o = &x->ball[b];
        double R = x->radius[b], root = w->root[x->dofs[b][0]], turn = R * w->root[x->dofs[b][1]];
        if (!(fabs(R) > 0))
            return false;
        for (int k = 0; k < 3; k++) {
            o->v[k] = w->v1[x->dofs[b][0] + k];
            o->s[k] = R * w->v1[x->dofs[b][1] + k];
        }
        o->light = root * root;
        o->spun = turn * turn;
    }
    for (int k = 0; k < x->n; k++) {
        touch *t = &x->touch[k];
        t->j = t->j == NOWHERE ? x->nball : t->j;
        double W = x->ball[t->i].light + x->ball[t->j].light;
        t->over_n = 1 / W;
        t->over_t = 1 / (W + x->ball[t->i].spun + x->ball[t->j].spun);
    }
    return true;
}

static bool balls_find(rolling *x)
{
    const impulses *w = x->w;
    const contact_list *l = &w->act;
    arena *a = w->scratch;
    int n = x->n, pairs = 0;
    for (int k = 0; k < n; k++) {
        if (!law_fits(&l->cone[x->at[k]]))
            return false;
        pairs += l->dof_at[x->at[k] + 1] - l->dof_at[x->at[k]] == WIDE && l->cone[x->at[k]].d == 2;
    }
    if (!w->root || pairs == 0)
        return false;
    x->dof = arena_alloc(a, (size_t)w->n * sizeof *x->dof);
    x->dofs = arena_alloc(a, (size_t)(2 * pairs) * sizeof *x->dofs);
    x->radius = arena_array(a, double, 2 * pairs);
    x->touch = arena_alloc(a, (size_t)n * sizeof *x->touch);
    x->frame = arena_alloc(a, (size_t)n * sizeof *x->frame);
    x->r = arena_array(a, reaction, n);
    x->w->mark++;
    for (int k = 0; k < n; k++) {
        int c = x->at[k];
        if (l->dof_at[c + 1] - l->dof_at[c] == WIDE && l->cone[c].d == 2 && !pair_find(x, c))
            return false;
    }
    for (int k = 0; k < n; k++)
        if (!touch_find(x, k))
            return false;
    x->ball = arena_array(a, ball, (size_t)x->nball + 1);
    return balls_put(x);
}

/* ---- sweeps ---- */
#define TURNED(a) __builtin_shufflevector(a, a, 1, 2, 0, 3)

/* The exact solution of one contact with the others held; returns the largest change. The fourth number of
   normals is 0, so that the fourth number of balls, the inverse mass, does not change. */
INLINE double touch_relax(const touch *c, ball *all, reaction *r, double *size)
{
    ball *a = &all[c->i], *b = &all[c->j];
    const four n = *(const four *)c->n;
    four va = *four_at(a->v), vb = *four_at(b->v), d = va - vb, along = n * d;
    double un = along[0] + along[1] + along[2], to = r->n - (un + c->bn) * c->over_n;
    to = to > 0 ? to : 0;
    if (to == 0 && r->n == 0)
        return 0; /* it was open and stays open; friction has no other bound than that of r_n */
    double dn = to - r->n, most = fabs(dn);
    four p = dn * n;
    if (c->mu > 0) {
        const four_bits three = { -1, -1, -1, 0 };
        four sa = *four_at(a->s), sb = *four_at(b->s), s = sa + sb, was = *four_at(r->t), nt = TURNED(n);
        four turn = s * nt - TURNED(s) * n, slip = d - un * n - TURNED(turn) + *(const four *)c->bt;
        four rt = (four)((four_bits)(was - slip * c->over_t) & three);
        four square = rt * rt;
        double bound = c->mu * to, length2 = square[0] + square[1] + square[2];
        if (length2 > bound * bound)
            rt *= bound / sqrt(length2);
        four dt = rt - (four)((four_bits)was & three);
        p += dt;
        for (int k = 0; k < 3; k++)
            most = larger(most, fabs(dt[k]));
        *four_at(r->t) = rt;
        four across = n * TURNED(dt) - nt * dt;
        across = TURNED(across);
        *four_at(a->s) = sa - a->spun * across;
        *four_at(b->s) = sb - b->spun * across;
    }
    r->n = to;
    *four_at(a->v) = va + a->light * p;
    *four_at(b->v) = vb - b->light * p;
    *size = larger(*size, to);
    return most;
}

/* before: stores the previous reactions unless NULL. */
INLINE double heap_pass(heap *x, bool down, four *before, double *size)
{
    double most = 0, s = 0;
    for (int i = 0; i < x->n; i++) {
        int k = down ? x->n - 1 - i : i;
        if (before)
            before[k] = *four_at(x->r[k].t);
        double e = touch_relax(&x->touch[k], x->ball, &x->r[k], &s);
        if (e > most) {
            most = e;
            x->worst = k;
        }
    }
    *size = s;
    return most;
}

/* Groups of four numbers that passes change, their values before a sweep, and their conjugate direction. */
typedef struct trail {
    four *x, *before, *direction;
    int n;
} trail;

static trail trail_new(double *x, int n, arena *a)
{
    trail t = { four_at(x), NULL, NULL, n };
    t.before = arena_alloc(a, (size_t)n * sizeof *t.before);
    t.direction = arena_array(a, four, n);
    return t;
}

INLINE void trail_keep(const trail *t)
{
    memcpy(t->before, t->x, (size_t)t->n * sizeof *t->x);
}

INLINE double trail_change2(const trail *t)
{
    four sum = { 0 };
    for (int k = 0; k < t->n; k++) {
        four g = t->x[k] - t->before[k];
        sum += g * g;
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

INLINE void trail_ahead(const trail *t, double beta, bool go)
{
    for (int k = 0; k < t->n; k++) {
        four d = beta * t->direction[k], g = t->x[k] - t->before[k];
        t->direction[k] = d + g;
        if (!go)
            t->direction[k] = (four){ 0 };
        t->x[k] += d;
    }
}

/* Sweeps as in sweeps_run. */
INLINE double heap_run(heap *x, int most, bool plain, double tol)
{
    double before = 0, size = 0, change = INFINITY;
    trail r = trail_new(x->r->t, plain ? 0 : x->n, x->scratch),
          rates = trail_new(x->ball[x->from].v, plain ? 0 : 2 * x->nball, x->scratch);
    for (int done = 0; done < most; done++) {
        arena_tick(x->scratch, 64 * (int64_t)x->n);
        trail_keep(&rates);
        change = heap_pass(x, false, plain ? NULL : r.before, &size);
        x->swept += x->n;
        x->sweeps++;
        if (change > tol * size) {
            change = larger(change, heap_pass(x, true, NULL, &size));
            x->swept += x->n;
        }
        if (change <= tol * size || size == 0)
            break;
        double g2 = plain ? 0 : trail_change2(&r);
        bool go = before > 0 && g2 <= before;
        double beta = go ? g2 / before : 0;
        before = go || before == 0 ? g2 : 0;
        trail_ahead(&r, beta, go);
        trail_ahead(&rates, beta, go);
    }
    return size > 0 ? change / size : 0;
}

static double run_base(heap *x, int most, bool plain, double tol)
{
    return heap_run(x, most, plain, tol);
}

FOUR_FAST static double run_wide(heap *x, int most, bool plain, double tol)
{
    return heap_run(x, most, plain, tol);
}

double heap_solve(heap *x, int most, bool plain, double tol)
{
    arena_pos mark = arena_mark(x->scratch);
    double residual = (FOUR_FAST_HERE ? run_wide : run_base)(x, most, plain, tol);
    arena_release(x->scratch, mark);
    return residual;
}

static void balls_close(const rolling *x)
{
    impulses *w = x->w;
    contact_list *l = &w->act;
    for (int k = 0; k < x->n; k++) {
        const cone *o = &l->cone[x->at[k]];
        const touch_frame *f = &x->frame[k];
        double *r = l->r + o->row;
        r[0] = x->r[k].n / f->unit_n;
        for (int a = 0; a < o->d; a++)
            r[1 + a] = dot3(f->t[a], x->r[k].t) / f->unit_t;
    }
    for (int b = 0; b < x->nball; b++)
        for (int k = 0; k < 3; k++) {
            w->v1[x->dofs[b][0] + k] = x->ball[b].v[k];
            w->v1[x->dofs[b][1] + k] = x->ball[b].s[k] / x->radius[b];
        }
}

bool balls_solve(impulses *w, const int *at, int n, int most, bool plain, int *worst, double *residual)
{
    rolling x = { .w = w, .at = at, .n = n };
    if (!balls_find(&x))
        return false;
    heap h = { .n = n,
               .nball = x.nball,
               .ball = x.ball,
               .touch = x.touch,
               .r = x.r,
               .worst = -1,
               .scratch = w->scratch };
    *residual = heap_solve(&h, most, plain, w->tol);
    w->iterations += 2 * h.sweeps;
    w->swept += h.swept;
    if (h.worst >= 0)
        *worst = at[h.worst];
    balls_close(&x);
    return true;
}
