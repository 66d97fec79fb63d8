/* verify: saved results against their model.  Files are read here, by an independent reader; cdl_verify
   recomputes the columns. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <jansson.h>
#include "cmd.h"

typedef struct {
    cdl_numbers *at;
    size_t n, room, rows;
    const char *wrong; /* why it cannot be read */
} columns;

/* ---- columns ---- */
static double *column_add(columns *c, const char *name, size_t len)
{
    if (c->n == c->room) {
        size_t room = 2 * c->room + 16;
        cdl_numbers *p = realloc(c->at, room * sizeof *p);
        if (!p)
            return NULL;
        c->at = p;
        c->room = room;
    }
    char *own = malloc(len + 1);
    double *x = malloc((c->rows + 1) * sizeof *x);
    if (!own || !x) {
        free(own);
        free(x);
        return NULL;
    }
    memcpy(own, name, len);
    own[len] = 0;
    c->at[c->n++] = (cdl_numbers){ own, x, c->rows };
    return x;
}

static void columns_free(columns *c)
{
    for (size_t k = 0; k < c->n; k++) {
        free((char *)c->at[k].name);
        free((double *)c->at[k].at);
    }
    free(c->at);
}

static int not_read(columns *c, const char *why)
{
    c->wrong = why;
    return 0;
}

/* "p[2]" of the second of several numbers in a row */
static double *part_add(columns *c, const char *name, size_t len, size_t part, size_t parts)
{
    char text[512];
    int n = parts == 1 ? snprintf(text, sizeof text, "%.*s", (int)len, name)
                       : snprintf(text, sizeof text, "%.*s[%zu]", (int)len, name, part + 1);
    return n > 0 && (size_t)n < sizeof text ? column_add(c, text, (size_t)n) : NULL;
}

/* ---- CSV ---- */
/* The end of a field; a name with a comma is in quotes. */
static const char *field_end(const char *p, const char *end)
{
    int quoted = 0;
    for (; p < end && (quoted || (*p != ',' && *p != '\n')); p++)
        quoted ^= *p == '"';
    return p;
}

static int csv_read(columns *c, const char *p, size_t len)
{
    const char *end = p + len, *line = memchr(p, '\n', len);
    if (!line)
        return not_read(c, "it has no header row");
    for (const char *q = line + 1; q < end; q++)
        c->rows += *q == '\n';
    if (end[-1] != '\n')
        c->rows++;
    for (const char *q = p; q <= line; q++) {
        const char *stop = field_end(q, line);
        int quoted = stop - q >= 2 && *q == '"';
        if (!column_add(c, q + quoted, (size_t)(stop - q) - 2 * (size_t)quoted))
            return not_read(c, "there is not enough memory");
        q = stop;
    }
    const char *q = line + 1;
    for (size_t row = 0; row < c->rows; row++) {
        if (interrupts_seen())
            return not_read(c, "interrupted");
        for (size_t k = 0; k < c->n; k++) {
            char *stop;
            double x = strtod(q, &stop);
            if (stop == q || stop > end || (*stop != ',' && *stop != '\n' && stop != end))
                return not_read(c, "a row lacks a number");
            if ((*stop == ',') != (k + 1 < c->n))
                return not_read(c, "a row has a different number of columns from the first line");
            ((double *)c->at[k].at)[row] = x;
            q = stop + 1;
        }
    }
    return 1;
}

/* ---- NumPy ---- */
static size_t le(const char *p, int bytes)
{
    size_t x = 0;
    for (int k = bytes; k-- > 0;)
        x = x << 8 | (unsigned char)p[k];
    return x;
}

