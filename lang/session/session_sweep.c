/* session_sweep: experiments.  Sweeps span a grid of points (a second sweep is a product, zip pairs); at each
   point the other statements are executed in order, and one JSON object or one line reports it. */
#include <math.h>
#include <string.h>
#include "base/whole.h"
#include "session.h"
#include "value/bytes.h"

/* ---- sweeps ---- */

/* one sweep: names that change together, and their values */
typedef struct {
    const ast *at;
    value *list;
    size_t names;
    int64_t n;
} axis;
typedef vec(axis) axes;

bool sweep_is_zip(const ast *e)
{
    const ast *v = e->kid[1];
    return v->kind == AST_CALL && v->kid[0]->kind == AST_NAME && !strcmp(v->kid[0]->name, "zip");
}

enum { SWEPT_MAX = 10000000 };

/* the values of one name: a vector, a list, or the whole numbers of a range */
static bool sweep_values(session *s, const ast *e, value *out, int64_t *n)
{
    value v = eval(&s->ev, session_input_scope(s), e);
    double lo, hi;
    if (v.kind == V_ERROR)
        return false;
    if (v.kind == V_RANGE && v_scalar(v.range.lo, &lo) && v_scalar(v.range.hi, &hi) && hi - lo < SWEPT_MAX) {
        *n = whole_clamp(floor(hi - lo), -1, SWEPT_MAX) + 1;
        *out = v_vector(s->a, (int32_t)*n);
        for (int64_t k = 0; k < *n; k++)
            out->num.d[k] = lo + (double)k;
        return true;
    }
    if (v.kind == V_NUM && v.num.rank == 1 && !v.num.r)
        *n = v_count(&v);
    else if (v.kind == V_LIST)
        *n = (int64_t)v.list.n;
    else {
        if (v.kind == V_RANGE)
            diag_error(s->d, DIAG_LIMIT, e->at, "a range that is swept has at most %d values", SWEPT_MAX);
        else
            diag_error(s->d, DIAG_TYPE, e->at, "a sweep runs over a vector, a list or a range, not %s",
                       v_kind_text(s->tmp, &v));
        return false;
    }
    *out = session_copy(s, s->a, &v);
    return true;
}

static value axis_value(const axis *a, size_t name, int64_t k)
{
    const value *v = &a->list[name];
    return v->kind == V_LIST ? v->list.at[k] : v_element(v, (int32_t)k);
}

static bool axis_read(session *s, const ast *e, axis *a)
{
    const ast *names = e->kid[0], *v = e->kid[1];
    bool zip = sweep_is_zip(e);
    *a = (axis){ .at = e, .names = names->n, .list = arena_array(s->a, value, names->n ? names->n : 1) };
    if (zip ? v->n - 1 != names->n : names->n != 1) {
        diag *d = diag_error(s->d, DIAG_ARITY, v->at, "%u names are swept over %u lists", names->n,
                             zip ? v->n - 1 : 1);
        diag_hint(s->d, d, "write sweep a, b in zip(u, v)");
        return false;
    }
    for (uint32_t k = 0; k < names->n; k++) {
        int64_t n;
        if (!sweep_values(s, zip ? v->kid[k + 1] : v, &a->list[k], &n))
            return false;
        if (k && n != a->n) {
            diag_error(s->d, DIAG_SHAPE, v->kid[k + 1]->at,
                       "paired lists are equally long: this one has %lld values, the first %lld",
                       (long long)n, (long long)a->n);
            return false;
        }
        a->n = n;
    }
    return true;
}

static bool axes_read(session *s, const ast *e, axes *all, int64_t *points)
{
    bool good = true;
    *points = 1;
    for (uint32_t k = 0; k < e->n; k++) {
        axis a;
        if (e->kid[k]->kind != AST_SWEEP)
            continue;
        if (!axis_read(s, e->kid[k], &a)) {
            good = false;
            continue;
        }
        *vec_push(s->a, all) = a;
        if (__builtin_mul_overflow(*points, a.n, points) || *points > 100000000) {
            diag_error(s->d, DIAG_LIMIT, e->kid[k]->at, "the experiment has more than 10^8 points");
            return false;
        }
    }
    return good;
}

