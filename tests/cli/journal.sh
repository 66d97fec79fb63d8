#!/bin/bash
# Journals of points: folders that were moved, shards from several places, failed points, interrupted files, full disks.
. "${tests:?}/cli/common"
cat >x.cdl <<'CDL'
model drop {
    param e in 0..1 = 0.5
    dof p in R2 = [0, 1]
    p'' = [0, -9.81]
    constraint floor: p[2] >= 0 { impact = newton(e) }
}
model membrane {
    param load = 4
    domain x in 0..1, y in 0..1
    field u(x, y)
    -laplacian(u) = -load
    obstacle u >= -0.1
    boundary u = 0
}
experiment a {
    sweep e in linspace(0.1, 0.6, 6)
    run drop(e = e) for 1 with sweeping(h = 1e-2)
    measure h = last(p[2])
    save t, p { file = "deep/p.csv" }
    save h { file = "h.npz" }
    plot h against e { file = "h.svg" }
    animate("move.svg", p)
}
experiment b {
    sweep load in [2, 3, 4]
    run membrane(load = load) with active_set(cells = 8)
    save u { file = "u.vtk" }
    plot u { file = "u.svg", style = "surface" }
}
CDL
bytes() { (cd "$1" && find . -type f ! -name '*.points' -exec sha256sum {} + | sort -k 2); }
try "one run" 0 "$CDL" run -q -o one x.cdl
same "with a file for each point" yes "$([ -s one/move.6.svg ] && [ -s one/u.3.vtk ] && [ -s one/u.1.svg ] && [ -s one/u.2.svg ] && [ -s one/u.3.svg ] && echo yes)"
same "with the numbers of that point" "82 82 82" "$(wc -l <one/u.svg.1.csv) $(wc -l <one/u.svg.2.csv) $(wc -l <one/u.svg.3.csv)"

# -- a folder that was moved
try "to be moved" 0 "$CDL" run -q --resume -o first x.cdl
for f in a b; do truncate -s $(($(stat -c %s first/$f.points) * 2 / 3)) first/$f.points; done
mkdir moved; mv first moved/second
find moved -type f ! -name '*.points' -delete
try "is gone on with" 0 "$CDL" run -q --resume -o moved/second x.cdl
has "from what was there" err "of 6 points were finished before" "of 3 points were finished before"
same "with the bytes of one run" "$(bytes one)" "$(bytes moved/second)"
same "and nothing where it was" no "$([ -e first ] && echo yes || echo no)"
try "in several processes too" 0 "$CDL" run -q --resume -j 2 -o moved/second x.cdl
same "with the same bytes" "$(bytes one)" "$(bytes moved/second)"

# -- shards from several places
for k in 1 2 3; do (mkdir -p at$k && cd at$k && "$CDL" run -q --shard=$k/3 -o here ../x.cdl) >/dev/null 2>&1; done
mkdir brought; mv at3/here brought/third; rm -rf at3
try "shards from several places" 0 "$CDL" merge -q x.cdl at1/here at2/here brought/third -o all
same "give the bytes of one run" "$(bytes one)" "$(bytes all)"
try "without one of them" 5 "$CDL" merge -q x.cdl at1/here brought/third -o none
has "it is named what is missing" err "2 of 6 points of 'a' are in no shard"

# -- a journal that names another folder
mkdir outside
{ sed -n '1,6p' x.cdl; printf 'let spot = "../outside/p.csv"\nexperiment a {\n    sweep e in [0.1, 0.2]\n    run drop(e = e) for 1 with sweeping(h = 1e-2)\n    save t, p { file = spot }\n}\n'; } >out.cdl
try "a journal that was allowed to leave" 0 "$CDL" run -q --resume --allow-outside -o led out.cdl
rm -f outside/p.csv
try "is not followed" 5 "$CDL" run -q --resume -o led out.cdl
same "there" "" "$(ls outside)"

