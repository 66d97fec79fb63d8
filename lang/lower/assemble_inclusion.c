/* assemble_inclusion: the inclusions and first-order equations of a model -> inclusion_program.
   Members are taken one by one; each row becomes R(t, x, x', s) with its slopes, each set its kinks or its
   constraints. */
#include <string.h>
#include "inclusion/inclusion.h"
#include "assemble.h"
#include "emit.h"

typedef struct row { /* of a dof; f == IR_NONE: none yet */
    /* sets: numbers of `wset` */
    ir_ref f;
    span at;
    vec(int) set;
} row;
typedef struct wset {
    const mset *of;
    ir_ref *arg;
    int32_t first;
    bool used;
    span at;
    value set;
    const int32_t *index;
    int nindex;
} wset;
typedef struct past {
    in_kind kind;
    int32_t dof;
    ir_ref arg;
} past;
typedef struct wintegral {
    ir_ref ends[2], f;
    span at;
} wintegral;

typedef struct work {
    const model *m;
    ir *g;
    arena *a, *to;
    inclusion_program *ip;
    row *row;
    vec(wset) sets;
    vec(past) past;
    vec(wintegral) integral;
    int32_t nset;
    bool joint; /* selections are solved for together */
    /* of the current member */
    const int32_t *index;
    int nindex;
    map64 fresh; /* model's set number -> ours + 1, for that member */
} work;

static ir_ref node_in(work *w, in_kind kind, int32_t base)
{
    return ir_in(w->g, (ir_input){ .kind = kind, .at.base = base });
}

static void refuse(work *w, span at, const char *why)
{
    if (w->ip->refused)
        return;
    w->ip->refused = why;
    w->ip->refused_at = at;
}

/* ---- members ---- */
static ir_ref concrete(work *w, ir_ref f);

/* The selections of a set for the current member, numbered separately for each member. */
static int32_t set_number(work *w, int32_t number)
{
    for (size_t k = 0; k < w->m->sets.n; k++) {
        const mset *s = &w->m->sets.at[k];
        if (number < s->first || number >= s->first + s->narg)
            continue;
        uint64_t *at = map64_put(&w->fresh, (uint64_t)s->first);
        if (!*at) {
            wset *x = vec_push(w->a, &w->sets);
            *x = (wset){ .of = s, .first = w->nset, .at = s->at, .set = s->of };
            int32_t *ix = arena_array(w->a, int32_t, MAX_INDEX);
            if (w->nindex)
                memcpy(ix, w->index, (size_t)w->nindex * sizeof *ix);
            x->index = ix, x->nindex = w->nindex;
            w->nset += s->narg;
            *at = w->sets.n;
        }
        return w->sets.at[*at - 1].first + number - s->first;
    }
    return -1;
}

static ir_ref bound_first(ir *g, ir_ref input, void *ud)
{
    (void)ud;
    return ir_input_of(g, input)->kind == IN_BOUND ? ir_in(g, (ir_input){ .kind = IN_BOUND }) : IR_NONE;
}

/* An integral over the past for the current member; its variable becomes number 0. */
static ir_ref integral_concrete(work *w, int32_t number)
{
    const mintegral *x = &w->m->integrals.at[number];
    wintegral one = { { concrete(w, x->lo), concrete(w, x->hi) },
                      ir_substitute(w->g, concrete(w, x->integrand), bound_first, NULL),
                      x->at };
    for (size_t k = 0; k < w->integral.n; k++) {
        const wintegral *y = &w->integral.at[k];
        if (y->f == one.f && y->ends[0] == one.ends[0] && y->ends[1] == one.ends[1])
            return node_in(w, IN_INTEGRAL, (int32_t)k);
    }
    *vec_push(w->a, &w->integral) = one;
    return node_in(w, IN_INTEGRAL, (int32_t)w->integral.n - 1);
}

static ir_ref concrete_input(ir *g, ir_ref input, void *ud)
{
    work *w = ud;
    ir_input in = *ir_input_of(g, input);
    if (in.kind == IN_INDEX)
        return ir_const(g, w->index[in.at.base]);
    if (in.kind == IN_SET)
        return node_in(w, IN_SET, set_number(w, in.at.base));
    if (in.kind == IN_INTEGRAL)
        return integral_concrete(w, in.at.base);
    in.at = (address){ .base = slot_at(&in.at, w->index, w->nindex) };
    return ir_in(g, in);
}

