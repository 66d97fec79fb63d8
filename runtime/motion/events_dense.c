/* events_dense: stores pieces and evaluates them: values at any time, power series about any time, samples
   for plots and tables. */
#include <math.h>
#include <string.h>
#include "base/rotation.h"
#include "base/whole.h"
#include "events.h"
#include "base/tolerances.h"

/* Series stored for a piece: the dofs, then for each contact its gap, normal reaction, bound of friction, and
   tangential reactions. */
enum { ITEM_GAP, ITEM_RN, ITEM_BOUND, ITEM_RT };

/* Number of series that a piece stores for each contact. */
static int items(const ev *w)
{
    return ITEM_RT + w->tangents;
}
enum { INNER = 16 }; /* samples in a piece */

static double *item(const ev *w, const piece *p, int who, int what)
{
    return p->y + (size_t)(w->n + who * items(w) + what) * (size_t)(p->order + 1);
}
static double *item_dof(const piece *p, int k)
{
    return p->y + (size_t)k * (size_t)(p->order + 1);
}

/* The value of a series of a piece, s after its start. */
static double piece_value(const piece *p, const double *c, int order, double s)
{
    return series_value(c, order, s / p->unit);
}
static double piece_rate(const piece *p, const double *c, int order, double s)
{
    return series_rate(c, order, s / p->unit) / p->unit;
}

static void bound_series(const ev *w, const rub *c, double *out)
{
    const contact_family *f = c->c->fam->f;
    bool given = f->relation == REL_CLOSED || f->friction == FRICTION_TRESCA;
    for (int j = 0; j < w->K; j++)
        out[j] = c->c->d == 0 || c->mode == MODE_OPEN ? 0
                 : given                              ? c->series.bound[j]
                                                      : series_mul(c->series.beta, ev_normal(c), j);
}

/* At s: power of the smooth forces and of the moving constraints, and power lost to friction. These are
   values, because products of series would need twice their order. */
static void powers(ev *w, double s, double *force, double *lost)
{
    int n = w->n, W = w->width, K = w->K - 1;
    double v[n + 1];
    *force = *lost = 0;
    for (int i = 0; i < n; i++)
        v[i] = w->p->order && w->p->order[i] == 1 ? 0 : ev_value(w, w->series.vs + (size_t)i * W, w->K, s);
    for (int i = 0; i < n && w->c->books.of_all; i++) {
        *force += v[i] * ev_value(w, w->series.fs + (size_t)i * W, K, s);
        for (int k = 0; k < n && !w->s->mass_constant; k++)
            *force += 0.5 * v[i] * v[k] * ev_rate(w, w->series.Ms + (size_t)(i * n + k) * W, K, s);
    }
    for (int i = 0; i < w->nrub; i++) {
        const rub *c = &w->rub[i];
        if (c->mode == MODE_OPEN)
            continue;
        double Hv = 0, Dv = 0, rn = ev_value(w, c->series.rn, K, s);
        for (int k = 0; k < n; k++) {
            if (c->col_n >= 0)
                Hv += v[k] * ev_value(w, c->series.H + (size_t)k * W, K, s);
            if (ev_slips(c))
                Dv += v[k] * ev_value(w, c->series.D + (size_t)k * W, K, s);
        }
        *force += rn * Hv;
        if (ev_slips(c)) {
            const contact_family *f = c->c->fam->f;
            bool given = f->relation == REL_CLOSED || f->friction == FRICTION_TRESCA;
            double b = given ? ev_value(w, c->series.bound, K, s) : rn * ev_value(w, c->series.beta, K, s),
                   speed = ev_value(w, c->series.speed, K, s);
            *lost += b * speed;
            *force += b * (speed - Dv);
        }
        for (int l = 0; c->col_t >= 0 && l < c->c->d; l++) {
            double Sv = 0;
            for (int k = 0; k < n; k++)
                Sv += v[k] * ev_value(w, c->series.S + ((size_t)l * (size_t)n + (size_t)k) * (size_t)W, K, s);
            *force += Sv * ev_value(w, c->series.rt + (size_t)l * W, K, s);
        }
    }
}

