/* sweep_islands: decides for each island whether steps are cut at impacts. Dofs that are coupled by masses,
   forces or contacts form an island. If a whole step is taken because some islands are crowded, it is
   repeated for the others with cuts at impacts, and their results replace those of the whole step. If that
   fails, or a calm island meets a crowded one, the whole step stays. */
#include <math.h>
#include <string.h>
#include "sweep.h"
#include "base/tolerances.h"

/* The dofs that a family of contacts reads or pushes, for one member. */
typedef struct family_reach {
    slot_map *dof;
    int n;
    bool all; /* friction in the whole tangent space */
} family_reach;

/* An island of the step, stored at its root. */
typedef struct step_island {
    int contacts;         /* contacts that may take part in the step */
    int hits;             /* impacts so far */
    int cuts;             /* times at which its contacts cut the step */
    int again;            /* those with contacts hit before; of near pairs each counts */
    int turning;          /* closed contacts whose rows turn */
    int last, last_again; /* pieces that the last of them begin */
    int acted;            /* contacts of the last problem of the whole step */
    bool near;            /* it has points whose near pairs are listed */
    bool shapes;          /* of bodies with shapes */
    bool marked, impatient, crowds;
} step_island;

/* Data of a contact at an instant. */
typedef struct kept_contact {
    double gap, tol_gap, tol_u, tol_slip, un, ahead, speed, mu0, normal0, htm, last_open;
    int64_t sized;
    int hits;
    bool closed, held;
} kept_contact;

/* The state of a step at an instant, for steps in two parts. */
typedef struct kept_moment {
    double t, work, dissipated, penetration;
    cut_notes cuts;
    double *q, *v, *f, *v1, *qmax, *vmax; /* n */
    kept_contact *contact;                /* of contacts of the calm islands */
    double *rows;                         /* their reactions and impulses */
} kept_moment;

struct island_room {
    int *block;  /* n: first dof that is coupled to a dof by masses and forces; computed when first needed */
    bool blocks; /* `block` is computed */
    int *up;     /* n: union-find of the step */
    step_island *at;       /* n */
    step_island of_points; /* what those with near pairs have together */
    bool *matters;         /* of each contact: may it take part in the step? */
    size_t matters_room;
    family_reach *reach;
    /* Contacts of the calm islands, and their table. */
    contact_state **state;
    contact_table table;
    int *place; /* their places in the table of all */
    size_t n, state_room;
    kept_moment before, after; /* the whole step */
    size_t *noted;             /* number of impacts of each family before it */
};

void sweep_islands_new(sweep *w)
{
    island_parts *x = &w->policy.islands;
    const system_t *s = w->s;
    x->judges = w->policy.cut == CUT_AUTO && w->n > 1 && !w->contacts.feeds && w->p->ncontact > 0;
    x->may = x->judges && s->mass_constant && !s->past && s->power.n == 0;
    if (!x->judges)
        return;
    x->marked = arena_array(w->a, bool, w->n);
    x->impatient = arena_array(w->a, bool, w->n);
    x->followed = arena_array(w->a, bool, w->n);
    x->calm = arena_array(w->a, bool, w->n);
    x->room = arena_make(w->a, struct island_room);
}

/* ---- coupling in the model ---- */
static int root_of(int *up, int i)
{
    while (up[i] != i)
        i = up[i] = up[up[i]];
    return i;
}

static void unite(int *up, int i, int j)
{
    i = root_of(up, i);
    j = root_of(up, j);
    if (i < j)
        up[j] = i;
    else
        up[i] = j;
}

static bool of_state(in_kind kind)
{
    return kind == IN_Q || kind == IN_V || kind == IN_A || kind == IN_PRE;
}

/* The inputs that each output of a tape depends on: `words` 64-bit words for each register. */
static uint64_t *dependences(const tape *t, size_t words, arena *a)
{
    tape plain = tape_plain(t, a);
    uint64_t *of = arena_array(a, uint64_t, plain.nreg * words), *now = arena_array(a, uint64_t, words);
    for (uint32_t i = 0; i < plain.nin; i++)
        of[i * words + i / 64] |= (uint64_t)1 << i % 64;
    for (const instr *p = plain.code; p->op != TAPE_END; p++) {
        uint32_t operand[] = { p->a, p->b, p->c };
        memset(now, 0, words * sizeof *now);
        for (int j = 0; j < op_arity((op_code)p->op); j++)
            for (size_t k = 0; k < words; k++)
                now[k] |= of[operand[j] * words + k];
        memcpy(of + p->dst * words, now, words * sizeof *now);
    }
    return of;
}

