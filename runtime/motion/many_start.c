/* many_start: before the first step: masses and forces, lengths, chains that are listed once for all,
 * accelerations by Gauss's principle. */
#include <math.h>
#include <string.h>
#include "many_work.h"

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

static bool rows_fixed(const many *w)
{
    enum { MOST = 2000000 };
    for (size_t i = 0; i < w->p->ncontact; i++)
        if (!w->s->family[i].rows_fixed || w->pat[i].first >= 0)
            return false;
    return program_contacts(w->p) <= MOST;
}

/* All members in one list when that is a chain: islands of narrow bands, known once for all. */
void start_fixed(many *w)
{
    enum { CROWD = 12 }; /* contacts at a dof: more cannot be within a narrow band */
    if (!rows_fixed(w))
        return;
    contact_list *l = &w->act;
    arena_pos mark = arena_mark(w->scratch);
    each_member(w, join);
    int *count = arena_array(w->scratch, int, w->n), most = 0;
    for (int k = 0; l->n && k < l->dof_at[l->n]; k++)
        if (++count[l->dof[k]] > most)
            most = count[l->dof[k]];
    if (l->n && most <= CROWD) {
        islands_find(&w->isl, l, w->n, true, w->a, w->scratch);
        for (int i = 0; i < w->isl.n; i++)
            if (w->isl.of[i].kb > most)
                most = w->isl.of[i].kb;
        w->fixed = most <= BAND_MOST;
    }
    if (w->fixed) {
        list_affine(w);
        list_turn(w);
    } else
        l->n = l->rows = 0;
    arena_release(w->scratch, mark);
}

/* ---- Gauss's principle at the start: accelerations to the right, and the forces that go with them ---- */
static bool holds(many *w, int c)
{
    const contact_of *k = &w->act.of[c];
    double gap = w->act.gap[c], wrong = w->act.cone[c].kind == CONE_BILATERAL ? fabs(gap) : -gap;
    contact named = { .fam = k->pat->fam, .member = k->member };
    if (w->act.cone[c].kind == CONE_GIVEN || wrong <= 1e-6 * w->length + 1e-12)
        return true;
    memcpy(named.index, k->index, sizeof named.index);
    text s = { .a = w->r->a };
    text_num(&s, gap);
    return many_fail(w, k->pat->fam->f->at,
                     arena_printf(w->r->a, "constraint '%s' does not hold at t = 0: its gap is %s",
                                  contact_name(&named, w->r->a), s.at));
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
    if (top)
        l->b[row] = term_value(&fam->bias, &w->s->in, k->index);
    if (d && t->k)
        kernel_run(t->k, &w->s->in, k->index, t->reg);
    for (int a = 0; a < d; a++) {
        l->b[row + top + a] = 0;
        for (int j = 0; t->k && j < fam->nslip; j++)
            l->b[row + top + a] += E[a * fam->nslip + j] * t->reg[t->k->tape.out[j]];
        dir[a] = (list_rate(l, c, top + a, w->v) + l->off[row + top + a]) / speed;
    }
    if (d && speed > 1e-12 * vec_max(w->v, w->n))
        l->cone[c].dir = dir;
}

static bool consider_closed(many *w, pattern *p, int64_t member, const int32_t *index)
{
    contact_list *l = &w->act;
    double gap = p->fam->f->relation == REL_CLOSED ? 0 : term_value(&p->fam->gap, &w->s->in, index);
    if (p->fam->f->relation == REL_GAP && gap > 1e-10 * w->length)
        return true;
    int c = list_next(w, p, member, index);
    l->gap[c] = gap;
    if (!holds(w, c))
        return false;
    list_fill(w, c);
    double un = p->fam->f->relation == REL_CLOSED ? 0 : list_rate(l, c, 0, w->v) + l->off[l->cone[c].row];
    if (p->fam->f->relation == REL_GAP && fabs(un) > 1e-12 * vec_max(w->v, w->n))
        return true;
    law_put(w, c, 1);
    biases_put(w, c);
    list_take(w, c);
    return true;
}

bool start_gauss(many *w)
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
    for (int i = 0; i < w->n; i++)
        w->v1[i] = w->minv[i] * w->f[i];
    if (!each_member(w, consider_closed) || !impulses_solve(w, 0))
        return false;
    memcpy(w->acc, w->v1, (size_t)w->n * sizeof *w->acc);
    w->old = w->act;
    many_sample(w, 1);
    w->old.n = w->old.rows = 0; /* forces, not impulses */
    w->act = chain;
    w->isl = chain_islands;
    w->fixed = fixed;
    return true;
}

bool start_begin(many *w)
{
    size_t n = (size_t)w->n;
    int bad = 0;
    double **vectors[] = { &w->q,    &w->v,    &w->q1,  &w->v1,   &w->f,   &w->M,
                           &w->qmid, &w->seen, &w->acc, &w->minv, &w->move };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        *vectors[i] = arena_array(w->a, double, n);
    w->touched = arena_array(w->a, uint8_t, n);
    w->marked = arena_array(w->a, int, n);
    system_start(w->s, w->q, w->v);
    system_at(w->s, 0, w->q, w->v);
    system_mass(w->s, w->M);
    if (!system_factor(w->s, w->M, &bad))
        return many_fail(
            w, SPAN_NONE,
            arena_printf(w->r->a, "the mass of '%s' is not positive", dof_name(w->p, bad, w->r->a)));
    memcpy(w->minv, w->s->minv.a, n * sizeof(double));
    system_force(w->s, w->f);
    return list_patterns(w);
}

/* lengths that overlaps are measured by: of the pairs, else of the positions */
void start_lengths(many *w)
{
    for (size_t i = 0; i < w->p->ncontact; i++)
        if (w->pat[i].first >= 0)
            w->length = larger(w->length, w->pat[i].reach);
    if (w->length == 0)
        w->length = vec_max(w->q, w->n);
    w->small = w->length * fmin(fmax(0.01 * w->tol, 1e-12), 1e-5);
}
