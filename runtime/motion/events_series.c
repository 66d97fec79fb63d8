/* events_series: the power series of a motion in given modes. At order j the equations
       sum M_i x_(j-i) = f_j + sum N_i rn_(j-i) + sum S_i^T rt_(j-i),     (gap'')_j = 0,     (slip')_j = 0
   (the last one for sticking contacts) are linear in x_j (the highest derivatives), rn_j and rt_j, with the
   same matrix for all j. N = H - beta D: kinetic friction is beta times the normal reaction, against the
   direction D of slip. */
#include <math.h>
#include <string.h>
#include "events.h"
#include "base/tolerances.h"

/* ---- helpers ---- */
static inline double *row(const ev *w, double *x, int k)
{
    return x + (size_t)k * (size_t)w->width;
}
static inline const double *crow(const ev *w, const double *x, int k)
{
    return x + (size_t)k * (size_t)w->width;
}
static inline bool first_order(const ev *w, int k)
{
    return w->p->order && w->p->order[k] == 1;
}

/* coefficient j of sum_k a_k b_k */
double ev_dot(const ev *w, const double *a, const double *b, int j)
{
    double s = 0;
    for (int k = 0; k < w->n; k++)
        s += series_mul(crow(w, a, k), crow(w, b, k), j);
    return s;
}

bool ev_fail(ev *w, span at, const char *message)
{
    return results_fail(w->r, at, message);
}

const char *ev_number(ev *w, double x)
{
    text s = { .a = w->r->a };
    text_num(&s, x);
    return s.at;
}

static void step(ev *w, taylor *t, int j)
{
    if (!t)
        return;
    if (j == 0)
        w->series.all[w->series.nall++] = t;
    taylor_step(t, &w->series.in, j);
}

/* ---- masses and forces ---- */
static void scatter(const taylor *t, double *to, size_t stride, int width, int j)
{
    const kernel *k = t->k;
    for (uint32_t i = 0; i < k->tape.nout; i++) {
        size_t r = (size_t)slot_at(&k->row[i], t->index, k->over.n);
        if (stride)
            r = r * stride + (size_t)slot_at(&k->col[i], t->index, k->over.n);
        to[r * (size_t)width + (size_t)j] += taylor_out(t, i)[j];
    }
}

static void clear(double *x, size_t count, int width, int j)
{
    for (size_t i = 0; i < count; i++)
        x[i * (size_t)width + (size_t)j] = 0;
}

static void masses_at(ev *w, int j)
{
    size_t n = (size_t)w->n;
    clear(w->series.Ms, n * n, w->width, j);
    for (int i = 0; i < w->series.nmass && (j == 0 || !w->s->mass_constant); i++) {
        step(w, w->series.mass[i], j);
        scatter(w->series.mass[i], w->series.Ms, n, w->width, j);
    }
}

static void masses_forces(ev *w, int j)
{
    size_t n = (size_t)w->n;
    /* for sticking contacts, rows are needed one order ahead */
    bool ahead = w->frames && !w->s->mass_constant;
    if (!ahead || j == 0)
        masses_at(w, j);
    if (ahead)
        masses_at(w, j + 1);
    clear(w->series.fs, n, w->width, j);
    for (int i = 0; i < w->series.nforce; i++) {
        step(w, w->series.force[i], j);
        scatter(w->series.force[i], w->series.fs, 0, w->width, j);
    }
}

static void put_state(ev *w)
{
    for (int k = 0; k < w->n; k++) {
        double *q = row(w, w->series.qs, k), *v = row(w, w->series.vs, k);
        memset(q, 0, (size_t)w->width * sizeof *q);
        memset(v, 0, (size_t)w->width * sizeof *v);
        q[0] = w->q[k];
        v[0] = w->v[k];
        if (!first_order(w, k))
            q[1] = v[0] * w->series.in.unit;
    }
    w->series.in.t = w->t;
}

/* If the next piece is not analytic at its start (flat to all orders, or a root), the current piece is
   continued a little longer. */
static bool sites_back(ev *w)
{
    bool any = false;
    for (int i = 0; i < w->series.nall; i++)
        for (uint32_t k = 0; k < w->series.all[i]->nsite; k++) {
            site *s = &w->series.all[i]->site[k];
            if (!s->near || site_two_sided(w->series.all[i], s))
                continue;
            s->branch = s->before;
            any = true;
        }
    return any;
}

static bool forces_finite(const ev *w)
{
    bool ok = true;
    for (int k = 0; k < w->n; k++)
        ok &= isfinite(crow(w, w->series.fs, k)[0]);
    return ok;
}

void ev_force0(ev *w)
{
    size_t n = (size_t)w->n;
    w->series.nall = 0;
    put_state(w);
    if (w->hist)
        history_begin(w->hist, w->t, w->series.in.unit);
    if (w->hist)
        history_step(w->hist, &w->series.in, 0);
    masses_forces(w, 0);
    if (!forces_finite(w) && sites_back(w)) {
        w->series.nall = 0;
        masses_forces(w, 0);
    }
    for (size_t i = 0; i < n; i++)
        w->f[i] = w->series.fs[i * (size_t)w->width];
    for (size_t i = 0; i < n; i++) {
        if (mass_diagonal(w->s))
            w->M[i] = w->series.Ms[(i * n + i) * (size_t)w->width];
        else
            for (size_t k = 0; k < n; k++)
                w->M[i * n + k] = w->series.Ms[(i * n + k) * (size_t)w->width];
    }
}

/* ---- contacts: what their equations need at order j ---- */
static void gradient_at(ev *w, rub *c, int j)
{
    clear(c->series.H, (size_t)w->n, w->width, j);
    if (!c->terms.gradient)
        return;
    step(w, c->terms.gradient, j);
    scatter(c->terms.gradient, c->series.H, 0, w->width, j);
}

/* A contact that sticks to a moving constraint needs its rows one order ahead. */
static void gradient_step(ev *w, rub *c, int j)
{
    bool ahead = c->series.frame && c->mode == MODE_STICK;
    if (!ahead || j == 0)
        gradient_at(w, c, j);
    if (ahead)
        gradient_at(w, c, j + 1);
    step(w, c->terms.bias, j);
}

static void slip_map_step(ev *w, rub *c, int j)
{
    clear(c->series.raw, (size_t)c->c->fam->nslip * (size_t)w->n, w->width, j);
    step(w, c->terms.slip, j);
    step(w, c->terms.slip_bias, j);
    step(w, c->terms.slip_map, j);
    if (c->terms.slip_map)
        scatter(c->terms.slip_map, c->series.raw, (size_t)w->n, w->width, j);
}

static double *raw_row(const ev *w, const rub *c, int i)
{
    return c->series.raw + (size_t)i * (size_t)w->n * (size_t)w->width;
}
/* In the plane the tangent turns with the normal. Sticking friction acts along the turning tangent, while the
   condition of no slip holds in the tangent direction at the start of the piece. */
static bool turns(const rub *c)
{
    return c->mode == MODE_STICK && c->c->fam->f->slip_given && c->c->d == 1 && c->c->fam->nslip == 2;
}
static double *stick_row(const ev *w, const rub *c, int i)
{
    return c->series.S + (size_t)i * (size_t)w->n * (size_t)w->width;
}

/* Sticking with a given slip: the directions are those of the start of the piece. */
static void stick_given(ev *w, rub *c, int j)
{
    for (int i = 0; i < c->c->d; i++)
        for (int k = 0; k < w->n; k++) {
            double s = 0;
            for (int l = 0; l < c->c->fam->nslip; l++)
                s += c->c->show[l * c->c->d + i] * row(w, raw_row(w, c, l), k)[j];
            row(w, stick_row(w, c, i), k)[j] = s;
        }
}