/* A force couples the dof on which it acts to those that it reads. */
static void force_couples(sweep *w, const kernel *k, int *block)
{
    arena_pos mark = arena_mark(w->scratch);
    size_t words = k->tape.nin / 64 + 1, n = 0;
    const uint64_t *of = dependences(&k->tape, words, w->scratch);
    uint32_t *pair = arena_array(w->scratch, uint32_t, 2 * (size_t)k->tape.nout * k->tape.nin + 1);
    for (uint32_t j = 0; j < k->tape.nout; j++)
        for (uint32_t i = 0; i < k->tape.nin; i++)
            if (of_state(k->in[i].kind) && of[k->tape.out[j] * words + i / 64] >> i % 64 & 1) {
                pair[n++] = j;
                pair[n++] = i;
            }
    int32_t index[MAX_INDEX] = { 0 };
    for (bool any = n && index_first(&k->over, index); any; any = index_next(&k->over, index))
        for (size_t i = 0; i < n; i += 2)
            unite(block, slot_at(&k->row[pair[i]], index, k->over.n),
                  slot_at(&k->in[pair[i + 1]].at, index, k->over.n));
    arena_release(w->scratch, mark);
}

/* entries of the mass matrix couple their dofs, and those that they depend on */
static void mass_couples(const kernel *k, int *block)
{
    int32_t index[MAX_INDEX] = { 0 };
    for (bool any = index_first(&k->over, index); any; any = index_next(&k->over, index)) {
        for (uint32_t j = 0; j < k->tape.nout; j++)
            unite(block, slot_at(&k->row[j], index, k->over.n), slot_at(&k->col[j], index, k->over.n));
        for (uint32_t i = 0; k->tape.nout > 0 && i < k->tape.nin; i++)
            if (of_state(k->in[i].kind))
                unite(block, slot_at(&k->row[0], index, k->over.n), slot_at(&k->in[i].at, index, k->over.n));
    }
}

static void reach_add(family_reach *r, const slot_map *m)
{
    for (int k = 0; k < r->n; k++)
        if (memcmp(&r->dof[k], m, sizeof *m) == 0)
            return;
    r->dof[r->n++] = *m;
}

/* The dofs that a contact pushes, and all that its gap and its laws read. */
static family_reach reach_of_family(const family *fam, arena *a)
{
    const term *all[] = { &fam->gap,      &fam->gradient,  &fam->rate,   &fam->bias, &fam->slip,
                          &fam->slip_map, &fam->slip_bias, &fam->normal, &fam->mu,   &fam->e };
    enum { TERMS = sizeof all / sizeof *all };
    family_reach r = { .all = fam->d > 0 && !fam->f->slip_given };
    size_t most = 0;
    for (int i = 0; i < TERMS; i++)
        most += all[i]->k ? all[i]->k->tape.nin + all[i]->k->tape.nout : 0;
    r.dof = arena_array(a, slot_map, most + 1);
    for (int i = 0; i < TERMS; i++) {
        const kernel *k = all[i]->k;
        for (uint32_t j = 0; k && j < k->tape.nin; j++)
            if (of_state(k->in[j].kind))
                reach_add(&r, &k->in[j].at);
        const slot_map *to = !k                         ? NULL
                             : all[i] == &fam->gradient ? k->row
                             : all[i] == &fam->slip_map ? k->col
                                                        : NULL;
        for (uint32_t j = 0; to && j < k->tape.nout; j++)
            reach_add(&r, &to[j]);
    }
    return r;
}

/* Computed once, when first needed. */
static void blocks_find(sweep *w)
{
    struct island_room *x = w->policy.islands.room;
    const system_t *s = w->s;
    size_t n = (size_t)w->n;
    x->blocks = true;
    x->block = arena_array(w->a, int, n);
    x->up = arena_array(w->a, int, n);
    x->at = arena_array(w->a, step_island, n);
    x->noted = arena_array(w->a, size_t, w->p->ncontact);
    x->table.from = arena_array(w->a, size_t, w->p->ncontact + 1);
    x->table.at_dof = arena_array(w->a, int, n + 2);
    kept_moment *moment[] = { &x->before, &x->after };
    for (int i = 0; i < 2; i++) {
        double **all[] = { &moment[i]->q,  &moment[i]->v,    &moment[i]->f,
                           &moment[i]->v1, &moment[i]->qmax, &moment[i]->vmax };
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            *all[k] = arena_array(w->a, double, n);
    }
    for (int i = 0; i < w->n; i++)
        x->block[i] = i;
    for (size_t i = 0; i < s->force.n; i++)
        if (s->force.at[i].k)
            force_couples(w, s->force.at[i].k, x->block);
    for (size_t i = 0; !w->p->mass_diagonal && i < s->mass.n; i++)
        if (s->mass.at[i].k)
            mass_couples(s->mass.at[i].k, x->block);
    for (int i = 0; i < w->n; i++)
        x->block[i] = root_of(x->block, i);
    x->reach = arena_array(w->a, family_reach, w->p->ncontact);
    for (size_t i = 0; i < w->p->ncontact; i++)
        x->reach[i] = reach_of_family(&s->family[i], w->a);
}

