/* elab_shape: convex sets that bodies carry, and the gaps between them.  A shape is the hull of points y with
   a round each, moved by a place p and an attitude A: its distance from the half-space dot(n, x) <= c is the
   least of dot(n, p + A y) - c - round(n), point by point.  So a constraint on the gap of a shape is a family
   with one index more than the user wrote, the points. */
#include "elab.h"
#include <math.h>
#include <string.h>
#include "base/tolerances.h"
#include "program/shapes.h"

/* The round of a point: a ball, a disk across the axis of a cylinder, an ellipsoid. */
static const struct {
    const char *name, *takes;
    shape_kind kind;
} set_list[] = {
    { "ball", "ball(centre, radius)", SHAPE_BALL },
    { "capsule", "capsule(a, b, radius)", SHAPE_BALL },
    { "box", "box(lo, hi)", SHAPE_BALL },
    { "hull", "hull([[x, y, z], …])", SHAPE_BALL },
    { "polyhedron", "polyhedron(A, b)", SHAPE_BALL },
    { "cylinder", "cylinder(point, axis, radius)", SHAPE_CYLINDER },
    { "ellipsoid", "ellipsoid(centre, A)", SHAPE_ELLIPSOID },
    { "halfspace", "halfspace(n, c)", SHAPE_HALFSPACE },
};

const char *shape_set_name(size_t k)
{
    return k < sizeof set_list / sizeof *set_list ? set_list[k].name : NULL;
}

/* ---- formulas of vectors ---- */

typedef struct {
    ir_ref x[3];
} ir_vec;

static ir_ref number(elab *e, double k)
{
    return ir_const(e->m->g, k);
}
static ir_ref add(elab *e, ir_ref a, ir_ref b)
{
    return ir_op2(e->m->g, OP_ADD, a, b);
}
static ir_ref sub(elab *e, ir_ref a, ir_ref b)
{
    return ir_op2(e->m->g, OP_SUB, a, b);
}
static ir_ref mul(elab *e, ir_ref a, ir_ref b)
{
    return ir_op2(e->m->g, OP_MUL, a, b);
}
static ir_ref over(elab *e, ir_ref a, ir_ref b)
{
    return ir_op2(e->m->g, OP_DIV, a, b);
}
static ir_ref root(elab *e, ir_ref a)
{
    return ir_op1(e->m->g, OP_SQRT, a);
}

static ir_ref dot(elab *e, int n, ir_vec a, ir_vec b)
{
    ir_ref s = mul(e, a.x[0], b.x[0]);
    for (int k = 1; k < n; k++)
        s = add(e, s, mul(e, a.x[k], b.x[k]));
    return s;
}

/* a + k*b */
static ir_vec along(elab *e, int n, ir_vec a, ir_ref k, ir_vec b)
{
    for (int i = 0; i < n; i++)
        a.x[i] = add(e, a.x[i], mul(e, k, b.x[i]));
    return a;
}

/* A y, where rows of A are `row` apart and its columns `column` */
static ir_vec product(elab *e, int n, const ir_ref *A, int row, int column, ir_vec y)
{
    ir_vec out = { { 0 } };
    for (int i = 0; i < n; i++) {
        ir_vec of = { { 0 } };
        for (int j = 0; j < n; j++)
            of.x[j] = A[row * i + column * j];
        out.x[i] = dot(e, n, of, y);
    }
    return out;
}

static ir_vec times(elab *e, int n, const ir_ref *A, ir_vec y)
{
    return product(e, n, A, n, 1, y);
}

static ir_vec times_transposed(elab *e, int n, const ir_ref *A, ir_vec y)
{
    return product(e, n, A, 1, n, y);
}

static ir_vec vector_of(elab *e, const value *v)
{
    ir_vec out = { { 0 } };
    for (int k = 0; k < v_count(v) && k < 3; k++) {
        value x = v_element(v, k);
        out.x[k] = v_ref(e->m->g, &x);
    }
    return out;
}

static ir_ref scalar_of(elab *e, const value *v)
{
    return v_ref(e->m->g, v);
}

/* ---- sets ---- */

static int set_number(const value *v)
{
    for (size_t k = 0; v->kind == V_SET && k < sizeof set_list / sizeof *set_list; k++)
        if (!strcmp(v->set.kind, set_list[k].name))
            return (int)k;
    return -1;
}

static bool set_bad(elab *e, int which, const char *what, span at)
{
    diag *d = diag_error(e->m->d, DIAG_SHAPE, at, "%s", what);
    diag_hint(e->m->d, d, "%s", set_list[which].takes);
    return false;
}

static bool is_vector(const value *v, int axes)
{
    return v->kind == V_NUM && v->num.rank == 1 && v->num.n[0] == axes;
}

static bool is_matrix(const value *v, int rows, int cols)
{
    return v->kind == V_NUM && v->num.rank == 2 && (rows < 0 || v->num.n[0] == rows) && v->num.n[1] == cols;
}

/* points of a set: coordinates and a round each */
typedef struct {
    int dim, n;
    ir_ref *row;      /* dim + 1 for each point */
    ir_ref matrix[9]; /* of an ellipsoid, */
    int nmatrix;      /* else 0 */
} points;

static void point_add(elab *e, points *p, ir_vec y, ir_ref round)
{
    ir_ref *row = arena_array(e->m->a, ir_ref, (size_t)(p->n + 1) * (size_t)(p->dim + 1));
    size_t have = (size_t)p->n * (size_t)(p->dim + 1);
    if (have)
        memcpy(row, p->row, have * sizeof *row);
    memcpy(row + have, y.x, (size_t)p->dim * sizeof *row);
    row[have + (size_t)p->dim] = round;
    p->row = row;
    p->n++;
}

static void box_points(elab *e, points *p, ir_vec lo, ir_vec hi)
{
    for (int k = 0; k < 1 << p->dim; k++) {
        ir_vec y;
        for (int i = 0; i < p->dim; i++)
            y.x[i] = k >> i & 1 ? hi.x[i] : lo.x[i];
        point_add(e, p, y, number(e, 0));
    }
}

static ir_vec cross(elab *e, ir_vec a, ir_vec b)
{
    ir_vec out;
    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3, k = (i + 2) % 3;
        out.x[i] = sub(e, mul(e, a.x[j], b.x[k]), mul(e, a.x[k], b.x[j]));
    }
    return out;
}

/* Both ends as disks, whose lowest points may touch, and points around both rims, on which it can stand. */
static void cylinder_points(elab *e, points *p, ir_vec end, ir_vec axis, ir_ref r)
{
    enum { AROUND = 4 };
    ir_ref length = root(e, dot(e, 3, axis, axis));
    ir_vec zero = { { number(e, 0), number(e, 0), number(e, 0) } };
    ir_vec a = along(e, 3, zero, over(e, number(e, 1), length), axis),
           far = along(e, 3, end, number(e, 1), axis);
    /* across it: the axis of space that is least along it, made perpendicular */
    ir_ref flat = ir_op2(e->m->g, OP_LT, mul(e, a.x[0], a.x[0]), number(e, 0.5));
    ir_vec any = { { ir_op(e->m->g, OP_SELECT, flat, number(e, 1), number(e, 0)),
                     ir_op(e->m->g, OP_SELECT, flat, number(e, 0), number(e, 1)), number(e, 0) } };
    ir_vec u = along(e, 3, any, ir_op1(e->m->g, OP_NEG, dot(e, 3, any, a)), a);
    u = along(e, 3, zero, over(e, r, root(e, dot(e, 3, u, u))), u);
    ir_vec w = cross(e, a, u);
    point_add(e, p, end, r);
    point_add(e, p, far, r);
    for (int k = 0; k < 2 * AROUND; k++) {
        static const double c[AROUND] = { 1, 0, -1, 0 }, s[AROUND] = { 0, 1, 0, -1 };
        ir_vec y = along(e, 3, k < AROUND ? end : far, number(e, c[k % AROUND]), u);
        point_add(e, p, along(e, 3, y, number(e, s[k % AROUND]), w), number(e, 0));
    }
}

