/* sweep_tracks: what each contact carries along a run; those of near pairs come and go. */
#include <math.h>
#include <string.h>
#include "sweep.h"

static double *numbers(sweep *w, size_t n)
{
    return arena_array(w->a, double, n ? n : 1);
}

static void track_new(sweep *w, track *k, contact *c)
{
    size_t n = (size_t)c->n, d = (size_t)c->fam->d, m = 1 + d;
    bool fixed = c->fam->rows_fixed;
    *k = (track){ .c = c,
                  .relation = c->fam->f->relation,
                  .normal = c->fam->f->relation != REL_CLOSED,
                  .rows_fixed = fixed,
                  .offset_fixed = c->fam->offset_fixed,
                  .still = c->fam->still,
                  .out = &w->r->contact[c->fam - w->s->family],
                  .stamp = -1,
                  .stamp_m = -1,
                  .stamp_a = -1,
                  .stamp_am = -1,
                  .cone_step = NAN };
    if (!fixed) {
        k->H0 = numbers(w, n);
        k->S0 = numbers(w, d * n);
        k->Hm = numbers(w, n);
        k->Sm = numbers(w, d * n);
    }
    k->s0m = numbers(w, d);
    k->A = numbers(w, m * m);
    k->Am = numbers(w, m * m);
    k->r = numbers(w, m);
    k->P = numbers(w, m);
    k->now.impulse = numbers(w, m);
    k->closed = always(k);
}

static void track_room(sweep *w, size_t n)
{
    if (n <= w->track_room)
        return;
    size_t room = w->track_room = n + n / 4;
    track **old = w->track;
    w->track = arena_array(w->a, track *, room);
    if (w->ntrack)
        memcpy(w->track, old, w->ntrack * sizeof *old);
    w->act = arena_array(w->a, track *, room);
    w->meetings = arena_array(w->a, meeting *, room);
    w->back = arena_array(w->a, track *, room);
    w->gaps_of = arena_array(w->a, contact *, room);
    w->look = arena_array(w->a, track *, room);
    w->who = arena_array(w->a, bool, room);
    w->perm = arena_array(w->a, int, room);
    w->cone = arena_array(w->a, cone, room);
}

void sweep_tracks(sweep *w)
{
    system_t *s = w->s;
    near_new(&w->near, w->a, s);
    w->near_of = arena_array(w->a, near_tracks, w->near.nof);
    w->lengths = arena_array(w->a, double, w->p->ncontact);
    track_room(w, s->ncontact + 1);
    track *all = arena_array(w->a, track, s->ncontact);
    for (size_t i = 0; i < s->ncontact; i++) {
        w->track[i] = &all[i];
        track_new(w, &all[i], &s->contact[i]);
    }
    w->ntrack = s->ncontact;
}

void sweep_gaps(sweep *w, track *const *k, size_t n)
{
    for (size_t at = 0, end; at < n; at = end) {
        size_t count = 0;
        for (end = at; end < n && k[end]->c->fam == k[at]->c->fam; end++)
            w->gaps_of[count++] = k[end]->c;
        contact_gaps(w->s, w->gaps_of, count);
    }
}

/* ---- near pairs ---- */
static track *track_spare(sweep *w, near_tracks *t, family *fam)
{
    if (t->nspare)
        return t->spare[--t->nspare];
    track *k = arena_make(w->a, track);
    contact *c = arena_make(w->a, contact);
    contact_new(w->s, fam, c);
    track_new(w, k, c);
    k->near = true;
    return k;
}

/* a pair that has come near: open */
static void track_place(track *k, int64_t member, const int32_t *index)
{
    contact *c = k->c;
    contact_start(c, member, index);
    k->closed = k->met = k->in = false;
    k->hits = 0;
    k->stamp = k->stamp_m = k->stamp_a = k->stamp_am = -1;
    k->cone_step = NAN;
    for (int j = 0; j < 1 + c->fam->d; j++)
        k->r[j] = k->P[j] = 0;
}

