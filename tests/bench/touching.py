#!/usr/bin/python3
"""Rods that touch along lines: strands, capstans, knots, a plectoneme.  What is found, in how much CPU, with which figures.

  touching.py list                     names of the cases, and their limits in seconds of CPU
  touching.py draw NAME                prints the model of a case
  touching.py run CDL [PATTERN ...]    tries those whose name has one of the patterns in it, a line for each
"""
import math
import resource
import subprocess
import sys


STRANDS = """model strands {
    param L = 1, r = 0.01, turns = 2
    fn left(s) = [-r, 0, s]
    fn right(s) = [r, 0, s]
    rod a { length = L, radius = r, young = 1e6, poisson = 0.4, reference = curve(left), elements = %(n)d }
    rod b { length = L, radius = r, young = 1e6, poisson = 0.4, reference = curve(right), elements = %(n)d }
    let w = 2*pi*turns
    at a.s = 0 { position = [-r, 0, 0], frame = eye(3) }
    at b.s = 0 { position = [r, 0, 0], frame = eye(3) }
    at a.s = L { position = [-r*cos(w*t), -r*sin(w*t), L], frame = rot_z(w*t) }
    at b.s = L { position = [r*cos(w*t), r*sin(w*t), L], frame = rot_z(w*t) }
    constraint touch: a.gap(b) >= 0 { friction = coulomb(%(mu)g) }
}
run strands for 1 with auglag(h = 0.05)
measure line_force = touch.rn(1)
measure way = last(t)
measure overlap = max_penetration/r
"""

CAPSTAN = """model wraps {
    param R = 1, r = 0.01, mu = %(mu)g, turns = %(turns)g, p = 0.2, l = 0.3
    let Rc = R + r + %(gap)g, c = p/(2*pi), q = sqrt(Rc^2 + c^2), arc = 2*pi*turns*q
    fn at_(u) = [Rc*cos(u/q), c*u/q, Rc*sin(u/q)]
    fn dir(u) = [-Rc*sin(u/q)/q, c/q, Rc*cos(u/q)/q]
    fn line(s) = cases { at_(0) + (s - l)*dir(0) if s < l; at_(s - l) if s < l + arc; at_(arc) + (s - l - arc)*dir(arc) otherwise }
    rod rope { length = 2*l + arc, radius = r, stiffness = diag(1e3, 1e3, 1e3), bending = diag(2e-3, 2e-3, 2e-3), reference = curve(line), elements = %(n)d }
    at rope.s = 0 { position = line(0), axis = dir(0), roll = 0 }
    force rope.x(2*l + arc): 5*t*dir(arc)
    constraint drum: rope.gap(cylinder([0, 0, 0], [0, 1, 0], R)) >= 0 { friction = coulomb(mu) }
}
run wraps for 1 with auglag(h = 0.1)
## Friction acts a radius away from the rod's axis: its moment makes a shear force Q = -r mu N, with T' = mu N + kappa Q and N = kappa T + Q', so that tension grows by k per angle,
## with k (1 + mu r kappa k) = mu (1 - r kappa).
let bend = arc*Rc/q^2, kr = r*(R + r)/((R + r)^2 + c^2), k = (sqrt(1 + 4*mu^2*kr*(1 - kr)) - 1)/(2*mu*kr)
let ratio = 5/norm([rope.reaction(0)[1], rope.reaction(0)[2], rope.reaction(0)[3]])
measure of_law = ratio/exp(k*bend)
measure way = last(t)
"""

KNOT = """model knot {
    param h = 0.03, mu = %(mu)g, pull = %(pull)g, L = %(length).9g, D = %(tail)g, n = %(n)d
    rod wire { length = L, radius = h, young = 4/(pi*h^4), poisson = 0.4, reference = "%(file)s", curvature = [0, 0, 0], elements = n }
    at wire.s = 0 { position = [-D - pull/2*t, 0, 0], frame = rot_y(pi/2) }
    at wire.s = L { position = [D + pull/2*t, 0, 0], axis = [1, 0, 0] }
    constraint self: wire.self_gap >= 0 { friction = coulomb(mu) }
}
run knot for 1 with auglag(h = 0.1)
measure traction = wire.reaction(L)[1]*h^2
measure eps = sqrt(h*norm(wire.curvature(L/2)))
measure way = last(t)
measure overlap = max_penetration/h
"""

LOOSE = """run loose = loose_knot(%(with)s) for 1 with auglag(h = 0.1)
measure of_law = 1 + excess(loose)
measure way = last(loose.t)
measure overlap = loose.max_penetration/loose.h
"""

