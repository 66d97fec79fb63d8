#!/bin/bash
# Experiments: several processes, crashes, resuming, shards, random numbers.
. "${tests:?}/cli/common"
cp ball.cdl x.cdl
cat >>x.cdl <<'CDL'
experiment x {
    seed = 3
    sweep e in linspace(0.1, 0.6, 6)
    sweep k in 1..3
    let h0 = 1 + 0.1*random_normal(), w = random(2)
    run ball(e = e, y0 = h0*1 [m]) for 0.5 with sweeping(h = 1e-2)
    measure T = last(y), u = w
    expect T <= 0.07
    save t, y { file = "y.csv", every = 0.1 }
    save T, u { file = "T.csv" }
    plot T against e { file = "T.svg", by = k }
}
CDL
try "one after the other" 1 "$CDL" run -o seq x.cdl
mv out out.seq; mv err err.seq
try "three processes" 1 "$CDL" run -j 3 -o par x.cdl
same "say the same" "$(sed 's/ ([^ ]* s)$//' out.seq)" "$(sed 's/ ([^ ]* s)$//' out)"
same "show the same errors, in any order" "$(grep -v wrote err.seq | sort)" "$(grep -v wrote err | sort)"
for f in y.csv T.csv T.svg.csv T.svg.gp manifest.json; do try "write the same $f" 0 cmp seq/$f par/$f; done
same "no file of points is left" "" "$(find seq par -name '*.points')"
"$CDL" run --json x.cdl -o o1 2>/dev/null | sed 's/"seconds":[^,]*,//' >json1; "$CDL" run --json -j 2 x.cdl -o o2 2>/dev/null | sed 's/"seconds":[^,]*,//' >json2
same "and the same objects" "$(cat json1)" "$(cat json2)"
same "as many as points" 18 "$(wc -l <json1)"
try "a manifest of an experiment is run again" 0 "$CDL" repro seq/manifest.json

# random numbers are a function of seed, point, name and index
same "draws differ from point to point" 36 "$(tail -n +2 seq/T.csv | cut -d, -f4 | sort -u | wc -l)"
sed 's/seed = 3/seed = 4/' x.cdl >y.cdl
"$CDL" run -q -o other y.cdl >/dev/null 2>&1
same "and with the seed" no "$(cmp -s seq/T.csv other/T.csv && echo yes || echo no)"
sed 's/let h0/let more = random(5), h0/' x.cdl >z.cdl
"$CDL" run -q -o more z.cdl >/dev/null 2>&1
try "another name draws other numbers and disturbs nobody" 0 cmp seq/T.csv more/T.csv

# shards
for k in 3 1 2; do try "shard $k" 1 "$CDL" run -q --shard=$k/3 -o sh x.cdl; [ $k = 1 ] || same "no table yet" "" "$(find sh -name '*.csv')"; [ $k = 2 ] || :; done
same "a file a shard" "x.1-of-3.points x.2-of-3.points x.3-of-3.points" "$(cd sh && echo *.points)"
try "they are put together" 1 "$CDL" merge -o sh x.cdl
for f in y.csv T.csv T.svg.gp manifest.json; do try "the same $f" 0 cmp seq/$f sh/$f; done
rm sh/x.2-of-3.points
try "one that is missing" 5 "$CDL" merge -o sh x.cdl
has "is reported" err "6 of 18 points of 'x' are in no shard in 'sh': 2, 5, 8"
try "a shard that is none" 2 "$CDL" run --shard=4/3 x.cdl

