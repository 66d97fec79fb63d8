"""Results of runs as NumPy arrays, tables and objects."""
import ctypes
import weakref

from . import _library as _l
from ._later import np
from ._session import Error

lib = _l.lib
OPEN, STICK, SLIP = 0, 1, 2     #: states of contacts, as in r["floor.status"]


class _Memory:
    """Numbers of a run as NumPy sees them; keeps the run alive as long as there is an array of them."""

    __slots__ = ("owner", "__array_interface__")

    def __init__(self, owner, address, shape, strides, kind):
        self.owner = owner
        self.__array_interface__ = {
            "version": 3, "data": (address, True), "shape": shape, "strides": strides, "typestr": kind}


class Table:
    """Columns of equal length with names: impacts, nodes of a rod, points of an experiment.

    t["impulse"] or t.impulse is a column, len(t) the number of rows, t.frame() a pandas frame.
    """

    def __init__(self, columns, units=None):
        self._columns = dict(columns)
        self.units = dict(units or {})

    def keys(self):
        return self._columns.keys()

    def items(self):
        return self._columns.items()

    def values(self):
        return self._columns.values()

    def __iter__(self):
        return iter(self._columns)

    def __len__(self):
        return len(next(iter(self._columns.values()), ()))

    def __contains__(self, name):
        return name in self._columns

    def __getitem__(self, name):
        try:
            return self._columns[name]
        except KeyError:
            raise KeyError(_unknown("column", name, self._columns)) from None

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self._columns[name]
        except KeyError:
            raise AttributeError(_unknown("column", name, self._columns)) from None

    def __dir__(self):
        return sorted(set(super().__dir__()) | set(self._columns))

    def __repr__(self):
        return "Table of %d rows: %s" % (len(self), ", ".join(self._columns))

    def frame(self):
        """The table as a pandas frame; a column of vectors becomes several, x[1], x[2], ..."""
        import pandas
        columns = {}
        for name, x in self._columns.items():
            if any(isinstance(one, tuple) for one in x):
                columns[name] = pandas.Series(list(x))    # shapes stay what they are
                continue
            x = np.asarray(x)
            if x.ndim < 2:
                columns[name] = x
                continue
            for at in np.ndindex(x.shape[1:]):
                columns[name + "".join("[%d]" % (k + 1) for k in at)] = x[(slice(None),) + at]
        return pandas.DataFrame(columns)


def _unknown(what, name, names):
    import difflib
    close = difflib.get_close_matches(str(name), [str(n) for n in names], 1)
    return "no %s '%s'%s" % (what, name, "; did you mean '%s'?" % close[0] if close else "")


class View:
    """An object among the results: a constraint, a part, a rod, a function.

    Members are attributes (r.floor.rn), indices and calls are those of the language (r.small[2].p, r.wire.x(0.5)).
    """

    def __init__(self, result, expression, text, members):
        self._result, self._expression, self._text, self._members = result, expression, text, members

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self._result["%s.%s" % (self._expression, name)]
        except Error as e:
            raise AttributeError(str(e)) from None

    def __getitem__(self, index):
        if isinstance(index, str):
            return self._result["%s.%s" % (self._expression, index)]
        index = index if isinstance(index, tuple) else (index,)
        return self._result["%s[%s]" % (self._expression, ", ".join(str(int(k)) for k in index))]

    def __call__(self, *arguments):
        return self._result["%s(%s)" % (self._expression, ", ".join(repr(float(x)) for x in arguments))]

    def __dir__(self):
        return sorted(set(super().__dir__()) | set(self._members))

    def __repr__(self):
        return "<%s: %s>" % (self._expression, self._text)


