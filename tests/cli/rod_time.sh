#!/bin/bash
# Rods in time: files and samples; samples stored in a file are the same; a run that fails keeps its partial results.
. "${tests:?}/cli/common"
cat >a.cdl <<'CDL'
model a { rod w { length = 1, radius = 0.02, young = 1e6, density = 1000, elements = 60, velocity = [0, sin(5*s), s] } }
run a for 0.2 with auglag(h = 1e-3)
save w { file = "w.csv" }
save t, w.track(1)[2], energy { file = "t.csv" }
animate("w.svg", w)
animate("w.html", w)
CDL
try "saved" 0 "$CDL" run -o d a.cdl
same "velocities are columns" "v1,v2,v3,spin1,spin2,spin3" "$(head -n 1 d/w.csv | rev | cut -d, -f1-6 | rev)"
same "a row for each sample" 202 "$(wc -l <d/t.csv)"
same "it moves in the picture" yes "$(grep -q animate d/w.svg && echo yes)"
has "and is as thick as it is in a page" d/w.html '"r":0.02,'
try "in a file" 0 "$CDL" run -o e --spill=1 a.cdl
same "the same path" "$(sha256sum <d/t.csv)" "$(sha256sum <e/t.csv)"
sed 's/h = 1e-3/h = 1e-3, every = 0.05/' a.cdl >b.cdl
try "fewer samples" 0 "$CDL" run -o f b.cdl
same "a row for each of them" 6 "$(wc -l <f/t.csv)"
same "and the same end" "$(tail -n 1 d/t.csv)" "$(tail -n 1 f/t.csv)"

# a load without a value from t = 0.1 on
cat >c.cdl <<'CDL'
model c { rod w { length = 1, radius = 0.02, young = 1e6, density = 1000, elements = 4 }
    force w.x(1): [sqrt(0.1 - t), 0, 0] }
run c for 0.2 with auglag(h = 2e-3)
CDL
try "a run that fails" 4 "$CDL" run c.cdl
has "says how far it came" err "no motion was found beyond t = 0.1, with steps down to a ten-thousandth of h; the results so far are kept"
has "and keeps that" out "50 steps to t = 0.1, failed" "energy 0 to 0.00223"