/* a . b over the dofs, each divided by the square of its column in the rows of slip at the start of the
   piece, because dofs may have different units. */
static double slip_dot(const ev *w, const rub *c, const double *a, const double *b, int j)
{
    double s = 0;
    for (int k = 0; k < w->n; k++) {
        double size = 0;
        for (int i = 0; i < c->c->fam->nslip; i++) {
            double x = crow(w, raw_row(w, c, i), k)[0];
            size += x * x;
        }
        if (size > 0)
            s += series_mul(crow(w, a, k), crow(w, b, k), j) / size;
    }
    return s;
}

/* The normal in the space of slip: nu.S = H, from G nu = S H^T with the products of slip_dot. */
static void normal_step(ev *w, rub *c, int j)
{
    int m = c->c->fam->nslip;
    double G0[MAX_SLIP * MAX_SLIP], b[MAX_SLIP] = { 0 }, x[MAX_SLIP] = { 0 },
                                    work[MAX_SLIP * MAX_SLIP + 2 * MAX_SLIP];
    int iwork[MAX_SLIP];
    for (int a = 0; a < m; a++)
        for (int l = 0; l < m; l++)
            row(w, c->series.gram, a * m + l)[j] = slip_dot(w, c, raw_row(w, c, a), raw_row(w, c, l), j);
    for (int a = 0; a < m; a++) {
        b[a] = slip_dot(w, c, raw_row(w, c, a), c->series.H, j);
        for (int l = 0; l < m; l++) {
            G0[a * m + l] = row(w, c->series.gram, a * m + l)[0];
            b[a] -= series_mul_rest(row(w, c->series.gram, a * m + l), row(w, c->series.nu, l), j);
        }
    }
    sym_shortest(G0, b, x, m, work, iwork);
    for (int a = 0; a < m; a++)
        row(w, c->series.nu, a)[j] = x[a];
}

/* Length l of a vector from its square l^2, order j of the series. */
static void length_step(const double *l2, double *l, int j)
{
    if (j == 0) {
        l[0] = sqrt(l2[0]);
        return;
    }
    double s = l2[j];
    for (int i = 1; i < j; i++)
        s -= l[i] * l[j - i];
    l[j] = s / (2 * l[0]);
}

/* The model gives the slip: its direction in the space of slip, then D = S^T direction; speed >= 0. */
static void slip_given(ev *w, rub *c, int j)
{
    int m = c->c->fam->nslip, d = c->c->d, n = w->n;
    double *dir = c->series.work, *l2 = row(w, c->series.work, m), *l = row(w, c->series.work, m + 1),
           *t1 = row(w, c->series.work, m + 2), *t2 = row(w, c->series.work, m + 3);
    const double *slip[MAX_SLIP];
    for (int i = 0; i < m; i++)
        slip[i] = taylor_out(c->terms.slip, (uint32_t)i);
    if (d < m) {
        normal_step(w, c, j);
        l2[j] = 0;
        for (int i = 0; i < m; i++)
            l2[j] += series_mul(row(w, c->series.nu, i), row(w, c->series.nu, i), j);
    }
    if (d == 1 && m == 1)
        row(w, dir, 0)[j] = j == 0 ? c->sign : 0;
    else if (d == 1 && m == 2) {
        length_step(l2, l, j);
        row(w, dir, 0)[j] = series_div(row(w, c->series.nu, 1), l, row(w, dir, 0), j);
        row(w, dir, 1)[j] = series_div(row(w, c->series.nu, 0), l, row(w, dir, 1), j);
        for (int i = 0; i < 2; i++)
            row(w, c->series.w, i)[j] = c->sign * (i ? -1 : 1) * row(w, dir, i)[j];
    } else {
        if (d < m) {
            t1[j] = 0;
            for (int i = 0; i < m; i++)
                t1[j] += series_mul(row(w, c->series.nu, i), slip[i], j);
            t2[j] = series_div(t1, l2, t2, j);
        }
        double *s2 = row(w, c->series.work, m + 4);
        s2[j] = 0;
        for (int i = 0; i < m; i++)
            row(w, c->series.w, i)[j] = slip[i][j] - (d < m ? series_mul(row(w, c->series.nu, i), t2, j) : 0);
        for (int i = 0; i < m; i++)
            s2[j] += series_mul(row(w, c->series.w, i), row(w, c->series.w, i), j);
        length_step(s2, c->series.speed, j);
        for (int i = 0; i < m; i++)
            row(w, dir, i)[j] = series_div(row(w, c->series.w, i), c->series.speed, row(w, dir, i), j);
    }
    const double *u = d == 1 && m == 2 ? c->series.w : dir;
    if (d == 1) {
        c->series.speed[j] = 0;
        for (int i = 0; i < m; i++)
            c->series.speed[j] += series_mul(crow(w, u, i), slip[i], j);
    }
    for (int k = 0; k < n; k++) {
        double s = 0;
        for (int i = 0; i < m; i++)
            s += series_mul(crow(w, u, i), row(w, raw_row(w, c, i), k), j);
        row(w, c->series.D, k)[j] = s;
    }
}

/* y = M^-1 H^T, hy = H y, metric = sqrt(hy) */
static void metric_step(ev *w, rub *c, int j)
{
    int n = w->n;
    double *b = w->hand.x1, *x = w->hand.x2;
    for (int i = 0; i < n; i++) {
        b[i] = row(w, c->series.H, i)[j];
        for (int k = 0; k < n && j; k++)
            b[i] -= series_mul_rest(row(w, w->series.Ms, i * n + k), row(w, c->series.y, k), j);
    }
    factor_solve(&w->s->minv, b, x);
    for (int i = 0; i < n; i++)
        row(w, c->series.y, i)[j] = x[i];
    c->series.hy[j] = ev_dot(w, c->series.H, c->series.y, j);
    length_step(c->series.hy, c->series.metric, j);
}

/* Friction in the whole tangent space: slip is the tangential part of q' in the kinetic metric. */
static void slip_whole(ev *w, rub *c, int j)
{
    int n = w->n;
    double *u = c->series.w, *Mu = c->series.work, *l2 = row(w, c->series.work, n),
           *l = row(w, c->series.work, n + 1), *t1 = row(w, c->series.work, n + 2),
           *t2 = row(w, c->series.work, n + 3);
    if (c->c->d == 1 && n == 2) {
        row(w, u, 0)[j] = c->sign * row(w, c->series.H, 1)[j];
        row(w, u, 1)[j] = -c->sign * row(w, c->series.H, 0)[j];
    } else {
        t1[j] = ev_dot(w, c->series.H, w->series.vs, j);
        t2[j] = series_div(t1, c->series.hy, t2, j);
        for (int i = 0; i < n; i++)
            row(w, u, i)[j] = row(w, w->series.vs, i)[j] - series_mul(row(w, c->series.y, i), t2, j);
    }
    for (int i = 0; i < n; i++) {
        double s = 0;
        for (int k = 0; k < n; k++)
            s += series_mul(row(w, w->series.Ms, i * n + k), row(w, u, k), j);
        row(w, Mu, i)[j] = s;
    }
    l2[j] = ev_dot(w, u, Mu, j);
    length_step(l2, l, j);
    for (int i = 0; i < n; i++)
        row(w, c->series.D, i)[j] = series_div(row(w, Mu, i), l, row(w, c->series.D, i), j);
    if (c->c->d == 1 && n == 2)
        c->series.speed[j] = ev_dot(w, c->series.D, w->series.vs, j);
    else
        c->series.speed[j] = l[j];
}

/* The directions T at the start of the piece, with S = M T, and the components of the current normal along
   them, up to order j + 1. */
