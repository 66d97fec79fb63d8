#!/bin/bash
# The summary of a run by time-stepping.
. "${tests:?}/cli/common"
try "friction with several solutions runs" 0 "$CDL" run "$tests/run/sweeping_branches.cdl"
has "steps with several solutions are counted" out "100 steps had several solutions" "9 steps had several solutions"
try "conditions on the ends of steps, beside first-order dofs" 0 "$CDL" run "$tests/run/when_at_once.cdl"
cp out summary
try "no step is given up for them" 1 grep "whole step" summary