/* Integrates both over [a, b] by Gauss's formula with 8 points. */
static void work_done(ev *w, double a, double b, double *force, double *lost)
{
    static const double x[] = { 0.9602898564975363, 0.7966664774136268, 0.525532409916329,
                                0.1834346424956498 },
                        g[] = { 0.10122853629037618, 0.22238103445337445, 0.3137066458778874,
                                0.362683783378362 };
    for (int i = 0; i < 8; i++) {
        double f, l;
        powers(w, 0.5 * (a + b) + (i < 4 ? -0.5 : 0.5) * (b - a) * x[i % 4], &f, &l);
        *force += 0.5 * (b - a) * g[i % 4] * f;
        *lost += 0.5 * (b - a) * g[i % 4] * l;
    }
}

/* ---- storing ---- */
void dense_keep(ev *w, double h)
{
    int order = w->K + 1;
    size_t row = (size_t)order + 1;
    piece *p = vec_push(w->r->a, &w->pieces);
    *p = (piece){ .t = w->t,
                  .low = w->t_low,
                  .h = h,
                  .reach = fmax(h, w->series.natural),
                  .unit = w->series.in.unit,
                  .order = order };
    p->y = arena_array(w->r->a, double, ((size_t)w->n + (size_t)w->nrub * (size_t)items(w)) * row);
    p->mode = arena_array(w->r->a, uint8_t, 2 * (size_t)w->nrub + 1);
    if (w->s->base) {
        p->base = arena_array(w->r->a, double, 3 * (size_t)w->n);
        memcpy(p->base, w->s->base, 3 * (size_t)w->n * sizeof(double));
    }
    for (int k = 0; k < w->n; k++)
        memcpy(item_dof(p, k), w->series.qs + (size_t)k * w->width, row * sizeof(double));
    for (int i = 0; i < w->nrub; i++) {
        const rub *c = &w->rub[i];
        p->mode[2 * i] = (uint8_t)c->mode;
        p->mode[2 * i + 1] = (uint8_t)(c->sign + 1);
        memcpy(item(w, p, i, ITEM_GAP), c->series.g, (size_t)(w->K + 1) * sizeof(double));
        bool turned = c->mode == MODE_STICK && ev_frame_turns(c);
        memcpy(item(w, p, i, ITEM_RN), ev_normal(c), (size_t)w->K * sizeof(double));
        double *rn = item(w, p, i, ITEM_RN);
        for (int j = 0; j < w->K && c->terms.adhesion && c->mode != MODE_OPEN; j++)
            rn[j] -= taylor_out(c->terms.adhesion, 0)[j]; /* the series is only that of the push */
        bound_series(w, c, item(w, p, i, ITEM_BOUND));
        int comps = !turned ? c->c->d : c->series.frame ? w->n : c->c->fam->nslip;
        for (int l = 0; c->col_t >= 0 && l < comps; l++)
            memcpy(item(w, p, i, ITEM_RT + l), (turned ? c->series.ft : c->series.rt) + (size_t)l * w->width,
                   (size_t)w->K * sizeof(double));
    }
}

static void piece_keep(ev *w, piece *p, run_state *s)
{
    size_t size = ((size_t)w->n + (size_t)w->nrub * (size_t)items(w)) * ((size_t)w->K + 2),
           modes = 2 * (size_t)w->nrub;
    double of[] = { p->t, p->low, p->h, p->reach, p->unit };
    state_f64(s, "piece", of, 5);
    if (state_reads(s)) {
        *p = (piece){
            .t = of[0], .low = of[1], .h = of[2], .reach = of[3], .unit = of[4], .order = w->K + 1
        };
        p->y = arena_array(w->r->a, double, size);
        p->mode = arena_array(w->r->a, uint8_t, modes + 1);
        p->base = w->s->base ? arena_array(w->r->a, double, 3 * (size_t)w->n) : NULL;
    }
    state_f64(s, "series", p->y, size);
    if (p->base)
        state_f64(s, "bases", p->base, 3 * (size_t)w->n);
    state_u8(s, "modes", p->mode, modes);
    for (size_t i = 0; state_reads(s) && i < modes; i++)
        if (p->mode[i] > (i % 2 ? 2 : MODE_HOVER))
            state_wrong(s, "a contact has a mode that does not exist");
}

