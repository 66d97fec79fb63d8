#!/bin/bash
# The start of the command: numerical libraries are loaded when they are first called, and a missing one is reported.
. "${tests:?}/cli/common"
if grep -q FOREIGN_LINKED "$builddir/Makefile"; then
    echo "ok start # SKIP libraries of numerics are archives here"
    exit
fi
has_numerics() { LD_DEBUG=files "$CDL" "$@" 2>&1 >/dev/null | grep -cE 'calling init:.*(lapack|blas|klu|umfpack|cholmod)'; }
echo 'run ball for 1' >>ball.cdl
same "a ball needs no library of numerics" 0 "$(has_numerics run ball.cdl)"
same "nor does --version" 0 "$(has_numerics --version)"

# a string on an obstacle needs a band factorisation, a membrane a sparse one
cat >string.cdl <<'CDL'
model string { domain x in -1..1; field u(x); -u'' = 0; obstacle u >= 1/2 - x^2; boundary u = 0 }
run string with active_set(cells = 20)
expect u(0) == 1/2 within 1e-9
CDL
same "a field does" yes "$([ "$(has_numerics run string.cdl)" -gt 0 ] && echo yes)"
try "and gets it" 0 "$CDL" run string.cdl

# a library that was removed after the build
cat >hide.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
void *dlopen(const char *name, int flags)
{
    void *(*real)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    return name && (strstr(name, "lapack") || strstr(name, "klu") || strstr(name, "umfpack")) ? NULL : real(name, flags);
}
C
if "${CC:-cc}" -shared -fPIC -o hide.so hide.c 2>/dev/null && ! grep -q '^INSTRUMENT = .*[a-z]' "$builddir/Makefile"; then
    try "without it the run fails" 5 env LD_PRELOAD="$PWD/hide.so" "$CDL" run string.cdl
    has "and says why" err "could not be loaded" "install it again"
    try "what does not need it runs" 0 env LD_PRELOAD="$PWD/hide.so" "$CDL" run ball.cdl
else
    echo "ok a missing library # SKIP no compiler, or sanitizers"
fi
