#!/bin/bash
# What the summary of a run shows: where the series of events were cut off, beside an error from another run.
. "${tests:?}/cli/common"
cat >swing.cdl <<'CDL'
model swing { dof a = 1; a'' = -9.81*sin(a) }
CDL
# cut OPTIONS: the figure of the summary
cut() {
    { cat swing.cdl; echo "run swing for 5 with events($1)"; } >now.cdl
    "$CDL" run now.cdl 2>err | sed -n 's/.*series truncated at \([^ ]*\) of the motion.*/\1/p'
}
below() { awk -v a="${2:-x}" -v b="$3" -v c="$4" 'BEGIN { exit !(a + 0 > b && a + 0 < c) }' && echo "ok $1" || { echo "not ok $1: $2"; failed=1; }; }
below "series are cut off below their tolerance" "$(cut '')" 0 1e-12
below "and where that is looser, earlier" "$(cut 'tolerance = 1e-4')" 1e-12 1e-4
below "or where the order is low" "$(cut 'order = 6, h = 0.1')" 1e-7 1e-2
{ cat swing.cdl; echo 'run swing for 5 with sweeping(h = 1e-2)'; } >now.cdl
try "other backends have no series" 0 "$CDL" run now.cdl
same "and no such line" 0 "$(grep -c 'truncated at' out)"

# the summary names what the checks after a run could not look at
same "all of it was checked" 0 "$(grep -c 'not checked' out)"
{ cat swing.cdl; echo 'run swing for 5 with sweeping(h = 1e-2, every = 0.1)'; } >now.cdl
try "samples far apart" 0 "$CDL" run now.cdl
has "no step can be checked" out "not checked: the equations of motion, as not all steps are stored"
cat >now.cdl <<'CDL'
model late { dof y = 0.1; y'' = -9.81 - y(t - 0.05); constraint floor: y >= 0.01*y(t - 0.02) { impact = newton(0.5) } }
run late for 0.5 with sweeping(h = 1e-3)
CDL
try "a gap that reads the past" 0 "$CDL" run now.cdl
has "neither it nor steps behind an impact are checked" out "not checked: the equations of motion, as they depend on data that are not stored; gaps and reactions of 'floor', which read the past"
