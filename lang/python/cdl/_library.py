"""The shared library libcdl by ctypes: where it is, its structures and functions (see cdl.h and cdl(3))."""
import ctypes
import os
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_double, c_int, c_size_t, c_ssize_t, c_void_p

OK, EXPECT, USAGE, MODEL, SOLVER, IO, MEMORY = range(7)
NUMBERS, TRUTH, STATES, TEXT, LIST, TABLE, OBJECT, FUNCTION = range(8)
AXES = 6


class Callbacks(Structure):
    Text = CFUNCTYPE(None, c_void_p, c_void_p, c_size_t)
    Interrupted = CFUNCTYPE(c_int, c_void_p)
    _fields_ = [("out", Text), ("err", Text), ("interrupted", Interrupted), ("ud", c_void_p)]


Progress = CFUNCTYPE(None, c_void_p, c_char_p, c_double)
Written = CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)
Follow = CFUNCTYPE(None, c_void_p, c_double, POINTER(c_double))


class Result(Structure):
    _fields_ = [
        ("name", c_char_p), ("unit", c_char_p), ("text", c_char_p), ("at", c_void_p),
        ("length", c_size_t), ("parts", c_size_t), ("shape", c_size_t * AXES), ("stride", c_ssize_t * AXES),
        ("first", c_int * AXES), ("kind", c_int), ("rank", c_int), ("samples", c_int), ("lasting", c_int),
    ]


class Summary(Structure):
    _fields_ = [
        ("model", c_char_p), ("backend", c_char_p), ("ended", c_char_p), ("message", c_char_p),
        ("duration", c_double), ("t_end", c_double), ("seconds", c_double),
        ("samples", c_size_t), ("steps", c_size_t),
    ]


class Definition(Structure):
    _fields_ = [("kind", c_char_p), ("name", c_char_p), ("doc", c_char_p)]


class Numbers(Structure):
    _fields_ = [("name", c_char_p), ("at", POINTER(c_double)), ("n", c_size_t)]


class Quantity(Structure):
    _fields_ = [
        ("name", c_char_p), ("doc", c_char_p), ("unit", c_char_p), ("at", POINTER(c_double)),
        ("rate", POINTER(c_double)), ("lo", c_double), ("hi", c_double), ("n", c_size_t),
        ("nrate", c_size_t), ("shape", c_size_t * AXES), ("first", c_int * AXES), ("rank", c_int), ("given", c_int),
        ("structural", c_int),
    ]


class Impact(Structure):
    _fields_ = [
        ("constraint", c_char_p), ("t", c_double), ("pre", c_double), ("post", c_double), ("impulse", c_double),
        ("member", c_int),
    ]


class Position(Structure):
    _fields_ = [("line", c_size_t), ("column", c_size_t), ("column16", c_size_t), ("byte", c_size_t)]


class Span(Structure):
    _fields_ = [("file", c_char_p), ("begin", Position), ("end", Position)]


class Remark(Structure):
    _fields_ = [("at", Span), ("message", c_char_p)]


class Diagnostic(Structure):
    _fields_ = [
        ("code", c_char_p), ("severity", c_int), ("at", Span), ("message", c_char_p),
        ("hint", POINTER(c_char_p)), ("nhint", c_size_t), ("second", POINTER(Remark)), ("nsecond", c_size_t),
        ("replacement", c_char_p), ("replace", Span),
    ]


class Choice(Structure):
    _fields_ = [("kind", c_int), ("name", c_char_p), ("detail", c_char_p), ("doc", c_char_p)]


