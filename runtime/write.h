/* write: files written whole or not at all, and rows of CSV. */
#ifndef CDL_WRITE_H
#define CDL_WRITE_H
#include <stdbool.h>
#include "arena.h"

/* A file on its way: bytes go to a new file beside the path, which takes its name at the end.  What is no regular file
   (a terminal, a
   pipe) is written directly.  The first failure is kept in `error` (an errno) and told at the end. */
typedef struct outfile {
    const char *path;                   /* where it will be; symbolic links followed */
    char *temp;                         /* the file beside it, or NULL */
    int fd, error;
    bool open;
    size_t n;
    char buf[1 << 15];
} outfile;

/* Directories on the way are made.  Never NULL. */
outfile *outfile_open(arena *a, const char *path);
void outfile_put(outfile *f, const char *p, size_t n);
bool outfile_commit(outfile *f);        /* false: f->error says why, and nothing was changed */
void outfile_abort(outfile *f);         /* also after commit: does nothing then */
/* A whole file at once. 0, or the errno. */
int  outfile_whole(arena *a, const char *path, const char *p, size_t n);

/* dir/file, or file alone when it is absolute or dir is empty or "." */
char *path_join(arena *a, const char *dir, const char *file);
const char *error_text(arena *a, int error);                /* strerror, reentrant */

/* CSV as in RFC 4180, lines ended by \n: a field quoted where needed, or a number that reads back exactly. */
void csv_field(text *out, const char *p, size_t n);
void csv_row(text *out, const double *x, size_t n);
#endif