static int array_read(columns *c, const char *name, size_t nlen, const char *p, size_t len)
{
    size_t dim[8], ndim = 0, parts = 1, head = len >= 10 ? le(p + 8, 2) : 0;
    if (len < 10 || memcmp(p, "\x93NUMPY\1", 7) || 10 + head > len)
        return not_read(c, "an array of it is damaged");
    char text[1024];
    if (head >= sizeof text)
        return not_read(c, "an array of it is damaged");
    memcpy(text, p + 10, head);
    text[head] = 0;
    char *shape = strstr(text, "'shape': (");
    if (!strstr(text, "'<f8'") || !strstr(text, "'fortran_order': False") || !shape)
        return not_read(c, "an array of it does not contain doubles in row order");
    for (char *q = shape + 10; *q && *q != ')' && ndim < 8;) {
        char *stop;
        unsigned long long x = strtoull(q, &stop, 10);
        if (stop == q)
            break;
        dim[ndim++] = (size_t)x;
        q = stop + strspn(stop, ", ");
    }
    size_t all = (len - 10 - head) / 8;
    for (size_t k = 1; k < ndim; k++) {
        if (dim[k] == 0 || dim[k] > all)
            return not_read(c, "an array of it is damaged");
        parts *= dim[k];
        if (parts > all)
            return not_read(c, "an array of it is damaged");
    }
    if (ndim == 0 || dim[0] > all || dim[0] * parts > all)
        return not_read(c, "an array of it is damaged");
    if (c->n && dim[0] != c->rows)
        return not_read(c, "its arrays have different numbers of rows");
    c->rows = dim[0];
    for (size_t k = 0; k < parts; k++) {
        double *to = part_add(c, name, nlen, k, parts);
        if (!to)
            return not_read(c, "there is not enough memory");
        for (size_t row = 0; row < c->rows; row++) {
            unsigned long long bits = le(p + 10 + head + 8 * (row * parts + k), 8);
            memcpy(to + row, &bits, 8);
        }
    }
    return 1;
}

/* stored members one after the other, as save writes them */
static int npz_read(columns *c, const char *p, size_t len)
{
    size_t at = 0;
    while (at + 30 <= len && !memcmp(p + at, "PK\3\4", 4)) {
        size_t size = le(p + at + 18, 4), nlen = le(p + at + 26, 2), more = le(p + at + 28, 2);
        size_t name = at + 30, data = name + nlen + more;
        if (data > len || le(p + at + 8, 2) != 0)
            return not_read(c, "a member of it is compressed or damaged");
        if (size == 0xffffffff && more >= 20 && le(p + name + nlen, 2) == 1)
            size = le(p + name + nlen + 12, 8);
        if (size > len - data)
            return not_read(c, "a member of it is truncated");
        size_t own = nlen > 4 && !memcmp(p + name + nlen - 4, ".npy", 4) ? nlen - 4 : nlen;
        if (!array_read(c, p + name, own, p + data, size))
            return 0;
        at = data + size;
    }
    return c->n ? 1 : not_read(c, "it contains no arrays");
}

/* ---- JSON lines ---- */
static size_t json_count(const json_t *v)
{
    size_t n = 0;
    if (!json_is_array(v))
        return 1;
    for (size_t k = 0; k < json_array_size(v); k++)
        n += json_count(json_array_get(v, k));
    return n;
}

static void json_spread(const json_t *v, columns *c, size_t row, size_t *at, size_t end)
{
    if (json_is_array(v))
        for (size_t k = 0; k < json_array_size(v); k++)
            json_spread(json_array_get(v, k), c, row, at, end);
    else if (*at < end)
        ((double *)c->at[(*at)++].at)[row] = json_is_number(v) ? json_number_value(v) : NAN;
}

static int jsonl_row(columns *c, const json_t *o, size_t row)
{
    size_t at = 0;
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)o, key, v)
    {
        size_t n = json_count(v);
        for (size_t k = 0; row == 0 && k < n; k++)
            if (!part_add(c, key, strlen(key), k, n))
                return not_read(c, "there is not enough memory");
        if (at + n > c->n)
            return not_read(c, "its lines have different names");
        json_spread(v, c, row, &at, at + n);
    }
    return at == c->n ? 1 : not_read(c, "its lines have different names");
}

static int jsonl_read(columns *c, const char *p, size_t len)
{
    const char *end = p + len;
    int good = 1;
    for (const char *q = p; q < end; q++)
        c->rows += *q == '\n';
    for (size_t row = 0; good && row < c->rows && !interrupts_seen(); row++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        json_t *o = json_loadb(p, (size_t)(stop - p), JSON_DECODE_ANY, NULL);
        good = json_is_object(o) ? jsonl_row(c, o, row) : not_read(c, "a line of it is not a JSON object");
        json_decref(o);
        p = stop + 1;
    }
    return good;
}

/* ---- one file ---- */
static int ends_in(const char *path, const char *ending)
{
    size_t n = strlen(path), m = strlen(ending);
    return n > m && !strcmp(path + n - m, ending);
}

