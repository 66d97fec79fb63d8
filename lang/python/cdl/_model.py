"""Texts of the language: models, experiments, what they define and how they are run."""
import collections
import ctypes
import math
import os

from . import _library as _l
from ._later import np
from ._result import Result, Table, _unknown
from ._session import Error, Session

lib = _l.lib

Quantity = collections.namedtuple("Quantity", "value unit lo hi doc rate structural")
Quantity.__doc__ = """A parameter or a degree of freedom: its value, unit, bounds and ## comment.
rate: initial rate of a degree of freedom; structural: changing it compiles the model anew."""


def _number(x):
    x = float(x)
    if math.isnan(x):
        raise ValueError("not a number (NaN) cannot be the value of a parameter")
    return "inf" if x == math.inf else "-inf" if x == -math.inf else repr(x)


def _expression(x):
    """A Python value as the language writes it."""
    if isinstance(x, str):
        return x
    if isinstance(x, bool):
        return "true" if x else "false"
    if hasattr(x, "tolist"):
        x = x.tolist()
    if not isinstance(x, (list, tuple)):
        return _number(x)
    if x and isinstance(x[0], (list, tuple)):
        return "[%s]" % "; ".join(", ".join(_number(v) for v in row) for row in x)
    return "[%s]" % ", ".join(_number(v) for v in x)


def _call(name, arguments):
    return "%s(%s)" % (name, ", ".join("%s = %s" % (k, _expression(v)) for k, v in arguments.items()))


def _with(backend, options):
    if backend is None and options:
        raise TypeError("%s: options belong to a backend: run(3, backend=\"sweeping\", h=1e-3)" % ", ".join(options))
    if backend is None:
        return ""
    if "(" in backend and options:
        raise TypeError("give options in the text of the backend or as arguments, not both")
    return backend if "(" in backend else _call(backend, options)


def _set(session, option, value):
    if lib.cdl_set(session.handle, option.encode(), os.fsencode(value)):
        raise ValueError("%r cannot be the value of %s" % (os.fspath(value), option))


def _numbers_of(session, expression):
    """The numbers of an expression such as "5 [mm]", and its unit."""
    r = _l.Result()
    session.quick(lib.cdl_get, None, expression.encode(), ctypes.byref(r))
    if r.kind != _l.NUMBERS:
        raise TypeError("'%s' is not a number" % expression)
    n = 1
    for k in range(r.rank):
        n *= r.shape[k]
    return list((ctypes.c_double * n).from_address(r.at)), r.unit.decode()


def _flat(x):
    if isinstance(x, (list, tuple)):
        return [v for part in x for v in _flat(part)]
    return [float(x)]


class _Given:
    """Values of parameters as the library takes them; it refers to memory that lives here."""

    def __init__(self, model, params):
        session = model._module._session
        self.rows = (_l.Numbers * max(1, len(params)))()
        self.n = len(params)
        self.keep = []
        for k, (name, x) in enumerate(params.items()):
            x = x.tolist() if hasattr(x, "tolist") else x
            if isinstance(x, str):
                values, unit = _numbers_of(session, x)
                self._same_unit(model, name, x, unit)
            else:
                values = _flat(x)
            numbers = (ctypes.c_double * len(values))(*values)
            text = name.encode()
            self.keep += [numbers, text]
            self.rows[k] = _l.Numbers(text, ctypes.cast(numbers, ctypes.POINTER(ctypes.c_double)), len(values))


    @staticmethod
    def _same_unit(model, name, text, unit):
        known = Model(model._module, model.name, "").params if unit else {}
        declared = known[name].unit if name in known else ""
        if unit and declared and unit != declared:
            raise Error("error: the value of parameter '%s' = %s has another dimension: [%s] against [%s]"
                        % (name, text, unit, declared))


