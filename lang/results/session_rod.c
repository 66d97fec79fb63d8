/* session_rod: rods of a run as values: positions, frames, strains, forces at a place; energies; contact
 * pairs; writhe, twist and link. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "rod/rod.h"
#include "session_view.h"
#include "base/tolerances.h"

typedef enum { AT_X, AT_FRAME, AT_STRAIN, AT_CURVATURE, AT_FORCE, AT_MOMENT, AT_V, AT_SPIN, AT_ALL } at_kind;
typedef struct rod_view {
    scope base;
    const run *r;
    int rod;
    at_kind at;
} rod_view;

static value view_of(evaluator *ev, rod_view v)
{
    rod_view *p = arena_alloc(v.r->a, sizeof *p);
    value x = { .kind = V_OBJECT };
    (void)ev;
    *p = v;
    x.object.in = &p->base;
    return x;
}

static look nothing_find(scope *sc, evaluator *ev, sym name, span at, value *out)
{
    (void)sc;
    (void)ev;
    (void)name;
    (void)at;
    (void)out;
    return LOOK_NO;
}

static bool place_there(evaluator *ev, const rod_mesh *m, double s, span at)
{
    if (s >= -ROD_PLACE * m->length && s <= (1 + ROD_PLACE) * m->length)
        return true;
    diag_error(ev->d, DIAG_INDEX_RANGE, at, "the place s = %g is not on rod '%s', which goes from 0 to %g", s,
               m->spec->name, m->length);
    return false;
}

static bool moving(evaluator *ev, const rod_result *x, const rod_mesh *m, span at)
{
    if (x->v)
        return true;
    diag *d = diag_error(ev->d, DIAG_NOT_SUPPORTED, at,
                         "rod '%s' has no velocity: its run went through equilibria", m->spec->name);
    diag_hint(ev->d, d, "with density = … in its block it moves in time");
    return false;
}

/* velocity or spin in space, between the nodes */
static void velocity_at(const rod_result *x, const rod_mesh *m, double s, bool spin, double *out)
{
    double place, N[4], R[9];
    int k0 = m->first + 3 * rod_find(m, s, &place);
    rod_shape_at(place, N, NULL);
    memset(out, 0, 3 * sizeof *out);
    for (int i = 0; i < 4; i++) {
        const double *v = x->v + 6 * (k0 + i) + (spin ? 3 : 0);
        quat_matrix(x->q + 4 * (k0 + i), R);
        for (int k = 0; k < 3; k++)
            out[k] += N[i] * (spin ? dot3(R + 3 * k, v) : v[k]);
    }
}

/* its place at a sample */
static void place_at(const results *r, const rod_mesh *m, int64_t k, double s, double *out)
{
    rod_at(m, r->track + k * r->ntrack, NULL, s, out, NULL);
}

static bool one_place(evaluator *ev, const rod_mesh *m, const char *what, const value *arg, size_t n, span at,
                      double *s)
{
    if (n == 1 && v_scalar(&arg[0], s))
        return true;
    diag_error(ev->d, DIAG_ARITY, at, "%s is read at one place: %s.%s(%g)", what, m->spec->name, what,
               m->length);
    return false;
}

static value series_list(const run *r, const double *y, int n, int64_t stride)
{
    value out = { .kind = V_LIST };
    out.list.at = arena_array(r->a, value, n);
    out.list.n = (size_t)n;
    for (int k = 0; k < n; k++)
        out.list.at[k] = plain_series(r->r, y + k, stride);
    return out;
}

/* wire.track(s): over the samples, a series each for x, y, z */
static value track_call(scope *sc, evaluator *ev, const value *o, const value *arg, size_t n, span at)
{
    const rod_view *v = (rod_view *)sc;
    const results *r = v->r->r;
    const rod_mesh *m = &r->rod->mesh[v->rod];
    double s;
    (void)o;
    if (!one_place(ev, m, "track", arg, n, at, &s) || !place_there(ev, m, s, at))
        return v_error();
    double *y = arena_array(v->r->a, double, 3 * r->samples);
    for (int64_t k = 0; k < r->samples; k++)
        place_at(r, m, k, s, y + 3 * k);
    return series_list(v->r, y, 3, 3);
}

