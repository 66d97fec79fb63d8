/* foreign: routines of LAPACK and SuiteSparse.  FOREIGN(klu_solve)(...) calls one, whose header the caller
   includes; its library is loaded at the first call.  With BLAS, loading these libraries takes longer than
   running a small model, and most models never call them. */
#ifndef CDL_FOREIGN_H
#define CDL_FOREIGN_H

typedef enum foreign_routine {
#define FOREIGN_ROUTINE(library, name, failure) FOREIGN_##name,
#include "foreign.def"
#undef FOREIGN_ROUTINE
    FOREIGN_ROUTINES
} foreign_routine;

#define FOREIGN(name) ((__typeof__(name) *)foreign_find(FOREIGN_##name))

/* Its address. If the library cannot be loaded, the address of a function that returns failure. */
void *foreign_find(foreign_routine r);
/* The file of a library that could not be loaded, or NULL. */
const char *foreign_missing(void);
/* The file that BLAS is in, as the loader names it. */
const char *foreign_blas(void);

#endif
