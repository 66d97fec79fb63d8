#!/bin/bash
# The header compiles on its own, in C and C++, and the program of cdl(3) does what the page says.
. "${tests:?}/cli/common"
cc=${CC:-gcc}
echo '#include "cdl.h"' >h.c
try "cdl.h as C" 0 $cc -std=c99 -pedantic -Wall -Wextra -Werror -I"$srcdir/lang" -fsyntax-only h.c
if command -v g++ >/dev/null; then
    try "cdl.h as C++" 0 g++ -Wall -Wextra -Werror -x c++ -I"$srcdir/lang" -fsyntax-only h.c
fi
# prints program K of the page
program() {
    awk -v want="$1" '/^\.\\" c$/ { c = ++n == want; next } /^\.EX/ && c { inside = 1; next } /^\.EE/ { if (inside) exit } inside' "$srcdir/man/cdl.3" |
        sed -e 's/\\e/\\/g' -e 's/\\-/-/g'
}
if [ -x "${builddir:-.}/libtool" ]; then
    flags=$(sed -n 's/^INSTRUMENT = //p' "$builddir/Makefile")
    for k in 1 2; do
        program $k >ex.c
        try "program $k of cdl(3) builds" 0 "$builddir/libtool" --quiet --mode=link --tag=CC $cc -Wall -Wextra $flags -I"$srcdir/lang" -o ex ex.c "$builddir/libcdl.la" -static
        try "and runs" 0 ./ex
        same "as it says" "$([ $k = 1 ] && echo 'first impact at 0.4515 s' || echo 'x = 0.500 at t = 5')" "$(cat out)"
    done
fi
