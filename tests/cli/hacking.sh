#!/bin/bash
# The code in HACKING.md is code: the backend it adds compiles as it stands.
. "${tests:?}/cli/common"
root=${srcdir:-${tests%/*}}
[ -f "$root/HACKING.md" ] || { echo "ok HACKING # SKIP not in this tree"; exit 0; }
awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$root/HACKING.md" >leapfrog.c
same "there is code" yes "$([ "$(wc -l <leapfrog.c)" -gt 50 ] && echo yes)"
try "it compiles" 0 "${CC:-cc}" -std=gnu11 -Wall -Wextra -Wshadow -Wmissing-prototypes -Werror -I "$root/runtime" -c -o leapfrog.o leapfrog.c
