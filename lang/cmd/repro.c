/* repro: repeats the runs of a manifest and compares; diff: compares two folders of results; both number by
   number. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <jansson.h>
#include "cmd.h"

/* what was found: numbers and texts that differ */
typedef struct {
    double within;
    size_t compared, differ;
} findings;

/* an existing file, open for reading; a pipe is not waited for, and no device is read */
static FILE *file_stream(const char *path, size_t *size)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        close(fd);
        errno = EINVAL;
        return NULL;
    }
    *size = (size_t)st.st_size;
    FILE *f = fdopen(fd, "rb");
    if (!f)
        close(fd);
    return f;
}

char *file_read(const char *path, size_t *len)
{
    const size_t piece = 1 << 22;
    size_t size, n = 0, k = 1;
    FILE *f = file_stream(path, &size);
    char *p = f ? malloc(size + 1) : NULL;
    while (p && n < size && k > 0) {
        k = interrupts_seen() ? 0 : fread(p + n, 1, size - n < piece ? size - n : piece, f);
        n += k;
    }
    if (p)
        p[n] = 0;
    *len = n;
    if (f)
        fclose(f);
    return p;
}

char *path_of(const char *dir, const char *name)
{
    char *p = malloc(strlen(dir) + strlen(name) + 2);
    if (p)
        sprintf(p, "%s/%s", dir, name);
    return p;
}

/* ---- numbers ---- */

static int numbers_agree(const findings *f, double a, double b)
{
    if (a == b || (isnan(a) && isnan(b)))
        return 1;
    double d = fabs(a - b);
    return isfinite(d) && d <= f->within * fmax(fabs(a), fabs(b));
}

static double relative(double a, double b)
{
    double m = fmax(fabs(a), fabs(b));
    return m > 0 ? fabs(a - b) / m : 0;
}

/* ---- CSV: fields one after the other ---- */

typedef struct {
    const char *p, *end;
    size_t row, col;
    char field[4096];
} cells;

/* the next field; 0 after the last.  A field that is too long is cut */
static int cell_next(cells *c)
{
    size_t n = 0;
    int quoted = 0;
    if (c->p >= c->end)
        return 0;
    for (; c->p < c->end; c->p++) {
        char x = *c->p;
        if (x == '"' && quoted && c->p + 1 < c->end && c->p[1] == '"')
            c->p++;
        else if (x == '"') {
            quoted = !quoted;
            continue;
        } else if (!quoted && (x == ',' || x == '\n'))
            break;
        if (n + 1 < sizeof c->field)
            c->field[n++] = x;
    }
    c->field[n] = 0;
    return 1;
}

/* steps over the mark behind a field: 1 at the end of a row */
static int cell_step(cells *c)
{
    int row = c->p >= c->end || *c->p == '\n';
    if (c->p < c->end)
        c->p++;
    if (row) {
        c->row++;
        c->col = 0;
    } else
        c->col++;
    return row;
}

enum { COLUMNS = 1024 };
typedef struct {
    char *name;
    size_t n, differ, row;
    double most, rel;
} csv_column;

static void columns_tell(const char *file, const csv_column *col, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (col[k].differ)
            tell(stdout,
                 "%s: column %s: %zu of %zu numbers differ, at most by %.3g (relative %.3g) in row %zu\n",
                 file, col[k].name ? col[k].name : "?", col[k].differ, col[k].n, col[k].most, col[k].rel,
                 col[k].row);
}

static void field_compare(findings *f, csv_column *col, const char *x, const char *y, size_t row)
{
    char *ex, *ey;
    double a = strtod(x, &ex), b = strtod(y, &ey);
    int number = *x && *y && !*ex && !*ey;
    col->n++;
    f->compared++;
    if (number ? numbers_agree(f, a, b) : !strcmp(x, y))
        return;
    f->differ++;
    col->differ++;
    double d = number ? fabs(a - b) : INFINITY;
    if (col->differ > 1 && !(d > col->most))
        return;
    col->most = d;
    col->rel = number ? relative(a, b) : INFINITY;
    col->row = row;
}

