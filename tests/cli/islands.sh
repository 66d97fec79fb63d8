#!/bin/bash
# Whether steps are cut at impacts is decided island by island: a body that bounces beside a pile moves as it does alone.
. "${tests:?}/cli/common"

pile='
    param N = 24, R = 0.05, W = 0.66, g = 10, mu = 0.5
    dof p[i in 1..N] in R2 = [0.055 + 0.11*mod(i - 1, 6) + 0.002*mod(floor((i - 1)/6), 2), HEIGHT]
    dof a[i in 1..N] = 0
    for i in 1..N { kinetic norm(p[i]'"'"')^2/2 + (R^2/2)*a[i]'"'"'^2/2; potential g*p[i][2] }
    constraint floor[i in 1..N]: p[i][2] >= R { slip = p[i]'"'"' + R*a[i]'"'"'*[1, 0], friction = coulomb(mu) }
    constraint left[i in 1..N]:  p[i][1] >= R
    constraint right[i in 1..N]: p[i][1] <= W - R
    constraint touch[i in 1..N, j in i+1..N]: norm(p[i] - p[j]) >= 2*R {
        slip = p[i]'"'"' - p[j]'"'"' - R*(a[i]'"'"' + a[j]'"'"')*perp((p[i] - p[j])/norm(p[i] - p[j])), friction = coulomb(mu)
    }'
pile=${pile/HEIGHT/R + 0.105*floor((i - 1)\/6)}
balls='
    dof y[k in 1..3] = 0.2*k, y'"'"' = 0
    for k in 1..3 { kinetic y[k]'"'"'^2/2; potential 9.81*y[k] }
    constraint ground[k in 1..3]: y[k] >= 0 { impact = newton(0.8) }'
spring='
    dof s = 1.2, s'"'"' = 0
    kinetic s'"'"'^2/2
    potential 50*s^2
    constraint wall: s >= -0.2 { impact = newton(0.5) }'

# model NAME CUT PARTS: writes NAME.cdl, which saves NAME.csv and the impacts of ball 1 in NAME.hit.csv
model() {
    cat >$1.cdl <<CDL
model m {$3
}
run m for 0.6 with sweeping(h = 1e-3, tolerance = 1e-8, cut = $2)
save t, y[1], y[2], y[3], y[1]', y[2]', y[3]', y[1]'', y[2]'' { file = "$1.csv" }
measure n1 = count(ground[1].impacts), n2 = count(ground[2].impacts), n3 = count(ground[3].impacts)
measure t1 = ground[1].impacts.t[1], t2 = ground[1].impacts.t[2], r1 = ground[1].impacts.post[1], r2 = ground[1].impacts.post[2]
expect power_balance <= 1e-5
expect max_penetration <= 1e-9
CDL
}
# largest A B: the largest difference of two tables of numbers
largest() {
    paste -d, <(tail -n +2 $1) <(tail -n +2 $2) | awk -F, '{ h = NF/2
        for (i = 1; i <= h; i++) { d = $i - $(i + h); if (d < 0) d = -d; if (!(d <= m)) m = d } } END { print m + 0 }'
}
# numbers FILE: what was measured, as a table
numbers() { echo x; sed -n 's/^[nrt][123] = //p' $1 | paste -sd,; }
# alike NAME A B: balls and impacts are the same to 1e-12
alike() {
    numbers $2.out >$2.numbers; numbers $3.out >$3.numbers
    for t in csv numbers; do
        same "$1 ($t)" yes "$(largest $2.$t $3.$t | awk '{ print ($1 <= 1e-12) ? "yes" : $1 }')"
    done
}
field() { sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" $2; }
go() { # NAME CUT PARTS
    model $1 $2 "$3"
    try "$1" 0 "$CDL" run $1.cdl; cp out $1.out
}
record() { try "$1, as JSON" 0 "$CDL" run -q --json $1.cdl; cp out $1.json; }

go alone auto "$balls"
go beside auto "$balls$pile"
alike "three balls beside a pile" alone beside
has "the summary names the policy" beside.out "(cut = auto)"
has "and counts steps in which islands were followed" beside.out "of them islands with few impacts were cut at every impact"
record beside
n=$(field partly_at_once beside.json) all=$(field at_once beside.json)
same "so does the record" yes "$([ "$n" -gt 0 ] && [ "$n" -le "$all" ] && echo yes || echo "$n of $all")"
go sprung auto "$balls$pile$spring"
alike "beside a pile and a spring" alone sprung
model never never "$balls$pile"
record never
same "never: no island is followed" "0 600" "$(field partly_at_once never.json) $(field at_once never.json)"

# six disks are enough to follow all of them, always
few=${pile/N = 24/N = 6}
go always always "$balls$few"
alike "always" alone always
record always
same "always: no step at once" "0 0" "$(field partly_at_once always.json) $(field at_once always.json)"

# one island alone has nothing beside it
cat >column.cdl <<'CDL'
model column {
    dof z[i in 1..40] = 0.5 + 1.01*(i - 1), z' = 0
    for i in 1..40 { z[i]'' = -10 }
    constraint floor: z[1] >= 0.5 { impact = newton(0.5) }
    constraint on[i in 2..40]: z[i] - z[i - 1] >= 1 { impact = newton(0.5) }
}
run column for 0.4 with sweeping(h = 1e-3)
CDL
record column
same "a column alone" "0 yes" "$(field partly_at_once column.json) $([ "$(field at_once column.json)" -gt 0 ] && echo yes)"

# a state between such steps can be saved like any other: all of them come out of the pipe, one after the other
ln -s /proc/self/fd/1 pipe
"$CDL" run -q -o whole beside.cdl >out 2>err
"$CDL" run -q -o first --checkpoint pipe --checkpoint-every t=0.1 beside.cdl 2>err | cat >all
pos=0
for k in 1 2 3 4; do
    n=$(($(od -An -t u8 -j $((pos + 12)) -N8 all) + 84))
    tail -c +$((pos + 1)) all | head -c $n >state$k
    pos=$((pos + n))
done
for k in 2 4; do
    try "continued from state $k" 0 "$CDL" run -q -o second --from state$k beside.cdl
    cmp -s whole/beside.csv second/beside.csv; same "state $k: the same bytes" 0 $?
done

# a disk that bounces beside the others falls into them later, with others and friction
into=${pile/N = 24/N = 25}
into=${into/0.055 + /if i == 25 then 0.33 else 0.055 + }
into=${into/R + 0.105/if i == 25 then 1.2 else R + 0.105}
cat >into.cdl <<CDL
model m {$into$balls
}
run m for 0.6 with sweeping(h = 1e-3, tolerance = 1e-8)
expect power_balance <= 1e-5
expect max_penetration <= 1e-9
expect last(p[25][2]) <= 0.6
expect sum(count(touch[i, 25].impacts) for i in 1..24) >= 1
CDL
try "a disk that falls into the pile" 0 "$CDL" run into.cdl
