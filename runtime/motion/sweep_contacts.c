/* sweep_contacts: the data of each contact during a run; contacts of near pairs come and go. */
#include <math.h>
#include <string.h>
#include "sweep.h"
#include "base/tolerances.h"

static double *numbers(sweep *w, size_t n)
{
    return arena_array(w->a, double, n ? n : 1);
}

static void contact_state_new(sweep *w, contact_state *k, contact *c)
{
    *k = (contact_state){ .c = c,
                          .relation = c->fam->f->relation,
                          .normal = c->fam->f->relation != REL_CLOSED,
                          .rows_fixed = c->fam->rows_fixed,
                          .offset_fixed = c->fam->offset_fixed,
                          .still = c->fam->still,
                          .out = &w->r->contact[c->fam - w->s->family],
                          .at = -1,
                          .length = &w->size.lengths[c->fam - w->s->family],
                          .sized = -1,
                          .stamp = -1,
                          .stamp_m = -1,
                          .alone.stamp_a = -1,
                          .alone.stamp_am = -1,
                          .alone.cone_step = NAN };
}

/* First what steps read of all contacts together, then the rest. */
static void contact_states_room(sweep *w, contact_state *k, size_t count)
{
    for (size_t i = 0; i < count; i++)
        k[i].s0m = numbers(w, (size_t)k[i].c->fam->d);
    for (size_t i = 0; i < count; i++) {
        size_t n = (size_t)k[i].c->n, d = (size_t)k[i].c->fam->d, m = 1 + d;
        if (!k[i].rows_fixed) {
            k[i].H0 = numbers(w, n);
            k[i].S0 = numbers(w, d * n);
            k[i].Hm = numbers(w, n);
            k[i].Sm = numbers(w, d * n);
            if (k[i].c->fam->f->slip_given && d > 1) {
                k[i].show0 = numbers(w, d * d);
                k[i].showm = numbers(w, d * d);
            }
        }
        k[i].alone.A = numbers(w, m * m);
        k[i].alone.Am = numbers(w, m * m);
        k[i].now.impulse = numbers(w, m);
    }
}

/* ---- the table of all contacts ---- */
/* Copies the contents; contacts are set to point to them in table_order. */
static void table_room(sweep *w, size_t room)
{
    contact_table *t = &w->contacts.table, old = *t;
    double **numbers_of[] = { &t->gap, &t->tol_gap, &t->tol_u, &t->un, &t->ahead };
    bool **flags_of[] = { &t->closed, &t->met, &t->in, &t->bounds };
    for (size_t i = 0; i < sizeof numbers_of / sizeof *numbers_of; i++) {
        double *was = *numbers_of[i];
        *numbers_of[i] = arena_array(w->a, double, room);
        if (old.n)
            memcpy(*numbers_of[i], was, old.n * sizeof *was);
    }
    for (size_t i = 0; i < sizeof flags_of / sizeof *flags_of; i++) {
        bool *was = *flags_of[i];
        *flags_of[i] = arena_array(w->a, bool, room);
        if (old.n)
            memcpy(*flags_of[i], was, old.n * sizeof *was);
    }
    t->hits = arena_array(w->a, int, room);
    t->first = arena_array(w->a, size_t, room);
    if (old.n) {
        memcpy(t->hits, old.hits, old.n * sizeof *t->hits);
        memcpy(t->first, old.first, old.n * sizeof *t->first);
    }
    t->row = arena_array(w->a, gap_row, room); /* table_order fills these three */
    t->slip = arena_array(w->a, slip_row, room);
    t->all = arena_array(w->a, int, room);
}

