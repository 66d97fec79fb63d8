/* session_output: save, and the tables that save and plot fill.  Numbers go to files by rows; in an
   experiment the rows come from all points, behind columns of the swept names.  One table maps the ending
   of a file to its format. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/whole.h"
#include "value/bytes.h"
#include <unistd.h>
#include "session_output.h"
#include "base/tolerances.h"

/* ---- the block { key = value } ---- */

typedef struct {
    const char *key;
    bool save, plot;
    value_kind kind;
    const char *what;
} key_row;
static const key_row key_rows[] = {
    { "file", true, true, V_STRING, "a file name in quotes" },
    { "every", true, false, V_NUM, "a time" },
    { "title", false, true, V_STRING, "text in quotes" },
    { "log", false, true, V_STRING, "\"x\", \"y\" or \"xy\"" },
    { "by", false, true, V_NUM, "the name of a sweep" },
    { "style", false, true, V_STRING, "\"map\" or \"surface\"" },
};
enum { KEYS = sizeof key_rows / sizeof *key_rows };

const ast *block_of(const ast *e)
{
    return e->kind == AST_PLOT ? e->kid[2] : e->kid[1];
}

static const key_row *key_find(const ast *e, const char *name)
{
    for (int k = 0; k < KEYS; k++)
        if (!strcmp(key_rows[k].key, name) && (e->kind == AST_PLOT ? key_rows[k].plot : key_rows[k].save))
            return &key_rows[k];
    return NULL;
}

const char *output_key(size_t k, bool plot)
{
    if (k >= KEYS)
        return NULL;
    return (plot ? key_rows[k].plot : key_rows[k].save) ? key_rows[k].key : "";
}

const char *output_what(size_t k)
{
    return key_rows[k].what;
}

static void key_unknown(session *s, const ast *e, const ast *key)
{
    const char *name = key->name ? key->name : span_text(s->d, key->at, s->tmp),
               *stat_name = e->kind == AST_PLOT ? "plot" : "save";
    diag *d = diag_error(s->d, DIAG_UNKNOWN_ATTRIBUTE, key->at, "%s has no attribute '%s'", stat_name, name);
    near n = near_to(name);
    for (int k = 0; k < KEYS; k++)
        if (key_find(e, key_rows[k].key))
            near_try(&n, key_rows[k].key);
    diag_near_or_all(s->d, d, &n);
}

value key_value(session *s, const ast *e, const char *name)
{
    const ast *b = block_of(e);
    for (uint32_t k = 0; b && k < b->n; k++) {
        const ast *set = b->kid[k];
        if (set->kind != AST_SET || set->kid[0]->kind != AST_NAME || strcmp(set->kid[0]->name, name))
            continue;
        value v = session_eval(s, set->kid[1]);
        const key_row *row = key_find(e, name);
        if (v.kind == V_ERROR || (v.kind == row->kind && (v.kind != V_NUM || v_is_scalar(&v))))
            return v;
        diag_error(s->d, DIAG_OPTION_VALUE, set->kid[1]->at, "'%s' must be %s, not %s", name, row->what,
                   v_kind_text(s->tmp, &v));
    }
    return v_error();
}

const char *key_text(session *s, const ast *e, const char *name)
{
    value v = key_value(s, e, name);
    return v.kind == V_STRING ? arena_strndup(s->tmp, v.str.at, v.str.len) : NULL;
}

/* ---- kinds of files, by their endings ---- */

typedef enum { ROWS_CSV, ROWS_JSON, ROWS_NPY, ROWS_NPZ, WHOLE, FRAMES } format;
typedef struct writer {
    const char *ending;
    format how;
    /* WHOLE: false when it cannot hold the value */
    bool (*whole)(session *s, const value *v, outfile *to);
    const char *holds;
} writer;
static const writer writers[] = {
    { ".csv", ROWS_CSV, NULL, NULL },
    { ".jsonl", ROWS_JSON, NULL, NULL },
    { ".npy", ROWS_NPY, NULL, NULL },
    { ".npz", ROWS_NPZ, NULL, NULL },
    { ".vtk", WHOLE, field_save_vtk, "one field in the plane: save u { file = \"u.vtk\" }" },
    { ".pvd", FRAMES, NULL, NULL },
    { ".vtp", WHOLE, rod_save_vtp, "one rod: save wire { file = \"wire.vtp\" }" },
    { ".svg", WHOLE, rod_save_svg, "the picture of one rod; plot draws numbers" },
};

const char *file_ending(const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    return dot ? dot : "";
}

/* files without an ending are CSV */
static const writer *writer_of(const char *path)
{
    const char *end = file_ending(path);
    for (size_t k = 0; k < sizeof writers / sizeof *writers; k++)
        if (!*end || !strcmp(writers[k].ending, end))
            return &writers[k];
    return NULL;
}

static void writer_unknown(session *s, span at, const char *path)
{
    text all = { .a = s->tmp };
    size_t n = sizeof writers / sizeof *writers;
    for (size_t k = 0; k < n; k++)
        text_printf(&all, "%s%s", k == 0 ? "" : k + 1 < n ? ", " : " and ", writers[k].ending);
    diag *d = diag_error(s->d, DIAG_OPTION_VALUE, at, "save writes no %s files", file_ending(path));
    diag_hint(s->d, d, "it writes %s", all.at);
}

