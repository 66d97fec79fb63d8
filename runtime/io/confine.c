/* confine: files below a folder. */
#define _GNU_SOURCE
#include "confine.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_LINKS = 40, FOLDER = O_PATH | O_DIRECTORY | O_CLOEXEC };

/* ---- texts of paths ---- */

/* the first component: its length, and where the next one begins */
static size_t component(const char *path, const char **next)
{
    size_t n = strcspn(path, "/");
    *next = path + n + strspn(path + n, "/");
    return n;
}

static bool is_here(const char *p, size_t n)
{
    return n == 0 || (n == 1 && p[0] == '.');
}

static bool is_up(const char *p, size_t n)
{
    return n == 2 && p[0] == '.' && p[1] == '.';
}

bool path_stays(const char *path)
{
    int depth = 0;
    if (*path == '/')
        return false;
    for (const char *next; *path; path = next) {
        size_t n = component(path, &next);
        if (is_up(path, n))
            depth--;
        else if (!is_here(path, n))
            depth++;
        if (depth < 0)
            return false;
    }
    return true;
}

/* all folders of a path that the user gave; what is there already is no error */
static int make_dirs(char *path, bool last)
{
    for (char *p = path; *p; p++) {
        if (p == path || *p != '/')
            continue;
        *p = 0;
        int failed = mkdir(path, 0777) && errno != EEXIST ? errno : 0;
        *p = '/';
        if (failed)
            return failed;
    }
    return last && *path && mkdir(path, 0777) && errno != EEXIST ? errno : 0;
}

/* ---- below the folder ---- */

/* A path that is being resolved. `done` contains no links, so the parent folder is the part before its last
   slash. */
typedef struct walk {
    int root, dir;
    int links;
    char done[PATH_MAX], todo[PATH_MAX];
} walk;

static int walk_down(walk *w, const char *name, bool make)
{
    if (strlen(w->done) + strlen(name) + 2 > sizeof w->done)
        return ENAMETOOLONG;
    int dir = openat(w->dir, name, FOLDER | O_NOFOLLOW);
    if (dir < 0 && errno == ENOENT && make) {
        if (mkdirat(w->dir, name, 0777) && errno != EEXIST)
            return errno;
        dir = openat(w->dir, name, FOLDER | O_NOFOLLOW);
    }
    if (dir < 0)
        return errno;
    close(w->dir);
    w->dir = dir;
    strcat(w->done, name);
    strcat(w->done, "/");
    return 0;
}

/* down again from the root: ".." of a folder that was moved meanwhile could lead anywhere */
static int walk_up(walk *w)
{
    char kept[PATH_MAX], name[NAME_MAX + 1];
    size_t n = strlen(w->done);
    if (n == 0)
        return ERROR_OUTSIDE;
    for (n--; n > 0 && w->done[n - 1] != '/';)
        n--;
    memcpy(kept, w->done, n);
    kept[n] = 0;
    int dir = openat(w->root, ".", FOLDER);
    if (dir < 0)
        return errno;
    close(w->dir);
    w->dir = dir;
    w->done[0] = 0;
    for (const char *p = kept, *next; *p; p = next) {
        size_t len = component(p, &next);
        memcpy(name, p, len);
        name[len] = 0;
        int error = walk_down(w, name, false);
        if (error)
            return error;
    }
    return 0;
}

/* The target of a link replaces its name; 0 if the name is not a link. */
static int walk_link(walk *w, const char *name, const char *rest, bool *was_link)
{
    char to[PATH_MAX], all[2 * PATH_MAX];
    ssize_t n = readlinkat(w->dir, name, to, sizeof to - 1);
    *was_link = n >= 0;
    if (n < 0)
        return 0;
    to[n] = 0;
    if (to[0] == '/')
        return ERROR_OUTSIDE;
    if (++w->links > MOST_LINKS)
        return ELOOP;
    int len = snprintf(all, sizeof all, *rest ? "%s/%s" : "%s", to, rest);
    if (len < 0 || (size_t)len >= sizeof w->todo)
        return ENAMETOOLONG;
    memcpy(w->todo, all, (size_t)len + 1);
    return 0;
}

