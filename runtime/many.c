/* A step from q, v:  v1 = v + h M^-1 f + M^-1 J^T r with  u_n + gap/h >= 0  (or u_n >= -e u_n^- where the step would meet the surface), solved by block
   Gauss-Seidel with conjugate directions; q1 = q + h v1 where reactions act, the mean rate elsewhere; then gaps that are still negative are pushed open.
   Masses are diagonal and constant; forces that depend on the state are taken in the middle of the step, explicitly. */
#include "many.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "proximal.h"
#include "system.h"

enum { LOCAL = 24, MAX_ROWS = 1 + MAX_SLIP };       /* dofs of one contact at most */

/* Where the rows of a family's members go: local dof k is global slot_at(&dof[k], index). */
typedef struct pattern {
    family *fam;
    int n;
    slot_map dof[LOCAL];
    int *grad, *slip;                   /* local dof of each output */
    int first;                          /* index whose points are of kind A (near families); -1: all members are looked at */
    double reach;                       /* largest distance that counts as touching */
    /* near pairs found last: members with a gap below the skin */
    vec(int32_t) pair;                  /* index 0 and 1, one after the other */
    int64_t *row_start;                 /* member number of the first pair of each index 0 */
    int32_t lo0, n0, lo1, n1;
} pattern;

typedef struct active {
    pattern *pat;
    int64_t member;
    int32_t index[MAX_INDEX];
    int n, d, dof[LOCAL];
    double J[MAX_ROWS * LOCAL], K[MAX_ROWS * LOCAL];    /* rows, and rows times M^-1 */
    double A[MAX_ROWS * MAX_ROWS];                      /* J K^T */
    double b[MAX_ROWS];                                 /* added to J v: rates of surfaces, gap/h, restitution */
    double r[MAX_ROWS], p[MAX_ROWS];                    /* impulse; conjugate direction */
    double off[MAX_ROWS], gap, un;
    double l, l0, lp;                                   /* move that opens it, as before, its conjugate direction */
    cone cone;
    bool was;                                           /* pressed in the last step too */
} active;

typedef struct many {
    const program *p;
    const run_options *o;
    results *r;
    system_t *s;
    arena *a;
    int n;
    double h, tol, t, step;
    double *q, *v, *q1, *v1, *f, *minv, *M, *qmid, *seen, *x;
    uint8_t *touched;
    pattern *pat;
    vec(active) act, old;
    int32_t *cell, *next, *list;
    size_t cells_cap;
    double wf, dissipated, kinetic0, potential0, top;
    double skin, far, length;           /* length: what overlaps are measured by */
    double *move, small, margin;        /* overlaps below `small` are let be; margin: how far contacts are looked for, in steps */
    size_t walk;
    bool pairs_known;
} many;

static inline double larger(double a, double b) { return a > b ? a : b; }

static bool fail(many *w, span at, const char *message)
{
    if (w->r->status != RUN_FAILED) { w->r->status = RUN_FAILED; w->r->message = message; w->r->where = at; }
    return false;
}

/* ---- patterns ---- */
static int pattern_dof(pattern *p, const slot_map *m)
{
    for (int k = 0; k < p->n; k++) if (memcmp(&p->dof[k], m, sizeof *m) == 0) return k;
    if (p->n == LOCAL) return -1;
    p->dof[p->n] = *m;
    return p->n++;
}

static bool pattern_outputs(many *w, pattern *p, const term *t, bool column, int **to)
{
    if (!t->k) return true;
    uint32_t n = t->k->tape.nout;
    *to = arena_array(w->a, int, n);
    for (uint32_t i = 0; i < n; i++) {
        (*to)[i] = pattern_dof(p, column ? &t->k->col[i] : &t->k->row[i]);
        if ((*to)[i] < 0) return fail(w, p->fam->f->at, "a contact that acts on so many degrees of freedom is not built for many contacts");
    }
    return true;
}

static bool map_reads(const slot_map *m, int k) { return m->stride[k] != 0; }

/* Pairs (i, j) of points: one kind of point hangs on each index.  first = the index of the points near_a. */
static void pattern_near(many *w, pattern *p)
{
    const contact_family *f = p->fam->f;
    p->first = -1;
    if (!f->near_dim || f->over.n != 2 || p->fam->gap.where) return;
    bool a0 = map_reads(&f->near_a[0], 0), a1 = map_reads(&f->near_a[0], 1), b0 = map_reads(&f->near_b[0], 0), b1 = map_reads(&f->near_b[0], 1);
    if (a0 == a1 || b0 == b1 || a0 == b0) return;
    p->first = a0 ? 0 : 1;
    term reach = term_new(w->a, &f->near_reach);
    int32_t index[MAX_INDEX] = { 0 };
    int32_t lo1 = INT32_MAX, hi1 = INT32_MIN;
    p->lo0 = f->over.r[0].lo;
    p->n0 = f->over.r[0].hi - f->over.r[0].lo + 1;
    p->row_start = arena_array(w->a, int64_t, p->n0 > 0 ? p->n0 + 1 : 1);
    int64_t at = 0;
    for (int32_t i = 0; i < p->n0; i++) {
        index[0] = p->lo0 + i;
        int32_t lo = (int32_t)range_lo(&f->over, index, 1), hi = (int32_t)range_hi(&f->over, index, 1);
        p->row_start[i] = at;
        if (hi < lo) continue;
        at += hi - lo + 1;
        if (lo < lo1) lo1 = lo;
        if (hi > hi1) hi1 = hi;
    }
    p->lo1 = lo1;
    p->n1 = hi1 >= lo1 ? hi1 - lo1 + 1 : 0;
    /* a reach that hangs on the pair is looked at once for all */
    p->reach = 0;
    for (bool any = index_first(&f->over, index); any; any = index_next(&f->over, index)) {
        p->reach = fmax(p->reach, term_value(&reach, &w->s->in, index));
        if (reach.constant && reach.k && !(reach.k->in && reach.k->tape.nin && !slot_uniform(&reach.k->in[0]))) {
            bool uniform = true;
            for (uint32_t k = 0; k < reach.k->tape.nin; k++) uniform &= slot_uniform(&reach.k->in[k]);
            if (uniform) break;
        }
    }
}

