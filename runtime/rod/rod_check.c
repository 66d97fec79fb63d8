/* rod_check: checks the results of a run of rods with independent code. The energy is that of the model:
   integrals of strains over the cubic elements; its gradient is computed by complex steps, so that no
   derivative is written twice. At the end of a load path, forces and moments must balance at the nodes
   without contact, and rods must not overlap. In time, the energy must be that of the last state, and the
   centre of mass must move by loads and supports. */
#include <complex.h>
#include <math.h>
#include <string.h>
#include "clock/clock.h"
#include "rod.h"
#include "base/tolerances.h"

typedef double complex cplx;

typedef struct look {
    results *r;
    const rod_result *x;
    const rod_program *rp;
    int N;
    /* 6 per node: forces in space, moments in the frame of the section; sums of absolute values */
    double *force, *size;
    bool *near; /* of each node: contact acts on it or close to it */
    bool *support;
    /* of each node near contact: another node of its part; the root of the part points to itself */
    int *part;
    double *reg, *coord;
} look;

/* ---- an element ---- */
/* Lagrange polynomials for 0, 1/3, 2/3, 1 and their derivatives. */
static void shape(double x, double *f, double *d)
{
    for (int i = 0; i < ROD_NODES; i++) {
        f[i] = 1;
        d[i] = 0;
        for (int j = 0; j < ROD_NODES; j++)
            if (j != i)
                f[i] *= (3 * x - j) / (i - j);
        for (int k = 0; k < ROD_NODES; k++) {
            double part = 3.0 / (i - k);
            for (int j = 0; j < ROD_NODES; j++)
                if (k != i && j != i && j != k)
                    part *= (3 * x - j) / (i - j);
            if (k != i)
                d[i] += part;
        }
    }
}

/* The vector a (r') in the frame of the section; the quaternion Q may have any length. */
static void turned_back(const cplx *Q, const cplx *a, cplx *out)
{
    cplx w = Q[0], n = w * w, dot = 0, cross[3];
    for (int i = 0; i < 3; i++) {
        n += Q[i + 1] * Q[i + 1];
        dot += Q[i + 1] * a[i];
        cross[i] = a[(i + 1) % 3] * Q[1 + (i + 2) % 3] - a[(i + 2) % 3] * Q[1 + (i + 1) % 3];
    }
    /* Q^-1 a Q = ((w^2 - |q|^2) a + 2 (q.a) q + 2 w a x q)/|Q|^2 */
    for (int i = 0; i < 3; i++)
        out[i] = ((2 * w * w - n) * a[i] + 2 * dot * Q[i + 1] + 2 * w * cross[i]) / n;
}

/* Twice the vector part of Q^-1 Q'. */
static void bent(const cplx *Q, const cplx *P, cplx *out)
{
    cplx n = Q[0] * Q[0] + Q[1] * Q[1] + Q[2] * Q[2] + Q[3] * Q[3];
    for (int i = 0; i < 3; i++) {
        int j = 1 + (i + 1) % 3, k = 1 + (i + 2) % 3;
        out[i] = 2 * (Q[0] * P[i + 1] - Q[i + 1] * P[0] - Q[j] * P[k] + Q[k] * P[j]) / n;
    }
}

static cplx quadratic(const double *A, const cplx *x)
{
    cplx sum = 0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            sum += A[3 * i + j] * x[i] * x[j];
    return sum / 2;
}

static cplx element_energy(const rod_mesh *m, int e, const cplx r[ROD_NODES][3], const cplx q[ROD_NODES][4])
{
    double h = m->s[3 * e + 3] - m->s[3 * e];
    cplx sum = 0;
    for (int g = 0; g < ROD_GAUSS; g++) {
        double f[ROD_NODES], d[ROD_NODES], weight = g == 1 ? 8.0 / 18 : 5.0 / 18;
        cplx Q[4] = { 0 }, P[4] = { 0 }, a[3] = { 0 }, v[3], u[3];
        shape((1 + (g - 1) * sqrt(0.6)) / 2, f, d);
        for (int i = 0; i < ROD_NODES; i++) {
            for (int k = 0; k < 4; k++) {
                Q[k] += f[i] * q[i][k];
                P[k] += d[i] / h * q[i][k];
            }
            for (int k = 0; k < 3; k++)
                a[k] += d[i] / h * r[i][k];
        }
        turned_back(Q, a, v);
        bent(Q, P, u);
        for (int k = 0; k < 3; k++) {
            v[k] -= m->v0[3 * (3 * e + g) + k];
            u[k] -= m->u0[3 * (3 * e + g) + k];
        }
        sum += weight * h *
               (quadratic(rod_stretch_at(m, 3 * e + g), v) + quadratic(rod_bend_at(m, 3 * e + g), u));
    }
    return sum;
}

