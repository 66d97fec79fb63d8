/* rod_build: meshes, reference shapes, supports and loads of the rods of a program. */
#include "base/whole.h"
#include "rod_work.h"
#include "base/tolerances.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool rod_fail(rod_work *w, span at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *message = arena_vprintf(w->r->a, fmt, ap);
    va_end(ap);
    return results_fail(w->r, at, message);
}

void rod_eval(rod_work *w, const kernel *k, double t, int rod, double s, double *out)
{
    inputs in = { .t = t, .from = { [IN_PARAM] = w->r->param, [IN_COORD] = w->coord } };
    w->coord[rod] = s;
    tape_start(&k->tape, w->reg);
    kernel_run(k, &in, NULL, w->reg);
    for (uint32_t i = 0; i < k->tape.nout; i++)
        out[i] = w->reg[k->tape.out[i]];
}

static double number_of(rod_work *w, int rod, rod_number which, double otherwise)
{
    const kernel *k = &w->rp->rod[rod].number[which];
    double x = otherwise;
    if (k->tape.nout)
        rod_eval(w, k, 0, rod, 0, &x);
    return x;
}

/* ---- meshes: places of supports and loads are ends of elements ---- */
static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static bool place_add(rod_work *w, int rod, const kernel *k, span at, double *place, int *n)
{
    const rod_mesh *m = &w->mesh[rod];
    double s;
    rod_eval(w, k, 0, rod, 0, &s);
    if (!(s >= -ROD_PLACE * m->length && s <= (1 + ROD_PLACE) * m->length))
        return rod_fail(w, at, "the place s = %g is not on rod '%s', which goes from 0 to %g", s,
                        m->spec->name, m->length);
    place[(*n)++] = fmin(fmax(s, 0), m->length);
    return true;
}

static bool places(rod_work *w, int rod, double *place, int *n)
{
    const rod_mesh *m = &w->mesh[rod];
    *n = 0;
    place[(*n)++] = 0;
    place[(*n)++] = m->length;
    for (int i = 0; i < w->rp->nload; i++) {
        const rod_load *l = &w->rp->load[i];
        if (l->rod == rod && l->point && !place_add(w, rod, &l->s, l->at, place, n))
            return false;
    }
    for (int i = 0; i < w->rp->njoint; i++) {
        const rod_joint *j = &w->rp->joint[i];
        if ((j->a == rod && !place_add(w, rod, &j->sa, j->at, place, n)) ||
            (j->b == rod && !place_add(w, rod, &j->sb, j->at, place, n)))
            return false;
    }
    qsort(place, (size_t)*n, sizeof *place, by_value);
    int k = 0;
    for (int i = 0; i < *n; i++)
        if (i == 0 || place[i] - place[k - 1] > ROD_PLACE * m->length)
            place[k++] = place[i];
    place[k - 1] = m->length;
    *n = k;
    return true;
}

/* Integrals of `refine` from a up to each of n steps to b; element ends are placed at equal parts of it.
   False: `refine` is not positive. */
static bool shares(rod_work *w, int rod, double a, double b, int n, double *sum)
{
    const rod_spec *sp = w->mesh[rod].spec;
    sum[0] = 0;
    for (int k = 0; k < n; k++) {
        double s = a + (b - a) * (k + 0.5) / n, y = 1;
        if (sp->refine.tape.nout)
            rod_eval(w, &sp->refine, 0, rod, s, &y);
        if (!(y > 0 && isfinite(y)))
            return rod_fail(w, sp->refine_at, "refine of rod '%s' is %g at s = %.4g: it must be positive",
                            sp->name, y, s);
        sum[k + 1] = sum[k] + y * (b - a) / n;
    }
    return true;
}

/* Element ends in such a piece; the other nodes divide each element into three. */
static void piece_nodes(double a, double b, const double *sum, int n, int count, double *s)
{
    for (int j = 0, k = 0; j < count; j++) {
        double want = sum[n] * j / count;
        while (k + 1 < n && sum[k + 1] < want)
            k++;
        s[3 * j] = a + (b - a) * (k + (want - sum[k]) / (sum[k + 1] - sum[k])) / n;
    }
    s[3 * count] = b;
    for (int j = 0; j < 3 * count; j += 3)
        for (int i = 1; i < 3; i++)
            s[j + i] = s[j] + (s[j + 3] - s[j]) * i / 3;
}

