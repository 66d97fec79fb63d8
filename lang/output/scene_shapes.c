/* scene_shapes: the shapes of what is drawn, and where they are at a time.  A shape belongs to the part that
   carries it, or to the degree of freedom that is its place; one that stands in a constraint, or has no
   place, is fixed. */
#include <math.h>
#include <string.h>
#include "base/rotation.h"
#include "results/session_view.h"
#include "scene.h"

static const double eye[9] = { 1, 0, 0, 0, 1, 0, 0, 0, 1 };

static bool is_carried(const shape_info *s)
{
    return s->of >= 0 && s->pose.tape.nout;
}

/* ---- places ---- */

void solids_move(scene *m, double t)
{
    const results *r = m->s->last->r;
    inputs in;
    if (!m->seen)
        return;
    size_t n = (size_t)r->prog->nq;
    arena_pos mark = arena_mark(m->s->answer);
    double *q = arena_array(m->s->answer, double, n + 1), *v = arena_array(m->s->answer, double, n + 1);
    state_read(m->s->answer, r, &in, q, v, t);
    shapes_place(m->seen, &in);
    arena_release(m->s->answer, mark);
}

/* an attitude between two samples: their mean, by weights, made a rotation again */
static void attitude_at(const scene *m, const double *samples, double t, double *A)
{
    const results *r = m->s->last->r;
    int64_t k = sample_before(r->t, r->samples, t), next = k + 1 < r->samples ? k + 1 : k;
    double w = r->t[next] > r->t[k] ? fmin(fmax((t - r->t[k]) / (r->t[next] - r->t[k]), 0), 1) : 0;
    for (int i = 0; i < 9; i++)
        A[i] = (1 - w) * samples[9 * k + i] + w * samples[9 * next + i];
    rotation_mend(A);
}

body_pose solid_pose(const scene *m, size_t k, double t)
{
    const solid *s = &m->solids.at[k];
    body_pose at = { .p = { 0 } };
    if (s->of)
        return m->seen->at[s->number][s->inst];
    mover_place(m, (size_t)s->body, t, at.p);
    attitude_at(m, m->all.at[s->body].attitude, t, at.A);
    return at;
}

void solid_point(const body_pose *at, const double *y, double *x)
{
    for (int i = 0; i < 3; i++)
        x[i] = at->p[i] + at->A[3 * i] * y[0] + at->A[3 * i + 1] * y[1] + at->A[3 * i + 2] * y[2];
}

/* ---- what is known of a shape in its own frame ---- */

const double *solid_table(const scene *m, const solid *s)
{
    return m->s->last->r->param + s->of->table + s->inst * s->of->size;
}

/* the matrix that maps a ball of radius 1 to an ellipsoid y.A y <= 1: the inverse of the transposed root of A
 */
void ellipsoid_map(const shape_info *s, const double *numbers, double *A, double *M)
{
    int n = s->dim;
    double L[9] = { 0 };
    const double *of = numbers + n + 1;
    memcpy(A, eye, sizeof eye);
    memcpy(M, eye, sizeof eye);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            A[3 * i + j] = of[n * i + j];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j <= i; j++) {
            double x = A[3 * i + j];
            for (int k = 0; k < j; k++)
                x -= L[3 * i + k] * L[3 * j + k];
            L[3 * i + j] = i == j ? sqrt(fmax(x, 0)) : x / L[3 * j + j];
        }
    for (int c = 0; c < 3; c++) /* L^T M = 1 */
        for (int i = 2; i >= 0; i--) {
            double x = eye[3 * i + c];
            for (int k = i + 1; k < 3; k++)
                x -= L[3 * k + i] * M[3 * k + c];
            M[3 * i + c] = x / L[3 * i + i];
        }
}

/* how far it reaches from its own origin */
static double solid_reach(const scene *m, const solid *s)
{
    const double *point = solid_table(m, s);
    int n = s->of->dim;
    double far = 0, A[9], M[9], round = 0;
    for (int k = 0; k < s->of->npoint; k++, point += n + 1) {
        double y2 = 0;
        for (int i = 0; i < n; i++)
            y2 += point[i] * point[i];
        far = fmax(far, sqrt(y2) + (s->of->kind == SHAPE_ELLIPSOID ? 0 : point[n]));
    }
    if (s->of->kind == SHAPE_ELLIPSOID) {
        ellipsoid_map(s->of, solid_table(m, s), A, M);
        for (int k = 0; k < 9; k++)
            round += k < 6 || n == 3 ? M[k] * M[k] : 0;
    }
    return far + sqrt(round);
}

/* ---- which shapes are drawn ---- */

