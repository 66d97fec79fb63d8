/* rod_line_force: forces of rods that lie along each other, per length, linear between the tops of hats. With
   one multiplier for each hat they do not alternate, as forces of single pairs at the distance of nodes do.
   */
#include "rod_touch.h"
#include "base/linalg.h"
#include <math.h>
#include <string.h>

/* ---- directions ---- */
static void base_of(const rod_work *w, touch *c)
{
    const rod_mesh *a = slave_of(w, c);
    double U[3], size;
    row r;
    row_at(a, c->y, &r);
    row_sum(a, &r, r.d, w->state.pos, U);
    size = dot3(U, c->N);
    for (int i = 0; i < 3; i++)
        U[i] -= size * c->N[i];
    size = norm3(U);
    for (int i = 0; i < 3; i++)
        c->base[0][i] = U[i] / size;
    cross3(c->N, c->base[0], c->base[1]);
}

void lines_base(rod_work *w)
{
    for (size_t i = 0; i < w->contact->list.n; i++)
        if (w->contact->list.at[i].hats)
            base_of(w, &w->contact->list.at[i]);
}

/* ---- gaps and slips ---- */
static void hats_measure(rod_work *w)
{
    rod_contacts *k = w->contact;
    for (size_t i = 0; i < k->line.n; i++) {
        line_hat *h = &k->line.at[i];
        h->gap = h->slip[0] = h->slip[1] = 0;
        for (int j = 0; j < h->n; j++) {
            const touch *c = &k->list.at[h->place[j]];
            double Ri[9], Rj[9], g[3];
            h->gap += h->share[j] * c->gap;
            if (!(k->mu[h->pair] > 0) || k->smooth)
                continue;
            quat_matrix(w->state.rot + 4 * c->node, Ri);
            other_matrix(w, c, Rj);
            touch_slip(w, c, Ri, Rj, g);
            for (int q = 0; q < 2; q++)
                h->slip[q] += h->share[j] * dot3(c->base[q], g);
        }
    }
}

/* ---- forces ---- */
/* Stiffness of friction across the direction e of slip. */
static void grip_across(line_hat *h, double k, const double *e)
{
    for (int p = 0; p < 2; p++)
        for (int q = 0; q < 2; q++)
            h->grip[2 * p + q] = k * ((p == q) - e[p] * e[q]);
}

static void grip_all(line_hat *h, double k)
{
    memset(h->grip, 0, sizeof h->grip);
    h->grip[0] = h->grip[3] = k;
}

/* Springs: l - kt slip, limited to the bound; `from`: the size at which it slips. */
static void hat_springs(line_hat *h, double kt, double from, double bound, double mu)
{
    double y[2] = { h->l[0] - kt * h->slip[0], h->l[1] - kt * h->slip[1] }, size = hypot(y[0], y[1]);
    bool slips = size > from;
    double turn = slips ? bound / size : 1, e[2] = { y[0] / size, y[1] / size };
    h->status = slips ? STATUS_SLIP : STATUS_STICK;
    grip_all(h, kt);
    if (slips)
        grip_across(h, turn * kt, e);
    for (int q = 0; q < 2; q++) {
        h->f[q] = h->held_f[q] = turn * y[q];
        h->rough[q] = slips ? mu * e[q] : 0;
    }
}

/* Multipliers as unknowns, as in friction_unknown of rod_touch.c. */
static void hat_unknown(line_hat *h, double r, double hard, double from, double bound, double mu)
{
    double x[2] = { h->l[0] - r * h->slip[0], h->l[1] - r * h->slip[1] }, size = hypot(x[0], x[1]);
    for (int q = 0; q < 2; q++) {
        h->held_f[q] = h->l[q];
        h->f[q] = h->l[q] - hard * h->slip[q];
    }
    grip_all(h, hard);
    if (size <= from || !(size > 0))
        return;
    double b = fmax(0, from) / size, kt = fmin(hard, r * b / (1 - b)), e[2] = { x[0] / size, x[1] / size },
           along = e[0] * h->slip[0] + e[1] * h->slip[1];
    h->status = STATUS_SLIP;
    grip_across(h, kt, e);
    for (int q = 0; q < 2; q++) {
        h->f[q] = bound * e[q] - kt * (h->slip[q] - along * e[q]);
        h->rough[q] = mu * e[q];
    }
}

