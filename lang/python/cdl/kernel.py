"""A kernel for Jupyter whose cells are text of the language.

    python3 -m cdl.kernel install [--user | --prefix DIR]

It needs python3-ipykernel.  See cdl-python(7).
"""
import os
import sys

from ipykernel.kernelbase import Kernel

from . import OK, __version__
from ._cells import Cells


class CdlKernel(Kernel):
    implementation = "cdl"
    implementation_version = __version__
    language_info = {"name": "cdl", "version": __version__, "mimetype": "text/x-cdl", "file_extension": ".cdl",
                     "pygments_lexer": "text", "codemirror_mode": "null"}
    banner = "CDL %s, the contact description language" % __version__

    def __init__(self, **arguments):
        super().__init__(**arguments)
        self._silent = False
        self.cells = Cells(self._say, self._show)

    def _say(self, text, is_error):
        if not self._silent:
            self.send_response(self.iopub_socket, "stream", {"name": "stderr" if is_error else "stdout", "text": text})

    def _show(self, data):
        if not self._silent:
            self.send_response(self.iopub_socket, "display_data", {"data": data, "metadata": {}})

    def _fail(self, name, text):
        value = _first_message(text) or name
        content = {"ename": name, "evalue": value, "traceback": text.rstrip("\n").split("\n")}
        if not self._silent:
            self.send_response(self.iopub_socket, "error", content)
        return {"status": "error", "execution_count": self.execution_count, **content}

    def do_execute(self, code, silent, store_history=True, user_expressions=None, allow_stdin=False, **more):
        self._silent = silent
        status, stopped, wrong, _ = self.cells.execute(code, "In[%d]" % self.execution_count)
        if stopped:
            return self._fail("KeyboardInterrupt", wrong or "interrupted")
        if status != OK:
            return self._fail("Error", wrong or "cdl: failed")
        if wrong:                            # warnings and notes
            self._say(wrong, True)
        return {"status": "ok", "execution_count": self.execution_count, "payload": [], "user_expressions": {}}

    def do_complete(self, code, cursor_pos):
        start, names = self.cells.choices(code, cursor_pos)
        kinds = [{"start": start, "end": cursor_pos, "text": name, "type": kind} for name, kind in names]
        return {"status": "ok", "matches": [name for name, _ in names], "cursor_start": start, "cursor_end": cursor_pos,
                "metadata": {"_jupyter_types_experimental": kinds}}

    def do_inspect(self, code, cursor_pos, detail_level=0, omit_sections=()):
        plain, markdown = self.cells.describe(code, cursor_pos)
        data = {"text/plain": plain, "text/markdown": markdown} if plain else {}
        return {"status": "ok", "found": bool(plain), "data": data, "metadata": {}}

    def do_is_complete(self, code):
        if self.cells.is_complete(code):
            return {"status": "complete"}
        return {"status": "incomplete", "indent": "    "}


def _first_message(text):
    """Of text with colours."""
    import re
    for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines():
        if "error: " in line:
            return line.partition("error: ")[2]
    return text.strip().split("\n")[0] if text.strip() else ""


def _spec():
    """What Jupyter has to know to start the kernel with this Python and this package."""
    import json
    import site
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "kernel.json")) as f:
        spec = json.load(f)
    spec["argv"][0] = sys.executable
    env = spec["env"]
    if os.path.dirname(here) not in site.getsitepackages():
        env["PYTHONPATH"] = os.path.dirname(here)
    if os.environ.get("CDL_LIBRARY"):
        env["CDL_LIBRARY"] = os.path.abspath(os.environ["CDL_LIBRARY"])
    return spec


def install(arguments):
    import argparse
    import json
    import tempfile
    from jupyter_client.kernelspec import KernelSpecManager
    parser = argparse.ArgumentParser(prog="python3 -m cdl.kernel install", description="Makes the kernel known to Jupyter.")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--user", action="store_true", help="for you alone, in your home folder")
    where.add_argument("--prefix", metavar="DIR", help="below DIR/share/jupyter")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        with open(os.path.join(folder, "kernel.json"), "w") as f:
            json.dump(_spec(), f, indent=1)
        made = KernelSpecManager().install_kernel_spec(folder, "cdl", user=given.user, prefix=given.prefix)
    print("installed in %s" % made)


def main():
    if sys.argv[1:2] == ["install"]:
        install(sys.argv[2:])
        return
    from ipykernel.kernelapp import IPKernelApp
    IPKernelApp.launch_instance(kernel_class=CdlKernel)


if __name__ == "__main__":
    main()