static bool is_at(const scene *m, size_t body, const solid *s, double t)
{
    double x[3], far = 0, size = 0;
    const body_pose at = m->seen->at[s->number][s->inst];
    mover_place(m, body, t, x);
    for (int i = 0; i < 3; i++) {
        far = fmax(far, fabs(x[i] - at.p[i]));
        size = fmax(size, fabs(x[i]));
    }
    return far <= 1e-9 * size;
}

/* the part that carries it; of the model itself the first thing that is where the shape is, at two times */
static int body_of(scene *m, const solid *s)
{
    const results *r = m->s->last->r;
    const mclass *c = m->s->last->of->m->classes.at[s->of->of];
    double times[2] = { r->t[0], r->t[r->samples - 1] };
    for (size_t k = 0; k < m->all.n; k++) {
        const mover *b = &m->all.at[k];
        if (b->of == c && b->inst == s->inst)
            return (int)k;
        if (s->of->of || b->of || b->line || b->n != s->of->dim)
            continue;
        bool here = true;
        for (int i = 1; i >= 0 && here; i--) {
            solids_move(m, times[i]);
            here = is_at(m, k, s, times[i]);
        }
        if (here)
            return (int)k;
    }
    return -1;
}

static void solid_add(scene *m, solid s)
{
    if (is_carried(s.of)) {
        s.body = body_of(m, &s);
        if (s.body < 0 && !m->whole)
            return;
    }
    s.reach = solid_reach(m, &s);
    if (s.body >= 0) {
        mover *b = &m->all.at[s.body];
        b->shaped = true;
        b->reach = fmax(b->reach, s.reach);
    }
    *vec_push(m->s->tmp, &m->solids) = s;
}

void scene_solids(scene *m)
{
    const results *r = m->s->last ? m->s->last->r : NULL;
    if (m->solids.n || !r || !r->samples || !m->all.n || !m->s->last->of->m)
        return;
    m->seen = shapes_seen(m->s->tmp, r->prog, r->param);
    for (size_t k = 0; m->seen && k < r->prog->shapes.n; k++)
        for (int32_t i = 0; i < r->prog->shapes.at[k].instances && m->solids.n < SCENE_MOST; i++)
            solid_add(m, (solid){ .of = &r->prog->shapes.at[k],
                                  .number = k,
                                  .inst = i,
                                  .body = -1,
                                  .fixed = !is_carried(&r->prog->shapes.at[k]) });
    for (size_t k = 0; k < m->all.n && m->solids.n < SCENE_MOST; k++)
        if (m->all.at[k].attitude && !m->all.at[k].shaped)
            *vec_push(m->s->tmp, &m->solids) = (solid){ .body = (int)k };
}

/* ---- half-spaces ---- */

static bool facing(const contact_family *f, const inputs *in, const int32_t *ix, double *reg, wall_plane *out)
{
    int n = (int)f->points.tape.nout / 2;
    *out = (wall_plane){ 0 };
    tape_start(&f->gap.tape, reg);
    kernel_run(&f->gap, in, ix, reg);
    double gap = reg[f->gap.tape.out[0]];
    tape_start(&f->points.tape, reg);
    kernel_run(&f->points, in, ix, reg);
    for (int i = 0; i < n; i++) {
        out->n[i] = reg[f->points.tape.out[n + i]];
        out->level += out->n[i] * reg[f->points.tape.out[i]];
    }
    out->level -= gap;
    return isfinite(out->level);
}

bool halfspace_of(const scene *m, const contact_family *f, const inputs *in, double *q, double *reg,
                  wall_plane *out)
{
    int32_t ix[MAX_INDEX] = { 0 };
    wall_plane moved;
    if (!f->points.tape.nout || f->pair.touch || !f->gap.tape.nout || f->points.where ||
        (f->over.n && !index_first(&f->over, ix)) || !facing(f, in, ix, reg, out))
        return false;
    /* it is one when it stays where it is while the body moves */
    size_t n = (size_t)m->s->last->r->prog->nq;
    double size = 1 + fabs(out->level), far = 0;
    double *was = arena_array(m->s->tmp, double, n);
    memcpy(was, q, n * sizeof *q);
    for (size_t k = 0; k < n; k++)
        q[k] += 0.1 * sin((double)(k + 1));
    bool finite = facing(f, in, ix, reg, &moved);
    memcpy(q, was, n * sizeof *q);
    for (int i = 0; i < 3; i++)
        far = fmax(far, fabs(moved.n[i] - out->n[i]));
    return finite && fmax(far, fabs(moved.level - out->level)) <= 1e-9 * size;
}