/* wire.x(s, t): between samples on a line */
static void place_at_time(const results *r, const rod_mesh *m, double s, double t, double *out)
{
    int64_t k = sample_before(r->t, r->samples, t), next = k + 1 < r->samples ? k + 1 : k;
    double a[3], b[3], y = next > k ? fmin(fmax((t - r->t[k]) / (r->t[next] - r->t[k]), 0), 1) : 0;
    place_at(r, m, k, s, a);
    place_at(r, m, next, s, b);
    for (int i = 0; i < 3; i++)
        out[i] = a[i] + y * (b[i] - a[i]);
}

/* wire.x(s) and its like: vectors in space; strains and curvatures in the frame of the section */
static value at_call(scope *sc, evaluator *ev, const value *o, const value *arg, size_t n, span at)
{
    const rod_view *v = (rod_view *)sc;
    const rod_result *x = v->r->r->rod;
    const rod_mesh *m = &x->mesh[v->rod];
    double s, t, place, q[4], R[9];
    bool timed = n == 2 && v->at == AT_X;
    (void)o;
    if ((n != 1 && !timed) || !v_scalar(&arg[0], &s) || (timed && !v_scalar(&arg[1], &t))) {
        diag_error(ev->d, DIAG_ARITY, at, "a rod is read at one place: %s.%s(%g)", m->spec->name,
                   result_list(OF_WIRE)[v->at], m->length);
        return v_error();
    }
    bool rate = v->at == AT_V || v->at == AT_SPIN;
    if (!place_there(ev, m, s, at) || (rate && !moving(ev, x, m, at)))
        return v_error();
    value out = v->at == AT_FRAME ? v_matrix(ev->a, 3, 3) : v_vector(ev->a, 3);
    out.num.unit = dim_any();
    if (timed) {
        place_at_time(v->r->r, m, s, t, out.num.d);
        return out;
    }
    if (rate) {
        velocity_at(x, m, s, v->at == AT_SPIN, out.num.d);
        return out;
    }
    rod_at(m, x->r, x->q, s, v->at == AT_X ? out.num.d : NULL, q);
    if (v->at == AT_X)
        return out;
    quat_matrix(q, R);
    if (v->at == AT_FRAME) {
        memcpy(out.num.d, R, sizeof R);
        return out;
    }
    rod_strain e;
    int k = rod_find(m, s, &place);
    rod_element_strain(m, k, x->r, x->q, place, &e);
    const double *from[] = { [AT_STRAIN] = e.v, [AT_CURVATURE] = e.u, [AT_FORCE] = e.n, [AT_MOMENT] = e.m };
    const double *y = from[v->at];
    bool space = v->at == AT_FORCE || v->at == AT_MOMENT;
    for (int i = 0; i < 3; i++)
        out.num.d[i] = space ? R[3 * i] * y[0] + R[3 * i + 1] * y[1] + R[3 * i + 2] * y[2] : y[i];
    return out;
}

static int nearest_node(const rod_mesh *m, double s)
{
    int best = 0;
    for (int i = 0; i < m->nn; i++)
        if (fabs(m->s[i] - s) < fabs(m->s[best] - s))
            best = i;
    return m->first + best;
}

/* support(s): the reaction over the samples, six series */
static value support_call(scope *sc, evaluator *ev, const value *o, const value *arg, size_t n, span at)
{
    const rod_view *v = (rod_view *)sc;
    const results *r = v->r->r;
    const rod_result *x = r->rod;
    const rod_mesh *m = &x->mesh[v->rod], *last = &x->mesh[x->rp->nrod - 1];
    double s;
    (void)o;
    if (!one_place(ev, m, "support", arg, n, at, &s) || !place_there(ev, m, s, at))
        return v_error();
    for (int i = 0; i < x->nsupport; i++)
        if (x->support[i] == nearest_node(m, s))
            return series_list(v->r, r->track + 3 * (last->first + last->nn) + 6 * i, 6, r->ntrack);
    diag_error(ev->d, DIAG_NOT_SUPPORTED, at, "nothing holds rod '%s' at s = %g", m->spec->name, s);
    return v_error();
}