static ir_ref concrete(work *w, ir_ref f)
{
    return f ? ir_substitute(w->g, f, concrete_input, w) : f;
}

static double index_value(const ir_input *in, void *ud)
{
    return ((work *)ud)->index[in->at.base];
}

static void family_add(work *w, const mfamily *f)
{
    int32_t index[MAX_INDEX];
    for (bool any = index_first(&f->over.set, index); any; any = index_next(&f->over.set, index)) {
        w->index = index;
        w->nindex = f->over.set.n;
        if (f->over.where && !ir_value(w->g, w->a, f->over.where, index_value, w))
            continue;
        w->fresh = (map64){ .a = w->a };
        for (int k = 0; k < f->nout; k++) {
            row *r = &w->row[slot_at(&f->row[k], index, w->nindex)];
            r->f = concrete(w, f->out[k]);
            r->at = f->at;
        }
    }
}

/* the arguments of the sets, once the rows are known */
static void sets_concrete(work *w)
{
    for (size_t k = 0; k < w->sets.n; k++) {
        wset *s = &w->sets.at[k];
        w->index = s->index, w->nindex = s->nindex;
        s->arg = arena_array(w->a, ir_ref, s->of->narg);
        for (int i = 0; i < s->of->narg; i++)
            s->arg[i] = concrete(w, s->of->arg[i]);
    }
}

/* ---- past values ---- */
static ir_ref past_input(ir *g, ir_ref input, void *ud)
{
    work *w = ud;
    const ir_input in = *ir_input_of(g, input);
    if (in.kind != IN_PAST_Q && in.kind != IN_PAST_V)
        return IR_NONE;
    size_t k = 0;
    while (k < w->past.n &&
           (w->past.at[k].kind != in.kind || w->past.at[k].dof != in.at.base || w->past.at[k].arg != in.arg))
        k++;
    if (k == w->past.n)
        *vec_push(w->a, &w->past) = (past){ in.kind, in.at.base, in.arg };
    return node_in(w, IN_PAST_Q, (int32_t)k);
}

static kernel emit(work *w, ir_ref *out, size_t n, span at)
{
    static const index_set one = { .count = 1 };
    ir_substitute_all(w->g, out, n, past_input, w);
    return emit_kernel(w->to, w->a, w->g, out, n, &one, IR_NONE, at);
}

/* ---- what a formula depends on ---- */
enum { BIT_OTHER = 1u << 30 }; /* another unknown than the row's own, or its rate */
typedef struct {
    unsigned bits;
    int32_t own;
} reads;

static bool read_one(const ir_input *in, void *ud)
{
    reads *r = ud;
    r->bits |= 1u << in->kind;
    if ((in->kind == IN_Q || in->kind == IN_V) && in->at.base != r->own)
        r->bits |= BIT_OTHER;
    return false;
}

static unsigned reads_of(work *w, ir_ref f, int32_t own)
{
    reads r = { 0, own };
    ir_depends(w->g, f, read_one, &r);
    return r.bits;
}
#define ON(kind) (1u << (kind))
static const unsigned moving = ON(IN_TIME) | ON(IN_PAST_Q) | ON(IN_PAST_V) | ON(IN_INTEGRAL) | BIT_OTHER;

static bool is_number(work *w, ir_ref f, double x)
{
    double k;
    return ir_is_const(w->g, f, &k) && k == x;
}

/* ---- rows ---- */
static void row_sets(work *w, row *r)
{
    ir_ref *in;
    size_t n = ir_inputs(w->g, w->a, &r->f, 1, &in);
    for (size_t i = 0; i < n; i++) {
        const ir_input *x = ir_input_of(w->g, in[i]);
        for (size_t k = 0; x->kind == IN_SET && k < w->sets.n; k++) {
            wset *s = &w->sets.at[k];
            if (x->at.base < s->first || x->at.base >= s->first + s->of->narg)
                continue;
            bool had = false;
            for (size_t j = 0; j < r->set.n; j++)
                had = had || r->set.at[j] == (int)k;
            if (!had)
                *vec_push(w->a, &r->set) = (int)k;
        }
    }
}

