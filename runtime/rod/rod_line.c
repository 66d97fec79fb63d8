/* rod_line: finds where rods lie along each other. At the start of a step, points of integration on rod a
   (two between the tops of neighbouring hats) get their closest points on rod b. Points that follow each
   other on both rods form a line. A hat whose points all belong to a line, and have nearly the same distance,
   carries forces. Rods that cross, or separate, touch in pairs of points. Points of integration stay at their
   places on rod a until the next step. */
#include "rod_touch.h"
#include "base/tolerances.h"
#include <math.h>
#include <string.h>

/* ---- points of integration ---- */
/* A point of rod a opposite rod b; next: the following point of its line, -1: none. */
typedef struct place {
    int at, next, before;
    touch c;
} place;

typedef struct line_search {
    rod_work *w;
    int pair, n; /* intervals between tops of hats */
    vec(place) place;
    int *first; /* first point of each number along rod a */
} line_search;

static const rod_mesh *rod_a(const line_search *s)
{
    return &s->w->mesh[s->w->rp->pair[s->pair].a];
}

static const rod_mesh *rod_b(const line_search *s)
{
    return &s->w->mesh[s->w->rp->pair[s->pair].b];
}

static double number_of_place(int at)
{
    static const double gauss[2] = { 0.21132486540518711775, 0.78867513459481288225 };
    return HAT * (at / 2 + gauss[at % 2]);
}

static double closeness(const touch *c, double x)
{
    return fabs(c->x - x);
}

static void place_try(line_search *s, int at, int node)
{
    rod_work *w = s->w;
    const rod_mesh *a = rod_a(s), *b = rod_b(s);
    double y = number_of_place(at), s0 = place_of(a, HAT * (at / 2)), s1 = place_of(a, HAT * (at / 2 + 1));
    touch c = { .pair = s->pair, .rod = w->rp->pair[s->pair].b, .y = y, .mid = y, .x = node };
    c.eps = touch_pinned(a);
    c.hats = 1;
    c.ds = (s1 - s0) / 2;
    if (!touch_project(w, &c) || c.clipped || c.gap > w->contact->clear[s->pair])
        return;
    if (a == b && place_of(a, y) - place_of(b, c.x) < M_PI * a->radius)
        return;
    for (size_t i = (size_t)s->first[at]; i < s->place.n; i++)
        if (closeness(&s->place.at[i].c, c.x) < 1)
            return;
    *vec_push(w->tmp, &s->place) = (place){ at, -1, -1, c };
}

static void places_find(line_search *s)
{
    enum { MOST = 16 };
    rod_work *w = s->w;
    const rod_mesh *a = rod_a(s);
    double reach = 2 * w->contact->clear[s->pair] + rod_b(s)->length / (rod_b(s)->nn - 1);
    fill_near(w, s->pair, reach);
    for (int at = 0; at < 2 * s->n; at++) {
        row r;
        double x[3];
        int node[MOST];
        s->first[at] = (int)s->place.n;
        row_at(a, number_of_place(at), &r);
        row_sum(a, &r, r.w, w->state.pos, x);
        int n = nodes_near(w, s->pair, x, reach, node, MOST);
        for (int k = 0; k < n; k++)
            place_try(s, at, node[k]);
    }
    s->first[2 * s->n] = (int)s->place.n;
}

/* Links each point to its successor: on rod b it is at most twice as far away as on rod a. */
static void places_link(line_search *s)
{
    const rod_mesh *a = rod_a(s), *b = rod_b(s);
    for (size_t i = 0; i < s->place.n; i++) {
        place *p = &s->place.at[i];
        double best = p->at + 1 < 2 * s->n
                          ? 2 * (place_of(a, number_of_place(p->at + 1)) - place_of(a, p->c.y))
                          : 0;
        for (int j = s->first[p->at + 1]; p->at + 1 < 2 * s->n && j < s->first[p->at + 2]; j++) {
            double way = fabs(place_of(b, s->place.at[j].c.x) - place_of(b, p->c.x));
            if (way > best || s->place.at[j].before >= 0)
                continue;
            best = way;
            p->next = j;
        }
        if (p->next >= 0)
            s->place.at[p->next].before = (int)i;
    }
}

/* ---- hats ---- */
/* The hat with this number and this first point; false: its points form no line, or are far apart. */
static bool hat_at(const line_search *s, int number, int first, line_hat *h)
{
    const double flat = LINE_FLAT * rod_a(s)->radius;
    int from = number ? 2 * number - 2 : 0, to = number < s->n ? 2 * number + 1 : 2 * number - 1;
    double least = INFINITY, most = -INFINITY, x = 0;
    *h = (line_hat){ .pair = s->pair, .at = HAT * number };
    for (int at = from, i = first; at <= to; at++, i = s->place.at[i].next) {
        if (i < 0)
            return false;
        const touch *c = &s->place.at[i].c;
        double by = (1 - fabs(c->y - h->at) / HAT) * c->ds;
        h->place[h->n] = i;
        h->share[h->n++] = by;
        h->width += by;
        x += by * c->x;
        least = fmin(least, c->gap);
        most = fmax(most, c->gap);
    }
    h->x = x / h->width;
    for (int j = 0; j < h->n; j++)
        h->share[j] /= h->width;
    touch top = {
        .pair = s->pair, .rod = s->w->rp->pair[s->pair].b, .y = h->at, .mid = h->at, .x = h->x, .hats = 1
    };
    top.eps = touch_pinned(rod_a(s));
    if (!touch_project(s->w, &top))
        return false;
    h->x = top.x;
    return most - least <= flat && least < 0.5 * s->w->contact->clear[s->pair] && !touch_held(s->w, &top);
}

/* Hats that follow each other on one line, from `number` on; stores the first point of each and returns their
   number. */
