/* A step from q, v:  v1 = v + h M^-1 f + M^-1 J^T r with  u_n + gap/h >= 0  (or u_n >= -e u_n^- where the step would meet the surface); q1 = q + h times the
   mean rate, or the rate at the end for dofs that would overlap; then gaps that are still negative are pushed open.
   Masses are diagonal and constant; forces that depend on the state are taken within the step, explicitly.
   Where rows never change and few contacts meet at a dof (chains, columns, towers) all contacts are listed once for all. */
#include <math.h>
#include <string.h>
#include "many_work.h"

bool many_fail(many *w, span at, const char *message)
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
        if ((*to)[i] < 0) return many_fail(w, p->fam->f->at, "a contact that acts on so many degrees of freedom is not built for many contacts");
    }
    return true;
}

static bool patterns(many *w)
{
    w->pat = arena_array(w->a, pattern, w->p->ncontact);
    for (size_t i = 0; i < w->p->ncontact; i++) {
        pattern *p = &w->pat[i];
        family *fam = &w->s->family[i];
        p->fam = fam;
        if (!pattern_outputs(w, p, &fam->gradient, false, &p->grad) || !pattern_outputs(w, p, &fam->slip_map, true, &p->slip)) return false;
        if (p->n > w->dofs_most) w->dofs_most = p->n;
        if (1 + fam->d > w->rows_most) w->rows_most = 1 + fam->d;
        near_pattern(w, p);
    }
    return true;
}

/* ---- the list of contacts ---- */
static void *moved(arena *a, const void *old, size_t used, size_t cap, size_t size)
{
    void *x = arena_array_(a, cap, size);
    if (used) memcpy(x, old, used * size);
    return x;
}

static void list_room(many *w, contact_list *l, int need)
{
    if (need <= l->cap) return;
    int cap = l->cap = 2 * need + 16;
    size_t n = (size_t)l->n, c = (size_t)cap, m = (size_t)w->rows_most, d = (size_t)w->dofs_most, rows = (size_t)l->rows;
    size_t dofs = l->dof_at ? (size_t)l->dof_at[n] : 0, J = l->J_at ? l->J_at[n] : 0, A = l->A_at ? l->A_at[n] : 0;
#define MOVE(x, used, all) (l->x) = moved(w->a, l->x, used, all, sizeof *l->x)
    MOVE(of, n, c); MOVE(cone, n, c); MOVE(gap, n, c); MOVE(un, n, c); MOVE(e, n, c); MOVE(l, n, c); MOVE(l0, n, c); MOVE(lp, n, c); MOVE(was, n, c);
    MOVE(frame, w->rows_most > 1 ? n * MAX_SLIP * MAX_SLIP : 0, w->rows_most > 1 ? c * MAX_SLIP * MAX_SLIP : 0);
    MOVE(dof_at, dofs || J ? n + 1 : 0, c + 1); MOVE(J_at, dofs || J ? n + 1 : 0, c + 1); MOVE(A_at, A ? n + 1 : 0, c + 1);
    MOVE(dof, dofs, c * d); MOVE(J, J, c * d * m); MOVE(K, J, c * d * m); MOVE(A, A, c * m * m);
    MOVE(b, rows, c * m); MOVE(r, rows, c * m); MOVE(p, rows, c * m); MOVE(off, rows, c * m);
#undef MOVE
}

/* the normal row of the contact at the end of the list, at the instant, and its dofs */
static void normal_put(many *w, int c)
{
    contact_list *l = &w->act;
    const pattern *p = l->of[c].pat;
    const int32_t *index = l->of[c].index;
    family *fam = p->fam;
    int n = p->n, top = fam->f->relation != REL_CLOSED, *dof = l->dof + l->dof_at[c];
    double *J = l->J + l->J_at[c];
    for (int k = 0; k < n; k++) { dof[k] = slot_at(&p->dof[k], index, fam->f->over.n); J[k] = 0; }
    if (top && fam->gradient.k) {
        const tape *t = &fam->gradient.k->tape;
        kernel_run(fam->gradient.k, &w->s->in, index, fam->gradient.reg);
        for (uint32_t i = 0; i < t->nout; i++) J[p->grad[i]] += fam->gradient.reg[t->out[i]];
    }
    l->cone[c] = (cone){ .kind = !top ? CONE_GIVEN : fam->f->relation == REL_GAP ? CONE_UNILATERAL : CONE_BILATERAL, .row = l->rows };
    l->dof_at[c + 1] = l->dof_at[c] + n;
}

/* its tangent rows */
static void tangent_put(many *w, int c)
{
    contact_list *l = &w->act;
    const pattern *p = l->of[c].pat;
    const int32_t *index = l->of[c].index;
    family *fam = p->fam;
    const term *m = &fam->slip_map;
    int n = p->n, top = cone_normal(&l->cone[c]), d = 0;
    double S[MAX_SLIP * LOCAL], *E = l->frame + (size_t)c * MAX_SLIP * MAX_SLIP, *J = l->J + l->J_at[c];
    if (fam->d) {
        memset(S, 0, (size_t)(fam->nslip * n) * sizeof *S);
        if (m->k) {
            kernel_run(m->k, &w->s->in, index, m->reg);
            for (uint32_t i = 0; i < m->k->tape.nout; i++)
                S[slot_at(&m->k->row[i], index, fam->f->over.n) * n + p->slip[i]] += m->reg[m->k->tape.out[i]];
        }
        d = slip_frame(S, top ? J : NULL, fam->nslip, n, E);
        memset(J + top * n, 0, (size_t)(n * d) * sizeof *J);
        for (int a = 0; a < d; a++)
            for (int j = 0; j < fam->nslip; j++) vec_axpy(J + (top + a) * n, E[a * fam->nslip + j], S + j * n, n);
    }
    l->cone[c].d = d;
    l->J_at[c + 1] = l->J_at[c] + (size_t)(n * (top + d));
    l->A_at[c + 1] = l->A_at[c] + (size_t)((top + d) * (top + d));
}

