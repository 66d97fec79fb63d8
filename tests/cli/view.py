"""Reads pages of the viewer and drives them in Chromium.  Prints `ok NAME` for what holds."""
import base64
import csv
import json
import math
import re
import struct
import subprocess
import sys
import tempfile


def page_data(path):
    text = open(path, encoding="utf-8").read()
    return text, json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.S).group(1))


def unpack(kind, text):
    raw = base64.b64decode(text)
    return struct.unpack("<%d%s" % (len(raw) // struct.calcsize(kind), kind), raw)


def say(name, holds):
    print("ok" if holds else "not ok", name)


def rows_of(path):
    with open(path, encoding="utf-8") as f:
        return list(csv.DictReader(f))


def between(times, values, t):
    for k in range(len(times) - 1):
        if times[k] <= t <= times[k + 1] and times[k + 1] > times[k]:
            w = (t - times[k]) / (times[k + 1] - times[k])
            return values[k] + w * (values[k + 1] - values[k])
    return values[-1]


def check_data(page, table, body, *columns):
    _, d = page_data(page)
    names = [b["name"] for b in d["bodies"]]
    place = unpack("f", d["place"])
    times = unpack("d", d["t"])
    if d["planes"]:
        say("plane", [round(x, 6) for x in d["planes"][0]] == [0, 0, 1, 0])
    if not table:
        return
    rows, at = rows_of(table), names.index(body)
    t = [float(r["t"]) for r in rows]
    worst = 0
    for axis, column in enumerate(columns):
        y = [float(r[column]) for r in rows]
        for f in range(0, len(times), 37):
            worst = max(worst, abs(place[(f * len(names) + at) * 3 + axis] - between(t, y, times[f])))
    say("places", worst < 1e-5)
    series = {s["name"]: s for s in d["series"]}
    x = series["floor[3].rn"]
    kept = dict(zip(unpack("d", x["t"]), unpack("d", x["y"])))
    saved = {float(r["t"]): float(r["floor[3].rn"]) for r in rows}
    say("series", len(kept) > 100 and all(saved.get(k) == v for k, v in kept.items()))
    say("impacts", len(unpack("d", d["impacts"])) > 1)
    # a disk at rest: the force of the floor is its weight, upright
    offsets = unpack("i", d["arrows"]["at"])
    force = unpack("f", d["arrows"]["force"])
    last = [force[3 * k:3 * k + 3] for k in range(offsets[-2], offsets[-1])]
    say("arrows", len(last) == 2 and all(abs(f[0]) < 1e-6 * f[1] and f[1] > 0 for f in last))
    say("label", d["expects"][0]["label"] == "</script><b>no overlap</b>" and d["expects"][0]["ok"])


def near(a, b, within):
    return max(abs(x - y) for x, y in zip(a, b)) <= within


def corner(row, y):
    """A point y of the frame of the brick b, or of the tile of flat, by the saved place and attitude."""
    if "a" in row:
        c, s = math.cos(float(row["a"])), math.sin(float(row["a"]))
        return [float(row["p[1]"]) + c * y[0] - s * y[1], float(row["p[2]"]) + s * y[0] + c * y[1], 0]
    return [float(row["b.p[%d]" % i]) + sum(float(row["b.A[%d, %d]" % (i, j)]) * y[j - 1] for j in (1, 2, 3))
            for i in (1, 2, 3)]


def check_corners(d, rows):
    """All corners of the first shape of body 0 at frames that are samples; returns how many were compared."""
    times, pose, n = unpack("d", d["t"]), unpack("f", d["pose"]), len(d["shapes"])
    k = [s["body"] for s in d["shapes"]].index(0)
    v = d["shapes"][k]["v"]
    saved, worst, met = {round(float(r["t"]), 9): r for r in rows}, 0, 0
    for f, t in enumerate(times):
        row = saved.get(round(t, 9))
        if not row:
            continue
        met += 1
        x = pose[(f * n + k) * 9:(f * n + k) * 9 + 9]
        c = [x[3:6], x[6:9], cross(x[3:6], x[6:9])]
        for i in range(0, len(v), 3):
            at = [x[j] + sum(c[a][j] * v[i + a] for a in range(3)) for j in range(3)]
            worst = max(worst, max(abs(p - q) for p, q in zip(at, corner(row, v[i:i + 3]))))
    say("corners", met > 20 and worst < 1e-6)
    return d["shapes"][k]


def cross(a, b):
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def check_solids(page, table):
    _, d = page_data(page)
    brick = check_corners(d, rows_of(table))
    say("faces", len(brick["v"]) == 24 and sorted(len(f) for f in brick["faces"]) == [4] * 6)
    say("floor", [near(p, [0, 0, 1, 0.1], 1e-12) for p in d["planes"]] == [True])
    # forces of the ground on the brick stand at its height, but for what it rises until the next sample
    a = d["arrows"]
    z = [unpack("f", a["point"])[3 * k + 2] for k, b in enumerate(unpack("i", a["body"])) if b == 0]
    say("touching", len(z) > 3 and all(abs(x - 0.1) < 1e-3 for x in z))


def check_flat(page, table):
    _, d = page_data(page)
    check_corners(d, rows_of(table))
    x = unpack("f", d["walls"]["x"])
    say("walls", len(x) >= 4 and all(abs(y - 0.1) < 1e-6 for y in x[1::2]))


def check_runs(page, table):
    _, d = page_data(page)
    runs = json.loads(d["manifest"])["runs"]
    rows = rows_of(table)
    say("runs", [r["measures"]["T"] for r in runs] == [float(r["T"]) for r in rows] and len(rows) == 3)
    say("file", any(f["name"].endswith("rest.csv") and f["text"] == open(table, encoding="utf-8").read() for f in d["files"]))


DRIVE = """
<script>
const note = (name, holds) => { const p = document.createElement("p"); p.textContent = (holds ? "ok " : "not ok ") + name; document.body.append(p); };
const key = k => document.dispatchEvent(new KeyboardEvent("keydown", { key: k, bubbles: true }));
const ink = c => { const u = document.createElement("canvas"); u.width = c.width; u.height = c.height; const g = u.getContext("2d"); g.drawImage(c, 0, 0);
  const p = g.getImageData(0, 0, u.width, u.height).data, first = p.slice(0, 4).join(); let n = 0;
  for (let k = 0; k < p.length; k += 4) if (p.slice(k, k + 4).join() !== first) n++; return n; };
%s
</script></body>"""

PLANE = """
$("scrub").value = 0.5; $("scrub").dispatchEvent(new Event("input"));
note("clock", $("clock").textContent === "t = 0.5");
const s = series.find(s => s.name === "d[2].p[2]"); addPlot(series.indexOf(s));
note("value", document.body.textContent.includes("d[2].p[2] = " + show(valueOf(s, 0.5))));
const v = planeView(), m = moment(0.5), r = stage.getBoundingClientRect(), dpr = window.devicePixelRatio || 1;
pick({ clientX: r.left + v.x(placeOf(m, 0, 0)) / dpr, clientY: r.top + v.y(placeOf(m, 0, 1)) / dpr });
note("picked", $("picked").textContent.startsWith("d[2]: " + show(placeOf(m, 0, 0))));
const q = shown[shown.length - 1], edge = q.canvas.getBoundingClientRect(); q.canvas.setPointerCapture = () => {};
q.canvas.onpointerdown({ clientX: edge.left + q.left + (edge.width - q.left - 4) / 4 });
note("seeks", Math.abs(state.t - begin - (end - begin) / 4) < 1e-9 * (end - begin));
const round = (lo, hi, n) => { const x = roundNumbers(lo, hi, n); return x.at.map(v => roundText(v, x.step)).join(" "); };
note("numbers", round(0, 1, 5) === "0 0.2 0.4 0.6 0.8 1" && round(2455550, 2455590, 4) === "2455550 2455560 2455570 2455580 2455590"
  && round(-3e-7, 3e-7, 3) === "-2e-7 0 2e-7" && round(0.97, 1.03, 3) === "0.98 1 1.02");
note("level", rangeOf([5, 5 + 1e-14, NaN]).map(x => +x.toFixed(9)).join() === "2.5,7.5" && rangeOf([1, 1.001]).join() === "1,1.001" && rangeOf([0, 0]).join() === "-1,1");
key("Home"); const home = state.t; key("ArrowRight"); const right = state.t; key("End");
note("keys", home === begin && right > begin && state.t === end);
setTime(begin); $("play").click(); const on = state.playing && $("play").textContent === "Pause";
last -= 100; tick(last + 100); $("play").click();
note("played", on && !state.playing && state.t > begin);
note("expectation", $("expects").textContent.includes("met<\\/script><b>no overlap</b>"));
setTime(0.4); note("drawn", ink(stage) > 200);
"""

MISSED = """note("missed", $("expects").textContent === "missedheight: y(0) == 2 (1)");"""

SPACE = """
setTime(0.2); const one = stage.toDataURL(); note("drawn", inSpace && ink(stage) > 200);
state.yaw += 0.5; refresh(); note("turned", stage.toDataURL() !== one);
"""

SOLIDS = """
setTime(%(t)s); const k = shapes.findIndex(s => s.body === 0), want = %(want)s;
note("corner", cornerAt(k, 0, %(t)s).every((x, i) => Math.abs(x - want[i]) < 1e-6));
const u = document.createElement("canvas"), g = u.getContext("2d", { willReadFrequently: true }); u.width = stage.width; u.height = stage.height;
const look = p => { g.clearRect(0, 0, u.width, u.height); g.drawImage(stage, 0, 0); return g.getImageData(Math.round(p[0]), Math.round(p[1]), 1, 1).data.slice(0, 3).join(); };
const onScreen = p => { if (!inSpace) { const v = planeView(); return [v.x(p[0]), v.y(p[1])]; } const M = spaceMatrix().flat;
  return [(M[0] * p[0] + M[4] * p[1] + M[8] * p[2] + M[12] + 1) / 2 * stage.width, (1 - (M[1] * p[0] + M[5] * p[1] + M[9] * p[2] + M[13])) / 2 * stage.height]; };
/* a little inside the corner there is the body, a little outside there is none */
const mid = poseOf(moment(%(t)s), k).p, beside = f => want.map((x, i) => mid[i] + f * (x - mid[i])), nothing = look([2, 2]);
$("forces").checked = false; refresh();
note("inside", look(onScreen(beside(0.85))) !== nothing && look(onScreen(beside(1.3))) !== look(onScreen(beside(0.85))));
const one = stage.toDataURL(); setTime(%(t)s + 0.1); note("moved", stage.toDataURL() !== one);
"""

REPORT = """
const rows = () => [...document.querySelectorAll("#rows tbody tr")].map(r => r.textContent);
const before_ = rows(); note("rows", before_.length === 3);
const b = [...document.querySelectorAll("#rows th button")].find(b => b.textContent === "T"); b.click();
[...document.querySelectorAll("#rows th button")].find(b => b.textContent.startsWith("T")).click();
note("sorted", rows().join() === before_.slice().reverse().join());
note("scatter", ink($("scatter")) > 100);
note("measured", $("across").selectedOptions[0].textContent === "e" && $("up").selectedOptions[0].textContent === "T");
note("labels", $("expects").textContent.includes("it rests"));
"""


def drive(page, script):
    text, _ = page_data(page)
    with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8", delete=False) as f:
        f.write(text.replace("</body>", DRIVE % script))
    for line in browse(f.name) or browse(f.name): # a busy machine may end the browser before it begins
        print(line)


def browse(name):
    with tempfile.TemporaryDirectory() as profile:
        out = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--use-angle=swiftshader",
                              "--enable-unsafe-swiftshader", "--user-data-dir=" + profile, "--virtual-time-budget=3000",
                              "--dump-dom", "file://" + name], capture_output=True, text=True, timeout=120).stdout
    return re.findall(r"<p>((?:not )?ok [a-z]+)</p>", out)


