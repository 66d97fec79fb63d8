/* write: files written whole or not at all, and rows of CSV. */
#ifndef CDL_WRITE_H
#define CDL_WRITE_H
#include <stdbool.h>
#include "base/arena.h"

/* A file on its way: bytes go to a new file beside the path, which takes its name at the end.  What is no
   regular file (a terminal, a pipe) is written directly.  The first failure is kept in `error` (an errno) and
   told at the end. */
/* Bytes on their way to a file; from the first error on (an errno) they are dropped. */
typedef struct sink {
    struct budget *budget; /* whose bytes they are, or NULL */
    int fd, error;
    size_t n;
    int64_t bytes;
    char buf[1 << 15];
} sink;

typedef struct outfile {
    const char *path; /* where it will be; symbolic links followed */
    char *temp;       /* the file beside it, or NULL */
    bool open;
    struct outfile *below; /* in the list of the budget, while it is open */
    sink to;
} outfile;

/* Directories on the way are made.  Never NULL. */
outfile *outfile_open(arena *a, const char *path);
void outfile_put(outfile *f, const char *p, size_t n);
bool outfile_commit(outfile *f); /* false: f->to.error says why, and nothing was changed */
void outfile_abort(outfile *f);  /* also after commit: does nothing then */
/* Drops files that were opened since `last` was the last one: for whoever catches a jump. */
void outfiles_abort(struct budget *b, const outfile *last);
/* A whole file at once. 0, or the errno. */
int outfile_whole(arena *a, const char *path, const char *p, size_t n);

/* dir/file, or file alone when it is absolute or dir is empty or "." */
char *path_join(arena *a, const char *dir, const char *file);
const char *error_text(arena *a, int error); /* strerror, reentrant */

/* A file without a name, for reading and writing: gone with the process however it ends.  In dir, where
   $TMPDIR is not set.  -1 when there can be none (errno). */
int temp_open(arena *a, const char *dir);
/* Bytes kept in such a file until they are read. */
typedef struct spool {
    sink to;
} spool;
spool *spool_new(arena *a, const char *dir);
void spool_put(spool *s, const char *p, size_t n);
bool spool_read(spool *s, int64_t at, char *p, size_t n); /* after the last put */
void spool_close(spool *s);                               /* NULL and twice are fine */

/* CSV as in RFC 4180, lines ended by \n: a field quoted where needed, or a number that reads back exactly. */
void csv_field(text *out, const char *p, size_t n);
void csv_row(text *out, const double *x, size_t n);

/* ---- numpy.c: NumPy's .npy (format 1.0) and .npz (a zip file of them, stored) ---- */
/* An array among rows of doubles: columns first .. first + n of each; its shape is that of the rows, then its
 * own. */
typedef struct rows_array {
    const char *name;
    size_t first, n;
    int32_t dim[3];
    int ndim;
} rows_array;
/* grid: rows of nodes in the plane, or 0 */
typedef struct rows_table {
    spool *from;
    size_t width;
    int64_t rows;
    int32_t grid[2];
} rows_table;
void npy_write(outfile *to, arena *a, const rows_table *t, const rows_array *x);
void npz_write(outfile *to, arena *a, const rows_table *t, const rows_array *x, size_t n);
#endif