/* ---- islands of the step ---- */
static const family_reach *reach_of_contact(const sweep *w, const contact *c)
{
    return &w->policy.islands.room->reach[c->fam - w->s->family];
}

static int reach_dof(const family_reach *r, const contact *c, int j)
{
    return r->all ? j : slot_at(&r->dof[j], c->index, c->fam->f->over.n);
}

static int reach_count(const sweep *w, const family_reach *r)
{
    return r->all ? w->n : r->n;
}

/* How many of the dofs of a contact have the flag: none (0), some (1), all (2)? */
static int dofs_with(const sweep *w, const contact *c, const bool *flag)
{
    const family_reach *r = reach_of_contact(w, c);
    int n = reach_count(w, r), with = 0;
    for (int j = 0; j < n; j++)
        with += flag[reach_dof(r, c, j)];
    return with == 0 ? 0 : with < n ? 1 : 2;
}

static bool matters(sweep *w, size_t i, double h)
{
    const contact_table *t = &w->contacts.table;
    contact_state *k = w->contacts.state[i];
    if (t->closed[i] || always(k) || k->c->fam->f->pair.touch)
        return true;
    if (!k->rows_fixed || !k->offset_fixed)
        contact_rows(w->s, k->c, w->M, false);
    if (!t->row[i].known)
        t->row[i].ht = k->c->ht;
    return sweep_may_close(w, i, h);
}

/* Which contacts matter in the step; those that do unite their dofs.  Open pairs of points that cannot meet
   are known by the table alone.  Bodies with shapes make one island: any of their points may come in sight.
 */
static void matters_find(sweep *w, double h, bool waits)
{
    struct island_room *x = w->policy.islands.room;
    const bool *marked = w->policy.islands.marked;
    const contact_table *t = &w->contacts.table;
    double near_far = w->contacts.near.far + NEAR_SKIN * w->contacts.near.skin;
    int shape = -1;
    for (size_t f = 0; f < w->p->ncontact; f++) {
        bool pairs = w->p->contact[f].relation == REL_GAP && near_fits(&w->p->contact[f]);
        for (size_t i = t->from[f]; i < t->from[f + 1]; i++) {
            x->matters[i] = false;
            if (pairs && !t->closed[i] && t->gap[i] > near_far)
                continue;
            const contact *c = w->contacts.state[i]->c;
            const family_reach *r = reach_of_contact(w, c);
            int n = reach_count(w, r);
            bool known = waits && !w->p->contact[f].pair.touch && dofs_with(w, c, marked) == 2;
            x->matters[i] = n > 0 && !known && matters(w, i, h);
            for (int j = 1; x->matters[i] && j < n; j++)
                unite(x->up, reach_dof(r, c, 0), reach_dof(r, c, j));
            if (n == 0 || !w->p->contact[f].pair.touch)
                continue;
            if (shape >= 0)
                unite(x->up, shape, reach_dof(r, c, 0));
            shape = reach_dof(r, c, 0);
        }
    }
}

/* Finds the islands: their dofs have the same root. While a crowd waits, all marked dofs count as one island.
 */
static void parts_find(sweep *w, double h, bool waits)
{
    struct island_room *x = w->policy.islands.room;
    const bool *marked = w->policy.islands.marked;
    memcpy(x->up, x->block, (size_t)w->n * sizeof *x->up);
    memset(x->at, 0, (size_t)w->n * sizeof *x->at);
    if (w->contacts.nstate > x->matters_room) {
        x->matters_room = w->contacts.nstate + w->contacts.nstate / 4;
        x->matters = arena_array(w->a, bool, x->matters_room);
        w->policy.islands.part = arena_array(w->a, uint8_t, x->matters_room);
    }
    for (int i = 0, first = -1; waits && i < w->n; i++)
        if (marked[i] && first >= 0)
            unite(x->up, first, i);
        else if (marked[i])
            first = i;
    sweep_free(w, h, w->v1);
    system_at(w->s, w->t, w->q, w->v);
    if (w->policy.tried) /* the gaps belong to a step that was given up */
        sweep_gaps_but(w, NULL);
    w->policy.tried = false;
    matters_find(w, h, waits);
    for (int i = 0; i < w->n; i++) {
        step_island *of = &x->at[root_of(x->up, i)];
        of->marked |= marked[i];
        of->impatient |= w->policy.islands.impatient[i];
        of->near |= w->contacts.near.nof > 0 && w->contacts.near.point[i];
    }
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        const contact_state *k = w->contacts.state[i];
        if (!x->matters[i])
            continue;
        step_island *of = &x->at[root_of(x->up, reach_dof(reach_of_contact(w, k->c), k->c, 0))];
        of->contacts++;
        of->hits += w->contacts.table.hits[i];
        of->shapes |= k->c->fam->f->pair.touch;
        of->turning += w->contacts.table.closed[i] && !k->rows_fixed && k->relation == REL_GAP;
    }
}