/* what of the rates is free of q' */
static void offsets_put(many *w, int c)
{
    contact_list *l = &w->act;
    const int32_t *index = l->of[c].index;
    family *fam = l->of[c].pat->fam;
    int top = cone_normal(&l->cone[c]), d = l->cone[c].d;
    double *off = l->off + l->cone[c].row;
    const double *E = l->frame + (size_t)c * MAX_SLIP * MAX_SLIP;
    if (top) off[0] = term_value(&fam->rate, &w->s->in, index);
    if (d && fam->slip.k) kernel_run(fam->slip.k, &w->s->in, index, fam->slip.reg);
    for (int a = 0; a < d; a++) {
        double x = 0;
        for (int j = 0; fam->slip.k && j < fam->nslip; j++) x += E[a * fam->nslip + j] * fam->slip.reg[fam->slip.k->tape.out[j]];
        off[top + a] = x - list_rate(l, c, top + a, w->v);
    }
}

static void blocks_put(many *w, int c)
{
    contact_list *l = &w->act;
    int m = list_rows(l, c), n = l->dof_at[c + 1] - l->dof_at[c];
    const int *dof = l->dof + l->dof_at[c];
    const double *J = l->J + l->J_at[c];
    double *K = l->K + l->J_at[c], *A = l->A + l->A_at[c];
    for (int a = 0; a < m; a++)
        for (int k = 0; k < n; k++) K[a * n + k] = J[a * n + k] * w->minv[dof[k]];
    for (int a = 0; a < m; a++)
        for (int b = 0; b < m; b++) A[a * m + b] = vec_dot(J + a * n, K + b * n, n);
}

static double slip_speed(const many *w, int c, const double *v)
{
    const contact_list *l = &w->act;
    int top = cone_normal(&l->cone[c]);
    double s = 0;
    for (int a = top; a < top + l->cone[c].d; a++) s = hypot(s, list_rate(l, c, a, v) + l->off[l->cone[c].row + a]);
    return s;
}

/* restitution, and the bounds of friction as impulses over `step` */
static void law_put(many *w, int c, double step)
{
    contact_list *l = &w->act;
    const int32_t *index = l->of[c].index;
    family *fam = l->of[c].pat->fam;
    const contact_family *f = fam->f;
    cone *o = &l->cone[c];
    if (o->kind == CONE_UNILATERAL) l->e[c] = term_value(&fam->e, &w->s->in, index);
    if (!o->d) return;
    w->s->in.speed = f->mu_of_speed ? slip_speed(w, c, w->v) : 0;
    double mu = term_value(&fam->mu, &w->s->in, index);
    bool tresca = f->friction == FRICTION_TRESCA, given = f->relation == REL_CLOSED;
    o->mu = tresca || given ? 0 : mu;
    o->radius = tresca ? mu * step : given ? mu * fabs(term_value(&fam->normal, &w->s->in, index)) * step : 0;
}

/* what is added to the rates: surfaces that move, the gap that may be used up in the step, restitution */
static inline void ahead_put(many *w, int c)
{
    contact_list *l = &w->act;
    int row = l->cone[c].row, m = list_rows(l, c);
    for (int a = 0; a < m; a++) l->b[row + a] = l->off[row + a];
    if (l->cone[c].kind == CONE_GIVEN) return;
    double un = l->un[c] = list_rate(l, c, 0, w->v) + l->off[row], gap = l->gap[c], ahead = fabs(gap) > 1e-14 * w->length ? gap / w->h : 0;      /* rounding is no gap */
    /* it meets the surface within the step: restitution now, unless the rebound is below what a step resolves */
    if (l->e[c] > 0 && gap + w->h * un <= 0 && -l->e[c] * un > 2 * fabs(list_rate(l, c, 0, w->v1) + l->off[row] - un)) ahead = l->e[c] * un;
    else if (ahead < 0 && l->cone[c].kind == CONE_UNILATERAL) ahead = 0;     /* an overlap is opened by positions, not by speed */
    l->b[row] += ahead;
}

/* a contact at the end of the list, not yet part of it: its normal row */
static int list_next(many *w, pattern *p, int64_t member, const int32_t *index)
{
    contact_list *l = &w->act;
    list_room(w, l, l->n + 1);
    int c = l->n;
    l->of[c] = (contact_of){ .pat = p, .member = member };
    memcpy(l->of[c].index, index, sizeof l->of[c].index);
    normal_put(w, c);
    return c;
}

/* the rest of it */
static void list_fill(many *w, int c)
{
    contact_list *l = &w->act;
    tangent_put(w, c);
    memset(l->r + l->cone[c].row, 0, (size_t)list_rows(l, c) * sizeof *l->r);
    l->e[c] = 0;
    l->was[c] = false;
    offsets_put(w, c);
}

static void list_take(many *w, int c)
{
    blocks_put(w, c);
    w->act.rows += list_rows(&w->act, c);
    w->act.n++;
}

