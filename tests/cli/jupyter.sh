#!/bin/bash
# The kernel for Jupyter, the magic, and the notebooks, with what Debian has; without it they are left out.
. "${tests:?}/cli/common"
python=/usr/bin/python3
if ! "$python" -c 'import numpy, ipykernel, jupyter_client, nbconvert' 2>/dev/null; then
    echo "ok jupyter # SKIP needs python3-ipykernel and python3-nbconvert: apt-get install them to run this"
    exit
fi
if grep -q '^INSTRUMENT = .*[a-z]' "$builddir/Makefile"; then
    echo "ok jupyter # SKIP sanitizers cannot be loaded into another program"
    exit
fi
export PYTHONPATH=$srcdir/lang/python CDL_LIBRARY=$builddir/.libs/libcdl.so.0 PYTHONDONTWRITEBYTECODE=1 PYDEVD_DISABLE_FILE_VALIDATION=1
export HOME=$PWD IPYTHONDIR=$PWD/ipython JUPYTER_RUNTIME_DIR=$PWD/runtime
"$python" "$tests/python/test_kernel.py" || failed=1

# notebooks run from top to bottom, one after the other in one process; they are kept without outputs
export JUPYTER_PATH=$PWD/place/share/jupyter
"$python" - "$srcdir"/examples/notebooks/*.ipynb <<'PY' || failed=1
import os, sys, nbformat
from nbconvert.preprocessors import ExecutePreprocessor
bad = 0
for path in sys.argv[1:]:
    name = os.path.basename(path)
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    clean = all(not c.get("outputs") and c.get("execution_count") is None for c in book.cells if c.cell_type == "code")
    print("%s %s has no outputs" % ("ok" if clean else "not ok", name))
    try:
        ExecutePreprocessor(timeout=60).preprocess(book, {"metadata": {"path": "."}})
        print("ok %s runs" % name)
    except Exception as e:
        bad = 1
        print("not ok %s runs\n%s" % (name, e))
    bad |= not clean
sys.exit(bad)
PY
