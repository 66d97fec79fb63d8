/* session_host: functions of a session for code that shows or writes results: labels, the names of the last
   run, values as text, the output folder and the list of its files. */
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "session/session.h"
#include "base/sha256.h"
#include "value/bytes.h"

/* ---- saying ---- */

file_root session_folder(const session *s)
{
    return (file_root){ s->option[OPTION_OUTPUT], session_is(s, OPTION_ALLOW_OUTSIDE) };
}

const char *session_path(session *s, const char *name)
{
    return path_join(s->tmp, s->option[OPTION_OUTPUT], name);
}

/* the output of a point of an experiment goes into its report; errors are shown as they occur */
static void report_say(session *s, char tag, const text *t)
{
    text_putc(s->now.report, tag);
    put_bytes(s->now.report, t->at, t->n);
}

void session_out(session *s, const text *t)
{
    if (!t->n)
        return;
    if (s->now.report) {
        report_say(s, 'o', t);
        return;
    }
    text seen = { .a = s->tmp };
    text_visible(&seen, t->at, t->n);
    if (s->call.out)
        s->call.out(s->call.ud, seen.at, seen.n);
}

void session_err(session *s, const text *t)
{
    text seen = { .a = s->tmp };
    text_visible(&seen, t->at, t->n);
    session_steer(s, &seen);
}

void session_steer(session *s, const text *t)
{
    if (!t->n)
        return;
    if (s->now.report)
        report_say(s, 'e', t);
    if (!s->now.worker && s->call.err)
        s->call.err(s->call.ud, t->at, t->n);
}

void session_note(session *s, const char *fmt, ...)
{
    text said = { .a = s->tmp }, t = { .a = s->tmp };
    va_list ap;
    va_start(ap, fmt);
    text_vprintf(&said, fmt, ap);
    va_end(ap);
    text_puts(&t, "cdl: ");
    text_visible(&t, said.at, said.n);
    text_putc(&t, '\n');
    session_err(s, &t);
}

/* ---- names in force ---- */

typedef struct {
    scope base;
    scope *to;
} link_scope;

static look link_find(scope *sc, evaluator *ev, sym name, span at, value *out)
{
    scope *to = ((link_scope *)sc)->to;
    return to->find(to, ev, name, at, out);
}

static void link_names(scope *sc, near *n)
{
    scope *to = ((link_scope *)sc)->to;
    if (to->names)
        to->names(to, n);
}

static scope *link_to(session *s, scope *to, scope *up)
{
    link_scope *l = arena_make(s->tmp, link_scope);
    *l = (link_scope){ .base = { .up = up, .find = link_find, .names = link_names }, .to = to };
    return &l->base;
}

/* measured names, and before them those of the experiment that is running */
static scope *names_scope(session *s, scope *up)
{
    up = link_to(s, &s->now.measures->base, up);
    return s->now.swept ? link_to(s, &s->now.swept->base, up) : up;
}

scope *session_scope(session *s)
{
    scope *up = link_to(s, &s->main->base, &s->builtins);
    if (s->last)
        up = link_to(s, s->last->top, up);
    return names_scope(s, up);
}

scope *session_input_scope(session *s)
{
    scope *up = &s->builtins;
    if (s->last)
        up = link_to(s, s->last->top, up);
    return names_scope(s, link_to(s, &s->main->base, up));
}

value session_eval(session *s, const ast *e)
{
    return eval(&s->ev, session_scope(s), e);
}

/* ---- showing ---- */

static void series_range(session *s, const value *v, double *lo, double *hi)
{
    scan rest = { .s = s };
    *lo = INFINITY;
    *hi = -INFINITY;
    for (int64_t k = 0; k < v->series.n; k++) {
        double y = v->series.y[k * v->series.stride];
        *lo = fmin(*lo, y);
        *hi = fmax(*hi, y);
        scan_pass(&rest, v->series.stride * (int64_t)sizeof y);
    }
}

void value_show(session *s, text *t, const value *v)
{
    if (view_show(t, v) || field_show(s, t, v))
        return;
    if (v->kind == V_LIST) {
        for (size_t k = 0; k < v->list.n; k++) {
            text_puts(t, k ? ", " : "[");
            value_show(s, t, &v->list.at[k]);
        }
        text_puts(t, v->list.n ? "]" : "[]");
        return;
    }
    if (v->kind != V_SERIES || v->series.n <= 12) {
        v_print(t, v);
        return;
    }
    double lo, hi;
    series_range(s, v, &lo, &hi);
    if (session_is(s, OPTION_INTERACTIVE) && !s->now.experiment)
        spark_put(t, v, lo, hi);
    text_printf(t, "series of %lld samples, t = %g to %g, values from %g to %g", (long long)v->series.n,
                v->series.t[0], v->series.t[v->series.n - 1], lo, hi);
}

void point_show(session *s, text *t)
{
    for (size_t k = 0; k < s->rec.point.n; k++) {
        text_printf(t, "%s%s = ", k ? ", " : "", s->rec.point.at[k].name);
        value_show(s, t, &s->rec.point.at[k].v);
    }
}

/* ---- files ---- */

static int hash_stop(void *b)
{
    return budget_cuts(b);
}

void manifest_file(session *s, const char *path, const char *kind)
{
    char hex[65];
    struct stat st;
    int error;
    file_root out = session_folder(s);
    int fd = place_open(&out, path, O_RDONLY | O_NONBLOCK, &error);
    if (fd < 0)
        return;
    error = fstat(fd, &st) || !S_ISREG(st.st_mode) || sha256_fd(fd, hex, hash_stop, &s->budget);
    close(fd);
    arena_tick(s->tmp, st.st_size);
    if (error)
        return;
    size_t k = 0;
    while (k < s->tally.made.n && strcmp(s->tally.made.at[k].path, path))
        k++;
    made_file *m = k < s->tally.made.n ? &s->tally.made.at[k] : vec_push(s->a, &s->tally.made);
    *m = (made_file){ .path = arena_strdup(s->a, path), .kind = kind, .bytes = (int64_t)st.st_size };
    memcpy(m->sha, hex, sizeof hex);
    if (s->embed.written && !s->now.worker)
        s->embed.written(s->embed.written_ud, session_path(s, path), kind);
}