static bool mesh(rod_work *w, int rod)
{
    rod_mesh *m = &w->mesh[rod];
    const rod_spec *sp = m->spec;
    int most = w->rp->nload + 2 * w->rp->njoint + 2;
    double *place = arena_array(w->tmp, double, most), all = 0, ne = number_of(w, rod, ROD_ELEMENTS, 40);
    int np, *count = arena_array(w->tmp, int, most);
    if (!(ne >= 1 && ne <= 1e6 && ne == floor(ne)))
        return rod_fail(w, sp->number_at[ROD_ELEMENTS],
                        "rod '%s' has %g elements: a whole number from 1 to 1000000 is needed", sp->name, ne);
    ne = w->o && w->o->finer > 0 ? round(ne * w->o->finer) : ne;
    if (!places(w, rod, place, &np))
        return false;
    int steps = sp->refine.tape.nout ? 20 * (int)ne : 1;
    double *sum = arena_array(w->tmp, double, (size_t)np *(size_t)(steps + 1));
    for (int i = 0; i + 1 < np; i++) {
        if (!shares(w, rod, place[i], place[i + 1], steps, sum + i * (steps + 1)))
            return false;
        all += sum[i * (steps + 1) + steps];
    }
    m->ne = 0;
    for (int i = 0; i + 1 < np; i++) {
        double k = floor(ne * sum[i * (steps + 1) + steps] / all + 0.5);
        m->ne += count[i] = (int)whole_clamp(k, 1, 1000000);
    }
    m->nn = 3 * m->ne + 1;
    m->first = w->N;
    w->N += m->nn;
    m->s = arena_array(w->a, double, m->nn);
    m->v0 = arena_array(w->a, double, 18 * m->ne);
    m->u0 = m->v0 + 9 * m->ne;
    for (int i = 0, k = 0; i + 1 < np; k += 3 * count[i++])
        piece_nodes(place[i], place[i + 1], sum + i * (steps + 1), steps, count[i], m->s + k);
    return true;
}

/* ---- reference shapes ---- */
static void shape_point(rod_work *w, int rod, double s, double *x)
{
    const rod_spec *sp = &w->rp->rod[rod];
    if (sp->shape == SHAPE_CURVE) {
        rod_eval(w, &sp->curve, 0, rod, s, x);
    } else if (sp->shape == SHAPE_HELIX) {
        double h[2];
        rod_eval(w, &sp->curve, 0, rod, 0, h);
        double b = h[1] / (2 * M_PI), c = hypot(h[0], b);
        x[0] = h[0] * cos(s / c);
        x[1] = h[0] * sin(s / c);
        x[2] = b * s / c;
    } else {
        x[0] = x[1] = 0;
        x[2] = s;
    }
}

/* Tangent by differences of sixth order, one-sided at the ends, so that the curve is evaluated only on the
   rod. */
static void shape_tangent(rod_work *w, int rod, double s, double *t)
{
    static const double mid[7] = { -1.0 / 60, 9.0 / 60, -45.0 / 60, 0, 45.0 / 60, -9.0 / 60, 1.0 / 60 };
    static const double end[7] = { -147.0 / 60, 360.0 / 60, -450.0 / 60, 400.0 / 60,
                                   -225.0 / 60, 72.0 / 60,  -10.0 / 60 };
    double L = w->mesh[rod].length, h = L / (40.0 * w->mesh[rod].ne), x[3];
    bool left = s<3 * h, right = s> L - 3 * h;
    t[0] = t[1] = t[2] = 0;
    for (int k = 0; k < 7; k++) {
        double at = left    ? s + k * h
                    : right ? s - k * h
                            : s + (k - 3) * h,
               c = (left    ? end[k]
                    : right ? -end[k]
                            : mid[k]) /
                   h;
        shape_point(w, rod, at, x);
        for (int i = 0; i < 3; i++)
            t[i] += c * x[i];
    }
}