void sweep_by_dof(sweep *w)
{
    contact_table *t = &w->contacts.table;
    int entries = 0;
    if (t->by_dof)
        return;
    t->by_dof = true;
    for (size_t i = 0; i < w->contacts.nstate; i++)
        entries += w->contacts.state[i]->c->dof ? w->contacts.state[i]->c->n : 0;
    memset(t->at_dof, 0, ((size_t)w->n + 2) * sizeof *t->at_dof);
    if (entries > t->entries) {
        t->entries = entries + entries / 4;
        t->of_dof = arena_array(w->a, int, t->entries);
    }
    t->nall = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < w->contacts.nstate; i++) {
            const contact *c = w->contacts.state[i]->c;
            if (!c->dof && pass == 0)
                t->all[t->nall++] = (int)i;
            for (int k = 0; c->dof && k < c->n; k++)
                if (pass == 0)
                    t->at_dof[c->dof[k] + 2]++;
                else
                    t->of_dof[t->at_dof[c->dof[k] + 1]++] = (int)i;
        }
        for (int k = 2; pass == 0 && k < w->n + 2; k++)
            t->at_dof[k] += t->at_dof[k - 1];
    }
}

/* Where each family begins. */
static void table_families(sweep *w)
{
    size_t f = 0;
    for (size_t i = 0; i < w->contacts.nstate; i++)
        for (size_t own = (size_t)(w->contacts.state[i]->c->fam - w->s->family); f <= own; f++)
            w->contacts.table.from[f] = i;
    for (; f <= w->p->ncontact; f++)
        w->contacts.table.from[f] = w->contacts.nstate;
}

/* r and P of all contacts in their new order; the states still have their old places. */
static void table_reactions(sweep *w)
{
    contact_table *t = &w->contacts.table;
    size_t rows = 0;
    double *r = arena_array(w->scratch, double, t->rows + 1),
           *P = arena_array(w->scratch, double, t->rows + 1);
    size_t *from = arena_array(w->scratch, size_t, t->n + 1);
    if (t->rows) {
        memcpy(r, t->r, t->rows * sizeof *r);
        memcpy(P, t->P, t->rows * sizeof *P);
        memcpy(from, t->first, t->n * sizeof *from);
    }
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        t->first[i] = rows;
        rows += 1 + (size_t)w->contacts.state[i]->c->fam->d;
    }
    if (rows > t->rows_room) {
        t->rows_room = rows + rows / 4;
        t->r = arena_array(w->a, double, t->rows_room);
        t->P = arena_array(w->a, double, t->rows_room);
    }
    t->rows = rows;
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        contact_state *k = w->contacts.state[i];
        size_t m = 1 + (size_t)k->c->fam->d;
        k->r = t->r + t->first[i];
        k->P = t->P + t->first[i];
        if (k->at < 0) {
            memset(k->r, 0, m * sizeof *k->r);
            memset(k->P, 0, m * sizeof *k->P);
        } else {
            memcpy(k->r, r + from[k->at], m * sizeof *k->r);
            memcpy(k->P, P + from[k->at], m * sizeof *k->P);
        }
    }
}

void sweep_table_index(sweep *w)
{
    table_families(w);
    w->contacts.table.by_dof = false;
}

/* Room for the dofs of all near pairs, one after the other. */
static int *pair_dofs(sweep *w)
{
    contact_table *t = &w->contacts.table;
    size_t entries = 0;
    for (size_t i = 0; i < w->contacts.nstate; i++)
        entries += w->contacts.state[i]->near ? (size_t)w->contacts.state[i]->c->n : 0;
    if (entries > t->pair_room) {
        t->pair_room = entries + entries / 4;
        t->pair_dof = arena_array(w->a, int, t->pair_room);
    }
    return t->pair_dof;
}

