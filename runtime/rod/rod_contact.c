/* rod_contact: contact of rods with themselves and with each other. Contact is checked at the nodes of one
   rod against the closest points of the other's centreline, a cubic spline near the nodes that has continuous
   curvature and is linear in their positions. The force per length is f_N = max(0, lambda - k gap) along the
   normal. Friction is the projection of R l - k slip on the ball of radius mu f_N. Slip is the distance in
   space of the two material points of the surfaces that coincided at the start of the step, so a rigid motion
   of everything is no slip. */
#include "base/whole.h"
#include "rod_touch.h"
#include "base/tolerances.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double piece_length(const rod_mesh *m, int k)
{
    double a = k > 0 ? m->s[k - 1] : m->s[0], b = k + 1 < m->nn ? m->s[k + 1] : m->s[k];
    return (b - a) / 2;
}

/* Pairs are placed at least APART nodes from each other, and removed if they come closer than CLOSE. With as
   many pairs as nodes the rods could not move at all, and forces would alternate from one to the next. */
static const double APART = 1.5, CLOSE = 0.9;
/* The same for pairs at deep overlaps of lines, and the distance around them in which this applies. Two rods
   that cross at a small angle may press at points closer than nodes, and a pair beside these points tilts the
   rods. */
static const double FINE_APART = 0.05, FINE_CLOSE = 0.02, FINE_AROUND = 2;

static double close_of(const touch *c, const touch *o)
{
    return c->fine || o->fine ? FINE_CLOSE : CLOSE;
}

/* Is there already a pair at (y, x)? */
static bool touch_known(const rod_contacts *k, int pair, double y, double x, double apart)
{
    for (size_t i = 0; i < k->list.n; i++) {
        const touch *c = &k->list.at[i];
        if (c->pair == pair && fabs(c->y - y) < apart && (c->rod < 0 || fabs(c->x - x) < 2.5))
            return true;
    }
    return false;
}

/* Adds the part of a point's weights on nodes that are free to move, and all of its weights. */
static void place_freedom(const rod_work *w, const rod_mesh *m, double x, double *free, double *all)
{
    row r;
    row_at(m, x, &r);
    for (int i = 0; i < r.n; i++) {
        *all += r.w[i] * r.w[i];
        if (!w->ends.held[6 * (m->first + r.first + i)])
            *free += r.w[i] * r.w[i];
    }
}

/* If both points of a pair are held, their distance is fixed, so the pair carries no force. A point at a node
   in the middle of a rod has a 28th of its weight on the neighbouring nodes. */
bool touch_held(const rod_work *w, const touch *c)
{
    double free = 0, all = 0;
    place_freedom(w, slave_of(w, c), c->y, &free, &all);
    if (c->rod >= 0)
        place_freedom(w, &w->mesh[c->rod], c->x, &free, &all);
    return free < 0.1 * all;
}

static void touch_add(rod_work *w, int pair, int node, int j)
{
    rod_contacts *k = w->contact;
    const rod_pair *p = &w->rp->pair[pair];
    const rod_mesh *a = &w->mesh[p->a], *b = &w->mesh[p->b];
    touch c = {
        .pair = pair, .node = a->first + node, .rod = p->b, .x = j, .y = node, .ds = piece_length(a, node)
    };
    if (touch_known(k, pair, node, j, APART) || !touch_place(w, &c) || touch_known(k, pair, c.y, c.x, APART))
        return;
    if (p->a == p->b && fabs(a->s[node] - b->s[whole_clamp(c.x, 0, b->nn - 1)]) < M_PI * a->radius)
        return;
    if (touch_held(w, &c))
        return;
    touch_start(w, &c, w->state.pos0, w->state.rot0);
    if (touch_known(k, pair, c.y0, c.x0, APART))
        return;
    *vec_push(w->a, &k->list) = c;
}

/* Cells have the size of the search distance, so that only neighbouring cells are searched. */
static uint32_t cell_of(const rod_contacts *k, const double *x, double size, int dx, int dy, int dz)
{
    const int64_t far = INT64_C(1) << 50;
    uint64_t h = hash64(0, (uint64_t)(whole_clamp(floor(x[0] / size), -far, far) + dx));
    h = hash64(h, (uint64_t)(whole_clamp(floor(x[1] / size), -far, far) + dy));
    h = hash64(h, (uint64_t)(whole_clamp(floor(x[2] / size), -far, far) + dz));
    return (uint32_t)(h % (uint64_t)k->cells);
}

static double far2(const double *a, const double *b)
{
    double d[3] = { a[0] - b[0], a[1] - b[1], a[2] - b[2] };
    return dot3(d, d);
}

/* The distance of pairs with a body, in nodes. Friction mu N rotates the section by the moment mu r N. If it
   changes from pair to pair at a distance d, this causes forces across the rod of 2 mu r/d times the change,
   and N follows them. If this factor is 1 or more, no state is found; so d is at least 3 mu r. */
static double body_apart(const rod_work *w, int pair)
{
    const rod_contacts *k = w->contact;
    const rod_mesh *a = &w->mesh[w->rp->pair[pair].a];
    double apart = k->thinned ? 2 : 1;
    return k->tresca[pair] || !(k->mu[pair] > 0)
               ? 1
               : fmax(apart, ceil(3 * k->mu[pair] * a->radius * (a->nn - 1) / a->length));
}

