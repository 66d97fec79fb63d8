#!/bin/bash
# fmt rewrites files completely or not at all; show prints the stages.
. "${tests:?}/cli/common"

printf 'let a=1+ 2\n' >a.cdl
try "--check finds it" 1 "$CDL" fmt --check a.cdl
has "and names it" out "a.cdl"
same "without writing" "let a=1+ 2" "$(cat a.cdl)"
chmod 640 a.cdl
try "fmt" 0 "$CDL" fmt a.cdl
same "rewrites" "let a = 1 + 2" "$(cat a.cdl)"
same "keeps the mode" 640 "$(stat -c %a a.cdl)"
try "then --check is content" 0 "$CDL" fmt --check a.cdl
ln -s a.cdl link.cdl
printf 'let a=1\n' >a.cdl
try "through a link" 0 "$CDL" fmt link.cdl
same "the link stays" "a.cdl" "$(readlink link.cdl)"
same "its file is rewritten" "let a = 1" "$(cat a.cdl)"
printf 'let a=(1\n' >bad.cdl
try "a file with errors" 3 "$CDL" fmt bad.cdl
same "is left alone" "let a=(1" "$(cat bad.cdl)"
same "standard input goes to standard output" "let b = 2" "$(printf 'let b=2\n' | "$CDL" fmt -)"
same "nothing is left behind" "" "$(ls | grep part)"
for what in ast model ir jacobian; do
    try "show $what" 0 "$CDL" show $what ball.cdl
    same "show $what says something" yes "$([ -s out ] && echo yes)"
done
try "show from standard input" 0 bash -c '"$CDL" show model - <ball.cdl'
try "show of what has errors" 3 "$CDL" show model bad.cdl
