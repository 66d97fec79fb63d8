/* sweep_open: the shortest move of bodies, by their masses, that opens the contacts at hand: sweeps over
   normal rows with conjugate directions.  Rows lie one after the other in memory; those of two points, as
   balls and disks have, are read and written three or two numbers at a time. */
#include <math.h>
#include <string.h>
#include "sweep.h"
#include "base/tolerances.h"

enum { SPACE = 3, PLANE = 2 };
typedef enum { ROW_ANY, ROW_SPACE, ROW_PLANE, ROW_SINGLE } row_kind;

/* A normal row, what it asks for, and the move l along it. */
typedef struct opener {
    row_kind kind;
    bool held;               /* from both sides */
    int a, b;                /* first dof of both points; other rows: their entries are entry[a .. b) */
    double J[2 * SPACE];     /* of the points, one after the other; single: J[0] */
    double light_a, light_b; /* inverse masses */
    double gap, l;
    double over;              /* 1 / (J M^-1 J^T) */
    double off;               /* what a change of l is multiplied by to be a share of what is small */
    double before, direction; /* l as it was; its conjugate direction */
} opener;

typedef struct row_entry {
    int dof;
    double J, K;
} row_entry;

typedef struct opening {
    int n;
    opener *at;
    row_entry *entry;
    double *move;
} opening;

double sweep_small_share(const sweep *w)
{
    return fmin(fmax(0.01 * w->tol, OVERLAP_LEAST), OVERLAP_MOST);
}

static bool has_gap(const contact_state *k)
{
    return k->normal && !k->c->fam->f->of_rates;
}

/* ---- rows ---- */
/* Entries that are not 0: balls do not turn to open a gap. */
static int row_entries(const sweep *w, const contact *c, row_entry *out)
{
    int n = 0;
    for (int k = 0; k < c->n; k++) {
        if (c->H[k] == 0)
            continue;
        int dof = c->dof ? c->dof[k] : k;
        out[n++] = (row_entry){ dof, c->H[k], c->H[k] * w->way.lumped[dof] };
    }
    return n;
}

/* dofs that follow each other, and have one mass */
static bool is_point(const sweep *w, const row_entry *e, int dim)
{
    for (int k = 1; k < dim; k++)
        if (e[k].dof != e[0].dof + k || w->way.lumped[e[k].dof] != w->way.lumped[e[0].dof])
            return false;
    return true;
}

static row_kind row_kind_of(const sweep *w, const row_entry *e, int n)
{
    int dim = n / 2;
    if (n == 1)
        return ROW_SINGLE;
    if ((n != 2 * SPACE && n != 2 * PLANE) || !is_point(w, e, dim) || !is_point(w, e + dim, dim))
        return ROW_ANY;
    return dim == SPACE ? ROW_SPACE : ROW_PLANE;
}

/* what pushed in a step that is over stays closed while others are moved apart */
static bool pushed(const sweep *w, int i)
{
    const contact_state *k = w->hand.act[i];
    return !w->policy.whole && w->contacts.table.closed[w->hand.place[i]] && !k->c->fam->f->pair.touch &&
           k->r[0] > 0;
}

/* contact i of the problem at hand; returns how many entries it keeps */
static int row_put(const sweep *w, int i, double share, opener *o, row_entry *e, int at)
{
    const contact_state *k = w->hand.act[i];
    int n = row_entries(w, k->c, e + at);
    double own = 0;
    e += at;
    for (int j = 0; j < n; j++)
        own += e[j].J * e[j].K;
    *o = (opener){ .kind = row_kind_of(w, e, n), .held = k->relation == REL_BILATERAL || pushed(w, i) };
    o->gap = w->contacts.table.gap[w->hand.place[i]];
    o->over = own > 0 ? 1 / own : 0;
    o->off = own / (*k->length * share);
    if (o->kind == ROW_ANY) {
        o->a = at;
        o->b = at + n;
        return n;
    }
    int dim = n / 2;
    o->a = e[0].dof;
    o->light_a = w->way.lumped[o->a];
    o->J[0] = e[0].J;
    for (int j = 0; j < 2 * dim; j++)
        o->J[j] = e[j].J;
    if (n > 1) {
        o->b = e[dim].dof;
        o->light_b = w->way.lumped[o->b];
    }
    return 0;
}

static opening opening_new(sweep *w, arena *a)
{
    int entries = 0, used = 0;
    double share = sweep_small_share(w);
    const double *M = w->s->mass_constant ? w->M : w->M1;
    for (int i = 0; i < w->n; i++)
        w->way.lumped[i] = 1 / M[matrix_at(&w->s->mass_shape, i, i)];
    for (int i = 0; i < w->hand.nact; i++)
        entries += w->hand.act[i]->c->n;
    opening o = { .at = arena_alloc(a, (size_t)w->hand.nact * sizeof *o.at),
                  .entry = arena_alloc(a, (size_t)entries * sizeof *o.entry),
                  .move = w->room.x1 };
    for (int i = 0; i < w->hand.nact; i++) {
        if (!has_gap(w->hand.act[i]))
            continue;
        used += row_put(w, i, share, &o.at[o.n], o.entry, used);
        o.n += o.at[o.n].over > 0; /* what nothing moves stays as it is */
    }
    memset(o.move, 0, (size_t)w->n * sizeof *o.move);
    return o;
}