static bool patterns(many *w)
{
    w->pat = arena_array(w->a, pattern, w->p->ncontact);
    for (size_t i = 0; i < w->p->ncontact; i++) {
        pattern *p = &w->pat[i];
        family *fam = &w->s->family[i];
        p->fam = fam;
        if (fam->d && !fam->f->slip_given)
            return fail(w, fam->f->at, "among many contacts friction needs 'slip', the relative velocity at the contact");
        if (!pattern_outputs(w, p, &fam->gradient, false, &p->grad) || !pattern_outputs(w, p, &fam->slip_map, true, &p->slip)) return false;
        pattern_near(w, p);
    }
    return true;
}

/* ---- near pairs: cells of the size of reach and skin, points of index 1 listed in them ---- */
static double coordinate(const pattern *p, int index, int32_t i, int k, const double *q)
{
    const contact_family *f = p->fam->f;
    const slot_map *m = (index == p->first ? f->near_a : f->near_b) + k;
    return q[m->base + m->stride[index] * i];
}

typedef struct { int dim; double lo[3], size; int32_t n[3]; } grid;

static int32_t grid_cell(const grid *g, const double *x, int32_t *at)
{
    int32_t c = 0;
    for (int k = 0; k < g->dim; k++) {
        double f = floor((x[k] - g->lo[k]) / g->size);
        at[k] = f < 0 ? 0 : f >= g->n[k] ? g->n[k] - 1 : (int32_t)f;
        c = c * g->n[k] + at[k];
    }
    return c;
}

static int32_t grid_make(many *w, const pattern *p, grid *g)
{
    double hi[3];
    g->dim = p->fam->f->near_dim;
    g->size = p->reach + w->skin;
    for (int k = 0; k < g->dim; k++) {
        g->lo[k] = INFINITY; hi[k] = -INFINITY;
        for (int32_t j = 0; j < p->n1; j++) {
            double x = coordinate(p, 1, p->lo1 + j, k, w->q);
            g->lo[k] = fmin(g->lo[k], x); hi[k] = fmax(hi[k], x);
        }
    }
    for (;; g->size *= 1.5) {
        double cells = 1;
        for (int k = 0; k < g->dim; k++) cells *= floor((hi[k] - g->lo[k]) / g->size) + 1;
        if (!(cells > 8.0 * p->n1 + 64)) break;
    }
    int32_t cells = 1;
    for (int k = 0; k < g->dim; k++) {
        double m = floor((hi[k] - g->lo[k]) / g->size) + 1;
        g->n[k] = m >= 1 ? (int32_t)m : 1;
        cells *= g->n[k];
    }
    return cells;
}

