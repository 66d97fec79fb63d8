/* scene: the objects that animate draws. An object is a family of dofs in the plane or in space, a scalar
   dof, which moves up and down, a part with a position p (a disk with its radius, a box with its sides; a
   part with a single coordinate moves up and down), a point [x, y] of formulas, a list of points, which is
   a line through them, or a rod. */
#include <math.h>
#include <string.h>
#include "base/tolerances.h"
#include "program/turns.h"
#include "rod/rod.h"
#include "scene.h"
#include "results/session_view.h"

enum { ROD_CORNERS = 120 };

/* ---- what moves ---- */

static bool is_number(const value *v)
{
    return (v->kind == V_SERIES && v->series.n > 0) || (v->kind == V_NUM && !v->num.rank && !v->num.r);
}

static mover *mover_add(scene *m, const value *x)
{
    mover *k = vec_push(m->s->tmp, &m->all);
    *k = (mover){ .name = "", .v = { *x }, .n = 1, .r = m->radius };
    return k;
}

/* "p[3]" of the index "[3][2]" of a coordinate */
static const char *member_name(scene *m, const char *index, bool coordinate)
{
    size_t n = strlen(index);
    if (coordinate && n) {
        const char *last = strrchr(index, '[');
        n = last ? (size_t)(last - index) : n;
    }
    return arena_printf(m->s->tmp, "%s%.*s", m->naming, (int)n, index);
}

static void mover_put(void *ud, const char *index, const value *part)
{
    scene *m = ud;
    if (!is_number(part)) {
        m->bad = true;
        return;
    }
    mover *last = m->all.n ? &m->all.at[m->all.n - 1] : NULL;
    if (last && last->n > 0 && last->n < m->wide && !last->line) {
        last->v[last->n++] = *part;
        return;
    }
    mover_add(m, part)->name = member_name(m, index, true);
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

const double *bases_of(arena *a, const program *p, double *q)
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
    if (!f->gap.tape.nout || f->gap.where || f->pair.touch || (f->over.n && !index_first(&f->over, ix)))
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
        if (fabs(rate + 1) < RADIUS_RATE || fabs(rate + 2) < RADIUS_RATE)
            return true;
    }
    return false;
}

/* The name is not enough for a radius: it may be that of a bowl, or a resistance. A radius is a parameter
   such that a gap becomes smaller by as much as the parameter grows; or that of a disk or ball of the
   library. */
static bool is_radius(session *s, const mclass *c, sym name)
{
    const mdecl *d = class_find(c, name);
    const built *b = s->last ? s->last->of : NULL;
    if (!b || !d || d->kind != DECL_PARAM || d->param->rank || d->param->offset < 0)
        return false;
    if (!strcmp(c->name, "disk") || !strcmp(c->name, "ball_body"))
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
    m->number++;
    if (member_of(m->s, part, "p", &p)) {
        m->wide = value_components(&p) == 3 ? 3 : 2;
        value_parts(m->s, &p, "", mover_put, m);
    } else if (value_lone(part, &p))
        mover_add(m, &p)->n = LONE;
    else
        return; /* parts without a position are not drawn */
    if (m->all.n != first + 1 || m->all.at[first].n == 1) {
        m->bad = true;
        return;
    }
    const view *of = part->object.of;
    mover *k = &m->all.at[first];
    k->name = m->numbered ? arena_printf(m->s->tmp, "%s[%d]", m->naming, (int)m->number) : m->naming;
    k->of = of->c;
    k->inst = of->inst;
    k->r = radius_of(m, of->c, part);
    if (member_number(m->s, part, "w", &w) && member_number(m->s, part, "h", &h)) {
        k->box[0] = w;
        k->box[1] = h;
    }
    k->turns = member_of(m->s, part, "a", &a) && is_number(&a);
    if (k->turns)
        k->angle = a;
    if (member_of(m->s, part, "A", &a))
        k->attitude = value_attitude(&a);
}

