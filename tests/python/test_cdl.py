"""CDL in Python, as a user meets it.  Each check prints a line `ok` or `not ok`; pandas is tested where it is there."""
import ctypes
import gc
import math
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

import cdl

failed = 0


def check(name, good, seen=""):
    global failed
    if not good:
        failed += 1
    print("%s %s" % ("ok" if good else "not ok", name))
    if not good and str(seen):
        print("    got: %s" % (seen,))


def fails(name, kind, parts, f):
    """f raises that kind of exception, and its text holds all parts."""
    try:
        f()
    except kind as e:
        missing = [p for p in parts if p not in str(e)]
        check(name, not missing, "%s without %s" % (e, missing))
        return e
    except Exception as e:
        check(name, False, "%s: %s" % (type(e).__name__, e))
        return None
    check(name, False, "no exception")


BALL = """## A ball dropped on a rigid floor.
model ball {
    param g = 9.81 [m/s^2], y0 = 1 [m]
    param e in 0..1 = 0.8
    dof y = y0, y' = 0 [m/s]
    y'' = -g
    constraint floor: y >= 0 { impact = newton(e) }
}
let twice = 2*3
## Time to rest over e.
experiment rebound {
    sweep e in linspace(0.5, 0.9, 3)
    run ball(e = e) for 9 with events()
    measure T = settle_time(floor), n = count(floor.impacts)
    expect T == sqrt(2*y0/g)*(1 + e)/(1 - e) within rel(1e-6)  "time to rest"
}
"""
MORE = """model column {
    param N = 3, w = [1, 2, 3], K = [1, 2; 3, 4]
    dof z[i in 1..N] = i
    dof p[i in 1..2] in R2 = [i, 5]
    for i in 1..N { z[i]'' = -9.81 }
    for i in 1..2 { p[i]'' = w[1]*[0, -1] }
    constraint floor: z[1] >= 0
    constraint pair[i in 1..N-1]: z[i+1] - z[i] >= 0
    constraint rub[i in 1..2]: p[i][2] >= 0 { slip = p[i]', friction = coulomb(0.3) }
}
model disk { dof p in R2 = [0, 0]; kinetic norm(p')^2/2 }
model pair { part big: disk; part small[i in 1..2]: disk { p = [i, i] } }
model line { domain x in 0..1; field u(x); u'' = 1; at x = 0 { u = 0 }; at x = 1 { u = 0 } }
model block { param F = 0, mu = 0.3; dof x = 0, y = 0; 2*x'' = F; 2*y'' = -2*9.81
    constraint floor: y >= 0 { slip = x', friction = coulomb(mu) } }
model pendulum { dof a = 1; a'' = -sin(a) }
model ends { dof x = 0, x' = 1; x'' = 0; stop when x > 0.5 }
"""

with open("ball.cdl", "w") as f:
    f.write(BALL)

# -- a first try
m = cdl.load("ball.cdl")
r = m.ball(e=0.7).run(3, backend="events")
y = r.y
check("samples are arrays", isinstance(y, np.ndarray) and y.dtype == float and y.ndim == 1, y)
check("as many as times", len(y) == len(r.t) == r.samples)
check("without a copy", y.base is not None and not y.flags.owndata and np.shares_memory(y, r.y))
check("read-only", not y.flags.writeable)
check("a constraint by expression", np.shares_memory(r["floor.rn"], r.floor.rn))
check("rates", np.allclose(r["y'"][0], 0) and r.unit("y'") == "m/s", r.unit("y'"))
check("accelerations", np.allclose(r["y''"][0], -9.81))
check("impacts", abs(r["floor.impacts.t"][0] - math.sqrt(2/9.81)) < 1e-9)
check("all impacts", list(r.impacts.constraint[:1]) == ["floor"] and len(r.impacts) == len(r["floor.impacts.t"]))
check("impacts of a constraint", np.allclose(r.floor.impacts.post, -0.7*r.floor.impacts.pre))
check("a value at a time", isinstance(r["y(1.5)"], float))
check("a status at a time", r["floor.status(0)"] == "open")
check("states are bytes", r["floor.status"].dtype == np.uint8 and r["floor.status"][0] == cdl.OPEN)
check("any expression", abs(r["max(y)"] - 1) < 1e-12 and r["1 < 2"] is True)
check("how it went", (r.model, r.backend, r.ended, r.t_end) == ("ball", "events", "ok", 3.0), r)
check("names", {"y", "y'", "floor.rn", "floor.impacts", "energy", "e"} <= set(r.names), r.names)
check("completion", "floor" in dir(r) and "rn" in dir(r.floor) and "ball" in dir(m))
check("shapes of all", dict(zip(r.describe().name, r.describe().shape))["y"] == (r.samples,))
check("repr", "ball" in repr(m) and "e = 0.7" in repr(m.ball(e=0.7)) and "events" in repr(r))
check("definitions", m.twice == 6 and m.eval("twice + 1") == 7)
check("docstrings", m.ball.__doc__ == "A ball dropped on a rigid floor."
      and m.rebound.__doc__ == "Time to rest over e.", m.ball.__doc__)