static void csv_compare(findings *f, const char *name, const char *a, size_t na, const char *b, size_t nb)
{
    cells x = { .p = a, .end = a + na }, y = { .p = b, .end = b + nb };
    csv_column *col = calloc(COLUMNS, sizeof *col);
    size_t width = 0;
    if (!col)
        return;
    while (!interrupts_seen()) {
        int one = cell_next(&x), two = cell_next(&y);
        size_t k = x.col < COLUMNS ? x.col : COLUMNS - 1;
        if (!one && !two)
            break;
        if (one != two) {
            tell(stdout, "%s: %s has more rows\n", name, one ? "the first" : "the second");
            f->differ++;
            break;
        }
        if (k >= width)
            width = k + 1;
        if (x.row == 0 && !strcmp(x.field, y.field)) {
            free(col[k].name);
            col[k].name = strdup(x.field);
        } else if (x.row == 0) {
            tell(stdout, "%s: column %zu is %s in the first, %s in the second\n", name, k + 1, x.field,
                 y.field);
            f->differ++;
        } else
            field_compare(f, &col[k], x.field, y.field, x.row);
        if (cell_step(&x) != cell_step(&y)) {
            tell(stdout, "%s: rows of different lengths\n", name);
            f->differ++;
            break;
        }
    }
    columns_tell(name, col, width);
    for (size_t k = 0; k < width; k++)
        free(col[k].name);
    free(col);
}

static int ends(const char *name, const char *with)
{
    size_t n = strlen(name), m = strlen(with);
    return n >= m && !strcmp(name + n - m, with);
}

/* two files of that name; data is compared by its numbers */
static void files_compare(findings *f, const char *name, const char *first, const char *second)
{
    size_t na, nb;
    char *a = file_read(first, &na), *b = file_read(second, &nb);
    size_t before = f->differ;
    if (!a || !b) {
        tell(stdout, "%s: cannot be read\n", a ? second : first);
        f->differ++;
    } else if (na == nb && !memcmp(a, b, na))
        f->compared++;
    else if (ends(name, ".csv")) {
        csv_compare(f, name, a, na, b, nb);
        if (f->differ == before && f->within == 0)
            tell(stdout, "%s: the same numbers, written differently\n", name);
    } else {
        tell(stdout, "%s: differs\n", name);
        f->differ++;
    }
    free(a);
    free(b);
}

/* ---- JSON ---- */

static void json_compare(findings *f, const char *path, const json_t *a, const json_t *b);

static void json_compare_object(findings *f, const char *path, const json_t *a, const json_t *b)
{
    const char *key;
    json_t *v;
    char at[512];
    json_object_foreach((json_t *)a, key, v)
    {
        snprintf(at, sizeof at, "%s%s%s", path, *path ? "." : "", key);
        json_compare(f, at, v, json_object_get(b, key));
    }
    json_object_foreach((json_t *)b, key, v) if (!json_object_get(a, key))
    {
        tell(stdout, "%s.%s: only in the second\n", path, key);
        f->differ++;
    }
}

static void json_compare_array(findings *f, const char *path, const json_t *a, const json_t *b)
{
    size_t n = json_array_size(a), m = json_array_size(b);
    char at[512];
    if (n != m) {
        tell(stdout, "%s: %zu in the first, %zu in the second\n", path, n, m);
        f->differ++;
    }
    for (size_t k = 0; k < n && k < m; k++) {
        snprintf(at, sizeof at, "%s[%zu]", path, k + 1);
        json_compare(f, at, json_array_get(a, k), json_array_get(b, k));
    }
}

