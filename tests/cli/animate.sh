#!/bin/bash
# animate: a body drawn as a disk has the radius that its gap subtracts; a parameter that is merely named R is not used.
. "${tests:?}/cli/common"
# drawn RADIUS-PARAMETERS GAP: prints the radius of the only circle
drawn() {
    printf '%s\n' "model m { param $1; dof p in R2 = [0, 1], p' = [1, 0]; p'' = [0, -9.81]; constraint c: $2 }" \
        'run m for 0.1 with sweeping(h = 1e-2)' 'animate("a.svg", p)' >a.cdl
    rm -f film/a.svg
    "$CDL" run -q -o film a.cdl >out 2>err || cat err
    grep -o '<circle r="[^"]*"' film/a.svg | sort -u
}
point=$(drawn 'k = 1' 'p[2] >= 0')
same "a point is a small circle" 1 "$(grep -c . <<<"$point")"
same "R of a bowl is no radius of what moves in it" "$point" "$(drawn 'R = 3' 'R - norm(p) >= 0')"
same "nor is R that no gap reads" "$point" "$(drawn 'R = 3' 'p[2] >= 0')"
same "nor twice a radius by its name" "$point" "$(drawn 'R = 0.1' 'p[2] - 3*R >= 0')"
disk=$(drawn 'r = 0.3' 'p[2] - r >= 0')
same "r by which a gap is smaller is one" no "$([ "$disk" = "$point" ] && echo yes || echo no)"
same "beside an R that is none" "$disk" "$(drawn 'R = 3, r = 0.3' 'p[2] - r >= 0')"
same "and R as well as r" "$disk" "$(drawn 'R = 0.3' 'p[2] - R >= 0')"