static double element_look(look *w, const rod_mesh *m, int e, bool gradient)
{
    cplx r[ROD_NODES][3], q[ROD_NODES][4];
    int first = m->first + 3 * e;
    for (int i = 0; i < ROD_NODES; i++) {
        for (int k = 0; k < 3; k++)
            r[i][k] = w->x->r[3 * (first + i) + k];
        for (int k = 0; k < 4; k++)
            q[i][k] = w->x->q[4 * (first + i) + k];
    }
    for (int i = 0; gradient && i < ROD_NODES; i++)
        for (int k = 0; k < 6; k++) {
            cplx keep[4];
            memcpy(keep, q[i], sizeof keep);
            if (k < 3)
                r[i][k] += I * COMPLEX_STEP;
            else { /* q <- q (1 + i COMPLEX_STEP e_k/2) */
                double c[4], by[4] = { 0 };
                by[k - 2] = COMPLEX_STEP / 2;
                quat_mul(w->x->q + 4 * (first + i), by, c);
                for (int j = 0; j < 4; j++)
                    q[i][j] += I * c[j];
            }
            double f = cimag(element_energy(m, e, r, q)) / COMPLEX_STEP;
            w->force[6 * (first + i) + k] -= f;
            w->size[6 * (first + i) + k] += fabs(f);
            if (k < 3)
                r[i][k] = creal(r[i][k]);
            memcpy(q[i], keep, sizeof keep);
        }
    return creal(element_energy(m, e, r, q));
}

static double elastic(look *w, bool gradient)
{
    double sum = 0;
    for (int i = 0; i < w->rp->nrod; i++)
        for (int e = 0; e < w->x->mesh[i].ne; e++)
            sum += element_look(w, &w->x->mesh[i], e, gradient);
    return sum;
}

/* ---- loads ---- */
static void evaluate(look *w, const kernel *k, double t, int rod, double s, double *out)
{
    inputs in = { .t = t, .from = { [IN_PARAM] = w->r->param, [IN_COORD] = w->coord } };
    w->coord[rod] = s;
    tape_start(&k->tape, w->reg);
    kernel_run(k, &in, NULL, w->reg);
    for (uint32_t i = 0; i < k->tape.nout; i++)
        out[i] = w->reg[k->tape.out[i]];
}

static void add(look *w, int node, int from, double weight, const double *f)
{
    for (int k = 0; k < 3; k++) {
        w->force[6 * node + from + k] += weight * f[k];
        w->size[6 * node + from + k] += fabs(weight * f[k]);
    }
}

static void to_space(const double *q, const double *f, double *out)
{
    double R[9];
    quat_matrix(q, R);
    for (int k = 0; k < 3; k++)
        out[k] = dot3(R + 3 * k, f);
}

static void to_section(const double *q, const double *f, double *out)
{
    double back[4] = { q[0], -q[1], -q[2], -q[3] };
    to_space(back, f, out);
}

static void load_along(look *w, const rod_load *l, double t)
{
    const rod_mesh *m = &w->x->mesh[l->rod];
    for (int e = 0; e < m->ne; e++)
        for (int g = 0; g < ROD_GAUSS; g++) {
            double x = (1 + (g - 1) * sqrt(0.6)) / 2, h = m->s[3 * e + 3] - m->s[3 * e], f[ROD_NODES],
                   d[ROD_NODES], F[3], Q[4];
            evaluate(w, &l->value, t, l->rod, m->s[3 * e] + x * h, F);
            if (l->follower) {
                double own[3] = { F[0], F[1], F[2] };
                rod_at(m, w->x->r, w->x->q, m->s[3 * e] + x * h, NULL, Q);
                to_space(Q, own, F);
            }
            shape(x, f, d);
            for (int i = 0; i < ROD_NODES; i++)
                add(w, m->first + 3 * e + i, 0, (g == 1 ? 8.0 / 18 : 5.0 / 18) * h * f[i], F);
        }
}