static void literal_check(session *s, const ast *e, const ast *set)
{
    const ast *v = set->kid[1];
    if (v->kind == AST_MEMBER && !strcmp(set->kid[0]->name, "file")) {
        const char *as_file = arena_printf(s->tmp, "x.%s", v->name);
        if (e->kind != AST_PLOT ? writer_of(as_file) == NULL : !picture_kind(as_file))
            return;
        diag *d = diag_error(s->d, DIAG_OPTION_VALUE, v->at, "a file name is written in quotes");
        diag_hint(s->d, d, "write file = \"%s\"", span_text(s->d, v->at, s->tmp));
        return;
    }
    if (v->kind != AST_STR)
        return;
    const char *name = set->kid[0]->name, *given = arena_strndup(s->tmp, v->text, v->len);
    if (e->kind == AST_PLOT && !strcmp(name, "file") && !picture_kind(given))
        diag_error(s->d, DIAG_OPTION_VALUE, v->at, "a picture must be a .svg, .png or .pdf file");
    if (e->kind == AST_SAVE && !strcmp(name, "file") && !writer_of(given))
        writer_unknown(s, v->at, given);
    if (!strcmp(name, "file") && !path_stays(given) && !session_is(s, OPTION_ALLOW_OUTSIDE)) {
        diag *d = diag_error(s->d, DIAG_OUTSIDE, v->at, "'%s' lies outside the output folder", given);
        diag_hint(s->d, d, "files are written below '%s' (-o); --allow-outside permits others",
                  *s->option[OPTION_OUTPUT] ? s->option[OPTION_OUTPUT] : ".");
    }
    if (!strcmp(name, "style") && strcmp(given, "map") && strcmp(given, "surface"))
        diag_error(s->d, DIAG_OPTION_VALUE, v->at, "'style' is \"map\" or \"surface\"");
    if (!strcmp(name, "log") && strcmp(given, "x") && strcmp(given, "y") && strcmp(given, "xy"))
        diag_error(s->d, DIAG_OPTION_VALUE, v->at, "'log' is \"x\", \"y\" or \"xy\"");
    if (!strcmp(name, "every"))
        diag_error(s->d, DIAG_OPTION_VALUE, v->at, "'every' is a time, not text");
}

void output_check(session *s, const ast *e)
{
    const ast *b = block_of(e);
    for (uint32_t k = 0; b && k < b->n; k++) {
        const ast *set = b->kid[k];
        if (set->kind != AST_SET)
            continue;
        if (set->kid[0]->kind != AST_NAME || !key_find(e, set->kid[0]->name))
            key_unknown(s, e, set->kid[0]);
        else
            literal_check(s, e, set);
    }
}

/* ---- columns ---- */

static void column_add(columns *c, const char *name, const value *v)
{
    column x = { .name = name, .v = *v };
    int field;
    const struct field_result *plane = value_plane(v, &field);
    if (plane)
        plane_grid(plane, c->grid);
    if (value_samples(c->s, v, &x.t, &x.y, &x.n, &x.stride)) {
        *vec_push(c->s->tmp, &c->list) = x;
        return;
    }
    c->bad = true;
    if (v->kind == V_ERROR)
        return;
    diag_error(c->s->d, DIAG_TYPE, c->at->at, "a series or numbers are needed here, not %s",
               v_kind_text(c->s->tmp, v));
}

/* a matrix gives a column for each of its own, named by its number in the manner given */
static void column_matrix(columns *c, const char *form, const char *name, const value *v)
{
    int32_t rows = v->num.n[0], n = v->num.n[1];
    for (int32_t k = 0; k < n; k++) {
        value part = v_vector(c->s->tmp, rows);
        for (int32_t i = 0; i < rows; i++)
            part.num.d[i] = v->num.d[i * n + k];
        part.num.unit = v->num.unit;
        column_add(c, arena_printf(c->s->tmp, form, name, k + 1), &part);
    }
}

static void column_put(void *ud, const char *index, const value *part)
{
    columns *c = ud;
    const char *name = arena_printf(c->s->tmp, "%s%s", c->name, index);
    if (part->kind == V_NUM && part->num.rank == 2 && !part->num.r)
        column_matrix(c, "%s[%d]", name, part);
    else
        column_add(c, name, part);
}

/* a column of a table, as wide as the value is; per: numbers in the rows of a matrix at each row */
static void member_put(void *ud, const char *name, const value *v, int per)
{
    columns *c = ud;
    size_t first = c->list.n;
    const char *full = c->alone ? name : arena_printf(c->s->tmp, "%s.%s", c->name, name);
    bool wide = v->kind == V_NUM && v->num.rank == 2;
    if (wide)
        column_matrix(c, "%s%d", full, v);
    else
        column_add(c, full, v);
    rows_array *x = vec_push(c->s->tmp, &c->arrays);
    *x = (rows_array){ .name = full, .first = first, .n = c->list.n - first };
    if (!wide)
        return;
    x->ndim = per ? 2 : 1;
    x->dim[0] = per ? v->num.n[1] / per : v->num.n[1];
    x->dim[1] = per;
}

