/* compiled: C that the system's compiler turns into code for this run, kept in a cache from run to run. */
#ifndef CDL_COMPILED_H
#define CDL_COMPILED_H
#include <stdbool.h>
#include <stddef.h>

struct budget;

/* The function `entry` of the code with this name in the cache; *handle belongs to the caller and is released
   by compiled_close. NULL: there is none. */
void *compiled_find(const char *name, const char *entry, void **handle);
/* The same, of C that is compiled now and kept by that name.  NULL: there is no compiler, no cache, or the
   budget (may be NULL) is spent. */

void *compiled_make(const char *name, const char *c, size_t len, const char *entry, struct budget *b,
                    double seconds, void **handle);
/* The file itself, from the cache or compiled now.  NULL as above. */
struct arena;
char *compiled_bytes(struct arena *a, const char *c, size_t len, struct budget *b, size_t *n);
/* The name of the code, from a text that determines it. */
enum { COMPILED_NAME = 96 };
void compiled_name(const char *of, size_t len, char name[COMPILED_NAME]);
void compiled_close(void *handle); /* NULL is fine */
#endif
