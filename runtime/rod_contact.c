/* rod_contact: rods that touch themselves and each other.  Contact is asked at the nodes of one rod against the closest points of the other's centreline, a cubic
   spline near the nodes with continuous curvature that is linear in their positions.  The force per length is f_N = max(0, lambda - k gap) along the normal;
   friction is the projection of R l - k slip on the ball of radius mu f_N, slip being the way that the two material points of the surfaces that lay on each
   other at the beginning of the step came apart, seen in space: a rigid motion of all is no slip. */
#include "rod_work.h"
#include <math.h>
#include <string.h>

enum { WINDOW = 6 };
typedef struct row { int first, n; double w[WINDOW], d[WINDOW], dd[WINDOW]; } row;     /* value, first and second derivative at a place, as sums over nodes */

typedef struct touch {
    int pair, node, rod;                /* node of rod a against a place on rod b */
    double x, ds;                       /* place: number of the node, with a fraction; length that the node stands for */
    double gap, far, N[3], last[3];     /* last: the normal one iteration ago */
    double fn, ft[3];
    contact_status status;
    double lambda, l[3];                /* multipliers; the tangential one in the frame of `other` */
    double x0, a[3], rho[3]; int other; /* the beginning of the step: place, the two material points in the frames of node and other */
    bool clipped;
} touch;

typedef vec(touch) touches;
typedef struct rod_contacts {
    touches list, saved, kept;
    double *k, *mu, *clear;             /* of each pair: stiffness, friction, distance that gap 0 means */
    double k_factor, before;
    bool *tresca, smooth;
    double *body;                       /* of each pair: point, direction, radius */
    double dissipated;
    int *head, *next; int cells;
} rod_contacts;

/* ---- the spline ---- */
static double *row_of(row *r, int which) { return which == 0 ? r->w : which == 1 ? r->d : r->dd; }

/* node k of a rod of n nodes, with weight c; nodes beyond the ends continue the first (last) three as a parabola */
static void row_put(row *r, int which, int k, int n, double c)
{
    static const double beyond[3][3] = { { 3, -3, 1 }, { 6, -8, 3 }, { 10, -15, 6 } };
    double *to = row_of(r, which);
    if (k < 0) for (int i = 0; i < 3; i++) to[i - r->first] += c * beyond[-k - 1][i];
    else if (k >= n) for (int i = 0; i < 3; i++) to[n - 1 - i - r->first] += c * beyond[k - n][i];
    else to[k - r->first] += c;
}

static void row_at(const rod_mesh *m, double x, row *r)
{
    int n = m->nn, k = (int)floor(x);
    if (k < 0) k = 0;
    if (k > n - 2) k = n - 2;
    double f = x - k, g = 1 - f;
    double b[3][4] = {
        { g * g * g / 6, (4 - 6 * f * f + 3 * f * f * f) / 6, (4 - 6 * g * g + 3 * g * g * g) / 6, f * f * f / 6 },
        { -g * g / 2, (-4 * f + 3 * f * f) / 2, (4 * g - 3 * g * g) / 2, f * f / 2 },
        { g, -2 + 3 * f, -2 + 3 * g, f } };
    memset(r, 0, sizeof *r);
    r->n = n < WINDOW ? n : WINDOW;
    r->first = k - 2 < 0 ? 0 : k - 2 > n - r->n ? n - r->n : k - 2;
    for (int which = 0; which < 3; which++)
        for (int i = 0; i < 4; i++) {
            int j = k - 1 + i;
            row_put(r, which, j - 1, n, -b[which][i] / 6);
            row_put(r, which, j, n, 8 * b[which][i] / 6);
            row_put(r, which, j + 1, n, -b[which][i] / 6);
        }
}

static void row_sum(const rod_mesh *m, const row *r, const double *w, const double *pos, double *x)
{
    const double *p = pos + 3 * (m->first + r->first);
    x[0] = x[1] = x[2] = 0;
    for (int i = 0; i < r->n; i++) for (int k = 0; k < 3; k++) x[k] += w[i] * p[3 * i + k];
}

/* the closest place near x by Newton's method; false when there is no minimum nearby */
static bool closest(const rod_mesh *m, const double *pos, const double *p, double *x, bool *clipped)
{
    double at = *x, end = m->nn - 1;
    *clipped = false;
    for (int it = 0; it < 30; it++) {
        row r;
        double c[3], t[3], k[3], d[3];
        row_at(m, at, &r);
        row_sum(m, &r, r.w, pos, c);
        row_sum(m, &r, r.d, pos, t);
        row_sum(m, &r, r.dd, pos, k);
        for (int i = 0; i < 3; i++) d[i] = p[i] - c[i];
        double g = dot3(d, t), tt = dot3(t, t), h = tt - dot3(d, k), step = g / (h > 0.05 * tt ? h : tt);
        if (step > 0.8) step = 0.8;
        if (step < -0.8) step = -0.8;
        double to = fmin(fmax(at + step, 0), end);
        *clipped = (to == 0 && step <= 0) || (to == end && step >= 0);
        bool done = fabs(to - at) < 1e-14 * (1 + end) || (it > 6 && fabs(to - at) < 1e-12 * (1 + end));
        at = to;
        if (done) {
            *x = at;
            return *clipped || h > 0.02 * tt;
        }
    }
    *x = at;
    return true;
}

