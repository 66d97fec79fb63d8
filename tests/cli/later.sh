#!/bin/bash
# Columns that are computed when they are read have the same bytes as those computed with the samples: runs that
# write a checkpoint, and those whose samples go to a file, make them at once.
. "${tests:?}/cli/common"

cat >ball1.cdl <<'CDL'
model ball {
    param e in 0..1 = 0.8
    dof y = 1, y' = 0
    y'' = -9.81
    constraint floor: y >= 0 { impact = newton(e) }
}
run ball for 5 with sweeping(h = 1e-3)
CDL
cat >wall1.cdl <<'CDL'
model klarbring {
    let K = [2, 0.5; 0.5, 1]
    dof u[2] = [-0.1, 0], u' = [1, 0.3]
    u'' + K*u = [cos(t), 0.2*sin(3*t)]
    constraint wall: u[1] <= 0 { friction = coulomb(0.4), impact = newton(0.3) }
}
run klarbring for 30 with sweeping(h = 1e-3)
CDL
cat >block1.cdl <<'CDL'
model block {
    dof x = 0, x' = 2
    kinetic 3*x'^2/2
    potential 2*x^2
    force x: 0.1*sin(2*t)
    constraint rub { normal = 2, slip = x' - 0.3, friction = coulomb(0.3) }
}
run block for 20 with sweeping(h = 1e-3)
CDL
ball="t, y, y', y'', energy, work, dissipated, drift, floor.gap, floor.rn"
wall="t, u, u', u'', energy, work, dissipated, drift, wall.gap, wall.rn, wall.rt, wall.slip"
block="t, x, x', x'', energy, work, dissipated, drift, rub.rn, rub.rt, rub.slip"
for m in ball wall block; do
    { cat ${m}1.cdl; printf 'save %s { file = "out.csv" }\nmeasure p = power_balance, d = last(drift), a = max_penetration, r = residual\n' "${!m}"; } >$m.cdl
    for how in later "at-once --checkpoint state" "file --spill=0.01"; do
        read -r dir option <<<"$how"
        mkdir -p $m/$dir
        try "$m, columns $dir" 0 "$CDL" run -o $m/$dir $option $m.cdl
        sed -E 's/, [0-9.e-]+ s$//' out >$m/$dir/summary
    done
    cmp $m/later/out.csv $m/at-once/out.csv; same "$m: the same bytes" 0 $?
    cmp $m/later/out.csv $m/file/out.csv; same "$m: and in a file" 0 $?
    same "$m: the same summary" "$(cat $m/at-once/summary)" "$(cat $m/later/summary)"
    try "$m: verified" 0 "$CDL" verify $m/later/out.csv
done

# one column after the other, in an order of its own, and values that need none of them
{ cat wall1.cdl; printf '%s\n' 'last(wall.slip)' 'last(drift)' "first(u[2]'')" 'max(energy)' "u[1]''(3.3)" 'u[1](7.7)' 'wall.slip[70]' 'power_balance'; } >one
{ cat wall1.cdl; printf '%s\n' 'power_balance' 'u[1](7.7)' "u[1]''(3.3)" 'max(energy)' "first(u[2]'')" 'last(drift)' 'last(wall.slip)' 'wall.slip[70]'; } >two
try "read in one order" 0 bash -c '"$CDL" <one'
grep -E '^[-0-9.e]+$' out | sort >first
try "and in another" 0 bash -c '"$CDL" <two'
grep -E '^[-0-9.e]+$' out | sort >second
same "the same values" "$(cat first)" "$(cat second)"
same "all of them" 8 "$(wc -l <first)"