static int by_number(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* points of index 1 in the cells around x that lie within the skin, in order */
static int32_t neighbours(many *w, const pattern *p, const grid *g, const double *x)
{
    int32_t at[3] = { 0 }, n = 0;
    double cut = p->reach + w->skin, cut2 = cut * cut;
    int32_t span_[3] = { 1, 1, 1 }, c[3];
    grid_cell(g, x, at);
    for (int k = g->dim; k < 3; k++) { at[k] = 0; span_[k] = 0; }
    for (c[0] = at[0] - span_[0]; c[0] <= at[0] + span_[0]; c[0]++)
        for (c[1] = at[1] - span_[1]; c[1] <= at[1] + span_[1]; c[1]++)
            for (c[2] = at[2] - span_[2]; c[2] <= at[2] + span_[2]; c[2]++) {
                int32_t cell = 0;
                bool in = true;
                for (int k = 0; k < g->dim; k++) { in &= c[k] >= 0 && c[k] < g->n[k]; cell = cell * g->n[k] + c[k]; }
                for (int32_t j = in ? w->cell[cell] : -1; j >= 0; j = w->next[j]) {
                    double d2 = 0;
                    for (int k = 0; k < g->dim; k++) { double d = coordinate(p, 1, p->lo1 + j, k, w->q) - x[k]; d2 += d * d; }
                    if (d2 <= cut2) w->list[n++] = j;
                }
            }
    qsort(w->list, (size_t)n, sizeof *w->list, by_number);
    return n;
}

static void pairs_find(many *w, pattern *p)
{
    grid g;
    int32_t cells = grid_make(w, p, &g), index[MAX_INDEX] = { 0 }, at[3];
    size_t need = (size_t)(cells > p->n1 ? cells : p->n1) + 1;
    if (need > w->cells_cap) {
        w->cells_cap = 2 * need;
        w->cell = arena_array(w->a, int32_t, w->cells_cap);
        w->next = arena_array(w->a, int32_t, w->cells_cap);
        w->list = arena_array(w->a, int32_t, w->cells_cap);
    }
    for (int32_t c = 0; c < cells; c++) w->cell[c] = -1;
    for (int32_t j = 0; j < p->n1; j++) {
        double x[3];
        for (int k = 0; k < g.dim; k++) x[k] = coordinate(p, 1, p->lo1 + j, k, w->q);
        int32_t c = grid_cell(&g, x, at);
        w->next[j] = w->cell[c];
        w->cell[c] = j;
    }
    p->pair.n = 0;
    for (int32_t i = 0; i < p->n0; i++) {
        double x[3];
        index[0] = p->lo0 + i;
        int64_t lo = range_lo(&p->fam->f->over, index, 1), hi = range_hi(&p->fam->f->over, index, 1);
        for (int k = 0; k < g.dim; k++) x[k] = coordinate(p, 0, index[0], k, w->q);
        int32_t n = neighbours(w, p, &g, x);
        for (int32_t k = 0; k < n; k++) {
            int32_t j = p->lo1 + w->list[k];
            if (j < lo || j > hi) continue;
            *vec_push(w->a, &p->pair) = index[0];
            *vec_push(w->a, &p->pair) = j;
        }
    }
}

/* largest of |x| over the coordinates of the points of a family */
static double points_most(const pattern *p, const double *x, const double *y)
{
    double most = 0;
    for (int index = 0; index < 2; index++)
        for (int32_t i = 0; i < (index ? p->n1 : p->n0); i++)
            for (int k = 0; k < p->fam->f->near_dim; k++) {
                int32_t at = (index ? p->lo1 : p->lo0) + i;
                most = larger(most, fabs(coordinate(p, index, at, k, x) - (y ? coordinate(p, index, at, k, y) : 0)));
            }
    return most;
}

/* Pairs are found anew when points may cross the skin before the end of this step.  far: what they may come closer in it, with one of them stopped or pushed. */
static void pairs_keep(many *w)
{
    enum { ROOM = 3 };                                  /* two points, each with sqrt(dim) times the largest coordinate, rounded up */
    double moved = 0, reach = 0;
    w->far = 0;
    for (size_t i = 0; i < w->p->ncontact; i++) {
        const pattern *p = &w->pat[i];
        if (p->first < 0) continue;
        reach = larger(reach, p->reach);
        w->far = larger(w->far, w->margin * ROOM * w->h * larger(points_most(p, w->v, NULL), points_most(p, w->v1, NULL)));
        if (w->pairs_known) moved = larger(moved, ROOM * points_most(p, w->q, w->seen));
    }
    if (reach == 0 || (w->pairs_known && moved + w->far <= w->skin)) return;
    w->skin = larger(0.3 * reach, 2 * w->far);
    for (size_t i = 0; i < w->p->ncontact; i++) if (w->pat[i].first >= 0) pairs_find(w, &w->pat[i]);
    memcpy(w->seen, w->q, (size_t)w->n * sizeof *w->q);
    w->pairs_known = true;
}

/* ---- active contacts ---- */
static void rows_put(many *w, active *c)
{
    pattern *p = c->pat;
    family *fam = p->fam;
    int n = c->n = p->n, top = fam->f->relation != REL_CLOSED;
    double S[MAX_SLIP * LOCAL] = { 0 }, E[MAX_SLIP * MAX_SLIP], H[LOCAL] = { 0 };
    for (int k = 0; k < n; k++) c->dof[k] = slot_at(&p->dof[k], c->index, fam->f->over.n);
    if (top && fam->gradient.k) {
        const tape *t = &fam->gradient.k->tape;
        kernel_run(fam->gradient.k, &w->s->in, c->index, fam->gradient.reg);
        for (uint32_t i = 0; i < t->nout; i++) H[p->grad[i]] += fam->gradient.reg[t->out[i]];
        memcpy(c->J, H, (size_t)n * sizeof *H);
    }
    c->d = 0;
    if (fam->d == 0) return;
    const term *m = &fam->slip_map;
    if (m->k) {
        kernel_run(m->k, &w->s->in, c->index, m->reg);
        for (uint32_t i = 0; i < m->k->tape.nout; i++)
            S[slot_at(&m->k->row[i], c->index, fam->f->over.n) * n + p->slip[i]] += m->reg[m->k->tape.out[i]];
    }
    c->d = slip_frame(S, top ? H : NULL, fam->nslip, n, E);
    for (int a = 0; a < c->d; a++)
        for (int k = 0; k < n; k++) {
            double x = 0;
            for (int j = 0; j < fam->nslip; j++) x += E[a * fam->nslip + j] * S[j * n + k];
            c->J[(top + a) * n + k] = x;
        }
    /* what of the slip is free of q' */
    if (fam->slip.k) kernel_run(fam->slip.k, &w->s->in, c->index, fam->slip.reg);
    for (int a = 0; a < c->d; a++) {
        double x = 0;
        for (int j = 0; fam->slip.k && j < fam->nslip; j++) x += E[a * fam->nslip + j] * fam->slip.reg[fam->slip.k->tape.out[j]];
        for (int k = 0; k < n; k++) x -= c->J[(top + a) * n + k] * w->v[c->dof[k]];
        c->off[top + a] = x;
    }
}

static double row_rate(const active *c, int row, const double *v)
{
    double u = 0;
    for (int k = 0; k < c->n; k++) u += c->J[row * c->n + k] * v[c->dof[k]];
    return u;
}

static void block_put(const many *w, active *c)
{
    int m = cone_rows(&c->cone), n = c->n;
    for (int a = 0; a < m; a++)
        for (int k = 0; k < n; k++) c->K[a * n + k] = c->J[a * n + k] * w->minv[c->dof[k]];
    for (int a = 0; a < m; a++)
        for (int b = 0; b < m; b++) c->A[a * m + b] = vec_dot(c->J + a * n, c->K + b * n, n);
}

static void law_put(many *w, active *c, double speed)
{
    family *fam = c->pat->fam;
    const contact_family *f = fam->f;
    if (!c->d) return;
    w->s->in.speed = speed;
    double mu = term_value(&fam->mu, &w->s->in, c->index);
    bool tresca = f->friction == FRICTION_TRESCA;
    c->cone.mu = tresca || f->relation == REL_CLOSED ? 0 : mu;
    c->cone.radius = tresca ? mu * w->h : f->relation == REL_CLOSED ? mu * fabs(term_value(&fam->normal, &w->s->in, c->index)) * w->h : 0;
}

/* Adds a member when it may matter in this step; v1 is the free velocity. */
static bool consider(many *w, pattern *p, int64_t member, const int32_t *index)
{
    family *fam = p->fam;
    const contact_family *f = fam->f;
    active *c;
    double gap = f->relation == REL_CLOSED ? 0 : term_value(&fam->gap, &w->s->in, index);
    if (p->first >= 0 && gap > w->far + 1e-3 * w->skin) return true;
    c = vec_push(w->a, &w->act);
    memset(c, 0, offsetof(active, dof));
    memset(c->b, 0, sizeof *c - offsetof(active, b));
    c->pat = p; c->member = member; c->gap = gap;
    memcpy(c->index, index, sizeof c->index);
    rows_put(w, c);
    int top = f->relation != REL_CLOSED;
    if (top) {
        c->off[0] = term_value(&fam->rate, &w->s->in, index);
        c->un = row_rate(c, 0, w->v) + c->off[0];
        /* any of its bodies may be stopped within the step */
        double near_by = fabs(c->off[0]);
        for (int k = 0; k < c->n; k++) near_by += fabs(c->J[k]) * fmax(fabs(w->v[c->dof[k]]), fabs(w->v1[c->dof[k]]));
        if (f->relation == REL_GAP && gap > w->margin * w->h * near_by + 1e-3 * w->skin) { w->act.n--; return true; }
        if (gap < -w->r->max_penetration) w->r->max_penetration = -gap;
    }
    c->cone = (cone){ .kind = f->relation == REL_GAP ? CONE_UNILATERAL : f->relation == REL_BILATERAL ? CONE_BILATERAL : CONE_GIVEN, .d = c->d };
    law_put(w, c, f->mu_of_speed ? fabs(c->d ? row_rate(c, top, w->v) + c->off[top] : 0) : 0);
    for (int a = 0; a < top + c->d; a++) c->b[a] = c->off[a];
    if (top) {
        double e = term_value(&fam->e, &w->s->in, index), push = gap / w->h;
        /* it meets the surface within the step: restitution now, unless the rebound is below what a step resolves */
        double back = -e * c->un, resolve = 2 * fabs(row_rate(c, 0, w->v1) + c->off[0] - c->un);
        if (f->relation == REL_GAP && e > 0 && gap + w->h * c->un <= 0 && back > resolve) push = -back;
        else if (push < 0) push = 0;            /* an overlap is opened by positions, not by speed */
        c->b[0] += push;
    }
    block_put(w, c);
    return true;
}

/* Calls back for all members that may matter, in the order of families and members. */
typedef bool (*member_fn)(many *w, pattern *p, int64_t member, const int32_t *index);

static bool each_member(many *w, member_fn f)
{
    for (size_t i = 0; i < w->p->ncontact; i++) {
        pattern *p = &w->pat[i];
        const index_set *over = &p->fam->f->over;
        const term *asks = p->fam->f->relation == REL_CLOSED ? &p->fam->slip : &p->fam->gap;
        int32_t index[MAX_INDEX] = { 0 };
        int64_t member = 0;
        for (size_t k = 0; p->first >= 0 && k < p->pair.n; k += 2) {
            index[0] = p->pair.at[k]; index[1] = p->pair.at[k + 1];
            if (!f(w, p, p->row_start[index[0] - p->lo0] + (index[1] - range_lo(over, index, 1)), index)) return false;
        }
        if (p->first >= 0) continue;
        for (bool any = index_first(over, index); any; any = index_next(over, index), member++)
            if (term_member(asks, index) && !f(w, p, member, index)) return false;
    }
    return true;
}

static void candidates(many *w)
{
    w->act.n = 0;
    system_at(w->s, w->t, w->q, w->v);
    each_member(w, consider);
}

/* none that was left out overlaps at the end of the step; the list of active ones is walked along */
static bool still_apart(many *w, pattern *p, int64_t member, const int32_t *index)
{
    size_t *j = &w->walk;
    if (p->fam->f->relation != REL_GAP) return true;
    while (*j < w->act.n && (w->act.at[*j].pat < p || (w->act.at[*j].pat == p && w->act.at[*j].member < member))) ++*j;
    if (*j < w->act.n && w->act.at[*j].pat == p && w->act.at[*j].member == member) return true;
    return term_value(&p->fam->gap, &w->s->in, index) >= -w->small;
}

/* impulses of the last step are the start: both lists are in the order of families and members */
static void warm_start(many *w)
{
    size_t j = 0;
    for (size_t i = 0; i < w->act.n; i++) {
        active *c = &w->act.at[i];
        while (j < w->old.n && (w->old.at[j].pat < c->pat || (w->old.at[j].pat == c->pat && w->old.at[j].member < c->member))) j++;
        if (j == w->old.n || w->old.at[j].pat != c->pat || w->old.at[j].member != c->member) continue;
        int m = cone_rows(&c->cone);
        c->was = w->old.at[j].r[0] > 0;
        if (m == cone_rows(&w->old.at[j].cone)) memcpy(c->r, w->old.at[j].r, (size_t)m * sizeof *c->r);
        for (int a = 0; a < m; a++)
            for (int k = 0; k < c->n; k++) w->v1[c->dof[k]] += c->r[a] * c->K[a * c->n + k];
    }
}

static void push(many *w, active *c, const double *dr, int m)
{
    for (int k = 0; k < c->n; k++) {
        double x = 0;
        for (int a = 0; a < m; a++) x += dr[a] * c->K[a * c->n + k];
        w->v1[c->dof[k]] += x;
    }
}

/* One sweep, up or down the list; returns the largest distance to the fixed point, *size the largest impulse in play. */
static double sweep(many *w, bool down, double *size, size_t *worst)
{
    double most = 0, work[CONE_WORK * MAX_SLIP * (MAX_SLIP + 4) + 8];
    *size = 0;
    for (size_t at = 0; at < w->act.n; at++) {
        size_t i = down ? w->act.n - 1 - at : at;
        active *c = &w->act.at[i];
        int m = cone_rows(&c->cone);
        double b[MAX_ROWS], r[MAX_ROWS], dr[MAX_ROWS], e = 0;
        for (int a = 0; a < m; a++) b[a] = row_rate(c, a, w->v1) + c->b[a] - vec_dot(c->A + a * m, c->r, m);
        cone_solve(&c->cone, c->A, m, b, r, work);
        for (int a = 0; a < m; a++) {
            dr[a] = r[a] - c->r[a];
            e = larger(e, fabs(dr[a]));
            *size = larger(*size, fabs(r[a]));
            c->r[a] = r[a];
        }
        if (e == 0) continue;
        if (e > most) { most = e; *worst = i; }
        push(w, c, dr, m);
    }
    return most;
}

/* ---- too slow: W as a sparse matrix, by proximal Newton steps from where it stands ---- */
typedef struct { int *start, *list; } touching;         /* contacts at each dof */

static touching contacts_at(many *w)
{
    touching t = { arena_array(w->a, int, w->n + 2), NULL };
    for (size_t i = 0; i < w->act.n; i++) for (int k = 0; k < w->act.at[i].n; k++) t.start[w->act.at[i].dof[k] + 2]++;
    for (int k = 2; k < w->n + 2; k++) t.start[k] += t.start[k - 1];
    t.list = arena_array(w->a, int, t.start[w->n + 1] + 1);
    for (size_t i = 0; i < w->act.n; i++)
        for (int k = 0; k < w->act.at[i].n; k++) t.list[t.start[w->act.at[i].dof[k] + 1]++] = (int)i;
    return t;
}

/* contacts that share a dof with contact i, itself among them; seen[j] == i marks them */
static int neighbours_of(const many *w, const touching *t, int i, int *seen, int *out)
{
    const active *c = &w->act.at[i];
    int n = 0;
    for (int k = 0; k < c->n; k++)
        for (int at = t->start[c->dof[k]]; at < t->start[c->dof[k] + 1]; at++) {
            int j = t->list[at];
            if (seen[j] != i) { seen[j] = i; out[n++] = j; }
        }
    return n;
}

static void block_row(const many *w, const active *c, int a, double *x, const int *near_by, int n, double *out)
{
    for (int k = 0; k < c->n; k++) x[c->dof[k]] += c->J[a * c->n + k];
    for (int j = 0; j < n; j++) {
        const active *o = &w->act.at[near_by[j]];
        for (int b = 0; b < cone_rows(&o->cone); b++) {
            double s = 0;
            for (int k = 0; k < o->n; k++) s += o->K[b * o->n + k] * x[o->dof[k]];
            *out++ = s;
        }
    }
    for (int k = 0; k < c->n; k++) x[c->dof[k]] = 0;
}

static void sparse_put(many *w, sparse_problem *p, cone *cones)
{
    int n = p->n, *seen = arena_array(w->a, int, n), *near_by = arena_array(w->a, int, n), *start = arena_array(w->a, int, n + 1);
    size_t *first = arena_array(w->a, size_t, n);
    double *x = arena_array(w->a, double, w->n);
    touching t = contacts_at(w);
    vec(int) col = { 0 };
    vec(double) val = { 0 };
    for (int i = 0; i < n; i++) seen[i] = -1;
    for (int i = 0; i < n; i++) {
        int m = neighbours_of(w, &t, i, seen, near_by), rows = cone_rows(&cones[i]), wide = 0;
        start[i] = (int)col.n;
        first[i] = val.n;
        for (int j = 0; j < m; j++)
            for (int b = 0; b < cone_rows(&cones[near_by[j]]); b++, wide++) *vec_push(w->a, &col) = cones[near_by[j]].row + b;
        for (int k = 0; k < rows * wide; k++) *vec_push(w->a, &val) = 0;
        for (int a = 0; a < rows; a++) block_row(w, &w->act.at[i], a, x, near_by, m, val.at + first[i] + (size_t)a * wide);
    }
    start[n] = (int)col.n;
    p->start = start; p->col = col.at; p->at = first; p->val = val.at;
}

static double solve_sparse(many *w, size_t *worst)
{
    int n = (int)w->act.n, m = 0;
    cone *cones = arena_array(w->a, cone, n);
    for (int i = 0; i < n; i++) {
        cones[i] = w->act.at[i].cone;
        cones[i].row = m;
        m += cone_rows(&cones[i]);
    }
    double *b = arena_array(w->a, double, m), *r = arena_array(w->a, double, m);
    sparse_problem p = { .n = n, .m = m, .cone = cones, .b = b, .r = r };
    sparse_put(w, &p, cones);
    for (int i = 0; i < n; i++) for (int a = 0; a < cone_rows(&cones[i]); a++) r[cones[i].row + a] = w->act.at[i].r[a];
    for (int i = 0; i < n; i++)
        for (int a = 0; a < cone_rows(&cones[i]); a++) {
            double own = 0;
            int wide = p.start[i + 1] - p.start[i];
            for (int k = 0; k < wide; k++) own += p.val[p.at[i] + (size_t)a * wide + k] * r[p.col[p.start[i] + k]];
            b[cones[i].row + a] = row_rate(&w->act.at[i], a, w->v1) + w->act.at[i].b[a] - own;
        }
    proximal_solve(&p, w->a, w->tol);
    for (int i = 0; i < n; i++) {
        active *c = &w->act.at[i];
        double dr[MAX_ROWS];
        for (int a = 0; a < cone_rows(&c->cone); a++) { dr[a] = r[cones[i].row + a] - c->r[a]; c->r[a] += dr[a]; }
        push(w, c, dr, cone_rows(&c->cone));
    }
    *worst = (size_t)p.worst;
    w->r->solver_iterations += p.iterations;
    w->r->solver = "Gauss-Seidel with conjugate directions, proximal Newton";
    return p.residual;
}

/* Gauss-Seidel as the gradient of a conjugate direction method: far fewer sweeps for the same residual, which is returned.
   plain: sweeps alone, which friction cannot mislead. */
static double solve_sweeps(many *w, int most, bool plain, double *keep, size_t *worst)
{
    double before = 0, size = 0, res = INFINITY;
    for (size_t i = 0; i < w->act.n; i++) memset(w->act.at[i].p, 0, sizeof w->act.at[i].p);
    for (int it = 0; it < most; it++) {
        double g2 = 0;
        for (size_t i = 0; i < w->act.n; i++) memcpy(keep + i * MAX_ROWS, w->act.at[i].r, sizeof w->act.at[i].r);
        res = sweep(w, false, &size, worst);
        if (!(res <= w->tol * size)) res = larger(res, sweep(w, true, &size, worst));
        w->r->solver_iterations += 2;
        if (res <= w->tol * size || size == 0) break;
        for (size_t i = 0; i < w->act.n; i++)
            for (int a = 0; a < MAX_ROWS; a++) { double g = w->act.at[i].r[a] - keep[i * MAX_ROWS + a]; g2 += g * g; }
        bool go = !plain && before > 0 && g2 <= before;
        double beta = go ? g2 / before : 0;
        for (size_t i = 0; i < w->act.n && !plain; i++) {
            active *c = &w->act.at[i];
            int m = cone_rows(&c->cone);
            double dr[MAX_ROWS];
            for (int a = 0; a < m; a++) {
                double g = c->r[a] - keep[i * MAX_ROWS + a];
                dr[a] = beta * c->p[a];
                c->p[a] = go ? dr[a] + g : 0;
                c->r[a] += dr[a];
            }
            if (go) push(w, c, dr, m);
        }
        before = go || before == 0 ? g2 : 0;
    }
    return size > 0 ? res / size : 0;
}

static bool solve(many *w, double t)
{
    enum { PATIENCE = 150, SWEEPS = 1000, ROUNDS = 3 };
    size_t worst = 0;
    if (w->act.n == 0) return true;
    arena_pos mark = arena_mark(w->a);
    double *keep = arena_array(w->a, double, w->act.n * MAX_ROWS), res = INFINITY;
    for (int round = 0; round < ROUNDS && !(res <= w->tol); round++) {
        res = solve_sweeps(w, round == 0 ? PATIENCE : SWEEPS, round == 1, keep, &worst);
        arena_pos inner = arena_mark(w->a);
        if (!(res <= w->tol)) res = solve_sparse(w, &worst);
        arena_release(w->a, inner);
    }
    arena_release(w->a, mark);
    if (res > w->r->residual) w->r->residual = res;
    if (res <= w->tol || w->o->keep_going) return true;
    const active *c = &w->act.at[worst];
    contact named = { .fam = c->pat->fam, .member = c->member };
    memcpy(named.index, c->index, sizeof named.index);
    return fail(w, c->pat->fam->f->at, arena_printf(w->r->a, "the contact problem was not solved at t = %.6g: constraint '%s', residual %.2g (tolerance %.2g)",
                                                    t, contact_name(&named, w->r->a), res, w->tol));
}

/* ---- positions ---- */
static void positions(many *w)
{
    memset(w->touched, 0, (size_t)w->n);
    for (size_t i = 0; i < w->act.n; i++) {
        const active *c = &w->act.at[i];
        bool on = false;
        for (int a = 0; a < cone_rows(&c->cone); a++) on |= c->r[a] != 0;
        for (int k = 0; on && k < c->n; k++) w->touched[c->dof[k]] = 1;
    }
    for (int i = 0; i < w->n; i++) w->q1[i] = w->q[i] + w->h * (w->touched[i] ? w->v1[i] : 0.5 * (w->v[i] + w->v1[i]));
}

/* Overlaps are pushed open along the gradients: shortest move x (in the kinetic metric) with gap + J x >= 0, by the same method as the impulses. */
static double open_sweep(many *w, bool down)
{
    double worst = 0;
    for (size_t at = 0; at < w->act.n; at++) {
        active *c = &w->act.at[down ? w->act.n - 1 - at : at];
        if (c->cone.kind == CONE_GIVEN) continue;
        double g = c->gap + row_rate(c, 0, w->move), l = c->l - g / c->A[0], dl;
        if (c->cone.kind == CONE_UNILATERAL && l < 0) l = 0;
        dl = l - c->l;
        if (dl == 0) continue;
        worst = larger(worst, fabs(dl) * c->A[0]);
        c->l = l;
        for (int k = 0; k < c->n; k++) w->move[c->dof[k]] += dl * c->K[k];
    }
    return worst;
}

static void open_direction(many *w, double *before)
{
    double g2 = 0;
    for (size_t i = 0; i < w->act.n; i++) { double g = w->act.at[i].l - w->act.at[i].l0; g2 += g * g; }
    bool go = *before > 0 && g2 <= *before;
    double beta = go ? g2 / *before : 0;
    for (size_t i = 0; i < w->act.n; i++) {
        active *c = &w->act.at[i];
        double g = c->l - c->l0, dl = beta * c->lp;
        c->lp = go ? dl + g : 0;
        if (dl == 0) continue;
        c->l += dl;
        for (int k = 0; k < c->n; k++) w->move[c->dof[k]] += dl * c->K[k];
    }
    *before = go || *before == 0 ? g2 : 0;
}

static double gaps_now(many *w)
{
    double worst = 0;
    for (size_t i = 0; i < w->act.n; i++) {
        active *c = &w->act.at[i];
        c->l = c->lp = 0;
        if (c->cone.kind == CONE_GIVEN) continue;
        c->gap = term_value(&c->pat->fam->gap, &w->s->in, c->index);
        worst = larger(worst, c->cone.kind == CONE_BILATERAL ? fabs(c->gap) : -c->gap);
    }
    return worst;
}

static void open_overlaps(many *w, double t)
{
    double small = w->small;
    system_at(w->s, t, w->q1, w->v1);
    for (int round = 0; round < 6 && gaps_now(w) > small; round++) {
        double before = 0;
        memset(w->move, 0, (size_t)w->n * sizeof *w->move);
        for (int it = 0; it < 300; it++) {
            for (size_t i = 0; i < w->act.n; i++) w->act.at[i].l0 = w->act.at[i].l;
            if (larger(open_sweep(w, false), open_sweep(w, true)) <= 0.1 * small) break;
            open_direction(w, &before);
        }
        for (int i = 0; i < w->n; i++) w->q1[i] += w->move[i];
    }
    gaps_now(w);
}

/* ---- one step ---- */
static void account(many *w)
{
    for (int i = 0; i < w->n; i++) w->wf += w->h * w->f[i] * 0.5 * (w->v[i] + w->v1[i]);
    for (size_t i = 0; i < w->act.n; i++) {
        const active *c = &w->act.at[i];
        for (int a = 0; a < cone_rows(&c->cone); a++) {
            if (c->r[a] == 0) continue;
            double rate = 0.5 * (row_rate(c, a, w->v) + row_rate(c, a, w->v1));
            w->dissipated -= c->r[a] * (rate + c->off[a]);
            w->wf -= c->r[a] * c->off[a];
        }
    }
}

static void note_impacts(many *w, double t)
{
    for (size_t i = 0; i < w->act.n; i++) {
        const active *c = &w->act.at[i];
        if (c->cone.kind != CONE_UNILATERAL || !(c->r[0] > 0) || c->was || !(c->un < 0)) continue;
        contact_result *r = &w->r->contact[c->pat - w->pat];
        double post = row_rate(c, 0, w->v1) + c->off[0];
        *vec_push(w->r->a, &r->impacts) = (impact){ t, c->un, fmax(post, 0), c->r[0], (int32_t)c->member };
        r->last_open[c->member] = t;
    }
}

static bool step(many *w, double h, double t1)
{
    int n = w->n;
    w->h = h;
    for (int i = 0; i < n; i++) w->qmid[i] = w->q[i] + 0.5 * h * w->v[i];
    system_at(w->s, w->t + 0.5 * h, w->qmid, w->v);
    if (!w->s->force_constant || w->t == 0) system_force(w->s, w->f);
    /* bodies that others set in motion may meet what was too far off: then with a wider look, once more */
    for (w->margin = 1.5; ; w->margin *= 3) {
        for (int i = 0; i < n; i++) w->v1[i] = w->v[i] + h * w->minv[i] * w->f[i];
        pairs_keep(w);
        candidates(w);
        warm_start(w);
        if (!solve(w, t1)) return false;
        positions(w);
        open_overlaps(w, t1);
        w->walk = 0;
        if (w->margin > 20 || each_member(w, still_apart)) break;
    }
    account(w);
    note_impacts(w, t1);
    for (int i = 0; i < n; i++) {
        w->x[i] = (w->v1[i] - w->v[i]) / h;
        w->q[i] = w->q1[i];
        w->v[i] = w->v1[i];
        if (!isfinite(w->q[i])) return fail(w, SPAN_NONE, arena_printf(w->r->a, "the motion is no longer finite at t = %.6g", t1));
    }
    w->t = t1;
    for (size_t i = 0; i < w->act.n; i++) {
        const active *c = &w->act.at[i];
        if (c->cone.kind == CONE_GIVEN) continue;
        double depth = c->cone.kind == CONE_BILATERAL ? fabs(c->gap) : -c->gap;
        if (depth > w->r->max_penetration) w->r->max_penetration = depth;
    }
    struct { active *at; size_t n, cap; } keep = { w->old.at, w->old.n, w->old.cap };
    w->old.at = w->act.at; w->old.n = w->act.n; w->old.cap = w->act.cap;
    w->act.at = keep.at; w->act.n = keep.n; w->act.cap = keep.cap;
    return true;
}

/* ---- samples ---- */
/* what is not active is open and pushes nothing */
static void sample_contacts(many *w, int64_t at)
{
    results *r = w->r;
    system_at(w->s, w->t, w->q, w->v);
    for (size_t f = 0; f < w->p->ncontact; f++) {
        contact_result *k = &r->contact[f];
        const family *fam = &w->s->family[f];
        const index_set *over = &fam->f->over;
        int32_t index[MAX_INDEX] = { 0 };
        int64_t m = 0;
        if (!k->kept) continue;
        size_t base = (size_t)(at * k->members), ns = (size_t)k->nslip, all = (size_t)k->members;
        memset(k->rn + base, 0, all * sizeof(double));
        if (ns) { memset(k->rt + base * ns, 0, all * ns * sizeof(double)); memset(k->slip + base * ns, 0, all * ns * sizeof(double)); }
        memset(k->status + base, STATUS_OPEN, all);
        for (bool any = index_first(over, index); any; any = index_next(over, index), m++)
            k->gap[base + (size_t)m] = term_value(&fam->gap, &w->s->in, index);
    }
    for (size_t i = 0; i < w->old.n; i++) {
        const active *c = &w->old.at[i];
        contact_result *k = &r->contact[c->pat - w->pat];
        if (!k->kept) continue;
        size_t m = (size_t)(at * k->members + c->member), ns = (size_t)k->nslip;
        int top = cone_normal(&c->cone);
        double rt = 0, bound, slip = 0;
        if (top) k->rn[m] = c->r[0] / w->h;
        for (int a = top; a < top + c->d; a++) { rt = hypot(rt, c->r[a]); slip = hypot(slip, row_rate(c, a, w->v) + c->off[a]); }
        bound = c->cone.mu * fabs(top ? c->r[0] : 0) + c->cone.radius;
        for (int a = 0; a < c->d && (size_t)a < ns; a++) {
            k->rt[m * ns + (size_t)a] = c->r[top + a] / w->h;
            k->slip[m * ns + (size_t)a] = row_rate(c, top + a, w->v) + c->off[top + a];
        }
        if (!top || c->r[0] != 0) k->status[m] = c->d && rt < bound * (1 - 1e-9) ? STATUS_STICK : STATUS_SLIP;
    }
}

static void sample(many *w)
{
    results *r = w->r;
    int64_t at = results_sample(r);
    size_t n = (size_t)w->n;
    double kin = 0, pot = 0, shown;
    r->t[at] = w->t;
    memcpy(r->q + (size_t)at * n, w->q, n * sizeof(double));
    memcpy(r->v + (size_t)at * n, w->v, n * sizeof(double));
    memcpy(r->acc + (size_t)at * n, w->x, n * sizeof(double));
    for (size_t i = 0; i < n; i++) kin += 0.5 * w->M[i] * w->v[i] * w->v[i];
    system_at(w->s, w->t, w->q, w->v);
    shown = w->s->kinetic.n ? system_sum(w->s, &w->s->kinetic) : kin;
    if (w->s->potential.n) pot = system_sum(w->s, &w->s->potential);
    if (at == 0) { w->kinetic0 = kin; w->potential0 = pot; }
    w->top = fmax(w->top, fmax(kin, fmax(fabs(w->wf), fabs(w->dissipated))));
    double defect = fabs(kin - w->kinetic0 - w->wf + w->dissipated);
    if (defect > 0) r->power_balance = fmax(r->power_balance, defect / w->top);
    r->energy[at] = shown + pot;
    r->dissipated[at] = w->dissipated;
    r->work[at] = w->wf + (pot - w->potential0);
    sample_contacts(w, at);
}

static bool begin(many *w)
{
    size_t n = (size_t)w->n;
    int bad = 0;
    double **vectors[] = { &w->q, &w->v, &w->q1, &w->v1, &w->f, &w->M, &w->qmid, &w->seen, &w->x, &w->minv, &w->move };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) *vectors[i] = arena_array(w->a, double, n);
    w->touched = arena_array(w->a, uint8_t, n);
    system_start(w->s, w->q, w->v);
    system_at(w->s, 0, w->q, w->v);
    if (!w->s->diagonal || !w->s->mass_constant || w->s->first_order)
        return fail(w, SPAN_NONE, "many contacts are built for constant masses without coupling, and second-order equations");
    system_mass(w->s, w->M);
    if (!system_factor(w->s, w->M, &bad))
        return fail(w, SPAN_NONE, arena_printf(w->r->a, "the mass of '%s' is not positive", dof_name(w->p, bad, w->r->a)));
    memcpy(w->minv, w->s->minv.a, n * sizeof(double));
    system_force(w->s, w->f);
    for (size_t i = 0; i < n; i++) w->x[i] = w->minv[i] * w->f[i];
    return patterns(w);
}

