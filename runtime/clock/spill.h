/* spill: columns in a file that has no name.  See spill.c. */
#ifndef CDL_SPILL_H
#define CDL_SPILL_H
#include "base/arena.h"

typedef struct spill spill;
/* Columns of these widths in bytes per sample (0: none), empty. */
spill *spill_new(arena *a, const char *dir, const size_t *width, int n);
/* Room for at least cap samples; new[k] is where column k lies from now on.  0, or an errno: then nothing has
 * changed. */
int spill_grow(spill *s, int64_t cap, char **new);
int64_t spill_cap(const spill *s);
/* Releases the memory of these samples; they are read from the file when needed. */
void spill_rest(const spill *s, int64_t from, int64_t to);
void spill_close(spill *s); /* NULL is allowed, and so is a second call */
#endif