/* ---- pairs ---- */
static const rod_pair *pair_of(const rod_work *w, const touch *c) { return &w->rp->pair[c->pair]; }
static const rod_mesh *slave_of(const rod_work *w, const touch *c) { return &w->mesh[pair_of(w, c)->a]; }

static void slave_row(const rod_work *w, const touch *c, row *r) { row_at(slave_of(w, c), c->node - slave_of(w, c)->first, r); }

static void slave_point(const rod_work *w, const touch *c, const double *pos, double *x)
{
    row r;
    slave_row(w, c, &r);
    row_sum(slave_of(w, c), &r, r.w, pos, x);
}

/* a body: the way out of it from a point, and how far */
static double body_normal(const rod_work *w, const touch *c, const double *p, double *N)
{
    const double *b = w->contact->body + 7 * c->pair;
    rod_touch what = pair_of(w, c)->what;
    double along = 0;
    if (what == TOUCH_PLANE) {
        memcpy(N, b + 3, 3 * sizeof *N);
        return dot3(b + 3, p) - b[6];
    }
    for (int i = 0; i < 3; i++) N[i] = p[i] - b[i];
    if (what == TOUCH_CYLINDER) along = dot3(N, b + 3);
    for (int i = 0; i < 3; i++) N[i] -= along * b[3 + i];
    double far = norm3(N);
    for (int i = 0; i < 3; i++) N[i] /= far;
    return far;
}

static bool project(const rod_work *w, touch *c)
{
    row r;
    double p[3], q[3];
    slave_point(w, c, w->pos, p);
    if (c->rod < 0) {
        c->far = body_normal(w, c, p, c->N);
        c->gap = c->far - w->contact->clear[c->pair];
        return true;
    }
    const rod_mesh *m = &w->mesh[c->rod];
    bool found = closest(m, w->pos, p, &c->x, &c->clipped);
    row_at(m, c->x, &r);
    row_sum(m, &r, r.w, w->pos, q);
    for (int i = 0; i < 3; i++) c->N[i] = p[i] - q[i];
    c->far = norm3(c->N);
    for (int i = 0; i < 3; i++) c->N[i] /= c->far;
    c->gap = c->far - w->contact->clear[c->pair];
    return found;
}

/* the material points that lie on each other at the beginning of the step */
static void touch_start(const rod_work *w, touch *c, const double *pos, const double *rot)
{
    row r;
    double p[3], q[3], N[3], R[9], radius = slave_of(w, c)->radius, v[3];
    bool clipped;
    if (c->rod < 0) {                   /* the body does not move: rho is a place in space */
        slave_point(w, c, pos, p);
        body_normal(w, c, p, N);
        quat_matrix(rot + 4 * c->node, R);
        for (int i = 0; i < 3; i++) c->rho[i] = p[i] - radius * N[i];
        for (int i = 0; i < 3; i++) c->a[i] = -radius * (R[i] * N[0] + R[3 + i] * N[1] + R[6 + i] * N[2]);
        return;
    }
    const rod_mesh *m = &w->mesh[c->rod];
    c->x0 = c->x;
    slave_point(w, c, pos, p);
    closest(m, pos, p, &c->x0, &clipped);
    row_at(m, c->x0, &r);
    row_sum(m, &r, r.w, pos, q);
    for (int i = 0; i < 3; i++) N[i] = p[i] - q[i];
    double far = norm3(N);
    for (int i = 0; i < 3; i++) N[i] /= far;
    c->other = m->first + (int)floor(c->x0 + 0.5);
    quat_matrix(rot + 4 * c->node, R);
    for (int i = 0; i < 3; i++) c->a[i] = -radius * (R[i] * N[0] + R[3 + i] * N[1] + R[6 + i] * N[2]);
    quat_matrix(rot + 4 * c->other, R);
    for (int i = 0; i < 3; i++) v[i] = p[i] - radius * N[i] - q[i];
    for (int i = 0; i < 3; i++) c->rho[i] = R[i] * v[0] + R[3 + i] * v[1] + R[6 + i] * v[2];
}

static double piece_length(const rod_mesh *m, int k)
{
    double a = k > 0 ? m->s[k - 1] : m->s[0], b = k + 1 < m->nn ? m->s[k + 1] : m->s[k];
    return (b - a) / 2;
}

static touch *touch_known(rod_contacts *k, int pair, int node, double x)
{
    for (size_t i = 0; i < k->list.n; i++)
        if (k->list.at[i].pair == pair && k->list.at[i].node == node && fabs(k->list.at[i].x - x) < 2.5) return &k->list.at[i];
    return NULL;
}

