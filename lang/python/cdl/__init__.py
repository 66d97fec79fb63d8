"""CDL, the contact description language, in Python.

    import cdl
    m = cdl.load("ball.cdl")
    r = m.ball(e=0.7).run(3, backend="events")
    r.y, r["y'"], r["floor.rn"], r["floor.impacts.t"]     # NumPy arrays, without a copy
    r.impacts, r.frame("y", "floor.rn")                   # tables; frames where pandas is there
    s = cdl.step(m.ball, h=1e-3)                          # a motion to be stepped: s.step(0.01); s["y"]

See cdl-python(7); the language is described in cdl(5).
"""
from ._library import EXPECT, IO, MEMORY, MODEL, OK, SOLVER, USAGE, lib as _lib
from ._session import Diagnostic, Error, Interrupted, Place, UnknownName, Warning
from ._model import Experiment, Model, Module, Quantity, Report, load, loads, run
from ._result import OPEN, SLIP, STICK, Picture, Result, Table, View
from ._step import Stepper, step

__version__ = _lib.cdl_version().decode()
__all__ = [
    "load", "loads", "run", "step", "Error", "Diagnostic", "Place", "Interrupted", "UnknownName", "Warning",
    "Module", "Model", "Experiment", "Quantity", "Report", "Result", "Table", "View", "Picture", "Stepper", "OPEN", "STICK", "SLIP",
    "OK", "EXPECT", "USAGE", "MODEL", "SOLVER", "IO", "MEMORY",
]


def load_ipython_extension(shell):
    """%load_ext cdl: cells of the language in Python notebooks, %%cdl."""
    from ._magic import CdlMagics
    shell.register_magics(CdlMagics)
