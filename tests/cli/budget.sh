#!/bin/bash
# The budget: --time, --memory, --disk end in a located message and a defined exit code, wherever the work is.
. "${srcdir:?}/tests/cli/common"

# -- functions that double: an expression evaluates each call only once
cat >double.cdl <<'CDL'
fn f(n) = if n == 0 then 1 else f(n - 1) + f(n - 1)
f(60)
CDL
try "a function that doubles" 0 "$CDL" run --time 20 double.cdl
same "its value, 2^60" "1.152921504606847e18" "$(cat out)"
{
    echo "fn f0(x) = x + 1"
    for i in $(seq 1 40); do echo "fn f$i(x) = f$((i - 1))(x) + f$((i - 1))(x)"; done
    echo "f40(0)"
    printf 'model m {\n  dof y = 1\n  y'"''"' = -1e-12*f40(y)\n}\nrun m for 1\n'
} >forty.cdl
try "forty functions, in a value and in a model" 0 "$CDL" run --time 20 -o forty forty.cdl
has "2^40" out 1099511627776
cat >draws.cdl <<'CDL'
fn g(n) = if n == 0 then random() else g(n - 1) + 0
let many = [g(2) for i in 1..2000]
expect many[1999] != many[2000]
CDL
try "random numbers are drawn each time" 0 "$CDL" run draws.cdl

# -- time: 3 in evaluation, 4 in a run; the place is named
cat >slow.cdl <<'CDL'
fn h(a, b) = if a == 0 then b else h(a - 1, b + 0.1*a) + h(a - 1, b - 0.1*a*a)
h(150, 0.5)
CDL
try "time in evaluation" 3 "$CDL" run --time 0.5 slow.cdl
has "where" err "slow.cdl:1:" "exceeds the time limit of --time (0.5 s)"
try "time in a check" 3 "$CDL" -e "fn h(a, b) = if a == 0 then b else h(a - 1, b + 0.1*a) + h(a - 1, b - 0.1*a*a)
model m { param k = h(150, 0.5); dof y = 1; y'' = -k }" --time 0.5
cat >long.cdl <<'CDL'
use "ball.cdl" as b
run b.ball for 1e9 with sweeping(h = 1e-4, every = 0.1, native = never)
save y { file = "y.csv" }
CDL
try "time in a run" 4 "$CDL" run --time=0.5 -o long long.cdl
has "where it ended" err "long.cdl:2:1:" "exceeds the time limit of --time (0.5 s)" "partial results are kept"
same "what was computed is saved" yes "$([ "$(wc -l <long/y.csv)" -gt 2 ] && echo yes)"
cat >named.cdl <<'CDL'
use "ball.cdl" as b
run first = b.ball for 1e9 with sweeping(h = 1e-4, every = 1, native = never)
run second = b.ball for 1
measure top = [max(first.y), max(second.y)]
let twice = 2*last(second.y)
twice + 1
plot second.y
CDL
try "time before the run that others read" 4 "$CDL" run --time=0.5 -o long named.cdl
same "is the only error" 1 "$(grep -c error: err)"
try "a time that is none" 2 "$CDL" run --time=-1 long.cdl

# -- memory
cat >eye.cdl <<'CDL'
let a = 1
let b = eye(3000)*eye(3000)
expect a == 1
CDL
try "memory in evaluation" 3 "$CDL" run --memory 50M eye.cdl
has "where" err "eye.cdl:2:" "this exceeds the memory limit of --memory (50 MB)"
cat >membrane.cdl <<'CDL'
model membrane { domain x in -1..1, y in -1..1; field u(x, y); -laplacian(u) = -1; obstacle u >= 0.3 - x^2 - y^2; boundary u = 0 }
run membrane with active_set(cells = 1000)
expect u(0, 0) > 0
CDL
try "memory in a run" 4 "$CDL" run --memory 40M membrane.cdl
has "where" err "membrane.cdl:2:1:" "this exceeds the memory limit of --memory (40 MB)"
# a point that needs too much has failed; the points behind it run, in one process and in several
cat >points.cdl <<'CDL'
model a { param n = 1; dof x = 0; x'' = -x }
experiment e {
    sweep n in [1, 4000, 2, 3]
    run a for 1 with sweeping(h = 1/n)
    measure k = sum(sum(eye(n)*eye(n)))
}
CDL
for jobs in 1 2; do
    try "memory at a point, -j $jobs" 4 "$CDL" run --memory 100M -j $jobs points.cdl
    has "the others have their measures" out "e 1/4: n = 1; k = 1" "e 2/4: n = 4000 failed" "e 3/4: n = 2; k = 2" "e 4/4: n = 3; k = 3"
