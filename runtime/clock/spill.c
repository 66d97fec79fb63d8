/* spill: columns of results that are too long for memory.  They are in one file without a name, mapped into
   memory, so that they are read and written like any others; finished pages are released.  The file grows
   by extents; an extent holds a number of samples of all columns, each column a contiguous range of it, and
   a column's extents are mapped one after the other. */
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
enum { SAMPLES = 4096, EXTENTS = 256 };

typedef struct {
    int64_t from, n;
    off_t at;
} extent;
struct spill {
    int fd, ncol, nextent;
    size_t row; /* bytes of a sample */
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
    s->budget = arena_budget(a);
    for (int k = 0; k < n; k++) {
        s->col[k].width = width[k];
        s->col[k].before = s->row;
        s->row += width[k];
    }
    s->fd = temp_open(a, dir);
    return s;
}

/* blocks are allocated before they are written: a full disk is an error here instead of a signal later */
int spill_grow(spill *s, int64_t cap, char **new)
{
    int64_t more = cap - s->cap;
    if (more < s->cap / 4)
        more = s->cap / 4;
    more = (more + SAMPLES - 1) / SAMPLES * SAMPLES;
    size_t bytes;
    if (s->fd < 0 || s->nextent == EXTENTS ||
        __builtin_mul_overflow((size_t)(s->cap + more), s->row, &bytes) || bytes > PTRDIFF_MAX / 2)
        return EFBIG;
    if (s->budget && !budget_write(s->budget, (int64_t)((size_t)more * s->row)))
        return ERROR_DISK_BUDGET;
    int error = posix_fallocate(s->fd, s->bytes, (off_t)((size_t)more * s->row));
    if (error)
        return error;
    s->extents[s->nextent++] = (extent){ s->cap, more, s->bytes };
    for (int k = 0; k < s->ncol; k++) {
        new[k] = s->col[k].width ? column_map(s, k, s->cap + more) : NULL;
        if (new[k] || !s->col[k].width)
            continue;
        error = errno;
        while (k-- > 0)
            unmap(new[k], s->cap + more, s->col[k].width);
        s->nextent--;
        return error ? error : ENOMEM;
    }
    for (int k = 0; k < s->ncol; k++) {
        unmap(s->col[k].base, s->cap, s->col[k].width);
        s->col[k].base = new[k];
    }
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
    for (int k = 0; k < s->ncol; k++)
        unmap(s->col[k].base, s->cap, s->col[k].width);
    close(s->fd);
    s->fd = -1;
}