/* States have come and gone: reorders the table. New contacts are open, or always closed. */
static void table_order(sweep *w)
{
    typedef struct {
        double gap, tol_gap, tol_u, un, ahead;
        int hits;
        bool closed, met, in, known;
    } line;
    contact_table *t = &w->contacts.table;
    arena_pos mark = arena_mark(w->scratch);
    w->hand.nact = 0;                         /* a state may now belong to another pair */
    w->policy.islands.stage = STEP_UNDIVIDED; /* parts of a step use the old order */
    line *was = arena_array(w->scratch, line, t->n + 1);
    for (size_t i = 0; i < t->n; i++)
        was[i] = (line){ t->gap[i],  t->tol_gap[i], t->tol_u[i], t->un[i], t->ahead[i],
                         t->hits[i], t->closed[i],  t->met[i],   t->in[i], t->row[i].known };
    table_reactions(w);
    t->n = w->contacts.nstate;
    int *copy = pair_dofs(w);
    for (size_t i = 0; i < t->n; i++) {
        contact_state *k = w->contacts.state[i];
        contact *c = k->c;
        line is = k->at < 0 ? (line){ .closed = always(k) } : was[k->at];
        t->gap[i] = is.gap;
        t->tol_gap[i] = is.tol_gap;
        t->tol_u[i] = is.tol_u;
        t->un[i] = is.un;
        t->ahead[i] = is.ahead;
        t->hits[i] = is.hits;
        t->closed[i] = is.closed;
        t->met[i] = is.met;
        t->in[i] = is.in;
        t->row[i] = (gap_row){ .dof = c->dof ? c->dof : t->every,
                               .H = c->H,
                               .n = k->near && c->dof ? c->fam->ngap : c->n,
                               .all = c->n,
                               .whole = !c->dof };
        if (k->near && c->dof) {
            t->row[i].dof = memcpy(copy, c->dof, (size_t)c->n * sizeof *copy);
            copy += c->n;
        }
        t->slip[i] = (slip_row){ c->dof, c->S, c->s0, k->s0m, c->n, k->rows_fixed };
        if (is.known)
            row_note(&t->row[i], k);
        t->bounds[i] = k->relation == REL_GAP && c->fam->f->of_rates;
        w->contacts.bounds |= t->bounds[i];
        c->gap = &t->gap[i];
        k->at = (int)i;
    }
    arena_release(w->scratch, mark);
    sweep_table_index(w);
}

static void contact_state_room(sweep *w, size_t n)
{
    if (n <= w->contacts.state_room)
        return;
    size_t room = w->contacts.state_room = n + n / 4;
    contact_state **old = w->contacts.state;
    w->contacts.state = arena_array(w->a, contact_state *, room);
    if (w->contacts.nstate)
        memcpy(w->contacts.state, old, w->contacts.nstate * sizeof *old);
    table_room(w, room);
    w->hand.act = arena_array(w->a, contact_state *, room);
    w->hand.place = arena_array(w->a, int, room);
    w->hand.meetings = arena_array(w->a, meeting *, room);
    w->putting.back = arena_array(w->a, contact_state *, room);
    w->contacts.gaps_of = arena_array(w->a, contact *, room);
    w->contacts.look = arena_array(w->a, contact_state *, room);
    w->hand.who = arena_array(w->a, bool, room);
    w->hand.perm = arena_array(w->a, int, room);
    w->hand.cone = arena_array(w->a, cone, room);
}

void sweep_states(sweep *w)
{
    system_t *s = w->s;
    near_new(&w->contacts.near, w->a, s);
    w->contacts.near_of = arena_array(w->a, near_states, w->contacts.near.nof);
    w->size.lengths = arena_array(w->a, double, w->p->ncontact);
    for (size_t i = 0; i < w->contacts.near.nof; i++)
        if (!w->contacts.near.of[i].fam->f->pair.listed)
            w->size.lengths[w->contacts.near.of[i].fam - s->family] = w->contacts.near.reach;
    w->contacts.table.from = arena_array(w->a, size_t, w->p->ncontact + 1);
    w->contacts.table.at_dof = arena_array(w->a, int, w->n + 2);
    w->contacts.table.every = arena_array(w->a, int, w->n);
    for (int i = 0; i < w->n; i++)
        w->contacts.table.every[i] = i;
    contact_state_room(w, s->ncontact + 1);
    contact_state *all = arena_array(w->a, contact_state, s->ncontact);
    for (size_t i = 0; i < s->ncontact; i++) {
        w->contacts.state[i] = &all[i];
        contact_state_new(w, &all[i], &s->contact[i]);
    }
    contact_states_room(w, all, s->ncontact);
    w->contacts.nstate = s->ncontact;
    table_order(w);
}

