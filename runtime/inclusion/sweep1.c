/* sweep1: Moreau's sweeping process of first order, -x' + f in N_C(t)(x): each step projects onto C(t), C(t)
   = { x: g(t, x) <= 0 }. Polyhedra are projected onto exactly by dual active sets (Goldfarb and Idnani 1983,
   with the unit matrix); other sets by a sequence of polyhedra, each made of the tangent half-spaces at the
   last point.  For a ball the first one is exact. */
#include <math.h>
#include <string.h>
#include "inclusion/inclusion.h"
#include "base/tolerances.h"

/* ---- polyhedra ---- */
void polyhedron_work_new(polyhedron_work *w, int n, arena *a)
{
    size_t k = (size_t)n + 1;
    *w = (polyhedron_work){ .N = arena_array(a, double, k *k),
                            .L = arena_array(a, double, k *k),
                            .u = arena_array(a, double, k + 1),
                            .r = arena_array(a, double, k + 1),
                            .dir = arena_array(a, double, k),
                            .active = arena_array(a, int, k + 1) };
}

static double dot(const double *a, const double *b, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++)
        s += a[i] * b[i];
    return s;
}

/* Cholesky of N N^T, N the k active rows. */
static void active_factor(polyhedron_work *w, const double *G, int k, int n)
{
    for (int i = 0; i < k; i++)
        for (int j = 0; j <= i; j++) {
            double s = dot(G + (size_t)w->active[i] * (size_t)n, G + (size_t)w->active[j] * (size_t)n, n);
            for (int l = 0; l < j; l++)
                s -= w->L[i * n + l] * w->L[j * n + l];
            w->L[i * n + j] = i == j ? sqrt(fmax(s, SIZE_LEAST)) : s / w->L[j * n + j];
        }
}

/* r = (N N^T)^-1 N a and dir = a - N^T r: a is row p */
static double active_split(polyhedron_work *w, const double *G, int p, int k, int n)
{
    const double *a = G + (size_t)p * (size_t)n;
    for (int i = 0; i < k; i++) {
        double s = dot(G + (size_t)w->active[i] * (size_t)n, a, n);
        for (int l = 0; l < i; l++)
            s -= w->L[i * n + l] * w->r[l];
        w->r[i] = s / w->L[i * n + i];
    }
    for (int i = k - 1; i >= 0; i--) {
        for (int l = i + 1; l < k; l++)
            w->r[i] -= w->L[l * n + i] * w->r[l];
        w->r[i] /= w->L[i * n + i];
    }
    memcpy(w->dir, a, (size_t)n * sizeof *a);
    for (int i = 0; i < k; i++)
        for (int j = 0; j < n; j++)
            w->dir[j] -= w->r[i] * G[(size_t)w->active[i] * (size_t)n + (size_t)j];
    return dot(w->dir, w->dir, n);
}

/* size: of the lengths that cancel in G y - d, in addition to d */
static int most_violated(const double *G, const double *d, int m, int n, const double *y, double size,
                         double *by)
{
    int p = -1;
    *by = 0;
    for (int i = 0; i < m; i++) {
        double v = dot(G + (size_t)i * (size_t)n, y, n) - d[i];
        if (v > *by && v > ROUND_20 * fmax(size, fabs(d[i])))
            *by = v, p = i;
    }
    return p;
}

bool polyhedron_project(polyhedron_work *w, const double *G, const double *d, int m, int n, const double *z,
                        double *y)
{
    int k = 0;
    double scale = 0, by;
    for (int i = 0; i < n; i++)
        y[i] = z[i], scale = fmax(scale, fabs(z[i]));
    for (int round = 0; round < 50 * (m + n) + 100; round++) {
        int p = most_violated(G, d, m, n, y, scale, &by);
        if (p < 0)
            return true;
        double up = 0;
        for (;;) {
            active_factor(w, G, k, n);
            double len = active_split(w, G, p, k, n), t1 = INFINITY, t2 = INFINITY;
            int drop = -1;
            for (int i = 0; i < k; i++)
                if (w->r[i] > ROUND_50 && w->u[i] / w->r[i] < t1)
                    t1 = w->u[i] / w->r[i], drop = i;
            if (k < n && len > DEPENDENT_SQUARE)
                t2 = (dot(G + (size_t)p * (size_t)n, y, n) - d[p]) / len;
            double t = fmin(t1, t2);
            if (!isfinite(t))
                return false;
            if (t < 0)
                t = 0;
            if (isfinite(t2))
                for (int j = 0; j < n; j++)
                    y[j] -= t * w->dir[j];
            for (int i = 0; i < k; i++)
                w->u[i] -= t * w->r[i];
            up += t;
            if (t2 <= t1) {
                w->active[k] = p, w->u[k++] = up;
                break;
            }
            for (int i = drop + 1; i < k; i++)
                w->active[i - 1] = w->active[i], w->u[i - 1] = w->u[i];
            k--;
        }
    }
    return false;
}

