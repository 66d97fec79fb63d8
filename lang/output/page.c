/* page: a motion as one HTML file for a browser.  The page (viewer.html) is a program that plays the data
   embedded in it: positions of the bodies over time, walls, forces of contact, impacts, series, parameters,
   expectations.  Arrays are base64 of little-endian numbers. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/whole.h"
#include "field/field.h"
#include "program/system.h"
#include "results/session_view.h"
#include "rod/rod.h"
#include "scene.h"
#include "output/viewer_page.h"

enum {
    PAGE_FRAMES = 1200, /* at most; as few as 120 if there are many bodies */
    PAGE_FEWEST = 120,
    PAGE_PLACES = 1000000, /* bodies times frames */
    PAGE_IMPACTS = 1000,   /* that have a frame of their own */
    PAGE_ARROWS = 300000,  /* reactions that are drawn, over all frames */
    PAGE_NODES = 2000,     /* of a field on a line; on an edge in the plane */
    PAGE_EDGE = 160,
    PAGE_SERIES = 120, /* results that can be plotted */
    PAGE_BUCKETS = 600 /* of a long series the smallest and the largest value of each bucket are kept */
};

/* ---- arrays ---- */

static void put_base64(text *t, const void *bytes, size_t n)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *b = bytes;
    text_putc(t, '"');
    for (size_t k = 0; k < n; k += 3) {
        uint32_t x = (uint32_t)b[k] << 16;
        x |= k + 1 < n ? (uint32_t)b[k + 1] << 8 : 0;
        x |= k + 2 < n ? b[k + 2] : 0;
        char four[4] = { digit[x >> 18], digit[x >> 12 & 63], k + 1 < n ? digit[x >> 6 & 63] : '=',
                         k + 2 < n ? digit[x & 63] : '=' };
        text_putn(t, four, 4);
    }
    text_putc(t, '"');
}

typedef vec(float) float_list;

static void put_floats(text *t, const char *name, const float_list *x)
{
    text_printf(t, ",\"%s\":", name);
    put_base64(t, x->at, x->n * sizeof *x->at);
}

static void put_wholes(text *t, const char *name, const whole_list *x)
{
    text_printf(t, ",\"%s\":", name);
    put_base64(t, x->at, x->n * sizeof *x->at);
}

static void put_doubles(text *t, const char *name, const number_list *x)
{
    text_printf(t, ",\"%s\":", name);
    put_base64(t, x->at, x->n * sizeof *x->at);
}

static void put_name(text *t, const char *key, const char *s)
{
    text_printf(t, "\"%s\":", key);
    text_json_str(t, s, strlen(s));
}

/* ---- frames: equally far apart, and one at each impact; or the samples, where nothing is known between them
   and they are few ---- */