static bool worse(const step_island *a, const step_island *b, crowd_reason why)
{
    if (why == CROWD_COUNTS && a->again != b->again)
        return a->again > b->again;
    if (why == CROWD_COUNTS && a->hits != b->hits)
        return a->hits > b->hits;
    return a->contacts > b->contacts;
}

static step_island *island_of(const sweep *w, const contact_state *k)
{
    const struct island_room *x = w->policy.islands.room;
    const family_reach *r = reach_of_contact(w, k->c);
    return reach_count(w, r) > 0 ? &x->at[root_of(x->up, reach_dof(r, k->c, 0))] : NULL;
}

void sweep_note_cut(sweep *w, const contact_state *k, bool again)
{
    cut_notes *all = &w->policy.cuts;
    if (!w->policy.islands.judges)
        return;
    if (all->n == all->room) {
        cut_note *old = all->at;
        all->room = 2 * all->room + 64;
        all->at = arena_array(w->a, cut_note, (size_t)all->room);
        if (all->n > 0)
            memcpy(all->at, old, (size_t)all->n * sizeof *old);
    }
    all->at[all->n++] = (cut_note){ k, all->piece, again };
}

/* What each island had of the cuts so far, and islands with near pairs had together: their bodies may meet in
   any step, and each cut costs as much as a step of all.  Cuts of none, at events, count for all. */
static void cuts_count(sweep *w)
{
    struct island_room *x = w->policy.islands.room;
    const cut_notes *all = &w->policy.cuts;
    int of_some = 0, last = 0;
    x->of_points = (step_island){ .near = true, .cuts = all->piece };
    for (int i = 0; i < w->n; i++)
        x->at[i].cuts = x->at[i].again = x->at[i].last = x->at[i].last_again = 0;
    for (int i = 0; i < all->n; i++) {
        const cut_note *c = &all->at[i];
        step_island *of = island_of(w, c->of);
        of_some += c->piece > last;
        last = c->piece > last ? c->piece : last;
        if (!of)
            continue;
        of->cuts += c->piece > of->last;
        of->last = c->piece > of->last ? c->piece : of->last;
        of->again += c->again && (of->near || c->piece + 1 > of->last_again);
        if (c->again)
            of->last_again = c->piece + 1;
    }
    int of_none = all->piece > of_some ? all->piece - of_some : 0;
    for (int i = 0; i < w->n; i++) {
        step_island *of = &x->at[i];
        of->cuts += of_none;
        x->of_points.again += of->near ? of->again : 0;
        x->of_points.turning += of->near ? of->turning : 0;
    }
}

/* How many cuts an island may have before it is given up: less if it crowded lately. */
static int patience_of(const sweep *w, const step_island *x)
{
    bool lately = x->impatient && !x->near && w->policy.islands.stage != STEP_CALM;
    return lately ? w->policy.patience : MAX_AGAIN;
}

/* Too much for a trial, whatever else moves in the model. */
static bool has_too_much(const sweep *w, const step_island *x)
{
    int patience = patience_of(w, x);
    return x->contacts > 0 && ((x->near && x->turning > MANY_TURNING) || x->again > patience ||
                               (x->cuts > patience && patience < MAX_AGAIN));
}

/* or those with near pairs have together */
static bool points_have_too_much(const sweep *w, const step_island *x)
{
    const step_island *all = &w->policy.islands.room->of_points;
    int patience = w->policy.islands.stage == STEP_CALM ? MAX_AGAIN : w->policy.patience;
    if (!x->near || x->contacts == 0)
        return has_too_much(w, x);
    return all->again > patience || all->turning > MANY_TURNING ||
           (all->cuts > patience && patience < MAX_AGAIN);
}

bool sweep_islands_crowded(sweep *w, double end)
{
    island_parts *p = &w->policy.islands;
    struct island_room *x = p->room;
    if (!p->judges)
        return true;
    if (p->stage != STEP_CALM) {
        if (!x->blocks)
            blocks_find(w);
        parts_find(w, end - w->t, false);
        p->found = true;
    }
    cuts_count(w);
    for (int i = 0; i < w->n; i++)
        if (points_have_too_much(w, &x->at[i]))
            return true;
    return false;
}

/* Who is to blame: islands that wait, or have too much for a trial by themselves, or the one whose problem
 * was not solved; if none is known, the one that has most. */
static void parts_blame(sweep *w, crowd_reason why)
{
    step_island *at = w->policy.islands.room->at, *worst = NULL;
    bool any = false;
    cuts_count(w);
    if (why == CROWD_UNSOLVED && w->policy.failed)
        worst = island_of(w, w->policy.failed);
    if (worst && worst->near)
        worst = NULL;
    if (worst)
        worst->crowds = any = true;
    for (int i = 0; i < w->n; i++) {
        step_island *x = &at[i];
        x->crowds |= x->marked && (why == CROWD_WAITS || (x->near && why != CROWD_LIES));
        x->crowds |= x->shapes && w->policy.lies;
        x->crowds |= (why == CROWD_COUNTS || why == CROWD_UNSOLVED) && has_too_much(w, x);
        any |= x->crowds && x->contacts > 0;
        if (x->contacts > 0 && (!worst || worse(x, worst, why)))
            worst = x;
    }
    bool of_points = why == CROWD_COUNTS && !any;
    for (int i = 0; of_points && i < w->n; i++)
        any |= at[i].crowds = at[i].near && points_have_too_much(w, &at[i]);
    if (!any && worst && (why == CROWD_COUNTS || why == CROWD_UNSOLVED))
        worst->crowds = true;
}