static int is_table(const char *path)
{
    return ends_in(path, ".csv") || ends_in(path, ".npz") || ends_in(path, ".jsonl");
}

static int columns_load(columns *c, const char *path)
{
    size_t len;
    char *p = file_read(path, &len);
    *c = (columns){ 0 };
    if (!p)
        return not_read(c, "it cannot be read");
    int good = len == 0                  ? not_read(c, "it is empty")
               : ends_in(path, ".csv")   ? csv_read(c, p, len)
               : ends_in(path, ".npz")   ? npz_read(c, p, len)
               : ends_in(path, ".jsonl") ? jsonl_read(c, p, len)
               : ends_in(path, ".npy")
                   ? not_read(c, "it contains one array; t and the dofs are needed, as in .npz or .csv")
                   : not_read(c, "it is not .npz, .csv or .jsonl");
    for (size_t k = 0; good && k < c->n; k++)
        if (!strcmp(c->at[k].name, "point"))
            good = not_read(c, "it contains several runs of an experiment");
    free(p);
    return good;
}

/* what it is held against */
typedef struct {
    const char *name, *text; /* of the model's text; NULL: it is a file */
    const char *model;       /* NULL: the last one */
    cdl_numbers *param;
    size_t nparam;
} origin;

typedef struct {
    cdl_status status;
    size_t off; /* findings beyond what is allowed */
    json_t *report;
} verdict;

static json_t *finding_json(const cdl_finding *f)
{
    json_t *o = json_object();
    json_object_set_new(o, "off", isfinite(f->worst) ? json_real(f->worst) : json_string("inf"));
    json_object_set_new(o, "allowed", json_real(f->allowed));
    json_object_set_new(o, "row", json_integer((json_int_t)f->row + 1));
    json_object_set_new(o, "where", json_string(f->where));
    return o;
}

static verdict verify_one(const options *o, const columns *c, const origin *from)
{
    verdict v = { CDL_MEMORY, 0, json_object() };
    const cdl_finding *f;
    size_t n;
    cdl *s = session_open(o, &v.status);
    if (!s)
        return v;
    v.status = from->text ? cdl_check_text(s, from->name, from->text, strlen(from->text))
                          : cdl_check_file(s, from->name);
    if (v.status == CDL_OK)
        v.status = cdl_verify(s, from->model, from->param, from->nparam, c->at, c->n, &f, &n);
    if (v.status <= CDL_EXPECT)
        for (size_t k = 0; k < n; k++) {
            v.off += !(f[k].worst <= f[k].allowed);
            json_object_set_new(v.report, f[k].what, finding_json(&f[k]));
        }
    cdl_free(s);
    return v;
}

static void report_text(const char *file, const columns *c, const verdict *v)
{
    const char *what;
    json_t *f;
    tell(stdout, "%s: %zu rows, %s\n", file, c->rows, v->status == CDL_OK ? "verified" : "checks failed");
    json_object_foreach(v->report, what, f)
    {
        const json_t *off = json_object_get(f, "off");
        double x = json_is_string(off) ? INFINITY : json_number_value(off),
               most = json_number_value(json_object_get(f, "allowed"));
        tell(stdout, "  %-16s %-10.3g allowed %-10.3g row %lld, %s%s\n", what, x, most,
             (long long)json_integer_value(json_object_get(f, "row")),
             json_string_value(json_object_get(f, "where")), x <= most ? "" : "  <- off");
    }
}

static void report_json(const char *file, const columns *c, const verdict *v)
{
    json_t *o = json_object();
    json_object_set_new(o, "file", json_string(file));
    json_object_set_new(o, "rows", json_integer((json_int_t)c->rows));
    json_object_set_new(o, "status", json_string(v->status == CDL_OK ? "ok" : "failed"));
    json_object_set(o, "worst", v->report);
    char *text = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(17));
    if (text)
        printf("%s\n", text);
    free(text);
    json_decref(o);
}

static void report(const options *o, const char *file, const columns *c, const verdict *v)
{
    if (v->status > CDL_EXPECT)
        return; /* the session has said why */
    if (o->json)
        report_json(file, c, v);
    else
        report_text(file, c, v);
}

/* ---- manifests ---- */
static void params_free(origin *from)
{
    for (size_t k = 0; k < from->nparam; k++)
        free((double *)from->param[k].at);
    free(from->param);
}