void sweep_take(sweep *w, const bool *which, const bool *also)
{
    act_known *known = &w->hand.known;
    int n = 0;
    bool changed = false;
    if ((size_t)w->hand.nact == w->contacts.nstate && !memchr(which, false, w->contacts.nstate)) {
        sweep_tolerance(w, w->hand.nact);
        return; /* all contacts, as before */
    }
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        if (!which[i] && !(also && also[i]))
            continue;
        changed |= n >= w->hand.nact || w->hand.place[n] != (int)i;
        w->hand.act[n] = w->contacts.state[i];
        w->hand.place[n++] = (int)i;
    }
    changed |= n != w->hand.nact;
    w->hand.nact = n;
    sweep_tolerance(w, n);
    if (!changed)
        return;
    known->stamp++;
    known->fixed = known->still = true;
    known->gives = known->turns = known->tresca = known->rough = known->rates = false;
    for (int i = 0; i < n; i++) {
        const contact_state *k = w->hand.act[i];
        known->fixed &= k->rows_fixed;
        known->still &= k->still;
        known->gives |= k->c->fam->adhesion.k || k->c->fam->mu_static.k;
        known->turns |= turns_its_slip(k);
        known->tresca |= k->c->fam->f->friction == FRICTION_TRESCA;
        known->rough |= k->c->fam->d > 0;
        known->rates |= k->c->fam->f->of_rates && !k->offset_fixed;
    }
}

void sweep_gaps(sweep *w, contact_state *const *k, size_t n)
{
    if (n == w->contacts.nstate) { /* all contacts */
        sweep_gaps_but(w, NULL);
        return;
    }
    for (size_t at = 0, end; at < n; at = end) {
        size_t count = 0;
        for (end = at; end < n && k[end]->c->fam == k[at]->c->fam; end++)
            w->contacts.gaps_of[count++] = k[end]->c;
        contact_gaps(w->s, w->contacts.gaps_of, count);
    }
}

void sweep_gaps_but(sweep *w, const bool *known)
{
    contact_table *t = &w->contacts.table;
    for (size_t f = 0; f < w->p->ncontact; f++) {
        size_t from = t->from[f], end = t->from[f + 1], asked = known ? 0 : end - from;
        if (from == end || (known && !memchr(known + from, false, end - from)))
            continue;
        for (size_t i = from; known && i < end; i++)
            asked += !known[i];
        family *fam = w->contacts.state[from]->c->fam;
        if (2 * asked >= end - from && end - from == fam->count && family_gaps(w->s, fam, t->gap + from))
            continue;
        asked = 0;
        for (size_t i = from; i < end; i++)
            if (!(known && known[i]))
                w->contacts.gaps_of[asked++] = w->contacts.state[i]->c;
        if (asked)
            contact_gaps(w->s, w->contacts.gaps_of, asked);
    }
}

/* ---- near pairs ---- */
static contact_state *contact_state_spare(sweep *w, near_states *t, family *fam)
{
    if (t->nspare)
        return t->spare[--t->nspare];
    contact_state *k = arena_make(w->a, contact_state);
    contact *c = arena_make(w->a, contact);
    contact_new(w->s, fam, c, NULL);
    contact_state_new(w, k, c);
    contact_states_room(w, k, 1);
    k->near = !fam->f->pair.listed;
    return k;
}

/* A pair that has come near: open. */
static void contact_state_place(contact_state *k, int64_t member, const int32_t *index)
{
    contact *c = k->c;
    contact_start(c, member, index);
    k->at = -1;
    k->stamp = k->stamp_m = k->alone.stamp_a = k->alone.stamp_am = -1;
    k->alone.cone_step = NAN;
}