/* ---- the state of a step in two parts ---- */
static int kept_rows(const sweep *w)
{
    return 2 * w->hand.rows_most;
}

static void contact_put(sweep *w, kept_contact *k, double *rows, const contact_state *c)
{
    const contact_table *t = &w->contacts.table;
    const double *open = c->out->last_open;
    *k = (kept_contact){ t->gap[c->at],
                         t->tol_gap[c->at],
                         t->tol_u[c->at],
                         c->tol_slip,
                         t->un[c->at],
                         t->ahead[c->at],
                         c->speed,
                         c->mu0,
                         c->normal0,
                         c->htm,
                         open ? open[c->c->member] : 0,
                         c->sized,
                         t->hits[c->at],
                         t->closed[c->at],
                         c->now.held };
    for (int j = 0; j < 1 + c->c->fam->d; j++) {
        rows[2 * j] = c->r[j];
        rows[2 * j + 1] = c->P[j];
    }
}

static void contact_get(sweep *w, const kept_contact *k, const double *rows, contact_state *c)
{
    contact_table *t = &w->contacts.table;
    double *open = c->out->last_open;
    t->gap[c->at] = k->gap;
    t->tol_gap[c->at] = k->tol_gap;
    t->closed[c->at] = k->closed;
    t->tol_u[c->at] = k->tol_u;
    c->tol_slip = k->tol_slip;
    t->un[c->at] = k->un;
    t->ahead[c->at] = k->ahead;
    c->speed = k->speed;
    c->mu0 = k->mu0;
    c->normal0 = k->normal0;
    c->htm = k->htm;
    c->sized = k->sized;
    t->hits[c->at] = k->hits;
    c->now.held = k->held;
    if (open)
        open[c->c->member] = k->last_open;
    for (int j = 0; j < 1 + c->c->fam->d; j++) {
        c->r[j] = rows[2 * j];
        c->P[j] = rows[2 * j + 1];
    }
}

static void moment_put(sweep *w, kept_moment *m)
{
    struct island_room *x = w->policy.islands.room;
    int n = w->n, rows = kept_rows(w);
    m->t = w->t;
    m->work = w->account.books->work;
    m->dissipated = w->account.books->dissipated;
    m->penetration = w->r->max_penetration;
    m->cuts = w->policy.cuts;
    vec_copy(m->q, w->q, n);
    vec_copy(m->v, w->v, n);
    vec_copy(m->f, w->f, n);
    vec_copy(m->v1, w->v1, n);
    vec_copy(m->qmax, w->size.qmax, n);
    vec_copy(m->vmax, w->size.vmax, n);
    for (size_t i = 0; i < x->n; i++)
        contact_put(w, &m->contact[i], m->rows + i * (size_t)rows, x->state[i]);
}

/* Restores the dofs whose `calm` flag has this value; in both cases the contacts of the calm islands. */
static void dofs_get(sweep *w, const kept_moment *m, bool calm)
{
    for (int i = 0; i < w->n; i++) {
        if (w->policy.islands.calm[i] != calm)
            continue;
        w->q[i] = m->q[i];
        w->v[i] = m->v[i];
        w->f[i] = m->f[i];
        w->v1[i] = m->v1[i];
        w->size.qmax[i] = m->qmax[i];
        w->size.vmax[i] = m->vmax[i];
    }
}

static void moment_get(sweep *w, const kept_moment *m)
{
    struct island_room *x = w->policy.islands.room;
    int rows = kept_rows(w);
    w->t = m->t;
    w->fresh = w->account.driving_known = false;
    dofs_get(w, m, false);
    dofs_get(w, m, true);
    for (size_t i = 0; i < x->n; i++)
        contact_get(w, &m->contact[i], m->rows + i * (size_t)rows, x->state[i]);
}

static void books_set(sweep *w, double work, double dissipated)
{
    w->account.books->work = work;
    w->account.books->dissipated = dissipated;
}

