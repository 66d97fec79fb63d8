/* inclusion_map: a point of an inclusion: its rows, kinks and past values, as numbers. */
#include <math.h>
#include <stdlib.h>
#include "inclusion.h"
#include "base/tolerances.h"

const char *number_text(arena *a, double x)
{
    text t = { .a = a };
    text_num(&t, x);
    return t.at;
}

void moment_fail(moment *m, span at, const char *message)
{
    if (m->trouble)
        return;
    m->trouble = message;
    m->trouble_at = at;
}

static double *registers(arena *a, const kernel *k)
{
    double *reg = arena_array(a, double, k->tape.nreg + 1);
    if (k->tape.nout)
        tape_start(&k->tape, reg);
    return reg;
}

static double *run_kernel(moment *m, const kernel *k, double *reg)
{
    static const int32_t none[MAX_INDEX];
    kernel_run(k, &m->in, none, reg);
    return reg;
}
#define OUT(k, reg, i) ((reg)[(k)->tape.out[i]])

static void start_values(moment *m, arena *a)
{
    const program *p = m->p;
    static const int32_t none[MAX_INDEX];
    int32_t index[MAX_INDEX];
    (void)none;
    for (size_t k = 0; k < p->start.q.n; k++) {
        const kernel *f = &p->start.q.at[k];
        double *reg = arena_array(a, double, f->tape.nreg + 1),
               *where = arena_array(a, double, f->tape.nmore + 1);
        tape_start(&f->tape, reg);
        for (bool any = index_first(&f->over, index); any; any = index_next(&f->over, index)) {
            if (!kernel_member(f, index, where))
                continue;
            kernel_run(f, &m->in, index, reg);
            for (uint32_t i = 0; i < f->tape.nout; i++)
                m->x[slot_at(&f->row[i], index, f->over.n)] = reg[f->tape.out[i]];
        }
    }
}

void moment_new(moment *m, results *r, arena *a, double *param)
{
    const program *p = r->prog;
    const inclusion_program *ip = p->inclusion;
    size_t n = (size_t)p->nq;
    *m = (moment){ .p = p, .ip = ip, .r = r, .param = param };
    m->x = arena_array(a, double, n + 1);
    m->v = arena_array(a, double, n + 1);
    m->s = arena_array(a, double, ip->nset + 1);
    m->past = arena_array(a, double, ip->npast + 1);
    m->sign = arena_array(a, double, n + 1);
    m->in.from[IN_PARAM] = param;
    m->in.from[IN_Q] = m->x;
    m->in.from[IN_V] = m->v;
    m->in.from[IN_SET] = m->s;
    m->in.from[IN_PAST_Q] = m->past;
    m->integral = arena_array(a, double, ip->nintegral + 1);
    m->in.from[IN_INTEGRAL] = m->integral;
    m->in.from[IN_BOUND] = &m->bound;
    m->reg = arena_array(a, double *, n + 1);
    m->reg_curve = arena_array(a, double *, n + 1);
    m->reg_drift = arena_array(a, double *, n + 1);
    m->reg_history = arena_array(a, double *, n + 1);
    m->reg_arg = arena_array(a, double **, n + 1);
    m->reg_past = arena_array(a, double *, ip->npast + 1);
    m->reg_cone = arena_array(a, double *, ip->ncone + 1);
    m->reg_turn = registers(a, &ip->turn);
    m->kink = arena_array(a, double *, n + 1);
    m->nkink = arena_array(a, int, n + 1);
    m->turn_at = arena_array(a, double *, n + 1);
    m->turn_dir = arena_array(a, int8_t *, n + 1);
    m->kinks_known = arena_array(a, bool, n + 1);
    for (size_t k = 0; k < n; k++) {
        const inclusion_row *row = &ip->row[k];
        m->sign[k] = 1;
        m->reg[k] = registers(a, &row->r);
        m->reg_curve[k] = registers(a, &row->curve);
        m->reg_drift[k] = registers(a, &row->drift);
        m->reg_history[k] = registers(a, &ip->history[k]);
        m->reg_arg[k] = arena_array(a, double *, row->nsgn + 1);
        m->kink[k] = arena_array(a, double, row->nsgn + 1);
        m->turn_at[k] = arena_array(a, double, row->nsgn + 1);
        m->turn_dir[k] = arena_array(a, int8_t, row->nsgn + 1);
        for (int j = 0; j < row->nsgn; j++)
            m->reg_arg[k][j] = registers(a, &row->sgn[j].arg);
    }
    for (int k = 0; k < ip->npast; k++)
        m->reg_past[k] = registers(a, &ip->past[k].when);
    for (int k = 0; k < ip->ncone; k++)
        m->reg_cone[k] = registers(a, &ip->cone[k].g);
    m->reg_ends = arena_array(a, double *, ip->nintegral + 1),
    m->reg_integral = arena_array(a, double *, ip->nintegral + 1);
    for (int k = 0; k < ip->nintegral; k++)
        m->reg_ends[k] = registers(a, &ip->integral[k].ends),
        m->reg_integral[k] = registers(a, &ip->integral[k].f);
    m->reg_joint = arena_array(a, double *, ip->njoint + 1);
    for (int k = 0; k < ip->njoint; k++)
        m->reg_joint[k] = registers(a, &ip->joint[k].arg);
    start_values(m, a);
}