static bool point_add(scene *m, const value *v)
{
    bool numbers = v->kind == V_NUM && v->num.rank == 1;
    size_t n = v->kind == V_LIST ? v->list.n : numbers ? (size_t)v_count(v) : 0;
    value x[3];
    if (n != 2 && n != 3)
        return false;
    for (size_t i = 0; i < n; i++) {
        x[i] = numbers ? v_element(v, (int32_t)i) : v->list.at[i];
        if (!is_number(&x[i]))
            return false;
    }
    mover *k = mover_add(m, &x[0]);
    k->name = m->naming;
    k->n = (int)n;
    memcpy(k->v, x, n * sizeof *x);
    return true;
}

/* corners one after the other; a corner may be a dof in the plane */
static void line_read(scene *m, const value *v)
{
    m->lines++;
    for (size_t k = 0; k < v->list.n; k++) {
        size_t first = m->all.n;
        if (!point_add(m, &v->list.at[k])) {
            m->wide = value_components(&v->list.at[k]) == 3 ? 3 : 2;
            value_parts(m->s, &v->list.at[k], "", mover_put, m);
        }
        for (size_t i = first; i < m->all.n; i++) {
            m->all.at[i].line = m->lines;
            m->all.at[i].r = 0;
            m->bad = m->bad || m->all.at[i].n < 2;
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
        c->n = 3;
        c->r = m->rod;
        c->line = m->lines;
    }
}

/* the same of a rod that moves, in time or along its load: corners are series */
static bool rod_moving(scene *m, const value *v)
{
    const results *r;
    int n;
    const double *track = rod_in_time(v, &r, &n);
    if (!track)
        return false;
    m->lines++;
    for (int k = 0, shown = n < ROD_CORNERS ? n : ROD_CORNERS; k < shown; k++) {
        const double *x = track + 3 * ((int64_t)k * (n - 1) / (shown - 1));
        value first = plain_series(r, x, r->ntrack);
        mover *c = mover_add(m, &first);
        c->v[1] = plain_series(r, x + 1, r->ntrack);
        c->v[2] = plain_series(r, x + 2, r->ntrack);
        c->n = 3;
        c->r = m->rod;
        c->line = m->lines;
    }
    return true;
}

static void lone_put(void *ud, const char *index, const value *part)
{
    scene *m = ud;
    if (!is_number(part)) {
        m->bad = true;
        return;
    }
    mover *k = mover_add(m, part);
    k->n = LONE;
    k->name = member_name(m, index, false);
}

/* dofs in the plane give pairs, those in space triples; numbers move up and down */
void scene_add(scene *m, const char *name, const value *v)
{
    int wide = value_components(v), field;
    m->naming = name;
    if (line_coordinate(v) || value_plane(v, &field)) {
        m->field = true;
        return;
    }
    if (is_rod(v)) {
        m->rod = rod_radius(v);
        if (!rod_moving(m, v))
            rod_table(m->s, v, rod_put, m);
        return;
    }
    const mpart *family = value_family(v);
    m->numbered = family != NULL;
    m->number = family ? family->lo - 1 : 0;
    if (value_bodies(m->s, v, body_put, m) || point_add(m, v))
        return;
    if (v->kind == V_LIST) {
        line_read(m, v);
        return;
    }
    m->bad = m->bad || wide == 1 || wide > 3;
    m->wide = wide;
    value_parts(m->s, v, "", wide == 2 || wide == 3 ? mover_put : lone_put, m);
}

/* one that cannot be drawn is left out: the others can */
static void scene_try(scene *m, sym name)
{
    scope *top = m->s->last->top;
    size_t was = m->all.n;
    value v;
    if (top->find(top, &m->s->ev, name, SPAN_NONE, &v) != LOOK_YES)
        return;
    scene_add(m, name, &v);
    if (m->bad)
        m->all.n = was;
    m->bad = false;
}

/* beside dofs with a position, numbers are angles and the like */
static void lone_leave_out(scene *m)
{
    size_t kept = 0;
    bool placed = false;
    for (size_t k = 0; k < m->all.n; k++)
        placed = placed || m->all.at[k].n != LONE;
    for (size_t k = 0; k < m->all.n; k++)
        if (!placed || m->all.at[k].n != LONE)
            m->all.at[kept++] = m->all.at[k];
    m->all.n = kept;
}

/* A rotation beside one body is the rotation of that body; if no dof is a position, the columns of the
   rotation are drawn. */
static void rotations_add(scene *m, const mclass *top)
{
    scope *scope_of = m->s->last->top;
    const mdof *only = NULL;
    value v;
    int count = 0;
    for (size_t k = 0; k < top->dofs.n; k++)
        if (top->dofs.at[k]->rotation) {
            only = top->dofs.at[k];
            count++;
            if (!m->all.n) {
                scene_try(m, only->name);
                m->columns = true;
            }
        }
    if (count != 1 || m->all.n != 1 || m->all.at[0].n != 3)
        return;
    if (scope_of->find(scope_of, &m->s->ev, only->name, SPAN_NONE, &v) == LOOK_YES)
        m->all.at[0].attitude = value_attitude(&v);
}

void scene_add_all(scene *m)
{
    const run *last = m->s->last;
    if (!last || !last->of->m)
        return;
    m->whole = true;
    m->field = last->r->field != NULL;
    const mclass *top = last->of->m->classes.at[0];
    for (size_t k = 0; k < top->dofs.n; k++)
        if (!top->dofs.at[k]->rotation)
            scene_try(m, top->dofs.at[k]->name);
    for (size_t k = 0; k < top->parts.n; k++)
        scene_try(m, top->parts.at[k]->name);
    lone_leave_out(m);
    rotations_add(m, top);
    const struct rod_program *rods = last->r->prog->rod;
    for (int k = 0; rods && k < rods->nrod; k++) {
        value rod;
        if (rod_value(last, k, &rod))
            scene_add(m, rods->rod[k].name, &rod);
    }
    lone_leave_out(m);
}

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

void scene_begin(scene *m, session *s)
{
    *m = (scene){ .s = s, .most = SCENE_MOST };
    m->radius = common_radius(m);
}

bool scene_in_space(const scene *m)
{
    for (size_t k = 0; k < m->all.n; k++)
        if (m->all.at[k].n == 3)
            return true;
    return false;
}

/* ---- places ---- */

double number_at(const value *v, double t)
{
    return v->kind == V_SERIES ? value_at(v, t) : v->num.d0;
}

/* the third axis upright, turning about it, seen from a little above */
void seen_from_aside(const double *x, double t, double *z)
{
    double a = 0.5 + 2 * acos(-1) * t / ROD_SECONDS;
    z[0] = cos(a) * x[0] + sin(a) * x[1];
    z[1] = cos(0.35) * x[2] + sin(0.35) * (cos(a) * x[1] - sin(a) * x[0]);
}

void mover_place(const scene *s, size_t k, double t, double x[3])
{
    const mover *m = &s->all.at[k];
    x[2] = 0;
    if (m->space) {
        memcpy(x, m->space, 3 * sizeof *x);
        return;
    }
    if (m->n == LONE) {
        x[0] = (double)k * s->pitch;
        x[1] = number_at(&m->v[0], t);
        return;
    }
    for (int i = 0; i < m->n; i++)
        x[i] = number_at(&m->v[i], t);
}

void mover_at(const scene *s, size_t k, double t, double *z)
{
    double x[3];
    mover_place(s, k, t, x);
    if (s->all.at[k].n == 3) {
        seen_from_aside(x, s->all.at[k].space ? t : 0, z);
        return;
    }
    memcpy(z, x, 2 * sizeof *z);
}

void box_corner(const mover *m, const double *z, double time, int corner, double *out)
{
    double a = m->turns ? number_at(&m->angle, time) : 0,
           x = (corner == 0 || corner == 3 ? -0.5 : 0.5) * m->box[0],
           y = (corner < 2 ? -0.5 : 0.5) * m->box[1];
    out[0] = z[0] + cos(a) * x - sin(a) * y;
    out[1] = z[1] + sin(a) * x + cos(a) * y;
}

size_t line_length(const scene *m, size_t k)
{
    size_t n = 1;
    while (m->all.at[k].line && k + n < m->all.n && m->all.at[k + n].line == m->all.at[k].line)
        n++;
    return n;
}

/* ---- the stage ---- */

/* scalars are placed side by side, at most as far apart as they move */
static double pitch_of(const scene *m, const stage *g)
{
    double lo = INFINITY, hi = -INFINITY, r = 0;
    for (size_t k = 0; k < m->all.n; k++)
        for (int f = 0; m->all.at[k].n == LONE && f <= SCENE_FRAMES; f++) {
            double y = number_at(&m->all.at[k].v[0], g->begin + (g->end - g->begin) * f / SCENE_FRAMES);
            if (isfinite(y)) {
                lo = fmin(lo, y);
                hi = fmax(hi, y);
            }
            r = fmax(r, m->all.at[k].r);
        }
    return hi > lo || r > 0 ? fmax(3 * r, (hi - lo) / 4) : 1;
}

stage stage_of(scene *m, double wide_in_pixels)
{
    stage g = { .lo = { INFINITY, INFINITY }, .hi = { -INFINITY, -INFINITY } };
    scene_solids(m);
    for (size_t k = 0; k < m->all.n; k++)
        if (m->all.at[k].space)
            g.end = ROD_SECONDS;
    for (size_t k = 0; k < m->all.n; k++)
        for (int i = 0; i < 3; i++) {
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
        for (int f = 0; f <= SCENE_FRAMES; f++) {
            double z[2], r = fmax(m->all.at[k].r, hypot(m->all.at[k].box[0], m->all.at[k].box[1]) / 2);
            r = fmax(r, m->all.at[k].reach);
            mover_at(m, k, g.begin + (g.end - g.begin) * f / SCENE_FRAMES, z);
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

void to_pixels(const stage *g, const double *z, double *p)
{
    p[0] = (z[0] - g->lo[0]) * g->scale;
    p[1] = (g->hi[1] - z[1]) * g->scale;
}

double frame_time(const stage *g, int f, int frames)
{
    return g->begin + (g->end - g->begin) * f / frames;
}

/* ---- contacts as bodies see them ---- */

void scene_axes(const scene *m, const results *r, int32_t **body, int32_t **axis)
{
    size_t nq = (size_t)r->prog->nq;
    *body = arena_array(m->s->tmp, int32_t, nq + 1);
    *axis = arena_array(m->s->tmp, int32_t, nq + 1);
    for (size_t k = 0; k < nq; k++)
        (*body)[k] = -1;
    for (size_t k = 0; k < m->all.n; k++) {
        const mover *b = &m->all.at[k];
        int n = b->n == LONE ? 1 : b->n;
        for (int i = 0; i < n && !b->space; i++) {
            int32_t c = column_of(m, &b->v[i]);
            if (c < 0)
                continue;
            (*body)[c] = (int32_t)k;
            (*axis)[c] = b->n == LONE ? 1 : i;
        }
    }
}

size_t contact_registers(const program *p)
{
    size_t n = 1;
    for (size_t c = 0; c < p->ncontact; c++) {
        const contact_family *f = &p->contact[c];
        const size_t all[] = { f->gap.tape.nreg, f->gradient.tape.nreg, f->slip_map.tape.nreg,
                               f->points.tape.nreg };
        for (int k = 0; k < 4; k++)
            n = n > all[k] ? n : all[k];
    }
    return n;
}

void state_read(arena *a, const results *r, inputs *in, double *q, double *v, double t)
{
    *in = (inputs){ .t = t };
    for (int32_t k = 0; k < r->prog->nq; k++) {
        q[k] = results_q(r, k, t);
        v[k] = results_v(r, k, t);
    }
    in->from[IN_BASE] = bases_of(a, r->prog, q);
    in->from[IN_Q] = q;
    in->from[IN_V] = v;
    in->from[IN_PARAM] = r->param;
}