static void find_body(rod_work *w, int pair)
{
    rod_contacts *k = w->contact;
    const rod_pair *p = &w->rp->pair[pair];
    const rod_mesh *a = &w->mesh[p->a];
    double apart = body_apart(w, pair) - 0.5;
    for (int i = 0; i < a->nn; i++) {
        touch c = { .pair = pair, .node = a->first + i, .rod = -1, .ds = piece_length(a, i) };
        touch_project(w, &c);
        if (c.gap > 2 * a->radius || touch_known(k, pair, c.y, 0, apart) || touch_held(w, &c))
            continue;
        touch_start(w, &c, w->state.pos0, w->state.rot0);
        *vec_push(w->a, &k->list) = c;
    }
}

/* Forces at every node may alternate from one node to the next, and friction with them, between stick and
   slip: a rod that is held at all its nodes has as many forces as dofs. So every second pair is removed, and
   gives half of its force to each neighbour; constant forces do not change. */
bool contacts_thin(rod_work *w)
{
    rod_contacts *k = w->contact;
    size_t n = 0;
    bool any = false;
    for (size_t i = 0; i < k->list.n; i++)
        any = any || (k->list.at[i].rod < 0 && body_apart(w, k->list.at[i].pair) == 1 &&
                      k->mu[k->list.at[i].pair] > 0);
    if (!any || k->thinned || w->ro->penalty || w->motion)
        return false;
    k->thinned = true;
    vec_reserve(w->a, &k->saved.list, k->list.n);
    for (size_t i = 0; i < k->list.n; i++) {
        touch c = k->list.at[i];
        bool body = c.rod < 0 && body_apart(w, c.pair) == 2;
        if (body && (c.node - slave_of(w, &c)->first) % 2)
            continue;
        for (size_t j = 0; body && j < k->list.n; j++) {
            const touch *o = &k->list.at[j];
            if (o->pair != c.pair || abs(o->node - c.node) != 1)
                continue;
            c.lambda += o->lambda / 2;
            for (int m = 0; m < 3; m++)
                c.l[m] += o->l[m] / 2;
        }
        k->saved.list.at[n++] = c;
    }
    k->saved.list.n = n;
    k->list.n = n;
    if (n)
        memcpy(k->list.at, k->saved.list.at, n * sizeof *k->list.at);
    contacts_project(w, false);
    return true;
}

/* Sorts the nodes of a rod into cells. */
static void fill_cells(rod_contacts *k, const rod_mesh *m, const double *x, double size)
{
    for (int i = 0; i < k->cells; i++)
        k->head[i] = -1;
    for (int j = 0; j < m->nn; j++) {
        uint32_t c = cell_of(k, x + 3 * j, size, 0, 0, 0);
        k->next[j] = k->head[c];
        k->head[c] = j;
    }
}

/* The longest distance of neighbouring nodes. */
static double widest(const rod_mesh *m)
{
    double d = 0;
    for (int i = 1; i < m->nn; i++)
        d = fmax(d, m->s[i] - m->s[i - 1]);
    return d;
}

void fill_near(rod_work *w, int pair, double reach)
{
    const rod_mesh *b = &w->mesh[w->rp->pair[pair].b];
    fill_cells(w->contact, b, w->state.pos + 3 * b->first, reach);
}

int nodes_near(const rod_work *w, int pair, const double *x, double reach, int *node, int most)
{
    const rod_contacts *k = w->contact;
    const rod_mesh *b = &w->mesh[w->rp->pair[pair].b];
    const double *xb = w->state.pos + 3 * b->first;
    int found = 0;
    for (int n = 0; n < 27; n++)
        for (int j = k->head[cell_of(k, x, reach, n % 3 - 1, n / 3 % 3 - 1, n / 9 - 1)]; j >= 0;
             j = k->next[j]) {
            double d = far2(x, xb + 3 * j);
            if (d > reach * reach || (j > 0 && far2(x, xb + 3 * j - 3) < d) ||
                (j + 1 < b->nn && far2(x, xb + 3 * j + 3) < d))
                continue;
            if (found < most)
                node[found++] = j;
        }
    return found;
}

static void find_pair(rod_work *w, int pair)
{
    enum { MOST = 64 };
    rod_contacts *k = w->contact;
    const rod_pair *p = &w->rp->pair[pair];
    if (p->what != TOUCH_RODS) {
        find_body(w, pair);
        return;
    }
    const rod_mesh *a = &w->mesh[p->a], *b = &w->mesh[p->b];
    double reach = 1.5 * k->clear[pair] + widest(b);
    fill_near(w, pair, reach);
    for (int i = 0; i < a->nn; i++) {
        int node[MOST], n = nodes_near(w, pair, w->state.pos + 3 * (a->first + i), reach, node, MOST);
        for (int j = 0; j < n; j++)
            if (p->a != p->b || a->s[i] - b->s[node[j]] >= M_PI * a->radius)
                touch_add(w, pair, i, node[j]);
    }
}

/* How far nodes may move before pairs must be searched again: half of the distance of two nodes beyond the
   length of rod between them, but always most of the least radius. Nodes of cells that are not neighbours are
   farther apart than a cell. */