void dense_pieces(ev *w, run_state *s)
{
    size_t each = (size_t)w->n * ((size_t)w->K + 2) * sizeof(double),
           n = state_count(s, "pieces", w->pieces.n, each);
    if (state_reads(s)) {
        w->pieces.n = 0;
        vec_reserve(w->r->a, &w->pieces, n);
    }
    for (size_t k = 0; k < n && state_ok(s); k++)
        piece_keep(w, state_reads(s) ? vec_push(w->r->a, &w->pieces) : &w->pieces.at[k], s);
}

static const piece *piece_at(const ev *w, double t)
{
    size_t lo = 0, hi = w->pieces.n;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (w->pieces.at[mid].t <= t)
            lo = mid;
        else
            hi = mid;
    }
    return &w->pieces.at[lo];
}

/* ---- evaluating ---- */
static double *item_of(const ev *w, const piece *p, const dense_item *x)
{
    if (x->what == DENSE_DOF)
        return item_dof(p, x->k);
    for (int i = 0; i < w->nrub; i++)
        if (w->rub[i].family == x->contact && w->rub[i].c->member == x->member)
            return item(w, p, i, x->what == DENSE_GAP ? ITEM_GAP : ITEM_RN);
    return NULL;
}

static bool dense_series(void *of, const dense_item *x, double t, int n, double *out)
{
    const ev *w = of;
    if (w->pieces.n == 0 || x->what == DENSE_RT || x->what == DENSE_SLIP)
        return false;
    if (x->what == DENSE_DOF && turns_of(w->p, x->k) >= 0)
        return false; /* rotations are stored as values, without a series */
    const piece *p = piece_at(w, t);
    const double *c = item_of(w, p, x);
    int degree = x->what == DENSE_DOF ? p->order : x->what == DENSE_GAP ? p->order - 1 : p->order - 2;
    if (!c || n + x->order > degree)
        return false;
    double all[degree + 1];
    series_shift(c, degree, fmin(t - p->t - p->low, p->h) / p->unit, all, n + x->order);
    for (int j = 0; j <= n; j++) {
        out[j] = all[j + x->order] * pow(p->unit, -(j + x->order));
        for (int k = 1; k <= x->order; k++)
            out[j] *= j + k;
    }
    return true;
}

static double dense_tangent(ev *w, const dense_item *x, double t);

/* Value, rate and second rate of dof k, s after the start of a piece. */
static void piece_values(const piece *p, int k, double s, double *q, double *v, double *a)
{
    const double *c = item_dof(p, k);
    double d[p->order + 1];
    *q = piece_value(p, c, p->order, s);
    *v = piece_rate(p, c, p->order, s);
    for (int j = 0; j < p->order; j++)
        d[j] = (j + 1) * c[j + 1] / p->unit;
    *a = piece_rate(p, d, p->order - 1, s);
}

/* A component of the rotation vector, the angular velocity or the angular acceleration. */
static double dense_rotation(const ev *w, int32_t first, const dense_item *x, double t)
{
    const piece *p = piece_at(w, t);
    double s = fmin(t - p->t - p->low, p->h), of[3][3], R[9];
    for (int k = 0; k < 3; k++)
        piece_values(p, first + k, s, &of[0][k], &of[1][k], &of[2][k]);
    memcpy(R, p->base + 3 * (size_t)first, sizeof R);
    rotation_turn(R, of[0]);
    rotation_rates(of[0], of[1], of[2]);
    rotation_vector(R, of[0]);
    return of[x->order][x->k - first];
}

static double dense_at(void *of, const dense_item *x, double t)
{
    const ev *w = of;
    int32_t first = x->what == DENSE_DOF && w->pieces.n ? turns_of(w->p, x->k) : -1;
    if (first >= 0)
        return dense_rotation(w, first, x, t);
    if (x->what == DENSE_RT || x->what == DENSE_SLIP)
        return ((const ev *)of)->pieces.n ? dense_tangent(of, x, t) : NAN;
    double y[1] = { NAN };
    return dense_series(of, x, t, 0, y) ? y[0] : NAN;
}

