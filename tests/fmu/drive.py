"""Units of `cdl emit fmu`, driven by importer.c, against runs: drive.py CDL IMPORTER
Communication steps are drawn at random, off the grid of the model's own steps; on it all bits are those of the run."""
import os, random, shutil, subprocess, sys, zipfile
import xml.etree.ElementTree as tree

import numpy as np

import cdl
import rules

CDL, IMPORTER = sys.argv[1:]
random.seed(7)
failed = False


def report(good, name, more=""):
    global failed
    failed |= not good
    print(("ok " if good else "not ok ") + name, *([] if good else [more]), sep=" ", flush=True)


class Unit:
    """An emitted unit: its variables by name, and what a schedule of lines prints."""

    def __init__(self, file, model, *options):
        path = model + ".fmu"
        subprocess.run([CDL, "emit", "fmu", file, model, "-o", path, *options], check=True)
        self.broken = rules.check(path)
        with zipfile.ZipFile(path) as z:
            z.extractall(model + ".unit")
        self.root = tree.parse(model + ".unit/modelDescription.xml").getroot()
        self.so = "./%s.unit/binaries/linux64/%s.so" % (model, self.root.find("CoSimulation").get("modelIdentifier"))
        self.reals, self.integers, self.start = {}, {}, {}
        for x in self.root.iter("ScalarVariable"):
            (self.reals if x[0].tag == "Real" else self.integers)[x.get("name")] = int(x.get("valueReference"))
            if "start" in x[0].attrib:
                self.start[x.get("name")] = float(x[0].get("start"))
        self.h = float(self.root.find("DefaultExperiment").get("stepSize"))

    def drive(self, lines):
        p = subprocess.run([IMPORTER, self.so, self.root.get("guid")], input="\n".join(lines) + "\n", text=True,
                           capture_output=True)
        return p.returncode, p.stdout, p.stderr

    def rows(self, lines):
        code, out, err = self.drive(lines)
        if code:
            raise RuntimeError(err)
        return np.array([[float(x) for x in row.split(",")] for row in out.split("\n") if row])


def outputs(unit):
    """The outputs that a run has as well: unit's name, run's name."""
    for x in unit.root.iter("ScalarVariable"):
        name = x.get("name")
        of_run = name == "max_penetration" or name.startswith("run.")
        if x.get("causality") != "output" or x[0].tag != "Real" or of_run:
            continue
        yield name, name[4:-1] + "'" if name.startswith("der(") else name


def column(run, name):
    if "[" not in name:
        return run[name]
    head, _, rest = name.partition("[")
    index, _, more = rest.partition("]")
    x = run[head + more]
    return x[(slice(None),) + tuple(int(k) - 1 for k in index.split(","))]


def schedule(unit, grid, show):
    """Prints at every point of the grid; between them up to three communication points, anywhere."""
    lines = [show]
    for m in grid:
        cuts = sorted(random.random() for _ in range(random.randrange(4)))
        at = [c * m * unit.h for c in cuts] + [m * unit.h]
        lines += ["step %.17g" % (b - a) for a, b in zip([0] + at, at)] + [show]
    return lines


def same(name, file, model, duration, start=(), *options):
    unit = Unit(file, model, *options)
    report(not unit.broken, name + ": rules of FMI", unit.broken)
    pairs = list(outputs(unit))
    show = "print " + " ".join(str(unit.reals[u]) for u, _ in pairs) + " / " + \
           " ".join(str(k) for k in sorted(unit.integers.values()))
    steps = int(round(duration / unit.h)) - 1  # the last step of a run ends at its duration, to the bit
    grid = []
    while sum(grid) < steps:
        grid.append(min(random.choice([1, 1, 2, 5, 17]), steps - sum(grid)))
    grid = grid[:200]
    lines = ["set %d %.17g" % (unit.reals[n], x) for n, x in start] + ["begin"] + schedule(unit, grid, show)
    got = unit.rows(lines)
    if file not in loaded:
        loaded[file] = cdl.load(file)
    run = getattr(loaded[file], model)(**{n: x for n, x in given.get(model, {}).items()}).run(
        duration, backend="sweeping", h=unit.h)
    at = np.concatenate([[0], np.cumsum(grid)])
    for k, (u, r) in enumerate(pairs):
        want = np.asarray(column(run, r))[at]
        if not np.array_equal(got[:, 1 + k], want):
            bad = int(np.argmax(got[:, 1 + k] != want))
            report(False, "%s: %s" % (name, u), "at t = %g: %r, not %r" % (got[bad, 0], got[bad, 1 + k], want[bad]))
            return unit
    report(True, "%s: %d numbers at %d times, all bits" % (name, got[:, 1:].size, len(at)))
    if start and model != "cart":
        return unit
    # a state that is kept, in another instance, off the grid
    half = len(lines) // 2
    again = unit.rows(lines[:half] + ["step %.17g" % (0.3 * unit.h), "keep", "back", show])
    straight = unit.rows(lines[:half] + ["step %.17g" % (0.3 * unit.h), show])
    report(np.array_equal(again[-1], straight[-1]), name + ": a state kept as bytes")
    return unit


# a unit takes 2 s to compile as for users: the cart is, the others by a cc that leaves out -O2, and their bits are the same
os.mkdir("quick")
with open("quick/cc", "w") as f:
    f.write('#!/bin/sh\nfor a; do shift; [ "$a" = -O2 ] || set -- "$@" "$a"; done\nexec %s "$@"\n' % shutil.which("cc"))
os.chmod("quick/cc", 0o755)
usual = os.environ["PATH"]
os.environ["PATH"] = os.path.abspath("quick") + ":" + usual