static void frame_step(ev *w, rub *c, int j)
{
    int n = w->n, d = c->c->d;
    double *rate = c->series.work;
    for (int l = 0; j == 0 && l < d; l++)
        factor_solve(&w->s->minv, c->c->S + (size_t)l * n, c->series.along + (size_t)l * n);
    for (int k = 0; j == 0 && k < n; k++)
        c->series.along[(size_t)d * n + (size_t)k] = row(w, c->series.y, k)[0] / c->series.metric[0];
    for (int l = 0; l <= d; l++)
        for (int i = j ? j + 1 : 0; i <= j + 1; i++) {
            double s = 0;
            for (int k = 0; k < n; k++)
                s += c->series.along[(size_t)l * n + (size_t)k] * row(w, c->series.H, k)[i];
            row(w, c->series.frame, l)[i] = i == 0 && l < d ? 0 : s;
        }
    rate[j] = ev_dot(w, c->series.H, w->series.vs, j);
    c->series.carried[j] = series_div(rate, c->series.hy, c->series.carried, j);
}

/* Rate of the velocity in direction l that the constraint itself causes: q' = carried M^-1 H^T. */
static double carried_rate(const ev *w, const rub *c, int l, int j)
{
    const double *a = crow(w, c->series.frame, l);
    double s = 0;
    for (int i = 1; i <= j + 1; i++)
        s += c->series.carried[j + 1 - i] * a[i];
    return (j + 1) * s / w->series.in.unit;
}

/* Rows S = M T with changing masses, up to order j + 1. */
static void frame_rows(ev *w, rub *c, int j)
{
    int n = w->n;
    for (int l = 0; l < c->c->d; l++)
        for (int k = 0; k < n; k++)
            for (int i = j ? j + 1 : 1; i <= j + 1; i++) {
                double s = 0;
                for (int m = 0; m < n; m++)
                    s += row(w, w->series.Ms, k * n + m)[i] * c->series.along[(size_t)l * n + (size_t)m];
                row(w, stick_row(w, c, l), k)[i] = s;
            }
}

/* Constant directions T with S = M T. A contact that sticks to a wall at rest does not move at all. */
static void stick_whole(ev *w, rub *c, int j)
{
    bool changes = c->series.frame && !w->s->mass_constant;
    for (int i = 0; i < c->c->d; i++)
        for (int k = 0; k < w->n && (j == 0 || !changes); k++)
            row(w, stick_row(w, c, i), k)[j] = j == 0 ? c->c->S[(size_t)i * w->n + k] : 0;
    if (c->series.frame)
        frame_step(w, c, j);
    if (changes)
        frame_rows(w, c, j);
}

/* (S' q')_j of row l: the contribution of changing masses to the rate of slip of a sticking contact. */
static double row_rate(const ev *w, const rub *c, int l, int j)
{
    double s = 0;
    if (!c->series.frame || w->s->mass_constant)
        return 0;
    for (int k = 0; k < w->n; k++) {
        const double *S = crow(w, stick_row(w, c, l), k), *v = crow(w, w->series.vs, k);
        for (int i = 0; i <= j; i++)
            s += (i + 1) * S[i + 1] * v[j - i];
    }
    return s / w->series.in.unit;
}

static void law_step(ev *w, rub *c, int j)
{
    const contact_family *f = c->c->fam->f;
    bool coulomb = f->friction == FRICTION_COULOMB;
    taylor *of = c->mode == MODE_STICK && c->terms.mu_static ? c->terms.mu_static : c->terms.mu;
    w->series.in.speed = ev_slips(c) ? c->series.speed : NULL;
    step(w, of, j);
    w->series.in.speed = NULL;
    const double *mu = taylor_out(of, 0);
    if (coulomb && f->relation != REL_CLOSED) {
        c->series.beta[j] = c->sigma * (f->slip_given ? mu[j] : series_mul(mu, c->series.metric, j));
        return;
    }
    c->series.beta[j] = 0;
    if (!coulomb) {
        c->series.bound[j] = mu[j];
        return;
    }
    step(w, c->terms.normal, j);
    const double *N = taylor_out(c->terms.normal, 0);
    c->series.bound[j] = (N[0] < 0 ? -1 : 1) * series_mul(mu, N, j);
}

static void rub_step(ev *w, rub *c, int j)
{
    const contact_family *f = c->c->fam->f;
    bool rough = c->mode == MODE_STICK || ev_slips(c), normal = f->relation != REL_CLOSED;
    if (normal)
        gradient_step(w, c, j);
    else
        clear(c->series.H, (size_t)w->n, w->width, j);
    if (rough) {
        if (f->slip_given)
            slip_map_step(w, c, j);
        else
            metric_step(w, c, j);
        if (c->mode == MODE_STICK) {
            if (f->slip_given)
                stick_given(w, c, j);
            else
                stick_whole(w, c, j);
        }
        if (turns(c)) {
            c->sign = 1;
            slip_given(w, c, j);
        }
        if (c->mode == MODE_STICK)
            ;
        else if (f->slip_given)
            slip_given(w, c, j);
        else
            slip_whole(w, c, j);
        law_step(w, c, j);
    }
    step(w, c->terms.adhesion, j);
    for (int k = 0; k < w->n; k++) {
        double *N = row(w, c->series.N, k),
               D = c->mode == MODE_SLIP ? series_mul(c->series.beta, row(w, c->series.D, k), j) : 0;
        N[j] = c->mode == MODE_HOVER ? -row(w, c->series.D, k)[j] : row(w, c->series.H, k)[j] - D;
    }
}

/* ---- the linear system ---- */
static double power_of_two(double x)
{
    int e;
    frexp(x, &e);
    return x > 0 && isfinite(x) ? ldexp(1, e) : 1;
}

static bool lu_factor(double *a, int n, int *pivot)
{
    double top = vec_max(a, n * n);
    for (int k = 0; k < n; k++) {
        int p = k;
        for (int i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[p * n + k]))
                p = i;
        pivot[k] = p;
        if (!(fabs(a[p * n + k]) > PIVOT_LOOSE * top))
            return false;
        if (p != k)
            for (int i = 0; i < n; i++) {
                double x = a[k * n + i];
                a[k * n + i] = a[p * n + i];
                a[p * n + i] = x;
            }
        for (int i = k + 1; i < n; i++) {
            double l = a[i * n + k] /= a[k * n + k];
            if (l != 0)
                for (int m = k + 1; m < n; m++)
                    a[i * n + m] -= l * a[k * n + m];
        }
    }
    return true;
}

static void lu_solve(const double *a, int n, const int *pivot, double *b)
{
    for (int k = 0; k < n; k++) {
        double x = b[pivot[k]];
        b[pivot[k]] = b[k];
        b[k] = x;
    }
    for (int k = 0; k < n; k++)
        for (int i = k + 1; i < n; i++)
            b[i] -= a[i * n + k] * b[k];
    for (int k = n; k-- > 0;) {
        for (int i = k + 1; i < n; i++)
            b[k] -= a[k * n + i] * b[i];
        b[k] /= a[k * n + k];
    }
}

double ev_mass(const ev *w, int k)
{
    return row(w, w->series.Ms, k * w->n + k)[0];
}

/* Scales rows and columns by powers of 2 until their largest entries are near 1. */
static void equilibrate(double *a, double *b, int n, double *col)
{
    for (int k = 0; k < n; k++)
        col[k] = 1;
    for (int turn = 0; turn < 6; turn++)
        for (int i = 0; i < 2 * n; i++) {
            int at = i % n;
            bool down = i >= n;
            double top = 0, s;
            for (int k = 0; k < n; k++)
                top = fmax(top, fabs(down ? a[k * n + at] : a[at * n + k]));
            s = 1 / power_of_two(sqrt(top));
            for (int k = 0; k < n; k++)
                a[down ? k * n + at : at * n + k] *= s;
            if (down)
                col[at] *= s;
            else
                b[at] *= s;
        }
}

