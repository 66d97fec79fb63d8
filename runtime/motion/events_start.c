/* events_start: slip that starts from rest in two or more tangent directions. The motion is smooth there but
   not analytic (the direction of slip is a quotient of two quantities that vanish), and stiff: the direction
   approaches that of the force at the rate mu r_n/|slip|. So the slip starts with Radau collocation in steps
   that grow with the time since rest, each stored as a polynomial. When the direction changes slowly enough,
   power series take over. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "events.h"
#include "base/tolerances.h"

enum { STAGES = 6, NEWTON = 40 };

/* Right Radau points: zeros of P_s - P_(s-1) on [0, 1]. */
static double radau(double x)
{
    double p0 = 1, p1 = 2 * x - 1, z = p1;
    for (int k = 2; k <= STAGES; k++) {
        double p2 = ((2 * k - 1) * z * p1 - (k - 1) * p0) / k;
        p0 = p1;
        p1 = p2;
    }
    return p1 - p0;
}

static void radau_points(double *c)
{
    int n = 0;
    for (int i = 0; i < 4000 && n < STAGES - 1; i++) {
        double a = i / 4000.0, b = (i + 1) / 4000.0;
        if (!(radau(a) * radau(b) < 0))
            continue;
        for (int it = 0; it < 60; it++) {
            double m = 0.5 * (a + b);
            if (radau(a) * radau(m) <= 0)
                b = m;
            else
                a = m;
        }
        c[n++] = 0.5 * (a + b);
    }
    c[STAGES - 1] = 1;
}

/* Coefficients of the Lagrange polynomials: L[i][j] of x^j. */
static void lagrange(const double *c, double L[STAGES][STAGES])
{
    for (int i = 0; i < STAGES; i++) {
        double p[STAGES + 1] = { 1 };
        int deg = 0;
        for (int k = 0; k < STAGES; k++) {
            if (k == i)
                continue;
            for (int j = ++deg; j >= 0; j--)
                p[j] = ((j ? p[j - 1] : 0) - c[k] * (j < deg ? p[j] : 0)) / (c[i] - c[k]);
        }
        memcpy(L[i], p, sizeof L[i]);
    }
}

/* Series whose values at the stages are needed. */
typedef struct column {
    double *at;
    int n;
} column;

static int columns(ev *w, column *out)
{
    int m = 0, n = w->n;
    out[m++] = (column){ w->series.fs, n };
    out[m++] = (column){ w->series.Ms, n * n };
    for (int i = 0; i < w->nrub; i++) {
        rub *k = &w->rub[i];
        int d = k->c->fam->d;
        out[m++] = (column){ k->series.rn, 1 };
        out[m++] = (column){ k->series.g, 1 };
        out[m++] = (column){ k->series.H, n };
        if (!d)
            continue;
        column more[] = { { k->series.D, n },     { k->series.beta, 1 }, { k->series.bound, 1 },
                          { k->series.speed, 1 }, { k->series.rt, d },   { k->series.S, d * n } };
        memcpy(out + m, more, sizeof more);
        m += 6;
    }
    return m;
}

typedef struct stage {
    double t, *q, *v, *a, *dA, *values;
} stage;

/* Values of the gaps of open contacts. */
static void gaps_at(ev *w, double t, const double *q, const double *v)
{
    system_at(w->s, t, q, v);
    for (int i = 0; i < w->nrub; i++)
        w->rub[i].series.g[0] = w->rub[i].mode == MODE_OPEN && w->rub[i].c->fam->f->relation == REL_GAP
                                    ? contact_gap(w->s, w->rub[i].c)
                                    : 0;
}

static bool stage_value(ev *w, stage *s, const column *col, int ncol, bool keep)
{
    int m = 0;
    if (!ev_accelerations(w, s->t, s->q, s->v, s->a))
        return false;
    if (!keep)
        return true;
    gaps_at(w, s->t, s->q, s->v);
    for (int i = 0; i < ncol; i++)
        for (int k = 0; k < col[i].n; k++)
            s->values[m++] = col[i].at[(size_t)k * (size_t)w->width];
    return true;
}

/* The change of slip by a unit rate of dof k. For a dof that does not change it: as if that dof were the
   whole motion. */
static double slip_by_rate(const ev *w, int k)
{
    double most = 0, grip = 0;
    for (int i = 0; i < w->nrub; i++) {
        const rub *c = &w->rub[i];
        if (!ev_slips(c) || c->c->d < 2)
            continue;
        for (int l = 0; l < c->c->d; l++)
            most = fmax(most, fabs(c->c->S[(size_t)l * (size_t)w->n + (size_t)k]));
        grip = fmax(grip, c->grip_t);
    }
    return most > 0 ? most : fmax(grip * sqrt(ev_mass(w, k)), DBL_MIN);
}