static bool hull_points(elab *e, points *p, const value *of, int which, span at)
{
    if (of->kind == V_LIST) {
        for (size_t k = 0; k < of->list.n; k++) {
            if (!is_vector(&of->list.at[k], p->dim))
                return set_bad(e, which,
                               arena_printf(e->m->a, "point %zu of this hull is not a vector of %d numbers",
                                            k + 1, p->dim),
                               at);
            point_add(e, p, vector_of(e, &of->list.at[k]), number(e, 0));
        }
    } else if (is_matrix(of, -1, p->dim)) {
        for (int32_t k = 0; k < of->num.n[0]; k++) {
            ir_vec y;
            for (int i = 0; i < p->dim; i++) {
                value x = v_element(of, k * p->dim + i);
                y.x[i] = v_ref(e->m->g, &x);
            }
            point_add(e, p, y, number(e, 0));
        }
    } else
        return set_bad(e, which, arena_printf(e->m->a, "a hull needs points of %d numbers each", p->dim), at);
    return true;
}

/* ---- corners of A y <= b ---- */

enum { MAX_FACES = 100, MAX_CORNERS = 256 };

/* rows r of a as equations; false: they have no single solution */
static bool corner_of(const double *a, const double *b, int axes, const int *r, double *y)
{
    double M[3][4];
    for (int i = 0; i < axes; i++) {
        for (int j = 0; j < axes; j++)
            M[i][j] = a[r[i] * axes + j];
        M[i][axes] = b[r[i]];
    }
    for (int c = 0; c < axes; c++) {
        int best = c;
        for (int i = c + 1; i < axes; i++)
            if (fabs(M[i][c]) > fabs(M[best][c]))
                best = i;
        if (fabs(M[best][c]) < CORNER_SAME)
            return false;
        for (int j = 0; j <= axes; j++) {
            double t = M[c][j];
            M[c][j] = M[best][j];
            M[best][j] = t;
        }
        for (int i = 0; i < axes; i++) {
            double f = i == c ? 0 : M[i][c] / M[c][c];
            for (int j = c; j <= axes && f != 0; j++)
                M[i][j] -= f * M[c][j];
        }
    }
    for (int i = 0; i < axes; i++)
        y[i] = M[i][axes] / M[i][i];
    return true;
}

static bool corner_new(const double *corner, int n, int axes, const double *y, double size)
{
    for (int k = 0; k < n; k++) {
        double far = 0;
        for (int i = 0; i < axes; i++)
            far = fmax(far, fabs(corner[axes * k + i] - y[i]));
        if (far <= CORNER_SAME * size)
            return false;
    }
    return true;
}

static bool corner_inside(const double *a, const double *b, int rows, int axes, const double *y, double size)
{
    for (int i = 0; i < rows; i++) {
        double s = -b[i];
        for (int j = 0; j < axes; j++)
            s += a[i * axes + j] * y[j];
        if (s > CORNER_SAME * size)
            return false;
    }
    return true;
}

static bool numbers_of(const value *v, double *to)
{
    for (int32_t k = 0; k < v_count(v); k++) {
        value x = v_element(v, k);
        if (!v_scalar(&x, &to[k]))
            return false;
    }
    return true;
}

static bool polyhedron_points(elab *e, points *p, const value *A, const value *b, int which, span at)
{
    int axes = p->dim, rows = is_matrix(A, -1, axes) ? A->num.n[0] : 0;
    double a[3 * MAX_FACES], c[MAX_FACES], corner[3 * MAX_CORNERS], size = 0;
    if (!rows || !is_vector(b, rows))
        return set_bad(
            e, which,
            arena_printf(e->m->a,
                         "a polyhedron needs a matrix with %d columns and one number for each of its rows",
                         axes),
            at);
    if (rows > MAX_FACES || !numbers_of(A, a) || !numbers_of(b, c))
        return set_bad(e, which,
                       rows > MAX_FACES ? "a polyhedron of a shape has at most 100 faces"
                                        : "the faces of this polyhedron must be numbers: its corners are "
                                          "found before the run; a hull may depend on parameters",
                       at);
    for (int i = 0; i < rows; i++) {
        double norm = 0;
        for (int j = 0; j < axes; j++)
            norm += a[i * axes + j] * a[i * axes + j];
        norm = sqrt(norm);
        for (int j = 0; j < axes; j++)
            a[i * axes + j] /= norm;
        c[i] /= norm;
        size = fmax(size, fabs(c[i]));
    }
    int n = 0, r[3];
    double y[3];
    for (r[0] = 0; r[0] < rows; r[0]++)
        for (r[1] = r[0] + 1; r[1] < rows; r[1]++)
            for (r[2] = axes == 3 ? r[1] + 1 : 0; r[2] < (axes == 3 ? rows : 1); r[2]++) {
                if (!corner_of(a, c, axes, r, y) || !corner_inside(a, c, rows, axes, y, size) ||
                    !corner_new(corner, n, axes, y, size))
                    continue;
                if (n == MAX_CORNERS)
                    return set_bad(e, which, "a polyhedron of a shape has at most 256 corners", at);
                memcpy(corner + axes * n++, y, (size_t)axes * sizeof *y);
            }
    if (n <= axes)
        return set_bad(e, which,
                       "this polyhedron has no interior, or reaches infinity: it has too few corners", at);
    for (int k = 0; k < n; k++) {
        ir_vec x;
        for (int i = 0; i < axes; i++)
            x.x[i] = number(e, corner[axes * k + i]);
        point_add(e, p, x, number(e, 0));
    }
    return true;
}