static double room_of(const rod_work *w, int pair)
{
    rod_contacts *k = w->contact;
    const rod_pair *p = &w->rp->pair[pair];
    if (p->what != TOUCH_RODS)
        return 0;
    const rod_mesh *a = &w->mesh[p->a], *b = &w->mesh[p->b];
    double clear = k->clear[pair],
           size = clear + 4 * fmax(fmax(widest(a), widest(b)), 3.2 * fmin(a->radius, b->radius)), part = 1,
           least = 0.8 * fmin(a->radius, b->radius);
    fill_cells(k, b, w->state.pos + 3 * b->first, size);
    for (int i = 0; i < a->nn; i++) {
        const double *x = w->state.pos + 3 * (a->first + i), *u = w->dx + 6 * (a->first + i);
        part = fmin(part, 0.25 * (size - clear) / norm3(u));
        for (int n = 0; n < 27; n++)
            for (int j = k->head[cell_of(k, x, size, n % 3 - 1, n / 3 % 3 - 1, n / 9 - 1)]; j >= 0;
                 j = k->next[j]) {
                if (p->a == p->b && a->s[i] - b->s[j] < M_PI * a->radius)
                    continue;
                double way = sqrt(far2(u, w->dx + 6 * (b->first + j))),
                       far = sqrt(far2(x, w->state.pos + 3 * (b->first + j)));
                part = fmin(part,
                            fmax(least, 0.5 * (far - clear - piece_length(a, i) - piece_length(b, j))) / way);
            }
    }
    return part;
}

double contacts_room(const rod_work *w)
{
    double part = 1;
    for (int i = 0; i < w->rp->npair; i++)
        part = fmin(part, room_of(w, i));
    return part;
}

/* Removes pairs that are far apart and carry no force; merges two that have come together. */
static void tidy(rod_work *w)
{
    rod_contacts *k = w->contact;
    size_t n = 0;
    for (size_t i = 0; i < k->list.n; i++) {
        touch *c = &k->list.at[i];
        const rod_pair *p = pair_of(w, c);
        bool found = touch_project(w, c), drop = false;
        if (c->hats) {
            k->list.at[n++] = *c;
            continue;
        }
        if (c->rod < 0) {
            if (c->lambda > 0 || c->gap <= 2 * slave_of(w, c)->radius)
                k->list.at[n++] = *c;
            continue;
        }
        if (c->lambda <= 0 && (!found || c->gap > k->clear[c->pair]))
            drop = true;
        if ((!found && c->far > 2 * k->clear[c->pair]) || touch_held(w, c))
            drop = true;
        if (p->a == p->b && slave_of(w, c)->s[c->node - slave_of(w, c)->first] -
                                    w->mesh[c->rod].s[whole_clamp(c->x, 0, w->mesh[c->rod].nn - 1)] <
                                0.8 * M_PI * slave_of(w, c)->radius)
            drop = true;
        for (size_t j = 0; j < n && !drop; j++) {
            const touch *o = &k->list.at[j];
            drop = o->pair == c->pair && fabs(o->y - c->y) < close_of(c, o) && fabs(o->x - c->x) < 2;
        }
        if (!drop)
            k->list.at[n++] = *c;
    }
    k->list.n = n;
}

/* Searches pairs again if a node has moved so far that one may be missed: a quarter of the least radius. */
static bool looked(rod_work *w)
{
    rod_contacts *k = w->contact;
    double reach = INFINITY, most = 0;
    for (int i = 0; i < w->rp->npair; i++)
        reach = fmin(reach, 0.25 * w->mesh[w->rp->pair[i].a].radius);
    for (int i = 0; i < w->N; i++)
        most = fmax(most, far2(w->state.pos + 3 * i, k->seen + 3 * i));
    return most < reach * reach;
}

void contacts_find(rod_work *w)
{
    rod_contacts *k = w->contact;
    tidy(w);
    if (looked(w))
        return;
    memcpy(k->seen, w->state.pos, (size_t)(3 * w->N) * sizeof *k->seen);
    for (int i = 0; i < w->rp->npair; i++)
        find_pair(w, i);
}

bool contacts_look(rod_work *w)
{
    if (looked(w))
        return false;
    contacts_find(w);
    return true;
}

static double gap_value(rod_work *w, const kernel *g, double self)
{
    arena_pos mark = arena_mark(w->tmp);
    double *reg = arena_array(w->tmp, double, g->tape.nreg), *all = arena_array(w->tmp, double, w->rp->nrod);
    for (int i = 0; i < w->rp->nrod; i++)
        all[i] = self;
    inputs in = { .from = { [IN_PARAM] = w->r->param, [IN_ROD] = all } };
    tape_start(&g->tape, reg);
    kernel_run(g, &in, NULL, reg);
    double y = reg[g->tape.out[0]];
    arena_release(w->tmp, mark);
    return y;
}

void contacts_new(rod_work *w)
{
    enum { LINE_LEAST = 10 };
    int n = w->rp->npair, most = 0;
    rod_contacts *k = arena_make(w->a, rod_contacts);
    k->k = arena_array(w->a, double, n);
    k->mu = arena_array(w->a, double, n);
    k->clear = arena_array(w->a, double, n);
    k->skin = arena_array(w->a, double, n);
    k->hard = arena_array(w->a, double, n);
    k->tresca = arena_array(w->a, bool, n);
    k->body = arena_array(w->a, double, 7 * n);
    k->grip = w->ro->penalty ? 30 : 5;
    k->least_line = LINE_LEAST;
    for (int i = 0; i < w->rp->nrod; i++)
        most = w->mesh[i].nn > most ? w->mesh[i].nn : most;
    k->cells = 4 * most;
    k->head = arena_array(w->a, int, k->cells);
    k->next = arena_array(w->a, int, most);
    k->seen = arena_array(w->a, double, 3 * w->N);
    for (int i = 0; i < 3 * w->N; i++)
        k->seen[i] = INFINITY;
    w->contact = k;
}

/* Directions are normalised. */
static void body_read(rod_work *w, int pair)
{
    double *b = w->contact->body + 7 * pair;
    rod_eval(w, &w->rp->pair[pair].body, 0, 0, 0, b);
    double n = norm3(b + 3);
    for (int i = 3; n > 0 && i < 6; i++)
        b[i] /= n;
    if (n > 0 && w->rp->pair[pair].what == TOUCH_PLANE)
        b[6] /= n;
}

