/* session_animate: animate("a.svg", p, q, ...) draws a motion in the plane as an SVG that moves by itself, or
   as a GIF.  A thing is a family of dofs in the plane (its components come in pairs), a lone dof, which moves
   up and down, a part with a place p (a disk with its radius, a box with its sides; a part with a single
   coordinate moves up and down), a point [x, y] of formulas, a list of points, which is a line through them,
   or a rod: of one that moves in time the centreline is seen from aside, of another that at the end of the
   run from all sides.  Walls are where the gap of a constraint of one body alone is zero at the time of the
   frame. */
#include <math.h>
#include <string.h>
#include "base/whole.h"
#include "program/turns.h"
#include "session_output.h"
#include "results/session_view.h"

enum {
    FRAMES = 240,
    WIDE = 640,
    WALL_CELLS = 60,
    WALL_MEMBERS = 64,
    WALL_FRAMES = 60,
    WALLS = 4000,
    MOST = 2000,
    ROD_CORNERS = 120,
    ROD_SECONDS = 8
};

/* line: of which it is a corner, or 0; space: a corner of a rod, in space */
typedef struct {
    value v[2];
    int n;
    double r, box[2];
    value angle;
    bool turns;
    int line;
    const double *space;
} mover;
typedef struct {
    double x[4];
} wall;
typedef vec(wall) wall_list;
/* moving: the walls */
typedef struct {
    session *s;
    vec(mover) all;
    wall_list walls;
    double radius, pitch;
    const mclass *kind; /* of the parts that were read last, and the name of their radius or NULL */
    const char *kind_radius;
    int lines;
    bool bad, moving;
} scene;

/* ---- what moves ---- */

static bool is_number(const value *v)
{
    return (v->kind == V_SERIES && v->series.n > 0) || (v->kind == V_NUM && !v->num.rank && !v->num.r);
}

static mover *mover_add(scene *m, const value *x)
{
    mover *k = vec_push(m->s->tmp, &m->all);
    *k = (mover){ .v = { *x }, .n = 1, .r = m->radius };
    return k;
}

static void mover_put(void *ud, const char *index, const value *part)
{
    scene *m = ud;
    (void)index;
    if (!is_number(part)) {
        m->bad = true;
        return;
    }
    mover *last = m->all.n ? &m->all.at[m->all.n - 1] : NULL;
    if (last && last->n == 1) {
        last->v[1] = *part;
        last->n = 2;
        return;
    }
    mover_add(m, part);
}

static bool member_of(session *s, const value *v, const char *name, value *out)
{
    scope *in = v->object.in;
    size_t errors = s->d->errors, messages = s->d->list.n;
    bool found = in && in->find && in->find(in, &s->ev, sym_str(s->names, name), SPAN_NONE, out) == LOOK_YES;
    s->d->errors = errors;
    s->d->list.n = messages;
    return found;
}

static bool member_number(session *s, const value *v, const char *name, double *x)
{
    value y;
    return member_of(s, v, name, &y) && v_scalar(&y, x);
}

/* ---- radii ---- */

enum { RADIUS_MEMBERS = 4096 };

/* Bases of rotations of a state as it is kept, whose turns are then 0; NULL: there are none. */
static const double *bases_of(arena *a, const program *p, double *q)
{
    double *base = p->rotations.n ? arena_array(a, double, 3 * (size_t)p->nq) : NULL;
    if (base)
        turns_take(p, q, base);
    return base;
}

/* by how much each gap changes when the parameters change: -1 for one radius, -2 for two alike that meet */
static bool gap_shrinks(session *s, const contact_family *f, const double *param, double step)
{
    const results *r = s->last->r;
    const double *was = r->param;
    inputs in = { .t = r->t[0] };
    int32_t ix[MAX_INDEX] = { 0 };
    if (!f->gap.tape.nout || f->gap.where || (f->over.n && !index_first(&f->over, ix)))
        return false;
    size_t n = (size_t)r->prog->nq;
    double *q = arena_array(s->tmp, double, n), *v = arena_array(s->tmp, double, n);
    double *reg = arena_array(s->tmp, double, f->gap.tape.nreg);
    for (size_t k = 0; k < n; k++) {
        q[k] = results_q(r, (int32_t)k, in.t);
        v[k] = results_v(r, (int32_t)k, in.t);
    }
    in.from[IN_BASE] = bases_of(s->tmp, r->prog, q);
    in.from[IN_Q] = q;
    in.from[IN_V] = v;
    int members = 0;
    for (bool more = true; more && members < RADIUS_MEMBERS;
         members++, more = f->over.n && index_next(&f->over, ix)) {
        double gap[2];
        for (int k = 0; k < 2; k++) {
            in.from[IN_PARAM] = k ? param : was;
            tape_start(&f->gap.tape, reg);
            kernel_run(&f->gap, &in, ix, reg);
            gap[k] = reg[f->gap.tape.out[0]];
        }
        double rate = (gap[1] - gap[0]) / step;
        if (fabs(rate + 1) < 1e-6 || fabs(rate + 2) < 1e-6)
            return true;
    }
    return false;
}