static ir_ref seed_time(ir *g, ir_ref input, void *ud)
{
    (void)ud;
    return ir_input_of(g, input)->kind == IN_TIME ? ir_const(g, 1) : IR_NONE;
}

/* ---- coupled selections ---- */
static bool is_selection(const wset *s)
{
    return s->of->kind == SET_SGN || s->of->kind == SET_INTERVAL;
}

/* Sgn of several unknowns or of a rate, an interval, Sgn in a row without its unknown: then all are solved
 * for together. */
static bool rows_joint(work *w)
{
    for (int32_t d = 0; d < w->m->nq; d++)
        for (size_t k = 0; k < w->row[d].set.n; k++) {
            const wset *s = &w->sets.at[w->row[d].set.at[k]];
            if (s->of->kind == SET_INTERVAL)
                return true;
            if (s->of->kind == SET_SGN && ((reads_of(w, s->arg[0], d) & (BIT_OTHER | ON(IN_V))) ||
                                           is_number(w, ir_derive(w->g, s->arg[0], node_in(w, IN_Q, d)), 0)))
                return true;
        }
    return false;
}

typedef struct {
    int32_t from, to;
} renumber;
static ir_ref set_renumber(ir *g, ir_ref input, void *ud)
{
    const renumber *n = ud;
    const ir_input *in = ir_input_of(g, input);
    return in->kind == IN_SET && in->at.base == n->from
               ? ir_in(g, (ir_input){ .kind = IN_SET, .at.base = n->to })
               : IR_NONE;
}

/* Sgn of one argument in several rows is one selection: the force between two bodies, with its reaction */
static void sets_merge(work *w)
{
    for (size_t k = 0; k < w->sets.n; k++)
        for (size_t j = 0; j < k; j++) {
            wset *a = &w->sets.at[j], *b = &w->sets.at[k];
            if (a->of->kind != SET_SGN || b->of->kind != SET_SGN || a->arg[0] != b->arg[0] ||
                a->first == b->first)
                continue;
            renumber n = { b->first, a->first };
            for (int32_t d = 0; d < w->m->nq; d++)
                w->row[d].f = ir_substitute(w->g, w->row[d].f, set_renumber, &n);
            b->first = a->first;
            break;
        }
}

static void joint_emit(work *w)
{
    inclusion_joint *to = arena_array(w->to, inclusion_joint, w->sets.n);
    for (size_t k = 0; k < w->sets.n; k++) {
        const wset *s = &w->sets.at[k];
        bool had = false;
        for (int j = 0; j < w->ip->njoint; j++)
            had = had || to[j].number == s->first;
        if (!is_selection(s) || had)
            continue;
        ir_ref arg = s->arg[0];
        /* against the rate: of the rates allowed the least */
        for (int32_t d = 0; d < w->m->nq && s->of->kind == SET_INTERVAL; d++) {
            ir_ref v = node_in(w, IN_V, d), c = ir_derive(w->g, w->row[d].f, node_in(w, IN_SET, s->first));
            if (!is_number(w, c, 0))
                arg = ir_op2(w->g, OP_MUL, v, ir_op2(w->g, OP_MUL, c, ir_derive(w->g, w->row[d].f, v)));
        }
        if (reads_of(w, arg, -1) & ON(IN_SET))
            refuse(w, s->at, "the argument of Sgn may not contain a set");
        bool held = false;
        for (int32_t d = 0; d < w->m->nq && !held; d++)
            held = !is_number(w, ir_derive(w->g, w->row[d].f, node_in(w, IN_SET, s->first)), 0) &&
                   !(is_number(w, ir_derive(w->g, arg, node_in(w, IN_Q, d)), 0) &&
                     is_number(w, ir_derive(w->g, arg, node_in(w, IN_V, d)), 0));
        if (!held)
            refuse(w, s->at, "the argument of this Sgn does not contain the unknown that its row determines");
        to[w->ip->njoint++] = (inclusion_joint){ .number = s->first,
                                                 .arg = emit(w, &arg, 1, s->at),
                                                 .at = s->at };
    }
    w->ip->joint = to;
}

