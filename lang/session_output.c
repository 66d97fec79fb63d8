/* session_output: save and plot.  Numbers go to a CSV file; in an experiment its rows come from all points, behind
   columns of the swept
   names.  A plot is such a file, a gnuplot script beside it, and the picture when gnuplot is there. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "session.h"

/* ---- the block { key = value } ---- */

typedef struct { const char *key; bool save, plot; value_kind kind; const char *what; } key_row;
static const key_row key_rows[] = {
    { "file",  true,  true,  V_STRING, "a file name in quotes" },
    { "every", true,  false, V_NUM,    "a time" },
    { "title", false, true,  V_STRING, "text in quotes" },
    { "log",   false, true,  V_STRING, "\"x\", \"y\" or \"xy\"" },
    { "by",    false, true,  V_NUM,    "the name of a sweep" },
};
enum { KEYS = sizeof key_rows / sizeof *key_rows };

static const ast *block_of(const ast *e) { return e->kind == AST_PLOT ? e->kid[2] : e->kid[1]; }

static const key_row *key_find(const ast *e, const char *name)
{
    for (int k = 0; k < KEYS; k++)
        if (!strcmp(key_rows[k].key, name) && (e->kind == AST_PLOT ? key_rows[k].plot : key_rows[k].save))
            return &key_rows[k];
    return NULL;
}

static void key_unknown(session *s, const ast *e, const ast *key)
{
    const char *name = key->name ? key->name : span_text(s->d, key->at, s->tmp),
        *stat_name = e->kind == AST_PLOT ? "plot" : "save";
    diag *d = diag_error(s->d, DIAG_UNKNOWN_ATTRIBUTE, key->at, "%s has no attribute '%s'", stat_name, name);
    near n = near_to(name);
    for (int k = 0; k < KEYS; k++) if (key_find(e, key_rows[k].key)) near_try(&n, key_rows[k].key);
    diag_near(s->d, d, &n);
}

/* the value of a key; V_ERROR when it is absent or was reported */
static value key_value(session *s, const ast *e, const char *name)
{
    const ast *b = block_of(e);
    for (uint32_t k = 0; b && k < b->n; k++) {
        const ast *set = b->kid[k];
        if (set->kind != AST_SET || set->kid[0]->kind != AST_NAME || strcmp(set->kid[0]->name, name)) continue;
        value v = session_eval(s, set->kid[1]);
        const key_row *row = key_find(e, name);
        if (v.kind == V_ERROR || (v.kind == row->kind && (v.kind != V_NUM || v_is_scalar(&v)))) return v;
        diag_error(s->d, DIAG_OPTION_VALUE, set->kid[1]->at, "'%s' is %s, not %s", name, row->what,
                   v_kind_text(s->tmp, &v));
    }
    return v_error();
}

static const char *picture_kind(const char *file)
{
    const char *dot = strrchr(file, '.');
    return dot && (!strcmp(dot, ".svg") || !strcmp(dot, ".png") || !strcmp(dot, ".pdf")) ? dot + 1 : NULL;
}

static void literal_check(session *s, const ast *e, const ast *set)
{
    const ast *v = set->kid[1];
    if (v->kind != AST_STR) return;
    const char *name = set->kid[0]->name, *given = arena_strndup(s->tmp, v->text, v->len);
    if (e->kind == AST_PLOT && !strcmp(name, "file") && !picture_kind(given))
        diag_error(s->d, DIAG_OPTION_VALUE, v->at, "a picture is a .svg, .png or .pdf file");
    if (!strcmp(name, "log") && strcmp(given, "x") && strcmp(given, "y") && strcmp(given, "xy"))
        diag_error(s->d, DIAG_OPTION_VALUE, v->at, "'log' is \"x\", \"y\" or \"xy\"");
    if (!strcmp(name, "every")) diag_error(s->d, DIAG_OPTION_VALUE, v->at, "'every' is a time, not text");
}

void output_check(session *s, const ast *e)
{
    const ast *b = block_of(e);
    for (uint32_t k = 0; b && k < b->n; k++) {
        const ast *set = b->kid[k];
        if (set->kind != AST_SET) continue;
        if (set->kid[0]->kind != AST_NAME || !key_find(e, set->kid[0]->name)) key_unknown(s, e, set->kid[0]);
        else literal_check(s, e, set);
    }
}

/* ---- columns ---- */

