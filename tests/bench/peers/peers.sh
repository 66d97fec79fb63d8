#!/usr/bin/env bash
# One table of the same problems by CDL, by C for the problem, and by other engines where their Debian packages
# are there.  peers.sh FOLDER_OF_BENCHES [SIZE ...]: sizes of the heaps of grains (100 and 1000).
# Milliseconds of CPU a step, collision detection and all; the largest overlap in metres; mean height at the end.
set -u
here=$(cd "$(dirname "$0")" && pwd)
benches=$1
shift
sizes=${*:-100 1000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
missing=""

# name, package, compiler, source, flags for both
build() {
    local name=$1 package=$2 compiler=$3 source=$4
    shift 4
    if ! command -v "$compiler" >/dev/null || ! "$compiler" -O2 -D_GNU_SOURCE "$here/$source" -o "$work/$name" "$@" \
        2>"$work/$name.log"; then
        missing="$missing$name: not built; the Debian package is $package\n"
    fi
}

flags() {
    pkg-config --cflags --libs "$1" 2>/dev/null
}

build ode libode-dev "${CC_PEERS:-gcc}" ode.c $(flags ode) -lm
build bullet libbullet-dev "${CXX_PEERS:-g++}" bullet.cc $(flags bullet) -lm
build mujoco libmujoco-dev "${CC_PEERS:-gcc}" mujoco.c -lmujoco -lm

# boxes, whose model is a file: time of the whole process, start and checks after the run included
cdl_boxes() {
    local seconds json
    {
        cat "$here/boxes.cdl"
        printf 'run poured(N = %d) for %d*1e-3 with sweeping(h = 1e-3, cut = never)\n' "$1" "$2"
        printf 'measure z = sum(last(b[i].p[3]) for i in 1..%d)/%d\n' "$1" "$1"
    } >"$work/boxes.cdl"
    TIMEFORMAT=%U
    seconds=$({ time timeout "${PEER_SECONDS:-120}" "${CDL:-$benches/../../cdl}" run --json "$work/boxes.cdl" >"$work/json" \
        2>/dev/null; } 2>&1)
    json=$(grep '"z"' "$work/json") || { printf 'CDL\tboxes\t%s\t-\t-\tno answer in time\n' "$1"; return; }
    awk -v n="$1" -v steps="$2" -v s="$seconds" -v j="$json" 'BEGIN {
        match(j, /"max_penetration":[^,}]*/); deep = substr(j, RSTART + 18, RLENGTH - 18)
        match(j, /"z":[^,}]*/); z = substr(j, RSTART + 4, RLENGTH - 4)
        printf "CDL\tboxes\t%d\t%.4g\t%.2g\t%.5g\n", n, 1e3*s/steps, deep, z }'
}

# problem, N, steps, the bench that knows it, or what does it
problem() {
    case $4 in
    cdl_*) "$4" "$2" "$3" ;;
    *) "$benches/$4" peer "$1" "$2" "$3" ;;
    esac
    for engine in ode bullet mujoco; do
        [ -x "$work/$engine" ] || continue
        timeout "${PEER_SECONDS:-120}" "$work/$engine" "$1" "$2" "$3"
        case $? in
        0) continue ;;
        2) why="no such problem here" ;;
        124) why="no answer in ${PEER_SECONDS:-120} s" ;;
        *) why="failed" ;;
        esac
        printf '%s\t%s\t%s\t-\t-\t%s\n' "$engine" "$1" "$2" "$why"
    done
}

{
    printf 'engine\tproblem\tN\tms a step\toverlap\theight\n'
    problem balls 1000 2000 bench_grains
    problem column 100 1000 bench_bodies
    for n in $sizes; do
        problem grains "$n" $((n > 10000 ? 60 : n > 1000 ? 150 : 300)) bench_grains
    done
    problem boxes 100 300 cdl_boxes
    problem boxes 1000 60 cdl_boxes
} | column -t -s "$(printf '\t')"
printf '%b' "$missing"
echo "Siconos, PETSc: no programs of ours yet"