/* ---- past ---- */
static double before_start(moment *m, int32_t dof, bool rate, double t)
{
    const kernel *h = &m->ip->history[dof];
    if (h->tape.nout == 0)
        return rate ? 0 : m->r->samples ? m->r->q[dof] : m->x[dof];
    m->bound = t;
    return OUT(h, run_kernel(m, h, m->reg_history[dof]), rate ? 1 : 0);
}

static double past_value(moment *m, const inclusion_past *p, double t)
{
    const results *r = m->r;
    size_t n = (size_t)m->p->nq, last = r->samples ? (size_t)r->samples - 1 : 0;
    if (t < 0 || !r->samples)
        return before_start(m, p->dof, p->rate, t);
    double t1 = r->t[last];
    if (t <= t1)
        return p->rate ? results_v(r, p->dof, t) : results_q(r, p->dof, t);
    /* within the step: along the line to the current point */
    double x0 = r->q[last * n + (size_t)p->dof], w = m->in.t > t1 ? (t - t1) / (m->in.t - t1) : 0;
    return p->rate ? r->v[last * n + (size_t)p->dof] : x0 + w * (m->x[p->dof] - x0);
}

static void past_look(moment *m, int k)
{
    const inclusion_past *p = &m->ip->past[k];
    double when = OUT(&p->when, run_kernel(m, &p->when, m->reg_past[k]), 0), t = m->in.t;
    if (!(when <= t + DELAY_LEAST * fmax(m->r->duration, fabs(t))))
        moment_fail(m, p->at,
                    arena_printf(m->r->a,
                                 "the value at the time %s is read at t = %s: a delay must be positive",
                                 number_text(m->r->a, when), number_text(m->r->a, t)));
    else
        m->past[k] = past_value(m, p, fmin(when, t));
}

/* the integrand at s */
static double integrand(moment *m, int k, double s)
{
    m->bound = s;
    for (int j = 0; j < m->ip->npast; j++) {
        if (!m->ip->past[j].inner)
            continue;
        past_look(m, j);
        m->bound = s; /* a history reads its own */
    }
    return OUT(&m->ip->integral[k].f, run_kernel(m, &m->ip->integral[k].f, m->reg_integral[k]), 0);
}

/* Gauss's three points on panels about as wide as a step of the past, at most 400 of them */
static void integral_look(moment *m, int k)
{
    static const double at[3] = { 0.11270166537925831, 0.5, 0.88729833462074169 },
                        weight[3] = { 5. / 18, 8. / 18, 5. / 18 };
    const inclusion_integral *x = &m->ip->integral[k];
    const double *ends = run_kernel(m, &x->ends, m->reg_ends[k]);
    double lo = OUT(&x->ends, ends, 0), hi = OUT(&x->ends, ends, 1), sum = 0;
    int64_t n = m->r->samples;
    double step = n > 1 ? m->r->t[n - 1] / (double)(n - 1) : fabs(hi - lo) / 100;
    int panels = (int)fmin(400, fmax(16, ceil(fabs(hi - lo) / fmax(step, SIZE_LEAST))));
    for (int i = 0; i < panels; i++)
        for (int g = 0; g < 3; g++)
            sum += weight[g] * integrand(m, k, lo + (hi - lo) * (i + at[g]) / panels);
    m->integral[k] = sum * (hi - lo) / panels;
    if (!isfinite(m->integral[k]))
        moment_fail(
            m, x->at,
            arena_printf(m->r->a, "the integral is not finite at t = %s", number_text(m->r->a, m->in.t)));
}

void moment_time(moment *m, double t)
{
    m->in.t = t;
    for (int k = 0; k < m->ip->npast; k++)
        if (!m->ip->past[k].inner)
            past_look(m, k);
    for (int k = 0; k < m->ip->nintegral; k++)
        integral_look(m, k);
}

