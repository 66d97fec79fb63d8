"""Motions that are stepped from outside: control loops, co-simulation, learning."""
import ctypes
import weakref

from . import _library as _l
from ._later import np
from ._model import _Given, _call
from ._result import Table
from ._session import Error

lib = _l.lib
_DOUBLES = ctypes.POINTER(ctypes.c_double)


class Stepper:
    """A motion of a model.

    s.step(to) goes on to a time, s.t is where it is.  s["y"], s["y'"], s["floor.rn"] are numbers or arrays, rotations
    s["A"] matrices; s["y"] = 1 sets the state, s["e"] = 0.5 a parameter from now on.  Inputs are parameters named when it is made:
    s["F"] = 2 holds a value, s.input("F", 2, 0.1) a polynomial in the time since now, s.input("F", f) follows a
    function of time.  s.save() is the whole state as bytes, with contact memory and past; s.load(bytes) goes back
    to it.  s.stopped: `stop when` has ended the motion.
    """

    def __init__(self, model, inputs, backend, options):
        session = model._module._session
        how = backend if "(" in backend else _call(backend, options)
        inputs = [inputs] if isinstance(inputs, str) else list(inputs)
        self._made = (model, tuple(inputs), how)
        names = (ctypes.c_char_p * max(1, len(inputs)))(*[n.encode() for n in inputs])
        handle = ctypes.c_void_p()
        with session.lock:
            given = _Given(model, model._given)
            session.quick(lib.cdl_instance_new, model.name.encode(), given.rows, given.n, names, len(inputs),
                          how.encode(), ctypes.byref(handle))
        self._session = session
        self._handle = handle.value
        self._slots = {}
        self._functions = {}
        self.stopped = False
        # the session has to outlive its instances
        weakref.finalize(self, lambda free, handle, keep: free(handle), lib.cdl_instance_free, self._handle,
                         session).atexit = False
        self._step = lib.cdl_instance_step

    def _check(self, status):
        if status == _l.MEMORY:
            raise MemoryError("CDL has no memory left")
        if status:
            raise Error("cdl: " + lib.cdl_instance_message(self._handle).decode(), status)

    def _slot(self, name):
        slot = self._slots.get(name)
        if slot is None:
            n = ctypes.c_size_t()
            k = lib.cdl_instance_find(self._handle, name.encode(), ctypes.byref(n))
            if k < 0:
                raise KeyError(lib.cdl_instance_message(self._handle).decode())
            shape = (ctypes.c_size_t * _l.AXES)()
            rank = lib.cdl_instance_shape(self._handle, k, shape)
            slot = self._slots[name] = (k, (ctypes.c_double * n.value)(), tuple(shape[:rank]))
        return slot

    @property
    def t(self):
        """The time that was reached."""
        return lib.cdl_instance_time(self._handle)

    @property
    def names(self):
        """All that can be read by name."""
        names, k = [], 0
        while True:
            name = lib.cdl_instance_name(self._handle, k)
            if name is None:
                return names
            names.append(name.decode())
            k += 1

    def step(self, to):
        """Goes on to the time `to`; False when `stop when` ended the motion before."""
        status = self._step(self._handle, to)
        self.stopped = status == _l.EXPECT
        if status and not self.stopped:
            self._check(status)
        return not self.stopped

    def __getitem__(self, name):
        k, room, shape = self._slot(name)
        self._check(lib.cdl_instance_get(self._handle, k, room))
        return np.array(room).reshape(shape) if shape else room[0]

    def __setitem__(self, name, value):
        k, room, shape = self._slot(name)
        if len(room) == 1 and isinstance(value, (int, float)):
            room[0] = value
        else:
            value = np.asarray(value, dtype=float)
            np.frombuffer(room).reshape(shape)[...] = value.reshape(shape) if value.size == len(room) else value
        if name in self._made[1]:
            self._functions.pop(name, None)
            self._check(lib.cdl_instance_input(self._handle, k, room, 1))
        else:
            self._check(lib.cdl_instance_set(self._handle, k, room))

    def input(self, name, value, *more):
        """An input from now on: a function of time, or coefficients of a polynomial in the time since now (up to 4).

        A function is taken, in each step(to), as the cubic through its values at both ends and the thirds of the way.
        """
        k, room, shape = self._slot(name)
        if callable(value):
            n = len(room)

            def follow(ud, t, out):
                x = np.ravel(value(t))
                for j in range(n):
                    out[j] = x[j]
            heard = _l.Follow(follow)
            self._check(lib.cdl_instance_function(self._handle, k, heard, None))
            self._functions[name] = heard
            return
        self._functions.pop(name, None)
        c = np.ascontiguousarray(np.stack([np.broadcast_to(np.ravel(x), len(room)) for x in (value, *more)], -1),
                                 dtype=float)
        self._check(lib.cdl_instance_input(self._handle, k, c.ctypes.data_as(_DOUBLES), c.shape[1]))

    @property
    def impacts(self):
        """Impacts of the last step: constraint, member, t, pre, post, impulse."""
        rows = ctypes.POINTER(_l.Impact)()
        n = lib.cdl_instance_impacts(self._handle, ctypes.byref(rows))
        fields = ("t", "pre", "post", "impulse")
        columns = {f: np.array([getattr(x, f) for x in rows[:n]], dtype=float) for f in fields}
        return Table({"constraint": [x.constraint.decode() for x in rows[:n]],
                      "member": np.array([x.member for x in rows[:n]], dtype=int), **columns})

    def save(self):
        """The whole state as bytes."""
        at, n = ctypes.c_void_p(), ctypes.c_size_t()
        self._check(lib.cdl_instance_save(self._handle, ctypes.byref(at), ctypes.byref(n)))
        return ctypes.string_at(at, n.value)

    def load(self, state):
        """Goes back to a state that save gave, of the same model with the same parameters."""
        self._check(lib.cdl_instance_load(self._handle, state, len(state)))
        self.stopped = False

    def copy(self):
        """Another motion, at the same state.  Inputs that follow functions hold their values in it."""
        model, inputs, how = self._made
        other = Stepper(model, inputs, how if "(" in how else how + "()", {})
        other.load(self.save())
        return other

    def __repr__(self):
        return "<%s at t = %g>" % (self._made[0].name, self.t)


def step(model, inputs=(), backend="sweeping", **options):
    """A motion of a model to be stepped: s = cdl.step(m.cart, inputs="F", h=1e-3); s["F"] = 1; s.step(0.01).

    Several may run at once, in several threads; each is used by one thread at a time.
    """
    return Stepper(model, inputs, backend, options)