/* Initialises a contact at a known distance. */
static bool contact_state_begin(sweep *w, contact_state *k)
{
    contact *c = k->c;
    contact_gap(w->s, c);
    contact_rows(w->s, c, w->M, true);
    contact_laws(w->s, c, true);
    row_note(&w->contacts.table.row[k->at], k);
    sweep_tolerances(w, k);
    return sweep_holds(w, k);
}

/* Member number of the first contact of a pair. */
static int64_t near_member(const near_pairs *p, int64_t pair)
{
    return p->slots * near_rank(p, p->pair.at[2 * pair], p->pair.at[2 * pair + 1]);
}

static int32_t place_of(const contact *c)
{
    return c->index[c->fam->f->over.n - 1];
}

/* Adds the contacts of a pair that has come near, from `to` on. */
static void near_begin(sweep *w, near_states *t, const near_pairs *p, int64_t pair, contact_state **to)
{
    const contact_family *f = p->fam->f;
    int32_t index[MAX_INDEX] = { p->pair.at[2 * pair], p->pair.at[2 * pair + 1] };
    if (f->pair.listed)
        index[f->over.n - 1] = shapes_take(w->s->shapes);
    for (int k = 0; k < p->slots; k++) {
        if (f->pair.listed)
            index[index_of_point(f)] = k + 1;
        to[k] = contact_state_spare(w, t, p->fam);
        contact_state_place(to[k], near_member(p, pair) + k, index);
    }
    if (f->pair.listed)
        w->s->in.from[IN_FEATURE] = w->s->shapes->feature;
}

/* Updates the pairs of a family; those that were there before keep their states. */
static void near_renew(sweep *w, near_states *t, const near_pairs *p)
{
    int64_t pairs = (int64_t)p->pair.n / 2, n = pairs * p->slots, old = 0;
    arena_pos mark = arena_mark(w->scratch);
    contact_state **was = arena_array(w->scratch, contact_state *, (size_t)t->n + 1);
    int64_t nwas = t->n;
    if (t->n)
        memcpy(was, t->at, (size_t)t->n * sizeof *was);
    if (n + nwas > t->room) {
        contact_state **spare = t->spare;
        t->room = 2 * (n + nwas) + 16;
        t->at = arena_array(w->a, contact_state *, (size_t)t->room);
        t->spare = arena_array(w->a, contact_state *, (size_t)t->room);
        if (t->nspare)
            memcpy(t->spare, spare, (size_t)t->nspare * sizeof *spare);
    }
    /* first removes pairs that have gone, so that new ones can use their states */
    for (int64_t i = 0, at = 0; i < nwas; i += p->slots) {
        int64_t member = was[i]->c->member;
        while (at < pairs && near_member(p, at) < member)
            at++;
        if (at < pairs && near_member(p, at) == member)
            continue;
        if (p->fam->f->pair.listed)
            shapes_give(w->s->shapes, place_of(was[i]->c));
        for (int k = 0; k < p->slots; k++) {
            t->spare[t->nspare++] = was[i + k];
            was[i + k] = NULL;
        }
    }
    t->n = n;
    for (int64_t i = 0; i < pairs; i++) {
        int64_t member = near_member(p, i);
        contact_state **to = t->at + i * p->slots;
        while (old < nwas && (!was[old] || was[old]->c->member < member))
            old++;
        if (old < nwas && was[old]->c->member == member) {
            memcpy(to, was + old, (size_t)p->slots * sizeof *to);
            old += p->slots;
        } else
            near_begin(w, t, p, i, to);
    }
    arena_release(w->scratch, mark);
}

/* States of the pairs that were found, and all contacts in order. measure: new ones are evaluated; otherwise
   a saved state contains everything. */
