#!/bin/bash
# Gnuplot runs only its script: names and titles from a model are text, whatever they contain; and quotes are drawn.
. "${tests:?}/cli/common"
command -v gnuplot >/dev/null || { echo "ok gnuplot # SKIP it is not installed"; exit 0; }
run() { timeout 60 "$CDL" run "$@"; }
mkdir model; cp ball.cdl model/all.cdl; echo 'run ball for 1 with sweeping(h = 1e-2)' >>model/all.cdl
unharmed() { same "$1: nothing was run" "" "$(find . -name 'PWNED*')"; }

# -- gnuplot runs nothing else
bad='PWNED' ; rm -rf into
for text in "| touch $PWD/$bad #" "< touch $PWD/$bad; cat x #" "\`touch $PWD/$bad\`" "'.system('touch $PWD/$bad').'" \
    '\"; system(\"touch PWNED\"); x=\"' "\$(touch $PWD/$bad)" '@x; !touch PWNED' "'; !touch PWNED" '{/=20 x}'; do
    name=${text//\//_}
    rm -rf into
    { cat model/all.cdl; echo "plot y against t { file = \"$name.svg\" }
plot y against t { file = \"t.svg\", title = \"$text\" }
plot y against t { file = \"$name.png\", title = \"$text\" }
plot y'' { file = \"sub/$name.pdf\" }"; } >model/t.cdl
    try "plots of $text" 0 run -q -o into model/t.cdl
    same "all are drawn" 4 "$(grep -c '^cdl: wrote into/' err)"
    (cd into && find . -name '*.gp' -execdir gnuplot -d {} \;) >/dev/null 2>&1
    try "again from the manifest" 0 timeout 60 "$CDL" repro into/manifest.json
done
unharmed "gnuplot"
mkdir bin; printf '#!/bin/sh\n/usr/bin/env touch "%s/PWNED"\necho x >picture\n' "$PWD" >bin/gnuplot; chmod +x bin/gnuplot
case $(uname -m) in x86_64 | aarch64)
    PATH=$PWD/bin:$PATH run -q -o into model/t.cdl >/dev/null 2>&1
    unharmed "what stands in its place starts no process" ;;
esac
echo 'set print "PWNED"; print 1' >.gnuplot
HOME=$PWD run -q -o into model/t.cdl >/dev/null 2>&1
same "no file of settings is read" "" "$(find . -name 'PWNED*')"

# -- quotes are drawn
rm -rf into
{ cat model/all.cdl; echo 'plot y'"''"' { file = "a.svg", title = "one line:\nit'"'"'s a \"ball\": y'"''"' & <b> {x}_1" }'; } >model/t.cdl
try "quotes in a title" 0 run -q -o into model/t.cdl
has "and derivatives" into/a.svg "one line: it's a \"ball\": y'' &amp; &lt;b> {x}_1" ">y''</text>"

# -- files written by gnuplot count towards --disk
{ cat model/all.cdl; echo 'plot y { file = "a.svg" }'; } >model/t.cdl
rm -rf into
run -q -o into model/t.cdl
numbers=$(($(wc -c <into/a.svg.csv) + 2 * $(wc -c <into/a.svg.gp))) picture=$(wc -c <into/a.svg)
rm -rf into
try "no room for the picture" 5 run -q --disk $((numbers + picture / 2)) -o into model/t.cdl
has "is an error" err "cannot write 'into/a.svg'" "the limit of --disk is exceeded"
same "and leaves nothing of it" "" "$(find into -name a.svg -o -name '.cdl-plot*')"
cat >bin/gnuplot <<'TXT'
#!/bin/sh
while :; do printf '%01000000d' 1; done >picture
TXT
PATH=$PWD/bin:$PATH try "a picture without end" 5 timeout 20 "$CDL" run -q --disk 5M -o into model/t.cdl
printf '#!/bin/sh\nwhile :; do :; done\n' >bin/gnuplot
PATH=$PWD/bin:$PATH try "a gnuplot that does not end, within --time" 3 timeout 20 "$CDL" run -q --time 2 -o into model/t.cdl
has "is reported" err "this exceeds the time limit of --time (2 s)"
# -- a truncated picture, for example on a full disk, which gnuplot does not notice
printf '#!/bin/sh\necho "<svg><path/>" >picture\n' >bin/gnuplot
rm -f into/*.svg
PATH=$PWD/bin:$PATH try "a picture without its end" 5 timeout 20 "$CDL" run -q -o into model/t.cdl
has "is not kept" err "No space left on device"
same "nor any part of it" "" "$(find into -name '*.svg')"
