/* A step from q, v:  v1 = v + h M^-1 f + M^-1 J^T r with  u_n + gap/h >= 0  (or u_n >= -e u_n^- where the
   step would meet the surface); q1 = q + h times the mean rate, or the rate at the end for dofs that would
   overlap; then gaps that are still negative are pushed open. Masses are diagonal and constant; forces that
   depend on the state are taken within the step, explicitly. Where rows never change and few contacts meet at
   a dof (chains, columns, towers) all contacts are listed once for all. */
#include <math.h>
#include <string.h>
#include "many_work.h"

bool many_fail(many *w, span at, const char *message)
{
    if (w->r->status != RUN_FAILED) {
        w->r->status = RUN_FAILED;
        w->r->message = message;
        w->r->where = at;
    }
    return false;
}
/* ---- the contacts of a step ---- */
/* what is added to the rates: surfaces that move, the gap that may be used up in the step, restitution */
static inline void ahead_put(many *w, int c)
{
    contact_list *l = &w->act;
    int row = l->cone[c].row, m = list_rows(l, c);
    for (int a = 0; a < m; a++)
        l->b[row + a] = l->off[row + a];
    if (l->cone[c].kind == CONE_GIVEN)
        return;
    /* rounding is no gap */
    double un = l->un[c] = list_rate(l, c, 0, w->v) + l->off[row], gap = l->gap[c],
           ahead = fabs(gap) > 1e-14 * w->length ? gap / w->h : 0;
    /* it meets the surface within the step: restitution now, unless the rebound is below what a step resolves
     */
    if (l->e[c] > 0 && gap + w->h * un <= 0 &&
        -l->e[c] * un > 2 * fabs(list_rate(l, c, 0, w->v1) + l->off[row] - un))
        ahead = l->e[c] * un;
    /* an overlap is opened by positions, not by speed */
    else if (ahead < 0 && l->cone[c].kind == CONE_UNILATERAL)
        ahead = 0;
    l->b[row] += ahead;
}

/* Adds a member when it may matter in this step; v1 is the free velocity. */
static bool consider(many *w, pattern *p, int64_t member, const int32_t *index)
{
    family *fam = p->fam;
    contact_list *l = &w->act;
    double gap = fam->f->relation == REL_CLOSED ? 0 : term_value(&fam->gap, &w->s->in, index);
    if (p->first >= 0 && gap > w->far + 1e-3 * w->skin)
        return true;
    int c = list_next(w, p, member, index);
    l->gap[c] = gap;
    if (fam->f->relation == REL_GAP) {
        /* any of its bodies may be stopped within the step */
        double near_by = fabs(term_value(&fam->rate, &w->s->in, index));
        for (int k = l->dof_at[c], j = 0; k < l->dof_at[c + 1]; k++, j++)
            near_by += fabs(l->J[l->J_at[c] + (size_t)j]) *
                       larger(fabs(w->v[l->dof[k]]), fabs(w->v1[l->dof[k]]));
        if (gap > w->margin * w->h * near_by + 1e-3 * w->skin)
            return true;
        if (gap < -w->r->max_penetration)
            w->r->max_penetration = -gap;
    }
    list_fill(w, c);
    law_put(w, c, w->h);
    ahead_put(w, c);
    list_take(w, c);
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
        if (!fam->offset_fixed)
            offsets_put(w, c);
        if (laws || !fam->still)
            law_put(w, c, w->h);
        l->was[c] = l->r[l->cone[c].row] > 0;
        ahead_put(w, c);
    }
}

static void candidates(many *w)
{
    contact_list *l = &w->act;
    system_at(w->s, w->t, w->q, w->v);
    if (w->fixed) {
        refresh(w);
        return;
    }
    l->n = l->rows = 0;
    each_member(w, consider);
}

static bool of_before(const contact_of *a, const contact_of *b)
{
    return a->pat < b->pat || (a->pat == b->pat && a->member < b->member);
}

/* none that was left out overlaps at the end of the step; the list of active ones is walked along */
static bool still_apart(many *w, pattern *p, int64_t member, const int32_t *index)
{
    size_t *j = &w->walk;
    const contact_list *l = &w->act;
    contact_of this = { .pat = p, .member = member };
    if (p->fam->f->relation != REL_GAP)
        return true;
    while (*j < (size_t)l->n && of_before(&l->of[*j], &this))
        ++*j;
    if (*j < (size_t)l->n && l->of[*j].pat == p && l->of[*j].member == member)
        return true;
    return term_value(&p->fam->gap, &w->s->in, index) >= -w->small;
}