/* Sgn(a): it switches where a = 0, which is one value of the row's unknown if a is affine in it. */
static void row_sgn(work *w, const row *r, int32_t dof, const wset *s, inclusion_sgn *to,
                    inclusion_row *row_to)
{
    ir_ref q = node_in(w, IN_Q, dof),
           out[3] = { s->arg[0], ir_derive(w->g, s->arg[0], q), ir_total(w->g, s->arg[0], seed_time, NULL) };
    ir_ref c = ir_derive(w->g, r->f, node_in(w, IN_SET, s->first));
    unsigned on = reads_of(w, out[0], dof), slope = reads_of(w, out[1], dof), factor = reads_of(w, c, dof);
    if (is_number(w, out[1], 0))
        refuse(w, s->at, "the argument of this Sgn does not contain the unknown that its row determines");
    if (slope & ON(IN_Q))
        refuse(w, s->at, "the argument of Sgn must be affine in the unknown that its row determines");
    if ((on | factor) & (ON(IN_V) | ON(IN_SET)))
        refuse(w, s->at, "neither the argument nor the factor of Sgn may contain rates or sets");
    *to = (inclusion_sgn){ .number = s->first, .steady = !(on & moving), .at = s->at };
    if ((on | factor) & moving)
        row_to->separable = false;
    to->arg = emit(w, out, 3, s->at);
}

static void row_emit(work *w, int32_t dof, inclusion_row *to)
{
    row *r = &w->row[dof];
    ir_ref q = node_in(w, IN_Q, dof), v = node_in(w, IN_V, dof), out[4];
    out[0] = r->f;
    out[1] = ir_derive(w->g, r->f, q);
    out[2] = ir_derive(w->g, r->f, v);
    size_t n = 3;
    inclusion_sgn *sgn = arena_array(w->to, inclusion_sgn, r->set.n);
    *to = (inclusion_row){ .dof = dof, .cone = -1, .at = r->at, .sgn = sgn, .separable = true };
    if (reads_of(w, out[1], dof) & (moving | ON(IN_V)))
        to->separable = false;
    if (reads_of(w, out[2], dof) & (moving | ON(IN_Q) | ON(IN_V) | ON(IN_SET)))
        to->separable = false;
    if (reads_of(w, out[2], dof) & (ON(IN_V) | ON(IN_SET)))
        refuse(w, r->at, "the rates of an inclusion must enter linearly, and the sets must be added to them");
    if (reads_of(w, r->f, dof) & (ON(IN_PRE) | ON(IN_A)))
        refuse(w, r->at, "an inclusion is of first order in its unknowns");
    for (size_t k = 0; k < r->set.n; k++) {
        const wset *s = &w->sets.at[r->set.at[k]];
        if (s->of->kind == SET_SGN && !w->joint)
            row_sgn(w, r, dof, s, &sgn[to->nsgn++], to);
        if (s->of->kind == SET_NORMAL_CONE && w->joint)
            refuse(
                w, s->at,
                "a normal cone cannot be combined with Sgn of several unknowns, of rates, or with intervals");
        for (int i = 0; s->of->kind == SET_NORMAL_CONE && i < s->of->narg; i++) {
            ir_ref c = ir_derive(w->g, r->f, node_in(w, IN_SET, s->first + i));
            if (reads_of(w, c, dof) & ON(IN_SET))
                refuse(w, r->at, "a normal cone may only be added, times a positive number");
            if (!is_number(w, c, 0))
                out[n++ < 4 ? 3 : 0] = c;
        }
    }
    for (size_t k = 0; k < r->set.n; k++) {
        ir_ref c = ir_derive(w->g, r->f, node_in(w, IN_SET, w->sets.at[r->set.at[k]].first));
        if (reads_of(w, c, dof) & ON(IN_SET))
            refuse(w, r->at, "sets are added, not multiplied with each other");
    }
    if (n > 4 || (n == 4 && to->nsgn))
        refuse(w, r->at, "a row may have only one normal cone: join the sets with intersection()");
    to->r = emit(w, out, n < 4 ? n : 4, r->at);
    ir_ref second = ir_derive(w->g, ir_derive(w->g, r->f, q), q),
           drift = ir_total(w->g, r->f, seed_time, NULL);
    to->curve = emit(w, &second, 1, r->at);
    to->drift = emit(w, &drift, 1, r->at);
}

/* ---- sets as g(x) <= 0 ---- */
typedef vec(ir_ref) constraints;
#define OP2(op, x, y) ir_op2(w->g, OP_##op, (x), (y))