/* The points of a set in the space that p has; false after an error. */
static bool set_points(elab *e, const value *set, points *p, span at)
{
    int which = set_number(set);
    const char *name = set_list[which].name;
    const value *arg = set->set.arg;
    bool ok = true;
    if (!strcmp(name, "ball") || !strcmp(name, "capsule")) {
        size_t last = set->set.n - 1;
        for (size_t k = 0; k < last; k++)
            ok = ok && is_vector(&arg[k], p->dim);
        if (!ok || !v_is_scalar(&arg[last]))
            return set_bad(
                e, which,
                arena_printf(e->m->a, "here a %s needs points of %d numbers and a radius", name, p->dim), at);
        for (size_t k = 0; k < last; k++)
            point_add(e, p, vector_of(e, &arg[k]), scalar_of(e, &arg[last]));
    } else if (!strcmp(name, "box")) {
        if (!is_vector(&arg[0], p->dim) || !is_vector(&arg[1], p->dim))
            return set_bad(e, which,
                           arena_printf(e->m->a, "here a box needs two corners of %d numbers", p->dim), at);
        box_points(e, p, vector_of(e, &arg[0]), vector_of(e, &arg[1]));
    } else if (!strcmp(name, "hull"))
        return hull_points(e, p, &arg[0], which, at);
    else if (!strcmp(name, "polyhedron"))
        return polyhedron_points(e, p, &arg[0], &arg[1], which, at);
    else if (!strcmp(name, "cylinder")) {
        if (p->dim != 3 || !is_vector(&arg[0], 3) || !is_vector(&arg[1], 3) || !v_is_scalar(&arg[2]))
            return set_bad(
                e, which,
                "a cylinder needs a point and an axis of 3 numbers and a radius; there are none in the plane",
                at);
        cylinder_points(e, p, vector_of(e, &arg[0]), vector_of(e, &arg[1]), scalar_of(e, &arg[2]));
    } else if (!strcmp(name, "ellipsoid")) {
        if (!is_vector(&arg[0], p->dim) || !is_matrix(&arg[1], p->dim, p->dim))
            return set_bad(
                e, which,
                arena_printf(e->m->a, "here an ellipsoid needs a centre of %d numbers and a %d by %d matrix",
                             p->dim, p->dim, p->dim),
                at);
        point_add(e, p, vector_of(e, &arg[0]), number(e, 1));
        for (p->nmatrix = 0; p->nmatrix < p->dim * p->dim; p->nmatrix++) {
            value x = v_element(&arg[1], p->nmatrix);
            p->matrix[p->nmatrix] = v_ref(e->m->g, &x);
        }
    } else if (!is_vector(&arg[0], p->dim) || !v_is_scalar(&arg[1]))
        return set_bad(
            e, which,
            arena_printf(e->m->a, "here a half-space needs a normal of %d numbers and a number", p->dim), at);
    return true;
}

static int set_dim(const value *set)
{
    const value *x = &set->set.arg[0];
    if (x->kind == V_LIST && x->list.n)
        x = &x->list.at[0];
    if (x->kind != V_NUM || x->num.rank == 0)
        return 0;
    return x->num.rank == 2 ? x->num.n[1] : x->num.n[0];
}

/* ---- tables: the points of a shape as parameters, instance after instance ---- */

static bool table_constant(elab *e, const points *p, span at)
{
    int of_points = p->n * (p->dim + 1);
    for (int k = 0; k < of_points + p->nmatrix; k++)
        if (depends_on(e->m->g, k < of_points ? p->row[k] : p->matrix[k - of_points], MOVING)) {
            diag_error(e->m->d, DIAG_NOT_CONSTANT, at,
                       "a shape is rigid: in the frame of its body it may depend on parameters, not on time "
                       "or degrees of freedom");
            return false;
        }
    return true;
}

static void table_make(elab *e, mshape *s, mclass *c, const index_names *family, const points *p,
                       const ast *node)
{
    int32_t of_points = p->n * (p->dim + 1), n = of_points + p->nmatrix;
    address inst = family->n ? class_own_instance(c) : (address){ 0 };
    s->table = e->m->nparam;
    s->size = n;
    s->npoint = p->n;
    if (s->kind != SHAPE_HALFSPACE)
        *vec_push(e->m->a, &e->m->shapes.solids) = s;
    e->m->nparam += n * (family->n ? c->ninst : 1);
    mfamily *f = family_add(e, &e->m->derived, c, family, node, n, true);
    for (int32_t k = 0; k < n; k++) {
        f->out[k] = k < of_points ? p->row[k] : p->matrix[k - of_points];
        f->row[k] = (address){ .base = s->table + k + inst.base * n };
        for (int i = 0; i < MAX_INDEX; i++)
            f->row[k].stride[i] = inst.stride[i] * n;
    }
}

/* ---- shapes ---- */

typedef struct {
    scope base;
    mshape *s;
    address inst;
    class_scope *in; /* of the instance; NULL: a fixed set of a constraint */
} shape_scope;

static bool shape_pose(elab *e, const mshape *s, scope *in, ir_vec *place, ir_ref *turn, dim *unit);

/* a shape of a class, when it is first met */
static mshape *shape_known(elab *e, mclass *c, const mdecl *d)
{
    mshape *s = d->shape;
    if (s->state == SHAPE_BUSY) {
        diag_error(e->m->d, DIAG_CYCLE, d->at, "shape '%s' depends on itself", s->name);
        s->state = SHAPE_WRONG;
    }
    if (s->state)
        return s->state == SHAPE_KNOWN ? s : NULL;
    scope *in = &work_of(c)->own->base;
    const index_names *old = e->ev.family;
    const ast *node = d->node;
    s->state = SHAPE_BUSY;
    e->ev.family = &c->inst;
    value set;
    s->meshed = shape_mesh(e, node->kid[0], &set);
    if (!s->meshed)
        set = eval(&e->ev, in, node->kid[0]);
    s->fixed = set;
    s->dim = 0;
    if (set.kind != V_ERROR && set_number(&set) < 0) {
        diag *x = diag_error(e->m->d, DIAG_TYPE, node->kid[0]->at, "a shape is a convex set, not %s",
                             v_kind_text(e->m->a, &set));
        text list = { .a = e->m->a };
        for (size_t k = 0; k < sizeof set_list / sizeof *set_list; k++)
            text_printf(&list, "%s%s", k ? ", " : "", set_list[k].takes);
        diag_hint(e->m->d, x, "%s", list.at);
    } else if (set.kind != V_ERROR) {
        points p = { 0 };
        ir_vec place;
        ir_ref turn[9];
        dim unit;
        s->kind = set_list[set_number(&set)].kind;
        s->set = set_list[set_number(&set)].name;
        s->dim = set_dim(&set);
        if (shape_pose(e, s, in, &place, turn, &unit)) {
            p.dim = s->dim;
            if (s->kind == SHAPE_HALFSPACE && node->kid[1]->n)
                diag_error(e->m->d, DIAG_NOT_SUPPORTED, node->kid[1]->at,
                           "a half-space is fixed: a body cannot carry it");
            else if (set_points(e, &set, &p, node->kid[0]->at) && table_constant(e, &p, node->kid[0]->at)) {
                table_make(e, s, c, &c->inst, &p, node->kid[0]);
                s->of = c;
                memcpy(s->pose, place.x, (size_t)s->dim * sizeof *s->pose);
                memcpy(s->pose + s->dim, turn, (size_t)(s->dim * s->dim) * sizeof *s->pose);
                s->state = SHAPE_KNOWN;
            }
        }
    }
    e->ev.family = old;
    if (s->state == SHAPE_BUSY)
        s->state = SHAPE_WRONG;
    return s->state == SHAPE_KNOWN ? s : NULL;
}

