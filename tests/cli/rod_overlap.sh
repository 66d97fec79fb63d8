#!/bin/bash
# On the way of seed 73 the state nearest to one overlaps by half a radius: another has to be found.
. "${tests:?}/cli/common"
/usr/bin/env python3 "$tests/bench/tangles.py" draw 73 >tangle.cdl || exit 1
try "seed 73" 0 "$CDL" run -q tangle.cdl
