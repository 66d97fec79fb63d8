#!/bin/bash
# Words that only some statements begin with are names everywhere else: each word in each position.
. "${tests:?}/cli/common"

# W stands for the word
positions() {
    cat <<'CDL'
model W { dof y = 1; y'' = -1; constraint floor: y >= 0 }
run W for 0.1 with sweeping(h = 1e-2)
---
model m { dof y = 1; y'' = -1 }
run W = m for 0.1 with sweeping(h = 1e-2)
expect last(W.y) < 1
---
model m { dof y = 1; y'' = -1; constraint W: y >= 0 { impact = newton(0.5) } }
run m for 2 with sweeping(h = 1e-2)
expect count(W.impacts) > 0 and last(W.gap) >= -1e-9
---
model m { dof W = 1, W' = 0; W'' = -W; when W < -2 { W' = 0 } }
model n { dof W = 1; kinetic W'^2/2; force W: 0 }
run m for 0.1 with events()
expect W(0.1) == cos(0.1) within 1e-9
expect W'(0.1) == -sin(0.1) within 1e-9
---
model m { dof W[i in 1..2] = i; for i in 1..2 { W[i]'' = -W[i] } }
run m for 0.1 with events()
expect W[2](0.1) == 2*cos(0.1) within 1e-9
---
model m { dof W in R2 = [1, 2]; W'' = -W; history W(s) = [1, 2]; let a = W(t - 1); constraint c: a[1] + W[1] >= -9 }
---
model m { dof W in R3 = [0, 0, 1], A in SO3; kinetic norm(W')^2/2 + norm(A')^2/2; potential W[3]; shape W2: ball([0, 0, 0], 0.1) at W, A }
---
model m { param W in 0..9 = 2; dof y = W; y' = -W*y }
run m(W = 3) for 1 with events()
expect y(1) == 3*exp(-3) within 1e-9
---
model m { param W; dof y = 1; y' = -W }
run m(W = 3) for 1 with events()
---
model m { let W = 2; let b = if W > 1 then W else 0; dof y = W; y' = -W + b }
---
model m { fn W(x) = 2*x; dof y = 1; y' = -W(y); let c = W(1) }
---
model m { dof y[i in 1..3] = 1; for W in 1..3 where W > 0 { y[W]' = -W*y[W] }; let s = sum(y[W] for W in 1..3) }
---
model b { dof y = 1; y'' = -1 }
model m { part W: b { y = 2 }; constraint c: W.y >= 0 }
---
model m { dof p in R3, A in SO3; kinetic norm(p')^2/2 + norm(A')^2/2; shape W: ball([0, 0, 0], 0.1) at p, A; constraint c: W.gap(halfspace([0, 0, 1], -1)) >= 0 }
---
model m { dof y = 1; y'' = -1; stop when y < 0.9 }
experiment W { sweep W in [1, 2]; run m for 0.1*W; measure T = last(t) }
---
let W = 3
fn f(W) = W^2
expect f(W) == 9
expect sum(W for W in 1..3) == 6
measure W = 1
CDL
}

for word in shape stop orbit branch fit over from to; do
    positions | sed "s/W/$word/g" >all.cdl
    rm -f part.*.cdl
    awk '/^---$/ { n++; next } { print > "part." n + 0 ".cdl" }' all.cdl
    for file in part.*.cdl; do
        try "$word: $(head -1 $file)" 0 "$CDL" run -q $file
        "$CDL" fmt $file >again.cdl 2>err
        try "$word: laid out, it is the same" 0 "$CDL" fmt --check again.cdl
        try "$word: and means the same" 0 "$CDL" check again.cdl
    done
done