/* The smallest rotation from a to b (both of length 1), as a quaternion. */
static void quat_between(const double *a, const double *b, double *q)
{
    double c = dot3(a, b);
    if (c < -1 + COS_OPPOSITE) { /* half a turn about any axis across */
        double e[3] = { fabs(a[0]) < 0.6, fabs(a[0]) >= 0.6, 0 }, x[3];
        cross3(a, e, x);
        double n = norm3(x);
        q[0] = 0;
        for (int i = 0; i < 3; i++)
            q[i + 1] = x[i] / n;
        return;
    }
    cross3(a, b, q + 1);
    q[0] = 1 + c;
    double n = sqrt(q[0] * q[0] + dot3(q + 1, q + 1));
    for (int i = 0; i < 4; i++)
        q[i] /= n;
}

static void reflect(const double *v, double *x)
{
    double vv = dot3(v, v), k = vv > 0 ? 2 * dot3(v, x) / vv : 0;
    for (int i = 0; i < 3; i++)
        x[i] -= k * v[i];
}

/* The first axis transported without roll: two reflections from node to node. */
static void carry(const double *xa, const double *ta, const double *xb, const double *tb, double *d1)
{
    double v[3], t[3], u[3];
    for (int i = 0; i < 3; i++) {
        v[i] = xb[i] - xa[i];
        t[i] = ta[i];
    }
    reflect(v, d1);
    reflect(v, t);
    for (int i = 0; i < 3; i++)
        u[i] = tb[i] - t[i];
    reflect(u, d1);
}

static void frame_of(const double *d1, const double *d3, double *q)
{
    double a[3], b[3], R[9], k = dot3(d1, d3);
    for (int i = 0; i < 3; i++)
        a[i] = d1[i] - k * d3[i];
    double n = norm3(a);
    for (int i = 0; i < 3; i++)
        a[i] /= n;
    cross3(d3, a, b);
    for (int i = 0; i < 3; i++) {
        R[3 * i] = a[i];
        R[3 * i + 1] = b[i];
        R[3 * i + 2] = d3[i];
    }
    quat_of_matrix(R, q);
}

static void quats_continuous(double *q, int n)
{
    for (int i = 1; i < n; i++) {
        double c = 0;
        for (int k = 0; k < 4; k++)
            c += q[4 * i + k] * q[4 * i - 4 + k];
        for (int k = 0; c < 0 && k < 4; k++)
            q[4 * i + k] *= -1;
    }
}

/* Frames along a line with the tangents T. */
static void shape_frames(rod_work *w, const rod_mesh *m, const double *T)
{
    double *x = w->state.pos + 3 * m->first, *q = w->state.rot + 4 * m->first, d1[3], e3[3] = { 0, 0, 1 },
           q0[4], R[9];
    quat_between(e3, T, q0);
    quat_matrix(q0, R);
    for (int k = 0; k < 3; k++)
        d1[k] = R[3 * k];
    frame_of(d1, T, q);
    for (int i = 1; i < m->nn; i++) {
        carry(x + 3 * i - 3, T + 3 * i - 3, x + 3 * i, T + 3 * i, d1);
        frame_of(d1, T + 3 * i, q + 4 * i);
    }
    quats_continuous(q, m->nn);
}

/* The rod gets the length of the line through its points, whose accuracy is limited. */
static bool shape_points(rod_work *w, int rod)
{
    rod_mesh *m = &w->mesh[rod];
    rod_spline *c = rod_spline_new(w->tmp, m->spec->points, m->spec->npoints);
    double *T = arena_array(w->tmp, double, 3 * m->nn), L = rod_spline_length(c);
    if (!(fabs(L / m->length - 1) < 0.01))
        return rod_fail(w, m->spec->shape_at,
                        "the line through the points of rod '%s' is %.6g long, and its length is %.6g",
                        m->spec->name, L, m->length);
    for (int i = 0; i < m->nn; i++)
        rod_spline_at(c, m->s[i] * L / m->length, w->state.pos + 3 * (m->first + i), T + 3 * i);
    shape_frames(w, m, T);
    return true;
}

