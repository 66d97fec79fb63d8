/* rod_tie: joined sections (rigid, ball, hinge), and sections held by a hinge. Joined sections are nodes with
   the same position; the frame of one follows that of the other. The only new unknowns are the angles of
   hinges: increments of nodes that follow are linear in those of the others, exactly so for rotations of
   rigid joints. The three numbers of position or rotation of a following node are not unknowns; a hinge has
   its angle in the place of the third rotation. A node held by a hinge has rotations about axes of its own,
   the third of which is that of the hinge. */
#include "rod_work.h"
#include "base/tolerances.h"
#include <math.h>
#include <string.h>

enum { HINGED = 1, BASED = 2 };
struct rod_ties {
    int *place;  /* for each node: the node whose position it has, or itself */
    int *parent; /* the node that its frame follows, or -1 */
    uint8_t *is;
    double *rel;   /* 4 per node: its frame relative to that of its parent, for rigid joints */
    double *axis;  /* 3 per node: axis of the hinge, in its frame */
    double *basis; /* 9 per node: columns are the axes of rotation of a node held by a hinge */
    int *order, n; /* nodes with a parent, parents first */
};

static void frame_at(const rod_work *w, int node, double *R)
{
    quat_matrix(w->state.rot + 4 * node, R);
}

static void to_space(const double *R, const double *x, double *y)
{
    for (int k = 0; k < 3; k++)
        y[k] = dot3(R + 3 * k, x);
}

static void to_frame(const double *R, const double *x, double *y)
{
    for (int k = 0; k < 3; k++)
        y[k] = R[k] * x[0] + R[3 + k] * x[1] + R[6 + k] * x[2];
}

static bool hinged(const rod_ties *d, int node)
{
    return d->is[node] & HINGED;
}

/* ---- increments and forces ---- */
/* A vector in the frame of a node, in components along its axes of rotation, and back; x is overwritten. */
void rod_on_axes(const rod_work *w, int node, double *x)
{
    double y[3];
    if (!w->ties || !(w->ties->is[node] & BASED))
        return;
    to_frame(w->ties->basis + 9 * node, x, y);
    memcpy(x, y, sizeof y);
}

void rod_off_axes(const rod_work *w, int node, double *x)
{
    double y[3];
    if (!w->ties || !(w->ties->is[node] & BASED))
        return;
    to_space(w->ties->basis + 9 * node, x, y);
    memcpy(x, y, sizeof y);
}

static void turn_like_parent(const rod_work *w, int node, const double *x, double *y)
{
    double R[9], P[9], z[3];
    frame_at(w, node, R);
    frame_at(w, w->ties->parent[node], P);
    to_space(P, x, z);
    to_frame(R, z, y);
}

static void spread(const rod_work *w, double *dx, bool hinges)
{
    const rod_ties *d = w->ties;
    for (int i = 0; d && i < w->N; i++)
        if (d->place[i] != i)
            memcpy(dx + 6 * i, dx + 6 * d->place[i], 3 * sizeof *dx);
    for (int i = 0; d && i < d->n; i++) {
        int node = d->order[i];
        double phi = hinged(d, node) && hinges ? dx[6 * node + 5] : 0;
        turn_like_parent(w, node, dx + 6 * d->parent[node] + 3, dx + 6 * node + 3);
        for (int k = 0; hinged(d, node) && k < 3; k++)
            dx[6 * node + 3 + k] += phi * d->axis[3 * node + k];
    }
}

void rod_spread(const rod_work *w, double *dx)
{
    for (int i = 0; w->ties && i < w->N; i++)
        rod_off_axes(w, i, dx + 6 * i + 3);
    spread(w, dx, true);
}

void rod_follow(const rod_work *w, double *v)
{
    spread(w, v, false);
}

uint8_t rod_driven_by(const rod_work *w, int node, const uint8_t *driven)
{
    const rod_ties *d = w->ties;
    if (!d)
        return 0;
    uint8_t by = driven[d->place[node]] & 1;
    while (d->parent[node] >= 0)
        node = d->parent[node];
    return (uint8_t)(by | (driven[node] & 2));
}