/* reaction(s): force and moment of the support there */
static value reaction_call(scope *sc, evaluator *ev, const value *o, const value *arg, size_t n, span at)
{
    const rod_view *v = (rod_view *)sc;
    const rod_result *x = v->r->r->rod;
    const rod_mesh *m = &x->mesh[v->rod];
    double s;
    (void)o;
    if (!one_place(ev, m, "reaction", arg, n, at, &s))
        return v_error();
    value out = v_vector(ev->a, 6);
    memcpy(out.num.d, x->reaction + 6 * nearest_node(m, s), 6 * sizeof(double));
    return out;
}

/* path(s): where the place was at the points of the branch, a row for each; path(s, k): component k alone */
static value path_call(scope *sc, evaluator *ev, const value *o, const value *arg, size_t n, span at)
{
    const rod_view *v = (rod_view *)sc;
    const rod_result *x = v->r->r->rod;
    const rod_mesh *m = &x->mesh[v->rod];
    double s, k = 0;
    (void)o;
    if (n < 1 || n > 2 || !v_scalar(&arg[0], &s) || (n == 2 && !v_scalar(&arg[1], &k)) ||
        (n == 2 && k != 1 && k != 2 && k != 3)) {
        diag_error(ev->d, DIAG_ARITY, at,
                   "path takes a place, and a component 1, 2 or 3 if only one is wanted: %s.path(%g, 1)",
                   m->spec->name, m->length);
        return v_error();
    }
    if (!place_there(ev, m, s, at))
        return v_error();
    int32_t rows = (int32_t)x->npath;
    value out = k > 0 ? v_vector(ev->a, rows) : v_matrix(ev->a, rows, 3);
    out.num.unit = dim_any();
    for (int32_t i = 0; i < rows; i++) {
        double r[3];
        rod_at(m, x->path[i].r, NULL, s, r, NULL);
        if (k > 0)
            out.num.d[i] = r[k == 1 ? 0 : k == 2 ? 1 : 2];
        else
            memcpy(out.num.d + 3 * i, r, sizeof r);
    }
    return out;
}

static value path_column(arena *a, const rod_result *x, int which)
{
    value out = v_vector(a, (int32_t)x->npath);
    out.num.unit = dim_any();
    for (size_t i = 0; i < x->npath; i++)
        out.num.d[i] = (const double[]){ x->path[i].t, x->path[i].energy, x->path[i].unstable }[which];
    return out;
}

static look path_find(scope *sc, evaluator *ev, sym name, span at, value *out)
{
    int which = result_find(OF_PATH, name) - PATH_t;
    (void)at;
    if (which < 0)
        return LOOK_NO;
    *out = path_column(ev->a, ((rod_view *)sc)->r->r->rod, which);
    return LOOK_YES;
}

static void path_names(scope *sc, near *n)
{
    (void)sc;
    near_list(n, result_list(OF_PATH));
}

/* the pairs that touch, as columns */
static look pairs_find(scope *sc, evaluator *ev, sym name, span at, value *out)
{
    const rod_view *v = (rod_view *)sc;
    const rod_result *x = v->r->r->rod;
    static const char *const words[] = { "open", "stick", "slip" };
    int which = result_find(OF_PAIR, name) - PAIR_s, n = 0;
    (void)at;
    if (which < 0)
        return LOOK_NO;
    for (int64_t k = 0; k < x->ntouch; k++)
        n += x->touch[k].a == v->rod;
    *out = which == 4 ? v_matrix(ev->a, n, 3) : v_vector(ev->a, n);
    out->num.unit = dim_any();
    value *list = arena_array(ev->a, value, n);
    int at_n = 0;
    for (int64_t k = 0; k < x->ntouch; k++) {
        const rod_touching *t = &x->touch[k];
        if (t->a != v->rod)
            continue;
        const double one[] = { t->sa, t->sb, t->gap, t->fn };
        if (which < 4)
            out->num.d[at_n] = one[which];
        else if (which == 4)
            memcpy(out->num.d + 3 * at_n, t->ft, sizeof t->ft);
        else
            list[at_n] = v_string(ev->a, words[t->status], strlen(words[t->status]));
        at_n++;
    }
    if (which == 5) {
        *out = (value){ .kind = V_LIST };
        out->list.at = list;
        out->list.n = (size_t)n;
    }
    return LOOK_YES;
}