typedef struct { const char *name; value v; const double *t, *y; int64_t n, stride; } column;
typedef struct { session *s; const ast *at; const char *name; vec(column) list; bool bad; } columns;

static void column_put(void *ud, const char *index, const value *part)
{
    columns *c = ud;
    column x = { .name = arena_printf(c->s->tmp, "%s%s", c->name, index), .v = *part };
    if (value_samples(c->s, part, &x.t, &x.y, &x.n, &x.stride)) { *vec_push(c->s->tmp, &c->list) = x; return; }
    c->bad = true;
    if (part->kind == V_ERROR) return;
    diag_error(c->s->d, DIAG_TYPE, c->at->at, "a series or numbers are needed here, not %s",
               v_kind_text(c->s->tmp, part));
}

static void column_read(columns *c, const ast *e)
{
    value v = session_eval(c->s, e);
    c->at = e;
    c->name = span_text(c->s->d, e->at, c->s->tmp);
    value_parts(c->s, &v, "", column_put, c);
}

/* how many rows, and whether times belong to them: columns of one number are repeated, all others are equally long */
static bool columns_fit(columns *c, int64_t *rows, bool *series)
{
    *rows = 1;
    *series = false;
    const column *longest = NULL;
    for (size_t k = 0; k < c->list.n; k++) {
        const column *x = &c->list.at[k];
        *series = *series || x->v.kind == V_SERIES;
        bool single = x->v.kind != V_SERIES && x->n == 1;
        if (single) continue;
        if (longest && longest->n != x->n) {
            diag_error(c->s->d, DIAG_SHAPE, c->at->at,
                       "'%s' has %lld numbers, '%s' has %lld: they do not fit beside each other", longest->name,
                       (long long)longest->n, x->name, (long long)x->n);
            return false;
        }
        longest = x;
        *rows = x->n;
    }
    return true;
}

static double column_at(const column *x, int64_t k)
{
    return x->y[x->n == 1 && x->v.kind != V_SERIES ? 0 : k * x->stride];
}

static double column_at_time(const column *x, double t)
{
    if (x->v.kind != V_SERIES) return x->y[0];
    return x->y == x->t ? t : value_at(&x->v, t);
}

/* ---- tables ---- */

static const char *name_of_run(const session *s)
{
    return s->experiment ? s->experiment->name : s->last ? s->last->of->p->model : "result";
}

static table *table_find(session *s, const ast *e, const char *path)
{
    for (table *t = s->tables; t; t = t->next) if (t->at == e) return t;
    table *t = arena_make(s->a, table);
    t->at = e;
    t->path = path;
    t->next = s->tables;
    t->file = outfile_open(s->a, path);
    s->tables = t;
    return t;
}

/* a block of rows: what a point gives to the table of a statement */
typedef struct block {
    const char *path, *shown, *head;            /* files; the first line */
    vec(const char *) names, labels;
    size_t ncol;
    bool series;
    int64_t rows;
    curve of;                                   /* plot: rows that are a curve of their own; title NULL: none */
    const char *title, *log, *by, *marks, *shades;
    text data;
} block;

/* swept names stand before the columns, unless they are among them */
static bool is_listed(const columns *c, const char *name)
{
    for (size_t k = 0; k < c->list.n; k++) if (!strcmp(c->list.at[k].name, name)) return true;
    return false;
}

static size_t lead_columns(session *s, const columns *c, double *x, const char **name)
{
    size_t n = 0;
    for (size_t k = 0; s->experiment && k < s->rec.point.n; k++) {
        const measured *p = &s->rec.point.at[k];
        double d;
        if (is_listed(c, p->name) || !v_scalar(&p->v, &d)) continue;
        if (x) x[n] = d;
        if (name) name[n] = p->name;
        n++;
    }
    return n;
}

/* a name with the unit its numbers are in */
static const char *column_label(session *s, const column *x)
{
    dim u = x->v.kind == V_SERIES ? x->v.series.unit : x->v.kind == V_NUM ? x->v.num.unit : dim_any();
    if (x->y && x->y == x->t && !(s->last && s->last->r->field)) { u = dim_none(); u.e[2] = DIM_ONE; }
    if (u.any || dim_equal(u, dim_none())) return x->name;
    text t = { .a = s->tmp };
    text_printf(&t, "%s [", x->name);
    dim_text(&t, u);
    text_putc(&t, ']');
    return t.at;
}

