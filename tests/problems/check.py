"""check.py TOLERANCE FILE...: problems that `cdl run --problems x.txt` wrote, read again, and their solutions checked against
the law of contact by formulas of this file alone.  Where x.hdf5 is beside x.txt and h5dump is there, some are
compared, number by number.
One line: number of problems, of contacts that are open, stick, slip, held; what is wrong follows it."""
import math
import os
import re
import shutil
import subprocess
import sys


def read(path):
    lines = open(path).read().split("\n")
    head = lines[0].split()
    n, m, tolerance = int(head[1]), int(head[3]), (float(head[5]), float(head[7]))
    cones, row = [], 0
    for line in lines[1:1 + n]:
        _, kind, tangents, mu, radius = line.split()
        cones.append((kind, row, int(tangents), float(mu), float(radius)))
        row += int(tangents) + (kind != "given")
    assert row == m, "rows"
    vectors, W = {}, [{} for _ in range(m)]
    for line in lines[1 + n:]:
        x = line.split()
        if not x:
            continue
        if x[0] == "W":
            assert len(x) == 3 + 2 * int(x[2])
            W[int(x[1])] = {int(c): float(v) for c, v in zip(x[3::2], x[4::2])}
        else:
            vectors[x[0]] = [float(v) for v in x[1:]]
            assert len(vectors[x[0]]) == m
    return tolerance, cones, vectors, W


def defect(head, cones, vectors, W, count):
    """The worst violation, as a reaction over the largest in play; a velocity counts as the reaction that would stop it."""
    tolerance, least = head
    b, r = vectors["b"], vectors["solution"]
    u = [b[i] + sum(v * r[c] for c, v in W[i].items()) for i in range(len(b))]
    R, worst = max(max(map(abs, r)), least) or 1, 0
    for kind, row, d, mu, radius in cones:
        normal = kind != "given"
        own = [W[i].get(i, 0) for i in range(row, row + normal + d)]
        rn, un = (r[row], u[row] / own[0]) if normal else (0, 0)
        rt, ut = r[row + normal:row + normal + d], u[row + normal:row + normal + d]
        if kind == "bilateral":
            worst = max(worst, abs(un) / R)
        elif normal:
            worst = max(worst, -rn / R, -un / R, min(rn, un) / R)
        bound, force, speed = mu * abs(rn) + radius, math.hypot(*rt), math.hypot(*ut)
        stop = speed / max(own[normal:]) if d else 0
        if d:
            # it sticks, or friction is at its bound and against the slip
            against = math.hypot(*(f * speed + bound * v for f, v in zip(rt, ut))) / speed if speed else 0
            worst = max(worst, (force - bound) / R, min(stop, against) / R)
        count["held" if kind == "bilateral" else "open" if normal and rn <= tolerance * R
              else "slip" if stop > 1e-7 * R else "stick"] += 1
    return worst


def dump(path):
    """All numbers of an HDF5 file by their path."""
    text = subprocess.run(["h5dump", "-m", "%.17g", "-w", "0", "-y", path], stdout=subprocess.PIPE, check=True,
                          universal_newlines=True).stdout
    sets, where = {}, []
    for line in text.split("\n"):
        if re.match(r" *(GROUP|DATASET) ", line):
            where.append(line.split('"')[1])
        elif re.match(r" *(DATATYPE .*|ATTRIBUTE .*|DATA|HDF5 .*) ?\{$", line.rstrip()):
            where.append(None)
        elif line.strip() == "}":
            if where:
                where.pop()
        elif where and where[-1] is None and not line.strip().startswith(("STR", "CSET", "CTYPE")):
            name = "/".join(w for w in where if w and w != "/")
            sets.setdefault(name, []).extend(line.replace(",", " ").split() if '"' not in line else [line.strip()])
    return sets


def same_in_fclib(path, cones, vectors, W):
    """The problem of FCLIB's file, put together again, against the other one."""
    sets = dump(path)
    get = lambda name, kind=float: [kind(x) for x in sets.get(name, [])]
    dim = get("fclib_local/spacedim", int)[0]
    contacts = [c for c in cones if c[0] != "bilateral"]
    held = [c for c in cones if c[0] == "bilateral"]
    place, fill = {}, []
    for k, (_, row, d, mu, _) in enumerate(contacts):
        for j in range(dim):
            if j <= d:
                place[row + j] = ("c", dim * k + j)
            else:
                fill.append(dim * k + j)
    for k, (_, row, d, _, _) in enumerate(held):
        place[row] = ("h", k)
    wrong = []

    def vector(name, of, expected):
        got = get(name)
        for i, (kind, k) in place.items():
            if kind == of and got[k] != expected[i]:
                wrong.append("%s[%d] is %r, not %r" % (name, k, got[k], expected[i]))
    vector("fclib_local/vectors/q", "c", vectors["b"])
    vector("guesses/1/r", "c", vectors["r"])
    vector("solution/r", "c", vectors["solution"])
    if held:
        vector("fclib_local/vectors/s", "h", vectors["b"])
        vector("solution/l", "h", vectors["solution"])
    if get("fclib_local/vectors/mu") != [c[3] if c[2] else 0 for c in contacts]:
        wrong.append("mu")
    blocks = {"W": {}, "V": {}, "R": {}}
    for name in blocks:
        at = "fclib_local/%s/" % name
        p, i, x = get(at + "p", int), get(at + "i", int), get(at + "x")
        for c in range(len(p) - 1):
            for k in range(p[c], p[c + 1]):
                blocks[name][i[k], c] = x[k]
    for row in range(len(W)):
        for col, v in W[row].items():
            if row not in place or col not in place:
                continue
            (a, i), (b, j) = place[row], place[col]
            name = {"cc": "W", "ch": "V", "hh": "R"}.get(a + b)
            if name and blocks[name].pop((i, j), None) != v:
                wrong.append("%s[%d, %d]" % (name, i, j))
    left = [k for name in blocks for k in blocks[name] if not (name == "W" and k[0] == k[1] and k[0] in fill)]
    return wrong + (["entries that are none of the problem"] if left else [])


def main():
    most, wrong = float(sys.argv[1]), []
    count, problems, compared = {"open": 0, "stick": 0, "slip": 0, "held": 0}, 0, 0
    for k, path in enumerate(sys.argv[2:]):
        tolerance, cones, vectors, W = read(path)
        e = defect(tolerance, cones, vectors, W, count)
        problems += 1
        if not e <= most:
            wrong.append("%s: the law is off by %.2g" % (path, e))
        other = path[:-4] + ".hdf5"
        if k % (len(sys.argv) // 8 + 1) == 0 and os.path.exists(other) and shutil.which("h5dump"):
            compared += 1
            wrong += ["%s: %s" % (other, w) for w in same_in_fclib(other, cones, vectors, W)[:3]]
    print(problems, *("%s %d" % x for x in count.items()), "compared %d" % compared)
    print("\n".join(wrong[:10]))


main()
