/* events_keep: a run of events at an instant, where a piece has ended and the next has not begun: what ended
   it, and all that decides how the motion goes on. */
#include "events.h"

typedef struct field {
    double *at;
    size_t n;
} field;

static void fields_keep(run_state *s, const char *name, const field *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (f[i].at)
            state_f64(s, name, f[i].at, f[i].n);
}
#define FIELDS(s, name, f) fields_keep((s), (name), (f), sizeof(f) / sizeof *(f))

static void rub_taylors(rub *k, run_state *s)
{
    taylor *all[] = {
        k->gap, k->gradient, k->bias, k->slip, k->slip_map, k->slip_bias, k->normal, k->mu, k->e
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        taylor_keep(all[i], s);
}

static void rub_keep(ev *w, rub *k, run_state *s)
{
    size_t W = (size_t)w->width, n = (size_t)w->n, d = (size_t)k->c->fam->d, m = (size_t)k->c->fam->nslip;
    int mode = (int)k->mode;
    field numbers[] = { { &k->un, 1 },     { &k->last_hit, 1 }, { &k->last_low, 1 }, { &k->flight, 1 },
                        { &k->before, 1 }, { &k->tol_gap, 1 },  { &k->tol_u, 1 },    { &k->tol_slip, 1 },
                        { &k->grip_n, 1 }, { &k->grip_t, 1 },   { &k->zero_gap, 1 }, { &k->zero_slip, 1 },
                        { &k->r0, 1 },     { &k->share, 1 },    { k->rt0, d } };
    field series[] = { { k->g, W },     { k->rn, W },     { k->H, n * W },
                       { k->N, n * W }, { k->rt, d * W }, { k->S, d * n * W },
                       { k->D, n * W }, { k->fn, W },     { k->ft, (k->frame ? n : m) * W },
                       { k->ft2, W },   { k->beta, W },   { k->bound, W },
                       { k->speed, W } };
    state_int(s, "mode", &mode, MODE_OPEN, MODE_SLIP);
    k->mode = (contact_mode)mode;
    state_int(s, "sign", &k->sign, -1, 1);
    state_int(s, "sigma", &k->sigma, -1, 1);
    state_flags(s, "candidate", &k->candidate, 1);
    state_flags(s, "start", &k->start, 1);
    FIELDS(s, "contact", numbers);
    FIELDS(s, "contact series", series);
    rub_taylors(k, s);
}

static void taylors_keep(ev *w, run_state *s)
{
    for (int i = 0; i < w->nmass; i++)
        taylor_keep(w->mass[i], s);
    for (int i = 0; i < w->nforce; i++)
        taylor_keep(w->force[i], s);
    for (int i = 0; i < w->nevent; i++) {
        taylor_keep(w->event[i].when, s);
        state_flags(s, "was", &w->event[i].was, 1);
    }
}

void ev_keep(void *of, run_state *s)
{
    ev *w = of;
    size_t n = (size_t)w->n, W = (size_t)w->width;
    int pending = (int)w->pending;
    field numbers[] = { { &w->t, 1 },          { &w->t_low, 1 },   { &w->last_natural, 1 },
                        { &w->natural, 1 },    { &w->size, 1 },    { &w->last_h, 1 },
                        { &w->rounded, 1 },    { &w->decided, 1 }, { &w->size_top, 1 },
                        { &w->size_tried, 1 }, { &w->creep, 1 },   { &w->elapsed, 1 },
                        { &w->start_unit, 1 }, { &w->acc_slip, 1 } };
    field vectors[] = { { w->q, n },       { w->v, n },        { w->q_low, n },    { w->v_low, n },
                        { w->acc, n },     { w->f, n },        { w->qmax, n },     { w->vmax, n },
                        { w->acc_end, n }, { w->jerk_end, n }, { w->acc_rest, n }, { w->M, n * n } };
    field series[] = {
        { w->qs, n * W }, { w->vs, n * W }, { w->xs, n * W }, { w->fs, n * W }, { w->Ms, n * n * W }
    };
    bool *flags[] = { &w->split, &w->singular, &w->starting, &w->start_piece, &w->stopped, &w->creeping };
    FIELDS(s, "events", numbers);
    FIELDS(s, "state", vectors);
    FIELDS(s, "state series", series);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        state_flags(s, "flag", flags[i], 1);
    state_int(s, "stuck", &w->stuck, 0, 1000);
    state_int(s, "crawled", &w->crawled, 0, 10000);
    state_int(s, "pending", &pending, END_NONE, END_BREAK);
    w->pending = (end_kind)pending;
    state_int(s, "resting", &w->resting, -1, w->nrub - 1);
    taylors_keep(w, s);
    for (int i = 0; i < w->nrub; i++)
        rub_keep(w, &w->rub[i], s);
    dense_pieces(w, s);
    if (!w->hist)
        return;
    history_keep(w->hist, s);
    for (size_t k = 0; state_reads(s) && k < w->pieces.n; k++)
        history_add(w->hist, &w->pieces.at[k]);
}