static void block_head(session *s, block *b, const columns *c, const char *const *lead, size_t nlead)
{
    text h = { .a = s->tmp };
    for (size_t k = 0; k < nlead + c->list.n; k++) {
        const char *name = k < nlead ? lead[k] : c->list.at[k - nlead].name;
        if (k) text_putc(&h, ',');
        csv_field(&h, name, strlen(name));
        *vec_push(s->tmp, &b->names) = name;
        *vec_push(s->tmp, &b->labels) = k < nlead ? name : column_label(s, &c->list.at[k - nlead]);
    }
    text_putc(&h, '\n');
    b->head = h.at;
    b->ncol = c->list.n;
}

static void block_rows(block *b, const columns *c, int64_t rows, double every, double *row, size_t nlead)
{
    const column *clock = NULL;
    for (size_t k = 0; k < c->list.n; k++) if (c->list.at[k].t) clock = &c->list.at[k];
    double begin = clock && clock->n ? clock->t[0] : 0, end = clock && clock->n ? clock->t[clock->n - 1] : 0;
    if (every > 0 && clock) rows = (int64_t)floor((end - begin) / every * (1 + 1e-12)) + 1;
    for (int64_t k = 0; k < rows; k++) {
        double time = fmin(begin + (double)k * every, end);
        for (size_t i = 0; i < c->list.n; i++)
            row[nlead + i] = every > 0 && clock ? column_at_time(&c->list.at[i], time) : column_at(&c->list.at[i], k);
        csv_row(&b->data, row, nlead + c->list.n);
    }
    b->rows = rows;
}

/* ---- blocks on their way ---- */

static void put_text(text *t, const char *p) { put_bytes(t, p ? p : "", p ? strlen(p) : 0); }

static void block_put(text *t, const block *b)
{
    const char *words[] = { b->path, b->shown, b->head, b->of.title, b->title, b->log, b->by, b->marks, b->shades };
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) put_text(t, words[k]);
    put_u64(t, b->ncol); put_u64(t, b->series); put_u64(t, (uint64_t)b->rows); put_u64(t, b->of.column);
    put_bytes(t, (const char *)&b->of.is, sizeof b->of.is);
    put_u64(t, b->names.n);
    for (size_t k = 0; k < b->names.n; k++) { put_text(t, b->names.at[k]); put_text(t, b->labels.at[k]); }
    put_bytes(t, b->data.at, b->data.n);
}

static bool block_get(session *s, byte_reader r, block *b)
{
    const char **words[] = { &b->path, &b->shown, &b->head, &b->of.title, &b->title, &b->log, &b->by, &b->marks, &b->shades }, *p;
    uint64_t x[4], names;
    size_t n;
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) *words[k] = get_text(&r, s->a);
    for (int k = 0; k < 4; k++) if (!get_u64(&r, &x[k])) return false;
    b->ncol = (size_t)x[0]; b->series = x[1] != 0; b->rows = (int64_t)x[2]; b->of.column = (size_t)x[3];
    if (!get_bytes(&r, &p, &n) || n != sizeof b->of.is || !get_u64(&r, &names)) return false;
    memcpy(&b->of.is, p, n);
    for (uint64_t k = 0; k < names && r.p < r.end; k++) {
        *vec_push(s->tmp, &b->names) = get_text(&r, s->a);
        *vec_push(s->tmp, &b->labels) = get_text(&r, s->a);
    }
    if (!get_bytes(&r, &p, &n) || b->ncol > b->names.n) return false;
    b->data.at = (char *)(uintptr_t)p;
    b->data.n = n;
    return true;
}

static void table_begin(session *s, table *t, const block *b)
{
    outfile_put(t->file, b->head, strlen(b->head));
    for (size_t k = 0; k < b->names.n; k++) {
        *vec_push(s->a, &t->header) = b->names.at[k];
        *vec_push(s->a, &t->labels) = b->labels.at[k];
    }
    t->ncol = b->ncol;
    t->shown = b->shown;
    t->series = b->series;
    t->title = b->title; t->log = b->log; t->by = b->by; t->marks = b->marks; t->shades = b->shades;
}

static void curve_add(session *s, table *t, const curve *c)
{
    for (size_t k = 0; k < t->curves.n; k++)
        if (t->curves.at[k].column == c->column && t->curves.at[k].is == c->is) return;
    *vec_push(s->a, &t->curves) = *c;
}