static void touch_add(rod_work *w, int pair, int node, int j)
{
    rod_contacts *k = w->contact;
    const rod_pair *p = &w->rp->pair[pair];
    const rod_mesh *a = &w->mesh[p->a], *b = &w->mesh[p->b];
    touch c = { .pair = pair, .node = a->first + node, .rod = p->b, .x = j, .ds = piece_length(a, node) };
    if (touch_known(k, pair, c.node, j) || !project(w, &c) || touch_known(k, pair, c.node, c.x)) return;
    if (p->a == p->b && fabs(a->s[node] - b->s[(int)floor(c.x)]) < M_PI * a->radius) return;
    touch_start(w, &c, w->pos0, w->rot0);
    *vec_push(w->a, &k->list) = c;
}

/* cells as large as the reach, so that only neighbours are looked at */
static uint32_t cell_of(const rod_contacts *k, const double *x, double size, int dx, int dy, int dz)
{
    uint64_t h = hash64(0, (uint64_t)((int64_t)floor(x[0] / size) + dx));
    h = hash64(h, (uint64_t)((int64_t)floor(x[1] / size) + dy));
    h = hash64(h, (uint64_t)((int64_t)floor(x[2] / size) + dz));
    return (uint32_t)(h % (uint64_t)k->cells);
}

static double far2(const double *a, const double *b)
{
    double d[3] = { a[0] - b[0], a[1] - b[1], a[2] - b[2] };
    return dot3(d, d);
}

/* all nodes near a body */
static void find_body(rod_work *w, int pair)
{
    rod_contacts *k = w->contact;
    const rod_pair *p = &w->rp->pair[pair];
    const rod_mesh *a = &w->mesh[p->a];
    for (int i = 0; i < a->nn; i++) {
        touch c = { .pair = pair, .node = a->first + i, .rod = -1, .ds = piece_length(a, i) };
        project(w, &c);
        if (c.gap > 2 * a->radius || touch_known(k, pair, c.node, 0)) continue;
        touch_start(w, &c, w->pos0, w->rot0);
        *vec_push(w->a, &k->list) = c;
    }
}

static void find_pair(rod_work *w, int pair)
{
    rod_contacts *k = w->contact;
    const rod_pair *p = &w->rp->pair[pair];
    if (p->what != TOUCH_RODS) {
        find_body(w, pair);
        return;
    }
    const rod_mesh *a = &w->mesh[p->a], *b = &w->mesh[p->b];
    const double *xa = w->pos + 3 * a->first, *xb = w->pos + 3 * b->first;
    double spacing = 0, reach;
    for (int i = 1; i < b->nn; i++) spacing = fmax(spacing, b->s[i] - b->s[i - 1]);
    reach = 1.5 * k->clear[pair] + spacing;
    for (int i = 0; i < k->cells; i++) k->head[i] = -1;
    for (int j = 0; j < b->nn; j++) {
        uint32_t c = cell_of(k, xb + 3 * j, reach, 0, 0, 0);
        k->next[j] = k->head[c];
        k->head[c] = j;
    }
    for (int i = 0; i < a->nn; i++) {
        const double *x = xa + 3 * i;
        for (int n = 0; n < 27; n++)
            for (int j = k->head[cell_of(k, x, reach, n % 3 - 1, n / 3 % 3 - 1, n / 9 - 1)]; j >= 0; j = k->next[j]) {
                double d = far2(x, xb + 3 * j);
                if (d > reach * reach || (p->a == p->b && a->s[i] - b->s[j] < M_PI * a->radius)) continue;
                if ((j > 0 && far2(x, xb + 3 * j - 3) < d) || (j + 1 < b->nn && far2(x, xb + 3 * j + 3) < d)) continue;
                touch_add(w, pair, i, j);
            }
    }
}

/* those that are far and carry nothing are let go; two that came together become one */
static void tidy(rod_work *w)
{
    rod_contacts *k = w->contact;
    size_t n = 0;
    for (size_t i = 0; i < k->list.n; i++) {
        touch *c = &k->list.at[i];
        const rod_pair *p = pair_of(w, c);
        bool found = project(w, c), drop = false;
        if (c->rod < 0) {
            if (c->lambda > 0 || c->gap <= 2 * slave_of(w, c)->radius) k->list.at[n++] = *c;
            continue;
        }
        if (c->lambda <= 0 && (!found || c->gap > k->clear[c->pair])) drop = true;
        if (!found && c->far > 2 * k->clear[c->pair]) drop = true;
        if (p->a == p->b && slave_of(w, c)->s[c->node - slave_of(w, c)->first] - w->mesh[c->rod].s[(int)floor(c->x)] < 0.8 * M_PI * slave_of(w, c)->radius) drop = true;
        for (size_t j = 0; j < n && !drop; j++) {
            const touch *o = &k->list.at[j];
            drop = o->pair == c->pair && o->node == c->node && fabs(o->x - c->x) < 0.5;
        }
        if (!drop) k->list.at[n++] = *c;
    }
    k->list.n = n;
}

void contacts_find(rod_work *w)
{
    tidy(w);
    for (int i = 0; i < w->rp->npair; i++) find_pair(w, i);
}

