#!/bin/bash
# The interactive session through a pipe, and interrupts.
. "${tests:?}/cli/common"
printf '1 + 1\nlet x = [1,\n  2]\nx\nmodel m {\n  dof y = 1\n  y'"''"' = 0\n}\nrun m for 1\ny(1) + 1\nlet x = 7\nx\n' >in
try "lines are executed" 0 bash -c '"$CDL" <in'
same "values are printed" "2|[1, 2]|2|7" "$(grep -E '^[0-9[]' out | paste -sd'|')"
printf 'foo\n1 + 1\n:hepl\n' >in
try "errors do not end it" 3 bash -c '"$CDL" <in'
same "what comes after is executed" 2 "$(cat out)"
has "they are reported" err "<input>:1:1: error: unknown name 'foo'" "did you mean ':help'?"
printf ':load ball.cdl\nrun ball for 1\ncount(floor.impacts) > 0\nfloor.status\n:quit\n3\n' >in
try ":load and :quit" 0 bash -c '"$CDL" <in'
has "what was loaded is there" out "true"
has "a status is counted" out "status of floor at 1001 samples: open 1001"
same "nothing after :quit" "" "$(grep -x 3 out)"

cp ball.cdl long.cdl
printf 'run ball for 1e5 with sweeping(h = 1e-4)\nsave t, y { file = "l.csv", every = 1 }\nrun ball for 1e5 with sweeping(h = 1e-4)\n' >>long.cdl
"$CDL" run long.cdl >out 2>err & pid=$!
sleep 0.3; kill -INT $pid; wait $pid; rc=$?
same "an interrupt ends a run in order" 4 $rc
has "it is reported" err "interrupted at t = "
has "in the summary too" out ", interrupted"
same "what was computed is written" "t,y" "$(head -n 1 l.csv)"
same "and no other run begins" 1 "$(grep -c '^ball:' out)"

printf ':help sweeping\n:help newton\n:help unknown-unit\n:help settle_time\n## A falling thing.\nmodel m { dof x = 1; x'"''"' = -x }\n:help m\nrun m for 1\nx\n:plot x\n:show equations\n:type 3 [m]\nlet a = 1\nlet a = 2\n:save s.cdl\n:undo\na\n:history\n:time run m for 1\n' >in
try "commands of the session" 0 bash -c '"$CDL" <in'
has ":help describes backends, laws, errors, functions" out "backend sweeping:" "newton(e |" "error 'unknown-unit'" "settle_time(c)"
has "and of what was defined" out "A falling thing."
has "a series is a line of bars" out "█" "series of 1001 samples"
has ":show, :type" out "x'' = -x" "a number in [m]"
same ":undo takes back" 1 "$(grep -cx 1 out)"
same ":save writes the last definition" "let a = 2" "$(grep let s.cdl)"
try "and a file that runs" 0 "$CDL" run s.cdl
printf ':load ball.cdl\nrun r = ball for 1\n:reload\nr.y(0)\nfloor.impacts\n:help nothing_at_all\n' >in
try "a name that nothing has" 2 bash -c '"$CDL" <in'
has ":reload keeps results" out "1 [m]"
has "impacts are a table" out "       impulse"
try "the interactive session has the command it was pasted with" 0 bash -c 'printf "cdl> 40 +\n...> 2\n" | "$CDL"'
same "without its prompts" 42 "$(cat out)"

printf ':help friction\n:help stop\n:help mm\n:help unit-mismatch\n:help tresca\n:help cases\n' | "$CDL" >out 2>err
has ":help knows attributes, keywords, units" out "friction = coulomb(mu | angle = a | static = a, kinetic = b) | tresca(s)" "stop when y < 0" "unit mm: 0.001 m" "error 'unit-mismatch'" "law: Tresca friction" "cases { -1 if x < 0; 1 otherwise }"
cat >eq.cdl <<'CDL'
model p {
    param m = 2, l = 3
    dof x = 0, a = 0.3
    kinetic m*x'^2/2 + m*l*cos(a)*x'*a' + m*l^2*a'^2/2
    potential -m*l*cos(a)
    constraint wall: x >= 1
}
CDL
try ":show equations is of its own" 0 "$CDL" show equations eq.cdl
has "the balance of each degree of freedom" out "m*x'' + m*l*cos(a)*a'' = " "adds wall.rn to the equation of x"