/* Adds a member when it may matter in this step; v1 is the free velocity. */
static bool consider(many *w, pattern *p, int64_t member, const int32_t *index)
{
    family *fam = p->fam;
    contact_list *l = &w->act;
    double gap = fam->f->relation == REL_CLOSED ? 0 : term_value(&fam->gap, &w->s->in, index);
    if (p->first >= 0 && gap > w->far + 1e-3 * w->skin) return true;
    int c = list_next(w, p, member, index);
    l->gap[c] = gap;
    if (fam->f->relation == REL_GAP) {
        /* any of its bodies may be stopped within the step */
        double near_by = fabs(term_value(&fam->rate, &w->s->in, index));
        for (int k = l->dof_at[c], j = 0; k < l->dof_at[c + 1]; k++, j++)
            near_by += fabs(l->J[l->J_at[c] + (size_t)j]) * larger(fabs(w->v[l->dof[k]]), fabs(w->v1[l->dof[k]]));
        if (gap > w->margin * w->h * near_by + 1e-3 * w->skin) return true;
        if (gap < -w->r->max_penetration) w->r->max_penetration = -gap;
    }
    list_fill(w, c);
    law_put(w, c, w->h);
    ahead_put(w, c);
    list_take(w, c);
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

/* fixed: only what hangs on the state is put anew; gaps are those found at the end of the last step */
static void refresh(many *w)
{
    contact_list *l = &w->act;
    bool laws = w->law_step != w->h;
    w->law_step = w->h;
    for (int c = 0; c < l->n; c++) {
        const family *fam = l->of[c].pat->fam;
        if (!fam->offset_fixed) offsets_put(w, c);
        if (laws || !fam->still) law_put(w, c, w->h);
        l->was[c] = l->r[l->cone[c].row] > 0;
        ahead_put(w, c);
    }
}

static void candidates(many *w)
{
    contact_list *l = &w->act;
    system_at(w->s, w->t, w->q, w->v);
    if (w->fixed) { refresh(w); return; }
    l->n = l->rows = 0;
    each_member(w, consider);
}

static bool of_before(const contact_of *a, const contact_of *b) { return a->pat < b->pat || (a->pat == b->pat && a->member < b->member); }

/* none that was left out overlaps at the end of the step; the list of active ones is walked along */
static bool still_apart(many *w, pattern *p, int64_t member, const int32_t *index)
{
    size_t *j = &w->walk;
    const contact_list *l = &w->act;
    contact_of this = { .pat = p, .member = member };
    if (p->fam->f->relation != REL_GAP) return true;
    while (*j < (size_t)l->n && of_before(&l->of[*j], &this)) ++*j;
    if (*j < (size_t)l->n && l->of[*j].pat == p && l->of[*j].member == member) return true;
    return term_value(&p->fam->gap, &w->s->in, index) >= -w->small;
}

/* impulses of the last step are the start: both lists are in the order of families and members */
static void warm_start(many *w)
{
    contact_list *l = &w->act;
    const contact_list *o = &w->old;
    for (int c = 0, j = 0; c < l->n; c++) {
        while (j < o->n && of_before(&o->of[j], &l->of[c])) j++;
        if (j == o->n || o->of[j].pat != l->of[c].pat || o->of[j].member != l->of[c].member) continue;
        l->was[c] = o->r[o->cone[j].row] > 0;
        if (list_rows(l, c) == list_rows(o, j))
            memcpy(l->r + l->cone[c].row, o->r + o->cone[j].row, (size_t)list_rows(l, c) * sizeof *l->r);
    }
}

/* ---- positions ---- */
/* gaps at q1; the largest overlap */
static double gaps_now(many *w, double t)
{
    contact_list *l = &w->act;
    double worst = 0;
    system_at(w->s, t, w->q1, w->v1);
    for (int c = 0; c < l->n; c++) {
        if (l->cone[c].kind == CONE_GIVEN) continue;
        double gap = l->gap[c] = l->base && l->affine[c] ? l->base[c] + list_rate(l, c, 0, w->q1)
                                                         : term_value(&l->of[c].pat->fam->gap, &w->s->in, l->of[c].index);
        worst = larger(worst, l->cone[c].kind == CONE_BILATERAL ? fabs(gap) : -gap);
    }
    return w->overlap = worst;
}

static void touch(many *w, int c)
{
    const contact_list *l = &w->act;
    for (int k = l->dof_at[c]; k < l->dof_at[c + 1]; k++) w->touched[l->dof[k]] = 1;
}

static double positions_by(many *w, double t)
{
    double a = w->h * (1 - w->theta), b = w->h * w->theta;
    for (int i = 0; i < w->n; i++) w->q1[i] = w->q[i] + (w->touched[i] ? w->h * w->v1[i] : a * w->v[i] + b * w->v1[i]);
    return gaps_now(w, t);
}

/* Bodies on which an impulse would do work at the mean rate, as where they went apart and are pressed anew, go by the rate at the end: that is no gain. */
static void ends(many *w)
{
    const contact_list *l = &w->act;
    double *rate = w->qmid;
    bool may = false;                   /* without friction and restitution only what goes apart at the start can do so */
    for (int c = 0; c < l->n && !may; c++) may = l->r[l->cone[c].row] > 0 && (l->cone[c].d || l->e[c] > 0 || l->un[c] > 0);
    for (bool more = may; more;) {
        more = false;
        for (int i = 0; i < w->n; i++) rate[i] = w->touched[i] ? w->v1[i] : 0.5 * (w->v[i] + w->v1[i]);
        for (int c = 0; c < l->n; c++) {
            double power = 0, size = 0, speed = 0;
            bool new = false;
            if (l->cone[c].kind != CONE_UNILATERAL || !(l->r[l->cone[c].row] > 0)) continue;
            for (int k = l->dof_at[c]; k < l->dof_at[c + 1]; k++) { new |= !w->touched[l->dof[k]]; speed = larger(speed, fabs(rate[l->dof[k]])); }
            for (int a = 0, row = l->cone[c].row; new && a < list_rows(l, c); a++) {
                power += l->r[row + a] * (list_rate(l, c, a, rate) + l->off[row + a]);
                size += fabs(l->r[row + a]) * (speed + fabs(l->off[row + a]));
            }
            if (!(power > 1e-9 * size)) continue;
            touch(w, c);
            more = true;
        }
    }
}

/* By the mean rate; bodies that would overlap go by the rate at the end, for which gap + h u_n >= 0 was asked. */
static void positions(many *w, double t)
{
    contact_list *l = &w->act;
    double least = fmin(w->small, 1e-13 * w->length);
    memset(w->touched, 0, (size_t)w->n);
    ends(w);
    for (int round = 0; round < 64 && positions_by(w, t) > least; round++) {
        bool more = false;
        for (int c = 0; c < l->n; c++) {
            double over = l->cone[c].kind == CONE_BILATERAL ? fabs(l->gap[c]) : -l->gap[c];
            if (l->cone[c].kind == CONE_GIVEN || !(over > least)) continue;
            bool any = -l->un[c] * w->h > over, all = true;             /* it came at a speed, or others were moved */
            for (int k = l->dof_at[c]; k < l->dof_at[c + 1]; k++) { any |= w->touched[l->dof[k]]; all &= w->touched[l->dof[k]]; }
            if (!any || all) continue;
            more = true;
            touch(w, c);
        }
        if (!more) break;
    }
}

/* Overlaps are pushed open along the gradients: shortest move x (in the kinetic metric) with gap + J x >= 0, by the same method as the impulses. */
static void open_by(many *w, int c, double dl)
{
    const contact_list *l = &w->act;
    const double *K = l->K + l->J_at[c];
    for (int k = l->dof_at[c]; k < l->dof_at[c + 1]; k++) w->move[l->dof[k]] += dl * *K++;
}

static double open_sweep(many *w, bool down)
{
    contact_list *l = &w->act;
    double worst = 0;
    for (int at = 0; at < l->n; at++) {
        int c = down ? l->n - 1 - at : at;
        if (l->cone[c].kind == CONE_GIVEN) continue;
        double A = l->A[l->A_at[c]], x = l->l[c] - (l->gap[c] + list_rate(l, c, 0, w->move)) / A, dl;
        if (l->cone[c].kind == CONE_UNILATERAL && x < 0) x = 0;
        dl = x - l->l[c];
        if (dl == 0) continue;
        worst = larger(worst, fabs(dl) * A);
        l->l[c] = x;
        open_by(w, c, dl);
    }
    return worst;
}

static void open_direction(many *w, double *before)
{
    contact_list *l = &w->act;
    double g2 = 0;
    for (int c = 0; c < l->n; c++) { double g = l->l[c] - l->l0[c]; g2 += g * g; }
    bool go = *before > 0 && g2 <= *before;
    double beta = go ? g2 / *before : 0;
    for (int c = 0; c < l->n; c++) {
        double g = l->l[c] - l->l0[c], dl = beta * l->lp[c];
        l->lp[c] = go ? dl + g : 0;
        if (dl == 0) continue;
        l->l[c] += dl;
        open_by(w, c, dl);
    }
    *before = go || *before == 0 ? g2 : 0;
}

static void open_overlaps(many *w, double t)
{
    contact_list *l = &w->act;
    for (int round = 0; round < 6 && w->overlap > w->small; round++) {
        double before = 0;
        memset(w->move, 0, (size_t)w->n * sizeof *w->move);
        memset(l->l, 0, (size_t)l->n * sizeof *l->l);
        memset(l->lp, 0, (size_t)l->n * sizeof *l->lp);
        for (int it = 0; it < 300; it++) {
            memcpy(l->l0, l->l, (size_t)l->n * sizeof *l->l);
            if (larger(open_sweep(w, false), open_sweep(w, true)) <= 0.1 * w->small) break;
            open_direction(w, &before);
        }
        for (int i = 0; i < w->n; i++) w->q1[i] += w->move[i];
        gaps_now(w, t);
    }
}

/* ---- one step ---- */
static void note_impact(many *w, int c, double post, double t)
{
    const contact_list *l = &w->act;
    contact_result *to = &w->r->contact[l->of[c].pat - w->pat];
    *vec_push(w->r->a, &to->impacts) = (impact){ t, l->un[c], fmax(post, 0), l->r[l->cone[c].row], (int32_t)l->of[c].member };
    if (to->last_open) to->last_open[l->of[c].member] = t;
}

/* work of forces and impulses over the step, by the mean of the rates; impacts */
static void account(many *w, double t)
{
    const contact_list *l = &w->act;
    double sum = 0, lost = 0, given = 0, *rate = w->qmid;
    /* work is done along the way that is gone; where that is by the rate at the end, |v1 - v|^2/2 is lost */
    for (int i = 0; i < w->n; i++) {
        double dv = w->v1[i] - w->v[i];
        rate[i] = w->touched[i] ? w->v1[i] : 0.5 * (w->v[i] + w->v1[i]);
        sum += w->f[i] * rate[i];
        if (w->touched[i]) lost -= 0.5 * w->M[i] * dv * dv;
    }
    for (int c = 0; c < l->n; c++)
        for (int a = 0, row = l->cone[c].row; a < list_rows(l, c); a++) {
            double r = l->r[row + a], off = l->off[row + a];
            if (r == 0) continue;
            bool normal = a == 0 && l->cone[c].kind == CONE_UNILATERAL;
            lost += r * (list_rate(l, c, a, rate) + off);
            given += r * off;
            if (normal && r > 0 && !l->was[c] && l->un[c] < 0) note_impact(w, c, list_rate(l, c, a, w->v1) + off, t);
        }
    w->wf += w->h * sum - given;
    w->dissipated -= lost;
}

/* the end becomes the start */
static bool go_over(many *w, double t1)
{
    double *q = w->q, *v = w->v, over = 1 / w->h;
    bool finite = true;
    for (int i = 0; i < w->n; i++) {
        w->acc[i] = (w->v1[i] - v[i]) * over;
        finite &= isfinite(w->q1[i]) != 0;
    }
    w->q = w->q1; w->q1 = q;
    w->v = w->v1; w->v1 = v;
    w->t = t1;
    if (w->overlap > w->r->max_penetration) w->r->max_penetration = w->overlap;
    if (w->fixed) return finite;
    contact_list keep = w->old;
    w->old = w->act;
    w->act = keep;
    return finite;
}

static bool step(many *w, double h, double t1)
{
    int n = w->n;
    w->h = h;
    if (!w->s->force_constant) {
        for (int i = 0; i < n; i++) w->qmid[i] = w->q[i] + w->theta * h * w->v[i];
        system_at(w->s, w->t + w->theta * h, w->qmid, w->v);
        system_force(w->s, w->f);
    }
    /* bodies that others set in motion may meet what was too far off: then with a wider look, once more */
    for (w->margin = 1.5; ; w->margin *= 3) {
        for (int i = 0; i < n; i++) w->v1[i] = w->v[i] + h * w->minv[i] * w->f[i];
        if (!w->fixed) near_keep(w);
        candidates(w);
        if (!w->fixed) warm_start(w);
        if (!impulses_solve(w, t1)) return false;
        positions(w, t1);
        open_overlaps(w, t1);
        w->walk = 0;
        if (w->fixed || w->margin > 20 || each_member(w, still_apart)) break;
    }
    account(w, t1);
    return go_over(w, t1) || many_fail(w, SPAN_NONE, arena_printf(w->r->a, "the motion is no longer finite at t = %.6g", t1));
}

/* ---- samples ---- */
/* gaps of members that are not listed; what is not listed is open and pushes nothing */
static void sample_open(many *w, contact_result *k, const family *fam, size_t base)
{
    size_t ns = (size_t)k->nslip, all = (size_t)k->members, m = 0;
    int32_t index[MAX_INDEX] = { 0 };
    memset(k->rn + base, 0, all * sizeof(double));
    if (ns) { memset(k->rt + base * ns, 0, all * ns * sizeof(double)); memset(k->slip + base * ns, 0, all * ns * sizeof(double)); }
    memset(k->status + base, STATUS_OPEN, all);
    for (bool any = index_first(&fam->f->over, index); any; any = index_next(&fam->f->over, index), m++)
        k->gap[base + m] = term_value(&fam->gap, &w->s->in, index);
}

static void sample_contact(many *w, const contact_list *l, int c, contact_result *k, size_t m, double over)
{
    const cone *o = &l->cone[c];
    const double *r = l->r + o->row, *E = l->frame + (size_t)c * MAX_SLIP * MAX_SLIP;
    size_t ns = (size_t)k->nslip;
    int top = cone_normal(o), nslip = l->of[c].pat->fam->nslip;
    double rt = 0, bound = o->mu * fabs(top ? r[0] : 0) + o->radius;
    k->gap[m] = top ? l->gap[c] : 0;
    k->rn[m] = top ? r[0] * over : term_value(&l->of[c].pat->fam->normal, &w->s->in, l->of[c].index);
    for (int a = 0; a < o->d; a++) {
        double u = list_rate(l, c, top + a, w->v) + l->off[o->row + top + a];
        rt = hypot(rt, r[top + a]);
        for (size_t j = 0; j < ns; j++) {
            if (a == 0) k->rt[m * ns + j] = k->slip[m * ns + j] = 0;
            k->rt[m * ns + j] += E[a * nslip + (int)j] * r[top + a] * over;
            k->slip[m * ns + j] += E[a * nslip + (int)j] * u;
        }
    }
    k->status[m] = top && r[0] == 0 ? STATUS_OPEN : o->d && rt < bound * (1 - 1e-9) ? STATUS_STICK : STATUS_SLIP;
}

static void sample_contacts(many *w, int64_t at, double over)
{
    results *r = w->r;
    const contact_list *l = w->fixed ? &w->act : &w->old;
    system_at(w->s, w->t, w->q, w->v);
    for (size_t f = 0; f < w->p->ncontact; f++)
        if (r->contact[f].kept && !(w->fixed && !w->s->family[f].gap.where))
            sample_open(w, &r->contact[f], &w->s->family[f], (size_t)(at * r->contact[f].members));
    for (int c = 0; c < l->n; c++) {
        contact_result *k = &r->contact[l->of[c].pat - w->pat];
        size_t m = (size_t)(at * k->members + l->of[c].member);
        if (!k->kept) continue;
        if (l->cone[c].d || l->cone[c].kind == CONE_GIVEN) { sample_contact(w, l, c, k, m, over); continue; }
        double rn = l->r[l->cone[c].row];
        k->gap[m] = l->gap[c];
        k->rn[m] = rn * over;
        k->status[m] = rn == 0 ? STATUS_OPEN : STATUS_SLIP;
    }
}

/* sum of all outputs, members in batches */
static double energy_of(many *w, const terms *e)
{
    double sum = 0;
    for (size_t i = 0; i < e->n; i++) {
        const kernel *k = e->at[i].k;
        if (!k) continue;
        size_t regs = batch_regs(&k->tape), outs = (size_t)index_members(&k->over) * k->tape.nout;
        if (regs + outs > w->energies_cap) {
            w->energies_cap = regs + outs;
            w->energies = arena_array(w->a, double, w->energies_cap);
        }
        kernel_run_all(k, &w->s->in, w->energies, w->energies + regs);
        for (size_t j = 0; j < outs; j++) sum += w->energies[regs + j];
    }
    return sum;
}

/* Is the kinetic energy as written v.M v/2?  It is a polynomial of degree 2 in v: 0 at 0, and the same at x and -x. */
static bool kinetic_is_mass(many *w)
{
    const unsigned still = 1u << IN_PARAM | 1u << IN_INDEX | 1u << IN_V;
    double *x = w->qmid, e[3], mass = 0;
    if (!w->s->kinetic.n) return true;
    if (w->s->kinetic.reads & ~still) return false;
    for (int k = -1; k <= 1; k++) {
        for (int i = 0; i < w->n; i++) x[i] = k * (1 + 0.5 * sin(i + 1.0));
        system_at(w->s, 0, w->q, x);
        e[k + 1] = energy_of(w, &w->s->kinetic);
    }
    for (int i = 0; i < w->n; i++) mass += 0.5 * w->M[i] * x[i] * x[i];
    return e[1] == 0 && fabs(e[0] - mass) <= 1e-12 * mass && fabs(e[2] - mass) <= 1e-12 * mass;
}

/* over: 1 / size of the step that impulses belong to */
static void sample(many *w, double over)
{
    results *r = w->r;
    int64_t at = results_sample(r);
    size_t n = (size_t)w->n;
    double kin = 0, pot = 0, shown;
    r->t[at] = w->t;
    memcpy(r->q + (size_t)at * n, w->q, n * sizeof(double));
    memcpy(r->v + (size_t)at * n, w->v, n * sizeof(double));
    memcpy(r->acc + (size_t)at * n, w->acc, n * sizeof(double));
    for (size_t i = 0; i < n; i++) kin += 0.5 * w->M[i] * w->v[i] * w->v[i];
    system_at(w->s, w->t, w->q, w->v);
    shown = w->kinetic_is_mass ? kin : energy_of(w, &w->s->kinetic);
    if (w->s->potential.n) pot = energy_of(w, &w->s->potential);
    if (at == 0) { w->kinetic0 = kin; w->potential0 = pot; }
    w->top = fmax(w->top, fmax(kin, fmax(fabs(w->wf), fabs(w->dissipated))));
    double defect = fabs(kin - w->kinetic0 - w->wf + w->dissipated);
    if (defect > 0) r->power_balance = fmax(r->power_balance, defect / w->top);
    r->energy[at] = shown + pot;
    r->dissipated[at] = w->dissipated;
    r->work[at] = w->wf + (pot - w->potential0);
    sample_contacts(w, at, over);
}

/* ---- start ---- */
static bool join(many *w, pattern *p, int64_t member, const int32_t *index)
{
    contact_list *l = &w->act;
    const family *fam = p->fam;
    int c = list_next(w, p, member, index);
    list_fill(w, c);
    l->gap[c] = cone_normal(&l->cone[c]) ? term_value(&fam->gap, &w->s->in, index) : 0;
    law_put(w, c, 1);
    list_take(w, c);
    return true;
}

/* gap = base + J q where nothing else is in it */
static void list_affine(many *w)
{
    contact_list *l = &w->act;
    l->base = arena_array(w->a, double, l->n);
    l->affine = arena_array(w->a, bool, l->n);
    for (int c = 0; c < l->n; c++) {
        const family *fam = l->of[c].pat->fam;
        bool moves = false;
        for (uint32_t i = 0; fam->gap.k && i < fam->gap.k->tape.nin; i++) {
            in_kind k = fam->gap.k->in[i].kind;
            moves |= k != IN_PARAM && k != IN_INDEX && k != IN_Q;
        }
        l->affine[c] = cone_normal(&l->cone[c]) && fam->f->gap_constant_gradient && !moves;
        l->base[c] = l->gap[c] - list_rate(l, c, 0, w->q);
    }
}

/* rows and entries of K at each dof, for v += K^T r dof by dof */
static void list_turn(many *w)
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
                    if (pass == 0) { l->at_dof[dof + 2]++; continue; }
                    int to = l->at_dof[dof + 1]++;
                    l->row_of[to] = l->cone[c].row + a;
                    l->K_of[to] = l->K[l->J_at[c] + (size_t)(a * n + k)];
                }
        }
        for (int i = 2; pass == 0 && i < w->n + 2; i++) l->at_dof[i] += l->at_dof[i - 1];
    }
}