void table_take(session *s, const ast *e, const char *bytes, size_t n)
{
    arena_pos mark = arena_mark(s->tmp);
    block b = { 0 };
    if (block_get(s, (byte_reader){ bytes, bytes + n }, &b)) {
        table *t = table_find(s, e, b.path);
        if (!t->header.n) table_begin(s, t, &b);
        if (t->ncol != b.ncol)
            diag_error(s->d, DIAG_SHAPE, e->at, "the points of the experiment give different numbers of columns");
        else {
            outfile_put(t->file, b.data.at, b.data.n);
            t->rows += b.rows;
            if (*b.of.title) curve_add(s, t, &b.of);
        }
    }
    arena_release(s->tmp, mark);
}

/* in an experiment it goes into the report of the point, with the number of the statement */
static void block_send(session *s, const ast *e, const block *b)
{
    text t = { .a = s->tmp };
    uint64_t at = 0;
    while (s->report && at < s->experiment->n && s->experiment->kid[at] != e) at++;
    if (s->report) put_u64(&t, at);
    block_put(&t, b);
    if (!s->report) { table_take(s, e, t.at, t.n); return; }
    text_putc(s->report, 'T');
    put_bytes(s->report, t.at, t.n);
}

static const char *output_path(session *s, const ast *e, const char *ending)
{
    value v = key_value(s, e, "file");
    const char *name = v.kind == V_STRING ? arena_strndup(s->a, v.str.at, v.str.len)
        : arena_printf(s->a, "%s%s", name_of_run(s), ending);
    return path_join(s->a, s->option[OPTION_OUTPUT], name);
}

/* the rows that this point adds to the table of the statement; false after an error */
static bool block_make(session *s, columns *c, double every, bool number_blocks, block *b)
{
    int64_t rows;
    bool series;
    if (c->bad || !columns_fit(c, &rows, &series)) return false;
    size_t most = s->rec.point.n + 1;
    double *row = arena_array(s->tmp, double, most + c->list.n);
    const char **lead = arena_array(s->tmp, const char *, most);
    size_t nlead = 0;
    if (number_blocks && series && s->experiment) { lead[0] = "point"; row[0] = (double)s->point + 1; nlead = 1; }
    nlead += lead_columns(s, c, row + nlead, lead + nlead);
    b->data.a = s->tmp;
    b->series = series;
    block_head(s, b, c, lead, nlead);
    block_rows(b, c, rows, every, row, nlead);
    return true;
}

/* a field in the plane, with its reaction and where it touches */
static void save_vtk(session *s, const ast *e, const char *path)
{
    int error = 0;
    value v = session_eval(s, e->kid[0]->kid[0]);
    if (v.kind == V_ERROR) return;
    if (e->kid[0]->n != 1 || !field_save_vtk(s, &v, path, &error)) diag_error(s->d, DIAG_TYPE, e->at, "a .vtk file holds one field in the plane: save u { file = \"u.vtk\" }");
    else if (error) diag_error(s->d, DIAG_IO, e->at, "cannot write '%s': %s", path, error_text(s->tmp, error));
    else { manifest_file(s, path, "data"); session_note(s, "wrote %s", path); }
}

/* a rod by name: its nodes, or a picture */
static bool save_rod(session *s, const ast *e, const char *path)
{
    int error = 0;
    const ast *what = e->kid[0]->n == 1 ? e->kid[0]->kid[0] : NULL;
    if (!what || (what->kind != AST_NAME && what->kind != AST_MEMBER) || !s->last || !s->last->r->rod) return false;
    value v = session_eval(s, what);
    if (v.kind != V_OBJECT || !rod_save(s, &v, path, &error)) return v.kind == V_ERROR;
    if (error) diag_error(s->d, DIAG_IO, e->at, "cannot write '%s': %s", path, error_text(s->tmp, error));
    else { manifest_file(s, path, "data"); session_note(s, "wrote %s", path); }
    return true;
}

void save_statement(session *s, const ast *e)
{
    columns c = { .s = s, .at = e };
    double every = 0;
    value v = key_value(s, e, "every");
    if (v.kind == V_NUM && (!v_scalar(&v, &every) || !(every > 0))) {
        diag_error(s->d, DIAG_OPTION_VALUE, block_of(e)->at, "'every' is a positive time");
        return;
    }
    const char *path = output_path(s, e, ".csv");
    size_t length = strlen(path);
    if (length > 4 && !strcmp(path + length - 4, ".vtk")) { save_vtk(s, e, path); return; }
    if (save_rod(s, e, path)) return;
    for (uint32_t k = 0; k < e->kid[0]->n; k++) column_read(&c, e->kid[0]->kid[k]);
    block b = { .path = path, .shown = path };
    if (block_make(s, &c, every, false, &b)) block_send(s, e, &b);
}

