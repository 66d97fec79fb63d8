#!/bin/bash
# use: libraries and files.
. "${tests:?}/cli/common"
mkdir lib sub
cat >lib/shapes.cdl <<'CDL'
param scale = 2
let unit = scale*size
fn area(r) = pi*r^2
let size = 3
model disk { param R = 1; dof p = R; p'' = 0 }
run nothing for 1
CDL
cat >sub/other.cdl <<'CDL'
use "third.cdl" as third
let a = third.b + 1
model ball { dof z = 7; z'' = 0 }
CDL
echo 'let b = 10' >sub/third.cdl
cat >u.cdl <<'CDL'
use std.shapes
use "sub/other.cdl" as o
let size = 5
shapes.unit
unit
size
area(1) == shapes.area(1)
o.a
run o.ball for 1
z(1)
run disk(R = 4) for 1
p(1)
model m { part d: disk(R = 9); part b: o.ball }
run m for 1
d.p(0) + b.z(0)
CDL
export CDL_STDLIB=$PWD/lib
try "libraries and files" 0 "$CDL" run -q u.cdl
same "their names" "6 6 5 true 11 7 4 16" "$(paste -sd' ' out)"
echo 'a' >v.cdl; echo 'use "sub/other.cdl" as o' >>v.cdl
try "with as, names are behind the alias only" 3 "$CDL" check v.cdl
printf 'use "sub/other.cdl" as o\no.c\n' >w.cdl
try "a name that is not there" 3 "$CDL" check w.cdl
has "is reported" err "'o' has no member 'c'"
echo 'use std.shape' >x.cdl
try "a library that is not there" 3 "$CDL" check x.cdl
has "is reported" err "x.cdl:1:1: error: there is no library 'std.shape'" "did you mean 'std.shapes'?"
echo 'use "no.cdl"' >y.cdl
try "a file that is not there" 5 "$CDL" check y.cdl
has "is reported" err "y.cdl:1:1: error: cannot read 'no.cdl'"
echo 'use "b.cdl"' >a.cdl; echo 'use "c.cdl" as c' >b.cdl; echo 'use "b.cdl" as b' >c.cdl
try "a circle" 3 "$CDL" check a.cdl
has "is reported with its chain" err "c.cdl:1:1: error: files use each other in a circle: b.cdl -> c.cdl -> b.cdl"
echo 'use "self.cdl"' >self.cdl
try "a file that uses itself" 3 "$CDL" check self.cdl
echo 'let x = (' >broken.cdl; printf 'use "broken.cdl" as b\nb.x\n' >z.cdl
try "errors of a file that is used" 3 "$CDL" check z.cdl
has "are its own" err "broken.cdl:1:"
same "and only they are reported" 1 "$(grep -c error: err)"
printf 'use "sub/other.cdl" as a\nuse "sub/third.cdl" as a\n' >d.cdl
try "a name twice" 3 "$CDL" check d.cdl
