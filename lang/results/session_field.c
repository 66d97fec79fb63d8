/* session_field: fields of a run as values.  On a line a field is a series over its coordinate; in the plane
 * an object that is asked at points. */
#include <math.h>
#include <string.h>
#include "base/whole.h"
#include "field/field.h"
#include "session/session.h"

static field_result *field_of(const run *r)
{
    union {
        const field_result *from;
        field_result *to;
    } u = { .from = r->r->field };
    return u.to;
}

/* ---- on a line ---- */
static double line_at(void *of, int32_t column, int order, double x)
{
    return field_at(of, column, x, order);
}
static bool line_derivative(const value *y, value *out);
static const series_ops line_ops = { line_at, line_derivative };

static value line_series(field_result *f, int32_t column, int order)
{
    value v = { .kind = V_SERIES };
    v.series.t = f->x;
    v.series.n = f->n;
    v.series.unit = dim_any();
    v.series.ops = &line_ops;
    v.series.of = f;
    v.series.column = column;
    v.series.order = order;
    v.series.y = f->u + column;
    v.series.stride = f->fp->nfield;
    if (order == 0)
        return v;
    double **y = &f->derived[column][order];
    if (!*y) {
        *y = arena_array(f->a, double, f->n);
        for (int64_t k = 0; k < f->n; k++)
            (*y)[k] = field_at(f, column, f->x[k], order);
    }
    v.series.y = *y;
    v.series.stride = 1;
    return v;
}

static bool line_derivative(const value *y, value *out)
{
    if (y->series.order >= FIELD_ORDER)
        return false;
    *out = line_series(y->series.of, y->series.column, y->series.order + 1);
    return true;
}

static value line_numbers(const field_result *f, const double *y)
{
    value v = { .kind = V_SERIES };
    v.series.t = f->x;
    v.series.y = y;
    v.series.n = f->n;
    v.series.stride = 1;
    v.series.unit = dim_any();
    return v;
}

/* ---- in the plane ---- */
enum { VIEW_DERIVATIVE, VIEW_GRAD, VIEW_LAPLACIAN };
typedef struct {
    scope base;
    field_result *f;
    int field, what, d[2];
    double *y;
    arena *a;
} plane_view;

static value plane_new(arena *a, const plane_view *from)
{
    plane_view *p = arena_make(a, plane_view);
    *p = *from;
    p->y = NULL;
    value v = { .kind = V_OBJECT };
    v.object.in = &p->base;
    return v;
}

/* derivatives: u.x is what d(u, x) gives, u.grad and u.laplacian what these functions give */
static look plane_find(scope *sc, evaluator *ev, sym name, span at, value *out)
{
    plane_view to = *(plane_view *)sc;
    (void)ev;
    (void)at;
    if (to.what != VIEW_DERIVATIVE)
        return LOOK_NO;
    for (int c = 0; c < 2; c++) {
        if (strcmp(name, to.f->fp->coord[c]))
            continue;
        if (++to.d[c] > FIELD_ORDER)
            return LOOK_NO;
        *out = plane_new(to.a, &to);
        return LOOK_YES;
    }
    to.what = !strcmp(name, "grad")        ? VIEW_GRAD
              : !strcmp(name, "laplacian") ? VIEW_LAPLACIAN
                                           : VIEW_DERIVATIVE;
    if (to.what == VIEW_DERIVATIVE)
        return LOOK_NO;
    *out = plane_new(to.a, &to);
    return LOOK_YES;
}

/* the view at a point: one number, of a gradient component c */
static double view_at(const plane_view *v, double x, double y, int c)
{
    double s = 0;
    for (int k = 0; k < 2; k++) {
        int d[2] = { v->d[0], v->d[1] };
        if (v->what == VIEW_GRAD && k != c)
            continue;
        if (v->what != VIEW_DERIVATIVE)
            d[k] += v->what == VIEW_GRAD ? 1 : 2;
        s += field_at2(v->f, v->field, x, y, d);
        if (v->what == VIEW_DERIVATIVE)
            break;
    }
    return s;
}

static value plane_call(scope *sc, evaluator *ev, const value *o, const value *arg, size_t n, span at)
{
    const plane_view *v = (plane_view *)sc;
    double x, y;
    (void)o;
    if (n != 2 || !v_scalar(&arg[0], &x) || !v_scalar(&arg[1], &y)) {
        diag_error(ev->d, DIAG_ARITY, at, "a field in the plane is read at two coordinates: %s(0, 0.5)",
                   v->f->fp->name[v->field]);
        return v_error();
    }
    if (!(x >= v->f->lo[0] && x <= v->f->hi[0] && y >= v->f->lo[1] && y <= v->f->hi[1])) {
        diag_error(ev->d, DIAG_INDEX_RANGE, at, "the point (%g, %g) is outside the domain", x, y);
        return v_error();
    }
    if (v->what != VIEW_GRAD)
        return v_num(view_at(v, x, y, 0));
    value out = v_vector(ev->a, 2);
    for (int c = 0; c < 2; c++)
        out.num.d[c] = view_at(v, x, y, c);
    return out;
}