/* Loads act on the ends of elements. */
static int nearest(const rod_mesh *m, double s)
{
    int best = 0;
    for (int i = 0; i < m->nn; i += 3)
        if (fabs(m->s[i] - s) < fabs(m->s[best] - s))
            best = i;
    return m->first + best;
}

static void loads(look *w, double t)
{
    for (int i = 0; i < w->rp->nload; i++) {
        const rod_load *l = &w->rp->load[i];
        double F[3], s, own[3];
        if (l->what != LOAD_FORCE && l->what != LOAD_MOMENT)
            continue;
        if (!l->point) {
            load_along(w, l, t);
            continue;
        }
        evaluate(w, &l->s, t, l->rod, 0, &s);
        int node = nearest(&w->x->mesh[l->rod], s);
        const double *q = w->x->q + 4 * node;
        evaluate(w, &l->value, t, l->rod, s, F);
        if (l->what == LOAD_FORCE && l->follower)
            to_space(q, F, own);
        else if (l->what == LOAD_MOMENT && !l->follower)
            to_section(q, F, own);
        else
            memcpy(own, F, sizeof own);
        add(w, node, l->what == LOAD_FORCE ? 0 : 3, 1, own);
    }
}

/* ---- joints ---- */
/* Adds forces on joined sections to the last of them. The moment about the axis of a hinge is not passed on,
   because nothing balances it. */
static void joints_pass(look *w)
{
    for (int i = 0; i < w->x->ntie; i++) {
        const rod_tie *x = &w->x->tie[i];
        double *from = w->force + 6 * x->node, *to = w->force + 6 * x->to, M[3], own[3],
               along = x->hinge ? dot3(x->axis, from + 3) : 0;
        if (!x->turns) {
            for (int k = 0; k < 3; k++) {
                to[k] += from[k];
                from[k] = 0;
            }
            continue;
        }
        for (int k = 0; k < 3; k++) {
            own[k] = from[3 + k] - along * x->axis[k];
            from[3 + k] = along * x->axis[k];
        }
        to_space(w->x->q + 4 * x->node, own, M);
        to_section(w->x->q + 4 * x->to, M, own);
        for (int k = 0; k < 3; k++)
            to[3 + k] += own[k];
    }
}

/* ---- balance ---- */
enum { AROUND = 11 }; /* nodes to each side on which a pair of points may act */

static void mark_near(look *w, int rod, double s)
{
    const rod_mesh *m = &w->x->mesh[rod];
    int node = nearest(m, s);
    for (int i = node - AROUND; i <= node + AROUND; i++)
        if (i >= m->first && i < m->first + m->nn)
            w->near[i] = true;
}

static double longest(const look *w)
{
    double L = 0;
    for (int i = 0; i < w->rp->nrod; i++)
        L = fmax(L, w->x->mesh[i].length);
    return L;
}

/* Scale of a balance: forces with the length as lever arm. For a rod without strain, rounding of its
   positions times its stiffness. */
static double size_of_all(const look *w, double L)
{
    double most = 0;
    for (int i = 0; i < 6 * w->N; i++)
        most = fmax(most, w->size[i] * (i % 6 < 3 ? L : 1));
    for (int i = 0; i < w->rp->nrod; i++) {
        const rod_mesh *m = &w->x->mesh[i];
        double stiff = fmax(m->B[0], fmax(m->B[4], m->B[8]));
        for (int e = 0; e < m->ne; e++)
            most = fmax(most, ROD_END * stiff * L * L / (m->s[3 * e + 3] - m->s[3 * e]));
    }
    return most;
}

static span where_of(const look *w, int node)
{
    for (int i = 0; i < w->rp->nrod; i++) {
        const rod_mesh *m = &w->x->mesh[i];
        if (node >= m->first && node < m->first + m->nn)
            return m->spec->at;
    }
    return SPAN_NONE;
}

/* ---- rods in contact ---- */
/* How contact forces are distributed to nodes is not stored. They cancel within a part: neighbouring nodes
   near contact, and the nodes that they touch. */
static int part_of(look *w, int node)
{
    while (w->part[node] != node)
        node = w->part[node] = w->part[w->part[node]];
    return node;
}