static int indices_read(const char *p, int32_t *ix)
{
    int n = 0, used;
    for (used = 0; n < 3 && sscanf(p, "[%d]%n", &ix[n], &used) == 1 && used; p += used, used = 0)
        n++;
    return n;
}

/* the shape that the indices of the first and the last column span */
static void array_add(columns *c, size_t first)
{
    int32_t lo[3], hi[3];
    size_t len = strlen(c->name), n = c->list.n - first, all = 1;
    rows_array x = { .name = c->name, .first = first, .n = n };
    if (!n)
        return;
    x.ndim = indices_read(c->list.at[first].name + len, lo);
    if (indices_read(c->list.at[c->list.n - 1].name + len, hi) != x.ndim)
        x.ndim = 0;
    for (int k = 0; k < x.ndim; k++) {
        x.dim[k] = hi[k] - lo[k] + 1;
        all *= (size_t)x.dim[k];
    }
    if (all != n) {
        x.ndim = 1;
        x.dim[0] = (int32_t)n;
    }
    *vec_push(c->s->tmp, &c->arrays) = x;
}

void column_read(columns *c, const ast *e)
{
    value v = session_eval(c->s, e);
    size_t first = c->list.n;
    c->at = e;
    c->name = span_text(c->s->d, e->at, c->s->tmp);
    if (value_table(c->s, &v, member_put, c) || (c->alone && field_table(c->s, c->name, &v, member_put, c)))
        return;
    value_parts(c->s, &v, "", column_put, c);
    array_add(c, first);
}

/* how many rows, and whether times belong to them: columns of one number are repeated, all others are equally
 * long */
static bool columns_fit(columns *c, int64_t *rows, bool *series)
{
    *rows = 1;
    *series = false;
    const column *longest = NULL;
    for (size_t k = 0; k < c->list.n; k++) {
        const column *x = &c->list.at[k];
        *series = *series || x->v.kind == V_SERIES;
        bool single = x->v.kind != V_SERIES && x->n == 1;
        if (single)
            continue;
        if (longest && longest->n != x->n) {
            diag_error(c->s->d, DIAG_SHAPE, c->at->at,
                       "'%s' has %lld numbers, '%s' has %lld: they do not fit into the same table",
                       longest->name, (long long)longest->n, x->name, (long long)x->n);
            return false;
        }
        longest = x;
        *rows = x->n;
    }
    if ((int64_t)c->grid[0] * c->grid[1] != *rows)
        c->grid[0] = c->grid[1] = 0;
    return true;
}

double column_at(const column *x, int64_t k)
{
    return x->y[x->n == 1 && x->v.kind != V_SERIES ? 0 : k * x->stride];
}

double column_at_time(const column *x, double t)
{
    if (x->v.kind != V_SERIES)
        return x->y[0];
    return x->y == x->t ? t : value_at(&x->v, t);
}

/* ---- rows as bytes ---- */

static const double *put_nested(text *out, const int32_t *size, int ndim, const double *x)
{
    if (!ndim) {
        text_json_num(out, *x);
        return x + 1;
    }
    for (int32_t k = 0; k < size[0]; k++) {
        text_putc(out, k ? ',' : '[');
        x = put_nested(out, size + 1, ndim - 1, x);
    }
    text_puts(out, size[0] ? "]" : "[]");
    return x;
}

static void json_row(text *out, const rows_array *x, size_t n, const double *row)
{
    for (size_t k = 0; k < n; k++) {
        text_putc(out, k ? ',' : '{');
        text_json_str(out, x[k].name, strlen(x[k].name));
        text_putc(out, ':');
        put_nested(out, x[k].dim, x[k].ndim, row + x[k].first);
    }
    text_puts(out, "}\n");
}

static void row_put(text *out, format how, const block *b, const double *row)
{
    if (how == ROWS_CSV)
        csv_row(out, row, b->names.n);
    else if (how == ROWS_JSON)
        json_row(out, b->arrays.at, b->arrays.n, row);
    else
        text_putn(out, (const char *)row, b->names.n * sizeof *row);
}

/* ---- blocks on their way ---- */

#define ROWS_MAX 1e12 /* limit of a table: terabytes */

static void put_text(text *t, const char *p)
{
    put_bytes(t, p ? p : "", p ? strlen(p) : 0);
}