static double gap_value(rod_work *w, const kernel *g, double self)
{
    arena_pos mark = arena_mark(w->tmp);
    double *reg = arena_array(w->tmp, double, g->tape.nreg), *all = arena_array(w->tmp, double, w->rp->nrod);
    for (int i = 0; i < w->rp->nrod; i++) all[i] = self;
    inputs in = { .from = { [IN_PARAM] = w->r->param, [IN_ROD] = all } };
    tape_start(&g->tape, reg);
    kernel_run(g, &in, NULL, reg);
    double y = reg[g->tape.out[0]];
    arena_release(w->tmp, mark);
    return y;
}

void contacts_new(rod_work *w)
{
    int n = w->rp->npair, most = 0;
    rod_contacts *k = arena_make(w->a, rod_contacts);
    k->k = arena_array(w->a, double, n);
    k->mu = arena_array(w->a, double, n);
    k->clear = arena_array(w->a, double, n);
    k->tresca = arena_array(w->a, bool, n);
    k->body = arena_array(w->a, double, 7 * n);
    k->k_factor = 1;
    for (int i = 0; i < w->rp->nrod; i++) most = w->mesh[i].nn > most ? w->mesh[i].nn : most;
    k->cells = 4 * most;
    k->head = arena_array(w->a, int, k->cells);
    k->next = arena_array(w->a, int, most);
    w->contact = k;
}

/* directions are made of length 1 */
static void body_read(rod_work *w, int pair)
{
    double *b = w->contact->body + 7 * pair;
    rod_eval(w, &w->rp->pair[pair].body, 0, 0, 0, b);
    double n = norm3(b + 3);
    for (int i = 3; n > 0 && i < 6; i++) b[i] /= n;
    if (n > 0 && w->rp->pair[pair].what == TOUCH_PLANE) b[6] /= n;
}

/* stiffness, friction and distances of the pairs; whether the shape given overlaps */
bool contacts_start(rod_work *w)
{
    rod_contacts *k = w->contact;
    for (int i = 0; i < w->rp->npair; i++) {
        const rod_pair *p = &w->rp->pair[i];
        const contact_family *f = &w->p->contact[p->contact];
        const rod_mesh *a = &w->mesh[p->a], *b = p->b >= 0 ? &w->mesh[p->b] : a;
        if (p->b < 0) body_read(w, i);
        double EI = (a->A[0] + a->A[4]) / 2, zero = gap_value(w, &f->gap, 0), one = gap_value(w, &f->gap, 1);
        if (!(a->radius > 0 && b->radius > 0)) return rod_fail(w, f->at, "rod '%s' has no radius, so nothing touches; give radius = …", a->radius > 0 ? b->spec->name : a->spec->name);
        if (fabs(one - zero - 1) > 1e-12) return rod_fail(w, f->at, "the gap of '%s' is that of the rod less a distance", f->name);
        k->clear[i] = a->radius + (p->what == TOUCH_RODS ? b->radius : p->what == TOUCH_PLANE ? 0 : k->body[7 * i + 6]) - zero;
        k->k[i] = isnan(w->ro->stiffness) ? 0.2 * EI / pow(a->radius, 4) : w->ro->stiffness;
        k->tresca[i] = f->friction == FRICTION_TRESCA;
        if (f->friction != FRICTION_NONE) {
            arena_pos mark = arena_mark(w->tmp);
            double *reg = arena_array(w->tmp, double, f->mu.tape.nreg);
            inputs in = { .from = { [IN_PARAM] = w->r->param } };
            tape_start(&f->mu.tape, reg);
            kernel_run(&f->mu, &in, NULL, reg);
            k->mu[i] = reg[f->mu.tape.out[0]];
            arena_release(w->tmp, mark);
            if (!(k->mu[i] >= 0)) return rod_fail(w, f->at, "the friction of '%s' is %g: it must not be negative", f->name, k->mu[i]);
        }
    }
    memcpy(w->pos0, w->pos, (size_t)(3 * w->N) * sizeof *w->pos);
    memcpy(w->rot0, w->rot, (size_t)(4 * w->N) * sizeof *w->rot);
    contacts_find(w);
    for (size_t i = 0; i < k->list.n; i++) {
        const touch *c = &k->list.at[i];
        const rod_mesh *a = slave_of(w, c), *b = c->rod < 0 ? a : &w->mesh[c->rod];
        if (c->gap > -1e-3 * a->radius) continue;
        if (c->rod < 0)
            return rod_fail(w, w->p->contact[pair_of(w, c)->contact].at, "the shape at the start lies in the body: s = %.4g of rod '%s' by %.3g", a->s[c->node - a->first], a->spec->name, -c->gap);
        return rod_fail(w, w->p->contact[pair_of(w, c)->contact].at, "the shape at the start crosses: s = %.4g of rod '%s' and s = %.4g of rod '%s' are %.3g apart, less than %.3g",
                        a->s[c->node - a->first], a->spec->name, b->s[(int)floor(c->x + 0.5)], b->spec->name, c->far, k->clear[c->pair]);
    }
    return true;
}

