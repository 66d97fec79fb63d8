#!/bin/bash
# Laws of contact: the notes of a run, what `cdl emit c` refuses, what the help knows.
. "${tests:?}/cli/common"

# Kane's paradox: a rod hits the floor with its tip; Newton's law and friction give 0.224 of energy
rod() {
    cat <<CDL
model bar {
    dof x = 0, y = 1, a = 0.8667, x' = 1.25, y' = -2
    kinetic (x'^2 + y'^2)/2 + a'^2/24
    constraint tip: y - 0.5*sin(a) >= 0 { slip = x' + 0.5*sin(a)*a', friction = coulomb(0.5), impact = $1(0.9) }
}
run bar for 0.5 with $2
CDL
}
for with in 'sweeping()' 'events()'; do
    rod newton "$with" >rod.cdl
    try "a rod, $with" 0 "$CDL" run rod.cdl
    has "Newton's law gives energy: $with" err "the impact law of 'tip' adds energy at t = 0.309"
    has "it says by how much: $with" err "0.224 of it (Kane's paradox)"
    rod poisson "$with" >rod.cdl
    try "a rod by Poisson's law, $with" 0 "$CDL" run rod.cdl
    same "Poisson's law gives none: $with" 0 "$(grep -c 'gives energy' err)"
done

# Painlevé's paradox where the rod turns so fast that its foot may leave, stay or stop: the run says how many there are, and which it took
pole() {
    cat <<CDL
model pole {
    param a0 = 1.1, w0 = $1
    dof x = 0, y = sin(a0), a = a0, x' = -1 - sin(a0)*w0, y' = cos(a0)*w0, a' = w0, z = 0, s = 0, s' = 1
    kinetic (x'^2 + y'^2)/2 + (1/3)*a'^2/2 + (z'^2 + s'^2)/2
    potential 9.81*(y + z)
    constraint foot: y - sin(a) >= 0 { slip = d(x - cos(a), t), friction = coulomb(2) }
    constraint block: z >= 0 { slip = s', friction = coulomb(0.3) }
}
run pole for 0.01 with $2
CDL
}
for with in 'sweeping(h = 1e-4)' 'events()' 'auglag(h = 1e-4)'; do
    pole 6 "$with" >pole.cdl
    try "a pole that turns fast, $with" 0 "$CDL" run pole.cdl
    has "ways are counted: $with" err "2 accelerations satisfy the friction law at t = 0, and so does an impact without a collision"
    has "the one taken is named: $with" err "the one in which 'foot' opens and 'block' slides on"
    has "the summary counts: $with" out "1 step had several solutions"
    pole 0 "$with" >pole.cdl
    try "a pole that turns slowly, $with" 0 "$CDL" run pole.cdl
    has "none fits: $with" err "no acceleration satisfies the friction law of 'foot' at t = 0"
    has "the impact is listed: $with" out "foot   1 impact"
    same "it is the only way: $with" 0 "$(grep -c 'several solutions' out)"
done

# rates that miss a constraint by rounding are put onto it
cat >rates.cdl <<'CDL'
model m { dof x = 0, y = 0, x' = 0.70711, y' = 0.70710; x'' = 0; y'' = 0; constraint c: x' = y' }
run m for 1 with sweeping()
CDL
try "rounded rates" 0 "$CDL" run rates.cdl
has "they are moved, with a note" err "initial rates were moved by up to 5e-06 onto constraint 'c'"

# C of a model knows none of these, and says which
for law in "x' <= 1|it bounds rates" "x >= 0 { adhesion = 1 }|it adheres" \
    "x >= 0 { simultaneous = cascade }|its simultaneous impacts are a cascade"; do
    printf 'model m { dof x = 1; x%s = -1; constraint c: %s }\nrun m for 1 with sweeping()\n' "''" "${law%|*}" >c.cdl
    try "C of ${law%|*}" 3 "$CDL" emit c c.cdl m
    has "C of ${law%|*} is refused by name" err "${law#*|}"
done

# attributes are in the help
for key in adhesion simultaneous rolling spinning roll spin; do
    printf ':help %s\n' $key | "$CDL" >out 2>&1
    has "help knows $key" out "attribute of a constraint: $key = "
done
