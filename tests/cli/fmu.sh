#!/bin/bash
# cdl emit fmu: units that conform to FMI 2.0 and give the numbers of the run, for any communication steps.
. "${tests:?}/cli/common"
python=/usr/bin/python3
command -v gcc >/dev/null || { echo "ok fmu # SKIP no gcc"; exit 0; }
"$python" -c 'import numpy' 2>/dev/null || { echo "ok fmu # SKIP no python3-numpy"; exit 0; }
if grep -q '^INSTRUMENT = .*[a-z]' "$builddir/Makefile"; then
    echo "ok fmu # SKIP sanitizers cannot be loaded into another program"
    exit
fi
export PYTHONPATH=$srcdir/lang/python:$tests/fmu CDL_LIBRARY=$builddir/.libs/libcdl.so.0 PYTHONDONTWRITEBYTECODE=1
export HOME=$PWD
unset XDG_CACHE_HOME
try "the importer compiles" 0 gcc -O1 -Wall -Wextra -Werror "$tests/fmu/importer.c" -o importer -ldl || exit
"$python" "$tests/fmu/drive.py" "$CDL" ./importer || failed=1
if command -v xmllint >/dev/null; then
    valid() { xmllint --noout --nonet --relaxng "$tests/fmu/fmi2.rng" "$1"; }
    for unit in *.unit; do
        try "$unit is as the schema has it" 0 valid "$unit/modelDescription.xml"
    done
    sed 's/causality="output"/causality="outward"/' ball.unit/modelDescription.xml >wrong.xml
    try "another word is refused" 3 valid wrong.xml
fi

# names, places, the cache
try "without -o it is named after the model" 0 "$CDL" emit fmu drop.cdl
cp ball.fmu first.fmu
PATH=/nowhere try "from the cache, without a compiler" 0 "$CDL" emit fmu drop.cdl -o sub/b.fmu
try "the same bytes again" 0 cmp first.fmu sub/b.fmu
PATH=/nowhere try "no compiler" 5 "$CDL" emit fmu drop.cdl -p e=0.31
has "it says so" err "could not be compiled" "needs a C compiler"
try "the sources compile with a prefix" 0 gcc -Wall -Werror -DFMI2_FUNCTION_PREFIX=ball_ -ffp-contract=off -c ball.unit/sources/ball.c -o b.o
same "its names" 1 "$(nm b.o | grep -c ' T ball_fmi2DoStep$')"
same "no other names are seen" 0 "$(nm -D --defined-only ball.unit/binaries/linux64/ball.so | grep -vc ' fmi2')"

# models that emit c refuses are refused here too
cat >no.cdl <<'CDL'
model m { dof x = 1, x' = 0; x'' = -1; constraint c: x >= 0.1*sin(t) }
run m for 1 with sweeping()
CDL
try "a surface that moves" 3 "$CDL" emit fmu no.cdl
cp err fmu.err
try "as C" 3 "$CDL" emit c no.cdl
same "the same message" "$(cat err)" "$(cat fmu.err)"
cat >in.cdl <<'CDL'
model m { param push = 1, n = 2; dof x[i in 1..n] = 1, x' = 0; for i in 1..n { x[i]'' = -push } }
run m for 1 with sweeping()
CDL
try "no such input" 3 "$CDL" emit fmu in.cdl --inputs pusch
has "it says so" err "model 'm' has no parameter 'pusch'" "push"
try "a size cannot be an input" 3 "$CDL" emit fmu in.cdl --inputs n
has "it says why" err "a size depends on 'n'"
