#!/bin/bash
# Estimates of the error of random models (tests/fuzz/models.awk): within a factor of 3 of the largest difference from `events`, or
# not given; both count as right where they are rounding. Whole steps, theta above 1/2, steps that divide no time of interest, every
# kind of contact; runs that have an estimate unasked and runs that are asked for one.
. "${tests:?}/cli/common"
looks=40
# the model of a seed, then one run per way; each measures the first two dofs at the same times
text_of() {
    awk -v seed="$1" -f "$tests/fuzz/models.awk" | grep -v '^run\|^measure\|^#' >m.cdl
    local dof measures
    dof=$(grep -o 'dof .*' m.cdl | sed 's/^dof //' | tr ',' '\n' | sed -n 's/^ *dof *//; s/^ *\([a-z0-9]*\) = .*/\1/p' | head -4)
    measures=$(for d in $dof; do
        for k in $(seq 1 $looks); do printf '%s_%d = %s(%d/20), ' "$d" "$k" "$d" "$k"; done
    done)
    {
        echo 'run m for 2 with events()'
        echo "measure ${measures%, }"
        while read -r way; do
            echo "run m for 2 with $way"
            echo "measure ${measures%, }"
        done
    } >>m.cdl
}
compared='
{
    m = match($0, /"measures":\{[^}]*\}/)
    n = split(substr($0, RSTART + 12, RLENGTH - 13), part, ",")
    off = 0
    for (k = 1; k <= n; k++) {
        split(part[k], pair, ":")
        if (NR == 1) exact[k] = pair[2]
        d = pair[2] - exact[k]
        off = d > off ? d : -d > off ? -d : off
    }
    if (NR == 1 || !/"status":"ok"/) next
    runs++
    if (!match($0, /"error":[0-9.e+-]*/)) next
    given++
    error = substr($0, RSTART + 8, RLENGTH - 8) + 0
    if ((error > 1e-13 || off > 1e-13) && !(error <= 3*off && error >= off/3)) print "run " NR ": estimate " error ", truth " off
}
END { print runs + 0, given + 0 >"count" }'
runs=0 given=0
# ESTIMATE_SEEDS="$(seq 1000 2000)" tests/run-tests cli/estimates: a large count
for seed in ${ESTIMATE_SEEDS:-$(seq 1 36)}; do
    [ $((seed % 16)) -lt 12 ] || continue
    text_of "$seed" <<'WAYS'
sweeping(h = 1e-2)
sweeping(h = 5e-3, error = estimate)
sweeping(h = 1e-2, theta = 0.75, error = estimate)
sweeping(h = 1e-2, cut = never, error = estimate)
WAYS
    "$CDL" run --json --time=20 m.cdl >out 2>err
    found=$(awk "$compared" out)
    [ -z "$found" ] || sed 's/^/    /' m.cdl
    same "estimates of model $seed" "" "$found"
    read -r r g <count
    runs=$((runs + r)) given=$((given + g))
done
echo "# $given of $runs runs have an estimate"
same "most runs have one" yes "$([ $((2 * given)) -gt "$runs" ] && echo yes)"
