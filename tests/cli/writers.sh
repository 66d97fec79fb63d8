#!/bin/bash
# save with each file ending: JSON lines, NumPy arrays, tables of impacts, fields and rods; pictures of fields and graphs.
. "${tests:?}/cli/common"
cp ball.cdl w.cdl
cat >>w.cdl <<'CDL'
model pile {
    dof p[i in 1..3] in R2 = [0.25*i, i]
    for i in 1..3 { p[i]'' = [0, -8] }
    constraint floor[i in 1..3]: p[i][2] >= 0 { impact = newton(0.5) }
}
run ball for 1 with sweeping(h = 1e-2)
save t, y, y' { file = "y.npz" }
save y { file = "y.npy" }
save t, y { file = "y.jsonl", every = 0.5 }
save floor.impacts { file = "ball-impacts.csv" }
run pile for 1 with sweeping(h = 1/128)
save t, p { file = "p.npz" }
save t, p { file = "p.jsonl", every = 0.25 }
save p { file = "p.npy" }
save floor.impacts { file = "impacts.csv" }
experiment x {
    sweep e in [0.25, 0.5]
    run ball(e = e) for 1 with sweeping(h = 1e-2)
    save t, y { file = "x.npz", every = 0.5 }
    save t, y { file = "x.jsonl", every = 0.5 }
}
CDL
try "files by their endings" 0 "$CDL" run -o d w.cdl
same "JSON lines" '{"t":0,"y":1}' "$(head -n 1 d/y.jsonl)"
same "arrays are nested" '{"t":0,"p":[[0.25,1],[0.5,2],[0.75,3]]}' "$(head -n 1 d/p.jsonl)"
same "swept names stand first" '{"e":0.25,"t":0,"y":1}' "$(head -n 1 d/x.jsonl)"
same "impacts are a table" "t,pre,post,impulse" "$(head -n 1 d/ball-impacts.csv)"
same "of a family with the index" "i,t,pre,post,impulse" "$(head -n 1 d/impacts.csv)"
same "and its values" "1,0.5,-4,2,6" "$(sed -n 2p d/impacts.csv)"
cat >f.cdl <<'CDL'
model membrane {
    domain x in -1..1, y in -1..1
    field u(x, y)
    -laplacian(u) = -1
    obstacle u >= 0.3 - x^2 - y^2
    boundary u = 0
}
model string { domain x in 0..1; field u(x); -u'' = -8; obstacle u >= -0.3; at x = 0 { u = 0 }; at x = 1 { u = 0 } }
model bar {
    rod wire { length = 1, radius = 0.01, young = 1e6, poisson = 0.4, elements = 4 }
    at wire.s = 0 { position = [0, 0, 0], frame = eye(3) }
    force wire.x(1): [0, 0, t]
}
model slab {
    param eps = 1e-3
    fn mu(v) = 0.5 + 0.5*exp(-v)
    dof v = 0
    eps*v' in 1.2*sin(t) - (0.2*v + mu(abs(v))*Sgn(v))
}
run membrane with active_set(cells = 8)
save u { file = "u.npz" }
save u { file = "u.npy" }
save u { file = "u.csv" }
plot u { file = "map.svg" }
plot u { file = "surface.svg", style = "surface" }
run string with active_set(cells = 20)
save u { file = "s.npz" }
plot u against x { file = "s.pdf" }
plot u against x { file = "s.png" }
run bar for 1 with auglag(h = 0.5)
save wire { file = "wire.npz" }
save wire { file = "wire.csv" }
save wire { file = "wire.vtp" }
run slab for 4 with limit(eps)
save jumps { file = "jumps.jsonl" }
plot graph { file = "graph.svg" }
experiment many {
    sweep c in [4, 8]
    run membrane with active_set(cells = c)
    save u { file = "v.vtk" }
}
CDL
try "fields, rods and jumps" 0 "$CDL" run -o d f.cdl
same "a field brings its grid" "x,y,u,reaction,contact" "$(head -n 1 d/u.csv)"
same "a rod as columns" "s,x1,x2,x3,n1,n2,n3,m1,m2,m3,u1,u2,u3,contact,frame1,frame2,frame3,frame4,frame5,frame6,frame7,frame8,frame9" "$(head -n 1 d/wire.csv)"
has "jumps" d/jumps.jsonl '"fold":1}'
same "the graph and the way on it" "v,graph,orbit" "$(head -n 1 d/graph.svg.csv)"
same "the obstacle is drawn" "x,u,obstacle" "$(head -n 1 d/s.pdf.csv)"
has "and the contact set shaded" d/s.pdf.gp "set object rectangle from 0.27"
same "a file for each point" "d/v.1.vtk d/v.2.vtk" "$(echo d/v.*.vtk)"
has "all are in the manifest" d/manifest.json '"path": "v.1.vtk"' '"path": "v.2.vtk"' '"path": "u.npz"'
if command -v gnuplot >/dev/null; then
    has "a map" d/map.svg "</svg>"
    has "a surface" d/surface.svg "</svg>"
    same "a PDF is one" "%PDF-" "$(head -c 5 d/s.pdf)"
    same "a PNG is one" "89504e470d0a1a0a" "$(head -c 8 d/s.png | od -An -tx1 | tr -d ' \n')"