static ir_ref element(work *w, const value *v, int32_t k)
{
    value e = v_element(v, v->num.rank ? k : 0);
    return v_ref(w->g, &e);
}

static bool shape_is(work *w, const wset *s, const value *v, int rank, int32_t n0, int32_t n1,
                     const char *what)
{
    bool scalar_ok = rank == 1 && n0 == 1 && v->kind == V_NUM && v->num.rank == 0;
    if (scalar_ok || (v->kind == V_NUM && v->num.rank == rank && (rank < 1 || v->num.n[0] == n0) &&
                      (rank < 2 || v->num.n[1] == n1)))
        return true;
    diag_error(w->m->d, DIAG_SHAPE, s->at, "the point has %d components: %s is not %s", s->of->narg, what,
               v_kind_text(w->a, v));
    return false;
}

/* sqrt of the sum of x_i A_ij x_j, or of x_i^2 */
static ir_ref length(work *w, const ir_ref *x, int n, const value *A)
{
    ir_ref sum = ir_const(w->g, 0);
    for (int i = 0; i < n; i++) {
        if (!A)
            sum = OP2(ADD, sum, ir_op1(w->g, OP_SQR, x[i]));
        for (int j = 0; A && j < n; j++)
            sum = OP2(ADD, sum, OP2(MUL, element(w, A, i * n + j), OP2(MUL, x[i], x[j])));
    }
    return ir_op1(w->g, OP_SQRT, sum);
}

static ir_ref along(work *w, const value *a, int32_t from, const ir_ref *y, int n)
{
    ir_ref sum = ir_const(w->g, 0);
    for (int i = 0; i < n; i++)
        sum = OP2(ADD, sum, OP2(MUL, element(w, a, from + i), y[i]));
    return sum;
}

static void bound_add(work *w, constraints *c, ir_ref y, const value *b, int i, bool upper)
{
    double k;
    ir_ref e = element(w, b, i);
    if (ir_is_const(w->g, e, &k) && (k == (upper ? 1.0 / 0.0 : -1.0 / 0.0)))
        return; /* no bound there */
    *vec_push(w->a, c) = upper ? OP2(SUB, y, e) : OP2(SUB, e, y);
}

static bool set_constraints(work *w, const wset *s, const value *C, const ir_ref *y, constraints *c)
{
    int n = s->of->narg;
    const value *a = C->set.arg;
    const char *kind = C->set.kind;
    if (!strcmp(kind, "intersection")) {
        for (size_t k = 0; k < C->set.n; k++) {
            if (a[k].kind != V_SET) {
                diag_error(w->m->d, DIAG_TYPE, s->at, "'intersection' takes sets, not %s",
                           v_kind_text(w->a, &a[k]));
                return false;
            }
            if (!set_constraints(w, s, &a[k], y, c))
                return false;
        }
    } else if (!strcmp(kind, "ball") || !strcmp(kind, "ellipsoid")) {
        bool ball = kind[0] == 'b';
        ir_ref *x = arena_array(w->a, ir_ref, n);
        if (!shape_is(w, s, &a[0], 1, n, 0, "its centre"))
            return false;
        if (!(ball ? shape_is(w, s, &a[1], 0, 0, 0, "its radius")
                   : shape_is(w, s, &a[1], 2, n, n, "its matrix")))
            return false;
        for (int i = 0; i < n; i++)
            x[i] = OP2(SUB, y[i], element(w, &a[0], i));
        *vec_push(w->a, c) = OP2(SUB, length(w, x, n, ball ? NULL : &a[1]),
                                 ball ? element(w, &a[1], 0) : ir_const(w->g, 1));
    } else if (!strcmp(kind, "box")) {
        if (!shape_is(w, s, &a[0], 1, n, 0, "its lower corner") ||
            !shape_is(w, s, &a[1], 1, n, 0, "its upper corner"))
            return false;
        for (int i = 0; i < n; i++)
            bound_add(w, c, y[i], &a[0], i, false), bound_add(w, c, y[i], &a[1], i, true);
    } else if (!strcmp(kind, "halfspace")) {
        if (!shape_is(w, s, &a[0], 1, n, 0, "its normal") || !shape_is(w, s, &a[1], 0, 0, 0, "its offset"))
            return false;
        *vec_push(w->a, c) = OP2(SUB, along(w, &a[0], 0, y, n), element(w, &a[1], 0));
    } else if (!strcmp(kind, "polyhedron")) {
        int32_t rows = a[1].kind == V_NUM && a[1].num.rank == 1 ? a[1].num.n[0] : 1;
        if (!shape_is(w, s, &a[0], 2, rows, n, "its matrix") ||
            !shape_is(w, s, &a[1], 1, rows, 0, "its right side"))
            return false;
        for (int32_t i = 0; i < rows; i++)
            *vec_push(w->a, c) = OP2(SUB, along(w, &a[0], i * n, y, n), element(w, &a[1], i));
    } else if (!strcmp(kind, "sublevel")) {
        for (size_t k = 0; k < C->set.n; k++) {
            if (a[k].kind != V_NUM) {
                diag_error(w->m->d, DIAG_TYPE, s->at,
                           "'sublevel' takes numbers that are at most 0 in the set, not %s",
                           v_kind_text(w->a, &a[k]));
                return false;
            }
            for (int32_t i = 0; i < v_count(&a[k]); i++)
                *vec_push(w->a, c) = element(w, &a[k], i);
        }
    } else {
        diag *d = diag_error(w->m->d, DIAG_NOT_SUPPORTED, s->at, "the normal cone of a %s is not supported",
                             kind);
        diag_hint(w->m->d, d, "ball, box, halfspace, polyhedron, ellipsoid, sublevel, intersection");
        return false;
    }
    return true;
}

