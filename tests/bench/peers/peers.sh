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

# problem, N, steps, the bench that knows it
problem() {
    "$benches/$4" peer "$1" "$2" "$3"
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
} | column -t -s "$(printf '\t')"
printf '%b' "$missing"
echo "Siconos, PETSc: no programs of ours yet"
