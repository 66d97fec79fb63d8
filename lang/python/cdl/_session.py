"""A session of the library: calls one at a time, what it says, interrupts, errors."""
import collections
import ctypes
import re
import signal
import threading
import warnings
import weakref

from . import _library as _l

lib = _l.lib


class Error(Exception):
    """What is wrong, as the command would print it: place, source line, caret, hint.

    status    how the call ended: cdl.MODEL (the text has errors), cdl.SOLVER (a run failed), ...
    file, line, column    of the first message, where it has a place; else None
    result    what a run that failed left behind, or None
    """

    _PLACE = re.compile(r"^(?P<file>[^\n]*?):(?P<line>\d+):(?P<column>\d+): ", re.M)

    def __init__(self, message, status=_l.MODEL, result=None):
        super().__init__(message)
        self.status = status
        self.result = result
        place = self._PLACE.search(message)
        self.file = place["file"] if place else None
        self.line = int(place["line"]) if place else None
        self.column = int(place["column"]) if place else None


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


class Session:
    def __init__(self):
        self.handle = lib.cdl_new(None)
        if not self.handle:
            raise MemoryError("no memory for a session of CDL")
        self.lock = threading.RLock()
        self.out, self.err = [], []
        self.interrupts = _Interrupts()
        self.dead = collections.deque()     # runs that nobody refers to: dropped at the next call
        # closures over lists, not over self: else the session would keep itself alive
        out, err, interrupts = self.out, self.err, self.interrupts
        self._callbacks = _l.Callbacks(
            _l.Callbacks.Text(lambda ud, text, n: out.append(ctypes.string_at(text, n))),
            _l.Callbacks.Text(lambda ud, text, n: err.append(ctypes.string_at(text, n))),
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

    def quick(self, function, *arguments):
        """A call that ends at once; raises Error."""
        with self.lock:
            self._before()
            status = function(self.handle, *arguments)
            if status:
                self.fail(status)
            return status

    def fail(self, status, result=None):
        text = self.text_err().rstrip("\n")
        if status == _l.MEMORY:
            raise MemoryError(text or "CDL has no memory left")
        raise Error(text or "cdl: " + {_l.USAGE: "not understood", _l.SOLVER: "the run failed"}.get(status, "failed"),
                    status, result)

    def warn(self):
        """What was said beside results: warnings become Python's."""
        text = self.text_err()
        if ": warning: " in text:
            warnings.warn("\n" + text.rstrip("\n"), Warning, stacklevel=4)

    def long(self, function, *arguments, partial=None, allowed=(_l.OK, _l.EXPECT), progress=None):
        """A call that may take long: Ctrl-C ends it in order.  partial() makes what a failed run left."""
        with self.lock:
            self._before()
            heard, raised = None, []
            if progress is not None:
                def tell(ud, model, done):
                    try:
                        progress(done)
                    except BaseException as e:      # ends the run, and is raised when it has ended
                        raised.append(e)
                        self.interrupts.count += 1
                heard = _l.Progress(tell)
                lib.cdl_set_progress(self.handle, heard, None)
            try:
                with self.interrupts:
                    status = function(self.handle, *arguments)
                stopped = self.interrupts.count
            finally:
                self.interrupts.count = 0
                if heard is not None:
                    lib.cdl_set_progress(self.handle, _l.Progress(), None)
            if raised:
                raise raised[0]
            if stopped:
                e = Interrupted()
                e.result = partial() if partial else None
                raise e
            if status not in allowed:
                self.fail(status, partial() if partial and status == _l.SOLVER else None)
            self.warn()
            return status
