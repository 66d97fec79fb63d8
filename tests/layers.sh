#!/bin/bash
# Dependencies between the rooms, from the include lines and the object files.
set -u
: "${srcdir:?}" "${builddir:?}"
cd "$srcdir" || exit 2
failed=0
# a check is a list of offenders; an empty list passes
verdict() { if [ -z "$2" ]; then echo "ok $1"; else echo "not ok $1"; echo "$2"; failed=1; fi; }

# "file included-name" for each quoted include
includes() { grep -HoE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"[^"]+"' "$@" | sed -E 's/:[^"]*"([^"]+)"/ \1/'; }
shopt -s nullglob
runtime=(runtime/*/*.[ch] runtime/*/*.def) cmd=(lang/cmd/*.[ch])
lang=(lang/cdl.h)
for f in lang/*/*.[chly] lang/*/*.def; do case $f in lang/cmd/*) ;; *) lang+=("$f") ;; esac; done

# -- which rooms may include which
# native/texts.inc is generated in the build folder, from files of runtime
bad=$(includes "${runtime[@]}" | while read -r f i; do
    [ "$i" = native/texts.inc ] || [ -e "runtime/$i" ] || [ -e "${f%/*}/$i" ] || echo "$f includes $i"; done)
verdict "runtime includes nothing but runtime" "$bad"
bad=$(includes "${lang[@]}" | while read -r f i; do case $i in cmd/* | */cmd/*) echo "$f includes $i" ;; esac; done)
verdict "lang does not include the command" "$bad"
bad=$(includes "${cmd[@]}" | while read -r f i; do
    case $i in cdl.h) ;; */*) echo "$f includes $i" ;; *) [ -e "lang/cmd/$i" ] || echo "$f includes $i" ;; esac; done)
verdict "the command sees the library only through cdl.h" "$bad"
verdict "readline is for the command only" "$(grep -HnE '#[[:space:]]*include[[:space:]]*<readline/' "${runtime[@]}" "${lang[@]}")"
verdict "cdl.h stands alone" "$(grep -Hn '#[[:space:]]*include[[:space:]]*"' lang/cdl.h)"
verdict "header names are unique" "$(for f in runtime/*/*.h lang/*.h lang/*/*.h; do basename "$f"; done | sort | uniq -d)"
bad=$(includes runtime/*/*.h lang/*.h lang/*/*.h | grep -v '\.def$' | awk '{ sub(/.*\//, "", $1); sub(/.*\//, "", $2); print }' | tsort 2>&1 >/dev/null)
verdict "headers include each other without a cycle" "$bad"

# -- LAPACKE and SuiteSparse are behind base/linalg
bad=$(grep -HniE '#[[:space:]]*include[[:space:]]*<((suitesparse/)?(cholmod|umfpack|klu|amd|colamd|camd|btf|cs|spqr|suitesparse)[a-z_]*\.h|lapacke?[a-z_]*\.h|cblas\.h)' \
    "${runtime[@]}" "${lang[@]}" "${cmd[@]}" | grep -vE '^runtime/base/(linalg|matrix)\.c')
verdict "only linalg.c and matrix.c of base/ include LAPACKE and SuiteSparse" "$bad"