/* argument i of the cone is x[d] + b(t): gives d, or -1 */
static int32_t cone_dof(work *w, ir_ref arg)
{
    ir_ref *in;
    int32_t d = -1;
    size_t n = ir_inputs(w->g, w->a, &arg, 1, &in);
    for (size_t k = 0; k < n; k++) {
        const ir_input *x = ir_input_of(w->g, in[k]);
        if (x->kind == IN_V || x->kind == IN_SET || (x->kind == IN_Q && d >= 0))
            return -1;
        if (x->kind == IN_Q)
            d = x->at.base;
    }
    return d >= 0 && is_number(w, ir_derive(w->g, arg, node_in(w, IN_Q, d)), 1) ? d : -1;
}

static bool set_convex(const value *C)
{
    bool convex = strcmp(C->set.kind, "sublevel") != 0;
    for (size_t k = 0; !strcmp(C->set.kind, "intersection") && k < C->set.n; k++)
        convex = convex && (C->set.arg[k].kind != V_SET || set_convex(&C->set.arg[k]));
    return convex;
}

static void cone_emit(work *w, int number, inclusion_row *rows, inclusion_cone *to)
{
    wset *s = &w->sets.at[number];
    int n = s->of->narg;
    int32_t *dof = arena_array(w->to, int32_t, n), *sel = arena_array(w->to, int32_t, n);
    constraints c = { 0 };
    *to = (inclusion_cone){
        .n = n, .dof = dof, .number = sel, .at = s->at, .linear = true, .convex = set_convex(&s->set)
    };
    for (int i = 0; i < n; i++) {
        dof[i] = cone_dof(w, s->arg[i]);
        sel[i] = s->first + i;
        if (dof[i] < 0) {
            refuse(w, s->at, "the point of a normal cone is the vector of unknowns, plus functions of time");
            return;
        }
        if (is_number(w, ir_derive(w->g, w->row[dof[i]].f, node_in(w, IN_SET, sel[i])), 0) ||
            rows[dof[i]].cone >= 0) {
            refuse(w, s->at, "component i of a normal cone belongs in the row of component i of its point");
            return;
        }
        rows[dof[i]].cone = (int32_t)(to - w->ip->cone);
    }
    w->index = s->index, w->nindex = s->nindex;
    if (!set_constraints(w, s, &s->set, s->arg, &c))
        return;
    ir_ref *out = arena_array(w->a, ir_ref, c.n * (size_t)(n + 1) + 1);
    w->fresh = (map64){ .a = w->a };
    to->ng = (int)c.n;
    for (size_t k = 0; k < c.n; k++) {
        out[k] = concrete(w, c.at[k]);
        for (int i = 0; i < n; i++) {
            ir_ref d = out[c.n + k * (size_t)n + (size_t)i] = ir_derive(w->g, out[k],
                                                                        node_in(w, IN_Q, dof[i]));
            if (reads_of(w, d, -1) & ON(IN_Q))
                to->linear = false;
        }
        if (reads_of(w, out[k], -1) & (ON(IN_V) | ON(IN_SET) | ON(IN_INTEGRAL)))
            refuse(w, s->at, "a set may move with time and positions only");
    }
    to->g = emit(w, out, c.n * (size_t)(n + 1), s->at);
}