static bool rows_fixed(const many *w)
{
    enum { MOST = 2000000 };
    for (size_t i = 0; i < w->p->ncontact; i++)
        if (!w->s->family[i].rows_fixed || w->pat[i].first >= 0) return false;
    return program_contacts(w->p) <= MOST;
}

/* All members in one list when that is a chain: islands of narrow bands, known once for all. */
static void try_fixed(many *w)
{
    enum { CROWD = 12 };                /* contacts at a dof: more cannot be within a narrow band */
    if (!rows_fixed(w)) return;
    contact_list *l = &w->act;
    arena_pos mark = arena_mark(w->scratch);
    each_member(w, join);
    int *count = arena_array(w->scratch, int, w->n), most = 0;
    for (int k = 0; l->n && k < l->dof_at[l->n]; k++) if (++count[l->dof[k]] > most) most = count[l->dof[k]];
    if (l->n && most <= CROWD) {
        islands_find(&w->isl, l, w->n, true, w->a, w->scratch);
        for (int i = 0; i < w->isl.n; i++) if (w->isl.of[i].kb > most) most = w->isl.of[i].kb;
        w->fixed = most <= BAND_MOST;
    }
    if (w->fixed) { list_affine(w); list_turn(w); }
    else l->n = l->rows = 0;
    arena_release(w->scratch, mark);
}

