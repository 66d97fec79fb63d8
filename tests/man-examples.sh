#!/bin/bash
# Tests the examples of the man pages and of README.md. A block .EX ... .EE after one of these comment lines is extracted and run:
#   .\" run [NAME]      a model: `cdl run` exits 0        .\" check [NAME]    `cdl check` exits 0
#   .\" sh              shell lines, with cdl on the PATH: exit 0
# With a NAME the text is stored under it for later blocks of the page. The examples/ folder is available as well.
# In README.md each block ```cdl is a model to run.
set -u
: "${srcdir:?}" "${CDL:?}"

# splits a page into NN.KIND files, with roff escapes removed
extract() {
    awk -v dir="$2" '
        /^\.\\" (run|check|sh)( |$)/ { kind = $2; name = $3; next }
        /^```cdl/ { kind = "run"; name = "" }
        (/^\.EX/ || /^```cdl/) && kind { inside = 1; n++; file = sprintf("%s/%03d.%s.%s", dir, n, kind, name); printf "" >file; next }
        /^\.EE/ || /^```/ { if (inside) close(file); inside = 0; kind = ""; next }
        inside && /^\.\\"/ { next }
        inside {
            gsub(/\\&|\\\//, ""); gsub(/\\-/, "-"); gsub(/\\\(aq|\\\[aq\]|\\'\''/, "'\''"); gsub(/\\\(dq|\\\[dq\]/, "\"")
            gsub(/\\\(ha|\\\[ha\]/, "^"); gsub(/\\\(ti|\\\[ti\]/, "~"); gsub(/\\f[BIRP]/, ""); gsub(/\\e|\\\\|\\\(rs|\\\[rs\]/, "\\")
            print >file; next }
        !/^\./ { kind = "" }' "$1"
}

failed=0
for page in "$srcdir"/README.md "$srcdir"/man/*.[1357]; do
    [ -e "$page" ] || continue
    dir=$PWD/${page##*/}
    mkdir -p "$dir/out"
    cp "$srcdir"/examples/*.cdl "$dir" 2>/dev/null
    extract "$page" "$dir"
    for f in "$dir"/[0-9][0-9][0-9].*; do
        [ -e "$f" ] || continue
        IFS=. read -r n kind name <<<"${f##*/}"
        [ -z "$name" ] || { cp "$f" "$dir/$name"; f=$dir/$name; }
        case $kind in
            run)   cmd=("$CDL" run -o out "$f") ;;
            check) cmd=("$CDL" check "$f") ;;
            sh)    cmd=(bash -e "$f") ;;
        esac
        if answer=$(cd "$dir" && timeout 30 "${cmd[@]}" 2>&1 </dev/null); then echo "ok ${page##*/} example $((10#$n))"
        else echo "not ok ${page##*/} example $((10#$n)) ($kind)"; cat "$f"; echo "$answer"; failed=1; fi
    done
done
exit $failed