static bool shape_curve(rod_work *w, int rod)
{
    rod_mesh *m = &w->mesh[rod];
    double *x = w->state.pos + 3 * m->first, *T = arena_array(w->tmp, double, 3 * m->nn);
    for (int i = 0; i < m->nn; i++) {
        double *t = T + 3 * i, n;
        shape_point(w, rod, m->s[i], x + 3 * i);
        shape_tangent(w, rod, m->s[i], t);
        n = norm3(t);
        if (!(fabs(n - 1) < TANGENT_UNIT))
            return rod_fail(
                w, m->spec->shape_at,
                "the curve of rod '%s' is not parametrised by arc length: |dx/ds| = %.4g at s = %g",
                m->spec->name, n, m->s[i]);
        for (int k = 0; k < 3; k++)
            t[k] /= n;
    }
    shape_frames(w, m, T);
    return true;
}

/* Shape from its curvature: R' = R [u0]x, r' = R e3, by steps that are exact for constant curvature, with
   Gauss's rule inside. */
static void shape_integrate(rod_work *w, int rod)
{
    enum { SUB = 8 };
    rod_mesh *m = &w->mesh[rod];
    double *x = w->state.pos + 3 * m->first, *q = w->state.rot + 4 * m->first;
    memset(x, 0, 3 * sizeof *x);
    q[0] = 1;
    q[1] = q[2] = q[3] = 0;
    for (int i = 1; i < m->nn; i++) {
        memcpy(x + 3 * i, x + 3 * i - 3, 3 * sizeof *x);
        memcpy(q + 4 * i, q + 4 * i - 4, 4 * sizeof *q);
        double h = (m->s[i] - m->s[i - 1]) / SUB;
        for (int j = 0; j < SUB; j++) {
            double s = m->s[i - 1] + j * h, a[3], b[3], ab[3], th[3], c = sqrt(3) / 12;
            rod_eval(w, &m->spec->curvature, 0, rod, s + h * (0.5 - 2 * c), a);
            rod_eval(w, &m->spec->curvature, 0, rod, s + h * (0.5 + 2 * c), b);
            cross3(a, b, ab);
            for (int k = 0; k < 3; k++)
                th[k] = h * (a[k] + b[k]) / 2 + c * h * h * ab[k];
            /* position along the arc of that rotation, with linear curvature in between */
            for (int g = 0; g < ROD_GAUSS; g++) {
                double qg[4], tg[3], R[9], y = rod_gauss_x[g];
                memcpy(qg, q + 4 * i, sizeof qg);
                for (int k = 0; k < 3; k++)
                    tg[k] = y * th[k] + h * y * (y - 1) / 2 * (b[k] - a[k]) / (4 * c);
                quat_turn(qg, tg);
                quat_matrix(qg, R);
                for (int k = 0; k < 3; k++)
                    x[3 * i + k] += h * rod_gauss_w[g] * R[3 * k + 2];
            }
            quat_turn(q + 4 * i, th);
        }
    }
}

/* Rotates the whole shape by the smallest angle that brings its axis to the given direction. */
static void turn_to_axis(rod_work *w, int rod, const rod_load *l)
{
    const rod_mesh *m = &w->mesh[rod];
    double s, at[4], R[9], a[3], b[3], turn[4], y[4];
    rod_eval(w, &l->s, 0, rod, 0, &s);
    rod_eval(w, &l->value, 0, rod, 0, b);
    rod_at(m, w->state.pos, w->state.rot, s, NULL, at);
    quat_matrix(at, R);
    double n = norm3(b);
    for (int k = 0; k < 3; k++) {
        a[k] = R[3 * k + 2];
        b[k] /= n;
    }
    if (!isfinite(n) || !(n > 0) || dot3(a, b) > 1 - COS_SAME)
        return;
    quat_between(a, b, turn);
    quat_matrix(turn, R);
    for (int i = m->first; i < m->first + m->nn; i++) {
        for (int k = 0; k < 3; k++)
            y[k] = dot3(R + 3 * k, w->state.pos + 3 * i);
        memcpy(w->state.pos + 3 * i, y, 3 * sizeof *y);
        quat_mul(turn, w->state.rot + 4 * i, y);
        memcpy(w->state.rot + 4 * i, y, sizeof y);
    }
}