check("parameters", m.ball(e=0.3).params["e"][:4] == (0.3, "", 0.0, 1.0) and m.ball.params["g"].unit == "m/s^2",
      m.ball.params)
check("initial values", (m.ball(y0=2).initial["y"].value, m.ball.initial["y"].rate) == (2.0, 0.0), m.ball.initial)
check("values with units", m.ball(y0="50 [cm]").run(0.1).y[0] == 0.5 and m.ball(y0="50 [cm]").initial["y"].value == 0.5)
check("a duration with a unit", m.ball.run("100 [ms]").t_end == 0.1)
check("no backend: the best one", m.ball.run(0.1).backend == "sweeping", m.ball.run(0.1).backend)
check("help", "ball" in m.help("ball"))

# -- memory: arrays outlive all else, runs nobody refers to go away
last = y[-1]
del r, m
gc.collect()
trash = [cdl.loads(BALL).ball.run(1) for _ in range(20)]
check("an array keeps its run", y[-1] == last and y[0] == 1)
del trash
m = cdl.loads(BALL)
r = m.ball(e=0.7).run(3, backend="events")


def pages():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1])


for k in range(400):
    m.ball(e=0.5).run(1, backend="sweeping", h=1e-3).y
    if k == 200:
        gc.collect()
        before = pages()
gc.collect()
check("runs leave no memory behind", pages() - before < 150, pages() - before)

# -- kinds of results
n = cdl.loads(MORE)
c = n.column(w=[2, 2, 2], K=np.eye(2)).run(1, backend="sweeping", h=0.01)
check("families", c.z.shape == (101, 3) and c.z[0, 2] == 3 and c["z[3]"][0] == 3)
check("vectors", c.p.shape == (101, 2, 2) and c["p'"].shape == (101, 2, 2))
check("constraints of a family", c.pair.rn.shape == (101, 2) and c.rub.slip.shape == (101, 2, 2)
      and c.pair.status.shape == (101, 2), c.pair.rn.shape)
check("a member", np.shares_memory(c.pair[2].rn, c["pair.rn"]) and np.array_equal(c.pair[2].rn, c["pair.rn"][:, 1]))
check("impacts of a family have its index", "i" in c.pair.impacts or len(c.pair.impacts) == 0)
check("vectors and matrices as parameters", np.array_equal(c.K, np.eye(2)) and np.array_equal(c.w, [2, 2, 2]))
check("a size", n.column(N=5).run(0.1).z.shape[1] == 5)
p = n.pair.run(0.1)
check("parts", p.big.p.shape[1] == 2 and p.small[2].p[0, 1] == 2)
u = n.line.run(backend="active_set", cells=10)
check("fields", abs(u["u(0.5)"] + 0.125) < 1e-6 and u.u.ndim == 1)
try:
    import pandas
    f = c.frame("z", "pair.rn")
    check("frames", list(f.columns) == ["z[1]", "z[2]", "z[3]", "pair.rn[1]", "pair.rn[2]"] and f.index.name == "t"
          and f["z[3]"].iloc[0] == 3, f.columns)
    check("frames of impacts", len(r.impacts.frame()) == len(r.impacts))
    check("a frame of all names", list(c.describe().frame()["shape"]) == list(c.describe()["shape"]))
    check("frames of all dofs", "y'" in r.frame().columns)
    check("names of a frame in a list", list(c.frame(["z", "pair.rn"]).columns) == list(f.columns))
except ImportError:
    print("ok frames # SKIP pandas is not installed")

# -- experiments and files
x = m.rebound.run()
check("an experiment is a table", list(x["e"]) == [0.5, 0.7, 0.9] and len(x) == 3 and x.ok, x.points)
check("measures", np.allclose(x["T"], np.sqrt(2/9.81)*(1 + x["e"])/(1 - x["e"]), rtol=1e-6))
check("expectations", x.expectations.ok == [True]*3)
check("with two processes", np.array_equal(m.rebound.run(jobs=2)["T"], x["T"]))
file = cdl.run("ball.cdl", params={"g": 20})
check("a file with other parameters", file.ok and abs(file["T"][0] - math.sqrt(2/20)*3) < 1e-5, file["T"])

