/* rod_load: external forces on rods: dead loads, loads that follow the section, drag of a viscous motion,
   inertia. In a step of time, follower loads act in the mean of the frames at both ends, and dead moments act
   on the cay increment of the rotation. */
#include "rod_work.h"
#include <math.h>
#include <string.h>

/* ---- at a node ---- */
static void put_cross(const double *b, double *B) /* B += [b]x */
{
    B[1] -= b[2];
    B[2] += b[1];
    B[3] += b[2];
    B[5] -= b[0];
    B[6] -= b[1];
    B[7] += b[0];
}

/* In the frame of the section a dead moment M acts as R^T M, with derivative [R^T M]x; a follower moment is
   constant there. */
static void push_moment(rod_work *w, const rod_push *x, const double *M, double *res, double *block)
{
    bool follow = x->load->follower, half = follow && w->motion;
    double R[9], R0[9], b[3], minus[3], space[3] = { M[0], M[1], M[2] };
    quat_matrix(w->state.rot + 4 * x->node, R);
    quat_matrix(w->state.rot0 + 4 * x->node, R0);
    for (int k = 0; half && k < 3; k++)
        space[k] = dot3(R0 + 3 * k, M);
    for (int k = 0; k < 3; k++) {
        b[k] = R[k] * space[0] + R[3 + k] * space[1] + R[6 + k] * space[2];
        minus[k] = half ? -b[k] / 2 : -b[k];
        res[6 * x->node + 3 + k] -= half ? (M[k] + b[k]) / 2 : follow ? M[k] : b[k];
    }
    if (block && (half || !follow))
        put_cross(minus, block + 9 * x->node);
}

/* In space a follower force acts as R f, with derivative -R [f]x. */
static void push_force(rod_work *w, const rod_push *x, const double *f, double *res, double *block)
{
    double R[9] = { 1, 0, 0, 0, 1, 0, 0, 0, 1 }, R0[9], C[9] = { 0 }, part = w->motion ? 0.5 : 1;
    bool follow = x->load->follower;
    if (follow)
        quat_matrix(w->state.rot + 4 * x->node, R);
    if (follow && w->motion)
        quat_matrix(w->state.rot0 + 4 * x->node, R0);
    else
        memcpy(R0, R, sizeof R);
    for (int k = 0; k < 3; k++)
        res[6 * x->node + k] -= part * dot3(R + 3 * k, f) + (1 - part) * dot3(R0 + 3 * k, f);
    if (!block || !follow)
        return;
    put_cross(f, C);
    for (int k = 0; k < 9; k++)
        block[9 * x->node + k] += part * (R[3 * (k / 3)] * C[k % 3] + R[3 * (k / 3) + 1] * C[3 + k % 3] +
                                          R[3 * (k / 3) + 2] * C[6 + k % 3]);
}

static void load_part(const rod_work *w, double *f)
{
    for (int k = 0; w->grown.missing > 0 && k < 3; k++)
        f[k] *= 1 - w->grown.missing;
}

/* ---- along an element ---- */
static void push_along(rod_work *w, const rod_load *l, int e, double t, double *res, double *K)
{
    const rod_mesh *m = &w->mesh[l->rod];
    for (int g = 0; g < ROD_GAUSS; g++) {
        double N[4], f[3], x = rod_gauss_x[g], h = m->s[3 * e + 3] - m->s[3 * e], W = h * rod_gauss_w[g];
        rod_eval(w, &l->value, t, l->rod, m->s[3 * e] + x * h, f);
        load_part(w, f);
        if (l->follower) {
            rod_element_follow(m, e, w->state.rot, x, f, w->motion ? W / 2 : W, res, K);
            if (w->motion)
                rod_element_follow(m, e, w->state.rot0, x, f, W / 2, res, NULL);
            continue;
        }
        rod_shape_at(x, N, NULL);
        for (int i = 0; res && i < 4; i++)
            for (int k = 0; k < 3; k++)
                res[6 * i + k] -= W * N[i] * f[k];
    }
}