static void block_put(text *t, const block *b)
{
    const char *words[] = { b->path, b->shown, b->of.title, b->title, b->log, b->by, b->style };
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        put_text(t, words[k]);
    put_u64(t, b->ncol);
    put_u64(t, b->series);
    put_u64(t, (uint64_t)b->rows);
    put_u64(t, b->of.column);
    put_u64(t, b->behind);
    put_u64(t, (uint64_t)b->surface);
    put_bytes(t, (const char *)b->marks.at, b->marks.n * sizeof(double));
    put_bytes(t, (const char *)b->shades.at, b->shades.n * sizeof(double));
    put_bytes(t, (const char *)&b->of.is, sizeof b->of.is);
    put_bytes(t, (const char *)b->grid, sizeof b->grid);
    put_u64(t, b->names.n);
    for (size_t k = 0; k < b->names.n; k++) {
        put_text(t, b->names.at[k]);
        put_text(t, b->labels.at[k]);
    }
    put_u64(t, b->arrays.n);
    for (size_t k = 0; k < b->arrays.n; k++) {
        const rows_array *x = &b->arrays.at[k];
        put_text(t, x->name);
        put_u64(t, x->first);
        put_u64(t, x->n);
        put_u64(t, (uint64_t)x->ndim);
        for (int i = 0; i < x->ndim; i++)
            put_u64(t, (uint64_t)x->dim[i]);
    }
    put_bytes(t, b->data.at, b->data.n);
}

static bool get_exact(byte_reader *r, void *to, size_t size)
{
    const char *p;
    size_t n;
    if (!get_bytes(r, &p, &n) || n != size)
        return false;
    memcpy(to, p, n);
    return true;
}

static bool get_word(byte_reader *r, arena *a, const char **to)
{
    const char *p;
    size_t n;
    bool there = get_bytes(r, &p, &n);
    if (there)
        *to = arena_strndup(a, p, n);
    return there;
}

static bool get_numbers(byte_reader *r, arena *a, number_list *to)
{
    const char *p;
    size_t n;
    if (!get_bytes(r, &p, &n) || n % sizeof(double))
        return false;
    to->n = to->cap = n / sizeof(double);
    to->at = arena_array(a, double, to->n ? to->n : 1);
    if (n)
        memcpy(to->at, p, n);
    return true;
}

static bool get_array(session *s, byte_reader *r, size_t width, rows_array *x)
{
    uint64_t first, n, ndim, side, all = 1;
    if (!get_word(r, s->a, &x->name) || !get_u64(r, &first) || !get_u64(r, &n) || !get_u64(r, &ndim) ||
        n > width || first > width - n || ndim > sizeof x->dim / sizeof *x->dim)
        return false;
    x->first = (size_t)first;
    x->n = (size_t)n;
    x->ndim = (int)ndim;
    for (uint64_t k = 0; k < ndim; k++) {
        if (!get_u64(r, &side) || side > INT32_MAX || (side && all > width / side))
            return false;
        x->dim[k] = (int32_t)side;
        all *= side;
    }
    return all == n;
}

static bool is_among(const char *word, const char *const *list, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (!strcmp(word, list[k]))
            return true;
    return false;
}

/* whether a plot of it has what its script names */
static bool plot_sound(const block *b)
{
    static const char *const logs[] = { "", "x", "y", "xy" }, *const styles[] = { "", "map", "surface" };
    size_t behind = b->names.n - b->behind;
    if (!picture_kind(b->shown) || writer_of(b->path)->how != ROWS_CSV ||
        !is_among(b->log, logs, sizeof logs / sizeof *logs) ||
        !is_among(b->style, styles, sizeof styles / sizeof *styles) || (*b->style && b->names.n < 3))
        return false;
    for (size_t k = behind; k < b->names.n; k++)
        if (strncmp(b->names.at[k], OBSTACLE, strlen(OBSTACLE)) != 0)
            return false;
    return b->of.column < b->names.n;
}

/* whether the rows are those of a statement: they may come from a file */
static bool block_sound(const ast *e, const block *b)
{
    bool nodes = b->grid[0] > 0 && b->grid[1] > 0 && (int64_t)b->grid[0] * b->grid[1] == b->rows;
    if ((e->kind != AST_PLOT && e->kind != AST_SAVE) || b->ncol < 1 || b->ncol > b->names.n ||
        b->behind >= b->ncol || b->rows > (int64_t)ROWS_MAX || (b->grid[0] && !nodes))
        return false;
    format how = writer_of(b->path)->how;
    size_t wide = b->names.n * sizeof(double);
    if ((how == ROWS_NPY || how == ROWS_NPZ) && b->data.n &&
        (b->data.n % wide || b->data.n / wide != (size_t)b->rows))
        return false;
    if (how == ROWS_NPY && b->arrays.n != 1)
        return false;
    return e->kind == AST_SAVE ? !strcmp(b->path, b->shown) : plot_sound(b);
}