static void pair_names(scope *sc, near *n)
{
    (void)sc;
    near_list(n, result_list(OF_PAIR));
}
static void rod_names(scope *sc, near *n)
{
    (void)sc;
    near_list(n, result_list(OF_WIRE));
}

static value node_places(evaluator *ev, const rod_mesh *m)
{
    value out = v_vector(ev->a, m->nn);
    memcpy(out.num.d, m->s, (size_t)m->nn * sizeof(double));
    return out;
}

static value momentum_of(evaluator *ev, const rod_result *x, int rod, bool angular, span at)
{
    double p[3], L[3];
    if (!moving(ev, x, &x->mesh[rod], at))
        return v_error();
    rod_momentum(x, rod, p, L);
    value out = v_vector(ev->a, 3);
    out.num.unit = dim_any();
    memcpy(out.num.d, angular ? L : p, sizeof p);
    return out;
}

static look rod_view_find(scope *sc, evaluator *ev, sym name, span at, value *out)
{
    rod_view v = *(rod_view *)sc;
    const rod_result *x = v.r->r->rod;
    int which = result_find(OF_WIRE, name);
    if (which >= WIRE_x && which <= WIRE_spin) {
        v.at = (at_kind)(which - WIRE_x);
        v.base = (scope){ .find = nothing_find, .call = at_call };
        *out = view_of(ev, v);
        return LOOK_YES;
    }
    double e[4] = { 0 }, number;
    const rod_mesh *m = &x->mesh[v.rod];
    if (which >= WIRE_energy && which <= WIRE_torsion)
        for (int i = 0; i < m->ne; i++)
            rod_element(m, i, x->r, x->q, NULL, NULL, NULL, e);
    switch (which) {
    case WIRE_reaction:
        v.base = (scope){ .find = nothing_find, .call = reaction_call };
        *out = view_of(ev, v);
        return LOOK_YES;
    case WIRE_support:
        v.base = (scope){ .find = nothing_find, .call = support_call };
        *out = view_of(ev, v);
        return LOOK_YES;
    case WIRE_track:
        v.base = (scope){ .find = nothing_find, .call = track_call };
        *out = view_of(ev, v);
        return LOOK_YES;
    case WIRE_path:
        v.base = (scope){ .find = nothing_find, .call = path_call };
        *out = view_of(ev, v);
        return LOOK_YES;
    case WIRE_momentum:
    case WIRE_angular_momentum:
        *out = momentum_of(ev, x, v.rod, which == WIRE_angular_momentum, at);
        return LOOK_YES;
    case WIRE_pairs:
        v.base = (scope){ .find = pairs_find, .names = pair_names };
        *out = view_of(ev, v);
        return LOOK_YES;
    case WIRE_s:
        *out = node_places(ev, m);
        return LOOK_YES;
    case WIRE_energy:
        number = e[0] + e[1] + e[2] + e[3];
        break;
    case WIRE_stretch:
        number = e[0];
        break;
    case WIRE_shear:
        number = e[1];
        break;
    case WIRE_bending:
        number = e[2];
        break;
    case WIRE_torsion:
        number = e[3];
        break;
    case WIRE_writhe:
        number = rod_writhe(ev->a, x, v.rod);
        break;
    case WIRE_twist:
        number = rod_twist(x, v.rod);
        break;
    case WIRE_link:
        number = rod_writhe(ev->a, x, v.rod) + rod_twist(x, v.rod);
        break;
    default:
        return LOOK_NO;
    }
    *out = v_num(number);
    return LOOK_YES;
}

bool rod_value(const run *r, int rod, value *out)
{
    if (!r->r->rod)
        return false;
    rod_view v = { .r = r, .rod = rod, .base = { .find = rod_view_find, .names = rod_names } };
    *out = view_of(NULL, v);
    return true;
}

/* names of the whole run */
look rod_name(const run *r, evaluator *ev, sym name, value *out)
{
    int which = r->r->rod ? result_find(OF_ROD, name) : -1;
    if (which == ROD_path) {
        *out = view_of(ev, (rod_view){ .r = r, .base = { .find = path_find, .names = path_names } });
        return LOOK_YES;
    }
    if (which == ROD_pair_penetration) {
        *out = v_num(r->r->count.pair_penetration);
        return LOOK_YES;
    }
    if (which != ROD_critical)
        return LOOK_NO;
    *out = v_vector(ev->a, r->r->rod->ncritical);
    for (int k = 0; k < r->r->rod->ncritical; k++)
        out->num.d[k] = r->r->rod->critical[k];
    return LOOK_YES;
}