given, loaded = {}, {}
with open("drop.cdl", "w") as f:
    f.write("""model ball { param g = 9.81 [m/s^2], y0 = 1 [m], e in 0..1 = 0.8; dof y = y0, y' = 0 [m/s]
    y'' = -g; constraint floor: y >= 0 { impact = newton(e) } }
run ball for 3 with sweeping(h = 1e-3)
""")
ball = same("a ball", "drop.cdl", "ball", 3)
given["ball"] = dict(g=5, e=0.35)
same("a ball with other parameters", "drop.cdl", "ball", 3, [("g", 5), ("e", 0.35)])

with open("when.cdl", "w") as f:
    f.write("""model bounce { param k = 40, work = 1; dof y = 1, y' = 0, x = 0, x' = 0.3
    y'' = -9.81 - 0.1*y'*abs(y'); x'' = -k*work*sin(x)
    constraint floor: y >= 0 { impact = newton(0.6) }
    constraint wall: x <= 0.04 { impact = poisson(0.5) }
    when y' < -3 { y' = -1 }
    stop when t > 1.7 }
run bounce for 3 with sweeping(h = 1e-3)
""")
bounce = same("events, two contacts, forces that are not linear", "when.cdl", "bounce", 1.7)
given["bounce"] = dict(k=90, work=0.7)
same("the same with other parameters", "when.cdl", "bounce", 1.7, [("k", 90), ("work", 0.7)])
report({"work", "run.work"} <= set(bounce.reals), "a name of the model that is one of results: both are there")
code, out, err = bounce.drive(["begin"] + ["step 0.31"] * 6)
report(code == 0 and out.startswith("ended 1 1.70"), "stop when ends the motion", out + err)

os.environ["PATH"] = usual
# a cart that slides on a floor up to walls: numbers of the start, and an input, against a motion that is stepped
with open("cart.cdl", "w") as f:
    f.write("""model cart { param F = 0 [N], m = 2 [kg], a = 0 [m], b = 0 [m/s], c = 0.3 [m], mu = 0.4, w = 0.2 [m]
    dof x = a, x' = b, y = c, y' = 0 [m/s]
    m*x'' = F; m*y'' = -m*9.81 [m/s^2]
    constraint floor: y >= 0 [m] { impact = newton(0.7), slip = x', friction = coulomb(mu) }
    constraint wall: x <= w { impact = newton(0.5) } }
run cart for 1 with sweeping(h = 1e-3)
""")
for a, b, c in ((0.1, -2, 0.3), (0, 1, 0), (0.2, 1, 0)):
    given["cart"] = dict(a=a, b=b, c=c)
    cart = same("started at x = %g, x' = %g, y = %g" % (a, b, c), "cart.cdl", "cart", 1,
                [("x", a), ("der(x)", b), ("y", c)], "--inputs", "F")
given["cart"] = dict(a=0.1, b=1, c=0.05, mu=0.2, w=0.3)
same("friction and a wall that were set", "cart.cdl", "cart", 1,
     [("x", 0.1), ("der(x)", 1), ("y", 0.05), ("mu", 0.2), ("w", 0.3)], "--inputs", "F")
fixed = {x.get("name"): x.get("causality") for x in cart.root.iter("ScalarVariable")}
report([fixed[n] for n in ("F", "m", "a", "mu", "w")] == ["input", "local", "local", "parameter", "parameter"],
       "masses and numbers of the start stay as they are", fixed)
F, X, V, Y = (cart.reals[n] for n in ("F", "x", "der(x)", "y"))
stepped = cdl.step(cdl.load("cart.cdl").cart(c=0.01), inputs=["F"], h=1e-3)
lines, want, t = ["set %d 0.01" % Y, "begin"], [], 0
for k in range(60):
    force = random.uniform(-30, 70)
    lines += ["set %d %.17g" % (F, force)] + (["slope %d 2.5" % F] if k % 3 == 0 else [])
    if k % 3 == 0:
        stepped.input("F", force, 2.5)
    else:
        stepped["F"] = force
    t += 17
    lines += ["step %.17g" % (17 * cart.h), "print %d %d" % (X, V)]
    stepped.step(t * cart.h)
    want.append([stepped["x"], stepped["x'"]])
got = cart.rows(lines)
report(np.array_equal(got[:, 1:], want), "inputs that change on the grid, all bits",
       np.abs(got[:, 1:] - np.array(want)).max())
free = cart.rows(["set %d 5" % Y, "begin", "set %d 2" % F, "step 0.0502345", "set %d -1" % F, "step 0.0497655",
                  "print %d %d" % (X, V)])
a, b = 0.0502345, 0.0497655
x = 0.5 * a * a + a * b - 0.25 * b * b
report(abs(free[-1, 1] - x) < 1e-12, "an input that changes off the grid acts from there on", free[-1, 1] - x)

# what is wrong is said
code, out, err = ball.drive(["begin", "set %d 1" % ball.reals["y"]])
report(code == 1 and "before the start" in err, "positions cannot be set later", err)
code, out, err = ball.drive(["set %d -1" % ball.reals["y"], "begin"])
report(code == 1 and "a constraint does not hold" in err, "a start below the floor", err)
code, out, err = ball.drive(["set %d 1.5" % ball.reals["e"], "begin"])
report(code == 1 and "outside its bounds" in err, "a parameter outside of its bounds", err)
code, out, err = ball.drive(["set %d 2" % ball.reals["y0"], "begin"])
report(code == 1 and "some parameters" in err, "a parameter that is a number of the C", err)
ball.root.set("guid", "{0}")
code, out, err = ball.drive(["begin"])
report(code == 1 and "GUID" in err, "another GUID", err)
sys.exit(failed)