# -- only the clock takes samples and sets how a run ended
uses=$(grep -HnE '\bresults_sample\(|(->|\.)status = RUN_|(->|\.)power_balance = |->progress\(' runtime/*/*.[ch] | grep -v '^runtime/clock/')
verdict "only clock/ samples, audits, reports progress and sets the status" "$uses"

# -- which functions of libc the library uses, and its static data. The generated scanner names streams that it never opens.
if grep -q '^INSTRUMENT = .*[a-z]' "$builddir/Makefile"; then
    echo "ok objects # SKIP sanitizers and coverage bring state and calls of their own"
    exit $failed
fi
lib=$builddir/.libs/libcdl.a
allowed() {                                     # object, symbol
    case $1:$2 in
        session_jobs.o:_exit) ;;                # a process for points of an experiment exits itself
        tool.o:_exit) ;;                        # and so does one that could not start gnuplot
        arena.o:realloc | arena.o:free | arena.o:abort) ;;
        *lexer.o:stdin | *lexer.o:stdout) ;;
        *) return 1 ;;
    esac
}
members() { awk '/^[^ ].*:$/ { sub(/:$/, ""); o = $0; next } NF { print o, $NF }'; }
calls=$(nm -u "$lib" 2>/dev/null | members)
never='(__)?v?printf(_chk)?|puts|putchar|perror|stdout|stderr|stdin|exit|_exit|quick_exit|abort|__assert_fail|malloc|calloc|realloc|reallocarray'
never+='|free|strdup|strndup|(__)?v?asprintf(_chk)?'
shared_state='strtok|rand|srand|localtime|gmtime|ctime|asctime|setlocale|signal|putenv|setenv'
bad=$(grep -E " ($never|$shared_state)$" <<<"$calls" | while read -r o s; do allowed "$o" "$s" || echo "$o uses $s"; done)
verdict "the library does not print, exit, or allocate outside arena" "$bad"
verdict "there are objects to look at" "$([ -n "$calls" ] || echo "nothing in $lib")"

# -- dependencies by the symbols of the objects. Rooms are folders; within contact/ the same applies to objects.
names=$(nm "$lib" 2>/dev/null | awk '
    /^[^ ].*:$/ { sub(/:$/, ""); sub(/^.*la-/, ""); sub(/\.o$/, ""); o = $0; next }
    NF == 3 && $2 ~ /^[TDRBCVW]$/ { print "has", o, $3 }
    NF == 2 && $1 == "U" { print "needs", o, $2 }')
# "object room" for each source
rooms=$(for f in runtime/*/*.c lang/*/*.[cly]; do
    case $f in lang/cmd/*) continue ;; esac
    o=${f##*/}; echo "${o%.*} ${f%/*}"; done | sort -u)
# "from to symbol" between rooms that begin with $1, or between the objects of the room $1 if $2 is objects
needs() {
    awk -v under="$1" -v objects="${2-}" '
        FILENAME == ARGV[1] { room[$1] = $2; next }
        $1 == "has" { home[$3] = $2; next }
        { need[$2 " " $3] }
        END { for (k in need) {
            split(k, x, " "); o = x[1]; at = home[x[2]]
            if (at == "" || at == o || index(room[o], under) != 1 || index(room[at], under) != 1) continue
            if (objects) print o, at, x[2]
            else if (room[o] != room[at]) print room[o], room[at], x[2] } }' <(echo "$rooms") <(echo "$names") | sort -u
}
# no cycle: $1 what, $2 needs
acyclic() { verdict "$1 link without a cycle" "$(cut -d' ' -f1,2 <<<"$2" | sort -u | tsort 2>&1 >/dev/null)"; }
verdict "object names are unique" "$(cut -d' ' -f1 <<<"$rooms" | uniq -d)"
verdict "every object has a room" "$(awk 'FILENAME == ARGV[1] { room[$1]; next } !($2 in room) { print $2 }' <(echo "$rooms") <(echo "$names") | sort -u)"
acyclic "rooms of runtime" "$(needs runtime/)"
acyclic "rooms of lang" "$(needs lang/)"
acyclic "objects of contact" "$(needs runtime/contact objects)"

# foreign.o stores the addresses of routines of other libraries, which are the same for all sessions
# writable data: sections .data, .bss and common, except tables of constants that the loader relocates
bad=$(objdump -t "$lib" 2>/dev/null | awk '
    /^[^ ]+\.o:/ { o = $1; next }
    {   section = ""; for (i = 2; i <= NF; i++) if ($i ~ /^(\.t?data|\.t?bss|\*COM\*)/) { section = $i; break }
        if (section == "" || section ~ /^\.data\.rel\.ro/ || $0 ~ / d +\./) next
        if (o ~ /^foreign\.o/ && $NF ~ /^(found|missing)$/) next
        if ($NF ~ /^\.(data|bss)/ || (o ~ /parser\.o/ && $NF ~ /^yyloc_default/)) next
        print o, $NF, "in", section }')
verdict "the library keeps no global state" "$bad"

# -- exported symbols of the library
so=$builddir/.libs/libcdl.so
if [ -e "$so" ]; then
    exported=$(nm -D --defined-only "$so" | awk '{ print $NF }' | sed 's/@.*//')
    verdict "only cdl_* is exported" "$(grep -v '^cdl_' <<<"$exported")"
    bad=$(grep -oE '\bcdl_[a-z0-9_]+ *\(' lang/cdl.h | tr -d ' (' | sort -u | while read -r s; do
        grep -qx "$s" <<<"$exported" || echo "$s is not exported"; done)
    verdict "what cdl.h declares is exported" "$bad"
fi
exit $failed
