#!/usr/bin/python3
"""Draws models of rods that touch: 2 to 6 rods in layers, random directions, supports, loads and friction.

  tangles.py draw SEED            prints the model of a seed
  tangles.py run CDL FIRST COUNT  tries so many, each for 60 s of CPU, and prints a line for each and a sum
"""
import random
import resource
import subprocess
import sys


def vec(v):
    return "[" + ", ".join("%.6g" % x for x in v) + "]"


def rod(r, k, count, radius):
    """A rod of layer k: a straight line through near the middle; the ends are clamped, held or free."""
    turn, shift = r.uniform(0, 180), [r.uniform(-0.15, 0.15) for _ in range(2)]
    lines = [
        "    fn line%d(s) = rot_z(%.6g*pi/180)*[s - 0.5, 0, 0] + %s" % (k, turn, vec(shift + [k * 0.012 + 2 * k * radius])),
        "    rod w%d { length = 1, radius = %.6g, stiffness = diag(1e4, 1e4, 2e4), bending = diag(%.4g, %.4g, %.4g), "
        "reference = curve(line%d), elements = 12 }" % ((k, radius) + (r.choice([0.5, 1, 2]),) * 3 + (k,)),
    ]
    frame = "rot_z(%.6g*pi/180)*rot_y(pi/2)" % turn
    up = 1 if k < count / 2 else -1
    far = r.choice(["clamped", "held", "free"])
    led = vec([r.uniform(-0.03, 0.03), r.uniform(-0.03, 0.03), up * r.uniform(0, 0.02)])
    lines.append("    at w%d.s = 0 { position = line%d(0), frame = %s }" % (k, k, frame))
    if far == "clamped":
        lines.append("    at w%d.s = 1 { position = line%d(1), frame = %s }" % (k, k, frame))
    elif far == "held":
        lines.append("    at w%d.s = 1 { position = line%d(1) + t*%s }" % (k, k, led))
    weight = r.uniform(2, 20) * (0.1 if far == "free" else 1)
    lines.append("    force w%d.x: t*%s" % (k, vec([r.uniform(-0.2, 0.2) * weight, r.uniform(-0.2, 0.2) * weight, up * weight])))
    if r.random() < 0.5:
        push = r.uniform(0.5, 4) * (0.2 if far == "free" else 1)
        lines.append("    force w%d.x(%.3g): t*%s" % (k, r.uniform(0.3, 0.7), vec([0, 0, up * push])))
    return lines


def draw(seed):
    r = random.Random(seed)
    count, radius, mu = r.randint(2, 6), r.uniform(0.008, 0.02), r.choice([0, r.uniform(0.05, 0.8)])
    lines = ["model tangle {"]
    for k in range(count):
        lines += rod(r, k, count, radius)
    for i in range(count):
        for j in range(i):
            lines.append("    constraint c%d_%d: w%d.gap(w%d) >= 0 { friction = coulomb(%.4g) }" % (i, j, i, j, mu))
    lines += ["}", "run tangle for 1 with auglag(h = 0.1)", "expect last(t) == 1 within 1e-12",
              "expect max_penetration <= %.3g" % (1e-6 * radius), "expect residual <= 1e-6", ""]
    return "\n".join(lines)


def limited():
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))


def trial(cdl, seed):
    start = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    run = subprocess.run([cdl, "run", "-q", "/dev/stdin"], input=draw(seed), text=True, capture_output=True,
                         preexec_fn=limited, check=False)
    took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - start
    text = [x for x in (run.stderr + run.stdout).splitlines() if "error" in x or "failed" in x]
    print(seed, "ok" if run.returncode == 0 else "not ok", "%.1f s" % took, text[0][:120] if text else "", flush=True)
    return run.returncode == 0


def main():
    if sys.argv[1] == "draw":
        print(draw(int(sys.argv[2])))
        return
    first, count = int(sys.argv[3]), int(sys.argv[4])
    found = sum(trial(sys.argv[2], first + k) for k in range(count))
    print("%d of %d" % (found, count))


main()
