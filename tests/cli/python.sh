#!/bin/bash
# The Python package, with the distribution's Python; skipped without NumPy.
. "${tests:?}/cli/common"
python=/usr/bin/python3
if ! "$python" -c 'import numpy' 2>/dev/null; then
    echo "ok python # SKIP no python3-numpy"
    exit
fi
if grep -q '^INSTRUMENT = .*[a-z]' "$builddir/Makefile"; then
    echo "ok python # SKIP sanitizers cannot be loaded into another program"
    exit
fi
export PYTHONPATH=$srcdir/lang/python CDL_LIBRARY=$builddir/.libs/libcdl.so.0 PYTHONDONTWRITEBYTECODE=1
export CDL_HEADER=$srcdir/lang/cdl.h
"$python" "$tests/python/test_cdl.py" || failed=1

# examples draw their pictures, if matplotlib is installed
if "$python" -c 'import matplotlib' 2>/dev/null; then
    for f in "$srcdir"/examples/python/*.py; do
        try "${f##*/} draws" 0 env MPLBACKEND=Agg MPLCONFIGDIR="$PWD" "$python" "$f" picture.png
        same "${f##*/} wrote a picture" yes "$([ "$(head -c 4 picture.png | tail -c 3)" = PNG ] && echo yes)"
        rm -f picture.png
    done
else
    echo "ok examples # SKIP no python3-matplotlib"
fi

# the stubs name everything that exists
"$python" - "$srcdir/lang/python/cdl" <<'PY' && echo "ok stubs" || { echo "not ok stubs"; failed=1; }
import ast, sys, cdl
tree = ast.parse(open(sys.argv[1] + "/__init__.pyi").read())
stubbed = {n.name: n for n in tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}
names = set(stubbed) | {t.target.id for t in tree.body if isinstance(t, ast.AnnAssign)}
wrong = set(cdl.__all__) - names
for name, node in stubbed.items():
    if isinstance(node, ast.ClassDef) and hasattr(cdl, name):
        own = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
        real = {k for c in getattr(cdl, name).__mro__[:2] for k in vars(c) if not k.startswith("_")}
        wrong |= {name + "." + k for k in own if not hasattr(getattr(cdl, name), k)}
        wrong |= {name + "." + k for k in vars(getattr(cdl, name)) if not k.startswith("_") and callable(getattr(getattr(cdl, name), k)) and k not in own}
if wrong:
    print("differ:", sorted(wrong))
sys.exit(bool(wrong))
PY

# the example of the man page
awk '/^\.\\" python/ { want = 1; next } /^\.EX/ && want == 1 { on = 1; next } /^\.EE/ { if (on) want = 2; on = 0 } on' \
    "$srcdir/man/cdl-python.7" | sed 's/\\-/-/g' >man.py
awk '/^prints$/ { want = 1; next } /^\.EX/ && want == 1 { on = 1; next } /^\.EE/ { if (on) want = 2; on = 0 } on' \
    "$srcdir/man/cdl-python.7" | sed 's/\\-/-/g' >wanted
try "the example of cdl-python(7)" 0 "$python" man.py
same "it prints what the page shows" "$(cat wanted)" "$(cat out)"

# where make install puts files; with byte code in the system's folder, because users may not write it there
make -s -C "$builddir" install-dist_cdlpythonDATA install-data-hook pythondir="$PWD/direct" >log 2>&1
same "byte code is installed" "$(ls direct/cdl/*.py | wc -l)" "$(ls direct/cdl/__pycache__/*.pyc | wc -l)"
make -s -C "$builddir" install-dist_cdlpythonDATA install-data-hook DESTDIR="$PWD/root" >log 2>&1
same "the package is installed" "__init__.py __init__.pyi _cells.py _later.py _library.py _magic.py _model.py _result.py _session.py _step.py _where.py kernel.json kernel.py py.typed" \
    "$(cd root 2>/dev/null && find . -path '*/dist-packages/cdl/*' -type f | sed 's|.*/||' | LC_ALL=C sort | paste -sd' ')"