open("slide.cdl", "w").write("model slide { dof y = 0, x = 0, x' = 1\n y'' = -9.81\n x'' = 0\n"
                             " constraint f: y >= 0 { slip = x', friction = coulomb(0.3) } }\n"
                             "run slide for 0.05 with sweeping(h = 1e-2)\n")
file = cdl.run("slide.cdl", output="steps", problems="x.txt")
check("contact problems of steps", file.ok and len([f for f in os.listdir("steps") if f.startswith("x-")]) == 5,
      os.listdir("steps"))
fails("of another ending", ValueError, ["x.doc", "problems"], lambda: cdl.run("slide.cdl", problems="x.doc"))

# -- mistakes
e = fails("a wrong unit", cdl.Error, ["<text>:2:2: error: the two sides", "  2 |  x'' = 2 [s] }", "^~~~"],
          lambda: cdl.loads("model a { dof x = 1 [m]\n x'' = 2 [s] }"))
check("with its place", (e.file, e.line, e.column, e.status) == ("<text>", 2, 2, cdl.MODEL))
d = e.diagnostics[0]
check("as a structure", len(e.diagnostics) == 1 and (d.code, d.severity) == ("unit-mismatch", "error")
      and d.message.startswith("the two sides") and d.at == ("<text>", 2, 2, 2, 13), d)
e = fails("several at once", cdl.Error, ["unknown statement 'parm'", "unknown name 'b'"],
          lambda: cdl.loads("model a {\n parm c = 1\n dof x = 0\n x'' = b\n}"))
check("all of them as structures", [(d.code, d.at.line) for d in e.diagnostics] == [("unknown-statement", 2), ("unknown-name", 4)],
      e.diagnostics)
e = fails("with what would mend it", cdl.Error, ["did you mean 'sin'?"],
          lambda: cdl.loads("model a { dof x = 0\n x'' = sinn(x) }"))
check("and where", e.diagnostics[0].replacement == (("<text>", 2, 8, 2, 12), "sin")
      and any("sin" in h for h in e.diagnostics[0].hints), e.diagnostics)
check("also after pickling", pickle.loads(pickle.dumps(e)).diagnostics == e.diagnostics)
fails("a wrong model", AttributeError, ["no model or experiment 'bal'; did you mean 'ball'?"], lambda: m.bal)
fails("a wrong parameter", cdl.Error, ["has no parameter 'ee'", "did you mean 'e'?"], lambda: m.ball(ee=1).run(1))
fails("also before a run", cdl.Error, ["has no parameter 'ee'", "did you mean 'e'?"], lambda: m.ball(ee=1).params)
fails("outside of its bounds", cdl.Error, ["parameter 'e' = 2 lies outside 0..1"], lambda: m.ball(e=2).run(1))
fails("another dimension", cdl.Error, ["[s] against [m]"], lambda: m.ball(y0="5 [s]").run(1))
fails("also for a stepper", cdl.Error, ["[s] against [m]"], lambda: m.ball(y0="5 [s]").step())
check("what an object is", "constraint floor" in repr(r.floor), repr(r.floor))
fails("a wrong backend", cdl.Error, ["unknown backend 'evnts'", "did you mean 'events'?"],
      lambda: m.ball.run(1, backend="evnts"))