/* the bytes may come from a file: everything in them is checked */
static bool block_get(session *s, byte_reader r, block *b)
{
    const char **words[] = { &b->path, &b->shown, &b->of.title, &b->title, &b->log, &b->by, &b->style }, *p;
    uint64_t x[6], names, arrays;
    size_t n;
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (!get_word(&r, s->a, words[k]))
            return false;
    for (int k = 0; k < 6; k++)
        if (!get_u64(&r, &x[k]))
            return false;
    if (x[5] > INT32_MAX || x[2] > INT64_MAX || !writer_of(b->path) || !get_numbers(&r, s->a, &b->marks) ||
        !get_numbers(&r, s->a, &b->shades))
        return false;
    b->surface = (int32_t)x[5];
    b->ncol = (size_t)x[0];
    b->series = x[1] != 0;
    b->rows = (int64_t)x[2];
    b->of.column = (size_t)x[3];
    b->behind = (size_t)x[4];
    if (!get_exact(&r, &b->of.is, sizeof b->of.is) || !get_exact(&r, b->grid, sizeof b->grid) ||
        !get_u64(&r, &names))
        return false;
    for (uint64_t k = 0; k < names; k++) {
        const char *name, *label;
        if (!get_word(&r, s->a, &name) || !get_word(&r, s->a, &label))
            return false;
        *vec_push(s->tmp, &b->names) = name;
        *vec_push(s->tmp, &b->labels) = label;
    }
    if (!get_u64(&r, &arrays))
        return false;
    for (uint64_t k = 0; k < arrays; k++) {
        rows_array *one = vec_push(s->tmp, &b->arrays);
        *one = (rows_array){ 0 };
        if (!get_array(s, &r, b->names.n, one))
            return false;
    }
    if (!get_bytes(&r, &p, &n))
        return false;
    b->data.at = (char *)(uintptr_t)p;
    b->data.n = n;
    return true;
}

/* ---- tables ---- */

static const char *name_of_run(const session *s)
{
    return s->now.experiment ? s->now.experiment->name : s->last ? s->last->of->p->model : "result";
}

static table *table_find(session *s, const ast *e)
{
    for (table *t = s->tables; t; t = t->next)
        if (t->at == e)
            return t;
    return NULL;
}

static void table_head(session *s, table *t)
{
    text h = { .a = s->tmp };
    for (size_t k = 0; k < t->header.n; k++) {
        if (k)
            text_putc(&h, ',');
        csv_field(&h, t->header.at[k], strlen(t->header.at[k]));
    }
    text_putc(&h, '\n');
    outfile_put(t->file, h.at, h.n);
}

/* once for each folder that is written to */
static void leftovers_clear(session *s, const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *dir = arena_strndup(s->tmp, name, slash ? (size_t)(slash - name) : 0);
    for (size_t k = 0; k < s->tally.cleaned.n; k++)
        if (!strcmp(s->tally.cleaned.at[k], dir))
            return;
    *vec_push(s->a, &s->tally.cleaned) = arena_strdup(s->a, dir);
    file_root out = session_folder(s);
    parts_clean(&out, name);
}

static table *table_new(session *s, const ast *e, const block *b)
{
    table *t = arena_make(s->a, table);
    *t = (table){ .at = e,
                  .path = b->path,
                  .shown = b->shown,
                  .ncol = b->ncol,
                  .behind = b->behind,
                  .series = b->series,
                  .title = b->title,
                  .log = b->log,
                  .by = b->by,
                  .style = b->style,
                  .shades = b->shades,
                  .surface = b->surface,
                  .grid = { b->grid[0], b->grid[1] } };
    for (size_t k = 0; k < b->names.n; k++) {
        *vec_push(s->a, &t->header) = b->names.at[k];
        *vec_push(s->a, &t->labels) = b->labels.at[k];
    }
    for (size_t k = 0; k < b->arrays.n; k++)
        *vec_push(s->a, &t->arrays) = b->arrays.at[k];
    t->how = writer_of(t->path)->how;
    t->next = s->tables;
    s->tables = t;
    leftovers_clear(s, t->path);
    file_root out = session_folder(s);
    t->file = outfile_open(s->a, &out, t->path);
    if (t->how == ROWS_NPY || t->how == ROWS_NPZ)
        t->rows_at = spool_new(s->a, s->option[OPTION_OUTPUT]);
    else if (t->how == ROWS_CSV)
        table_head(s, t);
    return t;
}

static void table_put(table *t, const text *data)
{
    if (t->rows_at)
        spool_put(t->rows_at, data->at, data->n);
    else
        outfile_put(t->file, data->at, data->n);
}

static void curve_add(session *s, table *t, const curve *c)
{
    for (size_t k = 0; k < t->curves.n; k++)
        if (t->curves.at[k].column == c->column && t->curves.at[k].is == c->is)
            return;
    *vec_push(s->a, &t->curves) = *c;
}

static void table_finish(session *s, table *t);

static void table_drop(session *s, const table *t)
{
    table **at = &s->tables;
    while (*at && *at != t)
        at = &(*at)->next;
    if (*at)
        *at = t->next;
}

void kept_damaged(session *s, span at)
{
    diag *d = diag_error(s->d, DIAG_IO, at, "the data of this in the file of points are damaged");
    diag_hint(s->d, d, "remove that file and run the experiment again");
}

