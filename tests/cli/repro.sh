#!/bin/bash
# manifest.json, repeating its run, and comparing results.
. "${tests:?}/cli/common"
cp ball.cdl m.cdl
cat >>m.cdl <<'CDL'
run ball for 1 with sweeping(h = 1e-2)
measure n = count(floor.impacts), low = min(y)
expect n >= 1  "rebounds"
save t, y { file = "sub/y.csv" }
CDL
try "a run" 0 "$CDL" run -o out1 -p e=0.4 m.cdl
has "the manifest holds it" out1/manifest.json '"manifest": 1' '"version":' '"compiler":' '"blas":' '"host": "Linux' '"parameters": {"e": "0.4"}' \
    '"role": "main", "path": "m.cdl"' "$(sha256sum <m.cdl | cut -d' ' -f1)" '"models": [{"name": "ball", "ir": "' \
    '"path": "sub/y.csv", "sha256": "'"$(sha256sum <out1/sub/y.csv | cut -d' ' -f1)" '"text":"n >= 1","ok":true' '"met": 1, "missed": 0' '"g":9.81'
try "again" 0 "$CDL" repro out1/manifest.json
has "the same" out "the same: 1 files, 1 runs"
rm m.cdl
try "the text is in it" 0 "$CDL" repro out1
sed -i 's/0\.9995095/0.9995096/' out1/sub/y.csv
try "a file that was changed does not matter when the bytes come again" 0 "$CDL" repro out1/manifest.json
sum=$(sha256sum <out1/sub/y.csv | cut -d' ' -f1)
sed -i -E "s/(\"path\": \"sub.y.csv\", \"sha256\": \")[0-9a-f]+/\1$sum/; s/\"low\":[^,}]*/\"low\":7/" out1/manifest.json
try "other numbers" 1 "$CDL" repro out1/manifest.json
has "are reported with their difference" out "sub/y.csv: column y: 1 of 101 numbers differ, at most by 1e-07 (relative 1e-07) in row 2" "runs[1].measures.low: 7 and" "2 differences"
same "nothing is left behind" "" "$(find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'cdl-repro.*' -user "$(id -u)" -newer out1/manifest.json 2>/dev/null)"
try "no manifest" 5 "$CDL" repro none.json
echo '{}' >no.json
try "another JSON" 2 "$CDL" repro no.json

cat >lib.cdl <<'CDL'
model ball { param e in 0..1 = 0.5; dof y = 1; y'' = -9.81; constraint floor: y >= 0 { impact = newton(e) } }
CDL
mkdir deep
printf 'use "../lib.cdl" as l\nrun l.ball for 1 with sweeping(h = 1e-2)\nsave t, y { file = "y.csv" }\n' >deep/u.cdl
try "with a file brought in" 0 "$CDL" run --allow-outside -o out2 deep/u.cdl
mv lib.cdl gone
try "it is kept as well" 0 "$CDL" repro --allow-outside out2/manifest.json
mv gone lib.cdl
try "a text" 0 bash -c 'echo "use \"lib.cdl\" as l
run l.ball for 1 with sweeping(h = 1e-2)
save t, y { file = \"y.csv\" }" | "$CDL" run -o out3 -'
try "is run again too" 0 "$CDL" repro out3/manifest.json

try "equal folders" 0 "$CDL" diff out2 out3
same "are the same" "the same" "$(cat out)"
sed -i '5s/,.*/,2/' out3/y.csv; echo extra >out3/more.csv
try "folders that differ" 1 "$CDL" diff out2 out3
has "say where" out "y.csv: column y: 1 of 101 numbers differ, at most by 1" "in row 4" "more.csv: only in out3" "2 differences"
rm out3/more.csv
try "within a bound" 0 "$CDL" diff --within=0.9 out2 out3
try "a folder that is not there" 5 "$CDL" diff out2 nowhere
try "one folder" 2 "$CDL" diff out2
try "within limits" 0 "$CDL" repro --time 60 --memory 1G --disk 1M out3/manifest.json
try "beyond one" 3 "$CDL" repro --memory 1 out3/manifest.json
has "which is named" err "exceeds the memory limit of --memory"
echo '{' >broken.json
try "a manifest that cannot be read is a difference" 1 "$CDL" diff out2/manifest.json broken.json
has "which is reported" out "broken.json: cannot be read"