/* the frame that multipliers are kept in: that of the other section; a body stands still */
static void other_matrix(const rod_work *w, const touch *c, double *R)
{
    static const double one[9] = { 1, 0, 0, 0, 1, 0, 0, 0, 1 };
    if (c->rod < 0) memcpy(R, one, sizeof one);
    else quat_matrix(w->rot + 4 * c->other, R);
}

/* the place on the other side that the slip is measured from, without the turn of its section */
static void other_place(const rod_work *w, const touch *c, double *q)
{
    row r;
    q[0] = q[1] = q[2] = 0;
    if (c->rod < 0) return;
    row_at(&w->mesh[c->rod], c->x0, &r);
    row_sum(&w->mesh[c->rod], &r, r.w, w->pos, q);
}

void contacts_step(rod_work *w)
{
    rod_contacts *k = w->contact;
    memcpy(w->pos0, w->pos, (size_t)(3 * w->N) * sizeof *w->pos);
    memcpy(w->rot0, w->rot, (size_t)(4 * w->N) * sizeof *w->rot);
    contacts_find(w);
    for (size_t i = 0; i < k->list.n; i++) {
        touch *c = &k->list.at[i];
        double R[9];
        touch_start(w, c, w->pos, w->rot);
        other_matrix(w, c, R);          /* friction goes on from where it was */
        for (int j = 0; j < 3; j++) c->l[j] = R[j] * c->ft[0] + R[3 + j] * c->ft[1] + R[6 + j] * c->ft[2];
        c->lambda = c->fn;
    }
    k->k_factor = 1;
    k->before = INFINITY;
}

/* ---- forces ---- */
static void cross_matrix(const double *a, double M[9])
{
    double c[9] = { 0, -a[2], a[1], a[2], 0, -a[0], -a[1], a[0], 0 };
    memcpy(M, c, sizeof c);
}

static void mul3(const double *A, const double *B, double *C)
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) C[3 * i + j] = A[3 * i] * B[j] + A[3 * i + 1] * B[3 + j] + A[3 * i + 2] * B[6 + j];
}

/* a pair's own coordinates: variations of the point, of the closest point and the tangent there, turn of the node, of the place at the start, turn there */
enum { V_S, V_B, V_T, V_I, V_0, V_J, V_ALL };
enum { VN = 3 * V_ALL };
typedef struct local { double res[VN], K[VN][VN]; } local;
typedef double row18[VN];

typedef struct force {
    double T[3], Tp[3], y[3], tau[3], size, bound, k, Ri[9], Rj[9];
} force;

static void force_of(rod_work *w, touch *c, force *f)
{
    rod_contacts *k = w->contact;
    double kn = k->k[c->pair] * k->k_factor, mu = k->mu[c->pair];
    row r;
    f->k = kn;
    c->fn = fmax(0, c->lambda - kn * c->gap);
    c->status = c->fn > 0 ? STATUS_STICK : STATUS_OPEN;
    memset(c->ft, 0, sizeof c->ft);
    memset(f->T, 0, sizeof f->T);
    memset(f->Tp, 0, sizeof f->Tp);
    if (c->rod >= 0) {
        row_at(&w->mesh[c->rod], c->x, &r);
        row_sum(&w->mesh[c->rod], &r, r.d, w->pos, f->T);
        row_sum(&w->mesh[c->rod], &r, r.dd, w->pos, f->Tp);
    }
    f->bound = 0;
    if (!(mu > 0) || c->fn <= 0 || k->smooth) return;
    double p[3], q[3], N[3];
    memcpy(N, c->N, sizeof N);
    slave_point(w, c, w->pos, p);
    other_place(w, c, q);
    quat_matrix(w->rot + 4 * c->node, f->Ri);
    other_matrix(w, c, f->Rj);
    for (int i = 0; i < 3; i++) {
        double Ra = dot3(f->Ri + 3 * i, c->a), Rl = dot3(f->Rj + 3 * i, c->l), Rr = dot3(f->Rj + 3 * i, c->rho);
        f->y[i] = Rl - kn * (p[i] + Ra - q[i] - Rr);
    }
    double ny = dot3(N, f->y);
    for (int i = 0; i < 3; i++) f->tau[i] = f->y[i] - ny * N[i];
    f->size = norm3(f->tau);
    f->bound = k->tresca[c->pair] ? mu : mu * c->fn;
    double cut = f->size > f->bound ? f->bound / f->size : 1;
    if (cut < 1) c->status = STATUS_SLIP;
    for (int i = 0; i < 3; i++) c->ft[i] = cut * f->tau[i];
}

static void put_rows(local *o, int at, double k, row18 *d)
{
    for (int i = 0; i < 3; i++) for (int j = 0; j < VN; j++) o->K[3 * at + i][j] += k * d[i][j];
}