/* ---- Gauss's principle at the start: accelerations to the right, and the forces that go with them ---- */
static bool holds(many *w, int c)
{
    const contact_of *k = &w->act.of[c];
    double gap = w->act.gap[c], wrong = w->act.cone[c].kind == CONE_BILATERAL ? fabs(gap) : -gap;
    contact named = { .fam = k->pat->fam, .member = k->member };
    if (w->act.cone[c].kind == CONE_GIVEN || wrong <= 1e-6 * w->length + 1e-12) return true;
    memcpy(named.index, k->index, sizeof named.index);
    text s = { .a = w->r->a };
    text_num(&s, gap);
    return many_fail(w, k->pat->fam->f->at, arena_printf(w->r->a, "constraint '%s' does not hold at t = 0: its gap is %s", contact_name(&named, w->r->a), s.at));
}

/* rates of change of the rates with q'' = 0, and the direction of slip where there is some */
static void biases_put(many *w, int c)
{
    contact_list *l = &w->act;
    const contact_of *k = &l->of[c];
    const family *fam = k->pat->fam;
    const term *t = &fam->slip_bias;
    int top = cone_normal(&l->cone[c]), d = l->cone[c].d, row = l->cone[c].row;
    const double *E = l->frame + (size_t)c * MAX_SLIP * MAX_SLIP;
    double speed = slip_speed(w, c, w->v), *dir = d ? arena_array(w->a, double, d) : NULL;
    if (top) l->b[row] = term_value(&fam->bias, &w->s->in, k->index);
    if (d && t->k) kernel_run(t->k, &w->s->in, k->index, t->reg);
    for (int a = 0; a < d; a++) {
        l->b[row + top + a] = 0;
        for (int j = 0; t->k && j < fam->nslip; j++) l->b[row + top + a] += E[a * fam->nslip + j] * t->reg[t->k->tape.out[j]];
        dir[a] = (list_rate(l, c, top + a, w->v) + l->off[row + top + a]) / speed;
    }
    if (d && speed > 1e-12 * vec_max(w->v, w->n)) l->cone[c].dir = dir;
}