/* ---- files: save wire { file = "wire.vtp" } ---- */
typedef struct node_row {
    double s, x[3], frame[9], n[3], m[3], u[3], rn, v[3], spin[3];
} node_row;

/* everything at a node; contact: the normal force per length that acts there */
static node_row node_at(const rod_result *x, int rod, int i)
{
    const rod_mesh *m = &x->mesh[rod];
    node_row o = { .s = m->s[i] };
    double place;
    rod_strain e;
    memcpy(o.x, x->r + 3 * (m->first + i), sizeof o.x);
    quat_matrix(x->q + 4 * (m->first + i), o.frame);
    int element = rod_find(m, o.s, &place);
    rod_element_strain(m, element, x->r, x->q, place, &e);
    memcpy(o.u, e.u, sizeof o.u);
    for (int k = 0; k < 3; k++) {
        o.n[k] = dot3(o.frame + 3 * k, e.n);
        o.m[k] = dot3(o.frame + 3 * k, e.m);
    }
    const double *v = x->v ? x->v + 6 * (m->first + i) : NULL;
    for (int k = 0; v && k < 3; k++) {
        o.v[k] = v[k];
        o.spin[k] = dot3(o.frame + 3 * k, v + 3);
    }
    double h = (m->s[i + 1 < m->nn ? i + 1 : i] - m->s[i > 0 ? i - 1 : i]) / 2;
    for (int64_t k = 0; k < x->ntouch; k++) {
        const rod_touching *t = &x->touch[k];
        if ((t->a == rod && fabs(t->sa - o.s) <= 0.5 * h) || (t->b == rod && fabs(t->sb - o.s) <= 0.5 * h))
            o.rn += t->fn;
    }
    return o;
}

static void vtp_array(text *t, const char *name, int width, const rod_result *x, int rod, size_t at)
{
    text_printf(t, "<DataArray type=\"Float64\" Name=\"%s\" NumberOfComponents=\"%d\" format=\"ascii\">\n",
                name, width);
    for (int i = 0; i < x->mesh[rod].nn; i++) {
        node_row o = node_at(x, rod, i);
        const double *y = (const double *)((const char *)&o + at);
        for (int k = 0; k < width; k++) {
            text_num(t, y[k]);
            text_putc(t, k + 1 < width ? ' ' : '\n');
        }
    }
    text_puts(t, "</DataArray>\n");
}

static void rod_vtp(text *t, const rod_result *x, int rod)
{
    int n = x->mesh[rod].nn;
    text_printf(t,
                "<?xml version=\"1.0\"?>\n<VTKFile type=\"PolyData\" version=\"0.1\" "
                "byte_order=\"LittleEndian\">\n<PolyData>\n"
                "<Piece NumberOfPoints=\"%d\" NumberOfVerts=\"0\" NumberOfLines=\"1\" NumberOfStrips=\"0\" "
                "NumberOfPolys=\"0\">\n<Points>\n",
                n);
    vtp_array(t, "x", 3, x, rod, offsetof(node_row, x));
    text_puts(t, "</Points>\n<Lines>\n<DataArray type=\"Int32\" Name=\"connectivity\" format=\"ascii\">\n");
    for (int i = 0; i < n; i++)
        text_printf(t, "%d\n", i);
    text_printf(t,
                "</DataArray>\n<DataArray type=\"Int32\" Name=\"offsets\" "
                "format=\"ascii\">\n%d\n</DataArray>\n</Lines>\n<PointData Scalars=\"contact\">\n",
                n);
    vtp_array(t, "s", 1, x, rod, offsetof(node_row, s));
    vtp_array(t, "frame", 9, x, rod, offsetof(node_row, frame));
    vtp_array(t, "force", 3, x, rod, offsetof(node_row, n));
    vtp_array(t, "moment", 3, x, rod, offsetof(node_row, m));
    vtp_array(t, "curvature", 3, x, rod, offsetof(node_row, u));
    vtp_array(t, "contact", 1, x, rod, offsetof(node_row, rn));
    if (x->v)
        vtp_array(t, "velocity", 3, x, rod, offsetof(node_row, v));
    text_puts(t, "</PointData>\n</Piece>\n</PolyData>\n</VTKFile>\n");
}