/* Moves the whole shape to its support at the start. */
static void place_rod(rod_work *w, int rod)
{
    rod_mesh *m = &w->mesh[rod];
    double *x = w->state.pos + 3 * m->first, *q = w->state.rot + 4 * m->first, R[9], s;
    const rod_load *frame = NULL, *place = NULL, *axis = NULL;
    for (int i = w->rp->nload - 1; i >= 0; i--) {
        const rod_load *l = &w->rp->load[i];
        if (l->rod != rod)
            continue;
        if (l->what == LOAD_FRAME)
            frame = l;
        if (l->what == LOAD_AXIS)
            axis = l;
        if (l->what == LOAD_POSITION)
            place = l;
    }
    if (frame) {
        double F[9], goal[4], at[4], turn[4] = { 1, 0, 0, 0 }, a[3], b[3], back[4], tmp[4];
        rod_eval(w, &frame->s, 0, rod, 0, &s);
        rod_eval(w, &frame->value, 0, rod, 0, F);
        rod_at(m, w->state.pos, w->state.rot, s, NULL, at);
        quat_of_matrix(F, goal);
        bool rigid = m->spec->shape == SHAPE_STRAIGHT || m->spec->curvature.tape.nout;
        quat_matrix(at, R);
        for (int k = 0; k < 3; k++) {
            a[k] = R[3 * k + 2];
            b[k] = F[3 * k + 2];
        }
        double back0[4] = { at[0], -at[1], -at[2], -at[3] };
        if (rigid)
            quat_mul(goal, back0, turn);
        else if (dot3(a, b) < 1 - COS_SAME)
            quat_between(a, b, turn);
        quat_matrix(turn, R);
        for (int i = 0; i < m->nn; i++) {
            double y[3];
            for (int k = 0; k < 3; k++)
                y[k] = R[3 * k] * x[3 * i] + R[3 * k + 1] * x[3 * i + 1] + R[3 * k + 2] * x[3 * i + 2];
            memcpy(x + 3 * i, y, sizeof y);
            quat_mul(turn, q + 4 * i, tmp);
            memcpy(q + 4 * i, tmp, sizeof tmp);
        }
        rod_at(m, w->state.pos, w->state.rot, s, NULL, at); /* only a roll remains */
        memcpy(back, at, sizeof back);
        double th[3];
        quat_log(at, goal, th);
        th[0] = th[1] = 0;
        for (int i = 0; !rigid && i < m->nn; i++)
            quat_turn(q + 4 * i, th);
    }
    if (axis && !frame)
        turn_to_axis(w, rod, axis);
    if (place) {
        double want[3], have[3];
        rod_eval(w, &place->s, 0, rod, 0, &s);
        rod_eval(w, &place->value, 0, rod, 0, want);
        rod_at(m, w->state.pos, w->state.rot, s, have, NULL);
        for (int i = 0; i < m->nn; i++)
            for (int k = 0; k < 3; k++)
                x[3 * i + k] += want[k] - have[k];
    }
}

static bool curvature_fits(rod_work *w, int rod)
{
    const rod_mesh *m = &w->mesh[rod];
    for (int g = 0; g < 3 * m->ne; g++) {
        double k = hypot(m->u0[3 * g], m->u0[3 * g + 1]),
               r = m->radii ? fmax(m->radii[g], m->radii[g + 1]) : m->radius;
        if (r * k > 1)
            return rod_fail(w, m->spec->number_at[ROD_RADIUS],
                            "the radius %g of rod '%s' is larger than its curvature %.4g at s = %.4g allows",
                            r, m->spec->name, k, m->s[3 * (g / 3)]);
    }
    return true;
}

/* Natural strains of a rod that starts from another shape: the given curvature, and no shear. The shear of a
   curve through nodes would point to one side of the section, and rotate a round rod that is free to roll. */