static int params_read(origin *from, const json_t *list)
{
    const char *key;
    json_t *v;
    from->param = calloc(json_object_size(list) + 1, sizeof *from->param);
    if (!from->param)
        return 0;
    json_object_foreach((json_t *)list, key, v)
    {
        columns row = { .rows = 1 };
        size_t n = json_count(v), at = 0;
        double *x = malloc((n + 1) * sizeof *x);
        if (!x)
            return 0;
        for (size_t k = 0; k < n; k++)
            column_add(&row, "", 0);
        json_spread(v, &row, 0, &at, row.n);
        for (size_t k = 0; k < row.n; k++)
            x[k] = row.at[k].at[0];
        from->param[from->nparam++] = (cdl_numbers){ key, x, row.n };
        columns_free(&row);
    }
    return 1;
}

/* Does the text define the model, by its words? */
static int defines(const char *text, const char *model)
{
    static const char space[] = " \t\r\n";
    size_t n = strlen(model);
    for (const char *at = text; (at = strstr(at, "model")); at++) {
        const char *name = at + 5 + strspn(at + 5, space);
        char behind = strncmp(name, model, n) ? 0 : name[n];
        if (name > at + 5 && behind && (strchr(space, behind) || behind == '{'))
            return 1;
    }
    return 0;
}

/* A model is in the main text or in a module that it uses. */
static int may_hold(const json_t *sources, const json_t *text, const char *model)
{
    int main_text = !strcmp(json_text(text, "role"), "main") || !strcmp(json_text(text, "role"), "text");
    if (!main_text && strcmp(json_text(text, "role"), "module"))
        return 0;
    if (defines(json_text(text, "text"), model))
        return 1;
    for (size_t i = 0; i < json_array_size(sources); i++)
        if (defines(json_text(json_array_get(sources, i), "text"), model))
            return 0;
    return main_text;
}

/* The run of a manifest that fits the file best: a file does not contain the number of its run. */
static verdict verify_runs(const options *o, const columns *c, const json_t *m)
{
    const json_t *sources = json_object_get(m, "sources"), *runs = json_object_get(m, "runs");
    verdict best = { CDL_USAGE, (size_t)-1, NULL };
    for (size_t i = 0; i < json_array_size(sources); i++) {
        const json_t *text = json_array_get(sources, i);
        for (size_t k = 0; k < json_array_size(runs); k++) {
            const json_t *run = json_array_get(runs, k);
            if (!may_hold(sources, text, json_text(run, "model")))
                continue;
            origin from = { json_text(text, "name"), json_text(text, "text"), json_text(run, "model"), NULL,
                            0 };
            verdict v = { CDL_MEMORY, 0, json_object() };
            if (params_read(&from, json_object_get(run, "parameters"))) {
                json_decref(v.report);
                v = verify_one(o, c, &from);
            }
            params_free(&from);
            if (!best.report || v.status < best.status || (v.status == best.status && v.off < best.off)) {
                json_decref(best.report);
                best = v;
            } else
                json_decref(v.report);
            if (best.status == CDL_OK)
                return best;
        }
    }
    return best;
}

/* bytes that differ from those which were written */
static int bytes_changed(const json_t *m, const char *name, const char *path)
{
    const json_t *list = json_object_get(m, "files");
    char hex[65];
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *f = json_array_get(list, k);
        if (!strcmp(json_text(f, "path"), name))
            return cdl_hash_file(path, hex, interrupts_callback, NULL) != CDL_OK ||
                   strcmp(hex, json_text(f, "sha256"));
    }
    return 0;
}

static int verify_listed(const options *o, const json_t *m, const char *name, const char *path)
{
    columns c;
    int code = CDL_IO;
    if (!columns_load(&c, path))
        tell(stderr, "cdl: '%s' cannot be verified: %s\n", path, c.wrong);
    else {
        verdict v = verify_runs(o, &c, m);
        if (v.status <= CDL_EXPECT && bytes_changed(m, name, path)) {
            json_t *f = json_pack("{s:s, s:f, s:i, s:s}", "off", "inf", "allowed", 0.0, "row", 0, "where",
                                  "the bytes are not those that the manifest records");
            json_object_set_new(v.report, "hash", f);
            v.status = CDL_EXPECT;
        }
        if (!v.report)
            tell(stderr, "cdl: the manifest of '%s' names no run\n", path);
        report(o, path, &c, &v);
        code = cdl_exit_code(v.status);
        json_decref(v.report);
    }
    columns_free(&c);
    return code;
}