void table_take(session *s, const ast *e, const char *bytes, size_t n)
{
    arena_pos mark = arena_mark(s->tmp);
    block b = { 0 };
    if (!block_get(s, (byte_reader){ bytes, bytes + n }, &b) || !block_sound(e, &b)) {
        kept_damaged(s, e->at);
    } else {
        table *t = table_find(s, e);
        if (t && strcmp(t->path, b.path)) { /* a file for each point: that of the point before is whole */
            table_finish(s, t);
            table_drop(s, t);
            t = NULL;
        }
        bool first = !t;
        if (first)
            t = table_new(s, e, &b);
        if (t->ncol != b.ncol || t->header.n != b.names.n)
            diag_error(s->d, DIAG_SHAPE, e->at,
                       "the points of the experiment give different numbers of columns");
        else {
            table_put(t, &b.data);
            t->rows += b.rows;
            if (!first)
                t->grid[0] = 0; /* the nodes of several points are rows */
            if (*b.of.title)
                curve_add(s, t, &b.of);
            for (size_t k = 0; k < b.marks.n; k++)
                *vec_push(s->a, &t->marks) = b.marks.at[k];
        }
    }
    arena_release(s->tmp, mark);
}

/* ---- the rows of a point ---- */

/* swept names precede the columns, unless they are among them */
static bool is_listed(const columns *c, const char *name)
{
    for (size_t k = 0; k < c->list.n; k++)
        if (!strcmp(c->list.at[k].name, name))
            return true;
    return false;
}

static size_t lead_columns(session *s, const columns *c, double *x, const char **name)
{
    size_t n = 0;
    for (size_t k = 0; s->now.experiment && k < s->rec.point.n; k++) {
        const measured *p = &s->rec.point.at[k];
        double d;
        if (is_listed(c, p->name) || !v_scalar(&p->v, &d))
            continue;
        if (x)
            x[n] = d;
        if (name)
            name[n] = p->name;
        n++;
    }
    return n;
}

/* a name with the unit its numbers are in */
static const char *column_label(session *s, const column *x)
{
    dim u = x->v.kind == V_SERIES ? x->v.series.unit : x->v.kind == V_NUM ? x->v.num.unit : dim_any();
    if (x->y && x->y == x->t && !(s->last && s->last->r->field)) {
        u = dim_none();
        u.e[2] = DIM_ONE;
    }
    if (u.any || dim_equal(u, dim_none()))
        return x->name;
    text t = { .a = s->tmp };
    text_printf(&t, "%s [", x->name);
    dim_text(&t, u);
    text_putc(&t, ']');
    return t.at;
}

static void block_head(session *s, block *b, const columns *c, const char *const *lead, size_t nlead)
{
    for (size_t k = 0; k < nlead + c->list.n; k++) {
        const char *name = k < nlead ? lead[k] : c->list.at[k - nlead].name;
        *vec_push(s->tmp, &b->names) = name;
        *vec_push(s->tmp, &b->labels) = k < nlead ? name : column_label(s, &c->list.at[k - nlead]);
        if (k < nlead)
            *vec_push(s->tmp, &b->arrays) = (rows_array){ .name = name, .first = k, .n = 1 };
    }
    for (size_t k = 0; k < c->arrays.n; k++) {
        rows_array x = c->arrays.at[k];
        x.first += nlead;
        *vec_push(s->tmp, &b->arrays) = x;
    }
    memcpy(b->grid, c->grid, sizeof b->grid);
    b->ncol = c->list.n;
}

/* which rows: their number, and sample or time of each */
typedef struct {
    int64_t n;
    double every, begin, end;
    const int64_t *pick;
} row_plan;

enum { THIN_ROWS = 20000, THIN_PARTS = 1500 };

/* of more rows than a picture can show, for each part of them those where a column is least, largest, or
 * jumps most */
static void plan_thin(session *s, const columns *c, row_plan *p)
{
    int64_t n = p->n, used = 0,
            *pick = arena_array(s->tmp, int64_t, (THIN_PARTS + 1) * (4 * c->list.n + 1) + 1);
    scan rest = { .s = s };
    for (int64_t k = 0; k < THIN_PARTS; k++) {
        int64_t from = n * k / THIN_PARTS, to = n * (k + 1) / THIN_PARTS, first = used;
        pick[used++] = from;
        for (size_t i = 0; i < c->list.n; i++) {
            int64_t lo = from, hi = from, jump = from;
            const column *x = &c->list.at[i];
            double least = column_at(x, from), most = least, far = 0, last = least;
            for (int64_t j = from; j < to; j++) {
                double y = column_at(x, j);
                if (y < least) {
                    least = y;
                    lo = j;
                }
                if (y > most) {
                    most = y;
                    hi = j;
                }
                if (fabs(y - last) > far) {
                    far = fabs(y - last);
                    jump = j;
                }
                last = y;
            }
            scan_pass(&rest, (to - from) * x->stride * (int64_t)sizeof(double));
            pick[used++] = lo;
            pick[used++] = hi;
            pick[used++] = jump > from ? jump - 1 : from;
            pick[used++] = jump;
        }
        for (int64_t a = first + 1; a < used; a++) /* in order; few */
            for (int64_t b = a; b > first && pick[b - 1] > pick[b]; b--) {
                int64_t t = pick[b];
                pick[b] = pick[b - 1];
                pick[b - 1] = t;
            }
    }
    pick[used++] = n - 1;
    int64_t kept = 0;
    for (int64_t k = 0; k < used; k++)
        if (!kept || pick[k] != pick[kept - 1])
            pick[kept++] = pick[k];
    p->pick = pick;
    p->n = kept;
}

