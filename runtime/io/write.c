/* write: files written completely or not at all, and rows of CSV. */
#define _GNU_SOURCE
#include "write.h"
#include <dirent.h>
#include "base/budget.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tool.h"

/* ---- paths ---- */

char *path_join(arena *a, const char *dir, const char *file)
{
    if (!*dir || !strcmp(dir, ".") || *file == '/')
        return arena_strdup(a, file);
    size_t n = strlen(dir);
    return arena_printf(a, dir[n - 1] == '/' ? "%s%s" : "%s/%s", dir, file);
}

const char *error_text(arena *a, int error)
{
    char buf[256] = "";
    if (error == ERROR_OUTSIDE)
        return "it lies outside the folder; --allow-outside permits that";
    if (error == ERROR_SPECIAL)
        return "it is a device, a pipe or a socket";
    if (error == ERROR_DISK_BUDGET)
        return "the limit of --disk is exceeded";
    return arena_strdup(a, strerror_r(error, buf, sizeof buf));
}

/* ---- bytes being written ---- */

static void sink_flush(sink *s)
{
    if (s->n && !s->error && s->budget && !budget_write(s->budget, (int64_t)s->n))
        s->error = ERROR_DISK_BUDGET;
    for (size_t done = 0; done < s->n && !s->error;) {
        ssize_t k = write(s->fd, s->buf + done, s->n - done);
        if (k >= 0) {
            done += (size_t)k;
            s->bytes += k;
        } else if (errno != EINTR)
            s->error = errno;
    }
    s->n = 0;
}

static void sink_put(sink *s, const char *p, size_t n)
{
    while (n && !s->error) {
        size_t k = sizeof s->buf - s->n < n ? sizeof s->buf - s->n : n;
        memcpy(s->buf + s->n, p, k);
        s->n += k;
        p += k;
        n -= k;
        if (s->n == sizeof s->buf)
            sink_flush(s);
    }
}

/* ---- a file being written ---- */

/* A new file in the folder of the path, with a name of its own. It is locked while it is written, so that
   files of killed processes can be recognised; if it is removed as such a file before it is locked, it is
   created again. */
