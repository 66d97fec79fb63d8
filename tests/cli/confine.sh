#!/bin/bash
# A model must not harm its reader: it writes below the output folder and reads below its own folder, whatever its text,
# a manifest or a journal says. For gnuplot see gnuplot.sh.
. "${tests:?}/cli/common"
run() { timeout 60 "$CDL" run "$@"; }
export CDL; export -f run

# -- files that must not change
mkdir outside model
echo secret >outside/victim; echo 'let secret = 42 + "unfinished' >outside/lib.cdl
printf 'x,y,z\n0,0,0\n1,0,0\n2,0,0\nbad secret,0,0\n' >outside/points.csv
outside_state() { find outside PWNED* HACK* -printf '%p %s %y\n' 2>/dev/null | sort; }
state=$(outside_state)
unharmed() { same "$1: nothing outside is touched" "$state" "$(outside_state)"; }

# -- every writer with every way out of the folder
cp ball.cdl model/all.cdl
cat >model/membrane.cdl <<'CDL'
model membrane {
    domain x in 0..1, y in 0..1
    field u(x, y)
    -laplacian(u) = -4
    obstacle u >= -0.1
    boundary u = 0
}
run membrane with active_set(cells = 8)
CDL
cat >model/rod.cdl <<'CDL'
model bent {
    rod w { length = 1, radius = 0.01, young = 1e6 }
    at w.s = 0 { position = [0, 0, 0], frame = eye(3) }
}
run bent
CDL
echo 'run ball for 1 with sweeping(h = 1e-2)' >>model/all.cdl
# model, ending, statement with FILE
writers=(
    'all      csv   save t, y { file = FILE }'
    'all      jsonl save t, y { file = FILE }'
    'all      npy   save y { file = FILE }'
    'all      npz   save t, y { file = FILE }'
    'all      svg   plot y { file = FILE }'
    'all      png   plot y { file = FILE }'
    'all      svg   animate(FILE, y)'
    'all      gif   animate(FILE, y)'
    'membrane vtk   save u { file = FILE }'
    'membrane svg   plot u { file = FILE }'
    'rod      vtp   save w { file = FILE }'
    'rod      svg   save w { file = FILE }'
)
# way, file below the output folder (END is the ending), what is created there before
ways=(
    'up|../outside/x.END|'
    'down and up|sub/../../outside/x.END|'
    'absolute|ABS/outside/x.END|'
    'a linked folder|link/x.END|ln -s ../outside into/link'
    'an absolute link|link/x.END|ln -s "$PWD/outside" into/link'
    'a chain of links|a/x.END|mkdir into/b; ln -s b/../c into/a; ln -s ../outside into/c'
    'a linked file|x.END|ln -s ../outside/victim into/x.END'
    'a dangling link|x.END|ln -s ../outside/new into/x.END'
    'a pipe|x.END|mkfifo into/x.END'
    'a link to a device|x.END|ln -s /dev/null into/x.END'
)
[ "$(id -u)" = 0 ] && mknod probe c 1 3 2>/dev/null && ways+=('a device|x.END|mknod into/x.END c 1 3')
for w in "${writers[@]}"; do
    read -r model ending statement <<<"$w"
    for way in "${ways[@]}"; do
        IFS='|' read -r name file before <<<"${way//END/$ending}"
        file=${file//ABS/$PWD}
        rm -rf into; mkdir into; eval "$before"
        { cat model/$model.cdl; echo "${statement//FILE/\"$file\"}"; } >model/t.cdl
        code=5
        case $name:$statement in up:* | down*:* | absolute:*) case $statement in animate*) ;; *) code=3 ;; esac ;; esac
        try "$statement, .$ending, $name" $code run -q -o into model/t.cdl
        if [ $code = 3 ]; then     # the same from a name that is known only at the run
            { cat model/$model.cdl; echo "let spot = \"$file\""; echo "${statement//FILE/spot}"; } >model/t.cdl
            try "$statement, .$ending, $name, computed" 5 run -q -o into model/t.cdl
        fi
        [ -z "$(find into -name '*.part' -o -name '.cdl-plot*')" ] || same "nothing half made is left" "" "$(ls -A into)"
    done
    unharmed "$statement, .$ending"
done
rm -rf into; mkdir into; ln -s in into/link
{ cat model/all.cdl; echo 'save t, y { file = "link/../link/x.csv" }'; } >model/t.cdl
mkdir into/in
try "a link that stays below is followed" 0 run -q -o into model/t.cdl
same "to the file" yes "$([ -s into/in/x.csv ] && echo yes)"
{ cat model/all.cdl; echo 'save t, y { file = "../free/x.csv" }'; } >model/t.cdl
try "one that leaves is not written" 3 run -o into model/t.cdl
has "a message says what to do" err "t.cdl:10:20: error: '../free/x.csv' lies outside the output folder" "--allow-outside"
try "the option lifts it" 0 run -q --allow-outside -o into model/t.cdl
same "and the file is there" yes "$([ -s free/x.csv ] && echo yes)"

