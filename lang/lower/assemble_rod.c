/* assemble_rod: the rods of a model -> rod_program: numbers of the rods, loads and supports as functions of t
 * and s, contacts. */
#include <string.h>
#include "assemble.h"
#include "emit.h"
#include "rod/rod.h"

typedef struct {
    const model *m;
    ir *g;
    arena *a, *to;
    bool bad;
} work;

static const index_set SINGLE = { .count = 1 };

/* what the numbers of a rod may read */
static bool moves(const ir_input *in, void *ud)
{
    const unsigned *allowed = ud;
    return !(*allowed >> in->kind & 1);
}

static kernel kernel_of(work *w, const value *v, unsigned allowed, const char *what, span at)
{
    int32_t n = v_count(v);
    ir_ref *out = arena_array(w->a, ir_ref, n);
    allowed |= 1u << IN_PARAM;
    for (int32_t k = 0; k < n; k++) {
        value x = v->num.rank ? v_element(v, k) : *v;
        out[k] = v_ref(w->g, &x);
        if (!ir_depends(w->g, out[k], moves, &allowed))
            continue;
        diag_error(w->m->d, DIAG_NOT_SUPPORTED, at, "%s may depend only on parameters%s%s", what,
                   allowed >> IN_TIME & 1 ? ", t" : "", allowed >> IN_COORD & 1 ? ", s" : "");
        w->bad = true;
        return (kernel){ .over = SINGLE };
    }
    return emit_kernel(w->to, w->a, w->g, out, (size_t)n, &SINGLE, IR_NONE, at);
}

static const char *const numbers[ROD_NUMBERS] = { "length",  "radius", "young",   "poisson", "elements",
                                                  "density", "mass",   "damping", "drag" };

static void spec_shape(work *w, const mrodattr *x, rod_spec *s)
{
    s->shape_at = x->at;
    if (!strcmp(x->v.set.kind, "points")) {
        const value *m = &x->v.set.arg[0];
        s->shape = SHAPE_POINTS;
        s->npoints = m->num.n[0];
        double *to = arena_array(w->to, double, 3 * s->npoints);
        memcpy(to, m->num.d, (size_t)(3 * s->npoints) * sizeof *to);
        s->points = to;
        return;
    }
    s->shape = !strcmp(x->v.set.kind, "helix")   ? SHAPE_HELIX
               : !strcmp(x->v.set.kind, "curve") ? SHAPE_CURVE
                                                 : SHAPE_STRAIGHT;
    if (s->shape == SHAPE_CURVE)
        s->curve = kernel_of(w, &x->v.set.arg[0], 1u << IN_COORD, "a curve", x->at);
    if (s->shape != SHAPE_HELIX)
        return;
    value both = v_vector(w->a, 2);
    for (int k = 0; k < 2; k++)
        v_set(w->a, &both, k, &x->v.set.arg[k]);
    s->curve = kernel_of(w, &both, 0, "a helix", x->at);
}

/* sizes of a section may change along the rod */
static unsigned along_of(int number)
{
    bool whole = number == ROD_LENGTH || number == ROD_ELEMENTS || number == ROD_DAMPING ||
                 number == ROD_DRAG;
    return whole ? 0 : 1u << IN_COORD;
}

static void spec_attribute(work *w, const mrodattr *x, rod_spec *s)
{
    for (int k = 0; k < ROD_NUMBERS; k++)
        if (!strcmp(x->key, numbers[k])) {
            s->number[k] = kernel_of(w, &x->v, along_of(k), numbers[k], x->at);
            s->number_at[k] = x->at;
        }
    if (!strcmp(x->key, "stiffness"))
        s->stiffness = kernel_of(w, &x->v, 1u << IN_COORD, "the stiffness", s->stiffness_at = x->at);
    else if (!strcmp(x->key, "bending"))
        s->bending = kernel_of(w, &x->v, 1u << IN_COORD, "the bending stiffness", s->bending_at = x->at);
    else if (!strcmp(x->key, "curvature"))
        s->curvature = kernel_of(w, &x->v, 1u << IN_COORD | 1u << IN_TIME, "the curvature",
                                 s->curvature_at = x->at);
    else if (!strcmp(x->key, "growth"))
        s->growth = kernel_of(w, &x->v, 1u << IN_COORD | 1u << IN_TIME, "growth", s->growth_at = x->at);
    else if (!strcmp(x->key, "refine"))
        s->refine = kernel_of(w, &x->v, 1u << IN_COORD, "refine", s->refine_at = x->at);
    else if (!strcmp(x->key, "inertia"))
        s->inertia = kernel_of(w, &x->v, 1u << IN_COORD, "the inertia", s->inertia_at = x->at);
    else if (!strcmp(x->key, "velocity"))
        s->velocity = kernel_of(w, &x->v, 1u << IN_COORD, "the velocity at the start", s->start_at = x->at);
    else if (!strcmp(x->key, "spin"))
        s->spin = kernel_of(w, &x->v, 1u << IN_COORD, "the spin at the start", s->start_at = x->at);
    else if (!strcmp(x->key, "start"))
        s->loaded = true;
    else if (!strcmp(x->key, "reference"))
        spec_shape(w, x, s);
}