bool dense_solve(double *a, double *b, int n, int *pivot)
{
    double col[n + 1];
    equilibrate(a, b, n, col);
    if (!lu_factor(a, n, pivot))
        return false;
    lu_solve(a, n, pivot, b);
    for (int k = 0; k < n; k++)
        b[k] *= col[k];
    return true;
}

static double *force_row(const ev *w, const rub *c, int i)
{
    return turns(c) ? c->series.D : stick_row(w, c, i);
}

static void number_unknowns(ev *w)
{
    w->linear.unknowns = w->n;
    for (int i = 0; i < w->nrub; i++) {
        rub *c = &w->rub[i];
        c->col_n = c->col_t = -1;
        if (c->mode == MODE_OPEN)
            continue;
        if (c->c->fam->f->relation != REL_CLOSED)
            c->col_n = w->linear.unknowns++;
        if (c->mode == MODE_STICK) {
            c->col_t = w->linear.unknowns;
            w->linear.unknowns += c->c->d;
        }
    }
}

/* Scales dofs by the roots of their masses, and contacts by their largest remaining entry, so that
   comparisons of pivots do not depend on units. */
static void scales(ev *w)
{
    int n = w->n, m = w->linear.unknowns;
    for (int k = 0; k < n; k++)
        w->linear.row_scale[k] = w->linear.col_scale[k] = 1 / power_of_two(sqrt(ev_mass(w, k)));
    for (int i = n; i < m; i++) {
        double across = 0, down = 0;
        for (int k = 0; k < n; k++) {
            across = fmax(across, fabs(w->linear.A[i * m + k]) * w->linear.col_scale[k]);
            down = fmax(down, fabs(w->linear.A[k * m + i]) * w->linear.row_scale[k]);
        }
        w->linear.row_scale[i] = 1 / power_of_two(across);
        w->linear.col_scale[i] = 1 / power_of_two(down);
    }
}

static bool matrix(ev *w)
{
    int n = w->n, m = w->linear.unknowns;
    double *A = w->linear.A;
    memset(A, 0, (size_t)m * (size_t)m * sizeof *A);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            A[i * m + k] = row(w, w->series.Ms, i * n + k)[0];
    for (int i = 0; i < w->nrub; i++) {
        rub *c = &w->rub[i];
        for (int k = 0; k < n && c->col_n >= 0; k++) {
            A[k * m + c->col_n] = -row(w, c->series.N, k)[0];
            A[c->col_n * m + k] = row(w, c->series.H, k)[0];
        }
        for (int l = 0; l < c->c->d && c->col_t >= 0; l++)
            for (int k = 0; k < n; k++) {
                A[k * m + c->col_t + l] = -row(w, force_row(w, c, l), k)[0];
                A[(c->col_t + l) * m + k] = row(w, stick_row(w, c, l), k)[0];
            }
    }
    scales(w);
    for (int i = 0; i < m; i++)
        for (int k = 0; k < m; k++)
            w->linear.lu[i * m + k] = A[i * m + k] *= w->linear.row_scale[i] * w->linear.col_scale[k];
    w->linear.singular = !lu_factor(w->linear.lu, m, w->linear.pivot);
    w->linear.contradicts = false;
    w->linear.most = 0;
    return true;
}

static void right_side(ev *w, int j)
{
    int n = w->n;
    double *b = w->linear.rhs;
    for (int i = 0; i < n; i++) {
        b[i] = row(w, w->series.fs, i)[j];
        if (j && !w->s->mass_constant)
            for (int k = 0; k < n; k++)
                b[i] -= series_mul_rest(row(w, w->series.Ms, i * n + k), row(w, w->series.xs, k), j);
    }
    for (int i = 0; i < w->nrub; i++) {
        rub *c = &w->rub[i];
        const contact_family *f = c->c->fam->f;
        if (c->mode == MODE_OPEN)
            continue;
        if (c->mode == MODE_SLIP && (f->relation == REL_CLOSED || f->friction == FRICTION_TRESCA))
            for (int k = 0; k < n; k++)
                b[k] -= series_mul(c->series.bound, row(w, c->series.D, k), j);
        for (int k = 0; c->terms.adhesion && k < n; k++)
            b[k] -= series_mul(taylor_out(c->terms.adhesion, 0), row(w, c->series.H, k), j);
        if (c->col_n >= 0) {
            double s = c->terms.bias ? taylor_out(c->terms.bias, 0)[j] : 0;
            for (int k = 0; k < n; k++) {
                b[k] += series_mul_rest(row(w, c->series.N, k), c->series.rn, j);
                s += series_mul_rest(row(w, c->series.H, k), row(w, w->series.xs, k), j);
            }
            b[c->col_n] = -s;
        }
        for (int l = 0; l < c->c->d && c->col_t >= 0; l++) {
            double s = 0;
            if (c->terms.slip_bias)
                for (int a = 0; a < c->c->fam->nslip; a++)
                    s += c->c->show[a * c->c->d + l] * taylor_out(c->terms.slip_bias, (uint32_t)a)[j];
            for (int k = 0; k < n; k++) {
                b[k] += series_mul_rest(row(w, force_row(w, c, l), k), row(w, c->series.rt, l), j);
                s += series_mul_rest(row(w, stick_row(w, c, l), k), row(w, w->series.xs, k), j);
            }
            b[c->col_t + l] = (c->series.frame ? carried_rate(w, c, l, j) : 0) - row_rate(w, c, l, j) - s;
        }
    }
}

static bool bound_given(const rub *k)
{
    return k->c->fam->f->relation == REL_CLOSED || k->c->fam->f->friction == FRICTION_TRESCA;
}

/* The largest friction force of a contact, estimated from order 0. */
static double friction_room(const rub *k)
{
    return bound_given(k) ? fabs(k->series.bound[0]) : fabs(k->series.beta[0] * k->r0);
}

static double most_room(const ev *w)
{
    double most = 0;
    for (int i = 0; i < w->nrub; i++)
        if (w->rub[i].col_t >= 0)
            most = fmax(most, friction_room(&w->rub[i]));
    return most;
}

/* Contacts that share a load reach their bounds together, so the zero of each is in proportion to its bound.
 */
double ev_zero_friction(const ev *w, const rub *k)
{
    double zero = ev_zero_force(w, k->grip_t), most = w->linear.singular && k->col_t >= 0 ? most_room(w) : 0;
    return most > 0 ? zero * fmax(friction_room(k) / most, EV_ROOM_LEAST) : zero;
}

/* The solution of the singular system that is nearest to x0. In the norm, friction of contacts with a small
   share of the load has a large weight. */
static bool solve_near(ev *w, const double *rhs, const double *x0)
{
    size_t m = (size_t)w->linear.unknowns;
    double weight[m + 1];
    for (size_t k = 0; k < m; k++)
        weight[k] = 1;
    for (int i = 0; i < w->nrub; i++)
        for (int l = 0; l < w->rub[i].c->d && w->rub[i].col_t >= 0; l++)
            weight[w->rub[i].col_t + l] = EV_SHARE_FIRST * w->rub[i].share;
    for (size_t i = 0; i < m; i++) {
        w->linear.sol[i] = rhs[i] - vec_dot(w->linear.A + i * m, x0, (int)m);
        for (size_t k = 0; k < m; k++)
            w->linear.lu[i * m + k] = w->linear.A[i * m + k] * weight[k];
    }
    arena_pos mark = arena_mark(w->a);
    bool ok = least_norm(w->linear.lu, w->linear.sol, (int)m, (int)m, w->a);
    arena_release(w->a, mark);
    for (size_t k = 0; k < m; k++)
        w->linear.sol[k] = x0[k] + w->linear.sol[k] * weight[k];
    return ok;
}

