/* session_animate: animate("a.svg", p, q, ...) draws the motion of points in the plane as an SVG that moves by itself.  A thing is a family
   of dofs in the plane (its components come in pairs), or a lone dof, which moves up and down. */
#include <math.h>
#include <string.h>
#include "session.h"

enum { FRAMES = 240, WIDE = 640 };
typedef struct { value v[2]; int n; } mover;                /* one or two series */
typedef struct { session *s; vec(mover) all; bool bad; } movers;

static void mover_put(void *ud, const char *index, const value *part)
{
    movers *m = ud;
    (void)index;
    if (part->kind != V_SERIES || part->series.n < 1) { m->bad = true; return; }
    mover *last = m->all.n ? &m->all.at[m->all.n - 1] : NULL;
    if (last && last->n == 1) { last->v[1] = *part; last->n = 2; return; }
    *vec_push(m->s->tmp, &m->all) = (mover){ .v = { *part }, .n = 1 };
}

/* a family gives pairs; what is left over alone moves up and down, told by n == -1 */
static void thing_read(movers *m, const value *v)
{
    value_parts(m->s, v, "", mover_put, m);
    if (m->all.n && m->all.at[m->all.n - 1].n == 1) m->all.at[m->all.n - 1].n = -1;
}

static void mover_at(const mover *m, size_t k, double t, double *x, double *y)
{
    *x = m->n == 2 ? value_at(&m->v[0], t) : (double)k;
    *y = value_at(&m->v[m->n == 2 ? 1 : 0], t);
}

typedef struct { double lo[2], hi[2], scale, begin, end; int frames; } stage;

static stage stage_of(const movers *m)
{
    const value *v = &m->all.at[0].v[0];
    stage g = { .lo = { INFINITY, INFINITY }, .hi = { -INFINITY, -INFINITY }, .begin = v->series.t[0],
                .end = v->series.t[v->series.n - 1], .frames = FRAMES };
    for (size_t k = 0; k < m->all.n; k++)
        for (int f = 0; f <= g.frames; f++) {
            double z[2];
            mover_at(&m->all.at[k], k, g.begin + (g.end - g.begin) * f / g.frames, &z[0], &z[1]);
            for (int i = 0; i < 2; i++) if (isfinite(z[i])) { g.lo[i] = fmin(g.lo[i], z[i]); g.hi[i] = fmax(g.hi[i], z[i]); }
        }
    double wide = fmax(g.hi[0] - g.lo[0], g.hi[1] - g.lo[1]);
    if (!(wide > 0)) wide = 1;
    for (int i = 0; i < 2; i++) { g.lo[i] -= 0.08 * wide; g.hi[i] += 0.08 * wide; }
    g.scale = WIDE / (1.16 * wide);
    return g;
}

/* one coordinate over all frames */
static void put_motion(text *t, const stage *g, const mover *m, size_t k, int axis)
{
    text_printf(t, "<animate attributeName=\"c%c\" dur=\"%.6gs\" repeatCount=\"indefinite\" values=\"", axis ? 'y' : 'x',
                fmax(g->end - g->begin, 0.1));
    for (int f = 0; f <= g->frames; f++) {
        double z[2];
        mover_at(m, k, g->begin + (g->end - g->begin) * f / g->frames, &z[0], &z[1]);
        text_printf(t, "%s%.2f", f ? ";" : "", axis ? (g->hi[1] - z[1]) * g->scale : (z[0] - g->lo[0]) * g->scale);
    }
    text_puts(t, "\"/>");
}

static void put_picture(text *t, const movers *m)
{
    static const char *const colours[] = { "#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf" };
    stage g = stage_of(m);
    double w = (g.hi[0] - g.lo[0]) * g.scale, h = (g.hi[1] - g.lo[1]) * g.scale, zero = g.hi[1] * g.scale;
    text_printf(t, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.2f %.2f\">\n", w, h, w, h);
    text_puts(t, "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
    if (zero > 0 && zero < h) text_printf(t, "<path d=\"M0 %.2fH%.2f\" stroke=\"gray\"/>\n", zero, w);
    for (size_t k = 0; k < m->all.n; k++) {
        text_printf(t, "<circle r=\"7\" fill=\"%s\">", colours[k % 6]);
        put_motion(t, &g, &m->all.at[k], k, 0);
        put_motion(t, &g, &m->all.at[k], k, 1);
        text_puts(t, "</circle>\n");
    }
    text_puts(t, "</svg>\n");
}

value call_animate(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    session *s = ev->of;
    movers m = { .s = s };
    text t = { .a = s->tmp };
    (void)in;
    if (arg[0].kind != V_STRING || arg[0].str.len < 5 || memcmp(arg[0].str.at + arg[0].str.len - 4, ".svg", 4)) {
        diag_error(ev->d, DIAG_TYPE, call->at, "animate takes the name of a .svg file first");
        return v_error();
    }
    for (size_t k = 1; k < n; k++) thing_read(&m, &arg[k]);
    if (m.bad || !m.all.n || m.all.n > 500) {
        diag_error(ev->d, DIAG_TYPE, call->at, m.all.n > 500 ? "animate draws at most 500 points" : "animate draws degrees of freedom of a run");
        return v_error();
    }
    put_picture(&t, &m);
    const char *path = path_join(s->tmp, s->option[OPTION_OUTPUT], arena_strndup(s->tmp, arg[0].str.at, arg[0].str.len));
    int error = outfile_whole(s->tmp, path, t.at, t.n);
    if (error) {
        diag_error(ev->d, DIAG_IO, call->at, "cannot write '%s': %s", path, error_text(s->tmp, error));
        return v_error();
    }
    manifest_file(s, path, "picture");
    return v_string(s->tmp, path, strlen(path));
}