static int open_beside(outfile *f, mode_t mode)
{
    for (unsigned k = 0; k < 1000; k++) {
        struct stat st;
        snprintf(f->temp, sizeof f->temp, "%.200s.%ld-%u.part", f->at.name, (long)getpid(), k);
        f->to.fd = openat(f->at.dir, f->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (f->to.fd < 0 && errno == EEXIST)
            continue;
        if (f->to.fd < 0)
            return errno;
        flock(f->to.fd, LOCK_EX | LOCK_NB);
        if (!fstat(f->to.fd, &st) && st.st_nlink)
            return 0;
        close(f->to.fd);
        f->to.fd = -1;
    }
    return EEXIST;
}

/* what is not a regular file is written directly, where that is allowed */
static int open_place(const file_root *in, outfile *f)
{
    struct stat st;
    int error = place_stat(in, &f->at, &st);
    if (error && error != ENOENT)
        return error;
    bool exists = !error;
    if (exists && !S_ISREG(st.st_mode)) {
        f->to.fd = openat(f->at.dir, f->at.name, O_WRONLY | O_CLOEXEC);
        return f->to.fd < 0 ? errno : 0;
    }
    error = open_beside(f, exists ? st.st_mode & 07777 : 0666);
    if (!error && exists && fchmod(f->to.fd, st.st_mode & 07777))
        return errno;
    return error;
}

/* everything that allocates comes before the file is opened */
outfile *outfile_open(arena *a, const file_root *in, const char *path)
{
    outfile *f = arena_make(a, outfile);
    f->to.budget = arena_budget(a);
    f->to.fd = -1;
    f->to.error = place_find(in, path, true, &f->at);
    if (!f->to.error)
        f->to.error = open_place(in, f);
    f->open = f->to.fd >= 0;
    if (f->open && f->to.budget) {
        f->below = f->to.budget->writing;
        f->to.budget->writing = f;
    }
    if (!f->open)
        place_close(&f->at);
    return f;
}

outfile *outfile_memory(arena *a, text *into)
{
    outfile *f = arena_make(a, outfile);
    f->to.fd = f->at.dir = -1;
    f->into = into;
    return f;
}

void outfile_put(outfile *f, const char *p, size_t n)
{
    if (f->into)
        text_putn(f->into, p, n);
    else
        sink_put(&f->to, p, n);
}

static void outfile_close(outfile *f)
{
    f->open = false;
    if (close(f->to.fd) && !f->to.error)
        f->to.error = errno;
}

static void listed_no_more(outfile *f)
{
    outfile **at = f->to.budget ? &f->to.budget->writing : NULL;
    while (at && *at && *at != f)
        at = &(*at)->below;
    if (at && *at)
        *at = f->below;
}

void outfiles_abort(budget *b, const outfile *last)
{
    while (b->writing && b->writing != last)
        outfile_abort(b->writing);
}

bool outfile_commit(outfile *f)
{
    sink_flush(&f->to);
    if (f->open) {
        listed_no_more(f);
        if (f->temp[0] && !f->to.error && renameat(f->at.dir, f->temp, f->at.dir, f->at.name))
            f->to.error = errno;
        if (f->temp[0] && f->to.error)
            unlinkat(f->at.dir, f->temp, 0);
        outfile_close(f);
        place_close(&f->at);
    }
    return !f->to.error;
}

void outfile_abort(outfile *f)
{
    if (!f->open)
        return;
    listed_no_more(f);
    f->to.n = 0;
    if (f->temp[0])
        unlinkat(f->at.dir, f->temp, 0);
    outfile_close(f);
    place_close(&f->at);
}

void outfile_leave(outfile *f)
{
    if (!f->open)
        return;
    listed_no_more(f);
    f->to.n = 0;
    outfile_close(f);
    place_close(&f->at);
}

int outfile_whole(arena *a, const file_root *in, const char *path, const char *p, size_t n)
{
    outfile *f = outfile_open(a, in, path);
    outfile_put(f, p, n);
    outfile_commit(f);
    return f->to.error;
}

/* Waits until there is something to read, or the end; false: the budget is spent.  A pipe may stay silent. */
static bool readable(int fd, budget *b)
{
    enum { LOOK_EACH = 50 }; /* milliseconds */
    struct pollfd p = { .fd = fd, .events = POLLIN };
    while (fd >= 0 && poll(&p, 1, LOOK_EACH) <= 0)
        if (b && budget_stopping(b))
            return false;
    return true;
}

/* Reads up to this number of bytes; 0, or the error: EINTR if the budget is spent. */
static int read_on(int fd, budget *b, char *to, size_t room, size_t *n)
{
    const size_t piece = 4 << 20;
    while (*n < room) {
        if (!readable(fd, b))
            return EINTR;
        ssize_t k = read(fd, to + *n, room - *n < piece ? room - *n : piece);
        if (k == 0)
            return 0;
        if (k > 0)
            *n += (size_t)k;
        else if (errno != EINTR && errno != EAGAIN)
            return errno;
        if (budget_cuts(b))
            return EINTR;
    }
    return 0;
}

/* a spent budget is no fault of the file */
static void read_ends(arena *a, int error, size_t n)
{
    budget *b = arena_budget(a);
    if (error == EINTR && b && budget_stopping(b)) {
        b->until = 0;
        arena_tick(a, INT32_MAX);
    }
    arena_tick(a, (int64_t)n);
}

int stream_whole(arena *a, int fd, size_t most, char **out, size_t *n)
{
    size_t room = 1 << 14;
    int error = 0;
    *out = arena_alloc(a, room);
    *n = 0;
    while (!(error = read_on(fd, arena_budget(a), *out, room - 1, n)) && *n + 1 == room) {
        if (*n > most)
            return EFBIG;
        char *more = arena_alloc(a, 2 * room);
        memcpy(more, *out, *n);
        *out = more;
        room *= 2;
    }
    read_ends(a, error, *n);
    (*out)[*n] = 0;
    return error ? error : *n > most ? EFBIG : 0;
}

int file_whole(arena *a, const file_root *in, const char *path, size_t most, char **out, size_t *n)
{
    file_place at;
    struct stat st;
    int error = place_find(in, path, false, &at);
    if (!error)
        error = place_stat(in, &at, &st);
    place_close(&at); /* nothing is held across an allocation */
    *n = 0;
    if (error)
        return error;
    /* what has no size of its own (a pipe) may be as long as is allowed */
    size_t room = S_ISREG(st.st_mode) ? (size_t)st.st_size : most;
    if (room > most)
        return EFBIG;
    *out = arena_alloc(a, room + 1);
    int fd = place_open(in, path, O_RDONLY, &error);
    if (!error)
        error = read_on(fd, arena_budget(a), *out, room, n);
    if (fd >= 0)
        close(fd);
    read_ends(a, error, *n);
    (*out)[*n] = 0;
    return error;
}

/* ---- what killed processes left ---- */

static bool is_part(const char *name)
{
    size_t n = strlen(name), digits = strlen("0123456789-");
    if (n < 6 || strcmp(name + n - 5, ".part"))
        return false;
    const char *p = name + n - 5;
    while (p > name && memchr("0123456789-", p[-1], digits))
        p--;
    long pid;
    unsigned k;
    char end[8];
    return p > name && p[-1] == '.' && sscanf(p, "%ld-%u%7s", &pid, &k, end) == 3 && !strcmp(end, ".part");
}

static void part_drop(int dir, const char *name, bool plot)
{
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    bool kind = fd >= 0 && !fstat(fd, &st) && (plot ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode));
    if (kind && !flock(fd, LOCK_EX | LOCK_NB)) {
        if (plot)
            tool_folder_drop(dir, name);
        else
            unlinkat(dir, name, 0);
    }
    if (fd >= 0)
        close(fd);
}