void many_run(const program *p, const run_options *o, results *r, double h, double tol)
{
    many *w = arena_make(r->a, many);
    const char *why = NULL;
    *w = (many){ .p = p, .o = o, .r = r, .a = r->a, .n = p->nq, .h = h, .tol = tol };
    r->solver = "Gauss-Seidel with conjugate directions";
    w->s = system_new(r->a, p, r->param, true, &why, &r->where);
    if (!w->s) { fail(w, r->where, why); return; }
    if (p->nevent) { fail(w, p->event[0].at, "events among many contacts are not built yet"); return; }
    if (!begin(w)) return;
    for (size_t i = 0; i < p->ncontact; i++) if (w->pat[i].first >= 0) w->length = larger(w->length, w->pat[i].reach);
    if (w->length == 0) w->length = vec_max(w->q, w->n);
    w->small = w->length * (w->tol > 1e-5 ? 1e-5 : w->tol < 1e-11 ? 1e-11 : w->tol);
    sample(w);
    double T = o->duration, last = 0;
    int64_t steps = (int64_t)ceil(T / h - 1e-9);
    for (int64_t i = 1; i <= steps && T > 0; i++) {
        double end = i == steps ? T : (double)i * h;
        if (!step(w, end - w->t, end)) return;
        r->steps = i;
        r->t_end = w->t;
        if (i == steps || !(o->every > 0) || w->t - last >= o->every * (1 - 1e-9)) { sample(w); last = w->t; }
        if (o->progress && o->progress(o->ud, (double)i / (double)steps)) { r->status = RUN_INTERRUPTED; return; }
    }
}
