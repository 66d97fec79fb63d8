"""%%cdl in Python notebooks: cells of the language, whose results are put into Python."""
import re
import sys

from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import publish_display_data

from . import _library as _l
from ._cells import Cells
from ._session import Error, Interrupted

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class CellError(Error):
    """An error in a cell: shown as the message alone, without the frames of Python."""

    def __init__(self, coloured, status, diagnostics):
        super().__init__(_COLOURS.sub("", coloured).rstrip("\n"), status, None, diagnostics)
        self._lines = coloured.rstrip("\n").split("\n")

    def _render_traceback_(self):
        return self._lines


class CellInterrupted(Interrupted):
    """The same for Ctrl-C."""

    def _render_traceback_(self):
        return ["the cell was interrupted; what was computed until then is kept"]


def _say(text, is_error):
    stream = sys.stderr if is_error else sys.stdout
    stream.write(text)
    stream.flush()


def _named(given):
    """"v=y'" as ("v", "y'"); "floor.rn" as ("floor_rn", "floor.rn")."""
    name, sign, expression = given.partition("=")
    if not sign:
        name, expression = re.sub(r"\W+", "_", given).strip("_"), given
    if not name.strip().isidentifier():
        raise Error("error: '%s' is not the name of a Python variable; write -o NAME=EXPRESSION" % name)
    return name.strip(), expression.strip()


@magics_class
class CdlMagics(Magics):
    """All cells of a notebook share one session: a model that one of them defines can be run in the next."""

    def __init__(self, shell):
        super().__init__(shell)
        self.cells = Cells(_say, lambda data: publish_display_data(data))
        self._count = 0

    @magic_arguments()
    @argument("name", nargs="?", help="a variable for the results of the last run in the cell")
    @argument("-i", "--input", action="append", default=[], metavar="NAME",
              help="a variable of Python (a number, a list or an array) that becomes `let NAME = ...`")
    @argument("-o", "--output", action="append", default=[], metavar="NAME[=EXPRESSION]",
              help="a variable for the value of an expression, an array where it is one")
    @line_cell_magic
    def cdl(self, line, cell=None):
        """Executes a cell of CDL and puts results into Python.

            %%cdl r -o y -o v=y'
            run ball(e = 0.7) for 3

        Then r holds the results of the run (r.y, r["floor.rn"]), and y and v are NumPy arrays.  In a line,
        `%cdl max(y)` gives the value of an expression.
        """
        if cell is None:
            return self.cells.value(line)
        given = parse_argstring(self.cdl, line)
        outputs = [_named(o) for o in given.output]
        for name in given.input:
            if name not in self.shell.user_ns:
                raise NameError("name '%s' is not defined" % name)
            self._end(*self.cells.define(name, self.shell.user_ns[name]))
        self._count += 1
        before = self.cells.last() if given.name else None
        ended = self.cells.execute(cell, "cell %d" % self._count)
        if ended[0] > _l.EXPECT or ended[1]:
            self._end(*ended)
        values = {name: self.cells.value(expression) for name, expression in outputs}
        if given.name:
            values[given.name] = self._new(before)
        self.shell.push(values)
        self._end(*ended)                    # an expectation that failed is an error; the results are there all the same

    def _new(self, before):
        last = self.cells.last()
        if last is None or (before is not None and last._handle == before._handle):
            raise Error("error: the cell runs nothing whose results could be kept")
        return last

    @staticmethod
    def _end(status, stopped, wrong, diagnostics):
        if stopped:
            raise CellInterrupted()
        if status:
            raise CellError(wrong, status, diagnostics)
        if wrong:
            _say(wrong, True)