/* If the motion does not determine all reactions, the solution with the least friction is taken: each pass
   reduces the unnecessary part of friction to a millionth. */
static bool least_friction(ev *w, const double *rhs)
{
    size_t m = (size_t)w->linear.unknowns;
    double x0[m + 1];
    memset(x0, 0, sizeof x0);
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < w->nrub; i++)
            for (int l = 0; l < w->rub[i].c->d && w->rub[i].col_t >= 0; l++)
                x0[w->rub[i].col_t + l] = 0;
        if (!solve_near(w, rhs, x0))
            return false;
        memcpy(x0, w->linear.sol, m * sizeof *x0);
    }
    return true;
}

/* The fraction of its bound that contact k uses in the current solution. */
static double part_used(const ev *w, const rub *k)
{
    double f = 0;
    for (int l = 0; l < k->c->d; l++)
        f = hypot(f, w->linear.sol[k->col_t + l] * w->linear.col_scale[k->col_t + l]);
    double room = bound_given(k)
                      ? friction_room(k)
                      : fabs(k->series.beta[0] * w->linear.sol[k->col_n] * w->linear.col_scale[k->col_n]);
    return f / fmax(room, EV_ROOM_LEAST * most_room(w));
}

/* A way to distribute friction: the weight of each contact, and the fraction of its bound that it uses. */
typedef struct sharing {
    double *weight, *used, top, low; /* the largest and the least fraction of the sticking contacts */
} sharing;

static bool share_by(ev *w, const double *rhs, sharing *s)
{
    double most = most_room(w);
    s->top = 0;
    s->low = INFINITY;
    for (int i = 0; i < w->nrub; i++)
        if (w->rub[i].col_t >= 0)
            w->rub[i].share = fmax(friction_room(&w->rub[i]) / most, EV_ROOM_LEAST) / sqrt(s->weight[i]);
    if (!least_friction(w, rhs))
        return false;
    for (int i = 0; i < w->nrub; i++) {
        if (w->rub[i].col_t < 0)
            continue;
        s->used[i] = part_used(w, &w->rub[i]);
        s->top = fmax(s->top, s->used[i]);
        s->low = fmin(s->low, s->used[i]);
    }
    return true;
}

/* The next weights: multiplied by this power of the fraction used, so that contacts that use much get a
   larger weight. */
static void weigh_again(const ev *w, const sharing *from, double power, double *weight)
{
    double heaviest = 0;
    for (int i = 0; i < w->nrub; i++) {
        weight[i] = w->rub[i].col_t < 0
                        ? 0
                        : from->weight[i] * pow(fmax(from->used[i] / from->top, EV_SHARE_LEAST), power);
        heaviest = fmax(heaviest, weight[i]);
    }
    for (int i = 0; i < w->nrub; i++)
        weight[i] = fmax(weight[i] / heaviest, EV_ROOM_LEAST);
}

/* Distributes friction so that the largest fraction of a bound is as small as possible: contacts that stick
   together start to slip together. Lawson's iteration of weights, with a power that grows while that helps. A
   contact that need not use its full bound loses its weight. */
static bool share_out(ev *w, const double *rhs)
{
    enum { TURNS = 100 };
    size_t n = (size_t)w->nrub + 1;
    double room[4 * n], power = 1;
    sharing best = { .weight = room, .used = room + n },
            next = { .weight = room + 2 * n, .used = room + 3 * n };
    for (int i = 0; i < w->nrub; i++)
        best.weight[i] = w->rub[i].share = 1;
    if (!(most_room(w) > 0))
        return true;
    if (!share_by(w, rhs, &best))
        return false;
    for (int turn = 0;
         turn < TURNS && best.top - best.low > EV_SHARE_END * best.top && power > EV_SHARE_POWER; turn++) {
        weigh_again(w, &best, power, next.weight);
        if (!share_by(w, rhs, &next))
            return false;
        bool better = next.top < best.top;
        power *= better ? 2 : 0.25;
        if (better) {
            sharing old = best;
            best = next;
            next = old;
        }
    }
    return share_by(w, rhs, &best);
}

/* Reactions that the motion does not determine: the least friction, or, if that does not fit the cones, near
   those of the step problem; the series continues them. */
static bool solve_singular(ev *w, int j)
{
    size_t m = (size_t)w->linear.unknowns;
    double x0[m + 1], rhs[m + 1];
    memcpy(rhs, w->linear.rhs, m * sizeof *rhs);
    if (j == 0 && !share_out(w, rhs))
        return false;
    if (j || !w->linear.split)
        return least_friction(w, rhs);
    memset(x0, 0, sizeof x0);
    for (int i = 0; i < w->nrub; i++) {
        const rub *k = &w->rub[i];
        if (k->col_n >= 0)
            x0[k->col_n] = k->r0 / w->linear.col_scale[k->col_n];
        for (int l = 0; l < k->c->d && k->col_t >= 0; l++)
            x0[k->col_t + l] = k->rt0[l] / w->linear.col_scale[k->col_t + l];
    }
    return solve_near(w, rhs, x0);
}

/* Does the current solution miss the equations? If the forces of an order cancel, only the rounding of lower
   orders remains, and no solution fits that. */
static bool misses(ev *w, const double *rhs)
{
    size_t m = (size_t)w->linear.unknowns;
    double off = 0, size = 0;
    for (size_t i = 0; i < m; i++) {
        double left = rhs[i], most = fabs(rhs[i]);
        for (size_t k = 0; k < m; k++) {
            left -= w->linear.A[i * m + k] * w->linear.sol[k];
            most = fmax(most, fabs(w->linear.A[i * m + k] * w->linear.sol[k]));
        }
        off = fmax(off, fabs(left));
        size = fmax(size, most);
    }
    w->linear.most = fmax(w->linear.most, size);
    return off > fmax(EV_UNSOLVED * size, ROUND_500 * w->linear.most);
}

/* Solves the equations of order j with the current right-hand side. */
static bool solve_order(ev *w, int j)
{
    int m = w->linear.unknowns;
    double unit = w->series.in.unit;
    for (int i = 0; i < m; i++)
        w->linear.sol[i] = w->linear.rhs[i] *= w->linear.row_scale[i];
    if (!w->linear.singular)
        lu_solve(w->linear.lu, m, w->linear.pivot, w->linear.sol);
    else if (!solve_singular(w, j))
        return false;
    w->linear.contradicts |= w->linear.singular && misses(w, w->linear.rhs);
    for (int i = 0; i < m; i++)
        w->linear.sol[i] *= w->linear.col_scale[i];
    for (int k = 0; k < w->n; k++) {
        double x = w->linear.sol[k], *q = row(w, w->series.qs, k), *v = row(w, w->series.vs, k);
        row(w, w->series.xs, k)[j] = x;
        if (first_order(w, k)) {
            v[j] = x;
            q[j + 1] = unit * x / (j + 1);
        } else {
            v[j + 1] = unit * x / (j + 1);
            q[j + 2] = unit * v[j + 1] / (j + 2);
        }
    }
    for (int i = 0; i < w->nrub; i++) {
        rub *c = &w->rub[i];
        c->series.rn[j] = c->col_n >= 0 ? w->linear.sol[c->col_n] : 0;
        for (int l = 0; l < c->c->d && c->series.rt; l++)
            row(w, c->series.rt, l)[j] = c->col_t >= 0 ? w->linear.sol[c->col_t + l] : 0;
    }
    return true;
}