/* d acceleration / d rate, by central differences that are small compared with the slip. Along the slip this
   derivative is 0, across it huge, so an error of the direction enters squared. */
static bool stage_slope(ev *w, stage *s, double speed)
{
    int n = w->n;
    double up[n + 1], down[n + 1];
    for (int k = 0; k < n; k++) {
        double v = s->v[k], share = speed / slip_by_rate(w, k),
               d = fmax(DIFFERENCE_SLIP * share,
                        fmin(DIFFERENCE_SLIP_TO * share, DIFFERENCE_RATE * fmax(fabs(v), w->sizes.vmax[k])));
        s->v[k] = v + d;
        if (!ev_accelerations(w, s->t, s->q, s->v, up))
            return false;
        s->v[k] = v - d;
        if (!ev_accelerations(w, s->t, s->q, s->v, down))
            return false;
        s->v[k] = v;
        for (int i = 0; i < n; i++)
            s->dA[i * n + k] = (up[i] - down[i]) / (2 * d);
    }
    return true;
}

static double slip_speed(const ev *w)
{
    double s = INFINITY;
    for (int i = 0; i < w->nrub; i++)
        if (ev_slips(&w->rub[i]) && w->rub[i].c->d > 1)
            s = fmin(s, w->rub[i].series.speed[0]);
    return isfinite(s) ? s : 1;
}

/* Scales for accelerations while slip is small: the accelerations of slip at rest, and their changes since
   then. Surfaces may carry bodies along with much larger accelerations. */
static void rest_sizes(ev *w)
{
    w->start.acc_slip = 0;
    memcpy(w->start.acc_rest, w->acc, (size_t)w->n * sizeof *w->acc);
    system_at(w->s, w->t, w->q, w->v);
    for (int i = 0; i < w->nrub; i++) {
        const rub *k = &w->rub[i];
        double bias[k->c->d + 1];
        if (!k->start)
            continue;
        contact_slip_bias(w->s, k->c, bias);
        for (int l = 0; l < k->c->d; l++)
            w->start.acc_slip = fmax(w->start.acc_slip,
                                     fabs(bias[l] + contact_rate(k->c, k->c->S + (size_t)l * w->n, w->acc)) /
                                         fmax(k->grip_t, DBL_MIN));
    }
}

/* The fraction of Newton's change after which no slip has reversed: directions are linear in the rates only
   as far as that. */
static double damped(const ev *w, double h, const double A[STAGES][STAGES], const double *change,
                     const double *speed)
{
    double share = 1;
    int n = w->n;
    for (int i = 0; i < STAGES; i++)
        for (int r = 0; r < w->nrub; r++) {
            const contact *c = w->rub[r].c;
            double slip = 0;
            if (!ev_slips(&w->rub[r]) || c->d < 2)
                continue;
            for (int l = 0; l < c->d; l++) {
                double s = 0;
                for (int j = 0; j < STAGES; j++)
                    s += h * A[i][j] * vec_dot(c->S + (size_t)l * n, change + (size_t)j * n, n);
                slip += s * s;
            }
            share = fmin(share, 0.7 * speed[i] / fmax(sqrt(slip), DBL_MIN));
        }
    return share;
}