static value plane_value(const run *r, int field)
{
    return plane_new(r->a, &(plane_view){ .base = { .find = plane_find, .call = plane_call },
                                          .f = field_of(r),
                                          .field = field,
                                          .a = r->a });
}

const struct field_result *value_plane(const value *v, int *field)
{
    if (v->kind != V_OBJECT || v->object.in->find != plane_find)
        return NULL;
    const plane_view *p = (plane_view *)v->object.in;
    *field = p->field;
    return p->what == VIEW_DERIVATIVE && !p->d[0] && !p->d[1] ? p->f : NULL;
}

void plane_grid(const field_result *f, int32_t grid[2])
{
    grid[0] = f->m[1];
    grid[1] = f->m[0];
}

bool plane_samples(const value *v, const double **y, int64_t *n, int64_t *stride)
{
    if (v->kind != V_OBJECT || v->object.in->find != plane_find)
        return false;
    plane_view *p = (plane_view *)v->object.in;
    const field_result *f = p->f;
    if (p->what == VIEW_GRAD)
        return false;
    *n = f->n;
    *stride = 1;
    if (p->what == VIEW_DERIVATIVE && !p->d[0] && !p->d[1]) {
        *y = f->u + p->field;
        *stride = f->fp->nfield;
        return true;
    }
    if (!p->y) {
        p->y = arena_array(p->a, double, f->n);
        for (int64_t k = 0; k < f->n; k++)
            p->y[k] = view_at(p, f->ux[0][k % f->m[0]], f->ux[1][k / f->m[0]], 0);
    }
    *y = p->y;
    return true;
}

/* ---- names ---- */
bool field_value(const run *r, int field, value *out)
{
    field_result *f = field_of(r);
    if (!f)
        return false;
    f->a = r->a;
    *out = f->fp->ncoord == 1 ? line_series(f, field, 0) : plane_value(r, field);
    return true;
}

bool field_coordinate(const run *r, int coord, value *out)
{
    const field_result *f = field_of(r);
    if (!f)
        return false;
    if (f->fp->ncoord == 1)
        *out = line_numbers(f, f->x);
    else {
        *out = v_vector(r->a, (int32_t)f->n); /* of each node, as save and plot need it */
        for (int64_t k = 0; k < f->n; k++)
            out->num.d[k] = f->ux[coord][coord ? k / f->m[0] : k % f->m[0]];
    }
    return true;
}

static value pairs(arena *a, int n)
{
    value v = { .kind = V_LIST };
    v.list.at = arena_array(a, value, n ? n : 1);
    v.list.n = (size_t)n;
    for (int k = 0; k < n; k++)
        v.list.at[k] = v_vector(a, 2);
    return v;
}

static value contact_set(const field_result *f, arena *a)
{
    if (f->fp->ncoord == 2) {
        value v = v_vector(a, f->nzone);
        for (int k = 0; k < f->nzone; k++)
            v.num.d[k] = f->zone[k].a;
        return v;
    }
    value v = pairs(a, f->nzone);
    for (int k = 0; k < f->nzone; k++)
        v.list.at[k].num.d[0] = f->zone[k].a, v.list.at[k].num.d[1] = f->zone[k].b;
    return v;
}

static value point_forces(const field_result *f, arena *a)
{
    value v = pairs(a, f->npoint);
    for (int k = 0; k < f->npoint; k++)
        v.list.at[k].num.d[0] = f->point[k].x, v.list.at[k].num.d[1] = f->point[k].force;
    return v;
}

static value numbers(const double *x, int n, arena *a)
{
    value v = v_vector(a, n);
    if (n)
        memcpy(v.num.d, x, (size_t)n * sizeof *x);
    return v;
}

