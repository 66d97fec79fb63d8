/* lsp_files: what names in other texts refer to a declaration: those that are open, and the files of the
   workspace. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lsp.h"

enum {
    FILES_MAX = 2000,    /* limit of the files that are read */
    ENTRIES_MAX = 50000, /* of folders, models or not */
    DEPTH_MAX = 8,       /* of folders */
    FILE_BYTES = 4 << 20 /* longer texts are not written by people */
};

/* ---- files ---- */
static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    if (!strcmp(a, b))
        return true;
    return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* freed by the caller; NULL: it cannot be read, or is too long */
static char *file_text(const char *path, size_t *len)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    char *text = NULL;
    *len = 0;
    if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size <= FILE_BYTES)
        text = malloc((size_t)st.st_size + 1);
    while (text && *len < (size_t)st.st_size) {
        ssize_t n = read(fd, text + *len, (size_t)st.st_size - *len);
        if (n <= 0)
            break;
        *len += (size_t)n;
    }
    if (text)
        text[*len] = 0;
    if (fd >= 0)
        close(fd);
    return text;
}

typedef struct paths {
    char **at;
    size_t n, entries;
} paths;

static void path_add(paths *p, const char *path)
{
    char **more = p->n < FILES_MAX ? realloc(p->at, (p->n + 1) * sizeof *more) : NULL;
    char *copy = more ? strdup(path) : NULL;
    p->at = more ? more : p->at;
    if (copy)
        p->at[p->n++] = copy;
}

static bool is_model(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && !strcmp(name + n - 4, ".cdl");
}

/* links and hidden folders are passed over */
static void folder_walk(paths *p, const char *folder, int depth)
{
    DIR *in = depth < DEPTH_MAX ? opendir(folder) : NULL;
    struct dirent *e;
    while (in && p->n < FILES_MAX && p->entries++ < ENTRIES_MAX && (e = readdir(in))) {
        struct stat st;
        char *path = malloc(strlen(folder) + strlen(e->d_name) + 2);
        if (!path || e->d_name[0] == '.') {
            free(path);
            continue;
        }
        sprintf(path, "%s/%s", folder, e->d_name);
        if (!lstat(path, &st) && S_ISDIR(st.st_mode))
            folder_walk(p, path, depth + 1);
        else if (S_ISREG(st.st_mode) && is_model(e->d_name))
            path_add(p, path);
        free(path);
    }
    if (in)
        closedir(in);
}

/* the files of the workspace; without one, those of the folder of the text and below */
static paths workspace(const server *v, const document *of)
{
    paths p = { 0 };
    const char *slash = of->path ? strrchr(of->path, '/') : NULL;
    char *folder = v->root ? strdup(v->root) : slash ? strndup(of->path, (size_t)(slash - of->path)) : NULL;
    if (folder && *folder)
        folder_walk(&p, folder, 0);
    free(folder);
    return p;
}

static void paths_free(paths *p)
{
    for (size_t k = 0; k < p->n; k++)
        free(p->at[k]);
    free(p->at);
}

/* ---- uses of a declaration ---- */
typedef struct searched {
    server *v;
    const document *home; /* that declares it */
    size_t byte;
    const char *name, *other; /* what it is called, and is to be called; other may be NULL */
    json_t *found;            /* uri: list of ranges */
    const char *wrong;        /* why the other name will not do */
} searched;

static bool spells(const document *d, const cdl_span *at, const char *name)
{
    size_t n = strlen(name);
    return at->end.byte - at->begin.byte == n && at->end.byte <= d->len &&
           !memcmp(d->text + at->begin.byte, name, n);
}

static bool declared_there(const searched *x, cdl *s, size_t byte)
{
    cdl_span at;
    return !cdl_declaration(s, byte, &at) && at.begin.byte == x->byte && same_file(at.file, x->home->path);
}

/* A place of the text that names it, or -1.  clash: the text has a thing of the other name. */
static ptrdiff_t use_find(const searched *x, const document *d, cdl *s, bool *clash)
{
    const cdl_use *use;
    size_t n = cdl_uses(s, &use), ncandidate = 0;
    size_t *candidate = malloc((n + 1) * sizeof *candidate);
    ptrdiff_t found = -1;
    *clash = false;
    for (size_t k = 0; candidate && k < n; k++) {
        if (use[k].library && spells(d, &use[k].at, x->name))
            candidate[ncandidate++] = use[k].at.begin.byte;
        *clash |= x->other && spells(d, &use[k].at, x->other);
    }
    for (size_t k = 0; k < ncandidate && found < 0; k++)
        if (declared_there(x, s, candidate[k]))
            found = (ptrdiff_t)candidate[k];
    free(candidate);
    return found;
}

static void text_search(searched *x, document *d, cdl *s)
{
    bool clash;
    ptrdiff_t byte = use_find(x, d, s, &clash);
    const cdl_use *use;
    if (byte < 0)
        return;
    if (clash)
        x->wrong = "another text that uses this one has the new name already";
    json_t *list = json_array();
    for (size_t k = 0, n = cdl_references(s, (size_t)byte, &use); k < n; k++)
        if (spells(d, &use[k].at, x->name))
            json_array_append_new(list, document_range(d, use[k].at.begin.byte, use[k].at.end.byte));
    json_object_set_new(x->found, d->uri, list);
}

/* Must the text be searched? Only if it contains the name, and uses other texts. */
static bool may_use(const searched *x, const char *text, size_t len)
{
    return memmem(text, len, x->name, strlen(x->name)) && memmem(text, len, "use", 3);
}

/* The text that declares it as other texts read it: from the disk. */
static bool is_saved(const document *d)
{
    size_t len;
    char *text = file_text(d->path, &len);
    bool same = text && len == d->len && !memcmp(text, d->text, len);
    free(text);
    return same;
}

static void candidate(searched *x, document *d, cdl *s)
{
    if (s && !is_saved(x->home))
        x->wrong = "save this text first: others that may use it read what was saved";
    else if (s)
        text_search(x, d, s);
}

static void candidate_open(searched *x, document *d)
{
    if (d != x->home && d->path && may_use(x, d->text, d->len))
        candidate(x, d, document_session(x->v, d));
}

static bool is_open(const server *v, const char *path)
{
    for (size_t k = 0; k < v->ndoc; k++)
        if (v->doc[k]->path && same_file(v->doc[k]->path, path))
            return true;
    return false;
}

static void candidate_file(searched *x, const char *path)
{
    size_t len;
    char *text = is_open(x->v, path) ? NULL : file_text(path, &len);
    document *d = text && may_use(x, text, len) ? document_loose(path, text, len) : NULL;
    if (d) {
        cdl *s = text_session(x->v, d, d->text, d->len);
        candidate(x, d, s);
        cdl_free(s);
        document_free(d);
    }
    free(text);
}

json_t *uses_elsewhere(server *v, const document *home, size_t byte, const char *name, const char *other,
                       const char **wrong)
{
    searched x = { v, home, byte, name, other, json_object(), NULL };
    paths all = { 0 };
    if (home->path)
        all = workspace(v, home);
    for (size_t k = 0; home->path && k < v->ndoc; k++)
        candidate_open(&x, v->doc[k]);
    for (size_t k = 0; k < all.n; k++)
        candidate_file(&x, all.at[k]);
    paths_free(&all);
    *wrong = x.wrong;
    return x.found;
}