static row_plan rows_plan(session *s, const columns *c, int64_t rows, const rows_wanted *w)
{
    const column *clock = NULL;
    row_plan p = { .n = rows };
    for (size_t k = 0; k < c->list.n; k++)
        if (c->list.at[k].t)
            clock = &c->list.at[k];
    if (w->every > 0 && clock && clock->n) {
        p.every = w->every;
        p.begin = clock->t[0];
        p.end = clock->t[clock->n - 1];
        if (!whole_number(floor((p.end - p.begin) / p.every * (1 + STEPS_ROUNDED)), 0, ROWS_MAX, &p.n)) {
            diag *d = diag_error(s->d, DIAG_OPTION_VALUE, c->at->at,
                                 "'every' = %g gives more than %g "
                                 "rows",
                                 p.every, ROWS_MAX);
            diag_hint(s->d, d, "the times go from %g to %g", p.begin, p.end);
            p.n = -1;
        }
        p.n++;
    } else if (w->thin && rows > THIN_ROWS && !c->grid[0])
        plan_thin(s, c, &p);
    return p;
}

static void row_fill(const columns *c, const row_plan *p, int64_t k, double *row)
{
    double time = fmin(p->begin + (double)k * p->every, p->end);
    for (size_t i = 0; i < c->list.n; i++) {
        const column *x = &c->list.at[i];
        row[i] = p->every > 0 ? column_at_time(x, time) : column_at(x, p->pick ? p->pick[k] : k);
    }
}

/* to the table, or in an experiment into the report of the point with the number of the statement */
static void block_out(session *s, const ast *e, const block *b)
{
    text t = { .a = s->tmp };
    uint64_t at = 0;
    while (s->now.report && at < s->now.experiment->n && s->now.experiment->kid[at] != e)
        at++;
    if (s->now.report)
        put_u64(&t, at);
    block_put(&t, b);
    if (!s->now.report) {
        table_take(s, e, t.at, t.n);
        return;
    }
    text_putc(s->now.report, 'T');
    put_bytes(s->now.report, t.at, t.n);
}

static bool array_alone(session *s, const ast *e, const block *b, format how)
{
    if (how != ROWS_NPY || b->arrays.n == 1)
        return true;
    diag *d = diag_error(s->d, DIAG_SHAPE, e->at, "a .npy file contains one array, not %zu", b->arrays.n);
    diag_hint(s->d, d, "a .npz file can contain several: file = \"%.*s.npz\"", (int)(strlen(b->path) - 4),
              b->path);
    return false;
}

/* rows go to their file in portions; those of an experiment are kept in the report */
static void rows_send(session *s, const ast *e, const columns *c, const row_plan *p, block *b, double *row,
                      size_t nlead)
{
    enum { PORTION = 1 << 16 };
    format how = writer_of(b->path)->how;
    scan rest = { .s = s };
    int64_t wide = 0;
    table *t = NULL;
    for (size_t i = 0; i < c->list.n;
         i++) /* reading a number may load 64 kB from a file; a time is searched for */
        wide += p->every > 0 ? 5 << 16 : p->pick ? 1 << 16 : c->list.at[i].stride * (int64_t)sizeof(double);
    b->rows = p->n;
    if (!s->now.report) {
        block_out(s, e, b);
        t = table_find(s, e);
    }
    b->data = (text){ .a = s->tmp };
    for (int64_t k = 0; k < p->n; k++) {
        row_fill(c, p, k, row + nlead);
        row_put(&b->data, how, b, row);
        scan_pass(&rest, wide);
        if (!t || b->data.n < PORTION)
            continue;
        table_put(t, &b->data);
        b->data.n = 0;
        if (t->file->to.error)
            break; /* reported at the end */
    }
    if (s->now.report)
        block_out(s, e, b);
    else if (t && b->data.n)
        table_put(t, &b->data);
}

bool block_send(session *s, const ast *e, columns *c, const rows_wanted *w, block *b,
                void (*more)(session *s, const columns *c, block *b))
{
    int64_t rows;
    if (c->bad || !columns_fit(c, &rows, &b->series))
        return false;
    size_t most = s->rec.point.n + 1, nlead = 0;
    double *row = arena_array(s->tmp, double, most + c->list.n);
    const char **lead = arena_array(s->tmp, const char *, most);
    if (w->number_blocks && b->series && s->now.experiment) {
        lead[0] = "point";
        row[0] = (double)s->now.point + 1;
        nlead = 1;
    }
    nlead += lead_columns(s, c, row + nlead, lead + nlead);
    block_head(s, b, c, lead, nlead);
    if (!array_alone(s, e, b, writer_of(b->path)->how))
        return false;
    row_plan p = rows_plan(s, c, rows, w);
    if (p.n == 0 && rows)
        return false;
    if (p.n != rows)
        b->grid[0] = 0;
    if (more)
        more(s, c, b);
    rows_send(s, e, c, &p, b, row, nlead);
    return true;
}

/* ---- save ---- */

