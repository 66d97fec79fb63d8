/* Contacts that share a dof belong together. Orders and groups depend only on the list of contacts. */
#include <string.h>
#include "impulses.h"
#include "base/linalg.h"

/* Contacts at each dof. */
typedef struct {
    int *start, *list;
} touching;

typedef struct {
    const contact_list *l;
    touching t;
    bool *seen_dof;
    int *seen; /* number of the last search that visited the contact */
    int visit;
    int *queue;
} walker;

static touching contacts_at(const contact_list *l, int ndof, arena *a)
{
    touching t = { arena_array(a, int, ndof + 2), arena_array(a, int, l->dof_at[l->n] + 1) };
    for (int k = 0; k < l->dof_at[l->n]; k++)
        t.start[l->dof[k] + 2]++;
    for (int k = 2; k < ndof + 2; k++)
        t.start[k] += t.start[k - 1];
    for (int c = 0; c < l->n; c++)
        for (int k = l->dof_at[c]; k < l->dof_at[c + 1]; k++)
            t.list[t.start[l->dof[k] + 1]++] = c;
    return t;
}

static int degree(const walker *w, int c)
{
    int d = 0;
    for (int k = w->l->dof_at[c]; k < w->l->dof_at[c + 1]; k++)
        d += w->t.start[w->l->dof[k] + 1] - w->t.start[w->l->dof[k]];
    return d;
}

/* Sorts contacts found together by their numbers of neighbours. */
static void queue_sort(const walker *w, int *q, int n)
{
    for (int i = 1; i < n; i++) {
        int c = q[i], d = degree(w, c), j = i;
        for (; j > 0 && degree(w, q[j - 1]) > d; j--)
            q[j] = q[j - 1];
        q[j] = c;
    }
}

/* Breadth-first search from one contact; each dof is visited once, so the cost is that of reading the graph.
 */
static int walk_from(walker *w, int from, int *q, bool sort)
{
    const contact_list *l = w->l;
    int n = 1;
    w->visit++;
    q[0] = from;
    w->seen[from] = w->visit;
    for (int at = 0; at < n; at++) {
        int c = q[at], before = n;
        for (int k = l->dof_at[c]; k < l->dof_at[c + 1]; k++) {
            int dof = l->dof[k];
            if (w->seen_dof[dof])
                continue;
            w->seen_dof[dof] = true;
            for (int j = w->t.start[dof]; j < w->t.start[dof + 1]; j++) {
                int o = w->t.list[j];
                if (w->seen[o] == w->visit)
                    continue;
                w->seen[o] = w->visit;
                q[n++] = o;
            }
        }
        if (sort && n - before > 1 && n - before < 64)
            queue_sort(w, q + before, n - before);
    }
    return n;
}

static void walk_again(walker *w, const int *q, int n)
{
    for (int i = 0; i < n; i++)
        for (int k = w->l->dof_at[q[i]]; k < w->l->dof_at[q[i] + 1]; k++)
            w->seen_dof[w->l->dof[k]] = false;
}

/* Starts from an end of the group, which is where a search from anywhere ends. */
static void order_group(walker *w, int *q, int n)
{
    for (int round = 0; round < 2; round++) {
        int end = q[n - 1];
        walk_again(w, q, n);
        walk_from(w, end, w->queue, true);
        memcpy(q, w->queue, (size_t)n * sizeof *q);
    }
    for (int i = 0; i < n / 2; i++) {
        int c = q[i];
        q[i] = q[n - 1 - i];
        q[n - 1 - i] = c;
    }
}

/* The largest distance of rows that share a dof, in the order q. */
static int band_of(walker *w, const int *q, int n, int *row)
{
    const contact_list *l = w->l;
    int at = 0, kb = 0;
    for (int i = 0; i < n; i++) {
        row[q[i]] = at;
        at += list_rows(l, q[i]);
    }
    for (int i = 0; i < n; i++)
        for (int k = l->dof_at[q[i]]; k < l->dof_at[q[i] + 1]; k++)
            for (int j = w->t.start[l->dof[k]]; j < w->t.start[l->dof[k] + 1]; j++) {
                int o = w->t.list[j], wide = row[o] + list_rows(l, o) - 1 - row[q[i]];
                if (wide > kb)
                    kb = wide;
                if (kb > BAND_MOST)
                    return kb;
            }
    return kb;
}

void islands_find(islands *g, const contact_list *l, int ndof, bool order, arena *a, arena *scratch)
{
    walker w = { .l = l, .t = contacts_at(l, ndof, scratch) };
    int *row = arena_array(scratch, int, l->n + 1), at = 0;
    w.seen_dof = arena_array(scratch, bool, ndof);
    w.seen = arena_array(scratch, int, l->n + 1);
    w.queue = arena_array(scratch, int, l->n + 1);
    if (g->cap < l->n) {
        g->cap = 2 * l->n;
        g->of = arena_array(a, island, g->cap);
        g->at = arena_array(a, int, g->cap);
    }
    g->n = 0;
    for (int c = 0; c < l->n; c++) {
        if (w.seen[c])
            continue;
        island *i = &g->of[g->n++];
        *i = (island){ .first = at, .kb = -1 };
        i->n = walk_from(&w, c, g->at + at, false);
        if (order) {
            order_group(&w, g->at + at, i->n);
            i->kb = band_of(&w, g->at + at, i->n, row);
        }
        /* a large pile is swept in its order in memory */
        else if (i->n > l->n / 4)
            for (int k = 0, o = 0; o < l->n; o++)
                if (w.seen[o] == w.visit)
                    g->at[at + k++] = o;
        at += i->n;
    }
}

/* W of a group in its order. */
contact_problem *island_band(const islands *g, const island *i, const contact_list *l, bool symmetric,
                             arena *a)
{
    int m = 0;
    for (int k = 0; k < i->n; k++)
        m += list_rows(l, g->at[i->first + k]);
    contact_problem *p = band_new(a, i->n, m, i->kb);
    m = 0;
    for (int k = 0; k < i->n; k++) {
        p->cone[k] = l->cone[g->at[i->first + k]];
        p->cone[k].row = m;
        m += cone_rows(&p->cone[k]);
    }
    if (!symmetric)
        band_unsymmetric(p);
    /* only contacts within the band can share a dof */
    for (int x = 0; x < i->n; x++)
        for (int y = x; y < i->n && p->cone[y].row - p->cone[x].row <= i->kb; y++) {
            int c = g->at[i->first + x], o = g->at[i->first + y], nc = l->dof_at[c + 1] - l->dof_at[c],
                no = l->dof_at[o + 1] - l->dof_at[o];
            for (int j = 0; j < nc; j++)
                for (int k = 0; k < no; k++) {
                    if (l->dof[l->dof_at[c] + j] != l->dof[l->dof_at[o] + k])
                        continue;
                    for (int s = 0; s < cone_rows(&p->cone[x]); s++)
                        for (int t = 0; t < cone_rows(&p->cone[y]); t++) {
                            int ri = p->cone[x].row + s, rj = p->cone[y].row + t;
                            size_t at_c = l->J_at[c] + (size_t)(s * nc + j),
                                   at_o = l->J_at[o] + (size_t)(t * no + k);
                            double z = l->J[at_c] * l->K[at_o];
                            *band_at(p, ri, rj) += z;
                            if (x != y)
                                *band_at(p, rj, ri) += symmetric ? z : l->J[at_o] * l->K[at_c];
                        }
                }
        }
    return p;
}