fails("a wrong option", cdl.Error, ["did you mean 'tolerance'?"], lambda: m.ball.run(1, backend="events", tolerence=1))
fails("options without a backend", TypeError, ["options belong to a backend"], lambda: m.ball.run(1, h=1))
fails("no duration", cdl.Error, ["needs a duration"], lambda: m.ball.run())
fails("a wrong result in brackets", KeyError, ["unknown name 'yy'", "did you mean 'y"], lambda: r["yy"])
fails("is an error of the language as well", cdl.Error, ["no member 'nix'"], lambda: r["floor.nix"])
e = fails("a mistake in an expression is no wrong key", cdl.Error, ["expected"], lambda: r["y +"])
check("but an error", not isinstance(e, KeyError), e)
fails("a wrong result", AttributeError, ["unknown name 'yy'", "did you mean 'y"], lambda: r.yy)
fails("a wrong member", cdl.Error, ["floor.rx"], lambda: r["floor.rx"])
fails("a wrong column", AttributeError, ["no column 'impuls'; did you mean 'impulse'?"], lambda: r.floor.impacts.impuls)
fails("a number that is none", ValueError, ["NaN"], lambda: m.ball(e=math.nan).run(1))
fails("no file", cdl.Error, ["cannot read 'nix.cdl'"], lambda: cdl.load("nix.cdl"))
fails("a missing value", cdl.Error, ["has no value"], lambda: cdl.loads("model a { param k; dof x = 1; x'' = k }").a.run(1))
check("as a parameter it is None", cdl.loads("model a { param k; dof x = 1; x'' = k }").a.params["k"].value is None)
e = fails("a run that fails", cdl.Error, ["does not hold at t = 0"], lambda: m.ball(y0=-1).run(1))
check("its status", e.status == cdl.SOLVER)
half = cdl.loads("model a {\n ## how strong\n param k = 0.5, c = 1\n ## where it is\n dof x = 0, z = 0, x' = 0\n x'' = sqrt(k - t); z'' = c }")
e = fails("a run that fails on its way", cdl.Error, ["error: the motion is no longer finite at t = 0.501", "^~~"], lambda: half.a.run(1, backend="sweeping", h=1e-3))
check("and leaves what was computed", e.result.samples > 400 and e.diagnostics[0].message in str(e), e.result)
check("comments of parameters and dofs", half.a.params["k"].doc == half.a.params["c"].doc == "how strong" and half.a.initial["z"].doc == "where it is")
check("it goes on after errors", m.ball.run(0.1).ended == "ok")

# -- pictures
picture = None
if subprocess.run("command -v gnuplot", shell=True, stdout=subprocess.DEVNULL).returncode == 0:
    picture = r.picture("y against t", title="a ball")
    check("pictures for notebooks", set(picture._repr_mimebundle_()) == {"image/svg+xml", "text/html"}
          and picture._repr_svg_().startswith("<svg"))
    check("pictures in memory", b"<svg" in picture and picture._repr_svg_() is not None and not os.path.exists("picture.svg"))
    check("as PNG", r.picture("y against t", format="png")._repr_png_() is not None)

# -- files are reported when they are written
from cdl._cells import Cells
said, shown = [], []
cells = Cells(lambda text, wrong: said.append(text), shown.append)
check("a cell", cells.execute(BALL.split("experiment")[0] + "run ball for 1\nsave y { file = \"kept.csv\" }", "cell")[0] == cdl.OK, said)
check("its files come to the folder at hand", "cdl: wrote kept.csv, 1001 rows\n" in said and os.path.getsize("kept.csv") > 1001, said)
check("a page is shown", cells.execute("animate(\"ball.html\", [0, y])", "cell")[0] == cdl.OK and "srcdoc" in shown[-1]["text/html"], said)
status, stopped, text, found = cells.execute("\n\nrun bal for 1", "cell 3")
check("errors of a cell", status == cdl.MODEL and "\x1b[" in text and (found[0].code, found[0].at.line) == ("unknown-name", 3), found)
check("values", cells.value("max(y)") == 1 and cells.value("y").shape == (1001,) and cells.value("2 + 3") == 5)

# -- Ctrl-C
progress = []


def interrupt_after(seconds):
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()


before = signal.getsignal(signal.SIGINT)
interrupt_after(0.3)
began = time.time()
try:
    n.pendulum.run(1e6, backend="sweeping", h=1e-3, every=1)
    check("Ctrl-C raises KeyboardInterrupt", False, "it ran to its end")
except KeyboardInterrupt as e:
    check("Ctrl-C raises KeyboardInterrupt", True)
    check("promptly", time.time() - began < 5, time.time() - began)
    check("and keeps what was computed", isinstance(e, cdl.Interrupted) and e.result.samples > 2
          and e.result.ended == "interrupted" and len(e.result.a) == e.result.samples, e.result)
check("the handler is Python's again", signal.getsignal(signal.SIGINT) is before)
check("and the session works", n.pendulum.run(1, progress=progress.append).ended == "ok")
check("progress of a short run", progress == sorted(progress) and all(0 < p <= 1 for p in progress), progress)
progress.clear()
n.pendulum.run(20, backend="sweeping", h=1e-3, progress=progress.append)
check("progress is a fraction, at the end 1", len(progress) > 1 and progress == sorted(progress) and
      0 < progress[0] < 1 == progress[-1], progress[:3])