/* place and attitude of a shape as formulas; a fixed one has those of space */
static bool shape_pose(elab *e, const mshape *s, scope *in, ir_vec *place, ir_ref *turn, dim *unit)
{
    const ast *at = s->decl ? s->decl->kid[1] : NULL;
    int n = s->dim;
    *unit = dim_any();
    for (int k = 0; k < 9; k++)
        turn[k] = number(e, k % (n + 1) == 0);
    for (int k = 0; k < 3; k++)
        place->x[k] = number(e, 0);
    if (!at || !at->n)
        return n == 2 || n == 3 ||
               (s->decl && set_bad(e, 0, "a shape lies in the plane or in space", s->decl->kid[0]->at));
    value p = eval(&e->ev, in, at->kid[0]), A = v_num(0);
    if (p.kind == V_ERROR || e->ev.needs_members)
        return false;
    if (p.kind != V_NUM || p.num.rank != 1 || (p.num.n[0] != 2 && p.num.n[0] != 3) || p.num.n[0] != n) {
        diag *d = diag_error(e->m->d, DIAG_SHAPE, at->kid[0]->at,
                             "the place of this shape is a vector of %s, not %s",
                             n == 2   ? "2 numbers"
                             : n == 3 ? "3 numbers"
                                      : "2 or 3 numbers",
                             v_kind_text(e->m->a, &p));
        diag_hint(e->m->d, d, "shape %s: %s at p, A in space; at p, a in the plane, with an angle a", s->name,
                  set_list[0].takes);
        return false;
    }
    *place = vector_of(e, &p);
    *unit = p.num.unit;
    if (at->n > 1)
        A = eval(&e->ev, in, at->kid[1]);
    if (A.kind == V_ERROR || e->ev.needs_members)
        return false;
    if (at->n > 2 || (at->n > 1 && (n == 3 ? !is_matrix(&A, 3, 3) : !v_is_scalar(&A)))) {
        diag *d = diag_error(e->m->d, DIAG_SHAPE, at->kid[at->n > 2 ? 2 : 1]->at,
                             at->n > 2 ? "a shape has a place and an attitude, nothing else"
                             : n == 3  ? "the attitude of a shape in space is a rotation, not %s"
                                       : "the attitude of a shape in the plane is an angle, not %s",
                             v_kind_text(e->m->a, &A));
        diag_hint(e->m->d, d, n == 3 ? "dof A in SO3" : "dof a = 0");
        return false;
    }
    if (at->n == 2 && n == 3)
        for (int k = 0; k < 9; k++) {
            value x = v_element(&A, k);
            turn[k] = v_ref(e->m->g, &x);
        }
    if (at->n == 2 && n == 2) {
        ir_ref a = v_ref(e->m->g, &A), c = ir_op1(e->m->g, OP_COS, a), sn = ir_op1(e->m->g, OP_SIN, a);
        turn[0] = turn[3] = c;
        turn[1] = ir_op1(e->m->g, OP_NEG, sn);
        turn[2] = sn;
    }
    return true;
}

/* A shape where a formula meets it. */
typedef struct {
    mshape *s;
    address inst;
    ir_vec place;
    ir_ref turn[9];
    value set; /* as it is for the instance */
    dim unit;
} placed;

static bool shape_place(elab *e, const shape_scope *of, placed *out)
{
    *out = (placed){ .s = of->s, .inst = of->inst };
    scope *in = of->in ? &of->in->base : NULL;
    if (!shape_pose(e, of->s, in, &out->place, out->turn, &out->unit))
        return false;
    out->set = in && !of->s->meshed ? eval(&e->ev, in, of->s->decl->kid[0]) : of->s->fixed;
    return out->set.kind == V_SET;
}

/* ---- gaps ---- */

/* number k of the table for the point of the last index; points are counted from 1 */
static ir_ref table_read(elab *e, const placed *b, int k)
{
    int point = e->ev.family->n, width = b->s->dim + 1;
    address at = { .base = b->s->table + k - width + b->inst.base * b->s->size };
    for (int i = 0; i < MAX_INDEX; i++)
        at.stride[i] = b->inst.stride[i] * b->s->size;
    at.stride[point] += width;
    return ir_in(e->m->g, (ir_input){ .kind = IN_PARAM, .at = at });
}

/* the velocity of the point of the body that is at x now */
static void material_velocity(elab *e, const placed *b, ir_vec x, ir_ref *to)
{
    int n = b->s->dim;
    ir_ref spin[9] = { 0 };
    ir_vec arm = along(e, n, x, number(e, -1), b->place), y = times_transposed(e, n, b->turn, arm);
    for (int k = 0; k < n * n; k++)
        spin[k] = ir_time_derivative(e->m->g, b->turn[k]);
    ir_vec v = times(e, n, spin, y);
    for (int k = 0; k < n; k++)
        to[k] = add(e, ir_time_derivative(e->m->g, b->place.x[k]), v.x[k]);
}

/* The angular velocity of a body, in space, from its attitude R: the entries of R' R^T. */
static void angular_velocity(elab *e, const placed *b, ir_ref *to)
{
    int n = b->s->dim, count = n == 2 ? 1 : 3;
    for (int k = 0; k < count; k++) {
        int i = n == 2 ? 1 : (k + 2) % 3, j = n == 2 ? 0 : (k + 1) % 3;
        to[k] = number(e, 0);
        for (int m = 0; m < n; m++)
            to[k] = add(e, to[k],
                        mul(e, ir_time_derivative(e->m->g, b->turn[n * i + m]), b->turn[n * j + m]));
    }
}

/* how fast a turns seen from b, which stands still where it is NULL */
static void turn_keep(elab *e, const placed *a, const placed *b)
{
    ir_ref of_b[3];
    angular_velocity(e, a, e->touch.turn);
    if (!b)
        return;
    angular_velocity(e, b, of_b);
    for (int k = 0; k < (a->s->dim == 2 ? 1 : 3); k++)
        e->touch.turn[k] = sub(e, e->touch.turn[k], of_b[k]);
}

/* of the matrix of an ellipsoid, in the frame of its body */
static void ellipsoid_inverse(elab *e, const placed *b, ir_ref *inverse)
{
    int d = b->s->dim;
    const value *A = &b->set.set.arg[1];
    ir_ref m[9], det, minus = number(e, -1);
    for (int k = 0; k < d * d; k++) {
        value x = v_element(A, k);
        m[k] = v_ref(e->m->g, &x);
    }
    if (d == 2) {
        det = sub(e, mul(e, m[0], m[3]), mul(e, m[1], m[2]));
        ir_ref of[4] = { m[3], mul(e, minus, m[1]), mul(e, minus, m[2]), m[0] };
        for (int k = 0; k < 4; k++)
            inverse[k] = over(e, of[k], det);
    } else {
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
                int r = (i + 1) % 3, s = (i + 2) % 3, p = (j + 1) % 3, q = (j + 2) % 3;
                inverse[3 * j + i] = sub(e, mul(e, m[3 * r + p], m[3 * s + q]),
                                         mul(e, m[3 * r + q], m[3 * s + p]));
            }
        det = add(e, add(e, mul(e, m[0], inverse[0]), mul(e, m[1], inverse[3])), mul(e, m[2], inverse[6]));
        for (int k = 0; k < 9; k++)
            inverse[k] = over(e, inverse[k], det);
    }
}

/* How far the round of a point reaches against n, and the point of it that reaches furthest, seen from its
   middle. */
