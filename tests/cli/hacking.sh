#!/bin/bash
# The code in HACKING.md is correct: the backend that it adds compiles unchanged.
. "${tests:?}/cli/common"
root=${srcdir:-${tests%/*}}
[ -f "$root/HACKING.md" ] || { echo "ok HACKING # SKIP not in this tree"; exit 0; }
awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$root/HACKING.md" >leapfrog.c
same "there is code" yes "$([ "$(wc -l <leapfrog.c)" -gt 50 ] && echo yes)"
try "it compiles" 0 "${CC:-cc}" -std=gnu11 -Wall -Wextra -Wshadow -Wmissing-prototypes -Werror -I "$root/runtime" -c -o leapfrog.o leapfrog.c

# The tables of files: the table of each room names every file of the room, and no others.
shopt -s nullglob
# the files named in the table of room $1; a.c/h means a.c and a.h
named() {
    awk -v head="| \`$1/\` |" 'index($0, head) == 1 { on = 1; next } !/^\|/ { on = 0 } on { print $2 FS $0 }' FS='|' "$root/HACKING.md" |
        cut -d'|' -f1 | grep -oE '[a-z0-9_]+\.(c/h|c|h|def|l|y)\b' | sed -E 's/(.*)\.c\/h$/\1.c\n\1.h/' | sort
}
for folder in "$root"/runtime/*/ "$root"/lang/*/; do
    room=${folder%/}; room=${room#"$root"/}
    files=("$folder"*.[chly] "$folder"*.def)
    [ ${#files[@]} -gt 0 ] || continue
    same "the table of $room" "$(printf '%s\n' "${files[@]##*/}" | grep -vxE 'parser\.[ch]|lexer\.c' | sort)" "$(named "$room")"
done
# The text: every file named in backquotes exists; leapfrog.c is the one that a reader would write.
gone=$(awk '/^```/ { code = !code } !code' "$root/HACKING.md" | grep -oE '`[A-Za-z0-9_./-]+\.(c|h|def|l|y|sh|md|am)(/h)?`' | tr -d '`' |
    sed -E 's/(.*)\.c\/h$/\1.c\n\1.h/' | sort -u | while read -r f; do
    case $f in */leapfrog.c | DESIGN.md) continue ;; esac
    found=("$root/$f" "$root"/*/"$f" "$root"/*/*/"$f")
    for at in "${found[@]}"; do [ -e "$at" ] && continue 2; done
    echo "$f"; done)
same "every file that the text names exists" "" "$gone"
