#!/bin/bash
# One core for every size: the option cut, what the summary says about it, and the limits that cdl(5) names.
. "${tests:?}/cli/common"
# balls N CUT: N balls that fall from different heights; the first rests at the end
balls() {
    cat <<CDL
model balls {
    dof y[i in 1..$1] = 0.1 + 0.8*i/$1, y' = 0
    for i in 1..$1 { y[i]'' = -10 }
    constraint floor[i in 1..$1]: y[i] >= 0 { impact = poisson(0.5) }
}
run balls for 0.5 with sweeping(h = 1e-3, cut = $2)
expect max_penetration <= 1e-9
CDL
}
for n in 1 40 500; do
    balls $n never >never.cdl
    try "$n balls, never cut" 0 "$CDL" run never.cdl
    has "$n balls: the summary counts whole steps" out "500 whole steps, not cut"
    has "$n balls: it names the policy" out "(cut = never)"
    try "$n balls, never cut, as JSON" 0 "$CDL" run --json never.cdl
    has "$n balls: the record has policy and count" out '"cut":"never","at_once":500}'
    balls $n always >always.cdl
    try "$n balls, always cut" 0 "$CDL" run always.cdl
    same "$n balls: no whole step" 0 "$(grep -c 'whole step' out)"
done
balls 1 always >always.cdl
try "always, as JSON" 0 "$CDL" run --json always.cdl
has "the record names solver, policy and count" out '"solver":"closed form","cut":"always","at_once":0}'
sed 's/with sweeping.*/with events()/' always.cdl >events.cdl
try "a backend without such steps" 0 "$CDL" run --json events.cdl
has "has no policy" out '"cut":null,"at_once":0}'
balls 2 sometimes >word.cdl
try "another word" 3 "$CDL" run word.cdl
has "it names the words" err "auto|always|never"

# friction without slip: 8 n^2 m bytes for the rows of a family
rub() { # n BACKEND SLIP
    cat <<CDL
model rub {
    dof x[i in 1..$1] = 0, x' = 1
    dof y[i in 1..$1] = 0, y' = 0
    for i in 1..$1 { x[i]'' = 0; y[i]'' = -10 }
    constraint floor[i in 1..$1]: y[i] >= 0 { friction = coulomb(0.1)$3 }
}
run rub for 2e-3 with $2(h = 1e-3)
CDL
}
rub 201 sweeping "" >large.cdl                  # 8*402^2*201 = 260 MB
try "rows of more than 256 MB" 4 "$CDL" run large.cdl
has "it names slip" err "friction needs 'slip'"
rub 201 sweeping ", slip = x[i]'" >slip.cdl
try "with slip it runs" 0 "$CDL" run slip.cdl
rub 401 auglag ", slip = x[i]'" >auglag.cdl
try "auglag takes 400 contacts" 4 "$CDL" run auglag.cdl
has "it says so" err "up to 400 contacts"