static void hat_friction(const rod_contacts *k, line_hat *h)
{
    double mu = k->mu[h->pair], soft = k->k[h->pair], kt = soft * k->grip, trial = h->lambda - soft * h->gap;
    bool tresca = k->tresca[h->pair],
         coupled = !tresca && (!k->stiff || fabs(h->fn - h->lambda) <= 0.5 * h->lambda);
    if (k->lagged && h->bound > 0)
        hat_springs(h, kt, h->bound, h->bound, 0);
    if (k->lagged || h->status == STATUS_OPEN)
        return;
    if (k->stiff)
        hat_unknown(h, kt, k->hard[h->pair], tresca ? mu : mu * trial,
                    tresca ? mu : mu * (coupled ? h->fn : h->lambda), coupled ? mu : 0);
    else
        hat_springs(h, kt, tresca ? mu : mu * trial, tresca ? mu : mu * fmax(0, h->fn), coupled ? mu : 0);
    if (k->counting && h->status == STATUS_SLIP) /* free to slip */
        h->f[0] = h->f[1] = h->held_f[0] = h->held_f[1] = 0;
    if (k->counting && h->status == STATUS_SLIP)
        grip_all(h, 0);
}

void lines_force(rod_work *w)
{
    rod_contacts *k = w->contact;
    hats_measure(w);
    for (size_t i = 0; i < k->line.n; i++) {
        line_hat *h = &k->line.at[i];
        h->status = press_of(k, h->pair, h->lambda, h->gap, &h->fn, &h->held_fn, &h->give);
        if (h->status == STATUS_OPEN)
            h->held_fn = h->give = 0;
        memset(h->f, 0, sizeof h->f);
        memset(h->held_f, 0, sizeof h->held_f);
        memset(h->rough, 0, sizeof h->rough);
        grip_all(h, 0);
        if (k->mu[h->pair] > 0 && !k->smooth)
            hat_friction(k, h);
        if (k->counting)
            h->rough[0] = h->rough[1] = 0;
    }
}

/* ---- derivatives ---- */
/* Derivatives of the gap of a hat and of its two slips with respect to the dofs of its points; dofs come in
   threes. */
enum { HAT_DOFS = HAT_PLACES * 3 * (2 * WINDOW + 2) };
typedef struct hat_slopes {
    int n, dof[HAT_DOFS];
    double d[3][HAT_DOFS];
} hat_slopes;

static void slopes_add(hat_slopes *s, int first, double by, const double *x, int which)
{
    int at = 0;
    while (at < s->n && s->dof[at] != first)
        at += 3;
    if (at == s->n) {
        for (int k = 0; k < 3; k++) {
            s->dof[at + k] = first + k;
            s->d[0][at + k] = s->d[1][at + k] = s->d[2][at + k] = 0;
        }
        s->n += 3;
    }
    for (int k = 0; k < 3; k++)
        s->d[which][at + k] += by * x[k];
}

static void slopes_row(hat_slopes *s, const rod_mesh *m, double x, double by, const double *along, int which)
{
    row r;
    row_at(m, x, &r);
    for (int i = 0; i < r.n; i++)
        if (r.w[i] != 0)
            slopes_add(s, 6 * (m->first + r.first + i), by * r.w[i], along, which);
}

/* Rotation of a section: R (theta x arm) along a direction. */
static void slopes_turn(const rod_work *w, hat_slopes *s, int node, const double *arm, double by,
                        const double *along, int which)
{
    double R[9], local[3], x[3];
    quat_matrix(w->state.rot + 4 * node, R);
    for (int i = 0; i < 3; i++)
        local[i] = R[i] * along[0] + R[3 + i] * along[1] + R[6 + i] * along[2];
    cross3(arm, local, x);
    slopes_add(s, 6 * node + 3, by, x, which);
}

static void slopes_of(const rod_work *w, const line_hat *h, hat_slopes *s)
{
    const rod_contacts *k = w->contact;
    s->n = 0;
    for (int j = 0; j < h->n; j++) {
        const touch *c = &k->list.at[h->place[j]];
        const rod_mesh *a = slave_of(w, c), *b = &w->mesh[c->rod];
        slopes_row(s, a, c->y, h->share[j], c->N, 0);
        slopes_row(s, b, c->x, -h->share[j], c->N, 0);
        for (int q = 0; q < 2 && k->mu[h->pair] > 0 && !k->smooth; q++) {
            slopes_row(s, a, c->y0, h->share[j], c->base[q], 1 + q);
            slopes_row(s, b, c->x0, -h->share[j], c->base[q], 1 + q);
            slopes_turn(w, s, c->node, c->a, h->share[j], c->base[q], 1 + q);
            slopes_turn(w, s, c->other, c->rho, -h->share[j], c->base[q], 1 + q);
        }
    }
}