class Model:
    """A model.  m.ball(e=0.7) is the model with other values of parameters; .run(...) runs it, .step(...) steps it.

    Values are numbers, lists, arrays, or text of the language ("5 [mm]"), which is checked for its unit.
    """

    def __init__(self, module, name, doc, params=None):
        self._module, self.name = module, name
        self._given = dict(params or {})
        self._doc = doc
        self.__doc__ = doc or "Model %s of %s." % (name, module.name)

    def __call__(self, **params):
        return Model(self._module, self.name, self._doc, {**self._given, **params})

    def _quantities(self, function):
        session = self._module._session
        rows, n = ctypes.POINTER(_l.Quantity)(), ctypes.c_size_t()
        with session.lock:
            given = _Given(self, self._given)
            session.quick(function, self.name.encode(), given.rows, given.n, ctypes.byref(rows), ctypes.byref(n))
            return {q.name.decode(): self._quantity(q) for q in rows[:n.value]}

    @staticmethod
    def _quantity(q):

        def array(at, n, shape):
            if not at:
                return None
            return np.array(at[:n]).reshape(shape) if shape else at[0]
        shape = tuple(q.shape[:q.rank])
        value = array(q.at, q.n, shape) if q.given else None
        # rotations are matrices, and turn at vectors
        rate = array(q.rate, q.nrate, shape if q.nrate == q.n else shape[:-1])
        return Quantity(value, q.unit.decode(), q.lo, q.hi, q.doc.decode(), rate, bool(q.structural))

    @property
    def params(self):
        """Parameters by name, with their values in this model; None where a value has to be given."""
        return self._quantities(lib.cdl_parameters)

    @property
    def initial(self):
        """Degrees of freedom by name, with their initial values and rates."""
        return self._quantities(lib.cdl_initial)

    def run(self, duration=None, backend=None, progress=None, **options):
        """Runs the model for a time and gives its results.

        backend: "events", "sweeping", ... with options as arguments (h=1e-3, tolerance=1e-10); without one the best
        is chosen.  progress: a function that gets the fraction done.  Ctrl-C raises cdl.Interrupted, a
        KeyboardInterrupt whose result holds what was computed.
        """
        if isinstance(duration, str) and backend is None and "[" not in duration and not duration[:1].isdigit():
            raise TypeError("the first argument is the duration: run(3, backend=%r)" % duration)
        text = "run " + _call(self.name, self._given)
        if duration is not None:
            text += " for " + _expression(duration)
        how = _with(backend, options)
        text = (text + (" with " + how if how else "")).encode()
        session = self._module._session
        with session.lock:
            before = []

            def result():
                handle = lib.cdl_hold(session.handle)
                return Result(session, handle) if handle and handle not in before else None
            last = lib.cdl_hold(session.handle)
            if last:
                before.append(last)
                session.dead.append(last)
            session.long(lib.cdl_execute, text, len(text), partial=result, progress=progress)
            before.clear()
            return result()

    def step(self, inputs=(), backend="sweeping", **options):
        """A motion of this model to be stepped: see cdl.step."""
        from ._step import Stepper
        return Stepper(self, inputs, backend, options)

    def __repr__(self):
        return "<model %s>" % _call(self.name, self._given)


class Experiment:
    """An experiment of a text: run() runs all its points and gives them as a table."""

    def __init__(self, module, name, doc):
        self._module, self.name = module, name
        self.__doc__ = doc or "Experiment %s of %s." % (name, module.name)

    def run(self, jobs=1, output=None, progress=None):
        """Runs the experiment: a Report, whose points are a table of swept and measured names.

        jobs: how many processes; output: the folder of files that it saves (default: the current one).
        """
        session = self._module._session
        with session.lock:
            for option, value in (("json", "yes"), ("jobs", str(jobs)), ("output", output or "")):
                _set(session, option, value)
            try:
                def report(status=_l.SOLVER):
                    lib.cdl_finish(session.handle)
                    points = _records(session.text_out())
                    return Report([r for r in points if r["experiment"] == self.name], status)
                return report(session.long(_forking(jobs).cdl_experiment, self.name.encode(), progress=progress, partial=report))
            finally:
                lib.cdl_set(session.handle, b"json", b"no")

    def __repr__(self):
        return "<experiment %s>" % self.name


def _forking(jobs):
    """Processes for points are forked: no other thread may hold the interpreter then."""
    return _l.held if jobs > 1 else lib


def _records(text):
    import json
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