fails("an exception in it ends the run", ZeroDivisionError, ["division"],
      lambda: n.pendulum.run(1e6, backend="sweeping", h=1e-3, every=1, progress=lambda done: 1/0))

# -- stepping
s = cdl.step(m.ball(e=0.5), h=1e-3)
for k in range(1, 1001):
    s.step(k*1e-3)
q = m.ball(e=0.5).run(1, backend="sweeping", h=1e-3)
check("steps are those of a run, to the last bit", s["y"] == q.y[-1] and s["y'"] == q["y'"][-1] and s.t == 1)
state = s.save()
s.step(1.5)
then = s["y"]
s.load(state)
check("back to a state", s.t == 1 and s["y"] == q.y[-1])
other = s.copy()
s.step(1.5)
other.step(1.5)
check("a state is a value", s["y"] == then == other["y"])
s["y"], s["y'"] = 2, 0
s.step(s.t + 0.1)
check("states are set", abs(s["y"] - (2 - 9.81*0.005)) < 1e-12)
s["g"] = 1
check("parameters are set", s["g"] == 1 and abs(s["y''"] + 1) < 1e-12, s["y''"])
fails("names of a stepper", KeyError, ["did you mean 'floor.rn'"], lambda: s["floor.r"])
fails("time goes forward", cdl.Error, ["lies in the past"], lambda: s.step(0))
fails("bounds hold", cdl.Error, ["lies outside 0..1"], lambda: s.__setitem__("e", 3))
fails("another state", cdl.Error, [""], lambda: s.load(b"nonsense"))
fails("a backend of its own steps", cdl.Error, ["does not support stepping"], lambda: cdl.step(m.ball, backend="events"))
check("names", "floor.rn" in s.names and "y'" in s.names)
b = n.block.step(inputs="F", h=1e-3)
b["F"] = 10
b.step(1)
check("an input is held", abs(b["x'"] - (10 - 0.3*2*9.81)/2) < 1e-9 and b["floor.status"] == cdl.SLIP, b["x'"])
b["F"] = 0
b.step(3)
b.input("F", 0, 1)
b.step(4)
check("a polynomial in time", b["x'"] == 0 and abs(b["F"] - 1) < 1e-9 and abs(b["floor.rt"] + 1) < 1e-2, b["floor.rt"])
b.input("F", lambda t: 100*math.sin(t))
b.step(4.01)
check("a function of time", abs(b["F"] - 100*math.sin(4.01)) < 1e-6)
i = m.ball.step(h=1e-3)
i.step(0.5)
check("impacts of a step", len(i.impacts) == 1 and i.impacts.constraint == ["floor"])
z = n.ends.step()
check("an event stops", z.step(2) is False and z.stopped and abs(z.t - 0.5) < 1e-9)
z = n.column.step()
check("arrays in the shape of the model", z["z"].shape == (3,) and z["p"].shape == (2, 2), z["p"].shape)
z["z"] = [3, 4, 5]
check("a state of several numbers is set", list(z["z"]) == [3, 4, 5], z["z"])
z["z"] = 7
check("or all of them to one", list(z["z"]) == [7, 7, 7], z["z"])
z["z"] = np.array([1, 2, 3])
read = z["z"]
z["z"] = 0
check("what was read stays", list(read) == [1, 2, 3], read)
fails("a wrong number of values", ValueError, ["shape"], lambda: z.__setitem__("z", [1, 2]))
check("a number is a float", type(s["y"]) is float, type(s["y"]))
results = {}


def fall(e):
    own = cdl.step(m.ball(e=e), h=1e-3)
    for k in range(1, 2001):
        own.step(k*1e-3)
    results[e] = own["y"]


threads = [threading.Thread(target=fall, args=(e,)) for e in (0.3, 0.6)]
for t in threads:
    t.start()
for t in threads:
    t.join()
check("two threads", results == {e: m.ball(e=e).run(2, backend="sweeping", h=1e-3).y[-1] for e in (0.3, 0.6)}, results)
many = [None]*2
threads = [threading.Thread(target=lambda k: many.__setitem__(k, [m.ball(e=0.1*j).run(1).y[-1] for j in range(1, 6)]),
                            args=(k,)) for k in range(2)]
for t in threads:
    t.start()
for t in threads:
    t.join()
check("two threads in one session", many[0] == many[1] and None not in many)

