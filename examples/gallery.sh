#!/bin/bash
# A page of the examples with their plots: gallery.sh CDL DIR writes DIR/index.html.  Examples that draw nothing themselves are
# drawn by their first degrees of freedom after the last run.
set -eu
cdl=$1 dir=$2 here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$dir"
escape() { sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g'; }
# degrees of freedom of the model that is run last, at most three
dofs() {
    local model; model=$(sed -nE 's/^run ([a-z_0-9]+ = )?([A-Za-z_0-9]+).*/\2/p' "$1" | tail -n 1)
    [ -n "$model" ] || return 0
    "$cdl" show model "$1" 2>/dev/null | awk -v m="$model" '$1 == "model" { on = $2 == m ":" } on && $1 == "dof" { sub(/[,\[].*/, "", $2); print $2 }' |
        head -n 3 | paste -sd, | sed 's/,/, /g'
}
{
    echo '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Examples</title>'
    echo '<style>body{font:16px sans-serif;max-width:60em;margin:2em auto}pre{background:#f4f4f4;padding:1em;overflow:auto}img{max-width:100%}</style>'
    echo '</head><body><h1>Examples</h1>'
    for f in "$here"/*.cdl; do
        name=$(basename "$f" .cdl) out=$dir/$(basename "$f" .cdl)
        rm -rf "$out"; mkdir -p "$out"
        cp "$f" "$out/$name.cdl"
        grep -q '^ *plot ' "$f" || { y=$(dofs "$f"); [ -z "$y" ] || printf '\nplot %s against t { file = "%s.svg", title = "%s" }\n' "$y" "$name" "$name" >>"$out/$name.cdl"; }
        "$cdl" run -o "$out" "$out/$name.cdl" >"$out/answer.txt" 2>"$out/notes.txt" || "$cdl" run -o "$out" "$f" >"$out/answer.txt" 2>"$out/notes.txt" || :
        echo "<h2 id=\"$name\">$name</h2><p>$(sed -nE 's/^## ?//p' "$f" | head -n 3 | escape)</p>"
        find "$out" -name '*.svg' | sort | while read -r p; do echo "<p><img src=\"${p#"$dir"/}\" alt=\"$name\"></p>"; done
        echo "<pre>$(escape <"$f")</pre><details><summary>answer</summary><pre>$(escape <"$out/answer.txt")</pre></details>"
    done
    echo '</body></html>'
} >"$dir/index.html.part"
mv "$dir/index.html.part" "$dir/index.html"
echo "wrote $dir/index.html"