void parts_clean(const file_root *in, const char *path)
{
    file_place at;
    if (place_find(in, path, false, &at))
        return;
    int fd = openat(at.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *x; d && (x = readdir(d));) {
        bool plot = !strncmp(x->d_name, TOOL_FOLDER, strlen(TOOL_FOLDER));
        if (plot || is_part(x->d_name))
            part_drop(at.dir, x->d_name, plot);
    }
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
    place_close(&at);
}

/* ---- files without a name ---- */

int temp_open(arena *a, const char *dir)
{
    const char *tmp = getenv("TMPDIR");
    const char *here = *dir ? dir : ".", *in[] = { tmp && *tmp ? tmp : here, here, "." };
    for (size_t k = 0; k < sizeof in / sizeof *in; k++) {
        char *path = arena_printf(a, "%s/cdl-XXXXXX", in[k]);
        int fd = open(in[k], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (fd >= 0)
            return fd;
        fd = mkostemp(path, O_CLOEXEC); /* file systems without unnamed files */
        if (fd >= 0) {
            unlink(path);
            return fd;
        }
    }
    return -1;
}

spool *spool_new(arena *a, const char *dir)
{
    spool *s = arena_make(a, spool);
    s->to.budget = arena_budget(a);
    s->to.fd = temp_open(a, dir);
    if (s->to.fd < 0)
        s->to.error = errno;
    return s;
}

void spool_put(spool *s, const char *p, size_t n)
{
    sink_put(&s->to, p, n);
}

bool spool_read(spool *s, int64_t at, char *p, size_t n)
{
    sink_flush(&s->to);
    while (n && !s->to.error) {
        ssize_t k = pread(s->to.fd, p, n, (off_t)at);
        if (k > 0) {
            p += k;
            at += k;
            n -= (size_t)k;
        } else if (k == 0)
            s->to.error = EIO;
        else if (errno != EINTR)
            s->to.error = errno;
    }
    return !s->to.error;
}

void spool_close(spool *s)
{
    if (!s || s->to.fd < 0)
        return;
    close(s->to.fd);
    s->to.fd = -1;
}

/* ---- CSV ---- */

void csv_field(text *out, const char *p, size_t n)
{
    bool plain = true;
    for (size_t k = 0; k < n; k++)
        plain = plain && !strchr(",\"\r\n", p[k]);
    if (plain) {
        text_putn(out, p, n);
        return;
    }
    text_putc(out, '"');
    for (size_t k = 0; k < n; k++) {
        if (p[k] == '"')
            text_putc(out, '"');
        text_putc(out, p[k]);
    }
    text_putc(out, '"');
}

void csv_row(text *out, const double *x, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        if (k)
            text_putc(out, ',');
        text_num(out, x[k]);
    }
    text_putc(out, '\n');
}