void dense_install(ev *w)
{
    dense_output *d = arena_make(w->r->a, dense_output);
    *d = (dense_output){ w, w->K - 1, dense_at, dense_series };
    w->r->dense = d;
}

/* ---- samples ---- */
static void show(const contact *c, const double *map, const double *x, double scale, double *out)
{
    int shown = c->fam->shown;
    if (shown == 1 && c->d > 1 && !c->fam->f->slip_given) {
        out[0] = scale * sqrt(vec_dot(x, x, c->d));
        return;
    }
    for (int i = 0; i < shown; i++)
        out[i] = scale * vec_dot(map + (size_t)i * c->d, x, c->d);
}

/* Component of the friction force on the dofs along M^-1 row. */
static double force_along(const ev *w, const piece *p, int i, double s, const double *row)
{
    double T[w->n + 1], f = 0;
    factor_solve(&w->s->minv, row, T);
    for (int k = 0; k < w->n; k++)
        f += T[k] * piece_value(p, item(w, p, i, ITEM_RT + k), w->K - 1, s);
    return f;
}

/* Slip and friction of contact i, s after the start of a piece, in the components that are shown; the system
   must be evaluated at that time. p is NULL at the start of the run. */
static void tangent_at(ev *w, const piece *p, int i, double s, double *slip_out, double *rt_out)
{
    rub *k = &w->rub[i];
    contact *c = k->c;
    contact_mode mode = p ? (contact_mode)p->mode[2 * i] : k->mode;
    double slip[64] = { 0 }, rt[64] = { 0 }, speed;
    contact_rows(w->s, c, w->M, false);
    if (c->d > 64)
        return;
    speed = contact_slip(c, w->s->in.from[IN_V], slip);
    double b = p ? piece_value(p, item(w, p, i, ITEM_BOUND), w->K - 1, s) : 0;
    for (int l = 0; l < c->d; l++) {
        if (!p)
            rt[l] = k->rt0[l];
        else if (mode == MODE_STICK && k->series.frame)
            rt[l] = force_along(w, p, i, s, c->S + (size_t)l * w->n);
        else if (mode == MODE_STICK)
            rt[l] = piece_value(p, item(w, p, i, ITEM_RT + l), w->K - 1, s);
        else if (mode == MODE_SLIP || mode == MODE_HOVER)
            rt[l] = c->d == 1 ? -b * (p->mode[2 * i + 1] - 1) : speed > 0 ? -b * slip[l] / speed : 0;
        if (mode == MODE_STICK)
            slip[l] = 0;
    }
    show(c, c->show, slip, 1, slip_out);
    show(c, c->show_force, rt, 1, rt_out);
    /* if the frame turns, sticking friction is stored in the space of slip */
    for (int l = 0; p && !k->series.frame && mode == MODE_STICK && ev_frame_turns(k) && l < c->fam->nslip;
         l++)
        rt_out[l] = piece_value(p, item(w, p, i, ITEM_RT + l), w->K - 1, s);
}

/* Evaluates the system at time t, in the state of a piece. */
static void stand_at(ev *w, const piece *p, double t, double s, double *q, double *v)
{
    for (int k = 0; k < w->n; k++) {
        q[k] = piece_value(p, item_dof(p, k), p->order, s);
        v[k] = piece_rate(p, item_dof(p, k), p->order, s);
    }
    if (p->base)
        memcpy(w->s->base, p->base, 3 * (size_t)w->n * sizeof(double));
    system_at(w->s, t, q, v);
    if (w->s->mass_constant)
        return;
    int bad;
    system_mass(w->s, w->M);
    system_factor(w->s, w->M, &bad);
}

static double dense_tangent(ev *w, const dense_item *x, double t)
{
    const piece *p = piece_at(w, t);
    double q[w->n + 1], v[w->n + 1], slip[64] = { 0 }, rt[64] = { 0 }, s = fmin(t - p->t - p->low, p->h);
    for (int i = 0; i < w->nrub; i++) {
        if (w->rub[i].family != x->contact || w->rub[i].c->member != x->member)
            continue;
        stand_at(w, p, t, s, q, v);
        tangent_at(w, p, i, s, slip, rt);
    }
    return x->k >= 0 && x->k < 64 ? (x->what == DENSE_RT ? rt : slip)[x->k] : NAN;
}