static void parts_join(look *w)
{
    for (int i = 0; i < w->rp->nrod; i++) {
        const rod_mesh *m = &w->x->mesh[i];
        for (int k = m->first; k < m->first + m->nn; k++)
            w->part[k] = k > m->first && w->near[k - 1] ? part_of(w, k - 1) : k;
    }
    for (int64_t i = 0; i < w->x->ntouch; i++) {
        const rod_touching *c = &w->x->touch[i];
        int a = part_of(w, nearest(&w->x->mesh[c->a], c->sa)),
            b = c->b < 0 ? a : part_of(w, nearest(&w->x->mesh[c->b], c->sb));
        w->part[b] = a;
    }
}

/* The largest unbalanced force of a part, and its first node. */
static double parts_left(look *w, int *at)
{
    double most = 0;
    parts_join(w);
    for (int i = 0; i < w->N; i++)
        for (int k = 0; w->near[i] && part_of(w, i) != i && k < 3; k++)
            w->force[6 * part_of(w, i) + k] += w->force[6 * i + k];
    for (int64_t i = 0; i < w->x->ntouch; i++) /* other bodies take forces that no node has */
        if (w->x->touch[i].b < 0)
            w->near[part_of(w, nearest(&w->x->mesh[w->x->touch[i].a], w->x->touch[i].sa))] = false;
    for (int i = 0; i < w->N; i++)
        for (int k = 0; w->near[i] && part_of(w, i) == i && k < 3; k++)
            if (!(fabs(w->force[6 * i + k]) <= most)) {
                most = fabs(w->force[6 * i + k]);
                *at = i;
            }
    return most;
}

static void balance(look *w)
{
    results *r = w->r;
    double L = longest(w), worst = 0;
    int at = 0;
    elastic(w, true);
    loads(w, r->t_end);
    for (int i = 0; i < w->x->nsupport; i++) {
        int node = w->x->support[i];
        w->support[node] = true;
        add(w, node, 0, 1, w->x->reaction + 6 * node);
    }
    joints_pass(w);
    for (int64_t i = 0; i < w->x->ntouch; i++) {
        const rod_touching *c = &w->x->touch[i];
        mark_near(w, c->a, c->sa);
        if (c->b >= 0)
            mark_near(w, c->b, c->sb);
    }
    for (int i = 0; i < 6 * w->N; i++) {
        double off = fabs(w->force[i]) * (i % 6 < 3 ? L : 1);
        if (w->near[i / 6] || (i % 6 >= 3 && w->support[i / 6]) || off <= worst)
            continue;
        worst = off;
        at = i / 6;
    }
    int first = 0;
    double left = w->x->ntouch ? parts_left(w, &first) * L : 0;
    if (!(left <= worst)) {
        worst = left;
        at = first;
    }
    double by = worst / size_of_all(w, L);
    if (!(by < BALANCE_LOOSE))
        results_fail(r, where_of(w, at),
                     arena_printf(r->a,
                                  "forces and moments do not balance at t = %.10g: the defect at a node "
                                  "is %.2g of the largest",
                                  r->t_end, by));
    r->residual = fmax(r->residual, by);
}

/* ---- in time ---- */
/* Mass per length at s, from the model. */
static double mass_there(look *w, int rod, double s)
{
    const rod_spec *sp = &w->rp->rod[rod];
    double density = 0, radius = 0;
    if (!w->x->mesh[rod].masses)
        return w->x->mesh[rod].mass;
    if (sp->number[ROD_MASS].tape.nout) {
        evaluate(w, &sp->number[ROD_MASS], 0, rod, s, &density);
        return density;
    }
    evaluate(w, &sp->number[ROD_DENSITY], 0, rod, s, &density);
    evaluate(w, &sp->number[ROD_RADIUS], 0, rod, s, &radius);
    return density * M_PI * radius * radius;
}

static const double four_at[] = { 0.06943184420297371, 0.33000947820757187, 0.66999052179242813,
                                  0.93056815579702629 },
                    four_weight[] = { 0.17392742256872693, 0.32607257743127307, 0.32607257743127307,
                                      0.17392742256872693 };

static double lump_kinetic(const double *lump, const double *v)
{
    double sum = 0;
    for (int k = 0; lump && k < 3; k++)
        sum += lump[0] * v[k] * v[k] / 2;
    for (int k = 0; lump && k < 9; k++)
        sum += lump[1 + k] * v[3 + k / 3] * v[3 + k % 3] / 2;
    return sum;
}