/* impulses of the last step are the start: both lists are in the order of families and members */
static void warm_start(many *w)
{
    contact_list *l = &w->act;
    const contact_list *o = &w->old;
    for (int c = 0, j = 0; c < l->n; c++) {
        while (j < o->n && of_before(&o->of[j], &l->of[c]))
            j++;
        if (j == o->n || o->of[j].pat != l->of[c].pat || o->of[j].member != l->of[c].member)
            continue;
        l->was[c] = o->r[o->cone[j].row] > 0;
        if (list_rows(l, c) == list_rows(o, j))
            memcpy(l->r + l->cone[c].row, o->r + o->cone[j].row, (size_t)list_rows(l, c) * sizeof *l->r);
    }
}

/* ---- one step ---- */
static void note_impact(many *w, int c, double post, double t)
{
    const contact_list *l = &w->act;
    contact_result *to = &w->r->contact[l->of[c].pat - w->pat];
    *vec_push(w->r->a, &to->impacts) = (impact){ t, l->un[c], fmax(post, 0), l->r[l->cone[c].row],
                                                 (int32_t)l->of[c].member };
    if (to->last_open)
        to->last_open[l->of[c].member] = t;
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
        if (w->touched[i])
            lost -= 0.5 * w->M[i] * dv * dv;
    }
    for (int c = 0; c < l->n; c++)
        for (int a = 0, row = l->cone[c].row; a < list_rows(l, c); a++) {
            double r = l->r[row + a], off = l->off[row + a];
            if (r == 0)
                continue;
            bool normal = a == 0 && l->cone[c].kind == CONE_UNILATERAL;
            lost += r * (list_rate(l, c, a, rate) + off);
            given += r * off;
            if (normal && r > 0 && !l->was[c] && l->un[c] < 0)
                note_impact(w, c, list_rate(l, c, a, w->v1) + off, t);
        }
    /* contacts that push overlaps open lift what they lost before */
    w->wf += w->h * sum - given + w->opened;
    w->dissipated += w->opened - lost;
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
    w->q = w->q1;
    w->q1 = q;
    w->v = w->v1;
    w->v1 = v;
    w->t = t1;
    if (w->overlap > w->r->max_penetration)
        w->r->max_penetration = w->overlap;
    if (w->fixed)
        return finite;
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
        for (int i = 0; i < n; i++)
            w->qmid[i] = w->q[i] + w->theta * h * w->v[i];
        system_at(w->s, w->t + w->theta * h, w->qmid, w->v);
        system_force(w->s, w->f);
    }
    /* bodies that others set in motion may meet what was too far off: then with a wider look, once more */
    for (w->margin = 1.5;; w->margin *= 3) {
        for (int i = 0; i < n; i++)
            w->v1[i] = w->v[i] + h * w->minv[i] * w->f[i];
        if (!w->fixed)
            near_keep(w);
        candidates(w);
        if (!w->fixed)
            warm_start(w);
        if (!impulses_solve(w, t1))
            return false;
        positions_go(w, t1);
        positions_open(w, t1);
        w->walk = 0;
        if (w->fixed || w->margin > 20 || each_member(w, still_apart))
            break;
    }
    account(w, t1);
    return go_over(w, t1) ||
           many_fail(w, SPAN_NONE, arena_printf(w->r->a, "the motion is no longer finite at t = %.6g", t1));
}

/* A step problem that is not solved is another one over half the time: wedges that stall the solvers are
 * rare, and not at every instant. */
static bool step_cut(many *w, double h, double t1, int depth)
{
    enum { HALVES = 5 };
    w->may_cut = depth < HALVES;
    w->cut = false;
    if (step(w, h, t1))
        return true;
    if (!w->cut)
        return false;
    double mid = w->t + h / 2;
    return step_cut(w, h / 2, mid, depth + 1) && step_cut(w, t1 - mid, t1, depth + 1);
}

static void march(many *w)
{
    double T = w->o->duration, h = w->h, last = 0;
    results *r = w->r;
    w->kinetic_is_mass = many_kinetic(w);
    if (!start_gauss(w) || !(T > 0))
        return;
    int64_t steps = (int64_t)ceil(T / h - 1e-9);
    double kept = w->o->every > h ? T / w->o->every + 2 : (double)steps + 2;
    if (kept * w->n < 2e8)
        results_reserve(r, (int64_t)kept);
    for (int64_t i = 1; i <= steps; i++) {
        double end = i == steps ? T : (double)i * h, step_now = end - w->t;
        /* whole steps have the same size to the last bit, so that what belongs to it is kept */
        if (fabs(step_now - h) <= 1e-9 * h)
            step_now = h;
        if (!step_cut(w, step_now, end, 0))
            return;
        r->steps = i;
        r->t_end = w->t;
        if (i == steps || !(w->o->every > 0) || w->t - last >= w->o->every * (1 - 1e-9)) {
            many_sample(w, 1 / w->h);
            last = w->t;
        }
        if (w->o->progress && i % 16 == 0 && w->o->progress(w->o->ud, (double)i / (double)steps)) {
            r->status = RUN_INTERRUPTED;
            return;
        }
    }
}