static bool consider_closed(many *w, pattern *p, int64_t member, const int32_t *index)
{
    contact_list *l = &w->act;
    double gap = p->fam->f->relation == REL_CLOSED ? 0 : term_value(&p->fam->gap, &w->s->in, index);
    if (p->fam->f->relation == REL_GAP && gap > 1e-10 * w->length) return true;
    int c = list_next(w, p, member, index);
    l->gap[c] = gap;
    if (!holds(w, c)) return false;
    list_fill(w, c);
    double un = p->fam->f->relation == REL_CLOSED ? 0 : list_rate(l, c, 0, w->v) + l->off[l->cone[c].row];
    if (p->fam->f->relation == REL_GAP && fabs(un) > 1e-12 * vec_max(w->v, w->n)) return true;
    law_put(w, c, 1);
    biases_put(w, c);
    list_take(w, c);
    return true;
}

static bool gauss(many *w)
{
    contact_list chain = w->act;
    islands chain_islands = w->isl;
    bool fixed = w->fixed;
    w->act = (contact_list){ 0 };
    w->isl = (islands){ 0 };
    w->fixed = false;
    w->margin = 1.5;
    near_keep(w);
    system_at(w->s, 0, w->q, w->v);
    for (int i = 0; i < w->n; i++) w->v1[i] = w->minv[i] * w->f[i];
    if (!each_member(w, consider_closed) || !impulses_solve(w, 0)) return false;
    memcpy(w->acc, w->v1, (size_t)w->n * sizeof *w->acc);
    w->old = w->act;
    sample(w, 1);
    w->old.n = w->old.rows = 0;                         /* forces, not impulses */
    w->act = chain;
    w->isl = chain_islands;
    w->fixed = fixed;
    return true;
}