static bool near_listed(sweep *w, bool measure)
{
    size_t n = w->s->ncontact, at = 0, next = 0;
    system_at(w->s, w->t, w->q, w->v);
    for (size_t i = 0; i < w->contacts.near.nof; i++) {
        near_renew(w, &w->contacts.near_of[i], &w->contacts.near.of[i]);
        n += (size_t)w->contacts.near_of[i].n;
    }
    arena_pos mark = arena_mark(w->scratch);
    contact_state **listed = arena_array(w->scratch, contact_state *, w->s->ncontact + 1);
    for (size_t i = 0; i < w->contacts.nstate; i++)
        if (!near_fits(w->contacts.state[i]->c->fam->f))
            listed[next++] = w->contacts.state[i];
    w->contacts.nstate = 0;
    contact_state_room(w, n + 1);
    next = 0;
    for (size_t f = 0, pairs = 0; f < w->p->ncontact; f++) {
        const family *fam = &w->s->family[f];
        if (pairs < w->contacts.near.nof && w->contacts.near.of[pairs].fam == fam) {
            const near_states *t = &w->contacts.near_of[pairs++];
            for (int64_t i = 0; i < t->n; i++)
                w->contacts.state[at++] = t->at[i];
            continue;
        }
        for (size_t i = 0; i < fam->count; i++)
            w->contacts.state[at++] = listed[next++];
    }
    w->contacts.nstate = at;
    arena_release(w->scratch, mark);
    size_t new = 0;
    for (size_t i = 0; i < w->contacts.nstate; i++)
        if (w->contacts.state[i]->at < 0)
            w->contacts.look[new ++] = w->contacts.state[i];
    table_order(w);
    for (size_t i = 0; measure && i < new; i++) {
        if (pair_begins(w->contacts.look[i]->c))
            shapes_pair(w->s->shapes, w->contacts.look[i]->c->fam->f, w->contacts.look[i]->c->index,
                        (bool[FEATURES]){ false });
        if (!contact_state_begin(w, w->contacts.look[i]))
            return false;
    }
    return true;
}

bool sweep_near(sweep *w, double h, const double *v1, double listed)
{
    contact_lists *all = &w->contacts;
    return !near_keep(&all->near, w->t, w->q, w->v, v1, h, all->margin, listed) || near_listed(w, true);
}

void sweep_near_again(sweep *w)
{
    near_find(&w->contacts.near);
    near_listed(w, false);
}

/* A point that belongs to other corners, edges or faces than before is a new contact: open until it meets. */
static void point_begin(sweep *w, contact_state *x)
{
    contact_table *t = &w->contacts.table;
    t->closed[x->at] = false;
    x->stamp = x->stamp_m = x->alone.stamp_a = x->alone.stamp_am = -1;
    x->alone.cone_step = NAN;
    memset(x->r, 0, (1 + (size_t)x->c->fam->d) * sizeof *x->r);
    contact_rows(w->s, x->c, w->M, true);
    contact_laws(w->s, x->c, true);
    row_note(&t->row[x->at], x);
    sweep_tolerances(w, x);
}

/* Finds anew what touches of the pair at `first`. Points whose gaps must be evaluated are added after the
   first n. */
static size_t pair_touch(sweep *w, size_t first, size_t n)
{
    shapes *s = w->s->shapes;
    const contact *c = w->contacts.state[first]->c;
    const contact_family *f = c->fam->f;
    bool anew[FEATURES];
    shapes_pair(s, f, c->index, anew);
    for (int k = 0; k < f->slots; k++) {
        contact_state *x = w->contacts.state[first + (size_t)k];
        if (anew[k] || !shapes_idle(s, f, x->c->index))
            w->contacts.gaps_of[n++] = x->c;
        if (!anew[k])
            continue;
        w->hand.nact = 0;
        w->policy.islands.stage = STEP_UNDIVIDED;
        point_begin(w, x);
    }
    return n;
}

/* Finds anew what touches of shapes, for the step. */
void sweep_touch(sweep *w)
{
    const contact_table *t = &w->contacts.table;
    if (!w->s->shapes)
        return;
    system_at(w->s, w->t, w->q, w->v);
    shapes_place(w->s->shapes, &w->s->in);
    for (size_t f = 0; f < w->p->ncontact; f++) {
        size_t n = 0;
        for (size_t i = t->from[f]; w->p->contact[f].pair.touch && i < t->from[f + 1]; i++)
            if (pair_begins(w->contacts.state[i]->c))
                n = pair_touch(w, i, n);
        if (n)
            contact_gaps(w->s, w->contacts.gaps_of, n);
    }
}