static double kinetic(look *w)
{
    static const double piece[] = { 1.0 / 8, 3.0 / 8, 3.0 / 8, 1.0 / 8 };
    double sum = 0;
    for (int i = 0; i < w->rp->nrod; i++) {
        const rod_mesh *m = &w->x->mesh[i];
        for (int e = 0; e < m->ne; e++) {
            const double *v = w->x->v + 6 * (m->first + 3 * e);
            double h = m->s[3 * e + 3] - m->s[3 * e];
            for (int g = 0; g < 4; g++) {
                double f[ROD_NODES], d[ROD_NODES], y[3] = { 0 };
                shape(four_at[g], f, d);
                for (int k = 0; k < 3 * ROD_NODES; k++)
                    y[k % 3] += f[k / 3] * v[6 * (k / 3) + k % 3];
                sum += four_weight[g] * h * mass_there(w, i, m->s[3 * e] + four_at[g] * h) * dot3(y, y) / 2;
                const double *spin = v + 6 * g + 3, *J = rod_inertia_at(m, 3 * e + g);
                for (int k = 0; k < 9; k++)
                    sum += piece[g] * h * J[k] * spin[k / 3] * spin[k % 3] / 2;
            }
        }
        for (int k = 0; k < m->nn; k++)
            sum += lump_kinetic(rod_lump_at(m, k), w->x->v + 6 * (m->first + k));
    }
    return sum;
}

static void energy(look *w)
{
    results *r = w->r;
    double is = elastic(w, false) + (w->x->v ? kinetic(w) : 0), kept = r->energy[r->samples - 1], top = 0;
    for (int64_t k = 0; k < r->samples; k++)
        top = fmax(top, fabs(r->energy[k]));
    for (int i = 0; i < w->rp->nrod; i++) { /* strains of 1e-10 are rounding */
        const rod_mesh *m = &w->x->mesh[i];
        top += ROD_ENERGY_LEAST * fmax(m->B[0], fmax(m->B[4], m->B[8])) * m->length;
    }
    if (!(fabs(is - kept) <= ROD_ENERGY * top))
        results_fail(r, w->rp->rod[0].at,
                     arena_printf(r->a,
                                  "the stored energy at t = %.10g is %.10g, that of the state is "
                                  "%.10g",
                                  r->t_end, kept, is));
}

/* Mass times the centre of mass at a sample. */
static void centre(look *w, int64_t at, double *c)
{
    memset(c, 0, 3 * sizeof *c);
    for (int i = 0; i < w->rp->nrod; i++) {
        const rod_mesh *m = &w->x->mesh[i];
        for (int e = 0; e < m->ne; e++)
            for (int g = 0; g < 4; g++) {
                double f[ROD_NODES], d[ROD_NODES],
                    h = m->s[3 * e + 3] - m->s[3 * e],
                    part = four_weight[g] * h * mass_there(w, i, m->s[3 * e] + four_at[g] * h);
                const double *x = w->r->track + at * w->r->ntrack + 3 * (m->first + 3 * e);
                shape(four_at[g], f, d);
                for (int k = 0; k < 3 * ROD_NODES; k++)
                    c[k % 3] += part * f[k / 3] * x[k];
            }
        for (int k = 0; m->lumps && k < 3 * m->nn; k++)
            c[k % 3] += m->lumps[10 * (k / 3)] * w->r->track[at * w->r->ntrack + 3 * m->first + k];
    }
}

/* Drag in the step to the sample: against the motion of the middle of each element. */
static void resisted(const look *w, const rod_mesh *m, int64_t at, double *F, double *size)
{
    const results *r = w->r;
    double dt = r->t[at] - r->t[at - 1];
    for (int i = 0; m->drag > 0 && i < 3 * 4 * m->ne; i++) {
        int e = i / 12, node = i % 12 / 3, k = i % 3, x = 3 * (m->first + 3 * e + node) + k;
        double way = r->track[at * r->ntrack + x] - r->track[(at - 1) * r->ntrack + x],
               f = m->drag * (m->s[3 * e + 3] - m->s[3 * e]) * (node % 3 ? 3.0 / 8 : 1.0 / 8) * way / dt;
        F[k] -= f;
        *size += fabs(f);
    }
}

