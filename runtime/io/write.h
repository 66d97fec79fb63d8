/* write: files written completely or not at all, and rows of CSV. */
#ifndef CDL_WRITE_H
#define CDL_WRITE_H
#include <stdbool.h>
#include "base/arena.h"
#include "confine.h"

/* Bytes being written to a file; after the first error (see error_text) they are dropped. */
typedef struct sink {
    struct budget *budget; /* whose bytes they are, or NULL */
    int fd, error;
    size_t n;
    int64_t bytes;
    char buf[1 << 15];
} sink;

/* A file being written: bytes go to a new file in the same folder, which gets its name at the end. Special
   files (a terminal, a pipe) are written directly, if outside files are allowed. The first failure is kept in
   `to.error` and reported at the end. */
typedef struct outfile {
    file_place at;
    char temp[NAME_MAX + 1]; /* the temporary file, or "" */
    bool open;
    text *into;            /* or NULL: bytes are kept there instead */
    struct outfile *below; /* in the list of the budget, while it is open */
    sink to;
} outfile;

/* Folders on the way are made.  Never NULL. */
outfile *outfile_open(arena *a, const file_root *in, const char *path);
outfile *outfile_memory(arena *a, text *into);
void outfile_put(outfile *f, const char *p, size_t n);
bool outfile_commit(outfile *f); /* false: f->to.error says why, and nothing was changed */
void outfile_abort(outfile *f);  /* also after commit: does nothing then */
void outfile_leave(outfile *f);  /* in a forked process: the file belongs to the other one */
/* Drops files that were opened since `last` was the last one: for code that catches a jump. */
void outfiles_abort(struct budget *b, const outfile *last);
/* Writes a whole file. 0, or the error. */
int outfile_whole(arena *a, const file_root *in, const char *path, const char *p, size_t n);
/* All bytes of a file, of at most that many (EFBIG), and a 0 after them.  0, or the error. */
int file_whole(arena *a, const file_root *in, const char *path, size_t most, char **out, size_t *n);
/* The same of what is open already, as a pipe.  Both end with the budget of the arena, which jumps. */
int stream_whole(arena *a, int fd, size_t most, char **out, size_t *n);
/* Removes what killed processes left unfinished in the folder of that path. */
void parts_clean(const file_root *in, const char *path);

/* dir/file, or only file if it is absolute or dir is empty or "." */
char *path_join(arena *a, const char *dir, const char *file);
/* strerror, reentrant, and the errors of confine.h */
const char *error_text(arena *a, int error);

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
void spool_close(spool *s);                               /* NULL is allowed, and so is a second call */

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
/* A zip file of files that are in memory, stored; the same bytes whenever it is written. */
typedef struct zip_file {
    const char *name, *at;
    size_t n;
} zip_file;
void zip_write(outfile *to, arena *a, const zip_file *file, size_t n);
#endif
