#!/bin/bash
# The same as interrupt.sh for work that used to take seconds to end: formulas that are searched again, rows of fields,
# elements of rods, files that are read, hashed and compared, pictures, and runs repeated from a manifest.
. "${srcdir:?}/tests/cli/stopping"
cat >osc.cdl <<'CDL'
model osc {
    dof x = 1, y = 2
    x'' = -x
    y'' = -9.81
    constraint floor: y >= 0 { impact = newton(0.9) }
}
CDL

# -- elaboration and solvers
cat >dense.cdl <<'CDL'
model dense {
    param n = 1500
    dof x[i in 1..n] = 0.1*i
    kinetic sum(x[i]'^2 for i in 1..n)/2 + sum(x[i]' for i in 1..n)^2/2
    potential sum(x[i] for i in 1..n)^2/2 + sum(x[i]^2*i for i in 1..n)
}
run dense for 1
CDL
stop "a dense mass matrix" INT 0.7 "$CDL" run dense.cdl
stop "its formulas" TERM 0.7 "$CDL" show ir dense.cdl
cat >line.cdl <<'CDL'
model string { domain x in 0..1; field u(x); -u'' = -8 + sin(50*x); obstacle u >= -0.1; at x = 0 { u = 0 }; at x = 1 { u = 0 } }
run string with active_set(cells = 2000000)
CDL
stop "a field over a line" INT 0.5 "$CDL" run line.cdl
sed 's/active_set(cells = 2000000)/penalty(eps = 1e-8, cells = 2000000)/' line.cdl >penalty.cdl
stop "with springs" INT 0.5 "$CDL" run penalty.cdl
cat >plane.cdl <<'CDL'
model membrane { domain x in -1..1, y in -1..1; field u(x, y); -laplacian(u) = -1; obstacle u >= 0.3 - x^2 - y^2; boundary u = 0 }
run membrane with penalty(eps = 1e-6, cells = 1500)
CDL
stop "springs in the plane" INT 0.7 "$CDL" run plane.cdl
{
    printf 'model m {\n    domain x in 0..1\n    field u(x)\n    fn psi(x) = cases { '
    for k in $(seq 1 99); do printf '%s if x < 0.%02d; ' "-0.$((20 + k * 7 % 50))" "$k"; done
    printf -- "-0.2 otherwise }\n    -u''' = u + exp(x)*x\n    obstacle u >= psi(x)\n    at x = 0 { u = 0, u' = 0 }\n    at x = 1 { u = 0 }\n}\n"
    echo 'run m with vim(iterations = 100, contact = find)'
} >vim.cdl
stop "vim" INT 0.5 "$CDL" run vim.cdl
cat >rod.cdl <<'CDL'
model long { rod w { length = 1, radius = 0.01, young = 1e6, elements = 20000 }; at w.s = 0 { position = [0, 0, 0], frame = eye(3) }; force w.x(1): [0, -t, 0] }
run long for 1 with auglag(h = 1e-3)
CDL
stop "a rod of many elements" INT 0.7 "$CDL" run rod.cdl
awk 'BEGIN { for (i = 0; i < 600000; i++) printf "%.9g,%.9g,%.9g\n", cos(i*1e-3), sin(i*1e-3), i*1e-5 }' >points.csv
cat >points.cdl <<'CDL'
model c { rod w { length = 600, radius = 0.001, young = 1e6, elements = 20, reference = "points.csv" }; at w.s = 0 { position = [1, 0, 0], frame = eye(3) } }
run c for 1 with auglag(h = 0.1)
CDL
stop "a file of points" INT 0.3 "$CDL" run points.cdl
mkfifo quiet; sleep 20 >quiet & sleeper=$!
stop "a pipe that says nothing" INT 0.5 "$CDL" run quiet
has "it says so, and blames no file" err "cdl: interrupted"
kill $sleeper

# -- pictures
cat >chain.cdl <<'CDL'
model chain {
    param n = 500
    dof p[i in 1..n] in R2 = [0.02*i, 1 + 0.01*sin(i)]
    for i in 1..n { kinetic norm(p[i]')^2/2; potential 9.81*p[i][2] }
}
run chain for 1 with sweeping(h = 1e-2)
CDL
for ending in svg gif; do
    { cat chain.cdl; for k in $(seq 1 40); do echo "animate(\"a$k.$ending\", p)"; done; } >film.cdl
    stop "animate, .$ending" INT 1 "$CDL" run -q -o film film.cdl
done

# -- merge, repro, diff, verify
cat >points.cdl <<'CDL'
use "osc.cdl" as o
experiment e {
    sweep k in 1..200
    run o.osc for 3 with sweeping(h = 1e-3)
    measure top = max(y)
    save t, x, y { file = "all.csv" }
}
CDL
for k in 1 2; do "$CDL" run -q -o shards --shard $k/2 points.cdl 2>/dev/null; done
for after in 0.1 0.4 0.8; do stop "merge after $after s" INT $after "$CDL" merge points.cdl -o shards; done
printf 'use "osc.cdl" as o\nrun o.osc for 1e6 with sweeping(h = 1e-3, every = 1)\nsave x { file = "x.csv" }\n' >long.cdl
timeout -s INT 1 "$CDL" run -q -o long long.cdl 2>/dev/null
stop "repro" INT 1 "$CDL" repro long/manifest.json
has "says so" err interrupted
same "and leaves nothing" "" "$(find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'cdl-repro.*' -user "$(id -u)" -newer long/manifest.json 2>/dev/null)"
cat osc.cdl >all.cdl
printf 'run osc for 300 with sweeping(h = 1e-3)\nsave t, x, y, x'"'"', y'"'"' { file = "x.csv" }\n' >>all.cdl
"$CDL" run -q -o one all.cdl 2>/dev/null
mkdir two; sed 's/1,/2,/' one/x.csv >two/x.csv
stop "diff" INT 0.2 "$CDL" diff one two
stop "verify" INT 0.3 "$CDL" verify one
