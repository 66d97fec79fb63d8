/* write: files written whole or not at all, and rows of CSV. */
#define _GNU_SOURCE
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
    if (!*dir || !strcmp(dir, ".") || *file == '/')
        return arena_strdup(a, file);
    size_t n = strlen(dir);
    return arena_printf(a, dir[n - 1] == '/' ? "%s%s" : "%s/%s", dir, file);
}

const char *error_text(arena *a, int error)
{
    char buf[256] = "";
    return arena_strdup(a, strerror_r(error, buf, sizeof buf));
}

/* all directories above the file; what is there already is no error */
static int make_dirs(char *path)
{
    for (char *p = path + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = 0;
        int failed = mkdir(path, 0777) && errno != EEXIST ? errno : 0;
        *p = '/';
        if (failed)
            return failed;
    }
    return 0;
}

/* ---- bytes on their way ---- */

static void sink_flush(sink *s)
{
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

/* ---- a file on its way ---- */

/* a new file beside the path that nobody else has; -1 when there can be none */
static int open_beside(outfile *f, size_t room, mode_t mode)
{
    for (unsigned k = 0; k < 1000; k++) {
        snprintf(f->temp, room, "%s.%ld-%u.part", f->path, (long)getpid(), k);
        int fd = open(f->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* all that allocates comes before the file is opened */
outfile *outfile_open(arena *a, const char *path)
{
    outfile *f = arena_make(a, outfile);
    char real[PATH_MAX];
    struct stat st;
    bool named = realpath(path, real) != NULL; /* a pipe behind /proc/self/fd/1 has no name, and is there */
    f->path = arena_strdup(a, named ? real : path);
    size_t room = strlen(f->path) + 64;
    f->temp = arena_alloc(a, room);
    f->to.fd = -1;
    bool exists = !stat(f->path, &st);
    bool regular = !exists || S_ISREG(st.st_mode);
    if (exists && S_ISDIR(st.st_mode)) {
        f->to.error = EISDIR;
        return f;
    }
    if (!exists && (f->to.error = make_dirs(arena_strdup(a, path))))
        return f;
    if (regular)
        f->to.fd = open_beside(f, room, exists ? st.st_mode & 07777 : 0666);
    else {
        f->temp = NULL;
        f->to.fd = open(f->path, O_WRONLY | O_CLOEXEC);
    }
    f->open = f->to.fd >= 0;
    if (!f->open)
        f->to.error = errno;
    else if (regular && exists && fchmod(f->to.fd, st.st_mode & 07777))
        f->to.error = errno;
    return f;
}

void outfile_put(outfile *f, const char *p, size_t n)
{
    sink_put(&f->to, p, n);
}

bool outfile_commit(outfile *f)
{
    sink_flush(&f->to);
    if (f->open) {
        f->open = false;
        if (close(f->to.fd) && !f->to.error)
            f->to.error = errno;
        if (f->temp && !f->to.error && rename(f->temp, f->path))
            f->to.error = errno;
        if (f->temp && f->to.error)
            unlink(f->temp);
    }
    return !f->to.error;
}

void outfile_abort(outfile *f)
{
    if (!f->open)
        return;
    f->open = false;
    f->to.n = 0;
    close(f->to.fd);
    if (f->temp)
        unlink(f->temp);
}

int outfile_whole(arena *a, const char *path, const char *p, size_t n)
{
    outfile *f = outfile_open(a, path);
    outfile_put(f, p, n);
    outfile_commit(f);
    return f->to.error;
}

/* ---- files without a name ---- */

int temp_open(arena *a, const char *dir)
{
    const char *tmp = getenv("TMPDIR");
    const char *in[] = { tmp && *tmp ? tmp : dir, *dir ? dir : ".", "." };
    for (size_t k = 0; k < sizeof in / sizeof *in; k++) {
        char *path = arena_printf(a, "%s/cdl-XXXXXX", in[k]);
        int fd = open(in[k], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (fd >= 0)
            return fd;
        fd = mkostemp(path, O_CLOEXEC); /* file systems that know no files without a name */
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
