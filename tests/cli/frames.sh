#!/bin/bash
# save p { file = "x.pvd" }: a series of .vtp files whose numbers are those of the samples.
. "${tests:?}/cli/common"
cat >pile.cdl <<'CDL'
use std.spatial
model pile { param n = 3, R = 0.1
  dof p[i in 1..n] in R2 = [0.02*i, 0.15 + 0.25*i], p' = [0.1, 0]
  for i in 1..n { p[i]'' = [0, -9.81] }
  constraint floor[i in 1..n]: p[i][2] >= R { impact = newton(0.3), slip = p[i]'[1], friction = coulomb(0.3) }
  constraint pair[i in 1..n, j in i+1..n]: norm(p[i] - p[j]) >= 2*R { impact = newton(0.1) } }
model spin { part b: ball_body(R = 0.2); part c[i in 1..2]: ball_body(R = 0.1)
  dof y = 1, y' = 0; y'' = -1 }
run pile for 1 with sweeping(h = 1e-3)
save p { file = "frames/pile.pvd", every = 0.1 }
save t, p, p' { file = "pile.csv" }
save t, floor[1].gap, floor[2].gap, floor[3].gap, floor[1].rn, floor[2].rn, floor[3].rn, floor[1].rt, floor[2].rt, floor[3].rt, pair[1, 2].rn, pair[1, 3].rn, pair[2, 3].rn { file = "forces.csv" }
run spin for 0.01 with sweeping(h = 1e-3)
save b, c { file = "spin.pvd" }
save t, b.p, b.p', b.A { file = "spin.csv" }
save y { file = "y.pvd", every = 0.005 }
model crate { dof p in R3 = [0, 0, 0], A in SO3 = eye(3)
  kinetic 2*norm(p')^2/2 + dot(A', diag(0.02, 0.03, 0.04)*A')/2
  potential 2*9.81*p[3]
  force p: [0.5, 0, 0]
  shape hull: box([-0.15, -0.1, -0.1], [0.15, 0.1, 0.1]) at p, A }
model boxes { part c[i in 1..2]: crate { p = [0.02*i, 0, 0.2*i - 0.1], A = rot_z(0.3*i - 0.3) }
  constraint ground: c[1].hull.gap(halfspace([0, 0, 1], 0)) >= 0 { friction = coulomb(0.5) }
  constraint on: c[1].hull.gap(c[2].hull) >= 0 { friction = coulomb(0.5) } }
run boxes for 0.04 with sweeping(h = 1e-3)
save c { file = "boxes.pvd", every = 0.008 }
on.points.place
on.points.normal
on.points.rn
ground.points.place
ground.points.normal
ground.points.rn
model round { dof p in R3 = [1, 2, 3], A in SO3 = rot_x(0.4); p'' = [0, 0, -1]; A'' = [0, 0, 0]
  shape a: ball([0, 0, 1], 0.5) at p, A
  shape b: capsule([0, 0, 1], [2, 0, 1], 0.5) at p, A
  shape c: cylinder([0, 0, 1], [0, 1, 0], 0.5) at p, A
  shape d: ellipsoid([0, 0, 0], [4, 1, 0; 1, 2, 0; 0, 0, 1]) at p, A
  constraint floor: a.gap(halfspace([0, 0, 1], 0)) >= 0 }
run round for 0
save p { file = "round.pvd" }
model tile { dof p in R2 = [0, 0.1], a = 0; kinetic norm(p')^2/2 + 0.01*a'^2/2; potential 9.81*p[2]
  shape s: hull([[-0.2, -0.1], [0.2, -0.1], [0.1, 0.1], [-0.1, 0.1]]) at p, a
  constraint floor: s.gap(halfspace([0, 1], 0)) >= 0 { friction = coulomb(0.3) } }
run tile for 0.01 with sweeping(h = 1e-3)
save p { file = "tile.pvd" }
CDL
try "written" 0 "$CDL" run -q pile.cdl
cp out shown
has "it says where" err "wrote frames/pile.pvd" "wrote spin.pvd"
command -v xmllint >/dev/null && try "well-formed" 0 xmllint --noout --nonet frames/pile.pvd frames/pile/*.vtp spin/*.vtp boxes/*.vtp
/usr/bin/python3 - <<'PY' || failed=1
import csv, math, sys
import xml.etree.ElementTree as tree
def series(path):
    folder = path.rpartition("/")[0]
    sets = {}
    for x in tree.parse(path).iter("DataSet"):
        sets.setdefault(float(x.get("timestep")), {})[int(x.get("part"))] = frame((folder + "/" if folder else "") + x.get("file"))
    return sets
def frame(path):
    piece = tree.parse(path).getroot()[0][0]
    arrays = {}
    for a in piece.iter("DataArray"):
        n = int(a.get("NumberOfComponents", 1))
        x = [float(k) for k in (a.text or "").split()]
        arrays.setdefault(a.get("Name"), [x[k:k + n] for k in range(0, len(x), n)])
    for name, a in arrays.items():
        assert name in ("connectivity", "offsets") or len(a) in (int(piece.get("NumberOfPoints")), int(piece.get("NumberOfPolys"))), name
    return arrays
def table(path):
    rows = list(csv.reader(open(path)))
    return {float(r[0]): dict(zip(rows[0], map(float, r))) for r in rows[1:]}
bad = False
def check(good, name):
    global bad
    bad |= not good
    print("ok" if good else "not ok", name)
pile, run, forces = series("frames/pile.pvd"), table("pile.csv"), table("forces.csv")
check(len(pile) == 11 and min(pile) == 0 and max(pile) == 1, "every 0.1, the last one too")
check(all(f[0]["place"] == [[run[t]["p[%d][%d]" % (i, k)] for k in (1, 2)] + [0] for i in (1, 2, 3)] for t, f in pile.items()), "places")
check(all(f[0]["velocity"] == [[run[t]["p'[%d][%d]" % (i, k)] for k in (1, 2)] + [0] for i in (1, 2, 3)] for t, f in pile.items()), "velocities")
check(all(f[0]["radius"] == [[0.1]] * 3 for f in pile.values()), "radii")
contacts = 0
for t, f in pile.items():
    c = f[1]
    for k in range(len(c["place"])):
        one, row = int(c["body"][k][0]), forces[t]
        x = pile[t][0]["place"][one - 1]
        if c["constraint"][k] == [1]:
            good = c["force"][k] == [0, row["floor[%d].rn" % one], 0] and c["friction"][k] == [row["floor[%d].rt" % one], 0, 0] \
                and c["place"][k] == [x[0], x[1] - 0.1, 0] and c["gap"][k] == [row["floor[%d].gap" % one]] and c["other"][k] == [0]
        else:
            y = pile[t][0]["place"][int(c["other"][k][0]) - 1]
            mid = [(a + b)/2 for a, b in zip(x, y)]
            good = math.dist(mid, c["place"][k]) < 1e-12 + abs(c["gap"][k][0]) and abs(math.hypot(*c["force"][k]) - math.hypot(*c["normal"][k])*row["pair[%d, %d].rn" % (one, c["other"][k][0])]) < 1e-9
        contacts += 1
        if not good:
            check(False, "contact %d at %g" % (k, t))
check(contacts >= 10, "%d contacts with their places, normals, forces and friction" % contacts)
spin, run = series("spin.pvd"), table("spin.csv")
check(all(f[0]["rotation"][0] == [run[t]["b.A[%d][%d]" % (i, j)] for i in (1, 2, 3) for j in (1, 2, 3)] for t, f in spin.items()), "attitudes")
check(all(f[0]["radius"] == [[0.2], [0.1], [0.1]] and list(f) == [0, 2] for f in spin.values()), "no contacts, no file of them")
# two boxes at rest, one on the other: forces and moments on the lower one balance only if each force acts at its own point
def cross(a, b): return [a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]]
def near(a, b, tol): return len(a) == len(b) and all(abs(x - y) <= tol for x, y in zip(a, b))
def flat(a): return [x for row in a for x in row]
def in_space(f, k, y):
    p, R = f["place"][k], f["rotation"][k]
    return [p[i] + sum(R[3*i + j]*y[j] for j in range(3)) for i in range(3)]
def polygons(f):
    to, all, first = [int(x[0]) for x in f["connectivity"]], [], 0
    for end in f["offsets"]:
        all.append(to[first:int(end[0])])
        first = int(end[0])
    return all
def closed(faces): # each edge is there once in each direction
    edges = [(a, b) for f in faces for a, b in zip(f, f[1:] + f[:1])]
    return len(set(edges)) == len(edges) and all((b, a) in set(edges) for a, b in edges)
boxes = series("boxes.pvd")
check(len(boxes) == 6 and all(sorted(f) == [0, 1, 2] for f in boxes.values()), "bodies, contacts and shapes")
for t, f in boxes.items():
    if t == 0:
        continue
    c, p, total, moment = f[1], f[0]["place"][0], [0.5, 0, -2*9.81], [0, 0, 0]
    for k in range(len(c["place"])):
        force = [a + b for a, b in zip(c["force"][k], c["friction"][k])]
        total = [a + b for a, b in zip(total, force)]
        moment = [a + b for a, b in zip(moment, cross([a - b for a, b in zip(c["place"][k], p)], force))]
        if c["constraint"][k] != [2] or c["body"][k] != [1] or c["other"][k] != [2]:
            continue
        if not near(c["normal"][k], [0, 0, -1], 1e-6) or abs(c["place"][k][2] - 0.2) > 1e-6:
            check(False, "contact %d at %g" % (k, t))
    if not near(total + moment, [0]*6, 1e-5) or len(c["place"]) < 6:
        check(False, "balance at %g: %s %s" % (t, total, moment))
    corners = [in_space(f[0], k, [x, y, z]) for k in (0, 1) for z in (-0.1, 0.1) for y in (-0.1, 0.1) for x in (-0.15, 0.15)]
    if not near(flat(f[2]["place"]), flat(corners), 1e-15):
        check(False, "corners at %g" % t)
faces = polygons(f[2])
check(len(faces) == 12 and {len(x) for x in faces} == {4} and closed(faces) and f[2]["body"] == [[1]]*6 + [[2]]*6, "boxes are closed, each with its body")
last, shown = boxes[max(boxes)][1], [x.replace(";", ",") for x in open("shown") if x[0] == "["]
for k, name, number in (0, "on", 2), (3, "ground", 1):
    for what, numbers in zip(("place", "normal", "force"), shown[k:k + 3]):
        mine = [x for x, c in zip(last[what], last["constraint"]) if c == [number]]
        mine = [math.hypot(*x) for x in mine] if what == "force" else flat(mine)
        check(near(mine, eval(numbers), 1e-14 if what == "force" else 1e-15), "%s of the points of '%s'" % (what, name))
f = series("round.pvd")[0]
faces, shape = polygons(f[2]), [int(x[0]) for x in f[2]["shape"]]
for k, name, far in ((1, "ball", lambda y: math.dist(y, [0, 0, 1]) - 0.5), (2, "capsule", lambda y: math.dist(y, [min(max(y[0], 0), 2), 0, 1]) - 0.5),
                     (3, "cylinder", lambda y: math.dist([y[0], y[2]], [0, 1]) - 0.5), (4, "ellipsoid", lambda y: 4*y[0]**2 + 2*y[0]*y[1] + 2*y[1]**2 + y[2]**2 - 1)):
    own = [x for x, s in zip(faces, shape) if s == k]
    R, p = [1, 0, 0, 0, math.cos(0.4), -math.sin(0.4), 0, math.sin(0.4), math.cos(0.4)], f[0]["place"][0]
    x = [f[2]["place"][i] for i in set(flat(own))]
    y = [[sum(R[3*i + j]*(z[i] - p[i]) for i in range(3)) for j in range(3)] for z in x]
    check(closed(own) and len(y) > 40 and all(abs(far(z)) < 1e-13 for z in y), "a %s, closed, its corners on its surface" % name)
tile = series("tile.pvd")
f = tile[max(tile)]
check(polygons(f[2]) == [[0, 1, 2, 3]] and near(sorted(flat(f[1]["place"])), [-0.2, 0, 0, 0, 0, 0.2], 1e-9) and near([sum(x) for x in zip(*f[1]["force"])], [0, 9.81, 0], 1e-7), "a hull in the plane")
check(len(series("y.pvd")) == 3, "a number that moves up and down")
sys.exit(bad)
PY
printf '%s\nsave floor[1].rn, "a" { file = "a.pvd" }\n' "$(sed '/^save/,$d' pile.cdl)" >no.cdl
try "what has no place" 3 "$CDL" run -q no.cdl
has "is refused" err "a .pvd file contains bodies, points or lines that move"
cat >many.cdl <<'CDL'
model m { dof p in R2 = [0, 0]; p'' = [0, 1] }
run m for 30 with sweeping(h = 1e-3)
save p { file = "m.pvd" }
CDL
try "too many files" 3 "$CDL" run -q many.cdl
has "with a hint" err "this series would have 30001 files" "every ="