/* The point of a pair that can be given up for another one: the open point that is farthest away; NULL: all
   are closed. */
static contact_state *point_spare(sweep *w, size_t first, int slots)
{
    const contact_table *t = &w->contacts.table;
    contact_state *best = NULL;
    for (int k = 0; k < slots; k++) {
        contact_state *x = w->contacts.state[first + (size_t)k];
        if (!t->closed[x->at] && (!best || t->gap[x->at] > t->gap[best->at]))
            best = x;
    }
    return best;
}

/* Points of the pair at `first` that overlap at the end of the trial step without being part of it: they join
   the step from its start, if they are apart there. */
static bool pair_ahead(sweep *w, size_t first)
{
    shapes *s = w->s->shapes;
    const contact *c = w->contacts.state[first]->c;
    const contact_family *f = c->fam->f;
    feature all[FEATURES];
    double size;
    bool any = false;
    int count = shapes_meet(s, f, c->index, all, &size);
    for (int k = 0; k < count; k++) {
        if (all[k].gap >= -SHAPE_DEEP * size || shapes_holds(s, f, c->index, all[k].id))
            continue;
        contact_state *x = point_spare(w, first, f->slots);
        if (!x)
            break;
        int point = x->c->index[index_of_point(f)] - 1;
        shapes_hold(s, f, c->index, point, &all[k]);
        system_at(w->s, w->t, w->q, w->v);
        if (contact_gap(w->s, x->c) < -SHAPE_DEEP * size) {
            shapes_hold(s, f, c->index, point, NULL); /* it comes around a corner */
            contact_gap(w->s, x->c);
        } else
            any = true;
        point_begin(w, x);
    }
    return any;
}

bool sweep_touch_ahead(sweep *w)
{
    bool any = false;
    if (!w->s->shapes)
        return false;
    system_at(w->s, w->t1, w->q1, w->v1);
    shapes_place(w->s->shapes, &w->s->in);
    for (size_t i = 0; i < w->contacts.nstate; i++)
        if (pair_begins(w->contacts.state[i]->c))
            any |= pair_ahead(w, i);
    if (any)
        sweep_make_anew(w);
    return any;
}

/* Holds everything that touches of the pair at `first` in the current state. in: points that are close enough
   to be kept apart. */
static void pair_hold(sweep *w, size_t first, bool *in)
{
    shapes *s = w->s->shapes;
    const contact *c = w->contacts.state[first]->c;
    const contact_family *f = c->fam->f;
    feature all[FEATURES];
    double size;
    int count = shapes_meet(s, f, c->index, all, &size);
    for (int k = 0; k < f->slots; k++) {
        shapes_hold(s, f, c->index, k, k < count ? &all[k] : NULL);
        in[first + (size_t)k] = k < count && all[k].gap < SHAPE_CLOSE * size;
    }
}

/* Rows and gaps of the current contacts, then the shortest move that opens them. */
static void shapes_open(sweep *w)
{
    for (int i = 0; i < w->hand.nact; i++) {
        contact_gap(w->s, w->hand.act[i]->c);
        contact_rows(w->s, w->hand.act[i]->c, w->M, false);
    }
    vec_copy(w->q1, w->q, w->n);
    sweep_open(w);
    vec_copy(w->q, w->q1, w->n);
}

/* Updates everything that depends on the state after it has moved. */
static bool moved(sweep *w)
{
    w->fresh = false;
    w->hand.nact = 0;
    sweep_make_anew(w);
    system_at(w->s, w->t, w->q, w->v);
    sweep_gaps_but(w, NULL);
    if (!w->s->force_constant)
        system_force(w->s, w->f);
    if (w->s->mass_constant)
        return true;
    system_mass(w->s, w->M);
    return sweep_factor(w, w->M, w->t);
}

