#!/usr/bin/env bash
# Instructions of CDL and of C for the same problem, counted by callgrind: one JSON line each. The count of a run of neither side
# is subtracted, so that starting a process does not count. instructions.sh FOLDER_OF_BENCHES
set -u
command -v valgrind >/dev/null || {
    echo '{"instructions":"valgrind is not installed"}'
    exit 0
}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# of one side: cdl, hand or none
count() {
    BENCH_SIDE=$1 valgrind --tool=callgrind --callgrind-out-file="$out/data" "$benches/$2" "$3" 2>&1 |
        sed -n 's/.*Collected : *//p'
}

benches=$1
# bench, problem, number of steps of all its runs
while read -r bench problem steps; do
    none=$(count none "$bench" "$problem")
    own=$(($(count cdl "$bench" "$problem") - none))
    hand=$(($(count hand "$bench" "$problem") - none))
    awk -v p="$problem" -v a="$own" -v b="$hand" -v n="$steps" 'BEGIN {
        printf "{\"problem\":\"%s, instructions\",\"cdl\":%.4g,\"hand\":%.4g,\"unit\":\"a step\",\"ratio\":%.3g}\n",
               p, a / n, b / n, a / b }'
done <<'LIST'
bench_grains few 2000
LIST
