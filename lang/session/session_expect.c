/* session_expect: measures and expectations, and the JSON object that reports a run with them. */
#include <math.h>
#include <string.h>
#include "session.h"

/* ---- measures ---- */

static void measure_one(session *s, const ast *bind)
{
    s->now.draw_name = bind->name;
    s->now.drawn = 0;
    value v = session_eval(s, bind->kid[0]);
    text t = { .a = s->tmp };
    session_set(s, bind->name, &v);
    if (v.kind == V_ERROR)
        return;
    s->rec.open = true;
    *vec_push(s->keep, &s->rec.measures) = (measured){ bind->name, session_copy(s, s->keep, &v) };
    if (s->now.experiment || session_is(s, OPTION_JSON) || session_is(s, OPTION_QUIET))
        return;
    text_printf(&t, "%s = ", bind->name);
    value_show(s, &t, &v);
    text_putc(&t, '\n');
    session_out(s, &t);
}

void measure_statement(session *s, const ast *e)
{
    for (uint32_t k = 0; k < e->kid[0]->n; k++)
        measure_one(s, e->kid[0]->kid[k]);
}

/* ---- expectations ---- */

/* what was compared: with what, how far apart they are, how far they may be */
typedef struct {
    bool sides, close;
    value a, b;
    double off, bound;
} comparison;

static bool largest(session *s, const value *v, double *out)
{
    const double *t, *y;
    int64_t n, stride;
    scan rest = { .s = s };
    *out = 0;
    if (!value_samples(s, v, &t, &y, &n, &stride))
        return false;
    for (int64_t k = 0; k < n; k++) {
        double x = fabs(y[k * stride]);
        if (!(x <= *out))
            *out = x; /* nan stays */
        scan_pass(&rest, stride * (int64_t)sizeof x);
        if (isnan(x))
            return true;
    }
    return true;
}

static bool is_word_call(const ast *e, const char *word)
{
    return e->kind == AST_CALL && e->n == 2 && e->kid[0]->kind == AST_NAME && !strcmp(e->kid[0]->name, word);
}

/* the unit of what is compared, where it has one */
static dim unit_of(const value *v)
{
    return v->kind == V_NUM ? v->num.unit : v->kind == V_SERIES ? v->series.unit : dim_any();
}

/* abs(x), rel(x) or a bare number; rel is of the right side, abs has the unit of both */
static bool bound_read(session *s, const ast *e, const value *b, span at, comparison *c)
{
    bool rel = is_word_call(e, "rel"), word = rel || is_word_call(e, "abs");
    value v = session_eval(s, word ? e->kid[1] : e);
    double x, size = 1;
    if (v.kind == V_ERROR)
        return false;
    if (v.kind != V_NUM || !v_scalar(&v, &x) || !(x >= 0)) {
        diag_error(s->d, DIAG_OPTION_VALUE, e->at,
                   "after 'within' comes abs(x), rel(x) or a number that is not negative");
        return false;
    }
    dim fits = rel ? dim_none() : dim_known(unit_of(&c->a), unit_of(&c->b));
    if (!eval_same_unit(&s->ev, fits, v.num.unit, "this bound has a different dimension from the difference",
                        e->at))
        return false;
    if (rel && !largest(s, b, &size)) {
        diag_error(s->d, DIAG_TYPE, at, "a relative bound needs numbers");
        return false;
    }
    c->bound = x * size;
    return true;
}

static bool expect_close(session *s, const ast *cond, const ast *within, comparison *c, bool *ok)
{
    if (cond->kind != AST_BINARY || cond->op != OP_EQ) {
        diag *e = diag_error(s->d, DIAG_TYPE, cond->at, "'within' goes with ==");
        diag_hint(s->d, e, "write expect a == b within abs(x)");
        return false;
    }
    c->sides = c->close = true;
    c->a = session_eval(s, cond->kid[0]);
    c->b = session_eval(s, cond->kid[1]);
    if (!eval_same_unit(&s->ev, unit_of(&c->a), unit_of(&c->b),
                        "the two sides of == have different dimensions", cond->at))
        return false;
    value d = eval_op(&s->ev, OP_SUB, &c->a, &c->b, NULL, cond->at);
    if (d.kind == V_ERROR || !bound_read(s, within, &c->b, cond->kid[1]->at, c))
        return false;
    if (!largest(s, &d, &c->off)) {
        diag_error(s->d, DIAG_TYPE, cond->at, "numbers are compared here, not %s",
                   v_kind_text(s->tmp, &c->a));
        return false;
    }
    *ok = c->off <= c->bound;
    return true;
}

