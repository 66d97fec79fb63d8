#!/bin/bash
# save and plot: CSV files, pictures, and which files remain after errors.
. "${tests:?}/cli/common"
cp ball.cdl o.cdl
cat >>o.cdl <<'CDL'
run ball for 1 with sweeping(h = 1e-2)
save t, y, y', floor.rn { file = "deep/in/y.csv", every = 0.25 }
save t, y { file = "all.csv" }
save floor.impacts.t, floor.impacts.post { file = "impacts.csv" }
plot y against t { file = "it's.svg", title = "a \"ball\"; `touch hacked`" }
CDL
try "files are written" 0 "$CDL" run -o dir/sub o.cdl
same "a header row" "t,y,y',floor.rn" "$(head -n 1 dir/sub/deep/in/y.csv)"
same "rows at the given times" "0 0.25 0.5 0.75 1" "$(tail -n +2 dir/sub/deep/in/y.csv | cut -d, -f1 | paste -sd' ')"
same "a row for each sample" 102 "$(wc -l <dir/sub/all.csv)"
same "numbers read back exactly" "0.01,0.9995095" "$(sed -n 3p dir/sub/all.csv)"
same "a row for each impact" yes "$([ "$(wc -l <dir/sub/impacts.csv)" -gt 1 ] && echo yes)"
same "the numbers of a plot" 102 "$(wc -l <"dir/sub/it's.svg.csv")"
has "the script" "dir/sub/it's.svg.gp" 'picture = "./it\047s.svg"' 'set title "a \042ball\042; \140touch hacked\140"'
same "nothing in a title is executed" "" "$(find . -name hacked)"
if command -v gnuplot >/dev/null; then
    has "the picture" "dir/sub/it's.svg" "<svg" "</svg>"
    (cd dir/sub && rm "it's.svg" && gnuplot "it's.svg.gp") && has "the script draws it again" "dir/sub/it's.svg" "</svg>"
fi
same "nothing half made is left" "" "$(find dir -name '*.part')"

mkdir bin                                       # without gnuplot: a note, and the data are still written
try "without gnuplot" 0 env PATH="$PWD/bin" "$CDL" run -o plain o.cdl
has "a note" err "gnuplot is not installed"
same "and the data" 102 "$(wc -l <"plain/it's.svg.csv")"

mkdir taken; mkdir taken/all.csv
try "where a folder is" 5 "$CDL" run -o taken o.cdl
has "it is reported" err "cannot write 'taken/all.csv': Is a directory"
touch file
try "where a file is a folder" 5 "$CDL" run -o file o.cdl
has "it is reported" err "Not a directory"
if [ -e /dev/full ]; then
    ln -s /dev/full full.csv
    cp ball.cdl d.cdl; printf 'run ball for 1\nsave t, y { file = "full.csv" }\n' >>d.cdl
    try "a full disk" 5 "$CDL" run --allow-outside d.cdl
    has "is reported" err "No space left on device"
    same "and a device stays one" "/dev/full" "$(readlink full.csv)"
fi

cp ball.cdl bad.cdl
cat >>bad.cdl <<'CDL'
run ball for 1
save t, y { fle = "a.csv" }
plot y { file = "a.gif" }
plot y { log = "z" }
save t, yy
CDL
try "errors of save and plot" 3 "$CDL" check bad.cdl
has "come in one go" err "save has no attribute 'fle'" "did you mean 'file'?" "a picture must be a .svg, .png or .pdf file" "'log' is \"x\", \"y\" or \"xy\"" "unknown name 'yy'"

cp ball.cdl x.cdl
cat >>x.cdl <<'CDL'
experiment x {
    sweep e in [0.2, 0.4]
    run ball(e = e) for 1 with sweeping(h = 1e-2)
    measure T = settle_time(floor)
    save t, y { file = "x.csv", every = 0.5 }
    save T { file = "T.csv" }
    plot y against t { file = "y.svg" }
}
CDL
try "an experiment" 0 "$CDL" run x.cdl
same "all points in one file" "e,t,y" "$(head -n 1 x.csv)"
same "their rows" 7 "$(wc -l <x.csv)"
same "a row a point" 3 "$(wc -l <T.csv)"
same "curves have columns of their own" "point,e,t,y" "$(head -n 1 y.svg.csv)"
same "a line a point" 2 "$(grep -c '^x [12]/2: e = 0\.[24]; T = ' out)"