static ir_ref round_reach(elab *e, const placed *b, ir_vec n, ir_ref round, ir_vec *to)
{
    int d = b->s->dim;
    ir_vec zero = { { number(e, 0), number(e, 0), number(e, 0) } };
    ir_ref minus = number(e, -1);
    if (b->s->kind == SHAPE_BALL) {
        *to = along(e, d, zero, mul(e, minus, round), n);
        return round;
    }
    if (b->s->kind == SHAPE_CYLINDER) {
        ir_vec axis = times(e, d, b->turn, vector_of(e, &b->set.set.arg[1]));
        ir_ref part = over(e, dot(e, d, n, axis), dot(e, d, axis, axis));
        ir_vec across = along(e, d, n, mul(e, minus, part), axis);
        ir_ref length = root(e,
                             add(e, dot(e, d, across, across), number(e, CYLINDER_STANDS * CYLINDER_STANDS)));
        *to = along(e, d, zero, mul(e, minus, over(e, round, length)), across);
        return mul(e, round, length);
    }
    /* an ellipsoid: sqrt(n.B n) with the inverse B of its matrix, in the frame of the body */
    ir_ref inverse[9];
    ellipsoid_inverse(e, b, inverse);
    ir_vec own = times_transposed(e, d, b->turn, n), reach = times(e, d, inverse, own);
    ir_ref h = root(e, dot(e, d, own, reach));
    *to = along(e, d, zero, over(e, minus, h), times(e, d, b->turn, reach));
    return h;
}

/* against dot(n, x) <= c */
static value gap_halfspace(elab *e, const placed *b, const value *half, span at)
{
    int d = b->s->dim, width = d + 1;
    ir_vec n = vector_of(e, &half->set.arg[0]), y, touch;
    ir_ref c = scalar_of(e, &half->set.arg[1]), length = root(e, dot(e, d, n, n)), round;
    if (!eval_same_unit(&e->ev, b->unit, half->set.arg[1].num.unit,
                        "a place and a half-space have different dimensions", at))
        return v_error();
    for (int k = 0; k < d; k++)
        n.x[k] = over(e, n.x[k], length);
    c = over(e, c, length);
    touching *t = &e->touch;
    t->slots = b->s->npoint > 1 ? b->s->npoint : 0;
    if (t->slots) {
        for (int k = 0; k < d; k++)
            y.x[k] = table_read(e, b, k);
        round = !strcmp(b->s->set, "box") || !strcmp(b->s->set, "hull") || !strcmp(b->s->set, "polyhedron")
                    ? number(e, 0)
                    : table_read(e, b, width - 1);
    } else {
        y = vector_of(e, b->set.set.arg);
        round = b->s->kind == SHAPE_BALL ? scalar_of(e, &b->set.set.arg[1]) : number(e, 1);
    }
    ir_vec x = along(e, d, b->place, number(e, 1), times(e, d, b->turn, y));
    ir_ref reach = round_reach(e, b, n, round, &touch);
    ir_ref gap = sub(e, sub(e, dot(e, d, n, x), c), reach);
    t->point = arena_array(e->m->a, ir_ref, 3);
    t->normal = arena_array(e->m->a, ir_ref, 3);
    t->dim = d;
    x = along(e, d, x, number(e, 1), touch);
    memcpy(t->point, x.x, sizeof x.x);
    memcpy(t->normal, n.x, sizeof n.x);
    /* in the plane, where all points can stick together while gaps close */
    if (t->slots)
        x = along(e, d, x, mul(e, number(e, -1), gap), n);
    material_velocity(e, b, x, t->slip);
    turn_keep(e, b, NULL);
    return v_node(gap, b->unit);
}

/* ---- between shapes ---- */

static void touch_keep(elab *e, int n, ir_vec point, ir_vec normal)
{
    touching *t = &e->touch;
    t->dim = n;
    t->point = arena_array(e->m->a, ir_ref, 3);
    t->normal = arena_array(e->m->a, ir_ref, 3);
    memcpy(t->point, point.x, sizeof point.x);
    memcpy(t->normal, normal.x, sizeof normal.x);
}

/* how fast the point x of a passes the point y of b */
static void slip_keep(elab *e, const placed *a, ir_vec x, const placed *b, ir_vec y)
{
    ir_ref v[3];
    material_velocity(e, a, x, e->touch.slip);
    material_velocity(e, b, y, v);
    for (int k = 0; k < a->s->dim; k++)
        e->touch.slip[k] = sub(e, e->touch.slip[k], v[k]);
    turn_keep(e, a, b);
}

static bool same_space(elab *e, const placed *a, const placed *b, span at)
{
    return eval_same_unit(&e->ev, a->unit, b->unit, "the places of two shapes have different dimensions", at);
}

/* two balls: the distance of their centres, on every backend */
static value gap_balls(elab *e, const placed *a, const placed *b, span at)
{
    int n = a->s->dim;
    ir_vec x = along(e, n, a->place, number(e, 1), times(e, n, a->turn, vector_of(e, a->set.set.arg)));
    ir_vec y = along(e, n, b->place, number(e, 1), times(e, n, b->turn, vector_of(e, b->set.set.arg))), d;
    ir_ref ra = scalar_of(e, &a->set.set.arg[1]), rb = scalar_of(e, &b->set.set.arg[1]);
    if (!same_space(e, a, b, at))
        return v_error();
    for (int k = 0; k < n; k++)
        d.x[k] = sub(e, x.x[k], y.x[k]);
    ir_ref squares = ir_op1(e->m->g, OP_SQR, d.x[0]);
    for (int k = 1; k < n; k++)
        squares = add(e, squares, ir_op1(e->m->g, OP_SQR, d.x[k]));
    ir_ref length = root(e, squares);
    ir_vec normal = { { number(e, 0), number(e, 0), number(e, 0) } };
    for (int k = 0; k < n; k++)
        normal.x[k] = over(e, d.x[k], length);
    x = along(e, n, x, mul(e, number(e, -1), ra), normal);
    y = along(e, n, y, rb, normal);
    touch_keep(e, n, x, normal);
    slip_keep(e, a, x, b, y);
    return v_node(sub(e, length, add(e, ra, rb)), a->unit);
}

/* Many pairs, each shape by an index of its own: those that are near are listed. */
static bool pairs_listed(const index_names *f, const placed *a, const placed *b)
{
    enum { FEW = 64 };
    if (f->n != 2 || f->set.count <= FEW)
        return false;
    bool a0 = a->inst.stride[0] != 0, a1 = a->inst.stride[1] != 0, b0 = b->inst.stride[0] != 0,
         b1 = b->inst.stride[1] != 0;
    return a0 != a1 && b0 != b1 && a0 != b0;
}

/* Data of listed pairs are stored by place; the first place is not used. */
static void features_listed(elab *e)
{
    address *to = &e->touch.pair.features;
    *to = (address){ .base = -FEATURE_NUMBERS };
    to->stride[2] = FEATURE_NUMBERS;
    to->stride[3] = PAIR_NUMBERS;
    if (e->m->shapes.nfeature == 0)
        e->m->shapes.nfeature = PAIR_NUMBERS;
}