/* Loads in the middle of the step that ends at a sample, and reactions of supports in that step. */
static void acting(look *w, int64_t at, double *F, double *size)
{
    const results *r = w->r;
    memset(w->force, 0, 6 * (size_t)w->N * sizeof *w->force);
    loads(w, 0.5 * (r->t[at - 1] + r->t[at]));
    memset(F, 0, 3 * sizeof *F);
    for (int i = 0; i < 6 * w->N; i++)
        if (i % 6 < 3) {
            F[i % 6] += w->force[i];
            *size += fabs(w->force[i]);
        }
    for (int i = 0; i < w->rp->nrod; i++)
        resisted(w, &w->x->mesh[i], at, F, size);
    for (int i = 0; i < 3 * w->x->nsupport; i++) {
        double f = r->track[at * r->ntrack + 3 * w->N + 6 * (i / 3) + i % 3];
        F[i % 3] += f;
        *size += fabs(f);
    }
}

/* Checks the momentum over two steps of the same length. */
static bool momentum_step(look *w, int64_t at, double floor)
{
    results *r = w->r;
    double h = r->t[at] - r->t[at - 1], before = r->t[at - 1] - r->t[at - 2], c[3][3], F[2][3], size = 0;
    if (!(h > 0) || fabs(h - before) > STEP_SAME * h)
        return true;
    for (int i = 0; i < 3; i++)
        centre(w, at - 2 + i, c[i]);
    acting(w, at - 1, F[0], &size);
    acting(w, at, F[1], &size);
    for (int k = 0; k < 3; k++) {
        double change = (c[2][k] - 2 * c[1][k] + c[0][k]) / h, mean = h * (F[0][k] + F[1][k]) / 2,
               slack = h * fabs(F[1][k] - F[0][k]);
        if (!(fabs(change - mean) <= slack + BALANCE_LOOSE * (fabs(change) + h * size) + floor / h))
            return results_fail(
                r, w->rp->rod[0].at,
                arena_printf(r->a, "momentum does not follow the forces at t = %.10g", r->t[at]));
    }
    return true;
}

/* Do supports move? The forces on nodes that they move are not contained in sums of reactions. */
static bool moved_by_supports(const look *w)
{
    const results *r = w->r;
    const double *end = r->track + (r->samples - 1) * r->ntrack;
    for (int i = 0; i < w->x->nsupport; i++)
        for (int k = 0; k < 3; k++)
            for (int64_t at = 1; at < r->samples; at++)
                if (r->track[at * r->ntrack + 3 * w->x->support[i] + k] != end[3 * w->x->support[i] + k])
                    return true;
    return false;
}

static void momentum(look *w)
{
    enum { LOOKS = 200 };
    const results *r = w->r;
    double mass = 0;
    for (int i = 0; i < w->rp->nload; i++)
        if (w->rp->load[i].follower)
            return;
    if (w->rp->npair || r->samples != r->count.steps + 1 || r->samples < 4 || moved_by_supports(w))
        return;
    for (int i = 0; i < w->rp->nrod; i++)
        mass += w->x->mesh[i].mass * w->x->mesh[i].length;
    int64_t stride = r->samples / LOOKS + 1;
    /* increments end at 1e-9 of the length */
    for (int64_t at = 2; at < r->samples; at += stride)
        if (!momentum_step(w, at, ROD_END * mass * longest(w)))
            return;
}

/* ---- the run ---- */
static bool all_finite(look *w)
{
    results *r = w->r;
    for (int64_t at = 0; at < r->samples; at++)
        for (int k = 0; k < r->ntrack; k++)
            if (!isfinite(r->track[at * r->ntrack + k]))
                return results_fail(r, w->rp->rod[0].at,
                                    arena_printf(r->a,
                                                 "a place or a force of the rods is not finite at t = %.10g",
                                                 r->t[at]));
    for (int i = 0; i < 4 * w->N; i++)
        if (!isfinite(w->x->q[i]) || (w->x->v && !isfinite(w->x->v[6 * (i / 4) + i % 4])))
            return results_fail(r, where_of(w, i / 4), "a frame or a velocity of the rods is not finite");
    return true;
}

