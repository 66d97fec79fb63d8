#!/bin/bash
# The kernel for Jupyter, the magic, and the notebooks, with the packages of Debian; skipped without them.
. "${tests:?}/cli/common"
python=/usr/bin/python3
if ! "$python" -c 'from importlib.util import find_spec as f; assert all(map(f, ("numpy", "ipykernel", "jupyter_client", "nbconvert")))' 2>/dev/null; then
    echo "ok jupyter # SKIP needs python3-ipykernel and python3-nbconvert: apt-get install them to run this"
    exit
fi
if grep -q '^INSTRUMENT = .*[a-z]' "$builddir/Makefile"; then
    echo "ok jupyter # SKIP sanitizers cannot be loaded into another program"
    exit
fi
export PYTHONPATH=$srcdir/lang/python CDL_LIBRARY=$builddir/.libs/libcdl.so.0 PYTHONDONTWRITEBYTECODE=1 PYDEVD_DISABLE_FILE_VALIDATION=1
export HOME=$PWD IPYTHONDIR=$PWD/ipython JUPYTER_RUNTIME_DIR=$PWD/runtime
"$python" "$tests/python/test_kernel.py" "$srcdir"/examples/notebooks/*.ipynb || failed=1