/* derivatives of the normal part; dN and dfn are given back for friction */
static void normal_put(const touch *c, const force *f, double ds, bool plane, const double *axis, local *o, row18 *dN, double *dfn, bool tangent)
{
    for (int i = 0; i < 3; i++) {
        o->res[3 * V_S + i] -= ds * c->fn * c->N[i];
        o->res[3 * V_B + i] += ds * c->fn * c->N[i];
    }
    if (!tangent) return;
    double dx[VN] = { 0 }, D[3], den;
    for (int i = 0; i < 3; i++) D[i] = c->far * c->N[i];
    den = dot3(f->T, f->T) - dot3(f->Tp, D);
    for (int i = 0; i < 3 && !c->clipped && c->rod >= 0; i++) {
        dx[3 * V_S + i] = f->T[i] / den;
        dx[3 * V_B + i] = -f->T[i] / den;
        dx[3 * V_T + i] = D[i] / den;
    }
    for (int j = 0; j < VN; j++) dfn[j] = 0;
    for (int i = 0; i < 3; i++) { dfn[3 * V_S + i] = -f->k * c->N[i]; dfn[3 * V_B + i] = f->k * c->N[i]; }
    double E[3][VN], along[VN] = { 0 };
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < VN; j++) {
            E[i][j] = (j == 3 * V_S + i) - (j == 3 * V_B + i) - f->T[i] * dx[j];
            along[j] += c->N[i] * E[i][j];
        }
    for (int i = 0; i < 3; i++) for (int j = 0; j < VN; j++) dN[i][j] = plane ? 0 : (E[i][j] - c->N[i] * along[j]) / c->far;
    for (int i = 0; axis && i < 3; i++) for (int j = 0; j < 3; j++) dN[i][3 * V_S + j] -= axis[i] * axis[j] / c->far;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < VN; j++) {
            double y = ds * (dfn[j] * c->N[i] + c->fn * dN[i][j]);
            o->K[3 * V_S + i][j] -= y;
            o->K[3 * V_B + i][j] += y;
            o->K[3 * V_T + i][j] += ds * c->fn * c->N[i] * dx[j];
        }
}

/* a force F at the material point R b: the moment on the node is b x R^T F */
static void moment_put(const double *b, const double *R, const double *F, int at, double sign, row18 *dF, local *o, bool tangent)
{
    double RtF[3], m[3], C[9], M[9], Rt[9], cF[9];
    for (int i = 0; i < 3; i++) RtF[i] = R[i] * F[0] + R[3 + i] * F[1] + R[6 + i] * F[2];
    cross3(b, RtF, m);
    for (int i = 0; i < 3; i++) o->res[3 * at + i] += sign * m[i];
    if (!tangent) return;
    cross_matrix(b, C);
    for (int i = 0; i < 3; i++) for (int j = 0; j < 3; j++) Rt[3 * i + j] = R[3 * j + i];
    mul3(C, Rt, M);
    cross_matrix(RtF, cF);
    mul3(C, cF, Rt);
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < VN; j++) o->K[3 * at + i][j] += sign * (M[3 * i] * dF[0][j] + M[3 * i + 1] * dF[1][j] + M[3 * i + 2] * dF[2][j]);
        for (int j = 0; j < 3; j++) o->K[3 * at + i][3 * at + j] += sign * Rt[3 * i + j];
    }
}

static void friction_put(const rod_contacts *k, const touch *c, const force *f, double ds, local *o, row18 *dN, const double *dfn, bool tangent)
{
    row18 dF[3] = { { 0 } }, dy[3] = { { 0 } };
    if (tangent) {
        double C[9], M[9], b[3], ny = dot3(c->N, f->y), dny[VN] = { 0 };
        for (int i = 0; i < 3; i++) { dy[i][3 * V_S + i] = -f->k; dy[i][3 * V_0 + i] = f->k; b[i] = c->l[i] + f->k * c->rho[i]; }
        cross_matrix(c->a, C);
        mul3(f->Ri, C, M);
        for (int i = 0; i < 3; i++) for (int j = 0; j < 3; j++) dy[i][3 * V_I + j] = f->k * M[3 * i + j];
        cross_matrix(b, C);
        mul3(f->Rj, C, M);
        for (int i = 0; i < 3; i++) for (int j = 0; j < 3; j++) dy[i][3 * V_J + j] = -M[3 * i + j];
        for (int j = 0; j < VN; j++) for (int i = 0; i < 3; i++) dny[j] += dN[i][j] * f->y[i] + c->N[i] * dy[i][j];
        for (int i = 0; i < 3; i++) for (int j = 0; j < VN; j++) dF[i][j] = dy[i][j] - dN[i][j] * ny - c->N[i] * dny[j];
        if (c->status == STATUS_SLIP) {
            double e[3] = { f->tau[0] / f->size, f->tau[1] / f->size, f->tau[2] / f->size }, mu = k->tresca[c->pair] ? 0 : k->mu[c->pair];
            for (int j = 0; j < VN; j++) {
                double along = e[0] * dF[0][j] + e[1] * dF[1][j] + e[2] * dF[2][j];
                for (int i = 0; i < 3; i++) dF[i][j] = f->bound / f->size * (dF[i][j] - along * e[i]) + mu * dfn[j] * e[i];
            }
        }
        put_rows(o, V_S, -ds, dF);
        put_rows(o, V_0, ds, dF);
    }
    for (int i = 0; i < 3; i++) { o->res[3 * V_S + i] -= ds * c->ft[i]; o->res[3 * V_0 + i] += ds * c->ft[i]; }
    moment_put(c->a, f->Ri, c->ft, V_I, -ds, dF, o, tangent);
    moment_put(c->rho, f->Rj, c->ft, V_J, ds, dF, o, tangent);
}