/* ---- rows ---- */
void moment_kinks(moment *m, int k)
{
    const inclusion_row *row = &m->ip->row[k];
    double keep = m->x[k], *kink = m->kink[k];
    bool steady = true;
    int n = 0;
    if (m->kinks_known[k])
        return;
    m->x[k] = 0;
    for (int j = 0; j < row->nsgn; j++) {
        const kernel *f = &row->sgn[j].arg;
        const double *reg = run_kernel(m, f, m->reg_arg[k][j]);
        double a = OUT(f, reg, 0), p = OUT(f, reg, 1), at = -a / p + 0.0;
        if (!isfinite(at)) {
            moment_fail(m, row->sgn[j].at,
                        arena_printf(m->r->a, "the argument of Sgn does not change at t = %s",
                                     number_text(m->r->a, m->in.t)));
            at = 0;
        }
        m->turn_at[k][j] = at;
        m->turn_dir[k][j] = p < 0 ? -1 : 1;
        steady = steady && row->sgn[j].steady;
        int i = n;
        while (i > 0 && kink[i - 1] > at)
            i--;
        if (i > 0 && kink[i - 1] == at)
            continue;
        for (int l = n++; l > i; l--)
            kink[l] = kink[l - 1];
        kink[i] = at;
    }
    m->x[k] = keep;
    m->nkink[k] = n;
    m->kinks_known[k] = steady;
}

static bool select_signs(moment *m, int k, double x, int side)
{
    const inclusion_row *row = &m->ip->row[k];
    bool on = false;
    for (int j = 0; j < row->nsgn; j++) {
        double at = m->turn_at[k][j];
        int s = x > at ? 1 : x < at ? -1 : side;
        if (x == at)
            on = true;
        m->s[row->sgn[j].number] = s * m->turn_dir[k][j];
    }
    return on;
}

row_value moment_row(moment *m, int k, double x, int side)
{
    const kernel *f = &m->ip->row[k].r;
    double sign = m->sign[k];
    bool on = select_signs(m, k, x, side);
    m->x[k] = x;
    const double *reg = run_kernel(m, f, m->reg[k]);
    row_value out = { sign * OUT(f, reg, 0), sign * OUT(f, reg, 1), sign * OUT(f, reg, 2) };
    if (on && side) { /* |x| has no slope of its own at the kink */
        m->x[k] = x == 0 ? side * BESIDE_ZERO : nextafter(x, side * INFINITY);
        reg = run_kernel(m, f, m->reg[k]);
        out.dx = sign * OUT(f, reg, 1);
        m->x[k] = x;
    }
    return out;
}

double moment_curve(moment *m, int k, double x, int side)
{
    const kernel *f = &m->ip->row[k].curve;
    bool on = select_signs(m, k, x, side);
    m->x[k] = on && side ? (x == 0 ? side * BESIDE_ZERO : nextafter(x, side * INFINITY)) : x;
    double c = m->sign[k] * OUT(f, run_kernel(m, f, m->reg_curve[k]), 0);
    m->x[k] = x;
    return c;
}

double moment_kink_rate(moment *m, int k, double x)
{
    const inclusion_row *row = &m->ip->row[k];
    for (int j = 0; j < row->nsgn; j++) {
        const kernel *f = &row->sgn[j].arg;
        if (m->turn_at[k][j] != x)
            continue;
        if (row->sgn[j].steady)
            return 0;
        m->x[k] = x;
        const double *reg = run_kernel(m, f, m->reg_arg[k][j]);
        return -OUT(f, reg, 2) / OUT(f, reg, 1);
    }
    return 0;
}

double moment_drift(moment *m, int k)
{
    const kernel *f = &m->ip->row[k].drift;
    return m->sign[k] * OUT(f, run_kernel(m, f, m->reg_drift[k]), 0);
}

/* R of a row of a cone: what is left without rate and reaction, the factor of the rate, and that of the
 * reaction. */
void moment_free(moment *m, int k, double *r, double *a, double *c)
{
    const kernel *f = &m->ip->row[k].r;
    double keep = m->v[k];
    m->v[k] = 0;
    const double *reg = run_kernel(m, f, m->reg[k]);
    *r = OUT(f, reg, 0), *a = OUT(f, reg, 2), *c = f->tape.nout > 3 ? OUT(f, reg, 3) : 0;
    m->v[k] = keep;
}