/* Moments in space on everything that rotates with each node; f: forces at the nodes. */
static double *moments_carried(const rod_work *w, const double *f)
{
    const rod_ties *d = w->ties;
    double *M = arena_array(w->tmp, double, 3 * w->N), R[9];
    for (int i = 0; i < w->N; i++) {
        frame_at(w, i, R);
        to_space(R, f + 6 * i + 3, M + 3 * i);
    }
    for (int i = d->n - 1; i >= 0; i--)
        for (int k = 0; k < 3; k++)
            M[3 * d->parent[d->order[i]] + k] += M[3 * d->order[i] + k];
    return M;
}

void rod_gather(const rod_work *w, double *f)
{
    const rod_ties *d = w->ties;
    if (!d)
        return;
    arena_pos mark = arena_mark(w->tmp);
    double *M = moments_carried(w, f), R[9], y[3];
    for (int i = 0; i < w->N; i++) {
        double *to = f + 6 * d->place[i], *turn = f + 6 * i + 3;
        for (int k = 0; d->place[i] != i && k < 3; k++) {
            to[k] += f[6 * i + k];
            f[6 * i + k] = 0;
        }
        frame_at(w, i, R);
        to_frame(R, M + 3 * i, y);
        if (d->parent[i] < 0)
            memcpy(turn, y, sizeof y);
        else {
            turn[0] = turn[1] = 0;
            turn[2] = hinged(d, i) ? dot3(d->axis + 3 * i, y) : 0;
        }
        rod_on_axes(w, i, turn);
    }
    arena_release(w->tmp, mark);
}

/* ---- the linear problem ---- */
/* The unknowns that rotate a node, and their axes in space. */
static int axes_of(const rod_work *w, int node, int *unknown, double (*axis)[3])
{
    const rod_ties *d = w->ties;
    double R[9];
    int n = 0;
    for (; d->parent[node] >= 0; node = d->parent[node]) {
        if (!hinged(d, node))
            continue;
        frame_at(w, node, R);
        to_space(R, d->axis + 3 * node, axis[n]);
        unknown[n++] = 6 * node + 5;
    }
    frame_at(w, node, R);
    for (int k = 0; k < 3; k++) {
        double e[3] = { k == 0, k == 1, k == 2 };
        rod_off_axes(w, node, e);
        to_space(R, e, axis[n]);
        unknown[n++] = 6 * node + 3 + k;
    }
    return n;
}

static void term_own(int dof, rod_terms *t)
{
    t->n = 1;
    t->slot[0] = dof;
    t->c[0] = 1;
}

void rod_term_of(const rod_work *w, int dof, rod_terms *to)
{
    rod_terms t[6];
    if (!w->ties) {
        term_own(dof, to);
        return;
    }
    rod_terms_of(w, dof / 6, t);
    *to = t[dof % 6];
}

void rod_terms_of(const rod_work *w, int node, rod_terms t[6])
{
    const rod_ties *d = w->ties;
    for (int k = 0; k < 6; k++)
        term_own(6 * node + k, &t[k]);
    if (!d)
        return;
    for (int k = 0; k < 3; k++)
        t[k].slot[0] = 6 * d->place[node] + k;
    if (d->parent[node] < 0 && !(d->is[node] & BASED))
        return;
    int unknown[ROD_TERMS];
    double axis[ROD_TERMS][3], R[9], own[3];
    int n = axes_of(w, node, unknown, axis);
    frame_at(w, node, R);
    for (int i = 0; i < n; i++) {
        to_frame(R, axis[i], own);
        for (int k = 0; k < 3; k++) {
            t[3 + k].slot[i] = unknown[i];
            t[3 + k].c[i] = own[k];
            t[3 + k].n = n;
        }
    }
}

bool rod_is_unknown(const rod_work *w, int dof)
{
    const rod_ties *d = w->ties;
    int node = dof / 6;
    return !d || (dof % 6 < 3 ? d->place[node] == node : d->parent[node] < 0 || hinged(d, node));
}

bool rod_is_spare(const rod_work *w, int dof)
{
    const rod_ties *d = w->ties;
    return d && d->parent[dof / 6] >= 0 && hinged(d, dof / 6) && (dof % 6 == 3 || dof % 6 == 4);
}

