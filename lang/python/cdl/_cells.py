"""Cells of a notebook, executed one after the other in one session: behind the kernel and the magic %%cdl."""
import contextlib
import ctypes
import os
import re
import shutil
import tempfile

from . import _library as _l
from ._model import _expression, _forking, value_of
from ._result import Picture, Result
from ._session import Session

lib = _l.lib
_SHOWN = (".svg", ".png", ".gif", ".html")     # files that notebooks show
_WORD = re.compile(r"[A-Za-z_][\w.']*")


def _hand_over(path, name, texts):
    """Files go to the folder of the notebook; of plots only those whose name stands in the text, since all are shown."""
    plot = name[:-len(name.rpartition(".")[2]) - 1] if name.endswith((".csv", ".gp")) else name
    if plot.endswith(_SHOWN) and not any('"%s"' % plot in text for text in texts):
        return
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    shutil.copyfile(path, name)


class Cells:
    """say(text, is_error) gets text as it comes, show(bundle) pictures.  Definitions and results stay."""

    COMMANDS = {
        "examples": ":examples [NAME]       lists the examples, or loads one",
        "help": ":help [NAME]           this list, or what is known of a name",
        "load": ":load FILE             checks and executes a file, or an example by its name",
        "plot": ":plot A [against B]    a picture here, and no file",
        "reset": ":reset                 forgets definitions and results",
        "set": ":set OPTION VALUE      an option of the session",
        "show": ":show WHAT             model, equations, ir, jacobian or wellposed of all cells so far",
        "type": ":type EXPRESSION       shows the type of its value",
    }

    def __init__(self, say, show):
        self._say, self._show = say, show
        self.failed = []                     # what went to err since the cell began
        self._texts = []                     # cells that were executed, for completion and help
        self._silent = []                    # not empty: nothing is passed on
        self._now = []                       # the text that is being executed
        self._folder = tempfile.TemporaryDirectory(prefix="cdl-")
        self._open()

    def _open(self):
        failed, silent, say, show, now = self.failed, self._silent, self._say, self._show, self._now
        folder = self._folder.name

        def heard(data, is_error):
            text = data.decode("utf-8", "replace").replace(folder + os.sep, "")
            if silent:
                return
            note = text.startswith("cdl: wrote ")
            if note and text.rstrip("\n").endswith(_SHOWN):
                return                       # the picture stands in the notebook
            if is_error and not note:
                failed.append(text)
            else:
                say(text, False)

        def written(ud, path, kind):
            try:
                name = os.fsdecode(path)
                if name.startswith(folder):
                    _hand_over(name, os.path.relpath(name, folder), now)
                if name.endswith(_SHOWN):
                    with open(name, "rb") as f:
                        show(Picture(f.read())._repr_mimebundle_())
            except Exception as e:           # nothing may be raised through the library
                say("cdl: %s\n" % e, True)
        self.session = Session(heard)
        self._written = _l.Written(written)
        lib.cdl_set_written(self.session.handle, self._written, None)
        for option, value in (("quiet", "no"), ("interactive", "yes"), ("colour", "yes"),
                              ("output", self._folder.name)):
            lib.cdl_set(self.session.handle, option.encode(), value.encode())
        self.jobs = 1

    @contextlib.contextmanager
    def _silence(self):
        """Nothing that the session says is passed on, and its text has no colours."""
        self._silent.append(True)
        lib.cdl_set(self.session.handle, b"colour", b"no")
        try:
            yield
        finally:
            lib.cdl_set(self.session.handle, b"colour", b"yes")
            self._silent.pop()

    # -- executing

    def execute(self, text, name):
        """Statements and commands of a cell: the worst status, whether it was interrupted, and what is wrong, as
        text with colours and as structures."""
        self.failed.clear()
        self._now[:] = [text]
        worst, said = _l.OK, []
        with self.session.lock:
            for line, part in _parts(text):
                if part.startswith(":"):
                    status, stopped = self._command(part), False
                else:
                    data = ("\n"*line + part).encode()       # so that messages count lines from the top of the cell
                    status, stopped = self.session.work(_forking(self.jobs).cdl_run_text, name.encode(), data,
                                                        len(data))
                    if status in (_l.OK, _l.EXPECT, _l.SOLVER):     # a run that failed leaves the definitions before it
                        self._keep(part)
                worst = max(worst, status)
                said += self.session.diagnostics()
                if stopped or status > _l.EXPECT:
                    return worst, stopped, self._taken(), said
        return worst, False, self._taken(), said

    def _keep(self, text):
        """A cell that is executed again counts once."""
        if text in self._texts:
            self._texts.remove(text)
        self._texts.append(text)

    def _taken(self):
        text = "".join(self.failed)
        self.failed.clear()
        return text

    def _command(self, line):
        word, _, rest = line[1:].strip().partition(" ")
        if word not in self.COMMANDS:
            self.failed.append("cdl: unknown command ':%s'; there are %s\n"
                               % (word, ", ".join(":" + k for k in self.COMMANDS)))
            return _l.USAGE
        return getattr(self, "_do_" + word)(rest.strip())

    def _do_help(self, name):
        if not name:
            self._say("\n".join(self.COMMANDS.values()) + "\n", False)
            return _l.OK
        status = lib.cdl_help(self.session.handle, name.encode())
        if status:
            self.failed.append("cdl: no help for '%s'\n" % name)
        return status

    def _example(self, name):
        """The file of an example, or None."""
        path, name = ctypes.c_char_p(), name[:-4] if name.endswith(".cdl") else name
        for k in range(1000):
            found = lib.cdl_example(self.session.handle, name.encode(), k, ctypes.byref(path), None)
            if found is None or found.decode() == name:
                return os.fsdecode(path.value) if found else None

    def _do_examples(self, name):
        if name:
            return self._do_load(name)
        return self._do_help("examples")

    def _do_load(self, path):
        if not os.path.exists(path):
            path = self._example(path) or path
        try:
            with open(path, encoding="utf-8", errors="replace") as f:
                self._now[:] = [f.read()]
        except OSError:
            pass                             # the library says what is wrong
        status, _ = self.session.work(_forking(self.jobs).cdl_load_file, os.fsencode(path))
        if status <= _l.EXPECT:
            self._keep(self._now[0])
        return status

    def _do_type(self, expression):
        return lib.cdl_type(self.session.handle, expression.encode())

    def _do_set(self, given):
        option, _, value = given.partition(" ")
        status = lib.cdl_set(self.session.handle, option.encode(), value.strip().encode())
        if status:
            self.failed.append("cdl: unknown option '%s'; see cdl_set in cdl(3)\n" % given)
        elif option == "jobs":
            self.jobs = int(value)
        return status

    def _do_show(self, what):
        text = "\n".join(self._texts).encode()
        return lib.cdl_show_text(self.session.handle, (what or "model").encode(), b"<cells>", text, len(text))

    def _do_plot(self, what):
        """A picture of which no file stays behind."""
        data, n = ctypes.c_void_p(), ctypes.c_size_t()
        if " against " not in what:
            what += " against t"
        lib.cdl_set_written(self.session.handle, _l.Written(), None)
        status = lib.cdl_picture(self.session.handle, None, ("plot %s" % what).encode(), ctypes.byref(data),
                                 ctypes.byref(n))
        picture = Picture(ctypes.string_at(data, n.value))
        lib.cdl_set_written(self.session.handle, self._written, None)
        if status == _l.OK:
            self._show(picture._repr_mimebundle_())
        return status

    def _do_reset(self, _):
        self._texts.clear()
        return lib.cdl_reset(self.session.handle)

    # -- results for Python

    def last(self):
        """The results of the last run, or None."""
        with self.session.lock:
            handle = lib.cdl_hold(self.session.handle)
            return Result(self.session, handle) if handle else None

    def value(self, expression):
        """The value of an expression, an array where it is one: over definitions, measures and the last run."""
        with self.session.lock, self._silence():
            run = self.last()
            return run[expression] if run else value_of(self.session, expression)

    def define(self, name, value):
        """A value of Python under a name of the language."""
        text = "let %s = %s" % (name, _expression(value))
        return self.execute(text, "<%s>" % name)

    # -- what editors ask

    def is_complete(self, text):
        data = text.encode()
        return bool(lib.cdl_complete(self.session.handle, data, len(data)))

    def _check(self, text):
        """All cells and this one in a session of its own, which finds what names stand for; where this one begins."""
        before = "".join(t + "\n" for t in self._texts).encode()
        data = before + text.encode()
        editor = Session()
        lib.cdl_set(editor.handle, b"interactive", b"yes")
        lib.cdl_check_text(editor.handle, b"<cells>", data, len(data))
        return editor, len(before)

    def choices(self, text, cursor):
        """Names that may stand at a place: where the word begins, and the names with what they are."""
        before = text[:cursor]
        begun = re.search(r"[\w.':]*$", before).group()
        start = cursor - len(begun)
        if begun.startswith(":"):
            return start, [(":" + k, "command") for k in self.COMMANDS if k.startswith(begun[1:])]
        names = {}
        with self.session.lock:
            for k in range(1000):
                name = lib.cdl_name_at(self.session.handle, before.encode(), k)
                if name is None:
                    break
                names[name.decode()] = ""
        editor, first = self._check(text)
        rows, begin = ctypes.POINTER(_l.Choice)(), ctypes.c_size_t()
        n = lib.cdl_choices(editor.handle, first + len(before.encode()), ctypes.byref(begin), ctypes.byref(rows))
        typed = before.encode()[max(begin.value - first, 0):].decode("utf-8", "replace")
        head = begun[:len(begun) - len(typed)]
        for row in rows[:n] if head[-1:] in ("", ".") else ():
            names[head + row.name.decode()] = (row.detail or b"").decode()
        return start, sorted((name, kind) for name, kind in names.items() if name.startswith(begun))

    def describe(self, text, cursor):
        """What is known of the word at a place, as plain text and as Markdown; empty when nothing is."""
        word = next((m.group() for m in _WORD.finditer(text) if m.start() <= cursor <= m.end()), "")
        if not word:
            return "", ""
        editor, first = self._check(text)
        markdown = ctypes.c_char_p()
        byte = first + len(text[:cursor].encode())
        for at in (byte, byte - 1):          # the cursor may stand behind the word
            if at >= first and lib.cdl_describe(editor.handle, at, _l.Span(), ctypes.byref(markdown)) == _l.OK:
                found = markdown.value.decode().strip()
                return "\n".join(x for x in found.split("\n") if not x.startswith("```")), found
        with self.session.lock, self._silence():
            self.session._before()
            known = lib.cdl_help(self.session.handle, word.encode()) == _l.OK
            plain = self.session.text_out() if known else ""
        return plain, "```\n%s\n```" % plain.rstrip() if plain else ""


def _parts(text):
    """Commands and what stands between them, each with the number of its first line."""
    begin, lines, parts = 0, [], []
    for k, line in enumerate(text.splitlines()):
        if line.lstrip().startswith(":"):
            parts += [(begin, "\n".join(lines)), (k, line.strip())]
            begin, lines = k + 1, []
        else:
            lines.append(line)
    parts.append((begin, "\n".join(lines)))
    return [(k, part) for k, part in parts if part.strip()]
