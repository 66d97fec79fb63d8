#!/bin/bash
# What a run says of itself: where the series of events were cut off, beside an error from another run.
. "${tests:?}/cli/common"
cat >swing.cdl <<'CDL'
model swing { dof a = 1; a'' = -9.81*sin(a) }
CDL
# cut OPTIONS: the figure of the summary
cut() {
    { cat swing.cdl; echo "run swing for 5 with events($1)"; } >now.cdl
    "$CDL" run now.cdl 2>err | sed -n 's/.*series cut off at \([^ ]*\) of the motion.*/\1/p'
}
below() { awk -v a="${2:-x}" -v b="$3" -v c="$4" 'BEGIN { exit !(a + 0 > b && a + 0 < c) }' && echo "ok $1" || { echo "not ok $1: $2"; failed=1; }; }
below "series are cut off below their tolerance" "$(cut '')" 0 1e-12
below "and where that is looser, earlier" "$(cut 'tolerance = 1e-4')" 1e-12 1e-4
below "or where the order is low" "$(cut 'order = 6, h = 0.1')" 1e-7 1e-2
{ cat swing.cdl; echo 'run swing for 5 with sweeping(h = 1e-2)'; } >now.cdl
try "other backends have no series" 0 "$CDL" run now.cdl
same "and no such line" 0 "$(grep -c 'cut off' out)"