static int line_from(const line_search *s, int number, int first, const bool *taken, line_hat *h)
{
    int n = 0;
    while (number + n <= s->n && first >= 0 && !taken[first] && hat_at(s, number + n, first, &h[n])) {
        /* the next hat begins two points farther on; the first hat is only half a hat */
        int skip = number + n == 0 ? 0 : 2;
        n++;
        for (int k = 0; k < skip && first >= 0; k++)
            first = s->place.at[first].next;
    }
    return n;
}

/* Takes the forces of the previous hat at this place, or of pairs there. */
static void hat_inherit(const rod_work *w, line_hat *h)
{
    const rod_contacts *k = w->contact;
    for (size_t i = 0; i < k->line.n; i++) {
        const line_hat *o = &k->line.at[i];
        if (o->pair != h->pair || o->at != h->at || fabs(o->x - h->x) > 3)
            continue;
        h->lambda = fmax(0, o->fn);
        memcpy(h->l, o->f, sizeof h->l);
        return;
    }
    for (size_t i = 0; i < k->list.n; i++) {
        const touch *c = &k->list.at[i];
        double by = (1 - fabs(c->y - h->at) / HAT) * c->ds / h->width;
        if (c->hats || c->pair != h->pair || by <= 0 || fabs(c->x - h->x) > 3)
            continue;
        h->lambda += by * fmax(0, c->fn);
    }
}

/* Adds the points that hats need to the list; `to`: index of each point there, -1: not added yet. */
static void hat_add(line_search *s, line_hat *h, touches *list, line_hats *line, int *to)
{
    for (int j = 0; j < h->n; j++) {
        int i = h->place[j];
        if (to[i] < 0) {
            to[i] = (int)list->n;
            touch *c = vec_push(s->w->tmp, list);
            *c = s->place.at[i].c;
            c->hats = 0;
        }
        touch *c = &list->at[to[i]];
        c->hat[c->hats] = (int)line->n;
        c->top[c->hats++] = 1 - fabs(c->y - h->at) / HAT;
        h->place[j] = to[i];
    }
    *vec_push(s->w->tmp, line) = *h;
}

static void pair_lines(rod_work *w, int pair, touches *list, line_hats *line)
{
    line_search s = { .w = w, .pair = pair };
    s.n = (int)lround((rod_a(&s)->nn - 1) / HAT);
    s.first = arena_array(w->tmp, int, 2 * s.n + 1);
    places_find(&s);
    places_link(&s);
    int *to = arena_array(w->tmp, int, s.place.n);
    bool *taken = arena_array(w->tmp, bool, s.place.n);
    line_hat *h = arena_array(w->tmp, line_hat, s.n + 1);
    for (size_t i = 0; i < s.place.n; i++)
        to[i] = -1;
    for (int number = 0; number <= s.n; number++) {
        int from = number ? 2 * number - 2 : 0;
        for (int i = s.first[from]; i < s.first[from + 1]; i++) {
            int n = line_from(&s, number, i, taken, h);
            for (int k = number ? 0 : 1; k < n; k++)
                taken[h[k].place[0]] = true;
            for (int k = 0; n >= w->contact->least_line && k < n; k++) {
                hat_inherit(w, &h[k]);
                hat_add(&s, &h[k], list, line, to);
            }
        }
    }
}

/* ---- the list ---- */
/* Is there a line now at the place of this pair of points? */
static bool covered(const touch *c, const touches *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->at[i].pair == c->pair && fabs(list->at[i].y - c->y) < HAT / 2 &&
            fabs(list->at[i].x - c->x) < 3)
            return true;
    return false;
}

/* Moves the force of a hat that no longer exists to the pairs at its place. */
static void hat_leave(const rod_work *w, const line_hat *h, const line_hats *line, touches *list)
{
    touch *best = NULL;
    (void)w;
    for (size_t i = 0; i < line->n; i++)
        if (line->at[i].pair == h->pair && line->at[i].at == h->at && fabs(line->at[i].x - h->x) <= 3)
            return;
    for (size_t i = 0; i < list->n; i++) {
        touch *c = &list->at[i];
        if (!c->hats && c->pair == h->pair && fabs(c->x - h->x) < 3 && fabs(c->y - h->at) < 2 * HAT &&
            (!best || fabs(c->y - h->at) < fabs(best->y - h->at)))
            best = c;
    }
    if (best)
        best->fn += fmax(0, h->fn) * h->width / best->ds;
}

void lines_new(rod_work *w)
{
    rod_contacts *k = w->contact;
    arena_pos mark = arena_mark(w->tmp);
    touches list = { 0 };
    line_hats line = { 0 };
    for (int i = 0; i < w->rp->npair && rod_has_potential(w); i++)
        if (w->rp->pair[i].what == TOUCH_RODS && w->rp->pair[i].a != w->rp->pair[i].b)
            pair_lines(w, i, &list, &line);
    size_t places = list.n;
    for (size_t i = 0; i < k->list.n; i++) {
        touch c = k->list.at[i];
        if (!c.hats && !(c.rod >= 0 && covered(&c, &(touches){ .at = list.at, .n = places })))
            *vec_push(w->tmp, &list) = c;
    }
    for (size_t i = 0; i < k->line.n; i++)
        hat_leave(w, &k->line.at[i], &line, &list);
    vec_reserve(w->a, &k->list, list.n);
    vec_reserve(w->a, &k->line, line.n);
    if (list.n)
        memcpy(k->list.at, list.at, list.n * sizeof *list.at);
    if (line.n)
        memcpy(k->line.at, line.at, line.n * sizeof *line.at);
    k->list.n = list.n;
    k->line.n = line.n;
    arena_release(w->tmp, mark);
}