/* The shortest distance of neighbouring nodes. */
static double closest(const rod_mesh *m)
{
    double d = INFINITY;
    for (int i = 1; i < m->nn; i++)
        d = fmin(d, m->s[i] - m->s[i - 1]);
    return d;
}

/* The stiffest motion of a pair of nodes: bending or stretching against its neighbours, EI (pi/ds)^4 and EA
   (pi/ds)^2 per length. With a hundred times this stiffness, each increment reduces a gap to a hundredth; a
   much larger one would cost digits of the rod's own stiffness. */
static double least_give(const rod_mesh *m)
{
    double ds = closest(m), EI = (m->A[0] + m->A[4]) / 2;
    return 100 * fmax(97 * EI / pow(ds, 4), 10 * m->B[8] / (ds * ds));
}

static bool has_line(const rod_work *w, int pair)
{
    for (size_t i = 0; i < w->contact->line.n; i++)
        if (w->contact->line.at[i].pair == pair)
            return true;
    return false;
}

/* The distance of neighbouring contact forces of a pair on its rod a. */
static double forces_apart(const rod_work *w, int pair)
{
    double nodes = has_line(w, pair)                      ? HAT
                   : w->rp->pair[pair].what == TOUCH_RODS ? APART
                                                          : body_apart(w, pair);
    return nodes * closest(&w->mesh[w->rp->pair[pair].a]);
}

double contacts_yield(const rod_work *w, int pair)
{
    return has_line(w, pair) ? 0.02 * pow(forces_apart(w, pair) / w->mesh[w->rp->pair[pair].a].radius, 4)
                             : INFINITY;
}

void contacts_press(rod_work *w, double factor)
{
    for (int i = 0; i < w->rp->npair; i++) {
        const rod_mesh *m = &w->mesh[w->rp->pair[i].a];
        w->contact->k[i] = factor * (m->A[0] + m->A[4]) / 2 / pow(forces_apart(w, i), 4);
    }
}

/* Stiffness, friction and distances of the pairs; checks the given shape for overlap. */
bool contacts_start(rod_work *w)
{
    rod_contacts *k = w->contact;
    for (int i = 0; i < w->rp->npair; i++) {
        const rod_pair *p = &w->rp->pair[i];
        const contact_family *f = &w->p->contact[p->contact];
        const rod_mesh *a = &w->mesh[p->a], *b = p->b >= 0 ? &w->mesh[p->b] : a;
        if (p->b < 0)
            body_read(w, i);
        double EI = (a->A[0] + a->A[4]) / 2, zero = gap_value(w, &f->gap, 0),
               one = gap_value(w, &f->gap, a->length) / a->length - zero / a->length;
        if (!(a->radius > 0 && b->radius > 0))
            return rod_fail(w, f->at, "rod '%s' has no radius, so it touches nothing; give radius = …",
                            a->radius > 0 ? b->spec->name : a->spec->name);
        if (fabs(one - 1) > FACTOR_SAME * (1 + fabs(zero) / a->length))
            return rod_fail(w, f->at, "a gap of a rod has the form gap - distance, which '%s' does not",
                            f->name);
        k->clear[i] = a->radius +
                      (p->what == TOUCH_RODS    ? b->radius
                       : p->what == TOUCH_PLANE ? 0
                       : p->inside              ? -k->body[7 * i + 6]
                                                : k->body[7 * i + 6]) -
                      zero;
        k->k[i] = isnan(w->ro->stiffness) ? 0.2 * EI / pow(a->radius, 4) : w->ro->stiffness;
        k->hard[i] = fmax(1e4 * k->k[i], least_give(a));
        k->tresca[i] = f->friction == FRICTION_TRESCA;
        if (f->friction != FRICTION_NONE) {
            arena_pos mark = arena_mark(w->tmp);
            double *reg = arena_array(w->tmp, double, f->mu.tape.nreg);
            inputs in = { .from = { [IN_PARAM] = w->r->param } };
            tape_start(&f->mu.tape, reg);
            kernel_run(&f->mu, &in, NULL, reg);
            k->mu[i] = reg[f->mu.tape.out[0]];
            arena_release(w->tmp, mark);
            if (!(k->mu[i] >= 0))
                return rod_fail(w, f->at, "the friction of '%s' is %g: it must not be negative", f->name,
                                k->mu[i]);
        }
    }
    memcpy(w->state.pos0, w->state.pos, (size_t)(3 * w->N) * sizeof *w->state.pos);
    memcpy(w->state.rot0, w->state.rot, (size_t)(4 * w->N) * sizeof *w->state.rot);
    contacts_find(w);
    const touch *c = NULL;
    for (size_t i = 0; i < k->list.n; i++)
        if (!c || k->list.at[i].gap < c->gap)
            c = &k->list.at[i];
    if (c && c->gap < -ROD_TOUCHES * slave_of(w, c)->radius) {
        const rod_mesh *a = slave_of(w, c), *b = c->rod < 0 ? a : &w->mesh[c->rod];
        if (c->rod < 0)
            return rod_fail(w, w->p->contact[pair_of(w, c)->contact].at,
                            "the initial shape penetrates the body: s = %.4g of rod '%s' by %.3g",
                            a->s[c->node - a->first], a->spec->name, -c->gap);
        return rod_fail(w, w->p->contact[pair_of(w, c)->contact].at,
                        "the initial shape crosses itself: s = %.4g of rod '%s' and s = %.4g of rod '%s' are "
                        "%.3g apart, less than %.3g",
                        a->s[c->node - a->first], a->spec->name, b->s[whole_clamp(c->x + 0.5, 0, b->nn - 1)],
                        b->spec->name, c->far, k->clear[c->pair]);
    }
    return true;
}