/* A name alone makes no radius: it may be that of a bowl, or a resistance.  A radius is a parameter by which
   a gap becomes smaller, as much as the parameter becomes larger; or that of a disk. */
static bool is_radius(session *s, const mclass *c, sym name)
{
    const mdecl *d = class_find(c, name);
    const built *b = s->last ? s->last->of : NULL;
    if (!b || !d || d->kind != DECL_PARAM || d->param->rank || d->param->offset < 0)
        return false;
    if (!strcmp(c->name, "disk"))
        return true;
    const program *p = b->p;
    const results *r = s->last->r;
    double largest = 0;
    if (!r->samples || !p->nq)
        return false;
    arena_pos mark = arena_mark(s->tmp);
    double *param = arena_array(s->tmp, double, p->nparam);
    bool *set = arena_array(s->tmp, bool, p->nparam), found = false;
    memcpy(param, r->param, (size_t)p->nparam * sizeof *param);
    for (int32_t k = 0; k < b->m->nparam; k++)
        set[k] = true;
    double *x = param + d->param->offset;
    for (int32_t k = 0; k < c->ninst; k++)
        largest = fmax(largest, fabs(x[k * d->param->size]));
    double step = largest / 1024;
    for (int32_t k = 0; k < c->ninst; k++)
        x[k * d->param->size] += step;
    program_params(p, set, param, s->tmp);
    for (size_t k = 0; k < p->ncontact && !found && step > 0; k++)
        found = gap_shrinks(s, &p->contact[k], param, step);
    arena_release(s->tmp, mark);
    return found;
}

/* the radius of a part or of the model, or 0; computed once for all parts of a kind */
static double radius_of(scene *m, const mclass *c, const value *object)
{
    static const char *const names[] = { "R", "r" };
    double x;
    if (m->kind != c) {
        m->kind = c;
        m->kind_radius = NULL;
        for (int k = 0; k < 2 && !m->kind_radius; k++)
            if (is_radius(m->s, c, sym_str(m->s->names, names[k])))
                m->kind_radius = names[k];
    }
    return m->kind_radius && member_number(m->s, object, m->kind_radius, &x) && x > 0 ? x : 0;
}

/* a part: its place, its size, its angle */
static void body_put(void *ud, const value *part)
{
    scene *m = ud;
    value p, a;
    size_t first = m->all.n;
    double w, h;
    if (member_of(m->s, part, "p", &p))
        value_parts(m->s, &p, "", mover_put, m);
    else if (value_lone(part, &p))
        mover_add(m, &p)->n = -1;
    else
        return; /* what has no place is not drawn */
    if (m->all.n != first + 1 || m->all.at[first].n == 1) {
        m->bad = true;
        return;
    }
    mover *k = &m->all.at[first];
    k->r = radius_of(m, ((const view *)part->object.of)->c, part);
    if (member_number(m->s, part, "w", &w) && member_number(m->s, part, "h", &h)) {
        k->box[0] = w;
        k->box[1] = h;
    }
    k->turns = member_of(m->s, part, "a", &a) && is_number(&a);
    if (k->turns)
        k->angle = a;
}

static bool point_add(scene *m, const value *v)
{
    value pair[2];
    if (v->kind == V_LIST && v->list.n == 2) {
        pair[0] = v->list.at[0];
        pair[1] = v->list.at[1];
    } else if (v->kind == V_NUM && v->num.rank == 1 && v_count(v) == 2) {
        pair[0] = v_element(v, 0);
        pair[1] = v_element(v, 1);
    } else
        return false;
    if (!is_number(&pair[0]) || !is_number(&pair[1]))
        return false;
    mover *k = mover_add(m, &pair[0]);
    k->v[1] = pair[1];
    k->n = 2;
    return true;
}

/* corners one after the other; a corner may be a dof in the plane */
static void line_read(scene *m, const value *v)
{
    m->lines++;
    for (size_t k = 0; k < v->list.n; k++) {
        size_t first = m->all.n;
        if (!point_add(m, &v->list.at[k]))
            value_parts(m->s, &v->list.at[k], "", mover_put, m);
        for (size_t i = first; i < m->all.n; i++) {
            m->all.at[i].line = m->lines;
            m->all.at[i].r = 0;
            m->bad = m->bad || m->all.at[i].n != 2;
        }
    }
}

/* the centreline of a rod: not all of its nodes */
static void rod_put(void *ud, const char *name, const value *col, int per)
{
    scene *m = ud;
    (void)per;
    if (strcmp(name, "x"))
        return;
    int32_t n = col->num.n[0], shown = n < ROD_CORNERS ? n : ROD_CORNERS;
    m->lines++;
    for (int32_t k = 0; k < shown; k++) {
        value none = v_num(0);
        mover *c = mover_add(m, &none);
        c->space = col->num.d + 3 * (int64_t)((int64_t)k * (n - 1) / (shown - 1));
        c->n = 2;
        c->r = 0;
        c->line = m->lines;
    }
}