/* names take their values; the last sweep turns fastest */
static void point_set(session *s, const axes *all, int64_t k)
{
    for (size_t i = all->n; i-- > 0;) {
        const axis *a = &all->at[i];
        for (size_t j = 0; j < a->names; j++)
            table_scope_set(s->now.swept, a->at->kid[0]->kid[j]->name, axis_value(a, j, k % a->n));
        k /= a->n;
    }
    for (size_t i = 0; i < all->n; i++)
        for (size_t j = 0; j < all->at[i].names; j++) {
            sym name = all->at[i].at->kid[0]->kid[j]->name;
            value *v = &s->now.swept->values.at[*map64_get(&s->now.swept->at, sym_key(name))];
            *vec_push(s->keep, &s->rec.point) = (measured){ name, session_copy(s, s->keep, v) };
        }
}

/* the values at a point, exactly */
static void point_values(session *s, const void *of, int64_t k, text *t)
{
    const axes *all = of;
    (void)s;
    for (size_t i = all->n; i-- > 0;) {
        const axis *a = &all->at[i];
        for (size_t j = 0; j < a->names; j++) {
            value v = axis_value(a, j, k % a->n);
            text_printf(t, "%s=", a->at->kid[0]->kid[j]->name);
            v_print(t, &v);
            text_putc(t, '\n');
        }
        k /= a->n;
    }
}

static void point_tell(session *s, int64_t k)
{
    text t = { .a = s->tmp };
    if (session_is(s, OPTION_JSON) || session_is(s, OPTION_QUIET))
        return;
    put_u64(&t, (uint64_t)k);
    point_show(s, &t);
    for (size_t i = 0; i < s->rec.measures.n; i++) {
        text_puts(&t, i ? ", " : s->rec.point.n ? "; " : "");
        text_printf(&t, "%s = ", s->rec.measures.at[i].name);
        value_show(s, &t, &s->rec.measures.at[i].v);
    }
    text_printf(&t, "%s (%.3g s)\n", s->rec.failed ? " failed" : "", s->rec.seconds);
    text_putc(s->now.report, 'L');
    put_bytes(s->now.report, t.at, t.n);
}

/* settings were read before the points */
static bool is_setting(const ast *e)
{
    return e->kind == AST_SWEEP || e->kind == AST_SET;
}

/* crashed: its process ended, and that is all that is known of it */
static void point_run(session *s, const ast *e, const void *of, int64_t k, bool crashed)
{
    const axes *all = of;
    s->rec.open = true;
    s->rec.experiment = e->name;
    s->last_failed = false;
    point_set(s, all, k);
    if (crashed) {
        s->rec.failed = true;
        session_worse(s, CDL_SOLVER);
    }
    for (uint32_t i = 0; i < e->n && !crashed; i++) {
        if (is_setting(e->kid[i]))
            continue;
        arena_pos mark = arena_mark(s->tmp);
        session_execute(s, e->kid[i]);
        session_flush(s);
        arena_release(s->tmp, mark);
    }
    arena_pos mark = arena_mark(s->tmp);
    point_tell(s, k);
    arena_release(s->tmp, mark);
}

static void settings_read(session *s, const ast *e)
{
    s->now.seed = 0;
    for (uint32_t k = 0; k < e->n; k++) {
        const ast *set = e->kid[k];
        int32_t seed;
        if (set->kind != AST_SET)
            continue;
        if (set->kid[0]->kind != AST_NAME || strcmp(set->kid[0]->name, "seed"))
            continue;
        if (!eval_integer(&s->ev, session_input_scope(s), set->kid[1], "a seed", &seed))
            continue;
        s->now.seed = seed;
        s->now.seeded = true;
    }
}

void experiment_statement(session *s, const ast *e)
{
    axes all = { 0 };
    int64_t points;
    if (s->now.experiment) {
        diag_error(s->d, DIAG_UNKNOWN_STATEMENT, e->at, "an experiment is not allowed inside another one");
        return;
    }
    record_flush(s);
    settings_read(s, e);
    if (!axes_read(s, e, &all, &points))
        return;
    s->now.experiment = e;
    s->now.swept = table_scope_new(s->a, NULL);
    point_range range = { .points = points, .run = point_run, .axes = &all, .tell = point_values };
    points_run(s, e, &range);
    s->now.point = 0;
    s->now.draw_name = "";
    tables_finish(s);
    s->now.experiment = NULL;
    s->now.swept = NULL;
    s->last_failed = false;
}