/* If a hinge rotates, the moment on the following part rotates relative to the preceding one: the row of an
   axis u before the hinge gets u . (a x M) in the column of its angle. */
void rod_hinges_put(const rod_work *w, const double *f, rod_sparse *S)
{
    const rod_ties *d = w->ties;
    double *M = d ? moments_carried(w, f) : NULL;
    for (int i = 0; d && i < d->n; i++) {
        int node = d->order[i], unknown[ROD_TERMS], n;
        double axis[ROD_TERMS][3], R[9], a[3], y[3];
        if (!hinged(d, node))
            continue;
        frame_at(w, node, R);
        to_space(R, d->axis + 3 * node, a);
        cross3(a, M + 3 * node, y);
        n = axes_of(w, d->parent[node], unknown, axis);
        for (int k = 0; k < n; k++)
            sparse_add(w->tmp, S, unknown[k], 6 * node + 5, dot3(axis[k], y));
    }
}

/* ---- the state ---- */
/* Before an update: stores the frames of hinged nodes relative to their parents. */
void rod_ties_before(const rod_work *w)
{
    const rod_ties *d = w->ties;
    for (int i = 0; d && i < d->n; i++) {
        int node = d->order[i];
        const double *q = w->state.rot + 4 * d->parent[node];
        double back[4] = { q[0], -q[1], -q[2], -q[3] };
        if (hinged(d, node))
            quat_mul(back, w->state.rot + 4 * node, d->rel + 4 * node);
    }
}

/* After it: nodes follow exactly. dx: 6 per node, increments that were taken k times, or NULL. */
void rod_ties_after(const rod_work *w, const double *dx, double k)
{
    const rod_ties *d = w->ties;
    for (int i = 0; d && i < w->N; i++)
        if (d->place[i] != i)
            memcpy(w->state.pos + 3 * i, w->state.pos + 3 * d->place[i], 3 * sizeof *w->state.pos);
    for (int i = 0; d && i < d->n; i++) {
        int node = d->order[i];
        double *q = w->state.rot + 4 * node, th[3], c[4], y[3];
        quat_mul(w->state.rot + 4 * d->parent[node], d->rel + 4 * node, q);
        if (!dx || !hinged(d, node))
            continue;
        /* rotation by the increment relative to its parent, about the axis, in the previous frame */
        const double *p = dx + 6 * d->parent[node] + 3, *own = dx + 6 * node + 3;
        double R[9];
        c[0] = d->rel[4 * node];
        for (int j = 1; j < 4; j++)
            c[j] = d->rel[4 * node + j];
        quat_matrix(c, R);
        to_frame(R, p, y);
        double phi = 0;
        for (int j = 0; j < 3; j++)
            phi += d->axis[3 * node + j] * (own[j] - y[j]);
        for (int j = 0; j < 3; j++)
            th[j] = k * phi * d->axis[3 * node + j];
        quat_turn(q, th);
    }
}

/* ---- which nodes follow which ---- */
typedef struct edge {
    const rod_joint *joint;
    int a, b;
} edge;

static int end_of(rod_work *w, int rod, const kernel *s)
{
    double at;
    rod_eval(w, s, 0, rod, 0, &at);
    return rod_node_at(&w->mesh[rod], at);
}

static edge edge_of(rod_work *w, int i)
{
    const rod_joint *j = &w->rp->joint[i];
    return (edge){ j, end_of(w, j->a, &j->sa), end_of(w, j->b, &j->sb) };
}

static const char *name_of(const rod_work *w, int node)
{
    int r = 0;
    while (node >= w->mesh[r].first + w->mesh[r].nn)
        r++;
    return w->mesh[r].spec->name;
}

static bool held_in(const rod_work *w, int node, int from)
{
    const uint8_t *held = w->ends.held + 6 * node + from;
    return held[0] || held[1] || held[2];
}

static bool joined_already(rod_work *w, const edge *e)
{
    return rod_fail(w, e->joint->at, "rods '%s' and '%s' are joined there already", name_of(w, e->a),
                    name_of(w, e->b));
}