/* the pair's coordinates as sums over dofs */
typedef struct { int at; const double *w; int first, n; } spread;      /* n == 0: the turn of node `first` */

static int spread_dof(const spread *s, int i, int k, double *weight)
{
    *weight = s->n ? s->w[i] : 1;
    return 6 * (s->first + i) + (s->n ? 0 : 3) + k;
}

static void scatter(rod_work *w, const touch *c, const local *o, double *res, rod_sparse *K)
{
    const rod_mesh *a = slave_of(w, c), *b = c->rod < 0 ? a : &w->mesh[c->rod];
    row rs, rb, r0;
    slave_row(w, c, &rs);
    row_at(b, c->x, &rb);
    row_at(b, c->x0, &r0);
    int last = c->rod < 0 ? V_I : V_J;                  /* a body does not move: its coordinates are left out */
    spread all[] = { { V_S, rs.w, a->first + rs.first, rs.n }, { V_B, rb.w, b->first + rb.first, rb.n }, { V_T, rb.d, b->first + rb.first, rb.n },
                     { V_I, NULL, c->node, 0 }, { V_0, r0.w, b->first + r0.first, r0.n }, { V_J, NULL, c->other, 0 } };
    for (int p = 0; p <= last; p++)
        for (int i = 0; i < (all[p].n ? all[p].n : 1) && !(c->rod < 0 && (p == V_B || p == V_T)); i++)
            for (int k = 0; k < 3; k++) {
                double wi, wj;
                int row_dof = spread_dof(&all[p], i, k, &wi);
                res[row_dof] += wi * o->res[3 * all[p].at + k];
                for (int q = 0; K && q <= last; q++)
                    for (int j = 0; j < (all[q].n ? all[q].n : 1) && !(c->rod < 0 && (q == V_B || q == V_T)); j++)
                        for (int l = 0; l < 3; l++) {
                            double y = o->K[3 * all[p].at + k][3 * all[q].at + l];
                            if (y == 0) continue;
                            int col = spread_dof(&all[q], j, l, &wj);
                            if (wi * wj != 0) sparse_add(w->tmp, K, row_dof, col, wi * wj * y);
                        }
            }
}

void contacts_put(rod_work *w, double *res, rod_sparse *K)
{
    rod_contacts *k = w->contact;
    for (size_t i = 0; i < k->list.n; i++) {
        touch *c = &k->list.at[i];
        force f;
        local o;
        row18 dN[3];
        double dfn[VN];
        force_of(w, c, &f);
        if (c->fn <= 0) continue;
        memset(&o, 0, sizeof o);
        rod_touch what = pair_of(w, c)->what;
        normal_put(c, &f, c->ds, what == TOUCH_PLANE, what == TOUCH_CYLINDER ? k->body + 7 * c->pair + 3 : NULL, &o, dN, dfn, K != NULL);
        if (f.bound > 0) friction_put(k, c, &f, c->ds, &o, dN, dfn, K != NULL);
        scatter(w, c, &o, res, K);
    }
}

/* false: a rod went through another, the normal of a pair turned round */
bool contacts_project(rod_work *w)
{
    bool whole = true;
    contacts_find(w);
    for (size_t i = 0; i < w->contact->list.n; i++) {
        touch *c = &w->contact->list.at[i];
        force f;
        double old = dot3(c->last, c->N);
        if (old < 0) whole = false;
        memcpy(c->last, c->N, sizeof c->last);
        force_of(w, c, &f);
    }
    return whole;
}

bool contacts_near(const rod_work *w)
{
    for (size_t i = 0; i < w->contact->list.n; i++) if (w->contact->list.at[i].fn > 0) return true;
    return false;
}

uint64_t contacts_pattern(const rod_work *w)
{
    uint64_t h = 1;
    for (size_t i = 0; i < w->contact->list.n; i++) {
        const touch *c = &w->contact->list.at[i];
        if (c->fn > 0) h = hash64(hash64(h, (uint64_t)c->node), (uint64_t)c->status);
    }
    return h;
}

double contacts_depth(const rod_work *w)
{
    double d = 0;
    for (size_t i = 0; i < w->contact->list.n; i++) d = fmax(d, -w->contact->list.at[i].gap);
    return d;
}