done
for bad in much 0 4X -3; do try "--memory=$bad" 2 "$CDL" run --memory="$bad" eye.cdl; done

# -- deep and wide
printf 'fn d(n) = d(n - 1) + 1\nd(1)\n' >deep.cdl
try "recursion without end" 3 "$CDL" run deep.cdl
has "where" err "deep.cdl:1:"
printf 'let a = [i for i in 1..1e9]\n' >wide.cdl
try "a list that is too long" 3 "$CDL" run wide.cdl
has "where" err "wide.cdl:1:"

# hulls of many points: they are found in order of their number squared, and more are refused
for n in 600 601; do
    printf 'model m {
    dof p in R3 = [0, 0, 2], q in R3 = [0, 0, -2]
    kinetic norm(p'"'"')^2/2 + norm(q'"'"')^2/2
    shape a: hull([[sin(i)*cos(7*i), sin(i)*sin(7*i), cos(i)] for i in 1..%s]) at p, eye(3)
    shape b: ball([0, 0, 0], 0.1) at q, eye(3)
    constraint touch: a.gap(b) >= 0
}
run m for 0.002 with sweeping(h = 1e-3)\n' $n >hull$n.cdl
done
try "a hull of 600 points" 0 "$CDL" run --time 20 hull600.cdl
try "a hull of more" 4 "$CDL" run --time 20 hull601.cdl
has "where" err "hull601.cdl:4:" "this shape has more than 600 points"

# a table of many cases is no deep expression
{
    printf 'let x = 3\nlet a = cases { '
    for k in $(seq 50000 -1 1); do printf '%d if x > %d; ' $k $k; done
    printf '0 otherwise }\nexpect a == 2\nmodel m {\n    dof y = 2.5\n    y'"''"' = cases { '
    for k in $(seq 50000 -1 1); do printf '%d if y > %d; ' $k $k; done
    printf '0 otherwise }\n}\nrun m for 0.001\nexpect y'"''"'(0) == 2\n'
} >cases.cdl
try "50000 cases" 0 "$CDL" run cases.cdl

# a pipe that stays silent, and one that never ends
mkfifo silent
exec 9<>silent
for what in run check fmt "show ast"; do
    start=$SECONDS
    try "$what of a silent pipe" 3 timeout 30 "$CDL" $what --time=0.5 - <silent
    has "why" err "exceeds the time limit of --time"
    try "$what of a silent file" 3 timeout 30 "$CDL" $what --time=0.5 --allow-outside silent
    same "in time" yes "$([ $((SECONDS - start)) -lt 15 ] && echo yes)"
done
exec 9>&-
try "a pipe that nobody writes to" 3 timeout 30 "$CDL" run --time=0.5 --allow-outside silent
yes 'let a = 1' | timeout 60 "$CDL" run - >out 2>err
same "a pipe without an end" 3 "${PIPESTATUS[1]}"
has "why" err "the input is longer than 64 MB"
yes 'let a = 1' | timeout 60 "$CDL" check --memory=20M - >out 2>err
same "and little memory" 3 "${PIPESTATUS[1]}"
has "why" err "exceeds the memory limit of --memory"

# -- disk: 5, and no file is left half written
cat >save.cdl <<'CDL'
use "ball.cdl" as b
run b.ball for 200 with sweeping(h = 1e-3)
save t, y, y' { file = "big.csv" }
save t, y, y' { file = "big.npz" }
CDL
try "disk" 5 "$CDL" run --disk 100k -o disk save.cdl
has "where" err "save.cdl:3:" "the limit of --disk is exceeded"
same "nothing half written" "" "$(find disk -name 'big*' -o -name '*.part')"
try "disk for samples" 5 "$CDL" run --disk 1M --spill 1 -o disk2 save.cdl
