/* sweep_open: the shortest move of bodies, weighted with their masses, that opens the current contacts:
   sweeps over normal rows with conjugate directions. Moves are stored in blocks of four, one for each point
   that may touch others. Rows with entries in at most two blocks, such as those of balls, disks and walls,
   are packed. */
#include <math.h>
#include <string.h>
#include "base/four.h"
#include "sweep.h"
#include "base/tolerances.h"

enum { BLOCK = 4, NOWHERE = -1 };

/* A normal row, its gap, and the move l along it. */
typedef struct opener {
    double Ja[BLOCK], Jb[BLOCK]; /* entries in both blocks */
    double light_a, light_b;     /* inverse masses */
    double gap, l;
    double over;              /* 1 / (J M^-1 J^T) */
    double off;               /* factor from a change of l to a fraction of the permitted overlap */
    double before, direction; /* the previous l; its conjugate direction */
    int a, b; /* start of both blocks; for rows that are not packed: their entries are entry[a .. b) */
    bool packed;
    bool held; /* kept on both sides */
} opener;

typedef struct row_entry {
    int at;
    double J, K;
} row_entry;

typedef struct opening {
    int n;
    opener *at;
    row_entry *entry;
    double *move;
} opening;

/* ---- places of the moves of dofs ---- */
static int points_put(const near_pairs *p, int *place, int n)
{
    for (int index = 0; index < 2; index++)
        for (int i = 0; i < p->of[index].n; i++) {
            if (place[near_dof(p, index, p->of[index].lo + i, 0)] != NOWHERE)
                continue;
            for (int k = 0; k < p->dim; k++)
                place[near_dof(p, index, p->of[index].lo + i, k)] = n + k;
            n += BLOCK;
        }
    return n;
}

void sweep_open_new(sweep *w)
{
    const near_list *pairs = &w->contacts.near;
    int *place = w->way.slot = arena_array(w->a, int, w->n), n = 0;
    for (int i = 0; i < w->n; i++)
        place[i] = NOWHERE;
    for (size_t i = 0; i < pairs->nof; i++)
        if (near_of_points(pairs->of[i].fam->f))
            n = points_put(&pairs->of[i], place, n);
    for (int i = 0; i < w->n; i++)
        if (place[i] == NOWHERE)
            place[i] = n++;
    n += BLOCK - n % BLOCK;
    w->way.slots = n + BLOCK; /* the last block is for rows with only one block */
}

double sweep_small_share(const sweep *w)
{
    return fmin(fmax(0.01 * w->tol, OVERLAP_LEAST), OVERLAP_MOST);
}

static bool has_gap(const contact_state *k)
{
    return k->normal && !k->c->fam->f->of_rates;
}

/* ---- rows ---- */
/* Adds an entry to a packed row; false: its block is a third one, or has other masses. */
static inline bool row_pack(opener *o, int at, double J, double light)
{
    int block = at - at % BLOCK;
    if (o->a == NOWHERE || o->a == block) {
        bool fits = o->a == NOWHERE || o->light_a == light;
        o->a = block;
        o->light_a = light;
        o->Ja[at % BLOCK] += J;
        return fits;
    }
    bool fits = o->b == NOWHERE || (o->b == block && o->light_b == light);
    o->b = block;
    o->light_b = light;
    o->Jb[at % BLOCK] += J;
    return fits;
}

/* Nonzero entries: rotations of balls do not open gaps. */
static int row_entries(const sweep *w, const contact *c, row_entry *out)
{
    int n = 0;
    for (int k = 0; k < c->n; k++) {
        int dof = c->dof ? c->dof[k] : k;
        if (c->H[k] != 0)
            out[n++] = (row_entry){ w->way.slot[dof], c->H[k], c->H[k] * w->way.lumped[dof] };
    }
    return n;
}

/* A contact that pushed in the last step stays closed while others are moved apart. */
static bool pushed(const sweep *w, int i)
{
    const contact_state *k = w->hand.act[i];
    return !w->policy.whole && w->contacts.table.closed[w->hand.place[i]] && !k->c->fam->f->pair.touch &&
           k->r[0] > 0;
}

