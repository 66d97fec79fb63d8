#!/bin/bash
# The grammar for tree-sitter gives the trees of the parser for all examples, and contains every keyword.
. "${tests:?}/cli/common"
grammar=$srcdir/lang/editors/tree-sitter-cdl
words=$(sed -nE 's/^X\([A-Z_]+, *"([a-z]+)".*/\1/p' "$srcdir/lang/syntax/keywords.def" | sort -u)
for f in grammar.js queries/highlights.scm; do
    missing=
    for w in $words; do grep -qE "['\"]$w['\"]" "$grammar/$f" || missing="$missing $w"; done
    same "$f has all keywords" "" "$missing"
done
for tool in tree-sitter node cc; do
    command -v $tool >/dev/null || { echo "ok the grammar for tree-sitter # SKIP no $tool"; exit 0; }
done
export HOME=$PWD XDG_CACHE_HOME=$PWD/cache XDG_CONFIG_HOME=$PWD/config
cp -r "$grammar" g
(cd g && tree-sitter generate >out 2>&1) || { echo "not ok the grammar is generated"; cat g/out; failed=1; exit; }
/usr/bin/python3 "$tests/tree-sitter/compare.py" "$CDL" tree-sitter g "$srcdir"/examples/*.cdl "$srcdir"/stdlib/*.cdl || failed=1
(cd g && tree-sitter query queries/highlights.scm "$srcdir/examples/bouncing_ball.cdl") >captures 2>err
has "colours" captures "keyword" "type.definition" "number" "comment.documentation" "function.call" "property"
for bad in "model m { dof x = }" "run for 3" "let a = 1 +" "constraint c y >= 0" "model m { y'' = -g" "let a = [1, 2; " "expect"; do
    printf '%s\n' "$bad" >bad.cdl
    same "'$bad' is an error for both" "3 1" "$("$CDL" show ast bad.cdl >/dev/null 2>&1; a=$?; cd g && tree-sitter parse -q ../bad.cdl >/dev/null 2>&1; echo $a $?)"
done
