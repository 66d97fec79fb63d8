/* spill: columns of results that are too long for memory.  They are in one file without a name, mapped into
   memory, so that they are read and written like any others; finished pages are released.  The file grows
   by extents; an extent holds a number of samples of all columns, each column a contiguous range of it, and
   a column's extents are mapped one after the other.  One extent alone is mapped at once.  A system allows
   some 65000 mappings, so many columns move into a longer file instead of having a second extent. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/budget.h"
#include "results.h"
#include "spill.h"
#include "io/write.h"

/* samples are grouped so that ranges are whole pages whatever their width */
enum { SAMPLES = 4096, EXTENTS = 256, MAPPINGS = 1 << 13, APART = 512 };

typedef struct {
    int64_t from, n;
    off_t at;
} extent;
struct spill {
    int fd, ncol, nextent;
    arena *a;
    const char *dir;
    char *whole; /* where all of the file is mapped, if it is one extent */
    size_t row;  /* bytes of a sample */
    off_t bytes;
    int64_t cap;
    budget *budget; /* may be NULL */
    extent extents[EXTENTS];
    /* before: bytes of the columns before it */
    struct {
        char *base;
        size_t width, before;
    } col[];
};

static void unmap(char *base, int64_t cap, size_t width)
{
    if (base && width)
        munmap(base, (size_t)cap * width);
}

/* one column, as long as all extents: a range of addresses, then the file over it; NULL when there is no room
 */
static char *column_map(const spill *s, int k, int64_t cap)
{
    size_t w = s->col[k].width;
    char *base = mmap(NULL, (size_t)cap * w, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    for (int i = 0; i < s->nextent; i++) {
        const extent *x = &s->extents[i];
        off_t at = x->at + (off_t)((size_t)x->n * s->col[k].before);
        if (mmap(base + (size_t)x->from * w, (size_t)x->n * w, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                 s->fd, at) != MAP_FAILED)
            continue;
        unmap(base, cap, w);
        return NULL;
    }
    return base;
}

spill *spill_new(arena *a, const char *dir, const size_t *width, int n)
{
    spill *s = arena_zalloc(a, sizeof *s + (size_t)n * sizeof s->col[0]);
    s->ncol = n;
    s->a = a;
    s->dir = dir;
    s->budget = arena_budget(a);
    for (int k = 0; k < n; k++) {
        s->col[k].width = width[k];
        s->col[k].before = s->row;
        s->row += width[k];
    }
    s->fd = temp_open(a, dir);
    return s;
}

/* Lets go of all mappings. */
static void unmap_all(const spill *s)
{
    if (s->whole) {
        munmap(s->whole, (size_t)s->bytes);
        return;
    }
    for (int k = 0; k < s->ncol; k++)
        unmap(s->col[k].base, s->cap, s->col[k].width);
}

/* Each column is mapped by itself; 0, or an errno. */
static int columns_map(const spill *s, int64_t cap, char **new)
{
    for (int k = 0; k < s->ncol; k++) {
        new[k] = s->col[k].width ? column_map(s, k, cap) : NULL;
        if (new[k] || !s->col[k].width)
            continue;
        int error = errno;
        while (k-- > 0)
            unmap(new[k], cap, s->col[k].width);
        return error ? error : ENOMEM;
    }
    return 0;
}

/* A file of one extent, mapped at once; 0, or an errno. */
static int whole_map(const spill *s, int fd, int64_t cap, char **whole, char **new)
{
    size_t bytes = (size_t)cap * s->row;
    *whole = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (*whole == MAP_FAILED)
        return errno;
    if (s->ncol > APART)
        madvise(*whole, bytes, MADV_RANDOM);
    for (int k = 0; k < s->ncol; k++)
        new[k] = s->col[k].width ? *whole + (size_t)cap * s->col[k].before : NULL;
    return 0;
}

/* into a longer file of one extent; 0, or an errno */
static int move_all(spill *s, int64_t cap, char **new)
{
    int fd = temp_open(s->a, s->dir);
    char *whole = NULL;
    int error = fd < 0 ? EIO : posix_fallocate(fd, 0, (off_t)((size_t)cap * s->row));
    if (!error)
        error = whole_map(s, fd, cap, &whole, new);
    if (error) {
        if (fd >= 0)
            close(fd);
        return error;
    }
    for (int k = 0; k < s->ncol; k++)
        if (s->col[k].width)
            memcpy(new[k], s->col[k].base, (size_t)s->cap * s->col[k].width);
    unmap_all(s);
    close(s->fd);
    s->fd = fd;
    s->whole = whole;
    s->extents[0] = (extent){ 0, cap, 0 };
    s->nextent = 1;
    return 0;
}

/* by another extent; 0, or an errno */
static int extend(spill *s, int64_t more, char **new)
{
    char *whole = NULL;
    int error = posix_fallocate(s->fd, s->bytes, (off_t)((size_t)more * s->row));
    if (error)
        return error;
    s->extents[s->nextent++] = (extent){ s->cap, more, s->bytes };
    error = s->nextent == 1 ? whole_map(s, s->fd, more, &whole, new) : columns_map(s, s->cap + more, new);
    if (error) {
        s->nextent--;
        return error;
    }
    if (s->nextent > 1)
        unmap_all(s);
    s->whole = whole;
    return 0;
}

/* blocks are allocated before they are written: a full disk is an error here instead of a signal later */
int spill_grow(spill *s, int64_t cap, char **new)
{
    int64_t more = cap - s->cap;
    bool moves = s->nextent && s->ncol > MAPPINGS / (s->nextent + 1);
    if (more < s->cap / 4)
        more = s->cap / 4;
    if (moves && more < s->cap)
        more = s->cap;
    more = (more + SAMPLES - 1) / SAMPLES * SAMPLES;
    size_t bytes;
    if (s->fd < 0 || s->nextent == EXTENTS ||
        __builtin_mul_overflow((size_t)(s->cap + more), s->row, &bytes) || bytes > PTRDIFF_MAX / 2)
        return EFBIG;
    if (s->budget && !budget_write(s->budget, (int64_t)((size_t)more * s->row)))
        return ERROR_DISK_BUDGET;
    int error = moves ? move_all(s, s->cap + more, new) : extend(s, more, new);
    if (error)
        return error;
    for (int k = 0; k < s->ncol; k++)
        s->col[k].base = new[k];
    s->bytes += (off_t)((size_t)more * s->row);
    s->cap += more;
    return 0;
}

int64_t spill_cap(const spill *s)
{
    return s->cap;
}

void spill_rest(const spill *s, int64_t from, int64_t to)
{
    from = from / SAMPLES * SAMPLES;
    if (to > s->cap)
        to = s->cap;
    to = to / SAMPLES * SAMPLES;
    for (int k = 0; k < s->ncol && from < to; k++) {
        size_t w = s->col[k].width;
        if (w)
            madvise(s->col[k].base + (size_t)from * w, (size_t)(to - from) * w, MADV_DONTNEED);
    }
}

void spill_close(spill *s)
{
    if (!s || s->fd < 0)
        return;
    unmap_all(s);
    close(s->fd);
    s->fd = -1;
}