const char *output_path(session *s, const ast *e, const char *ending)
{
    const char *name = key_text(s, e, "file");
    if (!name)
        name = arena_printf(s->tmp, "%s%s", name_of_run(s), ending);
    return arena_strdup(s->a, name);
}

const char *point_path(session *s, const char *path)
{
    const char *end = file_ending(path);
    if (!s->now.experiment || !s->rec.point.n)
        return path;
    return arena_printf(s->a, "%.*s.%lld%s", (int)(end - path), path, (long long)s->now.point + 1, end);
}

/* ---- files that are written at once ---- */

outfile *whole_begin(session *s, const char *name)
{
    file_root out = session_folder(s);
    if (s->now.report) {
        text *bytes = arena_make(s->tmp, text);
        bytes->a = s->now.report->a; /* it grows while writers release what they took of s->tmp */
        return outfile_memory(s->tmp, bytes);
    }
    leftovers_clear(s, name);
    return outfile_open(s->tmp, &out, name);
}

bool whole_named(const char *name)
{
    return *file_ending(name) && (writer_of(name) || animation_named(name));
}

bool whole_end(session *s, outfile *f, const char *name, const char *kind, span at)
{
    if (f->into) {
        text t = { .a = s->tmp };
        put_text(&t, name);
        put_text(&t, kind);
        put_bytes(&t, f->into->at, f->into->n);
        text_putc(s->now.report, 'W');
        put_bytes(s->now.report, t.at, t.n);
        return true;
    }
    if (!outfile_commit(f)) {
        diag_error(s->d, DIAG_IO, at, "cannot write '%s': %s", session_path(s, name),
                   error_text(s->tmp, f->to.error));
        return false;
    }
    manifest_file(s, name, kind);
    if (!strcmp(kind, "data"))
        session_note(s, "wrote %s", session_path(s, name));
    return true;
}

/* one thing in a file of its own */
static void save_whole(session *s, const ast *e, const writer *w, const char *path)
{
    value v = e->kid[0]->n == 1 ? session_eval(s, e->kid[0]->kid[0]) : (value){ .kind = V_LIST };
    if (v.kind == V_ERROR)
        return;
    path = point_path(s, path);
    outfile *f = whole_begin(s, path);
    if (w->whole(s, &v, f)) {
        whole_end(s, f, path, "data", e->at);
        return;
    }
    outfile_abort(f);
    diag_error(s->d, DIAG_TYPE, e->at, "a %s file contains %s", w->ending, w->holds);
}

void save_statement(session *s, const ast *e)
{
    columns c = { .s = s, .at = e };
    rows_wanted want = { 0 };
    value v = key_value(s, e, "every");
    if (v.kind == V_NUM && (!v_scalar(&v, &want.every) || !(want.every > 0))) {
        diag_error(s->d, DIAG_OPTION_VALUE, block_of(e)->at, "'every' is a positive time");
        return;
    }
    const char *path = output_path(s, e, ".csv");
    const writer *w = writer_of(path);
    if (!w) {
        writer_unknown(s, e->at, path);
        return;
    }
    if (w->how == WHOLE) {
        save_whole(s, e, w, path);
        return;
    }
    if (w->how == FRAMES) {
        save_frames(s, e, point_path(s, path), want.every);
        return;
    }
    c.alone = e->kid[0]->n == 1 && w->how != ROWS_NPY;
    for (uint32_t k = 0; k < e->kid[0]->n; k++)
        column_read(&c, e->kid[0]->kid[k]);
    block b = { .path = path, .shown = path };
    block_send(s, e, &c, &want, &b, NULL);
}

/* ---- the end of a statement: files take their names ---- */

static void arrays_write(session *s, table *t)
{
    rows_table from = { t->rows_at, t->header.n, t->rows, { t->grid[0], t->grid[1] } };
    if (t->how == ROWS_NPY)
        npy_write(t->file, s->tmp, &from, &t->arrays.at[0]);
    else
        npz_write(t->file, s->tmp, &from, t->arrays.at, t->arrays.n);
    if (t->rows_at->to.error && !t->file->to.error)
        t->file->to.error = t->rows_at->to.error;
    spool_close(t->rows_at);
}

static void table_finish(session *s, table *t)
{
    if (t->rows_at)
        arrays_write(s, t);
    if (!t->shown || !outfile_commit(t->file)) {
        int error = t->file->to.error;
        outfile_abort(t->file);
        if (error)
            diag_error(s->d, DIAG_IO, t->at->at, "cannot write '%s': %s", session_path(s, t->path),
                       error_text(s->tmp, error));
        return;
    }
    manifest_file(s, t->path, "data");
    if (t->at->kind == AST_PLOT)
        table_draw(s, t);
    else if (!session_is(s, OPTION_QUIET))
        session_note(s, "wrote %s, %lld row%s", session_path(s, t->path), (long long)t->rows,
                     t->rows == 1 ? "" : "s");
}

bool tables_failed(const session *s)
{
    for (const table *t = s->tables; t; t = t->next)
        if (t->file->to.error)
            return true;
    return false;
}

void tables_finish(session *s)
{
    table *list = NULL;
    while (s->tables) { /* in the order of the statements */
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