class Picture(bytes):
    """A picture in memory; notebooks show it.  p.save("y.svg") writes it."""

    def save(self, path):
        with open(path, "wb") as f:
            f.write(self)

    def _repr_svg_(self):
        begin = self[:500].find(b"<svg")     # without the declaration of XML, which has no place inside a page
        return self[begin:].decode("utf-8") if begin >= 0 else None

    def _repr_png_(self):
        return bytes(self) if self[:8] == b"\x89PNG\r\n\x1a\n" else None

    def _repr_mimebundle_(self, include=None, exclude=None):
        """As notebooks want it.  SVG is an image of a page, too: nbconvert removes drawings that stand in the page."""
        import base64
        import html
        svg, data = self._repr_svg_(), base64.b64encode(self).decode()
        if svg:
            data = base64.b64encode(svg.encode()).decode()
            return {"image/svg+xml": svg, "text/html": '<img src="data:image/svg+xml;base64,%s"/>' % data}
        if self._repr_png_():
            return {"image/png": data}
        if self[:4] == b"GIF8":
            return {"image/gif": data, "text/html": '<img src="data:image/gif;base64,%s"/>' % data}
        page = html.escape(self.decode("utf-8", "replace"), quote=True)
        return {"text/html": '<iframe srcdoc="%s" width="100%%" height="560" style="border:0"></iframe>' % page}

    def __repr__(self):
        return "<picture of %d bytes>" % len(self)