/* For a hovering contact the unknown was the friction that acts, up to order j: moves it to `bound`. */
static void split_hover(ev *w, int j)
{
    for (int i = 0; i < w->nrub; i++) {
        rub *c = &w->rub[i];
        if (c->mode != MODE_HOVER)
            continue;
        for (int k = 0; k <= j; k++) {
            c->series.most[k] = c->series.bound[k];
            c->series.bound[k] = c->series.rn[k];
            c->series.rn[k] = 0;
        }
    }
}

/* The highest derivatives at an instant in the current modes. Afterwards the coefficients of order 0 of all
   series belong to that instant. */
bool ev_accelerations(ev *w, double t, const double *q, const double *v, double *a)
{
    double *q0 = w->q, *v0 = w->v, t0 = w->t;
    memcpy(w->start.qx, q, (size_t)w->n * sizeof *q);
    memcpy(w->start.vx, v, (size_t)w->n * sizeof *v);
    w->q = w->start.qx;
    w->v = w->start.vx;
    w->t = t;
    w->series.nall = 0;
    put_state(w);
    bool ok = true;
    if (w->hist) {
        history_begin(w->hist, t, w->series.in.unit);
        ok = history_step(w->hist, &w->series.in, 0);
    }
    masses_forces(w, 0);
    number_unknowns(w);
    for (int i = 0; i < w->nrub; i++)
        if (w->rub[i].mode != MODE_OPEN)
            rub_step(w, &w->rub[i], 0);
    matrix(w);
    right_side(w, 0);
    ok = ok && solve_order(w, 0);
    split_hover(w, 0);
    for (int k = 0; k < w->n; k++)
        a[k] = row(w, w->series.xs, k)[0];
    w->q = q0;
    w->v = v0;
    w->t = t0;
    return ok;
}

/* ---- the step that the tolerance allows ---- */
/* For a quantity that starts at 0: compares term j with its first nonzero term. */
static double from_rest(const ev *w, const double *y, int j)
{
    int i = 0;
    while (i < j && y[i] == 0)
        i++;
    return i < j ? w->series.in.unit * pow(w->local * fabs(y[i] / y[j]), 1.0 / (j - i)) : INFINITY;
}

static double natural_step(ev *w)
{
    double h = INFINITY, global = 0, global1 = 0, unit = w->series.in.unit;
    int K = w->K;
    for (int k = 0; k < w->n; k++)
        if (first_order(w, k))
            global1 = fmax(global1, w->sizes.qmax[k]);
        else
            global = fmax(global, w->sizes.vmax[k] * sqrt(ev_mass(w, k)));
    for (int turn = 0; turn < 2; turn++) {
        double before = h;
        h = INFINITY;
        for (int k = 0; k < w->n; k++) {
            const double *y = row(w, first_order(w, k) ? w->series.qs : w->series.vs, k);
            double size = first_order(w, k)
                              ? fmax(w->sizes.qmax[k], DOF_LEAST * global1)
                              : fmax(w->sizes.vmax[k], DOF_LEAST * global / sqrt(ev_mass(w, k))),
                   p = 1;
            double reach = turn && isfinite(before) ? before / unit : 0;
            for (int j = 0; j <= K - 2; j++, p *= reach)
                size = fmax(size, fabs(y[j]) * p);
            for (int j = K - 1; j <= K; j++)
                if (y[j] != 0)
                    h = fmin(h, size > 0 ? unit * pow(w->local * size / fabs(y[j]), 1.0 / j)
                                         : from_rest(w, y, j));
        }
        if (!isfinite(h))
            break;
    }
    return h;
}

/* The step within which a series whose roots are sought (a gap, the two sides of a switch) is accurate: the
   truncated terms stay below the tolerance relative to its own size over that step. Such a quantity may move
   while the state does not, for example a driven wall. */
static double watched_step(const ev *w, const double *f, int K, double h, double least)
{
    double all = h, left = w->o->duration - w->t;
    h = fmin(h, left);
    for (int turn = 0; turn < 12 && h > 0; turn++) {
        double size = fmax(least, ev_size(w, f, K - 2, h)), next = h;
        for (int j = K - 1; j <= K; j++)
            if (f[j] != 0 && size > 0)
                next = fmin(next, w->series.in.unit * pow(w->local * size / fabs(f[j]), 1.0 / j));
        if (next > 0.99 * h)
            break;
        h = next;
    }
    return h < left ? h : all; /* the end of the run is not a scale of the motion */
}

/* Limits the step by the gaps of open contacts and the reactions of closed ones: reactions determine when
   contacts slip or open, even while nothing moves. */
static double contact_step(const ev *w, double natural)
{
    double h = natural, force = w->sizes.size_top, least = EV_STEP_LEAST * w->o->duration;
    for (int k = 0; k < w->n; k++)
        force = fmax(force, fabs(crow(w, w->series.fs, k)[0]) / sqrt(ev_mass(w, k)));
    for (int i = 0; i < w->nrub; i++) {
        const rub *k = &w->rub[i];
        if (k->mode == MODE_OPEN) {
            bool rates = k->c->fam->f->of_rates;
            double least_gap = 0.1 * (rates ? k->zero.tol_u : k->zero.tol_gap) / w->local;
            if (k->terms.gap || rates)
                h = fmin(h, watched_step(w, k->series.g, w->K - rates, natural, least_gap));
            continue;
        }
        if (k->col_n >= 0)
            h = fmin(h, fmax(watched_step(w, k->series.rn, w->K - 1, natural, force / k->grip_n), least));
        if (k->mode == MODE_HOVER)
            h = fmin(h, fmax(watched_step(w, k->series.bound, w->K - 1, natural, force / k->grip_t), least));
        /* if slip is small, its direction has a singularity nearby, which a friction law may hide from the
           motion */
        if (ev_slips(k) && k->c->d > 1)
            h = fmin(h, fmax(watched_step(w, k->series.speed, w->K - 1, natural, 0), least));
        for (int l = 0; l < k->c->d && k->col_t >= 0; l++)
            h = fmin(h, fmax(watched_step(w, crow(w, k->series.rt, l), w->K - 1, natural, force / k->grip_t),
                             least));
    }
    return h;
}

/* Radius of convergence of a series, estimated from its last terms and its first ones. If it starts near 0,
   its size is the one that it soon reaches. */
static double disk_of(const double *r, int K)
{
    enum { TURNS = 8 };
    double a = fabs(r[K - 1]), b = fabs(r[K]), top = fabs(r[0]), x = INFINITY;
    if (!(top > 0) || (a == 0 && b == 0))
        return INFINITY;
    for (int turn = 0; turn < TURNS; turn++) {
        x = fmin(b > 0 ? pow(EV_DISK * top / b, 1.0 / K) : INFINITY,
                 a > 0 ? pow(EV_DISK * top / a, 1.0 / (K - 1)) : INFINITY);
        double soon = fmax(fabs(r[1]) * x, fabs(r[2]) * x * x);
        if (!(soon > top))
            break;
        top = soon;
    }
    return x;
}

/* Beyond the radius of convergence of a register nothing is known about its value (a function that is flat to
   all orders may rise soon), so the step stays within it. There is a lower limit, a small fraction of the
   run. */
static double register_step(ev *w)
{
    double h = w->series.natural, least = EV_STEP_LEAST * w->o->duration;
    int K = w->K - 1;
    for (int i = 0; i < w->series.nall; i++) {
        const taylor *t = w->series.all[i];
        for (uint32_t m = 0; m < t->nmoving; m++) {
            uint32_t op = t->code[t->moving[m]].op;
            if (op != OP_DIV && op != OP_POW && op != OP_SQRT && op != OP_LOG && op != OP_TAN &&
                op != OP_ASIN && op != OP_ACOS)
                continue;
            if (!t->live[t->code[t->moving[m]].dst])
                continue;
            const double *r = taylor_reg(t, t->code[t->moving[m]].dst);
            double x = w->series.in.unit * disk_of(r, K);
            if (x < h)
                h = fmin(h, fmax(x, least));
        }
        for (uint32_t k = 0; k < t->nsite; k++) {
            const site *s = &t->site[k];
            const instr *q = &t->code[s->code];
            double f[w->width];
            if ((t->still[q->a] && t->still[q->b]) || !t->live[q->dst])
                continue;
            site_function(t, s, false, K, f);
            h = fmin(h, fmax(watched_step(w, f, K, h, 0), least));
        }
    }
    return h;
}