# the compiled program is used for all values of parameters; sizes need another one
cat >in <<'CDL'
model ball {
  param e in 0..1 = 0.8, n = 3
  dof y[i in 1..n] = 1
  for i in 1..n { y[i]'' = -9.81 }
  constraint floor[i in 1..n]: y[i] >= 0 { impact = newton(e) }
}
:time run ball(e = 0.5) for 0.1
:time run ball(n = 4) for 0.1
:time run ball(n = 4, e = 0.1) for 0.1
let a = 3
:time experiment x { sweep e in linspace(0.1, 0.9, 200); run ball(e = e) for 0.01; measure m = max(y[1]) }
:type y[1]
:type 3 [m/s]
:type [1, 2]
:type sin
:type floor
:show equations
:show model
:set quiet yes
run ball for 0.1
CDL
try ":time, :type, :show, :set" 0 bash -c '"$CDL" <in'
same "values of parameters need no other program" "0 1 0 0" "$(sed -n 's/.* s, \([0-9]*\) models* compiled/\1/p' out | paste -sd' ')"
same "for each of 200 points" 200 "$(grep -c '^x [0-9]*/200: ' out)"
same ":type" "a series|a number in [m/s]|a vector of 2 numbers|a function" "$(grep -E '^a ' out | paste -sd'|')"
has "members are listed" out "constraint floor, 0 impacts, with: gap, rn, status, impacts"
has ":show" out "y[i]'' = -9.81 for i in 1..3" "model ball"
same ":set quiet" 2 "$(grep -c '^ball: sweeping, \|^ball: sweeping (chosen), 1000 steps to t = 0.1' out | awk '{ print $1 - 1 }')"
printf ':time\n:type\n:set\n:set quiet maybe\n:show\n:show model\n:help :load\n:help gap\n:help h\n' | "$CDL" >out 2>err
has "what they need is said" err ":time needs a statement" ":type needs an expression" "unknown option or value 'quiet maybe'" ":show ast|model" "there is no input yet"
has ":help knows commands, results, options" out ":load FILE" "result of a constraint: the gap" "option of sweeping: time step"
cat >in <<'CDL'
model string {
  domain x in -1..1
  field u(x)
  -u'' = 0
  obstacle u >= 1/2 - x^2
  boundary u = 0
}
run string with vim(contact = find)
u'
CDL
try "a field by vim" 0 bash -c '"$CDL" <in'
has "is printed as formulas" out "field u', x = -1 to 1" "  u' = -2*x  for -0.2928932188 <= x <= 0.2928932188"

# mistakes of beginners: the hint says what to do
cat >in <<'CDL'
model pend { dof a = 0.5; param g = 9.81, l = 1; a'' = -g/l*sin(a) }
run pend for 1
run pend for 10 s
plot a vs t
plot a against t { file = a.png }
max a
a.max
measure max(a)
floor.impacts
let x = 3m
let y = 3 [meter]
import numpy
print(a)
quit
CDL
try "mistakes" 3 bash -c '"$CDL" <in'
has "are reported with what to do" err "a unit is written in brackets: 10 [s]" "write plot y against t" 'write file = "a.png"' "a function is called with parentheses: max(a)" \
    "functions take a series: max(y)" "a measure has a name: measure m = max(y)" "no previous run has a result of this name" \
    "write 3 [m] for the unit, 3*m to multiply" "write [m]" "use imports definitions" "an expression by itself is printed" "commands begin with a colon: :quit"
try "and nothing is written" 1 test -e pend.svg

# topics and examples
printf ':help\n:help backends\n:help std.planar\n:examples\n:examples cradel\n:examples cradle\nlast(t)\n:load zeno\n' | "$CDL" >out 2>err
has ":help lists topics" out "Topics of :help:" "modules of the library" "Moreau's time-stepping" "disk_gap(p, R, q, S)"
has ":examples lists and loads" out "bouncing_ball        A ball dropped" "cradle: sweeping" "7 expectations: 7 met"
has "an example that is not there" err "no example 'cradel'; did you mean 'cradle'?"
