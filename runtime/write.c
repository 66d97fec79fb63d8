/* write: files written whole or not at all, and rows of CSV. */
#include "write.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- paths ---- */

char *path_join(arena *a, const char *dir, const char *file)
{
    if (!*dir || !strcmp(dir, ".") || *file == '/') return arena_strdup(a, file);
    size_t n = strlen(dir);
    return arena_printf(a, dir[n - 1] == '/' ? "%s%s" : "%s/%s", dir, file);
}

const char *error_text(arena *a, int error)
{
    char buf[256] = "";
    if (strerror_r(error, buf, sizeof buf)) snprintf(buf, sizeof buf, "error %d", error);
    return arena_strdup(a, buf);
}

/* all directories above the file; what is there already is no error */
static int make_dirs(char *path)
{
    for (char *p = path + 1; *p; p++) {
        if (*p != '/') continue;
        *p = 0;
        int failed = mkdir(path, 0777) && errno != EEXIST ? errno : 0;
        *p = '/';
        if (failed) return failed;
    }
    return 0;
}

/* ---- a file on its way ---- */

/* a new file beside the path that nobody else has; -1 when there can be none */
static int open_beside(outfile *f, size_t room, mode_t mode)
{
    for (unsigned k = 0; k < 1000; k++) {
        snprintf(f->temp, room, "%s.%ld-%u.part", f->path, (long)getpid(), k);
        int fd = open(f->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

/* all that allocates comes before the file is opened */
outfile *outfile_open(arena *a, const char *path)
{
    outfile *f = arena_make(a, outfile);
    char real[PATH_MAX];
    struct stat st;
    bool exists = realpath(path, real) != NULL;
    f->path = arena_strdup(a, exists ? real : path);
    size_t room = strlen(f->path) + 64;
    f->temp = arena_alloc(a, room);
    f->fd = -1;
    exists = exists && !stat(f->path, &st);
    bool regular = !exists || S_ISREG(st.st_mode);
    if (exists && S_ISDIR(st.st_mode)) { f->error = EISDIR; return f; }
    if (!exists && (f->error = make_dirs(arena_strdup(a, path)))) return f;
    if (regular) f->fd = open_beside(f, room, exists ? st.st_mode & 07777 : 0666);
    else { f->temp = NULL; f->fd = open(f->path, O_WRONLY | O_CLOEXEC); }
    f->open = f->fd >= 0;
    if (!f->open) f->error = errno;
    else if (regular && exists && fchmod(f->fd, st.st_mode & 07777)) f->error = errno;
    return f;
}

static void outfile_flush(outfile *f)
{
    size_t done = 0;
    while (f->open && !f->error && done < f->n) {
        ssize_t k = write(f->fd, f->buf + done, f->n - done);
        if (k >= 0) done += (size_t)k;
        else if (errno != EINTR) f->error = errno;
    }
    f->n = 0;
}

void outfile_put(outfile *f, const char *p, size_t n)
{
    while (n && !f->error) {
        size_t k = sizeof f->buf - f->n < n ? sizeof f->buf - f->n : n;
        memcpy(f->buf + f->n, p, k);
        f->n += k; p += k; n -= k;
        if (f->n == sizeof f->buf) outfile_flush(f);
    }
}

bool outfile_commit(outfile *f)
{
    outfile_flush(f);
    if (f->open) {
        f->open = false;
        if (close(f->fd) && !f->error) f->error = errno;
        if (f->temp && !f->error && rename(f->temp, f->path)) f->error = errno;
        if (f->temp && f->error) unlink(f->temp);
    }
    return !f->error;
}

void outfile_abort(outfile *f)
{
    if (!f->open) return;
    f->open = false;
    close(f->fd);
    if (f->temp) unlink(f->temp);
}

int outfile_whole(arena *a, const char *path, const char *p, size_t n)
{
    outfile *f = outfile_open(a, path);
    outfile_put(f, p, n);
    outfile_commit(f);
    return f->error;
}

/* ---- CSV ---- */

void csv_field(text *out, const char *p, size_t n)
{
    bool plain = true;
    for (size_t k = 0; k < n; k++) plain = plain && !strchr(",\"\r\n", p[k]);
    if (plain) { text_putn(out, p, n); return; }
    text_putc(out, '"');
    for (size_t k = 0; k < n; k++) {
        if (p[k] == '"') text_putc(out, '"');
        text_putc(out, p[k]);
    }
    text_putc(out, '"');
}

void csv_row(text *out, const double *x, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        if (k) text_putc(out, ',');
        text_num(out, x[k]);
    }
    text_putc(out, '\n');
}