/* Stores contact i of the current problem; returns the number of its entries. */
static int row_put(const sweep *w, int i, double share, opener *o, row_entry *e, int at)
{
    const contact_state *k = w->hand.act[i];
    const contact *c = k->c;
    double own = 0;
    *o = (opener){ .a = NOWHERE, .b = NOWHERE, .packed = true };
    o->held = k->relation == REL_BILATERAL || pushed(w, i);
    o->gap = w->contacts.table.gap[w->hand.place[i]];
    for (int j = 0; j < c->n; j++) {
        int dof = c->dof ? c->dof[j] : j;
        if (c->H[j] == 0)
            continue;
        own += c->H[j] * (c->H[j] * w->way.lumped[dof]);
        o->packed = o->packed && row_pack(o, w->way.slot[dof], c->H[j], w->way.lumped[dof]);
    }
    o->over = own > 0 ? 1 / own : 0;
    o->off = own / (*k->length * share);
    if (o->packed) {
        o->b = o->b == NOWHERE ? w->way.slots - BLOCK : o->b;
        return 0;
    }
    o->a = at;
    o->b = at + row_entries(w, c, e + at);
    return o->b - o->a;
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
                  .move = arena_array(a, double, w->way.slots) };
    for (int i = 0; i < w->hand.nact; i++) {
        if (!has_gap(w->hand.act[i]))
            continue;
        used += row_put(w, i, share, &o.at[o.n], o.entry, used);
        o.n += o.at[o.n].over > 0; /* a row that nothing can move is left out */
    }
    return o;
}

/* ---- sweeps ---- */
/* The gap after all moves so far. */
INLINE double row_gap(const opening *o, const opener *c)
{
    double u = c->gap;
    if (c->packed) {
        four x = *(const four *)c->Ja * *four_at(o->move + c->a) +
                 *(const four *)c->Jb * *four_at(o->move + c->b);
        return u + ((x[0] + x[1]) + (x[2] + x[3]));
    }
    for (int k = c->a; k < c->b; k++)
        u += o->entry[k].J * o->move[o->entry[k].at];
    return u;
}

INLINE void row_move(const opening *o, const opener *c, double by)
{
    if (c->packed) {
        *four_at(o->move + c->a) += by * c->light_a * *(const four *)c->Ja;
        *four_at(o->move + c->b) += by * c->light_b * *(const four *)c->Jb;
        return;
    }
    for (int k = c->a; k < c->b; k++)
        o->move[o->entry[k].at] += by * o->entry[k].K;
}

/* Opens one gap; returns its error as a multiple of the permitted overlap. */
INLINE double open_one(const opening *o, opener *c)
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

INLINE double open_up(const opening *o)
{
    double worst = 0;
    for (opener *c = o->at, *end = c + o->n; c < end; c++) {
        c->before = c->l;
        worst = larger(worst, open_one(o, c));
    }
    return worst;
}

INLINE double open_down(const opening *o)
{
    double worst = 0;
    for (opener *c = o->at + o->n; c-- > o->at;)
        worst = larger(worst, open_one(o, c));
    return worst;
}

INLINE void open_direction(const opening *o, double *before)
{
    double g2 = 0;
    for (const opener *c = o->at, *end = c + o->n; c < end; c++) {
        double g = c->l - c->before;
        g2 += g * g / c->over; /* independent of the units of gaps */
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

INLINE void open_run(const opening *o)
{
    enum { SWEEPS = 300 };
    const double DONE = 0.1; /* fraction of the permitted overlap */
    double before = 0;
    for (int it = 0; it < SWEEPS; it++) {
        double up = open_up(o), down = open_down(o);
        if (larger(up, down) <= DONE)
            break;
        open_direction(o, &before);
    }
}

static void run_base(const opening *o)
{
    open_run(o);
}

FOUR_FAST static void run_wide(const opening *o)
{
    open_run(o);
}

/* Adds to q1 the shortest move with gap + J x >= 0. */
void sweep_open(sweep *w)
{
    arena_pos mark = arena_mark(w->scratch);
    opening o = opening_new(w, w->scratch);
    (FOUR_FAST_HERE ? run_wide : run_base)(&o);
    for (int i = 0; i < w->n; i++) {
        double move = o.move[w->way.slot[i]];
        w->q1[i] += move;
        w->account.opened += w->account.used[i] * move;
        if (w->policy.islands.stage == STEP_CROWD && !w->policy.islands.calm[i])
            w->policy.islands.opened += w->account.used[i] * move;
    }
    arena_release(w->scratch, mark);
}