/* ---- plots ---- */

static const char *key_text(session *s, const ast *e, const char *name)
{
    value v = key_value(s, e, name);
    return v.kind == V_STRING ? arena_strndup(s->tmp, v.str.at, v.str.len) : NULL;
}

/* by = e: the swept name that tells curves apart, as a name and not as a value */
static const char *by_name(session *s, const ast *e)
{
    const ast *b = block_of(e);
    for (uint32_t k = 0; b && k < b->n; k++) {
        const ast *set = b->kid[k];
        if (set->kind != AST_SET || set->kid[0]->kind != AST_NAME || strcmp(set->kid[0]->name, "by")) continue;
        for (size_t i = 0; i < s->rec.point.n && set->kid[1]->kind == AST_NAME; i++)
            if (s->rec.point.at[i].name == set->kid[1]->name) return set->kid[1]->name;
        diag_error(s->d, DIAG_OPTION_VALUE, set->kid[1]->at, "'by' is a name that the experiment sweeps");
    }
    return NULL;
}

/* which rows are one curve: those of the point, or those with the same value of the name after by */
static curve block_curve(session *s, const block *b)
{
    text t = { .a = s->tmp };
    if (!s->experiment || (!b->series && !b->by)) return (curve){ 0 };
    for (size_t k = 0; b->by && k < s->rec.point.n; k++) {
        const measured *p = &s->rec.point.at[k];
        double x;
        if (strcmp(p->name, b->by) || !v_scalar(&p->v, &x)) continue;
        text_printf(&t, "%s = %.10g", p->name, x);
        size_t at = 0;
        while (at < b->names.n && strcmp(b->names.at[at], p->name)) at++;
        return b->series ? (curve){ 0, (double)s->point + 1, t.at } : (curve){ at, x, t.at };
    }
    point_show(s, &t);
    return (curve){ 0, (double)s->point + 1, t.at ? t.at : " " };
}

enum { MARKS = 500 };

/* the places of impacts on the curves, two numbers a line */
static const char *marks_of(session *s, const columns *c)
{
    const results *r = s->last ? s->last->r : NULL;
    text t = { .a = s->tmp };
    size_t n = 0;
    for (size_t i = 0; r && i < r->prog->ncontact; i++)
        for (size_t k = 0; k < r->contact[i].impacts.n && n++ < MARKS; k++) {
            double at = r->contact[i].impacts.at[k].t;
            for (size_t y = 1; y < c->list.n; y++) {
                if (c->list.at[y].v.kind != V_SERIES) continue;
                text_num(&t, column_at_time(&c->list.at[0], at));
                text_putc(&t, ',');
                text_num(&t, column_at_time(&c->list.at[y], at));
                text_putc(&t, '\n');
            }
        }
    return n && n < MARKS ? t.at : NULL;
}

/* the intervals in which a field touches its obstacle */
static const char *shades_of(session *s)
{
    text t = { .a = s->tmp };
    if (!s->last || !s->last->r->field) return NULL;
    ast name = { .kind = AST_NAME, .at = SPAN_NONE, .name = sym_str(s->names, "contact_set") };
    value v = session_eval(s, &name), part;
    size_t n = v.kind == V_LIST ? v.list.n : v.kind == V_NUM && v.num.rank == 2 && v.num.n[1] == 2 ? (size_t)v.num.n[0] : 0;
    for (size_t k = 0; k < n && k < 100; k++) {
        double a, b;
        if (v.kind == V_LIST) {
            if (v.list.at[k].kind != V_NUM || v.list.at[k].num.rank != 1 || v_count(&v.list.at[k]) != 2) continue;
            part = v_element(&v.list.at[k], 0); v_scalar(&part, &a);
            part = v_element(&v.list.at[k], 1); v_scalar(&part, &b);
        } else {
            part = v_element(&v, (int32_t)(2 * k)); v_scalar(&part, &a);
            part = v_element(&v, (int32_t)(2 * k + 1)); v_scalar(&part, &b);
        }
        text_puts(&t, "set object rectangle from ");
        text_num(&t, a);
        text_puts(&t, ", graph 0 to ");
        text_num(&t, b);
        text_puts(&t, ", graph 1 behind fillcolor rgb 'gray90' fillstyle solid noborder\n");
    }
    return t.at;
}