static json_t *manifest_load(const char *path)
{
    size_t len;
    char *p = file_read(path, &len);
    json_t *m = p ? json_loadb(p, len, 0, NULL) : NULL;
    free(p);
    if (m && json_is_object(m) && json_is_array(json_object_get(m, "sources")))
        return m;
    json_decref(m);
    return NULL;
}

static int verify_folder(const options *o, const char *dir)
{
    char *path = path_of(dir, "manifest.json");
    json_t *m = path ? manifest_load(path) : NULL;
    int code = 0, seen = 0;
    if (!m)
        tell(stderr, "cdl: there is no manifest in '%s': it must be a folder that a run wrote with -o\n",
             dir);
    const json_t *list = json_object_get(m, "files");
    for (size_t k = 0; k < json_array_size(list); k++) {
        const char *name = json_text(json_array_get(list, k), "path");
        if (!is_table(name))
            continue;
        seen++;
        char *file = path_of(dir, name);
        int one = CDL_IO;
        if (!stays_below(name))
            tell(stderr, "cdl: the manifest names '%s', outside of its folder\n", name);
        else if (file)
            one = verify_listed(o, m, name, file);
        code = one > code ? one : code;
        free(file);
    }
    if (m && !seen) {
        tell(stderr, "cdl: the manifest in '%s' names no .npz, .csv or .jsonl file\n", dir);
        code = CDL_USAGE;
    }
    json_decref(m);
    free(path);
    return m ? code : CDL_IO;
}

/* manifest.json beside a file, or STEM.manifest.json, that names it */
static json_t *manifest_beside(const char *path, const char *name)
{
    size_t dir = (size_t)(name - path), stem = strcspn(name, ".");
    char beside[8192];
    json_t *m = NULL;
    for (int k = 0; !m && k < 2; k++) {
        int n = k == 0 ? snprintf(beside, sizeof beside, "%.*smanifest.json", (int)dir, path)
                       : snprintf(beside, sizeof beside, "%.*s%.*s.manifest.json", (int)dir, path, (int)stem,
                                  name);
        if (n > 0 && (size_t)n < sizeof beside)
            m = manifest_load(beside);
    }
    return m;
}

static int verify_model(const options *o, const char *path)
{
    origin from = { o->model, NULL, NULL, calloc(o->nparam + 1, sizeof(cdl_numbers)), 0 };
    columns c = { 0 };
    int code = CDL_IO;
    for (size_t k = 0; from.param && k < o->nparam; k++) {
        char *end;
        double *x = malloc(sizeof *x);
        if (!x)
            break;
        *x = strtod(o->value[k], &end);
        from.param[from.nparam++] = (cdl_numbers){ o->param[k], x, 1 };
    }
    if (!columns_load(&c, path))
        tell(stderr, "cdl: '%s' cannot be verified: %s\n", path, c.wrong);
    else {
        options plain = *o;
        plain.nparam = 0; /* they go to the model itself */
        verdict v = verify_one(&plain, &c, &from);
        report(o, path, &c, &v);
        code = cdl_exit_code(v.status);
        json_decref(v.report);
    }
    columns_free(&c);
    params_free(&from);
    return code;
}

static int verify_path(const options *o, const char *path)
{
    struct stat st;
    if (o->model)
        return verify_model(o, path);
    if (!stat(path, &st) && S_ISDIR(st.st_mode))
        return verify_folder(o, path);
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (stat(path, &st)) {
        tell(stderr, "cdl: cannot read '%s'\n", path);
        return CDL_IO;
    }
    json_t *m = manifest_beside(path, name);
    if (!m) {
        tell(stderr, "cdl: there is no manifest beside '%s': name the model with --model=FILE.cdl\n", path);
        return CDL_USAGE;
    }
    int code = verify_listed(o, m, name, path);
    json_decref(m);
    return code;
}

int verify_main(const options *o)
{
    int code = 0;
    for (size_t k = 0; k < o->nfile && !interrupts_seen(); k++) {
        int one = verify_path(o, o->file[k]);
        code = one > code ? one : code;
    }
    return interrupts_seen() ? cdl_exit_code(CDL_SOLVER) : code;
}
