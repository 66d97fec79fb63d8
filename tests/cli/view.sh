#!/bin/bash
# Pages for a browser: animate("x.html"), cdl run --report, cdl view. The data of a page are compared with saved
# numbers, here and, if Chromium is installed, as the page itself shows them.
. "${tests:?}/cli/common"
cat >drop.cdl <<'CDL'
use std.planar
model drop {
    param e = 0.5
    part d[i in 2..3]: disk(R = 0.1*i) { p = [0.5*i, 1], p' = [0.2, 0] }
    constraint floor[i in 2..3]: d[i].p[2] >= d[i].R { impact = newton(e), slip = d[i].p[1]' + d[i].R*d[i].a', friction = coulomb(0.3) }
}
run drop for 1 with sweeping(h = 1e-3)
expect max_penetration <= 1e-9 "</script><b>no overlap</b>"
save t, d[2].p[1], d[2].p[2], d[3].p[2], floor[3].rn { file = "drop.csv" }
animate("drop.html", d)
animate("all.html")
model fly {
    param R = 0.1
    dof p in R3 = [0, 0, 1], p' = [1, 0.5, 0]
    p'' = [0, 0, -9.81]
    constraint ground: p[3] >= R { impact = newton(0.8) }
}
run fly for 1 with sweeping(h = 1e-3)
animate("fly.html", p)
animate("fly.svg", p)
model tumble {
    dof A in SO3, A' = [1, 0, 3], p in R3 = [0, 0, 1]
    kinetic norm(p')^2/2 + dot(A', diag(1, 2, 3)*A')/2
}
run tumble for 1 with sweeping(h = 1e-2)
animate("tumble.html")
CDL
try "pages are written" 0 "$CDL" run -q -o pages drop.cdl
has "names of bodies" pages/drop.html '"name":"d[2]"' '"name":"d[3]"' '"name":"floor[3].rn"'
same "no text of a model ends the script" 0 "$(grep -c "<b>no overlap" pages/drop.html)"
same "nothing comes from elsewhere" "" "$(grep -oE '(src|href)=|https?://[a-z]|import\(|fetch\(' pages/drop.html)"
same "a rotation is no body, it turns the one that is there" '"bodies":[{"name":"p"' "$(grep -oE '"bodies":\[\{"name":"[^"]*"' pages/tumble.html)"
same "which is drawn with its attitude" 1 "$(grep -o '"shapes":\[[^]]' pages/tumble.html | wc -l)"
has "a picture of what moves in space" pages/fly.svg "<circle" "</svg>"
cat >skin.cdl <<'CDL'
model skin {
    domain x in -1..1, y in -1..1
    field u(x, y)
    -laplacian(u) = -1
    obstacle u >= 0.3 - x^2 - y^2
    boundary u = 0
}
run skin with active_set(cells = 32)
animate("skin.html", u)
CDL
try "a field" 0 "$CDL" run -q -o pages skin.cdl
has "is in its page" pages/skin.html '"plane":true' '"name":"u"'
sed s/skin.html/skin.svg/ skin.cdl >flat.cdl
try "a field is no picture that moves" 3 "$CDL" run -q -o pages flat.cdl
try "another ending" 3 "$CDL" -e 'model m { dof y = 1; y'"''"' = -1 }
run m for 1
animate("m.mp4", y)'
has "is refused" err "takes the name of a .html, .svg or .gif file"

cat >named.cdl <<'CDL'
## A ball that is let go.
model let_go { dof y = 1 [m]; y'' = -9.81 [m/s^2] }
run let_go for 1
animate("named.html")
CDL
try "a model with a comment and units" 0 "$CDL" run -q -o pages named.cdl
has "shows both" pages/named.html '"doc":"A ball that is let go."' '"name":"y","unit":"m"' '"name":"y'"'"'","unit":"m/s"'
cat >rest.cdl <<'CDL'
use "ball.cdl" as b
experiment rest {
    sweep e in [0.3, 0.5, 0.7]
    run b.ball(e = e) for 3 with sweeping(h = 1e-3)
    measure T = settle_time(floor)
    expect T > 0 "it rests"
    save T { file = "rest.csv" }
}
CDL
cat >miss.cdl <<'CDL'
model m { dof y = 1; y'' = -1 }
run m for 1 with sweeping(h = 0.1)
expect y(0) == 2 "height"
animate("missed.html")
CDL
try "an expectation that is not met" 1 "$CDL" run -q -o pages --report miss.html miss.cdl
has "is in the page with its number" pages/missed.html '"text":"y(0) == 2","label":"height","ok":false,"value":1}'
try "a report" 0 "$CDL" run -q -o rep --report rest.html rest.cdl
has "is named" err "wrote rep/rest.html"
try "view of a file" 0 "$CDL" view -o seen rest.cdl
same "its page" yes "$([ -s seen/rest.html ] && echo yes)"
try "view of a folder" 0 "$CDL" view -o seen rep
same "its page" yes "$([ -s seen/rep.html ] && echo yes)"
try "view of nothing" 5 "$CDL" view -o seen nowhere.cdl
same "no page" "" "$(find seen -name 'nowhere*')"
mkdir empty
try "view of a folder without results" 5 "$CDL" view -o seen empty
has "is reported" err "cannot read 'manifest.json' in 'empty'"
try "a report of two files" 2 "$CDL" run --report a.html ball.cdl rest.cdl
has "is refused" err "--report works with one file at a time"

body_with() # its name, its shape
{
    cat <<CDL
model $1 {
    dof p in R3, p' = [0.3, 0, 0]
    dof A in SO3 = rot_x(0.3), A' = [0, 5, 0.1]
    kinetic norm(p')^2/2 + dot(A', diag(1, 2, 2.5)*A')/200
    potential 9.81*p[3]
    $2
}
CDL
}
{
    body_with brick 'shape hull: box([-0.1, -0.05, -0.03], [0.1, 0.05, 0.03]) at p, A'
    body_with pill 'shape hull: capsule([0, 0, -0.1], [0, 0, 0.1], 0.05) at p, A'
    body_with drum 'shape hull: cylinder([0, 0, -0.05], [0, 0, 0.1], 0.08) at p, A'
    body_with egg 'shape hull: ellipsoid([0, 0, 0], diag(100, 200, 400)) at p, A'
    body_with free ''
    cat <<'CDL'
model solids {
    part b: brick { p = [0, 0, 0.4] }
    part c: pill { p = [0, 0.3, 0.4] }
    part d: drum { p = [0, 0.6, 0.4] }
    part e: egg { p = [0, 0.9, 0.4] }
    part f: free { p = [0, 1.2, 0.4] }
    constraint ground: b.hull.gap(halfspace([0, 0, 2], 0.2)) >= 0 { friction = coulomb(0.4) }
    constraint step: c.hull.gap(box([-1, 0, -0.2], [1, 1, 0])) >= 0
}
run solids for 0.5 with sweeping(h = 2e-3)
save t, b.p[1], b.p[2], b.p[3], b.A[1, 1], b.A[2, 1], b.A[3, 1], b.A[1, 2], b.A[2, 2], b.A[3, 2], b.A[1, 3], b.A[2, 3], b.A[3, 3] { file = "solids.csv" }
animate("solids.html")
animate("one.html", b)
animate("solids.svg", b)
CDL
} >solids.cdl
try "shapes in space" 0 "$CDL" run -q -o pages solids.cdl
has "each has its kind" pages/solids.html '"kind":"hull"' '"kind":"cylinder"' '"kind":"ellipsoid"' '"kind":"axes"' '"fixed":true'
same "a named part has its shapes, and what is fixed" 2 "$(grep -o '"kind":"[a-z]*"' pages/one.html | wc -l)"
same "an SVG has the twelve edges of a box" 24 "$(grep -m1 -o '<path stroke="#1f77b4"[^>]*' pages/solids.svg | grep -o '[ML][0-9]' | wc -l)"
cat >flat.cdl <<'CDL'
model flat {
    dof p in R2 = [0, 0.5], p' = [0.5, 0], a = 0.2, a' = 3
    dof q in R2 = [0.4, 0.5]
    kinetic dot(p', p')/2 + a'^2/200 + dot(q', q')/2
    potential 9.81*(p[2] + q[2])
    shape tile: hull([[-0.1, -0.05], [0.1, -0.05], [0, 0.1]]) at p, a
    shape round: ball([0, 0], 0.06) at q
    constraint floor: tile.gap(halfspace([0, 1], 0.1)) >= 0
    constraint below: round.gap(halfspace([0, 1], 0.1)) >= 0
}
run flat for 0.5 with sweeping(h = 2e-3)
save t, p[1], p[2], a { file = "flat.csv" }
animate("flat.html")
CDL
try "shapes in the plane" 0 "$CDL" run -q -o pages flat.cdl

if command -v python3 >/dev/null; then
    python3 "$tests/cli/view.py" solids pages/solids.html pages/solids.csv >got
    has "corners are where places and rotations put them" got "ok corners" "ok faces" "ok floor" "ok touching"
    python3 "$tests/cli/view.py" flat pages/flat.html pages/flat.csv >got
    has "in the plane, too" got "ok corners" "ok walls"
    python3 "$tests/cli/view.py" data pages/drop.html pages/drop.csv d[2] 'd[2].p[1]' 'd[2].p[2]' >got
    has "places are those of the run" got "ok places" "ok series" "ok impacts" "ok arrows" "ok label"
    python3 "$tests/cli/view.py" data pages/fly.html "" p >got
    has "in space: the ground" got "ok plane"
    python3 "$tests/cli/view.py" runs rep/rest.html rep/rest.csv >got
    has "runs and tables of a report" got "ok runs" "ok file"
    python3 "$tests/cli/view.py" runs seen/rep.html rep/rest.csv >got
    has "the same of a folder" got "ok runs" "ok file"
    if command -v chromium >/dev/null; then
        python3 "$tests/cli/view.py" drive pages/drop.html >got 2>&1
        has "the page works" got "ok clock" "ok value" "ok played" "ok picked" "ok keys" "ok seeks" "ok numbers" "ok level" "ok expectation" "ok drawn"
        python3 "$tests/cli/view.py" drive3 pages/fly.html >got 2>&1
        has "in space too" got "ok drawn" "ok turned"
        python3 "$tests/cli/view.py" solids3 pages/solids.html pages/solids.csv >got 2>&1
        has "shapes are drawn where they are" got "ok corner" "ok inside" "ok moved"
        python3 "$tests/cli/view.py" flat2 pages/flat.html pages/flat.csv >got 2>&1
        has "in the plane, too" got "ok corner" "ok inside"
        python3 "$tests/cli/view.py" drive3 pages/skin.html >got 2>&1
        has "a field as a surface" got "ok drawn" "ok turned"
        python3 "$tests/cli/view.py" drive-missed pages/miss.html >got 2>&1
        has "what was missed, and by which number" got "ok missed"
        python3 "$tests/cli/view.py" drive-report rep/rest.html >got 2>&1
        has "tables are sorted" got "ok rows" "ok sorted" "ok scatter" "ok measured" "ok labels"
    else
        echo "ok the page in a browser # SKIP chromium is not installed"
    fi
else
    echo "ok what pages hold # SKIP python3 is not installed"
fi
try "a gallery of examples" 0 bash "$tests/../examples/gallery.sh" "$CDL" gal "$tests/../examples/bouncing_ball.cdl" "$tests/../examples/belt.cdl"
has "plays each" gal/index.html 'src="bouncing_ball/bouncing_ball.html"' 'src="belt/belt.html"' '<h2 id="belt">'
same "with its page" yes "$([ -s gal/bouncing_ball/bouncing_ball.html ] && [ -s gal/belt/belt.html ] && echo yes)"
cat >turn.cdl <<'CDL'
model turn { dof A in SO3 = rot_x(0.2), p in R2 = [0, 0], A' = [1, 0.1, 0]; kinetic dot(A', A')/2 + dot(p', p')/2 }
run turn for 1 with sweeping(h = 1e-2)
animate("turn.html", p, [A[1, 1], A[2, 1]])
CDL
try "a rotation in a page" 0 "$CDL" run -q -o pages turn.cdl
has "has its entries" pages/turn.html '"name":"A[1][1]"' '"name":"p[1]'"'"'"'
same "and no rates of them" 0 "$(grep -c "A\[1\]\[1\]'" pages/turn.html)"
cat >nut.cdl <<'CDL'
model nut { dof A in SO3, A' = [1, 0.1, 3]; kinetic dot(A', A')/2; shape body: box([-2, -1, -1], [2, 1, 1]) at [0, 0, 0], A }
run nut for 1 with sweeping(h = 1e-2)
CDL
try "a rotation alone, with a shape" 0 "$CDL" run -q -o pages --report nut.html nut.cdl
has "shows the shape" pages/nut.html '"name":"A[1]","r":0,"w":0,"h":0,"line":0,"turns":false,"shaped":true' '"body":-1,"fixed":false'
cat >bent.cdl <<'CDL'
model bent {
    rod wire { length = 1, radius = 0.01, young = 1e6, poisson = 0.4, elements = 8 }
    at wire.s = 0 { position = [0, 0, 0], frame = eye(3) }
    force wire.x(1): [0.001*t, 0, 0]
}
run bent for 3 with auglag(h = 1)
save t, wire.track(1) { file = "bent.csv" }
CDL
try "a rod along its load" 0 "$CDL" run -q -o pages --report bent.html bent.cdl
has "has the time of its load" pages/bent.html '"begin":0,"end":3,' '"about":"auglag, to t = 3"'
cat >lying.cdl <<'CDL'
model lying {
    rod wire { length = 1, radius = 0.01, young = 1e6, poisson = 0.4, elements = 6 }
    at wire.s = 0 { position = [0, 0, 0.05], frame = rot_y(pi/2) }
    force wire.x(1): [0, 0, -1e-4*t]
    constraint floor: wire.gap(halfspace([0, 0, 2], 0)) >= 0
    constraint stone: wire.gap(ball([0.5, 0, -0.2], 0.18)) >= 0
    constraint log: wire.gap(cylinder([0.2, 0, -0.2], [0, 3, 0], 0.125)) >= 0
}
run lying for 1 with auglag(h = 0.5)
animate("lying.html")
CDL
try "bodies that a rod may touch" 0 "$CDL" run -q -o pages lying.cdl
has "are drawn: a ball" pages/lying.html '"fixed":true,"reach":0,"r":0.18,"faces":[],"kind":"ellipsoid","v":[0.5,0,-0.2]'
has "a cylinder, as far as rods go" pages/lying.html '"r":0.125,"faces":[],"kind":"cylinder","v":[0.2,-0.0625,-0.2,0.2,0.0625,-0.2]'
has "a half-space" pages/lying.html '"planes":[[0,0,1,0]]'
if command -v python3 >/dev/null; then
    same "and its places at each of the samples" "ok times ok ends" "$(python3 "$tests/cli/view.py" rod pages/bent.html pages/bent.csv | paste -sd' ')"
fi