/* ---- contacts of the calm islands alone ---- */
static void calm_room(sweep *w, size_t n)
{
    struct island_room *x = w->policy.islands.room;
    if (n <= x->state_room)
        return;
    size_t room = x->state_room = n + n / 4 + 4;
    contact_table *t = &x->table;
    x->state = arena_array(w->a, contact_state *, room);
    x->place = arena_array(w->a, int, room);
    t->gap = arena_array(w->a, double, room);
    t->tol_gap = arena_array(w->a, double, room);
    t->tol_u = arena_array(w->a, double, room);
    t->un = arena_array(w->a, double, room);
    t->ahead = arena_array(w->a, double, room);
    t->row = arena_array(w->a, gap_row, room);
    t->slip = arena_array(w->a, slip_row, room);
    t->first = arena_array(w->a, size_t, room);
    t->hits = arena_array(w->a, int, room);
    t->rows_room = room * (size_t)w->hand.rows_most;
    t->r = arena_array(w->a, double, t->rows_room);
    t->P = arena_array(w->a, double, t->rows_room);
    t->closed = arena_array(w->a, bool, room);
    t->met = arena_array(w->a, bool, room);
    t->in = arena_array(w->a, bool, room);
    t->bounds = arena_array(w->a, bool, room);
    t->all = arena_array(w->a, int, room);
    kept_moment *moment[] = { &x->before, &x->after };
    for (int i = 0; i < 2; i++) {
        moment[i]->contact = arena_array(w->a, kept_contact, room);
        moment[i]->rows = arena_array(w->a, double, room *(size_t)kept_rows(w));
    }
}

/* Determines the part of each contact, and lists the calm ones. */
static void parts_list(sweep *w)
{
    struct island_room *x = w->policy.islands.room;
    size_t n = 0;
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        int calm = dofs_with(w, w->contacts.state[i]->c, w->policy.islands.calm);
        w->policy.islands.part[i] = calm == 0 ? PART_CROWD : calm == 2 ? PART_CALM : PART_BETWEEN;
        n += calm == 2;
    }
    calm_room(w, n);
    x->n = 0;
    for (size_t i = 0; i < w->contacts.nstate; i++)
        if (w->policy.islands.part[i] == PART_CALM)
            x->state[x->n++] = w->contacts.state[i];
}

/* Exchanges the table of all contacts and that of the calm ones. */
static void tables_swap(sweep *w)
{
    struct island_room *x = w->policy.islands.room;
    contact_table table = w->contacts.table;
    contact_state **state = w->contacts.state;
    size_t n = w->contacts.nstate;
    w->contacts.table = x->table;
    w->contacts.state = x->state;
    w->contacts.nstate = x->n;
    x->table = table;
    x->state = state;
    x->n = n;
}

static void line_copy(const contact_table *from, size_t i, contact_table *to, size_t j)
{
    to->gap[j] = from->gap[i];
    to->tol_gap[j] = from->tol_gap[i];
    to->tol_u[j] = from->tol_u[i];
    to->un[j] = from->un[i];
    to->ahead[j] = from->ahead[i];
    to->row[j] = from->row[i];
    to->slip[j] = from->slip[i];
    to->hits[j] = from->hits[i];
    to->closed[j] = from->closed[i];
    to->bounds[j] = from->bounds[i];
    to->met[j] = to->in[j] = false;
}

/* Moves its reactions and impulses to place i of a table. */
static void reactions_move(contact_state *k, contact_table *to, size_t i)
{
    size_t m = 1 + (size_t)k->c->fam->d;
    memcpy(to->r + to->first[i], k->r, m * sizeof *k->r);
    memcpy(to->P + to->first[i], k->P, m * sizeof *k->P);
    k->r = to->r + to->first[i];
    k->P = to->P + to->first[i];
}

static void calm_alone(sweep *w)
{
    struct island_room *x = w->policy.islands.room;
    x->table.rows = 0;
    x->table.every = w->contacts.table.every;
    x->table.counted = w->contacts.table.counted;
    w->hand.nact = 0; /* uses places in the table */
    for (size_t i = 0; i < x->n; i++) {
        contact_state *k = x->state[i];
        x->place[i] = k->at;
        line_copy(&w->contacts.table, (size_t)k->at, &x->table, i);
        x->table.first[i] = x->table.rows;
        x->table.rows += 1 + (size_t)k->c->fam->d;
        reactions_move(k, &x->table, i);
        k->at = (int)i;
        k->c->gap = &x->table.gap[i];
    }
    x->table.n = x->n;
    tables_swap(w);
    sweep_table_index(w);
}

static void calm_among_all(sweep *w)
{
    struct island_room *x = w->policy.islands.room;
    tables_swap(w);
    w->hand.nact = 0;
    w->contacts.table.counted |= x->table.counted;
    for (size_t i = 0; i < x->n; i++) {
        contact_state *k = x->state[i];
        reactions_move(k, &w->contacts.table, (size_t)x->place[i]);
        line_copy(&x->table, i, &w->contacts.table, (size_t)x->place[i]);
        k->at = x->place[i];
        k->c->gap = &w->contacts.table.gap[k->at];
    }
}

/* ---- the step ---- */
static bool calm_matters(const sweep *w)
{
    const struct island_room *x = w->policy.islands.room;
    for (size_t i = 0; i < w->contacts.nstate; i++)
        if (x->matters[i] && dofs_with(w, w->contacts.state[i]->c, w->policy.islands.calm) == 2)
            return true;
    return false;
}