/* Room for what is held of the points of all members: a block with an axis for each index. */
static bool features_room(elab *e, span at)
{
    enum { MOST = 40000000 };
    const index_names *f = e->ev.family;
    address *to = &e->touch.pair.features;
    int64_t lo[MAX_INDEX], hi[MAX_INDEX], step = FEATURE_NUMBERS * (int64_t)FEATURES, base = -FEATURE_NUMBERS;
    *to = (address){ 0 };
    for (int k = 0; k < f->n; k++) {
        const index_range *r = &f->set.r[k];
        lo[k] = r->lo;
        hi[k] = r->hi;
        for (int i = 0; i < k; i++) {
            lo[k] += r->lo_stride[i] * (r->lo_stride[i] > 0 ? lo[i] : hi[i]);
            hi[k] += r->hi_stride[i] * (r->hi_stride[i] > 0 ? hi[i] : lo[i]);
        }
    }
    to->stride[f->n] = FEATURE_NUMBERS;
    for (int k = f->n - 1; k >= 0; k--) {
        int64_t n = hi[k] >= lo[k] ? hi[k] - lo[k] + 1 : 1;
        to->stride[k] = (int32_t)step;
        base -= step * lo[k];
        step *= n;
        if (step > MOST)
            break;
    }
    if (step + e->m->shapes.nfeature > MOST) {
        diag_error(e->m->d, DIAG_LIMIT, at, "these are too many pairs of shapes: at most about %d",
                   MOST / FEATURE_NUMBERS / FEATURES);
        return false;
    }
    to->base = (int32_t)(base + e->m->shapes.nfeature);
    e->m->shapes.nfeature += (int32_t)step;
    return true;
}

static ir_ref feature_in(elab *e, int k)
{
    address at = e->touch.pair.features;
    at.base += k;
    return ir_in(e->m->g, (ir_input){ .kind = IN_FEATURE, .at = at });
}

static ir_vec feature_vector(elab *e, int k)
{
    return (ir_vec){ { feature_in(e, k), feature_in(e, k + 1), feature_in(e, k + 2) } };
}

static ir_vec scaled(elab *e, int n, ir_ref k, ir_vec a)
{
    ir_vec zero = { { number(e, 0), number(e, 0), number(e, 0) } };
    return along(e, n, zero, k, a);
}

static void pair_member(elab *e, mshape *s)
{
    if (s->number)
        return;
    *vec_push(e->m->a, &e->m->shapes.list) = s;
    s->number = (int)e->m->shapes.list.n;
}

static void pair_touches(elab *e, const placed *a, const placed *b)
{
    touching *t = &e->touch;
    pair_member(e, a->s);
    pair_member(e, b->s);
    t->slots = FEATURES;
    t->pair.first = a->s;
    t->pair.second = b->s;
    t->pair.first_of = a->inst;
    t->pair.second_of = b->inst;
}

/* Two hulls with balls around them.  What touches is held (struct feature): points xa, xb, a direction of
   each body. With d = xa - xb the gap is dot(d, N)/|N| less both radii, where N is the normal of a face of b
   or of a, the product of two edges, or the part of d across an edge (all of d between two points).  What
   slides there are the points of both bodies at the same place: on the face where there is one, so that all
   points of two faces lie in one plane and can stick together while gaps close; at xa where the edge is that
   of b, at xb where it is that of a, between two edges at the closest points of their lines. */
static value gap_pair(elab *e, const placed *a, const placed *b, span at)
{
    enum { A, B = 3, UA = 6, UB = 9, PLANE_B = 12, PLANE_A, CROSS, POINT, EDGE_A, EDGE_B, RA, RB };
    int n = a->s->dim;
    touching *t = &e->touch;
    if (!same_space(e, a, b, at))
        return v_error();
    t->pair.listed = pairs_listed(e->ev.family, a, b);
    if (t->pair.listed)
        features_listed(e);
    else if (!features_room(e, at))
        return v_error();
    ir_ref one = number(e, 1), minus = number(e, -1), cross_in = feature_in(e, CROSS);
    ir_vec xa = along(e, n, a->place, one, times(e, n, a->turn, feature_vector(e, A)));
    ir_vec xb = along(e, n, b->place, one, times(e, n, b->turn, feature_vector(e, B)));
    ir_vec ua = times(e, n, a->turn, feature_vector(e, UA)), ub = times(e, n, b->turn, feature_vector(e, UB));
    ir_vec d = along(e, n, xa, minus, xb);
    ir_vec edge = along(e, n, scaled(e, n, feature_in(e, EDGE_A), ua), feature_in(e, EDGE_B), ub);
    ir_vec across = along(e, n, d, mul(e, minus, dot(e, n, d, edge)), edge), both = { { 0 } };
    ir_vec N = along(e, n, scaled(e, n, feature_in(e, PLANE_B), ub), feature_in(e, PLANE_A), ua);
    N = along(e, n, N, feature_in(e, POINT), across);
    if (n == 3) {
        both = cross(e, ua, ub);
        N = along(e, n, N, cross_in, both);
    }
    ir_ref length = root(e, dot(e, n, N, N)), ra = feature_in(e, RA), rb = feature_in(e, RB);
    ir_vec normal = scaled(e, n, over(e, one, length), N);
    ir_ref gap = sub(e, dot(e, n, d, normal), add(e, ra, rb));
    ir_ref on_a = add(e, feature_in(e, PLANE_A), feature_in(e, EDGE_A)),
           on_b = add(e, feature_in(e, PLANE_B), feature_in(e, EDGE_B));
    ir_vec pa = along(e, n, xa, mul(e, minus, on_a), d), pb = along(e, n, xb, on_b, d);
    if (n == 3) { /* the closest points of two lines */
        ir_ref whole = add(e, dot(e, n, both, both), sub(e, one, cross_in)),
               k = mul(e, minus, over(e, cross_in, whole));
        pa = along(e, n, pa, mul(e, k, dot(e, n, cross(e, d, ub), both)), ua);
        pb = along(e, n, pb, mul(e, k, dot(e, n, cross(e, d, ua), both)), ub);
    }
    ir_ref sum = add(e, ra, rb);
    pa = along(e, n, pa, sub(e, mul(e, on_a, sum), ra), normal);
    pb = along(e, n, pb, sub(e, rb, mul(e, on_b, sum)), normal);
    ir_ref to_face = mul(e, sub(e, feature_in(e, PLANE_A), feature_in(e, PLANE_B)), gap);
    pa = along(e, n, pa, to_face, normal);
    pb = along(e, n, pb, to_face, normal);
    touch_keep(e, n, pa, normal);
    slip_keep(e, a, pa, b, pb);
    pair_touches(e, a, b);
    return v_node(gap, a->unit);
}

/* ---- between shapes of which one is curved ---- */

/* E v in space, where the round of a shape reaches sqrt(dot(n, E n)) along n; false: it has no round */
static bool round_times(elab *e, const placed *b, ir_vec v, ir_vec *to)
{
    int n = b->s->dim;
    const value *arg = b->set.set.arg;
    if (b->s->kind == SHAPE_ELLIPSOID) {
        ir_ref inverse[9];
        ellipsoid_inverse(e, b, inverse);
        *to = times(e, n, b->turn, times(e, n, inverse, times_transposed(e, n, b->turn, v)));
        return true;
    }
    if (b->s->kind == SHAPE_CYLINDER) {
        ir_vec own = vector_of(e, &arg[1]), axis = times(e, n, b->turn, own);
        ir_ref part = over(e, dot(e, n, v, axis), dot(e, n, own, own)),
               square = ir_op1(e->m->g, OP_SQR, scalar_of(e, &arg[2]));
        *to = scaled(e, n, square, along(e, n, v, ir_op1(e->m->g, OP_NEG, part), axis));
        return true;
    }
    if (!strcmp(b->s->set, "ball") || !strcmp(b->s->set, "capsule")) {
        *to = scaled(e, n, ir_op1(e->m->g, OP_SQR, scalar_of(e, &arg[b->set.set.n - 1])), v);
        return true;
    }
    return false;
}