static bool begin(many *w)
{
    size_t n = (size_t)w->n;
    int bad = 0;
    double **vectors[] = { &w->q, &w->v, &w->q1, &w->v1, &w->f, &w->M, &w->qmid, &w->seen, &w->acc, &w->minv, &w->move };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) *vectors[i] = arena_array(w->a, double, n);
    w->touched = arena_array(w->a, uint8_t, n);
    w->marked = arena_array(w->a, int, n);
    system_start(w->s, w->q, w->v);
    system_at(w->s, 0, w->q, w->v);
    system_mass(w->s, w->M);
    if (!system_factor(w->s, w->M, &bad))
        return many_fail(w, SPAN_NONE, arena_printf(w->r->a, "the mass of '%s' is not positive", dof_name(w->p, bad, w->r->a)));
    memcpy(w->minv, w->s->minv.a, n * sizeof(double));
    system_force(w->s, w->f);
    return patterns(w);
}

/* lengths that overlaps are measured by: of the pairs, else of the positions */
static void lengths(many *w)
{
    for (size_t i = 0; i < w->p->ncontact; i++) if (w->pat[i].first >= 0) w->length = larger(w->length, w->pat[i].reach);
    if (w->length == 0) w->length = vec_max(w->q, w->n);
    w->small = w->length * fmin(fmax(0.01 * w->tol, 1e-12), 1e-5);
}