void sweep_islands_part(sweep *w, double end, crowd_reason why)
{
    island_parts *p = &w->policy.islands;
    struct island_room *x = p->room;
    if (!p->may || p->stage != STEP_UNDIVIDED) {
        if (p->judges && !p->may)
            memset(p->impatient, true, (size_t)w->n * sizeof *p->impatient);
        return;
    }
    if (!x->blocks)
        blocks_find(w);
    if (why == CROWD_WAITS && !memchr(p->marked, false, (size_t)w->n)) { /* all of them wait */
        memset(p->calm, 0, (size_t)w->n * sizeof *p->calm);
        return;
    }
    if (!p->found)
        parts_find(w, end - w->t, why == CROWD_WAITS);
    p->known = why == CROWD_COUNTS || why == CROWD_UNSOLVED;
    parts_blame(w, why);
    for (int i = 0; i < w->n; i++) {
        p->calm[i] = !x->at[root_of(x->up, i)].crowds;
        if (why == CROWD_LIES)
            continue;
        p->marked[i] = !p->calm[i] || (why == CROWD_WAITS && p->marked[i]);
        p->impatient[i] |= !p->calm[i];
    }
    if (!calm_matters(w))
        return;
    parts_list(w);
    moment_put(w, &x->before);
    for (size_t f = 0; f < w->p->ncontact; f++)
        x->noted[f] = w->r->contact[f].impacts.n;
    p->work = p->dissipated = 0;
    p->stage = STEP_CROWD;
}

void sweep_islands_forget(sweep *w)
{
    island_parts *p = &w->policy.islands;
    if (!p->judges)
        return;
    memset(p->marked, 0, (size_t)w->n * sizeof *p->marked);
    if (w->policy.patience == MAX_AGAIN)
        memset(p->impatient, 0, (size_t)w->n * sizeof *p->impatient);
}

void sweep_islands_met(sweep *w)
{
    for (int i = 0; w->policy.islands.stage == STEP_CROWD && i < w->hand.nact; i++) {
        const contact_state *k = w->hand.act[i];
        for (int j = 0; w->policy.islands.part[k->at] == PART_BETWEEN && j < rows_of(k); j++)
            if (w->hand.rr[k->row + j] != 0)
                w->policy.islands.stage = STEP_UNDIVIDED;
    }
}

/* Are gaps between the two parts open at the end of the step? Neither part has checked them. */
static bool parts_apart(sweep *w)
{
    contact_lists *l = &w->contacts;
    size_t n = 0;
    bool apart = true;
    for (size_t i = 0; i < l->nstate; i++)
        if (w->policy.islands.part[i] == PART_BETWEEN)
            l->look[n++] = l->state[i];
    system_at(w->s, w->t, w->q, w->v);
    sweep_gaps(w, l->look, n);
    for (size_t i = 0; i < n; i++) {
        sweep_tolerances(w, l->look[i]);
        apart &= l->table.gap[l->look[i]->at] >= -l->table.tol_gap[l->look[i]->at];
    }
    return apart;
}

/* Does a condition of `when` become true at the end of the step, with both parts together? */
static bool events_rise(sweep *w, bool mark)
{
    if (!w->p->nevent)
        return false;
    SWAP(w->q, w->q1);
    SWAP(w->v, w->v1);
    bool rises = sweep_rise(w, mark);
    SWAP(w->q, w->q1);
    SWAP(w->v, w->v1);
    return rises;
}

static bool member_calm(const sweep *w, size_t f, int64_t member)
{
    const contact_table *t = &w->contacts.table;
    size_t lo = t->from[f], hi = t->from[f + 1];
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (w->contacts.state[mid]->c->member < member)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < t->from[f + 1] && w->contacts.state[lo]->c->member == member &&
           w->policy.islands.part[lo] == PART_CALM;
}

/* Removes the impacts of calm islands that the whole step recorded; the other impacts of the step are sorted
   by time. */
static void impacts_merge(sweep *w, const size_t *between)
{
    for (size_t f = 0; f < w->p->ncontact; f++) {
        contact_result *r = &w->r->contact[f];
        size_t from = w->policy.islands.room->noted[f], to = from;
        for (size_t i = from; i < r->impacts.n; i++)
            if (i >= between[f] || !member_calm(w, f, r->impacts.at[i].member))
                r->impacts.at[to++] = r->impacts.at[i];
        r->impacts.n = to;
        for (size_t i = from + 1; i < to; i++) {
            impact one = r->impacts.at[i];
            size_t j = i;
            for (; j > from && r->impacts.at[j - 1].t > one.t; j--)
                r->impacts.at[j] = r->impacts.at[j - 1];
            r->impacts.at[j] = one;
        }
    }
}