static void seen_from_aside(const double *x, double t, double *z);

/* the same of a rod that moves in time: corners are series */
static bool rod_moving(scene *m, const value *v)
{
    const results *r;
    int n;
    const double *track = rod_in_time(v, &r, &n);
    if (!track)
        return false;
    m->lines++;
    for (int k = 0, shown = n < ROD_CORNERS ? n : ROD_CORNERS; k < shown; k++) {
        double *z = arena_array(m->s->tmp, double, 2 * r->samples);
        int64_t node = (int64_t)k * (n - 1) / (shown - 1);
        for (int64_t i = 0; i < r->samples; i++)
            seen_from_aside(track + i * r->ntrack + 3 * node, 0, z + 2 * i);
        value x = plain_series(r, z, 2);
        mover *c = mover_add(m, &x);
        c->v[1] = plain_series(r, z + 1, 2);
        c->n = 2;
        c->r = 0;
        c->line = m->lines;
    }
    return true;
}

static void lone_put(void *ud, const char *index, const value *part)
{
    scene *m = ud;
    (void)index;
    if (!is_number(part)) {
        m->bad = true;
        return;
    }
    mover_add(m, part)->n = -1;
}

/* dofs in the plane give pairs; numbers move up and down, marked by n == -1 */
static void thing_read(scene *m, const value *v)
{
    int wide = value_components(v);
    if (is_rod(v)) {
        if (!rod_moving(m, v))
            rod_table(m->s, v, rod_put, m);
        return;
    }
    if (value_bodies(m->s, v, body_put, m) || point_add(m, v))
        return;
    if (v->kind == V_LIST) {
        line_read(m, v);
        return;
    }
    m->bad = m->bad || wide == 1 || wide > 2;
    value_parts(m->s, v, "", wide == 2 ? mover_put : lone_put, m);
}

static double number_at(const value *v, double t)
{
    return v->kind == V_SERIES ? value_at(v, t) : v->num.d0;
}

/* the third axis upright, turning about it, seen from a little above */
static void seen_from_aside(const double *x, double t, double *z)
{
    double a = 0.5 + 2 * acos(-1) * t / ROD_SECONDS;
    z[0] = cos(a) * x[0] + sin(a) * x[1];
    z[1] = cos(0.35) * x[2] + sin(0.35) * (cos(a) * x[1] - sin(a) * x[0]);
}

static void mover_at(const scene *s, size_t k, double t, double *z)
{
    const mover *m = &s->all.at[k];
    if (m->space) {
        seen_from_aside(m->space, t, z);
        return;
    }
    z[0] = m->n == 2 ? number_at(&m->v[0], t) : (double)k * s->pitch;
    z[1] = number_at(&m->v[m->n == 2 ? 1 : 0], t);
}

/* ---- the stage ---- */

typedef struct {
    double lo[2], hi[2], scale, begin, end;
} stage;

/* what moves up and down stands side by side, as far apart as it moves, at most */
static double pitch_of(const scene *m, const stage *g)
{
    double lo = INFINITY, hi = -INFINITY, r = 0;
    for (size_t k = 0; k < m->all.n; k++)
        for (int f = 0; m->all.at[k].n == -1 && f <= FRAMES; f++) {
            double y = number_at(&m->all.at[k].v[0], g->begin + (g->end - g->begin) * f / FRAMES);
            if (isfinite(y)) {
                lo = fmin(lo, y);
                hi = fmax(hi, y);
            }
            r = fmax(r, m->all.at[k].r);
        }
    return hi > lo || r > 0 ? fmax(3 * r, (hi - lo) / 4) : 1;
}

static stage stage_of(scene *m, double wide_in_pixels)
{
    stage g = { .lo = { INFINITY, INFINITY }, .hi = { -INFINITY, -INFINITY } };
    for (size_t k = 0; k < m->all.n; k++)
        if (m->all.at[k].space)
            g.end = ROD_SECONDS;
    for (size_t k = 0; k < m->all.n; k++)
        for (int i = 0; i < 2; i++) {
            const value *v = &m->all.at[k].v[i];
            if (v->kind == V_SERIES) {
                g.begin = v->series.t[0];
                g.end = v->series.t[v->series.n - 1];
            }
        }
    if (!(g.end > g.begin))
        g.end = g.begin + 1;
    m->pitch = pitch_of(m, &g);
    for (size_t k = 0; k < m->all.n; k++)
        for (int f = 0; f <= FRAMES; f++) {
            double z[2], r = fmax(m->all.at[k].r, hypot(m->all.at[k].box[0], m->all.at[k].box[1]) / 2);
            mover_at(m, k, g.begin + (g.end - g.begin) * f / FRAMES, z);
            for (int i = 0; i < 2; i++)
                if (isfinite(z[i])) {
                    g.lo[i] = fmin(g.lo[i], z[i] - r);
                    g.hi[i] = fmax(g.hi[i], z[i] + r);
                }
        }
    double wide = fmax(g.hi[0] - g.lo[0], g.hi[1] - g.lo[1]);
    if (!(wide > 0) || !isfinite(wide))
        wide = 1;
    for (int i = 0; i < 2; i++) {
        if (!isfinite(g.lo[i]))
            g.lo[i] = g.hi[i] = 0;
        g.lo[i] -= 0.08 * wide;
        g.hi[i] += 0.08 * wide;
    }
    g.scale = wide_in_pixels / (1.16 * wide);
    return g;
}