/* The added shape along a normal n: its extent (k, sqrt(dot(n, E n))) and its extreme point (E n/k), both
   times `counts`; E s and E t over k. */
typedef struct {
    bool any;
    ir_ref k;
    ir_vec point, s, t;
} reach;

static reach reach_of(elab *e, const placed *b, ir_ref counts, ir_vec n, const ir_vec *turn)
{
    int d = b->s->dim;
    reach r = { .any = false };
    ir_vec point;
    if (!round_times(e, b, n, &point))
        return r;
    ir_ref square = dot(e, d, n, point);
    if (b->s->kind ==
        SHAPE_CYLINDER) { /* from the part across its axis, which is almost 0 if the cylinder stands */
        ir_ref r2 = ir_op1(e->m->g, OP_SQR, scalar_of(e, &b->set.set.arg[2]));
        square = add(e, over(e, dot(e, d, point, point), r2),
                     mul(e, number(e, CYLINDER_STANDS * CYLINDER_STANDS), r2));
    }
    ir_ref k = root(e, square), part = over(e, counts, k);
    r.any = true;
    r.k = mul(e, counts, k);
    r.point = scaled(e, d, part, point);
    if (turn) {
        round_times(e, b, turn[0], &r.s);
        round_times(e, b, turn[1], &r.t);
        r.s = scaled(e, d, part, r.s);
        r.t = scaled(e, d, part, r.t);
    }
    return r;
}

/* -d2 k by turns of the normal along u and w: dot(u, E w)/k - dot(u, E n) dot(w, E n)/k^3 */
static ir_ref reach_curve(elab *e, int d, const reach *r, ir_vec u, ir_vec Ew, ir_vec w, ir_ref counts)
{
    if (!r->any)
        return number(e, 0);
    /* r.point has a factor `counts`, and so has r.k: their quotient has one of them left */
    ir_ref twice = mul(e, dot(e, d, u, r->point), dot(e, d, w, r->point)),
           guarded = add(e, r->k, sub(e, number(e, 1), ir_op1(e->m->g, OP_SQR, counts)));
    return sub(e, dot(e, d, u, Ew), over(e, twice, guarded));
}

/* Of a core each, and rounds (struct feature, convex_round.h): the gap is dot(n, xa - xb) - ka(n) - kb(n),
   over |n|, for the normal n that makes this largest.  That one is held as bodies move but for one step of
   Newton's method along s and t, which is enough for the gap to the fourth order of how far it turns, and for
   its first and second derivatives where the step begins.  Across two edges it is perpendicular to both. */
static value gap_curved(elab *e, const placed *a, const placed *b, span at)
{
    enum { A, B = 3, N = 6, S = 9, T = 12, OF_A = 15, ROUND_A, ROUND_B, EDGE, CROSSING };
    int n = a->s->dim;
    touching *to = &e->touch;
    if (!same_space(e, a, b, at))
        return v_error();
    to->pair.listed = pairs_listed(e->ev.family, a, b);
    if (to->pair.listed)
        features_listed(e);
    else if (!features_room(e, at))
        return v_error();
    ir_ref one = number(e, 1), minus = number(e, -1), of_a = feature_in(e, OF_A), of_b = sub(e, one, of_a),
           edge = feature_in(e, EDGE), crossing = feature_in(e, CROSSING), turn[9],
           count_a = feature_in(e, ROUND_A), count_b = feature_in(e, ROUND_B);
    for (int k = 0; k < n * n; k++)
        turn[k] = add(e, mul(e, of_a, a->turn[k]), mul(e, of_b, b->turn[k]));
    ir_vec own_s = feature_vector(e, S), own_t = feature_vector(e, T);
    ir_vec xa = along(e, n, a->place, one, times(e, n, a->turn, feature_vector(e, A)));
    ir_vec xb = along(e, n, b->place, one, times(e, n, b->turn, feature_vector(e, B)));
    ir_vec n0 = times(e, n, turn, feature_vector(e, N)), d = along(e, n, xa, minus, xb);
    ir_vec way[2] = { times(e, n, turn, own_s), times(e, n, turn, own_t) },
           edge_a = times(e, n, a->turn, own_t);
    /* 0 or 1: does the normal turn along s, along t, along neither? */
    ir_ref turns = dot(e, n, own_s, own_s), spread = sub(e, sub(e, one, edge), crossing),
           second = mul(e, spread, dot(e, n, own_t, own_t)), flat = sub(e, one, turns);

    /* Newton's step */
    reach ra = reach_of(e, a, count_a, n0, way), rb = reach_of(e, b, count_b, n0, way);
    ir_vec r = d;
    if (ra.any)
        r = along(e, n, r, minus, ra.point);
    if (rb.any)
        r = along(e, n, r, minus, rb.point);
    ir_ref far = dot(e, n, n0, r), g1 = mul(e, turns, dot(e, n, way[0], r)),
           g2 = mul(e, second, dot(e, n, way[1], r));
    ir_ref h11 = add(e, reach_curve(e, n, &ra, way[0], ra.s, way[0], count_a),
                     reach_curve(e, n, &rb, way[0], rb.s, way[0], count_b));
    ir_ref h12 = add(e, reach_curve(e, n, &ra, way[0], ra.t, way[1], count_a),
                     reach_curve(e, n, &rb, way[0], rb.t, way[1], count_b));
    ir_ref h22 = add(e, reach_curve(e, n, &ra, way[1], ra.t, way[1], count_a),
                     reach_curve(e, n, &rb, way[1], rb.t, way[1], count_b));
    ir_ref newton = mul(e, turns, sub(e, one, crossing));
    h11 = add(e, mul(e, newton, add(e, h11, far)), sub(e, one, newton));
    h22 = add(e, mul(e, second, add(e, h22, far)), sub(e, one, second));
    h12 = mul(e, second, h12);
    ir_ref det = sub(e, mul(e, h11, h22), ir_op1(e->m->g, OP_SQR, h12));
    ir_ref by_s = over(e, sub(e, mul(e, h22, g1), mul(e, h12, g2)), det),
           by_t = over(e, sub(e, mul(e, h11, g2), mul(e, h12, g1)), det);
    ir_ref across = over(e, mul(e, crossing, dot(e, n, edge_a, n0)),
                         add(e, mul(e, crossing, dot(e, n, edge_a, way[0])), sub(e, one, crossing)));
    by_s = sub(e, mul(e, newton, by_s), across);
    ir_vec n1 = along(e, n, along(e, n, n0, by_s, way[0]), by_t, way[1]);
    ir_vec normal = scaled(e, n, over(e, one, root(e, dot(e, n, n1, n1))), n1);

    ra = reach_of(e, a, count_a, normal, NULL);
    rb = reach_of(e, b, count_b, normal, NULL);
    ir_ref gap = dot(e, n, normal, d);
    ir_vec pa = xa, pb = xb;
    if (ra.any) {
        gap = sub(e, gap, ra.k);
        pa = along(e, n, pa, minus, ra.point);
    }
    if (rb.any) {
        gap = sub(e, gap, rb.k);
        pb = along(e, n, pb, one, rb.point);
    }
    /* touching points: along edges, or in the plane of a face, where those of two faces can all stick
     * together */
    ir_vec rest = along(e, n, along(e, n, pa, minus, pb), mul(e, minus, gap), normal);
    if (n == 3) {
        ir_ref along_t = mul(e, edge, dot(e, n, rest, way[1]));
        pa = along(e, n, pa, mul(e, mul(e, minus, of_a), along_t), way[1]);
        pb = along(e, n, pb, mul(e, of_b, along_t), way[1]);
        ir_vec edge_b = cross(e, n0, way[0]), over_b = cross(e, edge_b, normal),
               over_a = cross(e, edge_a, normal);
        ir_ref other = sub(e, one, crossing), da = add(e, mul(e, crossing, dot(e, n, edge_a, over_b)), other),
               db = add(e, mul(e, crossing, dot(e, n, edge_b, over_a)), other);
        pa = along(e, n, pa, mul(e, minus, over(e, mul(e, crossing, dot(e, n, rest, over_b)), da)), edge_a);
        pb = along(e, n, pb, over(e, mul(e, crossing, dot(e, n, rest, over_a)), db), edge_b);
    }
    ir_ref to_b = mul(e, flat, of_b), to_a = mul(e, flat, of_a);
    ir_vec ab = along(e, n, pa, minus, pb);
    ir_vec qa = along(e, n, along(e, n, pa, mul(e, minus, mul(e, to_b, gap)), normal), mul(e, minus, to_a),
                      along(e, n, ab, mul(e, minus, gap), normal));
    ir_vec qb = along(e, n, along(e, n, pb, to_b, along(e, n, ab, mul(e, minus, gap), normal)),
                      mul(e, to_a, gap), normal);
    touch_keep(e, n, qa, normal);
    slip_keep(e, a, qa, b, qb);
    pair_touches(e, a, b);
    return v_node(gap, a->unit);
}