static int compare_times(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void impact_times(const scene *m, number_list *out)
{
    const results *r = m->s->last ? m->s->last->r : NULL;
    for (size_t c = 0; r && c < r->prog->ncontact; c++)
        for (size_t k = 0; k < r->contact[c].impacts.n; k++)
            *vec_push(m->s->tmp, out) = r->contact[c].impacts.at[k].t;
    if (out->n)
        qsort(out->at, out->n, sizeof *out->at, compare_times);
    size_t kept = 0;
    for (size_t k = 0; k < out->n; k++)
        if (!kept || out->at[k] > out->at[kept - 1])
            out->at[kept++] = out->at[k];
    out->n = kept;
}

static void frame_times(const scene *m, const stage *g, const number_list *impacts, number_list *out)
{
    double moving = (double)(m->all.n + 3 * m->solids.n + 1);
    int frames = (int)whole_clamp(PAGE_PLACES / moving, PAGE_FEWEST, PAGE_FRAMES);
    const results *r = m->s->last ? m->s->last->r : NULL;
    bool samples = r && r->rod && r->prog->nq == 0 && r->samples > 1 && r->samples <= frames;
    for (int k = 0; k <= frames && !samples; k++)
        *vec_push(m->s->tmp, out) = frame_time(g, k, frames);
    for (int64_t k = 0; samples && k < r->samples; k++)
        *vec_push(m->s->tmp, out) = r->t[k];
    for (size_t k = 0; k < impacts->n && k < PAGE_IMPACTS; k++)
        if (impacts->at[k] >= g->begin && impacts->at[k] <= g->end)
            *vec_push(m->s->tmp, out) = impacts->at[k];
    qsort(out->at, out->n, sizeof *out->at, compare_times);
}

/* ---- bodies ---- */

static void put_bodies(text *t, const scene *m, const number_list *times)
{
    float_list place = { 0 }, angle = { 0 };
    text_puts(t, ",\"bodies\":[");
    for (size_t k = 0; k < m->all.n; k++) {
        const mover *b = &m->all.at[k];
        text_puts(t, k ? ",{" : "{");
        put_name(t, "name", b->name);
        text_printf(t, ",\"r\":%.9g,\"w\":%.9g,\"h\":%.9g,\"line\":%d,\"turns\":%s,\"shaped\":%s}", b->r,
                    b->box[0], b->box[1], b->line, b->turns ? "true" : "false", b->shaped ? "true" : "false");
    }
    text_putc(t, ']');
    for (size_t f = 0; f < times->n; f++)
        for (size_t k = 0; k < m->all.n; k++) {
            double x[3];
            mover_place(m, k, times->at[f], x);
            for (int i = 0; i < 3; i++)
                *vec_push(m->s->tmp, &place) = (float)x[i];
            if (m->all.at[k].turns)
                *vec_push(m->s->tmp, &angle) = (float)number_at(&m->all.at[k].angle, times->at[f]);
        }
    put_floats(t, "place", &place);
    put_floats(t, "angle", &angle);
}

/* ---- shapes: corners, faces and rounds in their own frames; places and two columns of attitudes over time
   ---- */

static void put_vector(text *t, const double *x, int n)
{
    for (int i = 0; i < n; i++)
        text_printf(t, "%s%.9g", i ? "," : "", x[i]);
}

static void put_corners(text *t, const double *v, int n, int axes, int apart)
{
    text_puts(t, ",\"v\":[");
    for (int k = 0; k < n; k++) {
        double x[3] = { 0 };
        memcpy(x, v + k * apart, (size_t)axes * sizeof *x);
        if (k)
            text_putc(t, ',');
        put_vector(t, x, 3);
    }
    text_putc(t, ']');
}

static void put_faces(text *t, const convex *h)
{
    text_puts(t, ",\"faces\":[");
    for (int f = 0; h && f < h->nf; f++) {
        text_puts(t, f ? ",[" : "[");
        for (int k = h->first[f]; k < h->first[f + 1]; k++)
            text_printf(t, "%s%d", k > h->first[f] ? "," : "", h->loop[k]);
        text_putc(t, ']');
    }
    text_putc(t, ']');
}

/* x in it: x.A x <= 1; the map of the unit ball onto it */
static void put_ellipsoid(text *t, const double *A, const double *map)
{
    text_puts(t, ",\"matrix\":[");
    put_vector(t, A, 9);
    text_puts(t, "],\"map\":[");
    put_vector(t, map, 9);
    text_putc(t, ']');
}

static void put_solid(text *t, const scene *m, const solid *s)
{
    static const char *const kinds[] = { "hull", "cylinder", "ellipsoid" };
    text_printf(t, "{\"body\":%d,\"fixed\":%s,", s->body, s->fixed ? "true" : "false");
    put_name(t, "kind", s->of ? kinds[s->of->kind] : "axes");
    text_printf(t, ",\"reach\":%.9g", s->reach);
    if (!s->of) {
        text_puts(t, ",\"r\":0,\"v\":[],\"faces\":[]}");
        return;
    }
    const double *numbers = solid_table(m, s);
    const convex *h = s->of->kind == SHAPE_BALL ? m->seen->hull[s->number][s->inst] : NULL;
    int n = s->of->dim, points = s->of->kind == SHAPE_CYLINDER ? 2 : s->of->npoint;
    text_printf(t, ",\"r\":%.9g", numbers[n]);
    put_corners(t, h ? h->v : numbers, h ? h->nv : points, h ? 3 : n, h ? 3 : n + 1);
    put_faces(t, h);
    if (s->of->kind == SHAPE_ELLIPSOID) {
        double A[9], M[9];
        ellipsoid_map(s->of, numbers, A, M);
        put_ellipsoid(t, A, M);
    }
    text_putc(t, '}');
}

/* ---- bodies that rods touch: they are fixed; cylinders are infinite, and drawn as long as the rods extend
   ---- */

typedef struct rod_bodies {
    const rod_program *rods; /* of the run; NULL: there are none */
    double *reg;
} rod_bodies;

static rod_bodies rod_bodies_of(const scene *m)
{
    const results *r = m->s->last ? m->s->last->r : NULL;
    rod_bodies b = { .rods = r && m->lines && scene_in_space(m) ? r->prog->rod : NULL };
    size_t n = 1;
    for (int k = 0; b.rods && k < b.rods->npair; k++)
        n = n > b.rods->pair[k].body.tape.nreg ? n : b.rods->pair[k].body.tape.nreg;
    b.reg = arena_array(m->s->tmp, double, n);
    return b;
}

/* point, direction (of length 1), radius: as the solver of rods reads them; false: the pair has no such body
 */
static bool rod_body_read(const scene *m, const rod_bodies *all, int pair, double b[7])
{
    const rod_pair *p = &all->rods->pair[pair];
    inputs in = { .from = { [IN_PARAM] = m->s->last->r->param } };
    if (p->what == TOUCH_RODS || p->body.tape.nout != 7)
        return false;
    tape_start(&p->body.tape, all->reg);
    kernel_run(&p->body, &in, NULL, all->reg);
    for (int i = 0; i < 7; i++)
        b[i] = all->reg[p->body.tape.out[i]];
    double n = sqrt(b[3] * b[3] + b[4] * b[4] + b[5] * b[5]);
    for (int i = 3; i < 6 && n > 0; i++)
        b[i] /= n;
    if (p->what == TOUCH_PLANE && n > 0)
        b[6] /= n;
    return true;
}

/* the extent of rods along an axis */
static void rods_along(const scene *m, const number_list *times, const double *b, double *lo, double *hi)
{
    *lo = INFINITY;
    *hi = -INFINITY;
    for (size_t f = 0; f < times->n; f++)
        for (size_t k = 0; k < m->all.n; k++) {
            double x[3], along = 0;
            if (!m->all.at[k].line)
                continue;
            mover_place(m, k, times->at[f], x);
            for (int i = 0; i < 3; i++)
                along += b[3 + i] * (x[i] - b[i]);
            *lo = fmin(*lo, along);
            *hi = fmax(*hi, along);
        }
    *lo -= b[6] / 2;
    *hi += b[6] / 2;
}

static void put_rod_body(text *t, const scene *m, const number_list *times, rod_touch what, const double *b)
{
    double lo, hi, ends[6], R = b[6];
    text_printf(t, "{\"body\":-1,\"fixed\":true,\"reach\":0,\"r\":%.9g,\"faces\":[]", R);
    if (what == TOUCH_CYLINDER) {
        rods_along(m, times, b, &lo, &hi);
        for (int i = 0; i < 3; i++) {
            ends[i] = b[i] + lo * b[3 + i];
            ends[3 + i] = b[i] + hi * b[3 + i];
        }
        text_puts(t, ",\"kind\":\"cylinder\"");
        put_corners(t, ends, 2, 3, 3);
    } else {
        const double A[9] = { 1 / (R * R), 0, 0, 0, 1 / (R * R), 0, 0, 0, 1 / (R * R) },
                     M[9] = { R, 0, 0, 0, R, 0, 0, 0, R };
        text_puts(t, ",\"kind\":\"ellipsoid\"");
        put_corners(t, b, 1, 3, 3);
        put_ellipsoid(t, A, M);
    }
    text_putc(t, '}');
}

/* behind n others; how many there are */
static size_t put_rod_bodies(text *t, const scene *m, const number_list *times, size_t n)
{
    rod_bodies all = rod_bodies_of(m);
    size_t first = n;
    double b[7];
    for (int k = 0; all.rods && k < all.rods->npair; k++) {
        rod_touch what = all.rods->pair[k].what;
        if (!rod_body_read(m, &all, k, b) || what == TOUCH_PLANE || all.rods->pair[k].inside || !(b[6] > 0))
            continue;
        text_puts(t, n++ ? "," : "");
        put_rod_body(t, m, times, what, b);
    }
    return n - first;
}

/* dot(n, x) = level */
static void put_rod_planes(text *t, const scene *m, bool first)
{
    rod_bodies all = rod_bodies_of(m);
    double b[7];
    for (int k = 0; all.rods && k < all.rods->npair; k++) {
        if (all.rods->pair[k].what != TOUCH_PLANE || !rod_body_read(m, &all, k, b))
            continue;
        text_printf(t, "%s[%.9g,%.9g,%.9g,%.9g]", first ? "" : ",", b[3], b[4], b[5], b[6]);
        first = false;
    }
}

static void put_solids(text *t, scene *m, const number_list *times)
{
    float_list pose = { 0 };
    text_puts(t, ",\"shapes\":[");
    for (size_t k = 0; k < m->solids.n; k++) {
        if (k)
            text_putc(t, ',');
        put_solid(t, m, &m->solids.at[k]);
    }
    size_t still = put_rod_bodies(t, m, times, m->solids.n);
    text_putc(t, ']');
    for (size_t f = 0; f < times->n && m->solids.n + still; f++) {
        solids_move(m, times->at[f]);
        for (size_t k = 0; k < m->solids.n; k++) {
            body_pose at = solid_pose(m, k, times->at[f]);
            for (int i = 0; i < 3; i++)
                *vec_push(m->s->tmp, &pose) = (float)at.p[i];
            for (int i = 0; i < 6; i++)
                *vec_push(m->s->tmp, &pose) = (float)at.A[3 * (i % 3) + i / 3];
        }
        for (size_t k = 0; k < 9 * still; k++) /* where they are, as they are */
            *vec_push(m->s->tmp, &pose) = k % 9 == 3 || k % 9 == 7;
    }
    put_floats(t, "pose", &pose);
}

static void put_page_walls(text *t, scene *m, const stage *g)
{
    number_list when = { 0 };
    whole_list at = { 0 };
    float_list x = { 0 };
    walls_watch(m, g);
    int looks = m->moving ? WALL_FRAMES : 1;
    *vec_push(m->s->tmp, &at) = 0;
    for (int f = 0; f < looks; f++) {
        double time = frame_time(g, f, looks > 1 ? looks - 1 : 1);
        if (m->moving)
            walls_at(m, g, time);
        *vec_push(m->s->tmp, &when) = time;
        for (size_t k = 0; k < m->walls.n; k++)
            for (int i = 0; i < 4; i++)
                *vec_push(m->s->tmp, &x) = (float)m->walls.at[k].x[i];
        *vec_push(m->s->tmp, &at) = (int32_t)(x.n / 4);
    }
    text_puts(t, ",\"walls\":{\"moving\":");
    text_puts(t, m->moving ? "true" : "false");
    put_doubles(t, "t", &when);
    put_wholes(t, "at", &at);
    put_floats(t, "x", &x);
    text_putc(t, '}');
}

/* ---- contacts as bodies see them ---- */

typedef struct {
    const scene *m;
    const results *r;
    int32_t *body, *axis; /* see scene_axes */
    whole_list at, of, status;
    float_list force, point; /* point: where shapes touch; not finite: not known */
} arrows;

/* ---- walls in space: planes, of gaps that are linear in the place of one body ---- */

static bool plane_of(const arrows *a, const contact_family *f, const inputs *in, double *reg, wall_plane *out)
{
    int32_t ix[MAX_INDEX] = { 0 }, body = -1;
    *out = (wall_plane){ 0 };
    if (!f->gap_constant_gradient || !f->gap.tape.nout || (f->over.n && !index_first(&f->over, ix)))
        return false;
    tape_start(&f->gradient.tape, reg);
    kernel_run(&f->gradient, in, ix, reg);
    for (uint32_t k = 0; k < f->gradient.tape.nout; k++) {
        int32_t dof = slot_at(&f->gradient.row[k], ix, f->over.n);
        if (a->body[dof] < 0 || (body >= 0 && a->body[dof] != body))
            return false;
        body = a->body[dof];
        out->n[a->axis[dof]] += reg[f->gradient.tape.out[k]];
    }
    double size = sqrt(out->n[0] * out->n[0] + out->n[1] * out->n[1] + out->n[2] * out->n[2]), x[3];
    if (body < 0 || a->m->all.at[body].n != 3 || !(size > 0))
        return false;
    tape_start(&f->gap.tape, reg);
    kernel_run(&f->gap, in, ix, reg);
    double gap = reg[f->gap.tape.out[0]] / size;
    mover_place(a->m, (size_t)body, in->t, x);
    for (int i = 0; i < 3; i++) {
        out->n[i] /= size;
        out->level += out->n[i] * x[i];
    }
    out->level -= gap + a->m->all.at[body].r;
    return true;
}

static void put_planes(text *t, const arrows *a, const inputs *in, double *q, double *reg)
{
    bool first = true;
    text_puts(t, ",\"planes\":[");
    for (size_t c = 0; in && c < a->r->prog->ncontact; c++) {
        wall_plane p;
        const contact_family *f = &a->r->prog->contact[c];
        bool of_shapes = f->points.tape.nout == 6 && halfspace_of(a->m, f, in, q, reg, &p);
        if (!of_shapes && (f->points.tape.nout || !plane_of(a, f, in, reg, &p)))
            continue;
        text_printf(t, "%s[%.9g,%.9g,%.9g,%.9g]", first ? "" : ",", p.n[0], p.n[1], p.n[2], p.level);
        first = false;
    }
    put_rod_planes(t, a->m, first);
    text_putc(t, ']');
}

/* ---- forces of contact: rn times the gradient of the gap, on each body whose place it reads ---- */

/* Adds a component to the arrow of its body; arrows of the current member begin at `first`. */
static void arrow_add(arrows *a, size_t first, int32_t dof, double f, int status, const double *at)
{
    arena *mem = a->m->s->tmp;
    int32_t body = a->body[dof];
    size_t k = first;
    if (body < 0 || !isfinite(f) || f == 0)
        return;
    while (k < a->of.n && a->of.at[k] != body)
        k++;
    if (k == a->of.n) {
        *vec_push(mem, &a->of) = body;
        *vec_push(mem, &a->status) = status;
        for (int i = 0; i < 3; i++) {
            *vec_push(mem, &a->force) = 0;
            *vec_push(mem, &a->point) = (float)at[i];
        }
    }
    a->force.at[3 * k + (size_t)a->axis[dof]] += (float)f;
}

static void family_arrows(arrows *a, size_t c, int64_t sample, const inputs *in, double *reg)
{
    const contact_family *f = &a->r->prog->contact[c];
    const contact_result *x = &a->r->contact[c];
    int32_t ix[MAX_INDEX] = { 0 };
    if (!x->kept || !x->rn || !f->gradient.tape.nout || (f->over.n && !index_first(&f->over, ix)))
        return;
    int64_t member = 0;
    for (bool more = true; more && member < x->members;
         member++, more = f->over.n && index_next(&f->over, ix)) {
        double rn = x->rn[sample * x->members + member];
        if (rn == 0 || a->of.n >= PAGE_ARROWS)
            continue;
        size_t first = a->of.n;
        int law = f->friction == FRICTION_NONE ? STATUS_OPEN
                  : x->status                  ? x->status[sample * x->members + member]
                                               : STATUS_OPEN;
        double at[3] = { NAN }, normal[3];
        shapes_index(a->r->prog, f, member, ix);
        touching_at(f, in, ix, reg, at, normal);
        tape_start(&f->gradient.tape, reg);
        kernel_run(&f->gradient, in, ix, reg);
        for (uint32_t k = 0; k < f->gradient.tape.nout; k++)
            arrow_add(a, first, slot_at(&f->gradient.row[k], ix, f->over.n),
                      rn * reg[f->gradient.tape.out[k]], law, at);
    }
}

static void put_contacts(text *t, scene *m, const number_list *times)
{
    const run *last = m->s->last;
    arrows a = { .m = m, .r = last ? last->r : NULL };
    inputs in;
    *vec_push(m->s->tmp, &a.at) = 0;
    if (a.r && a.r->samples && a.r->prog->nq && a.r->prog->ncontact) {
        size_t nq = (size_t)a.r->prog->nq;
        double *v = arena_array(m->s->tmp, double, nq);
        double *q = arena_array(m->s->tmp, double, nq);
        double *reg = arena_array(m->s->tmp, double, contact_registers(a.r->prog));
        scene_axes(m, a.r, &a.body, &a.axis);
        touching_read(m, &in, q, v, a.r->t[0]);
        put_planes(t, &a, &in, q, reg);
        for (size_t f = 0; f < times->n; f++) {
            touching_read(m, &in, q, v, times->at[f]);
            int64_t sample = sample_before(a.r->t, a.r->samples, in.t);
            for (size_t c = 0; c < a.r->prog->ncontact; c++)
                family_arrows(&a, c, sample, &in, reg);
            *vec_push(m->s->tmp, &a.at) = (int32_t)a.of.n;
        }
    } else
        put_planes(t, &a, NULL, NULL, NULL);
    text_puts(t, ",\"arrows\":{\"kept\":true");
    put_wholes(t, "at", &a.at);
    put_wholes(t, "body", &a.of);
    put_wholes(t, "status", &a.status);
    put_floats(t, "force", &a.force);
    put_floats(t, "point", &a.point);
    text_putc(t, '}');
}

/* ---- series ---- */

typedef struct {
    session *s;
    const results *r;
    text *t;
    size_t n;
    const char *prefix; /* of the current names */
    bool family;        /* the current part is one of several: its number */
    int32_t member;
} series_writer;

/* nothing is written if it is unknown or absent */
static void put_unit(series_writer *w, dim unit)
{
    text t = { .a = w->s->tmp };
    if (unit.any)
        return;
    dim_text(&t, unit);
    if (!strcmp(t.at, "1"))
        return;
    text_putc(w->t, ',');
    put_name(w->t, "unit", t.at);
}

/* all samples, or of each bucket the least and the largest, in the order of time */
static void put_series(series_writer *w, const char *name, dim unit, const double *y, int64_t stride)
{
    const results *r = w->r;
    number_list t = { 0 }, x = { 0 };
    int64_t n = r->samples, bucket = n / PAGE_BUCKETS;
    if (!y || w->n >= PAGE_SERIES)
        return;
    for (int64_t from = 0; from<n; from += bucket> 2 ? bucket : 1) {
        int64_t to = bucket > 2 && from + bucket < n ? from + bucket
                     : bucket > 2                    ? n
                                                     : from + 1,
                lo = from, hi = from;
        for (int64_t k = from; k < to; k++) {
            lo = y[k * stride] < y[lo * stride] ? k : lo;
            hi = y[k * stride] > y[hi * stride] ? k : hi;
        }
        int64_t keep[4] = { from, lo < hi ? lo : hi, lo < hi ? hi : lo, to - 1 }, last = -1;
        for (int i = 0; i < 4; i++)
            if (keep[i] > last) {
                last = keep[i];
                *vec_push(w->s->tmp, &t) = r->t[last];
                *vec_push(w->s->tmp, &x) = y[last * stride];
            }
    }
    text_puts(w->t, w->n++ ? ",{" : "{");
    put_name(w->t, "name", name);
    put_unit(w, unit);
    put_doubles(w->t, "t", &t);
    put_doubles(w->t, "y", &x);
    text_putc(w->t, '}');
}

static const char *member_name(session *s, const contact_family *f, const int32_t *ix, const char *what)
{
    text t = { .a = s->tmp };
    text_puts(&t, f->name);
    for (int k = 0; k < f->nindex; k++)
        text_printf(&t, "%s%d", k ? ", " : "[", (int)ix[index_first_own(f) + k]);
    text_printf(&t, "%s.%s", f->nindex ? "]" : "", what);
    return t.at;
}

static void contact_series_put(series_writer *w, size_t c)
{
    const contact_family *f = &w->r->prog->contact[c];
    const contact_result *x = &w->r->contact[c];
    int32_t ix[MAX_INDEX] = { 0 };
    int64_t m = 0;
    if (!x->kept || (f->over.n && !index_first(&f->over, ix)))
        return;
    for (bool more = true; more && m < x->members && w->n < PAGE_SERIES;
         m++, more = f->over.n && index_next(&f->over, ix)) {
        put_series(w, member_name(w->s, f, ix, "rn"), dim_any(), x->rn ? x->rn + m : NULL, x->members);
        put_series(w, member_name(w->s, f, ix, "gap"), dim_any(), x->gap ? x->gap + m : NULL, x->members);
    }
}

/* a dof and its rate */
static void dof_series_put(void *ud, const char *index, const value *v)
{
    series_writer *w = ud;
    if (v->kind != V_SERIES || v->series.of != (const void *)w->r || w->n >= PAGE_SERIES / 2)
        return;
    const char *name = arena_printf(w->s->tmp, "%s%s", w->prefix, index);
    dim second = dim_none();
    second.e[2] = DIM_ONE;
    put_series(w, name, v->series.unit, v->series.y, v->series.stride);
    bool kept = v->series.y == w->r->q + v->series.column; /* entries of rotations are made, and have none */
    if (kept)
        put_series(w, arena_printf(w->s->tmp, "%s'", name), dim_div(v->series.unit, second),
                   w->r->v + v->series.column, w->r->prog->nq);
}

static void class_series_put(series_writer *w, scope *in, const mclass *c, const char *before);

static void part_series_put(void *ud, const value *part)
{
    series_writer *w = ud;
    const view *of = part->object.of;
    const char *part_name = w->prefix;
    const char *name = w->family ? arena_printf(w->s->tmp, "%s[%d].", part_name, w->member++)
                                 : arena_printf(w->s->tmp, "%s.", part_name);
    bool indexed = w->family;
    int32_t member = w->member;
    class_series_put(w, part->object.in, of->c, name);
    w->family = indexed;
    w->member = member;
    w->prefix = part_name;
}

/* all degrees of freedom of a model, those of its parts behind them */
static void class_series_put(series_writer *w, scope *in, const mclass *c, const char *before)
{
    value v;
    for (size_t k = 0; k < c->dofs.n; k++)
        if (in->find(in, &w->s->ev, c->dofs.at[k]->name, SPAN_NONE, &v) == LOOK_YES) {
            w->prefix = arena_printf(w->s->tmp, "%s%s", before, c->dofs.at[k]->name);
            value_parts(w->s, &v, "", dof_series_put, w);
        }
    for (size_t k = 0; k < c->parts.n && w->n < PAGE_SERIES / 2; k++)
        if (in->find(in, &w->s->ev, c->parts.at[k]->name, SPAN_NONE, &v) == LOOK_YES) {
            w->prefix = arena_printf(w->s->tmp, "%s%s", before, c->parts.at[k]->name);
            w->family = c->parts.at[k]->indexed;
            w->member = c->parts.at[k]->lo;
            value_bodies(w->s, &v, part_series_put, w);
        }
}

static void put_all_series(text *t, session *s)
{
    const run *last = s->last;
    series_writer w = { .s = s, .r = last ? last->r : NULL, .t = t };
    text_puts(t, ",\"series\":[");
    if (w.r && w.r->samples) {
        if (last->of->m && w.r->prog->nq)
            class_series_put(&w, last->top, last->of->m->classes.at[0], "");
        if (results_have_energy(w.r))
            results_need(w.r, PART_ENERGY);
        put_series(&w, "energy", dim_any(), w.r->energy, 1);
        put_series(&w, "dissipated", dim_any(), w.r->dissipated, 1);
        put_series(&w, "work", dim_any(), w.r->work, 1);
        put_series(&w, "drift", dim_any(), w.r->drift, 1);
        for (size_t c = 0; c < w.r->prog->ncontact; c++)
            contact_series_put(&w, c);
    }
    text_putc(t, ']');
}

/* ---- fields: all on a line, with their obstacles; the first one in the plane ---- */

static int64_t thinning(int64_t n, int64_t most)
{
    return n > most ? (n + most - 1) / most : 1;
}

static void put_nodes(text *t, session *s, const char *name, const double *y, int64_t n, int64_t stride)
{
    float_list x = { 0 };
    int64_t by = thinning(n, PAGE_NODES);
    for (int64_t k = 0; k < n; k += by)
        *vec_push(s->tmp, &x) = (float)y[k * stride];
    if (n && (n - 1) % by)
        *vec_push(s->tmp, &x) = (float)y[(n - 1) * stride];
    put_floats(t, name, &x);
}

static void put_line_fields(text *t, session *s, const field_result *f)
{
    text_puts(t, ",\"field\":{\"plane\":false");
    put_nodes(t, s, "x", f->x, f->n, 1);
    text_puts(t, ",\"lines\":[");
    for (int i = 0; i < f->fp->nfield; i++) {
        value u;
        text_puts(t, i ? ",{" : "{");
        put_name(t, "name", f->fp->name[i]);
        put_nodes(t, s, "u", f->u + i, f->n, f->fp->nfield);
        text_puts(t, ",\"obstacles\":[");
        for (int k = 0; field_value(s->last, i, &u); k++) {
            const double *psi = field_obstacle_at(s->last, &u, k, s->tmp);
            if (!psi)
                break;
            text_puts(t, k ? ",{\"of\":0" : "{\"of\":0");
            put_nodes(t, s, "u", psi, f->n, 1);
            text_putc(t, '}');
        }
        text_puts(t, "]}");
    }
    text_puts(t, "]}");
}

static void put_plane_field(text *t, session *s, const field_result *f)
{
    float_list u = { 0 };
    whole_list touch = { 0 };
    int64_t by[2] = { thinning(f->m[0], PAGE_EDGE), thinning(f->m[1], PAGE_EDGE) };
    int nx = (int)((f->m[0] - 1) / by[0] + 1), ny = (int)((f->m[1] - 1) / by[1] + 1);
    for (int64_t j = 0; j < f->m[1]; j += by[1])
        for (int64_t i = 0; i < f->m[0]; i += by[0]) {
            int64_t k = j * f->m[0] + i;
            *vec_push(s->tmp, &u) = (float)f->u[k * f->fp->nfield];
            *vec_push(s->tmp, &touch) = f->touch && f->touch[k];
        }
    text_printf(t, ",\"field\":{\"plane\":true,\"nx\":%d,\"ny\":%d,\"box\":[%.9g,%.9g,%.9g,%.9g],", nx, ny,
                f->ux[0][0], f->ux[0][(nx - 1) * by[0]], f->ux[1][0], f->ux[1][(ny - 1) * by[1]]);
    put_name(t, "name", f->fp->name[0]);
    put_floats(t, "u", &u);
    put_wholes(t, "touch", &touch);
    text_putc(t, '}');
}

static void put_field(text *t, session *s)
{
    const field_result *f = s->last ? s->last->r->field : NULL;
    if (f && f->n && f->fp->ncoord == 1)
        put_line_fields(t, s, f);
    else if (f && f->n)
        put_plane_field(t, s, f);
}

/* ---- numbers ---- */

static void put_pair(text *t, bool first, const char *name, double x)
{
    text_puts(t, first ? "[" : ",[");
    text_json_str(t, name, strlen(name));
    text_putc(t, ',');
    text_json_num(t, x);
    text_putc(t, ']');
}

static void put_numbers(text *t, session *s)
{
    const results *r = s->last ? s->last->r : NULL;
    size_t n = 0;
    text_puts(t, ",\"params\":[");
    for (size_t k = 0; r && k < r->prog->nparam_info; k++)
        if (r->prog->param[k].size == 1)
            put_pair(t, !n++, r->prog->param[k].name, r->param[r->prog->param[k].at]);
    text_puts(t, "],\"numbers\":[");
    if (r) {
        put_pair(t, true, "steps", (double)r->count.steps);
        put_pair(t, false, "largest overlap", r->max_penetration);
        put_pair(t, false, "residual", r->residual);
        if (!r->field)
            put_pair(t, false, "power balance", r->power_balance);
        if (!isnan(r->estimate.error))
            put_pair(t, false, "error", r->estimate.error);
    }
    for (size_t k = 0; k < s->rec.measures.n; k++) {
        double x;
        if (v_scalar(&s->rec.measures.at[k].v, &x))
            put_pair(t, !r && !k, s->rec.measures.at[k].name, x);
    }
    text_puts(t, "],\"expects\":[");
    for (size_t k = 0; k < s->rec.expects.n; k++) {
        const expectation *x = &s->rec.expects.at[k];
        text_puts(t, k ? ",{" : "{");
        put_name(t, "text", x->text ? x->text : "");
        text_putc(t, ',');
        put_name(t, "label", x->label ? x->label : "");
        text_printf(t, ",\"ok\":%s", x->ok ? "true" : "false");
        double is;
        if (x->v.kind != V_ERROR && v_scalar(&x->v, &is)) {
            text_puts(t, ",\"value\":");
            text_json_num(t, is);
        }
        text_putc(t, '}');
    }
    text_putc(t, ']');
}

/* ---- files of numbers, as they are ---- */

enum { PAGE_FILE_BYTES = 8 << 20 }; /* larger ones are left out */

static void put_file(text *t, session *s, const file_root *in, const char *name, size_t *n)
{
    char *rows;
    size_t len;
    if (strcmp(file_ending(name), ".csv") || file_whole(s->tmp, in, name, PAGE_FILE_BYTES, &rows, &len))
        return;
    text_puts(t, (*n)++ ? ",{" : "{");
    put_name(t, "name", name);
    text_puts(t, ",\"text\":");
    text_json_str(t, rows, len);
    text_putc(t, '}');
}

/* ---- the page ---- */

static bool moves(const mover *b)
{
    return b->v[0].kind == V_SERIES || b->v[1].kind == V_SERIES || b->v[2].kind == V_SERIES;
}

/* the time that is shown: that of what moves, or of the run */
static void stage_time(const session *s, stage *g, const scene *m)
{
    const results *r = s->last ? s->last->r : NULL;
    for (size_t k = 0; k < m->all.n; k++)
        if (moves(&m->all.at[k]))
            return;
    if (!r || !r->samples || !(r->t[r->samples - 1] > r->t[0]))
        return;
    g->begin = r->t[0];
    g->end = r->t[r->samples - 1];
}

/* of the last run and what moves in it; the object is left open */
/* what ran it, and how far; the path of a load has no steps of time */
static const char *about(session *s, const run *r)
{
    if (r->r->field)
        return r->with->name;
    if (r->r->count.steps == 0)
        return arena_printf(s->tmp, "%s, to t = %.6g", r->with->name, r->r->t_end);
    return arena_printf(s->tmp, "%s, %lld steps to t = %.6g", r->with->name, (long long)r->r->count.steps,
                        r->r->t_end);
}

static void put_run(text *t, scene *m)
{
    stage g = stage_of(m, 1);
    const run *last = m->s->last;
    number_list times = { 0 }, impacts = { 0 };
    stage_time(m->s, &g, m);
    impact_times(m, &impacts);
    frame_times(m, &g, &impacts, &times);
    text_putc(t, '{');
    put_name(t, "title", last ? last->r->prog->model : "CDL");
    text_putc(t, ',');
    put_name(t, "about", last ? about(m->s, last) : "");
    text_putc(t, ',');
    put_name(t, "doc", last && last->of->decl && last->of->decl->doc ? last->of->decl->doc : "");
    text_printf(t, ",\"begin\":%.17g,\"end\":%.17g,\"space\":%s", g.begin, g.end,
                scene_in_space(m) ? "true" : "false");
    put_doubles(t, "t", &times);
    put_doubles(t, "impacts", &impacts);
    put_bodies(t, m, &times);
    put_solids(t, m, &times);
    put_page_walls(t, m, &g);
    put_contacts(t, m, &times);
    put_all_series(t, m->s);
    put_numbers(t, m->s);
    if (m->field)
        put_field(t, m->s);
}

/* a < could end a script; in JSON it occurs only in strings */
static void put_script_json(text *t, const text *json)
{
    size_t from = 0;
    for (size_t k = 0; k < json->n; k++)
        if (json->at[k] == '<') {
            text_putn(t, json->at + from, k - from);
            text_puts(t, "\\u003c");
            from = k + 1;
        }
    text_putn(t, json->at + from, json->n - from);
}

/* the page around what it shows */
static void put_around(text *t, const text *json)
{
    for (size_t k = 0; viewer_page[k]; k++) {
        const char *hole = strstr(viewer_page[k], "@DATA@");
        if (!hole) {
            text_puts(t, viewer_page[k]);
            continue;
        }
        text_putn(t, viewer_page[k], (size_t)(hole - viewer_page[k]));
        put_script_json(t, json);
        text_puts(t, hole + strlen("@DATA@"));
    }
}

void put_page(text *t, scene *m)
{
    text json = { .a = m->s->tmp };
    put_run(&json, m);
    text_putc(&json, '}');
    put_around(t, &json);
}

static void put_manifest(text *t, const char *manifest, size_t n)
{
    text_puts(t, ",\"manifest\":");
    text_json_str(t, manifest, n);
    text_puts(t, ",\"files\":[");
}

/* named on the command line, so it may lie anywhere */
static void page_write(session *s, const char *path, text *json)
{
    text page = { .a = s->tmp };
    file_root out = { s->option[OPTION_OUTPUT], true };
    text_puts(json, "]}");
    put_around(&page, json);
    int error = outfile_whole(s->tmp, &out, path, page.at, page.n);
    if (error)
        diag_error(s->d, DIAG_IO, SPAN_NONE, "cannot write '%s': %s", session_path(s, path),
                   error_text(s->tmp, error));
    else
        session_note(s, "wrote %s", session_path(s, path));
}

void page_report(session *s, const text *manifest)
{
    text json = { .a = s->tmp };
    file_root made = session_folder(s);
    scene m;
    size_t n = 0;
    scene_begin(&m, s);
    scene_add_all(&m);
    if (m.all.n > SCENE_MOST)
        m.all.n = 0;
    put_run(&json, &m);
    put_manifest(&json, manifest->at, manifest->n);
    for (size_t k = 0; k < s->tally.made.n; k++)
        put_file(&json, s, &made, s->tally.made.at[k].path, &n);
    page_write(s, s->option[OPTION_REPORT], &json);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void page_folder(session *s, const char *folder, const char *page)
{
    text json = { .a = s->tmp };
    file_root in = { folder, false };
    scene nothing;
    char *manifest;
    size_t len, n = 0;
    vec(const char *) names = { 0 };
    int error = file_whole(s->tmp, &in, "manifest.json", PAGE_FILE_BYTES, &manifest, &len);
    DIR *d = error ? NULL : opendir(folder);
    if (!d) {
        diag_error(s->d, DIAG_IO, SPAN_NONE, "cannot read 'manifest.json' in '%s': %s", folder,
                   error_text(s->tmp, error ? error : errno));
        return;
    }
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        *vec_push(s->tmp, &names) = arena_strdup(s->tmp, e->d_name);
    closedir(d);
    qsort(names.at, names.n, sizeof *names.at, compare_names);
    scene_begin(&nothing, s);
    put_run(&json, &nothing);
    put_manifest(&json, manifest, len);
    for (size_t k = 0; k < names.n; k++)
        put_file(&json, s, &in, names.at[k], &n);
    page_write(s, page, &json);
}
