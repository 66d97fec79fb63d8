#!/bin/bash
# save p { file = "x.pvd" }: a series of .vtp files, whose numbers are those of the samples.
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
CDL
try "written" 0 "$CDL" run -q pile.cdl
has "it says where" err "wrote frames/pile.pvd" "wrote spin.pvd"
command -v xmllint >/dev/null && try "well-formed" 0 xmllint --noout --nonet frames/pile.pvd frames/pile/*.vtp spin/*.vtp
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
        assert name in ("connectivity", "offsets") or len(a) == int(piece.get("NumberOfPoints")), name
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
check(all(f[0]["radius"] == [[0.2], [0.1], [0.1]] and list(f) == [0] for f in spin.values()), "no contacts, no file of them")
check(len(series("y.pvd")) == 3, "a number that moves up and down")
sys.exit(bad)
PY
printf '%s\nsave floor[1].rn, "a" { file = "a.pvd" }\n' "$(sed '/^save/,$d' pile.cdl)" >no.cdl
try "what has no place" 3 "$CDL" run -q no.cdl
has "is refused" err "a .pvd file holds bodies, points or lines that move"
cat >many.cdl <<'CDL'
model m { dof p in R2 = [0, 0]; p'' = [0, 1] }
run m for 30 with sweeping(h = 1e-3)
save p { file = "m.pvd" }
CDL
try "too many files" 3 "$CDL" run -q many.cdl
has "with a hint" err "this series would have 30001 files" "every ="