static look shape_nothing(scope *s, evaluator *ev, sym name, span at, value *out)
{
    (void)s;
    (void)ev;
    (void)name;
    (void)at;
    (void)out;
    return LOOK_NO;
}

static look shape_member(scope *s, evaluator *ev, sym name, span at, value *out);

static const shape_scope *shape_of(const value *v)
{
    return v->kind == V_OBJECT && v->object.in->find == shape_member ? (const shape_scope *)v->object.in
                                                                     : NULL;
}

static value gap_bad(evaluator *ev, span at, const char *what)
{
    diag *d = diag_error(ev->d, DIAG_TYPE, at, "%s", what);
    diag_hint(ev->d, d,
              "constraint touch: a.hull.gap(b.hull) >= 0, or a.hull.gap(halfspace([0, 0, 1], 0)) >= 0");
    return v_error();
}

/* different for the members of a family */
static bool of_member(const ir_input *in, void *ud)
{
    (void)ud;
    for (int k = 0; k < MAX_INDEX; k++)
        if (in->at.stride[k])
            return true;
    return in->kind == IN_INDEX;
}

/* a set written in the call is a fixed shape */
static const shape_scope *shape_fixed(elab *e, const value *set, int axes, span at)
{
    shape_scope *out = arena_make(e->m->a, shape_scope);
    mshape *s = arena_make(e->m->a, mshape);
    points p = { .dim = axes };
    int which = set_number(set);
    *s = (mshape){ .name = set_list[which].name,
                   .at = at,
                   .kind = set_list[which].kind,
                   .set = set_list[which].name,
                   .dim = axes,
                   .state = 1,
                   .fixed = *set };
    *out = (shape_scope){ .s = s };
    if (!set_points(e, set, &p, at))
        return NULL;
    for (int k = 0; k < p.n * (axes + 1); k++)
        if (ir_depends(e->m->g, p.row[k], of_member, NULL) && e->ev.family->n)
            e->ev.needs_members = true; /* a table for each member */
    if (s->kind == SHAPE_HALFSPACE)
        return out;
    if (e->ev.needs_members || !table_constant(e, &p, at))
        return NULL;
    table_make(e, s, e->touch.of, &single_member, &p, e->touch.node);
    return out;
}

/* a.hull.gap(other) */
static value gap_call(scope *base, evaluator *ev, const value *o, const value *arg, size_t n, span at)
{
    const shape_scope *own = (const shape_scope *)base;
    elab *e = base->of;
    placed a;
    (void)o;
    if (!e->touch.of)
        return gap_bad(ev, at, "a gap between shapes is allowed only in a constraint");
    if (e->touch.used)
        return gap_bad(ev, at, "a constraint may contain only one gap between shapes");
    if (n != 1 || (!shape_of(&arg[0]) && set_number(&arg[0]) < 0))
        return gap_bad(ev, at, "gap(…) takes another shape or a convex set");
    if (ev->family->n == MAX_INDEX) {
        diag_error(ev->d, DIAG_LIMIT, at,
                   "a constraint between shapes has at most %d indices, including that of the part",
                   MAX_INDEX - 1);
        return v_error();
    }
    e->touch.used = true;
    const shape_scope *other = shape_of(&arg[0]);
    if (!other)
        other = shape_fixed(e, &arg[0], own->s->dim, at);
    if (!other)
        return v_error();
    if (own->s->kind == SHAPE_HALFSPACE) {
        const shape_scope *swap = own;
        own = other;
        other = swap;
    }
    if (own->s->dim != other->s->dim) {
        diag_error(ev->d, DIAG_SHAPE, at, "one shape lies in the plane, the other one in space");
        return v_error();
    }
    if (own->s->kind == SHAPE_HALFSPACE)
        return gap_bad(ev, at, "two half-spaces have no gap");
    if (!shape_place(e, own, &a))
        return v_error();
    if (other->s->kind == SHAPE_HALFSPACE) {
        placed b;
        return shape_place(e, other, &b) ? gap_halfspace(e, &a, &b.set, at) : v_error();
    }
    placed b;
    if (!shape_place(e, other, &b))
        return v_error();
    if (!strcmp(own->s->set, "ball") && !strcmp(other->s->set, "ball"))
        return gap_balls(e, &a, &b, at);
    if (own->s->kind == SHAPE_BALL && other->s->kind == SHAPE_BALL)
        return gap_pair(e, &a, &b, at);
    return gap_curved(e, &a, &b, at);
}

static look shape_member(scope *base, evaluator *ev, sym name, span at, value *out)
{
    shape_scope *s = (shape_scope *)base;
    (void)ev;
    (void)at;
    if (strcmp(name, "gap"))
        return LOOK_NO;
    shape_scope *g = arena_make(ev->a, shape_scope);
    *g = *s;
    g->base = (scope){ .find = shape_nothing, .call = gap_call, .of = base->of };
    *out = (value){ .kind = V_OBJECT };
    out->object.in = &g->base;
    return LOOK_YES;
}

static void shape_members(scope *base, near *n)
{
    (void)base;
    near_try(n, "gap");
}

value shape_value(elab *e, class_scope *in, const mdecl *d)
{
    mshape *s = shape_known(e, in->c, d);
    if (!s)
        return v_error();
    shape_scope *out = arena_make(e->m->a, shape_scope);
    *out = (shape_scope){
        .base = { .find = shape_member, .names = shape_members, .of = e }, .s = s, .inst = in->inst, .in = in
    };
    value v = { .kind = V_OBJECT };
    v.object.in = &out->base;
    return v;
}
