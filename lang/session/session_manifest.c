/* session_manifest: manifest.json, which holds all that is needed to run again what was run: texts,
   parameters, seed, versions; and what came out of it: files with their hashes, measures and expectations
   with their values. */
#define _GNU_SOURCE
#include <gnu/libc-version.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "session.h"
#include "base/sha256.h"

/* ---- what is collected on the way ---- */

void manifest_record(session *s, const char *json, size_t n)
{
    if (s->now.report || strcmp(s->option[OPTION_MANIFEST], "no")) /* else nobody reads them */
        *vec_push(s->a, &s->tally.records) = arena_strndup(s->a, json, n);
}

void manifest_text(session *s, const char *name, const char *text_, size_t len, bool file)
{
    *vec_push(s->a, &s->tally.given) = (given_text){ arena_strdup(s->a, name),
                                                     arena_strndup(s->a, text_, len), len, file };
}

/* ---- texts and their places ---- */

typedef struct {
    const char *role, *path, *name, *text;
    size_t len;
    bool inside;
} origin;
typedef vec(origin) origins;

static const char *real_path(session *s, const char *path)
{
    char buf[PATH_MAX];
    return arena_strdup(s->tmp, realpath(path, buf) ? buf : path);
}

static bool below(const char *path, const char *dir, const char **rest)
{
    size_t n = strlen(dir);
    if (!n || strncmp(path, dir, n) || path[n] != '/')
        return false;
    *rest = path + n + 1;
    return true;
}

static origin module_origin(session *s, const module *m, const source *from)
{
    const char *dirs[] = { s->option[OPTION_STDLIB], CDL_STDLIB_SRC, CDL_STDLIB_DIR }, *rest;
    for (size_t k = 0; k < 3; k++)
        if (below(m->path, dirs[k], &rest))
            return (origin){ "library", rest, m->path, from->text, from->len, true };
    return (origin){ "module", real_path(s, m->path), m->path, from->text, from->len, false };
}

static origins origins_find(session *s)
{
    origins all = { 0 };
    char cwd[PATH_MAX];
    if (!getcwd(cwd, sizeof cwd))
        strcpy(cwd, "/");
    for (size_t k = 0; k < s->tally.given.n; k++) {
        const given_text *g = &s->tally.given.at[k];
        const char *path = g->file ? real_path(s, g->name)
                                   : arena_printf(s->tmp, "%s/text-%zu.cdl", cwd, k + 1);
        *vec_push(s->tmp,
                  &all) = (origin){ g->file ? "main" : "text", path, g->name, g->text, g->len, false };
    }
    for (size_t k = 0; k < s->loaded.all.n; k++) {
        const module *m = s->loaded.all.at[k];
        for (size_t i = s->d->sources.n; m != s->main && i-- > 1;) {
            if (strcmp(s->d->sources.at[i]->name, m->path))
                continue;
            *vec_push(s->tmp, &all) = module_origin(s, m, s->d->sources.at[i]);
            break;
        }
        for (size_t i = 0; i < m->data.n; i++) {
            const data_file *f = &m->data.at[i];
            *vec_push(s->tmp,
                      &all) = (origin){ "data", real_path(s, f->path), f->path, f->text, f->len, false };
        }
    }
    *vec_push(s->tmp, &all) = (origin){ "directory", arena_printf(s->tmp, "%s/", cwd), "", "", 0, false };
    return all;
}

/* the folder that holds them all: paths are relative to it */
static size_t common_root(const origins *all)
{
    const char *first = NULL;
    size_t n = 0;
    for (size_t k = 0; k < all->n; k++) {
        const origin *o = &all->at[k];
        size_t i = 0;
        if (o->inside)
            continue;
        if (!first) {
            first = o->path;
            n = strlen(first);
        }
        while (i < n && o->path[i] == first[i])
            i++;
        n = i;
        while (n && first[n - 1] != '/')
            n--;
    }
    return n;
}

/* ---- JSON ---- */

static void put_key(text *t, const char *key)
{
    text_json_str(t, key, strlen(key));
    text_puts(t, ": ");
}

static void put_text(text *t, const char *key, const char *v)
{
    put_key(t, key);
    text_json_str(t, v, strlen(v));
}

static void put_sources(session *s, text *t)
{
    origins all = origins_find(s);
    size_t root = common_root(&all), last = all.n - 1;
    char hex[65];
    put_text(t, "directory", all.at[last].path + root);
    text_puts(t, ",\n  \"sources\": [");
    for (size_t k = 0; k < last; k++) {
        const origin *o = &all.at[k];
        text_puts(t, k ? ",\n    {" : "\n    {");
        put_text(t, "role", o->role);
        text_puts(t, ", ");
        put_text(t, "path", o->inside ? o->path : o->path + root);
        text_puts(t, ", ");
        put_text(t, "name", o->name);
        sha256_of(o->text, o->len, hex);
        text_puts(t, ", ");
        put_text(t, "sha256", hex);
        text_puts(t, ", \"text\": ");
        text_json_str(t, o->text, o->len);
        text_putc(t, '}');
    }
    text_puts(t, "\n  ]");
}

/* machines of one class give the same bytes: the kind of processor with what libm and BLAS choose their code
 * by, and libc */
static void put_host(text *t)
{
    struct utsname u;
    if (uname(&u)) {
        strcpy(u.sysname, "unknown");
        strcpy(u.machine, "unknown");
    }
    text all = { .a = t->a };
    text_printf(&all, "%s %s", u.sysname, u.machine);
#if defined __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2"))
        text_puts(&all, " avx2");
    if (__builtin_cpu_supports("fma"))
        text_puts(&all, " fma");
    if (__builtin_cpu_supports("avx512f"))
        text_puts(&all, " avx512f");
#endif
    text_printf(&all, ", glibc %s", gnu_get_libc_version());
    put_text(t, "host", all.at);
}

