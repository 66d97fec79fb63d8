/* events_keep: the saved state of a run between two pieces: what ended the last piece, and everything that
   the next one depends on. */
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
    taylor *all[] = { k->terms.gap,      k->terms.gradient,  k->terms.bias,    k->terms.slip,
                      k->terms.slip_map, k->terms.slip_bias, k->terms.normal,  k->terms.mu,
                      k->terms.rate,     k->terms.mu_static, k->terms.adhesion };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        taylor_keep(all[i], s);
}

static void rub_keep(ev *w, rub *k, run_state *s)
{
    size_t W = (size_t)w->width, n = (size_t)w->n, d = (size_t)k->c->fam->d, m = (size_t)k->c->fam->nslip;
    int mode = (int)k->mode;
    field numbers[] = { { &k->un, 1 },         { &k->last_hit, 1 },      { &k->last_low, 1 },
                        { &k->flight, 1 },     { &k->before, 1 },        { &k->zero.tol_gap, 1 },
                        { &k->zero.tol_u, 1 }, { &k->zero.tol_slip, 1 }, { &k->grip_n, 1 },
                        { &k->grip_t, 1 },     { &k->zero.zero_gap, 1 }, { &k->zero.zero_slip, 1 },
                        { &k->r0, 1 },         { &k->share, 1 },         { k->rt0, d } };
    field series[] = {
        { k->series.g, W },     { k->series.rn, W },     { k->series.H, n * W },
        { k->series.N, n * W }, { k->series.rt, d * W }, { k->series.S, d * n * W },
        { k->series.D, n * W }, { k->series.fn, W },     { k->series.ft, (k->series.frame ? n : m) * W },
        { k->series.ft2, W },   { k->series.beta, W },   { k->series.bound, W },
        { k->series.speed, W }, { k->series.most, W }
    };
    state_int(s, "mode", &mode, MODE_OPEN, MODE_HOVER);
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
    for (int i = 0; i < w->series.nmass; i++)
        taylor_keep(w->series.mass[i], s);
    for (int i = 0; i < w->series.nforce; i++)
        taylor_keep(w->series.force[i], s);
    for (int i = 0; i < w->nevent; i++) {
        taylor_keep(w->event[i].when, s);
        state_flags(s, "was", &w->event[i].was, 1);
    }
}

void ev_keep(void *of, run_state *s)
{
    ev *w = of;
    size_t n = (size_t)w->n, W = (size_t)w->width;
    int pending = (int)w->progress.pending;
    field numbers[] = { { &w->t, 1 },
                        { &w->t_low, 1 },
                        { &w->series.last_natural, 1 },
                        { &w->progress.met, 1 },
                        { &w->progress.met_first, 1 },
                        { &w->series.natural, 1 },
                        { &w->series.in.unit, 1 },
                        { &w->sizes.size, 1 },
                        { &w->sizes.last_h, 1 },
                        { &w->sizes.rounded, 1 },
                        { &w->sizes.decided, 1 },
                        { &w->sizes.size_top, 1 },
                        { &w->sizes.size_tried, 1 },
                        { &w->sizes.creep, 1 },
                        { &w->start.elapsed, 1 },
                        { &w->start.start_unit, 1 },
                        { &w->start.acc_slip, 1 } };
    field vectors[] = { { w->q, n },
                        { w->v, n },
                        { w->q_low, n },
                        { w->v_low, n },
                        { w->acc, n },
                        { w->f, n },
                        { w->sizes.qmax, n },
                        { w->sizes.vmax, n },
                        { w->start.acc_end, n },
                        { w->start.jerk_end, n },
                        { w->start.acc_rest, n },
                        { w->M, n * n } };
    field series[] = { { w->series.qs, n * W },
                       { w->series.vs, n * W },
                       { w->series.xs, n * W },
                       { w->series.fs, n * W },
                       { w->series.Ms, n * n * W } };
    bool *flags[] = { &w->linear.split,      &w->linear.singular,  &w->start.starting,
                      &w->start.start_piece, &w->progress.stopped, &w->progress.creeping };
    FIELDS(s, "events", numbers);
    FIELDS(s, "state", vectors);
    FIELDS(s, "state series", series);
    if (w->s->base)
        state_f64(s, "bases", w->s->base, 3 * n);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        state_flags(s, "flag", flags[i], 1);
    state_int(s, "stuck", &w->progress.stuck, 0, 1000);
    state_int(s, "crawled", &w->progress.crawled, 0, 10000);
    state_int(s, "pending", &pending, END_NONE, END_BREAK);
    w->progress.pending = (end_kind)pending;
    state_int(s, "resting", &w->start.resting, -1, w->nrub - 1);
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