static void natural(rod_work *w, int rod)
{
    rod_mesh *m = &w->mesh[rod];
    int total = 0, at = 0;
    for (int i = 0; i < w->rp->nrod; i++) {
        if (i < rod)
            at += 18 * w->mesh[i].ne;
        total += 18 * w->mesh[i].ne;
    }
    if (!w->goal0) {
        w->goal0 = arena_array(w->a, double, total);
        w->start0 = arena_array(w->a, double, total);
    }
    for (int k = 0; k < 18 * m->ne; k++)
        w->start0[at + k] = w->goal0[at + k] = m->v0[k];
    for (int e = 0; m->spec->shape != SHAPE_STRAIGHT && m->spec->curvature.tape.nout && e < m->ne; e++)
        for (int g = 0; g < ROD_GAUSS; g++) {
            double *v = w->goal0 + at + 3 * (3 * e + g);
            v[0] = v[1] = 0;
            rod_eval(w, &m->spec->curvature, 0, rod,
                     m->s[3 * e] + rod_gauss_x[g] * (m->s[3 * e + 3] - m->s[3 * e]), v + 9 * m->ne);
        }
}

static bool shape(rod_work *w, int rod)
{
    rod_mesh *m = &w->mesh[rod];
    bool bent = m->spec->curvature.tape.nout;
    if (bent && m->spec->shape == SHAPE_STRAIGHT)
        shape_integrate(w, rod);
    else if (m->spec->shape == SHAPE_POINTS ? !shape_points(w, rod) : !shape_curve(w, rod))
        return false;
    place_rod(w, rod);
    rod_reference(m, w->state.pos, w->state.rot);
    return curvature_fits(w, rod);
}

/* ---- supports and loads ---- */
int rod_node_at(const rod_mesh *m, double s)
{
    int best = 0;
    for (int i = 0; i < m->nn; i += 3)
        if (fabs(m->s[i] - s) < fabs(m->s[best] - s))
            best = i;
    return m->first + best;
}

static void hold_add(rod_work *w, const rod_load *l, int node)
{
    rod_hold *h = &w->ends.hold[w->ends.nhold++];
    static const int first
        [] = { [LOAD_POSITION] = 0, [LOAD_FRAME] = 3, [LOAD_AXIS] = 3, [LOAD_ROLL] = 5, [LOAD_HINGE] = 3 },
   count[] = { [LOAD_POSITION] = 3, [LOAD_FRAME] = 3, [LOAD_AXIS] = 2, [LOAD_ROLL] = 1, [LOAD_HINGE] = 2 };
    double R[9];
    *h = (rod_hold){ .load = l, .node = node };
    if (l->what == LOAD_POSITION)
        memcpy(h->start, w->state.pos + 3 * node, 3 * sizeof(double));
    else
        memcpy(h->start, w->state.rot + 4 * node, 4 * sizeof(double));
    quat_matrix(w->state.rot + 4 * node, R);
    for (int k = 0; l->what == LOAD_AXIS && k < 3; k++)
        h->start[k] = R[3 * k + 2];
    if (l->what == LOAD_HINGE)
        rod_eval(w, &l->value, 0, l->rod, 0, h->start);
    for (int k = 0; k < count[l->what]; k++)
        w->ends.held[6 * node + first[l->what] + k] = 1;
    if (l->what == LOAD_ROLL && !w->ends.tilt)
        w->ends.tilt = arena_array(w->a, double, 2 * w->N);
}

static void supports(rod_work *w)
{
    w->ends.hold = arena_array(w->a, rod_hold, w->rp->nload);
    w->ends.push = arena_array(w->a, rod_push, w->rp->nload);
    for (int i = 0; i < w->rp->nload; i++) {
        const rod_load *l = &w->rp->load[i];
        double s;
        rod_eval(w, &l->s, 0, l->rod, 0, &s);
        int node = rod_node_at(&w->mesh[l->rod], s);
        if (l->what < LOAD_MOMENT)
            hold_add(w, l, node);
        else if (l->what == LOAD_MOMENT || l->what == LOAD_FORCE)
            w->ends.push[w->ends.npush++] = (rod_push){ l, l->point ? node : -1 };
        w->moments = w->lasting = w->lasting || l->what == LOAD_MOMENT || l->follower;
    }
}