/* to the folder of the last component, whose name is written to `name` */
static int walk_all(walk *w, bool make, char name[NAME_MAX + 1])
{
    for (;;) {
        const char *next;
        bool was_link = false;
        int error;
        size_t n = component(w->todo, &next);
        bool last = !w->todo[n]; /* a path that ends in a slash names a folder */
        if (n > NAME_MAX)
            return ENAMETOOLONG;
        memcpy(name, w->todo, n);
        name[n] = 0;
        if (last && (is_here(name, n) || is_up(name, n)))
            return is_up(name, n) && !*w->done ? ERROR_OUTSIDE : EISDIR;
        if (is_here(name, n))
            error = 0;
        else if (is_up(name, n))
            error = walk_up(w);
        else {
            error = walk_link(w, name, next, &was_link);
            if (!error && !was_link && last)
                return 0;
            if (!error && !was_link)
                error = walk_down(w, name, make);
        }
        if (error)
            return error;
        if (!was_link)
            memmove(w->todo, next, strlen(next) + 1);
    }
}

static int find_below(const file_root *in, const char *path, bool make, file_place *out)
{
    walk w = { .dir = -1 };
    char root[PATH_MAX];
    if (!path_stays(path))
        return ERROR_OUTSIDE;
    if (strlen(path) >= sizeof w.todo || strlen(in->path) >= sizeof root)
        return ENAMETOOLONG;
    strcpy(w.todo, path);
    strcpy(root, in->path);
    int error = make ? make_dirs(root, true) : 0;
    if (error)
        return error;
    w.root = open(*in->path ? in->path : ".", FOLDER);
    if (w.root < 0)
        return errno;
    w.dir = openat(w.root, ".", FOLDER);
    error = w.dir < 0 ? errno : walk_all(&w, make, out->name);
    close(w.root);
    if (error && w.dir >= 0)
        close(w.dir);
    out->dir = error ? -1 : w.dir;
    return error;
}

/* ---- anywhere ---- */

/* a link stays a link: its target is written */
static int find_anywhere(const file_root *in, const char *path, bool make, file_place *out)
{
    char full[PATH_MAX], real[PATH_MAX];
    bool joined = *in->path && *path != '/';
    int n = snprintf(full, sizeof full, "%s%s%s", joined ? in->path : "", joined ? "/" : "", path);
    if (n < 0 || (size_t)n >= sizeof full)
        return ENAMETOOLONG;
    if (make && realpath(full, real))
        strcpy(full, real);
    int error = make ? make_dirs(full, false) : 0;
    if (error)
        return error;
    char *slash = strrchr(full, '/'), *name = slash ? slash + 1 : full;
    if (!*name)
        return EISDIR;
    if (strlen(name) > NAME_MAX)
        return ENAMETOOLONG;
    strcpy(out->name, name);
    *name = 0;
    out->dir = open(*full ? full : ".", FOLDER);
    return out->dir < 0 ? errno : 0;
}

/* ---- places ---- */

int place_find(const file_root *in, const char *path, bool make, file_place *out)
{
    out->dir = -1;
    if (!*path)
        return ENOENT;
    return in->open ? find_anywhere(in, path, make, out) : find_below(in, path, make, out);
}

void place_close(file_place *p)
{
    if (p->dir >= 0)
        close(p->dir);
    p->dir = -1;
}

int place_stat(const file_root *in, const file_place *p, struct stat *st)
{
    if (fstatat(p->dir, p->name, st, in->open ? 0 : AT_SYMLINK_NOFOLLOW))
        return errno;
    if (S_ISDIR(st->st_mode))
        return EISDIR;
    return in->open || S_ISREG(st->st_mode) ? 0 : ERROR_SPECIAL;
}

/* the kind is checked again once it is open: it may have been replaced in between */
int place_open(const file_root *in, const char *path, int flags, int *error)
{
    file_place p;
    struct stat st;
    int fd = -1;
    bool make = (flags & O_CREAT) != 0;
    /* a pipe may have no other end yet: the reader waits, and checks the time */
    if ((flags & O_ACCMODE) == O_RDONLY)
        flags |= O_NONBLOCK;
    *error = place_find(in, path, make, &p);
    if (!*error)
        *error = place_stat(in, &p, &st);
    if (*error == ENOENT && make && p.dir >= 0)
        *error = 0;
    if (!*error) {
        fd = openat(p.dir, p.name, flags | O_CLOEXEC | (in->open ? 0 : O_NOFOLLOW | O_NONBLOCK), 0666);
        if (fd < 0)
            *error = errno;
        else if (!in->open && (fstat(fd, &st) || !S_ISREG(st.st_mode)))
            *error = ERROR_SPECIAL;
        else if (!in->open && (flags & O_ACCMODE) != O_RDONLY && st.st_nlink > 1)
            *error = EMLINK; /* its other name may lie outside */
    }
    place_close(&p);
    if (*error && fd >= 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

void place_unlink(const file_root *in, const char *path)
{
    file_place p;
    if (!place_find(in, path, false, &p))
        unlinkat(p.dir, p.name, 0);
    place_close(&p);
}
