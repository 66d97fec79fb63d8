/* load: reads files, collects definitions and imports modules. */
#include "load.h"
#include <errno.h>
#include <string.h>
#include <dirent.h>
#include <sys/stat.h>
#include "io/write.h"
#include "syntax/parse.h"

/* ---- bytes ---- */

static bool read_failed(modules *l, const char *path, span at, const char *why)
{
    diag_error(l->d, DIAG_IO, at, "cannot read '%s': %s", path, why);
    return false;
}

/* why a path was refused, and what to do: an error of the text if the text alone shows it */
static bool read_outside(modules *l, const file_root *in, const char *name, const char *shown, span at)
{
    diag *e = diag_error(l->d, path_stays(name) ? DIAG_IO : DIAG_OUTSIDE, at,
                         "'%s' lies outside the folder of the model", shown);
    diag_hint(l->d, e, "files are read below '%s'; --allow-outside permits others",
              *in->path ? in->path : ".");
    return false;
}

bool load_bytes(modules *l, const file_root *in, const char *name, const char *shown, span at,
                const char **out, size_t *len)
{
    char *p = NULL;
    int error = file_whole(l->a, in, name, SOURCE_MAX_BYTES, &p, len);
    *out = p;
    if (error == ERROR_OUTSIDE)
        return read_outside(l, in, name, shown, at);
    if (error == EFBIG) {
        diag_error(l->d, DIAG_LIMIT, at, "'%s' is longer than %d MB", shown, SOURCE_MAX_BYTES >> 20);
        return false;
    }
    return error ? read_failed(l, shown, at, error_text(l->a, error)) : true;
}

/* ---- definitions ---- */

def *module_find(const module *m, sym name)
{
    uint64_t *k = map64_get(&m->defs, sym_key(name));
    if (k)
        return (def *)(uintptr_t)*k;
    for (size_t i = 0; i < m->open.n; i++)
        if ((k = map64_get(&m->open.at[i]->defs, sym_key(name))))
            return (def *)(uintptr_t)*k;
    return NULL;
}

void module_names(scope *s, near *n)
{
    module *m = (module *)s;
    for (size_t i = 0; i < m->order.n; i++)
        near_try(n, m->order.at[i]->name);
    for (size_t i = 0; i < m->open.n; i++)
        module_names(&m->open.at[i]->base, n);
}

module *module_new(modules *l, const char *path)
{
    module *m = arena_make(l->a, module);
    m->base = (scope){ .up = l->outer, .find = l->find, .names = module_names, .of = l->ud };
    m->path = arena_strdup(l->a, path);
    m->root = (file_root){ "", l->anywhere };
    m->within = "";
    m->defs.a = l->a;
    *vec_push(l->a, &l->all) = m;
    return m;
}

static void duplicate(modules *l, const def *old, sym name, span at)
{
    diag *e = diag_error(l->d, DIAG_DUPLICATE, at, "'%s' is defined twice", name);
    if (old->at)
        diag_second(l->d, e, old->at->name_at.file ? old->at->name_at : old->at->at, "defined here already");
}

def *module_define(modules *l, module *m, def_kind kind, sym name, const ast *at, span name_at)
{
    uint64_t *k = map64_put(&m->defs, sym_key(name));
    def *old = (def *)(uintptr_t)*k;
    if (old && !l->replace && kind != DEF_RUN) {
        duplicate(l, old, name, name_at);
        return old;
    }
    if (old && l->shadow)
        l->shadow(l->ud, old);
    def *d = arena_make(l->a, def);
    *d = (def){ .kind = kind, .name = name, .at = at, .in = m };
    *map64_put(&m->defs, sym_key(name)) = (uint64_t)(uintptr_t)d;
    if (!old) {
        *vec_push(l->a, &m->order) = d;
        return d;
    }
    for (size_t i = 0; i < m->order.n; i++)
        if (m->order.at[i] == old)
            m->order.at[i] = d;
    return d;
}

/* ---- use ---- */

static bool module_take_file(modules *l, module *m, span at);

static bool readable(const char *path)
{
    struct stat st;
    return !stat(path, &st) && !S_ISDIR(st.st_mode);
}

/* where libraries lie: the folder that was named, or that of the source tree and then the installed one
 */
size_t library_folders(const modules *l, const char *dirs[2])
{
    bool named = l->stdlib && *l->stdlib;
    dirs[0] = named ? l->stdlib : CDL_STDLIB_SRC;
    dirs[1] = CDL_STDLIB_DIR;
    return named ? 1 : 2;
}

/* a regular file in a folder */
typedef struct {
    file_root root;
    const char *within, *shown;
} origin;

