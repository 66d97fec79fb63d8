/* rod_points: points of space from a file, the reference shape of a rod or the corners of a hull: columns x,
 * y, z (or x1, x2, x3) under a line of names, or three columns without one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "elab.h"
#include "load.h"

typedef struct {
    model_file file;
    size_t at;
    bool path; /* points follow each other: none twice in a row */
} reader;
typedef struct {
    size_t begin, end;
} field;

bool model_file_bad(const model_file *f, size_t begin, size_t end, const char *what)
{
    diags *d = f->e->m->d;
    uint32_t file = diags_add_source(d, f->path, f->text, f->len);
    if (begin >= f->len)
        begin = f->len ? f->len - 1 : 0;
    if (end <= begin)
        end = begin + 1;
    diag *g = diag_error(d, DIAG_IO, (span){ file, (uint32_t)begin, (uint32_t)end }, "%s", what);
    diag_second(d, g, f->from, "read here");
    return false;
}

static bool points_bad(const reader *r, field f, const char *what)
{
    return model_file_bad(&r->file, f.begin, f.end, what);
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* the fields of the next line that has any, separated by commas; how many there are, 0 at the end */
static int line_fields(reader *r, field *f, int room)
{
    while (r->at < r->file.len) {
        size_t end = r->at, p = r->at;
        while (end < r->file.len && r->file.text[end] != '\n')
            end++;
        r->at = end + 1;
        while (p < end && blank(r->file.text[p]))
            p++;
        if (p == end || r->file.text[p] == '#')
            continue;
        int n = 0;
        for (;; p++) {
            size_t q = p;
            while (q < end && r->file.text[q] != ',')
                q++;
            field x = { p, q };
            while (x.begin < x.end && blank(r->file.text[x.begin]))
                x.begin++;
            while (x.end > x.begin && blank(r->file.text[x.end - 1]))
                x.end--;
            if (n < room)
                f[n] = x;
            n++;
            p = q;
            if (q == end)
                return n;
        }
    }
    return 0;
}

static bool field_number(const reader *r, field f, double *x)
{
    char buf[64], *end;
    size_t n = f.end - f.begin;
    if (n == 0 || n >= sizeof buf)
        return false;
    memcpy(buf, r->file.text + f.begin, n);
    buf[n] = 0;
    *x = strtod(buf, &end);
    return !*end && isfinite(*x);
}

/* which columns hold the three coordinates */
static bool columns(const reader *r, const field *f, int n, int *col)
{
    static const char *const names[2][3] = { { "x", "y", "z" }, { "x1", "x2", "x3" } };
    for (int set = 0; set < 2; set++) {
        int found = 0;
        for (int k = 0; k < 3; k++)
            for (int i = 0; i < n; i++) {
                size_t len = f[i].end - f[i].begin;
                if (len == strlen(names[set][k]) && !memcmp(r->file.text + f[i].begin, names[set][k], len)) {
                    col[k] = i;
                    found |= 1 << k;
                }
            }
        if (found == 7)
            return true;
    }
    return false;
}

typedef vec(double) numbers;

static bool point_add(reader *r, const field *f, const int *col, int n, numbers *out)
{
    double x[3], d = 0;
    arena_tick(r->file.e->m->a, 500);
    for (int k = 0; k < 3; k++) {
        if (col[k] >= n)
            return points_bad(r, f[n - 1], "the line has too few columns: x, y, z are needed");
        if (!field_number(r, f[col[k]], &x[k]))
            return points_bad(r, f[col[k]], "a coordinate is a finite number");
    }
    for (int k = 0; k < 3 && out->n; k++)
        d = fmax(d, fabs(x[k] - out->at[out->n - 3 + (size_t)k]));
    if (r->path && out->n && !(d > 0))
        return points_bad(r, f[col[0]], "the same point twice in a row");
    for (int k = 0; k < 3; k++)
        *vec_push(r->file.e->m->a, out) = x[k];
    return true;
}

static bool points_read(reader *r, numbers *out)
{
    enum { ROOM = 64 };
    field f[ROOM];
    const char *zero = memchr(r->file.text, 0, r->file.len);
    if (zero) {
        size_t at = (size_t)(zero - r->file.text);
        return points_bad(r, (field){ at, at + 1 }, "a zero byte: this is not a text file");
    }
    int col[3] = { 0, 1, 2 }, n = line_fields(r, f, ROOM);
    double x;
    if (n && !field_number(r, f[0], &x)) {
        if (!columns(r, f, n < ROOM ? n : ROOM, col))
            return points_bad(r, f[0], "the header row must contain x, y and z");
        n = line_fields(r, f, ROOM);
    } else if (n > 3)
        return points_bad(r, f[3], "there are more than three columns: a header row must name x, y and z");
    for (; n; n = line_fields(r, f, ROOM))
        if (!point_add(r, f, col, n < ROOM ? n : ROOM, out))
            return false;
    return true;
}

/* The module that contains the text of the model. */
static module *module_around(const elab *e, const ast *x)
{
    for (size_t k = 0; k < e->found.n; k++)
        if (e->found.at[k]->decl->at.file == x->at.file)
            return module_of(e->found.at[k]->outer);
    return NULL;
}

bool model_file_read(elab *e, const ast *x, model_file *f)
{
    modules l = { .a = e->m->a, .d = e->m->d };
    module *around = module_around(e, x);
    file_root root = { "", false };
    const char *within = arena_strndup(e->m->a, x->text, x->len);
    *f = (model_file){ .e = e, .from = x->at, .path = within };
    if (around) {
        f->path = module_beside(e->m->a, around, within, &within);
        root = around->root;
    }
    if (!load_bytes(&l, &root, within, f->path, x->at, &f->text, &f->len))
        return false;
    if (around)
        module_data(e->m->a, around, f->path, f->text, f->len);
    return true;
}

value model_file_points(const model_file *f, const double *x, size_t n)
{
    if (n < 4) {
        diag_error(f->e->m->d, DIAG_IO, f->from, "'%s' contains %zu points: at least 4 are needed", f->path,
                   n);
        return v_error();
    }
    value m = v_matrix(f->e->m->a, (int32_t)n, 3);
    memcpy(m.num.d, x, 3 * n * sizeof(double));
    m.num.unit = dim_any();
    return m;
}

value table_points(elab *e, const ast *x, bool path)
{
    reader r = { .path = path };
    numbers all = { 0 };
    if (!model_file_read(e, x, &r.file) || !points_read(&r, &all))
        return v_error();
    return model_file_points(&r.file, all.at, all.n / 3);
}

value rod_points(elab *e, const ast *x)
{
    value v = { .kind = V_SET }, m = table_points(e, x, true);
    if (m.kind == V_ERROR)
        return m;
    v.set.kind = sym_str(e->m->names, "points");
    v.set.n = 1;
    v.set.arg = arena_make(e->m->a, value);
    v.set.arg[0] = m;
    return v;
}