void plot_statement(session *s, const ast *e)
{
    columns c = { .s = s, .at = e };
    const char *picture = output_path(s, e, ".svg");
    if (!picture_kind(picture)) {
        diag_error(s->d, DIAG_OPTION_VALUE, e->at, "a picture is a .svg, .png or .pdf file, not '%s'", picture);
        return;
    }
    ast clock = { .kind = AST_NAME, .at = e->at, .name = sym_str(s->names, "t") };
    column_read(&c, e->kid[1] ? e->kid[1] : &clock);
    if (!e->kid[1] && c.list.n) c.list.at[0].name = "t";
    if (c.list.n > 1) {
        diag_error(s->d, DIAG_SHAPE, e->kid[1]->at, "one series or vector is needed after 'against'");
        return;
    }
    for (uint32_t k = 0; k < e->kid[0]->n; k++) column_read(&c, e->kid[0]->kid[k]);
    block b = { .path = arena_printf(s->tmp, "%s.csv", picture), .shown = picture, .title = key_text(s, e, "title"),
                .log = key_text(s, e, "log"), .by = by_name(s, e) };
    if (!block_make(s, &c, 0, true, &b)) return;
    b.of = block_curve(s, &b);
    if (!s->experiment && b.series) b.marks = marks_of(s, &c);
    if (!s->experiment) b.shades = shades_of(s);
    block_send(s, e, &b);
}