/* The largest overlap of the placed shapes; *deep: one exceeds the permitted overlap. */
static double shapes_overlap(const sweep *w, bool *deep)
{
    feature all[FEATURES];
    double size, most = 0;
    *deep = false;
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        const contact *c = w->contacts.state[i]->c;
        if (!pair_begins(c))
            continue;
        for (int k = shapes_meet(w->s->shapes, c->fam->f, c->index, all, &size) - 1; k >= 0; k--) {
            most = larger(-all[k].gap, most);
            *deep |= all[k].gap < -SHAPE_DEEP * size;
        }
    }
    return most;
}

bool sweep_too_deep(sweep *w)
{
    feature all[FEATURES];
    double size;
    if (!w->s->shapes)
        return false;
    system_at(w->s, w->t1, w->q1, w->v1);
    shapes_place(w->s->shapes, &w->s->in);
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        const contact *c = w->contacts.state[i]->c;
        if (pair_begins(c) && shapes_meet(w->s->shapes, c->fam->f, c->index, all, &size) > 0 &&
            all[0].gap < -SHAPE_AGAIN * size)
            return true;
    }
    return false;
}

/* Marks in `in` contacts that are not points of pairs and are closed or close. Does one overlap? */
static bool others_close(sweep *w, bool *in)
{
    const contact_table *t = &w->contacts.table;
    bool deep = false;
    sweep_gaps_but(w, NULL);
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        const contact_state *k = w->contacts.state[i];
        bool gap = k->relation == REL_GAP && !k->c->fam->f->pair.touch && !k->c->fam->f->of_rates;
        in[i] = t->closed[i] || (gap && t->gap[i] < SHAPE_CLOSE * *k->length);
        deep |= gap && t->gap[i] < -0.01 * SHAPE_DEEP * *k->length;
    }
    return deep;
}

/* One move of everything that overlaps too much or is close to it, while contacts that touch are held. False:
   there is nothing to move. */
static bool part_once(sweep *w, bool *in)
{
    bool deep;
    system_at(w->s, w->t, w->q, w->v);
    shapes_place(w->s->shapes, &w->s->in);
    shapes_overlap(w, &deep);
    if (!(others_close(w, in) || deep))
        return false;
    for (size_t i = 0; i < w->contacts.nstate; i++)
        if (pair_begins(w->contacts.state[i]->c))
            pair_hold(w, i, in);
    w->account.opened = 0;
    w->hand.nact = 0;
    sweep_take(w, in, NULL);
    shapes_open(w);
    w->account.books->dissipated += w->account.opened;
    return true;
}

bool sweep_part_shapes(sweep *w)
{
    enum { ROUNDS = 120 };
    shapes *s = w->s->shapes;
    bool deep;
    if (!s)
        return true;
    system_at(w->s, w->t, w->q, w->v);
    shapes_place(s, &w->s->in);
    double most = shapes_overlap(w, &deep);
    if (deep) {
        arena_pos mark = arena_mark(w->scratch);
        size_t n = s->nfeature, points = n / FEATURE_NUMBERS;
        double *held = arena_array(w->scratch, double, n);
        int64_t *id = arena_array(w->scratch, int64_t, points);
        bool *in = arena_array(w->scratch, bool, w->contacts.nstate);
        memcpy(held, s->feature, n * sizeof *held);
        memcpy(id, s->id, points * sizeof *id);
        vec_copy(w->account.used, w->f, w->n);
        for (int round = 0; round < ROUNDS && part_once(w, in); round++)
            ;
        system_at(w->s, w->t, w->q, w->v);
        shapes_place(s, &w->s->in);
        most = shapes_overlap(w, &deep);
        memcpy(s->feature, held, n * sizeof *held);
        memcpy(s->id, id, points * sizeof *id);
        arena_release(w->scratch, mark);
        if (!moved(w))
            return false;
    }
    w->r->max_penetration = larger(w->r->max_penetration, most);
    return true;
}
