#!/bin/bash
# Many contacts: the solver is named, and models that this method cannot run are refused with their place.
. "${tests:?}/cli/common"
cat >tower.cdl <<'CDL'
model tower {
    param N = 60, mu = 0.3, g = 9.81
    dof p[i in 1..N] in R3 = [0, 0, i - 0.5]
    for i in 1..N {
        kinetic norm(p[i]')^2/2
        potential g*p[i][3]
        force p[i]: [20*sin(9*t)*exp(-((i - 40)/3)^2), 0, 0]
    }
    constraint ground: p[1][3] >= 0.5 { slip = [p[1][1]', p[1][2]'], friction = coulomb(mu) }
    constraint on[i in 1..N - 1]: p[i + 1][3] - p[i][3] >= 1 { slip = p[i + 1]' - p[i]', friction = coulomb(mu) }
}
run tower for 0.05 with sweeping(h = 1e-3)
CDL
try "a tower" 0 "$CDL" run tower.cdl
has "its solver" out "(Newton on a chain)"
cat >free.cdl <<'CDL'
model m {
    param N = 500
    dof x[i in 1..N] = 1, y[i in 1..N] = 0
    for i in 1..N { x[i]'' = -1; y[i]'' = 0 }
    constraint floor[i in 1..N]: x[i] >= 0 { friction = coulomb(0.1) }
}
run m for 1
CDL
try "friction without slip among many" 0 "$CDL" run free.cdl
sed 's/{ friction = coulomb(0.1) }/{ friction = coulomb(0.1), adhesion = 1 }/' free.cdl >rows.cdl
try "with a law that asks for rows" 4 "$CDL" run rows.cdl
has "is refused at its place" err "rows.cdl:5:5: error: friction without 'slip' takes"
has "says what to write" err "give slip = "
sed 's/friction = coulomb(0.1)/impact = poisson(0.5)/; s/N = 500/N = 4500/' free.cdl >poisson.cdl
echo 'expect floor.impacts.post[1] == -0.5*floor.impacts.pre[1] within rel(1e-9)' >>poisson.cdl
sed -i 's/^run m for 1$/run m for 1.6 with sweeping(h = 1e-2)/' poisson.cdl
try "Poisson's law among very many" 0 "$CDL" run poisson.cdl
sed 's/ { friction = coulomb(0.1) }//; s/^run m for 1/run m for 1.5 with sweeping(h = 1e-3)\nexpect last(x[500]) == 0 within abs(1e-9)/' free.cdl >alone.cdl
try "contacts that are alone" 0 "$CDL" run alone.cdl
has "in closed form" out "(closed form)"

cat >together.cdl <<'CDL'
model m {
    param N = 5
    dof x[i in 1..N] = 0, x' = 1
    dof y[i in 1..N] = 0.1, y' = 0
    for i in 1..N { x[i]'' = 0; y[i]'' = -10 }
    constraint floor[i in 1..N]: y[i] >= 0 { friction = coulomb(0.6), impact = newton(0.5) }
}
run m for 1 with sweeping(h = 1e-2)
CDL
try "rebounds that brake each other without end" 4 "$CDL" run together.cdl
has "are named" err "together.cdl:6:5: error: no impulses were found for 'floor"

# small islands that are solved one by one cost the same, however many there are: processor time for 500 and for 8000
cat >arms.cdl <<'CDL'
model arms {
    param N = 500
    dof x[i in 1..N] = 1, y[i in 1..N] = 0
    for i in 1..N { x[i]'' = 0; y[i]'' = -9.81 }
    constraint arm[i in 1..N]: x[i]^2 + y[i]^2 = 1
    constraint twice[i in 1..N]: 2*x[i]^2 + 2*y[i]^2 = 2
}
CDL
spent() {
    { cat arms.cdl; echo "run arms(N = $1) for $2 with sweeping(h = 1e-3, every = 0.05)"; } >arms_$1.cdl
    TIMEFORMAT=%U
    { time "$CDL" run arms_$1.cdl >/dev/null 2>&1; } 2>&1 | tr -d .
}
few=$(spent 500 0.8) many=$(spent 8000 0.05)
same "time grows no faster than the number of islands" 1 "$((10#$many <= 3*10#$few))"

# friction without slip costs the same for each contact
cat >arms.cdl <<'CDL'
model arms {
    param N = 500
    dof x[i in 1..N] = 0, x' = 1
    dof y[i in 1..N] = 0, y' = 0
    for i in 1..N { x[i]'' = 0; y[i]'' = -9.81 }
    constraint floor[i in 1..N]: y[i] >= 0 { friction = coulomb(0.1) }
}
CDL
few=$(spent 500 1.6) many=$(spent 8000 0.1)
same "time of friction without slip grows no faster than the number of contacts" 1 "$((10#$many <= 3*10#$few))"