class Report:
    """What an experiment or a file did: points (a table), records (as `cdl run --json` prints them), ok."""

    def __init__(self, records, status):
        self.records, self.status = records, status
        self.ok = status == _l.OK
        names = []
        for record in records:
            for name in list(record["point"]) + list(record["measures"]):
                if name not in names:
                    names.append(name)
        columns = {}
        for name in names:
            values = [_plain(r["measures"].get(name, r["point"].get(name))) for r in records]
            try:
                columns[name] = np.array([math.nan if v is None else v for v in values])
            except ValueError:
                columns[name] = np.array(values, dtype=object)
        columns["status"] = np.array([r["status"] for r in records], dtype=object)
        self.points = Table(columns)

    @property
    def expectations(self):
        """All expectations: text, ok, value, bound, label (None: without one)."""
        rows = [e for r in self.records for e in r["expectations"]]
        return Table({k: [e.get(k) for e in rows] for k in ("text", "ok", "value", "bound", "label")})

    def frame(self):
        """The points as a pandas frame."""
        return self.points.frame()

    def __getitem__(self, name):
        return self.points[name]

    def __len__(self):
        return len(self.records)

    def __repr__(self):
        return "<report: %d points, %s>" % (len(self.records), "ok" if self.ok else "not ok")


def _plain(x):
    """Numbers that are not finite stand as strings in JSON."""
    if isinstance(x, list):
        return [_plain(v) for v in x]
    return float(x) if x in ("inf", "-inf", "nan") else x


def value_of(session, expression):
    """The value of an expression where there is no run to keep."""
    r = _l.Result()
    with session.lock:
        session.quick(lib.cdl_get, None, expression.encode(), ctypes.byref(r))
        plain = Result.__new__(Result)
        plain._session, plain._handle, plain._known = session, None, {}
        r.lasting = 0
        return plain._value(r, expression)


class Module:
    """A text of the language: its models and experiments are attributes."""

    def __init__(self, session, name):
        self._session, self.name = session, name
        self.models, self.experiments, self._others = {}, {}, []
        rows, n = ctypes.POINTER(_l.Definition)(), ctypes.c_size_t()
        with session.lock:
            session.quick(lib.cdl_definitions, ctypes.byref(rows), ctypes.byref(n))
            for d in rows[:n.value]:
                kind, own, doc = d.kind.decode(), d.name.decode(), d.doc.decode()
                if kind == "model":
                    self.models[own] = Model(self, own, doc)
                elif kind == "experiment":
                    self.experiments[own] = Experiment(self, own, doc)
                else:
                    self._others.append(own)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        for group in ("models", "experiments"):
            found = self.__dict__.get(group, {}).get(name)
            if found is not None:
                return found
        if name in self.__dict__.get("_others", ()):
            return self.eval(name)
        raise AttributeError("%s: %s" % (self.__dict__.get("name"), _unknown(
            "model or experiment", name, list(self.models) + list(self.experiments) + self._others)))

    def __getitem__(self, name):
        try:
            return getattr(self, name)
        except AttributeError as e:
            raise KeyError(str(e)) from None

    def __dir__(self):
        return sorted(set(super().__dir__()) | set(self.models) | set(self.experiments) | set(self._others))

    def eval(self, expression):
        """The value of an expression over the definitions of the text."""
        return value_of(self._session, expression)

    def help(self, name):
        """What the language knows of a name, as :help shows it."""
        with self._session.lock:
            self._session.quick(lib.cdl_help, name.encode())
            return self._session.text_out()

    def __repr__(self):
        return "<%s: %s>" % (self.name, ", ".join(list(self.models) + list(self.experiments)) or "no models")


def load(path):
    """Reads a file of the language and checks it: its models and experiments.  Nothing is run.  Raises cdl.Error."""
    session = Session()
    path = os.fspath(path)
    session.long(lib.cdl_check_file, os.fsencode(path))
    return Module(session, path)


def loads(text, name="<text>"):
    """The same for a text."""
    session = Session()
    data = text.encode()
    session.long(lib.cdl_check_text, name.encode(), data, len(data))
    return Module(session, name)


def run(path, params=None, output=None, jobs=1, problems=None):
    """Runs a whole file, as `cdl run` does: a Report.  params: values of parameters, for all models.

    problems: "x.hdf5" or "x.txt" writes the contact problems of steps below output, see --problems in cdl(1).
    """
    session = Session()
    path = os.fspath(path)
    for option, value in (("json", "yes"), ("jobs", str(jobs)), ("output", output or ""),
                          ("problems", problems or "")):
        _set(session, option, value)
    for name, value in (params or {}).items():
        session.quick(lib.cdl_set_param, name.encode(), _expression(value).encode())
    with session.lock:
        status = session.long(_forking(jobs).cdl_load_file, os.fsencode(path),
                              partial=lambda: Report(_records(session.text_out()), _l.SOLVER))
        lib.cdl_finish(session.handle)
        return Report(_records(session.text_out()), status)
