#!/bin/bash
# cdl verify: checks saved results against their model. A correct result passes; one number changed by 1e-3, in any kind of
# column, is found.
. "${tests:?}/cli/common"
cat >block.cdl <<'CDL'
model block {
    param mu = 0.3, g = 10
    dof p in R2 = [0, 0], p' = [2, 0]
    p'' = [0.2*sin(9*t), -g]
    constraint floor: p[2] >= 0 { slip = p[1]', friction = coulomb(mu) }
}
run block(mu = 0.25) for 0.5 with sweeping(h = 1e-2)
save t, p, p', energy, dissipated, work, drift, floor.gap, floor.rn, floor.rt, floor.slip { file = "a.csv" }
save t, p, p', energy, dissipated, work, drift, floor.gap, floor.rn, floor.rt, floor.slip { file = "a.npz" }
save t, p, p', energy, floor.gap { file = "a.jsonl" }
CDL
try "a run is saved" 0 "$CDL" run -q -o good block.cdl
try "a folder is verified" 0 "$CDL" verify good
has "each file of it" out "good/a.csv: 51 rows, verified" "good/a.npz: 51 rows, verified" "good/a.jsonl: 51 rows, verified"
has "the worst of each kind" out gap penetration pull complementarity cone sliding slip energy books motion
try "one file, by the manifest beside it" 0 "$CDL" verify good/a.npz
for f in csv npz jsonl; do
    try "the model is named: $f" 0 "$CDL" verify good/a.$f --model block.cdl -p mu=0.25
done
# single elements beside whole arrays, with primes after the brackets
sed -e '/^save/d' block.cdl >beside.cdl
cat >>beside.cdl <<'CDL'
save t, p, p', p[1]'', p[2], p[1]', energy { file = "b.csv" }
save t, p[1]'', p, p' { file = "c.csv" }
save t, p[1], p[2], p[1]', p[2]' { file = "d.csv" }
CDL
try "elements are saved beside vectors" 0 "$CDL" run -q -o beside beside.cdl
try "and verified" 0 "$CDL" verify beside
has "all of them" out "beside/b.csv: 51 rows, verified" "beside/c.csv: 51 rows, verified" "beside/d.csv: 51 rows, verified" motion
# a ball in space: it bounces (part of its slip across the floor is 0), then slides, then rolls
cat >ball.cdl <<'CDL'
model ball {
    param R = 0.1, m = 4.2
    dof p in R3 = [0, 0, 0.3], p' = [5, 0.2, 0], A in SO3
    kinetic m*norm(p')^2/2 + 0.4*m*R^2*dot(A', A')/2
    potential m*9.81*p[3]
    constraint ground: p[3] >= R { friction = coulomb(0.3), impact = newton(0.4), slip = p' + A*cross(A', transpose(A)*[0, 0, -R]) }
}
run ball for 2 with sweeping(h = 4e-3)
save t, p, p', A, A', energy, ground.gap, ground.rn, ground.rt, ground.slip { file = "v.csv" }
CDL
try "a ball in space is saved" 0 "$CDL" run -q -o ball ball.cdl
try "and verified" 0 "$CDL" verify ball
has "its slip and its sliding too" out "ball/v.csv: 501 rows, verified" slip sliding
sed '/^run/,$d' block.cdl >blocks.cdl
printf 'use "blocks.cdl" as b\nrun b.block for 0.5 with sweeping(h = 1e-2)\nsave t, p, p'"'"', floor.gap { file = "m.csv" }\n' >uses.cdl
try "a run of a model from a module" 0 "$CDL" run -q -o module uses.cdl
try "is verified by the module's text" 0 "$CDL" verify module
has "as it was saved" out "module/m.csv: 51 rows, verified"
try "with another coefficient of friction" 1 "$CDL" verify good/a.npz --model=block.cdl
has "friction is off its bound" out "sliding" "<- off"
try "as JSON" 0 "$CDL" verify --json good
same "a line for each file" 3 "$(wc -l <out)"
has "which hold the worst" out '"status":"ok"' '"worst":{"gap":{"off":'

# changes one number of row 21 by 1e-3, column after column; without the manifest, so that only the numbers count
mkdir -p bad
names=$(head -n 1 good/a.csv)
n=$(tr ',' '\n' <<<"$names" | wc -l)
for ((k = 1; k <= n; k++)); do
    awk -F, -v k=$k 'BEGIN { OFS = "," } NR == 22 { $k = sprintf("%.17g", $k + 1e-3) } { print }' good/a.csv >bad/a.csv
    try "a change in $(cut -d, -f$k <<<"$names")" 1 "$CDL" verify bad/a.csv --model=block.cdl -p mu=0.25
    has "is shown" out "<- off"
done
# the same in the arrays of a .npz file: a number in the middle of each becomes 2^-10
for name in t p "p'" energy dissipated work drift floor.gap floor.rn floor.rt floor.slip; do
    cp good/a.npz bad/a.npz
    at=$(grep -abo -F "PK" good/a.npz | cut -d: -f1 | while read -r o; do
        [ "$(tail -c +$((o + 31)) good/a.npz | head -c $((${#name} + 4)) | tr -d '\0')" = "$name.npy" ] && { echo "$o"; break; }; done)
    printf '\0\0\0\0\0\0\x50\x3f' | dd of=bad/a.npz bs=1 seek=$((at + 30 + ${#name} + 4 + 128 + 8*30)) conv=notrunc 2>/dev/null
    try "a change in $name of .npz" 1 "$CDL" verify bad/a.npz --model=block.cdl -p mu=0.25
done
cp -r good touched
awk -F, 'BEGIN { OFS = "," } NR == 22 { $2 = sprintf("%.17g", $2 + 1e-9) } { print }' good/a.csv >touched/a.csv
try "other bytes than the manifest records" 1 "$CDL" verify touched
has "are named" out "the bytes are not those that the manifest records"

# constraints on rates: equalities and inequalities
cat >edge.cdl <<'CDL'
model edge {
    dof x = 0, y = 0, a = 0.3, x' = cos(0.3), y' = sin(0.3), a' = 0
    x'' = 0; y'' = 0; a'' = 1
    constraint knife: x'*sin(a) - y'*cos(a) = 0
    constraint limit: a' <= 0.5
}
run edge for 1 with sweeping(h = 1e-2)
save t, x, y, a, x', y', a', limit.gap, limit.rn { file = "e.csv" }
CDL
try "constraints of rates are saved" 0 "$CDL" run -q -o edge edge.cdl
try "and verified" 0 "$CDL" verify edge
has "as rates" out "rate " "pull " "complementarity "
for k in 5 7 8 9; do
    awk -F, -v k=$k 'BEGIN { OFS = "," } NR == 80 { $k = sprintf("%.17g", $k + (k == 9 ? -2 : 1e-3)) } { print }' edge/e.csv >bad/e.csv
    try "a change in column $k of them" 1 "$CDL" verify bad/e.csv --model=edge.cdl
done

# initial values that are not those of the model, values that are not numbers, and uninformative files are named
awk -F, 'BEGIN { OFS = "," } NR > 1 { $2 = sprintf("%.17g", $2 + 0.1) } { print }' good/a.csv >bad/a.csv
try "a motion beside that of the model" 1 "$CDL" verify bad/a.csv --model=block.cdl -p mu=0.25
has "does not start there" out "  start " "row 1, p[1]  <- off"
for name in floor.gap floor.rn floor.rt floor.slip energy work drift; do
    k=$(tr ',' '\n' <<<"$names" | grep -nx "$name" | cut -d: -f1)
    awk -F, -v k="$k" 'BEGIN { OFS = "," } NR == 22 { $k = "nan" } { print }' good/a.csv >bad/a.csv
    try "no number in $name" 1 "$CDL" verify bad/a.csv --model=block.cdl -p mu=0.25
    has "is shown" out "<- off"
done
printf 'model free { dof x = 0, x%s = 1; x%s = 0 }\nrun free for 1 with sweeping(h = 0.1)\nsave t, x, x%s { file = "f.csv" }\n' "'" "''" "'" >free.cdl
try "a free motion" 0 "$CDL" run -q -o free free.cdl
awk -F, 'BEGIN { OFS = "," } NR > 1 { $2 = sprintf("%.17g", 1.1*$2) } { print }' free/f.csv >bad/f.csv
try "rows that may lie too far apart" 0 "$CDL" verify bad/f.csv --model=free.cdl
has "are named" out "  not checked " "the motion of x"

# results that cannot be verified are refused with the reason
try "no such file" 5 "$CDL" verify nothing.csv
try "no manifest" 2 "$CDL" verify bad/a.csv
has "says what to do" err "--model=FILE.cdl"
cut -d, -f1,2 good/a.csv >bad/few.csv
try "dofs are missing" 2 "$CDL" verify bad/few.csv --model=block.cdl
has "with the place in the model" err "block.cdl:3:" "do not hold 'p'"
printf 't,p[1]\n0,x\n' >bad/text.csv
try "no numbers" 5 "$CDL" verify bad/text.csv --model=block.cdl
head -c 900 good/a.npz >bad/cut.npz
try "cut off" 5 "$CDL" verify bad/cut.npz --model=block.cdl
mkdir -p evil; sed 's/"path": "a.csv"/"path": "..\/good\/a.csv"/' good/manifest.json >evil/manifest.json
cp good/a.npz good/a.jsonl evil
try "a manifest that leaves its folder" 5 "$CDL" verify evil
has "is refused" err "outside of its folder"

# families, impacts, and the other backends
cat >row.cdl <<'CDL'
model row {
    param N = 3
    dof y[i in 1..N] = i/4
    for i in 1..N { y[i]'' = -10 }
    constraint floor[i in 1..N]: y[i] >= 0 { impact = newton(0.5) }
}
run row for 1 with sweeping(h = 1e-3)
save t, y, y', energy, work, dissipated, drift, floor[1].gap, floor[2].rn { file = "s.csv" }
run row for 1 with events()
save t, y, y', energy, work, dissipated, drift, floor[3].gap { file = "e.npz" }
CDL
try "a family" 0 "$CDL" run -q -o row row.cdl
try "is verified" 0 "$CDL" verify row

# shapes that touch in several points, in parts: their results are those of all points together
cat >bricks.cdl <<'CDL'
model brick {
    param size = [0.2, 0.1, 0.06], m = 1
    let J = m/12*diag(size[2]^2 + size[3]^2, size[1]^2 + size[3]^2, size[1]^2 + size[2]^2)
    dof p in R3, A in SO3
    kinetic m*norm(p')^2/2 + dot(A', J*A')/2
    potential 9.81*m*p[3]
    shape hull: box(-size/2, size/2) at p, A
}
model two {
    part low: brick { p = [0, 0, 0.1], A = rot_x(0.2)*rot_y(0.1) }
    part high: brick { p = [0.02, 0.01, 0.2], A = rot_z(0.3) }
    constraint floor: low.hull.gap(halfspace([0, 0, 1], 0)) >= 0 { friction = coulomb(0.5) }
    constraint touch: high.hull.gap(low.hull) >= 0 { friction = coulomb(0.5) }
}
run two for 0.3 with sweeping(h = 2e-3)
save t, low.p, low.p', low.A, low.A', high.p, high.p', high.A, high.A', energy, work, dissipated, drift, floor.gap, floor.rn, floor.rt, touch.gap, touch.rn, touch.rt { file = "b.csv" }
save t, low.p, low.p', low.A, low.A', high.p, high.p', high.A, high.A', touch.gap { file = "b.npz" }
CDL
try "bricks are saved" 0 "$CDL" run -q -o bricks bricks.cdl
try "and verified" 0 "$CDL" verify bricks
has "by their shapes" out "bricks/b.csv: 151 rows, verified" "bricks/b.npz: 151 rows, verified" gap penetration pull complementarity cone energy books motion
# change COLUMN AWK-CONDITION VALUE [KIND]: changes one number of the first row for which it holds; v(name) is a number of the row
change() {
    awk -F, -v want="$1" -v set="$3" 'BEGIN { OFS = "," } NR == 1 { for (k = 1; k <= NF; k++) at[$k] = k }
        function v(name) { return $at[name] + 0 }
        NR > 1 && !done && ('"$2"') { $at[want] = set == "more" ? sprintf("%.17g", $at[want] + 1e-3) : set; done = 1 } { print }' bricks/b.csv >bad/b.csv
    try "a change in $1: $3" 1 "$CDL" verify bad/b.csv --model=bricks.cdl
    grep '<- off' out >off
    has "is shown${4:+ as $4}" off "${4:-<- off}"
}
for column in "low.p[3]" "high.p[1]" "high.p'[2]" "low.A'[1]" "high.A[1][2]"; do
    change "$column" "NR == 60" more
done
for column in energy floor.gap touch.gap; do
    change $column "NR == 90" more "${column#*.}"
done
change touch.rn "NR == 90" -1 pull
change touch.rn 'v("touch.gap") > 0.01 && v("touch.gap") < 0.03' 5 complementarity
change floor.rn 'v("floor.gap") > 0.005' 5 complementarity
change "touch.rt[1]" 'v("touch.rn") > 1' 1e4 cone

# rotations: nine columns of a matrix
cat >body.cdl <<'CDL'
model body {
    dof A in SO3 = rot_x(0.3), A' = [0.1, 2, 0.3]
    kinetic dot(A', diag(1, 2, 2.5)*A')/2
    potential A[3, 3]
}
run body for 3 with sweeping(h = 1e-2)
save t, A, A', energy, dissipated, work, drift { file = "a.csv" }
CDL
try "a rotation is saved" 0 "$CDL" run -q -o turned body.cdl
try "and verified" 0 "$CDL" verify turned
has "all of it" out "turned/a.csv: 301 rows, verified"
for k in 2 6 10 12; do
    awk -F, -v k=$k 'BEGIN { OFS = "," } NR == 22 { $k = sprintf("%.17g", $k + 1e-3) } { print }' turned/a.csv >bad/a.csv
    try "a change in column $k of it" 1 "$CDL" verify bad/a.csv --model=body.cdl
    has "is shown" out "<- off"
done

# gaps between shapes are those of the state that is saved, and not of what a step has held
cat >shapes.cdl <<'E'
model body {
    param m = 1
    dof p in R3, A in SO3
    kinetic m*norm(p')^2/2 + 0.0015*dot(A', A')/2
}
model tumbling {
    part a: body { p = [0, 0, 0.19], A' = [3, 5, 2] }
    part b: body { p = [0, 0.01, 0], A = rot_z(0.2), A' = [-2, 4, 1] }
    part c: body { p = [0, 0.3, 0.05], A' = [4, -3, 5] }
    shape can: cylinder([0, 0, -0.05], [0, 0, 0.1], 0.05) at a.p, a.A
    shape pill: capsule([-0.05, 0, 0], [0.05, 0, 0], 0.05) at b.p, b.A
    shape egg: ellipsoid([0, 0, 0], diag(1/0.06^2, 1/0.08^2, 1/0.1^2)) at c.p, c.A
    constraint touch: can.gap(pill) >= 0
    constraint over: egg.gap(can) >= 0
    constraint beside: egg.gap(pill) >= 0
}
run tumbling for 1 with sweeping(h = 0.02)
save t, a.p, a.p', a.A, a.A', b.p, b.p', b.A, b.A', c.p, c.p', c.A, c.A', touch.gap, over.gap, beside.gap { file = "g.npz" }
E
try "shapes that tumble are saved" 0 "$CDL" run -q -o shapes shapes.cdl
try "their gaps are those of the state" 0 "$CDL" verify shapes