/* at a distance that is known */
static bool track_begin(sweep *w, track *k)
{
    contact *c = k->c;
    contact_gap(w->s, c);
    contact_rows(w->s, c, w->M, true);
    contact_laws(w->s, c, true);
    sweep_tolerances(w, k);
    return sweep_holds(w, k);
}

/* The pairs of a family as they are now: those that were there keep what they carry.  measure: new ones are
 * measured, else a state that is read says all about them. */
static bool near_renew(sweep *w, near_tracks *t, const near_pairs *p, bool measure)
{
    int64_t n = (int64_t)p->pair.n / 2, old = 0;
    arena_pos mark = arena_mark(w->scratch);
    track **was = arena_array(w->scratch, track *, (size_t)t->n + 1);
    int64_t nwas = t->n;
    bool ok = true;
    if (t->n)
        memcpy(was, t->at, (size_t)t->n * sizeof *was);
    if (n + nwas > t->room) {
        track **spare = t->spare;
        t->room = 2 * (n + nwas) + 16;
        t->at = arena_array(w->a, track *, (size_t)t->room);
        t->spare = arena_array(w->a, track *, (size_t)t->room);
        if (t->nspare)
            memcpy(t->spare, spare, (size_t)t->nspare * sizeof *spare);
    }
    /* first those that have gone, so that new ones find them */
    for (int64_t i = 0, at = 0; i < nwas; i++) {
        int64_t member = was[i]->c->member;
        while (at < n && near_member(p, p->pair.at[2 * at], p->pair.at[2 * at + 1]) < member)
            at++;
        if (at < n && near_member(p, p->pair.at[2 * at], p->pair.at[2 * at + 1]) == member)
            continue;
        t->spare[t->nspare++] = was[i];
        was[i] = NULL;
    }
    t->n = n;
    for (int64_t i = 0; i < n && ok; i++) {
        int32_t index[MAX_INDEX] = { p->pair.at[2 * i], p->pair.at[2 * i + 1] };
        int64_t member = near_member(p, index[0], index[1]);
        while (old < nwas && (!was[old] || was[old]->c->member < member))
            old++;
        if (old < nwas && was[old]->c->member == member) {
            t->at[i] = was[old++];
            continue;
        }
        t->at[i] = track_spare(w, t, p->fam);
        track_place(t->at[i], member, index);
        ok = !measure || track_begin(w, t->at[i]);
    }
    arena_release(w->scratch, mark);
    return ok;
}

/* tracks of the pairs that were found, and all in order */
static bool near_tracked(sweep *w, bool measure)
{
    size_t n = w->s->ncontact, at = 0, next = 0;
    system_at(w->s, w->t, w->q, w->v);
    for (size_t i = 0; i < w->near.nof; i++) {
        if (!near_renew(w, &w->near_of[i], &w->near.of[i], measure))
            return false;
        n += (size_t)w->near_of[i].n;
    }
    arena_pos mark = arena_mark(w->scratch);
    track **listed = arena_array(w->scratch, track *, w->s->ncontact + 1);
    for (size_t i = 0; i < w->ntrack; i++)
        if (!near_fits(w->track[i]->c->fam->f))
            listed[next++] = w->track[i];
    w->ntrack = 0;
    track_room(w, n + 1);
    next = 0;
    for (size_t f = 0, pairs = 0; f < w->p->ncontact; f++) {
        const family *fam = &w->s->family[f];
        if (pairs < w->near.nof && w->near.of[pairs].fam == fam) {
            const near_tracks *t = &w->near_of[pairs++];
            for (int64_t i = 0; i < t->n; i++)
                w->track[at++] = t->at[i];
            continue;
        }
        for (size_t i = 0; i < fam->count; i++)
            w->track[at++] = listed[next++];
    }
    w->ntrack = at;
    arena_release(w->scratch, mark);
    return true;
}

bool sweep_near(sweep *w, double h, const double *v1)
{
    return !near_keep(&w->near, w->q, w->v, v1, h, w->margin) || near_tracked(w, true);
}

void sweep_near_again(sweep *w)
{
    near_find(&w->near);
    near_tracked(w, false);
}
