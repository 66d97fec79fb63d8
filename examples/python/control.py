"""A control loop: a cart between two walls keeps its pendulum upright.  The model is stepped, the controller is Python.

    python3 examples/python/control.py [PICTURE]
"""
import sys

import matplotlib.pyplot as plt
import numpy as np

import cdl

m = cdl.loads("""
## A pendulum on a cart between walls; F is the force on the cart.
model cart {
    param M = 2, m = 0.3, l = 0.5, g = 9.81, F = 0
    dof x = 0, a = 0.15
    let px = x + l*sin(a), py = l*cos(a)
    kinetic   M*x'^2/2 + m*(d(px, t)^2 + d(py, t)^2)/2
    potential m*g*py
    force x: F
    constraint left:  x >= -0.3 { impact = newton(0.8) }
    constraint right: x <=  0.3 { impact = newton(0.8) }
}
""")

s = cdl.step(m.cart, inputs="F", h=1e-3)
gains = {"a": 60.0, "a'": 12.0, "x": 9.0, "x'": 10.0}
times, rows, hits = np.arange(1, 601)*0.01, [], []
for t in times:
    F = sum(k*s[name] for name, k in gains.items())
    if 3 <= t < 3.05:
        F += 40                         # somebody pushes
    s["F"] = F
    s.step(t)
    rows.append((s["x"], s["a"], F))
    hits += list(s.impacts.t)

x, a, F = np.array(rows).T
picture, axes = plt.subplots(3, 1, figsize=(8, 6), sharex=True)
for axis, y, label in zip(axes, (x, a, F), ("x [m]", "a [rad]", "F [N]")):
    axis.plot(times, y)
    axis.set(ylabel=label)
    for t in hits:
        axis.axvline(t, color="0.7", linewidth=1)
axes[0].axhline(0.3, color="k", linewidth=0.5)
axes[0].axhline(-0.3, color="k", linewidth=0.5)
axes[0].set(title="impacts on the walls: %d" % len(hits))
axes[2].set(xlabel="t [s]")
picture.tight_layout()
picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "control.png")
