"""A bouncing ball: height, impacts, and the time to rest over the coefficient of restitution.

    python3 examples/python/ball.py [PICTURE]
"""
import sys

import matplotlib.pyplot as plt
import numpy as np

import cdl

m = cdl.loads("""
## A ball dropped on a rigid floor.
model ball {
    param g = 9.81 [m/s^2], y0 = 1 [m], e in 0..1 = 0.8
    dof y = y0, y' = 0 [m/s]
    y'' = -g
    constraint floor: y >= 0 { impact = newton(e) }
}
experiment rebound {
    sweep e in linspace(0.3, 0.9, 13)
    run ball(e = e) for 20 with events()
    measure T = settle_time(floor)
}
""")

picture, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
for e in (0.6, 0.7, 0.8):
    r = m.ball(e=e).run(3, backend="events")
    left.plot(r.t, r.y, label="e = %g" % e)
    hits = r.floor.impacts
    left.plot(hits.t, np.zeros(len(hits)), "k|", markersize=4)
left.set(xlabel="t [s]", ylabel="y [m]", title="height, impacts marked")
left.legend()

points = m.rebound.run().points
exact = np.linspace(0.3, 0.9, 200)
right.plot(exact, np.sqrt(2/9.81)*(1 + exact)/(1 - exact), label="exact")
right.plot(points.e, points.T, "o", label="computed")
right.set(xlabel="e", ylabel="time to rest [s]", title="after infinitely many impacts")
right.legend()
picture.tight_layout()
picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "ball.png")