static void to_pixels(const stage *g, const double *z, double *p)
{
    p[0] = (z[0] - g->lo[0]) * g->scale;
    p[1] = (g->hi[1] - z[1]) * g->scale;
}

/* ---- walls: where the gap of a body is zero, or its radius away from its middle ---- */

typedef struct {
    const kernel *gap;
    inputs in;
    double *q, *reg;
    int32_t ix[MAX_INDEX];
} gap_probe;

static double gap_at(const gap_probe *g)
{
    kernel_run(g->gap, &g->in, g->ix, g->reg);
    return g->reg[g->gap->tape.out[0]];
}

static int32_t column_of(const scene *m, const value *v)
{
    const results *r = m->s->last->r;
    return v->kind == V_SERIES && v->series.of == (const void *)r && v->series.order == 0 ? v->series.column
                                                                                          : -1;
}

static bool reacts(const gap_probe *g, int32_t at, double step)
{
    if (at < 0)
        return false;
    double was = g->q[at], before = gap_at(g);
    g->q[at] = was + step;
    double after = gap_at(g);
    g->q[at] = was;
    return isfinite(after) && after != before;
}

/* the one mover that a constraint bounds; all.n when there is none, or there are several */
static size_t bounded(const scene *m, const gap_probe *g, double step)
{
    size_t found = m->all.n;
    for (size_t k = 0; k < m->all.n; k++) {
        const mover *b = &m->all.at[k];
        if (!reacts(g, column_of(m, &b->v[0]), step) &&
            !(b->n == 2 && reacts(g, column_of(m, &b->v[1]), step)))
            continue;
        if (found < m->all.n)
            return m->all.n;
        found = k;
    }
    return found;
}

/* the line gap = level through a grid, a piece for each cell that it crosses; of what moves up and down in a
 * column of its own */
static void wall_trace(scene *m, const stage *whole, const gap_probe *g, size_t k)
{
    const mover *b = &m->all.at[k];
    stage own = *whole, *s = &own;
    if (b->n == -1) {
        own.lo[0] = ((double)k - 0.45) * m->pitch;
        own.hi[0] = ((double)k + 0.45) * m->pitch;
    }
    enum { N = WALL_CELLS };
    double f[N + 1][N + 1], dx = (s->hi[0] - s->lo[0]) / N, dy = (s->hi[1] - s->lo[1]) / N;
    int32_t cx = b->n == 2 ? column_of(m, &b->v[0]) : -1, cy = column_of(m, &b->v[b->n == 2 ? 1 : 0]);
    for (int j = 0; j <= N; j++)
        for (int i = 0; i <= N; i++) {
            if (cx >= 0)
                g->q[cx] = s->lo[0] + i * dx;
            if (cy >= 0)
                g->q[cy] = s->lo[1] + j * dy;
            f[j][i] = gap_at(g) + b->r;
        }
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++) {
            static const int corner[5][2] = { { 0, 0 }, { 1, 0 }, { 1, 1 }, { 0, 1 }, { 0, 0 } };
            double hit[8];
            int n = 0;
            for (int e = 0; e < 4; e++) {
                const int *a = corner[e], *c = corner[e + 1];
                double fa = f[j + a[1]][i + a[0]], fc = f[j + c[1]][i + c[0]];
                if (!isfinite(fa) || !isfinite(fc) || (fa < 0) == (fc < 0))
                    continue;
                double z = fa / (fa - fc);
                hit[n++] = s->lo[0] + dx * (i + a[0] + z * (c[0] - a[0]));
                hit[n++] = s->lo[1] + dy * (j + a[1] + z * (c[1] - a[1]));
            }
            if (n >= 4 && m->walls.n < WALLS)
                *vec_push(m->s->tmp, &m->walls) = (wall){ { hit[0], hit[1], hit[2], hit[3] } };
        }
}

/* members one after the other; those of many bodies over the same wall draw it once */
static void walls_of_family(scene *m, const stage *s, gap_probe *g, const index_set *over, const double *now,
                            double step)
{
    size_t was = m->walls.n;
    int members = 0;
    for (bool more = true; more && members < WALL_MEMBERS;
         members++, more = over->n && index_next(over, g->ix)) {
        memcpy(g->q, now, (size_t)m->s->last->r->prog->nq * sizeof *now);
        size_t k = bounded(m, g, step), from = m->walls.n;
        if (k == m->all.n)
            continue;
        wall_trace(m, s, g, k);
        size_t n = m->walls.n - from;
        if (from > was && n == from - was &&
            !memcmp(m->walls.at + was, m->walls.at + from, n * sizeof *m->walls.at))
            m->walls.n = from;
        else
            was = from;
    }
}

