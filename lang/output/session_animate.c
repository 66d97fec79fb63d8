/* session_animate: animate("a.svg", p, q, ...) draws a motion as an animated SVG, as a GIF, or as a page
   for a browser.  Of a rod that moves in time the centreline is seen from aside, of another that at the end
   of the run from all sides. */
#include <math.h>
#include <string.h>
#include "scene.h"

enum { WIDE = 640 };

/* ---- SVG ---- */

static const char *const colours[] = { "#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf" };

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
    for (int f = 0; f <= SCENE_FRAMES; f++) {
        if (f)
            text_putc(t, ';');
        put(t, ud, g, frame_time(g, f, SCENE_FRAMES));
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
    if (b->space || b->shaped || (b->line && b->r > 0))
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

/* ---- shapes: their outlines ---- */

static void put_strokes(text *t, const solid *s, const stage *g, const body_pose *at)
{
    for (size_t k = 0; k < s->strokes.n; k++)
        for (int i = 0; i < s->strokes.at[k].n; i++) {
            double z[2], p[2];
            solid_seen(s, at, s->strokes.at[k].x[i], z);
            to_pixels(g, z, p);
            text_printf(t, "%c%.2f %.2f", i ? 'L' : 'M', p[0], p[1]);
        }
}

static void put_solids(text *t, const scene *m, const stage *g)
{
    size_t n = m->solids.n;
    body_pose *at = arena_array(m->s->tmp, body_pose, n * (SCENE_FRAMES + 1) + 1);
    for (int f = 0; f <= SCENE_FRAMES && n; f++) {
        double time = frame_time(g, f, SCENE_FRAMES);
        solids_move(m, time);
        for (size_t k = 0; k < n; k++)
            at[(size_t)f * n + k] = solid_pose(m, k, time);
    }
    for (size_t k = 0; k < n; k++) {
        const solid *s = &m->solids.at[k];
        if (!s->strokes.n)
            continue;
        text_printf(t, "<path stroke=\"%s\" stroke-width=\"2\" fill=\"none\" d=\"",
                    s->fixed ? "#555" : colours[(size_t)(s->body < 0 ? (int)k : s->body) % 6]);
        put_strokes(t, s, g, &at[k]);
        text_printf(t, "\"><animate attributeName=\"d\" dur=\"%.6gs\" repeatCount=\"indefinite\" values=\"",
                    fmax(g->end - g->begin, 0.1));
        for (int f = 0; f <= SCENE_FRAMES; f++) {
            if (f)
                text_putc(t, ';');
            put_strokes(t, s, g, &at[(size_t)f * n + k]);
        }
        text_puts(t, "\"/></path>\n");
    }
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
        const mover *b = &m->all.at[k];
        text_printf(t, "<polyline stroke=\"%s\" stroke-width=\"%.4g\" fill=\"none\"", colours[b->line % 6],
                    b->r > 0 ? fmax(2 * b->r * g.scale, 1) : 4);
        put_start(t, &g, "points", put_points, &o);
        text_putc(t, '>');
        put_motion(t, &g, "points", put_points, &o);
        text_puts(t, "</polyline>\n");
    }
    put_solids(t, m, &g);
    for (size_t k = 0; k < m->all.n; k++)
        put_body(t, m, &g, k);
    text_puts(t, "</svg>\n");
}
/* ---- the function ---- */

typedef struct writer {
    const char *ending;
    void (*put)(text *t, scene *m);
    bool fields; /* it shows fields as well */
} writer;

static const writer *writer_of(const char *name)
{
    static const writer all[] = { { ".svg", put_svg, false },
                                  { ".gif", put_gif, false },
                                  { ".html", put_page, true } };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (!strcmp(file_ending(name), all[k].ending))
            return &all[k];
    return NULL;
}

bool animation_named(const char *name)
{
    return writer_of(name) != NULL;
}

static value call_animate(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    session *s = ev->of;
    scene m;
    text t = { .a = s->tmp };
    (void)in;
    const char *name = arg[0].kind == V_STRING ? arena_strndup(s->tmp, arg[0].str.at, arg[0].str.len) : "";
    const writer *how = writer_of(name);
    if (!how) {
        diag_error(ev->d, DIAG_TYPE, call->at, "animate takes the name of a .html, .svg or .gif file first");
        return v_error();
    }
    scene_begin(&m, s);
    for (size_t k = 1; k < n; k++)
        scene_add(&m, span_text(ev->d, call->kid[k + 1]->at, s->tmp), &arg[k]);
    if (n == 1)
        scene_add_all(&m);
    bool something = m.all.n || (m.field && how->fields);
    if (m.bad || !something || m.all.n > SCENE_MOST) {
        diag_error(ev->d, DIAG_TYPE, call->at,
                   m.all.n > SCENE_MOST
                       ? "animate draws at most %d objects"
                       : "animate draws degrees of freedom in the plane or of one number, points, "
                         "lines, parts and rods of a run",
                   SCENE_MOST);
        return v_error();
    }
    how->put(&t, &m);
    const char *path = point_path(s, name);
    outfile *f = whole_begin(s, path);
    outfile_put(f, t.at, t.n);
    if (!whole_end(s, f, path, "picture", call->at))
        return v_error();
    path = session_path(s, path);
    return v_string(s->tmp, path, strlen(path));
}

const builtin output_builtins[] = { { "animate", 1, -1, call_animate, false, "animate(\"a.html\", p, ...)",
                                      "writes the motion of dofs, points, lines, parts and rods as a "
                                      "page (.html), an animated SVG or a .gif; by default of all of them" },
                                    { NULL, 0, 0, NULL, false, NULL, NULL } };