static void json_compare(findings *f, const char *path, const json_t *a, const json_t *b)
{
    if (!b) {
        tell(stdout, "%s: only in the first\n", path);
        f->differ++;
    } else if (json_is_object(a) && json_is_object(b))
        json_compare_object(f, path, a, b);
    else if (json_is_array(a) && json_is_array(b))
        json_compare_array(f, path, a, b);
    else if (json_is_number(a) && json_is_number(b)) {
        double x = json_number_value(a), y = json_number_value(b);
        f->compared++;
        if (numbers_agree(f, x, y))
            return;
        tell(stdout, "%s: %.17g and %.17g differ by %.3g (relative %.3g)\n", path, x, y, fabs(x - y),
             relative(x, y));
        f->differ++;
    } else if (!json_equal(a, b)) {
        char *x = json_dumps(a, JSON_ENCODE_ANY), *y = json_dumps(b, JSON_ENCODE_ANY);
        tell(stdout, "%s: %s and %s\n", path, x ? x : "?", y ? y : "?");
        free(x);
        free(y);
        f->differ++;
    } else
        f->compared++;
}

/* the next bytes for the reader of JSON, which fails after an interrupt */
static size_t json_bytes(void *buffer, size_t most, void *file)
{
    return interrupts_seen() ? (size_t)-1 : fread(buffer, 1, most, file);
}

static json_t *json_read(const char *path, int loud)
{
    json_error_t e = { .line = -1 };
    size_t size;
    FILE *f = file_stream(path, &size);
    json_t *j = f ? json_load_callback(json_bytes, f, 0, &e) : NULL;
    if (f)
        fclose(f);
    else
        snprintf(e.text, sizeof e.text, "%s", strerror(errno));
    if (!j && loud && !interrupts_seen())
        tell(stderr, "cdl: cannot read '%s': %s\n", path, e.line < 0 ? e.text : "it is not JSON");
    return j;
}

const char *json_text(const json_t *o, const char *key)
{
    const char *t = json_string_value(json_object_get(o, key));
    return t ? t : "";
}

static int verdict(const findings *f, const char *same)
{
    if (interrupts_seen()) {
        fputs("cdl: interrupted\n", stderr);
        return cdl_exit_code(CDL_SOLVER);
    }
    if (f->differ) {
        tell(stdout, "%zu difference%s\n", f->differ, f->differ == 1 ? "" : "s");
        return CDL_EXPECT;
    }
    puts(same);
    return 0;
}

/* ---- diff ---- */

static char **names_of(const char *dir, const char *below_, char **list, size_t *n)
{
    char *path = *below_ ? path_of(dir, below_) : strdup(dir);
    struct dirent **all;
    int count = path ? scandir(path, &all, NULL, alphasort) : -1;
    for (int k = 0; k < count; k++) {
        const char *name = all[k]->d_name;
        char *rel = *name == '.' ? NULL
                    : *below_    ? path_of(below_, name)
                                 : strdup(name),
             *full = rel ? path_of(dir, rel) : NULL;
        struct stat st;
        if (full && !stat(full, &st) && S_ISDIR(st.st_mode)) {
            list = names_of(dir, rel, list, n);
            free(rel);
        } else if (rel) {
            char **more = realloc(list, (*n + 1) * sizeof *list);
            if (more) {
                list = more;
                list[(*n)++] = rel;
            }
        }
        free(full);
        free(all[k]);
    }
    if (count >= 0)
        free(all);
    free(path);
    return list;
}

static void manifests_compare(findings *f, const char *a, const char *b)
{
    json_t *x = json_read(a, 0), *y = json_read(b, 0);
    static const char *const keys[] = {
        "models", "seed", "parameters", "runs", "expectations", "status", NULL
    };
    if (!x || !y) {
        tell(stdout, "%s: cannot be read\n", x ? b : a);
        f->differ++;
    }
    for (size_t k = 0; x && y && keys[k]; k++) {
        const json_t *v = json_object_get(x, keys[k]);
        if (v)
            json_compare(f, keys[k], v, json_object_get(y, keys[k]));
    }
    json_decref(x);
    json_decref(y);
}

