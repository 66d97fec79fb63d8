#!/bin/bash
# cdl emit c: the compiled program gives the same bytes as cdl run, and unsupported models are refused with a reason.
. "${tests:?}/cli/common"
command -v gcc >/dev/null || { echo "ok emit # SKIP no gcc"; exit 0; }
root=${srcdir:-${tests%/*}}
# the columns that the program prints, as a save statement; each expression once
columns() { head -n 1 "$1" | tr ',' '\n' | tr ';' ',' | awk 'NR == 1 { all = $0; next } !seen[$0]++ { all = all ", " $0 } END { print all }'; }
# one NAME FILE MODEL [LEVEL]: emits, compiles and compares with the run; usually without optimisation, which takes a quarter of the
# time and must give the same bytes
one() {
    local name=$1 file=$2 model=$3 level=${4:--O0}
    "$CDL" emit c "$file" "$model" >m.c 2>err || { echo "not ok $name is written"; cat err; failed=1; return; }
    gcc $level -ffp-contract=off -DMAIN m.c -o m -lm 2>err || { echo "not ok $name compiles"; head err; failed=1; return; }
    ./m >c.csv 2>err || { echo "not ok $name runs: $(cat err)"; failed=1; return; }
    awk -v m="$model" '{ print } $0 ~ "^run +" m "[ (]" || $0 ~ "^run +[a-z_0-9]+ *= *" m "[ (]" { exit }' "$file" >r.cdl
    printf 'save %s { file = "r.csv" }\n' "$(columns c.csv)" >>r.cdl
    "$CDL" run -q r.cdl >out 2>&1 || { echo "not ok $name: the run"; cat r.cdl out; failed=1; return; }
    awk -F, -v OFS=, 'NR > 1 { for (i = 1; i <= NF; i++) $i = sprintf("%.17g", $i) } NR > 1' r.csv >want
    tail -n +2 c.csv >got
    if cmp -s want got && [ "$(wc -l <got)" -gt 1 ]; then echo "ok $name: $(wc -l <got) samples, all bits"
    else echo "not ok $name"; diff want got | head -n 4; failed=1; fi
}
one "a ball" "$root/examples/bouncing_ball.cdl" ball -O2
one "Klarbring" "$root/examples/klarbring.cdl" klarbring
one "a chain of balls that hit each other" "$root/examples/cradle.cdl" cradle
one "a ball on a slope, friction in space" "$root/examples/slope.cdl" slope
one "thrown onto a slope" "$root/examples/slope.cdl" thrown
one "a pendulum by its potential" "$root/tests/run/motion_error.cdl" swing
one "an orbit" "$root/tests/run/error_table.cdl" orbit
one "a slide" "$root/tests/run/error_table.cdl" slide
one "friction that drags" "$root/tests/run/sweeping_laws.cdl" dragged
one "forces and work" "$root/tests/run/sweeping_audit.cdl" mixed
cat >when.cdl <<'CDL'
model bounce { param k = 40; dof y = 1, y' = 0, x = 0, x' = 0.3
    y'' = -9.81 - 0.1*y'*abs(y'); x'' = -k*sin(x)
    constraint floor: y >= 0 { impact = newton(0.6) }
    constraint wall: x <= 0.04 { impact = poisson(0.5) }
    when y' < -3 { y' = -1 }
    stop when t > 1.7 }
run bounce for 3 with sweeping(h = 1e-3, every = 0.01)
CDL
one "when, stop, Poisson, forces that are not linear, every" when.cdl bounce
cat >stack.cdl <<'CDL'
model stack { dof x[i in 1..3] = 0.1*i, x' = 1, z[i in 1..3] = 0.1*i, z' = 0
    for i in 1..3 { x[i]'' = 0.2*cos(5*t); z[i]'' = -9.81 - 0.5*z[i]' }
    constraint floor: z[1] >= 0 { slip = x[1]', friction = coulomb(0.3), impact = newton(0.3) }
    constraint pair[i in 1..2]: z[i + 1] - z[i] >= 0.05 { slip = x[i + 1]' - x[i]', friction = coulomb(0.2) } }
run stack for 0.15 with sweeping(h = 1e-3)
CDL
one "families that touch with friction, seven dofs and more" stack.cdl stack -O2

# parameters of the command line
"$CDL" emit c "$root/examples/bouncing_ball.cdl" -p e=0.3 >a.c
"$CDL" emit c "$root/examples/bouncing_ball.cdl" -p e=0.4 >b.c
same "-p counts" 1 "$(cmp -s a.c b.c; echo $?)"

# refused models, with their place
refused() {
    printf '%s\n' "$2" >no.cdl
    try "$1 is refused" 3 "$CDL" emit c no.cdl
    has "$1: the reason" err "this run cannot be written as C: $3"
    same "$1: nothing is written" 0 "$(wc -c <out)"
}
refused "a delay" "model m { dof x = 1, x' = 0; x'' = -x(t - 0.1); history x(s) = 1 }
run m for 1 with sweeping()" "C of a model has no past"
refused "a mass that changes" "model m { dof x = 1, x' = 0; kinetic (1 + x^2)*x'^2/2 }
run m for 1 with sweeping()" "its masses change"
refused "a surface that moves" "model m { dof x = 1, x' = 0; x'' = -1; constraint c: x >= 0.1*sin(t) }
run m for 1 with sweeping()" "its surface moves"
refused "a curved surface" "model m { dof x = 1, x' = 0, y = 0, y' = 0; x'' = -1; y'' = 0; constraint c: x^2 + y^2 >= 0.1 }
run m for 1 with sweeping()" "the gradient of its gap"
refused "another backend" "model m { dof x = 1, x' = 0; x'' = -1 }
run m for 1 with events()" "it is a run of events()"
try "no such model" 3 "$CDL" emit c ball.cdl
has "it says so" err "the file has no run statement"
try "another language" 2 "$CDL" emit fortran ball.cdl

# no text of the model gets into the C
cat >name.cdl <<'CDL'
## */ int evil(void); /* "
model wicked { dof int = 1, int' = 0; int'' = -1; constraint while: int >= 0 { impact = newton(0.5) } }
run wicked for 0.01 with sweeping()
CDL
try "names that are words of C" 0 "$CDL" emit c name.cdl
same "text of the model stays out" 0 "$(grep -c 'evil\|wicked' out)"
try "it compiles" 0 gcc -fsyntax-only -DMAIN -x c out
