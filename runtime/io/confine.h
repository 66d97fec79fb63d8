/* confine: files below a folder.  A path that comes from a model, a manifest or a journal is resolved one
   component after the other from the folder on: an absolute path, a `..` or a symbolic link that leaves it, a
   device, a pipe and a socket are refused.  Nothing here allocates. */
#ifndef CDL_CONFINE_H
#define CDL_CONFINE_H
#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

/* A folder whose path the user gave, and so trusts. */
typedef struct file_root {
    const char *path; /* "" is the current one */
    bool open;        /* files outside of it and special files are allowed as well */
} file_root;

/* A refusal is an error number that errno does not use; error_text() describes it. */
enum { ERROR_OUTSIDE = 0x10000, ERROR_SPECIAL };

/* Where a file is or will be: its folder, held open, and its name there.  In a folder that is not open, the
   name is no symbolic link. */
typedef struct file_place {
    int dir; /* -1: none */
    char name[NAME_MAX + 1];
} file_place;

/* Whether the text of a path is enough to show that it stays below its starting folder. */
bool path_stays(const char *path);
/* 0, or the error.  make: the folders on the way are made. */
int place_find(const file_root *in, const char *path, bool make, file_place *out);
void place_close(file_place *p);
/* Kind and size of the file; 0, or the error, which is ERROR_SPECIAL for what may not be opened. */
int place_stat(const file_root *in, const file_place *p, struct stat *st);
/* A descriptor with those flags of open(2), or -1 and the error.  O_CREAT makes the folders on the way, too.
 */
int place_open(const file_root *in, const char *path, int flags, int *error);
void place_unlink(const file_root *in, const char *path);
#endif