static void folders_compare(findings *f, const char *a, const char *b)
{
    size_t n = 0, m = 0;
    char **x = names_of(a, "", NULL, &n), **y = names_of(b, "", NULL, &m);
    for (size_t k = 0; k < n && !interrupts_seen(); k++) {
        size_t i = 0;
        while (i < m && strcmp(x[k], y[i]))
            i++;
        char *one = path_of(a, x[k]), *two = path_of(b, x[k]);
        if (i == m) {
            tell(stdout, "%s: only in %s\n", x[k], a);
            f->differ++;
        } else if (ends(x[k], "manifest.json"))
            manifests_compare(f, one, two);
        else if (!ends(x[k], ".points"))
            files_compare(f, x[k], one, two);
        free(one);
        free(two);
    }
    for (size_t i = 0; i < m; i++) {
        size_t k = 0;
        while (k < n && strcmp(x[k], y[i]))
            k++;
        if (k == n) {
            tell(stdout, "%s: only in %s\n", y[i], b);
            f->differ++;
        }
        free(y[i]);
    }
    for (size_t k = 0; k < n; k++)
        free(x[k]);
    free(x);
    free(y);
}

int diff_main(const options *o)
{
    findings f = { .within = o->within };
    struct stat a, b;
    for (int k = 0; k < 2; k++)
        if (stat(o->file[k], k ? &b : &a)) {
            tell(stderr, "cdl: '%s': %s\n", o->file[k], strerror(errno));
            return CDL_IO;
        }
    if (S_ISDIR(a.st_mode) != S_ISDIR(b.st_mode)) {
        fputs("cdl: diff takes two folders or two files\n", stderr);
        return CDL_USAGE;
    }
    if (S_ISDIR(a.st_mode))
        folders_compare(&f, o->file[0], o->file[1]);
    else if (ends(o->file[0], ".json"))
        manifests_compare(&f, o->file[0], o->file[1]);
    else
        files_compare(&f, o->file[0], o->file[0], o->file[1]);
    return verdict(&f, f.within > 0 ? "the same within the bound" : "the same");
}

/* ---- repro ---- */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *w)
{
    (void)st;
    (void)kind;
    (void)w;
    return remove(path);
}

static int file_write(char *path, const char *text)
{
    for (char *p = path + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = 0;
        int bad = mkdir(path, 0777) && errno != EEXIST;
        *p = '/';
        if (bad)
            return 0;
    }
    FILE *f = fopen(path, "wb");
    int good = f && fputs(text, f) >= 0;
    return f ? fclose(f) == 0 && good : 0;
}

/* a path that stays below the folder it is joined to */
int stays_below(const char *p)
{
    if (*p == '/')
        return 0;
    for (; *p; p = strchr(p, '/') ? strchr(p, '/') + 1 : p + strlen(p))
        if (!strncmp(p, "..", 2) && (!p[2] || p[2] == '/'))
            return 0;
    return 1;
}

typedef struct {
    char *at;
    size_t n, cap;
} heard;

static void hear(void *ud, const char *text, size_t len)
{
    heard *h = ud;
    if (h->n + len + 1 > h->cap) {
        char *p = realloc(h->at, h->cap = 2 * (h->n + len + 1));
        if (!p) {
            h->cap = h->n = 0;
            free(h->at);
            h->at = NULL;
            return;
        }
        h->at = p;
    }
    memcpy(h->at + h->n, text, len);
    h->n += len;
    h->at[h->n] = 0;
}

static int sources_write(const json_t *m, const char *scratch)
{
    const json_t *list = json_object_get(m, "sources");
    size_t n = json_array_size(list);
    for (size_t k = 0; k < n; k++) {
        const json_t *e = json_array_get(list, k);
        const char *path = json_text(e, "path");
        char where[8192];
        if (!stays_below(path))
            return 0;
        snprintf(where, sizeof where, "%s/%s/%s", scratch,
                 !strcmp(json_text(e, "role"), "library") ? "lib" : "src", path);
        if (!file_write(where, json_text(e, "text")))
            return 0;
    }
    return n > 0;
}

