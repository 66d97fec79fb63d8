#!/bin/bash
# Random valid models for all backends (tests/fuzz/models.awk): each run succeeds or is refused with a message, its numbers are
# finite, and the backends reach the same final state.
. "${tests:?}/cli/common"
# prints models with a number that is not finite, or whose final state differs from that of the first run by more than the bound
compared='
{
    n++
    if (!/"status":"ok"/) { print "run " n ": " substr($0, 1, 160); next }
    gsub(/"(experiment|solver|cut)":null/, "\"none\"")
    if (/[:,[](nan|inf|-inf|null)[],}]/) print "run " n " has no number: " substr($0, 1, 160)
    if (!match($0, /"measures":\{[^}]*\}/)) next
    m = split(substr($0, RSTART + 12, RLENGTH - 13), part, ",")
    for (k = 1; k <= m; k++) {
        split(part[k], pair, ":")
        if (!(k in first)) first[k] = pair[2]
        d = pair[2] - first[k]
        if (!(d <= bound && -d <= bound)) print "run " n ": " pair[1] " is " pair[2] ", before " first[k]
    }
}
END { if (!n) print "no run" }'
# contacts that their own friction lifts, that share a load, whose slip comes to rest beside a sticking one, for which Uzawa's method is
# slow; springs for which part of a step is worse than the whole
found_once="551 885 934 1126 1220 1221 30133 5314 5890"
# MODEL_SEEDS="$(seq 1000 2000)" tests/run-tests cli/models: a large number of models
for seed in ${MODEL_SEEDS:-$(seq 1 32) $found_once}; do
    awk -v seed="$seed" -f "$tests/fuzz/models.awk" >m.cdl
    "$CDL" run --json --time=20 m.cdl >out 2>err; rc=$?
    bound=$(sed -n 's/^# bound = //p' m.cdl)
    found=$(awk -v bound="${bound:-0.03}" "$compared" out)
    [ $rc -eq 0 ] && [ -z "$found" ] || { found="exit $rc $found"; sed 's/^/    /' m.cdl err; }
    same "model $seed" "" "$found"
done
