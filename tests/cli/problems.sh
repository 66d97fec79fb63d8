#!/bin/bash
# --problems: contact problems of steps as files. Their solutions satisfy the law by formulas of another program; FCLIB's
# files contain the same numbers as text files; a recorded run gives the same bytes as one that is not.
. "${tests:?}/cli/common"
python=python3
command -v $python >/dev/null || { echo "ok problems # SKIP needs python3"; exit; }
mkdir m
# one contact: impacts, slip, rest
cat >m/hop.cdl <<'CDL'
model hop {
    param e = 0.5
    dof y = 0.5, x = 0, x' = 3
    y'' = -9.81
    x'' = 0
    constraint floor: y >= 0 { impact = newton(e), slip = x', friction = coulomb(0.3) }
}
run hop for 2 with sweeping(h = 1e-2)
CDL
# friction without a given slip, in the metric of the masses; coupled forces
cat >m/well.cdl <<'CDL'
model well {
    param mu = 0.4
    let K = [2, 0.5; 0.5, 1]
    dof u[2] = [-0.1, 0], u' = [1, 0.3]
    u'' + K*u = [cos(t), 0.2*sin(3*t)]
    constraint wall: u[1] <= 0 { friction = coulomb(mu) }
}
run well for 10 with sweeping(h = 2e-2)
CDL
# equalities beside contacts, masses that change with the state
cat >m/links.cdl <<'CDL'
model links {
    dof p in R2 = [0.3, 0.4], q in R2 = [0.9, 0.4], a = 0.3
    kinetic norm(p')^2/2 + norm(q')^2/2 + (1 + cos(a)^2)*a'^2/20
    potential 9.81*(p[2] + q[2]) + a
    constraint pin: norm(p) = 0.5
    constraint bar: norm(p - q) = 0.6
    constraint floor: q[2] >= 0 { slip = q[1]' - 0.1*a', friction = coulomb(0.4) }
    constraint rest: a >= 0
}
run links for 2 with sweeping(h = 1e-2)
CDL
# many contacts, found by distance; whole steps
cat >m/heap.cdl <<'CDL'
model heap {
    param N = 30, R = 0.01, W = 0.12, mu = 0.5
    dof p[i in 1..N] in R2 = [R + 2.2*R*mod(i - 1, 5) + R/10*mod(floor((i - 1)/5), 3), R + 2.2*R*floor((i - 1)/5)]
    dof a[i in 1..N] = 0
    for i in 1..N {
        kinetic norm(p[i]')^2/2 + (R^2/2)*a[i]'^2/2
        potential 9.81*p[i][2]
    }
    constraint floor[i in 1..N]: p[i][2] >= R { slip = p[i]' + R*a[i]'*[1, 0], friction = coulomb(mu) }
    constraint left[i in 1..N]: p[i][1] >= R
    constraint right[i in 1..N]: p[i][1] <= W - R
    constraint touch[i in 1..N, j in i+1..N]: norm(p[i] - p[j]) >= 2*R {
        slip = p[i]' - p[j]' - R*(a[i]' + a[j]')*perp((p[i] - p[j])/norm(p[i] - p[j]))
        friction = coulomb(mu)
    }
}
run heap for 0.3 with sweeping(h = 1e-3, tolerance = 1e-10)
CDL
# two tangents; a shape that touches in several points
cat >m/brick.cdl <<'CDL'
model brick {
    dof p in R3 = [0, 0, 0.2], p' = [1, 0.3, 0], A in SO3 = rot_x(0.2), A' = [0, 2, 0.1]
    kinetic norm(p')^2/2 + dot(A', diag(0.002, 0.004, 0.005)*A')/2
    potential 9.81*p[3]
    shape hull: box([-0.1, -0.05, -0.03], [0.1, 0.05, 0.03]) at p, A
    constraint ground: hull.gap(halfspace([0, 0, 1], 0)) >= 0 { friction = coulomb(0.4), impact = newton(0.2) }
}
run brick for 0.6 with sweeping(h = 2e-3)
CDL
# friction that decreases with the speed
cat >m/fall.cdl <<'CDL'
model fall {
    fn mu(v) = 0.2 + 0.2*exp(-v/0.1)
    dof x = 0, y = 0.01, x' = 2
    x'' = 0
    y'' = -9.81
    constraint floor: y >= 0 { slip = x' - 0.5*sin(9*t), friction = coulomb(mu) }
}
run fall for 2 with sweeping(h = 1e-2)
CDL
# Uzawa's method on the same steps
sed 's/sweeping(h = 1e-2)/auglag(h = 1e-2)/' m/hop.cdl >m/uzawa.cdl
for m in hop well links heap brick fall uzawa; do
    every=1
    off=2e-8
    case $m in heap | brick) every=20 ;; esac
    # faces on faces: such problems are accepted at 1e-6, and summaries show the residual
    [ $m = brick ] && off=1e-6
    dofs=$(sed -n 's/^ *dof \([a-z]*\).*/\1/p' m/$m.cdl | head -n 1)
    case $m in heap) echo 'save t, p, a { file = "out.csv" }' ;; *) echo "save t, $dofs, energy { file = \"out.csv\" }" ;; esac >>m/$m.cdl
    "$CDL" run -q -o plain-$m m/$m.cdl >/dev/null 2>err || sed 's/^/    /' err
    try "$m: problems as text" 0 "$CDL" run -q -o $m --problems p/x.txt --problems-every $every m/$m.cdl
    try "$m: problems for FCLIB" 0 "$CDL" run -q -o $m --problems p/x.hdf5 --problems-every $every m/$m.cdl
    cmp -s plain-$m/out.csv $m/out.csv
    same "$m: who watches changes nothing" 0 $?
    got=$($python "$tests/problems/check.py" $off $m/p/*.txt)
    same "$m: solutions fulfil the law" "" "$(tail -n +2 <<<"$got")"
    echo "# $m: ${got%%$'\n'*}"
    first=${got%% *}
    same "$m: there are some" yes "$([ "$first" -ge 15 ] && echo yes || echo "$first")"
    same "$m: of both kinds as many" "$(ls $m/p/*.txt | wc -l)" "$(ls $m/p/*.hdf5 | wc -l)"
    echo "${got%%$'\n'*}" >>seen
done
for kind in open stick slip held; do
    same "contacts of each kind are among them: $kind" yes "$(grep -qE "$kind [1-9]" seen && echo yes)"
done
if command -v h5dump >/dev/null; then
    same "files of FCLIB were compared" yes "$(grep -qE "compared [1-9]" seen && echo yes)"
else
    echo "ok files of FCLIB # SKIP needs h5dump (hdf5-tools); unit/test_fclib reads them where libhdf5 is"
fi

# problems that FCLIB cannot represent are skipped, and this is reported
cat >belt.cdl <<'CDL'
model belt {
    dof x = 0, x' = 0
    x'' + 10*x = 0
    constraint rub { normal = 2, slip = x' - 0.5, friction = coulomb(0.3) }
}
run belt for 1 with sweeping(h = 1e-2)
CDL
try "a normal force that is given" 0 "$CDL" run -q -o belt --problems x.h5 belt.cdl
has "is reported" err "contact problems of 'belt' have no form in these files" "0 of "
same "and nothing is written" "" "$(ls belt/*.h5 2>/dev/null)"
try "as text it is" 0 "$CDL" run -q -o belt --problems x.txt belt.cdl
same "and right" "" "$($python "$tests/problems/check.py" 1e-9 belt/x-*.txt | tail -n +2)"

# names: numbered through the session, by point in an experiment; every k-th problem
cat >many.cdl <<'CDL'
model slide {
    param mu = 0.3
    dof y = 0, x = 0, x' = 1
    y'' = -9.81
    x'' = 0
    constraint floor: y >= 0 { slip = x', friction = coulomb(mu) }
}
run slide for 0.05 with sweeping(h = 1e-2)
run slide for 0.05 with sweeping(h = 1e-2)
experiment two {
    sweep mu in [0.1, 0.2]
    run slide(mu = mu) for 0.05 with sweeping(h = 1e-2)
}
run slide for 0.01 with sweeping(h = 1e-2)
CDL
try "an experiment" 0 "$CDL" run -q -j 2 -o many --problems d/x.txt many.cdl
same "names of files" "1 2 3 4 5 6 7 8 9 10 11 two-1-1 two-1-2 two-1-3 two-1-4 two-1-5 two-2-1 two-2-2 two-2-3 two-2-4 two-2-5" \
    "$(ls many/d | sed -E 's/^x-//; s/\.txt$//; s/\b0+([0-9])/\1/g' | sort -V | tr '\n' ' ' | sed 's/ $//')"
try "every third" 0 "$CDL" run -q -o third --problems x.txt --problems-every 3 many.cdl
same "is written" "2" "$(ls third/x-two-1-*.txt | wc -l)"

# files stay below the folder of results, and options need values
try "outside" 5 "$CDL" run -q -o low --problems ../x.txt many.cdl
has "is refused" err "cannot write 'low/../x-000001.txt': it lies outside the folder"
same "and nothing is there" "" "$(ls x-* 2>/dev/null)"
ln -s "$PWD" low/link
try "through a link" 5 "$CDL" run -q -o low --problems link/x.txt many.cdl
try "another ending" 2 "$CDL" run -q --problems x.csv many.cdl
has "is refused" err "'x.csv' is not a value of --problems"
try "no number" 2 "$CDL" run -q --problems x.txt --problems-every 0 many.cdl
try "a run of another kind" 0 "$CDL" run -q -o no --problems x.txt <(sed 's/sweeping(h = 1e-2)/events()/' many.cdl)
has "has none" err "no contact problem of 'slide' was written"