/* Contacts press, and friction is within its bound. */
static bool touches_hold(look *w)
{
    results *r = w->r;
    for (int64_t i = 0; i < w->x->ntouch; i++) {
        const rod_touching *c = &w->x->touch[i];
        span where = r->prog->contact[w->rp->pair[c->pair].contact].at;
        const kernel *mu = &r->prog->contact[w->rp->pair[c->pair].contact].mu;
        double bound = 0, ft = norm3(c->ft);
        if (!isfinite(c->fn) || !isfinite(ft) || c->fn < 0)
            return results_fail(
                r, where,
                arena_printf(r->a, "a pair of points pulls with %.3g at t = %.10g", c->fn, r->t_end));
        if (r->prog->contact[w->rp->pair[c->pair].contact].friction != FRICTION_COULOMB || !mu->tape.nout)
            continue;
        evaluate(w, mu, r->t_end, c->a, c->sa, &bound);
        if (!(ft <= (1 + BALANCE_LOOSE) * bound * c->fn))
            return results_fail(r, where,
                                arena_printf(r->a, "friction passes its bound at t = %.10g: %.6g of %.6g",
                                             r->t_end, ft, bound * c->fn));
    }
    return true;
}

/* ---- overlaps in the states that were kept ---- */
/* A rod as straight pieces, PIECES for each element: positions, and their arc lengths. */
enum { PIECES = 8 };
typedef struct pieces {
    int n;
    double *x, *s, radius;
    double *middle, *reach; /* of each element: the ball around it */
} pieces;

/* r: places of all nodes */
static pieces pieces_of(const look *w, int rod, const double *r, arena *a)
{
    const rod_mesh *m = &w->x->mesh[rod];
    pieces p = { .n = PIECES * m->ne, .radius = m->radius };
    p.x = arena_array(a, double, 3 * (p.n + 1));
    p.s = arena_array(a, double, p.n + 1);
    p.middle = arena_array(a, double, 3 * m->ne);
    p.reach = arena_array(a, double, m->ne);
    for (int i = 0; i <= p.n; i++) {
        int e = i < p.n ? i / PIECES : m->ne - 1, node = 3 * e;
        double f[ROD_NODES], d[ROD_NODES];
        shape((double)(i - PIECES * e) / PIECES, f, d);
        for (int k = 0; k < ROD_NODES; k++) {
            p.s[i] += f[k] * m->s[node + k];
            for (int c = 0; c < 3; c++)
                p.x[3 * i + c] += f[k] * r[3 * (m->first + node + k) + c];
        }
    }
    for (int e = 0; e < m->ne; e++) {
        const double *first = p.x + 3 * PIECES * e;
        for (int c = 0; c < 3; c++)
            p.middle[3 * e + c] = first[3 * (PIECES / 2) + c];
        for (int i = 0; i <= PIECES; i++) {
            double far[3];
            for (int c = 0; c < 3; c++)
                far[c] = first[3 * i + c] - p.middle[3 * e + c];
            p.reach[e] = fmax(p.reach[e], norm3(far));
        }
    }
    return p;
}

static double clamped(double x)
{
    return fmin(fmax(x, 0), 1);
}

/* Distance of the pieces from a to a + 3 and from b to b + 3: the closest point on one for a point on the
   other, alternately. */
static double pieces_apart(const double *a, const double *b)
{
    double u[3], v[3], g[3], far[3];
    for (int c = 0; c < 3; c++) {
        u[c] = a[3 + c] - a[c];
        v[c] = b[3 + c] - b[c];
        g[c] = a[c] - b[c];
    }
    double uu = dot3(u, u), vv = dot3(v, v), uv = dot3(u, v), ug = dot3(u, g), vg = dot3(v, g);
    double across = uu * vv - uv * uv;
    double x = across > 0 ? clamped((uv * vg - vv * ug) / across) : 0;
    double y = vv > 0 ? clamped((uv * x + vg) / vv) : 0;
    x = uu > 0 ? clamped((uv * y - ug) / uu) : 0;
    for (int c = 0; c < 3; c++)
        far[c] = g[c] + x * u[c] - y * v[c];
    return norm3(far);
}

/* The length of rod between two of its pieces. */
static double between_pieces(const pieces *p, int i, int j)
{
    return fmax(p->s[i], p->s[j]) - fmin(p->s[i + 1], p->s[j + 1]);
}

/* where two rods overlap most, and how deep */
typedef struct overlap {
    double deep, sa, sb;
} overlap;