/* ---- when formulas change their form ---- */
static ir_ref turn_of(work *w, ir_ref r)
{
    const ir_node x = *ir_at(w->g, r);
    switch (x.op) {
    case OP_MIN:
    case OP_MAX:
        return OP2(SUB, x.a, x.b);
    case OP_ABS:
    case OP_SIGN:
        return x.a;
    case OP_FLOOR:
    case OP_CEIL:
        return ir_op1(w->g, OP_SIN, OP2(MUL, ir_const(w->g, 3.14159265358979323846), x.a));
    case OP_MOD:
        return ir_op1(w->g, OP_SIN, OP2(MUL, ir_const(w->g, 3.14159265358979323846), OP2(DIV, x.a, x.b)));
    default:
        return op_compares(x.op) ? OP2(SUB, x.a, x.b) : IR_NONE;
    }
}

static void turns_emit(work *w)
{
    vec(ir_ref) nodes = { 0 }, out = { 0 };
    ir_ref *roots = arena_array(w->a, ir_ref, w->m->nq);
    for (int32_t k = 0; k < w->m->nq; k++)
        roots[k] = w->row[k].f;
    ir_walk *walk = ir_walk_begin(w->g, roots, (size_t)w->m->nq, 0, WALK_ALL);
    for (size_t k = 0; k < walk->n; k++) {
        const ir_input *in = ir_input_of(w->g, walk->order[k]);
        *vec_push(w->a, &nodes) = in && in->arg ? in->arg : walk->order[k];
        if (in && in->arg)
            *vec_push(w->a, &out) = in->arg; /* the past begins at 0 */
    }
    ir_walk_end(w->g, walk);
    for (size_t k = 0; k < nodes.n; k++) {
        ir_ref f = ir_input_of(w->g, nodes.at[k]) ? IR_NONE : turn_of(w, nodes.at[k]);
        if (f)
            *vec_push(w->a, &out) = f;
    }
    size_t n = 0;
    for (size_t k = 0; k < out.n; k++) {
        unsigned on = reads_of(w, out.at[k], -1);
        if ((on & ON(IN_TIME)) && !(on & ~(ON(IN_TIME) | ON(IN_PARAM))))
            out.at[n++] = out.at[k];
    }
    if (n)
        w->ip->turn = emit(w, out.at, n, SPAN_NONE);
}

/* ---- the past ---- */
static void integrals_emit(work *w)
{
    inclusion_integral *to = arena_array(w->to, inclusion_integral, w->integral.n);
    for (size_t k = 0; k < w->integral.n; k++) {
        wintegral *x = &w->integral.at[k];
        if ((reads_of(w, x->f, -1) & (ON(IN_INTEGRAL) | ON(IN_SET) | ON(IN_V))) ||
            (reads_of(w, x->ends[0], -1) | reads_of(w, x->ends[1], -1)) & ~(ON(IN_TIME) | ON(IN_PARAM)))
            refuse(w, x->at,
                   "an integral over the past may use past values and rates, between ends that time "
                   "and parameters decide");
        to[k] = (inclusion_integral){ .at = x->at,
                                      .ends = emit(w, x->ends, 2, x->at),
                                      .f = emit(w, &x->f, 1, x->at) };
    }
    w->ip->integral = to;
    w->ip->nintegral = (int)w->integral.n;
}

static void history_emit(work *w, const mfamily *f)
{
    int32_t index[MAX_INDEX];
    for (bool any = index_first(&f->over.set, index); any; any = index_next(&f->over.set, index)) {
        w->index = index, w->nindex = f->over.set.n;
        for (int k = 0; k < f->nout; k++) {
            ir_ref h = ir_substitute(w->g, concrete(w, f->out[k]), bound_first, NULL);
            ir_ref out[2] = { h, ir_derive(w->g, h, node_in(w, IN_BOUND, 0)) };
            w->ip->history[slot_at(&f->row[k], index, w->nindex)] = emit(w, out, 2, f->at);
        }
    }
}