look field_name(const run *r, evaluator *ev, sym name, span at, value *out)
{
    const field_result *f = field_of(r);
    if (!f)
        return LOOK_NO;
    if (result_find(OF_RUN, name) == RUN_error) {
        if (isnan(f->error)) {
            diag_error(ev->d, DIAG_NOT_SUPPORTED, at, "this run has no estimate of its error: %s",
                       f->error_why);
            *out = v_error();
        } else
            *out = v_num(f->error);
        return LOOK_YES;
    }
    if (result_find(OF_RUN, name) == RUN_energy) {
        *out = v_num(f->energy);
        return LOOK_YES;
    }
    switch (result_find(OF_FIELD, name)) {
    case FIELD_contact_set:
        *out = contact_set(f, ev->a);
        return LOOK_YES;
    case FIELD_point_forces:
        *out = point_forces(f, ev->a);
        return LOOK_YES;
    case FIELD_complementarity:
        *out = v_num(f->complementarity);
        return LOOK_YES;
    case FIELD_iterations:
        *out = f->ngrid ? numbers(f->grid_steps, f->ngrid, ev->a) : v_num(f->iterations);
        return LOOK_YES;
    case FIELD_updates:
        *out = numbers(f->update, f->nupdate, ev->a);
        return LOOK_YES;
    case FIELD_matching:
        *out = numbers(f->matching, f->nmatching, ev->a);
        return LOOK_YES;
    case FIELD_reaction:
        if (!f->reaction)
            return LOOK_NO;
        *out = f->fp->ncoord == 1 ? line_numbers(f, f->reaction) : numbers(f->reaction, (int)f->n, ev->a);
        return LOOK_YES;
    default:
        return LOOK_NO;
    }
}

value call_pieces(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n)
{
    (void)in;
    (void)n;
    const field_result *f = arg[0].kind == V_SERIES && arg[0].series.ops == &line_ops ? arg[0].series.of
                                                                                      : NULL;
    if (!f || !f->npiece || arg[0].series.order) {
        diag *e = diag_error(ev->d, DIAG_NOT_SUPPORTED, call->at,
                             "'pieces' takes a field that was solved by vim");
        diag_hint(ev->d, e,
                  "run … with vim(iterations = 4), then pieces(u)[1][3] is the coefficient of x^2 on the "
                  "first piece");
        return v_error();
    }
    value v = { .kind = V_LIST };
    v.list.at = arena_array(ev->a, value, f->npiece);
    v.list.n = (size_t)f->npiece;
    for (int k = 0; k < f->npiece; k++) {
        const field_piece *p = &f->piece[k];
        v.list.at[k] = v_vector(ev->a, p->n);
        cheb_powers(p->c[arg[0].series.column], p->n, p->a, p->b, v.list.at[k].num.d);
    }
    return v;
}

const char *line_coordinate(const value *v)
{
    return v->kind == V_SERIES && v->series.ops == &line_ops
               ? ((const field_result *)v->series.of)->fp->coord[0]
               : NULL;
}

enum { BARS = 40 };