# -- figures, generous here: the machine may be busy
big = m.ball.run(1000, backend="sweeping", h=1e-3)
best = min(_timed for _timed in [(lambda t0: (big["y"], time.perf_counter() - t0)[1])(time.perf_counter()) for _ in range(5)])
check("10^6 samples reach NumPy in a millisecond", len(big.y) == 1000001 and best < 5e-3, best)

# -- rotations are matrices, not the numbers that are kept of them
turning = cdl.loads("""
model spin { param J = diag(1, 2, 3); dof A in SO3 = rot_x(0.2), A' = [1, 0.1, 0]; kinetic dot(A', J*A')/2 }
model two { dof B[i in 1..2] in SO3 = rot_z(0.1*i), B'[i in 1..2] = [0, 0, 1]; for i in 1..2 { kinetic dot(B[i]', B[i]')/2 } }
""")
A = turning.spin.run(1, backend="sweeping", h=0.01)["A"]
check("a rotation is a matrix at each sample", A.shape == (101, 3, 3) and
      abs(np.einsum("tji,tjk->tik", A, A) - np.eye(3)).max() < 1e-14, A.shape)
B = turning.two.run(1, backend="sweeping", h=0.01)["B"]
corner = [[np.cos(1.2), -np.sin(1.2)], [np.sin(1.2), np.cos(1.2)]]
check("so are families of them", B.shape == (101, 2, 3, 3) and abs(B[-1, 1, :2, :2] - corner).max() < 1e-4, B.shape)
s = cdl.step(turning.spin, h=0.01)
s.step(1)
check("they are stepped to the same matrices", s["A"].shape == (3, 3) and (s["A"] == A[-1]).all(), s["A"] - A[-1])
s["A"] = np.eye(3)
check("and set", (s["A"] == np.eye(3)).all() and s["A'"].shape == (3,))
fails("to rotations only", cdl.Error, ["must be a rotation"], lambda: s.__setitem__("A", np.diag([1, 1, -1])))
begins = turning.two.initial["B"]
check("they begin as matrices and turn at vectors", begins.value.shape == (2, 3, 3) and begins.rate.shape == (2, 3) and
      abs(begins.value[1, 1, 0] - np.sin(0.2)) < 1e-15, begins)

# -- the structures are those of the header
header = os.environ.get("CDL_HEADER")
compiler = os.environ.get("CC", "cc").split()
if header and subprocess.run("command -v " + compiler[-1], shell=True, stdout=subprocess.DEVNULL).returncode == 0:
    from cdl import _library as low
    pairs = [("cdl_result", low.Result), ("cdl_summary", low.Summary), ("cdl_definition", low.Definition),
             ("cdl_numbers", low.Numbers), ("cdl_quantity", low.Quantity), ("cdl_impact", low.Impact),
             ("cdl_callbacks", low.Callbacks), ("cdl_position", low.Position), ("cdl_span", low.Span),
             ("cdl_remark", low.Remark), ("cdl_diagnostic", low.Diagnostic), ("cdl_choice", low.Choice)]
    lines = ["#include <stdio.h>", "#include \"%s\"" % header, "int main(void) {"]
    for c_name, py in pairs:
        lines.append('printf("%%zu\\n", sizeof(%s));' % c_name)
        lines += ['printf("%%zu\\n", offsetof(%s, %s));' % (c_name, field[0]) for field in py._fields_]
    lines += ['printf("%d\\n", (int)CDL_FUNCTION);', "return 0; }"]
    with open("sizes.c", "w") as f:
        f.write("\n".join(lines))
    subprocess.run(compiler + ["-o", "sizes", "sizes.c"], check=True)
    seen = [int(w) for w in subprocess.run("./sizes", capture_output=True).stdout.split()]
    want = []
    for c_name, py in pairs:
        want += [ctypes.sizeof(py)] + [getattr(py, field[0]).offset for field in py._fields_]
    check("structures are those of cdl.h", seen == want + [low.FUNCTION], (seen, want))

# all but arrays works before NumPy is there: its import takes longer than cdl's
late = """
import sys, cdl
m = cdl.loads(sys.argv[1])
r = m.ball(e=0.5).run(2)
s = m.ball.step(h=1e-3)
s["y"] = 0.5
s.step(0.1)
print(r["max(y)"], s["y"] < 0.5, "numpy" in sys.modules)
r.y
print("numpy" in sys.modules)
"""
seen = subprocess.run([sys.executable, "-c", late, BALL], capture_output=True, text=True)
check("NumPy is imported with the first array", seen.stdout.split() == ["1.0", "True", "False", "True"], seen.stdout + seen.stderr)

sys.exit(1 if failed else 0)
