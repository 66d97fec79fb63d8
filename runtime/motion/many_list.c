/* many_list: the list of contacts of a step: which dofs a member acts on, its rows, offsets and laws; and the
 * members that may matter. */
#include <math.h>
#include <string.h>
#include "many_work.h"

/* ---- patterns ---- */
static int pattern_dof(pattern *p, const slot_map *m)
{
    for (int k = 0; k < p->n; k++)
        if (memcmp(&p->dof[k], m, sizeof *m) == 0)
            return k;
    if (p->n == LOCAL)
        return -1;
    p->dof[p->n] = *m;
    return p->n++;
}

static bool pattern_outputs(many *w, pattern *p, const term *t, bool column, int **to)
{
    if (!t->k)
        return true;
    uint32_t n = t->k->tape.nout;
    *to = arena_array(w->a, int, n);
    for (uint32_t i = 0; i < n; i++) {
        (*to)[i] = pattern_dof(p, column ? &t->k->col[i] : &t->k->row[i]);
        if ((*to)[i] < 0)
            return many_fail(
                w, p->fam->f->at,
                "a contact that acts on so many degrees of freedom is not built for many contacts");
    }
    return true;
}

bool list_patterns(many *w)
{
    w->pat = arena_array(w->a, pattern, w->p->ncontact);
    for (size_t i = 0; i < w->p->ncontact; i++) {
        pattern *p = &w->pat[i];
        family *fam = &w->s->family[i];
        p->fam = fam;
        if (!pattern_outputs(w, p, &fam->gradient, false, &p->grad) ||
            !pattern_outputs(w, p, &fam->slip_map, true, &p->slip))
            return false;
        if (p->n > w->dofs_most)
            w->dofs_most = p->n;
        if (1 + fam->d > w->rows_most)
            w->rows_most = 1 + fam->d;
        near_pattern(w, p);
    }
    return true;
}

/* ---- the list of contacts ---- */
static void *moved(arena *a, const void *old, size_t used, size_t cap, size_t size)
{
    void *x = arena_array_(a, cap, size);
    if (used)
        memcpy(x, old, used * size);
    return x;
}

static void list_room(many *w, contact_list *l, int need)
{
    if (need <= l->cap)
        return;
    int cap = l->cap = 2 * need + 16;
    size_t n = (size_t)l->n, c = (size_t)cap, m = (size_t)w->rows_most, d = (size_t)w->dofs_most,
           rows = (size_t)l->rows;
    size_t dofs = l->dof_at ? (size_t)l->dof_at[n] : 0, J = l->J_at ? l->J_at[n] : 0,
           A = l->A_at ? l->A_at[n] : 0;
#define MOVE(x, used, all) (l->x) = moved(w->a, l->x, used, all, sizeof *l->x)
    MOVE(of, n, c);
    MOVE(cone, n, c);
    MOVE(gap, n, c);
    MOVE(un, n, c);
    MOVE(e, n, c);
    MOVE(l, n, c);
    MOVE(l0, n, c);
    MOVE(lp, n, c);
    MOVE(was, n, c);
    MOVE(frame, w->rows_most > 1 ? n * MAX_SLIP * MAX_SLIP : 0,
         w->rows_most > 1 ? c * MAX_SLIP * MAX_SLIP : 0);
    MOVE(dof_at, dofs || J ? n + 1 : 0, c + 1);
    MOVE(J_at, dofs || J ? n + 1 : 0, c + 1);
    MOVE(A_at, A ? n + 1 : 0, c + 1);
    MOVE(dof, dofs, c * d);
    MOVE(J, J, c * d * m);
    MOVE(K, J, c * d * m);
    MOVE(A, A, c * m * m);
    MOVE(b, rows, c * m);
    MOVE(r, rows, c * m);
    MOVE(p, rows, c * m);
    MOVE(off, rows, c * m);
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
    for (int k = 0; k < n; k++) {
        dof[k] = slot_at(&p->dof[k], index, fam->f->over.n);
        J[k] = 0;
    }
    if (top && fam->gradient.k) {
        const tape *t = &fam->gradient.k->tape;
        kernel_run(fam->gradient.k, &w->s->in, index, fam->gradient.reg);
        for (uint32_t i = 0; i < t->nout; i++)
            J[p->grad[i]] += fam->gradient.reg[t->out[i]];
    }
    l->cone[c] = (cone){ .kind = !top                          ? CONE_GIVEN
                                 : fam->f->relation == REL_GAP ? CONE_UNILATERAL
                                                               : CONE_BILATERAL,
                         .row = l->rows };
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
                S[slot_at(&m->k->row[i], index, fam->f->over.n) * n + p->slip[i]] +=
                    m->reg[m->k->tape.out[i]];
        }
        d = slip_frame(S, top ? J : NULL, fam->nslip, n, E);
        memset(J + top * n, 0, (size_t)(n * d) * sizeof *J);
        for (int a = 0; a < d; a++)
            for (int j = 0; j < fam->nslip; j++)
                vec_axpy(J + (top + a) * n, E[a * fam->nslip + j], S + j * n, n);
    }
    l->cone[c].d = d;
    l->J_at[c + 1] = l->J_at[c] + (size_t)(n * (top + d));
    l->A_at[c + 1] = l->A_at[c] + (size_t)((top + d) * (top + d));
}

