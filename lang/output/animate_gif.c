/* animate_gif: frames drawn here, a palette of eight. */
#include <math.h>
#include <string.h>
#include "base/whole.h"
#include "scene.h"

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
        draw_line(c, p, e, b->r > 0 ? fmax(b->r * g->scale, 0.5) : 1.5, colour);
    }
    for (int i = 0; b->box[0] > 0 && i < 4; i++) {
        box_corner(b, z, time, i, at);
        to_pixels(g, at, e);
        box_corner(b, z, time, (i + 1) % 4, at);
        double f[2];
        to_pixels(g, at, f);
        draw_line(c, e, f, 1, colour);
    }
    if (b->shaped)
        return;
    if (!(b->box[0] > 0) && !b->space)
        draw_disk(c, p, b->r > 0 ? fmax(b->r * g->scale, 1) : b->line ? 2 : 4.5, colour);
    if (!b->turns || !(b->r > 0))
        return;
    at[0] = z[0] + b->r * cos(number_at(&b->angle, time));
    at[1] = z[1] + b->r * sin(number_at(&b->angle, time));
    to_pixels(g, at, e);
    draw_line(c, p, e, 0.5, INK_WHITE);
}

/* outlines of shapes */
static void draw_solids(canvas *c, const scene *m, const stage *g, double time)
{
    solids_move(m, time);
    for (size_t k = 0; k < m->solids.n; k++) {
        const solid *s = &m->solids.at[k];
        body_pose at = solid_pose(m, k, time);
        unsigned char colour = s->fixed ? INK_WALL
                                        : (unsigned char)(INK_FIRST + (s->body < 0 ? (int)k : s->body) % 6);
        for (size_t j = 0; j < s->strokes.n; j++)
            for (int i = 0; i < s->strokes.at[j].n; i++) {
                double z[2], p[2][2];
                solid_seen(s, &at, s->strokes.at[j].x[i], z);
                to_pixels(g, z, p[i % 2]);
                if (i)
                    draw_line(c, p[0], p[1], 0.5, colour);
            }
    }
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

void put_gif(text *t, scene *m)
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
        draw_solids(&c, m, &g, time);
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