# -- the files of a run
for file in manifest.json x.points; do
    for way in 'a linked file|ln -s ../outside/victim' 'a pipe|mkfifo' 'a link to a device|ln -s /dev/full'; do
        rm -rf into; mkdir into; ${way#*|} into/$file
        { cat ball.cdl; echo 'experiment x { sweep e in [0.1, 0.2]; run ball(e = e) for 1 with sweeping(h = 1e-2); measure h = max(y); save h { file = "h.csv" } }'; } >model/t.cdl
        code=5
        case $file,$way in x.points,*mkfifo) code=0 ;; esac   # an old journal is removed before it is written
        try "$file, ${way%|*}" $code run -q -o into model/t.cdl
        [ $file = x.points ] && { rm -rf into; mkdir into; ${way#*|} into/$file; try "$file, ${way%|*}, resumed" 5 run -q --resume -o into model/t.cdl; }
    done
    unharmed $file
done
rm -rf into; mkdir into; ln outside/victim into/x.points
try "x.points, a second name of a file" 5 run -q --resume -o into model/t.cdl
same "which stays as it is" secret "$(cat outside/victim)"
rm -rf into

# -- every reader with every way out of the folder
readers=('use FILE as l' 'model b { rod w { length = 3, radius = 0.01, young = 1e6, reference = FILE }; at w.s = 0 { position = [0, 0, 0], frame = eye(3) } }; run b')
places=('lib.cdl' 'points.csv')
for r in 0 1; do
    f=${places[$r]}
    for way in "up|../outside/$f|" "down and up|sub/../../outside/$f|" "absolute|$PWD/outside/$f|" "a password file|/etc/passwd|" \
        "a linked folder|link/$f|ln -s ../outside model/link" "a linked file|$f|ln -s ../outside/$f model/$f" "a pipe|$f|mkfifo model/$f" \
        "a device|/dev/zero|" "a link to a device|$f|ln -s /dev/zero model/$f"; do
        IFS='|' read -r name file before <<<"$way"
        rm -rf model/link "model/$f"; eval "$before"
        printf '%b\n' "${readers[$r]//FILE/\"$file\"}" >model/t.cdl
        code=5; case $name in up | down* | absolute | 'a password file' | 'a device') code=3 ;; esac
        try "${readers[$r]%% *}, $name" $code run model/t.cdl
        has "is an error with its place" err "model/t.cdl:1:"
        same "no line of it is shown" "" "$(grep -hE 'secret = 42|bad secret|root:' out err)"
    done
    rm -rf model/link "model/$f"
done
unharmed "reading"
mkdir -p model/sub; echo 'let two = 2' >model/two.cdl; printf 'use "../two.cdl" as t\nlet three = t.two + 1\n' >model/sub/three.cdl
printf 'use "sub/three.cdl" as u\nexpect u.three == 3\n' >model/t.cdl
try "a file below the folder may look up in it" 0 run model/t.cdl
printf 'use "../outside/free.cdl" as f\nexpect f.x == 1\n' >model/t.cdl; echo 'let x = 1' >outside/free.cdl
try "the option lifts it" 0 run --allow-outside model/t.cdl
rm outside/free.cdl
try "from a text" 3 timeout 60 "$CDL" -e 'use "/etc/passwd" as p'
same "it shows nothing" "" "$(grep -h root: out err)"

# -- manifests and journals from unknown sources
rm -rf into; mkdir into
{ cat model/all.cdl; echo 'save t, y { file = "y.csv" }'; } >model/t.cdl
run -q -o into model/t.cdl 2>/dev/null
for change in 's|"directory": "[^"]*"|"directory": "../../outside"|' 's|"directory": "[^"]*"|"directory": "'"$PWD"'/outside"|' \
    's|"path": "model/t.cdl"|"path": "../../outside/t.cdl"|' 's|"path": "y.csv"|"path": "../outside/victim"|' \
    's|"path": "[^"]*t.cdl"|"path": "/'"$PWD"'/outside/t.cdl"|' 's|file = ."y.csv."|file = \\"../../../../../../'"$PWD"'/outside/y.csv\\"|'; do
    sed "$change" into/manifest.json >into/evil.json
    cmp -s into/manifest.json into/evil.json && same "the manifest is changed by $change" yes no
    timeout 60 "$CDL" repro into/evil.json >/dev/null 2>err && same "a manifest that leaves is refused: $change" refused run
done
unharmed "manifests"
exit $failed