/* lambda <- f; where it goes slowly the springs are made stiffer */
double contacts_uzawa(rod_work *w, double *worst_slip)
{
    rod_contacts *k = w->contact;
    double worst = 0, slip = 0, most = 0;
    for (size_t i = 0; i < k->list.n; i++) {
        touch *c = &k->list.at[i];
        force f;
        double R[9], l[3], d[3];
        force_of(w, c, &f);
        if (c->fn > 0) worst = fmax(worst, fabs(c->gap));
        else worst = fmax(worst, -c->gap);
        c->lambda = c->fn;
        other_matrix(w, c, R);
        for (int j = 0; j < 3; j++) l[j] = R[j] * c->ft[0] + R[3 + j] * c->ft[1] + R[6 + j] * c->ft[2];
        for (int j = 0; j < 3; j++) d[j] = l[j] - c->l[j];
        most = fmax(most, c->fn * k->mu[c->pair]);
        slip = fmax(slip, norm3(d));
        memcpy(c->l, l, sizeof l);
    }
    *worst_slip = most > 0 ? slip / most : 0;
    if (worst > 0.3 * k->before && k->k_factor < 300) k->k_factor *= 3;
    k->before = worst;
    return worst;
}

static void copy_list(rod_work *w, touches *to, const touches *from)
{
    vec_reserve(w->a, to, from->n);
    if (from->n) memcpy(to->at, from->at, from->n * sizeof *to->at);
    to->n = from->n;
}

void contacts_save(rod_work *w) { copy_list(w, &w->contact->saved, &w->contact->list); }
void contacts_keep(rod_work *w) { copy_list(w, &w->contact->kept, &w->contact->list); }
void contacts_back(rod_work *w) { copy_list(w, &w->contact->list, &w->contact->kept); }

void contacts_smooth(rod_work *w, bool on)
{
    w->contact->smooth = on;
    for (size_t i = 0; !on && i < w->contact->list.n; i++) {
        touch *c = &w->contact->list.at[i];
        touch_start(w, c, w->pos, w->rot);
        memset(c->l, 0, sizeof c->l);
    }
}

void contacts_restore(rod_work *w)
{
    copy_list(w, &w->contact->list, &w->contact->saved);
    w->contact->k_factor = 1;
    w->contact->before = INFINITY;
}

/* ---- results ---- */
/* way of the two material points since the beginning of the step, times the force */
static double lost(const rod_work *w, const touch *c)
{
    double p[3], q[3], Ri[9], Rj[9], sum = 0;
    slave_point(w, c, w->pos, p);
    other_place(w, c, q);
    quat_matrix(w->rot + 4 * c->node, Ri);
    other_matrix(w, c, Rj);
    for (int i = 0; i < 3; i++) sum -= c->ft[i] * (p[i] + dot3(Ri + 3 * i, c->a) - q[i] - dot3(Rj + 3 * i, c->rho));
    return sum * c->ds;
}

void contacts_accept(rod_work *w, int64_t sample)
{
    rod_contacts *k = w->contact;
    results *r = w->r;
    for (int p = 0; p < w->rp->npair; p++) {
        contact_result *x = &r->contact[w->rp->pair[p].contact];
        x->gap[sample] = INFINITY;
        for (size_t i = 0; i < k->list.n; i++) {
            const touch *c = &k->list.at[i];
            if (c->pair != p) continue;
            x->gap[sample] = fmin(x->gap[sample], c->gap);
            x->rn[sample] += c->fn * c->ds;
            if (c->status > x->status[sample]) x->status[sample] = (uint8_t)c->status;
        }
        if (x->status[sample] == STATUS_OPEN) x->last_open[0] = r->t[sample];
    }
    for (size_t i = 0; i < k->list.n; i++)
        if (k->list.at[i].status == STATUS_SLIP) k->dissipated += lost(w, &k->list.at[i]);
    r->dissipated[sample] = k->dissipated;
    r->max_penetration = fmax(r->max_penetration, contacts_depth(w));
}

double contacts_dissipated(const rod_work *w) { return w->contact->dissipated; }

void contacts_result(rod_work *w, rod_result *x)
{
    rod_contacts *k = w->contact;
    rod_touching *all = arena_array(w->r->a, rod_touching, k->list.n);
    for (size_t i = 0; i < k->list.n; i++) {
        const touch *c = &k->list.at[i];
        const rod_mesh *a = slave_of(w, c), *b = c->rod < 0 ? a : &w->mesh[c->rod];
        if (c->fn <= 0) continue;
        int j = (int)floor(c->x);
        if (j > b->nn - 2) j = b->nn - 2;
        rod_touching *t = &all[x->ntouch++];
        *t = (rod_touching){ .pair = c->pair, .a = pair_of(w, c)->a, .b = c->rod, .sa = a->s[c->node - a->first], .sb = b->s[j] + (c->x - j) * (b->s[j + 1] - b->s[j]),
                             .gap = c->gap, .fn = c->fn, .status = c->status };
        memcpy(t->ft, c->ft, sizeof t->ft);
        memcpy(t->N, c->N, sizeof t->N);
        slave_point(w, c, w->pos, t->x);
        for (int i2 = 0; i2 < 3; i2++) t->x[i2] -= a->radius * c->N[i2];
    }
    x->touch = all;
}
