"""A block on a moving belt: stick and slip as colours over the phase plane.

    python3 examples/python/stick_slip.py [PICTURE]
"""
import sys

import matplotlib.pyplot as plt
import numpy as np

import cdl

m = cdl.loads("""
## Block on a moving belt; the friction falls with the slip rate.
model belt {
    param m = 1, k = 100, N = 9.81, V = 0.5
    fn mu(v) = 0.2 + 0.2*exp(-v/0.1)
    dof x = 0, x' = 0
    m*x'' + k*x = 0
    constraint rub { normal = N, slip = x' - V, friction = coulomb(mu) }
}
""")

picture, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
r = m.belt(V=0.25).run(3, backend="sweeping", h=1e-3)
sticks = r.rub.status == cdl.STICK
left.plot(r.t, np.where(sticks, r["rub.rt"], np.nan), label="stick")
left.plot(r.t, np.where(sticks, np.nan, r["rub.rt"]), label="slip")
left.set(xlabel="t [s]", ylabel="friction force [N]")
left.legend()
for V in (0.1, 0.2, 0.3):
    r = m.belt(V=V).run(10, backend="sweeping", h=1e-3)
    late = r.t > 8
    right.plot(r.x[late], r["x'"][late], label="V = %g" % V)
right.set(xlabel="x [m]", ylabel="x' [m/s]", title="limit cycles")
right.legend()
picture.tight_layout()
picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "stick_slip.png")