/* The tangential multiplier is stored in the frame of the other section. */
void contacts_multiplier(const rod_work *w, touch *c, const double *f)
{
    double R[9];
    other_matrix(w, c, R);
    for (int j = 0; j < 3; j++)
        c->l[j] = R[j] * f[0] + R[3 + j] * f[1] + R[6 + j] * f[2];
}

static void multiplier_keep(const rod_work *w, touch *c)
{
    contacts_multiplier(w, c, c->ft);
}

void contacts_carry(rod_work *w)
{
    for (size_t i = 0; i < w->contact->list.n; i++)
        contacts_multiplier(w, &w->contact->list.at[i], w->contact->list.at[i].next);
    for (size_t i = 0; i < w->contact->line.n; i++)
        memcpy(w->contact->line.at[i].l, w->contact->line.at[i].next, sizeof w->contact->line.at[i].l);
}

/* From here on, slip is measured from the current state. */
static void start_here(rod_work *w)
{
    state_copy(w, w->state.pos0, w->state.rot0, w->state.pos, w->state.rot);
    for (size_t i = 0; i < w->contact->list.n; i++)
        touch_start(w, &w->contact->list.at[i], w->state.pos, w->state.rot);
    lines_base(w);
}

/* How far the lines of two rods overlap between the points that hold them apart. */
static double sag(const rod_work *w, int pair)
{
    double d = 0;
    touch at;
    for (size_t i = 0; i < w->contact->list.n; i++)
        if (w->contact->list.at[i].pair == pair)
            d = fmax(d, -touch_least(w, &w->contact->list.at[i], &at));
    return d;
}

/* Lines are held apart by this multiple of their sag, because the next states may need more. It is reduced
   only if it is much too large: each change requires another solve, or a step. */
static const double SPARE = 1.4, SPOILED = 50;

/* Removes fine pairs that carry no force. */
static void drop_idle(rod_contacts *k)
{
    size_t n = 0;
    for (size_t i = 0; i < k->list.n; i++)
        if (!k->list.at[i].fine || k->list.at[i].status != STATUS_OPEN)
            k->list.at[n++] = k->list.at[i];
    k->list.n = n;
}

void contacts_step(rod_work *w)
{
    rod_contacts *k = w->contact;
    state_copy(w, w->state.pos0, w->state.rot0, w->state.pos, w->state.rot);
    for (int i = 0; i < w->rp->npair; i++) {
        double d = k->skin[i] > 0 ? SPARE * sag(w, i) : 0;
        if (k->skin[i] > SPOILED * d)
            k->skin[i] = d;
    }
    drop_idle(k);
    contacts_find(w);
    lines_new(w);
    start_here(w);
    for (size_t i = 0; i < k->list.n; i++) {
        touch *c = &k->list.at[i];
        multiplier_keep(w, c); /* friction continues from its last value */
        c->lambda = w->ro->penalty ? 0 : fmax(0, c->fn);
    }
    contacts_soften(w);
}

static void slip_turns(touch *c, bool easy)
{
    double n = norm3(c->ft), e[3] = { 0 };
    for (int i = 0; n > 0 && i < 3; i++)
        e[i] = c->ft[i] / n;
    if (!easy)
        c->turned = 0;
    else if (dot3(e, c->along) < 0.5)
        c->turned = 4;
    else if (c->turned > 0)
        c->turned--;
    memcpy(c->along, e, sizeof e);
}

/* False: a rod has passed through another one (the normal of a pair has reversed). easy: if slip reverses, a
   spring replaces its friction for some iterations. */
bool contacts_project(rod_work *w, bool easy)
{
    bool whole = true;
    contacts_find(w);
    lines_force(w);
    for (size_t i = 0; i < w->contact->list.n; i++) {
        touch *c = &w->contact->list.at[i];
        if (dot3(c->last, c->N) < 0)
            whole = false;
        memcpy(c->last, c->N, sizeof c->last);
        touch_force(w, c);
        slip_turns(c, easy);
    }
    return whole;
}

bool contacts_near(const rod_work *w)
{
    for (size_t i = 0; i < w->contact->list.n; i++)
        if (w->contact->list.at[i].status != STATUS_OPEN)
            return true;
    return false;
}

bool contacts_rough(const rod_work *w)
{
    for (size_t i = 0; i < w->contact->list.n; i++)
        if (w->contact->list.at[i].status != STATUS_OPEN && !w->contact->smooth &&
            w->contact->mu[w->contact->list.at[i].pair] > 0)
            return true;
    return false;
}

static void copy_state(arena *a, touches *list, line_hats *line, const touches *list1, const line_hats *line1)
{
    vec_reserve(a, list, list1->n);
    vec_reserve(a, line, line1->n);
    if (list1->n)
        memcpy(list->at, list1->at, list1->n * sizeof *list->at);
    if (line1->n)
        memcpy(line->at, line1->at, line1->n * sizeof *line->at);
    list->n = list1->n;
    line->n = line1->n;
}

static void keep_state(rod_work *w, contact_state *to)
{
    copy_state(w->a, &to->list, &to->line, &w->contact->list, &w->contact->line);
}

static void put_back(rod_work *w, const contact_state *from)
{
    copy_state(w->a, &w->contact->list, &w->contact->line, &from->list, &from->line);
}

