/* rod_points: the reference shape of a rod from a file of points: columns x, y, z (or x1, x2, x3) under a
 * line of names, or three columns without one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "elab.h"
#include "load.h"

typedef struct {
    elab *e;
    const char *path, *text;
    size_t len, at;
    span from;
} reader;
typedef struct {
    size_t begin, end;
} field;

/* the file is a source of its own from here on, so that the place in it can be shown */
static bool points_bad(reader *r, field f, const char *what)
{
    diags *d = r->e->m->d;
    uint32_t file = diags_add_source(d, r->path, r->text, r->len);
    if (f.begin >= r->len)
        f.begin = r->len - 1;
    if (f.end <= f.begin)
        f.end = f.begin + 1;
    diag *g = diag_error(d, DIAG_IO, (span){ file, (uint32_t)f.begin, (uint32_t)f.end }, "%s", what);
    diag_second(d, g, r->from, "read here");
    return false;
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* the fields of the next line that has any, separated by commas; how many there are, 0 at the end */
static int line_fields(reader *r, field *f, int room)
{
    while (r->at < r->len) {
        size_t end = r->at, p = r->at;
        while (end < r->len && r->text[end] != '\n')
            end++;
        r->at = end + 1;
        while (p < end && blank(r->text[p]))
            p++;
        if (p == end || r->text[p] == '#')
            continue;
        int n = 0;
        for (;; p++) {
            size_t q = p;
            while (q < end && r->text[q] != ',')
                q++;
            field x = { p, q };
            while (x.begin < x.end && blank(r->text[x.begin]))
                x.begin++;
            while (x.end > x.begin && blank(r->text[x.end - 1]))
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
    memcpy(buf, r->text + f.begin, n);
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
                if (len == strlen(names[set][k]) && !memcmp(r->text + f[i].begin, names[set][k], len)) {
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
    arena_tick(r->e->m->a, 500);
    for (int k = 0; k < 3; k++) {
        if (col[k] >= n)
            return points_bad(r, f[n - 1], "the line has too few columns: x, y, z are needed");
        if (!field_number(r, f[col[k]], &x[k]))
            return points_bad(r, f[col[k]], "a coordinate is a finite number");
    }
    for (int k = 0; k < 3 && out->n; k++)
        d = fmax(d, fabs(x[k] - out->at[out->n - 3 + (size_t)k]));
    if (out->n && !(d > 0))
        return points_bad(r, f[col[0]], "the same point twice in a row");
    for (int k = 0; k < 3; k++)
        *vec_push(r->e->m->a, out) = x[k];
    return true;
}

static bool points_read(reader *r, numbers *out)
{
    enum { ROOM = 64 };
    field f[ROOM];
    const char *zero = memchr(r->text, 0, r->len);
    if (zero) {
        size_t at = (size_t)(zero - r->text);
        return points_bad(r, (field){ at, at + 1 }, "a zero byte: this is no text");
    }
    int col[3] = { 0, 1, 2 }, n = line_fields(r, f, ROOM);
    double x;
    if (n && !field_number(r, f[0], &x)) {
        if (!columns(r, f, n < ROOM ? n : ROOM, col))
            return points_bad(r, f[0], "a line of names holds x, y and z");
        n = line_fields(r, f, ROOM);
    } else if (n > 3)
        return points_bad(r, f[3],
                          "there are more than three columns: a line of names must say which are x, y and z");
    for (; n; n = line_fields(r, f, ROOM))
        if (!point_add(r, f, col, n < ROOM ? n : ROOM, out))
            return false;
    return true;
}

/* the module of the model that the text stands in */
static module *module_around(const elab *e, const ast *x)
{
    for (size_t k = 0; k < e->found.n; k++)
        if (e->found.at[k]->decl->at.file == x->at.file)
            return module_of(e->found.at[k]->outer);
    return NULL;
}

value rod_points(elab *e, const ast *x)
{
    modules l = { .a = e->m->a, .d = e->m->d };
    reader r = { .e = e, .from = x->at };
    numbers all = { 0 };
    module *around = module_around(e, x);
    file_root root = { "", false };
    const char *within = arena_strndup(e->m->a, x->text, x->len);
    r.path = within;
    if (around) {
        r.path = module_beside(e->m->a, around, within, &within);
        root = around->root;
    }
    if (!load_bytes(&l, &root, within, r.path, x->at, &r.text, &r.len) || !points_read(&r, &all))
        return v_error();
    if (around)
        module_data(e->m->a, around, r.path, r.text, r.len);
    if (all.n < 12) {
        diag_error(e->m->d, DIAG_IO, x->at, "'%s' holds %zu points: at least 4 are needed", r.path,
                   all.n / 3);
        return v_error();
    }
    value v = { .kind = V_SET }, m = v_matrix(e->m->a, (int32_t)(all.n / 3), 3);
    memcpy(m.num.d, all.at, all.n * sizeof(double));
    m.num.unit = dim_any();
    v.set.kind = sym_str(e->m->names, "points");
    v.set.n = 1;
    v.set.arg = arena_make(e->m->a, value);
    v.set.arg[0] = m;
    return v;
}
