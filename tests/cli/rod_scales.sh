#!/bin/bash
# The same rods in other units: lengths by L, forces by F, times by T. Positions, forces, loads and times scale accordingly, to 1e-9.
. "${tests:?}/cli/common"
cat >models.cdl <<'CDL'
model arc { param L = 1, F = 1, T = 1; let B = F*1e4, A = F*L^2
    rod wire { length = L, stiffness = diag(B, B, B), bending = diag(A, A, A), elements = 8 }
    at wire.s = 0 { position = [0, 0, 0], frame = eye(3) }
    force wire.x(L): [3*F*t, F*t, -F*t] }
model column { param L = 1, F = 1, T = 1; let B = F*1e6, A = F*L^2
    rod wire { length = L, stiffness = diag(B, B, B), bending = diag(A, 2*A, A), elements = 8 }
    at wire.s = 0 { position = [0, 0, 0], frame = eye(3) }
    at wire.s = L { position = [0, 0, L*(1 - 6e-5*t)], frame = eye(3) } }
model shaft { param L = 1, F = 1, T = 1; let B = F*1e6, A = F*L^2
    rod wire { length = L, stiffness = diag(B, B, B), bending = diag(A, A, A/2), elements = 8 }
    at wire.s = 0 { position = [0, 0, 0], moment = [0, 0, -7*F*L*t] }
    at wire.s = L/2 { roll = 0 }
    at wire.s = L { position = [0, 0, L], moment = [0, 0, 7*F*L*t] } }
model cable { param L = 1, F = 1, T = 1; let B = F*1e4, A = 1e-5*F*L^2
    rod wire { length = 1.5*L, stiffness = diag(B, B, B), bending = diag(A, A, A), elements = 30 }
    at wire.s = 0 { position = [0, 0, 0] }
    at wire.s = 1.5*L { position = [0, 0, 1.5*L - 0.5*L*min(1, 2*t)], roll = 0 }
    force wire.x: [-F/L*min(1, 10*t), 0, 0] }
model crossed { param L = 1, F = 1, T = 1; let E = F/L^2*1e6
    fn below(s) = [s - 0.5*L, 0, 0]
    fn above(s) = [0.05*L, s - 0.5*L, 0.0401*L]
    rod a { length = L, radius = 0.02*L, young = E, reference = curve(below), elements = 6 }
    rod b { length = L, radius = 0.02*L, young = E, reference = curve(above), elements = 6 }
    at a.s = 0 { position = below(0), frame = rot_y(pi/2) }
    at a.s = L { position = below(L), frame = rot_y(pi/2) }
    at b.s = 0 { position = above(0) + L*[1e-3*t, 0, -0.02*t], frame = rot_x(-pi/2) }
    at b.s = L { position = above(L) + L*[1e-3*t, 0, -0.02*t], frame = rot_x(-pi/2) }
    constraint touch: b.gap(a) >= 0 { friction = coulomb(0.2) } }
model laid { param L = 1, F = 1, T = 1; let B = F*1e4, A = F*L^2, r = 0.02*L
    fn low(s) = [s - L/2, 0, 0]
    fn high(s) = [s - L/2, 0, 2*r]
    rod a { length = L, radius = r, stiffness = diag(B, B, B), bending = diag(A, A, A), reference = curve(low), elements = 8 }
    rod b { length = L, radius = r, stiffness = diag(B, B, B), bending = diag(A/4, A/4, A/4), reference = curve(high), elements = 8 }
    at a.s = 0 { position = low(0), frame = rot_y(pi/2) }
    at a.s = L { position = low(L), frame = rot_y(pi/2) }
    at b.s = 0 { position = high(0), frame = rot_y(pi/2) }
    at b.s = L { position = high(L), frame = rot_y(pi/2) }
    force b.x: [0, 0, -60*F/L*t]
    constraint touch: b.gap(a) >= 0 { friction = coulomb(0.2) } }
model dragged { param L = 1, F = 1, T = 1; let B = F*1e4, A = 0.1*F*L^2, r = 0.01*L
    rod bar { length = L, radius = r, stiffness = diag(B, B, B), bending = diag(A, A, A), elements = 10 }
    at bar.s = L { position = [r, 0, L*(1 + 1e-4*t)], axis = [0, 0, 1], roll = 0 }
    force bar.x: [-2*F/L, 0, 0]
    constraint ground: bar.gap(halfspace([1, 0, 0], 0)) >= 0 { friction = coulomb(0.4) } }
model flight { param L = 1, F = 1, T = 1; let B = F*1e3, A = F*L^2
    rod wire { length = L, stiffness = diag(B, B, B), bending = diag(A, A, A), mass = F*T^2/L^2, elements = 6, velocity = L/T*[0, sin(5*s/L), s/L] }
    force wire.x(L): [F, 0, 0] }
CDL
scales="1e-9,1e-12,1e-6 1e-9,1e6,1e6 3.7e-7,1,1 1e6,1e12,1e-3 2.3e5,1e-6,1e6 0.013,4.1e-9,1 1,1e9,1"
# rods MODEL DURATION BACKEND RESULT...; a result is EXPRESSION/UNIT, with @ for the run and L, F, T for the units
rods() {
    local model=$1 for=$2 with=$3 n=0 l f t e
    shift 3
    printf 'run base = %s() for %s with %s\n' "$model" "${for//T/1}" "${with//T/1}"
    for s in $scales; do
        IFS=, read -r l f t <<<"$s"
        n=$((n + 1))
        printf 'run r%d = %s(L = %s, F = %s, T = %s) for %s with %s\n' $n "$model" "$l" "$f" "$t" "${for//T/$t}" "${with//T/$t}"
        for e; do
            local here=${e//L/$l} there=${e//L/1}
            here=${here//F/$f} there=${there//F/1}
            here=${here//T/$t} there=${there//T/1}
            printf 'expect %s == %s within rel(%s)\n' "${here//@/r$n}" "${there//@/base}" "${close:-1e-9}"
        done
    done
}
one() {
    { cat models.cdl; rods "$@"; } >m.cdl
    try "$1" 0 "$CDL" run -q m.cdl
}
one arc 1 'auglag(h = 0.25)' '@.wire.x(L)[1]/L' '@.wire.x(L)[3]/L' '@.wire.reaction(0)[1]/F' '@.wire.reaction(0)[5]/(F*L)'
one column 1 'auglag(h = 0.1)' '@.critical[1]' 'abs(@.wire.x(0.5*L)[2])/L'
# two equal eigenvalues at once: the load is only accurate to half the digits
close=1e-8 one shaft 1 'auglag(h = 0.3)' '@.critical[1]'
one cable 1 'auglag(h = 0.1)' '@.wire.x(0.75*L)[1]/L' '@.wire.reaction(0)[3]/F'
one crossed 1 'auglag(h = 0.25)' '@.touch.rn(1)/F' '@.b.x(0.5*L)[3]/L' '@.b.reaction(0)[1]/F'
# along a line, where lines are held apart between the pairs; lengths above and below a unit of 1
scales="1e-6,1,1 0.05,1,1 30,1,1 1e4,1,1" one laid 1 'auglag(h = 0.25)' '@.touch.rn(1)/F' '@.b.x(0.5*L)[3]/L' '@.a.reaction(0)[3]/F'
one dragged 1 'auglag(h = 0.25)' '@.bar.reaction(L)[3]/F' '@.bar.x(0.7*L)[3]/L'
one flight '0.2*T' 'auglag(h = 0.02*T)' '@.wire.x(L)[2]/L' '@.wire.x(0.3*L)[1]/L'