void contacts_refine(rod_work *w, bool refining)
{
    w->contact->refining = refining;
}

bool contacts_fine(const rod_work *w)
{
    for (size_t i = 0; i < w->contact->list.n; i++)
        if (w->contact->list.at[i].fine)
            return true;
    return false;
}

bool contacts_lined(const rod_work *w)
{
    return w->contact && w->contact->line.n > 0;
}

void contacts_count(rod_work *w, rod_sparse *K)
{
    rod_contacts *k = w->contact;
    contact_state kept = { 0 };
    bool stiff = k->stiff;
    copy_state(w->tmp, &kept.list, &kept.line, &k->list, &k->line);
    if (!w->ro->penalty)
        contacts_stiffen(w, true);
    k->counting = true;
    contacts_put(w, w->res, K);
    k->counting = false;
    k->stiff = stiff;
    copy_state(w->a, &k->list, &k->line, &kept.list, &kept.line);
}

uint64_t contacts_pattern(const rod_work *w)
{
    uint64_t h = 1;
    for (size_t i = 0; i < w->contact->list.n; i++) {
        const touch *c = &w->contact->list.at[i];
        if (c->status != STATUS_OPEN && !c->hats)
            h = hash64(hash64(h, (uint64_t)c->node), (uint64_t)c->status);
    }
    for (size_t i = 0; i < w->contact->line.n; i++)
        if (w->contact->line.at[i].status != STATUS_OPEN)
            h = hash64(hash64(h, i), (uint64_t)w->contact->line.at[i].status);
    return h;
}

double contacts_depth(const rod_work *w)
{
    double d = 0;
    for (int i = 0; i < w->rp->npair; i++)
        d = fmax(d, sag(w, i) - w->contact->skin[i]);
    return d;
}

/* Is it a pair at a fine place, or at one that becomes fine? */
static bool near_place(const touch *c, const touch *at)
{
    return c->pair == at->pair && !c->hats && fabs(c->y - at->y) < FINE_AROUND &&
           fabs(c->x - at->x) < 2 * FINE_AROUND;
}

static bool fine_here(const rod_work *w, const touch *at, double depth)
{
    const rod_contacts *k = w->contact;
    bool fine = depth > FINE_DEPTH;
    for (size_t i = 0; i < k->list.n && !fine; i++)
        fine = k->list.at[i].fine && near_place(&k->list.at[i], at);
    return fine && k->refining && pair_of(w, at)->a != at->rod;
}

/* Pairs near this point keep their places from now on. */
static void refine(rod_work *w, const touch *at)
{
    rod_contacts *k = w->contact;
    for (size_t i = 0; i < k->list.n; i++) {
        touch *c = &k->list.at[i];
        if (c->fine || c->status == STATUS_OPEN || !near_place(c, at))
            continue;
        c->fine = true;
        c->mid = c->y;
        c->eps = touch_pinned(slave_of(w, c));
    }
}

/* Adds a pair where lines overlap, if other pairs are far enough away, or with finer distances. */
static bool fill_at(rod_work *w, const touch *at, double depth)
{
    rod_contacts *k = w->contact;
    bool fine = fine_here(w, at, depth);
    double apart = fine ? FINE_APART : 1;
    if (touch_known(k, at->pair, at->y, at->x, apart) || touch_held(w, at))
        return false;
    touch c = { .pair = at->pair, .rod = at->rod, .x = at->x, .y = at->y, .ds = at->ds, .fine = fine };
    if (fine) {
        refine(w, at);
        c.mid = c.y;
        c.eps = touch_pinned(slave_of(w, &c));
    }
    touch_start(w, &c, w->state.pos0, w->state.rot0);
    if (touch_known(k, c.pair, c.y0, c.x0, apart))
        return false;
    touch_centre(w, &c);
    touch_project(w, &c);
    *vec_push(w->a, &k->list) = c;
    return true;
}

/* Adds pairs where lines overlap by a thousandth of the radius: at the ends of a growing contact zone. */
static bool fill(rod_work *w)
{
    rod_contacts *k = w->contact;
    size_t n = k->list.n;
    for (size_t i = 0; i < n; i++) {
        touch at;
        double depth = (-touch_least(w, &k->list.at[i], &at) - k->skin[at.pair]) / slave_of(w, &at)->radius;
        if (at.rod >= 0 && depth > ROD_TOUCHES)
            fill_at(w, &at, depth);
    }
    return k->list.n > n;
}

/* After this many failures in a row, lines may overlap between pairs: supports may leave no room for other
   states. */
enum { CRAMPED = 6 };

/* Between the points that hold them apart, rods sag towards each other by f d^4/(384 EI) for a distance d.
   They are held farther apart by this amount, and a little more because the next states may need it. Pairs at
   the distance of nodes would reduce the sag, but leave the lines no freedom. */
bool contacts_part(rod_work *w, double enough)
{
    rod_contacts *k = w->contact;
    if (k->cramped > CRAMPED)
        return true;
    bool more = fill(w), clear = !more;
    for (int i = 0; !more && i < w->rp->npair; i++) {
        if (w->rp->pair[i].what != TOUCH_RODS)
            continue;
        double d = sag(w, i), radius = w->mesh[w->rp->pair[i].a].radius;
        if (d <= k->skin[i] + enough * radius)
            continue;
        k->skin[i] = fmin(SPARE * d, 0.1 * radius);
        clear = false;
    }
    for (size_t i = 0; !clear && i < k->list.n; i++)
        touch_centre(w, &k->list.at[i]);
    return clear;
}