# resuming: comments and layout do not matter, formulas do
try "to be gone on with" 1 "$CDL" run -q --resume -o res x.cdl
cut=$(($(stat -c %s res/x.points) * 2 / 3)); truncate -s $cut res/x.points; rm res/*.csv
sed 's/^    seed/    # a comment\n\n    seed  /' x.cdl >c.cdl
try "after a cut" 1 "$CDL" run --resume -o res c.cdl
has "what was done is not done again" err "of 18 points were finished before"
for f in y.csv T.csv; do try "the same $f" 0 cmp seq/$f res/$f; done
try "all done" 1 "$CDL" run --resume -j 2 -o res c.cdl
has "all points" err "18 of 18 points were finished before"
sed -i 's/last(y)/first(y)/' c.cdl
try "another formula" 1 "$CDL" run --resume -o res c.cdl
same "is run anew" "" "$(grep 'finished before' err)"

# a process that dies fails its point, and no other one
cp ball.cdl crash.cdl
cat >>crash.cdl <<'CDL'
experiment c {
    sweep n in [1, 60000, 2, 3]
    run ball(e = 0) for n*1e-2 with sweeping(h = 1e-4)
    measure T = last(t)
    save T { file = "c.csv" }
}
CDL
"$CDL" run -j 2 -o crash crash.cdl >out 2>err & pid=$!
for i in $(seq 100); do child=$(ps -o pid= --ppid $pid 2>/dev/null | head -n 1); [ "$(ps -o pid= --ppid $pid | wc -l)" = 1 ] && [ $i -gt 10 ] && break; sleep 0.05; done
kill -SEGV $child; wait $pid; rc=$?
same "a crash is a failure" 4 $rc
if "$CDL" --version --json | grep -q '"sanitize": *true'; then ended="its process"; else ended="its process was ended by signal 11"; fi
has "of that point" err "c, point 2: $ended"
has "which is reported" out "c 2/4: n = 60000 failed"
same "the others are there" "1 2 3" "$(tail -n +2 crash/c.csv | cut -d, -f1 | paste -sd' ')"

# an interrupt keeps the computed points, and --resume continues from there
"$CDL" run -j 2 -o crash crash.cdl >out 2>err & pid=$!
sleep 0.5; kill -INT $pid; wait $pid; rc=$?
same "an interrupt" 4 $rc
has "is reported" err "interrupted"
same "what was done is kept" yes "$([ -s crash/c.points ] && echo yes)"
same "no process stays" "" "$(ps -o pid= --ppid $pid)"

cp ball.cdl bad.cdl
printf 'experiment b {\n sweep e in [0.1, 2, 0.3]\n run ball(e = e) for 0.1 with sweeping(h = 1e-2)\n measure T = last(t)\n}\n' >>bad.cdl
try "a value that is refused ends it" 3 "$CDL" run bad.cdl
same "there" 2 "$(grep -c '^b ' out)"
try "or not" 3 "$CDL" run --keep-going bad.cdl
same "with --keep-going" 3 "$(grep -c '^b ' out)"

# the templates for clusters
export CDL
slurm() {                                       # folder, number of array tasks, first number, how many to run: as slurmd starts them
    local dir=$1 tasks=$2 min=$3 count=$4 k code=0
    for k in $tasks; do
        SLURM_ARRAY_TASK_ID=$k SLURM_ARRAY_TASK_MIN=$min SLURM_ARRAY_TASK_STEP=1 SLURM_ARRAY_TASK_COUNT=$count \
            bash "$srcdir/examples/cluster/slurm.sh" x.cdl "$dir" >/dev/null 2>slurm.err || code=$?
    done
    return $code
}
try "a Slurm array, whose expectations are not met" 0 slurm slurm "1 2 3" 1 3
try "is put together" 1 "$CDL" merge -o slurm x.cdl
try "gives the same" 0 cmp seq/y.csv slurm/y.csv
try "an array from 0, of which a task is missing" 0 slurm zero "0 2" 0 3
try "is not whole" 5 "$CDL" merge -o zero x.cdl
try "the task alone" 0 slurm zero 1 1 1
try "is put together" 1 "$CDL" merge -o zero x.cdl
try "gives the same" 0 cmp seq/y.csv zero/y.csv
try "a task that is none" 2 slurm zero 7 7 1
has "is reported" slurm.err "task 7 is none of the 3"
if command -v parallel >/dev/null; then
    try "GNU parallel" 1 bash "$srcdir/examples/cluster/parallel.sh" x.cdl gnu 4
    try "gives the same" 0 cmp seq/y.csv gnu/y.csv
else echo "ok GNU parallel # SKIP it is not installed"; fi

# a sweep that grows: finished points are not run again, and the files are those of one run
grow() { cp ball.cdl grow.cdl; printf 'experiment g {\n    sweep e in %s\n    run ball(e = e) for 1 with sweeping(h = 1e-2)\n    measure T = max(y(0.9))\n    save T { file = "g.csv" }\n    plot y against t { file = "g.svg" }\n}\n' "$1" >>grow.cdl; }
grow "[0.2, 0.4]"
try "two points" 0 "$CDL" run --resume -o grown grow.cdl
grow "[0.2, 0.4, 0.6]"
try "one more" 0 "$CDL" run --resume -o grown grow.cdl
has "only the new one is run" err "g: 2 of 3 points were finished before"
same "lines show the new number" 3 "$(grep -c '^g [123]/3: ' out)"
try "all at once" 0 "$CDL" run -o afresh grow.cdl
same "the same file" same "$(cmp grown/g.csv afresh/g.csv && cmp grown/g.svg.csv afresh/g.svg.csv && echo same)"
has "impacts are marked in all of them" afresh/g.svg.gp '$impacts with points'
grow "[0.3, 0.4, 0.6]"
try "another value" 0 "$CDL" run --resume -o grown grow.cdl
has "runs the point again" err "g: 2 of 3 points were finished before"