/* seen from aside, the third axis upright; what is near hides what is far */
typedef struct piece {
    double a[3], b[3];
    double radius;
    bool touch;
} piece;

static int by_depth(const void *p, const void *q)
{
    const piece *a = p, *b = q;
    double x = a->a[2] + a->b[2], y = b->a[2] + b->b[2];
    return (x > y) - (x < y);
}

static void look_at(const double *x, double *to)
{
    double c = cos(0.5), s = sin(0.5), u = cos(0.35), v = sin(0.35), deep = c * x[1] - s * x[0];
    to[0] = c * x[0] + s * x[1];
    to[1] = -(u * x[2] + v * deep);
    to[2] = v * x[2] - u * deep;
}

static void rod_svg(text *t, session *s, const rod_result *x, int rod)
{
    const rod_mesh *m = &x->mesh[rod];
    piece *all = arena_array(s->tmp, piece, m->nn - 1);
    double lo[2] = { INFINITY, INFINITY }, hi[2] = { -INFINITY, -INFINITY },
           r = m->radius > 0 ? m->radius : m->length / 200;
    for (int i = 0; i + 1 < m->nn; i++) {
        node_row p = node_at(x, rod, i), q = node_at(x, rod, i + 1);
        look_at(p.x, all[i].a);
        look_at(q.x, all[i].b);
        all[i].touch = p.rn > 0 || q.rn > 0;
        all[i].radius = m->radii ? (m->radii[i] + m->radii[i + 1]) / 2 : r;
        for (int k = 0; k < 2; k++) {
            lo[k] = fmin(lo[k], fmin(all[i].a[k], all[i].b[k]));
            hi[k] = fmax(hi[k], fmax(all[i].a[k], all[i].b[k]));
        }
    }
    qsort(all, (size_t)m->nn - 1, sizeof *all, by_depth);
    double w = hi[0] - lo[0] + 8 * r, h = hi[1] - lo[1] + 8 * r, k = 800 / fmax(w, h);
    text_printf(t, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\">\n<g>\n", k * w,
                k * h);
    for (int i = 0; i + 1 < m->nn; i++) {
        double a[4] = { k * (all[i].a[0] - lo[0] + 4 * r), k * (all[i].a[1] - lo[1] + 4 * r),
                        k * (all[i].b[0] - lo[0] + 4 * r), k * (all[i].b[1] - lo[1] + 4 * r) };
        double far = fmax(hypot(a[2] - a[0], a[3] - a[1]), DRAWN_LEAST), thick = k * all[i].radius,
               ex = 0.2 * thick * (a[2] - a[0]) / far, ey = 0.2 * thick * (a[3] - a[1]) / far;
        /* edges reach over the ends: no gaps outside of bends */
        for (int pass = 0; pass < 2; pass++, ex = ey = 0)
            text_printf(t, "<path d=\"M%.2f %.2fL%.2f %.2f\" stroke=\"%s\" stroke-width=\"%.2f\"%s/>\n",
                        a[0] - ex, a[1] - ey, a[2] + ex, a[3] + ey,
                        pass == 0      ? "#222"
                        : all[i].touch ? "#d33"
                                       : "#8ab",
                        2 * thick * (pass ? 0.8 : 1), pass ? " stroke-linecap=\"round\"" : "");
    }
    text_puts(t, "</g>\n</svg>\n");
}

bool is_rod(const value *v)
{
    return v->kind == V_OBJECT && v->object.in->find == rod_view_find;
}
bool is_path(const value *v)
{
    return v->kind == V_OBJECT && v->object.in->find == path_find;
}
bool path_count(const value *v, double *n)
{
    if (!is_path(v))
        return false;
    *n = (double)((const rod_view *)v->object.in)->r->r->rod->npath;
    return true;
}

bool is_pairs(const value *v)
{
    return v->kind == V_OBJECT && v->object.in->find == pairs_find;
}
static const rod_view *rod_of(const value *v)
{
    return v->kind == V_OBJECT && v->object.in->find == rod_view_find ? (const rod_view *)v->object.in : NULL;
}