/* A tree of joined nodes from its root on: parents, in breadth-first order. */
static bool tree_from(rod_work *w, int root, int from, const edge *e, int *parent, bool *seen, int *way)
{
    int n = 0, at = 0;
    seen[root] = true;
    way[n++] = root;
    while (at < n) {
        int node = way[at++];
        for (int i = 0; i < w->rp->njoint; i++) {
            if ((from && e[i].joint->what == JOIN_BALL) || (e[i].a != node && e[i].b != node))
                continue;
            int other = e[i].a == node ? e[i].b : e[i].a;
            if (other == node || (seen[other] && parent[other] != node && parent[node] != other))
                return joined_already(w, &e[i]);
            if (seen[other])
                continue;
            if (held_in(w, other, from))
                return rod_fail(w, e[i].joint->at,
                                "rods '%s' and '%s' are joined, and both held there: hold only one of them",
                                name_of(w, node), name_of(w, other));
            seen[other] = true;
            parent[other] = node;
            way[n++] = other;
        }
    }
    return true;
}

/* Trees of positions (from = 0) or of frames (from = 3): supported nodes are roots, then the first node of
   each tree. */
static bool trees(rod_work *w, int from, const edge *e, int *parent, int *order, int *norder)
{
    bool *seen = arena_array(w->tmp, bool, w->N), *used = arena_array(w->tmp, bool, w->N);
    int *way = arena_array(w->tmp, int, w->N + 1);
    for (int i = 0; i < w->N; i++)
        parent[i] = -1;
    for (int i = 0; i < w->rp->njoint; i++)
        if (!from || e[i].joint->what != JOIN_BALL)
            used[e[i].a] = used[e[i].b] = true;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < w->N; i++)
            if (used[i] && !seen[i] && (round || held_in(w, i, from)) &&
                !tree_from(w, i, from, e, parent, seen, way))
                return false;
    /* parents first: nodes by their depth */
    *norder = 0;
    for (int depth = 1, found = 1; found; depth++) {
        found = 0;
        for (int i = 0; i < w->N; i++) {
            int up = 0;
            for (int k = i; parent[k] >= 0; k = parent[k])
                up++;
            if (up != depth)
                continue;
            order[(*norder)++] = i;
            found++;
        }
    }
    return true;
}

/* The joint between a node and its parent. */
static const rod_joint *joint_of(const rod_work *w, const edge *e, int node, int parent)
{
    for (int i = 0; i < w->rp->njoint; i++)
        if (e[i].joint->what != JOIN_BALL &&
            ((e[i].a == node && e[i].b == parent) || (e[i].b == node && e[i].a == parent)))
            return e[i].joint;
    return NULL;
}

/* A unit vector, given in space, in the frame of a node. */
static bool axis_at(rod_work *w, const kernel *k, int rod, int node, span at, double *axis)
{
    double v[3], R[9];
    rod_eval(w, k, 0, rod, 0, v);
    double n = norm3(v);
    if (!(n > 0 && isfinite(n)))
        return rod_fail(w, at, "the axis of the hinge has no direction");
    for (int i = 0; i < 3; i++)
        v[i] /= n;
    frame_at(w, node, R);
    to_frame(R, v, axis);
    return true;
}

static bool joint_frames(rod_work *w, const edge *e)
{
    rod_ties *d = w->ties;
    for (int i = 0; i < d->n; i++) {
        int node = d->order[i], p = d->parent[node], deep = 3;
        const rod_joint *j = joint_of(w, e, node, p);
        const double *q = w->state.rot + 4 * p;
        double back[4] = { q[0], -q[1], -q[2], -q[3] };
        quat_mul(back, w->state.rot + 4 * node, d->rel + 4 * node);
        if (j->what != JOIN_HINGE)
            continue;
        if (w->mesh[0].mass > 0)
            return rod_fail(w, j->at,
                            "hinges between rods are for equilibria; rods that move in time are "
                            "joined by rigid or ball");
        d->is[node] |= HINGED;
        if (!axis_at(w, &j->axis, j->b, node, j->at, d->axis + 3 * node))
            return false;
        for (int k = node; d->parent[k] >= 0; k = d->parent[k])
            deep += hinged(d, k);
        if (deep > ROD_TERMS)
            return rod_fail(w, j->at, "more than %d hinges join sections in one place", ROD_TERMS - 3);
    }
    return true;
}