/* std.planar -> planar.cdl in the given library, otherwise in the one beside the source, otherwise in the
   installed one */
static origin library_origin(modules *l, const char *name)
{
    const char *dirs[2];
    size_t n = library_folders(l, dirs);
    char *file = arena_printf(l->a, "%s.cdl", name);
    origin o = { .within = file };
    for (char *p = file; *p && strcmp(p, ".cdl"); p++)
        if (*p == '.')
            *p = '/';
    for (size_t k = 0; k < n; k++) {
        o.root = (file_root){ dirs[k], l->anywhere };
        o.shown = path_join(l->a, dirs[k], file);
        if (readable(o.shown))
            break;
    }
    return o;
}

static const char *sibling(arena *a, const char *file, const char *name)
{
    const char *slash = strrchr(file, '/');
    return slash ? path_join(a, arena_strndup(a, file, (size_t)(slash - file)), name) : name;
}

const char *module_beside(arena *a, const module *m, const char *name, const char **within)
{
    *within = sibling(a, m->within, name);
    return m->path[0] == '<' ? name : sibling(a, m->path, name);
}

module *module_of(scope *s)
{
    return s && s->names == module_names ? (module *)s : NULL;
}

void module_data(arena *a, module *m, const char *path, const char *bytes, size_t len)
{
    size_t k = 0;
    while (k < m->data.n && strcmp(m->data.at[k].path, path))
        k++;
    *(k < m->data.n ? &m->data.at[k] : vec_push(a, &m->data)) = (data_file){ path, bytes, len };
}