/* Adds the derivatives of forces by the gap and the slips of the hat. */
static void hat_put(rod_work *w, const line_hat *h, rod_sparse *K)
{
    hat_slopes s;
    slopes_of(w, h, &s);
    for (int i = 0; i < s.n; i++) {
        double x = s.d[1][i], y = s.d[2][i], gap = h->give * s.d[0][i],
               along = x * h->grip[0] + y * h->grip[2], across = x * h->grip[1] + y * h->grip[3];
        gap += h->give * (x * h->rough[0] + y * h->rough[1]);
        for (int j = 0; j < s.n; j++) {
            double by = h->width * (gap * s.d[0][j] + along * s.d[1][j] + across * s.d[2][j]);
            if (by != 0)
                sparse_add(w->tmp, K, s.dof[i], s.dof[j], by);
        }
    }
}

void lines_put(rod_work *w, rod_sparse *K)
{
    for (size_t i = 0; i < w->contact->line.n; i++)
        if (w->contact->line.at[i].status != STATUS_OPEN)
            hat_put(w, &w->contact->line.at[i], K);
}

/* Multipliers after a part of an increment. */
static void hat_predict(rod_work *w, line_hat *h, const double *dx, double part)
{
    hat_slopes s;
    double d[3] = { 0 }, fn = h->fn, f[2] = { h->f[0], h->f[1] };
    if (h->status != STATUS_OPEN) {
        slopes_of(w, h, &s);
        for (int i = 0; i < s.n; i++)
            for (int q = 0; q < 3; q++)
                d[q] += s.d[q][i] * dx[s.dof[i]];
    }
    fn -= h->give * d[0];
    for (int q = 0; q < 2; q++) {
        f[q] -= h->grip[2 * q] * d[1] + h->grip[2 * q + 1] * d[2] + h->rough[q] * h->give * d[0];
        h->next[q] = h->held_f[q] + part * (f[q] - h->held_f[q]);
    }
    h->lambda += part * (fn - h->lambda);
}

void lines_predict(rod_work *w, const double *dx, double part)
{
    for (size_t i = 0; i < w->contact->line.n; i++)
        hat_predict(w, &w->contact->line.at[i], dx, part);
}

/* ---- potential ---- */
double lines_energy(const rod_work *w)
{
    const rod_contacts *k = w->contact;
    double sum = 0;
    for (size_t i = 0; i < k->line.n; i++) {
        const line_hat *h = &k->line.at[i];
        double kt = k->k[h->pair] * k->grip,
               size = hypot(h->l[0] - kt * h->slip[0], h->l[1] - kt * h->slip[1]), b = h->bound;
        sum += h->width * h->fn * h->fn / (2 * k->k[h->pair]);
        if (b > 0 && k->mu[h->pair] > 0 && !k->smooth)
            sum += h->width * (size > b ? b * (size - b / 2) : size * size / 2) / kt;
    }
    return sum;
}

/* ---- multipliers ---- */
void lines_keep(rod_work *w)
{
    for (size_t i = 0; i < w->contact->line.n; i++) {
        line_hat *h = &w->contact->line.at[i];
        h->lambda = fmax(0, h->fn);
        memcpy(h->l, h->f, sizeof h->l);
    }
    lines_base(w);
}

void lines_hold(rod_work *w)
{
    const rod_contacts *k = w->contact;
    for (size_t i = 0; i < k->line.n; i++) {
        line_hat *h = &k->line.at[i];
        double mu = k->smooth || !(h->lambda > 0) ? 0 : k->mu[h->pair];
        h->bound = k->tresca[h->pair] ? mu : mu * h->lambda;
    }
    lines_base(w);
}

double lines_round(rod_work *w, double *most)
{
    double change = 0;
    lines_force(w);
    for (size_t i = 0; i < w->contact->line.n; i++) {
        line_hat *h = &w->contact->line.at[i];
        change = fmax(change, fabs(fmax(0, h->fn) - h->lambda));
        change = fmax(change, hypot(h->f[0] - h->l[0], h->f[1] - h->l[1]));
        *most = fmax(*most, h->fn);
    }
    lines_keep(w);
    lines_hold(w);
    return change;
}