class Result:
    """What a run left behind.

    Names of the model are attributes: r.y, r.floor.rn.  r["..."] takes any expression of the language: r["y'"],
    r["floor.impacts.t"], r["y(1.5)"], r["max(energy)"].  Samples are NumPy arrays that show the memory of the run
    itself, read-only; they stay valid as long as they are referred to.
    """

    def __init__(self, session, handle):
        self._session, self._handle = session, handle
        self._known = {}
        summary = _l.Summary()
        session.quick(lib.cdl_summarise, handle, ctypes.byref(summary))
        self.model = summary.model.decode()          #: name of the model
        self.backend = summary.backend.decode()      #: what ran it
        self.ended = summary.ended.decode()          #: "ok", "stopped", "interrupted" or "failed"
        self.message = summary.message.decode()      #: why it failed
        self.t_end = summary.t_end
        self.seconds = summary.seconds               #: computing time
        self.samples, self.steps = summary.samples, summary.steps
        weakref.finalize(self, session.dead.append, handle).atexit = False

    def _array(self, r):
        kind = "|u1" if r.kind == _l.STATES else "<f8"
        shape, strides = tuple(r.shape[:r.rank]), tuple(r.stride[:r.rank])
        if 0 in shape or not r.at:
            return np.zeros(shape, kind)
        if r.lasting:
            return np.asarray(_Memory(self, r.at, shape, strides, kind))
        return np.array(_Memory(None, r.at, shape, strides, kind))

    def _parts(self, n):
        parts = []
        for k in range(n):
            p = _l.Result()
            lib.cdl_part(self._session.handle, k, ctypes.byref(p))
            parts.append(p)
        return parts

    def _value(self, r, expression):
        if r.kind in (_l.NUMBERS, _l.STATES):
            return self._array(r) if r.rank else ctypes.c_double.from_address(r.at).value
        if r.kind == _l.TRUTH:
            return ctypes.c_double.from_address(r.at).value != 0
        if r.kind == _l.TEXT:
            return r.text.decode()
        if r.kind == _l.TABLE:
            parts = self._parts(r.parts)
            return Table({p.name.decode(): self._value(p, None) for p in parts},
                         {p.name.decode(): p.unit.decode() for p in parts})
        if r.kind == _l.LIST:
            values = [self._value(p, "%s[%d]" % (expression, k + 1)) for k, p in enumerate(self._parts(r.parts))]
            if values and all(isinstance(v, np.ndarray) and v.shape == values[0].shape for v in values):
                return np.stack(values)
            return values
        members = [p.name.decode() for p in self._parts(r.parts)] if r.kind == _l.OBJECT else []
        return View(self, expression, r.text.decode(), members)

    def __getitem__(self, expression):
        known = self._known.get(expression)
        if known is not None:
            return known[0]
        if not isinstance(expression, str):
            raise TypeError("results are found by name: r[\"y\"], r[\"floor.rn\"]")
        r = _l.Result()
        with self._session.lock:
            self._session.quick(lib.cdl_get, self._handle, expression.encode(), ctypes.byref(r), asked=True)
            value = self._value(r, expression)
            if r.lasting:
                # an array refers to the result; to keep it here would make a circle
                return value
        if not isinstance(value, View):
            self._known[expression] = (value, r.unit.decode())
        return value

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except Error as e:
            raise AttributeError(str(e)) from None

    def unit(self, expression):
        """The unit of a result: "m/s", "1" when it has none, "" when it is not known."""
        r = _l.Result()
        with self._session.lock:
            self._session.quick(lib.cdl_get, self._handle, expression.encode(), ctypes.byref(r), asked=True)
            return r.unit.decode()

    def _list(self):
        rows, n = ctypes.POINTER(_l.Result)(), ctypes.c_size_t()
        with self._session.lock:
            self._session.quick(lib.cdl_results, self._handle, ctypes.byref(rows), ctypes.byref(n))
            return [(r.name.decode(), r.kind, tuple(r.shape[:r.rank]), r.unit.decode(), bool(r.samples))
                    for r in rows[:n.value]]

    @property
    def names(self):
        """Names of all results."""
        return [row[0] for row in self._list()]

    def describe(self):
        """A table of all results: name, kind, shape, unit."""
        kinds = ("numbers", "truth", "states", "text", "list", "table", "object", "function")
        rows = self._list()
        return Table({"name": [r[0] for r in rows], "kind": [kinds[r[1]] for r in rows],
                      "shape": [r[2] for r in rows], "unit": [r[3] for r in rows]})

    def __dir__(self):
        own = {row[0].split(".")[0] for row in self._list()}
        return sorted(set(super().__dir__()) | {n for n in own if n.isidentifier()})

    @property
    def impacts(self):
        """Impacts of all constraints by time: constraint, t, pre, post, impulse."""
        names = [row[0] for row in self._list() if row[1] == _l.TABLE and row[0].endswith(".impacts")]
        columns = {"constraint": [], "t": [], "pre": [], "post": [], "impulse": []}
        for name in names:
            table = self[name]
            columns["constraint"].append(np.full(len(table["t"]), name[:-len(".impacts")], dtype=object))
            for c in ("t", "pre", "post", "impulse"):
                columns[c].append(table[c])
        joined = {c: np.concatenate(x) if x else np.zeros(0) for c, x in columns.items()}
        order = np.argsort(joined["t"], kind="stable")
        return Table({c: x[order] for c, x in joined.items()})

    def frame(self, *names):
        """Results over the samples as a pandas frame, indexed by t; without names all dofs and rates.

        r.frame("y", "floor.rn") or r.frame(["y", "floor.rn"])
        """
        import pandas
        if len(names) == 1 and not isinstance(names[0], str):
            names = names[0]
        if not names:
            names = [row[0] for row in self._list()
                     if row[4] and row[1] == _l.NUMBERS and "." not in row[0] and row[0] != "t"]
        table = Table({name: self[name] for name in names}).frame()
        table.index = pandas.Index(self["t"], name="t")
        return table

    def picture(self, what, format="svg", **keys):
        """A plot as the language makes it (needs gnuplot): r.picture("y against t", title="a ball")."""
        block = {"file": "picture." + format, **keys}
        statement = "plot %s { %s }" % (what, ", ".join(
            "%s = %s" % (k, '"%s"' % v.replace('"', "'") if isinstance(v, str) else v) for k, v in block.items()))
        bytes_, n = ctypes.c_void_p(), ctypes.c_size_t()
        with self._session.lock:
            self._session.quick(lib.cdl_picture, self._handle, statement.encode(), ctypes.byref(bytes_),
                                ctypes.byref(n))
            return Picture(ctypes.string_at(bytes_, n.value))

    def __repr__(self):
        return "<result of %s: %s, %d samples to t = %g, %s>" % (
            self.model, self.backend, self.samples, self.t_end, self.ended)