/* Axes of rotation of a node held by a hinge; the third is that of the hinge. */
static bool held_axes(rod_work *w, const rod_hold *h)
{
    rod_ties *d = w->ties;
    double *B = d->basis + 9 * h->node, e[3], x[3], y[3];
    if (d->is[h->node] & BASED)
        return rod_fail(w, h->load->at, "rod '%s' has two hinges at one place", name_of(w, h->node));
    for (int i = 0; i < w->ends.nhold; i++)
        if (w->ends.hold[i].node == h->node && w->ends.hold[i].load->what != LOAD_POSITION &&
            w->ends.hold[i].load->what != LOAD_HINGE)
            return rod_fail(w, h->load->at,
                            "a hinge and a frame, an axis or a roll at one place: give one "
                            "of them");
    if (!axis_at(w, &h->load->value, h->load->rod, h->node, h->load->at, e))
        return false;
    double aside[3] = { fabs(e[0]) < 0.6, fabs(e[0]) >= 0.6, 0 };
    cross3(aside, e, x);
    double n = norm3(x);
    for (int k = 0; k < 3; k++)
        x[k] /= n;
    cross3(e, x, y);
    for (int k = 0; k < 3; k++) {
        B[3 * k] = x[k];
        B[3 * k + 1] = y[k];
        B[3 * k + 2] = e[k];
    }
    d->is[h->node] |= BASED;
    return true;
}

bool rod_ties_new(rod_work *w)
{
    bool any = w->rp->njoint > 0;
    for (int i = 0; i < w->ends.nhold; i++)
        any = any || w->ends.hold[i].load->what == LOAD_HINGE;
    if (!any)
        return true;
    rod_ties *d = w->ties = arena_make(w->a, rod_ties);
    d->place = arena_array(w->a, int, w->N);
    d->parent = arena_array(w->a, int, w->N);
    d->is = arena_array(w->a, uint8_t, w->N);
    d->rel = arena_array(w->a, double, 4 * w->N);
    d->axis = arena_array(w->a, double, 3 * w->N);
    d->basis = arena_array(w->a, double, 9 * w->N);
    d->order = arena_array(w->a, int, w->N);
    edge *e = arena_array(w->tmp, edge, w->rp->njoint + 1);
    for (int i = 0; i < w->rp->njoint; i++)
        e[i] = edge_of(w, i);
    for (int i = 0; i < w->rp->njoint; i++)
        for (int k = 0; k < i; k++)
            if ((e[i].a == e[k].a && e[i].b == e[k].b) || (e[i].a == e[k].b && e[i].b == e[k].a))
                return joined_already(w, &e[i]);
    if (!trees(w, 0, e, d->place, d->order, &d->n))
        return false;
    for (int i = 0; i < d->n; i++) { /* parents first: all have the position of the root */
        int p = d->place[d->order[i]];
        d->place[d->order[i]] = d->place[p] < 0 ? p : d->place[p];
    }
    for (int i = 0; i < w->N; i++)
        if (d->place[i] < 0)
            d->place[i] = i;
    if (!trees(w, 3, e, d->parent, d->order, &d->n) || !joint_frames(w, e))
        return false;
    for (int i = 0; i < w->ends.nhold; i++)
        if (w->ends.hold[i].load->what == LOAD_HINGE && !held_axes(w, &w->ends.hold[i]))
            return false;
    for (int i = 0; i < w->rp->npair; i++)
        if (w->rp->pair[i].b >= 0 && w->rp->njoint)
            return rod_fail(w, w->p->contact[w->rp->pair[i].contact].at,
                            "rods that are joined may touch bodies, not each other or themselves");
    rod_ties_after(w, NULL, 0);
    return true;
}

/* ---- initial positions of joined rods ---- */
static bool placed(const rod_work *w, int rod)
{
    for (int i = 0; i < w->rp->nload; i++)
        if (w->rp->load[i].rod == rod && w->rp->load[i].what == LOAD_POSITION)
            return true;
    return false;
}

static void shift(rod_work *w, int rod, const double *from, const double *to)
{
    const rod_mesh *m = &w->mesh[rod];
    double d[3] = { to[0] - from[0], to[1] - from[1], to[2] - from[2] };
    for (int i = 0; i < 3 * m->nn; i++)
        w->state.pos[3 * m->first + i] += d[i % 3];
}

