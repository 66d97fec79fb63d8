/* compiled: the cache is a folder that only its owner may enter, below $XDG_CACHE_HOME or ~/.cache. A file
   in it is named by the hash of its C and of the compiler options; it is created in a temporary folder and
   renamed when it is complete. */
#define _GNU_SOURCE
#include "compiled.h"
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/budget.h"
#include "base/sha256.h"
#include "tool.h"
#include "write.h"

/* files in the cache, and bytes of one: beyond that the oldest go */
enum { CACHE_FILES = 64, COMPILED_MOST = 1 << 28, NAME_ROOM = COMPILED_NAME, PATH_ROOM = 4200 };
#define CODE   "step.so"
#define SOURCE "step.c"

/* the same flags as those of the library, so that the numbers are the same */
static const char *const compiler[] = { "cc",
                                        "-O2",
                                        "-ffp-contract=off",
                                        "-fno-tree-slp-vectorize",
                                        "-fPIC",
                                        "-shared",
                                        "-w",
                                        "-o",
                                        CODE,
                                        SOURCE,
                                        "-lm",
                                        NULL };

/* ---- the folder ---- */
static bool ours_alone(int dir)
{
    struct stat st;
    return !fstat(dir, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077);
}

static int folder_in(int above, const char *name)
{
    if (mkdirat(above, name, 0700) && errno != EEXIST)
        return -1;
    return openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* `path` gets its name */
static int cache_open(char *path, size_t room)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char base[PATH_ROOM - 32];
    bool own = xdg && *xdg == '/';
    int n = own ? snprintf(base, sizeof base, "%s", xdg)
                : snprintf(base, sizeof base, "%s/.cache", home ? home : "");
    if (!own && (!home || *home != '/'))
        return -1;
    if (n < 0 || (size_t)n >= sizeof base || (mkdir(base, 0700) && errno != EEXIST))
        return -1;
    int above = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
        dir = above < 0 ? -1 : folder_in(above, "cdl-native");
    if (above >= 0)
        close(above);
    n = snprintf(path, room, "%s/cdl-native", base);
    if (dir >= 0 && ours_alone(dir) && n > 0 && (size_t)n < room)
        return dir;
    if (dir >= 0)
        close(dir);
    return -1;
}

/* ---- what is in it ---- */
static bool is_code(const char *name)
{
    size_t n = strlen(name);
    return n > 3 && *name != '.' && !strcmp(name + n - 3, ".so");
}

/* removes the least recently used file until there are few enough */
static void cache_trim(int dir)
{
    for (int most = 2 * CACHE_FILES; most > 0; most--) {
        char oldest[NAME_ROOM] = "";
        struct timespec age = { 0, 0 };
        int files = 0, fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *all = fd < 0 ? NULL : fdopendir(fd);
        if (!all)
            return;
        for (struct dirent *e = readdir(all); e; e = readdir(all)) {
            struct stat st;
            if (!is_code(e->d_name) || strlen(e->d_name) >= NAME_ROOM ||
                fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW))
                continue;
            bool older = st.st_mtim.tv_sec < age.tv_sec ||
                         (st.st_mtim.tv_sec == age.tv_sec && st.st_mtim.tv_nsec < age.tv_nsec);
            if (!files++ || older) {
                age = st.st_mtim;
                strcpy(oldest, e->d_name);
            }
        }
        closedir(all);
        if (files <= CACHE_FILES || unlinkat(dir, oldest, 0))
            return;
    }
}

static void *code_open(int dir, const char *path, const char *name, const char *entry, void **handle)
{
    struct stat st;
    char whole[PATH_ROOM + NAME_ROOM];
    snprintf(whole, sizeof whole, "%s/%s", path, name);
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & 022))
        return NULL;
    *handle = dlopen(whole, RTLD_NOW | RTLD_LOCAL);
    void *found = *handle ? dlsym(*handle, entry) : NULL;
    if (!found) {
        compiled_close(*handle);
        *handle = NULL;
    } else
        utimensat(dir, name, NULL, 0); /* it was used */
    return found;
}