const double *rod_in_time(const value *v, const results **r, int *nodes)
{
    const rod_view *o = rod_of(v);
    *r = o ? o->r->r : NULL;
    if (!o || (*r)->samples < 2 || !(*r)->track)
        return NULL;
    *nodes = (*r)->rod->mesh[o->rod].nn;
    return (*r)->track + 3 * (*r)->rod->mesh[o->rod].first;
}

double rod_radius(const value *v)
{
    const rod_view *o = rod_of(v);
    return o ? o->r->r->rod->mesh[o->rod].radius : 0;
}

bool rod_save_vtp(session *s, const value *v, outfile *to)
{
    const rod_view *o = rod_of(v);
    text t = { .a = s->tmp };
    if (!o)
        return false;
    rod_vtp(&t, o->r->r->rod, o->rod);
    outfile_put(to, t.at, t.n);
    return true;
}

bool rod_save_svg(session *s, const value *v, outfile *to)
{
    const rod_view *o = rod_of(v);
    text t = { .a = s->tmp };
    if (!o)
        return false;
    rod_svg(&t, s, o->r->r->rod, o->rod);
    outfile_put(to, t.at, t.n);
    return true;
}

/* ---- as columns ---- */
static void nodes_put(session *s, const rod_result *x, int rod, put_column put, void *ud)
{
    static const struct {
        const char *name;
        int wide, per;
        size_t at;
    } cols[] = { { "s", 1, 0, offsetof(node_row, s) },         { "x", 3, 0, offsetof(node_row, x) },
                 { "n", 3, 0, offsetof(node_row, n) },         { "m", 3, 0, offsetof(node_row, m) },
                 { "u", 3, 0, offsetof(node_row, u) },         { "contact", 1, 0, offsetof(node_row, rn) },
                 { "frame", 9, 3, offsetof(node_row, frame) }, { "v", 3, 0, offsetof(node_row, v) },
                 { "spin", 3, 0, offsetof(node_row, spin) } };
    int n = x->mesh[rod].nn;
    for (size_t k = 0; k < sizeof cols / sizeof *cols - (x->v ? 0 : 2); k++) { /* the last two in time */
        int wide = cols[k].wide;
        value v = wide == 1 ? v_vector(s->tmp, n) : v_matrix(s->tmp, n, wide);
        for (int i = 0; i < n; i++) {
            node_row o = node_at(x, rod, i);
            memcpy(v.num.d + i * wide, (const char *)&o + cols[k].at, (size_t)wide * sizeof(double));
        }
        put(ud, cols[k].name, &v, cols[k].per);
    }
}

static void pairs_put(session *s, const rod_result *x, int rod, put_column put, void *ud)
{
    int n = 0, at = 0;
    for (int64_t k = 0; k < x->ntouch; k++)
        n += x->touch[k].a == rod;
    value col[6];
    for (int k = 0; k < 6; k++)
        col[k] = k == 4 ? v_matrix(s->tmp, n, 3) : v_vector(s->tmp, n);
    for (int64_t k = 0; k < x->ntouch; k++) {
        const rod_touching *t = &x->touch[k];
        if (t->a != rod)
            continue;
        const double one[] = { t->sa, t->sb, t->gap, t->fn, 0, t->status };
        for (int i = 0; i < 6; i++)
            if (i != 4)
                col[i].num.d[at] = one[i];
        memcpy(col[4].num.d + 3 * at++, t->ft, sizeof t->ft);
    }
    for (int k = 0; k < 6; k++)
        put(ud, result_list(OF_PAIR)[k], &col[k], 0);
}

bool rod_table(session *s, const value *v, put_column put, void *ud)
{
    const rod_view *o = v->kind == V_OBJECT ? (const rod_view *)v->object.in : NULL;
    if (o && v->object.in->find == rod_view_find)
        nodes_put(s, o->r->r->rod, o->rod, put, ud);
    else if (o && v->object.in->find == pairs_find)
        pairs_put(s, o->r->r->rod, o->rod, put, ud);
    else if (is_path(v))
        for (int k = 0; k <= PATH_unstable - PATH_t; k++) {
            value c = path_column(s->tmp, o->r->r->rod, k);
            put(ud, result_list(OF_PATH)[k], &c, 0);
        }
    else
        return false;
    return true;
}