/* Rods without a given position are moved as a whole to their joints with others. */
bool rod_ties_meet(rod_work *w)
{
    bool *there = arena_array(w->tmp, bool, w->rp->nrod), moved = w->rp->njoint > 0;
    double *x = w->state.pos;
    for (int i = 0; i < w->rp->nrod; i++)
        there[i] = placed(w, i);
    while (moved) {
        moved = false;
        for (int i = 0; i < w->rp->njoint; i++) {
            edge e = edge_of(w, i);
            int a = e.joint->a, b = e.joint->b;
            if (there[a] == there[b])
                continue;
            if (there[a])
                shift(w, b, x + 3 * e.b, x + 3 * e.a);
            else
                shift(w, a, x + 3 * e.a, x + 3 * e.b);
            there[a] = there[b] = moved = true;
        }
        for (int i = 0; i < w->rp->njoint && !moved; i++)
            if (!there[w->rp->joint[i].a])
                there[w->rp->joint[i].a] = moved = true;
    }
    for (int i = 0; i < w->rp->njoint; i++) {
        edge e = edge_of(w, i);
        double d = 0;
        for (int k = 0; k < 3; k++)
            d = fmax(d, fabs(x[3 * e.a + k] - x[3 * e.b + k]));
        if (!(d <= JOINT_MEETS * rod_length(w)))
            return rod_fail(w, e.joint->at,
                            "rods '%s' and '%s' are %.4g apart where they are joined; give them shapes that "
                            "meet there",
                            name_of(w, e.a), name_of(w, e.b), d);
    }
    return true;
}

/* ---- motions that no support prevents ---- */
/* Rows of rigid motions a + b x (x - c) of a rod: displacements of a point; rotations about the columns of a
   frame. */
static void place_rows(double *row, int wide, int rod, const double *x, const double *c, double L,
                       double sign)
{
    for (int k = 0; k < 3; k++) {
        int p = (k + 1) % 3, q = (k + 2) % 3;
        double *to = row + k * wide + 6 * rod;
        to[k] += sign;
        to[3 + p] += sign * (x[q] - c[q]) / L;
        to[3 + q] -= sign * (x[p] - c[p]) / L;
    }
}

/* Rank of a matrix; pivot: independent columns. */
static int independent(double *A, int rows, int cols, bool *pivot)
{
    int rank = 0;
    for (int col = 0; col < cols && rank < rows; col++) {
        int best = rank;
        for (int i = rank; i < rows; i++)
            if (fabs(A[(size_t)i * cols + col]) > fabs(A[(size_t)best * cols + col]))
                best = i;
        if (fabs(A[(size_t)best * cols + col]) < RANK_DIRECTIONS)
            continue;
        for (int k = col; k < cols; k++) {
            double y = A[(size_t)rank * cols + k];
            A[(size_t)rank * cols + k] = A[(size_t)best * cols + k];
            A[(size_t)best * cols + k] = y;
        }
        for (int i = rank + 1; i < rows; i++) {
            double y = A[(size_t)i * cols + col] / A[(size_t)rank * cols + col];
            for (int k = col; y != 0 && k < cols; k++)
                A[(size_t)i * cols + k] -= y * A[(size_t)rank * cols + k];
        }
        pivot[col] = true;
        rank++;
    }
    return rank;
}

static void turn_rows(const rod_work *w, double *row, int wide, int rod, int node, double sign)
{
    double R[9];
    frame_at(w, node, R);
    for (int k = 0; k < 3; k++) {
        double e[3] = { k == 0, k == 1, k == 2 };
        rod_off_axes(w, node, e);
        to_space(R, e, row + k * wide + 6 * rod + 3);
        for (int j = 0; j < 3; j++)
            row[k * wide + 6 * rod + 3 + j] *= sign;
    }
}

/* Which of the three rows of rotations does a support hold? */
static bool holds_turn(const rod_hold *h, int k)
{
    return h->load->what == LOAD_FRAME || (h->load->what == LOAD_ROLL ? k == 2 : k < 2);
}