static bool is_comparison(const ast *e)
{
    return e->kind == AST_BINARY && op_unit_rule(e->op) == UNIT_SAMEB;
}

static bool expect_plain(session *s, const ast *cond, comparison *c, bool *ok)
{
    double x;
    if (is_comparison(cond)) {
        c->sides = true;
        c->a = session_eval(s, cond->kid[0]);
        c->b = session_eval(s, cond->kid[1]);
    }
    value v = c->sides ? eval_op(&s->ev, cond->op, &c->a, &c->b, NULL, cond->at) : session_eval(s, cond);
    if (v.kind == V_ERROR)
        return false;
    if (v.kind != V_BOOL || !v_scalar(&v, &x)) {
        diag_error(s->d, DIAG_TYPE, cond->at, "a condition is needed here, not %s", v_kind_text(s->tmp, &v));
        return false;
    }
    if (!c->sides)
        c->a = v;
    *ok = x != 0;
    return true;
}

static void failed_json(session *s, const ast *e, const char *message, text *t)
{
    size_t line, col;
    span_place(s->d, e->at, &line, &col, NULL, NULL);
    text_puts(t, "{\"file\":");
    const char *name = s->d->sources.at[e->at.file]->name;
    text_json_str(t, name, strlen(name));
    text_printf(
        t, ",\"line\":%zu,\"column\":%zu,\"severity\":\"error\",\"code\":\"expectation\",\"message\":", line,
        col);
    text_json_str(t, message, strlen(message));
    text_puts(t, ",\"hint\":null,\"related\":[]}\n");
}

static const char *failed_message(session *s, const ast *e, const char *what, const comparison *c)
{
    text t = { .a = s->tmp };
    text_printf(&t, "expectation failed: %s", what);
    if (e->text)
        text_printf(&t, "  \"%.*s\"", (int)e->len, e->text);
    if (c->sides) {
        text_puts(&t, "\n    left ");
        value_show(s, &t, &c->a);
        text_puts(&t, ", right ");
        value_show(s, &t, &c->b);
        if (c->close)
            text_printf(&t, ", difference %.6g, allowed %.6g", c->off, c->bound);
    }
    if (s->now.experiment && s->rec.point.n) {
        text_puts(&t, "\n    at ");
        point_show(s, &t);
    }
    return t.at;
}

static void tell_failed(session *s, const ast *e, const char *what, const comparison *c)
{
    const char *message = failed_message(s, e, what, c);
    text t = { .a = s->tmp };
    size_t line, col;
    span_place(s->d, e->at, &line, &col, NULL, NULL);
    if (!strcmp(s->option[OPTION_DIAGNOSTICS], "json"))
        failed_json(s, e, message, &t);
    else
        text_printf(&t, "%s:%zu:%zu: %s\n", s->d->sources.at[e->at.file]->name, line, col, message);
    session_err(s, &t);
}

void expect_statement(session *s, const ast *e)
{
    const ast *cond = e->kid[0], *within = e->n > 1 ? e->kid[1] : NULL;
    comparison c = { 0 };
    bool ok = false, known = within ? expect_close(s, cond, within, &c, &ok) : expect_plain(s, cond, &c, &ok);
    char *what = span_text(s->d, within ? span_join(cond->at, within->at) : cond->at, s->tmp);
    if (ok)
        s->tally.met++;
    else
        s->tally.missed++;
    if (!ok)
        session_worse(s, CDL_EXPECT);
    if (known && !ok)
        tell_failed(s, e, what, &c);
    s->rec.open = true;
    expectation x = { .text = arena_strdup(s->keep, what), .ok = ok, .has_bound = c.close, .bound = c.bound };
    if (e->text)
        x.label = arena_strndup(s->keep, e->text, e->len);
    if (known) {
        x.v = session_copy(s, s->keep, &c.a);
        if (c.sides && !c.close)
            x.has_bound = v_scalar(&c.b, &x.bound);
    }
    *vec_push(s->keep, &s->rec.expects) = x;
}