/* at a time: what is not drawn and moves a wall is where it is then */
static void walls_at(scene *m, const stage *s, double time)
{
    const results *r = m->s->last ? m->s->last->r : NULL;
    m->walls.n = 0;
    if (!r || !r->samples || !r->prog->nq)
        return;
    size_t n = (size_t)r->prog->nq;
    arena_pos mark = arena_mark(m->s->answer);
    double *q = arena_array(m->s->answer, double, n), *v = arena_array(m->s->answer, double, n),
           *now = arena_array(m->s->answer, double, n), step = 0.01 * (s->hi[1] - s->lo[1]);
    for (size_t k = 0; k < n; k++) {
        now[k] = results_q(r, (int32_t)k, time);
        v[k] = results_v(r, (int32_t)k, time);
    }
    const double *base = bases_of(m->s->answer, r->prog, now);
    for (size_t c = 0; c < r->prog->ncontact; c++) {
        const contact_family *f = &r->prog->contact[c];
        gap_probe g = { .gap = &f->gap, .q = q, .in = { .t = time } };
        if (!f->gap.tape.nout || f->gap.where || (f->over.n && !index_first(&f->over, g.ix)))
            continue;
        g.in.from[IN_BASE] = base;
        g.in.from[IN_Q] = q;
        g.in.from[IN_V] = v;
        g.in.from[IN_PARAM] = r->param;
        g.reg = arena_array(m->s->answer, double, f->gap.tape.nreg);
        tape_start(&f->gap.tape, g.reg);
        walls_of_family(m, s, &g, &f->over, now, step);
    }
    arena_release(m->s->answer, mark);
}

/* whether walls move: looked at at a few times */
static void walls_watch(scene *m, const stage *s)
{
    enum { LOOKS = 7 };
    wall_list first = { 0 };
    walls_at(m, s, s->begin);
    for (size_t k = 0; k < m->walls.n; k++)
        *vec_push(m->s->tmp, &first) = m->walls.at[k];
    for (int f = 1; f <= LOOKS && !m->moving; f++) {
        walls_at(m, s, s->begin + (s->end - s->begin) * f / LOOKS);
        m->moving = m->walls.n != first.n ||
                    (first.n && memcmp(m->walls.at, first.at, first.n * sizeof *first.at));
    }
    walls_at(m, s, s->begin);
}

/* ---- SVG ---- */

static const char *const colours[] = { "#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf" };
static double frame_time(const stage *g, int f, int frames)
{
    return g->begin + (g->end - g->begin) * f / frames;
}

typedef void (*put_at)(text *t, const void *ud, const stage *g, double time);

/* the value at the start, for viewers that do not move */
static void put_start(text *t, const stage *g, const char *name, put_at put, const void *ud)
{
    text_printf(t, " %s=\"", name);
    put(t, ud, g, g->begin);
    text_putc(t, '"');
}

/* an attribute over all frames; what writes its value at a time */
static void put_motion(text *t, const stage *g, const char *name, put_at put, const void *ud)
{
    text_printf(t, "<animate attributeName=\"%s\" dur=\"%.6gs\" repeatCount=\"indefinite\" values=\"", name,
                fmax(g->end - g->begin, 0.1));
    for (int f = 0; f <= FRAMES; f++) {
        if (f)
            text_putc(t, ';');
        put(t, ud, g, frame_time(g, f, FRAMES));
    }
    text_puts(t, "\"/>");
}

typedef struct {
    const scene *m;
    size_t first, n;
    int axis;
} motion;

static void put_coordinate(text *t, const void *ud, const stage *g, double time)
{
    const motion *o = ud;
    double z[2], p[2];
    mover_at(o->m, o->first, time, z);
    to_pixels(g, z, p);
    text_printf(t, "%.2f", p[o->axis]);
}

static void box_corner(const mover *m, const double *z, double time, int corner, double *out)
{
    double a = m->turns ? number_at(&m->angle, time) : 0,
           x = (corner == 0 || corner == 3 ? -0.5 : 0.5) * m->box[0],
           y = (corner < 2 ? -0.5 : 0.5) * m->box[1];
    out[0] = z[0] + cos(a) * x - sin(a) * y;
    out[1] = z[1] + sin(a) * x + cos(a) * y;
}

