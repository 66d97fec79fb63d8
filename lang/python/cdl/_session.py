"""A session of the library: calls one at a time, what it says, interrupts, errors."""
import collections
import ctypes
import signal
import threading
import warnings
import weakref

from . import _library as _l

lib = _l.lib


Place = collections.namedtuple("Place", "file line column end_line end_column")
Place.__doc__ = """A place in a text.  Lines and columns (in characters) count from 1; the end lies just behind it."""

Diagnostic = collections.namedtuple("Diagnostic", "code severity message at hints seconds replacement")
Diagnostic.__doc__ = """One message: its code ("unknown-name"), severity ("error", "warning" or "note") and place.

at             a Place, or None
hints          texts
seconds        further places, as pairs of a Place and what there is to say about it
replacement    what would mend it: a pair of a Place and the text to put there, or None
"""


class Error(Exception):
    """What is wrong, as the command would print it: place, source line, caret, hint.

    status    how the call ended: cdl.MODEL (the text has errors), cdl.SOLVER (a run failed), ...
    diagnostics    all messages of the call as structures: a tuple of cdl.Diagnostic
    file, line, column    of the first error, where it has a place; else None
    result    what a run that failed left behind, or None
    """

    def __init__(self, message, status=_l.MODEL, result=None, diagnostics=()):
        super().__init__(message)
        self.status = status
        self.result = result
        self.diagnostics = tuple(diagnostics)
        at = next((d.at for d in self.diagnostics if d.severity == "error"), None)
        self.file, self.line, self.column = at[:3] if at else (None, None, None)


class UnknownName(Error, KeyError):
    """A result that is asked for does not exist: r["nothing"]."""

    __str__ = Exception.__str__     # not that of a KeyError, which would show the text quoted


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a run.  result is what was computed until then, or None."""

    result = None


class Warning(UserWarning):
    """Something in a model that is allowed and suspicious."""


class _Interrupts:
    """Counts Ctrl-C while the library works, in the main thread, where Python's own handler is in force."""

    def __init__(self):
        self.count = 0
        self.old = None

    def _hear(self, number, frame):
        self.count += 1

    def __enter__(self):
        self.count = 0
        self.old = None
        if (threading.current_thread() is threading.main_thread()
                and signal.getsignal(signal.SIGINT) is signal.default_int_handler):
            self.old = signal.signal(signal.SIGINT, self._hear)
        return self

    def __exit__(self, *what):
        if self.old is not None:
            signal.signal(signal.SIGINT, self.old)


def _taker(parts, heard, is_error):
    """Keeps text, and passes it on."""
    def take(ud, text, n):
        data = ctypes.string_at(text, n)
        parts.append(data)
        if heard is not None:
            heard(data, is_error)
    return _l.Callbacks.Text(take)


def _place(span):
    if span.file is None:
        return None
    return Place(span.file.decode("utf-8", "replace"), span.begin.line, span.begin.column,
                 span.end.line, span.end.column)


def _diagnostic(d):
    severity = ("error", "warning", "note")[d.severity]
    seconds = tuple((_place(x.at), x.message.decode()) for x in d.second[:d.nsecond])
    mended = (_place(d.replace), d.replacement.decode()) if d.replacement is not None else None
    return Diagnostic(d.code.decode(), severity, d.message.decode("utf-8", "replace"), _place(d.at),
                      tuple(h.decode() for h in d.hint[:d.nhint]), seconds, mended)


class Session:
    """heard(text, is_error), where it is given, gets what the library says when it says it."""

    def __init__(self, heard=None):
        self.handle = lib.cdl_new(None)
        if not self.handle:
            raise MemoryError("no memory for a session of CDL")
        self.lock = threading.RLock()
        self.out, self.err = [], []
        self.interrupts = _Interrupts()
        self.dead = collections.deque()     # runs that nobody refers to: dropped at the next call
        # closures over lists, not over self: else the session would keep itself alive
        interrupts = self.interrupts
        self._callbacks = _l.Callbacks(_taker(self.out, heard, False), _taker(self.err, heard, True),
                                       _l.Callbacks.Interrupted(lambda ud: interrupts.count), None)
        lib.cdl_set_callbacks(self.handle, ctypes.byref(self._callbacks))
        for option, value in (("quiet", "yes"), ("manifest", "no")):
            lib.cdl_set(self.handle, option.encode(), value.encode())
        weakref.finalize(self, lib.cdl_free, self.handle).atexit = False

    def _before(self):
        self.out.clear()
        self.err.clear()
        while self.dead:
            lib.cdl_drop(self.handle, self.dead.popleft())

    def text_out(self):
        return b"".join(self.out).decode("utf-8", "replace")

    def text_err(self):
        return b"".join(self.err).decode("utf-8", "replace")

    def quick(self, function, *arguments, asked=False):
        """A call that ends at once; raises Error, or UnknownName where a name was asked for."""
        with self.lock:
            self._before()
            status = function(self.handle, *arguments)
            if status:
                self.fail(status, asked=asked)
            return status

    def diagnostics(self):
        """What the last call has reported, as structures."""
        rows = ctypes.POINTER(_l.Diagnostic)()
        n = lib.cdl_diagnostics(self.handle, ctypes.byref(rows))
        return [_diagnostic(d) for d in rows[:n]]

    def fail(self, status, partial=None, asked=False):
        """Raises what the last call has reported; partial() makes what it left; asked: it was asked for by name."""
        text, found = self.text_err().rstrip("\n"), self.diagnostics()
        if status == _l.MEMORY:
            raise MemoryError(text or "CDL has no memory left")
        result = partial() if partial and status == _l.SOLVER else None     # calls the library: the text is read by now
        kind = UnknownName if found and found[0].code in ("unknown-name", "unknown-member") and asked else Error
        raise kind(text or "cdl: " + {_l.USAGE: "not understood", _l.SOLVER: "the run failed"}.get(status, "failed"),
                   status, result, found)

    def warn(self):
        """What was said beside results: warnings become Python's."""
        text = self.text_err()
        if ": warning: " in text:
            warnings.warn("\n" + text.rstrip("\n"), Warning, stacklevel=4)

    def work(self, function, *arguments, progress=None):
        """A call that may take long, and that Ctrl-C ends in order: its status, and whether it was interrupted."""
        self._before()
        heard, raised = None, []
        if progress is not None:
            def report(ud, model, done):
                try:
                    progress(done)
                except BaseException as e:      # ends the run, and is raised when it has ended
                    raised.append(e)
                    self.interrupts.count += 1
            heard = _l.Progress(report)
            lib.cdl_set_progress(self.handle, heard, None)
        try:
            with self.interrupts:
                status = function(self.handle, *arguments)
            stopped = self.interrupts.count > 0
        finally:
            self.interrupts.count = 0
            if heard is not None:
                lib.cdl_set_progress(self.handle, _l.Progress(), None)
        if raised:
            raise raised[0]
        return status, stopped

    def long(self, function, *arguments, partial=None, allowed=(_l.OK, _l.EXPECT), progress=None):
        """The same; raises what went wrong.  partial() makes what a failed run left."""
        with self.lock:
            status, stopped = self.work(function, *arguments, progress=progress)
            if stopped:
                e = Interrupted()
                e.result = partial() if partial else None
                raise e
            if status not in allowed:
                self.fail(status, partial)
            self.warn()
        if progress is not None:
            progress(1.0)       # bars end full, of short runs too
        return status