cp ball.cdl a.cdl; printf 'run ball for 1 with sweeping(h = 1e-2)\nanimate("a.svg", y)\n' >>a.cdl
try "animate" 0 "$CDL" run -o anim a.cdl
cat >>a.cdl <<'CDL'
use std.planar
model bin {
    part ball[i in 1..3]: disk(R = 0.05*i) { p = [0.4*i, 0.5], p' = [-1, 0] }
    constraint floor[i in 1..3]: disk_plane_gap([0, 1], 0, ball[i].p, ball[i].R) >= 0 { impact = newton(0.5) }
}
run bin for 1 with sweeping(h = 1e-2)
animate("bin.svg", ball)
animate("bin.gif", ball)
animate("line.gif", [[0, 0], ball[1].p, [ball[2].p[1], 0.1*t]])
CDL
try "animate bodies" 0 "$CDL" run -o anim a.cdl
same "a circle a body, of its size" 3 "$(grep -c '<circle r="[0-9.]*" fill' anim/bin.svg)"
cat >radius.cdl <<'CDL'
model bead { param R = 1, m = 2; dof p in R2 = [0.5, 0]; kinetic m*norm(p')^2/2; potential 9.81*m*p[2]; constraint bowl: R - norm(p) >= 0 }
run bead for 1 with sweeping(h = 1e-2)
animate("bowl.svg", p)
model heater { param R = 50; dof p in R2 = [0, 1], T = 0; p'' = [0, -9.81]; T' = 1 - T/R; constraint floor: p[2] >= 0 }
model two { part h[i in 1..2]: heater }
run two for 1 with sweeping(h = 1e-2)
animate("heater.svg", h)
model hoop { param r = 0.1; dof p in R2 = [0, 1]; p'' = [0, -9.81]; constraint floor: p[2] - r >= 0 }
run hoop for 1 with sweeping(h = 1e-2)
animate("hoop.svg", p)
model grain { param R = 0.1; dof p in R2 = [0, 0]; p'' = [0, 0] }
model pair { part g[i in 1..2]: grain { p = [i, 0] }; constraint touch: norm(g[1].p - g[2].p) - g[1].R - g[2].R >= 0 }
run pair for 1 with sweeping(h = 1e-2)
animate("pair.svg", g)
CDL
try "animate, with an R of another meaning" 0 "$CDL" run -q -o radius radius.cdl
radii() { grep -o '<circle r="[0-9.]*"' "$1" | tr -dc '0-9.\n' | sort -u | awk '{ print ($1 > 10 ? "a disk" : "a point") }' | paste -sd,; }
same "the radius of a bowl is not the bead's" "a point" "$(radii radius/bowl.svg)"
same "a resistance is none" "a point" "$(radii radius/heater.svg)"
same "a gap that the radius makes smaller" "a disk" "$(radii radius/hoop.svg)"
same "and between two of them" "a disk" "$(radii radius/pair.svg)"
same "and the floor" 1 "$(grep -c '<path stroke="#555"' anim/bin.svg)"
same "a GIF begins and ends as one" "474946383961 3b" "$(head -c 6 anim/bin.gif | od -An -tx1 | tr -d ' \n') $(tail -c 1 anim/bin.gif | od -An -tx1 | tr -d ' \n')"
cat >w.cdl <<'CDL'
model plate {
    param R = 0.1
    dof p in R2 = [0, 1], p' = [0.2, 0]
    p[1]'' = 0
    p[2]'' = -9.81
    constraint floor: p[2] - R >= 0.2*sin(6*t) { impact = newton(0.8) }
}
run plate for 1 with sweeping(h = 1e-3)
animate("plate.svg", p)
animate("plate.gif", p)
model ball {
    param r = 0.05
    dof y = 1
    y'' = -9.81
    constraint floor: y >= r { impact = newton(0.5) }
}
model three { part b[i in 1..3]: ball { y = 0.3*i } }
run three for 1 with sweeping(h = 1e-2)
animate("three.svg", b)
model chain { dof u[i in 1..4] = 0.1*i; for i in 1..4 { u[i]'' = -u[i]*i } }
run chain for 1 with sweeping(h = 1e-2)
animate("chain.svg", u)
model rope {
    rod wire { length = 1, radius = 0.01, young = 1e6, poisson = 0.4, elements = 8 }
    at wire.s = 0 { position = [0, 0, 0], frame = eye(3) }
}
run rope with auglag()
animate("rope.svg", wire)
animate("rope.gif", wire)
CDL
try "animate walls that move, balls of one coordinate, rods" 0 "$CDL" run -o walls w.cdl
# the floor is level: one piece for each cell, and one picture for each frame; its height is 0.2 at t = pi/12, and -0.2 at pi/4
floors=$(grep -o 'attributeName="d"[^/]*' walls/plate.svg | tr ';' '\n' | sed 's/.*M[0-9.]* \([0-9.]*\)L.*/\1/' | tr -d '"')
same "a wall a frame" 60 "$(wc -l <<<"$floors")"
same "which goes up, and down" "16 47" "$(awk '{ if (NR == 1 || $1 < lo) { lo = $1; a = NR } if (NR == 1 || $1 > hi) { hi = $1; b = NR } } END { print a, b }' <<<"$floors")"
same "walls that stand are drawn once" 0 "$(grep -c 'attributeName="d"' walls/three.svg)"
same "each ball stands over its own floor" 3 "$(grep -o 'M[0-9.]* ' walls/three.svg | tr -d 'M' | awk 'NR > 1 && $1 - last > 5 { n++ } { last = $1 } END { print n + 1 }')"
same "a ball for each coordinate" 4 "$(grep -c '<circle' walls/chain.svg)"
same "a rod is a line through its nodes" "1 25" "$(grep -c '<polyline' walls/rope.svg) $(grep -o ' points="[^"]*"' walls/rope.svg | tr ' ' '\n' | grep -c ,)"
same "pictures that stand still show the start" 3 "$(grep -c '<circle r="[0-9.]*" fill="#[0-9a-f]*" cx="[0-9.]*" cy="[0-9.]*">' walls/three.svg)"
has "pictures are in the manifest" anim/manifest.json '"path": "bin.gif"' '"path": "line.gif"' '"path": "bin.svg"'
has "a picture that moves" anim/a.svg "<svg xmlns" '<animate attributeName="cy" dur="1s"' "</svg>"

# without `against`: the time or the coordinate of its run
cat >axes.cdl <<'CDL'
model ball { dof y = 1; y'' = -9.81; constraint floor: y >= 0 }
run a = ball for 1 with sweeping(h = 1e-2)
run b = ball for 2 with sweeping(h = 1e-3)
plot a.y { file = "own.svg" }
model string { domain s in 0..1; field u(s); -u'' = -8; at s = 0 { u = 0 }; at s = 1 { u = 0 } }
run string with active_set(cells = 10)
plot u { file = "line.svg" }
CDL
try "plots against their own axis" 0 "$CDL" run -o axes axes.cdl
same "the time of its run" 102 "$(wc -l <axes/own.svg.csv)"
same "the coordinate of its field" "s,u" "$(head -1 axes/line.svg.csv)"
