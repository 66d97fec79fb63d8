#!/bin/bash
# Each law of contact on each backend of dynamics: the closed form to the given tolerance, or an error that names the law.
. "${tests:?}/cli/common"

# law NAME UNTIL VALUE EXACT SWEEPING EVENTS AUGLAG PENALTY, the model on standard input
law() {
    local name=$1 until=$2 value=$3 exact=$4
    cat >model.cdl
    shift 4
    for backend in 'sweeping(h = 1e-3)' 'events()' 'auglag(h = 1e-3)' 'penalty()'; do
        {
            cat model.cdl
            printf 'run m for %s with %s\n' "$until" "$backend"
            case $1 in [0-9]*) printf 'expect %s == %s within %s\n' "$value" "$exact" "$1" ;; esac
        } >law.cdl
        case $1 in
        [0-9]*) try "$name on $backend" 0 "$CDL" run law.cdl ;;
        *)
            try "$name on $backend is refused" 3 "$CDL" run law.cdl
            has "$name is what $backend names" err "$1"
            ;;
        esac
        shift
    done
}

law "Coulomb's friction" 1 "x'(1)" 1 1e-9 1e-12 1e-9 1e-3 <<'CDL'
model m { dof x = 0, y = 0, x' = 3; x'' = 0; y'' = -10; constraint c: y >= 0 { slip = x', friction = coulomb(0.2) } }
CDL
law "friction by its angle" 1 "x'(1)" 1 1e-9 1e-12 1e-9 1e-3 <<'CDL'
model m { dof x = 0, y = 0, x' = 3; x'' = 0; y'' = -10; constraint c: y >= 0 { slip = x', friction = coulomb(angle = atan(0.2)) } }
CDL
law "friction by the slip speed" 1 "x'(1)" "exp(-2)" 1e-3 1e-12 "friction that depends on the slip speed" 1e-3 <<'CDL'
model m { fn mu(v) = 0.2*v; dof x = 0, y = 0, x' = 1; x'' = 0; y'' = -10; constraint c: y >= 0 { slip = x', friction = coulomb(mu) } }
CDL
law "Tresca's friction" 1 "x'(1)" 1 1e-9 1e-12 1e-9 1e-3 <<'CDL'
model m { dof x = 0, y = 0, x' = 3; x'' = 0; y'' = -10; constraint c: y >= 0 { slip = x', friction = tresca(2) } }
CDL
law "static and kinetic friction" 6 "x'(6)" 2.5 1e-2 1e-10 1e-2 "static and kinetic" <<'CDL'
model m { dof x = 0; x'' = t; constraint c { normal = 10, slip = x', friction = coulomb(static = 0.5, kinetic = 0.3) } }
CDL
law "Newton's restitution" 1.2 "x'(1.2)" 0.3 1e-9 1e-12 1e-9 2e-3 <<'CDL'
model m { dof x = 1, x' = -1; x'' = 0; constraint c: x >= 0 { impact = newton(0.3) } }
CDL
law "Poisson's restitution" 1.2 "x'(1.2)" 0.3 1e-9 1e-12 1e-9 2e-3 <<'CDL'
model m { dof x = 1, x' = -1; x'' = 0; constraint c: x >= 0 { impact = poisson(0.3) } }
CDL
law "restitution by the speed" 1.2 "x'(1.2)" "1/3" 1e-9 1e-12 1e-9 2e-3 <<'CDL'
model m { fn e(v) = 1/(2 + v); dof x = 1, x' = -1; x'' = 0; constraint c: x >= 0 { impact = newton(e) } }
CDL
law "restitution along the surface" 1.2 "x'(1.2) + a'(1.2)" -0.5 1e-9 1e-12 1e-9 "tangential restitution" <<'CDL'
model m {
    dof x = 0, y = 1, a = 0, x' = 1, y' = -1
    kinetic (x'^2 + y'^2)/2 + 0.4*a'^2/2
    constraint c: y >= 0 { slip = x' + a', friction = coulomb(2), impact = newton(0.8, tangential = 0.5) }
}
CDL
law "adhesion" 3 "y'(3)" 2.5 5e-3 1e-11 5e-3 2e-2 <<'CDL'
model m { dof y = 0; y'' = t; constraint c: y >= 0 { adhesion = 2 } }
CDL
law "friction of what adheres" 3 "x'(3)" 0.5 1e-5 1e-11 1e-5 1e-2 <<'CDL'
model m { dof x = 0, y = 0; x'' = t; y'' = 0; constraint c: y >= 0 { adhesion = 4, slip = x', friction = coulomb(0.5) } }
CDL
law "impacts one after the other" 1 "x[3]'(1)" 1 1e-9 1e-12 1e-9 "no simultaneous impacts" <<'CDL'
model m {
    dof x[i in 1..3] = i - (if i < 2 then 0.5 else 0), x'[i in 1..3] = if i < 2 then 1 else 0
    for i in 1..3 { x[i]'' = 0 }
    constraint c[i in 1..2]: x[i + 1] - x[i] >= 1 { impact = newton(1), simultaneous = cascade }
}
CDL
law "rolling friction" 2 "x'(2)" "0.5 - 0.002*9.81*2/0.14" 1e-9 "moments against rolling" 1e-8 1e-3 <<'CDL'
model m {
    dof x = 0, y = 0.1, a = 0, x' = 0.5, a' = 5
    kinetic x'^2/2 + y'^2/2 + 0.4*0.1^2*a'^2/2
    potential 9.81*y
    constraint c: y >= 0.1 { slip = x' - 0.1*a', friction = coulomb(0.5), rolling = coulomb(0.002), roll = a' }
}
CDL
law "spinning friction" 2 "a'(2)" "20 - 2*0.002*9.81/0.004" 1e-9 "moments against rolling" 1e-9 2e-3 <<'CDL'
model m {
    dof y = 0.1, a = 0, a' = 20
    kinetic y'^2/2 + 0.4*0.1^2*a'^2/2
    potential 9.81*y
    constraint c: y >= 0.1 { spinning = coulomb(0.002), spin = a' }
}
CDL
law "a reaction in an equation" 1 "w(1)" "1e-3*10*2" 1e-6 "reactions inside formulas" 1e-6 1e-5 <<'CDL'
model m {
    dof x = 0, y = 0, w = 0, x' = 3
    x'' = 0
    y'' = -10
    w' = 1e-3*c.rn*norm(c.slip)
    constraint c: y >= 0 { slip = x', friction = coulomb(0.2) }
}
CDL
law "a reaction as normal force" 1 "x'(1)" 2 1e-9 "reactions inside formulas" 1e-9 1e-3 <<'CDL'
model m {
    dof x = 0, y = 0, x' = 4
    x'' = 0
    y'' = -10
    constraint floor: y >= 0
    constraint shoe { normal = 0.5*floor.rn, slip = x', friction = coulomb(0.4) }
}
CDL
law "a bound of rates" 4 "x(4)" "2*sin(2)" 1e-5 1e-12 1e-5 2e-2 <<'CDL'
model m {
    dof x = 0, y = 0, a = 0, x' = 1, a' = 0.5
    kinetic (x'^2 + y'^2)/2 + 0.1*a'^2/2
    constraint blade: y'*cos(a) - x'*sin(a) = 0
}
CDL