/* Stores the reactions of contact i, s after the start of the piece. */
static void sample_contact(ev *w, const piece *p, int i, double s, int64_t at)
{
    rub *k = &w->rub[i];
    contact *c = k->c;
    contact_result *r = &w->r->contact[k->family];
    size_t m = (size_t)(at * r->members + c->member), ns = (size_t)r->nslip;
    contact_mode mode = p ? (contact_mode)p->mode[2 * i] : k->mode;
    if (!r->kept)
        return;
    if (c->fam->f->of_rates)
        contact_rows(w->s, c, w->M, true);
    else
        contact_gap(w->s, c);
    r->gap[m] = contact_kept_gap(c, w->s->in.from[IN_V]);
    r->rn[m] = c->fam->f->relation == REL_CLOSED ? c->normal
               : p                               ? piece_value(p, item(w, p, i, ITEM_RN), w->K - 1, s)
                                                 : k->r0 - (mode != MODE_OPEN ? c->adhesion : 0);
    r->status[m] = status_of(c, mode != MODE_OPEN, mode != MODE_STICK);
    if (c->fam->d)
        tangent_at(w, p, i, s, r->slip + m * ns, r->rt + m * ns);
}

void dense_energy(ev *w, const double *v, energies *e)
{
    e->kinetic = e->shown = system_kinetic(w->s, w->M, v);
    if (w->s->kinetic.n)
        e->shown = system_sum(w->s, &w->s->kinetic);
    if (w->s->potential.n)
        e->potential = system_sum(w->s, &w->s->potential);
}

bool dense_fill(void *of, run_clock *clock, int64_t at, energies *e)
{
    ev *w = of;
    const piece *p = w->in_piece;
    results *r = clock->r;
    size_t n = (size_t)w->n;
    double *q = r->q + (size_t)at * n, *v = r->v + (size_t)at * n, *a = r->acc + (size_t)at * n, s = w->in_at;
    for (size_t k = 0; k < n; k++) {
        if (!p) {
            q[k] = w->q[k];
            v[k] = w->v[k];
            a[k] = w->acc[k];
            continue;
        }
        piece_values(p, (int)k, s, &q[k], &v[k], &a[k]);
    }
    system_at(w->s, r->t[at], q, v);
    if (!w->s->mass_constant) {
        int bad;
        system_mass(w->s, w->M);
        system_factor(w->s, w->M, &bad);
    }
    for (int i = 0; i < w->nrub; i++)
        sample_contact(w, p, i, s, at);
    dense_energy(w, v, e);
    if (w->s->base)
        turns_keep(w->p, w->s->base, q, v, a);
    return true;
}

static void sample_at(ev *w, const piece *p, double s)
{
    w->in_piece = p;
    w->in_at = s;
    clock_sample(w->c, w->t + s);
}

/* Samples of the current piece: its ends and some in between, no closer than `every`. */
void dense_sample(ev *w, double h)
{
    if (w->pieces.n == 0) {
        sample_at(w, NULL, 0);
        return;
    }
    const piece *p = &w->pieces.at[w->pieces.n - 1];
    double last = w->r->samples ? w->r->t[w->r->samples - 1] : -INFINITY, every = w->o->every,
           part = fmax(h / w->series.natural, EV_PART_LEAST);
    int parts = isfinite(w->series.natural) ? (int)whole_clamp(ceil(INNER * part), 1, 1000000) : INNER;
    if (every > 0 && h / every > parts)
        parts = (int)whole_clamp(ceil(h / every), 1, 1000000);
    for (int i = 0; i <= parts; i++) {
        double s = h * i / parts;
        if (i)
            work_done(w, h * (i - 1) / parts, s, &w->c->books.work, &w->c->books.dissipated);
        if (i && i < parts && every > 0 && w->t + s - last < every * (1 - STEP_SAME))
            continue;
        sample_at(w, p, s);
        last = w->t + s;
    }
}
