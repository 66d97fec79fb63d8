"""The tree of tree-sitter against that of `cdl show ast`: compare.py CDL TREE-SITTER GRAMMAR FILE...
Both have the same nodes at the same places.  Kinds that only one of them has (lists, bodies, names; a sweep of several factors is several) are left out."""
import re
import subprocess
import sys
from collections import Counter

cdl, sitter, grammar, *files = sys.argv[1:]
KINDS = {"model", "experiment", "run", "expect", "plot", "save", "measure", "let", "bind", "fn", "use", "param", "param-item",
         "dof", "dof-item", "history", "kinetic", "potential", "dissipation", "force", "constraint", "when", "stop", "part", "domain",
         "field", "obstacle", "at", "boundary", "rod", "for", "set", "binary", "unary", "range", "if", "cases", "case", "subscript",
         "prime", "bool", "gen", "matrix", "block"}
failed = False


def own_tree(text):
    """(kind, line, column, line, column) of each node, counted from 1 in characters"""
    for kind, *at in re.findall(r"^ *\(([a-z-]+)(?: [^\n]*?)? @(\d+):(\d+)-(\d+):(\d+)", text, re.M):
        yield (kind, *map(int, at))


def sitter_tree(text, lines):
    for kind, *at in re.findall(r"\(([A-Za-z_]+) \[(\d+), (\d+)\] - \[(\d+), (\d+)\]", text):
        a, b, c, d = map(int, at)
        chars = lambda line, column: len(lines[line].encode()[:column].decode()) + 1 if line < len(lines) else 1
        yield (kind.replace("_", "-"), a + 1, chars(a, b), c + 1, chars(c, d))


for file in files:
    lines = open(file, encoding="utf-8-sig").read().split("\n")
    own = subprocess.run([cdl, "show", "ast", file], capture_output=True, text=True)
    theirs = subprocess.run([sitter, "parse", file], capture_output=True, text=True, cwd=grammar)
    name = file.rpartition("/")[2]
    mine = Counter(n for n in own_tree(own.stdout) if n[0] in KINDS)
    other = Counter(n for n in sitter_tree(theirs.stdout, lines) if n[0] in KINDS)
    if own.returncode or theirs.returncode or mine != other or not mine:
        failed = True
        print("not ok", name, own.stderr[:200], theirs.stdout[-200:] if theirs.returncode else "",
              "\n    only cdl:", sorted((mine - other).elements())[:6], "\n    only tree-sitter:", sorted((other - mine).elements())[:6])
    else:
        print("ok %s: %d nodes" % (name, sum(mine.values())))
sys.exit(failed)
