#!/bin/bash
# Each run or point prints one JSON object.
. "${tests:?}/cli/common"
cp ball.cdl j.cdl
cat >>j.cdl <<'CDL'
run ball for 1 with sweeping(h = 1e-3)
measure n = count(floor.impacts), v = floor.impacts.t
expect n >= 1  "rebounds"
experiment x {
    seed = 1
    sweep e in [0.2, 0.4]
    sweep g, y0 in zip([5, 10], [1, 2])
    run ball(e = e, g = g*1 [m/s^2], y0 = y0*1 [m]) for 1
    measure s = e*g
    expect s <= 3
}
CDL
try "run --json" 1 "$CDL" run --json j.cdl
same "an object for each" 5 "$(wc -l <out)"
same "and nothing else" 5 "$(grep -c '^{"model":"ball","experiment":.*}}$' out)"
has "of the run" out '{"model":"ball","experiment":null,"point":{},"backend":"sweeping","status":"ok","measures":{"n":' '"expectations":[{"text":"n >= 1","ok":true,"value":' ',"bound":1,"label":"rebounds"}],"stats":{"steps":1000,"seconds":'
has "of the points: a product, pairs together" out '"experiment":"x","point":{"e":0.2,"g":5,"y0":1}' '"point":{"e":0.2,"g":10,"y0":2}' '"point":{"e":0.4,"g":5,"y0":1}' '"point":{"e":0.4,"g":10,"y0":2}'
has "an expectation that fails" out '"measures":{"s":4},"expectations":[{"text":"s <= 3","ok":false,"value":4,"bound":3}]'
if command -v python3 >/dev/null; then
    try "Python reads them" 0 python3 -c 'import json; [json.loads(l) for l in open("out")]'
fi
try "-p goes into every run, swept names apart" 1 "$CDL" run --json -p e=0.3 -p y0=2 j.cdl
has "the run has it" out '"experiment":null,"point":{"e":0.3,"y0":2}'
has "the sweep keeps its own" out '"point":{"e":0.2,"g":5,"y0":1}'

cat >f.cdl <<'CDL'
model m { param a in 0..1 = 0.5; dof x = a; x'' = 0 }
let two = 2
run m(a = two) for 1
expect x(0) == 2
CDL
try "a run that is refused" 3 "$CDL" run --json f.cdl
has "is an object as well" out '{"model":"m","experiment":null,"point":{},"backend":null,"status":"failed"'

cp ball.cdl v.cdl; printf 'run ball for 1 with sweeping(h = 1e-2)\n1 + 1\nlet a = 3\na\ny\nanimate("a.svg", y)\nexperiment x { sweep e in [0.2, 0.4]; run ball(e = e) for 1; e + 7; measure s = e }\n' >>v.cdl
try "values of expressions" 0 "$CDL" run --json v.cdl
same "are no objects" "3 0" "$(grep -c '^{"model"' out) $(grep -vc '^{"model"' out)"
has "and are for people" err 2 a.svg 7.2
