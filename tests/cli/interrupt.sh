#!/bin/bash
# Whatever the command does, an interrupt or SIGTERM ends it properly within a second, and no process is left.
. "${srcdir:?}/tests/cli/stopping"

cat >many.cdl <<'CDL'
model beads {
    param n = 3000
    dof y[i in 1..n] = 1.01*i
    for i in 1..n { y[i]'' = -9.81 }
    constraint touch[i in 2..n]: y[i] - y[i-1] - 1 >= 0 { impact = newton(0.3) }
    constraint ground: y[1] - 1 >= 0 { impact = newton(0.3) }
}
run beads for 1e5 with sweeping(h = 1e-3, every = 10)
CDL
# -- text, checks, evaluation, elaboration
{ for i in $(seq 1 60000); do echo "let v$i = [$i, 2*$i, sin($i), cos($i)*[1, 2]*[3, 4]]"; done; } >text.cdl
cat >eval.cdl <<'CDL'
fn h(a, b) = if a == 0 then b else h(a - 1, b + 0.1*a) + h(a - 1, b - 0.1*a*a)
h(150, 0.5)
CDL
cat >check.cdl <<'CDL'
fn h(a, b) = if a == 0 then b else h(a - 1, b + 0.1*a) + h(a - 1, b - 0.1*a*a)
model m { param k = h(150, 0.5); dof y = 1; y'' = -k*y }
CDL
cat >matrix.cdl <<'CDL'
let a = [1, 2; 3, 4]
let b = eye(4000) + 1e-3*eye(4000)
let c = transpose(b)*b*b*b*b*b*b
CDL
cat >family.cdl <<'CDL'
model m {
    dof x[i in 1..1000000] = 0
    for i in 1..1000000 { x[i]'' = -x[i] + sum(sin(k*t)/k for k in 1..20000) }
}
run m for 1
CDL
mkfifo silent
exec 9<>silent
for sig in INT TERM; do
    from=silent stop "a silent pipe" $sig 0.3 "$CDL" run -
    stop "a silent file" $sig 0.3 "$CDL" check --allow-outside silent
    stop "text" $sig 0.2 "$CDL" check text.cdl
    stop "evaluation" $sig 0.5 "$CDL" run eval.cdl
    stop "check" $sig 0.5 "$CDL" check check.cdl
    stop "show" $sig 0.5 "$CDL" show model check.cdl
    stop "matrices" $sig 0.5 "$CDL" run matrix.cdl
    stop "the start of a large family" $sig 0.3 "$CDL" run family.cdl
    stop "a large family" $sig 0.7 "$CDL" run family.cdl
done

# -- runs of each backend
cat >osc.cdl <<'CDL'
model osc {
    dof x = 1, y = 2
    x'' = -x
    y'' = -9.81
    constraint floor: y >= 0 { impact = newton(0.9) }
}
CDL
for with in "sweeping(h = 1e-4, every = 1)" "events(every = 1)" "penalty(every = 1)" "auglag(h = 1e-3, every = 1)"; do
    printf 'use "osc.cdl" as o\nrun o.osc for 1e6 with %s\n' "$with" >run.cdl
    stop "run with ${with%%(*}" INT 0.7 "$CDL" run run.cdl
    stop "run with ${with%%(*}" TERM 0.7 "$CDL" run run.cdl
done
stop "many contacts" INT 1 "$CDL" run many.cdl
cat >plane.cdl <<'CDL'
model membrane { domain x in -1..1, y in -1..1; field u(x, y); -laplacian(u) = -1; obstacle u >= 0.3 - x^2 - y^2; boundary u = 0 }
run membrane with active_set(cells = 2040)
CDL
stop "a field in the plane" INT 1.5 "$CDL" run plane.cdl
cp "$srcdir"/examples/overhand_knot.* .
stop "rods" INT 2 "$CDL" run -o rods overhand_knot.cdl
cat >hysteresis.cdl <<'CDL'
model stopped { param r = 0.5; dof s = 0; -s' + cos(t) in normal_cone(box(-r, r), s) }
run stopped for 1e5 with inclusion(h = 1e-3)
CDL
stop "an inclusion" INT 0.7 "$CDL" run hysteresis.cdl

# -- files and experiments
cat >save.cdl <<'CDL'
use "osc.cdl" as o
run o.osc for 2000 with sweeping(h = 1e-3)
save t, x, y, x', y' { file = "a.csv" }
save t, x, y, x', y' { file = "b.csv" }
save t, x, y, x', y' { file = "c.npz" }
CDL
for after in 1 2 3; do stop "save after $after s" INT $after "$CDL" run -o saved save.cdl; done
cat >points.cdl <<'CDL'
use "osc.cdl" as o
experiment e {
    sweep k in 1..1000
    run o.osc for 1e4 with sweeping(h = 1e-3)
    measure top = max(y)
    save top { file = "top.csv" }
}
CDL
stop "points" INT 1 "$CDL" run -o points points.cdl
stop "points in processes" INT 1 "$CDL" run -j3 -o points points.cdl
stop "points in processes" TERM 1 "$CDL" run -j3 -o points points.cdl
mkdir -p bin
printf '#!/bin/sh\nexec sleep 30\n' >bin/gnuplot
chmod +x bin/gnuplot
printf 'use "osc.cdl" as o\nrun o.osc for 1\nplot y against t { file = "y.svg" }\n' >plot.cdl
stop "plot" INT 1 env PATH="$PWD/bin:$PATH" "$CDL" run -o plots plot.cdl
stop "plot" TERM 1 env PATH="$PWD/bin:$PATH" "$CDL" run -o plots plot.cdl
