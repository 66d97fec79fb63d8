#define _GNU_SOURCE
#include "foreign.h"
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#ifdef FOREIGN_LINKED /* configure found no shared libraries: they are part of the program */

#define FOREIGN_ROUTINE(library, name, failure) extern void name(void);
#include "foreign.def"
#undef FOREIGN_ROUTINE

void *foreign_find(foreign_routine r)
{
    static void *const address[] = {
#define FOREIGN_ROUTINE(library, name, failure) (void *)name,
#include "foreign.def"
#undef FOREIGN_ROUTINE
    };
    return address[r];
}

const char *foreign_missing(void)
{
    return NULL;
}

#else

/* Addresses that the loader would otherwise keep. Two threads that arrive simultaneously find the same
   addresses. */
static _Atomic(void *) found[FOREIGN_ROUTINES];
static _Atomic(const char *) missing;

static const struct {
    const char *library, *name;
    int failure;
} routines[] = {
#define FOREIGN_ROUTINE(library, name, failure) { FOREIGN_##library, #name, failure },
#include "foreign.def"
#undef FOREIGN_ROUTINE
};

/* int, pointer or nothing: the result is in the same register in all cases */
static intptr_t fails_with_0(void)
{
    return 0;
}

static intptr_t fails_with_code(void)
{
    return -1;
}

/* the library stays loaded as long as the process lives */
static void *load(foreign_routine r)
{
    void *library = dlopen(routines[r].library, RTLD_LAZY | RTLD_LOCAL);
    void *address = library ? dlsym(library, routines[r].name) : NULL;
    if (!address) {
        atomic_store(&missing, routines[r].library);
        address = routines[r].failure ? (void *)fails_with_code : (void *)fails_with_0;
    }
    atomic_store(&found[r], address);
    return address;
}

void *foreign_find(foreign_routine r)
{
    void *address = atomic_load_explicit(&found[r], memory_order_acquire);
    return address ? address : load(r);
}

const char *foreign_missing(void)
{
    return atomic_load(&missing);
}

#endif

const char *foreign_blas(void)
{
    Dl_info info;
    if (!dladdr(foreign_find(FOREIGN_dgemm_), &info) || !info.dli_fname)
        return "linked in";
    return info.dli_fname;
}