static uint32_t most_registers(const rod_program *rp)
{
    uint32_t n = 1;
#define MOST(k)            \
    if ((k).tape.nreg > n) \
    n = (k).tape.nreg
    for (int i = 0; i < rp->nrod; i++) {
        const rod_spec *s = &rp->rod[i];
        for (int k = 0; k < ROD_NUMBERS; k++)
            MOST(s->number[k]);
        MOST(s->stiffness);
        MOST(s->bending);
        MOST(s->inertia);
        MOST(s->velocity);
        MOST(s->spin);
        MOST(s->curve);
        MOST(s->curvature);
        MOST(s->refine);
        MOST(s->growth);
    }
    for (int i = 0; i < rp->nload; i++) {
        MOST(rp->load[i].s);
        MOST(rp->load[i].value);
    }
    for (int i = 0; i < rp->njoint; i++) {
        MOST(rp->joint[i].sa);
        MOST(rp->joint[i].sb);
        MOST(rp->joint[i].axis);
    }
    for (int i = 0; i < rp->npair; i++)
        MOST(rp->pair[i].body);
#undef MOST
    return n;
}

/* Contact uses one radius for each rod. */
static bool radii_alike(rod_work *w)
{
    for (int i = 0; i < w->rp->npair; i++)
        for (int k = 0; k < 2; k++) {
            const rod_pair *p = &w->rp->pair[i];
            const rod_mesh *m = &w->mesh[k && p->b >= 0 ? p->b : p->a];
            for (int j = 0; m->radii && j < m->nn; j++)
                if (m->radii[j] < m->radius * (1 - FACTOR_SAME))
                    return rod_fail(w, w->p->contact[p->contact].at,
                                    "rod '%s' may not touch: its radius changes along it, and contact needs "
                                    "the same radius all along",
                                    m->spec->name);
        }
    return true;
}

/* Do bodies that rods touch have a size and a direction? */
static bool bodies_sound(rod_work *w)
{
    for (int i = 0; i < w->rp->npair; i++) {
        const rod_pair *p = &w->rp->pair[i];
        span at = w->p->contact[p->contact].at;
        double b[7];
        if (p->what == TOUCH_RODS)
            continue;
        rod_eval(w, &p->body, 0, 0, 0, b);
        if (p->what != TOUCH_SPHERE && !(norm3(b + 3) > 0 && isfinite(norm3(b + 3))))
            return rod_fail(w, at, "the %s has no direction",
                            p->what == TOUCH_PLANE ? "half-space" : "cylinder");
        if (p->what != TOUCH_PLANE && !(b[6] > 0 && isfinite(b[6])))
            return rod_fail(w, at, "the radius of the %s is %g: it must be positive",
                            p->what == TOUCH_SPHERE ? "ball" : "cylinder", b[6]);
    }
    return true;
}

bool rod_build(rod_work *w)
{
    int n = w->rp->nrod;
    w->mesh = arena_array(w->a, rod_mesh, n);
    w->coord = arena_array(w->a, double, n);
    w->reg = arena_array(w->a, double, most_registers(w->rp));
    for (int i = 0; i < n; i++)
        if (!rod_section(w, i) || !mesh(w, i) || !rod_section_along(w, i) || !rod_lumps(w, i))
            return false;
    if (!radii_alike(w) || !bodies_sound(w))
        return false;
    w->ndof = 6 * w->N;
    w->state.pos = arena_array(w->a, double, 3 * w->N);
    w->state.rot = arena_array(w->a, double, 4 * w->N);
    w->state.pos0 = arena_array(w->a, double, 3 * w->N);
    w->state.rot0 = arena_array(w->a, double, 4 * w->N);
    w->state.pos1 = arena_array(w->a, double, 3 * w->N);
    w->state.rot1 = arena_array(w->a, double, 4 * w->N);
    w->res = arena_array(w->a, double, w->ndof);
    w->dx = arena_array(w->a, double, w->ndof);
    w->way = arena_array(w->a, double, w->ndof);
    w->state.linked = arena_array(w->a, double, 3 * w->N);
    w->given = arena_array(w->a, double, 6 * w->N);
    w->ends.held = arena_array(w->a, uint8_t, w->ndof);
    bool bent = false;
    for (int i = 0; i < n; i++) {
        if (!shape(w, i))
            return false;
        bent = bent || (w->mesh[i].spec->curvature.tape.nout && w->mesh[i].spec->shape != SHAPE_STRAIGHT);
    }
    for (int i = 0; bent && i < n; i++)
        natural(w, i);
    if (!rod_grow_new(w))
        return false;
    if (!rod_ties_meet(w))
        return false;
    supports(w);
    if (!rod_ties_new(w))
        return false;
    for (int i = 0; i < n; i++) {
        const rod_mesh *m = &w->mesh[i];
        w->scale = fmax(w->scale, fmax(m->A[0], fmax(m->A[4], m->A[8])) / (m->length * m->length));
    }
    w->unit = exp2(floor(log2(rod_length(w))));
    return true;
}