static cdl_status manifest_run(const json_t *m, const options *o, const char *scratch, heard *h)
{
    /* options of the command that apply to the repeated run, too */
    static const char *const passed_on[] = { "allow-outside", "time", "memory", "disk" };
    char path[8192];
    const json_t *list = json_object_get(m, "sources"), *p = json_object_get(m, "parameters");
    const char *key;
    json_t *v;
    cdl *s = cdl_new(NULL);
    cdl_callbacks call = { NULL, hear, interrupts_callback, h };
    if (!s)
        return CDL_MEMORY;
    cdl_set_callbacks(s, &call);
    snprintf(path, sizeof path, "%s/out", scratch);
    cdl_set(s, "output", path);
    snprintf(path, sizeof path, "%s/lib", scratch);
    if (!access(path, R_OK))
        cdl_set(s, "stdlib", path);
    for (size_t k = 0; k < o->nset; k++)
        for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
            if (!strcmp(o->set[k], passed_on[i]))
                cdl_set(s, o->set[k], o->to[k]);
    if (json_is_true(json_object_get(m, "keep_going")))
        cdl_set(s, "keep-going", "yes");
    if (json_is_true(json_object_get(m, "interactive")))
        cdl_set(s, "interactive", "yes");
    json_object_foreach((json_t *)p, key, v)
        cdl_set_param(s, key, json_string_value(v) ? json_string_value(v) : "");
    cdl_status st = CDL_OK, one;
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *e = json_array_get(list, k);
        const char *role = json_text(e, "role"), *text = json_text(e, "text");
        snprintf(path, sizeof path, "%s/src/%s", scratch, json_text(e, "path"));
        if (!strcmp(role, "main"))
            one = cdl_load_file(s, path);
        else if (!strcmp(role, "text"))
            one = cdl_run_text(s, json_text(e, "name"), text, strlen(text));
        else
            continue;
        if (one > st)
            st = one;
    }
    one = cdl_finish(s);
    cdl_free(s);
    return one > st ? one : st;
}

static const json_t *file_of(const json_t *m, const char *path)
{
    const json_t *list = json_object_get(m, "files");
    for (size_t k = 0; k < json_array_size(list); k++)
        if (!strcmp(json_text(json_array_get(list, k), "path"), path))
            return json_array_get(list, k);
    return NULL;
}

/* A file whose bytes differ: compares numbers, if the original file still exists unchanged. */
static void file_explain(findings *f, const json_t *was, const char *dir, const char *scratch)
{
    const char *name = json_text(was, "path");
    char *first = path_of(dir, name), *out = path_of(scratch, "out"),
         *second = out ? path_of(out, name) : NULL, hex[65];
    size_t before = f->differ;
    if (!first || !second)
        f->differ++;
    else if (cdl_hash_file(first, hex, interrupts_callback, NULL) || strcmp(hex, json_text(was, "sha256"))) {
        tell(stdout,
             "%s: the bytes differ from those recorded, and the recorded file is no longer "
             "beside the manifest\n",
             name);
        f->differ++;
    } else
        files_compare(f, name, first, second);
    if (f->differ == before)
        f->differ++;
    free(first);
    free(out);
    free(second);
}

static void repro_compare(findings *f, const json_t *was, const json_t *is, const char *dir,
                          const char *scratch)
{
    static const char *const keys[] = { "models", "runs", "expectations", "status", NULL };
    const json_t *list = json_object_get(was, "files");
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *a = json_array_get(list, k), *b = file_of(is, json_text(a, "path"));
        int picture = !strcmp(json_text(a, "kind"), "picture");
        f->compared++;
        if (b && !strcmp(json_text(a, "sha256"), json_text(b, "sha256")))
            continue;
        if (picture)
            tell(stdout, "%s: %s (a picture: its numbers are compared)\n", json_text(a, "path"),
                 b ? "drawn differently" : "not drawn");
        else if (!b) {
            tell(stdout, "%s: was not written\n", json_text(a, "path"));
            f->differ++;
        } else
            file_explain(f, a, dir, scratch);
    }
    for (size_t k = 0; keys[k]; k++) {
        const json_t *v = json_object_get(was, keys[k]);
        if (v)
            json_compare(f, keys[k], v, json_object_get(is, keys[k]));
    }
}