static void loads_put(rod_work *w, double t, double *res, double *moment, double *follow)
{
    for (int i = 0; i < w->ends.npush; i++) {
        const rod_push *x = &w->ends.push[i];
        const rod_mesh *m = &w->mesh[x->load->rod];
        double f[3];
        for (int e = 0; x->node < 0 && e < m->ne; e++)
            push_along(w, x->load, e, t, res + 6 * (m->first + 3 * e), NULL);
        if (x->node < 0)
            continue;
        rod_eval(w, &x->load->value, t, x->load->rod, 0, f);
        load_part(w, f);
        if (x->load->what == LOAD_MOMENT)
            push_moment(w, x, f, res, moment);
        else
            push_force(w, x, f, res, follow);
    }
}

/* ---- drag ---- */
/* The length of rod assigned to a node, as its weight in the drag of a viscous motion. */
static double drag_of(const rod_mesh *m, int i, int k)
{
    double a = i > 0 ? m->s[i - 1] : m->s[0], b = i + 1 < m->nn ? m->s[i + 1] : m->s[i];
    return (b - a) / 2 * (k < 3 ? 1 : 0.01 * m->length * m->length);
}

/* Drag against the motion since the start of the step; returns its work. */
static double drag_put(const rod_work *w, double *res)
{
    double work = 0;
    for (int r = 0; w->drag > 0 && r < w->rp->nrod; r++)
        for (int i = 0; i < w->mesh[r].nn; i++) {
            int node = w->mesh[r].first + i;
            double d[6];
            for (int k = 0; k < 3; k++)
                d[k] = w->state.pos[3 * node + k] - w->state.pos0[3 * node + k];
            quat_log(w->state.rot0 + 4 * node, w->state.rot + 4 * node, d + 3);
            for (int k = 0; k < 6; k++) {
                double f = w->drag * drag_of(&w->mesh[r], i, k) * d[k];
                if (res)
                    res[6 * node + k] += f;
                if (!w->ends.held[6 * node + k])
                    work += f * d[k];
            }
        }
    return work;
}

double rod_drag_work(const rod_work *w)
{
    return drag_put(w, NULL);
}

/* ---- loads and drag ---- */
void rod_loads(rod_work *w, double t, double *res)
{
    loads_put(w, t, res, NULL, NULL);
    drag_put(w, res);
}

rod_outside rod_outside_at(rod_work *w, double t)
{
    rod_outside o = { .t = t,
                      .force = arena_array(w->tmp, double, w->ndof),
                      .moment = arena_array(w->tmp, double, 9 * w->N),
                      .follow = arena_array(w->tmp, double, 9 * w->N) };
    loads_put(w, t, o.force, o.moment, o.follow);
    drag_put(w, o.force);
    return o;
}

/* Internal forces of an element: stiffness, and for motions in time inertia. */
void rod_element_own(rod_work *w, const rod_mesh *m, int e, const double *given, double *f, double *K)
{
    arena_tick(w->tmp, K ? 10000 : 3000);
    if (!w->motion) {
        rod_element(m, e, w->state.pos, w->state.rot, given, f, K, NULL);
        return;
    }
    rod_element_step(m, e, w->state.pos0, w->state.rot0, w->state.pos, w->state.rot, given, rod_part(w, m), f,
                     K);
    rod_inertia_put(w, m, e, f, K);
    rod_resist_put(w, m, e, f, K);
}

void rod_element_loaded(rod_work *w, const rod_mesh *m, int e, const rod_outside *out, const double *given,
                        double *f, double *K)
{
    double c = w->shift + w->drag;
    rod_element_own(w, m, e, given, f, K);
    for (int i = e ? 1 : 0; i < 4; i++) {
        int node = m->first + 3 * e + i;
        for (int k = 0; k < 6; k++)
            f[6 * i + k] += out->force[6 * node + k];
        for (int k = 0; k < 9; k++) {
            int col = 6 * i + 3 + k % 3;
            K[(6 * i + 3 + k / 3) * ROD_DOFS + col] += out->moment[9 * node + k];
            K[(6 * i + k / 3) * ROD_DOFS + col] += out->follow[9 * node + k];
        }
        for (int k = 0; c != 0 && k < 6; k++)
            K[(6 * i + k) * (ROD_DOFS + 1)] += c * drag_of(m, 3 * e + i, k);
    }
    for (int i = 0; i < w->ends.npush; i++)
        if (w->ends.push[i].node < 0 && w->ends.push[i].load->follower &&
            &w->mesh[w->ends.push[i].load->rod] == m)
            push_along(w, w->ends.push[i].load, e, out->t, NULL, K);
}