fi
cat >read.py <<'PY'
import ast, math, struct, zipfile
def array(b):
    assert b[:8] == b'\x93NUMPY\x01\x00'
    n = struct.unpack('<H', b[8:10])[0]
    assert (10 + n) % 64 == 0 and b[9 + n:10 + n] == b'\n'
    d = ast.literal_eval(b[10:10 + n].decode())
    assert d['descr'] == '<f8' and d['fortran_order'] is False
    k = math.prod(d['shape'])
    assert len(b) == 10 + n + 8 * k
    return d['shape'], struct.unpack('<%dd' % k, b[10 + n:])
def npz(f):
    with zipfile.ZipFile(f) as z:
        assert z.testzip() is None and all(i.compress_type == 0 for i in z.infolist())
        return {n: array(z.read(n)) for n in z.namelist()}
y = npz('d/y.npz')
assert list(y) == ['t.npy', 'y.npy', "y'.npy"] and all(a[0] == (101,) for a in y.values())
assert y['y.npy'][1][:2] == (1.0, 0.9995095) and y['t.npy'][1][100] == 1
assert array(open('d/y.npy', 'rb').read()) == y['y.npy']
p = npz('d/p.npz')
assert p['p.npy'][0] == (129, 3, 2) and p['p.npy'][1][:6] == (0.25, 1, 0.5, 2, 0.75, 3)
assert array(open('d/p.npy', 'rb').read()) == p['p.npy']
x = npz('d/x.npz')
assert x['e.npy'][1] == (0.25,) * 3 + (0.5,) * 3 and x['t.npy'][1] == (0, 0.5, 1) * 2
u = npz('d/u.npz')
assert list(u) == ['x.npy', 'y.npy', 'u.npy', 'reaction.npy', 'contact.npy'] and all(a[0] == (9, 9) for a in u.values())
assert u['x.npy'][1][:9] == tuple(-1 + k / 4 for k in range(9)) and u['u.npy'][1][40] == 0.3 and u['contact.npy'][1][40] == 1
assert array(open('d/u.npy', 'rb').read()) == u['u.npy']
s = npz('d/s.npz')
assert list(s) == ['x.npy', 'u.npy', 'reaction.npy'] and s['u.npy'][0] == (21,)
w = npz('d/wire.npz')
assert w['x.npy'][0][1:] == (3,) and w['frame.npy'][0][1:] == (3, 3) and w['frame.npy'][1][:9] == (1, 0, 0, 0, 1, 0, 0, 0, 1)
print('read')
PY
if command -v python3 >/dev/null; then same "arrays as NumPy reads them" read "$(python3 read.py 2>&1 | tail -n 1)"; fi
same "nothing half made is left" "" "$(find . -name '*.part' -o -name 'cdl-*')"

cp ball.cdl bad.cdl
cat >>bad.cdl <<'CDL'
run ball for 1
save t, y { file = "y.xlsx" }
CDL
try "an ending that nothing writes" 3 "$CDL" check bad.cdl
has "is reported with its place" err 'bad.cdl:10:20: error: save writes no .xlsx files' 'it writes .csv, .jsonl, .npy, .npz, .vtk, .pvd, .vtp and .svg'
cp ball.cdl two.cdl
cat >>two.cdl <<'CDL'
run ball for 1
save t, y { file = "y.npy" }
save y { file = "y.vtk" }
CDL
try "two arrays for one file" 3 "$CDL" run two.cdl
has "are reported" err 'a .npy file contains one array, not 2' 'file = "y.npz"' 'a .vtk file contains one field in the plane'
if [ -e /dev/full ]; then
    ln -s /dev/full full.npz
    cp ball.cdl full.cdl; printf 'run ball for 1\nsave t, y { file = "full.npz" }\n' >>full.cdl
    try "a full disk" 5 "$CDL" run --allow-outside full.cdl
    has "is reported" err "No space left on device"
fi

# -- points computed together give the bytes of separate runs, however long they are
membrane='model m { param f = 1; domain x in 0..1, y in 0..1; field u(x, y); -laplacian(u) = -f; obstacle u >= -0.1; boundary u = 0 }'
printf '%s\nrun m with active_set(cells = 40)\nsave u { file = "v.1.vtk" }\n' "$membrane" >alone.cdl
printf '%s\nexperiment e { sweep f in [1, 2]; run m(f = f) with active_set(cells = 40); save u { file = "v.vtk" } }\n' "$membrane" >points.cdl
"$CDL" run -q -o alone alone.cdl 2>/dev/null
"$CDL" run -q -o points points.cdl 2>/dev/null
try "a long file of a point" 0 cmp alone/v.1.vtk points/v.1.vtk