static void march(many *w)
{
    double T = w->o->duration, h = w->h, last = 0;
    results *r = w->r;
    w->kinetic_is_mass = kinetic_is_mass(w);
    if (!gauss(w) || !(T > 0)) return;
    int64_t steps = (int64_t)ceil(T / h - 1e-9);
    double kept = w->o->every > h ? T / w->o->every + 2 : (double)steps + 2;
    if (kept * w->n < 2e8) results_reserve(r, (int64_t)kept);
    for (int64_t i = 1; i <= steps; i++) {
        double end = i == steps ? T : (double)i * h, step_now = end - w->t;
        /* whole steps have the same size to the last bit, so that what belongs to it is kept */
        if (fabs(step_now - h) <= 1e-9 * h) step_now = h;
        if (!step(w, step_now, end)) return;
        r->steps = i;
        r->t_end = w->t;
        if (i == steps || !(w->o->every > 0) || w->t - last >= w->o->every * (1 - 1e-9)) { sample(w, 1 / step_now); last = w->t; }
        if (w->o->progress && i % 16 == 0 && w->o->progress(w->o->ud, (double)i / (double)steps)) { r->status = RUN_INTERRUPTED; return; }
    }
}

static bool never_rebounds(const many *w, const family *fam)
{
    int32_t index[MAX_INDEX] = { 0 };
    inputs in = { .from = { [IN_PARAM] = w->s->param } };
    if (!fam->e.k) return true;
    if (!fam->e.constant) return false;
    for (bool any = index_first(&fam->f->over, index); any; any = index_next(&fam->f->over, index))
        if (term_value(&fam->e, &in, index) != 0) return false;
    return true;
}

/* why this is not the way to run it; NULL: it is */
static const char *refuse(const many *w, span *at)
{
    const program *p = w->p;
    *at = SPAN_NONE;
    if (p->nevent) { *at = p->event[0].at; return "events among many contacts are not built yet"; }
    if (!w->s->diagonal || !w->s->mass_constant || w->s->first_order)
        return "many contacts are built for constant masses without coupling, and second-order equations";
    for (size_t i = 0; i < p->ncontact; i++) {
        const contact_family *f = &p->contact[i];
        *at = f->at;
        if (f->friction != FRICTION_NONE && !f->slip_given)
            return "among many contacts friction needs 'slip', the relative velocity at the contact";
        if (f->impact == IMPACT_POISSON && !never_rebounds(w, &w->s->family[i])) return "among many contacts restitution is Newton's; write newton(e)";
    }
    return NULL;
}

/* chain: only as a chain; false when it is none */
static bool run(many *w, bool chain)
{
    span at;
    const char *why = NULL;
    w->s = system_new(w->r->a, w->p, w->r->param, true, &why, &at);
    if (w->s) why = refuse(w, &at);
    if (chain && (why || w->s->force_of_state)) return false;
    if (why) { many_fail(w, at, why); return true; }
    if (!begin(w)) return true;
    lengths(w);
    try_fixed(w);
    if (chain && !w->fixed) return false;
    march(w);
    if (!w->r->solver) w->r->solver = "none needed";
    return true;
}

/* memory of the run is given back even when there is none left: then on to the owner of the results */
bool many_run(const program *p, const run_options *o, results *r, const stepping *how, bool chain)
{
    arena *volatile mine[2] = { arena_new(arena_allocator(r->a), NULL), arena_new(arena_allocator(r->a), NULL) };
    jmp_buf none, *owner = arena_on_oom(r->a, &none);
    bool ok = true;
    if (!mine[0] || !mine[1] || setjmp(none)) {
        arena_free(mine[0]);
        arena_free(mine[1]);
        arena_on_oom(r->a, owner);
        if (owner) longjmp(*owner, 1);
        r->status = RUN_FAILED;
        r->message = "out of memory";
        return true;
    }
    arena_on_oom(mine[0], &none);
    arena_on_oom(mine[1], &none);
    many *w = arena_make(mine[0], many);
    *w = (many){ .p = p, .o = o, .r = r, .a = mine[0], .scratch = mine[1], .n = p->nq, .h = how->h, .theta = how->theta, .tol = how->tolerance,
                 .rows_most = 1, .dofs_most = 1 };
    ok = run(w, chain);
    arena_on_oom(r->a, owner);
    arena_free(mine[0]);
    arena_free(mine[1]);
    return ok;
}