void contacts_skin(rod_work *w, double *keep, const double *from)
{
    memcpy(keep ? keep : w->contact->skin, keep ? w->contact->skin : from,
           (size_t)w->rp->npair * sizeof *keep);
}

void contacts_report_separation(rod_work *w, bool ok)
{
    rod_contacts *k = w->contact;
    bool apart = false;
    for (int i = 0; i < w->rp->npair; i++)
        if (k->skin[i] > 0)
            apart = true;
    if (k->cramped <= CRAMPED)
        k->cramped = ok ? 0 : apart ? k->cramped + 1 : k->cramped;
    for (int i = 0; k->cramped > CRAMPED && i < w->rp->npair; i++)
        k->skin[i] = 0;
}

/* Overlaps, and gaps of pairs that press. */
double contacts_open(const rod_work *w)
{
    double d = 0;
    for (size_t i = 0; i < w->contact->list.n; i++) {
        const touch *c = &w->contact->list.at[i];
        if (!c->hats)
            d = fmax(d, c->status == STATUS_OPEN ? -c->gap : fabs(c->gap));
    }
    for (size_t i = 0; i < w->contact->line.n; i++) {
        const line_hat *h = &w->contact->line.at[i];
        d = fmax(d, h->status == STATUS_OPEN ? -h->gap : fabs(h->gap));
    }
    return d;
}

double contacts_sunk(const rod_work *w)
{
    double d = 0;
    for (size_t i = 0; i < w->contact->list.n; i++) {
        const touch *c = &w->contact->list.at[i];
        d = fmax(d, -c->gap / slave_of(w, c)->radius);
    }
    return d;
}

void contacts_stiffen(rod_work *w, bool stiff)
{
    lines_force(w);
    for (size_t i = 0; i < w->contact->list.n; i++) {
        touch *c = &w->contact->list.at[i];
        touch_force(w, c);
        c->lambda = fmax(0, c->fn);
        multiplier_keep(w, c);
    }
    lines_keep(w);
    w->contact->stiff = stiff;
}

void contacts_soften(rod_work *w)
{
    w->contact->stiff = false;
}

/* Slipping pairs continue to slip: the multipliers of the increment are computed from the last step, whose
   slip is known. */
void contacts_lead(rod_work *w, const double *dx)
{
    if (w->ro->penalty) {
        contacts_step(w);
        return;
    }
    contacts_stiffen(w, true);
    contacts_predict(w, dx, 1);
    start_here(w);
}

void contacts_save(rod_work *w)
{
    keep_state(w, &w->contact->saved);
    w->contact->dissipated0 = w->contact->dissipated;
}

void contacts_restore(rod_work *w)
{
    put_back(w, &w->contact->saved);
    w->contact->dissipated = w->contact->dissipated0;
    contacts_soften(w);
}

void contacts_keep_arc(rod_work *w, int which)
{
    keep_state(w, &w->contact->arc[which]);
    w->contact->before[which] = w->contact->dissipated;
}

void contacts_back_arc(rod_work *w, int which)
{
    put_back(w, &w->contact->arc[which]);
    w->contact->dissipated = w->contact->before[which];
    contacts_soften(w);
}

void contacts_smooth(rod_work *w, bool smooth)
{
    w->contact->smooth = smooth;
}

void contacts_keep_flow(rod_work *w)
{
    keep_state(w, &w->contact->flowing);
}

void contacts_keep_tried(rod_work *w)
{
    keep_state(w, &w->contact->tried);
}

void contacts_back_tried(rod_work *w)
{
    put_back(w, &w->contact->tried);
}

void contacts_keep_watch(rod_work *w)
{
    keep_state(w, &w->contact->watched);
}

void contacts_back_watch(rod_work *w)
{
    put_back(w, &w->contact->watched);
    contacts_soften(w);
}

void contacts_keep_apart(rod_work *w)
{
    keep_state(w, &w->contact->parted);
}

void contacts_back_apart(rod_work *w)
{
    put_back(w, &w->contact->parted);
    contacts_soften(w);
}

void contacts_back_flow(rod_work *w)
{
    put_back(w, &w->contact->flowing);
    contacts_soften(w);
}

/* ---- results ---- */
/* Motion of the two material points since the start of the step, times the force. */
static double lost(const rod_work *w, const touch *c)
{
    double p[3], q[3], Ri[9], Rj[9], sum = 0;
    slave_point(w, c, c->y0, w->state.pos, p);
    other_place(w, c, q);
    quat_matrix(w->state.rot + 4 * c->node, Ri);
    other_matrix(w, c, Rj);
    for (int i = 0; i < 3; i++)
        sum -= c->ft[i] * (p[i] + dot3(Ri + 3 * i, c->a) - q[i] - dot3(Rj + 3 * i, c->rho));
    return sum * c->ds;
}

void contacts_accept(rod_work *w, int64_t sample)
{
    rod_contacts *k = w->contact;
    results *r = w->r;
    for (int p = 0; p < w->rp->npair; p++) {
        contact_result *x = &r->contact[w->rp->pair[p].contact];
        x->gap[sample] = INFINITY;
        for (size_t i = 0; i < k->list.n; i++) {
            const touch *c = &k->list.at[i];
            if (c->pair != p)
                continue;
            if (!c->hats)
                x->gap[sample] = fmin(x->gap[sample], c->gap + k->skin[p]);
            x->rn[sample] += c->fn * c->ds;
            if (c->status > x->status[sample])
                x->status[sample] = (uint8_t)c->status;
        }
        for (size_t i = 0; i < k->line.n; i++)
            if (k->line.at[i].pair == p)
                x->gap[sample] = fmin(x->gap[sample], k->line.at[i].gap + k->skin[p]);
        if (x->status[sample] == STATUS_OPEN)
            x->last_open[0] = r->t[sample];
    }
    r->max_penetration = fmax(r->max_penetration, contacts_depth(w));
    for (size_t i = 0; i < k->list.n; i++)
        if (!k->list.at[i].hats)
            r->count.pair_penetration = fmax(r->count.pair_penetration,
                                             -k->list.at[i].gap - k->skin[k->list.at[i].pair]);
    for (size_t i = 0; i < k->line.n; i++)
        r->count.pair_penetration = fmax(r->count.pair_penetration,
                                         -k->line.at[i].gap - k->skin[k->line.at[i].pair]);
}