/* ---- sets g <= 0 ---- */
struct projector {
    polyhedron_work pw;
    double *g, *G, *d, *keep, *next;
};

projector *projector_new(const inclusion_program *ip, arena *a)
{
    projector *w = arena_make(a, projector);
    size_t n = 0, m = 0, mn = 0;
    for (int c = 0; c < ip->ncone; c++) {
        size_t cn = (size_t)ip->cone[c].n, cm = (size_t)ip->cone[c].ng;
        n = cn > n ? cn : n, m = cm > m ? cm : m, mn = cn * cm > mn ? cn * cm : mn;
    }
    polyhedron_work_new(&w->pw, (int)n, a);
    w->g = arena_array(a, double, m + 1), w->d = arena_array(a, double, m + 1);
    w->G = arena_array(a, double, mn + 1);
    w->keep = arena_array(a, double, n + 1), w->next = arena_array(a, double, n + 1);
    return w;
}

/* g and its gradients at y, by their lengths; the largest g. */
static double constraints_at(projector *w, moment *m, int cone, const double *y)
{
    static const int32_t none[MAX_INDEX];
    const inclusion_cone *q = &m->ip->cone[cone];
    double *reg = m->reg_cone[cone], worst = -INFINITY;
    for (int i = 0; i < q->n; i++)
        m->x[q->dof[i]] = y[i];
    if (q->ng)
        kernel_run(&q->g, &m->in, none, reg);
    for (int k = 0; k < q->ng; k++) {
        double *G = w->G + (size_t)k * (size_t)q->n, len = 0;
        w->g[k] = reg[q->g.tape.out[k]];
        for (int i = 0; i < q->n; i++) {
            G[i] = reg[q->g.tape.out[q->ng + k * q->n + i]];
            len = hypot(len, G[i]);
        }
        /* the centre of a ball: no direction, and none needed unless it lies outside */
        if (!(len > 0) || !isfinite(len)) {
            memset(G, 0, (size_t)q->n * sizeof *G);
            len = 1;
        }
        for (int i = 0; i < q->n; i++)
            G[i] /= len;
        w->g[k] /= len;
        if (!(w->g[k] <= worst))
            worst = w->g[k];
    }
    return worst;
}

enum { ROUNDS = 200 };

static bool project_rounds(projector *w, moment *m, int cone, const double *z, double *y, double *worst,
                           const char **why)
{
    const inclusion_cone *q = &m->ip->cone[cone];
    int n = q->n;
    double scale = 0, v;
    for (int i = 0; i < n; i++)
        y[i] = z[i], scale = fmax(scale, fabs(z[i]));
    v = constraints_at(w, m, cone, y);
    /* at the origin the size of the set is the scale of lengths */
    for (int k = 0; k < q->ng; k++)
        if (isfinite(w->g[k]))
            scale = fmax(scale, fabs(w->g[k]));
    *why = q->convex ? "the set C(t) is empty"
                     : "the set C(t) is empty, or moves faster than it can be followed (take a smaller h)";
    for (int round = 0; round < ROUNDS; round++) {
        double step = 0;
        if (isnan(v)) {
            *why = "the set C(t) is not finite";
            return false;
        }
        if (round == 0 && v <= 0)
            break;
        for (int k = 0; k < q->ng; k++)
            w->d[k] = dot(w->G + (size_t)k * (size_t)n, y, n) - w->g[k];
        if (!polyhedron_project(&w->pw, w->G, w->d, q->ng, n, z, w->next))
            return false;
        for (int i = 0; i < n; i++)
            step = fmax(step, fabs(w->next[i] - y[i])), y[i] = w->next[i];
        v = constraints_at(w, m, cone, y);
        *worst = fmax(0, v);
        if (q->linear || step <= ROUND_10 * scale || (step <= ROUND_500 * scale && v <= ROUND_50 * scale))
            break;
    }
    *worst = fmax(0, v);
    return v <= SET_REACHED * scale;
}

double cone_depth(projector *w, moment *m, int cone, const double *y)
{
    const inclusion_cone *q = &m->ip->cone[cone];
    for (int i = 0; i < q->n; i++)
        w->keep[i] = m->x[q->dof[i]];
    double v = constraints_at(w, m, cone, y);
    for (int i = 0; i < q->n; i++)
        m->x[q->dof[i]] = w->keep[i];
    return v;
}

bool project(projector *w, moment *m, int cone, const double *z, double *y, double *worst, const char **why)
{
    const inclusion_cone *q = &m->ip->cone[cone];
    for (int i = 0; i < q->n; i++)
        w->keep[i] = m->x[q->dof[i]];
    bool good = project_rounds(w, m, cone, z, y, worst, why);
    for (int i = 0; i < q->n; i++)
        m->x[q->dof[i]] = w->keep[i];
    return good;
}
