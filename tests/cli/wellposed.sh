#!/bin/bash
# What theory says about a model: as text, as JSON, in the session, from standard input.
. "${tests:?}/cli/common"
cat >w.cdl <<'CDL'
model two {
    dof x = 0, y = 1
    x'' = 0
    y'' = -abs(y)
    constraint floor: y >= 0 { slip = x', friction = coulomb(0.3) }
    constraint wall: x >= 0 { slip = y', friction = coulomb(0.3) }
}
CDL
try "check --wellposed" 0 "$CDL" check --wellposed w.cdl
has "the verdict" out "w.cdl:1:1: model two: not known; data piecewise analytic"
has "and the places" out "w.cdl:4:5: switch: pieces meet in a kink where y = 0" "w.cdl:6:5: not known: 'wall': 2 constraints with friction"
cp out text
try "from standard input" 0 bash -c '"$CDL" check --wellposed - <w.cdl'
same "the same" "$(sed 's/w.cdl/<stdin>/' text)" "$(cat out)"
try "as JSON" 0 "$CDL" check --wellposed --json w.cdl
has "an object for each model" out '{"model":"two","file":"w.cdl","line":1,"column":1,"motion":"not known","data":"piecewise analytic","found":[{"kind":"switch","file":"w.cdl","line":4,"column":5,"text":'
cp out j; if command -v python3 >/dev/null; then try "Python reads it" 0 python3 -c 'import json; json.loads(open("j").read())'; fi
printf ':load w.cdl\n:wellposed\n:wellposed w.cdl\n' >in
try "in the session" 0 bash -c '"$CDL" <in'
same "of what was loaded, and of a file" 2 "$(grep -c 'model two: not known' out)"
printf 'model m { dof x = 1; x'"''"' = y }\n' >bad.cdl
try "errors come first" 3 "$CDL" check --wellposed bad.cdl
same "and nothing else is printed" "" "$(cat out)"
try "a typing error" 2 "$CDL" check --welposed w.cdl
has "has a proposal" err "did you mean '--wellposed'?"