/* ---- motions that no support prevents ---- */
/* Rigid motions a + b x (x - c) that move no support of a rod: found one by one by elimination. */
bool rod_supported(rod_work *w)
{
    static const char *const axis[] = { "first", "second", "third" };
    if (w->ties)
        return rod_tied_supported(w);
    for (int rod = 0; rod < w->rp->nrod; rod++) {
        const rod_mesh *m = &w->mesh[rod];
        double row[64][6], L = m->length;
        const double *c = w->state.pos + 3 * m->first;
        int n = 0, rank = 0, lead[6], free = -1;
        bool used[6] = { false };
        for (int i = 0; i < w->ends.nhold && n + 3 <= 64; i++) {
            const rod_hold *h = &w->ends.hold[i];
            if (h->load->rod != rod)
                continue;
            const double *x = w->state.pos + 3 * h->node;
            double d[3] = { (x[0] - c[0]) / L, (x[1] - c[1]) / L, (x[2] - c[2]) / L };
            double R[9];
            quat_matrix(w->state.rot + 4 * h->node, R);
            int from = h->load->what == LOAD_ROLL ? 2 : 0, to = h->load->what == LOAD_AXIS ? 2 : 3;
            for (int k = from; k < to; k++, n++) {
                memset(row[n], 0, sizeof row[n]);
                if (h->load->what != LOAD_POSITION) {
                    for (int j = 0; j < 3; j++)
                        row[n][3 + j] = R[3 * j + k];
                    continue;
                }
                int p = (k + 1) % 3, q = (k + 2) % 3; /* (b x d)_k = b_p d_q - b_q d_p */
                row[n][k] = 1;
                row[n][3 + p] = d[q];
                row[n][3 + q] = -d[p];
            }
        }
        for (int col = 0; col < 6 && rank < n; col++) {
            int best = rank;
            for (int i = rank; i < n; i++)
                if (fabs(row[i][col]) > fabs(row[best][col]))
                    best = i;
            if (fabs(row[best][col]) < RANK_DIRECTIONS)
                continue;
            for (int k = 0; k < 6; k++) {
                double y = row[rank][k];
                row[rank][k] = row[best][k];
                row[best][k] = y;
            }
            for (int i = 0; i < n; i++) {
                double y = row[i][col] / row[rank][col];
                for (int k = 0; i != rank && k < 6; k++)
                    row[i][k] -= y * row[rank][k];
            }
            used[col] = true;
            lead[rank++] = col;
        }
        (void)lead;
        for (int k = 5; k >= 0; k--)
            if (!used[k])
                free = k;
        if (free < 0)
            continue;
        double b[3] = { 0, 0, 0 };
        if (free >= 3)
            b[free - 3] = 1;
        for (int i = 0; i < rank; i++)
            if (lead[i] >= 3)
                b[lead[i] - 3] = -row[i][free] / row[i][lead[i]];
        if (free < 3)
            return rod_fail(w, m->spec->at,
                            "nothing holds rod '%s': it is free to move along the %s axis; give position or "
                            "frame at a place on it",
                            m->spec->name, axis[free]);
        return rod_fail(w, m->spec->at,
                        "nothing holds rod '%s' against turning about [%.3g, %.3g, %.3g] through its start; "
                        "give a frame at a place on it",
                        m->spec->name, b[0] + 0.0, b[1] + 0.0, b[2] + 0.0);
    }
    return true;
}
