"""The kernel for Jupyter as a frontend meets it, the magic %%cdl, and notebooks: test_kernel.py NOTEBOOK...
Each check prints a line `ok` or `not ok`."""
import os
import subprocess
import sys
import threading
import time

import nbformat
from jupyter_client import KernelManager
from nbconvert.preprocessors import ExecutePreprocessor

failed, done = 0, []


def check(name, good, seen=""):
    global failed
    failed += not good
    print("%s %s" % ("ok" if good else "not ok", name))
    if not good and str(seen):
        print("    got: %s" % (seen,))


subprocess.run([sys.executable, "-m", "cdl.kernel", "install", "--prefix", "place"], check=True, stdout=subprocess.DEVNULL)
check("install --prefix", os.path.exists("place/share/jupyter/kernels/cdl/kernel.json"))
os.environ["JUPYTER_PATH"] = os.path.abspath("place/share/jupyter")


class Frontend:
    """A kernel and what it says."""

    def __init__(self, name):
        self.manager = KernelManager(kernel_name=name)
        self.manager.start_kernel(stderr=subprocess.DEVNULL)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def run(self, code):
        """How a cell ended, its text, its pictures and its error.  After an error a kernel would drop cells for a moment."""
        text, pictures, error = [], [], []

        def hear(message):
            content = message["content"]
            if message["msg_type"] == "stream":
                text.append(content["text"])
            elif message["msg_type"] == "display_data":
                pictures.append(content["data"])
            elif message["msg_type"] == "error":
                error.append(content)
        reply = self.client.execute_interactive(code, output_hook=hear, timeout=60, stop_on_error=False)
        return reply["content"]["status"], "".join(text), pictures, error[0] if error else None

    def ask(self, send, *arguments):
        send(*arguments)
        return self.client.get_shell_msg(timeout=60)["content"]

    def complete(self, code):
        return self.ask(self.client.complete, code, len(code))

    def inspect(self, code, at):
        return self.ask(self.client.inspect, code, at)

    def notebooks(self, name, forget):
        """Runs those of this kernel by nbconvert, each from top to bottom after all was forgotten: a kernel takes long to start."""
        for path in sys.argv[1:]:
            book = nbformat.read(path, as_version=4)
            if book.metadata.kernelspec.name != name:
                continue
            title = os.path.basename(path)
            nbformat.validate(book)
            check(title + " has no outputs", all(not c.get("outputs") and c.get("execution_count") is None
                                                 for c in book.cells if c.cell_type == "code"))
            book.cells.insert(0, nbformat.v4.new_code_cell(forget))
            self.manager.client_factory = "jupyter_client.asynchronous.AsyncKernelClient"
            try:
                ExecutePreprocessor(timeout=60).preprocess(book, {"metadata": {"path": "."}}, km=self.manager)
                check(title + " runs", sum(bool(c.get("outputs")) for c in book.cells) > 3)
            except Exception as e:
                check(title + " runs", False, e)
            done.append(path)

    def end(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=False)


MODEL = """## A ball on a floor.
model ball {
    param e in 0..1 = 0.8
    dof y = 1 [m]
    y'' = -9.81 [m/s^2]
    constraint floor: y >= 0 { impact = newton(e) }
}"""
gnuplot = subprocess.run("command -v gnuplot", shell=True, stdout=subprocess.DEVNULL).returncode == 0

k = Frontend("cdl")
check("a model", k.run(MODEL)[:2] == ("ok", ""))
status, text, _, _ = k.run("run ball(e = 0.5) for 1\nmax(y)")
check("runs in the next cell", status == "ok" and "2 impacts" in text and text.endswith("\n1 [m]\n"), text)
status, text, _, _ = k.run("measure top = max(y)")
check("results stay", text == "top = 1 [m]\n", text)
check("an empty cell", k.run("\n# nothing\n")[0] == "ok")
if gnuplot:
    status, text, pictures, _ = k.run("plot y against t\nmax(y)\nplot y' against t { file = \"rate.svg\" }\nsave y { file = \"y.csv\" }")
    check("pictures stand in the cell", len(pictures) == 2 and all(p["image/svg+xml"].startswith("<svg") for p in pictures)
          and pictures[0] != pictures[1], (status, text, pictures))
    check("files with a name stay, others do not",
          sorted(f for f in os.listdir(".") if "svg" in f or "csv" in f) == ["rate.svg", "rate.svg.csv", "rate.svg.gp", "y.csv"],
          os.listdir("."))
    check("and are reported by their name", "wrote y.csv" in text and "rate.svg" not in text and "/tmp" not in text, text)
    status, _, pictures, _ = k.run(":plot y")
    check(":plot", status == "ok" and len(pictures) == 1)
status, text, pictures, error = k.run("max(y)\nmodel bad {\n  dof x = 1 [m]\n  x'' = 2 [s]\n}\nrun ball for 1")
check("an error", status == "error" and error["ename"] == "Error" and "different dimensions" in error["evalue"] and not text, error)
shown = "\n".join(error["traceback"])
check("coloured, with its caret and its line of the cell", "\x1b[1;31merror:" in shown and "]:4:3:" in shown and "^~~~" in shown, shown)
status, _, _, error = k.run("expect max(y) < 0.5 \"low\"")
check("a missed expectation is an error", status == "error" and "low" in "".join(error["traceback"]), error)
status, text, _, _ = k.run(":help sweeping\n:type y\n:show model")
check("commands", status == "ok" and "time-stepping" in text and "a series" in text and "ball" in text, text)
check(":help lists them", ":reset " in k.run(":help")[1])
status, _, _, error = k.run(":nix")
check("an unknown command", status == "error" and ":help" in error["evalue"], error)
check("the session goes on after errors", k.run("max(y)")[1] == "1 [m]\n")