void spark_put(text *t, const value *v, double lo, double hi)
{
    static const char *const bar[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    int64_t n = v->series.n;
    for (int b = 0; b < BARS && isfinite(hi - lo); b++) {
        double y = v->series.y[(n - 1) * b / (BARS - 1) * v->series.stride];
        int level = hi > lo && isfinite(y) ? (int)whole_clamp((y - lo) / (hi - lo) * 7.999, 0, 7) : 0;
        text_puts(t, bar[level]);
    }
    text_putc(t, '\n');
}

bool field_show(session *s, text *t, const value *v)
{
    if (v->kind != V_SERIES || v->series.ops != &line_ops)
        return false;
    const field_result *f = v->series.of;
    double lo = INFINITY, hi = -INFINITY;
    for (int64_t k = 0; k < v->series.n; k++) {
        double y = v->series.y[k * v->series.stride];
        lo = fmin(lo, y);
        hi = fmax(hi, y);
    }
    if (session_is(s, OPTION_INTERACTIVE) && !s->now.experiment)
        spark_put(t, v, lo, hi);
    text_printf(t, "field %s%.*s, %s = %g to %g, values from %g to %g", f->fp->name[v->series.column],
                v->series.order, "''''''''", f->fp->coord[0], f->x[0], f->x[f->n - 1], lo, hi);
    if (!f->npiece) {
        text_printf(t, " at %lld nodes", (long long)f->n);
        return true;
    }
    text_putc(t, '\n');
    field_formulas(t, f, v->series.column, v->series.order);
    if (t->n && t->at[t->n - 1] == '\n')
        t->at[--t->n] = 0;
    return true;
}

int field_members(const value *v, const char *out[4])
{
    const plane_view *p = v->kind == V_OBJECT && v->object.in->find == plane_find
                              ? (const plane_view *)v->object.in
                              : NULL;
    if (!p || p->what != VIEW_DERIVATIVE)
        return 0;
    out[0] = p->f->fp->coord[0];
    out[1] = p->f->fp->coord[1];
    out[2] = "grad";
    out[3] = "laplacian";
    return 4;
}

/* ---- tables ---- */
bool field_table(session *s, const char *name, const value *v, put_column put, void *ud)
{
    int field;
    const field_result *f = value_plane(v, &field);
    bool line = v->kind == V_SERIES && v->series.ops == &line_ops;
    if (!f && !line)
        return false;
    if (line)
        f = v->series.of;
    for (int c = 0; c < f->fp->ncoord; c++) {
        value x = line ? line_numbers(f, f->x) : v_vector(s->tmp, (int32_t)f->n);
        for (int64_t k = 0; !line && k < f->n; k++)
            x.num.d[k] = f->ux[c][c ? k / f->m[0] : k % f->m[0]];
        put(ud, f->fp->coord[c], &x, 0);
    }
    put(ud, name, v, 0);
    if (line ? v->series.order : f->fp->nfield > 1)
        return true;
    value y = f->reaction && line ? line_numbers(f, f->reaction)
              : f->reaction       ? numbers(f->reaction, (int)f->n, s->tmp)
                                  : v_error();
    if (f->reaction)
        put(ud, "reaction", &y, 0);
    if (!f->touch)
        return true;
    y = v_vector(s->tmp, (int32_t)f->n);
    for (int64_t k = 0; k < f->n; k++)
        y.num.d[k] = f->touch[k];
    put(ud, "contact", &y, 0);
    return true;
}

const double *field_obstacle_at(const run *r, const value *u, int k, arena *a)
{
    if (u->kind != V_SERIES || u->series.ops != &line_ops || u->series.order ||
        u->series.of != (const void *)r->r->field)
        return NULL;
    const field_result *f = u->series.of;
    const field_work w = { .fp = f->fp, .p = r->r->prog, .r = r->r, .a = a };
    for (int i = 0; i < f->fp->nobst; i++) {
        if (f->fp->obst[i].field != u->series.column || k-- > 0)
            continue;
        double *psi = arena_array(a, double, f->n ? f->n : 1);
        kernel_points(&w, &f->fp->obst[i].psi, f->x, f->n, psi);
        return psi;
    }
    return NULL;
}

/* ---- VTK ---- */
static void vtk_numbers(outfile *to, arena *a, const char *name, const double *x, const uint8_t *bits,
                        int64_t n, int64_t stride)
{
    arena_pos mark = arena_mark(a);
    text t = { .a = a };
    text_printf(&t, "SCALARS %s double 1\nLOOKUP_TABLE default\n", name);
    for (int64_t k = 0; k < n; k++) {
        if (bits)
            text_printf(&t, "%d", bits[k]);
        else
            text_num(&t, x[k * stride]);
        text_putc(&t, '\n');
        if (t.n < 1 << 16)
            continue;
        outfile_put(to, t.at, t.n);
        t.n = 0;
    }
    if (t.n)
        outfile_put(to, t.at, t.n);
    arena_release(a, mark);
}

bool field_save_vtk(session *s, const value *v, outfile *to)
{
    int field;
    const field_result *f = value_plane(v, &field);
    if (!f)
        return false;
    text t = { .a = s->tmp };
    text_printf(
        &t, "# vtk DataFile Version 3.0\n%s\nASCII\nDATASET STRUCTURED_POINTS\nDIMENSIONS %d %d 1\nORIGIN ",
        f->fp->name[field], f->m[0], f->m[1]);
    text_num(&t, f->lo[0]);
    text_putc(&t, ' ');
    text_num(&t, f->lo[1]);
    text_puts(&t, " 0\nSPACING ");
    text_num(&t, (f->hi[0] - f->lo[0]) / (f->m[0] - 1));
    text_putc(&t, ' ');
    text_num(&t, (f->hi[1] - f->lo[1]) / (f->m[1] - 1));
    text_printf(&t, " 1\nPOINT_DATA %lld\n", (long long)f->n);
    outfile_put(to, t.at, t.n);
    vtk_numbers(to, s->tmp, f->fp->name[field], f->u + field, NULL, f->n, f->fp->nfield);
    if (f->reaction)
        vtk_numbers(to, s->tmp, "reaction", f->reaction, NULL, f->n, 1);
    if (f->touch)
        vtk_numbers(to, s->tmp, "contact", NULL, f->touch, f->n, 1);
    return true;
}

void field_summary(const run *r, text *t)
{
    const results *x = r->r;
    text_printf(t, "%s: %s%s, ", x->prog->model, r->with->name, r->chosen ? " (chosen)" : "");
    text_printf(t, "%lld %s%s, residual %.3g, %.3g s\n", (long long)x->count.steps,
                r->r->field->npiece ? "iteration" : "cell", x->count.steps == 1 ? "" : "s", x->residual,
                x->seconds);
    text_puts(t, x->field->report);
}