void contacts_lose(rod_work *w)
{
    rod_contacts *k = w->contact;
    for (size_t i = 0; i < k->list.n; i++)
        if (k->list.at[i].status == STATUS_SLIP && !k->list.at[i].hats)
            k->dissipated += lost(w, &k->list.at[i]);
    for (size_t i = 0; i < k->line.n; i++) {
        const line_hat *h = &k->line.at[i];
        if (h->status == STATUS_SLIP)
            k->dissipated -= (h->f[0] * h->slip[0] + h->f[1] * h->slip[1]) * h->width;
    }
}

double contacts_dissipated(const rod_work *w)
{
    return w->contact->dissipated;
}

/* The length that a pair represents: half of the distance to its neighbours along the same strand. */
static double touch_share(const rod_work *w, const touch *c)
{
    const rod_contacts *k = w->contact;
    double below = INFINITY, above = INFINITY;
    if (c->rod < 0)
        return c->ds * body_apart(w, c->pair);
    for (size_t i = 0; i < k->list.n; i++) {
        const touch *o = &k->list.at[i];
        double way = o->y - c->y;
        if (o->hats)
            continue;
        /* closer pairs belong to another strand */
        if (o == c || o->pair != c->pair || o->status == STATUS_OPEN || fabs(o->x - c->x) > 2 * APART + 1 ||
            fabs(way) < close_of(c, o))
            continue;
        if (way > 0)
            above = fmin(above, way);
        else
            below = fmin(below, -way);
    }
    below = below > 2 * APART ? APART : below;
    above = above > 2 * APART ? APART : above;
    return piece_length(slave_of(w, c), c->node - slave_of(w, c)->first) * (below + above) / 2;
}

/* The result of a hat, halfway between its points. */
static void hat_result(const rod_work *w, const line_hat *h, rod_touching *t)
{
    const rod_contacts *k = w->contact;
    const rod_mesh *a = &w->mesh[w->rp->pair[h->pair].a];
    double base[3] = { 0 }, across[3], x = 0;
    *t = (rod_touching){ .pair = h->pair,
                         .a = w->rp->pair[h->pair].a,
                         .b = w->rp->pair[h->pair].b,
                         .sa = place_of(a, h->at),
                         .gap = h->gap + k->skin[h->pair],
                         .fn = h->fn,
                         .status = h->status };
    for (int j = 0; j < h->n; j++) {
        const touch *c = &k->list.at[h->place[j]];
        x += h->share[j] * c->x;
        for (int i = 0; i < 3; i++) {
            t->N[i] += h->share[j] * c->N[i];
            base[i] += h->share[j] * c->base[0][i];
        }
    }
    t->sb = place_of(&w->mesh[t->b], x);
    double n = norm3(t->N), along;
    for (int i = 0; i < 3; i++)
        t->N[i] /= n;
    along = dot3(base, t->N);
    for (int i = 0; i < 3; i++)
        base[i] -= along * t->N[i];
    n = norm3(base);
    for (int i = 0; i < 3; i++)
        base[i] /= n;
    cross3(t->N, base, across);
    row r;
    row_at(a, h->at, &r);
    row_sum(a, &r, r.w, w->state.pos, t->x);
    for (int i = 0; i < 3; i++) {
        t->ft[i] = h->f[0] * base[i] + h->f[1] * across[i];
        t->x[i] -= a->radius * t->N[i];
    }
}

void contacts_result(rod_work *w, rod_result *x)
{
    rod_contacts *k = w->contact;
    rod_touching *all = arena_array(w->r->a, rod_touching, k->list.n + k->line.n);
    for (size_t i = 0; i < k->line.n; i++)
        if (k->line.at[i].status != STATUS_OPEN)
            hat_result(w, &k->line.at[i], &all[x->ntouch++]);
    for (size_t i = 0; i < k->list.n; i++) {
        const touch *c = &k->list.at[i];
        const rod_mesh *a = slave_of(w, c), *b = c->rod < 0 ? a : &w->mesh[c->rod];
        if (c->status == STATUS_OPEN || c->hats)
            continue;
        double by = c->ds / touch_share(w, c);
        rod_touching *t = &all[x->ntouch++];
        *t = (rod_touching){ .pair = c->pair,
                             .a = pair_of(w, c)->a,
                             .b = c->rod,
                             .sa = place_of(a, c->y),
                             .sb = place_of(b, c->x),
                             .gap = c->gap + k->skin[c->pair],
                             .fn = c->fn * by,
                             .status = c->status };
        for (int k2 = 0; k2 < 3; k2++)
            t->ft[k2] = c->ft[k2] * by;
        memcpy(t->N, c->N, sizeof t->N);
        slave_point(w, c, c->y, w->state.pos, t->x);
        for (int i2 = 0; i2 < 3; i2++)
            t->x[i2] -= a->radius * c->N[i2];
    }
    x->touch = all;
}
