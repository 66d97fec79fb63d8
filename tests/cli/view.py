"""Reads pages of the viewer and drives them in Chromium.  Prints `ok NAME` for what holds."""
import base64
import csv
import json
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
key("Home"); const home = state.t; key("ArrowRight"); const right = state.t; key("End");
note("keys", home === begin && right > begin && state.t === end);
setTime(begin); $("play").click(); const on = state.playing && $("play").textContent === "Pause";
last -= 100; tick(last + 100); $("play").click();
note("played", on && !state.playing && state.t > begin);
note("expectation", $("expects").textContent.includes("met<\\/script><b>no overlap</b>"));
setTime(0.4); note("drawn", ink(stage) > 200);
"""

SPACE = """
setTime(0.2); const one = stage.toDataURL(); note("drawn", inSpace && ink(stage) > 200);
state.yaw += 0.5; refresh(); note("turned", stage.toDataURL() !== one);
"""

REPORT = """
const rows = () => [...document.querySelectorAll("#rows tbody tr")].map(r => r.textContent);
const before_ = rows(); note("rows", before_.length === 3);
const b = [...document.querySelectorAll("#rows th button")].find(b => b.textContent === "T"); b.click();
[...document.querySelectorAll("#rows th button")].find(b => b.textContent.startsWith("T")).click();
note("sorted", rows().join() === before_.slice().reverse().join());
note("scatter", ink($("scatter")) > 100);
"""


def drive(page, script):
    text, _ = page_data(page)
    with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8", delete=False) as f:
        f.write(text.replace("</body>", DRIVE % script))
    with tempfile.TemporaryDirectory() as profile:
        out = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--use-angle=swiftshader",
                              "--enable-unsafe-swiftshader", "--user-data-dir=" + profile, "--virtual-time-budget=3000",
                              "--dump-dom", "file://" + f.name], capture_output=True, text=True, timeout=120).stdout
    for line in re.findall(r"<p>((?:not )?ok [a-z]+)</p>", out):
        print(line)


if sys.argv[1] == "data":
    check_data(*sys.argv[2:])
elif sys.argv[1] == "runs":
    check_runs(*sys.argv[2:])
else:
    drive(sys.argv[2], {"drive": PLANE, "drive3": SPACE, "drive-report": REPORT}[sys.argv[1]])