# -- completion and help
found = k.complete("run ba")
check("completion of models", "ball" in found["matches"] and found["cursor_start"] == 4, found)
check("of members", {"floor.rn", "floor.impacts"} <= set(k.complete("max(floor.")["matches"]))
check("of backends", k.complete("run ball for 1 with ev")["matches"] == ["events"])
check("inside a model that was not executed", "height" in k.complete("model m {\n param height = 1\n dof x = hei")["matches"])
check("of commands", k.complete(":lo")["matches"] == [":load"])
check("nothing after a quote", k.complete("y'")["matches"] == [])
found = k.inspect("run ball for 1", 6)
check("help on a model", found["found"] and "A ball on a floor." in found["data"]["text/plain"], found)
found = k.inspect("max(y)", 1)
check("help on a function", found["found"] and "largest" in found["data"]["text/plain"], found)
found = k.inspect("model m {\n dof x = 0 [m]\n x'' = -1 [m/s^2]\n}", 15)
check("help on what is being written", "degree of freedom of m, in [m]" in found["data"].get("text/markdown", ""), found)
check("no help", not k.inspect("nothing_of_that_name", 3)["found"])
check("an open bracket", k.ask(k.client.is_complete, "model a {")["status"] == "incomplete")
check("a whole cell", k.ask(k.client.is_complete, "max(y)")["status"] == "complete")

# -- interrupt
threading.Timer(0.7, k.manager.interrupt_kernel).start()
began = time.time()
status, text, _, error = k.run("model pendulum { dof a = 1; a'' = -sin(a) }\nrun pendulum for 1e7 with sweeping(h = 1e-3, every = 1)")
check("an interrupt ends the run", status == "error" and error["ename"] == "KeyboardInterrupt" and time.time() - began < 20, error)
check("partial results are kept", float(k.run("last(t)")[1].split()[0]) > 0)
check("and the session lives on", k.run("run ball for 1\nmax(y)")[1].endswith("1 [m]\n"))
check("with its definitions", "pendulum" in k.complete("run pend")["matches"])
check(":examples lists some", "bouncing_ball" in k.run(":examples")[1])
status, text, _, _ = k.run(":examples zeno")
check("and loads one", status == "ok" and "ball" in k.complete("run ba")["matches"], text)
check(":load takes its name", k.run(":load zeno.cdl")[0] == "ok")
status, _, _, error = k.run(":load no_such_example")
check("or says what is wrong", status == "error" and "no_such_example" in error["evalue"], error)
check("reset", k.run(":reset")[0] == "ok" and k.run("run ball for 1")[0] == "error")
k.notebooks("cdl", ":reset")
k.end()

# -- the magic in a kernel of Python
k = Frontend("python3")
check("%load_ext", k.run("%load_ext cdl")[:2] == ("ok", ""))
check("a cell", k.run("%%cdl\n" + MODEL)[0] == "ok")
status, text, _, _ = k.run("e0 = 0.5")
status, text, _, error = k.run("%%cdl r -i e0 -o y -o v=y' -o floor.rn\nrun ball(e = e0) for 1 with sweeping(h = 0.1)")
check("results become variables", status == "ok", error)
status, text, _, error = k.run("print(type(y).__name__, y.shape, v[0], floor_rn.shape, r.samples, r.e)")
check("which are arrays", text == "ndarray (11,) 0.0 (11,) 11 0.5\n", (text, error))
check("expressions in a line", k.run("x = %cdl 2*3\nprint(x)")[1] == "6.0\n")
status, text, _, error = k.run("%%cdl\nrun bal for 1")
check("errors without frames of Python", status == "error" and "did you mean 'ball'" in "\n".join(error["traceback"])
      and "Traceback" not in "\n".join(error["traceback"]), error)
status, text, _, error = k.run("%%cdl -o top=max(y)\nexpect max(y) < 0.5")
check("a missed expectation is an error", status == "error" and "expectation failed" in error["evalue"], error)
check("and results are there", k.run("print(top)")[1] == "1.0\n")
if gnuplot:
    check("pictures", "image/svg+xml" in (k.run("%%cdl\nplot y against t")[2] or [{}])[0])
threading.Timer(0.7, k.manager.interrupt_kernel).start()
status, _, _, error = k.run("%%cdl\nmodel p { dof a = 1; a'' = -sin(a) }\nrun p for 1e7 with sweeping(h = 1e-3, every = 1)")
check("an interrupt", status == "error" and "Interrupt" in error["ename"], error)
check("after which it goes on", k.run("%%cdl -o top=max(y)\nrun ball for 1\n")[0] == "ok" and k.run("print(top)")[1] == "1.0\n")
k.notebooks("python3", "%reset -f")
k.end()
del k
check("every notebook was one of these kernels", sorted(done) == sorted(sys.argv[1:]) and done, done)
sys.exit(1 if failed else 0)