def check_rod(page, table):
    """The end of a rod along its load, at each sample."""
    _, d = page_data(page)
    place, count, rows = unpack("f", d["place"]), len(d["bodies"]), rows_of(table)
    say("times", list(unpack("d", d["t"])) == [float(r["t"]) for r in rows])
    off = max(abs(place[((f + 1) * count - 1) * 3 + i] - float(r["wire.track(1)[%d]" % (i + 1)]))
              for f, r in enumerate(rows) for i in range(3))
    say("ends", off < 1e-6 and len({r["wire.track(1)[1]"] for r in rows}) == len(rows))


if sys.argv[1] == "data":
    check_data(*sys.argv[2:])
elif sys.argv[1] == "runs":
    check_runs(*sys.argv[2:])
elif sys.argv[1] == "rod":
    check_rod(*sys.argv[2:])
elif sys.argv[1] == "solids":
    check_solids(*sys.argv[2:])
elif sys.argv[1] == "flat":
    check_flat(*sys.argv[2:])
elif sys.argv[1] in ("solids3", "flat2"):
    _, held = page_data(sys.argv[2])
    first = next(s for s in held["shapes"] if s["body"] == 0)["v"][:3]
    at = min(rows_of(sys.argv[3]), key=lambda r: abs(float(r["t"]) - 0.2))
    drive(sys.argv[2], SOLIDS % {"t": at["t"], "want": json.dumps(corner(at, first))})
else:
    drive(sys.argv[2], {"drive": PLANE, "drive3": SPACE, "drive-report": REPORT, "drive-missed": MISSED}[sys.argv[1]])