# -- a point that fails
cat >fail.cdl <<'CDL'
model m { param a = 1; dof x = 0, x' = 1; x'' = if x > 0.5 then a/(x - x) else 0 }
experiment f {
    sweep a in [0, 1, 2, 3]
    run m(a = a) for (if a == 1 then 1 else 0.1) with sweeping(h = 1e-2)
    measure T = last(t)
}
CDL
"$CDL" run -q -o fail fail.cdl >out 2>err; rc=$?
same "a point fails" 4 $rc
same "and the others are kept" yes "$([ -s fail/f.points ] && echo yes)"
"$CDL" run -q --resume -o fail fail.cdl >out 2>err
has "so that it alone is run again" err "3 of 4 points were finished before"
# the same in several processes, and a point that needs more than the budget, which ends the experiment
"$CDL" run -q -j 3 -o fail3 fail.cdl >out 2>err; rc=$?
same "a point fails in a process of its own" 4 $rc
"$CDL" run -q --resume -j 3 -o fail3 fail.cdl >out 2>err
has "and costs the others nothing" err "3 of 4 points were finished before"
cat >much.cdl <<'CDL'
model m { param a = 1; dof x = 0, x' = 1; x'' = -x }
experiment f {
    sweep a in [0, 1, 2, 3]
    run m(a = a) for 0.1 with sweeping(h = 1e-2)
    measure T = if a == 2 then (eye(4000) + eye(4000))[1, 1] else last(t)
}
CDL
for jobs in 1 3; do
    "$CDL" run -q -j $jobs --memory=100M -o much$jobs much.cdl >out 2>err; rc=$?
    same "a point that takes too much, -j $jobs" no "$([ $rc -eq 0 ] && echo yes || echo no)"
    "$CDL" run -q -j $jobs --memory=100M --resume -o much$jobs much.cdl >out 2>err
    same "costs the others nothing, -j $jobs" yes "$(grep -q "3 of 4 points were finished before" err && echo yes)"
done

# -- what a killed process leaves
cat >long.cdl <<'CDL'
model m { dof x = 0, x' = 1; x'' = -x }
run m for 200 with sweeping(h = 1e-4)
save t, x { file = "long.csv" }
CDL
mkdir kill; echo old >kill/long.csv.99999999-0.part; mkdir kill/.cdl-plot.99999999-0; echo 1 >kill/.cdl-plot.99999999-0/data.csv
echo mine >kill/notes.part; echo busy >kill/busy.csv.99999998-3.part
flock kill/busy.csv.99999998-3.part sleep 60 & holder=$!
for i in $(seq 50); do flock -n kill/busy.csv.99999998-3.part true || break; sleep 0.1; done
"$CDL" run -q -o kill long.cdl >/dev/null 2>&1 & pid=$!
for i in $(seq 400); do ls kill/*"$pid"*.part >/dev/null 2>&1 && break; sleep 0.02; done
kill -9 $pid 2>/dev/null; wait $pid 2>/dev/null
printf 'model m { dof x = 0, x'"'"' = 1; x'"''"' = -x }\nrun m for 1\nsave t, x { file = "short.csv" }\n' >short.cdl
try "a run after a kill" 0 "$CDL" run -q -o kill short.cdl
same "removes what it left, and nothing else" "busy.csv.99999998-3.part notes.part" "$(cd kill && find . -name '*part*' -o -name '.cdl*' | sed 's|./||' | sort | paste -sd' ')"
kill $holder 2>/dev/null; wait $holder 2>/dev/null

cat >killed.cdl <<'CDL'
model m { param a = 1; dof x = 0, x' = 1; x'' = -a*x }
experiment k {
    sweep a in linspace(1, 2, 40)
    run m(a = a) for 2 with sweeping(h = 1e-3)
    measure E = last(x)
    save t, x { file = "deep/x.csv", every = 0.1 }
    save E { file = "E.npz" }
}
CDL
"$CDL" run -q -o whole killed.cdl >/dev/null 2>&1
rounds=20 bad=""
for ((round = 1; round <= rounds; round++)); do
    [ $((round % 4)) -eq 1 ] && rm -rf cut                  # otherwise it is killed again, later
    "$CDL" run -q --resume -j $((round % 3 + 1)) -o cut killed.cdl >/dev/null 2>&1 & pid=$!
    sleep 0.0$((RANDOM % 10))$((RANDOM % 10)); kill -9 $pid 2>/dev/null; wait $pid 2>/dev/null
    rm -rf again; cp -r cut again 2>/dev/null || mkdir again
    "$CDL" run -q --resume -o again killed.cdl >out 2>err || bad+=" $round: exit $?"
    [ "$(bytes whole)" = "$(bytes again)" ] || bad+=" $round: other bytes"
done
same "killed $rounds times at random and gone on with: the bytes of one run, and nothing else" "" "$bad"

# -- a journal with a correct seal and wrong contents
cat >sound.cdl <<'CDL'
model m { param a = 1; dof x = 0, x' = 1; x'' = -a*x }
experiment f {
    sweep a in [1, 2]
    run m(a = a) for 1 with sweeping(h = 0.1)
    save t, x { file = "f.npz" }
    plot x { file = "f.svg" }
    animate("x.svg", x)
}
CDL
"$CDL" run -q --resume -o sound sound.cdl >/dev/null 2>&1
python3 "$srcdir/tests/cli/damage.py" sound/f.points ''
"$CDL" run -q --resume -o sound sound.cdl >out 2>err
has "one that is only sealed again is taken" err "2 of 2 points were finished before"
for change in 'count=1 << 62' 'count=1 << 63' 'behind=1 << 40' 'behind=1' 'rows=(1 << 63) - 1' 'style=b"x"' \
    'log=b"y; load"' 'column=99' 'ncol=0' 'surface=1 << 40' 'statement=0' 'arrays=[(b"t", 1 << 62, 4, [4])]' 'arrays=[(b"t", 0, 1, [1]*9)]' \
    'grid=b"\1\0\0\0\1\0\0\0"' 'data=b"1"' 'path=b"f.sh"' 'shown=b"f.sh"' 'file=b"f.sh"'; do
    rm -rf hurt; cp -r sound hurt
    python3 "$srcdir/tests/cli/damage.py" hurt/f.points "$change"
    try "damaged: $change" 5 "$CDL" run -q --resume --memory 500M -o hurt sound.cdl
    has "which is said" err "the data of this in the file of points are damaged"
done
same "and no other file is written" "" "$(find hurt -name '*.sh')"

# -- a full disk
cat >full.cdl <<'CDL'
model m { param a = 1; dof x = 0, x' = 1; x'' = -a*x }
experiment f {
    sweep a in linspace(1, 2, 40)
    run m(a = a) for 1 with sweeping(h = 1e-2)
    save t, x { file = "f.csv" }
}
CDL
(ulimit -f 20; "$CDL" run -q -o full full.cdl >out 2>err); rc=$?
same "a full disk ends an experiment" 5 $rc
has "with a message" err "cannot write 'full/f"
same "early" yes "$([ "$(stat -c %s full/f.points)" -le 20480 ] && echo yes)"
same "and leaves nothing half made" "" "$(find full -name '*.part' -o -name '*.csv')"
try "it goes on when there is room" 0 "$CDL" run -q --resume -o full full.cdl
has "from where it was" err "points were finished before"

# -- where manifests appear
mkdir here; cp short.cdl here; (cd here && "$CDL" run -q short.cdl >/dev/null 2>&1)
same "a manifest beside the first file" "short.cdl short.csv short.manifest.json" "$(ls here | paste -sd' ')"
try "which is run again" 0 "$CDL" repro here/short.manifest.json
(cd here && rm short.csv *.json && sed -i 's/short.csv/deep\/short.csv/' short.cdl && "$CDL" run -q short.cdl >/dev/null 2>&1)
same "in its folder" "short.csv short.manifest.json" "$(ls here/deep | paste -sd' ')"
try "which is run again, too" 0 "$CDL" repro here/deep/short.manifest.json
printf 'model m { dof x = 0; x'"''"' = 1 }\nrun m for 1\n' >here/quiet.cdl
(cd here && rm -r deep && "$CDL" run -q quiet.cdl >/dev/null 2>&1)
same "where nothing is written there is none" "quiet.cdl short.cdl" "$(ls here | paste -sd' ')"
(cd here && "$CDL" run -q -o . quiet.cdl >/dev/null 2>&1)
same "with -o there is one" yes "$([ -s here/manifest.json ] && echo yes)"