/* elements e of a and f of b; of one rod only what is far enough along it counts */
static void elements_overlap(const pieces *a, int e, const pieces *b, int f, bool same, overlap *most)
{
    double between[3], least = a->radius + b->radius;
    for (int c = 0; c < 3; c++)
        between[c] = a->middle[3 * e + c] - b->middle[3 * f + c];
    if (norm3(between) > a->reach[e] + b->reach[f] + least)
        return;
    for (int i = PIECES * e; i < PIECES * (e + 1); i++)
        for (int j = PIECES * f; j < PIECES * (f + 1); j++) {
            if (same && between_pieces(a, i, j) <= PIECES_PART * M_PI * a->radius)
                continue;
            double deep = least - pieces_apart(a->x + 3 * i, b->x + 3 * j);
            if (deep > most->deep)
                *most = (overlap){ deep, a->s[i], b->s[j] };
        }
}

/* one state of a pair of rods */
static bool pair_apart(look *w, const rod_pair *p, double t, const double *places, arena *a)
{
    results *r = w->r;
    pieces x = pieces_of(w, p->a, places, a), y = pieces_of(w, p->b, places, a);
    double radius = fmin(x.radius, y.radius);
    overlap most = { 0 };
    for (int e = 0; e < x.n / PIECES; e++)
        for (int f = p->a == p->b ? e : 0; f < y.n / PIECES; f++)
            elements_overlap(&x, e, &y, f, p->a == p->b, &most);
    if (!(most.deep > ROD_OVERLAP_MOST * radius))
        return true;
    return results_fail(
        r, r->prog->contact[p->contact].at,
        arena_printf(r->a,
                     "the rods overlap by %.2g of their radius at t = %.10g, s = %.3g and %.3g: "
                     "no state without it was found; a smaller h or more elements may help",
                     most.deep / radius, t, most.sa, most.sb));
}

/* Equilibria by multipliers: what they promise is checked to a part of the radius that no sag explains, in
   every state that was kept. */
static bool rods_apart(look *w, arena *a)
{
    results *r = w->r;
    if (strcmp(r->backend, "auglag") != 0)
        return true;
    for (int64_t at = 0; at <= r->samples; at++)
        for (int i = 0; i < w->rp->npair; i++) {
            bool end = at == r->samples; /* stored apart from the samples */
            const double *places = end ? w->x->r : r->track + at * r->ntrack;
            arena_pos mark = arena_mark(a);
            bool apart = w->rp->pair[i].what != TOUCH_RODS ||
                         pair_apart(w, &w->rp->pair[i], end ? r->t_end : r->t[at], places, a);
            arena_release(a, mark);
            if (!apart)
                return false;
        }
    return true;
}

static size_t widest(const results *r)
{
    const rod_program *rp = r->prog->rod;
    size_t most = 1;
    for (int i = 0; i < rp->nrod; i++)
        for (int k = 0; k < ROD_NUMBERS; k++)
            most = rp->rod[i].number[k].tape.nreg > most ? rp->rod[i].number[k].tape.nreg : most;
    for (int i = 0; i < rp->nload; i++) {
        most = rp->load[i].s.tape.nreg > most ? rp->load[i].s.tape.nreg : most;
        most = rp->load[i].value.tape.nreg > most ? rp->load[i].value.tape.nreg : most;
    }
    for (size_t i = 0; i < r->prog->ncontact; i++)
        most = r->prog->contact[i].mu.tape.nreg > most ? r->prog->contact[i].mu.tape.nreg : most;
    return most;
}

static void check(results *r, const void *ud, arena *a)
{
    look w = { .r = r, .x = r->rod, .rp = r->prog->rod };
    (void)ud;
    for (int i = 0; i < w.rp->nrod; i++)
        w.N += w.x->mesh[i].nn;
    w.force = arena_array(a, double, 6 * w.N);
    w.size = arena_array(a, double, 6 * w.N);
    w.near = arena_array(a, bool, w.N);
    w.support = arena_array(a, bool, w.N);
    w.part = arena_array(a, int, w.N);
    w.reg = arena_array(a, double, widest(r));
    w.coord = arena_array(a, double, w.rp->nrod);
    if (!all_finite(&w) || !touches_hold(&w))
        return;
    energy(&w);
    if (w.x->v)
        momentum(&w);
    else if (rods_apart(&w, a))
        balance(&w);
}

void rod_check(results *r, const run_options *o)
{
    if (r->status != RUN_FAILED && r->status != RUN_INTERRUPTED && r->rod && r->samples > 0 && !o->keep_going)
        results_scratch(r, check, NULL);
}
