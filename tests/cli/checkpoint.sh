#!/bin/bash
# --checkpoint and --from: a run that is continued from any of its states gives the bytes of the complete run.
. "${tests:?}/cli/common"

cat >penalty.cdl <<'CDL'
model ball {
    param e in 0..1 = 0.7
    dof y = 1, y' = 0, x = 0, x' = 2
    y'' = -9.81
    x'' = 0
    constraint floor: y >= 0 { impact = newton(e), slip = x', friction = coulomb(0.2) }
}
run ball for 2 with penalty()
save t, y, x, y', energy, dissipated, work, floor.gap, floor.rn, floor.rt { file = "out.csv" }
measure n = count(floor.impacts), p = power_balance, r = residual, d = max_penetration, s = floor.status(1.9)
CDL
sed 's/penalty()/events()/' penalty.cdl >events.cdl
cat >switches.cdl <<'CDL'
model belt {
    dof x = 0, x' = 0, w = 0, w' = 0
    x'' = -x + sin(2*t)
    w'' = -4*w + 0.1*x(t - 0.3)
    constraint rub { normal = 1, slip = x' - 0.5, friction = coulomb(0.4) }
    when x > 0.3 { w' = w' + 0.1 }
}
run belt for 6 with events()
save t, x, x', w, rub.rt, energy { file = "out.csv" }
measure a = last(w), p = power_balance
CDL
cat >adaptive.cdl <<'CDL'
model slab {
    param eps = 0.05
    dof v = 0
    eps*v' in sin(3*t) + 0.3*v(t - 0.2) - 0.4*Sgn(v)
}
run slab for 6 with inclusion()
save t, v, v' { file = "out.csv" }
measure a = last(v), n = count(t), r = residual
CDL
sed 's/inclusion()/inclusion(h = 1e-2, order = 2)/' adaptive.cdl >equal.cdl
cat >cone.cdl <<'CDL'
model swept {
    dof x[2] = [0, 0]
    -x' in normal_cone(ball([sin(t), 0.5*t], 0.5), x)
}
run swept for 4 with inclusion(h = 1e-2)
save t, x { file = "out.csv" }
measure a = last(x)
CDL
sed 's/penalty()/sweeping(h = 5e-3)/' penalty.cdl >sweeping.cdl
sed 's/penalty()/auglag(h = 5e-3)/' penalty.cdl >auglag.cdl
sed 's/penalty()/sweeping(h = 5e-3, cut = never, every = 0.03)/' penalty.cdl >at_once.cdl
sed 's/events()/sweeping(h = 1e-2)/' switches.cdl >past.cdl
cat >speed.cdl <<'CDL'
model stick_slip {
    dof x = 0, x' = 0, y = 0.2, y' = 0, a = 0.3, a' = 0
    fn mu(v) = 0.2 + 0.2*exp(-5*v)
    (1 + 0.2*cos(a)^2)*x'' = -2*x + 0.1*sin(3*t)
    y'' = -9.81 + 5*sin(11*t)
    a'' = -sin(a) - 0.1*a' + 0.2*x
    constraint floor: y + 0.05*sin(4*x) >= 0 { impact = newton(0.6), slip = x' - 0.5, friction = coulomb(mu) }
    constraint wall: a >= 0 { impact = poisson(0.5) }
    when x > 0.1 { a' = a' + 0.3 }
    stop when t > 5.5 and a > 0
}
run stick_slip for 6 with sweeping(h = 1e-2)
save t, x, x', y, a, a', floor.gap, floor.rt, wall.rn, energy, dissipated, work { file = "out.csv" }
measure n = count(floor.impacts), p = power_balance, r = residual, d = max_penetration
CDL
cat >turns.cdl <<'CDL'
model ball {
    dof p in R3 = [0, 0, 0.4], p' = [2, 0.5, 0], A in SO3 = rot_x(1), A' = [5, 1, -8]
    kinetic norm(p')^2/2 + dot(A', diag(0.02, 0.03, 0.04)*A')/2
    potential 9.81*p[3]
    constraint floor: p[3] - 0.3 >= 0 {
        friction = coulomb(0.3), slip = p' + cross(A*A', [0, 0, -0.3]), impact = newton(0.5)
    }
}
run ball for 1.5 with events()
save t, p, A, A', energy, dissipated, floor.gap, floor.rn, floor.rt { file = "out.csv" }
measure n = count(floor.impacts), p = power_balance, r = residual, d = max_penetration, Q = A(1.3), a = A''(1.2)
CDL
sed 's/events()/sweeping(h = 5e-3)/' turns.cdl >turns_sweeping.cdl
sed 's/events()/penalty()/' turns.cdl >turns_penalty.cdl
cat >late.cdl <<'CDL'
model late {
    dof A in SO3 = rot_x(0.3), A' = [0.1, 0.2, 1]
    kinetic dot(A', diag(1, 2, 3)*A')/2
    force A: cross([1, 0, 0], transpose(A)*A(t - 0.2)*[0, 1, 0]) - 0.1*A'(t - 0.1)
}
run late for 2 with events()
save t, A, A', energy { file = "out.csv" }
measure a = A(1.9)[1, 2], p = power_balance
CDL
sed 's/events()/sweeping(h = 1e-2)/' late.cdl >late_sweeping.cdl
cat >pile.cdl <<'CDL'
model pile {
    param N = 30, R = 0.1, mu = 0.4
    dof p[i in 1..N] in R2 = [0.21*mod(i - 1, 5) + 0.01*sin(7*i), 0.15 + 0.22*floor((i - 1)/5)]
    dof a[i in 1..N] = 0
    for i in 1..N { kinetic norm(p[i]')^2/2 + (R^2/2)*a[i]'^2/2; potential 9.81*p[i][2] }
    constraint floor[i in 1..N]: p[i][2] >= R { slip = p[i]' + R*a[i]'*[1, 0], friction = coulomb(mu), impact = newton(0.3) }
    constraint left[i in 1..N]:  p[i][1] >= -R
    constraint right[i in 1..N]: p[i][1] <= 1
    constraint touch[i in 1..N, j in i+1..N]: norm(p[i] - p[j]) >= 2*R {
        slip = p[i]' - p[j]' - R*(a[i]' + a[j]')*perp((p[i] - p[j])/norm(p[i] - p[j])), friction = coulomb(mu), impact = newton(0.3)
    }
}
run pile for 1 with sweeping(h = 2e-3)
save t, p, a, energy, dissipated, work { file = "out.csv" }
measure n = count(touch.impacts), p = power_balance, r = residual, d = max_penetration
CDL

cat >lanes.cdl <<'CDL'
model balls {
    param N = 30, g = 9.81
    dof y[i in 1..N] = 1 + i/N
    for i in 1..N { kinetic y[i]'^2/2; potential g*y[i] }
    constraint floor[i in 1..N]: y[i] >= 0 { impact = newton(0.5) }
}
run balls for 2.5 with sweeping(h = 1e-2)
save t, y, y', energy, dissipated, work, floor[3].gap, floor[3].rn { file = "out.csv" }
measure n = count(floor.impacts), p = power_balance, r = residual, d = max_penetration
CDL

cat >bricks.cdl <<'CDL'
model brick {
    param size = [0.2, 0.1, 0.06]
    dof p in R3, p' = [0.5, 0, -1], A in SO3 = rot_x(0.3), A' = [0, 5, 0.1]
    kinetic norm(p')^2/2 + dot(A', diag(0.0011, 0.0036, 0.0042)*A')/2
    potential 9.81*p[3]
    shape hull: box(-size/2, size/2) at p, A
}
model heap {
    param N = 2
    part b[i in 1..N]: brick { p = [0.01*sin(7*i), 0.01*cos(3*i), 0.1*i] }
    constraint ground[i in 1..N]: b[i].hull.gap(halfspace([0, 0, 1], 0)) >= 0 { friction = coulomb(0.4) }
    constraint touch[i in 1..N, j in i+1..N]: b[i].hull.gap(b[j].hull) >= 0 { friction = coulomb(0.4) }
}
run heap for 0.4 with sweeping(h = 4e-3)
save t, b[1].p, b[1].A, b[2].p, b[2].A', energy, dissipated, touch[1, 2].gap, touch[1, 2].rn, ground[1].rn { file = "out.csv" }
measure n = count(touch.impacts), p = power_balance, r = residual, d = max_penetration, points = touch[1, 2].points.rn
CDL
# friction without slip of many contacts, part of it at rest
cat >brake.cdl <<'CDL'
model slide {
    param N = 20
    dof x[i in 1..N] = 0, x' = 1
    dof y[i in 1..N] = 0.05, y' = 0
    for i in 1..N { (1 + 0.1*i)*x[i]'' = 4*sin(9*t); (1 + 0.1*i)*y[i]'' = -10 }
    constraint floor[i in 1..N]: y[i] >= 0 { friction = coulomb(0.05), impact = newton(0.2) }
}
run slide for 0.7 with sweeping(h = 5e-3)
save t, x[3], y[5], floor[2].rn, floor[2].rt, floor[2].slip, energy, dissipated { file = "out.csv" }
measure n = count(floor.impacts), p = power_balance, r = residual, d = max_penetration, s = floor.status(0.5)
CDL
# listed pairs: some have come and gone
sed -e 's/^run heap.*/run heap(N = 12) for 0.37 with sweeping(h = 6e-3)/' -e 's/0\.1\*i\]/0.2*i]/' bricks.cdl >listed.cdl

sed '/^model heap/,$d' bricks.cdl >brick_penalty.cdl
cat >>brick_penalty.cdl <<'CDL'
model falls {
    part b: brick { p = [0, 0, 0.2] }
    shape table: box([-9, -9, -9], [9, 9, 0])
    constraint on: b.hull.gap(table) >= 0 { friction = coulomb(0.4) }
}
run falls for 0.4 with penalty(tolerance = 1e-4)
save t, b.p, b.A', energy, dissipated, on.gap, on.rn { file = "out.csv" }
measure n = count(on.impacts), p = power_balance, r = residual, d = max_penetration, points = on.points.rn
CDL

# all states of a run, one after the other: a path that is not a regular file is written directly
ln -s /proc/self/fd/1 pipe
json() { "$CDL" run --json "$@" 2>err | sed 's/"seconds":[^,]*,//'; }
for m in penalty events switches adaptive equal cone sweeping auglag at_once past speed pile lanes turns turns_sweeping turns_penalty late late_sweeping bricks listed brake brick_penalty; do
    json -o whole $m.cdl >whole.json
    "$CDL" run -q -o first --checkpoint pipe --checkpoint-every t=0.07 $m.cdl 2>err | cat >all
    cmp -s whole/out.csv first/out.csv; same "$m: writing checkpoints changes nothing" 0 $?
    at=() size=() pos=0
    while [ "$(tail -c +$((pos + 1)) all | head -c 8)" = CDLSTATE ]; do
        n=$(($(od -An -t u8 -j $((pos + 12)) -N8 all) + 84))
        at+=($pos) size+=($n) pos=$((pos + n))
    done
    same "$m: there are checkpoints" yes "$([ ${#at[@]} -ge 5 ] && echo yes || echo "${#at[@]}")"
    bad="" k=0
    for ((try = 0; try < 5; try++)); do
        [ $try -gt 0 ] && k=$((RANDOM % ${#at[@]}))         # always the first two, where sizes still grow, and the last one
        [ $try -eq 1 ] && k=$((${#at[@]} - 1))
        [ $try -eq 2 ] && k=1
        tail -c +$((at[k] + 1)) all | head -c "${size[k]}" >state
        json -o second --from state $m.cdl >second.json
        cmp -s whole.json second.json && cmp -s whole/out.csv second/out.csv || bad+=" $k"
    done
    same "$m: continued from any of them, the same bytes" "" "$bad"
done

# a run that was interrupted, or killed, continues from there
cat >long.cdl <<'CDL'
model pendulum {
    dof a = 2, a' = 0
    a'' = -sin(a)
    constraint wall: a >= -1 { impact = newton(0.99) }
}
run pendulum for 900 with penalty(tolerance = 1e-9)
save t, a, wall.rn, energy { file = "out.csv" }
CDL
json -o whole long.cdl >whole.json
for sig in INT KILL; do
    rm -f state
    "$CDL" run -q -o first --checkpoint state --checkpoint-every 0.02s long.cdl >out 2>err &
    pid=$!
    for ((i = 0; i < 100; i++)); do [ -s state ] && break; sleep 0.02; done
    kill -$sig $pid
    wait $pid 2>/dev/null; rc=$?
    [ $sig = INT ] && same "an interrupted run" 4 $rc && has "says how to go on" err "to continue from there: --from state"
    [ $sig = KILL ] && same "a killed run" 137 $rc
    json -o second --from state long.cdl >second.json
    cmp -s whole.json second.json && cmp -s whole/out.csv second/out.csv; same "goes on after SIG$sig" 0 $?
    [ $sig = INT ] && same "and leaves no other file" "state" "$(ls state*)"
    rm -f state*
done
try "one that has ended is there at once" 0 "$CDL" run -q -o first --checkpoint state long.cdl
json -o second --from state long.cdl >second.json
cmp -s whole.json second.json && cmp -s whole/out.csv second/out.csv; same "with all its results" 0 $?
try "and a longer run goes on from it" 0 "$CDL" run -o longer --from state <(sed 's/for 900/for 901/' long.cdl)
has "to its end" out "to t = 901"

# several runs in a file: earlier ones are repeated
cat >two.cdl <<'CDL'
model fall { dof y = 1, y' = 0; y'' = -1; constraint floor: y >= 0 }
run fall for 1 with penalty()
save t, y { file = "a.csv" }
run fall for 3 with events()
save t, y { file = "b.csv" }
CDL
try "two runs" 0 "$CDL" run -q -o whole --checkpoint state two.cdl
try "the second goes on" 0 "$CDL" run -q -o second --from state --checkpoint state two.cdl
cmp -s whole/a.csv second/a.csv && cmp -s whole/b.csv second/b.csv; same "with the bytes of both" 0 $?
sed '/events/,$d' two.cdl >one.cdl
try "no run that it is of" 5 "$CDL" run -q --from state one.cdl
has "is reported" err "checkpoint 'state' was not used"

# states that do not fit are refused
"$CDL" run -q -o whole --checkpoint state events.cdl 2>err
try "another parameter" 5 "$CDL" run -q -p e=0.6 --from state events.cdl
has "is named" err "error: cannot continue from checkpoint 'state': it belongs to a run with other parameters"
try "another backend" 5 "$CDL" run -q --from state penalty.cdl
has "is named" err "it belongs to a run with another backend"
sed 's/events()/events(tolerance = 1e-9)/' events.cdl >other.cdl
try "another option" 5 "$CDL" run -q --from state other.cdl
has "is named" err "it belongs to a run with other options of the backend"
sed 's/9.81/9.82/' events.cdl >other.cdl
try "another model" 5 "$CDL" run -q --from state other.cdl
has "is named" err "it belongs to another model, or the model has changed"
sed 's/for 2 /for 1 /' events.cdl >other.cdl
try "a shorter run" 5 "$CDL" run -q --from state other.cdl
has "is named" err "it is at t = 2, and this run ends at t = 1"
head -c 500 state >part
try "a part of a file" 5 "$CDL" run -q --from part events.cdl
has "is damaged" err "cannot continue from checkpoint 'part': it is damaged"
printf x | dd of=state bs=1 seek=900 conv=notrunc 2>/dev/null
try "a byte that has changed" 5 "$CDL" run -q --from state events.cdl
has "is damaged" err "it is damaged"
try "no checkpoint at all" 5 "$CDL" run -q --from events.cdl events.cdl
has "is reported" err "it is not a checkpoint"
try "no such file" 5 "$CDL" run -q --from nowhere events.cdl
has "is reported" err "cannot read checkpoint 'nowhere': No such file or directory"
try "nowhere to write" 5 "$CDL" run -q --checkpoint /proc/none/state events.cdl
has "is reported" err "cannot write checkpoint '/proc/none/state'"

# usage
try "a run that cannot be saved" 3 "$CDL" run -q --checkpoint state <(sed 's/inclusion()/limit(eps)/; s/ + 0.3[^ ]* - 0.2)//' adaptive.cdl)
has "is reported" err "the state of this run cannot be saved with limit()"
cat >chain.cdl <<'CDL'
model chain {
    dof x[i in 1..40] = i, x' = 0
    for i in 1..40 { potential (x[i] - i)^2/2 }
    for i in 1..39 { potential (x[i + 1] - x[i])^2/2 }
    for i in 1..40 { kinetic x[i]'^2/2 }
    constraint wall: x[40] <= 40
}
run chain for 1 with sweeping(h = 0.1)
CDL
try "nor one of many that are coupled" 3 "$CDL" run -q --checkpoint state chain.cdl
has "is reported" err "the state of this run cannot be saved with sweeping()"
try "one file at a time" 2 "$CDL" run --checkpoint state events.cdl penalty.cdl
has "is reported" err "cdl: --checkpoint works with one file at a time"
try "every what" 2 "$CDL" run --checkpoint state --checkpoint-every often events.cdl
has "is reported" err "'often' is not a value of --checkpoint-every"
try "a value is missing" 2 "$CDL" run events.cdl --checkpoint
has "is reported" err "cdl: --checkpoint needs a value"