static void pasts_emit(work *w)
{
    inclusion_past *to = arena_array(w->to, inclusion_past, w->past.n);
    size_t n = w->past.n;
    for (size_t k = 0; k < n; k++) {
        ir_ref when = w->past.at[k].arg;
        bool inner = reads_of(w, when, -1) & ON(IN_BOUND);
        if (reads_of(w, when, -1) & ~(ON(IN_TIME) | ON(IN_PARAM) | BIT_OTHER | ON(IN_Q) | ON(IN_BOUND)))
            refuse(w, w->m->has_delay,
                   "the time of a past value may depend on time, parameters and unknowns only");
        to[k] = (inclusion_past){ .dof = w->past.at[k].dof,
                                  .rate = w->past.at[k].kind == IN_PAST_V,
                                  .inner = inner,
                                  .at = w->m->has_delay };
        to[k].when = emit(w, &when, 1, w->m->has_delay);
    }
    w->ip->past = to, w->ip->npast = (int)n;
}

/* ---- all ---- */
enum { ROWS_MAX = 20000, JOINT_ROWS = 400 };

static void all_rows(work *w)
{
    const model *m = w->m;
    w->row = arena_array(w->a, row, m->nq);
    for (size_t k = 0; k < m->equation.n; k++)
        family_add(w, &m->equation.at[k]);
    for (size_t k = 0; k < m->inclusion.n; k++)
        family_add(w, &m->inclusion.at[k]);
    sets_concrete(w);
    for (int32_t k = 0; k < m->nq; k++)
        row_sets(w, &w->row[k]);
}

static void all_emit(work *w)
{
    const model *m = w->m;
    inclusion_row *rows = arena_array(w->to, inclusion_row, m->nq);
    inclusion_cone *cones = arena_array(w->to, inclusion_cone, w->sets.n);
    w->joint = rows_joint(w);
    if (w->joint) {
        sets_merge(w);
        if (m->nq > JOINT_ROWS)
            refuse(w, w->sets.at[0].at,
                   "Sgn of several unknowns or of rates, and intervals, take at most 400 unknowns");
        joint_emit(w);
    }
    for (int32_t k = 0; k < m->nq; k++)
        row_emit(w, k, &rows[k]);
    w->ip->cone = cones;
    for (size_t k = 0; k < w->sets.n; k++)
        if (w->sets.at[k].of->kind == SET_NORMAL_CONE)
            cone_emit(w, (int)k, rows, &cones[w->ip->ncone++]);
    w->ip->row = rows;
    w->ip->history = arena_array(w->to, kernel, m->nq);
    for (size_t k = 0; k < m->history.n; k++)
        history_emit(w, &m->history.at[k]);
    turns_emit(w);
    integrals_emit(w);
    pasts_emit(w);
    w->ip->nset = w->nset;
}

const inclusion_program *assemble_inclusion(arena *a, arena *scratch, const model *m)
{
    work w = { .m = m, .g = m->g, .a = scratch, .to = a };
    size_t errors = m->d->errors;
    w.ip = arena_make(a, inclusion_program);
    if (m->contacts.n)
        refuse(&w, m->contacts.at[0].at,
               "constraints cannot be combined with inclusions: write the set as normal_cone(C, x)");
    if (m->events.n)
        refuse(&w, m->events.at[0].at, "events cannot be combined with inclusions");
    if (m->kinetic.n)
        refuse(&w, m->kinetic.at[0].at, "a first-order inclusion cannot be combined with a kinetic energy");
    if (m->nq > ROWS_MAX)
        refuse(&w, m->decl->name_at, "inclusions take at most 20000 unknowns");
    for (int32_t k = 0; k < m->nq; k++)
        if (m->order[k] != 1)
            refuse(&w, m->inclusion.n ? m->inclusion.at[0].at : m->equation.at[0].at,
                   "inclusions and equations beside them are of first order: give the rates as unknowns of "
                   "their own");
    if (!w.ip->refused) {
        all_rows(&w);
        all_emit(&w);
    }
    return m->d->errors == errors ? w.ip : NULL;
}