COIL = """model coil {
    param L = 1, r = 0.005
    rod wire { length = L, radius = r, young = 1e6, poisson = 0.4, elements = 200 }
    at wire.s = 0 { position = [0, 0, 0], frame = eye(3) }
    at wire.s = L { position = [0, 0, L*(1 - 0.9*t)], frame = rot_z(24*pi*t) }
    constraint self: wire.self_gap >= 0 { friction = coulomb(0.3) }
}
run coil for 1 with auglag(h = 0.01)
measure pairs = count(wire.pairs.rn)
measure way = last(t)
measure overlap = max_penetration/r
"""


def knot_points(twists, tail=2.0):
    """A drawn knot: a circle of radius 1, tails along x; over |x| < 0.9 two strands, wound about each other."""
    def strand(x, sign):
        c = 1 - math.sqrt(1 - x * x)
        u = (x + 0.9) / 1.8
        step = u * u * (3 - 2 * u)
        a = math.pi + step * (2 * twists + 1) * math.pi
        apart = c + 0.1 * (1 - (x / 0.9)**2)**2
        return (x, (c + sign * apart * math.cos(a)) / 2, sign * apart * math.sin(a) / 2)

    count = 120 * (twists + 1)
    xs = [-0.9 + 1.8 * k / count for k in range(count + 1)]
    top = math.asin(0.9)
    loop = [(math.sin(a), 1 - math.cos(a), 0) for a in
            (top + (2 * math.pi - 2 * top) * k / 120 for k in range(1, 120))]
    points = [(-tail + (tail - 0.9) * k / 40, 0, 0) for k in range(40)] + [strand(x, 1) for x in xs] + loop
    points += [strand(x, -1) for x in xs] + [(0.9 + (tail - 0.9) * k / 40, 0, 0) for k in range(1, 41)]
    return points, sum(math.dist(p, q) for p, q in zip(points, points[1:]))


def knot(twists, mu, pull, n):
    points, length = knot_points(twists)
    with open("knot%d.csv" % twists, "w", encoding="ascii") as f:
        f.write("x,y,z\n" + "".join("%.8f,%.8f,%.8f\n" % p for p in points))
    return KNOT % {"mu": mu, "pull": pull, "length": length, "tail": 2, "n": n, "file": "knot%d.csv" % twists}


def loose(with_):
    with open(sys.path[0] + "/../../examples/overhand_knot.cdl", encoding="utf-8") as f:
        text = f.read()
    return text.split("## `stiffness`")[0] + LOOSE % {"with": with_}


def cases():
    all_ = {}
    for n, most in ((20, 20), (40, 40), (80, 120)):
        for mu in (0, 0.1, 0.3, 0.6):
            all_["strands-%d-mu%g" % (n, mu)] = (most, lambda n=n, mu=mu: STRANDS % {"n": n, "mu": mu})
    for turns in (0.25, 0.5, 1, 1.5, 2, 3):
        for mu in (0.1, 0.25, 0.6):
            n = max(40, round(80 * turns))
            all_["capstan-%g-mu%g" % (turns, mu)] = (
                60, lambda n=n, mu=mu, turns=turns: CAPSTAN % {"n": n, "mu": mu, "turns": turns, "gap": 5e-5})
    for mu in (0, 0.05, 0.1, 0.3):
        all_["loose-1-mu%g" % mu] = (60, lambda mu=mu: loose("mu = %g" % mu))
        all_["wide-1-mu%g" % mu] = (60, lambda mu=mu: loose("h = 0.0006, pull = 0.004, mu = %g" % mu))
    for twists in (1, 2, 3, 4):
        for mu in (0, 0.1, 0.3):
            n = 100 + 40 * twists
            all_["knot-%d-mu%g" % (twists, mu)] = (
                90, lambda n=n, mu=mu, k=twists: knot(k, mu, 0.4 if k == 1 else 0.2, n))
    for pull in (0.481, 0.598):
        all_["pulled-%g" % pull] = (120, lambda pull=pull: knot(1, 0.1, pull, 140))
    all_["plectoneme-200"] = (150, lambda: COIL)
    return all_


def trial(cdl, name, most, text):
    start = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    with open("touching-%s.cdl" % name, "w", encoding="utf-8") as f:
        f.write(text)
    run = subprocess.run([cdl, "run", "--allow-outside", "touching-%s.cdl" % name], text=True, capture_output=True,
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (most, most)), check=False)
    took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - start
    lines = (run.stdout + run.stderr).splitlines()
    said = [x.strip() for x in lines if " = " in x[:20] or "error" in x]
    print(name, "ok" if run.returncode == 0 else "NOT", "%.1f s;" % took, " ".join(said)[:200], flush=True)


def main():
    if sys.argv[1] == "list":
        for name, (most, _) in cases().items():
            print(name, most)
    elif sys.argv[1] == "draw":
        print(cases()[sys.argv[2]][1]())
    else:
        for name, (most, text) in cases().items():
            if len(sys.argv) == 3 or any(p in name for p in sys.argv[3:]):
                trial(sys.argv[2], name, most, text())


main()