/* text for gnuplot, in single quotes: nothing in it means anything; control characters are dropped */
static void put_quoted(text *t, const char *p)
{
    text_putc(t, '\'');
    for (; *p; p++) {
        if (*p == '\'') text_putc(t, '\'');
        if ((unsigned char)*p >= 32 && *p != 127) text_putc(t, *p);
    }
    text_putc(t, '\'');
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void put_setting(text *t, const char *key, const char *v)
{
    text_printf(t, "set %s ", key);
    put_quoted(t, v);
    text_putc(t, '\n');
}

/* curve y of block k (blocks are told by the first column), or of all rows */
static void put_curve(text *t, const table *b, size_t x, size_t y, size_t which)
{
    const char *title = b->header.at[y];
    if (b->curves.n) {
        const curve *c = &b->curves.at[which];
        text_printf(t, "data skip 1 using ($%zu == ", c->column + 1);
        text_num(t, c->is);
        text_printf(t, " ? $%zu : NaN):%zu with %s title ", x + 1, y + 1, b->series ? "lines" : "linespoints");
    } else text_printf(t, "data skip 1 using %zu:%zu with %s title ", x + 1, y + 1,
                     b->rows <= 200 ? "linespoints" : "lines");
    if (b->curves.n) title = arena_printf(t->a, b->header.n - x > 2 ? "%s, %s" : "%s", b->curves.at[which].title, title);
    put_quoted(t, title);
}

static char *script_of(session *s, const table *b, size_t *len)
{
    static const char *const terminals[] = { "svg size 800,500 noenhanced background 'white'",
        "pngcairo size 1000,625 noenhanced",
                                             "pdfcairo size 6in,3.75in noenhanced" };
    const char *kind = picture_kind(b->shown);
    text t = { .a = s->tmp };
    size_t x = b->header.n - b->ncol, blocks = b->curves.n ? b->curves.n : 1, n = 0;
    text_puts(&t, "# gnuplot script: draws the numbers beside it\n");
    text_puts(&t, "data = ");
    put_quoted(&t, base_name(b->path));
    text_puts(&t, "\nif (!exists(\"picture\")) picture = ");
    put_quoted(&t, base_name(b->shown));
    text_printf(&t, "\nset terminal %s\nset output picture\nset datafile separator ','\nset grid\n",
                terminals[*kind == 's' ? 0 : kind[1] == 'n' ? 1 : 2]);
    if (*b->title) put_setting(&t, "title", b->title);
    put_setting(&t, "xlabel", b->labels.at[x]);
    if (b->ncol == 2) put_setting(&t, "ylabel", b->labels.at[x + 1]);
    if (*b->log) text_printf(&t, "set logscale %s\n", !strcmp(b->log, "xy") ? "xy" : b->log[0] == 'x' ? "x" : "y");
    text_puts(&t, b->shades);
    if (*b->marks) text_printf(&t, "$impacts << end\n%send\n", b->marks);
    if (b->curves.n) text_puts(&t, "set datafile missing NaN\n");
    text_puts(&t, "plot ");
    for (size_t k = 0; k < blocks; k++)
        for (size_t y = x + 1; y < b->header.n; y++) {
            if (n++) text_puts(&t, ", \\\n     ");
            put_curve(&t, b, x, y, k);
        }
    if (*b->marks) text_puts(&t, ", \\\n     $impacts with points pointtype 6 linecolor rgb 'red' title 'impacts'");
    text_putc(&t, '\n');
    *len = t.n;
    return t.at;
}

extern char **environ;

/* gnuplot in the directory of the picture, silent.  0, an errno when it cannot be started, or -1 when it failed */
static int gnuplot(const char *dir, char *const *argv)
{
    posix_spawn_file_actions_t act;
    pid_t pid;
    int status;
    if (posix_spawn_file_actions_init(&act)) return ENOMEM;
    posix_spawn_file_actions_addopen(&act, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&act, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&act, 2, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addchdir_np(&act, dir);
    int error = posix_spawnp(&pid, argv[0], &act, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&act);
    if (error) return error;
    while (waitpid(pid, &status, 0) < 0) if (errno != EINTR) return -1;
    if (!WIFEXITED(status)) return -1;
    return WEXITSTATUS(status) == 0 ? 0 : WEXITSTATUS(status) == 127 ? ENOENT : -1;
}

static void draw(session *s, const table *b)
{
    size_t len;
    const char *script = arena_printf(s->tmp, "%s.gp", b->shown), *name = base_name(b->shown);
    char *code = script_of(s, b, &len);
    int error = outfile_whole(s->tmp, script, code, len);
    if (error) {
        diag_error(s->d, DIAG_IO, b->at->at, "cannot write '%s': %s", script, error_text(s->tmp, error));
        return;
    }
    const char *dir = name == b->shown ? "." : arena_strndup(s->tmp, b->shown, (size_t)(name - b->shown));
    char *part = arena_printf(s->tmp, "%s.%ld.part", name, (long)getpid()), *whole = path_join(s->tmp, dir, part);
    text set = { .a = s->tmp };
    text_puts(&set, "picture = ");
    put_quoted(&set, part);
    char word[] = "gnuplot", opt[] = "-e", *gp = arena_printf(s->tmp, "./%s.gp", name);
    char *argv[] = { word, opt, set.at, gp, NULL };
    struct stat st;
    error = gnuplot(dir, argv);
    bool drawn = !error && !stat(whole, &st) && st.st_size > 0 && !rename(whole, b->shown);
    if (!drawn) unlink(whole);
    manifest_file(s, script, "script");
    if (drawn) manifest_file(s, b->shown, "picture");
    if (drawn) session_note(s, "wrote %s", b->shown);
    else if (error == ENOENT)
        session_note(s, "gnuplot is not installed, so there is no %s; its numbers are in %s, the script in %s",
                     b->shown, b->path, script);
    else session_note(s, "gnuplot could not draw %s; its numbers are in %s, try gnuplot %s", b->shown, b->path, script);
}

/* ---- the end of a statement: files take their names ---- */

static void table_finish(session *s, table *t)
{
    if (!t->shown || !outfile_commit(t->file)) {
        int error = t->file->error;
        outfile_abort(t->file);
        if (error) diag_error(s->d, DIAG_IO, t->at->at, "cannot write '%s': %s", t->path, error_text(s->tmp, error));
        return;
    }
    manifest_file(s, t->path, "data");
    if (t->at->kind == AST_PLOT) draw(s, t);
    else if (!session_is(s, OPTION_QUIET)) session_note(s, "wrote %s, %lld row%s", t->path, (long long)t->rows,
                                                        t->rows == 1 ? "" : "s");
}

void tables_finish(session *s)
{
    table *list = NULL;
    while (s->tables) {                                     /* in the order of the statements */
        table *t = s->tables;
        s->tables = t->next;
        t->next = list;
        list = t;
    }
    s->tables = list;
    while (s->tables) {
        table *t = s->tables;
        table_finish(s, t);
        s->tables = t->next;
    }
}