/* what of the rates is free of q' */
void offsets_put(many *w, int c)
{
    contact_list *l = &w->act;
    const int32_t *index = l->of[c].index;
    family *fam = l->of[c].pat->fam;
    int top = cone_normal(&l->cone[c]), d = l->cone[c].d;
    double *off = l->off + l->cone[c].row;
    const double *E = l->frame + (size_t)c * MAX_SLIP * MAX_SLIP;
    if (top)
        off[0] = term_value(&fam->rate, &w->s->in, index);
    if (d && fam->slip.k)
        kernel_run(fam->slip.k, &w->s->in, index, fam->slip.reg);
    for (int a = 0; a < d; a++) {
        double x = 0;
        for (int j = 0; fam->slip.k && j < fam->nslip; j++)
            x += E[a * fam->nslip + j] * fam->slip.reg[fam->slip.k->tape.out[j]];
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
        for (int k = 0; k < n; k++)
            K[a * n + k] = J[a * n + k] * w->minv[dof[k]];
    for (int a = 0; a < m; a++)
        for (int b = 0; b < m; b++)
            A[a * m + b] = vec_dot(J + a * n, K + b * n, n);
}

double slip_speed(const many *w, int c, const double *v)
{
    const contact_list *l = &w->act;
    int top = cone_normal(&l->cone[c]);
    double s = 0;
    for (int a = top; a < top + l->cone[c].d; a++)
        s = hypot(s, list_rate(l, c, a, v) + l->off[l->cone[c].row + a]);
    return s;
}

/* restitution, and the bounds of friction as impulses over `step` */
void law_put(many *w, int c, double step)
{
    contact_list *l = &w->act;
    const int32_t *index = l->of[c].index;
    family *fam = l->of[c].pat->fam;
    const contact_family *f = fam->f;
    cone *o = &l->cone[c];
    if (o->kind == CONE_UNILATERAL)
        l->e[c] = term_value(&fam->e, &w->s->in, index);
    if (!o->d)
        return;
    w->s->in.speed = f->mu_of_speed ? slip_speed(w, c, w->v) : 0;
    double mu = term_value(&fam->mu, &w->s->in, index);
    bool tresca = f->friction == FRICTION_TRESCA, given = f->relation == REL_CLOSED;
    o->mu = tresca || given ? 0 : mu;
    o->radius = tresca ? mu * step : given ? mu * fabs(term_value(&fam->normal, &w->s->in, index)) * step : 0;
}

/* a contact at the end of the list, not yet part of it: its normal row */
int list_next(many *w, pattern *p, int64_t member, const int32_t *index)
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
void list_fill(many *w, int c)
{
    contact_list *l = &w->act;
    tangent_put(w, c);
    memset(l->r + l->cone[c].row, 0, (size_t)list_rows(l, c) * sizeof *l->r);
    l->e[c] = 0;
    l->was[c] = false;
    offsets_put(w, c);
}

void list_take(many *w, int c)
{
    blocks_put(w, c);
    w->act.rows += list_rows(&w->act, c);
    w->act.n++;
}

/* Calls back for all members that may matter, in the order of families and members. */
bool each_member(many *w, member_fn f)
{
    for (size_t i = 0; i < w->p->ncontact; i++) {
        pattern *p = &w->pat[i];
        const index_set *over = &p->fam->f->over;
        const term *asks = p->fam->f->relation == REL_CLOSED ? &p->fam->slip : &p->fam->gap;
        int32_t index[MAX_INDEX] = { 0 };
        int64_t member = 0;
        for (size_t k = 0; p->first >= 0 && k < p->pair.n; k += 2) {
            index[0] = p->pair.at[k];
            index[1] = p->pair.at[k + 1];
            if (!f(w, p, p->row_start[index[0] - p->lo0] + (index[1] - range_lo(over, index, 1)), index))
                return false;
        }
        if (p->first >= 0)
            continue;
        for (bool any = index_first(over, index); any; any = index_next(over, index), member++)
            if (term_member(asks, index) && !f(w, p, member, index))
                return false;
    }
    return true;
}
