#!/bin/bash
# Random rods that come to touch: found up to the full load, balanced, without overlap.
. "${tests:?}/cli/common"
# 39: two cross at a small angle, and press on each other at points closer than nodes
for seed in 1 3 4 39; do
    /usr/bin/env python3 "$tests/bench/tangles.py" draw $seed >tangle.cdl || exit 1
    try "seed $seed" 0 "$CDL" run -q tangle.cdl
done