static bool never_rebounds(const many *w, const family *fam)
{
    int32_t index[MAX_INDEX] = { 0 };
    inputs in = { .from = { [IN_PARAM] = w->s->param } };
    if (!fam->e.k)
        return true;
    if (!fam->e.constant)
        return false;
    for (bool any = index_first(&fam->f->over, index); any; any = index_next(&fam->f->over, index))
        if (term_value(&fam->e, &in, index) != 0)
            return false;
    return true;
}

/* why this is not the way to run it; NULL: it is */
static const char *refuse(const many *w, span *at)
{
    const program *p = w->p;
    *at = SPAN_NONE;
    if (p->nevent) {
        *at = p->event[0].at;
        return "events among many contacts are not built yet";
    }
    if (!w->s->diagonal || !w->s->mass_constant || w->s->first_order)
        return "many contacts are built for constant masses without coupling, and second-order equations";
    for (size_t i = 0; i < p->ncontact; i++) {
        const contact_family *f = &p->contact[i];
        *at = f->at;
        if (f->friction != FRICTION_NONE && !f->slip_given)
            return "among many contacts friction needs 'slip', the relative velocity at the contact";
        if (f->impact == IMPACT_POISSON && !never_rebounds(w, &w->s->family[i]))
            return "among many contacts restitution is Newton's; write newton(e)";
    }
    return NULL;
}

/* May what is refused here be run with dense matrices?  As long as they are not larger than MOST. */
static bool dense_fits(const system_t *s)
{
    const double MOST = 512e6, n = s->n;
    double contacts = 0, rows = 0, wide = 0;
    for (size_t i = 0; i < s->p->ncontact; i++) {
        const family *fam = &s->family[i];
        double members = (double)index_members(&fam->f->over),
               own = (fam->f->relation != REL_CLOSED) + fam->d;
        contacts += members;
        rows += members * own;
        wide += members * (4 * own + 2) * n;
    }
    return n <= DENSE_DOFS && sizeof(double) * (3 * rows * rows + contacts * contacts + wide) <= MOST;
}

/* chain: only as a chain; false when it is none, or not to be run here */
static bool run(many *w, bool chain)
{
    span at;
    const char *why = NULL;
    w->s = system_new(w->r->a, w->p, w->r->param, true, &why, &at);
    if (w->s)
        why = refuse(w, &at);
    if (chain && (why || w->s->force_of_state))
        return false;
    if (why && w->s && dense_fits(w->s))
        return false;
    if (why) {
        many_fail(w, at, why);
        return true;
    }
    if (!start_begin(w))
        return true;
    start_lengths(w);
    start_fixed(w);
    if (chain && !w->fixed)
        return false;
    march(w);
    if (!w->r->solver)
        w->r->solver = "none needed";
    return true;
}

/* memory of the run is given back even when there is none left: then on to the owner of the results */
bool many_run(const program *p, const run_options *o, results *r, const stepping *how, bool chain)
{
    arena *volatile mine[2] = { arena_new(arena_allocator(r->a), NULL),
                                arena_new(arena_allocator(r->a), NULL) };
    jmp_buf none, *owner = arena_on_oom(r->a, &none);
    bool ok = true;
    if (!mine[0] || !mine[1] || setjmp(none)) {
        arena_free(mine[0]);
        arena_free(mine[1]);
        arena_on_oom(r->a, owner);
        if (owner)
            longjmp(*owner, 1);
        r->status = RUN_FAILED;
        r->message = "out of memory";
        return true;
    }
    arena_on_oom(mine[0], &none);
    arena_on_oom(mine[1], &none);
    many *w = arena_make(mine[0], many);
    *w = (many){ .p = p,
                 .o = o,
                 .r = r,
                 .a = mine[0],
                 .scratch = mine[1],
                 .n = p->nq,
                 .h = how->h,
                 .theta = how->theta,
                 .tol = how->tolerance,
                 .rows_most = 1,
                 .dofs_most = 1 };
    ok = run(w, chain);
    arena_on_oom(r->a, owner);
    arena_free(mine[0]);
    arena_free(mine[1]);
    return ok;
}
