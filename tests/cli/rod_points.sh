#!/bin/bash
# The reference shape of a rod from a file: errors are shown in that file; a saved rod is read again.
. "${tests:?}/cli/common"
mkdir -p m
cat >m/a.cdl <<'CDL'
model a { rod w { length = 3, radius = 0.01, young = 1e6, reference = "p.csv" }; at w.s = 0 { position = [0, 0, 0], frame = eye(3) } }
run a for 0 with auglag()
save w { file = "w.csv" }
CDL
bad() { printf "$2" >m/p.csv; try "$1" "$3" "$CDL" run m/a.cdl; same "$1: place" "$4" "$("$CDL" run m/a.cdl 2>&1 | sed -n 's/: error: .*//p')"; }
rm -f m/p.csv
try "no file" 5 "$CDL" run m/a.cdl
bad "no number" 'x,y,z\n0,0,0\n0,0,one\n' 5 "m/p.csv:3:5"
bad "not finite" '0,0,0\n0,1e999,0\n' 5 "m/p.csv:2:3"
bad "a column too few" '0,0,0\n\n0,1\n' 5 "m/p.csv:3:3"
bad "an empty field at the end" '0,0,0\n0,1,' 5 "m/p.csv:2:4"
bad "no names that are known" 'a,b\n0,1\n' 5 "m/p.csv:1:1"
bad "a point twice" '0,0,0\n0,0,0\n' 5 "m/p.csv:2:1"
bad "few points" '0,0,0\n0,0,1\n0,0,3\n' 5 "m/a.cdl:1:71"
bad "a zero byte" '# a\0b\n0,0,0\n' 5 "m/p.csv:1:4"
bad "another length" '0,0,0\n0,0,1\n0,0,2\n0,0,3.5\n' 4 "m/a.cdl:1:59"
printf '0,0,0\n0,0,1\n0,0,2\n0,0,3\n' >m/p.csv
try "straight" 0 "$CDL" run -o d m/a.cdl
cp d/w.csv m/p.csv
try "a saved rod" 0 "$CDL" run -o d2 m/a.cdl
same "is the same" "0,0,3" "$(tail -n 1 d2/w.csv | cut -d, -f2-4)"
has "the manifest holds the file" d2/manifest.json '"role": "data", "path": "m/p.csv", "name": "m/p.csv", "sha256": "'"$(sha256sum <m/p.csv | cut -d' ' -f1)"
mv m/p.csv gone
try "so it is run again without it" 0 "$CDL" repro d2/manifest.json
mv gone m/p.csv