/* corners of a line, or of a box */
static void put_points(text *t, const void *ud, const stage *g, double time)
{
    const motion *o = ud;
    const mover *b = &o->m->all.at[o->first];
    for (size_t k = 0; k < o->n; k++) {
        double z[2], p[2], at[2];
        mover_at(o->m, o->first + (b->box[0] > 0 ? 0 : k), time, z);
        if (b->box[0] > 0)
            box_corner(b, z, time, (int)k, at);
        else
            memcpy(at, z, sizeof at);
        to_pixels(g, at, p);
        text_printf(t, "%s%.2f,%.2f", k ? " " : "", p[0], p[1]);
    }
}

static void put_radius(text *t, const void *ud, const stage *g, double time)
{
    const motion *o = ud;
    const mover *b = &o->m->all.at[o->first];
    double z[2], p[2], e[2];
    mover_at(o->m, o->first, time, z);
    double a = number_at(&b->angle, time);
    to_pixels(g, z, p);
    z[0] += b->r * cos(a);
    z[1] += b->r * sin(a);
    to_pixels(g, z, e);
    text_printf(t, "%.2f,%.2f %.2f,%.2f", p[0], p[1], e[0], e[1]);
}

static size_t line_length(const scene *m, size_t k)
{
    size_t n = 1;
    while (m->all.at[k].line && k + n < m->all.n && m->all.at[k + n].line == m->all.at[k].line)
        n++;
    return n;
}

static void put_body(text *t, const scene *m, const stage *g, size_t k)
{
    const mover *b = &m->all.at[k];
    const char *colour = colours[k % 6];
    motion o = { m, k, 1, 0 };
    if (b->box[0] > 0) {
        o.n = 4;
        text_printf(t, "<polygon fill=\"%s\"", colour);
        put_start(t, g, "points", put_points, &o);
        text_putc(t, '>');
        put_motion(t, g, "points", put_points, &o);
        text_puts(t, "</polygon>\n");
        return;
    }
    if (b->space)
        return;
    text_printf(t, "<circle r=\"%.2f\" fill=\"%s\"",
                b->r > 0  ? fmax(b->r * g->scale, 1)
                : b->line ? 3
                          : 7,
                colour);
    put_start(t, g, "cx", put_coordinate, &o);
    o.axis = 1;
    put_start(t, g, "cy", put_coordinate, &o);
    text_putc(t, '>');
    o.axis = 0;
    put_motion(t, g, "cx", put_coordinate, &o);
    o.axis = 1;
    put_motion(t, g, "cy", put_coordinate, &o);
    text_puts(t, "</circle>\n");
    if (!b->turns || !(b->r > 0))
        return;
    text_puts(t, "<polyline stroke=\"white\" fill=\"none\"");
    put_start(t, g, "points", put_radius, &o);
    text_putc(t, '>');
    put_motion(t, g, "points", put_radius, &o);
    text_puts(t, "</polyline>\n");
}

static void put_walls(text *t, const scene *m, const stage *g)
{
    for (size_t k = 0; k < m->walls.n; k++) {
        double a[2], b[2];
        to_pixels(g, m->walls.at[k].x, a);
        to_pixels(g, m->walls.at[k].x + 2, b);
        text_printf(t, "M%.2f %.2fL%.2f %.2f", a[0], a[1], b[0], b[1]);
    }
    if (!m->walls.n)
        text_puts(t, "M0 0");
}

/* frames of walls do not blend into each other: pieces come and go */
static void put_wall_path(text *t, scene *m, const stage *g)
{
    if (!m->walls.n && !m->moving)
        return;
    text_puts(t, "<path stroke=\"#555\" stroke-width=\"2\" fill=\"none\" d=\"");
    put_walls(t, m, g);
    if (!m->moving) {
        text_puts(t, "\"/>\n");
        return;
    }
    text_printf(t,
                "\"><animate attributeName=\"d\" calcMode=\"discrete\" dur=\"%.6gs\" "
                "repeatCount=\"indefinite\" values=\"",
                fmax(g->end - g->begin, 0.1));
    for (int f = 0; f < WALL_FRAMES; f++) {
        walls_at(m, g, frame_time(g, f, WALL_FRAMES - 1));
        if (f)
            text_putc(t, ';');
        put_walls(t, m, g);
    }
    text_puts(t, "\"/></path>\n");
}

