#!/bin/bash
# The layout of the tree: the contents of its root, and the layout of the C code.
set -u
: "${srcdir:?}"
cd "$srcdir" || exit 2
failed=0
# a check is a list of offenders; an empty list passes
verdict() { if [ -z "$2" ]; then echo "ok $1"; else echo "not ok $1"; head -n 20 <<<"$2"; failed=1; fi; }
in_git() { [ -e .git ] && command -v git >/dev/null 2>&1 && git rev-parse --git-dir >/dev/null 2>&1; }

# -- the root: tracked files, and others that git would show
if in_git; then
    root='configure.ac Makefile.am README.md HACKING.md NEWS COPYING CITATION.cff Containerfile bootstrap libcdl.pc.in'
    root+=' .gitignore .clang-format .editorconfig'
    bad=$(git ls-files | grep -v / | while read -r f; do case " $root " in *" $f "*) ;; *) echo "$f" ;; esac; done)
    verdict "the root holds what a list names" "$bad"
    bad=$(git ls-files | grep / | cut -d/ -f1 | sort -u |
        while read -r d; do case $d in lang | runtime | stdlib | examples | tests | man | debian | .ci) ;; *) echo "$d" ;; esac; done)
    verdict "so do its folders" "$bad"
fi

# -- C: lines of at most 110 columns, one statement each
shopt -s nullglob
code=(runtime/*/*.[ch] lang/*.h lang/*/*.[ch] tests/unit/*.c tests/bench/*.[ch] tests/fuzz/*.c)
bad=$(LC_ALL=C.UTF-8 grep -nE '^.{111,}' "${code[@]}")
verdict "no line is longer than 110 columns" "$bad"
bad=$(awk '
    FNR == 1 { comment = 0 }
    {   line = $0
        if (comment) { if (line !~ /\*\//) next; sub(/.*\*\//, "", line); comment = 0 }
        gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
        gsub(/\047([^\047\\]|\\.)*\047/, "0", line)
        while (match(line, /\/\*([^*]|\*[^\/])*\*\//)) line = substr(line, 1, RSTART - 1) substr(line, RSTART + RLENGTH)
        if (line ~ /\/\*/) { comment = 1; sub(/\/\*.*/, "", line) }
        if (line ~ /^ *#|\\$|for \(|(\+\+|--)\) \{?$/) next
        if (line ~ /;[ \t]*[A-Za-z_*({]/) print FILENAME ":" FNR ": " $0 }' "${code[@]}")
verdict "one statement a line" "$bad"
# -- tolerances have names, in one header with a reason for each
# Allowed elsewhere: text and comments, rows of backend options (the manual lists them), tables with a name
# (static const double name[]), coefficients of series (trig.h).
strip='
    FNR == 1 { comment = 0 }
    {   line = $0
        if (comment) { if (line !~ /\*\//) next; sub(/.*\*\//, "", line); comment = 0 }
        gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
        while (match(line, /\/\*([^*]|\*[^\/])*\*\//)) line = substr(line, 1, RSTART - 1) substr(line, RSTART + RLENGTH)
        if (line ~ /\/\*/) { comment = 1; sub(/\/\*.*/, "", line) }'
header=runtime/base/tolerances.h
bad=$(awk "$strip"'
        if (FILENAME ~ /base\/(tolerances|trig)\.h$/ || line ~ /OPT_REAL|static const double [a-z_]+\[/) next
        if (line ~ /[0-9]e-[0-9]/) print FILENAME ":" FNR ": " $0 }' runtime/*/*.[ch] lang/*.h lang/*/*.[ch])
verdict "no tolerance stands outside of $header" "$bad"
names=$(awk '/^#define [A-Z_0-9]+ +[0-9]/ { print $2 }' $header)
bad=$(cat runtime/*/*.c runtime/*/*.h lang/*/*.c | grep -oE '\b[A-Z][A-Z_0-9]+\b' | sort | uniq -c |
    awk -v names="$names" 'BEGIN { n = split(names, name, "\n") } { seen[$2] = $1 }
        END { for (i = 1; i <= n; i++) if (seen[name[i]] < 2) print name[i] }')
verdict "each of its names is used" "$bad"
bad=$(awk '/^#define [A-Z_0-9]+ +[0-9]/ { if (!/\/\*/ && !near) print FILENAME ":" FNR ": " $0; near = near && !/\/\*/; next }
    { near = /\*\/$/ }' $header)
verdict "each of its numbers has a word on where it comes from" "$bad"
# -- a struct that is passed around has named blocks, not a hundred fields
bad=$(awk '
    function count(text,   parts, n, i, total) {
        n = split(text, parts, ";")
        for (i = 1; i < n; i++) {
            while (gsub(/\([^()]*\)/, "", parts[i])) ;
            total += gsub(/,/, ",", parts[i]) + 1
        }
        return total
    }
    FNR == 1 { depth = 0; comment = 0 }
    {   line = $0
        if (comment) { if (line !~ /\*\//) next; sub(/.*\*\//, "", line); comment = 0 }
        while (match(line, /\/\*([^*]|\*[^\/])*\*\//)) line = substr(line, 1, RSTART - 1) substr(line, RSTART + RLENGTH)
        if (line ~ /\/\*/) { comment = 1; sub(/\/\*.*/, "", line) }
        if (!depth && line ~ /^(typedef )?struct.*\{$/) { depth = 1; body = ""; from = FNR ": " $0; next }
        if (!depth) next
        if (line ~ /^\}/) { depth = 0; n = count(body); if (n > 40) print FILENAME ":" from " has " n " fields"; next }
        body = body line }' "${code[@]}")
verdict "no struct has more than 40 fields" "$bad"
if command -v clang-format >/dev/null 2>&1 && clang-format --version | grep -q 'version 14\.'; then
    bad=$(clang-format --dry-run "${code[@]}" 2>&1 | sed -n 's/:.*code should be clang-formatted.*//p' | sort -u)
    verdict "the layout is that of .clang-format" "$bad"
else
    echo "ok the layout is that of .clang-format # SKIP clang-format 14 is not here"
fi
exit $failed