/* ---- the JSON object ---- */

static void put_named(text *t, const measured *x, size_t n)
{
    text_putc(t, '{');
    for (size_t k = 0; k < n; k++) {
        if (k)
            text_putc(t, ',');
        text_json_str(t, x[k].name, strlen(x[k].name));
        text_putc(t, ':');
        v_print_json(t, &x[k].v);
    }
    text_putc(t, '}');
}

static void put_word(text *t, const char *w)
{
    if (w)
        text_json_str(t, w, strlen(w));
    else
        text_puts(t, "null");
}

static void put_expectations(text *t, const record *r)
{
    for (size_t k = 0; k < r->expects.n; k++) {
        const expectation *x = &r->expects.at[k];
        text_puts(t, k ? ",{\"text\":" : "{\"text\":");
        put_word(t, x->text);
        text_printf(t, ",\"ok\":%s,\"value\":", x->ok ? "true" : "false");
        if (x->v.kind == V_ERROR)
            text_puts(t, "null");
        else
            v_print_json(t, &x->v);
        text_puts(t, ",\"bound\":");
        if (x->has_bound)
            text_json_num(t, x->bound);
        else
            text_puts(t, "null");
        if (x->label) {
            text_puts(t, ",\"label\":");
            put_word(t, x->label);
        }
        text_putc(t, '}');
    }
}

/* "name":x, */
static void put_number(text *t, const char *name, double x)
{
    text_printf(t, "\"%s\":", name);
    text_json_num(t, x);
    text_putc(t, ',');
}

/* stats: with the members that differ from run to run; otherwise with those in the manifest */
static void record_put(const record *r, text *t, bool stats)
{
    text_puts(t, "{\"model\":");
    put_word(t, r->model);
    text_puts(t, ",\"experiment\":");
    put_word(t, r->experiment);
    text_puts(t, ",\"point\":");
    put_named(t, r->point.at, r->point.n);
    text_puts(t, ",\"backend\":");
    put_word(t, r->backend);
    text_printf(t, ",\"status\":\"%s\",%s\"measures\":", r->failed ? "failed" : "ok",
                r->incomplete ? "\"incomplete\":true," : "");
    put_named(t, r->measures.at, r->measures.n);
    text_puts(t, ",\"expectations\":[");
    put_expectations(t, r);
    text_printf(t, "],\"stats\":{\"steps\":%lld,", (long long)r->steps);
    if (stats)
        put_number(t, "seconds", r->seconds);
    put_number(t, "max_penetration", r->max_penetration);
    put_number(t, "residual", r->residual);
    put_number(t, "power_balance", r->power_balance);
    put_number(t, "drift", r->drift);
    if (r->error > 0)
        put_number(t, "error", r->error);
    if (stats && r->native) {
        text_puts(t, "\"native\":");
        put_word(t, r->native);
        text_putc(t, ',');
    }
    text_printf(t, "\"partly_at_once\":%lld,", (long long)r->partly_at_once);
    text_puts(t, "\"solver\":");
    put_word(t, r->solver);
    text_puts(t, ",\"cut\":");
    put_word(t, r->cut);
    text_printf(t, ",\"at_once\":%lld}", (long long)r->at_once);
    if (!stats && r->ir)
        text_printf(t, ",\"ir\":\"%016llx\"", (unsigned long long)r->ir);
    if (!stats && r->params)
        text_printf(t, ",\"parameters\":{%s}", r->params);
    text_putc(t, '}');
}

void record_flush(session *s)
{
    static const arena_pos empty = { NULL, 0 };
    text t = { .a = s->keep };
    if (s->rec.open && session_is(s, OPTION_JSON)) {
        record_put(&s->rec, &t, true);
        text_putc(&t, '\n');
        session_out(s, &t);
        t.n = 0;
    }
    if (s->rec.open) {
        record_put(&s->rec, &t, false);
        manifest_record(s, t.at, t.n);
    }
    s->rec = (record){ 0 };
    arena_release(s->keep, empty);
}