static void put_svg(text *t, scene *m)
{
    stage g = stage_of(m, WIDE);
    double w = (g.hi[0] - g.lo[0]) * g.scale, h = (g.hi[1] - g.lo[1]) * g.scale;
    walls_watch(m, &g);
    text_printf(t,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.2f "
                "%.2f\">\n",
                w, h, w, h);
    text_puts(t, "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
    put_wall_path(t, m, &g);
    for (size_t k = 0; k < m->all.n; k += line_length(m, k)) {
        motion o = { m, k, line_length(m, k), 0 };
        if (o.n < 2)
            continue;
        text_printf(t, "<polyline stroke=\"%s\" stroke-width=\"4\" fill=\"none\"",
                    colours[m->all.at[k].line % 6]);
        put_start(t, &g, "points", put_points, &o);
        text_putc(t, '>');
        put_motion(t, &g, "points", put_points, &o);
        text_puts(t, "</polyline>\n");
    }
    for (size_t k = 0; k < m->all.n; k++)
        put_body(t, m, &g, k);
    text_puts(t, "</svg>\n");
}

/* ---- GIF: frames drawn here, a palette of eight ---- */

enum { GIF_WIDE = 400, GIF_FRAMES = 90, INK_WHITE = 0, INK_WALL = 1, INK_FIRST = 2 };
static const unsigned char palette[8][3] = { { 255, 255, 255 }, { 85, 85, 85 },  { 31, 119, 180 },
                                             { 214, 39, 40 },   { 44, 160, 44 }, { 148, 103, 189 },
                                             { 255, 127, 14 },  { 23, 190, 207 } };
typedef struct {
    int w, h;
    unsigned char *at;
} canvas;

static void ink(canvas *c, int x, int y, unsigned char colour)
{
    if (x >= 0 && y >= 0 && x < c->w && y < c->h)
        c->at[y * c->w + x] = colour;
}

static void draw_disk(canvas *c, const double *p, double r, unsigned char colour)
{
    if (!(fabs(p[0]) < 1e5 && fabs(p[1]) < 1e5))
        return;
    int reach = (int)whole_clamp(ceil(r), 0, 1000);
    for (int y = -reach; y <= reach; y++)
        for (int x = -reach; x <= reach; x++)
            if (x * x + y * y <= r * r)
                ink(c, (int)lrint(p[0]) + x, (int)lrint(p[1]) + y, colour);
}

static void draw_line(canvas *c, const double *a, const double *b, double thick, unsigned char colour)
{
    double n = fmin(ceil(2 * fmax(fabs(b[0] - a[0]), fabs(b[1] - a[1]))) + 1, 4000);
    for (double k = 0; k <= n; k++)
        draw_disk(c, (const double[]){ a[0] + (b[0] - a[0]) * k / n, a[1] + (b[1] - a[1]) * k / n }, thick,
                  colour);
}

static void draw_mover(canvas *c, const scene *m, const stage *g, size_t k, double time)
{
    const mover *b = &m->all.at[k];
    unsigned char colour = (unsigned char)(INK_FIRST + (b->space ? (size_t)b->line : k) % 6);
    double z[2], p[2], at[2], e[2];
    mover_at(m, k, time, z);
    to_pixels(g, z, p);
    if (b->line && k + 1 < m->all.n && b[1].line == b->line) {
        mover_at(m, k + 1, time, at);
        to_pixels(g, at, e);
        draw_line(c, p, e, 1.5, colour);
    }
    for (int i = 0; b->box[0] > 0 && i < 4; i++) {
        box_corner(b, z, time, i, at);
        to_pixels(g, at, e);
        box_corner(b, z, time, (i + 1) % 4, at);
        double f[2];
        to_pixels(g, at, f);
        draw_line(c, e, f, 1, colour);
    }
    if (!(b->box[0] > 0) && !b->space)
        draw_disk(c, p, b->r > 0 ? fmax(b->r * g->scale, 1) : b->line ? 2 : 4.5, colour);
    if (!b->turns || !(b->r > 0))
        return;
    at[0] = z[0] + b->r * cos(number_at(&b->angle, time));
    at[1] = z[1] + b->r * sin(number_at(&b->angle, time));
    to_pixels(g, at, e);
    draw_line(c, p, e, 0.5, INK_WHITE);
}

/* codes of growing width, packed from the low bits on, in portions of 255 bytes */
typedef struct {
    text *out;
    uint32_t bits;
    int have;
    unsigned char block[256];
    int n;
} packer;

static void pack_byte(packer *p, unsigned char b)
{
    p->block[++p->n] = b;
    if (p->n < 255)
        return;
    p->block[0] = 255;
    text_putn(p->out, (const char *)p->block, 256);
    p->n = 0;
}

static void pack(packer *p, uint32_t code, int width)
{
    p->bits |= code << p->have;
    for (p->have += width; p->have >= 8; p->have -= 8, p->bits >>= 8)
        pack_byte(p, (unsigned char)(p->bits & 255));
}

/* Lempel, Ziv and Welch: next[code][colour] is the code of a sequence and one more colour */
static void put_pixels(text *out, arena *a, const canvas *c)
{
    enum { LITERALS = 8, CLEAR = LITERALS, END = LITERALS + 1, LIMIT = 4096, START_WIDTH = 4 };
    int16_t(*next)[LITERALS] = arena_alloc(a, LIMIT * sizeof *next);
    packer p = { .out = out };
    int width = START_WIDTH, used = END + 1, code = c->at[0];
    memset(next, 0, LIMIT * sizeof *next);
    text_putc(out, 3);
    pack(&p, CLEAR, width);
    for (int k = 1; k < c->w * c->h; k++) {
        int colour = c->at[k];
        if (next[code][colour]) {
            code = next[code][colour];
            continue;
        }
        pack(&p, (uint32_t)code, width);
        if (used < LIMIT) {
            next[code][colour] = (int16_t)used;
            if (used++ == 1 << width)
                width++;
        } else {
            pack(&p, CLEAR, width);
            memset(next, 0, LIMIT * sizeof *next);
            width = START_WIDTH;
            used = END + 1;
        }
        code = colour;
    }
    pack(&p, (uint32_t)code, width);
    if (used == 1 << width && width < 12)
        width++;
    pack(&p, END, width);
    if (p.have)
        pack_byte(&p, (unsigned char)(p.bits & 255));
    p.block[0] = (unsigned char)p.n;
    if (p.n)
        text_putn(out, (const char *)p.block, (size_t)p.n + 1);
    text_putc(out, 0);
}

static void put_u16(text *t, int x)
{
    text_putc(t, (char)(x & 255));
    text_putc(t, (char)(x >> 8 & 255));
}

static void put_gif(text *t, scene *m)
{
    stage g = stage_of(m, GIF_WIDE);
    canvas c = { (int)whole_clamp(ceil((g.hi[0] - g.lo[0]) * g.scale), 1, UINT16_MAX),
                 (int)whole_clamp(ceil((g.hi[1] - g.lo[1]) * g.scale), 1, UINT16_MAX), NULL };
    int delay = (int)whole_clamp(100 * (g.end - g.begin) / GIF_FRAMES, 3, 20);
    walls_watch(m, &g);
    c.at = arena_alloc(m->s->tmp, (size_t)(c.w * c.h));
    text_puts(t, "GIF89a");
    put_u16(t, c.w);
    put_u16(t, c.h);
    text_putn(t, "\xa2\0\0", 3);
    text_putn(t, (const char *)palette, sizeof palette);
    text_putn(t, "\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0", 19); /* for ever */
    for (int f = 0; f < GIF_FRAMES; f++) {
        arena_pos mark = arena_mark(m->s->answer);
        double a[2], b[2], time = frame_time(&g, f, GIF_FRAMES - 1);
        memset(c.at, INK_WHITE, (size_t)(c.w * c.h));
        if (m->moving)
            walls_at(m, &g, time);
        for (size_t k = 0; k < m->walls.n; k++) {
            to_pixels(&g, m->walls.at[k].x, a);
            to_pixels(&g, m->walls.at[k].x + 2, b);
            draw_line(&c, a, b, 1, INK_WALL);
        }
        for (size_t k = 0; k < m->all.n; k++)
            draw_mover(&c, m, &g, k, time);
        text_putn(t, "\x21\xf9\x04\0", 4);
        put_u16(t, delay);
        text_putn(t, "\0\0\x2c\0\0\0\0", 7);
        put_u16(t, c.w);
        put_u16(t, c.h);
        text_putc(t, 0);
        put_pixels(t, m->s->answer, &c);
        arena_release(m->s->answer, mark);
    }
    text_putc(t, ';');
}

/* ---- the function ---- */

/* the radius of things that are given as dofs alone: that of the model */
static double common_radius(scene *m)
{
    value v = { .kind = V_OBJECT };
    const run *last = m->s->last;
    if (!last || !last->of->m)
        return 0;
    v.object.in = last->top;
    return radius_of(m, last->of->m->classes.at[0], &v);
}

static value call_animate(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    session *s = ev->of;
    scene m = { .s = s };
    text t = { .a = s->tmp };
    (void)in;
    const char *name = arg[0].kind == V_STRING ? arena_strndup(s->tmp, arg[0].str.at, arg[0].str.len) : "";
    bool gif = !strcmp(file_ending(name), ".gif");
    if (!gif && strcmp(file_ending(name), ".svg")) {
        diag_error(ev->d, DIAG_TYPE, call->at, "animate takes the name of a .svg or a .gif file first");
        return v_error();
    }
    m.radius = common_radius(&m);
    for (size_t k = 1; k < n; k++)
        thing_read(&m, &arg[k]);
    if (m.bad || !m.all.n || m.all.n > MOST) {
        diag_error(ev->d, DIAG_TYPE, call->at,
                   m.all.n > MOST ? "animate draws at most %d things"
                                  : "animate draws degrees of freedom in the plane or of one number, points, "
                                    "lines, parts and rods of a run",
                   MOST);
        return v_error();
    }
    if (gif)
        put_gif(&t, &m);
    else
        put_svg(&t, &m);
    const char *path = point_path(s, name);
    outfile *f = whole_begin(s, path);
    outfile_put(f, t.at, t.n);
    if (!whole_end(s, f, path, "picture", call->at))
        return v_error();
    path = session_path(s, path);
    return v_string(s->tmp, path, strlen(path));
}

const builtin output_builtins[] = {
    { "animate", 2, -1, call_animate, false, "animate(\"a.svg\", p, ...)",
      "writes the motion of dofs, points, lines and parts in the plane as an SVG that moves, or a .gif" },
    { NULL, 0, 0, NULL, false, NULL, NULL }
};