/* Penetration in the crowd, at the end of the whole step. */
static double crowd_penetration(const sweep *w, double before)
{
    const contact_table *t = &w->contacts.table;
    for (size_t i = 0; i < w->contacts.nstate; i++)
        if (w->policy.islands.part[i] != PART_CALM && w->contacts.state[i]->relation != REL_CLOSED)
            before = larger(before,
                            w->contacts.state[i]->relation == REL_BILATERAL ? fabs(t->gap[i]) : -t->gap[i]);
    return before;
}

/* Is it to blame that a trial failed?  All with near pairs are, if one of them is. */
static bool fails(const sweep *w, const step_island *x, const step_island *failed)
{
    return (failed && (x == failed || (x->near && failed->near))) || points_have_too_much(w, x);
}

/* Of the islands that were tried in vain, those that are to blame crowd from now on; all, if none is known.
 */
static void mark_calm(sweep *w)
{
    const struct island_room *x = w->policy.islands.room;
    island_parts *p = &w->policy.islands;
    const step_island *failed = w->policy.failed ? island_of(w, w->policy.failed) : NULL;
    bool any = false;
    cuts_count(w);
    for (int pass = 0; pass < 2 && !any; pass++)
        for (int i = 0; i < w->n; i++) {
            const step_island *of = &x->at[root_of(x->up, i)];
            if (!p->calm[i] || of->contacts == 0 || !(pass > 0 || fails(w, of, failed)))
                continue;
            p->marked[i] = p->impatient[i] = any = true;
        }
}

/* Follows the calm islands from the start of the whole step. The crowd moves along without its contacts; that
   motion is discarded. */
static bool calm_follow(sweep *w, double end)
{
    island_parts *p = &w->policy.islands;
    bool fixed = w->crowd.chain.fixed;
    moment_get(w, &p->room->before);
    books_set(w, p->room->before.work + p->work, p->room->before.dissipated + p->dissipated);
    w->r->max_penetration = crowd_penetration(w, p->room->before.penetration);
    p->stage = STEP_CALM;
    w->policy.cuts.n = p->room->before.cuts.n;
    w->policy.cuts.piece = p->room->before.cuts.piece;
    w->crowd.chain.fixed = false; /* it lists all contacts */
    calm_alone(w);
    bool ok = sweep_follow_calm(w, end);
    calm_among_all(w);
    w->crowd.chain.fixed = fixed;
    p->stage = STEP_UNDIVIDED;
    return ok;
}

/* of an island, or of all with near pairs */
static int *acted_of(struct island_room *x, step_island *of)
{
    return of->near ? &x->of_points.acted : &of->acted;
}

/* Contacts of the last problem of the whole step: most of an island that crowds.  Islands that have few do
 * not wait. */
static void acted_count(sweep *w)
{
    island_parts *p = &w->policy.islands;
    struct island_room *x = p->room;
    p->acted = w->hand.nact;
    if (!p->known)
        return;
    p->acted = 0;
    for (int i = 0; i < w->n; i++)
        x->at[i].acted = 0;
    x->of_points.acted = 0;
    for (int i = 0; i < w->hand.nact; i++) {
        step_island *of = island_of(w, w->hand.act[i]);
        int acted = of && (of->crowds || of->near) ? ++*acted_of(x, of) : 0;
        p->acted = acted > p->acted ? acted : p->acted;
    }
    for (int i = 0; i < w->n; i++)
        p->marked[i] &= *acted_of(x, &x->at[root_of(x->up, i)]) > FEW_WAIT;
}

void sweep_islands_follow(sweep *w, double end)
{
    island_parts *p = &w->policy.islands;
    struct island_room *x = p->room;
    if (p->may)
        memset(p->followed, 0, (size_t)w->n * sizeof *p->followed);
    acted_count(w);
    if (p->stage != STEP_CROWD)
        return;
    arena_pos mark = arena_mark(w->scratch);
    size_t *between = arena_array(w->scratch, size_t, w->p->ncontact);
    for (size_t f = 0; f < w->p->ncontact; f++)
        between[f] = w->r->contact[f].impacts.n;
    moment_put(w, &x->after);
    bool ok = calm_follow(w, end);
    if (!ok)
        mark_calm(w);
    if (ok) {
        dofs_get(w, &x->after, false);
        w->fresh = w->account.driving_known = false;
        ok = near_covers(&w->contacts.near, w->t, w->q) && parts_apart(w) && !events_rise(w, false);
    }
    if (ok) {
        impacts_merge(w, between);
        memcpy(p->followed, p->calm, (size_t)w->n * sizeof *p->followed);
        events_rise(w, true);
        w->r->count.partly_at_once++;
    } else {
        moment_get(w, &x->after);
        books_set(w, x->after.work, x->after.dissipated);
        w->r->max_penetration = x->after.penetration;
        for (size_t f = 0; f < w->p->ncontact; f++)
            w->r->contact[f].impacts.n = between[f];
    }
    arena_release(w->scratch, mark);
}