static void hosts_tell(const json_t *was, const json_t *is)
{
    const json_t *a = json_object_get(was, "cdl"), *b = json_object_get(is, "cdl");
    static const char *const keys[] = { "version", "commit", "compiler", "blas" };
    if (strcmp(json_text(was, "host"), json_text(is, "host")))
        tell(stdout, "host: recorded on %s, run again on %s\n", json_text(was, "host"),
             json_text(is, "host"));
    for (size_t k = 0; k < 4; k++)
        if (strcmp(json_text(a, keys[k]), json_text(b, keys[k])))
            tell(stdout, "%s: recorded with %s, run again with %s\n", keys[k], json_text(a, keys[k]),
                 json_text(b, keys[k]));
}

static int files_inside(const json_t *m)
{
    const json_t *list = json_object_get(m, "files");
    for (size_t k = 0; k < json_array_size(list); k++) {
        const char *p = json_text(json_array_get(list, k), "path");
        if (stays_below(p))
            continue;
        tell(stderr, "cdl: '%s' lies outside the output folder, so it would be overwritten\n", p);
        return 0;
    }
    return 1;
}

static int repro_in(const json_t *was, const options *o, const char *dir, const char *scratch)
{
    char path[8192];
    heard h = { 0 };
    findings f = { 0 };
    int code = CDL_IO;
    snprintf(path, sizeof path, "%s/src/%s", scratch, json_text(was, "directory"));
    if (!stays_below(json_text(was, "directory")) || !sources_write(was, scratch))
        fputs("cdl: the manifest contains no texts that can be run\n", stderr);
    else {
        char *probe = path_of(path, ".at"); /* the folder that it was started from */
        int there = probe && file_write(probe, "") && !chdir(path);
        free(probe);
        cdl_status st = there ? manifest_run(was, o, scratch, &h) : CDL_IO;
        snprintf(path, sizeof path, "%s/out/manifest.json", scratch);
        json_t *is = json_read(path, 0);
        if (!is && interrupts_seen())
            fputs("cdl: interrupted\n", stderr);
        else if (!is)
            tell(stderr, "cdl: the repeated run gave no results\n%s", h.at ? h.at : "");
        if (!is)
            code = st ? cdl_exit_code(st) : CDL_IO;
        else {
            hosts_tell(was, is);
            repro_compare(&f, was, is, dir, scratch);
            char same[128];
            snprintf(same, sizeof same, "the same: %zu files, %zu runs",
                     json_array_size(json_object_get(was, "files")),
                     json_array_size(json_object_get(was, "runs")));
            code = verdict(&f, same);
        }
        json_decref(is);
    }
    free(h.at);
    return code;
}

/* the output folder: what is before the manifest's own name there, or its folder when it was renamed */
static void folder_above(char *path, const char *name)
{
    size_t n = strlen(path), m = strlen(name);
    char *slash = strrchr(path, '/');
    if (m && n > m && path[n - m - 1] == '/' && !strcmp(path + n - m, name))
        slash = path + n - m - 1;
    if (slash)
        *slash = 0;
}

int repro_main(const options *o)
{
    struct stat st;
    char *given = !stat(o->file[0], &st) && S_ISDIR(st.st_mode) ? path_of(o->file[0], "manifest.json")
                                                                : strdup(o->file[0]);
    char dir[8192], scratch[4096];
    const char *tmp = getenv("TMPDIR");
    json_t *was = given ? json_read(given, 1) : NULL;
    int code = was ? CDL_USAGE : CDL_IO;
    char *real = given ? realpath(given, NULL) : NULL;
    free(given);
    if (was && json_integer_value(json_object_get(was, "manifest")) != 1)
        fputs("cdl: this is not a manifest\n", stderr);
    else if (was && files_inside(was)) {
        snprintf(scratch, sizeof scratch, "%s/cdl-repro.XXXXXX", tmp && *tmp ? tmp : "/tmp");
        snprintf(dir, sizeof dir, "%s", real ? real : ".");
        folder_above(dir, json_text(was, "name"));
        if (!mkdtemp(scratch)) {
            tell(stderr, "cdl: '%s': %s\n", scratch, strerror(errno));
            code = CDL_IO;
        } else {
            code = repro_in(was, o, dir, scratch);
            if (chdir("/") == 0)
                nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        }
    }
    free(real);
    json_decref(was);
    return code;
}