static const rod_spec *specs(work *w)
{
    rod_spec *all = arena_array(w->to, rod_spec, w->m->rods.n);
    for (size_t i = 0; i < w->m->rods.n; i++) {
        const mrod *r = &w->m->rods.at[i];
        all[i].name = arena_strdup(w->to, r->name);
        all[i].at = r->at;
        for (size_t k = 0; k < r->attr.n; k++)
            spec_attribute(w, &r->attr.at[k], &all[i]);
    }
    return all;
}

static const char *const kinds[] = {
    [LOAD_POSITION] = "position", [LOAD_FRAME] = "frame", [LOAD_AXIS] = "axis",
    [LOAD_ROLL] = "roll",         [LOAD_HINGE] = "hinge", [LOAD_MOMENT] = "moment",
    [LOAD_FORCE] = "force",       [LOAD_MASS] = "mass",   [LOAD_INERTIA] = "inertia"
};

static kernel place_of(work *w, ir_ref at, span where)
{
    value s = v_node(at, dim_any());
    return kernel_of(w, &s, 0, "a place on a rod", where);
}

static const rod_load *loads(work *w)
{
    rod_load *all = arena_array(w->to, rod_load, w->m->loads.n);
    for (size_t i = 0; i < w->m->loads.n; i++) {
        const mrodload *l = &w->m->loads.at[i];
        rod_load *x = &all[i];
        x->rod = l->rod;
        x->at = l->at;
        x->point = l->point;
        x->follower = l->follower;
        for (int k = LOAD_POSITION; k <= LOAD_INERTIA; k++)
            if (!strcmp(l->what, kinds[k]))
                x->what = (rod_load_kind)k;
        x->s = place_of(w, l->s, l->at);
        bool body = x->what == LOAD_MASS || x->what == LOAD_INERTIA;
        x->value = kernel_of(w, &l->v, body ? 0 : 1u << IN_TIME | (l->point ? 0 : 1u << IN_COORD),
                             body ? "a mass at a place" : "a load", l->at);
    }
    return all;
}

static const rod_joint *joints(work *w)
{
    rod_joint *all = arena_array(w->to, rod_joint, w->m->rod_links.joints.n);
    for (size_t i = 0; i < w->m->rod_links.joints.n; i++) {
        const mrodjoint *j = &w->m->rod_links.joints.at[i];
        rod_joint *x = &all[i];
        x->what = !strcmp(j->what, "rigid") ? JOIN_RIGID : !strcmp(j->what, "ball") ? JOIN_BALL : JOIN_HINGE;
        x->a = j->a;
        x->b = j->b;
        x->at = j->at;
        x->sa = place_of(w, j->sa, j->at);
        x->sb = place_of(w, j->sb, j->at);
        if (x->what == JOIN_HINGE)
            x->axis = kernel_of(w, &j->axis, 0, "the axis of a hinge", j->at);
    }
    return all;
}

/* the rod a gap is about */
static int rod_of_gap(const kernel *gap, int *pair)
{
    for (uint32_t k = 0; k < gap->tape.nin; k++)
        if (gap->in[k].kind == IN_ROD) {
            *pair = gap->in[k].at.stride[0];
            return gap->in[k].at.base;
        }
    return -1;
}

/* the numbers of a body: point, direction, radius */
static kernel body_of(work *w, const mrodpair *p)
{
    value all = v_vector(w->a, 7), x;
    const value *arg = p->body.set.arg;
    int at[3] = { 0, 3, 6 };
    bool ball = !strcmp(p->body.set.kind, "ball"), half = !strcmp(p->body.set.kind, "halfspace");
    if (ball)
        at[1] = 6;
    if (half) {
        at[0] = 3;
        at[1] = 6;
    }
    for (size_t k = 0; k < p->body.set.n; k++)
        for (int i = 0; i < v_count(&arg[k]); i++) {
            x = arg[k].num.rank ? v_element(&arg[k], i) : arg[k];
            v_set(w->a, &all, at[k] + i, &x);
        }
    return kernel_of(w, &all, 0, "a body", p->at);
}

static const rod_pair *pairs(work *w, const program *p, int *n)
{
    rod_pair *all = arena_array(w->to, rod_pair, p->ncontact);
    for (size_t i = 0; i < p->ncontact; i++) {
        int which = 0, a = rod_of_gap(&p->contact[i].gap, &which);
        if (a < 0)
            continue;
        rod_pair *x = &all[(*n)++];
        *x = (rod_pair){ .contact = (int)i, .a = a, .b = a, .what = TOUCH_RODS };
        if (!which)
            continue;
        const mrodpair *m = &w->m->rod_links.pairs.at[which - 1];
        x->b = m->b;
        if (m->b >= 0)
            continue;
        x->what = !strcmp(m->body.set.kind, "ball")       ? TOUCH_SPHERE
                  : !strcmp(m->body.set.kind, "cylinder") ? TOUCH_CYLINDER
                                                          : TOUCH_PLANE;
        x->inside = m->inside;
        x->body = body_of(w, m);
    }
    return all;
}

const rod_program *assemble_rod(arena *a, arena *scratch, const model *m, const program *p)
{
    work w = { .m = m, .g = m->g, .a = scratch, .to = a };
    rod_program *rp = arena_make(a, rod_program);
    rp->rod = specs(&w);
    rp->nrod = (int)m->rods.n;
    rp->load = loads(&w);
    rp->nload = (int)m->loads.n;
    rp->joint = joints(&w);
    rp->njoint = (int)m->rod_links.joints.n;
    rp->pair = pairs(&w, p, &rp->npair);
    return w.bad ? NULL : rp;
}
