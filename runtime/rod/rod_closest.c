/* rod_closest: the closest points of rods and bodies. */
#include "base/whole.h"
#include "rod_touch.h"
#include "base/tolerances.h"
#include <math.h>
#include <string.h>

/* ---- the spline ---- */
static double *row_of(row *r, int which)
{
    return which == 0 ? r->w : which == 1 ? r->d : r->dd;
}

/* Adds node k of a rod of n nodes, with weight c. Nodes beyond the ends continue the first (last) three as a
   parabola. */
static void row_put(row *r, int which, int k, int n, double c)
{
    static const double beyond[3][3] = { { 3, -3, 1 }, { 6, -8, 3 }, { 10, -15, 6 } };
    double *to = row_of(r, which);
    if (k < 0)
        for (int i = 0; i < 3; i++)
            to[i - r->first] += c * beyond[-k - 1][i];
    else if (k >= n)
        for (int i = 0; i < 3; i++)
            to[n - 1 - i - r->first] += c * beyond[k - n][i];
    else
        to[k - r->first] += c;
}

void row_at(const rod_mesh *m, double x, row *r)
{
    int n = m->nn, k = (int)whole_clamp(x, 0, n - 2);
    double f = x - k, g = 1 - f;
    double b[3][4] = { { g * g * g / 6, (4 - 6 * f * f + 3 * f * f * f) / 6,
                         (4 - 6 * g * g + 3 * g * g * g) / 6, f * f * f / 6 },
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

void row_sum(const rod_mesh *m, const row *r, const double *w, const double *pos, double *x)
{
    const double *p = pos + 3 * (m->first + r->first);
    x[0] = x[1] = x[2] = 0;
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < 3; k++)
            x[k] += w[i] * p[3 * i + k];
}

/* Position, tangent and curvature of a rod at x. */
typedef struct curve {
    double r[3], t[3], k[3];
} curve;

static void curve_at(const rod_mesh *m, const double *pos, double x, curve *c)
{
    row r;
    row_at(m, x, &r);
    row_sum(m, &r, r.w, pos, c->r);
    row_sum(m, &r, r.d, pos, c->t);
    row_sum(m, &r, r.dd, pos, c->k);
}

/* The two points, their difference, and the second derivatives of half the squared distance. */
typedef struct near_at {
    curve a, b;
    double D[3], far, yy, yx, xx;
} near_at;

static void near_of(const rod_mesh *a, const rod_mesh *b, const double *pos, double y, double x, near_at *n)
{
    curve_at(a, pos, y, &n->a);
    curve_at(b, pos, x, &n->b);
    for (int i = 0; i < 3; i++)
        n->D[i] = n->a.r[i] - n->b.r[i];
    n->far = norm3(n->D);
    n->yy = dot3(n->a.t, n->a.t) + dot3(n->D, n->a.k);
    n->yx = -dot3(n->a.t, n->b.t);
    n->xx = dot3(n->b.t, n->b.t) - dot3(n->D, n->b.k);
}

static double within(double x, double lo, double hi)
{
    return fmin(fmax(x, lo), hi);
}

/* The closest points near x and y by Newton's method, with y near its previous value; false: there is no
   minimum nearby. Only x moves if y would run away. */
static bool closest(const rod_mesh *ma, const rod_mesh *mb, const double *pos, touch *c, double *y, double *x,
                    bool *fixed, bool *clipped)
{
    double room = c->eps > 0 ? 0.5 : 2, lo = fmax(c->mid - room, 0), hi = fmin(c->mid + room, ma->nn - 1),
           end = mb->nn - 1;
    near_at n;
    for (int it = 0; it < 40; it++) {
        near_of(ma, mb, pos, *y, *x, &n);
        double gy = dot3(n.D, n.a.t) + n.far * c->eps * (*y - c->mid), gx = -dot3(n.D, n.b.t),
               tt = dot3(n.b.t, n.b.t);
        /* at an end of the other rod, if it would go beyond: y is the closest point to that end */
        bool stopped = (*x == 0 && gx > 0) || (*x == end && gx < 0);
        double xx = n.xx > 0.05 * tt ? n.xx : tt, yy = n.yy + n.far * c->eps, yx = stopped ? 0 : n.yx,
               left = yy - yx * yx / xx;
        bool flat = left < 0.02 * dot3(n.a.t, n.a.t);
        double dy = flat ? 0 : -(gy - yx * gx / xx) / left;
        dy = within(*y + within(dy, -0.3, 0.3), lo, hi) - *y;
        double dx = within(-(gx + n.yx * dy) / xx, -0.8, 0.8), to = within(*x + dx, 0, end);
        *fixed = flat || (*y + dy == lo && dy <= 0) || (*y + dy == hi && dy >= 0);
        *clipped = (to == 0 && dx <= 0) || (to == end && dx >= 0);
        double moved = fmax(fabs(to - *x), fabs(dy));
        *x = to;
        *y += dy;
        if (moved < ROUND_50 * (1 + end) || (it > 6 && moved < CLOSEST_ENOUGH * (1 + end)))
            return *clipped || n.xx > 0.02 * tt;
    }
    return true;
}

/* If the distance has too little curvature along the rod, adds curvature (eps) for one step. */
static void flatness(const rod_mesh *ma, const rod_mesh *mb, const double *pos, touch *c, double y, double x)
{
    near_at n;
    near_of(ma, mb, pos, y, x, &n);
    double tt = dot3(n.a.t, n.a.t), left = n.xx > 0 ? n.yy - n.yx * n.yx / n.xx : 0;
    c->eps = fmax(0, 0.25 * tt - left) / n.far;
}

/* ---- pairs ---- */
double place_of(const rod_mesh *m, double x)
{
    int64_t j = whole_clamp(x, 0, m->nn - 2);
    return m->s[j] + (x - (double)j) * (m->s[j + 1] - m->s[j]);
}

void slave_point(const rod_work *w, const touch *c, double y, const double *pos, double *x)
{
    row r;
    row_at(slave_of(w, c), y, &r);
    row_sum(slave_of(w, c), &r, r.w, pos, x);
}

/* A wall around the rod: its normal points to the axis or the centre, and the distance from there counts as
   negative, so that gaps and their derivatives are those of a body. On the axis itself any direction across
   it is a normal. */
static double normal_inside(const double *axis, double far, double *N)
{
    double e[3] = { fabs(axis[0]) < 0.6, fabs(axis[0]) >= 0.6, 0 };
    if (far > 0) {
        for (int i = 0; i < 3; i++)
            N[i] /= -far;
        return -far;
    }
    double along = dot3(axis, e);
    for (int i = 0; i < 3; i++)
        N[i] = e[i] - along * axis[i];
    far = norm3(N);
    for (int i = 0; i < 3; i++)
        N[i] /= far;
    return 0;
}

double body_normal(const rod_work *w, const touch *c, const double *p, double *N)
{
    const double *b = w->contact->body + 7 * c->pair;
    rod_touch what = pair_of(w, c)->what;
    double along = 0;
    if (what == TOUCH_PLANE) {
        memcpy(N, b + 3, 3 * sizeof *N);
        return dot3(b + 3, p) - b[6];
    }
    for (int i = 0; i < 3; i++)
        N[i] = p[i] - b[i];
    if (what == TOUCH_CYLINDER)
        along = dot3(N, b + 3);
    for (int i = 0; i < 3; i++)
        N[i] -= along * b[3 + i];
    double far = norm3(N);
    if (pair_of(w, c)->inside)
        return normal_inside(b + 3, far, N);
    for (int i = 0; i < 3; i++)
        N[i] /= far;
    return far;
}

static void body_project(const rod_work *w, touch *c)
{
    double p[3];
    slave_point(w, c, c->y, w->state.pos, p);
    c->far = body_normal(w, c, p, c->N);
    c->gap = c->far - w->contact->clear[c->pair] - w->contact->skin[c->pair];
}

bool touch_project(const rod_work *w, touch *c)
{
    if (c->rod < 0) {
        c->y = c->y0 = c->node - slave_of(w, c)->first;
        body_project(w, c);
        return true;
    }
    near_at n;
    bool found = closest(slave_of(w, c), &w->mesh[c->rod], w->state.pos, c, &c->y, &c->x, &c->fixed,
                         &c->clipped);
    near_of(slave_of(w, c), &w->mesh[c->rod], w->state.pos, c->y, c->x, &n);
    for (int i = 0; i < 3; i++)
        c->N[i] = n.D[i] / n.far;
    c->far = n.far;
    c->gap = n.far - w->contact->clear[c->pair] - w->contact->skin[c->pair] +
             c->eps * (c->y - c->mid) * (c->y - c->mid) / 2;
    return found;
}

/* An eps that keeps a point in place. */
double touch_pinned(const rod_mesh *m)
{
    return 1e11 * m->length / (m->nn - 1);
}

/* the gap at a place y of the rod; eps = 0: at the closest one near it, where the distance is not flat */
static double gap_near(const rod_work *w, const touch *c, double y, double eps, touch *at)
{
    *at = *c;
    at->mid = at->y = y;
    at->eps = eps;
    if (y < 0 || y > slave_of(w, c)->nn - 1)
        return INFINITY;
    if (c->rod < 0)
        body_project(w, at);
    else if (!touch_project(w, at))
        return INFINITY;
    return at->gap;
}

/* The least gap around a pair, up to the next possible pair: pairs hold smooth lines apart at their points,
   not between them. Evaluated every quarter of a node, and at the vertex of the parabola through three of
   these points. */
double touch_least(const rod_work *w, const touch *c, touch *where)
{
    enum { PLACES = 6 };
    double gap[2 * PLACES + 1], least = INFINITY, part = 0.25;
    int reach = c->rod < 0 ? PLACES / 3 : PLACES;
    touch at;
    for (int k = 0; k <= 2 * reach; k++) {
        gap[k] = gap_near(w, c, c->y + part * (k - reach), touch_pinned(slave_of(w, c)), &at);
        if (gap[k] < least) {
            least = gap[k];
            *where = at;
        }
    }
    for (int k = 1; k < 2 * reach; k++) {
        double a = gap[k - 1] - gap[k], b = gap[k + 1] - gap[k];
        if (!(a > 0 && b > 0 && a + b < INFINITY))
            continue;
        double low = gap_near(w, c, c->y + part * (k - reach + (a - b) / (2 * (a + b))), 0, &at);
        if (low < least) {
            least = low;
            *where = at;
        }
    }
    return least;
}

void touch_centre(const rod_work *w, touch *c)
{
    if (c->rod < 0 || c->hats || c->fine)
        return;
    c->mid = c->y;
    flatness(slave_of(w, c), &w->mesh[c->rod], w->state.pos, c, c->y, c->x);
}

/* Places a new pair: first at the node, then where the distance is least. */
bool touch_place(const rod_work *w, touch *c)
{
    c->mid = c->y = c->node - slave_of(w, c)->first;
    c->eps = touch_pinned(slave_of(w, c));
    if (!touch_project(w, c))
        return false;
    flatness(slave_of(w, c), &w->mesh[c->rod], w->state.pos, c, c->y, c->x);
    return touch_project(w, c);
}

static void into_frame(const double *q, const double *v, double *out)
{
    double R[9];
    quat_matrix(q, R);
    for (int i = 0; i < 3; i++)
        out[i] = R[i] * v[0] + R[3 + i] * v[1] + R[6 + i] * v[2];
}

/* The material points that coincide at the start of the step. */
void touch_start(const rod_work *w, touch *c, const double *pos, const double *rot)
{
    double p[3], N[3], v[3], radius = slave_of(w, c)->radius;
    if (c->rod < 0) { /* a body does not move: rho is a point in space */
        slave_point(w, c, c->y0, pos, p);
        body_normal(w, c, p, N);
        for (int i = 0; i < 3; i++) {
            v[i] = -radius * N[i];
            c->rho[i] = p[i] + v[i];
        }
        into_frame(rot + 4 * c->node, v, c->a);
        return;
    }
    const rod_mesh *ma = slave_of(w, c), *m = &w->mesh[c->rod];
    bool fixed, clipped;
    near_at n;
    c->x0 = c->x;
    c->y0 = c->y;
    if (!c->hats && !c->fine) {
        c->mid = c->y;
        flatness(ma, m, pos, c, c->y0, c->x0);
    }
    closest(ma, m, pos, c, &c->y0, &c->x0, &fixed, &clipped);
    near_of(ma, m, pos, c->y0, c->x0, &n);
    c->node = ma->first + (int)whole_clamp(c->y0 + 0.5, 0, ma->nn - 1);
    c->other = m->first + (int)whole_clamp(c->x0 + 0.5, 0, m->nn - 1);
    for (int i = 0; i < 3; i++)
        v[i] = -radius * n.D[i] / n.far;
    into_frame(rot + 4 * c->node, v, c->a);
    for (int i = 0; i < 3; i++)
        v[i] += n.D[i];
    into_frame(rot + 4 * c->other, v, c->rho);
}

/* The frame in which multipliers are stored: that of the other section; for bodies the identity. */
void other_matrix(const rod_work *w, const touch *c, double *R)
{
    static const double one[9] = { 1, 0, 0, 0, 1, 0, 0, 0, 1 };
    if (c->rod < 0)
        memcpy(R, one, sizeof one);
    else
        quat_matrix(w->state.rot + 4 * c->other, R);
}

/* The point on the other side from which slip is measured, without the rotation of its section. */
void other_place(const rod_work *w, const touch *c, double *q)
{
    row r;
    q[0] = q[1] = q[2] = 0;
    if (c->rod < 0)
        return;
    row_at(&w->mesh[c->rod], c->x0, &r);
    row_sum(&w->mesh[c->rod], &r, r.w, w->state.pos, q);
}
