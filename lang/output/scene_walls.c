/* scene_walls: walls are where the gap of a constraint of one body alone is zero at a time, or the radius of
   the body away from its middle. */
#include <math.h>
#include <string.h>
#include "scene.h"

enum { WALL_CELLS = 60, WALL_MEMBERS = 64, WALLS = 4000 };

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

int32_t column_of(const scene *m, const value *v)
{
    const results *r = m->s->last->r;
    if (v->kind != V_SERIES || v->series.of != (const void *)r || v->series.order != 0)
        return -1;
    return v->series.y == r->q + v->series.column ? v->series.column : -1; /* not an entry of a rotation */
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

/* The only moving object that a constraint bounds; all.n if there is none, or several. */
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
    if (b->n == LONE) {
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
        if (k == m->all.n || m->all.at[k].n == 3)
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

/* of shapes in the plane: the edge of the half-space that they may not enter, across the whole stage */
static void wall_of_shapes(scene *m, const stage *s, const contact_family *f, const gap_probe *g, double *reg)
{
    wall_plane p;
    if (f->points.tape.nout != 4 || !halfspace_of(m, f, &g->in, g->q, reg, &p) || m->walls.n >= WALLS)
        return;
    double x[2] = { (s->lo[0] + s->hi[0]) / 2, (s->lo[1] + s->hi[1]) / 2 },
           off = p.level - p.n[0] * x[0] - p.n[1] * x[1],
           half = hypot(s->hi[0] - s->lo[0], s->hi[1] - s->lo[1]) / 2;
    wall *w = vec_push(m->s->tmp, &m->walls);
    for (int k = 0; k < 2; k++) {
        w->x[2 * k] = x[0] + off * p.n[0] - (k ? half : -half) * p.n[1];
        w->x[2 * k + 1] = x[1] + off * p.n[1] + (k ? half : -half) * p.n[0];
    }
}

/* at a time: what is not drawn and moves a wall is where it is then */
void walls_at(scene *m, const stage *s, double time)
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
        g.reg = arena_array(m->s->answer, double, contact_registers(r->prog));
        if (f->points.tape.nout) {
            memcpy(q, now, n * sizeof *q);
            wall_of_shapes(m, s, f, &g, g.reg);
            continue;
        }
        tape_start(&f->gap.tape, g.reg);
        walls_of_family(m, s, &g, &f->over, now, step);
    }
    arena_release(m->s->answer, mark);
}

/* Do walls move? Checked at a few times. */
void walls_watch(scene *m, const stage *s)
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