static bool collocate(ev *w, double h, stage *st, const double A[STAGES][STAGES], const double *c, double *y,
                      double *big, int *pivot)
{
    int n = w->n, N = STAGES * n;
    double end[n + 1], root[n + 1], speed[STAGES], last = INFINITY, size = 0, noise = 0;
    for (int k = 0; k < n; k++) /* compares accelerations in the kinetic metric */
        root[k] = sqrt(ev_mass(w, k));
    if (w->start.elapsed == 0) {
        if (!ev_ahead(w, h, end))
            return false;
        for (int i = 0; i < STAGES; i++)
            for (int k = 0; k < n; k++)
                y[i * n + k] = w->acc[k] + c[i] * (end[k] - w->acc[k]);
    } else
        for (int i = 0; i < STAGES; i++)
            for (int k = 0; k < n; k++)
                y[i * n + k] = w->start.acc_end[k] + c[i] * h * w->start.jerk_end[k];
    for (int it = 0; it < NEWTON; it++) {
        double worst = 0;
        for (int i = 0; i < STAGES; i++) {
            st[i].t = w->t + c[i] * h;
            for (int k = 0; k < n; k++) {
                st[i].v[k] = w->v[k];
                for (int j = 0; j < STAGES; j++)
                    st[i].v[k] += h * A[i][j] * y[j * n + k];
            }
        }
        for (int i = 0; i < STAGES; i++)
            for (int k = 0; k < n; k++) {
                st[i].q[k] = w->q[k];
                for (int j = 0; j < STAGES; j++)
                    st[i].q[k] += h * A[i][j] * st[j].v[k];
            }
        noise = 0;
        memset(big, 0, (size_t)N * (size_t)N * sizeof *big);
        for (int i = 0; i < STAGES; i++) {
            if (!stage_value(w, &st[i], NULL, 0, false))
                return false;
            speed[i] = slip_speed(w);
            if (!(speed[i] > 0) || !stage_slope(w, &st[i], speed[i]))
                return false;
            /* rates have rounding errors, which the direction amplifies if slip is a small difference of
               large rates */
            for (int k = 0; k < n * n; k++)
                noise = fmax(noise, 8 * DBL_EPSILON * fabs(st[i].v[k % n] * st[i].dA[k]) * root[k / n]);
            for (int k = 0; k < n; k++) {
                w->start.newton[i * n + k] = st[i].a[k] - y[i * n + k];
                for (int j = 0; j < STAGES; j++)
                    for (int l = 0; l < n; l++)
                        big[(i * n + k) * N + j * n + l] = (i == j && k == l) -
                                                           h * A[i][j] * st[i].dA[k * n + l];
            }
        }
        if (!dense_solve(big, w->start.newton, N, pivot))
            return false;
        size = w->start.acc_slip;
        double share = damped(w, h, A, w->start.newton, speed);
        for (int i = 0; i < N; i++) {
            y[i] += share * w->start.newton[i];
            worst = fmax(worst, fabs(w->start.newton[i]) * root[i % n]);
            size = fmax(size, fabs(y[i] - w->start.acc_rest[i % n]) * root[i % n]);
        }
        if (!isfinite(worst))
            return false;
        double enough = fmax(EV_START_END * size, fmin(noise, EV_START_NOISE * size));
        if (share == 1 && (worst <= ROUND_5 * size || (it > 3 && worst <= enough && worst >= 0.5 * last)))
            return true;
        last = worst;
    }
    return last <= fmax(EV_START_END * size, fmin(noise, EV_START_NOISE * size));
}

/* The error of the polynomial of accelerations halfway between the last two stages, relative to their scale.
   It shows whether a slip comes to rest or turns within the step. */
static double between(ev *w, double h, const double *y, const double *c, double L[STAGES][STAGES])
{
    int n = w->n;
    double q[n + 1], v[n + 1], a[n + 1], law[n + 1], x = 0.5 * (c[STAGES - 2] + c[STAGES - 1]), off = 0,
                                                     size = w->start.acc_slip;
    q[0] = v[0] = a[0] = 0;
    for (int k = 0; k < n; k++) {
        a[k] = 0;
        v[k] = w->v[k];
        q[k] = w->q[k] + h * x * w->v[k];
        for (int i = 0; i < STAGES; i++)
            for (int j = 0; j < STAGES; j++) {
                double part = y[i * n + k] * L[i][j] * pow(x, j);
                a[k] += part;
                v[k] += h * x * part / (j + 1);
                q[k] += h * x * (h * x * part) / ((j + 1) * (j + 2));
            }
    }
    if (!ev_accelerations(w, w->t + x * h, q, v, law))
        return INFINITY;
    for (int k = 0; k < n; k++) {
        double root = sqrt(ev_mass(w, k));
        off = fmax(off, fabs(law[k] - a[k]) * root);
        size = fmax(size, fabs(a[k] - w->start.acc_rest[k]) * root);
    }
    return size > 0 ? off / size : 0;
}

/* Polynomials through the stages, in the time since the start of the step. y: the accelerations of the
   solution. (Evaluating them again would bring in rounding of the direction of slip.) */
static void fit(ev *w, double h, const double *y, const stage *st, double L[STAGES][STAGES],
                const column *col, int ncol)
{
    int n = w->n, m = 0;
    size_t W = (size_t)w->width;
    double unit = w->series.in.unit;
    for (int k = 0; k < n; k++) {
        double *x = w->series.xs + (size_t)k * W, *v = w->series.vs + (size_t)k * W,
               *q = w->series.qs + (size_t)k * W;
        memset(x, 0, W * sizeof *x);
        memset(v, 0, W * sizeof *v);
        memset(q, 0, W * sizeof *q);
        v[0] = w->v[k];
        q[0] = w->q[k];
        q[1] = unit * v[0];
        double p = 1;
        for (int j = 0; j < STAGES; j++, p *= h / unit) {
            for (int i = 0; i < STAGES; i++)
                x[j] += y[i * n + k] * L[i][j];
            x[j] /= p;
            v[j + 1] = unit * x[j] / (j + 1);
            q[j + 2] = unit * v[j + 1] / (j + 2);
        }
        w->start.acc_end[k] = ev_value(w, x, STAGES - 1, h);
        w->start.jerk_end[k] = ev_rate(w, x, STAGES - 1, h);
    }
    for (int c = 0; c < ncol; c++)
        for (int k = 0; k < col[c].n; k++, m++) {
            double *x = col[c].at + (size_t)k * W, p = 1;
            memset(x, 0, W * sizeof *x);
            for (int j = 0; j < STAGES; j++, p *= h / unit) {
                for (int i = 0; i < STAGES; i++)
                    x[j] += st[i].values[m] * L[i][j];
                x[j] /= p;
            }
        }
}