/* ---- pieces of piecewise operations ---- */
static bool site_agrees(ev *w, taylor *t, site *s, double h)
{
    int K = w->K - 1;
    double f[w->width];
    double was = s->branch;
    site_function(t, s, false, K, f);
    int sign = ev_sign(w, f, 1, K, h, EV_SIGN * ev_size(w, f, K, h));
    if (site_two_sided(t, s)) {
        if (sign < 0)
            s->branch -= 1;
    } else
        s->branch = sign;
    return was == s->branch;
}

static bool sites_agree(ev *w)
{
    bool ok = true;
    double h = ev_scale(w);
    for (int i = 0; i < w->series.nall; i++)
        for (uint32_t k = 0; k < w->series.all[i]->nsite; k++)
            if (w->series.all[i]->site[k].near)
                ok &= site_agrees(w, w->series.all[i], &w->series.all[i]->site[k], h);
    return ok;
}

/* Friction without a given slip: fn is the part of H rn + S rt along H; ft2 is the square of the rest in the
   kinetic metric, rt.T S rt - (H T rt)^2/(H M^-1 H). */
static void split_frame(ev *w, rub *c)
{
    int n = w->n, d = c->c->d;
    double *turned = row(w, c->series.work, n), *share = row(w, c->series.work, n + 1),
           *along = row(w, c->series.work, n + 2);
    for (int j = 0; j < w->K; j++) {
        turned[j] = 0;
        for (int l = 0; l < d; l++)
            turned[j] += series_mul(row(w, c->series.frame, l), row(w, c->series.rt, l), j);
        share[j] = series_div(turned, c->series.hy, share, j);
        c->series.fn[j] = c->series.rn[j] + share[j];
        for (int k = 0; k < n; k++) {
            double *F = row(w, c->series.work, k);
            F[j] = 0;
            for (int l = 0; l < d; l++)
                F[j] += series_mul(row(w, stick_row(w, c, l), k), row(w, c->series.rt, l), j);
            row(w, c->series.ft, k)[j] = F[j] - series_mul(row(w, c->series.H, k), share, j);
        }
        c->series.ft2[j] = -series_mul(turned, share, j);
    }
    for (int l = 0; l < d; l++)
        for (int j = 0; j < w->K; j++) {
            along[j] = 0;
            for (int k = 0; k < n; k++)
                along[j] += c->series.along[(size_t)l * n + (size_t)k] * row(w, c->series.work, k)[j];
            c->series.ft2[j] += series_mul(row(w, c->series.rt, l), along, j);
        }
}

/* The model gives the slip: splits the reaction nu rn + E rt along the current normal; E are the directions
   at the start of the piece. */
static void split_reaction(ev *w, rub *c)
{
    int d = c->c->d, m = c->c->fam->nslip;
    double *nu = c->series.nu, along[w->width], l2[w->width];
    memset(c->series.ft2, 0, (size_t)w->width * sizeof *c->series.ft2);
    for (int j = 0; j < w->K; j++) {
        normal_step(w, c, j);
        along[j] = l2[j] = 0;
        for (int a = 0; a < m; a++) {
            double *F = row(w, c->series.work, a);
            F[j] = series_mul(row(w, nu, a), c->series.rn, j);
            for (int l = 0; l < d; l++)
                F[j] += c->c->show[a * d + l] * row(w, c->series.rt, l)[j];
        }
        for (int a = 0; a < m; a++) {
            along[j] += series_mul(row(w, nu, a), row(w, c->series.work, a), j);
            l2[j] += series_mul(row(w, nu, a), row(w, nu, a), j);
        }
        c->series.fn[j] = series_div(along, l2, c->series.fn, j);
        for (int a = 0; a < m; a++)
            row(w, c->series.ft, a)[j] = row(w, c->series.work, a)[j] -
                                         series_mul(row(w, nu, a), c->series.fn, j);
        for (int a = 0; a < m; a++)
            c->series.ft2[j] += series_mul(row(w, c->series.ft, a), row(w, c->series.ft, a), j);
    }
}

/* ---- all orders ---- */
static bool all_finite(const double *x, int n)
{
    bool ok = true;
    for (int k = 0; k < n; k++)
        ok &= isfinite(x[k]);
    return ok;
}

static bool series_finite(const ev *w)
{
    bool ok = true;
    for (int k = 0; k < w->n; k++)
        ok &= all_finite(crow(w, w->series.qs, k), w->K + 2);
    return ok;
}

/* For a constraint on rates: the bounded quantity takes the place of the gap. */
static void bounded_series(ev *w, rub *c)
{
    for (int j = 0; j < w->K; j++) {
        gradient_at(w, c, j);
        step(w, c->terms.rate, j);
        c->series.g[j] = ev_dot(w, c->series.H, w->series.vs, j) +
                         (c->terms.rate ? taylor_out(c->terms.rate, 0)[j] : 0);
    }
}

/* Computes the orders, up to the first one that is not finite. */
static bool orders(ev *w)
{
    w->series.nall = 0;
    put_state(w);
    if (w->hist)
        history_begin(w->hist, w->t, w->series.in.unit);
    number_unknowns(w);
    for (int j = 0; j < w->K; j++) {
        if (w->hist && !history_step(w->hist, &w->series.in, j)) {
            span at;
            const char *why = history_error(w->hist, &at);
            return ev_fail(w, at, why);
        }
        if (w->hist && j == 0)
            w->series.nall += history_kernels(w->hist, w->series.all + w->series.nall);
        masses_forces(w, j);
        if (j == 0 && !w->s->mass_constant) {
            int bad;
            size_t n = (size_t)w->n;
            for (size_t i = 0; i < n; i++) {
                if (mass_diagonal(w->s))
                    w->M[i] = w->series.Ms[(i * n + i) * (size_t)w->width];
                else
                    for (size_t k = 0; k < n; k++)
                        w->M[i * n + k] = w->series.Ms[(i * n + k) * (size_t)w->width];
            }
            if (!system_factor(w->s, w->M, &bad))
                return ev_fail(
                    w, mass_where(w->p, bad),
                    arena_printf(w->r->a,
                                 "the mass matrix is not positive definite at t = %s, in the row of '%s'",
                                 ev_number(w, w->t), dof_name(w->p, bad, w->r->a)));
        }
        for (int i = 0; i < w->nrub; i++)
            if (w->rub[i].mode != MODE_OPEN)
                rub_step(w, &w->rub[i], j);
        if (j == 0)
            matrix(w);
        right_side(w, j);
        if (j && !all_finite(w->linear.rhs, w->linear.unknowns)) {
            row(w, w->series.qs, 0)[w->K + 1] = NAN;
            return true;
        }
        if (!solve_order(w, j))
            return ev_fail(w, SPAN_NONE,
                           arena_printf(w->r->a, "the equations are singular at t = %s", ev_number(w, w->t)));
    }
    split_hover(w, w->K - 1);
    for (int i = 0; i < w->nrub; i++)
        if (w->rub[i].mode == MODE_STICK && w->rub[i].series.frame)
            split_frame(w, &w->rub[i]);
        else if (w->rub[i].mode == MODE_STICK && ev_frame_turns(&w->rub[i]))
            split_reaction(w, &w->rub[i]);
    w->series.natural = natural_step(w);
    for (int i = 0; i < w->nrub; i++) {
        rub *c = &w->rub[i];
        memset(c->series.g, 0, (size_t)w->width * sizeof *c->series.g);
        if (c->mode == MODE_OPEN && c->c->fam->f->of_rates)
            bounded_series(w, c);
        if (c->mode != MODE_OPEN || !c->terms.gap)
            continue;
        for (int j = 0; j <= w->K; j++)
            step(w, c->terms.gap, j);
        memcpy(c->series.g, taylor_out(c->terms.gap, 0), ((size_t)w->K + 1) * sizeof *c->series.g);
    }
    for (int i = 0; i < w->nevent; i++)
        for (int j = 0; j <= w->K - 1; j++)
            step(w, w->event[i].when, j);
    return true;
}