static void put_params(session *s, text *t)
{
    put_key(t, "parameters");
    text_putc(t, '{');
    for (size_t k = 0; k < s->params.n; k++) {
        if (k)
            text_puts(t, ", ");
        put_text(t, s->params.at[k].name, s->params.at[k].text);
    }
    text_putc(t, '}');
}

static void put_models(session *s, text *t)
{
    put_key(t, "models");
    text_putc(t, '[');
    for (size_t k = 0; k < s->tally.programs.n; k++) {
        text_printf(t, "%s{", k ? ", " : "");
        put_text(t, "name", s->tally.programs.at[k].model);
        text_printf(t, ", \"ir\": \"%016llx\"}", (unsigned long long)s->tally.programs.at[k].hash);
    }
    text_putc(t, ']');
}

/* files in the output directory by their names in it */
static void put_files(session *s, text *t)
{
    put_key(t, "files");
    text_putc(t, '[');
    for (size_t k = 0; k < s->tally.made.n; k++) {
        const made_file *m = &s->tally.made.at[k];
        text_puts(t, k ? ",\n    {" : "\n    {");
        put_text(t, "path", m->path);
        text_puts(t, ", ");
        put_text(t, "sha256", m->sha);
        text_printf(t, ", \"bytes\": %lld, ", (long long)m->bytes);
        put_text(t, "kind", m->kind);
        text_putc(t, '}');
    }
    text_puts(t, s->tally.made.n ? "\n  ]" : "]");
}

void manifest_program(session *s, const program *p)
{
    for (size_t k = 0; k < s->tally.programs.n; k++)
        if (s->tally.programs.at[k].hash == p->hash && !strcmp(s->tally.programs.at[k].model, p->model))
            return;
    *vec_push(s->a, &s->tally.programs) = (kept_program){ p->model, p->hash };
}

void manifest_put(session *s, text *t, const char *name)
{
    text_puts(t, "{\n  \"manifest\": 1, ");
    put_text(t, "name", name);
    text_puts(t, ",\n  \"cdl\": ");
    version_json(t);
    text_puts(t, ",\n  ");
    put_host(t);
    text_puts(t, ",\n  ");
    put_params(s, t);
    text_printf(t, ",\n  \"keep_going\": %s, \"interactive\": %s, ",
                session_is(s, OPTION_KEEP_GOING) ? "true" : "false",
                session_is(s, OPTION_INTERACTIVE) ? "true" : "false");
    if (s->now.seeded)
        text_printf(t, "\"seed\": %lld,\n  ", (long long)s->now.seed);
    else
        text_puts(t, "\"seed\": null,\n  ");
    put_models(s, t);
    text_puts(t, ",\n  ");
    put_sources(s, t);
    text_puts(t, ",\n  \"runs\": [");
    for (size_t k = 0; k < s->tally.records.n; k++)
        text_printf(t, "%s\n    %s", k ? "," : "", s->tally.records.at[k]);
    text_printf(
        t,
        "\n  ],\n  \"expectations\": {\"met\": %zu, \"missed\": %zu, \"skipped\": %zu}, \"status\": %d,\n  ",
        s->tally.met, s->tally.missed, s->tally.skipped, cdl_exit_code(s->tally.total));
    put_files(s, t);
    text_puts(t, "\n}\n");
}

/* bounce.csv -> bounce, zeno.svg.csv (the numbers of a picture) -> zeno */
static size_t stem_length(const char *path)
{
    static const char *const pictures[] = { ".svg", ".png", ".pdf" };
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    size_t n = dot && dot > name ? (size_t)(dot - path) : strlen(path);
    for (size_t k = 0; dot && k < 3; k++)
        if (n > (size_t)(name - path) + 4 && !memcmp(path + n - 4, pictures[k], 4))
            return n - 4;
    return n;
}

/* in the folder that the user named; otherwise beside the first file, under a name that follows from it */
static const char *manifest_name(session *s)
{
    const char *name = s->option[OPTION_MANIFEST];
    if (*s->option[OPTION_OUTPUT] || strcmp(name, "manifest.json") || !s->tally.made.n)
        return name;
    const char *first = s->tally.made.at[0].path;
    return arena_printf(s->tmp, "%.*s.manifest.json", (int)stem_length(first), first);
}

void manifest_write(session *s)
{
    text t = { .a = s->tmp };
    const char *name = s->option[OPTION_MANIFEST];
    bool wanted = *name && strcmp(name, "no") && !*s->option[OPTION_SHARD];
    bool named = *s->option[OPTION_OUTPUT] && s->tally.records.n;
    if (!wanted || (!s->tally.made.n && !named))
        return;
    name = manifest_name(s);
    manifest_put(s, &t, name);
    file_root out = session_folder(s);
    int error = outfile_whole(s->tmp, &out, name, t.at, t.n);
    if (error)
        diag_error(s->d, DIAG_IO, SPAN_NONE, "cannot write '%s': %s", session_path(s, name),
                   error_text(s->tmp, error));
    session_flush(s);
}

cdl_status cdl_hash_file(const char *path, char hex[65], int (*interrupted)(void *ud), void *ud)
{
    int error, fd = place_open(&(file_root){ "", true }, path, O_RDONLY | O_NONBLOCK, &error);
    if (fd < 0)
        return CDL_IO;
    struct stat st;
    error = fstat(fd, &st) || !S_ISREG(st.st_mode) || sha256_fd(fd, hex, interrupted, ud);
    close(fd);
    return error ? CDL_IO : CDL_OK;
}
