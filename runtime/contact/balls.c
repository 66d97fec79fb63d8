/* balls: Gauss-Seidel sweeps over contacts of balls in space, as they lie in memory one after the other.  The
   rows of such a contact are n, t1, t2 for the centres, and R n x t for the turning of each ball: its block
   of W is diagonal with one entry for the normal and one for all tangents, so that both solve in closed form,
   and the frame t1, t2 is not needed at all.  A group whose rows are not these is left to others. */
#include <math.h>
#include <string.h>
#include "balls.h"
#include "impulses.h"
#include "sweeps.h"
#include "base/linalg.h"
#include "base/tolerances.h"

enum { WIDE = 12, NOWHERE = -1 };

/* what only the ends of a solve need: the frame, and the units of its rows */
typedef struct touch_frame {
    double t[2][3], unit_n, unit_t;
} touch_frame;

/* where a dof is: 0 to 2 of the place of a ball, 3 to 5 of its turning */
typedef struct ball_dof {
    int32_t ball, part;
} ball_dof;

typedef struct rolling {
    impulses *w;
    const int *at; /* contacts of the list */
    int n, nball;
    ball_dof *dof;  /* of all dofs of the model */
    int (*dofs)[2]; /* of each ball: first of its place, first of its turning */
    double *radius; /* with the sign of the turning; NAN: not known yet */
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

/* three dofs that follow each other and have one mass */
static bool in_threes(const impulses *w, const int *dof)
{
    return dof[1] == dof[0] + 1 && dof[2] == dof[0] + 2 && w->root[dof[0]] == w->root[dof[1]] &&
           w->root[dof[0]] == w->root[dof[2]];
}

/* the dofs of a contact in order, and its normal row */
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

/* known are those that were met in this walk */
static inline ball_dof dof_of(const rolling *x, int dof)
{
    return x->w->marked[dof] == x->w->mark ? x->dof[dof] : (ball_dof){ NOWHERE, 0 };
}

/* the ball whose place and turning begin at those dofs, a new one where they are not known; NOWHERE: they are
   parts of others */
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

/* Two balls on each other: four times three dofs.  The normal row has entries at places alone.  Which turning
   goes with which place does not matter to a contact, as long as all have it the same way. */
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

/* rows of a contact by ball: which, and for each its rows at places and at turnings */
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

/* n, t1, t2 of a contact from its rows at the first place */
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

/* rows at the turning of a ball: -R n x t; the radius is the same in all of its contacts */
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
    memset(t->bt, 0, sizeof t->bt);
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

/* the state of each ball, and what each contact divides by */
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
/* The exact solution of one contact with the others held; returns the largest change. */
static inline double touch_relax(const touch *c, ball *all, reaction *r, double *size)
{
    ball *a = &all[c->i], *b = &all[c->j];
    const double *n = c->n;
    double d[3] = { a->v[0] - b->v[0], a->v[1] - b->v[1], a->v[2] - b->v[2] };
    double un = dot3(n, d), to = r->n - (un + c->bn) * c->over_n;
    to = to > 0 ? to : 0;
    if (to == 0 && r->n == 0)
        return 0; /* open it was, open it stays; friction has no other bound than r_n */
    double dn = to - r->n, most = fabs(dn), p[3] = { dn * n[0], dn * n[1], dn * n[2] };
    if (c->mu > 0) {
        double s[3] = { a->s[0] + b->s[0], a->s[1] + b->s[1], a->s[2] + b->s[2] }, turn[3], rt[3], dt[3];
        cross3(s, n, turn);
        for (int k = 0; k < 3; k++)
            rt[k] = r->t[k] - (d[k] - un * n[k] - turn[k] + c->bt[k]) * c->over_t;
        double bound = c->mu * to, length2 = dot3(rt, rt);
        if (length2 > bound * bound) {
            double f = bound / sqrt(length2);
            for (int k = 0; k < 3; k++)
                rt[k] *= f;
        }
        for (int k = 0; k < 3; k++) {
            dt[k] = rt[k] - r->t[k];
            p[k] += dt[k];
            r->t[k] = rt[k];
            most = larger(most, fabs(dt[k]));
        }
        cross3(n, dt, turn);
        for (int k = 0; k < 3; k++) {
            a->s[k] -= a->spun * turn[k];
            b->s[k] -= b->spun * turn[k];
        }
    }
    r->n = to;
    for (int k = 0; k < 3; k++) {
        a->v[k] += a->light * p[k];
        b->v[k] -= b->light * p[k];
    }
    *size = larger(*size, to);
    return most;
}

static double heap_pass(void *of, bool down, double *size)
{
    heap *x = of;
    double most = 0, s = 0;
    arena_tick(x->scratch, 32 * (int64_t)x->n);
    for (int i = 0; i < x->n; i++) {
        int k = down ? x->n - 1 - i : i;
        double e = touch_relax(&x->touch[k], x->ball, &x->r[k], &s);
        if (e > most) {
            most = e;
            x->worst = k;
        }
    }
    x->swept += x->n;
    *size = s;
    return most;
}

double heap_solve(heap *x, int most, bool plain, double tol)
{
    int done;
    sweeper s = { .of = x,
                  .pass = heap_pass,
                  .part = { { .x = &x->r->n, .n = 4 * x->n },
                            { .x = x->ball[x->from].v, .n = 8 * x->nball } },
                  .eager = true };
    double residual = sweeps_run(&s, most, plain, tol, x->scratch, &done);
    x->sweeps += done;
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