/* allocated once: slip may start often */
typedef struct start_room {
    stage st[STAGES];
    column *col;
    int ncol;
    double *y, *big;
    int *pivot;
} start_room;

static start_room *room_of(ev *w)
{
    size_t n = (size_t)w->n, N = STAGES * n, total = 0;
    if (w->start.room)
        return w->start.room;
    start_room *m = w->start.room = arena_make(w->a, start_room);
    m->col = arena_array(w->a, column, 2 + 9 * (size_t)w->nrub);
    m->ncol = columns(w, m->col);
    for (int i = 0; i < m->ncol; i++)
        total += (size_t)m->col[i].n;
    for (int i = 0; i < STAGES; i++)
        m->st[i] = (stage){ .q = arena_array(w->a, double, n),
                            .v = arena_array(w->a, double, n),
                            .a = arena_array(w->a, double, n),
                            .dA = arena_array(w->a, double, n *n),
                            .values = arena_array(w->a, double, total) };
    m->y = arena_array(w->a, double, N);
    m->big = arena_array(w->a, double, N *N);
    m->pivot = arena_array(w->a, int, N);
    w->start.newton = arena_array(w->a, double, N);
    return m;
}

/* Steps grow with the time since rest, up to a fraction of the step of the series before; they shrink towards
   rest. */
static double next_step(const ev *w)
{
    return fmin(fmin(0.4 * w->start.elapsed, 0.03 * w->start.start_unit), 2 * w->series.natural);
}

/* The rate at which the direction of slip approaches that of the force, at the end of the step. */
static double stiffness(const ev *w, const stage *st)
{
    double most = 0;
    for (int i = 0; i < w->n; i++)
        for (int k = 0; k < w->n; k++)
            most = fmax(most, fabs(st->dA[i * w->n + k]) * sqrt(ev_mass(w, i) / ev_mass(w, k)));
    return most;
}

/* The next step since rest. w->start.starting: more follow, until a series can take steps of this length. */
bool slip_start(ev *w)
{
    const double SERIES = 10; /* a series can follow steps of up to this many time constants */
    double c[STAGES], L[STAGES][STAGES], A[STAGES][STAGES],
        h = w->start.elapsed > 0 ? next_step(w) : w->start.start_unit * EV_START_FIRST;
    start_room *m = room_of(w);
    if (w->start.elapsed == 0)
        rest_sizes(w);
    radau_points(c);
    lagrange(c, L);
    for (int i = 0; i < STAGES; i++)
        for (int k = 0; k < STAGES; k++) {
            A[i][k] = 0;
            for (int j = STAGES; j-- > 0;)
                A[i][k] = A[i][k] * c[i] + L[k][j] / (j + 1);
            A[i][k] *= c[i];
        }
    /* if rounding spoils a first step, longer ones are tried, then shorter ones */
    bool ok = false;
    double first = h;
    for (int longer = 0; longer < 5 && !ok && w->start.elapsed == 0; longer++, h *= ok ? 1 : 4)
        ok = collocate(w, h, m->st, A, c, m->y, m->big, m->pivot);
    if (!ok)
        h = w->start.elapsed == 0 ? first / 4 : first;
    for (int turn = 0; turn < 10 && !ok; turn++, h *= ok ? 1 : 0.25)
        ok = collocate(w, h, m->st, A, c, m->y, m->big, m->pivot);
    /* halves the step while that improves it; it does not if the error is rounding */
    double off = ok && w->start.elapsed > 0 ? between(w, h, m->y, c, L) : 0;
    while (ok && off > EV_START_FIT) {
        bool half = collocate(w, 0.5 * h, m->st, A, c, m->y, m->big, m->pivot);
        double less = half ? between(w, 0.5 * h, m->y, c, L) : INFINITY;
        if (!(less < 0.5 * off)) {
            ok = collocate(w, h, m->st, A, c, m->y, m->big, m->pivot);
            break;
        }
        off = less;
        h *= 0.5;
    }
    for (int i = 0; ok && i < STAGES; i++)
        ok = stage_value(w, &m->st[i], m->col, m->ncol, true);
    if (ok) {
        fit(w, h, m->y, m->st, L, m->col, m->ncol);
        w->series.natural = h;
        w->series.nall = 0;
        w->start.start_piece = true;
        w->start.elapsed += h;
        w->start.starting = w->start.elapsed < 0.02 * w->start.start_unit ||
                            stiffness(w, &m->st[STAGES - 1]) * next_step(w) > SERIES;
    }
    w->start.start_failed |= !ok;
    return ok;
}