/* The time over which coefficients are compared: the step, but not longer than the run, nor much longer than
   the last step. (At rest a series contains only rounding errors, so its step means nothing.) */
double ev_scale(const ev *w)
{
    double h = fmin(w->series.natural, w->o->duration);
    if (w->pieces.n && isfinite(w->pieces.at[w->pieces.n - 1].reach))
        h = fmin(h, w->pieces.at[w->pieces.n - 1].reach);
    return h;
}

/* A force that changes the rates by less than their rounding over the current series counts as 0. */
static double least_size(const ev *w)
{
    double speed = 0;
    for (int k = 0; k < w->n; k++)
        if (!first_order(w, k))
            speed = fmax(speed, w->sizes.vmax[k] * sqrt(ev_mass(w, k)));
    return speed > 0 ? EV_FORCE_LEAST * speed / fmin(w->series.natural, w->o->duration) : 0;
}

static void sizes(ev *w)
{
    w->sizes.size = least_size(w);
    for (int k = 0; k < w->n; k++) {
        double h = ev_scale(w), root = sqrt(ev_mass(w, k));
        w->sizes.size = fmax(w->sizes.size, fmax(ev_size(w, row(w, w->series.fs, k), w->K - 1, h) / root,
                                                 ev_size(w, row(w, w->series.xs, k), w->K - 1, h) * root));
    }
    w->sizes.size_top = fmax(w->sizes.size_top, w->sizes.size);
}

/* The place in the model of a kernel whose piece was continued beyond its switch. */
static span near_place(const ev *w)
{
    for (int i = 0; i < w->series.nall; i++)
        for (uint32_t k = 0; k < w->series.all[i]->nsite; k++)
            if (w->series.all[i]->site[k].near)
                return w->series.all[i]->k->at;
    return SPAN_NONE;
}

/* The error in the rates of continuing the piece for h: the difference of the accelerations of both pieces
   there. */
static double creep_cost(ev *w, double h, double *size)
{
    double q[w->n + 1], v[w->n + 1], a[w->n + 1], held[w->n + 1], off = 0;
    for (int k = 0; k < w->n; k++) {
        q[k] = ev_value(w, row(w, w->series.qs, k), w->K + 1, h);
        v[k] = ev_value(w, row(w, w->series.vs, k), w->K - first_order(w, k), h);
        held[k] = ev_value(w, row(w, w->series.xs, k), w->K - 1, h);
    }
    for (int i = 0; i < w->series.nall; i++)
        for (uint32_t k = 0; k < w->series.all[i]->nsite; k++)
            w->series.all[i]->site[k].near = false;
    bool ok = ev_accelerations(w, w->t + h, q, v, a);
    *size = 0;
    for (int k = 0; k < w->n; k++) {
        *size = fmax(*size, fmax(first_order(w, k) ? w->sizes.qmax[k] : w->sizes.vmax[k],
                                 fabs(a[k]) * w->o->duration));
        off = fmax(off, fabs(a[k] - held[k]) * h);
        ok &= isfinite(a[k]);
    }
    return ok ? off : INFINITY;
}

/* The next piece has no power series at its start. So the current one is continued for a fraction of the run,
   as short as its error requires. */
static bool creep_begin(ev *w)
{
    int sites = 0, at = 0;
    double part = w->sizes.creep, off = 0, size = 0;
    for (int i = 0; i < w->series.nall; i++)
        sites += (int)w->series.all[i]->nsite;
    site keep[sites + 1];
    for (int i = 0; i < w->series.nall; i++)
        for (uint32_t k = 0; k < w->series.all[i]->nsite; k++)
            keep[at++] = w->series.all[i]->site[k];
    taylor *all[w->series.nall + 1];
    int nall = w->series.nall;
    memcpy(all, w->series.all, (size_t)nall * sizeof *all);
    span place = near_place(w);
    for (int turn = 0; turn < 5; turn++, part *= 0.1) {
        off = creep_cost(w, part * w->o->duration, &size);
        at = 0;
        for (int i = 0; i < nall; i++)
            for (uint32_t k = 0; k < all[i]->nsite; k++)
                all[i]->site[k] = keep[at++];
        if (!orders(w))
            return false;
        if (off <= w->tol * size)
            break;
    }
    if (!(off <= w->tol * size))
        return ev_fail(w, place,
                       arena_printf(w->r->a,
                                    "the force has no power series where its pieces switch, at t = %s, and "
                                    "rises too fast there to be "
                                    "stepped over (an error of %.1e in a rate); use sweeping()",
                                    ev_number(w, w->t), off));
    w->series.natural = fmin(w->series.natural, part * w->o->duration);
    w->progress.creeping = true;
    for (int i = 0; i < w->series.nall; i++)
        taylor_live(w->series.all[i]);
    sizes(w);
    return true;
}

/* Have coefficients grown without bound? (A quotient by 0 is not finite from the first order on.) */
static bool overflows(const ev *w)
{
    const double HUGE_TERM = 1e100;
    double most = 0;
    for (int k = 0; k < w->n; k++)
        for (int j = 0; j <= w->K; j++)
            if (isfinite(crow(w, w->series.qs, k)[j]))
                most = fmax(most, fabs(crow(w, w->series.qs, k)[j]));
    return !series_finite(w) && most > HUGE_TERM;
}

/* If the motion is much faster than the run is long, coefficients overflow. They are then computed in a
   shorter unit of time. */
static bool orders_in_unit(ev *w)
{
    const double SHORTER = 0x1p-32;
    w->series.in.unit = w->series.unit;
    if (!orders(w))
        return false;
    for (int turn = 0; turn < 3 && overflows(w); turn++) {
        w->series.in.unit *= SHORTER;
        if (!orders(w))
            return false;
    }
    return true;
}

bool ev_series(ev *w)
{
    w->progress.creeping = w->start.start_piece = false;
    for (int turn = 0; turn < 12; turn++) {
        if (!orders_in_unit(w))
            return false;
        if (!series_finite(w) && sites_back(w)) {
            if (!orders(w))
                return false;
            if (series_finite(w))
                return creep_begin(w);
        }
        if (!series_finite(w))
            return ev_fail(
                w, SPAN_NONE,
                arena_printf(
                    w->r->a,
                    "the motion has no power series at t = %s: a function in the model is not analytic there",
                    ev_number(w, w->t)));
        for (int i = 0; i < w->series.nall; i++)
            taylor_live(w->series.all[i]);
        if (w->hist && !history_agrees(w->hist))
            continue;
        if (sites_agree(w)) {
            w->series.natural = w->series.last_natural = w->fixed > 0 ? w->fixed
                                                                      : contact_step(w, register_step(w));
            sizes(w);
            return true;
        }
    }
    return ev_fail(w, SPAN_NONE,
                   arena_printf(w->r->a,
                                "no piece of a piecewise force holds just after t = %s (it slides along "
                                "a switch); use sweeping()",
                                ev_number(w, w->t)));
}