double moment_raw(moment *m, int k)
{
    const kernel *f = &m->ip->row[k].r;
    return m->sign[k] * OUT(f, run_kernel(m, f, m->reg[k]), 0);
}

double moment_factor(moment *m, int k)
{
    const kernel *f = &m->ip->row[k].r;
    return m->sign[k] * OUT(f, run_kernel(m, f, m->reg[k]), 2);
}

double moment_argument(moment *m, int k)
{
    const kernel *f = &m->ip->joint[k].arg;
    return OUT(f, run_kernel(m, f, m->reg_joint[k]), 0);
}

bool moment_signs(moment *m)
{
    for (int k = 0; k < m->p->nq; k++) {
        m->sign[k] = 1;
        moment_kinks(m, k);
        double a = moment_row(m, k, m->x[k], 1).dv;
        m->sign[k] = a < 0 ? -1 : 1;
        if (a != 0 && isfinite(a))
            continue;
        moment_fail(m, m->ip->row[k].at,
                    arena_printf(m->r->a, "the factor of the rate is %s at t = 0: nothing moves",
                                 number_text(m->r->a, a)));
        return false;
    }
    return true;
}

/* ---- times at which formulas change ---- */
static void turns_at(moment *m, double t, double *out)
{
    const kernel *f = &m->ip->turn;
    m->in.t = t;
    run_kernel(m, f, m->reg_turn);
    for (uint32_t i = 0; i < f->tape.nout; i++)
        out[i] = OUT(f, m->reg_turn, i);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

const double part_look[PART_LOOKS] = { 0, 0.137, 0.318, 0.482, 0.669, 0.851 };

enum { TURN_GRID = 4096, TURN_GRID_MOST = 1 << 22 };

/* Does something turn more than once within some of n parts?  m is left at the first of them. */
static bool turns_hide(moment *m, double end, int n, double *now, arena *a)
{
    uint32_t most = m->ip->turn.tape.nout;
    double *last = arena_array(a, double, most);
    int *changes = arena_array(a, int, most);
    for (int k = 0; k < n; k++) {
        memset(last, 0, most * sizeof *last);
        memset(changes, 0, most * sizeof *changes);
        for (int j = 0; j < PART_LOOKS; j++) {
            turns_at(m, end * ((double)k + part_look[j]) / n, now);
            for (uint32_t i = 0; i < most; i++) {
                if (now[i] != 0 && (changes[i] += now[i] * last[i] < 0) > 1)
                    return true;
                last[i] = now[i] != 0 ? now[i] : last[i];
            }
        }
    }
    return false;
}

bool moment_turns(moment *m, double end, arena *a, times *out)
{
    uint32_t n = m->ip->turn.tape.nout;
    double *prev = arena_array(a, double, n + 1), *now = arena_array(a, double, n + 1),
           *mid = arena_array(a, double, n + 1), t0 = m->in.t;
    out->n = 0;
    if (n == 0 || !(end > 0))
        return true;
    int grid = TURN_GRID;
    while (grid < TURN_GRID_MOST && turns_hide(m, end, grid, now, a))
        grid *= 2;
    if (grid == TURN_GRID_MOST)
        return false;
    turns_at(m, 0, prev);
    for (int k = 1; k <= grid; k++) {
        double lo = end * (k - 1) / grid, hi = end * k / grid;
        turns_at(m, hi, now);
        for (uint32_t i = 0; i < n; i++) {
            double f = prev[i];
            if (f == 0 || (now[i] < 0) == (f < 0)) {
                if (now[i] == 0 && f != 0)
                    *vec_push(a, out) = hi;
                continue;
            }
            double x0 = lo, x1 = hi;
            for (int j = 0; j < 100 && x0 < 0.5 * (x0 + x1) && 0.5 * (x0 + x1) < x1; j++) {
                double x = 0.5 * (x0 + x1);
                turns_at(m, x, mid);
                if (mid[i] == 0 || (mid[i] < 0) != (f < 0))
                    x1 = x;
                else
                    x0 = x;
            }
            *vec_push(a, out) = x1;
        }
        for (uint32_t i = 0; i < n; i++)
            prev[i] = now[i];
    }
    m->in.t = t0;
    if (out->n)
        qsort(out->at, out->n, sizeof *out->at, compare);
    size_t keep = 0;
    for (size_t k = 0; k < out->n; k++)
        if (out->at[k] > 0 && out->at[k] < end &&
            (keep == 0 || out->at[k] > out->at[keep - 1] + JUST_BESIDE * end))
            out->at[keep++] = out->at[k];
    out->n = keep;
    return true;
}