static int hold_rows_put(const rod_work *w, double *A, int wide, int n)
{
    for (int i = 0; i < w->ends.nhold; i++) {
        const rod_hold *h = &w->ends.hold[i];
        const rod_mesh *m = &w->mesh[h->load->rod];
        double *row = A + (size_t)n * wide;
        if (h->load->what == LOAD_POSITION) {
            place_rows(row, wide, h->load->rod, w->state.pos + 3 * h->node, w->state.pos + 3 * m->first,
                       m->length, 1);
        } else {
            turn_rows(w, row, wide, h->load->rod, h->node, 1);
            for (int k = 0; k < 3; k++)
                if (!holds_turn(h, k))
                    memset(row + k * wide, 0, (size_t)wide * sizeof *row);
        }
        n += 3;
    }
    return n;
}

static int joint_rows_put(rod_work *w, double *A, int wide, int n)
{
    for (int i = 0; i < w->rp->njoint; i++, n += 6) {
        edge e = edge_of(w, i);
        int rod[2] = { e.joint->a, e.joint->b }, node[2] = { e.a, e.b };
        double *row = A + (size_t)n * wide, axis[3];
        for (int k = 0; k < 2; k++) {
            const rod_mesh *m = &w->mesh[rod[k]];
            place_rows(row, wide, rod[k], w->state.pos + 3 * node[k], w->state.pos + 3 * m->first, m->length,
                       k ? -1 : 1);
        }
        if (e.joint->what == JOIN_BALL)
            continue;
        for (int k = 0; k < 3; k++)
            for (int s = 0; s < 2; s++)
                row[(3 + k) * wide + 6 * rod[s] + 3 + k] += s ? -1 : 1;
        if (e.joint->what != JOIN_HINGE)
            continue;
        /* only across the axis: each row minus its component along it */
        rod_eval(w, &e.joint->axis, 0, rod[1], 0, axis);
        double size = norm3(axis);
        for (int k = 0; k < 3; k++)
            for (int j = 0; j < 3; j++)
                for (int s = 0; s < 2; s++)
                    row[(3 + k) * wide + 6 * rod[s] + 3 + j] -= (s ? -1 : 1) * axis[k] * axis[j] /
                                                                (size * size);
    }
    return n;
}

bool rod_tied_supported(rod_work *w)
{
    enum { MOST = 60 }; /* number of rods above which the elimination would cost more than the run */
    static const char *const motion[] = { "along the first axis",  "along the second axis",
                                          "along the third axis",  "about the first axis",
                                          "about the second axis", "about the third axis" };
    int cols = 6 * w->rp->nrod, rows = 3 * w->ends.nhold + 6 * w->rp->njoint, free = -1;
    if (w->rp->nrod > MOST)
        return true;
    arena_pos mark = arena_mark(w->tmp);
    double *A = arena_array(w->tmp, double, (size_t)(rows + 1) * (size_t)cols);
    bool *pivot = arena_array(w->tmp, bool, cols);
    joint_rows_put(w, A, cols, hold_rows_put(w, A, cols, 0));
    if (independent(A, rows, cols, pivot) < cols)
        for (int i = cols - 1; i >= 0; i--)
            free = pivot[i] ? free : i;
    arena_release(w->tmp, mark);
    return free < 0 || rod_fail(w, w->mesh[free / 6].spec->at,
                                "nothing holds rod '%s' and what is joined to it: it is free to move %s",
                                w->mesh[free / 6].spec->name, motion[free % 6]);
}

/* ---- at the end of a run ---- */
const rod_tie *rod_ties_list(const rod_work *w, arena *a, int *n)
{
    const rod_ties *d = w->ties;
    *n = 0;
    if (!d)
        return NULL;
    rod_tie *all = arena_array(a, rod_tie, 2 * w->N);
    for (int i = d->n - 1; i >= 0; i--) {
        int node = d->order[i];
        rod_tie *x = &all[(*n)++];
        *x = (rod_tie){ .node = node, .to = d->parent[node], .turns = true, .hinge = hinged(d, node) };
        memcpy(x->axis, d->axis + 3 * node, sizeof x->axis);
    }
    for (int i = 0; i < w->N; i++)
        if (d->place[i] != i)
            all[(*n)++] = (rod_tie){ .node = i, .to = d->place[i] };
    return all;
}