static module *module_by_path(modules *l, const char *path)
{
    struct stat a, b;
    if (stat(path, &a))
        return NULL;
    for (size_t k = 0; k < l->all.n; k++) {
        const char *p = l->all.at[k]->path;
        if (p[0] != '<' && !stat(p, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
            return l->all.at[k];
    }
    return NULL;
}

/* a.cdl -> b.cdl -> a.cdl: from the module that is used again down to the one that uses it */
static void chain_put(text *t, const module *from, const module *to)
{
    if (from != to && from->from)
        chain_put(t, from->from, to);
    text_printf(t, "%s -> ", from->path);
}

static void cycle_report(modules *l, const module *m, const module *again, span at)
{
    text t = { .a = l->a };
    chain_put(&t, m, again);
    diag_error(l->d, DIAG_CYCLE, at, "files use each other in a circle: %s%s", t.at, again->path);
}

/* the libraries of a folder; names are collected first, as no memory is allocated while the folder is open
 */
static void library_names(modules *l, const char *path, near *n)
{
    enum { MOST = 64, LONGEST = 64 };
    char(*name)[LONGEST] = arena_alloc(l->a, MOST * LONGEST);
    int count = 0;
    DIR *d = opendir(path);
    for (struct dirent *f; d && count < MOST && (f = readdir(d));) {
        size_t len = strlen(f->d_name);
        if (len < 5 || len >= LONGEST || strcmp(f->d_name + len - 4, ".cdl"))
            continue;
        memcpy(name[count], f->d_name, len - 4);
        name[count++][len - 4] = 0;
    }
    if (d)
        closedir(d);
    for (int i = 0; i < count; i++)
        near_try(n, name[i]);
}

static void library_missing(modules *l, const ast *use, const char *name, const char *path)
{
    diag *e = diag_error(l->d, DIAG_IMPORT, use->at, "there is no library '%.*s'", (int)use->len, use->text);
    near n = near_to(name);
    const char *dirs[2];
    for (size_t k = library_folders(l, dirs); k-- > 0;)
        library_names(l, dirs[k], &n);
    if (near_best(&n)) {
        diag_hint(l->d, e, "did you mean 'std.%s'?", near_best(&n));
        diag_replace(l->d, e, name, near_best(&n));
    } else
        diag_hint(l->d, e, "it would be the file %s", path);
}

/* the path is checked before anything is read: a refused path reveals nothing about the file */
static module *module_bring(modules *l, module *m, const ast *use, const origin *o)
{
    file_place at;
    int error = place_find(&o->root, o->within, false, &at);
    place_close(&at);
    if (error == ERROR_OUTSIDE) {
        read_outside(l, &o->root, o->within, o->shown, use->at);
        return NULL;
    }
    module *got = module_by_path(l, o->shown);
    if (got && got->state == MODULE_LOADING) {
        cycle_report(l, m, got, use->at);
        return NULL;
    }
    if (got)
        return got;
    got = module_new(l, o->shown);
    got->from = m;
    got->root = o->root;
    got->within = o->within;
    return module_take_file(l, got, use->at) ? got : NULL;
}

/* the last word of std.planar, or the stem of a file */
static sym use_name(modules *l, const ast *use)
{
    if (use->name)
        return use->name;
    const char *p = use->text, *end = p + use->len;
    char stop = use->num != 0 ? '/' : '.';
    for (const char *c = p; c < end; c++)
        if (*c == stop)
            p = c + 1;
    if (use->num != 0 && end - p > 4 && !memcmp(end - 4, ".cdl", 4))
        end -= 4;
    return sym_of(l->names, p, (size_t)(end - p));
}

static void use_read(modules *l, module *m, const ast *use)
{
    const char *name = arena_strndup(l->a, use->text, use->len);
    origin o = { .root = m->root };
    if (use->num != 0)
        o.shown = module_beside(l->a, m, name, &o.within);
    else if (strncmp(name, "std.", 4)) {
        diag *e = diag_error(l->d, DIAG_IMPORT, use->at, "there is no library '%s'", name);
        diag_hint(l->d, e, "libraries are named std.x; a file is imported by its path: use \"x.cdl\" as x");
        return;
    } else {
        o = library_origin(l, name + 4);
        if (!readable(o.shown)) {
            library_missing(l, use, name + 4, o.shown);
            return;
        }
    }
    module *got = module_bring(l, m, use, &o);
    if (!got)
        return;
    def *d = module_define(l, m, DEF_MODULE, use_name(l, use), use, use->at);
    d->used = got;
    if (use->name)
        return;
    for (size_t k = 0; k < m->open.n; k++)
        if (m->open.at[k] == got)
            return;
    *vec_push(l->a, &m->open) = got;
}

/* ---- texts ---- */

static void collect_binds(modules *l, module *m, def_kind kind, const ast *list)
{
    for (uint32_t k = 0; k < list->n; k++)
        if (list->kid[k]->name)
            module_define(l, m, kind, list->kid[k]->name, list->kid[k], list->kid[k]->name_at);
}

static void collect(modules *l, module *m, const ast *e)
{
    switch (e->kind) {
    case AST_USE:
        use_read(l, m, e);
        /* without it, any name may be one of its definitions */
        if (!module_find(m, use_name(l, e)))
            l->d->doubt_all = true;
        break;
    case AST_MODEL:
        module_define(l, m, DEF_MODEL, e->name, e, e->name_at);
        break;
    case AST_FN:
        module_define(l, m, DEF_FN, e->name, e, e->name_at);
        break;
    case AST_LET:
        collect_binds(l, m, DEF_LET, e->kid[0]);
        break;
    case AST_PARAM:
        collect_binds(l, m, DEF_PARAM, e->kid[0]);
        break;
    default:
        break;
    }
}

/* valid statements are used, so that an error in one does not hide errors in others */
static void module_take(modules *l, module *m, uint32_t file)
{
    size_t errors = l->d->errors;
    m->state = MODULE_LOADING;
    m->file = parse_source(l->a, l->names, l->d, file);
    for (uint32_t k = 0; k < m->file->n; k++)
        collect(l, m, m->file->kid[k]);
    m->state = l->d->errors == errors ? MODULE_READY : MODULE_BAD;
}

void module_read(modules *l, module *m, const char *name, const char *text_, size_t len)
{
    if (len > SOURCE_MAX_BYTES) {
        diag_error(l->d, DIAG_LIMIT, SPAN_NONE, "%s is longer than %d MB", name, SOURCE_MAX_BYTES >> 20);
        m->state = MODULE_BAD;
        return;
    }
    module_take(l, m, diags_add_source(l->d, name, text_, len));
}

static bool module_take_file(modules *l, module *m, span at)
{
    const char *bytes;
    size_t len;
    if (!load_bytes(l, &m->root, m->within, m->path, at, &bytes, &len)) {
        m->state = MODULE_BAD;
        return false;
    }
    module_read(l, m, m->path, bytes, len);
    return true;
}

/* a file named by the user may be anywhere; files that it uses must be below its folder */
void module_place(modules *l, module *m, const char *path)
{
    const char *slash = strrchr(path, '/');
    m->path = arena_strdup(l->a, path);
    m->root.path = slash ? arena_strndup(l->a, path, (size_t)(slash - path) + (slash == path)) : "";
    m->root.open = l->anywhere;
    m->within = arena_strdup(l->a, slash ? slash + 1 : path);
}

bool module_read_file(modules *l, module *m, const char *path, span at)
{
    static const file_root anywhere = { "", true };
    const char *bytes;
    size_t len;
    module_place(l, m, path);
    if (!load_bytes(l, &anywhere, path, path, at, &bytes, &len)) {
        m->state = MODULE_BAD;
        return false;
    }
    module_read(l, m, path, bytes, len);
    return true;
}