_HANDLE = c_void_p
_FUNCTIONS = {
    "cdl_version": (c_char_p, []),
    "cdl_new": (_HANDLE, [c_void_p]),
    "cdl_free": (None, [_HANDLE]),
    "cdl_set_callbacks": (None, [_HANDLE, POINTER(Callbacks)]),
    "cdl_set_progress": (None, [_HANDLE, Progress, c_void_p]),
    "cdl_set": (c_int, [_HANDLE, c_char_p, c_char_p]),
    "cdl_set_param": (c_int, [_HANDLE, c_char_p, c_char_p]),
    "cdl_load_file": (c_int, [_HANDLE, c_char_p]),
    "cdl_run_text": (c_int, [_HANDLE, c_char_p, c_char_p, c_size_t]),
    "cdl_check_file": (c_int, [_HANDLE, c_char_p]),
    "cdl_check_text": (c_int, [_HANDLE, c_char_p, c_char_p, c_size_t]),
    "cdl_finish": (c_int, [_HANDLE]),
    "cdl_set_written": (None, [_HANDLE, Written, c_void_p]),
    "cdl_diagnostics": (c_size_t, [_HANDLE, POINTER(POINTER(Diagnostic))]),
    "cdl_complete": (c_int, [_HANDLE, c_char_p, c_size_t]),
    "cdl_name_at": (c_char_p, [_HANDLE, c_char_p, c_size_t]),
    "cdl_choices": (c_size_t, [_HANDLE, c_size_t, POINTER(c_size_t), POINTER(POINTER(Choice))]),
    "cdl_describe": (c_int, [_HANDLE, c_size_t, POINTER(Span), POINTER(c_char_p)]),
    "cdl_type": (c_int, [_HANDLE, c_char_p]),
    "cdl_reset": (c_int, [_HANDLE]),
    "cdl_show_text": (c_int, [_HANDLE, c_char_p, c_char_p, c_char_p, c_size_t]),
    "cdl_help": (c_int, [_HANDLE, c_char_p]),
    "cdl_example": (c_char_p, [_HANDLE, c_char_p, c_size_t, POINTER(c_char_p), POINTER(c_char_p)]),
    "cdl_name": (c_char_p, [_HANDLE, c_char_p, c_size_t]),
    "cdl_hold": (_HANDLE, [_HANDLE]),
    "cdl_drop": (None, [_HANDLE, _HANDLE]),
    "cdl_summarise": (c_int, [_HANDLE, _HANDLE, POINTER(Summary)]),
    "cdl_get": (c_int, [_HANDLE, _HANDLE, c_char_p, POINTER(Result)]),
    "cdl_part": (c_int, [_HANDLE, c_size_t, POINTER(Result)]),
    "cdl_results": (c_int, [_HANDLE, _HANDLE, POINTER(POINTER(Result)), POINTER(c_size_t)]),
    "cdl_execute": (c_int, [_HANDLE, c_char_p, c_size_t]),
    "cdl_experiment": (c_int, [_HANDLE, c_char_p]),
    "cdl_picture": (c_int, [_HANDLE, _HANDLE, c_char_p, POINTER(c_void_p), POINTER(c_size_t)]),
    "cdl_definitions": (c_int, [_HANDLE, POINTER(POINTER(Definition)), POINTER(c_size_t)]),
    "cdl_parameters": (c_int, [_HANDLE, c_char_p, POINTER(Numbers), c_size_t, POINTER(POINTER(Quantity)),
                               POINTER(c_size_t)]),
    "cdl_initial": (c_int, [_HANDLE, c_char_p, POINTER(Numbers), c_size_t, POINTER(POINTER(Quantity)),
                            POINTER(c_size_t)]),
    "cdl_instance_new": (c_int, [_HANDLE, c_char_p, POINTER(Numbers), c_size_t, POINTER(c_char_p), c_size_t,
                                 c_char_p, POINTER(_HANDLE)]),
    "cdl_instance_free": (None, [_HANDLE]),
    "cdl_instance_step": (c_int, [_HANDLE, c_double]),
    "cdl_instance_time": (c_double, [_HANDLE]),
    "cdl_instance_message": (c_char_p, [_HANDLE]),
    "cdl_instance_find": (c_int, [_HANDLE, c_char_p, POINTER(c_size_t)]),
    "cdl_instance_shape": (c_int, [_HANDLE, c_int, POINTER(c_size_t)]),
    "cdl_instance_name": (c_char_p, [_HANDLE, c_size_t]),
    "cdl_instance_get": (c_int, [_HANDLE, c_int, POINTER(c_double)]),
    "cdl_instance_set": (c_int, [_HANDLE, c_int, POINTER(c_double)]),
    "cdl_instance_input": (c_int, [_HANDLE, c_int, POINTER(c_double), c_size_t]),
    "cdl_instance_function": (c_int, [_HANDLE, c_int, Follow, c_void_p]),
    "cdl_instance_impacts": (c_size_t, [_HANDLE, POINTER(POINTER(Impact))]),
    "cdl_instance_save": (c_int, [_HANDLE, POINTER(c_void_p), POINTER(c_size_t)]),
    "cdl_instance_load": (c_int, [_HANDLE, c_char_p, c_size_t]),
}


def _candidates():
    """Places where the library may be, the most explicit one first."""
    named = os.environ.get("CDL_LIBRARY")
    if named:
        yield named
        return
    here = os.path.dirname(os.path.abspath(__file__))
    top = os.path.dirname(os.path.dirname(os.path.dirname(here)))
    built = os.path.join(top, "build", ".libs", "libcdl.so.0")
    if os.path.exists(os.path.join(top, "lang", "cdl.h")) and os.path.exists(built):
        yield built
    try:
        from ._where import LIBDIR  # written by `make install`
        yield os.path.join(LIBDIR, "libcdl.so.0")
    except ImportError:
        pass
    yield "libcdl.so.0"


def _open():
    tried = []
    for name in _candidates():
        try:
            return ctypes.CDLL(name)
        except OSError as e:
            tried.append("  %s" % e)
    raise ImportError(
        "the library libcdl was not found; build it with ./bootstrap build, install it, or let CDL_LIBRARY name it:\n"
        + "\n".join(tried))


lib = _open()
# the same functions, called without giving the interpreter to other threads: for calls that fork
held = ctypes.PyDLL(lib._name)


def _declare(library, name):
    result, arguments = _FUNCTIONS[name]
    try:
        f = getattr(library, name)
    except AttributeError:
        raise ImportError("%s is another version of libcdl: it has no %s" % (library._name, name)) from None
    f.restype, f.argtypes = result, arguments


for _name in _FUNCTIONS:
    _declare(lib, _name)
for _name in ("cdl_experiment", "cdl_load_file", "cdl_run_text"):
    _declare(held, _name)
