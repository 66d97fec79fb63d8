#!/bin/bash
# Long runs: samples beyond --spill are stored in an unnamed file; stopped runs keep their samples.
. "${tests:?}/cli/common"
cat >long.cdl <<'CDL'
param n = 2e5
model osc {
    dof y = 1, y' = 0
    y'' = -y
    constraint floor: y >= -0.5 { impact = newton(0.9) }
}
run osc for n*1e-3 with sweeping(h = 1e-3)
measure a = max(y), b = min(y'), c = mean(energy), d = last(y), f = count(floor.impacts), g = rms(floor.gap), k = argmax(y'), s = floor.status(1.5)
measure between = y(10.0005), all = energy
save t, y, floor.gap { file = "y.csv" }
save t, y' { file = "y.npz", every = 0.5 }
CDL
try "in memory" 0 "$CDL" run -o a --json long.cdl
sed 's/"seconds":[^,]*//' out >a.json
try "in a file" 0 "$CDL" run -o b --spill=1 --json long.cdl
sed 's/"seconds":[^,]*//' out >b.json
same "the same measures" "$(cat a.json)" "$(cat b.json)"
same "the same rows" same "$(cmp a/y.csv b/y.csv && echo same)"
same "the same arrays" same "$(cmp a/y.npz b/y.npz && echo same)"
same "no file is left" "" "$(find . "${TMPDIR:-.}" -maxdepth 2 -name 'cdl-*' 2>/dev/null)"
try "--spill is a number" 2 "$CDL" run --spill=much long.cdl
has "and reported" err "'much' is not a value of --spill"

# more columns than the system has mappings; so many that the file is created anew instead of extended
named() {
    printf 'model m {\n    dof x = 1\n    x%s = -x\n' "''"
    for k in $(seq "$1"); do printf '    constraint c%d: x >= -%d { impact = newton(0.5) }\n' "$k" "$((k + 1))"; done
    printf '    constraint wall: x >= -0.5 { impact = newton(0.9) }\n'
}
{ named 24000; printf '    stop when t > 0.0025\n}\nrun m for 1e5 with sweeping(h = 1e-3)\nexpect steps <= 4\n'; } >named.cdl
try "72000 columns" 0 "$CDL" run -o wide named.cdl
{ named 1400; printf '}\nrun m for 5 with sweeping(h = 1e-3)\nsave t, x, wall.gap, c7.gap, wall.rn { file = "x.csv" }\n'; } >named.cdl
try "4200 columns in memory" 0 "$CDL" run -o e --json named.cdl
try "in a file that becomes longer" 0 "$CDL" run -o f --spill=8 --json named.cdl
same "the same rows" same "$(cmp e/x.csv f/x.csv && echo same)"

# ten times the samples, the same memory
sed '/^save/d; /^measure between/d' long.cdl >lean.cdl
printf 'save t, y { file = "y.csv", every = 0.5 }\nplot y against t { file = "y.svg" }\n' >>lean.cdl
cat >rss.py <<'PY'
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
PY
if command -v python3 >/dev/null; then
    read -r code few < <(python3 rss.py "$CDL" run -o c --spill=1 -p n=2e5 lean.cdl 2>/dev/null)
    read -r code2 many < <(python3 rss.py "$CDL" run -o c --spill=1 -p n=2e6 lean.cdl 2>/dev/null)
    same "long runs end well" "0 0" "$code $code2"
    same "memory does not grow with the samples" yes "$([ $((many - few)) -lt 100 ] && echo yes || echo "from $few to $many MB")"
    same "a plot shows a part of them" yes "$([ "$(wc -l <c/y.svg.csv)" -lt 20000 ] && echo yes)"
fi

(ulimit -f 20000; exec "$CDL" run -o d --spill=1 -p n=2e6 --json lean.cdl) >out 2>err
same "no room for samples" 5 $?
has "is reported" err "no more samples could be kept: File too large" "option every of the backend"
has "and marked" out '"status":"failed","incomplete":true'

# a stopped run: the computed samples are written
cat >stop.cdl <<'CDL'
model osc { dof y = 1, y' = 0; y'' = -y }
run osc for 1e6 with sweeping(h = 1e-3)
save t, y { file = "y.csv", every = 1 }
expect last(y) == 0
CDL
for sig in INT TERM; do
    "$CDL" run -o "stop$sig" --spill=1 --json stop.cdl >out 2>err &
    pid=$!
    sleep 0.7
    kill -$sig $pid
    begin=$(date +%s%N)
    wait $pid
    same "a run is stopped by SIG$sig" 4 $?
    same "soon" yes "$([ $((($(date +%s%N) - begin) / 1000000)) -lt 3000 ] && echo yes)"
    has "it says so" err "interrupted at t = " "partial results are kept"
    has "in JSON too" out '"status":"failed","incomplete":true'
    same "its rows are written" yes "$([ "$(wc -l <"stop$sig/y.csv")" -gt 2 ] && echo yes)"
    has "and marked" "stop$sig/manifest.json" '"incomplete":true' '"status": 4'
done

cat >every.cdl <<'CDL'
model osc { dof y = 1, y' = 0; y'' = -y }
run osc for 1 with sweeping(h = 1e-3, every = 0.1)
measure n = count(t)
run osc for 1 with events(every = 0.1)
run osc for 1 with penalty(every = 0.1)
CDL
try "fewer samples" 0 "$CDL" run every.cdl
has "as many as wanted" out "n = 11"
cat >fam.cdl <<'CDL'
model gas {
    dof p[i in 1..100] in R2 = [i, 0]
    for i in 1..100 { p[i]'' = [0, 0] }
    constraint touch[i in 1..100, j in i+1..100]: norm(p[i] - p[j]) >= 0.5
}
run gas for 0.01 with sweeping(h = 0.001)
touch[1, 2].status(0.005)
max(touch[1, 2].rn)
settle_time(touch[1, 2])
CDL
try "families whose states are not kept" 3 "$CDL" run fam.cdl
same "each use is reported" 3 "$(grep -c "constraint 'touch' has 4950 members, too many to keep their gaps, forces and states" err)"