/* ---- sweeps ---- */
/* The gap with all moves so far, and a move along the row: for two points of `dim` numbers each. */
static inline __attribute__((always_inline)) double points_gap(const opener *c, int dim, const double *move)
{
    const double *x = move + c->a, *y = move + c->b;
    double u = c->gap;
    for (int k = 0; k < dim; k++)
        u += c->J[k] * x[k] + c->J[dim + k] * y[k];
    return u;
}

static inline __attribute__((always_inline)) void points_move(const opener *c, int dim, double by,
                                                              double *move)
{
    double *x = move + c->a, *y = move + c->b, a = by * c->light_a, b = by * c->light_b;
    for (int k = 0; k < dim; k++) {
        x[k] += a * c->J[k];
        y[k] += b * c->J[dim + k];
    }
}

static inline double row_gap(const opening *o, const opener *c)
{
    double u = c->gap;
    switch (c->kind) {
    case ROW_SPACE:
        return points_gap(c, SPACE, o->move);
    case ROW_PLANE:
        return points_gap(c, PLANE, o->move);
    case ROW_SINGLE:
        return u + c->J[0] * o->move[c->a];
    case ROW_ANY:
        break;
    }
    for (int k = c->a; k < c->b; k++)
        u += o->entry[k].J * o->move[o->entry[k].dof];
    return u;
}

static inline void row_move(const opening *o, const opener *c, double by)
{
    switch (c->kind) {
    case ROW_SPACE:
        points_move(c, SPACE, by, o->move);
        return;
    case ROW_PLANE:
        points_move(c, PLANE, by, o->move);
        return;
    case ROW_SINGLE:
        o->move[c->a] += by * c->light_a * c->J[0];
        return;
    case ROW_ANY:
        break;
    }
    for (int k = c->a; k < c->b; k++)
        o->move[o->entry[k].dof] += by * o->entry[k].K;
}

/* returns how far it was off, over what is small */
static inline double open_one(const opening *o, opener *c)
{
    double u = row_gap(o, c);
    if (u >= 0 && c->l == 0 && !c->held)
        return 0;
    double to = c->l - u * c->over;
    if (!c->held && to < 0)
        to = 0;
    double change = to - c->l;
    c->l = to;
    row_move(o, c, change);
    return fabs(change) * c->off;
}

static double open_up(const opening *o)
{
    double worst = 0;
    for (opener *c = o->at, *end = c + o->n; c < end; c++) {
        c->before = c->l;
        worst = larger(worst, open_one(o, c));
    }
    return worst;
}

static double open_down(const opening *o)
{
    double worst = 0;
    for (opener *c = o->at + o->n; c-- > o->at;)
        worst = larger(worst, open_one(o, c));
    return worst;
}

static void open_direction(const opening *o, double *before)
{
    double g2 = 0;
    for (const opener *c = o->at, *end = c + o->n; c < end; c++) {
        double g = c->l - c->before;
        g2 += g * g / c->over; /* whatever the units of gaps are */
    }
    bool go = *before > 0 && g2 <= *before;
    double beta = go ? g2 / *before : 0;
    for (opener *c = o->at, *end = c + o->n; c < end; c++) {
        double g = c->l - c->before, by = beta * c->direction;
        c->direction = go ? by + g : 0;
        if (by == 0)
            continue;
        c->l += by;
        row_move(o, c, by);
    }
    *before = go || *before == 0 ? g2 : 0;
}

/* The shortest move with gap + J x >= 0. */
void sweep_open(sweep *w)
{
    enum { SWEEPS = 300 };
    const double DONE = 0.1; /* of what is small */
    arena_pos mark = arena_mark(w->scratch);
    opening o = opening_new(w, w->scratch);
    double before = 0;
    for (int it = 0; it < SWEEPS; it++) {
        double up = open_up(&o), down = open_down(&o);
        if (larger(up, down) <= DONE)
            break;
        open_direction(&o, &before);
    }
    for (int i = 0; i < w->n; i++) {
        w->q1[i] += o.move[i];
        w->account.opened += w->account.used[i] * o.move[i];
        if (w->policy.islands.stage == STEP_CROWD && !w->policy.islands.calm[i])
            w->policy.islands.opened += w->account.used[i] * o.move[i];
    }
    arena_release(w->scratch, mark);
}
