#!/bin/bash
# The interactive session through a pipe, and interrupts.
. "${tests:?}/cli/common"
printf '1 + 1\nlet x = [1,\n  2]\nx\nmodel m {\n  dof y = 1\n  y'"''"' = 0\n}\nrun m for 1\ny(1) + 1\nlet x = 7\nx\n' >in
try "lines are executed" 0 bash -c '"$CDL" <in'
same "values are printed" "2|[1, 2]|2|7" "$(grep -E '^[0-9[]' out | paste -sd'|')"
printf 'foo\n1 + 1\n:hepl\n' >in
try "errors do not end it" 3 bash -c '"$CDL" <in'
same "what comes after is executed" 2 "$(cat out)"
has "they are told" err "<input>:1:1: error: unknown name 'foo'" "did you mean ':help'?"
printf ':load ball.cdl\nrun ball for 1\ncount(floor.impacts) > 0\n:quit\n3\n' >in
try ":load and :quit" 0 bash -c '"$CDL" <in'
has "what was loaded is there" out "true"
same "nothing after :quit" "" "$(grep -x 3 out)"

cp ball.cdl long.cdl
printf 'run ball for 1e5 with sweeping(h = 1e-4)\nsave t, y { file = "l.csv", every = 1 }\nrun ball for 1e5 with sweeping(h = 1e-4)\n' >>long.cdl
"$CDL" run long.cdl >out 2>err & pid=$!
sleep 0.3; kill -INT $pid; wait $pid; rc=$?
same "an interrupt ends a run in order" 4 $rc
has "it is told" err "interrupted at t = "
has "in the summary too" out ", interrupted"
same "what was computed is written" "t,y" "$(head -n 1 l.csv)"
same "and no other run begins" 1 "$(grep -c '^ball:' out)"