/* ---- making it ---- */
static bool source_write(int dir, const char *c, size_t len)
{
    int fd = openat(dir, SOURCE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool ok = true;
    while (len && ok) {
        ssize_t n = write(fd, c, len);
        ok = n > 0 || errno == EINTR;
        if (n > 0) {
            c += n;
            len -= (size_t)n;
        }
    }
    return !close(fd) && ok;
}

/* only a killed compiler leaves files behind */
static void folder_drop(int above, int dir, const char *name)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *all = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *e = all ? readdir(all) : NULL; e; e = readdir(all))
        unlinkat(dir, e->d_name, 0);
    if (all)
        closedir(all);
    close(dir);
    unlinkat(above, name, AT_REMOVEDIR);
}

static bool code_make(int cache, const char *name, const char *c, size_t len, struct budget *b,
                      double seconds)
{
    char folder[NAME_ROOM];
    struct stat st;
    int dir = -1;
    for (unsigned k = 0; k < 1000 && dir < 0; k++) {
        snprintf(folder, sizeof folder, ".make-%ld-%u", (long)getpid(), k);
        if (!mkdirat(cache, folder, 0700))
            dir = openat(cache, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        else if (errno != EEXIST)
            return false;
    }
    if (dir < 0)
        return false;
    bool ok = (!b || budget_write(b, (int64_t)len)) && source_write(dir, c, len) &&
              !process_run(dir, (char *const *)(uintptr_t)compiler, PROCESS_COMPILES, b, seconds) &&
              !fstatat(dir, CODE, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) &&
              (!b || budget_write(b, (int64_t)st.st_size)) && !fchmodat(dir, CODE, 0600, 0) &&
              !renameat(dir, CODE, cache, name);
    folder_drop(cache, dir, folder);
    return ok;
}

void compiled_name(const char *of, size_t len, char name[COMPILED_NAME])
{
    sha256 s;
    char hex[65];
    sha256_start(&s);
    for (size_t k = 0; compiler[k]; k++)
        sha256_put(&s, compiler[k], strlen(compiler[k]) + 1);
    sha256_put(&s, of, len);
    sha256_end(&s, hex);
    snprintf(name, NAME_ROOM, "%s.so", hex);
}

void *compiled_find(const char *name, const char *entry, void **handle)
{
    char path[PATH_ROOM];
    int cache = cache_open(path, sizeof path);
    *handle = NULL;
    if (cache < 0)
        return NULL;
    void *found = code_open(cache, path, name, entry, handle);
    close(cache);
    return found;
}

void *compiled_make(const char *name, const char *c, size_t len, const char *entry, struct budget *b,
                    double seconds, void **handle)
{
    char path[PATH_ROOM];
    int cache = cache_open(path, sizeof path);
    *handle = NULL;
    if (cache < 0)
        return NULL;
    bool made = code_make(cache, name, c, len, b, seconds);
    void *found = made ? code_open(cache, path, name, entry, handle) : NULL;
    if (made)
        cache_trim(cache);
    close(cache);
    return found;
}

char *compiled_bytes(arena *a, const char *c, size_t len, struct budget *b, size_t *n)
{
    char path[PATH_ROOM], name[NAME_ROOM], *bytes = NULL;
    int cache = cache_open(path, sizeof path);
    compiled_name(c, len, name);
    if (cache < 0)
        return NULL;
    file_root in = { .path = path };
    if (file_whole(a, &in, name, COMPILED_MOST, &bytes, n)) {
        bool made = code_make(cache, name, c, len, b, INFINITY);
        if (!made || file_whole(a, &in, name, COMPILED_MOST, &bytes, n))
            bytes = NULL;
        cache_trim(cache);
    }
    close(cache);
    return bytes;
}

void compiled_close(void *handle)
{
    if (handle)
        dlclose(handle);
}
